# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # GPT: pieces of words, bits and the nucleus
#
# This page goes on from [GPT](13_gpt.ipynb).
# You can read each section by itself, so take what interests you.

# %% jupyter={"source_hidden": true}
import math
import random
from collections import Counter

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import course_utils as cu
from course_utils.data.prose import Subwords, load_english, load_story
from course_utils.data.text import UNK
from course_utils.lessons.gpt import ngrams, repeats, text_runs, training

cu.seed_everything(0)

# %% [markdown]
# ## Pieces of words
#
# The chapter reads characters, which makes texts long.
# With one token for each word they'd be short, but a new word would have no token at all.
# **Subwords** are a compromise, in which frequent words stay whole and rare words fall into pieces.
# **[Byte-pair encoding](C_glossary.ipynb#byte-pair-encoding)** ([Sennrich et al., 2016](https://arxiv.org/abs/1508.07909)) finds the pieces by counting.
# We begin with characters and an end mark `␣` after each word, and then do one thing again and again: *count all pairs of neighbors and **merge** the most frequent pair.*
#
# For example, take a text that has *play* 6 times, *played* 4, *lay* 3, *stay* 5 and *stayed* 2 times.
#
# | pair | occurs in | count |
# |---|---|---|
# | `a y` | all five | 6 + 4 + 3 + 5 + 2 = 20 |
# | `y ␣` | play, lay, stay | 6 + 3 + 5 = 14 |
# | `l a` | play, played, lay | 6 + 4 + 3 = 13 |
# | `p l` | play, played | 6 + 4 = 10 |
#
# The first merge makes `ay`.
# Now `ay ␣` has 14 and comes next, followed by `p l` and `s t`.
# So `ay␣` is an ending, while `ay` is a stem that can go on.
# A **tokenizer** is the list of these merges, and to cut a new word we apply them *in this order*.

# %%
five = ["play"] * 6 + ["played"] * 4 + ["lay"] * 3 + ["stay"] * 5 + ["stayed"] * 2
print("merges of the five words:", Subwords(five, size=100).merges[:4])

sentences = load_english()
random.Random(0).shuffle(sentences)
val_set, train_set = sentences[:1000], sentences[1000:]
vocab_size = 512  # try 128 | 256 | 512 | 800
subwords = Subwords(train_set, size=vocab_size)
print(*subwords.pieces("she walked to the overparameterized bakery ."))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
words = Counter(" ".join(train_set).split())
story = " ".join(load_story()).split()
letters = set("".join(words))
cuts = {
    "characters": (len(letters) + 1, lambda word: len(word) + 1, lambda word: set(word) - letters),
    "subwords": (
        len(subwords),
        lambda word: len(subwords.pieces(word)),
        lambda word: set(word) - letters,
    ),
    "words": (len(words), lambda word: 1, lambda word: word not in words),
}
test_words = " ".join(val_set).split()
pd.DataFrame(
    {
        name: {
            "vocabulary": f"{size:,}",
            "tokens per word": f"{sum(map(number, test_words)) / len(test_words):.2f}",
            "unknown words of a story": f"{sum(map(bool, map(unknown, story))) / len(story):.0%}",
        }
        for name, (size, number, unknown) in cuts.items()
    }
).T

# %% [markdown]
# `Subwords` learns its merges with the library `tokenizers`, and the first line shows the merges of our example.
# With 512 subwords a text is a third as long as with characters, and hardly a word of a new story is unknown.
#
# ### Exercise 1 · Encode a word
#
# *build · 11 minutes*
#
# Cutting a new word takes ten lines.
# Begin with the characters and the end mark, and apply each merge wherever its pair occurs, from left to right.
# Don't look for the longest pieces, which is another algorithm.


