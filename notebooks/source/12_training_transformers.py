# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training transformers
#
# **A training run goes well, and then it breaks.
# How do you notice? What exactly broke? And how do you get your model back?**
#
# Here is a small translator from English to Spanish, halfway through its training.
# At the dotted line you decide how it goes on.
# Break it, and then find the button that brings the Spanish back.

# %% jupyter={"source_hidden": true}
import math
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.lessons.training_transformers import runs
from course_utils.lessons.training_transformers.small_spanish import entropy_given, spanish_world

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.broken()

# %% [markdown]
# At the high **learning rate** the loss jumps, BLEU falls to zero, and the translator says nothing at all, or nothing but periods.
# Lowering the rate again doesn't help, although the translator had learned well at that very rate.
# What helps is a file: somebody had saved the weights at step 168, just before the break.
# In his lecture, [Kak (2025)](https://engineering.purdue.edu/DeepLearn/) tells of a translator whose BLEU suddenly fell to zero like this.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - judge a falling loss by comparing it with three baselines;
# - find out which part of a model is to blame, by an intervention with a control;
# - say why Adam's first steps are so large, and what a warm-up does about it;
# - choose the best of your saved weights fairly.

# %% [markdown] tags=["needs"]
# You will need [The Transformer](10_transformer.ipynb), and BLEU from [Sequence to sequence](05_sequence_to_sequence.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("bahdanau_attention", "transformer")

# %% [markdown]
# ## A loss that falls: three baselines
#
# Let's begin with an accident that is harder to notice, because the loss falls.
# We train one model twice, with the same first weights and the same sentences.
# Run A uses the full learning rate from its first step on, whereas in run B the rate rises to it over 50 steps.
#
# The model is the original Transformer, with the norm after the sum ([post-norm](C_glossary.ipynb#post-norm-and-pre-norm)).
# The sentences come in three parts.
# We learn from the **training set** `world.train`, choose by the **[validation set](C_glossary.ipynb#validation-set)** `world.val`, and keep the **test set** `world.test` for one score at the end.

# %%
world = spanish_world()


def new_model(norm_first, seed):
    """4 + 4 layers; the same seed gives the same first weights."""
    cu.seed_everything(seed)
    return cu.Transformer(
        len(world.source_vocab), len(world.target_vocab), embed_dim=64, num_heads=4,
        ffn_dim=128, num_layers=4, dropout=0.0, norm_first=norm_first,
    )  # fmt: skip


print(f"{len(world.train)} pairs, {len(world.target_vocab)} Spanish tokens")

# %% [markdown]
# The next cell contains the whole training loop. The learning rate is a function of the step.


