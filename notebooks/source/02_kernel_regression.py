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
# **Forty noisy measurements: what is the value where nobody measured?** In 1964 Nadaraya and Watson, independently,
# gave the answer that attention still gives: *average the values you have, and let the near ones count more*. The
# place you ask about is the **query**, the places that were measured are the **keys**, the measurements are the
# **values**. There is no neural network in this chapter, and most of what attention does can be seen in it.
#
# After this chapter you can
#
# - predict from (key, value) pairs by hand, in four lines of code, and with PyTorch's attention operator;
# - say what the width of a kernel does, and why its shape matters little;
# - choose a width honestly, by leaving one out, and see that this is attention with a mask;
# - learn a width by gradient descent, and then a matrix that says in which directions to look;
# - recognize three silent mistakes by what they show.
#
# It needs [Queries, keys and values](01_queries_keys_values.ipynb): weights, softmax, temperature.

# %%
import math

import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %%
cu.recall("queries_keys_values", "start_here")

# %% [markdown]
# ## Near points count more
#
# *Section 1 of 6*
#
# Somebody has measured a quantity $y$ at forty places $x$. Each measurement is a smooth curve plus noise,
# $y = 2\sin x + x + \varepsilon$, and the noise $\varepsilon$ has the standard deviation 1. We know the curve, so
# that we can tell how wrong an answer is. The method never sees it.
#
# What is the least that we can do? Ignore the place and always answer with the mean of all values. This is **average
# pooling**, the baseline of this chapter. With the values 2, 3 and 7 in place of the forty:
#
# | we always answer | squared errors | their mean |
# |---|---|---|
# | 3 | 1, 0, 16 | 5.67 |
# | **4, the mean** | 4, 1, 9 | **4.67** |
# | 5 | 9, 4, 4 | 5.67 |

# %%
noise = 1.0  # try 0.0 … 3.0
forty = cu.noisy_sine(40, noise=noise)
x, y = forty.x, forty.y  # keys and values
places = torch.linspace(0, 5, 101)  # queries
truth = forty.truth(places)


def error(prediction):
    """Mean squared distance from the curve without noise, at the 101 places."""
    return (prediction - truth).square().mean().item()


print(f"the mean of the forty values is {y.mean():.2f}")
print(f"its squared error against the curve is {error(y.mean()):.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    alt="Forty points scattered over x from 0 to 5. They rise, fall a little and rise again. A "
    "dotted horizontal line marks their mean; a vertical line at x = 2.95 carries a question mark.",
    width=7, height=3,
)  # fmt: skip
ax.plot(x, y, "o", color=cu.COLORS["blue"], markersize=5)
ax.hlines(y.mean(), -0.1, 5, linestyle=":", color="0.3")
ax.text(5.05, y.mean(), "mean", va="center", color="0.3")
ax.axvline(2.95, color=cu.COLORS["vermilion"], linewidth=1.2)
ax.text(3.0, y.max() + 0.3, "?", fontsize=16, color=cu.COLORS["vermilion"], va="center")
ax.set(xlabel="x", ylabel="y", xlim=(-0.1, 5.4), ylim=(y.min() - 0.3, y.max() + 0.7))
fig

# %% [markdown]
# By eye, you would look at the points around the red line, and so will we. Lay a **window** over the query: a bump that
# is 1 at the query and falls off to both sides, a **kernel**. Each point counts as much as the bump is high above
# it. Divide these numbers by their sum and you have weights; the weighted average of the values is the answer.
#
# In the next picture the query moves and the average draws a curve. Before you move it: the true curve starts at 0
# on the left edge and rises.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At the left edge, where will the average lie?",
    ["below the true curve", "on it, up to noise", "above the true curve"],
    answer="above the true curve",
    wrong={
        "below the true curve": "Which points are in the window there: lower or higher ones?",
        "on it, up to noise": "Noise moves it up or down by chance. Is anything one-sided here?",
    },
    why="All points in the window lie to the right, where the curve is higher. Nothing on the left balances them.",
)

# %%
cu.explore.moving_query(x, y, truth=forty.truth)