# %% tags=["exercise", "build"]
def encode_word(word, merges):
    """The pieces of `word` (without an end mark) under `merges`, a list of pairs."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.encode_word(encode_word)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def encode_word_solution(word, merges):
    """Each merge goes along the list once; what it has made stands at the same position."""
    pieces = [*word, "␣"]
    for left, right in merges:
        place = 0
        while place < len(pieces) - 1:
            if (pieces[place], pieces[place + 1]) == (left, right):
                pieces[place : place + 2] = [left + right]
            place += 1
    return pieces


cu.checks.encode_word(encode_word_solution)

# %%
encode = cu.choose(encode_word, training.encode_word)
size = vocab_size
asked = sorted(Counter(" ".join(sentences).split()))[::5]
same = sum(encode(word, subwords.merges) == subwords.pieces(word) for word in asked)
print(f"{len(subwords.merges)} merges; as the library in {same} of {len(asked)} words")
print(encode("overparameterized", subwords.merges))

# %% [markdown]
# Your function should agree with the library in all of them.
# Here is a GPT that reads and writes such pieces.
# It is the chapter's class after 1,200 steps on our sentences.
# The bars show the probabilities from which each token is drawn.
# Write with the temperature at both ends, and then with top-k.
# Then forbid *wants*, and compare what the same seed writes.

# %% jupyter={"source_hidden": true}
cu.live.gpt("she wants to", 0.7, 1)

# %% [markdown]
# ## Bytes instead of characters
#
# The pieces above begin with the characters of the training text, and any other character is unknown.
# GPT-2 begins with *bytes* instead ([Radford et al., 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)), because in UTF-8 every text of every script is a row of bytes, and there are only 256 of them.
# The merges are found as before, but there are no end marks.
# A space belongs to the word that follows it, and no merge crosses from one word to the next.
# The next table shows what both kinds of pieces make of five texts.

# %%
by_bytes = Tokenizer(models.BPE())
by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
by_bytes.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
options = {"initial_alphabet": alphabet, "show_progress": False}
trainer = trainers.BpeTrainer(vocab_size=size, **options)
by_bytes.train_from_iterator(sentences, trainer)
print(by_bytes.encode("she drinks tea").tokens)  # "Ġ" is the space

texts = ["she drinks tea .", "a naïve café", "¿qué?", "你好", "🙂"]
table = {}
for text in texts:
    ours, theirs = subwords.encode(text), by_bytes.encode(text)
    table[text] = {
        "characters": len(text),
        "bytes": len(text.encode()),
        "our pieces": len(ours),
        "of them unknown": ours.count(UNK),
        "byte-level pieces": len(theirs.ids),
        "comes back whole": by_bytes.decode(theirs.ids) == text,
    }
comes_back = pd.DataFrame(table).T
comes_back

# %% [markdown]
# Byte-level pieces give back every text, even in a script that the training text never had.
# But a Chinese character takes three bytes and an emoji four, so such texts become long.
#
# BERT's **WordPiece** ([Wu et al., 2016](https://arxiv.org/abs/1609.08144)) is a near relative.
# It merges the pair that raises the probability of the training text most, and cuts a new word by taking the longest known piece again and again.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Byte-level pieces give back each text; ours have unknown ones in some."):
    assert comes_back["comes back whole"].all()
    assert comes_back["of them unknown"].astype(int).sum() > 0

# %% [markdown]
# ## Bits per character
#
# We can't compare perplexities of different tokens, because a character is easier to guess than a word.
# But all tokenizers cut the *same text*, so we can divide its whole log-likelihood by something they share, the number of characters.
# If we also divide by $\ln 2$, we get **bits per character**.
# We compare n-grams of characters and of subwords, with [modified Kneser–Ney smoothing](13_gpt.ipynb#What-counting-knows), each with its best n on the same validation text.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which tokens will have the smallest perplexity, and which the fewest bits per character?",
    ["characters, characters", "characters, subwords", "subwords, subwords"],
    answer="characters, subwords",
    wrong={
        "characters, characters": "How often does each model have to choose in the same text?",
        "subwords, subwords": "Among how many tokens does a model of characters choose, at most?",
    },
    why="Characters choose among few tokens each time, but must choose much more often.",
)

# %%
share = 4  # try 4 | 8
compared = ngrams.compare(sentences[::share], sizes=(128, 512, 1024))
compared.round(2)

# %% [markdown]
# By perplexity the characters look best by far, but in bits per character all four are nearly alike, with the 1,024 subwords a little ahead.
# Many choices among few tokens cost about as much as few choices among many, and only a common unit shows it.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Characters have the smallest perplexity, and in bits per character all are nearly alike."
):
    assert compared["perplexity"].idxmin() == "characters"
    bits = compared["bits per character"]
    assert bits.idxmin() == "1024 subwords" and bits.max() - bits.min() < 0.1

# %% [markdown]
# ## The nucleus
#
# In [the chapter](13_gpt.ipynb#Writing) we cut the tail of unlikely tokens.
# A fixed $k$ is too large where the model is sure and too small where it is not, so **top-p** or **nucleus sampling** ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751)) keeps the smallest set of best tokens whose probabilities sum to at least $p$.
# For example, if one token has 0.93, it is the whole nucleus of $p = 0.9$, while top-8 would let in seven tokens that have almost no probability.
#
# ### Exercise 2 · The nucleus
#
# *build · 15 minutes*
#
# Write a function that takes probabilities (…, tokens) in any order, and gives new ones in the same order that sum to 1.


# %% tags=["exercise", "build"]
def nucleus_probs(probs, p):
    """(…, tokens) → the same shape: the smallest set with p, normalized again."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.nucleus_probs(nucleus_probs)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def nucleus_probs_solution(probs, p):
    """A token is kept if those before it, from the best on, do not reach p yet."""
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


