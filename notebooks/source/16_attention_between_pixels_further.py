# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention between pixels: sixteen bits, far pixels and cost
#
# Optional, about forty minutes.
# It belongs to [Attention between pixels](16_attention_between_pixels.ipynb), and each section stands on its own, so take what interests you.

# %% jupyter={"source_hidden": true}
import copy
import time

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import course_utils as cu
from course_utils.lessons.attention_between_pixels import far_colors

cu.seed_everything(0)

# %% [markdown]
# ## Where a pixel looks
#
# All three filters of the chapter replace a pixel by a weighted average of all pixels.
# In the explorer, put the marked pixel on an edge of the shoe, and then into a uniform area, and find the filter whose map of weights looks the same everywhere.

# %% jupyter={"source_hidden": true}
cu.explore.likeness()

# %% [markdown]
# Only the map of the blur looks the same everywhere, because its keys are positions and know nothing of the picture.
#
# ## Pixels in memory
#
# The chapter said that a convolution of width 1 over the line of pixels is a linear layer.
# The cell makes sure of this, as functions of the pixels, the weight and the bias, in outputs and gradients.

# %%
x = torch.randn(2, 12, 20)  # (batch, channels, pixels)
W, b = torch.randn(36, 12), torch.randn(36)


def by_convolution(x, W, b):
    return F.conv1d(x, W[..., None], b)  # a weight (outputs, inputs, width 1)


def by_linear(x, W, b):
    return F.linear(x.mT, W, b).mT


cu.equal(by_convolution, by_linear, x, W, b)

# %% [markdown]
# With width 3 it would be a different layer, because in the line the last pixel of a row is followed by the first pixel of the next row, which is nowhere near it in the picture.
#
# ### Exercise 1 · Pixels on paper
#
# *predict · 9 minutes*
#
# A picture has 3 channels, 4 rows and 5 columns. (a) Which number, from 0, does the token of the pixel in row 2, column 3 have? (b) How many different pixels do the numbers in token 0 of `x.view(1, 20, 3)` come from? (c) You change all channels of one pixel.
# How many rows of this view change? (d) How many parameters does a convolution of width 1 from 12 to 36 channels have, with its bias? (e) A convolution of width 3 runs along the line of pixels.
# From how many pixels that do *not* touch it in the picture does it take something for the pixel in row 1, column 4?