# %% [markdown]
# Move the query, then the width. Narrow: few points count, and the average jumps from one to the next. Wide: all count
# alike, and the average hardly moves.
#
# ### By hand
#
# Now three points: the keys 0, 1, 3 with the values 2, 3, 7. The query is 1, exactly where 3 was measured. The bump
# is the **Gaussian kernel** $K(u) = e^{-u^2/2}$, and $u$ is the distance, measured in units of the **width** $\sigma = 1$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "What is the weighted average at the query 1?",
    ["below 3", "exactly 3", "between 3 and 4", "4 or more"],
    answer="below 3",
    wrong={
        "exactly 3": "Only if the other two had no weight at all. How high is the bump above the key 0?",
        "between 3 and 4": "The 7 pulls up and the 2 pulls down. Which of the two keys is nearer?",
        "4 or more": "4 is the plain mean, where the far 7 counts as much as the others.",
    },
    why="The 2 is nearer than the 7: it gets 0.35 of the weight, the 7 only 0.08.",
)

# %%
three_keys, three_values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
three = pd.DataFrame({"key": three_keys, "value": three_values})
three["distance"] = (1.0 - three["key"]).abs()
three["kernel"] = [math.exp(-(u**2) / 2) for u in three["distance"]]
three["weight"] = three["kernel"] / three["kernel"].sum()
three["weight × value"] = three["weight"] * three["value"]
three.loc["sum"] = three[["kernel", "weight", "weight × value"]].sum()
three.round(3).astype(object).fillna("")

# %%
cu.quiz("kernel_regression", "window")

# %% [markdown]
# ## A drawing, a formula, four lines
#
# *Section 2 of 6*
#
# The last column adds up to 2.963, a little less than the 3 measured at the query itself. A kernel regression does not
# pass through its data, and with noise it should not. Here is the same calculation as a flow of data; all of attention
# will have this form.

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
        "q": cu.Cells(1, 1, "query", shape="(1,)", values=[[1]], color="sky"),
        "k": cu.Cells(1, 3, "keys", shape="(3,)", values=[[0, 1, 3]], color="orange"),
        "v": cu.Cells(1, 3, "values", shape="(3,)", values=[[2, 3, 7]], color="green"),
        "distance": cu.Box("distances: q − k", shape="(1, 3)"),
        "kernel": cu.Box("kernel: exp(−½ (distance / σ)^2)"),
        "K": cu.Cells(1, 3, shape="(1, 3)", values=bumps),
        "norm": cu.Box("normalize: divide by the sum"),
        "A": cu.Cells(1, 3, "weights", shape="(1, 3)", values=shares, color="yellow"),
        "mix": cu.Box("mix: weights × values, summed"),
        "f": cu.Cells(1, 1, "answer", shape="(1,)", values=[["2.963"]], color="green"),
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
# PyTorch's operator computes $\mathrm{softmax}(s\,qk_i + b_i)$. Multiply out $(q-k_i)^2$: the term in $q^2$ is the same for all
# keys, so that a softmax does not see it. What is left is a product $qk_i/\sigma^2$ and, for each key, the bias
# $b_i = -k_i^2/2\sigma^2$. Kernel regression *is* dot-product attention with a bias.


# %%
def attention_weights(queries, keys, width):
    """(queries,), (keys,) → (queries, keys)."""
    scores = -((queries[:, None] - keys[None, :]) ** 2) / 2  # score
    scores = scores / width**2  # scale
    return scores.softmax(dim=1)  # normalize


def kernel_regression(queries, keys, values, width):
    """(queries,), (keys,), (keys,) → (queries,)."""
    return attention_weights(queries, keys, width) @ values  # mix


def pytorch_attention(queries, keys, values, width):
    bias = (-(keys**2) / (2 * width**2)).expand(len(queries), -1)
    columns = queries[:, None], keys[:, None], values[:, None]
    return F.scaled_dot_product_attention(*columns, bias, scale=1 / width**2)[:, 0]