cu.checks.nucleus_probs(nucleus_probs_solution)

# %% [markdown]
# ## What each part is good for
#
# To see which part of a GPT helps, and how much, we train a GPT of subwords again with fewer parts, from a single head up.
# The first two models have only attention between the embedding and the output.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Attention alone between embedding and output. After 400 steps at the learning rate 0.01 four heads have a larger validation loss than one head, in three seeds. And after 400 steps at 0.03?",
    ["four heads are better", "one head stays better", "both are alike"],
    answer="four heads are better",
    wrong={
        "one head stays better": "Has the comparison shown what four heads can do, or how fast they learn at this rate?",
        "both are alike": "Several questions a token can say more than one. Does a larger rate let them learn it in time?",
    },
    why="2.3 against 2.5: what looked useless had too small a rate.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
counted_all = cu.stored_run("gpt", "kneser_ney").result
bigrams, best_counting = counted_all["2"], min(counted_all.values())
by_rate = pd.DataFrame(run.config | run.result for run in cu.stored_runs("gpt", "heads_by_rate"))
ladder = pd.DataFrame(run.config | run.result for run in cu.stored_runs("gpt", "ladder"))
parts = list(ladder["parts"].unique())
fig, (left, right) = cu.subplots(
    1, 2, width=8.6, height=3.0,
    alt="Left, validation losses over the learning rate after 400 steps. One head and four heads have about 4.0 at 0.003. At 0.01 four heads have 3.1 and one head 3.0; "
    "at 0.03 and 0.1 four heads are far lower, best at 0.1 with 2.2, where one head has 2.6. At 0.3 both are above 3. Right, six models after 1,200 steps "
    "at 0.01: from 2.4 for one head down to 1.8 for two blocks. Lines mark bigrams and the best counting.",
)  # fmt: skip
for part, color in (("one head", "query"), ("four heads", "key")):
    of_part = by_rate[by_rate["parts"] == part]
    middle = of_part.groupby("rate")["loss"].mean()
    left.plot(middle.index, middle, color=cu.COLORS[color], label=part)
    left.plot(of_part["rate"], of_part["loss"], ".", color=cu.COLORS[color])
