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
# **A transformer multiplies a query by a key, and divides the result by $\sqrt d$.
# Why multiply, and how can so small a divisor matter?**
#
# Let's give two small networks a memory test.
# In a list, each word has a digit.
# A **head**, a single attention layer with learned matrices, is asked for the digit of one of the words.
# To the heads a word is a vector of $d = 256$ numbers.
# Only one of the heads divides its scores by $\sqrt d = 16$.
# Move the slider to longer lists.
# What happens to the two curves?

# %% [markdown] tags=["paths"]
# On the path to a real model and to images: [A dot product is a match](#A-dot-product-is-a-match), *Why divide by √d?*.
# On the path to translation: [A dot product is a match](#A-dot-product-is-a-match), [Long queries, long keys](#Long-queries,-long-keys), *Why divide by √d?*, [Additive scores](#Additive-scores).

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.scoring_functions import scores, trainings
from course_utils.lessons.scoring_functions.trainings import WORDS

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.longer_lists()

# %% [markdown]
# With the divisor even the longest list is learned quickly.
# Without it, each doubling of the list lowers the **accuracy**, the share of digits that the head gets right, measured here after 500 steps.
# With 64 words the head without the divisor is still guessing at the end, although we gave each head its best [learning rate](C_glossary.ipynb#learning-rate) (the size of a step).
# But what does $\sqrt d$ have to do with the *length of a list*?

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - say with a pencil what a dot product rewards, and what longer vectors do to the weights;
# - write scaled dot-product attention, and explain the two things that $\sqrt d$ does for learning;
# - name what an additive score can do and a dot product can't.

# %% [markdown] tags=["needs"]
# You will need [Queries, keys and values](01_queries_keys_values.ipynb), for the softmax and its temperature.

# %% jupyter={"source_hidden": true}
cu.recall("start_here", "queries_keys_values")

# %% [markdown]
# ## A dot product is a match
#
# A guest sits down at a table with five dishes.
# Three numbers say how sweet, how hot and how crunchy a dish is.
# A negative number means the opposite, such as mild instead of hot.
# The guest has three such numbers, too: positive for what he likes, negative for what he dislikes.
# Multiply feature by feature and add up, and you have the **dot product** of the query $q$ (the guest) and a key $k$ (a dish):
#
# $$q\cdot k = \sum_{j=0}^{d-1} q_j k_j .$$

# %%
sweet = 2.0  # try -2.0 … 2.0
hot = -1.0  # try -2.0 … 2.0
guest = torch.tensor([sweet, hot, 1.0])  # the query
names = ["pancake", "chili", "cookie", "half a cookie", "bread"]
dishes = torch.tensor([[1, 0, 0], [-1, 2, 0], [2, 0, 2], [1, 0, 1], [0, 0, 0.0]])
products = [f"{feature}: q × k" for feature in ("sweet", "hot", "crunchy")]
tastes = pd.DataFrame(guest * dishes + 0.0, names, products)
tastes["score"] = tastes.sum(axis=1)
tastes["weight"] = (dishes @ guest).softmax(dim=0)
tastes.round(2)

# %% [markdown]
# Where guest and dish agree, the product is positive.
# Where they differ, it is negative, and chili gets $-2-2=-4$ from a guest who is its opposite.
# Half a cookie points in the same direction as a whole one, but it is half as long and gets half the score.
# Change the two marked numbers until chili wins.
#
# In one formula, $q\cdot k = \lVert q\rVert\,\lVert k\rVert\cos\theta$, where $\theta$ is the angle between the two vectors.
# A dot product rewards the same *direction*, and multiplies by both *lengths*.
# The scores of a longer query are further apart, so it chooses more clearly.

# %% [markdown]
# ## Long queries, long keys
#
# A second guest has the same taste, only three times as strong.
# How much more clearly does she choose?

