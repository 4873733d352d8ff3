# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From GPT to an assistant: judges who disagree, and your own text
#
# This page continues [From GPT to an assistant](21_from_gpt_to_assistant.ipynb).
# First we ask what our small model learns from judges who disagree.
# Then SmolLM2 learns a text, or just reads it, and you can try both with a text of your own.
# At the end we look at what a system prompt does, and at how often SmolLM2 is right when it is sure.

# %%
import textwrap

import pandas as pd

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.lessons.from_gpt_to_assistant import chatting, own_text, preferences
from course_utils.lessons.real_weights import smollm

cu.seed_everything(0)

# %% [markdown]
# ## Judges who disagree
#
# In [the chapter](21_from_gpt_to_assistant.ipynb#Which-of-two-answers-is-better?) all judges preferred the polite answer to the long-winded one.
# Now suppose that the polite answer wins in only three of four pairs.
# How polite does a model become that learns from such judges?
#
# If we **fine-tune** it on the winners, the answer is easy: three in four winners are polite, so it learns to be polite three times in four.
#
# For **[DPO](C_glossary.ipynb#direct-preference-optimization)** we need its formula.
# Let *y*⁺ be the polite answer, whether it wins or not.
# It wins in three of four pairs, so the mean loss is −¾ ln σ(*m*) − ¼ ln σ(−*m*).
# This is smallest where σ(*m*) = ¾, that is, where the model expects the polite answer to win just as often as it does.
# So the margin stops at *m* = ln 3.
# What does this mean for the answers?
# The third of the chapter's four steps says
#
# $$\begin{aligned} m &= \beta \left( \ln \frac{\pi(y^+)}{\pi_0(y^+)} - \ln \frac{\pi(y^-)}{\pi_0(y^-)} \right) \\[4pt] &= \beta \left( \ln \frac{\pi(y^+)}{\pi(y^-)} - \ln \frac{\pi_0(y^+)}{\pi_0(y^-)} \right) \end{aligned}$$
#
# The second line has the same four logarithms in another order, so that each fraction compares two answers of *one* model.
# Such a fraction is called the **odds** of the polite answer: how many times as probable is it as the long-winded one?
# With *m* = ln 3 we can solve for the odds after the training:
#
# $$\frac{\pi(y^+)}{\pi(y^-)} = 3^{1/\beta} \cdot \frac{\pi_0(y^+)}{\pi_0(y^-)}$$
#
# **Fine-tuning copies the judges' proportions. DPO multiplies the odds that the model had before, and β says by how much.**

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Before the training one answer in four is polite and the others are long-winded. Judges prefer the polite one in three of four pairs. By the formula, how many answers are polite after DPO with β = 1?",
    ["half of them", "three in four", "nearly all of them"],
    answer="half of them",
    wrong={
        "three in four": "That is what fine-tuning on the winners gives, wherever it begins. DPO begins with the odds of the reference. By what does it multiply them?",
        "nearly all of them": "By the formula that would happen with β = 0.1, where the factor is 3 to the power of 10. What is the factor if β is 1?",
    },
    why="One in four means odds of 1/3. With β = 1 they are multiplied by 3, and 1/3 · 3 = 1 is one to one.",
)

# %% [markdown]
# Does our small assistant follow the formula?
# About three in ten of its answers are polite if we **draw** each word by its probability.
# (If it takes the likeliest word, each answer begins with "Well".)
#
# We train it with such judges and draw its answers.
# Each bar splits them into polite ones, long-winded ones, and those that are neither.
# A bar is the mean of three networks, and each dot is the polite share of one.
# The line across a bar shows where the border between polite and long-winded should be, by the judges' three in four or by the formula.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
SLUG = "from_gpt_to_assistant"
BETAS = (0.1, 0.25, 0.5, 1.0)


def judged(**config):
    """The stored results of three networks."""
    return [run.result for run in cu.stored_runs(SLUG, "judged", **config)]


def mean(results, name):
    """The mean of a result over networks."""
    return sum(result[name] for result in results) / len(results)


alone = {beta: judged(loss="margin", beta=beta, rate=0.0001) for beta in BETAS}
copied = judged(loss="likelihood")


def of_both(results, prefix=""):
    """The share of polite answers among those that are polite or long-winded."""
    polite, long = (mean(results, prefix + part) for part in ("polite", "long"))
    return polite / (polite + long)


