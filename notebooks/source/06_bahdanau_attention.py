# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Bahdanau attention: learning to align
#
# A translator is trained on English sentences and their French, written **backwards**: the first word to say belongs to the end of the sentence.
# It is never told which word belongs to which.
# **Can it find out, from the translations alone?**
#
# Move the slider from 0 to 18.
# Cells that stand out are large weights; framed are the **gold links**, which a linguist would draw.

# %%
import copy
import math
from types import SimpleNamespace

import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import course_utils as cu
from course_utils.data.text import PAD
from course_utils.data.translation import collate
from course_utils.lessons.bahdanau_attention import alignment
from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    attend,
    diagonal,
    links_of,
    world_in,
)
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world
from course_utils.models.recurrent import RecurrentTranslator

cu.seed_everything(0)

# %% tags=["hide-input", "opening"] jupyter={"source_hidden": true}
cu.explore.learning_to_align()

# %% [markdown]
# A guess on the diagonal has nearly all links wrong here, an error of 0.89 by a measure that you will compute.
# The translator has found most of them, and missed some by one word.
# (*French* in the last box writes the words as usual; there the diagonal is a good guess.)
#
# After this chapter you can
#
# - compute one step of this attention with a pencil, and write a translator with it;
# - score its maps against gold links, beside guesses that have learned nothing;
# - test whether a word needed its attention.
#
# It needs [Sequence to sequence](05_sequence_to_sequence.ipynb): GRUs, the masked loss, the training loop; from [Scoring functions](03_scoring_functions.ipynb) the additive score, and from [Masks](04_masks.ipynb) the padding mask.

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "sequence_to_sequence")

# %% [markdown]
# ## A context for each word
#
# The translator of the last chapter hands the decoder one vector for the whole sentence.
# But its encoder has a state $h_i$ for *each* source token, and throws them away.
# [Bahdanau et al. (2015)](https://arxiv.org/abs/1409.0473) keep them.
# Before each word the decoder, in its last state $s_{t-1}$, takes an average of them:
#
# $$c_t = \sum_i \alpha_{ti}\,h_i,\qquad \alpha_{t} = \mathrm{softmax}_i\big(\tanh(s_{t-1}W_Q + h_iW_K)\cdot w\big).$$
#
# The **query** is the decoder's last state; the encoder's states are both **keys** and **values**.
# Queries from one sentence and keys from another are what is called **cross-attention** today.
# The score is [additive](03_scoring_functions.ipynb#Additive-scores), and so query and keys may have different sizes.
# The average $c_t$ is the **context** of word $t$.
# Nothing here mentions [alignments](C_glossary.ipynb#alignment).
# But an average can be differentiated, and so where to attend is learned from the loss.
#
# By hand, with one number each: $W_Q = W_K = 1$, $w = 2$, and three states.

# %%
toy_query = 0.5  # try -3.0 … 3.0
states = torch.tensor([-0.5, 0.5, 1.5])
toy = pd.DataFrame({"state": states, "sum": toy_query + states})
toy["tanh"] = (toy_query + states).tanh()
toy["score"] = 2 * (toy_query + states).tanh()
toy["weight"] = (2 * (toy_query + states).tanh()).softmax(dim=0)
toy["weight × state"] = toy["weight"] * toy["state"]
print(f"context: {toy['weight × state'].sum():.2f}")
toy.round(3)