window = 0.4  # try 0.1 … 3.0
cu.equal(kernel_regression, cu.nadaraya_watson, places, x, y, width=window)
cu.equal(kernel_regression, pytorch_attention, places, x, y, width=window)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
darkest = 0.3
fig, (left, right) = cu.subplots(
    1, 2, width=8.6, height=3.2, width_ratios=[1.15, 1],
    alt=f"Left: the fit of width {window:g} through the forty points, next to the true curve. Right: "
    "the weights of 101 queries over 40 keys form a band along the diagonal, darkest in two corners.",
)  # fmt: skip
left.plot(x, y, "o", color="0.65", markersize=4)
left.plot(places, truth, "--", color="black", linewidth=1.3, label="true curve")
fitted = kernel_regression(places, x, y, window)
left.plot(places, fitted, color=cu.COLORS["vermilion"], label=f"fit, σ = {window:g}")
left.set(xlabel="x", ylabel="y", title=f"squared error {error(fitted):.2f}")
left.legend(loc="upper left")
matrix = attention_weights(places, x, window)
image = cu.heatmap(
    right, matrix, xlabel="keys, in the order of x", ylabel="queries", vmax=darkest, title="weights"
)
right.set_yticks([0, 50, 100], ["x = 0", "2.5", "5"])
bar = fig.colorbar(image, ax=right, ticks=[0, 0.1, 0.2, darkest])
bar.ax.set_yticklabels(["0", "0.1", "0.2", "0.3 or more" if matrix.max() > darkest else "0.3"])
fig

# %% [markdown]
# Average pooling had an error of 0.81, this fit has 0.10. In the map each row is one query and sums to 1; queries and
# keys are sorted, so that the weight lies along the diagonal. The map is darkest in two corners: at an edge half of
# the window is empty, and fewer keys share the weight. There, on the left, the fit starts too high, as you saw.
#
# ### Exercise 1 · Five answers without a computer
#
# *predict · 5 minutes*
#
# The three points again, keys 0, 1, 3 with values 2, 3, 7. At the query 1 and $\sigma = 1$ the answer is 2.963. What is it if
# one thing changes? Write down five numbers first; then let the check compare them.
#
# (a) $\sigma = 0.001$ · (b) $\sigma = 1000$ · (c) the query is −50 · (d) all values grow by 10 · (e) query, keys and $\sigma$ are all
# doubled.


# %% tags=["exercise", "predict"]
def predicted_answers():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"]
cu.checks.predicted_answers(predicted_answers)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_answers_solution():
    """Nearest key; mean; nearest key again; weights stay; u stays."""
    return [3, 4, 2, 12.963, 2.963]


cu.checks.predicted_answers(predicted_answers_solution)

# %%
cu.quiz("kernel_regression", "sum_of_weights")

# %% [markdown]
# ## The width decides
#
# *Section 3 of 6*
#
# A width of 0.4 was a lucky guess. To see what the width does, measure again and again: 200 new sets of forty points
# from the same curve, each fitted with five widths. The mean of the 200 fits misses the curve by the **bias**; around
# their mean the fits scatter with the **variance**. *Keys used* is $1/\sum_i\alpha_i^2$: it is $m$ if $m$ keys share the weight
# equally.

# %%
draws = [cu.noisy_sine(40, noise=noise, seed=seed) for seed in range(200)]
width_rows = []
for width in (0.1, 0.2, 0.4, 0.8, 1.6):
    fits = torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    own = torch.stack([kernel_regression(d.x, d.x, d.y, width) - d.y for d in draws])
    bias2 = (fits.mean(0) - truth).square().mean().item()
    variance = fits.var(0, correction=0).mean().item()
    used = (1 / attention_weights(places, x, width).square().sum(1)).mean().item()
    errors = [own.square().mean().item(), bias2, variance, bias2 + variance]
    width_rows.append([width, used, *errors])
