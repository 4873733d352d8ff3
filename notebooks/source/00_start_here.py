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
# **When a network translates a sentence, which words does it look at?** A small one stands below. It has learned from
# English sentences and their French translations, in about a minute on one core of a CPU, and it answers you. You will build and train it
# yourself in [The Transformer](10_transformer.ipynb); this chapter shows what it looks at, and how to work here.
#
# After this chapter you can
#
# - read a map of attention weights row by row, and say what its colors may hide;
# - say which shape comes out when tensors of two shapes meet, and sum over the right axis;
# - compute the last step of attention, an average with weights;
# - run, change and restart a notebook, do an exercise, and choose your way through the course.
#
# It needs Python, and a little indexing as in NumPy. If tensors are new to you, keep the appendix
# [PyTorch in an hour](B_pytorch.ipynb) open beside this page.
#
# **This page is a notebook**: a column of cells, some with text, some with Python. Click the next cell and press
# **Shift + Enter**. It runs, what it shows appears below it, and the next cell is selected. Go on like this to the end. (If you
# read this as a web page, the same questions and pictures answer you; only the code does not run.)

# %%
import pandas as pd
import torch

import course_utils as cu
from course_utils.lessons.start_here.explorer import translate

cu.seed_everything(0)

# %% [markdown]
# That cell showed nothing: it imports what the chapter needs, and sets the seed of the random numbers. `cu` is the package that comes with
# the course: data, pictures, questions, checks, and each part that a chapter builds.
#
# ## Ask a translator
#
# *Section 1 of 8*
#
# For each French word that it writes, the network gives every English word a **weight**. The weights for one French word
# are never negative and sum to 1. *She has a red car* is *elle a une voiture rouge* in French: *voiture* is the car, and the color comes after it.
#
# First a question. Choose an answer before you see the result. Nothing is stored, and nobody is told.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "While it writes the fourth French word, voiture: where is the largest weight?",
    ["on red, the fourth English word", "on car", "all words get the same"],
    answer="on car",
    wrong={
        "on red, the fourth English word": "Then it would go through both sentences at the same pace. Does French keep the order?",
        "all words get the same": "Then it could not know which word is due. What would each row of the map look like?",
    },
    why="voiture is the car. Nobody told the network which words belong together: it only saw whole sentences.",
)

# %%
cu.explore.translator()

# %% [markdown]
# One row for each French word, one column for each English word; the number is the largest weight of the row, and `<eos>` is
# the sign for the end of a sentence. *Voiture* has 0.93 on *car*, and *rouge* has 0.87 on *red*. French turns these two
# words around, and so do the dark cells.
#
# **Now write a sentence of your own** and press Enter. (On a web page, choose an example.) It knows 833 English words and signs, and
# short plain sentences. A word that it does not know turns red, and below the picture stand words that it knows and that are spelled
# alike.
#
# It is often wrong. *She found a key and hid it* becomes *… elle l'a mangée*: she **ate** it. Of *the black cat*, the color gets lost. *The
# little girl eats the red apple* has a word that it does not know, and becomes: the **shy** girl eats the red **church**. Look at
# the row of *mangée*: 0.59 on *hid*. The map shows where a network looks. Whether it is right, the map does not say.
#
# Here are the same weights as numbers. A text or a number with `# try` behind it is there to be changed: any value of
# the list, or of the range, works. Change it, and run the cell again.

# %%
asked = "She has a red car."  # try "I'm home." | "The black cat drinks milk."
told = translate(asked)
as_numbers = pd.DataFrame(told.weights, index=told.target, columns=told.source)
as_numbers["sum"] = as_numbers.sum(axis=1)
as_numbers.round(2)

# %% [markdown]
# Look at the row of *une*: 0.70 on *a*, and 0.22 on *car*. In French it is *un* or *une*, and the noun decides which. Is this why the weight is
# there? The map cannot tell you; a later chapter will ask such questions by experiment.

