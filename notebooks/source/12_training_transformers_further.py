# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training transformers: optimizers, precision and a first generation
#
# [Training transformers](12_training_transformers.ipynb) needs only a few words about its optimizer.
# This page has the details that you will meet when you train a model of your own: what the first steps destroy, weight decay, small initial weights, large batches in pieces, sixteen bits, clipping, smoothed labels, what a checkpoint must hold, and two orders of norm.
# At the end we rebuild a lecture's own translator, and ask what twenty translations show.
# You can read each section by itself, but run the cells in order.

# %% jupyter={"source_hidden": true}
import copy
import inspect
import math
from functools import partial

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.layers import Residual
from course_utils.lessons.training_transformers.runs import found, load_training_runs
from course_utils.lessons.training_transformers.small_spanish import spanish_world
from course_utils.lessons.training_transformers.variants import (
    FirstDecoderLayer,
    FirstGeneration,
    SlicedHeads,
    real_run,
)

cu.seed_everything(0)

# %% [markdown]
# ## What do the first steps destroy?
#
# In the chapter run A fails because it begins at the full learning rate.
# There are two explanations.
# The first says that Adam's averages are poor at the start, because they come from few gradients, so the sizes of its steps can't be trusted.
# **RAdam** corrects them with a factor that grows over a few hundred steps ([Liu et al., 2020a](https://arxiv.org/abs/1908.03265)).
# The second says that with the norm after the sum the output of the whole stack changes too much when all weights move at once ([Liu et al., 2020b](https://arxiv.org/abs/2004.08249)).
#
# To tell them apart, we fill Adam's averages *before* A begins, with 50 batches at rate 0.
# Then the averages are good, but the first step is still large.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A, with Adam's averages filled by 50 batches before the first step that moves a weight. Does it learn to translate?",
    ["yes, in all three trainings", "no, in none", "in some"],
    answer="no, in none",
    wrong={
        "yes, in all three trainings": "That would be so if poor averages were all of the cause. What stays as it was in A?",
        "in some": "The first steps stay large in all three trainings. What would make one of them survive?",
    },
    why="BLEU stays at zero in each of them. Good averages don't help while the first steps stay that large.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
stored = load_training_runs()
cures = {
    "norm after, full rate (A)": found(stored, warmup=0),
    "norm after, warm-up (B)": found(stored),
    "norm after, averages filled": cu.stored_runs(
        "training_transformers", "other_adam", adam="filled"
    ),
    "norm after, RAdam": cu.stored_runs("training_transformers", "other_adam", adam="radam"),
    "norm before, full rate": found(stored, norm_first=True, warmup=0),
}
bleu_of = {
    name: [
        run["curves"]["bleu"][1][1] if isinstance(run, dict) else run.result["bleu"] for run in some
    ]
    for name, some in cures.items()
}
compared = pd.DataFrame(bleu_of, index=[f"training {seed}" for seed in range(3)]).T
compared.rename_axis("BLEU after 112 steps").round(2)

# %% [markdown]
# With filled averages A still fails, so poor averages are not the whole cause.
# RAdam does learn, but it also begins with small steps, so by itself it wouldn't decide between the explanations.
# And with the norm *before* the sublayer the model learns at the same full rate in all three runs.
# So what the first steps destroy depends on where the norm is.
# [Below](#Two-orders-of-norm) we see how gradients flow in the two orders.


# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Filled averages don't save A; RAdam, a warm-up or the norm before do."):
    failing = ["norm after, full rate (A)", "norm after, averages filled"]
    assert (compared.loc[failing] < 0.05).all(axis=None)
    assert (compared.drop(failing) > 0.2).all(axis=None)
    first = cu.stored_runs("training_transformers", "first_step_filled")
    assert all(0.5 < run.result["moved"] < 0.7 for run in first)

# %% [markdown]
# ## Adam with decoupled weight decay
#
# **Weight decay** pulls each weight towards 0, which keeps weights small that nothing needs.
# We can write it in two ways: add $\lambda\theta$ to the *gradient*, as a penalty in the loss would, or shrink the weight itself by $\eta\lambda\theta$ in each step.
# For plain gradient descent these are the same.
# With Adam they are not, because Adam divides whatever is in the gradient by the gradient's usual size, so a weight with large gradients hardly decays.
# **AdamW** decouples the two ([Loshchilov and Hutter, 2019](https://arxiv.org/abs/1711.05101)):
#
# $$m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad \theta \leftarrow (1 - \eta\lambda)\,\theta - \eta\,\frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}.$$
#
# Here is the whole optimizer.


