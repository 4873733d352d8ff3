"""Live models: trained networks that the course brings along, small enough to answer at once.

`stored` keeps them in data/models. `bundle` makes a script of one, `engine.js` and `others.js` compute with it in a
page, and a widget such as `translator` asks and shows.
"""

from course_utils.lessons.live.bundle import bundle, restored
from course_utils.lessons.live.stored import MODELS, StoredModel, load_model, save_model

__all__ = ["MODELS", "StoredModel", "bundle", "load_model", "restored", "save_model"]
