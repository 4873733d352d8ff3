"""Explorers: pictures that move. A figure drawn once, a few controls, and the same sliders everywhere.

`core` holds what an explorer is; the other files hold one concrete explorer each, named in `EXPLORERS`
and loaded when first asked for: `cu.explore.temperature()`. Above: `figures`. Below: the chapters.
"""

import sys
from importlib import import_module
from types import ModuleType

from course_utils.explore.core import Choice, Explorer, IntRange, Slider, Toggle

EXPLORERS = {
    "alignment": "alignment",
    "first_slider": "first",
    "kernel_width": "kernels",
    "temperature": "temperature",
    "scores": "scores",
    "heads": "heads",
    "positions": "positions",
    "transformer": "transformer",
    "sampling": "language",
    "masks": "language",
    "class_token": "vision",
    "pixels": "pixels",
    "warmup": "training",
}
"""Name of each concrete explorer → the module of this package that holds it. Tests run through it."""

__all__ = ["EXPLORERS", "Choice", "Explorer", "IntRange", "Slider", "Toggle", *EXPLORERS]


def __getattr__(name: str):
    if name not in EXPLORERS:
        raise AttributeError(f"no explorer is called {name!r}; there are {', '.join(EXPLORERS)}")
    return getattr(import_module(f".{EXPLORERS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """A package in which the file `temperature` does not hide the function `temperature`."""

    def __setattr__(self, name: str, value) -> None:
        if name in EXPLORERS and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
