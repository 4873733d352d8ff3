"""Cuts in the chapter's `Copier`: entries of its QK maps are erased, heads are ablated, and activations patched."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.interventions import intervene, record_activations
from course_utils.lessons.what_heads_learn.circuits import look, of_head
from course_utils.lessons.what_heads_learn.film import measured
from course_utils.masks import causal_mask
from course_utils.recording import record_attention

ERASED = ("nothing", "the diagonal", "32 others", "equally heavy others", "all 992 others")
"""What `erased` knows to erase, besides `WHOLE`."""
WHOLE = "all 1,024"
"""The whole map: each row is level then, and says nothing."""
SHOWN = ("nothing", "the diagonal", "32 others", "all 992 others", WHOLE)
"""What the page shows of these."""


@torch.no_grad()
def logits_with(
    model: nn.Module, ids: Tensor, previous: int, change: Callable[[int, Tensor], Tensor]
) -> Tensor:
    """The model's logits (batch, n, 32) if entries of its QK maps are changed, and nothing else.

    A score of layer 1 is a sum over paths. One of them leads from the letter now to the letters that head `previous`
    of layer 0 has brought to a key, and it gives a score the part Σ_k w_jk QK[i, k] / (σ_i σ_j σ_k √head_dim): entries
    of the map, weighted by where that head looks, and divided by what the norms divide by. It gets other entries.

    Args:
        model: a `Copier` of two layers.
        ids: (batch, n).
        previous: the head of layer 0.
        change: a head of layer 1 and its map, as the norms leave it, → what is added to the map's entries.
    """
    x = model.letters(ids) + model.positions.weight[: ids.shape[1]]
    bottom, top = model.layers
    with record_attention(bottom) as maps:
        y = model.norms[0](x)
        middle = x + bottom(y, y, y, is_causal=True)
    weights, y = maps["attention"][:, previous], model.norms[1](middle)
    by = [stream.std(-1, correction=0, keepdim=True) for stream in (x, middle)]
    outputs = []
    for head in range(top.num_heads):
        W_Q, W_K, W_OV = of_head(top, head)
        added = change(head, centered_map(model, previous, head))
        part = added[ids[:, :, None], ids[:, None]] / by[0].mT  # (batch, queries, letters)
        scores = (y @ W_Q) @ (y @ W_K).mT + (part @ weights.mT) / (by[1] * by[1].mT)
        scores = scores / top.head_dim**0.5
        allowed = causal_mask(ids.shape[1])
        outputs.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ y @ W_OV)
    return model.output(model.norm(middle + sum(outputs)))


def centered_map(model: nn.Module, previous: int, induction: int) -> Tensor:
    """`qk_map` for vectors of which a norm subtracts the mean first, as it does while the model runs."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    letters = _centered(model.letters.weight)
    after = _centered(letters * model.norms[0].weight @ W_OV) * model.norms[1].weight
    return letters * model.norms[1].weight @ W_Q @ (after @ W_K).T


def _centered(rows: Tensor) -> Tensor:
    return rows - rows.mean(-1, keepdim=True)


def erased(which: str) -> Callable[[int, Tensor], Tensor]:
    """A change for `logits_with`: some entries get the mean of their row.

    Args:
        which: one of `ERASED`, or `WHOLE`. The 32 others are those farthest from the mean of their row, and equally
            heavy are as many of these as it takes until their distances, squared, add up to those of the diagonal.
    """

    def change(_: int, entries: Tensor) -> Tensor:
        distance = entries - entries.mean(-1, keepdim=True)
        if which == WHOLE:
            return -distance
        diagonal = torch.eye(len(entries), dtype=torch.bool)
        others = distance.masked_fill(diagonal, 0).flatten().abs()
        order = others.argsort(descending=True)
        heavy = distance[diagonal].square().sum()
        needed = int((others[order].square().cumsum(0) < heavy).sum()) + 1
        counts = (0, 0, len(entries), needed, entries.numel() - len(entries))
        chosen = torch.zeros(entries.numel(), dtype=torch.bool)
        chosen[order[: counts[ERASED.index(which)]]] = True
        chosen = diagonal if which == "the diagonal" else chosen.view_as(entries)
        return -distance * chosen

    return change


