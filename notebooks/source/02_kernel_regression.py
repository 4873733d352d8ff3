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
# In 1964 Nadaraya and Watson, independently, gave the answer that attention still gives: *average the values you have, and let the near ones count more*.
# The place you ask about is the **query**, the places that were measured are the **keys**, the measurements are the **values**.
# There is no neural network in this chapter, and the weighted average of attention is all there.
#
# After this chapter you can
#
# - predict from (key, value) pairs by hand, in four lines of code, and with PyTorch's attention operator;
# - say what the width of a kernel does, and how little its shape matters;
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
from course_utils import pooling
from course_utils.pooling import leave_one_out_error

cu.seed_everything(0)

# %%
cu.recall("queries_keys_values", "start_here")

# %% [markdown]
# ## Near points count more
#
# *Section 1 of 7*
#
# Somebody has measured a quantity $y$ at forty places $x$.
# Each measurement is a smooth curve plus noise, $y = 2\sin x + x + \varepsilon$.
# The noise $\varepsilon$ is normal with standard deviation 1: two of three measurements lie less than 1 from the curve.
# We know the curve, so that we can say how wrong an answer is.
# The method never sees it.
#
# What is the least that we can do?
# Ignore the place and always answer with the mean of all values: no other constant has a smaller mean squared error.
# This is **average pooling**, the baseline of this chapter.
# From here on we measure the distance from the *curve*: what the noise adds, no method can take away.

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

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    alt="Forty points scattered over x from 0 to 5. They rise, fall a little and rise again. A "
    "dotted horizontal line marks their mean; a vertical line at x = 2.95 carries a question mark.",
    width=7, height=3,
)  # fmt: skip
ax.plot(x, y, "o", color=cu.COLORS["key"], markersize=5)
ax.hlines(y.mean(), -0.1, 5, linestyle=":", color="0.3")
ax.text(5.05, y.mean(), "mean", va="center", color="0.3")
ax.axvline(2.95, color=cu.COLORS["query"], linewidth=1.2)
ax.text(3.0, y.max() + 0.3, "?", fontsize=16, color=cu.COLORS["query"], va="center")
ax.set(xlabel="x", ylabel="y", xlim=(-0.1, 5.4), ylim=(y.min() - 0.3, y.max() + 0.7))
fig

# %% [markdown]
# By eye, you would look at the points around the line, and so will we.
# Lay a **window** over the query: a bump that is 1 at the query and falls off to both sides.
# Such a bump is called a **kernel**.
# Each point counts as much as the bump is high above it.
# Divide these numbers by their sum and you have weights; the weighted average of the values is the answer.
#
# In the next picture you can drag the query, and the average draws a curve from where it began.
# You can also drag points, or click to add one.
# The disks are as large as the weights; the bars below them, under the window, are the weights.
# Before you move anything: the true curve starts at 0 on the left edge and rises.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At the left edge, where will the average lie?",
    ["below the true curve", "on it, up to noise", "above the true curve"],
    answer="above the true curve",
    wrong={
        "below the true curve": "Which points are in the window there: lower or higher ones?",
        "on it, up to noise": "Noise moves it up or down by chance. Is anything one-sided here?",
    },
    why="All points in the window lie to the right, and there the curve is higher. Nothing on the left balances them.",
)

# %%
cu.live.kernel_regression(noise)

# %% [markdown]
# Move the query, then the width.
# At which width does the average jump from point to point, and at which does it hardly move?
# Narrow, few points count; wide, all count nearly alike.
# (*Learn the width* is for section 5.)
#
# ### By hand
#
# Now three points: the keys 0, 1, 3 with the values 2, 3, 7.
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

# %% [markdown]
# The last column adds up to 2.963, a little less than the 3 measured at the query itself.
# At this width a kernel regression does not pass through its data, and with noise it should not.

# %%
cu.quiz("kernel_regression", "three_bumps")

# %% [markdown]
# ## A drawing, a formula, four lines
#
# *Section 2 of 7*
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
    """(queries,), (keys,) → (queries, keys)."""
    scores = -((queries[:, None] - keys[None, :]) ** 2) / 2  # score
    scores = scores / width**2  # scale
    return scores.softmax(dim=1)  # normalize


