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
# Translate *the red car is near the church* into French.
# You do not learn the English sentence by heart and then write the French one.
# You look back: at *car* when you write *voiture*, at *near* when you write *près de*.
# **Can a network learn where to look, when nobody tells it which word belongs to which?**
#
# ```
#           the   red   car
# la         x
# voiture                x     the second French word looks at the third English one
# rouge            x           and the third at the second
# ```
#
# After this chapter you can
#
# - compute one look of a decoder with a pencil, and name its query, keys and values;
# - write a translator that looks back as one class, equal to the package's in outputs and gradients;
# - train it, and compare it with one that does not look back, over three seeds on both sides;
# - score its maps against known alignments, beside two guesses that have learned nothing;
# - test whether a look was needed, and find two mistakes that only a batch shows.
#
# It needs [Sequence to sequence](05_sequence_to_sequence.ipynb): GRUs, batches, the masked loss, the training loop and BLEU; from [Scoring functions](03_scoring_functions.ipynb) the additive score, and from [Masks](04_masks.ipynb) the padding mask.

# %%
import copy
import math
from collections import Counter
from types import SimpleNamespace

import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import course_utils as cu
from course_utils.data.text import PAD
from course_utils.data.translation import collate
from course_utils.lessons.bahdanau_attention import looks
from course_utils.lessons.bahdanau_attention.links import (
    alignment_error_rate,
    links_both_ways,
    links_of,
)
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world
from course_utils.lessons.sequence_to_sequence.word_maps import word_maps

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "sequence_to_sequence")

# %% [markdown]
# ## A context for each word
#
# The translator of the last chapter hands the decoder one vector for the whole sentence, the same at every step.
# But its encoder has a state $h_i$ for *each* source token, and throws them away.
# [Bahdanau et al. (2015)](https://arxiv.org/abs/1409.0473) keep them.
# Before each word the decoder, in its last state $s_{t-1}$, takes an average of them:
#
# $$c_t = \sum_i \alpha_{ti}\,h_i,\qquad \alpha_{t} = \mathrm{softmax}_i\big(\tanh(s_{t-1}W_Q + h_iW_K)\cdot w\big).$$
#
# The **query** is the decoder's last state.
# The encoder's states are both **keys** and **values**.
# The score is [additive](03_scoring_functions.ipynb#Additive-scores), and so query and keys may have different sizes.
# The average $c_t$ is the **context** of word $t$.
# Nothing in it knows about [alignments](C_glossary.ipynb#alignment); but an average can be differentiated, and so where to look can be learned from the loss.
#
# By hand, with one number each: $W_Q = W_K = 1$, $w = 2$, and the states $-0.5$, $0.5$, $1.5$.

# %%
toy_query = 0.5  # try -3.0 … 3.0
toy_w = 2.0  # try -4.0 … 4.0
states = torch.tensor([-0.5, 0.5, 1.5])
toy_sums = toy_query + states
toy_scores = toy_w * toy_sums.tanh()
toy_weights = toy_scores.softmax(dim=0)
toy = pd.DataFrame({"state": states, "sum": toy_sums, "tanh": toy_sums.tanh()})
toy["score"], toy["weight"] = toy_scores, toy_weights
toy["weight × state"] = toy_weights * states
print(f"context: {toy_weights @ states:.2f}")
toy.round(3)

# %% [markdown]
# The states 0.5 and 1.5 get 0.368 and 0.552, and the context is 0.97.
# The states are 1 apart each time, but the scores 1.52 and then only 0.41, because tanh flattens.
# Without tanh the query would not matter at all: it would add $s_{t-1}W_Q\cdot w$ to every score.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Set toy_query to 3. Then all three sums lie between 2.5 and 4.5. What do the weights look like?",
    ["nearly equal", "nearly all on 1.5", "the same as before"],
    answer="nearly equal",
    wrong={
        "nearly all on 1.5": "What is tanh of 2.5, and of 4.5?",
        "the same as before": "Without tanh they would be: the query would add the same to each score.",
    },
    why="tanh 2.5 = 0.987 and tanh 4.5 = 1.000: the scores differ by less than 0.03, and the weights are 0.328, 0.336, 0.337.",
)

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "roles")

