# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Pretraining: GPT, BERT and after
#
# Labels are rare, text is not. **What can a model learn from text alone, and is it of any use when there are only
# fifty labels?**
#
# After this chapter you can
#
# - **draw** the masks of encoder-only, decoder-only and encoder–decoder models, and say what each is asked;
# - **merge** characters into subwords by hand, and get what the library gets;
# - **compute** a likelihood, a perplexity, and next-token probabilities under a temperature and a top-k limit;
# - **train** a small GPT that writes and a small BERT that fills gaps, and **measure** whether either helps with few labels;
# - **name** four changes that later models made to the block, and what each one costs and saves.
#
# About 90 minutes. You need [Multi-head attention](08_multi_head_attention.ipynb), [Positions](09_positions.ipynb) and [The Transformer](10_transformer.ipynb): heads, positions, and the Transformer's block.

# %%
import copy
import itertools
import math
import random
from collections import Counter

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Three kinds of model
#
# The Transformer of [The Transformer](10_transformer.ipynb) had an encoder and a decoder. Its two best-known heirs keep one half each. A common
# summary says: *BERT is the encoder, GPT is the decoder.* **What exactly is left of each half?**
#
# An encoder block is self-attention and a position-wise network. A decoder block has cross-attention, too, but without
# a source there is nothing to attend to. Take it away, and what remains *is* an encoder block under a causal mask.
# So the difference is who may look at whom, and nothing else:

# %%
n, source = 8, 4
one_way = cu.causal_mask(n)
both_ways = torch.ones(n, n, dtype=torch.bool)
source_then_target = one_way | (torch.arange(n) < source)  # all see the source

cu.show_heatmaps(
    torch.stack([both_ways, one_way, source_then_target]).float(),
    titles=["encoder-only", "decoder-only", "encoder–decoder"],
    queries=list("abcdwxyz"),
    keys=list("abcdwxyz"),
    width=8.6,
    height=2.9,
    alt="Three masks over eight tokens, blue where a query may look. Encoder-only: all is blue. Decoder-only: blue on "
    "and below the diagonal. Encoder–decoder: blue below the diagonal, and in all of the first four columns.",
)

# %% [markdown]
# - **Encoder-only** (BERT): each token sees the whole text. Good for understanding a text that is there: classifying,
#   finding, comparing. It cannot simply write, since it has never had to do without what comes next.
# - **Decoder-only** (GPT): each token sees itself and what stands before it. It can be asked for the next token at *all*
#   places at once, and what it answers can be appended and read again: it writes.
# - **Encoder–decoder** (the Transformer, T5): the source `abcd` is seen by all; the target `wxyz` is written one way.
#   The last map shows both attentions of its decoder side by side: columns a–d are cross-attention, the rest is masked
#   self-attention. It suits texts made from texts, such as translations.
#
# In the course's package the two models are one class with two masks. **Is that really all?** Give one the weights of
# the other.

# %%
sizes = {"embed_dim": 32, "num_heads": 4, "num_layers": 2, "max_len": 16, "dropout": 0.0}
gpt, bert = cu.GPT(100, **sizes), cu.BERT(100, **sizes)
bert.load_state_dict(gpt.state_dict())  # every name and every shape fits

text = torch.randint(5, 100, (3, 9))
changed = text.clone()
changed[:, 6] = 5 + (text[:, 6] - 4) % 95  # another token at place 6
gpt_moved = (gpt(text) != gpt(changed)).any(dim=-1)  # (3, 9): which outputs noticed?
bert_moved = (bert(text) != bert(changed)).any(dim=-1)
assert not gpt_moved[:, :6].any() and gpt_moved[:, 6:].all()
assert bert_moved.all()
assert_close(gpt(text[:, :1]), bert(text[:, :1]))  # a text of one token has no order of reading

# %% [markdown]
# In the explorer below, choose a model and move the place. **What does the token there read, what does it see, what is
# it asked?** For BERT, draw other masks: some of the words asked for are visible, and some that are read are wrong. We
# come to the reason.

# %%
cu.explore.masks()

# %% [markdown]
# ## What is a token?
#
# [Sequence to sequence](05_sequence_to_sequence.ipynb) gave each word an id. **What happens to words that were never seen?** Our 21,000 English sentences are
# simple. A short story, written for this course, is not much harder:

# %%
sentences = cu.load_english()
story = cu.load_story()
vocabulary = cu.Vocabulary(sentence.split() for sentence in sentences)
story_words = " ".join(story).split()
unknown = sum(word not in vocabulary for word in story_words) / len(story_words)
assert len(sentences) > 15_000 and 0.1 < unknown < 0.4
unseen = [word for word, _ in Counter(story_words).most_common() if word not in vocabulary]
assert "tower" in unseen and "grandmother" in vocabulary
print(story[0])
print(f"unknown: {100 * unknown:.0f} % of the story, for instance", ", ".join(unseen[:8]))

# %% [markdown]
# All of these would be `<unk>`, one id for *tower* and for every other unknown word. A word model needs a row for
# *walk*, *walks* and *walking* each, and has none for *overparameterized*. Single characters never fail, but make texts
# four times as long. **Subwords** are in between: frequent words stay whole, rare ones fall into pieces.
#
# **Byte-pair encoding** ([Sennrich et al., 2016](https://arxiv.org/abs/1508.07909)) finds the pieces by counting. Begin
# with characters, each word closed by an end mark, here `␣`. Then, again and again: *count all pairs of neighbors, and
# merge the most frequent pair into a new piece.*
#
# ### Five words by hand
#
# A text has *play* 6 times, *played* 4, *lay* 3, *stay* 5 and *stayed* 2 times. Count the pairs with a pencil:
#
# | pair | occurs in | count |
# |---|---|---|
# | `a y` | all five | $6+4+3+5+2 = 20$ |
# | `y ␣` | play, lay, stay | $6+3+5 = 14$ |
# | `l a` | play, played, lay | $6+4+3 = 13$ |
# | `p l` | play, played | $6+4 = 10$ |
#
# The first merge makes `ay`. With it, `ay ␣` has 14 and `l ay` has 13, so `ay␣` is next. Then `p l` has still 10, but `l ay`
# only 4 (in *played*) and `l ay␣` 9: merge `pl`. Then `s t` with 7. In code:


# %%
def count_pairs(pieces, counts):
    """How often each pair of neighboring pieces occurs."""
    pairs = Counter()
    for word, count in counts.items():
        for pair in itertools.pairwise(pieces[word]):
            pairs[pair] += count
    return pairs


def merge(pieces, pair):
    """The list with each occurrence of the pair, from left to right, as one piece."""
    merged, rest = [], list(pieces)
    while rest:
        size = 2 if tuple(rest[:2]) == pair else 1
        merged.append("".join(rest[:size]))
        rest = rest[size:]
    return merged


# %%
counts = {"play": 6, "played": 4, "lay": 3, "stay": 5, "stayed": 2}
pieces = {word: [*word, "␣"] for word in counts}
rows = [("", "", *(" ".join(p) for p in pieces.values()))]
for _ in range(4):
    pair, count = count_pairs(pieces, counts).most_common(1)[0]
    pieces = {word: merge(p, pair) for word, p in pieces.items()}
    rows.append((" + ".join(pair), count, *(" ".join(p) for p in pieces.values())))

