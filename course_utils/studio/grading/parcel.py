"""What the judge sends to a worker. The judge is trusted, so this is a pickle; the way back is `wire`.

Tensors go beside it, so that the worker knows which of them it was given. Modules are copied. A function that the
checks define goes by its code, for the worker cannot import the checks; what a check watches (an object of a
class of its own, a function with a memory) stays here, and the worker gets a handle that asks for each call.
"""

import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.studio.grading import wire


def is_private(module: str) -> bool:
    """Whether a module is the instructor's alone: checks, or what stands outside of all packages."""
    top, _, rest = module.partition(".")
    if top == "course_utils":
        return rest.endswith(".checks")
    return top not in sys.stdlib_module_names | {"torch", "numpy", "pandas", "matplotlib"}


class Kept:
    """The objects that stay in the judge, by number."""

    def __init__(self) -> None:
        self.objects: list[Any] = []

    def number(self, thing: Any) -> int:
        """Its number; given when it is first asked for."""
        places = [place for place, one in enumerate(self.objects) if one is thing]
        if not places:
            self.objects.append(thing)
        return places[0] if places else len(self.objects) - 1


class Parcel:
    """Arguments on their way to the worker.

    Attributes:
        given: the tensors in them, each once.
        modules: the modules in them, each once.
    """

    def __init__(self, kept: Kept, returned: Callable[[nn.Module], int | None]):
        self.kept, self.returned = kept, returned
        self.given: list[Tensor] = []
        self.modules: list[nn.Module] = []

    def packed(self, things: Any) -> dict[str, Any]:
        """The pickle, and what goes beside it."""
        buffer = io.BytesIO()
        _Pickler(buffer, self).dump(things)
        flat = [wire.flat(tensor) for tensor in self.given]
        return {
            "things": buffer.getvalue(),
            "modules": [self._module(module) for module in self.modules],
            "specs": [spec for spec, _ in flat],
            "leaves": [tensor.is_leaf for tensor in self.given],
            "blob": b"".join(raw for _, raw in flat),
        }

    def _module(self, module: nn.Module) -> bytes:
        buffer = io.BytesIO()
        _Pickler(buffer, self, inside=True).dump(module)
        return buffer.getvalue()

    def place(self, things: list[Any], thing: Any) -> int:
        """Where it stands among those that were met; it is added if it is new."""
        for place, one in enumerate(things):
            if one is thing:
                return place
        things.append(thing)
        return len(things) - 1


class _Pickler(pickle.Pickler):
    """Tensors and modules become numbers, functions of the checks their code, and what is watched a handle."""

    def __init__(self, buffer: io.BytesIO, parcel: Parcel, inside: bool = False):
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self.parcel, self.inside = parcel, inside

    def persistent_id(self, thing: Any) -> Any:
        if self.inside:
            return None
        if isinstance(thing, Tensor):
            return "tensor", self.parcel.place(self.parcel.given, thing)
        if isinstance(thing, nn.Module) and not is_private(type(thing).__module__):
            if (number := self.parcel.returned(thing)) is not None:
                return "returned", number
            return "module", self.parcel.place(self.parcel.modules, thing)
        if isinstance(thing, torch.Generator):
            return "generator", bytes(thing.get_state().numpy())
        return None

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, ModuleType):
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, FunctionType):
            own = is_private(thing.__module__) or "<" in thing.__qualname__
            if not own:
                return NotImplemented
            return _by_code(thing) if not thing.__closure__ else self._handle(thing)
        if isinstance(thing, type | BuiltinFunctionType) or not is_private(type(thing).__module__):
            return NotImplemented
        return self._handle(thing)

    def _handle(self, thing: Any) -> Any:
        names = [name for name in dir(thing) if name[0] != "_" and callable(getattr(thing, name))]
        return handle, (self.parcel.kept.number(thing), tuple(names), callable(thing))


def _by_code(function: FunctionType) -> Any:
    names = set(_names(function.__code__)) - {function.__name__}
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    code = marshal.dumps(function.__code__)
    return rebuilt, (code, used, function.__defaults__, function.__kwdefaults__)


def _names(code: CodeType) -> list[str]:
    """What a function may look up among the globals, with the functions in it."""
    inner = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return [*code.co_names, *inner]


# In the worker ----------------------------------------------------------------------------------


def rebuilt(code: bytes, used: dict, defaults: tuple | None, by_name: dict | None) -> FunctionType:
    """A function from its code and the globals that it uses."""
    function = FunctionType(marshal.loads(code), {**used, "__builtins__": __builtins__})
    function.__defaults__, function.__kwdefaults__ = defaults, by_name
    function.__globals__[function.__name__] = function
    return function


class Handle:
    """In the worker: an object that stays in the judge, which does what its methods do."""

    ask: Callable[..., Any]
    """Set by the worker: (number, method, arguments, arguments by name) → what the judge answers."""

    def __init__(self, number: int, names: tuple[str, ...]):
        self._number, self._names = number, names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"this object has no attribute {name!r}")
        return lambda *args, **named: Handle.ask(self._number, name, args, named)


class CallableHandle(Handle):
    """A handle of what can be called itself."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the judge answers."""
        return Handle.ask(self._number, "__call__", args, named)


def handle(number: int, names: tuple[str, ...], is_callable: bool) -> Handle:
    """What the worker gets for an object that stays in the judge."""
    return (CallableHandle if is_callable else Handle)(number, names)


class Unpacked:
    """In the worker: what was sent.

    Attributes:
        things: the arguments.
        given: the tensors in them, as the submission gets them; `leaves`: what gradients are asked for.
        modules: the modules in them.
    """

    def __init__(self, packed: dict[str, Any], returned: dict[int, nn.Module]):
        self.modules = [pickle.loads(one) for one in packed["modules"]]
        self.leaves = wire.tensors(packed["specs"], packed["blob"])
        self.given = []
        for (_, _, graded), leaf, tensor in zip(
            packed["specs"], packed["leaves"], self.leaves, strict=True
        ):
            tensor.requires_grad_(graded)
            self.given.append(tensor if leaf or not graded else tensor.clone())
        self._returned = returned
        unpickler = pickle.Unpickler(io.BytesIO(packed["things"]))
        unpickler.persistent_load = self._load  # type: ignore[method-assign]
        self.things = unpickler.load()

    def _load(self, name: tuple[str, Any]) -> Any:
        kind, value = name
        if kind == "generator":
            generator = torch.Generator()
            generator.set_state(torch.frombuffer(bytearray(value), dtype=torch.uint8))
            return generator
        known: Any = {"tensor": self.given, "module": self.modules, "returned": self._returned}
        return known[kind][value]
