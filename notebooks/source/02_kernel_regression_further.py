# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Kernel regression: kernels, edges and rates
#
# This page is for a second reading of [Kernel regression](02_kernel_regression.ipynb), when you begin to ask for more.
# Does the network of the chapter beat the best kernel, and is there a best kernel at all?
# Where is a weighted average wrong even without noise, and what repairs it?
# How fast does the error fall with more points, and what happens in more dimensions?
# And what do we do with classes?
# You can read each section on its own.

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu
from course_utils import pooling
from course_utils.lessons.kernel_regression import curves
from course_utils.lessons.kernel_regression.curves import two_moons
from course_utils.pooling import KERNELS, kernel_values, leave_one_out_error

cu.seed_everything(0)

# %% [markdown]
# ## The network against the best kernels
#
# In the chapter a network found a Gaussian by itself.
# Does it also predict better than a Gaussian?
# Here they race on 2,000 fresh curves.
# Each fixed kernel may take the width that is best on 500 other curves, and one Gaussian may even have two widths, one for the middle and one for the places within 0.5 of an end.
# Where a compact kernel reaches no key it has no answer, and these few places are not counted.


# %%
def missed(scores, values, wanted):
    """Each value predicted from the 39 others: squared distance from what is wanted."""
    itself = torch.eye(40, dtype=torch.bool)
    weights = scores.masked_fill(itself, -math.inf).softmax(dim=-1)
    return ((weights @ values[..., None])[..., 0] - wanted).square()


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def of_part(width, inner, x, *rest):
    """Misses of a Gaussian at the inner places, or at those within 0.5 of an end."""
    scores = -((x[:, :, None] - x[:, None, :]) / width).square() / 2
    return missed(scores, *rest)[((x - 2.5).abs() < 2) == inner]


race = []
for kernel in ("constant", "boxcar", "triangular", "epanechnikov", "gaussian"):
    fixed, misses = curves.tuned(kernel, 1.0, missed)
    race.append([kernel, "any" if kernel == "constant" else f"{fixed:g}", misses.nanmean().item()])
(validation, tests), tried = curves.judged_on(1.0), [w / 100 for w in range(16, 120, 4)]
two_widths, two_misses = [], []
for inner in (True, False):
    of_width = [of_part(w, inner, *validation).mean() for w in tried]
    two_widths.append(tried[of_width.index(min(of_width))])
    two_misses.append(of_part(two_widths[-1], inner, *tests))
two_error = torch.cat(two_misses).mean().item()
race.append(["gaussian", f"{two_widths[0]:g}, at the ends {two_widths[1]:g}", two_error])
trained = pd.DataFrame(
    [{"steps": 2000} | r.config | r.result for r in cu.stored_runs("kernel_regression", "head")]
).drop(columns="end")
over_seeds = trained.drop(columns="seed").groupby(["waves", "steps", "rate"]).mean()
by_network = over_seeds.loc[(1.0, 2000, 0.003)]
race.append(
    ["the network (three seeds)", f"its own, {by_network['width found']:.2f}", by_network["error"]]
)
racers = pd.DataFrame(race, columns=["kernel", "best width", "squared error"])
racers.set_index("kernel").round(3)

# %% [markdown]
# At their best widths the bell, the triangle and the parabola are within 3% of each other, and only the boxcar is clearly worse.
# The network is a little ahead of every single width, but not of a Gaussian with two of them.
# So the network hasn't found something better than Nadaraya and Watson.
# It has found what they found, with a width that follows the place: in the middle its bell is as wide as the best Gaussian there.
# All racers are averages, though, and the chapter shows how much better [rules that may subtract, or needn't sum to 1](02_kernel_regression.ipynb#A-softmax-can't-subtract), are.
#
# How far can you trust this?
# Here are all training runs, on these waves and on waves twice as fast, each row the mean of three seeds.
# The last column is the [standard error](C_glossary.ipynb#standard-error) with one seed.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
titles = {
    "its error": "error, fixed",
    "gain": "fixed − network",
    "standard error of the gain": "± (standard error)",
}
over_seeds.drop(columns="best fixed width").rename(columns=titles).round(4)

# %% [markdown]
# We choose the rate by validation, which picks the middle one for both kinds of waves after 2,000 steps.
# There the network is about 2% ahead of the best Gaussian on slow waves, and about 1% behind on fast ones.
# Longer training closes that gap: after 6,000 steps with a falling rate the network is ahead on the fast waves as well, by less than 1%, at both rates and with each seed.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A Gaussian with two widths does as well as the network, whose width is the one for the middle."
):
    assert two_widths[1] < two_widths[0] and two_error < by_network["error"] + 0.001
    assert abs(two_widths[0] - by_network["width found"]) < 0.03
    singles = racers["squared error"][:5]
    assert by_network["error"] < singles.min()
    assert singles[2:].max() < 1.03 * singles.min() < 1.15 * singles.min() < singles[1]

