# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention in a diffusion model: mirrors, fewer steps, guidance and DiT
#
# Here is what a first reader of [Attention in a diffusion model](17_diffusion.ipynb) may skip.
# It asks when a pixel needs *another pixel*, whether we need two hundred steps, how a network is made to follow its caption more closely, and what became of the U-Net in the generators of today.
#
# The smaller networks of this page draw a single garment of $14 \times 14$ pixels for its class, or garments of $8 \times 8$, so that many runs can be compared.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.diffusion import copies, guidance
from course_utils.lessons.diffusion.training import clothes, diffusion

cu.seed_everything(0)

# %% [markdown]
# ## Noise on paper
#
# ### Exercise 1 · Noise on paper
#
# *predict · 9 minutes*
#
# A pixel has $x_0 = 0.8$, and we take two steps with $\beta = 0.75$. (a) What is its mean after the first step? (b) And after the second? (c) What is its variance after the second? (d) What is $\bar\alpha_2$? (e) Another pixel is $x_t = 1.0$ at a step with $\bar\alpha_t = 0.25$, and a network says that the noise in it is $\varepsilon = 1.617$.
# Which $x_0$ does that mean?


# %% tags=["exercise", "predict"]
def noised_on_paper():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [0.1, 0.2, 0.3, 0.4, 0.5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.noised_on_paper(noised_on_paper)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def noised_on_paper_solution():
    """0.5 · 0.8; half of that; 0.25 · 0.75 + 0.75; 0.25²; (1 − 0.866 · 1.617) / 0.5."""
    return [0.4, 0.2, 0.9375, 0.0625, -0.8]


cu.checks.noised_on_paper(noised_on_paper_solution)

# %% [markdown]
# ## Where attention between pixels helps: the mirror task
#
# In the chapter a pixel needed the words.
# Here is a case in which it has to ask another pixel that is far away.
# A small garment is clean on the left, and on the right the same garment, mirrored, is hidden in noise, with 16 black columns between them.
# All that the network needs to know is on the left, but its convolutions reach only 15 columns.
#
# Before we compare, we want two bounds.
# A network that gets the noisy garment **alone** shows how far we come without looking left.
# And a network that gets the clean garment **aligned**, pixel on pixel, shows what is possible at best.
# In the picture below 0 is the loss of the first network, and 1 is the loss of the second.
# Between them are three networks that see the whole picture, one with group norms only, one with a third level whose convolutions *do* reach across, and one with attention.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "After 400 steps the network with attention and the one with three levels are about equal. Which is ahead after 1,200?",
    ["attention", "neither", "three levels"],
    answer="attention",
    wrong={
        "neither": "What does each of them still have to learn? For attention the mirror image is a single look away, once it is found.",
        "three levels": "Their convolutions do reach across, through a level of 2 × 8 pixels. How much of a garment fits through there?",
    },
    why="It's ahead in each of the three seeds, although it finds the mirror image later in one training than in another.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("diffusion", "copying")
copied = pd.DataFrame(run.config | run.result for run in runs)
bounds = copied.groupby(["kind", "steps"])["loss"].mean()
curves = {"both": ("key", "attention"), "deep": ("value", "three levels"), "norm": ("line", "group norm only")}  # fmt: skip
reached = {}
fig, ax = cu.subplots(
    width=6.4, height=2.9,
    alt="Share of the way from alone to aligned after 400 and 1,200 steps, three seeds each. After 400 steps all are between a tenth and two fifths. "
    "After 1,200 attention has three quarters in two seeds and two fifths in the third, three levels have a third, group norm a fifth.",
)  # fmt: skip
for kind, (color, label) in curves.items():
    for seed in range(3):
        of_seed = copied[(copied["kind"] == kind) & (copied["seed"] == seed)].set_index("steps")
        reached[kind, seed] = [
            (bounds["alone", n] - of_seed["loss"][n]) / (bounds["alone", n] - bounds["aligned", n])
            for n in (400, 1200)
        ]
        ax.plot((400, 1200), reached[kind, seed], "o-", color=cu.COLORS[color],
                label=label if seed == 0 else None)  # fmt: skip
ax.set(xlabel="Steps of training", ylabel="From alone to aligned", xticks=(400, 1200), ylim=(0, 1))
ax.legend()
fig

# %% [markdown]
# Attention pulls ahead once it has found where to look.
# In two of three runs it has found the mirror image by step 1,200, and in the third it is still on its way.
# All networks were trained at one learning rate, and at half and twice this rate the one with three levels came out the same, in the one seed that we tried.
#
# To see what each network has found, here are four garments as the networks draw them after 400 steps from nothing but the clean one on the left.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
made = {run.config["kind"]: torch.tensor(run.examples[0]["drawn"]) for run in runs if run.examples}
clean, _ = clothes("test", 8)
rows = {"clean": clean[:4].flatten(1), "alone": made["alone"], "group norm": made["norm"],
        "attention": made["both"], "aligned": made["aligned"]}  # fmt: skip
cu.show_images(
    torch.stack([drawn.view(4, 1, 8, 8) for drawn in rows.values()]).transpose(0, 1).flatten(0, 1),
    titles=[*rows, *[""] * 15], columns=5, width=6.0,
    alt="Four garments in rows. From left to right: the clean one; another garment, drawn by the network alone; one of the same kind with group norm; "
    "a rough copy with attention; an exact copy when aligned.",
)  # fmt: skip

# %% [markdown]
# Group norm can say what kind of garment it is, because its mean and variance are taken over the whole picture.
# Attention makes a rough copy already.
# To see where it looks, take one coarse pixel of the right garment, framed below, in the stored network with attention.

# %% tags=["nbval-ignore-output"]
query_column = 13  # try 12 … 15
copier = cu.UNet(**cu.load_model("copier_unet").config)
copier.load_state_dict(cu.load_model("copier_unet").state)
looks = copies.looks(copier)
for name, weights in looks.items():
    garment_share, twin_share = copies.on_left(weights)
    print(f"{name}: on the left {garment_share:.2f}, on its twin {twin_share:.3f}")
maps = cu.show_heatmaps(
    torch.stack([w[1, query_column] for w in looks.values()]).unflatten(0, (2, 2)),
    titles=list(looks), xlabel="Column", ylabel="Row", vmax=0.3, width=8.4, height=3.0,
    alt="Four maps of 4 by 16 coarse pixels, for a framed pixel; its twin is framed.",
)  # fmt: skip
copies.framed(maps, query_column)

# %% [markdown]
# In *down, head 1* the pixel looks at its mirror image, eleven columns away.
# An even spread would put 1/64 there, and over all pixels of the right garment it is a third.
#
# ## Added vectors against cross-attention
#
# With a single word cross-attention is one added vector.
# With two words we could simply add two vectors, one for each word and its position.
# We tried this with pairs of $8 \times 8$ pixels and five ways to give the network its caption, each trained for 300 steps at one learning rate.
# The dots show how many drawn garments are nearest to the mean picture of their word, which is a weak classifier: it recognizes only two in three *real* garments.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
told = pd.DataFrame(run.config | run.result for run in cu.stored_runs("diffusion", "captions"))
fig, ax = cu.subplots(
    width=7.2, height=2.2,
    alt="Accuracy of the garments, three seeds each. Without a caption a tenth; both words added, a quarter; with their places added, a third, "
    "with empty tokens in addition no more; with cross-attention almost two fifths.",
)  # fmt: skip
for row, kind in enumerate(copies.CAPTIONS):
    shares = told[told["kind"] == kind]["named"]
    ax.plot(shares, [row] * len(shares), "o", color=cu.COLORS["key" if kind == "cross" else "line"])
ax.set_yticks(range(len(copies.CAPTIONS)), copies.CAPTIONS.values())
ax.set(xlabel="Named right", xlim=(0, 0.5), ylim=(4.5, -0.5))
ax.xaxis.set_major_formatter("{x:.0%}")
fig

# %% [markdown]
# Most of the gain comes from the words themselves, and cross-attention adds a little more in each seed.
# The gain isn't just its parameters, since cross-attention to *empty* tokens brings nothing.
# For captions of a fixed length, then, added vectors are a strong baseline, and cross-attention comes into its own where a sentence may have any number of words.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After 1,200 steps attention is ahead of group norm and of three levels in each seed."
):
    for seed in range(3):
        ends = {kind: reached[kind, seed][1] for kind in curves}
        assert ends["both"] > max(ends["deep"], ends["norm"])

