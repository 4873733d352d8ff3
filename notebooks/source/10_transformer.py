# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The Transformer
#
# **Which part of a translator knows what?**
# Let's take one apart while it speaks.
# The English goes down the encoder, the decoder says it in French, and each box adds something on the way.
# Most of them are attention layers and small networks.
# You can **ablate** a box, that is, make it add zeros, and in a sentence this short you will often see no change at all.
# But a few boxes change everything.
# Try the one at the top left first, and then find out what the others do.

# %% [markdown] tags=["paths"]
# On the path to GPT: [Network, norm and residual](#Network,-norm-and-residual), [The two blocks](#The-two-blocks).
# On the path to a real model and to images: [The whole on one page](#The-whole-on-one-page), [Network, norm and residual](#Network,-norm-and-residual), [The two blocks](#The-two-blocks).

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.transformer import blocks, first_epochs, machine

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.machine("Tom doesn't know Anna.")

# %% [markdown]
# Each sentence under *Try* comes with a question, and the machine notices when you have found the answer.
# Click on a box to see its attention maps and its numbers.
# What the machine calls a *layer* and its *feed-forward* are the *block* and its *network* on this page.
#
# You know most of the boxes from [Multi-head attention](08_multi_head_attention.ipynb), [Positions](09_positions.ipynb) and [Masks](04_masks.ipynb).
# We'll add the missing ones and build both blocks, and one function in them is yours.
# If you then go on to [The whole model](#The-whole-model), you also train your model, and load the weights of this very translator into it.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - draw the Transformer, and say where the memory leaves the encoder;
# - write its blocks, equal to PyTorch's in outputs and gradients, and (in *The whole model*) train them;
# - read how much each part adds to the residual stream, and test whether the model needs it.

# %% jupyter={"source_hidden": true}
cu.recall("masks", "multi_head_attention", "self_attention")

# %% [markdown]
# ## The whole on one page
#
# The **Transformer** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)) has an **encoder**, which reads the whole source at once, and a **decoder**, which writes the target token by token.
# The decoder looks back at its own words, and across at what the encoder has made of the source.
# So there are three kinds of attention, which differ in who asks, who answers, and what is hidden.
#
# | attention | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention of the encoder | source | source | padding of the source |
# | masked self-attention of the decoder | target | target | causal |
# | [cross-attention](C_glossary.ipynb#cross-attention) | target | memory | padding of the source |
#
# The **memory** is what leaves the *last* encoder block: one vector for each source token.
# Every decoder block looks at this same memory (follow the green line in the machine).

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "top_of_the_encoder")

# %% [markdown]
# Such a model learns by **[teacher forcing](C_glossary.ipynb#teacher-forcing)**.
# We let the decoder read the right translation, one position late, and at each position it has to say the next word.
# Thanks to the causal mask it sees only the earlier words.
# A *single* **forward pass**, that is, one run of the model from its input to its logits, then asks for all the words at once.
# The picture has two sentences, and the shorter one is padded to the same length.
# The loss leaves the padding out.

# %%
pairs = [("oscar was a doctor .", "oscar était médecin ."),
         ("she has a red car .", "elle a une voiture rouge .")]  # fmt: skip
translator = machine.translator()
source, source_lens = machine.batch_of([english for english, _ in pairs])
reads, says = machine.shifted([french for _, french in pairs])
logits = translator(source, source_lens, reads)  # (2, 7, French words)
each = F.cross_entropy(logits.mT, says, reduction="none")
real = says != 0  # 0 is padding
loss = each[real].mean()
print(f"loss per word {loss:.4f}, over {real.sum()} of {real.numel()} positions")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    2, 1, width=7.6, height=3.0,
    alt="Two French sentences in three rows each. The first row is what the decoder reads, from start on. The second is "
    "what it has to say, the same words one position further left, with the end. The third is the loss at each position. "
    "The shorter sentence has padding at the end, gray, where no loss counts.",
)  # fmt: skip
for ax, ids_in, ids_out, paid in zip(axes, reads, says, each.detach(), strict=True):
    rows = [machine.tokens_of(ids_in), machine.tokens_of(ids_out)]
    rows.append([f"{x:.3f}" if token else "–" for x, token in zip(paid, ids_out, strict=True)])
    for line, cells in enumerate(rows):
        for place, text in enumerate(cells):
            is_real = bool(ids_out[place])
            color = ("key", "value", "line")[line] if is_real else "rule"
            ax.fill_between(
                [place + 0.04, place + 0.96], line + 0.08, line + 0.92,
                color=cu.COLORS[color], alpha=0.18, linewidth=0,
            )  # fmt: skip
            ax.text(place + 0.5, line + 0.5, text, ha="center", va="center", fontsize=9)
    ax.set(xlim=(0, len(ids_in)), ylim=(3, 0), xticks=[])
    ax.set_yticks([0.5, 1.5, 2.5], ["reads", "has to say", "loss"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
fig

# %% [markdown]
# Each column is one question: having read everything up to here, which word comes next?
# Our translator has been trained, so its loss is close to zero everywhere.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The decoder reads what it has to say, one position later, and padding doesn't count."
):
    assert torch.equal(reads[:, 1:][real[:, 1:]], says[:, :-1][real[:, 1:]])
    masked = F.cross_entropy(logits.flatten(0, 1), says.flatten(), ignore_index=0)
    assert torch.isclose(loss, masked, atol=1e-5)

# %% [markdown]
# ## Network, norm and residual
#
# Three parts of the machine are new, and for each we ask why it is there.
#
# **Why a network?**
# Once its weights are fixed, attention only takes averages, so it is linear in the values.
# To compute something *new* from what was gathered, each block has a second sublayer, the **[position-wise feed-forward network](C_glossary.ipynb#position-wise-network)**, or *network* for short.
# This network has two linear layers with a ReLU between them, and sees each token on its own,
#
# $$\mathrm{FFN}(x) = \max(0,\ xW_1 + b_1)\,W_2 + b_2 .$$
#
# $W_1$ leads from $d$ numbers to `ffn_dim`, often $4d$, and $W_2$ leads back.
# For example, with $d = 1$, $W_1 = (1, -1)$, $W_2 = (1, 1)^\top$ and no biases, we get $\max(0, x) + \max(0, -x) = |x|$, which no average with fixed weights could give.


# %%
def network(embed_dim, ffn_dim, dropout=0.0):
    """The same two layers for each token: (…, embed_dim) → (…, embed_dim)."""
    first, second = nn.Linear(embed_dim, ffn_dim), nn.Linear(ffn_dim, embed_dim)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(dropout), second)