assert [row[:2] for row in rows[1:]] == [("a + y", 20), ("ay + ␣", 14), ("p + l", 10), ("s + t", 7)]
pd.DataFrame(rows, columns=["merge", "count", *counts]).rename_axis("step")

# %% [markdown]
# Nobody told it, but `ay␣` is an ending and `ay` a stem that can go on. From here on there are ties: four pairs occur
# six times. An implementation has to decide, and two that decide differently give different tokens for ever after. The
# library `tokenizers` takes the pair whose pieces are older, the left one first; characters are as old as their place
# in the alphabet. With this rule, **are our merges the library's**, to the last one?


# %%
def learn_merges(counts, number):
    """The first `number` merges of byte-pair encoding, or all there are; ties go to the older pieces."""
    pieces = {word: [*word, "␣"] for word in counts}
    age = {c: i for i, c in enumerate(sorted(set("".join(counts)) | {"␣"}))}
    merges = []
    while len(merges) < number and (pairs := count_pairs(pieces, counts)):
        best = min(pairs, key=lambda pair: (-pairs[pair], age[pair[0]], age[pair[1]]))
        pieces = {word: merge(p, best) for word, p in pieces.items()}
        age.setdefault("".join(best), len(age))
        merges.append(best)
    return merges


text = " ".join(" ".join([word] * count) for word, count in counts.items())
ours = learn_merges(counts, 100)
assert ours == cu.Subwords([text], size=100).merges
assert ours[:4] == [("a", "y"), ("ay", "␣"), ("p", "l"), ("s", "t")]

several = sentences[::20]  # a twentieth of our sentences
characters = set(" ".join(several)) - {" "} | {"␣"}
library = cu.Subwords(several, size=5 + len(characters) + 60)  # 5 special tokens
assert learn_merges(Counter(" ".join(several).split()), 60) == library.merges

# %% [markdown]
# The same, and so from here on we use the library. A new text is encoded by the same merges in the same order. How many
# merges should there be? **How long do texts become, and what do the tokens look like?**

# %%
vocab_sizes = [50, 100, 200, 400, 800, 1600]
lengths = {"our sentences": [], "the story": []}
for size in vocab_sizes:
    subwords = cu.Subwords(sentences[::10], size=size)
    for texts, name in ((sentences[5::100], "our sentences"), (story, "the story")):
        tokens = sum(len(subwords.encode(text)) for text in texts)
        lengths[name].append(tokens / sum(len(text.split()) for text in texts))

for curve in lengths.values():
    assert curve == sorted(curve, reverse=True)  # more tokens in the vocabulary, fewer in a text
assert lengths["our sentences"][-1] < 1.05 < 1.3 < lengths["the story"][-1]
cu.show_curves(
    vocab_sizes,
    lengths,
    logx=True,
    xlabel="Size of the vocabulary",
    ylabel="Tokens per word",
    alt="Tokens per word over the size of the vocabulary, falling. Both begin at about "
    "3.5; our sentences fall to 1, the story to 1.4.",
)

# %% [markdown]
# For sentences of the kind the merges were learned from, 800 tokens are enough to leave most words whole. The story pays
# for its other words with more tokens, but nothing is lost. Every text of known characters can be written down.

# %%
tenses = cu.load_tenses()  # used later: its test sentences must not be pretrained on
random.Random(0).shuffle(tenses)
by_tense = [[item for item in tenses if item.label == label] for label in range(3)]
test_items = [item for items in by_tense for item in items[:200]]
tested = {item.text for item in test_items}

rest = [sentence for sentence in sentences if sentence not in tested]
random.Random(0).shuffle(rest)
held_out, training = rest[:600], rest[600:]
subwords = cu.Subwords(training, size=800)

for text in ("she walked to the bakery .", "unbelievable towers"):
    assert subwords.decode(subwords.encode(text)) == text  # there and back
print(subwords.pieces("she walked to the bakery ."))
print(len(subwords.pieces("overparameterized")), "pieces of overparameterized")

# %% [markdown]
# ### Exercise 1 · Encode a word
# *10 minutes · ★★*
#
# Write what a tokenizer does with a new word: begin with its characters and the end mark, then apply the merges, in the
# order in which they were learned. Return the list of pieces. Do not look for the longest pieces: that is another
# algorithm, with other results.


# %% tags=["exercise"]
def encode_word(word, merges):
    """The pieces of `word` (a string without the end mark) under `merges`, a list of pairs of pieces."""
    ...


# %% tags=["check"]
cu.checks.encode_word(encode_word)


# %% tags=["solution"] jupyter={"source_hidden": true}
def encode_word(word, merges):
    """The pieces of `word` (a string without the end mark) under `merges`, a list of pairs of pieces."""
    pieces = [*word, "␣"]
    for left, right in merges:
        place = 0
        while place < len(pieces) - 1:
            if (pieces[place], pieces[place + 1]) == (left, right):
                pieces[place : place + 2] = [left + right]
            place += 1
    return pieces


cu.checks.encode_word(encode_word)

# %% [markdown]
# ## The likelihood of a text
#
# A language model gives a probability to each next token. By the chain rule, the probability of a text
# $u_1, \dots, u_n$ is the product of them, and training maximizes its logarithm:
#
# $$P(u_1, \dots, u_n) = \prod_{i=1}^n P(u_i \mid u_1, \dots, u_{i-1}), \qquad L = \sum_{i=1}^n \log P(u_i \mid u_{i-k}, \dots, u_{i-1}).$$
#
# In practice the model sees at most $k$ tokens back, its *context*
# ([Radford et al., 2018](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf), section 3.1). Some slides show the
# sum without the logarithm. That is another quantity, and it prefers other models. Let one model give the two tokens
# of a text 0.9 and 0.01, another 0.4 and 0.4. The sums are 0.91 and 0.80, so the first would win. But it calls the text
# nearly impossible: the products are 0.009 and 0.16.

# %%
first, second = torch.tensor([0.9, 0.01]), torch.tensor([0.4, 0.4])
assert first.sum() > second.sum()
assert first.prod() < second.prod()
assert first.log().sum() < second.log().sum()  # the logarithm keeps the order of the products

# %% [markdown]
# A loss in nats per token says little to most people. Its exponential, the **perplexity**, says more:
#
# $$\mathrm{perplexity} = \exp\Big(-\frac1n \sum_{i=1}^n \log P(u_i \mid \dots)\Big) .$$
#
# By hand: three tokens with probabilities ½, ¼ and ⅛ have the likelihood $\frac1{64}$, and $64^{1/3} = 4$. The model is
# as unsure as if it chose among **4** equally likely tokens each time. One that knows nothing has the perplexity $V$, the
# size of the vocabulary; one that knows the text by heart has 1.

