# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Queries, keys and values: softmax under a lens
#
# This is the further page of [Queries, keys and values](01_queries_keys_values.ipynb), and you can go on without it.
# **How far can we trust the softmax?**
# We will see where it overflows, when its gradient vanishes, what a crowd of keys does to it, and what we can use instead: a softmax for large scores, weights that are exactly 0, an answer of "nothing", and choices by chance.
# At the end the look-up becomes a memory.

# %%
import math

import pandas as pd
import torch
import torch.nn.functional as F

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Large scores: where softmax overflows
#
# Numbers in a computer have a largest and a smallest size, and most networks are trained partly with numbers of 16 bits.
# Float16 has a small range and fine steps, and bfloat16 has a large range and coarse steps.
# How large may a score be?
# The table shows the score from which $e^a$ is infinite, and the gap $\Delta$ below the largest score from which $e^{-\Delta}$ is exactly 0.


# %%
def first_where(condition, low, high):
    """The smallest number for which the condition holds, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if condition(middle) else (middle, high)
    return high


def reach(dtype):
    """The two ends of the exponential in a format."""
    return [
        first_where(lambda a: torch.tensor(a, dtype=dtype).exp().isinf(), 0, 2000),
        first_where(lambda gap: torch.tensor(-gap, dtype=dtype).exp() == 0, 0, 2000),
    ]


formats = ["float16", "bfloat16", "float32", "float64"]
limits = {name: reach(getattr(torch, name)) for name in formats}
ends = pd.DataFrame(limits, index=["exp(a) infinite from", "exp(−gap) 0 from gap"])
ends.round(1)

# %% [markdown]
# In float16 a score of 11.1 is already too much for the formula as it reads.
# The first two rows hold if you convert a whole model, while automatic mixed precision and PyTorch's fused attention compute the softmax in float32, so the third row holds there.
#
# ### Exercise 1 · A softmax for large scores
#
# *build · 12 minutes*
#
# In float32 the formula fails for the scores 1000 and 999, because both exponentials are infinite, and ∞ divided by ∞ is NaN.
# But we know that a shift of all scores changes no weight.
# Which shift makes every exponential of a row at most 1, and one of them exactly 1?
#
# Build the softmax over the last axis without PyTorch's own, for any number of axes, and don't write into the scores.
# A score of $-\infty$ (`-math.inf`) means that a key doesn't exist, so its weight is $e^{-\infty}=0$.
# Rows without any key come in [Masks](04_masks.ipynb).


# %% tags=["exercise", "build"]
def safe_softmax(scores):
    """Softmax over the last axis, safe for any scores: (…, keys) → (…, keys)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.safe_softmax(safe_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def safe_softmax_solution(scores):
    """Subtract the largest of each row: this changes no weight, and no exponent is above 0."""
    positive = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return positive / positive.sum(dim=-1, keepdim=True)


cu.checks.safe_softmax(safe_softmax_solution)

# %% [markdown]
# So the shift repairs the upper end in every format.
# The lower end remains: in float16 a key that is 17.3 below the best has a weight of exactly 0, and in float32 the limit is 104.
# This does no harm to the answer, but it matters for learning, as we are about to see.
#
# ## The derivative of the softmax
#
# How does weight $i$ change with score $j$?
# We take $T=1$, write down the logarithm, $\log\alpha_i = a_i - \log\sum_k e^{a_k}$, and differentiate both sides:
#
# $$\frac{1}{\alpha_i}\frac{\partial\alpha_i}{\partial a_j} = \delta_{ij} - \alpha_j
# \qquad\text{so}\qquad
# \frac{\partial\alpha_i}{\partial a_j} = \alpha_i(\delta_{ij} - \alpha_j) ,\quad J = \mathrm{diag}(\alpha)-\alpha\alpha^\top .$$
#
# Here $\delta_{ij}$ is 1 for $i=j$ and otherwise 0, and the derivative of $\log\sum_k e^{a_k}$ by $a_j$ is $\alpha_j$.
# For two equal scores, for example, each weight is ½, so the diagonal of $J$ is $\tfrac12\cdot\tfrac12 = \tfrac14$, and the other entries are $-\tfrac14$.


# %%
def softmax_jacobian(scores):
    """∂α/∂a for one row of scores: (keys,) → (keys, keys)."""
    weights = scores.softmax(dim=-1)
    return weights.diag() - weights[:, None] * weights[None, :]


def automatic_jacobian(scores):
    """The same by PyTorch's automatic differentiation."""
    return torch.autograd.functional.jacobian(
        lambda a: a.softmax(dim=-1), scores, create_graph=True
    )


cu.equal(softmax_jacobian, automatic_jacobian, torch.randn(5))

# %% [markdown]
# The matrix is symmetric and each of its rows sums to 0, because a step of all scores by the same amount changes no weight.
# With a single key we have $\alpha=1$ and $J=0$, so the score of a lone key is never trained.
#
# ## When the gradient vanishes
#
# *Dive into Deep Learning* (section 11.1) says that the gradient of the softmax never vanishes.
# On paper this is true, since $J\ne0$ for finite scores and at least two keys.
# But how small does it get?
# With two keys whose scores differ by a gap $\Delta$, every entry of $J$ is $\pm\alpha_1\alpha_2$, which is about $e^{-\Delta}$ for a large gap.
# The figure shows where half precision loses the slope.

# %%
gaps = torch.linspace(0, 25, 251)


def slopes_at(gaps, dtype):
    """α₁α₂, the size of each entry of the Jacobian for two scores, for each gap."""
    scores = torch.stack([gaps, 0 * gaps], dim=1).to(dtype).requires_grad_()
    second = scores.softmax(dim=-1)[:, 1].sum()
    return torch.autograd.grad(second, scores)[0][:, 1].tolist()


[slope > 0 for slope in slopes_at(gaps[[0, 100, 170, 180]], torch.float16)]


# %% tags=["hide-input"] jupyter={"source_hidden": true}
slopes = {
    "double precision": slopes_at(gaps, torch.float64),
    "half precision": slopes_at(gaps, torch.float16),
}
fig, ax = cu.subplots(
    width=7, height=3.1,
    alt="The largest slope of a softmax over the gap of two scores, on a logarithmic axis: a straight "
    "line down. Half precision follows in steps and ends at a gap of about 17.",
)  # fmt: skip
exact, half = slopes.values()
ax.plot(gaps, exact, label="double precision")
shown = [(gap, one) for gap, one in zip(gaps.tolist(), half, strict=True) if one > 0]
ax.plot(*zip(*shown, strict=True), "--", label="half precision")
ax.plot(*shown[-1], "o", color=cu.COLORS["query"], markersize=7)
ax.text(shown[-1][0] + 0.4, shown[-1][1] * 2, "beyond: exactly 0", va="bottom")
ax.set(yscale="log", xlabel="gap Δ of the two scores", ylabel="largest slope ∂α/∂a")
ax.legend(loc="lower left")
fig

# %% [markdown]
# On a logarithmic axis the slope falls in a straight line, and at a gap of 10 it is 5 in 100,000.
# Half precision follows in steps, and beyond a gap of about 17.3 it is *exactly* 0.
# We call a softmax that is so sure of itself **saturated**.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The slope of a softmax falls like e^(−gap), and in half precision it becomes exactly 0."
):
    assert 4e-5 < exact[100] < 5e-5 and exact[250] > 0
    assert half[170] > 0 == half[180]
    assert 17.2 < ends.loc["exp(−gap) 0 from gap", "float16"] < 17.5
    assert 103 < ends.loc["exp(−gap) 0 from gap", "float32"] < 105

