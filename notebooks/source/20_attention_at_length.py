# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention at length
#
# **What does a context of 100,000 tokens cost, and what can we do about it?**
#
# The model of [Real weights](18_real_weights.ipynb) reads a long text.
# To save memory, each token may look at the last 128 tokens only, the blue ones in its row on the left.
# On the right you see what this costs: almost one nat a token, compared with the whole past in gray.
#
# Now choose *the first and the last 127*.
# The window is no larger, and the first token isn't even a word, but `<|endoftext|>`, which stands before every text.
# Why does it matter so much?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.lessons.attention_at_length import blocks, costs, recall
from course_utils.lessons.attention_at_length.blocks import scores_of
from course_utils.lessons.attention_at_length.explorer import losses_of
from course_utils.lessons.real_weights import smollm, windows

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.windows()

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - compute exact attention in blocks, and say what this saves;
# - count the bytes of a cache by hand;
# - write attention as a recurrence, and say what it blurs;
# - say why one token has to stay in a window.

# %% [markdown] tags=["needs"]
# You will need [GPT](13_gpt.ipynb) and the attention sink of [What heads learn](19_what_heads_learn.ipynb#And-in-a-real-model).

# %% jupyter={"source_hidden": true}
cu.recall("what_heads_learn", "real_weights")

# %% [markdown]
# ## Online softmax: attention in blocks
#
# If *n* tokens look at *n* tokens, there are *n*² scores.
# For 16,384 tokens they take a gigabyte, in each head of each layer.
# Do we need them all at once?
#
# It seems so, because a softmax divides by the sum over *all* keys, and first subtracts the largest of *all* scores, so that no exponential overflows.
# But we can begin early and mend later ([Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867)).
# While we go over the keys, each query remembers three things: its largest score so far, $c$, the sum of the exponentials of its scores, $s = \sum_j e^{a_j - c}$, and the same sum with the values, $y = \sum_j e^{a_j - c}\, v_j$.
# The answer so far is *y* / *s*.
# When a block brings a larger score, both old sums are too large, and we multiply them by $e^{c_{\text{old}} - c_{\text{new}}}$.
#
# Here one query looks at twelve keys, three at a time.

# %% jupyter={"source_hidden": true}
cu.explore.blocks()

# %% [markdown]
# The third block brings the score 4, and the old sums shrink to about an eighth.
# After the last block the answer is that of the whole softmax.
# This **[online softmax](C_glossary.ipynb#online-softmax)** approximates nothing.
#
# ### Exercise 1 · Attention in blocks
#
# *build · 10 minutes*
#
# Write causal attention for all queries at once, `size` keys at a time.
# `scores_of(q, k, block)` gives the scores of all queries with a block of keys, such as `slice(0, 256)`: (n, block), divided by the root of d, and −∞ where a key comes after its query.
# Begin with c = −∞ and with zeros for s and y, where `c` and `s` have the shape (n, 1).
# Return the answers and also c + ln s, the **[log-sum-exp](C_glossary.ipynb#log-sum-exp)** of each row, which the gradients will need.


