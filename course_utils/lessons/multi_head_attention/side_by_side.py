"""Readers of verbs in training side by side, as one stack of weights: twenty take little longer than one.

Used by the stored run `verb_readers` of *Multi-head attention*.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.attention import MultiHeadAttention
from course_utils.lessons.multi_head_attention.verbs import (
    BATCH,
    NOUNS,
    WORDS,
    Sentences,
    VerbReader,
    sentences,
)
from course_utils.recording import record_attention


class ReadersSideBySide:
    """A reader for each rate and seed, trained as `train_reader` would train it alone.

    A seed sets the first weights, the sentences and their order.

    Args:
        objects: as in `sentences`.
        num_heads: of each reader.
        rates, seeds: there is a reader for each pair of both, in the order of `itertools.product`.

    Attributes:
        choices: (rate, seed) of each reader.
        readers: the modules; their weights are out of date while they train, and `weights` holds the present ones.
        weights: name → (readers, …), the weights of all readers.
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
        """Take a step of each reader, on a batch of its own."""
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
        self._update_each_at_its_rate()

    def _update_each_at_its_rate(self) -> None:
        """Change all weights by Adam, those of each reader at its own learning rate.

        An optimizer has one rate for a tensor, and here a tensor holds a weight of all readers. Adam's change of a
        weight is proportional to the rate, so the optimizer steps at rate 1, and each reader goes only a part of this
        way: the part that is its rate.
        """
        before = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.optimizer.step()
        with torch.no_grad():
            for name, weight in self.weights.items():
                part = self.rates.view(-1, *[1] * (weight.dim() - 1))  # (readers, 1, …)
                weight.copy_(before[name].lerp(weight, part))

    @torch.no_grad()
    def shares_right(self) -> list[float]:
        """Accuracy on both nouns of unseen sentences, one for each reader."""
        batch = self._for_all(self.unseen)
        right = self._logits(batch).argmax(dim=-1) == batch.nouns
        return right.all(dim=-1).float().mean(dim=-1).tolist()

    def weights_on_nouns(self) -> list[Tensor]:
        """Weights of head 0 on subject and object of unseen sentences: (sentences, 2) for each reader."""
        each = []
        for index, reader in enumerate(self.readers):
            reader.load_state_dict({name: weight[index] for name, weight in self.weights.items()})
            unseen = self.unseen[index % len(self.unseen)]  # those of its seed
            each.append(weights_on_nouns(reader, unseen))
        return each

    def _for_all(self, by_seed: Sequence[Sentences]) -> Sentences:
        """The batches of all seeds as one, whose first axis is that of the readers."""
        by_reader = [*by_seed] * (len(self.readers) // len(by_seed))
        return Sentences(
            tokens=torch.stack([batch.tokens for batch in by_reader]),
            lengths=torch.stack([batch.lengths for batch in by_reader]),
            verbs=torch.stack([batch.verbs for batch in by_reader]),
            nouns=torch.stack([batch.nouns for batch in by_reader]),
        )

    def _logits(self, batch: Sentences) -> Tensor:
        """Logits of each reader for its own sentences: (readers, batch, 2, nouns)."""

        def logits_of_one(weights: dict[str, Tensor], *fields: Tensor) -> Tensor:
            return functional_call(self.readers[0], weights, (Sentences(*fields),))

        with sdpa_kernel(SDPBackend.MATH):  # vmap has no rule for the fused kernels
            return vmap(logits_of_one)(
                self.weights, batch.tokens, batch.lengths, batch.verbs, batch.nouns
            )


@torch.no_grad()
def weights_on_nouns(reader: VerbReader, batch: Sentences) -> Tensor:
    """Weights of head 0 on the subject and on the object: (batch, 2)."""
    with record_attention(reader) as maps:
        reader(batch)
    (weights,) = maps.values()  # (batch, heads, 1, LENGTH)
    words = torch.tensor([WORDS.index(noun) for noun in NOUNS])
    is_noun = batch.tokens[:, None] == words[batch.nouns][..., None]  # (batch, 2, LENGTH)
    return (weights[:, 0] * is_noun).sum(dim=-1)
