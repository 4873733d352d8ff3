# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Translating: real sentences, words and pieces
#
# Optional, about ten minutes.
# The sentences of [Translating](11_translating.ipynb) come from a grammar.
# Here the same class has read 40,000 sentence pairs that people wrote: what it reaches, what it says, whether subwords help, and what the score leaves out.
# The trainings were made beforehand.

# %%
import pandas as pd

import course_utils as cu
from course_utils.lessons.translating import real

cu.seed_everything(0)

# %% [markdown]
# ## What it reaches
#
# The pairs are from [Tatoeba](https://tatoeba.org), as paired by [manythings.org](https://www.manythings.org/anki/) (CC BY 2.0 FR), with at most ten tokens on either side; many English sentences have several translations.
# 500 English sentences are the test part, 500 others the validation part, **with all their translations**: no English sentence is in two parts.
# 40,000 of the other pairs are read, eight times.
#
# The network is the chapter's, 192 wide, with a dropout of 0.2 and label smoothing of 0.1.
# A French word is read and said by the same vector (**weight tying**).
# Words that occur only once are `<unk>`, and the network never says it.
#
# What is a baseline?
# The dullest translator has learned nothing by gradients.
# It looks up the training sentence that has most in common with the one that is asked for, rare words counting more, and says its French.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "BLEU on the 500 test sentences, in hundredths, against all their translations: the look-up has 17. What has the Transformer, with a beam of 4?",
    (0, 100),
    answer=40,
    wrong={
        "less": "The look-up says whole sentences that somebody else wrote. Which n-grams of the wanted sentence does it miss?",
        "more": "On the grammar's sentences it has more than 90. What do people write that a grammar does not?",
    },
    why="40. With one seed, once: how far another seed would move it is not measured.",
    within=8,
)

# %%
words = real.real_run("words")
memory = cu.stored_runs("translating", "translation_memory")[0].result
result = words.result
scored = ["", "_all"]  # against one translation, against all
reached = pd.DataFrame(
    {
        "look-up": [memory[f"test_bleu{one}"] for one in scored],
        "Transformer, greedily": [result[f"test_bleu{one}"] for one in scored],
        "Transformer, beam of 4": [result[f"test_bleu_beam{one}"] for one in scored],
    },
    index=["one translation", "all translations"],
).T
about = f"{result['parameters']:,.0f} parameters, trained on {words.date} by"
print(about, words.machine)
(100 * reached).round(1)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
real.show_real_curves()

# %% [markdown]
# BLEU and loss still improve in the eighth epoch, and the training loss is below the validation loss from the fourth on: the network begins to know its sentences better than others.
#
# Against one translation of each sentence BLEU is 36.4 with a beam, against all that the archive has, 1.4 on average, 39.9: of the very same output.
# So a BLEU score says little without its references and its tokens.
# Here a beam pays, with 1.4 and 1.9 points; on [the chapter's sentences](11_translating.ipynb#Whose-error?) it mostly did not.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Once, on real sentences: far above the look-up, and a beam of 4 pays."):
    assert reached.loc["Transformer, greedily"].min() > 2 * reached.loc["look-up"].max()
    assert result["test_bleu_beam"] > result["test_bleu"]
    assert result["test_bleu_beam_all"] >= 0.38

# %% [markdown]
# ## What it says
#
# The first twelve test sentences, whatever became of them.
# Beside each translation stands its own BLEU, of single words and pairs, against all its references.

# %%
looked_up = cu.stored_runs("translating", "translation_memory")[0].examples
table = [
    {
        "English": one["source"],
        "beam of 4": one["beam"],
        "BLEU": round(cu.bleu([one["beam"]], [one["references"]], max_order=2), 2),
        "a right answer": one["references"][0],
        "look-up": old["said"],
    }
    for one, old in zip(words.examples, looked_up, strict=True)
]
pd.set_option("display.max_colwidth", 60)
pd.DataFrame(table)