# %% tags=["exercise", "build"]
def attention_in_blocks(q, k, v, size):
    """(n, d), (n, d), (n, d_v) → the answers (n, d_v), and the log-sum-exp of the scores (n, 1)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.attention_in_blocks(attention_in_blocks)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def attention_in_blocks_solution(q, k, v, size):
    """Both sums are mended before something is added to them."""
    c = q.new_full((len(q), 1), -torch.inf)
    s, y = torch.zeros_like(c), q.new_zeros(len(q), v.shape[1])
    for start in range(0, len(k), size):
        block = slice(start, start + size)
        scores = scores_of(q, k, block)
        old, c = c, torch.maximum(c, scores.amax(dim=1, keepdim=True))
        e, mend = (scores - c).exp(), (old - c).exp()
        s = s * mend + e.sum(dim=1, keepdim=True)
        y = y * mend + e @ v[block]
    return y / s, c + s.log()


cu.checks.attention_in_blocks(attention_in_blocks_solution)

# %% [markdown]
# For the gradients PyTorch would keep the exponentials of every block, which together are the whole matrix again.
# So your function gets a backward pass that computes them a second time: a weight is the exponential of a score minus the log-sum-exp.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
in_blocks = cu.choose(attention_in_blocks, blocks.in_blocks)


class Blockwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, size):
        answers, L = in_blocks(q, k, v, size)
        ctx.save_for_backward(q, k, v, answers, L)
        ctx.size = size
        return answers

    @staticmethod
    def backward(ctx, grad):
        q, k, v, answers, L = ctx.saved_tensors
        grads = [torch.zeros_like(each) for each in (q, k, v)]
        mean = (grad * answers).sum(dim=1, keepdim=True)
        for start in range(0, len(k), ctx.size):
            block = slice(start, start + ctx.size)
            weights = (scores_of(q, k, block) - L).exp()  # a second time
            of_scores = weights * (grad @ v[block].T - mean) / q.shape[1] ** 0.5
            grads[0] += of_scores @ k[block]
            grads[1][block] = of_scores.T @ q
            grads[2][block] = weights.T @ grad
        return *grads, None


def blockwise(q, k, v, is_causal):
    return Blockwise.apply(q, k, v, 64)


q, k, v = torch.randn(3, 300, 16)
cu.equal(blockwise, F.scaled_dot_product_attention, q, k, v, is_causal=True, tolerance=1e-12)

# %% [markdown]
# What does this save?
# We measured one head, forward and backward.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
measured = {
    way: [cu.stored_run("attention_at_length", "cost", way=way, n=n).result for n in costs.LENGTHS]
    for way in costs.WAYS
}  # fmt: skip
fig, axes = cu.subplots(
    1, 2, width=8.6, height=3.2,
    alt="Two pictures with logarithmic axes, over 1,024 to 16,384 tokens. Left, memory: the whole matrix and our blocks with their weights kept rise to thousands of megabytes, with twice the slope of "
    "our blocks with their weights computed again and of PyTorch's operator, which stay near a hundred and a few tens. Right, seconds: all four rise with the same slope, and PyTorch's operator is the fastest.",
)  # fmt: skip
shown = {
    "whole matrix": ("the whole matrix", "query", "-"),
    "blocks, weights kept": ("blocks, weights kept", "wrong", "--"),
    "blocks, weights again": ("blocks, weights a second time", "key", "-"),
    "fused": ("PyTorch's operator", "line", "-"),
}
for ax, what, title in zip(
    axes, ("MB", "seconds"), ("Memory, in megabytes", "Time, in seconds of one core"), strict=True
):
    for way, (label, color, dash) in shown.items():
        ax.loglog(costs.LENGTHS, [row[what] for row in measured[way]], dash, marker="o", markersize=4,
                  color=cu.COLORS[color], label=label)  # fmt: skip
    ax.set_xticks(costs.LENGTHS, [f"{n:,}" for n in costs.LENGTHS])
    ticks = (10, 100, 1000) if what == "MB" else (0.01, 0.1, 1, 10)
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    ax.set(xlabel="tokens", title=title)
axes[0].legend(loc="upper left", fontsize=8)
fig

# %% [markdown]
# **Blocks save memory, and not work.**
# At 16,384 tokens the whole matrix needs 3.5 gigabytes, and our blocks less than 0.1, as long as their weights aren't kept.
# But twice as many tokens still take four times as long, because there are *n*² scores to compute.
# (PyTorch's operator computes in blocks, too, in compiled code.)
#
# On a GPU blocks also save time, because their scores never leave the chip's small, fast memory.
# This is **[FlashAttention](C_glossary.ipynb#flash-attention)** ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)).
# With blocks in all layers, SmolLM2 gives the same logits up to rounding.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At 16,384 tokens the whole matrix needs 3.5 GB, and blocks less than 0.1, unless their weights are kept."
):
    matrix, kept, again, fused = (measured[way][-1] for way in costs.WAYS)
    assert again["MB"] < 100 and kept["MB"] > 0.5 * matrix["MB"] and abs(matrix["MB"] - 3500) < 100
    assert fused["MB"] < again["MB"]

with cu.guard("Twice as many tokens take about four times as long, in each of the four ways."):
    for rows in measured.values():
        assert 3 < rows[-1]["seconds"] / rows[-2]["seconds"] < 6

with cu.guard(
    "In SmolLM2 blocks give the same logits up to rounding, and the same likeliest token everywhere."
):
    (run,) = cu.stored_runs("real_weights", "logits_in_pieces")
    gave = run.examples[0]["gave"]
    for name in ("pieces of 64", "pieces of 37"):
        assert float(gave[name]["difference"]) < 2e-4 and gave[name]["same best"] == 1

# %% [markdown]
# ## What the KV cache costs
#
# A model that writes keeps the keys and values of all tokens so far in its [cache](13_gpt.ipynb#Writing).
# Think of a shelf on which each token leaves a key and a value, in every layer.
#
# ### Exercise 2 · Bytes on paper
#
# *predict · 5 minutes*
#
# SmolLM2 has 30 layers, each with 9 heads of queries, but only 3 heads of keys and values, of 64 features each.
# A number has four bytes.
# How many bytes does the cache take
#
# - (a) for one token?
# - (b) for one token, if each of the 9 heads had its own keys and values?
# - (c) for one token, if all 9 shared one head of keys and values, which is **[multi-query attention](C_glossary.ipynb#multi-query-attention)** ([Shazeer, 2019](https://arxiv.org/abs/1911.02150))?
# - (d) for 100,000 tokens, with its 3 heads, in gigabytes (10⁹ bytes)?


# %% tags=["exercise", "predict"]
def cache_on_paper():
    """Four numbers, for (a) to (d); Python may multiply."""
    return ...  # such as [30 * 64, 10, 20, 1.5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.cache_on_paper(cache_on_paper)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def cache_on_paper_solution():
    """A key and a value, in each layer, for each head that has its own, 64 features of four bytes."""
    one_head = 2 * 30 * 64 * 4
    return [3 * one_head, 9 * one_head, one_head, 100_000 * 3 * one_head / 1e9]


cu.checks.cache_on_paper(cache_on_paper_solution)

# %% [markdown]
# The parameters take 0.54 gigabytes, so a text of 100,000 tokens would weigh far more than the model.
# The table has larger models, at two bytes a number.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
pd.DataFrame(
    {
        name: {
            "heads of queries": config.heads,
            "of keys and values": config.kv_heads,
            "kB a token": f"{config.cache_bytes(1) / 1e3:,.0f}",
            "GB for 100,000 tokens": f"{config.cache_bytes(100_000) / 1e9:,.1f}",
        }
        for name, config in windows.CONFIGS.items()
    }
).T.rename_axis("model")

# %% [markdown]
# In Llama 3.1 four heads of queries share keys and values, which is **[grouped-query attention](C_glossary.ipynb#grouped-query-attention)** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)), and in Falcon all of them do.
# Mistral's layers look at the last 4,096 tokens only, so its cache stops growing there.
# (Of these models only Llama 3.1 was made for 100,000 tokens.)
#
# The cache also sets the pace.
# To write one token, a model fetches every parameter and the whole cache from memory, and does only a few operations with each number.
# It waits for its memory, so writing is **[memory-bound](C_glossary.ipynb#memory-bound)**.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
pace = cu.stored_run("real_weights", "writing").result
pd.DataFrame(
    {
        "milliseconds a token": {
            "reading 512 tokens at once": pace["read"],
            "writing the next token, on the cache": pace["written"],
            "writing in eight texts side by side": pace["written, 8 texts"] / 8,
            "writing the next token, without a cache": pace["written without"],
        }
    }
).mul(1000).round(0).astype(int).rename_axis("SmolLM2, on one core")

# %% [markdown]
# A token that is read along with 511 others is cheap, because they share each parameter that was fetched.
# Eight texts side by side do so, too.

# %% [markdown]
# ## Linear attention: a memory that doesn't grow
#
# Could the shelf have a fixed size?
# A softmax weights each value by $e^{q^\top k}$ and divides by the sum of the weights.
# Let's take another weight, a product of positive **features**, $\varphi(q)^\top \varphi(k)$.
# Then the query can be pulled out of both sums ([Katharopoulos et al., 2020](https://arxiv.org/abs/2006.16236)):
#
# $$\frac{\sum_j \varphi(q)^\top \varphi(k_j)\; v_j^\top}{\sum_j \varphi(q)^\top \varphi(k_j)} = \frac{\varphi(q)^\top S}{\varphi(q)^\top z}, \qquad S = \sum_j \varphi(k_j)\, v_j^\top, \qquad z = \sum_j \varphi(k_j).$$
#
# The matrix *S*, with a row for each feature, and the vector *z* are the whole memory.
# Instead of a shelf we have a single sheet of paper, and each token writes its key and value on top of all the others.
# This is **[linear attention](C_glossary.ipynb#linear-attention)**.


# %%
def features(x):
    return F.elu(x) + 1  # positive, so that no weight is negative


def linear_attention(q, k, v):
    """Every query looks at all keys: q and k (…, n, r), v (…, n, d_v)."""
    q, k = features(q), features(k)
    S, z = k.mT @ v, k.sum(dim=-2)  # (…, r, d_v) and (…, r), whatever n is
    return q @ S / (q @ z[..., None])


# %% [markdown]
# ### Exercise 3 · Token by token
#
# *build · 6 minutes*
#
# In a causal attention a query looks at itself and at earlier tokens.
# So go through the text token by token: write each one on the sheet, and then ask.
# Here `q` and `k` are features already.


# %% tags=["exercise", "build"]
def recurrent(q, k, v):
    """Features (n, r) of queries and keys, and values (n, d_v) → causal answers (n, d_v)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.recurrent(recurrent)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def recurrent_solution(q, k, v):
    """S and z are all that is kept from one token to the next."""
    S, z, answers = q.new_zeros(q.shape[1], v.shape[1]), q.new_zeros(q.shape[1]), []
    for asks, key, value in zip(q, k, v, strict=True):
        S, z = S + torch.outer(key, value), z + key
        answers.append(asks @ S / (asks @ z))
    return torch.stack(answers)