# %% [markdown]
# ### Does it matter in training?
#
# Let attention choose between two keys with the values 0 and 1.
# The right answer is 1, but the scores start with a gap $\Delta$ in favor of the *wrong* key.
# So the right key has the weight $r = 1/(1+e^{\Delta})$, which is also the answer, and gradient descent with steps of size 1 has to bring the gap down to 0.
# We compare two losses:
#
# - the squared error of the answer, $\tfrac12(1-r)^2$, whose slope in $\Delta$ is $(1-r)\cdot r(1-r)$ by the chain rule, since $dr/d\Delta = -r(1-r)$;
# - minus the logarithm of the right weight, $-\log r$, as classifiers use it, whose slope is $\tfrac1r\cdot r(1-r) = 1-r$.


# %%
def steps_to_unlearn(gap, slope_of_loss):
    """Steps of plain descent, of size 1, until the right key has the larger weight."""
    count = 0
    while gap > 0:
        gap -= slope_of_loss(1 / (1 + math.exp(gap)))
        count += 1
    return count


def steps_with_adam(gap):
    """The same for the squared error, with Adam at rate 0.1."""
    lead = torch.tensor(float(gap), requires_grad=True)
    adam = torch.optim.Adam([lead], lr=0.1)
    for count in range(1000):
        if lead.item() <= 0:
            return count
        (lead.sigmoid().square() / 2).backward()  # 1 − r = sigmoid(Δ)
        adam.step()
        adam.zero_grad()


