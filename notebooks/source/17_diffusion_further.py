# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention in a diffusion model: fewer steps, guidance and DiT
#
# What a first reader of [Attention in a diffusion model](17_diffusion.ipynb) may skip: do pictures need 200 steps?
# How is a network made to follow its class more closely?
# And what became of the U-Net in the generators of today?
# The network is the chapter's, stored after 1,500 steps.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.diffusion import sampling
from course_utils.lessons.diffusion.sampling import clothes, diffusion

cu.seed_everything(0)

# %% [markdown]
# ## Fewer steps
#
# The sampler of the chapter goes from level $a = \bar\alpha_t$ to $b = \bar\alpha_s$, and nothing says that $s = t - 1$.
# With $\sigma$ there is a second freedom: [Song, Meng and Ermon (2021)](https://arxiv.org/abs/2010.02502) take
#
# $$\mathbf x_s = \sqrt b\;\hat{\mathbf x}_0 + \sqrt{1 - b - \eta^2\sigma^2}\;\hat{\boldsymbol\varepsilon} + \eta\,\sigma\,\mathbf z .$$
#
# With $\eta = 1$ this is DDPM.
# With $\eta = 0$, **DDIM**, no fresh noise is added, and the first noise decides the whole picture.
# Both can take few, large steps.
# Two things differ between "DDPM with 200 steps" and "DDIM with 20", and so we compare both at *equal* steps: 150 garments each, with three seeds of the noise.
# Two numbers: the share that is nearest to the mean of its class, in percent, and the **spread**, the standard deviation of a pixel among garments of one class.
# The first alone would praise a network that draws class means.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = pd.DataFrame(run.config | run.result for run in cu.stored_runs("diffusion", "sampled"))
plain = runs[runs["scale"] == 1]
plain = plain.assign(sampler=plain["eta"].map({1.0: "DDPM", 0.0: "DDIM"}))
images, labels = clothes("test", 14)
real = sampling.judged(images, labels)
print(f"real, held out: named {real['named']:.2f}, spread {real['spread']:.2f}")
by_steps = plain.groupby(["sampler", "num_steps"])[["named", "spread"]].agg(["min", "mean", "max"])
by_steps.round(2)

# %% [markdown]
# Few steps are enough here.
# With 20 steps DDPM's garments are named right as often as real ones, 0.67, and spread a little less, 0.30 against 0.34; 50 steps bring nothing more.
# At equal steps DDIM's garments are named right less often (0.45 with 20 steps) and spread wider than real ones, at all four numbers of steps and with each seed.
# Song et al. report good pictures from DDIM in few steps, with networks trained for far longer.
#
# Is there a dull reason?
# At step 200 the guess is an error divided by 0.0002, and cut.
# DDPM adds fresh noise afterwards, DDIM does not.
# So here are both with 20 steps again, but the first noise is taken for that of step 190:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
later = pd.DataFrame(run.config | run.result for run in cu.stored_runs("diffusion", "begun_later"))
later = later.assign(sampler=later["eta"].map({1.0: "DDPM", 0.0: "DDIM"}))
from_190 = later.groupby("sampler")[["named", "spread"]].agg(["min", "mean", "max"])
from_190.round(2)

# %% [markdown]
# DDIM gains, in each seed: 0.52 are named right in place of 0.45, and the spread is 0.39 in place of 0.46; DDPM has 0.65 and 0.30.
# So a part of the gap came from the first steps.
# Why DDIM is still behind, the tables do not say.
#
# The same ten noises, DDIM with five, ten, twenty and fifty steps, below one another.
# Nothing is drawn on the way, and so they lead to nearly the same garments, even with five steps:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rows = {
    f"{n} steps": sampling.drawn(1, num_steps=n, eta=0.0, scale=1.0, seed=3)
    for n in (5, 10, 20, 50)
}
fig, axes = cu.subplots(
    4, 10, width=8.4, height=3.6,
    alt="Four rows of ten garments drawn by DDIM from the same noise. Each column shows about the same garment.",
)  # fmt: skip
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures[:, 0], strict=True):
        ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    line[0].set_ylabel(name, fontsize=8)
fig

