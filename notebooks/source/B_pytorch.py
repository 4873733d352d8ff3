# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # PyTorch in an hour
#
# This page has everything that the chapters use of PyTorch, each part in a cell or two.
# You need Python and the idea of a derivative.
# Run the cells from the top and change the numbers in them, or answer the five questions first and skip what you know.

# %%
import tempfile

import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import course_utils as cu
from course_utils.lessons.pytorch.shapes import shapes

cu.seed_everything(0)

# %% [markdown]
# ## Five questions
#
# If you can answer all of them, you need this page only to look something up.

# %% jupyter={"source_hidden": true}
cu.quiz("pytorch")

# %% [markdown]
# ## Work in a notebook
#
# | You want to | In JupyterLab | Keys |
# |---|---|---|
# | run a cell, and go to the next | ▶ in the toolbar | Shift + Enter |
# | run a cell, and stay there | *Run → Run Selected Cell and Do not Advance* | Ctrl + Enter |
# | run all cells above | *Run → Run All Above Selected Cell* | |
# | stop a cell that takes too long | ■ in the toolbar | I, I (press Esc first) |
# | make a cell below, for Python or for text | + in the toolbar | B, then Y or M (press Esc first) |
# | forget everything, and run all again | *Kernel → Restart Kernel and Run All Cells…* | |
#
# The **kernel**, the Python behind the page, remembers what *you* ran, in *your* order.
# Run the second of these cells three times: it counts on.
# When numbers surprise you, restart the kernel and run all cells.

# %%
runs = []

# %%
runs.append("once more")
len(runs)

# %% [markdown]
# If a line ends with `# try`, change its number or text, because every value of the range works.
# A folded cell with `cu.guard` tests a sentence that the page claims.
# In an **exercise** you replace the three dots and run the cell, and then the next cell **checks** your answer, as often as you like.
# In JupyterLab, the check's report has buttons: *Hint* shows one more hint, and *Start over* gives you the empty exercise back. You can also run `cu.checks.average_weights.hint()` or `cu.checks.average_weights.start_over()` in a cell of your own.
# If your notebook has a **solution**, it is folded.
#
# What you have solved and your last answers are kept in your home, in the folder `.attention-course`, and sent to nobody.
# `cu.progress()` lists what is solved, and `cu.checks.average_weights.answers()` shows your answers to one exercise.
#
# Is your machine ready? ✓ is fine, ○ could be better, ✗ has to be fixed, and then the last column says how.

# %% tags=["nbval-ignore-output"]
cu.doctor()

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

# %% [markdown]
# ## Tensors
#
# A **tensor** is a table of numbers with any number of axes.
# Its **shape** says how long each axis is, its **dtype** what kind of numbers it holds.

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x.shape, x.dtype

# %% [markdown]
# So `x` has two rows and three columns of numbers with 32 bits.
# The first axis is `dim=0`, and the last is `dim=-1`.
# Here are some other ways to make a tensor:

# %%
rows = [torch.zeros(3), torch.ones(3), torch.arange(3)]
rows += [torch.linspace(0, 1, 3), torch.randn(3)]
calls = ["zeros(3)", "ones(3)", "arange(3)", "linspace(0, 1, 3)", "randn(3)"]
pd.DataFrame(
    {
        "numbers": [[round(v, 2) for v in row.tolist()] for row in rows],
        "dtype": [str(r.dtype) for r in rows],
    },
    index=calls,
)

# %% [markdown]
# Because `arange` counts, it gives whole numbers (`int64`), and we use such numbers for tokens, too.
# Everything that is learned is a `float32`.
# To get back to Python, use `.item()` for a tensor with one number and `.tolist()` for a larger one.

# %%
x.sum().item(), x[0].tolist()

# %% [markdown]
# ## Indexing
#
# Indexing works as in a list, but along several axes at once.
# A number takes one place and removes the axis, a slice keeps the axis, and `None` adds an axis of length 1.

# %%
shapes(
    "x", "x[0]", "x[:, 1]", "x[:, 1:2]", "x[:, None]", "x.unsqueeze(1)", "x[..., -1]",
    x=x,
)  # fmt: skip

# %% [markdown]
# The three dots mean all axes that are not named.
# You can also index by a tensor.
# Whole numbers pick rows, which is how an embedding works, and True and False keep the entries that are True, while `masked_fill` puts a number in their places.

