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
# One ends with a loss of 0.1 and writes rubbish; the other has 1.3 and is right.
# **What can a loss hide?**
#
# Each digit is the sum of the two before it, without the carry: 7 2 **9** 1 **0** 1 …
# Three digits in ten are drawn at random instead, so that nobody can know the next one for certain.
# Both models have the same parts, the same data and the same seed.
# In one of them a single character is different.
#
# On the way to GPT: [Padding gets weight](#Padding-gets-weight), [True = may attend](#True-=-may-attend), [Before the softmax](#Before-the-softmax), [Attention with a mask](#Attention-with-a-mask), [Four numbers](#Four-numbers).
# On the way to images: [Padding gets weight](#Padding-gets-weight), [True = may attend](#True-=-may-attend), [Before the softmax](#Before-the-softmax), [Attention with a mask](#Attention-with-a-mask).

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
# A guess follows the rule in one case of ten.
# Model A follows it always, and B in about one case of four, although B's loss is so low that it must have known the random digits in advance.
# Nothing raised an error.
# (Three seeds at each of three rates give the same picture.)
#
# What is different is a **mask**: it says which keys a query may attend to.
# After this chapter you can
#
# - make masks for padding and for the future;
# - apply them before the softmax, also where a query has nothing to attend to;
# - find six silent mistakes by four numbers.
#
# It needs [Scoring functions](03_scoring_functions.ipynb): dot products as scores, and $1/\sqrt d$.

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "queries_keys_values")

# %% [markdown]
# ## Padding gets weight
#
# A [batch](C_glossary.ipynb#batch) is one tensor, so shorter sentences are filled up with a word that means nothing:
#
# ```
# the     cat     sat     down
# birds   sing    <pad>   <pad>
# rain    <pad>   <pad>   <pad>
# ```
#
# Each word is a vector of four numbers.
# In a model this vector is learned and is called the word's [embedding](C_glossary.ipynb#embedding); that of `<pad>` stays zero.
# Every word is query and key at once, with the score $x_i \cdot x_j/\sqrt 4$. *rain* is $(1, 0, 1, 0)$, so that its score with itself is 1.

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
# A zero vector adds nothing as a *value*, and yet it takes weight from the words as a *key*.
# Try $-3$ in its place: *rain* now gives little to `<pad>`, because no word here has a negative number.
# But a query $(-1, 0, -1, 0)$ would give this padding nearly everything.
#
# ## True = may attend
#
# A mask is a tensor of truth values, one for each pair of a query and a key.
# In this course, as in PyTorch's attention operator, **True means: this query may attend to this key.**
#
# A **padding mask** comes from the lengths by one comparison.
# Places in a row meet lengths in a column:
#
# $$\begin{pmatrix}0&1&2&3\end{pmatrix} < \begin{pmatrix}4\\2\\1\end{pmatrix} = \begin{pmatrix}T&T&T&T\\T&T&F&F\\T&F&F&F\end{pmatrix}$$
#
# A **causal mask** keeps a model from reading the words that it has to predict: query $i$ may attend to keys $0 \dots i$, a triangle.
# Both at once: a pair needs *both* permissions.

