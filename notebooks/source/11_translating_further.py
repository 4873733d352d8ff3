# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Translating: cache, maps and real sentences
#
# This page goes on where [Translating](11_translating.ipynb) stops.
# We let a decoder keep its keys and values, look at the maps of all heads, rebuild a lecture's own translator, and train the same class on real sentences.
# You can read each section by itself.

# %%
import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.lessons.sequence_to_sequence.small_world import larger_world
from course_utils.lessons.translating import beams, real_sentences

cu.seed_everything(0)

# %% [markdown]
# ## The cache
#
# The search of the chapter runs the whole decoder over the whole beginning for each new word.
# Does it have to?
# The mask is causal, so a vector at an earlier position depends only on earlier words, and its keys and values are the same at every step.
# If we **keep them**, word $t$ needs one query, one new key, and one new value.
# This is the **[KV cache](C_glossary.ipynb#kv-cache)**, drawn here for one beam and $S$ source tokens.

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
# Here is a decoder with a cache, as one class.
# `rows` says from which beam each beam goes on, because its keys and values have to follow.
# We don't need a causal mask, because there are no later words to hide.


# %%
translator, larger = beams.stored_translator(), larger_world()
words_of = larger.source_vocab, larger.target_vocab


class Caching(nn.Module):
    """The next word, from the newest word and the keys and values of those before."""

    def __init__(self, model, source, source_lens, newest=beams.newest):
        super().__init__()
        memory, self.mask = model.encode(source, source_lens)
        self.source = [self.project(layer.cross_attention, memory) for layer in model.decoder]
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

    def look_back(self, x, rows, layer, kept):
        """Self-attention of the newest word (beams, 1, d); `kept` grows by its key and value."""
        new = self.project(layer.self_attention, x)
        if kept:
            new = [torch.cat([old[rows], each], dim=2)
                   for old, each in zip(kept, new, strict=True)]  # fmt: skip
        kept[:] = new
        return self.attend(layer.self_attention, x, *kept)

    def forward(self, prefixes, rows):
        """Ids (beams, t) → log-probabilities of the next word (beams, words)."""
        x = self.newest(self.model, prefixes)  # (beams, 1, d)
        for layer, kept, source in zip(self.model.decoder, self.kept, self.source, strict=True):
            x = x + self.look_back(layer.self_attention_norm(x), rows, layer, kept)
            y = layer.cross_attention_norm(x)
            x = x + self.attend(layer.cross_attention, y, *source, self.mask)
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
        return beams.speakable(self.model.output(self.model.decoder_norm(x)[:, 0]))


@torch.no_grad()
def greedy(line, newest=beams.newest, max_len=20):
    """The French of an English line, the most probable word at each step, on a cache."""
    decoder = Caching(translator, *beams.asked(line, words_of[0]), newest=newest)
    prefix, rows = torch.tensor([[BOS]]), torch.tensor([0])
    while prefix.shape[1] <= max_len:
        word = decoder(prefix, rows).argmax(dim=-1)
        if word == EOS:
            break
        prefix = torch.cat([prefix, word[:, None]], dim=1)
    return " ".join(words_of[1].decode(prefix[0, 1:].tolist()))


# %% [markdown]
# ### Exercise 1 · Find the bug
#
# *bug · 12 minutes*
#
# The first line of `forward` needs the newest word's embedding at its position.
# Here is a version of it.
# No error is raised, training doesn't notice, and the first word of every translation is right.
# But the words after it aren't.
# Find the mistake, and write `fixed_newest`.


# %%
def buggy_newest(model, prefixes):
    """Ids (beams, t) of all words so far → the newest one's vector (beams, 1, d)."""
    newest = prefixes[:, -1:]
    return model.embed(model.target_embedding, newest, len(newest) - 1)


lines = [" ".join(pair.source) for pair in larger.test[:30]]
good, bad = ([greedy(line, newest) for line in lines] for newest in (beams.newest, buggy_newest))
changed = [i for i in range(30) if good[i] != bad[i]]
for i in changed[:3]:
    print(f"{lines[i]}\n   {good[i]}\n   {bad[i]}")
print(len(changed), "of 30 sentences change")


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
# How do you notice such a bug?
# Compare the log-probabilities that you get step by step with the ones that a single forward pass with teacher forcing gives.
# The next cell does so for three beams of five words, with your function if it has passed.

# %%
newest = cu.choose(fixed_newest, beams.newest)
home = beams.asked("i'm home .", words_of[0])
three = "je suis chez moi .", "il est chez lui .", "où est ma soeur ?"
french = torch.tensor([[BOS, *words_of[1].encode(line.split())] for line in three])