head = ["width σ", "keys used", "own points", "bias²", "variance", "error = sum"]
by_width = pd.DataFrame(width_rows, columns=head).set_index("width σ")
by_width.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=9, height=2.9, sharey=True,
    alt="Twenty fits in gray, the mean of 200 in red and the true curve dashed, at three widths. At 0.1 "
    "the gray fits scatter widely around the true curve; at 0.4 they stay near it; at 1.6 they lie "
    "close together and are nearly straight, far from the bends of the curve.",
)  # fmt: skip
for ax, width, name in zip(
    axes, (0.1, 0.4, 1.6), ("too narrow", "about right", "too wide"), strict=True
):
    some = torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    ax.plot(places, some[:20].T, color="0.75", linewidth=0.7)
    ax.plot(places, some.mean(0), color=cu.COLORS["vermilion"])
    ax.plot(places, truth, "--", color="black", linewidth=1.3)
    ax.set(title=f"σ = {width:g}: {name}", xlabel="x")
axes[0].set_ylabel("y")
axes[2].text(
    4.9, 0.15, "black: true curve\nred: mean of 200 fits\ngray: 20 of them", ha="right", fontsize=9
)
fig

# %% [markdown]
# **Narrow** means few keys, fits that chase the noise, and variance: 0.43 of 0.43 at $\sigma = 0.1$. **Wide** means many keys, calm
# fits that cut off the bends, and bias: 0.62 of 0.67 at $\sigma = 1.6$. In between, near 0.4, the sum is smallest: 0.17. The error *on its
# own points* knows nothing of this: the narrower, the smaller. In attention the same trade is made by the temperature.
#
# ### And the shape of the kernel?
#
# A kernel may be any bump. Do three others do better, if each gets its own best width? (The last three end at $\sigma$. Where some
# place has no key in reach, the average does not exist, and their curves below begin only to the right of that.)
#
# | Gaussian | boxcar | triangular | Epanechnikov |
# |---|---|---|---|
# | $e^{-u^2/2}$ | 1 if $u \le 1$, else 0 | $\max(0, 1-u)$ | $\max(0, 1-u^2)$ |


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def mean_error(kernel, width):
    """Squared error against the curve, over 50 of the draws; NaN if a place has no key in reach."""
    fits = [cu.nadaraya_watson(places, d.x, d.y, kernel=kernel, width=width) for d in draws[:50]]
    return (torch.stack(fits) - truth).square().mean().item()


grid = torch.linspace(0.1, 2.5, 25)
valleys = {}
for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov"):
    curve = pd.Series([mean_error(kernel, width.item()) for width in grid], index=grid.tolist())
    valleys[f"{kernel}: {curve.min():.2f} at σ = {curve.idxmin():.1f}"] = curve.to_numpy()
cu.show_curves(
    grid, valleys, xlabel="width σ", ylabel="squared error", width=7,
    alt="Error over the width for four kernels. Each curve is a valley; the four bottoms are equally "
    "low and lie at different widths. The legend gives the lowest error and its width.",
)  # fmt: skip

# %%
cu.quiz("kernel_regression", "bias_or_variance")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A narrow window has variance, a wide one bias, and the best lies in between."):
    assert by_width["variance"].iloc[0] > 0.9 * by_width["error = sum"].iloc[0]
    assert by_width["bias²"].iloc[-1] > 0.9 * by_width["error = sum"].iloc[-1]
    assert by_width["error = sum"].idxmin() == 0.4
    assert by_width["own points"].is_monotonic_increasing
    lowest = [pd.Series(curve).min() for curve in valleys.values()]
    assert max(lowest) < 1.2 * min(lowest)

# %% [markdown]
# ## Leave one out, then learn
#
# *Section 4 of 6*
#
# The four valleys are almost equally deep, 0.17 to 0.19, while twice the best width nearly doubles the Gaussian's error: the shape
# matters little, the width much. (The valleys lie at different places: each kernel measures width in its own way.) So what remains is to choose $\sigma$. In practice there is one set of points and no true curve, and the error
# on its own points would choose the narrowest. The way out: **predict each point from all the others**, and compare with
# its value. By hand, with the three points and $\sigma = 1$:
#
# | left out | weights of the other two | prediction | value | value − prediction |
# |---|---|---|---|---|
# | key 0 | 0.982, 0.018 | 0.982 · 3 + 0.018 · 7 = 3.072 | 2 | −1.072 |
# | key 1 | 0.818, 0.182 | 0.818 · 2 + 0.182 · 7 = 2.912 | 3 | 0.088 |
# | key 3 | 0.076, 0.924 | 0.076 · 2 + 0.924 · 3 = 2.924 | 7 | 4.076 |
#
# The **leave-one-out error** is the mean of the squares in the last column, $(1.149 + 0.008 + 16.61)/3 = 5.92$.
#
# ### Exercise 2 · All points at once
#
# *build · 10 minutes*
#
# Write it without a loop over the points. Every point is a query and a key, so the scores are a matrix (n, n); what has to
# become of its diagonal, *before* the softmax, so that the others share all of the weight? The chapter goes on with
# your function once it passes.


