# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The Transformer: deep stacks and a count
#
# In [The Transformer](10_transformer.ipynb) we ablated parts of a model that had been trained with them.
# This page asks two questions that we left open.
# What does a residual connection keep in a stack of many layers?
# And where do the 124 million parameters of GPT-2 come from?
# You can read each section by itself.

# %%
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.transformer import blocks

cu.seed_everything(0)

# %% [markdown]
# ## What a deep stack keeps
#
# We stack 24 position-wise networks with random weights in four ways, with and without a norm, and with and without a residual connection.
# After each layer we ask two questions.
# How large is the gradient that arrives at the input, where 1 would mean that the layers change nothing?
# What share of the input's variance can a *linear* map still compute from the output?
# This share is $R^2$ on new tokens, so 0 is no better than guessing the mean.
#
# One thing matters a great deal, namely how large $f(x)$ is compared with $x$.
# We call this ratio $s$, and it is the bar of the machine.
# PyTorch's initialization gives about the smaller of our two values.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "24 layers, each with a norm and without a residual connection. A gradient arrives at the input. What share of the input can a linear map read off the output?",
    ["nearly all", "about half", "nearly nothing"],
    answer="nearly nothing",
    wrong={
        "nearly all": "A gradient says that the output depends on the input. Does it say that a linear map can undo 24 ReLU layers?",
        "about half": "Each layer replaces its input by something else. How much would be left after one layer, and after 24?",
    },
    why="A norm keeps sizes. But each layer still replaces what came in by a random nonlinear function of it.",
)

# %%
small = 0.24  # try 0.05 … 2.0
large = 1.0  # try 0.05 … 2.0


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


ORDERS = {
    "neither": lambda x, f: f(x),
    "norm only": lambda x, f: f(norm(x)),
    "residual, norm after": lambda x, f: norm(x + f(x)),
    "residual, norm before": lambda x, f: x + f(norm(x)),
}
measured = {(s, name, seed): blocks.measured(order, s, seed)
            for s in (small, large) for name, order in ORDERS.items()
            for seed in (0, 1, 2)}  # fmt: skip
print(f"PyTorch's initialization: s = {blocks.size_at_first(cu.FeedForward):.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    2, 2, width=8.2, height=5.0,
    alt="Gradient at the input (left) and share of the input recovered (right) over the number of layers, with s = 0.24 "
    "(above) and s = 1 (below). Only with neither norm nor residual and s = 0.24 does the gradient vanish. Without a "
    "residual the share falls to zero in 8 layers; with one it stays high for small s, and falls for s = 1.",
)  # fmt: skip
looks = {"neither": ("query", ":"), "norm only": ("wrong", "-."),
         "residual, norm after": ("key", "--"), "residual, norm before": ("value", "-")}  # fmt: skip
for (s, name, seed), values in measured.items():
    color, dash = looks[name]
    sizes_row = axes[0 if s == small else 1]
    label = name if seed == 0 else None
    for ax, line in zip(sizes_row, zip(*values, strict=True), strict=True):
        ax.plot(blocks.DEPTHS, line, dash, color=cu.COLORS[color], alpha=0.8, label=label)
for row, s in enumerate((small, large)):
    axes[row, 0].set(
        yscale="log", ylim=(1e-9, 50), ylabel="gradient at the input", title=f"s = {s}"
    )
    axes[row, 1].set(ylim=(-0.1, 1.05), ylabel="input recovered (R²)", title=f"s = {s}")
for ax in axes[1]:
    ax.set_xlabel("layers")
axes[0, 0].legend(loc="lower left", fontsize=8)
fig