def at_once(ids):
    source = home[0].expand(3, -1), home[1].expand(3)  # the same for each beam
    return beams.speakable(translator(*source, ids))[..., EOS:]


def one_by_one(ids):
    decoder, rows = Caching(translator, *home, newest=newest), torch.arange(3)
    return torch.stack([decoder(ids[:, :t], rows)[:, EOS:] for t in range(1, 7)], dim=1)


cu.equal(one_by_one, at_once, french)
grown = Caching(translator, *home)
costs = [cu.multiply_adds(grown, torch.full((1, t), 9), torch.tensor([0])) for t in (1, 2, 3)]
print("multiplications for words 1, 2 and 3:", *(f"{cost:,}" for cost in costs))

# %% [markdown]
# The words are the same, and a step costs only 256 multiplications more than the step before.
# That is $2d$ in each of two layers, because one query meets one more key and one more value.
# The price is memory, $2td$ numbers for each layer and beam.
# [GPT](13_gpt.ipynb#Writing) writes longer texts on a cache.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With the bug many sentences change, and with the cache each step costs 256 more."):
    assert 5 < len(changed) < 15
    assert costs[1] - costs[0] == costs[2] - costs[1] == 256

# %% [markdown]
# ## All heads of one sentence
#
# A Transformer has three kinds of attention, and ours has two layers of four heads of each kind.
# Here are all 24 maps for one test sentence whose words change their order.
# First the encoder: which English words does each English word look at?


# %%
SENTENCE = "she has a red car ."  # try "she has a red car ." | "please eat a pizza ."
pair = beams.pair_of(SENTENCE, translator, larger)
batch = beams.batch_of([pair], words_of)
with torch.no_grad(), cu.record_attention(translator) as maps:
    translator(batch.source, batch.source_lens, batch.target_in)
english, says = [*pair.source, "<eos>"], [*pair.target, "<eos>"]
reads = ["<bos>", *pair.target]


def show_heads(kind, queries, keys, alt):
    layers = torch.stack([maps[name][0] for name in maps if name.endswith(kind)])
    titles = [f"layer {i}, head {head}" for i in (0, 1) for head in range(4)]
    picture = cu.show_heatmaps(layers, queries=queries, keys=keys, titles=titles, xlabel="",
                               ylabel="", width=9.0, height=5.6, alt=alt)  # fmt: skip
    for ax in picture.figure.axes:
        ax.tick_params(axis="x", rotation=60)
    return picture


show_heads(".attention", english, english, alt="Eight different maps of English over English words")

# %% [markdown]
# No two heads are alike.
# In layer 0, head 1 looks from *a* and *red* to their noun, so it is one of the [two roads to an article](11_translating.ipynb#Two-roads-to-an-article).
# Next comes the decoder's look back at the words that it has read so far.
# Each row is named after the word that the model says at this step, and the columns are the words that it has read, so the mask hides everything after the diagonal.

# %%
show_heads(
    "self_attention", says, reads,
    alt="Eight maps of French words over the French read so far. All are empty above the diagonal.",
)  # fmt: skip

# %% [markdown]
# The first step has read nothing but `<bos>`, so all of its weight is there, whatever the head.
# And here is the cross-attention, where French looks at English.

# %%
show_heads(
    "cross_attention", says, english, alt="Eight different maps of French over English words"
)

# %% [markdown]
# Some heads look at the word that is being translated, others at the next noun or at the end.
# Before you tell a story about one of them, [forbid it and see](11_translating.ipynb#What-a-word-needs:-attention-weights-or-forbidding?).
# You can draw the same maps for your own sentences with [the chapter's live translator](11_translating.ipynb#What-a-word-needs:-attention-weights-or-forbidding?).

# %% [markdown]
# ## Four sentences of a lecture
#
# A widely used lecture ([Zhang et al., 2023](https://d2l.ai), section 11.7) trains a Transformer of 2 + 2 layers, 256 wide with four heads, on the first 512 pairs of the archive.
# After 30 epochs it translates four sentences and gives each a BLEU score.
# We trained it at this size with three seeds.
# Is this a good translator?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
lecture = cu.stored_runs("translating", "lecture")
pd.DataFrame(
    {
        "English": [row["English"] for row in lecture[0].examples],
        **{
            f"seed {run.config['seed']}": [
                f"{row['said']} ({row['bleu']:.3g})" for row in run.examples
            ]
            for run in lecture
        },
        "line of the archive": [row["line"] or "not there" for row in lecture[0].examples],
    }
).set_index("English")

