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
# Two trainings, with the same model, the same first weights, the same sentences in the same order.
# The loss of both falls.
# After 280 steps one model translates most new sentences, the other hardly any; four times as many steps free it in some seeds, in others not.
# **What went wrong, how do you notice it, and which experiment shows the cause?**
#
# After this chapter you can
#
# - read the training loop of a transformer line by line, and draw the losses of three dull models beside its loss;
# - put the norm before or after the sum, and measure what each order does to gradients;
# - test an explanation of a failed training with an intervention, over three seeds;
# - say what a warm-up does, and what clipping does not do;
# - score saved weights on validation sentences, and go back to the best file.
#
# It needs [The Transformer](10_transformer.ipynb): encoder and decoder layers, the causal mask, teacher forcing.
# BLEU and the masked loss are those of [Sequence to sequence](05_sequence_to_sequence.ipynb).

# %%
import math
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.figures import label_lines
from course_utils.layers import Residual
from course_utils.lessons.training_transformers.runs import found, load_training_runs
from course_utils.lessons.training_transformers.small_spanish import entropy_given, spanish_world

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("bahdanau_attention", "transformer")

# %% [markdown]
# ## A loss that falls
#
# Call the two trainings A and B. From step 50 on they have the same learning rate.
# Before, A has the full rate at once, and in B it rises from a small one.
#
# The data: 3,253 English–Spanish pairs, generated from a grammar.
# They use only the 200 commonest English words (not all occur), and at most 8 Spanish tokens.
# 200 more English sentences are for **validation**: by them we choose.
# Another 200 are the **test** part, which we score once, at the end.
# No English sentence is in two parts.
# The model is the one of [The Transformer](10_transformer.ipynb), without dropout.

# %%
world = spanish_world()


def new_model(norm_first, seed):
    """4 + 4 layers; the same seed gives the same first weights."""
    cu.seed_everything(seed)
    return cu.Transformer(
        len(world.source_vocab), len(world.target_vocab), embed_dim=64, num_heads=4,
        ffn_dim=128, num_layers=4, dropout=0.0, norm_first=norm_first,
    )  # fmt: skip


sizes = len(world.source_vocab), len(world.target_vocab)
print(f"{sizes[0]} English and {sizes[1]} Spanish tokens")
pd.DataFrame(
    [(" ".join(pair.source), " ".join(pair.target)) for pair in world.val[:4]],
    columns=["English", "Spanish"],
)

# %% [markdown]
# This is the whole training loop.
# The rate is a function of the step, so that we can change it.
# `each_step` is called after each step, to measure what we like.
# Below it, the questions before every training.
# By hand an attention has $4(64^2 + 64)$ parameters, a position-wise network $64\cdot128 + 128 + 128\cdot64 + 64$, a norm $2\cdot 64$.


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


# %%
RATE = 6e-3
attention, network, norm = 4 * (64**2 + 64), 2 * 64 * 128 + 128 + 64, 2 * 64
layers = 4 * (attention + network + 2 * norm) + 4 * (2 * attention + network + 3 * norm)
counted = sum(sizes) * 64 + layers + 64 * sizes[1] + sizes[1]
first_batch = next(world.batches(1))
cu.before_training(
    new_model(False, 0), first_batch, cu.translation_loss(), expected=counted, lr=RATE
)

# %% [markdown]
# All 428 Spanish tokens equally likely would be a loss of $\ln 428 = 6.06$.
# But that is no baseline.
# What can a model know that never looks at the English sentence?
#
# ### Exercise 1 · What a context tells
#
# *build · 9 minutes*
#
# A model sees a *context* and gives each token a probability, here the best one: the share that this token has among all tokens with the same context, counted on the very tokens that it is scored on.
# Write its loss, the mean of $-\ln p$.
# By hand: contexts x x x y and tokens a a b b.
# In context x, a has ⅔ and b ⅓; in context y, b has 1.
# The loss is $-\tfrac14(2\ln\tfrac23 + \ln\tfrac13 + \ln 1) = 0.477$.


# %% tags=["exercise", "build"]
def loss_given(contexts, tokens):
    """Two lists of one length; contexts are numbers, words or tuples. In nats."""
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
# Three contexts for the Spanish training tokens: none (a **unigram** model), the place in the sentence, and the token before (a **bigram** model).
# And a fourth: all tokens before, which is what a perfect language model of these very sentences knows without the English ones.