# %% [markdown]
# **Why a norm?**
# Many layers add to a vector, so its size could grow from layer to layer.
# A **norm** brings a group of numbers to mean 0 and variance 1, and then multiplies by a learned scale and adds a learned shift.
# What matters is which numbers form a group.
# Here are two sentences of two tokens with four features each, and numbers of one group have the same color.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
pair = torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8]], [[5, 6, 7, 8], [5, 1, 0, -1]]]).float()
groups = {"layer norm": (2,), "over the sentence": (1, 2), "batch norm": (0, 1)}
fig, axes = cu.subplots(
    1, 3, width=7.6, height=2.3,
    alt="Sixteen numbers three times, colored by group. Layer norm: each row, that is each token, is a group. Over "
    "the sentence: two rows each. Batch norm: each column, that is each feature, through both sentences.",
)  # fmt: skip
palette = [cu.COLORS[name] for name in ("key", "wrong", "query", "value")]
for ax, (name, over) in zip(axes, groups.items(), strict=True):
    for s, t, f in torch.cartesian_prod(*map(torch.arange, pair.shape)).tolist():
        group = {(2,): 2 * s + t, (1, 2): s, (0, 1): f}[over]
        row = 2.5 * s + t
        ax.fill_between(
            [f + 0.03, f + 0.97], row + 0.03, row + 0.97, color=palette[group], alpha=0.3
        )
        ax.text(f + 0.5, row + 0.5, f"{pair[s, t, f]:.0f}", ha="center", va="center")
    ax.set(xlim=(0, 4), ylim=(4.5, 0), xticks=[], title=name)
    ax.set_yticks([0.5, 1.5, 3, 4], ["0, 0", "0, 1", "1, 0", "1, 1"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
axes[0].set_ylabel("sentence, token")
fig

# %% [markdown]
# In **[layer norm](C_glossary.ipynb#layer-norm)** ([Ba et al., 2016](https://arxiv.org/abs/1607.06450)) a group is one token, so each token is normalized by itself.
# For example, the token $(1, 2, 3, 4)$ has mean 2.5 and variance 1.25, so its 1 becomes $-1.5/\sqrt{1.25} = -1.342$.
# **Batch norm** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) mixes in the other sentences of the batch, and their padding.

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "leaking_norm")

# %% [markdown]
# **Why a sum?**
# A sublayer $f$ (attention or network) doesn't replace its input.
# Its output is *added* to the input, $x + f(x)$, and this is called a **[residual connection](C_glossary.ipynb#residual)** ([He et al., 2016](https://arxiv.org/abs/1512.03385)).
# Vaswani et al. put the norm after the sum (**post-norm**).
# GPT-2 and most models since put it before the sublayer (**pre-norm**, [Xiong et al., 2020](https://arxiv.org/abs/2002.04745)), as our machine does:
#
# $$\text{after:}\quad \mathrm{norm}\big(x + f(x)\big) \qquad\qquad \text{before:}\quad x + f\big(\mathrm{norm}(x)\big)$$
#
# With [pre-norm](C_glossary.ipynb#post-norm-and-pre-norm) a sublayer that adds zeros lets $x$ pass as it is, whereas post-norm rescales it anyway.
# In pre-norm only the sublayers read normalized vectors, so such a stack ends with one more norm for the sum itself.


# %%
class Residual(nn.Module):
    """x plus a sublayer of x, with the norm before the sublayer or after the sum."""

    def __init__(self, embed_dim, *, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# In the machine you can see these sums.
# The line that runs down each side is the **residual stream**, a vector that starts as an embedding and collects what one part after another adds.
# The bar in each box compares the size of what the part adds with the size of the stream that it adds to, $\lVert f(\mathrm{norm}(x)) \rVert / \lVert x \rVert$.
# Do these bars tell us which part the translator needs?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We ablate one part at a time and translate 200 new sentences. Without which of these three are the translations worst?",
    [
        "the decoder's first cross-attention",
        "the decoder's first self-attention",
        "the decoder's positions",
    ],
    answer="the decoder's positions",
    wrong={
        "the decoder's first cross-attention": "Its bar is the longest of all. But is it the only way from the English to the decoder?",
        "the decoder's first self-attention": "Without it the first block doesn't look back at the French. Does the second block?",
    },
    why="Nearly half of the BLEU is lost without the decoder's positions, and a third without its first cross-attention, although that one has the longest bar. The last cross-attention brings the English, too.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
worth = machine.worth()  # a row for each part; 200 sentences, each part ablated by itself
larger = cu.stored_run("transformer", "everyday_worth").result
elsewhere = pd.DataFrame(
    {part: {column: larger.get(f"{column}, {part}") for column in worth} for part in worth.index}
).T.astype(float)
fig, axes = cu.subplots(
    1, 2, width=8.4, height=3.6, sharey=True,
    alt="Twelve parts of two translators, each a point: how much it adds, and how much BLEU is lost without it. "
    "In ours five points lie far to the right and high up, and the others low on the left. In the larger one they rise less evenly: the positions of the source lose 0.12, "
    "while the decoder's last self-attention, which adds a little more, loses hardly anything.",
)  # fmt: skip
kinds = {"cross_attention": ("cross-attention", "query", "D"), "attention": ("self-attention", "key", "o"),
         "feed_forward": ("network", "value", "s"), "positions": ("positions", "line", "^")}  # fmt: skip
for ax, parts, title in (
    (axes[0], worth, "our translator"),
    (axes[1], elsewhere, "a larger translator"),
):
    for ending, (name, color, marker) in kinds.items():
        others = parts.index.str.contains("cross") if ending == "attention" else False
        rows = parts[parts.index.str.endswith(ending) & ~pd.Series(others, parts.index)]
        ax.scatter(rows["bar"], rows["lost"], color=cu.COLORS[color], marker=marker, label=name)
    ax.set(title=title, xlabel="what it adds, compared with the stream", xlim=(0, None))
for part, name, offset in (
    ("decoder.1.self_attention", "half of the sentences change", (8, -13)),
    ("source_embedding.positions", "of the source", (6, 3)),
):
    place = elsewhere.loc[part, "bar"], elsewhere.loc[part, "lost"]
    axes[1].annotate(name, place, offset, textcoords="offset points", fontsize=9)
axes[0].set(ylabel="BLEU lost without it", ylim=(-0.06, None))
axes[0].legend(fontsize=9, loc="upper left")
fig

# %% [markdown]
# [BLEU](C_glossary.ipynb#bleu) measures how many words, and how many runs of two to four words, a translation shares with the right one.
# It is 0 if the two share nothing and 1 if they are the same.
# In our translator the parts that add little are hardly missed.
# The five long bars all matter, but not in their order.
# The larger translator, whose heads you saw at the top of [Multi-head attention](08_multi_head_attention.ipynb), has read real sentences, and there the bars tell us less.
# Its decoder's last self-attention adds more than the positions of the source do.
# Ablating it changes half of the sentences, and yet costs only 0.016 BLEU.
# The positions cost 0.118.
# So **the bars tell us a lot, but not everything**.
# To know how much a model needs a part, ablate the part and score what comes out, because a changed sentence isn't yet a worse one.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("By PyTorch's layer norm the 1 becomes −1.342."):
    assert round(F.layer_norm(pair, pair.shape[-1:])[0, 0, 0].item(), 3) == -1.342
with cu.guard(
    "One network makes 8 numbers of the 4 of each token, and of equal tokens the same 8."
):
    made = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))(torch.ones(2, 3, 4))
    assert made.shape == (2, 3, 8) and torch.allclose(made, made[:1, :1].expand(2, 3, 8))
