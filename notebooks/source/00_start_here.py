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
# **How do you work through this course, and is your machine ready for it?** Nothing in this chapter is difficult. Take it
# slowly, run every cell, and move the slider more often than you need to.
#
# After this chapter you can
#
# - step through a notebook, run all of it, and start it afresh,
# - say what your machine has, and fix what it lacks,
# - read a heatmap of attention weights, row by row,
# - do an exercise and have it checked,
# - translate between the names of this course and those of other texts.
#
# *20 minutes, and a few more for the two exercises. You need a little Python, and no mathematics beyond an average.*

# %%
import pandas as pd
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Stepping through a chapter
#
# *What do you do with a page like this?*
#
# A notebook is a column of **cells**. Some hold text, like this one. Some hold Python, like the one above. Click a cell with
# code and press **Shift + Enter**: it runs, what it shows appears below it, and the next cell is selected. Go on like that to
# the end of the chapter. Every chapter begins with a cell that imports what it needs and sets the seed of the random numbers,
# so run that one first.
#
# | You want to | In JupyterLab | Keys |
# |---|---|---|
# | run a cell and go on to the next | ▶ in the toolbar | Shift + Enter |
# | run a cell and stay | | Ctrl + Enter |
# | run everything from the top | *Run → Run All Cells* | |
# | run everything down to here | *Run → Run All Above Selected Cell* | |
# | stop a cell that takes too long | ■ in the toolbar | I, I (twice, outside of a cell) |
# | forget all variables and begin again | *Kernel → Restart Kernel…* | 0, 0 (twice, outside of a cell) |
# | do both, the surest cure for confusion | *Kernel → Restart Kernel and Run All Cells…* | |
# | save | *File → Save Notebook* | Ctrl + S |
#
# On a Mac, save with ⌘ + S. "Outside of a cell" means: press Esc first, so that no cursor blinks.
#
# Change anything you like. A notebook is yours to take apart, and the section *If something goes wrong* near the end says how
# to get the original back. If you read this as a web page, you see the same text, pictures and sliders; only the code does
# not run there.
#
# Now run your first cell.

# %%
weights = torch.tensor([0.5, 0.3, 0.2])
values = torch.tensor([10.0, 20.0, 30.0])
answer = (weights * values).sum()
round(answer.item(), 2)

# %% [markdown]
# The last line of a cell is shown. Here it is an average in which the three values do not count alike:
#
# $$0.5 \cdot 10 + 0.3 \cdot 20 + 0.2 \cdot 30 = 5 + 6 + 6 = 17.$$
#
# You have just computed attention. The rest of the course is about where the weights come from.
#
# Many cells show nothing at all, like the next one. An `assert` is a claim: it is silent if the claim holds, and stops the
# cell if it does not. When we state a number in the text, a cell asserts it.

# %%
assert_close(weights.sum(), torch.tensor(1.0))
assert_close(answer, torch.tensor(17.0))

# %% [markdown]
# ## What a chapter is made of
#
# | Piece | What it is for |
# |---|---|
# | a **question**, in italics | what the section answers; try a guess before you read on |
# | an example **by hand** | numbers small enough to check with a pencil |
# | a **picture** | followed by what to see in it |
# | a **slider** | the same picture, moved by you; the text says what to try |
# | **What goes wrong** | mistakes that many people make, shown failing |
# | an **exercise** | three cells: yours to fill in, a check, and a hidden solution |
# | a **quiz** | five questions; every answer, right or wrong, says why |
# | **take-aways** and **references** | what to keep, and where it comes from |

# %% [markdown]
# ## Is this machine ready?
#
# *What do you have here: which Python, how many cores, how much memory, and are the data complete?* Ask the doctor.

# %% tags=["nbval-ignore-output"]
cu.doctor()

