"""What the exercises of *Attention in a diffusion model* build: noise, a step back, and attention to words.

`step_back` is the library's. The checks compare with these three, and the page goes on with them where an exercise is
not solved.
"""

from torch import Tensor

from course_utils.attention import merge_heads, split_heads
from course_utils.models.noise import Diffusion, step_back

__all__ = ["attend_to_words", "noisy", "step_back"]


def noisy(x: Tensor, t: Tensor, noise: Tensor, alpha_bar: Tensor) -> Tensor:
    """Pictures with noise, each at its own step: (batch, channels, height, width).

    Args:
        x, noise: (batch, channels, height, width).
        t: (batch,), whole numbers.
        alpha_bar: share of the picture in the variance at each step, (steps + 1,).
    """
    return Diffusion(alpha_bar).add_noise(x, t, noise)


def attend_to_words(queries: Tensor, keys: Tensor, values: Tensor, num_heads: int) -> Tensor:
    """Outputs of cross-attention, in which pixels ask and words answer: (batch, pixels, channels).

    Args:
        queries: of the pixels, (batch, pixels, channels).
        keys, values: of the words, (batch, words, channels).
        num_heads: divides the channels.
    """
    q, k, v = (split_heads(vectors, num_heads) for vectors in (queries, keys, values))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return merge_heads(scores.softmax(dim=-1) @ v)