left.set(xscale="log", xlabel="Learning rate, 400 steps", ylabel="Validation loss (nats per token)")
left.set_xticks(rates := sorted(by_rate["rate"].unique()), [f"{rate:g}" for rate in rates])
left.minorticks_off()
left.legend()
right.plot(ladder["loss"], ladder["parts"].map(parts.index), "o", alpha=0.7)
for name, loss, look in (("2-grams", bigrams, ":"), ("best counting", best_counting, "--")):
    right.axvline(loss, color="0.5", linestyle=look, linewidth=1)
    right.text(loss, -0.8, f" {name}", fontsize=8, va="bottom", ha="right")
right.set_yticks(range(len(parts)), parts)
right.set(xlabel="Validation loss, 1,200 steps at 0.01", ylim=(len(parts) - 0.5, -0.9))
fig

# %% [markdown]
# On the left the two lines cross.
# At 0.01 we would have called four heads useless, and at 0.03 they are far ahead after the same 400 steps.
# So **a comparison at one learning rate compares rates**, and each model has to be tried at several ([Controls](G_controls.ipynb)).
# One head is best at 0.03, four heads are best at 0.1, and at 0.3 both are lost.
# On the right, after 1,200 steps at a single rate again, each further part is level or better, and the whole GPT is ahead of the best counting.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After 400 steps four heads are worse than one at 0.01, and at 0.03 and 0.1 they are far better."
):
    low, high = (by_rate.groupby(["parts", "rate"])["loss"].agg(one) for one in ("min", "max"))
    assert high["one head", 0.01] < low["four heads", 0.01]
    assert high["four heads", 0.03] < low["one head", 0.03] - 0.1
    assert high["four heads", 0.1] < low["one head"].min() - 0.1
with cu.guard("After 1,200 steps a GPT of two blocks is ahead of the best counting."):
    assert ladder.query("parts == '+ second block'")["loss"].max() < 1.9 < best_counting

# %% [markdown]
# ## What the heads look at
#
# From the maps of a few sentences we can hardly tell what a head is *for*, so we need a task whose answer we know.
# In our task a block of 5 to 8 different random letters comes again and again, and everything that helps is earlier in the same text.
# A model that uses it does **in-context learning**.
# A GPT of our class, with 26 letters for tokens, was trained on such texts.

# %%
stored = cu.load_model("gpt_copier")
copier = cu.GPT(**stored.config, dropout=0.0)
copier.load_state_dict(stored.state)
some_texts, _ = repeats.repeated(1, torch.Generator().manual_seed(4))
spelled = [repeats.LETTERS[i] for i in some_texts[0].tolist()]
print("".join(spelled))
first_block, again = repeats.losses(copier)
print(f"first {first_block:.2f}, again {again:.2f}; ln 26 = {math.log(26):.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
with cu.record_attention(copier) as copier_maps:
    copier(some_texts[:, :-1])
cu.show_heatmaps(
    copier_maps["layers.0.attention"][0].unflatten(0, (2, 2)),
    queries=spelled[:-1], keys=spelled[:-1], width=8.0, height=7.0, xlabel="", ylabel="",
    titles=[f"block 0, head {head}" for head in range(4)],
    alt="Four maps of 24 letters, a block of seven repeated. In each head most weight lies on pieces of lines "
    "parallel to the diagonal, a few positions below it.",
)  # fmt: skip

# %% [markdown]
# In the first block the model can only guess, and in the repetitions it copies.
# Has it learned the rule "find the same letter, and take what came after it"?
# To find out, we give it longer blocks than it has ever read.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Trained with blocks of 5 to 8 letters, the model gets blocks of 9. Does it copy them as well, with a loss of about 0.1?",
    ["yes", "no"],
    answer="no",
    wrong={
        "yes": "So it is if the model finds the same letter wherever it stands. How far back did it have to look in training?",
    },
    why="None of our copiers does, at either rate: the loss is 1.6 or more, and how much more depends on the rate.",
)

