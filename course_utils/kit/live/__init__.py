"""Live models: trained networks that the course brings along, small enough to answer at once.

`stored` keeps them in data/models. `packing` and `bundles` make a script of one, `engine.js` and `others.js` compute
with it in a page, and each script in `widgets` is a widget that asks and shows: the Python file of its name says how it
is called, `cu.live.translator()`, and what it loads. `widget` is what all have in common, `parts.js` what they are
drawn with, `begin.js` brings a form to life, `panel` is what Lab needs.
"""

from course_utils.kit.live.bundles import bundle, bundled, packed
from course_utils.kit.live.packing import network_of, restored
from course_utils.kit.live.stored import (
    MODELS,
    StoredModel,
    load_model,
    save_model,
    tell,
    told,
    trained,
)
from course_utils.kit.live.widgets.alignment import alignment
from course_utils.kit.live.widgets.bert import bert
from course_utils.kit.live.widgets.character_gpt import character_gpt
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
    "bundled",
    "character_gpt",
    "gpt",
    "heads",
    "kernel_regression",
    "learned_head",
    "load_model",
    "look_up",
    "network_of",
    "packed",
    "restored",
    "save_model",
    "tell",
    "told",
    "trained",
    "translator",
    "vit",
]
