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
# **How does a word find, among all the others, the one that it needs?**
#
# *Anna's car is red.
# Ben's car is blue.
# Clara's car is red. …
# Which color is Ben's?*
# You know the answer because you go straight to the sentence about Ben.
# A network that averages all the sentences has to take the average apart again.
#
# With two cars its **accuracy**, the share of right answers, is 0.96.
# What will it be with four, and with twelve?
# Guess, and then move the slider.

# %% [markdown] tags=["paths"]
# On the path to GPT and to a real model: [Queries, keys and values](#Queries,-keys-and-values), [Any order: permutation equivariance](#Any-order:-permutation-equivariance), [Where attention pays](#Where-attention-pays), [It writes: a causal mask](#It-writes:-a-causal-mask).
# On the path to images and to translation: [Queries, keys and values](#Queries,-keys-and-values), [Any order: permutation equivariance](#Any-order:-permutation-equivariance), [Where attention pays](#Where-attention-pays), [The source decides: cross-attention](#The-source-decides:-cross-attention).

# %% jupyter={"source_hidden": true}
import math
from functools import partial

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.kit.comparison import table as by_rate
from course_utils.lessons.self_attention.layers import all_but_one as without_link
from course_utils.lessons.self_attention.layers import self_attention as written_out
from course_utils.lessons.self_attention.stages import W_K, W_Q, W_V, WORDS, X
from course_utils.lessons.self_attention.tasks import (
    COLORS,
    TEXTS,
    counting,
    from_the_last_word,
    owners,
    sentences,
)

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.whose_car()

# %% [markdown]
# With two cars the average is nearly as good as a single layer of **self-attention**.
# With twelve it is hardly better than a **baseline** that needs no network and always names the most frequent color.
# The attention, which has trained for just as long, is still right.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - compute self-attention with a pencil, and write it as a class;
# - say what attention does when words change places, and prove it;
# - show a task in which attention pays, and forbid a link to see which way the answer came;
# - let your class write text.

# %% [markdown] tags=["needs"]
# You will need [Masks](04_masks.ipynb), which has the scaled dot product and says which keys a query may attend to.

# %% jupyter={"source_hidden": true}
cu.recall("masks", "queries_keys_values", "scoring_functions")

# %% [markdown]
# ## Queries, keys and values
#
# What a network knows about a word is a vector of $M$ numbers, its **embedding**.
# We have made up the embeddings of a short sentence, small enough for a pencil.

# %%
features = ["person", "thing", "action", "quality"]
pd.DataFrame(X.tolist(), WORDS, features).astype(int)

# %% [markdown]
# ### Dot products of embeddings
#
# In *Anna sold her old car*, the word *her* leaves two questions open.
# Whose car is it, and what is hers?
# The shortest way to attention would be to compare the embeddings themselves, with the scores $XX^\top$.

# %%
raw_scores = X @ X.T  # (queries, keys)
pd.DataFrame(raw_scores.tolist(), WORDS, WORDS).astype(int)

# %% [markdown]
# The row of *her* finds *Anna*, because both are people.
# It finds *old* and *her* itself just as well.
# But *car* gets 0, because a pronoun and a thing have no feature in common.
# A dot product of embeddings measures **similarity**, but what a word needs is often unlike itself.
# And whatever the embeddings are, the table is symmetric, so *Anna* has to score *her* exactly as *her* scores *Anna*.
#
# ### Three vectors for each word
#
# So we give each word three vectors, made from its embedding by three matrices ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)):
#
# - its **query** $q = x\,W_Q$, what the word looks for,
# - its **key** $k = x\,W_K$, what it can be found by,
# - its **value** $v = x\,W_V$, what it hands over when it is found.
#
# A network learns the three matrices, and they are the same for every word.
# We have chosen ours by hand, so that *her* looks for a person and for a thing.
# Go through the eight stages with the arrow keys, and do at least one of the sums yourself.

# %% jupyter={"source_hidden": true}
cu.stages("self_attention")

