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
# **How does a network learn where an island ends?**
# It is shown two hundred points on a map, each labeled *land* or *water*.
# Here you build the network that draws the coast, and on the way you meet the PyTorch and the vocabulary of training that most chapters use.
# You need Python and the idea of a derivative.
# If a cell doesn't do what you expect, see [If something goes wrong](#If-something-goes-wrong).

# %% [markdown] tags=["paths"]
# On the path to GPT: [Tensors](#Tensors), [Broadcasting](#Broadcasting), [Other shapes: view, reshape, transpose](#Other-shapes:-view,-reshape,-transpose), [Gradients](#Gradients), [Softmax and the cross-entropy](#Softmax-and-the-cross-entropy), [Layers: linear, ReLU, hidden](#Layers:-linear,-ReLU,-hidden), [A training loop](#A-training-loop), [Modules and parameters](#Modules-and-parameters).
# On the path to a real model and to translation: [Tensors](#Tensors), [Broadcasting](#Broadcasting), [Choosing entries: topk, gather, scatter](#Choosing-entries:-topk,-gather,-scatter), [Other shapes: view, reshape, transpose](#Other-shapes:-view,-reshape,-transpose), [Products of matrices](#Products-of-matrices), [Gradients](#Gradients), [Softmax and the cross-entropy](#Softmax-and-the-cross-entropy), [Layers: linear, ReLU, hidden](#Layers:-linear,-ReLU,-hidden), [A training loop](#A-training-loop), [Overfitting: training and validation set](#Overfitting:-training-and-validation-set), [Modules and parameters](#Modules-and-parameters).
# On the path to images: [Tensors](#Tensors), [Broadcasting](#Broadcasting), [Choosing entries: topk, gather, scatter](#Choosing-entries:-topk,-gather,-scatter), [Other shapes: view, reshape, transpose](#Other-shapes:-view,-reshape,-transpose), [Products of matrices](#Products-of-matrices), [Gradients](#Gradients), [Softmax and the cross-entropy](#Softmax-and-the-cross-entropy), [Layers: linear, ReLU, hidden](#Layers:-linear,-ReLU,-hidden), [A training loop](#A-training-loop), [Overfitting: training and validation set](#Overfitting:-training-and-validation-set), [Modules and parameters](#Modules-and-parameters), [Convolutions: kernel, stride, channels](#Convolutions:-kernel,-stride,-channels).
# On the path *Kernels*: [Tensors](#Tensors), [Broadcasting](#Broadcasting), [Choosing entries: topk, gather, scatter](#Choosing-entries:-topk,-gather,-scatter), [Products of matrices](#Products-of-matrices), [Gradients](#Gradients), [Softmax and the cross-entropy](#Softmax-and-the-cross-entropy), [Layers: linear, ReLU, hidden](#Layers:-linear,-ReLU,-hidden), [A training loop](#A-training-loop), [Modules and parameters](#Modules-and-parameters).

# %%
import torch
from torch import nn
from torch.autograd import grad

import course_utils as cu
from course_utils.lessons.pytorch.island import draw_map, survey
from course_utils.lessons.pytorch.shapes import shapes

cu.seed_everything(0)

# %%
points, land = survey(200)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
picture, ax = cu.subplots(
    width=3.0,
    height=3.0,
    alt="A square map with 200 points. Circles of land lie within a disk in the middle, crosses of water around it.",
)
draw_map(ax, points, land, title="○ land, × water")
picture

# %% [markdown]
# ## Skip what you know
#
# If you can answer all five questions, use this page only to look something up.

# %% jupyter={"source_hidden": true}
cu.quiz("pytorch")

# %% [markdown]
# ## Tensors
#
# A **tensor** is a table of numbers with any number of axes.
# Its **shape** says how long each axis is, and its **dtype** says which kind of numbers it holds.

# %%
points.shape, points.dtype, land.shape, land.dtype

# %% [markdown]
# Each of the 200 rows of `points` holds the two coordinates of a point.
# `land` holds one integer for each point, 1 for land and 0 for water. Classes and [tokens](C_glossary.ipynb#token) are always given as integers.
# The first axis is `dim=0`, and the last is `dim=-1`.
#
# A number as an index takes one entry and removes the axis.
# A slice keeps the axis, and `None` adds an axis of length 1.
# A sum, a mean or a maximum *along* an axis removes that axis, unless we write `keepdim=True`.
# Here are the first three points of the map.