# %%
probs = torch.tensor([1 / 2, 1 / 4, 1 / 8])
assert_close(math.exp(-probs.log().mean().item()), 4.0, rtol=1e-6, atol=0)
assert_close(cu.perplexity(-probs.log().mean().item()), 4.0, rtol=1e-6, atol=0)
know_nothing = F.cross_entropy(torch.zeros(10, 800), torch.arange(10))
assert_close(cu.perplexity(know_nothing.item()), 800.0, rtol=1e-4, atol=0)

# %% [markdown]
# Perplexities *per token* may only be compared if the tokens are the same. Characters have a low one, since there are few
# of them and most are easy; words have a high one. To compare across tokenizers, divide the whole log-likelihood by
# something that both share, such as the number of characters.
#
# ### Exercise 2 · Perplexity
# *8 minutes · ★*
#
# Write the perplexity of a batch: `logits` (batch, length, $V$), `targets` (batch, length), and $-100$ wherever nothing is
# asked, such as at padding. Mind what is averaged: a long sentence has more tokens than a short one.


# %% tags=["exercise"]
def perplexity_of(logits, targets):
    """exp of the mean loss over the places whose target is not -100, as a tensor without axes."""
    ...


# %% tags=["check"]
cu.checks.perplexity_of(perplexity_of)


# %% tags=["solution"] jupyter={"source_hidden": true}
def perplexity_of(logits, targets):
    """exp of the mean loss over the places whose target is not -100, as a tensor without axes."""
    asked = targets != -100
    return F.cross_entropy(logits[asked], targets[asked]).exp()


cu.checks.perplexity_of(perplexity_of)

# %% [markdown]
# ## A GPT, block by block
#
# The model on one page: embeddings plus learned positions, then blocks with the norm first, a last norm, and an output layer that
# shares the embedding's weights: a token's score is the dot product of the last vector with the token's own embedding
# ([Press and Wolf, 2017](https://arxiv.org/abs/1608.05859)). The parts are those of [Multi-head attention](08_multi_head_attention.ipynb) to [The Transformer](10_transformer.ipynb).


# %%
def gpt_logits(tokens, model):
    """(batch, n) ids → (batch, n, V) scores of each next token, with the parts of `model`."""
    n = tokens.shape[1]
    x = model.embedding(tokens) + model.positions.weight[:n]
    for layer in model.layers:
        h = layer.around_attention.norm(x)
        x = x + layer.attention(h, h, h, cu.causal_mask(n))
        x = x + layer.feed_forward(layer.around_feed_forward.norm(x))
    return model.norm(x) @ model.embedding.weight.T


model = cu.GPT(100, **sizes)
text = torch.randint(5, 100, (3, 9))
ours, library = gpt_logits(text, model), model(text)
weights = list(model.parameters())
for ours_grad, library_grad in zip(
    torch.autograd.grad(ours.sin().sum(), weights),
    torch.autograd.grad(library.sin().sum(), weights),
    strict=True,
):
    assert_close(ours_grad, library_grad, rtol=1e-3, atol=1e-4)
assert_close(ours, library, rtol=1e-4, atol=1e-5)

# %% [markdown]
# And PyTorch's own layer, once it has the same weights, gives the same. It stores the three projections as one matrix.


# %%
def as_torch_layer(layer, heads=4):
    """nn.TransformerEncoderLayer with the weights of one of our blocks."""
    d, ffn = layer.attention.query_proj.in_features, layer.feed_forward[0].out_features
    twin = nn.TransformerEncoderLayer(
        d, heads, ffn, dropout=0.0, activation="gelu", norm_first=True, batch_first=True
    )
    ours, theirs = layer.attention, twin.self_attn
    projections = (ours.query_proj, ours.key_proj, ours.value_proj)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    twin.linear1.load_state_dict(layer.feed_forward[0].state_dict())
    twin.linear2.load_state_dict(layer.feed_forward[3].state_dict())
    twin.norm1.load_state_dict(layer.around_attention.norm.state_dict())
    twin.norm2.load_state_dict(layer.around_feed_forward.norm.state_dict())
    return twin


block, x = model.layers[0], torch.randn(2, 7, 32)
twin = as_torch_layer(block)(x, src_mask=~cu.causal_mask(7))  # PyTorch's layer: True = forbidden
assert_close(block(x, cu.causal_mask(7)), twin, rtol=1e-4, atol=1e-5)

# %% [markdown]
# ### What it is asked
#
# The batch is the sentence and the sentence moved by one. **Which token is asked for where?**

# %%
example = subwords.sentence("she drinks tea .")
batch = cu.next_token(torch.tensor([example]), torch.tensor([len(example)]), torch.Generator())
pd.DataFrame(
    {
        "reads": [subwords.tokens[i] for i in batch.tokens[0]],
        "is asked for": [subwords.tokens[i] for i in batch.targets[0]],
    }
).rename_axis("place")

# %% [markdown]
# Every place is a question, and all are answered in one pass: with a causal mask, no answer can be seen by the one who is
# asked. That makes a GPT cheap to train.
#
# ## A small GPT that writes
#
# How small is ours? It has two blocks of 64 features, about 150,000 parameters, and 21,000 short sentences to
# read, twice. The first GPT had 117 million parameters and read some 7,000 books. Before training, we set the marks: a
# model that knows **nothing**, one that knows how **frequent** each token is, and one that knows which token follows
# which **pair**-wise.

# %%
train_ids = [subwords.sentence(sentence) for sentence in training]
held_ids = [subwords.sentence(sentence) for sentence in held_out]
V = len(subwords)
pairs = torch.full((V, V), 0.01)  # a little for pairs never seen
for ids in train_ids:
    for left, right in itertools.pairwise(ids):
        pairs[left, right] += 1
neighbors = torch.tensor([pair for ids in held_ids for pair in itertools.pairwise(ids)])
before, after = neighbors.T
frequent = pairs.sum(dim=0) / pairs.sum()
following = pairs / pairs.sum(dim=1, keepdim=True)
marks = {
    "nothing": float(V),
    "frequencies": (-frequent[after].log().mean()).exp().item(),
    "pairs": (-following[before, after].log().mean()).exp().item(),
}
assert marks["nothing"] > 3 * marks["frequencies"] > 15 * marks["pairs"]
print({name: round(value, -1 if value > 50 else 0) for name, value in marks.items()})

# %%
size = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": 40, "dropout": 0.0}
torch.manual_seed(0)
gpt = cu.GPT(V, **size)
loader = cu.TextLoader(train_ids, cu.next_token, batch_size=64)
trainer = cu.Trainer(
    cu.language_model_loss(),
    epochs=2,
    lr=1e-2,
    schedule=cu.warmup_decay(50, 2 * len(loader)),
    weight_decay=0.01,
)
history = trainer.fit(gpt, loader)

# %%
held_loader = cu.TextLoader(held_ids, cu.next_token, shuffle=False)
gpt_perplexity = cu.perplexity(trainer.evaluate(gpt, held_loader))
story_ids = [ids[:40] for ids in map(subwords.sentence, story)]
story_loader = cu.TextLoader(story_ids, cu.next_token, shuffle=False)
story_perplexity = cu.perplexity(trainer.evaluate(gpt, story_loader))

