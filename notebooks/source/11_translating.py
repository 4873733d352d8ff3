# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Translating
#
# The Transformer reads an English sentence and the beginning of a French one, and gives a probability to each word that may come next.
# A translation is a whole sentence.
# **How do we get from the next word to the best sentence, and what does each word cost?**
# Three steps of a trained translator for *i'm home .*:
#
# ```
# je      0.90        je suis    0.95        je suis chez    0.97        …
# j'ai    0.08        je bois    0.01        je suis moi     0.01
# ```
#
# After this chapter you can
#
# - train a Transformer to translate, and compare it with the translator of chapter 06 without deceiving yourself;
# - write beam search, say when it helps, and tell an error of the search from an error of the model;
# - write a decoder that keeps its keys and values, and count what this saves;
# - look at attention by layer and head, and measure what can be read off it.
#
# It needs [The Transformer](10_transformer.ipynb): the model, its masks and teacher forcing; and from [Bahdanau attention](06_bahdanau_attention.ipynb) the translator with which we compare, and the alignment error rate.

# %%
import math

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils import decoding
from course_utils.data.text import BOS, EOS
from course_utils.data.translation import collate
from course_utils.lessons.bahdanau_attention import alignment
from course_utils.lessons.self_attention.layers import waits
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, larger_world, small_world
from course_utils.lessons.translating import beams

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("transformer", "bahdanau_attention", "sequence_to_sequence")

# %% [markdown]
# ## Training it
#
# Data, loss and loop are those of [Bahdanau attention](06_bahdanau_attention.ipynb#Training-it), and so the results can be compared: the small world's sentences, cross-entropy over the real target tokens, nine epochs, a rate that rises over 50 steps and falls to zero.
# New is the model: `cu.Transformer`, equal to what you wrote in the last chapter, 64 wide, with 4 heads, 2 + 2 layers, the norm first, and no dropout.
# In training the decoder reads the whole right sentence at once (**teacher forcing**), and the causal mask hides what it has to say.
# By hand, with $d$ = 64 and $m$ = `ffn_dim`: six attentions of $4(d^2 + d)$, four networks of $2dm + m + d$, twelve norms of $2d$, two embeddings, and an output layer of $(d + 1)$ numbers for each French word.

# %%
world = small_world("fr")
vocabularies = world.source_vocab, world.target_vocab
sizes = len(world.source_vocab), len(world.target_vocab)
ffn_dim = 64  # try 32 … 128
epochs = 9  # try 1 … 9


def new_model(seed):
    cu.seed_everything(seed)
    return cu.Transformer(*sizes, embed_dim=64, num_heads=4, ffn_dim=ffn_dim,
                          num_layers=2, dropout=0.0)  # fmt: skip


def train(model, seed, lr=7e-3, epochs=epochs):
    loader = world.loader(world.train, seed=seed)
    schedule = cu.warmup_decay(50, epochs * len(loader))
    trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=lr,
                         schedule=schedule, seed=seed, quiet=True)  # fmt: skip
    return trainer.fit(model, loader, world.loader(world.val, shuffle=False))


model = new_model(0)
counted = 6 * 4 * (64**2 + 64) + 4 * (2 * 64 * ffn_dim + ffn_dim + 64) + 12 * 2 * 64
counted += 64 * sum(sizes) + 65 * sizes[1]
batch = next(iter(world.loader(world.train)))
cu.before_training(model, batch, cu.translation_loss(), expected=counted, lr=7e-3)

# %% tags=["nbval-ignore-output"]
history = train(model, 0)
history.plot()


# %% tags=["nbval-ignore-output"]
def score(model, pairs):
    """BLEU and the share of exact translations, greedily."""
    lines = cu.translate(model, [" ".join(p.source) for p in pairs],
                         *vocabularies, max_len=20)  # fmt: skip
    right = [" ".join(pair.target) for pair in pairs]
    hits = [a == b for a, b in zip(lines, right, strict=True)]
    return cu.bleu(lines, right), sum(hits) / len(hits), hits


print("test sentences: BLEU {:.2f}, exact {:.2f}".format(*score(model, world.test)))
pd.DataFrame({"French": cu.translate(model, FOUR, *vocabularies)}, index=FOUR)

# %% [markdown]
# The parameters are as counted by hand, and the first loss is near $\ln 570 = 6.35$.
# The four sentences **are in the training data**; that they are right says nothing about translating.
# The 400 test sentences are not: of them 0.86 to 0.89 are right in the stored runs of three seeds.
#
# ### Against the recurrent translator
#
# The translator of [Bahdanau attention](06_bahdanau_attention.ipynb) reads and writes with a GRU and looks back once for each word.
# Both have the same sentences and batches, nine epochs, nearly as many parameters, and three seeds.
# Each has one rate, 0.009 there and 0.007 here, and no dropout; they were not tuned against each other.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which of the two has more of the 400 test sentences right after nine epochs, in three seeds each?",
    ["the Transformer, in each seed", "the recurrent one, in each seed", "it depends on the seed"],
    answer="the Transformer, in each seed",
    wrong={
        "the recurrent one, in each seed": "It passes all that it has read through one state after another. Does that learn faster?",
        "it depends on the seed": "Seeds do move both by some points. After nine epochs the difference is larger.",
    },
    why="In three seeds it has 0.86 to 0.89 of them right, the recurrent one 0.71 to 0.79; trained longer, the latter comes close.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
