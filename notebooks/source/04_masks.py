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
# Two models learn to continue rows of digits, in 300 steps.
# One ends with a loss of 0.1 and writes rubbish.
# The other ends with 1.3 and is right.
# **What can a loss hide?**
#
# Each digit is the sum of the two before it, without the carry, as in 7 2 9 1 0 1, where 7 + 2 is 9 and 2 + 9 leaves 1.
# Three digits in ten are drawn at random instead, so that nobody can know the next one for certain.
# The **loss** ([cross-entropy](C_glossary.ipynb#cross-entropy)) is the mean of $-\ln p$, where $p$ is the probability that the model gave to the right digit.
# Guessing blindly among ten digits costs $\ln 10 = 2.3$.
# Both models have the same parts, learn from the same rows, and begin with the same random numbers (the same **seed**).
# In one of them a single character is different.

# %% [markdown] tags=["paths"]
# On the path to GPT: [Padding and causal masks: True = may attend](#Padding-and-causal-masks:-True-=-may-attend).
# On the path to a real model: [Padding and causal masks: True = may attend](#Padding-and-causal-masks:-True-=-may-attend), [Masked softmax: the mask comes first](#Masked-softmax:-the-mask-comes-first), [The clinic: find a wrong mask](#The-clinic:-find-a-wrong-mask).
# On the path to images: [Padding gets weight](#Padding-gets-weight), [Padding and causal masks: True = may attend](#Padding-and-causal-masks:-True-=-may-attend), [Masked softmax: the mask comes first](#Masked-softmax:-the-mask-comes-first), [Attention with a mask](#Attention-with-a-mask).

# %%
import math

import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.masks import clinic

cu.seed_everything(0)

# %% tags=["hide-input", "opening", "nbval-ignore-output"] jupyter={"source_hidden": true}
models, curves = {}, {}
for model_name, weigh in (("A", clinic.right), ("B", clinic.off_by_one)):
    models[model_name], losses = clinic.train(weigh)
    curves[f"model {model_name}"] = torch.tensor(losses).reshape(-1, 10).mean(dim=1)
loss = {model_name: curves[f"model {model_name}"][-5:].mean().item() for model_name in models}
follows = {model_name: clinic.followed(model) for model_name, model in models.items()}
for model_name, model in models.items():
    print(f"{model_name}: loss {loss[model_name]:.2f}, follows the rule {follows[model_name]:.0%}")
    print("   ", clinic.continued(model, [7, 2, 9, 1, 0, 1]))
cu.show_curves(
    list(range(10, clinic.STEPS + 1, 10)), curves, xlabel="step", ylabel="training loss", height=2.8,
    alt="Training loss over 300 steps. Model A falls to about half of where it began and stays there. Model B "
    "falls to nearly 0 within 100 steps.",
)  # fmt: skip

# %% [markdown]
# Model A follows the rule every time.
# Model B follows it about one time in four, while a guess would do so one time in ten.
# And yet its loss is so low that it must have known the random digits in advance.
# We got no error and no warning.
#
# The difference is in the **mask**, which says which keys a query may attend to.

# %% [markdown] tags=["goals"]
# By the end you will be able to
#
# - make masks for padding and for the future;
# - apply them before the softmax, even where a query has nothing to attend to (*Masked softmax*);
# - say how a wrong mask can make the loss *too* low;
# - in *The clinic* at the end, find seven silent mistakes with four numbers.

# %% [markdown] tags=["needs"]
# You will need [Queries, keys and values](01_queries_keys_values.ipynb).
# The scores here are dot products, divided by $\sqrt d$, and [Scoring functions](03_scoring_functions.ipynb) says why.

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "queries_keys_values")

# %% [markdown]
# ## Padding gets weight
#
# Sentences differ in length, but a [batch](C_glossary.ipynb#batch) is one tensor, so we fill up the shorter ones with a word that means nothing.
# This is **padding**:
#
# ```
# the     cat     sat     down
# birds   sing    <pad>   <pad>
# rain    <pad>   <pad>   <pad>
# ```
#
# Each word is a vector of four numbers, its [embedding](C_glossary.ipynb#embedding).
# A model learns these vectors, but that of `<pad>` stays zero.
# Every word is query and key at once, with the score $x_i \cdot x_j/\sqrt 4$.
# For example, *rain* is $(1, 0, 1, 0)$, so its score with itself is 1.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "What share of the weight of “rain” goes to the three zero vectors together?",
    ["nothing", "about half", "three quarters"],
    answer="about half",
    wrong={
        "nothing": "Their scores are 0. What is the exponential of 0?",
        "three quarters": "That would be right if all four scores were equal. But the score of “rain” with itself is 1, and the three others are 0.",
    },
    why="The exponentials are e = 2.72 for “rain” and 1, 1, 1 for the padding, which gets 3 of 5.72.",
)