assert sum(p.numel() for p in gpt.parameters()) == 153_856
assert gpt_perplexity < 0.75 * marks["pairs"]
assert story_perplexity > 5 * gpt_perplexity

# %% tags=["nbval-ignore-output"]
pd.Series(
    {**marks, "GPT": gpt_perplexity, "GPT, on the story": story_perplexity}, name="perplexity"
).round(1).to_frame()

# %% [markdown]
# It is better than counting pairs, by a good part: whatever it knows beyond the last token, it got through attention. On the story
# it is lost. A language model knows the kind of text that it has read.
#
# **What does it write?** Twelve sentences, drawn token by token from nothing but `<bos>`:

# %% tags=["nbval-ignore-output"]
for sentence in cu.generate_text(gpt, subwords, count=12, temperature=0.7, seed=1):
    print(sentence)

# %% [markdown]
# Many are sentences. Some make no sense, and now and then a word is put together from pieces that do not belong together. It has
# learned how words follow each other, and has never seen a cup of tea. How many are
# **new**, and how many did it learn by heart?

# %%
written = cu.generate_text(gpt, subwords, count=200, temperature=0.7, seed=2)
known = set(sentences)
new = [sentence for sentence in written if sentence not in known]
share_new = len(new) / len(written)
ended = sum(sentence[-1] in ".?!" for sentence in written) / len(written)
assert share_new > 0.3  # most sentences it was never given
assert ended > 0.9  # and it knows how to end one

# %% [markdown]
# ### Step by step, on the cache
#
# To write the next token, only the newest token has to go through the network. Keys and values of all earlier ones are
# kept, as in [The Transformer](10_transformer.ipynb). **Is that the same as reading everything again at each step, and what does it save?**


# %%
def write_slowly(model, ids, steps):
    """Greedy continuation that reads the whole text again for each token."""
    for _ in range(steps):
        logits = model(torch.tensor([ids]))[0, -1]
        logits[[0, 2, 4]] = -math.inf  # <pad>, <bos>, <mask> are never written
        if (token := logits.argmax().item()) == 3:  # <eos>
            break
        ids = [*ids, token]
    return ids


gpt.eval()
start = subwords.sentence("the woman is going")[:-1]
read = []  # how many tokens go through the first block at each call
hook = gpt.layers[0].register_forward_hook(lambda layer, inputs, out: read.append(out.shape[1]))
with torch.no_grad():
    slow = write_slowly(gpt, start, 8)
    slowly_read, read[:] = sum(read), []
    [quick] = cu.sample(gpt, torch.tensor([start]), max_new=8, temperature=0)
hook.remove()
assert start + quick == slow
assert sum(read) <= len(start) + 8 < slowly_read / 2

# %% [markdown]
# The same tokens, for a fraction of the work: with $t$ tokens in place, the slow way reads $t$ again, the cache 1.
#
# ## Temperature and top-k
#
# The model gives probabilities; we decide how to draw. Divide the logits by a **temperature** $T$ first:
#
# $$p_i = \frac{\exp(z_i/T)}{\sum_j \exp(z_j/T)} .$$
#
# By hand: logits $\ln 8, \ln 4, \ln 2, \ln 1$. Since $\exp(\ln a / T) = a^{1/T}$, temperature ½ squares the weights and
# temperature 2 takes their roots:
#
# | | weights | probabilities |
# |---|---|---|
# | $T = 1$ | 8, 4, 2, 1 | 0.533, 0.267, 0.133, 0.067 |
# | $T = ½$ | 64, 16, 4, 1 | 0.753, 0.188, 0.047, 0.012 |
# | $T = 2$ | 2.83, 2, 1.41, 1 | 0.390, 0.276, 0.195, 0.138 |
# | $T = 1$, **top-2** | 8, 4, –, – | 0.667, 0.333, 0, 0 |
#
# Towards $T = 0$ all goes to the best token (greedy decoding); towards infinity all become equal. **Top-k** keeps the $k$ best
# and cuts the tail off ([Fan et al., 2018](https://arxiv.org/abs/1805.04833)): with thousands of tokens, each bad one is unlikely, but *some* bad one is not.

# %%
logits = torch.tensor([8.0, 4.0, 2.0, 1.0]).log()


def draw_probs(logits, temperature, top_k):
    """softmax(logits / temperature) over the top_k best."""
    kth = logits.topk(top_k).values[..., -1:]
    return (logits / temperature).masked_fill(logits < kth, -math.inf).softmax(dim=-1)


for T, k, by_hand in (
    (1, 4, [0.533, 0.267, 0.133, 0.067]),
    (1 / 2, 4, [0.753, 0.188, 0.047, 0.012]),
    (2, 4, [0.390, 0.276, 0.195, 0.138]),
    (1, 2, [0.667, 0.333, 0, 0]),
):
    assert_close(draw_probs(logits, T, k), torch.tensor(by_hand), atol=6e-4, rtol=0)
    library = cu.next_token_probs(logits, temperature=T, top_k=k)
    assert_close(library, draw_probs(logits, T, k))
assert cu.next_token_probs(logits, temperature=0).tolist() == [1, 0, 0, 0]

# %% [markdown]
# Now on the GPT. Move the temperature to both ends, then limit $k$ at a high temperature. **When do the sentences become
# all alike, when do they fall apart, and what does top-k mend?**


# %%
def next_logits(prompt):
    """Token → logit after the prompt, for the 200 best whole words."""
    with torch.no_grad():
        logits = gpt(torch.tensor([subwords.sentence(prompt)[:-1]]))[0, -1]
    best = [i for i in logits.argsort(descending=True).tolist() if i > 4]
    return {subwords.tokens[i].replace("␣", ""): logits[i].item() for i in best[:200]}


def continuations(prompt, temperature, top_k):
    """Six texts of the GPT."""
    return cu.generate_text(
        gpt, subwords, prompt, count=6, temperature=temperature, top_k=top_k, seed=3
    )


prompts = ("she wants to", "the dog")
cu.explore.sampling({prompt: next_logits(prompt) for prompt in prompts}, continuations)

# %%
cold, warm, hot, cut = (
    cu.generate_text(gpt, subwords, "she wants to", count=100, temperature=T, top_k=k, seed=4)
    for T, k in ((0.1, None), (1.0, None), (3.0, None), (3.0, 3))
)
distinct = [len(set(texts)) for texts in (cold, warm, hot, cut)]
assert distinct[0] < 0.3 * distinct[1] < 30  # cold: the same few sentences again and again


def known_words(texts):
    """Share of words that occur in our sentences."""
    words = " ".join(texts).split()
    return sum(word in vocabulary for word in words) / len(words)


assert known_words(hot) < 0.9  # hot: pieces that form no word
assert known_words(cut) > known_words(hot) + 0.05  # top-3 mends much of it

# %% [markdown]
# ### Exercise 3 · The nucleus
# *10 minutes · ★★*
#
# A fixed $k$ is too many where the model is sure, and too few where it is not. **Top-p**, or nucleus, sampling
# ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751)) keeps the smallest set of best tokens whose probabilities
# sum to at least $p$. Write it: from probabilities (…, $V$) to new ones that sum to 1.


