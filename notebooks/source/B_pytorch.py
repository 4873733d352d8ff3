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
# What the chapters use of PyTorch, each in a cell or two.
# You need Python and the idea of a derivative.
# Run the cells from the top, and change the numbers in them.

# %%
import pandas as pd
import torch
from torch import nn

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Tensors
#
# A **tensor** is a table of numbers with any number of axes.
# Its **shape** says how long each axis is, its **dtype** what kind of numbers it holds.

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x.shape, x.dtype

# %% [markdown]
# Two rows, three columns, numbers with 32 bits.
# The first axis is `dim=0`, the last is `dim=-1`.
# Some ways to make one:

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
# `arange` counts, so it gives whole numbers, `int64`; tokens are such numbers.
# Everything that is learned is a `float32`.
# A tensor with one number becomes a Python number by `.item()`, a larger one a list by `.tolist()`.

# %%
x.sum().item(), x[0].tolist()

# %% [markdown]
# ## Indexing
#
# As in a list, and along several axes at once: a number takes one place and removes the axis, a slice keeps the axis, and `None` adds an axis of length 1.

# %%
pd.Series(
    {
        "x": tuple(x.shape),
        "x[0]": tuple(x[0].shape),
        "x[:, 1]": tuple(x[:, 1].shape),
        "x[:, 1:]": tuple(x[:, 1:].shape),
        "x[:, None]": tuple(x[:, None].shape),
        "x.unsqueeze(1)": tuple(x.unsqueeze(1).shape),
        "x[..., -1]": tuple(x[..., -1].shape),
    },
    name="shape",
).to_frame()

# %% [markdown]
# The three dots stand for all axes that are not named.
# A tensor of whole numbers picks rows, which is how an embedding works; a tensor of True and False keeps the entries that are True, and `masked_fill` puts a number in their places.

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
pd.Series(
    {
        "x.sum(dim=0)": x.sum(dim=0).tolist(),
        "x.sum(dim=-1)": x.sum(dim=-1).tolist(),
        "x.sum(dim=-1, keepdim=True)": x.sum(dim=-1, keepdim=True).tolist(),
        "x.max(dim=-1).values": x.max(dim=-1).values.tolist(),
    },
    name="result",
).to_frame()

# %% [markdown]
# ## Broadcasting
#
# Two tensors of different shapes can be added or multiplied if, written under each other *from the right*, each pair of axes has the same length or one of the two is 1 or missing.
# The short one is used again along that axis.

# %%
a, b = torch.randn(2, 3), torch.randn(3)
c, d = torch.randn(4, 1), torch.randn(1, 5)
(a + b).shape, (c * d).shape

# %% [markdown]
# So all differences between two lists need no loop: a column minus a row is a table.

# %%
queries, keys = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0, 5.0])
queries[:, None] - keys

# %% [markdown]
# Shapes that do not fit are an error, and its message names both lengths.
# Shapes that fit *by accident* are worse.
# Here the rows of a square table are divided by their sums, once rightly and once with the axis lost:

# %%
square = torch.tensor([[1.0, 3.0], [1.0, 1.0]])
right = square / square.sum(dim=-1, keepdim=True)
wrong = square / square.sum(dim=-1)
right.sum(dim=-1), wrong.sum(dim=-1)

# %% [markdown]
# The rows should sum to 1.
# Without `keepdim` the sums have shape (2,) and stand along the *last* axis: column j was divided by the sum of row j.

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
# The way back is the commonest error of all.
# After a `transpose` the numbers no longer lie in the order of the axes, and `view` refuses; `reshape` copies them where it must:

# %%
back = heads.transpose(1, 2)
try:
    back.view(2, 5, 12)
except RuntimeError as error:
    print(error)
torch.equal(back.reshape(2, 5, 12), embeddings)

# %% [markdown]
# `cat` joins tensors along an axis that is there; `stack` makes a new one.

# %%
torch.cat([x, x]).shape, torch.cat([x, x], dim=-1).shape, torch.stack([x, x]).shape

# %% [markdown]
# ## Products of matrices
#
# `@` multiplies rows by columns: (n, d) times (d, m) gives (n, m).
# Entry (i, j) is the dot product of row i of the left with column j of the right.
# To compare the rows of two tensors, the second is transposed:

# %%
q = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
k = torch.tensor([[2.0, 3.0], [0.0, 1.0], [4.0, 0.0]])
q @ k.transpose(-2, -1)

# %% [markdown]
# The last entry of the first row is [1, 0] · [4, 0] = 4.
# With more than two axes, `@` multiplies the last two, and all axes before them are a **batch**: here 2 · 8 products at once.

# %%
(torch.randn(2, 8, 5, 4) @ torch.randn(2, 8, 4, 6)).shape

# %% [markdown]
# ## Softmax and the cross-entropy
#
# The **softmax** takes any numbers to positive ones that sum to 1.
# A classifier's last numbers before it are called **logits**.
# The **cross-entropy** is minus the logarithm of the probability of the right class, on average; PyTorch's function takes the logits themselves, and the numbers of the right classes.

# %%
logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
classes = torch.tensor([0, 1])
probabilities = logits.softmax(dim=-1)
by_hand = -probabilities[[0, 1], classes].log().mean()
probabilities, by_hand, nn.functional.cross_entropy(logits, classes)

# %% [markdown]
# The second row is a model that knows nothing: 1/3 each, and a loss of log 3 ≈ 1.10.
# The first row is better.

# %% [markdown]
# ## Gradients
#
# A tensor with `requires_grad=True` remembers how other numbers were computed from it.
# `backward()` then puts the derivative of the one number that it is called on into `.grad`.

# %%
w = torch.tensor([1.0, 3.0], requires_grad=True)
loss = (w**2).sum()
loss.backward()
w.grad

# %% [markdown]
# The derivative of $w_0^2 + w_1^2$ is $(2 w_0, 2 w_1)$, at (1, 3) it is (2, 6).
# Gradients are *added* to what is there, so a second call without clearing gives twice as much:

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
# Assigning an `nn.Parameter`, or a module that has some, registers it: it is listed, moved, saved and trained.
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
# `forgotten` is missing from the list, so no optimizer would move it.
# A module is called like a function, `line(x)`, which runs its `forward`.
# The ones that the course uses most:

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
# A linear layer keeps its matrix as (out, in) and multiplies by its transpose, so that `layer(x)` is `x @ layer.weight.T` plus the bias.

# %%
layer, row = layers["nn.Linear(4, 3)"], torch.randn(1, 4)
cu.equal(lambda x: x @ layer.weight.T + layer.bias, layer, row)

# %% [markdown]
# ## A training loop
#
# Five lines that all trainings of the course share: clear the gradients, compute the loss, differentiate, step, note down.
# The data lie on the line $y = 2x + 1$, with noise.

# %%
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
    alt="The loss over 200 steps falls from about 2.4 and levels off near 0.01.",
)
ax.plot(losses)
ax.set(xlabel="step", ylabel="mean squared error", yscale="log")
picture

# %% [markdown]
# The slope comes out near 2 and the shift near 1.
# The loss ends near 0.01, the variance of the noise: nothing is left to learn for a line.
#
# Two switches belong to every loop: `model.train()` before training and `model.eval()` before anything is measured.
# Dropout is on in the first and off in the second:

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

# %% [markdown]
# About half of the thousand ones are 0 in training, and the others are doubled, so that the mean stays near 1.
# In `eval()` nothing happens to them.

# %% [markdown]
# ## Devices
#
# A tensor lies in the memory of the CPU or of a GPU, and only tensors on the same device can be combined.
# Model and batch are moved by `.to(device)`.
# The course never needs a GPU; `cu.doctor()` says whether there is one.

# %%
device = next(line.parameters()).device
line.to(device)(inputs[:2].to(device)).shape, str(device)

# %% [markdown]
# ## Seeds
#
# Random numbers come from a generator that starts at a **seed**: the same seed, the same numbers.

# %%
cu.seed_everything(1)
first = torch.randn(3)
cu.seed_everything(1)
second = torch.randn(3)
torch.equal(first, second)

# %% [markdown]
# That is all that [Queries, keys and values](01_queries_keys_values.ipynb) needs, and most of what comes later.
# What a function does and which shapes it takes stands in its docstring: `help(torch.cat)`, or Shift + Tab with the cursor on the name.