# %%
wrong_by = [2, 4, 6, 8, 10]
squared = [steps_to_unlearn(gap, lambda r: (1 - r) * r * (1 - r)) for gap in wrong_by]
by_log = [steps_to_unlearn(gap, lambda r: 1 - r) for gap in wrong_by]
unlearned = pd.DataFrame({"gap": wrong_by, "squared error": squared})
unlearned["factor"] = (unlearned["squared error"].pct_change() + 1).round(1)
unlearned["−log of the weight"] = by_log
unlearned["squared error, Adam"] = [steps_with_adam(gap) for gap in wrong_by]
unlearned.astype(object).fillna("")

# %% [markdown]
# Through the answer, every 2 more of a gap take 4 to 7 times as many steps, and the factor comes close to $e^2=7.4$.
# In other words, a confident mistake is unlearned **exponentially slowly**.
# The logarithm doesn't have this problem, because it divides by the small weight $r$.
# But the weights of an attention have no such loss of their own, because they act only through the values.
#
# For two keys, the last column has a remedy.
# [Adam](B_pytorch.ipynb) divides each step by the size of the slopes that it has seen, so a small slope doesn't mean a small step, and about 70 steps are enough for a gap of 10.
# But Adam can't help where the slope is exactly 0.
# So with few keys it is better if scores don't start out large, and this is one reason to divide them by $\sqrt d$.
# With many keys the gradient isn't even small, and [Scoring functions](03_scoring_functions.ipynb) shows the other reason: the right key is rarely near the top of its list.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Plain gradient descent unlearns slowly through the answer, but quickly through the logarithm or with Adam."
):
    assert unlearned["factor"].iloc[1:].is_monotonic_increasing
    assert 7.0 < unlearned["factor"].iloc[-1] < 7.6
    assert 65 < unlearned["squared error, Adam"].iloc[-1] < 80
    assert unlearned["−log of the weight"].max() < 20

