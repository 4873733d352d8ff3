"""Kernels in which the first optimizer does not wait for PyTorch's compiler; nothing of torch is changed.

An optimizer imports `torch._dynamo`, thousands of files, only to tell the compiler what to leave alone. That takes
two to three seconds. In the course's kernels (`PYTHONSTARTUP`: kernel_startup.py) this import gives a stand-in for
the two functions that an optimizer uses. Any other attribute, as `torch.compile` asks for, loads the compiler.
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
    """Environment variables for kernels: `environ`, and the course's startup file unless the student has one."""
    return {"PYTHONSTARTUP": str(STARTUP), **environ}


def defer_compiler_import() -> None:
    """Put `import torch._dynamo` off until the compiler is used."""
    sys.meta_path.insert(0, _CompilerFinder())


LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
"""The language in a notebook's metadata, without the version, which differs from machine to machine."""


def set_language_info() -> None:
    """Let the kernel describe its language as `LANGUAGE`, so that a notebook just opened has no unsaved change."""
    from ipykernel.ipkernel import IPythonKernel

    IPythonKernel.language_info = dict(LANGUAGE)


class _StandIn(ModuleType):
    """A stand-in with what an optimizer uses of the compiler; any other attribute turns it into the real module."""

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
