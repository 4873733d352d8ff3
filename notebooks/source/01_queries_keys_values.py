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
# A table knows how long a cat lives and how long a dog lives.
# You ask for a kitten: drag the cross.
# Then choose another *look-up*, and press *Walk there*: which animal would live 20 years?
# *Softmax* finds its way, and *nearest* does not move.
# This is why attention, which is the first of the two, can be learned.

# %%
import math

import pandas as pd
import torch
import torch.nn.functional as F
from torch.autograd import grad

import course_utils as cu

cu.seed_everything(0)

# %% tags=["opening"]
animals = {  # name: (size, home, years); add some, and run all cells again
    "mouse": (0.1, 0.1, 2),
    "cat": (0.3, 0.8, 15),
    "dog": (0.4, 1.0, 12),
    "horse": (0.8, 0.4, 28),
    "elephant": (1.0, 0.0, 65),
}
kitten_size = 0.2  # try 0.0 … 1.0
kitten_home = 0.9  # try 0.0 … 1.0
T = 0.1  # try 0.001 … 100.0
strangers = {"kitten": (kitten_size, kitten_home), "farmer": (0.6, 0.8)}

names = list(animals)
table = torch.tensor(list(animals.values()), dtype=torch.float32)  # (keys, 3)
keys, values = table[:, :2], table[:, 2]  # (keys, features), (keys,)
kitten = torch.tensor([[kitten_size, kitten_home]])  # one query: (1, features)
cu.live.look_up(animals, strangers)

# %% [markdown]
# After this chapter you can
#
# - compute an answer of attention with a pencil: scores, softmax, weighted average;
# - write exact, nearest, top-k and average look-up as weights in one formula, and say what each can learn;
# - say what a weighted average can never answer, and give it a way to answer "nothing".
#
# It needs [Start here](00_start_here.ipynb), and tensors, shapes and broadcasting as in [PyTorch in an hour](B_pytorch.ipynb).
#
# ## Ask for a kitten
#
# A Python dictionary answers *cat* with 15 and *kitten* with an error.
# But the kitten's two numbers are near those of the cat, and not far from those of the dog.
# Three words for what we have:
#
# - a **key** is what an entry can be found by: here its size and home;
# - a **value** is what an entry has to tell: here its years;
# - a **query** is what we ask with.
#   It has the form of a key, and need not be one of them.
#
# The look-up gives each entry a **weight**, shown as a disk.
# The weights are not negative and sum to 1, and they are larger for keys that are nearer to the query.
# The answer is the sum of *weight times value*: a weighted average.
# Entries with large weights are those that the look-up *pays attention* to.
# Hence the name **attention**, and [attention weights](C_glossary.ipynb#attention-weights).
#
# One number can be turned, the [temperature](C_glossary.ipynb#temperature) $T$.
# The lower it is, the larger is the share of the nearest key.
# At the coldest end all is taken from the cat; at the hottest each entry weighs 0.2, whatever you ask.
#
# ## From scores to weights
#
# To compute this we need a number for *near*, the **score** $a$.
# A simple one is minus half the squared distance: 0 for a perfect match, and more negative the further away.
# For kitten and dog, by hand:
#
# $$a = -\tfrac12\lVert q-k\rVert^2 = -\tfrac12\big((0.2-0.4)^2+(0.9-1.0)^2\big) = -\tfrac12(0.04+0.01) = -0.025 .$$
#
# Scores can be any numbers; weights must not be negative, and sum to 1.
# So make them positive first, by the exponential function, and then divide by their sum: the **[softmax](C_glossary.ipynb#softmax)** of *Start here*.
# New is the temperature, by which the scores are divided before:
#
# $$\alpha_i = \frac{e^{a_i/T}}{\sum_j e^{a_j/T}},\qquad \text{answer} = \sum_i \alpha_i\, v_i .$$
#
# All of it in numbers, a row for each key, and then as a flow of data.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
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
    "At T = 0.01, the weight of the cat is how many times the weight of the dog?",
    (1, 20),
    answer=4.5,
    wrong={
        "less": "The lead is 0.015. How many temperatures of 0.01 is that?",
        "more": "Divide the lead by the temperature first, then take the exponential.",
        11.6: "The lead in units of T grows ten times; the factor does not. It is the exponential of the lead.",
    },
    why="0.015 / 0.01 = 1.5, and e to the 1.5 is 4.48.",
    shows={"size": 0.2, "home": 0.9, "temperature": 3, "kind": "softmax"},
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
raw = closeness(kitten, keys)[0]
changes = {f"T = {t:g}": raw / t for t in (0.001, 0.01, 0.1, 1.0, 100.0)}
changes["5 more on each a / T, T = 0.1"] = raw / 0.1 + 5
weights_of = torch.stack(list(changes.values())).softmax(dim=-1)  # (changes, keys)
by_change = pd.DataFrame(weights_of.tolist(), index=list(changes), columns=names)
by_change["answer"] = (weights_of @ values).tolist()
best = raw.argmax().item()
twice = torch.cat([table, table[[best]]])
for change, t in ("best stored twice", twice), ("table upside down", table.flip(0)):
    again = look_up(kitten, t[:, :2], t[:, 2], 0.1).item()
    by_change.loc[f"{change}, T = 0.1", "answer"] = again
