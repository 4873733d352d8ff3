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
# A sentence comes in words.
# An image comes in pixels, and a single pixel says nearly nothing.
# **What are the words of an image, and how much of the Transformer has to change to read them?**
#
# The picture below the next cell answers the first half: the words are small squares, read line by line.
# The second half is short: almost nothing changes.
# How well it works has to be *measured*.
#
# After this chapter you can
#
# - cut images into patches, and say which wrong order of axes raises no error;
# - write a vision transformer as one class, for images of any shape;
# - train it, and test the files that it writes while the training goes on;
# - compare two networks over the amount of data, with equal budgets;
# - draw what the class token looks at, and test whether such a map says something about the model.
#
# It needs [The Transformer](10_transformer.ipynb); its rate has a [warm-up](C_glossary.ipynb#warm-up).

# %%
import math
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.images import ImageLoader
from course_utils.lessons.vision_transformers import analysis, training
from course_utils.lessons.vision_transformers.training import confusion_matrix, predict_classes
from course_utils.models.vision import cut_patches, join_patches
from course_utils.train.losses import classification_loss

cu.seed_everything(0)

# %% tags=["hide-input", "opening"] jupyter={"source_hidden": true}
images, validation, test = training.parts()
boots = (images.labels == 9).nonzero().flatten()
boot = images.images[boots[3]].float()[None] / 127.5 - 1  # (1, 1, 28, 28), from -1 to 1
first_picture, (whole, cut_up) = cu.subplots(
    1, 2, width=8.6, height=1.9, width_ratios=[1, 4.6],
    alt="On the left an ankle boot of 28 by 28 pixels under a grid of four by four squares. On the right the sixteen squares "
    "in one row with their numbers, from the upper left to the lower right.",
)  # fmt: skip
pixels = (boot[0, 0] + 1) / 2
whole.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
for line in (6.5, 13.5, 20.5):
    whole.axhline(line, color=cu.COLORS["wrong"], linewidth=1.2)
    whole.axvline(line, color=cu.COLORS["wrong"], linewidth=1.2)
strip = torch.ones(7, 16 * 8 - 1)
for i in range(16):
    row, column = 7 * (i // 4), 7 * (i % 4)
    strip[:, 8 * i : 8 * i + 7] = pixels[row : row + 7, column : column + 7]
    cut_up.text(8 * i + 3, 9.5, str(i), ha="center", fontsize=9)
cut_up.imshow(strip, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
for ax in (whole, cut_up):
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
first_picture

# %% jupyter={"source_hidden": true}
cu.recall("transformer", "self_attention", "positions")

# %% [markdown]
# ## Patches
#
# The pictures are of Fashion-MNIST ([Xiao et al., 2017](https://arxiv.org/abs/1708.07747)): gray, 28 × 28 pixels, ten classes of clothes.
# The course brings 12,000 of them: 9,000 to learn from, 1,000 for validation, by which everything is chosen, and 2,000 to test.
#
# Why not take pixels as tokens?
# 784 tokens make maps of $784^2 = 614{,}656$ weights, for each head of each layer.
# With squares of 7 × 7 there are 16 tokens, and 256 weights.
#
# An image of height $h$ and width $w$ with $c$ channels is cut into **[patches](C_glossary.ipynb#patch)** of $p_h \times p_w$ pixels that do not overlap, read line by line.
# There are $m = hw/(p_h p_w)$ of them, and each is written as one vector of $c\,p_h\,p_w$ numbers.
# By hand, for 4 × 4 pixels with the values 0 to 15 and patches of 2 × 2:
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
# *build · 8 minutes*
#
# Write `my_patches`; the chapter's model cuts with it.
# `images.unfold(axis, size, step)` slides a window along an axis, and puts what it sees into a new last axis.
# Twice, down and to the right, gives the axes batch, channels, rows of patches, columns of patches, height, width.
# Within a patch all of channel 0 comes first, then channel 1, and so on.
# Images and patches may be rectangles.


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
# A patch becomes a token by one matrix, the same for all patches.
# Many programs write a convolution instead, whose kernel *and* stride are the patch: its window stops once on each patch.
# As the line below shows, that is the same map, since `my_patches` puts the numbers of a patch in the order in which a convolution keeps its kernels: channel, row, column.
# So the first layer of a ViT *is* a convolution.
# A network of convolutions goes on with overlapping windows; here each window stands alone, and the rest is attention.

# %%
cut = cu.choose(my_patches, cut_patches)
high = 7  # try 7 | 14 | 4
wide = 7  # try 7 | 14 | 2
convolution = nn.Conv2d(3, 64, kernel_size=(high, wide), stride=(high, wide))


def by_matrix(colored):
    """The convolution's own numbers, a row for each feature, times the patch."""
    patches = cut(colored, (high, wide))
    return F.linear(patches, convolution.weight.flatten(1), convolution.bias)


def by_convolution(colored):
    """(batch, 64, rows, columns) → (batch, patches, 64)."""
    return convolution(colored).flatten(2).transpose(1, 2)


cu.equal(by_matrix, by_convolution, torch.randn(2, 3, 28, 28))

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "missing_permute")

# %% [markdown]
# ## The model in one class
#
# To name the class we need *one* vector for the whole image.
# The **vision transformer**, ViT ([Dosovitskiy et al., 2021](https://arxiv.org/abs/2010.11929)), puts one more token in front of the patches, the **[class token](C_glossary.ipynb#class-token)** $\mathbf x_{\text{cls}}$: a learned vector, the same for each image.
# In every block it collects from the patches, and at the end the output layer reads it and nothing else.
#
# Attention does not know where a patch was, so a learned vector is added at each place ([Positions](09_positions.ipynb)).
# With $\mathbf x_i$ the numbers of patch $i$ as a row, and $\mathbf P$ the table of positions:
#
# $$\mathbf Z_0 = [\,\mathbf x_{\text{cls}};\ \mathbf x_0 \mathbf E + \mathbf b;\ \dots;\ \mathbf x_{m-1}\mathbf E + \mathbf b\,] + \mathbf P, \qquad \mathbf E \in \mathbb R^{c p_h p_w \times d}, \quad \mathbf P \in \mathbb R^{(m+1)\times d}$$
#
# The blocks are those of the encoder with the norm first, and GELU ([Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415)) in the network, as in [BERT](14_bert_and_transfer.ipynb#BERT-in-one-class).
# No mask: each token attends to all.

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
    "layer reads the norm of the class token alone.",
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
        self,
        image_size=(28, 28),
        patch_size=(7, 7),
        channels=1,
        num_classes=10,
        embed_dim=64,
        num_heads=4,
        ffn_dim=128,
        num_layers=2,
    ):
        super().__init__()
        places = math.prod(image_size) // math.prod(patch_size)
        self.patch_embedding = PatchEmbedding(patch_size, channels, embed_dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.positions = cu.LearnedPositions(embed_dim, max_len=1 + places)
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

    def forward(self, images):
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        x = self.positions(x)  # adds the table
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x[:, 0]))