# %% [markdown]
# What you see above is your machine, if you ran the cell, and ours if you did not. ✓ means fine; ○ means that the course
# runs, and could run better; ✗ means that something has to be fixed, and the last column says how. Line by line:
#
# | Line | What it looks at | What to do if it is marked |
# |---|---|---|
# | Python | version and operating system | install Python 3.11 or newer, then `make lab` |
# | PyTorch | the library behind every chapter | an old one is replaced by `make lab` |
# | Packages | everything else that we import, at the versions the course is tested with | *missing:* `make lab`, then restart the kernel. *Other versions:* carry on, and do the same if a cell fails |
# | Device | a GPU, if PyTorch can use one | nothing: every chapter is made for a CPU. Cells for a GPU step aside without one; ○ says that there is a GPU which PyTorch does not see |
# | Threads | how many PyTorch uses, and on how many cores | ✗, more threads than cores: `torch.set_num_threads(…)` with the number of cores. ○, one thread only: unset `OMP_NUM_THREADS` for more speed |
# | Memory | how much is free now; 1 GB is enough | shut down the kernels of other notebooks: *Kernel → Shut Down All Kernels…* |
# | Disk | whether there is room, and whether notebooks can be saved | free some space, or copy the course into a folder of your own |
# | Data | each file in `data`, compared with its published checksum | a file that is missing or changed comes back with `git checkout -- data` |
# | Sliders | the two halves of a slider: ipywidgets in Python, its extension in JupyterLab | `make lab`, then restart the kernel and reload the page |
#
# `make lab` is typed in a terminal, in the folder of the course. Without `make`, the same is done by
# `pip install -c constraints.txt -e .`. Nothing here needs the network once it is installed.

# %% [markdown]
# ## The first picture
#
# *Three words look at each other. Who looks at whom, and how much?*
#
# In attention, a **query** asks, **keys** are what it may look at, and each key carries a **value** that can be passed on.
# A **weight** says how much of one key's value a query takes. So there is a number for each pair of a query and a key, and
# the natural picture of such a table is a **heatmap**: dark is much, light is little.
#
# Here are two tables. In the first, each word looks only at itself. In the second, it also looks at the others, and the
# nearer the more: before sharing out, a key at a distance of $d$ words counts $1/(1+d)$. By hand, for the first word:
#
# $$1, \tfrac12, \tfrac13 \quad\text{with the sum}\quad \tfrac{11}{6}, \quad\text{so the weights are}\quad \tfrac{6}{11}, \tfrac{3}{11}, \tfrac{2}{11}.$$

# %%
words = ["she", "reads", "on"]
positions = torch.arange(3)
distance = (positions[:, None] - positions).abs()
counts = 1 / (1 + distance)
nearer = counts / counts.sum(dim=-1, keepdim=True)
itself = torch.eye(3)
assert_close(nearer[0], torch.tensor([6.0, 3.0, 2.0]) / 11)

# %%
cu.show_heatmaps(
    torch.stack([itself, nearer]),
    queries=words,
    keys=words,
    titles=["each word at itself", "the nearer, the more"],
    annotate=True,
    alt="Two heatmaps over the words she, reads, on. Left, ones on the diagonal and zeros elsewhere. Right, the "
    "diagonal is darkest, with 0.55, 0.50 and 0.55, and weights fade with distance.",
)

# %% [markdown]
# Read a heatmap like this, always:
#
# 1. **Pick a row.** Queries run down the vertical axis. A row is one query: here, the word that looks.
# 2. **Go along it.** Keys run along the horizontal axis. The dark cells are where this query looks.
# 3. **Check the sum.** A row is shared out: it adds up to 1. A column need not. The word in the middle is near to everybody,
#    so its column adds up to more than 1.
# 4. **Look at the bar.** All maps of a figure have one scale, from 0 to 1, so the same shade is the same weight everywhere.
#
# On the left is the identity matrix. On the right, the middle row is symmetric, and the first row is the one that we
# computed by hand: 0.55, 0.27, 0.18.

# %%
assert_close(nearer.sum(dim=-1), torch.ones(3))
assert nearer.sum(dim=0)[1] > 1 > nearer.sum(dim=0)[0]
assert [round(weight, 2) for weight in nearer[0].tolist()] == [0.55, 0.27, 0.18]

# %% [markdown]
# *And what comes out?* Each query gets the average of the values, with the weights of its row. For all queries at once that
# is a product of matrices, `weights @ values`. Let the three words carry the values 11, 22 and 0. The first word gets
#
# $$\tfrac{6}{11} \cdot 11 + \tfrac{3}{11} \cdot 22 + \tfrac{2}{11} \cdot 0 = 6 + 6 + 0 = 12.$$
#
# Looking only at itself, each word would get its own value back.