# %% tags=["exercise", "build"]
def my_leave_one_out(keys, values, width):
    """(n,), (n,) → (n,): each value from the others, Gaussian kernel."""
    ...


# %% tags=["check"]
print(my_leave_one_out(three_keys, three_values, 1.0))  # by hand: 3.072, 2.912, 2.924
cu.checks.my_leave_one_out(my_leave_one_out)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_leave_one_out_solution(keys, values, width):
    """A score of −inf becomes a weight of 0: the point itself is masked."""
    scores = -((keys[:, None] - keys[None, :]) ** 2) / 2 / width**2
    itself = torch.eye(len(keys), dtype=torch.bool)
    return scores.masked_fill(itself, -math.inf).softmax(dim=1) @ values


cu.checks.my_leave_one_out(my_leave_one_out_solution)

# %% [markdown]
# What you wrote is a **mask**: a pair that must not count gets the score $-\infty$ before the softmax. Masked attention works
# in just this way, for padding and for words that have not been written yet.
#
# Which width does leaving one out choose for the forty points? *Fresh data* is the error that new measurements would show:
# the error against the curve, plus the variance of their noise.

# %%
leave_one_out = cu.choose(my_leave_one_out, cu.leave_one_out)
widths = torch.logspace(-2.7, 0.7, 69)
judged = [(leave_one_out(x, y, width=w) - y).square().mean().item() for w in widths]
training = [(kernel_regression(x, x, y, w) - y).square().mean().item() for w in widths]
fresh = [error(kernel_regression(places, x, y, w)) + noise**2 for w in widths]
chosen = widths[torch.tensor(judged).argmin()].item()
print(f"leaving one out chooses σ = {chosen:.2f}")
cu.show_curves(
    widths, {"own points": training, "leave one out": judged, "fresh data": fresh},
    logx=True, xlabel="width σ", ylabel="mean squared error", width=7,
    alt="The error on own points rises from 0 with the width; the others fall first.",
)  # fmt: skip

# %% [markdown]
# The error on its own points falls to 0 at the left, where each point predicts itself. The leave-one-out
# error has a valley, and it lies close to that of the fresh data. It is an estimate from forty noisy numbers, though, and
# sometimes wrong: the further page counts how often.
#
# ### Exercise 3 · Leave one out for free
#
# *build · 10 minutes*
#
# On paper: suppose that the weights $\alpha_{ij}$ of query $k_i$ for key $k_j$ are computed already, each point *included*. Show that
#
# $$v_i - f_{-i}(k_i) = \frac{v_i - f(k_i)}{1-\alpha_{ii}} ,$$
#
# where $f_{-i}$ is the prediction from the others. (Start: the others' weights become $\alpha_{ij}/(1-\alpha_{ii})$. Why?) Then write it
# in one line, and say when it fails: what is $\alpha_{ii}$ in single precision if the nearest neighbor is ten widths away?


# %% tags=["exercise", "build"]
def loo_residuals(weights, values):
    """Weights (n, n), each point included, values (n,) → values − predictions, (n,)."""
    ...


# %% tags=["check"]
cu.checks.loo_residuals(loo_residuals)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def loo_residuals_solution(weights, values):
    """f = αᵢᵢ vᵢ + (1 − αᵢᵢ) f₋ᵢ: subtract from vᵢ and divide.

    Ten widths away, exp(−50) is less than half a unit of rounding: αᵢᵢ is 1, and the answer 0/0. So the
    shortcut is for widths that reach a neighbor, and masking the scores is for all.
    """
    return (values - weights @ values) / (1 - weights.diagonal())


