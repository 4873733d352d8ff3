"""Checks of *Attention in a diffusion model*: noise on paper, noise with a bug, a step back, attention to words."""

import torch

from course_utils.kit.check import Check, expect, expect_close, expect_shape, expect_unchanged
from course_utils.kit.on_paper import on_paper
from course_utils.lessons.diffusion import sampling

# Noise on paper ---------------------------------------------------------------------------------

noised_on_paper = on_paper(
    "noised_on_paper", __name__, {
        "a": (0.4, "the mean of the pixel after the first step",
             "By what does the first step multiply the pixel? The noise has mean 0.",
             "√(1 − 0.75) is 0.5."),
        "b": (0.2, "the mean after the second step",
             "The second step multiplies what the first one left, by the same number."),
        "c": (0.9375, "the variance after the second step",
             "The variance of the first step's noise is multiplied by the square of 0.5, and new noise is added.",
             "0.25 · 0.75 + 0.75, which is also 1 − ᾱ₂."),
        "d": (0.0625, "ᾱ₂", "It is the product of 1 − β over the steps."),
        "e": (-0.8, "the guess x̂₀",
             "Solve x_t = √ᾱ x₀ + √(1 − ᾱ) ε for x₀.",
             "(1 − 0.866 · ε) / 0.5, with ε = 1.617."),
    }, within=0.011,
)  # fmt: skip

# Find the bug: noise for a batch ----------------------------------------------------------------

fixed_noisy = Check("fixed_noisy")

LEVELS = torch.tensor([1.0, 0.8, 0.5, 0.1])


def _noisy(candidate, count=4, height=3, width=5, channels=1):
    x, noise = torch.randn(2, count, channels, height, width)
    t = torch.arange(count) % 4
    return expect_shape(candidate(x, t, noise, LEVELS), tuple(x.shape)), x, t, noise


@fixed_noisy.must("it takes batches whose pictures are not as wide as the batch is long")
def _(candidate):
    """`alpha_bar[t]` has the shape (batch,). Along which axis of (batch, channels, height, width) is it spread?

    PyTorch aligns shapes from the right. Where do three axes of size 1 have to stand?
    """
    for count, width in ((4, 5), (3, 4), (2, 7)):
        _noisy(candidate, count, 3, width)


@fixed_noisy.must("each picture has its own step")
def _(candidate):
    """Take a batch of 4 pictures of 4 × 4 pixels. Does a picture have one level of noise, or each of its columns?"""
    for count, channels in ((4, 1), (4, 3)):
        answer, x, t, noise = _noisy(candidate, count, 4, 4, channels)
        expect_close(answer, sampling.noisy(x, t, noise, LEVELS), "4 pictures of 4 × 4 pixels")


@fixed_noisy.must("shares are roots: the variances sum to 1")
def _(candidate):
    """ᾱ is a share of the variance. By what are pixels multiplied?"""
    x, noise = torch.randn(2, 4, 1, 40, 40)
    answer = expect_shape(candidate(x, torch.full((4,), 2), noise, LEVELS), (4, 1, 40, 40))
    expect(
        abs(answer.var().item() - 1) < 0.1, f"the variance is {answer.var():.2f} for ᾱ = 0.5, not 1"
    )


@fixed_noisy.must("at step 0 it is the picture, and nothing given is changed")
def _(candidate):
    """Does a line work in place, with `*=` or `+=`?"""
    x, noise = torch.randn(2, 3, 1, 4, 4)
    t = torch.zeros(3, dtype=torch.long)
    expect_close(expect_unchanged(candidate, x, t, noise, LEVELS), x, "step 0")


# A step back ------------------------------------------------------------------------------------

my_step_back = Check("my_step_back")


