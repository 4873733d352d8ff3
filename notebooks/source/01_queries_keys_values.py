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
#
# Our table knows how long five animals live, but we want to know about a kitten.
# Drag the cross, and the answer follows.
# The nearest animals count most.
# Then turn the question around.
# What size and what home would an animal need to live 20 years?
# Press *Walk there*, choose *nearest* as the look-up, and press it again.

# %% [markdown] tags=["paths"]
# On the path to GPT, to a real model, to images and to translation: [Query, key and value: ask for a kitten](#Query,-key-and-value:-ask-for-a-kitten), [From scores to weights: softmax](#From-scores-to-weights:-softmax), [A table of words: embeddings as keys](#A-table-of-words:-embeddings-as-keys).

# %%
import math
from functools import partial

import pandas as pd
import torch
from torch.autograd import grad

import course_utils as cu
from course_utils.lessons.queries_keys_values import walks

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
askers = {"kitten": (kitten_size, kitten_home), "farmer": (0.6, 0.8)}

names = list(animals)
table = torch.tensor(list(animals.values()), dtype=torch.float32)  # (keys, 3)
keys, values = table[:, :2], table[:, 2]  # (keys, features), (keys,)
kitten = torch.tensor([[kitten_size, kitten_home]])  # one query: (1, features)
cu.live.look_up(animals, askers)

# %% [markdown]
# With *softmax*, at a temperature of 0.1, the query finds its way.
# With *nearest* it doesn't move at all, because after a small step the same animal is still the nearest.
# A network learns by small steps like these, so it can learn where to look only if the query moves.
# Even a softmax can go astray.
# At a temperature of 0.02 it sees only the nearest animals, and from the kitten the query leaves the picture.
# If you want to see this walk step by step, [Hard and soft look-ups](#Hard-and-soft-look-ups:-what-can-be-learned?) draws it.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - compute attention with a pencil, from scores to weights to a weighted average;
# - say why a network can learn where to look from a softmax, and not from the nearest key;
# - say which answers a weighted average can never give;
# - in *There is always an answer* at the end, let a query walk through a table of your own.

# %% [markdown] tags=["needs"]
# You will need [Start here](00_start_here.ipynb), and shapes, broadcasting and gradients as in [PyTorch in an hour](B_pytorch.ipynb).

# %% [markdown]
# ## Query, key and value: ask for a kitten
#
# A Python dictionary answers *cat* with 15, and *kitten* with an error.
# But the kitten's two numbers are near the cat's and not far from the dog's.
# So we can do better, with three words:
#
# - a **key** is what we find an entry by, here the animal's size and its *home*, which says how much of its life it spends in our houses (elephant 0, dog 1);
# - a **value** is what the entry tells us once it is found, here the years that the animal lives;
# - a **query** is what we ask with, in the form of a key.
#
# The look-up gives each entry a **weight**, which the picture shows as a disk.
# Weights aren't negative, they sum to 1, and a key that is nearer to the query has a larger one.
# The answer is the sum of *weight times value*, a weighted average.
# The query *pays attention* to the entries with large weights, and that is why we speak of **attention**, and of [attention weights](C_glossary.ipynb#attention-weights).
#
# We choose one number, the [temperature](C_glossary.ipynb#temperature) $T$.
# Ask for the kitten again in the picture, and move the temperature to both ends.
# At the cold end everything comes from the cat, and at the hot end each animal has the weight 0.2, whatever you ask.
#
# ## From scores to weights: softmax
#
# To compute the weights we first need a number for *near*, the **score** $a$.
# Our score is minus half of the squared distance, which is 0 for a perfect match and negative for all others.
# For the kitten and the dog it is
#
# $$a = -\tfrac12\lVert q-k\rVert^2 = -\tfrac12\big((0.2-0.4)^2+(0.9-1.0)^2\big) = -\tfrac12(0.04+0.01) = -0.025 .$$
#
# How do scores become weights?
# Go through three stages with the arrow keys, and do at least one of the divisions yourself.

# %% jupyter={"source_hidden": true}
cu.stages("queries_keys_values")

