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
# Here is what we left out of [Sequence to sequence](05_sequence_to_sequence.ipynb).
# We compute BLEU by hand and in twenty lines, measure the vanishing gradient, and ask what happens with a fixed number of positions, or without lengths.
# Then we compare our network with those of the papers, and look at two larger translators of real sentences.

# %% jupyter={"source_hidden": true}
import math
import random
from collections import Counter

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.data.translation import collate
from course_utils.lessons.sequence_to_sequence.real_translation import real_run, show_real_curves
from course_utils.lessons.sequence_to_sequence.small_world import small_world

cu.seed_everything(0)

# %% [markdown]
# ## BLEU, written out
#
# **BLEU** ([Papineni et al., 2002](https://aclanthology.org/P02-1040/)) compares a translation with a reference by counting **n-grams**, which are runs of $n$ neighboring tokens.
# The **precision** $p_n$ is the share of the translation's n-grams that the reference has as well.
# Matches are **clipped**, so an n-gram counts at most as often as the reference has it.
# With $c$ tokens in the translation and $r$ in the reference,
#
# $$\mathrm{BLEU} = \min\big(1, e^{1-r/c}\big)\cdot(p_1\,p_2\,p_3\,p_4)^{1/4}.$$
#
# Three cases by hand show what each part is for.
#
# - **Why clip?** *the the the the the the the* says nothing, but each of its words is in *the cat is on the mat*.
#   The reference has *the* twice, so $p_1 = 2/7$ rather than 1.
# - **Why the first factor?** In *the cat is* every word and every pair is right, and still half of the sentence is missing.
#   With $c = 3$ and $r = 6$ the **brevity penalty** is $e^{1-6/3} = 0.37$.
# - **One wrong word.** For *il est calme .* we say *il est mouillé .*
#   Three of four words are right, and of the pairs *il est*, *est mouillé*, *mouillé .* only the first is, so $p_1 = 3/4$ and $p_2 = 1/3$.
#   If we stop at $n = 2$, BLEU is $\sqrt{3/4\cdot 1/3} = 0.5$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We say “a a a b”, and the reference is “a a c”. What is p₁?",
    ["3/4", "2/4", "2/3"],
    answer="2/4",
    wrong={
        "3/4": "Each of the three “a” occurs in the reference. But how often does the reference have it?",
        "2/3": "You have divided by the length of the reference. A precision is a share of what was said.",
    },
    why="Two of the three “a” count, “b” isn't in the reference, and four tokens were said.",
)

# %% [markdown]
# For a whole corpus we add up all matches and all n-grams first and divide then, because a short sentence has no 4-grams at all.


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
# The last row shows why nobody scores single sentences with BLEU.
# No triple agrees, so $p_3 = 0$, and the whole product is 0.
#
# Papers use the program sacrebleu ([Post, 2018](https://aclanthology.org/W18-6319/)), which `cu.bleu` calls without its own tokenizer.
# On random corpora our function should agree with it.

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
# The exponents $1/2, 1/4, \dots$ don't add up to 1, so a short $k$ gives higher scores.
# That is why you can't compare the scores of two formulas, nor scores on text that was cut into tokens in two ways.

# %%
other = math.prod(p ** (1 / 2**n) for n, p in enumerate((3 / 4, 1 / 3), 1))
print(f"BLEU, n up to 2: {found[2]:.3f}; Dive into Deep Learning, k = 2: {other:.3f}")

# %% [markdown]
# ### Exercise 1 · Several references
#
# *open · 15 minutes*
#
# *go .* is *va !* and *allez !*, and both are right.
# So BLEU allows several references, and an n-gram counts at most as often as in the reference that has it most often.
# Write `bleu` for lists of references (`|` of two counters takes the larger counts), and compare it with `cu.bleu`, which takes them as well.
# With which reference's length do you compare $c$?
# Look up what sacrebleu does.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Our BLEU agrees with sacrebleu's, and 0.658 comes from another formula."):
    assert all(abs(a - b) < 1e-9 for a, b in zip(by_hand, found, strict=True))
    assert largest < 1e-9 and positive > 100
    assert abs(other - 0.658) < 5e-4

# %% [markdown]
# ## The vanishing gradient, measured
#
# We ask how much of the gradient at step 20 arrives at the steps before.
# For this we let untrained cells read random vectors, and follow the gradient back.
# Besides the plain tanh and the GRU, there are two cells with a start that is chosen to help.
# One has an orthogonal $U$, which keeps lengths, and the other has an update gate that a bias holds at 0.95.


