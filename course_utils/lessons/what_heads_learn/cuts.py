"""Cuts in the chapter's `Copier`: entries of its QK maps are erased, heads are ablated, and activations patched."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.interventions import intervene, record_activations
from course_utils.lessons.what_heads_learn.circuits import by_hand, look, of_head
from course_utils.lessons.what_heads_learn.film import by_followers, measured
from course_utils.masks import causal_mask
from course_utils.recording import record_attention

ERASED = ("nothing", "the diagonal", "32 others", "equally heavy others", "all 992 others")
"""What `erased` knows to erase, besides `WHOLE`."""
WHOLE = "all 1,024"
"""The whole map: each row is level then, and says nothing."""
READS = ("queries", "keys", "values")
"""What layer 1 makes of what it reads."""
SHOWN = ("nothing", "the diagonal", "all 992 others", WHOLE)
"""What the page shows of these."""
INDUCTION = ("the head of layer 1 in the film", "the other head of layer 1")
BOTH = "both heads of layer 1"

Stream = Callable[[Tensor, list[Tensor]], Tensor]
"""What layer 0 leaves, (batch, n, d), and what each of its heads has added to it → what layer 1 reads."""


@torch.no_grad()
def logits_with(
    model: nn.Module,
    ids: Tensor,
    previous: int = 0,
    change: Callable[[int, Tensor], Tensor] | None = None,
    asks: int | None = None,
    **reads: Stream,
) -> Tensor:
    """The model's logits (batch, n, 32) if its QK maps are changed, or what layer 1 reads, and nothing else.

    A score of layer 1 is a sum over paths. One of them leads from the letter now to the letters that head `previous`
    of layer 0 has brought to a key, and it gives a score the part Σ_k w_jk QK[i, k] / (σ_i σ_j σ_k √head_dim): entries
    of the map, weighted by where that head looks, and divided by what the norms divide by. It gets other entries. In
    another path, head `asks` has brought letters to the query, too, and both sides are weighted.

    Args:
        model: a `Copier` of two layers.
        ids: (batch, n).
        previous: the head of layer 0 whose maps are changed.
        change: a head of layer 1 and its map, as the norms leave it, → what is added to the map's entries.
        asks: the head of layer 0 whose notes ask; by default the letters themselves do.
        reads: "queries", "keys" or "values" → the stream that layer 1 makes them of, in place of its own.
    """
    x, weights, parts = layer_0(model, ids)
    middle, top = x + sum(parts), model.layers[1]
    queries, keys, values = (
        model.norms[1](reads[name](middle, parts) if name in reads else middle) for name in READS
    )
    by = [stream.std(-1, correction=0, keepdim=True) for stream in (x, middle)]
    now = F.one_hot(ids, model.letters.num_embeddings) / by[0]
    noted = weights[:, previous] @ now / by[1]
    asking = now * by[0] / by[1] if asks is None else weights[:, asks] @ now / by[1]
    outputs = []
    for head in range(top.num_heads):
        W_Q, W_K, W_OV = of_head(top, head)
        scores = (queries @ W_Q) @ (keys @ W_K).mT
        if change:
            added = change(head, centered_map(model, previous, head, asks))
            scores = scores + asking @ added @ noted.mT
        scores = scores.masked_fill(~causal_mask(ids.shape[1]), -torch.inf) / top.head_dim**0.5
        outputs.append(scores.softmax(-1) @ values @ W_OV)
    return model.output(model.norm(middle + sum(outputs)))


def layer_0(model: nn.Module, ids: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """What layer 0 gets, (batch, n, d), its weights, (batch, heads, n, n), and what each of its heads adds."""
    x, bottom = model.letters(ids) + model.positions.weight[: ids.shape[1]], model.layers[0]
    y = model.norms[0](x)
    with record_attention(bottom) as maps:
        bottom(y, y, y, is_causal=True)
    weights = maps["attention"]
    heads = range(bottom.num_heads)
    return x, weights, [weights[:, head] @ y @ of_head(bottom, head)[2] for head in heads]


def silent(head: int, at: int | slice = slice(None)) -> Stream:
    """What layer 0 leaves if one of its heads says its mean, at one position or at all: an ablation for one reader."""

    def read(middle: Tensor, parts: list[Tensor]) -> Tensor:
        left = middle.clone()
        left[:, at] += parts[head].mean((0, 1)) - parts[head][:, at]
        return left

    return read


def centered_map(
    model: nn.Module, previous: int, induction: int, asks: int | None = None
) -> Tensor:
    """`qk_map` or `second_map` of vectors from which a norm has subtracted the mean, as while the model runs."""
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    letters, gains = _centered(model.letters.weight), [norm.weight for norm in model.norms]

    def notes(head: int) -> Tensor:
        return _centered(letters * gains[0] @ of_head(model.layers[0], head)[2])

    asking = letters if asks is None else notes(asks)
    return asking * gains[1] @ W_Q @ (notes(previous) * gains[1] @ W_K).T


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


def without_notes(model: nn.Module, ids: Tensor, previous: int) -> dict[str, Tensor]:
    """What is erased of `second_map` → logits for texts (batch, 48), without their last letter."""
    return {
        which: logits_with(model, ids[:, :-1], 1 - previous, erased(which), asks=previous)
        for which in SHOWN
    }


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
        (INDUCTION[0], 1, induction),
        (INDUCTION[1], 1, others[1]),
        (BOTH, 1, [0, 1]),
    ):
        with intervene(model) as acts:
            acts.ablate(layers=layer, heads=heads, by="mean", run=run)
            found[name] = model(ids)
    return found


def places(previous: int) -> dict[str, dict]:
    """What is patched in layer 0, in texts of 25 letters with the answer at position 9: name → what `acts.patch` gets.

    The first changes nothing, because position 0 sees only itself, and is the same in both runs.
    """
    elsewhere = [*range(9), *range(10, 25)]
    other = {"layers": 0, "heads": 1 - previous, "positions": 9}
    return {
        "nothing": {"layers": 0, "positions": 0},
        "previous-token head, at the answer": {"layers": 0, "heads": previous, "positions": 9},
        ELSEWHERE: {"layers": 0, "heads": previous, "positions": elsewhere},
        "other head of layer 0, at the answer": other,
    }


ELSEWHERE = "previous-token head, elsewhere"
PATCHED = (
    "nothing",
    "value of layer 1, at the answer",
    "key of layer 1, at the answer",
    "previous-token head, at the answer",
    "other head of layer 0, at the answer",
)
"""What the page shows of what is patched; it doesn't show `ELSEWHERE`."""
CHANGED = {"the answer": 9, "the letter before it": 8}
"""What is changed in such a text, and its position."""


