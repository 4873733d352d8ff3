# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Inter-pixel attention
#
# Words attend to words, patches to patches. **What do single pixels have to ask one another, and who needs the answer?**
#
# The last chapter takes attention into a network that makes pictures out of noise. You will
#
# - **clean** a noisy picture with the formula of [Kernel regression](02_kernel_regression.ipynb) and nothing learned;
# - **turn** pixels into tokens and back, and prove that the attention block of image generators is linear multi-head
#   attention, gradients included;
# - **explain** its details: one convolution for queries, keys and values, the two factors $d^{-1/4}$, the group norm, the
#   zeros at its end, and why it stands on coarse levels only;
# - **follow** a picture into noise and back, by formula, and train a denoiser;
# - **measure** what the block is worth: on a task that cannot be done without it, and on clothes, where it nearly can.
#
# About 90 minutes. You need [Multi-head attention](08_multi_head_attention.ipynb): heads. [Vision transformers](15_vision_transformers.ipynb) helps, but nothing here depends on it.

# %%
import itertools
import math
import time

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

import course_utils as cu
from course_utils.data.images import ImageBatch

cu.seed_everything(0)

# %% [markdown]
# ## Which pixels can help to clean this one?
#
# A picture $\mathbf x$ has been photographed in poor light: each pixel carries noise of standard deviation 0.3 (from
# black to white is 2). We want it clean. The oldest idea is to average each pixel with its neighbors, and it pays for
# less noise with blurred edges.
#
# [Buades, Coll and Morel (2005)](https://doi.org/10.1109/CVPR.2005.38) asked instead: which pixels show the *same
# thing*? They may stand anywhere. Compare the $3 \times 3$ patch $\mathbf p_i$ around pixel $i$ with the patch around each
# other pixel of the picture, and average the pixels whose patches are alike:
#
# $$\hat x_i = \sum_j \alpha_{ij}\, y_j, \qquad \alpha_{ij} = \frac{\exp\!\big(-\|\mathbf p_i - \mathbf p_j\|^2 / 2\sigma^2\big)}{\sum_k \exp\!\big(-\|\mathbf p_i - \mathbf p_k\|^2 / 2\sigma^2\big)} .$$
#
# They called it *non-local means*; this is its plainest form. You know it as **Nadaraya–Watson regression** ([Kernel regression](02_kernel_regression.ipynb)): queries and keys are
# patches, values are pixels. By hand, for a picture of three pixels with patches of one: $y = (0, 1, 0.2)$ and
# $\sigma^2 = 0.02$. The first pixel compares itself with all three: $-\|\cdot\|^2/2\sigma^2 = (0, -25, -1)$, so the weights
# are about $(0.73, 0, 0.27)$, and $\hat x_1 = 0.05$. The pixel that shows something else has no say.

# %%
three = torch.tensor([0.0, 1.0, 0.2])
weights = (-((three[0] - three) ** 2) / 0.04).softmax(dim=0)
assert_close(weights, torch.tensor([0.73, 0.0, 0.27]), atol=0.005, rtol=0)
by_hand = cu.nadaraya_watson(three[:1], three, three, width=math.sqrt(0.02))
assert_close(by_hand, weights @ three[:, None])
assert abs(by_hand.item() - 0.05) < 0.005


# %%
def patches(picture):
    """The 3 × 3 patch around each pixel: (height, width) → (pixels, 9)."""
    padded = F.pad(picture[None, None], [1] * 4, mode="replicate")
    return F.unfold(padded, 3)[0].T


def non_local_means(picture, width=0.7):
    """Each pixel becomes the average of all pixels whose patches look like its own."""
    keys = patches(picture)
    return cu.nadaraya_watson(keys, keys, picture.flatten(), width=width).view_as(picture)


def blurred(picture, width):
    """Each pixel becomes the average of its neighbors, near ones first."""
    line = torch.exp(-(torch.arange(-3, 4.0) ** 2) / (2 * width**2))
    kernel = line[:, None] * line / line.sum() ** 2
    padded = F.pad(picture[None, None], [3] * 4, mode="replicate")
    return F.conv2d(padded, kernel[None, None])[0, 0]


# %%
clothes = next(iter(cu.ImageLoader(cu.load_fashion_mnist("test"), batch_size=60, shuffle=False)))
clean = clothes.images[:, 0]  # (60, 28, 28), from −1 to 1
noisy = clean + 0.3 * torch.randn(clean.shape)


def error(candidates):
    """Mean squared error of each picture."""
    return (torch.stack(list(candidates)) - clean).square().mean(dim=(1, 2))


by_likeness = error(non_local_means(picture) for picture in noisy)
by_nearness = torch.stack(
    [error(blurred(picture, width) for picture in noisy) for width in (0.5, 0.6, 0.7, 0.8, 1.0)]
)
best_blur = by_nearness.amin(dim=0)  # the best width for each picture, chosen in hindsight
assert 0.08 < error(noisy).mean() < 0.1
assert 0.035 < by_nearness.mean(dim=1).min() < 0.045
assert by_likeness.mean() < 0.6 * best_blur.mean()
assert (by_likeness < best_blur).float().mean() > 0.9  # of all pictures

# %% [markdown]
# The noise has variance 0.09. The best blur leaves an error of about 0.04; likeness leaves about half of that, with one
# width for all pictures, while each blur was allowed the width that suits its picture. **Where does the pixel marked
# below find its likes?**

# %% tags=["hide-input"]
shown = int((clothes.labels == 1).nonzero()[0])  # the first pair of trousers
marked = 15 * 28 + 10
keys = patches(noisy[shown])
alike = cu.kernel_weights(keys[[marked]], keys, width=0.7)[0].view(28, 28)
panels = {
    "clean": clean[shown],
    "noisy": noisy[shown],
    "blurred": blurred(noisy[shown], 0.6),
    "non-local means": non_local_means(noisy[shown]),
}
fig, axes = cu.subplots(
    1, 5, width=8.8, height=2.1,
    alt="A pair of trousers: clean, noisy, blurred, and cleaned by non-local means, which keeps the edges. The "
    "weights of one pixel at the edge of a leg lie on both legs and up to the waist, and none on the background.",
)  # fmt: skip
for ax, (title, picture) in zip(axes, panels.items(), strict=False):
    ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
    ax.set_title(title, fontsize=9)
axes[4].imshow(alike, cmap="Blues", vmin=0, vmax=0.03)
axes[4].set_title("weights of one pixel", fontsize=9)
for ax in axes[[1, 4]]:
    ax.plot(10, 15, "s", markersize=6, markerfacecolor="none", color=cu.COLORS["vermilion"])
for ax in axes:
    ax.set(xticks=[], yticks=[])
fig

# %%
flat = alike.flatten()
row = torch.arange(28 * 28) // 28
assert abs(flat.sum() - 1) < 1e-4
assert flat[(row - 15).abs() > 3].sum() > 0.3  # much of the weight is not nearby
assert flat[clean[shown].flatten() < -0.9].sum() < 0.1  # little of it on the background

# %% [markdown]
# Its weights lie on both legs and up to the waist, on pixels whose surroundings look alike, wherever they are. The background,
# though it begins next door, has hardly any say.
# This is attention among pixels without a single learned number. What can learning add? Better *queries and keys* than
# raw patches, and better *values* than raw pixels. [Wang et al. (2018)](https://arxiv.org/abs/1711.07971) made that step
# for networks that recognize actions in videos, and named their block after this very filter: the non-local block.
#
# ## Pixels as tokens
#
# Inside a network a picture is a tensor $(B, C, H, W)$: for each of $H \cdot W$ pixels there are $C$ numbers, its
# channels. **These $C$ numbers are the pixel's embedding.** Attention wants $(B, n, C)$ with $n = HW$ tokens. In memory a
# picture lies channel after channel, so the axis $C$ has to move *behind* the pixels. We follow each number of a
# picture with two channels and $2 \times 3$ pixels:

# %%
numbers = torch.arange(12.0).view(1, 2, 2, 3)  # channel 0 holds 0–5, channel 1 holds 6–11
tokens = numbers.flatten(2).transpose(1, 2)  # (1, 2, 6) → (1, 6, 2)
assert tokens[0].tolist() == [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]]
careless = numbers.view(1, 6, 2)  # the right shape, without a transpose
assert careless[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
assert torch.equal(tokens.transpose(1, 2).view_as(numbers), numbers)  # and back


# %% tags=["hide-input"]
def draw_numbers(ax, matrix, title):
    """A matrix with its numbers; channel 0 is blue, channel 1 yellow."""
    for i, j in itertools.product(*map(range, matrix.shape)):
        blue = matrix[i, j] < 6
        color = cu.COLORS["blue"] if blue else cu.COLORS["yellow"]
        ax.fill_between([j, j + 1], i, i + 1, color=color, linewidth=0)
        ax.text(
            j + 0.5, i + 0.5, int(matrix[i, j]), ha="center", va="center", fontsize=9,
            color="white" if blue else "black",
        )  # fmt: skip
    height, width = matrix.shape
    ax.hlines(range(height + 1), 0, width, color="white", linewidth=1.5)
    ax.vlines(range(width + 1), 0, height, color="white", linewidth=1.5)
    ax.set(xlim=(0, width), ylim=(6, 0), xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)
    ax.spines[:].set_visible(False)


fig, axes = cu.subplots(
    1, 4, width=8.4, height=2.6, width_ratios=[3, 3, 2, 2],
    alt="Two channels of two by three pixels, blue 0 to 5 and yellow 6 to 11. As tokens: six rows, each with one "
    "blue and one yellow number. With view alone: three rows of two blue numbers, three of two yellow ones.",
)  # fmt: skip
draw_numbers(axes[0], numbers[0, 0], "channel 0")
draw_numbers(axes[1], numbers[0, 1], "channel 1")
draw_numbers(axes[2], tokens[0], "tokens:\na row is a pixel")
draw_numbers(axes[3], careless[0], "view alone:\na row is two neighbors")
fig

# %% [markdown]
# In the right order a row is a pixel, with one number of each color. With `view` alone, a row is a pair of neighbors of
# one channel. The shape is right, no error is raised, and the network even trains: it attends among six things that are
# no pixels. What catches it: **change one pixel, and exactly one token must move.**

# %%
x = torch.randn(1, 8, 5, 5)
changed = x.clone()
changed[0, :, 2, 3] += 1.0
right = (changed.flatten(2).transpose(1, 2) != x.flatten(2).transpose(1, 2)).any(dim=-1)
wrong = (changed.view(1, 25, 8) != x.view(1, 25, 8)).any(dim=-1)
assert right[0].nonzero().flatten().tolist() == [2 * 5 + 3]  # row · W + column
assert wrong.sum() == 8  # one pixel moves eight "tokens", one for each channel

# %% [markdown]
# ### Exercise 1 · Pixels to tokens
# *5 minutes · ★*
#
# Write the function: (batch, channels, height, width) → (batch, height · width, channels). Token `row * width + column`
# holds the channels of the pixel there.


# %% tags=["exercise"]
def pixels_to_tokens(x):
    """(batch, channels, height, width) → (batch, height · width, channels)."""
    ...


# %% tags=["check"]
cu.checks.pixels_to_tokens(pixels_to_tokens)


# %% tags=["solution"] jupyter={"source_hidden": true}
def pixels_to_tokens(x):
    """(batch, channels, height, width) → (batch, height · width, channels)."""
    return x.flatten(2).transpose(1, 2)


cu.checks.pixels_to_tokens(pixels_to_tokens)

# %% [markdown]
# ## Queries, keys and values from one convolution
#
# Code of image generators has no $\mathbf W_q, \mathbf W_k, \mathbf W_v$. It flattens the pixels to one line and runs a
# **1-D convolution** over it that turns $C$ channels into $3C$: the first third are queries, the second keys, the last
# values. A lecture on such a module calls the absence of the three matrices an interesting difference, since they are only
# implied by the convolution ([Kak, 2025](https://engineering.purdue.edu/DeepLearn/)). **How large is the difference?**
#
# A convolution of width $w$ computes each output from $w$ neighbors. With $w = 1$ from the pixel alone: output channel $o$
# at pixel $i$ is $\sum_c W_{oc}\, x_{ci} + b_o$, the same $\mathbf W$ at every pixel. That *is* `nn.Linear`, applied to
# tokens that lie in columns. By hand, two channels, two pixels, one output with $\mathbf W = (2, 1)$, $b = 1$:
#
# $$\mathbf X = \begin{pmatrix} 1 & 0\\ 3 & 4 \end{pmatrix} \;\mapsto\; (2\cdot 1 + 3 + 1,\ \ 2 \cdot 0 + 4 + 1) = (6, 5).$$

# %%
conv = nn.Conv1d(2, 1, kernel_size=1)
with torch.no_grad():
    conv.weight.copy_(torch.tensor([[[2.0], [1.0]]]))
    conv.bias.fill_(1.0)
assert conv(torch.tensor([[[1.0, 0.0], [3.0, 4.0]]])).tolist() == [[[6.0, 5.0]]]

C, n = 12, 20
conv, linear = nn.Conv1d(C, 3 * C, kernel_size=1), nn.Linear(C, 3 * C)
with torch.no_grad():
    linear.weight.copy_(conv.weight[..., 0])  # (3C, C, 1) → (3C, C)
    linear.bias.copy_(conv.bias)

x = torch.randn(2, C, n, requires_grad=True)  # (batch, channels, pixels)
by_conv, by_linear = conv(x), linear(x.transpose(1, 2)).transpose(1, 2)
assert_close(by_conv, by_linear)
direction = torch.randn_like(by_conv)
one = torch.autograd.grad(by_conv, [x, conv.weight, conv.bias], direction)
other = torch.autograd.grad(by_linear, [x, linear.weight, linear.bias], direction)
assert_close(one[0], other[0])
assert_close(one[1][..., 0], other[1], rtol=1e-4, atol=1e-5)
assert_close(one[2], other[2], rtol=1e-4, atol=1e-5)

# %% [markdown]
# Equal, to the gradient. The three matrices are not absent: they are the three thirds of the convolution's weight,
# stacked. The convolution merely spares us a transpose. (One warning. The line of pixels runs through the rows, so the
# last pixel of a row is followed by the first of the next. With width 3 the convolution would mix these two, which are no
# neighbors in the picture. With width 1 the order of the line does not matter.)
#
# ### The whole block
#
# Now the block, in the plainest code we can write: convolution, heads, scaled dot products, softmax, average, output
# convolution. The $C$ channels of the queries are those of head 1, then those of head 2, and so on, as in [Multi-head attention](08_multi_head_attention.ipynb).


# %%
def attention_among_pixels(x, qkv, out_proj, num_heads):
    """x (batch, channels, height, width) → the same shape; qkv, out_proj: 1-D convolutions."""
    batch, channels, height, width = x.shape
    size = channels // num_heads
    thirds = qkv(x.flatten(2)).chunk(3, dim=1)  # three (batch, channels, pixels)
    q, k, v = (third.view(batch, num_heads, size, height * width) for third in thirds)
    scores = q.mT @ k / math.sqrt(size)  # (batch, heads, queries, keys)
    heads = scores.softmax(dim=-1) @ v.mT  # (batch, heads, pixels, size)
    joined = heads.mT.reshape(batch, channels, height * width)
    return out_proj(joined).view_as(x)


# %% [markdown]
# [Multi-head attention](08_multi_head_attention.ipynb)'s `cu.MultiHeadAttention` gets the same weights, and so does the library's block, `cu.PixelAttention`. (It
# has two more parts, which come next: a group norm before, and the input carried around it. We undo both here.) The fourth
# is PyTorch's operator, `F.scaled_dot_product_attention`. **Are the four equal, and all their gradients?**

# %%
channels, num_heads = 16, 4
block = cu.PixelAttention(channels, num_heads)
nn.init.normal_(block.out_proj.weight, std=0.3)  # it begins with zeros, see below
qkv, out_proj = block.qkv, block.out_proj
plain = cu.MultiHeadAttention(channels, num_heads)
projections = [plain.query_proj, plain.key_proj, plain.value_proj, plain.out_proj]
with torch.no_grad():
    weights = [*qkv.weight[..., 0].chunk(3), out_proj.weight[..., 0]]
    biases = [*qkv.bias.chunk(3), out_proj.bias]
    for projection, weight, bias in zip(projections, weights, biases, strict=True):
        projection.weight.copy_(weight)
        projection.bias.copy_(bias)


def by_linear_heads(x):
    tokens = x.flatten(2).transpose(1, 2)
    return plain(tokens, tokens, tokens).transpose(1, 2).reshape(x.shape)


def by_operator(x):
    thirds = qkv(x.flatten(2)).transpose(1, 2).chunk(3, dim=-1)
    q, k, v = (cu.split_heads(third, num_heads) for third in thirds)
    heads = cu.merge_heads(F.scaled_dot_product_attention(q, k, v))
    return out_proj(heads.transpose(1, 2)).view_as(x)


def by_library(x):
    """The norm of an input that has been normed already is left out; the carried input is taken off."""
    norm, block.norm = block.norm, nn.GroupNorm(8, channels, affine=False)
    block.norm.forward = lambda x: x
    y = block(x) - x
    block.norm = norm
    return y


# %%
x = torch.randn(2, channels, 5, 7, requires_grad=True)
direction = torch.randn_like(x)
reference = attention_among_pixels(x, qkv, out_proj, num_heads)
convolutions = [qkv.weight, qkv.bias, out_proj.weight, out_proj.bias]
expected = torch.autograd.grad(reference, [x, *convolutions], direction)
for way in (by_linear_heads, by_operator, by_library):
    outputs = way(x)
    assert_close(outputs, reference, rtol=1e-4, atol=1e-5)
    if way is by_linear_heads:
        parameters = [*(p.weight for p in projections), *(p.bias for p in projections)]
        grads = torch.autograd.grad(outputs, [x, *parameters], direction)
        thirds = torch.cat(grads[1:4])[..., None], torch.cat(grads[5:8])
        actual = [grads[0], *thirds, grads[4][..., None], grads[8]]
    else:
        actual = torch.autograd.grad(outputs, [x, *convolutions], direction)
    for gradient, wanted in zip(actual, expected, strict=True):
        assert_close(gradient, wanted, rtol=1e-3, atol=1e-4)

# %% [markdown]
# One formula, four spellings. Whatever [Queries, keys and values](01_queries_keys_values.ipynb) to [Vision transformers](15_vision_transformers.ipynb) said about multi-head attention holds for pixels word for word.
#
# ### Exercise 2 · One convolution for three matrices
# *8 minutes · ★★*
#
# Given a `cu.MultiHeadAttention`, return an `nn.Conv1d` of width 1 from $C$ to $3C$ channels that makes its queries, then
# its keys, then its values. Copy the numbers; the attention must not change when the convolution is trained.


# %% tags=["exercise"]
def joined_qkv(attention):
    """An nn.Conv1d from C to 3C channels with the three projections of a cu.MultiHeadAttention."""
    ...


# %% tags=["check"]
cu.checks.joined_qkv(joined_qkv)


# %% tags=["solution"] jupyter={"source_hidden": true}
def joined_qkv(attention):
    """An nn.Conv1d from C to 3C channels with the three projections of a cu.MultiHeadAttention."""
    projections = (attention.query_proj, attention.key_proj, attention.value_proj)
    channels = attention.query_proj.in_features
    conv = nn.Conv1d(channels, 3 * channels, kernel_size=1)
    with torch.no_grad():
        conv.weight.copy_(torch.cat([p.weight for p in projections])[..., None])
        conv.bias.copy_(torch.cat([p.bias for p in projections]))
    return conv


cu.checks.joined_qkv(joined_qkv)

# %% [markdown]
# ## Two fourth roots
#
# Where we wrote $\mathbf q^\top \mathbf k / \sqrt d$, generators write
#
# $$\big(d^{-1/4}\,\mathbf q\big)^{\!\top} \big(d^{-1/4}\,\mathbf k\big) = d^{-1/2}\; \mathbf q^\top \mathbf k .$$
#
# Algebra says that nothing changes. **Why would anyone prefer it?** Half precision (float16) ends at 65,504. Take
# $d = 64$ and all entries 40: the product is $64 \cdot 1600 = 102{,}400$, infinite in float16, and *then* it is divided by 8. With
# $64^{-1/4} = 0.354$ on both sides each entry is 14.14, and the product is the 12,800 that was wanted.

# %%
q, k = torch.randn(3, 64, dtype=torch.double), torch.randn(5, 64, dtype=torch.double)
assert_close((q * 64**-0.25) @ (k * 64**-0.25).T, q @ k.T / 64**0.5)  # the algebra

q, k = torch.full((1, 64), 40.0).half(), torch.full((2, 64), 40.0).half()
k[1] = 39.0
after = q @ k.T / 64**0.5
before = (q * 64**-0.25) @ (k * 64**-0.25).T
assert after.isinf().all() and after.softmax(dim=-1).isnan().all()  # ∞ − ∞
assert before.isfinite().all()
assert_close(before, torch.tensor([[12800.0, 12480.0]]).half(), rtol=2e-3, atol=0)

# %% [markdown]
# A bonus: the factor now touches $2nd$ numbers instead of $n^2$ scores, fewer when $n > 2d$, as with pixels it mostly is. The
# comment in the code of [Dhariwal and Nichol (2021)](https://arxiv.org/abs/2105.05233) says as much: more stable with
# float16 than dividing afterwards. The fused operators compute scores in float32 and do not need it; bfloat16 reaches as far
# as float32 and does not, either. It is a trick for float16 and for attention written out by hand.
#
# ### Exercise 3 · Weights in half precision
# *6 minutes · ★★*
#
# Queries (batch, queries, d) and keys (batch, keys, d) come in float16. Return the weights, softmax over the keys, in
# float16, computed in float16 all the way.


# %% tags=["exercise"]
def half_precision_weights(q, k):
    """softmax(q·k / √d) of float16 queries and keys, without overflow and without float32."""
    ...


# %% tags=["check"]
cu.checks.half_precision_weights(half_precision_weights)


# %% tags=["solution"] jupyter={"source_hidden": true}
def half_precision_weights(q, k):
    """softmax(q·k / √d) of float16 queries and keys, without overflow and without float32."""
    scale = q.shape[-1] ** -0.25
    return ((q * scale) @ (k * scale).mT).softmax(dim=-1)


cu.checks.half_precision_weights(half_precision_weights)

# %% [markdown]
# ## Norm before, input around, zeros at the end
#
# The block as a whole is
#
# $$\mathrm{block}(\mathbf x) = \mathbf x + \mathrm{out}\big(\mathrm{Attention}(\mathrm{qkv}(\mathrm{norm}(\mathbf x)))\big).$$
#
# It is a pre-norm residual, as in [The Transformer](10_transformer.ipynb), with two differences.
#
# **Group norm** ([Wu and He, 2018](https://arxiv.org/abs/1803.08494)) in place of layer norm: the channels are put into
# groups, and each group of each picture is normalized over its channels *and over all pixels*. By hand, four channels
# in two groups, two pixels:
#
# $$\begin{pmatrix}1&3\\1&3\end{pmatrix} \text{ has mean 2, variance 1} \;\mapsto\; \begin{pmatrix}-1&1\\-1&1\end{pmatrix}, \qquad
# \begin{pmatrix}0&0\\10&10\end{pmatrix} \text{ has mean 5, variance 25} \;\mapsto\; \begin{pmatrix}-1&-1\\1&1\end{pmatrix}.$$
#
# Layer norm looks at one token at a time. Group norm looks at the whole picture, so it, too, is a channel through which
# pixels hear of one another: a narrow one, two numbers per group.

# %%
x = torch.tensor([[[[1.0, 3.0]], [[1.0, 3.0]], [[0.0, 0.0]], [[10.0, 10.0]]]])  # (1, 4, 1, 2)
normed = F.group_norm(x, num_groups=2)
assert_close(
    normed[0, :, 0], torch.tensor([[-1.0, 1], [-1, 1], [-1, -1], [1, 1]]), atol=1e-4, rtol=0
)

x = torch.randn(1, 8, 4, 4)
changed = x.clone()
changed[0, :, 0, 0] += 1.0
moved = (F.group_norm(changed, 2) != F.group_norm(x, 2)).any(dim=1)[0]
assert moved.all()  # one pixel changed, all move
by_layer = [F.layer_norm(each.flatten(2).mT, (8,)) for each in (x, changed)]
assert (by_layer[0] != by_layer[1]).any(dim=-1).sum() == 1

# %% [markdown]
# **Zeros at the end.** The output convolution begins with zeros. A new block therefore returns its input exactly, so
# that it can be put anywhere without harm, and joins in as it learns. Is a layer of zeros not stuck? Look at the gradients:
# with $\mathrm{out} = 0$ nothing reaches queries, keys and values, but $\mathrm{out}$ itself gets a gradient. After one
# step it is no longer zero, and from the second step on everything learns.

# %%
block = cu.PixelAttention(16, num_heads=2)
x, target = torch.randn(4, 16, 4, 4), torch.randn(4, 16, 4, 4)
assert torch.equal(block(x), x)

optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
learns = []
for _step in range(2):
    optimizer.zero_grad()
    (block(x) - target).square().mean().backward()
    learns.append((block.out_proj.weight.grad.any().item(), block.qkv.weight.grad.any().item()))
    optimizer.step()
assert learns == [(True, False), (True, True)]

# %% [markdown]
# So when you test code of your own, ask whether every parameter has a gradient at the *second* step.
#
# ## The block does not know where a pixel stands
#
# No position is added anywhere. As in [Self-attention](07_self_attention.ipynb): **permute the pixels, and the output is permuted, nothing else.** To the
# block, a picture is a set of pixels.

# %%
nn.init.normal_(block.out_proj.weight, std=0.3)
with torch.no_grad():
    order = torch.randperm(16)
    shuffled = x.flatten(2)[..., order].view_as(x)
    assert_close(block(shuffled), block(x).flatten(2)[..., order].view_as(x), rtol=1e-4, atol=1e-5)

# %% [markdown]
# So how can a generator tell top from bottom? Through the convolutions around the block. They see neighborhoods, and they
# see the *border*: a picture is padded with zeros, and a pixel next to zeros is different from one in the middle
# ([Islam, Jia and Bruce, 2020](https://arxiv.org/abs/2001.08248)). Take a picture that is 1 everywhere, and a convolution
# that adds up nine neighbors. After one layer the border is known, after two layers the pixels next to it are different, too.

# %%
ones, total = torch.ones(1, 1, 7, 7), torch.ones(1, 1, 3, 3)
once = F.conv2d(ones, total, padding=1)
twice = F.conv2d(once, total, padding=1)
assert once[0, 0, 3].tolist() == [6, 9, 9, 9, 9, 9, 6]
assert twice[0, 0, 3].tolist() == [45, 72, 81, 81, 81, 72, 45]
ring = F.conv2d(F.pad(ones, [1] * 4, mode="circular"), total)  # no border, no place
assert ring.unique().tolist() == [9]

# %% [markdown]
# ## What it costs
#
# With $n = HW$ pixels and $C$ channels the four projections take $4nC^2$ multiplications, scores and averages $2n^2C$. Let the
# side of a square picture be $s$, so $n = s^2$: projections grow as $s^2$, attention as $s^4$. **Twice the side, sixteen times
# the work**, and as many times the weights, if they are written down. We let PyTorch count.


# %%
def count_multiplications(side, channels, num_heads=1):
    """Counted while `attention_among_pixels` runs."""
    qkv, out_proj = nn.Conv1d(channels, 3 * channels, 1), nn.Conv1d(channels, channels, 1)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        attention_among_pixels(torch.randn(1, channels, side, side), qkv, out_proj, num_heads)
    return counter.get_total_flops() // 2  # a product and a sum count as two


C = 64
for side in (4, 7, 14, 28):
    n = side**2
    assert count_multiplications(side, C) == 4 * n * C**2 + 2 * n**2 * C
    assert count_multiplications(side, C, num_heads=4) == 4 * n * C**2 + 2 * n**2 * C

sides = np.array([4, 8, 16, 32, 64, 128, 256])
n = sides.astype(float) ** 2
projections, among = 4 * n * C**2, 2 * n**2 * C
total = projections + among
slopes = np.diff(np.log(total)) / np.diff(np.log(sides))
assert slopes[0] < 2.6 and slopes[-1] > 3.9 and (np.diff(slopes) > 0).all()
assert 2 * C == 128 and sides[projections > among].max() == 8  # equal at n = 2C pixels

# %% [markdown]
# The slope on log axes climbs from 2 to 4. The two parts are equal where $2n^2C = 4nC^2$, at $n = 2C$: with 64 channels at
# $11 \times 11$ pixels. And the weights of one head, in float32, for one picture:

# %%
sizes = pd.DataFrame(
    {"pixels n": sides**2, "weights n²": sides**4}, index=pd.Index(sides, name="side")
)
memory = sides.astype(float) ** 4 * 4 / 2**20
sizes["memory"] = [f"{m:.3g} MiB" if m < 1024 else f"{m / 1024:.3g} GiB" for m in memory]
assert memory[-1] == 16 * 1024  # 16 GiB at 256 × 256
sizes

# %% [markdown]
# That is why attention stands on the **coarse levels** of a generator, $32 \times 32$ pixels and below, and why larger
# pictures are made in a smaller space or from patches, as in [Vision transformers](15_vision_transformers.ipynb). A fused operator does not store the weights (chapter
# 03), but it does compute them. **Does the clock agree with the formula?** A convolution of width 3 is the yardstick: it
# grows as $s^2$.


# %%
def seconds(function, *args):
    """The shortest of five runs, in CPU seconds."""
    times = []
    for _run in range(5):
        began = time.process_time()
        function(*args)
        times.append(time.process_time() - began)
    return min(times)


attend = cu.PixelAttention(32).requires_grad_(False)
convolve = nn.Conv2d(32, 32, 3, padding=1).requires_grad_(False)
measured = {"attention among pixels": [], "3 × 3 convolution": []}
measured_sides = [8, 16, 32, 64]
for side in measured_sides:
    x = torch.randn(1, 32, side, side)
    for name, layer in zip(measured, (attend, convolve), strict=True):
        measured[name].append(seconds(layer, x))

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=3.0,
    alt="Left, multiplications over the side of the picture on log axes: projections rise with slope 2, attention "
    "with slope 4, they cross near side 11. Right, measured seconds: attention rises more steeply than a 3 by 3 convolution.",
)  # fmt: skip
left.plot(sides, projections, "--", label="projections 4nC²")
left.plot(sides, among, "-", label="scores and averages 2n²C")
left.axvline(math.sqrt(2 * C), color="0.6", linestyle=":", linewidth=1)
left.set(xlabel="side s in pixels (n = s²)", ylabel="multiplications, C = 64")
for (name, times), mark in zip(measured.items(), ("o-", "s--"), strict=True):
    right.plot(measured_sides, times, mark, label=name)
