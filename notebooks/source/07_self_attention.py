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
# A look-up needs queries, keys and values, and a network has only words. **Where do queries, keys and values come from?**
#
# After this chapter you can
#
# - say three reasons why words should not be compared by the dot products of their embeddings,
# - turn word embeddings into queries, keys and values with three matrices, word by word and as tensors,
# - prove that one matrix for queries and keys is not enough, and see two matrices learn what one cannot,
# - show that attention takes a database of any size, in any order.
#
# *You need [Masks](04_masks.ipynb), and before it dot products and their scale.*

# %%
import math

import pandas as pd
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## From word embeddings to queries, keys and values
#
# Until now somebody handed us queries, keys and values. In a network there are only words, and each word is a vector $w$ of $M$
# numbers, its **embedding**.
#
# Take the sentence *cat drinks cold milk*: $N_w = 4$ words, $M = 7$ features each, from our word table. (A trained network finds
# its own features, which nobody can name. Ours have names so that we can follow.)

# %%
table = cu.load_words()
sentence = ["cat", "drinks", "cold", "milk"]
X = table[sentence]  # (words, features)
assert X.shape == (4, 7)
pd.DataFrame(X.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# ### Why not dot products of the embeddings themselves?
#
# The shortest way: let each word be query, key and value at once, and score two words by the dot product of their embeddings,
# $X X^\top$. By hand for *drinks* and *milk*: $0.2\cdot 0.9 + 0.2\cdot 1.0 = 0.38$. *What would attend to what?*

# %%
raw_scores = X @ X.T  # (queries, keys)
assert_close(raw_scores[1, 3], torch.tensor(0.38))
cu.show_heatmaps(
    raw_scores.softmax(-1),
    queries=sentence,
    keys=sentence,
    annotate=True,
    width=4.6,
    height=3.4,
    alt="Weights from dot products of the four embeddings: the diagonal is the darkest cell of each "
    "row; drinks gives milk and cat the same weight.",
)

# %% [markdown]
# Each word attends mostly to itself, which it knows already. *Drinks* gives *cat* and *milk* the same weight, though they play
# different parts. The reason is that a dot product measures **likeness**, and likeness is not **relevance**: a verb is unlike its
# object and still needs it. Worse, three facts hold for *all* embeddings, whatever a network learns:
#
# 1. The scores are **symmetric**, $s_{ij} = s_{ji}$. If *drinks* scores *milk* high, then *milk* scores *drinks* just as high.
# 2. The word with the **longest** embedding attends most to itself: $s_{ij} \le \lVert w_i\rVert \lVert w_j\rVert \le s_{ii}$ (Cauchy–Schwarz).
# 3. **No two words can look at each other more than at themselves**: $\alpha_{ij}\,\alpha_{ji} \le \alpha_{ii}\,\alpha_{jj}$. Because
#    $0 \le \lVert w_i - w_j\rVert^2 = s_{ii} + s_{jj} - 2 s_{ij}$; take exponentials, and divide by the two row sums.
#
# We test all three on a thousand random sentences.

# %%
E = torch.randn(1000, 6, 16)  # a thousand sentences of six words
E *= torch.rand(1000, 6, 1)  # with embeddings of all lengths
S = E @ E.mT
A = S.softmax(-1)
assert_close(S, S.mT)
longest = E.norm(dim=-1).argmax(-1)
assert (S.argmax(-1).gather(1, longest[:, None])[:, 0] == longest).all()
itself = A.diagonal(dim1=-2, dim2=-1)
assert (A * A.mT <= itself[:, :, None] * itself[:, None, :] + 1e-6).all()

# %% [markdown]
# And it gets worse with size. If the $d$ entries of an embedding are independent with mean 0 and variance 1, then
# $\lVert w\rVert^2 \approx d$, while the product with another word is only of size $\sqrt d$. Even after dividing all scores by
# $\sqrt d$, as in [Scoring functions](03_scoring_functions.ipynb), a word leads by $\sqrt d$ with itself. *How much weight is left for the nine others of ten words?*

# %%
sizes = [4, 16, 64, 256]
left_over = []
for d in sizes:
    E = torch.randn(2000, 10, d)
    weights = (E @ E.mT / math.sqrt(d)).softmax(-1)
    left_over.append(1 - weights.diagonal(dim1=-2, dim2=-1).mean().item())
assert left_over[0] > 0.5 and left_over[2] < 0.02 and left_over[3] < 1e-4
pd.DataFrame(
    [[f"{100 * share:.0f} %" for share in left_over]],
    index=["weight on other words"],
    columns=[f"d = {d}" for d in sizes],
)

# %% [markdown]
# At 256 dimensions, a small size today, words with random embeddings talk to nobody but themselves.
#
# ### Word by word
#
# The way out, made popular by Vaswani et al. (2017), gives each word three vectors for three parts to play:
#
# - its **query** $q = w\,W_q$: what this word is looking for,
# - its **key** $k = w\,W_k$: what it can be found by,
# - its **value** $v = w\,W_v$: what it hands over when found.
#
# $W_q$, $W_k$ and $W_v$ are three **learnable matrices**, here of size $7 \times 7$, the same for each word. The words are rows, so the
# matrix stands on the right. We begin with matrices written by hand. In $W_q$ a row is a feature that a word *has*, and a column a
# feature that it then *looks for*: an action looks for something edible (10) and for somebody alive (8); something alive looks for
# an action; something edible for a quality, and a quality for something edible.

# %%
has = {name: place for place, name in enumerate(table.names)}
W_q = torch.zeros(7, 7)
W_q[has["action"], has["edible"]] = 10
W_q[has["action"], has["alive"]] = 8
W_q[has["alive"], has["action"]] = 8
W_q[has["edible"], has["quality"]] = 8
W_q[has["quality"], has["edible"]] = 8
W_k = torch.eye(7)  # a word is found by all its features
handed_over = torch.tensor([1.0, 0, 0, 0, 1, 1, 1])  # all but size, speed and home
W_v = torch.diag(handed_over)
pd.DataFrame(W_q.int().tolist(), index=table.names, columns=table.names)

# %% [markdown]
# *Whom does the word* drinks *look at?* Its embedding is $(0.1, 0, 0.2, 0.2, 0.2, 1, 0)$. By hand, column by column of $W_q$: it looks
# for alive with $1\cdot 8 = 8$, for edible with $1\cdot 10 = 10$, for action with $0.1\cdot 8 = 0.8$ and for quality with
# $0.2\cdot 8 = 1.6$. Its dot product with the key of *milk*, which is edible 1.0 and nothing else that is looked for, is 10.
# We divide by $\sqrt 7$, which is nothing but a temperature.

# %%
w = table["drinks"]
q = w @ W_q  # (7,)
assert_close(q, torch.tensor([8, 0, 0, 0, 10, 0.8, 1.6]))
scores = torch.stack([q @ (table[other] @ W_k) for other in sentence]) / math.sqrt(7)
assert_close(scores[3], torch.tensor(10 / math.sqrt(7)))
weights = scores.softmax(-1)
z = sum(weight * (table[other] @ W_v) for weight, other in zip(weights, sentence, strict=True))
pd.DataFrame([weights.tolist()], index=["drinks"], columns=sentence).round(2)

# %% [markdown]
# *Drinks* attends to *milk* (0.62) and to *cat* (0.29): to what is drunk and to who drinks.
#
# ### All words at once
#
# Stack the four embeddings to $X$, and the same three matrices give all queries, keys and values in three products:
#
# $$Q = X W_q,\qquad K = X W_k,\qquad V = X W_v .$$
#
# Row $i$ of $Q$ is the query of word $i$; entry $(i, j)$ of $Q K^\top$ is the dot product of query $i$ and key $j$. So one line computes
# attention for a whole sentence:
#
# $$Z = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V ,$$
#
# with the softmax along each row, and $d = 7$ the size of a query. The division stands *inside* the softmax; some slides put it
# outside, and [Scoring functions](03_scoring_functions.ipynb) has shown what that breaks.

# %%
Q, K, V = X @ W_q, X @ W_k, X @ W_v
scores = Q @ K.T / math.sqrt(Q.shape[-1])
weights = scores.softmax(dim=-1)
Z = weights @ V
assert_close(Z[1], z)  # the row of "drinks" is what we got word by word

# %% [markdown]
# All tensors, their shapes and what a row is:

# %%
tensors = {
    "X": (X, "the embedding of a word"),
    "W_q, W_k, W_v": (W_q, "a feature that a word has"),
    "Q": (Q, "what a word looks for"),
    "K": (K, "what a word is found by"),
    "V": (V, "what a word hands over"),
    "scores": (scores, "a query; a column is a key"),
    "weights": (weights, "a query: its distribution over the keys"),
    "Z": (Z, "the answer to a word's query"),
}
rows = {
    name: {"shape": tuple(tensor.shape), "a row is": meaning}
    for name, (tensor, meaning) in tensors.items()
}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown]
# The queries $Q$: *cat* looks for an action, *drinks* above all for something edible, *cold* for something edible, *milk* for a
# quality.

