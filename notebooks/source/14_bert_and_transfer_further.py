# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # BERT and transfer: the original and its heirs
#
# Optional, about twenty minutes.
# It belongs to [BERT and transfer](14_bert_and_transfer.ipynb), and needs nothing that comes later.

# %%
from functools import partial

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## BERT as it was
#
# [The chapter](14_bert_and_transfer.ipynb#BERT-in-one-class) lists what its model leaves out of [Devlin et al. (2019)](https://arxiv.org/abs/1810.04805).
# Here is the whole: three tables, a norm behind them, blocks with the norm after each residual, and two outputs, one for the picked tokens and one for the pair of sentences.


# %%
class FirstBERT(nn.Module):
    """Tokens, segments (batch, n), lengths → logits of tokens, and of "B follows A"."""

    def __init__(self, vocab_size, embed_dim, num_heads, num_layers, max_len=512):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.segments = nn.Embedding(2, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        options = {"norm_first": False, "activation": "gelu", "dropout": 0.0}
        sizes = (embed_dim, num_heads, 4 * embed_dim)
        blocks = [cu.EncoderLayer(*sizes, **options) for _ in range(num_layers)]
        self.layers = nn.ModuleList(blocks)
        self.pooler = nn.Linear(embed_dim, embed_dim)  # on [CLS]
        self.follows = nn.Linear(embed_dim, 2)
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.last_norm = nn.LayerNorm(embed_dim)
        self.output = nn.Linear(embed_dim, vocab_size)
        self.output.weight = self.embedding.weight

    def features(self, tokens, segments, lengths):
        places = torch.arange(tokens.shape[1])
        x = self.embedding(tokens) + self.positions(places) + self.segments(segments)
        x, real = self.norm(x), cu.padding_mask(lengths, tokens.shape[1])
        for layer in self.layers:
            x = layer(x, real)
        return x

    def forward(self, tokens, segments, lengths):
        x = self.features(tokens, segments, lengths)
        restored = self.output(self.last_norm(F.gelu(self.dense(x))))
        return restored, self.follows(self.pooler(x[:, 0]).tanh())


# %%
with torch.device("meta"):  # shapes without numbers
    base = FirstBERT(30_522, 768, 12, 12)
heads = (base.follows, base.dense, base.last_norm)
beside = sum(p.numel() for part in heads for p in part.parameters()) + 30_522
print(f"{sum(p.numel() for p in base.parameters()) - beside:,} without the two outputs")

words = ["[CLS]", "she", "is", "hungry", "[SEP]", "she", "eats", "bread", "[SEP]"]
vocabulary = sorted({*words, "[MASK]"})
tokens = torch.tensor([[vocabulary.index(word) for word in words]])
segments = torch.tensor([[0] * 5 + [1] * 4])
first = FirstBERT(len(vocabulary), 32, 4, 2, max_len=16)
restored, follows = first(tokens, segments, torch.tensor([len(words)]))
swapped = first(tokens, 1 - segments, torch.tensor([len(words)]))[1]
shapes = tuple(restored.shape), tuple(follows.shape)
print("logits of tokens {} and of the pair {}".format(*shapes))
moved = (follows - swapped).abs().max()
print(f"segments exchanged, the pair's logits move by {moved:.2f}")

# %% [markdown]
# 109,482,240: the "110 M" of the paper.
# Of the three tables that are added, the one of segments says to which sentence a token belongs; nothing else does, except `[SEP]`.
#
# For next-sentence prediction, half of the pairs in training stand so in a text, and in the other half B is drawn at random.
# A random sentence often has another subject, and then single words may say enough: [Lan et al. (2020)](https://arxiv.org/abs/1909.11942) suspect that this makes the task too easy, and ask for the *order* of two neighboring pieces of text instead.
# [Liu et al. (2019)](https://arxiv.org/abs/1907.11692) left the task out and lost nothing.
# And the blocks are PyTorch's encoder layers with the norm after:


# %%
def as_pytorch(x, layer):
    """nn.TransformerEncoderLayer with the weights of our block."""
    theirs = nn.TransformerEncoderLayer(
        32, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=False
    )
    attention = layer.attention
    norms = (layer.attention_norm, layer.feed_forward_norm)
    three = (attention.query_proj, attention.key_proj, attention.value_proj)
    state = {
        "self_attn.in_proj_weight": torch.cat([one.weight for one in three]),
        "self_attn.in_proj_bias": torch.cat([one.bias for one in three]),
        "self_attn.out_proj.weight": attention.out_proj.weight,
        "self_attn.out_proj.bias": attention.out_proj.bias,
    }
    for number, place in ((1, 0), (2, 3)):
        parts = {"linear": layer.feed_forward[place], "norm": norms[number - 1]}
        for name, part in parts.items():
            state[f"{name}{number}.weight"] = part.weight
            state[f"{name}{number}.bias"] = part.bias
    return torch.func.functional_call(theirs, state, x)


# %%
block = first.layers[0]
cu.equal(block, partial(as_pytorch, layer=block), torch.randn(2, 7, 32), tolerance=1e-5)

# %% [markdown]
# ## Longer fine-tuning
#
# [The chapter](14_bert_and_transfer.ipynb#Fifty-labels) gives every network 400 steps with 1,000 labels of order.
# Then BERT is right for 0.86 to 0.88 of the test sentences, and a network from scratch for one half.
# Do 400 steps decide this?
# Here are both with four times as many, at the rate 0.001, which falls to 0 in 1,600 steps; three seeds each, made beforehand.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=5.6, height=3.2,
    alt="Validation accuracy over 1,600 steps of fine-tuning. Three lines of BERT rise to 0.85 to 0.91 in 800 steps and stay there; "
    "three lines from scratch stay at one half for 400 steps or more, and end at 0.53 to 0.57.",
)  # fmt: skip
ended = {}
for name, label, color in (("longer_bert", "BERT", "key"), ("longer", "from scratch", "wrong")):
    ended[label] = cu.stored_runs("bert_and_transfer", name)
    for seed, run in enumerate(ended[label]):
        line = cu.COLORS[color], None if seed else label
        ax.plot(*zip(*run.curves["val"], strict=True), color=line[0], label=line[1])
