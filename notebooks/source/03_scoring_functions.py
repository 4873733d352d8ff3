# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Scoring functions
#
# **What makes a query fit a key, and how much?**
# A transformer multiplies them, number by number, adds up, and divides the sum by $\sqrt d$.
# Why multiply, what do long vectors do to the score, and who needs the $\sqrt d$?
#
# After this chapter you can
#
# - say with a pencil what a dot product rewards, and what a longer query or key does to the weights;
# - explain $1/\sqrt d$, and say what a head without it learns slowly or not at all, and why;
# - write scaled dot-product attention, and additive scores, which can do what no dot product can.
#
# It needs [Queries, keys and values](01_queries_keys_values.ipynb): softmax and temperature.
#
# On the way to GPT: [One divisor](#One-divisor), [A dot product is a match](#A-dot-product-is-a-match), [Long queries, long keys](#Long-queries,-long-keys), *Why divide by √d?*, [What large scores do](#What-large-scores-do).
# On the way to images: [One divisor](#One-divisor), [A dot product is a match](#A-dot-product-is-a-match), [Long queries, long keys](#Long-queries,-long-keys), *Why divide by √d?*.

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.scoring_functions import scores, trainings

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("start_here", "queries_keys_values")

# %% [markdown]
# ## One divisor
#
# A list gives a digit to each of some words: *rain* 4, *cat* 7, *door* 4, …
# A head, one attention that learns, is asked for a word of the list and has to say its digit; each word is a vector of $d$ numbers.
# It learns on thousands of lists, twice: with its scores divided by $\sqrt d$, and with the scores as they are.
# How many digits are right on new lists?

# %% tags=["hide-input", "opening"] jupyter={"source_hidden": true}
trained = cu.stored_runs("scoring_functions", "recall_by_one_head")
chosen = trainings.best(trained)
trainings.show_best(chosen)

# %% [markdown]
# Each point is the mean of three trainings at the best of three [learning rates](C_glossary.ipynb#learning-rate), the small number (chosen on other lists, for each side alone).
# With the divisor every digit is right within 500 steps.
# Without it short lists are fine; but with 64 words of 64 numbers or more the head hardly does better than a guess.
# More steps help where the words have 64 numbers (diamond, then star: three trainings have 0.61 to 0.89); for 64 words of 256 numbers (diamond) they do not.
#
# What does $\sqrt d$ have to do with the *length of the list*?
#
# ## A dot product is a match
#
# A guest sits down at a table with five dishes.
# Three numbers describe a dish: how sweet, how hot, how crunchy; a negative number is the opposite (mild is negative hot).
# The same three say what the guest likes and, where they are negative, dislikes.
# Multiply feature by feature and add up.
# This is the **dot product** of the query $q$ (the guest) and a key $k$ (a dish):
#
# $$q\cdot k = \sum_{j=0}^{d-1} q_j k_j .$$

# %%
sweet = 2.0  # try -2.0 … 2.0
hot = -1.0  # try -2.0 … 2.0
guest = torch.tensor([sweet, hot, 1.0])  # the query
names = ["pancake", "chili", "cookie", "half a cookie", "bread"]
dishes = torch.tensor([[1, 0, 0], [-1, 2, 0], [2, 0, 2], [1, 0, 1], [0, 0, 1.0]])
products = [f"{feature}: q × k" for feature in ("sweet", "hot", "crunchy")]
tastes = pd.DataFrame(guest * dishes + 0.0, names, products)
tastes["score"] = tastes.sum(axis=1)
tastes["cos θ"] = F.cosine_similarity(dishes, guest, dim=1)
tastes["weight"] = (dishes @ guest).softmax(dim=0)
tastes.round(3)

