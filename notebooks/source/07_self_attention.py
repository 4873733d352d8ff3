# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Self-attention
#
# *The cat saw the apple near the desk and the coat, and it was ripe.*
# A French translation has to say *elle* for *it*, and *mûre* for *ripe*, because an apple is *une pomme*.
# Let the sentence end in *torn*, and *it* is *il*, *le manteau*.
# Another such word is *his*: whose?
# **How does a word get what it needs from the other words of its sentence?**
# And where do queries, keys and values come from, if there are only words?
#
# After this chapter you can
#
# - turn word embeddings into queries, keys and values with three matrices, on paper and as tensors;
# - write self-attention as a class, equal to PyTorch's operator under any mask;
# - prove that it does not see the order of the words, and test any layer for that;
# - say what it does that adding up an average does not, and what a hidden layer behind the average can do;
# - count what convolution, recurrence and self-attention cost.
#
# It needs [Masks](04_masks.ipynb): scaled dot products, and which keys a query may see.
#
# On the way to GPT and to translation: [Queries, keys and values](#Queries,-keys-and-values), [All words at once](#All-words-at-once), [Any order](#Any-order), [A word that depends on another](#A-word-that-depends-on-another).

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.self_attention import written_out
from course_utils.lessons.self_attention.agreement import (
    ADJECTIVE,
    GENDERS,
    IT,
    VOCABULARY,
    make_sentences,
)
from course_utils.lessons.self_attention.waiting import waiting_products
from course_utils.lessons.self_attention.words import load_words

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("masks", "queries_keys_values", "scoring_functions")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
endings = {"r": ("ripe", "elle", "mûre", "apple"), "t": ("torn", "il", "déchiré", "coat")}
nodes, found_by = {}, []
for end, (adjective, it, french, meant) in endings.items():
    for noun in ("cat", "apple", "desk", "coat"):
        color = "key" if noun == meant else "line"
        nodes[end + noun] = cu.Box(noun, color=color)
    nodes |= {f"{end}it": cu.Box(f"it → {it}", color="query")}
    nodes |= {f"{end}adjective": cu.Box(f"{adjective} → {french}", color="wash")}
    found_by.append(cu.Arrow(f"{end}adjective", end + meant, straight=True))
    found_by.append(cu.Arrow(f"{end}it", f"{end}adjective", straight=True))
cu.Drawing(
    """
    rcat rapple rdesk      rcoat . tcat tapple tdesk      tcoat
    rit  rit    radjective radjective . tit  tit    tadjective tadjective
    """,
    nodes=nodes,
    arrows=found_by,
    alt="The four nouns cat, apple, desk and coat, and below them it and the adjective, twice. With ripe, mûre, an arrow goes "
    "from it to ripe and from ripe to apple, and it is elle. With torn, déchiré, the second one goes to coat, and it is il.",
    gap=(26, 44),
)  # fmt: skip

# %% [markdown]
# ## Queries, keys and values
#
# The adjective says which noun is meant, and *it* needs the adjective to know.
# In section 4 a network learns such looks.
# We begin with a shorter sentence.
#
# ### Dot products of embeddings
#
# To a network a word is a vector $x$ of $M$ numbers, its **embedding**: a row of a matrix that training changes like all other parameters.
# Our sentence is *cat drinks cold milk*, with $n = 4$ words and $M = 7$ features from a small table.
# (A trained network's features have no names; these have, so that we can follow.)
# The shortest way to attention: each word is query, key and value at once, with the scores $XX^\top$.
# By hand for *drinks* and *milk*: $0.2\cdot 0.9 + 0.2\cdot 1.0 = 0.38$.

# %%
table = load_words()
sentence = ["cat", "drinks", "cold", "milk"]
X = table[sentence]  # (words, features)
pd.DataFrame(X.tolist(), index=sentence, columns=table.names).round(1)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "With the scores X Xᵀ, how many of the four words give the most weight to themselves?",
    ["none", "two", "all four"],
    answer="all four",
    wrong={
        "none": "Compute cat · cat and cat · milk. Which is larger?",
        "two": "Compute the squares of all four rows first. Which other product comes near them?",
    },
    why="Their products with themselves are 2.09, 1.13, 1.02 and 1.82. The largest product of two different words is 0.75, cat and milk.",
)

# %%
raw_scores = X @ X.T  # (queries, keys)
raw_weights = raw_scores.softmax(dim=-1)
print("scores:", *[[round(a, 2) for a in row] for row in raw_scores.tolist()], sep="\n")
pair = table[["cat", "dog"]]
print("cat · cat, cat · dog:", [round(a, 2) for a in (pair @ pair.T)[0].tolist()])

