# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Self-attention and positions
#
# Let a sentence attend to itself: every token asks all the others. Each token then sees the whole sentence in one
# step, and all tokens can be computed at once. There is a price. **How does the network still know which word came
# first?**
#
# After this chapter you can
#
# - write self-attention, and **prove** that it treats a sentence as a bag of tokens;
# - **count** what convolution, recurrence and self-attention cost, how many steps each takes one after the other, and
#   how far two tokens are apart, instead of believing a table;
# - **build** sinusoidal, learned and rotary positions, and turn one position into another by a rotation of the right
#   sign;
# - **show** on a task that order is the one thing missing, and that any of the three supplies it;
# - **say** honestly what each of them does beyond the length it was trained for.
#
# *90 minutes. You need [Scoring functions](03_scoring_functions.ipynb) (scaled dot products, masks); two cells use the heads of [Multi-head attention](08_multi_head_attention.ipynb).*

# %%
import math
import time

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## A sequence asks itself
#
# So far queries came from one place, keys and values from another. Now one sequence
# $\mathbf x_1, \dots, \mathbf x_n \in \mathbb R^d$ is all three:
#
# $$\mathbf y_i = f\big(\mathbf x_i,\; (\mathbf x_1, \mathbf x_1), \dots, (\mathbf x_n, \mathbf x_n)\big) \in \mathbb R^d ,$$
#
# where $f$ is attention with the query $\mathbf x_i$. Every token gets a new vector: a mixture of the sentence, mixed
# for this token. This is **self-attention**, called intra-attention in early papers
# ([Cheng et al., 2016](https://arxiv.org/abs/1601.06733); [Parikh et al., 2016](https://arxiv.org/abs/1606.01933)).
#
# By hand: three tokens of one feature each, $x = (0, 1, 2)$, score $x_i x_j$. What is $y_2$? Its scores are
# $1\cdot0,\ 1\cdot1,\ 1\cdot2$, their exponentials $1,\ 2.718,\ 7.389$ with the sum $11.107$, so
#
# $$y_2 = \frac{1\cdot 0 + 2.718\cdot 1 + 7.389\cdot 2}{11.107} = 1.575 .$$
#
# The token 0 has equal scores everywhere and becomes the mean, 1. The token 2 listens mostly to itself.

# %%
x = torch.tensor([[0.0], [1.0], [2.0]])
weights = (x @ x.T).softmax(dim=-1)
y = weights @ x

assert_close(y[:, 0], torch.tensor([1.0, 1.575, 1.851]), atol=1e-3, rtol=0)
pd.DataFrame(
    torch.cat([weights, y], dim=1),
    index=["x₁ = 0", "x₂ = 1", "x₃ = 2"],
    columns=["weight on x₁", "on x₂", "on x₃", "y"],
).round(3)

# %% [markdown]
# In a transformer, three matrices first make a query, a key and a value of each token:
#
# $$\mathbf Y = \operatorname{softmax}\!\Big(\frac{(\mathbf X\mathbf W_q)(\mathbf X\mathbf W_k)^\top}{\sqrt d}\Big)\,\mathbf X\mathbf W_v .$$
#
# Why not leave them out, as some slides do? Without them the score of two tokens is $\mathbf x_i^\top\mathbf x_j$.
# That is symmetric, and a token resembles nobody as much as itself. **How much weight does a token keep for itself,
# without and with the matrices?**


# %%
def self_attention(x, W_q, W_k, W_v, attn_mask=None):
    """(…, n, d) → (…, n, d): queries, keys and values are projections of the same tokens."""
    queries, keys, values = x @ W_q, x @ W_k, x @ W_v
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return cu.masked_softmax(scores, attn_mask) @ values


n, d = 10, 64
x = torch.randn(n, d)
W_q, W_k, W_v = (torch.randn(d, d) / math.sqrt(d) for _ in range(3))

bare = cu.dot_product_weights(x, x)
projected = cu.dot_product_weights(x @ W_q, x @ W_k)
assert bare.diagonal().min() > 0.9  # each token listens to itself
assert projected.diagonal().mean() < 0.3

# %% [markdown]
# More than nine tenths, against about one tenth. The matrices let a token ask for something *other* than what it is.
#
# Our function, the course's module and PyTorch's operator must agree, in outputs and gradients, under a mask.

# %%
module = cu.MultiHeadAttention(d, num_heads=1, bias=False)
with torch.no_grad():
    for layer, W in zip(
        (module.query_proj, module.key_proj, module.value_proj), (W_q, W_k, W_v), strict=True
    ):
        layer.weight.copy_(W.T)  # nn.Linear computes x @ weight.T
    module.out_proj.weight.copy_(torch.eye(d))

batch = torch.randn(2, 5, d, requires_grad=True)
mask = cu.padding_mask(torch.tensor([3, 5]), 5) & cu.causal_mask(5)  # (2, 1, 5, 5)
ours = self_attention(batch, W_q, W_k, W_v, mask)
library = module(batch, batch, batch, mask)
operator = F.scaled_dot_product_attention(
    batch @ W_q, batch @ W_k, batch @ W_v, attn_mask=mask[:, 0]
)

gradient = torch.autograd.grad(ours.sin().sum(), batch)
for other in (library, operator):
    assert_close(other, ours, rtol=1e-4, atol=1e-5)
    assert_close(torch.autograd.grad(other.sin().sum(), batch), gradient, rtol=1e-4, atol=1e-5)

# %% [markdown]
# The output has the shape of the input, so layers can be stacked. A lecture's example: two sequences of 4 tokens, 100
# features, 5 heads, and valid lengths 3 and 2. Its input is all ones, which tests shapes and nothing else: equal
# tokens get equal outputs, whatever the weights.

# %%
attention = cu.MultiHeadAttention(100, num_heads=5)
ones = torch.ones(2, 4, 100)
outputs = attention(ones, ones, ones, cu.padding_mask(torch.tensor([3, 2]), 4))
assert outputs.shape == ones.shape
assert_close(outputs, outputs[:1, :1].expand(2, 4, 100))

# %% [markdown]
# ## Order does not matter
#
# *The dog bites the man*; *the man bites the dog*. **What does self-attention make of the difference?**

# %%
words = ["the", "dog", "bites", "a", "man"]
vectors = dict(zip(words, torch.randn(5, d), strict=True))


def read(sentence):
    """Weights (5, 5) and, for each word, its new vector."""
    x = torch.stack([vectors[word] for word in sentence])
    outputs = self_attention(x, W_q, W_k, W_v)
    return cu.dot_product_weights(x @ W_q, x @ W_k), dict(zip(sentence, outputs, strict=True))


news = ["a", "man", "bites", "the", "dog"]
weights, meaning = read(words)
weights_news, meaning_news = read(news)
for word in words:
    assert_close(meaning_news[word], meaning[word])

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=7.6, height=3.1,
    alt="Two weight maps with words on both axes. The second sentence is the first with dog and man exchanged, and "
    "its map is the first with rows and columns exchanged in the same way.",
)  # fmt: skip
for ax, sentence, matrix in zip(axes, (words, news), (weights, weights_news), strict=True):
    cu.heatmap(ax, matrix, queries=sentence, keys=sentence, vmax=0.8, annotate=True, ylabel=None)
axes[0].set_ylabel("Queries")
fig

# %% [markdown]
# The right map is the left one with rows and columns rearranged: *dog* looks at *bites* with the same weight, whether
# the dog bites or is bitten. The new vector of each word is the same in both sentences.
#
# The proof takes three lines. Write another order of the tokens as $\boldsymbol\Pi\mathbf X$ with a permutation
# matrix $\boldsymbol\Pi$, so that $\boldsymbol\Pi^\top\boldsymbol\Pi = \mathbf I$. Then
#
# 1. queries, keys and values are $\boldsymbol\Pi\mathbf Q$, $\boldsymbol\Pi\mathbf K$, $\boldsymbol\Pi\mathbf V$, since each token is projected on its own;
# 2. the scores are $\boldsymbol\Pi\mathbf Q\mathbf K^\top\boldsymbol\Pi^\top$, and a softmax along rows commutes with a rearrangement of rows and columns;
# 3. the output is $\boldsymbol\Pi\mathbf A\boldsymbol\Pi^\top\,\boldsymbol\Pi\mathbf V = \boldsymbol\Pi\,\mathbf A\mathbf V$.
#
# $$f(\boldsymbol\Pi\mathbf X) = \boldsymbol\Pi f(\mathbf X)$$
#
# Self-attention is **permutation equivariant**: permute the tokens, and the outputs are permuted with them. Heads,
# residuals, layer norm and a network applied to each position do not change that, so a whole encoder is equivariant,
# too. And what is then averaged over the tokens is **invariant**: it cannot tell the two sentences apart at all.

# %%
layer = nn.TransformerEncoderLayer(d, nhead=4, dim_feedforward=128, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=3, enable_nested_tensor=False).eval()
x = torch.randn(2, 7, d)
order = torch.randperm(7)

with torch.no_grad():
    assert_close(encoder(x[:, order]), encoder(x)[:, order], rtol=1e-4, atol=1e-5)
    assert_close(encoder(x[:, order]).mean(1), encoder(x).mean(1), rtol=1e-4, atol=1e-5)

# %% [markdown]
# ### A mask is a hint
#
# Is a decoder as blind? Its causal mask says who may look at whom, and that depends on the order. **How much order is
# in a mask?** Take a first token `<bos>` with value 1, all others 0, and equal scores. Then token $i$ (counted from
# 0) averages $i+1$ values, one of which is 1: its output is $1/(i+1)$. The position can be read off.

