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
# *Anna's car is red.
# Ben's car is blue.
# Clara's car is red. …
# Which color is Ben's?*
# Move the slider: the more cars, the less an average over all sentences knows.
# One layer of **attention**, with fewer parameters and as many steps, is right with two cars and with twelve.
# **How does a word find, among all the others, the one that it needs?**
#
# On the way to GPT: [Queries, keys and values](#Queries,-keys-and-values), [All words at once](#All-words-at-once), [Any order](#Any-order), [Where an average drowns](#Where-an-average-drowns), [It writes](#It-writes).
# On the way to translation: [Queries, keys and values](#Queries,-keys-and-values), [All words at once](#All-words-at-once), [Any order](#Any-order), [Where an average drowns](#Where-an-average-drowns), [The source decides](#The-source-decides).

# %%
import math
from functools import partial

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.kit.tuned import table as by_rate
from course_utils.lessons.self_attention.layers import self_attention as written_out
from course_utils.lessons.self_attention.tasks import (
    TEXTS,
    counting,
    from_the_last_word,
    load_words,
    owners,
    sentences,
)

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.whose_car()

# %% jupyter={"source_hidden": true}
cu.recall("masks", "queries_keys_values", "scoring_functions")

# %% [markdown]
# After this chapter you can
#
# - write self-attention as a class, and prove that it does not see the order;
# - show a task in which attention pays, and forbid a link to see whether the answer goes that way;
# - let your class write text.
#
# It needs [Masks](04_masks.ipynb): scaled dot products, and which keys a query may see.
#
# ## Queries, keys and values
#
# To a network a word is a number, its place in a list, and then a vector $x$ of $M$ numbers, its **embedding**: this row of one matrix.
# A network learns the rows like all its parameters; in this small table the columns have names.
#
# ### Dot products of embeddings
#
# *Cat drinks cold milk* has $n = 4$ words with $M = 7$ features.
# The shortest way to attention: each word is query, key and value at once, with the scores $XX^\top$.
# By hand for *drinks* and *milk*: $0.2\cdot 0.9 + 0.2\cdot 1.0 = 0.38$.

# %%
table = load_words()
sentence = ["cat", "drinks", "cold", "milk"]
rows = [table.words.index(word) for word in sentence]
X = table.features[rows]  # (words, features), as nn.Embedding does it
pd.DataFrame(X.tolist(), sentence, table.names).round(1)

# %%
raw_scores = X @ X.T  # (queries, keys)
raw_weights = raw_scores.softmax(dim=-1)
pd.DataFrame(raw_scores.tolist(), sentence, sentence).round(2)

# %% [markdown]
# Each word prefers itself.
# A dot product measures **likeness**, and likeness is not **relevance**: a verb is unlike its object and still needs it.
# Three things hold for *any* embeddings:
#
# 1. The scores are **symmetric**: *drinks* scores *milk* as *milk* scores *drinks*.
# 2. The word with the **longest** embedding prefers itself: $x_i\cdot x_j \le \lVert x_i\rVert\lVert x_j\rVert \le x_i\cdot x_i$ (Cauchy–Schwarz).
# 3. Two words never prefer *each other*: $\alpha_{ij}\alpha_{ji} \le \alpha_{ii}\alpha_{jj}$.
#    For $0 \le \lVert x_i - x_j\rVert^2$ says $2\,x_i\cdot x_j \le x_i\cdot x_i + x_j\cdot x_j$; take exponentials, and divide by both row sums.
#
# ### Three vectors for each word
#
# So each word gets three vectors ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)):
#
# - its **query** $q = x\,W_Q$: what this word looks for,
# - its **key** $k = x\,W_K$: what it can be found by,
# - its **value** $v = x\,W_V$: what it hands over when it is found.
#
# The three matrices are the same for each word, and learned; these are written by hand.
# In $W_Q$ a row is a feature that a word *has*, and a column a feature that it then *looks for*: an action looks for something edible, with 10, and for somebody alive, with 8.
#
# The embedding of *drinks* is $(0.1, 0, 0.2, 0.2, 0.2, 1, 0)$.
# Column by column of $W_Q$: it looks for alive with $1\cdot 8 = 8$, for edible with $1\cdot 10 = 10$, for action with $0.1\cdot 8 = 0.8$, for quality with $0.2\cdot 8 = 1.6$.
# *Milk* is edible with 1 and has nothing else that is looked for: the product of query and key is 10, and the score $10/\sqrt 7 = 3.78$.

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