cu.checks.loo_residuals(loo_residuals_solution)

# %% [markdown]
# ### Descend on it
#
# A table of 69 widths is fine for one number. For many numbers, and for all that comes later in this course, we want
# gradients. We learn $\log\sigma$, so that no step can make the width negative. (Some texts learn $w = 1/\sigma$.)


# %%
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


# %%
start = 2.0  # try 0.1 … 5.0
rate = 0.05  # try 0.01 … 0.3


def loo_error(log_width):
    return (leave_one_out(x, y, width=log_width.exp()) - y).square().mean()


path, losses = descend(loo_error, torch.tensor(start).log(), rate)
learned = path[-1].exp().item()
print(f"width {start:.2f} → {learned:.2f}, error {losses[0]:.2f} → {losses[-1]:.2f}")
cu.show_curves(
    torch.arange(200), {"width σ": path.exp(), "leave-one-out error": losses},
    xlabel="step", ylabel="", width=7,
    alt="Over 200 steps the width falls from 2 to about 0.3; the error falls, too.",
)  # fmt: skip

# %% [markdown]
# What is descended on *is* the leave-one-out error, so that gradient descent ends in the same valley.
#
# ### Exercise 4 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague's network hands out its predictions as a column, (n, 1). His loss falls as well, and his width runs away.
# Read what the next cell prints. Which width would an *average* have? Find the mistake, and write `fixed_loss`.


# %%
def buggy_loss(keys, values, width):
    predictions = cu.leave_one_out(keys, values[:, None], width=width)  # (n, 1)
    return (predictions - values).square().mean()


astray, falling = descend(lambda s: buggy_loss(x, y, s.exp()), torch.tensor(0.0))
print(f"loss {falling[0]:.2f} → {falling[-1]:.2f}")
print(f"width {astray[0].exp():.2f} → {astray[-1].exp():.2f}")


# %% tags=["exercise", "bug"]
def fixed_loss(keys, values, width):
    """(n,), (n,) → the leave-one-out error: a scalar, with a gradient for the width."""
    ...


# %% tags=["check"]
cu.checks.fixed_loss(fixed_loss)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_loss_solution(keys, values, width):
    """(n, 1) − (n,) is (n, n): each prediction was compared with each value, and the mean suits all."""
    predictions = cu.leave_one_out(keys, values[:, None], width=width)[:, 0]  # (n,)
    return (predictions - values).square().mean()


cu.checks.fixed_loss(fixed_loss_solution)

# %%
cu.quiz("kernel_regression", "left_out")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Leaving one out finds a good width, by a table and by descent."):
    assert training[0] < 0.05 and training == sorted(training)
    assert fresh[judged.index(min(judged))] < 1.1 * min(fresh)
    assert abs(learned / chosen - 1) < 0.1
    assert falling[-1] < falling[0] and astray[-1].exp() > 3

# %% [markdown]
# ## Learn in which directions to look
#
# *Section 5 of 6*
#
# Now keys with two coordinates: 200 points in a square, and $y$ is a wave of which only *one direction* matters. First this
# is the direction of $x_1$, then one that is tilted. The kernel does not know. Let it learn, with leaving one out as the judge,
# a matrix $W$ by which queries and keys are multiplied before they are compared:
#
# - **one width**: $W$ is one number times the identity;
# - **a width for each coordinate**: $W$ has two numbers $1/\sigma_1$ and $1/\sigma_2$ on its diagonal;
# - **a matrix**: all four numbers of $W$ are free.

# %%
tilt = 45  # try 0 … 90
points = 2 * torch.rand(2200, 2, generator=torch.Generator().manual_seed(0))
square, spots = points[:200], points[200:]  # keys, queries
ripple = 0.2 * torch.randn(200, generator=torch.Generator().manual_seed(1))
forms = {
    "one width": (lambda p: p * torch.eye(2), torch.tensor(3.0)),
    "a width for each": (torch.diag, torch.tensor([3.0, 3.0])),
    "a matrix": (torch.clone, 3 * torch.eye(2)),
}