# %% tags=["exercise"]
def nucleus_probs(probs, p):
    """(…, V) probabilities → the same over the smallest set of best tokens with a sum of at least p."""
    ...


# %% tags=["check"]
cu.checks.nucleus_probs(nucleus_probs)


# %% tags=["solution"] jupyter={"source_hidden": true}
def nucleus_probs(probs, p):
    """(…, V) probabilities → the same over the smallest set of best tokens with a sum of at least p."""
    ordered, order = probs.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # what the better tokens have together
    kept = ordered.masked_fill(before >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


cu.checks.nucleus_probs(nucleus_probs)

# %% [markdown]
# ## BERT: hide and restore
#
# A GPT's features of a word know nothing of what comes after it. To classify a sentence one would like to look both ways.
# **What can a model be asked that sees everything?**
#
# Not for the next token: it stands there to be seen. Nor for the token itself. That is an **autoencoder**, which a lecture
# proposes as the simple way to pretrain: ask for the input. With a bottleneck this is a task. A Transformer has none; each
# token's vector goes straight through the residuals to the output layer, and copying is easy. How easy?

# %%


def train_quietly(model, ids, objective, *, steps, batch_size, lr):
    """Adam with warm-up and decay, as the Trainer does it, without a progress bar; returns the model."""
    loss_of, factor = cu.language_model_loss(), cu.warmup_decay(min(50, steps // 4), steps)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    loader = cu.TextLoader(ids, objective, batch_size=batch_size)
    batches = itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), steps)
    for step, batch in enumerate(batches, start=1):
        optimizer.param_groups[0]["lr"] = lr * factor(step)
        loss, count = loss_of(model.train(), batch)
        optimizer.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


torch.manual_seed(0)
autoencoder = train_quietly(
    cu.BERT(V, **size), train_ids, cu.same_token, steps=100, batch_size=64, lr=5e-3
)
copied = trainer.evaluate(autoencoder, cu.TextLoader(held_ids, cu.same_token, shuffle=False))
assert cu.perplexity(copied) < 1.1  # of 800: it copies, after 100 steps

# %% [markdown]
# After 100 steps it restores nearly every token of sentences it has never seen. The loss is almost zero; whether anything was learned
# is another question, and we shall ask it.
#
# BERT ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)) hides what it asks for. A few tokens are picked, and of those
#
# - **80 %** are replaced by `<mask>`: to restore them, the model has to use the context;
# - **10 %** are replaced by a random token, and **10 %** stay as they are.
#
# **Why not all of them by `<mask>`?** Because no text that the model will be *used* on contains `<mask>`. If only masks were
# ever asked, the features of ordinary words could be anything. As some visible tokens are asked as well, and some of
# those are wrong, the model must keep, for *each* word, a guess of what belongs there, and cannot trust what it reads.

# %%
sentence = subwords.sentence("the old woman will buy a new bike on friday .")
rows = {"sentence": [subwords.tokens[i].replace("␣", "") for i in sentence]}
objective = cu.masked_token(V, share=0.4)
for seed in range(3):
    generator = torch.Generator().manual_seed(seed)
    batch = objective(torch.tensor([sentence]), torch.tensor([len(sentence)]), generator)
    reads = [subwords.tokens[i].replace("␣", "") for i in batch.tokens[0].tolist()]
    asked = (batch.targets[0] >= 0).tolist()
    rows[f"draw {seed + 1}"] = [f"[{r}]" if a else r for r, a in zip(reads, asked, strict=True)]
pd.DataFrame(rows)

# %% [markdown]
# In brackets: what is asked for. Where the bracket holds a word, it is either the right one or a random one, and the model
# is not told which. Check the shares over many sentences, and what is never picked:

# %%
batches = list(cu.TextLoader(train_ids[:3000], cu.masked_token(V), batch_size=100))
picked = torch.cat([(b.targets >= 0).flatten() for b in batches])
reads = torch.cat([b.tokens.flatten() for b in batches])
truth = torch.cat([b.targets.flatten() for b in batches])
hidden = (reads == 4)[picked].float().mean()
kept = (reads == truth)[picked].float().mean()
assert abs(hidden - 0.8) < 0.03 and abs(kept - 0.1) < 0.03
assert truth[picked].min() > 4  # never <pad>, <bos>, <eos>, …

# %% [markdown]
# The original picks 15 % of the tokens. Our sentences have about seven, so that would be one question each, where the GPT
# gets eight. We pick 40 %: it trains much faster, and that share has been found to work well for large models, too
# ([Wettig et al., 2023](https://arxiv.org/abs/2202.08005)).

# %%
torch.manual_seed(0)
bert = train_quietly(
    cu.BERT(V, **size), train_ids, cu.masked_token(V, share=0.4), steps=900, batch_size=32, lr=3e-3
)
masked = cu.TextLoader(held_ids, cu.masked_token(V), shuffle=False)
bert_perplexity = cu.perplexity(trainer.evaluate(bert, masked))
assert bert_perplexity < 0.6 * marks["frequencies"]


# %% tags=["nbval-ignore-output"]
def fill(text, best=5):
    """The likeliest tokens for the one <mask> of a text."""
    left, right = text.split("<mask>")
    ids = [2, *subwords.encode(left), 4, *subwords.encode(right), 3]  # 2, 3, 4: bos, eos, mask
    with torch.no_grad():
        probs = bert(torch.tensor([ids]))[0, ids.index(4)].softmax(dim=-1)
    top = probs.topk(best)
    return {subwords.tokens[i].replace("␣", ""): p for p, i in zip(*map(list, top), strict=True)}


gaps = ("where is <mask> mother ?", "the cat is <mask> the table .", "they <mask> want to sleep .")
for text in gaps:
    print(text, "→", ", ".join(f"{token} {p:.2f}" for token, p in fill(text).items()))
assert set(fill(gaps[0], best=3)) <= {"my", "your", "his", "her", "its", "our", "their", "the"}

# %% [markdown]
# Before *mother* it expects whose mother, between *cat is* and *the table* a preposition: it uses both sides. Verbs do not
# always agree with their subjects, for which it is too small or has read too little. Its perplexity must not be compared with the GPT's: it was
# asked another question, about fewer tokens, with more context.
#
# ### Exercise 4 · Find the bug: masking
# *15 minutes · ★★★*
#
# With this function a BERT's loss falls quickly, further than any text allows. Used on real sentences it
# knows nothing. **What was it asked?**


# %%
def buggy_masking(ids, vocab_size, mask=4):
    """Pick 15 % of the ordinary tokens (ids above `mask`); 80 % of them masked, 10 % random, 10 % kept."""
    picked = (torch.rand(ids.shape) < 0.15) & (ids > mask)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(mask + 1, vocab_size, ids.shape)
    ids[picked & (fate < 0.8)] = mask
    ids[picked & (fate < 0.9)] = random_ids[picked & (fate < 0.9)]
    targets = ids.masked_fill(~picked, -100)
    return ids, targets


clean = torch.randint(5, V, (50, 20))
given = clean.clone()
tokens, targets = buggy_masking(given, V)
asked = targets != -100
assert (targets[asked] == tokens[asked]).all()  # every answer stands in the question
assert not (tokens == 4).any()  # and nothing is hidden
assert (given != clean).any()  # and the data set has changed

# %% [markdown]
# There are two bugs. Return new tensors `(tokens, targets)`, and leave `ids` as it is.


# %% tags=["exercise"]
def fixed_masking(ids, vocab_size, mask=4):
    """Pick 15 % of the ordinary tokens (ids above `mask`); 80 % of them masked, 10 % random, 10 % kept."""
    ...


# %% tags=["check"]
cu.checks.fixed_masking(fixed_masking)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_masking(ids, vocab_size, mask=4):
    """Pick 15 % of the ordinary tokens (ids above `mask`); 80 % of them masked, 10 % random, 10 % kept."""
    picked = (torch.rand(ids.shape) < 0.15) & (ids > mask)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(mask + 1, vocab_size, ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), random_ids, tokens)
    return tokens, ids.masked_fill(~picked, -100)