# %% [markdown]
# The states are equally far apart, the scores are not, because tanh flattens.
# Without tanh the query would not matter at all: it would add the same to every score.
# Try a query of 3: all three sums are large, and the weights are nearly equal.
#
# ## The decoder that attends
#
# One step of the decoder, with $m$ source tokens and states of size $d$.
# The encoder has run in both directions, and so each of its states has $2d$ numbers.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x      .      s      .    .
    E      .      pq     .    .
    H      pk     score  .    .
    .      .      norm   .    .
    mix    mix    mix    .    .
    .      .      c      gru  y
    .      .      .      s2   .
    .      .      .      out  .
    """,
    nodes={
        "x": cu.Box("source tokens"),
        "E": cu.Box("encoder: GRU, both ways"),
        "H": cu.Cells(4, 4, "memory H", shape="(m, 2d)", color="key"),
        "pk": cu.Box("project: H W_K", shape="(m, d)"),
        "s": cu.Cells(1, 2, "last state", shape="(1, d)", color="query"),
        "pq": cu.Box("project: s W_Q", shape="(1, d)"),
        "score": cu.Box("score: tanh(+) · w", shape="(1, m)"),
        "norm": cu.Box("mask, normalize", shape="(1, m)"),
        "mix": cu.Box("mix: weights × H"),
        "c": cu.Cells(1, 4, "context c", shape="(1, 2d)", color="value"),
        "y": cu.Box("last word, embedded"),
        "gru": cu.Box("decoder: GRU, one step"),
        "s2": cu.Cells(1, 2, "new state", shape="(1, d)", color="query"),
        "out": cu.Box("state and context → next word"),
    },
    arrows=["x -> E -> H -> pk -> score", "s -> pq -> score -> norm -> mix -> c -> gru -> s2 -> out",
            "H -> mix", "y -> gru", cu.Arrow("s", "gru", start="right", end="top"),
            cu.Arrow("c", "out", start="bottom", end="left")],
    alt="On the left the encoder turns source tokens into the memory H, a state per token. In the middle the "
    "decoder's last state is projected, scored against the projected memory, masked and normalized; the "
    "weights mix the memory to a context. On the right the last state, the last word and the context go into one "
    "step of the decoder's GRU, whose new state gives the next word with the context.",
    gap=(18, 18),
)  # fmt: skip

# %% [markdown]
# *Project, score, mask, normalize, mix*: the steps of [Masks](04_masks.ipynb#Attention-with-a-mask), with another score.
# The keys $HW_K$ are the same at every step, and so they are projected once for each sentence.
#
# ### Exercise 1 · One context
#
# *build · 10 minutes*
#
# Write the middle of the drawing for a batch, from the projected query and the projected keys.
# The mask is True at real tokens, of which each sentence has at least one.
# No loop is needed: give the query an axis for the tokens.
# The translator below attends with your function, once it passes.


# %% tags=["exercise", "build"]
def my_context(query, keys, memory, mask, w):
    """(b, d), (b, m, d), (b, m, 2d), (b, m), (d,) → context (b, 2d), weights (b, m)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_context(my_context)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_context_solution(query, keys, memory, mask, w):
    """(b, 1, d) + (b, m, d) broadcasts over the tokens."""
    scores = (query[:, None] + keys).tanh() @ w  # score: (b, m)
    scores = scores.masked_fill(~mask, -math.inf)  # mask
    weights = scores.softmax(dim=-1)  # normalize
    return (weights[:, :, None] * memory).sum(dim=1), weights  # mix


cu.checks.my_context(my_context_solution)

# %% [markdown]
# And the whole translator.
# The decoder begins with three things: the memory, the encoder's last states, and which tokens are real.
# New is the loop: a query is the state that the step before has left, and so the steps wait for each other.
# Below it is held against `cu.AttentionTranslator`.


