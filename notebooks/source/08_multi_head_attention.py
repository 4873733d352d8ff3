# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Multi-head attention
#
# **One attention returns one weighted average. What if a query needs two different things at once?**
#
# Then it attends several times, as in nearly every model, each time to a different projection of the same vectors.
# Each of these attentions is called a **head**.
# Our translator from English to French looks back at its own words with eight of them, in two layers of four.
# **Ablate** one, that is, set its output to zero, and read what the translator says then.

# %% [markdown] tags=["paths"]
# On the path to GPT, to a real model, to images and to translation: [Two questions, one average](#Two-questions,-one-average), [From one head to two, and to h](#From-one-head-to-two,-and-to-h), [Split and join: one product and two transposes](#Split-and-join:-one-product-and-two-transposes).

# %% jupyter={"source_hidden": true}
import copy
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.multi_head_attention import adapters, cabinet, verbs

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.dissection()

# %% [markdown]
# Without head 0.0, which is head 0 of layer 0, our translator repeats a word in the first sentence, and without head 0.1 it doesn't know where to stop.
# The lines show which words the chosen head attends to.
# "0.72 on same token" says that in head 0.0 a [token](C_glossary.ipynb#token) puts 0.72 of its weight, on average, on itself.
# With equal weights for all tokens it would be 0.20.
# A *mixed* head has no clear favorite.
#
# The bars show how much the loss rises without each head, in [nats](C_glossary.ipynb#nat), the unit of a loss computed with natural logarithms.
# With **zero ablation** we ask what is lost if the head says nothing at all.
# With **mean ablation** we put the head's average in its place, and ask what is lost if it always says the same, whatever the sentence is.
# For head 0.1 zero ablation costs more, and for head 0.0 mean ablation.
# Neither bar alone tells us what a head is worth, and [Ablating heads](#Ablating-heads) says why.

# %% [markdown] tags=["goals"]
# By the end you will be able to
#
# - say which two look-ups a single head can do at once, and which it can't;
# - write a layer with several heads as one class, and spot the split that has the right shape but the wrong meaning;
# - (in *Ablating heads*) ablate a head in two ways, and say which question each way answers.

# %% [markdown] tags=["needs"]
# You will need [Self-attention](07_self_attention.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("self_attention", "scoring_functions")

# %% [markdown]
# ## Two questions, one average
#
# Imagine a cabinet with eight drawers, A to H, each holding a white ball ($+1$) or a black one ($-1$).
# The request "CF" asks for the ball in C *and* the ball in F.
# Requests are our queries, drawers are keys, and balls are values.
#
# To look into one drawer, a head puts all its weight there: a **look-up**.
# If we ask it for two, it has to divide its weight, $\alpha$ on C and $1-\alpha$ on F, but it still returns only *one* number, $m = \alpha\, b_C + (1-\alpha)\, b_F$.
# From this number a **linear readout**, that is, a linear map followed by a sign, has to answer both questions: "C is white" if $u_1 m + c_1 > 0$, and "F is white" if $u_2 m + c_2 > 0$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Half the weight on C, half on F. For which balls in C and F can no rule, however clever, tell the cabinets apart by m?",
    ["white, white and black, black", "white, black and black, white", "for no two of the four"],
    answer="white, black and black, white",
    wrong={
        "white, white and black, black": "m is (1 + 1)/2 for the first. And for the second?",
        "for no two of the four": "Compute m for C white, F black, and then the other way round.",
    },
    why="Both give m = 0. The average says that there is one ball of each, but it doesn't say which is where.",
)

# %% [markdown]
# With unequal weights we can tell these two cabinets apart.
# Can we answer both questions, then?
# For each $\alpha$ the table shows $m$ in the four cases, and in how many of them the best readout gets both balls right.