expected = {
    beta: preferences.share_at_optimum(beta, before=of_both(copied, "before, ")) for beta in BETAS
}
BARS = {
    "before": (copied, "before, "),
    "fine-\ntuned": (copied, ""),
    **{f"DPO,\nβ = {beta:g}": (alone[beta], "") for beta in reversed(BETAS)},
}
PARTS = {"polite": "plum", "long": "line", "other": "rule"}
fig, ax = cu.subplots(
    width=4.2, height=3.0,
    alt="Six bars of drawn answers, each split into polite, long-winded and neither. Before: 0.27 polite, 0.67 long-winded. Fine-tuned: 0.73 and 0.25. DPO with β = 1: 0.52 and 0.41; with β = 0.5: 0.72 and 0.2; with β = 0.25: 0.56 and 0.03; with β = 0.1: 0.53 and 0. With the two small β more than 0.4 are neither. In each bar the border between polite and long-winded is at a line.",
)  # fmt: skip
for place, (results, prefix) in enumerate(BARS.values()):
    bottom = 0.0
    for part, color in PARTS.items():
        share = mean(results, prefix + part)
        label = (
            None if place else {"polite": "polite", "long": "long-winded", "other": "neither"}[part]
        )
        ax.bar(place, share, 0.7, bottom, color=cu.COLORS[color], label=label)
        bottom += share
    spread = [place + 0.14 * (i - 1) for i in range(len(results))]
    ax.plot(spread, [each[prefix + "polite"] for each in results], "o", markersize=4, color=cu.COLORS["paper"], markeredgecolor=cu.COLORS["ink"])  # fmt: skip
of_rule = [0.75, *(expected[beta] for beta in reversed(BETAS))]
for place, (share, (results, _)) in enumerate(
    zip(of_rule, list(BARS.values())[1:], strict=True), 1
):
    ax.hlines(share * (1 - mean(results, "other")), place - 0.45, place + 0.45, color=cu.COLORS["ink"], linewidth=2)  # fmt: skip
ax.set_xticks(range(len(BARS)), list(BARS), fontsize=8)
ax.set(ylabel="Share of drawn answers", ylim=(0, 1.25))
ax.set_yticks([0, 0.5, 1])
ax.legend(loc="upper center", ncols=3, fontsize=8)
fig

# %% [markdown]
# **The formula is right about the two answers, and silent about all others.**
# The border is where it should be at each β, but with a small β nearly half of the drawn answers are neither, and the networks differ widely.
# Four of them, from a network with β = 0.1:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
(smallest,) = cu.stored_runs(SLUG, "judged", loss="margin", beta=0.1, agree=0.75, rate=0.0001, seed=0)  # fmt: skip
broken = list(dict.fromkeys(smallest.examples[0]["others"]))[:4]
print(*broken, sep="\n")

# %% [markdown]
# With β = 0.1 the odds have to grow by a factor of 59,049, which is 3 to the power of 10.
# One way to make a long-winded answer so improbable is to begin with "Well" and then to break off.
# The judges never saw a broken answer, so nothing in their choices speaks against it.
#
# What is β good for, then?
# In the chapter it was the price for answering differently than before.
# Does a high price protect the answers?
# We let all judges agree again, and train with small steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
agreed = {
    "DPO, β = 0.1, 600 steps": judged(agree=1.0, loss="margin", beta=0.1, steps=600),
    "DPO, β = 5, 600 steps": judged(agree=1.0, loss="margin", beta=5.0),
    "DPO, β = 0.1, 35 steps": judged(agree=1.0, loss="margin", beta=0.1, steps=35),
    "with cross-entropy, 600 steps": judged(agree=1.0, loss="margin and likelihood"),
}
SHOWN = {"right": "likeliest answer right", "polite": "drawn: polite", "other": "drawn: neither"}
of_price = pd.DataFrame(
    {
        title: {column: mean(results, name) for name, column in SHOWN.items()}
        for title, results in agreed.items()
    }
).T
of_price.rename_axis("judges who agree").map("{:.2f}".format)

