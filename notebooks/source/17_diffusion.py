# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention in a diffusion model
#
# **A network looks at noise and finds a pair of trousers in it, and next to them an ankle boot, because we asked for them.
# How do our words get into the picture?**
#
# Below, two garments appear step by step, and each pixel has the color of the word it attends to most.
# Press *trousers* to forbid the word, so that no pixel may attend to it at any step.
# Then allow the word again, go to step 171 or to step 114, and press it there.

# %% jupyter={"source_hidden": true}
import itertools

import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.diffusion import exercises, forbidden_words, pictures, training, words
from course_utils.models import diffusion as package
from course_utils.models.noise import cosine_schedule

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.words()

# %% [markdown]
# The same press gave a different picture each time, so it matters *when* you press.
# This chapter builds the network, and at the end we measure when it needs a word.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - turn a picture into noise, and write the step that leads back to a picture;
# - let pixels ask words by cross-attention, and say when this is more than an added vector;
# - forbid a word in the middle of a drawing, and read from the result what the word was for.

# %% [markdown] tags=["needs"]
# You will need [Attention between pixels](16_attention_between_pixels.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("attention_between_pixels", "multi_head_attention")

# %% [markdown]
# ## Into the noise: forward diffusion
#
# A **[denoising diffusion](C_glossary.ipynb#denoising-diffusion)** model draws by undoing noise ([Ho, Jain and Abbeel, 2020](https://arxiv.org/abs/2006.11239)).
# So first we make noise. In each step $t$ we shrink the picture $\mathbf x_{t-1}$ a little and add a little noise,
#
# $$\mathbf x_t = \sqrt{1 - \beta_t}\;\mathbf x_{t-1} + \sqrt{\beta_t}\;\boldsymbol\varepsilon_t, \qquad \boldsymbol\varepsilon_t \sim \mathcal N(0, \mathbf I).$$
#
# We shrink the picture so that a variance of 1 stays 1 while the noise takes over.
# As an example, one pixel begins as $x_0 = 0.8$ and takes two steps with $\beta = 0.36$, each of which multiplies by $\sqrt{1 - \beta} = 0.8$:
#
# | after | mean | variance |
# |---|---|---|
# | step 1 | $0.8 \cdot 0.8 = 0.64$ | $0.36$ |
# | step 2 | $0.8 \cdot 0.64 = 0.512$ | $0.64 \cdot 0.36 + 0.36 = 0.5904 = 1 - 0.64^2$ |
#
# A single step that multiplies by 0.64 would have given the same mean and the same variance.
# So two small steps are **one** larger step, and so are all of them together.
# We only need the product $\bar\alpha_t = \prod_{s \le t} (1 - \beta_s)$, which is the share of the variance that the picture still has, if its own variance was 1:
#
# $$\mathbf x_t = \sqrt{\bar\alpha_t}\;\mathbf x_0 + \sqrt{1 - \bar\alpha_t}\;\boldsymbol\varepsilon .$$
#
# We take 200 steps and let $\bar\alpha_t$ fall like a squared cosine, slowly at both ends ([Nichol and Dhariwal, 2021](https://arxiv.org/abs/2102.09672)).
# The pictures follow a boot along the way.
# At which step does your eye lose it?

# %%
T = 200
alpha_bar = cosine_schedule(T)  # from 1 at step 0 to almost 0 at step 200
images, labels = training.clothes("test", 28)
garment = 9  # try 0 … 9
boot = images[labels == garment][:1]
shown = torch.tensor([0, 40, 80, 120, 160, 200])
a = alpha_bar[shown].view(6, 1, 1, 1)
noised = a.sqrt() * boot + (1 - a).sqrt() * torch.randn(6, 1, 28, 28)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    2, 6, width=8.0, height=1.9, height_ratios=(8, 1),
    alt="A garment at steps 0, 40, 80, 120, 160 and 200, noisier from picture to picture. A bar below each shows "
    "the product ᾱ: one, nine tenths, two thirds, a third, a tenth and nothing.",
)  # fmt: skip
for column, (t, picture) in enumerate(zip(shown.tolist(), noised, strict=True)):
    top, bar = axes[:, column]
    top.imshow(picture[0].clamp(-1, 1), cmap="gray", vmin=-1, vmax=1)
    top.set_title(f"step {t}", fontsize=9)
    share = alpha_bar[t].item()
    bar.barh(0, share, color=cu.COLORS["key"])
    bar.barh(0, 1 - share, left=share, color=cu.COLORS["rule"])
    bar.set(xlim=(0, 1))
    for ax in (top, bar):
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
axes[1, 0].set_ylabel("ᾱ", rotation=0, ha="right", va="center", fontsize=8)
fig

