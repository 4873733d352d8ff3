# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What heads learn: sinks, first words and other starts
#
# This page continues [What heads learn](19_what_heads_learn.ipynb).
# It asks what the heads of SmolLM2 do where nothing repeats, how much one word in front of a sentence changes, and how far the model copies.
# Then it returns to our small network, and asks what its second fall brings, which map comes first, and in what other trainings differ.
# You can read each section by itself.

# %%
import pandas as pd

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.lessons.real_weights import heads, smollm
from course_utils.lessons.what_heads_learn import cuts
from course_utils.lessons.what_heads_learn.explorer import draw_map
from course_utils.lessons.what_heads_learn.film import wins

cu.seed_everything(0)

# %% [markdown]
# ## Attention sinks
#
# What do heads do where nothing repeats?
# A softmax has to put its weight somewhere, and the heads of SmolLM2 put more than a third of it on the very first token, an **[attention sink](C_glossary.ipynb#attention-sink)** ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453)).
# How much does the loss on our story rise if no later token may look at the first one?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sink = cu.stored_runs("real_weights", "sinks", text="story")[0].examples[0]["gave"]
shown = {
    "first, all layers": "the first token, in all layers",
    "first, layers 10–19": "the first token, in layers 10–19",
    "four others, layers 10–19": "four others, in layers 10–19",
}
whole = sink["losses"]["nothing"][0]
pd.DataFrame(
    {"the loss rises by": {text: sink["losses"][name][0] - whole for name, text in shown.items()}}
).rename_axis("nobody may look at").round(2)

# %% [markdown]
# In layers 10–19 the model misses its sink.
# But if nobody ever sees the first token, hardly anything is lost, because **then the second token becomes the sink**: if we also hide that one in layers 10–19, the loss again rises by 0.63.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three texts hiding the first token costs much in layers 10–19, little in all, and then the second is the sink."
):
    for text in ("story", "news", "sentences"):
        (run,) = cu.stored_runs("real_weights", "sinks", text=text)
        gave = run.examples[0]["gave"]
        rise = {
            name: loss[0] - gave["losses"]["nothing"][0] for name, loss in gave["losses"].items()
        }
        assert max(rise["first, all layers"], rise["four others, layers 10–19"]) < 0.1
        second, fifth = (
            rise[f"first everywhere, {token} in layers 10–19"] for token in ("second", "fifth")
        )
        assert min(rise["first, layers 10–19"], second) > 0.5 > 0.11 > fifth
        assert 0.33 < gave["weights"]["nothing"][0] < 0.45
        if text == "story":
            assert round(second, 2) == round(rise["first, layers 10–19"], 2) == 0.63

# %% [markdown]
# ## One word in front
#
# The loss on a story is a mean over many tokens.
# What if the text is a single short sentence, and everything depends on its last word?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of 30 sentences such as “The capital of Japan is”, SmolLM2 completes 20 correctly, and 28 with <|endoftext|> in front. Now we leave <|endoftext|> in front, but no token may look at it, in any layer. How many are right?",
    ["0", "20", "24", "28"],
    answer="20",
    wrong={
        "0": "That would be so if the answer needed this token. How does the model do without it?",
        "24": "A compromise sounds reasonable. But what does the model see now, compared with the bare sentence?",
        "28": "The token is still there. But can anything that it holds reach another position?",
    },
    why="Rotary positions count only distances, so a text whose first token nobody sees is the text without it: the bare sentence. Even the probabilities are the same.",
)

# %% [markdown]
# So this sentence does lose something together with its first token, and the story above hardly did.
# We haven't tested why, but the story came in pieces of 128 tokens, and the sentence has only a few: the one that becomes the sink is a large part of it.
#
# Other tokens may be in front, too.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
lm = smollm.reference() if cached("smollm2") else None  # without the file: as recorded

# %% tags=["nbval-ignore-output"]
front = (
    "green "  # or "apple ", "Hello ", "seven ", "answer "; with the weights, any word and a space
)
gave = smollm.known(heads.capitals_behind, lm, front=front)
print(f"{gave['right']} of {gave['of']} capitals are right")