# %%
values = torch.tensor([1.0, 0, 0, 0, 0, 0])[:, None]  # <bos> and five other tokens
equal_scores = torch.zeros(6, 6)
read_off = cu.masked_softmax(equal_scores, cu.causal_mask(6)) @ values
assert_close(1 / read_off[:, 0], torch.arange(1.0, 7.0))

# %% [markdown]
# Language models without any position encoding do learn where they are
# ([Haviv et al., 2022](https://arxiv.org/abs/2203.16634)). But be precise about it: **one** causal layer still treats
# everything before the last token as a bag. It takes a second layer, which reads outputs that already differ.

# %%
x = torch.randn(7, d)
shuffled = torch.cat([x[torch.tensor([3, 0, 5, 1, 4, 2])], x[6:]])  # the last token stays


def causal(x):
    return self_attention(x, W_q, W_k, W_v, cu.causal_mask(7))


assert_close(causal(shuffled)[-1], causal(x)[-1], rtol=1e-4, atol=1e-5)  # one layer: no difference
difference = (causal(causal(shuffled))[-1] - causal(causal(x))[-1]).abs().max()
assert difference > 0.01  # two layers: a difference

# %% [markdown]
# ### Exercise 1 · A test for order
# *10 minutes · ★★*
#
# Equivariance is a property one can test, and later it will find bugs for us. Write a function that takes a `layer`
# (a function from (batch, $n$, $d$) to the same shape) and tokens `x`, and returns `True` if the layer ignores the
# order of the tokens, else `False`. Other layers than attention will be tried: one that sorts, one that reads the
# same from both ends, one that convolves in a ring.


# %% tags=["exercise"]
def ignores_order(layer, x):
    """True if permuting the tokens of x (batch, n, d) permutes the outputs, and does nothing else."""
    ...


# %% tags=["check"]
cu.checks.ignores_order(ignores_order)


# %% tags=["solution"] jupyter={"source_hidden": true}
def ignores_order(layer, x):
    """True if permuting the tokens of x (batch, n, d) permutes the outputs, and does nothing else."""
    for _ in range(5):  # one random order may be a harmless one
        order = torch.randperm(x.shape[1])
        if not torch.allclose(layer(x[:, order]), layer(x)[:, order], rtol=1e-3, atol=1e-3):
            return False
    return True


cu.checks.ignores_order(ignores_order)

# %% [markdown]
# ## What does it cost?
#
# If order is lost, why not keep a recurrent network, which has it built in? Compare three ways to turn $n$ vectors of
# size $d$ into $n$ others. Three numbers matter:
#
# - **cost**: multiplications with their additions, for one layer and one sequence;
# - **sequential steps**: matrix products that have to wait for each other, however many processors there are;
# - **path length**: how many layers or steps a signal crosses between the two tokens that are furthest apart. The
#   longer the path, the harder it is to learn that the two belong together.
#
# | | cost | sequential steps | path length |
# |---|---|---|---|
# | convolution, kernel $k$ | $k\,n\,d^2$ | $O(1)$ | $O(n/k)$ layers, or $O(\log_k n)$ if dilated |
# | recurrence | $2\,n\,d^2$ | $O(n)$ | $O(n)$ |
# | self-attention | $2\,n^2 d$, and $3\,n\,d^2$ for the projections | $O(1)$ | $O(1)$ |
#
# Tables like this go from lecture to lecture, and they do not agree. We check each cell below. Where yours differs:
#
# - *Path length of a convolution: $O(\log_k n)$ in some, $O(n/k)$ in others.* Both are right, for different stacks of
#   layers ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 4, names both).
# - *A row "parallelization" with $O(n)$ for convolution, $O(1)$ for recurrence, $O(n)$ for self-attention.* This is how
#   many tokens are computed at the same time. Read as *sequential steps*, each of its cells is swapped.
# - *A convolution computes $n-k+1$ tokens.* Without padding it does. We pad, so that $n$ tokens stay $n$.
# - *Self-attention costs $O(n^2d)$.* One part of the bill, and for short sequences the smaller one.
#   $O(n^2d) + O(nd^2)$, as some have it, is right.
#
# ### Cost, counted
#
# PyTorch counts the floating-point operations of matrix products: two for each multiplication with its addition. The
# three layers, written out with nothing hidden:


# %%
def convolution(x, W_conv):
    """Causal convolution: token i reads i − k + 1 … i. W_conv is (d, d, k)."""
    padded = F.pad(x.T, (W_conv.shape[-1] - 1, 0))  # (d, n + k − 1)
    return F.conv1d(padded[None], W_conv)[0].T


def recurrence(x, W_x, W_h):
    """h_t = tanh(W_x x_t + W_h h_(t−1)), one token after the other."""
    inputs, state, states = x @ W_x, x.new_zeros(1, x.shape[1]), []
    for token in inputs.split(1):
        state = (token + state @ W_h).tanh()
        states.append(state)
    return torch.cat(states)


def multiply_adds(function, *shapes):
    """Count them on the "meta" device, where tensors have shapes and no numbers."""
    with FlopCounterMode(display=False) as counter:
        function(*(torch.empty(shape, device="meta") for shape in shapes))
    return counter.get_total_flops() // 2


# %%
kernel = 3


def count(n, d):
    square = (d, d)
    return {
        "convolution": multiply_adds(convolution, (n, d), (d, d, kernel)),
        "recurrence": multiply_adds(recurrence, (n, d), square, square),
        "self-attention": multiply_adds(self_attention, (n, d), square, square, square),
    }


for n, d in [(1, 8), (10, 8), (64, 32), (200, 16)]:
    counted = count(n, d)
    assert counted["convolution"] == kernel * n * d**2
    assert counted["recurrence"] == 2 * n * d**2
    assert counted["self-attention"] == 2 * n**2 * d + 3 * n * d**2

# %% [markdown]
# The formulas hold to the last multiplication. Mind two traps. Not every operator is known to the counter: on a CPU,
# PyTorch's *fused* attention counts as nothing, so a real module seems to cost its four projections, $4nd^2$, and no
# more. And multi-head attention costs the same for any number of heads: $h$ heads of size $d/h$ are
# $2 h\,n^2 d/h = 2n^2d$.

# %%
n, d = 64, 32
x = torch.randn(1, n, d)
module = cu.MultiHeadAttention(d, num_heads=4)
with FlopCounterMode(display=False) as counter, torch.no_grad():
    module(x, x, x)
assert counter.get_total_flops() // 2 < 4 * n * d**2 + 2 * n**2 * d  # the scores are missing

q = cu.split_heads(module.query_proj(x), 4)  # (1, heads, n, d / heads)
with FlopCounterMode(display=False) as counter, torch.no_grad():
    cu.dot_product_weights(q, q) @ q
assert counter.get_total_flops() // 2 == 2 * n**2 * d  # written out, with 4 heads

# %% [markdown]
# **How does the cost grow with the length, and how with the width?** On log axes a power law is a straight line, and
# its slope is the exponent.

# %%
lengths = [16, 64, 256, 1024, 4096]
widths = [8, 32, 128, 512, 2048]
over_n = pd.DataFrame([count(n, 64) for n in lengths], index=lengths)
over_d = pd.DataFrame([count(256, d) for d in widths], index=widths)


def slopes(curve):
    """Exponent between each two neighboring points on log axes."""
    steps = [math.log(b / a) for a, b in zip(curve.index, curve.index[1:], strict=False)]
    return [math.log(b / a) / s for a, b, s in zip(curve, curve[1:], steps, strict=False)]


for name in ("convolution", "recurrence"):
    assert_close(slopes(over_n[name]), [1.0] * 4)  # linear in n
    assert_close(slopes(over_d[name]), [2.0] * 4)  # quadratic in d
along_n, along_d = slopes(over_n["self-attention"]), slopes(over_d["self-attention"])
assert along_n == sorted(along_n) and along_n[0] < 1.3 and along_n[-1] > 1.9  # from 1 to 2
assert along_d == sorted(along_d) and along_d[0] < 1.2 and along_d[-1] > 1.8  # from 1 to 2

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=3.2, sharey=True,
    alt="Multiply-adds on log axes. Over the length, convolution and recurrence are straight lines of slope 1 while "
    "self-attention bends from slope 1 to slope 2. Over the width, the two are lines of slope 2 while self-attention "
    "bends from slope 1 to slope 2.",
)  # fmt: skip
for ax, table in ((left, over_n), (right, over_d)):
    for name, style in zip(table, ["o-", "s--", "^:"], strict=True):
        ax.loglog(table.index, table[name], style, markersize=5, label=name)
    ax.set_xticks(table.index, table.index)
    ax.minorticks_off()
left.axvline(1.5 * 64, color="0.6", linewidth=1)
left.text(1.6 * 64, 2e5, "n = 3d/2", color="0.3", fontsize=9)
left.set(xlabel="tokens n, width d = 64", ylabel="multiply-adds")
right.set(xlabel="width d, tokens n = 256")
left.legend(frameon=False)
fig

# %% [markdown]
# Convolution and recurrence are straight: $n^1$ and $d^2$. Self-attention **bends**. Its two terms $2n^2d$ and
# $3nd^2$ are equal at $n = \tfrac32 d$ (at $n = 2d$ with an output projection). To the left of it, attention is as
# linear as the others; "attention is quadratic" is true to the right.
#
# How much of a real model is quadratic, then? A transformer layer has four projections and a feed-forward network of
# width $4d$: $4nd^2 + 8nd^2 + 2n^2d$. The part that is quadratic in $n$ is $n/(n + 6d)$ of it. For BERT-base, with
# $d = 768$ at its full length $n = 512$, that is $512/5120$: **one tenth**.

