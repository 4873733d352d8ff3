"""Live models: trained networks that the course brings along, small enough to answer at once.

`stored` keeps them in data/models and makes a script of one, a bundle. `engine.js` and `models.js` compute with it in a
page. `widgets` says how each widget is called, `cu.live.translator()`, and the script of its name asks and shows:
`parts.js` is what it is drawn with, `form.js` follows what a reader does, and `closer.js`, `lines.js` and `text.js` are
what several models of language share. `widget` is what all have in common, in a notebook and in a page.
"""

from course_utils.kit.live.stored import (
    MODELS,
    bitmap,
    bundle,
    bundled,
    checkpoints_of,
    load_model,
    network_of,
    packed,
    read_card,
    save_model,
    write_card,
)
from course_utils.kit.live.widgets import (
    alignment,
    bert,
    character_gpt,
    colors,
    gpt,
    heads,
    kernel_regression,
    layers,
    learned_head,
    look_up,
    machine,
    memory,
    patches,
    question,
    translator,
    vit,
    words,
)

__all__ = [
    "MODELS",
    "alignment",
    "bert",
    "bitmap",
    "bundle",
    "bundled",
    "character_gpt",
    "checkpoints_of",
    "colors",
    "gpt",
    "heads",
    "kernel_regression",
    "layers",
    "learned_head",
    "load_model",
    "look_up",
    "machine",
    "memory",
    "network_of",
    "packed",
    "patches",
    "question",
    "read_card",
    "save_model",
    "translator",
    "vit",
    "words",
    "write_card",
]