# %%
known = cu.choose(loss_given, entropy_given)
sentences = [[*pair.target, "<eos>"] for pair in world.train]
tokens = [token for words in sentences for token in words]
places = [place for words in sentences for place in range(len(words))]
so_far = [tuple(words[:place]) for words in sentences for place in range(len(words))]
dull = {
    "unigram": known([0] * len(tokens), tokens),
    "place": known(places, tokens),
    "bigram": known([context[-1:] for context in so_far], tokens),
    "all before": known(so_far, tokens),
}
pd.Series(dull, name="loss per token").round(2).to_frame().T

# %% [markdown]
# Now training A, on this page: the rate is 0.006 from step 1 on, and falls as $1/\sqrt{\text{step}}$ after step 50.
# We stop after 112 steps, two passes over the data.
# (With `ramp = 50` it is training B.)

# %% tags=["nbval-ignore-output"]
ramp = 0  # try 0 … 100
failed = new_model(norm_first=False, seed=0)


def schedule(step, warmup):
    """Up in a line over `warmup` steps; from step 50, or later, down as 1/√step."""
    rise = step / warmup if warmup else 1.0
    return min(rise, 1.0, math.sqrt(max(warmup, 50) / step))


batches = world.batches(112)
failed_losses = train(failed, batches, lambda step: RATE * schedule(step, ramp))
said = world.say(failed, world.val)
asked = [" ".join(pair.target) for pair in world.val]
right = [mine == theirs for mine, theirs in zip(said, asked, strict=True)]
print(f"last 14 steps: loss {sum(failed_losses[-14:]) / 14:.2f}")
print(f"{sum(right)} of 200 right, {len(set(said))} different answers")
pd.DataFrame({"English": [" ".join(p.source) for p in world.val[:4]], "says": said[:4]})

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = load_training_runs()
three = {"A": found(runs, warmup=0), "B": found(runs)}  # three seeds each
MEANS = {"A": "A: no warm-up", "B": "B: warm-up"}
COLOR = {"A": cu.COLORS["query"], "B": cu.COLORS["key"]}


def draw_losses(ax, until):
    """Losses of three seeds of A and B, and those of the dull models as lines."""
    for name, dash in (("A", "-"), ("B", "--")):
        for run in three[name]:
            points = [point for point in run["curves"]["loss"] if point[0] <= until]
            label = MEANS[name] if run is three[name][0] else None
            ax.plot(*zip(*points, strict=True), dash, color=COLOR[name], label=label)
    for name, value in dull.items():
        ax.axhline(value, color=cu.COLORS["line"], linewidth=0.8, linestyle=":")
        ax.text(until, value, f" {name}", va="center")
    ax.set(xlabel="Step", ylabel="Training loss per token", xlim=(0, until), ylim=(0, 6.3))
    ax.legend(loc="upper right")


fig, ax = cu.subplots(
    width=7, height=3.4,
    alt="Training losses of A and B, three seeds each, over 280 steps, with dotted lines for the unigram, place and bigram "
    "models and for all tokens before. B falls below the lowest line; A stays between the lines.",
)  # fmt: skip
draw_losses(ax, 280)
much_longer = cu.stored_runs("training_transformers", "four_times_as_long")
much_longer = [run.result["bleu"] for run in much_longer]
print("A after 1,120 steps, BLEU:", *map("{:.2f}".format, much_longer))
fig

# %% [markdown]
# The dotted lines are the dull models, the curves three seeds of each training.
# At step 112 the three losses of A are 3.41, 2.24 and 2.29 (stored): one is just below what the *place* of a word tells (3.57), and none of them is below the bigram model (2.15), which sees nothing but the word before.
# At step 280 they are 2.46, 1.71 and 1.81.
# B is below all lines by then, at 0.12 to 0.15: that is possible only with the English sentence.
#
# And A says the same few things to 200 different sentences.
# Its falling loss is one that a poor **language model** of Spanish could have.
# It reads a little of the English, as questions get another answer than statements.
# The curve alone does not show this; the lines beside it do, and BLEU: 0.00 to 0.02 after 280 steps, where B has 0.82 to 0.87.
# (Is it lost for good?
# Not always: after 1,120 steps three such trainings have 0.03, 0.51 and 0.00.)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "For 280 steps A's loss is where a model without the source can be, B's is not.",
    given=ramp == 0,
):
    at_112, at_end = (
        {name: [run["curves"]["loss"][place][1] for run in some] for name, some in three.items()}
        for place in (7, -1)
    )
    assert sum(right) <= 4 and len(set(said)) < 40
    assert min(at_112["A"]) > dull["bigram"]
    assert min(at_end["A"]) > dull["all before"] > 5 * max(at_end["B"])
    assert max(run["bleu"] for run in three["A"]) < 0.03
    assert min(run["bleu"] for run in three["B"]) > 0.8
    assert min(much_longer) < 0.2 and max(much_longer) > 0.4