# %%
cu.quiz("start_here", "one_row")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Each row sums to 1, and car and red are looked at in the French order."):
    assert as_numbers["sum"].sub(1).abs().max() < 1e-5
    assert " ".join(told.target[:-1]) == "elle a une voiture rouge ."
    assert as_numbers.loc["voiture", "car"] > 0.9 and as_numbers.loc["rouge", "red"] > 0.8
    assert as_numbers.loc["une"].drop("sum").nlargest(2).index.tolist() == ["a", "car"]

# %% [markdown]
# ## How to work here
#
# *Section 2 of 8*
#
# | You want to | In JupyterLab | Keys |
# |---|---|---|
# | run a cell, and stay there | | Ctrl + Enter |
# | run all cells above | *Run → Run All Above Selected Cell* | |
# | stop a cell that takes too long | ■ in the toolbar | I, I (press Esc first) |
# | forget everything, and run all again | *Kernel → Restart Kernel and Run All Cells…* | |
# | find a section | the list icon in the left side bar | |
#
# The **kernel** is the Python behind the page. It remembers what *you* ran, in *your* order, whatever the page shows:

# %%
remembered = []
print(remembered)

# %%
remembered.append("once more")
len(remembered)

# %% [markdown]
# The page says 1. Run the last cell twice more, and it says 3. When numbers surprise you, *Restart Kernel and Run All
# Cells…* brings page and memory together again. And when a red error appears, read its last line first.
#
# Is this machine ready? ✓ is fine, ○ could be better, ✗ has to be fixed, and then the last column says how. (What stands here
# before you run it is the machine on which the page was made.)

# %% tags=["nbval-ignore-output"]
cu.doctor()

# %% [markdown]
# ### Exercise 1 · Nobody is preferred
#
# *build · 5 minutes*
#
# An **exercise** has three cells. In the first, replace the three dots with your code, and run it. The second **checks** it: run it as
# often as you like. The third is a **solution**, folded.
#
# Write a function that returns weights in which all keys count alike: one row for each query, one column for each key.


# %% tags=["exercise", "build"]
def average_weights(num_queries, num_keys):
    """Weights (num_queries, num_keys) in which all keys count alike."""
    ...


# %% tags=["check"]
cu.checks.average_weights(average_weights)

# %% [markdown]
# While there is nothing to check, the check says what it will test. Stuck? Each run of the next cell gives another **hint**, for what does not hold yet.

# %%
cu.checks.average_weights.hint()


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def average_weights_solution(num_queries, num_keys):
    """Each of the keys gets the same part of 1."""
    return torch.full((num_queries, num_keys), 1 / num_keys)


cu.checks.average_weights(average_weights_solution)

# %% [markdown]
# ### Numbers to change, and guards
#
# The last line of a cell is shown, and what it prints. Here 10 and 30 are averaged, with two weights that sum to 1.

# %%
share = 0.5  # try 0.0 … 1.0
average = share * 10 + (1 - share) * 30
print(f"{share:g} · 10 + {1 - share:g} · 30 = {average:g}")

# %% [markdown]
# With equal weights it is 20. **Try 0.9**: run the cell again, and it is 12. Then open the next cell, which is folded, with a click on its
# three dots. It is a **guard**, as at the end of most sections: a sentence that the page claims, and a test of it. While the sentence
# is true, a guard is silent. Run it now, with 0.9 above: it says what no longer holds, and stops nothing.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With equal weights the average of 10 and 30 is 20."):
    assert average == 20

# %%
cu.quiz("start_here", "other_numbers")

# %% [markdown]
# ## Shapes and broadcasting
#
# *Section 3 of 8*
#
# Most mistakes in this course's code will be mistakes of **shape**: the sizes of a tensor's axes, here 2 rows and 3 columns.


# %%
def shapes(*expressions):
    """A table: each expression with the shape and the entries of what it gives."""
    found = {text: eval(text) for text in expressions}
    rows = [
        (tuple(it.shape), (it.double().round(decimals=2) if it.is_floating_point() else it).tolist())
        for it in found.values()
    ]
    return pd.DataFrame(rows, index=list(found), columns=["shape", "entries"])


grid = torch.tensor([[10, 20, 30], [40, 50, 60]])
shapes("grid", "grid[0]", "grid[:, 1]", "grid[:, 1:2]", "grid[-1, -1]", "grid.T")

