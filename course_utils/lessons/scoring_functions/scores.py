"""The scores of *Scoring functions*, what they cost in memory and time, and pictures of the keys that win.

The chapter uses `additive_scores`, `grid` and `show_winners`; its *Going further* page uses the others.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from matplotlib.colors import to_rgba_array
from torch import Tensor, nn

from course_utils.figures import COLORS, Picture, subplots
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
    """How many numbers a forward pass saves for the backward pass; a tensor that is saved twice counts once."""
    saved = {}

    def pack(tensor: Tensor) -> Tensor:
        saved[tensor.data_ptr(), tensor.numel()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _outputs = function(*inputs)  # kept alive, so that no memory is used twice
    return sum(saved.values())


def milliseconds(
    ways: Mapping[str, Callable[..., Tensor]],
    *vectors: Tensor,
    clock: Callable[[], float] = time.perf_counter,
) -> "pd.DataFrame":
    """The milliseconds of each function in 25 rounds on one thread: a row for each round, a column for each function.

    In each round the functions take turns. Two rounds before them warm up.

    Args:
        ways: name → function.
        vectors: its arguments.
        clock: seconds from some moment on.
    """
    import pandas as pd  # slow to import

    times: dict[str, list[float]] = {name: [] for name in ways}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        for _ in range(27):
            for name, function in ways.items():
                start = clock()
                function(*vectors)
                times[name].append(1e3 * (clock() - start))
    torch.set_num_threads(threads)
    return pd.DataFrame(times).iloc[2:]


def encoder_heads(translator: Transformer, ids: Sequence[int]) -> list[list[Tensor]]:
    """Queries and keys of one sentence in each block of the encoder.

    Returns:
        For each block [queries, keys], each (heads, words, size of a head).
    """
    blocks: list[list[Tensor]] = []
    with ExitStack() as hooks:
        for block in translator.encoder:
            blocks.append([])
            keep = _keep_heads(block.attention.num_heads, blocks[-1])
            for projection in (block.attention.query_proj, block.attention.key_proj):
                hooks.callback(projection.register_forward_hook(keep).remove)
        with torch.no_grad():
            translator.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
    return blocks


def _keep_heads(num_heads: int, kept: list[Tensor]) -> Callable[[nn.Module, tuple, Tensor], None]:
    """A forward hook that appends the output for the first sentence of a batch, split into heads."""

    def hook(module: nn.Module, inputs: tuple, output: Tensor) -> None:
        kept.append(output[0].unflatten(1, (num_heads, -1)).transpose(0, 1))

    return hook


# Planes colored by the key that wins each point, taken as a query ---------------------------------

NAMES = "ABCDE"
PALETTE = [COLORS[name] for name in ("key", "query", "value", "wrong", "plum")]
PLANE_END = 3
"""The plane is the square from −3 to 3."""


def grid(side: int = 240) -> Tensor:
    """The points of a square grid over the plane, (side², 2), row by row from below."""
    axis = torch.linspace(-PLANE_END, PLANE_END, side)
    return torch.cartesian_prod(axis, axis)[:, [1, 0]]


def show_winners(planes: Mapping[str, tuple[Tensor, Tensor]]) -> Picture:
    """A plane for each rule, each point in the color of the key that wins it; the title says which keys never win.

    Args:
        planes: name of a rule → its keys, (5, 2), and the number of the winning key for each point of `grid`.
    """
    losers = {rule: _losers(winner) for rule, (_, winner) in planes.items()}
    summary = "; ".join(f"by {rule}, {end}" for rule, end in losers.items())
    alt = f"Planes colored by which of the keys {', '.join(NAMES)} wins each point: {summary}."
    picture, axes = subplots(1, len(planes), alt=alt, width=8.6, height=3.6, sharey=True)
    extent = (-PLANE_END, PLANE_END, -PLANE_END, PLANE_END)
    for ax, (rule, (keys, winner)) in zip(axes, planes.items(), strict=True):
        side = round(len(winner) ** 0.5)
        shown = torch.tensor(to_rgba_array(PALETTE, 0.45))[winner.view(side, side)]
        ax.imshow(shown.numpy(), origin="lower", extent=extent)
        ax.plot(*keys.T, "o", color=COLORS["ink"], markersize=4)
        for name, (x, y) in zip(NAMES, keys.tolist(), strict=True):
            ax.text(x + 0.12, y + 0.12, name, fontsize=11, weight="bold", clip_on=True)
        ax.set(title=f"{rule}\n{losers[rule]}", xlabel="first coordinate", aspect="equal")
        ax.set(xlim=extent[:2], ylim=extent[2:], xticks=range(-PLANE_END, PLANE_END + 1))
    axes[0].set_ylabel("second coordinate")
    return picture


def _losers(winner: Tensor) -> str:
    """Which keys win no point, in words."""
    wins = winner.bincount(minlength=len(NAMES)).tolist()
    lost = [name for name, count in zip(NAMES, wins, strict=True) if not count]
    return f"{' and '.join(lost)} never wins" if lost else "each key wins somewhere"
