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
# A further page of [Queries, keys and values](01_queries_keys_values.ipynb); nothing later needs it.
# **How far can the softmax be trusted?**
# This page says where it overflows, what its derivative is and when that vanishes, where weighted sums can lie, what a crowd of keys does, how hard choices are trained, what a look-up remembers that is repeated, and who did what first.

# %%
import math

import pandas as pd
import torch

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Where it overflows, and where it underflows
#
# Numbers in a computer have a largest and a smallest size.
# Most networks are trained with numbers of 16 bits in part: float16 has small range and fine steps, bfloat16 has large range and coarse steps.
# For each format: from which score on is $e^a$ infinite, and for which gap $\Delta$ below the largest score is the other exponential, $e^{-\Delta}$, exactly 0?


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
# PyTorch's automatic mixed precision and its fused attention compute the softmax in float32, whatever surrounds it: then the third row holds.
# The first two hold where a whole model was converted.
# In half precision (float16) a score of 11.1 is too much for the formula as it reads.
# Subtracting the largest score of the row first repairs this in each format: no exponent is above 0.
# The other end remains.
# A key that is 17.3 below the best in half precision, or 104 in single precision, has a weight of exactly 0.
# For the answer this is harmless.
# Where $\log\alpha$ is needed, `log_softmax` computes it without the weight; and for learning it matters, as is shown below.

# %% [markdown]
# ## Its derivative, in two lines
#
# How does weight $i$ change with score $j$ (at $T=1$)?
# Take the logarithm, $\log\alpha_i = a_i - \log\sum_k e^{a_k}$, and differentiate both sides:
#
# $$\frac{1}{\alpha_i}\frac{\partial\alpha_i}{\partial a_j} = \delta_{ij} - \alpha_j
# \qquad\text{so}\qquad
# \frac{\partial\alpha_i}{\partial a_j} = \alpha_i(\delta_{ij} - \alpha_j) ,\quad J = \mathrm{diag}(\alpha)-\alpha\alpha^\top .$$
#
# ($\delta_{ij}$ is 1 for $i=j$, else 0; the derivative of $\log\sum_k e^{a_k}$ by $a_j$ is $\alpha_j$.)
# Two equal scores: each weight is ½, the diagonal of $J$ is $\tfrac12\cdot\tfrac12 = \tfrac14$, and beside it stands $-\tfrac14$.


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
# The matrix is symmetric, and each row sums to 0: a step of all scores by the same amount changes no weight.
# So in one direction there never is a slope, and that is shift invariance again.
# With a single key, $\alpha=1$ and $J=0$: its score is never trained.

# %% [markdown]
# ## When the gradient vanishes
#
# *Dive into Deep Learning* (section 11.1) says of the softmax that its gradient never vanishes.
# On paper this is so: for finite scores and at least two keys, $J\ne0$.
# But how small is it?
# Take two keys whose scores differ by a gap $\Delta$.
# Every entry of $J$ is $\pm\alpha_1\alpha_2$, which is nearly $e^{-\Delta}$ for a large gap.

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
# On a logarithmic axis the slope falls in a straight line: $e^{-\Delta}$.
# At a gap of 10 it is 5 in 100,000.
# Half precision follows in steps, and is *exactly* 0 beyond a gap of about 17.3, single precision beyond 104.
# A softmax that is so sure of itself is called **saturated**.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The slope of a softmax falls like e^(−gap), and in half precision it becomes exactly 0."
):
    assert 4e-5 < exact[100] < 5e-5 and exact[250] > 0
    assert half[170] > 0 == half[180]
    assert 17.2 < ends.loc["exp(−gap) 0 from gap", "float16"] < 17.5
    assert 103 < ends.loc["exp(−gap) 0 from gap", "float32"] < 105

# %% [markdown]
# ## Does it matter in training?
#
# Let attention choose between two keys with the values 0 and 1.
# The right answer is 1, but the scores start with a gap $\Delta$ in favor of the *wrong* key.
# The weight of the right key is $r = 1/(1+e^{\Delta})$, and $r$ is also the answer.
# Gradient descent with steps of size 1 has to bring the gap down to 0.
# Two losses:
#
# - the squared error of the answer, $\tfrac12(1-r)^2$.
#   By the chain rule its slope in $\Delta$ is $(1-r)\cdot r(1-r)$, since $dr/d\Delta = -r(1-r)$;
# - minus the logarithm of the right weight, $-\log r$, as classifiers use it.
#   Its slope is $\tfrac1r\cdot r(1-r) = 1-r$.


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
# Through the answer, every 2 more of a gap take 4 to 7 times as many steps of plain descent, and the factor comes close to $e^2=7.4$: a confident mistake is unlearned **exponentially slowly**.
# The logarithm divides by the small weight $r$ and cancels it; but weights of attention are not trained by such a loss, they are judged through the values only.
# The last column has a remedy: [Adam](B_pytorch.ipynb) divides each step by the size of the slopes that it has seen, so that a small slope is no small step.
# Here it needs about 70 steps for a gap of 10.
# It cannot help where the slope is exactly 0, and here no other example drowns the small slope.
# Both speak for scores that do not start out large: [Scoring functions](03_scoring_functions.ipynb) divides them by $\sqrt d$.

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
# Three values with two coordinates, and weights that may be anything from 0 up, that also sum to 1, or that come from one softmax as it cools:

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
# **Nonnegative** weights keep the sum in the gray wedge, the *convex cone* of the values: it may be long, but cannot point elsewhere.
# If they also **sum to 1**, it stays in the dashed triangle, the convex hull.
# **One-hot** weights give a corner, **uniform** ones the center; the temperature leads from one to the other.