# %% [markdown]
# Each word prefers itself, which it knows already.
# A dot product measures **likeness**, and likeness is not **relevance**: a verb is unlike its object and still needs it.
# Three things hold for *any* embeddings:
#
# 1. The scores are **symmetric**: *drinks* scores *milk* with 0.38, and *milk* scores *drinks* with 0.38.
# 2. The word with the **longest** embedding prefers itself: $x_i\cdot x_j \le \lVert x_i\rVert\lVert x_j\rVert \le x_i\cdot x_i$ (Cauchy–Schwarz).
#    If all are equally long, each one does.
#    A shorter word may prefer another: *cat* scores *dog* with 2.28 and itself with 2.09, because the dog's vector is longer.
# 3. Two words never prefer *each other*: $\alpha_{ij}\alpha_{ji} \le \alpha_{ii}\alpha_{jj}$.
#    For $0 \le \lVert x_i - x_j\rVert^2$ says $2\,x_i\cdot x_j \le x_i\cdot x_i + x_j\cdot x_j$; take exponentials, and divide by both row sums.
#
# One matrix for both, $(XW)(XW)^\top$, changes nothing: these are again products of vectors with themselves.
#
# ### Three vectors for each word
#
# So each word gets three vectors for three parts to play ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)):
#
# - its **query** $q = x\,W_Q$: what this word looks for,
# - its **key** $k = x\,W_K$: what it can be found by,
# - its **value** $v = x\,W_V$: what it hands over when it is found.
#
# The three matrices are learned, and they are the same for each word.
# We begin with matrices written by hand, $7\times 7$.
# In $W_Q$ a row is a feature that a word *has*, and a column a feature that it then *looks for*: an action looks for something edible and for somebody alive; something alive for an action; something edible for a quality, and a quality for something edible.

# %%
edible = 10.0  # try 0.0 … 20.0
alive = 8.0  # try 0.0 … 20.0
looks_for = pd.DataFrame(0.0, index=table.names, columns=table.names)
looks_for.loc["action", ["edible", "alive"]] = edible, alive
looks_for.loc["alive", "action"] = looks_for.loc["edible", "quality"] = 8.0
looks_for.loc["quality", "edible"] = 8.0
W_Q = torch.tensor(looks_for.values).float()
W_K = torch.eye(7)  # a word is found by all its features
W_V = torch.diag(torch.tensor([1.0, 0, 0, 0, 1, 1, 1]))  # no size, speed, home
looks_for

# %% [markdown]
# *Whom does* drinks *look at?*
# Its embedding is $(0.1, 0, 0.2, 0.2, 0.2, 1, 0)$.
# Column by column of $W_Q$: it looks for alive with $1\cdot 8 = 8$, for edible with $1\cdot 10 = 10$, for action with $0.1\cdot 8 = 0.8$, for quality with $0.2\cdot 8 = 1.6$.
# *Milk* is edible with 1 and has nothing else that is looked for: the product of query and key is 10, and the score $10/\sqrt 7 = 3.78$.

# %%
q = X[1] @ W_Q  # (7,)
print("query of drinks:", [round(a, 1) for a in q.tolist()])
drinks_scores = torch.stack([q @ (x @ W_K) for x in X]) / math.sqrt(7)
drinks_weights = drinks_scores.softmax(dim=0)
z = sum(weight * (x @ W_V) for weight, x in zip(drinks_weights, X, strict=True))
print("its answer z:", [round(a, 2) for a in z.tolist()])
shown = {"score": drinks_scores.tolist(), "weight": drinks_weights.tolist()}
pd.DataFrame(shown, index=sentence).T.round(2)

# %% [markdown]
# *Drinks* looks at *milk* (0.62) and at *cat* (0.29): at what is drunk, and at who drinks.
# So its answer $z$, the weighted sum of the values, holds 0.63 of edible and 0.30 of alive.

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention", "one_matrix")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each word prefers itself by its embedding; by its query, drinks looks at milk and at cat.",
    given=(edible, alive) == (10.0, 8.0),
):
    assert torch.allclose(raw_scores, raw_scores.T) and abs(raw_scores[1, 3] - 0.38) < 1e-6
    assert raw_scores.argmax(dim=-1).tolist() == [0, 1, 2, 3]
    assert (pair @ pair.T)[0].argmax() == 1
    assert torch.allclose(q, torch.tensor([8, 0, 0, 0, 10, 0.8, 1.6]))
    assert abs(drinks_scores[3] - 3.78) < 0.005
    assert abs(drinks_weights[3] - 0.62) < 0.005 and abs(drinks_weights[0] - 0.29) < 0.005