# %% [markdown]
# On the left, the gradient vanishes in just one of the eight cases, where there is neither norm nor residual and $s$ is small.
# With $s = 1$ the same stack keeps its gradient, so whether gradients vanish depends on the initialization.
#
# On the right, no linear map finds the input after eight layers unless there is a residual connection.
# With one, most of the input is still there after 24 layers if each layer adds little, but not if each adds as much as it reads.
# **A residual connection keeps the input readable as long as each layer adds little**.
# These are random networks, and training may change what they keep.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without a residual no linear map finds the input; with one, small layers leave most of it, large ones less.",
    given=(small, large) == (0.24, 1.0),
):
    after = {key: dict(zip(blocks.DEPTHS, values, strict=True)) for key, values in measured.items()}
    for seed in (0, 1, 2):
        for s in (small, large):
            assert (
                after[s, "neither", seed][8][1] < 0.05 and after[s, "norm only", seed][8][1] < 0.05
            )
        assert all(after[small, name, seed][24][1] > 0.6 for name in list(ORDERS)[2:])
        assert after[large, "residual, norm after", seed][24][1] < 0.02
        assert 0.3 < after[large, "residual, norm before", seed][24][1] < 0.4
        assert (
            after[small, "neither", seed][8][0] < 1e-4 < 0.1 < after[large, "neither", seed][24][0]
        )

# %% [markdown]
# ## GPT-2 small, counted
#
# Let's count the parameters of a small Transformer by hand, and then those of a famous one.
#
# An attention has four $d\times d$ matrices with biases, so $4\,(d^2 + d)$ numbers.
# A network has two matrices of $d\times$ `ffn_dim`, and the biases `ffn_dim` and $d$.
# A norm has a scale and a shift for each of the $d$ features.
#
# ### Exercise 1 · Count
#
# *predict · 6 minutes*
#
# Take $d = 8$, `ffn_dim` 16, 2 heads, 3 encoder and 3 decoder blocks, the norm before, and vocabularies of 10 source and 14 target tokens.
# How many parameters does (a) one decoder block have?
# (b) How many more does an attention with 4 heads have?
# (c) How many does the whole model have?


# %% tags=["exercise", "predict"]
def counted():
    """Three whole numbers, for (a) to (c), without running anything."""
    return ...  # such as [1, 2, 3]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.counted(counted)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def counted_solution():
    """Two attentions of 288, a network of 280, three norms of 16; heads share the matrices.

    3 · (600 + 904) in the blocks, 2 · 16 in the last norms, 80 + 112 embeddings, 14 · 9 above.
    """
    return [904, 0, 4862]


cu.checks.counted(counted_solution)

# %% [markdown]
# With the same formulas we can count GPT-2 small.
# GPT-2 is a decoder without a source: 12 blocks with $d = 768$ and `ffn_dim` $4d$, learned positions, and 50,257 tokens.
# Its output layer has no weights of its own, because it uses the embedding matrix a second time (**weight tying**, [Press and Wolf, 2017](https://arxiv.org/abs/1608.05859)).

# %%
d, ffn, tokens, longest, layers = 768, 4 * 768, 50_257, 1024, 12
attention = 4 * (d * d + d)
network = d * ffn + ffn + ffn * d + d
block = attention + network + 2 * (2 * d)
parts = {"token embedding": tokens * d, "positions": longest * d, "12 blocks": layers * block,
         "last norm": 2 * d}  # fmt: skip
for name, count in parts.items():
    print(f"{name:16} {count:12,}")
print(f"{'together':16} {sum(parts.values()):12,}")

# %% [markdown]
# The sum is the 124 million that OpenAI's release has.
# Nearly a third of them are the embedding, which is why small models care so much about how many tokens there are.
# Inside a block, two thirds of the weights belong to the network and one third to the attention, as they do in every Transformer with `ffn_dim` $4d$.
#
# The base model of Vaswani et al. (2017) has 6 + 6 blocks with $d = 512$ and about 37,000 tokens that both languages share, and it ties all three matrices.
# By the same count that is 63 million parameters, although the paper's table says 65.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("GPT-2 small has 124,439,808 parameters."):
    assert sum(parts.values()) == 124_439_808
    assert 0.3 < parts["token embedding"] / sum(parts.values()) < 1 / 3
    base = 6 * (3 * 4 * (512**2 + 512) + 2 * (2 * 512 * 2048 + 2560) + 5 * 1024)
    assert round((base + 37_000 * 512) / 1e6) == 63

# %% [markdown]
# ## References
#
# - Press, O. and Wolf, L. (2017).
#   [Using the output embedding to improve language models](https://arxiv.org/abs/1608.05859).
#   EACL.
# - Radford, A. et al. (2019).
#   [Language models are unsupervised multitask learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf).
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