# %% [markdown]
# So *her* now gets 0.38 of its answer from *Anna* and 0.38 from *car*, which it could never have found by similarity.
# That the two had to share the same 1 will matter in the [next chapter](08_multi_head_attention.ipynb).
#
# ### All words at once: the formula
#
# If we write the embeddings as the rows of one matrix $X$ of shape $(n, M)$, the first seven stages become one line:
#
# $$Q = XW_Q,\quad K = XW_K,\quad V = XW_V,\qquad Z = \operatorname{softmax}\!\Big(\frac{QK^\top}{\sqrt d}\Big)\,V,$$
#
# where the softmax runs along each row.
# $Q$ and $K$ have the shape $(n, d)$, because queries and keys meet in a dot product and must have the same size $d$.
# $V$ and the answers $Z$ have the shape $(n, d_v)$, and $d_v$ may be any size.
# A dot product adds up $d$ products, so without the divisor long vectors would have large scores, and a softmax of large scores learns badly ([Scoring functions](03_scoring_functions.ipynb) shows why it is $\sqrt d$).
# Queries, keys, and values come from the *same* words, and that is why we call it **self-attention**.
#
# ### Exercise 1 · From embeddings to answers
#
# *build · 12 minutes*
#
# Now write the formula as a function.
# It should work for any number of axes before the words, such as a batch of sentences, and for matrices that aren't square.
# `@` multiplies the last two axes and repeats this along the others, and `K.mT` swaps the last two.


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

# %% [markdown]
# For the rest of the chapter we use the same function as a class, with learned matrices and a mask.
# `cu.masked_softmax` takes a forbidden score for −∞, so its weight is exactly 0.
# Everything after the projections is what PyTorch calls `F.scaled_dot_product_attention`.


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


# %% [markdown]
# What does a layer cost, if $M = d_v = d$?
# The three projections take $3nd^2$ **multiply-adds** (a multiplication and an addition each), and scores and mixing take $2n^2d$.
# The second part is quadratic in the length $n$, but outweighs the projections only for $n > 3d/2$.
# What we get for this cost is that any two words meet within one layer, and the further page [times this beside other networks](07_self_attention_further.ipynb#Convolution,-recurrence,-attention).
#
# ## Any order: permutation equivariance
#
# *Anna sold her old car* and *car sold her old Anna* are the same five words.
# What does our attention make of the difference?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We let “Anna” and “car” change places, and leave everything else as it is. What happens to z, the answer that “her” gets?",
    ["it changes a little", "two of its numbers change places", "it stays the same"],
    answer="it stays the same",
    wrong={
        "two of its numbers change places": "The value of “Anna” moves along with “Anna”, and so does the key. What does the sum over all five words look like now?",
        "it changes a little": "“Anna” is now farther away from “her”. But where does the formula of a score use a word's position?",
    },
    why="“her” still meets the same five keys and mixes the same five values. Only the order of a sum has changed.",
)

# %% tags=["hide-output"] jupyter={"outputs_hidden": true}
attend = cu.choose(self_attention, written_out)
order = [4, 1, 2, 3, 0]
Z, Z_turned = attend(X, W_Q, W_K, W_V), attend(X[order], W_Q, W_K, W_V)
turned = [WORDS[i] for i in order]
pd.concat(
    [pd.DataFrame(Z.tolist(), WORDS), pd.DataFrame(Z_turned.tolist(), turned)],
    keys=["as it was", "swapped"],
).round(2)

# %% [markdown]
# Each word has kept its answer and taken it along.
# To see why, let the permutation matrix $\Pi$ put the words into another order, $\Pi X$, and follow it through the formula:
#
# 1. Queries, keys, and values become $\Pi Q, \Pi K, \Pi V$, since each word is projected on its own.
# 2. The scores become $\Pi QK^\top\Pi^\top$.
#    A softmax doesn't care about the order of the entries in a row, so the weights, call them $A$, become $\Pi A\Pi^\top$.
# 3. The answers become $\Pi A\Pi^\top\,\Pi V = \Pi AV$, because $\Pi^\top\Pi = I$.
#
# $$f(\Pi X) = \Pi f(X)$$
#
# Self-attention is **permutation equivariant**: permute the words, and the answers are permuted with them.
# In other words, a layer without a mask sees a **bag of words**.
# With a causal mask the second step fails, because the mask stays where it is.
# How a network learns where a word stands is the subject of [Positions](09_positions.ipynb).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("By its embedding “her” finds “Anna” and never the car."):
    assert raw_scores[2].tolist() == [2, 0, 2, 2, 0] and torch.equal(raw_scores, raw_scores.T)
