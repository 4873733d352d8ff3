# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention pooling: kernel regression
#
# Forty noisy measurements lie on the table. What is the value at a place where nobody measured? In 1964 Nadaraya and
# Watson, independently, gave the answer that attention still gives: *average the values you have, and let the near
# ones count more*. The place asked about is the **query**, the places measured are the **keys**, the measurements are
# the **values**. Nothing here is a neural network, and yet most of what attention does can be seen here already.
#
# After this chapter you can
#
# - predict from (key, value) pairs by hand, in a line of code, and with PyTorch's own attention operator;
# - say what the shape of a kernel changes (little) and what its width changes (almost everything);
# - compute the weights so that no width breaks them, and read a gap in a fit as an honest answer;
# - choose the width without a second data set, by leave-one-out and by gradient descent, and spot the leak when you
#   did it wrong;
# - say how fast the error falls with more data, and what many dimensions do to that.
#
# *75 minutes. You need [Queries, keys and values](01_queries_keys_values.ipynb): queries, keys, values, softmax.*

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## The data
#
# Two data sets go with us through the chapter. Both are drawn from a known function plus noise, so that we can
# measure how wrong an answer is. The first has 40 points and strong noise, the second 50 points and half of it:
#
# $$y = 2\sin x + x + \varepsilon,\quad \varepsilon\sim\mathcal N(0, 1)\qquad\text{and}\qquad
# y = 2\sin x + x^{0.8} + \varepsilon,\quad \varepsilon\sim\mathcal N(0, 0.5^2).$$
#
# By eye, how well could you draw the function through the points?

# %%
forty = cu.noisy_sine(40, noise=1)
fifty = cu.noisy_sine(50, power=0.8, noise=0.5)
queries = torch.linspace(0, 5, 101)

assert 0.7 < forty.truth(queries).std() < 1.1

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=8.4, sharey=True,
    alt="Two scatter plots. Both functions rise to about 4 near x = 2 and then dip; the forty "
    "points scatter about one unit around theirs, the fifty points half as much.",
)  # fmt: skip
titles = ("forty: noise 1", "fifty: noise 0.5")
for ax, data, title in zip(axes, (forty, fifty), titles, strict=True):
    ax.plot(queries, data.truth(queries), "--", color="black", label="truth")
    ax.plot(data.x, data.y, "o", color=cu.COLORS["blue"], markersize=4, label="data")
    ax.set(title=title, xlabel="x", ylabel="y")
    ax.legend()
fig

# %% [markdown]
# On the left the noise is as large as the ups and downs of the function: both have a standard deviation near 1. No
# method can predict a *new* measurement there with an expected squared error below 1, the variance of its noise. What
# a method can get right is the function.

# %% [markdown]
# ## The baseline: average pooling
#
# What is the least we can do? Ignore the query, and answer with the mean of all values:
#
# $$f(q) = \frac1n\sum_{i=1}^n v_i .$$
#
# This is attention with uniform weights, **average pooling**. By hand: values 2, 3, 7 have the mean $12/3 = 4$, and
# the squared errors $4, 1, 9$ with the mean $14/3\approx 4.67$. No other constant does better: the derivative of
# $\sum_i (v_i - c)^2$ is $-2\sum_i (v_i - c)$, which is zero at the mean only.

# %%
values = torch.tensor([2.0, 3.0, 7.0])
constants = torch.linspace(0, 8, 161)
errors = (values[None, :] - constants[:, None]).square().mean(1)

assert_close(constants[errors.argmin()], values.mean())
assert_close(errors.min(), torch.tensor(14 / 3))

# %% [markdown]
# How good is it on the fifty points?


# %%
def error_to_truth(prediction, data):
    """Mean squared error against the function without noise, at the 101 queries."""
    return (prediction - data.truth(queries)).square().mean().item()


average = fifty.y.mean().expand(101)
baseline = error_to_truth(average, fifty)
assert 0.6 < baseline < 1.1
print(f"squared error of average pooling: {baseline:.1f}")

# %% [markdown]
# In the next figure it is the flat line. It has learned one number, and what remains is about the variance of the
# function itself. Everything below has to beat it.

# %% [markdown]
# ## Near keys count more
#
# How much more? Let a **kernel** $K$ turn the distance between query and key into a similarity, and normalize:
#
# $$f(q) = \sum_{i=1}^n \alpha(q, k_i)\, v_i ,\qquad
# \alpha(q, k_i) = \frac{K(u_i)}{\sum_{j} K(u_j)},\qquad u_i = \frac{\lVert q - k_i\rVert}{\sigma}.$$
#
# This is the **Nadaraya–Watson estimator**. The $\alpha$ are attention weights: not negative, with sum 1. The
# **width** $\sigma$ is the unit in which distance is measured. With the Gaussian kernel $K(u) = e^{-u^2/2}$ the
# normalization is a softmax, $\alpha(q, k_i) = \mathrm{softmax}_i(-u_i^2/2)$.
#
# ### By hand
#
# Three keys 0, 1, 3 with the values 2, 3, 7; the query is 1 and $\sigma = 1$. The distances are 1, 0, 2, so the
# kernel gives $e^{-1/2} = 0.607$, $1$ and $e^{-2} = 0.135$, together $1.742$. Divide, multiply by the values, add:
#
# $$f(1) = 0.348\cdot 2 + 0.574\cdot 3 + 0.078\cdot 7 = 0.696 + 1.722 + 0.544 \approx 2.96 .$$

# %%
keys = torch.tensor([0.0, 1.0, 3.0])
kernel = torch.exp(-((1.0 - keys) ** 2) / 2)
weights = kernel / kernel.sum()

assert_close(weights, torch.tensor([0.348, 0.574, 0.078]), atol=1e-3, rtol=0)
assert_close(weights @ values, torch.tensor(2.96), atol=0.005, rtol=0)
pd.DataFrame(
    {
        "key": keys,
        "value": values,
        "kernel": kernel,
        "weight": weights,
        "weight × value": weights * values,
    }
).round(3)

# %% [markdown]
# The average was 4. The far key with its 7 has nearly lost its voice, and the answer is close to the 3 that was
# measured at the query itself. Close, not equal: a kernel regression does not pass through its data, and with noise
# it should not.
#
# ### In code
#
# All queries at once: a matrix of differences, a softmax over the keys, one matrix product.


# %%
def gaussian_pooling(queries, keys, values, width=1.0):
    """(queries,), (keys,), (keys,) → predictions (queries,) and weights (queries, keys)."""
    offsets = queries[:, None] - keys[None, :]  # (queries, keys)
    weights = torch.softmax(-((offsets / width) ** 2) / 2, dim=1)
    return weights @ values, weights


fit, weights = gaussian_pooling(queries, fifty.x, fifty.y, width=0.5)
assert weights.shape == (101, 50)
assert_close(weights.sum(1), torch.ones(101))

# %% [markdown]
# Does it follow the function better than the average does? And which keys does each query listen to?

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=3.2,
    alt="Left: the Gaussian fit of width 0.5 follows rise and dip of the function, while the "
    "average is a flat line. Right: the weights form a band along the diagonal, since keys "
    "near the query weigh most.",
)  # fmt: skip
left.plot(fifty.x, fifty.y, "o", color="0.6", markersize=4, label="data")
left.plot(queries, fifty.truth(queries), "--", color="black", label="truth")
left.plot(queries, average, ":", color=cu.COLORS["blue"], label="average")
left.plot(queries, fit, color=cu.COLORS["vermilion"], label="Gaussian, σ = 0.5")
left.set(xlabel="x", ylabel="y", ylim=(-1.2, 6.8))
left.legend(ncols=2, loc="upper right")
image = cu.heatmap(right, weights, xlabel="Keys, sorted", ylabel="Queries", vmax=0.2)
right.set_yticks([0, 50, 100], ["x = 0", "2.5", "5"])
bar = fig.colorbar(image, ax=right, label="weight")
fig