# %%
def train(model, batches, rate, optimizer=None, each_step=None):
    """One step of Adam for each batch, at rate(1), rate(2), …; returns the losses."""
    if optimizer is None:
        optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    loss_of, losses = cu.translation_loss(), []
    for step, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        total, count = loss_of(model, batch)  # summed over real tokens
        optimizer.zero_grad()
        (total / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(total.item() / count)
        if each_step:
            each_step(step)
    return losses


# %% [markdown]
# What is a good loss?
# A uniform guess among all Spanish tokens has a loss of $\ln 428 = 6.06$, but that is a weak **[baseline](C_glossary.ipynb#baseline)**.
# How low can a model get *without ever looking at the English*?
#
# ### Exercise 1 · What a context tells
#
# *build · 8 minutes*
#
# Our baselines see a *context* and nothing else.
# The best such a model can do is count: the probability of a token is its share of all tokens that came with this context.
# Compute the loss, that is, the mean of $-\ln p$ over the same tokens.
# For example, with the contexts x x x y and the tokens a a b b it is $-\tfrac14(2\ln\tfrac23 + \ln\tfrac13 + \ln 1) = 0.477$.


# %% tags=["exercise", "build"]
def loss_given(contexts, tokens):
    """Two lists of one length; contexts are numbers, words, or tuples. In nats."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.loss_given(loss_given)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def loss_given_solution(contexts, tokens):
    """Count pairs and contexts; the probability is their quotient."""
    pairs = Counter(zip(contexts, tokens, strict=True))
    times = Counter(contexts)
    total = 0.0
    for context, token in zip(contexts, tokens, strict=True):
        total -= math.log(pairs[context, token] / times[context])
    return total / len(tokens)


cu.checks.loss_given(loss_given_solution)

# %% [markdown]
# We give your function three contexts: nothing at all (a **unigram** model), the position in the sentence, and the token before (a **bigram** model).
# A fourth context, all tokens before, gives the lowest loss that any model can reach on these sentences without the English.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
loss_of_context = cu.choose(loss_given, entropy_given)
sentences = [[*pair.target, "<eos>"] for pair in world.train]
tokens = [token for words in sentences for token in words]
positions = [i for words in sentences for i in range(len(words))]
so_far = [tuple(words[:i]) for words in sentences for i in range(len(words))]
baselines = {
    "unigram": loss_of_context([0] * len(tokens), tokens),
    "position": loss_of_context(positions, tokens),
    "bigram": loss_of_context([context[-1:] for context in so_far], tokens),
    "all before": loss_of_context(so_far, tokens),
}
print("loss per token:", *(f"{name} {loss:.2f}" for name, loss in baselines.items()), sep="   ")

# %% [markdown]
# The broken translator at the top of this page ends close to the loss of the unigram model.
#
# Now we train A, and draw its loss and B's, with a dotted line for each baseline.

# %% tags=["nbval-ignore-output"]
RATE = 6e-3
ramp = 0  # try 0 … 100


def schedule(step, warmup):
    """Up in a line over `warmup` steps; from step 50, or later, down as 1/√step."""
    rise = step / warmup if warmup else 1.0
    return min(rise, 1.0, math.sqrt(max(warmup, 50) / step))


failed = new_model(norm_first=False, seed=0)
losses = train(failed, world.batches(112), lambda step: RATE * schedule(step, ramp))
print(f"loss of the last step: {losses[-1]:.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
every_run = runs.load_training_runs()
three = {"A": runs.found(every_run, warmup=0), "B": runs.found(every_run)}  # three seeds each
MEANS = {"A": "A: no warm-up", "B": "B: warm-up"}
COLOR = {"A": cu.COLORS["query"], "B": cu.COLORS["key"]}
fig, ax = cu.subplots(
    width=7, height=3.4,
    alt="Training losses of A and B, three seeds each, over 280 steps, with dotted lines for the unigram, position, and bigram "
    "models and for all tokens before. B falls below the lowest line; A stays between the lines.",
)  # fmt: skip
for name, dash in (("A", "-"), ("B", "--")):
    for run in three[name]:
        label = MEANS[name] if run is three[name][0] else None
        ax.plot(*zip(*run["curves"]["loss"], strict=True), dash, color=COLOR[name], label=label)
for name, value in baselines.items():
    ax.axhline(value, color=cu.COLORS["line"], linewidth=0.8, linestyle=":")
    ax.text(280, value, f" {name}", va="center")
ax.set(xlabel="Step", ylabel="Training loss per token", xlim=(0, 280), ylim=(0, 6.3))
ax.legend(loc="upper right")
fig

# %% [markdown]
# Both losses fall.
# But B falls below every dotted line, which no model can do without the English, while A stays among the baselines.
# **A falling loss means little until you draw a baseline beside it.**
#
# To see whether A reads the English at all, we give it *another sentence's*.


# %% tags=["nbval-ignore-output"]
def with_another_english(batch):
    """The same Spanish, each sentence with the English of another one."""
    far = len(batch.source) // 2
    source, lens = (tensor.roll(far, 0) for tensor in (batch.source, batch.source_lens))
    return replace(batch, source=source, source_lens=lens)


@torch.no_grad()
def loss_on(model, batch):
    """Loss per token."""
    total, count = cu.translation_loss()(model, batch)
    return total.item() / count


validation = world.whole(world.val)
own, another = loss_on(failed, validation), loss_on(failed, with_another_english(validation))
print(f"A's loss with the right English {own:.2f}, with another sentence's {another:.2f}")

# %% [markdown]
# The table shows three training runs of each, after 112 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
exchanged = {
    (MEANS["AB"[run.config["warmup"] > 0]], f"run {run.config['seed']}"): run.result
    for run in cu.stored_runs("training_transformers", "other_english")
}
exchanged = pd.DataFrame(exchanged).rename({"right": "its own English", "another": "another's"})
exchanged.T.unstack(level=0).swaplevel(axis=1).sort_index(axis=1, ascending=[True, False]).round(2)

# %% [markdown]
# B believes the English: with the wrong sentence its loss rises by about three, to that of a unigram model.
# A hardly cares: its loss rises by less than one.
# Two of its runs, 1 and 2, have become **language models**, which speak Spanish and read little of the English.
# Run 0 is even worse, and does hardly better than the model that sees the position alone.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The broken translator has the loss of a unigram model, whose most common tokens are the end and the period."
):
    broken = cu.stored_runs("training_transformers", "broken")
    assert all(abs(run.result["high, loss"] - baselines["unigram"]) < 0.35 for run in broken)
    assert all(abs(run.result["lower, loss"] - baselines["unigram"]) < 0.35 for run in broken)
    assert [token for token, _ in Counter(tokens).most_common(2)] == ["<eos>", "."]

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After 280 steps A is where a model without the source can be, and B is far below.",
    given=ramp == 0,
):
    at_end = {name: [run["curves"]["loss"][-1][1] for run in some] for name, some in three.items()}
    assert min(at_end["A"]) > baselines["all before"] > 5 * max(at_end["B"])
    assert max(run["bleu"] for run in three["A"]) < 0.03
    assert min(run["bleu"] for run in three["B"]) > 0.8

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Another sentence's English costs B far more than A, and B is then about as good as a unigram model. Two trainings of A are as good as a bigram model, and one is as good as the position alone."
):
    costs = exchanged.loc["another's"] - exchanged.loc["its own English"]
    assert costs[MEANS["A"]].max() < 1.2 < 2.2 < costs[MEANS["B"]].min()
    assert (exchanged.loc["another's", MEANS["B"]] - baselines["unigram"]).abs().max() < 0.8
    assert ramp or another - own < 1.2
    of_a = exchanged.loc["its own English", MEANS["A"]]
    assert ((of_a - baselines["bigram"]).abs() < 0.3).sum() == 2
    assert ((of_a - baselines["position"]).abs() < 0.3).sum() == 1

# %% [markdown]
# ## What broke? An intervention with a control
#
# There are two suspects.
# A's encoder may have nothing to offer, or its decoder may not look.
# One measurement for each:
#
# - The **cosine similarity** of the encoder's outputs, as a mean over all pairs of tokens of 200 sentences.
#   At 1 all words have the same vector.
# - The **normalized entropy** of the decoder's cross-attention, which is its [entropy](C_glossary.ipynb#entropy) divided by the entropy of equal weights.
#   At 1 the decoder looks at all English words alike.
#
# The figure shows both over 112 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
looked = {
    letter: [
        run.curves for run in cu.stored_runs("training_transformers", "inner_states", warmup=n)
    ]
    for letter, n in (("A", 0), ("B", 50))
}
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.9,
    alt="Cosine similarity of the encoder's outputs and normalized entropy of the cross-attention over 112 steps, three seeds of A and of B. In A the similarity jumps to nearly 1 and "
    "comes down to 0.65 and 0.70 in two seeds, and the entropy stays at 1; in B the similarity rises to 0.8 or 0.9, falls to 0.1, and the entropy falls to 0.5.",
)  # fmt: skip
titles = {"likeness": "Mean cosine similarity", "evenness": "Normalized entropy"}
for ax, (name, title) in zip(axes, titles.items(), strict=True):
    for letter, dash in (("A", "-"), ("B", "--")):
        for i, curves in enumerate(looked[letter]):
            label = MEANS[letter] if i == 0 and ax is axes[1] else None
            ax.plot(*zip(*curves[name], strict=True), dash, color=COLOR[letter], label=label)
    ax.set(xlabel="Step", ylabel=title, xlim=(0, 112), ylim=(0, 1.03))
axes[1].legend(loc="lower left")
fig

# %% [markdown]
# In A the similarity jumps to nearly 1 within three steps, so the encoder says the same about every word.
# This doesn't prove that the encoder is the culprit, because in B the similarity rises as well, and then comes down.
# Even in two of A's runs it comes down, but only between words of different sentences.
# Within a sentence, all words stay alike.
#
# To learn which half is in the way we need an **intervention**.
# We take A after 112 steps and **re-initialize** its encoder, that is, give it new random weights.
# Then we do the same with its decoder instead, and then with neither.
# Each time we train on for another 224 steps, now with the [warm-up](C_glossary.ipynb#warm-up) of B.
# The **control** is B itself, where both halves were new.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def exchange(model, part, seed):
    """Give the "encoder", the "decoder" or "nothing" of a model new random weights."""
    fresh = new_model(False, seed + 100)
    parts = {
        "encoder": ["source_embedding", "encoder"],
        "decoder": ["target_embedding", "decoder", "output"],
        "nothing": [],
    }
    for name in parts[part]:
        getattr(model, name).load_state_dict(getattr(fresh, name).state_dict())
    return model


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "224 more steps, with a warm-up. What is the least that we have to re-initialize, so that the model begins to translate in all three runs?",
    ["nothing", "the encoder", "the decoder", "both"],
    answer="the encoder",
    wrong={
        "nothing": "The rate is now one that B learned with. But do the weights begin where B's did?",
        "the decoder": "The decoder does not choose where to look, that's true. But is there something to choose from?",
        "both": "With both halves new it is run B, and that is enough. Is one of the halves enough, too?",
    },
    why="With a new encoder BLEU rises to more than 0.8 in two runs and begins to rise in the third. With a new decoder it stays near 0.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
second = []
for run in cu.stored_runs("training_transformers", "second_try"):
    for key, value in run.result.items():
        name, steps, measure = key.split(", ")
        case = (name.split()[0], run.config["seed"], int(steps))
        second.append([*case, name, measure, value])
keys = ["new", "training", "steps", "draw"]
second = pd.DataFrame(second, columns=[*keys, "measure", "value"])
second = second.pivot(index=keys, columns="measure", values="value")
again = second["bleu"].groupby(level=[0, 1, 2]).mean().unstack(level=[1, 2]).sort_index(axis=1)
again.loc["both (run B)"] = [
    dict(run["curves"]["bleu"])[steps] for run in three["B"] for steps in (112, 224)
]
again = again.rename(columns="run {}".format, level=0)
again = again.rename(columns="{} steps".format, level=1).rename_axis([None, None], axis=1)
again = again.rename_axis("BLEU with new weights for", axis=0)
again.loc[["nothing", "decoder", "encoder", "both (run B)"]].round(2)

# %% [markdown]
# If we re-initialize nothing, or just the decoder, the warm-up comes too late.
# With a new *encoder* all three begin to read the English, and two translate within 112 steps.
# The third has only just begun after 224.
# So **most of the lasting damage is in the encoder**.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With a new encoder all three read the English, and two translate within 112 steps; with a new decoder or nothing new none does."
):
    price = (second["another"] - second["right"]).unstack("steps")
    assert price.loc["encoder"][112].min() > 1.2 and price.loc["encoder"][224].min() > 3
    assert price.loc[["nothing", "decoder"]].max(axis=None) < 2
    assert second["bleu"].loc[["nothing", "decoder"]].max() < 0.08
    early, late = (again.xs(f"{steps} steps", axis=1, level=1) for steps in (112, 224))
    assert (early.loc["encoder"] > 0.4).sum() == 2 and late.loc["encoder"].min() > 0.15
    assert (early.loc["both (run B)"] > 0.25).all()

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("In A the decoder looks everywhere alike to the end, and in B it chooses."):
    assert all(curves["evenness"][-1][1] > 0.99 for curves in looked["A"])
    assert all(curves["evenness"][-1][1] < 0.6 for curves in looked["B"])
    assert all(max(value for _, value in curves["likeness"][:4]) > 0.95 for curves in looked["A"])

# %% [markdown]
# ## Small first steps: Adam and warm-up
#
# Why is the full learning rate too much for the very first steps?
# **[Adam](C_glossary.ipynb#adam)** ([Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980)) divides each gradient $g$ by its usual size.
# It keeps two averages,
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\,g, \qquad v \leftarrow \beta_2 v + (1-\beta_2)\,g^2 .$$
#
# With $\beta_2 = 0.98$ the second average remembers about $1/(1-\beta_2) = 50$ steps.
# Both begin at zero, so after $t$ steps Adam divides them by $1-\beta_1^t$ and $1-\beta_2^t$ to make up for it.
# At the first step this gives $\hat m = g$ and $\hat v = g^2$, so with the learning rate $\eta$ the weight moves by
#
# $$\eta\,\frac{\hat m}{\sqrt{\hat v}} = \eta\,\frac{g}{|g|} = \pm\,\eta ,$$
#
# the full rate, whatever the gradient is.
# The next cell takes this step with three weights, after **gradient clipping** ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)), which shortens the whole gradient to length 1.

# %%
limit = 1.0  # try 0.1 … 1000.0
weight = nn.Parameter(torch.zeros(3))
weight.grad = torch.tensor([100.0, -1.0, 0.01])
adam_step = pd.DataFrame({"gradient": weight.grad.tolist()})
nn.utils.clip_grad_norm_([weight], limit)
adam_step["clipped"] = weight.grad.tolist()
torch.optim.Adam([weight], lr=RATE, betas=(0.9, 0.98)).step()
adam_step["moves by"] = weight.tolist()
adam_step.round(4)

# %% [markdown]
# All three weights move by the full rate.
# Clipping made every gradient a hundred times smaller, but it didn't make any of the steps smaller.
# [What it does protect](12_training_transformers_further.ipynb#What-clipping-protects) is another story.
# The weights of our attention layers start at about $1/\sqrt{3\cdot 64} = 0.07$, so all of them change by a twelfth of their size at once.
#
# A **warm-up** makes these steps small: the rate rises linearly over the first $W$ steps.
# After that the rate usually falls, as in the Transformer's own schedule ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 5.3), where the rate at step $t$ is $d^{-1/2}\min(t^{-1/2},\ t\,W^{-3/2})$.
#
# ### Exercise 2 · Steps on paper
#
# *predict · 5 minutes*
#
# Give all answers in *thousandths*, with one decimal.
#
# - (a) A rate rises linearly to its peak of 0.006 at step 50, and then falls as $1/\sqrt{t}$, without a jump.
#   How large is it at step 450?
# - (b) Adam's first step has the rate 0.005, and the gradient of a weight, 100, is clipped to 1.
#   How far does the weight move?
# - (c) What is the peak of the Transformer's own schedule, for $d = 256$ and $W = 4000$?


# %% tags=["exercise", "predict"]
def predicted_steps():
    """Three numbers, for (a) to (c), without running anything."""
    return ...  # such as [1, 2, 3]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_steps(predicted_steps)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_steps_solution():
    """6 · √(50/450); the rate, whatever the gradient; 1/√(256 · 4000) = 0.00099."""
    return [2, 5, 1.0]


cu.checks.predicted_steps(predicted_steps_solution)

# %% [markdown]
# The length of the warm-up is a **hyperparameter**, a number that we choose and training never touches.
# Start where A failed, and move the warm-up to the right until the post-norm model ("norm after") begins to learn.
# Then try other rates.

# %% jupyter={"source_hidden": true}
cu.explore.warmup()

# %% [markdown]
# At the two smaller rates neither model needs a warm-up, and at the largest both do.
# In between, at A's rate, only post-norm needs one.
# **What a warm-up buys us here is a larger learning rate.**
# Which does the damage, the size of the first steps or Adam's empty memory?
# [The further page](12_training_transformers_further.ipynb#What-do-the-first-steps-destroy?) separates the two.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague reports: "I have put the warm-up into PyTorch's own `LambdaLR`, and it doesn't help."
# Here is her loop, and the rates that it really uses.
# Find her two mistakes and write `fixed_fit`, in which step $t = 1, 2, \dots$ has the rate `lr * schedule(t)`.


# %%
def buggy_fit(model, batches, loss, *, epochs, lr, schedule):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    rates = []
    for _ in range(epochs):
        for batch in batches:
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
        scheduler.step()
    return rates


# %% tags=["hide-input"] jupyter={"source_hidden": true}
line, inputs = nn.Linear(3, 1), [torch.randn(4, 3) for _ in range(56)]
used = buggy_fit(
    line, inputs, lambda model, x: model(x).square().mean(), epochs=5, lr=RATE,
    schedule=lambda step: schedule(step, 50) if step else 0.0,
)  # fmt: skip
shown = [1, 56, 57, 280]
rates = {"her rate": [used[n - 1] for n in shown]}
rates["asked for"] = [RATE * schedule(n, 50) for n in shown]
pd.DataFrame(rates, index=[f"step {n}" for n in shown]).T.round(5)


# %% tags=["exercise", "bug"]
def fixed_fit(model, batches, loss, *, epochs, lr, schedule):
    """Train with Adam; returns the list of the rates, one for each step."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_fit(fixed_fit)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_fit_solution(model, batches, loss, *, epochs, lr, schedule):
    """LambdaLR counts steps that are done, from 0; and `scheduler.step()` belongs to each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + 1))
    rates = []
    for _ in range(epochs):
        for batch in batches:
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
            scheduler.step()
    return rates


cu.checks.fixed_fit(fixed_fit_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Adam's first step is the full rate, clipped or not."):
    assert (adam_step["moves by"].abs() - RATE).abs().max() < 1e-4

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the two smaller rates neither order needs a warm-up; at 0.006 post-norm does; at 0.012 both do."
):
    bleu_at = {
        (order, rate, warmup): [run["bleu"] for run in runs.found(every_run, norm_first=order, lr=rate, warmup=warmup)]
        for order in (False, True) for rate in (0.0015, 0.003, 0.006, 0.012) for warmup in (0, 10, 50, 100)
    }  # fmt: skip
    for order in (False, True):
        assert min(*bleu_at[order, 0.0015, 0], *bleu_at[order, 0.003, 0]) > 0.5
        without = bleu_at[order, 0.012, 0] + bleu_at[order, 0.012, 10]
        longer = bleu_at[order, 0.012, 50] + bleu_at[order, 0.012, 100]
        assert max(without) < 0.25 < min(longer)
    assert max(bleu_at[False, 0.006, 0]) < 0.05 and min(bleu_at[False, 0.006, 50]) > 0.8
    assert min(bleu_at[True, 0.006, 0]) > 0.5

# %% [markdown]
# ## A recipe: one batch, gradient norms, three rates
#
# A well-known recipe ([Karpathy, 2019](https://karpathy.github.io/2019/04/25/recipe/)) should catch a run like A early.
# Here are three of its checks:
#
# 1. **Overfit one batch.** A model that can't do this has a bug.
#    Run A passes: it [overfits](C_glossary.ipynb#overfitting) a batch in 56 steps, even faster than run B.
# 2. **Look at the gradient norm of each part**, here of the whole model and of the queries and keys of its cross-attention.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
parts = {
    letter: [run.curves for run in cu.stored_runs("training_transformers", "gradients", warmup=n)]
    for letter, n in (("A", 0), ("B", 50))
}
looks = "cross-attention, queries and keys"
fig, ax = cu.subplots(
    width=7, height=3.0,
    alt="Gradient norms of A and B before clipping over 112 steps, on a logarithmic axis, three seeds each. For the whole model both stay near 1. "
    "For the queries and keys of the cross-attention B's lies between 0.004 and 0.3, and A's falls below 0.0001 within 20 steps and mostly stays there or falls on.",
)  # fmt: skip
for letter, dash in (("A", "-"), ("B", "--")):
    for place, curves in enumerate(parts[letter]):
        for part, name, line in (("total", "whole model", 0.6), (looks, "queries and keys", 2)):
            label = f"{letter}, {name}" if place == 0 else None
            ax.plot(*zip(*curves[part], strict=True), dash, color=COLOR[letter], linewidth=line, label=label)  # fmt: skip
ax.set(xlabel="Step", ylabel="Gradient norm", yscale="log", xlim=(0, 112))
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
fig

# %% [markdown]
# The total norm looks healthy.
# Its parts don't.
# After twelve steps the gradient of the queries and keys in A's cross-attention is a hundred times smaller than in B's, and soon it is thousands of times smaller.
# The words of a sentence leave A's encoder as nearly the same vector, so it makes no difference where the decoder looks, and no gradient tells it to look elsewhere.
# **Look at the gradient norm of each part.**
# Here, twelve steps were enough to give A away.
#
# 3. **[Try three learning rates](G_controls.ipynb).** At half and at a quarter of its rate, A's model translates without a warm-up.
#
# A passes the first check and is caught by the other two.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A overfits one batch and its total gradient stays near B's; its queries and keys get almost none, since the words of a sentence are alike; smaller rates save it."
):
    one_batch = cu.stored_runs("training_transformers", "one_batch")
    assert all(run.result["loss"] < 0.1 for run in one_batch)
    for of_a, of_b in zip(parts["A"], parts["B"], strict=True):
        steps = [step for step, _ in of_a[looks]]
        ratio = pd.DataFrame(
            {part: [b / a for (_, a), (_, b) in zip(of_a[part], of_b[part], strict=True)] for part in ("total", looks)},
            index=steps,
        )  # fmt: skip
        assert ratio[looks][12] > 100 and ratio[looks][24:].median() > 1000
        assert 0.5 < ratio["total"][12:].median() < 2
        assert max(value for step, value in of_a["spread"] if step >= 12) < 0.05
        assert min(value for _, value in of_b["spread"]) > 0.15
    assert min(bleu_at[False, 0.0015, 0] + bleu_at[False, 0.003, 0]) > 0.5

# %% [markdown]
# ## Checkpoints: back to the best file
#
# Now break a run yourself.
# The rate follows B's schedule up to `break_at`, and from there on it is whatever you like.
# Every 28 steps we write a **[checkpoint](C_glossary.ipynb#checkpoint)**, a file with the weights, and at the end we score them all on the validation sentences and go back to the best.

# %% tags=["nbval-ignore-output"]
high_rate = 0.03  # try 0.001 … 0.05
break_at = 140  # try 28 … 190
folder = Path(tempfile.mkdtemp())
mine = new_model(norm_first=False, seed=3)


def my_rate(step):
    return RATE * schedule(step, 50) if step <= break_at else high_rate


def save(step):
    if step % 28 == 0:
        torch.save(mine.state_dict(), folder / f"step_{step:03d}.pt")


my_losses = train(mine, world.batches(196), my_rate, each_step=save)
print(f"loss of the last step: {my_losses[-1]:.2f}")


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
def best_file(folder, model, score):
    """Scores of all files by name; the model ends with the weights of the best."""
    scores = {}
    for path in sorted(folder.glob("*.pt")):
        model.load_state_dict(torch.load(path, weights_only=True))
        scores[path.name] = score(model)
    best = max(scores, key=scores.get)
    model.load_state_dict(torch.load(folder / best, weights_only=True))
    return best, scores


best, scores = best_file(folder, mine, lambda model: world.bleu(model, world.val))
print("BLEU on validation:", *(f"{score:.2f}" for score in scores.values()))
print(f"the best, {best}: BLEU {world.bleu(mine, world.test):.2f} on the test")

# %% [markdown]
# The translator is back, with whatever it had learned by then.
# We scored only the chosen file on the test set.
#
# Now try a case of your own, and write down your guess before you run it.
# How far can the rate jump before the training breaks?
# Try 0.012, then 0.02.
# And does it break as easily early on, say with `break_at = 56`?
#
# <details><summary>How sure is this?</summary>
#
# All of this is one small model on generated sentences.
# We drew new encoders and decoders twice each, and the table shows the means.
# Each statement rests on three training runs, except for the smaller rates of the recipe and most settings of the warm-up explorer, which we ran only once.
# A jump to only twice the peak makes all three translators worse, but breaks none of them.
# At step 56 a jump to 0.02 or 0.03 breaks all three, and no file helps, because no model could translate yet.
# We watched the broken translators for 112 steps after the rate was lowered, so we can't say that they would never recover.
# With four times as many steps, 1,120, one of the three training runs of A does find its way, but the other two don't.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The last file is worthless, and the best one is from before the break.",
    given=(high_rate, break_at) == (0.03, 140),
):
    ordered = list(scores.values())
    assert ordered[-1] < 0.05 < 0.3 < max(ordered)
    assert best <= f"step_{break_at:03d}.pt"

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three trainings a lower rate heals nothing in 112 steps, with Adam's old averages or empty ones, and the file does; at step 56 there is no good file."
):
    for run in broken:
        assert run.result["high, evenness"] > 0.99
        assert 0.2 < run.result["0.012, bleu"] < run.result["start, bleu"] - 0.1
        assert run.result["start, bleu"] > 0.4 and run.result["high, bleu"] < 0.01
        assert run.result["lower, bleu"] < 0.01 and run.result["lower, empty averages, bleu"] < 0.01
        assert min(run.result["file, bleu"], run.result["keep, bleu"]) > run.result["start, bleu"]
    for run in cu.stored_runs("training_transformers", "broken_early"):
        assert max(run.result["0.02, bleu"], run.result["0.03, bleu"]) < 0.01
        assert run.result["start, bleu"] < 0.1 < 0.14 < run.result["0.012, bleu"]
    longer = [
        run.result["bleu"] for run in cu.stored_runs("training_transformers", "four_times_as_long")
    ]
    assert sum(bleu > 0.4 for bleu in longer) == 1 and sum(bleu < 0.05 for bleu in longer) == 2

# %% [markdown]
# ## Take-aways
#
# - Draw baselines beside a training curve, and give a translator another sentence's source.
#   If that hardly hurts, the translator is at best a language model.
# - An odd measurement is a suspicion, and an intervention with a control is evidence.
# - A healthy total gradient norm can hide a part that learns nothing.
# - Adam's very first step is as large as the learning rate, clipped or not, and the next few are of that order.
#   A warm-up makes these steps small, and here that lets us use a larger rate.
# - Save checkpoints, choose by the validation set, and score only the chosen one on the test set.

# %% [markdown] tags=["next"]
# Next: [GPT](13_gpt.ipynb).
# The path to translation ends here.
# The further page, [Training transformers: optimizers, precision and a first generation](12_training_transformers_further.ipynb), also rebuilds a lecture's own translator.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("training_transformers")

# %% [markdown]
# ## References
#
# - Kak, A. (2025).
#   [Deep learning lectures](https://engineering.purdue.edu/DeepLearn/).
#   Purdue University.
#   The transformer lecture.
# - Karpathy, A. (2019).
#   [A recipe for training neural networks](https://karpathy.github.io/2019/04/25/recipe/).
# - Kingma, D. P. and Ba, J. (2015).
#   [Adam: a method for stochastic optimization](https://arxiv.org/abs/1412.6980).
#   ICLR.
# - Pascanu, R., Mikolov, T. and Bengio, Y. (2013).
#   [On the difficulty of training recurrent neural networks](https://arxiv.org/abs/1211.5063).
#   ICML.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 5.3: the schedule.