# %% [markdown]
# ## Two orders of norm
#
# A sublayer $f$ is attention or the position-wise network.
# Around it there is a **residual connection**, $x + f(x)$, and a layer norm.
# The paper of 2017 puts the norm *after* the sum ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)), most later models *before* the sublayer ([Xiong et al., 2020](https://arxiv.org/abs/2002.04745)):
#
# $$\text{after (\textbf{Post-LN}):}\quad x' = \mathrm{norm}\big(x + f(x)\big) \qquad\qquad \text{before (\textbf{Pre-LN}):}\quad x' = x + f\big(\mathrm{norm}(x)\big)$$

# %% tags=["hide-input"] jupyter={"source_hidden": true}
norm_box = {"color": "wash"}
cu.Drawing(
    """
    .   a0  .   .   b0  .
    .   a1  .   .   b1  .
    .   a2  .   .   b2  .
    .   a3  .   .   b3  .
    .   a4  .   .   b4  .
    .   a5  .   .   b5  .
    .   a6  .   .   b6  .
    .   .   .   .   b7  .
    """,
    nodes={
        "a0": cu.Box("x", shape="(n, d)", color="line"),
        "a1": cu.Box("self-attention"),
        "a2": cu.Circle("+"),
        "a3": cu.Box("norm", **norm_box),
        "a4": cu.Box("position-wise network", width=185),
        "a5": cu.Circle("+"),
        "a6": cu.Box("norm", **norm_box),
        "b0": cu.Box("x", shape="(n, d)", color="line"),
        "b1": cu.Box("norm", **norm_box),
        "b2": cu.Box("self-attention"),
        "b3": cu.Circle("+"),
        "b4": cu.Box("norm", **norm_box),
        "b5": cu.Box("position-wise network", width=185),
        "b6": cu.Circle("+"),
        "b7": cu.Box("norm, once, at the top", width=185, **norm_box),
    },
    arrows=["a0 -> a1 -> a2 -> a3 -> a4 -> a5 -> a6", "b0 -> b1 -> b2 -> b3 -> b4 -> b5 -> b6 -> b7",
            cu.Arrow("a0", "a2", around="left"), cu.Arrow("a3", "a5", around="left"),
            cu.Arrow("b0", "b3", around="left"), cu.Arrow("b3", "b6", around="left")],
    groups={"norm after: Post-LN": "a1 a2 a3 a4 a5 a6", "norm before: Pre-LN": "b1 b2 b3 b4 b5 b6"},
    alt="Two encoder layers. Left, norm after: x goes through self-attention and around it to a sum, then through a norm; "
    "the same with the position-wise network. Right, norm before: x goes through a norm and self-attention, and around both, to a sum; "
    "the same with the network; no norm lies on the way around. One norm stands at the top of the stack.",
    gap=(40, 20),
)  # fmt: skip

# %% [markdown]
# The way around is the **residual stream**.
# On the left each norm lies *on* it, on the right none does, but for one at the very top.
# With a pencil: words of two features, and let $f$ double them and exchange them.
# The layer norm of two numbers is $(1, -1)$ or $(-1, 1)$, whichever has the larger number first.


# %%
class Sublayer(nn.Module):
    """f with its residual connection and its norm, in one of two orders."""

    def __init__(self, embed_dim, norm_first):
        super().__init__()
        self.norm, self.norm_first = nn.LayerNorm(embed_dim), norm_first

    def forward(self, x, f):
        if self.norm_first:
            return x + f(self.norm(x))
        return self.norm(x + f(x))


# %%
first = 1.0  # try -4.0 … 2.5
words = torch.tensor([[first, 3.0], [first, 2.8], [3.0, first]])


def double_and_exchange(x):
    return 2 * x.flip(-1)


rows = {"x": words}
for order, norm_first in (("after", False), ("before", True)):
    rows[order] = Sublayer(2, norm_first)(words, double_and_exchange).detach()
    mine, package = Sublayer(8, norm_first), Residual(8, norm_first=norm_first)
    cu.equal(mine, package, torch.randn(4, 8), double_and_exchange)
pd.DataFrame({name: [f"({a:.1f}, {b:.1f})" for a, b in value.tolist()]
              for name, value in rows.items()})  # fmt: skip