def kernel_regression(queries, keys, values, width):
    """(queries,), (keys,), (keys,) → (queries,)."""
    return attention_weights(queries, keys, width) @ values  # mix


def pytorch_attention(queries, keys, values, width):
    key_term = (-(keys**2) / (2 * width**2)).expand(len(queries), -1)
    q, k, v = queries[:, None], keys[:, None], values[:, None]
    return F.scaled_dot_product_attention(q, k, v, key_term, scale=width**-2)[:, 0]


window = 0.4  # try 0.1 … 3.0
cu.equal(kernel_regression, cu.nadaraya_watson, places, x, y, width=window)
cu.equal(kernel_regression, pytorch_attention, places, x, y, width=window)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
darkest = 0.3
fig, (left, right) = cu.subplots(
    1, 2, width=8.6, height=3.2, width_ratios=[1.15, 1],
    alt=f"Left: the fit of width {window:g} through the forty points, next to the true curve. Right: "
    "the weights of 101 queries over 40 keys form a band along the diagonal.",
)  # fmt: skip
left.plot(x, y, "o", color="0.65", markersize=4)
left.plot(places, truth, "--", color="black", linewidth=1.3, label="true curve")
fitted = kernel_regression(places, x, y, window)
left.plot(places, fitted, color=cu.COLORS["query"], label=f"fit, σ = {window:g}")
left.set(xlabel="x", ylabel="y", title=f"squared error {error(fitted):.2f}")
left.legend(loc="lower right")
matrix = attention_weights(places, x, window)
image = cu.heatmap(
    right, matrix, xlabel="keys, in the order of x", ylabel="queries", vmax=darkest, title="weights"
)
right.set_yticks([0, 50, 100], ["x = 0", "2.5", "5"])
bar = fig.colorbar(image, ax=right, ticks=[0, 0.1, 0.2, darkest])
bar.ax.set_yticklabels(["0", "0.1", "0.2", "0.3 or more" if matrix.max() > darkest else "0.3"])
fig

# %% [markdown]
# The first line above: our four lines and the library agree, in the answers and in the gradients for queries, keys and values.
# The second: so does PyTorch's attention.
#
# Average pooling had an error of 0.81, this fit has 0.10 (a lucky set of points: 0.17 on average, as the next section shows).
# In the map each row is one query and sums to 1; queries and keys are sorted, so that the weight lies along the diagonal.
# It is darkest where few keys are in the window, here at both edges.
# On the left the fit starts too high, as you saw.
#
# ### Exercise 1 · Five answers without a computer
#
# *predict · 5 minutes*
#
# The three points again, keys 0, 1, 3 with values 2, 3, 7.
# At the query 1 and $\sigma = 1$ the answer is 2.963.
# What is it if one thing changes?
# Write down five numbers first, to two decimals; then let the check compare them.
#
# (a) $\sigma = 0.001$ · (b) $\sigma = 1000$ · (c) the query is −50 · (d) all values grow by 10 · (e) query, keys and $\sigma$ are all doubled.


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
cu.quiz("kernel_regression", "key_term")

# %% [markdown]
# ## The width decides
#
# *Section 3 of 7*
#
# A width of 0.4 was a lucky guess.
# To see what the width does, measure again and again: 200 new sets of forty points from the same curve, each fitted with five widths.
# The mean of the 200 fits misses the curve by the **bias**; around their mean the fits scatter with the **variance**.
# *Inside* is what of the bias² is more than 1 away from both edges, and *keys used* is $1/\sum_i\alpha_i^2$ (for the forty points above): it is $m$ if $m$ keys share the weight equally.

# %%
draws = [cu.noisy_sine(40, noise=noise, seed=seed) for seed in range(200)]
inside = (places >= 1) & (places <= 4)
width_rows = []
for width in (0.1, 0.2, 0.4, 0.8, 1.6):
    fits = torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    bias2 = (fits.mean(0) - truth).square()  # at each place
    variance = fits.var(0, correction=0).mean()
    used = (1 / attention_weights(places, x, width).square().sum(1)).mean()
    parts = [(bias2 * inside).mean(), bias2.mean(), variance, bias2.mean() + variance]
    width_rows.append([width, *map(float, [used, *parts])])