# %%
class AdamW:
    """The step above, for a list of parameters."""

    def __init__(self, parameters, lr, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.01):
        self.parameters, self.lr, self.betas = list(parameters), lr, betas
        self.eps, self.weight_decay, self.t = eps, weight_decay, 0
        self.m = [torch.zeros_like(p) for p in self.parameters]
        self.v = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            p.mul_(1 - self.lr * self.weight_decay)
            size = (v / (1 - b2**self.t)).sqrt() + self.eps
            p.sub_(self.lr * m / (1 - b1**self.t) / size)


# %% [markdown]
# We try it on two weights that begin at 1.
# Their gradients are nothing but noise, large for the first and small for the second.


# %%
def two_weights(make, steps=100):
    """Two weights that begin at 1; noise of size 10 and 0.01 is their only gradient."""
    cu.seed_everything(0)
    weight = nn.Parameter(torch.ones(2))
    optimizer = make([weight])
    for _ in range(steps):
        weight.grad = torch.randn(2) * torch.tensor([10.0, 0.01])
        optimizer.step()
    return weight.detach()


decay = 0.5  # try 0.0 … 2.0
common = {"lr": 0.005, "betas": (0.9, 0.98), "weight_decay": decay}
rows = {
    "no decay": two_weights(lambda p: torch.optim.Adam(p, lr=0.005, betas=(0.9, 0.98))),
    "Adam, decay in the gradient": two_weights(lambda p: torch.optim.Adam(p, **common)),
    "AdamW, ours": two_weights(lambda p: AdamW(p, **common)),
    "AdamW, PyTorch's": two_weights(lambda p: torch.optim.AdamW(p, **common)),
}
decayed = pd.DataFrame({name: row.tolist() for name, row in rows.items()}).T
decayed.columns = ["weight with large gradients", "with small ones"]
decayed.round(3)

# %% [markdown]
# Our step gives the same weights as PyTorch's.
# With the decay in the gradient, the weight with large gradients stays near 1 and only the other one decays.
# With AdamW both shrink by nearly the same part, about $(1 - 0.005\cdot 0.5)^{100} = 0.78$, on top of what the noise does to them.
#
# Usually biases and norms don't decay, and `cu.Trainer` keeps to that.
# Values from 0.01 to 0.1 are common, and we let validation decide which one is right.
#
# ### Cosine
#
# A second schedule is just as common as the chapter's: half a cosine from the peak to (nearly) 0, $\tfrac12(1+\cos(\pi u))$, where $u$ is the share of the steps that is over.
# PyTorch has it as `CosineAnnealingLR`.
# The figure compares it with $1/\sqrt{\text{step}}$, with both as shares of the peak.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
total = 280  # the steps of the chapter's trainings
adam = torch.optim.Adam([nn.Parameter(torch.zeros(1))], lr=1.0)
annealing = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=total)
theirs = []
for _ in range(total + 1):
    theirs.append(adam.param_groups[0]["lr"])
    adam.step()
    annealing.step()
quarters = [share * total // 4 for share in range(5)]
schedules = {
    "half a cosine": [(1 + math.cos(math.pi * step / total)) / 2 for step in quarters],
    "CosineAnnealingLR": [theirs[step] for step in quarters],
    "1 / √step": [min(1.0, math.sqrt(50 / max(step, 1))) for step in quarters],
}
pd.DataFrame(schedules, index=[f"step {step}" for step in quarters]).T.round(3)

# %% [markdown]
# The cosine ends at 0, so we have to know the number of steps in advance.
# The root doesn't, but it still has a good part of its peak at the end.
# We haven't compared how well they translate.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "AdamW is PyTorch's, and decays weights with large and with small gradients alike.",
    given=decay == 0.5,
):
    assert (rows["AdamW, ours"] - rows["AdamW, PyTorch's"]).abs().max() < 1e-5
    drift = rows["AdamW, ours"] - rows["no decay"]
    assert (drift < -0.1).all() and abs(drift[0] - drift[1]) < 0.05
    mixed = rows["Adam, decay in the gradient"] - rows["no decay"]
    assert mixed[0] > mixed[1] + 0.2
    by_formula, by_torch = list(schedules.values())[:2]
    assert max(abs(a - b) for a, b in zip(by_formula, by_torch, strict=True)) < 1e-6