# %%
stretch = 3.0  # try 0.1 … 10.0
times = (0.1, 1.0, stretch)
stretched = {f"{c:g} · guest": (c * dishes @ guest).softmax(dim=0) for c in times}
pd.DataFrame(stretched, names).T.round(3)

# %% [markdown]
# The second guest makes the same choice, with hardly a doubt.
# Since $\mathrm{softmax}(c\,q\cdot k)$ is the softmax at the [temperature](C_glossary.ipynb#temperature) $1/c$, **the length of a query is an inverse temperature**.
# The query's direction says *who* wins, and its length *how clearly*.
#
# ### Exercise 1 · A guest for each dish
#
# *build · 6 minutes*
#
# For each dish, invite a guest who gives it a weight of 0.9 or more.
# One dish can't be anybody's favorite.
# Give it `None`, and think about the reason.


# %% tags=["exercise", "build"]
def my_guests():
    """A dict from each of the five dishes to its guest, three numbers, or to None."""
    return ...  # such as {"pancake": [1.0, 0.0, 0.0], "chili": …}


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_guests(my_guests)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_guests_solution():
    """The direction makes a dish win, and the length makes it win clearly."""
    return {
        "pancake": [5.0, 0.0, -5.0],  # sweet, and nothing that crunches
        "chili": [0.0, 5.0, 0.0],
        "cookie": [0.0, 0.0, 5.0],
        "half a cookie": None,  # its score is the mean of the scores of cookie and bread
        "bread": [-5.0, -5.0, -5.0],  # whoever likes nothing is left with zeros
    }


cu.checks.my_guests(my_guests_solution)

# %% [markdown]
# Half a cookie is midway between the cookie and the bread.
# Its score is the mean of their scores, and a mean is never the largest.
# The same happens to every key in the middle of others.
# To see it, take each point of a plane as a query, and give it the color of the key that wins: by distance on the left, by dot product on the right.
# D is in the middle of the others.

# %%
d_length = 0.5  # try 0.1 … 3.0
five = torch.tensor([[2.0, 1.0], [-1.5, 1.5], [-1.0, -2.0], [0.4, 0.9], [1.7, -1.6]])
five[3] *= d_length / five[3].norm()  # D
plane = scores.grid()  # queries all over the square from −3 to 3
won = {
    "−½‖q − k‖²": (five, (-torch.cdist(plane, five).square() / 2).argmax(dim=1)),
    "q · k": (five, (plane @ five.T).argmax(dim=1)),
}
scores.show_winners(won)

# %% [markdown]
# By distance each key has a **cell** around it.
# By dot product the regions are **wedges**, because only the query's direction decides who wins.
# D wins nowhere.
# Make D longer with the marked number.
# When does it get its first query?
#
# To see what a key's length does, we multiply the distance out:
#
# $$-\tfrac12\lVert q-k\rVert^2 \;=\; q\cdot k \;-\; \tfrac12\lVert q\rVert^2 \;-\; \tfrac12\lVert k\rVert^2 .$$
#
# The term $\tfrac12\lVert q\rVert^2$ is the same for all keys, and the softmax ignores it.
# Compared with nearness, a dot product adds a bonus $\tfrac12\lVert k\rVert^2$ for long keys, which can be read [as a prior](03_scoring_functions_further.ipynb#A-dot-product-is-nearness-with-a-prior).
# That doesn't make a long key a favorite.
# Our guest gives chili $-4$ and would give half a chili $-2$, because length stretches a score in both directions.
# **A longer key is chosen or refused more clearly.**

# %% jupyter={"source_hidden": true}
cu.quiz("scoring_functions", "longer")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With √d each of the lists is learned, and without it the longer the list, the less."
):
    ends = {divisor: [trainings.best_curve(divisor, m)[-1] for m in (4, 8, 16, 32, 64)]
            for divisor in ("√d", "nothing")}  # fmt: skip
    assert min(ends["√d"]) > 0.99 and ends["nothing"][0] > 0.99 and ends["nothing"][-1] < 0.2
    assert ends["nothing"] == sorted(ends["nothing"], reverse=True)