with cu.guard(
    "Within a few percent the network and the best Gaussian are equal, and longer training helps on fast waves."
):
    assert (trained["gain"].abs() < 0.04 * trained["its error"]).all()
    chosen = over_seeds["validation"].groupby(["waves", "steps"]).idxmin().str[2]
    assert (chosen.xs(2000, level="steps") == 0.003).all()
    best = trained[(trained["rate"] == 0.003) & (trained["steps"] == 2000)].set_index("waves")
    assert (best["gain"][1.0] > 0.002).all() and (best["gain"][2.0] < -0.001).all()
    assert trained["gain"][trained["steps"] == 6000].between(0, 0.01 * 0.28).all()

# %% [markdown]
# ## Five kernels and one number
#
# | kernel | $K(u)$ | reach |
# |---|---|---|
# | Gaussian | $e^{-u^2/2}$ | all keys |
# | boxcar | 1 if $u\le 1$, else 0 | $\sigma$ |
# | constant | 1 | all keys, alike |
# | triangular | $\max(0, 1-u)$ | $\sigma$ |
# | Epanechnikov | $\max(0, 1-u^2)$ | $\sigma$ |
#
# Boxcar, triangular and Epanechnikov kernels are **compact**, which means that a key farther away than $\sigma$ has the weight 0.
# Be careful with one name.
# Section 11.2 of *Dive into Deep Learning* (Zhang et al., 2023) calls $\max(0, 1-u)$ the Epanechnikov kernel, but that is the triangular kernel, and Epanechnikov's (1969), for which there is a theorem, is the parabola.
#
# We fit our forty points with all five, at the width 1.

# %%
forty = cu.noisy_sine(40, noise=1)
places = torch.linspace(0, 5, 101)
truth = forty.truth(places)


def error(prediction):
    """Mean squared distance from the curve without noise, at the 101 places."""
    return (prediction - truth).square().mean().item()


x, y = forty.x, forty.y
fits = {name: cu.nadaraya_watson(places, x, y, kernel=name) for name in KERNELS}
errors = {name: error(fit) for name, fit in fits.items()}
pd.Series(errors, name="squared error").round(2).to_frame()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
u = torch.linspace(-2.2, 2.2, 441)
fig, axes = cu.subplots(
    2, 5, width=9, height=3.6, sharey="row", height_ratios=[1, 1.5],
    alt="Above five kernels: a bell, a box from -1 to 1, a constant, a triangle and a parabola. Below "
    "their fits of width 1 to the forty points: Gaussian too flat, boxcar a staircase, far too high at the "
    "left edge, constant a flat line, triangular and Epanechnikov smooth and near the true curve.",
)  # fmt: skip
for name, above, below in zip(KERNELS, *axes, strict=True):
    above.plot(u, kernel_values(u, kernel=name), color=cu.COLORS["key"])
    above.set(title=name, xticks=[-2, -1, 0, 1, 2])
    below.plot(forty.x, forty.y, "o", color="0.7", markersize=3)
    below.plot(places, truth, "--", color="black", linewidth=1.2)
    below.plot(places, fits[name], color=cu.COLORS["query"])
    below.set(xlabel="x")
axes[0, 0].set_ylabel("K(u)")
axes[1, 0].set_ylabel("y")
fig

# %% [markdown]
# The Gaussian looks too flat, and only the constant has a larger error.
# But this isn't a fair comparison, because at the same $\sigma$ the Gaussian is wider than the three compact kernels.
# Its standard deviation is 1, while theirs are $1/\sqrt3$, $1/\sqrt6$ and $1/\sqrt5$.
#
# So we give each kernel its own best width.
# Then, for $n\to\infty$, the error depends on the shape only through
#
# $$C(K) = \mathrm{sd}(K)\int K(u)^2\,\mathrm du ,\qquad K\text{ scaled to area 1},$$
#
# and the number of points needed for the same error is proportional to it.
# The constant kernel has no finite area and is left out.

# %%
fine = torch.linspace(-8, 8, 160_001, dtype=torch.float64)
shape_rows = []
for name in ("epanechnikov", "triangular", "gaussian", "boxcar"):
    density = kernel_values(fine, kernel=name)
    density = density / torch.trapezoid(density, fine)
    sd = torch.trapezoid(fine**2 * density, fine).sqrt().item()
    shape_rows.append((name, sd, sd * torch.trapezoid(density**2, fine).item()))
shapes = pd.DataFrame(shape_rows, columns=["kernel", "sd", "C(K)"]).set_index("kernel")
shapes["points needed"] = shapes["C(K)"] / shapes["C(K)"].min()
shapes["C(K) of Wand and Jones"] = shapes["C(K)"] ** 0.8
shapes.round(3)

# %% [markdown]
# Epanechnikov's parabola is the best of all nonnegative kernels, for $n\to\infty$ and away from the edges.
# Epanechnikov proved this theorem for densities, and regression has the same constant.
# But the theorem is worth little, because for the same error the others need only a few percent more points.
#
# And with forty points?
# We try each kernel over its widths, and compare with the true curve in 50 draws.
# Below 0.5 some place has no key in reach of a compact kernel, so the curves of these kernels begin to the right of that.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
draws = [cu.noisy_sine(40, noise=1, seed=seed) for seed in range(200)]