# %% [markdown]
# ## Small initial weights
#
# With the norm before the sublayer, each sublayer adds to the stream, so the stream grows as it goes up.
# How much it grows depends on the initial weights.
# GPT draws them with standard deviation 0.02 ([Radford et al., 2018](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf)), and GPT-2 divides the weights of the last matrix in each sublayer by $\sqrt{N}$, where $N$ is the number of residual connections ([Radford et al., 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), section 2.3).
# The next cell measures the stream after many layers.


# %%
def stream_sizes(start, depth, width=64):
    """Standard deviation of the stream after each layer, norm before."""
    cu.seed_everything(0)
    layers = [cu.EncoderLayer(width, 4, 4 * width, dropout=0.0) for _ in range(depth)]
    for layer in layers:
        last = (layer.attention.out_proj, layer.feed_forward[3])
        for module in layer.modules():
            if isinstance(module, nn.Linear):
                start(module, module in last, 2 * depth)
    x = torch.randn(8, 10, width)
    sizes = [x.std().item()]
    with torch.no_grad():
        for layer in layers:
            x = layer(x)
            sizes.append(x.std().item())
    return sizes


# %%
def xavier(layer, last, n):
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)


def small_weights(layer, last, n, divided=False):
    nn.init.normal_(layer.weight, std=0.02 / (n**0.5 if divided and last else 1))
    nn.init.zeros_(layer.bias)


