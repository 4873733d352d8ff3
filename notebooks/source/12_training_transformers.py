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
# The first Transformers had a bad name: wrong by a little in the learning rate, and they learned nothing. A ramp at
# the start of training cured that, and later a norm in another place. **What exactly went wrong, and why do these two
# cures work?**
#
# In this chapter you will
#
# - **compare** the two orders of norm: what each does to the numbers that flow up and to the gradients that flow
#   down;
# - **provoke** a training that fails while its loss falls, see it in BLEU, find the cause, and cure it in two ways;
# - **write** the warm-up schedule, label smoothing and gradient clipping by hand, and say what each does *not* do;
# - **stop** a training, resume it bit for bit, and choose among checkpoints;
# - **tell** what a model has learned from what it has merely seen;
# - **measure** the shortcuts of a first-generation implementation, one by one.
#
# *100 minutes. You need the Transformer ([The Transformer](10_transformer.ipynb)). The language pair is English–Spanish.*

# %%
import math
import signal
import tempfile
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

import course_utils as cu
from course_utils.lessons.training_transformers.runs import epochs_to, load_training_runs
from course_utils.lessons.training_transformers.shortcuts import take_shortcut
from course_utils.lessons.training_transformers.small_spanish import small_spanish

cu.seed_everything(0)

# %% [markdown]
# ## Two orders
#
# A sublayer $f$ (attention, or the network per position) stands beside a shortcut, and there is a norm. The **first
# generation** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)) put the norm *after* the sum, later models
# put it *before* the sublayer ([Xiong et al., 2020](https://arxiv.org/abs/2002.04745)):
#
# $$\text{after:}\quad \mathbf x' = \mathrm{norm}\big(\mathbf x + f(\mathbf x)\big) \qquad\qquad \text{before:}\quad \mathbf x' = \mathbf x + f\big(\mathrm{norm}(\mathbf x)\big)$$
#
# You will also meet the names *post-norm* and *pre-norm*. **Does it matter?** By hand, with two numbers, where the
# norm of $(a, b)$ is $(1, -1)$ or $(-1, 1)$, whichever has the larger number first. Let $\mathbf x = (1, 3)$, and let
# $f$ double its input and exchange the two numbers.
#
# - After: $\mathbf x + f(\mathbf x) = (1, 3) + (6, 2) = (7, 5)$, and its norm is $(1, -1)$. Of the word that came in
#   nothing is left, not even the order.
# - Before: $\mathrm{norm}(\mathbf x) = (-1, 1)$, so $f$ gives $(2, -2)$ and $\mathbf x' = (3, 1)$. And
#   $\mathbf x' - \mathbf x$ is what $f$ said, to the digit.


# %%
def after(x, f, norm):
    return norm(x + f(x))


def before(x, f, norm):
    return x + f(norm(x))


x = torch.tensor([1.0, 3.0])
assert torch.allclose(after(x, lambda y: 2 * y.flip(0), nn.LayerNorm(2)), torch.tensor([1.0, -1.0]))
assert torch.allclose(
    before(x, lambda y: 2 * y.flip(0), nn.LayerNorm(2)), torch.tensor([3.0, 1.0]), atol=1e-4
)

f = nn.Linear(8, 8)
x = torch.randn(2, 5, 8, requires_grad=True)
for norm_first, order in ((False, after), (True, before)):
    layer = cu.Residual(8, norm_first=norm_first)
    ours, library = order(x, f, layer.norm), layer(x, f)
    torch.testing.assert_close(library, ours)
    gradients = [torch.autograd.grad(y.sin().sum(), [x, f.weight]) for y in (ours, library)]
    torch.testing.assert_close(gradients[1], gradients[0])

# %% [markdown]
# Equal to the library's, gradients included. ([The Transformer](10_transformer.ipynb) compares whole layers with PyTorch's.)
#
# **What becomes of the numbers after many layers?** Let $v$ be the variance that a sublayer adds. After: each norm
# brings the variance back to 1. Before: nothing does; after $k$ sublayers the variance is about $1 + kv$, and one
# last norm at the very top divides by $\sqrt{1 + kv}$.

# %%
depth, width, v = 24, 256, 1.0
streams = {False: [], True: []}
for norm_first, sizes in streams.items():
    x = torch.randn(100, width)
    for _sublayer in range(depth):
        f = nn.Linear(width, width, bias=False)
        nn.init.normal_(f.weight, std=math.sqrt(v / width))  # input of variance 1 → output of v
        order = before if norm_first else after
        x = order(x, f, nn.LayerNorm(width)).detach()
        sizes.append(x.var().item())
    expected = [1 + k * v if norm_first else 1 for k in range(1, depth + 1)]
    assert torch.allclose(torch.tensor(sizes), torch.tensor(expected).float(), rtol=0.15)

# %% [markdown]
# ## What flows back
#
# Now the same stack downwards. A norm divides by the standard deviation $\sigma$ of what it gets, so the gradient
# that passes it is divided by $\sigma$ as well.
#
# - **After**: at each sublayer $\sigma = \sqrt{1 + v}$. Along the shortcut, $k$ sublayers below the top, a gradient
#   has shrunk to $(1 + v)^{-k/2}$. With $v = 1$: $0.71,\ 0.5,\ 0.35,\ 0.25, \dots$ The top layer gets it whole,
#   however deep the stack is.
# - **Before**: only the last norm stands in the way, with $\sigma = \sqrt{1 + Nv}$ for $N$ sublayers. All layers get
#   the same share, $1/\sqrt{1 + Nv}$, and the deeper the stack, the less each one gets.
#
# This is the content of Theorem 1 of Xiong et al.: with $L$ layers the gradient of the *last* layer's weights is of
# order $d\sqrt{\ln d}$ with the norm after, and $d\sqrt{\ln d / L}$ with the norm before. **Is it so?** We count
# sublayers along the shortcut alone, and what flows through the sublayers comes on top. So we measure, on real
# sentences. First the data.
#
# ### The sentences
#
# 20,050 English–Spanish pairs, generated from a grammar of ours. For trainings of seconds we keep those in the 200
# commonest English words, with at most 8 Spanish tokens. They are split *by English sentence*: no sentence of the
# test occurs in training.

# %%
train_pairs, val_pairs, test_pairs = small_spanish()
assert [len(part) for part in (train_pairs, val_pairs, test_pairs)] == [3253, 200, 200]
assert not {p.source for p in train_pairs} & {p.source for p in (*val_pairs, *test_pairs)}
vocabularies = [
    cu.Vocabulary(getattr(pair, side) for pair in train_pairs) for side in ("source", "target")
]
assert list(map(len, vocabularies)) == [194, 428]
loader = cu.PairLoader(train_pairs, *vocabularies, batch_size=59)
assert len(loader) == 56  # steps per epoch
pd.DataFrame(
    [(" ".join(p.source), " ".join(p.target)) for p in test_pairs[:5]],
    columns=["English", "Spanish"],
)


# %%
def new_model(norm_first, num_layers=4, seed=0):
    """A narrow Transformer for these sentences: 4 + 4 layers, width 64, no dropout."""
    cu.seed_everything(seed)
    return cu.Transformer(
        *map(len, vocabularies), embed_dim=64, num_heads=4, ffn_dim=128, num_layers=num_layers,
        dropout=0.0, norm_first=norm_first,
    )  # fmt: skip


def layer_gradients(model, batch):
    """Length of the gradient of the last matrix of each decoder layer, bottom first."""
    loss, count = cu.translation_loss()(model, batch)
    (loss / count).backward()
    return torch.tensor([layer.feed_forward[3].weight.grad.norm() for layer in model.decoder])


