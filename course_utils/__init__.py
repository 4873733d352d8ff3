"""The course's package: `import course_utils as cu`.

It has four shelves. The *library* is what students read: plain PyTorch, a file a subject, each importing only from
those before it.

    terminal     printing where an encoding lacks a letter
    arguments    checks of arguments, with messages that say what is needed
    files        the course's folders, files that are written whole or not at all
    runtime      seeds, the device, training and eval mode
    figures      pictures of arrays, each with an alt text
    pooling      kernels, Nadaraya–Watson regression, the choice of a width
    positions    sinusoidal, learned, rotary and relative positions
    recording    recorded attention weights
    cache        keys and values of earlier tokens, kept while decoding
    masks        padding and causal masks, the masked softmax
    fused        PyTorch's fused operator, for any mask
    attention    scaled dot-product, additive and multi-head attention
    places       the names of activations inside a model
    hooks        reading and changing what stands at a place
    interventions  forbid links, ablate parts, patch activations
    layers       the blocks of Transformers: feed-forward, residual, encoder and decoder layers
    models       recurrent, transformer, language, vision, diffusion, noise
    data         data sets: generated, read from the folder data/, or downloaded; weights of real models
    train        losses, schedules, checkpoints, history, the Trainer
    decoding     greedy and beam search, sampling
    metrics      BLEU, accuracy, counted multiplications

The *kit* is what lessons are made with: checks, questions, explorers, drawings, live models, stored runs. The
*lessons* hold what belongs to one chapter, in a folder with its slug. The *studio* makes the notebooks, the book and
the handout.

`cu` offers the names that two chapters or more use, and imports each when it is first asked for, so that
`import course_utils.attention` loads the modules it needs and no others. What only one chapter needs is imported from
its module.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from course_utils.terminal import print_any_letter as _print_any_letter

_EXPORTS = {  # module → the names it gives to `cu`
    "runtime": "seed_everything",
    "figures": "COLORS heatmap show_curves show_heatmaps show_images subplots",
    "kit.drawings": "Arrow Box Cells Circle Drawing Note",
    "pooling": "best_width kernel_weights nadaraya_watson",
    "positions": "LearnedPositions SinusoidalPositions",
    "masks": "causal_mask masked_softmax padding_mask",
    "attention": "AdditiveAttention MultiHeadAttention merge_heads scaled_dot_product_attention "
    "split_heads",
    "recording": "record_attention",
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
    "kit.stored_model": "load_model",
    "kit.passed": "choose",
    "kit.progress": "progress",
    "kit.predict": "predict",
    "kit.quiz": "quiz recall",
    "kit.sanity_checks": "before_training",
    "kit.runs": "stored_run stored_runs",
    "kit.stages": "stages",
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names.split()}
_PACKAGES = {"live": "kit.live"}

__all__ = sorted([*_MODULE_OF, *_PACKAGES])


def __getattr__(name: str) -> _Any:
    """A name in `__all__`, imported when it is first asked for."""
    if name in _PACKAGES:
        value = _import_module(f"{__name__}.{_PACKAGES[name]}")
    elif name in _MODULE_OF:
        value = getattr(_import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


_print_any_letter()
