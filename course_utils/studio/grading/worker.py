"""In the sandbox: one exercise of one submission. It runs the cells that the function needs, and answers its calls.

It knows neither the checks nor other submissions, and what it says is judged elsewhere.
"""

import ast
import linecache
import pickle
import socket
import sys
import traceback
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.kit import check, passed
from course_utils.kit.digest import behind
from course_utils.studio.grading import wire
from course_utils.studio.grading.parcel import Handle, Unpacked
from course_utils.studio.grading.traces import Notes, changes, load, same, state

CELL = "<cell "
MOST_KEPT = 50  # calls whose gradients may still be asked for


class Refused(Exception):
    """What was asked for cannot be made of this submission: its kind, and a reason."""


# The submission's code --------------------------------------------------------------------------


def function_of(cells: list[str], name: str) -> Any:
    """What a name is after those statements of the cells that it depends on have run, and no others.

    Raises:
        Refused: nothing binds the name, or a statement fails.
    """
    statements, wrong = [], ""
    for number, source in enumerate(cells):
        file = f"{CELL}{number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            found = ast.parse(_plain(source), file).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if name in source:
                wrong = f"its cell is no Python: {_in_words(error)}"
            continue
        statements += [(file, statement) for statement in found]
    try:
        chosen = behind([statement for _, statement in statements], [name])
    except (RecursionError, MemoryError) as error:
        raise Refused("broken", "its cells nest too deeply") from error
    if not chosen:
        raise Refused("broken" if wrong else "missing", wrong or f"nothing is called {name}")
    page = ModuleType("__main__")
    sys.modules["__main__"] = page
    for file, statement in (statements[place] for place in chosen):
        try:
            exec(compile(ast.Module([statement], []), file, "exec"), vars(page))
        except BaseException as error:  # SystemExit, too
            raise Refused("broken", f"its cells do not run: {_in_words(error)}") from error
    return vars(page).get(name)


def _plain(source: str) -> str:
    """Without the lines that are IPython's alone."""
    if not any(line.lstrip().startswith(("%", "!", "?")) for line in source.splitlines()):
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(source)


def _in_words(error: BaseException) -> str:
    """Its name, its text, and the last line of the submission that it passed."""
    text = f"{type(error).__name__}: {error}"[:500]
    return text + _where(error)


def _where(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(CELL)]
    if not frames:
        return ""
    return f" (line {frames[-1].lineno} of the cell: {(frames[-1].line or '')[:80]})"


# Calls of it ------------------------------------------------------------------------------------