# %% [markdown]
# ## One against many
#
# One key leads all the $m-1$ others, which are equal, by a gap $\Delta$.
# Its weight is
#
# $$\frac{e^\Delta}{e^\Delta + (m-1)} = \frac{1}{1+(m-1)e^{-\Delta}} ,$$
#
# one half exactly if $\Delta = \ln(m-1)$.
# What lead does it need in a crowd, and what is left of a lead of 4?

# %%
crowd = pd.DataFrame({"keys m": [2, 10, 100, 1000, 10_000]})
crowd["lead for a weight of ½"] = [math.log(m - 1) for m in crowd["keys m"]]
crowd["weight with a lead of 4"] = [
    torch.tensor([4.0] + [0.0] * (m - 1)).softmax(0)[0].item() for m in crowd["keys m"]
]
crowd.round(3)

# %% [markdown]
# A lead of 4 gives 0.98 of the weight between two keys, and 0.005 among 10,000.
# A temperature that suits short sequences is too warm for long ones: crowds dilute.
# It is the same law as that of copies in the chapter: $m-1$ equal keys together weigh as much as one whose score is higher by $\ln(m-1)$.
# Nor can an average count: five entries of equal weight with the values 1, 0, 0, 0, 0 give $1/5$, and another layer of the network has to make 5 of it.

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
# ## Hard choices, by trial and reward
#
# A hard look-up takes one value $v_i$, and has no slope.
# It can be trained all the same, if it chooses by chance: draw $i$ with probability $\alpha_i$, see the loss $L_i$ of that choice, and take one small step of the scores *against*
#
# $$g = L_i\,\nabla_a\log\alpha_i ,\qquad (\nabla_a\log\alpha_i)_j = \delta_{ij}-\alpha_j .$$
#
# On average over the draws this is the gradient of the mean loss, $\alpha_j(L_j-\bar L)$ with $\bar L=\sum_i\alpha_iL_i$.
# This is the method of reinforcement learning (REINFORCE); Mnih et al. (2014) trained hard visual attention with it.
# What does it cost?
# The kitten's weights at $T=0.1$; a right answer of 12 years; 10,000 draws.

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
# The mean of many draws is near the gradient (but for the elephant, which is hardly ever drawn), and a single draw is far from it: its spread is several times the gradient's size.
# Subtracting the mean loss leaves the average as it is, and lowers the spread a little.
# The soft average has an exact gradient from one pass.
# (It is the gradient of another loss, though, that of the mixed answer instead of the mean loss of the choices.
# A choice must be *one* entry; a mixture need not be like any.)

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
# A cold look-up then falls into one of the stored patterns: it is an *associative memory* (Ramsauer et al., 2021, call it a modern Hopfield network).
# Eight random patterns of 64 signs; the query is one of them, with 20 signs turned round.

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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "If we repeat a look-up at a low temperature, it finds the pattern, and at a high one it mixes several."
):
    warm = max(states[name][-1][0] for name in ("T = 16", "T = 64"))
    assert states["T = 2"][-1][0] > 0.99 > 0.7 > warm

# %% [markdown]
# ### Exercise 1 · Soft top-k
#
# *build · 6 minutes*
#
# Something between softmax and top-k: a softmax over the $k$ best scores of each row, and exactly 0 elsewhere.
# Language models can draw their next word from such weights.
# Which score becomes a weight of 0?
# Ties do not matter here; any number of axes may stand in front, the scores stay as they are, and the gradient has to get through.


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
# - A weighted sum over a sequence, with weights that a network computes: Graves (2013), for handwriting, with a window of Gaussians that slides over the text.
#   Bahdanau et al. (2015) brought the softmax over scores of all states into translation.
# - Look-up by content with a temperature that the network chooses itself, query by query: Graves et al. (2014), there called key strength (and what is called a query here is there the key vector).
# - One vector by which an entry is found and another one that it hands over: Sukhbaatar et al. (2015), as input and output memory.
#   Miller et al. (2016) wrote *keys* and *values*.
#   Queries, keys and values from three matrices: Vaswani et al. (2017).
# - Weight that has to go somewhere: in language models it often lies on the first token, an **attention sink** (Xiao et al., 2024).
#   The remedy of the chapter, an entry of value 0, is one of several; `nn.MultiheadAttention` has it as `add_zero_attn`, with a score of 0.
#
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