cu.checks.recurrent(recurrent_solution)

# %% [markdown]
# Your function is a **recurrent network**, which reads a text token by token and keeps only a state.
# In training the same answers come all at once from a masked product, as in a Transformer.
#
# What gets lost on such a sheet?
# Let's test it with a telephone book.
# A network reads *n* pairs of a key and a value, of which there are 128 each, and is then asked for each key.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
class Recall(nn.Module):
    """Reads n pairs of a key and a value, and is asked for each key: (batch, n, 128) logits of its value."""

    def __init__(self, attend, dim=16, width=64):
        super().__init__()
        self.attend = attend
        self.keys, self.values = nn.Embedding(128, 64), nn.Embedding(128, width)
        self.query_proj, self.key_proj = (nn.Linear(64, dim, bias=False) for _ in range(2))
        self.output = nn.Linear(width, 128)

    def forward(self, keys, values):
        keys, values = self.keys(keys), self.values(values)
        return self.output(self.attend(self.query_proj(keys), self.key_proj(keys), values))


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def pairs(n, count, draws):
    """Different keys and any values, of 128 each: (count, n) twice."""
    keys = torch.rand(count, 128, generator=draws).argsort(1)[:, :n]
    return keys, torch.randint(128, (count, n), generator=draws)


def train(model, steps=1500, rate=0.03, seed=0, sizes=(4, 8, 16, 32, 64), watch=None):
    """AdamW on texts of `sizes` pairs. The rate rises for 50 steps, and falls to zero in the last half."""
    draws = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50, 2 * (1 - step / steps))
    )
    for step in range(1, steps + 1):
        n = sizes[torch.randint(len(sizes), (), generator=draws)]
        keys, values = pairs(n, 32, draws)
        loss = F.cross_entropy(model(keys, values).mT, values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if watch:
            watch(step, model)
    return model


# %% tags=["nbval-ignore-output"]
torch.manual_seed(0)
dim = 16  # the size of a key; try 8 … 64
model = train(Recall(linear_attention, dim))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
keys, values = pairs(64, 256, torch.Generator().manual_seed(8))
found = (model(keys, values).argmax(-1) == values).float().mean().item()
stored = {
    (run.config["how"], run.config["dim"]): run
    for run in cu.stored_runs("attention_at_length", "recalled", highest="validation")
    if run.config["seed"] == 0
}
fig, ax = cu.subplots(
    width=6.4, height=3.4,
    alt="Accuracy over the number of pairs, 4 to 64. The softmax stays at 1. Linear attention with keys of size 32 stays near 1 and ends above 0.9, with 16 it bends to about 0.6, with 8 to about 0.25. "
    "A dotted line, a window with the memory of the linear attention of size 16, falls from 1 at 13 pairs to 0.2.",
)  # fmt: skip
dashes = {("softmax", 8): "-", ("linear", 32): ":", ("linear", 16): "--", ("linear", 8): "-."}
for (how, size), dash in dashes.items():
    curve = [stored[how, size].result[str(n)] for n in recall.PAIRS]
    ax.semilogx(recall.PAIRS, curve, dash, color=cu.COLORS["query" if how == "softmax" else "key"],
                label=f"{how}, keys of size {size}")  # fmt: skip
room = recall.pairs_of_same_memory(16)
ns = range(4, 65)
ax.plot(ns, [recall.in_a_window(n, room) for n in ns], color=cu.COLORS["line"], linewidth=1.2,
        label=f"only the last {room} pairs")  # fmt: skip
ax.plot(64, found, "o", color=cu.COLORS["value"], label=f"yours, keys of size {dim}")
ax.set_xticks(recall.PAIRS, recall.PAIRS)
ax.minorticks_off()
ax.set(xlabel="pairs in the text", ylabel="accuracy", ylim=(0, 1.05))
ax.legend(loc="lower left", fontsize=8)
fig

# %% [markdown]
# **A softmax, which keeps all pairs, finds all 64 values, even with keys of size 8. The sheet blurs as pairs come to outnumber the features of a key.**
# It forgets the first pair no sooner than the last, because a sum has no order.
# A larger state blurs later: let `dim` be 64.
#
# Still, it makes good use of its memory.
# A cache with room for the 1,040 entries of *S* and *z*, with keys of size 16, would hold the last 13 pairs and nothing of the others, which is the gray line.
#
# ## Windows and attention sinks
#
# A text isn't a telephone book, because what comes next depends mostly on what came last.
# So it should be cheap to throw away the oldest keys and values.
# On the first screen it was, if the first token stayed.
# How much is this token worth?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "One cache has room for 128 tokens and holds the last 128. Another one has room for 32, and holds the first and the last 31. With which of them is the loss on our text lower?",
    ["with the 128", "about the same with both", "with the 32"],
    answer="with the 32",
    wrong={
        "with the 128": "It sees four times as many tokens. But look at the first screen again: what cost more there, losing the far past or losing the first token?",
        "about the same with both": "The two effects do work against each other. How large was each of them on the first screen?",
    },
    why="On the first screen the far past was worth about 0.3 nats, and the first token more than twice as much. The tokens from 32 to 127 back are worth less than the first token alone.",
)

