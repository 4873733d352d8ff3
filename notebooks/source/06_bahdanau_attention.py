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
# **A translator reads English and writes French, and nobody tells it which word belongs to which.
# Can it find out by itself?**
#
# To make it hard we write the French **backwards**, so the first word to say belongs to the end of the English sentence.
# In the map, the darker a cell, the more weight its French word gives to the English word below.
# A dot marks the largest weight of a row, and a frame marks a **gold link**, one that a linguist would draw.
# Train the network by moving the slider from 0 to 18 epochs.
# An **epoch** is one run through the training set.
# Do the dots find the frames?

# %% jupyter={"source_hidden": true}
import copy
import math

import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import course_utils as cu
from course_utils.data.text import PAD
from course_utils.data.translation import collate
from course_utils.lessons.bahdanau_attention import alignment, explorer
from course_utils.lessons.sequence_to_sequence.small_world import FOUR

cu.seed_everything(0)

# %% tags=["hide-input", "opening"] jupyter={"source_hidden": true}
cu.explore.learning_to_align()

# %% [markdown]
# At 0 all rows look alike, with their dots in one column, because the network is still random.
# At 18 six of the eight dots sit in a frame, although the network has only ever seen translations.
#
# On the right is the alignment error over the whole test set, defined below.
# Lower is better.
# The dashed line is a **baseline**, a guess on the diagonal that links the first word to the first and the last to the last.
# Here this guess gets nearly every link wrong, while in French word order (*French* in the last box) it is a good one.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - compute one step of this attention with a pencil, and write a translator around it;
# - score its maps against gold links, next to baselines that have learned nothing;
# - hide the links behind a word order of your own, and see whether the translator finds them;
# - test whether a word needed its attention.

# %% [markdown] tags=["needs"]
# You will need [Sequence to sequence](05_sequence_to_sequence.ipynb), the additive score of [Scoring functions](03_scoring_functions.ipynb), and the padding mask of [Masks](04_masks.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "sequence_to_sequence")

# %% [markdown]
# ## A context for each word
#
# The translator of the last chapter squeezes the whole sentence into one vector, and for long sentences that takes a long time to learn.
# But its encoder has a state $h_i$ for *every* source token, and we can keep them all.
# In [Bahdanau et al. (2015)](https://arxiv.org/abs/1409.0473), before each word $t$ the decoder asks with its previous state $s_{t-1}$ and gets a weighted average of the $h_i$, its **context** $c_t$:
#
# $$c_t = \sum_i \alpha_{ti}\,h_i,\qquad \alpha_{t} = \mathrm{softmax}_i\big(\tanh(s_{t-1}W_Q + h_iW_K)\cdot w\big).$$
#
# So the **query** is the decoder's previous state, and the encoder's states are **keys** and **values** at once.
# When queries come from one sentence and keys from another, we speak of **cross-attention**.
# The score is the [additive](03_scoring_functions.ipynb#Additive-scores) one, which lets query and key have different sizes.
#
# For a step by hand we take one number for each vector, $W_Q = W_K = 1$, $w = 2$, and three states.

# %%
toy_query = 0.5  # try -3.0 … 3.0
states = torch.tensor([-0.5, 0.5, 1.5])
sums = toy_query + states
scores = (2 * sums.tanh()).requires_grad_()
weights = scores.softmax(dim=0)
context = weights @ states
print(f"context: {context.item():.2f}")
columns = {"state": states, "sum": sums, "tanh": sums.tanh(), "score": scores, "weight": weights}
pd.DataFrame({name: column.tolist() for name, column in columns.items()}).round(3)

# %% [markdown]
# The states are equally far apart, but the scores aren't, because tanh flattens large sums.
# Now try a query of 3, where tanh is nearly 1 for all of them and the weights are almost equal.
#
# ### How the loss teaches where to look
#
# Nothing in the formula mentions [alignments](C_glossary.ipynb#alignment).
# But we can differentiate an average, so the loss reaches every score.
# If $e_i$ is the score of the state $h_i$, the chain rule through softmax and average gives
#
# $$\frac{\partial L}{\partial e_i} = \alpha_i\,(h_i - c)\cdot\frac{\partial L}{\partial c}.$$
#
# In words, a score rises if its state lies in the direction in which the loss wants to move the context.
# And the more weight the state already has, the faster its score rises.
# Suppose that the next word wants a context of 1.5.

