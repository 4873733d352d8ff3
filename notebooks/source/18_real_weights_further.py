# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Real weights: sentences, a lens and silent mistakes
#
# This page continues [Real weights](18_real_weights.ipynb).
# It lets our own encoder layers carry a second real model, which turns sentences into vectors, and asks what is near in such vectors.
# Then it returns to SmolLM2 with a lens, with longer copies, with fewer bits, and with mistakes that no error reports.
# You can read each section by itself, so take what interests you.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.real_weights import meaning

cu.seed_everything(0)

# %% [markdown]
# ## Sentences as vectors: MiniLM
#
# SmolLM2 writes.
# Other models *compare*: a **sentence encoder** turns a whole sentence into one vector, so that sentences of similar meaning have a large cosine ([Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084)).
# A widely used one is all-MiniLM-L6-v2 with 22,565,376 parameters, which learned from more than a billion pairs of texts that belong together, such as a question and its answer.
#
# It is built like [BERT](14_bert_and_transfer.ipynb), so its layers are `cu.EncoderLayer` with the norm after the sum.
# An embedding of *segments* tells the first text of a pair from the second, and here there is only a first.
# The sentence's vector is the mean over its tokens, scaled to length 1.


# %%
class SentenceEncoder(nn.Module):
    """(batch, n) ids and (batch,) lengths → (batch, embed_dim), a vector of length 1 for each sentence."""

    def __init__(self, vocab_size, embed_dim, num_heads, num_layers, ffn_dim, max_len):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.segments = nn.Embedding(2, embed_dim)
        self.embedding_norm = nn.LayerNorm(embed_dim, eps=1e-12)
        options = {"norm_first": False, "activation": "gelu", "eps": 1e-12, "dropout": 0.0}
        layers = [cu.EncoderLayer(embed_dim, num_heads, ffn_dim, **options) for _ in range(num_layers)]  # fmt: skip
        self.layers = nn.ModuleList(layers)

    def forward(self, tokens, lengths):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        x = self.embedding_norm(x + self.segments.weight[0])
        for layer in self.layers:
            x = layer(x, cu.padding_mask(lengths, tokens.shape[1]))
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        return F.normalize((x * real[..., None]).sum(1), dim=-1)


# %% [markdown]
# Its weights come in a *safetensors* file, which is simpler than GGUF.
# Eight bytes say how long the table of contents is, the table is JSON, and behind it stand the numbers.
# `cu.fetch("minilm")` and `cu.fetch("minilm-tokenizer")` bring the weights and the tokenizer.
# Without the files you see what we recorded, and with them you can ask about any sentence of yours.

# %% tags=["nbval-ignore-output"]
encoder = meaning.fill(SentenceEncoder)  # None without the two files
sentence = "The dog bit the man."  # with the weights, any sentences of yours
others = ["The man bit the dog.", "The man was bitten by the dog."]
for other, cosine in meaning.cosines(encoder, sentence, others).items():
    print(f"{cosine:.3f}  {other}")

# %% [markdown]
# *The man bit the dog* is nearer to our sentence than *The man was bitten by the dog*, which says the same as our sentence.
# The same happens in 11 of the 12 sentences that we tried.
# But the passive also has two more words, so this isn't a fair control yet, and Exercise 1 asks for one.
#
# Opposites are a harder test.
# We wrote 44 sentences, each with its opposite and with two paraphrases, before we computed a cosine.
# One paraphrase is free (*The price went up* and *It became more expensive*), the other keeps most of the words (*The price rose*).
# Each dot below is a sentence, and above the diagonal its opposite, here *The price went down*, is the nearer one.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
opposites = cu.stored_run("real_weights", "opposites")
cosines = [list(example["cosines"].values()) for example in opposites.examples]
fig, axes = cu.subplots(
    1, 2, width=7.0, height=3.4, sharey=True,
    alt="Two panels of 44 dots, the cosine of the opposite over the cosine of a paraphrase. With free paraphrases most dots lie above the diagonal, "
    "from 0.5 to 0.95 on the horizontal axis. With paraphrases that keep most words, most lie below it.",
)  # fmt: skip
for ax, place, kind in zip(axes, (1, -1), ("a free paraphrase", "one that keeps the words"), strict=True):  # fmt: skip
    for row in cosines:
        color = cu.COLORS["query" if row[0] > row[place] else "key"]
        ax.plot(row[place], row[0], "o", color=color, alpha=0.7, markersize=5)
    ax.plot([0.45, 1], [0.45, 1], color="0.6", linewidth=1)
    ax.set(xlabel=f"Cosine with {kind}", xlim=(0.45, 1.01), ylim=(0.55, 1.01))
