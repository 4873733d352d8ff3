"""Live models: trained networks that the course brings along, small enough to answer at once.

`stored` keeps them in data/models. `packing` and `bundles` make a script of one, `engine.js` and `others.js` compute
with it in a page, and a widget, such as `cu.live.translator()`, asks and shows. What Lab needs stands in `panel`.
"""

from course_utils.lessons.live.bundles import bundle
from course_utils.lessons.live.packing import restored
from course_utils.lessons.live.stored import MODELS, StoredModel, load_model, save_model
from course_utils.lessons.live.widget import translator

__all__ = [
    "MODELS",
    "StoredModel",
    "bundle",
    "load_model",
    "restored",
    "save_model",
    "translator",
]
