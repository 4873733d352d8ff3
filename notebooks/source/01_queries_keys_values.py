# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Queries, keys and values
#
# **How can a table be asked for something that is not in it?**
# A table of animals knows how long a cat lives and how long a dog lives.
# You ask for a kitten.
# This chapter builds a look-up that has an answer: it compares what you ask with everything that is stored, and mixes the stored answers.
# This look-up is attention.
# A network can learn it, because its answer has a slope.
#
# After this chapter you can
#
# - compute an answer of attention with a pencil: scores, softmax, weighted average;
# - say what the temperature does, from the plain mean to the nearest entry;
# - write exact, nearest, top-k and average look-up as weights in one formula;
# - say what a weighted average can never answer, and give it a way to answer "nothing";
# - write a softmax that survives any finite scores, and −∞.
#
# It needs [Start here](00_start_here.ipynb): tensors, shapes, broadcasting.

# %%
import math

import pandas as pd
import torch

import course_utils as cu

cu.seed_everything(0)

# %%
cu.recall("start_here")

# %% [markdown]
# ## Ask for a kitten
#
# *Section 1 of 5*
#
# Each animal has two numbers by which it can be found, its size and how much it is at home with people, both from 0 to 1.
# The third number is what we want to know: the years that it may live, in round figures.
# The table is yours: add animals, change numbers, move the kitten, and run all cells again.
# (The numbers in the text are those of the table as it stands here.)

# %%
animals = {  # name: (size, home, years)
    "mouse": (0.1, 0.1, 2),
    "cat": (0.3, 0.8, 15),
    "dog": (0.4, 1.0, 12),
    "horse": (0.8, 0.4, 28),
    "elephant": (1.0, 0.0, 65),
}
kitten_size = 0.2  # try 0.0 … 1.0
kitten_home = 0.9  # try 0.0 … 1.0
strangers = {"kitten": (kitten_size, kitten_home), "farmer": (0.6, 0.8)}

names = list(animals)
table = torch.tensor(list(animals.values()), dtype=torch.float32)  # (keys, 3)
keys, values = table[:, :2], table[:, 2]  # (keys, features), (keys,)
kitten = torch.tensor([[kitten_size, kitten_home]])  # one query: (1, features)
pd.DataFrame(table.tolist(), index=names, columns=["size", "home", "years"]).round(2)

# %% [markdown]
# A Python dictionary answers *cat* with 15 and *kitten* with an error.
# But the kitten's two numbers are near those of the cat, and not far from those of the dog.
# Three words for what we have:
#
# - a **key** is what an entry can be found by: here its size and home;
# - a **value** is what an entry has to tell: here its years;
# - a **query** is what we ask with.
#   It has the form of a key, and need not be one of them.
#
# The look-up gives each entry a **weight**.
# The weights are not negative and sum to 1, and they are larger for keys that are nearer to the query.
# The answer is the sum of *weight times value*: a weighted average.
# Entries with large weights are those that the look-up *pays attention* to.
# Hence the name **attention**, and [attention weights](C_glossary.ipynb#attention-weights).
#
# Next comes this look-up as a toy.
# You can drag the query, and one number can be turned, the [temperature](C_glossary.ipynb#temperature) $T$.
# The lower it is, the larger is the share of the nearest key.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "You ask for the kitten and turn the temperature as low as it goes. What will the answer be?",
    ["15, the years of the cat", "13.5, between cat and dog", "24.4, the mean of all five"],
    answer="15, the years of the cat",
    wrong={
        "13.5, between cat and dog": "Cat and dog are both near. Are they equally near?",
        "24.4, the mean of all five": "This is one end of the slider. Which end ignores the query?",
    },
    why="At the lowest temperature the nearest key has all of the weight. "
    "The cat is √0.02 = 0.14 away from the kitten, the dog √0.05 = 0.22.",
)

# %%
cu.live.look_up(animals, strangers)