# %%
class Bahdanau(nn.Module):
    """A GRU encoder, and a GRU decoder that attends to its states before each word."""

    def __init__(self, source_size, target_size, embed_dim, hidden_dim):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=PAD)
        self.encoder = nn.GRU(embed_dim, hidden_dim, batch_first=True,
                              bidirectional=True)  # fmt: skip
        self.bridge = nn.Linear(2 * hidden_dim, hidden_dim)
        self.attention = cu.AdditiveAttention(hidden_dim, 2 * hidden_dim, hidden_dim)
        self.decoder = nn.GRU(embed_dim + 2 * hidden_dim, hidden_dim, batch_first=True)
        self.combine = nn.Linear(3 * hidden_dim, embed_dim)
        self.output = nn.Linear(embed_dim, target_size)

    def read(self, x, source_lens):
        """Embedded tokens (b, m, embed) → states (b, m, 2d), last states (b, 2d)."""
        packed = pack_padded_sequence(x, source_lens.cpu(), batch_first=True,
                                      enforce_sorted=False)  # fmt: skip
        outputs, last = self.encoder(packed)  # last: (2, b, d), forwards and backwards
        memory, _ = pad_packed_sequence(outputs, batch_first=True,
                                        total_length=x.shape[1])  # fmt: skip
        return memory, torch.cat([last[0], last[1]], dim=-1)

    def start(self, source, source_lens):
        """What the decoder needs at each step, from the source (b, m), once."""
        memory, last = self.read(self.source_embedding(source), source_lens)
        return SimpleNamespace(
            hidden=self.bridge(last).tanh(),  # (b, d)
            memory=memory,
            keys=self.attention.key_proj(memory),  # project: (b, m, d)
            mask=cu.padding_mask(source_lens, source.shape[1])[:, 0, 0],  # (b, m)
        )

    def decode(self, target, state):
        """Read target tokens (b, n): what `output` turns into logits, (b, n, embed)."""
        w = self.attention.score_proj.weight[0]
        joined, maps = [], []
        for word in self.target_embedding(target).unbind(dim=1):
            query = self.attention.query_proj(state.hidden)  # project
            context, weights = attend(query, state.keys, state.memory, state.mask, w)
            x = torch.cat([word, context], dim=-1)[:, None]  # a sequence of one
            state.hidden = self.decoder(x, state.hidden[None])[1][0]
            joined.append(torch.cat([state.hidden, context], dim=-1))
            maps.append(weights)
        self.attention.note(lambda: torch.stack(maps, dim=1))  # (b, n, m), recorded
        return self.combine(torch.stack(joined, dim=1)).tanh()

    def features(self, source, source_lens, target):
        return self.decode(target, self.start(source, source_lens))

    def forward(self, source, source_lens, target):
        """Logits for teacher forcing, (b, n, target vocabulary)."""
        return self.output(self.features(source, source_lens, target))

    def step(self, tokens, state):
        """Logits of the token after `tokens` (b,); the state moves on."""
        return self.output(self.decode(tokens[:, None], state)[:, 0])


# %%
attend = cu.choose(my_context, alignment.attend)
world = small_world("fr")
vocabularies = world.source_vocab, world.target_vocab
sizes = len(world.source_vocab), len(world.target_vocab)


def encoded(pairs):
    """Pairs → one padded batch of ids."""
    english, french = vocabularies
    return collate([(english.encode(p.source), french.encode(p.target)) for p in pairs])


batch = encoded([world.test[0], max(world.test, key=lambda pair: len(pair.source))])
mine = Bahdanau(*sizes, embed_dim=12, hidden_dim=16)
theirs = cu.AttentionTranslator(*sizes, embed_dim=12, hidden_dim=16, dropout=0.0)
theirs.load_state_dict(mine.state_dict())
cu.equal(mine, theirs, batch.source, batch.source_lens, batch.target_in)

# %% [markdown]
# ## Training it
#
# The data are the last chapter's small world, in usual French, and the loss is that chapter's.
# The loop is the package's `cu.Trainer`: what you wrote there, with a rate that rises over 50 steps and then falls to zero.

# %%
hidden_dim = 64  # try 8 … 96
epochs = 8  # try 1 … 18
cu.seed_everything(0)
model = Bahdanau(*sizes, embed_dim=64, hidden_dim=hidden_dim)
without = RecurrentTranslator(*sizes, embed_dim=64, hidden_dim=hidden_dim)
counted = 3 * hidden_dim**2 + hidden_dim + sum(p.numel() for p in without.parameters())
loader = world.loader(world.train)
first = next(iter(loader))
cu.before_training(model, first, cu.translation_loss(), expected=counted, lr=6e-3)

# %% tags=["nbval-ignore-output"]
schedule = cu.warmup_decay(50, epochs * len(loader))
trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=6e-3,
                     schedule=schedule, quiet=True)  # fmt: skip
