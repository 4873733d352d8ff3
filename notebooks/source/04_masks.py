# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Masks
#
# **Which keys may a query look at, and how are the others forbidden without a trace?**
# A batch is one tensor, so shorter sentences are filled up with a token that means nothing:
#
# ```
# the     cat     sat     down
# birds   sing    <pad>   <pad>
# rain    <pad>   <pad>   <pad>
# ```
#
# And a model that writes from left to right must not look at words that it has not written yet.
# Both are said by a **mask**: one line of code, with many ways to go wrong in silence.
#
# After this chapter you can
#
# - make masks for padding and for the future, and say which pairs remain;
# - write a masked softmax that survives all that a mask can do to it, and name what the usual versions do not survive;
# - write scaled dot-product attention with a mask for batches, equal to PyTorch's in outputs and gradients;
# - say what a mask does *not* hide;
# - recognize five silent mistakes by what they show.
#
# It needs [Scoring functions](03_scoring_functions.ipynb): dot products as scores, and $1/\sqrt d$.

# %%
import math

import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %%
cu.recall("scoring_functions", "kernel_regression")

# %% [markdown]
# ## Padding gets weight
#
# *Section 1 of 6*
#
# Each word is a vector of four numbers; `<pad>` is the zero vector, as PyTorch's `nn.Embedding(…, padding_idx=0)` makes it.
# Every word is query and key at once, with the score $x_i \cdot x_j/\sqrt 4$.
# The word *rain* is $(1, 0, 1, 0)$, so that its score with itself is 1.
# There are three `<pad>` beside it.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "How much of the weight of the query rain goes to the three zero vectors, together?",
    ["nothing", "about half", "three quarters"],
    answer="about half",
    wrong={
        "nothing": "Their scores are 0. What is the exponential of 0?",
        "three quarters": "That would be right if all four scores were equal. rain's own is 1, theirs are 0.",
    },
    why="The exponentials are e = 2.72 for rain and 1, 1, 1 for the padding: 3 of 5.72.",
)

# %%
pad = 0.0  # try -3.0 … 3.0
sentences = ["the cat sat down", "birds sing <pad> <pad>", "rain <pad> <pad> <pad>"]
vector_of = {
    "the": [0, 0, 1, 0], "cat": [1, 1, 0, 0], "sat": [0, 1, 1, 0], "down": [0, 0, 1, 1],
    "birds": [1, 1, 0, 1], "sing": [0, 1, 1, 1], "rain": [1, 0, 1, 0],
    "<pad>": [pad] * 4,
}  # fmt: skip
batch = [sentence.split() for sentence in sentences]
X = torch.tensor([[vector_of[word] for word in line] for line in batch]).float()
unmasked_scores = X @ X.transpose(1, 2) / math.sqrt(4)  # (batch, queries, keys)
unmasked = unmasked_scores.softmax(dim=-1)
rain = pd.DataFrame({"key": batch[2], "score": unmasked_scores[2, 0]})
rain["exp(score)"], rain["weight"] = unmasked_scores[2, 0].exp(), unmasked[2, 0]
print(f"weight on padding: {unmasked[2, 0, 1:].sum():.3f}")
rain.round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=9, height=2.9,
    alt="Weights of the three sentences without a mask, each row summing to 1. In the second sentence "
    "two columns of padding get a share of each row, in the third three columns.",
)  # fmt: skip
for ax, line, weights in zip(axes, batch, unmasked, strict=True):
    cu.heatmap(ax, weights, queries=line, keys=line, annotate=True, ylabel=None)
    ax.tick_params(labelsize=8)
axes[0].set_ylabel("Queries")
fig

# %% [markdown]
# More than half of what *rain* reads is nothing: 0.525.
# In *birds sing*, each `<pad>` gets 0.11 from both words.
# A zero vector adds nothing as a *value*, and yet it takes weight from the words as a *key*.
# Would another vector do?
# Try $-3$: *rain* now gives 5 % to `<pad>`, because no word here has a negative number.
# But a vector scores low with *some* queries only: a query $(-1, 0, -1, 0)$ would give this padding 99 %.

# %%
cu.quiz("masks", "zero_vector")