# %% [markdown]
# **Signs:** where guest and dish agree, the product is positive; where they differ, it is negative.
# Chili is the opposite of this guest in both features: $-2-2=-4$.
# **Sizes:** half a cookie points in the same direction as a cookie, gets half its score, and after the softmax a twentieth of its weight.
# Change the two marked numbers until chili wins.
#
# In one formula: $q\cdot k = \lVert q\rVert\,\lVert k\rVert\cos\theta$, with $\theta$ the angle between them.
# A dot product rewards the same *direction*, and multiplies by both *lengths*.
#
# ## Long queries, long keys
#
# What does each length do?
# Make the query three times as long: all its scores are three times as far apart.

# %%
stretch = 3.0  # try 0.1 … 10.0
factors = sorted({0.1, 1.0, stretch})
longer = torch.tensor(factors)[:, None] * guest  # one query a row
stretched = (longer @ dishes.T).softmax(dim=1)
pd.DataFrame(stretched, [f"{c:g} · guest" for c in factors], names).round(3)

# %% [markdown]
# $\mathrm{softmax}(c\,q\cdot k)$ is the softmax at the [temperature](C_glossary.ipynb#temperature) $1/c$: **the length of a query is an inverse temperature**.
# Its direction says *who* wins, its length *how clearly*.
#
# And the length of a key?
# Compare with a score for which nearness counts, the negative squared distance.
# Multiplied out:
#
# $$-\tfrac12\lVert q-k\rVert^2 \;=\; q\cdot k \;-\; \tfrac12\lVert q\rVert^2 \;-\; \tfrac12\lVert k\rVert^2 .$$
#
# By hand: for $q=(1,2)$ and $k=(1,1)$ the distance is 1, so on the left stands $-\tfrac12$; on the right $3-2.5-1$.
# Both (1, 1) and (2, 2) are at distance 1 from this query.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Equally near, then. By q·k alone, which gets more weight?",
    [
        "both the same, as they are equally near",
        "(2, 2), about twice as much",
        "(2, 2), about 20 times as much",
        "(1, 1), as it is shorter",
    ],
    answer="(2, 2), about 20 times as much",
    wrong={
        "both the same, as they are equally near": "By distance they do. Compute the two dot products.",
        "(2, 2), about twice as much": "Twice is the ratio of the scores, 6 and 3. Then comes a softmax.",
        "(1, 1), as it is shorter": "Compute the two dot products. What was −½‖k‖² for a long key?",
    },
    why="The products are 3 and 6, and a softmax turns a difference of 3 into a ratio of e³ = 20.",
)

# %%
query = torch.tensor([1.0, 2.0])
keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
shown_keys = ["(1, 1)", "(2, 2)", "(0, 1)"]
match, key_half = keys @ query, keys.square().sum(dim=1) / 2
by_distance, prior = (match - key_half).softmax(dim=0), key_half.exp()
rows = {
    "q·k": match,
    "α by q·k": match.softmax(dim=0),
    "−½‖k‖²": -key_half,
    "α by distance": by_distance,
    "prior exp(½‖k‖²)": prior,
    "α by distance × prior, / sum": by_distance * prior / (by_distance @ prior),
}
terms = pd.DataFrame(rows, shown_keys).T.astype(float)
terms.round(2)

# %% [markdown]
# The term in $\lVert q\rVert^2$ is the same for all keys, so the softmax does not see it; the one in $\lVert k\rVert^2$ it does see.
# Take the exponential of both sides and sort:
#
# $$e^{\,q\cdot k} \;=\; e^{\lVert q\rVert^2/2}\;\cdot\; e^{-\lVert q-k\rVert^2/2}\;\cdot\; e^{\lVert k\rVert^2/2} .$$
#
# A dot product is nearness with a **prior weight** $e^{\lVert k\rVert^2/2}$ on each key: a key with the prior 20 counts like 20 copies of itself.
# (The middle factor is the Gaussian kernel of [Kernel regression](02_kernel_regression.ipynb).)
#
# Now color each point of the plane, taken as a query, by the key that wins it.
# D lies near the origin, inside the polygon of the others.