trainer.fit(model, loader, world.loader(world.val, shuffle=False))
said = cu.translate(model, FOUR, *vocabularies)
lines = [" ".join(pair.source) for pair in world.test]
french = cu.translate(model, lines, *vocabularies, max_len=20)
same = [a == " ".join(p.target) for a, p in zip(french, world.test, strict=True)]
share = sum(same) / len(same)
print(f"{epochs} passes: {share:.2f} of the 400 test sentences exactly right")
pd.Series(said, index=FOUR, name="read in training")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
kinds = {"attention": 18, "wider": 27}
runs = [
    run
    for kind, passes in kinds.items()
    for run in cu.stored_runs("bahdanau_attention", "translator", lowest="val_loss", kind=kind,
                              order="French", passes=passes)
]  # fmt: skip
table = pd.DataFrame([run.config | run.result for run in runs])
lengths = {"exact_5": "4–5 tokens", "exact_7": "6–7", "exact_10": "8–10"}
named = {"passes": "passes", "rate": "rate", "parameters": "parameters", "train_loss": "training loss",
         "val_loss": "validation loss", "bleu": "BLEU", "exact": "exactly right"} | lengths  # fmt: skip
means = table.groupby("kind", sort=False)[list(named)].mean()
compared = means.rename(columns=named).assign(seeds=table.groupby("kind", sort=False).size()).T
compared.map(lambda x: f"{x:,.0f}" if x >= 2 else f"{x:.3g}")

# %% [markdown]
# Stored, with more passes, two seeds each: attention at one rate, and a wider decoder without it at the better of two ([a control is a tuned control](G_controls.ipynb)).
# With attention more than four in five are exactly right, without it fewer than two in three.
# The wider one has more parameters, and has learned its training data by heart; neither has dropout.
# Attention helps most where sentences are long: the question of the last chapter.
# It has its price, because each step of the decoder now scores every word of the source before it can go on.
#
# ## Where does it attend?
#
# First any sentence.
# Two stored translators answer, one like this chapter's and, beside it, the Transformer of [Start here](00_start_here.ipynb).
# A *perplexity* of 1.1 says that at each word a model hesitates as among 1.1 [equally likely ones](C_glossary.ipynb#perplexity).
# Where will *mange* attend, where *s'il te plaît*?
# Decide, then read; known gold links are framed.

# %%
mine_too = "please eat a pizza ."  # try "please eat a pizza ." | "i'm home ."
cu.live.alignment(mine_too)

# %% [markdown]
# ### Alignment error rate
#
# Now we count.
# Each French word is linked to the English word with its largest weight.
# With the links found, $A$, and the gold links, $S$, the **alignment error rate** is
#
# $$\mathrm{AER} = 1 - \frac{2\,|A\cap S|}{|A| + |S|}.$$
#
# By hand: gold 0-0, 1-1, 1-2, 2-3, found 0-0, 1-1, 2-2, 2-3 (English-French).
# Three agree, and AER is $1 - 6/8 = 0.25$.
# An English word that no French word has chosen stays without a link; a second rule can give each of these to the French word that attends to it most.
#
# ### Exercise 2 · A rate on paper
#
# *predict · 7 minutes*
#
# Three French words over four English words, with the weights below.
# Gold are the links 0-0, 1-0, 2-1 and 3-2 (English-French). (a) How many links does the first rule give, the largest weight of each French word? (b) What is AER with them? (c) How many links are there with the second rule, too? (d) What is AER now? (e) And AER with both rules, if all weights are equal, and the first of several equal ones counts as the largest?
# Two decimals.
#
# | | English 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | French 0 | 0.5 | 0.3 | 0.1 | 0.1 |
# | French 1 | 0.1 | 0.2 | 0.6 | 0.1 |
# | French 2 | 0.1 | 0.1 | 0.5 | 0.3 |


# %% tags=["exercise", "predict"]
def predicted_rates():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 0.5, 2, 0.5, 0.5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_rates(predicted_rates)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_rates_solution():
    """A: 0-0, 2-1, 2-2, of which 0-0 and 2-1 are gold; then 1-0 and 3-2, both gold.

    1 − 4/7 and 1 − 8/9. Equal weights: 0-0, 0-1, 0-2, and then 1-0, 2-0, 3-0: two of six are gold, 1 − 4/10.
    """
    return [3, 0.43, 5, 0.11, 0.6]


cu.checks.predicted_rates(predicted_rates_solution)

# %% [markdown]
# ### Against guesses
#
# Three guesses have learned nothing.
# **Diagonal**: the French word at one third of its sentence goes to the English word at one third of its own.
# **Turned**: to the one at two thirds; whoever guesses so knows the order.
# **Uniform**: all weights equal.
# All go through the first rule, as the network's maps do.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def rate(found, pairs):
    gold = [pair.alignment for pair in pairs]
    return alignment_error_rate([links_of(words) for words in found], gold)