# %% [markdown]
# The blue bar is $\bar\alpha_t$, and when it is down to a tenth, we can hardly find the boot.
#
# ### Exercise 1 · Find the bug
#
# *bug · 6 minutes*
#
# Each picture of a batch gets a step $t$ of its own, and a colleague adds the noise with the function below.
# We give it 28 pictures with steps from 0 to 189 and show every fourth, so they should become noisier from left to right.
# What happens instead, and why is there no error with 28 pictures?
# Write `fixed_noisy`.


# %%
def buggy_noisy(x, t, noise, alpha_bar):
    """Each picture of a batch with the noise of its own step."""
    a = alpha_bar[t]
    return a.sqrt() * x + (1 - a).sqrt() * noise


evenly = torch.arange(28) * 7
wrong = buggy_noisy(images[:28], evenly, torch.randn(28, 1, 28, 28), alpha_bar)[::4]

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_images(
    wrong.clamp(-1, 1), columns=7, width=7.0, titles=[f"step {t}" for t in evenly[::4]],
    alt="Seven garments: in each the left columns are clean, the right ones noise.",
)  # fmt: skip


# %% tags=["exercise", "bug"]
def fixed_noisy(x, t, noise, alpha_bar):
    """x: (batch, channels, height, width), t: (batch,); each picture has its own step."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_noisy(fixed_noisy)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_noisy_solution(x, t, noise, alpha_bar):
    """Shapes are aligned from the right: (28,) fell on the columns, and 28 columns took it."""
    a = alpha_bar[t][:, None, None, None]
    return a.sqrt() * x + (1 - a).sqrt() * noise


cu.checks.fixed_noisy(fixed_noisy_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("diffusion", "share_left")

# %% [markdown]
# ## Back, one guess at a time: the sampler
#
# To get back, we train a network to say which noise is in a picture, by ordinary regression with a squared error:
#
# $$\hat{\boldsymbol\varepsilon} = \mathrm{network}(\mathbf x_t, t), \qquad \mathrm{loss} = \|\boldsymbol\varepsilon - \hat{\boldsymbol\varepsilon}\|^2 \text{ per pixel}, \qquad \mathbf x_0,\ t,\ \boldsymbol\varepsilon \text{ drawn at random.}$$
#
# If you know the noise, you know the picture: $\hat{\mathbf x}_0 = (\mathbf x_t - \sqrt{1 - \bar\alpha_t}\;\hat{\boldsymbol\varepsilon}) / \sqrt{\bar\alpha_t}$.
# But what *is* the best guess, if many pictures could be hidden in the noise?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "At step 160 the picture is multiplied by 0.3 and buried in noise. The network knows that the caption says ankle boot. What does its best guess look like?",
    ["noise", "one particular boot", "a blurred boot", "a gray square"],
    answer="a blurred boot",
    wrong={
        "noise": "It guesses the clean picture. Would a mean of many boots look like noise?",
        "one particular boot": "Which one would you take? Any single choice is far from most boots.",
        "a gray square": "That would be right if boots had no pixels in common. Where is every boot bright?",
    },
    why="The mean of all boots that could be in this noise has the smallest squared error, and it is blurred. Details come later, step by step.",
)

# %% [markdown]
# With a squared error the best guess is the **mean** of all pictures that could be there, as in [Kernel regression](02_kernel_regression.ipynb).
# So we don't go all the way in one guess.
# The **DDPM sampler** of Ho et al. takes a small step, from level $a = \bar\alpha_t$ to the next level $b = \bar\alpha_s$ with less noise, and guesses again.
# The drawing shows the training and, below it, one step of the sampler.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x0   xt   net  eps  loss .
    .    true .    .    .    .
    .    now  net2 eps2 cut  xs
    .    .    .    .    old  z
    """,
    nodes={
        "x0": cu.Box("picture x_0"),
        "true": cu.Box("noise ε"),
        "xt": cu.Box("x_t"),
        "net": cu.Box("network", shape="step t, words", color="wash"),
        "eps": cu.Box("guessed noise"),
        "loss": cu.Box("loss: mean squared error"),
        "now": cu.Box("x_t"),
        "net2": cu.Box("network", shape="step t, words", color="wash"),
        "eps2": cu.Box("guessed noise"),
        "cut": cu.Box("guess of x_0, cut"),
        "old": cu.Box("noise, computed anew"),
        "xs": cu.Box("x_s"),
        "z": cu.Box("fresh noise z"),
    },
    groups={"training": "x0 xt net eps loss true", "one step of the sampler": "now net2 eps2 cut xs old z"},
    arrows=["x0 -> xt -> net -> eps -> loss", "true -> xt", "true -> loss",
            "now -> net2 -> eps2 -> cut -> xs", "cut -> old -> xs", "z -> xs"],
    alt="Training: a picture and noise make the noisy picture; from it the network estimates the noise, and the loss "
    "compares both. Sampling: the noisy picture passes the network; its estimate gives a guess of the picture, which is cut; that "
    "guess, the noise computed anew and fresh noise make the picture of the next step.",
    gap=(28, 44),
    flow="right",
)  # fmt: skip