axes[0].set(ylabel="Cosine with the opposite")
fig

# %% [markdown]
# **For 35 of the 44 sentences the opposite is nearer than the free paraphrase (red dots), and for only 16 it is nearer than the paraphrase in the same words.**
# So a large part of a cosine is topic and wording.
# As a baseline we only counted the shared words, which prefers the opposite for 43 sentences and for 19.
# MiniLM hears a little more than shared words, but not enough to tell yes from no.
#
# ### Exercise 1 · A fair control
#
# *open · 23 minutes*
#
# A report shows ten pairs of sentences with an encoder's cosines, such as *It is raining* and *Rain is falling* with 0.87, and concludes that the encoder understands meaning.
# Which other pairs would you ask for?
# Write three kinds of five pairs each, and write down what you expect of each kind if meaning decides, and if shared words decide, *before* you compute anything.
# With the weights, ask `meaning.cosines(encoder, …)`.
#
# <details><summary>To compare</summary>
#
# First, pairs that share their words and say different things, such as opposites, swapped roles and other numbers.
# Second, pairs that say the same and share no word.
# Third, pairs that share neither, so that you know what a small cosine is.
# And beside each cosine the number that costs nothing: the share of common words.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The opposite is nearer than a free paraphrase in 35 of 44 triples, than a close one in 16; by shared words in 43 and 19."
):
    assert opposites.result["triples"] == len(cosines) == 44
    assert sum(row[0] > row[1] for row in cosines) == opposites.result["free"] == 35
    assert sum(row[0] > row[-1] for row in cosines) == opposites.result["close"] == 16
    assert opposites.result["free_by_words"] == 43 and opposites.result["close_by_words"] == 19

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Swapped roles are nearer than the passive in 11 of 12 sentences."):
    roles = cu.stored_run("real_weights", "roles")
    swapped = [list(example["cosines"].values()) for example in roles.examples]
    assert sum(a > b for a, b in swapped) == 11 and len(swapped) == 12
    assert roles.examples[0]["sentence"] == "The dog bit the man." and swapped[0] == [0.978, 0.83]

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The class of this page is the one that the recorded cosines were computed with."):
    sizes = {"embed_dim": 24, "num_heads": 4, "num_layers": 2, "ffn_dim": 48, "max_len": 9}
    ours, recorded = SentenceEncoder(50, **sizes), meaning.SentenceEncoder(50, **sizes)
    recorded.load_state_dict(ours.state_dict())
    ids, lengths = torch.randint(50, (3, 9)), torch.tensor([9, 4, 1])
    assert torch.equal(ours(ids, lengths), recorded(ids, lengths))

# %% [markdown]
# ## King − man + woman, with its controls
#
# The most famous sum of word vectors is $\text{king} - \text{man} + \text{woman} \approx \text{queen}$ ([Mikolov, Yih and Zweig, 2013](https://aclanthology.org/N13-1090)).
# We compute it among 1,170 words, those of the course's sentences, of its story and of these analogies, with MiniLM's vector of each word and then with the rows of its embedding.
# An analogy has three given words (a is *man*, b is *king*, c is *woman*), and we have 32 analogies, about families, capitals, verbs and more.
#
# We look for the nearest word to b − a + c, among all words and then without the three given ones, as is usually done.
# Two controls follow: we subtract nothing (b + c), and we ask only for the nearest word to c.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sums = {run.config["vectors"]: run for run in cu.stored_runs("real_weights", "analogies")}
ways = {
    "of all": "b − a + c", "inputs excluded": "without a, b, c",
    "nothing subtracted": "b + c", "nearest to c": "c",
}  # fmt: skip
asks = ("king − man + woman", "without these words", "king + woman", "woman")
for ask, example in zip(asks, sums["sentence"].examples, strict=True):
    print(f"{ask:20}", ", ".join(example["nearest"]))
pd.DataFrame(
    {
        f"{kind} vectors": {name: int(run.result[way]) for way, name in ways.items()}
        for kind, run in sums.items()
    }
).T.rename_axis("right, of 32")