# %% [markdown]
# ## Where weighted sums lie
#
# How much do the two conditions on weights matter?
# We take three values with two coordinates each, and mix them with weights from 0 up, then with weights that also sum to 1, and then with those of a single softmax as it cools.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
corners = torch.tensor([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
nonnegative = torch.empty(150, 3).exponential_() / 2
trail = [(torch.tensor([1.0, 0.0, 0.7]) / t).softmax(dim=-1) for t in torch.logspace(-2, 2, 60)]
spots = {
    "nonnegative (many beyond)": nonnegative @ corners,
    "convex weights": nonnegative / nonnegative.sum(-1, keepdim=True) @ corners,
    "a softmax, cold to hot": torch.stack(trail) @ corners,
}
fig, axes = cu.subplots(
    1, 3, width=9, height=3.1, sharex=True, sharey=True,
    alt="Where weighted sums of three values fall. Nonnegative weights: in the wedge from the origin "
    "through the outer values. Convex weights: in the triangle of the values. A softmax from cold to "
    "hot: a curve in the triangle, from a corner to its center.",
)  # fmt: skip
for ax, (title, dots) in zip(axes, spots.items(), strict=True):
    ax.fill([0, 30, 10], [0, 10, 20], color="0.93", zorder=0)
    ax.scatter(*dots.T, s=5, color=cu.COLORS["key"], alpha=0.7, zorder=1)
    ax.plot(*corners[[0, 1, 2, 0]].T, color="black", linewidth=1.2, linestyle="--", zorder=2)
    ax.plot(*corners.T, "D", color=cu.COLORS["value"], markersize=7, zorder=3)
    ax.plot(0, 0, "k+", markersize=9)
    ax.set(xlim=(-0.4, 5), ylim=(-0.4, 5), xlabel="first coordinate", title=title, aspect="equal")
axes[0].set_ylabel("second coordinate")
fig

# %% [markdown]
# **Nonnegative** weights keep the sum in the gray wedge, the *convex cone* of the values.
# The sum may be long, but it can't point elsewhere.
# If the weights also **sum to 1**, the sum stays in the dashed triangle, the convex hull.
# A softmax leads from a corner to the center as it warms up.
#
# ## Sparsemax: weights that are exactly 0
#
# A softmax gives every key some weight, and a hard look-up has no slope for the query.
# Is there something in between?
# **Sparsemax** ([Martins and Astudillo, 2016](https://arxiv.org/abs/1602.02068)) draws a line under the scores, and what is above the line is the weight.
# The height of the line makes the weights sum to 1.
# For the scores 1, 0.6 and 0 the line is at 0.3, and the weights are 0.7, 0.3 and *exactly* 0.
# Here are its weights for the kitten of the chapter.


# %%
def sparsemax(scores):
    """What stands above one line for each row: (…, keys)."""
    best = scores.sort(dim=-1, descending=True).values
    counts = torch.arange(1, scores.shape[-1] + 1)
    lines = (best.cumsum(dim=-1) - 1) / counts  # the line, if the first 1, 2, … count
    last = (best > lines).sum(dim=-1, keepdim=True) - 1
    return (scores - lines.gather(-1, last)).relu()


keys = torch.tensor([[0.1, 0.1], [0.3, 0.8], [0.4, 1.0], [0.8, 0.4], [1.0, 0.0]])
values = torch.tensor([2.0, 15.0, 12.0, 28.0, 65.0])
animals = ["mouse", "cat", "dog", "horse", "elephant"]
guests = torch.tensor([[0.2, 0.9], [1.0, 1.0]])  # kitten and house
scores = -(guests[:, None] - keys).square().sum(dim=-1) / 2  # (queries, keys)
sparse = {f"T = {t:g}": sparsemax(scores[0] / t).tolist() for t in (1.0, 0.3, 0.1)}
pd.DataFrame.from_dict(sparse, orient="index", columns=animals).round(2)

# %% [markdown]
# The colder it gets, the fewer keys have any weight.
# Sparsemax has slopes among the keys that have weight, and none for the others.
# That is why the chapter's walk to 20 years arrives at $T=1$, while at $T=0.1$ only cat and dog have weight, and the query never gets above 15.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The weights of sparsemax sum to 1, some are exactly 0, and the others have slopes."):
    drawn = torch.randn(6)
    above = sparsemax(drawn)
    inside = (above > 0).float()
    slope_matrix = inside.diag() - inside[:, None] * inside / inside.sum()
    automatic = torch.autograd.functional.jacobian(sparsemax, drawn)
    assert math.isclose(above.sum().item(), 1, abs_tol=1e-5) and above.eq(0).any()
    assert torch.allclose(automatic, slope_matrix, atol=1e-6)
with cu.guard(
    "With sparsemax the walk to 20 years arrives at T = 1, and at T = 0.1 it stays below 15."
):
    highest = {}
    for t in (1.0, 0.1):
        query, years = guests[0].clone(), []
        for _ in range(300):
            query.requires_grad_()
            answer = sparsemax(-(query - keys).square().sum(dim=-1) / 2 / t) @ values
            (slope,) = torch.autograd.grad(answer, query)
            query = query.detach() - 0.0003 * (answer.item() - 20) * slope
            years.append(answer.item())
        highest[t] = max(years)
    assert abs(highest[1.0] - 20) < 0.1 and highest[0.1] < 15.001

# %% [markdown]
# ## One against many: crowds dilute
#
# What happens to a good match in a long table?
# Let one key lead all the $m-1$ others, which are equal, by a gap $\Delta$.
# Its weight is
#
# $$\frac{e^\Delta}{e^\Delta + (m-1)} = \frac{1}{1+(m-1)e^{-\Delta}} ,$$
#
# which is one half exactly for $\Delta = \ln(m-1)$.
# The table shows what lead a key needs in a crowd, and what is left of a lead of 4.

# %%
crowd = pd.DataFrame({"keys m": [2, 10, 100, 1000, 10_000]})
crowd["lead for a weight of ½"] = [math.log(m - 1) for m in crowd["keys m"]]
crowd["weight with a lead of 4"] = [
    torch.tensor([4.0] + [0.0] * (m - 1)).softmax(0)[0].item() for m in crowd["keys m"]
]
crowd.round(3)

# %% [markdown]
# A lead of 4 gives 0.98 of the weight between two keys, and 0.005 among 10,000.
# So a temperature that suits short sequences is too warm for long ones.
# This is the chapter's law of copies again: $m-1$ equal keys together weigh as much as a single key whose score is higher by $\ln(m-1)$.
# An average can't count, either.
# Five entries of equal weight with the values 1, 0, 0, 0, 0 give $1/5$, and another layer of the network would have to make the number 5 of this average.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Among more keys the same lead gives a smaller weight, and a lead of ln(m − 1) gives one half."
):
    halves = [
        torch.tensor([lead] + [0.0] * (m - 1)).softmax(dim=-1)[0].item()
        for m, lead in zip(crowd["keys m"], crowd["lead for a weight of ½"], strict=True)
    ]
    assert all(abs(weight - 0.5) < 1e-3 for weight in halves)
    assert crowd["weight with a lead of 4"].is_monotonic_decreasing
    assert crowd["weight with a lead of 4"].iloc[-1] < 0.01

# %% [markdown]
# ## An answer of nothing
#
# The chapter's house got a sure answer, although no animal is like it.
# As a remedy we give the table one more entry, "nothing", with the value 0 and a fixed score.
# Let its score be the one of a key at a distance of 0.3, and see how much weight it takes at four temperatures.

# %%
more = F.pad(scores, (0, 1), value=-(0.3**2) / 2)  # (queries, keys and nothing)
nothing = {}
for t in (0.01, 0.1, 0.3, 1.0):
    nothing[f"T = {t:g}"] = (more / t).softmax(dim=-1)[:, -1].tolist()
pd.DataFrame.from_dict(nothing, orient="index", columns=["kitten", "house"]).round(2)

# %% [markdown]
# At low temperatures "nothing" does what we want: it takes nearly all of the house's weight and hardly any of the kitten's.
# At higher temperatures "nothing" takes weight from the kitten, and loses the house to a crowd of far animals.
# So one fixed score isn't a remedy at every temperature, and a network would have to learn the score.
#
# ### Exercise 2 · An answer of "nothing"
#
# *build · 12 minutes*
#
# Write attention from scores over $m$ stored pairs and one extra pair, whose score is `nothing` and whose value is 0, without storing that pair among the values:
#
# $$\frac{\sum_i e^{a_i}\,v_i}{e^{\texttt{nothing}}+\sum_j e^{a_j}} .$$
#
# Your function has to survive scores of ±1000.


# %% tags=["exercise", "build"]
def attend_or_nothing(scores, values, nothing):
    """With one more pair: (…, queries, m), (…, m, d) → (…, queries, d)."""
    ...  # scores 0, 0, 0, values 4, 8, 12 and nothing = 0 give 6


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.attend_or_nothing(attend_or_nothing)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def attend_or_nothing_solution(scores, values, nothing):
    """The extra pair takes its share of the weights, and adds 0.

    The same: plain attention times sigmoid(logsumexp(scores) − nothing). Weights forget their scores' sum.
    """
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], dim=-1).softmax(dim=-1)
    return weights[..., :-1] @ values