ours = [run.config | run.result for run in cu.stored_runs("translating", "translator")]
theirs = cu.stored_runs("bahdanau_attention", "nine_passes")
theirs = [run.config | run.result for run in theirs]
longer = cu.stored_runs("translating", "recurrent_for_longer")
both = pd.DataFrame([{"model": "Transformer"} | run for run in ours]
                    + [{"model": "recurrent"} | run for run in theirs]
                    + [{"model": "recurrent, longer"} | run.result for run in longer])  # fmt: skip
columns = {"train_loss": "training loss", "val_loss": "validation loss", "bleu": "BLEU",
           "exact": "exactly right", "exact_5": "4–5 tokens", "exact_10": "8–10 tokens"}  # fmt: skip
ends = both.groupby("model", sort=False)[list(columns)].agg(["min", "max"])
compared = pd.DataFrame(
    {"parameters": both.groupby("model", sort=False)["parameters"].first().map("{:,.0f}".format)}
    | {name: [f"{low:.2f} – {high:.2f}" for low, high in ends[key].to_numpy()]
       for key, name in columns.items()}
)  # fmt: skip
compared.T

# %% [markdown]
# **After nine epochs**, in each seed, the Transformer has more of the unread sentences right.
# Most of this is the budget: with dropout 0.2 and 18 epochs (last column) the recurrent one has 0.82 to 0.85 of them right.
# The Transformer was not given both.
# So the table says which learns faster here, not which is better, and not *why*: the two differ in many things at once.
#
# ### What waits for what
#
# Why do people train Transformers, then?
# [Self-attention](07_self_attention_further.ipynb) counted the matrix products that **wait for each other**: however many processors there are, these are computed one after the other.
# Here are both translators in the same unit, for sentences of $n$ source and $n$ target tokens.
# In training all words of the target are known; in translating each word waits for the one before.

# %%
n = 40  # try 5 … 60
kinds = {"recurrent": beams.recurrent(sizes), "Transformer": new_model(0)}
waiting = {(name, length): waits(each, length)
           for name, each in kinds.items() for length in (10, 20, n)}  # fmt: skip
waiting = pd.DataFrame(waiting, index=["training", "translating"]).T.unstack()
waiting

# %% [markdown]
# In training, the Transformer has 29 waiting products at every length; the recurrent model has 53 for 10 tokens and 203 for 40, five more for each token.
# So with enough processors, a longer sentence need not take a Transformer longer.
# With few processors less is gained: what does not wait still has to be computed.
#
# In translating it is the other way round.
# The recurrent model's steps waited already: its numbers stay.
# Each word of the Transformer waits for the one before *and* goes through all layers, 21 products for each: 848 for 40 words, four times as many as the recurrent one.

# %% jupyter={"source_hidden": true}
cu.quiz("translating", "waiting")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After nine epochs the Transformer has more right in each seed; with 18 and dropout the recurrent one gains."
):
    exact = both.groupby("model")["exact"].agg(["min", "max"])
    assert exact.loc["Transformer", "min"] > exact.loc["recurrent", "max"]
    assert exact.loc["recurrent, longer", "min"] > exact.loc["recurrent", "max"]

with cu.guard(
    "In training a Transformer's waiting products do not grow with the length; in writing they do."
):
    assert waiting["training"].loc["Transformer"].nunique() == 1
    assert (
        waiting["translating"].loc["Transformer"] > 4 * waiting["translating"].loc["recurrent"]
    ).all()

