"""Runs that were made beforehand: other seeds, controls, baselines, trainings at full size.

A chapter trains one network before the reader. What takes longer is stored in data/runs/<slug>.json, made by
`make runs` (at full size: `make gpu`) from functions of the chapter or of the package, with its configuration, seed,
curves, result, date, machine, threads and seconds. A lesson declares its runs in its `runs.py`:

    @stored(
        cases=[{"seed": seed} for seed in range(3)],
        chapter=["new_model", "fit"],
    )
    def training(chapter, *, seed, checkpoint):
        model = chapter.new_model(seed)
        …
        return {"result": {"bleu": 0.93}, "curves": {"loss": [[100, 2.1], [200, 1.4]]}}

and a chapter shows them: `cu.stored_runs("training_transformers", "small_training")`. A test fails where a declared
case is not stored, or was stored by an earlier version of its function. A change of code that changes the numbers
raises `version`.
"""

import datetime
import hashlib
import inspect
import json
import platform
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from course_utils.files import LESSONS, ROOT, atomic_write, is_first_process, locked
from course_utils.kit.needed import needed
from course_utils.kit.tuned import at_best_rate, crossed

RUNS = ROOT / "data" / "runs"
CHECKPOINTS = ROOT / "_build" / "runs"


@dataclass(frozen=True)
class StoredRun:
    """One run: what was chosen, and what it gave.

    Attributes:
        name: of the function that ran.
        config: its arguments, the seed among them.
        result: its scores by name.
        curves: points [step, value] by name: "loss", "bleu", …; may be empty.
        examples: things to look at, such as sentences with their maps, as JSON has them; may be empty.
        date: when it ended, as YYYY-MM-DD; empty if no such run is stored.
        machine: model of the GPU or of the CPU.
        threads: of the CPU.
        seconds: how long it took.
        version: of the function, as it was declared then.
    """

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    result: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[list[float]]] = field(default_factory=dict)
    date: str = ""
    machine: str = ""
    threads: int = 0
    seconds: float = 0.0
    version: int = 1
    examples: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        if not self.date:
            return f"{self.name}: no run is stored yet. `make gpu` makes it where there is a GPU."
        curves = {
            name: f"{points[0][1]:.3g} → {points[-1][1]:.3g}"
            for name, points in self.curves.items()
        }
        values = curves | {name: f"{value:.4g}" for name, value in self.result.items()}
        result = ", ".join(f"{name} {value}" for name, value in values.items())
        return f"{self.name}: {result} ({self.machine}, {self.seconds:.0f} s, {self.date})"


# Reading ----------------------------------------------------------------------------------------


def stored_runs(
    slug: str,
    name: str | None = None,
    *,
    lowest: str = "",
    highest: str = "",
    **config,
) -> list[StoredRun]:
    """The stored runs of a chapter, in the order in which they were declared.

    Args:
        slug: the chapter: its file name without the number.
        name: of one function; all by default.
        lowest, highest: the result by whose mean over the seeds each variant gets its rate; all rates without.
        config: values that the runs' configurations must have.

    Raises:
        ValueError: `name` or a key of `config` fits no run that is stored.
    """
    runs = read(slug)
    wanted = ({} if name is None else {"name": name}) | config
    for key, value in wanted.items():
        runs = [run for run in runs if (run.config | {"name": run.name}).get(key) == value]
        if not runs:
            remedy = "`make runs` makes what is missing"
            raise ValueError(f"{key}={value!r} fits no stored run of {slug!r}; {remedy}")
    measure = lowest or highest
    return at_best_rate(runs, measure, lowest=bool(lowest)) if measure else runs


def read(slug: str, folder: Path | None = None) -> list[StoredRun]:
    """All stored runs of a chapter; none where nothing is stored."""
    path = (folder or RUNS) / f"{slug}.json"
    every = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.is_file() else []
    return [StoredRun(**run) for run in every]


def stored_run(slug: str, name: str, **config) -> StoredRun:
    """The one stored run of a function with this configuration, or one that says that none is stored.

    Nothing is trained by it, wherever it is called. A section of a chapter whose cell, tagged `gpu`, shows a run that
    is not stored is left out of the book.

    Raises:
        ValueError: several runs have it.
    """
    of_name = [run for run in read(slug) if run.name == name]
    matching = [run for run in of_name if config.items() <= run.config.items()]
    if len(matching) > 1:
        raise ValueError(
            f"{slug!r} has {len(matching)} stored runs {name!r} with {config}, expected one; say which"
        )
    return matching[0] if matching else StoredRun(name, config)