# %%
def gradients(cell, steps=20):
    """Lengths of the gradients at h_1, …, h_20, as shares of the last."""
    h, states = torch.zeros(100, 64), []
    for _ in range(steps):
        h = cell(torch.randn(100, 32), h.requires_grad_())
        states.append(h)
    grads = torch.autograd.grad((h * torch.randn_like(h)).sum(), states)
    return [(g.norm() / grads[-1].norm()).item() for g in grads]


open_bias = 3.0
cu.seed_everything(0)
cells = {"tanh": nn.RNNCell(32, 64), "tanh, orthogonal U": nn.RNNCell(32, 64),
         "GRU": nn.GRUCell(32, 64), "GRU, gate held at 0.95": nn.GRUCell(32, 64)}  # fmt: skip
nn.init.orthogonal_(cells["tanh, orthogonal U"].weight_hh)
with torch.no_grad():  # the bias of the update gate: sigmoid(3) = 0.95
    cells["GRU, gate held at 0.95"].bias_ih[64:128] = open_bias
arrives = {name: gradients(cell) for name, cell in cells.items()}

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_curves(
    list(range(20)), {name: shares[::-1] for name, shares in arrives.items()},
    xlabel="steps back", ylabel="share of the gradient", logy=True, height=3,
    alt="Share of the gradient that arrives, on a logarithmic axis, over the steps back. For tanh it falls to a millionth and for a GRU "
    "to a ten-thousandth at the first step; with an orthogonal U about a hundredth is left, with the update gate near 0.95 a third.",
)  # fmt: skip

# %% [markdown]
# An untrained GRU forgets as well, though less than the plain tanh.
# An orthogonal $U$ helps, and an update gate near 1 helps more.
# The difference is that a GRU can *learn* such a gate, feature by feature.
# The older **LSTM** of [Hochreiter and Schmidhuber (1997)](https://doi.org/10.1162/neco.1997.9.8.1735) has a second state for this purpose, and today three gates.
#
# Move the gate, and see how much of the state comes from the old state and from each word.

# %% jupyter={"source_hidden": true}
cu.explore.gated_memory()

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Through 20 steps an open gate hands on more gradient than an orthogonal U, and an orthogonal U more than tanh.",
    given=open_bias == 3.0,
):
    tanh, orthogonal, gru, open_gate = (shares[0] for shares in arrives.values())
    assert max(tanh, gru) < 0.001 and 0.003 < orthogonal < 0.03 and open_gate > 0.2

# %% [markdown]
# ## A fixed number of positions
#
# The chapter pads each batch to its longest sentence, whereas *Dive into Deep Learning* (section 10.5) gives all sentences `num_steps` positions and truncates what is longer.
# What does that cost for the French side of our small world, `<eos>` included?

# %%
world = small_world("fr")
lengths = torch.tensor([len(pair.target) + 1 for pair in world.train])
costs = {}
for num_steps in (6, 8, 10, 12, 16):
    kept = lengths.clamp(max=num_steps)
    costs[num_steps] = {
        "tokens lost": 1 - kept.sum() / lengths.sum(),
        "sentences without <eos>": (lengths > num_steps).float().mean(),
        "positions that are padding": 1 - kept.sum() / (len(kept) * num_steps),
    }
pd.DataFrame(costs).T.astype(float).round(3)

# %% [markdown]
# If there are few positions, many sentences lose their ends, and a sentence without its `<eos>` teaches a beginning that never stops.
# If there are many, most are padding.
# What we would gain is one shape for all batches, which some compilers and accelerators need.
#
# If we pad a batch to its longest sentence, the padding depends on which sentences share a batch.

# %%
batch_size = 48  # try 8 … 128


def share_of_padding(batches):
    positions = sum(batch.target_out.numel() for batch in batches)
    return 1 - sum(batch.num_tokens for batch in batches) / positions


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
# Our loader sorts large groups of pairs by length, cuts them into batches, and shuffles the batches.
# So only one position in a hundred is padding, and no token is lost.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With few positions many sentences lose their ends, with many positions most are padding, and batches of similar length avoid both."
):
    assert paddings[1] < 0.1 * paddings[0]
    assert costs[6]["sentences without <eos>"] > 0.2 and costs[16]["tokens lost"] < 0.01
    assert costs[16]["positions that are padding"] > 0.5