def with_xavier(model):
    """The initialization of Xiong et al.: every matrix keeps variances (Glorot and Bengio, 2010)."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    return model


# %%
batch = next(iter(loader))
gradients = {  # (norm_first, layers) → (seeds, layers)
    (norm_first, depth): torch.stack(
        [layer_gradients(with_xavier(new_model(norm_first, depth, s)), batch) for s in range(3)]
    )
    for norm_first in (False, True)
    for depth in (2, 4, 8)
}
for seed in range(3):
    at_8 = {order: gradients[order, 8][seed] for order in (False, True)}
    assert at_8[False][-1] > 5 * at_8[False][0]  # after: the top gets much more than the bottom
    assert at_8[True].max() < 2.5 * at_8[True].min()  # before: all get about the same
top = {key: values[:, -1].mean() for key, values in gradients.items()}
assert 0.7 < top[False, 8] / top[False, 2] < 1.4  # after: whatever the depth
assert 0.35 < top[True, 8] / top[True, 2] < 0.75  # before: 1/√4 = 0.5 is foretold

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=8.4, height=3.0, sharey=True,
    alt="Gradient norm by decoder layer on a log axis, for stacks of 2, 4 and 8 layers and three seeds. Norm after: lines "
    "rise steeply to the same height at the top layer. Norm before: lines are nearly flat, and lower the deeper the stack.",
)  # fmt: skip
for ax, norm_first in zip(axes, (False, True), strict=True):
    for depth, dash, color in ((2, "-", "blue"), (4, "--", "vermilion"), (8, "-.", "green")):
        for seed, values in enumerate(gradients[norm_first, depth]):
            label = f"{depth} layers" if seed == 0 else None
            below = range(depth - 1, -1, -1)
            ax.plot(below, values, dash, color=cu.COLORS[color], label=label, linewidth=1.3)
    ax.set(xlabel="layers below the top", title=f"norm {'before' if norm_first else 'after'}")
    ax.set(yscale="log", xlim=(7.2, -0.2))
axes[0].set_ylabel("gradient norm")
axes[0].legend()
fig

# %% [markdown]
# Each line is one stack at initialization, read from the bottom layer (left) to the top. Left, norm after: all lines
# end at the same height, and the bottom of eight layers gets less than a fifth of what the top gets. Right, norm
# before: lines are nearly flat, and lie lower the deeper the stack: the top of eight layers gets about half of what
# the top of two gets. Theory said $1/\sqrt 4$.
#
# Two fair warnings. First, this is *Glorot's* initialization, as in the paper. With the smaller numbers that
# `nn.Linear` draws by default, $v$ is small, and the two orders hardly differ at four layers:

# %%
plain = {order: layer_gradients(new_model(order), batch) for order in (False, True)}
for values in plain.values():
    assert values.max() < 2 * values.min()
assert 0.7 < plain[False][-1] / plain[True][-1] < 2.5

# %% [markdown]
# Second, Adam divides each gradient by its own size. A gradient that is everywhere ten times larger leads to *the
# same* step. So the picture above is a clue, and not yet an explanation. For that we let a training fail.
#
# ## A training that fails
#
# The recipe: 4 + 4 layers, width 64, Adam with a peak rate of 0.006, batches of 59 sentences, 5 epochs (280 steps).
# Rates fall as $1/\sqrt{\text{step}}$ from step 50 on. **What happens with the norm after, if we begin at the full
# rate?** After each epoch we keep the training loss *and* the BLEU of translations of the 200 test sentences, as one
# would for checkpoints. (We choose nothing by it. To choose, take the validation sentences.) Two of the five epochs
# are enough to see it.

# %%
LR, WARMUP = 6e-3, 50


def bleu_on(model, pairs):
    """Corpus BLEU of greedy translations."""
    said = cu.translate(model, [" ".join(p.source) for p in pairs], *vocabularies, max_len=14)
    return cu.bleu(said, [" ".join(p.target) for p in pairs])


def fit(model, schedule, *, epochs=5, pairs=train_pairs, **options):
    """Train on English–Spanish pairs; BLEU on the test sentences after each epoch."""
    trainer = cu.Trainer(
        cu.translation_loss(), epochs=epochs, lr=LR, schedule=schedule,
        measure=lambda model: {"bleu": bleu_on(model, test_pairs)}, **options,
    )  # fmt: skip
    return trainer.fit(model, cu.PairLoader(pairs, *vocabularies, batch_size=59))


def full_rate_at_once(step):
    """No ramp; the same fall."""
    return min(1.0, math.sqrt(WARMUP / step))


# %% tags=["nbval-ignore-output"]
failed = new_model(norm_first=False)
failure = fit(failed, full_rate_at_once, epochs=2)
failure.frame[["train_loss", "bleu"]].round(2)

# %%
losses = failure.frame["train_loss"]
assert (
    losses.iloc[-1] < losses.iloc[0] < math.log(len(vocabularies[1]))
)  # it is below a blind guess, and falls
assert failure.frame["bleu"].max() < 0.1  # and yet

# %% [markdown]
# The loss falls at each epoch. From the loss alone one might say: slow, be patient. BLEU says: **zero**. Nothing
# overflowed, no NaN was raised; this is what "diverged" usually means for a transformer, and it is why the lecture
# computes BLEU at every checkpoint. What does the model say?

# %% tags=["nbval-ignore-output"]
sources = [" ".join(pair.source) for pair in test_pairs]
spoken = cu.translate(failed, sources, *vocabularies, max_len=14)
pd.DataFrame({"English": sources[:5], "the model says": spoken[:5]})

# %%
assert len(set(spoken)) < 20  # 200 different sentences came in

# %% [markdown]
# A handful of answers to 200 sentences. It knows which Spanish words are frequent and how sentences begin: so much
# can be learned without reading the source. How such a model gets a falling loss: the loss of a *language* model
# falls, too.
#
# ### What broke, and when
#
# **At which step did it stop reading?** We repeat the beginning and look at the encoder. If it says something about
# the words, its outputs for different words differ. We take the cosine between the outputs of all pairs of tokens: 1
# means that every word of every sentence is encoded as the same vector.


# %%
@torch.no_grad()
def likeness(model, batch):
    """Mean cosine between the encoder's outputs for different tokens."""
    memory, mask = model.encode(batch.source, batch.source_lens)
    vectors = F.normalize(memory[mask[:, 0, 0]], dim=-1)
    n = len(vectors)
    return ((vectors.sum(dim=0).square().sum() - n) / (n * n - n)).item()