# %% [markdown]
# The query is a cross, and the disk of a key is as large as its weight (the ring is a weight of 1).
# In the table, *weight times value* is the share of each entry, and their sum is the answer; the score comes in the next section.
# At $T = 0.1$ the kitten gets 13.8 years, mostly from cat and dog.
# At the coldest end all is taken from the cat; at the hottest end each entry weighs 0.2, and the answer is 24.4 whatever you ask.
# Now drag the query anywhere: does the answer ever exceed 65, or fall below 2?

# %%
cu.quiz("queries_keys_values", "very_hot")

# %% [markdown]
# ## From scores to weights
#
# *Section 2 of 5*
#
# To compute this we need a number for *near*, the **score** $a$.
# A simple one is minus half the squared distance: 0 for a perfect match, and more negative the further away.
# For kitten and dog, by hand:
#
# $$a = -\tfrac12\lVert q-k\rVert^2 = -\tfrac12\big((0.2-0.4)^2+(0.9-1.0)^2\big) = -\tfrac12(0.04+0.01) = -0.025 .$$
#
# Scores can be any numbers; weights must not be negative, and sum to 1.
# Dividing scores by their sum does not do it: 3 and −1 would become 1.5 and −0.5.
# So make them positive first, by the exponential function, and then divide by their sum: the **[softmax](C_glossary.ipynb#softmax)** of *Start here*.
# New is the temperature, by which the scores are divided before:
#
# $$\alpha_i = \frac{e^{a_i/T}}{\sum_j e^{a_j/T}},\qquad \text{answer} = \sum_i \alpha_i\, v_i .$$
#
# All of it in numbers, a row for each key, and then as a flow of data.
# Nearly every attention in this course has this form.

# %%
T = 0.1  # try 0.001 … 100.0
steps = pd.DataFrame({"distance²": (kitten - keys).square().sum(1)}, index=names)
steps["score a"] = -steps["distance²"] / 2
steps["a / T"] = steps["score a"] / T
steps["exp(a / T)"] = [math.exp(score) for score in steps["a / T"]]
steps["weight α"] = steps["exp(a / T)"] / steps["exp(a / T)"].sum()
steps["α × years"] = steps["weight α"] * values.numpy()
steps.loc["sum"] = steps[["exp(a / T)", "weight α", "α × years"]].sum()
steps.map(lambda x: f"{x:.4g}").replace("nan", "")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
each = steps.iloc[:-1]
cu.Drawing(
    """
    q      k      v
    score  score  .
    S      S      .
    norm   norm   .
    A      A      .
    mix    mix    mix
    .      out    .
    """,
    nodes={
        "q": cu.Cells(
            1, 2, "query", shape="(1, 2)", color="query",
            values=[[f"{x:.2g}" for x in kitten[0].tolist()]],
        ),
        "k": cu.Cells(
            names, 2, "keys", shape=f"({len(names)}, 2)", color="key",
            values=[[f"{x:.2g}" for x in key] for key in keys.tolist()],
        ),
        "v": cu.Cells(
            names, 1, "values", shape=f"({len(names)},)", color="value",
            values=[[f"{v:g}"] for v in values.tolist()],
        ),
        "score": cu.Box("score: −½ distance², for each key"),
        "S": cu.Cells(
            1, len(names), "scores", shape=f"(1, {len(names)})",
            values=[[f"{a:.3f}" for a in each["score a"]]],
        ),
        "norm": cu.Box("scale and normalize: softmax(a / T)"),
        "A": cu.Cells(
            1, len(names), "weights", shape=f"(1, {len(names)})", color="key",
            values=[[f"{w:.3f}" for w in each["weight α"]]],
        ),
        "mix": cu.Box("mix: weights × values, summed"),
        "out": cu.Cells(
            1, 1, "answer", shape="(1,)", color="value",
            values=[[f"{steps.loc['sum', 'α × years']:.2f}"]],
        ),
    },
    arrows=["q, k -> score -> S -> norm -> A -> mix -> out", "v -> mix"],
    alt="Attention as a flow of data. The query and the keys give scores; divided by the temperature, "
    "a softmax turns these into weights; the weights mix the values to the answer.",
    gap=(26, 22),
)  # fmt: skip

