# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sequence to sequence: BLEU, fixed lengths and the papers' models
#
# What a first reader of [Sequence to sequence](05_sequence_to_sequence.ipynb) may skip: BLEU in twenty lines; what a fixed number of places costs; where the papers' models differ from ours; and two larger translators on real sentences.

# %%
import math
import random
from collections import Counter

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.data.translation import collate
from course_utils.lessons.sequence_to_sequence.real import real_run, show_real_curves
from course_utils.lessons.sequence_to_sequence.small_world import small_world

cu.seed_everything(0)

# %% [markdown]
# ## BLEU, written out
#
# BLEU ([Papineni et al., 2002](https://aclanthology.org/P02-1040/)) compares what was said with a reference by counting **n-grams**, runs of $n$ neighboring tokens, for $n = 1, \dots, 4$:
#
# $$\mathrm{BLEU} = \min\big(1, e^{1-r/c}\big)\cdot(p_1\,p_2\,p_3\,p_4)^{1/4}.$$
#
# $p_n$ divides all matches of the whole corpus by all its n-grams: sums first, then the division, because a short sentence has no 4-grams at all.
# Matches are **clipped**: an n-gram counts at most as often as the reference has it.
# $c$ and $r$ are the numbers of tokens said and in the references.


# %%
def ngrams(tokens, order):
    """How often each run of `order` tokens occurs."""
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def bleu(hypotheses, references, max_order=4):
    """Corpus BLEU between 0 and 1, one reference each, tokens separated by spaces."""
    matches, totals = [0] * max_order, [0] * max_order
    c = r = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = hypothesis.split(), reference.split()
        c, r = c + len(ours), r + len(theirs)
        for n in range(max_order):
            counts = ngrams(ours, n + 1)
            matches[n] += (counts & ngrams(theirs, n + 1)).total()  # the smaller counts
            totals[n] += counts.total()
    if not all(matches):
        return 0.0
    precisions = [match / total for match, total in zip(matches, totals, strict=True)]
    return min(1.0, math.exp(1 - r / c)) * math.prod(precisions) ** (1 / max_order)


# %%
pairs = {
    "clipping": ("the the the the the the the", "the cat is on the mat", 1),
    "brevity": ("the cat is", "the cat is on the mat", 3),
    "one word wrong": ("il est mouillé .", "il est calme .", 2),
    "the same, n up to 4": ("il est mouillé .", "il est calme .", 4),
}
by_hand = [2 / 7, math.exp(-1), math.sqrt(3 / 4 * 1 / 3), 0.0]
found = [bleu([said], [right], order) for said, right, order in pairs.values()]
pd.DataFrame({"by hand": by_hand, "this page": found}, index=list(pairs)).round(3)

# %% [markdown]
# The last row is why single sentences are not scored with BLEU: no triple agrees, so $p_3 = 0$, and the product is 0.
# Does our function agree with sacrebleu, the program that papers use ([Post, 2018](https://aclanthology.org/W18-6319/))?
# `cu.bleu` calls it without its own tokenizer.
# On random corpora:

# %%
draw = random.Random(0)
largest, positive = 0.0, 0
for _ in range(200):
    size = draw.randint(1, 6)
    words = [draw.choices("abcde", k=draw.randint(1, 9)) for _ in range(2 * size)]
    lines = [" ".join(line) for line in words]
    said, right = lines[:size], lines[size:]
    for order in (1, 2, 4):
        ours, theirs = bleu(said, right, order), cu.bleu(said, right, max_order=order)
        largest, positive = max(largest, abs(ours - theirs)), positive + (theirs > 0)
print(f"600 scores, {positive} of them above 0; equal to 1e-6: {largest < 1e-6}")

# %% [markdown]
# ### One name, two formulas
#
# *Dive into Deep Learning* ([Zhang et al., 2023](https://d2l.ai), section 10.7) gives *il est mouillé .* for *il est calme .* the score 0.658.
# Its formula is $\prod_{n=1}^{k} p_n^{1/2^n}$ with $k = 2$, here $(3/4)^{1/2}\cdot(1/3)^{1/4}$.
# The exponents $1/2, 1/4, \dots$ do not add up to 1, so that a short $k$ gives higher scores.
# Scores of two formulas cannot be compared, nor scores on text that was cut into tokens in two ways.

# %%
other = math.prod(p ** (1 / 2**n) for n, p in enumerate((3 / 4, 1 / 3), 1))
print(f"BLEU, n up to 2: {found[2]:.3f}; Dive into Deep Learning, k = 2: {other:.3f}")

# %% [markdown]
# ### Exercise 1 · Several references
#
# *open · 10 minutes*
#
# *go .* is *va !* and *allez !*, and both are right.
# So BLEU allows several references: an n-gram counts at most as often as in the reference that has it most often.
# Write `bleu` for lists of references (`|` of two counters takes the larger counts), and hold it against `cu.bleu`, which takes them, too.
# With which reference's length do you compare $c$?
# Look up what sacrebleu does.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Our BLEU agrees with sacrebleu's, and 0.658 comes from another formula."):
    assert all(abs(a - b) < 1e-9 for a, b in zip(by_hand, found, strict=True))
    assert largest < 1e-9 and positive > 100
    assert abs(other - 0.658) < 5e-4

