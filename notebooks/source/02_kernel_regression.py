# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Kernel regression
#
# **Forty noisy measurements: what is the value where nobody measured?**
# *Average the values that you have, and let the near ones count more*: so said Nadaraya and Watson in 1964, independently.
# The place you ask about is the **query**, the places that were measured are the **keys**, the measurements are the **values**.
# This is attention, half a century before the word.
#
# Drag the query, the upright line, and watch the average draw its curve.
# The disks are as large as the weights: a point's weight is the height of the bump above it, divided by the sum of all heights.
# The bump is called a **kernel**.
# Somebody has chosen its shape and its width.
# **Which kernel would a network choose, if nobody told it?**
#
# On the way to images and to translation: [Near points count more](#Near-points-count-more), [A drawing, a formula, four lines](#A-drawing,-a-formula,-four-lines).

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils import pooling
from course_utils.lessons.kernel_regression import curves

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.kernel_regression()

# %% jupyter={"source_hidden": true}
cu.recall("queries_keys_values", "start_here")

# %% [markdown]
# After this chapter you can
#
# - predict from (key, value) pairs by hand, in four lines, and with PyTorch's attention operator;
# - say what a width does, choose it by leaving one out, and learn it;
# - say which kernel a network finds when it must make its own scores, and why.
#
# It needs [Queries, keys and values](01_queries_keys_values.ipynb): weights, softmax, temperature.
#
# ## Near points count more
#
# (At the left edge the average above lies too high: all near points are to the right, where the curve is higher.)
#
# Each of the forty measurements is a smooth curve plus noise, $y = 2\sin x + x + \varepsilon$.
# The noise $\varepsilon$ is normal with standard deviation 1.
# We know the curve, so that we can say how wrong an answer is; the method never sees it.
#
# The least that we can do is to ignore the place and always answer with the mean of all values.
# This is **average pooling**, our baseline.

# %%
noise = 1.0  # try 0.0 … 3.0
forty = cu.noisy_sine(40, noise=noise)
x, y = forty.x, forty.y  # keys and values
places = torch.linspace(0, 5, 101)  # queries
truth = forty.truth(places)


def error(prediction):
    """Mean squared distance from the curve without noise, at the 101 places."""
    return (prediction - truth).square().mean().item()


print(f"mean of the values: {y.mean():.2f}; its squared error: {error(y.mean()):.2f}")

# %% [markdown]
# Now three points, by hand: the keys 0, 1, 3 with the values 2, 3, 7.
# The query is 1, exactly where 3 was measured.
# The bump is the **Gaussian kernel** $K(u) = e^{-u^2/2}$, and $u$ is the distance, measured in units of the **width** $\sigma = 1$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "What is the weighted average at the query 1?",
    ["below 3", "exactly 3", "between 3 and 4", "4 or more"],
    answer="below 3",
    wrong={
        "exactly 3": "Only if the other two had no weight at all. How high is the bump above the key 0?",
        "between 3 and 4": "The 7 pulls up by 4, the 2 pulls down by 1. Which weight has each of them?",
        "4 or more": "4 is the plain mean, where the far 7 counts as much as the others.",
    },
    why="It is close. The 2 pulls down by 1 with the weight 0.35, the 7 pulls up by 4 with the weight 0.08: "
    "−0.35 + 0.31 = −0.04. With a width of 1.1 the average is above 3.",
    shows={"points": "0 2,1 3,3 7", "width": 1, "query": 1, "kernel": "gaussian"},
)