# %% [markdown]
# The new picture is a mixture of the guess, some of the old noise, and some fresh noise $\mathbf z$:
#
# $$\mathbf x_s = \sqrt b\;\hat{\mathbf x}_0 + \sqrt{1 - b - \sigma^2}\;\hat{\boldsymbol\varepsilon} + \sigma\,\mathbf z, \qquad \sigma^2 = \frac{1 - b}{1 - a}\Big(1 - \frac ab\Big).$$
#
# The number $\sigma^2$ is the variance that $\mathbf x_s$ has if we know both ends, $\mathbf x_0$ and $\mathbf x_t$.
# Given $\mathbf x_0$, the variance of $\mathbf x_s$ is $1 - b$.
# Given $\mathbf x_s$, the noisier $\mathbf x_t$ is $\sqrt{a/b}\,\mathbf x_s$ with noise of variance $1 - a/b$.
# When we multiply two normal densities, their inverse variances add up.
# As a density of $\mathbf x_s$, the second one has the variance $(1 - a/b)\big/(a/b)$:
#
# $$\frac{1}{\sigma^2} = \frac{1}{1 - b} + \frac{a/b}{1 - a/b} = \frac{1 - a}{(1 - b)(1 - a/b)} .$$
#
# In the step that ends at $b = 1$, which is step 0, only the guess is left.
# No pixel can be brighter than white, so we cut the guess to $[-1, 1]$, and then compute the noise that belongs to the *cut* guess, $\hat{\boldsymbol\varepsilon} = (\mathbf x_t - \sqrt a\,\hat{\mathbf x}_0)/\sqrt{1 - a}$.
#
# ### Exercise 2 · A step back
#
# *build · 11 minutes*
#
# Write this step, with the cut.
# The levels `a` and `b` are tensors with one number, `noise` is the network's guess $\hat{\boldsymbol\varepsilon}$, and `fresh` is $\mathbf z$.


