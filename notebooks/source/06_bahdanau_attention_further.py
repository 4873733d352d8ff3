# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Bahdanau attention: relatives and details
#
# What a first reader of [Bahdanau attention](06_bahdanau_attention.ipynb) may skip: what is behind the perfect scores of two lectures; maps of real sentences; a window that can only move forward; a decoder that attends to its own past; which parts of the chapter's model are Bahdanau's and which Luong's; and what Och and Ney count.
# Each section stands on its own.

# %%
import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    crossings,
    diagonal,
    links_both_ways,
    links_of,
    world_in,
)
from course_utils.lessons.sequence_to_sequence.real import real_run, show_real_maps
from course_utils.lessons.sequence_to_sequence.small_world import small_world

cu.seed_everything(0)

# %% [markdown]
# ## Four sentences with a perfect score
#
# Some lectures train this model on the first few hundred lines of the Tatoeba file, and score it by the BLEU of *go .*, *i lost .*, *he's calm .* and *i'm home .*.
# Here are two such trainings at their sizes, once each: two recurrent layers (the query is the state of the upper one), Adam at 0.005.
# Beside each answer stands what the model has read for this sentence, and below how many other sentences, made of words that it has read, are right.

# %%
lectures = cu.stored_runs("bahdanau_attention", "lecture")
for run in lectures:
    size = "\n{pairs} pairs, {width} wide, {passes} passes, seed {seed}"
    print(size.format(**run.config))
    for one in run.examples:
        read = " | ".join(one["read with"]) or "never read"
        print(f"  {one['English']:12} {one['said']:28} {read}")
    result = run.result
    print(f"  unread: {result['unread_right']:.0f} of {result['unread']:.0f} right")

# %% [markdown]
# 15 passes are 60 steps, and only *go .* is right; after 250 passes so are *i lost .* and *i'm home .*.
# These three are among the first 350 lines of the file, and were read; *he's calm .* is nowhere in the file, and wrong.
# So a perfect score for the three tells of memory.
# Of other sentences, made of words that were read, hardly any are right.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At most three of the four sentences are right, and only if the model has read them."
):
    for run in lectures:
        assert [bool(one["read with"]) for one in run.examples] == [True, True, False, True]
        assert run.result["unread_right"] < 0.1 * run.result["unread"]
    longer = lectures[-1].examples
    assert [one["said"] in one["read with"] for one in longer] == [True, True, False, True]

# %% [markdown]
# ## Maps of real sentences
#
# The chapter's sentences come from a grammar.
# Two translators were also trained on 25,000 real pairs ([Tatoeba](https://www.manythings.org/anki/), up to ten tokens), one with a fixed context and one with attention: two layers of 256, one seed each, four epochs.
# Four long test sentences, and what each makes of them:

# %%
real = {"fixed": real_run(attention=False), "attention": real_run(attention=True)}
scores = {name: round(run.result["test_bleu"], 3) for name, run in real.items()}
scores["look-up"] = round(
    cu.stored_runs("sequence_to_sequence", "look_up")[0].result["test_bleu"], 3
)
print("test BLEU", scores)
said = [run.examples for run in real.values()]
for fixed, attending in zip(*said, strict=True):
    print("\n" + " ".join(attending["source"]))
    print("  fixed     ", " ".join(fixed["said"]))
    print("  attention ", " ".join(attending["said"]))
    print("  wanted    ", attending["references"][0])

# %%
show_real_maps()

# %% [markdown]
# Test BLEU is 0.116 with a fixed context and 0.166 with attention, once each; a look-up of the nearest training sentence has 0.141.
# None of the eight translations is right, so neither is a translator yet.
# The large weights (dark) run roughly along the diagonal, as a guess would; `<unk>` is a rare word. *mes parents* attends to *my parents*; the full stop attends to a word before the English one in all four.

# %% [markdown]
# ### At full size
#
# `make gpu CHAPTER=06` trains both translators on all pairs of at most ten tokens, ten epochs each, where there is a GPU.
# The cell shows the runs that are stored, or says that there are none.