# %% [markdown]
# ## The best sentence
#
# The network gives probabilities for the *next* word.
# The probability of a sentence is the product of those of its words, `<eos>` included.
# **Greedy decoding**, as in [Sequence to sequence](05_sequence_to_sequence.ipynb#Word-by-word), takes the most probable word at each step.
# That need not lead to the most probable sentence.
# Here is a language of four words.
# After A the model is undecided, after B it is sure:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    S  S  S  S  S  S
    A  A  A  B  B  E
    AC AD AE BC BE .
    """,
    nodes={
        "S": cu.Box("<bos>"),
        "A": cu.Box("A: 0.5", color="wash"),
        "B": cu.Box("B: 0.4", color="wash"),
        "E": cu.Box("end: 0.1"),
        "AC": cu.Box("A C", shape="0.5 · 0.4 = 0.20", color="wash"),
        "AD": cu.Box("A D", shape="0.5 · 0.35 = 0.175"),
        "AE": cu.Box("A end", shape="0.5 · 0.25 = 0.125"),
        "BC": cu.Box("B C", shape="0.4 · 0.9 = 0.36", color="value"),
        "BE": cu.Box("B end", shape="0.4 · 0.1 = 0.04"),
    },
    arrows=[cu.Arrow("S", "A", color="query"), "S -> B", "S -> E",
            cu.Arrow("A", "AC", color="query"), "A -> AD", "A -> AE", "B -> BC", "B -> BE"],
    alt="A tree of beginnings. A has 0.5, B 0.4, the end 0.1. Below A: A C 0.20, A D 0.175, A end 0.125. Below B: B C 0.36 "
    "and B end 0.04. A colored path leads from the root over A to A C. Marked are A and B, then A C and, best, B C.",
    gap=(14, 30),
)  # fmt: skip

# %% [markdown]
# Greedy decoding goes the colored way and ends with 0.20.
# A **beam** of size 2 keeps the two best beginnings (colored), whatever they begin with: A and B, then "B C" and "A C".
# It finds 0.36.
# Keeping all beginnings would find the best sentence for sure, but with 1,000 words there are $1000^t$ of them after $t$ steps.
#
# ### Exercise 1 · A beam on paper
#
# *predict · 8 minutes*
#
# The first word is E with 0.4, F with 0.35, G with 0.25.
# After E: X 0.4, Y 0.35, end 0.25.
# After F: X 0.5, Y 0.3, end 0.2.
# After G always X. After X and Y always the end.
# Which probability has (a) the sentence of greedy decoding; (b) that of a beam of two; (c) the best sentence of all? (d) A beam of three runs for five steps, `<eos>` included.
# For how many beginnings does the model compute next words in all? (e) A sentence with $n = 6$ tokens (`<eos>` included) has log-probability $-1.9$.
# Ranked by $\log p\,/\,\big((5+n)/6\big)^{1}$, which number does it get?


# %% tags=["exercise", "predict"]
def predicted_beams():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [0.1, 0.1, 0.1, 10, -1.0]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_beams(predicted_beams)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_beams_solution():
    """E X; F X, since the beam keeps E and F; G X, which has lost G; 1 + 4 · 3; −1.9 / (11/6)."""
    return [0.4 * 0.4, 0.35 * 0.5, 0.25, 13, -1.9 / (11 / 6)]


cu.checks.predicted_beams(predicted_beams_solution)

# %% [markdown]
# A beam, too, can lose the best sentence, as (c) shows.
# The last question is about a second difficulty: each word makes the product smaller, so plain probabilities prefer short sentences.
# [Wu et al. (2016)](https://arxiv.org/abs/1609.08144) divide the log-probability of a finished sentence of $n$ tokens by $\big((5+n)/6\big)^{\lambda}$, the **length penalty**.
# [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) set $\lambda = 0.6$, and so does the search below.
#
# ### Exercise 2 · Grow the beams
#
# *build · 10 minutes*
#
# One step: each beam may go on with each word.
# Give the `size` best continuations of all of them together.
# The search below uses your function.
# In it, `next_word(prefixes, rows)` gives the log-probabilities of the next word for each beginning; `rows` says from which beam each goes on, which only section 3 needs.


# %% tags=["exercise", "build"]
def my_grow(scores, log_p, size):
    """scores (beams,), log_p (beams, words) → scores, rows, words, (size,) each.

    rows says which beam each goes on from, words what it adds; the best come first.
    """
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_grow(my_grow)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_grow_solution(scores, log_p, size):
    """Place p of the flattened table is beam p // V and word p % V."""
    total = scores[:, None] + log_p
    best, picked = total.flatten().topk(size)
    return best, picked // log_p.shape[1], picked % log_p.shape[1]


cu.checks.my_grow(my_grow_solution)

# %%
grow = cu.choose(my_grow, beams.grow)


@torch.no_grad()
def beam_search(next_word, size, max_len=20, penalty=0.6):
    """The best finished sentence, as ids, and its ranking."""
    prefixes, scores = torch.tensor([[BOS]]), torch.zeros(1)
    rows, best, finished = torch.tensor([0]), -math.inf, []
    for n in range(1, max_len + 1):
        log_p = next_word(prefixes, rows)  # (beams, words), for each beginning
        ended = (scores + log_p[:, EOS]) / ((5 + n) / 6) ** penalty
        if ended.max() > best:  # the best sentence that has ended so far
            best, finished = ended.max().item(), prefixes[ended.argmax(), 1:].tolist()
        log_p[:, EOS] = -math.inf  # the others go on
        scores, rows, words = grow(scores, log_p, size)
        prefixes = torch.cat([prefixes[rows], words[:, None]], dim=1)
        if best >= scores[0] / ((5 + max_len) / 6) ** penalty:
            break  # scores only fall: no beginning can overtake it
    return finished, best


