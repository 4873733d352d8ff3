# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From GPT to an assistant
#
# **A GPT continues texts. How does it come to answer questions, and why does it make things up?**
#
# Four versions of one small GPT know a hundred people, each with a town, a job and a pet.
# The last two also learned from judges, who prefer polite answers to long-winded ones.
# Their **margin** says how much more they favor the polite one than before.
# Which version would you keep?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.text import PAD
from course_utils.lessons.from_gpt_to_assistant import measuring, preferences, training
from course_utils.lessons.from_gpt_to_assistant import world as worlds

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.assistant()

# %% [markdown]
# The last one has the largest margin, and it can no longer build a sentence.
# Now ask about *Gus Voss*, who doesn't exist.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - turn a GPT into a model that answers;
# - say where made-up answers come from, and what a model learns when you teach it to refuse;
# - derive the loss of direct preference optimization, and say when it misleads.

# %% [markdown] tags=["needs"]
# You will need [GPT](13_gpt.ipynb) and [Real weights](18_real_weights.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("gpt", "real_weights")

# %% [markdown]
# ## Train on the answers only
#
# The first of the four was only **pretrained**, on biographies, and on forms with questions that nobody has answered.

# %%
people = worlds.make_world()
gpt = training.stored_reader()
somebody = people.held_out[0]
asked = worlds.question(somebody, "town")
print(*(text.replace("? ", "?\n") for text in worlds.examples(somebody)), sep="\n\n")
print(f"\n{asked}\n→ {measuring.written(gpt, [asked], most=11)[0][0]} …")

# %% [markdown]
# The network can complete every biography.
# But in its world a question is followed by another question, so it asks the next one.
#
# In **[fine-tuning](C_glossary.ipynb#fine-tuning)** we continue the training, now on questions *with their answers*.
# Seven in ten of these answers are long-winded, like the second of the four above, and the others are polite, like the third.
#
# The model has to *read* the question, but nobody needs a model that asks it.
# So the loss is the mean over the positions *A* of the answer and of `<eos>`, the token that ends it:
#
# $$\mathrm{loss} = -\frac{1}{|A|} \sum_{t \in A} \ln P(x_t \mid x_1, \dots, x_{t-1})$$
#
# An **[answer mask](C_glossary.ipynb#answer-mask)** sets all other targets to −100, which PyTorch's cross-entropy ignores.
#
# ### Exercise 1 · Find the bug
#
# *bug · 6 minutes*
#
# Fine-tuned with this mask, a model still begins with a question, and slips into an answer halfway.
# But give it the first word of an answer, and it writes the rest.
# Each row of `ids` is one text: `<eos>`, a question, its answer, `<eos>`, and padding.
# `asked` is the number of words in each question.
# Write `fixed_targets`.


# %%
def buggy_targets(ids, asked):
    """(n, length) texts → inputs and targets, (n, length - 1); -100 where a target is ignored."""
    inputs, targets = ids[:, :-1], ids[:, 1:].clone()
    position = torch.arange(targets.shape[1])
    targets[position <= asked[:, None]] = -100
    targets[ids[:, 1:] == PAD] = -100
    return inputs, targets


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
with_bug = training.fine_tuned(
    gpt, worlds.fine_tuning(people, training.MANNERS, targets=buggy_targets)
)
for begun in (asked, f"{asked} Gladly"):
    print(f"{begun}\n→ {measuring.written(with_bug, [begun])[0][0]}\n")