def first_steps(model, schedule, steps=12):
    """Likeness before the first step of Adam and after each."""
    loader = cu.PairLoader(train_pairs, *vocabularies, batch_size=59)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    curve = [likeness(model, batch)]
    for step, pairs in zip(range(1, steps + 1), loader, strict=False):
        optimizer.param_groups[0]["lr"] = LR * schedule(step)
        optimizer.zero_grad()
        loss, count = cu.translation_loss()(model, pairs)
        (loss / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        curve.append(likeness(model, batch))
    return curve


# %%
curves = {
    "norm after, full rate": first_steps(new_model(False), full_rate_at_once),
    "norm before, full rate": first_steps(new_model(True), full_rate_at_once),
    "norm after, warm-up": first_steps(new_model(False), cu.inverse_sqrt(WARMUP)),
}
broken, recovering, warm = curves.values()
assert broken[0] < 0.6 and broken[3] > 0.95
assert recovering[3] < broken[3] and warm[3] < 0.6

# %%
cu.show_curves(
    range(13),
    curves,
    alt="Mean cosine between encoder outputs over the first 12 steps. Norm after at full rate: jumps to 1 within three "
    "steps. Norm before at full rate: stays below it. Norm after with warm-up: begins to rise only after several steps.",
    xlabel="steps of Adam",
    ylabel="likeness of all tokens",
    width=6.4,
)

# %% [markdown]
# *Three steps* are enough: with the norm after and the full rate, every word of every sentence has become the same
# vector. The decoder then has nothing to read, and what it can learn is a language model. With the norm before, each
# word's embedding still runs up the shortcut undivided. With the ramp nothing breaks in the first steps. Later its words grow
# alike as well, while the decoder learns which words are frequent, for which it needs no source; but gently.
#
# Later the vectors of the failed model come apart again, in part. Too late: **what does its decoder look at?** We
# take the weights of the cross-attention, and of each row the entropy, as a share of what equal weights on all words
# of the source would have. 1 means that the decoder looks at no word more than at another.


# %%
def evenness(model):
    """Mean entropy of the cross-attention's rows over that of equal weights, per decoder layer."""
    pairs = next(iter(cu.PairLoader(test_pairs, *vocabularies, batch_size=200, shuffle=False)))
    with torch.no_grad(), cu.record_attention(model.eval()) as maps:
        model(pairs.source, pairs.source_lens, pairs.target_in)
    even = pairs.source_lens.float().log()[:, None, None]
    shares = [
        (torch.special.entr(weights).sum(-1) / even).mean().item()
        for name, weights in maps.items()
        if "cross" in name
    ]
    return torch.tensor(shares)


assert likeness(failed, batch) < 0.95  # not one vector any more
assert evenness(failed).min() > 0.95  # and yet even, in every layer

# %% [markdown]
# Even, in every layer. There is no way out of it by gradient: if
# all words have become one vector, then all keys are equal and all values are equal, no choice of weights changes the
# output, and the gradient of queries and keys is exactly zero.

# %%
attention = cu.MultiHeadAttention(64, 4)
one_vector = torch.randn(1, 1, 64).expand(8, 6, 64)  # six words, all alike
attention(torch.randn(8, 5, 64), one_vector, one_vector).square().sum().backward()
for projection in (attention.query_proj, attention.key_proj):
    assert projection.weight.grad.abs().max() < 1e-4
assert attention.value_proj.weight.grad.abs().max() > 0.1

# %% [markdown]
# **Why are the first steps so violent?** Adam's first step moves *every* weight by the full learning rate, whatever
# the gradient. By hand, for one weight with gradient $g$: the averages begin at $m = (1-\beta_1)\, g$ and
# $s = (1-\beta_2)\, g^2$, their corrections divide by $1-\beta_1$ and $1-\beta_2$, and the step is
#
# $$\eta\,\frac{\hat m}{\sqrt{\hat s}} = \eta\,\frac{g}{|g|} = \pm\,\eta .$$
#
# A weight of a 64 × 64 matrix is about $1/\sqrt{3 \cdot 64} \approx 0.07$ at the start. All 400,000 weights move by
# 0.006 at once, on the evidence of one batch.

# %%
weight = nn.Parameter(torch.tensor([0.5, -2.0, 1e-4]))
optimizer = torch.optim.Adam([weight], lr=6e-3, betas=(0.9, 0.98))
start = weight.detach().clone()
weight.grad = torch.tensor([100.0, -1e-3, 1e-5])  # from huge to tiny
optimizer.step()
steps = weight.detach() - start
assert torch.allclose(steps.abs(), torch.full((3,), 6e-3), rtol=1e-2)  # all the same

model = new_model(False)
assert 0.06 < model.decoder[0].self_attention.query_proj.weight.std() < 0.08

# %% [markdown]
# Two consequences that are often told wrongly. *Clipping does not help here*: all the gradients of the first step,
# shortened or not, lead to the same step (and we did clip, in the failed run). And the trouble is not one of
# *exploding gradients*: what breaks is the function, because all its weights move at once. Liu et al.
# ([2020](https://arxiv.org/abs/2004.08249)) measure it: with the norm after, a layer depends more on what its
# sublayer says and less on the shortcut, so that changes of the weights add up over the layers.
#
# ## Two cures
#
# **A ramp.** Begin at a small rate and rise to the peak within 50 steps. The same model, seed, data and peak rate:

# %% tags=["nbval-ignore-output"]
warmed = new_model(norm_first=False)
success = fit(warmed, cu.inverse_sqrt(WARMUP))
success.frame[["train_loss", "bleu"]].round(2)

# %% [markdown]
# **Another order.** Norm before, at the full rate from the first step, no ramp:

# %% tags=["nbval-ignore-output"]
reordered = new_model(norm_first=True)
second = fit(reordered, full_rate_at_once)
second.frame[["train_loss", "bleu"]].round(2)

# %%
assert success.frame["bleu"].iloc[-1] >= 0.8
assert second.frame["bleu"].iloc[-1] >= 0.7
assert len(set(cu.translate(warmed, sources, *vocabularies, max_len=14))) > 150
for model in (warmed, reordered):
    assert evenness(model).mean() < 0.75

# %% [markdown]
# Both work. **Do they look at the source now?** One test sentence in the failed and in the warmed model: the weights
# of the last layer's cross-attention, mean of its heads.

# %% tags=["hide-input"]
example = max(test_pairs, key=lambda p: len(set(p.source)))
one = next(iter(cu.PairLoader([example], *vocabularies)))
looks = []
for model in (failed, warmed):
    with torch.no_grad(), cu.record_attention(model) as maps:
        model(one.source, one.source_lens, one.target_in)
    looks.append(maps["decoder.3.cross_attention"][0].mean(dim=0))
cu.show_heatmaps(
    torch.stack(looks),
    queries=[*example.target, "<eos>"],
    keys=[*example.source, "<eos>"],
    titles=["at full rate", "with warm-up"],
    xlabel="English",
    ylabel="to be said next",
    width=8.4,
    height=3.6,
    alt="Cross-attention of two models for one sentence. Left, full rate: all cells nearly alike. Right, warm-up: each row "
    "has its weight on a few words.",
)

# %% [markdown]
# Left, an even carpet, about 1/11 everywhere; right, rows that choose. (That the right one is an *alignment* is not
# said: layers below have already moved words about. [Bahdanau attention](06_bahdanau_attention.ipynb) measures alignments.)
#
# **Was it luck?** A failure seen once proves little. Each of the four combinations was run with three seeds
# beforehand; `make runs` makes them, and the cells above are the first of them, made again.

# %%
runs = load_training_runs()
chapter = {
    "lr": LR,
    "label_smoothing": 0.0,
    "sentences": len(train_pairs),
    "shortcut": "",
    "warmup": WARMUP,
}


def recorded(norm_first=False, **chosen):
    """The recorded runs with this choice, the chapter's otherwise: one per seed."""
    wanted = {**chapter, "norm_first": norm_first, **chosen}
    found = [run for run in runs if all(run[name] == value for name, value in wanted.items())]
    return sorted(found, key=lambda run: run["seed"])


combinations = {
    "after, full rate": recorded(False, warmup=0),
    "after, warm-up": recorded(False),
    "before, full rate": recorded(True, warmup=0),
    "before, warm-up": recorded(True),
}
table = pd.DataFrame(
    {name: [run["bleu"] for run in some] for name, some in combinations.items()},
    index=pd.Index(range(3), name="seed"),
)
assert (table["after, full rate"] < 0.1).all()
assert (table["after, warm-up"] >= 0.8).all()
assert (table[["before, full rate", "before, warm-up"]] >= 0.75).all(axis=None)
table.T.round(2)

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=3.1,
    alt="Left: training loss of four combinations over 280 steps, three seeds each. All fall; the norm after at full rate "
    "stays far above the others. Right: BLEU after each epoch. The same runs stay at zero, the others rise above 0.8.",
)  # fmt: skip
styles = (("-", "o", "gray"), ("--", "s", "blue"), ("-.", "^", "vermilion"), (":", "D", "green"))
for (name, some), (dash, marker, color) in zip(combinations.items(), styles, strict=True):
    for run in some:
        first = run is some[0]
        middles, heights = zip(*run["curves"]["loss"], strict=True)
        line = {"color": cu.COLORS[color], "linewidth": 1.2, "label": name if first else None}
        left.plot(middles, heights, dash, **line)
        bleu = [0, *(value for _, value in run["curves"]["bleu"])]
        right.plot(range(6), bleu, dash + marker, markersize=3.5, **line)
