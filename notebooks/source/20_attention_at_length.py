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
# [SmolLM2](18_real_weights.ipynb), our real model, reads a text.
# To save memory, each token may look only at the last 128 tokens.
# In the first picture each row is a token, and what it may look at is blue.
# The second picture shows what this costs: almost one nat a token, compared with the whole past (gray).
#
# Now choose *the first token and the last 127*.
# The window is no larger, and the first token isn't even a word, but `<|endoftext|>`.
# Why does it matter so much?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.lessons.attention_at_length import blocks, costs, explorer, recall
from course_utils.lessons.attention_at_length.blocks import scores_of
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
# - say which token has to stay in a window.

# %% [markdown] tags=["needs"]
# You will need [GPT](13_gpt.ipynb) and [Real weights](18_real_weights.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("real_weights", "gpt")

# %% [markdown]
# ## Online softmax: attention in blocks
#
# If *n* tokens look at *n* tokens, there are *n*² scores.
# For 16,384 tokens the scores of a single head take a gigabyte.
# Do we need them all at once?
#
# It seems so, because a softmax divides by a sum over *all* keys, and first subtracts the largest of *all* scores, so that no exponential overflows.
# But we can begin early and correct later ([Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867); [Rabe and Staats, 2021](https://arxiv.org/abs/2112.05682)).
# While we go over the keys, we keep for each query a running maximum *c* of its scores, a running sum of the exponentials, and a running sum of the exponentials times the values:
#
# $$s = \sum_j e^{a_j - c}, \qquad y = \sum_j e^{a_j - c}\, v_j.$$
#
# The answer so far is *y* / *s*.
# When a block brings a larger score, both old sums were computed with a *c* that is now too small.
# So we rescale them by multiplying both by $e^{c_{\text{old}} - c_{\text{new}}}$.
#
# Here one query looks at twelve keys, three at a time.

# %% jupyter={"source_hidden": true}
cu.explore.blocks()

# %% [markdown]
# The third block brings the score 4, and the old sums shrink to about a seventh.
# After the last block the answer is that of the whole softmax, so this **[online softmax](C_glossary.ipynb#online-softmax)** is exact.
#
# ### Exercise 1 · Attention in blocks
#
# *build · 10 minutes*
#
# Write causal attention for all queries at once, `size` keys at a time, with exponentials and without `softmax`.
# `scores_of(q, k, block)` gives the scores of all queries with one block of keys, already divided by √d.
# It returns a row for each query and a column for each key of the block, and a key that comes after its query has the score −∞.
# (`block` is a slice, such as `slice(0, 256)`.)
# Begin with c = −∞ and with zeros for s and y, where `c` and `s` have the shape (n, 1).
# Return the answers and also c + ln s, the **[log-sum-exp](C_glossary.ipynb#log-sum-exp)** of each row.
# We'll need it for the gradients.