with cu.guard(
    "In ours the five longest bars are the five parts that are missed most, in another order; in the larger translator the bars tell less."
):
    bars, others = worth.dropna(), elsewhere.dropna()
    assert bars["bar"].rank().corr(bars["lost"].rank()) > 0.93
    assert 0.7 < others["bar"].rank().corr(others["lost"].rank()) < 0.9
    assert bars["lost"].idxmax() == bars["changed"].idxmax() == "decoder.1.cross_attention"
    assert bars["changed"].max() > 0.75 and 0.4 < bars["lost"].max() < 0.55
    long, missed = (bars.nlargest(5, column) for column in ("bar", "lost"))
    assert set(long.index) == set(missed.index) and list(long.index) != list(missed.index)
    assert missed["lost"].min() > 0.2 and bars.drop(missed.index)["lost"].max() < 0.04
    lost = bars["lost"]
    assert long.index[0] == "decoder.0.cross_attention"
    assert lost["target_embedding.positions"] > lost[long.index[0]] + 0.08
    assert lost[long.index[0]] > lost["decoder.0.self_attention"]
    last, places = others.loc["decoder.1.self_attention"], others.loc["source_embedding.positions"]
    assert last["bar"] > places["bar"] and round(places["lost"], 3) == 0.118
    assert 0.45 < last["changed"] < 0.6 and round(last["lost"], 3) == 0.016