by_change.round(2).astype(object).fillna("")

# %% [markdown]
# As $T$ grows, the answer goes from the nearest value to the mean of all.
# Five more on each $a/T$ changes nothing: every exponential gets the factor $e^5$, and so does their sum.
# This is **shift invariance**.
# If the cat is stored twice, the answer moves toward it; if the table is turned upside down, nothing changes.
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


# %% tags=["check"] jupyter={"source_hidden": true}
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

# %% tags=["hide-input"] jupyter={"source_hidden": true}
askers = torch.cat([keys, torch.tensor(list(strangers.values()))])  # (queries, 2)
maps = torch.stack([(closeness(askers, keys) / t).softmax(dim=-1) for t in (0.001, 0.1, 10.0)])
cu.show_heatmaps(
    maps, queries=[*names, *strangers], keys=names,
    annotate=len(names) < 9, titles=["T = 0.001", "T = 0.1", "T = 10"],
    alt="Three matrices of weights. At T = 0.001 the animals make an identity "
    "matrix; warmer, cat and dog share their weight; at T = 10 all cells are alike.",
)  # fmt: skip

# %% [markdown]
# On the left the animals, asking with their own keys, make an **identity matrix**, as a dictionary would: each finds exactly itself.
# In the middle cat and dog share their weight; on the right hardly a difference is left.
# Each row sums to 1; a column sums to whatever its key gets from all queries.
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


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.safe_softmax(safe_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def safe_softmax_solution(scores):
    """Subtract the largest of each row: this changes no weight, and no exponent is above 0."""
    positive = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return positive / positive.sum(dim=-1, keepdim=True)


cu.checks.safe_softmax(safe_softmax_solution)

# %% [markdown]
# ## Six look-ups, one formula
#
# *Answer = sum of weight times value* covers more than softmax.
# Four ways to look something up, known long before attention, differ in the weights alone:
#
# | look-up | weights |
# |---|---|
# | **exact**, as in a dictionary | 1 for the key that equals the query in every digit (equal shares, if it is stored more than once), else 0 |
# | **nearest** | 1 for the key with the best score, else 0 |
# | **top-k**, in statistics the *k nearest neighbors* | $1/k$ for each of the $k$ best scores, else 0 |
# | **average** | $1/m$ for each of the $m$ keys, whatever the query |
#
# Between these and softmax stands **sparsemax** (Martins and Astudillo, 2016): draw a line under the scores $a/T$; what stands above it is the weight.
# The line is as high as makes the sum 1: of 1, 0.6 and 0, a line at 0.3 leaves 0.7, 0.3 and *exactly* 0.


# %%
def share(chosen):
    """True where a key is chosen → equal shares of 1 in each row, or zeros."""
    return chosen.float() / chosen.sum(dim=-1, keepdim=True).clamp(min=1)


def top(scores, k):
    """Equal shares for the k best scores of each row."""
    kth = scores.topk(min(k, scores.shape[-1]), dim=-1).values[..., -1:]
    return share(scores >= kth)


def sparsemax(scores):
    """What stands above one line for each row: (…, keys)."""
    best = scores.sort(dim=-1, descending=True).values
    counts = torch.arange(1, scores.shape[-1] + 1)
    lines = (best.cumsum(dim=-1) - 1) / counts  # the line, if the first 1, 2, … count
    last = (best > lines).sum(dim=-1, keepdim=True) - 1
    return (scores - lines.gather(-1, last)).relu()


# %% [markdown]
# Which of them can learn?
# A network learns by small steps along slopes (gradients).
# An answer has slopes of two kinds: for the **values**, and for the **query and the keys**.


# %%
def slopes(weigh, query):
    """The answer, and its slopes for the query and for the values."""
    query, stored = query.clone().requires_grad_(), values.clone().requires_grad_()
    answer = (weigh(closeness(query, keys)) @ stored).sum()
    return answer.item(), *grad(answer, (query, stored), materialize_grads=True)


k = 2  # try 1 … 5
T_soft = 0.1  # try 0.001 … 1.0
look_ups = {
    f"softmax, T = {T_soft:g}": lambda scores: (scores / T_soft).softmax(dim=-1),
    "sparsemax, T = 1": lambda scores: sparsemax(scores / 1.0),
    "exact": lambda scores: share(scores == 0),
    "nearest": lambda scores: top(scores, 1),
    f"top-{k}": lambda scores: top(scores, k),
    "average": lambda scores: torch.full_like(scores, 1 / len(names)),
}
found = pd.DataFrame(columns=["answer", *names, "for size", "for home"])
for name, weigh in look_ups.items():
    answer, for_query, for_values = slopes(weigh, kitten)
    found.loc[name] = [answer, *for_values.tolist(), *for_query[0].tolist()]
found.round(2)

# %% [markdown]
# Under the animals stand the slopes for the values, and they are the weights: one year more for the cat is so much more for the answer.
# All of these look-ups can learn *what to say*, but for *exact*, which finds no kitten.
# The last two columns are the slopes for the query: zero in all rows but those of softmax and sparsemax.
# Only these two learn *where to look*.
#
# Now let the query go against the slope of $\tfrac12(\text{answer}-20)^2$, as the button does:

# %%
wanted = 20.0  # try 12.0 … 28.0
rate = 0.0003  # try 0.0001 … 0.0005
paths = {name: [kitten] for name in look_ups}
for name, path in paths.items():
    for _ in range(300):
        years, slope, _ = slopes(look_ups[name], path[-1])
        path.append(path[-1] - rate * (years - wanted) * slope)

ends = {name: slopes(look_ups[name], path[-1])[0] for name, path in paths.items()}
pd.DataFrame({"at first": found["answer"], "after 300 steps": ends}).round(1).T

# %% tags=["hide-input"] jupyter={"source_hidden": true}
line = kitten + torch.linspace(0, 1, 401)[:, None] * (keys[-1] - kitten)
side = torch.linspace(-0.1, 1.1, 81)
soft, sparse = list(look_ups)[:2]
field = look_ups[soft](closeness(torch.cartesian_prod(side, side), keys)) @ values
fig, (left, right) = cu.subplots(
    1, 2, width=9, height=3.5, width_ratios=[1.1, 1],
    alt="Left: the answer along a straight line from the kitten to the elephant. Softmax and sparsemax are rising "
    "curves; nearest and top-k are staircases; average is flat. Right: the plane with lines of equal answers of the "
    "softmax, and the ways of the query: softmax and sparsemax go to the right, nearest stays at the kitten.",
)  # fmt: skip
looks = {soft: ("key", "-"), sparse: ("query", "-"), "nearest": ("wrong", "--"), f"top-{k}": ("plum", "-."), "average": ("line", ":")}  # fmt: skip
for name, (color, style) in looks.items():
    answers = look_ups[name](closeness(line, keys)) @ values
    left.plot(torch.linspace(0, 1, 401), answers, style, color=cu.COLORS[color], label=name)
left.set(xlabel=f"from kitten (0) to {names[-1]} (1)", ylabel="answer (years)")
left.legend(loc="upper left", fontsize=9)
lines = right.contour(side, side, field.reshape(81, 81).T, 10, colors="0.75", linewidths=0.7)
right.clabel(lines, fontsize=8)
for name in (soft, sparse):
    way = torch.cat(paths[name])
    right.plot(*way.T, color=cu.COLORS[looks[name][0]], linewidth=2.2)
    right.plot(*way[-1], "o", color=cu.COLORS[looks[name][0]])
for name, place in [*zip(names, keys.tolist(), strict=True), ("kitten", kitten[0].tolist())]:
    right.plot(*place, "X" if name == "kitten" else "o", color="black", markersize=6)
    right.annotate(name, place, (0, 7), textcoords="offset points", ha="center", fontsize=9)
right.set(
    xlabel="size", ylabel="home", title="ways of the query", xlim=(-0.1, 1.1), ylim=(-0.1, 1.15)
)
fig

# %% [markdown]
# Softmax arrives, and so does sparsemax; the others stay where they are.
# So does a softmax at $T=0.01$.
# On the left: *nearest* and *top-k* are staircases, and a stair does not say where the next one is.
# Sparsemax has slopes only among the keys that have weight.
# Turn its temperature down to 0.1 in the widget: cat and dog alone have weight, and it never gets above 15.

# %% jupyter={"source_hidden": true}
cu.quiz("queries_keys_values", "which_slope")

# %% [markdown]
# ## A table of words
#
# Keys may have more than two numbers, and values more than one.
# Here the keys are words, each with the 256 numbers by which one of the course's translators knows it, its [embedding](C_glossary.ipynb#embedding).
# It learned them from sentences and their French; nobody told it what a word is.
# A value is three numbers, which say what the word is: a person, a number, or something to do.
# Each word asks all the *others*.

# %%
kinds = {  # the translator knows some 2,000 whole words: add some
    "person": "mother father wife woman girl boy brother sister daughter son",
    "number": "two three five six ten",
    "to do": "eat drink play sleep swim walk run sing",
}
stored = cu.load_model("everyday_fr")
rows = {token: i for i, token in enumerate(stored.vocabularies["tokens"])}
words = [word for each in kinds.values() for word in each.split()]
vectors = stored.state["source_embedding.weight"][[rows[f"{word}␣"] for word in words]]
kind = torch.tensor([i for i, each in enumerate(kinds.values()) for _ in each.split()])
alike = closeness(vectors, vectors).fill_diagonal_(-math.inf)  # not itself
told = (alike / T).softmax(dim=-1) @ F.one_hot(kind).float()  # (words, 3)
hits = told.argmax(dim=-1) == kind
missed = [word for word, hit in zip(words, hits, strict=True) if not hit]
print(f"{hits.sum()} of {len(words)} are right; not {missed}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
flat = vectors - vectors.mean(dim=0)
flat = flat @ torch.linalg.svd(flat, full_matrices=False).Vh[:2].T  # to the two widest directions
corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.87]])
fig, (left, right) = cu.subplots(
    1, 2, width=9, height=4, width_ratios=(1.6, 1),
    alt="Left: the words on a plane, persons, numbers and things to do each on a side of their own. Right: a triangle "
    "with a corner for each kind; the answers lie in it, nearly all near the corner of their kind.",
)  # fmt: skip
colors = [cu.COLORS[name] for name in ("key", "query", "value")]
line = (flat[:, 1].max() - flat[:, 1].min()) / 20  # the height of a word
width = (flat[:, 0].max() - flat[:, 0].min()) / 55  # and of a letter
free = []
for j in flat[:, 1].argsort().tolist():  # words that would cover another stand above it
    (x, y), half = flat[j].tolist(), width * (len(words[j]) + 1) / 2
    while any(abs(x - a) < half + b and abs(y - c) < line for a, b, c in free):
        y += line / 4
    free.append((x, half, y))
    left.text(x, y, words[j], color=colors[kind[j]], ha="center", va="center", fontsize=9)