# %% tags=["hide-output"] jupyter={"outputs_hidden": true}
pad = 0.0  # try -3.0 … 3.0
batch = [
    line.split()
    for line in ("the cat sat down", "birds sing <pad> <pad>", "rain <pad> <pad> <pad>")
]
vector_of = {
    "the": [0, 0, 1, 0], "cat": [1, 1, 0, 0], "sat": [0, 1, 1, 0],
    "down": [0, 0, 1, 1], "birds": [1, 1, 0, 1], "sing": [0, 1, 1, 1],
    "rain": [1, 0, 1, 0], "<pad>": [pad] * 4,
}  # fmt: skip
X = torch.tensor([[vector_of[word] for word in line] for line in batch]).float()
unmasked = (X @ X.mT / math.sqrt(4)).softmax(dim=-1)  # (batch, queries, keys)
print(f"rain's weight on padding: {unmasked[2, 0, 1:].sum():.3f}")

# %% [markdown]
# The picture shows all the weights, with a map for each sentence.
# In the second and third maps, the `<pad>` columns take a share of every row's weight.

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
# As a *value* a zero vector adds nothing, but as a *key* it takes weight away from the words.
# A cleverer vector doesn't help either.
# If it is $-3$ everywhere, *rain* gives little to `<pad>`, because our words have no negative numbers.
# But a query $(-1, 0, -1, 0)$ would then give it nearly everything.
# So we have to **forbid** padding.
#
# ## Padding and causal masks: True = may attend
#
# A [mask](C_glossary.ipynb#mask) is a tensor of truth values, one for each pair of a query and a key.
# In this course, as in PyTorch's attention operator, **True means that this query may attend to this key.**
#
# A **padding mask** forbids `<pad>`, which fills up the shorter sentences of a [batch](C_glossary.ipynb#batch).
# A single comparison gives it: a row of positions against a column of lengths.
#
# $$\begin{pmatrix}0&1&2&3\end{pmatrix} < \begin{pmatrix}4\\2\\1\end{pmatrix} = \begin{pmatrix}T&T&T&T\\T&T&F&F\\T&F&F&F\end{pmatrix}$$
#
# A **causal mask** keeps a model from reading the words that it has to predict.
# Query $i$ may attend to keys $0 \dots i$, and the permitted pairs form a triangle.
# If we want both masks, a pair needs *both* permissions.
#
# In the code `torch.arange(4)` gives the positions 0 to 3, `tril` keeps the lower triangle with the diagonal and makes the rest False, and `&` is "and".

# %%
second = 2  # try 0 … 4
lens = torch.tensor([4, second, 1])
padding = torch.arange(4) < lens[:, None]  # (keys,) < (batch, 1) → (batch, keys)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (queries, keys)
both = padding[:, None, :] & causal  # (batch, 1, keys) & (queries, keys)
pairs = both.sum(dim=(1, 2)).tolist()
print(f"padding\n{padding.int()}\nboth: {tuple(both.shape)}, permitted pairs {pairs}")

# %% [markdown]
# The drawing joins the two masks for the second sentence.

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
        "B": cu.Cells(4, 4, "both", shape="(queries, keys)", values=both[1].int().tolist(),
                      shades=both[1].int().tolist(), **ones),
    },
    alt=f"For the second sentence: one row with {second} ones, the padding mask, and a lower triangle, the "
    "causal mask, give by 'and' the part of the triangle that lies in the columns of the words.",
)  # fmt: skip