left.set(xlabel="step", ylabel="training loss per token", ylim=(0, 6.5))
right.set(xlabel="epoch", ylabel="held-out BLEU", ylim=(-0.03, 1))
left.legend(title="norm", loc="upper right", fontsize=8)
fig

# %% [markdown]
# Left, every curve falls. The gray ones fall as well, and stay above 1.5 where others reach 0.1. Right, BLEU tells
# success from failure after two epochs. Note the dotted curves: with the norm before, a ramp is not *needed*, and it
# does no harm; nearly everyone uses one today.
#
# ## The schedule
#
# The ramp and the fall in one line (Vaswani et al., section 5.3), for step $s = 1, 2, \dots$ and $W$ warm-up steps:
#
# $$\eta(s) = d^{-1/2} \cdot \min\big(s^{-1/2},\ s \cdot W^{-3/2}\big).$$
#
# The second term is a straight line; it is smaller before step $W$. At $s = W$ both are $W^{-1/2}$: the peak is
# $1/\sqrt{dW}$. With the paper's $d = 512$ and $W = 4000$ by pencil: $512 \cdot 4000 = 2{,}048{,}000$, the root is
# 1431, the peak rate 0.0007. The first step has $0.0007/4000 = 1.7 \cdot 10^{-7}$. At step 16,000 the rate is half
# the peak.
#
# Our models are small and may go faster, so we keep the *shape* and choose the peak: `cu.inverse_sqrt(W)` is the
# formula divided by its peak.


# %%
def schedule(step, warmup):
    """Rise in a line to 1 at step `warmup`, then fall as 1/√step."""
    return min(step / warmup, math.sqrt(warmup / step))


for step in (1, 10, 49, 50, 51, 200, 5000):
    assert math.isclose(schedule(step, 50), cu.inverse_sqrt(50)(step))
    paper = 512**-0.5 * min(step**-0.5, step * 50**-1.5)
    assert math.isclose(paper, schedule(step, 50) / math.sqrt(512 * 50))
peak = 1 / math.sqrt(512 * 4000)
assert round(peak, 4) == 0.0007 and schedule(16_000, 4000) == 0.5
assert f"{peak * schedule(1, 4000):.1e}" == "1.7e-07"

# %%
steps = torch.arange(1, 281)
fig = cu.show_curves(
    steps,
    {
        "warm-up 10": [schedule(s, 10) for s in steps.tolist()],
        "warm-up 50": [schedule(s, 50) for s in steps.tolist()],
        "warm-up 100": [schedule(s, 100) for s in steps.tolist()],
        "linear fall to 0": [cu.warmup_decay(50, 280)(s) for s in steps.tolist()],
    },
    alt="Four schedules over 280 steps, each a straight rise to 1: three fall as one over the root of the step from step "
    "10, 50 and 100, the fourth in a straight line from step 50 to 0 at the end.",
    xlabel="step",
    ylabel="share of the peak rate",
    width=6.4,
    height=2.8,
)
fig.axes[0].set_ylim(0, 1.5)  # room for the legend
fig

# %% [markdown]
# Three of the curves are the formula. It needs no end, but it never gets small either. The fourth has to know the
# number of steps and ends at 0; many later models are trained in this way, or along half a cosine.
#
# ### Exercise 1 · The formula
# *5 minutes · ★*
#
# Write the paper's rate, with $d$ = `embed_dim`.


# %% tags=["exercise"]
def noam_rate(step, embed_dim, warmup):
    """The learning rate of step 1, 2, … in Vaswani et al. (2017)."""
    ...


# %% tags=["check"]
cu.checks.noam_rate(noam_rate)


# %% tags=["solution"] jupyter={"source_hidden": true}
def noam_rate(step, embed_dim, warmup):
    """The learning rate of step 1, 2, … in Vaswani et al. (2017)."""
    return embed_dim**-0.5 * min(step**-0.5, step * warmup**-1.5)


cu.checks.noam_rate(noam_rate)

# %% [markdown]
# ### Rate and ramp together
#
# **How much ramp does which rate need?** 32 trainings, run beforehand: four peak rates, four ramps, both orders.
# Begin at the rate of this chapter without warm-up, and move the ramp to the right. Then go to the smallest rate and
# take the ramp away again: a small rate needs none, and pays for it in epochs. At the largest rate, see what each
# order can bear.

# %%
cu.explore.warmup()


# %% [markdown]
# All 32 at one glance: BLEU after five epochs.

# %%
rates, ramps = (0.0015, 0.003, 0.006, 0.012), (0, 10, 50, 100)
grid = torch.tensor(
    [
        [[recorded(order, lr=rate, warmup=ramp)[0]["bleu"] for ramp in ramps] for rate in rates]
        for order in (False, True)
    ]
)  # (orders, rates, ramps)
after_, before_ = grid  # rows: rates, columns: ramps
assert (grid[:, 1] > 0.75).all() and (grid[:, 0] < grid[:, 1]).all()  # small rates: all learn
assert after_[2, 0] < 0.1 and (after_[2, 1:] > 0.8).all()  # 0.006: ten steps of ramp are enough
assert (before_[2] > 0.8).all()  # and with the norm before none are needed
assert (grid[:, 3, 0] < 0.1).all() and after_[3, 1] < 0.1 and (before_[3, 2:] > 0.7).all()  # 0.012
cu.show_heatmaps(
    grid,
    queries=[f"{rate:g}" for rate in rates],
    keys=ramps,
    titles=["norm after", "norm before"],
    xlabel="warm-up steps",
    ylabel="peak rate",
    annotate=True,
    width=7.4,
    height=2.9,
    alt="Held-out BLEU in two maps of four peak rates by four lengths of warm-up. At the two small rates all learn, "
    "faster at 0.003. At 0.006 the norm after fails without warm-up, the norm before never. At 0.012 both fail without.",
)

# %% [markdown]
# Each order has a rate up to which it needs no ramp, 0.003 with the norm after and 0.006 with the norm before: about
# a factor of two. Beyond it a ramp helps, if it is long enough: at 0.012 ten steps are not. The smallest rate works
# whatever you do, and is still behind after five epochs.
# (One seed per cell: read the large differences, not the small ones.)
#
# ## How many epochs?
#
# The lecture reports, with the warning that it is no careful comparison, about 40 epochs with the norm after for what
# takes more than 100 with the norm before, and concludes that stability is paid for with slow convergence. **Is it so
# here?** We ask each recorded run when its held-out BLEU first reached a level, on a straight line between epochs.

# %%
needed = pd.DataFrame(
    {
        (f"to BLEU {level}", seed): [epochs_to(level, some[seed]) for some in combinations.values()]
        for level in (0.5, 0.8)
        for seed in range(3)
    },
    index=pd.Index(combinations, name="norm"),
)
means = {level: needed[f"to BLEU {level}"].mean(axis=1) for level in (0.5, 0.8)}
assert math.isinf(means[0.5]["after, full rate"])
for ratio in (means[0.8]["before, full rate"], means[0.8]["before, warm-up"]):
    assert 0.7 < ratio / means[0.8]["after, warm-up"] < 1.2  # the lecture: 2.5