with cu.guard("Compared with nearness a dot product adds ½‖k‖², and length stretches both signs."):
    bonus = dishes @ guest + torch.cdist(guest[None], dishes)[0].square() / 2
    assert (bonus - bonus[4] - dishes.square().sum(dim=1) / 2).abs().max() < 1e-4
    assert guest.tolist() != [2, -1, 1] or guest @ dishes[1] == -4 < guest @ dishes[1] / 2

with cu.guard(
    "Half a cookie has half the score of a whole one, and a query's length acts as an inverse temperature."
):
    assert tastes.loc["cookie", "score"] == 2 * tastes.loc["half a cookie", "score"]
    cold, warm = stretched[f"{stretch:g} · guest"], 1 / stretch
    assert (cold - (dishes @ guest / warm).softmax(dim=0)).abs().max() < 1e-5

with cu.guard("By distance D has a cell, and by dot product it wins nowhere."):
    wins = {rule: winner.bincount(minlength=5) for rule, (_, winner) in won.items()}
    assert (d_length > 1.32 or wins["q · k"][3] == 0) and (wins["−½‖q − k‖²"] > 0).all()

# %% [markdown]
# ## Why divide by √d?
#
# A dot product adds up $d$ products, one for each feature.
# How large does it get with more and more features?
# Take a pencil, and let each coordinate be $+1$ or $-1$ with equal chances.
# For $d=2$ the dot product is $-2$, $0$, $0$ or $2$, with the mean square $(4+0+0+4)/4 = 2$.
# The root of this mean, 1.4, is a typical size.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Now let d = 1,024. What is a typical size of q·k, the root of its mean square?",
    (0, 1100),
    answer=32,
    wrong={
        "less": "Each of the 1,024 products is 1 or −1. How far from 0 does their sum get?",
        "more": "The signs differ, and most of the products cancel. What is the mean square of their sum?",
        1024: "For this, all products would need the same sign. What happens when half of them cancel the other half?",
    },
    why="Each of the 1,024 products adds 1 to the mean square, and the root of 1,024 is 32.",
    within=6,
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sizes = {}
for d in (1, 4, 16, 64, 256, 1024):
    q, k = torch.randn(2, 4000, d)
    dots = (q * k).sum(dim=1)
    sizes[d] = [dots.var(), dots.square().mean().sqrt(), (dots / math.sqrt(d)).var()]
columns = ["variance of q·k", "typical size", "variance of q·k/√d"]
measured = pd.DataFrame(sizes, columns).T.astype(float).rename_axis("d")
measured.round(2)

# %% [markdown]
# The table uses normal coordinates instead of $\pm1$, and their dot products also grow like $\sqrt d$.
# Take independent coordinates with mean 0 and variance 1.
# Then each product $q_jk_j$ has mean 0 and variance 1, too, and variances of independent terms add up, so
#
# $$\mathrm E[q\cdot k] = 0,\qquad \mathrm{Var}[q\cdot k] = d .$$
#
# If we divide by $\sqrt d$, the variance stays near 1 for any number of features.
#
# Without the divisor and with $d = 256$, a typical score is 16 or −16.
# Two scores easily differ by 20, and a softmax turns this into a ratio of $e^{20}$, half a billion to one.
# Before any training, one key then gets nearly all the weight, and it is a random key.
# The longer the list, the more rarely it is the right key.
# If the right key has almost no weight, the list teaches the head almost nothing.
# **That is where the length of the list comes in**, and [What large scores do to learning](#What-large-scores-do-to-learning) measures it.
#
# And why not divide by $d$, as in a mean?
# Independent terms mostly cancel.
# The scores would shrink to a size of $1/\sqrt d$, and all keys would get nearly the same weight.
# For [aligned vectors](03_scoring_functions_further.ipynb#When-vectors-are-not-independent), where query and key agree in every feature, nothing cancels, and $d$ is right.
#
# ### Scaled dot-product attention
#
# Attention with the score $a(q,k) = q\cdot k/\sqrt d$ is called [scaled dot-product attention](C_glossary.ipynb#scaled-dot-product-attention) ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)).

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