# %% [markdown]
# A padding mask treats all queries alike, so in the code we give it a query axis of size 1, and `&` repeats the mask along that axis.
# It forbids only *keys*.
# The *queries* of `<pad>` still have rows, and the loss ignores their answers.
#
# <details><summary>Which character makes model B?</summary>
#
# The 1 in `tril(1)`.
# With it the triangle is one column wider, and each digit may attend to the next one, the very digit that it has to predict.
# So B has learned to copy, and when it writes, there is no next digit yet.
# [*The clinic*](#The-clinic:-find-a-wrong-mask) at the end finds this out without reading any code.
#
# </details>
#
# Later chapters get the same masks from `cu.padding_mask(lens, 4)` and `cu.causal_mask(4)`, with axes for (batch, heads, queries, keys).
#
# ### Exercise 1 · Several sentences in a row
#
# *build · 9 minutes*
#
# To waste less room, we often put short sentences one after the other into a single row.
# You get `numbers` of shape (batch, keys), with 1 for the words of a row's first sentence, 2 for the words of its second, and so on.
# A `<pad>` has the number 0, and may come first or last.
# Write the mask that lets a word attend to itself and to the earlier words of its own sentence, and lets nobody attend to `<pad>`.


# %% tags=["exercise", "build"]
def my_mask(numbers):
    """(batch, keys) → (batch, queries, keys), queries as many as keys."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_mask(my_mask)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_mask_solution(numbers):
    """Numbers in a column meet the same numbers in a row: equal in one sentence, and in padding."""
    same = numbers[:, :, None] == numbers[:, None, :]
    words = numbers[:, None, :] > 0
    length = numbers.shape[-1]
    return same & words & torch.ones(length, length, dtype=torch.bool).tril()


cu.checks.my_mask(my_mask_solution)

# %% [markdown]
# ## Masked softmax: the mask comes first
#
# How do we bring scores and mask together?
# The three drawings follow three words and one `<pad>`, with both masks.

# %% jupyter={"source_hidden": true}
cu.stages("masks")

# %% [markdown]
# So the weights are a softmax over the permitted keys only.
# With $p_i = 1$ where key $i$ is permitted and 0 elsewhere,
#
# $$\alpha_i = \frac{p_i\, e^{a_i}}{\sum_j p_j\, e^{a_j}}.$$
#
# Two other ways come to mind, and we try them on four scores whose exponentials are 1, 2, 3, 4.
# The first two keys are permitted, so we want the weights $1/3$, $2/3$, 0, 0.
# In the code `~mask` means "not", and `masked_fill(where, number)` is a copy with `number` wherever `where` is True.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We write 0 in place of the two forbidden scores, and then take the softmax. How much weight do the forbidden keys get together?",
    ["0", "2/5", "7/10"],
    answer="2/5",
    wrong={
        "0": "Their scores are 0 now. What does the softmax make of a score of 0?",
        "7/10": "That is what they have without any mask, 3 and 4 of 10. We have just replaced both scores.",
    },
    why="The exponentials become 1, 2, 1, 1. Two of these five belong to forbidden keys.",
)

# %% tags=["hide-output"] jupyter={"outputs_hidden": true}
example = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).log()
first_two = torch.tensor([[True, True, False, False]])


def zero_the_scores(scores, mask):
    return (scores * mask).softmax(dim=-1)


def multiply_after(scores, mask):
    return scores.softmax(dim=-1) * mask


def minus_infinity(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


ways = [zero_the_scores, multiply_after, minus_infinity]
attempts = pd.DataFrame({f.__name__: f(example, first_two)[0].tolist() for f in ways}).T
attempts.add_prefix("key ").assign(sum=attempts.sum(axis=1)).round(3)

# %% [markdown]
# A score of 0 is a score like any other, because $e^0 = 1$.
# A mask after the softmax comes too late, since the forbidden keys have already had their share, and what is left sums to less than 1.
# Of the three ways, only $-\infty$ does what we want, because $e^{-\infty} = 0$.
#
# ### A query with nothing to attend to
#
# Padding in front makes **empty rows**.
# Under the causal mask the first position may attend only to itself, and it holds `<pad>`.
# A softmax over a row of $-\infty$ is 0/0, which is **NaN**, "not a number", and whatever we compute from a NaN is NaN again.
#
# In this course **an empty row has the weights 0**, so its answer is 0 as well.
# We first permit everything in an empty row, so that the softmax gives numbers and not NaN, and then set the row to 0.
# In the code `|` is "or".

# %%
in_front = causal & torch.tensor([False, False, True, True])  # two <pad>, two words


def zeros_where_empty(scores, attn_mask):
    empty = ~attn_mask.any(dim=-1, keepdim=True)
    return minus_infinity(scores, attn_mask | empty).masked_fill(empty, 0.0)


before = minus_infinity(torch.zeros(4, 4), in_front)
after = zeros_where_empty(torch.zeros(4, 4), in_front)
print(before.round(decimals=2), after.round(decimals=2), sep="\n")

# %% jupyter={"source_hidden": true}
cu.quiz("masks", "after", "own_lengths", "empty_row")

# %% [markdown]
# `cu.masked_softmax` gives the same weights.
# The [further page](04_masks_further.ipynb#Minus-infinity-in-other-texts) shows what other texts write in place of $-\infty$, and when masking after the softmax and dividing by the new sum goes wrong.
#
# ## Attention with a mask
#
# Attention takes six steps: **project, score, scale, mask, normalize, mix.**
# Projecting comes with [self-attention](07_self_attention.ipynb), and in this chapter queries, keys, and values are given.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .  Q      K      V
    .  score  score  .
    .  scale  scale  .
    M  mask   mask   .
    .  norm   norm   .
    .  mix    mix    mix
    .  Y      Y      Y
    """,
    nodes={
        "Q": cu.Cells(2, 3, "Q", shape="(b, n, d)", color="query", sheets=2),
        "K": cu.Cells(4, 3, "K", shape="(b, m, d)", color="key", sheets=2),
        "V": cu.Cells(4, 3, "V", shape="(b, m, e)", color="value", sheets=2),
        "M": cu.Cells(2, 4, "mask", shape="(b, n, m)", color="line", sheets=2),
        "score": cu.Box("score: Q K^T", shape="(b, n, m)"),
        "scale": cu.Box("scale: / √d"),
        "mask": cu.Box("mask: forbidden → −∞"),
        "norm": cu.Box("normalize: softmax over the keys"),
        "mix": cu.Box("mix: weights × V", shape="(b, n, e)"),
        "Y": cu.Cells(2, 3, "answers", shape="(b, n, e)", color="value", sheets=2),
    },
    arrows=["Q, K -> score -> scale -> mask -> norm -> mix -> Y", "V -> mix", "M -> mask"],
    alt="Queries and keys give scores, which are scaled; "
    "the mask sets forbidden scores to minus infinity; the softmax "
    "normalizes over the keys; the weights mix the values to the answers.",
    gap=(34, 20),
)  # fmt: skip

