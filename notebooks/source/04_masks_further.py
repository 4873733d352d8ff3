# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Masks: other texts, other masks, attention in pieces
#
# This page is for a second reading of [Masks](04_masks.ipynb).
# You can read each section on its own.

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Minus infinity in other texts
#
# Many texts write something else than $-\infty$.
# Before we compare them, play with the three ways of the chapter on five words.
# In which of them does a forbidden pair (in a frame) get weight, and in which do the rows lose some?

# %% jupyter={"source_hidden": true}
cu.explore.masked_scores()

# %% [markdown]
# And here is what some well-known texts write.
#
# | text | forbidden scores | what came of it |
# |---|---|---|
# | Vaswani et al. (2017), section 3.2.3 | $-\infty$ | |
# | BERT (Devlin et al., 2019), the published code | $-10^4$, *added* | BERT was trained with it |
# | *The Annotated Transformer* (Rush, 2018) | $-10^9$, `masked_fill` | trained as well; an error in float16 |
# | *Dive into Deep Learning* (Zhang et al., 2023), section 11.3 | $-10^6$, written into the scores in place | the caller's scores are changed |
# | GPT-2 (Radford et al., 2019), the published code | $wb - 10^{10}(1-b)$ with a mask $b$ of zeros and ones | GPT-2 ran with it; NaN in float16 |
# | UvA Deep Learning tutorials (Lippe, 2022), tutorial 6 | $-9\cdot 10^{15}$, `masked_fill` | an error in float16 |
# | Transformers (Wolf et al., 2020), many of its models | the lowest finite number of the dtype, *added* | empty rows got a function of their own |
# | nanoGPT (Karpathy, 2022), its written-out form | $-\infty$, `masked_fill` | |
#
# On ordinary scores all of them give the same weights.
# To see where they differ, we compute with four scores, of which the first two are permitted, in the arithmetic of each text.


# %%
def filled_with(constant):
    return lambda scores, mask: scores.masked_fill(~mask, constant)


def gpt_2(scores, mask):
    b = mask.to(scores.dtype)
    return scores * b - torch.tensor(1e10).to(scores.dtype) * (1 - b)


def bert(scores, mask):
    return scores - 1e4 * ~mask


def lowest_added(scores, mask):
    return scores + (1 - mask.to(scores.dtype)) * torch.finfo(scores.dtype).min


def in_place(scores, mask):
    scores[~mask] = -1e6
    return scores


# %% tags=["hide-input"] jupyter={"source_hidden": true}
texts = {
    "BERT, −10⁴": bert, "−10⁶ in place": in_place, "−10⁹": filled_with(-1e9), "GPT-2, 10¹⁰": gpt_2,
    "−9·10¹⁵": filled_with(-9e15), "lowest, added": lowest_added,
    "−∞": filled_with(-math.inf),
}  # fmt: skip
two = torch.tensor([[True, True, False, False]])
none = torch.zeros(1, 4, dtype=torch.bool)
ordinary = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).log()


def outcome(change, scores, mask):
    """The weights in words; an error's name."""
    try:
        row = change(scores.clone(), mask).softmax(dim=-1)[0].float()
    except RuntimeError:
        return "error"
    if row.isnan().any():
        return "NaN"
    return " ".join(f"{number:.2f}" for number in row)


answers_of = {
    text: {
        "ordinary": outcome(change, ordinary, two),
        "float16": outcome(change, ordinary.half(), two),
        "scores −10¹²": outcome(change, torch.full((1, 4), -1e12), two),
        "none permitted": outcome(change, ordinary, none),
    }
    for text, change in texts.items()
}
compared = pd.DataFrame(answers_of).T
compared