# %%
x = points[:3]
shapes("x[0]", "x[:, 1]", "x[..., 1]", "x[:, None]", "x[x > 0]", "x[[1, 0, 1]]", "x.mean(dim=0)", "x.sum(dim=-1, keepdim=True)", x=x)  # fmt: skip

# %% [markdown]
# The three dots stand for all axes that are not named.
# A test such as `x > 0` keeps the entries that pass it, and a list of integers picks rows, as an [embedding](C_glossary.ipynb#embedding) does.
# To get back to Python, use `.item()` for a single number and `.tolist()` for more.
#
# ### Exercise 1 · No favorites
#
# *build · 3 minutes*
#
# Attention gives each query a row of weights, with a column for each key.
# Write a function that returns equal weights for all keys.
# `torch.ones(2, 5)` makes a tensor of ones, with 2 rows and 5 columns.


# %% tags=["exercise", "build"]
def average_weights(num_queries, num_keys):
    """A tensor of weights, (num_queries, num_keys), equal for all keys."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.average_weights(average_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def average_weights_solution(num_queries, num_keys):
    """Each key gets the same share of 1."""
    return torch.full((num_queries, num_keys), 1 / num_keys)


cu.checks.average_weights(average_weights_solution)

# %% [markdown]
# ## Broadcasting
#
# How far is each point from the middle of the map, and from a place in the upper right?
# PyTorch finds all 400 distances without a loop, because it repeats an axis of length 1 as often as needed.
# The two shapes are compared from the right, and on each axis the lengths must be equal, or one of them must be 1 or missing.
# This is **[broadcasting](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)**.
#
# | | | | |
# |---|---|---|---|
# | `points[:, None]` | 200 | 1 | 2 |
# | `places` | | 2 | 2 |
# | their difference | 200 | 2 | 2 |

# %%
places = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
apart = points[:, None] - places
distance = apart.square().sum(dim=-1).sqrt()
apart.shape, distance.shape, land[distance[:, 0] < 1].float().mean()

# %% [markdown]
# The new axis makes each point meet both places, and the sum over the last axis turns two differences into one distance.
# All points nearer than 1 to the middle are land.
#
# Shapes that don't fit raise an error, and its last line says which lengths clashed.
# Shapes that fit *by accident* are worse, because nothing warns you.

# %% [markdown]
# ## Choosing entries: topk, gather, scatter
#
# Each of the two places now asks the two nearest of our first six points whether it is land.
# With `topk` we find the columns of the largest entries in each row, or of the smallest.
# With `gather` we read from given columns, and with `scatter` we write into them.

# %%
far = distance[:6].mT  # (places, points): .mT exchanges the two axes
two = far.topk(2, dim=-1, largest=False).indices
weights = torch.zeros(2, 6).scatter(-1, two, 0.5)
two, far.gather(-1, two), weights

# %% [markdown]
# In the first row the two smallest distances are in columns 4 and 5, so `gather` reads 0.45 and 0.58 there, and `scatter` writes a weight of 0.5 into both.
# For one column alone there are `argmax` and `argmin`.
# Two relatives are `masked_fill`, which takes a tensor of True and False and writes a number at each True, and `cumsum`, which adds up along an axis.

# %%
far.argmin(dim=-1), far.masked_fill(far > 1.5, 0.0), weights.cumsum(dim=-1)

# %% [markdown]
# ## Other shapes: view, reshape, transpose
#
# With `reshape` or `view` we cut the same numbers, in the same order, into another shape. A length of −1 means "as many as are left".
# With `transpose` we exchange two axes, and for the last two there is also `.mT` (for a matrix, `.T`).
# The first two rows of the table have the same shape. Compare their entries.

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
shapes("x.reshape(3, 2)", "x.transpose(0, 1)", "x.flatten()", "x.flatten().unflatten(0, (3, 2))", "x[0].unfold(0, 2, 1)", "torch.cat([x, x])", "torch.stack([x, x])", x=x)  # fmt: skip

# %% [markdown]
# A `reshape` mixes rows, while a `transpose` turns columns into rows.
# In `flatten` several axes become one, `unflatten` splits one axis, and `unfold` cuts windows, here every pair of neighbors.
# With `permute` we put all axes into a new order.
#
# To join tensors, `cat` uses an existing axis, and `stack` makes a new one.

# %% [markdown]
# ## Products of matrices
#
# `@` multiplies rows by columns, so (n, d) times (d, m) gives (n, m).
# Entry (i, j) is the dot product of row i of the left with column j of the right.
# To compare each *row* of `x`, our three points, with each *row* of `winds`, we therefore transpose `winds`.

# %%
x, winds = points[:3], torch.tensor([[1.0, 0.0], [1.0, 1.0]])  # east, northeast
x @ winds.mT, weights @ land[:6].float(), (torch.randn(8, 5, 4) @ torch.randn(8, 4, 6)).shape

# %% [markdown]
# The last entry of the first row is −0.01 · 1 + 0.86 · 1 = 0.85, and it grows when a point moves to the northeast.
# The second product averages what the two nearest points say. For the middle both say land, and for the other place they disagree, so it gets ½.
# In the last product `@` multiplies the last two axes, and the axis before them is a **batch**, so we get eight products at once.

# %% [markdown]
# ## Gradients
#
# A network learns by small steps, and the **gradient** tells it where to go. It is the slope of one number with respect to each entry of a tensor.
# Our number is the squared distance of a boat from the middle of the island.
# PyTorch tracks a tensor if it has `requires_grad=True`.

# %%
boat = torch.tensor([1.0, 1.5], requires_grad=True)
grad((boat**2).sum(), boat)

# %% [markdown]
# The slopes of x² + y² are 2x and 2y, which are 2 and 3 at (1, 1.5).
#
# The gradient points out to sea, so the boat goes *against* it, again and again.
# This is **gradient descent**, and the size of its steps is the **learning rate**.
# The coast is at a distance of 1. At which learning rates is the boat still at sea after twenty steps?

# %%
rate = 0.1  # try 0.01 … 0.9
boat = torch.tensor([1.0, 1.5])
for _ in range(20):
    (slope,) = grad((boat.requires_grad_() ** 2).sum(), boat)
    boat = boat.detach() - rate * slope  # detach: forget how it was computed
boat

# %% [markdown]
# Training loops call `backward()` instead, which finds the gradients of *all* tracked tensors and *adds* them to their `.grad`.

# %%
boat = torch.tensor([1.0, 1.5], requires_grad=True)
for _ in range(2):
    (boat**2).sum().backward()
    print(boat.grad)

# %% [markdown]
# Because the gradients add up, each step of a training loop begins with `zero_grad()`.
# Under `with torch.no_grad():` nothing is tracked, which saves memory.
# One tool from Python's `functools` will come up later: `partial(f, T=0.1)` is the function `f` with its argument `T` fixed at 0.1.

# %% [markdown]
# ## Softmax and the cross-entropy
#
# A **classifier** gives each class a number, its **logit**.
# The **softmax** turns the logits into probabilities, which are positive and sum to 1.
# A **loss** is a number that says how wrong the probabilities are.
# The **cross-entropy** is −ln of the probability that was given to the right answer, averaged over the examples.
# Here are two points of the map, the first in the water (class 0) and the second on land (class 1).

# %%
logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]])  # (points, classes)
right = torch.tensor([0, 1])
probabilities = logits.softmax(dim=-1)
by_hand = -probabilities[[0, 1], right].log()
probabilities, by_hand, by_hand.mean(), nn.functional.cross_entropy(logits, right)

# %% [markdown]
# With two lists as indices we get one entry for each pair of a row and a column, here (0, 0) and (1, 1).
# The first point has 0.88 for the right class and a loss of 0.13, and the second has ½ and a loss of ln 2 = 0.69.
# PyTorch's `cross_entropy` takes the logits themselves, and returns the mean.
# A model that gives ten classes equal chances has a loss of ln 10 = 2.3, so one with a lower loss has learned something.
# A **language model** is a classifier, too, and its classes are the tokens that could come next.

# %% [markdown]
# ## Layers: linear, ReLU, hidden
#
# A **linear layer** computes weighted sums of its inputs, and adds a **bias** to each.
# `nn.Linear(2, 5)` turns two numbers into five by `x @ weight.T + bias`.
# Its weights and biases are **parameters**, the numbers that training changes.
#
# Two linear layers in a row are only another linear layer, so we put a **ReLU** between them, which turns negative numbers into 0 and keeps the others.
# What lies between the two linear layers is a **hidden layer**, and each of its numbers is a *hidden unit*.
# All of this together is a **network**.
# Ours turns a point into two logits, one for water and one for land, and `nn.Sequential` runs its layers one after the other.

# %%
network = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2))
network(points).shape, sum(p.numel() for p in network.parameters())

# %% [markdown]
# Its 27 parameters are random so far.
# Each hidden unit has a straight line on the map. On one side of the line the unit is 0, and on the other side it grows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "What is the smallest number of hidden units with which the coast can close around the island?",
    ["1", "2", "3", "8"],
    answer="3",
    wrong={
        "1": "Think of a unit as a wall, beyond which the network expects water. What lies on the other side of one wall?",
        "2": "Two walls can cross, or stand side by side. Is there still a way out between them?",
        "8": "Eight walls make a nice coast. But how few straight walls can surround a place?",
    },
    why="Think of each unit as a wall, beyond which the network expects water. Two walls leave a way out, where both units "
    "are 0, and three can surround the island.",
)

# %% [markdown]
# ## A training loop
#
# Training makes the loss smaller, step by step.
# For each step we take a **batch** of 20 points, clear the gradients, compute the loss, ask for its gradients, and let the **optimizer** move the parameters.
# One pass through all the points is an **epoch**: `randperm` puts their numbers into a random order, and `split` cuts this order into batches.


# %%
def one_epoch(network, optimizer, points, land):
    """Train on all points once, in batches of 20."""
    for batch in torch.randperm(len(points)).split(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(points[batch]), land[batch])
        loss.backward()
        optimizer.step()


seed = 0  # try 0 … 9
most = 8  # try 4 … 30
trained = {}
for hidden in (1, 2, 3, most):
    cu.seed_everything(seed)
    network = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(100):
        one_epoch(network, optimizer, points, land)
    trained[hidden] = network

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
accuracies = {
    hidden: (network(points).argmax(dim=-1) == land).float().mean().item()
    for hidden, network in trained.items()
}
picture, axes = cu.subplots(
    1,
    4,
    width=9.0,
    height=2.6,
    alt="Four maps. With one hidden unit the network sees no land, with two a strip of land that runs out of the map, with "
    "three a hexagon around the island, and with eight a polygon that is nearly round.",
)
for ax, (hidden, network) in zip(axes, trained.items(), strict=True):
    title = f"{hidden} hidden, accuracy {accuracies[hidden]:.3f}"
    draw_map(ax, points, land, network, title=title)
picture

# %% [markdown]
# Each map shows what a network takes for land.
# With two hidden units the land runs out of the map, with three the coast is closed, and with eight it is nearly round.
# The coast bends where it crosses the line of a unit, and it crosses each of three lines twice, so three units make a hexagon.
# The **accuracy** is the share of points that get the right class.
# We compare it with a **baseline**, a simple method that a model has to beat.
# Ours always says *water*, which is right for 67% of the points, and the network with one unit is no better.
#
# Try other numbers of units, and another [seed](C_glossary.ipynb#seed), the number from which all random numbers follow. Then three units may leave the coast open.
# A network can have a solution that its training doesn't find.
#
# The optimizer **Adam** scales each parameter's steps by the gradients seen so far. AdamW also pulls the parameters toward 0 (`weight_decay`).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "One hidden unit is no better than always saying water, and three surround the island.",
    given=(seed, most) == (0, 8),
):
    baseline = 1 - land.float().mean().item()
    assert round(baseline, 2) == 0.67 and accuracies[1] < baseline + 0.02
    assert accuracies[3] > 0.94 and accuracies[most] > 0.97

# %% [markdown]
# ## Overfitting: training and validation set
#
# Now the map has only 40 points, and one in ten has the wrong label.
# What we train on is the **training set**.
# A thousand other points are the **validation set**, which shows how well the network does on points that it has never seen.
# Our network now has 64 hidden units, and we note both losses after each epoch.

# %%
few, labels = survey(40, wrong=0.1, seed=1)  # training set
others, truth = survey(1000, wrong=0.1, seed=2)  # validation set
large = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(large.parameters(), lr=0.01)
losses = []
for _ in range(150):
    one_epoch(large, optimizer, few, labels)
    with torch.no_grad():
        on_few = nn.functional.cross_entropy(large(few), labels).item()
        on_others = nn.functional.cross_entropy(large(others), truth).item()
    losses.append((on_few, on_others))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
picture, (ax, island_map) = cu.subplots(
    1,
    2,
    width=7.5,
    height=2.9,
    alt="Left: the training loss falls to nearly 0, the validation loss falls at first and then rises far above its "
    "beginning. Right: a coast that runs to the left edge of the map, to a mislabeled point.",
)
for values, name, color in zip(
    zip(*losses, strict=True), ("training", "validation"), ("key", "query"), strict=True
):
    ax.plot(range(1, 151), values, label=name, color=cu.COLORS[color])
ax.set(xlabel="epoch", ylabel="cross-entropy")
ax.legend()
draw_map(island_map, few, labels, large, title="after 150 epochs")
picture

# %% [markdown]
# The training loss goes on falling, while the validation loss starts to rise after about twenty epochs.
# The network now fits the wrong labels, too, and its coast stretches out to a mislabeled point at the left edge of the map.
# This is **overfitting**.
# We can stop at the lowest validation loss, collect more data, or take a smaller network.
#
# A setting that we choose ourselves, such as the number of hidden units, the learning rate or the number of epochs, is a **hyperparameter**.
# We choose the value with the lowest validation loss, and so the choice fits the validation set a little too well.
# The honest final number comes from a **test set** that played no part in any choice.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The validation loss starts to rise while the training loss goes on falling."):
    lowest = min(range(150), key=lambda epoch: losses[epoch][1])
    assert 5 < lowest < 40 and losses[-1][1] > 1.5 * losses[lowest][1]
    assert losses[-1][0] < 0.5 * losses[lowest][0]

# %% [markdown]
# ## Modules and parameters
#
# Each layer and each network is a **module**, an object with parameters and a `forward`.
# You call it like a function, `coast(points)`, and it runs its `forward`.
# Its `__init__` first calls `super().__init__()`, and PyTorch starts the lists of the module's parts.
# Here is our network once more, written as a class, with two lists of the tensors in it.


# %%
class Coast(nn.Module):
    """Points, (…, 2), to logits for water and land, (…, 2)."""

    def __init__(self, hidden):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, hidden), nn.Linear(hidden, 2)])
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("middle", torch.zeros(2))
        self.plain = torch.zeros(2)

    def forward(self, points):
        first, second = self.layers
        return self.scale * second(first(points - self.middle).relu())


coast = Coast(3)
[name for name, _ in coast.named_parameters()], list(coast.state_dict())

# %% [markdown]
# The first list holds the parameters, which an optimizer trains. These are our `nn.Parameter` and the parameters of both layers, which PyTorch finds because the layers are in an `nn.ModuleList`.
# The second list is the **`state_dict`**, which we save and load. It contains the **buffer** `middle` as well, a tensor that is saved with the module but never trained.
# A plain tensor is in neither list, and neither are layers kept in a plain Python list.
#
# Three more modules come up often.
# `nn.Embedding(10, 4)` is a table with a row of 4 learned numbers for each of 10 tokens.
# `nn.LayerNorm(4)` brings the mean of 4 numbers to 0 and their variance to 1.
# After `model.train()`, `nn.Dropout(0.1)` sets each of its inputs to 0 with probability 0.1, and scales up the others.
# After `model.eval()`, which we call before we measure anything, it does nothing.

# %% [markdown]
# ## Convolutions: kernel, stride, channels
#
# A **convolution** slides a small window over a picture and computes the same weighted sum at each position.
# The weights of the window are its **kernel**.
# The numbers that a pixel holds are its **channels**, one for a gray picture and three for a color photograph.
# Our picture is a map of 4 × 4 pixels, water 0 and land 1, and a kernel of one row, (−1, 1), looks for the coast.

# %%
chart = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(1, 1, 4, 4)  # (batch, channels, height, width)
kernel = torch.tensor([[[[-1.0, 1.0]]]])  # (channels out, channels in, height, width)
nn.functional.conv2d(chart, kernel)[0, 0]

# %% [markdown]
# Where the window straddles the coast we get a 1, and elsewhere a 0. The result is one pixel narrower.
# In `nn.Conv2d` the kernels are learned, one for each pair of an input channel and an output channel.
# The **stride** is the number of pixels by which the window moves, and `padding` puts zeros around the picture.

# %%
convolve = nn.Conv2d(1, 8, kernel_size=3, padding=1)
patches = nn.Conv2d(1, 8, kernel_size=2, stride=2)
convolve(chart).shape, patches(chart).shape

# %% [markdown]
# The first layer keeps 4 × 4 pixels and gives each pixel eight channels.
# In the second layer, the stride is as long as the window, so the windows are separate **patches**, 2 × 2 of them.

# %% [markdown]
# ## Practice: shapes
#
# With these two exercises you learn to see a shape before you run a line.
#
# ### Exercise 2 · Six shapes
#
# *predict · 8 minutes*
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
# ### Exercise 3 · Rows that do not sum to 1
#
# *bug · 12 minutes*
#
# Somebody wants weights for the words of a sentence, larger for nearer words.
# A word at a distance of $d$ starts with $1/(1+d)$, and then each row is divided by its sum.
# The function runs, but the rows do not sum to 1.
# By which number does the function divide the entry in row 0, column 1?
# Try `length = 2` as well. Is the bug gone there?
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

# %% [markdown]
# ## Seeds and devices
#
# Our island had the same two hundred points for everybody who opened this page.
# They come from a generator of random numbers that starts at a **seed**, and the same seed gives the same numbers.
# If you make your own generator, drawing from it doesn't change what other generators will give.

# %%
first, second = (torch.randn(3, generator=torch.Generator().manual_seed(1)) for _ in range(2))
torch.equal(first, second)

# %% [markdown]
# A tensor lives in the memory of a **device**, the CPU or a GPU, and only tensors on the same device can be combined.
# With `.to(device)` you move a module or a batch.
# A CPU is enough for this course, and `cu.doctor()` says whether you have a GPU as well.
#
# To see what a function does and which shapes it takes, read its docstring with `help(torch.cat)`, or press Shift + Tab with the cursor on its name.

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
# Run the second of these cells three times, and see the count go up.
# When numbers surprise you, restart the kernel and run all cells.

# %%
runs = []

# %%
runs.append("once more")
len(runs)

# %% [markdown]
# If a line ends with `# try`, change its number or text. Every value of the range works.
# A folded cell with `cu.guard` tests a claim that the page makes.
# In an **exercise** you replace the three dots with code of your own and run the cell. The next cell **checks** your answer, as often as you like.
# In JupyterLab, the check's report has two buttons. *Hint* shows one more hint, and *Start over* gives you the empty exercise back. You can also run `cu.checks.average_weights.hint()` or `cu.checks.average_weights.start_over()` in a cell of your own.
# The **solution**, if your notebook has one, is folded.
#
# What you have solved and your last answers are kept in your home folder, under `.attention-course`, and never leave your machine.
# `cu.progress()` lists what is solved, and `cu.checks.average_weights.answers()` shows your answers to one exercise.
#
# The next cell looks over your machine. A ✓ is fine, a ○ could be better, and a ✗ has to be fixed, as the last column explains.

# %% tags=["nbval-ignore-output"]
cu.doctor()

# %% [markdown]
# ### If something goes wrong
#
# | You see | What to do |
# |---|---|
# | `NameError: name … is not defined` | A cell above has not run: *Run → Run All Above Selected Cell* |
# | The kernel is dead | It probably ran out of memory. Shut down other kernels, then restart this one |
# | `[*]` that does not end | The cell is still running, or is waiting for another. Interrupt with ■, or restart the kernel |
# | "Error displaying widget: model not found", or controls that do nothing | Saved in an earlier session: run its cell again |
# | `ModuleNotFoundError: course_utils` | Lab runs elsewhere. Start it in the course's folder with `make lab` |
# | "not done yet", and you are done | Run your own cell again before the check |
#
# To get a chapter back as it was, run `%run -m course_utils.studio original 00` in a new cell, with the chapter's number.
# Your own notebook is not lost, because it stays beside the new one as `00_start_here_mine.ipynb`.

# %% [markdown] tags=["next"]
# On the path to GPT, to a real model, to images, to translation and *Kernels*, [Queries, keys and values](01_queries_keys_values.ipynb) comes next.