head = "σ", "keys used", "inside", "bias²", "variance", "error = sum"
by_width = pd.DataFrame(width_rows, columns=head).set_index("σ")
by_width.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=9, height=2.9, sharey=True,
    alt="Twenty fits in gray, the mean of 200 in red and the true curve dashed, at three widths. At 0.1 "
    "the gray fits scatter widely around the true curve; at 0.4 they stay near it; at 1.6 they lie "
    "close together and are nearly straight, far from the curve at both edges and at its bends.",
)  # fmt: skip
for ax, width, name in zip(
    axes, (0.1, 0.4, 1.6), ("too narrow", "about right", "too wide"), strict=True
):
    some = torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    ax.plot(places, some[:20].T, color="0.75", linewidth=0.7)
    ax.plot(places, some.mean(0), color=cu.COLORS["query"])
    ax.plot(places, truth, "--", color="black", linewidth=1.3)
    ax.set(title=f"σ = {width:g}: {name}", xlabel="x")
axes[0].set_ylabel("y")
axes[2].text(
    4.9,
    0.15,
    "black: true curve\nred: mean of 200 fits\ngray: 20 of them",
    ha="right",
    fontsize=9,
)
fig

# %% [markdown]
# **Narrow** means few keys (3 at $\sigma = 0.1$), fits that chase the noise, and variance: 0.43 of 0.43.
# **Wide** means many keys (31 at $\sigma = 1.6$), calm fits, and bias: 0.62 of 0.67, most of it at the two edges, the rest (0.18) where the fits cut off the bends.
# In between, near 0.4, the sum is smallest: 0.17.
# In a softmax over $-(q-k)^2/2$, $\sigma^2$ *is* the temperature.
#
# A kernel may be any bump.
# Does its **shape** matter?
# Little: with its own best width a Gaussian, a triangle and a parabola have the error 0.17, and a flat **boxcar** (1 within the width, else 0) has 0.19; twice the best width nearly doubles the Gaussian's error.
# The [further page](02_kernel_regression_further.ipynb#Five-kernels-and-one-number) shows the curves.

# %%
cu.quiz("kernel_regression", "bias_or_variance")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Narrow means variance, wide means bias; twice the best width costs over half as much again.",
    given=noise == 1.0,
):
    assert by_width["variance"].iloc[0] > 0.9 * by_width["error = sum"].iloc[0]
    assert by_width["bias²"].iloc[-1] > 0.9 * by_width["error = sum"].iloc[-1]
    assert by_width["error = sum"].idxmin() == 0.4
    assert by_width["error = sum"][0.8] > 1.6 * by_width["error = sum"][0.4]

# %% [markdown]
# ## Leave one out
#
# *Section 4 of 7*
#
# What remains is to choose $\sigma$.
# In practice there is one set of points and no true curve, and the error on these points themselves would choose the narrowest.
# The way out: **predict each point from all the others**, and compare with its value.
# By hand, with the three points and $\sigma = 1$:
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
# Every point is a query and a key, so the scores are a matrix (n, n); what has to become of its diagonal, *before* the softmax, so that the others share all of the weight?
# (A loop over the points is right, too, and longer.)
# Keep the names of the parameters: the chapter goes on with your function once it passes.


# %% tags=["exercise", "build"]
def my_leave_one_out(keys, values, width):
    """(n,), (n,) → (n,): each value from the others, Gaussian kernel."""
    ...


# %% tags=["check"]
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
# Which width does leaving one out choose for the forty points?
# *Fresh data* is the error that new measurements would show: the error against the curve, plus the variance of their noise.

# %%
leave_one_out = cu.choose(my_leave_one_out, pooling.leave_one_out)
widths = torch.logspace(-2.7, 0.7, 69)
judged = [(leave_one_out(x, y, width=w) - y).square().mean().item() for w in widths]
training = [(kernel_regression(x, x, y, w) - y).square().mean().item() for w in widths]
fresh = [error(kernel_regression(places, x, y, w)) + noise**2 for w in widths]
chosen = widths[torch.tensor(judged).argmin()].item()
wished = widths[torch.tensor(fresh).argmin()].item()
print(f"leaving one out chooses σ = {chosen:.2f}; fresh data would choose {wished:.2f}")
cu.show_curves(
    widths, {"own points": training, "leave one out": judged, "fresh data": fresh},
    logx=True, xlabel="width σ", ylabel="mean squared error", width=7,
    alt="The error on own points rises from 0 with the width; the others fall first.",
)  # fmt: skip