with cu.guard("Another order of the words only permutes the answers."):
    assert torch.allclose(Z_turned, Z[order], atol=1e-12)
    layer, batch = SelfAttention(7, 5, 3), torch.randn(2, 4, 7)
    shuffle = torch.tensor([2, 0, 3, 1])
    assert torch.allclose(layer(batch[:, shuffle]), layer(batch)[:, shuffle], atol=1e-5)
with cu.guard(
    "Our class computes what PyTorch's operator computes, and a causal mask makes the order count."
):
    mask = cu.causal_mask(4)
    qkv = layer.W_Q(batch), layer.W_K(batch), layer.W_V(batch)
    assert torch.allclose(layer(batch, mask), F.scaled_dot_product_attention(*qkv, mask), atol=1e-6)
    apart = layer(batch[:, shuffle], mask) - layer(batch, mask)[:, shuffle]
    assert apart.abs().max() > 0.01

# %% [markdown]
# ## Where attention pays
#
# Back to the cars.
# Each sentence about a car is one [token](C_glossary.ipynb#token) with an owner and a color, and the question is a token, too.
# Our model has embeddings, one or more layers that *mix* the tokens, and a last layer that gives each of the eight colors a score, its **logit**.
# The softmax of the logits says how probable each color is.
# A mixing layer *adds* what it has found to the token's own vector, so the vector moves, say toward a color.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def network(d, out, hidden):
    """A linear layer, or two with a hidden layer between them: `hidden` numbers, the negative ones set to 0."""
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
    """(batch, n) tokens → (batch, n, answers): the logits of all answers, for each word."""

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


# %% tags=["hide-input"] jupyter={"source_hidden": true}
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


# %%
def train(model, draw, seed, steps=800, rate=3e-3, attn_mask=None):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        tokens, targets = draw(64, generator)
        logits = model(tokens, attn_mask)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # all words in one axis
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% tags=["hide-input"] jupyter={"source_hidden": true}
@torch.no_grad()
def accuracy(model, draw, seed=1, count=4000):
    tokens, targets = draw(count, torch.Generator().manual_seed(1000 + seed))
    return (model(tokens).argmax(-1) == targets).sum().item() / count


# %% tags=["nbval-ignore-output"]
twelve = partial(owners, pairs=12)
cu.seed_everything(0)
reader = Reader(len(TEXTS), 8, SelfAttention(32, 32, 32))
losses = train(reader, twelve, seed=0)
its_car = reader.mixers[0].weights[:, -1, 0].mean()  # how much a question attends to it
print(f"accuracy {accuracy(reader, twelve):.2f}")
print(f"always naming the most frequent color: {counting(12):.2f}")
print(f"weight of the car that is asked for: {its_car:.2f}")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
cu.show_curves(
    range(len(losses)), {"loss": losses}, xlabel="step", ylabel="loss", height=2.4,
    alt="Loss of the reader over 800 steps. For more than a hundred steps it stays at 2.1, then it falls, and from step 400 it is nearly 0.",
)  # fmt: skip

# %% [markdown]
# For more than a hundred steps our reader only guesses among the eight colors, at $\ln 8 = 2.1$.
# Then its loss falls to nearly 0, with nearly all the weight on the car that is asked for.
#
# The average from the first screen has more layers.
# Each token goes through a small network, and the mean of all of them, added to the question's own vector, goes through a second one.
# Each of the two has a **hidden layer** in the middle, 64 or 256 numbers that are neither input nor output, with the negative ones set to 0.
# The table shows the accuracy of each model at its best [learning rate](C_glossary.ipynb#learning-rate).


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def in_words(kind):
    return kind.replace("one attention", "one attention layer").replace(
        "two attentions", "two attention layers"
    )