# %% [markdown]
# With the sentence encoder's vectors the nearest word to *king − man + woman* is *king*.
# *Queen* comes first when the three given words are excluded, and it comes first even if nothing is subtracted.
# In the table, excluding the given words makes most of the difference, from 3 to 24, and **without any subtraction 19 of 32 are still right**.
# In this list the subtraction adds only a few, and much of the magic is that the given words may not win ([Linzen, 2016](https://arxiv.org/abs/1606.07736)).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Of 32 analogies at most 3 are right among all words, 24 and 23 without the inputs, and 19 and 16 without subtracting."
):
    counted = {kind: [run.result[way] for way in ways] for kind, run in sums.items()}
    assert counted == {"sentence": [3, 24, 19, 12], "word": [1, 23, 16, 13]}
    assert all(run.result["words"] == 1170 and run.result["analogies"] == 32 for run in sums.values())  # fmt: skip
    assert [e["nearest"][0] for e in sums["sentence"].examples[:3]] == ["king", "queen", "queen"]

# %% [markdown]
# ## Search: counting is hard to beat
#
# Such vectors are mostly used for search: embed every section once, embed the question, and take the section with the largest cosine.
# The baseline is **BM25**, which counts the shared words and gives more to rare ones ([Robertson and Zaragoza, 2009](https://doi.org/10.1561/1500000019)).
#
# We search this course.
# A question of a quiz should find its chapter.
# The first sentence of an entry of the glossary, without its term, should find the section that teaches the term.
# And 28 questions are written in everyday words, not in the book's terms.
#
# A fair comparison needs one thing more, because the encoder was trained on short texts and reads at most 256 tokens.
# So both sides may cut the sections into pieces (of about 35, 70 or 150 words, or none), and each side is shown at its best size.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
found = pd.DataFrame(run.config | run.result for run in cu.stored_runs("real_weights", "search"))
sides, asked = ["BM25", "MiniLM", "both"], ["quiz", "glossary", "own words"]
best_size = found.groupby("asks")[["questions", *sides]].max().loc[asked]
best_size["questions"] = best_size["questions"].astype(int)
best_size.rename(
    index={"quiz": "quiz → chapter", "glossary": "glossary → section", "own words": "own words → chapter"},
    columns={"both": "both added"},
).rename_axis("accuracy: the right one comes first").round(2)  # fmt: skip

# %% [markdown]
# **In this course the encoder at its best size is nowhere ahead of counting at its own, and on the glossary it is far behind.**
# The glossary speaks in the book's own terms, which a count can find.
# Where a question avoids these terms the two are level, as far as 28 questions can tell.
# If we add both scores, each scaled to mean 0 and variance 1, the sum beats either of them on all three kinds of questions.
# These numbers depend on the pages as they were when we recorded them, on 28 November 2026.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At its best size MiniLM is nowhere ahead of BM25, on the glossary BM25 is far ahead at every size, and both added are always ahead."
):
    assert len(found) == 12 and (best_size["MiniLM"] < best_size["BM25"]).all()
    assert (best_size.loc["own words", "BM25"] - best_size.loc["own words", "MiniLM"]) * 28 < 1.5
    by_term = found[found["asks"] == "glossary"]
    assert (by_term["BM25"] > by_term["MiniLM"] + 0.15).all()
    assert (found["both"] > found[["BM25", "MiniLM"]].max(axis=1)).all()

# %% [markdown]
# ## The logit lens: a warning
#
# We return to SmolLM2, which looks the country up in layer 23, and try to read along.
# The **logit lens** ([nostalgebraist, 2020](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens)) takes the vector $\mathbf x$ after some layer and pretends that it was the last one.
# It computes the logits $\mathbf E\, \mathrm{norm}(\mathbf x)$ with the embedding $\mathbf E$, and reads off the best token.
#
# We asked for 30 capitals with *The capital of X is*.
# The upper panel shows the median rank of the right capital among all 49,152 tokens, read at the last token.
# The *centered* lens subtracts from each logit its mean over the 30 prompts.
# The lower panel needs no lens.
# We subtract from the 30 vectors of each of two prompts their mean, and count for how many countries the vector of *The capital of X is* is nearest to the same country's vector of *The currency of X is*.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
lenses = {run.config["prompt"].removeprefix("<|endoftext|>"): run for run in cu.stored_runs("real_weights", "logit_lens")[:5]}  # fmt: skip
asked = lenses["The capital of {} is"]
fig, (ax, below) = cu.subplots(
    2, 1, width=6.6, height=4.2, sharex=True, height_ratios=[3, 1],
    alt="Above, median ranks over the 30 layers, on a log axis. All curves stay between 7,000 and 31,000 up to layer 22. After layer 23 the centered "
    "lens reads the country at rank 2 and the capital at 4, while the plain lens gives the capital about 2,000, and then slowly less, reaching 1 only after the last layer. "
    "Below, the countries that the other prompt tells, 29 or 30 of 30 after every layer.",
)  # fmt: skip
for what, look, color, name in (
    ("plain capital", "o-", "query", "capital, plain lens"),
    ("centered capital", "s-", "key", "capital, centered lens"),
    ("centered country", "^--", "value", "country, centered lens"),
):
    layers, ranks = zip(*asked.curves[what], strict=True)
    ax.plot(layers, ranks, look, color=cu.COLORS[color], markersize=4, linewidth=1.3, label=name)