starts = {
    "PyTorch's default": lambda layer, last, n: None,
    "Xavier": xavier,
    "std 0.02": small_weights,
    "std 0.02, last ones / √N": partial(small_weights, divided=True),
}
number = 24  # try 2 … 48
sizes = {name: stream_sizes(start, number) for name, start in starts.items()}
pd.DataFrame({name: [one[0], one[number // 2], one[-1]] for name, one in sizes.items()},
             index=["bottom", "middle", "top"]).T.round(3)  # fmt: skip

# %% [markdown]
# With Xavier's weights ([Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html)) the stream is several times as large at the top.
# With the smaller last matrices it stays as it was, which means that at the start a layer of such a model does nearly nothing.
# That is what we want, because each layer begins as the identity and learns what to add.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With small last matrices the stream hardly grows.", given=number == 24):
    assert sizes["std 0.02, last ones / √N"][-1] < 1.02 * sizes["std 0.02, last ones / √N"][0]
    assert sizes["Xavier"][-1] > 3 * sizes["Xavier"][0]

# %% [markdown]
# ## What fits into the memory
#
# ### A large batch in pieces
#
# If a batch doesn't fit, we compute it in pieces and add up their gradients (**gradient accumulation**).
# There is one trap: the pieces have different numbers of tokens, and a mean of means isn't the mean over all tokens.

# %%
world = spanish_world()
whole = world.whole(world.val[:60])


def tiny(dropout=0.0):
    return cu.Transformer(
        len(world.source_vocab), len(world.target_vocab), embed_dim=32, num_heads=2,
        ffn_dim=64, num_layers=1, dropout=dropout,
    )  # fmt: skip


small = tiny()
loss_of = cu.translation_loss()
pieces = [world.whole(world.val[:60][start : start + 15]) for start in range(0, 60, 15)]


# %%
def gradient(batches, weigh):
    """All gradients as one vector, added over batches."""
    small.zero_grad()
    for total, count in (loss_of(small, one) for one in batches):
        weigh(total, count).backward()
    return torch.cat([p.grad.flatten() for p in small.parameters()])


tokens = int(whole.target_lens.sum())
at_once = gradient([whole], lambda total, count: total / count)
by_token = gradient(pieces, lambda total, count: total / tokens)
by_mean = gradient(pieces, lambda total, count: total / count / len(pieces))
for name, sum_of in (("divided by all tokens", by_token), ("mean of means", by_mean)):
    gap = (sum_of - at_once).norm() / at_once.norm()
    print(f"{name}: differs by {gap.item():.3f}")

# %% [markdown]
# If we divide by the number of *all* tokens, the four pieces add up to the gradient of the whole batch.
# The mean of four means is another gradient, in which tokens of short sentences count more.
# The schedule counts steps of the optimizer, not pieces.
#
# ### Sixteen bits
#
# Numbers with half the bits need half the memory, and accelerators compute with them several times faster.
# What do we lose?

# %%
table = {}
for kind in (torch.float32, torch.float16, torch.bfloat16):
    info = torch.finfo(kind)
    values = [info.max, info.tiny, info.eps]  # largest, smallest normal, step after 1
    values.append((torch.ones((), dtype=kind) + 0.001).item())
    values += [torch.tensor(one).to(kind).item() for one in (70000.0, 1e-8)]
    table[str(kind)] = [f"{value:.4g}" for value in values]
limits = ["largest", "smallest normal", "step after 1", "1 + 0.001", "70,000", "1e-8"]
pd.DataFrame(table, index=limits).T

# %% [markdown]
# **float16** has small steps between its numbers but a small range, so a large value becomes infinite and a small gradient becomes 0.
# That is why we multiply the loss by a large number before the backward pass and divide the gradients afterwards (**loss scaling**; [Micikevicius et al., 2018](https://arxiv.org/abs/1710.03740)).
# **bfloat16** has the range of float32 but large steps, so $1 + 0.001$ is 1.
# For *weights* that is fatal, because an update of a thousandth would be lost every time.
# So in **mixed precision** (`torch.autocast` in PyTorch) the weights stay in float32, and only the products are computed in sixteen bits.
# Softmax, norms and losses stay in float32 as well, and `cu.Trainer` does all this on GPUs that compute in bfloat16.
#
# The next cell takes one step of Adam on the small model in each way.


# %%
def one_step(model, autocast=False):
    """Loss, gradient, and which of the weights with a gradient did not move."""
    old = [p.detach().clone() for p in model.parameters()]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        summed, counted = loss_of(model, whole)
    (summed / counted).backward()
    slopes = [p.grad for p in model.parameters()]
    torch.optim.Adam(model.parameters(), lr=1e-4).step()
    parts = zip(model.parameters(), old, slopes, strict=True)
    stuck = [(p == before)[slope != 0] for p, before, slope in parts]
    gradient = torch.cat([slope.flatten().float() for slope in slopes])
    return (summed / counted).item(), gradient, torch.cat(stuck).float().mean().item()


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
cu.seed_everything(0)
precise = tiny()
kinds = {"float32": one_step(copy.deepcopy(precise)),
         "mixed": one_step(copy.deepcopy(precise), autocast=True),
         "all in bfloat16": one_step(copy.deepcopy(precise).bfloat16())}  # fmt: skip
exact = kinds["float32"][1]
steps_of = {kind: [loss, ((slopes - exact).norm() / exact.norm()).item(), stuck]
            for kind, (loss, slopes, stuck) in kinds.items()}  # fmt: skip
columns = ["loss", "gradient differs by", "weights that do not move"]
pd.DataFrame(steps_of, index=columns).T.round(3)

# %% [markdown]
# In mixed precision the loss is nearly the same, the gradient hardly differs, and the weights move.
# If the weights themselves are in bfloat16 the gradient is still fine, but most weights stay where they were, because the step is smaller than half of the distance to the next number.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Pieces add up if each is divided by all tokens, and a mean of means is another gradient."
):
    assert (by_token - at_once).norm() < 1e-4 * at_once.norm()
    assert (by_mean - at_once).norm() > 1e-2 * at_once.norm()

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("float16 overflows and underflows; bfloat16 loses small steps, and most updates."):
    assert table["torch.float16"][4] == "inf" and table["torch.float16"][5] == "0"
    assert table["torch.bfloat16"][3] == "1" != table["torch.float16"][3]
    assert max(steps_of[kind][1] for kind in ("mixed", "all in bfloat16")) < 0.01
    assert steps_of["mixed"][2] < 0.001 and abs(steps_of["all in bfloat16"][2] - 0.82) < 0.03

# %% [markdown]
# ## What clipping protects
#
# We saw that clipping doesn't make Adam's first step smaller.
# What it does protect is Adam's *memory*.
# Imagine a weight whose gradients are 1, except once, when there is one of 1,000.

# %%
spike = 1000.0  # try 1.0 … 10000.0


def step_sizes(limit):
    """Size of each step, in units of the rate."""
    weight, moved = nn.Parameter(torch.zeros(1)), []
    optimizer = torch.optim.Adam([weight], lr=1.0, betas=(0.9, 0.98))
    for gradient in [1.0] * 100 + [spike] + [1.0] * 200:
        old = weight.item()
        weight.grad = torch.tensor([gradient])
        nn.utils.clip_grad_norm_([weight], limit)
        optimizer.step()
        moved.append(abs(weight.item() - old))
    return moved


moved = {"unclipped": step_sizes(math.inf), "clipped to 1": step_sizes(1.0)}
cu.show_curves(
    range(301), moved, xlabel="Step", ylabel="Step / rate", width=6.4, height=2.6,
    alt="Size of Adam's steps around one gradient of 1,000 among gradients of 1. "
    "Clipped: always 1. Unclipped: they fall to nearly 0 and stay there for 200 steps.",
)  # fmt: skip

# %% [markdown]
# Without clipping, that single gradient adds $(1-\beta_2)\cdot 1000^2 = 20{,}000$ to the average of squares.
# After 200 more steps $0.98^{200} = 0.0176$ of it is left, which is 352, and Adam divides its steps by $\sqrt{353} = 18.8$.
# So one odd batch has nearly stopped the weight for two hundred steps.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Clipped, the odd gradient changes nothing; unclipped, the weight hardly moves for 200 steps.",
    given=spike == 1000.0,
):
    assert max(abs(one - 1) for one in moved["clipped to 1"]) < 1e-3
    assert abs(moved["unclipped"][-1] - 0.053) < 0.005

# %% [markdown]
# ## Smoothed labels
#
# To give the right word probability 1, a model would have to make its logit infinitely large.
# **Label smoothing** ([Szegedy et al., 2016](https://arxiv.org/abs/1512.00567), section 7) asks for less: probability $1-\varepsilon+\varepsilon/K$ for the right one of $K$ classes, and $\varepsilon/K$ for each of the others.
# For example, with three classes and $\varepsilon = 0.3$ it asks for 0.8, 0.1 and 0.1.

# %%
smoothing = 0.3  # try 0.0 … 0.9
answers = torch.tensor([[0.50, 0.25, 0.25], [0.80, 0.10, 0.10], [0.98, 0.01, 0.01]])
first_right = torch.zeros(3, dtype=torch.long)
smoothed_losses = {}
for name, value in (("plain", 0.0), ("smoothed", smoothing)):
    options = {"label_smoothing": value, "reduction": "none"}
    smoothed_losses[name] = F.cross_entropy(answers.log(), first_right, **options)
models = ["0.50, 0.25, 0.25", "0.80, 0.10, 0.10", "0.98, 0.01, 0.01"]
pd.DataFrame(smoothed_losses, index=models).round(3)

# %% [markdown]
# The smoothed loss is smallest where the model says just what was asked for, and a model that is more certain pays for it.
# [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) used $\varepsilon = 0.1$ and report a worse perplexity and a better BLEU (section 5.4), and [Müller et al. (2019)](https://arxiv.org/abs/1906.02629) study when it helps.
# Here is what it does to run B of the chapter, on the validation sentences.
# The loss is the plain one in both rows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
measured = {"nll": "loss", "confidence": "largest probability, mean", "bleu": "BLEU"}
smoothed = {
    name: pd.DataFrame(found(stored, label_smoothing=value))[list(measured)]
    for name, value in (("plain", 0.0), ("smoothed, ε = 0.1", 0.1))
}
pd.DataFrame(
    {name: [f"{scores[key].min():.2f} – {scores[key].max():.2f}" for key in measured]
     for name, scores in smoothed.items()},
    index=list(measured.values()),
).T  # fmt: skip

# %% [markdown]
# With smoothing the model is less certain and its plain loss is higher, in every training.
# BLEU hardly changes.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In three trainings smoothing raises the plain loss and lowers the largest probability, and BLEU is level."
):
    plain, soft = smoothed.values()
    assert soft["nll"].min() > plain["nll"].max()
    assert soft["confidence"].max() < plain["confidence"].min() - 0.05
    assert plain["bleu"].min() < soft["bleu"].min() and soft["bleu"].max() < plain["bleu"].max()