# %% [markdown]
# A number as an index takes one entry out of an axis, and the axis is gone: `grid[:, 1]` is (2,). A slice keeps the axis:
# `grid[:, 1:2]` is (2, 1). Negative indices count from the end. `.T` swaps rows and columns.
#
# `None` in an index does the opposite: it makes a new axis of size 1. `unsqueeze` does the same and names the place.

# %%
line = torch.tensor([0, 1, 3])
shapes("line", "line[:, None]", "line[None, :]", "line.unsqueeze(0)", "line.unsqueeze(-1)")

# %% [markdown]
# The same three numbers once as a column, (3, 1), and once as a row, (1, 3). What is one minus the other?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which shape has line[:, None] - line[None, :]?",
    ["(3,)", "(3, 1)", "(3, 3)", "none, it is an error"],
    answer="(3, 3)",
    wrong={
        "(3,)": "This is the shape of line - line. Here each side has two axes.",
        "(3, 1)": "The column has only one column, but the row has three to subtract. Which size wins, 1 or 3?",
        "none, it is an error": "Sizes have to be equal, or one of them 1. Which sizes meet here?",
    },
    why="The column is repeated to the right, the row downwards: each number meets each number.",
)

# %%
shapes("line - line", "line[:, None] - line[None, :]", "grid - line", "grid - grid[:, :1]")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    column minus row equals result
    """,
    nodes={
        "column": cu.Cells(3, 1, "line[:, None]", shape="(3, 1)", values=[[0], [1], [3]], color="sky"),
        "minus": cu.Note("−"),
        "row": cu.Cells(1, 3, "line[None, :]", shape="(1, 3)", values=[[0, 1, 3]], color="orange"),
        "equals": cu.Note("="),
        "result": cu.Cells(
            3, 3, "each with each", shape="(3, 3)", color="green",
            values=[["0", "−1", "−3"], ["1", "0", "−2"], ["3", "2", "0"]],
        ),
    },
    alt="A column 0, 1, 3 minus a row 0, 1, 3 is a table of 3 by 3 numbers: in row i and column j stands "
    "entry i of the column minus entry j of the row.",
    gap=(14, 20),
)  # fmt: skip

# %% [markdown]
# This is **broadcasting**. Write the two shapes one below the other, flush right:
#
# | | | | | | |
# |---|---|---|---|---|---|
# | column | 3 | 1 | | grid | 2 | 3 |
# | row | 1 | 3 | | line | | 3 |
# | result | 3 | 3 | | result | 2 | 3 |
#
# In each place the sizes must be equal, or one of them 1 or missing; that one is repeated. If they do not fit, PyTorch
# says so. The next cell provokes the error and prints its last line:

# %%
try:
    print(grid.T - line)
except RuntimeError as error:
    print(error)

# %% [markdown]
# (3, 2) and (3,): from the right, 2 meets 3. *Tensor a* is the first, *dimension 1* the second axis, since axes are counted from 0.
# `grid.T - line[:, None]` would fit.
#
# ### Exercise 2 · Six shapes
#
# *predict · 6 minutes*
#
# Which shape comes out, or is it an error? Write the six answers down first; then let the check compare them.
#
# (a) (5, 1) + (5,) · (b) (4, 1, 3) + (2, 3) · (c) (2, 3) * (2,) · (d) `x[0]` of (3, 4) · (e) `x[None, :, None]` of (6,) ·
# (f) `a[:, None] - b`, where `a` is (7, 4) and `b` is (5, 4).


# %% tags=["exercise", "predict"]
def six_shapes():
    """Six answers, for (a) to (f): tuples, or "error"."""
    return ...  # such as [(1, 2), (3,), "error", (4,), (5, 6), (7, 8, 9)]


# %% tags=["check"]
cu.checks.six_shapes(six_shapes)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def six_shapes_solution():
    """(c): 3 meets 2. (f): (7, 1, 4) meets (5, 4), each of the 7 rows with each of the 5."""
    return [(5, 5), (4, 2, 3), "error", (4,), (1, 6, 1), (7, 5, 4)]


cu.checks.six_shapes(six_shapes_solution)

# %%
cu.quiz("start_here", "each_with_each")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A column and a row give a table of each with each, and 2 does not fit 3."):
    assert (line[:, None] - line[None, :]).tolist() == [[0, -1, -3], [1, 0, -2], [3, 2, 0]]
    assert grid[:, 1].shape == (2,) and grid[:, 1:2].shape == (2, 1)

# %% [markdown]
# ## Sums and products
#
# *Section 4 of 8*
#
# In `sum(dim=…)`, `dim` names the axis that **disappears**. Summing over axis 0 adds up downwards; over axis 1, to the right. The last axis is also −1.

# %%
shapes("grid.sum()", "grid.sum(dim=0)", "grid.sum(dim=1)", "grid.sum(dim=-1)")

# %% [markdown]
# ### Exercise 3 · Rows that do not sum to 1
#
# *bug · 8 minutes*
#
# Somebody wants weights for the words of a sentence: the nearer, the more. Before it is divided, a word at a distance of $d$ counts
# $1/(1+d)$; then each row is divided by its sum. The function runs, but look at the sums of its rows.


# %%
def buggy_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance)."""
    positions = torch.arange(length)
    distance = (positions[:, None] - positions[None, :]).abs()
    counts = 1 / (1 + distance)
    return counts / counts.sum(dim=1)