def erasures(
    model: nn.Module, ids: Tensor, previous: int, parts: tuple[str, ...] = (*ERASED, WHOLE)
) -> dict[str, Tensor]:
    """What is erased → logits for texts (batch, 48), without their last letter."""
    return {which: logits_with(model, ids[:, :-1], previous, erased(which)) for which in parts}


@torch.no_grad()
def ablations(model: nn.Module, ids: Tensor, previous: int, induction: int) -> dict[str, Tensor]:
    """Ablated heads → logits for texts (batch, 48), without their last letter; each head says its mean."""
    ids, others = ids[:, :-1], (1 - previous, 1 - induction)
    with record_activations(model) as run:
        whole = model(ids)
    found = {"whole": whole}
    for name, layer, heads in (
        ("previous-token head", 0, previous),
        ("the other head of layer 0", 0, others[0]),
        ("first induction head", 1, induction),
        ("second induction head", 1, others[1]),
        ("both induction heads", 1, [0, 1]),
    ):
        with intervene(model) as acts:
            acts.ablate(layers=layer, heads=heads, by="mean", run=run)
            found[name] = model(ids)
    return found


def places(previous: int) -> dict[str, dict]:
    """What is patched in a text of 25 letters whose answer stands at position 9: a name → arguments of `acts.patch`.

    The first changes nothing, because position 0 sees only itself, and is the same in both runs.
    """
    elsewhere = [*range(9), *range(10, 25)]
    return {
        "nothing": {"layers": 0, "positions": 0},
        "previous-token head, at the answer": {"layers": 0, "heads": previous, "positions": 9},
        "previous-token head, elsewhere": {"layers": 0, "heads": previous, "positions": elsewhere},
        "other head of layer 0, at the answer": {
            "layers": 0,
            "heads": 1 - previous,
            "positions": 9,
        },
        "layer 1, at the last letter": {"layers": 1, "positions": 24},
    }


CHANGED = {"the answer": 9, "the letter before it": 8}
"""What is changed in such a text, and its position."""


def copying_texts() -> tuple[Tensor, Tensor]:
    """256 texts of 25 letters, whose first 16 differ and whose last 9 are the first; and all 32 letters, drawn so."""
    drawn = torch.rand(256, 32, generator=torch.Generator().manual_seed(5)).argsort(1)
    return torch.cat([drawn[:, :16], drawn[:, :9]], dim=1), drawn


def by_patching(
    patched: Callable[..., Tensor], model: nn.Module, previous: int
) -> dict[tuple[str, str], float]:
    """What was changed, and what was patched from the unchanged run → mean probability of the answer, at position 9.

    Args:
        patched: the model, the changed texts, the recorded run, and arguments of `acts.patch` → probabilities.
    """
    text, drawn = copying_texts()
    with record_activations(model) as run, torch.no_grad():
        model(text)
    found = {}
    for name, place in CHANGED.items():
        changed = text.clone()
        changed[:, place] = drawn[:, 20]  # a letter that stands nowhere else
        for part, where in places(previous).items():
            p = patched(model, changed, run, where)
            found[name, part] = p[range(len(text)), text[:, 9]].mean().item()
    return found


@torch.no_grad()
def answer_without(model: nn.Module, changed: list[int]) -> float:
    """Probability of the answer in the texts of `places`, if the letters at these positions are changed."""
    ids, drawn = copying_texts()
    ids[:, changed] = drawn[:, 20 : 20 + len(changed)]  # letters that stand nowhere else
    return model(ids)[:, -1].softmax(-1)[range(256), drawn[:, 9]].mean().item()


@torch.no_grad()
def accuracies(model: nn.Module, ids: Tensor, lengths: Tensor) -> dict[str, tuple[float, float]]:
    """All cuts → loss and accuracy from the second letter of the second block on."""
    pair = look(model, ids, lengths).pair
    cut = erasures(model, ids, pair[0]) | ablations(model, ids, *pair)
    return {name: measured(logits, ids, lengths) for name, logits in cut.items()}
