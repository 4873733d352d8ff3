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
# Let's ask a small translator.
# In the book it is already awake.
# In JupyterLab, wake it: click the next cell, and press **Shift + Enter** twice.
# Then press the English word *she*.

# %%
import torch

import course_utils as cu
from course_utils.lessons.start_here.translation import forbid, translate
from course_utils.studio.course_map import course_map

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.translator("She has a red car.")

# %% [markdown]
# Now no French word may attend to *she*, and the translator writes *ta fille*, your daughter.
# Write a sentence of your own, in simple words, because the translator knows only 833 of them.
# The translator was trained beforehand, and you will train one like it in [Translating](11_translating.ipynb).

# %% [markdown] tags=["needs"]
# You need only some Python for this chapter.

# %% [markdown]
# ## Ask a translator
#
# The translator is a **network**, a long formula whose many numbers were found by *training* on pairs of sentences.
# This kind of network is called a **[Transformer](C_glossary.ipynb#transformer)**, and it is built around attention.
# One part, the **[encoder](C_glossary.ipynb#encoder-and-decoder)**, reads the English.
# Another, the **decoder**, writes the French, and always chooses the word that it finds most probable (the box *Search* calls this *greedy*).
# For each French word, the decoder spreads a total of 1 over the English words, and these shares are the word's **[attention weights](C_glossary.ipynb#attention-weights)**.
# Attention from one sentence to another is called *[cross-attention](C_glossary.ipynb#cross-attention)*.
# The decoder does so eight times, in two [layers](C_glossary.ipynb#layer), one after the other, with four **[heads](C_glossary.ipynb#head)** side by side in each.
# Each small picture shows one head, and *end*, in the table below `<eos>`, marks the end of a sentence.
# We count from 0, so *layer 1, head 0* is the first head of the second layer.
#
# Write *She has a red car.* again, and choose the picture *layer 1, head 0* and the word *une*.
# This head gives *car* 89% of *une*'s weight.
# That looks wise, because in French the noun decides between *un* and *une*.
# To test what a word needs, we **forbid** attention to another word.
# The literature calls this *attention knockout*.
# When you press *car*, no French word may attend to it in any of the heads.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "If no French word may attend to “car” any more, which word loses its probability?",
    ["une", "voiture", "both", "neither"],
    answer="voiture",
    wrong={
        "une": "The head suggests it. Is “car” the only place where the network keeps the gender of the car?",
        "both": "Half right. Is “car” the only place where the network keeps the gender of the car?",
        "neither": "How would it then know that the red thing is a car?",
    },
    why="“Voiture” loses nearly all of it, and she has a red “actrice”, an actress. “Une” keeps 0.99, so the network also "
    "gets the gender of the car from somewhere else.",
)

# %% [markdown]
# Now press *car*, and read the bars of *une* and of the word after it.
# The next cell makes a table of four columns.
# The first is the weight on *car* in that head.
# The other three are the probability of the French word, given the words before it: with all attention allowed, with *car* forbidden, and with *car* forbidden *in the encoder as well*, where the English words attend to each other.

# %% tags=["hide-output"] jupyter={"outputs_hidden": true}
sentence = "She has a red car."  # try "She has a red car." | "my mother is tired"
word = "car"  # try "car" | "a" | "red"
table = forbid(sentence, word)
table

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "If no French word may attend to car, voiture loses its probability and une keeps its own, until the encoder may not read car either. Forbidding *has*, on which une has more weight, changes hardly anything.",
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
    on_car, on_has = (translate(sentence).cross[:, :, 2, i].mean() for i in (4, 1))
    assert on_has > 0.3 > 0.15 > on_car and translate(sentence, "has").says == french
    assert translate(sentence, "has", says=french).probabilities.min() > 0.9
    with_house = [translate("She has a small house.", w).probabilities[2] for w in ("", "house")]
    assert with_house[0] > 0.85 > 0.8 > with_house[1] > 0.65

# %% [markdown]
# Why doesn't *une* need *car*?
# French words are not the only ones that attend to *car*.
# Before the French begins, the English words attend to each other in the encoder, so *a* has already read *car*.
# If you forbid this as well, with the box below the sentence, *un* and *une* become almost equally likely.
# If only *a* may attend to *car* in the encoder, *une* is back at 0.97.
# So the gender can come by way of *a*.
# In another sentence, *She has a small house.*, the other routes carry less, and forbidding *house* lowers *une* from 0.89 to 0.74.
# Couldn't we simply forbid *a*?
# Then *une* falls as well, but what rises in its place is *de*, not *un*.
# We have lost more than the gender.
#
# Forbidding any word might do damage, so here is a **control**: forbid *has*.
# Averaged over the eight heads, *une* gives *has* 35% of its weight and *car* only 11%, and yet hardly anything changes.
#
# So a network can do without a word that gets a large weight.
# **A weight shows where a network looks.
# Forbidding a word tells you more about what the network needs.
# But even a forbidden word may still get through by another route.**
#
# What happens to a word that the translator has never seen?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "“The little girl eats the red apple.” The translator has never read “little”. What does it write in its place here?",
    ["petite, small", "no word at all", "another adjective"],
    answer="another adjective",
    wrong={
        "petite, small": "How could it know that “little” is not “old”? It reads the same sign, <unk>, for each unknown word.",
        "no word at all": "In some other sentences it does. But what do you often find between “the” and “girl”?",
    },
    why="It reads <unk>. Between “the” and “girl” there is often an adjective, and here it writes one: “timide”, shy. In “My "
    "little house is red.” it writes none.",
)