# %% [markdown]
# Each sentence of a batch has its own $Q$ and $K$, and `@` multiplies them sentence by sentence.
# This is a **batched matrix product** (for three axes also `torch.bmm`):
#
# $$[A_0, A_1]\,[B_0, B_1] = [A_0B_0,\; A_1B_1],\qquad (b, n, d)\,(b, d, m)\to(b, n, m).$$
#
# We check it on two sentences with ten keys each.
# The first has 2 valid keys, the second 6.
# All keys are *equal*, so the weights have to be $1/2$ and $1/6$.
# The value of key $i$ is $(i, 10i)$, so we expect the means of $0, 1$ and of $0, \dots, 5$, which are $(0.5, 5)$ and $(2.5, 25)$.


# %%
def attention(queries, keys, values, attn_mask):
    """(…, n, d), (…, m, d), (…, m, e), mask (…, n, m) → (…, n, e)."""
    scores = queries @ keys.mT  # score
    scores = scores / math.sqrt(queries.shape[-1])  # scale
    weights = zeros_where_empty(scores, attn_mask)  # mask, normalize
    return weights @ values  # mix


valid = 2  # try 1 … 10
toy_values = torch.arange(10.0)[:, None] * torch.tensor([1.0, 10.0])  # (10, 2), shared
toy_mask = cu.padding_mask(torch.tensor([valid, 6]), 10)[:, 0]  # (2, 1, 10)
toy = attention(torch.randn(2, 1, 3), torch.ones(2, 10, 3), toy_values, toy_mask)
for length, answer in zip((valid, 6), toy[:, 0].tolist(), strict=True):
    print(f"{length} valid keys: {[round(number, 3) for number in answer]}")

qkv = [torch.randn(3, 4, size) for size in (8, 8, 5)]
cu.equal(attention, F.scaled_dot_product_attention, *qkv, both)

# %% [markdown]
# Our four lines do what PyTorch's operator does, in the forward and in the backward pass.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Padding of zeros takes about half of rain's weight.", given=pad == 0.0):
    assert abs(unmasked[2, 0, 1:].sum() - 0.525) < 5e-4

