# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Start here
#
# **When a network translates a sentence, which words does it look at?**
# A small one stands below.
# It has learned from English sentences and their French translations, in about a minute on one core of a CPU, and it answers you.
# You will build and train it yourself in [The Transformer](10_transformer.ipynb); this chapter shows what it looks at, and how to work here.
#
# After this chapter you can
#
# - read a map of attention weights row by row, and say what its colors may hide;
# - say which shape comes out when tensors of two shapes meet, and sum over the right axis;
# - compute the last step of attention, an average with weights;
# - run, change and restart a notebook, do an exercise, and choose your way through the course.
#
# It needs Python, and a little indexing as in NumPy.
# If tensors are new to you, keep the appendix [PyTorch in an hour](B_pytorch.ipynb) open beside this page.
#
# **This page is a notebook**: a column of cells, some with text, some with Python.
# Click the next cell and press **Shift + Enter**.
# It runs, what it shows appears below it, and the next cell is selected.
# Go on like this to the end.
# (If you read this as a web page, the same questions and pictures answer you; only the code does not run.)

# %%
import pandas as pd
import torch

import course_utils as cu
from course_utils.lessons.start_here.shapes import shapes
from course_utils.lessons.start_here.translation import translate
from course_utils.studio.course_map import course_map

cu.seed_everything(0)

# %% [markdown]
# That cell showed nothing: it imports what the chapter needs and sets the seed of the random numbers.
# `cu` is the package that comes with the course: data, pictures, questions, checks, and the parts that the chapters build.
#
# ## Ask a translator
#
# *Section 1 of 6*
#
# For each French word that it writes, the network gives every English word a **[weight](C_glossary.ipynb#attention-weights)**.
# The weights for one French word are never negative, and sum to 1.
# It does so several times at once, in two layers of four **[heads](C_glossary.ipynb#head)** each.
# Below, lines lead from each French word to where it looks, on average over the heads of layer 1; each small picture is one head.
#
# First a question, a **prediction**: choose an answer before you know.
# Nothing is stored.
# The network knows 833 words and signs, and *little* is none of them.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "You ask it to translate “The little girl eats the red apple.” What does it do?",
    ["it says that it does not know little", "it leaves little out", "it writes something else"],
    answer="it writes something else",
    wrong={
        "it says that it does not know little": "It can only write French words. Which of them would say so?",
        "it leaves little out": "It can leave words out: see below what becomes of black. Here it does not.",
    },
    why="An unknown word comes to it as the sign <unk>, the same for all of them. It has to write some French word next, "
    "and has none for “I do not know”. Write the sentence below, and look.",
)

# %%
cu.live.translator("She has a red car.")

# %%
asked = "She has a red car."  # try "She has a red car." | "The cat drinks milk."
told = translate(asked)
heads = told.cross[1]  # of layer 1: (heads, French, English)
means = pd.DataFrame(heads.mean(dim=0), index=told.says, columns=told.source)
four = [f"{told.says[2]}, head {head}" for head in range(4)]
by_head = pd.DataFrame(heads[:, 2], index=four, columns=told.source)
as_numbers = pd.concat([means, by_head])
as_numbers["sum"] = as_numbers.sum(axis=1)
as_numbers.round(2)