buggy_nearness(3).sum(dim=1)

# %% [markdown]
# They should be 1, 1 and 1. By which number is the entry in row 0, column 1 divided? Write the function correctly.


# %% tags=["exercise", "bug"]
def fixed_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance); each row sums to 1."""
    ...


# %% tags=["check"]
cu.checks.nearness_weights(fixed_nearness)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_nearness_solution(length):
    """The sums, (length,), met the columns: as (length, 1) they meet the rows."""
    positions = torch.arange(length)
    distance = (positions[:, None] - positions[None, :]).abs()
    counts = 1 / (1 + distance)
    return counts / counts.sum(dim=1)[:, None]


cu.checks.nearness_weights(fixed_nearness_solution)

# %% [markdown]
# There is a word for what the repaired division needs. With `keepdim=True` the axis that is summed does not disappear: it stays, with
# the size 1, and what comes out fits the tensor that it came from.

# %%
shapes("grid.sum(dim=1)", "grid.sum(dim=1, keepdim=True)", "grid / grid.sum(dim=1, keepdim=True)")

# %% [markdown]
# ### Exercise 4 · Many averages at once
#
# *build · 10 minutes*
#
# Each query has a row of weights, each key has a value: a vector of features. Query $i$ gets $\sum_j w_{ij} v_j$. Write this for
# all queries at once with `*`, `sum` and new axes, without a loop and without a matrix product. Then let axes for a batch stand in
# front of both tensors: `...` in an index means all axes that are not named.


# %% tags=["exercise", "build"]
def mix(weights, values):
    """Weights (…, queries, keys), values (…, keys, features) → (…, queries, features)."""
    ...


# %% tags=["check"]
cu.checks.mix(mix)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def mix_solution(weights, values):
    """(…, queries, keys, 1) times (…, 1, keys, features), summed over the keys."""
    return (weights[..., :, :, None] * values[..., None, :, :]).sum(dim=-2)


cu.checks.mix(mix_solution)

# %% [markdown]
# What you wrote is the **product of two matrices**, `weights @ values`: row $i$ of the first meets column $j$ of the second, entry by
# entry, and the products are summed. (2, 3) @ (3, 4) is (2, 4): the size in the middle is the same, and disappears. Axes in front are a
# **batch**: as many products, side by side. `transpose(-2, -1)` swaps the last two axes and leaves the batch alone.

# %%
batch = 8  # try 1 … 50
queries, keys = torch.randn(batch, 5, 4), torch.randn(batch, 6, 4)


def one_by_one(queries, keys):
    """The product of each query with each key, one matrix of the batch after the other."""
    return torch.stack([q @ k.T for q, k in zip(queries, keys, strict=True)])


def at_once(queries, keys):
    return queries @ keys.transpose(-2, -1)


print(f"{tuple(keys.shape)} becomes {tuple(keys.transpose(-2, -1).shape)}")
print(f"the product has the shape {tuple(at_once(queries, keys).shape)}")
cu.equal(at_once, one_by_one, queries, keys)

# %% [markdown]
# The last line is how the course says that two ways of computing agree: in what comes out, and in its derivatives, the **gradients**, by
# which networks learn. With a batch of 8, eight products of (5, 4) and (4, 6) are (8, 5, 6): for each query, one number for each key. Remember
# this line, it comes back in each chapter.

# %%
cu.quiz("start_here", "sum_shape")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Without keepdim the columns are divided by the sums of the rows, and nothing warns."):
    assert [round(total, 2) for total in buggy_nearness(3).sum(dim=1).tolist()] != [1, 1, 1]
    assert grid.sum(dim=1, keepdim=True).shape == (2, 1)
    assert at_once(queries, keys).shape == (batch, 5, 6)

# %% [markdown]
# ## The first heatmap
#
# *Section 5 of 8*
#
# In attention, a **query** asks, **keys** are what it may look at, and each key carries a **value**, which is handed on. There is a
# weight for each pair of a query and a key. The picture of such a table is a **heatmap**: dark is much, light is little.
#
# Three words look at each other. On the left each looks only at itself. On the right the nearer counts more, as in exercise 3. By
# hand, for the first word: $1, \tfrac12, \tfrac13$ sum to $\tfrac{11}{6}$, so the weights are $\tfrac{6}{11}, \tfrac{3}{11}, \tfrac{2}{11}$.

# %%
words = ["she", "reads", "on"]
apart = (torch.arange(3)[:, None] - torch.arange(3)[None, :]).abs()
nearness = 1 / (1 + apart)
nearer = nearness / nearness.sum(dim=-1, keepdim=True)
cu.show_heatmaps(
    torch.stack([torch.eye(3), nearer]), queries=words, keys=words, annotate=True,
    titles=["each word at itself", "the nearer, the more"],
    alt="Two heatmaps over the words she, reads, on. Left, ones on the diagonal and zeros elsewhere. "
    "Right, the diagonal is darkest, with 0.55, 0.50 and 0.55, and weights fade with distance.",
)  # fmt: skip

# %% [markdown]
# Read every heatmap of weights like this:
#
# 1. **Pick a row.** A row is one query: here, the word that looks.
# 2. **Go along it.** The dark cells are the keys that it looks at. In row *she*: 0.55, 0.27, 0.18, as by hand.
# 3. **Check the sum.** A row sums to 1. A column need not: *reads*, in the middle, is near to all, and gets $0.27 + 0.50 + 0.27 = 1.04$.
# 4. **Look at the bar.** All maps of one figure have one scale. For weights it goes from 0 to 1, or to a smaller number, and then the bar
#    says "or more" where weights lie beyond it.
#
# Why the bar matters: here are 36 weights that are almost equal, each near 1/6, with a little noise.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A drawing program stretches its colors from the smallest to the largest weight. What will you see?",
    ["an even gray-blue", "a strong pattern", "nothing at all"],
    answer="a strong pattern",
    wrong={
        "an even gray-blue": "That is what a scale from 0 to 1 shows. Which weight gets white on the stretched one?",
        "nothing at all": "The smallest is white and the largest dark blue, whatever they are.",
    },
    why="On a scale of its own, the smallest weight is white and the largest is dark, however near they are.",
)

# %%
noise = 0.1  # try 0.02 … 3.0
faint = (noise * torch.randn(6, 6, generator=torch.Generator().manual_seed(0))).softmax(dim=-1)
low, high = faint.min().item(), faint.max().item()
print(f"36 weights from {low:.2f} to {high:.2f}; 1/6 is {1 / 6:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (own, common) = cu.subplots(
    1, 2, width=7.0, height=2.8,
    alt="The same six by six weights twice. Left, on a scale of its own, a strong checkered pattern "
    "from white to dark blue. Right, on the scale from 0 to 1, an even pale blue.",
)  # fmt: skip
own_map = cu.heatmap(own, faint, title="scale of its own", vmin=low, vmax=high)
common_map = cu.heatmap(common, faint, title="scale from 0 to 1", ylabel=None)
fig.colorbar(own_map, ax=own, format="%.2f")
fig.colorbar(common_map, ax=common)
fig

# %% [markdown]
# The same 36 numbers. On the left noise looks like knowledge. On the right the picture says what the numbers say: next to nothing. Before you believe
# a heatmap, in any paper, read the numbers on its bar.

# %%
cu.quiz("start_here", "two_scales")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Rows sum to 1, a column may not, and the faint weights are all near 1/6."):
    assert (nearer.sum(dim=1) - 1).abs().max() < 1e-6
    assert [round(weight, 2) for weight in nearer[0].tolist()] == [0.55, 0.27, 0.18]
    assert abs(nearer[:, 1].sum() - 1.045) < 0.01
    assert 0.12 < low < high < 0.24

# %% [markdown]
# ## The first slider
#
# *Section 6 of 8*
#
# Where do weights come from? Often from **scores**: any numbers, the larger the better. Take the exponential of each, and divide
# by the sum. This is the **softmax**. The four animals below have scores, and you will move that of the bird.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The bird's score grows from −1 to 6. What happens to cat's weight divided by dog's?",
    ["it grows", "it stays", "it shrinks"],
    answer="it stays",
    wrong={
        "it grows": "Both lose weight to the bird. Does one of the two lose a larger part?",
        "it shrinks": "Both lose weight to the bird. Does one of the two lose a larger part?",
    },
    why="Both are divided by the same sum, and their exponentials stay: the ratio is exp(1 − 0.5) = 1.65.",
)

# %%
cu.explore.first_slider()

# %% [markdown]
# Drag the handle, or select it with Tab and use the arrow keys.
#
# - Far right, the bird's weight is 0.98. It comes near to 1, and never reaches it.
# - Far left it shows 0.00, and is still above zero.
# - Cat and dog shrink and grow together: 0.46 and 0.28 at first, 0.01 and 0.01 at last.
# - One step of 1 multiplies the ratio of bird to cat by $e \approx 2.72$. In numbers:

# %%
bird = 1.0  # try -4.0 … 6.0
scores = torch.tensor([[1.0, 0.5, bird - 1, -0.5], [1.0, 0.5, bird, -0.5]])
animals = pd.DataFrame(scores.softmax(dim=-1), columns=["cat", "dog", "bird", "fish"])
animals.index = [f"bird's score {score:g}" for score in scores[:, 2].tolist()]
animals["cat / dog"] = animals["cat"] / animals["dog"]
animals["bird / cat"] = animals["bird"] / animals["cat"]
animals.round(3)

# %% [markdown]
# From one row to the next, *cat / dog* stays at 1.649, and *bird / cat* grows from 0.368 to 1. The differences of scores decide, and
# [Queries, keys and values](01_queries_keys_values.ipynb) asks what follows from this.

# %%
cu.quiz("start_here", "ratio")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A score that grows by 1 multiplies a ratio of weights by e and leaves the others."):
    first, second = animals["bird / cat"]
    assert abs(second / first - 2.71828) < 1e-4
    assert animals["cat / dog"].sub(1.64872).abs().max() < 1e-4

# %% [markdown]
# ## The last step of attention
#
# *Section 7 of 8*
#
# Weights are there to be used: each query gets the average of the values, with the weights of its row. For all queries at once this is
# one product of matrices. Let the three words carry the values 11, 22 and 0:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    weights times values equals answers
    """,
    nodes={
        "weights": cu.Cells(
            3, 3, "weights", shape="(3, 3)", color="yellow",
            values=[["6/11", "3/11", "2/11"], ["1/4", "1/2", "1/4"], ["2/11", "3/11", "6/11"]],
        ),
        "times": cu.Note("@"),
        "values": cu.Cells(3, 1, "values", shape="(3, 1)", values=[[11], [22], [0]], color="green"),
        "equals": cu.Note("="),
        "answers": cu.Cells(
            3, 1, "answers", shape="(3, 1)", values=[["12"], ["13.75"], ["8"]], color="sky"
        ),
    },
    alt="Weights, 3 by 3, times a column of the values 11, 22, 0 is a column of the answers 12, 13.75, 8.",
    gap=(14, 20),
)  # fmt: skip

