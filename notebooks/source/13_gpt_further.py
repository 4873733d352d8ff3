# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # GPT: bytes, bits and the nucleus
#
# Optional, about half an hour.
# It belongs to [GPT](13_gpt.ipynb), and needs nothing that comes later.

# %%
from collections import Counter

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import UNK
from course_utils.lessons.gpt import real, training

cu.seed_everything(0)

# %% [markdown]
# ## Encode a word
#
# [The chapter](13_gpt.ipynb#Pieces-of-words) found merges by hand and left the cutting of a new word to a library.
# It takes ten lines.
#
# ### Exercise 1 · Encode a word
#
# *build · 7 minutes*
#
# Write it: begin with the characters and the end mark, and apply each merge wherever its pair stands, from left to right.
# (Do not look for the longest pieces: that is another algorithm.)


# %% tags=["exercise", "build"]
def encode_word(word, merges):
    """The pieces of `word` (without an end mark) under `merges`, a list of pairs."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.encode_word(encode_word)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def encode_word_solution(word, merges):
    """Each merge goes along the list once; what it has made stands at the same place."""
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
sentences = load_english()
size = 512  # try 300 | 512 | 800
subwords = Subwords(sentences, size=size)
asked = sorted(Counter(" ".join(sentences).split()))[::5]
same = sum(encode(word, subwords.merges) == subwords.pieces(word) for word in asked)
print(f"{len(subwords.merges)} merges; as the library in {same} of {len(asked)} words")
print(encode("overparameterized", subwords.merges))

# %% [markdown]
# Every fifth word of the course's sentences is cut as the library cuts it.

# %% [markdown]
# ## Bytes instead of characters
#
# The pieces of [the chapter](13_gpt.ipynb#Pieces-of-words) begin with the characters of the training text, and any other character is unknown.
# [Radford et al. (2019)](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf) begin with *bytes* for GPT-2: in UTF-8 every text of every script is a row of bytes, and there are 256 of them.
# The merges are found as before.
# There are no end marks: a space belongs to the word behind it, and merges do not cross from one word to the next.
# The library does both.

# %%
by_bytes = Tokenizer(models.BPE())
by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
by_bytes.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
options = {"initial_alphabet": alphabet, "show_progress": False}
trainer = trainers.BpeTrainer(vocab_size=size, **options)
by_bytes.train_from_iterator(sentences, trainer)
print(by_bytes.encode("she drinks tea").tokens)  # "Ġ" stands for the space

# %%
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
# Byte-level pieces give back every text, also in a script that the training text never had.
# The price: a Chinese character takes three bytes and an emoji four, so that texts in other scripts become longer than in a tokenizer that has learned from them.
#
# BERT's **WordPiece** ([Wu et al., 2016](https://arxiv.org/abs/1609.08144)) is a near relative.
# It merges the pair that raises the probability of the training text most, not the most frequent one, and cuts a new word by taking the longest known piece again and again.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Byte-level pieces give back each text; ours have unknown ones in some."):
    assert comes_back["comes back whole"].all()
    assert comes_back["of them unknown"].astype(int).sum() > 0

# %% [markdown]
# ## Bits per character
#
# Perplexities of different tokens cannot be compared: a character is easier to guess than a word.
# But all tokenizers cut the *same text*, and its whole log-likelihood can be divided by something that they share, its characters.
# Divided by $\ln 2$, too, it is in **bits per character**.
# Here are the n-grams of the chapter, with characters and with subwords, the best of one to eight tokens; training text and held-out text are the same for all, and the best is chosen on the held-out text.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which tokens will have the smallest perplexity, and which the fewest bits per character?",
    ["characters both", "characters, and then subwords", "subwords both"],
    answer="characters, and then subwords",
    wrong={
        "characters both": "How often does each model have to choose in the same text?",
        "subwords both": "Among how many tokens does a model of characters choose, at most?",
    },
    why="Characters choose among few tokens each time, but must choose much more often.",
)

# %%
share = 4  # try 4 | 8
compared = real.compare(sentences[::share], sizes=(128, 512, 1024))
compared.round(2)

# %% [markdown]
# By perplexity the characters look best by far, with 2.34 against 19.14.
# In bits per character they come last: 1.23, against 1.16 with 1,024 subwords.
# Few choices among many tokens and many choices among few come out nearly alike, and only a common unit shows it.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Characters have the smallest perplexity and the most bits per character."):
    assert compared["perplexity"].idxmin() == "characters"
    assert compared["bits per character"].idxmax() == "characters"

# %% [markdown]
# ## The nucleus
#
# A fixed $k$ is too large where the model is sure, and too small where it is not.
# **Top-p** or **nucleus sampling** ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751)) keeps the smallest set of best tokens whose probabilities sum to at least $p$.
# Two distributions over ten tokens, one sure and one not:

# %%
p = 0.9  # try 0.1 … 1.0
sure = torch.tensor([0.93, 0.03, 0.01, 0.01, 0.01, 0.002, 0.002, 0.002, 0.002, 0.002])
unsure = torch.tensor([0.15, 0.14, 0.13, 0.12, 0.11, 0.1, 0.09, 0.08, 0.05, 0.03])
kept = {
    name: int((probs.cumsum(0) - probs < p).sum())
    for name, probs in (("sure", sure), ("unsure", unsure))
}
print(f"tokens in the nucleus of p = {p}: {kept}")

# %% [markdown]
# The nucleus of the sure one has a single token, that of the other one eight.
# Top-8 would let seven tokens into the first that have 0.07 together.
#
# ### Exercise 2 · The nucleus
#
# *build · 10 minutes*
#
# Write it: from probabilities (…, tokens), in any order, to new ones in the same order that sum to 1.


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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The nucleus of 0.9 has one token of the sure distribution and eight of the other.",
    given=p == 0.9,
):
    assert kept == {"sure": 1, "unsure": 8}

# %% [markdown]
# ## Size and data
#
# How does the loss depend on the size of a network, and on the amount of text?
# [Kaplan et al. (2020)](https://arxiv.org/abs/2001.08361) trained language models over many orders of magnitude of both, and found power laws, straight lines on log axes, as long as nothing else sets the limit.
# Here are three sizes and three amounts, three seeds each: GPTs of two blocks with 16, 32 and 64 features, on all of the chapter's training text, on a quarter and on a sixteenth of it.
# All make the chapter's 400 steps at the chapter's rate, which was chosen for 64 features.
# So they read all of the text twice, the quarter 8 times and the sixteenth 33 times.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A sixteenth of the text, 12,241 tokens. After 400 steps the largest network, with 134,912 parameters, is behind the middle one on held-out sentences. And after 200?",
    ["it is ahead of all", "it is still behind", "it is the worst"],
    answer="it is ahead of all",
    wrong={
        "it is still behind": "It learns fastest. When does it begin to learn the text by heart?",
        "it is the worst": "It learns fastest. When does it begin to learn the text by heart?",
    },
    why="2.96 to 2.98 in three seeds: it must stop sooner. After 400 steps it has learned the text by heart.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
trained = pd.DataFrame(run.config | run.result for run in cu.stored_runs("gpt", "size_and_data"))
sized, sooner = trained[trained["steps"] == 400], trained[trained["steps"] == 200]
counts = pd.DataFrame(run.result for run in cu.stored_runs("gpt", "counted")).set_index("tokens")
best_counts = counts.min(axis=1).sort_index()
size_picture, size_axes = cu.subplots(
    1, 2, width=8.4, height=3.2, sharey=True,
    alt="Held-out loss on log axes, three seeds each. Left, over parameters: with all of the text and with a quarter it falls from 3.2 to "
    "2.1 or 2.2; with a sixteenth it falls to 3.0 and rises again. Right, over tokens: the line of the smallest network is nearly "
    "level, that of the largest falls steeply from a sixteenth to a quarter and then little, and ends on the line of counted n-grams.",
)  # fmt: skip
looks = (("key", "o-"), ("wrong", "s--"), ("value", "^-."))
names_of = {16: "a sixteenth", 4: "a quarter", 1: "all of the text"}
for ax, x, by, name_of in (
    (size_axes[0], "parameters", "share", names_of.get),
    (size_axes[1], "tokens", "width", "{} features".format),
):
    for (color, look), (value, group) in zip(looks, sized.groupby(by, sort=False), strict=True):
        middle = group.groupby(x)["loss"].mean()
        ax.plot(middle.index, middle, look, color=cu.COLORS[color], label=name_of(value))
        ax.plot(group[x], group["loss"], ".", color=cu.COLORS[color], markersize=4)
    ax.set(xscale="log", yscale="log", xlabel=x.capitalize())
    ticks = sorted(int(one) for one in sized[x].unique())
    ax.set_xticks(ticks, [f"{one:,}" for one in ticks])
size_axes[1].plot(best_counts.index, best_counts, ":", color="0.4", label="best n-grams")
size_axes[0].set(ylabel="Held-out loss, nats a token")
size_axes[0].set_yticks([2, 2.5, 3, 3.5], ["2", "2.5", "3", "3.5"])
for ax in size_axes:
    ax.margins(x=0.12)
    ax.minorticks_off()
    ax.legend(fontsize=8)
size_picture


# %%
def between(values):
    return f"{values.min():.2f}–{values.max():.2f}"


print("64 features, a sixteenth, 200 steps, held out:", between(sooner["loss"]))
said = {"loss": "held out", "read_loss": "on text that was read"} | names_of
sized.pivot_table(
    index="width", columns="share", values=["loss", "read_loss"],
    aggfunc=between, sort=False,
).rename(columns=said).rename_axis(columns=[None, None], index="features")  # fmt: skip

# %% [markdown]
# With all of the text, and with a quarter of it, the larger network is better in each seed: from 3.2 nats to 2.1 or 2.2.
# **On a sixteenth the largest must stop sooner**: after 400 steps it has learned much of its text by heart and is behind 32 features, after 200 it is ahead of all.
# So its dot shows the budget, not the size.
# The counted n-grams have 2.93, 2.42 and 2.12: with a sixteenth about level with the best network, with a quarter 64 features are clearly ahead of them.
#
# Three points do not show whether a line is straight.
# Nor would it have to be: here the 400 steps set a limit, too, and at another rate the small networks come lower.
# What the large studies ask is how to spend a given amount of *computation*.
# [Hoffmann et al. (2022)](https://arxiv.org/abs/2203.15556) find that parameters and tokens should grow in about the same proportion.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three seeds of 400 steps more features help with all of the text and with a quarter; with a sixteenth the largest must stop sooner."
):
    low, high = (sized.groupby(["share", "width"])["loss"].agg(one) for one in ("min", "max"))
    for part in (1, 4):
        assert high[part, 64] < low[part, 32] and high[part, 32] < low[part, 16]
    assert sooner["loss"].max() < low[16].min() and high[16, 32] < low[16, 64]
    assert sized.query("share == 16 and width == 64")["read_loss"].max() < 1
    assert low[16, 64] - high[1, 64] > 1 > 0.25 > high[16, 16] - low[1, 16]
    assert abs(best_counts.iloc[-1] - high[1, 64]) < 0.03

# %% [markdown]
# ## What a cache weighs
#
# A cache holds a key and a value for each token, layer and key–value head: $2 \cdot \text{layers} \cdot \text{heads} \cdot \text{head size}$ numbers a token.
# In half precision each takes two bytes.
# (In Llama 3.1, four query heads share one head of keys and values, which makes its cache a quarter of what it would be.)

# %%
models_of = {  # layers, heads of keys and values, head size, window
    "the chapter's GPT": (2, 4, 16, 32),
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
# A full window of Llama 3.1 takes 16,384 MiB for a single text, more than the weights of the model (8 billion numbers of two bytes are 15,259 MiB).
# For long texts the cache is what fills the memory.
#
# Back to [GPT](13_gpt.ipynb).

# %% [markdown]
# ### A larger run
#
# The chapter's run on Shakespeare has the size that [nanoGPT](https://github.com/karpathy/nanoGPT) takes for a CPU.
# For a GPU it takes 6 layers, 6 heads, 384 features, windows of 256 characters, 64 of them a step, dropout 0.2 and 5,000 steps, and reports a validation loss of 1.47.
# `make gpu CHAPTER=13` trains this where there is a GPU; it fetches the plays, and says where to put the file if there is no network.
# The cell shows the run that is stored, or says that there is none.

# %% tags=["gpu"] jupyter={"source_hidden": true}
cu.stored_run("gpt", "full_size")

# %% [markdown]
# With 10.8 million parameters it is thirteen times as large as the run of the chapter, and reads four times as far.

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