# %% [markdown]
# ## What a checkpoint must hold
#
# The files of the chapter hold weights, which is enough to choose the best.
# To *go on* as if nothing had happened we need more: Adam's averages and its count of steps, the step of the schedule, the state of the random numbers, and where in its epoch the loader is.
# We interrupt a run after 30 of 60 steps and resume it in two ways, with all of its state and with its weights only.


# %%
def resumed(how, half=30):
    """60 losses; after 30 it goes on "unbroken", with "all", or "weights alone"."""
    cu.seed_everything(0)
    model, losses = tiny(dropout=0.1), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    for step, batch in enumerate(world.batches(2 * half), start=1):
        if step == half + 1 and how != "unbroken":  # a new optimizer
            saved = copy.deepcopy(optimizer.state_dict()), torch.get_rng_state()
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
            torch.manual_seed(999)
            if how == "all":
                optimizer.load_state_dict(saved[0])
                torch.set_rng_state(saved[1])
        total, tokens_in = loss_of(model, batch)
        optimizer.zero_grad()
        (total / tokens_in).backward()
        optimizer.step()
        losses.append(total.item() / tokens_in)
    return losses


# %% tags=["nbval-ignore-output"]
runs = {how: resumed(how) for how in ("unbroken", "all", "weights alone")}
at = [30, 31, 32, 35, 60]
pd.DataFrame(
    {how: [losses[n - 1] for n in at] for how, losses in runs.items()},
    index=[f"step {n}" for n in at],
).T.round(3)