right.set(xlabel="side s in pixels", ylabel="CPU seconds, C = 32")
for ax in (left, right):
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.legend()
fig

# %% [markdown]
# ## Into the noise, by formula
#
# What is the block for? A *denoising diffusion* model learns to undo noise, a little at a time
# ([Ho, Jain and Abbeel, 2020](https://arxiv.org/abs/2006.11239)). First the way in. Step $t$ shrinks the picture a little
# and adds a little noise, so that the variance of a picture with variance 1 stays 1:
#
# $$\mathbf x_t = \sqrt{1 - \beta_t}\;\mathbf x_{t-1} + \sqrt{\beta_t}\;\boldsymbol\varepsilon_t, \qquad \boldsymbol\varepsilon_t \sim \mathcal N(0, \mathbf I).$$
#
# One pixel by hand: $x_0 = 0.8$, two steps with $\beta = 0.36$. After one step the mean is $0.8 \cdot 0.8 = 0.64$ and the
# variance 0.36. After two, the mean is $0.8 \cdot 0.64 = 0.512$, and the variance is $0.64 \cdot 0.36 + 0.36 = 0.5904$. Look
# closer: $0.5904 = 1 - 0.64^2$. With $\bar\alpha_t = \prod_{s \le t} (1 - \beta_s)$, the share that is left, all steps
# together are **one**:
#
# $$\mathbf x_t = \sqrt{\bar\alpha_t}\;\mathbf x_0 + \sqrt{1 - \bar\alpha_t}\;\boldsymbol\varepsilon .$$

