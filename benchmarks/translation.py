"""Training translators: real target tokens per second, against d2l 1.0.3 and torch.nn.Transformer.

The data are d2l's case in ours: 512 pairs of at most 9 tokens with `<eos>`, batches of 128. As d2l reads the
first lines of a file sorted by length, the shortest of our sentences are taken; the rows named `longer` take
any sentences. Every side does a step of the same kind: forward, loss over the real tokens, backward,
gradients clipped at 1, Adam. d2l and PyTorch's user run in full float32 as ours do.
"""

import contextlib
import io
import math
import random
import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import d2l_models, peers
from benchmarks.timing import Row, Settings, faster, race, rate
from course_utils.data.text import BOS, EOS, PAD, Vocabulary
from course_utils.data.translation import Pair, PairLoader, load_sentences
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.positions import sinusoidal_table
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

STEPS = 9
DROPOUT = 0.2


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

    def ours(self, model: nn.Module) -> Callable[[], None]:
        """A round of our Trainer."""
        loader = PairLoader(self.pairs, self.source, self.target, batch_size=self.batch_size)
        trainer = Trainer(translation_loss(), epochs=self.epochs, lr=0.001, device="cpu")

        def run() -> None:
            with contextlib.redirect_stderr(io.StringIO()):  # its closing line
                trainer.fit(model, loader)

        return run

    def d2ls(self, d2l, build: Callable[..., nn.Module], **options) -> Callable[[], None]:
        """A round of d2l's Trainer."""
        data = d2l_models.Data(self.encoded, steps=STEPS, batch_size=self.batch_size)
        model = build(d2l, *self.sizes, dropout=DROPOUT, **options)
        model(*next(iter(data.loader))[:-1])  # lazy layers get their sizes
        return lambda: d2l_models.fit(d2l, model, data, self.epochs)

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


def size(model: nn.Module) -> str:
    """Number of parameters, in millions."""
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M"


def our_transformer(task: Task, *, norm_first: bool = False) -> Transformer:
    return Transformer(*task.sizes, ffn_dim=64, dropout=DROPOUT, norm_first=norm_first)


def transformer_d2l(settings: Settings, *, longer: bool = False) -> Row:
    """Our Transformer against d2l's."""
    d2l = peers.load("d2l", "d2l.torch")
    task = Task(settings, longer=longer)
    peer = task.d2ls(d2l, d2l_models.transformer)
    padded = len(task.encoded) * STEPS
    return task.row(
        "transformer-d2l-longer" if longer else "transformer-d2l",
        "Transformer against d2l" + (", any sentences" if longer else ""),
        task.ours(our_transformer(task)),
        peer,
        settings,
        target=2.0,
        note=f"{task.tokens / padded:.0%} of the tokens that d2l pads to are real",
    )


def bahdanau_d2l(settings: Settings, *, longer: bool = False, layers: int = 2) -> Row:
    """Our translator with Bahdanau's attention against d2l's."""
    d2l = peers.load("d2l", "d2l.torch")
    task = Task(settings, longer=longer)
    peer = task.d2ls(d2l, d2l_models.bahdanau, layers=layers)
    ours = AttentionTranslator(*task.sizes, dropout=DROPOUT)
    suffix = ("-longer" if longer else "") + ("-one-layer" if layers == 1 else "")
    what = ", any sentences" if longer else ", its layers 1+1" if layers == 1 else ""
    theirs = d2l_models.bahdanau(d2l, *task.sizes, dropout=DROPOUT, layers=layers)
    with torch.no_grad():
        theirs(torch.zeros(1, 2).long(), torch.zeros(1, 2).long(), torch.ones(1))
    return task.row(
        "bahdanau-d2l" + suffix,
        "Bahdanau's model against d2l" + what,
        task.ours(ours),
        peer,
        settings,
        target=2.0 if layers == 2 else None,
        note=f"ours: {size(ours)} parameters, bidirectional encoder; d2l: {size(theirs)}, "
        f"{layers}+{layers} layers",
    )


class PlainTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions and a head, as its user would write it."""

    def __init__(self, source_size: int, target_size: int):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, 256, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, 256, padding_idx=PAD)
        self.register_buffer("table", sinusoidal_table(128, 256))
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            256, 4, 2, 2, dim_feedforward=64, dropout=DROPOUT, batch_first=True
        )
        self.head = nn.Linear(256, target_size)

    def embed(self, embedding: nn.Embedding, tokens: Tensor) -> Tensor:
        return self.dropout(embedding(tokens) * math.sqrt(256) + self.table[: tokens.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        hidden = self.transformer(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.head(hidden)


def plain_run(task: Task, batches, model: nn.Module) -> Callable[[], None]:
    """A plain training loop over (source, target_in, target_out)."""
    model.train()

    def run() -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
        for _ in range(task.epochs):
            total = 0.0
            for source, target_in, target_out in batches():
                logits = model(source, target_in)
                loss = F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                total += loss.item()

    return run


def transformer_torch(settings: Settings, *, bucketed: bool = False) -> Row:
    """Our Transformer against torch.nn.Transformer."""
    task = Task(settings)

    def collate(pairs):
        def padded(rows):
            return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

        return (
            padded([[*source, EOS] for source, _ in pairs]),
            padded([[BOS, *target] for _, target in pairs]),
            padded([[*target, EOS] for _, target in pairs]),
        )

    if bucketed:
        loader = PairLoader(task.pairs, task.source, task.target, batch_size=task.batch_size)

        def batches():
            return ((batch.source, batch.target_in, batch.target_out) for batch in loader)
    else:
        shuffled = DataLoader(task.encoded, task.batch_size, shuffle=True, collate_fn=collate)

        def batches():
            return shuffled

    return task.row(
        "transformer-torch" + ("-bucketed" if bucketed else ""),
        "Transformer against nn.Transformer" + (", our batches" if bucketed else ""),
        task.ours(our_transformer(task)),
        plain_run(task, batches, PlainTransformer(*task.sizes)),
        settings,
        target=None if bucketed else 1.2,
        note="both on batches of similar length"
        if bucketed
        else "theirs: shuffled batches padded to their longest, loss over all positions but padding",
    )


def matmul_share(settings: Settings) -> Row:
    """Floating-point operations of training per second, beside those of a bare matrix product."""
    task = Task(settings)
    run = task.ours(our_transformer(task))
    with FlopCounterMode(display=False) as counter:
        run()
    operations = counter.get_total_flops()
    rows = task.batch_size * (round(task.tokens / len(task.encoded)) + 1)
    a, b = torch.randn(rows, 256), torch.randn(256, 256)
    product = 2 * rows * 256 * 256
    times = 10 if settings.tiny else operations // product

    def multiply() -> None:
        for _ in range(times):
            a @ b

    mine, bare = race(run, multiply, settings)
    return Row(
        "matmul-share",
        "Training, beside a bare matrix product",
        "GFLOP/s",
        ours=rate(operations, mine) / 1e9,
        peer=rate(product * times, bare) / 1e9,
        ratio=statistics.median(
            (operations / t) / (product * times / u) for t, u in zip(mine, bare, strict=True)
        ),
        target=0.45,
        note=f"({rows} × 256) @ (256 × 256), what most of the model's products look like; "
        f"{operations / task.epochs / 1e9:.1f} GFLOP an epoch",
    )


ROWS = {
    "transformer-d2l": transformer_d2l,
    "transformer-d2l-longer": lambda settings: transformer_d2l(settings, longer=True),
    "bahdanau-d2l": bahdanau_d2l,
    "bahdanau-d2l-longer": lambda settings: bahdanau_d2l(settings, longer=True),
    "bahdanau-d2l-one-layer": lambda settings: bahdanau_d2l(settings, layers=1),
    "transformer-torch": transformer_torch,
    "transformer-torch-bucketed": lambda settings: transformer_torch(settings, bucketed=True),
    "matmul-share": matmul_share,
}