q = X[1] @ W_Q  # (7,)
drinks_scores = torch.stack([q @ (x @ W_K) for x in X]) / math.sqrt(7)
drinks_weights = drinks_scores.softmax(dim=0)
z = sum(weight * (x @ W_V) for weight, x in zip(drinks_weights, X, strict=True))
print(looks_for.rename_axis("W_Q"), "\n")
print("query of drinks:", [round(a, 1) for a in q.tolist()])
shown = {"score": drinks_scores.tolist(), "weight": drinks_weights.tolist()}
pd.DataFrame(shown, index=sentence).T.round(2)

# %% [markdown]
# *Drinks* attends to what is drunk, and to who drinks.
#
# ## All words at once
#
# The embeddings are the rows of $X$, and row $i$, column $j$ of $QK^\top$ is query $i$ times key $j$:
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

# %%
Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # project: (n, 7) each
scores = Q @ K.T / math.sqrt(Q.shape[-1])  # score, scale: (queries, keys)
weights = scores.softmax(dim=-1)  # normalize
Z = weights @ V  # mix
pd.DataFrame(Z.tolist(), sentence, table.names).round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([raw_weights, weights]), queries=sentence, keys=sentence, annotate=True,
    titles=["from embeddings", "from queries and keys"],
    alt="Two maps of weights. From the embeddings each word gives itself the most. "
    "From queries and keys, the words attend to each other.",
)  # fmt: skip

# %% [markdown]
# The scores are no longer symmetric, and *cold* and *milk* prefer each other, which fact 3 forbids on the left.
# *Milk* has no quality, but looks for it: *cold* gets the score $8/\sqrt 7 = 3.02$, the others 0, and so $e^{3.02}/(e^{3.02} + 3) = 0.87$ of the weight.
# The milk has become cold.
#
# As a class, with learned matrices and a mask (what follows the projections is PyTorch's `F.scaled_dot_product_attention`).
# Then let each word ask: in *fish chases fast bird*, which word does *fast* find?


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


# %% jupyter={"source_hidden": true}
cu.explore.asking_word()

# %% [markdown]
# ## Any order
#
# *Cat drinks cold milk*; *milk drinks cold cat*: what does our attention make of the difference?

# %%
attend = cu.choose(self_attention, written_out)
order = [3, 1, 2, 0]
Z_turned = attend(X[order], W_Q, W_K, W_V)
layer, batch = SelfAttention(7, 5, 3), torch.randn(2, 4, 7)  # two sentences
shuffle = torch.tensor([2, 0, 3, 1])
for name, mask in {"no mask": None, "causal": cu.causal_mask(4)}.items():
    apart = layer(batch[:, shuffle], mask) - layer(batch, mask)[:, shuffle]
    print(f"random sentences, {name}: largest change {apart.abs().max():.3f}")
pd.DataFrame(Z_turned.tolist(), [sentence[i] for i in order], table.names).round(2)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each word prefers itself by its embedding, and others by its query; another order only permutes the answers.",
    given=(edible, alive) == (10.0, 8.0),
):
    assert raw_scores.argmax(dim=-1).tolist() == [0, 1, 2, 3]
    assert torch.allclose(q, torch.tensor([8, 0, 0, 0, 10, 0.8, 1.6])) and torch.allclose(Z[1], z)
    assert weights.argmax(dim=-1).tolist() == [1, 3, 3, 2] and abs(weights[3, 2] - 0.87) < 0.005
    qkv = layer.W_Q(batch), layer.W_K(batch), layer.W_V(batch)
    by_pytorch = F.scaled_dot_product_attention(*qkv, cu.causal_mask(4))
    assert torch.allclose(layer(batch, cu.causal_mask(4)), by_pytorch, atol=1e-6)
    assert torch.allclose(Z_turned, Z[order], atol=1e-5) and apart.abs().max() > 0.01
    assert torch.allclose(layer(batch[:, shuffle]), layer(batch)[:, shuffle], atol=1e-5)