# %%
wanted = 1.5  # try -0.5 … 1.5
loss = (context - wanted) ** 2 / 2  # so ∂L/∂c is c − wanted
(gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
by_formula = (weights * (states - context) * (context - wanted)).detach()
pd.DataFrame({"gradient": gradient, "by the formula": by_formula}, states.tolist()).round(3)

# %% [markdown]
# Training goes against the gradient, so the score of the highest state will rise, and the scores of the two others will fall.
# The lowest state is farthest away, but it has so little weight that the middle state's score falls faster.
#
# ## The decoder that attends
#
# Now we put this step into the translator.
# The drawing shows one word, with $m$ source tokens and states of size $d$, or $2d$ in the encoder, which reads in both directions.

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
        "s": cu.Cells(1, 2, "previous state", shape="(1, d)", color="query"),
        "pq": cu.Box("project: s W_Q", shape="(1, d)"),
        "score": cu.Box("score: tanh(+) · w", shape="(1, m)"),
        "norm": cu.Box("mask, normalize", shape="(1, m)"),
        "mix": cu.Box("mix: weights × H"),
        "c": cu.Cells(1, 4, "context c", shape="(1, 2d)", color="value"),
        "y": cu.Box("previous word, embedded"),
        "gru": cu.Box("decoder: GRU, one step"),
        "s2": cu.Cells(1, 2, "new state", shape="(1, d)", color="query"),
        "out": cu.Box("state and context → next word"),
    },
    arrows=["x -> E -> H -> pk -> score", "s -> pq -> score -> norm -> mix -> c -> gru -> s2 -> out",
            "H -> mix", "y -> gru", cu.Arrow("s", "gru", start="right", end="top"),
            cu.Arrow("c", "out", start="bottom", end="left")],
    alt="On the left the encoder turns source tokens into the memory H, a state per token. In the middle the "
    "decoder's previous state is projected, scored against the projected memory, masked, and normalized; the "
    "weights mix the memory to a context. On the right the previous state, the previous word, and the context go into one "
    "step of the decoder's GRU, whose new state gives the next word with the context.",
    gap=(18, 18),
)  # fmt: skip

# %% [markdown]
# ### Exercise 1 · One context
#
# *build · 11 minutes*
#
# Write the middle of the drawing for a batch of sentences.
# Query and keys are already projected, and the mask is True at real tokens, of which each sentence has at least one.
# Once your function passes, the translator below attends with it.


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
# We write the translator as two classes.
# The **encoder** reads a batch without its padding, and keeps a state for each token, the **memory**.


# %%
class Encoder(nn.Module):
    def __init__(self, source_size, embed_dim, hidden_dim):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=PAD)
        self.encoder = nn.GRU(embed_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_dim, hidden_dim)

    def read(self, source, lens):
        """(b, m) tokens → states (b, m, 2d), last states (b, 2d)."""
        x = self.source_embedding(source)
        real = pack_padded_sequence(x, lens.cpu(), True, enforce_sorted=False)
        outputs, last = self.encoder(real)  # last: (2, b, d), forwards and backwards
        memory, _ = pad_packed_sequence(outputs, batch_first=True)
        return memory, torch.cat([last[0], last[1]], dim=-1)


# %% [markdown]
# The **decoder** does the rest.
# Its method `move` is the step that you saw in the drawing.
# A query is the state from the previous step, so each step has to wait for the one before.
# The keys don't change, so we project them only once.

# %%
attend = cu.choose(my_context, alignment.attend)


