# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Vision transformers
#
# **A sentence comes in words, and an image in pixels.
# What are the words of an image, and when does it pay to let them look at each other?**
#
# The model below cuts a picture into sixteen squares, called patches, and reads them like the words of a sentence.
# Press a patch to forbid it, and no part of the model may look at it any more.

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch
from IPython.display import Markdown
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.images import ImageLoader, scaled
from course_utils.lessons.vision_transformers import analysis, memory, training
from course_utils.models.vision import cut_patches, join_patches

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.patches()

# %% [markdown]
# Try all three pictures, then forbid all sixteen patches.
# Blindfolded, the model still has to say something, and it says *trousers*.
# Perhaps that's why the trousers survive so many forbidden patches.
#
# In [Start here](00_start_here.ipynb) we forbade a word, and now we forbid a piece of an image.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - cut images into patches, and say which wrong order of axes raises no error;
# - write a vision transformer as one class, and compare it with simple baselines;
# - say which task needs attention between patches, and why;
# - find out which patches an answer needs, and test a map that claims to know.

# %% [markdown] tags=["needs"]
# You will need [The Transformer](10_transformer.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("transformer", "self_attention", "positions")

# %% [markdown]
# ## Patches
#
# A Transformer needs tokens, but an image has none.
# A single pixel says nearly nothing, and an image of 28 × 28 has 784 pixels, so each head of each layer would need a map of $784^2 = 614{,}656$ weights.
# With squares of 7 × 7 pixels, called **[patches](C_glossary.ipynb#patch)**, we get 16 tokens and a map of 256.
#
# A gray image has one number for each pixel, and a color image has three, for red, green, and blue.
# Each of these layers of numbers is called a **channel**.
# In general we cut an image of height $h$, width $w$, and $c$ channels into $m = hw/(p_h p_w)$ patches that don't overlap, read them line by line, and write each as one row of $c\,p_h\,p_w$ numbers.
# This is a small image of 4 × 4 pixels, numbered from 0 to 15, and its four patches:
#
# | image | patch 0 | patch 1 | patch 2 | patch 3 |
# |---|---|---|---|---|
# | 0 1 **2 3** | 0, 1, 4, 5 | **2, 3, 6, 7** | 8, 9, 12, 13 | 10, 11, 14, 15 |
# | 4 5 **6 7** | | | | |
# | 8 9 10 11 | | | | |
# | 12 13 14 15 | | | | |
#
# ### Exercise 1 · Cut an image
#
# *build · 11 minutes*
#
# Write `my_patches`.
# The chapter's model will cut its images with it.
# `images.unfold(axis, size, step)` slides a window along an axis and puts what it sees into a new last axis.
# Do it twice, down and to the right, and you have the axes batch, channels, rows of patches, columns of patches, height, width.
# Within a patch we want all of channel 0 first, then channel 1, and so on.
# Both images and patches may be rectangles.