# %% [markdown]
# The exponentials sum to 1.77, and the cat has 0.905 of it: a weight of 0.511.
# The answer is 13.76 years.
#
# In code, for many queries at once.
# Each line has the name of its step, and these names return in later chapters: *score, scale, normalize, mix*.
# Below the code our `softmax` is compared with PyTorch's: the same weights, and the same gradients (slopes), from which later chapters learn.


# %%
def closeness(queries, keys):
    """−½‖q − k‖²: (queries, features), (keys, features) → (queries, keys)."""
    apart = queries[:, None, :] - keys[None, :, :]  # (queries, keys, features)
    return -apart.square().sum(dim=-1) / 2


def softmax(scores, dim=-1):
    positive = scores.exp()
    return positive / positive.sum(dim=dim, keepdim=True)


def look_up(queries, keys, values, T):
    """(queries, features), (keys, features), (keys,) → (queries,)."""
    scores = closeness(queries, keys)  # score
    scores = scores / T  # scale
    weights = torch.softmax(scores, dim=-1)  # normalize
    return weights @ values  # mix


cu.equal(softmax, torch.softmax, closeness(kitten, keys), dim=-1)
print(f"kitten, T = {T:g}: {look_up(kitten, keys, values, T).item():.2f} years")

# %% [markdown]
# ### Only differences count, in units of the temperature
#
# Divide two weights, and the sum cancels:
#
# $$\frac{\alpha_i}{\alpha_j} = e^{(a_i-a_j)/T} .$$
#
# The cat leads the dog by $-0.010-(-0.025) = 0.015$.
# At $T=0.1$ this is a factor of $e^{0.15} = 1.16$.
# And at $T=0.01$?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At T = 0.01, how many times the weight of the dog has the cat?",
    (1, 20),
    answer=4.5,
    wrong={
        "less": "The lead is 0.015. How many temperatures of 0.01 is that?",
        "more": "Divide the lead by the temperature first, then take the exponential.",
        11.6: "The lead in units of T grows ten times; the factor does not. It is the exponential of the lead.",
    },
    why="0.015 / 0.01 = 1.5, and e to the 1.5 is 4.48.",
)

# %%
copies = 2  # try 1 … 100
raw = closeness(kitten, keys)[0]
best = raw.argmax()
changes = {f"T = {t:g}": raw / t for t in (0.001, 0.01, 0.1, 1.0, 100.0)}
changes["5 more on each a / T, T = 0.1"] = raw / 0.1 + 5
weights_of = torch.stack(list(changes.values())).softmax(dim=-1)  # (changes, keys)
by_change = pd.DataFrame(weights_of.tolist(), index=list(changes), columns=names)
by_change["answer"] = (weights_of @ values).tolist()
longer = torch.cat([table, table[best].repeat(copies - 1, 1)])  # the best, copied
for change, t in (f"best stored {copies} times", longer), ("reversed", table.flip(0)):
    again = look_up(kitten, t[:, :2], t[:, 2], 0.1).item()
    by_change.loc[f"{change}, T = 0.1", "answer"] = again
by_change.round(2).astype(object).fillna("")

# %% [markdown]
# From top to bottom: as $T$ grows, the answer goes from the nearest value to the mean of all.
# At $T = 0.01$ the weights are 0.82 and 0.18, a factor of 4.5.
#
# Then three changes at $T=0.1$.
# Five more on each $a/T$ changes nothing: every exponential gets the factor $e^5$, and so does their sum.
# This is **shift invariance**.
# If the cat is stored twice, the answer moves toward its 15, to 14.18.
# In the last row the table was turned upside down, and the answer is 13.76 as before.
# **Copies count, order does not**: to this look-up a table is a bag of pairs.
#
# ### Exercise 1 · Five weights without a computer
#
# *predict · 5 minutes*
#
# Three keys have the scores $0, \ln 2, \ln 5$, and $T = 1$.
# So the exponentials are 1, 2 and 5.
# What is the weight of the **first** key,
#
# (a) as it stands · (b) if $\ln 2$ is added to its own score · (c) if all three scores are doubled · (d) if a fourth key comes with the score $\ln 8$ · (e) if $T$ becomes huge, with the three keys?
# Two decimals are enough.