# %% [markdown]
# ## All words at once
#
# The embeddings are the rows of $X$, and three products give all queries, keys and values.
# Row $i$, column $j$ of $QK^\top$ is the product of query $i$ and key $j$:
#
# $$Q = XW_Q,\quad K = XW_K,\quad V = XW_V,\qquad Z = \operatorname{softmax}\!\Big(\frac{QK^\top}{\sqrt d}\Big)\,V,$$
#
# with the softmax along each row.
# Queries and keys need the same size $d$, since they meet in a dot product; values and answers may have any size $d_v$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .     X     .
    pq    pk    pv
    Q     K     V
    score score .
    norm  norm  .
    mix   mix   mix
    .     Z     .
    """,
    nodes={
        "X": cu.Cells(4, 7, "X", shape="(n, M)", color="line", cell=12),
        "pq": cu.Box("project: X W_Q"), "pk": cu.Box("project: X W_K"), "pv": cu.Box("project: X W_V"),
        "Q": cu.Cells(4, 5, "Q", shape="(n, d)", color="query", cell=12),
        "K": cu.Cells(4, 5, "K", shape="(n, d)", color="key", cell=12),
        "V": cu.Cells(4, 3, "V", shape="(n, d_v)", color="value", cell=12),
        "score": cu.Box("score, scale: Q K^T / √d", shape="(n, n)"),
        "norm": cu.Box("normalize: softmax of each row", shape="(n, n)"),
        "mix": cu.Box("mix: weights × V"),
        "Z": cu.Cells(4, 3, "Z", shape="(n, d_v)", color="value", cell=12),
    },
    arrows=["X -> pq, pk, pv", "pq -> Q", "pk -> K", "pv -> V", "Q, K -> score -> norm -> mix -> Z", "V -> mix"],
    alt="The same words X are projected three times, to queries Q, keys K and values V. Queries and keys give scores, "
    "one for each pair of words; their softmax along the rows mixes the values to the answers Z.",
    gap=(14, 32),
)  # fmt: skip

# %% [markdown]
# Queries, keys and values come from the *same* words: this is **self-attention**.
# Where the queries come from another sentence, as in translation, it is **cross-attention**, by the same formula.
# The idea is older than the Transformer: [Cheng et al. (2016)](https://arxiv.org/abs/1601.06733) let a [recurrent network](C_glossary.ipynb#recurrent-network) look back at its own states, [Parikh et al. (2016)](https://arxiv.org/abs/1606.01933) let the words of a sentence look at each other without recurrence, and the name is from [Lin et al. (2017)](https://arxiv.org/abs/1703.03130).
#
# ### Exercise 1 · From embeddings to answers
#
# *build · 8 minutes*
#
# Write the formula, for any number of axes in front of the words.
# No matrix needs to be square.


# %% tags=["exercise", "build"]
def self_attention(X, W_Q, W_K, W_V):
    """softmax(QKᵀ/√d) V: (…, n, M), (M, d), (M, d), (M, d_v) → (…, n, d_v)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.self_attention(self_attention)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def self_attention_solution(X, W_Q, W_K, W_V):
    """softmax(QKᵀ/√d) V: (…, n, M), (M, d), (M, d), (M, d_v) → (…, n, d_v)."""
    queries, keys, values = X @ W_Q, X @ W_K, X @ W_V
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values


cu.checks.self_attention(self_attention_solution)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Milk has no quality: its feature is 0. How much quality has its row of Z, with our matrices?",
    ["0, as before", "almost 0.9", "exactly 1"],
    answer="almost 0.9",
    wrong={
        "0, as before": "Z holds the values of others. Which word has quality, and does milk look for it?",
        "exactly 1": "This would take the whole weight. What is left for three scores of 0?",
    },
    why="Milk is edible with 1, so it looks for quality with 8. Cold has quality 1 and gets the score 8/√7 = 3.02, the others 0. e^3.02 = 20.6, and 20.6/(20.6 + 3) = 0.87.",
)

# %%
Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # project: (n, 7) each
scores = Q @ K.T / math.sqrt(Q.shape[-1])  # score, scale: (queries, keys)
weights = scores.softmax(dim=-1)  # normalize
Z = weights @ V  # mix
print("scores:", *[[round(a, 2) for a in row] for row in scores.tolist()], sep="\n")
rows = [f"{name}  {word}" for name in "QKVZ" for word in sentence]
pd.DataFrame(torch.cat([Q, K, V, Z]).tolist(), index=rows, columns=table.names).round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([raw_weights, weights]), queries=sentence, keys=sentence, annotate=True,
    titles=["from embeddings", "from queries and keys"],
    alt="Two maps of weights. From the embeddings each word gives itself the most. From queries and keys, the words "
    "look at each other.",
)  # fmt: skip

# %% [markdown]
# $Q$: *cat* looks for an action, *drinks* and *cold* for something edible, *milk* for a quality.
# $K$ is $X$ itself, and $V$ leaves out three features.
# In $Z$ the row of *drinks* is the $z$ from above, and that of *milk* holds 0.87 of quality: the milk is cold.
#
# The scores are no longer symmetric: *drinks* scores *milk* with 3.78, *milk* scores *drinks* with 0.
# On the right no word keeps more than 0.07 for itself, and *cold* and *milk* prefer each other (0.82 and 0.87), which fact 3 forbids on the left.
#
# As a class, with learned matrices and a mask.
# A linear layer without bias is a product with a matrix; PyTorch keeps the matrix transposed.
# Below the class, each line compares answers, the gradient of the words and those of the three matrices with PyTorch's operator.
# Then an explorer lets each word ask.
# Guess: in *fish chases fast bird*, which word does *fast* find?