# %% [markdown]
# The weights hardly show that the translator is guessing.
# The probabilities often do show it: *timide* has only 0.28.
#
# ### Exercise 1 · Forbid one word
#
# *predict · 3 minutes*
#
# Which **one** English word do you have to forbid to make the French change like this?
#
# - (a) *I don't like the small house.* says the opposite.
# - (b) *Where is my book?* asks for somebody else's book.
# - (c) *The old woman is sleeping.* is about a man.
#
# In your notebook, replace the dots with three words, run the cell, and then run the **check** below it.
# If something is missing, the check shows you a hint.
# For another hint, press *Hint* in the report, or run `cu.checks.one_word.hint()` in a new cell.


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
# What each French word just did is called a **look-up**, and its three parts have names.
# A **[query](C_glossary.ipynb#query-key-value)** asks, and here each French word was one.
# **Keys** are what a query may attend to, here the English words, and each key hands over a **value**.
# A map of weights has a row for each query and a column for each key.
#
# Each query gets the average of the values, with the weights of its row.
# Suppose the first query has the weights 0.6, 0.2 and 0.2, and the values are 5, 20 and 0.
# By hand, it gets $0.6\cdot 5 + 0.2\cdot 20 + 0.2\cdot 0 = 7$.
# For all queries at once, this is one product of matrices:

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
# A comment `# try` marks what you may change, and every value of its range works.
# In the translator the values aren't single numbers, but vectors.
#
# On such a map, dark means a large weight, and the color bar says how large.
# Here are 36 weights near 1/6 with a little noise, drawn twice.

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
# So read the color bar before you read a map.

# %% jupyter={"source_hidden": true}
cu.quiz("start_here", "rows_of_map")

# %% [markdown]
# ### Exercise 2 · Forbid a key
#
# *build · 4 minutes*
#
# How do the answers change if we forbid a key?
# Its weight becomes 0.
# Then we divide each row by its sum, and the row sums to 1 again.
# Finish the function, which already sets the weights to 0.
# `kept.sum(dim=1, keepdim=True)` gives you the sums of the rows, one below the other.


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
with cu.guard("For a word that it has never read, it writes an adjective here and nothing there."):
    girl, house = map(translate, ("The little girl eats the red apple.", "My little house is red."))
    assert girl.says[:3] == ["la", "fille", "timide"] and girl.probabilities[2] < 0.4
    assert house.says[:4] == ["ma", "maison", "est", "rouge"]

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The first query gets 7.", given=last == 0):
    assert abs(answers[0].item() - 7) < 1e-5

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Each of the faint weights is near 1/6."):
    assert 0.12 < low < high < 0.22

# %% [markdown]
# ## The first slider
#
# Where do weights come from?
# A network computes **scores**, which may be any numbers, and the larger a score, the better the key fits.
# Then we take the exponential of each score and divide it by the sum of all the exponentials.
# This is the **[softmax](C_glossary.ipynb#softmax)**.
# Raise the bird's score as far as you like. Does it ever get all the weight?

# %% jupyter={"source_hidden": true}
cu.explore.first_slider()

# %% [markdown]
# The bird comes near to 1 but never reaches it.
# Cat and dog shrink together, and their ratio stays the same.
#
# ## Paths through the course
#
# You don't have to do the whole course.
# On this map, each line is a part of the course and each station is a chapter, and below it are the paths that you can take.

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
course_map()

# %% [markdown]
# ## Take-aways
#
# - A row of weights belongs to one query, and sums to 1.
#   The query gets the average of the values: `weights @ values`.
# - A softmax turns scores into weights.
# - A weight shows where a network looks.
#   Forbidding a word tells you more about what the network needs, but even a forbidden word may still get through by another route.

# %% [markdown] tags=["next"]
# Next: [Queries, keys and values](01_queries_keys_values.ipynb) shows where scores come from.
# On the path to GPT, to a real model, to images, to translation and *Kernels*, [PyTorch in an hour](B_pytorch.ipynb) comes next.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("start_here")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
# - Geva, M. et al. (2023).
#   [Dissecting recall of factual associations in auto-regressive language models](https://arxiv.org/abs/2304.14767).
#   EMNLP.
#   The authors block attention in order to find out what it carried.