# %% [markdown]
# Two are exactly right.
# A French reader accepts two more, *j'aimerais pouvoir t'aider* and *quelqu'un m'a dit ça*, for which BLEU gives 0.55 and 0.00.
# And it gives 0.71 for *vivre n'est pas facile*, which has lost the word *here*.
# The score counts common words and pairs, not what they mean.
# For single sentences it is a poor judge; over 500 such errors partly cancel.
#
# The network's errors are of several kinds.
# *My mother is active* becomes *puissant*, powerful, and masculine.
# *Tom n'aime pas nous* is no French; greedily it says *tom ne nous aime pas*, which is right.
# *In all probability* has a word that it knows only as `<unk>`, and what it says instead is fluent, and about eyes: nothing in the output warns the reader.
# The look-up makes no errors of grammar, and answers other questions: *parlez-moi !*

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A right translation has 0.00, and one that lost a word more than 0.6."):
    scores = {row["beam of 4"]: row["BLEU"] for row in table}
    assert scores["quelqu'un m'a dit ça ."] == 0
    assert scores["vivre n'est pas facile ."] > 0.6
    assert sum(row["BLEU"] == 1 for row in table) == 2

# %% [markdown]
# ## Words or pieces?
#
# 73 of the 500 test sentences have a word that the network reads as `<unk>`.
# **Subwords** have no such words: rare ones are read and said in pieces ([Sennrich et al., 2016](https://arxiv.org/abs/1508.07909); how the pieces are found: [GPT](13_gpt_further.ipynb#Pieces-of-words)).
# The same network, the same pairs, the same number of steps; each language has up to 4,000 pieces.
# (*One*, *all*: translations that BLEU compares with.)

# %%
pieces = real.real_run("subwords")
versus = pd.DataFrame(
    {
        name: {
            "parameters": f"{run.result['parameters']:,.0f}",
            "French tokens read": f"{run.result['target_tokens']:,.0f}",
            "test sentences with <unk>": f"{run.result['unknown']:.0f}",
            "BLEU, greedily, one": f"{100 * run.result['test_bleu']:.1f}",
            "BLEU, beam, all": f"{100 * run.result['test_bleu_beam_all']:.1f}",
            "exactly right": f"{run.result['exact']:.2f}",
            "minutes": f"{run.result['training_seconds'] / 60:.0f}",
        }
        for name, run in (("words", words), ("subwords", pieces))
    }
)
versus

# %%
some = [1, 3, 6, 9]
pd.DataFrame(
    [{"English": words.examples[i]["source"], "words": words.examples[i]["beam"],
      "subwords": pieces.examples[i]["beam"]} for i in some]
)  # fmt: skip

# %% [markdown]
# No sentence has an unknown word any more, and each has more tokens to be said.
# Yet BLEU is 37.8 with a beam, against 39.9 in words.
# Each is a single seed, so two points say little; but in these two runs subwords do not pay.
# They do bring *here* back, and *in all probability* is now about the time of an arrival.
# And they bring an error that words cannot make: *acacacacle* is no word at all.
#
# What speaks against a general conclusion: both still improve in the eighth epoch; the network with subwords has fewer parameters, since its two tables are smaller; 4,000 pieces were not tuned; and the sentences are short and everyday.
# The losses of the two cannot be compared, because their tokens differ ([bits per character](13_gpt_further.ipynb#Bits-per-character) could be).
# The minutes are those of one thread of the processor named in section 1, while other work ran on it: upper bounds, and no comparison.
#
# Back to the chapter: [Translating](11_translating.ipynb).
# Next: [Training transformers](12_training_transformers.ipynb).

# %% [markdown]
# ### At full size
#
# The paper's base model has 6 + 6 layers of 512 features, 8 heads and 2,048 inside.
# `make gpu CHAPTER=11` trains it on all pairs of at most ten tokens, 20 epochs, where there is a GPU.
# The cell shows the run that is stored, or says that there is none.

# %% tags=["gpu"] jupyter={"source_hidden": true}
cu.stored_run("translating", "full_size")

# %% [markdown]
# ## References
#
# - Papineni, K., Roukos, S., Ward, T. and Zhu, W.-J.
#   (2002).
#   [BLEU: a method for automatic evaluation of machine translation](https://aclanthology.org/P02-1040/).
#   ACL.
# - Sennrich, R., Haddow, B. and Birch, A. (2016).
#   [Neural machine translation of rare words with subword units](https://arxiv.org/abs/1508.07909).
#   ACL.
