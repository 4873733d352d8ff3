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
# [Bahdanau attention](06_bahdanau_attention.ipynb) keeps to one model and one small world.
# Here we repeat the trainings of two lectures, and give attention real sentences, few of them and very many.
# You can train it on a file of your own pairs, too.
# Then we meet three relatives: a window that only moves forward, a decoder that attends to its own past, and Luong's decoder.
# Each section can be read on its own.

# %% jupyter={"source_hidden": true}
from textwrap import shorten

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.data.translation import PairLoader, load_pairs, split_by_source
from course_utils.lessons.bahdanau_attention.alignment import (
    crossings,
    world_in,
)
from course_utils.lessons.sequence_to_sequence.real_translation import real_run, show_real_maps
from course_utils.lessons.sequence_to_sequence.small_world import small_world, vocabularies_of

cu.seed_everything(0)

# %% [markdown]
# ## Four sentences with a perfect score
#
# Some lectures train this model on the first few hundred lines of the Tatoeba file, and report the BLEU of *go .*, *i lost .*, *he's calm .*, and *i'm home .*
# The four can reach a perfect 1.
# What does a perfect score say here?
# We repeat two such trainings at their sizes, with two recurrent layers (the query is the state of the upper one) and Adam at a learning rate of 0.005.
# The larger model trains for 15 epochs on 512 pairs, and words that occur only once become `<unk>`.
# The smaller model trains for 250 epochs on 600 pairs.
# For each sentence we show the answers, and what the training set has for it.

# %%
lectures = [
    *cu.stored_runs("bahdanau_attention", "lecture", min_freq=2),
    *cu.stored_runs("bahdanau_attention", "lecture", passes=250),
]
four = [example["English"] for example in lectures[0].examples]
answers = {
    f"{run.config['width']} wide, {run.config['passes']} epochs, seed {run.config['seed']}": [
        shorten(example["French"], 20, placeholder=" …") for example in run.examples
    ]
    for run in lectures
}
answers["in the training set"] = [
    " | ".join(example["read with"]) or "nothing" for example in lectures[-1].examples
]
pd.DataFrame(answers, index=four).T

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=5.5, height=2.6,
    alt="Training loss of the larger model over 15 epochs, for three seeds. Two curves fall from about 5 to below 0.5, the third to 1.1.",
)  # fmt: skip
for run in lectures[:3]:
    ax.plot(*zip(*run.curves["train_loss"], strict=True), label=f"seed {run.config['seed']}")
ax.set(xlabel="epochs (256 wide)", ylabel="training loss per token", ylim=(0, None))
ax.legend(fontsize=8)
fig

# %% [markdown]
# The loss falls as it should, and after 15 epochs, which are only 60 steps, one or two of the four sentences are right.
# After 250 epochs three are right.
# But these three are in the training set, whereas *he's calm .* is nowhere in the file and comes out wrong.
# So a perfect score on the three shows only what the model remembers: it **overfits**.
# Of new sentences, made only of words from the training set, hardly any are right (2 of 40 and 4 of 89 at best).
#
# The vocabulary matters at this size.
# If the larger model keeps the words that occur only once, it has 494 French words instead of 165, and only *go .* is right (in one training).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("At most three of the four sentences are right, and only those of the training set."):
    for run in cu.stored_runs("bahdanau_attention", "lecture"):
        assert [bool(example["read with"]) for example in run.examples] == [True, True, False, True]
        assert run.result["unread_right"] < 0.1 * run.result["unread"]
        assert all(e["read with"] for e in run.examples if e["French"] in e["read with"])

# %% [markdown]
# ## Maps of real sentences
#
# The chapter's sentences come from a grammar, and these are real ones.
# We trained two translators on 25,000 pairs ([Tatoeba](https://www.manythings.org/anki/), up to ten tokens), one with a fixed context and one with attention, each with two layers of 256, for four epochs.
# The next cell prints four long test sentences, and what each of the two makes of them.

# %%
real = {"fixed": real_run(attention=False), "attention": real_run(attention=True)}
scores = {name: round(run.result["test_bleu"], 3) for name, run in real.items()}
look_up = cu.stored_runs("sequence_to_sequence", "look_up")[0]
scores["look-up"] = round(look_up.result["test_bleu"], 3)
print("test BLEU", scores)
for fixed, attending in zip(*[run.examples for run in real.values()], strict=True):
    print("\n" + " ".join(attending["source"]))
    print("  fixed     ", " ".join(fixed["said"]))
    print("  attention ", " ".join(attending["said"]))
    print("  wanted    ", attending["references"][0])