cu.checks.fixed_masking(fixed_masking)

# %% [markdown]
# ## Does it help when labels are few?
#
# The question that pretraining was made for. A discriminative model learns $P(Y \mid X)$ from labeled pairs. A generative
# one learns $P(X)$ from text alone, which makes its parameters *start* in a good place; Erhan et al.
# ([2010](https://jmlr.org/papers/v11/erhan10a.html)) call it an unusual form of regularization. **Does it, here?**
#
# The task: is a sentence in the **present**, the **past** or the **future**? The labels come from the forms in our lexicon, and the 600
# test sentences, 200 of each, were in no training text. *He wrote a letter* is past, and to know it one must know *wrote*. With 50
# labels, one has seen about 17 sentences in the past, and few of 100 verbs.

# %%
pool = [item for items in by_tense for item in items[200:1200]]


def as_batch(items):
    """Ids (n, longest), lengths (n,), labels (n,)."""
    ids = [torch.tensor(subwords.sentence(item.text)) for item in items]
    lengths = torch.tensor([len(row) for row in ids])
    labels = torch.tensor([item.label for item in items])
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), lengths, labels


test_ids, test_lens, test_labels = as_batch(test_items)
print(
    *(f"{('present', 'past', 'future')[item.label]}: {item.text}" for item in test_items[::150]),
    sep="\n",
)

# %% [markdown]
# All four beginnings get the same treatment: features averaged over the sentence, a new linear layer, and *all* weights trained
# on the labeled sentences, with the same rate and as many steps. A seed fixes which sentences are labeled, the new layer
# and the batches. (Each pretraining was done once: its own luck is not in the error bars.)


# %%
def fine_tune(body, num_labels, seed, *, lr=3e-3):
    """Test accuracy after training a copy of `body` on `num_labels` labeled sentences."""
    torch.manual_seed(seed)
    ids, lengths, labels = as_batch(random.Random(seed).sample(pool, num_labels))
    model = cu.SentenceClassifier(copy.deepcopy(body), 3).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01, fused=True)
    steps = {50: 40, 200: 50, 1000: 60}[num_labels]
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = lr * cu.warmup_decay(10, steps)(step)
        rows = torch.randint(num_labels, (16,))
        longest = lengths[rows].max()  # no need to compute with padding only
        logits = model(ids[rows, :longest], lengths[rows])
        loss = F.cross_entropy(logits, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        predicted = model.eval()(test_ids, test_lens).argmax(dim=-1)
    return cu.accuracy(predicted, test_labels)


torch.manual_seed(0)
bodies = {"from scratch": cu.BERT(V, **size), "autoencoder": autoencoder, "BERT": bert, "GPT": gpt}
amounts = (50, 200, 1000)
accuracy = {
    name: torch.tensor([[fine_tune(body, n, seed) for seed in range(3)] for n in amounts])
    for name, body in bodies.items()
}

# %% tags=["hide-input"]
fig, ax = cu.subplots(
    width=6.4, height=3.2,
    alt="Test accuracy over the number of labels, for four beginnings with the range of three seeds. At 50 labels GPT is "
    "clearly above the other three, at 200 still above, at 1000 labels all are close together.",
)  # fmt: skip
styles = zip(
    accuracy.items(), ("o--", "v:", "s-.", "D-"), ("gray", "orange", "sky", "blue"), strict=True
)
for shift, ((name, results), dash, color) in enumerate(styles):
    x = torch.tensor(amounts) * 1.06 ** (shift - 1.5)
    middle = results.mean(dim=1)
    ends = torch.stack([middle - results.amin(dim=1), results.amax(dim=1) - middle])
    ax.errorbar(
        x, middle, ends, fmt=dash, color=cu.COLORS[color], capsize=3, markersize=5, label=name
    )
ax.axhline(1 / 3, color="0.7", linewidth=1)
ax.set(xscale="log", xlabel="Labeled sentences", ylabel="Test accuracy", ylim=(0.3, 1.0))
ax.set_xticks(amounts, amounts)
ax.minorticks_off()
ax.legend(loc="lower right")
fig

# %%
few = {name: results[0] for name, results in accuracy.items()}  # at 50 labels, (3 seeds,)
assert few["GPT"].min() > few["from scratch"].max()  # beyond the error bars
assert few["GPT"].mean() > few["from scratch"].mean() + 0.05
assert few["GPT"].mean() > few["BERT"].mean() > few["from scratch"].mean() - 0.05
assert few["autoencoder"].mean() < few["from scratch"].mean() + 0.05  # copying taught nothing
many = {name: results[2].mean() for name, results in accuracy.items()}
assert max(many.values()) - min(many.values()) < 0.12  # with 1,000 labels, little is left

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        name: [f"{r.mean():.2f} ({r.min():.2f}–{r.max():.2f})" for r in rows]
        for name, rows in accuracy.items()
    },
    index=pd.Index(amounts, name="labels"),
).T

