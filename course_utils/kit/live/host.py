"""The page's own scripts, run where a cell runs: they write what a widget shows first."""

import atexit
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from py_mini_racer import JSEvalException, MiniRacer, init_mini_racer

from course_utils.kit.live.bundles import bundle
from course_utils.kit.live.packing import script
from course_utils.kit.page import asset

BEGIN = """
globalThis.atob = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const values = Object.fromEntries([...letters].map((letter, value) => [letter, value]));
  let [bits, count, bytes] = [0, 0, ""];
  for (const letter of text.replace(/=+$/, "")) {
    bits = ((bits << 6) | values[letter]) & 0xfff;
    count += 6;
    if (count >= 8) bytes += String.fromCharCode((bits >> (count -= 8)) & 255);
  }
  return bytes;
};
globalThis.live_first = (kind, models, options) => {
  const { state, html } = live_widgets[kind];
  return html(state(models.map((name) => live_bundles[name]), options));
};
"""
"""What the scripts need of a browser, and how they are asked."""


@cache
def _engine() -> MiniRacer:
    """One for the process, started when it is first needed.

    It begins in a thread without an event loop: so it takes one of its own, not the kernel's.
    """
    # V8 writes its code pages under a protection key that only the first thread's children have: elsewhere, and at
    # the end of the process, that is a segmentation fault on processors with such keys.
    flags = ("--single-threaded", "--no-memory-protection-keys")
    init_mini_racer(flags=flags, ignore_duplicate_init=True)
    with ThreadPoolExecutor(1) as pool:
        engine = pool.submit(MiniRacer).result()
    atexit.register(engine.close)  # later its thread is gone, and nothing ends the wait for it
    engine.eval(BEGIN)
    return engine


@cache
def _run(file: str) -> None:
    _engine().eval(asset(f"live/{file}"))


@cache
def _hand_over(model: str) -> None:
    _engine().eval(script(model, bundle(model)))


def first_state(
    kind: str, files: Sequence[str], models: Sequence[str], options: Mapping[str, object]
) -> str:
    """The HTML of a widget before a reader has changed anything.

    Args:
        kind: of the widget.
        files: its scripts, from this folder, in the order in which they run.
        models: the stored models that it is given.
        options: what it was called with, as JSON can hold it.

    Raises:
        ValueError: the widget has no such state; it says why.
    """
    for file in files:
        _run(file)
    for model in models:
        _hand_over(model)
    try:
        return _engine().call("live_first", kind, list(models), dict(options))
    except JSEvalException as error:
        said = str(error).partition("RangeError: ")[2].partition("\n")[0]
        if not said:
            raise
        raise ValueError(said) from None
