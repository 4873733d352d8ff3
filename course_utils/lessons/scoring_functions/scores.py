"""Scores of *Scoring functions*, as its exercises ask for them, and what they keep in memory."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from course_utils.models.transformer import Transformer

if TYPE_CHECKING:
    import pandas as pd


def gaussian_weights(queries: Tensor, keys: Tensor) -> Tensor:
    """Weights of the Gaussian kernel of width 1, without any difference of a query and a key.

    −½‖q − k‖² = q·k − ½‖k‖² − ½‖q‖²; the last term is the same for all keys, and a softmax does not see it.

    Args:
        queries, keys: (n, d) and (m, d).

    Returns:
        (n, m); each row sums to 1.
    """
    half_norms = keys.square().sum(dim=-1) / 2  # (m,)
    return (queries @ keys.T - half_norms).softmax(dim=-1)


def additive_scores(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, w: Tensor) -> Tensor:
    """Additive scores tanh(q W_Q + k W_K) · w of all pairs.

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", appendix A.1.2, with vectors as rows.

    Args:
        queries, keys: (…, n, d_q) and (…, m, d_k).
        w_q, w_k, w: (d_q, h), (d_k, h) and (h,).

    Returns:
        (…, n, m).
    """
    added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)  # (…, n, m, h)
    return added.tanh() @ w


def numbers_kept(function: Callable[..., Tensor], *inputs: Tensor) -> int:
    """How many numbers a forward pass saves for the backward pass; what is saved twice counts once."""
    kept = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr(), tensor.numel()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _outputs = function(*inputs)  # kept alive, so that no memory is used twice
    return sum(kept.values())


def milliseconds(
    ways: Mapping[str, Callable[..., Tensor]], *vectors: Tensor, rounds: int = 25
) -> "pd.DataFrame":
    """Time of each function in each round on one thread, measured in turn, after two rounds to warm up."""
    import pandas as pd  # slow to import

    times: dict[str, list[float]] = {name: [] for name in ways}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        for _ in range(rounds + 2):
            for name, function in ways.items():
                start = time.perf_counter()
                function(*vectors)
                times[name].append(1e3 * (time.perf_counter() - start))
    torch.set_num_threads(threads)
    return pd.DataFrame(times).iloc[2:]


def encoder_heads(translator: Transformer, ids: Sequence[int]) -> list[list[Tensor]]:
    """Of each block of the encoder the queries and the keys of one sentence, each (heads, words, size of a head)."""
    found: list[list[Tensor]] = []
    with ExitStack() as hooks:
        for block in translator.encoder:
            found.append([])
            for kind in ("query_proj", "key_proj"):
                handle = getattr(block.attention, kind).register_forward_hook(
                    lambda _, __, out, kept=found[-1], heads=block.attention.num_heads: kept.append(
                        out[0].unflatten(1, (heads, -1)).transpose(0, 1)
                    )
                )
                hooks.callback(handle.remove)
        with torch.no_grad():
            translator.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
    return found