def kernel_error(kernel, width):
    """Squared error against the curve, over 50 of the draws; NaN if a place has no key in reach."""
    of_draws = [
        cu.nadaraya_watson(places, d.x, d.y, kernel=kernel, width=width) for d in draws[:50]
    ]
    return error(torch.stack(of_draws))


grid = torch.linspace(0.1, 2.5, 25)
valleys = {}
for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov"):
    curve = pd.Series([kernel_error(kernel, width.item()) for width in grid], index=grid.tolist())
    valleys[f"{kernel}: {curve.min():.2f} at σ = {curve.idxmin():.1f}"] = curve.to_numpy()
cu.show_curves(
    grid, valleys, xlabel="width σ", ylabel="squared error", width=7,
    alt="Error over the width for four kernels. Each curve is lowest at another width; the legend gives "
    "the lowest error and its width. Only the Gaussian's curve has a left side.",
)  # fmt: skip

# %% [markdown]
# At their best widths they are nearly equal.
# So the shape matters little, and the width matters much.
#
# Now try it on other data, fifty points from $y = 2\sin x + x^{0.8} + \varepsilon$ with half the noise.
# For each kernel, find the lowest point of the curve on the right.
# Then choose a compact kernel and a small width, and the map turns gray where no key is in reach.

# %%
fifty = cu.noisy_sine(50, power=0.8, noise=0.5)
cu.explore.kernel_width(fifty.x, fifty.y, truth=fifty.truth)

# %% [markdown]
# What should we answer there?
# A weight is a kernel value divided by a sum, and this sum may be 0.
# With a Gaussian that only happens by rounding, from a distance of about 14 widths on, and a softmax avoids it because it first subtracts the largest score.
# With a compact kernel there really is nothing to average.
#
# The library answers **NaN on purpose**, and a plot shows a gap.
# If you put a small constant such as $10^{-8}$ into the denominator, the answer becomes 0, which looks like a measurement although nobody measured it.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
gaps = cu.nadaraya_watson(places, forty.x, forty.y, kernel="epanechnikov", width=0.12)
parabola = kernel_values((places[:, None] - forty.x) / 0.12, kernel="epanechnikov")
zeros = (parabola / (parabola.sum(1, keepdim=True) + 1e-8)) @ forty.y
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.6, sharey=True,
    alt="Epanechnikov fits of width 0.12. Left: the curve has gaps where no points are near. Right: with "
    "a small constant in the denominator it falls to zero there, far from curve and points.",
)  # fmt: skip
titles = (
    f"NaN: {gaps.isnan().sum()} of 101 places are gaps",
    f"+ 1e-8 in the denominator: {(zeros == 0).sum()} invented zeros",
)
for ax, fit, title in zip(axes, (gaps, zeros), titles, strict=True):
    ax.plot(forty.x, forty.y, "o", color="0.7", markersize=4)
    ax.plot(places, truth, "--", color="black", linewidth=1.2)
    ax.plot(places, fit, color=cu.COLORS["query"])
    ax.set(title=title, xlabel="x")
axes[0].set_ylabel("y")
fig

# %% [markdown]
# For masked attention the course decides otherwise.
# There a query that may attend to nothing gets zeros, because a network adds the result to something else.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The shape of the kernel is worth a few percent of the points, which matters little with forty of them."
):
    lowest = [pd.Series(curve).min() for curve in valleys.values()]
    assert max(lowest) < 1.2 * min(lowest)
    assert shapes["points needed"].idxmin() == "epanechnikov"
    assert shapes["points needed"].max() < 1.08
    assert abs(shapes["points needed"]["gaussian"] - 1.051) < 0.001
    assert error(fits["gaussian"]) > max(error(fits[name]) for name in ("boxcar", "triangular"))
    assert torch.equal(gaps.isnan(), zeros == 0) and gaps.isnan().any()

# %% [markdown]
# ## Wrong without noise: edges, slopes, bends
#
# Imagine values without any noise.
# Where does the average still miss?
#
# - **At an edge** all keys are on one side, so for the line $y = x$ the average is pulled inward.
#   This **boundary bias** is the mean of half a Gaussian, $\sigma\sqrt{2/\pi} = 0.80\,\sigma$, times the slope.
# - **On a slope** it misses if the keys are denser on one side.
#   Take $y = x$ again, with keys whose density grows like $e^x$.
#   Kernel times density, $e^{-(x-q)^2/2\sigma^2}e^{x}$, is a Gaussian around $q+\sigma^2$ (complete the square), so the bias is exactly $\sigma^2$, in the middle of the data and without any bend.
#   This is the **design bias**.
# - **At a bend**, for example of $y = x^2$ with evenly spread keys, it averages $(q + \sigma z)^2$ with $z$ standard normal, which gives $q^2 + \sigma^2$.
#
# The last two are two terms of one formula.
# For a curve $m$ and a density $p$ of the keys, inside the data and for small $\sigma$, the bias of the Gaussian average is about
#
# $$\sigma^2\left(\tfrac12 m''(q) + m'(q)\,\frac{p'(q)}{p(q)}\right).$$