# %%
assert error_to_truth(fit, fifty) < 0.25 * baseline
assert weights[[0, -1]].amax(1).min() > 1.2 * weights[50].max()

# %% [markdown]
# The squared error is less than a quarter of the baseline's. Queries and keys are sorted, so the weights lie along
# the diagonal: the nearer a key, the darker. The corners are darkest. There, half of the neighborhood is empty, and
# fewer keys share the weight.
#
# Look also at the left end of the fit: it starts too high. That is no accident, and *At the edge* comes back to it.
#
# ### The same thing three times
#
# Our function, the course's library, and PyTorch's operator must agree, in outputs *and* gradients. The operator
# computes $\mathrm{softmax}(s\,q k^\top + b)\,v$ with a scale $s$ and a bias $b$. Multiply out:
#
# $$-\frac{(q-k)^2}{2\sigma^2} = \underbrace{-\frac{q^2}{2\sigma^2}}_{\text{same for all keys}} + \frac{q\,k}{\sigma^2} - \frac{k^2}{2\sigma^2}.$$
#
# The first term shifts a whole row, which a softmax does not see. So Gaussian kernel regression *is* dot-product
# attention with the scale $1/\sigma^2$ and, for each key, the bias $-k^2/2\sigma^2$. [Scoring functions](03_scoring_functions.ipynb) starts from here.


# %%
def operator_pooling(queries, keys, values, width):
    """The same regression by PyTorch's attention operator."""
    bias = -(keys**2) / (2 * width**2)
    return F.scaled_dot_product_attention(
        queries[:, None], keys[:, None], values[:, None],
        attn_mask=bias.expand(len(queries), -1), scale=1 / width**2,
    )[:, 0]  # fmt: skip


def outputs_and_gradients(pooling):
    """Run on random float64 inputs; return the predictions and the gradient of each input."""
    torch.manual_seed(1)
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in (6, 9, 9)]
    outputs = pooling(*inputs)
    return outputs, *torch.autograd.grad(outputs.sin().sum(), inputs)


# %%
ours = outputs_and_gradients(lambda q, k, v: gaussian_pooling(q, k, v, 0.7)[0])
library = outputs_and_gradients(lambda q, k, v: cu.nadaraya_watson(q, k, v, width=0.7))
operator = outputs_and_gradients(lambda q, k, v: operator_pooling(q, k, v, 0.7))

assert_close(ours, library)
assert_close(ours, operator)

# %% [markdown]
# From now on we use `cu.kernel_weights` and `cu.nadaraya_watson`, and one abbreviation:


# %%
def predict(data, width, kernel="gaussian"):
    """The fit at the 101 queries."""
    return cu.nadaraya_watson(queries, data.x, data.y, kernel=kernel, width=width)


assert_close(predict(fifty, 0.5), fit)

# %% [markdown]
# Two properties follow from the formula alone. An average never leaves the range of the values, so kernel regression
# **cannot extrapolate**. And only distances enter, so moving and turning everything together changes nothing.

# %%
far = cu.nadaraya_watson(torch.tensor([-50.0, 50.0]), fifty.x, fifty.y, width=0.5)
assert_close(far, fifty.y[[0, -1]], atol=1e-3, rtol=0)  # far outside, the outermost key decides

points, centers = torch.randn(5, 2), torch.randn(7, 2)
turn = torch.tensor([[0.8, -0.6], [0.6, 0.8]])  # its columns are orthogonal unit vectors
assert_close(
    cu.kernel_weights(points @ turn + 3, centers @ turn + 3), cu.kernel_weights(points, centers)
)

# %% [markdown]
# ## Five kernels
#
# Why a Gaussian? Because it is smooth and never zero, not because anything requires it. Which other shapes are in
# use, and how far do they reach?
#
# | kernel | $K(u)$ | reach | by hand at $u = \tfrac12$ |
# |---|---|---|---|
# | Gaussian | $e^{-u^2/2}$ | all keys | 0.882 |
# | boxcar | $1$ if $u\le 1$, else $0$ | $\sigma$ | 1 |
# | constant | $1$ | all keys, alike | 1 |
# | triangular | $\max(0, 1-u)$ | $\sigma$ | 0.5 |
# | Epanechnikov | $\max(0, 1-u^2)$ | $\sigma$ | 0.75 |

# %%
for name, by_hand in zip(cu.KERNELS, (0.882, 1, 1, 0.5, 0.75), strict=True):
    value = cu.kernel_values(torch.tensor(0.5), kernel=name)
    assert_close(value, torch.tensor(float(by_hand)), atol=1e-3, rtol=0)

# %% tags=["hide-input"]
u = torch.linspace(-2.5, 2.5, 501)
fig, axes = cu.subplots(
    1, 5, width=9, height=2.0, sharey=True,
    alt="Five curves over u from -2.5 to 2.5: a bell, a box from -1 to 1, a constant line, a "
    "triangle and a parabola, the last two zero beyond 1.",
)  # fmt: skip
for ax, name in zip(axes, cu.KERNELS, strict=True):
    ax.plot(u, cu.kernel_values(u, kernel=name), color=cu.COLORS["blue"])
    ax.set(title=name.capitalize(), xlabel="u", xticks=[-2, -1, 0, 1, 2])
axes[0].set_ylabel("K(u)")
fig

# %% [markdown]
# Boxcar, triangular and Epanechnikov kernels are **compact**: a key further away than $\sigma$ has no say at all.
#
# *A name to be careful with.* Some lecture notes and one popular textbook plot $\max(0, 1-u)$ under the name
# Epanechnikov. That is the triangular kernel. Epanechnikov's kernel (1969) is the parabola $1-u^2$, and the
# difference is no pedantry: the parabola is the one with an optimality theorem. We come to it in a moment.
#
# How do the five fits look on the forty points, all with the width 1?

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 5, width=9, height=2.3, sharey=True,
    alt="Fits of five kernels to the forty points. Gaussian: smooth and too flat. Boxcar: a "
    "staircase near the truth. Constant: a flat line. Triangular and Epanechnikov: smooth "
    "and close to the truth.",
)  # fmt: skip
for ax, name in zip(axes, cu.KERNELS, strict=True):
    ax.plot(forty.x, forty.y, "o", color="0.7", markersize=3)
    ax.plot(queries, forty.truth(queries), "--", color="black", linewidth=1.2)
    ax.plot(queries, predict(forty, 1.0, name), color=cu.COLORS["vermilion"])
    ax.set(title=name.capitalize(), xlabel="x")
axes[0].set_ylabel("y")
fig

# %%
maps = torch.stack([cu.kernel_weights(queries[::2], forty.x, kernel=name) for name in cu.KERNELS])
assert_close(maps.sum(-1), torch.ones(5, 51))
assert maps[3].max() > 8 * maps[2].max()  # triangular against constant
cu.show_heatmaps(
    maps, titles=[name.capitalize() for name in cu.KERNELS], vmax=0.3, width=9, height=2.3,
    alt="Weights of the five kernels at width 1: a soft band, a band with hard edges, a uniform "
    "gray, and two bands that fade to nothing at the edges.",
)  # fmt: skip

# %% [markdown]
# Dashed is the truth. The boxcar's fit is a staircase: each step is a key entering or leaving the box. The constant
# kernel is average pooling again. In the maps, each row sums to 1, so a narrower band is darker. All five panels
# share one scale, which ends at 0.3. With a scale of its own for each panel, the uniform map would be as dark as the
# triangular one, whose largest weight is over eight times as large.
#
# ### Is the Gaussian worse?
#
# It looks too flat. But the comparison was unfair: at the same $\sigma$ the Gaussian is the widest of all, with a
# standard deviation of $1$, against $1/\sqrt3$ for the boxcar, $1/\sqrt6$ for the triangle and $1/\sqrt5$ for the
# parabola. Give each kernel *its own best width*, and what remains of the differences? There is theory for it: for
# $n\to\infty$ the error of a kernel at its best width depends on its shape only through
# $C(K) = \mathrm{sd}(K)\int K(u)^2\,\mathrm du$, for $K$ scaled to unit area, and the number of data needed for the
# same error is proportional to $C(K)$.