# %% [markdown]
# One row for each French word, one column for each English word; this table has the mean of the four heads of layer 1.
# (`<eos>` is the sign for the end of a sentence.)
# *Voiture* is the car and has 0.93 on *car*; *rouge* has 0.87 on *red*: French turns these two words around, and so do the large weights.
# *Une* has 0.22 on *car*.
# This is a mean, as the last four rows say: one head has 0.89 there, and the three others look at *a*.
#
# **Now write a sentence of your own**: it is translated while you write.
# Words that it does not know are named, and known ones of similar spelling offered.
# Then press an English word: no French word may look at it any more.
# Without *car* it says *elle a une* ***actrice*** *rouge*, she has a red actress.
#
# Three that come out wrong: *The little girl eats the red apple.* becomes: the **shy** girl eats the red **church**.
# *The black cat drinks milk.* loses its color.
# *She found a key and hid it.* becomes *… l'a mangée*: she **ate** it, and in layer 1 the row of *mangée* has 0.59 on *hid*, the right word to look at.
# The lines show where a network looks, not whether it is right.
#
# Nor does it say why.
# In French the noun decides between *un* and *une*: does one head look at *car* for that?
# The full stop looks at *red* as much as at the English one, with 0.46 and 0.45, and `<eos>` most at *she*: what for?
# Lines alone cannot tell.
# (And "looks at *car*" is short: it looks at what its encoder made of *car*, in which the other words are mixed already.
# See [The Transformer](10_transformer.ipynb).)

# %%
cu.quiz("start_here", "one_row")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Rows sum to 1; car and red are looked at in French order; une is a mean.",
    given=asked == "She has a red car.",
):
    assert " ".join(told.says[:-1]) == "elle a une voiture rouge ."
    assert as_numbers["sum"].sub(1).abs().max() < 1e-5
    assert as_numbers.loc["voiture", "car"] > 0.9 and as_numbers.loc["rouge", "red"] > 0.8
    assert round(means.loc["une", "car"], 2) == 0.22
    assert [round(weight, 2) for weight in by_head["car"]] == [0.89, 0, 0, 0]
    assert abs(means.loc[".", "red"] - 0.46) < 0.01 and means.loc["<eos>"].idxmax() == "she"

# %% [markdown]
# ## How to work here
#
# *Section 2 of 6*
#
# | You want to | In JupyterLab | Keys |
# |---|---|---|
# | run a cell, and stay there | *Run → Run Selected Cell and Do not Advance* | Ctrl + Enter |
# | run all cells above | *Run → Run All Above Selected Cell* | |
# | stop a cell that takes too long | ■ in the toolbar | I, I (press Esc first) |
# | forget everything, and run all again | *Kernel → Restart Kernel and Run All Cells…* | |
# | find a section | the list in the left side bar | |
#
# Is your machine ready? ✓ is fine, ○ could be better, ✗ has to be fixed, and then the last column says how.
# Run the cell to see it.

# %% tags=["nbval-ignore-output"]
cu.doctor()

# %% [markdown]
# ### Exercise 1 · Nobody is preferred
#
# *build · 5 minutes*
#
# An **exercise** has a cell for you: replace the three dots with your code, and run it.
# The next cell **checks** it, as often as you like.
# Stuck?
# Each run of the cell after that gives another **hint**.
# The **solution** is folded: a click on its three dots opens it.
# What you have solved is noted on this machine, by date and without your code; `cu.progress()` lists it.
#
# Write a function that returns weights in which all keys count alike: one row for each query, one column for each key.
# (Queries ask, keys are what they look at.
# Above, the queries were French and the keys English.)
# Give back a **tensor**, PyTorch's table of numbers: `torch.ones(2, 5)` makes one of ones, with 2 rows and 5 columns.


# %% tags=["exercise", "build"]
def average_weights(num_queries, num_keys):
    """A tensor of weights, (num_queries, num_keys), in which all keys count alike."""
    ...


# %% tags=["check"]
cu.checks.average_weights(average_weights)

# %%
cu.checks.average_weights.hint()


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def average_weights_solution(num_queries, num_keys):
    """Each of the keys gets the same part of 1."""
    return torch.full((num_queries, num_keys), 1 / num_keys)


cu.checks.average_weights(average_weights_solution)

# %% [markdown]
# ### Numbers to change, and what the kernel remembers
#
# A number or text with `# try` behind it, as in section 1, is there to be changed: each value of the range works.
# Here 10 and 30 are averaged, with two weights that sum to 1.
# The list `runs` is for the cell after it.