# %%
task = cabinet.two_lookups()  # 8 · 7 requests, 2⁸ ways to fill the drawers
alpha = 0.7  # try 0.0 … 1.0
signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 2)  # (4, 2): balls in C, F
tried = {a: signs @ torch.tensor([a, 1 - a]) for a in (1.0, alpha, 0.5, 0.3, 0.0)}
averages_of = pd.DataFrame(
    tried, index=["white, white", "white, black", "black, white", "black, black"]
).T
right_of_4 = [cabinet.most_right(averages, signs) for averages in tried.values()]
averages_of["both right, at best"] = right_of_4
averages_of.rename_axis("α").round(2)

# %% [markdown]
# For each question the readout cuts the line of averages $m$ once.
# Two cuts make three pieces, but we have four cases to tell apart, so **one head is right in at most ¾ of them**.
# The weights can't adapt to what is inside, because the keys don't show the balls.
#
# This happens because all values lie along *one direction*.
# Now let's put the balls of A–D into one feature and the balls of E–H into another, and ask for one of each.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
mixed = [(i, j) for i in range(4) for j in range(4, 8)]  # one of A–D, one of E–H
balls = task.balls  # (256, 8)
side = (torch.arange(8) >= 4).long()  # the feature of each drawer: 0 or 1
values = balls[..., None] * F.one_hot(side, 2)  # (256, 8, 2)
halves = F.one_hot(torch.tensor(mixed), 8).sum(dim=1) / 2  # (16, 8)
asked = balls[:, torch.tensor(mixed)]  # (256, 16, 2)
right = ((halves @ values > 0) == (asked > 0)).all(dim=-1)  # (256, 16)
print(f"one head, two features: both right in {right.sum()} of {right.numel()}")

# %% [markdown]
# This time one head is always right, because an average of *vectors* keeps the two directions apart.
# So "$k$ look-ups take $k$ heads" is true only for look-ups of the *same* feature ([proof](08_multi_head_attention_further.ipynb#Why-k-look-ups-take-k-heads)).

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "same_feature")

# %% [markdown]
# ## From one head to two, and to h
#
# How does a layer get several heads?
# In *Anna sold her old car*, *her* looks for a person and for a thing, and both have to share one softmax.
# We take the same queries, keys, and values, and cut them in the middle.
# In stage 1, *Anna* and *car* get 0.38 each.
# Stage 4 shows what they get after the cut.

# %% jupyter={"source_hidden": true}
cu.stages("multi_head_attention")

# %% [markdown]
# So each head has a softmax of its own, and *Anna* no longer competes with *car*.
# We added nothing to $W_Q$, $W_K$, and $W_V$, because the heads only divide their columns among themselves.
# Only $W_O$ is new.
#
# In general, head $i$ of $h$ heads has three matrices of its own with $d/h$ columns each, and attends to what they project ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2):
#
# $$H_i = \mathrm{attention}\big(XW_Q^{(i)},\ XW_K^{(i)},\ XW_V^{(i)}\big) \in \mathbb R^{n \times d/h}, \qquad \mathrm{output} = [H_0, \dots, H_{h-1}]\, W_O .$$
#
# In our code $d$ is `embed_dim` and $d/h$ is `head_dim`, and $[\dots]$ joins along the last axis.
# Each head scales by its *own* size, $1/\sqrt{d/h}$.
# As code the formula is a loop over the heads.


# %%
def multi_head_loop(queries, keys, values, W_Q, W_K, W_V, W_O, attn_mask=None):
    """W_Q, W_K, W_V: lists of (embed_dim, head_dim); W_O: (embed_dim, embed_dim)."""
    heads = []
    for w_q, w_k, w_v in zip(W_Q, W_K, W_V, strict=True):
        q, k, v = queries @ w_q, keys @ w_k, values @ w_v  # project
        heads.append(cu.scaled_dot_product_attention(q, k, v, attn_mask))  # score … mix
    return torch.cat(heads, dim=-1) @ W_O  # merge