# %%
even = torch.linspace(0, 5, 2001, dtype=torch.float64)
steps = torch.linspace(0, 1, 20_001, dtype=torch.float64)
dense = torch.log1p(steps * math.expm1(5))  # density ∝ exp(x)
edge, middle = torch.tensor([0.0]).double(), torch.tensor([2.5]).double()
bias_rows = []
for width in (0.5, 0.25, 0.125):
    at_edge = cu.nadaraya_watson(edge, even, even, width=width) - edge
    sloped = cu.nadaraya_watson(middle, dense, dense, width=width) - middle
    bent = cu.nadaraya_watson(middle, even, even**2, width=width) - middle**2
    measured = [at_edge.item(), 0.798 * width, sloped.item(), bent.item()]
    bias_rows.append([width, *measured, width**2])
bias_names = ["width σ", "edge", "0.798 σ", "slope, uneven keys", "bend", "σ²"]
biases = pd.DataFrame(bias_rows, columns=bias_names).set_index("width σ")
biases.round(4)

# %% [markdown]
# If we halve the width, the bias at the edge halves, and the two inside fall to a quarter.
# More points don't help against any of them as long as the width stays.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The bias at an edge is 0.80 σ, and the biases of uneven keys and of a bend are σ²."):
    assert (biases["edge"] / biases["0.798 σ"] - 1).abs().max() < 0.01
    assert (biases["slope, uneven keys"] / biases["σ²"] - 1).abs().max() < 0.01
    assert (biases["bend"] / biases["σ²"] - 1).abs().max() < 0.01

# %% [markdown]
# ## Local lines
#
# How can we repair this?
# An average is the best *constant*, since $f(q)$ minimizes $\sum_i\alpha_i(v_i - c)^2$.
# So we fit a *line* instead, for each query and with the same weights, and read it off at the query.
# With the offsets $\delta_i = k_i - q$,
#
# $$\min_{a,b}\ \sum_i \alpha_i\,(v_i - a - b\,\delta_i)^2 .$$
#
# We set both derivatives to zero.
# With the moments $s_1 = \sum_i\alpha_i \delta_i$ and $s_2 = \sum_i\alpha_i \delta_i^2$ (the weights sum to 1),
#
# $$a + b\,s_1 = \sum_i\alpha_i v_i ,\qquad a\,s_1 + b\,s_2 = \sum_i\alpha_i \delta_i v_i .$$
#
# Multiply the first by $s_2$ and the second by $s_1$, subtract, and the height at the query is a weighted sum again:
#
# $$f(q) = a = \sum_i\beta_i v_i ,\qquad \beta_i = \alpha_i\,\frac{s_2 - s_1 \delta_i}{s_2 - s_1^2} .$$
#
# The $\beta_i$ sum to 1, but some may be negative.
# This isn't attention anymore, and it can extrapolate.


# %%
def local_line(queries, keys, values, width):
    """(queries,), (keys,), (keys,) → (queries,): height of the line at each query."""
    weights = cu.kernel_weights(queries, keys, width=width)
    offsets = keys[None, :] - queries[:, None]
    first = (weights * offsets).sum(1, keepdim=True)
    second = (weights * offsets**2).sum(1, keepdim=True)
    return (weights * (second - first * offsets) / (second - first**2)) @ values


def least_squares(queries, keys, values, width):
    """The same from a solver for weighted least squares."""
    roots = cu.kernel_weights(queries, keys, width=width).sqrt()[..., None]
    offsets = (keys[None, :] - queries[:, None])[..., None]
    columns = torch.cat([torch.ones_like(offsets), offsets], dim=-1)
    lines = torch.linalg.lstsq(roots * columns, roots * values[:, None]).solution
    return lines[:, 0, 0]


cu.equal(local_line, least_squares, places, forty.x, forty.y, width=0.8)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
q = torch.linspace(0, 5, 51, dtype=torch.float64)
missing = {
    "average, even keys": cu.nadaraya_watson(q, even, even, width=0.5) - q,
    "average, density ∝ exp(x)": cu.nadaraya_watson(q, dense, dense, width=0.5) - q,
    "local lines, density ∝ exp(x)": local_line(q, dense, dense, 0.5) - q,
}
cu.show_curves(
    q, missing, xlabel="query", ylabel="fit − true value", width=7,
    alt="Error of three fits to y = x, width 0.5. The average over even keys is 0.4 too high at the left "
    "edge, right inside, 0.4 too low at the right edge. With dense keys on the right it is 0.25 too "
    "high inside. Local lines are right everywhere.",
)  # fmt: skip

# %% [markdown]
# For $y = x$ a local line is right everywhere, at edges and with uneven keys (Fan, 1992).
# Only the bias at a bend remains, because a line doesn't bend.
# Does a line help when there is noise?
# Here are 200 draws of the forty points.

