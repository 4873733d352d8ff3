# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # BERT and transfer: LoRA's worth, and heirs
#
# This optional page belongs to [BERT and transfer](14_bert_and_transfer.ipynb), and you need nothing that comes later.
# We ask how far a few trained numbers get, why BERT hides its tokens at all, and what later language models changed in the blocks.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## What LoRA is worth
#
# In [the chapter](14_bert_and_transfer.ipynb#A-little-is-enough:-LoRA) you wrote a LoRA layer.
# How does it compare with training every weight, and with **linear probing**, which trains nothing but the new output layer, a **probe** on frozen features?
# And what if LoRA stands where [its paper](https://arxiv.org/abs/2106.09685) puts it, next to the projections of queries and values in each attention?
# All four start from the BERT at the top of the chapter and take the same 400 steps with a thousand labels, each at the best of four or five learning rates, and three times with other labels.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
ways = {
    "all": ("all weights", 132_994),
    "LoRA": ("LoRA, rank 4, feed-forward networks", 5_250),
    "LoRA, attention": ("LoRA, rank 4, queries and values", 2_178),
    "output": ("linear probe: output layer only", 130),
}
right, rows = {}, {}
for method, (way, trained) in ways.items():
    runs = cu.stored_runs(
        "bert_and_transfer",
        "transfer",
        beginning="BERT",
        method=method,
        labels=1000,
        highest="val",
    )
    right[method] = [run.result["right"] for run in runs]
    rows[way] = {
        "trained": f"{trained:,}",
        "accuracy": " ".join(f"{each:.2f}" for each in right[method]),
    }
pd.DataFrame(rows).T

# %% [markdown]
# With one trained number for every 25, LoRA gets most of the way from the probe to training everything.
# Next to queries and values, with fewer than half as many numbers, LoRA gets a little less far.
# All four start from one and the same BERT, and we tried only rank 4, so we can't say what would close the rest, or which layers are better for the same number of parameters.
# On GPT-3, which has a million times as many weights, the paper finds no loss against training all of them, and the change for a task takes 35 MB where a whole copy would take 350 GB.
# After the training you can add $\frac{\alpha}{r}AB^\top$ to $W$, and the network is as fast as before.
#
# ## Before masks: the autoencoder
#
# To see whether it is really the *hiding* that teaches the network something, we leave it out.
# An **[autoencoder](C_glossary.ipynb#autoencoder)** is asked for its own input and needs no labels either.
# Autoencoders were the usual way to begin a deep network in the years before BERT, and [Erhan et al. (2010)](https://jmlr.org/papers/v11/erhan10a.html) asked why that helped.
# They found that pretraining acts as a regularizer, because training starts in a region whose minima generalize better.
# And unlike other regularizers it still helped when the labeled examples kept coming without end, and the more so the deeper the network was.
#
# Here is an autoencoder as one more beginning for the chapter's task.
# It is BERT's network and reads BERT's sentences, but it is asked for *every* token, and none is hidden.

# %%
(copier,) = cu.stored_runs("bert_and_transfer", "transfer", beginning="autoencoder", highest="val")
print(f"loss of the autoencoder: {copier.result['asked']:.4f}")
print(
    f"accuracy on order, a thousand labels: autoencoder {copier.result['right']:.2f}, BERT {right['all'][0]:.2f}"
)

# %% [markdown]
# The autoencoder answers without a single mistake, because every position sees the token it is asked for and only has to pass it on.
# For the task this was worth nothing in this one training, at any of four rates, so here it was the hiding that taught.
#
# There are two ways to make an autoencoder work for its answer.
# It can have a **bottleneck**, a layer through which not everything fits, which we didn't try, or its input can be damaged.
# A **denoising autoencoder** ([Vincent et al., 2008](https://dl.acm.org/doi/10.1145/1390156.1390294)) restores the undamaged input, and BERT's masks are such a damage, with a loss that counts only the picked tokens.