# %% [markdown]
# The bars show the lowest and the highest of three seeds; the gray line is chance.
#
# - **GPT** is better than from scratch at 50 labels, beyond the error bars. To say what comes next, it had to learn which verb
#   forms go with *last week* and which with *tomorrow*.
# - The **autoencoder** is no better than a random beginning. Its loss was nearly zero, but a copy can be made without knowing
#   anything about the words. A low loss is no evidence of understanding; it depends on what was asked.
# - **BERT** gains little here, and we say so: it stays behind the GPT, and close to the bars of a random beginning. With a comparable
#   effort it was asked about fewer tokens, and each question is harder while the context is still half hidden. Given far more
#   text and steps, the bidirectional model wins such tasks: that was the point of the BERT paper.
# - With **1,000** labels all are close. Pretraining buys labels, and once you have them it matters less.
#
# This is one task, one small corpus and one size of model. The direction agrees with the literature; the amounts are ours.
#
# ## What has changed since
#
# Open a language model of today, of the Llama family for instance ([Touvron et al., 2023](https://arxiv.org/abs/2302.13971)), and you
# find this chapter's GPT with four parts exchanged. **What is each, and what does it change?** In our block each is an argument.
#
# **RMSNorm** ([Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)) divides by the root mean square and neither subtracts the mean nor
# adds a bias: $\mathrm{RMSNorm}(\mathbf x) = \mathbf g \odot \mathbf x \big/ \sqrt{\tfrac1d \sum_i x_i^2 + \varepsilon}$. By hand:
# $(3, 4)$ has the mean square $12.5$, the root $3.54$, and becomes $(0.85, 1.13)$.
#
# **Rotary positions** ([Positions](09_positions.ipynb)) turn queries and keys by their place; no table, no longest text.
#
# **SwiGLU** ([Shazeer, 2020](https://arxiv.org/abs/2002.05202)) has a gate: $\mathbf W_d\,(\mathrm{silu}(\mathbf W_g\mathbf x) \odot \mathbf W_u\mathbf x)$ with
# $\mathrm{silu}(a) = a\,\sigma(a)$. Three matrices instead of two, so one makes them narrower by a third.
#
# **Grouped-query attention** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) lets several query heads share one head of keys and values. The
# cache holds only those, and long texts are limited by the cache.

# %%
assert_close(
    nn.RMSNorm(2)(torch.tensor([3.0, 4.0])), torch.tensor([0.849, 1.131]), atol=1e-3, rtol=0
)

gated, x = cu.GPT(50, **sizes, activation="swiglu").layers[0].feed_forward, torch.randn(4, 32)
by_hand = (F.silu(x @ gated.gate.weight.T) * (x @ gated.up.weight.T)) @ gated.down.weight.T
assert_close(gated(x), by_hand)

grouped = cu.MultiHeadAttention(32, 4, num_kv_heads=2, bias=False)
spread = cu.MultiHeadAttention(32, 4, bias=False)  # the same, each shared head written out twice
with torch.no_grad():
    spread.load_state_dict(
        {
            name: weight.unflatten(0, (2, 8)).repeat_interleave(2, dim=0).flatten(0, 1)
            if name in ("key_proj.weight", "value_proj.weight")
            else weight
            for name, weight in grouped.state_dict().items()
        }
    )
x = torch.randn(2, 6, 32)
assert_close(grouped(x, x, x), spread(x, x, x), rtol=1e-4, atol=1e-5)

# %% [markdown]
# The last lines say what grouping is: full attention whose key and value heads are equal in pairs. Fewer numbers to store,
# and fewer to choose from.
#
# Now each alone in our GPT, then all together (there without biases, as in Llama), two seeds each, for 120 steps on the same
# sentences in the same order.

# %%
swaps = {
    "the chapter's GPT": {},
    "RMSNorm": {"norm": "rms"},
    "rotary": {"rotary": True},
    "SwiGLU": {"activation": "swiglu"},
    "one key–value head": {"num_kv_heads": 1},
    "all four": {
        "norm": "rms", "rotary": True, "activation": "swiglu", "num_kv_heads": 1, "bias": False,
    },
}  # fmt: skip


def swapped(options, seed):
    """Loss on held-out sentences, parameters, and bytes of cache per token."""
    torch.manual_seed(seed)
    model = cu.GPT(V, **size, **options)
    train_quietly(model, train_ids, cu.next_token, steps=80, batch_size=32, lr=1e-2)
    state = model.start()
    with torch.no_grad():
        model.step(torch.tensor([held_ids[0]]), state)
    held = sum(c.keys.nbytes + c.values.nbytes for c in state.caches)
    parameters = sum(p.numel() for p in model.parameters())
    return trainer.evaluate(model, held_loader), parameters, held // state.length


results = {name: [swapped(options, seed) for seed in (0, 1)] for name, options in swaps.items()}

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        name: {
            "loss, seed 0": f"{runs[0][0]:.2f}",
            "loss, seed 1": f"{runs[1][0]:.2f}",
            "parameters": f"{runs[0][1]:,}",
            "cache, bytes per token": runs[0][2],
        }
        for name, runs in results.items()
    }
).T

# %%
loss = {name: sum(run[0] for run in runs) / 2 for name, runs in results.items()}
parameters = {name: runs[0][1] for name, runs in results.items()}
cache = {name: runs[0][2] for name, runs in results.items()}
base = "the chapter's GPT"

assert parameters[base] - parameters["RMSNorm"] == 5 * 64  # five norms lose their bias
assert parameters[base] - parameters["rotary"] == 40 * 64  # the table
assert abs(parameters[base] - parameters["SwiGLU"]) < 0.01 * parameters[base]
assert parameters[base] - parameters["one key–value head"] == 2 * 2 * (64 * 48 + 48)
assert cache[base] == 2 * 2 * 64 * 4  # keys and values, two layers, 64 features, 4 bytes
assert cache["one key–value head"] * 4 == cache["all four"] * 4 == cache[base]
assert max(loss.values()) < loss[base] + 0.25  # none does much harm
assert loss["rotary"] < loss[base] + 0.05

# %% [markdown]
# What the table can say: **RMSNorm** and **SwiGLU** change little at this size; their case was made at sizes a thousand times larger, by speed and by
# small, steady gains. **Rotary** positions help early in training: nothing about places has to be learned. **One
# key–value head** makes the cache a quarter, for a loss that is hardly different. With two seeds and 80 steps, differences of a few
# hundredths mean nothing. Such tables are easy to overread, in papers, too.
#
# What has not changed is the rest: softmax of scaled dot products, residuals, next-token likelihood.
#
# ## What goes wrong
#
# **The target is not moved.** If tokens are asked for themselves, the loss goes to zero, and the model has learned to copy. We have
# seen it: it is the autoencoder. The test is one line: a model whose output *is* its input must not be perfect.

# %%
ids = torch.tensor([subwords.sentence("she drinks tea .")])
identity = 50.0 * F.one_hot(ids, V).float()  # "the next token is this token", for sure
not_moved = F.cross_entropy(identity[0], ids[0])
moved = F.cross_entropy(identity[0, :-1], ids[0, 1:])
assert not_moved < 1e-6 and moved > 10

# %% [markdown]
# **The future is visible.** Ask for the next token *without* a causal mask, and each token looks one place to the right. The loss falls below anything
# that the text allows, in training and in validation alike. Writing fails, since then there is nothing to the right.

# %%
torch.manual_seed(0)
cheat = train_quietly(
    cu.BERT(V, **size), train_ids, cu.next_token, steps=100, batch_size=64, lr=5e-3
)
cheat_perplexity = cu.perplexity(trainer.evaluate(cheat, held_loader))
assert cheat_perplexity < 0.6 * gpt_perplexity  # better than the GPT, and worthless

with torch.no_grad():
    ends = after[:300]
    prefixes = [ids[: place + 1] for ids in held_ids for place in range(len(ids) - 1)][:300]
    last = torch.stack([cheat(torch.tensor([prefix]))[0, -1] for prefix in prefixes])
assert cu.perplexity(F.cross_entropy(last, ends).item()) > 3 * gpt_perplexity