# Declaring --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """A function to run for each of its cases, as `stored` declares it.

    Attributes:
        function: it returns a dict with `result` (numbers by name) and, if it likes, `curves` and `examples`. If it
            has an argument `checkpoint`, that is a file from which an interrupted run goes on. A model that the book
            shows is saved by the function itself (`live.save_model`).
        cases: the keyword arguments of each run; of a comparison, its sides.
        chapter: names that the chapter defines; the function's first argument has them as attributes.
        version: a number to raise when the function, or what it calls, is changed so that its results change.
        small: a run takes some seconds; the tests make one of them again.
        minutes: a run takes about so many on a GPU, and is made there alone, by `make gpu`; 0 for those of `make runs`.
        quick: of such a run the arguments that make it small, so that the tests can try it on a CPU.
        digits: to which the numbers of its result are rounded.
    """

    function: Callable[..., Mapping]
    cases: tuple[dict, ...]
    chapter: Sequence[str] = ()
    version: int = 1
    small: bool = False
    minutes: float = 0
    quick: Mapping = field(default_factory=dict)
    digits: int = 4

    @property
    def name(self) -> str:
        """The function's name, under which its runs are stored."""
        return self.function.__name__

    @property
    def slug(self) -> str:
        """The chapter that declares it."""
        return self.function.__module__.split(".")[-2]

    def make(self, case: Mapping, *, checkpoint: Path | None = None) -> StoredRun:
        """Run one case; what it gives is not stored yet."""
        import torch  # slow to import, and nobody needs it to read what is stored

        first = [definitions(source(self.slug), *self.chapter)] if self.chapter else []
        takes = "checkpoint" in inspect.signature(self.function).parameters
        options = {"checkpoint": checkpoint} if takes else {}
        began = time.perf_counter()
        outcome = self.function(*first, **case, **options)
        outcome = outcome if "result" in outcome else {"result": outcome}
        return StoredRun(
            self.name,
            dict(case),
            {name: round(float(value), self.digits) for name, value in outcome["result"].items()},
            dict(outcome.get("curves", {})),
            datetime.date.today().isoformat(),
            torch.cuda.get_device_name() if torch.cuda.is_available() else cpu_model(),
            torch.get_num_threads(),
            max(0.1, round(time.perf_counter() - began, 1)),
            self.version,
            list(outcome.get("examples", [])),
        )


def stored(
    *,
    cases: Sequence[Mapping] = ({},),
    rates: Sequence[float] = (),
    seeds: Sequence[int] = (),
    **settings: Any,
) -> Callable[[Callable[..., Mapping]], Runs]:
    """Declare the runs of a function, in a lesson's `runs.py`.

    Args:
        cases: as in `Runs`.
        rates, seeds: each case is run at each `rate` with each `seed`; a comparison takes three of both or more.
        settings: the other attributes of `Runs`.
    """
    return partial(Runs, cases=crossed(cases, rates, seeds), **settings)


def declared(slug: str) -> dict[str, Runs]:
    """What a lesson's `runs.py` declares, by name; nothing where there is no such file."""
    if not (LESSONS / slug / "runs.py").is_file():
        return {}
    values = vars(import_module(f"course_utils.lessons.{slug}.runs")).values()
    return {value.name: value for value in values if isinstance(value, Runs)}


def definitions(path: Path, *names: str) -> types.SimpleNamespace:
    """What a chapter's source binds to these names; the statements that they need run, and no others.

    Raises:
        ValueError: the chapter binds no such name.
    """
    namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(needed(path, names), str(path), "exec"), namespace)
    return types.SimpleNamespace(**{name: namespace[name] for name in names})


def source(slug: str, root: Path = ROOT) -> Path:
    """The chapter's source, `notebooks/source/NN_slug.py`.

    Raises:
        ValueError: there is no such chapter.
    """
    files = sorted((root / "notebooks" / "source").glob(f"[0-9][0-9]_{slug}.py"))
    if not files:
        raise ValueError(
            f'no chapter {slug!r}; write a notebook\'s name without its number, such as "masks"'
        )
    return files[0]


# Making -----------------------------------------------------------------------------------------


def missing(slug: str, *, gpu: bool = False) -> list[tuple[Runs, dict]]:
    """The declared cases of a lesson that are not stored in this version; either those for a GPU, or all others."""
    there = {(run.name, key(run.config), run.version) for run in read(slug)}
    return [
        (runs, case)
        for runs in declared(slug).values()
        for case in runs.cases
        if bool(runs.minutes) is gpu and (runs.name, key(case), runs.version) not in there
    ]


def make(slug: str, say: Callable[[str], None] = print, *, gpu: bool = False) -> None:
    """Make what is `missing`, the runs one after another; each is written when it is done.

    Stopped and started again, it goes on where it was: with the next run, or in the middle of one that
    keeps a checkpoint.
    """
    for runs, case in missing(slug, gpu=gpu):
        of_case = hashlib.sha256(key(case).encode()).hexdigest()[:8]
        place = CHECKPOINTS / slug / f"{runs.name}-{runs.version}-{of_case}.pt"
        run = runs.make(case, checkpoint=place)
        write(slug, run)
        place.unlink(missing_ok=True)
        say(f"{case}: {run}")


def write(slug: str, *new: StoredRun) -> None:
    """Store runs in place of those of their names and configurations: the file is written whole.

    Several processes may do so at a time; of those that train together the first does.
    """
    if not is_first_process():
        return
    cases = [(runs.name, key(case)) for runs in declared(slug).values() for case in runs.cases]
    order = {case: place for place, case in enumerate(cases)}
    path = RUNS / f"{slug}.json"
    with locked(path), atomic_write(path) as part:
        runs = {(run.name, key(run.config)): run for run in (*read(slug), *new)}
        ordered = sorted(runs.items(), key=lambda item: order.get(item[0], len(order)))
        lines = ",\n  ".join(json.dumps(asdict(run), ensure_ascii=False) for _, run in ordered)
        part.write_text(f'{{"runs": [\n  {lines}\n]}}\n', encoding="utf-8")


def cpu_meter() -> Callable[[], float]:
    """A function that gives the CPU seconds since its last call: other work on the machine does not count.

    Called after each epoch, and kept with the history, it counts a run that was cut, too.
    """
    before = time.process_time()

    def since() -> float:
        nonlocal before
        before, last = time.process_time(), before
        return before - last

    return since


def cpu_model() -> str:
    """The model of this machine's processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def key(config: Mapping) -> str:
    """A configuration as text, the same for the same values."""
    return json.dumps(config, sort_keys=True)
