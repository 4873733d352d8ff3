"""Small readers of verbs, trained side by side, each with its rate, its sentences and its first weights."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.attention import MultiHeadAttention
from course_utils.lessons.multi_head_attention.tasks import (
    NOUNS,
    WORDS,
    Sentences,
    VerbReader,
    sentences,
)
from course_utils.recording import record_attention

BATCH = 64


class ReadersSideBySide:
    """A reader for each rate and seed, trained as `train_reader` would train it alone.

    Args:
        objects: as in `sentences`.
        num_heads: of each reader.
        rates, seeds: each rate goes with each seed, the seeds of a rate one after another.

    Attributes:
        choices: (rate, seed) of each reader.
    """

    def __init__(
        self, objects: str, num_heads: int, *, rates: Sequence[float], seeds: Sequence[int]
    ):
        self.choices = list(itertools.product(rates, seeds))
        self.readers = []
        for _, seed in self.choices:
            torch.manual_seed(seed)
            self.readers.append(VerbReader(MultiHeadAttention(32, num_heads)))
        self.weights, _ = stack_module_state(self.readers)
        self.rates = torch.tensor([rate for rate, _ in self.choices])
        self.optimizer = torch.optim.Adam(self.weights.values(), lr=1.0)
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.train, self.unseen = zip(
            *(sentences(objects, seed=seed) for seed in seeds), strict=True
        )

    def step(self) -> None:
        """A step of each reader, on a batch of its own."""
        batch = self._for_all(
            [
                part[torch.randint(len(part.tokens), (BATCH,), generator=generator)]
                for part, generator in zip(self.train, self.generators, strict=True)
            ]
        )
        logits, labels = self._logits(batch).flatten(0, 2), batch.nouns.flatten()
        loss = F.cross_entropy(logits, labels, reduction="sum") / (2 * BATCH)
        self.optimizer.zero_grad()
        loss.backward()
        before = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.optimizer.step()  # at rate 1; of an update of Adam, each reader takes the part that is its rate
        with torch.no_grad():
            for name, weight in self.weights.items():
                part = self.rates.view(-1, *[1] * (weight.dim() - 1))
                weight.copy_(before[name].lerp(weight, part))

    @torch.no_grad()
    def shares_right(self) -> list[float]:
        """Share of unseen sentences with both nouns right, for each reader."""
        batch = self._for_all(self.unseen)
        right = self._logits(batch).argmax(dim=-1) == batch.nouns
        return right.all(dim=-1).float().mean(dim=-1).tolist()

    def weights_on_nouns(self) -> list[Tensor]:
        """Weights of head 0 on subject and object of unseen sentences, (sentences, 2), for each reader."""
        found = []
        for index, reader in enumerate(self.readers):
            reader.load_state_dict({name: weight[index] for name, weight in self.weights.items()})
            found.append(weights_on_nouns(reader, self.unseen[index % len(self.unseen)]))
        return found

    def _for_all(self, by_seed: Sequence[Sentences]) -> Sentences:
        """A batch for each seed → one for each reader, with a first axis for the readers."""
        fields = ("tokens", "lengths", "verbs", "nouns")
        repeats = len(self.readers) // len(by_seed)
        return Sentences(
            *(
                torch.stack([getattr(batch, field) for batch in by_seed] * repeats)
                for field in fields
            )
        )

    def _logits(self, batch: Sentences) -> Tensor:
        """(readers, batch, 2, nouns), each reader on its own sentences."""

        def of_one(weights: dict[str, Tensor], *fields: Tensor) -> Tensor:
            return functional_call(self.readers[0], weights, (Sentences(*fields),))

        with sdpa_kernel(SDPBackend.MATH):  # the only one that can be stacked
            return vmap(of_one)(self.weights, batch.tokens, batch.lengths, batch.verbs, batch.nouns)


@torch.no_grad()
def weights_on_nouns(reader: VerbReader, batch: Sentences) -> Tensor:
    """(batch, 2): the weight of head 0 on the subject and on the object."""
    with record_attention(reader) as maps:
        reader(batch)
    (weights,) = maps.values()  # (batch, heads, 1, LENGTH)
    words = torch.tensor([WORDS.index(noun) for noun in NOUNS])
    is_noun = batch.tokens[:, None] == words[batch.nouns][..., None]  # (batch, 2, LENGTH)
    return (weights[:, 0] * is_noun).sum(dim=-1)