# %%
u = torch.linspace(-8, 8, 160_001, dtype=torch.float64)
compact = ("epanechnikov", "triangular", "gaussian", "boxcar")
rows = []
for name in compact:
    density = cu.kernel_values(u, kernel=name)
    density = density / torch.trapezoid(density, u)
    deviation = torch.trapezoid(u**2 * density, u).sqrt()
    cost = deviation * torch.trapezoid(density**2, u)
    width, errors = cu.best_width(forty.x, forty.y, torch.logspace(-1, 1, 61), kernel=name)
    rows.append((name, deviation.item(), cost.item(), width, errors.min().item()))
table = pd.DataFrame(rows, columns=["kernel", "sd", "C(K)", "best width", "best error"]).set_index(
    "kernel"
)
table["points needed"] = table["C(K)"] / table["C(K)"].iloc[0]
table[["sd", "points needed", "best width", "best error"]].round(2)

# %%
assert (table["points needed"] >= 1).all() and (table["points needed"] < 1.08).all()
assert abs(table["points needed"]["gaussian"] - 1.05) < 0.005
assert table["best error"].max() < 1.06 * table["best error"].min()
assert table["best width"].max() > 1.8 * table["best width"].min()
assert abs(table["C(K)"]["gaussian"] - 1 / (2 * math.sqrt(math.pi))) < 1e-6

# %% [markdown]
# Epanechnikov's parabola is the best of all nonnegative kernels; that is the theorem. A Gaussian needs 5 % more
# points for the same error, a boxcar 8 %. On our forty points the four are within a few percent of each other (the
# last two columns: the width with the smallest leave-one-out error, which *Choosing the width* explains), and the order is
# chance: here the boxcar comes first. **The shape of the kernel hardly matters.** What does?

# %% [markdown]
# ## The width
#
# The same Gaussian with $\sigma = 0.1, 0.2, 0.5, 1$: what changes in the fit, and in the weights?

# %% tags=["hide-input"]
widths = (0.1, 0.2, 0.5, 1.0)
fig, axes = cu.subplots(
    1, 4, width=9, height=2.5, sharey=True,
    alt="Gaussian fits to the forty points at four widths. At 0.1 the curve chases single "
    "points, at 0.2 it wobbles around the truth, at 0.5 it is smooth and a little flat, at "
    "1 it is far too flat.",
)  # fmt: skip
for ax, width in zip(axes, widths, strict=True):
    ax.plot(forty.x, forty.y, "o", color="0.7", markersize=3)
    ax.plot(queries, forty.truth(queries), "--", color="black", linewidth=1.2)
    ax.plot(queries, predict(forty, width), color=cu.COLORS["vermilion"])
    ax.set(title=f"σ = {width:g}", xlabel="x")
axes[0].set_ylabel("y")
fig

# %%
maps = torch.stack([cu.kernel_weights(queries[::2], forty.x, width=width) for width in widths])
cu.show_heatmaps(
    maps, titles=[f"σ = {width:g}" for width in widths], vmax=0.5, width=9, height=2.6,
    alt="Weights at four widths. At 0.1 a thin dark line: one or two keys for each query. The "
    "line widens and pales until, at 1, each query averages over half of all keys.",
)  # fmt: skip

# %% [markdown]
# Narrow: few keys, a nervous fit. Wide: many keys, a smooth fit that misses the bends. How many keys does a query
# really use? A useful count is $1/\sum_i \alpha_i^2$, the **effective number of keys**. By hand: two weights of ½
# give $1/(\tfrac14+\tfrac14) = 2$, $n$ equal weights give $n$, and a one-hot row gives 1.


# %%
def keys_used(weights):
    """Effective number of keys, averaged over the queries."""
    return (1 / weights.square().sum(1)).mean().item()


assert keys_used(torch.tensor([[0.5, 0.5, 0.0]])) == 2

rows = []
for width in widths:
    on_data = cu.nadaraya_watson(forty.x, forty.x, forty.y, width=width)
    training = (on_data - forty.y).square().mean().item()
    truth = error_to_truth(predict(forty, width), forty)
    used = keys_used(cu.kernel_weights(queries, forty.x, width=width))
    rows.append((width, used, training, truth))
table = pd.DataFrame(rows, columns=["width", "keys used", "training error", "error to truth"])
table.set_index("width").round(2)

# %%
assert table["training error"].is_monotonic_increasing
assert table["keys used"].is_monotonic_increasing
assert table["error to truth"].idxmin() in (1, 2)  # neither end is best

# %% [markdown]
# The training error prefers the narrowest width. The error against the truth does not: its best is in the middle.
# Why?
#
# ### Bias and variance
#
# Draw the forty points again and again, 200 times. At each query, the mean of the 200 fits misses the truth by the
# **bias**; around their mean the fits scatter with the **variance**. The expected squared error is bias² + variance,
# exactly. How do the two move with the width?

# %%
grid = torch.logspace(-1.2, 0.5, 18)
draws = [cu.noisy_sine(40, noise=1, seed=seed) for seed in range(200)]
fits = [torch.stack([predict(data, width) for data in draws]) for width in grid]
fits = torch.stack(fits)  # (widths, draws, queries)
truth = forty.truth(queries)
bias2 = (fits.mean(1) - truth).square().mean(1)
variance = fits.var(1, correction=0).mean(1)
total = (fits - truth).square().mean((1, 2))

assert_close(total, bias2 + variance)
assert bias2[-1] > 10 * bias2[0] and variance[0] > 5 * variance[-1]

# %%
cu.show_curves(
    grid, {"bias²": bias2, "variance": variance, "sum": total}, logx=True, xlabel="width σ", ylabel="squared error",
    alt="Over the width, bias squared rises from nearly zero to 0.8, variance falls from 0.6 to "
    "nearly zero, and their sum has a minimum in between, near a width of 0.4.",
)  # fmt: skip

# %% [markdown]
# Bias rises with the width: the average reaches over the bends. Variance falls: more noise is averaged away. The best
# width is where one gains as much as the other loses. This trade-off is all there is to kernel regression, and its
# cousin in attention is the temperature of [Queries, keys and values](01_queries_keys_values.ipynb).
#
# Now try it. **Move $\sigma$ to the far left:** the fit visits point after point, and the leave-one-out error on the
# right climbs. **Keep it there and choose Epanechnikov:** gray rows, gaps in the fit. **Far right:** every kernel
# becomes the average. Then find each kernel's lowest point: where is it, and how much lower is one kernel than
# another?

# %%
cu.explore.kernel_width(forty.x, forty.y, truth=forty.truth)

# %% [markdown]
# The positions differ by a factor of about two, because the kernels measure width differently; the depths hardly
# differ. These are the last two columns of the table of five kernels.

# %% [markdown]
# ## Zero divided by zero
#
# The formula has a denominator. Can it be zero? Take one key at distance 0.5 and $\sigma = 0.03$: $u = 16.7$, and
# $e^{-u^2/2} = e^{-139} \approx 10^{-60}$. The smallest positive number in float32 is about $10^{-45}$.


# %%
def ratio_pooling(queries, keys, values, width):
    """The formula, taken literally."""
    kernel = torch.exp(-(((queries[:, None] - keys[None, :]) / width) ** 2) / 2)
    return (kernel / kernel.sum(1, keepdim=True)) @ values


assert torch.exp(torch.tensor(-139.0)) == 0
literal = ratio_pooling(queries, forty.x, forty.y, 0.01)
softmax = predict(forty, 0.01)

assert literal.isnan().any() and softmax.isfinite().all()