# %% [markdown]
# ## The two blocks
#
# Two kinds of blocks are made of these parts.
# The **encoder block** is self-attention and then the network, each inside its residual connection.
# A `Residual` wants its sublayer as a *function* of one argument, because the residual decides what the sublayer reads: `x` itself or its norm.
# The network is such a function already.
# Attention takes queries, keys, and values, so we write a small function that makes all three from one `y`.


# %%
class EncoderBlock(nn.Module):
    """(batch, m, embed_dim) → the same shape."""

    def __init__(self, embed_dim, num_heads, ffn_dim, *, dropout=0.1, norm_first=True):
        super().__init__()
        options = {"dropout": dropout, "norm_first": norm_first}
        self.attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = network(embed_dim, ffn_dim, dropout)
        self.around_attention = Residual(embed_dim, **options)
        self.around_feed_forward = Residual(embed_dim, **options)

    def forward(self, x, attn_mask=None):
        def attend(y):
            return self.attention(y, y, y, attn_mask)

        x = self.around_attention(x, attend)
        return self.around_feed_forward(x, self.feed_forward)


# %% [markdown]
# ### Exercise 1 · The decoder block
#
# *build · 12 minutes*
#
# Now you write the decoder block, which is masked self-attention, then cross-attention to the **memory**, the vectors that leave the last encoder block, one for each source token, and then the network.
# `block` has the three sublayers `self_attention`, `cross_attention`, and `feed_forward`, and their residuals `around_self`, `around_cross`, and `around_feed_forward`.
# Call them just as the encoder block does.
# Each attention gets one of the two masks, where True means "may attend".
# Row i of `attn_mask` says which target tokens token i may attend to, and `memory_mask` says which positions of the memory are words and which are padding.
# The model makes both masks, so just hand them on.