# %% [markdown]
# ## A fixed number of places
#
# The chapter pads each batch to its longest sentence.
# *Dive into Deep Learning* (section 10.5) gives all sentences `num_steps` places, and truncates what is longer.
# For the French side of our small world, `<eos>` included:

# %%
world = small_world("fr")
lengths = torch.tensor([len(pair.target) + 1 for pair in world.train])
costs = {}
for num_steps in (6, 8, 10, 12, 16):
    kept = lengths.clamp(max=num_steps)
    costs[num_steps] = {
        "tokens lost": 1 - kept.sum() / lengths.sum(),
        "sentences without <eos>": (lengths > num_steps).float().mean(),
        "places that are padding": 1 - kept.sum() / (len(kept) * num_steps),
    }
pd.DataFrame(costs).T.astype(float).round(3)

# %% [markdown]
# Few places cut off many ends, and a sentence whose `<eos>` is cut off teaches a beginning without an end; many are filled with padding.
# What is gained is one shape for all batches, which some compilers and accelerators need.
# If batches are padded to their longest sentence, it depends on who shares a batch:

# %%
batch_size = 48  # try 8 … 128


def share_of_padding(batches):
    places = sum(batch.target_out.numel() for batch in batches)
    return 1 - sum(batch.num_tokens for batch in batches) / places


source_vocab, target_vocab = world.source_vocab, world.target_vocab
plain = [
    (source_vocab.encode(p.source), target_vocab.encode(p.target)) for p in world.train
]  # fmt: skip
random.Random(0).shuffle(plain)
drawn = [collate(plain[i : i + batch_size]) for i in range(0, len(plain), batch_size)]
similar = list(world.loader(world.train, batch_size=batch_size))
paddings = share_of_padding(drawn), share_of_padding(similar)
print("padding: drawn at random {:.0%}, of similar length {:.0%}".format(*paddings))

# %% [markdown]
# Our loader sorts large groups of pairs by length, cuts batches, and shuffles these: then 1 place in 100 is padding, and no token is lost.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With few places many sentences lose their ends, with many places most are padding, and batches of similar length avoid both."
):
    assert paddings[1] < 0.1 * paddings[0]
    assert costs[6]["sentences without <eos>"] > 0.2 and costs[16]["tokens lost"] < 0.01
    assert costs[16]["places that are padding"] > 0.5

# %% [markdown]
# ## What happens without lengths?
#
# `pack_padded_sequence` is easily forgotten, and no error is raised.
# A bidirectional GRU reads *i'm home .*, alone and beside a longer sentence, with and without lengths.
# How far does its context move?

# %%
english = world.source_vocab
texts = "i'm home .", "the old cat sleeps near the house ."
short, long = (english.encode(text.split()) for text in texts)
alone, together = collate([(short, short)]), collate([(short, short), (long, long)])
embedding = nn.Embedding(len(english), 64, padding_idx=0)
encoder = nn.GRU(64, 96, batch_first=True, bidirectional=True)


@torch.no_grad()
def context(batch, with_lengths):  # of the first sentence: (2, hidden)
    embedded = embedding(batch.source)
    if with_lengths:
        embedded = nn.utils.rnn.pack_padded_sequence(
            embedded, batch.source_lens, batch_first=True, enforce_sorted=False
        )
    return encoder(embedded)[1][:, 0]


moved = {}
for with_lengths in (True, False):
    before, after = context(alone, with_lengths), context(together, with_lengths)
    change = (after - before).norm(dim=1) / before.norm(dim=1)
    moved["with lengths" if with_lengths else "without"] = change.tolist()
pd.DataFrame(moved, index=["forwards", "backwards"]).T.round(3)

# %% [markdown]
# With lengths nothing moves.
# Without them both halves do, although the embedding of `<pad>` is the zero vector: the biases and $hU$ change the state at every step.
# The forward half is the state after the last `<pad>`; the backward half began in the padding.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A context depends on its own sentence only, if the encoder knows the lengths."):
    assert max(moved["with lengths"]) < 1e-5
    assert min(moved["without"]) > 0.01

# %% [markdown]
# ## The papers' models
#
# Our translator is a simple member of a family.
# The originals:
#
# | | network | context | decoder is told it | before the output |
# |---|---|---|---|---|
# | [Cho et al. (2014)](https://arxiv.org/abs/1406.1078) | GRU, one layer | last state, through tanh | at every step, and in the output | maxout |
# | [Sutskever et al. (2014)](https://arxiv.org/abs/1409.3215) | LSTM, four layers | last states of all layers | as its first state only | linear |
# | [Bahdanau et al. (2015)](https://arxiv.org/abs/1409.0473) | GRU, both directions | (attention) | anew at every step | maxout |
# | this course | GRU, both directions, one layer | last state of each direction | at every step, and in the output | linear, tanh |
#
# Sutskever et al. read the source *backwards*, and report that this alone raised their BLEU from 25.9 to 30.6 (section 3.3): the first words of source and target are then close.
# Bahdanau et al. start the decoder from the last *backward* state alone; we take both.
#
# Their GRU is not quite PyTorch's either: the paper's reset gate acts *before* the matrix, $n = \tanh(xW_n + (r\odot h)U_n)$, PyTorch's after it, $n = \tanh(xW_n + r\odot(hU_n))$.
# And Bahdanau et al. (appendix A.1.1) exchange $z$ and $1 - z$.
# With the same weights the two forms of the reset gate give:

# %%
hidden, feature = torch.tensor([0.5, -0.5]), torch.tensor([0.2, 0.1])
U, r = torch.tensor([[1.0, -1.0], [2.0, 0.5]]), torch.tensor([1.0, 0.0])
forms = {
    "PyTorch: r ⊙ (hU)": torch.tanh(feature + r * (hidden @ U)),
    "paper: (r ⊙ h)U": torch.tanh(feature + (r * hidden) @ U),
}
compared = pd.DataFrame({name: n.tolist() for name, n in forms.items()})
compared.T.add_prefix("feature ").round(3)

# %% [markdown]
# With $r = (1, 0)$ PyTorch's form closes feature 1 of the *result*, the paper's feature 1 of the *old state*, before it is mixed into both.
# The weights of one do not fit the other.
#
# And what does the update gate keep?
# A single feature over ten steps, with the same gates at each:

# %% jupyter={"source_hidden": true}
cu.explore.gated_memory()

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The two forms of the reset gate give different numbers in both features."):
    one, two = forms.values()
    assert ((one - two).abs() > 0.1).all()

# %% [markdown]
# ## On real sentences
#
# Two larger translators, with two GRU layers of 256 features, were trained beforehand on 25,000 English–French pairs that volunteers wrote ([Tatoeba](https://tatoeba.org), as paired by [manythings.org](https://www.manythings.org/anki/), CC BY 2.0 FR), of at most ten tokens on either side; words that occur fewer than three times are `<unk>`.
# One is this chapter's model, with a **fixed context**; the other has **attention**, and is the subject of [the next chapter](06_bahdanau_attention.ipynb).
# The second has more parameters; the training is small, four epochs, one seed each.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
show_real_curves()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
real = {
    name: real_run(attention=attention).result
    for name, attention in (("fixed context", False), ("attention (chapter 06)", True))
}
real["look-up"] = cu.stored_runs("sequence_to_sequence", "look_up")[0].result
real = pd.DataFrame(real).T[["val_loss", "val_bleu", "test_bleu"]]
real.set_axis(["loss, validation", "BLEU, validation", "BLEU, test"], axis=1).round(3).astype(
    object
).fillna("")

# %% [markdown]
# (Dashed losses are means over an epoch, with dropout.)
# With a fixed context BLEU is 0.116 on 1,000 English test sentences, with attention 0.166.
# The last row learns nothing: the **look-up** says the French of the training sentence whose English has most in common with the one asked for, rare words counting more.
# It is halfway between the two: after four epochs, of a schedule of six, neither network is at its end.
# BLEU here takes each French translation that the data have as a reference.
#
# The first four test sentences of at least eight tokens whose words are all known:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = zip(*(real_run(attention=look).examples for look in (False, True)), strict=True)
table = [
    {
        "English": " ".join(fixed["source"]),
        "fixed context": " ".join(fixed["said"]),
        "attention (chapter 06)": " ".join(looking["said"]),
        "a right answer": fixed["references"][0],
    }
    for fixed, looking in shown
]
pd.set_option("display.max_colwidth", 80)
pd.DataFrame(table)

# %% [markdown]
# With the fixed context words come twice and more (*simplement*, *ma père*), and others are invented (*la journée*, *le travail*).
# Behind a look-up, this is no translator yet; the next chapter compares three seeds of each, on the small world.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In one training on real sentences attention is ahead, and the fixed context is worse than a look-up."
):
    assert real.loc["fixed context", "test_bleu"] < real.loc["look-up", "test_bleu"]
    assert real["test_bleu"].iloc[1] > real["test_bleu"].iloc[0] + 0.03

# %% [markdown]
# Back to the chapter: [Sequence to sequence](05_sequence_to_sequence.ipynb).
# Next: [Bahdanau attention: learning to align](06_bahdanau_attention.ipynb).

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
# - Cho, K. et al. (2014).
#   [Learning phrase representations using RNN encoder–decoder for statistical machine translation](https://arxiv.org/abs/1406.1078).
#   EMNLP.
# - Papineni, K., Roukos, S., Ward, T. and Zhu, W.-J.
#   (2002).
#   [BLEU: a method for automatic evaluation of machine translation](https://aclanthology.org/P02-1040/).
#   ACL.
# - Post, M. (2018).
#   [A call for clarity in reporting BLEU scores](https://aclanthology.org/W18-6319/).
#   WMT.
#   The program sacrebleu.
# - Sutskever, I., Vinyals, O. and Le, Q. V. (2014).
#   [Sequence to sequence learning with neural networks](https://arxiv.org/abs/1409.3215).
#   NeurIPS.
#   Section 3.3: the source reversed.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Sections 10.5 and 10.7.