recalled = cu.stored_runs("self_attention", "recalled", highest="validation")
larger = cu.stored_runs("self_attention", "recalled_larger_start", highest="validation")
larger = by_rate(larger, "right").assign(kind="average, 256 wide, larger initialization")
later = by_rate(cu.stored_runs("self_attention", "recalled_later", highest="validation"), "right")
later = pd.concat([later, larger])
later["kind"] += later["steps"].map({800: "", 4000: ", five times the steps"})
tuned = pd.concat([by_rate(recalled, "right"), later])
compared = tuned.pivot(index="kind", columns="pairs", values="right").add_suffix(" cars")
compared = compared.sort_values("12 cars", ascending=False).round(2)
models = [kinds[", ".join(kind.split(", ")[:2])]() for kind in compared.index]
compared.insert(0, "parameters", [sum(p.numel() for p in model.parameters()) for model in models])
pd.DataFrame(compared.astype(object).fillna("")).rename_axis(None, axis=1).rename(index=in_words)

# %% [markdown]
# With twelve cars an average of this size is about as good as naming the most frequent color, which is right in 0.29 of the cases.
# An average adds up all cars *before* anybody has asked, so it has to find a code from which any of them can be read again.
# Twelve cars fit into two of its 32 numbers, so room is not the problem.
# But finding the code takes far longer.
# The same average gets nearly seven answers in ten right with five times the steps and a *larger initialization*, in which its embeddings and its mean begin larger.
# Attention asks first, so the query fits one key, and everything else is multiplied by nearly zero.
#
# ### Exercise 2 · Forbid a link
#
# *build · 6 minutes*
#
# Does the answer really come from the car that gets the weight?
# We forbid that one link and see what the model says then.
# Write a mask for $n$ tokens in which everything is permitted, except that the token `query` may not attend to the token `key`.


# %% tags=["exercise", "build"]
def all_but_one(n, query, key):
    """(n, n) mask, True where a query (row) may attend to a key (column)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.all_but_one(all_but_one)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def all_but_one_solution(n, query, key):
    """Everything is permitted, then one entry isn't."""
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[query, key] = False
    return mask


cu.checks.all_but_one(all_but_one_solution)

# %% tags=["nbval-ignore-output"]
cars = {"Anna": "red", "Ben": "blue", "Clara": "red", "Olga": "green", "Paul": "white"}
asked = "Ben"
forbid = cu.choose(all_but_one, without_link)
texts = [f"{owner}'s car is {color}" for owner, color in cars.items()] + [f"{asked}'s?"]
tokens = torch.tensor([[TEXTS.index(text) for text in texts]])
n, question = len(texts), len(cars)  # the question is the last token
links = {f"{asked}'s car": [*cars].index(asked), "another car": 0}
masks = {f"{name} forbidden": forbid(n, question, key) for name, key in links.items()}
with torch.no_grad():
    said = [reader(tokens, mask)[0, -1].softmax(-1) for mask in (None, *masks.values())]
    reader(tokens)
table = pd.DataFrame(torch.stack(said).tolist(), ["all links", *masks], COLORS)
its_weights = reader.mixers[0].weights[0, -1, list(links.values())].tolist()
table.insert(0, "weight of the link", ["", *(f"{weight:.2f}" for weight in its_weights)])
table.round(2)