# %% [markdown]
# **One word in front changes what the model seems to know**: after *green*, 6 capitals are right, and after *apple*, 28.
# Of the sixteen words that we tried, *green* is the worst and *apple* among the best, and with half of them at least 23 are right.
# So always report what comes first.
#
# <details><summary><em>How sure is this?</em></summary>
#
# All numbers come from SmolLM2's 4-bit file.
# Two more texts, a piece of news and single sentences, showed the same sink, and the same second sink.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Right capitals: 20 bare, 28 after the mark, 20 if it is hidden, 6 after green, 28 after apple, and 23.5 in the middle."
):
    right = {
        (run.config["front"], *run.config.get("hidden", [])): run.examples[0]["gave"]["right"]
        for run in cu.stored_runs("real_weights", "capitals_behind")
    }
    mark = "<|endoftext|>"
    assert [right[key] for key in (("",), (mark,), (mark, 0))] == [20, 28, 20]
    assert (right["apple ",], right["green ",]) == (28, 6)
    words = sorted(
        count
        for (word, *rest), count in right.items()
        if not rest and word.strip().isalpha() and word[0].isalpha() and word.endswith(" ")
    )
    assert len(words) == 16 and words[0] == 6 and words[-1] == 28 and words[8] >= 23

# %% [markdown]
# ## Not at any distance
#
# An induction head can look back as far as the context reaches.
# Does the model then copy at any distance?
# We put other random tokens between the forty tokens and their repetition.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
gaps = {
    f"{run.config['tokens']} tokens": {
        int(gap): share for gap, (share, *_) in run.examples[0]["gave"].items()
    }
    for run in cu.stored_runs("real_weights", "copied_over_gap")
}
far = pd.DataFrame(gaps).rename(columns={"all tokens": "any tokens"})
far.rename_axis("tokens between").rename_axis("share copied", axis=1).map("{:.2f}".format)

# %% [markdown]
# **It doesn't.**
# With 640 tokens between, the share falls from 0.67 to 0.06, and with frequent tokens from 0.89 to 0.58.
# So rare tokens and distance act together, as they do in [longer copies](18_real_weights_further.ipynb#Longer-copies).
# These are four texts each, and we don't know whether the look fails, or the model doesn't notice that the text repeats.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With 640 tokens between, 0.06 of any tokens are copied, and 0.58 of frequent ones."):
    assert far["any tokens"].round(2)[[0, 640]].tolist() == [0.67, 0.06]
    assert far["frequent tokens"].round(2)[[0, 640]].tolist() == [0.89, 0.58]

# %% [markdown]
# ## The second fall
#
# In the chapter our network learns to use one more letter when its loss falls for the second time.
# The last `k` of `rkgmkbrk` has had two followers, `g` and `b`, and `r` settles it, because last time `rk` was followed by `g`.
# How does the network see this?
# Both heads of layer 0 write a note at each position, one about the letter before, and one about the letter two back:
#
# | | r | k | g | m | k | b | r | k |
# |---|---|---|---|---|---|---|---|---|
# | one back (previous-token head) | – | r | k | g | m | k | b | **r** |
# | two back (the other head) | – | – | **r** | k | g | m | k | b |
# | layer 1 asks *who is after k?* | | | yes | no | no | yes | no | no |
# | and *who is two after r?* | | | **yes** | no | no | no | no | no |
# | layer 1 says | | | | | | | | **g** |
#
# The first question comes from the letter `k` itself, and the chapter's QK map answers it.
# The second question comes from the note *r* that the previous-token head has written at the last `k`, so here the query holds a note, too (Q-composition).
# A third map compares notes with notes: row *r* belongs to a head that stands *one after r*, and column *r* to a position *two after r*.
# Here it is for the head of layer 1 that the book's film shows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
meeting = cu.stored_runs("what_heads_learn", "notes_meet")
fig, ax = cu.subplots(
    width=3.4, height=3.4,
    alt="A map of 32 letters by 32 letters. In all rows but one the largest entry is on the diagonal.",
)  # fmt: skip
draw_map(ax, "notes", meeting[0].examples[0]["notes"])
fig

# %% [markdown]
# As in the film, a green mark says that the largest entry of a row is on the diagonal.
# Does the network use this diagonal?
# We erase it as in [the chapter](19_what_heads_learn.ipynb#Erase-the-diagonal), then the other entries, then this map as a whole.
# The last row ablates the head that writes the notes *two back*.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
names = {name: name for name in cuts.SHOWN} | {"the other head of layer 0": "the head itself"}
without_notes = pd.DataFrame(
    {
        shown: {part: meeting[0].result[f"{name}, {part}"] for part in ("one follower", "several")}
        for name, shown in names.items()
    }
).T
without_notes.rename_axis("erased").map("{:.2f}".format)