# %%
alpha_bar = torch.tensor([1.0, 0.64, 0.4096])
diffusion = cu.Diffusion(alpha_bar)
pixels = torch.full((1, 1, 400, 400), 0.8)  # many pixels, all alike
in_steps = pixels
for _step in range(2):
    in_steps = 0.8 * in_steps + 0.6 * torch.randn(pixels.shape)
at_once = diffusion.add_noise(pixels, torch.tensor([2]), torch.randn(pixels.shape))
for noised in (in_steps, at_once):
    assert abs(noised.mean() - 0.512) < 0.01
    assert abs(noised.var() - 0.5904) < 0.01

# %% [markdown]
# How fast should $\bar\alpha$ fall? The first choice was a $\beta$ that rises evenly from 0.0001 to 0.02 over 1,000 steps.
# [Nichol and Dhariwal (2021)](https://arxiv.org/abs/2102.09672) saw that on small pictures much of that time is spent in
# pure noise, and proposed $\bar\alpha_t \approx \cos^2$. **What is left of a picture, and when?** We take 200 steps.

# %%
T = 200
linear, cosine = cu.linear_schedule(T), cu.cosine_schedule(T)
assert linear[0] == cosine[0] == 1 and max(linear[T], cosine[T]) < 1e-4
assert (linear < 0.1).float().mean() > 0.4 > 0.25 > (cosine < 0.1).float().mean()
diffusion = cu.Diffusion(cosine)

# %% tags=["hide-input"]
boot = clothes.images[(clothes.labels == 9).nonzero()[0, 0]][None]
fig, axes = cu.subplots(
    1, 6, width=8.8, height=2.5, width_ratios=[2.6, 1, 1, 1, 1, 1],
    alt="Left, the share of the picture over 200 steps: the linear schedule falls early and stays near zero for the "
    "second half, the cosine falls evenly. Right, an ankle boot at steps 0, 40, 80, 120 and 200 of the cosine schedule: ever noisier, at last "
    "only noise.",
)  # fmt: skip
axes[0].plot(linear, "--", label="linear β")
axes[0].plot(cosine, label="cosine")
axes[0].set(xlabel="step t", ylabel="share of the picture $\\barα_t$")
axes[0].legend()
for ax, t in zip(axes[1:], (0, 40, 80, 120, 200), strict=True):
    picture = diffusion.add_noise(boot, torch.tensor([t]), torch.randn(boot.shape))
    ax.imshow(picture[0, 0], cmap="gray", vmin=-1.5, vmax=1.5)
    ax.set_title(f"t = {t}", fontsize=9)
    ax.set(xticks=[], yticks=[])
fig

# %% [markdown]
# ## Back, one guess at a time
#
# A network gets $\mathbf x_t$ and $t$, and is to say which noise is in there:
#
# $$\text{loss} = \big\|\boldsymbol\varepsilon - \mathrm{model}(\mathbf x_t, t)\big\|^2 \text{ per pixel}, \qquad t \text{ and } \boldsymbol\varepsilon \text{ drawn at random.}$$
#
# Ordinary regression, and by [Kernel regression](02_kernel_regression.ipynb) we know what the best answer is: the *mean* of all noises that could be in there.
# To name the noise is to name a picture, since $\hat{\mathbf x}_0 = (\mathbf x_t - \sqrt{1 - \bar\alpha_t}\;\boldsymbol\varepsilon)/\sqrt{\bar\alpha_t}$.
#
# A case where the best answer is a formula: a pixel that is $+1$ or $-1$ with equal chances. Bayes' rule gives
# $\hat x_0 = \tanh\big(\sqrt{\bar\alpha_t}\, x_t / (1 - \bar\alpha_t)\big)$. For $\bar\alpha = \tfrac12$ and $x_t = 1$ that is $\tanh(1.414)
# = 0.888$: probably $+1$, not certainly. Once a guess is there, a step goes to less noise: keep the guess, and put back as much
# noise as the new step has,
#
# $$\mathbf x_s = \sqrt{\bar\alpha_s}\;\hat{\mathbf x}_0 + \sqrt{1 - \bar\alpha_s}\;\hat{\boldsymbol\varepsilon} \qquad (s < t).$$
#
# This is DDIM ([Song, Meng and Ermon, 2021](https://arxiv.org/abs/2010.02502)). The first sampler, DDPM, replaces part of
# $\hat{\boldsymbol\varepsilon}$ by fresh noise of variance $\sigma^2 = \frac{1 - \bar\alpha_s}{1 - \bar\alpha_t}\big(1 -
# \frac{\bar\alpha_t}{\bar\alpha_s}\big)$ and keeps the sum at $1 - \bar\alpha_s$. **Where does noise go, if each guess is the best?**

# %%
assert abs(math.tanh(math.sqrt(0.5) * 1.0 / 0.5) - 0.888) < 0.001


def walk(fresh, start):
    """One pixel from noise to ±1 with the best guess at each step; fresh=1 is DDPM, 0 is DDIM."""
    path = [start]
    for t in range(T, 0, -1):
        x, a, b = path[-1], diffusion.alpha_bar[t], diffusion.alpha_bar[t - 1]
        guess = torch.tanh(a.sqrt() * x / (1 - a))
        noise = (x - a.sqrt() * guess) / (1 - a).sqrt()
        variance = fresh * (1 - b) / (1 - a) * (1 - a / b)
        kept = (1 - b - variance).clamp(min=0).sqrt()
        path.append(b.sqrt() * guess + kept * noise + variance.sqrt() * torch.randn(x.shape))
    return torch.stack(path)  # (T + 1, walks)