# %% tags=["exercise", "build"]
def my_patches(images, size):
    """(batch, channels, height, width), (high, wide) → (batch, patches, numbers)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_patches(my_patches)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_patches_solution(images, size):
    """Unfold twice, put the axes in order, and join them."""
    high, wide = size
    windows = images.unfold(2, high, high).unfold(3, wide, wide)
    in_order = windows.permute(0, 2, 3, 1, 4, 5)  # rows, columns before channels
    return in_order.flatten(3).flatten(1, 2)


cu.checks.my_patches(my_patches_solution)

# %% [markdown]
# A patch becomes a token when we multiply it by a matrix, the same for all patches.
# Many programs write a **convolution** instead.
# A convolution slides a small window of weights, its **kernel**, over the picture, and wherever the window stops it returns the weighted sum of the pixels below it.
# The **stride** says how many pixels the window moves from one stop to the next.
# With a kernel *and* a stride as large as a patch, the window stops once on each patch.

# %%
cut = cu.choose(my_patches, cut_patches)
size = (7, 7)  # try (7, 7) | (14, 2) | (4, 28)
convolution = nn.Conv2d(3, 64, kernel_size=size, stride=size)


def by_matrix(images):
    return F.linear(cut(images, size), convolution.weight.flatten(1), convolution.bias)


def by_convolution(images):
    return convolution(images).flatten(2).transpose(1, 2)


cu.equal(by_matrix, by_convolution, torch.randn(2, 3, 28, 28))

# %% [markdown]
# The two ways give the same tokens, because `my_patches` keeps the order in which a convolution stores its kernels: channel, row, column.
# So the first layer of a vision transformer *is* a convolution, and after it come the blocks of the Transformer, with attention and feed-forward networks in turn.

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "missing_permute")

# %% [markdown]
# ## The model in one class
#
# To name the class of an image we need *one* vector for the whole image.
# The **vision transformer**, ViT for short ([Dosovitskiy et al., 2021](https://arxiv.org/abs/2010.11929)), puts one more token in front of the patches, the **[class token](C_glossary.ipynb#class-token)** $\mathbf x_{\text{cls}}$.
# It begins as the same learned vector for each image and collects what it needs from the patches in every block.
# At the end the output layer reads only this token.
#
# Attention doesn't know where a patch was, so we add a learned vector at each position.
# With $\mathbf x_i$ for the numbers of patch $i$ and $\mathbf P$ for the table of positions, the blocks receive
#
# $$\mathbf Z_0 = [\,\mathbf x_{\text{cls}};\ \mathbf x_0 \mathbf E + \mathbf b;\ \dots;\ \mathbf x_{m-1}\mathbf E + \mathbf b\,] + \mathbf P, \qquad \mathbf E \in \mathbb R^{c p_h p_w \times d}, \quad \mathbf P \in \mathbb R^{(m+1)\times d}.$$
#
# The blocks are those of the Transformer's encoder with the norm first, and each token may look at every token.
# Their feed-forward networks use GELU ([Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415)), $\text{GELU}(x) = x\,\Phi(x)$ where $\Phi(x)$ is the share of a standard normal distribution below $x$.
# So 1 becomes 0.84, and a little of −1 gets through, −0.16.
#
# Follow an image through the drawing from top to bottom, and then through the class, which has the same order.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    img   .
    cut   .
    E     cls
    cat   .
    x     P
    .     n1
    .     att
    add1  .
    .     n2
    .     ffn
    add2  .
    nf    .
    out   .
    """,
    nodes={
        "img": cu.Box("image", shape="(c, h, w)"),
        "cut": cu.Box("patches", shape="(m, c·p_h·p_w)"),
        "E": cu.Box("times E, plus b", shape="(m, d)", color="wash"),
        "cls": cu.Box("class token", shape="(1, d)", color="query"),
        "cat": cu.Box("class token in front", shape="(m + 1, d)"),
        "x": cu.Circle("+"),
        "P": cu.Box("positions", shape="(m + 1, d)", color="plum"),
        "n1": cu.Box("norm"),
        "att": cu.Box("attention, no mask", shape="4 heads", color="key"),
        "add1": cu.Circle("+"),
        "n2": cu.Box("norm"),
        "ffn": cu.Box("network", shape="d → f → d", color="line"),
        "add2": cu.Circle("+"),
        "nf": cu.Box("norm of the class token", shape="(d,)"),
        "out": cu.Box("output layer", shape="(classes,)", color="wash"),
    },
    arrows=["img -> cut -> E -> cat -> x", "cls -> cat", "P -> x", "x -> add1 -> add2 -> nf -> out",
            "x -> n1 -> att -> add1", "add1 -> n2 -> ffn -> add2"],
    groups={"one block, × num_layers": "n1 att add1 n2 ffn add2"},
    alt="An image is cut into patches, and each is multiplied by E. The class token is put in front, and the positions are added. "
    "Each block adds to this stream what attention makes of its norm, and then what a network makes of its norm. The output "
    "layer reads only the norm of the class token.",
    gap=(40, 26),
)  # fmt: skip