# %% [markdown]
# **With β = 5 the facts stayed, and half of the drawn answers lost their form. The cross-entropy kept both.**
# But a large β isn't needed for this: stopped after 35 steps, β = 0.1 makes the model about as polite, and breaks one drawn answer in thirteen.
# (If the judges always agree, the loss falls as long as the margin grows, whatever β is.)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Where judges disagree, fine-tuning copies them, and DPO divides whole answers by its formula, but with a small β many are neither."
):
    assert 0.25 < of_both(copied, "before, ") < 0.35
    assert abs(of_both(copied) - 0.75) < 0.02 and mean(copied, "other") < 0.05
    for beta, results in alone.items():
        assert len(results) == 3 and abs(of_both(results) - expected[beta]) < 0.03
        assert 0.06 < mean(results, "other") < 0.09 if beta >= 0.5 else mean(results, "other") > 0.4
    assert all(each["other"] > 0.3 and each["long"] < 0.01 for each in alone[0.1])
    assert sum(text.startswith("Well") for text in broken) >= 2
    assert 3**10 == 59_049
    greedy = [run.curves["polite"][0] for run in cu.stored_runs(SLUG, "preferring")]
    assert all(point == [0, 0] for point in greedy)
    for beta in BETAS:
        whole = judged(loss="margin and likelihood", agree=0.75, beta=beta)
        assert 0.96 < 1 - mean(whole, "other") < 0.985
        assert beta > 0.1 or 0.88 < mean(whole, "polite") < 0.93

with cu.guard(
    "With agreeing judges a large β breaks half of the drawn answers, a short training about as polite few, and the cross-entropy hardly any."
):
    low, high, stopped, both = agreed.values()
    assert all(each["right"] > 0.9 and each["other"] < 0.1 for each in stopped)
    assert abs(mean(stopped, "polite") - mean(high, "polite")) < 0.05
    assert 12 < 1 / mean(stopped, "other") < 14.5
    assert all(each["right"] < 0.7 and each["other"] > 0.7 for each in low)
    assert all(each["right"] > 0.85 and 0.4 < each["other"] < 0.6 for each in high)
    assert all(each["right"] > 0.85 and each["polite"] > 0.9 for each in both)

# %% [markdown]
# ## Learn your text, or read it?
#
# Suppose you want a language model to know *one* text, such as your diary or the rules of your club.
# Should it learn the text, or is it enough to let it read?
#
# Our text is the course's story, 4,000 characters that SmolLM2 can't have read.
# In [GPT](13_gpt.ipynb#Your-file) our own networks learned its first nine tenths, and on the last tenth the best of them had a loss of 1.55 nats per character.
#
# There are two ways to give SmolLM2 these nine tenths.
#
# **It can learn them.**
# We use **[LoRA](C_glossary.ipynb#lora)** ([Hu et al., 2022](https://arxiv.org/abs/2106.09685)), which [you wrote in chapter 14](14_bert_and_transfer.ipynb#A-little-is-enough:-LoRA): to a frozen matrix we add the product of two thin ones, and train only these.
# We train 460,800 numbers, and the model's 135 million stay as they are.
#
# **Or it can read them.**
# Then the nine tenths are a **prompt** before the last tenth, and no weight changes.
# Whatever the model takes from them it takes by attention, as an [induction head](C_glossary.ipynb#induction-head) does when it finds a name that came before.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Two copies of SmolLM2 are tested on the last tenth of the story. One has learned the nine tenths in twenty steps, and sees only their last 128 tokens. The other has learned nothing, and reads all of them as a prompt. Which one has the lower loss?",
    ["the one that has learned", "the one that reads", "they are too close to tell"],
    answer="they are too close to tell",
    wrong={
        "the one that has learned": "On average it has seen a sentence six times, that's true. But what does the other one have in front of it while it is tested?",
        "the one that reads": "It has every name and every word of the story at hand, that's true. But what have six readings left in the other one?",
    },
    why="In the table below the two differ by 0.02, and the last tenth has only 96 tokens, so the difference may be chance.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
(untrained,) = cu.stored_runs(SLUG, "prompted", text="story")
tuned = cu.stored_runs(SLUG, "learned", text="story", lowest="128 tokens before")
PROMPTS = {"128 tokens before": "after 128 tokens", "1024 tokens before": "after all nine tenths"}
of_story = pd.DataFrame(
    {
        title: [untrained.result[name], sum(run.result[name] for run in tuned) / len(tuned)]
        for name, title in PROMPTS.items()
    },
    index=["as it is", "after LoRA"],
)
of_story.rename_axis("loss of SmolLM2").map("{:.2f}".format)