# %% [markdown]
# Nothing: the rows are those of $Z$, in the new order, and the *milk* is still cold.
# Proof: let the permutation matrix $\Pi$ put the words into another order, $\Pi X$.
#
# 1. queries, keys and values are $\Pi Q, \Pi K, \Pi V$, since each word is projected on its own;
# 2. the scores are $\Pi QK^\top\Pi^\top$, and a row's softmax gives the same weights in whatever order its entries stand: the weights are $\Pi A\Pi^\top$;
# 3. the answers are $\Pi A\Pi^\top\,\Pi V = \Pi AV$, because $\Pi^\top\Pi = I$.
#
# $$f(\Pi X) = \Pi f(X)$$
#
# Self-attention is **permutation equivariant**: permute the words, and the answers are permuted with them.
# A layer without a mask sees a **bag of words**.
# With a causal mask line 2 fails, because the mask stays where it is.
# A network learns in [Positions](09_positions.ipynb) where a word stands.
#
# ## Where an average drowns
#
# Each sentence about a car is one [token](C_glossary.ipynb#token), an owner with a color, and so is the question.
# The model: embeddings, one or more layers that *mix*, and a layer that scores the eight colors.
# What was mixed is *added* to the word.
# Its rivals send each token through a network, take the mean, and have a second network behind it.


# %%
def network(d, out, hidden):
    """A linear layer, or two with a hidden layer between them."""
    if not hidden:
        return nn.Linear(d, out)
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, out))


class Average(nn.Module):
    """(…, n, d) → (…, 1, d): each word through a network, then the mean."""

    def __init__(self, d, hidden):
        super().__init__()
        self.each = network(d, d, hidden)

    def forward(self, x, attn_mask=None):
        return self.each(x).mean(dim=-2, keepdim=True)


# %%
class Reader(nn.Module):
    """(batch, n) tokens → (batch, n, answers): scores of the answers, for each word."""

    def __init__(self, tokens, answers, *mixers, d=32, hidden=0):
        super().__init__()
        self.embedding = nn.Embedding(tokens, d)
        nn.init.normal_(self.embedding.weight, std=0.3)  # scores begin near 0
        self.mixers = nn.ModuleList(mixers)
        self.output = network(d, answers, hidden)

    def forward(self, tokens, attn_mask=None):
        x = self.embedding(tokens)
        for mix in self.mixers:
            x = x + mix(x, attn_mask)  # what the word was, and what it has found
        return self.output(x)


kinds = {
    "one attention": lambda: Reader(len(TEXTS), 8, SelfAttention(32, 32, 32)),
    "average, 64 wide": lambda: Reader(len(TEXTS), 8, Average(32, 64), hidden=64),
    "average, 256 wide": lambda: Reader(len(TEXTS), 8, Average(32, 256), hidden=256),
    "one attention, hidden layer": lambda: Reader(
        len(TEXTS), 8, SelfAttention(32, 32, 32), hidden=128
    ),
    "two attentions": lambda: Reader(
        len(TEXTS), 8, SelfAttention(32, 32, 32), SelfAttention(32, 32, 32)
    ),
}


# %% tags=["nbval-ignore-output"]
def train(model, draw, seed, steps=800, rate=3e-3, attn_mask=None):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        tokens, targets = draw(64, generator)
        logits = model(tokens, attn_mask)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def share_right(model, draw, seed=1, count=4000):
    tokens, targets = draw(count, torch.Generator().manual_seed(1000 + seed))
    return (model(tokens).argmax(-1) == targets).sum().item() / count