cu.checks.attend_or_nothing(attend_or_nothing_solution)


# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At a low temperature “nothing” wins for the house, and at a high one it takes weight from the kitten as well."
):
    assert nothing["T = 0.01"][0] < 0.03 and nothing["T = 0.01"][1] > 0.999
    assert nothing["T = 0.3"][0] > 0.2 and nothing["T = 0.3"][1] < 0.4

# %% [markdown]
# ## Hard choices, by trial and reward
#
# A hard look-up takes a single value $v_i$ and has no slope for the query.
# We can train it all the same if it chooses by chance.
# Draw $i$ with probability $\alpha_i$, see the loss $L_i$ of that choice, and take one small step of the scores *against*
#
# $$g = L_i\,\nabla_a\log\alpha_i ,\qquad (\nabla_a\log\alpha_i)_j = \delta_{ij}-\alpha_j .$$
#
# On average over the draws this is the gradient of the mean loss, $\alpha_j(L_j-\bar L)$ with $\bar L=\sum_i\alpha_iL_i$.
# Reinforcement learning calls this method **REINFORCE**, and Mnih et al. (2014) trained hard visual attention with it.
# What does REINFORCE cost?
# We take the kitten's weights at $T=0.1$ and a right answer of 12 years, and draw 10,000 times.

