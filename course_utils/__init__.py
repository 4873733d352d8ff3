"""The one package behind the course: `import course_utils as cu`.

Four shelves, by who opens them. The *library* is read by students: plain PyTorch, a page a subject, each
importing only from those before it.

    files        where the course's files are, writing whole or not at all
    runtime      seeds, the device, a model's mode
    figures      functions from arrays to a picture with an alt text
    pooling      kernels, Nadaraya–Watson regression, the choice of a width
    positions    sinusoidal, learned, rotary and relative positions
    arguments    checks of what attention is given
    cache        KVCache, record_attention
    masks        padding and causal masks, the masked softmax
    fused        PyTorch's fused operator, for any mask
    attention    scoring functions, multi-head attention
    interventions  forbid a look, take a part away, exchange it for that of another run
    layers       the blocks: feed-forward, residual with its norm, encoder and decoder layers
    models       recurrent, transformer, language, vision, diffusion, noise
    data         drawn from formulas, read from the folder data/, or fetched (data sets, weights of real models)
    train        losses, schedules, checkpoints, history, the Trainer
    decoding     greedy, beam search, sampling
    metrics      BLEU, accuracy, multiplications

The *kit* is what lessons are made with: checks, questions, explorers, drawings, live models, stored runs. The
*lessons* hold what belongs to a chapter, one folder each, named by its slug. The *studio* makes the notebooks, the
book and the handout.

`cu` has the names that two chapters or more use. Each is imported when it is first asked for, so that
`import course_utils.attention` loads the library's modules before it and nothing else. What one chapter needs, it
imports from its own place.

A terminal whose encoding lacks a letter (Windows' cp1252, for instance) gets the nearest one that it has, so that no
report is lost to a check mark: "+" for ✓ and "x" for ✗.
"""

import codecs as _codecs
import io as _io
import sys as _sys
import unicodedata as _unicodedata
from importlib import import_module as _import_module
from typing import Any as _Any

_ROOMS = {
    "runtime": "seed_everything",
    "figures": "COLORS heatmap show_curves show_heatmaps show_images subplots",
    "kit.drawings": "Arrow Box Cells Circle Drawing Note",
    "pooling": "best_width kernel_weights nadaraya_watson",
    "positions": "LearnedPositions SinusoidalPositions",
    "masks": "causal_mask masked_softmax padding_mask",
    "attention": "AdditiveAttention MultiHeadAttention merge_heads scaled_dot_product_attention "
    "split_heads",
    "cache": "record_attention",
    "interventions": "intervene",
    "layers": "EncoderLayer FeedForward",
    "models.recurrent": "AttentionTranslator",
    "models.transformer": "Transformer",
    "models.language": "BERT GPT",
    "models.vision": "ViT",
    "models.diffusion": "PixelAttention UNet",
    "data.folders": "load_image_folder",
    "data.images": "load_fashion_mnist",
    "data.registry": "fetch",
    "data.regression": "noisy_sine",
    "train.losses": "translation_loss",
    "train.schedules": "warmup_decay",
    "train.trainer": "Trainer",
    "decoding": "greedy translate",
    "metrics": "bleu multiply_adds",
    "kit.registry": "checks explore",
    "kit.doctor": "doctor",
    "kit.guard": "guard",
    "kit.equal": "equal",
    "kit.live": "load_model",
    "kit.progress": "choose progress",
    "kit.predict": "predict",
    "kit.quiz": "quiz recall",
    "kit.sanity_checks": "before_training",
    "kit.runs": "stored_run stored_runs",
    "kit.stages": "stages",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = {"live": "kit.live"}  # not a name in a room, but a room

__all__ = sorted([*_ROOM_OF, *_MODULES])


def __getattr__(name: str) -> _Any:
    """A name of a room, imported when it is first asked for."""
    if name in _MODULES:
        value = _import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _ROOM_OF:
        value = getattr(_import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


_NEAREST = {
    "✓": "+", "✗": "x", "·": ".", "○": "o", "→": "->", "−": "-", "–": "-", "×": "x", "⁄": "/",
    "“": '"', "”": '"', "‘": "'", "’": "'", "√": "sqrt ", "≤": "<=", "≥": ">=",
}  # fmt: skip


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """What to write for letters that an encoding lacks: ASCII that looks like them, or a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = ""
    for letter in error.object[error.start : error.end]:
        parts = [_NEAREST.get(part, part) for part in _unicodedata.normalize("NFKD", letter)]
        text += "".join(part for part in parts if part.isascii()) or "?"
    return text, error.end


_codecs.register_error("nearest", _nearest)
if isinstance(_sys.stdout, _io.TextIOWrapper) and _sys.stdout.errors in (
    "strict",
    "surrogateescape",
):
    _sys.stdout.reconfigure(errors="nearest")
