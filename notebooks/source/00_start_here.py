# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Start here
#
# **When a network translates a sentence, which words does it need?**
# Click the next cell and press **Shift + Enter**; then the same once more.
# A small translator answers you.
# Press its English word *she*.

# %%
import torch

import course_utils as cu
from course_utils.lessons.start_here.translation import forbid, translate
from course_utils.studio.course_map import course_map

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.translator("She has a red car.")

# %% [markdown]
# Without *she*, your daughter has the car: *ta fille*.
# Now write a sentence of your own.
#
# The translator knows 833 English words.
# You train one like it in [Translating](11_translating.ipynb); this one was trained beforehand.
# Go on from cell to cell: half an hour, and some Python, are all that this chapter needs.
#
# ## Ask a translator
#
# For each French word that it writes, the network spreads a total of 1 over the English words: the **[attention weights](C_glossary.ipynb#attention-weights)**.
# It does so in two layers of four **[heads](C_glossary.ipynb#head)** each, the small pictures.
#
# Write *She has a red car.* again, and choose picture *1.0* and the word *une*.
# This head gives *car* 89 % of *une*'s weight.
# That looks wise: in French the noun decides between *un* and *une*.
# Does *une* need it?
# A press on *car* **forbids attention** to it, in all heads.
# But first:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "No French word may attend to “car” any more. Which word loses its probability?",
    ["une", "voiture", "both", "neither"],
    answer="voiture",
    wrong={
        "une": "The head suggests it. Is “car” the only place where the network keeps the gender of the car?",
        "both": "Half right. Is “car” the only place where the network keeps the gender of the car?",
        "neither": "From where would it then know that the red thing is a car?",
    },
    why="“Voiture” loses all: she has a red “actrice”, an actress. “Une” keeps 0.99: the gender does not stand in “car” alone.",
)

# %% [markdown]
# Press *car*, and read the bars of *une* and of the word after it.
# Then run the next cell for the numbers: first the weight on *car* in that head, then the probability of each French word.

# %% tags=["hide-output"] jupyter={"outputs_hidden": true}
sentence = "She has a red car."  # try "She has a red car." | "my mother is tired"
word = "car"  # try "car" | "a" | "dress"
table = forbid(sentence, word)
table

# %% [markdown]
# Not only French words attend to *car*.
# Before any French is written, the English words attend to each other, in the encoder: *a* has read *car*.
# Forbid that, too, by the box below the sentence: *un* and *une* are almost even.
# If *a* alone may read *car* there, *une* has 0.97.
# (To forbid *a* proves nothing: *une* falls, but *de* rises, not *un*.)
#
# **A weight shows where a network looks.
# What it needs, you learn by taking it away.**

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "“The little girl eats the red apple.” The translator has never read “little”. What French does it write in its place?",
    ["petite, which is right", "nothing: it leaves the word out", "another adjective"],
    answer="another adjective",
    wrong={
        "petite, which is right": "From what could it tell that “little” is not “old”? All unknown words come to it as one sign.",
        "nothing: it leaves the word out": "It sees that a word stands there. What mostly stands between “the” and a noun?",
    },
    why="It reads <unk> between “the” and “girl”, where adjectives stand, and writes one: “timide”, shy. "
    "(And the apple becomes a church, though it has read “apple”.)",
)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without car, une keeps its probability and voiture loses it; une falls when the encoder may not read car, either.",
    given=(sentence, word) == ("She has a red car.", "car"),
):
    assert table.loc["une", "weight on car"] > 0.85 and table.loc["une", "car forbidden"] > 0.95
    assert table.loc["voiture", "all allowed"] > 0.95 > 0.05 > table.loc["voiture", "car forbidden"]
    assert translate(sentence, word).says[3] == "actrice" and table.loc["une"].iloc[-1] < 0.65
    assert translate(sentence, "she").says[:2] == ["ta", "fille"]
    french = translate(sentence).says
    all_but_a = "she has red car ."
    assert translate(sentence, word, encoder=all_but_a, says=french).probabilities[2] > 0.95
    in_place = [says if says != "une" else "un" for says in french]
    without_a = [translate(sentence, "a", says=said) for said in (french, in_place)]
    assert max(each.probabilities[2] for each in without_a) < 0.1

# %% [markdown]
# Ask it.
# It is often wrong, and its weights do not show it: *She found a key and hid it* becomes *she ate it*, with most of the weight on *hid*.
#
# ### Exercise 1 · Forbid one word
#
# *predict · 2 minutes*
#
# Which **one** English word must you forbid, so that
#
# - (a) *I don't like the small house.* says the opposite?
# - (b) *Where is my book?* asks for somebody else's book?
# - (c) *The old woman is sleeping.* is about a man?
#
# Write three words in the place of the dots, run the cell, then the **check** below it.
# (More hints: `cu.checks.one_word.hint()`, in a new cell.
# If your notebook has a solution, it is folded.)


# %% tags=["exercise", "predict"]
def one_word():
    """Three English words, for (a) to (c)."""
    return ...  # such as ["small", "where", "old"]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.one_word(one_word)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def one_word_solution():
    """(a) j'aime la petite maison. (b) où est son livre ? (c) le vieil vieux dort: an old old one."""
    return ["don't", "my", "woman"]


