# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Translating
#
# **A translator can show us where it looks. Does that tell us why it says a word?**
# Here is a sentence with two maps, English across and French down.
# One shows the attention weights, averaged over eight heads: how much each French word *looks* at each English word.
# For the other we **forbade** one English word at a time and noted how much probability each French word lost.
# Which map is which, and which one would you call the explanation?

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.lessons.bahdanau_attention import alignment
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, larger_world, small_world
from course_utils.lessons.translating import beams, explorer

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.which_map()

# %% [markdown]
# Try other sentences, and ask yourself what the attention weights of one word add up to.
# We'll come back to the maps once we have a translator and know how to get whole sentences out of it.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - train a Transformer to translate, and judge it by a test set;
# - write beam search, and tell an error of the search from an error of the model;
# - measure what a word needs by forbidding, and say what an attention map leaves out.

# %% [markdown] tags=["needs"]
# You will need [The Transformer](10_transformer.ipynb), and from [Bahdanau attention](06_bahdanau_attention.ipynb) the recurrent translator and its alignments.

# %% jupyter={"source_hidden": true}
cu.recall("transformer", "bahdanau_attention", "sequence_to_sequence")

# %% [markdown]
# ## Training it
#
# Let's train a translator of our own first, with [teacher forcing](C_glossary.ipynb#teacher-forcing).
# The model is the last chapter's, with two layers of four heads on each side, and now it trains for nine **epochs**, which means that it reads all sentences nine times.
# We take the sentences, the loss, and the batches from [Bahdanau attention](06_bahdanau_attention.ipynb#Training-it).

# %%
world = small_world("fr")
vocabularies = world.source_vocab, world.target_vocab
epochs = 9  # try 1 … 9


def new_model(seed):
    cu.seed_everything(seed)
    return cu.Transformer(*map(len, vocabularies), embed_dim=64, num_heads=4,
                          ffn_dim=64, num_layers=2, dropout=0.0)  # fmt: skip


def train(model, seed, lr=7e-3, epochs=epochs):
    loader = world.loader(world.train, seed=seed)
    schedule = cu.warmup_decay(50, epochs * len(loader))
    trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=lr,
                         schedule=schedule, seed=seed, quiet=True)  # fmt: skip
    return trainer.fit(model, loader, world.loader(world.val, shuffle=False))


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def score(model, pairs):
    """BLEU and exact-match accuracy of the greedy translations."""
    lines = cu.translate(model, [" ".join(p.source) for p in pairs],
                         *vocabularies, max_len=20)  # fmt: skip
    right = [" ".join(pair.target) for pair in pairs]
    hits = [a == b for a, b in zip(lines, right, strict=True)]
    return cu.bleu(lines, right), sum(hits) / len(hits)


# %% tags=["nbval-ignore-output"]
model = new_model(0)
history = train(model, 0)
history.plot()

# %% tags=["nbval-ignore-output"]
for line, french in zip(FOUR, cu.translate(model, FOUR, *vocabularies), strict=True):
    print(f"{line:12} {french}")
print("400 test sentences: BLEU {:.2f}, accuracy {:.2f}".format(*score(model, world.test)))

# %% [markdown]
# The four sentences come out right, but **the model has read them in training**, so they don't tell us whether it can translate.
# The **test set** does, because its sentences are new to the model.
# There its **exact-match accuracy**, the share of translations that are right word for word, is nearly nine in ten.
#
# The next table compares our Transformer with the recurrent translator of [Bahdanau attention](06_bahdanau_attention.ipynb), which has nearly the same number of parameters.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
tuned = {"kind": "attention", "order": "French", "lowest": "val_loss"}
runs = {
    "Transformer, 9 epochs": cu.stored_runs("translating", "transformer", lowest="val_loss"),
    "recurrent, 9 epochs": cu.stored_runs("translating", "recurrent", lowest="val_loss"),
    "Transformer, 18 epochs": cu.stored_runs("translating", "transformer_for_longer"),
    "recurrent, 18 epochs": cu.stored_runs("bahdanau_attention", "recurrent_translator", **tuned),
}
columns = {"exact": "accuracy", "exact_10": "… of 8 to 10 tokens"}
shares = {name: pd.DataFrame([run.result for run in group]) for name, group in runs.items()}
compared = pd.DataFrame(
    {name: results[list(columns)].mean() for name, results in shares.items()}
).T.rename(columns=columns)
compared.round(2)