# %% [markdown]
# This is the **[softmax](C_glossary.ipynb#softmax)** of *Start here*.
# Before it we divide the scores by the temperature, and after it the weights mix the values:
#
# $$\alpha_i = \frac{e^{a_i/T}}{\sum_j e^{a_j/T}},\qquad \text{answer} = \sum_i \alpha_i\, v_i .$$
#
# Here is all of it for the kitten, as a table and as a flow of data.

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
# Cat and dog have nearly all of the weight, so the answer lies between their 15 and 12 years.
# Here is the look-up for many queries at once, in four steps whose names we will meet again: *score, scale, normalize, mix*.


# %%
def closeness(queries, keys):
    """−½‖q − k‖²: (queries, features), (keys, features) → (queries, keys)."""
    apart = queries[:, None, :] - keys[None, :, :]  # (queries, keys, features)
    return -apart.square().sum(dim=-1) / 2


def look_up(queries, keys, values, T):
    """(queries, features), (keys, features), (keys,) → (queries,)."""
    scores = closeness(queries, keys)  # score
    scores = scores / T  # scale
    weights = torch.softmax(scores, dim=-1)  # normalize
    return weights @ values  # mix


print(f"kitten, T = {T:g}: {look_up(kitten, keys, values, T).item():.2f} years")

# %% [markdown]
# ### Only differences count, in units of the temperature
#
# By how much does the better key win?
# Divide two weights, and the sum of the exponentials cancels:
#
# $$\frac{\alpha_i}{\alpha_j} = e^{(a_i-a_j)/T} .$$
#
# The cat leads the dog by $-0.010-(-0.025) = 0.015$.
# At $T=0.1$ this makes its weight $e^{0.15} = 1.16$ times as large.
# What happens if we cool down to $T=0.01$?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At T = 0.01, the weight of the cat is how many times the weight of the dog?",
    (1, 20),
    answer=4.5,
    wrong={
        "less": "The lead is 0.015. How many temperatures of 0.01 is that?",
        "more": "Divide the lead by the temperature first, then take the exponential.",
        11.6: "The lead in units of T grows ten times, but the factor doesn't. It is the exponential of the lead.",
    },
    why="0.015 / 0.01 = 1.5, and e to the 1.5 is 4.48.",
    shows={"size": 0.2, "home": 0.9, "temperature": 3, "kind": "softmax"},
)

# %% [markdown]
# Three changes put this rule to the test: we add 5 to each $a/T$, store the cat a second time, and turn the table upside down.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
raw = closeness(kitten, keys)[0]
best = raw.argmax().item()
twice, upside_down = torch.cat([table, table[[best]]]), table.flip(0)
changed = {"as it is": (table, 0), "5 more on each a / T": (table, 5), f"{names[best]} stored twice": (twice, 0), "table upside down": (upside_down, 0)}  # fmt: skip
by_change = pd.DataFrame(index=list(changed), columns=[*names, f"{names[best]} again", "answer"])
for change, (rows, more) in changed.items():
    weights = (closeness(kitten, rows[:, :2]) / 0.1 + more).softmax(dim=-1)[0]
    in_order = weights.flip(0) if rows is upside_down else weights
    by_change.loc[change] = [
        *in_order.tolist(),
        *[math.nan] * (len(names) + 1 - len(rows)),
        (weights @ rows[:, 2]).item(),
    ]
by_change.astype(float).round(2).astype(object).fillna("")

# %% [markdown]
# Adding 5 changes nothing, because the formula contains only differences of scores.
# This is the **shift invariance** of the softmax.
# A second cat does change the answer, but a new order of the rows doesn't.
# **Copies count, and order does not.**
# To this look-up, a table is a bag of pairs.
#
# ### Exercise 1 · Five weights without a computer
#
# *predict · 7 minutes*
#
# Three keys have the scores $0, \ln 2, \ln 5$, and $T = 1$, so the exponentials are 1, 2 and 5.
# What is the weight of the **first** key
#
# (a) with these scores · (b) if $\ln 2$ is added to its own score · (c) if all three scores are doubled · (d) if we add a fourth key with the score $\ln 8$ · (e) if $T$ becomes huge, with the three keys?
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
# With several queries the weights become a matrix, with a row for each query and a column for each key.
# Here the queries are the five animals, the kitten and a farmer.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
queries = torch.cat([keys, torch.tensor(list(askers.values()))])  # (queries, 2)
maps = torch.stack([(closeness(queries, keys) / t).softmax(dim=-1) for t in (0.001, 0.1, 10.0)])
cu.show_heatmaps(
    maps, queries=[*names, *askers], keys=names,
    annotate=len(names) < 9, titles=["T = 0.001", "T = 0.1", "T = 10"],
    alt="Three matrices of weights. At T = 0.001 the animals make an identity "
    "matrix; warmer, cat and dog share their weight; at T = 10 all cells are alike.",
)  # fmt: skip