# %% [markdown]
# Both are equal to the package's `Residual`, with gradients of $x$ and of the norm.
# With the norm after, the words (1, 3) and (1, 2.8) become the same: with two features only the order survives a norm on the stream.
# (With 64 features a norm takes two numbers away, the mean and the size, and leaves 62.)
# With the norm before, the input is still there: $x' - x$ is what $f$ said.
#
# ### What flows back
#
# A gradient takes the same ways downwards.
# Every norm on its way divides it by the standard deviation of what it normalizes; at every sum, what comes back through $f$ is added.
# Which of the two wins?
# We measure it in the stacks of the drawing, 24 sublayers high, at the beginning, attention and position-wise network in turn, with Xavier's initialization ([Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html)).
# Eight "sentences" of ten random vectors go in; the gradient at the top is random.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Norm after, 24 sublayers at random. How large is the gradient at the bottom, compared with the top?",
    ["a thousandth", "a tenth", "more than half"],
    answer="more than half",
    wrong={
        "a thousandth": "Along the way around f alone it is about 1/200, as the norms divide by 1.1 to 1.5 each. But what comes back through f?",
        "a tenth": "Which two ways does a gradient take at each sum, and what does the norm divide by?",
    },
    why="Along the way around alone it would be about 1/200. What comes back through f makes up for it.",
)


# %%
def gradient_sizes(norm_first, seed, height, through_f=True):
    """Size of the gradient on the residual stream, from the bottom to the top."""
    cu.seed_everything(seed)
    x = torch.randn(8, 10, 64, requires_grad=True)
    streams = [x]
    for place in range(height):
        f = cu.FeedForward(64, 128) if place % 2 else cu.MultiHeadAttention(64, 4)
        for weight in f.parameters():
            if weight.ndim == 2:
                nn.init.xavier_uniform_(weight)

        def read(x, f=f, alone=place % 2):
            said = f(x) if alone else f(x, x, x)
            return said if through_f else said.detach()  # no way back through f

        streams.append(Sublayer(64, norm_first)(streams[-1], read))
    top = nn.LayerNorm(64)(streams[-1]) if norm_first else streams[-1]
    gradients = torch.autograd.grad((top * torch.randn_like(top)).sum(), streams)
    return [gradient.norm().item() for gradient in gradients]


# %%
height = 24  # try 2 … 32
flows, flow_table = {}, {}
ways = {"after": (False, True), "before": (True, True)}  # norm_first, through_f
ways["after, around f only"] = False, False
for order, (norm_first, through_f) in ways.items():
    measured = [gradient_sizes(norm_first, s, height, through_f) for s in range(3)]
    flows[order] = torch.tensor(measured)
    for seed, row in enumerate(measured):
        flow_table[f"norm {order}", f"seed {seed}"] = row[0], row[height // 2], row[-1]
pd.DataFrame(flow_table, index=["bottom", "middle", "top"]).T.round(1)

# %% [markdown]
# With the norm after, the gradient at the bottom is 46 to 81, against 71 or 72 at the top, with a hollow of 22 to 27 between.
# Nothing vanishes.
# In the last rows no gradient comes back through $f$: 0.3 to 0.4 arrive at the bottom, about 1/200.
# So what comes back through $f$ makes up for what the norms take.
# With the norm before, it is 66 to 87 at the bottom and only 19 or 20 at the top, because the last norm divides by the standard deviation of a stream to which 24 sublayers have added.
# So what differs most is the *top*: its gradient is more than three times larger with the norm after.
# [Xiong et al. (2020)](https://arxiv.org/abs/2002.04745) prove bounds of this kind for the weights of the last layer: $O(d\sqrt{\ln d})$ after, and $O(d\sqrt{\ln d / L})$ before, with $L$ layers.
#
# A large gradient alone does not explain a failure, though: Adam divides each gradient by its size.
# For an explanation we have to intervene.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the start the orders differ at the top of the stack, hardly at the bottom; around f alone little arrives.",
    given=height == 24,
):
    ratio = flows["after"] / flows["before"]
    assert (ratio[:, -1] > 3).all()
    assert (ratio[:, 0] > 0.5).all() and (ratio[:, 0] < 1.5).all()
    assert (flows["after"][:, 0] > 0.5 * flows["after"][:, -1]).all()
    assert (flows["after, around f only"][:, 0] < 0.01 * flows["after"][:, -1]).all()