# %% tags=["hide-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
pages = losses_of("pages", "128", "sizes", "alone", "values")
for name, view in (("the last 128", "last 128"), ("the first and the last 31", "first 1, last 31")):
    print(f"{name:>26}: {pages[view]['mean']:.2f}")

# %% [markdown]
# ### What makes a token a sink
#
# The first token is an **[attention sink](C_glossary.ipynb#attention-sink)**: in [What heads learn](19_what_heads_learn.ipynb#And-in-a-real-model) a third of all weight lay on it.
# Is this because of what it says, or because of where it stands?
# Let's keep the 40th token in its place.
# That doesn't help at all.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We keep the 40th token and the last 127, and now we also blindfold the 40th token: in every layer it may look at nobody but itself. So it knows nothing of the 39 tokens before it. What happens to the loss?",
    [
        "it stays where it was",
        "it rises, because the token knows less",
        "it falls to what it was with the first token",
        "it falls about half of the way",
    ],
    answer="it falls to what it was with the first token",
    wrong={
        "it stays where it was": "It's the same token, at the same position. But does it look the same to the other tokens, now that it has seen nobody?",
        "it rises, because the token knows less": "The token does know less. But what did the first token know about the text?",
        "it falls about half of the way": "In what way would the blindfolded token still differ from the first? Only in what it says and in where it stands.",
    },
    why="The first token is the only one that sees nobody but itself. With the blindfold the 40th token is such a token, too, and the model rests its weight there.",
)