# %% [markdown]
# The Transformer is ahead after nine epochs and still ahead after 18.
# But by then the recurrent translator has almost caught up with where the Transformer was after nine.
# On the 55 sentences of 8 to 10 tokens we can't tell the two apart after 18 epochs.
# The Transformer learns *faster* here if you count in epochs.
# The table doesn't say which of them takes less time.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("After nine epochs the Transformer has the higher accuracy, with every seed."):
    ours = shares["Transformer, 9 epochs"].exact
    assert 0.85 < ours.mean() < 0.9
    assert ours.min() > max(0.8, shares["recurrent, 9 epochs"].exact.max())
with cu.guard(
    "After 18 the Transformer is still ahead, but on 55 long sentences we can't tell them apart."
):
    longer = shares["recurrent, 18 epochs"].exact
    assert longer.min() > shares["recurrent, 9 epochs"].exact.max()
    assert 0 < ours.mean() - longer.mean() < 0.06
    assert shares["Transformer, 18 epochs"].exact.min() > longer.max()
    assert abs(compared["… of 8 to 10 tokens"].iloc[2:].diff().iloc[-1]) < 0.06
    assert sum(8 <= len(pair.source) <= 10 for pair in world.test) == 55

# %% [markdown]
# ## The best sentence: beam search
#
# The model gives probabilities for the *next* word, but we want a sentence.
# The probability of a sentence is the product of the probabilities of its words, with `<eos>` as the last.
# **Greedy decoding** takes the most probable word at each step, and that can lead away from the most probable sentence.
# For example, here is a language of four words, in which the model wavers after A but is sure after B.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    S  S  S  S  S  S
    A  A  A  B  B  E
    AC AD AE BC BE .
    """,
    nodes={
        "S": cu.Box("<bos>"),
        "A": cu.Box("A: 0.5", color="wash"),
        "B": cu.Box("B: 0.4", color="wash"),
        "E": cu.Box("end: 0.1"),
        "AC": cu.Box("A C", shape="0.5 · 0.4 = 0.20", color="wash"),
        "AD": cu.Box("A D", shape="0.5 · 0.35 = 0.175"),
        "AE": cu.Box("A end", shape="0.5 · 0.25 = 0.125"),
        "BC": cu.Box("B C", shape="0.4 · 0.9 = 0.36", color="value"),
        "BE": cu.Box("B end", shape="0.4 · 0.1 = 0.04"),
    },
    arrows=[cu.Arrow("S", "A", color="query"), "S -> B", "S -> E",
            cu.Arrow("A", "AC", color="query"), "A -> AD", "A -> AE", "B -> BC", "B -> BE"],
    alt="A tree of beginnings. A has 0.5, B 0.4, the end 0.1. Below A: A C 0.20, A D 0.175, A end 0.125. Below B: B C 0.36 "
    "and B end 0.04. A colored path leads from the root over A to A C. Marked are A and B, then A C and, best, B C.",
    gap=(14, 30),
)  # fmt: skip

# %% [markdown]
# Greedy decoding follows the colored path and ends with 0.20.
# **[Beam search](C_glossary.ipynb#beam-search)** of size 2 keeps the two best beginnings, whatever they begin with.
# It keeps A and B, then "A C" and "B C", and so it finds 0.36.
#
# ### Exercise 1 · A beam on paper
#
# *predict · 5 minutes*
#
# - The first word is E with 0.4, F with 0.35, or G with 0.25.
# - After E comes X with 0.4, Y with 0.35, or the end.
# - After F comes X with 0.5, Y with 0.3, or the end.
# - After G always comes X, and after X and Y always the end.
#
# How probable is (a) the sentence that greedy decoding finds, (b) the sentence that a beam of two finds, (c) the most probable sentence of all?


# %% tags=["exercise", "predict"]
def predicted_beams():
    """Three numbers, for (a) to (c), without running anything."""
    return ...  # such as [0.1, 0.1, 0.1]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_beams(predicted_beams)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_beams_solution():
    """E X; then F X, since the beam keeps E and F; then G X, which the beam has lost."""
    return [0.4 * 0.4, 0.35 * 0.5, 0.25]


cu.checks.predicted_beams(predicted_beams_solution)

# %% [markdown]
# So even a beam can lose the best sentence.
#
# ### Exercise 2 · Grow the beams
#
# *build · 9 minutes*
#
# Each beam can continue with any word, and we add the log-probability of that word to its score.
# Among the continuations of all beams, return the `size` best.
# The search below runs on your function.


# %% tags=["exercise", "build"]
def my_grow(scores, log_p, size):
    """scores (beams,), log_p (beams, words) → scores, rows, words, (size,) each.

    rows says which beam each goes on from, words what it adds; the best come first.
    """
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_grow(my_grow)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_grow_solution(scores, log_p, size):
    """Position p of the flattened table is beam p // V and word p % V."""
    total = scores[:, None] + log_p
    best, picked = total.flatten().topk(size)
    return best, picked // log_p.shape[1], picked % log_p.shape[1]