# %% [markdown]
# The error on its own points falls to 0 at the left, where each point predicts itself.
# The leave-one-out error is lowest at 0.32, close to the 0.28 of the fresh data.
# It is an estimate from forty noisy numbers, though, and sometimes wrong: the further page shows by how much, and how it comes for free.

# %%
cu.quiz("kernel_regression", "very_narrow")

# %% [markdown]
# ## Learn the width
#
# *Section 5 of 7*
#
# A table of 69 widths is fine for one number.
# For many numbers, and for all that comes later in this course, we want gradients.
# We learn $\log\sigma$, so that no step can make the width negative.
# `Adam` is gradient descent with a step size of its own for each parameter; [Training transformers](12_training_transformers.ipynb) opens it.


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
rate = 0.05  # try 0.03 … 0.3


def loo_error(log_width):
    return (leave_one_out(x, y, width=log_width.exp()) - y).square().mean()


path, losses = descend(loo_error, torch.tensor(start).log(), rate)
learned = path[-1].exp().item()
print(f"width {start:.2f} → {learned:.2f}, error {losses[0]:.2f} → {losses[-1]:.2f}")
cu.show_curves(
    torch.arange(200), {"learned": path.exp(), "table": torch.full((200,), chosen)},
    xlabel="step", ylabel="width σ", width=7,
    alt=f"In 200 steps the width goes from {start:g} to {learned:.2f}.",
)  # fmt: skip

# %% [markdown]
# Descent makes the leave-one-out error smaller, from 1.59 to 0.98, and finds the width of the table, 0.32.
# You can watch it: open *Learn the width* in the live picture of section 1, set the width to 2, and press *Play*.
# Descent does not always find this width: far to the right the error is flat, and on other points it falls outward or has two valleys.
# (Try a start of 5 with a noise of 2 or 3.)
# Look at the table when you can.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# Somebody else has written the leave-one-out loss in this way.
# It falls to the variance of the values, and the width grows and grows.
# What does kernel regression predict with a very wide kernel?
# To which number does this loss pull every prediction?
# Find the mistake, and write `fixed_loss`.


# %%
def buggy_loss(keys, values, width):
    predictions = pooling.leave_one_out(keys, values[:, None], width=width)
    return (predictions - values).square().mean()


astray, falling = descend(lambda s: buggy_loss(x, y, s.exp()), torch.tensor(0.0))
print(f"width {astray[0].exp():.2f} → {astray[-1].exp():.2f}, loss → {falling[-1]:.2f}")


# %% tags=["exercise", "bug"]
def fixed_loss(keys, values, width):
    """(n,), (n,) → the leave-one-out error: a scalar, with a gradient for the width."""
    ...


# %% tags=["check"]
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

# %%
cu.quiz("kernel_regression", "log_width")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Leaving one out finds a good width, by table and by descent; the other loss widens it.",
    given=noise == 1.0,
):
    assert training[0] < 0.05 and training == sorted(training)
    fresh_there, best_fresh = fresh[judged.index(min(judged))], min(fresh)
    assert fresh_there < 1.1 * best_fresh
    assert abs(learned / chosen - 1) < 0.1
    assert falling[-1] < falling[0] and astray[-1].exp() > 3

# %% [markdown]
# ## Learn in which directions to look
#
# *Section 6 of 7*
#
# Now keys with two coordinates: 200 points in a square, and $y$ is a wave of which only *one direction* matters.
# First this is the direction of $x_1$, then one that is tilted.
# We multiply queries and keys by a matrix $W$ before we compare them, and choose $W$ so that the leave-one-out error is small.
# Three forms of $W$:
#
# - **one width**: $W$ is one number times the identity;
# - **a width for each coordinate**: $W$ has two numbers $1/\sigma_1$ and $1/\sigma_2$ on its diagonal;
# - **a matrix**: all four numbers of $W$ are free.


# %%
forms = {  # numbers that are learned → W, and where they start
    "one width": (lambda p: p * torch.eye(2), torch.tensor(6.0)),
    "a width for each": (lambda p: p.diag(), torch.tensor([6.0, 6.0])),
    "a matrix": (lambda p: p, 6 * torch.eye(2)),
}