class Bahdanau(Encoder):
    def __init__(self, source_size, target_size, embed_dim, hidden_dim):
        super().__init__(source_size, embed_dim, hidden_dim)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=PAD)
        self.attention = cu.AdditiveAttention(hidden_dim, 2 * hidden_dim, hidden_dim)
        self.decoder = nn.GRU(embed_dim + 2 * hidden_dim, hidden_dim, batch_first=True)
        self.combine = nn.Linear(3 * hidden_dim, embed_dim)
        self.output = nn.Linear(embed_dim, target_size)

    def start(self, source, lens):
        memory, last = self.read(source, lens)
        return {"hidden": self.bridge(last).tanh(), "memory": memory,
                "keys": self.attention.key_proj(memory),
                "mask": cu.padding_mask(lens, source.shape[1])[:, 0, 0]}  # fmt: skip

    def move(self, word, state):
        """Embedded word (b, embed) → new state and context (b, 3d), weights (b, m)."""
        w = self.attention.score_proj.weight[0]
        query = self.attention.query_proj(state["hidden"])  # project
        context, weights = attend(query, state["keys"], state["memory"], state["mask"], w)
        x = torch.cat([word, context], dim=-1)[:, None]  # a sequence of one
        _, hidden = self.decoder(x, state["hidden"][None])
        state["hidden"] = hidden[0]
        return torch.cat([hidden[0], context], dim=-1), weights

    def decode(self, target, state):
        """Read target tokens (b, n): what `output` turns into logits, (b, n, embed)."""
        words = self.target_embedding(target).unbind(dim=1)
        steps, maps = zip(*[self.move(word, state) for word in words], strict=True)
        self.weights = torch.stack(maps, dim=1).detach()  # (b, n, m), to look at
        return self.combine(torch.stack(steps, dim=1)).tanh()

    def features(self, source, lens, target):
        return self.decode(target, self.start(source, lens))

    def forward(self, source, lens, target):  # logits (b, n, target words)
        return self.output(self.features(source, lens, target))

    def step(self, tokens, state):  # logits of the word after `tokens` (b,)
        return self.output(self.decode(tokens[:, None], state)[:, 0])


# %% [markdown]
# With the same weights, our class should compute what the package's `cu.AttentionTranslator` computes.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
world = alignment.world_in("French")
vocabularies = world.source_vocab, world.target_vocab
sizes = len(world.source_vocab), len(world.target_vocab)


def encoded(pairs):
    """Pairs → one padded batch of ids."""
    english, french = vocabularies
    return collate([(english.encode(p.source), french.encode(p.target)) for p in pairs])


batch = encoded(world.test[:2])
mine = Bahdanau(*sizes, embed_dim=12, hidden_dim=16)
theirs = cu.AttentionTranslator(*sizes, embed_dim=12, hidden_dim=16, dropout=0.0)
theirs.load_state_dict(mine.state_dict())
cu.equal(mine, theirs, batch.source, batch.source_lens, batch.target_in)

# %% [markdown]
# ## Training it
#
# We train on the English and French sentences of the last chapter, for now with the French in its usual order.
# `cu.Trainer` is the loop of that chapter, with a schedule for the [learning rate](C_glossary.ipynb#learning-rate).

# %% tags=["nbval-ignore-output"]
hidden_dim = 64  # try 8 … 96
epochs = 8  # try 1 … 18


def train(model, world, measure=None):
    loader = world.loader(world.train)
    schedule = cu.warmup_decay(50, epochs * len(loader))
    trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=6e-3,
                         schedule=schedule, measure=measure, quiet=True)  # fmt: skip
    return trainer.fit(model, loader, world.loader(world.val, shuffle=False))


cu.seed_everything(0)
model = Bahdanau(*sizes, embed_dim=64, hidden_dim=hidden_dim)
history = train(model, world)
lines = [" ".join(pair.source) for pair in world.test]
french = cu.translate(model, lines, *vocabularies, max_len=20)
right = [a == " ".join(p.target) for a, p in zip(french, world.test, strict=True)]
print(f"exact-match accuracy on the test set: {sum(right) / len(right):.2f}")
pd.Series(cu.translate(model, FOUR, *vocabularies), FOUR, name="seen in training")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
history.plot(
    alt="Training and validation loss over the epochs. Both fall steeply at first; at the end the training loss is near 0 and the "
    "validation loss has become flat well above it."
)

