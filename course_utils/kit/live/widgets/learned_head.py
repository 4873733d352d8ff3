"""One attention head that is trained in the page, by gradient descent: an adjective learns which noun it belongs to."""

from course_utils.kit.live.widget import Live

RATES = (0.3, 1, 3)


class LearnedHead(Live):
    """A live head that learns, shown as the last line of a cell."""

    kind = "learned_head"
    label = "Live training of a head"


def learned_head(rate: float = 1, seed: int = 0) -> LearnedHead:
    """A head with random matrices that learns, step by step, at which noun an adjective has to look.

    Args:
        rate: of gradient descent; 0.3, 1 or 3.
        seed: of the matrices, from 0 to 99.

    Raises:
        ValueError: `rate` or `seed` is another.
    """
    if rate not in RATES:
        raise ValueError(f"rate={rate!r}; one of {', '.join(map(str, RATES))} is needed")
    if seed not in range(100):
        raise ValueError(f"seed={seed!r}; 0 to 99 are needed")
    return LearnedHead(rate, seed, rate=rate, seed=seed)
