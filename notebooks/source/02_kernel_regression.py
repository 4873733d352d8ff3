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
# The place you ask about is the **query**, the places where somebody measured are the **keys**, and the measurements are the **values**.
# This is attention, half a century before the word.
#
# Drag the query (the upright line), and the average draws its curve.
# Around the query stands a bump, called a **kernel**.
# A point's weight, shown by the size of its disk, is the height of the bump there, divided by the sum of the heights at all points.
# Somebody has chosen the kernel's shape and its width.
# **Which kernel would a network choose, if nobody told it?**

# %% [markdown] tags=["paths"]
# On the path to images and to translation: [Weighted averages: near points count more](#Weighted-averages:-near-points-count-more), [Kernel regression is attention](#Kernel-regression-is-attention).

# %% jupyter={"source_hidden": true}
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

# %% [markdown]
# At this width the curve stays near the points, but it doesn't pass through each of them.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - predict from pairs of keys and values by hand, in four lines, and with PyTorch's attention operator;
# - say what a width does, choose it by leaving one out, and learn it;
# - say which kernel a network finds when it has to make its own scores, and what no average can do.

# %% [markdown] tags=["needs"]
# You will need [Queries, keys and values](01_queries_keys_values.ipynb), for weights, softmax and temperature.

# %% jupyter={"source_hidden": true}
cu.recall("queries_keys_values", "start_here")

# %% [markdown]
# ## Weighted averages: near points count more
#
# Each of the forty measurements is the height of a smooth curve, plus noise: $y = 2\sin x + x + \varepsilon$.
# The noise $\varepsilon$ is normal, with standard deviation 1.
# We know the curve, so we can say how wrong an answer is, but the method never sees it.
#
# The simplest answer ignores the place and always says the mean of all values.
# This **average pooling** is our **baseline**, the simple answer that others have to beat.

# %%
noise = 1.0  # try 0.5 … 2.0
forty = cu.noisy_sine(40, noise=noise)
x, y = forty.x, forty.y  # keys and values
places = torch.linspace(0, 5, 101)  # queries
truth = forty.truth(places)


def error(prediction):
    """Mean squared distance from the curve without noise, at the 101 places."""
    return (prediction - truth).square().mean().item()


print(f"mean of the values: {y.mean():.2f}; its squared error: {error(y.mean()):.2f}")

# %% [markdown]
# Can we do better if near points count more?
# Take three points that you can handle with a pencil, the keys 0, 1 and 3 with the values 1, 3 and 5.
# We ask at the key 1, exactly where the value 3 was measured.
# Our bump is the **Gaussian kernel** $K(u) = e^{-u^2/2}$.
# Here $u$ is the distance in units of the **width** $\sigma$, and we let $\sigma = 1$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "What is the weighted average at the query 1?",
    ["below 3", "exactly 3", "above 3"],
    answer="below 3",
    wrong={
        "exactly 3": "The 1 and the 5 are equally far from 3 as values, so they pull equally hard. But are they equally near as keys?",
        "above 3": "The 5 pulls up by 2, and the 1 pulls down by 2. Which of the two has the larger weight?",
    },
    why="Both neighbors pull by 2, but the key 0 is nearer than the key 3. So the pull down wins.",
    shows={"points": "0 1,1 3,3 5", "width": 1, "query": 1, "kernel": "gaussian"},
)