# %%
show_real_maps()

# %% [markdown]
# None of the eight translations is right, so neither of the two is a translator yet.
# Attention scores a little higher than a look-up of the nearest training sentence, and the fixed context scores lower.
# The large weights run roughly along the diagonal, just as a guess would (`<unk>` is a rare word).
# We also see *mes parents* attend to *my parents*, whereas the full stop attends to the word before the English one in all four.

# %% [markdown]
# ### At full size
#
# The two may only have needed more to read.
# So we trained both on all 139,842 pairs of at most ten tokens, for ten epochs.
# On an H200 this took six minutes with a fixed context and nine with attention, and `make gpu CHAPTER=06` repeats it where there is a GPU.
# Attention makes the training slower, because at each step the decoder has to score every source word before it can go on.

# %% tags=["gpu"] jupyter={"source_hidden": true}
large = [
    cu.stored_run("bahdanau_attention", "recurrent_on_all_pairs", attention=attention)
    for attention in (False, True)
]
large

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.4, height=3.0,
    alt="Losses over ten epochs at full size. With attention the training loss falls from 4.1 to 1.26 and the validation loss "
    "from 2.7 to 1.62; with a fixed context they fall to 1.40 and 1.78. Both validation curves are nearly flat at the end.",
)  # fmt: skip
for run, color, name in zip(large, ("wrong", "key"), ("fixed context", "attention"), strict=True):
    ax.plot(*zip(*run.curves["train_loss"], strict=True), "--", color=cu.COLORS[color])
    ax.plot(*zip(*run.curves["val_loss"], strict=True), color=cu.COLORS[color], label=name)
ax.set(
    xlabel="epochs (dashed: training, solid: validation)",
    ylabel="loss per token",
    ylim=(1, None),
    xticks=range(1, 11),
)
ax.legend()
fig

# %% [markdown]
# With a fixed context BLEU is now 0.383 on the validation set, and **with attention it is 0.462**.
# On sentences from the training set it is 0.497 and 0.560.
# So with enough to read both become translators of short sentences, and attention is ahead.
# Each was trained only once, at one rate, and the two models differ in nothing but the attention with its 200,000 parameters.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("On real sentences attention has the higher BLEU, with few pairs and with all."):
    few = [real[kind].result["test_bleu"] for kind in ("fixed", "attention")]
    assert few[0] < look_up.result["test_bleu"] < few[1]
    assert [round(run.result["held_out_bleu"], 3) for run in large] == [0.383, 0.462]
with cu.guard("In the four maps no full stop attends mostly to a full stop."):
    for example in real["attention"].examples:
        assert example["said"][-1] == example["source"][-1] == "."
        assert max(example["weights"][-1]) > example["weights"][-1][-1]

# %% [markdown]
# ## Pairs of your own
#
# `load_pairs` reads pairs of sentences in any two languages: a text file with a pair a line, and a tab between the two sentences.
# A table that was saved as `.csv` works as well.
# [Tatoeba](https://tatoeba.org/downloads) has pairs for hundreds of languages, in files with numbers between the sentences, which are read with `columns=(1, 3)`.
#
# The next cell reads the course's Spanish sentences, and takes a part of them aside for validation.
# What it gives goes into `cu.Trainer` and `cu.translate` as in [the chapter](06_bahdanau_attention.ipynb#Training-it).