# %%
for n, d, share in [(512, 768, 0.10), (4608, 768, 0.50), (4096, 4096, 1 / 7)]:
    assert abs(2 * n**2 * d / (12 * n * d**2 + 2 * n**2 * d) - share) < 1e-9

# %% [markdown]
# Another sentence often heard: "self-attention is cheaper than recurrence when $n < d$." It compares $n^2d$ with
# $nd^2$ and forgets the projections, which alone cost more than our plain recurrence. Against an LSTM, which has four
# gates and costs $8nd^2$, it is true up to $n = \tfrac52 d$. Cheaper arithmetic is not what made transformers win.
# The next number is.

# %%
assert all(over_n["self-attention"] > over_n["recurrence"])
for d in (64, 512):
    n = 5 * d // 2
    assert 2 * n**2 * d + 3 * n * d**2 == 8 * n * d**2  # an LSTM: four gates of 2nd²

# %% [markdown]
# ### Sequential steps, counted
#
# Autograd remembers which result was computed from which. **What is the longest chain of matrix products that have to
# wait for each other?** We walk through that graph from the output back and take the longest way.


# %%
def longest_chain(output):
    """Number of matrix products on the longest way from any input to `output`."""
    products = ("MmBackward0", "BmmBackward0", "ConvolutionBackward0")
    length, todo = {None: 0}, [output.grad_fn]
    while todo:
        node = todo[-1]
        parents = [parent for parent, _ in node.next_functions]
        missing = [parent for parent in parents if parent not in length]
        if missing:
            todo += missing
            continue
        length[node] = (node.name() in products) + max((length[p] for p in parents), default=0)
        todo.pop()
    return length[output.grad_fn]


# %%
d = 8
W = [torch.randn(d, d) / math.sqrt(d) for _ in range(3)]
W_conv = torch.randn(d, d, kernel) / math.sqrt(kernel * d)
chains = {}
for n in (4, 16, 64):
    x = torch.randn(n, d, requires_grad=True)
    outputs = convolution(x, W_conv), recurrence(x, *W[:2]), self_attention(x, *W)
    chains[n] = [longest_chain(output) for output in outputs]
    assert chains[n] == [1, n, 3]

chains = pd.DataFrame(chains, index=["convolution", "recurrence", "self-attention"]).T
chains.rename_axis("n")

# %% [markdown]
# Convolution: one product. Self-attention: three, one after the other (project, compare, sum), at any length.
# Recurrence: the projection of the inputs, which is one product for all of them, and then $n - 1$ products, each
# waiting for the one before. No number of processors shortens that.
#
# ### Path length, counted
#
# When does the last output depend on the first input? For a convolution we let layers see what layers below them
# have seen, as true or false.


# %%
def layers_until_connected(n, kernel, *, dilated):
    """Causal convolutions until token n−1 sees token 0; dilated ones step by 1, k, k², …"""
    sees = torch.eye(n, dtype=torch.bool)  # (token, what it depends on)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    layers = 0
    while not sees[-1, 0]:
        step = kernel**layers if dilated else 1
        reads = (distance >= 0) & (distance % step == 0) & (distance < kernel * step)
        sees = (reads.float() @ sees.float()) > 0
        layers += 1
    return layers


lengths = [4, 10, 28, 82]
ordinary = [layers_until_connected(n, 3, dilated=False) for n in lengths]
dilated = [layers_until_connected(n, 3, dilated=True) for n in lengths]
assert ordinary == [math.ceil((n - 1) / 2) for n in lengths]  # (n − 1) / (k − 1)
assert dilated == [2, 3, 4, 5]  # the smallest L with 3^L ≥ n
pd.DataFrame({"ordinary": ordinary, "dilated": dilated}, index=pd.Index(lengths, name="n"))

# %% [markdown]
# Ordinary layers reach $k-1$ tokens further each; layers whose dilation is multiplied by $k$ every time see $k, k^2,
# k^3, \dots$ tokens. In self-attention one layer is enough, and in a recurrent one the signal crosses $n$ states. A
# gradient confirms both: it is not zero, and in the recurrent layer it has shrunk on the way.

# %%
n = 64
x = torch.randn(n, d, requires_grad=True)
reached = {}
for name, output in {
    "recurrence": recurrence(x, *W[:2]),
    "attention": self_attention(x, *W),
}.items():
    gradient = torch.autograd.grad(output[-1].sum(), x)[0].norm(dim=1)
    reached[name] = (gradient[0] / gradient[-1]).item()  # from the first token, from the last
assert 0 < reached["recurrence"] < 1e-3
assert reached["attention"] > 1e-2

# %% [markdown]
# ### And time?
#
# Counts are not seconds. One thread, $d = 64$, the best of several runs, on whatever machine this page was made on:


# %% tags=["nbval-ignore-output"]
def seconds(function, *inputs, repeat=6):
    """The best of several runs, without gradients."""
    times = []
    with torch.no_grad():
        for _ in range(repeat):
            start = time.perf_counter()
            function(*inputs)
            times.append(time.perf_counter() - start)
    return min(times)


d, lengths = 64, [64, 256, 1024, 4096]
W = [torch.randn(d, d) / math.sqrt(d) for _ in range(3)]
W_conv = torch.randn(d, d, kernel) / math.sqrt(kernel * d)
jobs = {
    "convolution": (convolution, [W_conv]),
    "recurrence": (recurrence, W[:2]),
    "self-attention": (self_attention, W),
}
threads = torch.get_num_threads()
torch.set_num_threads(1)
inputs = [torch.randn(n, d) for n in lengths]
timed = {name: [1e3 * seconds(f, x, *w) for x in inputs] for name, (f, w) in jobs.items()}
torch.set_num_threads(threads)
timed = pd.DataFrame(timed, index=pd.Index(lengths, name="n"))
timed.round(2).add_suffix(" (ms)")

# %%
assert over_n["self-attention"][256] > 5 * over_n["recurrence"][256]

# %% tags=["hide-input", "nbval-ignore-output"]
fig, ax = cu.subplots(
    width=5.6, height=3.2,
    alt="Time over the number of tokens on log axes: convolution lowest, recurrence a line of slope 1, self-attention "
    "below it for short sequences and above it for long ones, where its slope is near 2.",
)  # fmt: skip
for name, style in zip(timed, ["o-", "s--", "^:"], strict=True):
    ax.loglog(timed.index, timed[name], style, markersize=5, label=name)
ax.set(xlabel="tokens n, width d = 64", ylabel="time (ms), forward, one thread")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
ax.legend(frameon=False)
fig

# %% [markdown]
# At 256 tokens self-attention does over five times as many multiply-adds as recurrence and is still faster: a few
# large products against 256 small ones that wait for each other. At 4,096 tokens the square has caught up, on one thread. A
# processor with thousands of units moves that point far to the right: it speeds up large products, not the waiting.
#
# ### Exercise 2 · Layers needed
# *8 minutes · ★*
#
# Write the path length as a formula: how many causal convolutions of width `kernel` (at least 2) are needed until the
# last of `n` tokens depends on the first? With `dilated=True` the dilation is multiplied by `kernel` from layer to
# layer. Return a whole number. It has to be right for $n = 125$, `kernel` $= 5$, too.


# %% tags=["exercise"]
def layers_needed(n, kernel, *, dilated=False):
    """Smallest number of layers after which token n−1 sees token 0."""
    ...


# %% tags=["check"]
cu.checks.layers_needed(layers_needed)


# %% tags=["solution"] jupyter={"source_hidden": true}
def layers_needed(n, kernel, *, dilated=False):
    """Smallest number of layers after which token n−1 sees token 0."""
    if not dilated:
        return math.ceil((n - 1) / (kernel - 1))
    layers, seen = 0, 1  # math.log(125, 5) is 3.0000000000000004, so we multiply
    while seen < n:
        layers, seen = layers + 1, seen * kernel
    return layers


cu.checks.layers_needed(layers_needed)

# %% [markdown]
# ## Giving each token its place
#
# If attention sees a set, put the position *into* the tokens: add to the embedding $\mathbf x_i$ a vector
# $\mathbf p_i$ that says "I am number $i$", so that the layer reads $\mathbf X + \mathbf P$. Which vectors? The
# obvious ideas first.
#
# | idea | what is wrong with it |
# |---|---|
# | the number $i$ in one column | grows without bound and soon outshouts the words |
# | the fraction $i/n$ | the third word has another code in each sentence; "next to" is $1/n$, another distance each time |
# | $i$ in binary, a bit a column | bounded and unique, but neighbors differ wildly: $7 = 0111$, $8 = 1000$ |
#
# Binary counting has a good core, though. **What do its columns do as we count?**