# %%
d_length = 0.5  # try 0.1 … 3.0
five = torch.tensor([[2.0, 1.0], [-1.5, 1.5], [-1.0, -2.0], [0.4, 0.9], [1.7, -1.6]])
five[3] *= d_length / five[3].norm()  # D
one_length = 2 * five / five.norm(dim=1, keepdim=True)
plane = scores.grid()  # queries all over the square from −3 to 3
won = {
    "−½‖q − k‖²": (five, (plane @ five.T - five.square().sum(dim=1) / 2).argmax(dim=1)),
    "q · k": (five, (plane @ five.T).argmax(dim=1)),
    "q · k, keys of one length": (one_length, (plane @ one_length.T).argmax(dim=1)),
}
scores.show_winners(won)

# %% [markdown]
# By distance each key has a **cell** around it.
# By dot product the regions are **wedges**, because only the query's direction decides who wins, and D wins nowhere: its score is an average of the others' scores, and an average is never the largest.
# Make D longer with the marked number: when does it get its first query?
#
# ### Exercise 1 · A Gaussian without differences
#
# *bug · 8 minutes*
#
# Forming $q-k$ for all pairs takes an array (n, m, d); by the formula above, one matrix product and a correction are enough.
# Here the three keys are their own queries, at distance 0 to themselves, so that the largest weight of each row must stand on the diagonal.
# In the function below it does not.
# Find the mistake, and write `fixed_gaussian_weights`, with one matrix product and no function for distances.


# %%
def buggy_gaussian_weights(queries, keys):
    half_norms = keys.square().sum(dim=-1, keepdim=True) / 2
    return (queries @ keys.T - half_norms).softmax(dim=-1)


pd.DataFrame(buggy_gaussian_weights(keys, keys), shown_keys, shown_keys).round(2)


# %% tags=["exercise", "bug"]
def fixed_gaussian_weights(queries, keys):
    """(n, d), (m, d) → (n, m): softmax of −½‖q − k‖² over the keys."""
    ...  # to play with: fixed_gaussian_weights(keys, keys)


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_gaussian_weights(fixed_gaussian_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_gaussian_weights_solution(queries, keys):
    """keepdim made a column, (m, 1): one number a row, which the softmax does not see. It was a plain q·k."""
    half_norms = keys.square().sum(dim=-1) / 2  # (m,): one number a column
    return (queries @ keys.T - half_norms).softmax(dim=-1)


cu.checks.fixed_gaussian_weights(fixed_gaussian_weights_solution)

# %% [markdown]
# ## Why divide by √d?
#
# Vectors also get longer by having more features.
# Begin with a pencil: all coordinates are +1 or −1, all combinations equally likely.
# For $d=2$ the dot product is $-2$, $0$, $0$ or $2$, and its mean square $(4+0+0+4)/4 = 2$.
# The reason holds for all coordinates that are independent, with mean 0 and variance 1: each product $q_jk_j$ has mean 0 and variance 1, a dot product adds $d$ of them, and variances of independent terms add up:
#
# $$\mathrm E[q\cdot k] = 0,\qquad \mathrm{Var}[q\cdot k] = d .$$

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Normal vectors with d = 1024: what is a typical size of q·k (the root of its mean square)?",
    (0, 1100),
    answer=32,
    wrong={
        "less": "Each of 1,024 products is about ±1. How far from 0 does their sum get?",
        "more": "The signs differ, and most of the products cancel. What is the variance of their sum?",
        1024: "This is the variance. A typical size is its root.",
    },
    why="The variance of the sum is 1,024, and its root is 32.",
    within=6,
)

# %%
pairs = 4000  # try 500 … 8000
dims = [2**power for power in range(11)]  # 1, 2, 4, …, 1024
dots, sizes = {}, {}
for d in dims:
    q, k = torch.randn(2, pairs, d)
    dots[d] = (q * k).sum(dim=1)
    sizes[d] = {
        "variance of q·k": dots[d].var(),
        "typical size": dots[d].square().mean().sqrt(),
        "variance of q·k/√d": (dots[d] / math.sqrt(d)).var(),
    }
measured = pd.DataFrame(sizes).T.astype(float).rename_axis("d")
measured.loc[[1, 4, 16, 64, 256, 1024]].round(2)