needed.round(1)

# %% [markdown]
# No. At the same peak rate the norm before needs as many epochs as the norm after, a little fewer with warm-up, where
# the lecture saw 2.5 times as many. What remains of the remark: the norm before *allows* larger rates and no ramp,
# and whoever compares the two at rates that were chosen for one of them compares rates. In large models a well-warmed
# norm after sometimes ends slightly *better* ([Liu et al., 2020](https://arxiv.org/abs/2004.08249)), and it may fail
# altogether; this is why most later models took the other.
#
# ### Exercise 2 · Epochs needed
# *8 minutes · ★★*
#
# Given BLEU after epochs 1, 2, …, return the (fractional) number of epochs until `level` is first reached. BLEU is 0
# at epoch 0, and goes in a straight line between measurements. Never reached: `math.inf`.


# %% tags=["exercise"]
def epochs_needed(bleu, level):
    """Epochs until BLEU first reaches the level, between measurements on a straight line."""
    ...


# %% tags=["check"]
cu.checks.epochs_needed(epochs_needed)


# %% tags=["solution"] jupyter={"source_hidden": true}
def epochs_needed(bleu, level):
    """Epochs until BLEU first reaches the level, between measurements on a straight line."""
    previous = 0.0
    for epoch, value in enumerate(bleu):
        if value >= level:
            return epoch + (level - previous) / (value - previous)
        previous = value
    return math.inf


cu.checks.epochs_needed(epochs_needed)

# %% [markdown]
# ## Label smoothing
#
# Cross-entropy is content only when the right word has probability 1, and no logit is ever large enough for that.
# **Label smoothing** ([Szegedy et al., 2016](https://arxiv.org/abs/1512.00567), section 7) asks for less: of the
# target's whole mass 1, a share $\varepsilon$ is handed out evenly to all $K$ classes, the right one included:
#
# $$q_k = (1 - \varepsilon)\,[k = y] + \varepsilon / K, \qquad \text{loss} = -\sum_k q_k \ln p_k .$$
#
# By hand: three classes, $\varepsilon = 0.3$, the first is right. Targets: $q = (0.8,\ 0.1,\ 0.1)$.
#
# | the model says $p$ | plain loss $-\ln p_1$ | smoothed loss |
# |---|---|---|
# | $(0.50,\ 0.25,\ 0.25)$ | 0.693 | $0.8 \cdot 0.693 + 0.2 \cdot 1.386 = 0.832$ |
# | $(0.80,\ 0.10,\ 0.10)$ | 0.223 | $0.8 \cdot 0.223 + 0.2 \cdot 2.303 = 0.639$ |
# | $(0.98,\ 0.01,\ 0.01)$ | 0.020 | $0.8 \cdot 0.020 + 0.2 \cdot 4.605 = 0.937$ |
#
# The smoothed loss is smallest at $p = q$, and never 0: its smallest value is the entropy of $q$. To be surer than
# 0.8 is punished. The best logits differ by $\ln(0.8/0.1) = \ln 8 \approx 2.1$, not by infinity.

# %%
answers = torch.tensor([[0.50, 0.25, 0.25], [0.80, 0.10, 0.10], [0.98, 0.01, 0.01]])
q = torch.tensor([0.8, 0.1, 0.1])
by_hand = -(q * answers.log()).sum(dim=-1)
assert by_hand.round(decimals=3).tolist() == torch.tensor([0.832, 0.639, 0.937]).tolist()
first = torch.zeros(3, dtype=torch.long)
torch.testing.assert_close(
    F.cross_entropy(answers.log(), first, label_smoothing=0.3, reduction="none"), by_hand
)
entropy = -(q * q.log()).sum()
torch.testing.assert_close(entropy, by_hand[1])

logits = torch.randn(3, requires_grad=True)
loss = F.cross_entropy(logits[None], first[:1], label_smoothing=0.3)
torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], logits.softmax(-1) - q)  # p − q

# %% [markdown]
# The last line holds for every cross-entropy: the gradient with respect to the logits is $p - q$, so it vanishes at
# $p = q$. **What does it do to a translator?** The chapter's run (norm after, warm-up), three seeds each with
# $\varepsilon = 0$ and $0.1$, scored on test tokens: the mean of the largest probability ("confidence"), the share of
# right next words, the plain surprise $-\ln p$ of the right word, and BLEU.

# %%
smoothing = pd.DataFrame(
    {
        epsilon: pd.DataFrame(recorded(label_smoothing=epsilon))[
            ["confidence", "accuracy", "nll", "bleu"]
        ].mean()
        for epsilon in (0.0, 0.1)
    }
).T.rename_axis("ε")
assert smoothing["confidence"][0.1] < smoothing["confidence"][0.0] - 0.03
assert abs(smoothing["bleu"][0.1] - smoothing["bleu"][0.0]) < 0.06
smoothing.round(2)

# %% [markdown]
# The model is less sure, 0.82 instead of 0.93, and right just as often, 0.95. Its surprise is larger, since it now
# holds back probability on purpose, and BLEU is the same within the spread of seeds. The paper saw the first half too
# ("hurts perplexity") and a gain in BLEU, on a task where a sentence has many right translations (section 5.4). Ours
# has one each, and an unsmoothed model whose confidence, 0.93, was not too high for its 0.95. Smoothing is for models
# that are *too* sure.
#
# ### Exercise 3 · Smooth
# *8 minutes · ★★*
#
# Mean smoothed loss of logits (batch, classes) and targets (batch,), from `log_softmax` or what you like, without the
# library's `label_smoothing`.


# %% tags=["exercise"]
def smoothed_loss(logits, targets, epsilon):
    """Mean cross-entropy with targets (1 − ε) · one-hot + ε / classes."""
    ...


# %% tags=["check"]
cu.checks.smoothed_loss(smoothed_loss)


# %% tags=["solution"] jupyter={"source_hidden": true}
def smoothed_loss(logits, targets, epsilon):
    """Mean cross-entropy with targets (1 − ε) · one-hot + ε / classes."""
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()


cu.checks.smoothed_loss(smoothed_loss)

# %% [markdown]
# ## Gradient clipping
#
# One odd batch can have a gradient a thousand times longer than usual. **Clipping** shortens it
# ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)): with $\|\mathbf g\|$ the length over *all* parameters
# together,
#
# $$\mathbf g \leftarrow \mathbf g \cdot \min\big(1,\ c / \|\mathbf g\|\big).$$
#
# The direction stays. By hand: parameters with gradients 3 and 4 have length 5; $c = 1$ makes them 0.6 and 0.8.

# %%
pair = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
pair[0].grad, pair[1].grad = torch.tensor([3.0]), torch.tensor([4.0])
length = nn.utils.clip_grad_norm_(pair, 1.0)
assert length == 5  # what it returns is the length *before*
torch.testing.assert_close(torch.cat([p.grad for p in pair]), torch.tensor([0.6, 0.8]))

# %% [markdown]
# With Adam, which divides by the size anyway, what is clipping for? It protects Adam's *memory*. **What does one
# gradient of 1000 do among gradients of 1?** We follow the size of the steps of one weight, 150 steps before and
# after.


# %%
def step_sizes(gradients, limit):
    """Size of each step of Adam, in units of the learning rate."""
    weight, sizes = nn.Parameter(torch.zeros(1)), []
    optimizer = torch.optim.Adam([weight], lr=1.0, betas=(0.9, 0.98))
    for gradient in gradients:
        before_step = weight.item()
        weight.grad = torch.tensor([gradient])
        nn.utils.clip_grad_norm_([weight], limit)
        optimizer.step()
        sizes.append(abs(weight.item() - before_step))
    return torch.tensor(sizes)