# %%
@torch.no_grad()
def greedy(next_word, max_len=20):
    """The most probable word at each step, until `<eos>`."""
    prefix, alone = torch.tensor([[BOS]]), torch.tensor([0])
    while prefix.shape[1] <= max_len:
        word = next_word(prefix, alone).argmax(dim=-1)
        if word == EOS:
            break
        prefix = torch.cat([prefix, word[:, None]], dim=1)
    return prefix[0, 1:].tolist()


first_a = 0.5  # try 0.1 … 0.55
tree = beams.undecided(first_a)
print("greedy:", tree.sentence(greedy(tree)))
for size in (1, 2):
    found, log_of = beam_search(tree, size, penalty=0)
    print(f"beam of {size}: {tree.sentence(found)}, probability {math.exp(log_of):.3f}")


# %%
class Recomputing:
    """The next word, from all words so far: (beams, t) → log-probabilities."""

    def __init__(self, model, source, source_lens):
        self.model, self.source, self.source_lens = model, source, source_lens

    def __call__(self, prefixes, rows):
        source = self.source.expand(len(prefixes), -1)
        source_lens = self.source_lens.expand(len(prefixes))
        return beams.speakable(self.model(source, source_lens, prefixes)[:, -1])


# %%
mine_too = "i'm home ."  # try "i'm home ." | "go ." | "the old woman is sleeping ."
translator, larger = beams.stored_translator(), larger_world()
words_of = larger.source_vocab, larger.target_vocab
lines = [" ".join(pair.source) for pair in larger.test]
some, same, decoders = [mine_too, *lines[:29]], 0, (cu.greedy, decoding.beam_search)
for line in some:
    asked = beams.asked(line, words_of[0])
    mine = Recomputing(translator, *asked)
    said_both = greedy(mine), beam_search(mine, 4)[0]
    package = [decode(translator, *asked, max_len=20)[0] for decode in decoders]
    same += list(said_both) == package
    if line in some[:4]:
        print(line, *(" ".join(words_of[1].decode(i)) for i in said_both), sep="\n   ")
print(f"greedy and beam of 4: the package's words in {same} of {len(some)} sentences")

# %% [markdown]
# In the language of four words, greedy decoding ends with 0.20, and a beam of two finds 0.36.
# (A beam of one is not quite greedy decoding: it may remember a sentence that has ended, and go on.)
#
# Then real words.
# You have trained one translator; from here on we use a stored one, so that we all see the same sentences.
# It is that of [Start here](00_start_here.ipynb): the same class and size, trained on 14,000 sentences of the grammar and a hundred everyday ones, with 500 others of the grammar for the test.
# `Recomputing` makes a next-word function of any model: it runs the whole decoder over the whole beginning, for all beams at once.
# Below each sentence stand its greedy translation and that of a beam.
# Both are word for word those of the package, which we may use from now on: it takes many sentences at once.
#
# ### Whose error?
#
# Does a beam translate better?
# The stored Transformers of section 1, with several beams, on the 400 test sentences.
# *Tokens* is the mean length of a translation; that of the right ones is 5.84.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
settings = {"greedy": "1", "beam of 2": "2", "beam of 4": "4", "beam of 8": "8",
            "beam of 4, no penalty": "4, 0", "beam of 4, λ = 1.2": "4, 1.2"}  # fmt: skip
beam_runs = pd.DataFrame([run.result for run in cu.stored_runs("translating", "translator")])
rows_of = {"BLEU": ("bleu", 3), "exactly right": ("exact", 3),
           "tokens": ("tokens", 2), "mean log-probability": ("log_p", 2)}  # fmt: skip
beam_table = pd.DataFrame(
    {
        title: [" / ".join(f"{value:.{digits}f}" for value in beam_runs[f"{key}, {setting}"])
                for setting in settings.values()]
        for title, (key, digits) in rows_of.items()
    },
    index=list(settings),
)  # fmt: skip
beam_table.rename_axis("seeds 0 / 1 / 2")

# %% [markdown]
# Little.
# A beam of two or more gets at most two sentences more right, and from four on nothing changes.
# In seed 1 BLEU rises by two points all the same: there greedy translations are too long, 5.90 tokens, and those of a beam are not.
# The length penalty hardly matters here.
#
# So where do the wrong translations come from?
# There are two suspects.
# In a **search error** decoding has missed a sentence that the model gives a *higher* probability.
# We can see those where the missed sentence is the right one.
# In a **model error** the model gives its own wrong sentence the higher one: no search can repair that.
# To decide, ask the model for both probabilities (with teacher forcing, in one pass).


# %%
@torch.no_grad()
def log_p(model, pairs, said, vocabularies=vocabularies):
    """Log-probability of each translation (lists of words), `<eos>` included."""
    english, french = vocabularies
    batch = collate([(english.encode(pair.source), french.encode(words))
                     for pair, words in zip(pairs, said, strict=True)])  # fmt: skip
    logits = model.eval()(batch.source, batch.source_lens, batch.target_in)
    each = logits.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]
    real = torch.arange(each.shape[1]) < batch.target_lens[:, None]
    return (each * real).sum(dim=1)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The stored translator gets 107 of 500 test sentences wrong with greedy decoding. In how many of these does it give the right "
    "translation a higher probability than its own?",
    (0, 107),
    answer=9,
    wrong={
        "less": "Greedy decoding does miss some: after a bad word there is no way back.",
        "more": "Then a beam would repair many of them. Look at the table again.",
    },
    why="In nine. In the other 98 the model itself prefers its wrong sentence.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