# %%
second = 2  # try 0 … 4
lens = torch.tensor([4, second, 1])
padding = torch.arange(4) < lens[:, None]  # (keys,) < (batch, 1) → (batch, keys)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (queries, keys)
both = padding[:, None, :] & causal  # (batch, 1, keys) & (queries, keys)
pairs = both.sum(dim=(1, 2)).tolist()
print(f"padding\n{padding.int()}\nboth: {tuple(both.shape)}, permitted pairs {pairs}")
own_lens = torch.tensor([[1, 3], [2, 4]])  # a length for each query: (batch, queries)
print(f"a length for each query\n{(torch.arange(4) < own_lens[..., None]).int()}")

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
# The axis of size 1 says *all queries alike*, and `&` repeats it.
# A padding mask forbids *keys*.
# The *queries* `<pad>` still have rows; the loss leaves their answers out.
#
# `cu.padding_mask(lens, 4)` and `cu.causal_mask(4)` make the same two for later chapters, with axes for (batch, heads, queries, keys).
# Lengths may also differ from query to query, with shape (batch, queries), as the last lines show.
# A causal mask, for example, is the one with the lengths 1, 2, 3, 4.
#
# ### Exercise 1 · Several sentences in a row
#
# *build · 7 minutes*
#
# To waste less, short sentences are put one after the other into one row.
# You get `numbers`, (batch, keys): 1 for the words of a row's first sentence, 2 for those of its second, and so on; 0 for `<pad>`, in front or at the end.
# Write the mask with which a word attends to itself and to the earlier words of its own sentence, and nobody to `<pad>`.


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
# ## Before the softmax
#
# The weights that we want are a softmax over the permitted keys alone.
# With $p_i = 1$ where key $i$ is permitted and 0 elsewhere:
#
# $$\alpha_i = \frac{p_i\, e^{a_i}}{\sum_j p_j\, e^{a_j}}.$$
#
# By hand: four scores with the exponentials 1, 2, 3, 4, and the first two keys permitted.
# The weights have to be $1/3$, $2/3$, 0, 0.
# Three attempts: forbidden scores become 0, forbidden weights become 0, or forbidden scores become $-\infty$.
# (`~mask` is "not", and `masked_fill(where, number)` is a copy with `number` wherever `where` is True.)

# %%
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

# %% jupyter={"source_hidden": true}
cu.explore.masked_scores()

# %% [markdown]
# A score of 0 is a score like any other, because $e^0 = 1$; and a mask after the softmax comes too late, as the forbidden keys have had their share.
# Only $e^{-\infty} = 0$ does it.
#
# ### Exercise 2 · Find the bug
#
# *bug · 7 minutes*
#
# Here the mask comes after the softmax, *and then each row is divided by what is left*.
# On paper this is the formula above, and on our example it is right.
# But in the second line a forbidden key matches much better than the permitted ones.
# From which `loud` on does this end in NaN, and why?
# Write a version that survives it.

# %%
loud = 120.0  # try 80.0 … 130.0


def buggy_masked_softmax(scores, attn_mask):
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / weights.sum(dim=-1, keepdim=True)


print(buggy_masked_softmax(example, first_two))
print(buggy_masked_softmax(torch.tensor([[0.0, 0.7, loud, 0.0]]), first_two))


