"""What a notebook runs on: the course's folder, seeds, the device, and a report on all of it.

The ground floor of the package: it imports nothing else of ours. Chapter 00 teaches `doctor`.
"""

import hashlib
import os
import platform
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds `book.toml`, `notebooks/` and `data/`."""

MEMORY_NEEDED_GB = 4
PYTHON_NEEDED = (3, 11)


def seed_everything(seed: int) -> torch.Generator:
    """Seed Python, NumPy and PyTorch, and return PyTorch's default CPU generator.

    Args:
        seed: a nonnegative integer below 2**32 (the range NumPy accepts).

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed={seed!r} is a {type(seed).__name__}; an integer is needed")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed} is out of range; use 0 <= seed < 2**32")
    random.seed(seed)
    np.random.seed(seed)
    return torch.manual_seed(seed)


def has_gpu() -> bool:
    """Whether a CUDA device is there; cells tagged `gpu` ask this before they start."""
    return torch.cuda.is_available()


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report: what was looked at, what was found, what to do about it."""

    subject: str
    found: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is nothing to do."""
        return not self.remedy


class Report:
    """The doctor's findings: a table in a notebook, aligned lines in a terminal."""

    def __init__(self, findings: list[Finding]):
        self.findings = findings

    @property
    def ok(self) -> bool:
        """Whether nothing needs attention."""
        return all(finding.ok for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        if self.ok:
            return "All is well: every chapter will run here."
        todo = sum(not finding.ok for finding in self.findings)
        return f"{todo} of {len(self.findings)} lines need your attention; each says what to do."

    def __repr__(self) -> str:
        width = max(len(finding.subject) for finding in self.findings)
        lines = [
            f"{'✓' if f.ok else '✗'} {f.subject:<{width}}  {f.found}"
            + (f"\n{'':>{width + 4}}→ {f.remedy}" if f.remedy else "")
            for f in self.findings
        ]
        return "\n".join([*lines, self.verdict])

    def _repr_markdown_(self) -> str:
        rows = [
            f"| {'✓' if f.ok else '✗'} | {f.subject} | {f.found} | {f.remedy} |"
            for f in self.findings
        ]
        return "\n".join(["| | What | Found | To do |", "|---|---|---|---|", *rows, "", self.verdict])


def doctor() -> Report:
    """Look at Python, PyTorch, device, threads, memory, disk and data, and say what to do about each."""
    return Report(
        [
            _python(),
            Finding("PyTorch", torch.__version__),
            _device(),
            Finding("Threads", f"{torch.get_num_threads()} of {os.cpu_count()} cores"),
            _memory(),
            _data(),
        ]
    )


def _python() -> Finding:
    needed = ".".join(map(str, PYTHON_NEEDED))
    remedy = "" if sys.version_info >= PYTHON_NEEDED else f"install Python {needed} or newer"
    return Finding("Python", f"{platform.python_version()} on {platform.system()}", remedy)


def _device() -> Finding:
    if has_gpu():
        return Finding("Device", f"GPU: {torch.cuda.get_device_name()}")
    return Finding("Device", "CPU; every chapter runs on it, cells for a GPU show recorded results")


def _memory() -> Finding:
    import psutil

    gigabytes = psutil.virtual_memory().total / 2**30
    enough = gigabytes >= MEMORY_NEEDED_GB
    remedy = "" if enough else f"close other programs; {MEMORY_NEEDED_GB} GB are comfortable"
    return Finding("Memory", f"{gigabytes:.0f} GB", remedy)


def _data() -> Finding:
    """Compare every data file with the SHA-256 written down for it in data/SHA256SUMS."""
    sums = (ROOT / "data" / "SHA256SUMS").read_text().split()
    expected = dict(zip(sums[1::2], sums[::2], strict=True))
    broken = [name for name, digest in expected.items() if _sha256(ROOT / "data" / name) != digest]
    if broken:
        names = ", ".join(broken)
        remedy = f"restore {names} in data/: git checkout -- data"
        return Finding("Data", f"{len(broken)} of {len(expected)} files missing or changed", remedy)
    return Finding("Data", f"all {len(expected)} files in data/ as published")


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