# %% [markdown]
# The literal formula loses every query that lies further than about 14 widths from its nearest key; the softmax loses
# none. It subtracts the largest score of a row before it exponentiates, so the nearest key always contributes
# $e^0 = 1$ and the sum is at least 1. Nothing is changed by that: numerator and denominator are multiplied by the
# same number. At tiny widths the answer becomes the value of the nearest key; at huge ones the mean. No width breaks
# it:

# %%
nearest = forty.y[(queries[:, None] - forty.x).abs().argmin(1)]
assert_close(predict(forty, 1e-4), nearest)
assert_close(predict(forty, 1e4), forty.y.mean().expand(101))
for width in (1e-4, 1e-2, 1.0, 1e2, 1e4):
    assert cu.kernel_weights(queries.half(), forty.x.half(), width=width).isfinite().all()

# %% [markdown]
# (The last line is in float16, where already $u^2$ overflows from $u = 256$ on. The library subtracts the nearest
# key's squared distance *before* it divides by the width.)
#
# A compact kernel is different. If no key is in reach, there is no number that could be called the average of
# nothing. Adding a small $10^{-8}$ to the denominator, as one often sees, makes the answer 0: a number that looks
# like a measurement and is none. The library answers **NaN on purpose**, and a plot shows a gap. What does the
# difference look like?

# %%
gaps = predict(forty, 0.12, "epanechnikov")
kernel = cu.kernel_values((queries[:, None] - forty.x) / 0.12, kernel="epanechnikov")
zeros = (kernel / (kernel.sum(1, keepdim=True) + 1e-8)) @ forty.y

empty = (kernel == 0).all(1)
assert 0 < empty.sum() < 101
assert torch.equal(gaps.isnan(), empty)
assert (zeros[empty] == 0).all()

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.6, sharey=True,
    alt="Epanechnikov fits of width 0.12. Left: the curve has gaps where no data are near. "
    "Right: with a small constant in the denominator the curve falls to zero there, far "
    "from truth and data.",
)  # fmt: skip
titles = ("NaN: a gap", "+ 1e-8 in the denominator: invented zeros")
for ax, fit, title in zip(axes, (gaps, zeros), titles, strict=True):
    ax.plot(forty.x, forty.y, "o", color="0.7", markersize=4)
    ax.plot(queries, forty.truth(queries), "--", color="black", linewidth=1.2)
    ax.plot(queries, fit, color=cu.COLORS["vermilion"])
    ax.set(title=title, xlabel="x")
axes[0].set_ylabel("y")
fig

# %% [markdown]
# The gaps say: *I have no data here*. The spikes to zero say something false. (For masked attention the course
# decides otherwise: a query that may attend to nothing gets zeros, because a network adds that result to something
# else. [Scoring functions](03_scoring_functions.ipynb) gives the reasons.)
#
# ### Exercise 1 · Weights that survive
#
# *5 minutes · ★*
#
# Write `gaussian_weights(queries, keys, width)` for one-dimensional queries and keys: the weights (queries, keys) of
# the Gaussian kernel, finite at every width from $10^{-4}$ to $10^4$.


# %% tags=["exercise"]
def gaussian_weights(queries, keys, width):
    """(queries,), (keys,) → weights (queries, keys)."""
    ...


# %% tags=["check"]
cu.checks.gaussian_weights(gaussian_weights)


# %% tags=["solution"] jupyter={"source_hidden": true}
def gaussian_weights(queries, keys, width):
    """(queries,), (keys,) → weights (queries, keys)."""
    u = (queries[:, None] - keys[None, :]) / width
    return torch.softmax(-(u**2) / 2, dim=1)


cu.checks.gaussian_weights(gaussian_weights)

# %% [markdown]
# ## Choosing the width: leave one out
#
# In practice the truth is not known, and the training error always votes for the narrowest width. How can forty
# points judge a width honestly? **Predict each point from the other thirty-nine**, and compare:
#
# $$\mathrm{LOO}(\sigma) = \frac1n\sum_{i=1}^n \bigl(v_i - f_{-i}(k_i)\bigr)^2 ,\qquad f_{-i}(q) = \frac{\sum_{j\ne i} K(u_j)\,v_j}{\sum_{j\ne i}K(u_j)} .$$
#
# By hand, with the three points (0, 2), (1, 3), (3, 7) and $\sigma=1$. Leave out the middle one: the others are at
# distances 1 and 2, their weights are $0.607/0.742 = 0.818$ and $0.182$, the prediction is
# $0.818\cdot2 + 0.182\cdot7 = 2.912$ and the residual $3 - 2.912 = 0.088$. The outer two are worse off: predictions
# 3.072 and 2.924, residuals $-1.072$ and $4.076$. Together $(1.149 + 0.008 + 16.61)/3 = 5.92$.

# %%
keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
predictions = cu.leave_one_out(keys, values)

assert_close(predictions, torch.tensor([3.072, 2.912, 2.924]), atol=2e-3, rtol=0)
assert_close(cu.leave_one_out_error(keys, values), torch.tensor(5.92), atol=0.01, rtol=0)

# %% [markdown]
# In code, the point itself is *masked*: its score becomes $-\infty$ before the softmax, so that the others share all
# the weight. PyTorch's operator does the same when its bias is $-\infty$ on the diagonal.


# %%
def masked_pooling(keys, values, width):
    """Predict each value from all the others."""
    scores = -(((keys[:, None] - keys[None, :]) / width) ** 2) / 2
    itself = torch.eye(len(keys), dtype=torch.bool)
    return torch.softmax(scores.masked_fill(itself, -math.inf), dim=1) @ values


x, y = forty.x.double(), forty.y.double()
bias = (-(x**2) / (2 * 0.3**2)).expand(40, 40).clone().fill_diagonal_(-math.inf)
operator = F.scaled_dot_product_attention(
    x[:, None], x[:, None], y[:, None], attn_mask=bias, scale=1 / 0.3**2
)

assert_close(masked_pooling(x, y, 0.3), cu.leave_one_out(x, y, width=0.3))
assert_close(masked_pooling(x, y, 0.3), operator[:, 0])

# %% [markdown]
# Which width does it choose for the forty points, and how does its curve compare with the one we cannot see in
# practice, the error on fresh data (error against the truth plus 1, the variance of the noise)?

# %%
grid = torch.logspace(-2.7, 0.7, 69)
chosen, loo = cu.best_width(forty.x, forty.y, grid)
on_data = [cu.nadaraya_watson(forty.x, forty.x, forty.y, width=w) for w in grid]
training = (torch.stack(on_data) - forty.y).square().mean(1)
fresh = 1 + torch.tensor([error_to_truth(predict(forty, w), forty) for w in grid])

assert training[0] < 0.01 and (training.diff() > -1e-6).all()
assert 0.15 < chosen < 0.6
assert fresh[loo.argmin()] < 1.1 * fresh.min()

# %%
cu.show_curves(
    grid, {"training": training, "leave one out": loo, "fresh data": fresh}, logx=True,
    xlabel="width σ", ylabel="mean squared error",
    alt="Over the width, the training error rises from zero without a turn. The leave-one-out "
    "error and the error on fresh data both fall first and rise again after a minimum near "
    "0.3.",
)  # fmt: skip

# %% [markdown]
# Training error: a straight road down to $\sigma\to0$, where each point predicts itself. Leave one out: a valley, and
# its lowest point is close to that of the fresh data. It costs one masked softmax.
#
# It is an estimate from forty noisy numbers, though, and it has a variance of its own. How bad is its choice,
# typically? Fifty draws of the forty points:

# %%
excess = []
for seed in range(50):
    data = cu.noisy_sine(40, noise=1, seed=seed)
    width, _ = cu.best_width(data.x, data.y, grid[::2])
    fits = [predict(data, w) for w in grid[::2]]
    possible = min(error_to_truth(fit, data) for fit in fits)
    taken = error_to_truth(predict(data, width), data)
    excess.append(taken / possible)