# %%
alpha = torch.tensor([-3.25, -0.1, -0.25, -3.05, -7.25]).softmax(dim=-1)
years = torch.tensor([2.0, 15.0, 12.0, 28.0, 65.0])
loss_of = 0.5 * (years - 12) ** 2  # of each choice
drawn = torch.multinomial(alpha, 10_000, replacement=True)
direction = torch.eye(5)[drawn] - alpha  # (draws, scores)
mean_loss = alpha @ loss_of
trials = pd.DataFrame(
    {
        "gradient of the mean loss": alpha * (loss_of - mean_loss),
        "mean of 10,000 draws": (loss_of[drawn, None] * direction).mean(0),
        "spread of one draw": (loss_of[drawn, None] * direction).std(0),
        "spread, L − mean": ((loss_of[drawn] - mean_loss)[:, None] * direction).std(0),
    },
    index=["mouse", "cat", "dog", "horse", "elephant"],
)
trials.astype(float).round(2)

# %% [markdown]
# The mean of many draws is near the gradient, except for the elephant, which is hardly ever drawn.
# A single draw is far from the gradient, and the spread of the draws is several times the gradient's size.
# If we subtract the mean loss, the average stays as it is and the spread gets a little smaller.
# The soft average has its exact gradient after one pass.
# But that is the gradient of another loss, the loss of the mixed answer, and a mixture needn't be like any entry.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Draws give the right gradient on average, but their spread is larger than the gradient."
):
    standard_error = trials["spread of one draw"] / 100
    off = (trials["mean of 10,000 draws"] - trials["gradient of the mean loss"]).abs()
    assert (off < 5 * standard_error).all()
    assert (trials["spread of one draw"] > trials["gradient of the mean loss"].abs()).all()

# %% [markdown]
# ## A memory: the look-up, repeated
#
# Let the values be the keys, and ask again with each answer.
# Then a cold look-up falls into one of the stored patterns, so it is an *associative memory* (Ramsauer et al., 2021, call it a modern Hopfield network).
# We store eight random patterns of 64 signs, and our query is one of them with 20 signs flipped.
# Does it find its way back?

# %%
patterns = torch.randn(8, 64).sign()
turned = patterns[0] * torch.where(torch.randperm(64) < 20, -1, 1)
states = {}
for name, temperature in (("T = 2", 2.0), ("T = 16", 16.0), ("T = 64", 64.0)):
    state, states[name] = turned, []
    for _ in range(5):
        states[name].append((patterns @ state / 64).tolist())
        state = (patterns @ state / temperature).softmax(dim=-1) @ patterns

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=8, height=2.3, sharey=True,
    alt="Likeness of the query to each of eight patterns over five look-ups. At T = 2 it becomes the pattern it was "
    "made from; at T = 16 and at T = 64 a mixture of several.",
)  # fmt: skip
for ax, (name, likeness) in zip(axes, states.items(), strict=True):
    for i, one in reversed(list(enumerate(zip(*likeness, strict=True)))):
        ax.plot(one, color=cu.COLORS["query"] if i == 0 else "0.7", linewidth=2.2 if i == 0 else 1)
    ax.set(title=name, xlabel="look-ups", xticks=range(5), ylim=(-0.5, 1.1))