# %% [markdown]
# The division by $\sqrt d$ keeps the variance near 1.
# This is [scaled dot-product attention](C_glossary.ipynb#scaled-dot-product-attention) (Vaswani et al., 2017):
#
# $$a(q,k) = \frac{q\cdot k}{\sqrt d} .$$
#
# ### The whole of it
#
# Between *scale* and *normalize* a step is missing: a mask, the subject of the next chapter.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    Q      K      V
    score  score  .
    scale  scale  .
    norm   norm   .
    A      A      .
    mix    mix    mix
    O      O      O
    """,
    nodes={
        "Q": cu.Cells(2, 4, "queries", shape="(n, d)", color="query"),
        "K": cu.Cells(3, 4, "keys", shape="(m, d)", color="key"),
        "V": cu.Cells(3, 2, "values", shape="(m, d_v)", color="value"),
        "score": cu.Box("score: each query times each key", shape="(n, m)"),
        "scale": cu.Box("scale: divide by √d"),
        "norm": cu.Box("normalize: softmax over the keys"),
        "A": cu.Cells(2, 3, "weights", shape="(n, m)", color="wash"),
        "mix": cu.Box("mix: weights times values"),
        "O": cu.Cells(2, 2, "outputs", shape="(n, d_v)", color="value"),
    },
    arrows=["Q, K -> score -> scale -> norm -> A -> mix -> O", "V -> mix"],
    alt="Scaled dot-product attention: n queries and m keys of d numbers give n times m scores; these "
    "are divided by the root of d and normalized by a softmax over the keys; the weights mix the m values "
    "to n outputs.",
    gap=(26, 18),
)  # fmt: skip

# %%
features = 64  # try 1 … 256


def attention(queries, keys, values):
    """(…, n, d), (…, m, d), (…, m, d_v) → (…, n, d_v)."""
    scores = queries @ keys.transpose(-2, -1)  # score
    scores = scores / math.sqrt(queries.shape[-1])  # scale
    weights = scores.softmax(dim=-1)  # normalize
    return weights @ values  # mix


inputs = torch.randn(2, 3, features), torch.randn(2, 5, features), torch.randn(2, 5, 7)
cu.equal(attention, F.scaled_dot_product_attention, *inputs)

# %% [markdown]
# The place of the divisor matters: $\mathrm{softmax}(QK^\top)/\sqrt d\;V$ looks almost the same.
# By hand, with $d=64$ and the scores 8 and 0: before the softmax we get softmax(1, 0) = (0.73, 0.27); after it, (0.9997, 0.0003)/8, which is as hard a choice as without any divisor, only eight times smaller.

# %% jupyter={"source_hidden": true}
cu.quiz("scoring_functions", "longer", "after")

# %% [markdown]
# ## What large scores do
#
# How spread out are weights?
# Their [entropy](C_glossary.ipynb#entropy) $-\sum_i\alpha_i\log_2\alpha_i$ says it in bits: 0 if one key has all the weight, $\log_2 m$ if $m$ keys share equally.
# Four random queries and six keys: move $d$ to the right, then tick the box, then multiply the queries by 16.

# %% jupyter={"source_hidden": true}
cu.explore.dot_products()

# %% [markdown]
# Large scores put nearly all weight on one key; the box undoes it, and long queries undo the box.
#
# For a head that is to *learn*, this is bad news.
# At the start that key is a random one, and mostly wrong.
# If the score $a$ of the right key rises a little, its weight $\alpha$ rises with the slope $\alpha(1-\alpha)$.
# For 0.3 this is 0.21, for a millionth it is a millionth: such a list teaches nothing about its right key.
# In how many lists is the slope at least 0.001, before any training?

# %%
enough = 0.001  # try 0.0001 … 0.002
alive = {}
for m in (4, 16, 64, 256):
    for size in (4, 16, 64, 256):
        asking, offered = torch.randn(300, 1, size), torch.randn(300, m, size)
        for divisor, s in {"√d": 1 / math.sqrt(size), "nothing": 1.0}.items():
            alpha = (s * asking @ offered.mT).softmax(dim=-1)  # (300, 1, m)
            own = alpha[:, 0, 0] * (1 - alpha[:, 0, 0])  # of the first key
            alive[divisor, m, size] = (own >= enough).float().mean().item()
table = pd.Series(alive).unstack().loc[["√d", "nothing"]].round(2)
table.rename_axis(["divided by", "keys"])

# %% [markdown]
# There is the length of the list.
# With 64 numbers and 4 keys a third of the lists still teaches something; with 64 keys nearly none does, since the right key is so rarely near the top.
# With the divisor nearly all do (for 256 keys the weights themselves are that small).
#
# One often reads that large scores make *all* gradients small.
# With many keys the query's is even [larger than with the divisor](03_scoring_functions_further.ipynb#The-gradients,-derived): the few keys at the top make much noise, and the right one is silent.
#
# ### The head of the first picture
#
# A head *learns* what to ask: a word $x$ becomes the query $xW_Q$ and the key $xW_K$ (*project*), with two matrices that training changes.
# A third one, $W_O$, turns values into scores of the ten digits.


# %%
class Head(nn.Module):
    """One head: 64 fixed words as queries and keys, 10 fixed digits as values."""

    def __init__(self, d, scale):
        super().__init__()
        self.words, self.digits = torch.randn(64, d), torch.randn(10, d)
        self.W_Q = nn.Parameter(torch.randn(d, d) / math.sqrt(d))
        self.W_K = nn.Parameter(torch.randn(d, d) / math.sqrt(d))
        self.W_O = nn.Parameter(torch.randn(d, 10) / math.sqrt(d))
        self.scale = scale

    def forward(self, asked, listed, said):
        """Places of words (b,), (b, m) and digits (b, m) → scores of digits (b, 10)."""
        queries, keys = self.words @ self.W_Q, self.words @ self.W_K  # project
        scores = self.scale * queries @ keys.T  # score and scale: each word with each
        weights = scores[asked[:, None], listed].softmax(dim=-1)  # (b, m): normalize
        values = (self.digits @ self.W_O)[said]  # (b, m, 10)
        return (weights[:, None] @ values).squeeze(1)  # mix


# %%
def draw_lists(count, m, generator):
    """Lists of m different words and their digits; the first word is asked for."""
    listed = torch.rand(count, 64, generator=generator).argsort(dim=1)[:, :m]
    said = torch.randint(10, (count, m), generator=generator)
    return listed[:, 0], listed, said, said[:, 0]


def share_right(head, asked, listed, said, wanted):
    with torch.no_grad():
        return (head(asked, listed, said).argmax(dim=1) == wanted).float().mean().item()


def train(head, m, rate, seed=0, steps=500):
    """Points [step, share right on 500 other lists]; ends early when all are right."""
    lists, curve = torch.Generator().manual_seed(seed), []
    validation = draw_lists(500, m, torch.Generator().manual_seed(1000))
    adam = torch.optim.Adam(head.parameters(), lr=rate)
    for step in range(steps + 1):
        if step % 50 == 0:
            curve.append([step, share_right(head, *validation)])
            if curve[-1][1] == 1:
                break
        *given, wanted = draw_lists(64, m, lists)
        loss = F.cross_entropy(head(*given), wanted)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return curve


# %%
words_listed = 16  # try 4 | 16 | 64
rate = 0.001  # try 0.0003 … 0.003
learned = {}
for divisor, scale in {"√d": 1 / math.sqrt(256), "nothing": 1.0}.items():
    torch.manual_seed(0)
    learned[divisor] = train(Head(256, scale), words_listed, rate, steps=300)
trainings.show_learning(learned)

# %% [markdown]
# With the divisor the head is done at once; without it, it crawls.
# Try 64 words, and other rates.
# So it is by plain gradient descent, without [Adam](C_glossary.ipynb#adam): with 64 words of 64 numbers all are right, and without the divisor at most 0.43.
#
# What counts is the size of the scores when training begins: with $W_Q$ and $W_K$ smaller by $d^{1/4}$ each, and no divisor, the head learns lists of 64, too (the triangles above).
#
# ## Additive scores
#
# The score with which translation learned to attend (Bahdanau et al., 2015) takes query and key to $h$ hidden units, *adds*, applies tanh (a smooth step from −1 to 1), and multiplies by $w$.
# With rows,
#
# $$a(q,k) = \tanh(qW_Q + kW_K)\cdot w,\qquad W_Q\in\mathbb R^{d_q\times h},\ W_K\in\mathbb R^{d_k\times h},\ w\in\mathbb R^h .$$
#
# Queries and keys may differ in size.
# By hand, with $d_q=1$, $d_k=2$, $h=2$: let $W_Q = (1\ \ 0)$, $W_K = \begin{pmatrix}0&1\\1&0\end{pmatrix}$, $w=(1,-1)$ and $q = 0.5$.
#
# | key | $qW_Q$ | $kW_K$ | sum | tanh of it | score |
# |---|---|---|---|---|---|
# | (1, −0.5) | (0.5, 0) | (−0.5, 1) | (0, 1) | (0, 0.76) | **−0.76** |
# | (0, 0.5) | (0.5, 0) | (0.5, 0) | (1, 0) | (0.76, 0) | **0.76** |
#
# ### Exercise 2 · All pairs at once
#
# *build · 10 minutes*
#
# Write it for all pairs, without a loop: every row of $QW_Q$ has to meet every row of $KW_K$, so that the sum has the axes (queries, keys, hidden units).
# A [batch](C_glossary.ipynb#batch) may stand in front.
# Once it passes, the chapter goes on with your function.


# %% tags=["exercise", "build"]
def my_additive_scores(queries, keys, w_q, w_k, w):
    """(…, n, d_q), (…, m, d_k), (d_q, h), (d_k, h), (h,) → (…, n, m)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_additive_scores(my_additive_scores)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_additive_scores_solution(queries, keys, w_q, w_k, w):
    """(…, n, 1, h) and (…, 1, m, h) broadcast to (…, n, m, h); the product with w removes the last axis."""
    added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)
    return added.tanh() @ w