# %% tags=["exercise", "predict"]
def predicted_weights():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1 / 2, 0.25, 0.3, 0.4, 0.5]


# %% tags=["check"]
cu.checks.predicted_weights(predicted_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_weights_solution():
    """1/8; 2/(2 + 2 + 5); 1/(1 + 4 + 25); 1/(8 + 8); all equal."""
    return [1 / 8, 2 / 9, 1 / 30, 1 / 16, 1 / 3]


cu.checks.predicted_weights(predicted_weights_solution)

# %% [markdown]
# ### Rows sum to 1, columns need not
#
# With several queries the weights are a matrix: a row for each query, a column for each key.
# Now all animals ask, too, with their own keys.

# %%
T_middle = 0.1  # try 0.01 … 1.0
askers = torch.cat([keys, torch.tensor(list(strangers.values()))])  # (queries, 2)
maps = [(closeness(askers, keys) / t).softmax(dim=-1) for t in (0.001, T_middle, 10.0)]
for kind, axis in (("row", 1), ("column", 0)):
    sums = [f"{one:.2f}" for one in maps[1].sum(axis)]
    print(f"{kind} sums at T = {T_middle:g}:", *sums)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack(maps), queries=[*names, *strangers], keys=names,
    annotate=len(names) < 9, titles=["T = 0.001", f"T = {T_middle:g}", "T = 10"],
    alt="Three matrices of weights. At T = 0.001 the animals make an identity "
    "matrix; warmer, cat and dog share their weight; at T = 10 all cells are alike.",
)  # fmt: skip

# %% [markdown]
# On the left the animals make an **identity matrix**, as a dictionary would: each finds exactly itself.
# In the middle cat and dog share their weight; on the right hardly a difference is left.
# Each row sums to 1, because each query hands out one unit of weight.
# A column sums to whatever its key gets from all queries: in the middle from 0.97 for the elephant to 1.95 for the cat.
#
# ### Exercise 2 · A softmax for large scores
#
# *build · 8 minutes*
#
# Our `softmax` looks like the formula, and fails for large scores: for 1000 and 999 it gives NaN, because $e^{1000}$ is more than the largest number that a tensor can hold (try it).
# Shift invariance repairs it: which shift makes every exponential of a row at most 1, and one of them exactly 1?
#
# Build it without PyTorch's softmax, for any number of axes, and do not write into the scores.
# A score of $-\infty$ (`-math.inf`) says "this key does not exist": its weight is $e^{-\infty}=0$.
# (Rows without any key come in [Masks](04_masks.ipynb).)


# %% tags=["exercise", "build"]
def safe_softmax(scores):
    """Softmax over the last axis, safe for any scores: (…, keys) → (…, keys)."""
    ...