# %% [markdown]
# ### Exercise 2 · Four steps
#
# *build · 6 minutes*
#
# Write the four steps of the picture, for any number of axes in front, such as a [batch](C_glossary.ipynb#batch).


# %% tags=["exercise", "build"]
def my_attention(queries, keys, values):
    """(…, n, d), (…, m, d), (…, m, d_v) → (…, n, d_v)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_attention(my_attention)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_attention_solution(queries, keys, values):
    """(…, n, d), (…, m, d), (…, m, d_v) → (…, n, d_v)."""
    scores = queries @ keys.transpose(-2, -1)  # score
    scores = scores / math.sqrt(queries.shape[-1])  # scale
    weights = scores.softmax(dim=-1)  # normalize
    return weights @ values  # mix


cu.checks.my_attention(my_attention_solution)

# %%
attention = cu.choose(my_attention, cu.scaled_dot_product_attention)
inputs = torch.randn(2, 3, 64), torch.randn(2, 5, 64), torch.randn(2, 5, 7)
cu.equal(attention, F.scaled_dot_product_attention, *inputs)

# %% [markdown]
# We have to divide *before* the softmax.
# With $d=64$ the scores 8 and 0 then give softmax(1, 0) = (0.73, 0.27).
# Dividing after it would give (0.9997, 0.0003)/8, as hard a choice as without any divisor.

# %% jupyter={"source_hidden": true}
cu.quiz("scoring_functions", "after")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The variance of a dot product is d, and the division by √d makes it 1."):
    assert ((measured["variance of q·k"] / measured.index).sub(1).abs() < 0.2).all()
    assert ((measured["variance of q·k/√d"] - 1).abs() < 0.2).all()

# %% [markdown]
# ## What large scores do to learning
#
# Without the divisor one random key gets nearly all the weight.
# How can training raise the weight $\alpha$ of the *right* key?
# If we raise the score of the right key a little, $\alpha$ rises with the slope $\alpha(1-\alpha)$.
# A tiny weight has a tiny slope, so such a list teaches the head next to nothing about its right key.
# We call the right key **silent** if its weight is below 0.001, and count in how many lists it can be heard.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
scales = {"√d": 1 / math.sqrt(256), "nothing": 1.0}
heard = {divisor: {} for divisor in scales}
for m in (4, 8, 16, 32, 64):
    asking, offered = torch.randn(300, 1, 256), torch.randn(300, m, 256)
    for divisor, s in scales.items():
        alpha = (s * asking @ offered.mT).softmax(dim=-1)[:, 0, 0]  # of one key
        heard[divisor][f"{m} words"] = (alpha >= 0.001).float().mean().item()
pd.DataFrame(heard).T.rename(index=trainings.NAMES).round(2)

# %% [markdown]
# Without the divisor the right key is heard only where it happens to be near the top, and less often in a longer list.
#
# Can [Adam](C_glossary.ipynb#adam) help, the optimizer that enlarges small gradients?
# With many keys the query's gradient isn't small at all: it is [larger](03_scoring_functions_further.ipynb#The-gradients,-derived) than with the divisor.
# **The trouble is not the size of this gradient but its subject.**
# It speaks of the one or two keys at the top of each list.
# The right key is rarely among them, so there is hardly anything for Adam to enlarge.
#
# ### The head of the first screen
#
# We build the head, which *learns* what to ask.
# From a word $x$ it makes a query $xW_Q$ and a key $xW_K$, and training changes both matrices.
# A third matrix, $W_O$, turns values into scores of the ten digits, called [logits](C_glossary.ipynb#logits).


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
        """Words by number (b,), (b, m) and digits (b, m) → logits of digits (b, 10)."""
        queries, keys = self.words @ self.W_Q, self.words @ self.W_K  # project
        scores = self.scale * queries @ keys.T  # score and scale: each word with each
        weights = scores[asked[:, None], listed].softmax(dim=-1)  # (b, m): normalize
        values = (self.digits @ self.W_O)[said]  # (b, m, 10)
        return (weights[:, None] @ values).squeeze(1)  # mix


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def draw_lists(count, m, generator):
    """Lists of m different words and their digits; the first word is asked for."""
    listed = torch.rand(count, 64, generator=generator).argsort(dim=1)[:, :m]
    said = torch.randint(10, (count, m), generator=generator)
    return listed[:, 0], listed, said, said[:, 0]


def accuracy(head, asked, listed, said, wanted):
    with torch.no_grad():
        return (head(asked, listed, said).argmax(dim=1) == wanted).float().mean().item()


def train(head, m, rate, seed=0, steps=500):
    """Points [step, accuracy on 500 validation lists]; ends early when all are right."""
    lists, curve = torch.Generator().manual_seed(seed), []
    validation = draw_lists(500, m, torch.Generator().manual_seed(1000))
    adam = torch.optim.Adam(head.parameters(), lr=rate)
    for step in range(steps + 1):
        if step % 50 == 0:
            curve.append([step, accuracy(head, *validation)])
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
heads, learned = {}, {}
for divisor, scale in scales.items():
    torch.manual_seed(0)
    heads[divisor] = Head(256, scale)
    learned[divisor] = train(heads[divisor], words_listed, rate, steps=300)
trainings.show_learning(learned)

# %% [markdown]
# Your machine has just repeated the test from the top of the page.
#
# ### A small start without a divisor
#
# Is it all about the scores at the start?
# Then we could leave out the divisor, and begin with matrices $W_Q$ and $W_K$ that are each smaller by a factor of $d^{1/4} = 4$.
# Our first scores would be as small as with the divisor.
# The steps stay as they are, and [Adam](C_glossary.ipynb#adam) moves each entry of a matrix by about the [learning rate](C_glossary.ipynb#learning-rate), whatever the size of the gradient.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We start a head without the divisor from these small matrices, and train it on 64 words at rates from small to large. Will it learn?",
    [
        "at the same rates as with the divisor",
        "at small rates only",
        "at large rates only",
        "at none of them",
    ],
    answer="at small rates only",
    wrong={
        "at the same rates as with the divisor": "They do start with the same scores. But after one step of the same size, whose scores have moved further?",
        "at large rates only": "Its matrices are small, so you may want to move them far. But what does a step do to a score that isn't divided?",
        "at none of them": "At the start every key is heard, just like with the divisor. What could go wrong later, and how would you prevent it?",
    },
    why="What a step adds to a score isn't divided, either. Here each step moves the scores four times as far as with the divisor, so it takes a smaller rate.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
trainings.by_rate().round(2)

# %% [markdown]
# The table shows accuracies, and the small start helps.
# But at the rate 0.001, where the head with the divisor is still perfect, it fails.
# After ten steps, neither head knows anything yet.
# But the head with the small start hears its right key in fewer than half of the lists, and the head with the divisor in nine out of ten.
# The small start acts like the divisor at four times the rate.
# Its row is about the first row, moved one column to the left.
# The third row turns our test around, with a divisor and matrices larger by $d^{1/4}$.
# There the scores begin as large as without a divisor, and the head learns at none of these rates.
#
# So $\sqrt d$ is an initialization and a learning rate in one.
# **Scores begin small, so every key is heard.
# A step moves them less, so they don't become large at once.**
#
# ### Exercise 3 · Your own list
#
# *build · 8 minutes*
#
# Test our two heads on a list of your own, such as `{"rain": 4, "cat": 7}`.
# A head doesn't know the word *cat*, only its number among the 64 `WORDS`.
# We ask a head with `head(asked, listed, said)`, where `asked` has the shape (1,), and `listed` and `said`, the words and their digits, have the shape (1, m).


# %% tags=["exercise", "build"]
def my_answer(head, digits, asked):
    """The head's digit (int) for the word `asked`; `digits`: word → digit."""
    ...  # WORDS.index("cat") is the number of the cat


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_answer(my_answer)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_answer_solution(head, digits, asked):
    """Each word becomes its number among the 64, and everything gets an axis for the batch."""
    listed = torch.tensor([[WORDS.index(word) for word in digits]])
    said = torch.tensor([list(digits.values())])
    return head(torch.tensor([WORDS.index(asked)]), listed, said).argmax().item()