# %% [markdown]
# Here is the whole calculation.
#
# | key | value | distance | kernel | weight | weight × value |
# |---|---|---|---|---|---|
# | 0 | 1 | 1 | 0.607 | 0.348 | 0.35 |
# | 1 | 3 | 0 | 1 | 0.574 | 1.72 |
# | 3 | 5 | 2 | 0.135 | 0.078 | 0.39 |
# | sum | | | 1.742 | 1 | **2.46** |
#
# The answer is 2.46, although we measured 3 at this very place.
# So kernel regression doesn't pass through its data, and with noisy data we don't want it to.
#
# ## Kernel regression is attention
#
# Here is the same calculation as a flow of data.
# All of attention will have this form.

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
        "v": cu.Cells(1, 3, "values", shape="(3,)", values=[[1, 3, 5]], color="value"),
        "distance": cu.Box("distances: q − k", shape="(1, 3)"),
        "kernel": cu.Box("kernel: exp(−½ (distance / σ)²)"),
        "K": cu.Cells(1, 3, "kernel", shape="(1, 3)", values=bumps),
        "norm": cu.Box("normalize: divide by the sum"),
        "A": cu.Cells(1, 3, "weights", shape="(1, 3)", values=shares, color="key"),
        "mix": cu.Box("mix: weights × values, summed"),
        "f": cu.Cells(1, 1, "answer", shape="(1,)", values=[["2.46"]], color="value"),
    },
    arrows=["q, k -> distance -> kernel -> K -> norm -> A -> mix -> f", "v -> mix"],
    alt="The query 1 and the keys 0, 1, 3 have distances; the kernel turns these into 0.607, 1 and "
    "0.135; divided by their sum they are the weights 0.348, 0.574 and 0.078; these mix the values "
    "1, 3, 5 to the answer 2.46.",
    gap=(26, 22),
)  # fmt: skip

# %% [markdown]
# For a query $q$ and $n$ pairs $(k_i, v_i)$, each pair has a score $a_i$ and a weight $\alpha_i$:
#
# $$a_i = -\frac{(q - k_i)^2}{2\sigma^2},\qquad
# \alpha_i = \frac{e^{a_i}}{\sum_j e^{a_j}} = \mathrm{softmax}(a)_i,\qquad
# f(q) = \sum_{i=0}^{n-1} \alpha_i\, v_i .$$
#
# This is the **Nadaraya–Watson estimator** with a Gaussian kernel.
# A kernel value divided by the sum of all kernel values *is* a softmax of $-u^2/2$.
#
# PyTorch's operator, `F.scaled_dot_product_attention`, computes its scores in another way.
# It multiplies query and key, scales by a number $s$ (`scale`), and adds a table (`attn_mask`).
# Can it do kernel regression?
# Multiply out:
#
# $$-\frac{(q-k_i)^2}{2\sigma^2} = -\frac{q^2}{2\sigma^2} + \frac{q k_i}{\sigma^2} - \frac{k_i^2}{2\sigma^2} .$$
#
# The first term is the same for all keys, so the softmax ignores it.
# The second is a product with $s = 1/\sigma^2$.
# The third is one number for each key, and that is what we put into the table.


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
# So our four lines are PyTorch's attention, in the answers and in the gradients of queries, keys and values.
# Nothing in them has been trained.
# **Gaussian kernel regression is dot-product attention with a term for each key.**
# We need this term, because the product $q k_i$ by itself grows with the key.
# For a positive query the largest key would win, however far away it is.
#
# ## The width decides: bias and variance
#
# What does the width do?
# Imagine that we could measure again and again.
# We draw 200 new sets of forty points from the same curve, and fit each set with four widths.
# The **bias** is how far the mean of the 200 fits lies from the curve, and the **variance** how far the fits scatter around their mean.
# The squared error that we expect is the sum bias² + variance.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
draws = [cu.noisy_sine(40, noise=noise, seed=seed) for seed in range(200)]
fits = {
    width: torch.stack([kernel_regression(places, d.x, d.y, width) for d in draws])
    for width in (0.1, 0.2, 0.5, 1.0)
}
width_rows = []
for width, of_draws in fits.items():
    bias2, variance = error(of_draws.mean(0)), of_draws.var(0, correction=0).mean()
    parts = [bias2, variance, bias2 + variance]
    width_rows.append([width, *map(float, parts)])
head = "σ", "bias²", "variance", "error = sum"
by_width = pd.DataFrame(width_rows, columns=head).set_index("σ")
by_width.round(2)