def copying_texts() -> tuple[Tensor, Tensor]:
    """256 texts of 25 letters, whose first 16 differ and whose last 9 are the first; and all 32 letters, so ordered."""
    drawn = torch.rand(256, 32, generator=torch.Generator().manual_seed(5)).argsort(1)
    return torch.cat([drawn[:, :16], drawn[:, :9]], dim=1), drawn


def by_patching(
    patched: Callable[..., Tensor], model: nn.Module, previous: int
) -> dict[tuple[str, str], float]:
    """What was changed, and what was patched from the unchanged run → mean probability of the answer, at position 9.

    Args:
        patched: the model, the changed texts, the recorded run, and arguments of `acts.patch` → probabilities.
    """
    text, _ = copying_texts()
    with record_activations(model) as run, torch.no_grad():
        model(text)
    back = from_run(model, text)
    found = {}
    for name, place in CHANGED.items():
        changed = with_changed([place])
        for part, where in places(previous).items():
            p = patched(model, changed, run, where)
            found[name, part] = p[range(len(text)), text[:, 9]].mean().item()
        for part in ("value", "key"):
            p = answer(logits_with(model, changed, **{f"{part}s": back}))
            found[name, f"{part} of layer 1, at the answer"] = p
    return found


def from_run(model: nn.Module, ids: Tensor) -> Stream:
    """What layer 0 leaves, at position 9 as in a run on other texts."""
    x, _, parts = layer_0(model, ids)
    there = (x + sum(parts))[:, 9]

    def read(middle: Tensor, _: list[Tensor]) -> Tensor:
        left = middle.clone()
        left[:, 9] = there
        return left

    return read


def note_from(model: nn.Module, ids: Tensor, head: int, at: int) -> Stream:
    """What layer 0 leaves, with what one of its heads says at this position of other texts put at position 9."""
    note = layer_0(model, ids)[2][head][:, at]

    def read(middle: Tensor, parts: list[Tensor]) -> Tensor:
        left = middle.clone()
        left[:, 9] += note - parts[head][:, 9]
        return left

    return read


def with_changed(at: list[int]) -> Tensor:
    """The texts of `copying_texts`, with letters at these positions that occur nowhere else."""
    ids, drawn = copying_texts()
    ids[:, at] = drawn[:, 20 : 20 + len(at)]
    return ids