# %% tags=["exercise", "predict"]
def predicted_pixels():
    """Five whole numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_pixels(predicted_pixels)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_pixels_solution():
    """2 · 5 + 3; three neighbors of channel 0; one row for each channel; 36 · 12 + 36; (2, 0)."""
    return [13, 3, 3, 468, 1]


cu.checks.predicted_pixels(predicted_pixels_solution)

# %% [markdown]
# ## Two fourth roots
#
# If you read the code of Dhariwal and Nichol you will not find a division by $\sqrt d$, where $d$ is the size of a head.
# They multiply queries *and* keys by $d^{-1/4}$ instead:
#
# $$\big(d^{-1/4}\,\mathbf q\big) \cdot \big(d^{-1/4}\,\mathbf k\big) = d^{-1/2}\; \mathbf q \cdot \mathbf k .$$
#
# Algebra says that this is the same, but the machine computes with float16, whose largest number is 65,504.
# Take $d = 64$ and all entries 40.
# Then $\mathbf q \cdot \mathbf k = 64 \cdot 1600 = 102{,}400$, which is too large even before we divide it by 8.
# With $64^{-1/4} = 0.354$ on both sides each entry is 14.1, and the sum is the 12,800 that we wanted.
# Here are one query and two keys, the second key a little smaller.

# %%
entry = 40.0  # try 10 … 60
query, two_keys = entry * torch.ones(1, 64), entry * torch.ones(2, 64)
two_keys[1] *= 0.9625
fourth = 64**-0.25
scored = {
    "float32, divided by √d": query @ two_keys.T / 8,
    "float16, divided by √d": query.half() @ two_keys.half().T / 8,
    "float16, two fourth roots": query.half() * fourth @ (two_keys.half() * fourth).T,
    "bfloat16, divided by √d": query.bfloat16() @ two_keys.bfloat16().T / 8,
}
rows = {n: [*s[0].tolist(), *s.softmax(-1)[0].tolist()] for n, s in scored.items()}
columns = ["score, key 0", "key 1", "weight, key 0", "weight, key 1"]
pd.DataFrame(rows, index=columns).T.round(2)

# %% [markdown]
# If we divide afterward, both scores are infinite in float16, and ∞ − ∞ makes the weights *nan*.
# If we scale first, they are finite and the weights are right.
# The format bfloat16 reaches as far as float32 and pays with digits, so it finds 12,288 instead of 12,320.
# That is why you see $d^{-1/4}$ in code that writes the product out for float16.
# PyTorch's own operator takes queries and keys unscaled, and takes care of the scale itself.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In float16 dividing afterward gives nan, and two fourth roots give the weights of float32.",
    given=entry == 40,
):
    assert scored["float16, divided by √d"].softmax(-1).isnan().all()
    right = scored["float32, divided by √d"].softmax(-1)
    assert torch.allclose(scored["float16, two fourth roots"].float().softmax(-1), right, atol=0.01)
    assert scored["bfloat16, divided by √d"][0, 1] == 12_288

# %% [markdown]
# ## What one changed pixel changes
#
# Attention carries something from every pixel to every other pixel.
# To see which other parts do, we change one pixel of a $15\times15$ picture, and count how many pixels of the output change.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We use a group norm and no attention. How many of the 225 pixels change?",
    ["1", "9", "225"],
    answer="225",
    wrong={
        "1": "That is layer norm over the channels of one pixel. What is the mean of a group taken over?",
        "9": "That is a 3 × 3 convolution. Which pixels share the mean and the variance of a group?",
    },
    why="Mean and variance of a group are taken over all pixels: two numbers through which each pixel tells all others something.",
)

# %%
radius = 3  # try 1 | 2 | 3 | 4
channels = 16


def convolution():
    return nn.Conv2d(channels, channels, 3, padding=1)


block = cu.PixelAttention(channels)
nn.init.normal_(block.out_proj.weight, std=0.3)  # a new block changes nothing
layers = {
    "layer norm of each pixel": far_colors.PixelNorm(channels),
    "3 × 3 convolution": convolution(),
    f"{radius} convolutions": nn.Sequential(*[convolution() for _ in range(radius)]),
    "group norm, 8 groups": nn.GroupNorm(8, channels),
    "the attention block": block,
}
before = torch.randn(1, channels, 15, 15, dtype=torch.double)
after = before.clone()
after[:, 0, 7, 7] += 1  # one channel of the pixel in the middle
changes = {}
for name, layer in layers.items():
    exact = copy.deepcopy(layer).double()
    moved = (exact(after) - exact(before)).detach().abs().amax(dim=1)[0]
    changes[name] = [(moved > 0).sum().item(), moved[7, 7].item(), moved[0, 0].item()]
changes = pd.DataFrame(changes, ["pixels that change", "change there", "in a corner"]).T
changes.round(4)

# %% [markdown]
# A convolution of width 3 reaches one pixel and $m$ of them reach $m$ pixels, which makes a square of $2m+1$ pixels a side.
# This is the **[receptive field](C_glossary.ipynb#receptive-field)** of an output pixel, and it ends sharply.
# The group norm reaches all 225 pixels, each by a little, and so does the block.
# So a network with group norms is never local, with attention or without, and a comparison of attention with convolutions has to take care of the norm as well.
#
# We add no positions anywhere, so a block whose input pixels are permuted gives the same output, permuted, just as in [Self-attention](07_self_attention.ipynb).
# Image networks know positions from the convolutions around the block, because these see the zeros beyond the border ([Islam et al., 2020](https://arxiv.org/abs/2001.08248)).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "One changed pixel changes 1 pixel after layer norm, (2m+1)² after m convolutions, and all of them after group norm and after the block."
):
    counts = changes["pixels that change"]
    assert counts.iloc[0] == 1 and counts.iloc[1] == 9
    assert counts.iloc[2] == (2 * radius + 1) ** 2
    assert counts.iloc[3] == 225 and counts.iloc[4] == 225

# %% [markdown]
# ### Exercise 2 · A fair comparison
#
# *open · 9 minutes*
#
# "We put an attention block on the $16\times16$ level of our network for satellite pictures.
# The error falls from 0.112 to 0.105.
# So roads need long-range attention."
# Which three runs or numbers do you ask for, and which result of each would speak against the conclusion?
#
# *To compare:* (1) Three seeds on both sides, because the runs without the block may be spread as widely as the difference.
# (2) The same norm and as many parameters and steps without attention, because these may reach 0.105 as well.
# (3) The receptive field at this level, and the same network with more convolutions or with wider gaps between their inputs, because these may see whole roads already.
#
# ## What it costs
#
# With $n = HW$ pixels and $C$ channels the two convolutions of the block take $4nC^2$ multiplications, and the scores and the mixing take $2n^2C$.
# For a square picture of side $s$ we have $n = s^2$, so the first grows as $s^2$ and the second as $s^4$, and they are equal where $n = 2C$.
# If the weights are written down, they take $n^2$ numbers for each head and picture.
# We compare these formulas with what PyTorch counts.

# %%
wide = 64  # try 16 | 32 | 64
counts_of = {}
for side in (8, 16, 32, 64):
    n = side**2
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        cu.PixelAttention(wide)(torch.randn(1, wide, side, side))
    counted = counter.get_total_flops() // 2  # a product and a sum count as two
    counts_of[side] = [n, 4 * n * wide**2, 2 * n**2 * wide, counted, n**2 * 4 / 2**20]
names = ["pixels n", "convolutions", "scores and mixing"]
names += ["counted by PyTorch", "weights, MiB"]
costs = pd.DataFrame(counts_of, index=names).T.rename_axis("side")
costs.astype(dict.fromkeys(names[:-1], int)).round(2)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
pairs = {
    "the block": cu.PixelAttention(wide),
    "3 × 3 convolution": nn.Conv2d(wide, wide, 3, padding=1),
}
sides = [8, 16, 32, 64]
seconds = {name: [] for name in pairs}  # (side, seconds)
with torch.no_grad():
    for _round in range(4):  # one after the other, again and again
        for side in sides:
            large_picture = torch.randn(1, wide, side, side)
            for name, timed in pairs.items():
                began = time.process_time()
                timed(large_picture)
                seconds[name].append((side, time.process_time() - began))
fig, (left, right) = cu.subplots(
    1, 2, width=8.6, height=3.0,
    alt="Left, multiplications over the side of the picture, both axes logarithmic: convolutions rise with slope 2, scores and "
    "mixing with slope 4; they cross near a side of 11. Right, measured seconds of the block and of a 3 by 3 convolution.",
)  # fmt: skip
for name, mark in (("convolutions", "s--"), ("scores and mixing", "o-")):
    left.plot(sides, costs[name], mark, label=name)
for (name, times), mark in zip(seconds.items(), "os", strict=True):
    right.plot(*zip(*times[len(sides) :], strict=True), mark, alpha=0.6, label=name)
left.set(xlabel="Side s in pixels", ylabel=f"Multiplications, C = {wide}")
right.set(xlabel="Side s in pixels", ylabel=f"CPU seconds, C = {wide}")
for ax in (left, right):
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sides, sides)
    ax.legend()
fig

# %% [markdown]
# PyTorch counts exactly the sum of both formulas.
# From side 32 to side 64 the convolutions become 4 times as expensive, and scores, mixing and weights 16 times.
# On the right you see what this means in seconds.
#
# So image networks put the block where the feature maps are small.
# The first denoising models have it at $16\times16$ only ([Ho et al., 2020](https://arxiv.org/abs/2006.11239)), and later ones at $32\times32$, $16\times16$ and $8\times8$ ([Dhariwal and Nichol, 2021](https://arxiv.org/abs/2105.05233)), in networks that shrink a picture step by step and enlarge it again.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Counted and computed operations agree, and twice the side has 16 times the weights."
):
    assert (costs["counted by PyTorch"] == costs["convolutions"] + costs["scores and mixing"]).all()
    assert costs.loc[64, "scores and mixing"] == 16 * costs.loc[32, "scores and mixing"]
    assert costs.loc[64, "weights, MiB"] == 16 * costs.loc[32, "weights, MiB"]

# %% [markdown]
# ## References
#
# - Dhariwal, P. and Nichol, A. (2021).
#   [Diffusion models beat GANs on image synthesis](https://arxiv.org/abs/2105.05233).
#   NeurIPS.
#   The [code](https://github.com/openai/guided-diffusion) scales by two fourth roots.
# - Ho, J., Jain, A. and Abbeel, P. (2020).
#   [Denoising diffusion probabilistic models](https://arxiv.org/abs/2006.11239).
#   NeurIPS.
# - Islam, M. A., Jia, S. and Bruce, N. (2020).
#   [How much position information do convolutional neural networks encode?](https://arxiv.org/abs/2001.08248).
#   ICLR.