# %% [markdown]
# In **float16** two of the constants don't fit, and GPT-2's formula has $10^{10}\cdot 0 = \infty\cdot 0$, which is NaN.
# With **very low scores** three constants put all weight on forbidden keys, and BERT's is lost in rounding.
# And if **none is permitted**, $-\infty$ gives NaN, while every other version reads forbidden values.
# A model that never meets such a case loses nothing by it, and so BERT and the Annotated Transformer learned what they had to learn.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("All versions agree on ordinary scores, and none of them survives all four columns."):
    assert compared["ordinary"].nunique() == 1
    assert (compared["float16"] == "error").sum() == 2 and compared["float16"][
        "GPT-2, 10¹⁰"
    ] == "NaN"
    assert (compared["scores −10¹²"] == "0.00 0.00 0.50 0.50").sum() == 3
    assert compared["none permitted"]["−∞"] == "NaN"
    constants = compared["none permitted"].drop(["−∞", "BERT, −10⁴"])
    assert (constants == "0.25 0.25 0.25 0.25").all()

# %% [markdown]
# ### Exercise 1 · Find the bug
#
# *bug · 11 minutes*
#
# Somebody multiplies the mask in after the softmax *and then divides each row by what is left*.
# On paper this is a softmax over the permitted keys, and for our four scores it is right.
# Now let a forbidden key match much better than the permitted ones, as in the second line below.
# From which `loud` on does this end in NaN, and why?
# Write a version that survives it.

# %%
loud = 120.0  # try 80.0 … 130.0


def buggy_masked_softmax(scores, attn_mask):
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / weights.sum(dim=-1, keepdim=True)


print(buggy_masked_softmax(ordinary, two))
print(buggy_masked_softmax(torch.tensor([[0.0, 0.7, loud, 0.0]]), two))


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
# ## Which version passes which test?
#
# We give five ways of writing a masked softmax six tests.
# What they ask of empty rows and of NaN are rules of this course.
#
# - **Low scores.** The permitted scores are $-2\cdot 10^6$.
# - **Float16.** Its largest number is 65,504.
# - **Empty row.** It should have the weights 0.
# - **Gradient** of the scores, and of the values. Both should be finite, although a row is empty and the loss doesn't read it.
# - **NaN seen.** A NaN among the *permitted* scores should stay visible, because it means that a model is broken.


# %%
def minus_million(scores, mask):
    return scores.masked_fill(~mask, -1e6).softmax(dim=-1)