# %% [markdown]
# The upper row shows sixteen fits in gray.
# The lower row shows the weights, and each row of a map belongs to one query.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def fits_and_maps(columns, darkest, alt, width=9):
    """Above each fit, below its weights on one scale; columns: title → (lines in gray, fit, weights)."""
    fig, axes = cu.subplots(2, len(columns), width=width, height=4.6, sharey="row", alt=alt)
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
# A **narrow** kernel uses few keys, so its fits chase the noise, and that is variance.
# A **wide** kernel uses many keys, so its fits are calm but too flat, and that is bias.
# In a softmax over $-(q-k)^2/2$, the number $\sigma^2$ is just the temperature.
#
# The *shape* of the bump matters less, and the further page compares [five shapes](02_kernel_regression_further.ipynb#Five-kernels-and-one-number).
#
# ## Leave one out: choosing and learning the width
#
# How do we choose $\sigma$ when we have a single set of points and no true curve?
# The error on the points themselves is no help, because it is smallest at the narrowest width, where each point predicts itself.
# The way out is to **predict each point from all the others**, and to compare the prediction with the point's value.
# We do this for our three points, with $\sigma = 1$.
# From the key 0, the keys 1 and 3 have the kernel values 0.607 and 0.011, so their weights are 0.607/0.618 and 0.011/0.618.
#
# | left out | weights of the other two | prediction | value | value − prediction |
# |---|---|---|---|---|
# | key 0 | 0.982, 0.018 | 0.982 · 3 + 0.018 · 5 = 3.04 | 1 | −2.04 |
# | key 1 | 0.818, 0.182 | 0.818 · 1 + 0.182 · 5 = 1.73 | 3 | 1.27 |
# | key 3 | 0.076, 0.924 | 0.076 · 1 + 0.924 · 3 = 2.85 | 5 | 2.15 |
#
# The **leave-one-out error** is the mean of the squares in the last column, 3.46.
#
# ### Exercise 1 · All points at once
#
# *build · 10 minutes*
#
# Every point is both a query and a key, so the scores form an (n, n) matrix.
# How do you make the other points share all of the weight?
# A loop over the points is correct too, just longer.
# Your function should work for points as dense as ours and widths as small as 0.05, and it should let a gradient flow back to the width.
# Keep the names of the parameters, because the chapter uses your function once it passes.


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
# A score of $-\infty$ is a **mask**, and after the softmax its pair has the weight 0.
# In just this way, [Masks](04_masks.ipynb) will hide padding, and words that haven't been written yet.
#
# Now the width can be *learned*.
# It follows the gradient of the leave-one-out error downhill, by [Adam](C_glossary.ipynb#adam), which gives each parameter a step size of its own.
# We learn $\log\sigma$, so no step can make the width negative.


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
start = 2.0  # try 0.1 … 3.0
rate = 0.05  # try 0.03 … 0.3


def loo_error(log_width):
    return (leave_one_out(x, y, width=log_width.exp()) - y).square().mean()


path, losses = descend(loo_error, torch.tensor(start).log(), rate)
learned = path[-1].exp().item()
print(f"width {start:.2f} → {learned:.2f}, error {losses[0]:.2f} → {losses[-1]:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
widths = torch.logspace(-1.75, 0.7, 64)
judged = torch.stack([loo_error(width.log()) for width in widths])
own = [(kernel_regression(x, x, y, width) - y).square().mean() for width in widths]
fig, (valley, fall) = cu.subplots(
    1, 2, width=8, height=2.9, sharey=True,
    alt="Two panels. The leave-one-out error over the width has a valley, into which dots roll from the right, and the error on "
    "own points falls toward 0 at the left. Over 200 steps the loss falls to the floor of the valley.",
)  # fmt: skip
valley.plot(widths, judged, color=cu.COLORS["key"])
valley.plot(widths, own, ":", color="0.4")
valley.plot(path.exp()[::10], losses[::10], "o", color=cu.COLORS["query"], markersize=3)
valley.set(xscale="log", xlabel="width σ", title="error over the width", ylim=(0, None))
valley.text(0.3, 0.25, "dotted: on the points themselves", fontsize=8)
fall.plot(losses, color=cu.COLORS["query"])
fall.set(xlabel="step", title="the descent, step by step")
fig

# %% [markdown]
# The dots roll into the valley and stay there.
# At the far left you see what the error on the points themselves would have rewarded, a width of 0.
# How has the fit changed?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
before_after = {
    f"{name}: σ = {width:.2f}": (
        [], kernel_regression(places, x, y, width), attention_weights(places, x, width),
    )
    for name, width in (("before", start), ("after", learned))
}  # fmt: skip
fits_and_maps(
    before_after, 0.3,
    "Fit and weights before and after the training. Before, the fit is nearly flat and the map an even gray; after, the fit follows "
    "the true curve and the map is a band.",
    width=7,
)  # fmt: skip

# %% [markdown]
# The fit now follows the curve, and the map of weights has contracted to a band.
# To see it happen, set the width in the first picture to 2, and open *Learn the width* below it.
# Forty noisy numbers sometimes put the valley in the wrong place, and the [further page](02_kernel_regression_further.ipynb#How-good-is-the-width-that-leaving-one-out-chooses?) shows by how much.

# %% jupyter={"source_hidden": true}
cu.quiz("kernel_regression", "copied_noise", "rows_of_a_patient")

# %% [markdown]
# ## Nobody told it: a network finds its kernel
#
# So far the score was $-\frac12(\text{distance}/\sigma)^2$, because we said so.
# Now one network makes the queries, another network makes the keys, and their product is the score, whatever it may be.
# Each network has a **hidden layer** of 32 numbers between its input and its output, which lets its answers bend.
#
# Our network never sees a distance, a width or a true curve.
# It sees random curves $2a\sin(\omega x + \varphi) + bx$, each at forty places with noise.
# It has to predict each value from the 39 others, so a point's own score is masked again.


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
    "After training, which weights will the network's query at 2.5 give to the keys from 0 to 5?",
    ["all to the nearest key", "a bump around 2.5", "the same to all keys", "more and more toward one end"],
    answer="a bump around 2.5",
    wrong={
        "all to the nearest key": "The nearest value says most, but it has noise of variance 1. What happens to the noise if several neighbors share the weight?",
        "the same to all keys": "That would be average pooling. What would it say about a wave?",
        "more and more toward one end": "Queries and keys that are linear in x would do this. Why are there two layers?",
    },
    why="Near values say most about the curve, and several average the noise away. A softmax has to average, and an average over near values does well.",
)  # fmt: skip