# %% tags=["exercise", "build"]
def my_step_back(x, noise, a, b, fresh):
    """Pictures at level a, the noise in them, new noise → pictures at level b."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_step_back(my_step_back)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_step_back_solution(x, noise, a, b, fresh):
    """Guess, cut, the noise that belongs to it, and three shares."""
    clean = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
    old = (x - a.sqrt() * clean) / (1 - a).sqrt()
    variance = (1 - b) / (1 - a) * (1 - a / b)
    kept = (1 - b - variance).clamp(min=0)  # rounding may take it below 0
    return b.sqrt() * clean + kept.sqrt() * old + variance.sqrt() * fresh


cu.checks.my_step_back(my_step_back_solution)

# %% [markdown]
# We can test the sampler where the best guess is known without any network, in a world whose pictures are a single pixel, $+1$ or $-1$ with equal chances.
# By Bayes' rule their mean is $\hat x_0 = \tanh\big(\sqrt{\bar\alpha_t}\, x_t / (1 - \bar\alpha_t)\big)$, so with $\bar\alpha_t = ½$ and $x_t = 1$ we guess $\tanh(1.414) = 0.89$, probably $+1$ but not certainly.
# Your step now leads two thousand such pixels back from noise, and the figure draws 24 of their paths, each in the color of the side where it ends.

# %%
step_back = cu.choose(my_step_back, exercises.step_back)
walks = [torch.randn(2000)]
for t in range(T, 0, -1):
    x, a = walks[-1], alpha_bar[t]
    guess = torch.tanh(a.sqrt() * x / (1 - a))
    noise = (x - a.sqrt() * guess) / (1 - a).sqrt()
    walks.append(step_back(x, noise, a, alpha_bar[t - 1], torch.randn(2000)))
pictures.draw_walks(torch.stack(walks))

# %% [markdown]
# Pure noise comes home to $+1$ or $-1$, about equally often.
# **The decision is made little by little.**
# A quarter of the way along, two in three paths are already on the side where they'll end, and halfway it's five in six.
# Chance would give one in two.
# When we forbid a word below, we'll find such a decision again.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "After a quarter of the way two thirds of the paths are on the side where they end, halfway five sixths."
):
    quarter, half = (((walks[i] > 0) == (walks[-1] > 0)).float().mean() for i in (T // 4, T // 2))
    assert 0.62 < quarter < 0.7 and 0.8 < half < 0.88

with cu.guard("Nearly all pixels end at +1 or −1, and about half of them at +1."):
    assert ((walks[-1].abs() - 1).abs() < 0.05).float().mean() > 0.95
    assert 0.4 < (walks[-1] > 0).float().mean() < 0.6

# %% [markdown]
# ## A U-Net that guesses the noise
#
# For real pictures there is no formula, so a network has to guess, and it has to see the fine detail as well as the whole garment.
# A **[U-Net](C_glossary.ipynb#u-net)** ([Ronneberger, Fischer and Brox, 2015](https://arxiv.org/abs/1505.04597)) shrinks the picture, so that distant pixels come close together, and enlarges it again.
# A **skip connection** carries the fine detail across.
#
# If you skipped [Attention between pixels](16_attention_between_pixels.ipynb), here is what you need.
# A 3 × 3 **[convolution](C_glossary.ipynb#convolution)** computes each pixel anew from the nine pixels around it, and a **[group norm](C_glossary.ipynb#group-norm)** rescales a group of channels by its mean and variance over the whole picture.
# `PixelAttention` is [multi-head attention](08_multi_head_attention.ipynb) in which each pixel is a token and its channels are the token's vector.
# To **fold** a picture means to turn four neighboring pixels into one pixel with four times as many channels, which is also called *space-to-depth*, and in PyTorch `pixel_unshuffle`.
# SiLU, $x\,\sigma(x)$, is a smooth relative of the ReLU.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .     eps   .
    x     out   t
    fold  u0    waves
    d0    cat   net
    d1    u1    words
    """,
    nodes={
        "x": cu.Box("noisy pair x_t", shape="(1, 28, 56)"),
        "fold": cu.Box("fold 2 × 2, add the column", shape="(5, 14, 28)"),
        "d0": cu.Box("residual block", shape="(32, 14, 28)", color="line"),
        "d1": cu.Box("halve, block, attention", shape="(64, 7, 14)", color="key"),
        "u1": cu.Box("block, attention", shape="(64, 7, 14)", color="key"),
        "cat": cu.Box("double, join channels", shape="(96, 14, 28)"),
        "u0": cu.Box("residual block", shape="(32, 14, 28)", color="line"),
        "out": cu.Box("norm, convolution, unfold"),
        "eps": cu.Box("guessed noise", shape="(1, 28, 56)"),
        "t": cu.Box("step t", shape="a number"),
        "waves": cu.Box("sin ωt, cos ωt", shape="(128,)"),
        "net": cu.Box("linear, SiLU, linear: c", shape="(128,), to all blocks", color="wash"),
        "words": cu.Box("two words", shape="(2, 32), to both attentions", color="value"),
    },
    arrows=["x -> fold -> d0 -> d1 -> u1 -> cat -> u0 -> out -> eps", "d0 -> cat",
            "t -> waves -> net", "words -> u1"],
    alt="A U. On the left, downwards, a noisy pair of garments is folded to 14 by 28 pixels with five channels, passes a residual "
    "block, is halved, and passes a block with attention at 7 by 14. On the right, upwards, it passes a second block with attention, is "
    "doubled, joined with what was kept at 14 by 28, passes a block, is unfolded, and becomes the predicted noise. Beside it the step becomes sines "
    "and cosines and passes a small network, whose result c enters all blocks; the two words are asked by both blocks with attention.",
    gap=(40, 28),
)  # fmt: skip

# %% [markdown]
# First we fold the picture, and a fifth channel says in which column a pixel lies.
# The attention to the words will need this channel.
# A residual block has two 3 × 3 convolutions, and between them a vector $c$ is added to all pixels alike.
# This vector is computed from the step $t$, which enters as sinusoids, like a position in [Positions](09_positions.ipynb).
# A **stage** is one such block, and on the coarse level it goes on with attention, first [among the pixels](16_attention_between_pixels.ipynb) and then to the words.


# %%
class Stage(nn.Module):
    """A residual block and, where it attends, attention to pixels and to words."""

    def __init__(self, inputs, outputs, attends=False):
        super().__init__()
        self.block = package.ResidualBlock(inputs, outputs, condition_dim=128)
        self.attention = cu.PixelAttention(outputs, 2) if attends else nn.Identity()
        self.cross = package.CrossAttention(outputs, 32, 2) if attends else None

    def forward(self, x, c, tokens):
        x = self.attention(self.block(x, c))
        return self.cross(x, tokens) if self.cross else x


