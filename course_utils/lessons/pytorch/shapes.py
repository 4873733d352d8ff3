"""Shapes of expressions in a table, for the appendix *PyTorch in an hour*."""

import pandas as pd
import torch
from torch import Tensor


def shapes(*expressions: str, **tensors: Tensor) -> pd.DataFrame:
    """The shape and the entries, to two digits, of the tensor that each expression gives; a row for each.

    Args:
        expressions: Python, with `torch` and the names of `tensors`, such as "x.sum(dim=1)".
        tensors: name → tensor.
    """
    rows = []
    for expression in expressions:
        value = eval(expression, {"torch": torch, **tensors})
        rounded = value.double().round(decimals=2) if value.is_floating_point() else value
        rows.append((tuple(value.shape), rounded.tolist()))
    return pd.DataFrame(rows, index=list(expressions), columns=["shape", "entries"])