# %% [markdown]
# By hand, for *she*: $\tfrac{6}{11}\cdot 11 + \tfrac{3}{11}\cdot 22 + \tfrac{2}{11}\cdot 0 = 6 + 6 + 0 = 12$.

# %%
last = 0.0  # try -50.0 … 50.0
carried = torch.tensor([[11.0], [22.0], [last]])
answers = nearer @ carried
columns = {"value": carried[:, 0], "at itself": (torch.eye(3) @ carried)[:, 0]}
pd.DataFrame(columns | {"the nearer, the more": answers[:, 0]}, index=words).round(2)

# %% [markdown]
# Looking only at itself, each word gets its own value back. With the other weights, *on* gets 8, although its own value is 0: it has taken something over from its
# neighbors. This is the last step of attention. In the translator the values are not single numbers but vectors of 16 features, and the
# rows are French words that take from English ones; the step is the same.
#
# What comes before, the scores from which weights are made, is the question of the next chapters.
#
# ### Exercise 5 · Where would you look?
#
# *open · 6 minutes*
#
# Go back to the translator. Find a sentence that it translates wrongly, then change **one** word so that it becomes right. Compare
# the two maps. Which difference between them would you have expected, and which difference would show that your explanation is
# wrong? Write two sentences in a new cell. (Press Esc, then B for a new cell below, and M to make it one for text.)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With values 11, 22 and 0 the words get 12, 13.75 and 8."):
    assert (answers[:, 0] - torch.tensor([12.0, 13.75, 8.0])).abs().max() < 1e-4