# %% tags=["hide-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
rows = {
    "the last 128": "last 128",
    "the first and the last 127": "first 1, last 127",
    "the 40th and the last 127": "40th, last 127",
    "the 40th, blindfolded, and the last 127": "40th alone, last 127",
}
pd.DataFrame({"loss": {name: pages[view]["mean"] for name, view in rows.items()}}).rename_axis(
    "a token may look at"
).round(2)

# %% [markdown]
# **Another token takes the place of the first if it sees nobody but itself.**
# What it says and where it stands doesn't matter here.
# Let it see a single neighbor, and in nine of ten trials it is worth nothing again.
#
# Why does a model need such a token?
# A softmax has to put all of its weight somewhere, even in a head that needs nothing from this text.
# In training there was always one token in sight that had seen no other, and the model has learned to recognize such a token and to rest its weight there.
# Without it the weight falls on tokens that mean something, and their values get into the answer.
#
# We can test this by exchanging only the value that the first token gives to later ones.
# With the whole past in sight, zeros raise the loss by 0.2, and the mean of the other tokens' values raises it by 1.4.
# So above all this value must *not* say what the others say.
#
# [Xiao et al. (2024)](https://arxiv.org/abs/2309.17453) found in much larger models that the first tokens have to stay.
# If the last 128 are read anew for each token, as a text of their own, nothing has to stay, because the oldest sees nobody.
# But that's 128 times the work.
#
# With the weights, you can try a window of your own, where `alone` are blindfolded.