# %%
line_rows = []
for width in (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0):
    both = [
        torch.stack([cu.nadaraya_watson(places, d.x, d.y, width=width) for d in draws]),
        torch.stack([local_line(places, d.x, d.y, width) for d in draws]),
    ]
    at_ends = [(fit - truth)[:, [0, -1]].square().mean().item() for fit in both]
    line_rows.append([width, *map(error, both), *at_ends])
line_names = ["width σ", "average", "local lines", "average, ends", "local lines, ends"]
paid = pd.DataFrame(line_rows, columns=line_names).set_index("width σ")
paid.round(2)

# %% [markdown]
# At the best width the error becomes a little smaller, most of all at the two ends.
# At small widths, though, lines are worse.
# Where one key has nearly all the weight, $s_2 - s_1^2$ is nearly 0, and a line through one point can have any slope.
# At a width of 0.1 some answers are NaN.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Local lines have no error on y = x, and a smaller one than averages on the forty points."
):
    assert missing["local lines, density ∝ exp(x)"].abs().max() < 1e-4
    assert paid["local lines"].min() < paid["average"].min()
    assert paid["local lines, ends"].min() < paid["average, ends"].min()
    assert paid["local lines"][0.2] > paid["average"][0.2]

# %% [markdown]
# ## How good is the width that leaving one out chooses?
#
# The leave-one-out error is an estimate from forty noisy numbers, so it has a variance of its own.
# How much does that cost us?
# In 200 draws we compare the error of the width that it chooses with the smallest error that any width of the same table has.

# %%
table = torch.logspace(-2.7, 0.7, 18)
ratios = []
for d in draws:
    chosen, _ = cu.best_width(d.x, d.y, table)
    each_width = [error(cu.nadaraya_watson(places, d.x, d.y, width=w)) for w in table]
    ratios.append(each_width[table.tolist().index(chosen)] / min(each_width))
ratios = pd.Series(ratios, name="error of the chosen width / smallest error")
ratios.quantile([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]).round(1).to_frame()

# %% [markdown]
# Half of the choices are fine (the row 0.5 is the median), but a quarter cost a good deal, and the worst one is far off.
# So look at the whole curve of leave-one-out errors before you believe its minimum.
#
# ### Exercise 1 · Leave one out for free
#
# *build · 15 minutes*
#
# Suppose that somebody has already computed the weights $\alpha_{ij}$ of query $k_i$ for key $k_j$, with each point *included*.
# Show on paper that
#
# $$v_i - f_{-i}(k_i) = \frac{v_i - f(k_i)}{1-\alpha_{ii}} ,$$
#
# where $f_{-i}$ is the prediction from the others.
# You can start from the weights of the others, which become $\alpha_{ij}/(1-\alpha_{ii})$, and say why.
# Then write it in one line, and say when it fails.
# What is $\alpha_{ii}$ in single precision if the nearest neighbor is ten widths away?