below.plot(
    *zip(*asked.curves["matched"], strict=True), "o-", color="0.35", markersize=3, linewidth=1
)
for each in (ax, below):
    each.axvline(23, color="0.6", linestyle=":", linewidth=1)
ax.set(ylabel="Median rank", yscale="log", ylim=(6e4, 0.8))
ax.set_yticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
ax.legend(loc="upper left", fontsize=8)
below.set(xlabel="After layer", ylabel="Countries", ylim=(0, 33), yticks=[0, 15, 30])
below.set_xticks([0, 5, 10, 15, 20, 23, 29])
fig

# %% [markdown]
# Up to layer 22 neither lens reads anything, and yet the vector tells the country.
# After layer 23 the plain lens still puts the capital far down, and the centered lens gives it the median rank 4, because what all prompts have in common had covered what differs.
# It seems to read the answer.
# As a control we ask about other things than capitals.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rows = {
    "The capital of X is": asked.result,
    "The currency of X is": lenses["The currency of {} is"].result,
    "The food in X is": lenses["The food in {} is"].result,
}
read = {f"{text} (after layer 23)": [gave[f"centered {what}"] for what in ("capital", "right capital", "country")] for text, gave in rows.items()}  # fmt: skip
bare = cu.stored_run("real_weights", "bare_rows").result
read["X alone, its row of the embedding"] = [bare[what] for what in ("capital", "right capital", "country")]  # fmt: skip
columns = ["capital's rank", "capital before the 29 others", "country's rank"]
pd.DataFrame.from_dict(read, orient="index", columns=columns).astype(int)

# %% [markdown]
# The lens reads the capital where the prompt doesn't ask for it, and even in the country's bare row of the embedding, before any layer.
# So the lens reads the country and what is near it in the embedding.
# **If the lens reads nothing, something may be there all the same, and if it reads something, the model need not use it.**
# To see what the model uses we have to intervene, as the chapter does.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Up to layer 22 both lenses are empty while the vector tells the country; after layer 23 the centered lens reads country and capital, whatever is asked."
):
    assert len(lenses) == 5
    for text, run in lenses.items():
        empty = [rank for what in ("plain capital", "centered capital", "centered country") for layer, rank in run.curves[what] if layer <= 22]  # fmt: skip
        assert min(empty) > 5_000 and run.result["centered country"] == 2
        assert run.result["plain capital"] > 1_500 and run.result["centered right country"] == 30
        assert run.result["answered"] == (28 if text.startswith("The capital") else 0)
    assert min(count for _, count in asked.curves["matched"]) == 29
    assert asked.result["plain capital"] == 1891
    kept = [run.result[f"centered {what}"] for run in lenses.values() for what in ("capital", "right capital")]  # fmt: skip
    assert kept == [4, 28, 5, 28, 7, 28, 14, 25, 5, 28]
    assert list(read.values())[-1] == [6, 26, 1]
    told = [[count for layer, count in run.curves["matched"] if layer <= 22] for run in lenses.values()]  # fmt: skip
    assert [(min(each), max(each)) for each in told] == [(29, 30), (28, 30), (24, 30), (26, 30), (11, 29)]  # fmt: skip