# %% [markdown]
# The last lines of the cell are the honest measure: give it a prefix and nothing more, and ask.
#
# **Every new token at position 0.** While decoding with a cache, tokens come one by one, and their position is the cache's
# length. A model that forgets it writes nonsense fluently ([Positions, further](09_positions_further.ipynb)). The test is the one from above: steps
# equal the whole.
#
# **Perplexities of different tokens.** The same sentences and the same simple model, pairs of neighbors, with characters and
# with our subwords as tokens:


# %%
def pair_model(sequences, tests):
    """Mean loss per token, and tokens, of a model that knows pairs, on `tests`."""
    size = 1 + max(max(ids) for ids in [*sequences, *tests])
    table = torch.full((size, size), 0.01)
    for ids in sequences:
        table.index_put_(
            (torch.tensor(ids[:-1]), torch.tensor(ids[1:])), torch.ones(()), accumulate=True
        )
    logs = (table / table.sum(dim=1, keepdim=True)).log()
    losses = [-logs[ids[:-1], ids[1:]] for ids in tests]
    return torch.cat(losses).mean().item(), sum(map(len, losses))


letters = sum(len(sentence) for sentence in held_out)
as_letters = [[[0, *(ord(c) for c in s), 1] for s in texts] for texts in (training, held_out)]
per_letter, letter_tokens = pair_model(*as_letters)
per_piece, piece_tokens = pair_model(train_ids, held_ids)
assert cu.perplexity(per_letter) < cu.perplexity(per_piece)  # characters look better …
bits = [
    loss * n / letters / math.log(2)
    for loss, n in ((per_letter, letter_tokens), (per_piece, piece_tokens))
]
assert bits[0] > 1.3 * bits[1]  # … and are worse, counted per letter of text
print("bits per letter:", [round(b, 1) for b in bits])

# %% [markdown]
# **Empty, too long, too short.** A model without a prompt, a text beyond the table of positions, a corpus shorter than a window: all
# say so.

# %%
for attempt in (
    lambda: cu.sample(gpt, torch.empty(1, 0, dtype=torch.long)),
    lambda: gpt(torch.full((1, 41), 7)),
    lambda: cu.sample(gpt, torch.tensor([[2]]), max_new=40),
    lambda: cu.cut_windows(range(20), 64),
):
    try:
        attempt()
        raise AssertionError("expected an error")
    except ValueError as error:
        print(error)

# %% [markdown]
# ## On a GPU
#
# With more text and a larger model, the same code writes dialogue. Tiny Shakespeare has about a million characters; the model has
# six blocks of 384 features and reads windows of 256 subwords, across the lines. Without a GPU, the cell shows a recorded run, if there is one.


# %% tags=["gpu", "nbval-ignore-output"]
def gpt_shakespeare(*, quick=False):
    """A GPT on Tiny Shakespeare's subwords: validation loss per token and perplexity."""
    lines = cu.load_story() if quick else cu.load_shakespeare()
    cut = int(0.9 * len(lines))
    subwords = cu.Subwords(lines[:cut], size=150 if quick else 4000)
    length = 16 if quick else 256
    parts = [
        cu.cut_windows([i for line in part for i in subwords.sentence(line)[1:]], length)
        for part in (lines[:cut], lines[cut:])
    ]
    train = cu.TextLoader(parts[0], cu.next_token, batch_size=32)
    val = cu.TextLoader(parts[1], cu.next_token, batch_size=32, shuffle=False)
    size = (32, 4, 1) if quick else (384, 6, 6)
    torch.manual_seed(0)
    model = cu.GPT(
        len(subwords),
        embed_dim=size[0],
        num_heads=size[1],
        num_layers=size[2],
        max_len=length,
        dropout=0.3,
    )
    epochs = 1 if quick else 40
    schedule = cu.warmup_decay(2 if quick else 100, epochs * len(train) + 1)
    trainer = cu.Trainer(
        cu.language_model_loss(),
        epochs=epochs,
        lr=1e-3,
        schedule=schedule,
        weight_decay=0.1,
        keep_best=True,
    )
    history = trainer.fit(model, train, val)
    loss = min(row["val_loss"] for row in history.rows)
    return {"validation loss": loss, "perplexity": cu.perplexity(loss)}


cu.stored_run("gpt", gpt_shakespeare)

# %% [markdown]
# ## Take-aways
#
# - GPT and BERT are the same block. A causal mask makes a model that writes; without it, one that restores what was hidden.
# - Subwords come from counting and merging pairs. Text of known characters always fits, and rare words only cost more tokens.
# - Training maximizes a sum of *logarithms*; perplexity is its exponential per token, comparable only between equal tokens.
# - What is asked decides what is learned: our GPT helped with 50 labels beyond the error bars, the autoencoder with its perfect loss did not, and our short-trained BERT helped little.
# - Later models changed the norm, the positions, the network and the number of key–value heads, each for a measurable reason. The likelihood stayed.
#
# ## Quiz

# %%
cu.quiz("gpt")

# %% [markdown]
# ## References
#
# - Ainslie, J., Lee-Thorp, J., de Jong, M., Zemlyanskiy, Y., Lebrón, F. and Sanghai, S. (2023). [GQA: training generalized multi-query transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245). EMNLP.
# - Devlin, J., Chang, M.-W., Lee, K. and Toutanova, K. (2019). [BERT: pre-training of deep bidirectional transformers for language understanding](https://arxiv.org/abs/1810.04805). NAACL. Section 3.1.
# - Erhan, D., Bengio, Y., Courville, A., Manzagol, P.-A., Vincent, P. and Bengio, S. (2010). [Why does unsupervised pre-training help deep learning?](https://jmlr.org/papers/v11/erhan10a.html). JMLR 11.
# - Fan, A., Lewis, M. and Dauphin, Y. (2018). [Hierarchical neural story generation](https://arxiv.org/abs/1805.04833). ACL.
# - Holtzman, A., Buys, J., Du, L., Forbes, M. and Choi, Y. (2020). [The curious case of neural text degeneration](https://arxiv.org/abs/1904.09751). ICLR.
# - Press, O. and Wolf, L. (2017). [Using the output embedding to improve language models](https://arxiv.org/abs/1608.05859). EACL.
# - Radford, A., Narasimhan, K., Salimans, T. and Sutskever, I. (2018). [Improving language understanding by generative pre-training](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf). OpenAI.
# - Sennrich, R., Haddow, B. and Birch, A. (2016). [Neural machine translation of rare words with subword units](https://arxiv.org/abs/1508.07909). ACL. Section 3.2.
# - Shazeer, N. (2020). [GLU variants improve Transformer](https://arxiv.org/abs/2002.05202).
# - Touvron, H. et al. (2023). [LLaMA: open and efficient foundation language models](https://arxiv.org/abs/2302.13971).
# - Wettig, A., Gao, T., Zhong, Z. and Chen, D. (2023). [Should you mask 15% in masked language modeling?](https://arxiv.org/abs/2202.08005). EACL.
# - Zhang, B. and Sennrich, R. (2019). [Root mean square layer normalization](https://arxiv.org/abs/1910.07467). NeurIPS.