# %% [markdown]
# Even before it learns anything, SmolLM2 has about half the loss of our own best GPT, and it is far larger and has read far more.
# Reading the story (upper right) lowers the loss further, and so does learning it (lower left).
#
# Is it really the story that helps?
# If SmolLM2 reads Python's documentation before the 128 tokens, its loss is 0.81, no better than without.
# But learning as much of the documentation gives 0.78, so a part of what LoRA learns may not be about our story.
#
# When a prompt does the work of training, this is called **[in-context learning](C_glossary.ipynb#in-context-learning)** ([Brown et al., 2020](https://arxiv.org/abs/2005.14165)).
# The price is that every new token has to attend to the whole prompt, and that the prompt has to fit into the model's window.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Untrained, SmolLM2 has about half the loss of our best GPT, and 460,800 numbers are trained at the best rate."
):
    assert {run.config["rate"] for run in tuned} == {0.001} and len(tuned) == 3
    assert untrained.result["read"] == 842 and untrained.result["asked"] == 96
    (other,) = cu.stored_runs(SLUG, "prompted_otherwise")
    assert round(other.result["loss"], 2) == 0.81 > of_story.loc["as it is", "after 128 tokens"]
    others = [r.result["128 tokens before"] for r in cu.stored_runs(SLUG, "learned_otherwise")]
    assert round(sum(others) / len(others), 2) == 0.78
    assert 30 * own_text.RANK * ((576 + 576) + (576 + 192)) == 460_800
    own_best = min(
        r.result["loss"] for r in cu.stored_runs("gpt", "own_texts_in_pieces", text="story")
    )
    assert 0.47 < of_story.loc["as it is", "after 128 tokens"] / own_best < 0.55

# %% [markdown]
# ## More steps, and a longer text
#
# Would more than twenty steps help?
# On our story they don't.
# The loss on the last tenth rises again, while the loss on the nine tenths keeps falling.
# The model learns the nine tenths by heart, and their continuation becomes less probable.
# This is [overfitting](C_glossary.ipynb#overfitting) again.
#
# Perhaps our story is just too short.
# So we take forty steps on Python's documentation, which is six times as long, although SmolLM2 has probably read it before.
# We compare the two ways token by token, and the number after ± is one standard error.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
TEXTS = ("story", "topics")
(of_topics,) = cu.stored_runs(SLUG, "prompted", text="topics")
READING = {
    "story": untrained.result["1024 tokens before"],
    "topics": of_topics.result["all before"],
}
CHARACTERS = {"story": untrained.result["characters"], "topics": of_topics.result["characters"]}
COMPARED = {
    "learning − neither": ("128 tokens before", "128 tokens before"),
    "learning − reading": ("128 tokens before", "all before"),
    "both − reading": ("all before", "all before"),
}
WHOLE = {"story": "1024 tokens before", "topics": "all before"}  # its nine tenths are 842 tokens
BEFORE = {"story": untrained.examples[0], "topics": of_topics.examples[0]}
LEARNED = {"story": tuned, "topics": cu.stored_runs(SLUG, "learned_and_read")}


def against(text, ways):
    """The difference of two losses and its standard error, for each seed; "all before" is as `WHOLE` says."""
    after, before = (WHOLE[text] if way == "all before" else way for way in ways)
    return [
        own_text.paired(run.examples[0][after], BEFORE[text][before], CHARACTERS[text])
        for run in LEARNED[text]
    ]


differences = {
    title: {
        text: [sum(each) / len(each) for each in zip(*against(text, ways), strict=True)]
        for text in TEXTS
    }
    for title, ways in COMPARED.items()
}
pd.DataFrame(differences).T.map(lambda d: f"{d[0]:+.3f} ± {d[1]:.3f}").rename(
    columns={"story": "our story", "topics": "documentation"}
).rename_axis("difference in loss")

# %% [markdown]
# A negative number means that the first of the two is better.
# **On neither text did learning beat reading, and reading needs no training at all.**
# On the story the two are too close to tell, and on the documentation reading is ahead by more than two standard errors.
# Learning the documentation *and* reading it is best.
#
# Does the model forget other things while it learns?
# We asked it for ten capitals.
# Where LoRA learned the story best, it still knew all ten, and after forty steps on the documentation one of three copies had lost one.
# After eighty steps on the story none were left, but by then the copy did worse on the last tenth than SmolLM2 as it is.
# **So most of the forgetting came with a training that had gone too far.**