walks = {name: walk(fresh, torch.randn(4000)) for name, fresh in (("DDPM", 1.0), ("DDIM", 0.0))}
for paths in walks.values():
    assert ((paths[-1].abs() - 1).abs() < 0.05).float().mean() > 0.98
    assert abs((paths[-1] > 0).float().mean() - 0.5) < 0.04  # both pictures, equally often
assert (walks["DDIM"][0].sign() == walks["DDIM"][-1].sign()).float().mean() > 0.99
assert (walks["DDPM"][0].sign() == walks["DDPM"][-1].sign()).float().mean() < 0.6

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.6, sharey=True,
    alt="Paths of 24 pixels from noise at step 200 to plus or minus one at step 0. DDPM: jagged paths that change sides for "
    "a long time. DDIM: smooth paths that never cross zero.",
)  # fmt: skip
for ax, (name, paths) in zip(axes, walks.items(), strict=True):
    ends = paths[-1, :24] > 0
    ax.plot(range(T, -1, -1), paths[:, :24][:, ends], color=cu.COLORS["blue"], linewidth=0.8)
    ax.plot(
        range(T, -1, -1), paths[:, :24][:, ~ends], "--", color=cu.COLORS["vermilion"], linewidth=0.8
    )
    ax.set(xlabel="step t", xlim=(T, 0))
    ax.set_title(name, fontsize=10)
axes[0].set_ylabel("pixel $x_t$")
fig

# %% [markdown]
# Both end at $\pm 1$, in equal shares: samples of the data from nothing but noise and guesses. DDIM's paths are smooth, and the
# sign of the noise decides the end. DDPM throws dice all the way and forgets where it began. `Diffusion.sample` does both,
# with a network in the place of tanh.
#
# ### Exercise 4 · A step back
# *8 minutes · ★★*
#
# Write DDIM's step: `x` has noise level `a` ($= \bar\alpha_t$), `noise` is what the network says is in it. Return the picture at
# level `b` ($= \bar\alpha_s$). Both levels are numbers.


# %% tags=["exercise"]
def step_back(x, noise, a, b):
    """From level a to level b, given the noise in x."""
    ...


# %% tags=["check"]
cu.checks.step_back(step_back)


# %% tags=["solution"] jupyter={"source_hidden": true}
def step_back(x, noise, a, b):
    """From level a to level b, given the noise in x."""
    guess = (x - (1 - a) ** 0.5 * noise) / a**0.5
    return b**0.5 * guess + (1 - b) ** 0.5 * noise


cu.checks.step_back(step_back)

# %% [markdown]
# ## A task that needs the block
#
# When does a pixel *have* to ask another one, far away? Take small pictures of random black and white pixels whose right
# half mirrors the left. **Each pixel has a twin on the other side, and nothing else in the picture tells anything about it.** For
# a denoiser the twin is a second look at the same thing, with other noise. We know before training:
#
# - who sees a single pixel $y$ can do no better than $\tanh(\sqrt{\bar\alpha}\,y/(1 - \bar\alpha))$;
# - who finds the twin $y'$ can do $\tanh(\sqrt{\bar\alpha}\,(y + y')/(1 - \bar\alpha))$, and no better;
# - the right attention map is known: the weights belong on the twin.

# %%
HEIGHT, WIDTH = 4, 6
TWIN = torch.arange(HEIGHT * WIDTH).view(HEIGHT, WIDTH).flip(-1).flatten()  # of each pixel


def mirrored(count, seed):
    """Pictures of ±1 whose right half mirrors the left: (count, 1, 4, 6)."""
    generator = torch.Generator().manual_seed(seed)
    left = torch.randint(0, 2, (count, 1, HEIGHT, WIDTH // 2), generator=generator) * 2.0 - 1
    return torch.cat([left, left.flip(-1)], dim=-1)


class BestGuess(nn.Module):
    """The best denoiser of such pictures that sees only a pixel, or a pixel and its twin."""

    def __init__(self, sees_twin):
        super().__init__()
        self.sees_twin = sees_twin

    def forward(self, x, t, labels=None):
        a = diffusion.alpha_bar[t][:, None, None, None]
        evidence = x + x.flip(-1) if self.sees_twin else x
        guess = torch.tanh(a.sqrt() * evidence / (1 - a))
        return (x - a.sqrt() * guess) / (1 - a).sqrt()


held_out = mirrored(4000, seed=99)
alone, with_twin = (diffusion.errors(BestGuess(sees), held_out)[0].mean() for sees in (False, True))
assert 0.18 < alone < 0.21 and 0.08 < with_twin < 0.11

# %% [markdown]
# Now a network in which pixels have *no other way to meet*: all its convolutions have width 1. It gets a learned vector
# for each place, since the block by itself does not know where a pixel stands. Without the block, the bound of the single
# pixel holds for it, however it is trained and however large it is.


# %%
class PixelNetwork(nn.Module):
    """Convolutions of width 1, and attention among the pixels or none."""

    def __init__(self, attends, width=48):
        super().__init__()
        self.width = width
        self.entry = nn.Conv2d(1, width, 1)
        self.places = nn.Parameter(2 * torch.randn(1, width, HEIGHT, WIDTH))
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.attention = cu.PixelAttention(width, groups=1) if attends else nn.Identity()
        self.exit = nn.Sequential(
            nn.Conv2d(width, 4 * width, 1), nn.SiLU(), nn.Conv2d(4 * width, 1, 1)
        )

    def forward(self, x, t, labels=None):
        x = self.attention(self.entry(x) + self.places)
        return self.exit(x + self.time(cu.time_features(t, self.width))[:, :, None, None])


def train_on_twins(attends, seed, steps=300):
    torch.manual_seed(seed)
    network = PixelNetwork(attends)
    optimizer = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99))
    rate = cu.warmup_decay(30, steps)
    for step, pictures in enumerate(mirrored(steps * 64, seed).split(64), start=1):
        optimizer.param_groups[0]["lr"] = 0.01 * rate(step)
        loss, count = diffusion.loss(network, ImageBatch(pictures, labels=None))
        optimizer.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return network


twin_networks = {seed: train_on_twins(True, seed) for seed in range(3)}
pixelwise = train_on_twins(False, seed=0, steps=150)

# %%
reached = {s: diffusion.errors(net, held_out)[0].mean() for s, net in twin_networks.items()}
reached_alone = diffusion.errors(pixelwise, held_out)[0].mean()
assert reached_alone > 0.98 * alone  # the bound (up to the draws it is measured on)
assert max(reached.values()) < 0.85 * alone  # below it, with all three seeds
assert min(reached.values()) > with_twin

twin_maps = {}
for seed, network in twin_networks.items():
    step = torch.full((200,), 40)
    noised = diffusion.add_noise(held_out[:200], step, torch.randn(200, 1, HEIGHT, WIDTH))
    with cu.record_attention(network) as maps, torch.no_grad():
        network(noised, step)
    twin_maps[seed] = maps["attention"].mean(dim=(0, 1))  # (24, 24)
    on_twin = twin_maps[seed][torch.arange(24), TWIN]
    assert on_twin.mean() > 0.45  # 1/24 = 0.04 if spread evenly
    assert (twin_maps[seed].argmax(dim=1) == TWIN).float().mean() > 0.9

# %% [markdown]
# With the block all three networks fall below the bound that no pixelwise network can pass. **And do they look where we
# said?** The twin of the pixel in column 1 stands in column 6 of the same row, so in each block of six the weights should
# lie on the other diagonal.

# %%
right_map = F.one_hot(TWIN, HEIGHT * WIDTH).float()
fig = cu.show_heatmaps(
    torch.stack([right_map, *twin_maps.values()]),
    titles=["the twins", "learned, seed 0", "learned, seed 1", "learned, seed 2"],
    xlabel="Pixel looked at",
    ylabel="Pixel that looks",
    width=8.8,
    height=2.7,
    alt="Four maps of 24 by 24 pixels. In the first, each pixel has weight 1 on its twin: four small anti-diagonals. The "
    "three learned maps have most of their weight in the same places.",
)
for ax in fig.axes[:4]:
    ax.set_xticks([2.5, 8.5, 14.5, 20.5], ["row 1", "row 2", "row 3", "row 4"], fontsize=8)
    ax.set_yticks([2.5, 8.5, 14.5, 20.5], ["row 1", "row 2", "row 3", "row 4"], fontsize=8)
fig

# %% [markdown]
# The maps are read off three networks that began differently, and they agree; what little is not on the twin differs from seed to
# seed. This is the honest case for attention among
# pixels: **information that is far away, at a place that can be said.**
#
# ## A U-Net for clothes
#
# Now real pictures, and a network as generators have it. A **U-Net**
# ([Ronneberger, Fischer and Brox, 2015](https://arxiv.org/abs/1505.04597)) goes down to coarser pictures and up again, and
# carries what it saw on each level across. `cu.UNet` has two levels, $14 \times 14$ with 16 channels and $7 \times 7$ with 32,
# two $3 \times 3$ convolutions in each stage, and, if asked, `cu.PixelAttention` at the end of both coarse stages. The step $t$
# enters every stage through sinusoids ([Positions](09_positions.ipynb)), and so does the class.
#
# We work on Fashion-MNIST at $14 \times 14$, each pixel the mean of $2 \times 2$: four times fewer pixels, and a minute of one CPU core
# gets four times further. 6,400 pictures, each seen once, so that nothing can be learned by heart; with and without the block; three seeds.


# %%
def halved(data):
    """The same pictures at half the height and width."""
    images = F.avg_pool2d(data.images.float(), 2).round().byte()
    return cu.ImageSet(images, data.labels, data.classes)


train, test = (halved(cu.load_fashion_mnist(split)) for split in ("train", "test"))
test_batch = next(iter(cu.ImageLoader(test, batch_size=2000, shuffle=False)))