# %% [markdown]
# Forbid the link to the right car, and the model has nothing to go by: it says the color of some other car.
# Forbid the link to another car, and nothing changes, so forbidding does no harm *as such*.
# This last row is our **control**.
# It is a weak one, because the first link has nearly all of the weight, and any other has to be light.
#
# ### Ask with what was found
#
# *Anna's friend is Ben. …
# Ben's car is blue. …
# Which color is the car of Anna's friend?*
# This time the question doesn't contain the name that it needs.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "One attention layer or two, with a linear layer at the end. Which model gets nearly all of these questions right?",
    ["both of them", "the one with two", "neither of them"],
    answer="the one with two",
    wrong={
        "both of them": "The question's query is made from “Anna” alone. Can it fit Ben's car before anybody has said that Ben is meant?",
        "neither of them": "A second layer can ask with what the first has found. What would the first have to find?",
    },
    why="The first layer brings two sentences together, and the second asks with the result. "
    "A single layer judges each sentence on its own, and the linear layer adds their votes.",
)

# %% [markdown]
# The table shows the accuracy of each model, by the number of steps and by the learning rate.

# %% tags=["hide-input", "hide-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
hops = cu.stored_runs("self_attention", "of_a_friend")
of_hops = by_rate(hops, "right").rename(columns={"rate": "learning rate"})
of_hops["kind"] = of_hops["kind"].map(in_words)
of_hops = of_hops.pivot(index=["kind", "steps"], columns="learning rate", values="right")
pd.DataFrame(of_hops.round(2).astype(object).fillna(""))

# %% [markdown]
# Two attention layers find nearly every answer.
# A single attention layer with a linear layer at the end does no better than a guess between the two cars that aren't Anna's.
# Such a guess reaches 0.56 rather than 0.50, because now and then the two cars share a color.
# Followed by a hidden layer, a single attention layer gets there as well, but needs twice the steps.
#
# Two layers can find the color by more than one route:
#
# | | layer 1 | layer 2 |
# |---|---|---|
# | one route | the question reads *Anna's friend is Ben* | with *Ben* it finds *Ben's car is blue* |
# | another | *Anna's friend is Ben* reads *Ben's car is blue* | the question reads *blue* there |
#
# We forbid one link at a time, and the table shows the accuracy that remains.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
forbidden = cu.stored_runs("self_attention", "forbidden")
ways = {
    "all links": "nothing",
    "layer 1, the question → “Anna's friend is Ben”": "layer 1: question → Anna's friend",
    "layer 1, the question → all but itself": "layer 1: question → all but itself",
    "layer 1, “Anna's friend is Ben” → Ben's car": "layer 1: Anna's friend → the friend's car",
    "control: another friend → that friend's car": "layer 1: another's friend → that friend's car",
    "layer 2, the question → Ben's car": "layer 2: question → the friend's car",
    "control: the question → four others": "layer 2: question → all that say nothing of the friend",
}
seeds = [f"seed {run.config['seed']}" for run in forbidden]
found = pd.DataFrame(
    {name: [run.result[f"right, {link}"] for run in forbidden] for name, link in ways.items()},
    seeds,
).T
heavy = pd.DataFrame(
    {
        name: [run.result.get(f"weight, {link}", 0) for run in forbidden]
        for name, link in ways.items()
    },
    seeds,
).T
shown = pd.DataFrame({"weight": heavy.mean(axis=1), "accuracy": found.mean(axis=1)}).round(2)
shown["weight"] = ["", *(f"{weight:.2f}" for weight in shown["weight"][1:])]
shown.drop(
    ["layer 1, the question → all but itself", "control: another friend → that friend's car"]
).rename({"control: the question → four others": "control: layer 2, the question → four others"})

# %% [markdown]
# **Both routes are in use, and the model can do without either of them alone.**
# The link to *Ben's car* in layer 2 costs most.
# In layer 2 no other link is as heavy, so as a control we forbid four at once, none of which says anything about the friend.
# Together they weigh 0.12 against 0.53, and forbidding them costs nothing.
# A map of weights shows where a layer *looks*, but only forbidding shows what it *needs*.
# In a model of your own this is `with cu.intervene(model) as acts: acts.forbid(layers=0, queries=0, keys=5)`.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Our own reader finds the car that is asked for among twelve."):
    assert accuracy(reader, twelve) > 0.9 and its_car > 0.8
