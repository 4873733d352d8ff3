"""Shapes of expressions in a table, for *Start here*."""

import pandas as pd
from torch import Tensor


def shapes(*expressions: str, **tensors: Tensor) -> pd.DataFrame:
    """A table: each expression with the shape and the entries, to two digits, of what it gives.

    Args:
        expressions: Python, in the names of `tensors`, such as "x.sum(dim=1)".
        tensors: what the names stand for.
    """
    rows = []
    for expression in expressions:
        value = eval(expression, dict(tensors))
        rounded = value.double().round(decimals=2) if value.is_floating_point() else value
        rows.append((tuple(value.shape), rounded.tolist()))
    return pd.DataFrame(rows, index=list(expressions), columns=["shape", "entries"])