# %% [markdown]
# ## The decoder that looks back
#
# One step of the decoder, with $m$ source tokens and states of size $d$.
# The encoder has run in both directions, and so each of its states has $2d$ numbers.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x      .      s      y
    E      .      pq     .
    H      pk     score  .
    .      .      norm   .
    mix    mix    mix    .
    .      .      c      .
    .      .      gru    gru
    .      .      s2     .
    .      .      out    .
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
            "H -> mix", "y -> gru"],
    alt="On the left the encoder turns source tokens into the memory H, a state per token. In the middle the "
    "decoder's last state is projected, scored against the projected memory, masked and normalized; the "
    "weights mix the memory to a context. On the right the last word and the context go into one step of "
    "the decoder's GRU, whose new state gives the next word with the context.",
    gap=(34, 18),
)  # fmt: skip

# %% [markdown]
# *Project, score, mask, normalize, mix*: the steps of [Masks](04_masks.ipynb#Attention-with-a-mask), with another score.
# The keys $HW_K$ are the same at every step, and so they are projected once for each sentence.
# Not drawn: the last state goes into the GRU as well.
#
# ### Exercise 1 · One look
#
# *build · 10 minutes*
#
# Write the middle of the drawing for a batch, from the projected query and the projected keys.
# The mask is True at real tokens, of which each sentence has at least one.
# No loop is needed: give the query an axis for the tokens.
# The translator below looks with your function, once it passes.