# %% tags=["check"]
cu.checks.safe_softmax(safe_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def safe_softmax_solution(scores):
    """Subtract the largest of each row: this changes no weight, and no exponent is above 0."""
    positive = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return positive / positive.sum(dim=-1, keepdim=True)


cu.checks.safe_softmax(safe_softmax_solution)

# %%
cu.quiz("queries_keys_values", "shifted_scores")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Only differences of a/T count; copies count, order does not; rows sum to 1."):
    factors = ((raw - raw[best]) / 0.1).exp()
    assert torch.allclose(weights_of[2] / weights_of[2, best], factors, atol=1e-4)
    assert torch.allclose(weights_of[5], weights_of[2], atol=1e-5)
    assert copies == 1 or by_change["answer"].iloc[6] != by_change["answer"].iloc[2]
    assert math.isclose(*by_change["answer"].iloc[[2, 7]], rel_tol=1e-4)
    assert (maps[1].sum(1) - 1).abs().max() < 1e-5 < maps[1].sum(0).std()
with cu.guard(
    "The numbers of the text are those of the table as it stood, at T = 0.1 and T = 0.01.",
    given=(kitten_size, kitten_home, T, copies) == (0.2, 0.9, 0.1, 2),
):
    assert abs(steps.loc["sum", "α × years"] - 13.76) < 0.01
    assert 4.4 < by_change["cat"].iloc[1] / by_change["dog"].iloc[1] < 4.6
    assert by_change["answer"].round(2).tolist()[4:] == [24.35, 13.76, 14.18, 13.76]
    assert torch.allclose(maps[0][: len(names)], torch.eye(len(names)), atol=0.01)

# %% [markdown]
# ## Four look-ups, one formula
#
# *Section 3 of 5*
#
# *Answer = sum of weight times value* covers more than softmax.
# Four ways to look something up, known long before attention, differ in the weights alone:
#
# | look-up | weights |
# |---|---|
# | **exact**, as in a dictionary | 1 for the key that equals the query (equal shares, if it is stored more than once), else 0 |
# | **nearest** | 1 for the key with the best score, else 0 |
# | **top-k**, in statistics the *k nearest neighbors* | $1/k$ for each of the $k$ best scores, else 0 |
# | **average** | $1/m$ for each of the $m$ keys, whatever the query |


# %%
def share(chosen):
    """True where a key is chosen → equal shares of 1 in each row, or zeros."""
    return chosen.float() / chosen.sum(dim=-1, keepdim=True).clamp(min=1)


def top(scores, k):
    """Equal shares for the k best scores of each row."""
    kth = scores.topk(min(k, scores.shape[-1]), dim=-1).values[..., -1:]
    return share(scores >= kth)


# %%
k = 2  # try 1 … 5
T_soft = 0.03  # try 0.001 … 1.0
look_ups = {
    f"softmax, T = {T_soft:g}": lambda scores: (scores / T_soft).softmax(dim=-1),
    "exact": lambda scores: share(scores == 0),
    "nearest": lambda scores: top(scores, 1),
    f"top-{k}": lambda scores: top(scores, k),
    "average": lambda scores: torch.full_like(scores, 1 / len(names)),
}
ways = torch.stack([weigh(raw) for weigh in look_ups.values()])  # (look-ups, keys)
found = pd.DataFrame(ways.tolist(), index=list(look_ups), columns=names)
found["kitten"] = (ways @ values).tolist()
own = closeness(keys, keys)[0]  # the first animal asks
found[f"{names[0]} (stored)"] = [(w(own) @ values).item() for w in look_ups.values()]
found.round(2)

# %% [markdown]
# The last two columns are answers, for the kitten and for the mouse, which is in the table.
# Two by hand: top-2 gives the kitten $(15+12)/2 = 13.5$, and the average is $122/5 = 24.4$.
# The exact look-up finds no kitten, and the formula says 0.
# That is no answer: no animal lives 0 years.
# Only the weights, all of them zero, say "not found".
# The mouse shows what top-2 costs: 2 is stored, and the answer is 8.5, the mean of mouse and cat.
# Cold softmax, nearest and exact give back what is stored.
#
# Which of these can a network learn with?
# Let the query walk in a straight line from the kitten to the last animal, the elephant, in 400 small steps.
# On how many of them does the answer not change at all?

# %%
stride = torch.linspace(0, 1, 401)[:, None]
path = kitten + stride * (keys[-1] - kitten)  # (queries, features)
scored = closeness(path, keys)
walked = {name: weigh(scored) @ values for name, weigh in look_ups.items()}
still = {name: (way.diff() == 0).float().mean().item() for name, way in walked.items()}
pd.DataFrame(still, index=["share of steps without any change"]).round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
grid = torch.cartesian_prod(torch.linspace(-0.1, 1.1, 81), torch.linspace(-0.1, 1.1, 81))
fig, (left, right) = cu.subplots(
    1, 2, width=9, height=3.6, width_ratios=[1.1, 1],
    alt="Left: the answer along the walk. Softmax is a smooth rising curve; nearest and top-k are "
    "staircases beside it; average is a flat line. Right: the softmax answer at each point of the plane "
    "in shades, with lines of equal answers, and the walk as a dashed line.",
)  # fmt: skip
looks = {"nearest": ("wrong", "--"), f"top-{k}": ("plum", "-."), "average": ("line", ":")}
soft = list(walked)[0]
left.plot(stride[:, 0], walked[soft], color=cu.COLORS["key"], linewidth=2.6, label=soft)
for name, (color, style) in looks.items():
    left.plot(stride[:, 0], walked[name], style, color=cu.COLORS[color], linewidth=1.4, label=name)
left.set(xlabel=f"from kitten (0) to {names[-1]} (1)", ylabel="answer (years)")
left.legend(loc="upper left")
answers = look_up(grid, keys, values, T_soft).reshape(81, 81).T
image = right.imshow(
    answers, origin="lower", aspect="auto", interpolation="bilinear",
    extent=(-0.1, 1.1, -0.1, 1.1), cmap="heat",
    vmin=values.min().item(), vmax=max(values.max(), values.min() + 1).item(),
)  # fmt: skip
right.contour(answers, 8, extent=(-0.1, 1.1, -0.1, 1.1), colors="0.45", linewidths=0.5)
right.plot(*path.T, color="black", linewidth=1, linestyle="--")
right.plot(*keys.T, "o", color=cu.COLORS["key"], markersize=5)
for name, place in zip(names, keys.tolist(), strict=True):
    look = {
        "fontsize": 9,
        "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.7},
    }
    side = ("right", (-5, 6)) if place[0] > 0.85 else ("left", (5, 6))
    right.annotate(name, place, side[1], textcoords="offset points", ha=side[0], **look)
right.plot(*kitten[0], "X", color="black", markersize=8)
right.annotate(
    "kitten", kitten[0].tolist(), (0, 8), textcoords="offset points", ha="center", **look
)
right.set(xlabel="size", ylabel="home", title=soft, xlim=(-0.1, 1.1), ylim=(-0.1, 1.1))
fig.colorbar(image, ax=right, label="answer (years)")
fig

# %% [markdown]
# *Nearest* and *top-2* are staircases: on 99.5 % of the steps nothing changes, and on two of them the answer jumps.
# *Exact* changes only at the last step, where it finds the elephant; *average* never.
# A network learns by small steps along slopes (gradients).
# Which way must the query go for an answer of 20 years?
# A stair does not tell: a small step changes nothing.
# The softmax changes at every step of this walk, and says "this way".
# (Set `T_soft` to 0.001, and it becomes a stair, too; the further page says why.)
# On the right every point of the plane has an answer; the thin lines join equal ones.

# %%
cu.quiz("queries_keys_values", "small_move")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Hard look-ups are flat but for a few jumps; softmax changes at every step.",
    given=T_soft == 0.03,
):
    assert still[soft] == 0
    assert min(share for name, share in still.items() if name != soft) > 0.98