# %% tags=["guard"] jupyter={"source_hidden": true}
longer = cu.stored_runs(SLUG, "learned_longer")
runs_of = {
    "as it is": [untrained],
    "20 steps at 0.001": tuned,
    "20 steps at 0.002": cu.stored_runs(SLUG, "learned", text="story", rate=0.002),
    "20 steps at 0.006": cu.stored_runs(SLUG, "learned", text="story", rate=0.006),
    "80 steps at 0.001": cu.stored_runs(SLUG, "learned_longer", text="story", rate=0.001),
}
forgotten = pd.DataFrame(
    {
        title: {
            name: sum(run.result[name] for run in some) / len(some)
            for name in ("128 tokens before", "capitals")
        }
        for title, some in runs_of.items()
    }
).T
with cu.guard(
    "On the story the loss rises again after 20 or 40 steps; it is learned by heart, and capitals are lost."
):
    lowest = {0.0005: 40, 0.001: 20}
    for run in longer:
        if run.config["text"] == "story":
            curve = dict(run.curves["128 tokens before"])
            assert min(curve, key=curve.get) == lowest[run.config["rate"]]
            assert curve[80] > untrained.result["128 tokens before"]
            seen = [loss for _, loss in run.curves["loss"]]
            assert sum(seen[-10:]) < (0.25 if run.config["rate"] == 0.001 else 0.8) * sum(seen[:10])

with cu.guard(
    "Learning beats nothing and doesn't beat reading; on documentation reading is ahead, and both together are best."
):
    for text in TEXTS:
        assert len(LEARNED[text]) == 3
        for more, error in against(text, COMPARED["learning − neither"]):
            assert more + 2 * error < 0
    for more, error in against("story", COMPARED["learning − reading"]):
        assert 0 < more < error
    for more, error in against("topics", COMPARED["learning − reading"]):
        assert more > 2 * error
    for run in longer:
        curve = run.curves["128 tokens before"]
        assert min(loss for _, loss in curve) > READING[run.config["text"]] + 0.01
        if run.config["rate"] == 0.0005:
            at, least = min(curve, key=lambda point: point[1])
            assert at in (40, 90) and curve[-1][1] > least + 0.005
            assert 0.015 < least - READING[run.config["text"]] < 0.025
    for text in TEXTS:
        for more, error in against(text, COMPARED["both − reading"]):
            assert more + 1.3 * error < 0

with cu.guard(
    "At the best rate no capital is forgotten, and where some are, the story is learned worse."
):
    assert forgotten["capitals"].round().tolist() == [10, 10, 7, 0, 0]
    losses = forgotten["128 tokens before"]
    assert losses["20 steps at 0.001"] == losses.min()
    assert all(run.result["capitals"] == 10 for run in tuned)
    assert sorted(run.result["capitals"] for run in LEARNED["topics"]) == [9, 10, 10]

# %% [markdown]
# ## Your own text
#
# Now take a text of your own with 2,000 to 15,000 characters, in English if you can, because SmolLM2 has read little else.
# If you have downloaded the weights, the next cell reads and learns your text in a few minutes, and first tells you how long it will take.
# Otherwise it shows what we recorded for our story.

# %% tags=["nbval-ignore-output"]
path = ""  # put in the path of a text file of your own, such as "my_text.txt"
steps, rate = 20, 0.001

lm = smollm.reference() if cached("smollm2") else None  # without the file: as recorded
mine = own_text.own_file(path, lm, steps=steps, rate=rate)
print(mine.verdict())
mine.table.map("{:.2f}".format)

# %% [markdown]
# Does the model write like you?
# Here is how it continues after nine tenths of the text.

# %% tags=["nbval-ignore-output"]
for way, text in mine.says.items():
    print(textwrap.fill(f"{way}: {text.strip()}", subsequent_indent="    "))