# %% [markdown]
# At the coldest temperature the rows of the animals are an **identity matrix**, because each animal finds exactly itself, as in a dictionary.
# In the middle cat and dog share their weight, and on the right you hardly see a difference.
# Each row sums to 1, whoever asks, so a softmax always has an answer.
# A column sums to whatever its key gets from all queries, in the middle map 1.95 for the cat and 0.97 for the elephant.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each row of weights sums to 1 and depends only on differences of a/T, and copies of a pair count while its place doesn't."
):
    per_key = by_change[names].to_numpy(dtype=float)
    assert abs(per_key[[1, 3]] - per_key[0]).max() < 1e-5
    assert by_change["answer"].iloc[2] != by_change["answer"].iloc[0]
    assert math.isclose(*by_change["answer"].iloc[[0, 3]], rel_tol=1e-4)
    assert (maps[1].sum(1) - 1).abs().max() < 1e-5 < maps[1].sum(0).std()
with cu.guard(
    "The numbers in the text are those of the table that it begins with, at T = 0.1 and T = 0.01.",
    given=(kitten_size, kitten_home, T) == (0.2, 0.9, 0.1),
):
    assert abs(steps.loc["sum", "α × years"] - 13.76) < 0.01
    assert 4.4 < ((raw[1] - raw[2]) / 0.01).exp() < 4.6
    assert torch.allclose(maps[0][: len(names)], torch.eye(len(names)), atol=0.01)
    assert (maps[1].sum(0)[[1, 4]] - torch.tensor([1.95, 0.97])).abs().max() < 0.01

# %% [markdown]
# ## Hard and soft look-ups: what can be learned?
#
# A softmax isn't the only way to choose weights.
# These four look-ups differ only in their weights:
#
# | look-up | weights |
# |---|---|
# | **softmax** | a positive weight for every key, larger for a better score |
# | **nearest** | 1 for the key with the best score, 0 for all others |
# | **top-k**, in statistics the *k nearest neighbors* | $1/k$ for each of the $k$ best scores, 0 for all others |
# | **average** | $1/m$ for each of the $m$ keys, whatever the query is |
#
# One function gives us the last three, because *nearest* is top-1 and the *average* is top-$m$.


# %%
def top(scores, k):
    """1/k for each of the k best scores of a row, 0 for the others."""
    best = scores.topk(k, dim=-1).indices
    return torch.zeros_like(scores).scatter(-1, best, 1 / k)


# %% [markdown]
# Which of these can a network learn?
# A network learns by small steps that follow a [gradient](C_glossary.ipynb#gradient), the slopes of what it computes.
# How much does the answer change if we change a *value* a little, and how much if we change the *query*?
# We ask PyTorch for these two slopes with `grad`, as in [PyTorch in an hour](B_pytorch.ipynb#Gradients).


# %%
def slopes(weigh, query):
    """The answer, and its slopes for the query and for the values."""
    query, stored = query.clone().requires_grad_(), values.clone().requires_grad_()
    answer = (weigh(closeness(query, keys)) @ stored).sum()
    both = grad(answer, (query, stored), materialize_grads=True)  # zeros where no way leads
    return answer.item(), *both


# %% tags=["hide-input"] jupyter={"source_hidden": true}
look_ups = {
    "softmax, T = 0.1": lambda scores: (scores / 0.1).softmax(dim=-1),
    "nearest": lambda scores: top(scores, 1),
    "top-2": lambda scores: top(scores, 2),
    "average": lambda scores: top(scores, len(names)),
}
by_look_up = pd.DataFrame(columns=["answer", *names, "for size", "for home"])
for name, weigh in look_ups.items():
    answer, for_query, for_values = slopes(weigh, kitten)
    by_look_up.loc[name] = [answer, *for_values.tolist(), *for_query[0].tolist()]
by_look_up.round(2)

# %% [markdown]
# The columns named after animals show the slopes for the values.
# These slopes are simply the weights, so all four look-ups can learn *what to say*.
# The last two columns show the slopes for the query, which are 0 for all but the softmax.
# The slopes for the keys are 0 for the same three look-ups, because a score depends on query and key only through their distance.
# **Of these four, only the softmax can learn where to look.**