# %% [markdown]
# Is it the package's `cu.ViT`?
# And does it take images and patches that are no squares?
# The last lines mix the patches of an image, once with the model's positions and once with a table of zeros.

# %%
shapes = {"image_size": (28, 12), "patch_size": (4, 6), "channels": 3}
tall, package = ViT(**shapes), cu.ViT(**shapes, **training.SIZE)
package.load_state_dict(tall.state_dict())
cu.equal(tall, package, torch.randn(2, 3, 28, 12))

vit = ViT()
patches = cut(boot, (7, 7))
mixed = join_patches(patches[:, torch.randperm(16)], 1, 28, 28)
bag = ViT()
nn.init.zeros_(bag.positions.table)
for name, model in (("with positions", vit), ("without", bag)):
    moved = (model(mixed) - model(boot)).abs().max().item()
    print(f"{name}: patches mixed, logits {'the same' if moved < 1e-5 else 'changed'}")

# %% [markdown]
# Equal, for a tall image of 28 × 12 in patches of 4 × 6, too.
# Without positions the image is a bag of patches: the class token collects the same from them in any order.
#
# ### Exercise 2 · Sizes on paper
#
# *predict · 6 minutes*
#
# Color images of 64 × 64 pixels, patches of 8 × 8, $d = 128$. (a) How many numbers has a patch? (b) How many tokens do the blocks get? (c) How many parameters has the patch embedding, with its bias? (d) And the table of positions? (e) With patches of 4 × 4 instead, how many weights has one map of one head?


# %% tags=["exercise", "predict"]
def sizes_on_paper():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.sizes_on_paper(sizes_on_paper)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def sizes_on_paper_solution():
    """3 · 8 · 8; 8 · 8 + 1; 192 · 128 + 128; 65 · 128; (16 · 16 + 1)²."""
    return [192, 65, 24704, 8320, 66049]


cu.checks.sizes_on_paper(sizes_on_paper_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "position_of_the_class_token")

# %% [markdown]
# ## Training it
#
# First the usual questions.
# By hand, each block has $4(d^2 + d)$ parameters in attention, $2df + f + d$ in the network, $4d$ in two norms.
# In products each of the $m+1$ tokens takes $4d^2 + 2df$ in a block, and the two products of attention $2(m+1)^2 d$.
#
# Then the same questions for a ViT with a mistake: its class token is made by `nn.Parameter(…).cuda()`.
# On a GPU the result is a copy, and no longer a parameter; here `.clone()` stands for it.

