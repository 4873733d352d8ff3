"""What belongs to the chapters: three small engines, and one folder for each chapter.

`check`, `explorer` (with `painting`, `panel` and `page`), `quiz` and `runs` are the engines. A chapter's
folder has its slug for a name and holds its `checks.py`, `explorer.py`, `quiz.toml` and what only it needs.
"""

from importlib import import_module
from pathlib import Path


class Collection:
    """What the lessons define under one file name: `cu.checks.softmax`, `cu.explore.temperature`.

    A file says in its `__all__` what it offers. It is imported when one of its names, or a name that
    stands in none of the files before it, is first asked for.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str):
        if not name.startswith("_"):
            for module in self._modules():
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"{self._name} has no {name!r}; there are {', '.join(dir(self))}")

    def __dir__(self) -> list[str]:
        return sorted(name for module in self._modules() for name in module.__all__)

    def _modules(self):
        for file in sorted(Path(__file__).parent.glob(f"*/{self._name}.py")):
            yield import_module(f"{__name__}.{file.parent.name}.{self._name}")


checks = Collection("checks")
explore = Collection("explorer")