# %% [markdown]
# Some of our passages mention things from the story, such as the clock and the train, but none has its voice.
#
# ### Exercise 1 · A text that shows a difference
#
# *open · 6 minutes*
#
# Find a text for which the difference between learning and reading is larger than two standard errors.
# Write down first which of the two you expect to win, and why.
# You could try a text in which the same names come back, a list with one strict pattern, or a letter in dialect.
# Without the weights, say what you expect of these three.

# %% [markdown]
# ## What comes before a question
#
# In a [chat template](18_real_weights.ipynb#It-speaks) the first text is usually a **[system prompt](C_glossary.ipynb#system-prompt)**, which the user doesn't see.
# SmolLM2 comes with one of its own: *You are a helpful AI assistant named SmolLM, trained by Hugging Face*.
# Does such a sentence make the answers better?
# We asked for 24 well-known capitals, with no system prompt and with four different ones.
# First the model wrote the whole answer, and then we began it, for example with *The capital of Italy is*.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
behind = {run.config["system"]: run for run in cu.stored_runs(SLUG, "system_prompts")}
begun = {run.config["system"]: run for run in cu.stored_runs(SLUG, "begun_answers")}
NAMES = {
    "none": "none",
    "the model's own": "its own",
    "helpful": "You are a helpful assistant.",
    "short": "Answer in one short sentence.",
    "about something else": "The bakery on Harbor Street opens at seven.",
}
pd.DataFrame(
    {
        title: {
            "right, of 24": int(behind[name].result["right"]),
            "right if begun": int(begun[name].result["right"]),
        }
        for name, title in NAMES.items()
    }
).T.rename_axis("system prompt")

# %% [markdown]
# **With each of the four system prompts fewer answers were right.**
# But without one 23 of 24 were right already (some after a description of the country), so there was little to gain.
# And four other wordings of the question gave 17 to 24, so this says little about system prompts in general.
#
# The knowledge is there all along: once we begin its answer, the model is nearly always right.
# So a fact and the form of an answer are two different things here, too, as in [the chapter](21_from_gpt_to_assistant.ipynb#Train-on-the-answers-only).
#
# In [Real weights](18_real_weights.ipynb) the model lost its answer when we hid the very first token, its [attention sink](C_glossary.ipynb#attention-sink).
# What happens if there is a system prompt?
# We ask for the capital of Japan, and hide one token from the question and the answer.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cut = {(run.config["system"], run.config["token"]): run for run in cu.stored_runs(SLUG, "cut_from")}
HIDDEN = {
    ("the model's own", 1): "second token",
    ("the model's own", 0): "first token",
    ("helpful", 0): "first token",
    ("about something else", 0): "first token",
}
pd.set_option("display.max_colwidth", 80)
pd.DataFrame(
    [[NAMES[key[0]], hidden, cut[key].examples[0]["Japan"]] for key, hidden in HIDDEN.items()],
    columns=["system prompt", "hidden", "it says"],
).set_index("system prompt")

# %% [markdown]
# Without the first token, SmolLM2 recites two of its system prompts, for all eight countries that we tried, although no user was meant to see them.
# It doesn't recite the bakery, and with *Answer in one short sentence* it says nothing at all; we don't know why.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "No system prompt makes the answers better, another wording changes the count as much, and begun answers are nearly always right."
):
    right = {name: run.result["right"] for name, run in behind.items()}
    assert right["none"] == 23 == max(right.values()) and min(right.values()) == 18
    worded = [run.result["right"] for run in cu.stored_runs(SLUG, "wordings")]
    assert len(worded) == 4 and {min(worded), max(worded)} == {17, 24}
    assert min(run.result["right"] for run in begun.values()) >= 22

with cu.guard(
    "Cut off from its first token it recites two system prompts of four, eight times of eight; cut off from the second, it answers."
):
    assert [cut[key].result["recited"] for key in (("the model's own", 0), ("helpful", 0))] == [
        8,
        8,
    ]
    assert (
        cut["about something else", 0].result["recited"] == 0 == cut["short", 0].result["recited"]
    )
    assert not any(cut["short", 0].examples[0].values())
    assert all(run.result["right"] == 0 for key, run in cut.items() if key[1] == 0)
    assert all(run.result["right"] >= 6 for key, run in cut.items() if key[1] > 0)