# %% [markdown]
# ## What broke?
#
# Which part of A went wrong?
# Two measures, on the validation sentences.
# **Likeness**: the mean cosine between the encoder's outputs for all pairs of tokens; 1 means that all are the same vector.
# **Evenness** of the cross-attention: the entropy of a row of weights as a share of that of equal weights; 1 means that the decoder looks at all English words alike.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
looked = {
    letter: [
        run.curves for run in cu.stored_runs("training_transformers", "looked_inside", warmup=n)
    ]
    for letter, n in (("A", 0), ("B", 50))
}
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.9,
    alt="Likeness of the encoder's outputs and evenness of the cross-attention over 112 steps, three seeds of A and of B. In A likeness jumps to nearly 1, "
    "comes down to 0.65 and 0.70 in two seeds, and evenness stays at 1; in B likeness rises to 0.8 or 0.9, falls to 0.1, and evenness falls to 0.5.",
)  # fmt: skip
for ax, name in zip(axes, ("likeness", "evenness"), strict=True):
    for letter, dash in (("A", "-"), ("B", "--")):
        for place, curves in enumerate(looked[letter]):
            label = MEANS[letter] if place == 0 and ax is axes[1] else None
            ax.plot(*zip(*curves[name], strict=True), dash, color=COLOR[letter], label=label)
    ax.set(xlabel="Step", ylabel=name.capitalize(), xlim=(0, 112), ylim=(0, 1.03))
label_lines(axes[1])
fig

# %% [markdown]
# In A the likeness rises from 0.3 to 0.98 within three steps: nearly one vector for all words.
# But this alone is not the failure.
# In B it rises as well, to 0.82, 0.92 and 0.80 after 12 or 16 steps, and then falls to less than 0.1.
# And in two seeds of A it comes down, too, to 0.65 and 0.70, while the evenness stays at 1.00 in all three: the words have different vectors again, and the decoder does not choose among them.
# In B it begins to choose around step 30, and ends at 0.50 to 0.53.
#
# So which half holds the damage, if any?
# An **intervention**: we take the weights of A after 112 steps, give the encoder, the decoder or nothing new random weights, and train 112 steps more, now with the [warm-up](C_glossary.ipynb#warm-up) of B. The control is B itself, where both halves are new.


# %%
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
    "112 more steps, with a warm-up. What has to be new, so that the model translates in at least two of three seeds?",
    ["nothing", "the encoder", "the decoder", "both"],
    answer="the encoder",
    wrong={
        "nothing": "The rate is now one that B learned with. But do the weights begin where B's did?",
        "the decoder": "It does not choose where to look. But is there something to choose from?",
        "both": "That is B, and it is enough. Is one of the halves enough, too?",
    },
    why="With a new encoder BLEU reaches 0.46 and 0.54 in two seeds, and 0.00 in the third. With a new decoder it stays at 0.00 to 0.02.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
second = cu.stored_runs("training_transformers", "second_try")
second = pd.DataFrame([run.config | run.result for run in second])
again = second.pivot(index="fresh", columns="seed", values=["loss", "bleu"])
again.loc["both (training B)"] = [
    *(run["curves"]["loss"][7][1] for run in three["B"]),
    *(run["curves"]["bleu"][1][1] for run in three["B"]),
]
again = again.rename_axis("new weights for").loc[
    ["nothing", "encoder", "decoder", "both (training B)"]
]
again.round(2)

# %% [markdown]
# With nothing new, a warm-up comes too late: BLEU stays at 0.00 to 0.02.
# With a new decoder, too (0.00 to 0.02).
# With a new *encoder* it learns in two of three seeds, to 0.46 and 0.54, more than B in as many steps, perhaps because the old decoder knows some Spanish already.
# In seed 0 that is not enough; there the decoder had learned little, as its loss of 3.4 to 3.6 says.
#
# So in all three seeds the failed encoder is an obstacle that the next 112 steps do not remove, although in two of them its outputs are no longer alike; and in one seed the decoder is one, too.
# Many more steps do help in some seeds: 112 is what this budget allows.

# %% jupyter={"source_hidden": true}
cu.quiz("training_transformers", "which_half")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "For 112 steps a failed encoder is an obstacle; to renew it is enough in some seeds."
):
    assert (again.loc[["nothing", "decoder"], "bleu"] < 0.05).all(axis=None)
    assert again.loc["encoder", "bleu"].max() > 0.4
    assert (again.loc["both (training B)", "bleu"] > 0.25).all()
    assert all(curves["evenness"][-1][1] > 0.99 for curves in looked["A"])
    assert all(curves["evenness"][-1][1] < 0.6 for curves in looked["B"])