with cu.guard("Cross-attention draws the most garments as named, in each seed."):
    shares = told.pivot(index="seed", columns="kind", values="named")
    assert (shares["cross"] > shares.drop(columns="cross").max(axis=1)).all()

# %% [markdown]
# ## Fewer steps: DDIM
#
# The sampler of the chapter goes from level $a = \bar\alpha_t$ to $b = \bar\alpha_s$, and nothing says that $s = t - 1$.
# The fresh noise is a choice as well. [Song, Meng and Ermon (2021)](https://arxiv.org/abs/2010.02502) take
#
# $$\mathbf x_s = \sqrt b\;\hat{\mathbf x}_0 + \sqrt{1 - b - \eta^2\sigma^2}\;\hat{\boldsymbol\varepsilon} + \eta\,\sigma\,\mathbf z .$$
#
# With $\eta = 1$ this is DDPM.
# With $\eta = 0$, called **DDIM**, there is no fresh noise at all, and the first noise decides the whole picture.
# The picture shows ten noises that DDIM turns into garments in five, ten, twenty and fifty steps.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ways = [guidance.draw_garments(1, num_steps=n, eta=0.0, scale=1.0, seed=3) for n in (5, 10, 20, 50)]
cu.show_images(
    torch.cat(ways), columns=10, width=8.4,
    titles=[f"{n} steps" if i == 0 else "" for n in (5, 10, 20, 50) for i in range(10)],
    alt="Four rows of ten garments drawn by DDIM from the same noise. Each column shows about the same garment.",
)  # fmt: skip

