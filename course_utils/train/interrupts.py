"""Interrupts, Ctrl-C or the stop button of a notebook, that let the current training step finish."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """A function that says whether an interrupt has come, in place of a KeyboardInterrupt while the block runs.

    Only the first interrupt is deferred; a second one raises KeyboardInterrupt as usual. Outside the main thread, or
    if the handler of interrupts was not set from Python, all interrupts act as usual.
    """
    interrupted = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is None:
        yield interrupted.is_set
        return

    def handle(*_: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, usual)