cu.checks.my_grow(my_grow_solution)

# %% [markdown]
# There is one catch.
# Each further word makes the product smaller, so a plain product prefers short sentences.
# To make up for this, the search divides the log-probability of a finished sentence of $n$ tokens by $\big((5+n)/6\big)^{0.6}$, the **length penalty** of [Wu et al. (2016)](https://arxiv.org/abs/1609.08144).

# %%
grow = cu.choose(my_grow, beams.grow)


@torch.no_grad()
def beam_search(next_word, size, max_len=20, penalty=0.6):
    """The best finished sentence, as ids, and the number by which it was ranked."""
    prefixes, scores = torch.tensor([[BOS]]), torch.zeros(1)
    best, finished = -math.inf, []
    for n in range(1, max_len + 1):
        log_p = next_word(prefixes)  # (beams, words), for each beginning
        ended = (scores + log_p[:, EOS]) / ((5 + n) / 6) ** penalty
        if ended.max() > best:  # the best sentence that has ended so far
            best, finished = ended.max().item(), prefixes[ended.argmax(), 1:].tolist()
        log_p[:, EOS] = -math.inf  # the others go on
        scores, rows, words = grow(scores, log_p, size)
        prefixes = torch.cat([prefixes[rows], words[:, None]], dim=1)
        if best >= scores[0] / ((5 + max_len) / 6) ** penalty:
            break  # scores only fall, so no beginning can overtake it
    return finished, best


tree = beams.undecided(first_a=0.5)
for size in (1, 2):
    found, log_of = beam_search(tree, size, penalty=0)
    print(f"beam of {size}: {tree.sentence(found)}, probability {math.exp(log_of):.2f}")

# %% [markdown]
# From here on we use the stored translator of [Start here](00_start_here.ipynb), so we all see the same sentences.
# It is the same model, trained on 14,000 sentences, and tested on 500 others.

# %%
translator, larger = beams.stored_translator(), larger_world()
words_of = larger.source_vocab, larger.target_vocab


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def next_word_of(line):
    """What `beam_search` asks, for an English sentence."""
    source, source_lens = beams.asked(line, words_of[0])

    def next_word(prefixes):
        sources = source.expand(len(prefixes), -1), source_lens.expand(len(prefixes))
        return beams.speakable(translator(*sources, prefixes)[:, -1])

    return next_word