# %% tags=["exercise", "build"]
def my_sublayers(block, x, memory, attn_mask=None, memory_mask=None):
    """(b, n, d), memory (b, m, d), masks (n, n) and (b, 1, 1, m) → (b, n, d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_sublayers(my_sublayers)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_sublayers_solution(block, x, memory, attn_mask=None, memory_mask=None):
    """Queries come from x each time; keys and values in the middle from the memory."""

    def look_back(y):
        return block.self_attention(y, y, y, attn_mask)

    def look_at_memory(y):
        return block.cross_attention(y, memory, memory, memory_mask)

    x = block.around_self(x, look_back)
    x = block.around_cross(x, look_at_memory)
    return block.around_feed_forward(x, block.feed_forward)


cu.checks.my_sublayers(my_sublayers_solution)

# %% [markdown]
# A class with the parts wraps your function, just as in `EncoderBlock` (open the cell to read it).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sublayers = cu.choose(my_sublayers, blocks.three_sublayers)


class DecoderBlock(nn.Module):
    """(batch, n, embed_dim), memory (batch, m, embed_dim) → (batch, n, embed_dim)."""

    def __init__(self, embed_dim, num_heads, ffn_dim, *, dropout=0.1, norm_first=True):
        super().__init__()
        options = {"dropout": dropout, "norm_first": norm_first}
        self.self_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.cross_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = network(embed_dim, ffn_dim, dropout)
        self.around_self = Residual(embed_dim, **options)
        self.around_cross = Residual(embed_dim, **options)
        self.around_feed_forward = Residual(embed_dim, **options)

    def forward(self, x, memory, attn_mask=None, memory_mask=None):
        return sublayers(self, x, memory, attn_mask, memory_mask)


# %% [markdown]
# We compare both blocks with PyTorch's, with the same random weights and a padded source.
# PyTorch's masks have True where ours have False, so `in_torch` inverts them, and it translates the names.

# %%
for block, layer in ((EncoderBlock, nn.TransformerEncoderLayer),
                     (DecoderBlock, nn.TransformerDecoderLayer)):  # fmt: skip
    cu.equal(*blocks.in_torch(block, layer))

# %% [markdown]
# ## The whole model
#
# Only the two ends are left.
# At the top a token becomes a row of an embedding matrix, to which we add its position.
# How large should such a row be at the start?
# PyTorch draws rows with a standard deviation of 1, and the paper then multiplies them by $\sqrt d$.
# With $d = 64$ they would be eight times as large, and whatever the blocks add would be small in comparison.
# That is why the last two lines of `__init__` draw rows with a standard deviation of $1/\sqrt d$.
# The factor $\sqrt d$ then makes them about as large as the positions.
# At the bottom the **output layer** turns each vector of the decoder into a logit for every word.


# %%
class Transformer(nn.Module):
    """Encoder and decoder; source and target are ids, (batch, m) and (batch, n)."""

    def __init__(self, source_size, target_size, *, embed_dim, num_heads, ffn_dim,
                 num_layers, dropout=0.1, norm_first=True):  # fmt: skip
        super().__init__()
        sizes = (embed_dim, num_heads, ffn_dim)
        options = {"dropout": dropout, "norm_first": norm_first}
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=0)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=0)
        self.positions = cu.SinusoidalPositions(embed_dim, max_len=128)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderBlock(*sizes, **options)
                                     for _ in range(num_layers))  # fmt: skip
        self.decoder = nn.ModuleList(DecoderBlock(*sizes, **options)
                                     for _ in range(num_layers))  # fmt: skip
        last = nn.LayerNorm if norm_first else nn.Identity
        self.encoder_norm, self.decoder_norm = last(embed_dim), last(embed_dim)
        self.output = nn.Linear(embed_dim, target_size)
        nn.init.normal_(self.source_embedding.weight, std=1 / math.sqrt(embed_dim))
        nn.init.normal_(self.target_embedding.weight, std=1 / math.sqrt(embed_dim))

    def embed(self, embedding, tokens):
        x = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(self.positions(x))

    def encode(self, source, source_lens):
        """The memory (b, m, embed_dim) and its mask."""
        mask = cu.padding_mask(source_lens, source.shape[1])
        x = self.embed(self.source_embedding, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, target, memory, memory_mask):
        """What `output` turns into logits, (b, n, embed_dim)."""
        x = self.embed(self.target_embedding, target)
        causal = cu.causal_mask(target.shape[1], device=target.device)
        for block in self.decoder:
            x = block(x, memory, causal, memory_mask)
        return self.decoder_norm(x)

    def features(self, source, source_lens, target):
        return self.decode(target, *self.encode(source, source_lens))

    def forward(self, source, source_lens, target):
        """Logits for teacher forcing, (b, n, target_size)."""
        return self.output(self.features(source, source_lens, target))


# %% [markdown]
# Your class is complete, so we train it.
# We let it read the 3,900 short sentences of [Bahdanau attention](06_bahdanau_attention.ipynb#Training-it) three times, which takes about ten seconds, and then ask for three new sentences.

# %% tags=["nbval-ignore-output"]
yours = first_epochs.new_model(Transformer, seed=0)
history = first_epochs.train(yours)
for english in ("tom has their watch .", "we must see them .", "adam doesn't know us ."):
    print(english, "→", *first_epochs.say(yours, [english]))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.2, height=2.8,
    alt="Loss on validation sentences after one, two, and three epochs. Your class falls from 1.6 to 0.34, and three stored "
    "runs beside it do the same. Without positions it falls to nearly 0.5, and without the two lines only to 1.1.",
)  # fmt: skip
rows_and_parts = {"slug": "transformer", "name": "rows_and_parts", "parts": 1}
for name, color, runs in (
    ("three stored runs", "key", cu.stored_runs("transformer", "own_class", kind="Transformer", large_rows=False)),
    ("without positions", "line", cu.stored_runs(**rows_and_parts, rows="small", positions=0)),
    ("without the two lines, at their best rate", "wrong", cu.stored_runs(**rows_and_parts, rows="large", positions=1, rate=0.02)),
):  # fmt: skip
    for run in runs:
        label = name if run is runs[0] else None
        ax.plot(*zip(*run.curves["val_loss"], strict=True), color=cu.COLORS[color], alpha=0.6, linewidth=1.2, label=label)  # fmt: skip
ax.plot(
    history.frame.index, history.frame["val_loss"], "o--", color=cu.COLORS["query"], label="yours"
)
ax.set(xlabel="Epoch", ylabel="Loss per token, validation", xticks=[1, 2, 3], ylim=(0, None))
ax.legend(fontsize=9)
fig

# %% [markdown]
# The loss falls, and after three epochs more than half of the test sentences come out word for word.
# **Without the last two lines of `__init__` the same class learns much less in three epochs**, even at the best of three learning rates.
# Is it because the large rows drown out the positions?
# Hardly, because with small rows the class learns even with no positions at all.
# The likelier reason is that large rows make everything the blocks add look small.
# If each part adds eight times as much to the large rows, the loss is half as high (at your class's learning rate).
#
# The machine's weights were trained for longer, so let's load them and ask your model for some French.

# %%
stored = machine.stored()
mine = Transformer(**stored.config, dropout=0.0).eval()
print(mine.load_state_dict(blocks.in_chapter_names(mine, stored.state)))
cu.equal(mine, translator, source, source_lens, reads)
for english in (
    "she has a red car .",
    "the old woman is sleeping .",
    "my mother likes the blue dress .",
):
    print(english, "→", machine.translate(mine, english))

# %% [markdown]
# Your model speaks French, with the same numbers as `cu.Transformer`.
#
# Before you trust a decoder, ask it three questions.
# Does it give the same logits whether it reads the words one by one or all at once?
# Does a later word change an earlier logit?
# Does it matter what the padding holds?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
with torch.no_grad():
    at_once = mine(source, source_lens, reads)
    apart = [mine(source, source_lens, reads[:, :t])[:, -1] for t in range(1, 8)]
    later, padded = reads.clone(), source.clone()
    later[:, 3], padded[source == 0] = 9, 7  # another word at position 3; another padding
    moved = (mine(source, source_lens, later) - at_once).abs().amax(dim=(0, 2))
    differences = {
        "one by one": (torch.stack(apart, dim=1) - at_once)[real].abs().max(),
        "later word, positions before it": moved[:3].max(),
        "later word, from its position on": moved[3:].min(),
        "other padding": (mine(padded, source_lens, reads) - at_once).abs().max(),
    }
for question, largest in differences.items():
    print(f"{question:32} {largest:.2f}")

# %% [markdown]
# A changed word moves the logits from its own position on, and in the other two tests nothing moves.
# You can put these three questions to any decoder.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("One by one is all at once; no later word and no padding changes an earlier logit."):
    moves = {name: value.item() for name, value in differences.items()}
    assert moves.pop("later word, from its position on") > 0.1
    assert max(moves.values()) < 1e-3

with cu.guard("Your class learns as the package's does, and without its two lines much less."):
    assert history.rows[0]["val_loss"] > 1 and history.rows[-1]["val_loss"] < 0.5
    own = pd.DataFrame([run.config | run.result for run in cu.stored_runs("transformer", "own_class")])  # fmt: skip
    assert own["largest difference from the package"].max() < 0.02
    assert own[~own.large_rows].exact.min() > 0.5 and own[own.large_rows].exact.max() < 0.1
with cu.guard(
    "That isn't for want of positions: it is part of it that the blocks add little to large rows."
):
    starts = pd.DataFrame([run.config | run.result for run in cu.stored_runs("transformer", "rows_and_parts")])  # fmt: skip
    starts = starts.groupby(["rows", "positions", "parts", "rate"])
    lowest, highest, bar = (
        starts.val_loss.min(),
        starts.val_loss.max(),
        starts["bar at the start"].mean(),
    )
    ours, large = (own[own.large_rows == is_large].val_loss for is_large in (False, True))
    rates = lowest["small", 1, 1], highest["large", 1, 1]
    assert ours.max() < 0.4 < rates[0].min() and rates[1][0.02] < min(
        1.3, large.min(), rates[1][0.05]
    )
    assert lowest["large", 1, 1].min() > 1 > 0.55 > highest["small", 0, 1, 0.007]
    assert min(lowest["large", 8, 1, 0.007], lowest["large", 0, 1, 0.007]) > 1.1
    assert highest["large", 1, 8, 0.007] < 0.85 and lowest["small", 1, 1 / 8, 0.007] > 0.6
    assert bar["small", 1, 1].min() > 0.15 and bar["large", 1, 1].max() < 0.03

# %% [markdown]
# ### Exercise 2 · Find the bug
#
# *bug · 9 minutes*
#
# Here are the three sublayers once more, with the norm before the sublayer, but this version has two mistakes.
# We put it into your model, which has no dropout, and ask for French in both modes.
# Find both mistakes, and write `fixed_block`.


# %%
def buggy_block(block, x, memory, memory_mask):
    """A decoder block with the norm before; x (b, n, d), memory (b, m, d)."""
    causal = cu.causal_mask(x.shape[1]) if block.training else None
    x = block.around_self.norm(x)
    x = x + block.self_attention(x, x, x, causal)
    x = block.around_cross.norm(x)
    x = x + block.cross_attention(x, memory, memory, memory_mask)
    x = block.around_feed_forward.norm(x)
    return x + block.feed_forward(x)


with machine.with_blocks(mine, buggy_block):
    for english in ("she has a red car .", "my mother likes the blue dress ."):
        print("training:", machine.translate(mine.train(), english))
        print("eval:    ", machine.translate(mine.eval(), english))

# %% [markdown]
# The first sentence comes out right all the same, so one good translation doesn't show that a model is right.


# %% tags=["exercise", "bug"]
def fixed_block(block, x, memory, memory_mask):
    """A decoder block with the norm before; x (b, n, d), memory (b, m, d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_block(fixed_block)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_block_solution(block, x, memory, memory_mask):
    """The causal mask in every mode; the norm for the sublayer, not for what is passed on.

    Read through the stack, the buggy block has the norm after the sum.
    """
    causal = cu.causal_mask(x.shape[1])
    y = block.around_self.norm(x)
    x = x + block.self_attention(y, y, y, causal)
    y = block.around_cross.norm(x)
    x = x + block.cross_attention(y, memory, memory, memory_mask)
    return x + block.feed_forward(block.around_feed_forward.norm(x))


cu.checks.fixed_block(fixed_block_solution)

# %% [markdown]
# ## Ablate it, and see
#
# A bar says how much a part adds.
# To hear what the part is good *for* we ablate it, as you did with a head in [Multi-head attention](08_multi_head_attention.ipynb).
# In Python this is a method of `cu.intervene`.
# An ablated sublayer adds zeros, and if positions are ablated, the vectors pass as they are.

# %%
with cu.intervene(translator) as acts:
    acts.ablate("decoder.0.self_attention")
    print("no look back:   ", machine.translate(translator, "oscar was a doctor ."))
with cu.intervene(translator) as acts:
    acts.ablate("source_embedding.positions")
    print("a bag of words: ", machine.translate(translator, "tom doesn't know anna ."))
print("each word alone:", machine.without("her bottle is full .", "encoder.attention"))

# %% [markdown]
# The failures hint at what the parts were for.
# Without its first look back the decoder loses track of what it has said, so Oscar is a doctor twice.
# Without positions *Tom doesn't know Anna* and *Anna doesn't know Tom* are the same bag of words, and both come out as the sentence about Anna.
#
# The bottle is a warning against quick explanations.
# When each English word is alone, *her* seems to have lost the bottle, which is feminine in French.
# But nearly all other sentences with *her*, *his*, *my*, or *your* keep the right form, because the decoder can look at the noun itself (tested in the [next chapter](11_translating.ipynb#Two-roads-to-an-article)).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We ablate both cross-attentions and translate “oscar was a doctor .” and “she has a red car .” What does the translator say?",
    [
        "noise",
        "nothing at all",
        "French, a sentence for each",
        "French, one sentence for both",
    ],
    answer="French, one sentence for both",
    wrong={
        "noise": "The decoder still knows French. What does it know about the English?",
        "nothing at all": "Did any French sentence that it learned from end with its first word?",
        "French, a sentence for each": "Which box could still tell the decoder about Oscar?",
    },
    why="Nothing of the source arrives, and both begin with the same start token. So the decoder is a language model, and takes its likeliest word each time.",
)

