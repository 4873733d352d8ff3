"""What a check is called with instead of the submission's function: it asks the worker, and has its gradients.

A call sends copies of the arguments. What comes back is the answer and what has become of the arguments; both
are data. An answer with a gradient is a node of this process's graph whose way back the worker computes.
"""

import builtins
import pickle
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import loads
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from course_utils.kit import calls
from course_utils.kit.check import NotDone, TookTooLong, Unmet
from course_utils.studio.grading import wire
from course_utils.studio.grading.parcel import Kept, Parcel

NO_ANSWER = "no answer in time"
MOST_KEPT = 10**9  # numbers kept for the way back, as a worker may claim
WhyGone = Callable[[str], tuple[bool, str]]
KINDS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}


class Gone(Unmet):
    """The worker has ended, or says what cannot be read. The text is a reason for the marks."""


class Session:
    """The judge's end of one worker, for one exercise; `called` are the functions that it has called, by name.

    Args:
        connection: to the worker.
        why_gone: asks the sandbox how the worker has ended: whether by the limit of time, and a reason.
        patience: seconds to wait for all its answers together.
    """

    def __init__(self, connection: socket.socket, why_gone: WhyGone, patience: float):
        self.connection, self._why_gone, self._left = connection, why_gone, patience
        self.kept = Kept()
        self.modules: list[Module] = []
        self.called: set[str] = set()
        self._raised: BaseException | None = None
        self._over: BaseException | None = None

    # Messages

    def load(self, cells: list[str], name: str) -> tuple[str, str]:
        """What a name of these cells is: function, ours, stub, wrong, missing, broken; and why."""
        head, _ = self._exchanged({"cells": cells, "name": name})
        with self._reading():
            return str(head["kind"])[:80], str(head["why"])[:600]

    def _exchanged(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[Tensor]]:
        """The worker's next message, and its tensors."""
        if self._over:
            raise self._over
        began = time.monotonic()
        try:
            self.connection.settimeout(max(1e-3, self._left))
            wire.send(self.connection, pickle.dumps(request))
            head, blob = wire.receive(self.connection, seconds=self._left)
            self._left += began - time.monotonic()
            said = loads(head)
            return said, wire.tensors(said["tensors"], blob)
        except TimeoutError:
            self._end(NO_ANSWER)
        except (wire.Lost, OSError) as error:
            self._end(str(error))
        except Exception:  # whatever was sent instead of JSON
            self._end("its answer cannot be read")

    def _end(self, why: str) -> NoReturn:
        late, reason = self._why_gone(why)
        self._over = TookTooLong(reason) if late else Gone(reason)
        raise self._over

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What a worker says is taken apart in the block; nonsense ends the session."""
        try:
            yield
        except (wire.Lost, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self._end(f"its answer cannot be read: {error}")

    # Calls

    def call(self, target: "Module | None", args: tuple, named: dict[str, Any]) -> Any:
        """What the submission's function, or a module that it has made, gives."""
        with torch._C.DisableTorchFunction():
            parcel = Parcel(self.kept, self._number_of)
            request = parcel.packed((list(args), named))
            inputs = self._inputs(parcel, target)
            request |= {
                "op": "call",
                "target": target.number if target is not None else None,
                "seed": int(torch.randint(2**31, ())),
                "grad": torch.is_grad_enabled(),
                "watch": True,
                "keep": bool(inputs),
            }
            if target is not None:
                request |= target.sent()
            said, found = self._answered(request)
            with self._reading():
                answer = self._taken(said, found, parcel, target, inputs, (list(args), named))
                shapes = {tuple(int(n) for n in shape) for shape in said["shapes"]}
                called = {str(name): int(count) for name, count in said["called"].items()}
        calls.tell(called, shapes)
        self.called |= called.keys()
        for kind, text in said["warned"]:
            warnings.warn(str(text), getattr(builtins, str(kind), UserWarning), stacklevel=2)
        if said["stub"]:
            raise NotDone
        return answer

    def _number_of(self, module: nn.Module) -> int | None:
        return module.number if isinstance(module, Module) else None

    def _inputs(self, parcel: Parcel, target: "Module | None") -> list[Tensor]:
        """What gradients can be asked for, in the worker's order."""
        if not torch.is_grad_enabled():
            return []
        modules = [*parcel.modules, *([target] if target is not None else [])]
        tensors = [*parcel.given, *(p for module in modules for p in module.parameters())]
        return [tensor for tensor in tensors if tensor.requires_grad]

    def _answered(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[Tensor]]:
        """The answer, after all that the worker asks on the way."""
        self._raised = None
        said, found = self._exchanged(request)
        while said.get("op") == "ask":
            said, found = self._exchanged(self._reply(said, found))
        if self._raised is not None:
            raise self._raised
        if said.get("op") == "error":
            with self._reading():
                raised = self._error(said)
            raise raised
        return said, found

    def _error(self, said: dict[str, Any]) -> Exception:
        if said["stub"]:
            return NotDone()
        text = f"{said['text']}{said['where']}"
        names = [str(name) for name in said["kinds"]]
        base = next((KINDS[name] for name in names if name in KINDS), RuntimeError)
        if base in (UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError):
            base = ValueError
        if names[0] == base.__name__ or not names[0].isidentifier():
            return base(text)
        return type(names[0][:80], (base,), {})(text)

    def _reply(self, said: dict[str, Any], found: list[Tensor]) -> dict[str, Any]:
        """What a method of an object that was kept here gives to the worker."""
        with self._reading():
            args, named = wire.unpacked(said["form"], self._special, found)
            number, name = int(said["number"]), str(said["name"])
            thing = self.kept.objects[number]
            if name != "__call__" and name.startswith("_"):
                raise ValueError(name)
        try:
            answer = getattr(thing, name)(*args, **named)
        except Exception as error:  # the check's own, as in the submission's process
            self._raised = error
            return {"error": str(error), "kind": type(error).__name__}
        parcel = Parcel(self.kept, self._number_of)
        return parcel.packed(self._handed(answer))

    def _handed(self, answer: Any) -> Any:
        """A method's answer for the worker: tensors and plain values, and handles of what may change."""
        if isinstance(answer, tuple):
            return tuple(self._handed(one) for one in answer)
        if answer is None or isinstance(answer, Tensor | bool | int | float | str):
            return answer
        return _Shown(answer)

    def _special(self, form: dict[str, Any]) -> Any:
        if form["t"] == "handle":
            thing = self.kept.objects[int(form["i"])]
            return thing.thing if isinstance(thing, _Shown) else thing
        raise wire.Lost("an answer that cannot be read")

    # Answers

    def _taken(
        self,
        said: dict[str, Any],
        found: list[Tensor],
        parcel: Parcel,
        target: "Module | None",
        inputs: list[Tensor],
        things: tuple[list, dict],
    ) -> Any:
        """The answer; what the call has changed of its arguments is changed here, too."""
        graded = [bool(spec[2]) for spec in said["tensors"]]
        made = [place for place, one in enumerate(graded) if one]
        changed = {int(place): int(tag["i"]) for place, tag in said["changed"].items()}
        tensors = list(found)
        if made and inputs:
            kept = min(int(said["kept"]), MOST_KEPT)
            outputs = [found[place] for place in made]
            grown = _Answer.apply(self, int(said["call"]), kept, outputs, *inputs)
            for place, one in zip(made, grown, strict=True):
                tensors[place] = one
        else:
            for place in made:
                tensors[place] = found[place].clone().requires_grad_()
        for place, which in changed.items():
            _overwrite(parcel.given[place], found[which])
        modules = [*parcel.modules, *([target] if target is not None else [])]
        for module, state in zip(modules, said["states"], strict=True):
            _change(module, state, found)

        def special(form: dict[str, Any]) -> Any:
            if form["t"] == "given":
                return parcel.given[int(form["i"])]
            if form["t"] == "passed":
                return parcel.modules[int(form["i"])]
            return self._module(form, parcel) if form["t"] == "module" else self._special(form)

        if said["things"] is not None:
            _follow(things, wire.unpacked(said["things"], special, tensors))
        return wire.unpacked(said["answer"], special, tensors)

    def _module(self, form: dict[str, Any], parcel: Parcel) -> "Module":
        """The module of this number, which the worker has made, or one that is made now."""
        number = int(form["i"])
        if number < len(self.modules):
            return self.modules[number]
        parameters: dict[str, nn.Parameter] = {}
        for name, owner, spec, raw in form["parts"]:
            if owner is None:
                (value,) = wire.tensors([spec], bytes.fromhex(raw))
                floats = value.is_floating_point() or value.is_complex()
                parameters[str(name)] = nn.Parameter(value, bool(spec[2]) and floats)
            else:
                place, its_name = owner
                known = dict(parcel.modules[int(place)].named_parameters())
                parameters[str(name)] = known[its_name]
        module = Module(self, number, parameters, bool(form["on"]))
        self.modules.append(module)
        return module

    def slopes(self, call: int, places: list[int], weights: list[Tensor]) -> list[Tensor | None]:
        """The gradients of a call's inputs."""
        flat = [wire.flat(weight) for weight in weights]
        request = {
            "op": "slopes",
            "call": call,
            "places": places,
            "specs": [spec for spec, _ in flat],
            "blob": b"".join(raw for _, raw in flat),
        }
        said, found = self._answered(request)
        with self._reading():
            return [wire.unpacked(form, self._special, found) for form in said["slopes"]]