# %% [markdown]
# Each column stays nearly the same garment, because nothing is drawn on the way.
# So five steps already show which garment fifty steps will draw.
#
# ## Guidance
#
# Our network was trained with one label in ten withheld, so it can answer twice, with the class, $\boldsymbol\varepsilon_c$, and without, $\boldsymbol\varepsilon_\varnothing$.
# To make it follow its class more closely, **classifier-free guidance** ([Ho and Salimans, 2022](https://arxiv.org/abs/2207.12598)) goes on in the direction of the difference:
#
# $$\boldsymbol\varepsilon = \boldsymbol\varepsilon_\varnothing + w\,(\boldsymbol\varepsilon_c - \boldsymbol\varepsilon_\varnothing).$$
#
# With $w = 0$ the class is ignored, $w = 1$ is the network itself, and a larger $w$ exaggerates what the class changes.
# The first screen of the chapter was drawn with $w = 3$, and the paper's $w$ is ours minus 1.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "With w = 1 two in three drawn garments are nearest to the mean of their class, which is also the share of real garments. How many are with w = 4?",
    ["fewer", "as many", "more"],
    answer="more",
    wrong={
        "fewer": "Guidance follows the class more closely. Does a garment then move away from the mean of its class?",
        "as many": "That would be right if the class changed nothing more. What does a larger w do to the difference?",
    },
    why="The garments move toward what is typical of their class. Is that better? The spread says what it costs.",
)


# %%
def guided(network, scale):
    """The network, following its class more closely than it learned to."""

    def guess(x, t, labels):
        told, untold = network(x, t, labels), network(x, t, torch.full_like(labels, 10))
        return untold + scale * (told - untold)

    return guess


scale = 2.0  # try 0.0 … 6.0
painter = guidance.painter()
images, labels = clothes("test", 14)
some = (images[:4], torch.tensor([40, 90, 140, 190]), labels[:4])
cu.equal(guided(painter, scale), guidance.guided(painter, scale), *some)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
shown = torch.arange(10).repeat(2)
scales = (0.0, 1.0, 2.0, 4.0)
drawn = [
    diffusion().sample(guidance.guided(painter, w), (20, 1, 14, 14), labels=shown, num_steps=20, seed=1)
    for w in scales
]  # fmt: skip
cu.show_images(
    torch.cat([pictures[:10] for pictures in drawn]), columns=10, width=8.4,
    titles=[f"w = {w:.0f}" if i == 0 else "" for w in scales for i in range(10)],
    alt="Four rows of ten garments, one of each class, with guidance 0, 1, 2 and 4. In the first row the garments have "
    "nothing to do with their column; below they are of its class, and become brighter and more alike.",
)  # fmt: skip

# %% [markdown]
# In the table *named* is the share of garments that are nearest to the mean of their class, and **spread** says how much the garments of one class differ.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sampled = pd.DataFrame(run.config | run.result for run in cu.stored_runs("diffusion", "scales"))
by_scale = sampled.groupby("scale")[["named", "spread"]]
means = by_scale.mean()
means.loc["real"] = guidance.class_scores(images, labels)
means.round(2)

# %% [markdown]
# Guidance draws what is typical of a class, again and again, and pays with the spread.
# That is how drawn garments can be named right more often than real ones, so a higher score isn't a better picture.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Guidance raises the share named right and lowers the spread, in three seeds of the noise."
):
    ends = by_scale.agg(["min", "max"])
    assert ends.loc[2.0, ("named", "min")] > ends.loc[1.0, ("named", "max")]
    assert ends.loc[4.0, ("spread", "max")] < ends.loc[1.0, ("spread", "min")]