# %%
both, dog = "decoder.cross_attention", "the dog is behind the house ."
print("both cross-attentions:", machine.without("oscar was a doctor .", both))
print("the same:             ", machine.without("she has a red car .", both))
print("six other boxes:      ", machine.without(dog, "encoder.attention", "feed_forward"))

# %% [markdown]
# The last line is the most surprising: *the dog is behind the house* is still right with half of the twelve boxes ablated.
# About seven in ten new sentences stay as they were, too.
# The larger translator is different: ablating its networks alone costs nearly all of its BLEU.
# So each of these six boxes adds something to every sentence, and our translator can do without all six in most of them.
# In [What heads learn](19_what_heads_learn.ipynb#Who-is-hurt?) two heads can each be spared, but not both.
# **A part that is used is not yet a part that is needed.**
#
# <details><summary>How sure is this?</summary>
#
# We replaced outputs by zeros, not by their means.
# Our translator is one small model, and a grammar has made its short sentences.
# The larger translator is a single model, too, and it translated 200 sentences that it had read in training.
# In the figure, the rank correlation between what a part adds and what is lost without it is 0.97 for our translator and 0.80 for the larger one.
# Your class was trained with three seeds, and from the same weights its losses differed from those of `cu.Transformer` by less than 0.005.
# The learning rate is the best of three, chosen for your class and for the one with large rows separately (0.02 for the latter, whose loss stays above 1.5 at your rate).
# At your rate the loss is between 0.46 and 0.49 without positions, and at least 1.2 for large rows with positions eight times as large.
# At the start a part adds 18% of the stream with small rows, and 2.5% with large ones.
# If the parts add eight times as much, the loss of the large rows drops to between 0.75 and 0.78.
# If they add an eighth as much, the loss of the small rows rises to between 0.71 and 0.79.
# So this explains only part of the difference.
#
# </details>
#
# Deep stacks are on the [further page](10_transformer_further.ipynb).

