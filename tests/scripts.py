"""The scripts of live widgets in V8, without a page: what they compute, and whether a mistake in one would be found."""

import atexit
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from py_mini_racer import JSEvalException, MiniRacer, init_mini_racer

from course_utils.kit.live import bundle
from course_utils.kit.live.stored import script
from course_utils.kit.live.widget import KINDS, modules
from course_utils.studio import v8

CLOSE = 1e-4
"""So far may a number of a page be from PyTorch's."""

BEGIN = """
globalThis.live_modules = {};
globalThis.ask = (given, answer) => JSON.stringify(answer(...given), (_, x) => {
    if (ArrayBuffer.isView(x)) return [...x];
    return typeof x === "number" && !Number.isFinite(x) ? `@${x}` : x;
}).replace(/"@([^"]*)"/g, "$1");
"""
"""As JSON with the NaN and Infinity of Python."""


# Begun when the tests are collected: in the main thread, and before a browser's event loop runs there.
init_mini_racer(flags=v8.FLAGS, ignore_duplicate_init=True)
V8 = MiniRacer()
V8.eval(Path(v8.__file__).with_name("first_states.js").read_text(encoding="utf-8") + BEGIN)
atexit.register(V8.close)  # or its thread ends first, and nothing ends the wait for it


def ask(function: str, *given):
    """What a JavaScript function gives for these arguments."""
    return json.loads(V8.eval(f"ask({json.dumps(given)}, {function})"))


def load(*roots: str, changed: tuple[str, str] = ("", ""), inside: str = "") -> None:
    """Modules of `kit/live` and all that they import anew, with one piece of them changed.

    `inside`: names within the last module that it does not export; they are in reach then as `live_inside`.
    """
    texts = {name: text for root in roots for name, text in modules(f"{root}.js").items()}
    assert any(changed[0] in text for text in texts.values()), f"{changed[0]} is gone"
    for name, text in texts.items():
        text = text.replace(*changed) if changed[0] else text
        if inside and name == Path(roots[-1]).name:
            start, end = text.rsplit("return {", 1)
            text = f"{start}return globalThis.live_inside = {{ {inside}, {end}"
        V8.eval(f"live_modules.{name} = (() => {{{text}}})()")


def load_all(kind: str, inside: str = "") -> None:
    """Everything that a kind of widget runs, and its models."""
    load(f"widgets/{kind}", inside=inside)
    for name in KINDS[kind].models:
        V8.eval(script(name, bundle(name)))


def check(
    far: Callable[[], float],
    root: str,
    mistakes: Mapping[str, tuple[str, str]],
    inside: str = "",
) -> None:
    """Numbers of a page are PyTorch's, and with any of the mistakes in a module they would not be.

    `far` gives the largest difference; a mistake is a piece of the module, or of one that it imports, and what stands
    in its place.
    """
    assert far() < CLOSE
    for mistake, changed in mistakes.items():
        load(root, changed=changed, inside=inside)
        try:
            is_found = not far() < CLOSE
        except JSEvalException:  # it may also end in an error
            is_found = True
        assert is_found, mistake
    load(root, inside=inside)


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