# %%
counting = pd.DataFrame(
    [[int(bit) for bit in f"{i:03b}"] for i in range(8)],
    columns=["bit 2", "bit 1", "bit 0"],
    index=pd.Index(range(8), name="i"),
)
for bit in range(3):  # bit b changes every 2^b numbers: its period is 2^(b+1)
    assert all(counting[f"bit {bit}"] == [i // 2**bit % 2 for i in range(8)])
counting

# %% [markdown]
# The lowest bit alternates with every number, the next with every two, the third with every four. Each column is a
# wave, each slower than the last. Make the waves smooth, and neighbors become similar. Give each frequency a sine
# *and* a cosine, and it becomes possible to move (by a rotation, below). This is the sinusoidal encoding
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5): with position $i = 0, 1, \dots$ and pairs of
# columns $j = 0, \dots, d/2 - 1$,
#
# $$p_{i,\,2j} = \sin(i\,\omega_j),\qquad p_{i,\,2j+1} = \cos(i\,\omega_j),\qquad \omega_j = 10000^{-2j/d} .$$
#
# By hand for $d = 4$: $\omega_0 = 1$ and $\omega_1 = 10000^{-1/2} = 0.01$. So $\mathbf p_0 = (0, 1, 0, 1)$ and
# $\mathbf p_1 = (\sin 1, \cos 1, \sin 0.01, \cos 0.01) = (0.841, 0.540, 0.010, 1.000)$.


# %%
def sinusoids(length, embed_dim, base=10_000.0):
    """The table P: (length, embed_dim)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    table = torch.empty(length, embed_dim)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


by_hand = torch.tensor([[0, 1, 0, 1], [0.841, 0.540, 0.010, 1.000], [0.909, -0.416, 0.020, 1.000]])
assert_close(sinusoids(3, 4), by_hand, atol=1e-3, rtol=0)
assert_close(sinusoids(300, 64), cu.sinusoidal_table(300, 64))

x = torch.randn(2, 60, 32)
assert_close(cu.SinusoidalPositions(32)(x), x + sinusoids(60, 32))

# %% [markdown]
# **What do single columns look like?** Columns 6 to 9 of a table with $d = 32$:

# %% tags=["hide-input"]
P = sinusoids(60, 32)
fig, ax = cu.subplots(
    width=7.6, height=2.8,
    alt="Four waves over 60 positions. Columns 6 and 7 are a sine and a cosine with a period of 35 positions, columns "
    "8 and 9 a sine and a cosine with a period of 63.",
)  # fmt: skip
styles = [("blue", "-"), ("blue", "--"), ("vermilion", "-"), ("vermilion", "--")]
for column, (color, dash) in zip(range(6, 10), styles, strict=True):
    kind = "cosine" if column % 2 else "sine"
    ax.plot(P[:, column], dash, color=cu.COLORS[color], label=f"column {column}, {kind}")
ax.set(xlabel="position i", ylabel="entry of P", xlim=(0, 59), ylim=(-1.15, 1.15))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
fig

# %%
frequency = 10_000.0 ** (-torch.arange(0, 32, 2) / 32)
period = 2 * math.pi / frequency
assert_close(period[[3, 4]], torch.tensor([35.3, 62.8]), atol=0.1, rtol=0)
assert_close(P[:, 7], torch.sin(torch.arange(60) * frequency[3] + math.pi / 2), atol=1e-5, rtol=0)
assert_close(period[1:] / period[:-1], torch.full((15,), 10_000 ** (2 / 32)))

# %% [markdown]
# Columns 6 and 7 are one pair, and so are 8 and 9. Within a pair the cosine runs a quarter of a period ahead. From
# pair to pair the period grows by the same factor, here $10000^{2/32} = 1.78$: from $2\pi$, which is about six words,
# up to almost $10000\cdot 2\pi$. (Almost: the last pair has $2j/d = 1 - 2/d$.) For binary counting the factor is 2.
#
# **Does the whole table look like counting?**

# %% tags=["hide-input"]
bits = torch.tensor([[i >> bit & 1 for bit in range(6)] for i in range(60)])
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=4.2, width_ratios=[1, 3], sharey=True,
    alt="Left: the six bits of the numbers 0 to 59, lowest bit first: stripes that double in height from column to "
    "column. Right: the 32 columns of the sinusoidal table: fast waves on the left that slow down; from column 16 on "
    "sines stay near 0 and cosines near 1.",
)  # fmt: skip
cu.heatmap(left, bits, xlabel="bit", ylabel="number, position i", title="binary")
image = cu.heatmap(
    right, P, xlabel="column", ylabel=None, vmin=-1, cmap="PuOr", title="sinusoidal table, d = 32"
)
bar = fig.colorbar(image, ax=right, label="entry of P")
fig

# %% [markdown]
# Stripes on the left, waves on the right, both slower from column to column. Over 60 positions the right half of the
# table hardly changes: those columns count thousands.
#
# It is sometimes added that floats make this code "more space-efficient than binary". They do not: 60 positions fit
# into six bits, and here each has 32 floats. What the floats buy is *smoothness* and, as we shall see,
# *movement*. **Are all positions distinct, at least?** One pair alone nearly repeats: 44 is close to $7\cdot2\pi =
# 43.98$. All pairs together keep any two positions apart.

# %%
P = sinusoids(2000, 32).double()
apart = torch.cdist(P, P)
one_pair = (P[44, :2] - P[0, :2]).norm()
assert one_pair < 0.02  # positions 0 and 44 by the fastest pair alone
assert apart[0, 44] > 1  # by all pairs

neighbors = apart.diagonal(offset=1)
assert_close(neighbors, neighbors[:1].expand(1999))  # each step is equally long
apart.fill_diagonal_(math.inf)
assert apart.min() > 0.99 * neighbors[0]  # no two positions are closer than neighbors

# %% [markdown]
# ### The same function in other clothes
#
# Another lecture writes the divisor as $100^{\,2\cdot 2j/M}$ where we have $10000^{2j/d}$, with $M$ for the embedding
# size. It is the same number, since $100^{2a} = (100^2)^a$. It also says what the divisor does: $\sin(i)$ repeats
# after about six words, $\sin(i/100)$ after $200\pi \approx 628$. Its example has 10 words and $M = 512$.

# %%
M = 512
position = torch.arange(0, 10, dtype=torch.float64)[:, None]
factor = 1.0 / (100.0 ** (2.0 * torch.arange(0, M, 2, dtype=torch.float64) / M))
other_form = torch.zeros(10, M, dtype=torch.float64)
other_form[:, 0::2] = torch.sin(position * factor)
other_form[:, 1::2] = torch.cos(position * factor)
assert_close(other_form.float(), sinusoids(10, M))
assert round(2 * math.pi * 100) == 628

# %% [markdown]
# ### Why may we add?
#
# Adding a position to a word looks like mixing two inks. How should the layer take them apart? Two answers. First,
# expand a score of $\mathbf x_i + \mathbf p_i$ and $\mathbf x_j + \mathbf p_j$, with $\mathbf M = \mathbf W_q\mathbf W_k^\top$:
#
# $$\underbrace{\mathbf x_i^\top\mathbf M\mathbf x_j}_{\text{word to word}} + \underbrace{\mathbf x_i^\top\mathbf M\mathbf p_j}_{\text{word to place}} + \underbrace{\mathbf p_i^\top\mathbf M\mathbf x_j}_{\text{place to word}} + \underbrace{\mathbf p_i^\top\mathbf M\mathbf p_j}_{\text{place to place}} .$$
#
# The last term is what a layer needs in order to look at places, whatever words stand there. Second, there is room.
# **How many of 512 directions do the first 128 positions use?**

# %%
P = sinusoids(128, 512).double()
energy = torch.linalg.svdvals(P).square()
share = energy.cumsum(0) / energy.sum()
directions = int((share < 0.99).sum()) + 1
assert 10 < directions < 50
x, M = torch.randn(128, 512).double(), torch.randn(512, 512).double() / 512
four = x @ M @ x.T + x @ M @ P.T + P @ M @ x.T + P @ M @ P.T
assert_close((x + P) @ M @ (x + P).T, four)
print(f"99 % of the table lies in {directions} of 512 directions")

# %% [markdown]
# A matrix can read these directions and leave the others to the words. Concatenation would give the place its own
# columns, at the price of a wider model; a sum lets training decide.
#
# ## Moving by an offset is a rotation
#
# Why sine *and* cosine? Because together they can be moved. The addition theorems say
#
# $$\sin(a+b) = \cos b\,\sin a + \sin b\,\cos a,\qquad \cos(a+b) = -\sin b\,\sin a + \cos b\,\cos a .$$
#
# With $a = i\,\omega_j$ and $b = k\,\omega_j$, this is a matrix that carries position $i$ to position $i + k$:
#
# $$\begin{pmatrix}p_{i+k,\,2j}\\ p_{i+k,\,2j+1}\end{pmatrix} = \begin{pmatrix}\cos k\omega_j & \sin k\omega_j\\ -\sin k\omega_j & \cos k\omega_j\end{pmatrix}\begin{pmatrix}p_{i,\,2j}\\ p_{i,\,2j+1}\end{pmatrix} .$$
#
# It does not contain $i$. "Three to the right" is *the same* linear map everywhere in the sentence, and a linear map
# is what $\mathbf W_q$ and $\mathbf W_k$ can learn.
#
# **Mind the sign.** The rotation matrix of the textbooks has the minus at the top right. It belongs to pairs
# (cosine, sine) and turns counterclockwise. Our pairs are (sine, cosine), and the same movement turns them
# *clockwise*. Take a pencil: at $i = 0$ the pair is $(0, 1)$. With $k\omega = 90°$ the pair has to become
# $(\sin 90°, \cos 90°) = (1, 0)$. The matrix above gives $\begin{pmatrix}0&1\\-1&0\end{pmatrix}\begin{pmatrix}0\\1\end{pmatrix}
# = \begin{pmatrix}1\\0\end{pmatrix}$. The textbook's gives $(-1, 0)$, which is position $-k$.

# %%
c, s = math.cos(0.3), math.sin(0.3)
ours = torch.tensor([[c, s], [-s, c]])
textbook = torch.tensor([[c, -s], [s, c]])
angle = torch.arange(10) * 0.3  # ω = 0.3, offset k = 1
pairs = torch.stack([angle.sin(), angle.cos()], dim=1)  # (positions, 2), sine first

assert_close(pairs[:-1] @ ours.T, pairs[1:])  # one step forward
assert_close(pairs[1:] @ textbook.T, pairs[:-1])  # one step back
assert_close(ours, textbook.T)

# %% [markdown]
# ### Exercise 3 · The matrix of an offset
# *12 minutes · ★★*
#
# Put the $d/2$ blocks into one matrix $\mathbf M_k$ with $\mathbf p_{i+k} = \mathbf M_k\,\mathbf p_i$ for all $i$ and
# all columns at once. A negative offset moves back.


# %% tags=["exercise"]
def offset_matrix(offset, embed_dim):
    """(embed_dim, embed_dim), with p_(i + offset) = M p_i for the sinusoidal table."""
    ...


# %% tags=["check"]
cu.checks.offset_matrix(offset_matrix)


# %% tags=["solution"] jupyter={"source_hidden": true}
def offset_matrix(offset, embed_dim):
    """(embed_dim, embed_dim), with p_(i + offset) = M p_i for the sinusoidal table."""
    even = torch.arange(0, embed_dim, 2)
    angle = offset * 10_000.0 ** (-even / embed_dim)
    matrix = torch.zeros(embed_dim, embed_dim)
    matrix[even, even] = matrix[even + 1, even + 1] = angle.cos()
    matrix[even, even + 1] = angle.sin()
    matrix[even + 1, even] = -angle.sin()
    return matrix


cu.checks.offset_matrix(offset_matrix)

# %% [markdown]
# **Is this special, or would any table do?** For sinusoids we can find the map by least squares, without any theory:
# fit the matrix that best carries each row to the row three further. For a table of random numbers the best matrix
# fails.

# %%
P = sinusoids(400, 32).double()
random_table = torch.randn(400, 32, dtype=torch.float64)


def relative_misfit(table, offset):
    """What the best linear map from row i to row i + offset leaves over, as a share."""
    before, after = table[:-offset], table[offset:]
    best = torch.linalg.lstsq(before, after).solution
    return ((before @ best - after).norm() / after.norm()).item()


assert relative_misfit(P, 3) < 1e-6
assert relative_misfit(random_table, 3) > 0.8

# %% [markdown]
# ### The dot product of two positions
#
# How similar are positions $i$ and $i + k$? Each pair of columns contributes
# $\sin i\omega\,\sin (i{+}k)\omega + \cos i\omega\,\cos(i{+}k)\omega = \cos k\omega$, so
#
# $$\mathbf p_i^\top\mathbf p_{i+k} = \sum_{j=0}^{d/2-1}\cos(k\,\omega_j) = \cos\!\Big(\frac{k}{10000^{0/d}}\Big) + \cos\!\Big(\frac{k}{10000^{2/d}}\Big) + \dots + \cos\!\Big(\frac{k}{10000^{(d-2)/d}}\Big) .$$
#
# It depends on the distance alone. For $k = 0$ it is $d/2$: all positions have the same length. (One lecture prints
# 1000 in the first denominator; harmless, since the exponent is 0.) **How does it fall with the distance, for
# $d = 512$ and $k < 200$?** For $1 \ll k \ll 10000$ the sum is close to an integral, whose value is a logarithm:
#
# $$\mathbf p_i^\top\mathbf p_{i+k} \approx \frac d2\Big(1 - \frac{\ln k + \gamma}{\ln 10000}\Big),\qquad \gamma = 0.577\dots$$
#
# By hand for $k = 100$: $256\,(1 - (4.605 + 0.577)/9.210) = 256\cdot 0.437 = 112$.

# %%
d = 512
frequency = 10_000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
k = torch.arange(200)
similarity = torch.cos(k[:, None] * frequency).sum(dim=1)
law = d / 2 * (1 - (k[1:].log() + 0.5772) / math.log(10_000))

P = sinusoids(1200, d).double()
for i in (0, 50, 1000):  # the same wherever we start
    assert_close(P[i : i + 200] @ P[i], similarity, rtol=1e-4, atol=1e-3)
assert similarity[0] == d / 2 and 1000 ** (0 / d) == 10_000 ** (0 / d)
assert abs(similarity[100] - 112) < 1
assert (similarity[10:151] / law[9:150] - 1).abs().max() < 0.05

# %% tags=["hide-input"]
fig, ax = cu.subplots(
    width=6.8, height=3.0,
    alt="The dot product of two positions over their distance: 256 at distance 0, a steep fall to 190 at 5, then a "
    "slow, slightly rippled decline to about 90 at 199. A logarithmic law follows it closely.",
)  # fmt: skip
ax.plot(k, similarity, ".", markersize=4, color=cu.COLORS["blue"], label="sum of cosines")
ax.plot(k[1:], law, "--", color=cu.COLORS["vermilion"], linewidth=1.2, label="logarithmic law")
ax.set(xlabel="offset k", ylabel="p_i · p_(i+k)", ylim=(0, 270))
ax.legend(frameon=False)
fig

# %% [markdown]
# A third of the way down within ten tokens, then slowly: a fine sense for near, a coarse one for far. "Decays" is not
# "falls always": there are ripples, more of them in small dimensions.
#
# Two warnings belong to this famous picture. First, $\cos$ is even: **the dot product cannot tell left from right.**
# Second, a layer does not take $\mathbf p_i^\top\mathbf p_j$ but $\mathbf p_i^\top\mathbf W_q\mathbf W_k^\top\mathbf p_j$,
# and for matrices as they are before training, the decay is gone
# ([Yan et al., 2019](https://arxiv.org/abs/1911.04474), show both). What the encoding gives is not a built-in liking
# for near tokens; it is the *possibility* to learn one, with direction.

# %%
assert (similarity.diff() > 0).any()  # ripples
assert_close(P[500] @ P[500 + 7], P[500] @ P[500 - 7])  # no left or right

fading = []
for _ in range(20):
    W_q, W_k = torch.randn(2, d, d, dtype=torch.float64) / math.sqrt(d)
    scores = (P[:200] @ W_q) @ (P[:200] @ W_k).T
    near, far = (torch.cat([scores.diagonal(k), scores.diagonal(-k)]) for k in (1, 100))
    fading.append(
        (near.mean() / scores.abs().mean()).item() - (far.mean() / scores.abs().mean()).item()
    )
average = torch.tensor(fading).mean()
assert torch.tensor(fading).std() > 2 * average.abs()  # nearer is as often lower as higher

table = sinusoids(400, 32).double()
move = torch.linalg.lstsq(table[:-3], table[3:]).solution  # found as above, without theory
scores = (table @ move) @ table.T  # the query asks for three further
assert (scores[:-3].argmax(dim=1) == torch.arange(3, 400)).all()

# %% [markdown]
# The last lines are the point of this section: with the matrix of offset 3 in the query, the score of a token is
# largest for the token *exactly three to its right*.
#
# **Try it.** *Frequency $\omega$ at 1, offset from 0 upward:* the pair turns by one radian a step, clockwise, and 63
# steps bring it back to where it was, after ten turns. *Frequency to 0.01:* the same steps turn it by half a right
# angle at most. One pair alone is either precise and ambiguous, or unambiguous and coarse. *Dimension from 16 to
# 512:* the mark moves from curve to curve. With 8 pairs the sum climbs and falls; with 256 it is smooth, and the
# logarithmic fall remains.

# %%
cu.explore.positions()

# %%
assert abs(63 - 10 * 2 * math.pi) < 0.2  # ten turns of the fastest pair
assert math.degrees(63 * 0.01) < 45
ripples = {}
for width in (16, 512):
    table = sinusoids(200, width).double()
    curve = table @ table[0] / (width / 2)
    ripples[width] = curve.diff().clamp(min=0).sum()  # how much it climbs on the way down
assert ripples[16] > 10 * ripples[512]

# %% [markdown]
# ## Learned positions
#
# Why design a table when one can learn it? Make $\mathbf P$ a parameter of `max_len` × $d$ numbers. BERT, GPT-2 and
# the vision transformer do so. It is an embedding whose index is the position:


# %%
class Learned(nn.Module):
    """Add row i of a trainable table to token i."""

    def __init__(self, embed_dim, max_len):
        super().__init__()
        self.table = nn.Embedding(max_len, embed_dim)

    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1]))


ours, library = Learned(16, max_len=20), cu.LearnedPositions(16, max_len=20)
with torch.no_grad():
    library.table.copy_(ours.table.weight)
x = torch.randn(3, 12, 16)
assert_close(library(x), ours(x))
ours(x).sin().sum().backward()
library(x).sin().sum().backward()
assert_close(library.table.grad, ours.table.weight.grad)

# %% [markdown]
# Look at the gradient: rows 12 to 19 got none, because no sentence was that long. **A row that is never visited is
# never trained**, and a position beyond the table does not exist. In Vaswani's translation model both kinds did
# equally well (their table 3, row E); the sinusoids were chosen in the hope that they would extend to longer
# sentences. We test this hope beyond the trained length.

# %%
assert (library.table.grad[12:] == 0).all() and (library.table.grad[:12] != 0).any(dim=1).all()
try:
    library(torch.randn(1, 21, 16))
    raise AssertionError("expected an error")
except ValueError as error:
    print(error)

# %% [markdown]
# ## Rotary positions
#
# Sinusoids are *added* to the token, once, and the layer must find the rotation by itself. Why not rotate at once?
# **Rotary encoding** ([Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2) leaves embeddings alone and
# turns queries and keys, pair by pair, by an angle proportional to their positions:
#
# $$\tilde{\mathbf q}_m = \mathbf R_m\mathbf q_m,\qquad \tilde{\mathbf k}_n = \mathbf R_n\mathbf k_n,\qquad \tilde{\mathbf q}_m^\top\tilde{\mathbf k}_n = \mathbf q_m^\top\mathbf R_m^\top\mathbf R_n\mathbf k_n = \mathbf q_m^\top\,\mathbf R_{n-m}\,\mathbf k_n .$$
#
# The score knows the distance $n - m$ and nothing else about places. By hand, $d = 2$ and $\omega = 1$:
# $\mathbf q = \mathbf k = (1, 0)$ at positions $m$ and $n$ become $(\cos m, \sin m)$ and $(\cos n, \sin n)$, and their
# product is $\cos m\cos n + \sin m\sin n = \cos(n - m)$. At positions 2 and 3, as at 7 and 8: $\cos 1 = 0.540$.
#
# A pair of numbers is a complex number, and turning is multiplication by $e^{\mathrm i m\omega}$. That makes a
# readable implementation:


# %%
def rotate_complex(x):
    """(…, length, dim): pair j of position m turns counterclockwise by m ω_j."""
    length, dim = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length)[:, None] * frequency
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return (
        torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle))
        .flatten(-2)
        .to(x.dtype)
    )


ones = torch.tensor([1.0, 0.0]).expand(9, 2)
turned = rotate_complex(ones)
assert_close(turned[2] @ turned[3], torch.tensor(0.540), atol=1e-3, rtol=0)
assert_close(turned[7] @ turned[8], turned[2] @ turned[3])

x = torch.randn(2, 4, 30, 16, requires_grad=True)  # (batch, heads, length, head_dim)
assert_close(rotate_complex(x), cu.rotate(x))
gradients = [torch.autograd.grad(f(x).sin().sum(), x)[0] for f in (rotate_complex, cu.rotate)]
assert_close(*gradients)

# %% [markdown]
# **Does the score really depend on the distance alone?** One query and one key, repeated at every place, give a map
# of the scores; each diagonal has to be constant. With *added* sinusoids and two projections it is not.

# %%
q, k = torch.randn(2, 64)
rotary_map = cu.rotate(q.expand(24, 64)) @ cu.rotate(k.expand(24, 64)).T / 8
P = sinusoids(24, 64)
W_q, W_k = torch.randn(2, 64, 64) / 8
added_map = ((q + P) @ W_q) @ ((k + P) @ W_k).T / 8

assert_close(rotary_map[1:, 1:], rotary_map[:-1, :-1], rtol=1e-4, atol=1e-4)  # constant diagonals
assert (added_map[1:, 1:] - added_map[:-1, :-1]).abs().max() > 0.1
assert_close(cu.rotate(q.expand(24, 64)).norm(dim=1), q.norm().expand(24))  # no length changes
assert_close(cu.rotate(q[None], start=5) @ cu.rotate(k[None], start=9).T, 8 * rotary_map[5:6, 9:10])

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=7.4, height=3.2, sharey=True,
    alt="Two maps of scores between 24 positions. Rotary: every diagonal has one color. Added sinusoids: the color "
    "changes along the diagonals.",
)  # fmt: skip
for ax, matrix, title in zip(
    axes, (rotary_map, added_map), ("rotary", "added sinusoids"), strict=True
):
    matrix = matrix - matrix.mean()
    image = cu.heatmap(ax, matrix, title=title, vmin=-3, vmax=3, cmap="PuOr",
                       xlabel="position of the key", ylabel="position of the query" if ax is axes[0] else None)  # fmt: skip
bar = fig.colorbar(image, ax=axes, label="score − mean")
fig

# %% [markdown]
# Left, straight diagonals: two places to the left is two places to the left. Right, the picture changes on the way
# down. The rest is bookkeeping, but each line below is a place where implementations go wrong:
#
# - values are *not* turned, or the output would depend on absolute places again;
# - each head is turned on its own, so `head_dim` must be even;
# - it happens in every layer, not once at the input, and keys go into a cache *after* they have been turned.
#
# Sinusoids and rotation are the same movement. Turn the constant vector $(1, 0, 1, 0, \dots)$: out comes (cosine,
# sine) of every pair, the table $\mathbf P$ with each pair exchanged. This is why the minus stands at the top right
# here and at the bottom left of the sinusoids' matrix.

# %%
constant = torch.tensor([1.0, 0.0]).repeat(16).expand(60, 32)
exchanged = sinusoids(60, 32).unflatten(1, (16, 2)).flip(-1).flatten(1)
assert_close(cu.rotate(constant), exchanged)

# %% [markdown]
# ### Neighbors or halves
#
# The paper pairs neighboring columns, $(0, 1), (2, 3), \dots$ Many libraries pair column $j$ with column $j + d/2$,
# because two halves are faster to slice. Queries and keys of the two kinds differ by an order of columns, which a
# dot product does not notice, *if both are of one kind*. Weights trained with one kind and run with the other give no
# error and wrong scores: converted checkpoints therefore come with reordered $\mathbf W_q$ and $\mathbf W_k$. **How
# wrong?** To our function, columns $0, 8, 1, 9, \dots$ of 16 are the other kind's pairs.

# %%
q, k = torch.randn(2, 20, 16)
halves = torch.arange(16).view(2, 8).T.flatten()
assert halves[:4].tolist() == [0, 8, 1, 9]
assert_close(q[:, halves] @ k[:, halves].T, q @ k.T, rtol=1e-4, atol=1e-4)  # before turning: equal

neighbors_paired = cu.rotate(q) @ cu.rotate(k).T
halves_paired = cu.rotate(q[:, halves]) @ cu.rotate(k[:, halves]).T
assert_close(
    halves_paired.diagonal(), neighbors_paired.diagonal(), rtol=1e-4, atol=1e-4
)  # distance 0
assert (halves_paired - neighbors_paired).abs().mean() > 0.5  # any other distance

# %% [markdown]
# ### Exercise 4 · Rotary encoding by halves
# *12 minutes · ★★*
#
# Write the second kind: for `x` (…, length, dim), turn the pair (column $j$, column $j + \tfrac{\dim}2$) of position
# $m$ counterclockwise by $m\,\omega_j$, with $\omega_j = 10000^{-2j/\dim}$. Do not change `x`.


# %% tags=["exercise"]
def rotate_halves(x):
    """(…, length, dim) → the same shape, pairs (j, j + dim/2) turned by position · ω_j."""
    ...


# %% tags=["check"]
cu.checks.rotate_halves(rotate_halves)


# %% tags=["solution"] jupyter={"source_hidden": true}
def rotate_halves(x):
    """(…, length, dim) → the same shape, pairs (j, j + dim/2) turned by position · ω_j."""
    length, dim = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
    angle = torch.arange(length)[:, None] * frequency  # (length, dim / 2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


cu.checks.rotate_halves(rotate_halves)

# %% [markdown]
# ## A task where order decides
#
# Which token stood three places before? Draw 16 *different* tokens out of 64, in random order; at each place the
# network has to name the token three places to the left. The words mean nothing here. Order is all there is.
#
# **How well can one do without order?** That we know beforehand. Without positions the output at a place depends on
# the token there and on the set of the 15 others. Given these, each of the 15 is equally likely to be the one we
# look for. Nobody can be right more often than $1/15 = 6.7\,\%$.
#
# The model is the smallest possible: embedding, one self-attention with one head, one linear layer.


# %%
class Reader(nn.Module):
    """One self-attention over token embeddings, then logits for each place."""

    def __init__(self, positions=None, *, rotary=False, vocabulary=64, embed_dim=64):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embed_dim)
        nn.init.normal_(self.embedding.weight, std=1.0)
        self.positions, self.rotary = positions, rotary
        self.query, self.key, self.value = (nn.Linear(embed_dim, embed_dim) for _ in range(3))
        self.attention = cu.DotProductAttention()
        self.head = nn.Linear(embed_dim, vocabulary)

    def forward(self, tokens, *, start=0):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = self.positions(x, start=start)
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.rotary:
            q, k = cu.rotate(q, start=start), cu.rotate(k, start=start)
        return self.head(self.attention(q, k, v))


# %%
def make_reader(kind):
    """A reader with this kind of positions."""
    if kind == "sinusoidal":
        return Reader(cu.SinusoidalPositions(64, max_len=64))
    if kind == "learned":
        return Reader(cu.LearnedPositions(64, max_len=64))
    return Reader(rotary=kind == "rotary")


# %% [markdown]
# Training is a plain loop. The target is a function of the tokens, so that we can change the task later; places
# without an answer (the first three) have the target $-100$, which the loss ignores. Each run draws its sequences
# from a generator of its own.


# %%
def sequences(count, length, generator):
    """Different tokens in random order: (count, length)."""
    return torch.rand(count, 64, generator=generator).argsort(dim=1)[:, :length]


def three_before(tokens):
    """Target of place i: the token at place i − 3."""
    return F.pad(tokens[:, :-3], (3, 0), value=-100)


# %%
def train(kind, seed, target=three_before, *, farthest_start=0, steps=300):
    """A reader trained on 16 tokens; with `farthest_start` they begin at a random position."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = make_reader(kind)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    for _ in range(steps):
        tokens = sequences(64, 16, generator)
        start = int(torch.randint(farthest_start + 1, (), generator=generator))
        loss = F.cross_entropy(model(tokens, start=start).flatten(0, 1), target(tokens).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %%
@torch.no_grad()
def accuracy(model, length=16, target=three_before):
    """Share of right answers at each place: (length,); NaN where there is no answer."""
    tokens = sequences(300, length, torch.Generator().manual_seed(123))
    answers = target(tokens)
    right = (model(tokens).argmax(dim=-1) == answers).float()
    return right.masked_fill(answers == -100, math.nan).mean(dim=0)


# %% [markdown]
# Four kinds of positions, three seeds each, tested on sequences that were not trained on.

# %%
torch.set_num_threads(1)  # with matrices as small as these a second thread only gets in the way
kinds = ["none", "sinusoidal", "learned", "rotary"]
models = {kind: [train(kind, seed) for seed in range(3)] for kind in kinds}

# %%
scores = {kind: [accuracy(model).nanmean().item() for model in models[kind]] for kind in kinds}
assert max(scores["none"]) < 0.10  # 1/15 and the luck of the draw
for kind in kinds[1:]:
    assert min(scores[kind]) > 0.97

rows = {kind: ["below 10 %" if s < 0.1 else "above 97 %" for s in scores[kind]] for kind in kinds}
pd.DataFrame(rows, index=[f"seed {seed}" for seed in range(3)]).T

# %% [markdown]
# Without positions: chance, for each seed, however long we train. With any of the three: solved. **Where do the
# models look?** The mean weights over 300 test sequences, three seeds each. We know what the map has to be: all
# weight three places to the left of the diagonal.

# %%
tokens = sequences(300, 16, torch.Generator().manual_seed(123))
maps = {}
for kind in kinds:
    for seed, model in enumerate(models[kind]):
        with cu.record_attention(model) as recorded, torch.no_grad():
            model(tokens)
        maps[kind, seed] = recorded["attention"].mean(dim=0)  # (queries, keys)
        on_target = maps[kind, seed].diagonal(-3).mean()
        assert on_target < 0.1 if kind == "none" else on_target > 0.4
        if kind != "none":  # and no other key gets as much
            assert (maps[kind, seed].argmax(dim=1)[3:] == torch.arange(13)).all()

cu.show_heatmaps(
    torch.stack([torch.stack([maps[kind, seed] for kind in kinds]) for seed in range(3)]),
    titles=kinds, width=8.6, height=6.0, xlabel="Keys", ylabel="Queries",
    alt="Mean weights of three seeds, one a row, and four kinds of positions. Without positions the maps are an even "
    "gray. With sinusoidal, learned and rotary positions each map is a dark line three places to the left of the "
    "diagonal.",
)  # fmt: skip

# %% [markdown]
# Nine times the same line, three places to the left, with each seed and each kind. The first three rows differ: those
# places have no answer, were never trained, and look wherever they like. The sinusoidal lines are softer: neighboring
# positions resemble each other. The learned ones are sharp with specks around them, as each row is learned on its own.
#
# ## Beyond the trained length
#
# All models saw 16 tokens at a time. **What do they do with 64?** Three places before is three places before; nothing
# about the task has changed. We look at the accuracy of each place.

# %%
long = {kind: torch.stack([accuracy(m, 64) for m in models[kind]]) for kind in kinds[1:]}
inside = {kind: long[kind][:, 3:16].mean(dim=1) for kind in long}  # (seeds,)
outside = {kind: long[kind][:, 20:].mean(dim=1) for kind in long}

for kind in long:
    assert inside[kind].min() > 0.5
assert outside["sinusoidal"].max() < 0.4
assert outside["learned"].max() < 0.1
assert outside["rotary"].min() > 0.5

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 3, width=8.6, height=2.7, sharey=True,
    alt="Accuracy at each of 64 places for three seeds. All three kinds are near 1 on the 16 trained places. Beyond, "
    "sinusoidal and learned positions fall to nearly 0, sinusoidal ones with some recovery further out; rotary ones "
    "stay near 1.",
)  # fmt: skip
for ax, kind in zip(axes, long, strict=True):
    ax.axvspan(0, 15.5, color="0.92")
    for curve, dash in zip(long[kind], ("-", "--", ":"), strict=True):
        ax.plot(curve, dash, color=cu.COLORS["blue"], linewidth=1.3)
    ax.set(xlabel="place (trained: gray)", ylim=(-0.04, 1.04))
    ax.set_title(kind, fontsize=10)
axes[0].set_ylabel("accuracy, three seeds")
fig

# %% [markdown]
# - **Learned**: zero. Rows 16 to 63 were never trained, so these places carry noise for a name.
# - **Sinusoidal**: nearly zero at place 20, with a few lucky places later, although the formula gives every place a
#   vector, although "three to the left" is the same rotation everywhere, and although training found a map that obeys
#   it on 16 places. The matrix *could* be the right rotation; training only asked that it agree with it on 16 rows. A
#   formula that extends is not a model that extends.
# - **Rotary**: it keeps most of its accuracy, above one half with every seed and often nearly all. It knows distances
#   only, and distance 3 it has seen at every place. What it loses, it loses to keys at distances that are new.
#
# So, rotary encodings extrapolate? **Change the task**: name the *first* token, at every place. Now the distance to
# look back grows with the place, and beyond 16 it is one that was never seen.


# %%
def the_first(tokens):
    """Target of each place: the token at place 0."""
    return tokens[:, :1].expand(tokens.shape)


first_models = {kind: [train(kind, seed, the_first) for seed in range(3)] for kind in kinds[1:]}

# %%
first_short = {
    kind: [accuracy(m, 16, the_first).mean() for m in ms] for kind, ms in first_models.items()
}
first_long = {
    kind: torch.stack([accuracy(m, 64, the_first) for m in ms]) for kind, ms in first_models.items()
}
for kind in first_long:
    assert min(first_short[kind]) > 0.97  # solved at the trained length, by all
beyond = {kind: first_long[kind][:, 20:].mean(dim=1) for kind in first_long}
assert beyond["learned"].min() > 0.75  # the loser of the other task
assert beyond["sinusoidal"].min() > 0.1 and beyond["sinusoidal"].max() < 0.97
assert beyond["rotary"].max() < 0.1  # the winner of the other task
assert first_long["rotary"][:, :16].mean(dim=1).max() < 0.8  # even on the trained places

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 3, width=8.6, height=2.7, sharey=True,
    alt="Accuracy at each of 64 places on the other task, for three seeds. Learned positions, which had lost, stay "
    "above 0.9 at all places. Sinusoidal ones are near 0.4 everywhere. Rotary ones are right between "
    "places 10 and 18 only, and at 0 elsewhere.",
)  # fmt: skip
for ax, kind in zip(axes, first_long, strict=True):
    ax.axvspan(0, 15.5, color="0.92")
    for curve, dash in zip(first_long[kind], ("-", "--", ":"), strict=True):
        ax.plot(curve, dash, color=cu.COLORS["vermilion"], linewidth=1.3)
    ax.set(xlabel="place (trained: gray)", ylim=(-0.04, 1.04))
    ax.set_title(kind, fontsize=10)