# %%
class UNet(nn.Module):
    """(batch, 5, 14, 28), steps (batch,), tokens (batch, 2, 32) → noise; its fifth channel isn't used."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 128))
        self.entry = nn.Conv2d(5, 32, 3, padding=1)
        self.down = nn.ModuleList([Stage(32, 32), Stage(32, 64, attends=True)])
        self.up = nn.ModuleList([Stage(64, 64, attends=True), Stage(64 + 32, 32)])
        self.norm = nn.GroupNorm(8, 32)
        self.output = nn.Conv2d(32, 5, 3, padding=1)

    def forward(self, x, t, tokens):
        angles = t[:, None] * 10_000 ** (-torch.arange(64) / 64)
        c = F.silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=1)))
        fine = self.down[0](self.entry(x), c, tokens)
        coarse = self.down[1](F.avg_pool2d(fine, 2), c, tokens)
        wide = F.interpolate(self.up[0](coarse, c, tokens), scale_factor=2)
        x = self.up[1](torch.cat([wide, fine], dim=1), c, tokens)
        return self.output(F.silu(self.norm(x)))


# %% [markdown]
# The first screen was drawn by such a network, trained beforehand on pairs from 60,000 pictures.
# We load its weights into the class and compare.

# %%
painter, unet = words.painter(), UNet()
unet.load_state_dict(painter.network.state_dict())
x, steps, tokens = words.some_inputs(painter)
cu.equal(unet, painter.network, x, steps, tokens=tokens)

# %% [markdown]
# The network's loss was the one above with one change: an error has the weight $1/\bar\alpha_t$ (at most twenty), so errors at noisy steps count more.
# There the picture says little, and the words matter most.
# Now and then a word was withheld in the training, so the network has met missing words before we forbid one.
# Here are the first steps of a fresh network, with noise from your `fixed_noisy`, next to the curve of the long training.

# %%
steps = 50  # try 30 … 300
losses = words.first_steps(cu.choose(fixed_noisy, exercises.noisy), steps=steps)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
long = cu.stored_run("diffusion", "garments_for_words")
fig, ax = cu.subplots(
    width=6.4, height=2.4,
    alt="Loss over the steps, both axes in logarithms. The page's training falls steeply in its fifty steps. "
    "The stored training goes on falling over thousands of steps, ever more slowly.",
)  # fmt: skip
ax.plot(range(1, len(losses) + 1), losses, color=cu.COLORS["query"], label="this page")
ax.plot(*zip(*long.curves["loss"][1:], strict=True), color=cu.COLORS["key"], label="stored weights")
ax.set(xlabel="Step", ylabel="Weighted loss (per pixel)", xscale="log", yscale="log")
ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
ax.minorticks_off()
ax.legend()
fig

# %% [markdown]
# After the first steep steps the loss falls slowly.
# Here are ten random captions, none of them picked.
# A **classifier**, the transformer of [Vision transformers](15_vision_transformers.ipynb), has looked at each half.
# Where it disagrees with the caption, its own word for the half is in parentheses.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
some = words.random_captions(10, seed=1)
finished, _ = words.walk(painter, some, words.noises(10, seed=1))
verdicts = words.named(finished[-1])
cu.show_images(
    finished[-1], columns=5, width=8.6,
    titles=[words.verdict(*each) for each in zip(some, verdicts, strict=True)],
    alt="Ten drawn pairs of garments with their captions. Shoes, trousers and bags are recognized at once; where the classifier "
    "calls a half something else, its word is in parentheses.",
)  # fmt: skip

# %% [markdown]
# ## Words for pixels: cross-attention
#
# Our caption has two words, and the left half of the picture needs a different word from the right half.
# So we let each pixel *ask* the words. In **[cross-attention](C_glossary.ipynb#cross-attention)** the queries come from the pixels, and keys and values from the words.
# Stable Diffusion reads its text in this way ([Rombach et al., 2022](https://arxiv.org/abs/2112.10752)).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Suppose that the caption is a single word. Which pixels then get a vector that differs from their neighbors' vectors?",
    ["those on the garment", "those of the left half", "none"],
    answer="none",
    wrong={
        "those on the garment": "Each pixel does have its own query. What does a softmax make of a single score?",
        "those of the left half": "They may ask something different from the pixels on the right. But how many words can answer?",
    },
    why="With a single score the softmax is 1, so every pixel gets the word's value, whatever it asks.",
)

# %% [markdown]
# ### Exercise 3 · Attend to words
#
# *build · 8 minutes*
#
# Write *score, scale, normalize* and *mix* for several heads.
# `cu.split_heads(x, num_heads)` gives (batch, heads, n, head_dim), `cu.merge_heads` undoes it, and the block below does the projections.


# %% tags=["exercise", "build"]
def attend_to_words(queries, keys, values, num_heads):
    """Pixels ask: (batch, pixels, channels); words answer: twice (batch, words, channels)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.attend_to_words(attend_to_words)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def attend_to_words_solution(queries, keys, values, num_heads):
    """The softmax goes over the words."""
    q, k, v = (cu.split_heads(part, num_heads) for part in (queries, keys, values))
    scores = q @ k.mT  # score: (batch, heads, pixels, words)
    scores = scores / q.shape[-1] ** 0.5  # scale
    weights = scores.softmax(dim=-1)  # normalize
    return cu.merge_heads(weights @ v)  # mix, merge