cu.checks.my_additive_scores(my_additive_scores_solution)

# %% [markdown]
# ### What no dot product can prefer
#
# D won nowhere, and no $W_Q$ and $W_K$ would help it: $kW_K$ is linear, so D stays an average of the others.
# Is there an additive score for which D wins?
# Two steps make a hump, $\tanh(x+1)-\tanh(x-1)$, which is highest at $x=0$.
# Take $x = k_1-q_1$ for one pair of units and $x = k_2-q_2$ for another; a coordinate that is always 1 supplies the $\pm1$.

# %%
additive = cu.choose(my_additive_scores, scores.additive_scores)
shift = 1.0  # try 0.5 … 2.0
step_K = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [shift, -shift, shift, -shift]])
step_Q = torch.tensor([[-1.0, -1, 0, 0], [0, 0, -1, -1], [0, 0, 0, 0]])
up_down = torch.tensor([1.0, -1, 1, -1])
plane_1, five_1 = (F.pad(points, (0, 1), value=1.0) for points in (plane, five))
humps = additive(plane_1, five_1, step_Q, step_K, up_down)
additive_won = {
    "q · k": won["q · k"],
    "additive, four units": (five, humps.argmax(dim=1)),
}
scores.show_winners(additive_won)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With √d nearly all digits are right after 500 steps, and without it long lists of long words are not."
):
    share = chosen.set_index(["divided_by", "d", "keys", "steps"])["test"]
    assert share["√d"].min() > 0.97
    assert share["nothing", 16, 4, 500] > 0.97
    longer_trained = [share["nothing", 64, 64, steps] for steps in (500, 2000, 8000)]
    assert longer_trained[0] < 0.3 < longer_trained[1] < 0.6 < longer_trained[2] < 0.95
    assert share["nothing", 256, 64].max() < 0.3
    assert share["nothing", 256, 16, 500] < 0.95
    assert share["nothing, small start"].min() > 0.97