# %% tags=["exercise", "build"]
def attention_in_blocks(q, k, v, size):
    """(n, d), (n, d), (n, d_v) → the answers (n, d_v), and the log-sum-exp of the scores (n, 1)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.attention_in_blocks(attention_in_blocks)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def attention_in_blocks_solution(q, k, v, size):
    """Both sums are rescaled before something is added to them."""
    c = q.new_full((len(q), 1), -torch.inf)
    s, y = torch.zeros_like(c), q.new_zeros(len(q), v.shape[1])
    for start in range(0, len(k), size):
        block = slice(start, start + size)
        scores = scores_of(q, k, block)
        old, c = c, torch.maximum(c, scores.amax(dim=1, keepdim=True))
        e, factor = (scores - c).exp(), (old - c).exp()
        s = s * factor + e.sum(dim=1, keepdim=True)
        y = y * factor + e @ v[block]
    return y / s, c + s.log()


cu.checks.attention_in_blocks(attention_in_blocks_solution)

# %% [markdown]
# For the gradients PyTorch would keep the weights of every block, which together are the whole matrix again.
# So we give your function a backward pass that *recomputes* them.
# Each attention weight is exp(*a* − *L*), where *a* is the score and *L* the log-sum-exp of its row.

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
        mean = (grad * answers).sum(
            dim=1, keepdim=True
        )  # of a row's weights: what the softmax subtracts
        for start in range(0, len(k), ctx.size):
            block = slice(start, start + ctx.size)
            weights = (scores_of(q, k, block) - L).exp()  # recomputed
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
# Here are memory and time of one head, forward and backward, on one core.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
measured = {
    way: [cu.stored_run("attention_at_length", "cost", way=way, n=n).result for n in costs.LENGTHS]
    for way in costs.WAYS
}  # fmt: skip
shown = {
    "whole matrix": "the whole matrix",
    "blocks, weights kept": "blocks, weights kept",
    "blocks, weights again": "blocks, weights recomputed",
    "fused": "PyTorch's built-in attention",
}
pd.DataFrame(
    {
        f"{unit} for {n:,} tokens": {
            label: f"{measured[way][costs.LENGTHS.index(n)][key]:{form}}"
            for way, label in shown.items()
        }
        for unit, key, form, n in (
            ("MB", "MB", ",.0f", costs.LENGTHS[-1]),
            ("seconds", "seconds", ".1f", costs.LENGTHS[-2]),
            ("seconds", "seconds", ".1f", costs.LENGTHS[-1]),
        )
    }
)

# %% [markdown]
# **Blocks save memory, not work.**
# The whole matrix needs 3.5 gigabytes, because PyTorch holds it several times: as scores, as weights and as their gradients.
# Our blocks need less than 0.1, if their weights are recomputed.
# But twice as many tokens still take about four times as long, because there are *n*² scores to compute.
# (PyTorch's built-in attention is compiled, and computes in blocks, too.)
#
# On a GPU blocks also save time, because their scores never leave the chip's small, fast memory.
# This is **[FlashAttention](C_glossary.ipynb#flash-attention)** ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At 16,384 tokens the whole matrix needs 3.5 GB, and blocks less than 0.1, unless their weights are kept."
):
    matrix, kept, again, fused = (measured[way][-1] for way in costs.WAYS)
    assert again["MB"] < 100 and kept["MB"] > 0.5 * matrix["MB"] and abs(matrix["MB"] - 3500) < 100
    assert fused["MB"] < again["MB"] and fused["seconds"] < again["seconds"] / 3

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
# Each number takes four bytes.
# How many bytes does the cache take
#
# - (a) for one token?
# - (b) for one token, if each of the 9 heads had its own keys and values?
# - (c) for one token, if all 9 shared one head of keys and values, which is **[multi-query attention](C_glossary.ipynb#multi-query-attention)** ([Shazeer, 2019](https://arxiv.org/abs/1911.02150))?
# - (d) for 100,000 tokens, with its 3 heads, in gigabytes (10⁹ bytes)?


# %% tags=["exercise", "predict"]
def cache_on_paper():
    """Four numbers, for (a) to (d). You may let Python multiply."""
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
# SmolLM2's parameters take 0.54 gigabytes, so the cache of such a text would weigh far more than the model.
# Here are larger models, at two bytes a number (KV: keys and values).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
pd.DataFrame(
    {
        name: {
            "query heads": config.heads,
            "KV heads": config.kv_heads,
            "GB for 100,000 tokens": f"{config.cache_bytes(100_000) / 1e9:,.1f}",
        }
        for name, config in windows.CONFIGS.items()
        if name != "SmolLM2 135M"
    }
).T

# %% [markdown]
# In Llama 3.1 each group of four query heads shares one head of keys and values.
# This is **[grouped-query attention](C_glossary.ipynb#grouped-query-attention)** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)).
# In Mistral 7B v0.1 a layer looks only at the last 4,096 tokens, so its cache stops growing there.
# (Of these models only Llama 3.1 was made for 100,000 tokens.)
#
# How long does SmolLM2 take for a token on one core when it reads 512 tokens at once, and when it writes the next one?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
pace = cu.stored_run("real_weights", "writing").result
pd.DataFrame(
    {
        "milliseconds a token": {
            "reading 512 tokens at once": pace["read"],
            "writing the next token, with the cache": pace["written"],
            "writing it in eight texts side by side": pace["written, 8 texts"] / 8,
            "writing the next token, without a cache": pace["written without"],
        }
    }
).mul(1000).map("{:,.0f}".format)

# %% [markdown]
# Reading a text (**prefill**) is cheap, because each parameter is fetched from memory once for all 512 tokens.
# But to write one token (**decoding**), a model fetches all parameters and its whole cache, and does only a few operations with each number.
# So a good part of the time goes into fetching, and we say that writing is **[memory-bound](C_glossary.ipynb#memory-bound)**.
# Eight texts side by side share the parameters, but not their caches.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "SmolLM2's cache of 100,000 tokens takes 4.6 GB, more than eight times its parameters."
):
    smol = windows.CONFIGS["SmolLM2 135M"]
    assert smol.cache_bytes(1, bytes_each=4) == 46_080
    assert round(smol.cache_bytes(100_000, bytes_each=4) / 1e9, 1) == 4.6
    assert abs(pace["weights, MB"] - 538) < 1 and pace["bytes a token"] == 46_080
    assert smol.cache_bytes(100_000, bytes_each=4) > 8 * 1e6 * pace["weights, MB"]

with cu.guard(
    "Writing a token costs several times as much as reading one, and less than half of that in eight texts side by side."
):
    assert pace["written"] > 5 * pace["read"]
    assert pace["written, 8 texts"] / 8 < pace["written"] / 2
    assert pace["written without"] > 10 * pace["written"]

# %% [markdown]
# ## Linear attention: a memory that doesn't grow
#
# Could the shelf have a fixed size?
# A softmax weights each value by exp(*q* · *k*) and divides by the sum of the weights.
# Let's take another weight.
# We turn *q* and *k* into positive **features**, φ(*q*) and φ(*k*), and take their dot product.
# The query doesn't depend on *j*, so we can pull it out of both sums ([Katharopoulos et al., 2020](https://arxiv.org/abs/2006.16236)):
#
# $$\frac{\sum_j \varphi(q)^\top \varphi(k_j)\; v_j^\top}{\sum_j \varphi(q)^\top \varphi(k_j)} = \frac{\varphi(q)^\top S}{\varphi(q)^\top z}, \qquad S = \sum_j \varphi(k_j)\, v_j^\top, \qquad z = \sum_j \varphi(k_j).$$
#
# The matrix *S*, with a row for each feature, and the vector *z* are the whole memory.
# Instead of a shelf we have one sheet of paper, and each token writes on top of all the others.
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
# In causal attention a query sees nothing that comes later.
# So go token by token: write its key and value on the sheet, and then let its query ask.
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
#
# What gets lost on such a sheet?
# Let's test it with a telephone book of 128 possible names (keys) and 128 possible numbers (values).
# A network reads *n* pairs, and is then asked for the value of each key.
# The one below, with `linear_attention`, trains for about 15 seconds.


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
    width=4, height=3.4,
    alt="Accuracy over the number of pairs, 4 to 64. The softmax stays at 1. Linear attention with keys of size 32 stays near 1 and ends above 0.9, with 16 it bends to about 0.6, with 8 to about 0.25. "
    "A thin gray line, a window with the memory of the linear attention of size 16, falls from 1 at 13 pairs to 0.2.",
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
ax.plot(64, found, "o", color=cu.COLORS["value"], label=f"trained here, keys of size {dim}")
ax.set_xticks(recall.PAIRS, recall.PAIRS)
ax.minorticks_off()
ax.set(xlabel="pairs in the text", ylabel="accuracy", ylim=(0, 1.05))
ax.legend(loc="lower left", fontsize=8)
fig

# %% [markdown]
# **A softmax finds all 64 values, even with keys of size 8. The sheet blurs as pairs are added.**
# With keys of size 16 it still finds 98% of 16 pairs, but 64% of 64.
# It forgets the first pair no sooner than the last, because a sum has no order.
# A larger state blurs later: set `dim` to 64, and run that cell and the folded one with the plot again.
#
# Most of this blur is the price of weights that can't be negative: no pair can take away what another has added.
# With signed weights, and no division, *S* alone finds 92% of 64 pairs.
# (Leaving out the division alone changes hardly anything.)
#
# Does the sheet save memory?
# With keys of size 16 and values of size 64, *S* and *z* have 16 · 64 + 16 = 1,040 entries.
# A cache of as many numbers keeps 13 of *these* pairs, and forgets the others (gray line).
# But a cache may keep smaller ones: with keys and values of size 8 it holds all 64 pairs, and a softmax finds them all.
# So here the sheet saves nothing, but it never grows.

# %% tags=["guard"] jupyter={"source_hidden": true}
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

with cu.guard(
    "A cache of 64 pairs with keys and values of size 8 is smaller than the sheet, and a softmax finds all of them."
):
    small = cu.stored_runs("attention_at_length", "small_pairs")
    assert len(small) == 9 and min(run.result["64"] for run in small) > 0.999
    assert recall.numbers_kept(16) > 64 * (8 + 8)

with cu.guard(
    "With signed weights the same S finds more than 90% of 64 pairs, divided or not, and without the division alone no more."
):
    for how in ("signed", "divided"):
        assert len(at_64[how, 16]) == 3 and all(0.91 < share < 0.93 for share in at_64[how, 16])
    assert len(at_64["positive", 16]) == 3
    assert 0.6 < min(at_64["positive", 16]) < max(at_64["positive", 16]) < 0.65

with cu.guard("More training adds little: twice as many steps, or texts of 64 pairs alone."):
    longer = cu.stored_runs("attention_at_length", "trained_longer")
    alone = cu.stored_runs("attention_at_length", "of_64_alone")
    best = max(run.result["64"] for run in (*longer, *alone))
    assert best < 0.72

# %% [markdown]
# ## Windows and attention sinks
#
# Ordinary text isn't a telephone book, and what comes next in it depends mostly on what came just before.
# So a **sliding window**, which keeps only the last keys and values, should cost little.
# But on the first screen it cost almost one nat a token, and much less when the first token stayed.
# With this token even a window of 32 beats the last 128.
#
# In the later layers of SmolLM2 about a third of all weight lies on the first token, which is called an **[attention sink](C_glossary.ipynb#attention-sink)**.
# One explanation is that a softmax has to put all of its weight somewhere, even in a head that needs nothing from this text.
# But what makes a token a sink: what it says, or where it stands?
# Let's keep the token at position 40 instead of the first, which is at position 0.
# That doesn't help at all, and the loss stays at 4.56.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Now we keep the token at position 40 instead of the first, and blindfold it: in every layer it may look only at itself, so it knows nothing of the 40 tokens before it. What happens to the loss?",
    [
        "It stays where it was",
        "It rises, because the token knows less",
        "It falls to what it was with the first token",
        "It falls halfway",
    ],
    answer="It falls to what it was with the first token",
    wrong={
        "It stays where it was": "It's the same token, at the same position. But does it look the same to the other tokens, now that it has seen only itself?",
        "It rises, because the token knows less": "The token does know less. But what did the first token know about the text?",
        "It falls halfway": "In what way would the blindfolded token still differ from the first? Only in what it says and in where it stands.",
    },
    why="Without a blindfold the first token is the only one that sees only itself. With it the token at position 40 is such a token, too, and in the later layers the model rests as much of its weight there (about 40%).",
)

# %% tags=["remove-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
pages = explorer.losses_of("pages", "128", "sizes", "alone")
rows = {
    "the last 128": "last 128",
    "the first token and the last 127": "first 1, last 127",
    "position 40 and the last 127": "40th, last 127",
    "position 40, blindfolded, and the last 127": "40th alone, last 127",
}
pd.DataFrame({"loss": {name: pages[view]["mean"] for name, view in rows.items()}}).round(2)

# %% [markdown]
# With the blindfold the loss falls to 3.90, as with the first token.
# **Another token takes the place of the first if it sees only itself.**
# Neither what it says nor where it stands matters here.
# Let it see a single neighbor, and in nine of ten trials it is worth nothing again.
# In training one such token was always in sight, and the model may have learned to rely on it.
#
# As a window moves on, it leaves the first token behind, and with it the only one that sees only itself.
# [Xiao et al. (2024)](https://arxiv.org/abs/2309.17453) found in much larger models that the first tokens have to stay.
#
# If you have SmolLM2's weights, you can try a window of your own.

# %% tags=["nbval-ignore-output"]
# the last tokens, positions that are always kept, and those that see only themselves
lm = smollm.reference() if cached("smollm2") else None  # without the weights: as recorded
gave = smollm.known(windows.through, lm, last=15, always=[0], alone=[])
print("loss {loss:.2f} on 1,024 tokens, {whole past:.2f} with the whole past".format(**gave))

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In our texts the first token and the last 31 have a lower loss than the last 128, and four other tokens in place of the first don't help."
):
    for text in windows.TEXTS:
        means = {
            view: gave["mean"] for view, gave in explorer.losses_of(text, "128", "sizes").items()
        }
        assert means["first 1, last 31"] < means["last 128"] - 0.1
        assert means["last 128"] - means["first 1, last 127"] > 2 * (
            means["first 1, last 127"] - means["whole past"]
        )
        others = [loss for view, loss in means.items() if view.startswith("4 others")]
        assert len(others) == 4 and min(others) > means["last 128"] - 0.06
        assert means["second to fifth, last 124"] > means["last 128"]
    assert round(pages["first 1, last 31"]["mean"], 2) == 4.33
    assert round(pages["last 128"]["mean"], 2) == round(pages["40th, last 127"]["mean"], 2) == 4.56
    assert round(pages["40th alone, last 127"]["mean"], 2) == 3.9
    assert round(pages["first 1, last 127"]["mean"], 2) == 3.9

with cu.guard(
    "A token that sees only itself takes the place of the first, and one that sees others doesn't."
):
    for text in windows.TEXTS:
        means = {
            view: gave["mean"] for view, gave in explorer.losses_of(text, "128", "alone").items()
        }
        for place in ("40th", "90th"):
            assert abs(means[f"{place} alone, last 127"] - means["first 1, last 127"]) < 0.03
            assert means[f"{place}, last 127"] > means["last 128"] - 0.05

with cu.guard(
    "In layers 12 to 29 a token that sees only itself gets as much weight as the first, and one that sees others hardly any."
):
    for run in cu.stored_runs("real_weights", "weight_on_kept"):
        on = run.examples[0]["gave"]
        for place in ("40th", "90th"):
            assert abs(on[f"{place} alone, last 127"] - on["first 1, last 127"]) < 0.01
            assert on[f"{place}, last 127"] < 0.01
    on = cu.stored_run("real_weights", "weight_on_kept", text="pages").examples[0]["gave"]
    assert round(on["40th alone, last 127"], 1) == round(on["first 1, last 127"], 1) == 0.4

with cu.guard("If it sees one neighbor, it is worth nothing again, in nine of ten trials."):
    worth = [
        means["last 128"] - loss["mean"] > 0.1
        for text in windows.TEXTS
        for means in [
            {view: gave["mean"] for view, gave in explorer.losses_of(text, "128").items()}
        ]
        for loss in explorer.losses_of(text, "with one other").values()
    ]
    assert len(worth) == 10 and sum(worth) == 1

with cu.guard(
    "Positions counted inside the window change nothing, and a cache does what the mask does."
):
    for text in ("pages", "ferry"):
        seen = explorer.losses_of(text, "128")["first 1, last 127"]["mean"]
        counted = explorer.losses_of(text, "recounted")["first 1, last 127"]["mean"]
        assert abs(seen - counted) < 0.01
    (cache,) = cu.stored_runs("real_weights", "evicted")
    assert all(float(each["in float64"]) < 1e-11 for each in cache.examples[0]["gave"].values())

with cu.guard("About a third of the weight of layers 12 to 29 lies on the first token."):
    (weight,) = cu.stored_runs("real_weights", "weight_on_first", text="pages")
    by_layer = weight.examples[0]["gave"]["by_layer"]
    assert abs(sum(by_layer[12:]) / len(by_layer[12:]) - 1 / 3) < 0.04

with cu.guard("A small GPT has no sink: with the first token in its window it is no better."):
    (small,) = cu.stored_runs("attention_at_length", "small_gpt")
    assert small.result["on the first"] < 0.03
    for size in (8, 16):
        assert small.result[f"first 1, last {size - 1}"] > small.result[f"last {size}"]

# %% [markdown]
# ## The bill
#
# | at token *n* | keeps | computes | forgets |
# |---|---|---|---|
# | whole past, in blocks | *n* keys and values a head | *n* scores a head | nothing |
# | heads that share | *n* keys and values a group | *n* scores a head | nothing |
# | linear attention | *S* and *z* | always the same | a little of each |
# | first token and last *w* − 1 | *w* keys and values a head | *w* scores a head | older tokens, except what those in between pass on |
#
# **To store less of the past, we let heads share keys and values, blur them together, or drop tokens.
# If we drop tokens, one has to stay.**
# (One can also store each number in fewer bits, or compress keys and values, as in [DeepSeek-V2](https://arxiv.org/abs/2405.04434).)
#
# <details><summary><em>How sure is this?</em></summary>
#
# SmolLM2's numbers hold for its four-bit file and one text; four other texts gave the same picture.
# A small GPT of ours has no sink at all, so a softmax alone doesn't make one.
#
# We trained the telephone-book networks at three to six learning rates, nearly always with three seeds.
# With values of size 64, the softmax finds all pairs only at small rates.
# The curves show 6,000 steps at the best rates, and the network trained here takes 1,500, as do those with keys and values of size 8.
# Twice as many steps, or texts of 64 pairs alone, add little.
#
# </details>

# %% [markdown]
# ## Take-aways
#
# - The running sums of a softmax can be rescaled, so exact attention can be computed in blocks.
#   This saves memory, not work.
# - A cache grows with every token. Linear attention has a memory of fixed size, in which pairs blur each other once there are many for its size.
# - SmolLM2 can read through a window if the window keeps a token that sees only itself, such as the first.

# %% [markdown] tags=["next"]
# Next: [From GPT to an assistant](21_from_gpt_to_assistant.ipynb), where a small GPT learns to answer, and makes things up.

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
# - DeepSeek-AI (2024).
#   [DeepSeek-V2: A strong, economical, and efficient mixture-of-experts language model](https://arxiv.org/abs/2405.04434).
# - Katharopoulos, A., Vyas, A., Pappas, N. and Fleuret, F. (2020).
#   [Transformers are RNNs: Fast autoregressive Transformers with linear attention](https://arxiv.org/abs/2006.16236).
#   ICML.
# - Milakov, M. and Gimelshein, N. (2018).
#   [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867).
# - Rabe, M. N. and Staats, C. (2021).
#   [Self-attention does not need O(n²) memory](https://arxiv.org/abs/2112.05682).
# - Shazeer, N. (2019).
#   [Fast Transformer decoding: One write-head is all you need](https://arxiv.org/abs/1911.02150).
# - Xiao, G., Tian, Y., Chen, B., Han, S. and Lewis, M. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