# %% [markdown]
# With all of its state we get the losses of the unbroken run, to the last digit shown, even with dropout.
# With the weights only it becomes *another* run, because the random numbers are different and Adam takes its first steps once more.
# It isn't a worse run here, but nobody can make it again in order to check it.
# `cu.Trainer(checkpoint=…)` writes all of it.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A run resumed from all of its state is the unbroken run."):
    assert torch.allclose(torch.tensor(runs["all"]), torch.tensor(runs["unbroken"]), atol=1e-6)
    assert runs["weights alone"][:30] == runs["unbroken"][:30]
    assert abs(runs["weights alone"][30] - runs["unbroken"][30]) > 1e-4

# %% [markdown]
# ## Two orders of norm
#
# A well-known lecture on Transformers ([Kak, 2025](https://engineering.purdue.edu/DeepLearn/)) builds two translators, one for each order of norm.
# Here are the two encoder layers side by side.

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
# The line around the sublayers is the residual stream.
# On the left it passes through every norm, and on the right only through the one at the very top.
# A pre-norm decoder layer has three such norms, because it has three sublayers.
#
# What does that mean for training?
# We send a gradient down through a stack of 24 sublayers with random weights, and measure its size on the residual stream.


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

        def sublayer(x, f=f, is_network=place % 2):
            added = f(x) if is_network else f(x, x, x)
            return added if through_f else added.detach()  # no way back through f

        streams.append(Residual(64, norm_first=norm_first)(streams[-1], sublayer))
    top = nn.LayerNorm(64)(streams[-1]) if norm_first else streams[-1]
    gradients = torch.autograd.grad((top * torch.randn_like(top)).sum(), streams)
    return [gradient.norm().item() for gradient in gradients]