lines = [" ".join(pair.source) for pair in larger.test]
mine = [" ".join(words_of[1].decode(beam_search(next_word_of(line), 4)[0])) for line in lines[:30]]
package = cu.translate(translator, lines[:30], *words_of, beam_size=4, max_len=20)
print(*map("{} → {}".format, lines[:3], mine), sep="\n")
print("same words as the package's search:", sum(map(str.__eq__, mine, package)), "of 30")

# %% [markdown]
# ### Whose error?
#
# Some translations are wrong.
# The search ranks sentences by a score, here the log-probability divided by the length penalty.
# In a **search error** the right sentence has the *higher* score, but decoding has missed it.
# In a **model error** the wrong sentence scores higher, and a better search would only be more certain to find it.


# %%
@torch.no_grad()
def log_p(model, words, pairs, french=None):
    """Log-probability of each French word, `<eos>` included: (pairs, longest).

    `french` has sentences to score, the pairs' own by default; after the end there are zeros.
    """
    batch = beams.batch_of(pairs, words, french)
    logits = model.eval()(batch.source, batch.source_lens, batch.target_in)
    each = logits.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]
    return each * (torch.arange(each.shape[1]) < batch.target_lens[:, None])


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "With greedy decoding the stored translator gets 107 of its 500 test sentences wrong. In how many of these does it rank the right "
    "translation above its own?",
    (0, 107),
    answer=9,
    wrong={
        "less": "Greedy decoding does miss some, because after a bad word there is no way back.",
        "more": "Think of a short sentence of which the model is nearly sure at each word. How often will the best next word lead away from the best sentence?",
    },
    why="Nine. Sentences are short and the model is usually sure, so greedy decoding seldom misses what the model likes best. In the other 98 it prefers its own wrong sentence.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
right = [list(pair.target) for pair in larger.test]
errors_of = {}
for size, name in ((1, "greedy"), (4, "beam of 4")):
    said = [
        line.split()
        for line in cu.translate(translator, lines, *words_of, beam_size=size, max_len=20)
    ]
    of_right = log_p(translator, words_of, larger.test).sum(dim=1)
    of_said = log_p(translator, words_of, larger.test, said).sum(dim=1)
    gap = of_right - of_said
    ranked = [by.div(((6 + torch.tensor([*map(len, texts)])) / 6) ** 0.6)  # with <eos>
              for by, texts in ((of_right, right), (of_said, said))]  # fmt: skip
    wrong = [i for i in range(len(lines)) if said[i] != right[i]]
    search = [i for i in wrong if ranked[0][i] > ranked[1][i]]
    errors_of[name] = [len(wrong), len(search), len(wrong) - len(search)]
    if size == 1:
        sure = log_p(translator, words_of, larger.test, said).exp()
        sure = (sure > 0.9)[sure < 1].float().mean()  # without the padding, which has 1
    for i in search[:2]:
        print(f"{lines[i]}\n   says  {' '.join(said[i])}\n   right {' '.join(right[i])}, "
              f"{math.exp(gap[i]):.1f} times as probable")  # fmt: skip
pd.DataFrame(errors_of, index=["wrong", "search errors", "model errors"])

# %% [markdown]
# With a beam of 4 no search error is left, and yet only five fewer sentences are wrong.
# Most errors belong to the model, so a larger beam won't repair them.
# A beam has little to do here, because this model is sure of itself and gives seven words in eight a probability above 0.9.
# [Real sentences](11_translating_further.ipynb#Real-sentences) leave more to choose from, and there a beam of 4 takes the same class from 38.1 to 39.9 BLEU (one training run).
# Very large beams can translate *worse*, mostly because their output gets too short, as [Koehn and Knowles (2017)](https://arxiv.org/abs/1706.03872) found.

# %% jupyter={"source_hidden": true}
cu.quiz("translating", "whose_error")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Most wrong translations are the model's errors, and with a beam of 4 all are."):
    assert errors_of == {"greedy": [107, 9, 98], "beam of 4": [102, 0, 102]}
    assert 0.84 < sure < 0.9
with cu.guard("Our search gives the package's words."):
    assert mine == package