# %% [markdown]
# ## True = may look
#
# *Section 2 of 6*
#
# A mask is a tensor of truth values, one for each pair of a query and a key.
# In this course, as in PyTorch's attention operator, **True means: this query may look at this key.**
#
# A **padding mask** comes from the lengths by one comparison.
# Places in a row meet lengths in a column:
#
# $$\begin{pmatrix}0&1&2&3\end{pmatrix} < \begin{pmatrix}4\\2\\1\end{pmatrix} = \begin{pmatrix}T&T&T&T\\T&T&F&F\\T&F&F&F\end{pmatrix}$$
#
# A **causal mask** is the same for all sentences: query $i$ may look at keys $0 \dots i$, a triangle.
# Both at once: a pair needs *both* permissions.

# %%
second = 2  # try 0 … 4
lens = torch.tensor([4, second, 1])
padding = torch.arange(4) < lens[:, None]  # (keys,) < (batch, 1) → (batch, keys)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (queries, keys)
both = padding[:, None, None, :] & causal  # (batch, 1, 1, keys) & (queries, keys)
print(f"padding mask\n{padding.int()}\ncausal mask\n{causal.int()}")
pairs = both.sum(dim=(1, 2, 3)).tolist()
print(f"both: shape {tuple(both.shape)}, permitted pairs {pairs}")
print("package:", torch.equal(both, cu.padding_mask(lens, 4) & cu.causal_mask(4)))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
ones = {"color": "key", "cell": 24}
cu.Drawing(
    "P and C is B",
    nodes={
        "P": cu.Cells(1, 4, "padding", shape="(1, keys)", values=padding[1:2].int().tolist(),
                      shades=padding[1:2].int().tolist(), **ones),
        "and": cu.Circle("&"),
        "C": cu.Cells(4, 4, "causal", shape="(queries, keys)", values=causal.int().tolist(),
                      shades=causal.int().tolist(), **ones),
        "is": cu.Note("="),
        "B": cu.Cells(4, 4, "both", shape="(queries, keys)", values=both[1, 0].int().tolist(),
                      shades=both[1, 0].int().tolist(), **ones),
    },
    alt=f"For the second sentence: one row with {second} ones, the padding mask, and a lower triangle, the "
    "causal mask, give by 'and' the part of the triangle that lies in the columns of the words.",
)  # fmt: skip

# %% [markdown]
# The axis of size 1 in the padding mask says *all queries alike*; `&` repeats it.
# In general a mask has the four axes **(batch, heads, queries, keys)**, or sizes 1 that stand for *all alike*.
# (A head is one of several attentions side by side; here there is one.)
# `cu.padding_mask(lens, 4)` and `cu.causal_mask(4)` make the same two, with their axes ready: `True` in the last line.
#
# A padding mask forbids *keys*.
# The *queries* `<pad>` still have rows, and look at words; nobody reads their answers, and the loss leaves them out.
#
# Lengths may also be given **for each query**, as (batch, queries).
# Then each row ends where its own number says, and a causal mask is the special case 1, 2, 3, 4.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = {
    "one length, 2": cu.padding_mask(torch.tensor([2]), 4).expand(1, 1, 4, 4),
    "a length for each query:\n1, 2, 4, 0": cu.padding_mask(torch.tensor([[1, 2, 4, 0]]), 4),
    "lengths 1, 2, 3, 4": cu.padding_mask(torch.tensor([[1, 2, 3, 4]]), 4),
}
shown |= {
    f"padding and causal:\nsentence {row}, length {n}": both[row, None]
    for row, n in enumerate(lens.tolist())
}
fig, axes = cu.subplots(
    2, 3, width=8.4, height=5.6,
    alt="Six masks, permitted pairs dark. Above: two full columns for one length of 2; rows that end after 1, "
    "2, 4 and 0 keys for lengths per query; a triangle for the lengths 1, 2, 3, 4. Below: padding and "
    f"causal mask together for three sentences, with {pairs} permitted pairs.",
)  # fmt: skip
for ax, (title, mask) in zip(axes.flat, shown.items(), strict=True):
    cu.heatmap(ax, mask[0, 0].float(), ylabel=None)
    ax.set_title(title, fontsize=9)
    ax.set(xticks=range(4), yticks=range(4))
    ax.vlines([0.5, 1.5, 2.5], -0.5, 3.5, color="0.75", linewidth=0.8)
    ax.hlines([0.5, 1.5, 2.5], -0.5, 3.5, color="0.75", linewidth=0.8)