height = 24  # try 2 … 32
ways = {"norm after": (False, True), "norm before": (True, True)}  # norm_first, through_f
ways["norm after, around f only"] = False, False
flows = {
    name: torch.tensor([gradient_sizes(first, s, height, through) for s in range(3)])
    for name, (first, through) in ways.items()
}
pd.DataFrame(
    {name: flow.mean(dim=0)[[0, height // 2, -1]].tolist() for name, flow in flows.items()},
    index=["bottom", "middle", "top"],
).T.round(1)

# %% [markdown]
# You may have read that gradients vanish with the norm after the sum.
# Here nothing vanishes at the bottom, because what comes back *through* the sublayers makes up for what the norms take away (the last row leaves it out).
# The orders differ at the **top**, where the gradient is more than three times larger with the norm after.
# [Xiong et al. (2020)](https://arxiv.org/abs/2002.04745) prove bounds of this kind for the weights of the last layer.
# A large gradient by itself doesn't explain the failure, though, because Adam divides each gradient by its size.
#
# The lecture reports that its pre-norm model needs no warm-up, but takes 100 epochs to reach what the post-norm model reaches in 40.
# Is that a fact about the order, or about the rate?
# We trained both on 20,000 pairs that people wrote ([Tatoeba](https://tatoeba.org), paired by [manythings.org](https://www.manythings.org/anki/), CC BY 2.0 FR), once each, with 256 features, four layers on either side, six epochs, and a warm-up of 200 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
orders = {f"norm {place}": real_run(norm_first=place == "before") for place in ("after", "before")}
measures = {
    "val_loss": "loss, validation",
    "test_bleu": "BLEU, test",
    "seen_bleu": "BLEU, 500 training pairs",
}
pd.DataFrame(
    {name: [run.result[key] for key in measures] for name, run in orders.items()},
    index=list(measures.values()),
).T.round(3)

# %% [markdown]
# With a warm-up both orders learn about equally fast here, and loss and BLEU disagree about which is ahead.
# We trained each once, and not without a warm-up, where the chapter finds its large difference.
# Where there is a GPU, `make gpu CHAPTER=12` trains the lecture's two models at its size, on 90,000 of the 93,582 pairs that have at most eight words on either side.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the start the orders differ at the top of the stack, and hardly at the bottom.",
    given=height == 24,
):
    ratio = flows["norm after"] / flows["norm before"]
    assert (ratio[:, -1] > 3).all() and (ratio[:, 0] > 0.5).all() and (ratio[:, 0] < 1.5).all()
    around = flows["norm after, around f only"]
    assert (around[:, 0] < 0.01 * flows["norm after"][:, -1]).all()

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With a warm-up both orders learn real sentences, and loss and BLEU disagree about the order."
):
    after, before = (run.result for run in orders.values())
    assert after["steps"] == before["steps"] and before["parameters"] - after["parameters"] == 1024
    between_seeds = [run["bleu"] for run in found(stored, norm_first=False)]
    gap_of = before["test_bleu"] - after["test_bleu"]
    assert 0 < gap_of < max(between_seeds) - min(between_seeds)
    assert 0 < before["val_loss"] - after["val_loss"] < 0.05
    assert all(0.25 < run["test_bleu"] < run["seen_bleu"] - 0.1 for run in (after, before))

# %% [markdown]
# ## A first generation
#
# The lecture's first model differs from [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) in more than the position of its norms:
#
# - A head reads a *slice* of the embedding, and no $W_O$ mixes the heads afterwards.
# - Scores are divided by $\sqrt{d}$ *after* the softmax.
# - Words that aren't known yet are set to zero instead of masked, and each decoder layer masks *features*: if three words are known, three features of every token survive.
# - Feed-forward layers and the heads of the cross-attention read the whole sentence as one long vector.
# - There is no residual connection around the encoder's self-attention and around the cross-attention.
#
# Here are its attention and its decoder layer, in our own code.

# %%
for part in (SlicedHeads, FirstDecoderLayer):
    print(part.__name__, inspect.getsource(part.forward), sep="\n")

# %% [markdown]
# So zeroing does hide the later words, at the price of one forward pass for each word, but the mask along the features hides nearly everything else as well.
# And the flattened layers are expensive: with sentences of 10 tokens, 256 features, 4 heads, four layers, 11,258 English and 21,823 Spanish tokens, the lecture's encoder has 124,583,936 parameters and its decoder 149,886,015, and ours has the same two numbers if self-attention reads the flattened sentence, too.
#
# ### What twenty sentences show
#
# The lecture trains on 90,000 pairs for 40 epochs, which takes some 16 hours by its printed times (167 seconds for 200 steps, 25 minutes an epoch), and then shows 20 translations.
# Each translation is printed with an `EOS` in front and its ten positions filled up by more, which a reader has to cut off.
# By its own verdict 14 are correct, 2 correct in meaning and 4 wrong.
# All twenty come from the very data that the model was trained on, without masking, and the lecture itself concludes that this is no translator and that overfitting is the likely reason.
#
# We can see what such a list shows.
# We trained this model and the standard one in small, on 300 pairs for 24 epochs, at four learning rates each.
# Take the first generation at the rate where it repeats its sentences best, and let it translate twenty sentences that it has read, and twenty that it hasn't (✓ is word for word the stored translation).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
generations = cu.stored_runs("training_transformers", "generations")
twenty = pd.DataFrame([run.config | run.result for run in generations])
(at_best_rate,) = (
    run for run in generations if run.config["kind"] != "standard" and run.config["lr"] == 1e-3
)
columns = {}
for part in ("seen", "not seen"):
    examples = [example for example in at_best_rate.examples if example["part"] == part]
    columns[part] = [example["source"] for example in examples]
    columns[f"{part}, it says"] = [
        ("✓ " if example["said"] == example["target"] else "✗ ") + example["said"]
        for example in examples
    ]
pd.set_option("display.max_colwidth", 60)
pd.DataFrame(columns)

# %% [markdown]
# As in the lecture, more than half of the sentences that it has read are right, but none of the others.
# The standard model translates all twenty correctly at its larger rates, and still never more than three of the others.
# **Twenty training sentences, however well translated, say nothing about others.**
# Nor do they show that a model [overfits](C_glossary.ipynb#overfitting), because for that we need a validation set.
#
# The lecture also suspects its vocabulary, and says that at least five times as many words would be needed.
# We can try that in small.
# A first model knows 200 words, a second one knows 1,000 but learns from equally many pairs, and a third one also has five times the pairs.
# Each gets 510 steps, and then it translates the same unseen sentences, once all of them and once only those in words that it knows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
by_words = pd.DataFrame(
    [
        {"words": run.config["words"], "pairs": run.config["pairs"],
         "BLEU, in its words": run.result["bleu, its words"],
         "BLEU, any sentence": run.result["bleu, any"]}
        for run in cu.stored_runs("training_transformers", "vocabulary")
    ]
)  # fmt: skip
by_words = by_words.groupby(["words", "pairs"])
by_words.mean().round(2)

# %% [markdown]
# The lecture is right that words matter: a model with 200 words can't say most sentences, however well it knows its own.
# But with five times the words and the same pairs, each word is read less often, and the model is less sure of the words that it has.
# Five times the pairs win back a part of that.
# So the two have to grow together, and the vocabulary alone doesn't make a model general.
# All this is with generated sentences, three seeds each, and one learning rate.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "In the first generation no later word leaks, and three words known leave three features."
):
    sample = world.whole(world.val[:1])
    sizes_of = len(world.source_vocab), len(world.target_vocab)
    first_model = FirstGeneration(*sizes_of, embed_dim=32, num_heads=4, num_layers=2)
    another_end = sample.target_in.clone()
    another_end[0, -1] = 7
    logits, later = (
        first_model(sample.source, sample.source_lens, words)
        for words in (sample.target_in, another_end)
    )
    assert (later - logits)[0, :-1].abs().max() < 1e-5
    words = torch.randn(1, 12, 32, requires_grad=True)
    output = first_model.decoder[0](words, torch.randn(1, 12, 32), torch.tensor([3]))
    (output * torch.randn_like(output)).sum().backward()
    assert (words.grad.abs().amax(dim=(0, 1)) > 0).sum() == 3

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Our model has the lecture's two numbers of parameters."), torch.device("meta"):
    lecture = FirstGeneration(
        11_258, 21_823, embed_dim=256, num_heads=4, num_layers=4, length=10, flat_attention=True
    )
    encoder, decoder, output_layer = (
        sum(parameter.numel() for parameter in part.parameters())
        for part in (lecture.encoder, lecture.decoder, lecture.output)
    )
    assert (encoder, decoder + output_layer) == (124_583_936, 149_886_015)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "More words help with any sentence and hurt in known words, and more pairs help with both."
):
    worst, best = by_words.min(), by_words.max()
    inside, anywhere = "BLEU, in its words", "BLEU, any sentence"
    assert worst[inside][200, 3000] > best[inside][1000, 15_000]
    assert worst[inside][1000, 15_000] > best[inside][1000, 3000]
    assert worst[anywhere][1000, 15_000] > best[anywhere][1000, 3000]
    assert worst[anywhere][1000, 3000] > best[anywhere][200, 3000]

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each model repeats more than half of the seen sentences at some rate, and at none has it more than three unseen ones right."
):
    most = twenty.groupby("kind")[["seen, right of 20", "not seen, right of 20"]].max()
    assert most["seen, right of 20"].to_dict() == {"first generation": 11, "standard": 20}
    assert most["not seen, right of 20"].to_dict() == {"first generation": 0, "standard": 3}
    assert at_best_rate.result["seen, right of 20"] == 11