cu.checks.my_answer(my_answer_solution)

# %% tags=["nbval-ignore-output"]
mine = {"moon": 5, "cat": 8, "pirate": 1, "soup": 3, "kite": 7, "queen": 2, "sand": 9}
answer = cu.choose(my_answer, trainings.answer)
answers = pd.DataFrame([mine], ["the list"])
for divisor, head in heads.items():
    answers.loc[trainings.NAMES[divisor]] = [answer(head, mine, word) for word in mine]
answers

# %% [markdown]
# The head without the divisor misses some words even in this short list.
# Put in other words (`print(WORDS)` shows them all), make the list longer, and see whether the other head fails.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Without √d the right key of a long list mostly stays silent."):
    assert min(heard["√d"].values()) > 0.9
    assert heard["nothing"]["64 words"] < 0.1 < 0.25 < heard["nothing"]["4 words"]
    assert learned["√d"][-1][1] > learned["nothing"][-1][1]

with cu.guard(
    "Whatever the threshold, without √d the right key of a longer list is heard less often."
):
    lists = [(torch.randn(300, 1, 256), torch.randn(300, m, 256)) for m in (4, 16, 64)]
    of_right = [(q @ k.mT).softmax(dim=-1)[:, 0, 0] for q, k in lists]
    for threshold in (1e-2, 1e-4, 1e-6):
        shares = [(a >= threshold).float().mean().item() for a in of_right]
        assert shares[0] > 1.5 * shares[1] > 2 * shares[2]