with cu.guard(
    "Half a cookie has the direction of a whole one, but half its score, so it gets another weight."
):
    cookie, half_cookie = tastes.loc["cookie"], tastes.loc["half a cookie"]
    assert abs(cookie["cos θ"] - half_cookie["cos θ"]) < 1e-6
    assert cookie["score"] == 2 * half_cookie["score"]
    ratio = math.exp(-half_cookie["score"])  # the scores differ by this much
    assert abs(half_cookie["weight"] - ratio * cookie["weight"]) < 1e-6
    assert cookie["score"] == 0 or half_cookie["weight"] != cookie["weight"] / 2

with cu.guard(
    "A query's length acts as an inverse temperature and a key's length as a prior, and D never wins."
):
    warmth = 1 / torch.tensor(factors)[:, None]
    assert (stretched - (dishes @ guest / warmth).softmax(dim=1)).abs().max() < 1e-5
    gap = terms.loc["α by q·k"] - terms.loc["α by distance × prior, / sum"]
    assert gap.abs().max() < 1e-6
    wins = {rule: winner.bincount(minlength=5) for rule, (_, winner) in won.items()}
    assert (d_length > 1.32 or wins["q · k"][3] == 0) and (wins["−½‖q − k‖²"] > 0).all()
    assert (wins["q · k, keys of one length"] > 0).all()