with cu.guard("Of the three ways only −∞ before the softmax gives the weights that we want."):
    assert attempts.loc["multiply_after"].sum() < 0.31 and attempts.iloc[0, 2] > 0.19
    assert torch.allclose(minus_infinity(example, first_two)[0, :2], torch.tensor([1, 2]) / 3)
    assert abs(attempts.loc["zero_the_scores"][2:].sum() - 0.4) < 1e-6

with cu.guard(
    "Our masks, our softmax, and our attention are the package's.", given=(second, valid) == (2, 2)
):
    assert torch.equal(both, (cu.padding_mask(lens, 4) & cu.causal_mask(4))[:, 0])
    assert torch.equal(after, cu.masked_softmax(torch.zeros(4, 4), in_front))
    assert torch.allclose(toy[:, 0], torch.tensor([[0.5, 5.0], [2.5, 25.0]]))

# %% [markdown]
# ## The clinic: find a wrong mask
#
# Back to models A and B.
# To see the weights of an attention, whatever its code does inside, we hand it **one-hot values**: value $i$ has a 1 at position $i$, and zeros elsewhere.
# Then the answer *is* the row of weights.
#
# ### Four numbers
#
# From these weights we compute four numbers.
# If the attention is correct, all four are 0.
#
# - **Padding** is the largest weight that a word gives to `<pad>`.
# - **Row sum** says how far a word's weights are from summing to 1.
# - **Leak** says how much the earlier answers change when we change a later word with its query, key, and value.
# - **Newest** is about writing, where *one* new query meets all the keys so far.
#   It says how far this answer is from the one that the same query gets when all queries ask at once.
#
# Our four sentences differ in their padding, because some mistakes don't show if all sentences are padded alike.

# %% tags=["nbval-ignore-output"]
x = torch.randn(4, 4, 8, generator=torch.Generator().manual_seed(0))  # 4 sentences
words = torch.arange(4) >= torch.tensor([0, 1, 2, 1])[:, None]  # padded in front
one_hot = torch.eye(4).expand(4, 4, 4)


def four_numbers(attend):
    weights = attend(x, x, one_hot, words)
    padding = weights * ~words[:, None]
    leak = 0.0
    for t in (1, 2, 3):
        more = torch.eye(4)[t][:, None]  # add 1 to word t, and to its value
        changed = attend(x + more, x + more, one_hot + more, words) - weights
        leak = max(leak, changed[:, :t][words[:, :t]].abs().max().item())
    newest = attend(x[:, -1:], x, one_hot, words) - weights[:, -1:]
    return {
        "padding": padding[words].max().item(),
        "row sum": (weights.sum(dim=-1) - 1)[words].abs().max().item(),
        "leak": leak,
        "newest": newest.abs().max().item(),
    }


two = pd.DataFrame({f"model {n}": four_numbers(m.attend) for n, m in models.items()}).T
two.round(2)

# %% [markdown]
# Model B leaks.
# Its mask says `tril(1)` instead of `tril()`, so the triangle is **off by one**.
#
# So a loss can hide a leak, but there is a telltale sign: **a loss lower than the noise allows, on rows that the model has never seen, means a mistake.**
# Usually the model can read the right answer in its input, because a mask leaks or the targets aren't shifted.
# If it can't, check whether padding counts in the mean.
#
# How low can an honest loss be?
# The digit of the rule has the probability $0.7 + 0.03 = 0.73$, and each other digit has 0.03.
# A model that gives exactly these probabilities has the loss $-0.73\ln0.73 - 9\cdot0.03\ln0.03 = 1.18$, and no model that sees only the past can have less.
# On our rows the floor is 1.24, because nobody can know what follows the first digit.
#
# A simpler test doesn't look inside at all: **a sentence must get the same answers alone and in a padded batch** of different lengths.
# This test finds wrong padding but no leak, so B passes it.
#
# ### Seven mistakes
#
# The table has seven mistakes that people really make.
# Each differs in one thing from `masked_softmax(scores, words[:, None] & causal)`, and PyTorch doesn't complain.
#
# | mistake | what is written | what happens |
# |---|---|---|
# | polarity | `~mask`, as [nn.MultiheadAttention](A_names.ipynb) wants it | the model reads what is forbidden |
# | zeros and ones | `scores + mask` | True is added as 1, so nothing is forbidden |
# | zero the scores | `scores * mask` | a forbidden score is 0, and gets $e^0 = 1$ |
# | no axis | `words & causal` | the batch axis of the mask lands on the queries, without an error if both have the same size |
# | off by one | `tril(1)` | each position sees the next |
# | over the queries | `softmax(dim=-2)` | columns sum to 1 instead of rows, so a later query changes earlier rows |
# | upper left | `causal[:n]`, the *first* $n$ rows of the triangle, for the *newest* $n$ queries, as [PyTorch's](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) `is_causal=True` does | a model that writes asks one query, which then sees only the first word |

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We train a model with the last mistake, “upper left”. How does its training loss compare with that of the right model?",
    ["lower, as with B", "exactly the same", "a little higher"],
    answer="exactly the same",
    wrong={
        "lower, as with B": "That would need a look ahead. Does the first row of the triangle permit more than the last one?",
        "a little higher": "That would be right if it were trained one query at a time. How many queries and how many keys are there in a training step?",
    },
    why="A training step has a query for each key, and the first n of n rows are all rows. The mistake only shows when the model writes.",
)