# %% [markdown]
# ## Small first steps
#
# Why are the first steps at the full rate so large?
# Adam's first step moves *every* weight by the full rate, whatever its gradient $g$.
# Its averages begin at $m = (1-\beta_1)\,g$ and $s = (1-\beta_2)\,g^2$; their corrections divide by $1-\beta_1$ and by $1-\beta_2$; and the step is
#
# $$\eta\,\frac{\hat m}{\sqrt{\hat s}} = \eta\,\frac{g}{|g|} = \pm\,\eta .$$

# %%
step_rate = 0.006  # try 0.0001 … 0.1
limit = 1.0  # try 0.1 … 1000.0
weight = nn.Parameter(torch.tensor([0.5, -2.0, 0.1]))
optimizer = torch.optim.Adam([weight], lr=step_rate, betas=(0.9, 0.98))
old = weight.detach().clone()
weight.grad = torch.tensor([100.0, -1.0, 0.01])
nn.utils.clip_grad_norm_([weight], limit)
clipped = weight.grad.clone()
optimizer.step()
moves = weight.detach() - old
adam_step = pd.DataFrame({"gradient": [100.0, -1.0, 0.01]})
adam_step["clipped"], adam_step["moved"] = clipped, moves
adam_step.round(4)

# %% [markdown]
# All three move by 0.006, also the one whose gradient is ten thousand times smaller.
# **Gradient clipping** has made all gradients a hundred times shorter ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)), and no step smaller.
# (What it is good for: [further page](12_training_transformers_further.ipynb#What-clipping-protects).)
# A weight of a 64 × 64 matrix begins at about $1/\sqrt{3\cdot 64} = 0.07$, so this is a twelfth of it, on the evidence of one batch.
#
# ### Exercise 2 · Steps on paper
#
# *predict · 7 minutes*
#
# A rate rises in a line from 0 to its peak, 0.006, at step 50.
# From there it falls as $1/\sqrt{\text{step}}$, without a jump.
# All answers in *thousandths*: (a) the rate at step 20; (b) at step 450. (c) Adam's first step has the rate 0.003, and the gradient of a weight is 100.
# How far does the weight move? (d) How far with the rate 0.005, the gradient clipped to length 1? (e) The paper's rate at step $t$ is $d^{-1/2}\min(t^{-1/2},\ t\,W^{-3/2})$, with $W$ steps of warm-up.
# How large is it at its peak, for $d = 256$ and $W = 4000$?
# One decimal.


# %% tags=["exercise", "predict"]
def predicted_steps():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_steps(predicted_steps)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_steps_solution():
    """20/50 of 6; 6 · √(50/450); ± the rate, both times; 1/√(256 · 4000) = 0.00099."""
    return [2.4, 2, 3, 5, 1.0]


cu.checks.predicted_steps(predicted_steps_solution)

# %% [markdown]
# `schedule`, of section 1, is the rate of the exercise as a share of its peak; with 50 or more steps of warm-up it is the paper's formula, divided by its peak.
# So a warm-up makes the first steps small.
# **Why does that help?**
# Two explanations.
# One: at the start Adam's averages come from few gradients, and so its steps have unreliable sizes; **RAdam** corrects this with a factor that rises from about 0.1 to 1 over a few hundred steps ([Liu et al., 2020a](https://arxiv.org/abs/1908.03265)).
# The other: with the norm after, the output of the whole stack changes too much when all weights move at once ([Liu et al., 2020b](https://arxiv.org/abs/2004.08249)).
# To separate them we fill Adam's averages *before* A begins, with 50 batches at rate 0.
# Then the averages come from 50 batches, and the first step is still 0.6 of the rate, on average.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A, with Adam's averages filled by 50 batches before the first step that moves a weight. Does it learn to translate?",
    ["yes, in all three seeds", "no, in none", "in some"],
    answer="no, in none",
    wrong={
        "yes, in all three seeds": "That would be so if poor averages were all of the cause. What stays as it was in A?",
        "in some": "The first steps stay large in all three seeds. What would make one of them survive?",
    },
    why="BLEU stays at 0.0 in each seed. Good averages do not help while the first steps stay that large.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cures = {
    "after, full rate (A)": three["A"],
    "after, warm-up (B)": three["B"],
    "before, full rate": found(runs, norm_first=True, warmup=0),
    "before, warm-up": found(runs, norm_first=True),
    "after, full rate, averages filled": cu.stored_runs(
        "training_transformers", "other_adam", adam="filled"
    ),
    "after, full rate, RAdam": cu.stored_runs("training_transformers", "other_adam", adam="radam"),
}


def at_112_steps(run):
    """Loss of steps 99 to 112, and validation BLEU."""
    if isinstance(run, dict):
        return run["curves"]["loss"][7][1], run["curves"]["bleu"][1][1]
    return run.result["loss"], run.result["bleu"]