with cu.guard("The variance of a dot product is d, and the division by √d makes it 1."):
    assert ((measured["variance of q·k"] / measured.index).sub(1).abs() < 0.2).all()
    assert ((measured["variance of q·k/√d"] - 1).abs() < 0.2).all()

with cu.guard("Without √d the right key of a long list mostly stays silent."):
    assert min(alive["√d", m, 64] for m in (4, 16, 64)) > 0.9
    assert alive["nothing", 64, 64] < 0.2 < alive["nothing", 4, 64]
    assert learned["√d"][-1][1] > learned["nothing"][-1][1]
    by_descent = cu.stored_runs("scoring_functions", "by_gradient_descent", highest="validation")
    by_descent = [(run.config["divided_by"], run.result["test"]) for run in by_descent]
    assert min(right for divisor, right in by_descent if divisor == "√d") > 0.97
    assert max(right for divisor, right in by_descent if divisor == "nothing") < 0.6

with cu.guard("No dot product prefers D, but an additive score does."):
    preferred = additive_won["additive, four units"][1].bincount(minlength=5)
    assert (preferred > 0).all() and (d_length > 1.32 or wins["q · k"][3] == 0)
    mine = additive(five_1, five_1, step_Q, step_K, up_down)
    assert (mine.argmax(dim=1) == torch.arange(5)).all()

# %% [markdown]
# Each key has a place of its own again: an additive score *can* prefer what lies in the middle, because it bends.
# But it keeps $h$ numbers for each *pair* of query and key, a dot product one; and a transformer has layers that bend between its attentions.
#
# **The tanh is essential.**
# Without it the score is $qW_Q\cdot w + kW_K\cdot w$; the first term is the same for all keys, and every query gets the same weights.
#
# ## Take-aways
#
# - A dot product rewards agreement, times both lengths: a longer query is a lower temperature, a longer key a larger prior weight, $e^{\lVert k\rVert^2/2}$.
# - For independent features with variance 1, $q\cdot k$ has variance $d$, and $1/\sqrt d$, *before* the softmax, makes it 1; without it the right key of a long list is silent, and the head learns slowly or not at all.
# - An additive score can prefer a key in the middle, which no dot product can, and keeps a hidden layer for each pair.
#
# Next: [Masks](04_masks.ipynb), which say which keys a query may use.
# For layer norm, exp(q·k) as a kernel, gradients in detail, initialization, memory and seconds there is a further page: [Scoring functions: norms, kernels and gradients](03_scoring_functions_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("scoring_functions")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. & Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   The tanh formula is in appendix A.1.2; the name "additive" is later.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2.1: scaled dot-product attention.