# %% [markdown]
# ## Longer copies
#
# In the chapter SmolLM2 copies about two thirds of forty random tokens, and we ask whether it copies at any distance.
# We drew blocks of 5 to 400 tokens, 40 texts of the shortest and 4 of the longest.
# We drew them twice, once from all 49,152 tokens and once from frequent ones (ids 300 to 2,999, which byte-pair encoding made early).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The block has only 5 random tokens and comes for the second time. How much of it is copied correctly, compared with a block of 40?",
    ["more", "about as much", "less"],
    answer="less",
    wrong={
        "more": "It would be less to remember. But attention has nothing to remember, because all tokens are there. How would the model notice, within 5 tokens, that the text repeats itself?",
        "about as much": "An induction head would do as well at once. But how would the model notice, within 5 tokens, that the text repeats itself?",
    },
    why="0.44 instead of 0.77. When the block of 5 comes for the third time, the model copies 0.81 of it.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
copied = pd.DataFrame(run.config | run.result for run in cu.stored_runs("real_weights", "longer_copies"))  # fmt: skip
fig, ax = cu.subplots(
    width=8.2, height=3.0,
    alt="Share copied correctly over the tokens of a block, from 5 to 400. At the second time frequent tokens rise from 0.5 to 0.85 at 40 and stay above 0.7. Any tokens "
    "rise to 0.77 and fall to 0.23, with wide ranges. At the third time, dashed, both begin at 0.8; any tokens fall below 0.4 at 200.",
)  # fmt: skip
for tokens, color, name in (("frequent", "key", "frequent tokens"), ("all", "query", "any tokens")):
    rows = copied[copied["tokens"] == tokens].sort_values("block")
    spread = (rows["second"] - rows["second_least"], rows["second_most"] - rows["second"])
    shift = 1.03 if tokens == "all" else 0.97
    ax.errorbar(rows["block"] * shift, rows["second"], yerr=spread, fmt="o-", color=cu.COLORS[color], markersize=4, linewidth=1.5, elinewidth=0.8, label=f"{name}, second time")  # fmt: skip
    ax.plot(rows["block"] * shift, rows["third"], "s--", color=cu.COLORS[color], markersize=3, linewidth=1, label=f"{name}, third time")  # fmt: skip
ax.set(
    xlabel="Tokens in a block", ylabel="Share copied correctly", xscale="log", ylim=(-0.02, 1.02)
)
ax.set_xticks(lengths_tried := sorted(copied["block"].unique()), [str(n) for n in lengths_tried])
ax.minorticks_off()
ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
fig

# %% [markdown]
# The bars go from the worst text to the best one.
# With frequent tokens the model copies blocks of 400 about as well as blocks of 20, so **the distance alone doesn't stop it** here, where a longer distance also means a longer block to recognize.
# Other tokens between a block and its repetition do weaken the copying ([Not at any distance](19_what_heads_learn_further.ipynb#Not-at-any-distance)).
# With tokens drawn from the whole vocabulary, most of which are rare, the share falls to a quarter.
# Rarity and length act together: rare tokens alone are still copied in blocks of 40, and hardly ever in blocks of 200.
# So before we say "it can't copy that far", we have to ask what it was given to copy.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Frequent tokens are copied to 0.75 at a block of 400, any tokens to 0.23; short blocks are copied better at the third time."
):
    second = copied.set_index(["tokens", "block"])["second"]
    third = copied.set_index(["tokens", "block"])["third"]
    assert abs(second["frequent", 400] - second["frequent", 20]) < 0.05
    assert all(second["frequent", n] > 0.72 for n in (20, 40, 100, 200, 400))
    assert round(second["rare", 200], 2) == 0.07 and round(second["rare", 40], 2) == 0.57
    assert second["all", 400] < second["all", 200] < 0.3 < 0.4 < second["all", 100] < 0.45
    assert round(second["all", 5], 2) == 0.44 and round(second["all", 40], 2) == 0.77
    assert round(third["all", 5], 2) == 0.81 and third["frequent", 5] > 0.75
    least = copied.set_index(["tokens", "block"])["second_least"]
    assert least["frequent", 200] > copied.set_index(["tokens", "block"])["second_most"]["all", 200]