# %% tags=["nbval-ignore-output"]
lm = smollm.reference() if cached("smollm2") else None  # without the weights: as recorded
smollm.known(windows.through, lm, last=15, always=[0], alone=[])

# %% [markdown]
# ## The bill
#
# | | memory for token *n* | work for token *n* | exact? | what it forgets |
# |---|---|---|---|---|
# | the whole past, in blocks | *n* keys and values | *n* scores | yes | nothing |
# | linear attention | one sheet | always the same | another model | everything a little |
# | the first and the last *w* | *w* keys and values | *w* scores | no | all that is older |
#
# **What a token may still look at has to be kept.**
# To save memory we give up sharpness or tokens, and of the tokens one has to stay.
# (A mean loss flatters windows, because few tokens depend on what is far away.)
#
# <details><summary><em>How sure is this?</em></summary>
#
# SmolLM2's numbers hold for its four-bit file, and the table for one text.
# In four others we found the same.
# Four other tokens don't replace the first, and the second makes it worse.
# In a model of Xiao et al. the perplexity rose a thousandfold without the first tokens, and here by a factor of 2.6.
# A small GPT of ours has no sink.
#
# The telephone books were learned at five rates or more, with three seeds each.
# Twice as many steps, or texts of 64 pairs alone, add little.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The cache of a long text weighs more than the model: 100,000 tokens take 4.6 GB, the parameters 0.54."
):
    smol = windows.CONFIGS["SmolLM2 135M"]
    assert smol.cache_bytes(1, bytes_each=4) == 46_080
    assert round(smol.cache_bytes(100_000, bytes_each=4) / 1e9, 1) == 4.6
    assert abs(pace["weights, MB"] - 538) < 1 and pace["bytes a token"] == 46_080

with cu.guard(
    "A written token costs several times what a read one costs; in eight texts side by side it costs less than half of that."
):
    assert pace["written"] > 5 * pace["read"]
    assert pace["written, 8 texts"] / 8 < pace["written"] / 2
    assert pace["written without"] > 10 * pace["written"]

with cu.guard(
    "The softmax finds all pairs with keys of size 8, and linear attention bends, later with larger keys."
):
    tuned = cu.stored_runs("attention_at_length", "recalled", highest="validation")
    at_64 = {}
    for run in tuned:
        at_64.setdefault((run.config["how"], run.config["dim"]), []).append(run.result["64"])
    assert min(at_64["softmax", 8]) > 0.999
    assert (
        max(at_64["linear", 8]) < 0.3
        and 0.6 < min(at_64["linear", 16]) < max(at_64["linear", 16]) < 0.7
    )
    assert min(at_64["linear", 32]) > 0.9
    assert all(
        run.result["16"] > 0.94
        for run in tuned
        if (run.config["how"], run.config["dim"]) == ("linear", 16)
    )
    assert room == 13 and recall.numbers_kept(16) == 1040
    assert min(at_64["linear", 16]) > 2 * recall.in_a_window(64, room)