right = [list(pair.target) for pair in larger.test]
errors_of, failing = {}, {}
for size in (1, 4):
    said = [line.split() for line in cu.translate(translator, lines, *words_of,
                                                  beam_size=size, max_len=20)]  # fmt: skip
    gap = (log_p(translator, larger.test, right, words_of)
           - log_p(translator, larger.test, said, words_of))  # fmt: skip
    wrong = [i for i in range(len(lines)) if said[i] != right[i]]
    search = [i for i in wrong if gap[i] > 0]
    name = "greedy" if size == 1 else "beam of 4"
    errors_of[name], failing[name] = [len(wrong), len(search)], set(wrong)
    for i in search[:3]:
        print(f"{lines[i]}\n   says  {' '.join(said[i])}\n   right {' '.join(right[i])}, "
              f"{math.exp(gap[i]):.1f} times as probable")  # fmt: skip
for name, other in (("greedy", "beam of 4"), ("beam of 4", "greedy")):
    errors_of[name].append(len(failing[name] - failing[other]))
kinds_of_errors = [
    "wrong",
    "of these, the right one is likelier",
    "of these, right in the other column",
]
pd.DataFrame(errors_of, index=kinds_of_errors)

# %% [markdown]
# Of 107 wrong translations 9 are such search errors; with a beam of 4 no such case is left, and 8 of these sentences become right.
# But 3 others that were right become wrong, since the model gives another sentence a still higher probability, and so 102 are wrong.
# The 98 model errors stay: more data or a better model may help, a larger beam does not.
# (A search can also be *too* good.
# On real sentences large beams were found to translate worse than small ones, mostly because their output was too short: [Koehn and Knowles, 2017](https://arxiv.org/abs/1706.03872).)

# %% jupyter={"source_hidden": true}
cu.quiz("translating", "whose_error")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Most wrong translations of the stored translator are model errors; with a beam of 4 the right one is never likelier."
):
    assert errors_of["greedy"] == [107, 9, 8]
    assert errors_of["beam of 4"] == [102, 0, 3]

# %% [markdown]
# ## The cache
#
# `Recomputing` runs the decoder over the whole beginning for each new word.
# But the mask is causal: what stands at an earlier place depends on earlier words only.
# So its keys and values in each layer are the same at every step.
# **Keep them**, and word $t$ needs one query, one new key and one new value.
# Drawn for one beam, with $S$ source tokens; this is the **[KV cache](C_glossary.ipynb#kv-cache)**.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x    .     K     V     mem
    q    kv    .     .     kvs
    self self  self  self  .
    cross cross cross cross cross
    ffn  .     .     .     .
    """,
    nodes={
        "x": cu.Cells(1, 4, "newest word", shape="(1, d)", color="query"),
        "q": cu.Box("query"),
        "kv": cu.Box("key, value"),
        "K": cu.Cells(3, 4, "kept keys", shape="(t − 1, d)", color="key"),
        "V": cu.Cells(3, 4, "kept values", color="value"),
        "mem": cu.Cells(4, 4, "memory", shape="(S, d)", color="line"),
        "kvs": cu.Box("keys, values: once"),
        "self": cu.Box("self-attention: one query, t keys"),
        "cross": cu.Box("cross-attention: one query, S keys"),
        "ffn": cu.Box("position-wise network"),
    },
    arrows=["x -> q -> self -> cross -> ffn", "x -> kv -> self", "K -> self", "V -> self", "mem -> kvs -> cross"],
    alt="The newest word gives a query, and a key and a value that join those kept. Self-attention: one query and t keys. Then "
    "cross-attention with keys and values of the memory, computed once, and the position-wise network.",
    gap=(20, 26),
)  # fmt: skip

# %% [markdown]
# Here is a decoder that keeps them.
# `rows` says from which beam each new beam goes on, and what is kept has to follow.
# `self_attention_norm`, `cross_attention_norm` and `feed_forward_norm` are the layer's norms, which stand before.
# No causal mask is needed: nothing later is there to be hidden.


# %%
class Caching(nn.Module):
    """The next word, from the newest word and the keys and values of those before."""

    def __init__(self, model, source, source_lens, newest=beams.newest):
        super().__init__()
        memory, self.mask = model.encode(source, source_lens)
        self.source = [self.project(n.cross_attention, memory) for n in model.decoder]
        self.kept = [[] for _ in model.decoder]  # the target's, by layer
        self.model, self.newest = model, newest

    def project(self, attention, x):
        """Keys and values of each head: (beams, heads, t, head_dim)."""
        projected = attention.key_proj(x), attention.value_proj(x)
        return [cu.split_heads(each, attention.num_heads) for each in projected]

    def attend(self, attention, x, keys, values, mask=None):
        """Queries from x; keys and values are there already."""
        queries = cu.split_heads(attention.query_proj(x), attention.num_heads)
        mixed = cu.scaled_dot_product_attention(queries, keys, values, mask)
        return attention.out_proj(cu.merge_heads(mixed))

    def one_layer(self, x, rows, layer, kept, source):
        """A decoder layer for the newest word (beams, 1, d); `kept` grows."""

        def look_back(x):
            new = self.project(layer.self_attention, x)
            if kept:
                new = [torch.cat([old[rows], one], dim=2)
                       for old, one in zip(kept, new, strict=True)]  # fmt: skip
            kept[:] = new
            return self.attend(layer.self_attention, x, *kept)

        def look_across(x):
            return self.attend(layer.cross_attention, x, *source, self.mask)

        x = x + look_back(layer.self_attention_norm(x))
        x = x + look_across(layer.cross_attention_norm(x))
        return x + layer.feed_forward(layer.feed_forward_norm(x))

    def forward(self, prefixes, rows):
        """Ids (beams, t) → log-probabilities of the next word (beams, words)."""
        x = self.newest(self.model, prefixes)  # (beams, 1, d)
        for each in zip(self.model.decoder, self.kept, self.source, strict=True):
            x = self.one_layer(x, rows, *each)
        return beams.speakable(self.model.output(self.model.decoder_norm(x)[:, 0]))


# %% [markdown]
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# The first line of the call needs the newest word's embedding with its position.
# A colleague writes it as below.
# No error is raised, training is untouched, and the first word of every translation is right.
# But after it, 9 of 30 sentences change.
# Find the mistake, and write `fixed_newest`.


# %%
def buggy_newest(model, prefixes):
    """Ids (beams, t) of all words so far → the newest one's vector (beams, 1, d)."""
    newest = prefixes[:, -1:]
    return model.embed(model.target_embedding, newest, len(newest) - 1)