for word, spot, i in zip(words, told @ corners, kind.tolist(), strict=True):
    right.plot(*spot, "o", color=colors[i], alpha=0.6, markersize=7)
    if told[words.index(word), i] < 0.6:
        right.annotate(word, spot.tolist(), (7, -3), textcoords="offset points", fontsize=9)
left.set(
    xlim=(flat[:, 0].min() - 0.3, flat[:, 0].max() + 0.3),
    ylim=(flat[:, 1].min() - 0.2, flat[:, 1].max() + 0.2),
)
left.set(title="256 numbers, seen from one side", xticks=[], yticks=[])
right.plot(*corners[[0, 1, 2, 0]].T, color="black", linewidth=1.2, linestyle="--", zorder=0)
for name, corner, side in zip(kinds, corners.tolist(), ((0, -15), (0, -15), (0, 7)), strict=True):
    right.annotate(name, corner, side, textcoords="offset points", ha="center")
right.set(title="answers", xlim=(-0.2, 1.2), ylim=(-0.15, 1.05), aspect="equal")
right.axis("off")
fig

# %% [markdown]
# The vectors know the kind of a word: nearly every answer is right, where *person* for all would be right for ten.
#
# Where can an answer lie?
# Weights that are not negative and sum to 1 keep them in the triangle of the values, the *convex hull* ([convex weights](C_glossary.ipynb#convex-weights)); one weight of 1 gives a corner, equal weights the middle.
# For single numbers the hull is an interval: no query of the world gets more than 65 years, or less than 2.
# **Attention interpolates.
# It cannot extrapolate, and it cannot add up.**

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each row of weights sums to 1 and depends only on differences of a/T, and copies of a pair count while its place doesn't."
):
    factors = ((raw - raw[best]) / 0.1).exp()
    assert torch.allclose(weights_of[2] / weights_of[2, best], factors, atol=1e-4)
    assert torch.allclose(weights_of[5], weights_of[2], atol=1e-5)
    assert by_change["answer"].iloc[6] != by_change["answer"].iloc[2]
    assert math.isclose(*by_change["answer"].iloc[[2, 7]], rel_tol=1e-4)
    assert (maps[1].sum(1) - 1).abs().max() < 1e-5 < maps[1].sum(0).std()