# %% [markdown]
# ## Calibrated, and still making things up
#
# In [the chapter](21_from_gpt_to_assistant.ipynb#A-town-for-every-name) our small network was sure of towns that it made up.
# Can we trust SmolLM2's probabilities?
# A model is **calibrated** if it is right in seven of ten cases whenever it says 0.7 ([Guo et al., 2017](https://arxiv.org/abs/1706.04599)).
# We take the capitals of 60 countries from [Real weights](18_real_weights.ipynb#What-it-makes-up), and sort the answers in two ways: into five groups by their probability (squares), and by the kind of country (dots).
# A calibrated model lies on the gray line.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=4.2, height=3.3,
    alt="Share that is right over the mean probability, for 60 capitals. Sorted by probability, five squares lie near the diagonal, from 0.11 and 0.10 to 0.90 and 1. "
    "Sorted by kind, well-known countries are far above it, at 0.70 and 1; little-known ones below it, at 0.35 and 0.17; invented ones at 0.10 and 0, and invented ones that are like a real one far below it, at 0.50 and 0.",
)  # fmt: skip
ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
binned = chatting.by_probability()
ax.plot([p for _, p, _ in binned], [share for *_, share in binned], "s", color=cu.COLORS["query"], label="by probability")  # fmt: skip
kinds = chatting.by_kind()
for kind, (_, said, share) in kinds.items():
    ax.plot(said, share, "o", color=cu.COLORS["key"], label=None if share else "by kind")
    offset = (-30, 8) if kind.startswith("another") else (6, 4 if share < 0.9 else -12)
    ax.annotate(kind, (said, share), offset, textcoords="offset points", fontsize=8)
ax.set(xlim=(0, 1), ylim=(-0.05, 1.05), xlabel="Mean probability", ylabel="Share that is right")
handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
ax.legend(handles.values(), handles.keys(), loc="upper left", fontsize=8)
fig

# %% [markdown]
# Sorted by probability, the squares lie about as near to the line as so few answers can.
# Sorted by kind, the answers lie far from it.
# SmolLM2 is too doubtful about well-known countries.
# It doubts most invented ones, as it should, but it is half sure about those that resemble a real one, such as *West Korea*.
#
# **A model can be calibrated over all questions, and still be far too sure about one kind of them.**

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Sorted by probability 60 capitals are about calibrated; by kind they are not."):
    assert sum(n for n, *_ in binned) == sum(n for n, *_ in kinds.values()) == 60
    for n, p, share in binned:
        assert abs(share - p) < 2 * (p * (1 - p) / n) ** 0.5
    assert kinds["well known"][2] == 1 > kinds["well known"][1] + 0.25
    assert kinds["invented"][1] < 0.15
    resembling = kinds["invented, like a real one"]
    assert resembling[1] > 0.45 and resembling[2] == 0
    gaps = {run.config["text"]: run.result["gap"] for run in cu.stored_runs(SLUG, "calibrated")}
    assert gaps["topics"] < 0.012 < 0.03 < gaps["story"] < 0.05

# %% [markdown]
# <details><summary><em>How sure is this?</em></summary>
#
# - **Judges.** Each result comes from three networks, trained at one rate.
#   With the cross-entropy added, and judges who disagree, 97 in 100 answers are whole at each β, but nine in ten are polite at β = 0.1, more than the judges' three in four.
# - **Learn or read.** LoRA has rank 8, for queries and values, and other settings may learn better.
#   We chose the rate and the number of steps on the last tenth itself, which flatters learning.
#   Even so, the lowest loss on the documentation (90 steps, half the rate) is still 0.02 above reading.
#   The errors treat tokens as independent, and the story's last tenth has only 96 of them.
# - **System prompts.** The answers are greedy, with 70 tokens at most.
# - **Calibration.** On running text it is better: a mean gap of 0.01 on the documentation, and of 0.04 on our story.
#
# </details>

# %% [markdown]
# Back to the chapter: [From GPT to an assistant](21_from_gpt_to_assistant.ipynb).

# %% [markdown]
# ## References
#
# - Brown, T. B. et al. (2020).
#   [Language models are few-shot learners](https://arxiv.org/abs/2005.14165).
#   NeurIPS.
# - Guo, C. et al. (2017).
#   [On calibration of modern neural networks](https://arxiv.org/abs/1706.04599).
#   ICML.
# - Hu, E. J. et al. (2022).
#   [LoRA: low-rank adaptation of large language models](https://arxiv.org/abs/2106.09685).
#   ICLR.