# %% [markdown]
# ## What happens without lengths?
#
# It is easy to forget `pack_padded_sequence`.
# No error is raised.
# To see the harm, we let a bidirectional GRU read *i'm home .*, once on its own and once beside a longer sentence, with lengths and without.
# The table says how far the context moves.

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
# With lengths nothing moves, and without them both halves do.
# The embedding of `<pad>` is the zero vector, but the biases and $hU$ go on changing the state at every step.
# So the forward half is the state after the last `<pad>`, and the backward half has begun in the padding.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A context depends on its own sentence only, if the encoder knows the lengths."):
    assert max(moved["with lengths"]) < 1e-5
    assert min(moved["without"]) > 0.01

# %% [markdown]
# ## The papers' models
#
# Our translator is a simple member of a family.
# The table puts the originals beside it.
#
# | | network | context | the decoder gets it | before the output |
# |---|---|---|---|---|
# | [Cho et al. (2014)](https://arxiv.org/abs/1406.1078) | GRU, one layer | last state, through tanh | at every step, and in the output | maxout |
# | [Sutskever et al. (2014)](https://arxiv.org/abs/1409.3215) | LSTM, four layers | last states of all layers | as its first state only | linear |
# | [Bahdanau et al. (2015)](https://arxiv.org/abs/1409.0473) | GRU, both directions | (attention) | anew at every step | maxout |
# | this course | GRU, both directions, one layer | last state of each direction | at every step, and in the output | linear, tanh |
#
# Sutskever et al. read the source *backwards*, because the first words of source and target are then close, and report that this raised their BLEU from 25.9 to 30.6 (section 3.3).
# Bahdanau et al. start the decoder from the last *backward* state only, and we take both.
#
# Their GRU isn't quite PyTorch's either.
# In the paper the reset gate acts *before* the matrix, $n = \tanh(xW_n + (r\odot h)U_n)$, and in PyTorch after it, $n = \tanh(xW_n + r\odot(hU_n))$.
# Bahdanau et al., appendix A.1.1, also swap $z$ and $1 - z$.
# To see whether the form matters, we give both the same weights.

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
# With $r = (1, 0)$ PyTorch's form closes the second feature of the *result*, whereas the paper's closes the second feature of the *old state*, before the matrix mixes it into both.
# So the weights of one don't fit the other.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The two forms of the reset gate give different numbers in both features."):
    pytorch, paper = forms.values()
    assert ((pytorch - paper).abs() > 0.1).all()

# %% [markdown]
# ## On real sentences
#
# All sentences so far came from a grammar.
# For sentences that people wrote, we trained two larger translators with two GRU layers of 256 features, on 25,000 English–French pairs from volunteers ([Tatoeba](https://tatoeba.org), as paired by [manythings.org](https://www.manythings.org/anki/), CC BY 2.0 FR).
# The sentences have at most ten tokens on either side, and words that occur fewer than three times are `<unk>`.
# One translator is this chapter's model with its **fixed context**, and the other has **attention**, the subject of [the next chapter](06_bahdanau_attention.ipynb), and a few more parameters.
# Both trainings are unfinished, with one seed each: four of six planned epochs, and curves that still move.
# So they don't compare the two models, but they show what such a translator can be measured by.

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
# The dashed training losses are means over an epoch, with dropout.
# BLEU takes each French translation in the data as a reference, for 1,000 test sentences.
# The last row is a **baseline** that learns nothing.
# This **look-up** finds the training sentence whose English has most in common with ours, where rare words count more, and says its French.
# At this point of their training the look-up lies between the two networks, and a translator has to beat it first.
#
# The table has the first four test sentences of at least eight tokens whose words are all known.

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
# With the fixed context some words come twice or more (*simplement*, *ma père*), and others are invented (*la journée*, *le travail*).
# As long as a look-up is better, this is no translator yet.
# The next chapter compares both to the end, with several rates and seeds, on the small world.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After four unfinished epochs on real sentences the look-up lies between the two networks."
):
    fixed, attention, found = real["test_bleu"]
    assert fixed < found < attention

# %% [markdown] tags=["next"]
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
# - Hochreiter, S. and Schmidhuber, J. (1997).
#   [Long short-term memory](https://doi.org/10.1162/neco.1997.9.8.1735).
#   Neural Computation 9(8), 1735–1780.
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