def look(degrees, matrix, begin):
    """Learn W for a wave at this angle; give W and its error at 2,000 fresh spots."""
    angle = torch.tensor(math.radians(degrees))
    along = torch.stack([angle.cos(), angle.sin()])
    y, wave = torch.sin(3 * square @ along) + ripple, torch.sin(3 * spots @ along)
    steps, _ = descend(lambda p: cu.leave_one_out_error(square @ matrix(p), y), begin)
    W = matrix(steps[-1])
    return W, F.mse_loss(cu.nadaraya_watson(spots @ W, square @ W, y), wave).item()


looks = {(form, d): look(d, *forms[form]) for form in forms for d in (0, tilt)}
missed = pd.Series({(form, f"wave at {d}°"): looks[form, d][1] for form, d in looks})
missed.unstack(sort=False).round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = [("one width", 0), ("a width for each", 0), ("a matrix", tilt)]
fig, axes = cu.subplots(
    1, 3, width=9, height=3.9, sharey=True,
    alt="The weights of 200 points in a square for one query in the middle. One width: a disc. A width "
    "for each coordinate: an upright strip. A matrix, for a tilted wave: a tilted strip.",
)  # fmt: skip
for ax, (form, degrees) in zip(axes, shown, strict=True):
    W, _ = looks[form, degrees]
    alpha = cu.kernel_weights(torch.ones(1, 2) @ W, square @ W)[0]
    ax.plot(*square.T, ".", color="0.6", markersize=3)
    ax.scatter(*square.T, s=1500 * alpha, color=cu.COLORS["blue"], alpha=0.55, linewidths=0)
    ax.plot(1, 1, "+", color=cu.COLORS["vermilion"], markersize=13, markeredgewidth=2)
    title = f"{form}, wave at {degrees}°\n{1 / alpha.square().sum():.0f} keys used"
    ax.set(title=title, xlabel="x₁", aspect="equal")
    ax.set(xticks=[0, 1, 2], yticks=[0, 1, 2])
axes[0].set_ylabel("x₂")
fig

# %% [markdown]
# Left a **disc**: with one width, points far up and down are ignored, although they carry the same information. In the
# middle a **strip**: the second width has become so large that the kernel no longer sees $x_2$; it can afford to be narrow
# where it matters *and* average over more points, and the error falls from 0.017 to 0.008. If the wave is tilted, a width for
# each coordinate does not help: 0.017 as before. A whole matrix does, the strip turns: 0.008. (All this for one draw of the
# points, with the same steps for each form.)
#
# This step leads to attention. There, a query is $q = xW_Q$ and a key is $k = xW_K$, and training finds
# **in which directions to look**.
#
# ### Exercise 5 · One width for all places?
#
# *open · 5 minutes*
#
# Suppose ten of the forty points lie left of 2.5 and thirty lie right of it. Is one $\sigma$ still a good idea? Propose a width that
# depends on the query, without looking at the true curve. What would you measure to find out whether it is better, and which
# result would show that you were wrong? (Leave one out can judge it. Try it in a new cell.)

# %%
cu.quiz("kernel_regression", "strip")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A width for each coordinate helps with a straight wave, a matrix with a tilted one."
):
    assert missed["a width for each", "wave at 0°"] < 0.6 * missed["one width", "wave at 0°"]
    assert missed["a width for each", "wave at 45°"] > 0.8 * missed["one width", "wave at 45°"]
    assert missed["a matrix", "wave at 45°"] < 0.6 * missed["one width", "wave at 45°"]

# %% [markdown]
# ## What goes wrong
#
# *Section 6 of 6*
#
# Three mistakes that raise no error. First: the training points are queries and keys at once, and somebody forgets to leave
# out the point itself. The same descent, from the same start:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Each point is among its own keys. Where does the learned width go?",
    ["to the same valley", "toward 0", "to ever larger values"],
    answer="toward 0",
    wrong={
        "to the same valley": "There was a valley because no point could see its own value. Now it can.",
        "to ever larger values": "Then all points get the mean. Is there a smaller error than that?",
    },
    why="With all weight on itself, each point predicts its own value, noise included, and the error is 0.",
)


