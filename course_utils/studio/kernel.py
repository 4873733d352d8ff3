"""A kernel whose first optimizer does not wait for PyTorch's compiler; nothing of torch is changed.

An optimizer imports `torch._dynamo`, thousands of files, only to tell the compiler what to leave alone: two
to three seconds. In the course's kernels (`PYTHONSTARTUP`: kernel_startup.py) this import gives a stand-in that has
nothing to tell. Whoever asks it for anything else, as `torch.compile` does, gets the compiler.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"
STARTUP = Path(__file__).with_name("kernel_startup.py")


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables for what starts kernels: these, and the course's startup where the student has none."""
    return {"PYTHONSTARTUP": str(STARTUP), **environ}


def defer_compiler_import() -> None:
    """From now on, `import torch._dynamo` is put off until somebody compiles."""
    sys.meta_path.insert(0, _CompilerFinder())


LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
"""What a notebook of the course says of its language: no version, which would differ from machine to machine."""


def set_language_info() -> None:
    """Describe the language as the notebooks do, so that Lab finds nothing to save in one just opened."""
    from ipykernel.ipkernel import IPythonKernel

    IPythonKernel.language_info = dict(LANGUAGE)


class _StandIn(ModuleType):
    """What an optimizer asks of the compiler; any other attribute turns it, in place, into the real module."""

    @staticmethod
    def graph_break() -> None:
        """Nothing is being compiled, so there is nothing to break."""

    @staticmethod
    def disable(function: Callable, *_: Any, **__: Any) -> Callable:
        """Nothing is being compiled, so there is nothing to turn off."""
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what importing looks for
            raise AttributeError(name)
        self.__class__ = ModuleType
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class _CompilerFinder:
    """Finds the compiler, and is its loader until it is asked for; then it finds nothing any more."""

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