with cu.guard(
    "The numbers in the text are those of the table that it begins with, at T = 0.1 and T = 0.01.",
    given=(kitten_size, kitten_home, T) == (0.2, 0.9, 0.1),
):
    assert abs(steps.loc["sum", "α × years"] - 13.76) < 0.01
    assert 4.4 < by_change["cat"].iloc[1] / by_change["dog"].iloc[1] < 4.6
    assert by_change["answer"].round(2).tolist()[4:] == [24.35, 13.76, 14.18, 13.76]
    assert torch.allclose(maps[0][: len(names)], torch.eye(len(names)), atol=0.01)
with cu.guard(
    "A hard look-up has slopes for the values but none for the query, so the query stays where it is."
):
    for name, weigh in look_ups.items():
        _, to_query, to_values = slopes(weigh, kitten)
        assert torch.allclose(to_values, weigh(raw), atol=1e-6)
        assert name in (soft, sparse) or to_query.eq(0).all()
        assert name in (soft, sparse) or torch.equal(paths[name][-1], kitten)
with cu.guard("The weights of sparsemax sum to 1, some are exactly 0, and the others have slopes."):
    drawn = torch.randn(6)
    above = sparsemax(drawn)
    inside = (above > 0).float()
    slope_matrix = inside.diag() - inside[:, None] * inside / inside.sum()
    automatic = torch.autograd.functional.jacobian(sparsemax, drawn)
    assert math.isclose(above.sum().item(), 1, abs_tol=1e-5) and above.eq(0).any()
    assert torch.allclose(automatic, slope_matrix, atol=1e-6)