# %% [markdown] tags=["next"]
# Next: [GPT](13_gpt.ipynb).

# %% [markdown]
# ## References
#
# - Glorot, X. and Bengio, Y. (2010).
#   [Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html).
#   AISTATS.
# - Kak, A. (2025).
#   [Deep learning lectures](https://engineering.purdue.edu/DeepLearn/).
#   Purdue University.
#   The transformer lecture.
# - Liu, L. et al. (2020a).
#   [On the variance of the adaptive learning rate and beyond](https://arxiv.org/abs/1908.03265).
#   ICLR.
#   RAdam.
# - Liu, L. et al. (2020b).
#   [Understanding the difficulty of training transformers](https://arxiv.org/abs/2004.08249).
#   EMNLP.
# - Loshchilov, I. and Hutter, F. (2019).
#   [Decoupled weight decay regularization](https://arxiv.org/abs/1711.05101).
#   ICLR.
# - Micikevicius, P. et al. (2018).
#   [Mixed precision training](https://arxiv.org/abs/1710.03740).
#   ICLR.
# - Müller, R., Kornblith, S. and Hinton, G. (2019).
#   [When does label smoothing help?](https://arxiv.org/abs/1906.02629).
#   NeurIPS.
# - Radford, A., Narasimhan, K., Salimans, T. and Sutskever, I. (2018).
#   [Improving language understanding by generative pre-training](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf).
#   OpenAI.
# - Radford, A. et al. (2019).
#   [Language models are unsupervised multitask learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf).
#   OpenAI.
# - Szegedy, C. et al. (2016).
#   [Rethinking the Inception architecture for computer vision](https://arxiv.org/abs/1512.00567).
#   CVPR.
#   Section 7.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 5.4: label smoothing.
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745).
#   ICML.