# %% tags=["exercise", "build"]
def loo_residuals(weights, values):
    """Weights (n, n), each point included, values (n,) → values − predictions, (n,)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
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
# ### Exercise 2 · Find the bug
#
# *bug · 12 minutes*
#
# Somebody has written the leave-one-out loss in another way, and lets a width follow its gradient.
# The loss falls to the variance of the values, and the width grows and grows.
# What does kernel regression predict with a very wide kernel?
# To which number does this loss pull every prediction?
# Find the mistake, and write `fixed_loss`.


# %% tags=["nbval-ignore-output"]
def buggy_loss(keys, values, width):
    predictions = pooling.leave_one_out(keys, values[:, None], width=width)
    return (predictions - values).square().mean()


log_width = torch.zeros((), requires_grad=True)
optimizer = torch.optim.Adam([log_width], lr=0.05)
for _ in range(200):
    astray = buggy_loss(x, y, log_width.exp())
    optimizer.zero_grad()
    astray.backward()
    optimizer.step()
print(
    f"width 1.00 → {log_width.exp():.2f}, loss → {astray:.2f}, variance {y.var(correction=0):.2f}"
)


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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The loss with the bug pulls the width up, and itself to the variance of the values."
):
    assert log_width.exp() > 3 and abs(astray - y.var(correction=0)) < 0.1

# %% [markdown]
# ## More points: consistent, and how fast
#
# An estimator is **consistent** if its error tends to 0 as the number $n$ of points grows.
# For the average, two things have to happen.
# The bias has to go, so $\sigma\to0$, and the variance has to go, which takes more and more keys in the window, so $n\sigma\to\infty$.
# Any width that does both is consistent, but which one is the *fastest*?
#
# If the curve has two continuous derivatives, the squared bias is proportional to $\sigma^4$ and the variance to $1/(n\sigma)$.
# Their sum is smallest for $\sigma\propto n^{-1/5}$, and then it is proportional to
#
# $$n^{-4/5} .$$
#
# For an unknown curve this is almost as good as $1/n$, the rate for the mean of $n$ numbers.
# This rate holds away from the edges.
# A strip of width $\sigma$ at an edge has the squared bias $\sigma^2$, so with the edges the sum is $\sigma^3 + 1/(n\sigma)$, and an average has $n^{-3/4}$ at best.
#
# We try four rules for the width, with 60 draws each, and measure the error on $1\le x\le 4$.
# The slopes are those of the logarithms, from $n = 200$ on.

# %%
inside = torch.linspace(1, 4, 121)
sizes = [50, 100, 200, 400, 800, 1600, 3200]


def mean_error(n, width):
    """Squared error against the curve inside, over 60 draws of n points."""
    some = [cu.noisy_sine(n, noise=1, seed=seed) for seed in range(60)]
    fits = [cu.nadaraya_watson(inside, d.x, d.y, width=width) for d in some]
    return (torch.stack(fits) - forty.truth(inside)).square().mean().item()


def slope(errors):
    """Least-squares slope of log error over log n, from n = 200 on."""
    log_n = torch.tensor(sizes[2:]).double().log()
    log_error = torch.tensor(errors[2:]).double().log()
    log_n = log_n - log_n.mean()
    return ((log_n * log_error).sum() / log_n.square().sum()).item()


# %%
rules = {
    "0.7 n^(−1/5): fastest rate": lambda n: 0.7 * n**-0.2,
    "1.5 n^(−2/5): too narrow, consistent": lambda n: 1.5 * n**-0.4,
    "0.5: bias stays": lambda n: 0.5,
    "10/n: variance stays": lambda n: 10 / n,
}
falls = {name: [mean_error(n, rule(n)) for n in sizes] for name, rule in rules.items()}
slopes = pd.Series({name: slope(found) for name, found in falls.items()}, name="slope")
slopes.round(2).to_frame()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=7.5, height=3.6,
    alt="Squared error over n on log axes for four widths. Shrinking as n to the −1/5 the error falls "
    "fastest, with n to the −2/5 more slowly; with a fixed width it levels off, with 10/n it stays.",
)  # fmt: skip
for (name, found), style in zip(falls.items(), ("-", "--", "-.", ":"), strict=True):
    (line,) = ax.plot(sizes, found, style)
    label = f"σ = {name}\nslope {slopes[name]:.2f}".replace("-", "−")
    ax.text(3600, found[-1], label, color=line.get_color(), va="center", fontsize=9)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="number of points n",
    ylabel="squared error",
    xlim=(45, 30_000),
    ylim=(0.0025, 0.25),
)
ax.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
ax.set_xticks([], minor=True)
fig

# %% [markdown]
# The first rule falls with a slope near −4/5, as promised.
# The second rule lets the width shrink too fast: it is still consistent but slower, since its variance is proportional to $1/(n\sigma) = n^{-3/5}$.
# The fixed width ends at its bias, since smoothing multiplies $2\sin x$ by $e^{-\sigma^2/2}$.
# The last rule keeps the number of keys in the window constant, so its noise is never averaged away, however many points arrive.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "If the width shrinks like n^(−1/5), the error falls fastest, and if it stays the same, the error levels off."
):
    fastest, narrow, fixed, hasty = slopes
    assert -1.0 < fastest < -0.65 and -0.75 < narrow < -0.5
    assert fastest < narrow - 0.05
    assert falls["0.5: bias stays"][-1] > 0.8 * falls["0.5: bias stays"][-2]
    assert -0.2 < hasty < 0.2
    assert 0.02 < falls["0.5: bias stays"][-1] < 0.035

# %% [markdown]
# ## More dimensions
#
# In $d$ dimensions the same calculation gives $n^{-4/(4+d)}$, so the exponent shrinks from −0.8 for $d = 1$ to −0.2 for $d = 16$.
# What does that mean for 500 points in the unit cube?
# Let the values depend on *one* coordinate only, $y = \sin 2\pi x_1 + \varepsilon$, and choose a single width by leaving one out.
# The baseline, which always answers with the mean, has the error 0.5.

# %%
cube_rows = []
for dim in (1, 2, 4, 8, 16):
    generator = torch.Generator().manual_seed(0)
    cube = torch.rand(500, dim, generator=generator)
    probes = torch.rand(200, dim, generator=generator)
    wave = [torch.sin(2 * math.pi * points[:, 0]) for points in (cube, probes)]
    noisy = wave[0] + 0.3 * torch.randn(500, generator=generator)
    best, _ = cu.best_width(cube, noisy, torch.logspace(-2, 0, 9))
    answers = cu.nadaraya_watson(probes, cube, noisy, width=best)
    distances = torch.cdist(probes, cube)
    ratio = (distances.min(1).values.mean() / distances.mean()).item()
    cube_rows.append((dim, best, ratio, (answers - wave[1]).square().mean().item()))
cube_names = ["dimensions", "best width", "nearest / average distance", "squared error"]
cubes = pd.DataFrame(cube_rows, columns=cube_names).set_index("dimensions")
cubes.round(3)

# %% [markdown]
# This is the **curse of dimension**.
# In 16 dimensions the nearest of 500 keys is half as far away as an average one, so "near" doesn't mean much anymore.
#
# But that is a statement about *fixed* distances between raw coordinates.
# What if we learn which directions matter?
# In the 16 dimensions of the last row, we learn one factor for each coordinate by leaving one out.

# %%
factors = torch.ones(16, requires_grad=True)
for _ in range(30):
    left_out = leave_one_out_error(cube * factors, noisy)
    (gradient,) = torch.autograd.grad(left_out, factors)
    factors = (factors - 50 * gradient).detach().requires_grad_()
stretch = factors.detach()
answers_there = cu.nadaraya_watson(probes * stretch, cube * stretch, noisy)
relearned = (answers_there - wave[1]).square().mean().item()
print(f"factor of x₁: {stretch[0]:.1f}; others: up to {stretch[1:].abs().max():.1f}")
print(f"squared error: {relearned:.3f}")

# %% [markdown]
# The factor of the one coordinate that matters has outgrown all others, and the error nearly vanishes.
# That is why attention can compare in 64 or 128 dimensions a head, since its queries and keys are learned.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("In more dimensions near and far points become alike, and the error grows."):
    assert cubes["nearest / average distance"].is_monotonic_increasing
    assert 0.4 < cubes["nearest / average distance"].iloc[-1] < 0.6
    assert cubes["squared error"].is_monotonic_increasing and cubes["squared error"].iloc[-1] < 0.5
    assert relearned < 0.3 * cubes["squared error"].iloc[-1]

# %% [markdown]
# ## Learn in which directions to look
#
# In the chapter we learned one number, and now we learn four.
# The keys are 200 points in a square, and $y$ is a wave of which only *one direction* matters.
# We multiply queries and keys by a matrix $W$ before we compare them, and choose $W$ so that the leave-one-out error is small.
# We compare three forms of $W$: one number times the identity, a number $1/\sigma$ for each coordinate on the diagonal, and four free numbers.


# %%
forms = {
    "one width": lambda p: p[0, 0] * torch.eye(2),
    "a width for each": lambda p: p.diag().diag(),
    "a matrix": lambda p: p,
}


# %%
def learn_directions(form, degrees, draw):
    """Learn W from 200 points: the points, W, and its error at 2,000 other spots."""
    numbers = torch.Generator().manual_seed(draw)
    square, spots = (2 * torch.rand(2200, 2, generator=numbers)).split([200, 2000])
    angle = torch.tensor(math.radians(degrees))
    along = torch.stack([angle.cos(), angle.sin()])
    wave = lambda points: torch.sin(3 * points @ along)  # noqa: E731
    y = wave(square) + 0.2 * torch.randn(200, generator=numbers)
    parameter = (6 * torch.eye(2)).requires_grad_()
    optimizer = torch.optim.Adam([parameter], lr=0.7)
    for _ in range(70):
        optimizer.zero_grad()
        leave_one_out_error(square @ forms[form](parameter), y).backward()
        optimizer.step()
    W = forms[form](parameter.detach())
    answers = cu.nadaraya_watson(spots @ W, square @ W, y)
    return square, W, F.mse_loss(answers, wave(spots)).item()


# %% tags=["nbval-ignore-output"]
tilt = 45  # try 20 … 90
cases = [(form, angle, n) for form in forms for angle in (0, tilt) for n in range(3)]
directions = {case: learn_directions(*case) for case in cases}
form_errors = pd.Series(
    {(f, f"wave at {d}°", f"draw {n}"): directions[f, d, n][2] for f, d, n in cases}
)
form_errors.unstack([1, 2], sort=False).round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = [("one width", 0), ("a width for each", 0), ("a matrix", tilt)]
fig, axes = cu.subplots(
    1, 3, width=9, height=3.9, sharey=True,
    alt="The weights of 200 points in a square for one query in the middle. One width: a disc. A width "
    "for each coordinate: an upright strip. A matrix, for a tilted wave: a tilted strip.",
)  # fmt: skip
for ax, (form, degrees) in zip(axes, shown, strict=True):
    square, W, _ = directions[form, degrees, 0]
    alpha = cu.kernel_weights(torch.ones(1, 2) @ W, square @ W)[0]
    ax.plot(*square.T, ".", color="0.6", markersize=3)
    ax.scatter(*square.T, s=1500 * alpha, color=cu.COLORS["key"], alpha=0.55, linewidths=0)
    ax.plot(1, 1, "+", color=cu.COLORS["query"], markersize=13, markeredgewidth=2)
    title = f"{form}, wave at {degrees}°\neffective sample size {1 / alpha.square().sum():.0f}"
    ax.set(title=title, xlabel="x₁", aspect="equal")
    ax.set(xticks=[0, 1, 2], yticks=[0, 1, 2])
axes[0].set_ylabel("x₂")
fig

# %% [markdown]
# The **effective sample size** of weights is $1/\sum_i\alpha_i^2$, which is $m$ if $m$ keys share the weight equally.
# On the left you see a **disk**, which ignores points far up and down although they carry the same information.
# In the middle the disk has become a **strip**, because the kernel no longer sees $x_2$ and averages over more keys.
# If the wave is tilted, two widths don't help, but a matrix does, because it turns the strip.
# In attention a query is $q = xW_Q$ and a key is $k = xW_K$, and training finds **in which directions to look**.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A width for each coordinate helps with a straight wave, and a matrix helps with a tilted one, too."
):
    straight, tilted = (form_errors.xs(f"wave at {d}°", level=1).unstack() for d in (0, tilt))
    assert (straight.loc["a width for each"] < 0.6 * straight.loc["one width"]).all()
    assert (straight.loc["a matrix"] < 0.6 * straight.loc["one width"]).all()
    assert tilt > 70 or (tilted.loc["a width for each"] > 0.7 * tilted.loc["one width"]).all()
    assert (tilted.loc["a matrix"] < 0.6 * tilted.loc["one width"]).all()

# %% [markdown]
# ## Classes
#
# What is the average of *cat* and *dog*?
# Names have no average, but if the value of a key is the **one-hot** row of its class, the same average is a probability for each class.
# For example, if the three points of the chapter are cat, dog and dog, then $P(\text{cat}) = 0.348$ and $P(\text{dog}) = 0.574 + 0.078 = 0.652$.
#
# Here it is in two dimensions, on two moons of 100 points each, with three widths.
# We call the larger of the two probabilities the *certainty* of an answer, and compare it with the **accuracy**, the share of right answers, on 1,000 fresh points.

# %%
points, classes = two_moons(200)
one_hot = F.one_hot(classes).float()
fresh, right_classes = two_moons(1000, seed=1)
moon_rows = []
for width in (0.03, 0.2, 1.0):
    chances = cu.nadaraya_watson(fresh, points, one_hot, width=width)
    wrong = chances.argmax(1) != right_classes
    certainty = chances.amax(1)
    right = 1 - wrong.float().mean().item()
    sure = [certainty.mean().item(), certainty[wrong].median().item()]
    moon_rows.append([width, right, *sure])
moon_names = ["width σ", "share right", "mean certainty", "where wrong, median"]
moons = pd.DataFrame(moon_rows, columns=moon_names).set_index("width σ")
moons.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
across, up = torch.linspace(-1.8, 2.8, 62), torch.linspace(-1.4, 1.9, 45)
plane = torch.cartesian_prod(across, up)  # (62 · 45, 2)
fig, axes = cu.subplots(
    1, 3, width=9, height=2.8, sharey=True,
    alt="Probability of class 1 over the plane, for widths 0.03, 0.2 and 1. At 0.03 a jagged boundary "
    "with islands, at 0.2 a smooth S between the moons, at 1 a slightly bent line.",
)  # fmt: skip
for ax, width in zip(axes, (0.03, 0.2, 1.0), strict=True):
    chance = cu.nadaraya_watson(plane, points, one_hot, width=width)[:, 1].reshape(62, 45).T
    image = ax.imshow(
        chance, origin="lower", extent=(-1.8, 2.8, -1.4, 1.9), aspect="auto", cmap="signs", vmin=0, vmax=1, alpha=0.35
    )  # fmt: skip
    ax.contour(across, up, chance, levels=[0.5], colors="black", linewidths=1.2)
    for label, marker, color in ((0, "o", "query"), (1, "^", "key")):
        ax.plot(*points[classes == label].T, marker, color=cu.COLORS[color], markersize=3)
    ax.set(title=f"σ = {width:g}", xlabel="first coordinate")
axes[0].set_ylabel("second coordinate")
bar = fig.colorbar(image, ax=axes, label="P(class 1)")
fig

# %% [markdown]
# On the black line both classes are equally likely.
# The narrow kernel has nearly the accuracy of the middle one, but it is certain nearly everywhere, even where it is wrong, and the accuracy doesn't show that.
# The wide kernel can't follow the moons.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The narrow kernel is about as accurate as the best one, but it is certain even where it is wrong."
):
    assert moons["share right"][0.2] > 0.95 > 0.9 > moons["share right"][1.0]
    assert moons["share right"][0.03] > 0.92
    assert moons["where wrong, median"][0.03] > 0.99

# %% [markdown] tags=["next"]
# Back to the chapter: [Kernel regression](02_kernel_regression.ipynb).
# Next: [Scoring functions](03_scoring_functions.ipynb).

# %% [markdown]
# ## References
#
# - Epanechnikov, V. A. (1969).
#   [Non-parametric estimation of a multivariate probability density](https://doi.org/10.1137/1114019).
#   Theory of Probability & Its Applications 14(1), 153–158.
# - Fan, J. (1992).
#   [Design-adaptive nonparametric regression](https://doi.org/10.1080/01621459.1992.10476255).
#   Journal of the American Statistical Association 87(420), 998–1004.
# - Wand, M. P. & Jones, M. C. (1995).
#   [Kernel Smoothing](https://doi.org/10.1201/b14876).
#   Chapman & Hall.
#   Chapter 2 has the constant of a kernel (its C(K) is the 4/5 power of ours), chapter 5 local lines and design bias.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.2, on this regression.