# %% [markdown]
# **Letters with several followers need the diagonal of this map, and nothing else of it.**
# Erasing it costs more than ablating the whole head, because here, too, the other entries mislead the network when they remain.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three trainings the heads of layer 0 look one and two back, and several followers need the diagonal of the third map."
):
    for run in meeting:
        result = run.result
        assert result["one back"] > 0.9 and result["two back"] > 0.9
        assert min(result["rows"], result["rows, other head"]) >= 29
        head = "the other head of layer 0"
        assert result["the diagonal, several"] < 0.5 < 0.9 < result["the diagonal, one follower"]
        for part in ("one follower", "several"):
            assert result[f"all 992 others, {part}"] > result[f"nothing, {part}"]
            assert result[f"the diagonal, {part}"] < result[f"{cuts.WHOLE}, {part}"] - 0.02
            assert result[f"the diagonal, {part}"] < result[f"{head}, {part}"] - 0.05
        assert result[f"{head}, several"] < 0.65 and result[f"{head}, one follower"] > 0.98
    assert wins(meeting[0].examples[0]["notes"]) == meeting[0].result["rows"] == 31

# %% [markdown]
# ## Which map comes first?
#
# In the three films of the chapter, the OV map has half of its diagonal before the QK map.
# Is this how such a circuit has to grow?
# We trained it from larger and from smaller embeddings, at three rates and with three seeds each.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
starts = {std: cu.stored_runs("what_heads_learn", "starts", std=std) for std in (1.0, 0.3, 0.1)}
later = {
    std: [run.result["qk half, step"] - run.result["ov half, step"] for run in runs]
    for std, runs in starts.items()
}
first = {
    std: {
        "OV first": sum(gap > 0 for gap in gaps_of),
        "together": gaps_of.count(0),
        "QK first": sum(gap < 0 for gap in gaps_of),
    }
    for std, gaps_of in later.items()
}
pd.DataFrame(first).T.rename_axis("embeddings start with deviation")

# %% [markdown]
# **It depends on the start.**
# From large embeddings OV is first to have half of its diagonal, and from small ones it is mostly QK.
# Our films start with a deviation of 0.3, where it is mostly OV.
# So a story such as "it first learns what to say, and then where to look" would be a story about one setting.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Which map has half of its diagonal first depends on how large the embeddings start."
):
    assert first[1.0] == {"OV first": 9, "together": 0, "QK first": 0}
    assert first[0.3] == {"OV first": 7, "together": 1, "QK first": 1}
    assert first[0.1] == {"OV first": 0, "together": 2, "QK first": 7}

# %% [markdown]
# ## Twelve networks
#
# What the chapter says of one network was measured in twelve, three at each of four rates, after 1,500 steps.
# Here are means over three seeds.
# The columns say what is copied by the whole network, without the diagonal of the QK map, without the whole map, and without both the whole map and the other head of layer 0 (ablated for the keys of layer 1).
# The last column has letters with several followers, without the diagonal of the third map.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("what_heads_learn", "without_parts")
columns = {
    "nothing": "nothing",
    "the diagonal": "the diagonal",
    "the map": "all 1,024",
    "also two back": "all 1,024, and other, in the keys",
    "third diagonal, several": "second map, the diagonal, several",
}
rows = pd.DataFrame([{"rate": run.config["rate"]} | run.result for run in runs])
rows.groupby("rate")[list(columns.values())].mean().set_axis(list(columns), axis=1).rename_axis(
    "rate", axis=0
).map("{:.2f}".format)