# %%
d, f, m = 64, 128, 16
in_block = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
by_hand = (49 * d + d) + d + (m + 1) * d + 2 * in_block + 2 * d + (10 * d + 10)
in_products = (m + 1) * (4 * d * d + 2 * d * f) + 2 * (m + 1) ** 2 * d
products = m * 49 * d + 2 * in_products + 10 * d
batch = next(iter(ImageLoader(images, batch_size=64, seed=0)))
loss = classification_loss()
ritual = {"expected": by_hand, "operations": 64 * products, "lr": 3e-3}
cu.before_training(vit, batch, loss, **ritual)


class Forgetful(ViT):
    """A ViT whose class token is no parameter."""

    def __init__(self):
        super().__init__()
        del self.class_token
        self.class_token = nn.Parameter(torch.randn(1, 1, d)).clone()  # for .cuda()


cu.before_training(Forgetful(), batch, loss, **ritual, steps=5)

# %% [markdown]
# The count finds it: 64 parameters fewer.
# The loss would not have told: that model learns, too, with a class token that stays as it was drawn, that no optimizer moves and no `state_dict` holds.
#
# The loop is that of [GPT](13_gpt.ipynb#Training-it), with passes over the images.
# After each epoch it calls `after_epoch`, which writes the weights to a file; **a second thread tests this file while the training goes on.**
# All it has of the model is the file.
# The file is first written under another name and then renamed, so that nobody ever reads half of it, and `weights_only=True` reads numbers and runs no code that a file may carry.


# %%
def train(model, images, epochs, lr=3e-3, seed=0, after_epoch=None):
    """The loss of each step."""
    loader = ImageLoader(images, batch_size=64, seed=seed)
    options = {"weight_decay": 0.05, "fused": True}
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr, **options), []
    total = epochs * len(loader)
    for epoch in range(epochs):
        for batch in loader:
            step = len(losses)
            rise = min((step + 1) / (total / 10), 1)
            fall = (1 + math.cos(math.pi * step / total)) / 2
            optimizer.param_groups[0]["lr"] = lr * rise * fall
            one = F.cross_entropy(model(batch.images), batch.labels)
            optimizer.zero_grad()
            one.backward()
            optimizer.step()
            losses.append(one.item())
        if after_epoch:
            after_epoch(epoch)
    return losses


# %% tags=["nbval-ignore-output"]
epochs = 3  # try 1 | 2 | 3
lr = 3e-3  # try 1e-3 … 1e-2
folder, tests = tempfile.TemporaryDirectory(), []


def test_file(path):
    fresh = ViT()
    fresh.load_state_dict(torch.load(path, weights_only=True))
    return training.share_right(fresh, validation)


def write_and_test(epoch):
    whole, part = Path(folder.name, f"epoch_{epoch}.pt"), Path(folder.name, "part")
    torch.save(vit.state_dict(), part)
    part.replace(whole)
    tests.append(tester.submit(test_file, whole))


with ThreadPoolExecutor(max_workers=1) as tester:
    losses = train(vit, images, epochs, lr, after_epoch=write_and_test)
from_disk = [one.result() for one in tests]
print("validation, from the files:", *(f"{share:.3f}" for share in from_disk))
in_memory = training.share_right(vit, validation)
tested_once = training.share_right(vit, test)
print(f"in memory: {in_memory:.3f}; test, once: {tested_once:.3f}")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
short = cu.stored_runs("vision_transformers", "short")
training_picture, (ax_loss, ax_share) = cu.subplots(
    1, 2, width=8.4, height=2.9,
    alt="Left: the training loss falls quickly and then slowly. Right: the share of right validation "
    "images after each of three epochs, for the page and three stored trainings: far apart after the first, close together after the third.",
)  # fmt: skip
smooth = torch.tensor(losses)[: len(losses) // 10 * 10].view(-1, 10).mean(dim=1)
ax_loss.plot(torch.arange(len(smooth)) * 10 + 5, smooth, label="mean of 10 steps")
ax_loss.axhline(math.log(10), color="0.6", linestyle=":", label="uniform guess, ln 10")
ax_loss.set(xlabel="step", ylabel="training loss", ylim=(0, None))
ax_loss.legend()
ax_share.plot(range(1, epochs + 1), from_disk, "o-", color="black", label="this page")
for run, style in zip(short, ("s--", "^-.", "v:"), strict=True):
    of_seed = f"seed {run.config['seed']}, test {run.result['test']:.3f}"
    ax_share.plot(*zip(*run.curves["validation"], strict=True), style, label=of_seed)
ax_share.set(xlabel="epoch", ylabel="validation, share right", xticks=[1, 2, 3])
ax_share.legend()
training_picture

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
answers = predict_classes(vit, ImageLoader(test, batch_size=500, shuffle=False))
confusion = confusion_matrix(*answers, 10)
confusion_picture, confusion_ax = cu.subplots(
    width=6.4, height=4.2,
    alt="Confusion matrix of ten classes, 200 images each. The diagonal is dark, with the shirt faintest. The other counts lie "
    "mostly among T-shirt, pullover, dress, coat and shirt, and among the three kinds of shoe.",
)  # fmt: skip
drawn = cu.heatmap(
    confusion_ax, confusion / 200, queries=test.classes, keys=test.classes, xlabel="answer", ylabel="true class",
)  # fmt: skip
for row, column in confusion.nonzero().tolist():
    color = "white" if confusion[row, column] > 140 else "black"
    confusion_ax.text(column, row, int(confusion[row, column]), ha="center", va="center", fontsize=8, color=color)  # fmt: skip
confusion_picture.colorbar(drawn, ax=confusion_ax, label="share of the row").outline.set_visible(
    False
)
confusion_picture

# %% [markdown]
# The last file and the model in memory have the same score: the file holds all that matters.
# In the first picture the page's curve stands beside three stored trainings, all alike but for the seed.
# They end within 0.002 on the validation images, and with 0.831, 0.819 and 0.816 of the test images.
# **So a difference of one or two hundredths between two single trainings says nothing.**
#
# One number hides who is taken for whom.
# In the **[confusion matrix](C_glossary.ipynb#confusion-matrix)** each true class is a row, each answer a column.
# Most mistakes are among T-shirt, pullover, dress, coat and shirt, and the shirt is the hardest class.

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "tested_file")

