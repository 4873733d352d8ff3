"""Checks of *Attention in a diffusion model*: noise on paper, noise with a bug, a step back, attention to words."""

import torch

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_shape, expect_unchanged
from course_utils.kit.on_paper import on_paper
from course_utils.lessons.diffusion import exercises

# Noise on paper ---------------------------------------------------------------------------------

noised_on_paper = on_paper({
    "a": (0.4, "the mean of the pixel after the first step",
         "By what does the first step multiply the pixel? Its noise has mean 0 and doesn't count.",
         "The factor √(1 − 0.75) is 0.5."),
    "b": (0.2, "the mean after the second step",
         "By what does the second step multiply what the first one left? By the same number."),
    "c": (0.9375, "the variance after the second step",
         "What becomes of the variance of the first step's noise? It is multiplied by the square of 0.5, and "
         "new noise is added.",
         "It is 0.25 · 0.75 + 0.75, and together with the answer to (d) it is 1."),
    "d": (0.0625, "the share of the picture's variance that is left after both steps",
         "What is 1 − β in each of the two steps? Multiply."),
    "e": (-0.8, "the guess of x₀",
         "Which equation holds x₀ and the noise? Solve x_t = 0.5 x₀ + 0.866 ε for x₀.",
         "It is (1 − 0.866 · ε) / 0.5, with ε = 1.617."),
}, within=0.011)  # fmt: skip

# Find the bug: noise for a batch ----------------------------------------------------------------

fixed_noisy = Check()

LEVELS = torch.tensor([1.0, 0.8, 0.5, 0.1])


_ROOT = "By what are the pixels multiplied? `alpha_bar` is a share of the *variance*, so we need its root."
_ROOT_INSIDE = (
    "What comes first for the noise, the root or the difference? Its variance is `1 - alpha_bar`."
)
_EXCHANGED = "Which factor belongs to the picture? At step 0, with `alpha_bar` = 1, the whole picture is there."


def _hint_for_slip(answer, x, noise, a):
    """A hint for a forgotten root or exchanged factors, or nothing."""
    root, rest = a.sqrt(), (1 - a).sqrt()
    slips = [
        (root, 1 - root, _ROOT_INSIDE), (a, 1 - a, _ROOT), (root, 1 - a, _ROOT), (a, rest, _ROOT),
        (rest, root, _EXCHANGED),
    ]  # fmt: skip
    for picture, share, hint in slips:
        if torch.allclose(answer, picture * x + share * noise, atol=1e-5):
            return hint
    return ""


def _expect_noisy(candidate, count=4, height=3, width=5, channels=1):
    x, noise = torch.randn(2, count, channels, height, width)
    t = torch.arange(count) % 4
    answer = candidate(x.clone(), t, noise.clone(), LEVELS)
    return expect_shape(answer, tuple(x.shape)), x, t, noise


@fixed_noisy.must("takes batches whose pictures are not as wide as the batch is long")
def takes_batches_of_any_length(candidate):
    """`alpha_bar[t]` has the shape (batch,). Along which axis of (batch, channels, height, width) does it broadcast?
    We want the first.

    PyTorch aligns shapes from the right. Where do we need three axes of size 1?
    """
    for count, width in ((4, 5), (3, 4), (2, 7)):
        _expect_noisy(candidate, count, 3, width)


@fixed_noisy.must("gives each picture its own step")
def gives_each_picture_its_own_step(candidate):
    """Does a picture have one level of noise, or does each of its columns have one? Look at a batch of 4 pictures of
    4 × 4 pixels.
    """
    for count, channels in ((4, 1), (4, 3)):
        answer, x, t, noise = _expect_noisy(candidate, count, 4, 4, channels)
        expected = exercises.noisy(x, t, noise, LEVELS)
        slip = _hint_for_slip(answer, x, noise, LEVELS[t][:, None, None, None])
        expect_close(answer, expected, "4 pictures of 4 × 4 pixels", hint=slip)


@fixed_noisy.must("keeps the variance at 1")
def keeps_variance_at_1(candidate):
    """By what are the pixels multiplied? `alpha_bar` is a share of the *variance*, so we need its root."""
    x, noise = torch.randn(2, 4, 1, 40, 40)
    answer = expect_shape(candidate(x, torch.full((4,), 2), noise, LEVELS), (4, 1, 40, 40))
    expect(
        abs(answer.var().item() - 1) < 0.1,
        f"the variance is {answer.var():.2f} for alpha_bar = 0.5, expected 1",
    )


@fixed_noisy.must("gives the picture itself at step 0, and changes nothing it is given")
def gives_picture_itself_at_step_0(candidate):
    """Does a line work in place? `*=` and `+=` write into the caller's tensors."""
    x, noise = torch.randn(2, 3, 1, 4, 4)
    t = torch.zeros(3, dtype=torch.long)
    expect_unchanged(candidate, x, t + 2, noise, LEVELS)  # step 0 adds nothing
    expect_close(expect_unchanged(candidate, x, t, noise, LEVELS), x, "step 0")


# A step back ------------------------------------------------------------------------------------

my_step_back = Check()


_BELONGS = "The guess is cut. Does the old noise still belong to it? Compute it anew from x and the cut guess."