# %% [markdown]
# Three of the four are right with each seed.
# The model has **read** these three in training, 30 times each, as lines 1, 50, and 350 of the archive.
# It hasn't read *He's calm*, which never comes out quite right.
# The four scores are the lecture's to the digit (by [its formula](05_sequence_to_sequence_further.ipynb)).
# So what looks like a good translator may be a good memory, a model that **overfits**.
# That is why we test it on sentences that it hasn't read, made of words that it knows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
tested = [(int(run.result["unread_right"]), int(run.result["unread"])) for run in lecture]
print(*(f"seed {seed}: {hits} of {count} test sentences right" for seed, (hits, count) in enumerate(tested)), sep="\n")  # fmt: skip

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Of the four sentences those are right that were read, with each seed."):
    scores = [[row["bleu"] for row in run.examples] for run in lecture]
    assert [1, 1, 0.658, 1] in scores
    for run in lecture:
        assert [row["line"] for row in run.examples] == [1, 50, 0, 350]
        assert [row["bleu"] == 1 for row in run.examples] == [True, True, False, True]
with cu.guard("At most one in ten test sentences is right."):
    assert all(hits <= 0.1 * count for hits, count in tested)

# %% [markdown]
# ## Real sentences
#
# What does the same class make of sentences that people wrote?
# The pairs are from [Tatoeba](https://tatoeba.org), as paired by [manythings.org](https://www.manythings.org/anki/) (CC BY 2.0 FR), with at most ten tokens on either side.
# We hold out 500 English sentences for the test and 500 for validation, **with all their translations**, so no English sentence is in two parts.
# The model reads 40,000 of the other pairs, eight times.
#
# The model is the chapter's, with 192 features, a dropout of 0.2 and label smoothing of 0.1.
# The embedding of a French word also serves as its row in the output layer (**weight tying**).
# Words that occur only once are read as `<unk>`, which the model never says.
#
# What should it beat?
# Our **baseline** doesn't learn at all.
# It looks up the training sentence that has most in common with the source, where rare words count more, and says its French.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "BLEU on the 500 test sentences, in hundredths, against all their translations: the look-up has 17. What has the Transformer, with a beam of 4?",
    (0, 100),
    answer=40,
    wrong={
        "less": "The look-up says whole sentences that somebody else wrote. Which n-grams of the wanted sentence does it miss?",
        "more": "On the grammar's sentences it has more than 90. What do people write that a grammar does not?",
    },
    why="40. With one seed, once: how far another seed would move it is not measured.",
    within=8,
)

# %%
words = real_sentences.real_run("words")
memory = cu.stored_runs("translating", "translation_memory")[0].result
result = words.result
scored = ["", "_all"]  # against one translation, against all
reached = pd.DataFrame(
    {
        "look-up": [memory[f"test_bleu{one}"] for one in scored],
        "Transformer, greedily": [result[f"test_bleu{one}"] for one in scored],
        "Transformer, beam of 4": [result[f"test_bleu_beam{one}"] for one in scored],
    },
    index=["one translation", "all translations"],
).T
about = f"{result['parameters']:,.0f} parameters, trained on {words.date} by"
print(about, words.machine)
(100 * reached).round(1)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
real_sentences.show_real_curves()

# %% [markdown]
# BLEU and loss still improve in the eighth epoch.
# From the fourth epoch on the training loss is below the validation loss, because the model begins to know its own sentences better than others.
#
# Compare the two columns of the table.
# The output is the same, but BLEU is higher against all the translations in the archive than against a single one.
# So a BLEU score says little unless we know the references and the tokens.
# And here a beam pays off, although it changed little on [the chapter's sentences](11_translating.ipynb#Whose-error?).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Once, on real sentences: far above the look-up, and a beam of 4 pays off."):
    assert reached.loc["Transformer, greedily"].min() > 2 * reached.loc["look-up"].max()
    assert result["test_bleu_beam"] > result["test_bleu"]
    assert result["test_bleu_beam_all"] >= 0.38

# %% [markdown]
# ### What it says
#
# The table has the first twelve test sentences, well translated or not.
# Each has its own BLEU, of single words and pairs, against all its references.

# %%
looked_up = cu.stored_runs("translating", "translation_memory")[0].examples
table = [
    {
        "English": one["source"],
        "beam of 4": one["beam"],
        "BLEU": round(cu.bleu([one["beam"]], [one["references"]], max_order=2), 2),
        "a right answer": one["references"][0],
        "look-up": old["said"],
    }
    for one, old in zip(words.examples, looked_up, strict=True)
]
pd.set_option("display.max_colwidth", 60)
pd.DataFrame(table)