axes[0].set_ylabel("accuracy, three seeds")
fig

# %% [markdown]
# The order is reversed, and the maps tell why. **Where do the readers look, at 64 tokens?**

# %%
tokens = sequences(300, 64, torch.Generator().manual_seed(123))
looks_at = {}
for kind in first_models:
    for seed, model in enumerate(first_models[kind]):
        with cu.record_attention(model) as recorded, torch.no_grad():
            model(tokens)
        looks_at[kind, seed] = recorded["attention"].mean(dim=0)  # (queries, keys)

far = torch.arange(24, 64)
for seed in range(3):
    assert (looks_at["learned", seed][far].argmax(dim=1) == 0).all()
    twin = looks_at["sinusoidal", seed][far, 16:].argmax(dim=1) + 16
    assert (twin >= 36).all() and (looks_at["sinusoidal", seed][far, 0] > 0.15).all()
    distance = far - looks_at["rotary", seed][far].argmax(dim=1)
    assert ((distance >= 13) & (distance <= 21)).all()

# %% [markdown]
# - **Learned** positions lost the first task and win this one. Row 0 is trained, every query has learned to look for
#   it, and that needs no row of its own.
# - **Sinusoidal** ones are in between. They look for place 0, too, and find it, along with a second one beyond place
#   40: a sum of waves comes round again, and nothing in 16 places taught the model to tell the two apart.
# - **Rotary** ones cannot look for a place. "As far to the left as possible" had to be learned as a distance, and it
#   ends near 16: place 30 reads places near 14, place 50 places near 34. Even the first ten places go wrong, because the
#   keys far to their right stand at new distances, and some of those happen to score higher.
#
# No encoding extrapolates by itself. Each continues *something*, and the task decides whether that is the right
# thing. What helps is to show the model the positions that it will meet. The simplest way: begin each training
# sequence at a random position ([Ruoss et al., 2023](https://arxiv.org/abs/2305.16843), randomize further). **Does
# the sinusoidal reader of the first task learn the rotation, if its 16 tokens start anywhere between 0 and 48?**