# %% [markdown]
# ## How many bits?
#
# The file has four bits for most numbers, and perhaps fewer would do.
# We rounded the layers' matrices again, in blocks of 32 or of 192 or with one scale for a whole row, and measured how much the loss grows on our short story, which the model can't have read.
# The horizontal axis counts all bits that are stored, so a number of four bits takes five in a block of 32, because $d$ and $m$ are shared by only 32 numbers.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("real_weights", "fewer_bits")
own = runs[0].result["loss"]  # of the file as it comes
fig, ax = cu.subplots(
    width=6.4, height=3.0,
    alt="How much the loss on our story grows over the stored bits per weight, on a log axis. In blocks of 32 by 9.3 nats with three bits, 1.4 with four, 0.24 with five, 0.05 with six and 0.02 with seven. "
    "In blocks of 192 by 2.8 with 3.2, 0.44 with 4.2, 0.06 with 5.2 and 0.02 with 6.2. With one scale for a row by 6.9 with three, 0.74 with four, 0.20 with five and 0.04 with six. A uniform guess is at 7.6, and with about two bits both are worse.",
)  # fmt: skip
looks = ((32, "o-", "key", "blocks of 32"), (192, "s-", "value", "blocks of 192"), (0, "^-", "query", "a whole row"))  # fmt: skip
for block, look, color, name in looks:
    points = sorted((r.result["stored"], r.result["loss"] - own) for r in runs
                    if r.config["bits"] and r.config["block"] == block)  # fmt: skip
    ax.plot(*zip(*points, strict=True), look, color=cu.COLORS[color], markersize=5, label=name)
uniform = torch.tensor(49_152.0).log().item()
ax.axhline(uniform - own, color="0.5", linestyle="--", linewidth=1)
ax.text(7.1, uniform - own, "a uniform guess", va="bottom", ha="right", fontsize=8)
ax.set(xlabel="Stored bits per weight", ylabel="Loss above the file's (nats)", yscale="log", xlim=(1.9, 7.15), xticks=range(2, 8))  # fmt: skip
ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
ax.legend(title="One scale for", loc="lower left")
fig

# %% [markdown]
# **In larger blocks the same loss costs almost a bit less per number.**
# In a block of 32 a whole bit per number goes into $d$ and $m$, and in a block of 192 only a sixth of a bit.
# A whole row saves this sixth as well, but its one scale has to fit its largest number.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Blocks of 192 have a lower loss than rows and blocks of 32 with about as many stored bits, and with five what blocks of 32 have with six."
):
    loss = {(r.config["bits"], r.config["block"]): r.result["loss"] for r in runs}
    stored = {(r.config["bits"], r.config["block"]): r.result["stored"] for r in runs}
    for bits in (2, 3, 4):
        assert loss[bits + 1, 192] < loss[bits + 1, 0] - 0.1 < loss[bits, 32]
        assert stored[bits + 1, 192] - stored[bits + 1, 0] < stored[bits + 1, 192] - stored[bits, 32] < 0.17  # fmt: skip
    assert abs(loss[5, 192] - loss[5, 32]) < 0.02 and round(loss[5, 192], 2) == 3.22
    assert round(own, 2) == 3.16
    assert [round(loss[case], 1) for case in ((4, 192), (3, 32), (4, 0), (3, 192))] == [3.6, 4.5, 3.9, 6.0]  # fmt: skip
    assert min(loss[2, 32], loss[3, 0] + 1) > uniform
    for bits in (
        4,
        5,
    ):  # at half a bit; the logs are halfway and a third of the way between two points
        more = {key: loss[key] - own for key in loss if key[0]}
        half = (more[bits - 1, 32] * more[bits, 32]) ** 0.5
        third = more[bits, 192] ** (2 / 3) * more[bits + 1, 192] ** (1 / 3)
        assert third < more[bits, 64] < half

# %% [markdown]
# ## Silent mistakes
#
# A loaded model that answers *Paris* seems to be right.
# We make three mistakes that raise no error.
# The base of the rotary angles is 10,000, which is the default of `cu.GPT`, and not 100,000.
# The features of queries and keys are rotated in *halves* (feature $j$ with $j + d/2$, as in Hugging Face's files), and not as *neighbors* (as in our file).
# And the $\varepsilon$ of the norms is $10^{-6}$ instead of $10^{-5}$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
mistakes = {run.config["mistake"]: run for run in cu.stored_runs("real_weights", "silent")}
called = {
    "none": "as it should be", "base": "base 10,000", "halves": "halves, not neighbors", "epsilon": "ε of 10⁻⁶",
}  # fmt: skip
pd.DataFrame(
    {
        called[name]: {
            "after “The capital of France is”": run.examples[0]["says"].strip(),
            "P(Paris)": f"{run.result['paris']:.2f}",
            "capitals, of 30": int(run.result["capitals"]),
            "loss on our story": f"{run.result['loss']:.2f}",
            "largest change of a logit": f"{run.result['moved']:.2g}",
        }
        for name, run in mistakes.items()
    }
).T