# %% [markdown]
# Two translations are exactly right.
# A French reader accepts two more, *j'aimerais pouvoir t'aider* and *quelqu'un m'a dit ça*, for which BLEU gives 0.55 and 0.00.
# BLEU also gives 0.71 for *vivre n'est pas facile*, which has lost the word *here*.
# The score counts common words and pairs, but not what they mean.
# So it is a poor judge of single sentences, although over 500 of them such errors partly cancel.
#
# The model makes several kinds of errors.
# In *my mother is active*, the mother becomes *puissant*, which means powerful and is masculine.
# *Tom n'aime pas nous* isn't French, although greedy decoding finds *tom ne nous aime pas*, which is right.
# *In all probability* has a word that the model knows only as `<unk>`, so it says something fluent about eyes, and nothing in the output warns the reader.
# The look-up makes no errors of grammar, but it answers other questions, as in *parlez-moi !*

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A right translation has 0.00, and one that lost a word more than 0.6."):
    scores = {row["beam of 4"]: row["BLEU"] for row in table}
    assert scores["quelqu'un m'a dit ça ."] == 0
    assert scores["vivre n'est pas facile ."] > 0.6
    assert sum(row["BLEU"] == 1 for row in table) == 2

# %% [markdown]
# ## Words or pieces?
#
# About one test sentence in seven has a word that the model reads as `<unk>`.
# With **subwords** this doesn't happen, because rare words are read and said in pieces ([Sennrich et al., 2016](https://arxiv.org/abs/1508.07909)).
# [GPT](13_gpt_further.ipynb#Pieces-of-words) shows how to find the pieces.
# We trained the same model on the same pairs for the same number of steps, with up to 4,000 pieces for each language.
# In the table, *one* and *all* are the translations that BLEU compares with.

# %%
pieces = real_sentences.real_run("subwords")
versus = pd.DataFrame(
    {
        name: {
            "parameters": f"{run.result['parameters']:,.0f}",
            "French tokens read": f"{run.result['target_tokens']:,.0f}",
            "test sentences with <unk>": f"{run.result['unknown']:.0f}",
            "BLEU, greedily, one": f"{100 * run.result['test_bleu']:.1f}",
            "BLEU, beam, all": f"{100 * run.result['test_bleu_beam_all']:.1f}",
            "exact-match accuracy": f"{run.result['exact']:.2f}",
            "minutes": f"{run.result['training_seconds'] / 60:.0f}",
        }
        for name, run in (("words", words), ("subwords", pieces))
    }
)
versus

# %%
some = [1, 3, 6, 9]
pd.DataFrame(
    [{"English": words.examples[i]["source"], "words": words.examples[i]["beam"],
      "subwords": pieces.examples[i]["beam"]} for i in some]
)  # fmt: skip

# %% [markdown]
# Now no sentence has an unknown word, but each has more tokens.
# In these two runs subwords don't pay off: BLEU with a beam is two points lower, which says little with a single seed each.
# Subwords do bring *here* back, and *in all probability* is now about the time of an arrival.
# But subwords also allow an error that a model of words can't make: *acacacacle* isn't a word at all.
# A language without spaces, such as Chinese, leaves only pieces or letters, and `load_pairs` cuts [pairs of your own](06_bahdanau_attention_further.ipynb#Pairs-of-your-own) into either.
#
# Don't take this as a rule.
# Both models still improve in the eighth epoch, the model with subwords has fewer parameters because its two tables are smaller, we didn't tune the 4,000 pieces, and the sentences are short and everyday.
# We can't compare the two losses, because their tokens differ (with [bits per character](13_gpt_further.ipynb#Bits-per-character) we could).
# The minutes are upper bounds, because other work ran on the processor at the same time.

# %% [markdown] tags=["next"]
# Back to the chapter: [Translating](11_translating.ipynb).
# Next: [Training transformers](12_training_transformers.ipynb).

# %% [markdown]
# ### At full size
#
# The paper's base model has 6 + 6 layers of 512 features, 8 heads, and 2,048 inside.
# Where there is a GPU, `make gpu CHAPTER=11` trains it for 20 epochs on all pairs of at most ten tokens, and then `cu.stored_run("translating", "transformer_on_all_pairs")` has its losses, its BLEU, and forty of its translations.
# On an H200 a step takes 54 ms, and for most of it the GPU waits for Python, which starts one small computation at a time, so the run takes less than half an hour.
# Nobody has made the whole run yet, so we can't say how much it gains over the small ones above.

# %% [markdown]
# ## References
#
# - Papineni, K., Roukos, S., Ward, T. and Zhu, W.-J.
#   (2002).
#   [BLEU: a method for automatic evaluation of machine translation](https://aclanthology.org/P02-1040/).
#   ACL.
# - Sennrich, R., Haddow, B. and Birch, A. (2016).
#   [Neural machine translation of rare words with subword units](https://arxiv.org/abs/1508.07909).
#   ACL.