# %% [markdown]
# ## What the parts are worth
#
# Is the class token needed?
# The output layer could read the mean of the patches' tokens instead.
# Are positions needed, and how large should they be at the start?
# The usual standard deviation is 0.02; ours is 0.3.
# All four models were trained beforehand for five epochs, with everything else equal, three seeds each.
# Below them stand three that a ViT has to beat: a linear classifier of the pixels, one hidden layer, and the second row with both attention sublayers taken out.
# Each of these has the best of three rates on the validation images.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which change costs most?",
    ["the mean of the patches in place of the class token", "positions that begin at 0.02", "no positions", "none costs anything"],
    answer="no positions",
    wrong={
        "the mean of the patches in place of the class token": "What could the class token collect that a mean of tokens, after two blocks of attention, has lost?",
        "positions that begin at 0.02": "They are learned. How far can they grow in 705 steps?",
        "none costs anything": "Could you tell a boot from a sneaker if somebody had mixed the patches?",
    },
    why="Without positions three hundredths are lost, in each seed. But a bag of patches still names four of five images.",
)  # fmt: skip

# %%
longer = cu.stored_runs("vision_transformers", "longer")
rows = pd.DataFrame([run.config | run.result for run in longer])
tested = rows.pivot(index="kind", columns="seed", values="test").add_prefix("seed ")
cosines = rows.groupby("kind")[["alike 1", "alike 2", "alike start"]].mean()
cosines.columns = ["neighbors alike", "2 steps apart", "like the start"]
kinds = ["class token", "mean of the patches", "positions 0.02", "no positions"]
rivals = pd.DataFrame(
    [r.config | r.result for r in cu.stored_runs("vision_transformers", "rivals")]
)
by_rate = rivals.groupby(["name", "lr"])["validation"].mean().unstack()
best = {name: by_rate.loc[name].idxmax() for name in rivals["name"].unique()}
chosen = rivals[rivals["lr"] == rivals["name"].map(best)]
others = chosen.pivot(index="name", columns="seed", values="test").add_prefix("seed ")
worth = pd.concat([tested.join(cosines).loc[kinds], others.loc[list(best)]])
worth.insert(0, "rate", [0.003] * len(kinds) + list(best.values()))
worth.map(lambda one: f"{one:.3f}" if one == one else "")

# %% [markdown]
# Class token or mean: 0.829 to 0.836 against 0.826 to 0.833.
# These ranges overlap; here it does not matter which one is read.
# (Dosovitskiy et al. found the same, when each has its own [learning rate](C_glossary.ipynb#learning-rate): their appendix D.3.)
# Positions from 0.02: 0.823 to 0.832.
# That overlaps, too.
# **Without positions it is 0.797 to 0.805, below every other ViT.**
# **And without attention nothing is lost**: patches, networks and a mean do as well here, and so does one hidden layer on the pixels.
# Garments of 28 × 28 pixels in the middle of the picture are no task for which attention is needed.
#
# What do the position vectors learn?
# The last columns have cosines of position vectors: of neighbors, of patches two steps apart, and of each with what it was before the training.
# Below, each small map belongs to one patch, at its place in the image, and shows the cosine of its position vector with all sixteen.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
alike = {}
for kind in ("class token", "positions 0.02"):
    of_kind = [run.examples[0]["alike"] for run in longer if run.config["kind"] == kind]
    alike[kind] = torch.tensor(of_kind).mean(dim=0)  # of three seeds, (16, 16)