# %%
class SelfAttention(nn.Module):
    """(…, n, M) → (…, n, d_v): each word asks all words of its sentence."""

    def __init__(self, M, d, d_v):
        super().__init__()
        self.W_Q = nn.Linear(M, d, bias=False)
        self.W_K = nn.Linear(M, d, bias=False)
        self.W_V = nn.Linear(M, d_v, bias=False)

    def forward(self, x, attn_mask=None):
        queries, keys, values = self.W_Q(x), self.W_K(x), self.W_V(x)  # project
        scores = queries @ keys.transpose(-2, -1)  # score: (…, n, n)
        scores = scores / math.sqrt(queries.shape[-1])  # scale
        weights = cu.masked_softmax(scores, attn_mask)  # mask, normalize
        self.weights = weights.detach()  # to look at
        return weights @ values  # mix


# %%
class ByPyTorch(SelfAttention):
    def forward(self, x, attn_mask=None):
        qkv = self.W_Q(x), self.W_K(x), self.W_V(x)
        return F.scaled_dot_product_attention(*qkv, attn_mask)


layer, by_pytorch = SelfAttention(7, 5, 3), ByPyTorch(7, 5, 3)
by_pytorch.load_state_dict(layer.state_dict())
batch = torch.randn(2, 4, 7)  # two sentences of four words
lens = cu.padding_mask(torch.tensor([3, 4]), 4)[:, 0]  # (batch, 1, keys)
masks = {"no mask": None, "padding": lens, "causal": cu.causal_mask(4)}
for kind, attn_mask in masks.items():
    print(f"{kind:8}", end="")
    cu.equal(layer, by_pytorch, batch, attn_mask)

# %% jupyter={"source_hidden": true}
cu.explore.asking_word()

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention", "entry_of_the_scores")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With queries and keys the words look at each other, and milk gets 0.87 of quality.",
    given=(edible, alive) == (10.0, 8.0),
):
    assert torch.allclose(Z[1], z, atol=1e-6)
    assert abs(Z[3, 6] - 0.87) < 0.005
    assert weights.argmax(dim=-1).tolist() == [1, 3, 3, 2]
    assert weights.diagonal().max() < 0.075
    assert abs(scores[1, 3] - 3.78) < 0.005 and scores[3, 1].abs() < 1e-6
    assert weights[2, 3] * weights[3, 2] > weights[2, 2] * weights[3, 3]

# %% [markdown]
# ## Any order
#
# *Fast* found the fish (0.75), which is edible, although the bird stands beside it.
# *Cat drinks cold milk*; *milk drinks cold cat*: what does our attention make of the difference?

# %%
attend = cu.choose(self_attention, written_out.self_attention)
order = [3, 1, 2, 0]
Z_turned = attend(X[order], W_Q, W_K, W_V)
print("largest difference, word by word:", f"{(Z_turned - Z[order]).abs().max():.3f}")
shuffle = torch.tensor([2, 0, 3, 1])
for name, mask in {"no mask": None, "causal": cu.causal_mask(4)}.items():
    apart = layer(batch[:, shuffle], mask) - layer(batch, mask)[:, shuffle]
    print(f"random sentences, {name}: largest difference {apart.abs().max():.3f}")
pd.DataFrame(Z_turned.tolist(), [sentence[i] for i in order], table.names).round(2)

# %% [markdown]
# Nothing, up to rounding: the rows are those of $Z$ above, in the new order.
# *Milk* still gets 0.87 of quality, although the cat is cold now.
# The proof has three lines.
# Let the permutation matrix $\Pi$ put the words into another order, $\Pi X$.
# Then
#
# 1. queries, keys and values are $\Pi Q, \Pi K, \Pi V$, since each word is projected on its own;
# 2. the scores are $\Pi QK^\top\Pi^\top$, and a row's softmax gives the same weights in whatever order its entries stand: the weights are $\Pi A\Pi^\top$;
# 3. the answers are $\Pi A\Pi^\top\,\Pi V = \Pi AV$, because $\Pi^\top\Pi = I$.
#
# $$f(\Pi X) = \Pi f(X)$$
#
# Self-attention is **permutation equivariant**: permute the words, and the answers are permuted with them.
# Their mean stays the same; it is **invariant**.
# With a causal mask line 2 fails, because the mask stays where it is: the last printed line is not zero.
#
# So a layer without a mask sees a **bag of words**.
# How a network learns where a word stands is the subject of [Positions](09_positions.ipynb).
#
# ### Exercise 2 · Find the bug
#
# *bug · 7 minutes*
#
# A colleague tests whether a layer (batch, n, d) → (batch, n, d) ignores the order of its words.
# The test says False for plain attention over 60 words, and True for a convolution whose ends are joined to a ring.
# Both are wrong.
# Find the two reasons, and repair the test.


# %%
def buggy_order_test(layer, x):
    order = torch.arange(x.shape[1]).flip(0)
    return torch.equal(layer(x[:, order]), layer(x)[:, order])


def plain(x):
    return (x @ x.mT / math.sqrt(x.shape[-1])).softmax(dim=-1) @ x


def ring(x):
    return x.roll(1, dims=1) + 2 * x + x.roll(-1, dims=1)


print("plain attention:", buggy_order_test(plain, torch.randn(2, 60, 48)))
print("ring:", buggy_order_test(ring, torch.randint(9, (2, 9, 4)).float()))