# %% [markdown]
# At the rate 0.001 the second fall hasn't come after these steps, and the third map has no diagonal.
# In the nine other networks a good part of what is copied without any QK map is the work of the third map, because much less is left if the notes *two back* are gone as well.
#
# **The previous-token head has two jobs.**
# Its notes tell layer 1 where to look, and at the last letter it says which letter comes before.
# If we ablate it only for the keys of layer 1, which takes away the first job alone, between 0.47 and 0.76 of the letters are still right in the nine networks, but at most 0.16 if we ablate it for all readers.
#
# **A note works anywhere.**
# In the chapter's patch, the note *after letter 8* also brings the answer back if it comes from another text, in which letter 8 is at another position.
#
# **The query needs its note, too.**
# If the letter before the answer is changed, a probability of 0.26 to 0.47 is left in the nine networks, because the note *two back* is still right.
# If that letter is changed as well, at most 0.09 is left.
# And at most 0.10 is left if also the other head of layer 0 is ablated in the key at the answer, or if the previous-token head is ablated in the last query.
#
# **Two heads aren't needed for two notes.**
# Three networks with one head in each layer learned the second fall as well.
# Their single head puts about 0.6 of its weight on the letter before, and 0.2 on the one before that.
#
# **A diagonal can be there and hardly matter.**
# If we compare letters with the notes of the *other* head of layer 0, the diagonal wins in most rows of three networks, and erasing it costs a hundredth.
#
# **After the first fall the network also uses positions.**
# Of the letters with several followers 0.53 to 0.59 are right then, without positions in the queries and keys of layer 1 only 0.45 to 0.48, and with our circuit 0.25.
# Without the diagonal of the QK map, 0.07 to 0.22 of all letters are right at this time.
#
# Four more remarks.
# Which two heads the film shows was decided by their attention in texts, after the training.
# The chapter's cuts in SmolLM2 set heads to zero, and zeros alone don't single out head 16.0, because two heads of the first layers cost nearly as much.
# If an ablated head says its mean, as in our network, 16.0 leaves 0.14, and those two leave 0.28 and 0.54.
# Our heads cover for each other while both speak, but in some models **backup heads** begin to work only when another head is ablated ([Wang et al., 2023](https://arxiv.org/abs/2211.00593)).
#
# Back to the chapter: [What heads learn](19_what_heads_learn.ipynb).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("In the twelve networks the numbers of this section hold."):
    late = rows["rate"] == 0.001
    nine = rows[~late]
    assert rows[late]["rows of the second map, most"].max() < 10
    assert nine["rows of the second map, least"].min() >= 29
    assert nine["second map, the diagonal, several"].max() < 0.5
    assert nine["second map, all 992 others, several"].min() > 0.95
    before = nine["the letter before it, nothing"]
    assert 0.255 < before.min() < before.max() < 0.475
    assert nine[["other, in the key", "previous, in the query"]].max(axis=None) < 0.105
    assert rows["two letters before it, nothing"].max() < 0.095
    assert rows["note from another text"].min() > 0.98
    keys = nine["previous, in the keys"]
    assert 0.465 < keys.min() < keys.max() < 0.765
    assert nine["previous-token head"].max() < 0.165
    assert (nine["all 1,024"] - nine["all 1,024, and other, in the keys"]).min() > 0.1
    assert (nine["other, in the query"] > 0.26).all()
    assert (nine["rows of the other map, least"] > 24).sum() == 3
    assert (nine["nothing"] - nine["the diagonal of the other head"]).max() < 0.012
    several = rows["first fall, several"]
    assert 0.525 < several.min() < several.max() < 0.595
    assert rows["first fall, several, by hand"].round(2).eq(0.25).all()
    nowhere = rows["first fall, several, no positions"]
    assert 0.445 < nowhere.min() < nowhere.max() < 0.485
    at_first = rows["first fall, the diagonal"]
    assert 0.065 < at_first.min() < at_first.max() < 0.225

with cu.guard("Letters with several followers wait for the head that looks two back."):
    for run in runs:
        result, curves = run.result, {name: dict(curve) for name, curve in run.curves.items()}
        one_at, two_at = (
            next((step for step, value in curves[name].items() if value > least), 9999)
            for name, least in (("one follower", 0.95), ("two back", 0.2))
        )
        assert result["one back"] > 0.9 and curves["two back"][one_at] < 0.15
        early = [value for step, value in curves["several followers"].items() if step < two_at]
        assert max(early) < 0.75
        if run.config["rate"] == 0.001:
            assert two_at == 9999 and result["two back"] < 0.1
        else:
            assert result["two back"] > 0.75

with cu.guard(
    "With one head in each layer, it looks one and two back, and learns the second fall, too."
):
    for run in cu.stored_runs("what_heads_learn", "one_head"):
        assert run.result["several"] > 0.93
        assert 0.55 < run.result["one back"] < 0.65 and 0.15 < run.result["two back"] < 0.25

with cu.guard(
    "Of the heads of layers 0–16, 16.0 costs most, and two others come near it with zeros."
):
    (costs_of,) = cu.stored_runs("real_weights", "each_alone")
    costs = {
        (layer, head): gave[0]
        for layer, row in enumerate(costs_of.examples[0]["gave"][:17])
        for head, gave in enumerate(row)
    }
    assert sorted(costs, key=costs.get)[-3:] == [(0, 5), (1, 3), (16, 0)]
    gave = cu.stored_runs("real_weights", "ablations", seed=9)[0].examples[0]["gave"]
    by_mean = [round(gave[f"{head}, by the mean"][2], 2) for head in ("16.0", "0.5", "1.3")]
    assert by_mean == [0.14, 0.28, 0.54]

# %% [markdown]
# ## References
#
# - Wang, K., Variengien, A., Conmy, A., Shlegeris, B. and Steinhardt, J. (2023).
#   [Interpretability in the wild: a circuit for indirect object identification in GPT-2 small](https://arxiv.org/abs/2211.00593).
#   ICLR.
# - Xiao, G. et al. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