# %% tags=["gpu"]
[
    cu.stored_run("bahdanau_attention", "full_size", attention=attention)
    for attention in (False, True)
]  # fmt: skip

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In these two runs attention has the higher BLEU, and no full stop attends mostly to a full stop."
):
    assert real["attention"].result["test_bleu"] > real["fixed"].result["test_bleu"]
    for one in real["attention"].examples:
        assert one["said"][-1] == one["source"][-1] == "."
        assert max(one["weights"][-1]) > one["weights"][-1][-1]

# %% [markdown]
# ## A window that moves forward
#
# A year before Bahdanau's first version, [Graves (2013)](https://arxiv.org/abs/1308.0850) let a network write by hand what it was given as text.
# His window is **location-based**: it does not compare the state with the letters.
# The network says how far to move, and how wide and how strong the window is:
#
# $$\kappa_t^k = \kappa_{t-1}^k + e^{\hat\kappa_t^k},\qquad \phi_t(u) = \sum_k \alpha_t^k\, e^{-\beta_t^k(\kappa_t^k - u)^2}.$$
#
# As $e^{\hat\kappa}$ is positive, the window never goes back.
# For handwriting this is right.
# For speech, too: [Chan et al. (2015)](https://arxiv.org/abs/1508.01211) (*Listen, attend and spell*) compare contents, on an encoder that shortens the recording eightfold, and their maps come out as a diagonal; Chorowski et al. (2015) give the score both, the content and where the last weights were.
# Here is one such window, with six steps of equal length:

# %%
move = 0.9  # try 0.1 … 2.0
sharpness = 1.5  # try 0.1 … 5.0
kappa = torch.arange(1, 7) * move  # six steps
letters = torch.arange(8)
window = torch.exp(-sharpness * (kappa[:, None] - letters) ** 2)
pd.DataFrame(window.tolist(), index=[f"step {t}" for t in range(1, 7)]).round(2)

# %% [markdown]
# The largest weight moves to the right, about one letter a step.
# The rows need not sum to 1.
#
# How far would the *best* such window get in translation?
# For each test sentence of the chapter we choose, with the gold links before our eyes, for each French word one English word, such that the choice never goes back, and hits as many gold links as possible.
# No training is needed: it is an upper bound.


# %%
def best_forward(pair):
    """As a map: source words that never go back and hit most gold links."""
    m, n = len(pair.source), len(pair.target)
    most = [[0] * m for _ in range(n + 1)]  # most hits so far, ending at s or before
    for t in range(n):
        for s in range(m):
            here = most[t][s] + ((s, t) in pair.alignment)
            most[t + 1][s] = max(here, most[t + 1][s - 1] if s else 0)
    chosen, s = [], m - 1
    for t in reversed(range(n)):
        while s and most[t + 1][s] == most[t + 1][s - 1]:
            s -= 1
        chosen.append(s)
    return torch.eye(m)[chosen[::-1]]


# %%
def share_on_gold(found, pairs):
    """Share of target words whose largest weight lies on a gold link."""
    hits = [
        (int(words[t].argmax()), t) in pair.alignment
        for words, pair in zip(found, pairs, strict=True)
        for t in range(len(words))
    ]
    return sum(hits) / len(hits)


# %%
test = small_world("fr").test
kinds = {"all": test, "links cross": [p for p in test if crossings(p)]}
kinds["no link crosses"] = [p for p in test if not crossings(p)]
kinds["all, backwards"] = world_in("backwards").test
bound = {
    name: [len(pairs), share_on_gold([best_forward(p) for p in pairs], pairs)]
    for name, pairs in kinds.items()
}
shares = pd.DataFrame(bound, index=["sentences", "on gold, at best"]).T.round(3)
shares.astype({"sentences": int})

# %% [markdown]
# The links of 126 of the 400 sentences cross.
# There such a window hits at most 0.870 of the words, and 0.955 over all: one word in twenty needs to go back.
# Backwards, as in the chapter's first picture, it misses more than two in three.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A window that only moves forward misses the links that cross, and no others."):
    assert bound["no link crosses"][1] == 1
    assert bound["links cross"][1] < bound["all"][1] < 1
    assert bound["all, backwards"][1] < 1 / 3