axes[0].set_ylabel("likeness")
fig

# %% [markdown]
# At $T=2$ the query becomes the pattern that it was made from, and at the two warmer temperatures it becomes a mixture of several.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "If we repeat a look-up at a low temperature, it finds the pattern, and at a high one it mixes several."
):
    warm = max(states[name][-1][0] for name in ("T = 16", "T = 64"))
    assert states["T = 2"][-1][0] > 0.99 > 0.7 > warm

# %% [markdown]
# ### Exercise 3 · Soft top-k
#
# *build · 9 minutes*
#
# There is something between softmax and top-k, a softmax over the $k$ best scores of each row, with exactly 0 elsewhere.
# Language models can draw their next word from such weights.
# Which score becomes a weight of 0?
# Ties don't matter here.
# Your function should work with any number of axes in front, leave the scores as they are, and let the gradient through.


# %% tags=["exercise", "build"]
def soft_top_k(scores, k):
    """Softmax over the k largest scores of each row, 0 elsewhere: (…, keys)."""
    ...  # scores −1, 3, 0, 2 and k = 2 give 0, 0.73, 0, 0.27


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.soft_top_k(soft_top_k)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def soft_top_k_solution(scores, k):
    """All scores below the k-th largest become −inf: all but k, if there are no ties."""
    kth = scores.topk(k, dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kth, -math.inf).softmax(dim=-1)


cu.checks.soft_top_k(soft_top_k_solution)

# %% [markdown]
# ### Who did what first
#
# - Graves (2013) used a weighted sum over a sequence, with weights that a network computes, for handwriting, with a window of Gaussians that slides over the text.
#   Bahdanau et al. (2015) brought the softmax over scores of all states into translation.
# - Graves et al. (2014) had a look-up by content in which the network itself chooses a temperature for each query, called key strength (our query is their key vector).
# - Sukhbaatar et al. (2015) gave each entry one vector by which it is found and another one that it hands over, called input and output memory.
#   Miller et al. (2016) wrote *keys* and *values*, and Vaswani et al. (2017) made queries, keys and values by three matrices.
# - In language models the weight that has to go somewhere often goes to the first token, an **attention sink** (Xiao et al., 2024).
#   Our remedy, an entry of value 0, is one of several, and `nn.MultiheadAttention` has it as `add_zero_attn`, with a score of 0.

# %% [markdown] tags=["next"]
# Back to the chapter: [Queries, keys and values](01_queries_keys_values.ipynb).
# Next: [Kernel regression](02_kernel_regression.ipynb).

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. & Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
# - Graves, A. (2013).
#   [Generating sequences with recurrent neural networks](https://arxiv.org/abs/1308.0850).
#   Section 5: the window over the text.
# - Graves, A., Wayne, G. & Danihelka, I. (2014).
#   [Neural Turing machines](https://arxiv.org/abs/1410.5401).
#   Section 3.3.1: look-up by content.
# - Martins, A. & Astudillo, R. (2016).
#   [From softmax to sparsemax](https://arxiv.org/abs/1602.02068).
#   ICML.
# - Miller, A. et al. (2016).
#   [Key-value memory networks for directly reading documents](https://arxiv.org/abs/1606.03126).
#   EMNLP.
# - Mnih, V., Heess, N., Graves, A. & Kavukcuoglu, K. (2014).
#   [Recurrent models of visual attention](https://arxiv.org/abs/1406.6247).
#   NeurIPS.
# - Ramsauer, H. et al. (2021).
#   [Hopfield networks is all you need](https://arxiv.org/abs/2008.02217).
#   ICLR.
# - Sukhbaatar, S., Szlam, A., Weston, J. & Fergus, R. (2015).
#   [End-to-end memory networks](https://arxiv.org/abs/1503.08895).
#   NeurIPS.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
# - Xiao, G. et al. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.1.