# %% [markdown]
# ### The output projection adds the heads
#
# To see what one head does for the layer, we look at $W_O$ more closely.
# If we cut $W_O$ into $h$ blocks of *rows*, one for each head, and multiply out, we get
#
# $$[H_0, \dots, H_{h-1}]\,W_O = \sum_{i=0}^{h-1} H_i\, W_O^{(i)}, \qquad W_O^{(i)} \in \mathbb R^{d/h \times d}.$$
#
# So each head writes a vector of all $d$ numbers, as in the sixth stage above, and the layer returns their *sum* ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# That is why we can ablate a head without touching the others: its term of the sum becomes zero.
#
# ## Split and join: one product and two transposes
#
# Our loop is slow.
# All heads can attend at once if we make the head an axis *before* the length, because PyTorch then treats heads like the sentences of a batch.
# We number the entries of six tokens with 14 features, and cut them into two heads:
#
# 1. `unflatten` cuts the last axis, from (batch, 6, 14) to (batch, 6, 2, 7);
# 2. `transpose` swaps length and head, which gives (batch, 2, 6, 7).
#
# A single **reshape** gives the same shape and the wrong contents, and it is a common mistake.
# Watch where the colors go in the second row of the picture.


# %%
def split(x, num_heads):
    """(batch, length, embed_dim) → (batch, heads, length, head_dim)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


labels = torch.arange(6 * 14).view(1, 6, 14)  # number = 14 · token + feature
careful = split(labels, 2)
careless = labels.reshape(1, 2, 6, 7)
print(f"shapes: {tuple(careful.shape)} and {tuple(careless.shape)}")
print(f"head 0, row 1, by split: {careful[0, 0, 1].tolist()}")
print(f"head 0, row 1, by reshape only: {careless[0, 0, 1].tolist()}")


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def draw_numbers(ax, numbers, title, ylabel=""):
    """A matrix with its numbers; features 0–6 of the original are blue, 7–13 yellow."""
    for (row, column), number in zip(
        torch.cartesian_prod(*map(torch.arange, numbers.shape)).tolist(),
        numbers.flatten().tolist(),
        strict=True,
    ):
        blue = number % 14 < 7
        color = cu.COLORS["key" if blue else "wrong"]
        ax.fill_between([column, column + 1], row, row + 1, color=color, alpha=0.3, linewidth=0)
        ax.text(column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=8)
    ax.hlines(range(len(numbers) + 1), 0, numbers.shape[1], color="white", linewidth=1.5)
    ax.set(xlim=(0, numbers.shape[1]), ylim=(len(numbers), 0), xticks=[], ylabel=ylabel)
    ax.set_title(title)
    ax.set_yticks([row + 0.5 for row in range(6)], range(6))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


fig, axes = cu.subplots(
    2, 3, width=8.8, height=3.6, width_ratios=[2, 1, 1],
    alt="Above, a matrix of six tokens with seven blue and seven yellow features is split into a "
    "blue matrix of six tokens for head 0 and a yellow one for head 1. Below, a reshape without "
    "transpose gives matrices of the same size whose rows alternate between blue and yellow.",
)  # fmt: skip
draw_numbers(axes[0, 0], labels[0], "six tokens, 14 features", "token")
draw_numbers(axes[0, 1], careful[0, 0], "head 0: cut and swapped")
draw_numbers(axes[0, 2], careful[0, 1], "head 1")
axes[1, 0].set_axis_off()
axes[1, 0].text(
    0.97, 0.5, "the same numbers after\nreshape alone: tokens 0–2 fill\n“head 0”, tokens 3–5 “head 1”",
    ha="right", va="center", fontsize=10,
)  # fmt: skip
draw_numbers(axes[1, 1], careless[0, 0], "“head 0”: reshape only", "row")
draw_numbers(axes[1, 2], careless[0, 1], "“head 1”")
fig

# %% [markdown]
# In the upper row each head keeps all tokens and has its own features.
# In the lower row the shape is right but the meaning is wrong.
# Row 1 of "head 0" is the rest of token 0, and the last three tokens never meet the first three.
# No error is raised.
#
# ### Exercise 1 · Join the heads
#
# *build · 9 minutes*
#
# Which steps undo a split?
# Write the way back, so that `join_heads(split(x, h))` is `x` again.
# Once it passes, the class below uses it.


# %% tags=["exercise", "build"]
def join_heads(heads):
    """(batch, heads, length, head_dim) → (batch, length, heads · head_dim)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.join_heads(join_heads)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def join_heads_solution(heads):
    """The steps of the split, backwards: swap, then join the last two axes."""
    return heads.transpose(1, 2).flatten(2)