# %% tags=["guard"] jupyter={"source_hidden": true}
new = [english for english, _ in machine.held_out_pairs(200)]


def with_and_without(sentences, *parts):
    """The French words of each sentence, with all parts and without these."""
    pairs = zip(machine.says(sentences), machine.says(sentences, *parts), strict=True)
    return [(before.split(), after.split()) for before, after in pairs]


with cu.guard("Without its first look back the decoder says twice that Oscar is a doctor."):
    said = machine.without("oscar was a doctor .", "decoder.0.self_attention")
    assert said == "oscar était médecin était médecin ."
    said = machine.without("tom doesn't know anna .", "source_embedding.positions")
    assert said.startswith("anna ne")

with cu.guard("Her bottle turns masculine, but nine in ten possessives keep their form."):
    assert machine.without("her bottle is full .", "encoder.attention").startswith("son bouteille")
    forms = {"mon", "ma", "mes", "ton", "ta", "tes", "son", "sa", "ses", "votre", "vos"}
    owned = [text for text in new if {"my", "your", "his", "her"} & set(text.split())]
    pairs = with_and_without(owned, "encoder.attention")
    kept = [[word for word in before if word in forms] == [word for word in after if word in forms]
            for before, after in pairs]  # fmt: skip
    assert len(kept) > 30 and sum(kept) / len(kept) > 0.9

with cu.guard("Without any cross-attention all sentences come out as the same one."):
    assert len(set(machine.says(new, both))) == 1

with cu.guard(
    "Six of twelve boxes can be ablated, and seven in ten new sentences stay as they were."
):
    without_six = "encoder.attention", "feed_forward"
    assert machine.without(dog, *without_six) == "le chien est derrière la maison ."
    kept = [before == after for before, after in with_and_without(new, *without_six)]
    assert 0.65 < sum(kept) / len(kept) < 0.75