# %%
class PatchEmbedding(nn.Module):
    """(batch, channels, height, width) → (batch, patches, embed_dim)."""

    def __init__(self, patch_size, channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Linear(channels * math.prod(patch_size), embed_dim)

    def forward(self, images):
        return self.proj(cut(images, self.patch_size))


# %%
class ViT(nn.Module):
    """(batch, channels, height, width) → (batch, num_classes) logits."""

    def __init__(
        self, image_size=(28, 28), patch_size=(7, 7), channels=1, num_classes=10,
        embed_dim=64, num_heads=4, ffn_dim=128, num_layers=2,
    ):  # fmt: skip
        super().__init__()
        patches = math.prod(image_size) // math.prod(patch_size)
        self.patch_embedding = PatchEmbedding(patch_size, channels, embed_dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.positions = cu.LearnedPositions(embed_dim, max_len=1 + patches)
        sizes = (embed_dim, num_heads, ffn_dim)
        options = {"dropout": 0.0, "norm_first": True, "activation": "gelu"}
        blocks = [cu.EncoderLayer(*sizes, **options) for _ in range(num_layers)]
        self.layers = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(embed_dim)
        self.output = nn.Linear(embed_dim, num_classes)
        nn.init.normal_(self.positions.table, std=0.3)
        for module in [*self.layers.modules(), self.output]:
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def tokens(self, images, allowed=None):
        """(batch, 1 + patches, embed_dim), the class token first; True in `allowed` = may look."""
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        x = self.positions(x)  # adds the table
        for layer in self.layers:
            x = layer(x, allowed)
        return self.norm(x)

    def forward(self, images, allowed=None):
        return self.output(self.tokens(images, allowed)[:, 0])


# %% tags=["hide-input"] jupyter={"source_hidden": true}
shapes = {"image_size": (28, 12), "patch_size": (4, 6), "channels": 3}
tall, package = ViT(**shapes), cu.ViT(**shapes, **training.SIZE)
package.load_state_dict(tall.state_dict())
cu.equal(tall, package, torch.randn(2, 3, 28, 12))

# %% [markdown]
# To see what positions do for an image, we mix up the patches of the boot, and ask once with a table of positions and once with a table of zeros.

# %%
images, validation, test = training.parts()
boot = scaled(test.images[182:183])  # you forbade its patches
mixed = join_patches(cut(boot, (7, 7))[:, torch.randperm(16)], 1, 28, 28)
vit, bag = ViT(), ViT()
nn.init.zeros_(bag.positions.table)
for name, model in (("with positions", vit), ("without", bag)):
    moved = (model(mixed) - model(boot)).abs().max().item()
    print(f"{name}: patches mixed, logits {'the same' if moved < 1e-5 else 'changed'}")

# %% [markdown]
# Without positions an image is a bag of patches, and the class token collects the same from them in any order.
# Our table only numbers the patches, and [positions in two dimensions](15_vision_transformers_further.ipynb#Positions-in-two-dimensions) also say that patch 5 lies below patch 1.

# %% [markdown]
# ## Training it against baselines
#
# Our pictures come from Fashion-MNIST ([Xiao et al., 2017](https://arxiv.org/abs/1708.07747)), with ten kinds of clothes.
# We use 9,000 of them for training (the **training set**), 1,000 for choosing the settings (the **validation set**), and 2,000 for one final test (the **test set**).
# The folded loop below does what every training does: it takes a batch, computes the loss and its gradient, and makes a small step downhill.
# The steps are those of [AdamW](C_glossary.ipynb#adam), an optimizer, and their size is the **learning rate**, which rises in the first tenth of the training and then falls to 0.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def epochs(images, seed=0):
    """Batches of images and labels, epoch after epoch, each in a new order."""
    loader = ImageLoader(images, batch_size=64, seed=seed)
    while True:
        for batch in loader:
            yield batch.images, batch.labels


def train(model, batches, steps, lr=3e-3):
    """The loss of each step."""
    options = {"weight_decay": 0.05, "fused": True}
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr, **options), []
    for step, (images, answers) in zip(range(steps), batches, strict=False):
        rise = min(10 * (step + 1) / steps, 1)
        fall = (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = lr * rise * fall
        loss = F.cross_entropy(model(images).flatten(0, -2), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% tags=["nbval-ignore-output"]
steps = 282  # try 50 … 705
losses = train(vit, epochs(images), steps)
print(f"accuracy on the validation set: {training.accuracy_of(vit, validation):.3f}")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.0, height=2.3,
    alt="The training loss begins at the loss of a uniform guess, falls steeply for some fifty steps and then slowly to about 0.5.",
)  # fmt: skip
smooth = [sum(losses[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(losses))]
ax.plot(smooth, color=cu.COLORS["key"])
ax.axhline(math.log(10), color="0.5", linestyle=":", linewidth=1)
ax.text(len(losses), math.log(10), "a uniform guess, ln 10", ha="right", va="bottom", fontsize=8)
ax.set(xlabel="Step", ylabel="Training loss (nats)", ylim=(0, 2.7))
fig

# %% [markdown]
# The loss drops below that of a uniform guess at once, and the **accuracy**, the share of right answers, looks good.
# But an accuracy means little without a **baseline**, the score of something simpler.
# We trained four models for five **epochs** each, so that each picture is seen five times:
#
# - a linear classifier of the pixels;
# - a network with one hidden layer;
# - our ViT;
# - the same ViT without its two attention sublayers, so that no patch learns anything from another one, and the output layer reads the mean of all patches.
#
# The last two were also trained for fifteen epochs.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "How good is the ViT without attention, compared with the whole ViT?",
    ["better by a tenth or more", "about equally good", "worse by a tenth or more"],
    answer="about equally good",
    wrong={
        "worse by a tenth or more": "Each garment lies upright in the middle of its picture. What does a collar in patch 1 tell you, even if you see nothing else?",
        "better by a tenth or more": "It has fewer parameters, and it can do nothing that the whole ViT can't. Where would so large a gain come from?",
    },
    why="Here the mean of sixteen opinions is as good. The garments all lie in the same place, so a patch can have an opinion without asking another one.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
chosen = cu.stored_runs("vision_transformers", "rivals", highest="validation")
rows = pd.DataFrame([run.config | run.result for run in chosen])
index = ["name", "learning rate"]
rows = rows.rename(columns={"rate": "learning rate"})
baselines = rows.pivot_table(index=index, columns="seed", values="test", sort=False)
longer = cu.stored_runs("vision_transformers", "rivals_later", highest="validation")
longer = pd.DataFrame([run.config | run.result for run in longer])
longer = longer.rename(columns={"rate": "learning rate"})
longer["name"] += ", fifteen epochs"
longer = longer.pivot_table(index=index, columns="seed", values="test", sort=False)
pd.concat([baselines, longer]).add_prefix("test accuracy, seed ").round(3)

# %% [markdown]
# **On these pictures attention bought us nothing**, neither in five epochs nor in fifteen.
# After five epochs a hidden layer on the raw pixels is even a little better, by about one picture in a hundred.
# Each garment lies upright in the middle, so no patch has to ask another one what it is looking at.
#
# That's no verdict on ViTs, because we tried only one image size, and few images.
# [A small convolutional network](15_vision_transformers_further.ipynb#Against-a-convolutional-network) is ahead of all four.
# Dosovitskiy et al. (section 4.3) find their large ViTs behind comparable convolutional networks after pretraining on 1.3 million photographs, and ahead after 300 million.
#
# ## When attention is needed: Memory
#
# In Memory, the game of pairs, a patch *has to* look at another one.
# Sixteen cards show eight pairs, each of two different garments of one kind.
# Each card is one patch, and **each card has to say where its twin lies**.
#
# Our ViT only needs another ending: the output layer reads every card's token instead of the class token, and gives a score to each of the sixteen cards.


# %%
class Memory(ViT):
    """(batch, 1, 56, 56) → (batch, 16, 16): each card's scores for where its twin lies."""

    def __init__(self):
        super().__init__((56, 56), (14, 14), num_classes=16, num_layers=1)

    def forward(self, boards, allowed=None):
        scores = self.output(self.tokens(boards, allowed)[:, 1:])
        itself = torch.eye(16, dtype=torch.bool)
        return scores.masked_fill(itself, -torch.inf)  # no card is its own twin


# %% tags=["nbval-ignore-output"]
deals = 600  # try 100 … 1500
cu.seed_everything(0)
player = Memory()
train(player, memory.deals(images, 32), deals)
boards, twins = memory.deal(test, 500, seed=1)
found = (player(boards).argmax(dim=-1) == twins).float().mean()
blind = player(boards, memory.without_twins(twins)).argmax(dim=-1)
left = (blind == twins).float().mean()
print(f"twins found: {found:.2f}; if no card may look at its twin: {left:.2f}")

# %% [markdown]
# In a few seconds our player learns to find most twins, on cards that it has never seen.
# But if we forbid each card just one look, the look at its own twin, the answer is lost.
# The accuracy even drops below that of a blind guess, because the card then names one of the cards it can still see.
#
# Try it with one card: press it to see where it thinks its twin lies, and then forbid the look.

# %% jupyter={"source_hidden": true}
cu.live.memory()

# %% [markdown]
# Without its attention layers our ViT can't learn this game at all, and the proof takes one line: **without attention a card's token is made from this card only, and a card doesn't show where its twin was dealt.**
# Such a model can only guess among the fifteen other cards, so its accuracy is 1/15, or 0.067.
# The table shows three players: one with attention, one without it, and one with a single hidden layer that sees all the pixels at once.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
played = cu.stored_runs("vision_transformers", "memory_game", highest="validation")
rows = pd.DataFrame([run.config | run.result for run in played])
rows = rows.rename(columns={"rate": "learning rate"})
index = ["kind", "learning rate"]
twins_found = rows.pivot_table(index=index, columns="seed", values="test", sort=False)
twins_found.add_prefix("test accuracy, seed ").round(3)

# %% [markdown]
# The hidden layer would have to learn anew for each pair of cards how to compare them, while attention compares all pairs with the same two matrices, $W_Q$ and $W_K$.
# **Attention pays where one patch's answer depends on what another one shows, and that other patch may lie anywhere.**

# %% tags=["hide-input"] jupyter={"source_hidden": true}
Markdown(
    "<details><summary><em>How sure is this?</em></summary>\n\n"
    "Each row of the two tables shows three seeds, at the best of three or four learning rates, chosen on validation pictures. "
    "For the garments five epochs are a short training, and so are fifteen. For the cards we trained on 1,500 deals of 32 boards each. "
    "That the model without attention can't find twins is proven. For the hidden layer we only have these trainings: "
    "with its 64 features it gives the same answers whatever the cards show. "
    "We made up this task so that it needs attention, so it doesn't show that a ViT is better at naming pictures."
    "\n\n</details>"
)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without attention, or with one hidden layer, garments are named as well as by the ViT, and without attention also after fifteen epochs."
):
    mean = baselines.groupby("name").mean().mean(axis=1)
    assert mean["no attention"] > mean["ViT"] - 0.005
    assert mean["hidden layer"] > mean["ViT"]
    later = longer.groupby("name").mean().mean(axis=1)
    assert later["no attention, fifteen epochs"] > later["ViT, fifteen epochs"] - 0.005

with cu.guard(
    "Twins are found with attention in each of three trainings, and only by luck without it."
):
    share = twins_found.droplevel("learning rate")
    assert share.loc["attention"].min() > 0.6
    assert share.drop("attention").max(axis=None) < 0.08
    best = [run for run in played if run.config["kind"] == "attention"]
    assert all(run.result["forbidden"] < 0.12 for run in best)

with cu.guard("A single look carries the answer.", given=deals == 600):
    assert found > 0.5 and left < 0.12

# %% [markdown]
# ## Where it looks, and what it needs
#
# The class token puts a weight on each patch of a garment.
# Together these weights are a map of the image, and such maps are often shown as explanations of an answer.
# Before we test whether they explain anything, we have to draw them right.
#
# ### Exercise 2 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague draws maps with the function below.
# The weights of the class token on the patches and on itself have to sum to 1, but the cell prints sums from 0.6 to 1.1.
# Write `fixed_class_map`.

# %%
models = analysis.trained(ViT)  # three, with other seeds


def buggy_class_map(maps, rows, columns):
    """Maps (batch, heads, tokens, tokens) → weights (batch, rows, columns)."""
    mean = maps.mean(dim=1)  # over the heads
    of_class_token = mean[:, :, 0]
    return of_class_token[:, 1:].unflatten(1, (rows, columns))


last = analysis.maps_of(models[0], scaled(test.images[:3]))[-1]
sums = buggy_class_map(last, 4, 4).sum(dim=(1, 2)) + last.mean(dim=1)[:, 0, 0]
print(f"{sums.min():.1f} to {sums.max():.1f}")


# %% tags=["exercise", "bug"]
def fixed_class_map(maps, rows, columns):
    """Maps (batch, heads, tokens, tokens) → weights (batch, rows, columns)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_class_map(fixed_class_map)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_class_map_solution(maps, rows, columns):
    """The class token is the query: `mean[:, :, 0]` is what all tokens give *to* it."""
    of_class_token = maps.mean(dim=1)[:, 0]
    return of_class_token[:, 1:].unflatten(1, (rows, columns))


cu.checks.fixed_class_map(fixed_class_map_solution)

# %% [markdown]
# One map shows one block only.
# **Attention rollout** ([Abnar and Zuidema, 2020](https://arxiv.org/abs/2005.00928)) multiplies the maps of all blocks, and so follows the weights back to the patches ([its formula](15_vision_transformers_further.ipynb#Attention-rollout)).
# Our own method needs no weights at all: forbid each patch in turn, and see how far the probability of the answer falls.
# The figure shows both maps for the boot, the coat, and the trousers.


# %%
def without(gone):
    """(n, 16), True = forbidden → a mask (n, 1, 1, 17), True = may look."""
    return F.pad(~gone, (1, 0), value=True)[:, None, None]  # the class token is never forbidden


@torch.no_grad()
def needs(model, images):
    """(n, 16): how far the probability of the model's answer falls without each patch."""
    p, answer = model(images).softmax(dim=-1).max(dim=-1, keepdim=True)
    each = torch.eye(16, dtype=torch.bool)[:, None]
    left = [model(images, without(gone)).softmax(dim=-1).gather(1, answer) for gone in each]
    return p - torch.cat(left, dim=1)


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
shown = scaled(test.images[[182, 339, 5]])
rolled = [analysis.attention_rollout(analysis.maps_of(models[0], shown))[:, 0, 1:].view(-1, 4, 4)]
both = torch.stack([*rolled, needs(models[0], shown).view(-1, 4, 4)])
both = both / both.amax(dim=(2, 3), keepdim=True)
fig, axes = cu.subplots(
    3, 3, width=5.6, height=5.2,
    alt="A boot, a coat, and trousers. Beside each are two maps of four by four patches, by rollout and by forbidding each patch. The "
    "two maps of a garment differ: for the coat forbidding marks one patch, the left half of the collar, and rollout several.",
)  # fmt: skip
for row, (picture, line) in enumerate(zip(shown, axes, strict=True)):
    line[0].imshow((picture[0] + 1) / 2, cmap="gray", vmin=0, vmax=1)
    for ax, grid in zip(line[1:], both[:, row].clamp(min=0), strict=True):
        drawn = cu.heatmap(ax, grid, xlabel=None, ylabel=None, vmax=1)
    for ax in line:
        ax.set(xticks=[], yticks=[], aspect="equal")
for ax, title in zip(axes[0], ("picture", "rollout", "forbid each"), strict=True):
    ax.set_title(title)
bar = fig.colorbar(drawn, ax=axes, shrink=0.6, label="share of the largest")
bar.outline.set_visible(False)
fig

# %% [markdown]
# The two maps disagree, so at most one of them shows what the model needs.
# If a map does, the answers should break when we forbid the four patches that it marks most.
# But some answers break whichever four patches we forbid, so we need four controls, and each rules out an excuse:
#
# - **four patches at random**: perhaps any damage will do;
# - **the four brightest patches**: perhaps the map only found the garment;
# - **the four patches of *another* model's rollout**: perhaps the map is about the picture, and not about this model;
# - **the same four patches for all pictures**, where rollout is highest on average: perhaps the map is about no picture in particular.
#
# The farther left a mark lies in the figure, the more the model needed the four patches that we forbade.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
count = 4  # try 3 … 5
many, names = scaled(test.images[:500]), test.labels[:500]
flows = [analysis.attention_rollout(analysis.maps_of(m, many))[:, 0, 1:] for m in models]


@torch.no_grad()
def accuracy_without(model, scores, number):
    """The accuracy when the patches with the highest scores are forbidden."""
    gone = torch.zeros(len(many), 16, dtype=torch.bool)
    gone.scatter_(1, scores.topk(number, dim=1).indices, True)
    return (model(many, without(gone)).argmax(dim=1) == names).float().mean().item()


damage = {}
for i, model in enumerate(models):
    choices = {
        "at random": analysis.at_random(many),
        "the brightest": analysis.brightness(many),
        "another model's rollout": flows[i - 1],
        "one choice for all": flows[i].mean(dim=0).expand(500, -1),
        "its own rollout": flows[i],
        "forbidding each": needs(model, many),
    }
    damage[i] = {"nothing": accuracy_without(model, flows[i], 0)}
    damage[i] |= {name: accuracy_without(model, choices[name], count) for name in choices}
damage = pd.DataFrame(damage)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=7.0, height=2.9,
    alt="Accuracy of three models when four patches are forbidden. With nothing forbidden it is 0.81 to 0.84, at random about 0.73, "
    "by the controls mostly between 0.44 and 0.62, by the model's own rollout between 0.34 and 0.56, and by forbidding each patch between 0.28 and 0.38.",
)  # fmt: skip
for i, marker in enumerate("os^"):
    ax.plot(
        damage[i], range(len(damage)), marker, color=cu.COLORS["key"], alpha=0.8, label=f"model {i}"
    )
ax.set_yticks(range(len(damage)), damage.index)
ax.set(xlabel=f"Accuracy without the {count} patches", xlim=(0.2, 0.9), ylim=(6.5, -0.5))
ax.legend(fontsize=8)
fig

# %% [markdown]
# Rollout finds patches that matter: in models 1 and 2, forbidding them hurts more than any control.
# In model 0 the brightest patches do about as much harm, and we could have found those without a model.
# **When we forbid each patch in turn, we find patches that the model misses more than those of any control**: without them its accuracy is lowest, in every model and by a clear margin.
# No wonder, because this method asks the model itself sixteen times.
# But it asks about one patch at a time, and overlooks patches that can stand in for each other, as in the boot at the top of this page.
#
# ### Exercise 3 · A garment of your own
#
# *open · 5 minutes*
#
# Choose a picture, guess which patch, counted from 0, decides what the model calls it, and run the cell.
# Somebody shows you a ViT's map of an X-ray, and its strongest square lies on the lung.
# Which two controls do you ask for?

# %% tags=["nbval-ignore-output"]
row = 41  # try 0 … 1999
mine = scaled(test.images[row : row + 1])
fall = needs(models[0], mine)[0]
whole, patch = models[0](mine).argmax(), int(fall.argmax())
with cu.intervene(models[0]) as acts:
    acts.forbid(keys=[patch + 1])  # key 0 is the class token
    print(
        test.classes[whole], "→", test.classes[models[0](mine).argmax()], f"without patch {patch}"
    )

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
own = analysis.attention_rollout(analysis.maps_of(models[0], mine))[0, 0, 1:]
fig, axes = cu.subplots(
    1, 3, width=5.6, height=2.0,
    alt="The picture that was chosen, and its maps by rollout and by forbidding each patch.",
)  # fmt: skip
axes[0].imshow((mine[0, 0] + 1) / 2, cmap="gray", vmin=0, vmax=1)
for ax, grid in zip(axes[1:], (own, fall.clamp(min=0)), strict=True):
    cu.heatmap(ax, (grid / grid.max()).view(4, 4), xlabel=None, ylabel=None, vmax=1)
for ax, title in zip(axes, ("picture", "rollout", "forbid each"), strict=True):
    ax.set(xticks=[], yticks=[], aspect="equal", title=title)
fig

# %% [markdown]
# On the X-ray we would first forbid that square.
# As controls we would forbid another square where the X-ray is just as bright, and then the strongest square on the map of the same model, trained a second time.
# If forbidding that last square does as much harm, the map is about the picture and not about this model.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Forbidding each patch finds what hurts most, in every model.", given=count == 4):
    others = damage.drop(["nothing", "forbidding each"])
    assert (damage.loc["forbidding each"] < others.min() - 0.03).all()

with cu.guard(
    "In two of three models the model's own rollout hurts more than any control.", given=count == 4
):
    controls = damage.drop(["nothing", "its own rollout", "forbidding each"]).min()
    assert (damage.loc["its own rollout"] < controls - 0.05).sum() == 2
    assert (damage.loc["its own rollout"] < controls + 0.02).all()

with cu.guard("A model that sees nothing says trousers, and its map by rollout is another one."):
    nothing = torch.ones(1, 16, dtype=torch.bool)
    assert test.classes[models[0](boot, without(nothing)).argmax()] == "Trouser"
    apart = F.cosine_similarity(both[0].flatten(1), both[1].flatten(1))
    assert apart.max() < 0.9

# %% [markdown]
# ## Take-aways
#
# - An image becomes a sequence when we cut it into patches, multiply each by one matrix, add positions, and put a class token in front.
# - Attention pays where one patch's answer depends on what another one shows, as in Memory.
#   On small pictures with the garment in the middle, it gained us nothing.
# - Weights say where a model looks.
#   To see whether it needs the place, forbid it, and forbid another place as a control.

# %% [markdown] tags=["next"]
# Next: [Attention between pixels](16_attention_between_pixels.ipynb).
# For a drawing board, color pictures, and a CNN to compare with, see [Vision transformers: colors, a CNN and photographs](15_vision_transformers_further.ipynb).

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers")

# %% [markdown]
# ## References
#
# - Abnar, S. and Zuidema, W. (2020).
#   [Quantifying attention flow in transformers](https://arxiv.org/abs/2005.00928).
#   ACL.
#   Section 3: rollout.
# - Dosovitskiy, A. et al. (2021).
#   [An image is worth 16x16 words: transformers for image recognition at scale](https://arxiv.org/abs/2010.11929).
#   ICLR.
#   Section 3.1: the model; 4.3: how much data.
# - Hendrycks, D. and Gimpel, K. (2016).
#   [Gaussian error linear units (GELUs)](https://arxiv.org/abs/1606.08415).
# - Xiao, H., Rasul, K. and Vollgraf, R. (2017).
#   [Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms](https://arxiv.org/abs/1708.07747).