# %% [markdown]
# ## Guidance
#
# The network was trained with one label in ten withheld, and so it can answer twice: told the class, $\boldsymbol\varepsilon_c$, and not told, $\boldsymbol\varepsilon_\varnothing$.
# **Classifier-free guidance** ([Ho and Salimans, 2022](https://arxiv.org/abs/2207.12598)) goes further in the direction of the difference:
#
# $$\boldsymbol\varepsilon = \boldsymbol\varepsilon_\varnothing + w\,(\boldsymbol\varepsilon_c - \boldsymbol\varepsilon_\varnothing).$$
#
# $w = 0$ takes no notice of the class, $w = 1$ is the network itself, and larger $w$ exaggerates what the class changes.
# (Conventions differ: the paper's $w$ is ours minus 1, so that its $w = 0$ is the network itself.)
# It is three lines, and costs a second pass.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of real garments 67 % are nearest to the mean of their class, of those drawn with w = 1 as many. And with w = 4?",
    ["about 50 %", "about 67 %", "about 87 %"],
    answer="about 87 %",
    wrong={
        "about 50 %": "Guidance follows the class more closely. Does a garment then move away from the mean of its class?",
        "about 67 %": "That would be so if the class changed nothing more. What does a larger w do to the difference?",
    },
    why="The garments move towards what is typical of their class. Is that better? The second number of the table says what it costs.",
)


# %%
def guided(network, scale):
    """The network, following its class more closely than it learned to."""

    def guess(x, t, labels):
        told, untold = network(x, t, labels), network(x, t, torch.full_like(labels, 10))
        return untold + scale * (told - untold)

    return guess


scale = 2.0  # try 0.0 … 6.0
painter = sampling.painter()
some = (images[:4], torch.tensor([40, 90, 140, 190]), labels[:4])
cu.equal(guided(painter, scale), sampling.guided(painter, scale), *some)
guidance_runs = runs[(runs["eta"] == 1) & (runs["num_steps"] == 20)]
scores = guidance_runs.groupby("scale")[["named", "spread"]]
by_scale = scores.agg(["min", "mean", "max"])
by_scale.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
shown = torch.arange(10).repeat(2)
fig, axes = cu.subplots(
    4, 20, width=8.8, height=2.3,
    alt="Four rows of twenty garments, two of each class, with guidance 0, 1, 2 and 4. In the first row the garments have "
    "nothing to do with their column; below they are of its class, and become brighter and more alike.",
)  # fmt: skip
for line, w in zip(axes, (0.0, 1.0, 2.0, 4.0), strict=True):
    drawn = diffusion().sample(
        sampling.guided(painter, w), (20, 1, 14, 14), labels=shown, num_steps=20, seed=1
    )
    for ax, picture in zip(line, drawn[:, 0], strict=True):
        ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    line[0].set_ylabel(f"w = {w:.0f}", fontsize=8)
fig

# %% [markdown]
# Without the class 0.08 are named right, as by chance.
# With $w = 1$ it is 0.67, with 2 and 4 it is 0.85 and 0.87, more than of real garments (0.67).
# The price stands beside it: the spread falls from 0.30 to 0.21, where real garments have 0.34.
# Guidance draws what is typical of a class, again and again.
# A higher score is not a better picture.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At equal steps DDPM's garments are named right more often than DDIM's; guidance raises the share and lowers the spread, in three seeds of the noise."
):
    ddpm, ddim = by_steps.loc["DDPM", "named"], by_steps.loc["DDIM", "named"]
    assert (ddpm["min"] > ddim["max"]).all()
    assert from_190.loc["DDIM", ("named", "mean")] > by_steps.loc[("DDIM", 20), ("named", "mean")]
    assert by_scale.loc[2.0, ("named", "min")] > by_scale.loc[1.0, ("named", "max")]
    assert by_scale.loc[4.0, ("spread", "max")] < by_scale.loc[1.0, ("spread", "min")]