# %%
path = "../data/translation/grammar_es.tsv"  # put in a file of your own
pairs = load_pairs(path, max_tokens=12)
train, val = split_by_source(pairs, [max(1, len(pairs) // 10)])
source_vocab, target_vocab = vocabularies_of(train)
loader = PairLoader(train, source_vocab, target_vocab)
print(len(train), "pairs, such as", train[0].source, train[0].target)
unknown = [token not in target_vocab for pair in val for token in pair.target]
print(f"unknown target words in validation: {sum(unknown) / len(unknown):.1%}")

# %% [markdown]
# Is a large share of the words unknown?
# Chinese, Japanese and Thai put no spaces between words, so that a whole sentence looks like one word, and `Vocabulary` warns you.
# Then cut the sentences into letters with `cut=list`, or into pieces of words ([subwords](13_gpt_further.ipynb#Pieces-of-words)).
# If only the target needs it, write `cut=(tokenize, list)`.

# %% [markdown]
# ## A window that moves forward
#
# Bahdanau's decoder may look anywhere.
# A year earlier, [Graves (2013)](https://arxiv.org/abs/1308.0850) taught a network to write by hand, and a hand never needs to go back.
# His network doesn't compare its state with the letters at all.
# At each step it only says how far to move a window along the text, and how wide and how strong the window is, which is **location-based** attention:
#
# $$\kappa_t^k = \kappa_{t-1}^k + e^{\hat\kappa_t^k},\qquad \phi_t(u) = \sum_k \alpha_t^k\, e^{-\beta_t^k(\kappa_t^k - u)^2}.$$
#
# Since $e^{\hat\kappa}$ is positive, the window can't go back.
# Speech runs forward as well.
# In *Listen, attend and spell* ([Chan et al., 2015](https://arxiv.org/abs/1508.01211)) the score compares contents, on an encoder that shortens the recording eightfold, and the maps come out as a diagonal all the same, while Chorowski et al. (2015) score both the content and the position of the last weights.
#
# The table follows one such window through six steps of equal length.

# %%
move = 0.9  # try 0.1 … 2.0
sharpness = 1.5  # try 0.1 … 5.0
kappa = torch.arange(1, 7) * move  # six steps
letters = torch.arange(8)
window = torch.exp(-sharpness * (kappa[:, None] - letters) ** 2)
pd.DataFrame(window.tolist(), index=[f"step {t}" for t in range(1, 7)]).round(2)

# %% [markdown]
# The largest weight moves to the right by about one letter a step, and the rows need not sum to 1.
#
# How far the *best* such window would get in translation, we can find out without any training.
# For each test sentence of the chapter we look at the gold links, and choose an English word for each French word, so that the choice never goes back and hits as many links as possible.
# No window that moves forward can do better.


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
# The links of 126 of the 400 sentences cross, and there even the best window misses about one word in eight.
# Over all sentences one word in twenty needs to go back.
# Backwards, as on the chapter's first screen, the window misses more than two words in three.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A window that only moves forward misses the links that cross, and no others."):
    assert bound["no link crosses"][1] == 1
    assert bound["links cross"][1] < bound["all"][1] < 1
    assert bound["all, backwards"][1] < 1 / 3

# %% [markdown]
# ## A decoder that attends to its own past
#
# In the chapter the decoder attends to what it *reads*, but it still squeezes what it has *written* into one vector.
# It can attend to that as well.
# At step $t$ the keys are then its own states $s_0,\dots,s_{t-1}$ (Cheng et al., 2016, do this in a language model, and Daniluk et al., 2017, find that such a network mostly attends to the last five).
# In code it is the chapter's attention with another memory, which grows by a row each step.


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
# The map is a triangle.
# Row $t$ has $t+1$ weights that sum to 1, and they are nearly equal because nothing is trained.
# It looks like a [causal mask](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend), but nobody wrote a mask, because the future simply doesn't exist yet.
#
# Now suppose that somebody hands us all the states at once.
# Then we don't need the loop, since one masked attention gives the same maps.

# %%
all_states = states[:, :-1]
all_scores = writer.attention.scores(all_states, all_states)
at_once = cu.masked_softmax(all_scores, cu.causal_mask(steps))
print(f"equal to 1e-6: {((at_once - own_maps).abs().max() < 1e-6).item()}")

# %% [markdown]
# Here nobody can hand the states over, because each state needs the attention before it.
# What if the states did *not* wait for each other, and attended to each other all the same?
# This is [self-attention](07_self_attention.ipynb).

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
# Two papers of 2015 gave decoders an attention, and the chapter's decoder takes something from each.
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
# So the attention of the chapter's translator is Bahdanau's, and its output layer is Luong's.
# Luong's local attention predicts a position $p_t$ from the state and multiplies the weights by a Gaussian around it, which combines content and location as Graves's window does, but is free to go back.
# We count what the three scores cost in [What a score costs](03_scoring_functions_further.ipynb#What-a-score-costs).

# %% [markdown] tags=["next"]
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
