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
# Optional, about half an hour. It belongs to [GPT](13_gpt.ipynb), and needs nothing that comes later.

# %%
from collections import Counter

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import course_utils as cu
from course_utils.data.text import UNK
from course_utils.lessons.gpt import bits, real, writing
from course_utils.lessons.gpt.training import evaluate, train, windows

cu.seed_everything(0)

# %% [markdown]
# ## Encode a word
#
# *Section 1 of 5*
#
# [The chapter](13_gpt.ipynb#Pieces-of-words) found merges by hand and left the cutting of a new word to a library. It takes ten lines.
#
# ### Exercise 1 · Encode a word
#
# *build · 7 minutes*
#
# Write it: begin with the characters and the end mark, and apply each merge wherever its pair stands, from left to right. (Do not look for the longest pieces: that is another algorithm.)


# %% tags=["exercise", "build"]
def encode_word(word, merges):
    """The pieces of `word` (without an end mark) under `merges`, a list of pairs."""
    ...


# %% tags=["check"]
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
encode = cu.choose(encode_word, writing.encode_word)
sentences = cu.load_english()
size = 512  # try 300 | 512 | 800
subwords = cu.Subwords(sentences, size=size)
asked = sorted(Counter(" ".join(sentences).split()))[::5]
same = sum(encode(word, subwords.merges) == subwords.pieces(word) for word in asked)
print(f"{len(subwords.merges)} merges; as the library in {same} of {len(asked)} words")
print(encode("overparameterized", subwords.merges))

# %% [markdown]
# Every fifth word of the course's sentences is cut as the library cuts it.

# %% [markdown]
# ## Bytes instead of characters
#
# *Section 2 of 5*
#
# The pieces of [the chapter](13_gpt.ipynb#Pieces-of-words) begin with the characters of the training text, and any other character is unknown. [Radford et al. (2019)](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf) begin with *bytes* for GPT-2: in UTF-8 every text of every script is a row of bytes,
# and there are 256 of them. The merges are found as before. There are no end marks: a space belongs to the word behind it, and merges do not cross from one word to the next. The library does both.

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
# Byte-level pieces give back every text, also in a script that the training text never had. The price: a Chinese character takes three bytes and an emoji four, so that texts in other scripts become longer than in a tokenizer that has learned from them.
#
# BERT's **WordPiece** ([Wu et al., 2016](https://arxiv.org/abs/1609.08144)) is a near relative. It merges the pair that raises the probability of the training text most, not the most frequent one, and cuts a new word by taking the longest known piece again and again.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Byte-level pieces give back each text; ours have unknown ones in some."):
    assert comes_back["comes back whole"].all()
    assert comes_back["of them unknown"].astype(int).sum() > 0

# %% [markdown]
# ## Bits per character
#
# *Section 3 of 5*
#
# Perplexities of different tokens cannot be compared: a character is easier to guess than a word. But all tokenizers cut the *same text*, and its whole log-likelihood can be divided by something that they share, its characters. Divided by $\ln 2$, too, it is in **bits per character**. Here are the n-grams of the chapter, with characters and with subwords, the best of one to eight tokens; training text and held-out text are the same for all, and the best is chosen on the held-out text.

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
compared = bits.compare(sentences[::share], sizes=(128, 512, 1024))
compared.round(2)

# %% [markdown]
# By perplexity the characters look best by far, with 2.34 against 19.14. In bits per character they come last: 1.23, against 1.16 with 1,024 subwords. Few choices among many tokens and many choices among few come out nearly alike, and only a common unit shows it.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Characters have the smallest perplexity and the most bits per character."):
    assert compared["perplexity"].idxmin() == "characters"
    assert compared["bits per character"].idxmax() == "characters"

# %% [markdown]
# ## The nucleus
#
# *Section 4 of 5*
#
# A fixed $k$ is too large where the model is sure, and too small where it is not. **Top-p** or **nucleus sampling** ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751)) keeps the smallest set of best tokens whose probabilities sum to at least $p$. Two distributions over ten tokens, one sure and one not:

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
# The nucleus of the sure one has a single token, that of the other one eight. Top-8 would let seven tokens into the first that have 0.07 together.
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


# %% tags=["check"]
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
with cu.guard("The nucleus of 0.9 has one token of the sure distribution and eight of the other."):
    assert kept == {"sure": 1, "unsure": 8}

# %% [markdown]
# ## What a cache weighs
#
# *Section 5 of 5*
#
# A cache holds a key and a value for each token, layer and key–value head: $2 \cdot \text{layers} \cdot \text{heads} \cdot \text{head size}$ numbers a token. In half precision each takes two bytes. (In Llama 3.1, four query heads share one head of keys and values, which makes its cache a quarter of what it would be.)

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
# A full window of Llama 3.1 takes 16,384 MiB for a single text, more than the weights of the model (8 billion numbers of two bytes are 15,259 MiB). For long texts the cache is what fills the memory.

# %% [markdown]
# ### A larger run
#
# The chapter's run on Shakespeare has the size that [nanoGPT](https://github.com/karpathy/nanoGPT) takes for a CPU. For a GPU it takes 6 layers, 6 heads, 384 features, windows of 256 characters, 64 of them a step, dropout 0.2 and 5,000 steps, and reports a validation loss of 1.47. The cell does this where there is a GPU; it then fetches the plays, and says where to put the file if there is no network. Elsewhere it shows the run that is stored, or says that there is none.


# %% tags=["gpu"]
def full_size(*, quick=False):
    """nanoGPT's size for a GPU; `quick`: five steps of a tiny one on random letters."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if quick:
        shape = {"embed_dim": 16, "num_heads": 2, "num_layers": 1, "max_len": 16}
        alphabet, text, unread = range(65), *torch.randint(65, (2, 300))
    else:
        shape = {"embed_dim": 384, "num_heads": 6, "num_layers": 6, "max_len": 256}
        alphabet, text, unread = real.characters()
    network = cu.GPT(len(alphabet), dropout=0.2, **shape).to(device)
    train(
        network, lambda drawn: windows(text.to(device), shape["max_len"], 64, drawn),
        steps=5 if quick else 5000, lr=1e-3, warmup=1 if quick else 100,
    )  # fmt: skip
    return {"val_loss": evaluate(network, unread.to(device), shape["max_len"])}


cu.stored_run("gpt_further", full_size)

# %% [markdown]
# With 10.8 million parameters it is thirteen times as large as the run of the chapter, and reads four times as far.
#
# Back to [GPT](13_gpt.ipynb).

# %% [markdown]
# ## References
#
# - Dubey, A. et al. (2024). [The Llama 3 herd of models](https://arxiv.org/abs/2407.21783).
# - Holtzman, A., Buys, J., Du, L., Forbes, M. and Choi, Y. (2020). [The curious case of neural text degeneration](https://arxiv.org/abs/1904.09751). ICLR.
# - Karpathy, A. (2022). [nanoGPT](https://github.com/karpathy/nanoGPT). The file config/train_shakespeare_char.py.
# - Radford, A., Wu, J., Child, R., Luan, D., Amodei, D. and Sutskever, I. (2019). [Language models are unsupervised multitask learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf). OpenAI. Section 2.2: byte-level pieces.
# - Wu, Y. et al. (2016). [Google's neural machine translation system: bridging the gap between human and machine translation](https://arxiv.org/abs/1609.08144). Section 4.1: wordpieces.