with cu.guard("Of 64 keys the two at the top share nearly all weight without √d, and not with it."):
    asking, offered = lists[-1]
    top_two = {
        divisor: (s * asking @ offered.mT).softmax(dim=-1).topk(2).values.sum(dim=-1).mean()
        for divisor, s in scales.items()
    }
    assert top_two["√d"] < 0.4 < 0.9 < top_two["nothing"]

with cu.guard(
    "After ten steps a small start without √d hears fewer right keys than the head with the divisor."
):
    asked, listed, *_ = draw_lists(500, 64, torch.Generator().manual_seed(2000))
    still_heard = {}
    for divisor, power in (("√d", 0), ("nothing", -0.25)):
        torch.manual_seed(0)
        begun = Head(256, scales[divisor])
        for matrix in (begun.W_Q, begun.W_K):
            matrix.data *= 256**power
        train(begun, 64, 0.001, steps=9)
        with torch.no_grad():
            asking, offered = begun.words @ begun.W_Q, begun.words @ begun.W_K
            alpha = (begun.scale * asking @ offered.T)[asked[:, None], listed].softmax(-1)[:, 0]
        still_heard[divisor] = (alpha >= 0.001).float().mean()
    assert still_heard["nothing"] < 0.6 < 0.85 < still_heard["√d"]

with cu.guard("A small start without √d learns at small rates only, and a large start at none."):
    table = trainings.by_rate()
    first, small, large, undivided = (table.loc[trainings.NAMES[name]] for name in trainings.NAMES)
    assert small.iloc[:2].min() > 0.99 and small.iloc[2:].max() < 0.3
    assert first.iloc[:3].min() > 0.95 and max(*large, *undivided) < 0.2