with cu.guard(
    "The numbers of the text are those of the table as it stood, with k = 2.",
    given=(kitten_size, kitten_home, k, T_soft) == (0.2, 0.9, 2, 0.03),
):
    assert found["kitten"].round(1).tolist()[1:] == [0, 15, 13.5, 24.4]
    assert abs(found.iloc[3, -1] - 8.5) < 0.01 and found.iloc[:3, -1].round(1).eq(2).all()
    assert [round(400 * (1 - still[name])) for name in list(still)[1:]] == [1, 2, 2, 0]

# %% [markdown]
# ## What an average cannot leave
#
# *Section 4 of 5*
#
# Where can an answer lie at all?
# Take three values with two coordinates, so that we can draw them, and four kinds of weights:

# %%
corners = torch.tensor([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])  # three values
mixes = torch.tensor([[2.0, 1.0, 1.0], [0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [1 / 3] * 3])
kinds = ["nonnegative", "and sum 1: convex", "one-hot", "uniform"]
mixed = pd.DataFrame(mixes, index=kinds, columns=["(3, 1)", "(1, 2)", "(2, 3)"])
mixed[["Σ first", "Σ second"]] = (mixes @ corners).tolist()
many = look_up(3 * torch.randn(10_000, 2), keys, values, T_soft)  # queries near and far
print(f"10,000 answers about animals: from {many.min():.1f} to {many.max():.1f} years")
mixed.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
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
# **Nonnegative** weights keep the sum in the gray wedge, the *convex cone* of the values: it may be long, as $(9, 7)$ is, but it cannot point elsewhere.
# If they also **sum to 1**, as those of attention do, the sum stays in the dashed triangle, the *convex hull* ([convex weights](C_glossary.ipynb#convex-weights)).
# **One-hot** weights give a corner, a stored value itself, and **uniform** weights the center, $(2, 2)$; the temperature leads from one to the other.
#
# For numbers the hull is an interval: 10,000 queries, most of them far outside the table, all get answers from 2 to 65 years.
# Attention interpolates.
# It cannot extrapolate, and it cannot add up.
#
# ### Exercise 3 · A key that is never the best
#
# *open · 5 minutes*
#
# Many networks take the product $q\cdot k = q_1k_1+q_2k_2$ as the score instead of our closeness.
# Place four keys in the plane so that one of them *never* has the best score alone, whatever the query.
# Can you do this with closeness, too?
# Why not?
# (Draw first.
# A short key between two long ones is not enough: what does $q=(-1,-1)$ say?
# Then try yours in a new cell, with a thousand random queries.)

# %%
cu.quiz("queries_keys_values", "impossible_answer")

# %% [markdown]
# ## What goes wrong
#
# *Section 5 of 5*
#
# **There is always an answer.**
# Ask the animals for a *house*, of size 1 and home 1, at a low temperature.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "No animal is like a house. How large is its largest weight at T = 0.01?",
    ["about 0.2", "about 0.5, shared by dog and horse", "about 0.9, all but one count little"],
    answer="about 0.9, all but one count little",
    wrong={
        "about 0.2": "Only differences of scores count. Which animal is least far away?",
        "about 0.5, shared by dog and horse": "The dog leads the horse by 0.02. How many temperatures of 0.01 is that?",
    },
    why="The dog leads the horse by 0.02, two temperatures: a factor of e² = 7.4, and 7.4 / 8.4 = 0.88. "
    "The others are far behind. How far away dog and horse are does not matter.",
)