for ax in axes[:, 0]:
    ax.set_ylabel("Queries")
fig

# %% [markdown]
# Dark pairs are permitted.
# Above in the middle, the last query has length 0: an **empty row**, a query that may look nowhere.
#
# ### Exercise 1 · Count the pairs
#
# *predict · 6 minutes*
#
# A sentence of four words is padded to six places, so there are 36 pairs.
# Count on paper how many are permitted: (a) by the causal mask alone; (b) by the padding mask alone; (c) by both.
# Now let the two `<pad>` stand **in front** of the four words: (d) how many pairs are permitted by both masks? (e) How many rows of (d) are empty?


# %% tags=["exercise", "predict"]
def predicted_pairs():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"]
cu.checks.predicted_pairs(predicted_pairs)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_pairs_solution():
    """1 + … + 6; 6 · 4; 1 + 2 + 3 + 4 + 4 + 4; 0 + 0 + 1 + 2 + 3 + 4; the two rows of the padding."""
    return [21, 24, 18, 10, 2]


cu.checks.predicted_pairs(predicted_pairs_solution)

# %%
cu.quiz("masks", "own_lengths")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without a mask padding takes 0.525; both masks permit 10, 7 and 4 pairs.",
    given=(pad, second) == (0.0, 2),
):
    assert abs(unmasked[2, 0, 1:].sum() - 0.525) < 5e-4
    assert abs(unmasked[1, :2, 2:] - 0.11).max() < 5e-3
    assert pairs == [10, 7, 4]
    assert torch.equal(both, cu.padding_mask(lens, 4) & cu.causal_mask(4))
    assert torch.equal(shown["lengths 1, 2, 3, 4"][0, 0], causal)

# %% [markdown]
# ## Before the softmax or after it?
#
# *Section 3 of 6*
#
# The weights that we want are a softmax over the permitted keys alone.
# With $p_i = 1$ where key $i$ is permitted and 0 elsewhere:
#
# $$\alpha_i = \frac{p_i\, e^{a_i}}{\sum_j p_j\, e^{a_j}}.$$
#
# By hand: four scores with the exponentials 1, 2, 3, 4, and the first two keys permitted.
# The weights have to be $1/3$, $2/3$, 0, 0.
# In [Kernel regression](02_kernel_regression.ipynb) you gave one pair the score $-\infty$.
# Why not simply 0?
# Two ways seem easier: set the forbidden scores to 0, or set the forbidden weights to 0.

# %%
example = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).log()
first_two = torch.tensor([[True, True, False, False]])


def zero_the_scores(scores, mask):
    return (scores * mask).softmax(dim=-1)


def multiply_after(scores, mask):
    return scores.softmax(dim=-1) * mask


first_tries = [zero_the_scores, multiply_after]
tried = {f.__name__: f(example, first_two)[0].tolist() for f in first_tries}
attempts = pd.DataFrame({**tried, "wanted": [1 / 3, 2 / 3, 0, 0]}).T.add_prefix("key ")
attempts.assign(sum=attempts.sum(axis=1)).round(3)

# %% [markdown]
# The first forgets that $e^0 = 1$: a score of 0 is a score like any other, and forbidden keys get 0.4.
# The second comes too late: the forbidden keys have had their share, and the row sums to 0.3.
# The next picture, five random scores for each of five queries, begins with zeroed scores.
# Before you move *Mask* to *causal*: which query will then give the most to forbidden keys?

# %%
cu.explore.masked_scores()

# %% [markdown]
# ### Exercise 2 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague repairs the second way: mask after the softmax, *then divide by what is left*, so that each row sums to 1 again.
# On paper this is the formula above, and on our example it is right.
# Below, a forbidden key matches much better than the permitted ones.
# Find out why this ends in NaN, and write a version that survives it.
#
# Two tools: `~mask` is "not", and `scores.masked_fill(where, number)` is a copy of the scores with `number` wherever `where` is True.

# %%
loud = 120.0  # try 80.0 … 130.0


def buggy_masked_softmax(scores, attn_mask):
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / weights.sum(dim=-1, keepdim=True)


print(buggy_masked_softmax(example, first_two))
print(buggy_masked_softmax(torch.tensor([[0.0, 0.7, loud, 0.0]]), first_two))