# %% [markdown]
# | key | value | distance | kernel | weight | weight × value |
# |---|---|---|---|---|---|
# | 0 | 2 | 1 | 0.607 | 0.348 | 0.696 |
# | 1 | 3 | 0 | 1 | 0.574 | 1.722 |
# | 3 | 7 | 2 | 0.135 | 0.078 | 0.544 |
# | sum | | | 1.742 | 1 | **2.963** |
#
# The answer is 2.963, a little less than the 3 measured at the query itself.
# At this width a kernel regression does not pass through its data, and with noise it should not.
#
# ## A drawing, a formula, four lines
#
# Here is the same calculation as a flow of data; all of attention will have this form.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
bumps, shares = [["0.607", "1", "0.135"]], [["0.348", "0.574", "0.078"]]
cu.Drawing(
    """
    q         k         v
    distance  distance  .
    kernel    kernel    .
    K         K         .
    norm      norm      .
    A         A         .
    mix       mix       mix
    f         f         f
    """,
    nodes={
        "q": cu.Cells(1, 1, "query", shape="(1,)", values=[[1]], color="query"),
        "k": cu.Cells(1, 3, "keys", shape="(3,)", values=[[0, 1, 3]], color="key"),
        "v": cu.Cells(1, 3, "values", shape="(3,)", values=[[2, 3, 7]], color="value"),
        "distance": cu.Box("distances: q − k", shape="(1, 3)"),
        "kernel": cu.Box("kernel: exp(−½ (distance / σ)²)"),
        "K": cu.Cells(1, 3, "kernel", shape="(1, 3)", values=bumps),
        "norm": cu.Box("normalize: divide by the sum"),
        "A": cu.Cells(1, 3, "weights", shape="(1, 3)", values=shares, color="key"),
        "mix": cu.Box("mix: weights × values, summed"),
        "f": cu.Cells(1, 1, "answer", shape="(1,)", values=[["2.963"]], color="value"),
    },
    arrows=["q, k -> distance -> kernel -> K -> norm -> A -> mix -> f", "v -> mix"],
    alt="The query 1 and the keys 0, 1, 3 have distances; the kernel turns these into 0.607, 1 and "
    "0.135; divided by their sum they are the weights 0.348, 0.574 and 0.078; these mix the values "
    "2, 3, 7 to the answer 2.963.",
    gap=(26, 22),
)  # fmt: skip

# %% [markdown]
# For a query $q$ and $n$ pairs $(k_i, v_i)$, each pair has a score $a_i$ and a weight $\alpha_i$:
#
# $$a_i = -\frac{(q - k_i)^2}{2\sigma^2},\qquad
# \alpha_i = \frac{e^{a_i}}{\sum_j e^{a_j}} = \mathrm{softmax}(a)_i,\qquad
# f(q) = \sum_{i=0}^{n-1} \alpha_i\, v_i .$$
#
# This is the **Nadaraya–Watson estimator** with a Gaussian kernel: *kernel, divided by its sum* is a softmax of $-u^2/2$.
#
# PyTorch's operator, `F.scaled_dot_product_attention`, has a score of another form: $s\,qk_i$ with a number $s$ (`scale`), plus a table that is added to the scores (`attn_mask`).
# Multiply out:
#
# $$-\frac{(q-k_i)^2}{2\sigma^2} = -\frac{q^2}{2\sigma^2} + \frac{q k_i}{\sigma^2} - \frac{k_i^2}{2\sigma^2} .$$
#
# The first term is the same for all keys, so that a softmax does not see it.
# The second is a product with $s = 1/\sigma^2$.
# The third is one number for each key.
# Kernel regression *is* dot-product attention with a term for each key.


# %%
def attention_weights(queries, keys, width):
    """(…, queries), (…, keys) → (…, queries, keys)."""
    scores = -((queries[..., :, None] - keys[..., None, :]) ** 2) / 2  # score
    scores = scores / width**2  # scale
    return scores.softmax(dim=-1)  # normalize


def kernel_regression(queries, keys, values, width):
    """(queries,), (keys,), (keys,) → (queries,)."""
    return attention_weights(queries, keys, width) @ values  # mix


def pytorch_attention(queries, keys, values, width):
    key_term = (-(keys**2) / (2 * width**2)).expand(len(queries), -1)
    q, k, v = queries[:, None], keys[:, None], values[:, None]
    return F.scaled_dot_product_attention(q, k, v, key_term, scale=width**-2)[:, 0]