# %%
shifted = [train("sinusoidal", seed, farthest_start=48) for seed in range(3)]
before = outside["sinusoidal"]
after = torch.stack([accuracy(model, 64)[20:].mean() for model in shifted])
assert after.min() > 0.6 and (after - before).min() > 0.3

# %% [markdown]
# Never more than 16 tokens at a time, and now it reads most of 64. The same formula as before; only the training
# differs. Language models meet the same wall, and similar remedies: rotary models fail on positions they have not
# seen, and are brought to longer texts by squeezing the new positions into the old range and training a little more
# ([Chen et al., 2023](https://arxiv.org/abs/2306.15595)); a penalty on the score that grows with the distance needs
# no position vectors at all ([Press et al., 2022](https://arxiv.org/abs/2108.12409)). A comparison on reasoning tasks
# found that causal models *without* any encoding generalized best to longer inputs
# ([Kazemnejad et al., 2023](https://arxiv.org/abs/2305.19466)).
#
# ## What goes wrong
#
# Most bugs in this section run without an error, and train, too, only worse.
#
# **The table meets the wrong axis.** Much code was written for tensors (length, batch, $d$) and takes
# `table[: x.shape[0]]`. Given (batch, length, $d$), it adds to *every* token the number of its *sequence*. A test of
# order finds it: the layer still ignores the order.