# %%
values = torch.tensor([[11.0], [22.0], [0.0]])
assert_close(itself @ values, values)
assert_close((nearer @ values)[0], torch.tensor([12.0]))
pd.DataFrame(
    torch.cat([values, itself @ values, nearer @ values], dim=1).round(decimals=2).tolist(),
    index=words,
    columns=["value", "each at itself", "the nearer, the more"],
)

# %% [markdown]
# ### Exercise 1 · Nobody is preferred
# *3 minutes · ★*
#
# An exercise has three cells. The first is a **stub**: replace the three dots by your code and run it. The second is the
# **check**: run it as often as you like; it says "not done yet", or which property does not hold and where to look, or that
# you are done. The third holds a **solution**, folded away; a click on its bar opens it.
#
# Write a function that returns the weights of an ordinary mean: every query looks at all keys alike.


# %% tags=["exercise"]
def average_weights(num_queries, num_keys):
    """Weights (queries, keys) in which all keys count alike."""
    ...


# %% tags=["check"]
cu.checks.average_weights(average_weights)


# %% tags=["solution"] jupyter={"source_hidden": true}
def average_weights(num_queries, num_keys):
    """Weights (queries, keys) in which all keys count alike."""
    return torch.full((num_queries, num_keys), 1 / num_keys)


cu.checks.average_weights(average_weights)

# %% [markdown]
# ### What goes wrong: every map on its own scale
#
# *Is there a pattern in these weights?* The same table is drawn twice. Its 36 weights lie between 0.13 and 0.21: that is
# almost the ordinary mean, in which each would be 1/6, or 0.17.

# %%
faint = (0.1 * torch.randn(6, 6)).softmax(dim=-1)
assert ((faint > 0.13) & (faint < 0.21)).all()

# %% tags=["hide-input"]
picture, (own, common) = cu.subplots(
    1,
    2,
    width=7.0,
    height=2.8,
    alt="The same six by six weights twice. Left, on a scale of its own, a strong checkered pattern from white to dark "
    "blue. Right, on the scale from 0 to 1, an even pale blue.",
)
low, high = faint.min().item(), faint.max().item()
own_map = cu.heatmap(own, faint, title="scale of its own", vmin=low, vmax=high)
common_map = cu.heatmap(common, faint, title="scale from 0 to 1", ylabel=None)
picture.colorbar(own_map, ax=own, format="%.2f")
picture.colorbar(common_map, ax=common)
picture

# %% [markdown]
# On the left, a drawing program has stretched the colors from the smallest to the largest entry, and noise looks like
# knowledge. On the right, the scale goes from 0 to 1, and the picture says what the numbers say: next to nothing.
# Before you believe a heatmap, read the numbers on its bar.

# %% [markdown]
# ### Exercise 2 · Find the bug
# *5 minutes · ★★*
#
# Somebody wrote the weights of our second heatmap again, for a sentence of any length. It runs. The picture looks right.
# But look at the sums of its rows.


# %%
def buggy_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance)."""
    positions = torch.arange(length)
    distance = (positions[:, None] - positions).abs()
    counts = 1 / (1 + distance)
    return counts / counts.sum(dim=-1)


[round(total, 2) for total in buggy_nearness(3).sum(dim=-1).tolist()]

# %% [markdown]
# The rows should sum to 1, 1 and 1. Find out which number each entry is divided by, and write the function correctly.


# %% tags=["exercise"]
def fixed_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance)."""
    ...


# %% tags=["check"]
cu.checks.nearness_weights(fixed_nearness)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_nearness(length):
    """Weights (length, length), proportional to 1 / (1 + distance)."""
    positions = torch.arange(length)
    distance = (positions[:, None] - positions).abs()
    counts = 1 / (1 + distance)
    # Without keepdim the sums have shape (length,) and meet the last axis: column j is divided by the sum of row j.
    return counts / counts.sum(dim=-1, keepdim=True)


cu.checks.nearness_weights(fixed_nearness)

# %% [markdown]
# ## The first slider
#
# *How does a weight follow its score?* Weights often begin as **scores**: any numbers, the larger the better. To make weights
# of them, take the exponential of each and divide by the sum. That is the **softmax**, and [Queries, keys and values](01_queries_keys_values.ipynb) takes it apart. Here
# four animals have scores, and you move that of the bird.