window = 0.4  # try 0.1 … 3.0
cu.equal(kernel_regression, pytorch_attention, places, x, y, width=window)

# %% [markdown]
# Our four lines are PyTorch's attention, in the answers and in the gradients for queries, keys and values.
# The term for each key may not be left out, and a product of $q$ and $k$ alone cannot make it.
#
# A kernel of the distance doesn't ask where two points lie, or in which direction.
# So if we shift all queries and keys by the same amount, every weight stays as it is, and in a plane we may also turn them all together.
#
# ## The width decides
#
# What does the width do?
# Measure again and again: 200 new sets of forty points from the same curve, each fitted with four widths.
# The mean of the 200 fits misses the curve by the **bias**; around their mean the fits scatter with the **variance**.
# The [effective sample size](C_glossary.ipynb#effective-sample-size) of a row of weights, $1/\sum_i\alpha_i^2$, is $m$ if $m$ keys share the weight equally.

# %%
draws = [cu.noisy_sine(40, noise=noise, seed=seed) for seed in range(200)]
fits = {
    width: torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    for width in (0.1, 0.2, 0.5, 1.0)
}
width_rows = []
for width, of_draws in fits.items():
    keys_used = (1 / attention_weights(places, x, width).square().sum(1)).mean()
    bias2, variance = error(of_draws.mean(0)), of_draws.var(0, correction=0).mean()
    parts = [keys_used, bias2, variance, bias2 + variance]
    width_rows.append([width, *map(float, parts)])
head = "σ", "effective sample size", "bias²", "variance", "error = sum"
by_width = pd.DataFrame(width_rows, columns=head).set_index("σ")
by_width.round(2)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def fits_and_maps(columns, darkest, alt):
    """Above each fit, below its weights on one scale; columns: title → (lines in gray, fit, weights)."""
    fig, axes = cu.subplots(2, len(columns), width=9, height=4.6, sharey="row", alt=alt)
    for above, below, title in zip(*axes, columns, strict=True):
        gray, fit, weights = columns[title]
        above.plot(x, y, "o", color="0.8", markersize=3)
        for line in gray:
            above.plot(places[::2], line[::2], color="0.75", linewidth=0.7)
        above.plot(places, truth, "--", color="black", linewidth=1.2)
        above.plot(places, fit, color=cu.COLORS["query"])
        above.set(title=title, xticks=[])
        image = cu.heatmap(
            below, weights, xlabel="keys, in the order of x", ylabel="", vmax=darkest
        )
        below.set_aspect("auto")
        below.set_yticks([0, 50, 100], ["x = 0", "2.5", "5"])
    axes[0, 0].set_ylabel("y")
    axes[1, 0].set_ylabel("queries")
    bar = fig.colorbar(image, ax=axes[1], ticks=[0, darkest], pad=0.02)
    bar.ax.set_yticklabels(["0", f"{darkest:g} or more"])
    return fig


fits_and_maps(
    {f"σ = {w:g}": (f[:16], f.mean(0), attention_weights(places, x, w)) for w, f in fits.items()},
    0.5,
    "Above, sixteen fits in gray, the mean of 200 in red and the true curve dashed, at four widths: at 0.1 they scatter widely "
    "around the curve, at 1 they lie close together and are too flat. Below, the weights: a thin dark band, wider and paler.",
)  # fmt: skip

# %% [markdown]
# **Narrow** means few keys, fits that chase the noise, and variance; **wide** means many keys, calm fits, and bias.
# Below, each row is one query and sums to 1, and the band of weights grows wider and paler with $\sigma$.
# In a softmax over $-(q-k)^2/2$, $\sigma^2$ *is* the temperature.
#
# Does the **shape** of the bump matter?
# Four kernels on the forty points: three of them as wide as a Gaussian with $\sigma = 0.4$ (equal standard deviations), and the constant one, which is the mean.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shapes = {"gaussian": 0.4, "triangular": 0.4 * 6**0.5, "boxcar": 0.4 * 3**0.5, "constant": 1.0}
shape_columns = {}
for kernel, width in shapes.items():
    weights = cu.kernel_weights(places, x, kernel=kernel, width=width)
    shape_columns[f"{kernel}\nsquared error {error(weights @ y):.2f}"] = [], weights @ y, weights