# %% [markdown]
# ## A decoder that attends to its own past
#
# A recurrent decoder squeezes what it has *written* into one vector, as the encoder of [Sequence to sequence](05_sequence_to_sequence.ipynb) did with what it has read.
# It may attend to that, too: at step $t$ the keys are its own states $s_0,\dots,s_{t-1}$ (Cheng et al., 2016, for a language model; Daniluk et al., 2017, find that such a network mostly attends to the last five).
# In code it is the chapter's attention with another memory, which grows by a row each step:


# %%
class OwnPast(nn.Module):
    """A GRU whose every step begins by attending to all its states so far."""

    def __init__(self, size):
        super().__init__()
        self.attention = cu.AdditiveAttention(size, size, size)
        self.cell = nn.GRUCell(2 * size, size)

    def forward(self, x):
        """(b, steps, size) → states (b, steps + 1, size), maps (b, steps, steps)."""
        states, maps = [torch.zeros_like(x[:, 0])], []
        for now in x.unbind(dim=1):
            past = torch.stack(states, dim=1)  # (batch, steps so far, size)
            query = states[-1][:, None]
            weights = self.attention.scores(query, past).softmax(dim=-1)  # b, 1, so far
            context = (weights @ past)[:, 0]
            states.append(self.cell(torch.cat([now, context], dim=-1), states[-1]))
            missing = x.shape[1] - past.shape[1]
            maps.append(nn.functional.pad(weights[:, 0], (0, missing)))
        return torch.stack(states, dim=1), torch.stack(maps, dim=1)


# %%
steps = 6  # try 2 … 12
writer = OwnPast(8)
states, own_maps = writer(torch.randn(1, steps, 8))
pd.DataFrame(own_maps[0].tolist(), columns=[f"s{t}" for t in range(steps)]).round(2)

# %% [markdown]
# The map is a triangle: row $t$ has $t+1$ weights that sum to 1, nearly equal here, as nothing is trained.
# This is a [causal mask](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend) that nobody wrote; the future does not exist yet.
# Now suppose that somebody hands us all states at once.
# Then the loop is not needed, and one masked attention gives the same maps:

# %%
all_states = states[:, :-1]
all_scores = writer.attention.scores(all_states, all_states)
at_once = cu.masked_softmax(all_scores, cu.causal_mask(steps))
print(f"equal to 1e-6: {((at_once - own_maps).abs().max() < 1e-6).item()}")

# %% [markdown]
# But here nobody can hand them over: each state needs the attention before it.
# A network whose states do *not* wait for each other, and attend to each other all the same, is the subject of [Self-attention](07_self_attention.ipynb).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Once the states are known, attention step by step gives the same as attention with a causal mask."
):
    assert (at_once - own_maps).abs().max() < 1e-6
    assert (own_maps.sum(dim=-1) - 1).abs().max() < 1e-5
    assert not own_maps[0].triu(1).any()

# %% [markdown]
# ## Whose decoder is it?
#
# | part | Bahdanau et al. (2015) | Luong et al. (2015) | the chapter |
# |---|---|---|---|
# | the query is | the state before the step, $s_{t-1}$ | the state after it, $s_t$ | $s_{t-1}$ |
# | score | additive | dot $s\cdot h$, general $sMh^\top$, concat | additive |
# | the context goes | into the GRU, and to the output | to the output; to the next step ("input feeding") | into the GRU, and to the output |
# | before the logits | maxout of $s_{t-1}$, $y_{t-1}$, $c_t$ | $\tanh([s_t, c_t]W_C)$ | $\tanh([s_t, c_t]W_C + b)$, Luong's |
# | the decoder begins with | the backward encoder's state at the first word | the encoder's last state | both directions' last states |
# | where it may attend | everywhere | everywhere, or near a position $p_t$ ("local") | everywhere |
#
# So the chapter's translator is Bahdanau's in what matters here, attention, and Luong's at the output.
# (Their GRUs differ from PyTorch's, too: [The papers' models](05_sequence_to_sequence_further.ipynb#The-papers'-models).)
# Luong's local attention predicts a position $p_t$ from the state and multiplies the weights by a Gaussian around it: content and location at once, as in Graves's window, but free to go back.
#
# What the three scores cost is counted in [What a score costs](03_scoring_functions_further.ipynb#What-a-score-costs).