# %% [markdown]
# ## What a word needs: attention weights or forbidding?
#
# Now that we can ask the model for probabilities, we go back to the two maps.
# One is the mean of the model's eight cross-attention maps.
# Each row belongs to one step and bears the French word that the model *says* at that step.
# The other comes from the experiment that you know from [Start here](00_start_here.ipynb) and [The Transformer](10_transformer.ipynb): **forbid it, and see**.
# We forbid one English word in the cross-attention of every layer, and see how much of its probability each French word loses.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "“Please eat a pizza .” becomes “mange une pizza , s'il te plaît .” We forbid the word *please*, and the decoder still reads the "
    "right French up to each word. Which words lose most of their probability?",
    ["all of “, s'il te plaît”", "only “s'il te plaît”", "only the comma"],
    answer="only the comma",
    wrong={
        "all of “, s'il te plaît”": "All four come from *please*, that's true. But what has the decoder read already when it has to say *te*?",
        "only “s'il te plaît”": "When the decoder has to say *s'il*, it has read “mange une pizza ,”. How would you go on?",
    },
    why="The comma announces the rest. After it the decoder goes on in French, as you would.",
)

# %% [markdown]
# ### Exercise 3 · Forbid each word
#
# *build · 8 minutes*
#
# `p()` gives the probabilities of the French words, (…, n), as the model sees them at this moment.
# Inside a block `with cu.intervene(model) as acts:` the call `acts.forbid("cross_attention", keys=j)` forbids English word `j` in every layer.
# Write the map.


