"""An import of `torch._dynamo` that waits until PyTorch's compiler is used.

The first optimizer in a kernel imports `torch._dynamo`, PyTorch's compiler, only to tell it what to leave alone.
That import reads thousands of files: a kernel that takes one step of Adam uses 4.7 seconds of processor time with it,
and 1.7 without (PyTorch 2.13, two cores). Nearly every chapter has an optimizer, and none compiles anything.
So in the course's kernels the import gives a stand-in with the two functions that an optimizer calls. Any other
attribute, as `torch.compile` asks for, loads the real module in its place. Nothing of torch itself is changed.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"


def defer_compiler_import() -> None:
    """Put `import torch._dynamo` off until the compiler is used."""
    sys.meta_path.insert(0, _CompilerFinder())


class _StandIn(ModuleType):
    """A module with the two functions that an optimizer uses; any other attribute turns it into the real module."""

    @staticmethod
    def graph_break() -> None:
        """Do nothing, since nothing is being compiled."""

    @staticmethod
    def disable(function: Callable, *_: Any, **__: Any) -> Callable:
        """The function itself, since nothing is being compiled."""
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what importing looks for
            raise AttributeError(name)
        self.__class__ = ModuleType
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class _CompilerFinder:
    """A finder and loader that gives the stand-in for the compiler, until the real one is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if name == COMPILER:
            spec = PathFinder.find_spec(name, path)
            self.real, spec.loader = spec.loader, self
            return spec
        if name.startswith(f"{COMPILER}.") and type(sys.modules[COMPILER]) is _StandIn:
            sys.modules[COMPILER].config  # noqa: B018  # the package comes before its parts
            if name in sys.modules:
                return ModuleSpec(name, self)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules.get(spec.name) or _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == COMPILER:
            module.__spec__.loader = self.real