cu.checks.attend_to_words(attend_to_words_solution)


# %%
attend = cu.choose(attend_to_words, exercises.attend_to_words)


class CrossAttention(nn.Module):
    """x + out(attention of the pixels to the words)."""

    def __init__(self, channels, token_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(8, channels)
        self.query_proj = nn.Linear(channels, channels)
        self.key_proj = nn.Linear(token_dim, channels)
        self.value_proj = nn.Linear(token_dim, channels)
        self.out_proj = nn.Linear(channels, channels)

    def forward(self, x, tokens):
        pixels = self.norm(x).flatten(2).transpose(1, 2)  # (batch, pixels, channels)
        k, v = self.key_proj(tokens), self.value_proj(tokens)
        mixed = self.out_proj(attend(self.query_proj(pixels), k, v, self.num_heads))
        return x + mixed.transpose(1, 2).view_as(x)


# %%
cross, stored = CrossAttention(64, 32, 2), painter.network.down[1].cross
cross.load_state_dict(stored.state_dict())
spots, tokens = torch.randn(1, 64, 7, 14), painter.tokens(torch.tensor([[1, 9]]))
for number in (1, 2):
    added = cross(spots, tokens[:, :number]) - spots
    print(f"words: {number}, between pixels it varies by {added.std(dim=(2, 3)).mean():.3f}")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The block is the one of the stored network."):
    assert torch.allclose(cross(spots, tokens), stored(spots, tokens), atol=1e-4)

# %% [markdown]
# So **cross-attention to one token is one added vector**, and only from two words on can it add different vectors to different pixels.
# In our network a token is the vector of a word plus the vector of its position in the caption, as in [Positions](09_positions.ipynb).
# And before a pixel can choose a word, it has to know whether it lies on the left or on the right.
# The simplest way is to give each pixel its column as a channel.

# %% [markdown]
# ## Forbid a word, and see: attention knockout
#
# The colors of the first screen show which word a pixel asks, but not whether it *needs* the word, and when.
# To find out we forbid the word, as we forbade [a patch](15_vision_transformers.ipynb) before, and see what comes out.
# In Python `forbid("cross", keys=0)` keeps every pixel from attending to the left word, and the softmax gives all the weight to the word that remains.
#
# The function below draws with your `my_step_back`, and it can forbid a word in any stretch of the way.
# To save time it visits only about every fifth step, which works because your step goes from any $a$ to any $b$.
# In each step it asks the network twice, with the words and without them, and triples the difference, $\hat{\boldsymbol\varepsilon}_{\text{none}} + 3\,(\hat{\boldsymbol\varepsilon}_{\text{words}} - \hat{\boldsymbol\varepsilon}_{\text{none}})$.
# This is **[guidance](17_diffusion_further.ipynb#Guidance)** ([Ho and Salimans, 2022](https://arxiv.org/abs/2207.12598)), and without it the garments are less often what the caption says.


# %%
@torch.no_grad()
def draw(captions, forbid, begin=200, end=0, seed=1):
    """Pairs of garments; word number `forbid` is forbidden from step `begin` to step `end`."""
    ids = torch.tensor([[words.NAMES.index(word) for word in caption] for caption in captions])
    noise = words.noises(len(ids), seed)
    x = noise[0]
    for (t, s), fresh in zip(itertools.pairwise(words.VISITED), noise[1:], strict=True):
        with cu.intervene(painter) as acts:
            if begin >= t > end:
                acts.forbid("cross", keys=forbid)
            predicted = words.guided_by_words(painter)(x, t.expand(len(x)), ids)
        x = step_back(x, predicted, alpha_bar[t], alpha_bar[s], fresh)
    return x


captions = [("trousers", "T-shirt"), ("coat", "trousers")]  # any of words.NAMES
forbid, steps = 0, (200, 171, 157, 114, 0)
forbidden_late = torch.stack([draw(captions, forbid, begin=step) for step in steps], dim=1)
allowed_late = torch.stack([draw(captions, forbid, end=step) for step in steps], dim=1)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
until = ["never allowed", *(f"until {step}" for step in steps[1:-1]), "always allowed"]
from_on = ["always allowed", *(f"from {step} on" for step in steps[1:-1]), "never allowed"]
rows = torch.stack([forbidden_late, allowed_late], dim=1).flatten(0, 2)
cu.show_images(
    rows, columns=5, width=8.6,
    titles=[f"{caption[forbid]}: {title}" for caption in captions for titles in (until, from_on) for title in titles],
    alt="Four rows of five drawings. In the first the word trousers is allowed until a step: never, and there are two T-shirts; until 171, until 157, until 114, and always. "
    "The later the word is forbidden, the more the left half looks like trousers. In the second row the word is allowed only from a step on, and the later it comes, the less "
    "it looks like trousers. The other two rows do the same for a coat beside trousers.",
)  # fmt: skip

# %% [markdown]
# In the first row we forbid *trousers*, earlier or later.
# If the word is forbidden from the start, two T-shirts appear, because *T-shirt* is the only word that is left to ask.
# The later we forbid *trousers*, the more of the trousers stays, because the network can see them in what is drawn so far.
# In the second row *trousers* is forbidden at first, and is allowed only later.
# The other two rows do the same with *coat*.
#
# Two captions are few, so we took 72 random captions, and the classifier named each half of their pictures.
# The figure shows how many halves match their word.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("diffusion", "forbidding", scale=words.SCALE)
late = cu.stored_runs("diffusion", "asking_late", scale=words.SCALE)
alone = cu.stored_runs("diffusion", "without_words")
fig, ax = cu.subplots(
    width=8.0, height=2.9,
    alt="Share of halves that become what their own word says, over the steps from 200 to 86, three lines each. If the word is allowed only until a step, the share rises: near "
    "zero at 200, a fifth at 171, a half at 157, and nearly nine tenths at 114. If it is allowed only from a step on, the share falls: nine tenths at 171, six tenths at 157, "
    "and a seventh at 114. The lines cross near 155. Dotted, if no other word is allowed instead: from 0.14 at 200 over 0.6 at 171 to 0.95 at 114, and from 0.9 at 171 to 0.4 at 114.",
)  # fmt: skip
forbidden_words.plot_window(ax, runs, late, alone)
fig

# %% [markdown]
# Remember that the steps count down from 200.
# A word that is allowed only until step 171 wins few halves, and one that is allowed only after step 171 wins nearly all.
# At step 114 it's nearly the other way around.
# There are two explanations: a word's work is lost when the word is forbidden, or the *other* word undoes this work.
# The dotted lines tell the explanations apart, because there the other word is forbidden, too.
# With the rival gone, a word that is allowed only until step 171 still wins in more than half of the cases, and a word that comes only at step 114 still helps.
# So **in this network the contest between two words is decided between steps 171 and 114**, and a word without a rival needs less time.
#
# The colors of the first screen show one of four heads.
# In this head the pixels ask their word from the first step to the last.
# After step 114 the colors still show where pixels look, but mostly no longer what they need.
# As a control we looked at the other half of each picture, whose word stays allowed.
# This half nearly always matches its word.
#
# Now it's your turn.
# Change `captions`, `forbid` and `steps` above: can you find a word that is still needed in the second half of the way?
#
# <details><summary>How sure is this?</summary>
#
# The chapter shows one network, trained once, for 6,400 steps at a learning rate of 0.008.
# We chose this rate in runs of 600 steps, with three seeds each.
# Their mean weighted loss was 0.196 at a rate of 0.003, 0.189 at 0.008, 0.188 at 0.02, and 0.204 at 0.05.
# The two best rates differ by less than two seeds do, so we took the smaller one.
# In the long training the validation loss fell from 0.141 at step 5,000 to 0.136 at the end.
# The classifier's accuracy is 92% on the halves of three hundred random captions.
# Without guidance it is 70%, and on real garments 84%, so guided drawings are more typical than real garments, except for shirts.
#
# In the figure of forbidden words each line is one draw of 24 captions, and it counts only halves that were right with both words allowed.
# About a fifth of the halves keep a word that is allowed only until step 171.
# From step 171 to step 114 the picture's share $\bar\alpha$ grows from 0.05 to 0.4.
# Our pictures have a variance of only a half, so going forward the noise wins a little sooner than $\bar\alpha$ says.
# The other half, whose word stays allowed, matches it in at least 96% of the cases.
#
# Guidance makes the stretch shorter, because it pushes a half toward the word that is allowed.
# Without guidance, 82% of the halves keep a word that is forbidden from step 114 on, and 70% find a word that is allowed only from step 171 on.
# The two curves then cross near step 157.
# If one word is missing from the start, the other half still shows its own word in 84% of the cases.
#
# The colors are those of one head of the first cross-attention, which we chose because it tells the halves apart best.
# We haven't tried whether added vectors would do as well at this size, but at 8 × 8 pixels, on the further page, they come close.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Missing from the start, a word is lost: most halves become the other word's garment."
):
    for run in runs:
        assert run.result["200, other"] > 0.6 > 0.3 > run.result["200, named"]