tiles = torch.stack(list(alike.values())).view(2, 4, 4, 4, 4).transpose(2, 3).reshape(2, 16, 16)
position_picture = cu.show_heatmaps(
    tiles, titles=["positions from 0.3", "positions from 0.02"], vmin=-0.2, vmax=0.4, width=7.6, height=3.4,
    xlabel="column of the patch", ylabel="row of the patch",
    alt="Two pictures of sixteen small maps each. With positions from 0.3 each map has one dark square, the patch itself, on an "
    "even ground. With 0.02 the neighbors of the patch, in its row or column, are mostly darker than patches farther away; in three rows both ends are dark together.",
)  # fmt: skip
for ax in position_picture.axes[:2]:
    ax.set_xticks([1.5, 5.5, 9.5, 13.5], range(4))
    ax.set_yticks([1.5, 5.5, 9.5, 13.5], range(4))
    for line in (3.5, 7.5, 11.5):
        ax.axhline(line, color="white", linewidth=3)
        ax.axvline(line, color="white", linewidth=3)
position_picture

# %% [markdown]
# From 0.3 nothing is to be seen: the vectors still have nearly the directions in which they were drawn (cosine 0.99), and random vectors of 64 features are nearly orthogonal.
# From 0.02 the training has turned them (0.27), and neighbors are alike, 0.12, while patches two steps apart are not (−0.10).
# It is not only nearness: in three of the four rows both ends are alike, too.
# Figure 7 of Dosovitskiy et al. shows such similarity, in rows and columns.
# **It depends on how the table begins.**

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without positions each seed is below all other ViTs; a hidden layer, or no attention, does as well as a ViT; only positions from 0.02 make neighbors alike."
):
    with_places = tested.drop("no positions")
    assert tested.loc["no positions"].max() < with_places.min(axis=None) - 0.01
    assert with_places.max(axis=1).min() > with_places.min(axis=1).max()
    assert others.loc[["hidden layer", "no attention"]].mean(axis=1).min() > 0.82
    small, large = cosines.loc["positions 0.02"], cosines.loc["class token"]
    assert small["neighbors alike"] > 0.08 > small["2 steps apart"] + 0.1
    assert abs(large["neighbors alike"]) < 0.05 and large["like the start"] > 0.95
    ends = alike["positions 0.02"].view(4, 4, 4, 4)[range(4), 0, range(4), 3]
    assert (ends > 0.3).sum() == 3

with cu.guard(
    "The last file holds what the model in memory is; the shirt is the hardest class.",
    given=(epochs, lr) == (3, 3e-3),
):
    assert abs(from_disk[-1] - in_memory) < 0.002
    assert test.classes[confusion.diagonal().argmin()] == "Shirt"

# %% [markdown]
# ## Against a convolutional network
#
# A convolution looks at neighbors, and does the same everywhere.
# That is built in: an **inductive bias**.
# A ViT has to learn even that neighboring patches belong together.
# Does it need more images?
# And if so, is *this* why?
# Beside both stand two networks that know nothing of neighbors either.
#
# A comparison needs equal budgets.
# The other network, `SmallCNN`, has three convolutions of 3 × 3 with stride 2.
# Each network has the rate that was best for it among five, from 0.001 to 0.1, on the validation images (one seed): 0.003 for the ViT and 0.03 for the CNN.
# Both see the same images, once for **equal epochs** (5), once for **equal steps** (400 batches), with three seeds.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "With 400 steps each: where is the CNN's lead over the ViT largest?",
    ["with 500 images", "with 9,000 images", "the ViT leads", "about the same everywhere"],
    answer="about the same everywhere",
    wrong={
        "with 500 images": "So it is with equal epochs, where 500 images mean 40 steps. What if both make 400?",
        "with 9,000 images": "With many images a ViT can learn what the CNN has built in. Why should it fall behind?",
        "the ViT leads": "It has no built-in knowledge of neighbors, and 2,000 or 9,000 images to learn it from.",
    },
    why="Three to four hundredths at each size. What this means, the two other networks tell.",
)