def train_unet(attends, seed, pictures=6400):
    torch.manual_seed(seed)
    network = cu.UNet(attention=(False, attends), num_heads=2, num_classes=10)
    loader = cu.ImageLoader(train.take(pictures, seed=seed), batch_size=32, seed=seed)
    steps = len(loader)
    trainer = cu.Trainer(
        diffusion.loss, epochs=1, lr=6e-3, schedule=cu.warmup_decay(20, steps), betas=(0.9, 0.99), seed=seed, device="cpu",
    )  # fmt: skip
    return network, trainer.fit(network, loader)


def parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


bare, full = (parameters(cu.UNet(attention=(False, a), num_classes=10)) for a in (False, True))
block_size = 3 * 32 * 32 + 3 * 32 + 32 * 32 + 32 + 2 * 32  # qkv, output, norm
assert full - bare == 2 * block_size == 8576
assert 70_000 < bare < 80_000

# %%
unets, histories = {}, {}
for seed in range(3):
    unets[seed, False], histories[seed, False] = train_unet(False, seed)

# %%
for seed in range(3):
    unets[seed, True], histories[seed, True] = train_unet(True, seed)

# %% [markdown]
# How do we compare? The loss of a picture depends on its noise and step far more than on the network, so two averages over
# different draws would tell nothing. We give both networks the **same** 2,000 held-out pictures, steps and noises, and average the
# *difference*, picture by picture.

# %%
errors = {
    key: diffusion.errors(network, test_batch.images, test_batch.labels)[0]
    for key, network in unets.items()
}
records = []
for seed in range(3):
    without, with_block = errors[seed, False], errors[seed, True]
    difference = with_block - without
    single = without.std() / math.sqrt(2000)  # of one average
    paired = difference.std() / math.sqrt(2000)  # of the average difference
    assert paired < single / 5
    assert 0.11 < with_block.mean() < 0.16 and 0.11 < without.mean() < 0.16
    assert abs(difference.mean()) < 0.05 * without.mean()  # at most a few percent
    records.append((without.mean(), with_block.mean(), difference.mean(), paired))
differences = torch.tensor(records)[:, 2]
assert differences.mean() < 0.002  # no harm

# %% tags=["hide-input"]
_, steps_of = diffusion.errors(unets[0, True], test_batch.images[:2000], test_batch.labels)
quarters = [(steps_of > lower) & (steps_of <= lower + T // 4) for lower in range(0, T, T // 4)]
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=2.9,
    alt="Left, the loss with and without attention by quarter of the steps: the pairs of bars are almost equal, highest "
    "where there is little noise. Right, the difference for three seeds with error bars: small against the loss of about 0.13.",
)  # fmt: skip
for offset, attends, name, hatch in (
    (-0.18, False, "without", ""),
    (0.18, True, "with attention", "//"),
):
    heights = [np.mean([errors[s, attends][q].mean() for s in range(3)]) for q in quarters]
    left.bar(np.arange(4) + offset, heights, 0.34, label=name, hatch=hatch, edgecolor="white")
left.set_xticks(range(4), ["1–50", "51–100", "101–150", "151–200"])
left.set(xlabel="step t", ylabel="loss on held-out pictures")
left.legend()
for seed, (_without, _with, difference, paired) in enumerate(records):
    right.errorbar(
        seed, difference, 2 * paired, fmt="os^"[seed], capsize=4, color=cu.COLORS["blue"]
    )
right.axhline(0, color="0.5", linewidth=1)
right.set(xlabel="seed", ylabel="difference: with − without", xlim=(-0.5, 2.5), ylim=(-0.01, 0.01))
right.set_xticks(range(3))
fig

# %% [markdown]
# Left, the two are hard to tell apart. Most of the loss lies where there is *little* noise: fine grain that nobody can guess.
# Right, the differences with two standard errors of the paired average. (The error bars are about pictures
# and noise. The three seeds differ from one another by more than that: with another seed you get another network.)
#
# Is it worth it? The block has 8,576 of 83,489 parameters and takes its time: on one core here, training with it took at least a
# quarter longer. **Is the time better spent on a quarter more steps?** We give the network without attention, seed 0, 250 steps
# in place of 200.

# %% tags=["nbval-ignore-output"]
longer, longer_history = train_unet(False, seed=0, pictures=8000)

# %%
errors_longer, _ = diffusion.errors(longer, test_batch.images, test_batch.labels)
gain = errors_longer - errors[0, True]
assert gain.mean() < -2 * gain.std() / math.sqrt(
    2000
)  # better than attention, beyond the error bars

# %% tags=["hide-input", "nbval-ignore-output"]
mean_seconds = {a: np.mean([histories[s, a].seconds for s in range(3)]) for a in (False, True)}
rows = {
    "without, 200 steps": (bare, mean_seconds[False], errors[0, False]),
    "with attention, 200 steps": (full, mean_seconds[True], errors[0, True]),
    "without, 250 steps": (bare, longer_history.seconds, errors_longer),
}
pd.DataFrame(
    [(count, round(s, 1), round(e.mean().item(), 4)) for count, s, e in rows.values()],
    columns=["parameters", "seconds", "loss, seed 0"],
    index=list(rows),
)

# %% [markdown]
# The answer for this size is no: for the same time the plain network is better. **At $14 \times 14$, in a minute of one core, attention among pixels does
# not pay.** The reason is in the geometry. On the coarse level a picture has $7 \times 7$ pixels, and four $3 \times 3$ convolutions see four
# pixels far to every side: nearly everything. What attention could bring, they have. At full size it is another matter: for
# $128 \times 128$ pictures of a thousand classes, attention at more resolutions and with more heads improved samples
# ([Dhariwal and Nichol, 2021](https://arxiv.org/abs/2105.05233), section 3), with many thousand times our computation.
#
# ### Samples
#
# **What does a minute of one core draw?** From the same noise, with the same classes, all 200 steps of DDPM.

# %%
labels = torch.arange(10).repeat(2)
samples = {
    attends: diffusion.sample(unets[0, attends], (20, 1, 14, 14), labels=labels, seed=4)
    for attends in (False, True)
}
alike = torch.corrcoef(torch.stack([samples[a].flatten() for a in (False, True)]))[0, 1]
assert alike > 0.4  # two networks, one noise

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    4, 10, width=8.8, height=3.9,
    alt="Forty samples of 14 by 14 pixels in four rows, one class per column. The upper two rows come from the network "
    "without attention, the lower two from the one with it. Most show the outline of a garment, coarse and speckled.",
)  # fmt: skip
drawn = torch.cat([samples[False], samples[True]])[:, 0]
for ax, picture in zip(axes.flat, drawn, strict=True):
    ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for ax, name in zip(axes[0], test.classes, strict=True):
    ax.set_title(name.split("/")[0], fontsize=9)
for ax, name in zip(axes[:, 0], ("without", "without", "with", "with"), strict=True):
    ax.set_ylabel(name, fontsize=9)
fig

# %% [markdown]
# Some are what they should be, some are riddles, all are speckled. That is what 200 updates give. The two pairs of rows resemble
# one another, because two networks that began in different places have learned nearly the same field of guesses, and the same
# noise leads to similar ends. **Do the samples at least look like their own class?** We ask a plain classifier: the nearest of the ten
# class means. And we try the two samplers: DDPM with 70 of the steps, DDIM with 20.

# %%
means = torch.stack([test_batch.images[test_batch.labels == c].mean(dim=0) for c in range(10)])


def nearest_mean(pictures):
    return torch.cdist(pictures.flatten(1), means.flatten(1)).argmin(dim=1)


many = torch.arange(10).repeat(10)
shares = {}
for name, num_steps, eta in (("DDPM", 70, 1.0), ("DDIM", 20, 0.0)):
    drawn = [
        diffusion.sample(
            unets[0, a], (100, 1, 14, 14), labels=many, num_steps=num_steps, eta=eta, seed=5
        )
        for a in (False, True)
    ]
    shares[name] = (nearest_mean(torch.cat(drawn)) == many.repeat(2)).float().mean().item()
on_real = (nearest_mean(test_batch.images) == test_batch.labels).float().mean().item()
assert 0.6 < on_real < 0.75  # what this classifier says of real pictures
assert shares["DDPM"] > 0.2  # chance is 0.1
assert shares["DDPM"] > shares["DDIM"]

# %% [markdown]
# The classifier is right on two thirds of real pictures, so that is the most we could hope for. Of DDPM's samples it recognizes about
# three in ten: more than the one that chance would give, and less than half as many as of real ones. DDIM needs a third of the steps, and
# far fewer of its samples are recognized. With good networks it is known for good pictures in few steps. Here the guesses
# are poor, and DDIM never forgets: an early mistake is carried to the end, where DDPM's fresh noise washes it away.
#
# ### What does a pixel attend to?
#
# The block was of little use here. Does it do anything? We look at 200 held-out pictures, three seeds, two stages,
# two heads, at little and at much noise.


# %%
def recorded_maps(network, t):
    """Maps of both stages on 200 held-out pictures: stage → (pictures, heads, 49, 49)."""
    images, step = test_batch.images[:200], torch.full((200,), t)
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(5))
    with cu.record_attention(network) as maps, torch.no_grad():
        network(diffusion.add_noise(images, step, noise), step, test_batch.labels[:200])
    return dict(maps)


grid = torch.cartesian_prod(torch.arange(7.0), torch.arange(7.0))
distance = torch.cdist(grid, grid)  # between coarse pixels
cloth = (F.avg_pool2d(test_batch.images[:200], 2) > -0.6).flatten(
    1
)  # (200, 49): part of the garment?
assert 0.4 < cloth.float().mean() < 0.6