# %% jupyter={"source_hidden": true}
cu.quiz("queries_keys_values", "which_slope")

# %% [markdown]
# ### Exercise 2 · One step of the walk
#
# *build · 20 minutes*
#
# Now you can write what happens behind the button *Walk there*.
# The loss is $\tfrac12(\text{answer}-\text{wanted})^2$, and each step goes against its slope:
#
# $$\text{query} \leftarrow \text{query} - \text{rate}\cdot\frac{\partial\,\text{loss}}{\partial\,\text{query}} .$$
#
# Your function gets the look-up as a function `ask`, which turns queries into answers.
# Don't call `slopes`, which knows only our table.
# But the first of its four lines shows how PyTorch tracks a query, and the third how PyTorch returns a slope.


# %% tags=["exercise", "build"]
def one_step(ask, query, wanted, rate):
    """The query after one step: (queries, features) → (queries, features)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.one_step(one_step)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def one_step_solution(ask, query, wanted, rate):
    """The loss is one number, so the sum over the queries keeps the slope of each."""
    query = query.clone().requires_grad_()
    loss = (ask(query) - wanted).square().sum() / 2
    (slope,) = torch.autograd.grad(loss, query)
    return query.detach() - rate * slope


cu.checks.one_step(one_step_solution)

# %% [markdown]
# We repeat your step 3,000 times from the kitten, at two temperatures.
# The left picture shows the answers of each look-up on the straight line from the kitten to the elephant.
# The other two show the query's paths, each on the map of its own temperature.

# %%
wanted = 20.0  # try 16.0 … 28.0
rate = 0.0003  # try 0.0001 … 0.0005
step = cu.choose(one_step, walks.one_step)
ways = {}
for t in (0.1, 0.02):
    ask, way = partial(look_up, keys=keys, values=values, T=t), [kitten]
    for _ in range(3000):
        way.append(step(ask, way[-1], wanted, rate))
    ways[t] = torch.cat(way)
    print(f"T = {t:g}: {ask(way[-1]).item():.2f} years at the end")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
line = kitten + torch.linspace(0, 1, 401)[:, None] * (keys[-1] - kitten)
across, up = torch.linspace(-0.42, 1.1, 81), torch.linspace(-0.1, 1.15, 81)
grid = torch.cartesian_prod(across, up)
fig, (left, *on_maps) = cu.subplots(
    1, 3, width=9, height=3.3, width_ratios=[1.2, 1, 1],
    alt="Left: the answer along a straight line from the kitten to the elephant. Softmax is a rising curve; nearest and "
    "top-2 are staircases; average is flat. Then two planes with lines of equal answers and the path of the query. At "
    "T = 0.1 the answers rise to the right, and the path goes down to the right and ends between cat and horse. At "
    "T = 0.02 they form a plateau for each animal, with a ridge between mouse and dog that leads to the left, and the "
    "path follows it, away from all animals.",
)  # fmt: skip
looks = {"softmax, T = 0.1": ("key", "-"), "nearest": ("wrong", "--"), "top-2": ("plum", "-."), "average": ("line", ":")}  # fmt: skip
for name, (color, style) in looks.items():
    answers = look_ups[name](closeness(line, keys)) @ values
    left.plot(torch.linspace(0, 1, 401), answers, style, color=cu.COLORS[color], label=name)
left.set(xlabel=f"from kitten (0) to {names[-1]} (1)", ylabel="answer (years)")
left.legend(loc="upper left", fontsize=8)
for plane, (t, way) in zip(on_maps, ways.items(), strict=True):
    field = look_up(grid, keys, values, t).reshape(81, 81)
    heights = [2.5, 5, 7.5, 10, 12, 13, 14, 14.5, 17, 20, 25, 30, 40, 50, 60]
    levels = plane.contour(across, up, field.T, heights, colors="0.75", linewidths=0.7)
    plane.clabel(levels, fontsize=7, fmt="%g", colors="0.45")
    plane.plot(*way.T, color=cu.COLORS["query"], linewidth=2.2)
    plane.plot(*way[-1], "o", color=cu.COLORS["query"])
    for name, place in [*zip(names, keys.tolist(), strict=True), ("kitten", kitten[0].tolist())]:
        plane.plot(*place, "X" if name == "kitten" else "o", color="black", markersize=5)
        plane.annotate(name, place, (0, 6), textcoords="offset points", ha="center", fontsize=8)
    plane.set(xlabel="size", title=f"the path at T = {t:g}", xlim=(-0.42, 1.1), ylim=(-0.1, 1.15))
on_maps[0].set_ylabel("home")
fig

# %% [markdown]
# On the left, *nearest* and *top-2* are staircases, and a flat step has no slope to the next one.
# The softmax is a ramp, so the query can feel its way up, and at $T=0.1$ it arrives.
#
# At $T=0.02$, on the right, the query has a slope as well.
# But a softmax that cold sees only the nearest animals, and both the dog above and the mouse below lower the cat's 15 years.
# The path up follows a ridge between dog and mouse, which leads to the left, on and on, toward 15 years and never beyond.
# A slope is all that "can be learned" promises.
# It need not lead where we want to go.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Every look-up has slopes for the values, but only the softmax has slopes for the query and for the keys."
):
    for name, weigh in look_ups.items():
        _, to_query, to_values = slopes(weigh, kitten)
        assert torch.allclose(to_values, weigh(raw), atol=1e-6)
        moved, stored_years = keys.clone().requires_grad_(), values.clone().requires_grad_()
        answer = (weigh(closeness(kitten, moved)) @ stored_years).sum()
        (to_keys,) = grad(answer, moved, materialize_grads=True)
        for slope in (to_query, to_keys):
            assert slope.eq(0).all() == (not name.startswith("softmax"))
with cu.guard(
    "At T = 0.1 the query arrives at 20 years, and at T = 0.02 it goes away to the left and stays below 15.",
    given=(kitten_size, kitten_home, rate, wanted) == (0.2, 0.9, 0.0003, 20),
):
    warm, cold_way = (look_up(ways[t], keys, values, t) for t in (0.1, 0.02))
    assert abs(warm[-1] - 20) < 0.1 and cold_way.max() < 15
    assert ways[0.02][-1, 0] < ways[0.02][100, 0] < kitten_size
with cu.guard(
    "The walk of the widget arrives from T = 0.05 to T = 1 and at no other temperature of its slider, and at T = 0.02 it is mouse and dog that lead it away.",
    given=(kitten_size, kitten_home, len(names)) == (0.2, 0.9, 5),
):
    slider = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
    walked = {t: walks.walk(keys, values, kitten[0], t, 20.0)[1] for t in slider}
    assert {t for t in slider if walked[t] == "arrived"} == {0.05, 0.1, 0.2, 0.5, 1.0}
    few = {"without the mouse": [1, 2, 3, 4], "without the dog": [0, 1, 3, 4], "without others": [0, 1, 2]}  # fmt: skip
    by_few = [walks.walk(keys[i], values[i], kitten[0], 0.02, 20.0)[1] for i in few.values()]
    assert by_few == ["arrived", "arrived", "left"]
    beginnings = torch.rand(30, 2, generator=torch.Generator().manual_seed(0))
    arrived = {
        t: sum(walks.walk(keys, values, at, t, 20.0)[1] == "arrived" for at in beginnings)
        for t in (0.1, 0.02)
    }
    assert arrived[0.1] == 30 > arrived[0.02] > 20

# %% [markdown]
# ## A table of words: embeddings as keys
#
# Keys may have many features, and a value may be more than one number.
# Our keys are now words.
# One of the course's translators knows each word by 256 numbers, its [embedding](C_glossary.ipynb#embedding).
# It learned these numbers from sentences and their French translations, and nobody told it what kind of word each is.
# A value says what kind of word it is: three numbers, a 1 for the word's own kind and a 0 for each of the others (a **[one-hot](C_glossary.ipynb#one-hot)** vector).
# Each word asks all the *others*, once with *nearest* and once with a softmax.

# %%
kinds = {  # the translator knows some 2,000 whole words: add some
    "person": "mother father wife woman girl boy brother sister daughter son",
    "number": "two three five six ten",
    "action": "eat drink play sleep swim walk run sing",
}
T_words = 0.3  # try 0.05 … 1.0

# %% tags=["hide-input"] jupyter={"source_hidden": true}
stored = cu.load_model("everyday_fr")
rows = {token: i for i, token in enumerate(stored.vocabularies["tokens"])}
words = [word for each in kinds.values() for word in each.split()]
vectors = stored.state["source_embedding.weight"][[rows[f"{word}␣"] for word in words]]
kind = torch.tensor([i for i, each in enumerate(kinds.values()) for _ in each.split()])
alike = closeness(vectors, vectors).fill_diagonal_(-math.inf)  # not itself
weights = (alike / T_words).softmax(dim=-1)  # (words, words)
answers = weights @ torch.eye(3)[kind]  # (words, 3)
guesses = {"nearest": kind[alike.argmax(dim=-1)], "softmax": answers.argmax(dim=-1)}
for name, guess in guesses.items():
    missed = [words[i] for i in (guess != kind).nonzero()[:, 0]]
    print(f"{name}: {(guess == kind).sum()} of {len(words)} right, missed: {', '.join(missed)}")
pd.Series(weights[words.index("run")], words).nlargest(6).round(2).to_frame("weight for run").T

# %% tags=["hide-input"] jupyter={"source_hidden": true}
flat = vectors - vectors.mean(dim=0)
flat = flat @ torch.linalg.svd(flat, full_matrices=False).Vh[:2].T  # to the two widest directions
corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.87]])
fig, (left, right) = cu.subplots(
    1, 2, width=9, height=4, width_ratios=(1.6, 1),
    alt="Left: the words on a plane, persons, numbers and actions each on a side of their own. Right: a triangle "
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
for word, spot, i in zip(words, answers @ corners, kind.tolist(), strict=True):
    right.plot(*spot, "o", color=colors[i], alpha=0.6, markersize=7)
    if answers[words.index(word), i] < 0.6:
        offset = (7, -3) if i == 2 else (-4, 7) if i == 0 else (-12, -13)
        right.annotate(word, spot.tolist(), offset, textcoords="offset points", fontsize=9)
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
# On the left, words of one kind are close together, so even the nearest word is nearly always of the right kind.
# Both look-ups miss *son*, and the nearest also misses *run*, whose neighbor happens to be *ten*.
# With the softmax about five words share the weight, and the actions together outvote *ten*.
#
# Which answers are possible?
# On the right, all answers are in the triangle of the three values.
# An average can't leave it, because its weights aren't negative and sum to 1, which makes them [convex weights](C_glossary.ipynb#convex-weights).
# The triangle is the *convex hull* of the values.
# For single numbers the hull is an interval, and no query in the world gets more than an elephant's 65 years, or less than a mouse's 2.
# One look-up by itself can only average, and a sum of $m$ values is $m$ times their average.
# **Attention interpolates.
# It cannot extrapolate, and it cannot add up.**

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "For more than four words in five, the other words tell what kind of word it is, and the softmax is right about *run*.",
    given=T_words == 0.3,
):
    hits = guesses["softmax"] == kind
    assert hits.sum() > 0.8 * len(words) > 1.5 * kind.bincount().max()
    run = words.index("run")
    assert hits[run] and guesses["nearest"][run] != kind[run]
    animals = [rows[f"{word}␣"] for word in ("dog", "cat", "horse")]
    four = torch.cat([vectors, stored.state["source_embedding.weight"][animals]])
    among = closeness(four, four).fill_diagonal_(-math.inf)
    of_four = torch.cat([kind, torch.full((3,), 3)])
    by_softmax = ((among / T_words).softmax(dim=-1) @ torch.eye(4)[of_four]).argmax(dim=-1)
    for guess in (by_softmax, of_four[among.argmax(dim=-1)]):
        assert (guess[-3:] != 3).all()
    assert 4 < torch.special.entr(weights).sum(dim=-1).exp().mean() < 6
with cu.guard("Convex weights never give an answer outside the values."):
    far = look_up(3 * torch.randn(10_000, 2), keys, values, T)  # queries near and far
    assert values.min() - 1e-3 <= far.min() and far.max() <= values.max() + 1e-3
    assert answers.min() >= 0 and torch.allclose(answers.sum(-1), torch.ones(len(words)))

# %% [markdown]
# ## There is always an answer
#
# A house isn't like any animal, and yet it can ask.
# With size 1 and home 1 its score is $-0.18$ with the dog, $-0.20$ with the horse, and less with all others.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At T = 0.01, how large is the largest weight that the house gives to an animal?",
    ["nearly 0", "about 0.2", "more than 0.8"],
    answer="more than 0.8",
    wrong={
        "nearly 0": "No animal is like a house. But its five weights sum to 1. Can all of them be near 0?",
        "about 0.2": "Equal scores would give 0.2. By how many temperatures does the dog lead the horse?",
    },
    why="The dog leads the horse by 0.02, which is two temperatures, a factor of e² = 7.4. How low both scores are doesn't count.",
)

# %%
cold = 0.01  # try 0.001 … 1.0
guests = torch.cat([kitten, torch.tensor([[1.0, 1.0]])])  # kitten and house
sure = (closeness(guests, keys) / cold).softmax(dim=-1)
always = pd.DataFrame(sure.tolist(), index=["kitten", "house"], columns=names)
always["answer"] = (sure @ values).tolist()
always.round(2)

# %% [markdown]
# The look-up is about as sure of the house as of the kitten, because only differences of scores count, and not how low both scores are.
# A dictionary would say *not found*, but a softmax can't, since its weights have to sum to 1.
# "Nothing" needs an entry of its own, and the further page [builds one](01_queries_keys_values_further.ipynb#An-answer-of-nothing).
#
# ### Exercise 3 · A table of your own
#
# *build · 8 minutes*
#
# Make a table of something you know, such as dishes, cities or songs, with at least three entries.
# Each has two features between 0 and 1, and a value.
# Then choose a query that isn't in the table, an answer that you want, and a temperature at which the walk arrives.


# %% tags=["exercise", "build"]
def my_table():
    """The table, the query, the wanted answer, and T."""
    return ...  # such as {"soup": (0.2, 0.9, 30), …}, (0.5, 0.8), 45, 0.1


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_table(my_table)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_table_solution():
    """Dishes: how sweet, how warm, and the minutes that they take. Which dish takes 80?"""
    dishes = {
        "salad": (0.1, 0.1, 10),
        "stew": (0.1, 0.9, 120),
        "pancakes": (0.8, 0.8, 30),
        "ice cream": (1.0, 0.0, 45),
    }
    return dishes, (0.6, 0.9), 80.0, 0.1


cu.checks.my_table(my_table_solution)

# %% [markdown]
# The picture from the top of the page now shows your table, or four dishes until your function passes.
# Name the three columns, set the wanted answer, and walk.

# %%
columns = ("sweet", "warm", "minutes")
own, own_query, *_ = cu.choose(my_table, walks.my_table)()
cu.live.look_up(own, {"my query": own_query}, columns)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A softmax always gives away all its weight."):
    assert (sure.sum(1) - 1).abs().max() < 1e-5
with cu.guard(
    "At each temperature from 0.01 to 1 the look-up is about as sure of the house as of the kitten.",
    given=(kitten_size, kitten_home) == (0.2, 0.9),
):
    for t in (0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 1.0):
        of_kitten, of_house = (closeness(guests, keys) / t).softmax(dim=-1).amax(dim=-1)
        assert abs(of_kitten - of_house) < 0.1
    assert sure[1].max() > 0.8 or cold != 0.01

# %% [markdown]
# ## Take-aways
#
# - Attention is a weighted average of values, with softmax weights, for which only differences of scores count.
# - Through a softmax, a network can learn by small steps where to look.
#   Through the nearest key alone it can't: the query in the first picture doesn't move.
# - The answer stays in the hull of the values, and a softmax always gives one.
#
# <details><summary>How sure is this?</summary>
#
# The animals' sizes and homes are made up.
# In the first picture, the walk from the kitten to 20 years arrives at temperatures from 0.05 to 1.
# Other starting points behave differently.
# For *Hard and soft look-ups* we drew 30 at random: at a temperature of 0.1 the walk arrives from all of them, and at 0.02 from most.
#
# We chose the 23 words, and a single word, *run*, doesn't show that a softmax is better than the nearest neighbor.
# With *dog*, *cat* and *horse* as a fourth kind, both look-ups miss all three.
#
# </details>

# %% [markdown] tags=["next"]
# Next comes [Kernel regression](02_kernel_regression.ipynb), the same look-up from noisy data, with a width instead of the temperature.
# On the path to GPT, [Masks](04_masks.ipynb) comes next.
# On the path to a real model, [Scoring functions](03_scoring_functions.ipynb) comes next.
# The further page, [Softmax under a lens](01_queries_keys_values_further.ipynb), shows where softmax overflows and where its slope vanishes, and builds a memory.

# %% [markdown]
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
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2 describes attention by queries, keys and values.
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.1 asks a database, too.