compared = pd.DataFrame(
    {name: [*(at_112_steps(run)[0] for run in some), *(at_112_steps(run)[1] for run in some)]
     for name, some in cures.items()},
    index=pd.MultiIndex.from_product([["loss", "BLEU"], ["seed 0", "seed 1", "seed 2"]]),
).T  # fmt: skip
compared.round(2)

# %% [markdown]
# With averages filled first, A still fails, in three seeds: BLEU is 0.00, 0.00 and 0.01, the loss 2.4 to 2.8.
# So poor averages are not all of the cause.
# RAdam does learn, in all three seeds, to 0.25 to 0.35.
# It corrects the averages *and* begins with small steps (in PyTorch the first five are not even divided by $\sqrt{\hat s}$), so on its own it would not decide between the explanations; together with the row above it speaks for the second.
# And the norm before learns without any warm-up, at the same rate: what the first steps destroy depends on where the norm stands.
#
# How large is too large?
# Each setting of the explorer was trained once.
# Begin without a warm-up at 0.006, move the warm-up to the right, then look at the other rates.

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.warmup()

# %% [markdown]
# 32 trainings, one for each setting and order, so read the large differences only.
# At 0.0015 and 0.003 neither order needs a warm-up; the smaller rate is behind after 280 steps.
# At 0.006 the norm after needs one, of ten steps, and the norm before needs none.
# At 0.012 both need it: with 0 and 10 steps BLEU is at most 0.21, with 50 and 100 far more (the norm after hangs on the seed there).
# So a warm-up is not what makes a Post-LN model trainable.
# It makes a *larger rate* bearable, and each order has a rate up to which it needs none.
# (It does not visibly pay here: at 0.003 without a warm-up the norm after has 0.83, as B.)
#
# ### Exercise 3 · Forty epochs or a hundred?
#
# *open · 6 minutes*
#
# You read: "Norm before needs no warm-up, but 100 epochs for what norm after reaches in 40."
# Both were trained once, with the rate of the norm after.
# Which runs would you need before you believe or refuse it?
# Say what you hold equal, what you tune for each order and on which sentences, how many seeds, and which result would refute the sentence.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three seeds a warm-up, RAdam or the norm before makes the full rate bearable, and filled averages do not."
):
    assert (adam_step["moved"].abs() - step_rate).abs().max() < 1e-4
    failing = ["after, full rate (A)", "after, full rate, averages filled"]
    assert (compared.loc[failing, "BLEU"] < 0.05).all(axis=None)
    assert (compared.drop(failing)["BLEU"] > 0.2).all(axis=None)
    assert (compared.drop(failing)["loss"] < 1.5).all(axis=None)
    by_rate = {rate: [run["bleu"] for order in (False, True) for n in (0, 10)
                      for run in found(runs, norm_first=order, lr=rate, warmup=n)]
               for rate in (0.0015, 0.003, 0.012)}  # fmt: skip
    assert min(by_rate[0.0015] + by_rate[0.003]) > 0.5 and max(by_rate[0.012]) < 0.25
    filled = cu.stored_runs("training_transformers", "first_step_filled")
    assert all(0.5 < run.result["moved"] < 0.7 for run in filled)

# %% [markdown]
# ## Learns, then breaks
#
# Trainings also get worse late, when a model translates already.
# Here is a way to provoke it that is useful by itself.
# The rate does not fall; it rises in a line, from 0 to 0.02.
# This is a **range test** of the rate ([Smith, 2017](https://arxiv.org/abs/1506.01186)): it shows in one short run which rates a model bears.
# Every 28 steps the weights go into a file.

# %% tags=["nbval-ignore-output"]
top_rate = 0.02  # try 0.002 … 0.05
folder = Path(tempfile.mkdtemp())
climbing = new_model(norm_first=False, seed=0)


def keep(step):
    """A file every 28 steps: whole under another name first, then renamed."""
    if step % 28 == 0:
        part = folder / "part"
        torch.save(climbing.state_dict(), part)
        part.rename(folder / f"step_{step:03d}.pt")


climbing_losses = train(
    climbing, world.batches(224), lambda step: top_rate * step / 224, each_step=keep
)
ends = range(28, 225, 28)
means = {f"to step {n}": sum(climbing_losses[n - 28 : n]) / 28 for n in ends}
print(f"{len(list(folder.glob('*.pt')))} files")
pd.Series(means, name="mean loss of 28 steps").round(2).to_frame().T