excess = torch.tensor(excess)
typical, worst = excess.median().item(), excess.max().item()

assert typical < 1.4 and worst > 1.5
print(f"error of chosen / error of best width: median {typical:.1f}, worst of 50 {worst:.0f}")

# %% [markdown]
# Usually not far from the best possible; now and then several times worse. A curve like the one above deserves a look
# before one believes its minimum.
#
# ### Exercise 2 · Find the bug
#
# *10 minutes · ★★*
#
# A colleague removes the point itself by setting its weight to zero:


# %%
def buggy_leave_one_out(keys, values, width):
    """Predict each value from the others. It does not."""
    weights = cu.kernel_weights(keys, keys, width=width)
    weights.fill_diagonal_(0)
    return weights @ values


wrong = buggy_leave_one_out(forty.x, forty.y, 0.1)
right = cu.leave_one_out(forty.x, forty.y, width=0.1)
assert wrong.abs().mean() < 0.8 * right.abs().mean()
assert (buggy_leave_one_out(forty.x, torch.full((40,), 5.0), 0.1) < 4.9).all()  # all values are 5

# %% [markdown]
# All values are 5, and all predictions are smaller: how can an average of fives be less than 5? Repair it in
# `fixed_leave_one_out`. It should work at every width, also where a point has all the weight for itself.


# %% tags=["exercise"]
def fixed_leave_one_out(keys, values, width):
    """(n,), (n,) → predictions (n,), each from the other points."""
    ...


# %% tags=["check"]
cu.checks.fixed_leave_one_out(fixed_leave_one_out)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_leave_one_out(keys, values, width):
    """The remaining weights have to sum to 1: mask the scores, then normalize."""
    scores = -(((keys[:, None] - keys[None, :]) / width) ** 2) / 2
    itself = torch.eye(len(keys), dtype=torch.bool)
    return torch.softmax(scores.masked_fill(itself, float("-inf")), dim=1) @ values


cu.checks.fixed_leave_one_out(fixed_leave_one_out)

# %% [markdown]
# ### Exercise 3 · Leave one out for free
#
# *15 minutes · ★★★*
#
# Suppose the full weights $\alpha_{ij} = \alpha(k_i, k_j)$ are computed already, each point included. Show on paper
# that
#
# $$v_i - f_{-i}(k_i) = \frac{v_i - f(k_i)}{1-\alpha_{ii}}$$
#
# and write `loo_residuals(weights, values)`. (Start: the others' weights are $\alpha_{ij}/(1-\alpha_{ii})$. Why?)


# %% tags=["exercise"]
def loo_residuals(weights, values):
    """weights (n, n) with each point included, values (n,) → residuals (n,)."""
    ...


# %% tags=["check"]
cu.checks.loo_residuals(loo_residuals)


# %% tags=["solution"] jupyter={"source_hidden": true}
def loo_residuals(weights, values):
    """f = αᵢᵢ vᵢ + (1 − αᵢᵢ) f₋ᵢ; subtract both sides from vᵢ and divide."""
    return (values - weights @ values) / (1 - weights.diagonal())


cu.checks.loo_residuals(loo_residuals)

# %% [markdown]
# The formula also explains the training error: $v_i - f(k_i)$ is the honest residual *times* $1-\alpha_{ii}$. The
# narrower the kernel, the nearer $\alpha_{ii}$ is to 1, and the smaller the training error, whatever the prediction
# is worth.

# %% [markdown]
# ## Learning the width: parametric attention pooling
#
# A grid of widths is fine for one width. For many, and for everything later in this course, we want gradients: make
# the width a **parameter** and descend on the error. Two things are needed: a weighted average for each query over
# *its own* keys, and care about what those keys are.
#
# ### Weighted averages in a minibatch
#
# When each query has its own keys and values, weights and values are both (queries, keys), and the answer is one dot
# product for each row. `torch.bmm`, the batch matrix product, multiplies matrix by matrix: (b, 1, k) times (b, k, 1)
# is (b, 1, 1). By hand, two queries with three keys each: $0.5\cdot2 + 0.5\cdot4 + 0\cdot9 = 3$ and
# $0.2\cdot10 + 0.3\cdot20 + 0.5\cdot40 = 28$.

# %%
weights = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
values = torch.tensor([[2.0, 4.0, 9.0], [10.0, 20.0, 40.0]])
pooled = torch.bmm(weights.unsqueeze(1), values.unsqueeze(-1))

assert_close(pooled, torch.tensor([[[3.0]], [[28.0]]]))
assert_close(pooled.flatten(), (weights * values).sum(1))

# %% [markdown]
# ### The model
#
# We learn $\log\sigma$ rather than $\sigma$, so that no step can make the width negative. (Some texts multiply the
# distance by a learned $w$ instead: $w = 1/\sigma$.)


# %%
class ParametricPooling(nn.Module):
    """Gaussian pooling with a learned width; each query has its own keys and values."""

    def __init__(self, width=1.0):
        super().__init__()
        self.log_width = nn.Parameter(torch.tensor(math.log(width)))

    def forward(self, queries, keys, values):
        """(queries,), (queries, keys), (queries, keys) → (queries,)."""
        u = (queries[:, None] - keys) / self.log_width.exp()
        weights = torch.softmax(-(u**2) / 2, dim=1)
        return torch.bmm(weights.unsqueeze(1), values.unsqueeze(-1)).flatten()


# %% [markdown]
# The training points are queries, and keys too. If a point may look at itself, the way to error zero is to look at
# nothing else. So each of the fifty points gets the *other 49* as its keys:

# %%
others = ~torch.eye(50, dtype=torch.bool)
other_keys = fifty.x.repeat(50, 1)[others].reshape(50, 49)
other_values = fifty.y.repeat(50, 1)[others].reshape(50, 49)

model = ParametricPooling(width=1.0)
prediction = model(fifty.x, other_keys, other_values)
assert_close(prediction, cu.leave_one_out(fifty.x, fifty.y, width=1.0))