# %%
def leaky_error(log_width):
    return (kernel_regression(x, x, y, log_width.exp()) - y).square().mean()


leaky_path, leaky = descend(leaky_error, torch.tensor(start).log(), rate)
copied = leaky_path[-1].exp().item()
followed = {"from the others": path.exp(), "itself included": leaky_path.exp()}
cu.show_curves(
    torch.arange(200), followed, logy=True, xlabel="step", ylabel="width σ", width=7,
    alt="From the others the width settles; with itself included it keeps falling.",
)  # fmt: skip

# %% [markdown]
# A loss that goes to 0 looks wonderful, and each point has only learned to copy itself. A language model that may look at the word
# it has to predict does the same; its causal mask is there to prevent this.
#
# Second: **twins**. If each measurement is in the table twice, leaving one out leaves its twin in. (Rows of the same
# patient, neighboring frames of one film: leave out the whole group.) Third: **the wrong axis**, `softmax(dim=0)`, over the queries
# instead of over the keys. All in one table, with the sums of the rows of weights:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
twin, twin_errors = cu.best_width(x.repeat(2), y.repeat(2), widths)
wrong_axis = attention_weights(x, places, chosen).T  # normalized over the queries
rows_of = {
    "others only": (chosen, min(judged), attention_weights(places, x, chosen)),
    "itself included": (copied, leaky[-1], attention_weights(places, x, copied)),
    "twins": (twin, twin_errors.min().item(), attention_weights(places, x, twin)),
    "wrong axis": (chosen, math.nan, wrong_axis),
}
mistakes = pd.DataFrame(
    {
        name: [width, told, error(alpha @ y) + noise**2, alpha.sum(1).min(), alpha.sum(1).max()]
        for name, (width, told, alpha) in rows_of.items()
    },
    index=["width", "error it reports", "on fresh data", "smallest row sum", "largest row sum"],
).T.astype(float)
mistakes.round(2)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each of the three mistakes is worse than it says, and the row sums betray the wrong axis."
):
    assert leaky[-1] < 0.05 and copied < 0.02
    assert twin < 0.05 and twin_errors.min() < 0.3
    assert mistakes["on fresh data"].idxmin() == "others only"
    assert (
        mistakes["largest row sum"]["wrong axis"] > 1.2 * mistakes["smallest row sum"]["wrong axis"]
    )

# %% [markdown]
# Itself included, and with twins, the error that is reported is 0.02 and 0.00; on fresh data both have 1.9, the honest choice 1.09, of
# which 1 is noise. On the wrong axis the rows sum to between 0.19 and 0.52: print the sums of your rows.
#
# ## Take-aways
#
# - Kernel regression is attention without training: an average of the values, weighted by a softmax over how near their keys
#   are. It is PyTorch's operator with a bias for each key.
# - The width decides: narrow means variance, wide means bias. The shape of the kernel hardly matters.
# - Choose or learn on predictions that never saw their own value: a mask on the diagonal.
# - With a matrix in front, a kernel learns in which directions to look. This is what $W_Q$ and $W_K$ are for.
#
# Next: [Scoring functions](03_scoring_functions.ipynb), where distances become dot products. For edges, rates, more dimensions, classification
# and 0/0 there is a further page: [Kernel regression: kernels, edges and rates](02_kernel_regression_further.ipynb).
#
# ## Quiz

# %%
cu.quiz("kernel_regression")

# %% [markdown]
# ## References
#
# - Nadaraya, E. A. (1964). [On estimating regression](https://doi.org/10.1137/1109020). Theory of Probability & Its Applications 9(1), 141–142.
# - Watson, G. S. (1964). [Smooth regression analysis](https://www.jstor.org/stable/25049340). Sankhyā: The Indian Journal of Statistics, Series A 26(4), 359–372.
# - Hastie, T., Tibshirani, R. & Friedman, J. (2009). [The Elements of Statistical Learning](https://hastie.su.domains/ElemStatLearn/). Springer. Chapter 6 begins with the window picture.