def uniform(pair):
    return torch.full((len(pair.target), len(pair.source)), 1 / len(pair.source))


def turned(pair):
    return diagonal(pair).flip(0)


def stored(order):
    """Results of the trained networks."""
    runs = cu.stored_runs("bahdanau_attention", "translator", lowest="val_loss",
                          kind="attention", order=order, passes=18)  # fmt: skip
    return pd.DataFrame([run.result for run in runs])


def tested(order):
    """Of the guesses and of the worst network, on the same test sentences."""
    pairs, guesses = world_in(order).test, (uniform, diagonal, turned)
    row = {f.__name__: rate([f(p) for p in pairs], pairs) for f in guesses}
    return row | {"network": stored(order)["aer_first"].max()}


alignments = pd.DataFrame({order: tested(order) for order in ("French", "backwards")}).T
alignments.round(3)

# %% [markdown]
# The network (the worse of two seeds in French, one backwards) is ahead of the diagonal in both orders.
# In usual French the diagonal is a strong guess, and only a lower number is evidence; backwards it is useless.
# Turned it beats the network, but somebody who knows the order has turned it.

# %% [markdown]
# ## Was the attention needed?
#
# The French negation is *ne … pas*, around the verb, and both words are linked to *didn't* or *don't*.
# A test: what happens to the *right* word if the decoder cannot choose, **at this one step**?
# With all keys zero, all scores are equal, and the context is the plain average of the encoder's states.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Over all test sentences, from stored trainings: which of the two needs its attention least?",
    ["pas", "ne", "no difference"],
    answer="pas",
    wrong={
        "ne": "What tells the decoder that a negation comes, if it cannot choose didn't?",
        "no difference": "Which of the two can be guessed from the French words before it?",
    },
    why="After ne and the verb a plain average will do.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
pair = next(p for p in world.test if {"ne", "pas"} <= set(p.target))
one = encoded([pair])
with torch.no_grad():
    state = model.eval().start(one.source, one.source_lens)
    chances = []
    for token, right in zip(one.target_in[0], one.target_out[0], strict=True):
        blind = copy.copy(state)
        blind.keys = torch.zeros_like(state.keys)
        p = [model.step(token[None], s).softmax(-1)[0, right].item() for s in (state, blind)]
        chances.append(p)
of_right = pd.DataFrame(chances, [*pair.target, "<eos>"], ["p, attention", "p, all keys zero"])
of_right.T.round(2)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def needed(order):
    """Per word: where attention lies, what a word loses without it, how the loss pulls at its scores."""
    of = stored(order).mean()
    return pd.DataFrame(
        {
            word: {
                "largest weight on gold": of[f"gold_{word}"],
                "p, attention": of[f"with_{word}"],
                "p, all keys zero": of[f"zero_{word}"],
                "Σ|∂loss/∂score| after 4 passes": of[f"pull_4_{word}"],
                "after 18": of[f"pull_18_{word}"],
            }
            for word in ("ne", "pas", "all")
        }
    ).T


of_words = pd.concat({order: needed(order) for order in ("French", "backwards")})
of_words.round(3)

# %% [markdown]
# Without a choice *pas* is as probable as with it; *ne* is not.
# The loss asks for less, too: while the network learns to align, after 4 passes, its derivative by the scores is smaller at *pas* than on average.
# Backwards, where *pas* comes before *ne*, it needs its attention, too: what has been said decides.
#
# So a map shows what is *useful for the next word*.
# Often, not always, this is the word that a linguist would link ([Koehn and Knowles, 2017](https://arxiv.org/abs/1706.03872)).
# A map is evidence about the network, and no proof of how it decides ([Jain and Wallace, 2019](https://arxiv.org/abs/1902.10186)).

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "diagonal", "pas")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("By hand the context is 0.97.", given=toy_query == 0.5):
    assert abs(toy["weight × state"].sum() - 0.97) < 5e-3