fits_and_maps(
    shape_columns, 0.3,
    "Fits and weights of four kernels. Gaussian and triangle have nearly the same smooth fit and a soft band of weights; the boxcar "
    "has a staircase and a band with hard edges; the constant kernel has a flat line and an even gray.",
)  # fmt: skip

# %% [markdown]
# Bell and triangle can hardly be told apart; the **boxcar**, 1 within its width and else 0, makes a staircase.
# The width matters much, the shape little.
#
# ## Leave one out
#
# What remains is to choose $\sigma$.
# In practice there is one set of points and no true curve, and the error on these points themselves would choose the narrowest: each point predicts itself.
# The way out: **predict each point from all the others**, and compare with its value.
# By hand, with the three points and $\sigma = 1$:
#
# | left out | weights of the other two | prediction | value | value − prediction |
# |---|---|---|---|---|
# | key 0 | 0.982, 0.018 | 0.982 · 3 + 0.018 · 7 = 3.072 | 2 | −1.072 |
# | key 1 | 0.818, 0.182 | 0.818 · 2 + 0.182 · 7 = 2.912 | 3 | 0.088 |
# | key 3 | 0.076, 0.924 | 0.076 · 2 + 0.924 · 3 = 2.924 | 7 | 4.076 |
#
# The **leave-one-out error** is the mean of the squares in the last column, 5.92.
#
# ### Exercise 1 · All points at once
#
# *build · 10 minutes*
#
# Every point is a query and a key, so the scores are a matrix (n, n); what has to become of its diagonal, *before* the softmax, so that the others share all of the weight?
# (A loop over the points is right, too, and longer.)
# Keep the names of the parameters: the chapter goes on with your function once it passes.


