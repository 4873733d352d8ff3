"""What live widgets show first, as HTML: written where notebooks and pages are made, by the widgets' own scripts in V8.

Readers' browsers compute it themselves, so no kernel loads V8; it is the extra `author` of pyproject.toml.
"""

import ast
import atexit
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nbformat import NotebookNode

from course_utils.kit import live
from course_utils.kit.live.stored import script
from course_utils.kit.live.widget import ASLEEP, KINDS, Live, classic
from course_utils.studio import StudioError

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

_ONE_AT_A_TIME = threading.RLock()


def engine(files: Iterable[str] = ()) -> "MiniRacer":
    """The one V8 of this process; the main thread begins it, and any thread may ask it then.

    Args:
        files: modules of `kit/live` that have to run in it first, with what they import; each runs once.

    Raises:
        StudioError: V8 is not installed.
        RuntimeError: another thread than the main one is the first to ask.
    """
    with _ONE_AT_A_TIME:
        for file in files:
            _run(file)
        return _begun()


@cache
def _begun() -> "MiniRacer":
    try:
        from py_mini_racer import MiniRacer, init_mini_racer
    except ImportError:
        raise StudioError(
            "mini-racer is missing; it writes what live models show first: "
            "pip install -c constraints.txt -e .[author]"
        ) from None
    # V8 writes its code pages under a protection key that only the first thread's children have: elsewhere, and at
    # the end of the process, that is a segmentation fault on processors with such keys.
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("V8 begins in the main thread; call first_states.engine() there first")
    flags = ("--single-threaded", "--no-memory-protection-keys")
    init_mini_racer(flags=flags, ignore_duplicate_init=True)
    with ThreadPoolExecutor(1) as pool:  # a thread without an event loop: V8 takes one of its own
        engine = pool.submit(MiniRacer).result()
    atexit.register(engine.close)  # later its thread is gone, and nothing ends the wait for it
    engine.eval(Path(__file__).with_suffix(".js").read_text(encoding="utf-8"))
    return engine


@cache
def _run(file: str) -> None:
    _begun().eval(classic(file))


@cache
def _hand_over(model: str) -> None:
    _begun().eval(script(model, live.bundle(model)))


def first_state(widget: Live) -> str:
    """The HTML inside a widget before a reader has changed anything.

    Raises:
        StudioError: V8 is not installed.
    """
    with _ONE_AT_A_TIME:
        for model in widget.models:
            _hand_over(model)
        asked = widget.kind, widget.models, widget.options
        return engine([f"widgets/{widget.kind}.js"]).call("live_first", *asked)


# Notebooks ------------------------------------------------------------------------------------------------------------


def widget_of(output: NotebookNode) -> Live | None:
    """The widget that an output shows; None for any other output."""
    text = "".join(output.get("data", {}).get("text/plain", ""))
    if not text.startswith("live."):
        return None
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr not in KINDS:
        return None
    return getattr(live, call.func.attr)(*map(ast.literal_eval, call.args))


def fill(notebook: NotebookNode) -> NotebookNode:
    """Write into each live output, in place, what its widget shows first: the kernel has left the form empty.

    Raises:
        StudioError: V8 is not installed.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if widget := widget_of(output):
                output.data["text/html"] = widget.form(ASLEEP, first_state(widget))
    return notebook