def _compare(candidate, *levels, fresh=True, cut=False):
    a, b = torch.tensor(levels)
    clean = 0.9 * (2 * torch.rand(3, 1, 4, 4) - 1)
    noise, new = torch.randn(2, 3, 1, 4, 4)
    x = a**0.5 * clean + (1 - a) ** 0.5 * noise
    if cut:  # a guess far beyond white and black
        noise = -3 * noise
    new = new if fresh else torch.zeros_like(new)
    expected = sampling.step_back(x, noise, a, b, new)
    answer = expect_shape(candidate(x, noise, a, b, new), tuple(x.shape))
    expect_close(answer, expected, f"from {levels[0]} to {levels[1]}", atol=1e-4)


@my_step_back.must("the last step, to b = 1, gives the guess of the clean picture")
def _(candidate):
    """At b = 1 nothing of the noise is left. What is left of the three terms?

    The guess is (x − √(1 − a) · noise) / √a.
    """
    for a in (0.3, 0.9):
        _compare(candidate, a, 1.0)


@my_step_back.must("without fresh noise, guess and old noise have their shares of level b")
def _(candidate):
    """By what is the guess multiplied at level b, and by what the old noise?

    √b for the guess, √(1 − b − σ²) for the old noise: with σ², even if the fresh noise happens to be 0.
    """
    _compare(candidate, 0.3, 0.5, fresh=False)
    _compare(candidate, 0.1, 0.9, fresh=False)


@my_step_back.must("the fresh noise has the variance σ²")
def _(candidate):
    """σ² is a variance. By what is the fresh noise multiplied?"""
    _compare(candidate, 0.3, 0.5)
    _compare(candidate, 0.6, 0.61)


@my_step_back.must("the guess is cut to −1 … 1, and the old noise is what belongs to the cut guess")
def _(candidate):
    """No pixel is brighter than white. Does your guess go beyond 1? `.clamp(-1, 1)` cuts it.

    After cutting, noise and guess no longer make up x. Which noise does? (x − √a · guess) / √(1 − a).
    """
    _compare(candidate, 0.3, 0.5, cut=True)


my_step_back.must_keep_inputs(
    lambda: [*torch.randn(2, 2, 1, 4, 4), *torch.tensor([0.3, 0.5]), torch.randn(2, 1, 4, 4)],
    "The chapter keeps all pictures on the way. Does a line work in place, with `*=`, `clamp_` or `copy_`?",
    "nothing given is changed",
)

# Attention to words -----------------------------------------------------------------------------

attend_to_words = Check("attend_to_words")


def _parts(batch=2, channels=8, pixels=6, tokens=3):
    return (torch.randn(batch, n, channels) for n in (pixels, tokens, tokens))


@attend_to_words.must("one output for each pixel: (batch, pixels, channels)")
def _(candidate):
    """Which axis of the scores belongs to the pixels, and which to the words?"""
    q, k, v = _parts()
    expect_shape(candidate(q, k, v, 1), (2, 6, 8))


@attend_to_words.must("with a single word each pixel gets that word's value")
def _(candidate):
    """The softmax of a single score is 1. Along which axis do your weights sum to 1?"""
    q, k, v = _parts(tokens=1)
    expect_close(candidate(q, k, v, 2), v.expand(2, 6, 8), "one word")


@attend_to_words.must("one head: scaled dot-product attention, pixels ask and words answer")
def _(candidate):
    """By what are scores divided? By the root of the number of channels of a head.

    Softmax over the words, then the weighted mean of the words' values.
    """
    q, k, v = _parts()
    expect_close(candidate(q, k, v, 1), sampling.attend_to_words(q, k, v, 1), "one head")


@attend_to_words.must("several heads work side by side, each on its own channels")
def _(candidate):
    """`cu.split_heads(x, num_heads)` gives (batch, heads, n, head_dim). What puts the heads side by side again?

    Is the scale that of a head, 1/√head_dim?
    """
    for num_heads in (2, 4):
        q, k, v = _parts()
        expected = sampling.attend_to_words(q, k, v, num_heads)
        expect_close(candidate(q, k, v, num_heads), expected, f"{num_heads} heads")