# %% tags=["exercise", "build"]
def my_leave_one_out(keys, values, width):
    """(n,), (n,) → (n,): each value from the others, Gaussian kernel."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_leave_one_out(my_leave_one_out)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_leave_one_out_solution(keys, values, width):
    """A score of −inf becomes a weight of 0: the point itself is masked."""
    scores = -((keys[:, None] - keys[None, :]) ** 2) / 2 / width**2
    itself = torch.eye(len(keys), dtype=torch.bool)
    return scores.masked_fill(itself, -math.inf).softmax(dim=1) @ values


cu.checks.my_leave_one_out(my_leave_one_out_solution)

# %% [markdown]
# A score of $-\infty$ is a **mask**: after the softmax its pair has the weight 0.
# Masked attention works in just this way, for padding and for words that have not been written yet.
#
# Now the width can be *learned*: it follows the gradient of the leave-one-out error.
# We learn $\log\sigma$, so that no step can make the width negative.
# `Adam` is gradient descent with a step size of its own for each parameter; [Training transformers](12_training_transformers.ipynb) opens it.


# %% tags=["nbval-ignore-output"]
def descend(loss, start, rate=0.05, steps=200):
    """Adam on loss(parameter): the parameter before each step, and the loss there."""
    parameter = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([parameter], lr=rate)
    path, losses = [], []
    for _ in range(steps):
        value = loss(parameter)
        path.append(parameter.detach().clone())
        losses.append(value.item())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return torch.stack(path), losses


leave_one_out = cu.choose(my_leave_one_out, pooling.leave_one_out)
start = 2.0  # try 0.1 … 5.0
rate = 0.05  # try 0.03 … 0.3


def loo_error(log_width):
    return (leave_one_out(x, y, width=log_width.exp()) - y).square().mean()


path, losses = descend(loo_error, torch.tensor(start).log(), rate)
learned = path[-1].exp().item()
print(f"width {start:.2f} → {learned:.2f}, error {losses[0]:.2f} → {losses[-1]:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
widths = torch.logspace(-2.7, 0.7, 69)
judged = torch.stack([loo_error(width.log()) for width in widths])
own = [(kernel_regression(x, x, y, width) - y).square().mean() for width in widths]
fig, (valley, fall, fit, before, after) = cu.subplots(
    1, 5, width=9, height=2.7, width_ratios=[1.2, 1, 1.2, 0.8, 0.8],
    alt=f"Five panels. The leave-one-out error over the width has a valley, the error on own points falls to 0; the loss falls in "
    f"200 steps; the fit of the learned width follows the true curve, that of {start:g} does not; two maps of weights.",
)  # fmt: skip
valley.plot(widths, judged, color=cu.COLORS["key"])
valley.plot(widths, own, ":", color="0.4")
valley.plot(path.exp()[::10], losses[::10], "o", color=cu.COLORS["query"], markersize=3)
valley.set(xscale="log", xlabel="width σ", title="error over σ", ylim=(0, None))
valley.text(0.003, 0.6, "own points:\ndotted", fontsize=8)
fall.plot(losses, color=cu.COLORS["query"])
fall.set(xlabel="step", title="loss")
fit.plot(x, y, "o", color="0.8", markersize=3)
fit.plot(places, truth, "--", color="black", linewidth=1.2)
fit.plot(places, kernel_regression(places, x, y, start), ":", color=cu.COLORS["query"])
fit.plot(places, kernel_regression(places, x, y, learned), color=cu.COLORS["query"])
fit.set(xlabel="x", title="fit: before ⋯ after")
for ax, width, name in ((before, start, "before"), (after, learned, "after")):
    image = cu.heatmap(ax, attention_weights(places, x, width), xlabel="keys", ylabel="", vmax=0.3)
    ax.set(title=f"{name}\nσ = {width:.2f}", yticks=[], aspect="auto")
bar = fig.colorbar(image, ax=[before, after], ticks=[0, 0.3])
bar.ax.set_yticklabels(["0", "≥ 0.3"])
fig

# %% [markdown]
# Descent rolls into the valley of the leave-one-out error, and the map of weights contracts to a band.
# The dotted line at the left is what the error on its own points would have rewarded: a width of 0.
# The valley comes from forty noisy numbers, and is sometimes in the wrong place: the [further page](02_kernel_regression_further.ipynb) shows by how much.
# (Watch the descent: open *Learn the width* in the first picture.)
#
# ### Exercise 2 · Find the bug
#
# *bug · 8 minutes*
#
# Somebody else has written the leave-one-out loss in this way.
# It falls to the variance of the values, and the width grows and grows.
# What does kernel regression predict with a very wide kernel?
# To which number does this loss pull every prediction?
# Find the mistake, and write `fixed_loss`.


# %% tags=["nbval-ignore-output"]
def buggy_loss(keys, values, width):
    predictions = pooling.leave_one_out(keys, values[:, None], width=width)
    return (predictions - values).square().mean()


astray, falling = descend(lambda s: buggy_loss(x, y, s.exp()), torch.tensor(0.0))
print(f"width {astray[0].exp():.2f} → {astray[-1].exp():.2f}, loss → {falling[-1]:.2f}")


# %% tags=["exercise", "bug"]
def fixed_loss(keys, values, width):
    """(n,), (n,) → the leave-one-out error: a scalar, with a gradient for the width."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_loss(fixed_loss)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_loss_solution(keys, values, width):
    """(n, 1) − (n,) is (n, n): each prediction was compared with each value, and the mean suits all.

    The mean over all pairs is the variance of the values plus the mean of (prediction − mean)²: 1.60 if all
    predictions are the mean, and more for any others.
    """
    predictions = pooling.leave_one_out(keys, values[:, None], width=width)[:, 0]  # (n,)
    return (predictions - values).square().mean()