# %% [markdown]
# We trained a model with each mistake, as we trained A and B.
# In which columns does the mistake show?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
attends = {"right": clinic.attention(clinic.right)}
attends |= {name: clinic.attention(weigh) for name, weigh in clinic.MISTAKES.items()}
found = pd.DataFrame({name: four_numbers(attend) for name, attend in attends.items()}).T
stored = {name: cu.stored_runs("masks", "patients", mistake=name) for name in attends}
cost = {
    key: [sum(run.result[key] for run in runs) / len(runs) for runs in stored.values()]
    for key in ("loss", "follows the rule")
}
pd.concat([pd.DataFrame(cost, index=list(attends)), found], axis=1).round(2)

# %% [markdown]
# The four numbers find every one of these mistakes, and the loss doesn't.
# The lowest losses belong to models that read the answer.
# But *over the queries* and *zero the scores* leak as well, and their losses are near the right model's.
# The loss of *upper left* is exactly the right model's.
#
# The pattern of zeros nearly names the mistake.
# Only *zeros and ones* and *zero the scores* share a pattern, and a row of weights tells these two apart: where scores were set to zero, all forbidden keys of a row weigh the same.
# Outside our list a pattern proves less, since a model without any padding mask, for example, has the pattern of *no axis*.
#
# ### Exercise 2 · Your patient
#
# *bug · 11 minutes*
#
# Now you are the doctor.
# Choose a number, and the cell below draws one of the seven mistakes and trains a model with it.
# Examine the model's attention, `patient.attend`, with `four_numbers`, and say what is wrong.

# %% tags=["nbval-ignore-output"]
case = 1  # try 0 … 99
patient = clinic.patient(case)
print(f"loss {patient.loss:.2f}, follows the rule {clinic.followed(patient.model):.0%}")
print(clinic.continued(patient.model, [7, 2, 9, 1, 0, 1]))


# %% tags=["exercise", "bug"]
def diagnosis():
    """The patient's number, and the name of the mistake as in the table."""
    return ...  # such as case, "polarity"


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.diagnosis(diagnosis)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def diagnosis_solution():
    """Patient 1 gives weight to padding, and leaks.

    The forbidden weights in a row differ, so their scores weren't set to zero. Instead, 1 was added to the permitted scores.
    """
    return 1, "zeros and ones"


cu.checks.diagnosis(diagnosis_solution)

# %% [markdown]
# <details><summary>How sure is this?</summary>
#
# We trained A and B at three [learning rates](C_glossary.ipynb#learning-rate), with three seeds each, and every time B had the lower loss and wrote the worse digits.
# Each of the seven mistakes was trained with three seeds at one rate, and the table has their means.
# All of this is one small model with a single layer.
# The little that B knows of the rule comes from the last position of each training row, where no next digit exists that it could copy.
# When we left this position out of the loss, B followed the rule no better than a guess, with each of three seeds.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The model that leaks has the lower loss, at each of three rates."):
    assert loss["B"] < 0.3 < 1.1 < loss["A"] and follows["A"] > 0.9 > 0.4 > follows["B"]
    rates = cu.stored_runs("masks", "two_models")
    A, B = ([r.result for r in rates if r.config["mistake"] == m] for m in ("right", "off by one"))
    assert len(A) == len(B) == 9 and max(r["loss"] for r in B) < 0.5 < min(r["loss"] for r in A)
    assert min(r["follows the rule"] for r in A) > 0.6 > max(r["follows the rule"] for r in B)