# %%
pd.DataFrame(Q.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# $K$ equals $X$ here, because $W_k$ is the identity. The values $V$ leave out three features:

# %%
assert_close(K, X)
pd.DataFrame(V.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# The scores $QK^\top/\sqrt 7$. They are not symmetric: *drinks* scores *milk* with 3.78, *milk* scores *drinks* with 0.

# %%
assert (scores - scores.T).abs().max() > 3
pd.DataFrame(scores.tolist(), index=sentence, columns=sentence).round(2)

# %% [markdown]
# *What do the weights look like, next to those from the raw embeddings?*

# %%
cu.show_heatmaps(
    torch.stack([raw_scores.softmax(-1), weights]),
    queries=sentence,
    keys=sentence,
    titles=["from the embeddings", "from queries and keys"],
    annotate=True,
    alt="Two maps of weights. From the embeddings, each word attends most to itself. From queries and "
    "keys, cat attends to drinks, drinks to milk and less to cat, cold to milk, and milk to cold.",
)

# %% [markdown]
# On the right each word gives itself little, 0.07 or less. *Cat* looks at *drinks*, *drinks* at *milk* and somewhat at *cat*, and *cold* and *milk* look
# at each other, which the third fact above forbids on the left. The answers $Z$ say what each word has gathered: the row of *milk* now
# holds 0.87 of quality. The milk has learned that it is cold.

# %%
assert weights.argmax(-1).tolist() == [1, 3, 3, 2]
assert weights.argmax(-1).tolist() != raw_scores.argmax(-1).tolist() == [0, 1, 2, 3]
assert weights[2, 3] * weights[3, 2] > weights[2, 2] * weights[3, 3]  # against fact 3
pd.DataFrame(Z.tolist(), index=sentence, columns=table.names).round(2)

# %% [markdown]
# Nothing forces the matrices to be square. Queries and keys must have the same size $d$, since they meet in a dot product; values
# may have any size, and so have the answers. When queries, keys and values come from the same words, as here, we speak of
# **self-attention**; when queries come from another sentence, of **cross-attention**. The formula is the same.
#
# ### Two matrices can learn it
#
# We wrote $W_q$ by hand. *Does gradient descent find such matrices, and does it need two of them for the scores?* We ask for the
# map above (*cat* → *drinks*, *drinks* → *milk*, *cold* → *milk*, *milk* → *cold*), minimize $-\log$ of the wanted weights, and
# compare three ways to score. (Here we may use that loss, for we know which weights we want. A real network is never told.)


# %%
wanted = F.one_hot(torch.tensor([1, 3, 3, 2])).float()  # (queries, keys)


def learn(scores_of, parameters, steps=1000, rate=0.2):
    """Gradient descent on the mean of −log(wanted weight); the last loss and the weights."""
    for _ in range(steps):
        scores = scores_of() / math.sqrt(7)
        weights = scores.detach().softmax(dim=-1)
        slope = (weights - wanted) / len(wanted)  # of the loss, by the scores
        slopes = torch.autograd.grad(scores, parameters, slope)
        with torch.no_grad():
            for parameter, downhill in zip(parameters, slopes, strict=True):
                parameter -= rate * downhill
    return -(weights * wanted).sum(-1).log().mean().item(), weights


def matrix():
    return (0.3 * torch.randn(7, 7)).requires_grad_()


# %%
log_factor = torch.zeros(1, requires_grad=True)  # embeddings alone leave a temperature to learn
W, W_query, W_key = matrix(), matrix(), matrix()
learned = {
    "embeddings": learn(lambda: log_factor.exp() * (X @ X.T), [log_factor]),
    "one matrix for both": learn(lambda: (X @ W) @ (X @ W).T, [W]),
    "two matrices": learn(lambda: (X @ W_query) @ (X @ W_key).T, [W_query, W_key]),
}
all_right = [(fit * wanted).sum(-1).min().item() > 0.5 for _, fit in learned.values()]
shown = pd.DataFrame({"mean loss": [round(loss, 1) for loss, _ in learned.values()]}, index=learned)
shown["each word looks where it should"] = ["yes" if right else "no" for right in all_right]
shown

# %% [markdown]
# Two matrices learn the map at once. One matrix for both gives the scores $(XW)(XW)^\top$, again dot products of vectors with
# themselves, so the three facts hold for it: *cold* and *milk* can't both prefer each other, however long we train. If they give each other
# the weights $\alpha$ and $\beta$, the third fact says $\alpha\beta \le (1 - \alpha)(1 - \beta)$, that is $\alpha + \beta \le 1$. So the mean loss over
# the four words can't fall below $\tfrac24\ln 2 \approx 0.35$. We assert these bounds, not the luck of one run.

# %%
loss_embeddings, loss_one, loss_two = (loss for loss, _ in learned.values())
assert loss_two < 0.05
assert loss_one > 0.5 * math.log(2) - 1e-3 and loss_embeddings > loss_one
assert all(fit[2, 3] + fit[3, 2] < 1 + 1e-4 for _, fit in list(learned.values())[:2])

# %% [markdown]
# ### Exercise 1 · Attention from embeddings
# *10 minutes · ★★*
#
# Write the whole way from embeddings to answers, for any number of axes before the words. $W_q$ and $W_k$ are $(M, d)$, and $W_v$ is
# $(M, d_v)$; none needs to be square. The scores are divided by $\sqrt d$.


# %% tags=["exercise"]
def self_attention(X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V: (…, words, M), (M, d), (M, d), (M, d_v) → (…, words, d_v)."""
    ...


# %% tags=["check"]
cu.checks.self_attention(self_attention)


# %% tags=["solution"] jupyter={"source_hidden": true}
def self_attention(X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V: (…, words, M), (M, d), (M, d), (M, d_v) → (…, words, d_v)."""
    queries, keys, values = X @ W_q, X @ W_k, X @ W_v
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values


cu.checks.self_attention(self_attention)

# %% [markdown]
# ### Exercise 2 · Queries from another sentence
# *5 minutes · ★*
#
# In **cross-attention** the queries come from one sentence $Y$, keys and values from another, $X$. Write it, with scores divided
# by $\sqrt d$. Which of the two lengths does the answer have?


# %% tags=["exercise"]
def cross_attention(Y, X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V, Q from Y, K and V from X: (…, n, M), (…, m, M), … → (…, n, d_v)."""
    ...


# %% tags=["check"]
cu.checks.cross_attention(cross_attention)


# %% tags=["solution"] jupyter={"source_hidden": true}
def cross_attention(Y, X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V, Q from Y, K and V from X: (…, n, M), (…, m, M), … → (…, n, d_v)."""
    scores = (Y @ W_q) @ (X @ W_k).transpose(-2, -1) / math.sqrt(W_q.shape[-1])
    return scores.softmax(dim=-1) @ (X @ W_v)


cu.checks.cross_attention(cross_attention)

# %% [markdown]
# ## A database of any size, in any order
#
# *What happens to the answer when the database grows, or is shuffled?* The code below has no number of pairs in it. It runs with one
# pair, with five, with a hundred thousand; the form of the answer stays.


# %%
def attention(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ values


questions = torch.randn(3, 8)
for m in (1, 5, 100_000):
    assert attention(questions, torch.randn(m, 8), torch.randn(m, 2)).shape == (3, 2)

# %% [markdown]
# A sum does not care for the order of its terms. Shuffle the pairs, keys and values *together*, and the answer is the same, up to the
# rounding of a sum. Shuffle the keys alone, and the database says something else.

# %%
k, v = torch.randn(50, 8), torch.randn(50, 2)
order = torch.randperm(50)
assert_close(attention(questions, k[order], v[order]), attention(questions, k, v))
assert (attention(questions, k[order], v) - attention(questions, k, v)).abs().max() > 0.01

# %% [markdown]
# For a sentence this means: attention without a mask does not see the order of words. *Cat drinks cold milk* and *milk drinks cold cat* give each
# word the same answer, only in other rows. Formally $\operatorname{Att}(PX) = P\operatorname{Att}(X)$ for each permutation $P$. That word order
# counts after all is the business of position encodings, later in the course.

# %%
swapped = ["milk", "drinks", "cold", "cat"]
Y = table[swapped]
Z_swapped = ((Y @ W_q) @ (Y @ W_k).T / math.sqrt(7)).softmax(-1) @ (Y @ W_v)
assert_close(Z_swapped[[3, 1, 2, 0]], Z)

# %% [markdown]
# ### Exercise 3 · Undo a shuffle
# *5 minutes · ★★*
#
# Word $i$ of a shuffled sentence was word `order[i]` of the sentence. Self-attention gave one answer for each word of the shuffled
# sentence. Put the answers back into the order of the sentence.


# %% tags=["exercise"]
def restored(answers, order):
    """Answers (words, d) of X[order], with order (words,) → the answers of X, in its order."""
    ...


# %% tags=["check"]
cu.checks.restored(restored)


# %% tags=["solution"] jupyter={"source_hidden": true}
def restored(answers, order):
    """Answers (words, d) of X[order], with order (words,) → the answers of X, in its order."""
    return answers[order.argsort()]  # argsort of a permutation is its inverse


cu.checks.restored(restored)

# %% [markdown]
# ## The same as the library's
#
# *Does `course_utils` (`cu`) compute what we built?* Our function has one more argument: a **mask**,
# True where a query may use a pair. A pair that may not be used gets the score −∞, as if it were not in the database. We
# compare outputs and gradients on random inputs, with and without masks, with ours and with PyTorch's own operator.


# %%
def outputs_and_gradients(function, mask):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(2, n, 8, generator=generator).requires_grad_() for n in (3, 5, 5)]
    output = function(*inputs, mask)
    target = torch.randn(output.shape, generator=generator)
    return output, *torch.autograd.grad((output * target).sum(), inputs)


mask = torch.rand(2, 3, 5) < 0.6
mask[..., 0] = True  # each query may use at least one pair; Scoring functions treats the empty row
for m in (None, mask):
    ours = outputs_and_gradients(attention, m)
    assert_close(outputs_and_gradients(cu.scaled_dot_product_attention, m), ours)
    assert_close(outputs_and_gradients(F.scaled_dot_product_attention, m), ours)

# %% [markdown]
# A masked pair has no influence: whatever finite number we write into it, the answer stays the same to the last bit.

# %%
only_first_two = torch.tensor([[True, True, False, False, False]])
asker, stored, kept = torch.randn(1, 8), torch.randn(5, 8), torch.randn(5, 2)
broken = kept.clone()
broken[2:] = 1e6
answer = attention(asker, stored, kept, only_first_two)
assert torch.equal(answer, attention(asker, stored, broken, only_first_two))
assert_close(answer, attention(asker, stored[:2], kept[:2]))

# %% [markdown]
# ## What goes wrong
#
# ### The softmax runs over the wrong axis
#
# The function below has been in use for months, on one database at a time. Then somebody gives it a batch. *Which warning sign shows,
# without knowing the right answer?*


# %%
def buggy_lookup(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    weights = scores.softmax(dim=1)
    return weights @ values


animals = ["mouse", "cat", "dog", "horse", "elephant"]
size, home = table.names.index("size"), table.names.index("home")
keys = table[animals][:, [size, home]]  # (keys, 2)
years = torch.tensor([[2.0], [15.0], [12.0], [28.0], [65.0]])  # (keys, 1): how long they may live
asked = table[["kitten", "horse", "house"]][:, [size, home]]
one = buggy_lookup(asked, keys, years)
batch = buggy_lookup(asked[None], keys[None], years[None])
shown = {"alone": one[:, 0].tolist(), "in a batch": batch[0, :, 0].tolist()}
pd.DataFrame(shown, index=["kitten", "horse", "house"]).round(1)

# %% [markdown]
# The answers differ, and no error was raised: every shape fits. There are two signs. The weights of a query no longer sum to 1, and
# an answer may leave the hull. With a single query the sign can't be missed: all weights are 1, and a kitten lives for the *sum* of all
# years.

# %%
assert buggy_lookup(asked[None, :1], keys[None], years[None]).item() == years.sum() == 122
right = cu.scaled_dot_product_attention(asked, keys, years, scale=1.0)
assert_close(one, right)  # alone it is right
wrong = (asked[None] @ keys[None].mT).softmax(dim=1)
assert (wrong.sum(dim=-1) - 1).abs().min() > 0.05  # no row of weights sums to 1

# %% [markdown]
# ### Exercise 4 · Find the bug
# *5 minutes · ★*
#
# Repair `buggy_lookup`, so that it is right with and without a batch axis, and with heads in front of that.


# %% tags=["exercise"]
def fixed_lookup(queries, keys, values):
    """softmax(q·k) v: (…, queries, d), (…, keys, d), (…, keys, d_v) → (…, queries, d_v)."""
    ...


# %% tags=["check"]
cu.checks.fixed_lookup(fixed_lookup)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_lookup(queries, keys, values):
    """softmax(q·k) v: (…, queries, d), (…, keys, d), (…, keys, d_v) → (…, queries, d_v)."""
    scores = queries @ keys.transpose(-2, -1)
    weights = scores.softmax(dim=-1)  # dim=1 is the axis of the keys only where there is no batch
    return weights @ values


cu.checks.fixed_lookup(fixed_lookup)

# %% [markdown]
# ### The dot product does not find the nearest key
#
# In a dot product a long key beats a close one. *How many of the 24 words find themselves, if the words are queries and keys?*


# %%
def closeness(queries, keys):
    """−½‖q − k‖² for each pair: (…, queries, features), (…, keys, features) → (…, queries, keys)."""
    return -0.5 * (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1)


words = table.features
best = (words @ words.T).argmax(-1)
assert table.words[best[table.words.index("cat")]] == "dog"
found_by_dot = best == torch.arange(24)
found_by_closeness = closeness(words, words).argmax(-1) == torch.arange(24)
unit = F.normalize(words, dim=-1)
found_by_cosine = (unit @ unit.T).argmax(-1) == torch.arange(24)
assert found_by_closeness.all() and found_by_cosine.all()
found = {
    "dot product": found_by_dot,
    "closeness": found_by_closeness,
    "dot product, length 1": found_by_cosine,
}
pd.DataFrame(
    {name: f"{hits.sum()} of 24" for name, hits in found.items()},
    index=["words that find themselves"],
)

# %% [markdown]
# *Cat* finds *dog*, because the dog has larger numbers. The missing term is the $-\tfrac12\lVert k\rVert^2$ of the distance. A
# network can learn around it, since it makes its own keys; a search over stored vectors can't, and should scale them to length 1.
#
# ## Take-aways
#
# - Dot products of embeddings with themselves are symmetric and self-centered, by Cauchy–Schwarz. Separate matrices for queries
#   and keys lift both limits, and a third one says what is handed over.
# - Attention takes any number of pairs in any order. Without a mask or positions, it does not see the order of words.
# - A softmax along the wrong axis raises no error: look at the sums of the rows.
#
# ## Quiz

# %%
cu.quiz("self_attention")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Queries, keys and values by three matrices, section 3.2.