# %%
def train(model, keys, values, steps=300):
    """Minimize the squared error on the fifty points; return the width before each step, and the last error."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    widths = []
    for _ in range(steps):
        widths.append(model.log_width.exp().item())
        error = (model(fifty.x, keys, values) - fifty.y).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return widths, error.item()


# %%
honest_path, honest_error = train(model, other_keys, other_values)
learned = honest_path[-1]
best, _ = cu.best_width(fifty.x, fifty.y, torch.logspace(-1.5, 0.5, 200))

assert abs(learned / best - 1) < 0.03
print(f"learned width {learned:.2f}, best leave-one-out width {best:.2f}")

# %% [markdown]
# The error that the model descends *is* the leave-one-out error, so gradient descent finds the same valley. Now the
# leak. What happens if each point is among its own keys?

# %%
leaky = ParametricPooling(width=1.0)
leaky_path, leaky_error = train(leaky, fifty.x.repeat(50, 1), fifty.y.repeat(50, 1))
honest_truth = error_to_truth(predict(fifty, learned), fifty)
leaky_truth = error_to_truth(predict(fifty, leaky_path[-1]), fifty)

assert leaky_error < 0.005 < 0.2 < honest_error  # 0.25 is the variance of the noise
assert leaky_path[-1] < 0.02
assert leaky_truth > 3 * honest_truth

# %%
cu.show_curves(
    torch.arange(300), {"from the others": honest_path, "itself included": leaky_path}, logy=True,
    xlabel="step", ylabel="width σ",
    alt="Both widths start at 1. Trained on the other points the width settles near 0.25; with "
    "each point among its own keys it keeps falling, below 0.02.",
)  # fmt: skip

# %% [markdown]
# With itself included the training error goes to 0 *because* the width goes to 0: each point copies its own noisy
# value. The loss curve looks wonderful, and against the truth the fit is several times worse. The causal masks of
# [Scoring functions](03_scoring_functions.ipynb) guard against exactly this: a token that may look at what it has to predict.
#
# What has training changed in fit and weights?

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 4, width=9, height=2.6, width_ratios=[1.3, 1.3, 1, 1],
    alt="Before training, width 1: a fit that is too flat and a broad pale band of weights. "
    "After training, width 0.25: a fit that follows the bends with a slight wobble, and a "
    "narrow dark band.",
)  # fmt: skip
for place, (width, name) in enumerate([(1.0, "before"), (learned, "after")]):
    axes[place].plot(fifty.x, fifty.y, "o", color="0.7", markersize=3)
    axes[place].plot(queries, fifty.truth(queries), "--", color="black", linewidth=1.2)
    fit = predict(fifty, width)
    axes[place].plot(queries, fit, color=cu.COLORS["vermilion"])
    axes[place].set(title=f"{name}: σ = {width:.2f}", xlabel="x", ylim=(-1.2, 5.5))
    weights = cu.kernel_weights(queries[::2], fifty.x, width=width)
    image = cu.heatmap(axes[2 + place], weights, title=name, vmax=0.4, ylabel=None)
    axes[2 + place].set(xticks=[], yticks=[])
axes[2].set_ylabel("Queries")
bar = fig.colorbar(image, ax=axes[2:])
fig

# %%
before, after = (cu.kernel_weights(queries, fifty.x, width=width) for width in (1.0, learned))
assert keys_used(after) < 0.5 * keys_used(before)
assert honest_truth < 0.3 * error_to_truth(before @ fifty.y, fifty)

# %% [markdown]
# The fit is less smooth and much nearer to the truth; the weights are sharper, each query uses fewer than half as
# many keys.
#
# ### Two ways to miss the valley
#
# *Too few, too large steps.* A well-known version of this lesson descends on the *sum* of the errors, with learning
# rate 0.5, for five steps, from a random $w = 1/\sigma$ in (0, 1). Where does that end?

# %%
rows = []
for start in (0.1, 0.3, 0.5, 0.7, 0.9):
    w = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    for step in range(150):
        if step == 5:
            after_five = w.item()
        loss = (cu.leave_one_out(fifty.x, fifty.y, width=1 / w.abs()) - fifty.y).square().sum() / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rows.append((start, 1 / after_five, 1 / w.item()))
columns = ["start w", "σ after 5 steps", "σ after 150"]
table = pd.DataFrame(rows, columns=columns).set_index("start w")
table.round(2)

# %%
assert table["σ after 5 steps"].max() > 1.8 * table["σ after 5 steps"].min()
assert table["σ after 150"].max() < 1.03 * table["σ after 150"].min()

# %% [markdown]
# After five steps the width is wherever the first jump has thrown it. All runs agree only after many more. A sharper
# heatmap after training is then no proof of learning: look whether different starts meet.
#
# *A start without a gradient.* At $\sigma = 10^{-4}$ every row of weights is one-hot, the softmax is saturated, and
# the gradient is not small but exactly zero. No optimizer leaves that place.

# %%
stuck = ParametricPooling(width=1e-4)
u = (fifty.x[:, None] - other_keys) / 1e-4
assert torch.softmax(-(u**2) / 2, dim=1).amax(1).min() == 1
error = (stuck(fifty.x, other_keys, other_values) - fifty.y).square().mean()
error.backward()
assert stuck.log_width.grad == 0

# %% [markdown]
# ## At the edge: what an average cannot do
#
# Why did our first fit start too high? Take data without any noise on the line $y = x$, from 0 to 5. What does
# the kernel predict at the left end?

# %%
line = torch.linspace(0, 5, 501)
at_edges = cu.nadaraya_watson(torch.tensor([0.0, 2.5, 5.0]), line, line, width=0.5)

one_sided = 0.5 * math.sqrt(2 / math.pi)
assert_close(at_edges, torch.tensor([one_sided, 2.5, 5 - one_sided]), atol=0.01, rtol=0)
print(f"predicted at 0, 2.5, 5: {', '.join(f'{value:.2f}' for value in at_edges)}")

# %% [markdown]
# In the middle, keys on the left and on the right balance. At the edge all keys lie on one side, and the average is
# pulled inward by the mean of half a Gaussian, $\sigma\sqrt{2/\pi} = 0.80\,\sigma$, times the slope. This is the
# **boundary bias**. Inside, only curvature hurts, and much less. By hand, for $y = x^2$: around $q$ the keys are
# $q + \sigma z$ with $z$ standard normal, and the mean of $(q+\sigma z)^2$ is $q^2+\sigma^2$. Halve the width: the
# bias inside falls to a quarter, the one at the edge only to a half.

# %%
middle, edge = torch.tensor([2.5]), torch.tensor([0.0])
for width in (0.5, 0.25):
    bias_inside = cu.nadaraya_watson(middle, line, line**2, width=width) - middle**2
    bias_at_edge = cu.nadaraya_watson(edge, line, line, width=width) - edge
    assert_close(bias_inside, torch.tensor([width**2]), atol=1e-3, rtol=0)
    assert_close(bias_at_edge, torch.tensor([width * math.sqrt(2 / math.pi)]), atol=0.01, rtol=0)

# %% [markdown]
# At a fixed width more data help against neither.
#
# ### Exercise 4 · Local lines
#
# *20 minutes · ★★★*
#
# The cure is to fit, for each query, a *line* instead of a constant to the weighted data, and to read it off at the
# query. With the offsets $d_i = k_i - q$ and the moments $s_1 = \sum_i\alpha_i d_i$, $s_2=\sum_i\alpha_i d_i^2$ the
# answer is again a weighted sum of the values,
#
# $$f(q) = \sum_i \beta_i v_i ,\qquad \beta_i = \alpha_i\,\frac{s_2 - s_1 d_i}{s_2 - s_1^2} .$$
#
# The $\beta_i$ sum to 1, but some may be negative: no attention any more, and it can extrapolate. Write
# `local_linear(queries, keys, values, width)` with Gaussian weights.


# %% tags=["exercise"]
def local_linear(queries, keys, values, width):
    """(queries,), (keys,), (keys,) → predictions (queries,)."""
    ...


# %% tags=["check"]
cu.checks.local_linear(local_linear)


# %% tags=["solution"] jupyter={"source_hidden": true}
def local_linear(queries, keys, values, width):
    """Weighted least squares with a line; its height at the query."""
    weights = cu.kernel_weights(queries, keys, width=width)
    offsets = keys[None, :] - queries[:, None]
    first = (weights * offsets).sum(1, keepdim=True)
    second = (weights * offsets**2).sum(1, keepdim=True)
    return (weights * (second - first * offsets) / (second - first**2)) @ values


cu.checks.local_linear(local_linear)

# %% [markdown]
# ## Classification
#
# What is the average of *cat* and *dog*? Nothing, if values are names. But if the value of a key is the **one-hot**
# row of its class, the same average gives a probability for each class. By hand, with the three points from before
# as cat, dog, dog: $P(\text{cat}) = 0.348$ and $P(\text{dog}) = 0.574 + 0.078 = 0.652$.

# %%
one_hot = F.one_hot(torch.tensor([0, 1, 1])).float()
probabilities = cu.nadaraya_watson(torch.tensor([1.0]), torch.tensor([0.0, 1.0, 3.0]), one_hot)
assert_close(probabilities, torch.tensor([[0.348, 0.652]]), atol=1e-3, rtol=0)

# %% [markdown]
# In two dimensions: two moons, 200 points. Where does the classifier draw the boundary, and what does the width do to
# it?

# %%
points, classes = cu.two_moons(200)
one_hot = F.one_hot(classes).float()
horizontal, vertical = torch.linspace(-1.8, 2.8, 93), torch.linspace(-1.4, 1.9, 67)
plane = torch.cartesian_prod(horizontal, vertical)  # (93 · 67, 2)

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 3, width=9, height=2.8, sharey=True,
    alt="Probability of class 1 over the plane, for widths 0.03, 0.2 and 1. At 0.03 a jagged "
    "boundary with islands, at 0.2 a smooth S between the moons, at 1 an almost straight "
    "line that cuts through both.",
)  # fmt: skip
for ax, width in zip(axes, (0.03, 0.2, 1.0), strict=True):
    probability = cu.nadaraya_watson(plane, points, one_hot, width=width)[:, 1].reshape(93, 67).T
    image = ax.imshow(
        probability,
        origin="lower",
        extent=(-1.8, 2.8, -1.4, 1.9),
        aspect="auto",
        cmap="RdBu",
        vmin=0,
        vmax=1,
        alpha=0.35,
    )
    ax.contour(horizontal, vertical, probability, levels=[0.5], colors="black", linewidths=1.2)
    for label, marker, color in ((0, "o", "vermilion"), (1, "^", "blue")):
        ax.plot(*points[classes == label].T, marker, color=cu.COLORS[color], markersize=3)
    ax.set(title=f"σ = {width:g}", xlabel="first coordinate")
axes[0].set_ylabel("second coordinate")
bar = fig.colorbar(image, ax=axes, label="P(class 1)")
fig

# %%
fresh_points, fresh_classes = cu.two_moons(1000, seed=1)
accuracy = {}
for width in (0.03, 0.2, 1.0):
    probabilities = cu.nadaraya_watson(fresh_points, points, one_hot, width=width)
    assert_close(probabilities.sum(1), torch.ones(1000))
    accuracy[width] = (probabilities.argmax(1) == fresh_classes).float().mean().item()

assert accuracy[0.2] > 0.95 and accuracy[1.0] < 0.9
print(", ".join(f"σ = {width:g}: {100 * share:.0f} % right" for width, share in accuracy.items()))

# %% [markdown]
# Black is the line where both classes are equally likely. How sure is the narrow kernel of its answers, also where
# they are wrong?

# %%
probabilities = cu.nadaraya_watson(fresh_points, points, one_hot, width=0.03)
certainty = probabilities.amax(1)
mistaken = probabilities.argmax(1) != fresh_classes

assert (certainty > 0.99).float().mean() > 0.9 and certainty[mistaken].median() > 0.99

# %% [markdown]
# The narrow kernel is nearly as *accurate* as the good one, but it is certain nearly everywhere, also where it is
# wrong: almost all of its probabilities are 0 or 1. The wide one cannot follow the moons at all.
#
# ### Exercise 5 · From labels to probabilities
#
# *10 minutes · ★★*
#
# Write `class_probabilities(queries, keys, labels, num_classes, width)`; `labels` are integers (keys,). A class that
# no key has still gets its column.


# %% tags=["exercise"]
def class_probabilities(queries, keys, labels, num_classes, width):
    """(queries, dim), (keys, dim), (keys,) → (queries, num_classes)."""
    ...


# %% tags=["check"]
cu.checks.class_probabilities(class_probabilities)


# %% tags=["solution"] jupyter={"source_hidden": true}
def class_probabilities(queries, keys, labels, num_classes, width):
    """One-hot rows are the values; their average is the answer."""
    one_hot = F.one_hot(labels, num_classes).to(keys.dtype)
    return cu.kernel_weights(queries, keys, width=width) @ one_hot


cu.checks.class_probabilities(class_probabilities)

# %% [markdown]
# ## One width for each coordinate
#
# In more than one dimension, is one unit of length right for all coordinates? One may be in meters and one in years;
# one may matter and one may not. Nothing prevents a width for each:
#
# $$u^2 = \sum_{c} \left(\frac{q_c - k_c}{\sigma_c}\right)^2 .$$
#
# By hand: $q = (0, 0)$, $k = (1, 3)$ and $\sigma = (0.5, 3)$ give $u^2 = 2^2 + 1^2 = 5$. The price: turning the
# coordinate system now changes the answer.

# %%
widths = torch.tensor([0.5, 3.0])
pair = torch.tensor([[0.0, 0.0], [1.0, 3.0]])
weights = cu.kernel_weights(pair[:1], pair, width=widths)
assert_close(weights[0, 1] / weights[0, 0], torch.tensor(math.exp(-5 / 2)))

turned = cu.kernel_weights(pair[:1] @ turn, pair @ turn, width=widths)
assert not torch.allclose(turned, weights, atol=0.01)

# %% [markdown]
# An example: 200 points in a square, $y = \sin(3x_1) + \varepsilon$. The second coordinate is pure distraction, but
# the kernel does not know. We learn both widths from the others, as we learned one.

# %%
generator = torch.Generator().manual_seed(0)
square = 2 * torch.rand(200, 2, generator=generator)
heights = torch.sin(3 * square[:, 0]) + 0.2 * torch.randn(200, generator=generator)

log_widths = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([log_widths], lr=0.05)
for _ in range(300):
    error = cu.leave_one_out_error(square, heights, width=log_widths.exp())
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
each = log_widths.detach().exp()
assert each[1] > 10 * each[0]

# %%
one, _ = cu.best_width(square, heights, torch.logspace(-1.5, 1, 41))
places = 2 * torch.rand(2000, 2, generator=generator)
target = torch.sin(3 * places[:, 0])
with_one = cu.nadaraya_watson(places, square, heights, width=one)
with_each = cu.nadaraya_watson(places, square, heights, width=each)

assert (with_each - target).square().mean() < 0.5 * (with_one - target).square().mean()
used = [keys_used(cu.kernel_weights(places, square, width=width)) for width in (one, each)]
assert used[1] > used[0]
print(f"best single width {one:.2f}; learned widths {each[0]:.2f} and {each[1]:.0f}")

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=7.6, height=3.1, sharey=True,
    alt="Weights of 200 points for one query in the middle of a square. With a single width "
    "they fill a small disc; with one width for each coordinate they fill a narrow vertical "
    "strip over the whole height.",
)  # fmt: skip
for ax, width, name in zip(axes, (one, each), ("one width", "two widths"), strict=True):
    weights = cu.kernel_weights(torch.tensor([[1.0, 1.0]]), square, width=width)[0]
    dots = ax.scatter(
        *square.T,
        c=weights,
        s=24,
        cmap="Blues",
        vmin=0,
        vmax=0.15,
        edgecolors="0.6",
        linewidths=0.5,
    )
    ax.plot(1, 1, "+", color=cu.COLORS["vermilion"], markersize=12, markeredgewidth=2)
    ax.set(title=f"{name}: {keys_used(weights[None]):.0f} keys used", xlabel="x₁ (matters)")
axes[0].set_ylabel("x₂ (does not)")
bar = fig.colorbar(dots, ax=axes, label="weight for the query +")
fig

# %% [markdown]
# Left, a disc: keys at the same $x_1$ but another $x_2$ are ignored, although they carry the same information. Right,
# a strip: the learned width of the second coordinate is so large that the kernel no longer sees it, so it can afford
# to be narrow in the first *and* average more keys. The error falls to less than half. **Learning in which directions
# to look** is what the projections $W_Q$ and $W_K$ of attention do, with a whole matrix instead of one number for
# each coordinate.

# %% [markdown]
# ## How good can it get?
#
# Is the truth reached with enough data? The bias is proportional to $\sigma^2$, so bias² to $\sigma^4$; the variance
# is the noise over the number of keys used, proportional to $1/(n\sigma)$. They balance when
# $\sigma\propto n^{-1/5}$, and then both, and the error, are proportional to
#
# $$n^{-4/5} .$$
#
# Almost $1/n$, the rate of the average of $n$ numbers, for an unknown *function*. Check it, and two other rules
# beside: a width that stays, and one that shrinks like $1/n$. The error is measured on $1\le x\le4$, away from the
# edges, and averaged over 20 draws.

# %%
inside = torch.linspace(1, 4, 121)
sizes = [50, 100, 200, 400, 800, 1600, 3200]
rules = {
    "σ = 0.7 n^(-1/5)": lambda n: 0.7 * n**-0.2,
    "σ = 0.5": lambda n: 0.5,
    "σ = 10/n": lambda n: 10 / n,
}
curves = {}
for name, rule in rules.items():
    curves[name] = []
    for n in sizes:
        draws = [cu.noisy_sine(n, noise=1, seed=seed) for seed in range(20)]
        fits = torch.stack([cu.nadaraya_watson(inside, d.x, d.y, width=rule(n)) for d in draws])
        curves[name].append((fits - forty.truth(inside)).square().mean().item())


# %%
def slope(errors):
    """Least-squares slope of log error over log n."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(errors).double().log()
    return (((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()).item()


shrinking, fixed, hasty = curves.values()
assert -1.0 < slope(shrinking) < -0.65  # theory: -0.8
assert fixed[-1] > 0.8 * fixed[-2] and fixed[-1] > 3 * shrinking[-1]  # stays at its bias
assert -0.2 < slope(hasty) < 0.2  # stays at its variance

# %%
theory = {"n^(-4/5)": [shrinking[0] * (n / sizes[0]) ** -0.8 for n in sizes]}
cu.show_curves(
    sizes, curves | theory, logx=True, logy=True, xlabel="number of points n", ylabel="squared error",
    alt="Squared error over n on log axes. With the width shrinking as n to the power -1/5 it "
    "falls along a straight line of slope about -0.8; with a fixed width it levels off; "
    "with a width of 10/n it does not fall at all.",
)  # fmt: skip

# %% [markdown]
# Straight down with slope about −0.8, as promised: with a width that shrinks at the right speed the estimator is
# **consistent**. The fixed width runs into its bias. The hasty one keeps the number of keys used constant, so its
# noise is never averaged away, however many data arrive.
#
# ### And in many dimensions?
#
# The same calculation in $d$ dimensions gives $n^{-4/(4+d)}$: slope −0.8 for $d=1$, −0.4 for $d=6$, −0.2 for $d=16$.
# What that means for 500 points in the unit cube, whose values still depend on *one* coordinate only, with the single
# width chosen by leave-one-out:

# %%
rows = []
for dim in (1, 2, 4, 8, 16):
    generator = torch.Generator().manual_seed(0)
    cube = torch.rand(500, dim, generator=generator)
    probes = torch.rand(200, dim, generator=generator)
    wave = [torch.sin(2 * math.pi * points[:, 0]) for points in (cube, probes)]
    noisy = wave[0] + 0.3 * torch.randn(500, generator=generator)
    width, _ = cu.best_width(cube, noisy, torch.logspace(-2, 0, 9))
    error = (cu.nadaraya_watson(probes, cube, noisy, width=width) - wave[1]).square().mean().item()
    distances = torch.cdist(probes, cube)
    ratio = (distances.min(1).values.mean() / distances.mean()).item()
    rows.append((dim, ratio, error))
columns = ["dimensions", "nearest / average distance", "squared error"]
table = pd.DataFrame(rows, columns=columns).set_index("dimensions")
table.round(2)

# %%
assert table["nearest / average distance"].is_monotonic_increasing
assert table["nearest / average distance"].loc[16] > 0.4
assert table["squared error"].loc[8] > 20 * table["squared error"].loc[1]

# %% [markdown]
# This is the **curse of dimension**, in its honest form. In 16 dimensions the nearest of 500 keys is half as far away
# as an average one; "near" no longer means much, and the error has gone about half of the way back to 0.5, the
# variance of the wave itself, which average pooling would give. It is a statement about *fixed* distances between raw
# coordinates. The widths per coordinate showed the way out on a small scale: learn which directions matter. Attention works in
# hundreds of dimensions because its queries and keys are learned, not because averaging escaped the curse.

# %% [markdown]
# ## What goes wrong
#
# Two mistakes we have seen already: 0/0 at small widths and a point among its own keys. Here
# are three more. None of them raises an error.
#
# **The wrong axis.** Normalizing over the queries looks the same in a heatmap. What gives it away is a row that does
# not sum to 1:

# %%
scores = -(((queries[:, None] - forty.x[None, :]) / 0.5) ** 2) / 2
over_queries = torch.softmax(scores, dim=0)

assert_close(over_queries.sum(0), torch.ones(40))  # columns sum to 1 …
assert (over_queries.sum(1) - 1).abs().max() > 0.3  # … rows do not
right, wrong = predict(forty, 0.5), over_queries @ forty.y
assert error_to_truth(wrong, forty) > 2 * error_to_truth(right, forty)

# %% [markdown]
# **A column among rows.** If the predictions have shape (n, 1) and the values (n,), their difference is broadcast to
# (n, n): every prediction is compared with every value. The loss falls, and is minimal for average pooling.

# %%
column = cu.leave_one_out(forty.x, forty.y[:, None], width=0.3)  # (40, 1)
assert (column - forty.y).shape == (40, 40)

honest = (column[:, 0] - forty.y).square().mean()
broadcast = (column - forty.y).square().mean()
assert broadcast > 1.5 * honest
assert_close(broadcast, (column - forty.y.mean()).square().mean() + forty.y.var(correction=0))

# %% [markdown]
# The last line says why: the broadcast loss is the distance of the predictions from the *mean*, plus a constant.
# Compare shapes with an `assert` before you subtract.
#
# **Twins.** Leaving one out is honest only if the others know nothing about it. If each measurement is in the table
# twice, its twin stays behind and gives the answer away:

# %%
twice_x, twice_y = forty.x.repeat(2), forty.y.repeat(2)
fooled, errors = cu.best_width(twice_x, twice_y, grid)

assert fooled < 0.01  # among the narrowest candidates
assert errors.min() < 0.01

# %% [markdown]
# Duplicates, several rows of one patient, neighboring frames of one film: leave out the whole group. [Bahdanau attention](05_bahdanau_attention.ipynb)
# splits its sentences by *source sentence* for this reason.

# %% [markdown]
# ## Take-aways
#
# - Kernel regression is attention without training: the query's answer is an average of the values, weighted by how
#   near their keys are. With a Gaussian kernel it is exactly PyTorch's operator with a bias for each key.
# - The width decides: narrow means variance, wide means bias. The kernel's shape changes the error by a few percent.
# - Normalize with a softmax, not with a ratio. Where a compact kernel has nothing to average, say NaN and not 0.
# - Choose or learn the width on predictions that never saw their own value. If a point may look at itself, the
#   training error goes to zero and so does the width.
# - With $\sigma\propto n^{-1/5}$ the error falls like $n^{-4/5}$ in one dimension. In many dimensions only learned
#   distances help: the next chapters learn them.

# %% [markdown]
# ## Quiz
#
# Five questions. Each answer, right or wrong, gives its reason.

# %%
cu.quiz("kernel_regression")

# %% [markdown]
# ## References
#
# - Nadaraya, E. A. (1964). [On estimating regression](https://doi.org/10.1137/1109020). Theory of Probability & Its Applications 9(1), 141–142.
# - Watson, G. S. (1964). [Smooth regression analysis](https://www.jstor.org/stable/25049340). Sankhyā: The Indian Journal of Statistics, Series A 26(4), 359–372.
# - Epanechnikov, V. A. (1969). [Non-parametric estimation of a multivariate probability density](https://doi.org/10.1137/1114019). Theory of Probability & Its Applications 14(1), 153–158.
# - Wand, M. P. & Jones, M. C. (1995). [Kernel Smoothing](https://doi.org/10.1201/b14876). Chapman & Hall. The constant C(K) is in chapter 2, local lines in chapter 5.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023). [Dive into Deep Learning](https://d2l.ai). Cambridge University Press. Its chapter on attention begins with this regression.