ax.axhline(0.5, color="0.5", linestyle=":", linewidth=1)
ax.set(xlabel="Step of fine-tuning", ylabel="Validation accuracy", ylim=(0.45, 1))
ax.legend()
print(
    {label: [run.result["order 1000"] for run in runs] for label, runs in ended.items()},
    "on the test",
)
fig

# %% [markdown]
# BERT had converged: in the second half of the longer training its validation accuracy moves by 0.03 at most, and the mean of the three tests is 0.874 after 400 steps and after 1,600.
# From scratch, learning begins after 400 steps or later and brings 0.53 to 0.56 on the test: at this rate, four times the steps do not replace the pretraining.
# More labels might; that was not tried.


# %% [markdown]
# ## Before masks: the autoencoder
#
# A classifier learns $P(\text{label} \mid \text{text})$ alone; a language model also learns which texts there are, and needs no labels for it.
# An **autoencoder** is asked for its own input.
# It needs no labels either, and it was a beginning for deep networks before BERT ([Erhan et al., 2010](https://jmlr.org/papers/v11/erhan10a.html), study why such a beginning helps).
# Here is one as a fourth beginning for the two tasks of the chapter: BERT's network, the same sentences, steps and rates, asked for *every* token with none hidden.
# Three seeds each, lowest and highest accuracy on the test.

# %%
tasks = ["order 50", "order 1000", "tense 50"]  # task and number of labels
beginnings = {
    name: cu.stored_runs("bert_and_transfer", "transfer", beginning=name)
    for name in ("from scratch", "GPT", "BERT")
}
beginnings["autoencoder"] = cu.stored_runs("bert_and_transfer", "autoencoder")