# %%
# A vector for each of three tokens.
table = torch.tensor([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
tokens = torch.tensor([2, 0, 2])
table[tokens], table[table > 1], table.masked_fill(table > 1, -1.0)

# %% [markdown]
# ## Sums along an axis
#
# A sum, mean or maximum *along* an axis removes that axis.
# With `keepdim=True` it stays, with length 1.

# %%
shapes(
    "x.sum(dim=0)", "x.sum(dim=-1)", "x.sum(dim=-1, keepdim=True)",
    "x.max(dim=-1).values", x=x,
)  # fmt: skip

# %% [markdown]
# ### Exercise 1 · Nobody is preferred
#
# *build · 5 minutes*
#
# Write a function that returns weights in which all keys count alike: one row for each query, one column for each key.
# `torch.ones(2, 5)` makes a tensor of ones, with 2 rows and 5 columns.


# %% tags=["exercise", "build"]
def average_weights(num_queries, num_keys):
    """A tensor of weights, (num_queries, num_keys), in which all keys count alike."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.average_weights(average_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def average_weights_solution(num_queries, num_keys):
    """Each of the keys gets the same part of 1."""
    return torch.full((num_queries, num_keys), 1 / num_keys)


cu.checks.average_weights(average_weights_solution)

# %% [markdown]
# ## Broadcasting
#
# Write two shapes one below the other, flush right.
# In each place the lengths must be equal, or one of them must be 1 or missing, and then it is repeated.
# This is [broadcasting](https://docs.pytorch.org/docs/stable/notes/broadcasting.html).
#
# | | axis −2 | axis −1 | | | axis −2 | axis −1 |
# |---|---|---|---|---|---|---|
# | column | 3 | 1 | | `x` | 2 | 3 |
# | row | 1 | 3 | | one axis | | 3 |
# | result | 3 | 3 | | result | 2 | 3 |
#
# So you don't need a loop for all differences between two lists, because a column minus a row is a table.

# %%
three = torch.tensor([0, 1, 3])
cu.Drawing(
    "column minus row equals result",
    nodes={
        "column": cu.Cells(
            3, 1, "column", shape="(3, 1)", values=three[:, None], color="query"
        ),
        "minus": cu.Note("−"),
        "row": cu.Cells(1, 3, "row", shape="(1, 3)", values=three[None], color="key"),
        "equals": cu.Note("="),
        "result": cu.Cells(
            3, 3, "each with each", shape="(3, 3)", color="wash",
            values=three[:, None] - three[None, :],
        ),
    },
    alt="A column 0, 1, 3 minus a row 0, 1, 3 is a table of 3 by 3 numbers: in row i "
    "and column j stands entry i of the column minus entry j of the row.",
    gap=(14, 20),
)  # fmt: skip

# %%
for one, other in [(x, three), (x, x[:, :1]), (x.T, three)]:
    print(tuple(one.shape), "and", tuple(other.shape), end=": ")
    try:
        print(tuple((one - other).shape))
    except RuntimeError as error:
        print(error)

# %% [markdown]
# In the third pair, 2 meets 3 from the right, at *dimension 1*, which is the second axis.
# Here `x.T - three[:, None]` would fit.
# (When an error is long and red, read its last line first.)
#
# ### Exercise 2 · Six shapes
#
# *predict · 6 minutes*
#
# Which shape comes out, or is it an error?
# Write the six answers down first, and then let the check compare them.
#
# (a) (5, 1) + (5,) · (b) (4, 1, 3) + (2, 3) · (c) (2, 3) * (2,) · (d) `x[0]` of (3, 4) · (e) `x[None, :, None]` of (6,) · (f) `a[:, None] - b`, where `a` is (7, 4) and `b` is (5, 4).


# %% tags=["exercise", "predict"]
def six_shapes():
    """Six answers, for (a) to (f): tuples, or "error"."""
    return ...  # such as [(9,), "error", (8, 9), (9, 9), "error", (8, 8)]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.six_shapes(six_shapes)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def six_shapes_solution():
    """(c): 3 meets 2. (f): (7, 1, 4) meets (5, 4), each of the 7 rows with each of the 5."""
    return [(5, 5), (4, 2, 3), "error", (4,), (1, 6, 1), (7, 5, 4)]


cu.checks.six_shapes(six_shapes_solution)

# %% [markdown]
# Shapes that do not fit are an error.
# Shapes that fit *by accident* are worse.
#
# ### Exercise 3 · Rows that do not sum to 1
#
# *bug · 8 minutes*
#
# Somebody wants weights for the words of a sentence, and near words should get more.
# So a word at a distance of $d$ counts $1/(1+d)$, and then each row is divided by its sum.
# The function runs, but the rows do not sum to 1.
# By which number does it divide the entry in row 0, column 1?
# Try `length = 2` as well: is the bug gone there?
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


# %% tags=["check"] jupyter={"source_hidden": true}
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
# With two words both sums are 1.5, so the bug is still there but doesn't show.
# That is why one small example is not a test.
# With `keepdim=True`, the sums fit the tensor that they came from.

# %% [markdown]
# ## Other shapes for the same numbers
#
# `view` and `reshape` cut the same numbers, in the same order, into another shape; -1 means "as many as are left".
# `transpose` exchanges two axes.
# They are not the same:

# %%
x.reshape(3, 2), x.transpose(0, 1)

# %% [markdown]
# Both have shape (3, 2).
# In the first, the order of the numbers stayed and the rows are mixed; in the second, the columns became rows.
# Splitting an embedding into heads takes one of each: `view` cuts the last axis, `transpose` brings the heads to the front.

# %%
embeddings = torch.randn(2, 5, 12)  # (batch, length, embed_dim)
heads = embeddings.view(2, 5, 3, 4).transpose(1, 2)
heads.shape  # (batch, heads, length, head_dim)

# %% [markdown]
# On the way back, the heads have been mixed by weights and are in memory head by head.
# After the `transpose`, their numbers are not in the order of the axes, so `view` refuses, but `reshape` copies them:

# %%
mixed = torch.rand(2, 3, 5, 5).softmax(dim=-1) @ heads
back = mixed.transpose(1, 2)
try:
    back.view(2, 5, 12)
except RuntimeError as error:
    print(error)
back.reshape(2, 5, 12).shape

# %% [markdown]
# To join tensors, `cat` uses an axis that is there, and `stack` makes a new one.

# %%
torch.cat([x, x]).shape, torch.cat([x, x], dim=-1).shape, torch.stack([x, x]).shape

# %% [markdown]
# ## Products of matrices
#
# `@` multiplies rows by columns: (n, d) times (d, m) gives (n, m).
# Entry (i, j) is the dot product of row i of the left with column j of the right.
# So if we want to compare the rows of two tensors, we transpose the second:

# %%
q = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
k = torch.tensor([[2.0, 3.0], [0.0, 1.0], [4.0, 0.0]])
q @ k.transpose(-2, -1)

# %% [markdown]
# The last entry of the first row is [1, 0] · [4, 0] = 4.
# With more than two axes, `@` multiplies the last two, and all axes before them are a **batch**.
# Here it computes 2 · 8 products at once:

# %%
(torch.randn(2, 8, 5, 4) @ torch.randn(2, 8, 4, 6)).shape

# %% [markdown]
# With `einsum` we name the axes by letters.
# It sums over the letters that come only before the arrow, and keeps the others in the order after the arrow.
# For example, this is the product of each query with each key, for a whole batch:

# %%
queries, keys = torch.randn(2, 5, 4), torch.randn(2, 6, 4)


def by_letters(queries, keys):
    return torch.einsum("bqd,bkd->bqk", queries, keys)


def by_matrices(queries, keys):
    return queries @ keys.transpose(-2, -1)


cu.equal(by_letters, by_matrices, queries, keys)

# %% [markdown]
# By `cu.equal`, the course shows that two ways of computing agree, in their outputs and in the gradients of these.

# %% [markdown]
# ## Softmax and the cross-entropy
#
# A **classifier** gives a number to each class, the class's **logit**, and the **softmax** turns these logits into positive numbers that sum to 1, its probabilities.
# A **language model** is a classifier, too: its classes are the tokens that could come next.
# How wrong is it?
# The **cross-entropy** is minus the logarithm of the probability that it gives to the right class, on average.
# PyTorch's function takes the logits themselves, and the numbers of the right classes.

# %%
logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
classes = torch.tensor([0, 1])
probabilities = logits.softmax(dim=-1)
by_hand = -probabilities[[0, 1], classes].log().mean()
probabilities, by_hand, nn.functional.cross_entropy(logits, classes)

# %% [markdown]
# The second row is a model that knows nothing: it gives 1/3 to each class, and has a loss of log 3 ≈ 1.10.
# The first row is better.

# %% [markdown]
# ## Gradients
#
# A tensor with `requires_grad=True` remembers how other numbers were computed from it.
# If you then call `backward()` on one of these numbers, its derivatives are put into `.grad`, the **gradient**.

# %%
w = torch.tensor([1.0, 3.0], requires_grad=True)
loss = (w**2).sum()
loss.backward()
w.grad

# %% [markdown]
# The derivative of $w_0^2 + w_1^2$ is $(2 w_0, 2 w_1)$, which is (2, 6) at (1, 3).
# A gradient is *added* to what is there, so a second call without clearing gives twice as much:

# %%
(w**2).sum().backward()
w.grad

# %% [markdown]
# That is why training loops begin with `zero_grad()`.
# Where no gradient is needed, `torch.no_grad()` saves the memory for it:

# %%
with torch.no_grad():
    fixed = (w**2).sum()
loss.requires_grad, fixed.requires_grad

# %% [markdown]
# ## Modules and parameters
#
# A **module** is an object with parameters and a `forward`.
# If you assign an `nn.Parameter` to it, or a module that has some, they are registered, which means that they are listed, moved, saved and trained.
# A plain tensor is not.


# %%
class Line(nn.Module):
    """y = slope · x + shift, with both learned."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(1))
        self.shift = nn.Parameter(torch.zeros(1))
        self.forgotten = torch.zeros(1)

    def forward(self, x):
        return self.slope * x + self.shift


line = Line()
[name for name, _ in line.named_parameters()]

# %% [markdown]
# Because `forgotten` is missing from the list, no optimizer would move it.
# You call a module like a function, `line(x)`, which runs its `forward`.
#
# A model often has a number of equal layers.
# In a plain list these are forgotten like the plain tensor, so we put them into an **`nn.ModuleList`**.
# Watch how many parameters each of these two finds:


# %%
class Stack(nn.Module):
    """Three lines, one after the other, in the container that is given."""

    def __init__(self, container):
        super().__init__()
        self.lines = container([Line(), Line(), Line()])

    def forward(self, x):
        for line in self.lines:
            x = line(x)
        return x


[len(list(Stack(container).parameters())) for container in (list, nn.ModuleList)]

# %% [markdown]
# Both compute the same, and only the second would learn.
#
# A **`state_dict`** has all numbers of a module by name, which is what we save, and `load_state_dict` puts them into another module of the same kind.

# %%
stack, copied = Stack(nn.ModuleList), Stack(nn.ModuleList)
with torch.no_grad():
    stack.lines[2].shift += 5
with tempfile.TemporaryDirectory() as folder:
    torch.save(stack.state_dict(), f"{folder}/stack.pt")
    print(copied.load_state_dict(torch.load(f"{folder}/stack.pt", weights_only=True)))
list(copied.state_dict())[-2:], copied(torch.zeros(1)).item()

# %% [markdown]
# The copy has the 5 as well.
# With `weights_only=True` a file can hold numbers only, so a file from somebody else runs no code on your machine.
# (A training that shall go on later needs more than the model, see [What a checkpoint must hold](12_training_transformers_further.ipynb#What-a-checkpoint-must-hold).)
#
# These are the modules that the course uses most:

# %%
layers = {
    "nn.Linear(4, 3)": nn.Linear(4, 3),
    "nn.Embedding(10, 4)": nn.Embedding(10, 4),
    "nn.LayerNorm(4)": nn.LayerNorm(4),
    "nn.Dropout(0.1)": nn.Dropout(0.1),
}
pd.DataFrame(
    {
        "parameters": {
            name: {n: tuple(p.shape) for n, p in layer.named_parameters()}
            for name, layer in layers.items()
        }
    }
)

# %% [markdown]
# A linear layer keeps its matrix as (out, in) and multiplies by its transpose, so `layer(x)` is `x @ layer.weight.T` plus the bias:

# %%
layer, row = layers["nn.Linear(4, 3)"], torch.randn(1, 4)
cu.equal(lambda x: x @ layer.weight.T + layer.bias, layer, row)

# %% [markdown]
# ## A training loop
#
# To train is to make the **loss** smaller, the number that says how wrong a model is.
# All trainings of the course share five lines for this: clear the gradients, compute the loss, differentiate, step, note down.
# The **optimizer** makes the steps.
# Adam divides each step by the size of the slopes that it has seen, so `lr`, the learning rate, is about how far a parameter moves at first, and AdamW can also pull parameters toward 0 (`weight_decay`).
#
# Let's find a line again from fifty points on $y = 2x + 1$, with noise.
# One pass through all the data is called an **epoch**; here each step is an epoch, because it sees all the points.

# %% tags=["nbval-ignore-output"]
inputs = torch.linspace(-1, 1, 50)
outputs = 2 * inputs + 1 + 0.1 * torch.randn(50)
optimizer = torch.optim.AdamW(line.parameters(), lr=0.05, weight_decay=0.0)
losses = []
for _ in range(200):
    optimizer.zero_grad()
    error = (line(inputs) - outputs).square().mean()
    error.backward()
    optimizer.step()
    losses.append(error.item())
slope, shift = line.slope.item(), line.shift.item()
print(f"slope {slope:.2f}, shift {shift:.2f}, loss {losses[-1]:.3f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
picture, ax = cu.subplots(
    width=5.0,
    height=2.4,
    alt="The loss over 200 steps falls steeply and levels off.",
)
ax.plot(losses)
ax.set(xlabel="step", ylabel="mean squared error", yscale="log")
picture

# %% [markdown]
# The slope comes out near 2 and the shift near 1.
# The loss ends near 0.01, which is the variance of the noise, so there is nothing left to learn for a line.
# A much larger model could go lower, but only if it learned the noise of these fifty points by heart.
# This is **overfitting**, and we notice it by a loss on other data, which it makes worse.
#
# Fifty points fit into one step, but most data don't, and then a step takes a **batch** of them.
# A **loader** cuts the data into batches, in a new random order in each epoch:

# %%
data = TensorDataset(inputs, outputs)
loader = DataLoader(data, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(0))
[tuple(some_inputs.shape) for some_inputs, _ in loader]

# %% [markdown]
# The last batch has the two points that are left.
# In your own training you'd write `for epoch in range(20):` around this loop, and the five lines inside it.
# The chapters draw their batches in a line or two of their own, so you can see what happens.
#
# Two switches belong to every loop: `model.train()` before you train, and `model.eval()` before you measure anything.
# Dropout is on after the first and off after the second:

# %%
dropout = nn.Dropout(0.5)
training = dropout.train()(torch.ones(1000))
measuring = dropout.eval()(torch.ones(1000))
pd.DataFrame(
    [
        [(z == 0).float().mean().item(), z.max().item(), z.mean().item()]
        for z in (training, measuring)
    ],
    columns=["share of zeros", "largest", "mean"],
    index=["train()", "eval()"],
).round(2)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Descent finds the line, and leaves the variance of the noise."):
    assert abs(slope - 2) < 0.15 and abs(shift - 1) < 0.15 and 0.004 < losses[-1] < 0.02

# %% [markdown]
# In training, about half of the thousand ones are 0 and the others are doubled, so the mean stays near 1.
# After `eval()` nothing happens to them.

# %% [markdown]
# ## Devices
#
# A tensor is in the memory of the CPU or of a GPU, and only tensors on the same device can be combined.
# With `.to(device)` you move a model or a batch.
# The course never needs a GPU; `cu.doctor()` says whether there is one.

# %%
device = next(line.parameters()).device
line.to(device)(inputs[:2].to(device)).shape, str(device)

# %% [markdown]
# ## Seeds
#
# Random numbers come from a generator that starts at a **seed**, so the same seed gives the same numbers.

# %%
cu.seed_everything(1)
first = torch.randn(3)
cu.seed_everything(1)
second = torch.randn(3)
torch.equal(first, second)

# %% [markdown]
# That is all that [Queries, keys and values](01_queries_keys_values.ipynb) needs, and most of what comes later.
# To see what a function does and which shapes it takes, read its docstring with `help(torch.cat)`, or press Shift + Tab with the cursor on its name.