# %% [markdown]
# We train the network as we trained the width, on new random curves in each step.
# We judge it on *validation curves*, which are not among them.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
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

# %% [markdown]
# The left picture shows the scores of three queries, and the maps show the weights of the network and those of a Gaussian.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (parabola, found, gauss) = cu.subplots(
    1, 3, width=9, height=3.1, width_ratios=[1.4, 1, 1],
    alt="Three panels. The scores of three queries over the keys are parabolas with their tops at the queries. Two maps of weights, "
    "the network's and a Gaussian's, are two like bands.",
)  # fmt: skip
for query in (1.0, 2.5, 4.0):
    keys, scores, mean, sd = bump(network, query)
    parabola.plot(keys, scores - scores.max(), color=cu.COLORS["query"])
    parabola.plot(keys, -(((keys - mean) / sd) ** 2) / 2, "--", color="black", linewidth=1)
parabola.set(xlabel="keys", title="scores of three queries\ndashed: parabolas", ylim=(-16, 1))
sd_found = bump(network, 2.5)[3]
with torch.no_grad():
    learned_map = network(places, x).softmax(dim=1)
for ax, weights, name in (
    (found, learned_map, "weights of the network"),
    (gauss, attention_weights(places, x, sd_found), f"weights of a Gaussian\nσ = {sd_found:.2f}"),
):
    image = cu.heatmap(
        ax, weights, xlabel="keys, in the order of x", ylabel="", vmax=0.3, title=name
    )
    ax.set_aspect("auto")
    ax.set_yticks([0, 50, 100], ["x = 0", "2.5", "5"] if ax is found else ["", "", ""])
bar = fig.colorbar(image, ax=[found, gauss], ticks=[0, 0.3])
bar.ax.set_yticklabels(["0", "0.3 or more"])
fig

# %% [markdown]
# The scores form a **parabola** with its top at the query, and a softmax of a parabola is a Gaussian.
# The softmax told the network to average, but which average?
# *Nobody told it.
# It found 1964.*
#
# Any smooth score with a single top gives some kind of bell, but these scores stay parabolas even far down the sides, where hardly any weight is left.
# The form of the score helps here, because $qk - \tfrac12k^2$ is a dot product of two vectors, and about the simplest one with its top at the query.
#
# And where does the width of the bell come from?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We train the same network on waves that are twice as fast, with the same noise. Over how many keys will it spread its weight?",
    ["fewer", "as many as before", "more"],
    answer="fewer",
    wrong={
        "as many as before": "The network is the same, but it can learn any width. On a fast wave, how near must a point be to be a good guide?",
        "more": "That would help against more noise. The noise is the same here, but the curve bends sooner.",
    },
    why="On a fast wave a point half a unit away may already be on the other side of the hill. The bias grows, so fewer neighbors are worth their weight.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