# %% [markdown]
# ## Three ways through
#
# *Section 8 of 8*
#
# An arrow on the map means: first this, then that.

# %%
cu.course_map()

# %% [markdown]
# You need not do it all. Three ways lead to one thing each, by all that it needs; hours are estimates, exercises included.

# %%
cu.ways()

# %% [markdown]
# Each chapter has the same parts: a question, an example small enough for a pencil, pictures, a slider or two, exercises, mistakes that
# many people make, and a quiz. What you have solved is noted on this machine, by date and without your code, and nobody else is told:

# %% tags=["nbval-ignore-output"]
cu.progress()

# %% [markdown]
# ### If something goes wrong
#
# | You see | What to do |
# |---|---|
# | `NameError: name … is not defined` | A cell above has not run: *Run → Run All Above Selected Cell* |
# | The kernel is dead | Most likely memory was short. Shut down other kernels, then restart this one |
# | `[*]` that does not end | The cell is at work, or waits for another. Interrupt with ■, or restart the kernel |
# | A picture, but its slider does not move | It was saved in an earlier session: run its cell again |
# | `ModuleNotFoundError: course_utils` | Lab runs elsewhere. Start it in the course's folder with `make lab` |
# | "not done yet", and you are done | Run your own cell again before the check |
#
# To get one original chapter back, type in a terminal, in the course's folder:
# `git checkout -- notebooks/00_start_here.ipynb notebooks/source/00_start_here.py`. This throws your changes in it away. Both files
# hold the same cells; Lab keeps them in step.
#
# ## Take-aways
#
# - A map of weights is read by rows: one query, its keys, a sum of 1. Read its bar before you believe it, and do not take it for a proof.
# - Shapes are compared from the right. A 1 is repeated. `keepdim=True` keeps a summed axis where the next line needs it.
# - The last step of attention is `weights @ values`, an average for each query. A softmax makes weights from scores.
# - When numbers surprise you, restart the kernel and run all cells.
#
# Next: [Queries, keys and values](01_queries_keys_values.ipynb), where scores come from comparing. Names that other texts use stand in
# [Names, notation and shapes](A_names.ipynb), terms in the [Glossary](C_glossary.ipynb).
#
# ## Quiz

# %%
cu.quiz("start_here")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. The kind of network that translates above.
# - PyTorch. [Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html). The rule of section 3, in full.
# - Okabe, M. and Ito, K. (2008). [Color Universal Design](https://jfly.uni-koeln.de/color/). The colors of our pictures.