# %% [markdown]
# ## Flow matching on one screen
#
# Many newer generators do the same thing with less algebra.
# They go from picture to noise on a straight line, and the network learns the **velocity** on it ([Lipman et al., 2023](https://arxiv.org/abs/2210.02747); [Liu, Gong and Liu, 2023](https://arxiv.org/abs/2209.03003); in both papers time runs the other way, from noise to picture):
#
# $$\mathbf x_u = (1 - u)\,\mathbf x_0 + u\,\boldsymbol\varepsilon, \qquad \mathbf v = \frac{\mathrm d\mathbf x_u}{\mathrm du} = \boldsymbol\varepsilon - \mathbf x_0, \qquad \mathrm{loss} = \|\mathbf v - \mathrm{network}(\mathbf x_u, u)\|^2 .$$
#
# To draw, we start from noise at $u = 1$ and walk against the velocity down to $u = 0$, as in any differential equation.
# We try it with the pixel of the chapter, which is $+1$ or $-1$.
# Its best guess is again a hyperbolic tangent, $\hat x_0 = \tanh\big((1 - u)\, x_u / u^2\big)$, and the velocity follows from it.

# %%
steps = 10  # try 2 … 100
x = torch.randn(2000)
for u in torch.linspace(1, 1 / steps, steps):
    guess = torch.tanh((1 - u) * x / u**2)
    velocity = (x - guess) / u  # since x = (1 − u) · guess + u · noise
    x = x - velocity / steps
near = ((x.abs() - 1).abs() < 0.05).float().mean()
print(
    f"after {steps} steps {near:.0%} of the pixels are at +1 or −1, {(x > 0).float().mean():.0%} at +1"
)

# %% [markdown]
# All pixels arrive, without any fresh noise and without a schedule.
# The network, its attention and its guidance stay as they are, and only the target of the training and the step of the sampler change.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Nearly all pixels arrive at +1 or −1.", given=steps == 10):
    assert near > 0.95 and 0.4 < (x > 0).float().mean() < 0.6

# %% [markdown]
# ## Text, latents and transformers
#
# The large generators are made of the chapter's parts, with five changes:
#
# | | our chapter | later |
# |---|---|---|
# | the caption | two words | a sentence: a text encoder's vectors are the tokens of cross-attention ([Rombach et al., 2022](https://arxiv.org/abs/2112.10752)) |
# | where the noise is | in the pixels, folded 2 × 2 | in a **latent**: an autoencoder first makes a picture smaller, often 8 times on each side (the same paper) |
# | the network | a U-Net with attention on its coarse level | **DiT** ([Peebles and Xie, 2023](https://arxiv.org/abs/2212.09748)): patches of the latent are tokens of a transformer, as in [Vision transformers](15_vision_transformers.ipynb) |
# | how the step enters | added between two convolutions | as scale and shift of each layer norm, and as a factor for each residual (**adaLN-Zero**, the same paper) |
# | how pixels and words meet | pixels ask words, by cross-attention | patches and words are the tokens of *one* self-attention, each kind with projections of its own (**MM-DiT**, [Esser et al., 2024](https://arxiv.org/abs/2403.03206), in Stable Diffusion 3) |
#
# The block of DiT is the Transformer's, with norms before the sublayers.
# Step and class give a vector $\mathbf c$, and one linear layer makes six vectors of it, a shift, a scale and a factor for each of the two sublayers.
# This layer starts at zero, so a new block changes nothing.


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

# %% [markdown]
# With random numbers instead of the zeros, the same patches come out differently for two conditions.
#
# The latent saves attention.
# In a picture of $512 \times 512$ one map of attention between all pixels would have 69 billion weights.
# The latent has $64 \times 64$ pixels, and with patches of $2 \times 2$ they become 1,024 tokens, so a map has a million.
# That's why a transformer can do without the coarse level of a U-Net.
#
# Back to the chapter: [Attention in a diffusion model](17_diffusion.ipynb).

# %% [markdown]
# ## References
#
# - Esser, P. et al. (2024).
#   [Scaling rectified flow transformers for high-resolution image synthesis](https://arxiv.org/abs/2403.03206).
#   ICML.
# - Ho, J. and Salimans, T. (2022).
#   [Classifier-free diffusion guidance](https://arxiv.org/abs/2207.12598).
#   Equation 6.
# - Lipman, Y. et al. (2023).
#   [Flow matching for generative modeling](https://arxiv.org/abs/2210.02747).
#   ICLR.
# - Liu, X., Gong, C. and Liu, Q. (2023).
#   [Flow straight and fast: Learning to generate and transfer data with rectified flow](https://arxiv.org/abs/2209.03003).
#   ICLR.
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