spiked = [1.0] * 100 + [1000.0] + [1.0] * 200
unclipped, clipped = step_sizes(spiked, math.inf), step_sizes(spiked, 1.0)
assert (clipped - 1).abs().max() < 1e-3  # nothing happened
assert unclipped[101:111].sum() > 3  # the odd gradient goes on pushing,
assert unclipped[150:].max() < 0.1  # and then the weight hardly moves for 150 steps
cu.show_curves(
    range(len(spiked)),
    {"unclipped": unclipped, "clipped to 1": clipped},
    alt="Size of Adam's steps around one gradient of 1000 among gradients of 1. Clipped: always 1. Unclipped: 1, then after "
    "the odd gradient the steps fall to nearly 0 within 50 steps and are still there at the end, 200 steps later.",
    xlabel="step",
    ylabel="size of the step / rate",
    width=6.4,
    height=2.7,
)

# %% [markdown]
# Unclipped, the square of 1000 stays in Adam's average of squares: $0.98^{200}$ is still 0.018, times a million. 200
# steps later this weight learns at a twentieth of its rate. Clipped, nobody notices. So clip, but do not expect it to
# replace a warm-up: above it did not.
#
# ### Exercise 4 · Clip
# *8 minutes · ★★*
#
# Given a list of gradients, return a list of new tensors, shortened together to at most `limit`.


# %% tags=["exercise"]
def clip_together(gradients, limit):
    """The gradients, times one factor, so that together they are at most `limit` long."""
    ...


# %% tags=["check"]
cu.checks.clip_together(clip_together)


# %% tags=["solution"] jupyter={"source_hidden": true}
def clip_together(gradients, limit):
    """The gradients, times one factor, so that together they are at most `limit` long."""
    length = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    factor = 1.0 if length <= limit else limit / length
    return [gradient * factor for gradient in gradients]


cu.checks.clip_together(clip_together)

# %% [markdown]
# ## Stop, save, resume
#
# Trainings are interrupted: by a closed laptop, a full disk, a colleague. **What must a checkpoint hold so that the
# resumed run is the same run?** More than weights: Adam's two averages of every weight and its step count (or the
# first steps are violent again), the step that the schedule has reached, the state of the random numbers, and where
# in its pass the loader stands, with the order it had drawn.
#
# We press the stop button in step 7 (of 5 per epoch: in the middle of the second epoch), then go on.

# %%
few = train_pairs[:300]


def small_run(loss, path, epochs=3, resume=False, model=None):
    """Three epochs of five steps on 300 sentences, with dropout, and a checkpoint."""
    cu.seed_everything(5)
    model = model or cu.Transformer(
        *map(len, vocabularies), embed_dim=32, num_heads=2, ffn_dim=64, num_layers=1, dropout=0.1
    )
    trainer = cu.Trainer(
        loss, epochs=epochs, lr=5e-3, schedule=cu.inverse_sqrt(5), checkpoint=path, device="cpu"
    )
    pairs = cu.PairLoader(few, *vocabularies, batch_size=64)
    return model, trainer.fit(model, pairs, resume=resume)


def stopped_in_step(number):
    """The usual loss; in this step somebody presses the stop button."""
    usual, calls = cu.translation_loss(), []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return usual(model, batch)

    return loss


# %% tags=["nbval-ignore-output"]
with tempfile.TemporaryDirectory() as folder:
    straight, whole = small_run(cu.translation_loss(), Path(folder) / "straight.pt")
    path = Path(folder) / "stopped.pt"
    stopped, part = small_run(stopped_in_step(7), path)
    saved = torch.load(path, weights_only=True)
    resumed, rest = small_run(cu.translation_loss(), path, resume=True)
    # what many do: the weights alone, and a new optimizer
    naive = small_run(stopped_in_step(7), None)[0]
    naive, _history = small_run(cu.translation_loss(), None, epochs=2, model=naive)

# %%
assert part.stopped == "interrupted" and saved["counters"]["step"] == 7
assert {"model", "optimizer", "counters", "rng", "loader"} <= saved.keys()
for name, weights in straight.state_dict().items():
    assert torch.equal(resumed.state_dict()[name], weights)  # bit for bit, with dropout
assert [row["train_loss"] for row in rest.rows] == [row["train_loss"] for row in whole.rows]
assert not torch.equal(naive.output.weight, straight.output.weight)

# %% [markdown]
# The resumed run *is* the uninterrupted one, to the last bit of every weight (on one device and with the same number
# of threads). Three habits make it safe. The file is written under another name and renamed when it is whole, so that
# a crash while saving leaves the old one. It is read with `weights_only=True`, since an ordinary pickle may run code.
# And it says which model it belongs to: weights of another shape are refused in words.
#
# ## Seen is not learned
#
# The lecture trains on 90,000 pairs and shows 20 translations, 14 of them right and two more nearly; the sentences
# are drawn from *the dataset*, so most or all had been seen in training, and it says itself that this will not do.
# **How right does a model look on what it has seen?** The extreme case first: 300 sentences, 20 epochs. We keep the
# training loss and the loss on 200 validation sentences, and the weights of the best epoch (`keep_best`).

# %% tags=["nbval-ignore-output"]
memorizer = new_model(norm_first=False)
trainer = cu.Trainer(
    cu.translation_loss(), epochs=20, lr=LR, schedule=cu.inverse_sqrt(WARMUP), keep_best=True
)
val_loader = cu.PairLoader(val_pairs, *vocabularies, shuffle=False)
memory = trainer.fit(memorizer, cu.PairLoader(few, *vocabularies, batch_size=64), val_loader)
memory.plot(alt="Training and validation loss over 20 epochs on 300 sentences: the training loss falls to nearly 0, "
    "the validation loss stops falling far above it.")  # fmt: skip


# %%
def right_of_20(model, pairs):
    """How many of the first 20 sentences are translated exactly, and what was said."""
    said = cu.translate(model, [" ".join(p.source) for p in pairs[:20]], *vocabularies, max_len=14)
    return sum(a == " ".join(p.target) for a, p in zip(said, pairs, strict=False)), said


seen_right, said_seen = right_of_20(memorizer, few)
new_right, said_new = right_of_20(memorizer, test_pairs)
best = memory.frame["val_loss"].idxmin()
assert memory.frame["train_loss"].iloc[-1] < 0.3 and memory.frame["val_loss"].min() > 1
assert seen_right >= 17 and new_right <= 10
assert trainer.evaluate(memorizer, val_loader) == memory.frame["val_loss"][best]  # the best is back

# %% [markdown]
# Shown to an audience, the 20 sentences on the left would be a triumph. The 20 on the right were asked of the same
# weights:

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        "seen": [" ".join(p.source) for p in few[:6]],
        "translation": said_seen[:6],
        "not seen": [" ".join(p.source) for p in test_pairs[:6]],
        "its translation": said_new[:6],
    }
)

# %% [markdown]
# **How does it depend on the number of sentences?** Three sizes, three seeds, the same 280 steps; BLEU on 200 (of
# the) training sentences and on 200 that were not seen.

# %%
sizes = (
    pd.DataFrame(
        {
            size: pd.DataFrame(recorded(sentences=size))[["train_bleu", "bleu"]].mean()
            for size in (300, 1000, len(train_pairs))
        }
    )
    .T.rename(columns={"train_bleu": "seen", "bleu": "not seen"})
    .rename_axis("sentences")
)
gap = sizes["seen"] - sizes["not seen"]
assert (sizes["seen"] > 0.9).all()  # it always looks right
assert sizes["not seen"].is_monotonic_increasing and gap[300] > 0.5 and gap[len(train_pairs)] < 0.15
sizes.round(1)