def look(form, degrees, draw):
    """Learn W from 200 points: the points, W, and its error at 2,000 other spots."""
    numbers = torch.Generator().manual_seed(draw)
    square, spots = (2 * torch.rand(2200, 2, generator=numbers)).split([200, 2000])
    angle = torch.tensor(math.radians(degrees))
    along = torch.stack([angle.cos(), angle.sin()])
    y = torch.sin(3 * square @ along) + 0.2 * torch.randn(200, generator=numbers)
    matrix, begin = forms[form]
    loss = lambda p: leave_one_out_error(square @ matrix(p), y)  # noqa: E731
    W = matrix(descend(loss, begin, rate=0.7, steps=70)[0][-1])
    answers = cu.nadaraya_watson(spots @ W, square @ W, y)
    return square, W, F.mse_loss(answers, torch.sin(3 * spots @ along)).item()


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The wave is tilted by 45°. Which forms have a smaller error than one width?",
    ["a width for each, and a matrix", "a matrix alone", "neither, as both coordinates matter now"],
    answer="a matrix alone",
    wrong={
        "a width for each, and a matrix": "Which of the two coordinates could be ignored now?",
        "neither, as both coordinates matter now": "They do. Along how many directions does the wave change?",
    },
    why="The wave changes along x₁ + x₂ alone. Two widths stretch the axes, and only a matrix can turn them.",
)

# %%
tilt = 45  # try 20 … 90
tried = [(form, d, n) for form in forms for d in (0, tilt) for n in range(3)]
looks = {one: look(*one) for one in tried}
missed = pd.Series(
    {(form, f"wave at {d}°", f"draw {n}"): looks[form, d, n][2] for form, d, n in tried}
)
for form, degrees in (("a width for each", 0), ("a matrix", tilt)):
    print(f"{form}, {degrees}°: W =", looks[form, degrees, 0][1].numpy().round(2))
missed.unstack([1, 2], sort=False).round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = [("one width", 0), ("a width for each", 0), ("a matrix", tilt)]
fig, axes = cu.subplots(
    1, 3, width=9, height=3.9, sharey=True,
    alt="The weights of 200 points in a square for one query in the middle. One width: a disc. A width "
    "for each coordinate: an upright strip. A matrix, for a tilted wave: a tilted strip.",
)  # fmt: skip
for ax, (form, degrees) in zip(axes, shown, strict=True):
    square, W, _ = looks[form, degrees, 0]
    alpha = cu.kernel_weights(torch.ones(1, 2) @ W, square @ W)[0]
    ax.plot(*square.T, ".", color="0.6", markersize=3)
    ax.scatter(*square.T, s=1500 * alpha, color=cu.COLORS["key"], alpha=0.55, linewidths=0)
    ax.plot(1, 1, "+", color=cu.COLORS["query"], markersize=13, markeredgewidth=2)
    title = f"{form}, wave at {degrees}°\n{1 / alpha.square().sum():.0f} keys used"
    ax.set(title=title, xlabel="x₁", aspect="equal")
    ax.set(xticks=[0, 1, 2], yticks=[0, 1, 2])
axes[0].set_ylabel("x₂")
fig

# %% [markdown]
# Left a **disc**: with one width, points far up and down are ignored, although they carry the same information.
# In the middle a **strip**: the second number of $W$ is nearly 0, so that the kernel no longer sees $x_2$.
# The query averages over 18 keys instead of 11, although $\sigma_1$ is smaller than the one width, and the error falls from 0.016 to 0.003.
# If the wave is tilted, a width for each coordinate does not help.
# A whole matrix does: both columns of $W$ are nearly multiples of $(1, 1)$, so that $x_1 + x_2$ is compared, and the strip turns.
# For the straight wave its two further numbers gain nothing.
# (70 steps at the rate 0.7: with three times as many, no error changes by more than 0.0011.
# Try a tilt of 90: why does a width for each coordinate help again?)
#
# This step leads to attention.
# There, a query is $q = xW_Q$ and a key is $k = xW_K$, with two different matrices, and training finds **in which directions to look**.
#
# ### Exercise 4 · One width for all places?
#
# *open · 5 minutes*
#
# Suppose ten of the forty points lie left of 2.5 and thirty lie right of it.
# Is one $\sigma$ still a good idea?
# Propose a width that depends on the query, without looking at the true curve.
# What would you measure to find out whether it is better, and which result would show that you were wrong?
# (Leave one out can judge it.
# In a new cell, `kernel_regression` takes a width for each query as a column, `width[:, None]`.)