def spread(runs, name):
    values = [run.result[name] for run in runs]
    return f"{min(values):.2f}–{max(values):.2f}"


losses = [run.result["asked"] for run in beginnings["autoencoder"]]
print("loss of the autoencoder:", losses)
pd.DataFrame(
    [[spread(runs, task) for task in tasks] for runs in beginnings.values()],
    index=list(beginnings),
    columns=tasks,
)

# %% [markdown]
# The autoencoder answers without a fault: its loss is 0.
# It has learned to copy, since each place sees the token that it is asked for.
# For the tasks this was worth nothing: on order it stays at one half, with 50 labels and with 1,000, and on the tense it is where the network from scratch is.
#
# Two things can be done about it.
# The network can have a narrow place through which not everything fits; that was not tried here.
# Or the input can be damaged: a **denoising autoencoder** ([Vincent et al., 2008](https://dl.acm.org/doi/10.1145/1390156.1390294)) restores what was there before.
# BERT's masks are such damage, and the loss counts only the damaged places (and the few picked ones that were left as they are).

# %% [markdown]
# ## What came after
#
# Open a language model of the Llama family ([Touvron et al., 2023](https://arxiv.org/abs/2302.13971)), and you find [GPT](13_gpt.ipynb#GPT-in-one-class) with three parts exchanged; a fourth came with the largest models of its second generation.
#
# **RMSNorm** ([Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)) divides by the root of the mean square.
# It subtracts no mean and adds no bias: $g \odot x \big/ \sqrt{\frac1d\sum_i x_i^2 + \varepsilon}$.
# By hand: $(3, 4)$ has the mean square 12.5, the root 3.54, and becomes $(0.85, 1.13)$.
#
# **[Rotary positions](09_positions.ipynb)** ([Su et al., 2021](https://arxiv.org/abs/2104.09864)) turn queries and keys; there is no table.
#
# **SwiGLU** ([Shazeer, 2020](https://arxiv.org/abs/2002.05202)) has a gate: $\big(\mathrm{silu}(xW_g) \odot xW_u\big)W_d$ with $\mathrm{silu}(a) = a\,\sigma(a)$.
# Three matrices instead of two; with two thirds of the width there are as many parameters.
#
# **Fewer heads of keys and values.**
# With one for all query heads it is **multi-query attention**, MQA ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)).
# With several, each shared by a group, it is **[grouped-query attention](C_glossary.ipynb#grouped-query-attention)**, GQA ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)).
# The first Llama has neither; the 70-billion model of the second has GQA ([Touvron et al., 2023b](https://arxiv.org/abs/2307.09288)).
#
# In `cu.GPT` each is an argument.
# First by hand:


# %%
def rms_norm(x, gain):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


def gated(x, network):
    parts = network.gate, network.up, network.down
    gate, up, down = (part.weight.T for part in parts)
    return (F.silu(x @ gate) * (x @ up)) @ down


print(rms_norm(torch.tensor([3.0, 4.0]), torch.ones(2)))
norm = nn.RMSNorm(32, eps=1e-6)
cu.equal(lambda x: rms_norm(x, norm.weight), norm, torch.randn(5, 32))
small = cu.GPT(50, embed_dim=32, num_heads=4, activation="swiglu", dropout=0.0)
network = small.layers[0].feed_forward
cu.equal(lambda x: gated(x, network), network, torch.randn(5, 32))

# %% [markdown]
# Grouped queries are full attention whose heads of keys and values are equal in groups.
# Written out twice each, two shared heads give the same as four:

# %%
grouped = cu.MultiHeadAttention(32, 4, num_kv_heads=2)
full = cu.MultiHeadAttention(32, 4)
state = grouped.state_dict()
for name in ("key_proj", "value_proj"):
    for kind in ("weight", "bias"):
        by_head = state[f"{name}.{kind}"].unflatten(0, (2, 8))  # two heads of 8
        state[f"{name}.{kind}"] = by_head.repeat_interleave(2, dim=0).flatten(0, 1)