# %%
cold = 0.01  # try 0.001 … 0.1
two = torch.cat([kitten, torch.tensor([[1.0, 1.0]])])  # kitten and house
sure = (closeness(two, keys) / cold).softmax(dim=-1)
always = pd.DataFrame(sure.tolist(), index=["kitten", "house"], columns=names)
always["answer"] = (sure @ values).tolist()
always.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
terms = (closeness(two, keys) / cold).exp()
term_of_nothing = math.exp(-(0.3**2) / 2 / cold)  # it only stands below the line
below = terms.sum(dim=1, keepdim=True) + term_of_nothing
honest = pd.DataFrame((terms / below).tolist(), index=["kitten", "house"], columns=names)
honest["nothing"] = (term_of_nothing / below)[:, 0].tolist()
honest["answer"] = (terms / below @ values).tolist()
honest.round(2)

# %% [markdown]
# A house "lives" for 14 years, and its weights look surer than those of the kitten.
# A dictionary would have said *not found*; a softmax cannot, because its weights sum to 1: an attention that has nothing to look at still has to put its weight somewhere.
#
# One remedy is one more entry, "nothing", with a fixed score and the value 0.
# The second table has it, with the score of a key at a distance of 0.3: $a = -\tfrac12\cdot 0.3^2 = -0.045$.
# At this low temperature keys further away count for little: all but a trace of the house's weight is on "nothing".
# The kitten loses 0.02 of its weight.
# (When it is warmer, a crowd of far keys outvotes "nothing": try `cold = 0.1`.)
#
# ### Exercise 4 · An answer of "nothing"
#
# *build · 8 minutes*
#
# Write attention from scores over $m$ stored pairs and one extra pair of score `nothing` and value 0, without storing that pair among the values:
#
# $$\frac{\sum_i e^{a_i}\,v_i}{e^{\texttt{nothing}}+\sum_j e^{a_j}} .$$
#
# It has to survive scores of ±1000.