# %% [markdown]
# **All four say *Paris*, so one prompt is no test.**
# With halves one capital more is right than without the mistake, although the loss on our story has nearly doubled.
# The base costs so little that you would only notice it if you knew the right loss.
# And the wrong $\varepsilon$ costs nothing that we could measure, and still a logit moves a little.
#
# What finds all three mistakes is **parity**: a second implementation reads the same file, and we compare the logits number by number.
# Hugging Face's transformers read it with their own code, and our logits differ from theirs by less than 0.0001, so even the smallest change of the table would stand out.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "All three mistakes still say Paris; with halves one more capital is right and the loss is 5.36 instead of 3.00; ε only moves the logits."
):
    assert {run.examples[0]["says"] for run in mistakes.values()} == {" Paris"}
    asked_for = {name: run.examples[0]["asked"] for name, run in mistakes.items()}
    assert asked_for.pop("halves") == "The capital of Japan."
    assert set(asked_for.values()) == {"The capital of Japan is Tokyo."}
    silent = {name: run.result for name, run in mistakes.items()}
    assert silent["halves"]["capitals"] == 29 == silent["none"]["capitals"] + 1
    assert 1.7 < silent["halves"]["loss"] / silent["none"]["loss"] < 1.85
    assert round(silent["base"]["loss"] - silent["none"]["loss"], 2) == 0.15
    assert abs(silent["epsilon"]["loss"] - silent["none"]["loss"]) < 0.001
    assert 0.03 < silent["epsilon"]["moved"] < 0.04 and silent["epsilon"]["capitals"] == 28

# %% [markdown]
# <details><summary>How sure is this?</summary>
#
# All numbers of SmolLM2 are those of this file of four bits.
# The triples are our own.
# Fourteen of them, with their free paraphrases, were a first trial, and for the other thirty and for all close paraphrases we knew no cosine when we wrote them.
# The twelve swapped roles were written by one person in one sitting, and all are short English sentences.
#
# In sixteen new texts with forty random tokens the model copies 0.77.
# We took 2,700 rare tokens, and of these it copies 0.57 in blocks of 40 and 0.07 in blocks of 200.
#
# Blocks of 192 reach a loss of 3.22 with 5.2 stored bits, where the file itself has 3.16, and blocks of 32 need six bits for it.
# With about three stored bits blocks of 192 reach 6.0, while the others are about as bad as a uniform guess.
# With blocks of 64 the loss lies between those of 32 and of 192, at 4.5 stored bits and at 5.5.
# The file was already rounded once, in blocks with other borders than ours.
#
# For the silent mistakes the loss is the one on the first 600 tokens of the story, of which the chapter takes 400.
# A chat about Japan finds one of the three, since with halves the whole answer is *The capital of Japan.*
#
# In the search we chose the best size of a piece on the questions themselves, for both sides alike.
# BM25 has its usual constants, 1.5 and 0.75.
# The sum of both scores is ahead at all four sizes, and nearly always with other settings of BM25 that we tried.
#
# The curves of the lens look alike for *The people of X are* and for *Q: What is the capital of X? A: It is*, where the centered lens gives the capital the ranks 7 and 5 after layer 23.
# Compared with *The capital of X is*, the first tells 24 to 30 countries up to layer 22, and the second, which is less like it, 11 to 29.
#
# </details>
#
# ## References
#
# - Linzen, T. (2016).
#   [Issues in evaluating semantic spaces using word analogies](https://arxiv.org/abs/1606.07736).
#   RepEval.
# - Mikolov, T., Yih, W. and Zweig, G. (2013).
#   [Linguistic regularities in continuous space word representations](https://aclanthology.org/N13-1090).
#   NAACL.
# - nostalgebraist (2020).
#   [Interpreting GPT: the logit lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens).
# - Reimers, N. and Gurevych, I. (2019).
#   [Sentence-BERT: Sentence embeddings using Siamese BERT-networks](https://arxiv.org/abs/1908.10084).
#   EMNLP.
# - Robertson, S. and Zaragoza, H. (2009).
#   [The probabilistic relevance framework: BM25 and beyond](https://doi.org/10.1561/1500000019).
#   Foundations and Trends in Information Retrieval.
# - Wang, W. et al. (2020).
#   [MiniLM: Deep self-attention distillation for task-agnostic compression of pre-trained transformers](https://arxiv.org/abs/2002.10957).
#   NeurIPS.