# %%
amount = pd.DataFrame(
    [run.config | run.result for run in cu.stored_runs("vision_transformers", "amount")]
)
means = amount.groupby(["budget", "images", "name"])["test"].mean().unstack()
means["lead of the CNN"] = means["CNN"] - means["ViT"]
blind = cu.stored_runs("vision_transformers", "rivals_by_amount")
blind = pd.DataFrame([run.config | run.result for run in blind])
blind = blind.groupby(["images", "name"])["test"].mean().unstack()
both_names = [["steps"], blind.index]
blind.index = pd.MultiIndex.from_product(both_names, names=means.index.names)
means = means.join(blind)
means["steps"] = amount.groupby(["budget", "images"])["steps"].first().astype(int)
means.map(lambda one: f"{one:.3f}" if one == one else "").assign(steps=means["steps"])

# %% tags=["hide-input"] jupyter={"source_hidden": true}
data_picture, data_axes = cu.subplots(
    1, 2, width=8.4, height=3.0, sharey=True,
    alt="Test accuracy over the number of training images, three seeds each. Left, equal epochs: the CNN is ahead by ten hundredths at "
    "500 images and by four at 9,000. Right, equal steps: both curves rise side by side, the CNN about four hundredths higher.",
)  # fmt: skip
for ax, budget in zip(data_axes, ("epochs", "steps"), strict=True):
    for network, style in (("CNN", "s-"), ("ViT", "o--")):
        here = amount[(amount["budget"] == budget) & (amount["name"] == network)]
        middle = here.groupby("images")["test"].mean()
        (drawn_line,) = ax.plot(middle.index, middle, style, label=network)
        ax.plot(here["images"], here["test"], ".", color=drawn_line.get_color(), markersize=4)
    ax.set(xscale="log", xlabel="training images", title=f"equal {budget}")
    ax.set_xticks([500, 1000, 2500, 9000], ["500", "1,000", "2,500", "9,000"])
    ax.minorticks_off()
data_axes[0].set_ylabel("test, share right")
data_axes[0].legend()
data_picture

# %% [markdown]
# On the left the answer seems yes: with equal epochs the CNN leads by 0.10 with 500 images, and by 0.04 with 9,000.
# But 5 epochs of 500 images are 40 steps, and of 9,000 images 705.
# On the right both make 400 steps, and **the lead is the same with few images and with many, 0.03 to 0.04.**
# So the larger lead with few images came from few steps.
# The CNN stays ahead everywhere, with 25,978 parameters against 72,074.
#
# Is the missing knowledge of neighbors the reason?
# The last columns speak against it: one hidden layer on the pixels, which has none either, is ahead of the ViT with few images by nearly as much as the CNN, and with 9,000 the ViT is level with the linear classifier.
# So with more images the ViT does catch up with these, and the CNN draws away from them: the constant lead is two movements that cancel.
#
# Dosovitskiy et al. (section 4.3) find their large ViTs behind comparable ResNets after pretraining on 1.3 million images, and ahead after 300 million.

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "equal_epochs")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The CNN leads at each size; with equal steps and few images a hidden layer is ahead of the ViT, too."
):
    lead = means["lead of the CNN"]
    assert lead.min() > 0.02
    assert lead["epochs", 500] > 2 * lead["epochs", 9000]
    few = means.loc["steps", :].loc[[500, 1000]]
    assert (few["hidden layer"] > few["ViT"] + 0.015).all()

# %% [markdown]
# ## What the class token looks at
#
# For each head of each block the weights of the class token on the patches are a map of 4 × 4 numbers.
# Below, the last block's, as the mean of the four heads, of three stored models that were trained alike (five epochs).
# One number for each patch is all there is, and so it is drawn as one square; a smooth cloud over the image would show the interpolation.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
models = []
for name in ("vit", "vit_1", "vit_2"):
    kept = cu.load_model(name)
    models.append(cu.ViT(**kept.config).eval())
    models[-1].load_state_dict(kept.state)
which = 8  # try 0 … 9
some = [int((test.labels == label).nonzero()[which]) for label in (0, 8, 9)]
shown = test.images[some].float() / 127.5 - 1
last = [analysis.maps_of(model, shown)[-1].mean(dim=1)[:, 0, 1:].view(-1, 4, 4) for model in models]
map_picture, map_axes = cu.subplots(
    3, 4, width=7.0, height=5.0,
    alt="A T-shirt, a bag and a boot, and beside each of them the class token's weights on four by four patches in three models. "
    "The three maps of one picture differ.",
)  # fmt: skip
for row, axes in enumerate(map_axes):
    axes[0].imshow((shown[row, 0] + 1) / 2, cmap="gray", vmin=0, vmax=1)
    for model, ax in enumerate(axes[1:]):
        seen = cu.heatmap(ax, last[model][row], xlabel=None, ylabel=None, vmax=0.2)
    for ax in axes:
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
for ax, title in zip(map_axes[0], ("picture", "seed 0", "seed 1", "seed 2"), strict=True):
    ax.set_title(title)
bar = map_picture.colorbar(seen, ax=map_axes, shrink=0.7, extend="max", label="weight")
bar.outline.set_visible(False)
map_picture