# %% tags=["exercise", "build"]
def my_look(query, keys, memory, mask, w):
    """(b, d), (b, m, d), (b, m, 2d), (b, m), (d,) → context (b, 2d), weights (b, m)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_look(my_look)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_look_solution(query, keys, memory, mask, w):
    """(b, 1, d) + (b, m, d) broadcasts over the tokens."""
    scores = (query[:, None] + keys).tanh() @ w  # score: (b, m)
    scores = scores.masked_fill(~mask, -math.inf)  # mask
    weights = scores.softmax(dim=-1)  # normalize
    return (weights[:, :, None] * memory).sum(dim=1), weights  # mix


cu.checks.my_look(my_look_solution)

# %% [markdown]
# And the whole translator.
# New is the loop: a look needs the state that the step before has left, and so the steps wait for each other.
# `note` hands the map to `cu.record_attention`, if somebody is recording.


# %%
class LookingBack(nn.Module):
    """A GRU encoder, and a GRU decoder that looks back before each word."""

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
            context, weights = look(query, state.keys, state.memory, state.mask, w)
            x = torch.cat([word, context], dim=-1)[:, None]  # a sequence of one
            state.hidden = self.decoder(x, state.hidden[None])[1][0]
            joined.append(torch.cat([state.hidden, context], dim=-1))
            maps.append(weights)
        self.attention.note(lambda: torch.stack(maps, dim=1))  # (b, n, m)
        return self.combine(torch.stack(joined, dim=1)).tanh()

    def features(self, source, source_lens, target):
        return self.decode(target, self.start(source, source_lens))

    def forward(self, source, source_lens, target):
        """Logits for teacher forcing, (b, n, target vocabulary)."""
        return self.output(self.features(source, source_lens, target))

    def step(self, tokens, state):
        """Logits of the token after `tokens` (b,); the state moves on."""
        return self.output(self.decode(tokens[:, None], state)[:, 0])


# %% [markdown]
# With the same weights and a padded batch of two sentences, it is held against `cu.AttentionTranslator`: the logits, and the gradients of its 23 weights and biases.

# %%
look = cu.choose(my_look, looks.look)
world = small_world("fr")
vocabularies = world.source_vocab, world.target_vocab
sizes = len(world.source_vocab), len(world.target_vocab)


def encoded(pairs):
    """Pairs → one padded batch of ids."""
    english, french = vocabularies
    return collate([(english.encode(p.source), french.encode(p.target)) for p in pairs])


batch = encoded([world.test[0], max(world.test, key=lambda pair: len(pair.source))])
mine = LookingBack(*sizes, embed_dim=12, hidden_dim=16)
theirs = cu.AttentionTranslator(*sizes, embed_dim=12, hidden_dim=16, dropout=0.0)
theirs.load_state_dict(mine.state_dict())
inputs = batch.source, batch.source_lens, batch.target_in
with cu.record_attention(mine) as recorded:
    print("logits", tuple(mine(*inputs).shape))
print("first look:", " ".join(f"{x:.2f}" for x in recorded["attention"][0, 0]))
cu.equal(mine, theirs, *inputs)

# %% [markdown]
# The logits have 10 rows, one for each target token and `<eos>`.
# The map has as many, and a column for each source token; above is the first row of the shorter sentence.
# The untrained decoder looks everywhere nearly alike, and nowhere in the padding.
# Outputs and gradients agree.

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "keys_once")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "By hand the context is 0.97; a map's rows sum to 1 and leave out the padding.",
    given=(toy_query, toy_w) == (0.5, 2.0),
):
    assert (toy_weights - torch.tensor([0.080, 0.368, 0.552])).abs().max() < 1e-3
    assert abs(toy_weights @ states - 0.97) < 5e-3
    length = int(batch.source_lens[0])
    assert recorded["attention"].shape == (2, batch.target_in.shape[1], batch.source.shape[1])
    assert not recorded["attention"][0, :, length:].any()
    assert (recorded["attention"].sum(dim=-1) - 1).abs().max() < 1e-5

# %% [markdown]
# ## Training it
#
# The data are the last chapter's small world, the loss is that chapter's, and the loop is the package's `cu.Trainer`: what you wrote there, with a rate that rises over 50 steps and then falls to zero, and gradients longer than 1 shortened ([Training transformers](12_training_transformers.ipynb) says why).
# First the usual questions.
# By hand, attention has $d\cdot d + 2d\cdot d + d$ parameters, 12,352 here, and all the rest is as it was without it.

# %%
hidden_dim = 64  # try 8 … 96
epochs = 9  # try 1 … 9


def new_model(seed):
    cu.seed_everything(seed)
    return LookingBack(*sizes, embed_dim=64, hidden_dim=hidden_dim)


def train(model, seed, epochs=epochs):
    loader = world.loader(world.train, seed=seed)
    schedule = cu.warmup_decay(50, epochs * len(loader))
    trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=9e-3,
                         schedule=schedule, seed=seed, quiet=True)  # fmt: skip
    return trainer.fit(model, loader, world.loader(world.val, shuffle=False))


model = new_model(0)
without = cu.RecurrentTranslator(*sizes, embed_dim=64, hidden_dim=hidden_dim)
counted = 3 * hidden_dim**2 + hidden_dim + sum(p.numel() for p in without.parameters())
first = next(iter(world.loader(world.train)))
cu.before_training(model, first, cu.translation_loss(), expected=counted, lr=9e-3)

# %% tags=["nbval-ignore-output"]
history = train(model, 0)
history.plot()

# %% [markdown]
# The count is as by hand, and the first loss is near $\ln 570 = 6.35$.
# Only the update is large: so the rate begins at a fiftieth.
# In the stored runs of three seeds the training loss ends at 0.04, the validation loss at 0.21 to 0.22.
#
# The four sentences below **are in the training data**: a network may have stored them.
# The 400 test sentences are not: BLEU, and the share that is right word for word.


# %%
def score(model, pairs):
    """BLEU and the share of exact translations, greedily."""
    lines = cu.translate(model, [" ".join(p.source) for p in pairs],
                         *vocabularies, max_len=20)  # fmt: skip
    right = [" ".join(pair.target) for pair in pairs]
    hits = [a == b for a, b in zip(lines, right, strict=True)]
    return cu.bleu(lines, right), sum(hits) / len(hits), hits


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
said = cu.translate(model, FOUR, *vocabularies)
bleu, exact, _ = score(model, world.test)
print(f"test sentences: BLEU {bleu:.2f}, exact {exact:.2f}")
read = {" ".join(pair.source) for pair in world.train}
right = [answer in world.references[line] for line, answer in zip(FOUR, said, strict=True)]
pd.DataFrame(
    {"French": said, "right": right, "in the training data": [line in read for line in FOUR]},
    index=FOUR,
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Now against decoders that do not look, with the same training. One of them is wider, and has more "
    "parameters than the model with attention. Which gets most of the test sentences right, in each of three seeds?",
    ["the one that looks", "the wider one", "it depends on the seed"],
    answer="the one that looks",
    wrong={
        "the wider one": "A wider context can hold more. But the decoder has to find each word in it, "
        "wherever it stands.",
        "it depends on the seed": "Seeds do move the numbers by some points. The difference is larger.",
    },
    why="In three seeds it gets 0.76 to 0.78 of them right, the wider one 0.42 to 0.49, the other 0.41 to 0.46.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("bahdanau_attention", "translator")
table = pd.DataFrame(
    [{"kind": run.config["kind"], "seed": run.config["seed"], **run.result} for run in runs]
).set_index(["kind", "seed"])
clock = cu.stored_runs("bahdanau_attention", "seconds")[0].result
three = table.groupby("kind", sort=False).agg(["min", "max"])
ranges = pd.DataFrame(
    {
        "parameters": table["parameters"].groupby("kind", sort=False).first().map("{:,.0f}".format),
        "seconds an epoch": pd.Series({kind: f"{clock[kind]:.1f}" for kind in three.index}),
        **{
            name: [f"{low:.2f}–{high:.2f}" for low, high in three[name].to_numpy()]
            for name in ("train_loss", "val_loss", "bleu", "exact")
        },
        "four": [f"{low:.0f}–{high:.0f}" for low, high in three["four"].to_numpy()],
    }
)
control = cu.stored_runs("bahdanau_attention", "longer")[0].result
ranges.loc["wider, 27 epochs, once"] = {name: f"{value:.2f}" for name, value in control.items()}
named = {"train_loss": "training loss", "val_loss": "validation loss", "bleu": "BLEU"}
named |= {"exact": "exactly right", "four": "of the four"}
ranges.fillna("").rename(columns=named)

# %% [markdown]
# Each row has three seeds, the least and the largest result; *fixed* is the last chapter's translator, with states of the same size, and *wider* has states of 96.
# Attention adds 12,352 parameters, and an epoch takes half as long again (one thread, the median of five).
# *Wider* has 100,000 more parameters than the model with attention, and gets fewer sentences right in each seed.
# All give back the four sentences: these do not distinguish the models.
#
# All had nine epochs at the rate 0.009, and the decoders that do not look are not at their end: their training loss is still 0.10 to 0.17.
# So the wider one was trained once with 27 epochs, too (last row): it comes nearer.
# At the rate 0.004 it comes nearer still, but with 18 epochs at this rate attention gains as well, and stays ahead.
# Does looking back help long sentences more?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
groups = {"4–5": "exact_5", "6": "exact_6", "7": "exact_7", "8–10": "exact_10"}
by_length = table[list(groups.values())].set_axis(list(groups), axis=1)
counts = Counter(len(pair.source) for pair in world.test)
number = [sum(counts[n] for n in ns) for ns in ((4, 5), (6,), (7,), (8, 9, 10))]
fig, ax = cu.subplots(
    width=6.0, height=3.2,
    alt="Share of exact translations over the number of source tokens, three seeds of each kind. The three "
    "lines with attention lie highest everywhere; those of both decoders that do not look fall steeply.",
)  # fmt: skip
styles = {"attention": ("key", "-o"), "wider": ("wrong", "--^"), "fixed": ("query", ":s")}
for kind, (color, style) in styles.items():
    for place, row in enumerate(by_length.loc[kind].to_numpy()):
        label = kind if place == 0 else None
        ax.plot(range(4), row, style, color=cu.COLORS[color], alpha=0.7, label=label)
ax.set_xticks(range(4), [f"{name}\n({n})" for name, n in zip(groups, number, strict=True)])
ax.set(xlabel="Source tokens (sentences)", ylabel="Exactly right", ylim=(0, 1.02))
ax.legend()
fig

# %% [markdown]
# Looking back is ahead in each group, in every seed (two sentences of three tokens are in none).
# More words are more chances to fail: at the same rate of errors per French word (4.9 on average in the first group, 7.5 in the last), its 0.84 to 0.88 would become $0.84^{7.5/4.9} = 0.77$ to 0.83, and the others' 0.59 to 0.70 become 0.45 to 0.57.
# The last group has 0.60 to 0.67, and 0.04 to 0.22: all lose more than that, and without a look, after nine epochs, far more.
# The last group has only 55 sentences: at a share of 0.6 the standard error is $\sqrt{0.6\cdot 0.4/55} = 0.07$.
# Differences between seeds are of this size; the distance to the others is at least 0.38.

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "seeds")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With nine epochs, looking back beats both decoders that do not look, in each length group."
):
    assert table.loc["attention", "bleu"].min() > control["bleu"]
    for other in ("fixed", "wider"):
        assert table.loc["attention", "bleu"].min() > table.loc[other, "bleu"].max()
    assert (table.loc["attention", "four"] == 4).all()
    assert table.loc["wider", "parameters"].min() > table.loc["attention", "parameters"].max()
    assert (by_length.loc["attention"].min() > by_length.drop("attention").max()).all()
    kept = by_length["8–10"] / by_length["4–5"]
    assert kept["attention"].min() > kept.drop("attention").max()

# %% [markdown]
# ## Where does it look?
#
# The grammar that made the sentences also knows which words belong together.
# The network was never told.
# We give it two test sentences with the right French, word by word, and draw its weights (without `<eos>`, each row made to sum to 1 again), and a frame around each **gold link**.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
chosen = [
    next(p for p in world.test if p.source[0] == "please" and len(p.target) == 8),
    next(p for p in world.test if "pas" in p.target and len(p.target) == 8),
]
fig, axes = cu.subplots(
    2, 1, width=4.1, height=7.4,
    alt="Two maps of French words over English words with the gold links framed. Above, please goes from "
    "the front to four words at the end; below, a negation: n'a and pas look at didn't.",
)  # fmt: skip
for ax, pair, words in zip(axes, chosen, word_maps(model, chosen, *vocabularies), strict=True):
    image = cu.heatmap(ax, words, queries=pair.target, keys=pair.source, xlabel=None, ylabel=None)
    ax.tick_params(axis="x", rotation=60)
    for s, t in pair.alignment:
        x, y = [s - 0.42, s + 0.42, s + 0.42, s - 0.42, s - 0.42], [t - 0.42, t - 0.42, t + 0.42, t + 0.42, t - 0.42]  # fmt: skip
        ax.plot(x, y, color="white", linewidth=3.5)  # on dark cells, too, a frame is seen
        ax.plot(x, y, color=cu.COLORS["query"], linewidth=1.5)
fig.colorbar(image, ax=axes, shrink=0.4, label="weight")
fig

# %% [markdown]
# Above, *please* stands in front and *s'il te plaît* at the end, and the dark cells follow the frames.
# But when this page was made, the full stop looked at *please*, too, and below, where *n'a* and *pas* look at *didn't*, *dernière* at the full stop.
#
# Now any sentence.
# Two stored translators answer, this chapter's and, beside it, the Transformer of [Start here](00_start_here.ipynb), after 14,000 sentences.
# Where will *mange* look, where *s'il te plaît*?
# Decide, then read.
# Known gold links are framed.
# *Bahdanau trained for* goes back in the left one's training: after 100 steps its [perplexity](C_glossary.ipynb#perplexity) has fallen from 1,600 to 51, and yet no weight of this sentence is above 0.24.

# %%
mine_too = "please eat a pizza ."  # try "please eat a pizza ." | "i'm home ."
cu.live.alignment(mine_too)

# %% [markdown]
# ### Alignment error rate
#
# One map proves little.
# So we turn each map into links and count.
# Each French word is linked to the English word with its largest weight.
# Then each English word that is left over is linked to the French word that gives it most.
# With the links found, $A$, and the gold links, $S$, the **alignment error rate** is
#
# $$\mathrm{AER} = 1 - \frac{2\,|A\cap S|}{|A| + |S|}.$$
#
# By hand: gold 0-0, 1-1, 1-2, 2-3, found 0-0, 1-1, 2-2, 2-3 (English-French).
# Three agree, and AER is $1 - 6/8 = 0.25$.
#
# ### Exercise 2 · A rate on paper
#
# *predict · 7 minutes*
#
# Three French words over four English words, with the weights below.
# Gold are the links 0-0, 1-0, 2-1 and 3-2 (English-French). (a) How many links does the first rule give, the largest weight of each French word? (b) What is AER with them? (c) How many links are there with the second rule, too? (d) What is AER now? (e) And AER of the map in which all weights are equal, if the first of several equal weights counts as the largest?
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
# ### Against two guesses
#
# What would we get without learning?
# **Uniform**: all weights equal.
# **Diagonal**: the French word at one third of its sentence looks at the English word at one third of its own.
# French and English order their words nearly alike, and so this guess is good.
# Both go through the same two rules.
# Beside AER stands the share of the weight that lies in the frames.


# %%
def crossings(pair):
    """How many pairs of links change their order."""
    pairs = sorted(pair.alignment)
    return sum(b < d for a, d in pairs for c, b in pairs if a < c)


def diagonal(pair):
    """All weight of each target word at the same share of the source."""
    step = (len(pair.source) - 1) / max(len(pair.target) - 1, 1)
    at = [round(t * step) for t in range(len(pair.target))]
    return torch.eye(len(pair.source))[at]


def aligned(found, pairs):
    """AER, and the share of the weight on gold links, of one map for each pair."""
    gold = [pair.alignment for pair in pairs]
    rate = alignment_error_rate([links_both_ways(words) for words in found], gold)
    framed = sum(words[t, s] for words, links in zip(found, gold, strict=True)
                 for s, t in links)  # fmt: skip
    return rate, float(framed / sum(len(words) for words in found))


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
maps = word_maps(model, world.test, *vocabularies)
crossed = [place for place, pair in enumerate(world.test) if crossings(pair)]
guesses = {
    "diagonal": [diagonal(pair) for pair in world.test],
    "uniform": [torch.full((len(p.target), len(p.source)), 1 / len(p.source)) for p in world.test],
}
columns = ["AER", "in frames", "AER, links cross", "in frames, links cross"]
columns += ["first rule alone: AER", "the same, links cross"]


def by_first_rule(found, places):
    links = [links_of(found[i]) for i in places]
    return alignment_error_rate(links, [world.test[i].alignment for i in places])


measured = {
    name: [
        *aligned(found, world.test),
        *aligned([found[i] for i in crossed], [world.test[i] for i in crossed]),
        by_first_rule(found, range(len(found))),
        by_first_rule(found, crossed),
    ]
    for name, found in ({"trained here": maps} | guesses).items()
}
stored = table.loc["attention", ["aer", "framed", "aer_crossed", "framed_crossed"]]
first_rule = [run.result for run in cu.stored_runs("bahdanau_attention", "first_rule")]
for name in ("aer", "aer_crossed"):
    stored[f"first_{name}"] = [result[name] for result in first_rule]
stored = stored.set_axis(columns, axis=1).rename(index="stored, seed {}".format)
alignments = pd.concat([pd.DataFrame(measured, index=columns).T, stored])
alignments.round(3)

# %% [markdown]
# The stored rates are 0.164, 0.181 and 0.179, the diagonal guess has 0.262, and equal weights have 0.842.
# Have the networks found out more than the order of the words?
# Where links cross, yes: 0.24 to 0.26 against 0.401, and by the first rule alone 0.29 to 0.31 against 0.391.
# Over all sentences, by the first rule alone, they are level with the guess after these nine epochs (0.23 to 0.26, 0.236); trained longer at the rate 0.004 they are ahead there, too.
#
# And the second column: the *weight in frames* is 0.64 to 0.65, and the diagonal, which has learned nothing, has 0.813.
# That number alone is no evidence.
# (A network spreads its weight; the guess puts all of it on one word.)

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "diagonal")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three seeds AER is at most 0.20, below both guesses; where links cross, by the first rule alone, too."
):
    assert stored["AER"].max() <= 0.20 < alignments.loc["diagonal", "AER"]
    assert alignments.loc["diagonal", "AER"] < alignments.loc["uniform", "AER"]
    for links_cross in ("AER, links cross", "the same, links cross"):
        assert stored[links_cross].max() < alignments.loc["diagonal", links_cross] - 0.05

# %% [markdown]
# ## Was the look needed?
#
# Some words look outside their frames more often than others.
# Is this a mistake?
# A test: what happens to the *right* word if the decoder cannot choose where to look, **at this one step**?
# With all keys zero, all scores are equal, and the context is the plain average of the source.
# Everything before the step is as it was.


# %%
@torch.no_grad()
def word_by_word(model, pairs, found):
    """A row per word: largest weight on gold? its probability, looking or not."""
    whole = encoded(pairs)
    state, both = model.eval().start(whole.source, whole.source_lens), []
    for tokens, right in zip(whole.target_in.T, whole.target_out.T, strict=True):
        blind = SimpleNamespace(**vars(state) | {"keys": torch.zeros_like(state.keys)})
        p = [model.step(tokens, each).softmax(dim=-1) for each in (state, blind)]
        both.append([each.gather(1, right[:, None])[:, 0].tolist() for each in p])
    rows = [(word, (int(found[i][t].argmax()), t) in pair.alignment,
             both[t][0][i], both[t][1][i])
            for i, pair in enumerate(pairs)
            for t, word in enumerate(pair.target)]  # fmt: skip
    return pd.DataFrame(rows, columns=["word", "on gold",
                                       "p, looking", "p, not looking"])  # fmt: skip


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The French negation is ne … pas, around the verb. Both words are linked to didn't or don't. For which of the two "
    "does the decoder need its look least?",
    ["pas", "ne", "no difference"],
    answer="pas",
    wrong={
        "ne": "What tells the decoder that a negation comes, if it cannot choose didn't?",
        "no difference": "Which of the two can be guessed from the French words before it?",
    },
    why="After ne and the verb an equal look at all words will do: the probability of pas stays at 0.95 or more in three seeds.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
each = word_by_word(model, world.test, maps)
asked = ["ne", "pas", "."]
by_word = pd.DataFrame(
    {word: each[each["word"] == word].mean(numeric_only=True) for word in asked}
    | {"all words": each.mean(numeric_only=True)}
).T
by_word["times"] = [*(int((each["word"] == word).sum()) for word in asked), len(each)]
for column, key in (("on gold", "gold"), ("p, looking", "looking"), ("p, not looking", "blind")):
    seeds = [table.loc["attention", f"{key}_{name}"] for name in ("ne", "pas", "stop", "all")]
    by_word[f"stored, {column}"] = [f"{one.min():.2f} – {one.max():.2f}" for one in seeds]
by_word.round(2)

# %% [markdown]
# In the stored runs the largest weight of *pas* is on a gold link in 0.54 to 0.63 of the cases, of all words in 0.78 to 0.82.
# And if it cannot choose its look, *pas* loses little: its probability stays at 0.95 or more. *ne* falls from 0.81 or more to 0.54 or less, all words together from 0.90 to 0.51 to 0.54. (*ne* stands 35 times; the other 44 negations begin with *n'*, as in *n'a*.)
# So for *pas* an equal look at all words will do.
# Not that it needs none.
# The average still has *didn't* in it, and the state has looked there before.
#
# So a map can show what is *useful for the next word*.
# Often, not always, this is the word that a linguist would link ([Koehn and Knowles, 2017](https://arxiv.org/abs/1706.03872)).
# A map is evidence about the network, and no proof of how it decides ([Jain and Wallace, 2019](https://arxiv.org/abs/1902.10186)).
#
# ### Exercise 3 · What would you believe?
#
# *open · 5 minutes*
#
# A colleague shows you one map of one sentence in which *s'il te plaît* looks at *please*, and concludes: "the network knows that *s'il te plaît* means *please*."
# Name two other explanations of this map, and for each an experiment like those of this chapter, with its baseline, that would decide.

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "look_of_pas")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("In three seeds, not looking costs pas less than ne and less than words on average."):
    lost = {
        name: table.loc["attention", f"looking_{name}"] - table.loc["attention", f"blind_{name}"]
        for name in ("ne", "pas", "all")
    }
    assert (lost["pas"] < lost["ne"]).all() and (lost["pas"] < lost["all"]).all()
    assert (table.loc["attention", "gold_pas"] < table.loc["attention", "gold_all"]).all()

# %% [markdown]
# ## What a single sentence does not show
#
# **The mask is left out.**
# A sentence then looks at its own padding, too, which it has because others in the batch are longer.
# The trained network translates the test sentences, all 400 in one batch, with its mask and without.


# %% tags=["nbval-ignore-output"]
def without_mask(source, source_lens):
    state = model.start(source, source_lens)
    state.mask = torch.ones_like(state.mask)
    return state


leaking = copy.copy(model)  # the same weights
leaking.start = without_mask
lines = [" ".join(pair.source) for pair in world.test]
for name, translator in (("with its mask", model), ("without", leaking)):
    french = cu.translate(translator, lines, *vocabularies, max_len=20, batch_size=400)
    same = [a == " ".join(p.target) for a, p in zip(french, world.test, strict=True)]
    print(f"{name:13} exact {sum(same) / len(same):.3f}")

# %% [markdown]
# When this page was made, 0.755 were right with the mask and 0.515 without it, by the same weights.
# Nothing stops, and a sentence by itself is translated as before.
# (`pad_packed_sequence` fills the memory with zeros there, so that only weight is lost, and no stranger's words are read.)
#
# ### Exercise 4 · Find the bug
#
# *bug · 8 minutes*
#
# `pack_padded_sequence` used to want the sentences sorted, the longest first, and much code still sorts them.
# Here is an encoder that does.
# Each sentence by itself is translated as before (*admirons*, we admire, is the network's own mistake).
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
# - A context for each word: the decoder's last state is the query, the encoder's states are keys and values, and where to look is learned from the loss.
# - With the same nine epochs it gets more unread sentences right than a decoder that does not look, in each group of lengths, also against one with more parameters.
# - Alignments are measured against gold links, over seeds, beside a diagonal guess and equal weights under the same rule.
# - A map can show what is useful for the next word.
#   Where an equal look at all words will do, its weights say little.
# - Masks and orders are tested in batches of different lengths: one sentence alone shows neither mistake.
#
# Next: [Self-attention](07_self_attention.ipynb), where the words of one sentence look at each other.
# Maps of real sentences, who looked first, other decoders and what Och and Ney count: [Bahdanau attention: relatives and details](06_bahdanau_attention_further.ipynb).
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