cu.checks.fixed_loss(fixed_loss_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("kernel_regression", "copied_noise", "rows_of_a_patient")

# %% [markdown]
# ## Nobody told it
#
# Up to here the score was $-\frac12(\text{distance}/\sigma)^2$, since we said so.
# Now a network makes the queries, another one the keys, and their product is the score, whatever it may be.
# (Each has a hidden layer, since a product of linear queries and keys has no term $-k^2$.)
# It never sees a distance, a width or a true curve.
# It sees random curves $2a\sin(\omega x + \varphi) + bx$, each at forty places with noise, and has to predict each value from the 39 others.


# %%
class Head(nn.Module):
    """One number makes 16, for queries and for keys; the score is their dot product."""

    def __init__(self):
        super().__init__()
        self.to_query = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 16))
        self.to_key = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, queries, keys):
        """(…, queries), (…, keys) → scores (…, queries, keys)."""
        return self.to_query(queries[..., None]) @ self.to_key(keys[..., None]).mT


def missed(scores, values, wanted):
    """Each value predicted from the 39 others: squared distance from what is wanted."""
    itself = torch.eye(40, dtype=torch.bool)
    weights = scores.masked_fill(itself, -math.inf).softmax(dim=-1)
    return ((weights @ values[..., None])[..., 0] - wanted).square()


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which weights will its query at 2.5 give to the keys from 0 to 5?",
    ["all to the nearest key", "a bump around 2.5, nearly a bell", "the same to all keys", "more and more toward one end"],
    answer="a bump around 2.5, nearly a bell",
    wrong={
        "all to the nearest key": "The nearest value has noise of variance 1. What do several neighbors do to it?",
        "the same to all keys": "This is average pooling. What does it say about a wave?",
        "more and more toward one end": "So it is if queries and keys are linear in x. Why are there two layers?",
    },
    why="Near values say most about the curve, and several average the noise away: it pays to do what Nadaraya and Watson did.",
)  # fmt: skip


# %%
def trained_head(waves, rate, seed, steps=2000, end=1.0):
    """A head after Adam, whose rate falls to end · rate; (step, validation error)."""
    cu.seed_everything(seed)
    network, numbers, falls = Head(), torch.Generator().manual_seed(seed), []
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, end, steps)
    (places, *validation), _ = curves.judged_on(waves)
    for step in range(steps + 1):
        if step % 100 == 0:
            with torch.no_grad():
                misses = missed(network(places, places), *validation)
            falls.append((step, misses.mean().item()))
        keys, values, _ = curves.random_curves(64, waves, numbers)
        loss = missed(network(keys, keys), values, values).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    return network, falls


# %% tags=["nbval-ignore-output"]
def bump(network, query):
    """501 keys, their scores; mean and standard deviation of the weights."""
    keys = torch.linspace(0, 5, 501)
    with torch.no_grad():
        scores = network(torch.tensor([query]), keys)[0]
    weights = scores.softmax(dim=0)
    mean = weights @ keys
    return keys, scores, mean.item(), (weights @ (keys - mean) ** 2).sqrt().item()


waves = 1.0  # try 0.5 … 2.0
network, falls = trained_head(waves, rate=0.003, seed=0)
print(f"error on validation curves: {falls[0][1]:.2f} → {falls[-1][1]:.3f}")
pd.DataFrame(
    [[q, *bump(network, q)[2:]] for q in (1.0, 2.5, 4.0)],
    columns=["query", "mean of its weights", "standard deviation"],
).set_index("query").round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (fall, parabola, found, gauss) = cu.subplots(
    1, 4, width=9, height=2.9, width_ratios=[1, 1.3, 0.9, 0.9],
    alt="Four panels. The error on validation curves falls and is flat from step 1,000 on. The scores of three queries over the keys "
    "are parabolas with their tops at the queries. Two maps of weights, the network's and a Gaussian's, are two like bands.",
)  # fmt: skip
fall.plot(*zip(*falls[1:], strict=True), color=cu.COLORS["query"])
fall.set(xlabel="step", title="validation error", ylim=(0, None))
for query in (1.0, 2.5, 4.0):
    keys, scores, mean, sd = bump(network, query)
    parabola.plot(keys, scores - scores.max(), color=cu.COLORS["query"])
    parabola.plot(keys, -(((keys - mean) / sd) ** 2) / 2, "--", color="black", linewidth=1)