with cu.guard(
    "The curves are nearly flat: twice as many steps, or training on 64 pairs alone, add little."
):
    longer = cu.stored_runs("attention_at_length", "trained_longer")
    alone = cu.stored_runs("attention_at_length", "of_64_alone")
    best = max(run.result["64"] for run in (*longer, *alone))
    assert best < 0.72

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In our texts the first and the last 31 have a lower loss than the last 128, and four others instead of the first don't help."
):
    for text in windows.TEXTS:
        means = {view: gave["mean"] for view, gave in losses_of(text, "128", "sizes").items()}
        assert means["first 1, last 31"] < means["last 128"] - 0.1
        assert means["last 128"] - means["first 1, last 127"] > 2 * (
            means["first 1, last 127"] - means["whole past"]
        )
        others = [loss for view, loss in means.items() if view.startswith("4 others")]
        assert len(others) == 4 and min(others) > means["last 128"] - 0.06
        assert means["second to fifth, last 124"] > means["last 128"]

with cu.guard(
    "A token that sees nobody but itself takes the place of the first, and one that sees others doesn't."
):
    for text in windows.TEXTS:
        means = {view: gave["mean"] for view, gave in losses_of(text, "128", "alone").items()}
        for place in ("40th", "90th"):
            assert abs(means[f"{place} alone, last 127"] - means["first 1, last 127"]) < 0.03
            assert means[f"{place}, last 127"] > means["last 128"] - 0.05

with cu.guard("If it sees one neighbor, it is worth nothing again, in nine of ten trials."):
    worth = [
        means["last 128"] - loss["mean"] > 0.1
        for text in windows.TEXTS
        for means in [{view: gave["mean"] for view, gave in losses_of(text, "128").items()}]
        for loss in losses_of(text, "with one other").values()
    ]
    assert len(worth) == 10 and sum(worth) == 1

with cu.guard("Read anew as a text of their own, the last 128 do as well as with the first token."):
    for text in windows.TEXTS:
        (anew,) = cu.stored_runs("real_weights", "recomputed", text=text)
        gave = anew.examples[0]["gave"]
        assert abs(gave["recomputed"] - gave["first 1, last 127"]) < 0.1
        assert gave["last 128"] - gave["recomputed"] > 0.4

with cu.guard(
    "A zero in place of the first token's value costs 0.2 nats, and the mean of the others' values 1.4."
):
    whole = pages["whole past"]["mean"]
    zero, mean = (pages[f"whole past, value {by}"]["mean"] - whole for by in ("zero", "mean"))
    assert abs(zero - 0.2) < 0.05 and abs(mean - 1.4) < 0.05

with cu.guard("A small GPT has no sink: with the first token in its window it is no better."):
    (small,) = cu.stored_runs("attention_at_length", "small_gpt")
    assert small.result["on the first"] < 0.03
    for size in (8, 16):
        assert small.result[f"first 1, last {size - 1}"] > small.result[f"last {size}"]

# %% [markdown]
# ## Take-aways
#
# - The sums of a softmax can be mended, so exact attention can be computed in blocks.
#   This saves memory, and not work.
# - A cache grows with every token and sets the pace of writing.
#   Linear attention has a memory of fixed size, in which everything blurs once it is full.
# - SmolLM2 can read through a window that keeps the first token, or another one that sees nobody but itself.
#   There it rests the weight that it doesn't need.

# %% [markdown] tags=["next"]
# Next: [a project of your own](D_capstone.ipynb).
# The path to a real model ends here.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("attention_at_length")

# %% [markdown]
# ## References
#
# - Ainslie, J. et al. (2023).
#   [GQA: Training generalized multi-query Transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245).
#   EMNLP.
# - Dao, T., Fu, D. Y., Ermon, S., Rudra, A. and Ré, C. (2022).
#   [FlashAttention: Fast and memory-efficient exact attention with IO-awareness](https://arxiv.org/abs/2205.14135).
#   NeurIPS.
# - Katharopoulos, A., Vyas, A., Pappas, N. and Fleuret, F. (2020).
#   [Transformers are RNNs: Fast autoregressive Transformers with linear attention](https://arxiv.org/abs/2006.16236).
#   ICML.
# - Milakov, M. and Gimelshein, N. (2018).
#   [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867).
# - Shazeer, N. (2019).
#   [Fast Transformer decoding: One write-head is all you need](https://arxiv.org/abs/1911.02150).
# - Xiao, G., Tian, Y., Chen, B., Han, S. and Lewis, M. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
