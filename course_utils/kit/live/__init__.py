"""Live models: trained networks that the course brings along, small enough to answer at once in a reader's browser.

`bundles` makes a script of a stored model and its card. `widget` is what all live widgets have in common, and
`widgets` has a function for each kind of them, `cu.live.translator()`. The rest is JavaScript:

    engine.js, models.js   networks without a library, with PyTorch's names for the weights
    learning.js            a GPT that is trained in the page
    parts.js, grid.js      controls, maps, tables, plots
    form.js                a form: what a reader does, and its state in an address
    text.js, lines.js      tokens, and the lines between words
    closer.js              how a number was computed, tours, checkpoints
    widgets/<kind>.js      one widget: `state`, `html` and `mount`
    boot.js                loads a widget of the book when a reader comes near
"""

from course_utils.kit.live.bundles import bundle, bundled
from course_utils.kit.live.widget import KINDS
from course_utils.kit.live.widgets import *  # noqa: F403  # a function for each kind of widget
from course_utils.kit.stored_model import MODELS, load_model, read_card

__all__ = [
    "MODELS",
    "bundle",
    "bundled",
    "load_model",
    "read_card",
    *KINDS,
]
