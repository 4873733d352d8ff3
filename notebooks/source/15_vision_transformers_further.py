# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Vision transformers: colors, other sizes and relatives
#
# Optional, about forty-five minutes.
# What a wrong order of axes does to color images; a model that goes on with images of another size; the loss of CLIP in ten lines; what came before and after the ViT of [Vision transformers](15_vision_transformers.ipynb); and trainings on all of Fashion-MNIST and on CIFAR-10.

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.images import ImageLoader
from course_utils.lessons.vision_transformers import analysis, training
from course_utils.models.vision import PatchEmbedding, cut_patches, join_patches

cu.seed_everything(0)

# %% [markdown]
# ## The right shape and the wrong patches
#
# Leave the `permute` out, and a reshape still gives a tensor of the right shape.
# What does such a "patch" hold?
# We put the images together again, as if the patches were right.
# The boot of Fashion-MNIST is painted for this: red as it is, green darker, blue with a light from the right.

# %%
images, validation, test = training.parts()
boot = images.images[(images.labels == 9).nonzero()[3].item()].float() / 127.5 - 1
ramp = torch.linspace(-1, 1, 28).expand(28, 28)
red, green, blue = boot[0], 0.6 * boot[0] - 0.4, torch.maximum(boot[0], ramp)
colored = torch.stack([red, green, blue])[None]


def without_permute(images, p):
    """The axes as `unfold` leaves them: channels before rows and columns."""
    windows = images.unfold(2, p, p).unfold(3, p, p)
    return windows.reshape(len(images), -1, images.shape[1] * p * p)


def by_reshape(images, p):
    """Not even unfolded: numbers in the order in which they lie in memory."""
    return images.reshape(len(images), -1, images.shape[1] * p * p)


