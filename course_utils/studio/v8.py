"""JavaScript outside a browser: V8 in a child process, ``python -m course_utils.studio.v8 < script``.

V8 (`mini-racer`, the extra `author` of pyproject.toml) wants the main thread of a process, before any event loop runs
in it. A process that does nothing else gives it that.
"""

import importlib.util
import subprocess
import sys

from course_utils.files import ROOT
from course_utils.studio import StudioError, kernel

FLAGS = ("--single-threaded", "--no-memory-protection-keys")
"""Flags without which V8 protects its code by a memory key of the first thread, so that other threads end in a
segmentation fault on processors that have such keys."""


def evaluate(script: str) -> str:
    """The value of a script's last expression, a text.

    Raises:
        StudioError: V8 is not installed, or the script raises an error.
    """
    if importlib.util.find_spec("py_mini_racer") is None:
        raise StudioError(
            "mini-racer is missing; it writes what live models show first: "
            "pip install -c constraints.txt -e .[author]"
        )
    command = [sys.executable, "-X", "utf8", "-m", "course_utils.studio.v8"]
    process = {"cwd": ROOT, "env": kernel.clean_environment()}
    child = subprocess.run(command, input=script, capture_output=True, encoding="utf-8", **process)
    if child.returncode:
        raise StudioError(f"V8 ended with {child.returncode}:\n{child.stderr[-2000:]}")
    return child.stdout


def main() -> None:
    """Evaluate the script on standard input, and write its value to standard output."""
    from py_mini_racer import MiniRacer, init_mini_racer

    init_mini_racer(flags=FLAGS)
    with MiniRacer() as engine:
        sys.stdout.write(engine.eval(sys.stdin.read()))


if __name__ == "__main__":
    main()