# %% [markdown]
# ## Sure and possible links
#
# [Och and Ney (2003)](https://aclanthology.org/J03-1002/) let two people link words by hand, and mark links as **sure** ($S$) or merely **possible** ($P\supseteq S$): a function word may go with several.
# Their rate does not punish a possible link that is found, and does not ask for it either:
#
# $$\mathrm{AER} = 1 - \frac{|A\cap S| + |A\cap P|}{|A| + |S|}.$$
#
# With $P = S$, as in the chapter, it is $1 - 2|A\cap S|/(|A|+|S|)$, one minus the F1 score.
# An example: sure are 0-0 and 1-1, possible is 0-1 as well.


# %%
def rate(found, sure, possible):
    return 1 - (len(found & sure) + len(found & possible)) / (len(found) + len(sure))


sure = {(0, 0), (1, 1)}
possible = sure | {(0, 1)}
answers = {
    "the sure links": sure,
    "all three": possible,
    "one of them, possible": {(0, 1)},
    "one sure link": {(0, 0)},
}
pd.DataFrame(
    {
        name: [rate(found, sure, possible), rate(found, sure, sure)]
        for name, found in answers.items()
    },
    index=["AER", "AER without P"],
).T.round(2)

# %% [markdown]
# Finding the possible link as well costs nothing, and without $P$ it costs 0.2.
# A single possible link has 0.67, better than nothing found.
#
# The chapter's rule is one choice among several: the largest weight of each French word, or a link as well for each English word that is left over.
# The diagonal guess and equal weights, on the same 400 sentences, under both:

# %%
rules = {"largest weight": links_of, "and what is left over": links_both_ways}
gold = [pair.alignment for pair in test]
guesses = {
    "diagonal": [diagonal(pair) for pair in test],
    "uniform": [torch.ones(len(p.target), len(p.source)) for p in test],
}
under = {
    guess: {
        name: alignment_error_rate([rule(words) for words in maps], gold)
        for name, rule in rules.items()
    }
    for guess, maps in guesses.items()
}
pd.DataFrame(under).round(3)

# %% [markdown]
# So a network's rate is compared with a guess under *its* rule, or not at all.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A possible link costs nothing, and the error rate of a guess depends on the rule."):
    assert rate(possible, sure, possible) == 0 < rate(possible, sure, sure)
    assert under["diagonal"]["and what is left over"] - under["diagonal"]["largest weight"] > 0.005

# %% [markdown]
# Back to the chapter: [Bahdanau attention](06_bahdanau_attention.ipynb).
# Next: [Self-attention](07_self_attention.ipynb).

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   Appendix A: the decoder's formulas.
# - Chan, W., Jaitly, N., Le, Q. V. and Vinyals, O. (2015).
#   [Listen, attend and spell](https://arxiv.org/abs/1508.01211).
# - Cheng, J., Dong, L. and Lapata, M. (2016).
#   [Long short-term memory-networks for machine reading](https://arxiv.org/abs/1601.06733).
#   EMNLP.
# - Chorowski, J., Bahdanau, D., Serdyuk, D., Cho, K. and Bengio, Y. (2015).
#   [Attention-based models for speech recognition](https://arxiv.org/abs/1506.07503).
#   NeurIPS.
# - Daniluk, M., Rocktäschel, T., Welbl, J. and Riedel, S. (2017).
#   [Frustratingly short attention spans in neural language modeling](https://arxiv.org/abs/1702.04521).
#   ICLR.
# - Graves, A. (2013).
#   [Generating sequences with recurrent neural networks](https://arxiv.org/abs/1308.0850).
#   Section 5.1: the window.
# - Luong, M.-T., Pham, H. and Manning, C. D. (2015).
#   [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025).
#   EMNLP.
# - Och, F. J. and Ney, H. (2003).
#   [A systematic comparison of various statistical alignment models](https://aclanthology.org/J03-1002/).
#   Computational Linguistics 29(1).