# %%
longest = 9  # try 9 | 10 | 11 | 12
print(f"blocks of {longest}: {repeats.block_loss(copier, longest):.2f}")
slower = pd.DataFrame(
    {f"seed {run.config['seed']}": run.result for run in cu.stored_runs("gpt", "copying_slower")}
)
slower.loc[["repetitions", "blocks of 9", "blocks of 10"]].round(2)

# %% [markdown]
# None of our copiers has learned the rule, neither this one nor the three of the table, which had a third of its learning rate.
# They copy texts that are like their training, but fail on blocks that are a little longer.
#
# Heads that do follow the rule are called **induction heads** ([Olsson et al., 2022](https://arxiv.org/abs/2209.11895)).
# In [What heads learn](19_what_heads_learn.ipynb) you see them appear in the weights of a smaller network, whose blocks have many lengths, and meet them in a real model.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At two rates the copiers copy what is like their training, but not blocks of 9 or 10 letters."
):
    assert again < 0.15 and repeats.block_loss(copier, 9) > 1
    assert slower.loc["repetitions"].max() < again
    assert slower.loc[["blocks of 9", "blocks of 10"]].min(axis=None) > 1

# %% [markdown]
# ## What a cache weighs
#
# The cache that makes writing fast has to be stored somewhere.
# It holds a key and a value for each token, layer and key–value head, which makes $2 \cdot \text{layers} \cdot \text{heads} \cdot \text{head size}$ numbers a token, each of two bytes in half precision.
# In Llama 3.1, four query heads share one head of keys and values, so its cache is a quarter of what it would be.

# %%
models_of = {  # layers, heads of keys and values, head size, window
    "the chapter's GPT": (2, 4, 16, 64),
    "GPT-2, small": (12, 12, 64, 1024),
    "Llama 3.1, 8B": (32, 8, 128, 131_072),
}
weighs = {}
for name, (layers, heads, head_size, window) in models_of.items():
    per_token = 2 * layers * heads * head_size * 2
    weighs[name] = {
        "bytes a token": f"{per_token:,}",
        "full window, MiB": f"{per_token * window / 2**20:,.2f}",
    }
pd.DataFrame(weighs).T

# %% [markdown]
# A full window of Llama 3.1 takes more memory for a single text than the model's weights, which are 8 billion numbers of two bytes or 15,259 MiB.
# So with long texts the cache fills the memory, not the weights.
#
# ## Shakespeare on a GPU
#
# How far does a GPT get letter by letter with more of everything?
# [nanoGPT](https://github.com/karpathy/nanoGPT) reads Shakespeare's plays, character by character, at two sizes.
# At the smaller size, for a CPU, we trained it for 3,000 steps.
# The next cell shows how its writing changed on the way.
# Each line begins with the step and, where we measured it, the validation loss, on the last tenth.

# %%
small = text_runs.real_run()
measured = dict(small.curves["val_loss"])
for example in small.examples:
    line = example["text"].strip().replace("\n", " / ")[:88]
    print(f"{example['step']:5} {measured.get(example['step'], ''):5.3}", line)

# %% [markdown]
# At the end it writes in the manner of a play, but it is still worse than counting, which reaches 1.52.
# Its 1.66 is the loss at all positions of its windows, and the first positions have little to read.
# At the positions with half a window before them, which the chapter takes, it reaches 1.62.
#
# The larger size, for a GPU, has six layers of 384 features and windows of 256 characters.
# It is `cu.GPT`, which is the chapter's class with dropout.
# Where there is a GPU, `make gpu CHAPTER=13` trains it, which took less than two minutes on an H200.

# %% tags=["gpu"] jupyter={"source_hidden": true}
large = cu.stored_run("gpt", "shakespeare_at_full_size")
large