# %% [markdown]
# The four short sentences come from the training set, while the 400 of the **test set** are new to the network.
# We score it by **exact-match accuracy**, the share of sentences with every word right.
#
# Your network trained for 8 epochs.
# In the table, the translator with attention trained for 18.
# The fixed context of the last chapter got 27, and more parameters as well.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
kinds = {"attention": "attention", "fixed": "fixed context, wider"}
runs = cu.stored_runs(
    "bahdanau_attention", "recurrent_translator", lowest="val_loss", order="French"
)
table = pd.DataFrame([run.config | run.result for run in runs])
columns = {"parameters": "parameters", "exact": "exact match",
           "exact_5": "4–5 tokens", "exact_7": "6–7", "exact_10": "8–10"}  # fmt: skip
compared = table.groupby("kind")[list(columns)].mean().loc[list(kinds)]
compared = compared.rename(index=kinds, columns=columns).round(2).rename_axis(None)
compared.astype({"parameters": int})

# %% [markdown]
# **With attention more than four sentences in five are exactly right, and with a fixed context about three in five.**
# The gap is widest for long sentences, which are also the rarest in training.
#
# ### Exercise 2 · Find the bug
#
# *bug · 8 minutes*
#
# By default `pack_padded_sequence` wants its sentences sorted, the longest first, and much code still sorts them, as this encoder does.
# Each sentence by itself is translated just as before.
# Look at what happens in a batch, find out why, and write `fixed_memory`.


# %%
def buggy_memory(encoder, x, lens):
    """Embedded (b, m, e), lengths (b,) → states (b, m, 2d), last states (b, 2d)."""
    order = lens.argsort(descending=True)
    packed = pack_padded_sequence(x[order], lens[order], batch_first=True)
    outputs, last = encoder(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    return memory, torch.cat([last[0], last[1]], dim=-1)


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
buggy = copy.copy(model)
buggy.read = lambda x, lens: buggy_memory(model.encoder, model.source_embedding(x), lens)
asked = [*FOUR, "we read the book ."]
alone = [cu.translate(buggy, [line], *vocabularies)[0] for line in asked]
batched = cu.translate(buggy, asked, *vocabularies, max_len=10)
pd.DataFrame({"alone": alone, "in a batch": batched}, index=asked)


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
# ## Where does it attend?
#
# Write any sentence you like, and two stored translators answer, one like this chapter's and the Transformer of [Start here](00_start_here.ipynb).
# Where do you expect *mange* to look, and where *s'il te plaît*?
# Decide first, then read the maps.
# A [perplexity](C_glossary.ipynb#perplexity) of 1.1 says that at each word a model is as unsure as if it had to choose among 1.1 equally likely ones.

# %%
sentence = "please eat a pizza ."  # try "please eat a pizza ." | "i'm home ."
cu.live.alignment(sentence)

# %% [markdown]
# ### Alignment error rate
#
# To grade such maps we link each French word to the English word with its largest weight, and call the links that we found $A$ and the gold links $S$.
# Then the **alignment error rate** is
#
# $$\mathrm{AER} = 1 - \frac{2\,|A\cap S|}{|A| + |S|}.$$
#
# For example, with the gold links 0-0, 1-1, 1-2, 2-3 (English-French), suppose we found 0-0, 1-1, 2-2, 2-3.
# Three links agree, so the rate is $1 - 6/8 = 0.25$.
#
# Such a number means something only next to baselines that don't read the words.
# The *diagonal* is the guess from the first screen, the *other diagonal* links the first word to the last, and *at random* each word is linked to any.
# The *best by position* knows from the gold links of the training set where the word at each position usually belongs.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We trained the translator on four word orders: French, backwards, alphabetical, and shuffled differently in each sentence. "
    "In which of them does it learn the least about the links?",
    ["backwards", "alphabetical", "shuffled"],
    answer="shuffled",
    wrong={
        "backwards": "It is far from the diagonal, that's true. But does the decoder know where to go on when it has said a word?",
        "alphabetical": "Neighbors no longer belong together. But think of the query: what does the decoder know about the word that comes next?",
    },
    why="The query is made before the word is said. If any word may come next, the decoder can't know what to look for.",
)