def _expect_step(candidate, *levels, fresh=True, cut=False):
    a, b = torch.tensor(levels)
    clean = 0.9 * (2 * torch.rand(3, 1, 4, 4) - 1)
    noise, new = torch.randn(2, 3, 1, 4, 4)
    x = a**0.5 * clean + (1 - a) ** 0.5 * noise
    if cut:  # a guess far beyond white and black
        noise = -3 * noise
    new = new if fresh else torch.zeros_like(new)
    expected = exercises.step_back(x, noise, a, b, new)
    answer = expect_shape(candidate(x.clone(), noise, a, b, new), tuple(x.shape))
    guess = ((x - (1 - a) ** 0.5 * noise) / a**0.5).clamp(-1, 1)
    belongs = (x - a**0.5 * guess) / (1 - a) ** 0.5
    share = (1 - b - (1 - b) / (1 - a) * (1 - a / b)) ** 0.5  # of the old noise
    uncut = cut and torch.allclose(expected - answer, share * (belongs - noise), atol=1e-4)
    hint = _BELONGS if uncut else ""
    if answer.isnan().any():
        hint = "Is your σ² negative? Which ratio is below 1, a/b or b/a?"
    expect_close(answer, expected, f"from {levels[0]} to {levels[1]}", atol=1e-4, hint=hint)


@my_step_back.must("gives the guess of the clean picture in the last step, to b = 1")
def gives_guess_of_clean_picture_in_last_step(candidate):
    """What is left of the three terms at b = 1? Nothing of the noise, so only the guess.

    The guess is (x − √(1 − a) · noise) / √a, cut to −1 … 1.
    """
    for a in (0.3, 0.9):
        _expect_step(candidate, a, 1.0)


@my_step_back.must("gives guess and old noise their shares of level b")
def gives_guess_and_old_noise_their_shares_of_level_b(candidate):
    """By what is the guess multiplied at level b? By √b; the old noise gets the root of the variance that then
    remains for it.

    It is √(1 − b − σ²) for the old noise, with σ² even if the fresh noise happens to be 0.
    """
    _expect_step(candidate, 0.3, 0.5, fresh=False)
    _expect_step(candidate, 0.1, 0.9, fresh=False)


@my_step_back.must("gives the fresh noise the variance σ²")
def gives_fresh_noise_variance_sigma_squared(candidate):
    """By what is the fresh noise multiplied? σ² is a variance, so we need its root."""
    _expect_step(candidate, 0.3, 0.5)
    _expect_step(candidate, 0.6, 0.61)


@my_step_back.must(
    "cuts the guess to −1 … 1, and takes the old noise that belongs to the cut guess"
)
def clamps_guess_and_takes_noise_that_belongs_to_it(candidate):
    """Does your guess go beyond 1? No pixel is brighter than white, and `.clamp(-1, 1)` cuts it.

    After cutting, noise and guess no longer make up x. Which noise does? It is (x − √a · guess) / √(1 − a).
    """
    _expect_step(candidate, 0.3, 0.5, cut=True)


my_step_back.must_keep_inputs(
    lambda: [*torch.randn(2, 2, 1, 4, 4), *torch.tensor([0.3, 0.5]), torch.randn(2, 1, 4, 4)],
    "Does a line work in place? The chapter keeps all pictures on the way, so avoid `*=`, `clamp_` and `copy_`.",
    "leaves everything it is given unchanged",
)

# Attention to words -----------------------------------------------------------------------------

attend_to_words = Check()


_SCALE = "By what do you divide the scores? A head has only a part of the channels, so it should be the root of these."


def _pixels_and_words(batch=2, channels=8, pixels=6, tokens=3):
    return (torch.randn(batch, n, channels) for n in (pixels, tokens, tokens))


@attend_to_words.must("gives one output for each pixel, (batch, pixels, channels)")
def gives_one_output_for_each_pixel(candidate):
    """Which axis of the scores belongs to the pixels? They are the queries, so the second to last; the words are the
    last.
    """
    q, k, v = _pixels_and_words()
    answer = candidate(q, k, v, 1)
    hint = "The axis of the heads is still there. What undoes `cu.split_heads`?"
    expect(
        getattr(answer, "ndim", 3) != 4, f"got {getattr(answer, 'ndim', 3)} axes, expected 3", hint
    )
    expect_shape(answer, (2, 6, 8))


@attend_to_words.must("gives each pixel the word's value if there is only one word")
def gives_each_pixel_words_value_if_there_is_only_one_word(candidate):
    """Along which axis do your weights sum to 1? The softmax of a single score is 1, so each pixel should copy the
    word.
    """
    q, k, v = _pixels_and_words(tokens=1)
    expect_close(candidate(q, k, v, 1), v.expand(2, 6, 8), "one word")


@attend_to_words.must(
    "equals scaled dot-product attention with one head, where pixels ask and words answer"
)
def equals_scaled_dot_product_attention_with_one_head(candidate):
    """By what do you divide the scores? It should be the root of the number of channels of a head.

    Softmax over the words, then the weighted mean of the words' values.
    """
    q, k, v = _pixels_and_words()
    expect_close(candidate(q, k, v, 1), exercises.attend_to_words(q, k, v, 1), "one head")


@attend_to_words.must("runs several heads in parallel, each on its own channels")
def runs_several_heads_in_parallel_each_on_its_own_channels(candidate):
    """What undoes `cu.split_heads(x, num_heads)`, which gives (batch, heads, n, head_dim)? Use it on the result, so
    the heads' channels are next to each other again.

    Is the scale that of a head? It should be 1/√head_dim.
    """
    for num_heads in (2, 4):
        q, k, v = _pixels_and_words()
        answer = candidate(q, k, v, num_heads)
        of_all = exercises.attend_to_words(q / num_heads**0.5, k, v, num_heads)  # √channels
        same = isinstance(answer, torch.Tensor) and answer.shape == of_all.shape
        hint = _SCALE if same and torch.allclose(answer, of_all, atol=1e-5) else ""
        expected = exercises.attend_to_words(q, k, v, num_heads)
        expect_close(answer, expected, f"{num_heads} heads", hint=hint)
