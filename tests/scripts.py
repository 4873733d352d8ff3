"""The scripts of live widgets in V8, without a page: what their functions compute."""

import atexit
import json
from pathlib import Path

import torch
from py_mini_racer import MiniRacer, init_mini_racer

from course_utils.kit.live import bundle
from course_utils.kit.live.bundles import script
from course_utils.kit.live.widget import KINDS, source
from course_utils.studio import v8

CLOSE = 1e-4
"""Largest difference that a number of a page may have from PyTorch's."""

BEGIN = """
globalThis.ask = (given, answer) => JSON.stringify(answer(...given), (_, x) => {
    if (ArrayBuffer.isView(x)) return [...x];
    return typeof x === "number" && !Number.isFinite(x) ? `@${x}` : x;
}).replace(/"@([^"]*)"/g, "$1");
"""
"""The function `ask`, whose answers are JSON with Python's NaN and Infinity."""

# Begun when the tests are collected: in the main thread, and before a browser's event loop runs there.
init_mini_racer(flags=v8.FLAGS, ignore_duplicate_init=True)
V8 = MiniRacer()
V8.eval(Path(v8.__file__).with_name("first_states.js").read_text(encoding="utf-8") + BEGIN)
atexit.register(V8.close)  # or its thread ends first, and nothing ends the wait for it


def load(kind: str | None = None, changed: tuple[str, str] = ("", "")) -> None:
    """The shared scripts, and those and the models of a kind of widget, anew, with one piece of them changed.

    What `ask` asks for sees all their names, and `inside(name)` is what a name stands for.
    """
    text = source(kind)
    assert changed[0] in text, f"{changed[0]} is gone"
    text = text.replace(*changed) if changed[0] else text
    V8.eval(
        f'inside = (() => {{ "use strict"; {{ {text}\nreturn (name) => eval(name); }} }})(); null'
    )
    for name in KINDS[kind].models if kind else ():
        V8.eval(script(name, bundle(name)))


def ask(function: str, *given):
    """What a JavaScript function gives for these arguments."""
    return json.loads(V8.eval(f"ask({json.dumps(given)}, inside({json.dumps(f'({function})')}))"))


def apart(mine, right) -> float:
    """The largest difference of numbers; infinite where a shape is another, or only one of two is finite."""
    if isinstance(right, dict):
        return max(apart(mine[name], each) for name, each in right.items())
    if isinstance(right, (list, tuple)):
        return max(apart(a, b) for a, b in zip(mine, right, strict=True))
    right = torch.as_tensor(right).detach().double()
    try:
        mine = torch.tensor(mine, dtype=torch.float64)
    except (TypeError, ValueError):  # rows of several lengths, or no numbers
        return float("inf")
    if mine.shape != right.shape or not torch.equal(mine.isfinite(), right.isfinite()):
        return float("inf")
    return max((mine - right)[right.isfinite()].abs().tolist(), default=0.0)