with cu.guard("The larger translator needs its networks."):
    assert larger["lost, all networks"] > 0.5

# %% [markdown]
# Finally, here is the whole Transformer in one piece, without an import from the course.
# Open the cell to read it, or take it home.
# It trains just as yours does.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.query_proj, self.key_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.value_proj, self.out_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.heads = heads

    def forward(self, x, memory, mask):
        def split(y):  # (b, n, d) → (b, heads, n, d / heads)
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k = split(self.query_proj(x)), split(self.key_proj(memory))
        v = split(self.value_proj(memory))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


def two_layers(d, hidden):
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Identity(), nn.Linear(hidden, d))


class Encoder(nn.Module):
    def __init__(self, d, heads, hidden):
        super().__init__()
        self.attention, self.attention_norm = Attention(d, heads), nn.LayerNorm(d)
        self.feed_forward, self.feed_forward_norm = two_layers(d, hidden), nn.LayerNorm(d)

    def forward(self, x, mask):
        y = self.attention_norm(x)
        x = x + self.attention(y, y, mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    def __init__(self, d, heads, hidden):
        super().__init__()
        self.self_attention, self.self_attention_norm = Attention(d, heads), nn.LayerNorm(d)
        self.cross_attention, self.cross_attention_norm = Attention(d, heads), nn.LayerNorm(d)
        self.feed_forward, self.feed_forward_norm = two_layers(d, hidden), nn.LayerNorm(d)

    def forward(self, x, causal, memory, mask):
        y = self.self_attention_norm(x)
        x = x + self.self_attention(y, y, causal)
        x = x + self.cross_attention(self.cross_attention_norm(x), memory, mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


def sinusoids(n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class WholeTransformer(nn.Module):
    def __init__(self, sources, targets, d, heads, hidden, layers):
        super().__init__()
        self.source_embedding = nn.Embedding(sources, d, padding_idx=0)
        self.target_embedding = nn.Embedding(targets, d, padding_idx=0)
        self.encoder = nn.ModuleList(Encoder(d, heads, hidden) for _ in range(layers))
        self.decoder = nn.ModuleList(Decoder(d, heads, hidden) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.output = nn.Linear(d, targets)
        nn.init.normal_(self.source_embedding.weight, std=1 / math.sqrt(d))
        nn.init.normal_(self.target_embedding.weight, std=1 / math.sqrt(d))

    def embed(self, embedding, ids):
        x = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return x + sinusoids(*x.shape[1:]).to(x)

    def features(self, source, source_lens, target):
        n, device = target.shape[1], source.device
        real = torch.arange(source.shape[1], device=device) < source_lens[:, None]
        mask, causal = real[:, None, None], torch.ones(n, n, device=device).tril().bool()
        memory = self.embed(self.source_embedding, source)
        for block in self.encoder:
            memory = block(memory, mask)
        memory, x = self.encoder_norm(memory), self.embed(self.target_embedding, target)
        for block in self.decoder:
            x = block(x, causal, memory, mask)
        return self.decoder_norm(x)

    def forward(self, source, source_lens, target):
        return self.output(self.features(source, source_lens, target))


# %% jupyter={"source_hidden": true}
whole = WholeTransformer(
    stored.config["source_size"], stored.config["target_size"], d=64, heads=4, hidden=64, layers=2
)
whole.load_state_dict(stored.state)
cu.equal(whole, translator, source, source_lens, reads)
print("→", machine.translate(whole, "oscar was a doctor ."))

# %% [markdown]
# ## Take-aways
#
# - A Transformer is a **residual stream** to which attentions and networks add, each reading it through a norm.
#   Every decoder block looks at the memory that leaves the last encoder block.
# - Layer norm and network see one token at a time, so only attention moves something between tokens, and the mask says from where.
# - What a part adds is a good hint at how much the model needs it, but only a hint.
#   To know, ablate the part and score what comes out, because a changed sentence isn't yet a worse one.

# %% [markdown] tags=["next"]
# Next: [Translating](11_translating.ipynb), where this model learns French and you compare what it looks at with what it needs.
# On the path to GPT and to a real model, [GPT](13_gpt.ipynb) comes next.
# On the path to images, [Vision transformers](15_vision_transformers.ipynb) comes next.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("transformer")

# %% [markdown]
# ## References
#
# - Ba, J. L., Kiros, J. R. and Hinton, G. E. (2016).
#   [Layer normalization](https://arxiv.org/abs/1607.06450).
# - He, K., Zhang, X., Ren, S. and Sun, J. (2016).
#   [Deep residual learning for image recognition](https://arxiv.org/abs/1512.03385).
#   CVPR.
# - Ioffe, S. and Szegedy, C. (2015).
#   [Batch normalization: Accelerating deep network training by reducing internal covariate shift](https://arxiv.org/abs/1502.03167).
#   ICML.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Sections 3 and 5.4.
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745).
#   ICML.
# - PyTorch.
#   [TransformerEncoderLayer](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html), [TransformerDecoderLayer](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html).