# %%
cu.explore.first_slider()

# %% [markdown]
# Drag the handle, or select it with Tab and use the arrow keys. Try this:
#
# - Move the bird to the far right. Its weight comes close to 1, and never reaches it.
# - Move it to the far left. Its weight shows as 0.00, and is still above zero.
# - Watch cat and dog meanwhile. They shrink and grow together: cat always has 1.65 times the weight of dog.
# - Move the bird up by 1 and compare it with the cat: the ratio of their weights has grown by the factor $e \approx 2.72$.

# %%
low = torch.tensor([1.0, 0.5, -4.0, -0.5]).softmax(dim=0)
zero = torch.tensor([1.0, 0.5, 0.0, -0.5]).softmax(dim=0)
one = torch.tensor([1.0, 0.5, 1.0, -0.5]).softmax(dim=0)
high = torch.tensor([1.0, 0.5, 6.0, -0.5]).softmax(dim=0)
assert 0 < low[2] < 0.005 and 0.98 < high[2] < 1
for weights in (low, zero, one, high):
    assert_close(weights[0] / weights[1], torch.tensor(0.5).exp())  # 1.65 for cat against dog
assert_close((one[2] / one[0]) / (zero[2] / zero[0]), torch.tensor(1.0).exp())

# %% [markdown]
# ## Two conventions
#
# ### Shapes: (batch, heads, queries, keys)
#
# *How do we know which axis is which?* Weights have up to four axes, and the order never changes in this course. Several
# sentences are worked on at once (**batch**), and each may be looked at in several ways at once (**heads**).
# The last axis is always that of the keys, so weights always sum to 1 along `dim=-1`.

# %%
batch, heads, queries, keys = 2, 4, 5, 3
weights = torch.randn(batch, heads, queries, keys).softmax(dim=-1)
assert weights.shape == (batch, heads, queries, keys)
assert_close(weights.sum(dim=-1), torch.ones(batch, heads, queries))

# %% [markdown]
# ### Masks: True = may attend
#
# *Which keys is a query allowed to see?* A **mask** is a table of the same shape that holds True where looking is allowed.
# `cu.padding_mask(valid_lens, length)` hides what fills up a short sentence, here from the fourth of five words on;
# `cu.causal_mask(length)` hides the future. Both at once: `&`.

# %%
padding = cu.padding_mask(torch.tensor([3]), 5)  # (batch, 1, 1, keys): for each head and query
causal = cu.causal_mask(5)  # (queries, keys): for each sentence and head
both = padding & causal
assert padding.shape == (1, 1, 1, 5) and causal.shape == (5, 5) and both.shape == (1, 1, 5, 5)

# %%
cu.show_heatmaps(
    torch.stack([padding[0, 0].expand(5, 5), causal, both[0, 0]]).float(),
    titles=["padding", "causal", "padding & causal"],
    alt="Three masks of five queries and five keys, dark where looking is allowed. Padding: the first three columns. "
    "Causal: the lower triangle. Both: the lower triangle, cut off after the third column.",
)

# %% [markdown]
# Row 0 of the causal mask has one dark cell: the first word sees itself only. The last row is dark throughout: the last word
# sees itself and everything before it.
#
# ### What goes wrong: the opposite convention
#
# *Does everybody mean the same by True?* No. Even inside PyTorch there are two conventions.
# `F.scaled_dot_product_attention` means "may attend", as we do. `torch.nn.MultiheadAttention` and the layers
# `torch.nn.Transformer…` mean "is hidden". Hand one the mask of the other and there is no error, only a model that looks
# exactly where it must not, and a query that may look nowhere gets NaN. (With our functions such a query gets zeros.)

# %%
x = torch.randn(1, 5, 8)
eye = torch.eye(5)[None]  # with these values, the output is the weights themselves
ours = F.scaled_dot_product_attention(x, x, eye, attn_mask=causal)
assert (ours[0][~causal] == 0).all()