# %%
share = 0.5  # try 0.0 … 1.0
average = share * 10 + (1 - share) * 30
runs = []
print(f"{share:g} · 10 + {1 - share:g} · 30 = {average:g}")

# %%
runs.append("once more")
len(runs)

# %% [markdown]
# Run the last cell twice more, with Ctrl + Enter: the page said 1, now it says 3.
# The **kernel**, the Python behind the page, remembers what *you* ran, in *your* order.
# When numbers surprise you, *Restart Kernel and Run All Cells…* brings page and memory together again.
#
# This average is 20.
# **Change 0.5 to 0.9**, run the cell, and it is 12.
# Then run the next one.
# It is folded, and it is a **guard**: a sentence that the page claims, and a test of it.
# While the sentence is true, it is silent.
# With 0.9 it says what no longer holds, and stops nothing.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("This average of 10 and 30 is 20.", given=share == 0.5):
    assert average == 20

# %%
cu.quiz("start_here", "other_numbers")

# %% [markdown]
# ## Shapes in ten minutes
#
# *Section 3 of 6*
#
# Many mistakes in the code of attention are mistakes of **shape**: the sizes of a tensor's axes.
# `grid` has 2 rows and 3 columns, so (2, 3).

# %%
grid = torch.tensor([[10, 20, 30], [40, 50, 60]])
line = torch.tensor([0, 1, 3])
shapes(
    "grid", "grid[0]", "grid[:, 1]", "grid[:, 1:2]", "grid.T",
    "grid.sum(dim=0)", "grid.sum(dim=1)", "line", "line[:, None]", "line[None, :]",
    grid=grid, line=line,
)  # fmt: skip

# %% [markdown]
# - A **number** as an index takes one entry out of an axis, and the axis is gone: `grid[:, 1]` is (2,).
#   A **slice** keeps it: `grid[:, 1:2]` is (2, 1).
#   Negative indices count from the end.
# - `sum(dim=1)` adds along axis 1, to the right, and this axis disappears.
#   Axes count from 0; the last one is also −1.
# - `None` makes a new axis of size 1 where it stands.
#   So does `unsqueeze`: `line.unsqueeze(0)` is `line[None, :]`.
#
# The same three numbers stand in a column, (3, 1), and in a row, (1, 3).
# The column minus the row gives every difference:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    "column minus row equals result",
    nodes={
        "column": cu.Cells(3, 1, "column", shape="(3, 1)", values=line[:, None], color="query"),
        "minus": cu.Note("−"),
        "row": cu.Cells(1, 3, "row", shape="(1, 3)", values=line[None, :], color="key"),
        "equals": cu.Note("="),
        "result": cu.Cells(
            3, 3, "each with each", shape="(3, 3)", color="wash",
            values=line[:, None] - line[None, :],
        ),
    },
    alt="A column 0, 1, 3 minus a row 0, 1, 3 is a table of 3 by 3 numbers: in row i and column j stands "
    "entry i of the column minus entry j of the row.",
    gap=(14, 20),
)  # fmt: skip

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "grid.T has the shape (3, 2), line has (3,). What is grid.T - line?",
    ["a tensor (3, 2)", "a tensor (3, 3)", "an error"],
    answer="an error",
    wrong={
        "a tensor (3, 2)": "As if line were a column. Does a shape (3,) stand upright or flat?",
        "a tensor (3, 3)": "Nothing here has three columns but line itself. Which size meets its 3?",
    },
    why="Shapes meet at their right ends, so that 2 meets 3. They are not equal, and none of them is 1.",
)

# %% [markdown]
# This is **[broadcasting](C_glossary.ipynb#broadcasting)**.
# Write the two shapes one below the other, flush right:
#
# | | axis −2 | axis −1 | | | axis −2 | axis −1 |
# |---|---|---|---|---|---|---|
# | column | 3 | 1 | | `grid` | 2 | 3 |
# | row | 1 | 3 | | `line` | | 3 |
# | result | 3 | 3 | | result | 2 | 3 |
#
# In each place the sizes must be equal, or one of them 1 or missing; that one is repeated.
# Else there is an error.
# Three pairs:

# %%
for one, other in [(grid, line), (grid, grid[:, :1]), (grid.T, line)]:
    print(tuple(one.shape), "and", tuple(other.shape), end=": ")
    try:
        print(tuple((one - other).shape))
    except RuntimeError as error:
        print(error)

# %% [markdown]
# In the third pair, 2 meets 3 from the right, at *dimension 1*, the second axis.
# `grid.T - line[:, None]` would fit.
# (Of a long red error, read the last line first.)
#
# ### Exercise 2 · Six shapes
#
# *predict · 6 minutes*
#
# Which shape comes out, or is it an error?
# Write the six answers down first; then let the check compare them.
#
# (a) (5, 1) + (5,) · (b) (4, 1, 3) + (2, 3) · (c) (2, 3) * (2,) · (d) `x[0]` of (3, 4) · (e) `x[None, :, None]` of (6,) · (f) `a[:, None] - b`, where `a` is (7, 4) and `b` is (5, 4).


# %% tags=["exercise", "predict"]
def six_shapes():
    """Six answers, for (a) to (f): tuples, or "error"."""
    return ...  # such as [(9,), "error", (8, 9), (9, 9), "error", (8, 8)]


# %% tags=["check"]
cu.checks.six_shapes(six_shapes)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def six_shapes_solution():
    """(c): 3 meets 2. (f): (7, 1, 4) meets (5, 4), each of the 7 rows with each of the 5."""
    return [(5, 5), (4, 2, 3), "error", (4,), (1, 6, 1), (7, 5, 4)]


cu.checks.six_shapes(six_shapes_solution)

# %% [markdown]
# ### Exercise 3 · Rows that do not sum to 1
#
# *bug · 8 minutes*
#
# Somebody wants weights for the words of a sentence: the nearer, the more.
# A word at a distance of $d$ counts $1/(1+d)$; then each row is divided by its sum.
# The function runs, but the rows do not sum to 1.
# By which number is the entry in row 0, column 1 divided?
# Try `length = 2`, too: is the bug gone there?
# Then write the function correctly.