# %% [markdown]
# ## Text, latents and transformers
#
# The chapter's parts are those of the large generators; what was changed, one by one:
#
# | | our chapter | later |
# |---|---|---|
# | what is told | one of ten classes, or two words | a sentence: a text encoder's vectors are the tokens of cross-attention ([Rombach et al., 2022](https://arxiv.org/abs/2112.10752)) |
# | where the noise is | in the pixels | in a **latent**: an autoencoder first makes a picture smaller, often 8 times on each side, so that attention has 64 times fewer places (the same paper) |
# | the network | a U-Net with attention on its coarse level | **DiT** ([Peebles and Xie, 2023](https://arxiv.org/abs/2212.09748)): patches of the latent are tokens of a transformer, as in [Vision transformers](15_vision_transformers.ipynb) |
# | how the condition enters | added between two convolutions | it makes scale and shift of each layer norm, and a factor for each residual (**adaLN-Zero**, the same) |
#
# **Text** is the chapter's caption grown long.
# An encoder, itself a transformer, turns the sentence into a vector for each token; each place of the latent attends to them by cross-attention.
# Guidance is the same formula: *not told* is a caption that was left out.
#
# The block of DiT is the transformer's, with norms before the sublayers.
# Step and class, $\mathbf c$, give six vectors by one linear layer: shift, scale and factor for each of the two sublayers.
# That layer begins at zero.


# %%
class DiTBlock(nn.Module):
    """(batch, patches, dim) and a condition (batch, dim) → as the first."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)  # no weights
        self.attention = cu.MultiHeadAttention(dim, num_heads)
        wide = nn.Linear(dim, 4 * dim)
        self.network = nn.Sequential(wide, nn.GELU(), nn.Linear(4 * dim, dim))
        self.six = nn.Linear(dim, 6 * dim)
        nn.init.zeros_(self.six.weight)
        nn.init.zeros_(self.six.bias)

    def forward(self, x, c):
        six = self.six(F.silu(c))[:, None].chunk(6, dim=-1)
        shift1, scale1, factor1, shift2, scale2, factor2 = six
        y = self.norm(x) * (1 + scale1) + shift1
        x = x + factor1 * self.attention(y, y, y)
        y = self.norm(x) * (1 + scale2) + shift2
        return x + factor2 * self.network(y)


# %%
dim = 64  # try 16 | 32 | 64
cu.seed_everything(0)
dit = DiTBlock(dim, num_heads=4)
tokens, told = torch.randn(1, 49, dim), torch.randn(2, dim)  # 7 · 7 patches of 2 × 2
print(f"new: changed by {(dit(tokens, told[:1]) - tokens).abs().max():.1f}")
nn.init.normal_(dit.six.weight, std=0.1)
two = dit(tokens.expand(2, -1, -1), told)
print(f"with other numbers, two conditions: apart by {(two[0] - two[1]).std():.1f}")
every = sum(p.numel() for p in dit.parameters())
of_six = sum(p.numel() for p in dit.six.parameters())
print(f"the six vectors take {of_six / every:.0%} of {every:,} parameters")

# %% [markdown]
# A new block changes nothing, as in the U-Net.
# With random numbers in place of the zeros, the same patches come out differently for two conditions.
# A third of the parameters serves the condition: $6 d^2$, beside $4 d^2$ of attention and $8 d^2$ of the network.
#
# How many weights has a map?
# A picture of $512 \times 512$ has a latent of $64 \times 64$; with patches of $2 \times 2$ these are 1,024 tokens:

# %%
side = 512  # try 256 | 512 | 1024
places = {
    "pixels": side**2,
    "latent": (side // 8) ** 2,
    "latent, patches of 2 × 2": (side // 16) ** 2,
}
pd.DataFrame(
    {"places": places.values(), "weights in a map": [n**2 for n in places.values()]},
    index=list(places),
).map("{:,}".format)

# %% [markdown]
# Attention between all pixels would need 69 billion weights for one map; between patches of the latent it is a million.
# So attention is affordable without a coarse level.
#
# Back to the chapter: [Attention in a diffusion model](17_diffusion.ipynb).

# %% [markdown]
# ## References
#
# - Ho, J. and Salimans, T. (2022).
#   [Classifier-free diffusion guidance](https://arxiv.org/abs/2207.12598).
#   Equation 6.
# - Peebles, W. and Xie, S. (2023).
#   [Scalable diffusion models with transformers](https://arxiv.org/abs/2212.09748).
#   ICCV.
#   Section 3.2.
# - Rombach, R. et al. (2022).
#   [High-resolution image synthesis with latent diffusion models](https://arxiv.org/abs/2112.10752).
#   CVPR.
#   Section 3.
# - Song, J., Meng, C. and Ermon, S. (2021).
#   [Denoising diffusion implicit models](https://arxiv.org/abs/2010.02502).
#   ICLR.
#   Equations 12 and 16.