# %% tags=["exercise", "bug"]
def fixed_order_test(layer, x):
    """True if permuting the words of x (batch, n, d) only permutes the outputs."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_order_test(fixed_order_test)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_order_test_solution(layer, x):
    """A sum in another order differs in its last digits; and a reversal is one order of many."""
    for _ in range(5):  # one random order may be a harmless one
        order = torch.randperm(x.shape[1])
        if not torch.allclose(layer(x[:, order]), layer(x)[:, order], rtol=1e-3, atol=1e-3):
            return False
    return True


cu.checks.fixed_order_test(fixed_order_test_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention", "both_cold")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Another order permutes the answers; with a causal mask it changes them."):
    assert torch.allclose(Z_turned, Z[order], atol=1e-5)
    assert abs(Z_turned[0, 6] - 0.87) < 0.005
    assert torch.allclose(layer(batch[:, shuffle]), layer(batch)[:, shuffle], atol=1e-5)
    assert apart.abs().max() > 0.01
    assert not buggy_order_test(plain, torch.randn(2, 60, 48))
    assert buggy_order_test(ring, torch.randint(9, (2, 9, 4)).float())

# %% [markdown]
# ## A word that depends on another
#
# We make sentences like the first one, with four nouns, an animal, a food, a piece of furniture and a garment, in any order, and an adjective that fits one of them.
# Two words then need that noun's gender in French: *it* and the adjective.
# No test sentence is among the 2,000 to learn from.
#
# The model is as small as can be: learned embeddings, one or more layers that *mix* words, and a linear layer to two genders.
# What was mixed is *added* to the word.
# All are trained by [Adam](C_glossary.ipynb#adam).
# Plainer readers stand beside: one sees the word alone, one adds the **average** of all words (attention with equal weights).
# A *hidden layer* behind the average, or behind one attention, gives these about as many parameters as two attentions have.
#
# Training loops: [PyTorch in an hour](B_pytorch.ipynb#A-training-loop).
# `cu.before_training` first compares the number of parameters with ours and the first loss with a guess between two, 0.69, and tries to learn one batch by heart.

# %%
row = 0  # try 0 … 999
train_set, test_set = make_sentences(2000, 1000)
words, gender = test_set.words(row), GENDERS[test_set.gender[row]]
print(" ".join(words))
print(f"it and {words[ADJECTIVE]}: {gender}, as {words[test_set.meant[row]]} is meant")


class Reader(nn.Module):
    """(batch, n) tokens → (batch, n, 2): masculine or feminine, for each word."""

    def __init__(self, *mixers, d=32, hidden=0):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), d)
        self.mixers = nn.ModuleList(mixers)
        self.output = nn.Linear(d, 2)
        if hidden:
            deep = nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 2)
            self.output = nn.Sequential(*deep)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for mix in self.mixers:
            x = x + mix(x)  # what the word was, and what it has found
        return self.output(x)


# %%
class Average(nn.Module):
    """(…, n, d) → (…, 1, d), the same for each word: the mean of all values."""

    def __init__(self, d):
        super().__init__()
        self.W_V = nn.Linear(d, d, bias=False)

    def forward(self, x):
        return self.W_V(x).mean(dim=-2, keepdim=True)


kinds = {
    "the word alone": lambda: Reader(),
    "average": lambda: Reader(Average(32)),
    "average, hidden layer": lambda: Reader(Average(32), hidden=148),
    "one attention": lambda: Reader(SelfAttention(32, 32, 32)),
    "one attention, hidden layer": lambda: Reader(SelfAttention(32, 32, 32), hidden=90),
    "two attentions": lambda: Reader(*(SelfAttention(32, 32, 32) for _ in range(2))),
}


def new_reader(kind, seed):
    cu.seed_everything(seed)
    return kinds[kind]()


# %%
def gender_loss(model, batch):
    """Summed over "it" and the adjective of each sentence, and how many these are."""
    logits = model(batch[0])[:, [IT, ADJECTIVE]].flatten(0, 1)  # (2 · batch, 2)
    targets = batch[1].repeat_interleave(2)
    return F.cross_entropy(logits, targets, reduction="sum"), len(logits)


def train(model, seed, steps=600, rate=3e-3):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        chosen = torch.randint(2000, (64,), generator=generator)
        batch = train_set.tokens[chosen], train_set.gender[chosen]
        total, count = gender_loss(model, batch)
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()


@torch.no_grad()
def score(model, test=True):
    tokens, gender, _ = test_set if test else train_set
    right = (model(tokens).argmax(dim=-1) == gender[:, None]).float().mean(dim=0)
    return {"it": right[IT].item(), "adjective": right[ADJECTIVE].item()}


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "One attention: at which of the two words is the gender right in (nearly) every test sentence?",
    ["at both", "at the adjective only", "at “it” only"],
    answer="at the adjective only",
    wrong={
        "at both": "The query of “it” is made from “it” alone, and that is the same word in each sentence. Can it know what fits the adjective?",
        "at “it” only": "Which of the two words tells by itself whether an animal or a food is meant?",
    },
    why="The query is made from the word itself. “Ripe” can ask for food. “It” asks the same in each sentence: for nouns, perhaps, but not for those that fit an adjective which it has not read.",
)

# %%
reader = new_reader("two attentions", seed=0)
expected = 52 * 32 + 6 * 32**2 + 2 * 32 + 2  # words, six matrices, output
cu.before_training(
    reader, (train_set.tokens[:64], train_set.gender[:64]), gender_loss,
    expected=expected, choices=2, lr=3e-3,
)  # fmt: skip
train(reader, seed=0)
found = score(reader)
print(f"two attentions: it {found['it']:.2f}, adjective {found['adjective']:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
stored = pd.DataFrame(
    [run.config | run.result for run in cu.stored_runs("self_attention", "reader")]
)
grouped = stored.groupby(["kind", "rate"], sort=False)[["adjective", "it"]].agg(["min", "max"])
compared = pd.DataFrame(
    {
        f"{word}, rate {rate}": {
            kind: f"{grouped.loc[(kind, rate), (word, 'min')]:.2f} … {grouped.loc[(kind, rate), (word, 'max')]:.2f}"
            for kind in kinds
        }
        for rate in (0.003, 0.01, 0.03)
        for word in ("adjective", "it")
    }
)
compared.insert(
    0, "parameters", [sum(p.numel() for p in make().parameters()) for make in kinds.values()]
)
compared

# %% tags=["hide-input"] jupyter={"source_hidden": true}
two = stored[(stored["kind"] == "two attentions") & (stored["rate"] == 0.003)].set_index("seed")
seen = ["layer 1: adjective to noun", "layer 2: it to adjective"]
weighed = two[seen].rename(columns="mean weight, {}".format)
cut = cu.stored_runs("self_attention", "forbidden")
forbidden = pd.DataFrame({run.config["seed"]: run.result for run in cut}).T
right = forbidden.rename(columns="it right, forbidden: {}".format)
print(pd.concat([weighed, right], axis=1).T.rename(columns="seed {}".format).round(2).to_string())
asking = [f"{words[place]}, layer {number}" for number in (1, 2) for place in (IT, ADJECTIVE)]
picture, ax = cu.subplots(
    width=6.4, height=2.2,
    alt=f"Weights of it and of {words[ADJECTIVE]} in both layers over the 17 words of the sentence.",
)  # fmt: skip
cu.heatmap(
    ax, torch.stack([reader.mixers[number].weights[row, place] for number in (0, 1) for place in (IT, ADJECTIVE)]),
    queries=asking, keys=words, xlabel=None, ylabel=None, annotate=True,
)  # fmt: skip
ax.tick_params(axis="x", rotation=60)
picture

# %% [markdown]
# The first table has shares of right genders over 1,000 test sentences, from the worst to the best of three seeds, at three rates.
# The word alone guesses: 0.48 to 0.52.
# The average adds up what each word says by itself: 0.67 to 0.69, no more than the gender that most of the four nouns have, right in $11/16 = 0.69$.
# **One attention** finds the adjective's noun, 1.00, if the rate is not too large.
# But *it* asks the same in each sentence: a word has one strength $e^{q\cdot k}$ and one number for the output, and the sign of a sum decides.
# A vote again, 0.69 at best.
# **Two attentions** find both, 1.00, at two of the three rates.
#
# *Does it take two?*
# It does not even take one.
# A hidden layer can do more than add: behind the plain **average** it has both words right as well, at two of the three rates, with as many parameters and steps ([A control is a tuned control](G_controls.ipynb)).
# For each sentence has one noun of each kind, and the four genders with the adjective tell the answer without any word asking another.
# What attention shows here is *how* a word finds another, not that it must.
#
# *What do two attentions look at?*
# Equal weights would be $1/17 = 0.06$.
# In layer 1 the adjective gives 0.34 to 0.57 to its noun, in layer 2 *it* gives 0.52 to 0.68 to the adjective.
# Is this how *it* gets its gender?
# We **forbid** one look at a time, by a mask in the trained network (`cu.intervene` sets it, and takes it off again).
# If the adjective may not look at nouns in layer 1, *it* falls to 0.53 to 0.72; if *it* may not look at the adjective in layer 2, to 0.52 to 0.74.
# So this way is used.
# It is not the only one: *it* can read the adjective in layer 1 and ask nouns in layer 2; this forbidden, 0.86 to 0.99.
# And the comma, dark in the picture of our sentence?
# Without it nothing is lost, 1.00.
# A weight shows where a layer looks, not what it needs.
#
# One head with two features learns such a look in your browser, step by step, in [Scoring functions: norms, kernels and gradients](03_scoring_functions_further.ipynb#A-whole-head).
#
# ### Exercise 3 · His car
#
# *open · 5 minutes*
#
# Spanish *su coche* is *his car*, *her car* or *its car*: a translator has to find out whose.
# Make up a sentence in which one other word decides, and one in which it takes two.
# Which words have to ask, in how many layers?
# Which plainer model would you set beside yours, so that a reader believes that attention was needed?

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention", "same_query")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "One attention finds the gender at the adjective, two at both; so does an average with a hidden layer."
):
    low, high = grouped.xs("min", axis=1, level=1), grouped.xs("max", axis=1, level=1)
    best = low.groupby("kind").max()  # of three rates, the worst of three seeds
    assert (best["adjective"].loc[["one attention", "two attentions"]] > 0.98).all()
    assert best["it"].loc["two attentions"] > 0.98
    assert (best.loc["average, hidden layer"] > 0.98).all()
    assert (high["it"].loc["one attention"] < 0.8).all()
    assert (high.loc[["the word alone", "average"]] < 0.8).all(axis=None)

# %% [markdown]
# ## Convolution, recurrence, attention
#
# A **convolution** of width $k$ (no key here) reads a word and the $k - 1$ before it, a **recurrence** the word and the state before it (the arrows from y to y), attention all words.
# Each turns $n$ vectors of size $d$ into $n$ others, at three costs:
#
# - **multiply-adds**: multiplications, each with its addition, in all matrix products; `cu.multiply_adds` counts them;
# - **products that wait for each other**: the longest chain of matrix products in which each one needs the result of the one before.
#   No number of processors makes it shorter.
#   Products that need nothing from each other count once, as all $x_tW_x$ do.
#   `waiting_products` looks for this chain in the graph that autograd keeps;
# - **path length**: how many layers, or steps of a recurrence, lie between the first word and the last output.
#   A convolution with a **dilation** of 3 leaves gaps, and reads $i$, $i - 3$, $i - 6$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
dots = {
    f"{part}{name}{i}": cu.Circle(name, color=color)
    for part in "cra"
    for i in range(4)
    for name, color in (("x", "wash"), ("y", "value"))
}
straight = [
    cu.Arrow(f"cx{i}", f"cy{j}", straight=True)
    for j in range(4)
    for i in range(j - 2, j + 1)
    if i >= 0
]
straight += [cu.Arrow(f"rx{i}", f"ry{i}") for i in range(4)] + [
    cu.Arrow(f"ry{i}", f"ry{i + 1}", color="query") for i in range(3)
]
straight += [cu.Arrow(f"ax{i}", f"ay{j}", straight=True) for j in range(4) for i in range(4)]
cu.Drawing(
    """
    c   c   c   c   . r   r   r   r   . a   a   a   a
    cx0 cx1 cx2 cx3 . rx0 rx1 rx2 rx3 . ax0 ax1 ax2 ax3
    cy0 cy1 cy2 cy3 . ry0 ry1 ry2 ry3 . ay0 ay1 ay2 ay3
    """,
    nodes=dots | {"c": cu.Note("convolution, k = 3"), "r": cu.Note("recurrence"), "a": cu.Note("self-attention")},
    arrows=straight,
    alt="Four words x and four outputs y, three times. Convolution: each y is joined to its own x and the two before it. "
    "Recurrence: each y to its own x and, in red, to the y before it. Self-attention: each y to all four x.",
    gap=(14, 46),
)  # fmt: skip


# %%
def convolution(x, kernel, dilation=1):
    """Word i reads i, i − dilation, …, k words in all: (n, d), (d, d, k) → (n, d)."""
    padded = F.pad(x.T, (dilation * (kernel.shape[-1] - 1), 0))  # zeros in front
    return F.conv1d(padded[None], kernel, dilation=dilation)[0].T


def recurrence(x, W_x, W_h):
    """h_t = tanh(x_t W_x + h_{t−1} W_h), one after the other: (n, d) → (n, d)."""
    states = [x.new_zeros(1, x.shape[1])]
    for inputs in (x @ W_x).split(1):
        states.append((inputs + states[-1] @ W_h).tanh())
    return torch.cat(states[1:])


def path(n, kernel, grow=1):
    """Layers of convolution until the last output depends on the first word."""
    x = start = torch.randn(n, len(kernel), requires_grad=True)
    for count in range(1, n):
        x = convolution(x, kernel, dilation=grow ** (count - 1))
        (slope,) = torch.autograd.grad(x[-1].sum(), start, retain_graph=True)
        if slope[0].any():
            return count


# %% [markdown]
# ### Exercise 4 · Three costs on paper
#
# *predict · 6 minutes*
#
# Let $n = 10$, $d = 8$ and $k = 3$.
# How many multiply-adds take (a) the convolution (count the zeros in front like words), (b) the recurrence (count the first state, too, which is zero), (c) self-attention with three matrices $8\times 8$, its projections included?
# How many products wait for each other in (d) the recurrence, (e) self-attention?
# And (f) how many layers of the convolution, one upon the other, until the last output depends on the first word?


# %% tags=["exercise", "predict"]
def predicted_costs():
    """Six whole numbers, for (a) to (f), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5, 6]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_costs(predicted_costs)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_costs_solution():
    """k n d²; 2 n d²; 3 n d² + 2 n² d; 1 + 9; project, score, mix; ⌈9 / 2⌉, as a layer reaches 2 words further."""
    return [1920, 1280, 3520, 10, 3, 5]


