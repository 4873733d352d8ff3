"""Schedules: the learning rate over the steps, as a factor on its peak. Taught in *Training transformers*."""

import math
from collections.abc import Callable

from course_utils.arguments import check_positive

Schedule = Callable[[int], float]
"""Step, from 1 on → factor on the learning rate."""


def constant() -> Schedule:
    """The same rate at every step."""
    return lambda step: 1.0


def inverse_sqrt(warmup: int) -> Schedule:
    """Rise linearly to 1 over `warmup` steps, then fall as 1/√step.

    Vaswani et al. (2017), section 5.3, up to the factor that makes the peak 1: their peak rate is
    (embed_dim · warmup)^(-1/2).

    Raises:
        ValueError: `warmup` is not positive.
    """
    check_positive(warmup=warmup)
    return lambda step: min(step / warmup, math.sqrt(warmup / step))


def warmup_decay(warmup: int, total: int) -> Schedule:
    """Rise linearly to 1 over `warmup` steps, then fall linearly to 0 just after step `total`.

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
    """Rise linearly to 1 over `warmup` steps, hold it, then fall linearly to 0 over the last `decay` of `total`.

    Raises:
        ValueError: the rise and the fall do not fit in.
    """
    if min(warmup, decay) < 0 or warmup + decay > total:
        raise ValueError(f"warmup={warmup} and decay={decay} do not fit in total={total}")
    return lambda step: min(1.0, step / max(warmup, 1), max(0.0, (total + 1 - step) / (decay + 1)))