cu.checks.join_heads(join_heads_solution)

# %% [markdown]
# Now we can write the whole layer: four linear maps, and between them the steps that you already know.


# %%
join = cu.choose(join_heads, cu.merge_heads)


class MultiHeadAttention(nn.Module):
    """num_heads attentions side by side; (batch, n, embed_dim) → the same."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads  # has to divide embed_dim
        self.query_proj = nn.Linear(embed_dim, embed_dim)
        self.key_proj = nn.Linear(embed_dim, embed_dim)
        self.value_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, queries, keys, values, attn_mask=None):
        q = split(self.query_proj(queries), self.num_heads)  # project, split
        k = split(self.key_proj(keys), self.num_heads)
        v = split(self.value_proj(values), self.num_heads)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # score, scale
        weights = cu.masked_softmax(scores, attn_mask)  # mask, normalize
        self.weights = weights.detach()  # to look at: (batch, heads, queries, keys)
        return self.out_proj(join(weights @ v))  # mix, join, merge


# %% [markdown]
# Does it compute the same as our loop, PyTorch's layer, and the course's own layer?
# We compare all four on queries and keys of different lengths, with padding and a random mask.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
embed_dim, num_heads = 12, 3
mine = MultiHeadAttention(embed_dim, num_heads)
torchs = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
package = cu.MultiHeadAttention(embed_dim, num_heads)
by_loop, by_class, by_torch = adapters.as_functions(multi_head_loop, mine, torchs)
qkv = [torch.randn(2, n, embed_dim) for n in (5, 7, 7)]  # 5 queries, 7 keys
W, b = torch.randn(4, embed_dim, embed_dim) / 3, torch.randn(4, embed_dim)
pairs = torch.rand(5, 7) < 0.7
pairs[:, 0] = True  # each query may look at something
mask = cu.padding_mask(torch.tensor([7, 4]), 7) & pairs
cu.equal(by_class, by_loop, *qkv, W, mask)
cu.equal(by_class, by_torch, *qkv, W, mask, b)
package.load_state_dict(mine.state_dict())
cu.equal(mine, package, *qkv, mask)

# %% [markdown]
# ### What do more heads cost?
#
# More heads cost no parameters, because the matrices stay $d\times d$, but they cost *width*.
# Everything that a head scores and writes has to pass through $d/h$ numbers, so [a head must not be too narrow](08_multi_head_attention_further.ipynb#How-narrow-may-a-head-be?).
# In the language of matrices, its products have **[low rank](C_glossary.ipynb#low-rank)**.
# A model that writes text stores the keys and values of all heads, and **[grouped-query attention](C_glossary.ipynb#grouped-query-attention)** lets several heads share theirs ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)).
#
# ## When do two heads pay?
#
# Back at the cabinet, we now take a network that learns.
# Two heads [can answer every request](08_multi_head_attention_further.ipynb#Weights-for-two-look-ups,-by-hand).
# Does [Adam](C_glossary.ipynb#adam) find such weights, and what does it make of a single head with the same number of parameters?


# %% tags=["nbval-ignore-output"]
def new_network(heads, seed):
    cu.seed_everything(seed)
    return cabinet.LookupNetwork(16, heads, attention=MultiHeadAttention(16, heads))


steps = 100  # try 100 … 300
networks, shares = {}, {}
for h in (1, 2):
    networks[h] = cabinet.train_lookups(new_network(h, 0), steps=steps)
    cases = cabinet.lookup_cases(networks[h])[:, 2]  # both right: alike, different
    shares[h] = [*cabinet.lookup_accuracy(networks[h]).tolist(), *cases.tolist()]
answers = ["first ball", "second ball", "both", "both, if alike", "both, if different"]
table = pd.DataFrame(shares, answers).T
table.rename_axis("heads").round(2)

# %% [markdown]
# Judging by these numbers, the single head might look into just one drawer.
# Its map tells a different story.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
asked_of = {h: cabinet.asked_weights(networks[h].attention.weights) for h in (1, 2)}
rows = torch.cat([asked_of[1], asked_of[2]])  # (3, 2)
fig, ax = cu.subplots(
    width=5.6, height=1.9,
    alt="Mean weights on the drawer asked for first, the one asked for second, and the six others. "
    + " ".join(f"{name}: {first:.2f}, {second:.2f}." for name, (first, second) in zip(
        ("One head", "Two heads, head 0", "head 1"), rows.tolist(), strict=True)),
)  # fmt: skip
cu.heatmap(ax, torch.cat([rows, 1 - rows.sum(dim=1, keepdim=True)], dim=1), annotate=True,
           queries=["one head", "2 heads: 0", "2 heads: 1"], keys=["asked first", "asked second", "six others"],
           xlabel=None, ylabel=None)  # fmt: skip
ax.set_aspect("auto")
plain = [label.set(rotation=0, ha="center") for label in ax.get_xticklabels()]
fig

# %% [markdown]
# The single head attends to *both* drawers.
# **One head returns a mix of both balls here, and two heads return both.**
# Where the balls are alike, the mix tells us both.
# Where they differ, the mix has the sign of the ball with more weight, so both answers follow this ball, and one of them is wrong.
#
# Why is the single head right in only ½ of the cases, if ¾ are possible?
# To reach ¾, the readout would have to move one of its two cuts away from $m = 0$, to the left or to the right.
# But swapping white and black turns $m$ into $-m$, so neither direction has anything to gain over the other.
# Cross-entropy is convex in $u$ and $c$, so it is lowest with both cuts at 0, and then one of the two answers is wrong whenever the balls differ.
#
# ### A cabinet in language: subject and object
#
# In *yesterday the young doctor followed the queen .* the verb has two questions: who did it, and to whom?
# We let the verb attend **once**, to the vectors of all words with their [positions](09_positions.ipynb), and read two nouns from the answer with a linear layer.
# In *things* the object is a thing, as in *the girl saw the small boat .*, and in *people* both nouns are people, so either could be the subject, as in *the girl saw the small king .*

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At a good learning rate, for which sentences will a single head find both nouns with every seed?",
    ["for both kinds", "for things only", "for people only", "for neither"],
    answer="for things only",
    wrong={
        "for both kinds": "Half the weight on girl and half on king: which of the two is the subject?",
        "for people only": "What does the average of girl and king say about the order?",
        "for neither": "Half the weight on girl and half on boat: how many people are in the average?",
    },
    why="The average of girl and boat holds one person and one thing, and the readout has a score for each person as subject and each thing "
    "as object. With equal weights on girl and king, the average doesn't say which is the subject. The head could escape by making its "
    "weights depend on the two words, but training finds that trick only with some seeds.",
)

# %%
example = 1  # try 0 … 499
more_heads = 2  # try 2 | 4 | 8

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
readers = {}
for objects, h in (("things", 1), ("people", 1), ("people", more_heads)):
    cu.seed_everything(0)
    reader = verbs.VerbReader(MultiHeadAttention(32, h))
    verbs.train_reader(reader, objects, seed=0)
    _, unseen = verbs.sentences(objects, seed=0)
    who, whom, nouns = verbs.reader_accuracy(reader, unseen)
    print(f"{objects}, heads: {h}; who {who:.2f}, whom {whom:.2f}, both {nouns:.2f}")
    readers[objects, h] = reader

# %% [markdown]
# With *people*, a second head helps.
# What do the heads attend to in one sentence?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
words = unseen.texts[example]
looks = {}
for h, trained in ((1, readers["people", 1]), (more_heads, readers["people", more_heads])):
    trained(unseen)
    for head in range(h):
        weights_of = trained.attention.weights[example, head, 0, : len(words)]
        looks["one head" if h == 1 else f"{h} heads: {head}"] = weights_of
looks["their mean"] = torch.stack(list(looks.values())[1:]).mean(dim=0)
fig, ax = cu.subplots(
    width=7.5, height=2.6,
    alt="Weights of the verb on the words of: " + " ".join(words) + " Rows: the single head, "
    f"each of {more_heads} heads, and the mean of these.",
)  # fmt: skip
cu.heatmap(ax, torch.stack(list(looks.values())), queries=list(looks), keys=words, annotate=True,
           xlabel=f"the verb is “{words[unseen.verbs[example]]}”", ylabel=None)  # fmt: skip
fig

# %% [markdown]
# One of the two heads attends to the subject and the other to the object.
# Their mean, in the last row, looks like one undecided head, and it is what `nn.MultiheadAttention` returns as "the weights" unless you say `average_attn_weights=False`.
#
# Perhaps a single head only needs more training.
# In the next figure each line is one training run, dark at the best learning rate and pale at three others.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
verb_readers = cu.stored_runs("multi_head_attention", "verb_readers")
verbs.show_over_steps(verb_readers)

# %% [markdown]
# For *people*, at the best rate **two heads soon find both nouns with every seed, and a single head only with some**, here with two of five.
# The other three don't get there in 3,000 steps.
# For *things*, a single head finds both with every seed, at a good rate.
#
# The single heads that fail put hardly any weight on one of the two nouns.
# The single heads that succeed share their weight between both nouns, in proportions that change from sentence to sentence.
# Their weights can depend on both words, because here a word's key and value come from the *same* vector, whereas a drawer's key doesn't show its ball.
#
# ## Ablating heads
#
# At the top of this page we replaced a head's output, which is called **[ablation](C_glossary.ipynb#ablation)**, and there are two things that we can put in its place.
#
# - With **zero ablation** the head adds nothing.
#   We ask what the network loses if nothing comes from there at all.
# - With **mean ablation** the head always says the same, its average over many sentences.
#   We ask what the network loses if it no longer hears what is special about *this* sentence.
#
# Zero may be a value that the network has never met.
# This can do harm on its own, and that is why [Wang et al. (2023)](https://arxiv.org/abs/2211.00593) take the mean.
# In the translator at the top, zero ablation costs more for head 0.1, and mean ablation for head 0.0.
# So mean ablation can do harm, too.
# It makes the head say in every sentence what it says on average, and for head 0.0 silence would be better.
# Neither bar alone tells us what the head is worth.
#
# ### Exercise 2 · Find the bug
#
# *bug · 12 minutes*
#
# Somebody wants a zero ablation, and sets the head's part of the query projection to zero.
# The function below makes two mistakes.
# Its output hints at the second one: with one head left, the network finds one ball and guesses the other, so the accuracy in the last line should still be ½, but it is lower.
# Find both mistakes, and write `fixed_without_head`.
# You can copy a layer with `copy.deepcopy(layer)`.


# %% tags=["nbval-ignore-output"]
def buggy_without_head(layer, head):
    width = layer.query_proj.out_features // layer.num_heads
    with torch.no_grad():
        layer.query_proj.weight[head * width : (head + 1) * width] = 0
        layer.query_proj.bias[head * width : (head + 1) * width] = 0
    return layer


victim = copy.deepcopy(networks[2])
print(f"before: accuracy {cabinet.lookup_accuracy(victim)[2]:.2f}")
for gone in (0, 1):
    victim.attention = buggy_without_head(victim.attention, gone)
    print(f"without head {gone}: {cabinet.lookup_accuracy(victim)[2]:.2f}")


# %% tags=["exercise", "bug"]
def fixed_without_head(layer, head):
    """A copy of the layer, with one head (counted from 0) ablated."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_without_head(fixed_without_head)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_without_head_solution(layer, head):
    """Queries of zero give equal scores, so the head still writes the mean of this cabinet's values.

    The caller's layer was changed as well, so the second time two heads were missing. In `weight`,
    which is W_O transposed, the rows of a head are columns.
    """
    layer = copy.deepcopy(layer)
    width = layer.out_proj.in_features // layer.num_heads
    with torch.no_grad():
        layer.out_proj.weight[:, head * width : (head + 1) * width] = 0
    return layer


