"""Runs at full size that want a GPU: done where there is one, shown as recorded elsewhere.

`make gpu` runs the cells tagged `gpu` of every chapter and writes data/recorded_runs.json. Above:
`runtime`. Used by the *Bahdanau attention* and *The Transformer* to *Attention between pixels*.
"""

import datetime
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from course_utils.runtime import ROOT, atomic_write, has_gpu

RECORDS = ROOT / "data" / "recorded_runs.json"


@dataclass(frozen=True)
class RecordedRun:
    """What one run at full size gave.

    Attributes:
        key: the run's name.
        date: when it ended, as YYYY-MM-DD; empty if none is recorded.
        device: the GPU's name.
        seconds: how long it took.
        figures: its results by name.
    """

    key: str
    date: str = ""
    device: str = ""
    seconds: float = 0.0
    figures: dict[str, float] | None = None

    def __repr__(self) -> str:
        if not self.date:
            return (
                f"{self.key}: no run is recorded. It wants a GPU; `make gpu` runs it where there "
                "is one."
            )
        figures = ", ".join(f"{name} {value:.4g}" for name, value in (self.figures or {}).items())
        return f"{self.key}: {figures} ({self.device}, {self.seconds:.0f} s, {self.date})"


def gpu_run(key: str, run: Callable[..., dict[str, float]]) -> RecordedRun:
    """Run at full size where there is a GPU; elsewhere show what was recorded, if anything was.

    With COURSE_RECORD=1, as `make gpu` sets it, the result is written to data/recorded_runs.json.
    With COURSE_QUICK=1 the run is done on any device, in its small form, and not written: the tests
    keep the code alive that way.

    Args:
        key: the run's name, such as "vit-cifar10".
        run: called as `run(quick=False)`; gives its results by name.
    """
    quick = os.environ.get("COURSE_QUICK") == "1"
    if not quick and not has_gpu():
        return recorded_run(key)
    began = time.perf_counter()
    figures = {name: float(value) for name, value in run(quick=quick).items()}
    device = torch.cuda.get_device_name() if has_gpu() else "CPU"
    seconds = round(time.perf_counter() - began, 1)
    result = RecordedRun(key, datetime.date.today().isoformat(), device, seconds, figures)
    if os.environ.get("COURSE_RECORD") == "1" and not quick:
        record(result)
    return result


def recorded_run(key: str, *, path: Path | None = None) -> RecordedRun:
    """The recorded run of this name, or one without a date if there is none."""
    records = _read(path or RECORDS)
    return RecordedRun(**{"key": key, **records.get(key, {})})


def record(run: RecordedRun, *, path: Path | None = None) -> None:
    """Write a run into the file, in place of an earlier one of its name: whole or not at all."""
    path = path or RECORDS
    entry = {name: value for name, value in asdict(run).items() if name != "key"}
    records = {**_read(path), run.key: entry}
    text = json.dumps(records, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


def _read(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