# %% tags=["nbval-ignore-output"]
def best_file(folder, model, score):
    """Scores of all files by name; the model ends with the weights of the best."""
    scores = {}
    for path in sorted(folder.glob("*.pt")):
        model.load_state_dict(torch.load(path, weights_only=True))
        scores[path.name] = score(model)
    best = max(scores, key=scores.get)
    model.load_state_dict(torch.load(folder / best, weights_only=True))
    return best, scores


best, scores = best_file(folder, climbing, lambda model: world.bleu(model, world.val))
on_test = world.bleu(climbing, world.test)
print(f"best by validation: {best}; its BLEU on the test: {on_test:.2f}")
pd.Series(scores, name="validation BLEU").round(2).to_frame().T

# %% [markdown]
# The mean loss falls, changes little from step 140 on, and is higher at the end.
# BLEU shows it more clearly: when this page was made it was 0.30 at steps 112 and 140, and 0.14 at the end; the best file has 0.39 on the test, whose sentences seem to be easier.
# So the last file is not the best one; without the earlier files those weights would be lost.
# The best file is chosen by the *validation* sentences, and only it is scored on the test.
# The best of eight test scores would be too high: part of being the best is luck.
# And `weights_only=True`: an ordinary pickle may run code.
#
# One run of one seed shows that this *can* happen.
# It does not show at which rate: for that, three seeds and finer steps.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At a rising rate this training gets better, then worse: the last file is not the best.",
    given=top_rate == 0.02,
):
    ordered = list(scores.values())
    assert max(ordered) > 0.15 and ordered[-1] < max(ordered) - 0.04
    assert best != "step_224.pt"

# %% [markdown]
# ## What goes wrong
#
# ### Exercise 4 · Find the bug
#
# *bug · 10 minutes*
#
# A colleague reports: "I have put the warm-up into PyTorch's own `LambdaLR`, and it does not help."
# The loop is below, with the rates of four steps; the schedule rises over 50 steps to 1.
# There are two mistakes.
# Find them, and write `fixed_fit`, in which step $s = 1, 2, \dots$ has the rate `lr * schedule(s)`.


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


line, inputs = nn.Linear(3, 1), [torch.randn(4, 3) for _ in range(56)]
used = buggy_fit(
    line, inputs, lambda model, x: model(x).square().mean(), epochs=5, lr=RATE,
    schedule=lambda step: schedule(step, 50) if step else 0.0,
)  # fmt: skip
shown = [1, 56, 57, 280]
wanted = [RATE * schedule(n, 50) for n in shown]
pd.DataFrame({"step": shown, "rate": [used[n - 1] for n in shown], "asked for": wanted})


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

# %% [markdown]
# ## Take-aways
#
# - Draw the losses of dull models beside a training curve: unigram, place, bigram.
#   A translator whose loss stays among them may be hardly more than a language model.
# - Post-LN has its norms on the residual stream, Pre-LN in the branches.
#   At the start, Post-LN's gradients are larger at the top; nothing vanishes below.
# - An explanation is tested by an intervention with a control, over seeds.
# - Adam's first steps have the size of the rate, whatever the gradients; clipping does not change that.
#   A warm-up makes them small.
# - Files along the way, scored on validation sentences, survive a training that breaks.
#   The test is scored once.
#
# Next: [Pretraining](13_gpt.ipynb).
# AdamW, initial weights, accumulation, sixteen bits, checkpoints, a first-generation model, and both orders of norm on real sentences: [Training transformers: optimizers, precision and a first generation](12_training_transformers_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("training_transformers")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 5.3: the schedule.
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745).
#   ICML.
# - Liu, L. et al. (2020a).
#   [On the variance of the adaptive learning rate and beyond](https://arxiv.org/abs/1908.03265).
#   ICLR.
#   RAdam.
# - Liu, L. et al. (2020b).
#   [Understanding the difficulty of training transformers](https://arxiv.org/abs/2004.08249).
#   EMNLP.
# - Pascanu, R., Mikolov, T. and Bengio, Y. (2013).
#   [On the difficulty of training recurrent neural networks](https://arxiv.org/abs/1211.5063).
#   ICML.
# - Kingma, D. P. and Ba, J. (2015).
#   [Adam: a method for stochastic optimization](https://arxiv.org/abs/1412.6980).
#   ICLR.
# - Glorot, X. and Bengio, Y. (2010).
#   [Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html).
#   AISTATS.
# - Smith, L. N. (2017).
#   [Cyclical learning rates for training neural networks](https://arxiv.org/abs/1506.01186).
#   WACV.
#   Section 3.3: the range test.