with cu.guard("The link that we forbid has nearly all the weight, and the control hardly any.", given=asked == "Ben"):  # fmt: skip
    assert its_weights[0] > 0.75 and its_weights[1] < 0.2
with cu.guard(
    "Among twelve cars attention beats the averages at each rate, also with five times the steps and a larger initialization."
):
    every = by_rate(cu.stored_runs("self_attention", "recalled", pairs=12), "right")
    every = every.pivot(index="rate", columns="kind", values="right")
    ahead = every["one attention"] - every.drop(columns="one attention").max(axis=1)
    assert ahead.min() > 0.5 and every["one attention"].max() > 0.95 and later["right"].max() < 0.8
    reached = compared["12 cars"]
    after, start = ", five times the steps", ", larger initialization"
    assert reached[f"average, 256 wide{start}{after}"] > reached[f"average, 256 wide{after}"] + 0.08
    assert reached[f"average, 256 wide{start}{after}"] > 0.6
with cu.guard("Two layers find a friend's car, and one layer guesses between two, or takes a hidden layer and twice the steps."):  # fmt: skip
    best = by_rate(hops, "right").groupby(["kind", "steps"])["right"].max()
    assert best["two attentions", 1500] > 0.95 and abs(best["one attention", 1500] - 9 / 16) < 0.03
    assert best["one attention, hidden layer", 1500] < 0.75
    assert best["one attention, hidden layer", 3000] > 0.9
with cu.guard(
    "Each forbidden link costs right answers in each of three trainings, those of layer 1 leave more than a guess has, and the controls cost none."
):
    controls = found.index.str.startswith("control")
    assert found[controls].min(axis=None) > 0.98
    lost = found.loc["all links"] - found[~controls].drop("all links")
    assert lost.min(axis=None) > 0.03
    in_layer_1 = found[found.index.str.startswith("layer 1")]
    assert len(in_layer_1) >= 2 and in_layer_1.min(axis=None) > 9 / 16 + 0.02
    assert lost.iloc[0].max() < 0.2  # way 1's own link
with cu.guard("The control of layer 1 is nearly as heavy as its link, and that of layer 2 is not."):
    first, control, second, others = (row for _, row in heavy.iloc[-4:].iterrows())
    assert (control > 0.7 * first).all() and (others < 0.5 * second).all()
    assert (second.mean().round(2), others.mean().round(2)) == (0.53, 0.12)
    assert found.mean(axis=1).iloc[1:].idxmin() == "layer 2, the question → Ben's car"
with cu.guard("No other link of the question weighs as much in layer 2."):
    second = [
        [w for key, w in run.result.items() if key.startswith("weight, layer 2: question →")]
        for run in forbidden
    ]
    assert all(
        sorted(weights)[-1] == run.result["weight, layer 2: question → the friend's car"]
        for weights, run in zip(second, forbidden, strict=True)
    )

# %% [markdown]
# ## The source decides: cross-attention
#
# *Running* is *corriendo* in Spanish when a boy runs, and *funcionando* when an engine does.
# A translator has to ask the English sentence which of the two it needs.
# In **cross-attention** the queries come from one sentence, and the keys and values from another, while the formula stays the same.
# For an example by hand we give each word three features.

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
# The verb takes half of its answer from *running* and half from its subject, so the subject decides.
# Change it to `"boy"`, and *corriendo* wins.
#
# ### Exercise 3 · Whose old car?
#
# *predict · 9 minutes*
#
# *El amigo de Ana vendió su viejo coche* says that Ana's friend sold an old car.
# It doesn't say whose, since *su* may be *his*, *her*, or *its*.
# The English word that we need asks the eight Spanish words for an owner, with $d = 4$.
# The products of its query with the keys are $2\ln 6$ for *amigo*, $2\ln 3$ for *Ana*, and 0 for the six others.
# The value of *amigo* is (1, 0), a vote for *his*.
# The value of *Ana* is (0, 1), a vote for *her*.
# All other values are zero.
#
# - (a) What weight does *amigo* get?
# - (b) What weight does *Ana* get?
# - (c) Now *amigo* becomes *amiga*, with the same key but the value of a woman, (0, 1).
#   How much *her* is in the answer?
# - (d) What weight does *amigo* get in the first sentence if we forbid *Ana*?


