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
    models_in_a_copy,
    network_of,
    packed,
    read_card,
    save_model,
    write_card,
)
from course_utils.kit.live.widget import KINDS
from course_utils.kit.live.widgets import *  # noqa: F403  # a function for each kind of widget

__all__ = [
    "MODELS",
    "bitmap",
    "bundle",
    "bundled",
    "checkpoints_of",
    "load_model",
    "models_in_a_copy",
    "network_of",
    "packed",
    "read_card",
    "save_model",
    "write_card",
    *KINDS,
]