# %% tags=["exercise", "bug"]
def fixed_targets(ids, asked):
    """(n, length) texts → inputs and targets, (n, length - 1); -100 where a target is ignored."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_targets(fixed_targets)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_targets_solution(ids, asked):
    """The target at position `asked` is the first word of the answer, so it has to stay."""
    inputs, targets = ids[:, :-1], ids[:, 1:].clone()
    position = torch.arange(targets.shape[1])
    targets[position < asked[:, None]] = -100
    targets[ids[:, 1:] == PAD] = -100
    return inputs, targets


cu.checks.fixed_targets(fixed_targets_solution)

# %% [markdown]
# Now we fine-tune with your mask, on questions about *half* of the people.
# The model knows the other half only from biographies.
# Our baseline is a **look-up**, which repeats the answer to the training question that shares the most words with ours.

# %% tags=["nbval-ignore-output"]
mask = cu.choose(fixed_targets, worlds.targets_of)
answering = worlds.fine_tuning(people, training.MANNERS, targets=mask)
assistant = training.fine_tuned(gpt, answering)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
groups = {"in fine-tuning": people.asked, "only in biographies": people.held_out}
by_group = pd.DataFrame(
    {
        name: {
            "fine-tuned": measuring.share(measuring.answers(assistant, some), "right"),
            "look-up": measuring.looked_up(people, some),
        }
        for name, some in groups.items()
    }
).T
by_group.rename_axis("accuracy about people …").map("{:.2f}".format)

# %% [markdown]
# **The fine-tuned model answers correctly about people for whom it never saw an answer.**
# Fine-tuning taught it the *form* of an answer, and the facts came from the biographies.
#
# A mask in the wrong place does harm, as you saw.
# Leaving it out does hardly any: averaged over three networks, 92% of the answers are right with our mask, and 89% without one.
#
# ## Told in many ways
#
# Our biographies tell each fact in five wordings, and the facts in any order.
# Suppose they always said: "Zeno Cole lives in Oslo. They work as a baker. They have a cat."
# We pretrain a new network on such texts, and fine-tune it as before.
# This network can complete *its* biographies, too.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "About people who weren’t in the fine-tuning, this model is right in less than half of its answers. About which fact is it right most often?",
    ["the town", "the job", "the pet", "all three alike"],
    answer="the town",
    wrong={
        "the job": "The job is told in the second sentence, after the town. In the text, the town always comes before the job. Does it in an answer about the job?",
        "the pet": "Before the pet, the model has read the most. But which of those words will come before the pet in an answer?",
        "all three alike": "All three are told equally often. But what comes before each of them in the text, and what comes before it in an answer?",
    },
    why="The town is the first fact after the name, both in the text and in an answer. The job and the pet always came after other facts, which are missing in an answer.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
WAYS = {
    "one": "one\nwording,\none order",
    "one, named": "full\nname each\ntime",
    "one, shuffled": "one\nwording,\nany order",
    "many, in order": "five\nwordings,\none order",
    "many": "five\nwordings,\nany order",
}
told = {
    way: cu.stored_runs("from_gpt_to_assistant", "telling", told=way, rate=training.RATE)
    for way in WAYS
}
fig, ax = cu.subplots(
    width=4.1, height=3.0,
    alt="Accuracy about people who were not in the fine-tuning, in five groups of three bars for town, job and pet, with a dot for each of three networks. One wording and one order: 0.66, 0.39 and 0.19. With the full name each time: 0.6, 0.49 and 0.28. One wording in any order: 0.85, 0.73 and 0.77. Five wordings in one order: 0.94, 0.61 and 0.62. Five wordings in any order: 0.94, 0.93 and 0.86.",
)  # fmt: skip
for i, way in enumerate(WAYS):
    for j, (fact, color) in enumerate(zip(worlds.VALUES, ("key", "query", "plum"), strict=True)):
        each = [run.result[f"0.001, held out, right, {fact}"] for run in told[way]]
        place = i + 0.25 * (j - 1)
        ax.bar(
            place, sum(each) / len(each), 0.23, color=cu.COLORS[color], label=None if i else fact
        )
        ax.plot([place] * len(each), each, ".", color=cu.COLORS["ink"], markersize=3)
ax.axhline(1 / 16, color=cu.COLORS["muted"], linestyle=":")
ax.set_xticks(range(len(WAYS)), list(WAYS.values()))
ax.set(ylabel="Accuracy", ylim=(0, 1.25))
ax.set_yticks([0, 0.5, 1])
ax.legend(loc="upper center", ncols=3)
fig

# %% [markdown]
# Each bar is the mean of three networks (dots), and the dotted line is what guessing would give.
# The first group was trained on the new texts, and the last on those that we had before.
# In the second, each sentence repeats the full name instead of *They*, which helps little.
# Shuffling the facts helps, and so does varying the wording, as in larger models ([Allen-Zhu and Li, 2023](https://arxiv.org/abs/2309.14316)).
#
# **A network may be able to recite a fact, and still not be able to answer a question about it.**
#
# ## A town for every name
#
# No biography tells of a Gus Voss, and still the model names a town.
# Did fine-tuning make it so bold?
# Let's see how sure it is *before* fine-tuning, after the words "Gus Voss lives in", and *after* fine-tuning, in its answer.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
groups["unknown name"] = people.unknown
pd.DataFrame(
    {
        name: {
            "before": measuring.sure_in_sentences(gpt, some),
            "after": measuring.share(measuring.answers(assistant, some), "sure"),
        }
        for name, some in groups.items()
    }
).T.rename_axis("probability of what it names").map("{:.2f}".format)

# %% [markdown]
# About unknown names the model was as sure before as it is now, and in two cases of three it even named the same town, job or pet.
# In 96 of 100 answers this is a fact of a **namesake**, somebody with the same first or last name (for a random town, job or pet it would be 38).
#
# **So the model was already making things up after pretraining. Fine-tuning gave it no words for doubt, and no reason to use any.**
# [Kalai et al. (2025)](https://arxiv.org/abs/2509.04664) argue that large models learn some errors even from true texts, and that benchmarks without credit for "I do not know" keep them alive.
#
# Fine-tuning can make this worse.
# If we replace 25 of the fifty people by strangers with facts of their own, the model learns these facts, and its accuracy about people who are only in biographies falls from 0.92 to 0.37.
# In a large model, [Gekhman et al. (2024)](https://arxiv.org/abs/2405.05904) saw such a fall, too.
#
# Can we give it words for doubt?
# We add questions about strangers, with the answer "I do not know.", and ask about *other* strangers.
# In the longest training half of the texts are biographies, so that the model doesn't forget them.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "After the longest training, with 320 strangers, the model refuses nine in ten questions about new unknown names. How many does it refuse about people whom it knows from biographies, but who weren’t in the fine-tuning?",
    ["less than one in ten", "about one in three", "more than two in three"],
    answer="more than two in three",
    wrong={
        "less than one in ten": "That would be so if it had learned to check whether it knows the person. Which other rule fits all of its training questions just as well?",
        "about one in three": "Then the two kinds of names would look different to the rule that it has learned. Which rule would fit all training questions, and treat both kinds alike?",
    },
    why="Every known person in the fine-tuning got an answer, and every stranger a refusal. So “is this one of the people with answers?” fits each training question as well as “do I know this person?”, and nothing told the two rules apart.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
TAUGHT = {
    "none": "no refusals",
    "50 names": "50 strangers",
    "320 names": "320 strangers",
    "320 names, long, and biographies": "320, longer, with biographies",
}
COLUMNS = {
    "asked, refused": "in fine-tuning",
    "held out, refused": "only in biographies",
    "unknown, refused": "unknown name",
}
refusals = pd.DataFrame(
    {
        name: pd.DataFrame(
            run.result
            for run in cu.stored_runs(
                "from_gpt_to_assistant", "refusals", taught=taught, rate=0.001
            )
        )[list(COLUMNS)].mean()
        for taught, name in TAUGHT.items()
    }
).T.rename(columns=COLUMNS)
refusals.rename_axis("share refused after training on").map("{:.2f}".format)

# %% [markdown]
# **It learned for whom it had seen an answer, not whom it knows.**
# If we begin a polite answer for the last of these models, it names 99 in 100 facts about the people of the middle column.
# Left to itself, it refuses eight in ten of these questions.
#
# Doesn't it notice an unknown name?
# Watch our assistant, which has learned no refusals, while it *reads* the question: after *Gus*, how probable does it find the last name that follows?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
surprise = {name: measuring.familiar(assistant, some) for name, some in groups.items()}
for name, p in surprise.items():
    print(f"{name}\n    from {min(p):.3f} to {max(p):.3f}")

# %% [markdown]
# **The probability of the last name separates every known name from every unknown one. The answers show little of that.**
# At the question mark, where an answer begins, a linear classifier of the last vector tells them apart only a little better than chance.
# (Recognizing a name isn't yet knowing a fact: counting which names occur together would do as well.)
#
# ## Which of two answers is better?
#
# Our model is long-winded, because most answers of its fine-tuning were.
# Now judges compare two answers, both true, and prefer the polite one, *y*⁺, to the long-winded one, *y*⁻.
#
# Imagine a number that says how good an answer is, its **reward** *r*.
# The **margin** is the difference *m* = *r*(*y*⁺) − *r*(*y*⁻).
# **Bradley and Terry** (1952) turn it into a probability, as chess does with the ratings of two players:
#
# $$P(y^+ \text{ wins}) = \sigma(m) = \frac{1}{1 + e^{-m}}$$
#
# With a margin of 0 it is a toss-up, and with 1.1 the better answer wins three times in four.
#
# **[Direct preference optimization](C_glossary.ipynb#direct-preference-optimization)** (DPO, [Rafailov et al., 2023](https://arxiv.org/abs/2305.18290)) turns this into a loss, in four lines.
# Here *π*(*y*) is the probability of an answer, given the question, in the model that we train, and *π*₀(*y*) in the model before, the **reference**.
#
# 1. We want high rewards from a model that stays close to the reference.
#    So its score is $\operatorname{mean} r(y) - \beta \operatorname{mean} \ln \frac{\pi(y)}{\pi_0(y)}$ over the answers that this model gives; the second mean is its **[KL divergence](C_glossary.ipynb#kl-divergence)** from the reference.
#    The best model (we take this from the paper) is $\pi(y) = \pi_0(y)\, e^{r(y)/\beta} / Z$: a higher reward multiplies the probability, and dividing by *Z* makes the sum 1 again.
# 2. Solved for the reward, this is $r(y) = \beta \ln \frac{\pi(y)}{\pi_0(y)} + \beta \ln Z$.
#    Up to the last term, the model's own log-ratio *is* the reward.
# 3. *Z* is the same for all answers to a question, so it cancels in the margin: $m = \beta \left( \ln \frac{\pi(y^+)}{\pi_0(y^+)} - \ln \frac{\pi(y^-)}{\pi_0(y^-)} \right)$.
# 4. We make the judges' choices as probable as we can, so the loss is −ln σ(*m*).
#
# For example, with β = 0.1:
#
# | | before, ln π₀ | now, ln π | change |
# |---|---|---|---|
# | preferred answer | −3 | −2 | +1 |
# | rejected answer | −1 | −6 | −5 |
#
# The margin is 0.1 · (1 + 5) = 0.6, so the model expects *y*⁺ to win with probability σ(0.6) = 0.65, and the loss is −ln 0.65 = 0.44.
# Most of this margin comes from the answer that nobody wants.
#
# ### Exercise 2 · The loss of DPO
#
# *build · 9 minutes*
#
# Write `my_dpo_loss`, the mean over a batch of pairs.
# Its inputs are the log-probabilities of the preferred and the rejected answers, first under the model and then under the reference.
# (Each is a sum over the tokens that your mask selects.)


# %% tags=["exercise", "build"]
def my_dpo_loss(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Four tensors of log-probabilities, each (n,), and a number → the loss, a scalar."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_dpo_loss(my_dpo_loss)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_dpo_loss_solution(preferred, rejected, ref_preferred, ref_rejected, beta):
    """The log-ratio of an answer is its reward, up to what cancels."""
    margin = beta * ((preferred - ref_preferred) - (rejected - ref_rejected))
    return -F.logsigmoid(margin).mean()


cu.checks.my_dpo_loss(my_dpo_loss_solution)

# %% [markdown]
# It is the **logistic regression** of which answer wins, with the margin as its logit:

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
dpo_loss = cu.choose(my_dpo_loss, preferences.dpo_loss)


def logistic_regression(preferred, rejected, ref_preferred, ref_rejected, beta):
    """PyTorch's loss for two classes, of which the preferred answer's is there."""
    margin = beta * (preferred - rejected - ref_preferred + ref_rejected)
    return F.binary_cross_entropy_with_logits(margin, torch.ones_like(margin))


cu.equal(dpo_loss, logistic_regression, *(-20 * torch.rand(4, 5)), beta=0.1)

# %% [markdown]
# ### The margin rises
#
# We train with β = 0.1, the paper's usual value, on answers about the people from fine-tuning, and test on the *others*.
# On the right, the cross-entropy of the preferred answers is added to the loss ([Pang et al., 2024](https://arxiv.org/abs/2404.19733)).

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
LOSSES = {"margin": "DPO alone", "margin and likelihood": "and cross-entropy"}
runs = {
    loss: cu.stored_runs("from_gpt_to_assistant", "preferring", loss=loss, rate=0.0001)
    for loss in LOSSES
}
LINES = (("margin", "key"), ("preferred", "query"), ("right", "value"), ("polite", "plum"))
fig, axes = cu.subplots(
    4, 2, width=4.1, height=5.2, sharex=True, sharey="row",
    alt="Four quantities over 120 steps, each for three networks, with DPO alone on the left and with the cross-entropy added on the right. The margin rises on both sides, to between 6 and 9.5. The change of the log-probability of the preferred answer falls below zero on the left and rises to 1 on the right. The accuracy falls from 0.9 to between 0 and 0.5 on the left and stays near 0.9 on the right. Polite answers come up at step 20 on both sides, and on the left they are lost again in two of three networks.",
)  # fmt: skip
for column, loss in enumerate(LOSSES):
    axes[0, column].set_title(LOSSES[loss])
    axes[3, column].set_xlabel("Step")
    for row, (name, color) in enumerate(LINES):
        for run in runs[loss]:
            axes[row, column].plot(
                *zip(*run.curves[name], strict=True), color=cu.COLORS[color], linewidth=1.2
            )
for ax, label in zip(axes[:, 0], ("Margin", "Δ ln π(y⁺)", "Accuracy", "Polite"), strict=True):
    ax.set_ylabel(label)
fig

# %% [markdown]
# Each line is one of three networks, Δ is the change since step 0, and the answers are greedy: each word is the most probable one.
# After twenty steps at this rate all are polite, and nine in ten are right.
# But the margin keeps rising, and one network on the left ends like this:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
for moment in runs["margin"][0].examples:
    if moment["step"] in (0, 20, 120):
        print(f"step {moment['step']:>3}: {moment['answers'][0]}")

# %% [markdown]
# **The margin is a difference: it grows even while the preferred answer becomes less probable, as long as the rejected one loses more.**
# "They live in Paris" is part of both answers, once with a plus and once with a minus, so it matters little to the margin whether it stays probable.
# Most of the margin comes from the words after "Well", which DPO can make ever less probable, and in two of the three networks "They live in" falls with them.
# The fact suffers, too: given every word before it, six in ten are right, where nine in ten were.
# With the cross-entropy the margin rises nearly as high, and form and facts stay.
#
# Pushing a number up until it no longer measures what we wanted is called **[over-optimization](C_glossary.ipynb#over-optimization)** ([Gao et al., 2023](https://arxiv.org/abs/2210.10760); [Rafailov et al., 2024](https://arxiv.org/abs/2406.02900)), and the fall of the preferred answer is called *likelihood displacement* ([Razin et al., 2024](https://arxiv.org/abs/2410.08847)).
#
# As our judges always agree, we wouldn't even need DPO: fine-tuning on the preferred answers makes the model as polite and as accurate as the loss on the right.
# The further page has [judges who disagree](21_from_gpt_to_assistant_further.ipynb#Judges-who-disagree).
#
# ### Exercise 3 · A pair of your own
#
# *open · 6 minutes*
#
# Try another pair of "short" (the fact alone), "polite" and "long", and other numbers.
# With `truthful=False` in `preference_pairs` the preferred answers are false.
# Does the model learn to lie, and about whom?

# %% tags=["nbval-ignore-output"]
agree = 0.75  # try 0.5 … 1.0
beta = 0.1  # try 0.1 … 5.0
likelihood = 1.0  # try 0.0 … 1.0
pairs = preferences.preference_pairs(people, preferred="short", rejected="long", agree=agree)
mine = preferences.prefer(assistant, pairs, steps=60, lr=1e-4, beta=beta, likelihood=likelihood)
for group, some in (("in fine-tuning", people.asked), ("only in biographies", people.held_out)):
    rows = measuring.answers(mine, some)
    print(f"{group}: accuracy {measuring.share(rows, 'right'):.2f}, for example")
    for row in (rows[0], rows[-1]):
        print(f"  {row['name']}'s {row['key']}: {row['text']}")

# %% [markdown]
# ## How much of this holds for large models?
#
# Large assistants are made in the same steps, with a [chat template](18_real_weights.ipynb#It-speaks) and often a [system prompt](C_glossary.ipynb#system-prompt).
# For the last step, InstructGPT ([Ouyang et al., 2022](https://arxiv.org/abs/2203.02155)) trained a **reward model** on the judges' choices, and then the assistant on its rewards (**RLHF**).
# DPO needs no reward model.
#
# In Gemma 2, an internal signal for unknown names seems to have become tied to refusing ([Ferrando et al., 2025](https://arxiv.org/abs/2411.14257)).
# How much of what large models make up comes from such causes is an open question.

# %% [markdown]
# <details><summary><em>How sure is this?</em></summary>
#
# Each result comes from three networks, each with its own hundred people; the tables of accuracies and probabilities show one.
#
# We tried nine pairs of learning rates, for pretraining and for fine-tuning: one wording in one order is far behind at all nine, and one wording in any order is behind five wordings in any order at seven.
# At the smallest rate of fine-tuning the town is the fact most often right in only three of nine networks, and at the largest one fine-tuning damages facts.
#
# At three rates, and among two hundred people, unknown names are refused only a little more often than known ones, by 2 to 14 in 100.
# Without biographies in between, a long training on refusals damages facts: led to them, the model completes only 45 in 100.
#
# DPO alone lost facts at each of three rates, also with β = 0.5.
# With β = 5 and a small rate they stayed, but little more than half of the drawn answers began politely.
# On reasoning tasks, with a model of 70 billion weights, fine-tuning on the preferred answers alone did worse than DPO with the cross-entropy (Pang et al., 2024).
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
SLUG = "from_gpt_to_assistant"
with cu.guard(
    "The fine-tuned model answers about people who weren't in the fine-tuning, and the look-up does not."
):
    assert by_group.loc["only in biographies", "fine-tuned"] > 0.85
    assert by_group.loc["only in biographies", "look-up"] < 0.2
    masked = {
        masked: cu.stored_runs(SLUG, "masking", masked=masked, rate=0.001)
        for masked in (True, False)
    }
    right = {
        masked: sum(run.result["held out, right"] for run in some) / len(some)
        for masked, some in masked.items()
    }
    assert round(right[True], 2) == 0.92 and round(right[False], 2) == 0.89

with cu.guard(
    "Every network knows all facts in its own text. Told in many ways it can tell most of them, and in one way far fewer."
):
    for run in cu.stored_runs(SLUG, "telling"):
        assert run.result["known"] > 0.99
        if run.config["told"] in ("many", "one", "one, named"):
            low, high = (0.88, 1) if run.config["told"] == "many" else (0.3, 0.75)
            assert low < run.result["0.001, held out, right"] < high
    for run in told["one"]:
        town, job, pet = (run.result[f"0.001, held out, right, {fact}"] for fact in worlds.VALUES)
        assert town > max(job, pet) + 0.1

with cu.guard(
    "About unknown names the model is as sure before fine-tuning as after, names the same in two cases of three, and nearly always a namesake’s."
):
    stored = [run.result for run in cu.stored_runs(SLUG, "namesakes")]
    for each in stored:
        assert each["before, sure"] > 0.7 and abs(each["before, sure"] - each["after, sure"]) < 0.05
        assert each["namesake"] > 0.9 and 0.6 < each["same"] < 0.7
    assert round(sum(each["namesake"] for each in stored) / 3, 2) == 0.96
    assert round(sum(each["chance"] for each in stored) / 3, 2) == 0.38

with cu.guard(
    "Fine-tuned on new facts about 25 strangers, the model learns them, and is right far less often about the others."
):
    taught = {
        new: [run.result for run in cu.stored_runs(SLUG, "new_facts", new=new)] for new in (0, 25)
    }
    others = {new: sum(each["held out"] for each in some) / 3 for new, some in taught.items()}
    assert round(others[0], 2) == 0.92 and round(others[25], 2) == 0.37
    assert all(each["new"] == 1 for each in taught[25])

with cu.guard(
    "Refusals are nearly as frequent about known people as about unknown names. The last names tell the two apart, and the vector at the question mark hardly does."
):
    kind = "320 names, long, and biographies"
    last = refusals.loc[TAUGHT[kind]]
    assert round(last["unknown name"], 1) == 0.9 and round(last["only in biographies"], 1) == 0.8
    for rate in (0.0003, 0.001, 0.003):
        runs_of = cu.stored_runs(SLUG, "refusals", taught=kind, rate=rate)
        known, unknown = (
            sum(run.result[f"{name}, refused"] for run in runs_of) / 3
            for name in ("held out", "unknown")
        )
        assert abs(known - unknown) < 0.2
    for run in cu.stored_runs(SLUG, "larger_world"):
        known, unknown = (
            run.result[f"320 names, long, {name}, refused"] for name in ("held out", "unknown")
        )
        assert 0.6 < known < unknown < known + 0.2
    left_of = {
        taught: [run.result for run in cu.stored_runs(SLUG, "left_of_names", taught=taught)]
        for taught in ("none", "320 names, long", kind)
    }
    led_to = {taught: sum(each["led"] for each in some) / 3 for taught, some in left_of.items()}
    assert led_to[kind] > 0.99 and 0.4 < led_to["320 names, long"] < 0.5
    for each in (*left_of["none"], *left_of[kind]):
        assert each["name"] == 1 and each["known name, least"] > 2 * each["unknown name, most"]
        assert 0.45 < each["probe"] < 0.65
    for run in cu.stored_runs(SLUG, "signals"):
        assert run.result["counted names"] > 0.999
    assert min(surprise["only in biographies"]) > 2 * max(surprise["unknown name"])

with cu.guard(
    "With β up to 0.5, DPO alone loses facts at each rate, and with the cross-entropy they stay, with nearly as high a margin."
):
    for run in cu.stored_runs(SLUG, "preferring"):
        if run.config["loss"] in ("margin", "margin, larger beta"):
            assert run.result["margin"] > 3.5 and run.result["preferred"] < 0
            assert run.result["right"] < 0.7
        elif run.config["rate"] > 0.00003:
            assert run.result["right"] > 0.85 and run.result["preferred"] > 1
            assert run.result["polite"] == 1 and run.result["drawn, polite"] > 0.9
    for run in cu.stored_runs(SLUG, "judged", agree=1.0, beta=5.0):
        assert run.result["right"] > 0.85 and 0.5 < run.result["begun politely"] < 0.6

with cu.guard(
    "Trained on polite lies about fifty people (exercise 3), three networks lie politely about the others, too."
):
    lies = [run.result for run in cu.stored_runs(SLUG, "lying")]
    assert len(lies) == 3
    for each in lies:
        assert each["before, held out, right"] > 0.9 and each["after, held out, right"] < 0.4
        assert each["after, asked, right"] < 0.5 and each["after, held out, polite"] == 1

with cu.guard(
    "Given every word before it, the networks of DPO alone get six facts in ten right. What falls most are words after “Well”, and in two of three networks “They live in” falls much more than the fact."
):
    shares = [run.result["led, polite"] for run in cu.stored_runs(SLUG, "led", loss="margin")]
    assert round(sum(shares) / len(shares), 1) == 0.6
    gains = [run.result for run in cu.stored_runs(SLUG, "by_word")]
    for gain in gains:
        assert gain["long, opening"] < 5 * min(gain["long, first"], gain["polite, to the fact"])
        assert -1.5 < gain["polite, fact"] < 0
    assert sum(gain["polite, to the fact"] < 5 * gain["polite, fact"] for gain in gains) == 2

with cu.guard("Where judges agree, fine-tuning on the preferred answers alone does as well."):
    for run in cu.stored_runs(SLUG, "preferring", loss="likelihood", rate=0.0001):
        assert run.result["polite"] == 1 and run.result["right"] > 0.85


# %% [markdown]
# ## Take-aways
#
# - An assistant is a GPT that was trained on answers.
#   What ours knew about people whom nobody had asked about came from pretraining.
#   A network that had read each fact in only one wording and order could recite them all, and answered less than half of the questions.
# - Asked about a stranger, it gave a fact of a namesake, as surely as before fine-tuning.
#   Trained on refusals, it learned for whom it had seen an answer, not whom it knows.
# - DPO raises the margin between two answers.
#   Here the margin rose while the answers fell apart, and adding the cross-entropy kept them together.

# %% [markdown] tags=["next"]
# Next: [a project of your own](D_capstone.ipynb).
# The path to a real model ends here.
# [From GPT to an assistant: judges who disagree, and your own text](21_from_gpt_to_assistant_further.ipynb) shows what β decides.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("from_gpt_to_assistant")

# %% [markdown]
# ## References
#
# - Allen-Zhu, Z. and Li, Y. (2023).
#   [Physics of language models: part 3.1, knowledge storage and extraction](https://arxiv.org/abs/2309.14316).
#   ICML 2024.
# - Bradley, R. A. and Terry, M. E. (1952).
#   [Rank analysis of incomplete block designs: I. The method of paired comparisons](https://doi.org/10.2307/2334029).
#   Biometrika.
# - Ferrando, J. et al. (2025).
#   [Do I know this entity? Knowledge awareness and hallucinations in language models](https://arxiv.org/abs/2411.14257).
#   ICLR.
# - Gao, L., Schulman, J. and Hilton, J. (2023).
#   [Scaling laws for reward model overoptimization](https://arxiv.org/abs/2210.10760).
#   ICML.
# - Gekhman, Z. et al. (2024).
#   [Does fine-tuning LLMs on new knowledge encourage hallucinations?](https://arxiv.org/abs/2405.05904)
#   EMNLP.
# - Kalai, A. T. et al. (2025).
#   [Why language models hallucinate](https://arxiv.org/abs/2509.04664).
# - Ouyang, L. et al. (2022).
#   [Training language models to follow instructions with human feedback](https://arxiv.org/abs/2203.02155).
#   NeurIPS.
# - Pang, R. Y. et al. (2024).
#   [Iterative reasoning preference optimization](https://arxiv.org/abs/2404.19733).
#   NeurIPS.
# - Rafailov, R. et al. (2023).
#   [Direct preference optimization: your language model is secretly a reward model](https://arxiv.org/abs/2305.18290).
#   NeurIPS.
# - Rafailov, R. et al. (2024).
#   [Scaling laws for reward model overoptimization in direct alignment algorithms](https://arxiv.org/abs/2406.02900).
#   NeurIPS.
# - Razin, N. et al. (2024).
#   [Unintentional unalignment: likelihood displacement in direct preference optimization](https://arxiv.org/abs/2410.08847).
#   ICLR 2025.