class _Shown:
    """What a method of a kept object has given, and stays here."""

    def __init__(self, thing: Any):
        self.thing = thing


_Shown.__module__ = "kept.checks"  # so that a parcel hands over a handle


class Candidate:
    """The submission's function, for a check."""

    def __init__(self, session: Session):
        self._session = session

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What it gives."""
        return self._session.call(None, args, named)


class Module(nn.Module):
    """A module that a submission has made: its parameters are here, its way forward is in the worker."""

    def __init__(
        self, session: Session, number: int, parts: dict[str, nn.Parameter], training: bool
    ):
        super().__init__()
        self._session, self.number, self._names = session, number, list(parts)
        for place, part in enumerate(parts.values()):
            self.register_parameter(f"part_{place}", part)
        self.training = training

    def sent(self) -> dict[str, Any]:
        """Values and mode, as they go to the worker before each call."""
        flat = [wire.flat(part) for part in self.parameters()]
        return {
            "part_specs": [spec for spec, _ in flat],
            "part_blob": b"".join(raw for _, raw in flat),
            "on": self.training,
        }

    def named_here(self) -> dict[str, nn.Parameter]:
        """Its parameters by their names in the worker."""
        return dict(zip(self._names, self.parameters(), strict=True))

    def forward(self, *args: Any, **named: Any) -> Any:
        """What it gives."""
        return self._session.call(self, args, named)


class _Answer(torch.autograd.Function):
    """Tensors of an answer, whose way back is the worker's."""

    @staticmethod
    def forward(ctx, session, call, kept, outputs, *inputs):
        ctx.session, ctx.call, ctx.inputs = session, call, inputs
        ctx.set_materialize_grads(False)
        if kept:
            ctx.save_for_backward(torch.empty(1).expand(kept))
        return tuple(output.clone() for output in outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *weights):
        """Ask the worker."""
        places = [place for place, weight in enumerate(weights) if weight is not None]
        found = ctx.session.slopes(ctx.call, places, [weights[place] for place in places])
        for slope, given in zip(found, ctx.inputs, strict=True):
            if slope is not None and not (torch.is_tensor(slope) and slope.shape == given.shape):
                ctx.session._end("its gradient cannot be read")
        return None, None, None, None, *found