trained = pd.DataFrame(
    [{"steps": 2000} | r.config | r.result for r in cu.stored_runs("kernel_regression", "head")]
)
chosen = trained[(trained["rate"] == 0.003) & (trained["steps"] == 2000)]
widths_found = chosen.groupby("waves")[["width found", "best fixed width"]].mean()
widths_found.index = ["slow waves, as above", "waves twice as fast"]
widths_found.columns = ["standard deviation of its bell", "width of the best Gaussian"]
widths_found.round(2)

# %% [markdown]
# The network has never heard of a width, and yet it comes near the width that we would choose by trying many.
#
# ### A softmax can't subtract
#
# So is a bell the best answer to these curves?
# A softmax puts two constraints on its weights: none is negative, and they sum to 1.
# How good are the best rules that obey both constraints, one of them, or neither?
# These rules know how our random curves are made: a wave plus a line, which average to 0 over all curves.
# Nobody told the network.
# The table shows the squared errors on 2,000 fresh curves.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rules = {r.config["waves"]: r.result for r in cu.stored_runs("kernel_regression", "best_rules")}
of_waves = chosen.groupby("waves")[["its error", "error"]].mean()
by_rule = pd.DataFrame(
    {
        name: {
            "best Gaussian": of_waves.loc[speed, "its error"],
            "the network": of_waves.loc[speed, "error"],
            "best rule: not negative, sum 1 (average)": rules[speed]["average"],
            "best rule: not negative, any sum": rules[speed]["not negative"],
            "best rule: any sign, sum 1": rules[speed]["sum of 1"],
            "best rule: any sign, any sum": rules[speed]["linear"],
        }
        for speed, name in ((1.0, "slow waves"), (2.0, "fast waves"))
    }
)
by_rule.round(3)

# %% [markdown]
# The network is about as good as the best Gaussian, and the error of the best average is nearly a fifth lower.
# A rule that may **subtract** but still sums to 1 has an error a third smaller than the network's on slow waves, and less than half of the network's on fast waves.
# If the weights needn't sum to 1 either, the rule can also shrink its answers toward 0, and its error is less than half of the network's on both.
# A softmax can't subtract, because that would take its answers out of the [hull of the values](01_queries_keys_values.ipynb#A-table-of-words:-embeddings-as-keys).
# **The softmax made the network average, and among averages it found the bell.**
#
# ### Exercise 2 · Your own points
#
# *build · 7 minutes*
#
# Now give the softmax a case of your own, and try to fool it.
# Write down at least eight points (place, value), with places from 0 to 5 and values from −5 to 5, and put exactly one of them at the place 2.5.
# Choose the others so that the average at 2.5, which includes your point, is more than 2 away from the value you put there.
# The check uses a Gaussian of the network's width, 0.43.
# Before you run it, say which points will share the weight.


# %% tags=["exercise", "build"]
def own_points():
    """At least eight pairs (place, value)."""
    return ...  # such as [(0, 1.5), (0.5, 2), …]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.own_points(own_points)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def own_points_solution():
    """A peak of one point, which its neighbors outvote."""
    return [(0, 0), (1, 0), (1.8, 0), (2.2, -1), (2.5, 4), (2.8, -1), (3.2, 0), (4, 0), (5, 0)]


cu.checks.own_points(own_points_solution)

# %% [markdown]
# Here are the network's answers from these points.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
points = torch.tensor(cu.choose(own_points, curves.one_peak)(), dtype=torch.float)
with torch.no_grad():
    by_network = network(places, points[:, 0]).softmax(dim=1) @ points[:, 1]