with cu.guard(
    "With attention more sentences are right than with the wider decoder at its better rate."
):
    for key in ("exact", *lengths):
        by_kind = table.groupby("kind")[key]
        assert by_kind.min()["attention"] > by_kind.max()["wider"]
    assert means.loc["wider", "parameters"] > means.loc["attention", "parameters"]
with cu.guard(
    "The network aligns better than the diagonal, and backwards by far, though there the turned diagonal is better still."
):
    learned = alignments["network"]
    assert (learned < alignments["diagonal"]).all()
    assert learned["backwards"] < alignments.loc["backwards", "diagonal"] - 0.3
    assert learned["backwards"] > alignments.loc["backwards", "turned"]
with cu.guard(
    "Without a choice of keys pas loses less than ne and less than words do on average, but backwards it does lose."
):
    lost = of_words["p, attention"] - of_words["p, all keys zero"]
    pulled = of_words["Σ|∂loss/∂score| after 4 passes"]
    assert lost["French"]["pas"] < 0.05 < min(lost["French"]["ne"], lost["French"]["all"])
    assert lost["backwards"]["pas"] > 0.1
    assert pulled["French"]["pas"] < 0.7 * min(pulled["French"]["ne"], pulled["French"]["all"])
    assert pulled["backwards"]["pas"] > pulled["backwards"]["all"]

# %% [markdown]
# ## What a single sentence does not show
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# `pack_padded_sequence` used to want the sentences sorted, the longest first, and much code still sorts them.
# Here is an encoder that does.
# Each sentence by itself is translated as before, mistakes and all.
# In a batch, something happens: find it, and write `fixed_memory`.


# %% tags=["nbval-ignore-output"]
def buggy_memory(encoder, x, lens):
    """Embedded (b, m, e), lengths (b,) → states (b, m, 2d), last states (b, 2d)."""
    order = lens.argsort(descending=True)
    packed = pack_padded_sequence(x[order], lens[order], batch_first=True)
    outputs, last = encoder(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    return memory, torch.cat([last[0], last[1]], dim=-1)


sorting = copy.copy(model)
sorting.read = lambda x, lens: buggy_memory(model.encoder, x, lens)
asked_lines = [*FOUR, "we read the book ."]
alone = [cu.translate(sorting, [line], *vocabularies)[0] for line in asked_lines]
batched = cu.translate(sorting, asked_lines, *vocabularies, max_len=10)
pd.DataFrame({"alone": alone, "in a batch": batched}, index=asked_lines)


# %% tags=["exercise", "bug"]
def fixed_memory(encoder, x, lens):
    """Embedded (b, m, e), lengths (b,) → states (b, m, 2d), last states (b, 2d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_memory(fixed_memory)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_memory_solution(encoder, x, lens):
    """Both results go back to the order of the sentences; `enforce_sorted=False` does the same."""
    order = lens.argsort(descending=True)
    packed = pack_padded_sequence(x[order], lens[order], batch_first=True)
    outputs, last = encoder(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    back = order.argsort()
    return memory[back], torch.cat([last[0], last[1]], dim=-1)[back]


cu.checks.fixed_memory(fixed_memory_solution)

# %% [markdown]
# ## Take-aways
#
# - A context for each word: the decoder's last state is the query, the encoder's states are keys and values, and where to attend is learned from the loss.
# - It learns to align, also where the diagonal is useless; the measure is AER, beside a guess under the same rule.
# - A map shows what is useful for the next word.
#   Where a plain average will do, its weights say little.
#
# Next: [Self-attention](07_self_attention.ipynb), where the words of one sentence attend to each other.
# The lectures' own runs, maps of real sentences, who was first and what Och and Ney count: [Bahdanau attention: relatives and details](06_bahdanau_attention_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   Section 3: the decoder and the encoder in both directions.
# - Jain, S. and Wallace, B. C. (2019).
#   [Attention is not explanation](https://arxiv.org/abs/1902.10186).
#   NAACL.
# - Koehn, P. and Knowles, R. (2017).
#   [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872).
#   Workshop on Neural Machine Translation.
#   Attention and alignment compared.
# - Och, F. J. and Ney, H. (2003).
#   [A systematic comparison of various statistical alignment models](https://aclanthology.org/J03-1002/).
#   Computational Linguistics 29(1).
#   Alignment error rate.