parabola.set(xlabel="keys", title="scores; dashed: parabolas", ylim=(-16, 1))
sd_found = bump(network, 2.5)[3]
with torch.no_grad():
    learned_map = network(places, x).softmax(dim=1)
for ax, weights, name in (
    (found, learned_map, "the network"),
    (gauss, attention_weights(places, x, sd_found), f"Gaussian, σ = {sd_found:.2f}"),
):
    image = cu.heatmap(ax, weights, xlabel="keys", ylabel="", vmax=0.3, title=name)
    ax.set(yticks=[], aspect="auto")
bar = fig.colorbar(image, ax=[found, gauss], ticks=[0, 0.3])
bar.ax.set_yticklabels(["0", "≥ 0.3"])
fig

# %% [markdown]
# The scores form a **parabola** with its top at the query, and a softmax of a parabola is a Gaussian.
# *Nobody told it.
# It found 1964.*
#
# A softmax of any smooth score with a single top is a bell near that top.
# But these are nearly parabolas down to $-15$, and nothing in the network says how wide: that came from the curves.
# (At the ends its bump leans outward.)
# Is it any good?
# A race on 2,000 fresh curves: each fixed kernel takes the width that is best on 500 others.


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
race = []
for kernel in ("constant", "boxcar", "triangular", "epanechnikov", "gaussian"):
    fixed, misses = curves.tuned(kernel, waves, missed)
    shown = "any" if kernel == "constant" else f"{fixed:g}"
    race.append([kernel, shown, misses.nanmean().item()])
_, (x_test, *test) = curves.judged_on(waves)
with torch.no_grad():
    own_misses = missed(network(x_test, x_test), *test)


def of_part(width, inner, x, *rest):
    """Misses of a Gaussian at the inner places, or at those within 0.5 of an end."""
    scores = -((x[:, :, None] - x[:, None, :]) / width).square() / 2
    return missed(scores, *rest)[((x - 2.5).abs() < 2) == inner]


(validation, tests), tried = curves.judged_on(waves), [w / 100 for w in range(16, 120, 4)]
two, two_misses = [], []
for inner in (True, False):
    of_width = [of_part(w, inner, *validation).mean() for w in tried]
    two.append(tried[of_width.index(min(of_width))])
    two_misses.append(of_part(two[-1], inner, *tests))
race.append(["gaussian", f"{two[0]:g}, ends {two[1]:g}", torch.cat(two_misses).mean().item()])
race.append(["the network", "its own", own_misses.mean().item()])
racers = pd.DataFrame(race, columns=["kernel", "best width", "squared error"])
racers.set_index("kernel").round(3)

# %% [markdown]
# (*Epanechnikov* is a parabola, cut off at 0.
# Where a kernel reaches no key it has no answer, and these few places are not counted.)
#
# The network is ahead of each single width, but not of a Gaussian of two, narrower within 0.5 of the ends.
# Three rates with three seeds each were stored, on these waves and on waves twice as fast; a row is the mean of three seeds, the last column the [standard error](C_glossary.ipynb#standard-error) with one.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
trained = pd.DataFrame(
    [{"steps": 2000} | r.config | r.result for r in cu.stored_runs("kernel_regression", "head")]
).drop(columns="end")
over_seeds = trained.drop(columns="seed").groupby(["waves", "steps", "rate"]).mean()
names = {
    "its error": "error, fixed",
    "gain": "fixed − network",
    "standard error of the gain": "± (standard error)",
}
over_seeds.rename(columns=names).round(4)