cu.checks.fixed_without_head(fixed_without_head_solution)

# %% [markdown]
# In large translators and in BERT we can ablate most single heads with little loss ([Michel et al., 2019](https://arxiv.org/abs/1905.10650)), much like those of the second layer at the top of this page.
# Such a head need not be idle: in [What heads learn](19_what_heads_learn.ipynb#Who-is-hurt?) two heads stand in for each other.
#
# ### Exercise 3 · A head for adjectives?
#
# *open · 9 minutes*
#
# In a map of a trained translator, head 5 attends from each noun to its adjective.
# The caption says, "Head 5 handles adjectives."
# Which three things would you measure, and which results would refute the caption?
#
# <details><summary>To compare</summary>
#
# First, the head's weight on neighbors that aren't adjectives: if it is just as large, the head only looks at neighbors.
# Second, the errors when we ablate the head: if adjectives suffer no more than other words, it doesn't handle them.
# Third, other seeds: if no other network has such a head, the caption is about one network.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With one feature one head is right in at most three of four cases, and with two features always."
):
    assert (averages_of["both right, at best"] <= 3).all()
    assert averages_of["both right, at best"][[0.3, 1.0]].tolist() == [3, 2]
    assert right.all()

with cu.guard(
    "A split keeps all tokens in each head, and a reshape alone gives head 0 only three of the six."
):
    assert (careful[0, 0] // 14).unique().tolist() == list(range(6))
    assert (careful[0, 0] % 14).unique().tolist() == list(range(7))
    assert (careless[0, 0] // 14).unique().tolist() == [0, 1, 2]

with cu.guard(
    "One head attends to both drawers and is right where the balls are alike; of two heads each attends to one."
):
    assert shares[1][2] < 0.6 and shares[2][2] > 0.97
    assert shares[1][3] > 0.95 and shares[1][4] < 0.15
    assert asked_of[1].min() > 0.2 and asked_of[2].max(dim=1).values.min() > 0.5
    assert sorted(asked_of[2].argmax(dim=1).tolist()) == [0, 1]
    single, double = (
        pd.DataFrame([r.config | r.result for r in cu.stored_runs("multi_head_attention", name)])
        for name in ("single_head", "cabinet")
    )
    assert single["alike"].min() > 0.95 and single["differ"].max() < 0.15
    slower, fast = single[single["rate"] < 0.1], single[single["rate"] == 0.1]
    assert slower[["weight 0", "weight 1"]].min(axis=None) > 0.25
    assert slower["loss 0"].max() < 0.6 < fast["loss 0"].min()
    assert double["both"].min() > 0.97

with cu.guard(
    "In most sentences one of two heads attends to the subject and the other to the object.",
    given=more_heads == 2,
):
    most = readers["people", more_heads].attention.weights[:, :, 0].argmax(dim=-1)  # (500, heads)
    rows = zip(unseen.texts, most.tolist(), unseen.nouns.tolist(), strict=True)
    both = [{text[i] for i in at} == {verbs.NOUNS[n] for n in nouns} for text, at, nouns in rows]
    assert sum(both) > 0.7 * len(both)

with cu.guard(
    "In the translator mean ablation costs more for head 0.0, and zero ablation for head 0.1."
):
    costs = cu.stored_runs("multi_head_attention", "translator_heads")[0].result
    more = {
        (h, by): costs[f"0.{h}, {by}"] - costs["loss"] for h in (0, 1) for by in ("zero", "mean")
    }
    assert more[0, "mean"] > 1.2 * more[0, "zero"] and more[1, "zero"] > 1.2 * more[1, "mean"]
    assert round(costs["even, same token"], 2) == 0.20

with cu.guard(
    "At a good rate two heads find both people with every seed, one head with some, and then its weight is on both nouns; things it finds with every seed."
):
    single, double = (verbs.reader_ends(run) for run in verb_readers)
    at_best = [ends[ends["rate"] == verbs.best_rate(ends)]["both"] for ends in (single, double)]
    assert at_best[1].min() > 0.95 and 0 < (at_best[0] > 0.95).sum() < len(at_best[0])
    succeeded = single["both"] > 0.95
    assert single[succeeded][["subject", "object"]].min(axis=None) > 0.35
    assert single[succeeded]["spread"].min() > 0.2
    assert single[~succeeded][["subject", "object"]].min(axis=1).max() < 0.15
    of_things = cu.stored_runs("multi_head_attention", "verb_reader")
    assert min(run.result["both"] for run in of_things if run.config["rate"] < 0.03) > 0.95

# %% [markdown]
# ## Take-aways
#
# - One head returns one weighted average.
#   If the keys say nothing about the values and the readout is linear, $k$ look-ups *of the same feature* take $k$ heads.
#   Look-ups of different features can share a head.
# - We compute $h$ heads by one projection, a cut, and a transpose, and the output projection adds what they found.
# - (*Ablating heads*) To **ablate** a head is to replace its output.
#   With zero ablation we ask what a network loses if the head says nothing, and with mean ablation what it loses if the head always says the same.
#   Both can do harm.
#
# <details><summary>How sure is this?</summary>
#
# That one head can't always answer two questions of the same feature is proved, not measured.
# The translator at the top is one network, and if we trained it again, its heads might differ.
# We measured its losses on 400 of the sentences that it was trained on.
# At the cabinet we trained one head and two heads with three learning rates and three seeds each.
# One head was nearly always right where the balls are alike, and nearly never where they differ.
# At the rates 0.01 and 0.03 the single head put more than a third of its weight on each of the two drawers, while at 0.1 it settled on one drawer, at a higher loss (0.34 a ball against 0.23).
#
# In *A cabinet in language*, a head reads the subject and the object of a sentence, which are two *people*, or a person and a *thing*.
# For *people* we tried four learning rates with five seeds each, and 0.003 is the best rate for one head and for two.
# One head found both nouns with two of five seeds at each of the three smaller rates, and with no seed at 0.03.
# Two heads found both nouns in all 15 training runs at the smaller rates, but at 0.03 one run of five lost them again.
# For *things* one head found both nouns with all three seeds at 0.003 and 0.01, and with none at 0.03.
#
# </details>

# %% [markdown] tags=["next"]
# Next: [Positions](09_positions.ipynb).
# The further page, [Multi-head attention: proofs, slices and other heads](08_multi_head_attention_further.ipynb), proves what we only claimed here.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention")

# %% [markdown]
# ## References
#
# - Ainslie, J. et al. (2023).
#   [GQA: Training generalized multi-query transformer models from multi-head checkpoints](https://arxiv.org/abs/2305.13245).
#   EMNLP.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
# - Elhage, N. et al. (2021).
#   [A mathematical framework for transformer circuits](https://transformer-circuits.pub/2021/framework/index.html).
#   Transformer Circuits Thread.
# - Michel, P., Levy, O. and Neubig, G. (2019).
#   [Are sixteen heads really better than one?](https://arxiv.org/abs/1905.10650).
#   NeurIPS.
# - Wang, K. et al. (2023).
#   [Interpretability in the wild: a circuit for indirect object identification in GPT-2 small](https://arxiv.org/abs/2211.00593).
#   ICLR.