def minus_infinity(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def add_and_clean(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(dim=-1).nan_to_num()


def replace_and_clean(scores, mask):
    return minus_infinity(scores, mask).nan_to_num()


def replace_twice(scores, mask):
    return minus_infinity(scores, mask).masked_fill(~mask, 0.0)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
in_front = cu.causal_mask(4) & torch.tensor([False, False, True, True])  # two rows are empty


def with_empty_rows(softmax):
    """Weights, and the gradients of scores and values; the loss reads the two rows that are not empty."""
    scores, values = torch.randn(4, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    weights = softmax(scores * 1.0, in_front)
    return weights, *torch.autograd.grad((weights @ values)[2:].sum(), (scores, values))


exam = {
    "low scores": lambda f: bool(f(torch.full((1, 4), -2e6), two)[0, 0] == 0.5),
    "float16": lambda f: bool(f(ordinary.half(), two)[0, 2:].eq(0).all()),
    "empty row": lambda f: with_empty_rows(f)[0][0].tolist() == [0.0] * 4,
    "gradient: scores": lambda f: bool(with_empty_rows(f)[1].isfinite().all()),
    "gradient: values": lambda f: bool(with_empty_rows(f)[2].isfinite().all()),
    "NaN seen": lambda f: bool(f(ordinary + math.nan, two)[0, :2].isnan().all()),
}


def passes(test, softmax):
    """✓ or ✗; an exception is ✗."""
    try:
        return "✓" if test(softmax) else "✗"
    except RuntimeError:
        return "✗"


versions = [minus_million, minus_infinity, add_and_clean, replace_and_clean, replace_twice]
marks = pd.DataFrame(
    {f.__name__: {title: passes(test, f) for title, test in exam.items()} for f in versions}
).T
marks

# %% [markdown]
# The crosses have three causes.
# *minus_infinity* has NaN weights in an empty row, and the gradient of the values is these weights times the gradient of the output, so it becomes NaN · 0, which is NaN.
# *add_and_clean* has clean weights, but NaN in the gradient of the *scores*, because a sum hands its gradient on, whereas `masked_fill` hands nothing back.
# And cleaning hides every NaN, even the one that we want to see.
#
# ### Exercise 2 · The one that passes
#
# *build · 18 minutes*
#
# Write a masked softmax that passes all six tests, and in which a *forbidden* score leaves no trace, even if it is NaN.


# %% tags=["exercise", "build"]
def my_masked_softmax(scores, attn_mask):
    """(…, queries, keys), True = may attend → weights; zeros in an empty row."""
    ...  # for zeros (4, 4) and in_front the rows sum to 0, 0, 1, 1


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_masked_softmax(my_masked_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_masked_softmax_solution(scores, attn_mask):
    """An empty row gets scores of 0, so that the softmax is defined; then forbidden weights become 0."""
    nowhere = ~attn_mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
    return filled.softmax(dim=-1).masked_fill(~attn_mask, 0.0)


cu.checks.my_masked_softmax(my_masked_softmax_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Of five versions one has no cross, and it is the added −∞ that spoils the gradient."
):
    perfect = (marks == "✓").all(axis=1)
    assert perfect[perfect].index.tolist() == ["replace_twice"]
    crosses = marks[["gradient: scores", "gradient: values"]].agg("".join, axis=1)
    assert crosses.tolist()[1:4] == ["✓✗", "✗✓", "✓✓"]

# %% [markdown]
# ## What a mask does not hide
#
# A mask may hide less than we think.
# We write something into one forbidden key, or into its value, and ask whether the answers stay the same to the last bit.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
qkv = [torch.randn(2, 3, 5, width) for width in (8, 8, 4)]  # (batch, heads, 5, width)
real = cu.padding_mask(torch.tensor([3, 4]), 5)  # (batch, 1, 1, keys)


def replacing(queries, keys, values, attn_mask):
    return cu.masked_softmax(queries @ keys.mT / math.sqrt(8), attn_mask) @ values


def trace(function, place, what):
    """What becomes of the answers if `what` stands in a forbidden key (1) or value (2)."""
    touched = [tensor.clone() for tensor in qkv]
    touched[place][..., -1, 0] = what
    before, after = function(*qkv, real), function(*touched, real)
    return "NaN" if after.isnan().any() else "same" if after.equal(before) else "changed"


where = {"key": 1, "value": 2}
hidden = pd.DataFrame(
    {
        f"{place}: {what:g}": {
            "masked_fill": trace(replacing, number, what),
            "PyTorch": trace(F.scaled_dot_product_attention, number, what),
        }
        for place, number in where.items()
        for what in (1e6, math.nan)
    }
).T
hidden

# %% [markdown]
# A million leaves no trace.
# A forbidden **value** of NaN (or ∞) poisons the answer everywhere, because its weight 0 is *multiplied* with it.
# A forbidden **key** of NaN is harmless where `masked_fill` replaces its scores, but PyTorch's operator on a CPU turns the mask into 0 and $-\infty$ and adds it ([pytorch/pytorch#101967](https://github.com/pytorch/pytorch/issues/101967)).
# If you can meet a NaN, replace what is forbidden by zeros before attention, and find out where the NaN comes from.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A mask hides a key or value of a million, but it can't hide a NaN in a value."):
    assert (hidden.loc[["key: 1e+06", "value: 1e+06"]] == "same").all(axis=None)
    assert (hidden.loc["value: nan"] == "NaN").all()
    assert hidden.loc["key: nan"].tolist() == ["same", "NaN"]

# %% [markdown]
# ## The opposite convention, and an empty row
#
# `nn.MultiheadAttention` and `nn.TransformerEncoder` read a boolean mask the other way around, so there True means "must **not** look".
# If you hand one of them the mask of PyTorch's attention operator, you get no error.
# What do you get?
# And what do they answer where nothing is permitted?

# %%
five = torch.randn(1, 5, 4)
words_first = torch.tensor([[True, True, True, False, False]])
module = nn.MultiheadAttention(4, num_heads=1, batch_first=True)
nn.init.constant_(module.out_proj.bias, 0.5)  # 0 at first; training changes it
polarity = []
for told in (words_first, ~words_first):
    seen_by = module(five, five, five, key_padding_mask=told)[1]
    polarity.append(seen_by[..., 3:].sum(dim=-1).mean().item())
    print(f"{told[0].int().tolist()}: weight on the padding {polarity[-1]:.2f}")

nowhere = torch.zeros(5, 5, dtype=torch.bool)  # five empty rows
operators = cu.scaled_dot_product_attention, F.scaled_dot_product_attention
nothing = {
    name: operator(five, five, five, nowhere)
    for name, operator in zip(("course_utils", "PyTorch"), operators, strict=True)
}
for need in (False, True):
    unseen, _ = module(five, five, five, attn_mask=~nowhere, need_weights=need)
    nothing[f"nn.MultiheadAttention, need_weights={need}"] = unseen
# Adding zero makes 0.0 of -0.0.
pd.DataFrame({name: (y[0, 0] + 0).tolist() for name, y in nothing.items()}).T.add_prefix("y")

# %% [markdown]
# With the wrong polarity (True for False) all weight is on the padding.
#
# The table shows the answer of one empty row, with PyTorch 2.13 on a CPU.
# The two functions give zeros.
# `nn.MultiheadAttention` gives what its output layer makes of zeros, which is its bias of 0.5, but if we ask for its weights, as it does by default, it gives NaN.
# Versions and devices have differed, see [pytorch/pytorch#41508](https://github.com/pytorch/pytorch/issues/41508), and so our package handles such rows itself.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With the wrong polarity attention reads the padding, and an empty row gives zeros, 0.5 or NaN."
):
    assert polarity == [1, 0]
    assert [row[0, 0, 0].item() for row in nothing.values()][:3] == [0, 0, 0.5]
    assert nothing["nn.MultiheadAttention, need_weights=True"].isnan().all()

# %% [markdown]
# ## Zeroed embeddings are not a mask
#
# Setting a word's *embedding* to zero looks like a way to hide it.
# The first-generation code in Kak's lecture (2025) hides the words to come like this, and runs the network once for each word.
# But a zero embedding still has the query $b_Q$, the key $b_K$, and the value $b_V$.
# These are zero if the projections have no bias, and something learned if they have one, as `nn.Linear` does by default.
# Either way its key has a score with every query, so it gets weight.

# %%
size, sentence_length, seen = 8, 6, 2
sentence = torch.randn(1, sentence_length, size)
visible = torch.arange(sentence_length) < seen  # two words are written
zeroed = sentence * visible[:, None]
hiding = {}
for bias in (False, True):
    to_q, to_k, to_v = (nn.Linear(size, size, bias=bias) for _ in range(3))
    with torch.no_grad():
        q, k, v = to_q(zeroed), to_k(zeroed), to_v(zeroed)
        scores = q @ k.transpose(1, 2) / math.sqrt(size)
        weights = scores.softmax(dim=-1)
        right = cu.scaled_dot_product_attention(q, k, v, visible.expand(6, 6))
        got, right = (weights @ v)[0, 0], right[0, 0]
        error = ((got - right).norm() / right.norm()).item()
        cosine = F.cosine_similarity(got, right, dim=0).item()
    to_come = weights[0, 0, seen:].sum().item()
    found = [k[0, -1].norm().item(), scores[0, 0, -1].item(), to_come, error, cosine]
    hiding["with a bias" if bias else "no bias"] = found
heads = ["length of zeroed key", "its score", "weight on 4", "relative error", "cosine"]
pd.DataFrame(hiding, index=heads).round(2)

# %% [markdown]
# The words themselves are hidden, so nothing leaks.
# But the first query gives about four of its six shares to four words that aren't there, because the scores of an untrained layer are near 0.
# Without a bias this only shrinks the answer, by just that weight, because the values of zeroed words are 0 as well.
# With a bias it also turns the answer.
#
# The lecture's code, whose [translator](12_training_transformers_further.ipynb#A-first-generation) we train later, has two methods `apply_mask`, and one of them cuts `x[:, :, :length]`, where the other one cuts the words.
# For a tensor (batch, words, features) it keeps the first *features* of all words.

# %%
by_features = torch.zeros_like(sentence)
by_features[:, :, :seen] = sentence[:, :, :seen]
by_words = torch.zeros_like(sentence)
by_words[:, :seen, :] = sentence[:, :seen, :]
cut = {"x[:, :, :2]": by_features, "x[:, :2, :]": by_words}
pd.DataFrame(
    {name: (x[0] != 0).sum(dim=1).tolist() for name, x in cut.items()},
    index=[f"word {i}" for i in range(sentence_length)],
).T.rename_axis("features kept")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Words that were set to zero still get weight, with a bias and without one."):
    assert hiding["no bias"][0] == hiding["no bias"][1] == 0
    assert hiding["with a bias"][0] > 0.1
    assert min(hiding[name][2] for name in hiding) > 0.5
    assert abs(hiding["no bias"][2] - hiding["no bias"][3]) < 1e-5
    assert hiding["no bias"][4] > 0.99 > hiding["with a bias"][4]
    assert torch.equal(by_words, zeroed)

# %% [markdown]
# ## A key that is always there
#
# What if a query could say that it needs nothing?
# We give it one more key and one more value, both zero, which no mask forbids (`add_zero_attn=True` in `nn.MultiheadAttention`).
# The new key has the score 0, with the exponential 1, and its value adds nothing to the answer.
# On the real keys this leaves the weights
#
# $$\alpha_i = \frac{p_i e^{a_i}}{1 + \sum_j p_j e^{a_j}},$$
#
# which Miller (2023) calls softmax₁.
# We compute the sums of four rows of weights, of which the last has no permitted key.


# %%
def softmax_1(scores, mask):
    """Softmax over the permitted keys and one more, of score 0, that is left out."""
    extra = F.pad(scores.masked_fill(~mask, -math.inf), (0, 1))  # (…, keys + 1)
    return extra.softmax(dim=-1)[..., :-1]


four_rows = torch.tensor([[2.0, 1.0], [0.0, 0.0], [-5.0, -5.0], [0.0, 0.0]])
allowed = torch.tensor([[True, True]] * 3 + [[False, False]])
table = pd.DataFrame(four_rows.tolist(), columns=["score 0", "score 1"])
table["permitted"] = allowed[:, 0].tolist()
table["softmax: sum"] = cu.masked_softmax(four_rows, allowed).sum(dim=-1)
table["softmax₁: sum"] = softmax_1(four_rows, allowed).sum(dim=-1)
layer = nn.MultiheadAttention(4, 1, bias=False, add_zero_attn=True, batch_first=True)
tokens = torch.randn(1, 3, 4)
masked = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
q_in, k_in, v_in = (tokens @ layer.in_proj_weight.T).chunk(3, dim=-1)
by_hand = softmax_1(q_in @ k_in.transpose(1, 2) / 2, masked)
_, theirs = layer(tokens, tokens, tokens, attn_mask=~masked)
gap = (theirs[..., :-1] - by_hand).abs().max()
print(f"equal to nn.MultiheadAttention, to 1e-6: {(gap < 1e-6).item()}")
table.round(3)

# %% [markdown]
# A query that matches nothing, as in the third row, may now answer nearly nothing, whereas a softmax would hand out all its weight.
# And a row without a permitted key becomes zeros by itself, without a special rule.
# The price is that every answer is a little smaller, and how much smaller depends on the *level* of the scores, which a softmax ignores.
# Trained models without such a key often find one of their own, an [attention sink](01_queries_keys_values_further.ipynb#Who-did-what-first).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With one more key of score 0, the weights of a row may sum to less than 1, even to 0."
):
    assert table["softmax₁: sum"].iloc[2] < 0.02 and table["softmax: sum"].iloc[2] > 0.999
    assert table["softmax₁: sum"].iloc[3] == 0
    assert gap < 1e-5

# %% [markdown]
# ## Other masks
#
# Every rule about *who may attend to whom* is a comparison of positions.
# The table has four of them, with $i$ for the query and $j$ for the key.

# %%
length = 12  # try 6 … 40
window = 3  # try 1 … 12
prefix = 4  # try 0 … 12
i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
sentence_of = torch.arange(length) // 4  # sentences of four words, one after the other
gallery = {
    "causal": j <= i,
    f"window of {window}": (j <= i) & (j > i - window),
    f"prefix of {prefix}": (j <= i) | (j < prefix),
    "packed sentences": (j <= i) & (sentence_of[:, None] == sentence_of),
}
counts = {name: mask.sum().item() for name, mask in gallery.items()}
shares = {name: f"{mask.float().mean():.0%}" for name, mask in gallery.items()}
pd.DataFrame({"pairs": counts, "of all": shares})

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 4, width=9, height=2.5, sharey=True,
    alt="Four masks. Causal: a lower triangle. Window: a band along the diagonal. Prefix: a triangle and the "
    "full columns of the first keys. Packed: three small triangles along the diagonal.",
)  # fmt: skip
for ax, (rule, permitted) in zip(axes, gallery.items(), strict=True):
    cu.heatmap(ax, permitted.float(), title=rule, ylabel=None)
    ax.set(xticks=[0, length - 1], yticks=[0, length - 1])
axes[0].set_ylabel("Queries")
fig

# %% [markdown]
# A **window** keeps a fixed number of words before the query, as in Mistral 7B (Jiang et al., 2023), and the window of Longformer (Beltagy et al., 2020) reaches to both sides.
# Its pairs grow with $n$ instead of $n^2$, if the forbidden ones are really left out.
# A **prefix** is read in both directions, and what follows is written from left to right (Raffel et al., 2020).
# **Packed** sentences follow one another in a single row of the batch without seeing each other, so nothing has to be padded, and positions must start again at each sentence.
#
# PyTorch's FlexAttention takes such a rule as a function of (batch, head, query, key) and skips the blocks in which nothing is permitted.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Each mask permits the pairs that its rule names."):
    places = [(query, key) for query in range(length) for key in range(length)]
    by_rule = [
        sum(key <= query for query, key in places),
        sum(query - window < key <= query for query, key in places),
        sum(key <= query or key < prefix for query, key in places),
        sum(key <= query and key // 4 == query // 4 for query, key in places),
    ]
    assert list(counts.values()) == by_rule

# %% [markdown]
# ## What it costs
#
# A mask doesn't make attention cheaper.
# For $n$ queries and keys of size $d$, scores and answers take $2n^2d$ multiplications, masked or not, because a forbidden pair is computed and then thrown away, unless an implementation skips it.
#
# And memory?
# For the way back, attention that is written out keeps the map of weights, $n^2$ numbers, and whatever masking needs.
# PyTorch's operator is **fused**, which means that it goes through the keys in blocks and computes the weights again on the way back (Dao et al., 2022).
# The next table counts all the bytes that autograd keeps, for one head of size 64.
# In the table *plain −∞* has no rule for empty rows, and *ours* is the package's masked softmax.


# %%
def written_out(queries, keys, values, attn_mask=None):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return cu.masked_softmax(scores, attn_mask) @ values


def plain(queries, keys, values, attn_mask):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1) @ values


def mebibytes_kept(function, *inputs, **options):
    """What is kept for the backward pass; memory kept in two shapes counts once."""
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function(*inputs, **options)
    return sum(kept.values()) / 2**20


# %%
longest = 1024  # try 128 … 2048
memory = {}
for n in (longest // 16, longest // 4, longest // 2, longest):
    long = [torch.randn(1, 1, n, 64, requires_grad=True) for _ in range(3)]
    full = cu.causal_mask(n)
    memory[n] = [
        mebibytes_kept(written_out, *long),
        mebibytes_kept(plain, *long, full),
        mebibytes_kept(written_out, *long, full),
        mebibytes_kept(F.scaled_dot_product_attention, *long, attn_mask=full),
        mebibytes_kept(F.scaled_dot_product_attention, *long, is_causal=True),
    ]
ways = ["no mask", "plain −∞", "ours", "fused, mask", "fused, is_causal"]
pd.DataFrame(memory, index=ways).T.rename_axis("tokens").round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_curves(
    list(memory), {way: [memory[n][place] for n in memory] for place, way in enumerate(ways)},
    logx=True, logy=True, xlabel="tokens", ylabel="MiB kept", width=7,
    alt="On two logarithmic axes, what is kept for the backward pass over the number of tokens. At the left "
    "all lie close together. At the right ours is highest, then plain minus infinity, then fused with a mask, "
    "then no mask, all four with nearly the same slope; fused with is_causal is far below them.",
)  # fmt: skip

# %% [markdown]
# At 64 tokens all of them are close together, because the map is as small as its inputs.
# At 1,024 tokens the map of weights dominates everything that is written out.
# Ours keeps a second map, since it needs the weights before and after the last replacement, which is the price of its rule for empty rows.
# The fused operator, here on a CPU, keeps little with `is_causal=True`, but hardly less than a plain softmax if you *hand over* a mask, because the mask becomes a map of numbers with four bytes each.
# So write `is_causal=True` where that is what you mean (and with PyTorch's operator only where there are as many queries as keys).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The map of weights takes n² numbers, and a fused causal attention takes memory in proportion to n."
):
    bytes_without = {n: (n * n + 3 * n * 64) * 4 / 2**20 for n in memory}  # weights, q, k, v
    assert all(abs(memory[n][0] - bytes_without[n]) < 1e-9 for n in memory)
    squares = {n: n * n * 4 / 2**20 for n in memory}
    assert all(abs(memory[n][2] - memory[n][1] - squares[n]) < 0.01 for n in memory)
    assert all(squares[n] <= memory[n][3] - memory[n][4] < squares[n] + 0.01 for n in memory)
    assert memory[longest][4] / memory[longest // 2][4] < 2.1

# %% [markdown]
# ## Attention in pieces
#
# A fused operator gets along without the whole map.
# Queries don't depend on each other, so we can answer a long sequence some queries at a time.
# Cutting the *keys* is harder, because each weight is divided by a sum over all of them.
#
# The way out is to divide last.
# While the pieces go by, we remember three things for each query, namely the largest score $c$ so far, the sum $s$ of the exponentials $e^{a_i - c}$, and the sum $y$ of the values with these factors.
# If a new piece brings a larger maximum, we multiply the old sums by $e^{c_{\text{old}} - c_{\text{new}}}$ (Milakov and Gimelshein, 2018; Rabe and Staats, 2021).
#
# For example, take the scores $\ln 1, \ln 2 \mid \ln 3, \ln 4$ in two pieces and the values 1, 2, 3, 4.
# The answer has to be $(1 + 4 + 9 + 16)/10 = 3$.


# %%
def running_sums(queries, keys, values, attn_mask, chunk):
    """c, s and y after each piece of `chunk` keys; mask (…, queries, keys)."""
    c = torch.full((*queries.shape[:-1], 1), torch.finfo(queries.dtype).min)
    s, y = torch.zeros_like(c), torch.zeros(())
    for start in range(0, keys.shape[-2], chunk):
        piece = slice(start, start + chunk)
        scores = queries @ keys[..., piece, :].mT / math.sqrt(queries.shape[-1])
        scores = scores.masked_fill(~attn_mask[..., piece], -math.inf)
        old, c = c, torch.maximum(c, scores.amax(dim=-1, keepdim=True))
        parts = (scores - c).exp()
        s = s * (old - c).exp() + parts.sum(dim=-1, keepdim=True)
        y = y * (old - c).exp() + parts @ values[..., piece, :]
        yield c, s, y


logs = torch.tensor([[1.0], [2.0], [3.0], [4.0]]).log()
four_values, all_four = torch.arange(1.0, 5.0)[:, None], torch.ones(1, 4).bool()
steps = [
    [c.item(), s.item(), y.item(), (y / s).item()]
    for c, s, y in running_sums(torch.ones(1, 1), logs, four_values, all_four, 2)
]
pd.DataFrame(steps, columns=["c", "s", "y", "y / s"]).rename_axis("piece").round(3)

# %%
chunk = 4  # try 1 … 20


def in_pieces(queries, keys, values, attn_mask):
    """Attention that scores `chunk` keys at a time."""
    *_, (_, s, y) = running_sums(queries, keys, values, attn_mask, chunk)
    return y / s


long_inputs = [torch.randn(2, 3, 10, dim) for dim in (8, 8, 4)]
masks = {
    "every pair": torch.ones(10, 10, dtype=torch.bool),
    "causal": cu.causal_mask(10),
    "lengths 10, 3": cu.padding_mask(torch.tensor([10, 3]), 10),
}
for name, mask in masks.items():
    print(f"{name:15}", end="")
    cu.equal(in_pieces, F.scaled_dot_product_attention, *long_inputs, mask)

# %% [markdown]
# After the first piece $y/s$ is the answer of the first two keys, $5/3$.
# Then the largest score goes from $\ln 2$ to $\ln 4$, so the old sums are halved, and we get $1.5/2 + (3 + 4)/4 = 2.5$ and $2.5/2 + (9 + 16)/4 = 7.5$, which makes $y/s = 3$.
# At no time do we have more than `chunk` scores of a query, and the result is the same, gradients included.
#
# The largest score starts at the lowest *finite* number, because $-\infty - (-\infty)$ is NaN, and a piece that is wholly forbidden would poison the rest.
# In training PyTorch would keep all pieces for the way back, whereas FlashAttention computes them again.
#
# ### Exercise 3 · A row without a key
#
# *open · 15 minutes*
#
# What does `in_pieces` give for a row without any permitted key, and why?
# Change it so that such a row is zeros, with finite gradients, and compare it with `cu.scaled_dot_product_attention`.
# Which of $c$, $s$, and $y$ shows you that a row is empty?

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Two pieces of keys together give the answer of all four keys."):
    assert abs(steps[0][3] - 5 / 3) < 1e-5 and abs(steps[1][3] - 3) < 1e-5

# %% [markdown] tags=["next"]
# Back to the chapter: [Masks](04_masks.ipynb).
# Next: [Sequence to sequence](05_sequence_to_sequence.ipynb).

# %% [markdown]
# ## References
#
# - Beltagy, I., Peters, M. E. & Cohan, A. (2020).
#   [Longformer: The long-document transformer](https://arxiv.org/abs/2004.05150).
# - Dao, T., Fu, D. Y., Ermon, S., Rudra, A. & Ré, C. (2022).
#   [FlashAttention: Fast and memory-efficient exact attention with IO-awareness](https://arxiv.org/abs/2205.14135).
#   NeurIPS.
# - Kak, A. (2025).
#   [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/).
#   Lecture slides, Purdue University: masks by zeroed embeddings, one pass for each word.
# - Devlin, J., Chang, M.-W., Lee, K. & Toutanova, K. (2019).
#   [BERT: Pre-training of deep bidirectional transformers for language understanding](https://arxiv.org/abs/1810.04805).
#   NAACL.
#   Its [code](https://github.com/google-research/bert/blob/master/modeling.py): `attention_layer`.
# - Jiang, A. Q. et al. (2023).
#   [Mistral 7B](https://arxiv.org/abs/2310.06825).
# - Karpathy, A. (2022).
#   [nanoGPT](https://github.com/karpathy/nanoGPT), file model.py.
# - Lippe, P. (2022).
#   [UvA Deep Learning tutorials](https://uvadlc-notebooks.readthedocs.io/), tutorial 6: Transformers and multi-head attention.
# - Milakov, M. & Gimelshein, N. (2018).
#   [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867).
# - Miller, E. (2023).
#   [Attention is off by one](https://www.evanmiller.org/attention-is-off-by-one.html).
# - Rabe, M. N. & Staats, C. (2021).
#   [Self-attention does not need O(n²) memory](https://arxiv.org/abs/2112.05682).
# - Radford, A. et al. (2019).
#   [GPT-2, code](https://github.com/openai/gpt-2/blob/master/src/model.py): `mask_attn_weights`.
# - Raffel, C. et al. (2020).
#   [Exploring the limits of transfer learning with a unified text-to-text transformer](https://arxiv.org/abs/1910.10683).
#   JMLR 21.
#   Section 3.2: prefix masks.
# - Rush, A. (2018).
#   [The Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/).
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2.3: the mask of the decoder.
# - Wolf, T. et al. (2020).
#   [Transformers: State-of-the-art natural language processing](https://arxiv.org/abs/1910.03771).
#   Its [masks](https://github.com/huggingface/transformers/blob/main/src/transformers/modeling_attn_mask_utils.py).
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.3: masked softmax.