# %%
cu.quiz("kernel_regression", "strip")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A width for each coordinate helps with a straight wave, a matrix with a tilted one too."
):
    straight, tilted = (missed.xs(f"wave at {d}°", level=1).unstack() for d in (0, tilt))
    assert (straight.loc["a width for each"] < 0.6 * straight.loc["one width"]).all()
    assert (straight.loc["a matrix"] < 0.6 * straight.loc["one width"]).all()
    assert tilt > 70 or (tilted.loc["a width for each"] > 0.7 * tilted.loc["one width"]).all()
    assert (tilted.loc["a matrix"] < 0.6 * tilted.loc["one width"]).all()

# %% [markdown]
# ## What goes wrong
#
# *Section 7 of 7*
#
# Three mistakes that raise no error:
#
# - **itself included**: the training points are queries and keys at once, and somebody forgets to leave out the point itself.
#   A language model that may look at the word it has to predict does the same; its causal mask is there to prevent this;
# - **twins**: each measurement is in the table twice, and leaving one out leaves its twin in.
#   (Rows of the same patient, neighboring frames of one film: leave out the whole group.)
# - **the wrong axis**: a softmax over the queries instead of over the keys.
#
# Where does the width go in the first two, and what do the rows sum to in the third?
# Write down your guess.


# %%
def leaky_error(log_width):
    return (kernel_regression(x, x, y, log_width.exp()) - y).square().mean()


leaky_path, leaky = descend(leaky_error, torch.tensor(start).log(), rate)
copied = leaky_path[-1].exp().item()  # itself included
twin, twin_errors = cu.best_width(x.repeat(2), y.repeat(2), widths)  # each point twice
wrong_axis = (-(((places[:, None] - x) / chosen) ** 2) / 2).softmax(dim=0)  # not dim=1
print(f"widths: {chosen:.2f}; with itself {copied:.3f}, with twins {twin:.3f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
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
mistakes.round(3).astype(object).fillna("none")

# %% [markdown]
# With itself and with twins the width goes toward 0: to 0.007 after 200 steps, still falling, and to the smallest width of the table.
# With all weight on its own value, noise included, each point is a copy, and the error that is reported is 0.02 and 0.00; on fresh data both have 1.9.
# The honest choice has 1.09, of which 1 is noise; it reported 0.98, as an estimate from forty points may.
# On the wrong axis the rows sum to between 0.19 and 0.52, since 40 columns of sum 1 are spread over 101 rows.
# With equally many queries and keys the sums lie around 1: look at each, not at their mean.

# %%
cu.quiz("kernel_regression", "rows_of_a_patient")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Copies report far too small an error; on the wrong axis the rows do not sum to 1.",
    given=noise == 1.0,
):
    assert leaky[-1] < 0.05 and copied < 0.02
    assert twin < 0.05 and twin_errors.min() < 0.3
    too_small = mistakes["on fresh data"] > mistakes["error it reports"] + 0.5
    assert too_small["itself included"] and too_small["twins"] and not too_small["others only"]
    assert mistakes["on fresh data"].idxmin() == "others only"
    assert mistakes["largest row sum"]["wrong axis"] < 0.9

# %% [markdown]
# ## Take-aways
#
# - Kernel regression is attention without training: an average of the values, weighted by a softmax over how near their keys are.
#   It is PyTorch's operator with a term for each key.
# - The width decides: narrow means variance, wide means bias.
#   The shape of the kernel matters little.
# - Choose or learn on predictions that never saw their own value: a mask on the diagonal.
# - With a matrix in front, a kernel learns in which directions to look.
#   This is half of what $W_Q$ and $W_K$ do; why there are two comes next.
#
# Next: [Scoring functions](03_scoring_functions.ipynb), where distances become dot products.
# For edges, rates, more dimensions, classification and 0/0 there is a further page: [Kernel regression: kernels, edges and rates](02_kernel_regression_further.ipynb).
#
# ## Quiz

# %%
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
