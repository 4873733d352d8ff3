"""Training of a Transformer that a reader has written: three epochs on the sentences of the small world.

*The Transformer* trains its class with it, and its stored runs do so for other seeds, rates and sizes of the parts.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from course_utils.data.text import EOS, pad
from course_utils.decoding import translate
from course_utils.lessons.sequence_to_sequence.small_world import small_world
from course_utils.lessons.transformer.blocks import in_package_names
from course_utils.lessons.transformer.machine import SUBLAYERS, relative_sizes
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.history import History
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

EPOCHS, RATE, WARMUP = 3, 0.007, 50
SHAPE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2}


def vocabulary_sizes() -> tuple[int, int]:
    """Numbers of English and French tokens of the small world."""
    world = small_world("fr")
    return len(world.source_vocab), len(world.target_vocab)


def train(model: nn.Module, seed: int = 0, rate: float = RATE) -> History:
    """Train a translator for three epochs, as *Translating* does for nine.

    Args:
        model: called as `cu.Transformer` is, with its `features` and its `output`.
        seed: of the order of the sentences.
        rate: the learning rate.
    """
    world = small_world("fr")
    loader = world.loader(world.train, seed=seed)
    schedule = warmup_decay(WARMUP, EPOCHS * len(loader))
    trainer = Trainer(
        translation_loss(), epochs=EPOCHS, lr=rate, schedule=schedule, seed=seed, quiet=True
    )
    return trainer.fit(model, loader, world.loader(world.val, shuffle=False))


def in_package(model: nn.Module) -> Transformer:
    """The library's Transformer with the weights of the chapter's model, which has the sizes of `SHAPE`."""
    package = Transformer(*vocabulary_sizes(), dropout=0.0, **SHAPE)
    package.load_state_dict(in_package_names(model.state_dict()))
    return package


def say(model: nn.Module, lines: Sequence[str]) -> list[str]:
    """French of some English lines, as a model of the chapter translates them.

    The library's model decodes with its weights, because it keeps keys and values from step to step.
    """
    world = small_world("fr")
    words = world.source_vocab, world.target_vocab
    return translate(in_package(model), list(lines), *words, max_len=20)


def exactly_right(model: nn.Module) -> float:
    """Share of the 400 test sentences that are translated word for word as the grammar does."""
    test = small_world("fr").test
    translations = say(model, [" ".join(pair.source) for pair in test])
    references = [" ".join(pair.target) for pair in test]
    return sum(a == b for a, b in zip(translations, references, strict=True)) / len(test)


def draw_large_rows(model: nn.Module) -> None:
    """Draw a model's embeddings anew as PyTorch does, with standard deviation 1."""
    model.source_embedding.reset_parameters()
    model.target_embedding.reset_parameters()


class ScaledPositions(nn.Module):
    """Positions times a factor, added to x.

    Args:
        positions: a module that adds positions to x.
        scale: the factor.
    """

    def __init__(self, positions: nn.Module, scale: float):
        super().__init__()
        self.positions, self.scale = positions, scale

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """(batch, n, embed_dim) → the same shape; the first vector stands at position `start`."""
        return x + self.scale * (self.positions(x, start=start) - x)


class Scale(nn.Module):
    """A layer that multiplies its input by a factor."""

    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        """(…) → the same shape."""
        return self.scale * x


def scale_positions(model: nn.Module, scale: float) -> None:
    """Multiply a model's positions by a factor; 0 ablates them."""
    if scale != 1:
        model.positions = ScaledPositions(model.positions, scale)


def scale_sublayers(model: nn.Module, scale: float) -> None:
    """Multiply what each attention and network of a model adds by a factor."""
    residuals = [module for module in model.modules() if hasattr(module, "norm_first")]
    for residual in residuals:
        residual.dropout = nn.Sequential(residual.dropout, Scale(scale))


def mean_relative_size(model: nn.Module) -> float:
    """‖f(x)‖ / ‖x‖, on average over the attentions and networks f of a model, on 100 validation sentences."""
    package = in_package(model).eval()
    package.positions = model.positions
    world = small_world("fr")
    pairs = world.val[:100]
    batch = pad([[*world.source_vocab.encode(pair.source), EOS] for pair in pairs])
    french = [world.target_vocab.encode(pair.target) for pair in pairs]
    sizes = relative_sizes(package, *batch, french)
    return sum(sizes[part] for part in SUBLAYERS) / len(SUBLAYERS)


def new_model(kind: type[nn.Module], seed: int) -> nn.Module:
    """An untrained model with the sizes of `SHAPE`, of one of the chapter's two classes.

    `WholeTransformer` calls its arguments d, heads, hidden and layers, and has no dropout.
    """
    seed_everything(seed)
    d, heads, hidden, layers = SHAPE.values()
    if kind.__name__ == "WholeTransformer":
        return kind(*vocabulary_sizes(), d=d, heads=heads, hidden=hidden, layers=layers)
    return kind(*vocabulary_sizes(), dropout=0.0, **SHAPE)