# %% [markdown]
# On seen sentences BLEU is near 1 at each size and tells nothing. On new ones it grows with the data, and the gap
# closes. (Ours is an easy language of 200 words. The last cell asks the same of real sentences, on a GPU.) The rule
# is short: **split by source sentence, shuffled, before anything else; look at the test part once.** For choosing an
# epoch there is the validation part. The weights of the lowest validation loss need not be those of the highest BLEU:
# a loss punishes every probability, BLEU only what is said. Decide beforehand which of them you choose by.
#
# ## The shortcuts of a first-generation implementation
#
# The lecture's own implementation differs from the paper in more than the place of the norm. Such code is common, it
# runs and it learns, so each shortcut deserves a number. **What does each change?** First by looking, then by
# training.
#
# **Sliced heads, no $\mathbf W_o$.** Each head gets a slice of the embedding instead of a projection of all of it,
# and nothing mixes what the heads say. [Multi-head attention](08_multi_head_attention.ipynb) proved it a special case with block-diagonal matrices.

# %%
standard, sliced = new_model(False), take_shortcut(new_model(False), "sliced heads")
count = {
    name: sum(p.numel() for p in m.parameters())
    for name, m in (("all", standard), ("sliced", sliced))
}
layers, d, h = 4 * 3, 64, 4  # 12 attentions; three matrices d × d become d²/h, the fourth goes
assert count["all"] - count["sliced"] == layers * (4 * d * d - 3 * d * d // h + d)


def moved_by_first_slice(attention):
    """Which outputs notice a change of features 0–15, head 0's slice."""
    x = torch.randn(1, 5, d)
    y = torch.cat([torch.randn(1, 5, d // h), x[..., d // h :]], dim=-1)
    return ((attention(x, x, x) - attention(y, y, y)).abs().amax(dim=(0, 1)) > 1e-6).sum().item()


assert moved_by_first_slice(standard.encoder[0].attention) == 64
assert moved_by_first_slice(sliced.encoder[0].attention) == 16

# %% [markdown]
# **Scaled after the softmax.** The code divides by $\sqrt{d/h}$, but behind the softmax. Then the scores are too
# large by this factor, so that rows are nearly one-hot when queries and keys grow, and weights sum to $1/\sqrt{d/h}$
# (here ¼), so that the layer speaks softly. (The formula beside the code, in turn, has $\sqrt M$, the size of the
# whole embedding.)

# %%
q, k, v = (torch.randn(1, 2000, 16) for _ in range(3))
v = torch.ones_like(v)
scores = q @ k.transpose(-2, -1)
assert abs(scores.var() - 16) < 1 and abs((scores / 4).var() - 1) < 0.1
right, wrong = (scores / 4).softmax(dim=-1), scores.softmax(dim=-1)
assert right.amax(dim=-1).mean() < 0.05 < 0.2 < wrong.amax(dim=-1).mean()  # of 2000 keys
assert torch.allclose(wrong @ v / 4, torch.tensor(0.25))

# %% [markdown]
# **Zeroed embeddings as a mask.** What must not be seen is set to zero *before* attention. But a zero key has score
# 0, not $-\infty$. By hand: two real keys with scores 1 and 0, and three zeroed ones. The first gets
# $e / (e + 1 + 3) = 0.40$ where it should get $e / (e + 1) = 0.73$; the three zeros take $3 / (e + 4) = 0.45$. And
# the more padding, the more they take: a translation depends on its neighbors in the batch. (The lecture's decoder
# hides the words to come in this way. In the trainings below we do it to the padding.)

# %%
scores = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
shares = [scores.softmax(0)[0], scores[:2].softmax(0)[0], scores.softmax(0)[2:].sum()]
assert torch.allclose(torch.stack(shares), torch.tensor([0.40, 0.73, 0.45]), atol=0.006)

zeroed = take_shortcut(new_model(False), "zeroed mask")
source, lens = batch.source[:1], batch.source_lens[:1]
longer = F.pad(source, (0, 4))  # the same sentence, padded further
for model, safe in ((standard, True), (zeroed, False)):
    with torch.no_grad():
        logits = [model.eval()(s, lens, batch.target_in[:1]) for s in (source, longer)]
    assert torch.allclose(*logits, atol=1e-5) == safe

# %% [markdown]
# **One forward pass per word.** The decoder is run once for each target word, on what stands before it. A causal mask
# does all words in one pass, with the same result, since no position sees what comes later:

# %%
target = batch.target_in[:1]
n = target.shape[1]
with torch.no_grad():
    at_once = standard(source, lens, target)
    one_by_one = [standard(source, lens, target[:, : t + 1])[:, -1] for t in range(n)]
torch.testing.assert_close(torch.stack(one_by_one, dim=1), at_once, atol=1e-5, rtol=1e-4)

once = cu.multiply_adds(lambda: standard(source, lens, target))
all_words = cu.multiply_adds(lambda: [standard(source, lens, target[:, : t + 1]) for t in range(n)])
print(f"{all_words / once:.1f} times the operations of one pass, for {n} words")

# %% [markdown]
# **Layers over the flattened sentence.** The lecture's feed-forward layers read all ten tokens as one vector of
# $10 \cdot 256$ numbers ([The Transformer](10_transformer.ipynb) shows what that costs in principle), and it prints its numbers of parameters:
# 124,583,936 in the encoder and 149,886,015 in the decoder. **Where do they come from?** They come out to the digit
# if *the heads'* projections, too, work on flattened slices of $10 \cdot 64$ numbers:


# %%
def linear(inputs, outputs):
    return inputs * outputs + outputs


tokens, width, heads, vocabulary = 10, 256, 4, 21_823
flat, norm = tokens * width, 2 * width
ffn = linear(flat, 2 * flat) + linear(2 * flat, flat)
attention = heads * 3 * linear(flat // heads, flat // heads)
assert 4 * (ffn + attention + 2 * norm) == 124_583_936
assert 4 * (ffn + 2 * attention + 3 * norm) + linear(width, vocabulary) == 149_886_015

per_token = linear(width, 2 * width) + linear(2 * width, width)
standard_layer = 4 * linear(width, width) + per_token + 2 * norm
assert 59 < (ffn + attention + 2 * norm) / standard_layer < 60

# %% [markdown]
# An encoder layer of 31 million parameters where half a million do, for sentences of exactly ten tokens, and none of
# what it learns about a word at place 3 helps it at place 4.
#
# **And in training?** Each shortcut alone, put into every layer of the chapter's model (norm after, warm-up), three
# seeds. A fifth one is in the lecture's decoder: *no shortcut around cross-attention*, norm(f(x)) where norm(x +
# f(x)) should be.

# %%
names = ["", "sliced heads", "scaled after softmax", "zeroed mask", "no residual around cross"]
shortcuts = pd.DataFrame(
    {name or "standard": [run["bleu"] for run in recorded(shortcut=name)] for name in names},
    index=pd.Index(range(3), name="seed"),
).T
mean = shortcuts.mean(axis=1)
assert mean["standard"] > 0.8 and abs(mean["zeroed mask"] - mean["standard"]) < 0.05
assert abs(mean["sliced heads"] - mean["standard"]) < 0.05
assert mean["scaled after softmax"] < mean["standard"] - 0.05
assert (shortcuts.loc["no residual around cross"] < 0.1).all()
shortcuts.round(2)

# %% [markdown]
# - *Sliced heads*, with two fifths fewer parameters, lose a little, 0.04 on average. The feed-forward layers
#   mix what the heads do not.
# - *Scaling after the softmax* costs more, about a tenth: learning starts from attention that is too sharp and too
#   soft-spoken.
# - *Zeroed padding* costs next to nothing here, where sentences of a batch are of similar length and there is little
#   padding. What it does cost is reliability: the same sentence, translated in another batch, may come out
#   differently.
# - *No residual around the cross-attention* is the only one that is fatal here, even with warm-up: behind it, the
#   decoder has no way past the source for its own last word. (The lecture's model learned nevertheless, with over 600
#   times as many parameters, layers that see the whole sentence at once, and 16 hours.)
#
# ## What goes wrong
#
# **Validation from the tail of a sorted file.** The last lines of a file are "the last 200" and look as good as any.
# Ours is sorted by English sentence, as many are (by length, often). The tail is not a sample: all its sentences
# begin alike.

# %%
everything = cu.load_grammar("es")
tail = {pair.source[0] for pair in everything[-200:]}
sample = {pair.source[0] for pair in test_pairs}
assert len(tail) <= 3 and len(sample) > 20

# %% [markdown]
# **Overflow that nobody notices.** With a rate that is absurd, the loss becomes NaN, and a loop that does not look
# goes on for hours. The Trainer looks at every step and says what it knew.

# %%
try:
    broken_trainer = cu.Trainer(cu.translation_loss(), epochs=1, lr=1e30, clip_norm=None)
    broken_trainer.fit(new_model(True, num_layers=1), cu.PairLoader(few, *vocabularies))
except FloatingPointError as error:
    assert "at step" in str(error) and "lower the rate" in str(error)
else:
    raise AssertionError("a loss of NaN went unnoticed")

# %% [markdown]
# **A schedule on the wrong clock.** The formula counts *steps of the optimizer*. Not epochs; and with gradients that
# are accumulated over several batches, not batches either. This is the bug to find.
#
# ### Exercise 5 · Find the bug
# *12 minutes · ★★*
#
# This loop trains with PyTorch's own `LambdaLR`, and "warm-up does not help". Below, 5 epochs of 56 steps with a
# warm-up of 50 steps: at the end the rate has not reached a tenth of its peak, and the whole first epoch changed
# *nothing*. Write `fixed_fit`: the same, with the rate of step $s = 1, 2, \dots$ being `lr * schedule(s)`. There are
# two mistakes.


# %%
def buggy_fit(model, batches, loss, *, epochs, lr, schedule):
    """Train with Adam; returns the list of the rates, one for each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    rates = []
    for _epoch in range(epochs):
        for batch in batches:
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
        scheduler.step()
    return rates


line, inputs = nn.Linear(3, 1), [torch.randn(4, 3) for _ in range(56)]
rates = buggy_fit(
    line, inputs, lambda m, x: m(x).square().mean(), epochs=5, lr=1.0,
    schedule=lambda s: min(s / 50, math.sqrt(50 / max(s, 1))),
)  # fmt: skip
assert len(rates) == 280 and max(rates) < 0.1 and set(rates[:56]) == {0.0}


# %% tags=["exercise"]
def fixed_fit(model, batches, loss, *, epochs, lr, schedule):
    """Train with Adam; returns the list of the rates, one for each step."""
    ...


# %% tags=["check"]
cu.checks.fixed_fit(fixed_fit)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_fit(model, batches, loss, *, epochs, lr, schedule):
    """Train with Adam; returns the list of the rates, one for each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    # LambdaLR counts steps that are done, from 0; the formula counts the step to come, from 1
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + 1))
    rates = []
    for _epoch in range(epochs):
        for batch in batches:
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
            scheduler.step()  # once per step
    return rates


cu.checks.fixed_fit(fixed_fit)

# %% [markdown]
# ## At the lecture's size
#
# Real sentences: 90,000 English–Spanish pairs of at most eight tokens a side, 4 + 4 layers of width 256, batches of
# 50, 4000 steps of warm-up to the paper's peak $1/\sqrt{256 \cdot 4000} \approx 0.001$, 40 epochs, both orders; BLEU
# on 500 seen and on the held-out sentences. On a GPU the cell downloads the pairs and trains; elsewhere it shows what
# was recorded, if anything was.


# %% tags=["gpu", "nbval-ignore-output"]
def spanish_at_full_size(*, quick=False):
    """Both orders of norm on real English–Spanish pairs, scored on seen and on held-out sentences."""
    pairs = cu.load_grammar("es")[::400] if quick else cu.load_tatoeba("es", max_tokens=8)
    train, test = cu.split_by_source(pairs, [10 if quick else 2000])
    train = train[:90_000]
    vocabularies = [cu.Vocabulary(getattr(p, side) for p in train) for side in ("source", "target")]
    figures = {}
    for name, norm_first in (("after", False), ("before", True)):
        cu.seed_everything(0)
        model = cu.Transformer(
            *map(len, vocabularies), embed_dim=256, num_heads=4, ffn_dim=512, num_layers=4,
            norm_first=norm_first,
        )  # fmt: skip
        trainer = cu.Trainer(
            cu.translation_loss(label_smoothing=0.1), epochs=1 if quick else 40,
            lr=(256 * 4000) ** -0.5, schedule=cu.inverse_sqrt(4000),
        )  # fmt: skip
        trainer.fit(model, cu.PairLoader(train, *vocabularies, batch_size=50))
        for part, some in (("seen", train[:500]), ("held-out", test)):
            references = {}
            for pair in some:
                references.setdefault(" ".join(pair.source), []).append(" ".join(pair.target))
            known = [s for s in references if any(word in vocabularies[0] for word in s.split())]
            said = cu.translate(model, known, *vocabularies, max_len=20)
            figures[f"norm {name}, {part} BLEU"] = cu.bleu(said, [references[s] for s in known])
    return figures


cu.stored_run("training_transformers", spanish_at_full_size)

# %% [markdown]
# ## Take-aways
#
# - With the norm *after*, each norm stands in the shortcut: the first steps of Adam, all of the full size, can make
#   every word look alike to the decoder within three steps. With the norm *before*, the shortcut is free, and the
#   model recovers.
# - A failed training need not show in its loss. BLEU on held-out sentences at every checkpoint shows it at once.
# - Warm-up cures because early steps are *small*, in units of steps, not of epochs. Clipping, which shortens
#   gradients, does not: Adam's steps do not depend on their length. It protects Adam's memory.
# - A checkpoint is weights, optimizer, step, random numbers and the loader's place. Anything less is another run.
# - Twenty right translations of seen sentences prove nothing. Split by source, shuffle, and look at what was not
#   seen.

# %%
cu.quiz("training_transformers")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Sections 5.3
#   (warm-up) and 5.4 (label smoothing).
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745). ICML.
# - Liu, L. et al. (2020). [Understanding the difficulty of training transformers](https://arxiv.org/abs/2004.08249).
#   EMNLP.
# - Szegedy, C. et al. (2016).
#   [Rethinking the Inception architecture for computer vision](https://arxiv.org/abs/1512.00567). CVPR. Section 7 has
#   label smoothing.
# - Pascanu, R., Mikolov, T., and Bengio, Y. (2013).
#   [On the difficulty of training recurrent neural networks](https://arxiv.org/abs/1211.5063). ICML.
# - Kingma, D. P., and Ba, J. (2015). [Adam: a method for stochastic optimization](https://arxiv.org/abs/1412.6980).
#   ICLR.
# - Glorot, X., and Bengio, Y. (2010).
#   [Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html).
#   AISTATS.
# - Kak, A. (2025). [Deep learning lectures](https://engineering.purdue.edu/DeepLearn/). Purdue University. The
#   transformer lecture, whose comparison and implementation are measured here.