cu.checks.one_word(one_word_solution)

# %% [markdown]
# ## Read a map of weights, and use it
#
# A **[query](C_glossary.ipynb#query-key-value)** asks, above a French word; **keys** are what it may attend to, above English words; each key hands on a **value**.
# A map of weights has a row for each query and a column for each key.
#
# Each query gets the average of the values, with the weights of its row.
# For all queries at once this is one product of matrices.
# By hand, for the first: $0.6\cdot 5 + 0.2\cdot 20 + 0.2\cdot 0 = 7$.

# %%
weights = torch.tensor([[0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
last = 0.0  # try -50.0 … 50.0
values = torch.tensor([[5.0], [20.0], [last]])
answers = weights @ values

# %% tags=["hide-input"] jupyter={"source_hidden": true}
tensors = {
    name: cu.Cells(*it.shape, name, shape=f"{tuple(it.shape)}", values=it, color=color)
    for name, it, color in [
        ("weights", weights, "key"),
        ("values", values, "value"),
        ("answers", answers, "value"),
    ]
}
cu.Drawing(
    "weights at values equals answers",
    nodes={**tensors, "at": cu.Note("@"), "equals": cu.Note("=")},
    alt="Weights, 2 by 3, times a column of three values: a column of two answers.",
    gap=(14, 20),
)

# %% [markdown]
# In the translator the values are vectors; the step is the same.
# (`# try` marks what you may change: each value of the range works.)
#
# Maps are drawn dark for much.
# How much, says the bar: here are 36 weights near 1/6, with a little noise, drawn twice.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
noise = 0.1
generator = torch.Generator().manual_seed(0)
faint = (noise * torch.randn(6, 6, generator=generator)).softmax(dim=-1)
low, high = faint.min().item(), faint.max().item()
fig, (own, common) = cu.subplots(
    1, 2, width=7.0, height=2.8,
    alt=f"The same six by six weights twice. Left, on a scale from {low:.2f} to {high:.2f}, a strong "
    "pattern from white to dark blue. Right, on the scale from 0 to 1, much paler.",
)  # fmt: skip
own_map = cu.heatmap(own, faint, title="scale of its own", vmin=low, vmax=high)
common_map = cu.heatmap(common, faint, title="scale from 0 to 1", ylabel=None)
fig.colorbar(own_map, ax=own, format="%.2f")
fig.colorbar(common_map, ax=common)
fig

# %% [markdown]
# On the left, noise looks like knowledge.

# %% jupyter={"source_hidden": true}
cu.quiz("start_here", "rows_of_map")

# %% [markdown]
# ### Exercise 2 · Forbid a key
#
# *build · 3 minutes*
#
# A forbidden key has the weight 0, and each row is divided by its sum, so that it sums to 1 again.
# Finish the function.
# (`kept.sum(dim=1, keepdim=True)` has the sum of each row, one below the other.)


# %% tags=["exercise", "build"]
def answers_without(weights, values, key):
    """The answers when no query may attend to the key of this number."""
    kept = weights.clone()
    kept[:, key] = 0
    return ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.answers_without(answers_without)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def answers_without_solution(weights, values, key):
    """Key 0 forbidden, the first row is (0, ½, ½) and gets ½ · 20 + ½ · 0 = 10."""
    kept = weights.clone()
    kept[:, key] = 0
    return kept / kept.sum(dim=1, keepdim=True) @ values


cu.checks.answers_without(answers_without_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The first query gets 7; the faint weights are near 1/6.", given=last == 0):
    assert abs(answers[0].item() - 7) < 1e-5
    assert 0.12 < low < high < 0.22

# %% [markdown]
# ## The first slider
#
# Weights come from **scores**: any numbers, the larger the better.
# Take the exponential of each, and divide by the sum: the **[softmax](C_glossary.ipynb#softmax)**.
# Does the bird ever get all the weight?

# %% jupyter={"source_hidden": true}
cu.explore.first_slider()

# %% [markdown]
# It comes near to 1, and never reaches it.
# Cat and dog shrink together: their ratio stays.
#
# ## Ways through the course
#
# A line is a part of the course, a station a chapter; you need not do it all.
# Hours are estimates, for a reader who does everything.

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
course_map()

# %% [markdown]
#
# ## Take-aways
#
# - A row of weights belongs to one query, and sums to 1.
#   Its query gets the average of the values: `weights @ values`.
# - A softmax makes weights from scores.
# - A weight shows where a network looks.
#   What it needs shows when you forbid it.
#
# Next: [Queries, keys and values](01_queries_keys_values.ipynb), where weights come from.
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("start_here")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   The kind of network that translates above.
# - Geva, M. et al. (2023).
#   [Dissecting recall of factual associations in auto-regressive language models](https://arxiv.org/abs/2304.14767).
#   EMNLP.
#   Attention that is forbidden to see what it carried.
# - Okabe, M. and Ito, K. (2008).
#   [Color Universal Design](https://jfly.uni-koeln.de/color/).
#   Our colors are adapted from theirs.