# %% tags=["exercise", "predict"]
def whose_old_car():
    """Four numbers, for (a) to (d)."""
    return ...  # such as [0.1, 0.2, 0.3, 0.4]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.whose_old_car(whose_old_car)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def whose_old_car_solution():
    """Divided by √4 the scores are ln 6, ln 3, and 0: exponentials 6, 3, and six times 1, together 15."""
    return [6 / 15, 3 / 15, 9 / 15, 6 / 12]


cu.checks.whose_old_car(whose_old_car_solution)

# %% [markdown]
# ## It writes: a causal mask
#
# Our class can also write.
# With a causal mask each word sees only itself and the words before it, and a model that then says which word comes next is a **language model**.
# We train one on the course's English sentences and let it write.
# The sentences differ in length, so we fill up their targets with $-100$, which `cross_entropy` leaves out, and where the model reads, `clamp(min=0)` makes each $-100$ a 0.
# A sentence begins with the token `BOS` and ends with `EOS`, and `torch.multinomial` draws the next token by its probability.

# %% tags=["nbval-ignore-output"]
text, vocabulary = sentences()  # (sentences, n) tokens


def next_word(count, generator):
    chosen = text[torch.randint(len(text), (count,), generator=generator)]
    return chosen[:, :-1].clamp(min=0), chosen[:, 1:]  # what it reads, what comes next


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
losses = train(writer, next_word, 0, steps=400, rate=1e-2, attn_mask=causal)
print(f"loss {losses[-1]:.1f}; the baseline reaches {from_the_last_word(text):.1f}")
generator = torch.Generator().manual_seed(0)
for _ in range(8):
    print(write(writer, generator))

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The writer's loss is below that of the best model that sees only the last word."):
    assert sum(losses[-50:]) / 50 < from_the_last_word(text) - 0.1

# %% [markdown]
# Our [baseline](C_glossary.ipynb#baseline) is the best model that sees only the last word.
# The writer has a lower loss, so it uses earlier words, too.
# Most of what it says has the shape of English, though hardly any of it is true.
# [GPT](13_gpt.ipynb) is this model with several heads, positions, normalization, and a feed-forward network after each attention layer.
#
# ## Take-aways
#
# - Three matrices let a word look for what it is *not* like, and a second layer can ask with what the first has found.
# - Self-attention sees a bag of words, and in our task it finds the right one among many, whereas an average with more parameters learns to do so far more slowly.
# - A weight shows where a layer looks, and a forbidden link shows what it needs.
#   Check that forbidding another link, as heavy as you can find, costs nothing.
#
# <details><summary>How sure is this?</summary>
#
# Each row in the table of averages is the mean of three seeds at the best of three or four learning rates, chosen on a validation set of other questions.
# Only the wider average got more steps, and it was still learning.
# The larger initialization means that its embeddings begin with a standard deviation of 1 instead of 0.3, and that its mean is multiplied by $\sqrt{13}$.
# Other initializations may help it more.
# The accuracies with forbidden links are means of three training runs.
# A question that sees only itself in layer 1 is still right more often than a guess between two cars.
# Our control in layer 1, from another friend to that friend's car, is nearly as heavy as its link and costs nothing.
# The link to *Ben's car* in layer 2 serves several routes, since *Ben's car* may have read that Ben is Anna's friend.
# A forbidden link costs less than we might expect, because *Ben's friend is Clara* names Ben as well and may have collected the color of his car.
# For some words an average can [do as well](07_self_attention_further.ipynb#It-and-its-adjective), such as the *it* in *The cat saw the apple, and it was ripe*.
#
# </details>

# %% [markdown] tags=["next"]
# Next: [Multi-head attention](08_multi_head_attention.ipynb).
# The further page, [Self-attention: costs, and a French word](07_self_attention_further.ipynb), counts and times what attention costs.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("self_attention")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