# %% tags=["exercise", "build"]
def my_needs(model, p, m):
    """How much each probability falls without each of the first m English words: (…, n, m)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_needs(my_needs)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_needs_solution(model, p, m):
    """Each word has a block of its own, so the one before is allowed again."""
    before, falls = p(), []
    for j in range(m):
        with cu.intervene(model) as acts:
            acts.forbid("cross_attention", keys=j)
            falls.append(before - p())
    return torch.stack(falls, dim=-1)


cu.checks.my_needs(my_needs_solution)

# %%
mine_too = "please eat a pizza ."  # try "please eat a pizza ." | "is this your cat ?"
needs = cu.choose(my_needs, beams.needs)
pair = beams.pair_of(mine_too, translator, larger)  # with the model's own translation
need = needs(translator, lambda: log_p(translator, words_of, [pair]).exp(), len(pair.source))
look = beams.attention_maps(translator, [pair], words_of)[0].mean(dim=(0, 1))
explorer.show_maps(
    pair, {"what it needs: forbidding": need[0, :-1], "where it looks: attention": look}
)

# %% [markdown]
# At the top of this page, map A was forbidding, and map B was attention.
# The frames are the **gold links**: the grammar made these sentences, so it knows which words belong together.
# The comma needs *please*, which only the left map says clearly.
# The words *s'il te plaît* look at *please* and at other words, but hardly need any of them alone.
# Do they need the English at all?
# We forbid all of it in every layer, and let the decoder read the right French up to each word.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
with cu.intervene(translator) as acts:
    acts.forbid("cross_attention")
    blind = log_p(translator, words_of, [pair]).exp()[0]
print("without any English:", *(f"{word} {p:.2f}" for word, p in zip(pair.target, blind, strict=False)))  # fmt: skip

# %% [markdown]
# After the comma French goes on by itself, with no English at all.
# But the weights of a softmax add up to 1, so **attention has to look somewhere, even when it needs nothing**.
# Half of the weight of *plaît* is on `<eos>`, the end token of the English sentence.
# Our maps leave it out and scale the rest up to a sum of 1.
#
# Forbid *please* here, and see what the translator says without it.

# %% jupyter={"source_hidden": true}
cu.live.translator("please eat a pizza .", True)

# %% [markdown]
# We can also ask which map comes closer to the gold links.
# We link each French word to the English one with the largest number in its row, and compare by the [alignment error rate](06_bahdanau_attention.ipynb#Alignment-error-rate).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
attentions = beams.attention_maps(translator, larger.test, words_of)
longest = max(len(pair.source) for pair in larger.test)
falls = needs(translator, lambda: log_p(translator, words_of, larger.test).exp(), longest)
maps_of = {
    "a guess: the diagonal": [alignment.diagonal(pair) for pair in larger.test],
    "attention: mean of all heads": [maps.mean(dim=(0, 1)) for maps in attentions],
    "the same, as shares of each English word": beams.shares_of_each_word(translator, larger.test, words_of),
    "forbidding": beams.cut(falls, larger.test),
}  # fmt: skip
three = pd.DataFrame(
    [run.result for run in cu.stored_runs("translating", "transformer", rate=0.007)]
)
keys = ["aer, diagonal", "aer, mean", "aer, columns", "aer, forbidding"]
rates = pd.DataFrame(
    {
        "stored translator": [beams.error_rate(maps, larger.test) for maps in maps_of.values()],
        "three like ours, mean": three[keys].mean().to_numpy(),
    },
    index=list(maps_of),
)
rates.round(2)

# %% [markdown]
# Forbidding is closer to the gold links than the mean of all heads, but don't make much of it.
# Take the mean map and divide each column by its sum, so that it shows how each English word is shared among the French ones.
# Now attention comes about as close as forbidding does.
# **How we read a map matters as much as which map we read**, and a low error rate doesn't make a map an explanation.
# [Jain and Wallace (2019)](https://arxiv.org/abs/1902.10186) called their paper *Attention is not Explanation*, and [Wiegreffe and Pinter (2019)](https://arxiv.org/abs/1908.04626) answered with *Attention is not not Explanation*.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Forbidding is closer than the mean of the heads, and shares of each English word are about as close."
):
    ours = rates["stored translator"].to_list()
    for diagonal, mean, columns_, forbidding in [ours, *three[keys].to_numpy().tolist()]:
        assert max(forbidding, columns_) < min(mean, diagonal)
        assert abs(forbidding - columns_) < 0.03
with cu.guard(
    "The comma needs please, and s'il te plaît hardly anything.",
    given=mine_too == "please eat a pizza .",
):
    assert need[0, 3, 0] > 0.9 and need[0, 4:7].max() < 0.2 and look[4:7, 1:].sum(dim=1).min() > 0.4
    assert blind[:4].max() < 0.05 and blind[4:7].min() > 0.95

# %% [markdown]
# ## Two roads to an article
#
# Forbidding can mislead us, too.
# *House* is feminine in French, so the decoder has to know the noun before it says *la*.
# It can look at the noun itself, and the encoder has a head that looks from an article to its noun.
# The next cell ablates the head, then forbids the noun, and then does both.

# %%
duck = "the duck slept behind the house ."
for roads in ("all in place", "without head", "without noun", "without head and noun"):
    with cu.intervene(translator) as acts:
        if "head" in roads:
            acts.ablate("encoder.0.attention", heads=1)
        if "noun" in roads:  # where the fifth word is said, "house" may not be looked at
            acts.forbid("cross_attention", queries=5, keys=5)
        print(f"{roads:21}", cu.translate(translator, [duck], *words_of)[0])

# %% [markdown]
# After the first two experiments you would say that the article needs neither the noun nor the head.
# But without both, the house becomes masculine.
# The next figure shows the same experiment for every article of the test set that comes right before its noun.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
genders = beams.article_roads(translator, larger.test, words_of)
fig, ax = cu.subplots(
    width=7.4, height=2.6,
    alt="Bars of the accuracy of the gender of articles. With everything in place, without head 0.1 and without all encoder heads it is near 1; "
    "without the noun 0.9; without noun and head less than 0.8; without noun and all encoder heads 0.55, near the one half of a coin flip.",
)  # fmt: skip
bars = ax.barh(range(len(genders)), list(genders.values()), color=cu.COLORS["key"], height=0.6)
closed = [f"without {name}" for name in genders if name != "nothing"]
ax.set_yticks(range(len(genders)), ["all in place", *closed])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.axvline(0.5, color=cu.COLORS["wrong"], linestyle="--", linewidth=1)
ax.invert_yaxis()
ax.set(xlabel="Accuracy of the articles' gender", xlim=(0, 1.1))
fig

# %% [markdown]
# In this translator at least nine articles in ten keep their gender if we forbid only the noun or ablate only the heads.
# Without the noun *and* that one head, about three quarters do.
# Without the noun and all the encoder's heads, the gender is little better than a coin flip (dashed line).
# In three other translators forbidding the noun costs more on its own, and doing both costs still more.
# **A road you can do without may still be in use**, as long as there is a second one.
# When something seems unnecessary, forbid it together with whatever could stand in for it.

# %% [markdown]
# <details><summary>How sure is this?</summary>
#
# Our networks are small, and a grammar made their sentences.
# In the first table each row has the best of three or four learning rates, chosen on validation sentences, with three seeds.
# Only the Transformer of 18 epochs kept the rate of 0.007.
# Three more networks that were trained like ours agree about the maps, but not about what closing just one of the two roads costs.
# In these three the gender has an accuracy of 0.71 to 0.88 without the noun (0.58 to 0.79 at two other rates), of 0.81 to 0.95 without all encoder heads, and of 0.51 to 0.59 without both.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Here most genders stay right without the noun or without the heads, and without both little more than a coin is left."
):
    one_road = "head 0.1", "all encoder heads", "the noun"
    assert min(genders[name] for name in one_road) > 0.89
    assert genders["the noun and head 0.1"] < 0.8
    assert genders["the noun and all encoder heads"] < 0.6
with cu.guard(
    "In the three others the noun alone costs more, and both together cost more than either."
):
    both = three["gender, the noun and all encoder heads"]
    assert both.max() < 0.62
    wrong = 1 - three["gender, the noun"]
    assert 1 / 8.5 < wrong.min() < 1 / 7.5 and 0.25 < wrong.max() < 0.3
    for name in ("the noun", "all encoder heads"):
        assert (three[f"gender, {name}"] > both + 0.1).all()

# %% [markdown]
# ## Take-aways
#
# - Judge a translator by a test set, whose sentences it hasn't read.
#   On ours the Transformer learns faster than the recurrent translator, epoch for epoch.
# - Greedy decoding can miss the best sentence, and so can a beam.
#   Ask the model for both probabilities before you blame the search, because most errors here are the model's.
# - An attention map shows where a model looks, and it has to look somewhere even where it needs nothing.
#   To learn what a word needs, forbid the words of the source one at a time, and then together with whatever could stand in for them.

# %% [markdown] tags=["next"]
# Next: [Training transformers](12_training_transformers.ipynb), where you see training break, and what to do about it.
# The [further page](11_translating_further.ipynb) has the KV cache, maps of all heads, a lecture's own translator, and real sentences.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("translating")

# %% [markdown]
# ## References
#
# - Koehn, P. and Knowles, R. (2017).
#   [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872).
#   Workshop on Neural Machine Translation.
#   Section 3.6: beams that are too large.
# - Jain, S. and Wallace, B. C. (2019).
#   [Attention is not explanation](https://arxiv.org/abs/1902.10186).
#   NAACL.
# - Li, X., Li, G., Liu, L., Meng, M. and Shi, S. (2019).
#   [On the word alignment from neural machine translation](https://aclanthology.org/P19-1124/).
#   ACL.
#   Alignments from what a prediction loses without a source word.
# - Wiegreffe, S. and Pinter, Y. (2019).
#   [Attention is not not explanation](https://arxiv.org/abs/1908.04626).
#   EMNLP.
# - Och, F. J. and Ney, H. (2003).
#   [A systematic comparison of various statistical alignment models](https://aclanthology.org/J03-1002/).
#   Computational Linguistics 29(1).
# - Wu, Y. et al. (2016).
#   [Google's neural machine translation system: bridging the gap between human and machine translation](https://arxiv.org/abs/1609.08144).
#   Section 7: the length penalty.