# %% tags=["exercise", "bug"]
def fixed_masked_softmax(scores, attn_mask):
    """(…, queries, keys), True = may attend → weights; each row has a permitted key."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_masked_softmax(fixed_masked_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_masked_softmax_solution(scores, attn_mask):
    """A softmax subtracts the row's largest score, here a forbidden one.

    exp(0 − 120) is 0 in single precision, so nothing permitted is left, and 0/0 is NaN. Forbidden keys have
    to be out before the softmax.
    """
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)


cu.checks.fixed_masked_softmax(fixed_masked_softmax_solution)

# %% [markdown]
# ### A query with nothing to attend to
#
# Padding in front makes **empty rows**: with the causal mask the first place may attend to itself alone, and it is `<pad>`.
# The softmax of nothing but $-\infty$ is 0/0.
# The rule of this course: **an empty row has the weights 0**, and its answer is 0.
# Such a row is treated as if all were permitted, and then cleared.

# %%
in_front = causal & torch.tensor([False, False, True, True])  # two <pad>, two words
masked = cu.choose(fixed_masked_softmax, minus_infinity)


def zeros_where_empty(scores, attn_mask):
    empty = ~attn_mask.any(dim=-1, keepdim=True)
    return masked(scores, attn_mask | empty).masked_fill(empty, 0.0)


before, after = (f(torch.zeros(4, 4), in_front) for f in (masked, zeros_where_empty))
print(before.round(decimals=2), after.round(decimals=2), sep="\n")

# %% jupyter={"source_hidden": true}
cu.quiz("masks", "after", "own_lengths", "empty_row")

# %% [markdown]
# `cu.masked_softmax` gives the same.
# What others write for $-\infty$, and where it breaks, is on the [further page](04_masks_further.ipynb).
#
# ## Attention with a mask
#
# Attention takes six steps, and the mask is the fourth: **project, score, scale, mask, normalize, mix.**
# The projections $W_Q, W_K, W_V$ come with [self-attention](07_self_attention.ipynb).
# Here the queries, keys and values are given (in the drawing, made of words $x$ that ask and words $z$ that are asked).

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
        "M": cu.Cells(2, 4, "mask", shape="(b, n, m)", color="line", sheets=2),
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
    "the mask sets forbidden scores to minus infinity; the softmax "
    "normalizes over the keys; the weights mix the values to the answers.",
    gap=(34, 20),
)  # fmt: skip

# %% [markdown]
# Each sentence of a batch has its own $Q$ and $K$; `@` multiplies them sentence by sentence, a **product of batches** (`torch.bmm` for three axes):
#
# $$[A_0, A_1]\,[B_0, B_1] = [A_0B_0,\; A_1B_1],\qquad (b, n, d)\,(b, d, m)\to(b, n, m).$$
#
# **A batch that can be checked by hand.**
# Two sentences with ten keys each, of which 2 and 6 are valid.
# All keys are **equal**, so that the weights have to be $1/2$ and $1/6$.
# The value of key $i$ is $(i, 10i)$, so that the answers have to be the means of $0, 1$ and of $0, \dots, 5$: $(0.5, 5)$ and $(2.5, 25)$.
# The last line holds `attention` against PyTorch's operator, outputs and gradients.


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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Padding takes a weight of 0.525, and only −∞ before the softmax gives the weights that we want.",
    given=(pad, second, valid) == (0.0, 2, 2),
):
    assert abs(unmasked[2, 0, 1:].sum() - 0.525) < 5e-4
    assert torch.equal(both, (cu.padding_mask(lens, 4) & cu.causal_mask(4))[:, 0])
    assert attempts.loc["multiply_after"].sum() < 0.31 and attempts.iloc[0, 2] > 0.19
    assert torch.allclose(minus_infinity(example, first_two)[0, :2], torch.tensor([1, 2]) / 3)
    assert torch.equal(after, cu.masked_softmax(torch.zeros(4, 4), in_front))
    assert torch.allclose(toy[:, 0], torch.tensor([[0.5, 5.0], [2.5, 25.0]]))

# %% [markdown]
# ## Four numbers
#
# Back to models A and B. We want to see the weights of an attention, whatever the code inside.
# The trick: **one-hot values.**
# If value $i$ is the $i$-th unit vector, the answer *is* the row of weights.
#
# Then four numbers, all 0 for a right attention, over the queries that are words:
#
# - **padding**: the largest weight on `<pad>`;
# - **row sum**: how far a row's sum is from 1;
# - **leak**: how much earlier rows change when a later word does;
# - **newest**: how much the newest row changes when its query is asked alone, as a model does that writes word by word and keeps its keys and values.
#   There are then *more keys than queries*.

# %% tags=["nbval-ignore-output"]
x = torch.randn(4, 4, 8, generator=torch.Generator().manual_seed(0))  # four rows
words = torch.arange(4) >= torch.tensor([0, 1, 2, 1])[:, None]  # padded in front
one_hot = torch.eye(4).expand(4, 4, 4)


def four_numbers(attend):
    weights = attend(x, x, one_hot, words)
    padding = weights * ~words[:, None]
    leak = torch.zeros(())
    for t in (1, 2, 3):
        later = x + torch.eye(4)[t][:, None]  # add 1 to word t
        changed = (attend(later, later, one_hot, words) - weights)[:, :t]
        leak = torch.maximum(leak, changed[words[:, :t]].abs().max())
    newest = attend(x[:, -1:], x, one_hot, words) - weights[:, -1:]
    return {
        "padding": padding[words].max().item(),
        "row sum": (weights.sum(dim=-1) - 1)[words].abs().max().item(),
        "leak": leak.item(),
        "newest": newest.abs().max().item(),
    }


two = pd.DataFrame({f"model {n}": four_numbers(m.attend) for n, m in models.items()}).T
two.round(2)

# %% [markdown]
# B leaks.
# In its mask stands `tril(1)` where A has `tril()`: the triangle is **off by one**, and each place attends to the next one, the very digit that it has to predict.
# So B learned to copy, and when it writes there is no next digit yet.
# (The little that it knows of the rule comes from the last place of each row, where no next digit stands.)
#
# This is the sign to remember: **a loss lower than chance allows is a leak.**
# The rule's digit comes in 73 % of the cases, each other in 3 %, so that no model of the past gets below $-0.73\ln0.73 - 9\cdot0.03\ln0.03 = 1.18$.
#
# ## The clinic
#
# Six mistakes, none of which raises an error.
# In each, one thing differs from `masked_softmax(scores, words[:, None] & causal)`:
#
# | mistake | what is written | what happens |
# |---|---|---|
# | polarity | `~mask`, as [nn.MultiheadAttention](A_names.ipynb) wants it | reads what is forbidden |
# | zeros and ones | `scores + mask` | a truth value counts as 1; nothing is forbidden |
# | no axis | `words & causal` | broadcasting takes the rows of the batch for queries; fits only where there are as many |
# | off by one | `tril(1)` | each place sees the next |
# | over the queries | `softmax(dim=-2)` | columns sum to 1, and later queries have a part in earlier rows |
# | upper left | `causal[:n]` for the newest n queries; [PyTorch's](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) `is_causal=True` | the newest query gets the row of the first |
#
# Each was trained as A and B were, with three seeds; the table has the means, and then the four numbers.

# %%
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
# Each row has another pattern of zeros, so that the four numbers name the mistake.
# The losses do not: the lowest belong to models that read the answer.
# *Upper left* has the very loss of the right model, because in training there are as many queries as keys.
# `cu.scaled_dot_product_attention(…, is_causal=True)` takes the queries for the *last* of the keys, and refuses more queries than keys.
#
# ### Exercise 3 · Your patient
#
# *bug · 7 minutes*
#
# Choose a number.
# A training script with one of the six mistakes, drawn by this number, runs below, and you get its loss and what it writes.
# Its attention is `patient.attend`.
# Examine it, and say what is wrong; with another number you get another patient.

# %% tags=["nbval-ignore-output"]
case = 7  # try 0 … 99
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
    """Patient 7: padding gets weight, and no row leaks, so that one sentence has the padding of another."""
    return 7, "no axis"


cu.checks.diagnosis(diagnosis_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The model that leaks has the lower loss, and four numbers tell the six mistakes apart."
):
    assert loss["B"] < 0.3 < 1.1 < loss["A"] and follows["A"] > 0.9 > 0.4 > follows["B"]
    rates = cu.stored_runs("masks", "two_models")
    A, B = ([r.result for r in rates if r.config["mistake"] == m] for m in ("right", "off by one"))
    assert len(A) == len(B) == 9 and max(r["loss"] for r in B) < 0.5 < min(r["loss"] for r in A)
    assert min(r["follows the rule"] for r in A) > 0.6 > max(r["follows the rule"] for r in B)
    shown = found > 1e-5
    assert not shown.loc["right"].any() and len(shown.drop_duplicates()) == len(shown)
    for one, other in zip(stored["right"], stored["upper left"], strict=True):
        assert one.result["loss"] == other.result["loss"]
        assert one.result["follows the rule"] > 0.9 > 0.5 > other.result["follows the rule"]

with cu.guard("The attention of model B leaks, and the attention of model A doesn't."):
    assert two.loc["model A"].max() < 1e-5 < 0.03 < two.loc["model B", "leak"]

# %% [markdown]
# ## Take-aways
#
# - A mask is boolean, True = may attend.
#   Padding forbids columns, causality what lies above the diagonal, and both together are "and".
# - It belongs before the softmax: forbidden scores become $-\infty$, and an empty row gets zeros.
# - A mistake in a mask raises no error and may *lower* the loss.
#   Four numbers find it: weight on padding, row sums, leak, and the newest query asked alone.
#
# Next: [Sequence to sequence](05_sequence_to_sequence.ipynb), where sentences of different lengths are translated.
# On the way to GPT: [Self-attention](07_self_attention.ipynb).
# Further: [Masks: other texts, other masks, attention in pieces](04_masks_further.ipynb).
#
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
