"""Repetition of a stored run, and its comparison with the stored numbers.

On the processor that made a run, with its instruction set and as many threads, all numbers have to be the same, bit for
bit. (Processors of one name may have two instruction sets; `ATEN_CPU_CAPABILITY=avx2` asks PyTorch for the smaller.)
Another processor adds in another order, and a training amplifies a difference of the last digit within some hundred
steps. There a result may be that of another seed: it has to lie in the range of the stored runs that differ in the seed
alone, widened on both sides by the width of this range, or by a quarter of its larger end if that is more, and by 0.01.
Curves and examples are then compared by name and number only. Times are never compared.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_utils.data.registry import DataUnavailable
from course_utils.kit.runs import RunFunction, declared, read
from course_utils.kit.stored_run import StoredRun, config_key

RELATIVE, ABSOLUTE = 0.25, 0.01
"""How far a result may lie outside the range of the seeds, on another processor."""


@dataclass(frozen=True)
class Repeat:
    """The outcome of a repetition.

    Attributes:
        run: the stored run.
        seconds: the time that the repetition took.
        exact: whether processor and threads are those of the stored run, so that the numbers have to be equal.
        differences: a line for each number that differs, with both values.
        far: a line for each result that another seed does not explain.
        unavailable: why the run could not be repeated: a file that has to be downloaded.
    """

    run: StoredRun
    seconds: float = 0.0
    exact: bool = False
    differences: Sequence[str] = ()
    far: Sequence[str] = ()
    unavailable: str = ""

    @property
    def same(self) -> bool:
        """Whether the numbers are equal or, on another processor, as close as those of another seed."""
        return not (self.unavailable or (self.differences if self.exact else self.far))

    def __repr__(self) -> str:
        head = f"{self.run.name} {self.run.config}: "
        if self.unavailable:
            return f"{head}skipped, {self.unavailable}"
        if not self.differences:
            return f"{head}the same, bit for bit"
        made_on = " ".join(filter(None, [self.run.machine, self.run.instructions]))
        where = "" if self.exact else f" on another processor than {made_on}"
        close = "none further than another seed" if not self.far else f"{len(self.far)} too far"
        shown = [f"\n  {line}" for line in (self.far or self.differences)[:8]]
        return f"{head}{len(self.differences)} other numbers{where}, {close}{''.join(shown)}"


def cheapest(slug: str) -> list[tuple[RunFunction, StoredRun]]:
    """For each run function of a lesson that needs no GPU, its stored case that took the shortest time."""
    stored = read(slug)
    found = []
    for function in declared(slug).values():
        known = [run for run in stored if run.name == function.name]
        if known and not function.minutes:
            found.append((function, min(known, key=lambda run: run.seconds)))
    return found


def repeat(function: RunFunction, run: StoredRun) -> Repeat:
    """Repeat one stored run and compare. Nothing stored changes: neither the run nor a model of it is written."""
    with TemporaryDirectory() as folder:
        try:
            again = function.make(run.config, checkpoint=Path(folder) / "checkpoint.pt")
        except DataUnavailable as error:
            return Repeat(run, unavailable=str(error).splitlines()[0])
    seeds = [other for other in read(function.slug) if other.name == run.name]
    seeds = [other for other in seeds if _without_seed(other) == _without_seed(run)]
    return Repeat(
        run,
        again.seconds,
        _made_by(again) == _made_by(run),
        list(differences(_as_stored(run, function.times), _as_stored(again, function.times))),
        list(_far(run, again, seeds, function.times)),
    )


def differences(stored: Any, again: Any, path: str = "") -> Iterator[str]:
    """The places in which two nested values differ, each with both values."""
    if isinstance(stored, dict) and isinstance(again, dict):
        pairs: Iterable = ((key, stored.get(key), again.get(key)) for key in {**stored, **again})
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        pairs = ((index, *both) for index, both in enumerate(zip(stored, again, strict=True)))
    else:
        nan = all(isinstance(value, float) and math.isnan(value) for value in (stored, again))
        if stored != again and not nan:
            yield f"{path}: {_short(stored)} is stored, {_short(again)} came out"
        return
    for key, before, now in pairs:
        yield from differences(before, now, f"{path}, {key}" if path else str(key))


def _far(
    run: StoredRun, again: StoredRun, seeds: Sequence[StoredRun], times: Sequence[str]
) -> Iterator[str]:
    """The results outside the range of the seeds, and what is there in one of the two runs only."""
    yield from differences(_shape(run), _shape(again))
    for name in (run.result.keys() & again.result.keys()) - set(times):
        values = [other.result[name] for other in seeds if name in other.result]
        low, high = min(values), max(values)
        room = ABSOLUTE + max(high - low, RELATIVE * max(abs(low), abs(high)))
        if not low - room <= again.result[name] <= high + room and not any(map(math.isnan, values)):
            yield f"{name}: {again.result[name]} came out, {low} to {high} are stored"


def _shape(run: StoredRun) -> dict[str, Any]:
    names = {"result": sorted(run.result), "curves": sorted(run.curves)}
    return names | {"number of examples": len(run.examples)}


def _as_stored(run: StoredRun, times: Sequence[str]) -> dict[str, Any]:
    """Its numbers without times, after a round trip through JSON."""
    result, curves = (
        {name: value for name, value in part.items() if name not in times}
        for part in (run.result, run.curves)
    )
    return json.loads(json.dumps({"result": result, "curves": curves, "examples": run.examples}))


def _made_by(run: StoredRun) -> tuple[str, str, int]:
    return run.machine, run.instructions, run.threads


def _without_seed(run: StoredRun) -> str:
    return config_key({key: value for key, value in run.config.items() if key != "seed"})


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