cu.checks.predicted_costs(predicted_costs_solution)

# %%
k = 3  # try 2 … 5
d = 64  # try 16 … 128
kernel = (torch.randn(d, d, k) / math.sqrt(k * d)).requires_grad_()
W_x, W_h = (torch.randn(2, d, d) / math.sqrt(d)).requires_grad_()
layers = {
    "convolution": lambda x: convolution(x, kernel),
    "recurrence": lambda x: recurrence(x, W_x, W_h),
    "self-attention": SelfAttention(d, d, d),
}
lengths = [16, 32, 96, 192, 384, 768]
texts = {n: torch.randn(n, d) for n in lengths}
adds = {n: [cu.multiply_adds(f, texts[n]) for f in layers.values()] for n in texts}
costs = pd.DataFrame(adds, index=list(layers)).T
waits = {n: [waiting_products(f(texts[n])) for f in layers.values()] for n in texts}
paths = {n: [path(n, kernel), path(n, kernel, grow=k)] for n in lengths[:3]}
print(pd.DataFrame(waits, index=list(layers)).rename_axis("products that wait"), "\n")
print(pd.DataFrame(paths, index=["convolution", "dilated"]).rename_axis("layers"))
twice = {f"{n} → {2 * n}": costs.loc[2 * n] / costs.loc[n] for n in (16, 96, 384)}
twice = pd.DataFrame(twice).map("× {:.2f}".format)
pd.concat([costs.loc[[16, 96, 384]].T, twice], axis=1).rename_axis("multiply-adds")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("self_attention", "milliseconds")
timed = pd.DataFrame({run.config["length"]: run.result for run in runs}).T
print(f"processor's milliseconds for n words, d = 64, one thread of: {runs[0].machine}")
timed.rename_axis("n").round(2)

