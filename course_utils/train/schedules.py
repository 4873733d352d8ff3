"""Schedules of the learning rate, as factors of its peak. Taught in *Training transformers*."""

import math
from collections.abc import Callable

from course_utils.arguments import check_positive

Schedule = Callable[[int], float]
"""Step, from 1 on → factor of the learning rate."""


def constant() -> Schedule:
    """A factor of 1 at every step."""
    return lambda step: 1.0


def inverse_sqrt(warmup: int) -> Schedule:
    """A linear rise to 1 over `warmup` steps, then a fall as 1/√step.

    Vaswani et al. (2017), section 5.3, up to the factor that makes the peak 1: their peak rate is
    (embed_dim · warmup)^(-1/2).

    Raises:
        ValueError: `warmup` is not positive.
    """
    check_positive(warmup=warmup)
    return lambda step: min(step / warmup, math.sqrt(warmup / step))


def warmup_decay(warmup: int, total: int) -> Schedule:
    """A linear rise to 1 over `warmup` steps, then a linear fall to 0 at step `total` + 1.

    Raises:
        ValueError: not 0 <= warmup < total.
    """
    if not 0 <= warmup < total:
        raise ValueError(f"warmup={warmup}, total={total}; 0 <= warmup < total is needed")

    def factor(step: int) -> float:
        if step <= warmup:
            return step / warmup
        return max(0.0, (total + 1 - step) / (total + 1 - warmup))

    return factor


def warmup_hold_decay(warmup: int, decay: int, total: int) -> Schedule:
    """A linear rise to 1 over `warmup` steps, a plateau, and a linear fall to 0 over the last `decay` of `total` steps.

    Raises:
        ValueError: `warmup` or `decay` is negative, or they add up to more than `total`.
    """
    if min(warmup, decay) < 0 or warmup + decay > total:
        raise ValueError(f"warmup={warmup} and decay={decay} do not fit in total={total}")
    return lambda step: min(1.0, step / max(warmup, 1), max(0.0, (total + 1 - step) / (decay + 1)))