# %%
table = sinusoids(100, d)[:, None]  # (max_len, 1, d), made for (length, batch, d)
x = torch.randn(4, 6, d)  # (batch, length, d)
wrong = x + table[: x.shape[0]]
assert_close(
    wrong[1] - x[1], table[1].expand(6, d), rtol=1e-3, atol=1e-5
)  # each token of sequence 1: position 1


def attend_with(encode, x):
    encoded = encode(x)
    return F.scaled_dot_product_attention(encoded, encoded, encoded)


order = torch.tensor([4, 0, 5, 2, 1, 3])
for encode, blind in (
    (lambda x: x + table[: x.shape[0]], True),
    (cu.SinusoidalPositions(d), False),
):
    moved = attend_with(encode, x[:, order])
    assert torch.allclose(moved, attend_with(encode, x)[:, order], atol=1e-3) == blind

# %% [markdown]
# **The embeddings outshout the positions.** A row of $\mathbf P$ has the length $\sqrt{d/2}$. Many implementations
# multiply embeddings by $\sqrt d$ first "because positions lie between −1 and 1". That is right for embeddings with
# the standard deviation $1/\sqrt d$. PyTorch's `nn.Embedding` starts with 1, and then a word is $d$ long: at
# $d = 512$, the position is a thirty-second of it.