unlike = []
for line in some:
    sent = beams.asked(line, words_of[0])
    good, bad = (greedy(Caching(translator, *sent, newest=each))
                 for each in (beams.newest, buggy_newest))  # fmt: skip
    if good != bad:
        unlike.append(f"{line}\n   {' '.join(words_of[1].decode(bad))}")
print(*unlike[:3], f"{len(unlike)} of {len(some)} sentences change", sep="\n")


# %% tags=["exercise", "bug"]
def fixed_newest(model, prefixes):
    """Ids (beams, t) of all words so far → the newest one's vector (beams, 1, d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_newest(fixed_newest)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_newest_solution(model, prefixes):
    """len counts beams, the first axis; the word's position is counted along the second."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.shape[1] - 1)


cu.checks.fixed_newest(fixed_newest_solution)

# %% [markdown]
# Such a mistake is invisible in training, where the whole target goes through at once.
# What finds it: the log-probabilities of one step after another against those of one pass with teacher forcing.
# Our decoder, with your function if it has passed, for three sentences of five words; then against the package's steps:

# %%
newest = cu.choose(fixed_newest, beams.newest)
home = beams.asked("i'm home .", words_of[0])
three = "je suis chez moi .", "il est chez lui .", "où est ma soeur ?"
french = torch.tensor([[BOS, *words_of[1].encode(line.split())] for line in three])
thrice = home[0].expand(3, -1), home[1].expand(3)  # the same source for each


def at_once(ids):
    return beams.speakable(translator(*thrice, ids))[..., EOS:]


def one_by_one(ids):
    caching, rows = Caching(translator, *home, newest=newest), torch.arange(3)
    each = [caching(ids[:, :t], rows)[:, EOS:] for t in range(1, 7)]
    return torch.stack(each, dim=1)


def by_the_package(ids):
    state = translator.start(*thrice)
    each = [beams.speakable(translator.step(word, state))[:, EOS:] for word in ids.T]
    return torch.stack(each, dim=1)


cu.equal(one_by_one, at_once, french)
cu.equal(one_by_one, by_the_package, french)