# %% tags=["exercise", "bug"]
def fixed_masked_softmax(scores, attn_mask):
    """(…, queries, keys), True = may look → weights; each row has a permitted key."""
    ...


# %% tags=["check"]
cu.checks.fixed_masked_softmax(fixed_masked_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_masked_softmax_solution(scores, attn_mask):
    """A softmax subtracts the row's largest score, here a forbidden one.

    exp(0 − 120) is 0 in single precision, so nothing permitted is left, and 0/0 is NaN. Forbidden keys have
    to be out before the softmax. (The check lets large negative numbers pass, too: see the next section.)
    """
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)


cu.checks.fixed_masked_softmax(fixed_masked_softmax_solution)

# %%
cu.quiz("masks", "after")

# %% [markdown]
# ## Which version passes which test?
#
# *Section 4 of 6*
#
# So forbidden scores become very low *before* the softmax.
# Here are four ways to write this.
# They agree on ordinary scores.
# Now they meet an empty row, as padding in front has it: the first query may look at nothing.

# %%
large = -1e6  # try -1e4 | -1e6 | -1e9
low = -2e6  # try -1e10 … -10.0


def large_negative(scores, mask, number=large):
    return scores.masked_fill(~mask, number).softmax(dim=-1)


def written_in_place(scores, mask):
    scores[~mask] = large
    return scores.softmax(dim=-1)