# %% [markdown]
# The models are equally good, and look at different places.
# Before we count how different, draw the maps right.
#
# ### Exercise 3 · Find the bug
#
# *bug · 6 minutes*
#
# A colleague draws maps with the function below, and they look reasonable.
# But the weights of the class token on the patches and on itself have to sum to 1.
# The cell prints the smallest and the largest sum.
# Write `fixed_class_map`.


# %%
def buggy_class_map(maps, rows, columns):
    """Maps (batch, heads, tokens, tokens) → weights (batch, rows, columns)."""
    mean = maps.mean(dim=1)  # over the heads
    of_class_token = mean[:, :, 0]
    return of_class_token[:, 1:].unflatten(1, (rows, columns))


final = analysis.maps_of(models[0], shown)[-1]
sums = buggy_class_map(final, 4, 4).sum(dim=(1, 2)) + final.mean(dim=1)[:, 0, 0]
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
# ### Rollout
#
# A token of block 1 is no longer its patch alone: in block 0 it took from all others.
# **Attention rollout** ([Abnar and Zuidema, 2020](https://arxiv.org/abs/2005.00928)) follows this back.
# In each block a token is taken to keep itself by the residual connection with one half, and to take from the others, by the mean of the heads $\bar{\mathbf A}$, with the other half.
# The blocks are multiplied, later ones on the left:
#
# $$\mathbf R_\ell = \tfrac12\big(\bar{\mathbf A}_\ell + \mathbf I\big), \qquad \text{rollout} = \mathbf R_{L-1} \cdots \mathbf R_1\,\mathbf R_0 .$$
#
# By hand, with the class token and two patches $a$ and $b$.
# In block 0 the class token gives ½ to itself and ½ to $a$, and $b$ gives ½ to $a$ and ½ to itself; in block 1 the class token gives all to $b$.
# Then row 0 of $\mathbf R_0$ is (¾, ¼, 0), its row 2 is (0, ¼, ¾), and row 0 of $\mathbf R_1$ is (½, 0, ½).
# The class token's row of the product is ½ (¾, ¼, 0) + ½ (0, ¼, ¾) = (0.375, **0.25**, 0.375): a quarter comes from $a$, at which block 1 does not look.
#
# The residual connection's share, one half, is an assumption: `keep` below.
#
# Do the three models agree?
# For 500 test pictures we correlate the maps of two models over the 16 patches: 1 would be equal maps.
# The control takes *another* picture for the second model: so much agreement comes without looking at this picture at all.


# %% tags=["nbval-ignore-output"]
def rollout(maps, keep=0.5):
    """Maps (batch, heads, tokens, tokens) by block → (batch, tokens, tokens)."""
    flow = identity = torch.eye(maps[0].shape[-1])
    for layer in maps:
        flow = (keep * identity + (1 - keep) * layer.mean(dim=1)) @ flow
    return flow


block_0 = [[0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]]
block_1 = [[0, 0, 1], [0, 1, 0], [0, 0, 1]]
example = list(torch.tensor([block_0, block_1])[:, None, None])
for one in (rollout, analysis.attention_rollout):
    print(f"by hand, {one.__name__}:", one(example)[0, 0].tolist())

keep = 0.5  # try 0 … 1
many, names = test.images[:500].float() / 127.5 - 1, test.labels[:500]
looks = [analysis.maps_of(model, many) for model in models]
last_maps = [maps[-1].mean(dim=1)[:, 0, 1:] for maps in looks]  # (500, 16) each
flows = [rollout(maps, keep)[:, 0, 1:] for maps in looks]
both = {"last block": last_maps, "rollout": flows}
agree = {name: analysis.agreements(maps) for name, maps in both.items()}
pd.DataFrame(agree).T.round(2)

# %% [markdown]
# In the last block two models agree hardly more about one picture than about two different ones: 0.03 and −0.01.
# Rolled out, they agree more, 0.32 to 0.37, of which 0.14 comes without looking at the picture.
# "Head 2 of the last block looks at the heel" would be a sentence about one training.
#
# So much for the map.
# Does it say what the model *uses*?
# If so, fewer answers should be right when the four patches of most rollout are painted black.
# The controls: four patches at random, the four brightest, the four of most rollout **in another model**, and four that are the same for all pictures: those of most rollout on average.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of 500 pictures a model names about 420 right. Four of the 16 patches are painted black: those of most rollout in this model, or those of most rollout in another model. Which hurts more?",
    ["its own", "the other's", "about the same"],
    answer="its own",
    wrong={
        "the other's": "The other model's patches are those that *it* needs. Why should they matter more here?",
        "about the same": "So it would be if rollout only found where the clothes are. Both agree by 0.35 only.",
    },
    why="Its own: 0.33 to 0.47 are left, with another model's 0.50 to 0.57. Will it be the same with gray paint?",
)