class Worker:
    """Answers the judge.

    Args:
        connection: to the judge.
    """

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.candidate: Any = None
        self.returned: dict[int, nn.Module] = {}
        self.graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self.calls = 0
        Handle.ask = self._ask

    def run(self) -> None:
        """Read the submission, then answer until the judge hangs up."""
        job = pickle.loads(wire.receive(self.connection, sys.maxsize)[0])
        try:
            self.candidate = function_of(job["cells"], job["name"])
            kind = _kind(self.candidate)
            self._send(wire.Packing(lambda _: None), kind=kind, why=type(self.candidate).__name__)
        except Refused as refused:
            kind, why = refused.args
            self._send(wire.Packing(lambda _: None), kind=kind, why=why)
        self.serve()

    def serve(self) -> None:
        """Answer requests until the judge hangs up."""
        while True:
            try:
                request = pickle.loads(wire.receive(self.connection, sys.maxsize)[0])
            except wire.Lost:
                return
            try:
                {"call": self._call, "slopes": self._slopes}[request["op"]](request)
            except wire.Lost:
                return
            except BaseException as error:
                self._fail(error)

    def _send(self, packing: wire.Packing, **said: Any) -> None:
        wire.send(self.connection, *packing.message(**said))

    def _fail(self, error: BaseException) -> None:
        stub = isinstance(error, NotImplementedError) and _on_purpose(error)
        kinds = [kind.__name__ for kind in type(error).__mro__]
        nothing = wire.Packing(lambda _: None)
        text = f"{error}"[:2000]
        self._send(nothing, op="error", kinds=kinds, text=text, where=_where(error), stub=stub)

    def _call(self, request: dict[str, Any]) -> None:
        sent = Unpacked(request, self.returned)
        target, module = self.candidate, None
        if request["target"] is not None:
            module = target = self.returned[request["target"]]
            load(module, request)
        modules = [*sent.modules, *([module] if module is not None else [])]
        before = [state(one) for one in modules]
        values = [tensor.detach().clone() for tensor in sent.given]
        things = self._packing(sent).value(sent.things)
        torch.manual_seed(request["seed"])
        args, named = sent.things
        notes = Notes()
        with (
            torch.set_grad_enabled(request["grad"]),
            notes.taken(request["watch"], request["keep"]),
        ):
            answer = target(*args, **named)
        stub = answer is None and module is None and check._is_empty(target)
        packing = self._packing(sent, graded=False)
        form = packing.value(answer)
        self.calls += 1
        outputs = [tensor for tensor in packing.tensors if tensor.requires_grad]
        if inputs := [
            *_wanted(sent.leaves),
            *(p for m in modules for p in _wanted(m.parameters())),
        ]:
            self.graphs[self.calls] = outputs, inputs
            self.graphs.pop(self.calls - MOST_KEPT, None)
        changed = {
            place: packing.tensor(tensor)
            for place, (tensor, value) in enumerate(zip(sent.given, values, strict=True))
            if not same(tensor, value)
        }
        after = self._packing(sent).value(sent.things)
        if after != things:
            packing.special = self._packing(sent).special
            after = packing.value(sent.things)
        states = [changes(packing, one, old) for one, old in zip(modules, before, strict=True)]
        self._send(
            packing,
            **{"op": "answer", "answer": form, "call": self.calls, "stub": stub},
            **{"changed": changed, "states": states, "things": after if after != things else None},
            **notes.told(),
        )

    def _packing(self, sent: Unpacked, graded: bool = True) -> wire.Packing:
        """Tensors that were sent are not sent back; where `graded` is False, those with a gradient are."""

        def special(thing: Any) -> dict | None:
            for place, one in enumerate(sent.given):
                if one is thing and (graded or not one.requires_grad):
                    return {"t": "given", "i": place}
            if isinstance(thing, Handle):
                return {"t": "handle", "i": thing._number}
            return self._module(thing, sent) if isinstance(thing, nn.Module) else None

        return wire.Packing(special)

    def _module(self, module: nn.Module, sent: Unpacked) -> dict:
        """A module's tag: one that was sent, or one that stays here, with its parameters."""
        for place, one in enumerate(sent.modules):
            if one is module:
                return {"t": "passed", "i": place}
        number = next((n for n, one in self.returned.items() if one is module), None)
        number = len(self.returned) if number is None else number
        self.returned[number] = module
        owners = {
            id(parameter): [place, name]
            for place, one in enumerate(sent.modules)
            for name, parameter in one.named_parameters()
        }
        parts = []
        for name, parameter in module.named_parameters():
            spec, raw = wire.flat(parameter)
            parts.append([name, owners.get(id(parameter)), spec, raw.hex()])
        kind = type(module).__name__[:80]
        return {"t": "module", "i": number, "kind": kind, "parts": parts, "on": module.training}

    def _slopes(self, request: dict[str, Any]) -> None:
        """The gradients of earlier answers for what was sent then."""
        outputs, inputs = self.graphs[request["call"]]
        weights = wire.tensors(request["specs"], request["blob"])
        pairs = [(outputs[place], w) for place, w in zip(request["places"], weights, strict=True)]
        found = torch.autograd.grad(
            [output for output, _ in pairs],
            inputs,
            [weight for _, weight in pairs],
            retain_graph=True,
            allow_unused=True,
        )
        packing = wire.Packing(lambda _: None)
        self._send(packing, op="slopes", slopes=[packing.value(one) for one in found])

    def _ask(self, number: int, name: str, args: tuple, named: dict) -> Any:
        """Let the judge call a method of an object that it has kept."""
        packing = wire.Packing(
            lambda one: {"t": "handle", "i": one._number} if isinstance(one, Handle) else
            {"t": "other", "kind": "Module"} if isinstance(one, nn.Module) else None
        )  # fmt: skip
        form = packing.value([list(args), named])
        self._send(packing, op="ask", number=number, name=name, form=form)
        reply = pickle.loads(wire.receive(self.connection, sys.maxsize)[0])
        if "error" in reply:
            kind = getattr(__import__("builtins"), reply["kind"], RuntimeError)
            raise kind(reply["error"])
        return Unpacked(reply, self.returned).things


def _wanted(tensors: Any) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.requires_grad]


def _kind(candidate: Any) -> str:
    if candidate is None or candidate is ...:
        return "stub"
    if not callable(candidate):
        return "wrong"
    return "ours" if passed.is_ours(candidate) else "function"


def _on_purpose(error: NotImplementedError) -> bool:
    return error.__traceback__ is not None and check._is_on_purpose(error)