# %% [markdown]
# | | multiply-adds | products that wait | path length |
# |---|---|---|---|
# | convolution of width $k$ | $k\,nd^2$ | 1 | $\lceil (n-1)/(k-1)\rceil$ layers; $\lceil\log_k n\rceil$ with the dilations 1, $k$, $k^2$, … |
# | recurrence | $2\,nd^2$ | $n$ | $n - 1$ steps |
# | self-attention | $3\,nd^2 + 2\,n^2d$ | 3 | 1 layer |
#
# The counts follow these formulas; for the reader above, $64\,(2\,(3\cdot 17\cdot 32^2 + 2\cdot 17^2\cdot 32) + 17\cdot 64) = 9{,}121{,}792$, as `cu.before_training` printed.
# *Is attention quadratic in the length?*
# Convolution and recurrence cost twice as much for twice the length.
# Attention costs 2.29 times as much at $n = 16 = d/4$; 3 times at $n = 96 = \tfrac32 d$, where its two parts are equal; and 3.6 times at 384.
# It comes near 4, the factor of a square, only where $n$ is several times $d$.
#
# The times are the processor's, the best of 25 rounds.
# At 256 words attention does 5.5 times as many multiply-adds as the recurrence, in a third of its time: 0.56 ms against 1.69.
# This is not Python's loop alone: `nn.RNN` loops in C++ and takes 1.31.
# At 4,096 words attention takes five times as long as our recurrence, 167 ms against 30.

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention", "dearer_part")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The counts follow the formulas of the table."):
    n = torch.tensor(lengths)
    assert costs["convolution"].tolist() == (k * n * d**2).tolist()
    assert costs["recurrence"].tolist() == (2 * n * d**2).tolist()
    assert costs["self-attention"].tolist() == (3 * n * d**2 + 2 * n**2 * d).tolist()
    assert all(waits[m] == [1, m, 3] for m in waits)
    assert all(paths[m][0] == -(-(m - 1) // (k - 1)) for m in paths)
    assert all(k ** (paths[m][1] - 1) < m <= k ** paths[m][1] for m in paths)

# %% [markdown]
# ## Take-aways
#
# - Products of embeddings with themselves are symmetric, and no two words can prefer each other.
#   Three matrices change this.
# - Self-attention: project, score, scale, mask, normalize, mix, with queries, keys and values from the same words.
# - Without a mask it is permutation equivariant: it sees a bag of words.
# - A word asks by its own query; a second layer can ask with what the first has found.
#   A weight shows where a layer looks, not what it needs.
# - Self-attention takes $3nd^2 + 2n^2d$ multiply-adds, 3 products that wait for each other, and one layer from any word to any other.
#
# Next: [Multi-head attention](08_multi_head_attention.ipynb), where a word asks several questions at once.
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention")

# %% [markdown]
# ## References
#
# - Cheng, J., Dong, L. and Lapata, M. (2016).
#   [Long short-term memory-networks for machine reading](https://arxiv.org/abs/1601.06733).
#   EMNLP.
# - Lin, Z. et al. (2017).
#   [A structured self-attentive sentence embedding](https://arxiv.org/abs/1703.03130).
#   ICLR.
# - Parikh, A., Täckström, O., Das, D. and Uszkoreit, J. (2016).
#   [A decomposable attention model for natural language inference](https://arxiv.org/abs/1606.01933).
#   EMNLP.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2: queries, keys and values; section 4 and table 1: costs of three layers, as orders of magnitude and without the projections.