# %% [markdown]
# ### What it saves
#
# Multiplications of one decoder layer for word $t$, with $S$ source tokens whose keys and values are computed beforehand in all three cases:
#
# | | projections and network | attention |
# |---|---|---|
# | recompute all words | $t\,(6d^2 + 2dm)$ | $2t^2d + 2tSd$ |
# | keep each layer's *inputs* | $(6d^2 + 2dm) + 2(t-1)d^2$ | $2td + 2Sd$ |
# | keep keys and values | $6d^2 + 2dm$ | $2td + 2Sd$ |
#
# ($6d^2$: query, key, value and output of self-attention, query and output of cross-attention.)
# The second row is a widely copied decoder ([Zhang et al., 2023](https://d2l.ai), section 11.7): it keeps half as many numbers, and projects all of them to keys and values again at each step.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At the size of the original base model (d = 512, m = 2048, 20 source tokens): how many times as much as with kept keys and values does word 500 cost with kept inputs?",
    (0, 600),
    answer=63,
    wrong={
        "less": "2(t − 1)d² is 262 million. What is everything else?",
        "more": "Only the two projections of the earlier words are done again, not their queries, networks or attention.",
        500: "So many times as much costs computing everything again.",
    },
    why="266 million against 4.2 million. Everything again would be 2,101 million, 500 times as much.",
    within=15,
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
d, m, S = 512, 2048, 20  # the original base model
place = torch.arange(1, 1025).double()
one_word = 6 * d**2 + 2 * d * m
cost = {
    "recompute all words": place * one_word + 2 * place**2 * d + 2 * place * S * d,
    "keep inputs": one_word + 2 * (place - 1) * d**2 + 2 * place * d + 2 * S * d,
    "keep keys and values": one_word + 2 * place * d + 2 * S * d,
}
found_counts = []
for each in (Recomputing(translator, *home), Caching(translator, *home)):
    steps = [cu.multiply_adds(each, torch.full((1, t), 9), torch.tensor([0])) for t in range(1, 21)]
    found_counts.append(steps)
for t in (1, 2, 10, 20):
    print(
        f"word {t:2}: Recomputing {found_counts[0][t - 1]:9,}, Caching {found_counts[1][t - 1]:9,}"
    )
cu.show_curves(
    place, cost, xlabel="Word t", ylabel="Multiplications per layer", logx=True, logy=True, width=6.4, height=3.0,
    alt="Cost of word t on log axes, three curves that begin at one point. Recomputing grows in proportion to t and then "
    "faster, keeping inputs grows from some words on, keeping keys and values stays almost flat.",
)  # fmt: skip

# %% [markdown]
# The lines of text count a step of our two functions with the stored translator, output layer included, and for `Recomputing` the encoder.
# With the cache a step grows by 256 multiplications for each word, $2d$ in each of two layers; without it, word 20 costs 22 times as much (the encoder, which `Recomputing` runs each time, included; 20 times without it).
#
# The picture draws the formulas of the table for the base model.
# At word 500 kept keys and values cost 4.2 million multiplications, kept inputs 266 million, recomputing 2,101 million.
# The lowest curve still rises: one query meets all keys so far.
# And it is paid for in memory, $2td$ numbers per layer and beam.
# [GPT](13_gpt.ipynb) writes longer texts, and pays more of it.

# %% jupyter={"source_hidden": true}
cu.quiz("translating", "cached_step")

# %% [markdown]
# ## Looking inside
#
# The translator has four heads in each of two layers, of three kinds: encoder, decoder and cross-attention.
# Here are the eight maps of the cross-attention for a test sentence whose words change their order, under teacher forcing, drawn without `<eos>` and each row made to sum to 1 again.
# Row $t$ is the step that *says* French word $t$; it has *read* the word before.
# Below them, it is live: write any sentence, and look at all three kinds of map, step by step.
# There a row names the words *read* and *said*.
# The framed row is the chosen step, the bars are the likeliest next words.
# Move the step first, then change layer and head.
# Choose a number of its table: query and key show how it is computed.
# A beam is drawn as a tree.
# *Trained for* goes back: after 100 of 618 steps *oscar is at the market .* becomes *oscar est à l'école .*
# ([Bahdanau attention](06_bahdanau_attention.ipynb#Where-does-it-attend?) has its map beside that of the recurrent translator.)


# %%
@torch.no_grad()
def cross_maps(model, pairs, vocabularies=vocabularies):
    """For each pair (layers, heads, target words + 1, source words)."""
    english, french = vocabularies
    batch = collate([(english.encode(p.source), french.encode(p.target))
                     for p in pairs])  # fmt: skip
    with cu.record_attention(model.eval()) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    cross = torch.stack([maps[name] for name in maps if "cross" in name], dim=1)
    found = []
    for pair, weights in zip(pairs, cross, strict=True):
        words = weights[..., : len(pair.target) + 1, : len(pair.source)]
        found.append(words / words.sum(dim=-1, keepdim=True))
    return found


cu.show_heatmaps(
    cross_maps(translator, larger.test[1:2], words_of)[0][:, :, :-1], xlabel="",
    queries=larger.test[1].target, keys=larger.test[1].source, ylabel="",
    titles=[f"layer {i}, head {head}" for i in (0, 1) for head in range(4)],
    width=8.8, height=5.6, alt="Eight different maps of French over English words",
)  # fmt: skip

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.translator("i'm home .", True)