with cu.guard(
    "Beside another word, a word allowed only until step 171 mostly loses, and one allowed only from step 114 on comes too late."
):
    for gone, came in zip(runs, late, strict=True):
        assert gone.result["171, named"] < 0.3 and came.result["171, named"] > 0.8
        assert gone.result["114, named"] > 0.75 and came.result["114, named"] < 0.3

with cu.guard(
    "The two ways are worth the same somewhere between steps 171 and 143, on average near 155."
):
    means = [
        [sum(run.result[f"{step}, named"] for run in each) / 3 for each in (runs, late)]
        for step in (157, 143)
    ]
    assert means[0][0] < means[0][1] and means[1][0] > means[1][1]
    for gone, came in zip(runs, late, strict=True):
        assert gone.result["171, named"] < came.result["171, named"]
        assert gone.result["143, named"] > came.result["143, named"]

with cu.guard(
    "Without another word more than half keep their word at step 171, and more than a third find it at 114."
):
    for run in alone:
        assert run.result["171, until"] > 0.5 and run.result["114, from"] > 0.35
        assert run.result["200, until"] < 0.25

with cu.guard("The other half keeps its word in at least 96% of the cases."):
    for run in runs:
        assert min(share for name, share in run.result.items() if "beside" in name) > 0.95

with cu.guard("The network is trained and scored as “How sure is this?” says."):
    means = {
        rate: sum(
            run.result["loss"] for run in cu.stored_runs("diffusion", "rates_for_words", rate=rate)
        )
        / 3
        for rate in (3e-3, 8e-3, 2e-2, 5e-2)
    }
    assert [round(mean, 3) for mean in means.values()] == [0.196, 0.189, 0.188, 0.204]
    assert (long.config["steps"], long.config["lr"]) == (6400, 8e-3)
    assert (
        round(dict(long.curves["held out"])[5000], 3) == 0.141
        and round(long.curves["held out"][-1][1], 3) == 0.136
    )
    assert round(long.result["named"], 2) == 0.92