twelve = partial(owners, pairs=12)
cu.seed_everything(0)
reader = kinds["one attention"]()
train(reader, twelve, seed=0)
its_car = reader.mixers[0].weights[:, -1, 0].mean()  # how much a question attends to it
print(f"right: {share_right(reader, twelve):.2f}, counting colors: {counting(12):.2f}")
print(f"weight of the car that is asked for: {its_car:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
recalled = cu.stored_runs("self_attention", "recalled", highest="validation")
later = by_rate(cu.stored_runs("self_attention", "recalled_later", highest="validation"), "right")
later["kind"] += later["steps"].map({1600: ", twice the steps", 4000: ", five times the steps"})
tuned = pd.concat([by_rate(recalled, "right"), later])
tuned["cell"] = [f"{row.right:.2f} (rate {row.rate:g})" for row in tuned.itertuples()]
compared = tuned.pivot(index="kind", columns="pairs", values="cell").add_suffix(" cars")

models = [kinds[", ".join(kind.split(", ")[:2])]() for kind in compared.index]
sizes = [sum(p.numel() for p in model.parameters()) for model in models]
compared.insert(0, "parameters", sizes)
pd.DataFrame(compared.fillna("")).rename_axis(None, axis=1)

# %% [markdown]
# Each side has its own best rate of three, chosen on other questions.
# Among twelve cars the averages are, at *every* rate, about as good as counting colors; twice the steps bring the wider one from 0.30 to 0.37, five times to 0.48.
# An average adds up all cars before anybody asks, and learns late to tell them apart.
# Attention asks first: the question's query fits one key, and the rest is multiplied by weights near zero.
#
# ### The word to look for stands elsewhere
#
# *Anna's friend is Ben. …
# Ben's car is blue. …
# Which color is the car of Anna's friend?*
# Now the question does not hold the name that is needed.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "One attention or two, with a linear layer behind: which are right nearly always?",
    ["both", "only two attentions", "neither"],
    answer="only two attentions",
    wrong={
        "both": "The question's query is made from Anna alone. Can it fit Ben's car, before anybody has said that Ben is meant?",
        "neither": "A second layer can ask with what the first has found. What would the first have to find?",
    },
    why="The first layer brings two sentences together, the second asks with the result. "
    "With one, each sentence is judged on its own, and a linear layer adds their votes.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
hops = cu.stored_runs("self_attention", "of_a_friend")
shares = by_rate(hops, "right").pivot(index=["kind", "steps"], columns="rate")["right"]
pd.DataFrame(shares.round(2).astype(object).fillna(""))

# %% [markdown]
# One attention guesses between the two other cars ($9/16$); a hidden layer behind it draws the conclusion, but later.
#
# *By which way do two attentions find it?*
# Two come to mind: the question finds *Ben* in layer 1 and asks for his car in layer 2; or *Anna's friend is Ben* collects the color in layer 1, and the question reads it there in layer 2.
# A map of weights shows where a layer looks, not what it needs: so we **forbid** links, by a mask in the trained network.
# The controls are links that nobody asked for: in layer 1 one between two other people, nearly as heavy; in layer 2 that of the question to *Ben's* friend.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
forbidden = cu.stored_runs("self_attention", "forbidden")
by_seed = {f"seed {run.config['seed']}": run.result for run in forbidden}
links = [name.removeprefix("weight, ") for name in forbidden[0].result if "weight" in name]
found = pd.DataFrame({
    (part, seed): {link: result[f"{part}, {link}"] for link in links}
    for part in ("weight", "right") for seed, result in by_seed.items()
})  # fmt: skip
found.round(2)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Among twelve cars attention is ahead of the averages at each rate, and of twice the steps; after 1,500 steps two layers find a friend's car, one does not."
):
    every = by_rate(cu.stored_runs("self_attention", "recalled", pairs=12), "right")
    every = every.pivot(index="rate", columns="kind", values="right")
    behind = every["one attention"] - every.drop(columns="one attention").max(axis=1)
    assert behind.min() > 0.5 and every["one attention"].max() > 0.95
    best = by_rate(hops, "right").groupby(["kind", "steps"])["right"].max()
    assert best["two attentions", 1500] > 0.95 and abs(best["one attention", 1500] - 9 / 16) < 0.03
    assert best["one attention, hidden layer", 1500] < 0.75
    lost = {link: [run.result[f"right, {link}"] for run in forbidden] for link in links}
    kept = min(lost["layer 1: another's friend → that friend's car"])
    assert kept > 0.98 and max(lost["both links to the friend's car"]) < 9 / 16
    assert later["right"].max() < 0.6
    assert share_right(reader, twelve) > 0.9 and its_car > 0.8

# %% [markdown]
# Both ways are used: forbid a link of either, and answers are lost; the control in layer 1 costs nothing.
# That in layer 2 costs something: *Ben's friend is Clara* names Ben, too, and has collected the color of his car, a third way.
# Without both links to the friend's car a guess remains: each way had stood in for the other.
# In your own model this is `with cu.intervene(model) as acts: acts.knock_out(layers=0, queries=0, keys=5)`.
#
# In *I asked about his old car, if it was running*, *it* is the car; [for such an *it*](07_self_attention_further.ipynb#It-and-its-adjective) an average may do as well.
#
# ## The source decides
#
# *Running* is *corriendo* in Spanish when a boy runs, and *funcionando* when an engine does.
# The translator asks the English sentence: queries from one sentence, keys and values from another, by the same formula, are **cross-attention**.
# By hand, with three features for an English word and for each Spanish candidate:

# %%
subject = "car"  # try "car" | "boy"
# features: runs, machine, alive
features = {"car": [0, 1, 0], "boy": [0, 0, 1], "running": [1, 0, 0]}
english = ["the", subject, "was", "running"]
E = torch.tensor([features.get(word, [0, 0, 0]) for word in english]).float()  # (4, 3)
query = torch.tensor([[8.0, 8.0, 8.0]])  # what runs, and what is it?
cross = (query @ E.T / math.sqrt(3)).softmax(dim=-1)  # (1, 4): Spanish, English
spanish = {"funcionando": [1.0, 1, 0], "corriendo": [1.0, 0, 1]}
chances = (4 * cross @ E @ torch.tensor(list(spanish.values())).T).softmax(dim=-1)
both = torch.cat([cross, chances], 1).tolist()
pd.DataFrame(both, ["running"], [*english, *spanish]).round(2)