with cu.guard("Model B's attention leaks, and model A's doesn't."):
    assert two.loc["model A"].max() < 1e-5 < 0.03 < two.loc["model B", "leak"]

with cu.guard("Four numbers find the seven mistakes, and the loss doesn't."):
    shown = found > 1e-5
    assert not shown.loc["right"].any() and shown.drop("right").any(axis=1).all()
    for right, wrong in zip(stored["right"], stored["upper left"], strict=True):
        assert right.result["loss"] == wrong.result["loss"]
        assert right.result["follows the rule"] > 0.9 > 0.5 > wrong.result["follows the rule"]
    for right, wrong in zip(stored["right"], stored["zero the scores"], strict=True):
        assert abs(right.result["loss"] - wrong.result["loss"]) < 0.1
        assert wrong.result["follows the rule"] < 0.3

with cu.guard("Two of them share a pattern of zeros, and a row of weights tells them apart."):
    assert len(shown.drop_duplicates()) == len(shown) - 1
    pair = ("zero the scores", "zeros and ones")
    assert shown.loc[pair[0]].equals(shown.loc[pair[1]])
    forbidden = [attends[name](x, x, one_hot, words)[2, 2, [0, 1, 3]] for name in pair]
    assert [row.max() - row.min() < 1e-6 for row in forbidden] == [True, False]
    without = clinic.attention(lambda scores, words: clinic.right(scores, torch.ones_like(words)))
    pattern = [number > 1e-5 for number in four_numbers(without).values()]
    assert pattern == shown.loc["no axis"].tolist()

with cu.guard(
    "Alone and in a padded batch a sentence gets the same answers, from B as well, and with different lengths not where the mask lacks an axis."
):
    without_axis = clinic.NextDigit(clinic.attention(clinic.MISTAKES["no axis"]))
    for lengths, differs in ((torch.full((24,), 10), False), (5 + torch.arange(24) % 10, True)):
        rows = clinic.rows(torch.Generator().manual_seed(5), lengths)[:, 1:]
        for model in (*models.values(), without_axis):
            gaps = []
            for row, in_batch in zip(rows, model(rows), strict=True):
                n = int((row != clinic.PAD).sum())
                gaps.append((in_batch[-n:] - model(row[None, -n:], newest=n)[0]).abs().max())
            expected = differs and model is without_axis
            assert (max(gaps) > 1e-3) == expected

with cu.guard("A loss is too low without a leak if padding counts in the mean."):
    assert loss["A"] > 1.24
    floor = -0.73 * math.log(0.73) - 9 * 0.03 * math.log(0.03)
    generator = torch.Generator().manual_seed(0)
    real = torch.cat([clinic.rows(generator)[:, :-1] != clinic.PAD for _ in range(50)])
    first = len(real) / real.sum()  # the share of first digits
    assert abs(floor - 1.18) < 0.005
    assert abs((1 - first) * floor + first * math.log(10) - 1.24) < 0.01
    assert loss["A"] * real.float().mean() < 1.1
    assert abs(cost["loss"][list(attends).index("over the queries")] - cost["loss"][0]) < 0.08

# %% [markdown]
# ## Take-aways
#
# - A mask is boolean, and True means "may attend".
#   Padding forbids columns, causality forbids what lies above the diagonal, and `&` joins the two.
# - The mask comes before the softmax (*Masked softmax*).
#   Forbidden scores become $-\infty$, and an empty row gets zeros.
# - A wrong mask raises no error and may even *lower* the loss.
#   *The clinic* finds seven such mistakes with four numbers: the weight on padding, the row sums, the leak, and the newest query asked by itself.

# %% [markdown] tags=["next"]
# Next: [Sequence to sequence](05_sequence_to_sequence.ipynb), where we translate sentences of different lengths.
# On the path to GPT, to a real model and to images, [Self-attention](07_self_attention.ipynb) comes next.
# Further: [Masks: other texts, other masks, attention in pieces](04_masks_further.ipynb).

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("masks")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2: the mask as $-\infty$ in the decoder.
# - PyTorch, [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): the two conventions, and `is_causal` with more keys than queries.