def answer(logits: Tensor) -> float:
    """Mean probability of the letter at position 9 of `copying_texts`, after their last letter."""
    _, drawn = copying_texts()
    return logits[:, -1].softmax(-1)[range(256), drawn[:, 9]].mean().item()


@torch.no_grad()
def answer_without(model: nn.Module, changed: list[int]) -> float:
    """Probability of the answer in the texts of `places`, if the letters at these positions are changed."""
    return answer(model(with_changed(changed)))


@torch.no_grad()
def one_reader(model: nn.Module, ids: Tensor, lengths: Tensor, previous: int) -> dict[str, float]:
    """What it costs if layer 1 misses a head of layer 0 in its queries, its keys or its values only: accuracies.

    A head is named "previous" or "other". Three more: all the map erased, and the other head silent in the keys, too;
    the map of the other head without its diagonal; and the second map without its diagonal, or with it alone.
    """
    text, found = ids[:, :-1], {}
    for name, head in (("previous", previous), ("other", 1 - previous)):
        for read in READS:
            logits = logits_with(model, text, **{read: silent(head)})
            found[f"{name}, in the {read}"] = measured(logits, ids, lengths)[1]
    erase = erased(WHOLE)
    both = logits_with(model, text, previous, erase, keys=silent(1 - previous))
    found["all 1,024, and other, in the keys"] = measured(both, ids, lengths)[1]
    logits = logits_with(model, text, 1 - previous, erased("the diagonal"))
    found["the diagonal of the other head"] = measured(logits, ids, lengths)[1]
    for which in ("the diagonal", "all 992 others"):
        logits = logits_with(model, text, 1 - previous, erased(which), asks=previous)
        one, several = by_followers(logits, ids, lengths)
        found |= {
            f"second map, {which}, one follower": one,
            f"second map, {which}, several": several,
        }
    return found


@torch.no_grad()
def after_first_fall(
    model: nn.Module, ids: Tensor, lengths: Tensor, previous: int
) -> dict[str, float]:
    """Accuracies of a model that copies where a letter has had one follower.

    Of all letters, without the diagonal, and without the note of the previous-token head in the keys. And where a
    letter has had several followers: of the model, of the circuit by hand, and of the model if layer 1 learns nothing
    of positions in its queries and its keys.
    """
    text, positions = ids[:, :-1], model.positions.weight[: ids.shape[1] - 1]

    def nowhere(middle: Tensor, _: list[Tensor]) -> Tensor:
        return middle - positions + positions.mean(0)

    cut = {
        "the diagonal": logits_with(model, text, previous, erased("the diagonal")),
        "previous, in the keys": logits_with(model, text, keys=silent(previous)),
    }
    logits = {
        "several": model(text),
        "several, by hand": torch.stack([by_hand(row) for row in text]),
        "several, no positions": logits_with(model, text, queries=nowhere, keys=nowhere),
    }
    found = {name: measured(each, ids, lengths)[1] for name, each in cut.items()}
    return found | {name: by_followers(each, ids, lengths)[1] for name, each in logits.items()}


@torch.no_grad()
def second_note(model: nn.Module, previous: int) -> dict[str, float]:
    """Probability of the answer if the letter before it is changed, and a head is silent at one position of layer 1.

    The other head's note is at the answer, in its key; and what the last letter follows is in the last query. And what
    brings the answer back: the previous-token head's note from other texts, with the letter at another position.
    """
    changed, (text, drawn) = with_changed([8]), copying_texts()
    found = {}
    for name, where in {
        "other, in the key": {"keys": silent(1 - previous, 9)},
        "previous, in the query": {"queries": silent(previous, 24)},
        "other, in the query": {"queries": silent(1 - previous, 24)},
    }.items():
        found[name] = answer(logits_with(model, changed, **where))
    draws = torch.Generator().manual_seed(1)
    order = torch.rand(256, 31, generator=draws).argsort(1)
    rest = torch.cat([drawn[:, :8], drawn[:, 9:]], dim=1).gather(1, order)  # without the letter
    donors = torch.cat([rest[:, :4], text[:, 8:9], rest[:, 4:24]], dim=1)
    note = note_from(model, donors, previous, 5)
    return found | {"note from another text": answer(logits_with(model, changed, keys=note))}


@torch.no_grad()
def accuracies(model: nn.Module, ids: Tensor, lengths: Tensor) -> dict[str, tuple[float, float]]:
    """All cuts → loss and accuracy from the second letter of the second block on."""
    pair = look(model, ids, lengths).pair
    cut = erasures(model, ids, pair[0]) | ablations(model, ids, *pair)
    return {name: measured(logits, ids, lengths) for name, logits in cut.items()}