# %%
def buggy_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance)."""
    positions = torch.arange(length)
    distance = (positions[:, None] - positions[None, :]).abs()
    counts = 1 / (1 + distance)
    return counts / counts.sum(dim=1)


length = 3  # try 2 … 8
[round(total, 3) for total in buggy_nearness(length).sum(dim=1).tolist()]


# %% tags=["exercise", "bug"]
def fixed_nearness(length):
    """Weights (length, length), like 1 / (1 + distance), in rows of sum 1."""
    ...


# %% tags=["check"]
cu.checks.nearness_weights(fixed_nearness)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_nearness_solution(length):
    """The sums, (length,), met the columns: as (length, 1) they meet the rows.

    Entry (0, 1) was divided by the sum of row 1, which is 2 for three words, instead of 11/6.
    """
    positions = torch.arange(length)
    distance = (positions[:, None] - positions[None, :]).abs()
    counts = 1 / (1 + distance)
    return counts / counts.sum(dim=1)[:, None]


cu.checks.nearness_weights(fixed_nearness_solution)

# %% [markdown]
# With two words both sums are 1.5, so the bug is there and does not show: one small example is no test.
#
# A division by sums is needed so often that there is an option for it: with `keepdim=True` the summed axis does not disappear.

# %%
shapes(
    "grid.sum(dim=1)", "grid.sum(dim=1, keepdim=True)",
    "grid / grid.sum(dim=1, keepdim=True)", grid=grid,
)  # fmt: skip

# %% [markdown]
# It stays, with the size 1, and the sums fit the tensor that they came from: each row of the quotient sums to 1.
#
# Last, the **product of two matrices**, `a @ b`: row $i$ of the first meets column $j$ of the second, entry by entry, and the products are summed.
# (5, 4) @ (4, 6) is (5, 6): the size in the middle is the same, and disappears.
# Axes in front are a **batch**: as many products, side by side.
# `transpose(-2, -1)` swaps the last two axes and leaves the batch alone.
# So the next cell has eight products at once: for each of 5 queries one number for each of 6 keys.
#
# Its last line is how the course says that two ways of computing agree: in their outputs, and in the **gradients** of these with respect to queries and keys, the derivatives by which networks learn.

# %%
batch = 8  # try 1 … 50
queries, keys = torch.randn(batch, 5, 4), torch.randn(batch, 6, 4)


def one_by_one(queries, keys):
    """Each query times each key, one matrix of the batch after the other."""
    return torch.stack([q @ k.T for q, k in zip(queries, keys, strict=True)])


def at_once(queries, keys):
    return queries @ keys.transpose(-2, -1)


shape = tuple(at_once(queries, keys).shape)
print(f"{tuple(queries.shape)} @ {tuple(keys.transpose(-2, -1).shape)} is {shape}")
cu.equal(at_once, one_by_one, queries, keys)

# %%
cu.quiz("start_here", "each_with_each", "sum_shape")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Broadcasting meets each with each; without keepdim, 3 words have wrong sums."):
    assert (line[:, None] - line[None, :]).tolist() == [[0, -1, -3], [1, 0, -2], [3, 2, 0]]
    assert grid[:, 1].shape == (2,) and grid[:, 1:2].shape == (2, 1)
    assert length == 2 or (buggy_nearness(length).sum(dim=1) - 1).abs().max() > 0.02
    assert grid.sum(dim=1, keepdim=True).shape == (2, 1)
    assert shape == (batch, 5, 6)

# %% [markdown]
# ## Read a map of weights, and use it
#
# *Section 4 of 6*
#
# In attention, a **[query](C_glossary.ipynb#query-key-value)** asks, **keys** are what it may look at, and each key carries a **value**, which is handed on.
# There is a weight for each pair of a query and a key.
# The picture of such a table is a **heatmap**: dark is much, light is little.
#
# Three words look at each other.
# On the left each looks only at itself; on the right the nearer counts more, as in exercise 3.
# By hand, for the first word: $1, \tfrac12, \tfrac13$ sum to $\tfrac{11}{6}$, so the weights are $\tfrac{6}{11}, \tfrac{3}{11}, \tfrac{2}{11}$.

# %%
words = ["she", "reads", "on"]
apart = (torch.arange(3)[:, None] - torch.arange(3)[None, :]).abs()
nearness = 1 / (1 + apart)
nearer = nearness / nearness.sum(dim=-1, keepdim=True)
cu.show_heatmaps(
    torch.stack([torch.eye(3), nearer]), queries=words, keys=words, annotate=True,
    titles=["each word at itself", "the nearer, the more"],
    alt="Two maps over the words she, reads, on. Left, ones on the diagonal, else 0. "
    "Right, the diagonal is darkest, 0.55, 0.50, 0.55; weights fade with distance.",
)  # fmt: skip

# %% [markdown]
# Read every map of weights like this:
#
# 1. **Pick a row.**
#    A row is one query: here, the word that looks.
# 2. **Go along it.**
#    The dark cells are the keys that it looks at.
#    In row *she*: 0.55, 0.27, 0.18, as by hand.
# 3. **Check the sum.**
#    A row sums to 1.
#    A column need not: *reads*, in the middle, is near to all, and gets $\tfrac{3}{11} + \tfrac12 + \tfrac{3}{11} \approx 1.045$.
# 4. **Look at the bar.**
#    Maps that share a bar have one scale.
#    Here it goes from 0 to 1; if it ends earlier, and weights lie beyond its end, it says "or more".
#
# The next figure breaks the last rule, to show why it is one: 36 weights that are almost equal, each near 1/6, with a little noise, drawn twice, on two scales.

# %%
noise = 0.1  # try 0.02 … 3.0
generator = torch.Generator().manual_seed(0)
faint = (noise * torch.randn(6, 6, generator=generator)).softmax(dim=-1)
low, high = faint.min().item(), faint.max().item()
print(f"36 weights from {low:.2f} to {high:.2f}; 1/6 is {1 / 6:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (own, common) = cu.subplots(
    1, 2, width=7.0, height=2.8,
    alt=f"The same six by six weights twice. Left, on a scale from {low:.2f} to {high:.2f}, a strong "
    "pattern from white to dark blue. Right, on the scale from 0 to 1, much paler.",
)  # fmt: skip
own_map = cu.heatmap(own, faint, title="scale of its own", vmin=low, vmax=high)
common_map = cu.heatmap(common, faint, title="scale from 0 to 1", ylabel=None)
fig.colorbar(own_map, ax=own, format="%.2f")
fig.colorbar(common_map, ax=common)
fig

# %% [markdown]
# On the left, the colors are stretched from the smallest to the largest weight, and noise looks like knowledge.
# On the right, the picture says what the numbers say: they differ by a few hundredths.
# Before you believe a map, in any paper, read the numbers on its bar.
#
# ### The last step of attention
#
# Weights are there to be used: each query gets the average of the values, with the weights of its row.
# For all queries at once this is one product of matrices, `weights @ values`.
# Let the three words carry 11, 22 and 0.
# By hand, *she* gets $\tfrac{6}{11}\cdot 11 + \tfrac{3}{11}\cdot 22 + \tfrac{2}{11}\cdot 0 = 6 + 6 + 0 = 12$.

# %%
last = 0.0  # try -50.0 … 50.0
values = torch.tensor([[11.0], [22.0], [last]])
answers = nearer @ values
tensors = {
    name: cu.Cells(*it.shape, name, shape=f"{tuple(it.shape)}", values=it, color=color)
    for name, it, color in [
        ("weights", nearer, "key"),
        ("values", values, "value"),
        ("answers", answers, "value"),
    ]
}
cu.Drawing(
    "weights at values equals answers",
    nodes={**tensors, "at": cu.Note("@"), "equals": cu.Note("=")},
    alt="Weights, 3 by 3, times a column of three values: a column of three answers.",
    gap=(14, 20),
)

# %% [markdown]
# *She* gets 12, as by hand, and *reads* $0.25\cdot 11 + 0.5\cdot 22 = 13.75$ (13.8 in the drawing).
# *On* gets 8, although its own value is 0: it has taken something over from its neighbors.
# In the translator the values are vectors; the step is the same.
#
# ### Exercise 4 · Where would you look?
#
# *open · 6 minutes*
#
# Go back to the translator, to a sentence that it translates wrongly.
# Why does it go wrong?
# Say which lines would look different if you are right.
# Then change **one** word, so that it becomes right, and compare: which difference did you expect, and which one would show that you are wrong?
# Write two sentences in a new cell.
# No French?
# *She found a key and hid it*: with *book* in place of *key* she does hide it, *caché*, and eats nothing.
# (Esc, then B makes a cell below, and M makes it one for text.)

# %%
cu.quiz("start_here", "two_scales")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Rows sum to 1, the faint weights are near 1/6, and the words get 12, 13.75 and 8.",
    given=(noise, last) == (0.1, 0.0),
):
    assert (nearer.sum(dim=1) - 1).abs().max() < 1e-6
    assert [round(weight, 2) for weight in nearer[0].tolist()] == [0.55, 0.27, 0.18]
    assert abs(nearer[:, 1].sum() - 1.045) < 0.01
    assert 0.12 < low < high < 0.22
    assert (answers[:, 0] - torch.tensor([12.0, 13.75, 8.0])).abs().max() < 1e-4

# %% [markdown]
# ## The first slider
#
# *Section 5 of 6*
#
# Where do weights come from?
# Often from **scores**: any numbers, the larger the better.
# Take the exponential of each, and divide by the sum.
# This is the **[softmax](C_glossary.ipynb#softmax)**.
# The four animals below have scores, and you will move that of the bird.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The bird's score grows from −1 to 6. What happens to cat's weight divided by dog's?",
    ["it grows", "it stays", "it shrinks"],
    answer="it stays",
    wrong={
        "it grows": "Both lose weight to the bird. Does dog lose a larger part than cat?",
        "it shrinks": "Both lose weight to the bird. Does cat lose a larger part than dog?",
    },
    why="Both are divided by the same sum, and their exponentials stay: the ratio is exp(1 − 0.5) = 1.65.",
)

# %%
cu.explore.first_slider()

# %% [markdown]
# Drag the handle, or select it with Tab and use the arrow keys.
#
# - Far right, the bird's weight is 0.99.
#   It comes near to 1, and never reaches it.
# - Far left it shows 0.00, and is still above zero.
# - Cat and dog shrink and grow together: 0.51 and 0.31 at first, 0.01 and 0.00 far right.
#   (Their ratio stays, but two digits cannot show it any more.)
# - From −1 to 0, bird's weight divided by cat's grows from 0.14 to 0.37, and to 1 at the score 1: each whole point of score, two steps of the slider, multiplies it by $e \approx 2.72$.
#
# Scores compare a query with a key: how, says the next chapter.

# %%
cu.quiz("start_here", "ratio")

# %% [markdown]
# ## Three ways through
#
# *Section 6 of 6*
#
# A line is a part of the course, a station a chapter.
# You need not do it all.
# The three ways below the map lead to GPT, to images, or to kernels, which make weights from distances (not the Python behind the page).
# Each holds all that it needs, so the first two are long.
# Hours are estimates, exercises included.

# %% tags=["nbval-ignore-output"]
course_map()

# %% [markdown]
# ### If something goes wrong
#
# | You see | What to do |
# |---|---|
# | `NameError: name … is not defined` | A cell above has not run: *Run → Run All Above Selected Cell* |
# | The kernel is dead | Most likely memory was short. Shut down other kernels, then restart this one |
# | `[*]` that does not end | The cell is at work, or waits for another. Interrupt with ■, or restart the kernel |
# | "Error displaying widget: model not found", or controls that do nothing | Saved in an earlier session: run its cell again |
# | `ModuleNotFoundError: course_utils` | Lab runs elsewhere. Start it in the course's folder with `make lab` |
# | "not done yet", and you are done | Run your own cell again before the check |
#
# To get an original chapter back, type in a terminal, in the course's folder: `git checkout -- notebooks/00_start_here.ipynb notebooks/source/00_start_here.py`.
# Your changes in it are then gone.
#
# ## Take-aways
#
# - A map of weights is read by rows: one query, its keys, a sum of 1.
#   Read its bar first, and do not take it for a proof.
#   It is often a mean.
# - Shapes are compared from the right, and a 1 is repeated.
#   `keepdim=True` keeps a summed axis where the next line needs it.
# - The last step of attention is `weights @ values`, an average for each query.
#   A softmax makes weights from scores.
# - When numbers surprise you, restart the kernel and run all cells.
#
# Next: [Queries, keys and values](01_queries_keys_values.ipynb), where weights come from.
# Other texts use other names: see [Names, notation and shapes](A_names.ipynb).
# The terms stand in the [Glossary](C_glossary.ipynb).
#
# ## Quiz

# %%
cu.quiz("start_here")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   The kind of network that translates above.
# - PyTorch.
#   [Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html).
#   The rule of section 3, in full.
# - Okabe, M. and Ito, K. (2008).
#   [Color Universal Design](https://jfly.uni-koeln.de/color/).
#   Our colors are adapted from theirs.