# %% tags=["nbval-ignore-output"]
count = 4  # try 1 … 8
gray = -0.43  # try -0.9 … 0.5
left = {}
for seed, model in enumerate(models):
    other, third = (flows[i] for i in range(3) if i != seed)
    painted = {
        "nothing": None,
        "at random": analysis.at_random(many),
        "brightest": analysis.brightness(many),
        "last block": last_maps[seed],
        "rollout, another model": other,
        "rollout, the third": third,
        "rollout, one map for all": flows[seed].mean(dim=0, keepdim=True),
        "rollout": flows[seed],
    }
    for ink, shade in (("black", -1.0), ("gray", gray)):
        shares = analysis.right_without(model, many, names, painted, count, shade)
        left[ink, f"seed {seed}"] = shares
damage = pd.DataFrame(left)[["black", "gray"]]
damage.round(2)

# %% [markdown]
# In black: of 0.81 to 0.84 right answers, 0.66 to 0.73 are left without four random patches, and 0.45 to 0.56 without the four brightest, for which no network is needed.
# The last block's maps, with 0.46 to 0.67, do not beat that.
# **The model's own rollout does: 0.47, 0.35 and 0.33 are left, less than with each control in each model.**
#
# But black is what the background looks like.
# In gray, the mean of all pixels, own rollout still hurts more than chance or brightness.
# **In two of three models, though, another model's rollout now hurts more, and in two the one map for all pictures.**
# So rollout finds patches that matter more than chance.
# That it explains *this* model or *this* picture depends on the paint.
#
# ### Exercise 4 · An honest map
#
# *open · 5 minutes*
#
# Choose a picture below, the size of the patches, the block and the head; rollout is there, too.
# Before the first move: will one head look at the same part of all pictures?
# You can draw or upload a picture; it is made gray and square, 28 × 28.
# (The models know light clothes on black, and nothing else.)
# Then: somebody shows you a ViT's map of an X-ray whose darkest square lies on the lung.
# Which two controls do you ask for, and which results would make you stop believing it?

# %% jupyter={"source_hidden": true}
cu.live.vit()

# %% jupyter={"source_hidden": true}
cu.quiz("vision_transformers", "rows_of_a_map")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In black own rollout hurts more than each control in each of three models, in gray only more than chance and brightness; last-block maps agree no more than by chance, rollout more.",
    given=(keep, count, gray) == (0.5, 4, -0.43),
):
    assert damage.loc["nothing"].min() > 0.79
    own, controls = damage.loc["rollout"] + 0.02, damage.drop(["nothing", "rollout"])
    assert (own["black"] < controls["black"]).all(axis=None)
    assert (own["gray"] < controls["gray"].loc[["at random", "brightest"]]).all(axis=None)
    elsewhere = controls["gray"].loc[["rollout, another model", "rollout, the third"]]
    assert (elsewhere.min() < own["gray"]).sum() == 2
    assert agree["last block"]["highest"] < 0.15
    assert agree["rollout"]["lowest"] > agree["rollout"]["another picture"] + 0.1

# %% [markdown]
# ## Take-aways
#
# - An image becomes a sequence by cutting it into patches.
#   One matrix for all patches is a convolution whose stride is its kernel, if the axes are in the right order; on gray images a wrong order goes unnoticed.
# - A ViT is a patch embedding, a class token, a table of positions, the encoder's blocks and an output layer that reads the class token.
#   Count its parameters before you train it.
# - Whole files can be tested while the training goes on: written under another name, then renamed.
# - In our runs positions are worth three hundredths, and attention nothing: without it, or with one hidden layer on the pixels, these small garments are named as well.
#   Whether position vectors show the grid depends on how they begin.
# - A small CNN is ahead of our ViT at each size; equal epochs and equal steps tell different stories, and *why* it is ahead only further networks tell.
# - Maps of equally good models differ.
#   A map is an explanation only if it beats its controls (brightness, another model's map, one map for all pictures), and with more than one kind of paint.
#
# Next: [Attention between pixels](16_attention_between_pixels.ipynb).
# Wrong patches in color, positions for larger images, CLIP, and what came after: [Vision transformers: colors, other sizes and relatives](15_vision_transformers_further.ipynb).
#
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
#   Section 3.1: the model; 4.3: how much data; figure 7: position vectors; appendix D.3: class token or mean.
# - Hendrycks, D. and Gimpel, K. (2016).
#   [Gaussian error linear units (GELUs)](https://arxiv.org/abs/1606.08415).
# - Xiao, H., Rasul, K. and Vollgraf, R. (2017).
#   [Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms](https://arxiv.org/abs/1708.07747).