full.load_state_dict(state)
x = torch.randn(2, 6, 32)
print("largest difference:", f"{(grouped(x, x, x) - full(x, x, x)).abs().max():.0e}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A GPT of 2 blocks, 4 heads and 64 features, in single precision, with two heads of keys and values instead of four. How many bytes does its cache hold for each token?",
    (0.0, 2048.0),
    answer=512.0,
    within=10,
    wrong={
        "less": "Keys and values, two blocks, two heads of 16 features, four bytes each: what did you leave out?",
        "more": "How many heads are stored, those of the queries or those of the keys?",
        1024.0: "That is with four heads of keys and values.",
    },
    why="2 · 2 · 2 · 16 numbers of 4 bytes.",
)

# %%
variants = {
    "GPT of the last chapter": {},
    "RMSNorm": {"norm": "rms"},
    "rotary": {"rotary": True},
    "SwiGLU": {"activation": "swiglu"},
    "GQA, two heads": {"num_kv_heads": 2},
    "MQA": {"num_kv_heads": 1},
}
together = {"norm": "rms", "rotary": True, "activation": "swiglu",
            "num_kv_heads": 2, "bias": False}  # fmt: skip
rows = {}
for name, options in (variants | {"all, with GQA": together}).items():
    model = cu.GPT(512, embed_dim=64, num_heads=4, num_layers=2, max_len=32, **options)
    written = model.start()
    model.step(torch.zeros(1, 10, dtype=torch.long), written)
    held = sum(cache.keys.nbytes + cache.values.nbytes for cache in written.caches)
    parameters = sum(p.numel() for p in model.parameters())
    rows[name] = {"parameters": f"{parameters:,}", "cache, bytes a token": held // 10}
pd.DataFrame(rows).T

# %% [markdown]
# Five norms lose 64 numbers each, and rotary positions save the table of 32 rows.
# SwiGLU has nearly the same number of parameters.
# With two heads of keys and values the cache is a half, with one a quarter.
# The last row has the first three exchanges, two heads of keys and values, and no biases, as Llama has none.
#
# ## What the exchanges bring
#
# Each variant was trained as the GPT of [the last chapter](13_gpt.ipynb): the same text, 400 steps, the same rate, three seeds.
# The rate was chosen for the GPT, not for each variant.
# The line is what counted trigrams have on the same sentences.
# (*Together* is the last row of the table above.)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
by_variant = {"GPT": cu.stored_runs("gpt", "ladder", parts="+ second block", steps=400)}
for run in cu.stored_runs("bert_and_transfer", "exchanged"):
    by_variant.setdefault(run.config["variant"], []).append(run)
(counted,) = (run.result for run in cu.stored_runs("gpt", "counted", share=1))
picture, ax = cu.subplots(
    width=6.4, height=3,
    alt="Held-out losses of seven models, three seeds each, as points beside the loss of counted trigrams. "
    "Rotary positions alone lie at 1.93 to 1.95 and all exchanges together at 2.00 to 2.01; the others lie beside the GPT, near the trigrams.",
)  # fmt: skip
for place, runs in enumerate(by_variant.values()):
    ax.plot([run.result["loss"] for run in runs], [place] * len(runs), "o", color="C0", alpha=0.7)
ax.set_yticks(range(len(by_variant)), by_variant)
ax.invert_yaxis()
ax.axvline(counted["3"], color="0.4", linestyle="--", linewidth=1)
ax.annotate("trigrams", (counted["3"], 1), (3, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", color="0.3")  # fmt: skip
ax.set(xlabel="Held-out loss, nats a token")
picture

# %%
held_out = {name: spread(runs, "loss") for name, runs in by_variant.items()}
for n, name in (("3", "trigrams"), ("2", "bigrams")):
    held_out[f"counted {name}"] = f"{counted[n]:.2f}"
pd.Series(held_out).to_frame("held-out loss")

# %% [markdown]
# The GPT ends at 2.10 to 2.11, level with the simple trigrams (2.12), a little behind the best counts (modified Kneser–Ney, 2.04),
# and far below the bigrams (2.68).
# RMSNorm and SwiGLU cannot be distinguished from the GPT: their ranges overlap with its range.
# *Rotary positions* are clearly better, 1.93 to 1.95.
# Is it the turning, or that the table of positions is not there to be learned?
# This comparison does not say; [Positions](09_positions.ipynb) has tables and rotations side by side on other tasks.
#
# Sharing heads costs a little or nothing: with two heads 2.10 to 2.13, with a single one 2.13 to 2.18, for a cache of a quarter.
# All together (and without biases) are better than the GPT and worse than rotary positions alone.
# None of this decides what large models should do: it is 400 steps of a network with 0.13 million weights, at one rate.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three seeds of 400 steps rotary positions lower the loss of a small GPT, one head of keys and values raises it, and "
    "RMSNorm and SwiGLU are level with the original."
):
    low = {name: min(run.result["loss"] for run in runs) for name, runs in by_variant.items()}
    high = {name: max(run.result["loss"] for run in runs) for name, runs in by_variant.items()}
    assert high["rotary"] < low["together"] and high["together"] < low["GPT"]
    assert high["GPT"] < low["MQA"] and abs(high["GPT"] - counted["3"]) < 0.03
    level = [(low[name], high[name]) for name in ("RMSNorm", "SwiGLU")]
    assert all(lowest < high["GPT"] and low["GPT"] < highest for lowest, highest in level)
    assert max(run.result["order 1000"] for run in beginnings["autoencoder"]) < 0.53

# %% [markdown]
# Back to [BERT and transfer](14_bert_and_transfer.ipynb).

# %% [markdown]
# ## References
#
# - Ainslie, J., Lee-Thorp, J., de Jong, M., Zemlyanskiy, Y., Lebrón, F. and Sanghai, S. (2023).
#   [GQA: training generalized multi-query transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245).
#   EMNLP.
# - Devlin, J., Chang, M.-W., Lee, K. and Toutanova, K. (2019).
#   [BERT: pre-training of deep bidirectional transformers for language understanding](https://arxiv.org/abs/1810.04805).
#   NAACL.
# - Erhan, D., Bengio, Y., Courville, A., Manzagol, P.-A., Vincent, P. and Bengio, S. (2010).
#   [Why does unsupervised pre-training help deep learning?](https://jmlr.org/papers/v11/erhan10a.html) Journal of Machine Learning Research 11.
# - Lan, Z. et al. (2020).
#   [ALBERT: a lite BERT for self-supervised learning of language representations](https://arxiv.org/abs/1909.11942).
#   ICLR.
# - Liu, Y. et al. (2019).
#   [RoBERTa: a robustly optimized BERT pretraining approach](https://arxiv.org/abs/1907.11692).
# - Shazeer, N. (2019).
#   [Fast transformer decoding: one write-head is all you need](https://arxiv.org/abs/1911.02150).
# - Shazeer, N. (2020).
#   [GLU variants improve Transformer](https://arxiv.org/abs/2002.05202).
# - Su, J., Lu, Y., Pan, S., Murtadha, A., Wen, B. and Liu, Y. (2021).
#   [RoFormer: enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864).
# - Touvron, H. et al. (2023a).
#   [LLaMA: open and efficient foundation language models](https://arxiv.org/abs/2302.13971).
# - Touvron, H. et al. (2023b).
#   [Llama 2: open foundation and fine-tuned chat models](https://arxiv.org/abs/2307.09288).
# - Vincent, P., Larochelle, H., Bengio, Y. and Manzagol, P.-A.
#   (2008).
#   [Extracting and composing robust features with denoising autoencoders](https://dl.acm.org/doi/10.1145/1390156.1390294).
#   ICML.
# - Zhang, B. and Sennrich, R. (2019).
#   [Root mean square layer normalization](https://arxiv.org/abs/1910.07467).
#   NeurIPS.
