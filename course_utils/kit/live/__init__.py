"""Live models: trained networks that the course brings along, small enough to answer at once.

`stored` keeps them in data/models. `packing` and `bundles` make a script of one, `engine.js` and `others.js` compute
with it in a page, and each file in `widgets` is a widget, `cu.live.translator()`, that asks and shows; `widget` is
what all have in common, `parts` what they are drawn with, `panel` what Lab needs.
"""

from course_utils.kit.live.bundles import bundle
from course_utils.kit.live.packing import restored
from course_utils.kit.live.stored import MODELS, StoredModel, load_model, save_model
from course_utils.kit.live.widgets.alignment import alignment
from course_utils.kit.live.widgets.bert import bert
from course_utils.kit.live.widgets.gpt import gpt
from course_utils.kit.live.widgets.heads import heads
from course_utils.kit.live.widgets.kernel_regression import kernel_regression
from course_utils.kit.live.widgets.learned_head import learned_head
from course_utils.kit.live.widgets.look_up import look_up
from course_utils.kit.live.widgets.translator import translator
from course_utils.kit.live.widgets.vit import vit

__all__ = [
    "MODELS",
    "StoredModel",
    "alignment",
    "bert",
    "bundle",
    "gpt",
    "heads",
    "kernel_regression",
    "learned_head",
    "load_model",
    "look_up",
    "restored",
    "save_model",
    "translator",
    "vit",
]
