"""Training translators: real target tokens per second, against d2l 1.0.3 and torch.nn.Transformer.

The data are d2l's case in ours: 512 pairs of at most 9 tokens with `<eos>`, batches of 128. As d2l reads the
first lines of a file sorted by length, the shortest of our sentences are taken; the rows named `longer` take
any sentences. Every side takes the same steps (`timing.training`): forward, mean loss over the real tokens,
backward, gradients clipped at 1, PyTorch's Adam, float32. The models have the same sizes and dropout.
"""

import random
from collections.abc import Callable, Iterable

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

from benchmarks import d2l_models, peers
from benchmarks.plain_models import PlainTransformer
from benchmarks.timing import Row, Settings, faster, race, rate, size, training
from course_utils.data.text import PAD, Vocabulary
from course_utils.data.translation import Batch, Pair, PairLoader, collate, load_sentences
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.train.losses import translation_loss

STEPS = 9
DROPOUT = 0.2
WIDTH = 256


class Task:
    """The pairs, their vocabularies and ids, and how long a round is."""

    def __init__(self, settings: Settings, *, longer: bool = False):
        count, self.epochs = (16, 1) if settings.tiny else (512, 3)
        pairs = [
            pair
            for pair in load_sentences("fr")
            if len(pair.source) < STEPS and len(pair.target) < STEPS
        ]
        if longer:
            pairs = random.Random(0).sample(pairs, count)
        self.pairs: list[Pair] = sorted(pairs, key=lambda pair: len(pair.source))[:count]
        self.source = Vocabulary((pair.source for pair in self.pairs), min_freq=2)
        self.target = Vocabulary((pair.target for pair in self.pairs), min_freq=2)
        self.sizes = len(self.source), len(self.target)
        self.encoded = [
            (self.source.encode(pair.source), self.target.encode(pair.target))
            for pair in self.pairs
        ]
        self.tokens = sum(len(target) + 1 for _, target in self.encoded)  # real ones, with <eos>
        self.batch_size = min(128, count // 2)
        self.by_length = PairLoader(
            self.pairs, self.source, self.target, batch_size=self.batch_size
        )
        self.shuffled = DataLoader(self.encoded, self.batch_size, shuffle=True, collate_fn=collate)

    def transformer(self, *, dropout: float = DROPOUT) -> Transformer:
        """Ours, at the sizes of d2l's."""
        return Transformer(
            *self.sizes, embed_dim=WIDTH, ffn_dim=64, dropout=dropout, norm_first=False
        )

    def round(
        self,
        model: nn.Module,
        batches: Iterable | None = None,
        loss: Callable[[nn.Module, Batch], Tensor] | None = None,
    ) -> Callable[[], None]:
        """A round of ours: batches of similar length, logits of real tokens only."""
        batches = self.by_length if batches is None else batches
        return training(model, lambda: batches, loss or real_loss, epochs=self.epochs)

    def d2ls(self, model: nn.Module) -> Callable[[], None]:
        """A round of d2l's model, on d2l's batches with d2l's loss."""
        batches = d2l_models.loader(self.encoded, steps=STEPS, batch_size=self.batch_size)
        model(*next(iter(batches))[:-1])  # lazy layers get their sizes
        return training(model, lambda: batches, d2l_models.batch_loss, epochs=self.epochs)

    def row(self, name: str, what: str, ours, peer, settings: Settings, **options) -> Row:
        """Real target tokens per second of both."""
        mine, theirs = race(ours, peer, settings)
        amount = self.tokens * self.epochs
        return Row(
            name,
            what,
            "real tokens/s",
            ours=rate(amount, mine),
            peer=rate(amount, theirs),
            ratio=faster(mine, theirs),
            **options,
        )


# Losses -----------------------------------------------------------------------------------------

_summed = translation_loss()


def real_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The library's loss: the output layer sees real tokens only."""
    total, count = _summed(model, batch)
    return total / count


def padded_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The same number, but padding is turned into logits, too, and then ignored."""
    logits = model(batch.source, batch.source_lens, batch.target_in)
    return F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD)


# Against peers ----------------------------------------------------------------------------------


def transformer_d2l(settings: Settings, *, longer: bool = False) -> Row:
    """Our Transformer against d2l's."""
    d2l = peers.load("d2l", "d2l.torch")
    task = Task(settings, longer=longer)
    ours = task.transformer()
    theirs = d2l_models.transformer(d2l, *task.sizes, dropout=DROPOUT)
    peer = task.d2ls(theirs)
    real = task.tokens / (len(task.encoded) * STEPS)
    return task.row(
        "transformer-d2l-longer" if longer else "transformer-d2l",
        "Transformer against d2l" + (", any sentences" if longer else ""),
        task.round(ours),
        peer,
        settings,
        target=1.3 if longer else 1.4,
        note=f"parameters: ours {size(ours)}, d2l {size(theirs)}; {real:.0%} of the tokens that d2l "
        "pads to are real",
    )


def bahdanau_d2l(
    settings: Settings, *, longer: bool = False, our_layers: int = 1, their_layers: int = 2
) -> Row:
    """Our translator with Bahdanau's attention against d2l's.

    Ours has the paper's encoder, one layer in both directions; the book's has two layers in one, and
    nearly as many parameters. Two rows give both the same number of layers.
    """
    d2l = peers.load("d2l", "d2l.torch")
    task = Task(settings, longer=longer)
    ours = AttentionTranslator(
        *task.sizes, embed_dim=WIDTH, hidden_dim=WIDTH, num_layers=our_layers, dropout=DROPOUT
    )
    theirs = d2l_models.bahdanau(d2l, *task.sizes, dropout=DROPOUT, layers=their_layers)
    peer = task.d2ls(theirs)
    equal = our_layers == their_layers
    return task.row(
        "bahdanau-d2l" + ("-longer" if longer else "") + (f"-layers-{our_layers}" if equal else ""),
        "Bahdanau's model against d2l"
        + (", any sentences" if longer else "")
        + (f", layers: {our_layers}" if equal else ""),
        task.round(ours),
        peer,
        settings,
        target=None if longer or equal else 1.4,
        note=f"layers: ours {our_layers}, its encoder in both directions, d2l {their_layers}; "
        f"parameters: ours {size(ours)}, d2l {size(theirs)}",
    )


def transformer_torch(settings: Settings, *, by_length: bool = False) -> Row:
    """Our Transformer against torch.nn.Transformer."""
    task = Task(settings)
    batches = task.by_length if by_length else task.shuffled
    plain = PlainTransformer(
        *task.sizes, width=WIDTH, heads=4, ffn_dim=64, layers=2, dropout=DROPOUT
    )
    return task.row(
        "transformer-torch" + ("-by-length" if by_length else ""),
        "Transformer against nn.Transformer" + (", our batches" if by_length else ""),
        task.round(task.transformer()),
        task.round(plain, batches, padded_loss),
        settings,
        target=1.1 if by_length else None,
        note="both on batches of similar length"
        if by_length
        else "theirs: shuffled batches padded to their longest, loss over all positions but padding",
    )


ROWS = {
    "transformer-d2l": transformer_d2l,
    "transformer-d2l-longer": lambda settings: transformer_d2l(settings, longer=True),
    "bahdanau-d2l": bahdanau_d2l,
    "bahdanau-d2l-longer": lambda settings: bahdanau_d2l(settings, longer=True),
    "bahdanau-d2l-layers-1": lambda settings: bahdanau_d2l(settings, their_layers=1),
    "bahdanau-d2l-layers-2": lambda settings: bahdanau_d2l(settings, our_layers=2),
    "transformer-torch": transformer_torch,
    "transformer-torch-by-length": lambda settings: transformer_torch(settings, by_length=True),
}