with cu.guard(
    "With softmax and with sparsemax, the query arrives at the wanted answer.",
    given=(kitten_size, kitten_home, T_soft, rate, wanted) == (0.2, 0.9, 0.1, 0.0003, 20),
):
    assert abs(ends[soft] - 20) < 0.1 and abs(ends[sparse] - 20) < 0.1
    assert look_ups[sparse](closeness(paths[sparse][-1], keys)).eq(0).any()
    stuck = kitten
    for _ in range(300):
        reached, push, _ = slopes(lambda scores: sparsemax(scores / 0.1), stuck)
        stuck = stuck - rate * (reached - 20) * push
        assert reached < 15.001
with cu.guard(
    "With a very cold softmax, the query hardly moves.",
    given=(kitten_size, kitten_home) == (0.2, 0.9),
):
    frozen = kitten
    for _ in range(300):
        reached, push, _ = slopes(lambda scores: (scores / 0.01).softmax(dim=-1), frozen)
        frozen = frozen - 0.0003 * (reached - 20) * push
    assert push.norm() > 0 and reached < 15.001
with cu.guard(
    "For more than four words in five, the other words tell what kind of word it is.",
    given=T == 0.1,
):
    assert hits.sum() > 0.8 * len(words) > 1.5 * kind.bincount().max()