# %% [markdown]
# ## Additive scores
#
# The first translator that learned to attend (Bahdanau et al., 2015) computes another score.
# It turns the query and the key into $h$ numbers each, and *adds* them.
# The sums are its **hidden units**.
# Each goes through tanh, a smooth step from −1 to 1.
# The score is the dot product of the results with a vector $w$.
#
# $$a(q,k) = \tanh(qW_Q + kW_K)\cdot w,\qquad W_Q\in\mathbb R^{d_q\times h},\ W_K\in\mathbb R^{d_k\times h},\ w\in\mathbb R^h .$$
#
# An **additive score** is a small network that looks at query and key together, and the two may differ in size.
# What can it do that a dot product can't?
# Remember D, which won nowhere.
# With a dot product, no choice of $W_Q$ and $W_K$ would help D.
# The map $kW_K$ is linear, so D stays an average of the others.
# Here is an additive score with four hidden units, whose weights we chose by hand.

# %%
W_K = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, -1, 1, -1]])  # the last row is a bias
W_Q = torch.tensor([[-1.0, -1, 0, 0], [0, 0, -1, -1], [0, 0, 0, 0]])
w = torch.tensor([1.0, -1, 1, -1])
plane_1, five_1 = (F.pad(points, (0, 1), value=1.0) for points in (plane, five))
hidden = (plane_1 @ W_Q)[:, None] + five_1 @ W_K  # (queries, keys, units)
additive = (hidden.tanh() @ w).argmax(dim=1)
scores.show_winners({"q · k": won["q · k"], "additive, four units": (five, additive)})

# %% [markdown]
# On the right, each key has a region of its own again, because a score that bends can be highest in the middle.
# The further page [derives the weights](03_scoring_functions_further.ipynb#Additive-scores-and-a-matrix-in-between).
# The price is $h$ hidden units for each *pair* of a query and a key.
# A transformer avoids this price, and leaves the bending to the layers between its attention layers.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("No dot product prefers D, but an additive score does."):
    assert (additive.bincount(minlength=5) > 0).all()
    assert d_length > 1.32 or wins["q · k"][3] == 0
    each = ((five_1 @ W_Q)[:, None] + five_1 @ W_K).tanh() @ w
    assert torch.equal(each, scores.additive_scores(five_1, five_1, W_Q, W_K, w))
    assert (each.argmax(dim=1) == torch.arange(5)).all()

# %% [markdown]
# ## Take-aways
#
# - A dot product rewards agreement, times both lengths.
#   A longer query chooses more clearly, as at a lower temperature.
# - With $1/\sqrt d$ *before* the softmax, scores begin small for any number of features.
#   Here the right key of a long list then gets weight, and the head can learn.
# - There are other scores: an [additive score](#Additive-scores), a small network, can prefer a key in the middle of others, which no dot product can.
#
# <details><summary>How sure is this?</summary>
#
# Each number is the mean of three training runs, and each curve was trained at the best of four rates, chosen on other lists.
# All of this is one task with random words.
#
# With 64 words the head without the divisor never beats guessing, even with four times the steps and smaller rates.
# With 16 words four times the steps bring its accuracy from 0.82 to 0.92, so we speak of what is learned in a given time.
#
# None of our rates suits every size in 500 steps.
# On 64 words, a head with the divisor and with vectors of 16 numbers needs a rate of at least 0.003, and at 0.003 the head with 256 numbers already fails.
# [All sizes and rates](03_scoring_functions_further.ipynb#All-sizes-and-rates) shows more.
#
# </details>

# %% [markdown] tags=["next"]
# Next: [Masks](04_masks.ipynb), which say which keys a query may use.
# The path *Kernels* ends here.
# The further page is [Scoring functions: norms, kernels and gradients](03_scoring_functions_further.ipynb).

# %% [markdown]
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