# %% tags=["hide-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
def rate(found, pairs):
    gold = [pair.alignment for pair in pairs]
    return alignment.alignment_error_rate([alignment.links_of(words) for words in found], gold)


guesses = {
    "at random": lambda pair: torch.rand(len(pair.target), len(pair.source)),
    "diagonal": alignment.diagonal,
    "other diagonal": lambda pair: alignment.diagonal(pair).flip(1),
}


def maps(model, pairs):
    """What each French word attends to while the right words are said: (target, source) weights."""
    batch = encoded(pairs).to(next(model.parameters()).device)
    with torch.no_grad():
        model(batch.source, batch.source_lens, batch.target_in)
    return [
        weights[: len(p.target), : len(p.source)].cpu()
        for weights, p in zip(model.weights, pairs, strict=True)
    ]


def networks(order):
    """Error rates of the trained networks, one for each seed."""
    name = "recurrent_translator" if order in ("French", "backwards") else "other_orders"
    options = {"kind": "attention", "lowest": "val_loss"} if name == "recurrent_translator" else {}
    runs = cu.stored_runs("bahdanau_attention", name, order=order, **options)
    return pd.Series([run.result["aer"] for run in runs])


cu.seed_everything(0)
orders = ("French", "backwards", "alphabetical", "shuffled")
rows = {}
for order in orders:
    train_set, test = (getattr(alignment.world_in(order), split) for split in ("train", "test"))
    by_order = guesses | {"best by position": alignment.best_by_position(train_set)}
    rows[order] = {name: rate(map(guess, test), test) for name, guess in by_order.items()}
    rows[order]["network"] = networks(order).mean()
alignments = pd.DataFrame(rows).T
alignments.round(2)

# %% [markdown]
# A low error in French word order proves little, because the baselines are as good as the network.
# In backwards French, the other diagonal does as well as the network, but nobody told the network which way to go.
# In alphabetical order, not even the best baseline gets far, and still the network finds about half of the links.
# Here it has *learned* more than positions.
# If they are shuffled, the network is no better than chance, because the decoder has to ask before it knows which word is next.
#
# ### Exercise 3 · An order of your own
#
# *build · 6 minutes*
#
# Now it's your turn to hide the links.
# Write a rule that gets the words of a French sentence and returns their positions, in the order in which you want them written.
# For example, backwards is `[3, 2, 1, 0]` for any four words.
# The same words should always get the same order.
# Will the translator find the links?
# Guess, then let the cell below train it for some ten seconds.