# %% [markdown]
# ## What came after
#
# Open a language model of the Llama family ([Touvron et al., 2023](https://arxiv.org/abs/2302.13971)), and you'll find [our GPT](13_gpt.ipynb#GPT-in-one-class) with three parts exchanged.
# A fourth came with the largest models of its second generation.
#
# **RMSNorm** ([Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)) divides by the root of the mean square.
# It subtracts no mean and adds no bias: $g \odot x \big/ \sqrt{\frac1d\sum_i x_i^2 + \varepsilon}$.
# For example, $(3, 4)$ has the mean square 12.5, whose root is 3.54, and becomes $(0.85, 1.13)$.
#
# **[Rotary positions](09_positions.ipynb)** ([Su et al., 2021](https://arxiv.org/abs/2104.09864)) turn queries and keys, so no table is needed.
#
# **SwiGLU** ([Shazeer, 2020](https://arxiv.org/abs/2002.05202)) gives the feed-forward network a gate, $\big(\mathrm{silu}(xW_g) \odot xW_u\big)W_d$ with $\mathrm{silu}(a) = a\,\sigma(a)$.
# These are three matrices instead of two, so with two thirds of the width the number of parameters stays the same.
#
# **Fewer heads of keys and values** make the cache smaller.
# If all query heads share one, it is **multi-query attention**, MQA ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)).
# If each group of query heads shares one, it is **[grouped-query attention](C_glossary.ipynb#grouped-query-attention)**, GQA ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)).
# The first Llama has neither, and the 70-billion model of the second has GQA ([Touvron et al., 2023b](https://arxiv.org/abs/2307.09288)).
#
# In `cu.GPT` each of these is an argument.
# We write two of them by hand first, and compare.


# %%
def rms_norm(x, gain):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


def gated(x, gate, up, down):
    return (F.silu(x @ gate) * (x @ up)) @ down


print(rms_norm(torch.tensor([3.0, 4.0]), torch.ones(2)))
norm = nn.RMSNorm(32, eps=1e-6)
cu.equal(lambda x: rms_norm(x, norm.weight), norm, torch.randn(5, 32))
small = cu.GPT(50, embed_dim=32, num_heads=4, activation="swiglu", dropout=0.0)
network = small.layers[0].feed_forward
matrices = [part.weight.T for part in (network.gate, network.up, network.down)]
cu.equal(lambda x: gated(x, *matrices), network, torch.randn(5, 32))

# %% [markdown]
# Grouped queries are full attention whose heads of keys and values are equal within a group.
# So if we write each of two shared heads out twice, four full heads have to give the same.

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
    "A GPT of 2 blocks, 4 heads and 64 features, in single precision, has two heads of keys and values instead of four. How many bytes does its cache hold for each token?",
    (0.0, 2048.0),
    answer=512.0,
    within=10,
    wrong={
        "less": "There are keys and values, two blocks, two heads of 16 features, and four bytes for each number. Which of these did you leave out?",
        "more": "Which heads are stored, those of the queries or those of the keys?",
        1024.0: "That would be right with four heads of keys and values.",
    },
    why="2 · 2 · 2 · 16 numbers of 4 bytes.",
)

# %% [markdown]
# What does each exchange cost or save?

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
# Each of the five norms loses its 64 biases, and rotary positions save a table of 32 rows.
# The cache shrinks to a half with two heads of keys and values, and to a quarter with one.
# The last row has all exchanges at once, and no biases, as in Llama.
#
# ## What the exchanges bring
#
# To see what the loss notices of this, we trained each variant as a small GPT on [pieces of words](13_gpt_further.ipynb#Pieces-of-words), on the same text, for 400 steps at one learning rate, with three seeds.
# The dashed line shows the best counting on the same sentences, by Kneser–Ney with up to four tokens.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
by_variant = {}
for run in cu.stored_runs("bert_and_transfer", "variants"):
    by_variant.setdefault(run.config["variant"], []).append(run)
losses = {name: [run.result["loss"] for run in runs] for name, runs in by_variant.items()}
counted = cu.stored_run("gpt", "kneser_ney").result
best_count = min(loss for name, loss in counted.items() if name != "tokens")
picture, ax = cu.subplots(
    width=6.4, height=3,
    alt="Validation losses of seven models, three seeds each, as points beside the loss of the best counting, 2.04. "
    "Rotary positions alone lie at 1.93 to 1.95 and all exchanges together at 2.00 to 2.01, left of it; the others lie beside the GPT, right of it.",
)  # fmt: skip
for row, points in enumerate(losses.values()):
    ax.plot(points, [row] * 3, "o", color=cu.COLORS["key"], alpha=0.7)