def minus_infinity(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def add_and_clean(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(dim=-1).nan_to_num()


in_front = causal & torch.tensor([False, False, True, True])  # two <pad>, two words
versions = [large_negative, written_in_place, minus_infinity, add_and_clean]
empty = {f.__name__: f(torch.zeros(4, 4), in_front)[0].tolist() for f in versions}
pd.DataFrame(empty, index=[f"key {i}" for i in range(4)]).T

# %% [markdown]
# Uniform, NaN or 0: four versions, three different answers.
# (`nan_to_num` replaces each NaN by 0.)
# And that is only one test of eight:
#
# - **example**: the weights $1/3$, $2/3$, 0, 0, as by hand;
# - **low scores**: true scores that lie below the constant, down to the lowest number there is;
# - **float16**, in which large models compute; its largest number is 65,504;
# - **empty row**: zeros, because what may look nowhere should return nothing;
# - **gradient of the scores**, and **of the values**, finite, although a row is empty and the loss does not read it;
# - **input kept**: the caller's scores are the same afterwards;
# - **NaN seen**: a NaN among the *permitted* scores stays visible, because it means that a model is broken.
#
# ### Exercise 3 · The one that passes
#
# *build · 12 minutes*
#
# Write a masked softmax that passes all eight.
# Start from what you found in exercise 2, and ask what has to become of an empty row.
# As there, a *forbidden* score must leave no trace, even if it is NaN.
# The chapter goes on with your function.


# %% tags=["exercise", "build"]
def my_masked_softmax(scores, attn_mask):
    """(…, queries, keys), True = may look → weights; zeros in an empty row."""
    ...  # for zeros (4, 4) and in_front the rows sum to 0, 0, 1, 1


# %% tags=["check"]
cu.checks.my_masked_softmax(my_masked_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_masked_softmax_solution(scores, attn_mask):
    """An empty row gets scores of 0, so that the softmax is defined; then forbidden weights become 0."""
    nowhere = ~attn_mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
    return filled.softmax(dim=-1).masked_fill(~attn_mask, 0.0)


cu.checks.my_masked_softmax(my_masked_softmax_solution)

# %%
masked_softmax = cu.choose(my_masked_softmax, cu.masked_softmax)


def replace_and_clean(scores, mask):
    return minus_infinity(scores, mask).nan_to_num()


def replace_twice(scores, mask):
    return minus_infinity(scores, mask).masked_fill(~mask, 0.0)


# %% [markdown]
# Two more versions join the test. *add_and_clean* **adds** $-\infty$ to the forbidden scores, and *replace_and_clean* **replaces** them by it.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "An empty row gives NaN in the softmax, and nan_to_num makes zeros of it. In which of the two does "
    "the NaN come back in the gradient of the scores?",
    ["in add_and_clean only", "in both, because both clean after the softmax", "in neither"],
    answer="in add_and_clean only",
    wrong={
        "in both, because both clean after the softmax": "What gradient does masked_fill hand back to a "
        "score that it has replaced?",
        "in neither": "The softmax still has NaN inside. Which of the two stops it on the way back?",
    },
    why="A sum hands its gradient on to both terms, NaN included. masked_fill gives the gradient 0 to what "
    "it has replaced, whatever comes back.",
)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def with_empty_rows(softmax):
    """Weights, and the gradients of scores and values; the loss reads the two rows that are not empty."""
    scores, values = torch.randn(4, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    weights = softmax(scores * 1.0, in_front)
    gradients = torch.autograd.grad((weights @ values)[2:].sum(), (scores, values))
    return weights, *gradients


def keeps_input(softmax):
    given = example.clone()
    softmax(given, first_two)
    return torch.equal(given, example)


wanted = torch.tensor([[1 / 3, 2 / 3, 0, 0]])
halves = torch.tensor([[0.5, 0.5, 0, 0]])
exam = {
    "example": lambda f: torch.allclose(f(example.clone(), first_two), wanted),
    "low scores": lambda f: all(
        torch.allclose(f(torch.full((1, 4), score), first_two), halves)
        for score in (low, torch.finfo(torch.float32).min)
    ),
    "float16": lambda f: torch.allclose(f(example.half(), first_two).float(), wanted, atol=1e-3),
    "empty row: 0": lambda f: with_empty_rows(f)[0][0].tolist() == [0.0] * 4,
    "gradient: scores": lambda f: bool(with_empty_rows(f)[1].isfinite().all()),
    "gradient: values": lambda f: bool(with_empty_rows(f)[2].isfinite().all()),
    "input kept": keeps_input,
    "NaN seen": lambda f: bool(f(example + math.nan, first_two)[0, :2].isnan().all()),
}


def passes(test, softmax):
    """✓ or ✗; an exception is ✗."""
    try:
        return "✓" if test(softmax) else "✗"
    except RuntimeError:
        return "✗"


more = [replace_and_clean, replace_twice]
every = [*first_tries, buggy_masked_softmax, *versions, *more]
named = {f.__name__: f for f in every} | {"masked_softmax": masked_softmax}
marks = pd.DataFrame(
    {name: {title: passes(test, f) for title, test in exam.items()} for name, f in named.items()}
).T
marks

# %% [markdown]
# Only the last two rows have no cross.
# Read the others:
#
# - *large_negative* fails on what is rare.
#   In float16, $-10^6$ does not exist, and PyTorch raises an error.
#   With `large` at $-10^4$ this cross goes, and the others stay.
# - *written_in_place* passes float16, because an assignment with brackets turns $-10^6$ into $-\infty$ without a word.
#   But it changes the caller's scores.
# - *minus_infinity* has NaN *weights*: the gradient of the values is the weights times the gradient of the output, and NaN · 0 is NaN, although the loss does not read that row.
# - *add_and_clean* has clean weights, and NaN in the gradient of the *scores*, because addition hands it on.
#   In *replace_and_clean* `masked_fill` hands nothing back.
#   But both turn every NaN into 0, also the one that should be seen.
#
# *replace_twice* fills by the mask before the softmax and after it, and that is enough.
# (The package's function treats empty rows before the softmax, so that no NaN arises at all.)

# %%
cu.quiz("masks", "empty_row")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Two versions have no cross; adding −∞, not cleaning, spoils the gradient."):
    perfect = (marks == "✓").all(axis=1)
    assert perfect[perfect].index.tolist() == ["replace_twice", "masked_softmax"]
    assert attempts.loc["multiply_after"].sum() < 0.31 and attempts.iloc[0, 2] > 0.19
    assert empty["large_negative"] == [0.25] * 4 and empty["add_and_clean"] == [0.0] * 4
    assert marks["float16"]["large_negative"] == ("✗" if large < -65504 else "✓")
    crosses = marks[["gradient: scores", "gradient: values"]].agg("".join, axis=1)
    assert [crosses[f.__name__] for f in (*versions[2:], more[0])] == ["✓✗", "✗✓", "✓✓"]

# %% [markdown]
# ## Attention with a mask
#
# *Section 5 of 6*
#
# Attention takes six steps, and the mask is the fourth: **project, score, scale, mask, normalize, mix.**
# The projections $W_Q, W_K, W_V$ come with [self-attention](07_self_attention.ipynb).
# Here the queries, keys and values are given.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .  q      k      v
    .  Q      K      V
    .  score  score  .
    .  scale  scale  .
    M  mask   mask   .
    .  norm   norm   .
    .  mix    mix    mix
    .  Y      Y      Y
    """,
    nodes={
        "q": cu.Box("project: x W_Q"),
        "k": cu.Box("project: z W_K"),
        "v": cu.Box("project: z W_V"),
        "Q": cu.Cells(2, 3, "Q", shape="(b, n, d)", color="query", sheets=2),
        "K": cu.Cells(4, 3, "K", shape="(b, m, d)", color="key", sheets=2),
        "V": cu.Cells(4, 3, "V", shape="(b, m, e)", color="value", sheets=2),
        "M": cu.Cells(1, 4, "mask", shape="(b, 1 or n, m)", color="line", sheets=2),
        "score": cu.Box("score: Q K^T", shape="(b, n, m)"),
        "scale": cu.Box("scale: / √d"),
        "mask": cu.Box("mask: forbidden → −∞"),
        "norm": cu.Box("normalize: softmax over the keys"),
        "mix": cu.Box("mix: weights × V", shape="(b, n, e)"),
        "Y": cu.Cells(2, 3, "answers", shape="(b, n, e)", color="value", sheets=2),
    },
    arrows=["q -> Q", "k -> K", "v -> V", "Q, K -> score -> scale -> mask -> norm -> mix -> Y",
            "V -> mix", "M -> mask"],
    alt="Words x are projected to queries, words z to keys and values. Queries and keys give scores, which are scaled; "
    "the mask, with one row for all queries, sets forbidden scores to minus infinity; the softmax "
    "normalizes over the keys; the weights mix the values to the answers.",
    gap=(34, 20),
)  # fmt: skip

# %% [markdown]
# Each sentence of a batch has its own $Q$ and $K$.
# Their product is taken sentence by sentence, a **product of batches**:
#
# $$[A_0, A_1]\,[B_0, B_1] = [A_0B_0,\; A_1B_1],\qquad (b, n, d)\,(b, d, m)\to(b, n, m).$$
#
# `torch.bmm` does this for three axes, and `@` for any number of leading axes, which broadcast.
# So one function serves (batch, …) and (batch, heads, …).


# %%
def attention(queries, keys, values, attn_mask=None):
    """(…, n, d), (…, m, d), (…, m, e), mask (…, n, m) → (…, n, e)."""
    scores = queries @ keys.transpose(-2, -1)  # score: (…, n, m)
    scores = scores / math.sqrt(queries.shape[-1])  # scale
    if attn_mask is None:
        attn_mask = torch.ones_like(scores, dtype=torch.bool)
    weights = masked_softmax(scores, attn_mask)  # mask, normalize
    return weights @ values  # mix


# %% [markdown]
# ### A batch that can be checked by hand
#
# Two sentences with ten keys each, of which 2 and 6 are valid.
# All keys are **equal**, so that no query can prefer one: the weights have to be $1/2$ and $1/6$.
# The value of key $i$ is $(i, 10i)$, and so the answers are the means of $0, 1$ and of $0, \dots, 5$: $(0.5, 5)$ and $(2.5, 25)$.
# Below it, the comparison with PyTorch's operator, `F.scaled_dot_product_attention`, outputs *and* gradients, under five kinds of masks, empty rows included.

# %%
valid = 2  # try 1 … 10
toy_values = torch.arange(10.0)[:, None] * torch.tensor([1.0, 10.0])  # (10, 2), shared
toy_mask = cu.padding_mask(torch.tensor([valid, 6]), 10)[:, 0]  # (2, 1, 10)
answers = attention(torch.randn(2, 1, 3), torch.ones(2, 10, 3), toy_values, toy_mask)
for length, answer in zip((valid, 6), answers[:, 0].tolist(), strict=True):
    print(f"{length} valid keys: {[round(number, 3) for number in answer]}")


qkv = [torch.randn(2, 3, 5, size) for size in (8, 8, 4)]  # (batch, heads, 5, size)
lens_by_query = torch.tensor([[1, 2, 3, 4, 5], [5, 0, 1, 1, 2]])
kinds = {
    "no mask": None, "lengths 5, 2": cu.padding_mask(torch.tensor([5, 2]), 5),
    "causal": cu.causal_mask(5), "random pairs": torch.rand(2, 3, 5, 5) < 0.5,
    "one for each query": cu.padding_mask(lens_by_query, 5),
}  # fmt: skip
for kind, kind_mask in kinds.items():
    print(f"{kind:19}", end="")
    cu.equal(attention, F.scaled_dot_product_attention, *qkv, kind_mask)

# %% [markdown]
# Under these five masks our few lines give what the operator gives.
# A mask saves no work here: each product of a query and a key is computed, forbidden or not.
# What attention costs in memory is measured on the further page.

# %%
cu.quiz("masks", "toy_mean")

# %% [markdown]
# ## Without a trace?
#
# *Section 6 of 6*
#
# We write something into one forbidden key, or into its value, and look whether the answers stay the same to the last bit.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "PyTorch's operator makes 0 and −∞ of the mask and adds them to the scores. A forbidden KEY is NaN. "
    "What becomes of the answers?",
    [
        "NaN in both",
        "NaN in PyTorch's, and the same as before on this page",
        "the same as before in both",
    ],
    answer="NaN in PyTorch's, and the same as before on this page",
    wrong={
        "NaN in both": "Here masked_fill replaces the score, whatever stood there.",
        "the same as before in both": "Here it is replaced. But what is NaN + (−∞)?",
    },
    why="The score of that key is NaN. NaN + (−∞) is NaN, and spreads over the row; masked_fill replaces it.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
real = cu.padding_mask(torch.tensor([3, 4]), 5)  # (batch, 1, 1, keys)
functions = {
    "this page": attention,
    "course_utils": cu.scaled_dot_product_attention,
    "PyTorch": F.scaled_dot_product_attention,
}


def trace(function, place, what, clean=False):
    """What becomes of the answers if `what` stands in a forbidden key (1) or value (2)."""
    touched = [tensor.clone() for tensor in qkv]
    touched[place][..., -1, 0] = what
    if clean:
        touched[place] = touched[place].masked_fill(~real.transpose(-2, -1), 0.0)
    before, after = function(*qkv, real), function(*touched, real)
    return "NaN" if after.isnan().any() else "same" if after.equal(before) else "changed"


written = {
    "key: 1e6": (1, 1e6), "value: 1e6": (2, 1e6), "value: inf": (2, math.inf),
    "value: NaN": (2, math.nan), "key: NaN": (1, math.nan),
    "key: NaN, cleaned": (1, math.nan, True), "value: NaN, cleaned": (2, math.nan, True),
}  # fmt: skip
hidden = {
    name: [trace(f, *arguments) for f in functions.values()] for name, arguments in written.items()
}
pd.DataFrame(hidden, index=list(functions)).T

# %% [markdown]
# A million leaves no trace.
# A forbidden **value** of ∞ or NaN poisons the answer everywhere, because its weight 0 is *multiplied* with it.
# A forbidden **key** of NaN is harmless on this page, where `masked_fill` replaces its scores; PyTorch's operator on a CPU, and the package that calls it, give NaN.
# What to do: replace what is forbidden by zeros before attention (*cleaned*: `values.masked_fill(~real.mT, 0.0)`, and so for the keys), and find out where the NaN comes from.
#
# ### Five silent mistakes
#
# `nn.MultiheadAttention` and `nn.TransformerEncoder`, in PyTorch as well, read a boolean mask the other way round: True = must **not** look.
# Hand one the mask of the other, and no error is raised.
# How would you notice?
#
# A batch of four sentences with four places each, causal and padded.
# To see the weights whatever the code inside, take **one-hot values**: if value $i$ is the $i$-th unit vector, the answer *is* the row of weights.
# Three numbers are signs of a mistake: the largest weight **on padding**; the least and largest **row sum**; and the **leak**: how much the weights of the rows *before* word $t$ change if we add 1 to it, for $t$ = 1, 2, 3.

# %%
four = torch.randn(4, 4, 8, generator=torch.Generator().manual_seed(0))
by_key = torch.arange(4) < torch.tensor([4, 2, 1, 3])[:, None]  # (batch, keys)
good = by_key[:, None, :] & causal  # (batch, queries, keys)


def sees(mask):
    return lambda x: functions["PyTorch"](x, x, torch.eye(4).expand(4, 4, 4), mask)


def over_queries(x):
    return cu.masked_softmax((x @ x.mT / math.sqrt(8)).mT, good.mT).mT


cases = {
    "right": sees(good),
    "polarity": sees(~good),
    "zeros and ones, not boolean": sees(good.float()),
    "no axis for queries": sees(by_key & causal),  # by_key[:, None, :] is right
    "causal, off by one": sees(by_key[:, None, :] & torch.ones(4, 4).tril(1).bool()),
    "softmax over the queries": over_queries,
}


def signs(weigh):
    weights, sums, step = weigh(four), weigh(four).sum(dim=-1), torch.eye(4)[:, :, None]
    leak = max((weigh(four + step[t]) - weights)[:, :t].abs().max() for t in (1, 2, 3))
    return (weights * ~by_key[:, None]).max(), sums.min(), sums.max(), leak


# %% tags=["hide-input"] jupyter={"source_hidden": true}
heads = ["most on padding", "least row sum", "largest row sum", "leak"]
found = {case: [sign.item() for sign in signs(weigh)] for case, weigh in cases.items()}
betrayed = pd.DataFrame(found, index=heads).T
betrayed.round(2)

# %% [markdown]
# No line raised an error.
# *Polarity* reads exactly what is forbidden, and the last row of the full sentence, which may look everywhere, is now empty and sums to 0.
# A mask of *zeros and ones* is taken for numbers to *add* to the scores: nothing is forbidden.
# *No axis for queries*: broadcasting aligns from the right, and takes the rows of a mask (batch, keys) for queries; only because there are four of both does it fit.
# *Off by one* lets each word see the next, and only the leak shows it.
# *Softmax over the queries* leaves the padding alone; its rows do not sum to 1, and earlier rows change with later words.
#
# ### Exercise 4 · A key that is always there
#
# *open · 6 minutes*
#
# `nn.MultiheadAttention(…, add_zero_attn=True)` adds to every sentence one more key and value, both zero, that no mask forbids.
# Write down, for scores $a_i$, what a row of weights on the *real* keys now is, and what it sums to.
# Which of this chapter's problems disappear, and what does a query get that matches no key?
# When would you not want it?
# (The further page has a calculation.)

# %%
cu.quiz("masks", "poison")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A mask hides a million and no NaN value, and each misuse shows in a number."):
    assert hidden["key: 1e6"] == hidden["value: 1e6"] == ["same"] * 3
    assert hidden["value: NaN"] == hidden["value: inf"] == ["NaN"] * 3
    assert hidden["key: NaN"] == ["same", "NaN", "NaN"]
    assert hidden["key: NaN, cleaned"] == hidden["value: NaN, cleaned"] == ["same"] * 3
    wrong = (betrayed[heads[0]] > 0) | (betrayed[heads[3]] > 1e-6)
    wrong |= (betrayed[heads[1:3]] - 1).abs().max(axis=1) > 1e-5
    assert wrong.tolist() == [False] + [True] * 5

# %% [markdown]
# ## Take-aways
#
# - A mask is boolean, True = may look, with axes (batch, heads, queries, keys).
#   Padding forbids columns, causality forbids what lies above the diagonal; both at once is "and".
# - It belongs before the softmax: forbidden scores become $-\infty$.
#   Rows without a permitted key need a rule of their own: zeros.
# - Replace (`masked_fill`), do not add or multiply: what was replaced leaves no trace.
# - Project, score, scale, mask, normalize, mix: attention for batches is a few lines, equal to PyTorch's under the usual masks.
# - A mask gives a value the weight 0.
#   It does not hide a value of NaN.
# - Look at the weight on padding, at the sums of the rows, and at what changes before a changed word.
#
# Next: [Sequence to sequence](05_sequence_to_sequence.ipynb), where sentences of different lengths are translated.
# What other texts use for $-\infty$, the opposite convention, what zeroed embeddings do, and attention in pieces are on the further page: [Masks: other texts, other masks, attention in pieces](04_masks_further.ipynb).
#
# ## Quiz

# %%
cu.quiz("masks")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2: the mask as $-\infty$ in the decoder.
# - PyTorch, [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): the two conventions.
#   On NaN in masked places: [pytorch/pytorch#101967](https://github.com/pytorch/pytorch/issues/101967); on rows without a permitted key: [#41508](https://github.com/pytorch/pytorch/issues/41508).