module = torch.nn.MultiheadAttention(8, 1, batch_first=True)
_, flipped = module(x, x, x, attn_mask=~causal)
_, wrong = module(x, x, x, attn_mask=causal)
assert (flipped[0][~causal] == 0).all()  # the future is hidden
assert (wrong[0, :-1][causal[:-1]] == 0).all()  # the past and the present are hidden instead
assert wrong[0, -1].isnan().all()  # from the last word everything is hidden: 0/0

# %% [markdown]
# The test is worth remembering, because it works for any model: ask for the weights, and assert that the forbidden ones are
# exactly zero.

# %% [markdown]
# ## The same thing by other names
#
# *You know attention from another text. What is it called here?* Our names are those of `torch.nn`, wherever it has one for
# the thing. Come back to these tables when you read elsewhere. First, what each name means, beside the paper of 2017 and
# PyTorch:
#
# | Here | Meaning | The 2017 paper | `torch.nn` |
# |---|---|---|---|
# | `queries`, `keys`, `values` | who asks, what is looked at, what is passed on | $Q, K, V$ | `query`, `key`, `value` |
# | weights | shares of the keys; rows sum to 1 | softmax of $QK^\top/\sqrt{d_k}$ | `attn_output_weights` |
# | `attn_mask` | boolean, True = may attend | illegal scores set to $-\infty$ | `attn_mask`, `key_padding_mask` |
# | `embed_dim` | numbers that describe one word | $d_\text{model}$ | `embed_dim`, `d_model` |
# | `num_heads` | look-ups side by side | $h$ | `num_heads`, `nhead` |
# | `embed_dim / num_heads` | numbers per head | $d_k$, $d_v$ | `head_dim` |
# | `length` | words in a sentence, with padding | $n$ | $L$ (target), $S$ (source) |
# | batch | sentences worked on at once | | $N$ |
# | `num_layers` | blocks on top of each other | $N$ | `num_layers` |
# | `ffn_dim` | width inside the feed-forward part | $d_\text{ff}$ | `dim_feedforward` |
# | `dropout` | share of numbers set to 0 in training | $P_\text{drop}$ | `dropout` |
# | `norm_first=False` | normalize after each part | LayerNorm(*x* + Sublayer(*x*)) | `norm_first=False` |
# | `norm_first=True` | normalize before each part | | `norm_first=True` |
#
# Then two courses that you may know: the book *Dive into Deep Learning* and the slides of Purdue University.
#
# | Here | Dive into Deep Learning | Purdue slides |
# |---|---|---|
# | `queries`, `keys`, `values` | `queries`, `keys`, `values` | $Q, K, V$ |
# | weights | `attention_weights` | row-wise softmax of $Q \cdot K^T$ |
# | `attn_mask` | `valid_lens`; hidden scores set to −10⁶ | embeddings set to 0 |
# | `cu.padding_mask(valid_lens, length)` | `valid_lens` | |
# | `embed_dim` | `num_hiddens` | $M$, `embedding_size` |
# | `num_heads` | `num_heads` | $N_H$, `num_atten_heads` |
# | `embed_dim / num_heads` | `num_hiddens / num_heads` | $s_{qkv}$ or $S_{qkv}$, `qkv_size` |
# | `length` | `num_steps` | $N_w$, `max_seq_length` |
# | batch | `batch_size` | $B$ |
# | `num_layers` | `num_blks`, in older editions `num_layers` | `how_many_basic_encoders`, `how_many_basic_decoders` |
# | `ffn_dim` | `ffn_num_hiddens` | no name: twice the length of the flattened sentence |
# | `dropout` | `dropout` | |
# | `norm_first=False` | `AddNorm` | `TransformerFG` |
# | `norm_first=True` | the blocks of its vision transformer | `TransformerPreLN` |
#
# Three traps. The letter $N$ is the number of layers in the paper and the batch in the documentation of `torch.nn`. The
# Purdue heads see a *slice* of the embedding, where the others see all of it through a learned projection; [Multi-head attention](08_multi_head_attention.ipynb) will
# measure the difference. And `valid_lens` says the same as a `key_padding_mask`, whose True means "is hidden":

# %%
valid_lens = torch.tensor([3, 5])
key_padding_mask = torch.tensor([[False, False, False, True, True], [False] * 5])
assert torch.equal(cu.padding_mask(valid_lens, 5)[:, 0, 0], ~key_padding_mask)