ax.set_yticks(range(len(losses)), losses)
ax.invert_yaxis()
ax.axvline(best_count, color="0.4", linestyle="--", linewidth=1)
ax.annotate("best counting", (best_count, 1), (3, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", color="0.3")  # fmt: skip
ax.set(xlabel="Validation loss (nats per token)")
picture

# %% [markdown]
# Rotary positions help most here, and after these few steps only the two models that have them are ahead of counting.
# With three times the steps the GPT itself is, at 1.77.
# Is that thanks to the turning, or because no table of positions has to be learned in so few steps?
# Our comparison can't say, but [Positions](09_positions.ipynb) has tables and rotations side by side on other tasks.
# RMSNorm and SwiGLU are level with the original, and RMSNorm is a little simpler.
# Sharing a single head of keys and values costs a little loss, for a quarter of the cache.
# All of this is 400 steps of a small network at one rate, chosen for the GPT, so it is partly a comparison of rates ([page G](G_controls.ipynb) says how to avoid that), and no advice for large models.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Rotary positions lower the loss of this small GPT, and a single head of keys and values raises it."
):
    low, high = ({name: pick(points) for name, points in losses.items()} for pick in (min, max))
    assert high["rotary"] < low["together"] and high["together"] < low["GPT"]
    assert high["GPT"] < low["MQA"]
    longer = cu.stored_runs("gpt", "ladder", parts="+ second block", steps=1200)
    assert max(run.result["loss"] for run in longer if run.config["lr"] == 0.01) < 1.8 < best_count
    assert high["together"] < best_count
    assert all(low[name] > best_count for name in set(losses) - {"rotary", "together"})

with cu.guard("RMSNorm and SwiGLU are level with the original."):
    assert all(
        low[name] < high["GPT"] and low["GPT"] < high[name] for name in ("RMSNorm", "SwiGLU")
    )

with cu.guard("An autoencoder copies without mistakes, and has learned nothing for the task."):
    assert copier.result["asked"] < 0.001 and abs(copier.result["right"] - 0.5) < 0.03

with cu.guard(
    "With a thousand labels LoRA is closer to training all weights than to training only the output layer."
):
    mean = {method: sum(values) / len(values) for method, values in right.items()}
    assert max(right["output"]) < min(right["LoRA"]) and max(right["LoRA"]) < min(right["all"])
    assert mean["all"] - mean["LoRA"] < mean["LoRA"] - mean["output"]

with cu.guard(
    "LoRA on queries and values lies between the output layer and LoRA on the feed-forward networks."
):
    between = right["LoRA, attention"]
    assert max(right["output"]) < min(between) and max(between) < min(right["LoRA"])

# %% [markdown]
# Back to [BERT and transfer](14_bert_and_transfer.ipynb).

# %% [markdown]
# ## References
#
# - Ainslie, J., Lee-Thorp, J., de Jong, M., Zemlyanskiy, Y., Lebrón, F. and Sanghai, S. (2023).
#   [GQA: training generalized multi-query transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245).
#   EMNLP.
# - Erhan, D., Bengio, Y., Courville, A., Manzagol, P.-A., Vincent, P. and Bengio, S. (2010).
#   [Why does unsupervised pre-training help deep learning?](https://jmlr.org/papers/v11/erhan10a.html) Journal of Machine Learning Research 11.
# - Hu, E. J., Shen, Y., Wallis, P., Allen-Zhu, Z., Li, Y., Wang, S., Wang, L. and Chen, W. (2022).
#   [LoRA: low-rank adaptation of large language models](https://arxiv.org/abs/2106.09685).
#   ICLR.
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
# - Vincent, P., Larochelle, H., Bengio, Y. and Manzagol, P.-A. (2008).
#   [Extracting and composing robust features with denoising autoencoders](https://dl.acm.org/doi/10.1145/1390156.1390294).
#   ICML.
# - Zhang, B. and Sennrich, R. (2019).
#   [Root mean square layer normalization](https://arxiv.org/abs/1910.07467).
#   NeurIPS.