def _overwrite(tensor: Tensor, value: Tensor) -> None:
    with torch.no_grad():
        try:
            if tensor.shape != value.shape:
                raise RuntimeError("another shape")
            tensor.copy_(value)
        except RuntimeError:  # another shape, or entries that share their memory
            tensor.data = value.to(tensor.dtype)


def _change(module: nn.Module, state: dict[str, Any], found: list[Tensor]) -> None:
    """Values, what is trained, and modes of a module, as a call has left them."""
    remote = isinstance(module, Module)
    named: dict[str, Tensor] = (
        {**module.named_here()}
        if isinstance(module, Module)
        else {**dict(module.named_parameters()), **dict(module.named_buffers())}
    )
    for name, tag in state["values"].items():
        _overwrite(named[name], found[int(tag["i"])])
    for name, graded in state["graded"].items():
        named[name].requires_grad_(bool(graded))
    parts = dict(module.named_modules())
    for name, on in state["modes"].items():
        if not remote or not name:
            parts[name].training = bool(on)


def _follow(things: Any, after: Any) -> None:
    """Let lists and dictionaries be what a call has made of them."""
    if isinstance(things, list) and isinstance(after, list):
        if len(things) == len(after):
            for one, other in zip(things, after, strict=True):
                _follow(one, other)
        changed = [
            other if not isinstance(one, list | dict | tuple) else one
            for one, other in zip(things, after, strict=False)
        ]
        same = len(things) == len(after) and all(
            one is other or _plainly_same(one, other)
            for one, other in zip(things, changed, strict=True)
        )
        if not same:
            things[:] = after
    elif isinstance(things, tuple) and isinstance(after, tuple):
        for one, other in zip(things, after, strict=False):
            _follow(one, other)
    elif isinstance(things, dict) and isinstance(after, dict) and things.keys() != after.keys():
        things.clear()
        things.update(after)


def _plainly_same(one: Any, other: Any) -> bool:
    plain = bool | int | float | str | None
    if not isinstance(one, plain):
        return True  # what is sent as it is called only
    return type(one) is type(other) and one == other