# %% [markdown]
# The rate is chosen as the fixed width is, by validation: 0.003 for both after 2,000 steps.
# There the network is 2 % ahead of the best Gaussian on the slow waves with each seed, and 1 % behind on the fast ones with each seed.
# More training turns this: after 6,000 steps, with a rate that falls to 0, it is ahead there, too, by less than 1 %, at both rates and with each seed.
# So it has not found something better than 1964; it has found 1964, and widths that follow the data.
#
# This is also [in-context learning](C_glossary.ipynb#in-context-learning) in a very small form: the network never saw your forty points, and answers from them without a further step of training.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A narrow kernel errs by variance and a wide one by bias, and gradient descent finds the best width if no point sees its own value.",
    given=noise == 1.0,
):
    assert by_width["variance"].iloc[0] > 0.9 * by_width["error = sum"].iloc[0]
    assert by_width["bias²"].iloc[-1] > 0.7 * by_width["error = sum"].iloc[-1]
    bell, triangle, *_ = (error(fit) for _, fit, _ in shape_columns.values())
    assert abs(triangle - bell) < 0.05
    assert own[0] < 0.05
    assert abs(learned / widths[judged.argmin()] - 1) < 0.1
    assert falling[-1] < falling[0] and astray[-1].exp() > 3

with cu.guard(
    "The network's bump is nearly a Gaussian, and it predicts about as well as the best fixed one.",
    given=waves == 1.0,
):
    dense, top, center, spread = bump(network, 2.5)
    bell_found = (-(((dense - center) / spread) ** 2) / 2).softmax(dim=0)
    assert (top.softmax(dim=0) - bell_found).abs().sum() / 2 < 0.1
    assert (trained["gain"].abs() < 0.04 * trained["its error"]).all() and trained[
        "width found"
    ].div(trained["best fixed width"]).between(1, 1.3).all()
    chosen = over_seeds["validation"].groupby(["waves", "steps"]).idxmin().str[2]
    assert (chosen.xs(2000, level="steps") == 0.003).all()
    assert trained["gain"][trained["steps"] == 6000].between(0, 0.01 * 0.28).all()
    best = trained[(trained["rate"] == 0.003) & (trained["steps"] == 2000)].set_index("waves")
    assert two[1] < two[0] and torch.cat(two_misses).mean() < own_misses.mean() + 0.001
    assert (best["gain"][1.0] > 0.002).all() and (best["gain"][2.0] < -0.001).all()

# %% [markdown]
# ## Take-aways
#
# - Kernel regression is attention: an average of the values, weighted by a softmax over how near their keys are.
#   It is PyTorch's operator with a term for each key.
# - Narrow means variance, wide means bias.
#   Choose a width, or learn it, on predictions that never saw their own value: a mask on the diagonal.
# - A network that only has to predict learns to give near keys more weight: it finds the Gaussian, and takes its width from the data.
#
# Next: [Scoring functions](03_scoring_functions.ipynb), where distances become dot products.
# For edges, rates, more dimensions and classes there is a further page: [Kernel regression: kernels, edges and rates](02_kernel_regression_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("kernel_regression")

# %% [markdown]
# ## References
#
# - Nadaraya, E. A. (1964).
#   [On estimating regression](https://doi.org/10.1137/1109020).
#   Theory of Probability & Its Applications 9(1), 141–142.
# - Watson, G. S. (1964).
#   [Smooth regression analysis](https://www.jstor.org/stable/25049340).
#   Sankhyā: The Indian Journal of Statistics, Series A 26(4), 359–372.
# - Hastie, T., Tibshirani, R. & Friedman, J. (2009).
#   [The Elements of Statistical Learning](https://hastie.su.domains/ElemStatLearn/).
#   Springer.
#   Chapter 6 begins with the window picture.