# %% tags=["exercise", "build"]
def my_order(words):
    """n words → their n positions, in the order in which to write them."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_order(my_order)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_order_solution(words):
    """The second half first, then the first."""
    half = len(words) // 2
    return [*range(half, len(words)), *range(half)]


cu.checks.my_order(my_order_solution)


# %% tags=["nbval-ignore-output"]
rule = cu.choose(my_order, alignment.second_half_first)
yours = alignment.world_in(rule)
cu.seed_everything(0)
solver = Bahdanau(*sizes, embed_dim=64, hidden_dim=hidden_dim)
rates = [rate(maps(solver, yours.test), yours.test)]
watched = train(solver, yours, lambda m: {"rate": rate(maps(m, yours.test), yours.test)})
rates += [row["rate"] for row in watched.rows]
explorer.show_learned(rule, rates, maps(solver, yours.test))

# %% [markdown]
# If your rule makes the next word hard to predict, the dots stay out of their frames.
#
# ## Was the attention needed?
#
# A map shows where a word has looked, but did it have to?
# Take the French negation, *ne … pas*, which is wrapped around the verb, with both words linked to *didn't* or *don't*.
# For one word at a time we set all keys to zero at its step.
# All scores are then equal, and the word's context is the **plain average** of the encoder's states.
# How probable is the right word then?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "In French word order, which of the two words can do without its attention?",
    ["ne", "pas", "neither"],
    answer="pas",
    wrong={
        "ne": "How does the decoder know that a negation comes at all, if it can't look for “didn't”?",
        "neither": "Read a French sentence from left to right. Which of the two can you guess from the words before it?",
    },
    why="When “ne” and the verb have been said, our grammar has nothing but “pas”.",
)

# %% tags=["hide-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
every = cu.stored_runs(
    "bahdanau_attention", "recurrent_translator", lowest="val_loss", kind="attention"
)
means = (
    pd.DataFrame([run.config | run.result for run in every])
    .groupby("order")
    .mean(numeric_only=True)
)
places = {
    ("French", "ne"): "ne, which comes first",
    ("French", "pas"): "pas, which comes second",
    ("backwards", "pas"): "backwards: pas, which comes first",
    ("backwards", "ne"): "backwards: ne, which comes second",
}
needed = pd.DataFrame(
    {
        name: [means.loc[order, f"{context}_{word}"] for context in ("chosen", "plain")]
        for (order, word), name in places.items()
    },
    index=["its own context", "the plain average"],
).T
unsaid = pd.DataFrame(
    [run.config | run.result for run in cu.stored_runs("bahdanau_attention", "unsaid")]
)
alone = unsaid.groupby(["order", "word"])["plain, unsaid"].mean()
needed["plain average, and the other word hidden"] = [
    alone.get(place, float("nan")) for place in places
]
needed.round(2).astype(object).fillna("")

# %% [markdown]
# In French word order *pas* loses nothing with the plain average, presumably because *ne* has been said.
# The last column tests this.
# If we hide *ne* from the decoder, *pas* falls to 0.51 with the plain average, and to 0.56 even with its own attention.
# So *pas* follows from *ne*.
# In backwards French the roles are swapped: *pas* comes first and needs its attention, and *ne* mostly follows from *pas*.
# So **what a word needs from its attention depends on what has been said**, and that differs from order to order.
#
# Often, but not always, a map shows the word that a linguist would link ([Koehn and Knowles, 2017](https://arxiv.org/abs/1706.03872)).
# And where a plain average would do, the largest weight tells us little.
# [Jain and Wallace (2019)](https://arxiv.org/abs/1902.10186) found other weights with the same output, and [Wiegreffe and Pinter (2019)](https://arxiv.org/abs/1908.04626) answered that one should first check whether equal weights would do just as well.

# %% jupyter={"source_hidden": true}
cu.quiz("bahdanau_attention", "diagonal", "pas")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("By hand the context is 0.97.", given=toy_query == 0.5):
    assert abs(context.item() - 0.97) < 5e-3
with cu.guard("The sentence of the first screen has the median error, and six of eight words hit."):
    backwards = cu.stored_run("bahdanau_attention", "learning", order="backwards")
    shown = backwards.examples[-1]["maps"][0]
    gold = frozenset((source, target) for source, target in shown["links"])
    found = alignment.links_of(torch.tensor(shown["weights"]))
    assert len(found & gold) == 6 and len(found) == 8
    error = alignment.alignment_error_rate([found], [gold])
    assert abs(error - backwards.result["median"]) < 1e-3
with cu.guard("With attention more sentences are right than with a fixed context, at each length."):
    for key in ("exact", "exact_5", "exact_7", "exact_10"):
        grouped = table.groupby("kind")[key]
        assert grouped.min()["attention"] > grouped.max().drop("attention").max()
with cu.guard("Attention is ahead at each rate that both had, and no best rate is the last of its list."):  # fmt: skip
    tried = cu.stored_runs("bahdanau_attention", "recurrent_translator", order="French")
    tried = pd.DataFrame([run.config | run.result for run in tried])
    by_rate = tried.groupby(["kind", "rate"])["exact"].mean().unstack("kind").dropna(subset="fixed")
    assert len(by_rate) == 3 and (by_rate["attention"] > by_rate["fixed"] + 0.03).all()
    for kind in ("attention", "fixed"):  # the best rate is not at an end
        losses = tried[tried["kind"] == kind].groupby("rate")["val_loss"].mean()
        assert losses.index.min() < losses.idxmin() < losses.index.max()
with cu.guard("The score of the highest state rises, and the middle one falls fastest.", given=toy_query == 0.5 and wanted == 1.5):  # fmt: skip
    low, middle, high = gradient.tolist()
    assert high < 0 < low < middle and torch.allclose(gradient, by_formula)
with cu.guard(
    "The network aligns as well as the diagonal in French and as the other one backwards, better than any guess by position in alphabetical order, and like chance in shuffled sentences."
):
    ahead = alignments[["diagonal", "other diagonal"]].min(axis=1) - alignments["network"]
    assert ahead[["French", "backwards"]].abs().max() < 0.06
    assert (
        alignments.loc["alphabetical"].drop("network").min() > networks("alphabetical").max() + 0.05
    )
    assert alignments.loc["shuffled", "network"] > alignments.loc["shuffled", "at random"] - 0.05
with cu.guard("With the plain average pas loses nothing in French, but it does backwards."):
    lost = needed["its own context"] - needed["the plain average"]
    assert lost[places["French", "pas"]] < 0.02
    assert min(lost[places["backwards", "pas"]], lost[places["French", "ne"]]) > 0.2
with cu.guard("In every network the second half of a negation follows from the first."):
    assert (unsaid["plain, said"] - unsaid["plain, unsaid"] > 0.3).all()
    assert (unsaid[unsaid["word"] == "ne"]["plain, unsaid"] < 0.4).all()

# %% [markdown]
# ## Take-aways
#
# - Each word gets a context of its own, where the decoder's previous state is the query and the encoder's states are keys and values.
#   The loss raises the scores of states that lie in the direction in which it wants to move the context.
# - Here the network learns to align if the decoder can predict which word comes next.
#   How well it aligns, only a comparison with baselines can tell.
# - What a word needs from its attention depends on what has been said, and where a plain average would do, the weights say little.
#
# <details><summary>How sure is this?</summary>
#
# All networks here are small, and a grammar made their short sentences.
# Each row in the table of translators is the mean of three seeds at its best learning rate.
# We tried four rates for attention and three for the fixed context, and chose on the validation set.
# The sentence on the first screen has the median error among the long test sentences, and the list there has a better and a worse one.
# For each of the three other word orders we trained three networks at one rate.
# Of the three for the backwards order, the first screen shows the worst (the two others have errors of 0.22 and 0.18).
# In alphabetical order the errors are 0.48, 0.48, and 0.38, and the full stop comes first in 299 of 400 sentences.
# We hid *ne* or *pas* from the decoder in the 35 sentences with *ne* (not *n'*).
# In backwards French, the plain average costs *ne* a probability of 0.23, 0.11, and 0.01 in the three networks.
# Part of it goes to pronouns, and part to words that can't occur in a negation at all.
# Even a perfect map that gives each French word one link has an error above 0, because many gold links share a word.
#
# </details>

# %% [markdown] tags=["next"]
# Next: [Self-attention](07_self_attention.ipynb), where the words of one sentence attend to each other.
# The further page, [Bahdanau attention: relatives and details](06_bahdanau_attention_further.ipynb), repeats experiments from two lectures, and goes on to real sentences.

# %% [markdown]
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
# - Wiegreffe, S. and Pinter, Y. (2019).
#   [Attention is not not explanation](https://arxiv.org/abs/1908.04626).
#   EMNLP.
#   The answer to Jain and Wallace, with equal weights as a baseline.