# %% [markdown]
# The verb takes half of its answer from *running* and half from its subject, and the subject decides (the 4 sharpens it).
# With `"boy"` it is *corriendo*.
#
# ### Exercise 2 · Whose old car?
#
# *predict · 6 minutes*
#
# *El amigo de Ana vendió su viejo coche*: Spanish *su* is *his*, *her* or *its*.
# The English word asks the eight Spanish words for an owner, with $d = 4$.
# Its query's products with the keys are $2\ln 6$ for *amigo*, $2\ln 3$ for *Ana*, and 0 for the six others.
# Which weight has (a) *amigo*, (b) *Ana*?
# The value of *amigo* is (1, 0), one for *his*; that of *Ana* (0, 1), one for *her*; the others are zero. (c) How much *her* is in the answer when *amigo* becomes *amiga*, with the same key and the value of a woman? (d) Which weight has *amigo* in the first sentence, if *Ana* is forbidden?


# %% tags=["exercise", "predict"]
def whose_old_car():
    """Four numbers, for (a) to (d)."""
    return ...  # such as [0.1, 0.2, 0.3, 0.4]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.whose_old_car(whose_old_car)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def whose_old_car_solution():
    """Divided by √4 the scores are ln 6, ln 3 and 0: exponentials 6, 3 and six times 1, together 15."""
    return [6 / 15, 3 / 15, 9 / 15, 6 / 12]


cu.checks.whose_old_car(whose_old_car_solution)

# %% [markdown]
# ## It writes
#
# With a causal mask each word sees itself and those before it; let it say what comes next, and it is a language model.

# %% tags=["nbval-ignore-output"]
text, vocabulary = sentences()  # (sentences, n) tokens, −100 behind the end


def next_word(count, generator):
    chosen = text[torch.randint(len(text), (count,), generator=generator)]
    return chosen[:, :-1].clamp(min=0), chosen[:, 1:]  # −100: not asked


def write(model, generator, most=12):
    words = [BOS]
    while words[-1] != EOS and len(words) < most:
        logits = model(torch.tensor([words]), cu.causal_mask(len(words)))[0, -1]
        chance = logits.softmax(-1)
        words.append(torch.multinomial(chance, 1, generator=generator).item())
    return " ".join(vocabulary.decode(words))


cu.seed_everything(0)
layers = [SelfAttention(32, 32, 32) for _ in range(2)]
writer = Reader(len(vocabulary), len(vocabulary), *layers)
causal = cu.causal_mask(text.shape[1] - 1)
last_loss = train(writer, next_word, 0, steps=400, rate=1e-2, attn_mask=causal)
print(f"loss {last_loss:.1f}, last word alone {from_the_last_word(text):.1f} at best")
generator = torch.Generator().manual_seed(0)
for _ in range(8):
    print(write(writer, generator))

# %% [markdown]
# After four hundred steps most of it has the shape of English.
# [GPT](13_gpt.ipynb) is this with several heads, positions, and a network behind each layer.
#
# ## What it costs
#
# For $n$ words of size $d$, beside a **convolution** that reads $k$ words and a **recurrence** that goes word by word:
#
# | | multiply-adds | depth: products one after the other | layers or steps from the first word to the last |
# |---|---|---|---|
# | convolution | $k\,nd^2$ | 1 | $\lceil (n-1)/(k-1)\rceil$ layers (its **receptive field** grows by $k - 1$ words a layer) |
# | recurrence | $2\,nd^2$ | $n$ | $n - 1$ steps |
# | self-attention | $3\,nd^2 + 2\,n^2d$ | 3 | 1 layer |
#
# Attention pays with $n^2$ for a short **path** and a small **depth**, which no number of processors shortens; the square is the larger part only for $n > 3d/2$.
#
# ## Take-aways
#
# - Three matrices let a word look for what it is *not* like; one layer asks once, a second can ask with what the first has found.
# - Self-attention sees a bag of words, and soon finds one among many, where an average drowns.
# - A weight shows where a layer looks; a forbidden link, beside a control, shows what it needs.
#
# Next: [Multi-head attention](08_multi_head_attention.ipynb).
# Further, with these costs counted and timed: [Self-attention: costs, and a French word](07_self_attention_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