by_gaussian = kernel_regression(places, *points.T, sd_found)
fig, ax = cu.subplots(
    width=6.4, height=2.8,
    alt="Points, the answers of the network, and those of a Gaussian with the network's width. The two curves lie close together, "
    "and both cut off a peak that consists of a single point.",
)  # fmt: skip
ax.plot(*points.T, "o", color="0.5", label="points")
ax.plot(places, by_network, color=cu.COLORS["query"], label="the network")
ax.plot(
    places, by_gaussian, "--", color="black", linewidth=1, label=f"Gaussian, σ = {sd_found:.2f}"
)
ax.axvline(2.5, color="0.8", linewidth=0.8)
ax.set(xlabel="place", ylabel="value")
ax.legend(fontsize=8)
fig

# %% [markdown]
# The network cuts off the peak, and so does the Gaussian.
# Both take a lonely peak for noise.
# On the curves that the network learned from, that was the best bet.
# A learned width is a belief about the data, and you have just made data of another kind.
#
# <details><summary>How sure is this?</summary>
#
# We trained the network on slow and on fast waves, at three [learning rates](C_glossary.ipynb#learning-rate) with three seeds each.
# The table shows the means of three seeds at the rate that was best on validation curves.
# We trained no score other than the product of a query and a key.
#
# The network's bell is a little wider than the best Gaussian, which has to serve the two ends as well.
# Near the ends the network's bell leans outward, and there it isn't quite a Gaussian around the query.
#
# The best rules are not trained but computed, anew for each set of places.
# They can therefore take into account how crowded the keys are, which the score of a single pair can't.
# This accounts for about half of the best average's lead.
# On an evenly spaced grid, away from the ends, the best Gaussian's error is within 5% of the best average's.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A narrow kernel errs by variance, and a wide one by bias.", given=noise == 1.0):
    assert by_width["variance"].iloc[0] > 0.9 * by_width["error = sum"].iloc[0]
    assert by_width["bias²"].iloc[-1] > 0.7 * by_width["error = sum"].iloc[-1]

with cu.guard(
    "Gradient descent finds the valley of the error that it measures, if no point sees its own value.",
    given=(noise, start, rate) == (1.0, 2.0, 0.05),
):
    assert own[0] < 0.2 < 0.6 < own[-1]
    assert abs(learned / widths[judged.argmin()] - 1) < 0.1

with cu.guard(
    "The fewer bounds a rule has, the smaller its error, and a sign of its own is worth more than a sum of its own."
):
    for column in by_rule:
        gaussian, network_error, average, not_negative, of_sum_one, linear = by_rule[column]
        assert linear < 0.5 * network_error and linear < 0.8 * of_sum_one
        assert of_sum_one < 0.95 * not_negative < 0.95 * average < network_error
        assert abs(network_error / gaussian - 1) < 0.04
        assert of_sum_one < {"slow waves": 0.71, "fast waves": 0.45}[column] * network_error

with cu.guard("The network's bump is nearly a Gaussian.", given=waves == 1.0):
    dense, top, center, spread = bump(network, 2.5)
    bell_found = (-(((dense - center) / spread) ** 2) / 2).softmax(dim=0)
    assert (top.softmax(dim=0) - bell_found).abs().sum() / 2 < 0.1

with cu.guard("At each rate and with each seed its width is near the best Gaussian's."):
    assert trained["width found"].div(trained["best fixed width"]).between(1, 1.3).all()
    assert (trained["gain"].abs() < 0.04 * trained["its error"]).all()
    of_rate = trained[trained["steps"] == 2000].groupby(["waves", "rate"])["validation"].mean()
    assert of_rate.groupby("waves").idxmin().str[1].tolist() == [0.003, 0.003]

# %% [markdown]
# ## Take-aways
#
# - Kernel regression is attention, an average of the values, weighted by a softmax over how near their keys are.
#   With a Gaussian it is PyTorch's operator with a term for each key.
# - Narrow means variance, wide means bias.
#   Choose a width, or learn it, on predictions that never saw their own value, with a mask on the diagonal.
# - Here a network had only one task, to predict.
#   It learned to give near keys more weight.
#   Its softmax can only average, never subtract, and among averages it found nearly a Gaussian, with a width that comes from the data.

# %% [markdown] tags=["next"]
# Next: [Scoring functions](03_scoring_functions.ipynb), where distances become dot products.
# For edges, rates, more dimensions and classes there is a further page, [Kernel regression: kernels, edges and rates](02_kernel_regression_further.ipynb).

# %% [markdown]
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