# %% tags=["hide-input"] jupyter={"source_hidden": true}
plays = cu.stored_run("gpt", "shakespeare_kneser_ney").result
fig, ax = cu.subplots(
    width=6.6, height=3.0,
    alt="Losses over 5,000 steps. The training loss falls from 2.5 to 0.83 throughout. The validation loss falls to "
    "1.48 at step 1,500, just below the dashed line of counting at 1.52, and then rises to 1.71.",
)  # fmt: skip
for name, color, label in (("train_loss", "key", "training"), ("val_loss", "query", "validation")):
    ax.plot(*zip(*large.curves[name], strict=True), color=cu.COLORS[color], label=label)
best_step, best_loss = min(large.curves["val_loss"], key=lambda point: point[1])
ax.plot(best_step, best_loss, "o", color=cu.COLORS["query"])
ax.axhline(min(plays.values()), color="0.5", linestyle="--", linewidth=1, label="counting")
ax.set(xlabel="Step", ylabel="Loss (nats per character)", ylim=(0.7, 2.6))
ax.legend()
fig

# %% [markdown]
# The best validation loss, at all positions of the windows, is 1.484 at step 1,500 (nanoGPT publishes 1.47), so here a GPT knows more than counting letter by letter, too.
# This is one training, and we chose the best of 20 looks by the text that we report.
# After step 1,500 the GPT **overfits**: it goes on memorizing the training text, and gets worse on everything else.
# So keep the weights of the best step, as the chapter does, and don't trust the last ones.
#
# How large should a model be, for how much text?
# [Kaplan et al. (2020)](https://arxiv.org/abs/2001.08361) found that the loss follows power laws of both over many orders of magnitude, as long as nothing else sets the limit, and [Hoffmann et al. (2022)](https://arxiv.org/abs/2203.15556) that for a given amount of computation parameters and tokens should grow in about the same proportion.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "On Shakespeare the GPT for a CPU is worse than counting; the one for a GPU is better at its best, and then overfits."
):
    assert best_step == 1500 and best_loss == large.result["best_val_loss"] < min(plays.values())
    assert min(plays.values()) == plays["7"] < small.result["val_loss_read"]
    assert large.result["val_loss"] > best_loss + 0.2

# %% [markdown]
# ## References
#
# - Dubey, A. et al. (2024).
#   [The Llama 3 herd of models](https://arxiv.org/abs/2407.21783).
# - Hoffmann, J. et al. (2022).
#   [Training compute-optimal large language models](https://arxiv.org/abs/2203.15556).
#   NeurIPS.
# - Holtzman, A., Buys, J., Du, L., Forbes, M. and Choi, Y. (2020).
#   [The curious case of neural text degeneration](https://arxiv.org/abs/1904.09751).
#   ICLR.
# - Kaplan, J. et al. (2020).
#   [Scaling laws for neural language models](https://arxiv.org/abs/2001.08361).
# - Karpathy, A. (2022).
#   [nanoGPT](https://github.com/karpathy/nanoGPT).
#   The file config/train_shakespeare_char.py.
# - Radford, A., Wu, J., Child, R., Luan, D., Amodei, D. and Sutskever, I. (2019).
#   [Language models are unsupervised multitask learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf).
#   OpenAI.
#   Section 2.2: byte-level pieces.
# - Wu, Y. et al. (2016).
#   [Google's neural machine translation system: bridging the gap between human and machine translation](https://arxiv.org/abs/1609.08144).
#   Section 4.1: wordpieces.
# - Olsson, C. et al. (2022).
#   [In-context learning and induction heads](https://arxiv.org/abs/2209.11895).
#   Transformer Circuits Thread.
# - Sennrich, R., Haddow, B. and Birch, A. (2016).
#   [Neural machine translation of rare words with subword units](https://arxiv.org/abs/1508.07909).
#   ACL.
#   Section 3.2.
