"""The kernels of the course: their environment, and how they describe their language."""

import os
from collections.abc import Mapping
from pathlib import Path

STARTUP = Path(__file__).with_name("kernel_startup.py")


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables for kernels: `environ`, and the course's startup file unless the student has one."""
    return {"PYTHONSTARTUP": str(STARTUP), **environ}


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