records = []
for seed, t in itertools.product(range(3), (20, 140)):
    for stage, weights in recorded_maps(unets[seed, True], t).items():
        on_cloth = (weights * cloth[:, None, None].float()).sum(
            dim=-1
        )  # (pictures, heads, queries)
        spread = (weights * weights.clamp(min=1e-9).log()).sum(dim=-1).neg().exp().mean(dim=(0, 2))
        far = (weights * distance).sum(dim=-1).mean(dim=(0, 2))
        for head in range(2):
            gap = on_cloth[:, head][cloth].mean() - on_cloth[:, head][~cloth].mean()
            records.append(
                (seed, t, stage, head, spread[head].item(), far[head].item(), gap.item())
            )
looks = pd.DataFrame(records, columns=["seed", "t", "stage", "head", "spread", "far", "gap"])

assert looks.spread.min() > 10  # of 49: no head picks out a few pixels
assert looks.far.between(3.0, 4.3).all()  # evenly spread weights would give 3.6
sharpest = looks.groupby(["seed", "t"]).gap.max().unstack()
assert (sharpest[20] > 0.15).all()  # in each network a head tells garment from background
assert sharpest[20].mean() > sharpest[140].mean()  # less so in the noise

# %% [markdown]
# **What does it look like?** One picture, two of its coarse pixels, one on the garment and one on the background, and for each
# network the head that tells the two apart best.

# %% tags=["hide-input"]
pullover = int((test_batch.labels[:200] == 2).nonzero()[0])
asked = {"garment": 4 * 7 + 3, "background": 0 * 7 + 0}
assert cloth[pullover, asked["garment"]] and not cloth[pullover, asked["background"]]
fig, axes = cu.subplots(
    2, 4, width=7.6, height=3.6,
    alt="A pullover with little noise, and the weights of two of its coarse pixels in three networks. The pixel on the garment has most "
    "of its weight on the garment, the pixel in the corner has more on the background, in all three.",
)  # fmt: skip
for line, (where, pixel) in zip(axes, asked.items(), strict=True):
    line[0].imshow(test_batch.images[pullover, 0], cmap="gray", vmin=-1, vmax=1)
    line[0].set_ylabel(f"a pixel on\nthe {where}", fontsize=9)
    for seed, ax in enumerate(line[1:]):
        early = looks[(looks.seed == seed) & (looks.t == 20)]
        best_head = early.loc[early.gap.idxmax()]
        weights = recorded_maps(unets[seed, True], 20)[best_head.stage][pullover, best_head["head"]]
        image = ax.imshow(weights[pixel].view(7, 7), cmap="Blues", vmin=0, vmax=0.08)
        ax.set_title(f"seed {seed}" if where == "garment" else "", fontsize=9)
    for ax, size in zip(line, (2, 1, 1, 1), strict=True):
        row, column = divmod(pixel, 7)
        ax.plot(
            (column + 0.5) * size - 0.5, (row + 0.5) * size - 0.5, "s",
            markersize=9, markerfacecolor="none", color=cu.COLORS["vermilion"],
        )  # fmt: skip
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
fig.colorbar(image, ax=axes, shrink=0.7, pad=0.02, extend="max").outline.set_visible(False)
fig

# %% [markdown]
# Three things hold for all three networks:
#
# - **The maps are broad.** The weights of a pixel are spread as over twenty to forty-six of the 49 (the exponential of their entropy).
# - **They do not look near.** The mean distance is about what evenly spread weights would give. Neighbors are the business of
#   the convolutions.
# - **In each network some head has sorted garment and background:** pixels on the garment give garment pixels more weight than
#   background pixels do. In heavy noise, where nobody can tell which is which, it fades.
#
# Which head it is, and in which stage, depends on the seed. And all this is far from the crisp twins above. Where the task did not force it, nothing crisp was learned. Walk over the picture: move row and
# column from the garment to the background, and watch which heads change their mind. Then turn up the noise.

# %%
cu.explore.pixels(unets[0, True], diffusion)

# %% [markdown]
# ## What goes wrong
#
# **`view` for `transpose`.** Shown above; the test is to change one pixel. It has a twin on the way back: tokens $(B, n, C)$ turned
# into pictures by `view(B, C, H, W)`.

# %%
tokens = torch.randn(2, 12, 8)  # 3 × 4 pixels, 8 channels
back = tokens.transpose(1, 2).view(2, 8, 3, 4)
wrong = tokens.view(2, 8, 3, 4)
assert_close(back[0, :, 1, 2], tokens[0, 1 * 4 + 2])  # pixel (1, 2) is token 6
assert not torch.allclose(wrong[0, :, 1, 2], tokens[0, 6])

# %% [markdown]
# **Division by the wrong $d$.** With heads, $d$ is the size of a head, $C / h$. And $d^{-1/4}$ belongs on *both* factors: on one only,
# scores are too large by $d^{1/4}$; $d^{-1/2}$ on both makes them too small by $\sqrt d$. Variance tells.

# %%
q, k = torch.randn(2, 300, 64)
for power_q, power_k, variance in ((0.25, 0.25, 1), (0.25, 0, 8), (0.5, 0.5, 1 / 64)):
    scores = (q * 64**-power_q) @ (k * 64**-power_k).T
    assert abs(scores.var() / variance - 1) < 0.1

# %% [markdown]
# **Pictures from 0 to 1.** Noise has mean 0, and so should the picture: data is scaled to $[-1, 1]$. With $[0, 1]$ the last step is still noise,
# but the sampler cuts its guesses to $[-1, 1]$, and half of that range never occurs. The loader gives the right range. **Sizes that cannot be halved** (7 is odd) and
# **steps that do not exist** should be refused in words.

# %%
assert test_batch.images.min() == -1 and test_batch.images.max() == 1
for attempt in (
    lambda: cu.UNet()(torch.zeros(1, 1, 7, 7), torch.ones(1)),
    lambda: diffusion.add_noise(boot, torch.tensor([201]), boot),
    lambda: cu.PixelAttention(30, num_heads=4),
):
    try:
        attempt()
        raise AssertionError("expected an error")
    except ValueError as error:
        print(error)

# %% [markdown]
# **A lucky seed.** Compare one network with and one without attention, each measured on its own draws of noise, and you
# may "find" anything. How far apart are two measurements of the *same* network?

# %%
repeated = [
    diffusion.errors(unets[0, True], test_batch.images[:200], test_batch.labels[:200], seed=s)[
        0
    ].mean()
    for s in range(12)
]
scatter = torch.stack(repeated).std()
assert scatter > abs(differences.mean())  # more than what we wanted to measure

# %% [markdown]
# ### Exercise 5 · Find the bug
# *12 minutes · ★★★*
#
# A colleague has copied the heads of the block from another project, and loads the weights of a trained `cu.PixelAttention`. With one
# head all is well. With two, samples turn to porridge; no error anywhere. The function stops before the output convolution.


# %%
def buggy_pixel_heads(x, qkv_weight, qkv_bias, num_heads):
    """Joined heads of x (batch, channels, height, width), qkv_weight (3 · channels, channels, 1)."""
    batch, channels, height, width = x.shape
    qkv = F.conv1d(x.flatten(2), qkv_weight, qkv_bias)
    size = channels // num_heads
    q, k, v = qkv.reshape(batch * num_heads, 3 * size, height * width).split(size, dim=1)
    scale = size**-0.25
    weights = torch.einsum("bdq,bdk->bqk", q * scale, k * scale).softmax(dim=-1)
    return torch.einsum("bqk,bdk->bdq", weights, v).reshape(x.shape)


def joined_heads(x, block):
    """The same by the library: the block's norm left out, its output convolution the identity."""
    thirds = block.qkv(x.flatten(2)).transpose(1, 2).chunk(3, dim=-1)
    q, k, v = (cu.split_heads(third, block.num_heads) for third in thirds)
    joined = cu.merge_heads(cu.scaled_dot_product_attention(q, k, v))
    return joined.transpose(1, 2).reshape(x.shape)


x = torch.randn(2, 16, 4, 4)
for heads in (1, 2):
    block = cu.PixelAttention(16, heads).requires_grad_(False)
    found = buggy_pixel_heads(x, block.qkv.weight, block.qkv.bias, heads)
    assert torch.allclose(found, joined_heads(x, block), atol=1e-4) == (heads == 1)

# %% [markdown]
# Which channels land in the queries of head 1? Write it right.


# %% tags=["exercise"]
def fixed_pixel_heads(x, qkv_weight, qkv_bias, num_heads):
    """Joined heads of x (batch, channels, height, width), qkv_weight (3 · channels, channels, 1)."""
    ...


# %% tags=["check"]
cu.checks.fixed_pixel_heads(fixed_pixel_heads)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_pixel_heads(x, qkv_weight, qkv_bias, num_heads):
    """Joined heads of x (batch, channels, height, width), qkv_weight (3 · channels, channels, 1)."""
    batch, channels, height, width = x.shape
    qkv = F.conv1d(x.flatten(2), qkv_weight, qkv_bias)
    size = channels // num_heads
    # First into queries, keys and values, and only then into heads.
    q, k, v = (
        third.reshape(batch * num_heads, size, height * width) for third in qkv.chunk(3, dim=1)
    )
    scale = size**-0.25
    weights = torch.einsum("bdq,bdk->bqk", q * scale, k * scale).softmax(dim=-1)
    return torch.einsum("bqk,bdk->bdq", weights, v).reshape(x.shape)


cu.checks.fixed_pixel_heads(fixed_pixel_heads)

