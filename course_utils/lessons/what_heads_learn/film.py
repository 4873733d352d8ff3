"""The film of *What heads learn*: a model's two maps while it learns, as small numbers that can be stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.lessons.what_heads_learn.circuits import (
    LETTERS,
    look,
    on_diagonal,
    ov_map,
    qk_map,
)

EVERY, UNTIL = 5, 200
"""Steps from one frame to the next, and the last one of the film."""
LEVELS = 16


def levels(matrix: Tensor) -> str:
    """A map as text, a hexadecimal digit for each entry: each row from its mean, 0, to its largest entry, f.

    A softmax sees only differences within a row, and one scale for a whole film would hide its beginning.
    """
    above = matrix - matrix.mean(-1, keepdim=True)
    shades = (above / above.amax(-1, keepdim=True)).clamp(0, 1).mul(LEVELS - 2).round().long()
    shades = shades.scatter(-1, matrix.argmax(-1, keepdim=True), LEVELS - 1)
    return "".join(f"{shade:x}" for shade in shades.flatten().tolist())


def shades(text: str) -> Tensor:
    """The levels of a map, (32, 32), from the text of `levels`."""
    return torch.tensor([int(digit, LEVELS) for digit in text]).view(len(LETTERS), -1)


@dataclass
class Film:
    """Watches a training: call it with the step and the model, and ask for its `frames` at the end.

    Attributes:
        ids, lengths: the texts on which it measures, (n, 48), and the lengths of their blocks, (n, 1).
        every, until: a map is kept each so many steps up to this one; the losses are kept to the end.
        qk_map, ov_map: the functions that read the maps.
    """

    ids: Tensor
    lengths: Tensor
    qk_map: Callable[[nn.Module, int, int], Tensor] = qk_map
    ov_map: Callable[[nn.Module, int], Tensor] = ov_map
    every: int = EVERY
    until: int = UNTIL
    rows: list[dict] = field(default_factory=list)

    @torch.no_grad()
    def __call__(self, step: int, model: nn.Module) -> None:
        """Look at the model, if this is a step to look at."""
        in_film = step <= self.until
        if step % (self.every if in_film else 4 * self.every):
            return
        logits = model(self.ids[:, :-1])
        loss, accuracy = measured(logits, self.ids, self.lengths)
        heads = look(model, self.ids[:64], self.lengths[:64])
        row = {"step": step, "loss": loss, "accuracy": accuracy, "heads": heads}
        row["by followers"] = by_followers(logits, self.ids, self.lengths)
        if in_film and len(model.layers) > 1:
            pairs = [(a, b) for a in range(2) for b in range(2)]
            row["qk"] = {pair: self.qk_map(model, *pair) for pair in pairs}
            row["ov"] = [self.ov_map(model, b) for b in range(2)]
        self.rows.append(row)

    @property
    def pair(self) -> tuple[int, int]:
        """The heads that the film shows, one of each layer: those that the training ends with."""
        return self.rows[-1]["heads"].pair

    def frames(self) -> list[dict]:
        """The film, as JSON can hold it: step, loss, accuracy, weight on the letter before, and both maps."""
        (a, b), found = self.pair, []
        for row in self.rows:
            frame = {key: round(row[key], 3) for key in ("step", "loss", "accuracy")}
            frame["before"] = round(row["heads"].before[a], 3)
            if "qk" in row:
                qk, ov = row["qk"][a, b], row["ov"][b]
                frame |= {"qk": levels(qk), "ov": levels(ov)}
            found.append(frame)
        return found


@torch.no_grad()
def copied(model: nn.Module, ids: Tensor, lengths: Tensor) -> tuple[float, float]:
    """Loss and accuracy of a model from the second letter of the second block on."""
    return measured(model(ids[:, :-1]), ids, lengths)


def measured(logits: Tensor, ids: Tensor, lengths: Tensor) -> tuple[float, float]:
    """Loss and accuracy of logits (n, 47, 32) from the second letter of the second block on."""
    targets, asked = ids[:, 1:], torch.arange(1, ids.shape[1]) > lengths
    each = F.cross_entropy(logits.mT, targets, reduction="none")
    right = logits.argmax(-1) == targets
    return each[asked].mean().item(), right[asked].float().mean().item()


def by_followers(logits: Tensor, ids: Tensor, lengths: Tensor) -> tuple[float, float]:
    """Accuracy where a letter had one follower so far, and where it had several: as `measured`."""
    asked, right = torch.arange(1, ids.shape[1]) > lengths, logits.argmax(-1) == ids[:, 1:]
    several = several_followers(ids)
    one, more = (right[asked & which].float().mean().item() for which in (~several, several))
    return one, more


def several_followers(ids: Tensor) -> Tensor:
    """(n, 48) → (n, 47): whether the same letter has been followed by another letter before than it is now."""
    now, follows = ids[:, :-1], ids[:, 1:]
    same = (now[:, :, None] == now[:, None]).tril(-1)
    return (same & (follows[:, :, None] != follows[:, None])).any(-1)


def which_letters(ids: Tensor, lengths: Tensor) -> float:
    """Loss of a guess that knows how often each letter stands in the block, and nothing of their order."""
    counts = torch.stack([
        torch.bincount(row[:length], minlength=len(LETTERS)) / length
        for row, length in zip(ids, lengths.flatten().tolist(), strict=True)
    ])  # fmt: skip
    asked = torch.arange(1, ids.shape[1]) > lengths
    return -counts.gather(1, ids[:, 1:])[asked].log().mean().item()


def wins(text: str) -> int:
    """In how many rows of a frame's map the diagonal is on top."""
    return on_diagonal(shades(text))


def half_whole(frames: Sequence[dict], name: str) -> dict:
    """The first frame in which half of a map's rows have their largest entry on the diagonal; the last if none has."""
    film = [frame for frame in frames if name in frame]
    return next((frame for frame in film if wins(frame[name]) >= len(LETTERS) // 2), film[-1])