# %% tags=["exercise", "build"]
def attend_or_nothing(scores, values, nothing):
    """With one more pair: (…, queries, m), (…, m, d) → (…, queries, d)."""
    ...  # scores 0, 0, 0, values 4, 8, 12 and nothing = 0 give 6


# %% tags=["check"]
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

# %% [markdown]
# ### Exercise 5 · Find the bug
#
# *bug · 5 minutes*
#
# A colleague has split the look-up into two functions.
# There is no error, and all shapes fit.
# Yet the answer for the kitten hardly depends on the temperature, and never comes near 15.
# What is the largest weight that `attend` can give to one of five keys here?
# Find the mistake, and write `fixed_look_up`.


# %%
def attend(scores, values):
    return scores.softmax(dim=-1) @ values


def buggy_look_up(queries, keys, values, T):
    weights = (closeness(queries, keys) / T).softmax(dim=-1)
    return attend(weights, values)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
compared = {
    f"T = {t:g}": [f(kitten, keys, values, t).item() for f in (look_up, buggy_look_up)]
    for t in (10.0, 1.0, 0.1, 0.01, 0.001)
}
pd.DataFrame(compared, index=["look_up", "buggy_look_up"]).round(2)


# %% tags=["exercise", "bug"]
def fixed_look_up(queries, keys, values, T):
    """(queries, features), (keys, features), (keys,) → (queries,)."""
    ...


# %% tags=["check"]
cu.checks.fixed_look_up(fixed_look_up)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_look_up_solution(queries, keys, values, T):
    """The weights went through a second softmax: numbers from 0 to 1 give at most e/(e + 4) = 0.40."""
    apart = queries[:, None, :] - keys[None, :, :]
    scores = -apart.square().sum(dim=-1) / 2
    return (scores / T).softmax(dim=-1) @ values


cu.checks.fixed_look_up(fixed_look_up_solution)

# %%
cu.quiz("queries_keys_values", "half_nothing")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A softmax always answers; nothing gets more of what is further from every key."):
    assert (sure.sum(1) - 1).abs().max() < 1e-5
    nearest = closeness(two, keys).max(dim=1).values
    assert (nearest[0] > nearest[1]) == (honest["nothing"].iloc[0] < honest["nothing"].iloc[1])
with cu.guard(
    "The numbers of the text are those of the table as it stood, at T = 0.01.",
    given=(kitten_size, kitten_home, cold) == (0.2, 0.9, 0.01),
):
    assert sure[1].max() > sure[0].max() and abs(sure[1].max() - 0.88) < 0.01
    assert 0.015 < honest["nothing"].iloc[0] < 0.025 and honest["nothing"].iloc[1] > 0.999
    assert min(wrong for _, wrong in compared.values()) > 18  # never near 15
with cu.guard("Convex weights stay within the values."):
    assert values.min() - 1e-3 <= many.min() and many.max() <= values.max() + 1e-3
    assert torch.allclose((mixes @ corners)[:2], torch.tensor([[9.0, 7.0], [2.25, 1.75]]))

# %% [markdown]
# ## Take-aways
#
# - Attention is a weighted average of values.
#   Query and keys give scores, a softmax makes weights of them, the weights mix the values.
# - Only differences of scores count, in units of the temperature: from the nearest entry to the mean of all.
# - Exact, nearest, top-k and average look-up are the same formula with other weights.
#   They have no slopes to learn from; softmax has.
# - The answer stays in the hull of the values.
#   There always is one, so that "nothing" needs an entry of its own; and copies count.
#
# Next: [Kernel regression](02_kernel_regression.ipynb), the same look-up from noisy data, with a width in the place of the temperature.
# Where softmax overflows, where its gradient vanishes, crowds of keys, hard choices, and who invented what: [Queries, keys and values: softmax under a lens](01_queries_keys_values_further.ipynb).
#
# ## Quiz

# %%
cu.quiz("queries_keys_values")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. & Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   The weighted average, in a translator.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2 describes attention by queries, keys and values.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.1 asks a database, too.