# %% [markdown]
# Both orders are in use: in the code of Dhariwal and Nichol there are two classes, one for each order, so that old weights
# can still be loaded. Neither is wrong. Weights trained with one and read with the other are.
#
# ## At full size
#
# On a GPU: all 60,000 pictures at $28 \times 28$, three levels, 64 to 128 channels, attention at $14 \times 14$ and $7 \times 7$ with four
# heads, 20 passes, with the block and without. Where there is no GPU, the cell shows the recorded run, if there is one.


# %% tags=["gpu", "nbval-ignore-output"]
def denoise_fashion(*, quick=False):
    """Held-out loss of a U-Net with three levels on all of Fashion-MNIST, with attention and without."""
    if quick:
        train, test = (cu.load_fashion_mnist(split).take(20) for split in ("train", "test"))
    else:
        train, test = (cu.load_fashion_mnist(split, full=True) for split in ("train", "test"))
    diffusion = cu.Diffusion(cu.cosine_schedule(1000))
    held_out = next(iter(cu.ImageLoader(test, batch_size=len(test), shuffle=False)))
    figures = {}
    for attends in (False, True):
        cu.seed_everything(0)
        network = cu.UNet(
            widths=(16, 16, 16) if quick else (64, 128, 128),
            attention=(False, attends, attends),
            num_heads=4,
            num_classes=10,
        )
        loader = cu.ImageLoader(train, batch_size=10 if quick else 128)
        epochs = 1 if quick else 20
        steps = epochs * len(loader)
        trainer = cu.Trainer(
            diffusion.loss, epochs=epochs, lr=1e-3, schedule=cu.warmup_decay(steps // 20, steps)
        )
        trainer.fit(network, loader)
        batch = held_out.to(trainer.device)
        errors, _ = diffusion.errors(network, batch.images, batch.labels)
        figures["loss with attention" if attends else "loss without"] = errors.mean().item()
    return figures


cu.stored_run("attention_between_pixels", denoise_fashion)

# %% [markdown]
# ## One formula, eleven chapters
#
# It began with a word looked up in a database and ends with pixels that make a picture. **What has changed on the way?** Only where queries, keys and
# values come from, and who may look at whom:
#
# $$\mathrm{Attention}(\mathbf q, \mathcal D) = \sum_i \alpha(\mathbf q, \mathbf k_i)\,\mathbf v_i .$$
#
# Eleven maps, all made by *one* function from queries, keys and a mask:


# %%
def eleven_maps():
    """Chapter → the weights of a small example, each softmax(q·k · scale) under a mask."""
    eye, line = torch.eye(8), torch.linspace(-1, 1, 8)[:, None]
    on_line = torch.cat(
        [line, -(line**2) / 2], dim=1
    )  # q·k with (x, 1) is −(x − y)²/2, up to a shift
    constant = torch.cat([line, torch.ones(8, 1)], dim=1)
    waves = cu.sinusoidal_table(8, 32)
    patches = torch.tensor([0, 0, 1, 1, 0, 0, 1, 1])
    twins = eye[torch.arange(8).view(2, 4).flip(-1).flatten()]
    causal = cu.causal_mask(8)
    blanks = torch.ones(8, 8, dtype=torch.bool)
    blanks[:, [2, 5]] = False
    return {
        "01 look-up": cu.dot_product_weights(eye, eye, scale=4.0),
        "02 kernel": cu.dot_product_weights(constant, on_line, scale=12.0),
        "03 padding": cu.dot_product_weights(eye, eye, cu.padding_mask(torch.tensor([5]), 8)[0, 0], scale=2.0),
        "04 alignment": cu.dot_product_weights(eye[[0, 2, 1, 3, 4, 6, 7, 5]], eye, scale=4.0),
        "05 two heads": cu.dot_product_weights(eye + eye.roll(3, 1), eye, scale=4.0),
        "06 positions": cu.dot_product_weights(waves, waves, scale=1.0),
        "07 causal": cu.dot_product_weights(waves, waves, causal, scale=0.5),
        "08 at the start": cu.dot_product_weights(eye, eye, causal, scale=0.1),
        "09 masked tokens": cu.dot_product_weights(eye + eye.roll(-1, 1), eye, blanks, scale=3.0),
        "10 patches": cu.dot_product_weights(F.one_hot(patches).float(), F.one_hot(patches).float(), scale=4.0),
        "11 pixels": cu.dot_product_weights(eye, twins, scale=4.0),
    }  # fmt: skip


eleven = eleven_maps()
for name, weights in eleven.items():
    assert weights.shape == (8, 8) and (weights >= 0).all(), name
    assert_close(weights.sum(dim=-1), torch.ones(8))

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    2, 6, width=8.8, height=3.3,
    alt="Eleven small maps of 8 by 8, one per chapter: a diagonal, a band, five columns, crossed words, two diagonals, nearness, "
    "a triangle, an even triangle, two empty columns, a checkerboard of patches, and two anti-diagonals of mirrored pixels.",
)  # fmt: skip
for ax, (name, weights) in zip(axes.flat, eleven.items(), strict=False):
    cu.heatmap(ax, weights, xlabel=None, ylabel=None, title=name)
    ax.set_title(name, fontsize=9)
    ax.set(xticks=[], yticks=[])
axes[1, 5].set_axis_off()
axes[1, 5].text(
    0,
    0.5,
    "rows: queries\ncolumns: keys\nscale: 0 to 1",
    va="center",
    fontsize=9,
    transform=axes[1, 5].transAxes,
)
axes[0, 0].set_ylabel("queries", fontsize=9)
axes[1, 0].set_ylabel("queries", fontsize=9)
fig

# %% [markdown]
# | chapter | query | keys | values | weights |
# |---|---|---|---|---|
# | [01](01_queries_keys_values.ipynb) | a word | words of a database | what is stored with them | equal, top-k, softmax of similarity |
# | [02](02_kernel_regression.ipynb) | a point $x$ | the points of the data | their $y$ | a kernel of the distance |
# | [03](03_scoring_functions.ipynb) | a vector | vectors, some of them padding | vectors | masked softmax of a dot product or of a small network |
# | [06](06_bahdanau_attention.ipynb) | the decoder's state | states of the encoder | the same states | additive scores, learned: an alignment |
# | [05](08_multi_head_attention.ipynb) | a request, projected for each head | drawers | balls | one softmax per head |
# | [06](09_positions.ipynb) | a token and its place | all tokens and their places | all tokens | dot products that fall with the distance |
# | [07](10_transformer.ipynb) | a token of the target | earlier tokens; tokens of the source | the same | causal mask; all layers and heads |
# | [08](12_training_transformers.ipynb) | as in 07 | as in 07 | as in 07 | nearly even at first, made sharp by training |
# | [09](13_gpt.ipynb) | a token, or a mask in its place | earlier tokens, or all | the same | learned from plain text; heads may share keys |
# | [10](15_vision_transformers.ipynb) | a patch, or the class token | all patches | all patches | learned; the rollout joins all layers |
# | 11 | a pixel | all pixels of a coarse level | all pixels | the same formula, in columns |
#
# Read down the last column: the weights began as a rule that somebody wrote, became a formula with one parameter, then learned, then learned
# many times over. The sum above never changed.
#
# ## Take-aways
#
# - Non-local means is attention among pixels with nothing learned: patches are queries and keys, pixels are values. It halves the error of the best blur.
# - Pixels become tokens by `flatten(2).transpose(1, 2)`; a `view` alone has the right shape and the wrong tokens. A 1-D convolution of width 1 to $3C$ is three linear maps, and the whole block is linear multi-head attention.
# - Group norm before, input around, zeros at the end: the block begins as the identity. It does not know places; borders tell the convolutions. Its cost grows with the fourth power of the side, so it stands on coarse levels.
# - A diffusion model adds noise by one formula and learns the mean noise by regression. Samples are guesses, taken back to noise a little less each time.
# - Attention pays where information is far away: it solved the twins, which no pixelwise network can. On clothes at $14 \times 14$ convolutions see nearly everything, and the block gained less than it cost.
#
# ## Quiz

# %%
cu.quiz("attention_between_pixels")

# %% [markdown]
# ## References
#
# - Buades, A., Coll, B. and Morel, J.-M. (2005). [A non-local algorithm for image denoising](https://doi.org/10.1109/CVPR.2005.38). CVPR.
# - Dhariwal, P. and Nichol, A. (2021). [Diffusion models beat GANs on image synthesis](https://arxiv.org/abs/2105.05233). NeurIPS.
# - Ho, J., Jain, A. and Abbeel, P. (2020). [Denoising diffusion probabilistic models](https://arxiv.org/abs/2006.11239). NeurIPS.
# - Islam, M. A., Jia, S. and Bruce, N. D. B. (2020). [How much position information do convolutional neural networks encode?](https://arxiv.org/abs/2001.08248). ICLR.
# - Kak, A. (2025). [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/). Lecture slides, Purdue University: queries, keys and values for inter-pixel attention.
# - Nichol, A. and Dhariwal, P. (2021). [Improved denoising diffusion probabilistic models](https://arxiv.org/abs/2102.09672). ICML.
# - Ronneberger, O., Fischer, P. and Brox, T. (2015). [U-Net: Convolutional networks for biomedical image segmentation](https://arxiv.org/abs/1505.04597). MICCAI.
# - Song, J., Meng, C. and Ermon, S. (2021). [Denoising diffusion implicit models](https://arxiv.org/abs/2010.02502). ICLR.
# - Wang, X., Girshick, R., Gupta, A. and He, K. (2018). [Non-local neural networks](https://arxiv.org/abs/1711.07971). CVPR.
# - Wu, Y. and He, K. (2018). [Group normalization](https://arxiv.org/abs/1803.08494). ECCV.