with cu.guard("Without guidance the stretch is wider."):
    plain = cu.stored_runs("diffusion", "forbidding", scale=1.0)
    plain_late = cu.stored_runs("diffusion", "asking_late", scale=1.0)
    for each, name, percent in (
        (plain, "right", 70), (plain, "114, named", 82), (plain_late, "171, named", 70), (plain, "200, beside", 84)
    ):  # fmt: skip
        assert round(100 * sum(run.result[name] for run in each) / 3) == percent

with cu.guard("From the first step on one head's pixels ask their own word."):
    for run in runs:
        for step, weight in run.curves["left half"]:
            assert weight > 0.8 > 0.2 > dict(run.curves["right half"])[step]

# %% [markdown]
# ## Take-aways
#
# - All the small steps into the noise make up one large step, and a network learns by regression to say which noise was added.
#   Its best guess is a mean of all pictures that could be there, so the sampler goes back in small steps.
# - Words enter by cross-attention, where each pixel asks, and a single word is one added vector.
# - If we forbid a word early and late, we see *when* it is needed.
#   If we forbid the other word as well, we see whether the rival had undone its work.
#   In this network the contest between two words is decided in one stretch of the way, although a head asks from the first step to the last.

# %% [markdown] tags=["next"]
# Next: [Real weights](18_real_weights.ipynb), where the class of [GPT](13_gpt.ipynb) takes the weights of a real language model, and we look for the layer in which it looks something up.
# The path to images ends here.
# If you came only for images, [a project of your own](D_capstone.ipynb) is waiting.
# [Attention in a diffusion model: mirrors, fewer steps, guidance and DiT](17_diffusion_further.ipynb) asks when a pixel needs another pixel, and leads to the generators of today.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("diffusion")

# %% [markdown]
# ## References
#
# - Ho, J., Jain, A. and Abbeel, P. (2020).
#   [Denoising diffusion probabilistic models](https://arxiv.org/abs/2006.11239).
#   NeurIPS.
# - Ho, J. and Salimans, T. (2022).
#   [Classifier-free diffusion guidance](https://arxiv.org/abs/2207.12598).
# - Nichol, A. and Dhariwal, P. (2021).
#   [Improved denoising diffusion probabilistic models](https://arxiv.org/abs/2102.09672).
#   ICML.
#   Section 3.2.
# - Rombach, R. et al. (2022).
#   [High-resolution image synthesis with latent diffusion models](https://arxiv.org/abs/2112.10752).
#   CVPR.
#   Section 3.3.
# - Ronneberger, O., Fischer, P. and Brox, T. (2015).
#   [U-Net: Convolutional networks for biomedical image segmentation](https://arxiv.org/abs/1505.04597).
#   MICCAI.