# %%
d = 512
position_norm = sinusoids(50, d).norm(dim=1)
assert_close(position_norm, torch.full((50,), math.sqrt(d / 2)))

default = nn.Embedding(1000, d).weight.detach() * math.sqrt(d)
fitting = torch.randn(1000, d) / math.sqrt(d) * math.sqrt(d)
ratio = default.norm(dim=1).mean() / position_norm.mean()
assert 31 < ratio < 33  # √(2d) = 32
assert 1.3 < fitting.norm(dim=1).mean() / position_norm.mean() < 1.5  # √2

# %% [markdown]
# **Positions in half precision.** bfloat16 has 8 significant bits, so whole numbers are exact up to 256. Compute
# $i\,\omega_j$ in bfloat16, and far positions coincide. How many different positions are left of 2,048?

# %%
indices = torch.arange(2048, dtype=torch.float32).bfloat16()
distinct = indices.unique().numel()
assert indices[257] == indices[256]
assert distinct == 256 + 128 * 3 + 1  # all up to 256, then every 2nd, 4th, 8th, and 2,048
assert cu.rotate(torch.ones(2048, 2).double()).unique(dim=0).shape[0] == 2048
print(f"{distinct} of 2048 positions are distinct in bfloat16")

# %% [markdown]
# Our functions compute angles in float64 and round at the end. The opposite mistake is a table that *stays* in
# float64: `torch.zeros_like(x, dtype=float)` looks harmless, since `float` is Python's word for float64. Added to
# float32 tokens it makes everything float64, and the next layer refuses.

# %%
x = torch.randn(2, 10, 16)
encodings = torch.zeros_like(x, dtype=float)
assert (x + encodings).dtype == torch.float64
try:
    nn.Linear(16, 16)(x + encodings)
    raise AssertionError("expected an error")
except RuntimeError as error:
    assert "dtype" in str(error)
assert cu.SinusoidalPositions(16)(x).dtype == torch.float32
assert cu.SinusoidalPositions(16)(x.half()).dtype == torch.float16

# %% [markdown]
# **The table is not a buffer.** `self.P = torch.zeros(…)` is a plain attribute: `model.to(device)` leaves it behind.
# Code then moves it in every forward pass, or fails on the first GPU. We need no GPU to see it: the device "meta"
# shows who follows.


# %%
class PlainTable(nn.Module):
    """Keeps its table as a plain attribute."""

    def __init__(self, embed_dim, max_len=100):
        super().__init__()
        self.P = sinusoids(max_len, embed_dim)


assert PlainTable(16).to("meta").P.device.type == "cpu"  # left behind
assert cu.SinusoidalPositions(16).to("meta").table.device.type == "meta"
assert "table" not in cu.SinusoidalPositions(16).state_dict()  # a formula need not be saved

# %% [markdown]
# **Added in place.** `x += P` saves a line and writes into the caller's memory. If `x` is a view of the embedding
# matrix, the words themselves move, a little further with each call.

# %%
embedding = nn.Embedding(50, 16)
before = embedding.weight.detach().clone()
x = embedding.weight.detach()[:10]  # a view, as `embedding(torch.arange(10))` is not
x += sinusoids(10, 16)
assert not torch.equal(embedding.weight[:10], before[:10])

# %% [markdown]
# **Odd widths, and too long.** `table[:, 1::2]` has one column less than `table[:, 0::2]` if $d$ is odd, and a slice
# that ends beyond the table is silently short. Both should say so by name.

# %%
for attempt in (
    lambda: cu.sinusoidal_table(10, 7),
    lambda: cu.SinusoidalPositions(8, max_len=10)(torch.randn(1, 11, 8)),
):
    try:
        attempt()
        raise AssertionError("expected an error")
    except ValueError as error:
        print(error)

# %% [markdown]
# ### Exercise 5 · Find the bug: decoding in steps
# *15 minutes · ★★★*
#
# A decoder writes one token after the other and keeps keys and values in a cache ([The Transformer](10_transformer.ipynb) builds on this). What it
# computes step by step has to equal what it would compute at once, under a causal mask. This function does not. Only
# the first token is right, and a second call gives other numbers than the first.


# %%
def buggy_step_by_step(x, attention, table):
    """Causal self-attention over x (batch, n, d), one token at a time, with positions from `table`."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1]  # (batch, 1, d)
        token += table[: token.shape[1]]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


attention, table = cu.MultiHeadAttention(16, num_heads=2), sinusoids(20, 16)
x = torch.randn(2, 6, 16)
placed = x + table[:6]
with torch.no_grad():
    at_once = attention(placed, placed, placed, cu.causal_mask(6))
    in_steps, again = (buggy_step_by_step(x, attention, table) for _ in range(2))
assert_close(in_steps[:, 0], at_once[:, 0], rtol=1e-4, atol=1e-5)
assert (in_steps[:, 1:] - at_once[:, 1:]).abs().max() > 0.01
assert (again - in_steps).abs().max() > 0.01

# %% [markdown]
# Find the two bugs, and write it right. Keep the cache: each token goes through the attention once.


# %% tags=["exercise"]
def fixed_step_by_step(x, attention, table):
    """Causal self-attention over x (batch, n, d), one token at a time, with positions from `table`."""
    ...


# %% tags=["check"]
cu.checks.fixed_step_by_step(fixed_step_by_step)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_step_by_step(x, attention, table):
    """Causal self-attention over x (batch, n, d), one token at a time, with positions from `table`."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[t]  # its own row, in a tensor of its own
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


cu.checks.fixed_step_by_step(fixed_step_by_step)

# %% [markdown]
# ## Take-aways
#
# - Self-attention is permutation equivariant: it computes with a set of tokens. Order enters through positions, or weakly through a causal mask.
# - Per layer it costs $2n^2d$ for scores and sums *and* $3nd^2$ or $4nd^2$ for projections; it is quadratic only where $n$ exceeds about $2d$. It wins by few sequential steps and a path of length 1, not by less arithmetic.
# - Sinusoids count in waves. A shift by $k$ is one rotation for all positions (mind the sign), and $\mathbf p_i^\top\mathbf p_{i+k}$ falls like a logarithm, the same to the left as to the right.
# - Learned positions are as good up to their length and nothing beyond it. Rotary positions turn queries and keys, so that scores see distances only.
# - Positions turned chance into certainty on our task. None of the three is safe beyond the trained length: which one survives depends on what the task asks.
#
# ## Quiz

# %%
cu.quiz("positions")

# %% [markdown]
# ## References
#
# - Chen, S., Wong, S., Chen, L. and Tian, Y. (2023). [Extending context window of large language models via positional interpolation](https://arxiv.org/abs/2306.15595).
# - Cheng, J., Dong, L. and Lapata, M. (2016). [Long short-term memory-networks for machine reading](https://arxiv.org/abs/1601.06733). EMNLP.
# - Haviv, A., Ram, O., Press, O., Izsak, P. and Levy, O. (2022). [Transformer language models without positional encodings still learn positional information](https://arxiv.org/abs/2203.16634). Findings of EMNLP.
# - Kazemnejad, A., Padhi, I., Natesan Ramamurthy, K., Das, P. and Reddy, S. (2023). [The impact of positional encoding on length generalization in transformers](https://arxiv.org/abs/2305.19466). NeurIPS.
# - Parikh, A., Täckström, O., Das, D. and Uszkoreit, J. (2016). [A decomposable attention model for natural language inference](https://arxiv.org/abs/1606.01933). EMNLP.
# - Press, O., Smith, N. A. and Lewis, M. (2022). [Train short, test long: Attention with linear biases enables input length extrapolation](https://arxiv.org/abs/2108.12409). ICLR.
# - Ruoss, A. et al. (2023). [Randomized positional encodings boost length generalization of transformers](https://arxiv.org/abs/2305.16843). ACL.
# - Su, J., Lu, Y., Pan, S., Murtadha, A., Wen, B. and Liu, Y. (2021). [RoFormer: Enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864). Section 3.2.
# - Vaswani, A., Shazeer, N., Parmar, N., Uszkoreit, J., Jones, L., Gomez, A. N., Kaiser, Ł. and Polosukhin, I. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Sections 3.5 and 4.
# - Yan, H., Deng, B., Li, X. and Qiu, X. (2019). [TENER: Adapting transformer encoder for named entity recognition](https://arxiv.org/abs/1911.04474).