# %% [markdown]
# One sentence, eight different maps.
# Head 1 of layer 1 goes from *eat* to *a* to *pizza* and then looks at *please* for *, s'il te*, and also for the full stop.
# Head 0 of the same layer looks at the full stop for *te*.
# For *plaît* both give much of their weight to `<eos>`, which is not drawn here: 0.52 and 0.90.
# The live translator draws it: choose the second example there.
# (Its weights are rounded to 8 bits.)
# In layer 0, head 1 says *mange* while looking at *please*.
# There, the bars stay when you change the head, and the lines differ.
#
# ### Measured
#
# One sentence proves nothing.
# So we count, as in [Bahdanau attention](06_bahdanau_attention.ipynb#Alignment-error-rate): links by the same two rules, against the gold links of the 400 test sentences, for three seeds of the chapter's network, of the recurrent one, and two guesses.
# *One row down* takes for each word the row of the next step, in which the word is read, not said.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
guesses = {
    "diagonal guess": [alignment.diagonal(pair) for pair in world.test],
    "equal weights": [torch.ones(len(p.target), len(p.source)) for p in world.test],
}
runs_of = pd.DataFrame(ours)
shown = {
    "mean of all heads": "{}, says",
    "mean of the heads of layer 0": "{}, 0, says",
    "mean of the heads of layer 1": "{}, 1, says",
    "the best head on validation": "{}, head",
    "mean of all heads, one row down": "{}, reads",
}
aer = {
    name: [
        f"{runs_of[key].min():.2f} – {runs_of[key].max():.2f}"
        for key in (form.format("aer"), form.format("aer_crossed"))
    ]
    for name, form in shown.items()
}
before = pd.DataFrame(theirs)[["aer", "aer_crossed"]]
aer["recurrent, additive attention"] = [
    f"{before[key].min():.2f} – {before[key].max():.2f}" for key in before
]
aer |= {
    name: [f"{value:.2f}" for value in alignment.errors(found, world.test)]
    for name, found in guesses.items()
}
alignment_table = pd.DataFrame(aer, index=["AER", "AER, links cross"]).T
alignment_table

# %% [markdown]
# The *mean* over all eight heads aligns words: AER 0.12 to 0.16, below the recurrent model's 0.16 to 0.21 and the diagonal's 0.26.
# (Where links cross, the ranges overlap: 0.19 to 0.25, and 0.24 to 0.26.
# And this is a mean of eight maps against one.)
# One head alone is weaker, even the best one, chosen on other sentences: 0.23 to 0.25 is hardly better than the diagonal guess.
# It stands in layer 0 in two seeds and in layer 1 in one.
# So do not speak of "the alignment head" after one map.
#
# The last row is a warning: the same maps, labelled one row off, have 0.81 to 0.87, like equal weights.
# Before you read a map of a decoder, find out whether a row has the name of the word that is read, or of the word that is said, as in the eight maps.
#
# ### Exercise 4 · An explanation to test
#
# *open · 6 minutes*
#
# "The Transformer learns faster than the recurrent model because any two words are a single step apart."
# This sounds right, and nothing on this page shows it.
# Which experiment would?
# Say what you change, what stays equal, what you measure over how many seeds, and which result would refute the sentence.

# %% jupyter={"source_hidden": true}
cu.quiz("translating", "which_row")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three seeds the mean of all heads aligns better than the diagonal and the recurrent model."
):
    assert runs_of["aer, says"].max() < pd.DataFrame(theirs)["aer"].min()
    assert runs_of["aer, says"].max() < alignment.errors(guesses["diagonal guess"], world.test)[0]
    assert (runs_of["aer, says"] < runs_of["aer, head"]).all()
    assert runs_of["layer"].nunique() > 1
    assert runs_of["aer, reads"].min() > 0.8

# %% [markdown]
# ## Take-aways
#
# - Sentences that were read say nothing.
#   On unread ones the Transformer is ahead of the recurrent translator after nine epochs; trained longer, with dropout, the latter comes close.
# - In training, its waiting products do not grow with the length; in translating each word waits, and goes through all layers.
# - Greedy decoding can miss a more probable sentence, and so can a beam.
#   Ask the model for both probabilities: most errors here are the model's, and no search repairs them.
# - A cache of keys and values gives the same words, and each further word makes a step dearer by $2d$ multiplications a layer, not by all of the work before.
#   What finds its mistakes is the comparison with teacher forcing.
# - One head alone aligns less well than the mean over all heads, and the rows of a map have to be labelled by what is said.
#
# On real sentences: [further page](11_translating_further.ipynb).
# Next: [Training transformers](12_training_transformers.ipynb): where the norm stands, why the rate starts small, and trainings that fail.
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("translating")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
# - Koehn, P. and Knowles, R. (2017).
#   [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872).
#   Workshop on Neural Machine Translation.
#   Section 3.6: beams that are too large.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 6.1: a beam of 4, and 0.6 for the length penalty.
# - Wu, Y. et al. (2016).
#   [Google's neural machine translation system: bridging the gap between human and machine translation](https://arxiv.org/abs/1609.08144).
#   Section 7: the length penalty.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into deep learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.7: a decoder that keeps inputs.