with cu.guard("Convex weights never give an answer outside the values."):
    far = look_up(3 * torch.randn(10_000, 2), keys, values, T)  # queries near and far
    assert values.min() - 1e-3 <= far.min() and far.max() <= values.max() + 1e-3
    assert told.min() >= 0 and torch.allclose(told.sum(-1), torch.ones(len(words)))

# %% [markdown]
# ## There is always an answer
#
# Ask the animals for a *house*, of size 1 and home 1, at a low temperature.
# No animal is like a house; how large is its largest weight?
#
# The last four rows are a remedy: the weight of one more entry, "nothing", with the value 0 and a fixed score, here that of a key at a distance of 0.3.

# %%
cold = 0.01  # try 0.001 … 1.0
two = torch.cat([kitten, torch.tensor([[1.0, 1.0]])])  # kitten and house
scores = closeness(two, keys)
sure = (scores / cold).softmax(dim=-1)
always = pd.DataFrame(sure.tolist(), index=["kitten", "house"], columns=names)
always["answer"] = (sure @ values).tolist()
more = F.pad(scores, (0, 1), value=-(0.3**2) / 2)  # (queries, keys and nothing)
for t in (0.01, 0.1, 0.3, 1.0):
    always[f"nothing, T = {t:g}"] = (more / t).softmax(dim=-1)[:, -1].tolist()
always.T.round(2)

# %% [markdown]
# The house's weights look surer than the kitten's: only differences of scores count, and dog and horse are less far away than the rest.
# A dictionary would have said *not found*; a softmax cannot, because its weights sum to 1.
#
# "Nothing" helps while it is cold.
# Warm, a crowd of far keys outvotes it, and it takes weight from the kitten: one fixed score is no remedy at every temperature.
#
# ### Exercise 3 · An answer of "nothing"
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
    "A softmax always gives away all its weight, and the key “nothing” gets more of it if a query is further from every other key."
):
    assert (sure.sum(1) - 1).abs().max() < 1e-5
    nearest = scores.max(dim=1).values
    less = always.iloc[0, -4:] < always.iloc[1, -4:]  # nothing, for the kitten and the house
    assert ((nearest[0] > nearest[1]).item() == less).all()
with cu.guard(
    "At a low temperature “nothing” wins for the house, and at a high one it takes weight from the kitten, too.",
    given=(kitten_size, kitten_home) == (0.2, 0.9),
):
    cold_share, warm_share = always["nothing, T = 0.01"], always["nothing, T = 0.3"]
    assert cold_share["kitten"] < 0.03 and cold_share["house"] > 0.999
    assert warm_share["kitten"] > 0.2 and warm_share["house"] < 0.4
with cu.guard("The look-up is surer about the house than about the kitten.", given=(kitten_size, kitten_home, cold) == (0.2, 0.9, 0.01)):  # fmt: skip
    assert sure[1].max() > sure[0].max() and abs(sure[1].max() - 0.88) < 0.01

# %% [markdown]
# ## Take-aways
#
# - Attention is a weighted average of values.
#   Query and keys give scores, a softmax makes weights of them, the weights mix the values; only differences of scores count, in units of the temperature.
# - Every look-up of this kind has slopes for its values.
#   Softmax (and sparsemax) has slopes for query and keys, too: it can learn where to look.
# - The answer stays in the hull of the values.
#   There always is one, so that "nothing" needs an entry of its own; and copies count.
#
# Next: [Kernel regression](02_kernel_regression.ipynb), the same look-up from noisy data, with a width in the place of the temperature.
# Where softmax overflows, where its slope vanishes, crowds of keys, hard choices, a memory, and who invented what: [Queries, keys and values: softmax under a lens](01_queries_keys_values_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("queries_keys_values")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. & Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   The weighted average, in a translator.
# - Martins, A. & Astudillo, R. (2016).
#   [From softmax to sparsemax](https://arxiv.org/abs/1602.02068).
#   ICML.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2 describes attention by queries, keys and values.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.1 asks a database, too.
