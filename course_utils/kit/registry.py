"""Checks and explorers of all lessons, reached by name: `cu.checks.my_mask`, `cu.explore.kernel_width`.

A name is that of the variable in the lesson's `checks.py`, or of the function in its `explorer.py`. The files are
imported when a name is first asked for.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

from course_utils.files import LESSONS
from course_utils.kit.check import Check


class Registry:
    """The objects that all lessons define in files of one name, as attributes.

    Args:
        name: how notebooks reach it, for messages.
        file: the file's name in a lesson's folder, without `.py`.
        offered: a function that gives the objects of a file by name, from the chapter's slug and the module.
    """

    def __init__(
        self, name: str, file: str, offered: Callable[[str, ModuleType], Mapping[str, Any]]
    ) -> None:
        self._name, self._file, self._offered = name, file, offered
        self._known: dict[str, Any] = {}

    def _all(self) -> dict[str, Any]:
        """The objects of all lessons, by name.

        Raises:
            ValueError: if two lessons offer the same name.
        """
        if not self._known:
            values: dict[str, Any] = {}
            for path in sorted(LESSONS.glob(f"*/{self._file}.py")):
                slug = path.parent.name
                module = import_module(f"course_utils.lessons.{slug}.{self._file}")
                for name, value in self._offered(slug, module).items():
                    if name in values:
                        raise ValueError(
                            f"{module.__name__} defines {name!r}; so does another lesson"
                        )
                    values[name] = value
            self._known = values
        return self._known

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Jupyter asks every object for names such as _repr_html_
            raise AttributeError(name)
        known = self._all()
        if name in known:
            return known[name]
        close = get_close_matches(name, known)
        others = (
            f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(sorted(known))}"
        )
        raise AttributeError(f"{self._name} has no {name!r}; {others}")

    def __dir__(self) -> list[str]:
        return sorted(self._all())


def named_checks(chapter: str, module: ModuleType) -> dict[str, Check]:
    """The checks of a lesson by the names of their variables; each is told its name and its chapter."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, Check)}
    for name, check in found.items():
        check.name, check.chapter = name, chapter
    return found


def _listed(_: str, module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


checks = Registry("cu.checks", "checks", named_checks)
explore = Registry("cu.explore", "explorer", _listed)