ways = {"right": cut_patches, "no permute": without_permute}
ways["reshape alone"] = by_reshape
for name, way in ways.items():
    same = torch.equal(way(boot[None], 7), cut_patches(boot[None], 7))
    print(f"{name:14} {tuple(way(colored, 7).shape)}, right on a gray image: {same}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rebuilt = [join_patches(way(colored, 7), 3, 28, 28) for way in ways.values()]
cu.show_images(
    torch.cat([colored, *rebuilt]),
    titles=["image", *ways],
    width=6.8,
    alt="A pink boot on a blue ground; rebuilt from right patches it is the same. Without the permute it falls into squares of "
    "wrong colors in wrong places. From a reshape alone only stripes are left.",
)

# %% [markdown]
# All three have the shape (1, 16, 147).
# Without the permute a "patch" of 147 numbers holds three patches that follow one another, nearly always of *one* color.
# From a reshape alone it holds five lines and a quarter, nearly always of one color.
# No error is raised, and a network still learns something from such tokens, since each still belongs to a place.
#
# On a gray image the first mistake is none: with one channel the order is right.
# So code that was tested on MNIST fails silently on color images.
# The code printed in Avinash Kak's lecture ([2025](https://engineering.purdue.edu/DeepLearn/)) for its ViT on CIFAR-10 unfolds twice and then reshapes, without a permute; its confusion matrix has a mean of 56.2 % on the diagonal.
# How much of that is due to the patches, its text does not say.
#
# ### Exercise 1 · Put the image together again
#
# *build · 8 minutes*
#
# Write the inverse of cutting, for square patches.
# On any new data set, rebuild a few images before you train: it is the test that catches wrong axes.


# %% tags=["exercise", "build"]
def rebuild(patches, channels, height, width):
    """(batch, patches, channels · p²) → (batch, channels, height, width)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.rebuild(rebuild)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def rebuild_solution(patches, channels, height, width):
    """Split the axes, put rows of patches beside rows within a patch, and join."""
    p = math.isqrt(patches.shape[-1] // channels)
    grid = patches.reshape(len(patches), height // p, width // p, channels, p, p)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), channels, height, width)


cu.checks.rebuild(rebuild_solution)

# %% [markdown]
# ### An embedding beside the network
#
# In the same lecture embedding and positions are a module *beside* the network: patches go through the one, then through the other.
# That works as long as both are given to the optimizer, and both are saved.
# What if only the network is?


# %%
class Network(nn.Module):
    """Class token, one block and output layer; the patches come embedded."""

    def __init__(self, d):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, d))
        self.layer = cu.EncoderLayer(d, 4, 2 * d, dropout=0.0)
        self.output = nn.Linear(d, 10)

    def forward(self, tokens):
        first = self.class_token.expand(len(tokens), -1, -1)
        return self.output(self.layer(torch.cat([first, tokens], dim=1))[:, 0])


def share_moved(module, before):
    """Share of a module's numbers that are not what they were."""
    pairs = zip(module.parameters(), before, strict=True)
    return torch.cat([(new != old).flatten() for new, old in pairs]).float().mean()


# %% tags=["nbval-ignore-output"]
beside = {}
for given in ("network", "network and embedding"):
    torch.manual_seed(0)
    embedding, network = PatchEmbedding(7, 1, 64), Network(64)
    modules = {"network": network, "embedding": embedding}
    old = {n: [p.detach().clone() for p in m.parameters()] for n, m in modules.items()}
    learning = [p for n in given.split(" and ") for p in modules[n].parameters()]
    adam = torch.optim.AdamW(learning, 1e-3)
    losses = []
    for batch in ImageLoader(images[:5120]):
        loss = F.cross_entropy(network(embedding(batch.images)), batch.labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    beside[given] = {name: share_moved(modules[name], old[name]) for name in modules}
    said = ", ".join(f"{name} {share:.0%}" for name, share in beside[given].items())
    print(f"learning: {given}; loss {losses[0]:.1f} → {losses[-1]:.1f}; moved: {said}")

# %% [markdown]
# In both cases the loss falls.
# But with the network alone in the optimizer the embedding stays as it was drawn, 0 % of its numbers have moved; and `network.state_dict()` does not hold it: a checkpoint of the network alone would be read with another embedding.
# A test that finds it: after one step each parameter that should learn has moved.
# A module *inside* the network, as in our `ViT`, is in `parameters()` and in `state_dict()` by itself.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("An embedding that the optimizer does not have stays as it was drawn."):
    assert beside["network"]["embedding"] == 0 and beside["network"]["network"] > 0.9
    assert min(beside["network and embedding"].values()) > 0.9

# %% [markdown]
# ## Images of another size
#
# A model that was trained on 28 × 28 is given images of 42 × 42, that is 36 patches instead of 16.
# All weights fit but the table of positions.
# Dosovitskiy et al. (section 3.2) stretch it: the class token's row stays, the others are taken for a small image with $d$ channels and are interpolated.
#
# ### Exercise 2 · A finer grid
#
# *build · 8 minutes*
#
# Write it with `F.interpolate`, mode "bilinear", for square grids.


# %% tags=["exercise", "build"]
def resized_positions(table, grid):
    """(1 + g², embed_dim) → (1 + grid², embed_dim)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.resized_positions(resized_positions)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def resized_positions_solution(table, grid):
    """The places become the last two axes, and the features channels."""
    old = math.isqrt(len(table) - 1)
    square = table[1:].T.unflatten(1, (old, old))[None]
    finer = F.interpolate(square, size=(grid, grid), mode="bilinear")
    return torch.cat([table[:1], finer[0].flatten(1).T])


cu.checks.resized_positions(resized_positions_solution)

# %% tags=["nbval-ignore-output"]
stored = cu.load_model("vit")
vit = cu.ViT(**stored.config).eval()
vit.load_state_dict(stored.state)
learned = vit.positions.table.detach()
side = 42  # try 28 | 35 | 42 | 56
grid = side // 7
places = 1 + grid * grid
torch.manual_seed(0)
drawn = 0.3 * torch.randn(places, 64)
tables = {
    "stretched": analysis.stretched(learned, grid),
    "old rows, new ones drawn": torch.cat([learned, drawn])[:places],
    "no positions": torch.zeros(places, 64),
}
large, some = cu.ViT(**stored.config, image_size=side), test[:1000]
print(f"28 × 28: {training.share_right(vit, some):.2f}")
for name, table in tables.items():
    large.load_state_dict(stored.state | {"positions.table": table})
    print(f"{side} × {side}, {name}: {analysis.share_right(large, some, side):.2f}")

# %% [markdown]
# Of 0.84 right answers, 0.54 are left at 42 × 42 with the stretched table; 0.32 with none, and 0.20 if the old rows are kept and the missing ones drawn, so that all rows but the first few say a wrong place.
# Stretching is better than that, and far from good.
# Two things are new for the model: a patch now shows a smaller piece of the clothes, and the vectors between the old places were never trained.
# Dosovitskiy et al. stretch the table and then *train on*.

# %% [markdown]
# ## CLIP in ten lines
#
# A ViT with an output layer knows ten names.
# **CLIP** ([Radford et al., 2021](https://arxiv.org/abs/2103.00020)) learns from pairs of an image and a sentence instead.
# One network makes a vector of each image, a ViT for example, another of each sentence.
# In a batch of $n$ pairs all $n^2$ scores are computed, and each image has to find its sentence, each sentence its image: two softmaxes over the same scores, along rows and along columns.
# A table of scores between queries and keys, as in attention; only that the softmax is a loss, and nothing is mixed.


# %%
def clip_loss(images, sentences, log_temperature):
    """(n, d) vectors of images and of their sentences → the contrastive loss."""
    images, sentences = F.normalize(images, dim=-1), F.normalize(sentences, dim=-1)
    scores = images @ sentences.T * log_temperature.exp()  # (n, n) cosines, scaled
    pairs = torch.arange(len(scores))  # the right ones stand on the diagonal
    return (F.cross_entropy(scores, pairs) + F.cross_entropy(scores.T, pairs)) / 2


vectors = torch.eye(4)
for name, order in (("each its own", [0, 1, 2, 3]), ("all the same", [0, 0, 0, 0])):
    for scale in (1.0, 100.0):
        value = clip_loss(vectors, vectors[order], torch.tensor(scale).log())
        print(f"{name}, scale {scale:g}: {value:.2f}")

# %% [markdown]
# With four orthogonal vectors, each found again in its sentence, the loss is $\ln(1 + 3e^{-s})$ with scale $s$: 0.74 for 1, and 0 for 100.
# A cosine is at most 1, so without a scale the loss could not come near 0; CLIP learns it, as a logarithm, and keeps it below 100.
# If all sentences have one vector, the scale does not help: 1.44 and 38.19.
# A classifier comes for free: write "a photo of a boot", "a photo of a bag" …, and take the sentence with the highest score (**zero-shot**).
#
# Here in small: our ViT gives vectors of images, and a sentence is the name of a class.
# In a batch of one image of each class, its name has to be found.


# %% tags=["nbval-ignore-output"]
torch.manual_seed(0)
look, read = nn.Linear(64, 16), nn.EmbeddingBag(128, 16)  # a ViT's vector; letters
log_temperature = nn.Parameter(torch.tensor(10.0).log())
weights = [*look.parameters(), *read.parameters(), log_temperature]
optimizer = torch.optim.AdamW(weights, 1e-2)
letters, starts = analysis.letters_of(test.classes)
known, unread = (analysis.class_tokens(vit, part) for part in (images[:2000], some))
for _ in range(300):
    rows = analysis.one_of_each(images.labels[:2000])
    found = clip_loss(look(known[rows]), read(letters, starts), log_temperature)
    optimizer.zero_grad()
    found.backward()
    optimizer.step()
with torch.no_grad():
    one, two = (F.normalize(x, dim=-1) for x in (look(unread), read(letters, starts)))
right = ((one @ two.T).argmax(dim=-1) == some.labels).float().mean()
print(f"last loss {found:.2f}, ln 10 = {math.log(10):.2f}; named right {right:.2f}")

# %% [markdown]
# The loss falls far below that of a guess, and of 1,000 test images about four of five are named right, nearly as many as by the ViT's own output layer (0.84): its class token had the classes in it.
# Nothing new was learned here, and no new name works; for that CLIP had 400 million pairs.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Orthogonal pairs have the loss ln(1 + 3/e) at scale 1 and nearly 0 at 100."):
    at_one = clip_loss(vectors, vectors, torch.tensor(0.0))
    assert abs(at_one - math.log(1 + 3 / math.e)) < 1e-5
    assert clip_loss(vectors, vectors, torch.tensor(100.0).log()) < 1e-5

# %% [markdown]
# ## Before: attention in place of convolutions
#
# The ViT was not the first network of its kind.
# [Ramachandran et al. (2019)](https://arxiv.org/abs/1906.05909) put attention in place of the convolutions of a ResNet.
# Each pixel attends to a window around it, with relative positions, and the cost does not explode since the window is small.
#
# [Cordonnier et al. (2020)](https://arxiv.org/abs/1911.03584) proved that a layer of attention with $k^2$ heads and suitable relative positions can compute any convolution with a kernel of $k \times k$: each head looks at one pixel of the kernel, wherever the query stands.
# Their networks in fact learn heads of that kind in the first layers.
# For their experiments they cut images into patches of 2 × 2: a ViT in all but the size.
# What a head has to look like for this, the printed lines show: its score depends only on where the key stands, seen from the query.

# %%
i = torch.arange(16)
place = torch.stack([i // 4, i % 4], dim=-1).float()  # row and column of each pixel
sharpness = 10.0  # try 0.1 … 30
to_the_right = place[:, None] + torch.tensor([0.0, 1.0])
scores = -sharpness * (place[None] - to_the_right).square().sum(dim=-1)  # query, key
moved = scores.softmax(dim=-1) @ i.float()
print(moved.view(4, 4)[:2].round(decimals=1))

# %% [markdown]
# The first two lines of a picture with the values 0 to 15: the head moves each pixel's right neighbor to it.
# In the last column there is no neighbor, and the pixel itself comes nearest.
# Nine such heads and $W^O$ make a convolution of 3 × 3, away from the border.
#
# ## After: what changed since
#
# **Fewer images.**
# Dosovitskiy et al. needed 300 million images until their large ViTs beat comparable ResNets.
# **DeiT** ([Touvron et al., 2021](https://arxiv.org/abs/2012.12877)) reached 83 % on ImageNet with its 1.3 million images alone, by strong augmentation and more regularization, and 85 % with a convolutional teacher whose answers a second token, the *distillation token*, has to give.
# So "transformers need more images" is also a statement about recipes.
#
# **No labels.**
# **MAE** ([He et al., 2022](https://arxiv.org/abs/2111.06377)) is BERT's idea with patches: 75 % of them are hidden.
# The encoder reads the visible quarter only, which makes it cheap, and a small decoder has to paint the pixels of the hidden ones.
# Why so many?
# With few hidden, the authors argue, what is missing can be painted from its neighbors without understanding anything.
#
# **Registers.**
# In large ViTs some patches of an empty background get tokens of very large norm, and much attention: the model uses their place to keep something about the whole image.
# [Darcet et al. (2024)](https://arxiv.org/abs/2309.16588) add a few tokens that belong to no patch, so-called *registers*; then the maps become clean.
# A map with a bright spot in the sky may say no more than that a place was free.

# %% [markdown]
# ## All of Fashion-MNIST
#
# The chapter learns from 9,000 images in seconds.
# Here is a training on 55,000, once and beforehand: 5,000 others are for validation, by which the recipe was chosen; the 10,000 of the test chose nothing.
# The network has the chapter's patches of 7 × 7, 96 features, 3 heads and 3 blocks.
# Images are mirrored at random while it learns, labels are [smoothed](12_training_transformers_further.ipynb#Smoothed-labels), and the rate rises to 0.002 and falls to 0.
# The recipe was chosen among three, each tried once.
# With patches of 4 × 4, and images moved by up to two pixels, too, 0.877 of the validation images were right after eight passes, 15 CPU minutes; with mirrors alone 0.889 after seven, 12 minutes; and with patches of 7 × 7, 16 tokens in place of 49, 0.901 after twelve, in 8.
# Here the third has twenty passes; its minutes are those of a busy machine.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
(clothes,) = cu.stored_runs("vision_transformers", "whole_fashion")
print(
    f"{clothes.result['parameters']:,.0f} parameters, {clothes.config['epochs']} passes in "
    f"{clothes.result['cpu_seconds'] / 60:.1f} CPU minutes of one core; "
    f"right: validation {clothes.result['validation']:.3f}, test {clothes.result['test']:.3f}"
)
kinds = clothes.examples[0]["classes"]
answers = torch.tensor(clothes.examples[0]["confusion"])
clothes_picture, (curve_ax, confusion_ax) = cu.subplots(
    1, 2, width=8.8, height=4.2, width_ratios=[1, 1.5],
    alt="Left: validation accuracy after each of twenty passes rises from 0.82 to 0.90. Right: answers for each true class of the "
    "test, as shares; the diagonal is 0.84 or more except for shirts, of which 0.72 are right.",
)  # fmt: skip
curve_ax.plot(*zip(*clothes.curves["validation"], strict=True), "o-", markersize=4)
curve_ax.set(xlabel="Pass over the training images", ylabel="Validation, share right")
cu.heatmap(
    confusion_ax, answers / answers.sum(dim=1, keepdim=True), queries=kinds, keys=kinds,
    xlabel="Answer", ylabel="True class",
)  # fmt: skip
confusion_ax.tick_params(axis="x", rotation=60)
clothes_picture

# %% [markdown]
# Of the test images 0.898 are right; after the training of twelve passes it had been 0.893.
# On validation, 0.902 and 0.901, eight more passes brought next to nothing.
# Most errors are among clothes for the upper body.
# Of the shirts 0.72 are right; 108 of 1,000 are taken for T-shirts, 71 for coats and 63 for pullovers.

# %% [markdown]
# ### A larger run
#
# *Dive into Deep Learning* ([Zhang et al., 2023](https://d2l.ai), section 11.8) enlarges Fashion-MNIST to 96 × 96, cuts it into 36 patches of 16 × 16, and takes 512 features, 2,048 inside the networks, 8 heads and 2 blocks.
# This size, too, was trained once beforehand: four passes, each over twenty minutes of a busy core; rate 0.0005, dropout 0.1, all else as above.
# No other rate was tried.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
(enlarged,) = cu.stored_runs("vision_transformers", "enlarged_fashion")
pd.DataFrame(
    {
        f"{pixels} × {pixels}": {
            "parameters": f"{run.result['parameters']:,.0f}",
            "passes": f"{run.config['epochs']}",
            "CPU minutes": f"{run.result['cpu_seconds'] / 60:.0f}",
            "validation after 4": f"{run.curves['validation'][3][1]:.3f}",
            "validation": f"{run.result['validation']:.3f}",
            "test": f"{run.result['test']:.3f}",
        }
        for pixels, run in ((28, clothes), (96, enlarged))
    }
).T

# %% [markdown]
# After four passes the large network is ahead, 0.881 to 0.847.
# But its rate has fallen to 0 by then, and that of the small one stands near its peak: the two numbers do not say which of them learns more from an image.
# By minutes the small one wins: it comes to its 0.898 of the test in less than a fifth of them.
# Enlarging an image adds no information.

# %% [markdown]
# ### At full size: Fashion-MNIST
#
# `make gpu CHAPTER=15` trains the large network where there is a GPU, in 20 passes, which nobody has tried.
# The cell shows the run that is stored, or says that there is none.

# %% tags=["gpu"] jupyter={"source_hidden": true}
cu.stored_run("vision_transformers", "clothes")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Once, on all of Fashion-MNIST: over 0.88 are right; shirts are hardest; "
    "the large network was ahead after four passes, and at its end behind, in five times the minutes."
):
    assert clothes.result["test"] > 0.88
    assert enlarged.curves["validation"][3] > clothes.curves["validation"][3]
    assert enlarged.result["test"] < clothes.result["test"]
    assert enlarged.result["cpu_seconds"] > 5 * clothes.result["cpu_seconds"]
    assert answers.diagonal().argmin() == kinds.index("Shirt")

# %% [markdown]
# ## CIFAR-10, with right and with wrong patches
#
# Section 1 showed patches that are cut without the permute.
# What do they cost?
# CIFAR-10 has 60,000 color photographs of 32 × 32 pixels in ten classes.
# Two networks with 96 features, 3 heads and 3 blocks were trained on them beforehand, once each: six passes over 45,000 images, mirrored at random, rate and labels as in section 6; 5,000 others are for validation.
# They differ in how patches of 4 × 4 are cut, and in nothing else: weights at the start and the order of the images are the same.
#
# The photographs were read from JPEGs, that is, **re-compressed** with losses.
# So the numbers here are not quite comparable with those of the original pixels.
# `cu.load_image_folder` reads any folder of images by class, or an archive of it: of one's own photographs, too.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "With right patches about 60 of 100 re-compressed test photographs are named right. And without the permute?",
    ["about 10", "about 40", "about 57", "about 60, too"],
    answer="about 57",
    wrong={
        "about 10": "So it would be if nothing about the photograph were left. Are any numbers lost?",
        "about 40": "Each wrong patch still holds three small squares of the photograph, always the same ones. What can a network make of that?",
        "about 60, too": "The same numbers come in. Which of them lie together in one token, and which have to be brought together by attention?",
    },
    why="56.7. No number is lost, and each token holds the same places in every photograph; but no token holds the three colors of one place.",
)  # fmt: skip

# %% tags=["hide-input"] jupyter={"source_hidden": true}
photos = cu.stored_runs("vision_transformers", "recompressed_cifar10")
cuts = {"right": "right patches", "unpermuted": "no permute"}
pd.DataFrame(
    {
        f"re-compressed CIFAR-10, {cuts[run.config['patches']]}": {
            "parameters": f"{run.result['parameters']:,.0f}",
            "passes": f"{run.config['epochs']}",
            "validation": f"{run.result['validation']:.3f}",
            "test": f"{run.result['test']:.3f}",
            "CPU minutes": f"{run.result['cpu_seconds'] / 60:.0f}",
        }
        for run in photos
    }
).T

# %% tags=["hide-input"] jupyter={"source_hidden": true}
curves_picture, (loss_ax, share_ax) = cu.subplots(
    1, 2, width=8.8, height=3.0,
    alt="Training loss and validation accuracy after each of six passes over re-compressed CIFAR-10. With right patches the loss is "
    "lower and the accuracy higher after every pass; at the end 0.61 against 0.56.",
)  # fmt: skip
for run, style in zip(photos, ("o-", "s--"), strict=True):
    for ax, name in ((loss_ax, "loss"), (share_ax, "validation")):
        label = cuts[run.config["patches"]]
        ax.plot(*zip(*run.curves[name], strict=True), style, markersize=4, label=label)
loss_ax.set(xlabel="Pass over the training images", ylabel="Training loss, smoothed labels")
share_ax.set(xlabel="Pass over the training images", ylabel="Validation, share right")
share_ax.legend()
curves_picture

# %% [markdown]
# Once: with right patches the loss is lower and the accuracy higher after every pass.
# Of the 10,000 re-compressed test photographs 0.599 are right, without the permute 0.567.
# That is 3 of 100 fewer (of the validation photographs 5).
# Nobody would have seen the mistake in its curve alone: the network learns, and its 56.7 % of the re-compressed photographs are above the lecture's 56.2 %.
# One seed each does not say how much of the gap is chance, and neither number says what the patches cost in the lecture: its network is another, and was trained for 40 epochs on the original pixels.
# Both accuracies still rise in the last pass.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
matrices = [torch.tensor(run.examples[0]["confusion"]) / 1000 for run in photos]
animals = photos[0].examples[0]["classes"]
photo_picture, photo_ax = cu.subplots(
    width=6.4, height=4.6,
    alt="Confusion matrix of re-compressed CIFAR-10 with right patches: ten classes, 1,000 test photographs each. The diagonal is between "
    "0.39, for cats, and 0.74, for frogs. Cats and dogs, automobiles and trucks, airplanes and ships are confused most.",
)  # fmt: skip
cu.heatmap(
    photo_ax, matrices[0], queries=animals, keys=animals, xlabel="Answer", ylabel="True class", annotate=True,
)  # fmt: skip
photo_picture

# %% [markdown]
# With right patches frogs of re-compressed CIFAR-10 are named best, 0.74, and cats worst, 0.39: of the re-compressed cats 0.25 are taken for dogs, and of the dogs 0.18 for cats.
# Of the trucks 0.19 are taken for automobiles, of the automobiles 0.13 for trucks, of the airplanes 0.12 for ships.
# The same pairs are confused in the lecture's matrix.
# Without the permute (not drawn) eight of the ten classes are named worse.

# %% [markdown]
# ### At full size: CIFAR-10
#
# `make gpu CHAPTER=15` also trains a network of 256 features and 6 blocks on the original pixels, for 40 epochs as in the lecture.
# It fetches the photographs, and says where to put the file if there is no network.

# %% tags=["gpu"] jupyter={"source_hidden": true}
cu.stored_run("vision_transformers", "photographs")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Once, on re-compressed CIFAR-10: right patches are better after every pass, and above 56.2 % on the test photographs."
):
    assert photos[0].config["patches"] == "right" and photos[0].result["test"] > 0.562
    assert photos[0].result["test"] > photos[1].result["test"] + 0.02
    both = [[share for _, share in run.curves["validation"]] for run in photos]
    assert all(right > wrong for right, wrong in zip(*both, strict=True))
    assert animals[matrices[0].diagonal().argmin()] == "cat"

# %% [markdown]
# Back to the chapter: [Vision transformers](15_vision_transformers.ipynb).
# Next: [Attention between pixels](16_attention_between_pixels.ipynb).

# %% [markdown]
# ## References
#
# - Cordonnier, J.-B., Loukas, A. and Jaggi, M. (2020).
#   [On the relationship between self-attention and convolutional layers](https://arxiv.org/abs/1911.03584).
#   ICLR.
# - Darcet, T., Oquab, M., Mairal, J. and Bojanowski, P. (2024).
#   [Vision transformers need registers](https://arxiv.org/abs/2309.16588).
#   ICLR.
# - Dosovitskiy, A. et al. (2021).
#   [An image is worth 16x16 words: transformers for image recognition at scale](https://arxiv.org/abs/2010.11929).
#   ICLR.
#   Section 3.2: images of other sizes.
# - He, K., Chen, X., Xie, S., Li, Y., Dollár, P. and Girshick, R. (2022).
#   [Masked autoencoders are scalable vision learners](https://arxiv.org/abs/2111.06377).
#   CVPR.
# - Kak, A. (2025).
#   [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/).
#   Lecture slides, Purdue University.
# - Radford, A. et al. (2021).
#   [Learning transferable visual models from natural language supervision](https://arxiv.org/abs/2103.00020).
#   ICML.
#   Figure 3: the loss.
# - Ramachandran, P., Parmar, N., Vaswani, A., Bello, I., Levskaya, A. and Shlens, J. (2019).
#   [Stand-alone self-attention in vision models](https://arxiv.org/abs/1906.05909).
#   NeurIPS.
# - Touvron, H., Cord, M., Douze, M., Massa, F., Sablayrolles, A. and Jégou, H. (2021).
#   [Training data-efficient image transformers & distillation through attention](https://arxiv.org/abs/2012.12877).
#   ICML.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.8.