# %% [markdown]
# ## The map
#
# *Where does the course lead?* From the average that you computed above to translation, text and images, always with the same
# formula. An arrow means "first this, then that"; the list `book.toml` says so.

# %%
cu.course_map()

# %% [markdown]
# At the top, weights come from similarity: first a word database, then regression, then the scores that all later chapters
# use. The way to the Transformer leads through translation, several heads and positions; from there, ways part to training,
# language and images. Each chapter can be opened on its own, since nothing is carried over from another
# notebook. Three ways lead through the map, if you are after one thing. The hours are estimates.

# %% tags=["nbval-ignore-output"]
cu.ways()

# %% [markdown]
# ## If something goes wrong
#
# *A red box appears. Now what?* Nothing is broken that a restart or one command does not fix.
#
# **A red error.** Read its last line first: it says what is wrong. Our functions also say what would be right. Here is one,
# caught so that you can read it in peace:

# %%
try:
    cu.padding_mask(torch.tensor([3, 7]), length=5)
except ValueError as error:
    print(error)

# %% [markdown]
# **`NameError: name … is not defined`.** A cell above has not run. Choose *Run → Run All Above Selected Cell*.
#
# **Numbers differ from the text.** Cells ran out of order, or one ran twice: the kernel remembers everything it did, in the
# order *you* did it, not in the order on the page. The next two cells show it. Run the second one again and again, and the
# count grows, though the page says 1. *Kernel → Restart Kernel and Run All Cells…* brings page and memory together again.

# %%
count = 0

# %%
count = count + 1
count

# %% [markdown]
# | What you see | What to do |
# |---|---|
# | The kernel is dead, or *Kernel Restarting* | Memory was short, most likely. Shut down other kernels, then *Kernel → Restart Kernel and Run All Cells…* |
# | A cell shows `[*]` and does not end | It is at work, or waits for another cell that is. Interrupt it with ■; if that does not help, restart the kernel |
# | A slider is there and nothing moves | It has lost its kernel: it was saved in an earlier session. Run its cell again |
# | A picture is there and no slider | Run its cell again. If there is still none, ask `cu.doctor()`; the line *Sliders* says what is missing |
# | `ModuleNotFoundError: course_utils` | Lab runs in another environment. Close it, and start it in the course's folder with `make lab` |
# | A check says "not done yet", and you are done | Run your own cell again before the check |
# | A check fails though your code looks right | Read the line after ✗, then the hint. Try your function on the smallest input you can think of |
# | Lab says that the file has changed on disk | Take *Revert* for the version on disk, *Overwrite* for yours |
#
# **The original notebook back.** Copy what you want to keep under another name outside of `notebooks`. Then, in a terminal in
# the course's folder:
#
# ```
# git checkout -- notebooks
# ```
#
# This puts back every chapter as it was published and throws away your changes in all of them. For one chapter, name both
# of its files: `git checkout -- notebooks/00_start_here.ipynb notebooks/source/00_start_here.py`. (The second holds the
# same cells as plain text, and Lab keeps the two in step.) In Lab, choose *File → Reload Notebook from Disk* afterwards. If your
# copy came without git, take the files from where you got the course.

# %% [markdown]
# ## Take-aways
#
# - Shift + Enter runs a cell; restarting the kernel and running all cells cures most confusion. `cu.doctor()` names the rest.
# - Attention is an average of values, with a weight for each pair of a query and a key.
# - A heatmap is read by rows: one query, its keys, a sum of 1. Look at the scale before you believe it.
# - Weights have the shape (batch, heads, queries, keys). A mask is boolean, and True means *may attend*; others mean the
#   opposite, so test it.

# %% [markdown]
# ## Quiz
#
# Five questions. Each answer tells you why it is right or wrong.

# %%
cu.quiz("start_here")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. The names of the third column of our table.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023). [Dive into Deep Learning](https://d2l.ai). Cambridge University Press. Its chapter "Attention Mechanisms and Transformers".
# - Kak, A. (2025). [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/). Lecture slides, Purdue University.
# - PyTorch. [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html). The two conventions for masks.
# - Okabe, M. and Ito, K. (2008). [Color Universal Design](https://jfly.uni-koeln.de/color/). The colors of our pictures.
