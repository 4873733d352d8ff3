"""Stored runs: trainings and experiments that were made beforehand, and are shown from data/runs/<slug>.json.

A chapter trains one network while the reader waits. Other seeds, controls, baselines and trainings at full size are
made by `make runs` or, on a GPU, by `make gpu`, and stored as `StoredRun`s. A lesson declares the functions that give
them in its `runs.py`, or in another of its modules:

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
from course_utils.kit.comparison import at_best_rate, grid
from course_utils.kit.needed import needed
from course_utils.kit.stored_run import StoredRun, as_stored, config_key

RUNS = ROOT / "data" / "runs"
CHECKPOINTS = ROOT / "_build" / "runs"
REMEDY = "`make runs` makes what is missing"


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
    wanted = ({} if name is None else {"name": name}) | as_stored("config", config)
    for key, value in wanted.items():
        runs = [run for run in runs if (run.config | {"name": run.name}).get(key) == value]
        if not runs:
            raise ValueError(f"{key}={value!r} fits no stored run of {slug!r}; {REMEDY}")
    return at_best_rate(runs, lowest=lowest, highest=highest) if lowest or highest else runs


def read(slug: str, folder: Path | None = None) -> list[StoredRun]:
    """All stored runs of a chapter; none where nothing is stored."""
    path = (folder or RUNS) / f"{slug}.json"
    every = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.is_file() else []
    return [StoredRun(**run) for run in every]


def stored_run(slug: str, name: str, **config) -> StoredRun:
    """The one stored run of a function with this configuration; nothing is trained by it.

    A run of `make gpu` that is not stored is a placeholder that says so: a section of a chapter whose cell, tagged
    `gpu`, shows one is left out of the book.

    Raises:
        ValueError: several runs have it, or none has, and it is not one of `make gpu`.
    """
    of_name = [run for run in read(slug) if run.name == name]
    config = as_stored("config", config)
    matching = [run for run in of_name if config.items() <= run.config.items()]
    if len(matching) > 1:
        raise ValueError(
            f"{slug!r} has {len(matching)} stored runs {name!r} with {config}, expected one; say which"
        )
    if matching:
        return matching[0]
    if (function := declared(slug).get(name)) and function.minutes:
        return StoredRun(name, config)
    raise ValueError(f"{slug!r} has no stored run {name!r} with {config}; {REMEDY}")


# Declaring --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunFunction:
    """A function whose results are stored, with the cases for which it is called.

    Attributes:
        function: returns a dict with `result` (numbers by name), and optionally `curves`, `examples`, and what pages
            load: `models` (StoredModels by name) and `cards` (facts about a model, by its name). An argument
            `checkpoint`, if it has one, is a file from which an interrupted run goes on.
        cases: the keyword arguments of each call.
        chapter: names that the chapter defines; the function's first argument has them as attributes.
        version: a number to raise when the function, or what it calls, is changed so that its results change.
        times: names of results and curves that are measured times, which `kit.repeat` does not compare.
        minutes: how long a call takes on a GPU, for a function of `make gpu`; 0 for one of `make runs`.
        quick: arguments that make such a call small, so that the tests can try it on a CPU.
        digits: to which the numbers of the result are rounded.
        saves: name of each stored model → values in the configuration of the one case whose call returns it.
    """

    function: Callable[..., Mapping]
    cases: tuple[dict, ...]
    chapter: Sequence[str] = ()
    version: int = 1
    times: Sequence[str] = ()
    minutes: float = 0
    quick: Mapping = field(default_factory=dict)
    digits: int = 4
    saves: Mapping[str, Mapping] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name, under which its runs are stored."""
        return self.function.__name__

    @property
    def slug(self) -> str:
        """The chapter that declares it."""
        return self.function.__module__.split(".")[-2]

    def models_of(self, case: Mapping) -> list[str]:
        """The names of the stored models that the call for a case returns."""
        return [name for name, values in self.saves.items() if values.items() <= case.items()]

    def make(
        self, case: Mapping, *, checkpoint: Path | None = None, publish: bool = False
    ) -> StoredRun:
        """Call the function for one case. The returned run is not stored yet; `write` stores it.

        Args:
            case: the arguments of the call.
            checkpoint: a file from which an interrupted run goes on.
            publish: whether the models and cards that it returns are written into data/models.
        """
        import torch  # slow to import, and nobody needs it to read what is stored

        first = [definitions(source(self.slug), *self.chapter)] if self.chapter else []
        takes = "checkpoint" in inspect.signature(self.function).parameters
        options = {"checkpoint": checkpoint} if takes else {}
        began = time.perf_counter()
        outcome = self.function(*first, **case, **options)
        if "result" not in outcome:
            raise ValueError(f"{self.name} returned {', '.join(outcome)}; `result` has to be there")
        if publish and is_first_process():
            _publish(outcome.get("models", {}), outcome.get("cards", {}))
        scores = outcome["result"].items()
        return StoredRun(
            name=self.name,
            config=as_stored("config", case),
            result={name: round(float(value), self.digits) for name, value in scores},
            curves=as_stored("curves", outcome.get("curves", {})),
            date=datetime.date.today().isoformat(),
            machine=torch.cuda.get_device_name() if torch.cuda.is_available() else cpu_model(),
            threads=torch.get_num_threads(),
            seconds=max(0.1, round(time.perf_counter() - began, 1)),
            version=self.version,
            examples=as_stored("examples", outcome.get("examples", [])),
            instructions=torch.backends.cpu.get_cpu_capability(),
        )


def _publish(models: Mapping[str, Any], cards: Mapping[str, Mapping]) -> None:
    """Write models and cards into data/models, by name."""
    from course_utils.kit.stored_model import save_model, write_card  # imports PyTorch

    for name, model in models.items():
        save_model(name, model)
    for name, facts in cards.items():
        write_card(name, **facts)


def stored(
    *,
    cases: Sequence[Mapping] = ({},),
    rates: Sequence[float] = (),
    seeds: Sequence[int] = (),
    **settings: Any,
) -> Callable[[Callable[..., Mapping]], RunFunction]:
    """Declare the runs of a function, in a module of a lesson.

    Args:
        cases: as in `RunFunction`.
        rates, seeds: each case is run at each `rate` with each `seed`; a comparison takes three of both or more.
        settings: the other attributes of `RunFunction`.
    """
    return partial(RunFunction, cases=grid(cases, rates, seeds), **settings)


def declared(slug: str) -> dict[str, RunFunction]:
    """The run functions that the modules of a lesson declare, by name: those of its `runs.py`, then the others."""
    modules = sorted(
        (path.stem for path in (LESSONS / slug).glob("*.py") if path.stem != "__init__"),
        key=lambda name: (name != "runs", name),
    )
    found = {}
    for name in (f"course_utils.lessons.{slug}.{module}" for module in modules):
        for value in vars(import_module(name)).values():
            if isinstance(value, RunFunction) and value.function.__module__ == name:
                found[value.name] = value
    return found


def definitions(path: Path, *names: str) -> types.SimpleNamespace:
    """The values of these names in a chapter's source. Only the statements that they depend on are executed.

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


def to_make(slug: str, *, gpu: bool = False) -> list[tuple[RunFunction, dict]]:
    """The declared cases of a lesson that are not stored in this version, or whose stored model is missing.

    Either those for a GPU, or all others.
    """
    there = {(*run.key, run.version) for run in read(slug)}

    def is_missing(function: RunFunction, case: Mapping) -> bool:
        files = [ROOT / "data" / "models" / f"{name}.npz" for name in function.models_of(case)]
        key = function.name, config_key(case), function.version
        return key not in there or not all(file.is_file() for file in files)

    return [
        (function, case)
        for function in declared(slug).values()
        for case in function.cases
        if bool(function.minutes) is gpu and is_missing(function, case)
    ]


def make(slug: str, say: Callable[[str], None] = print, *, gpu: bool = False) -> None:
    """Make what is `to_make`, the runs one after another; each is written when it is done.

    Stopped and started again, it goes on where it was: with the next run, or in the middle of one that
    keeps a checkpoint.
    """
    for function, case in to_make(slug, gpu=gpu):
        of_case = hashlib.sha256(config_key(case).encode()).hexdigest()[:8]
        place = CHECKPOINTS / slug / f"{function.name}-{function.version}-{of_case}.pt"
        run = function.make(case, checkpoint=place, publish=True)
        write(slug, run)
        place.unlink(missing_ok=True)
        say(f"{case}: {run}")


def write(slug: str, *new: StoredRun) -> None:
    """Store runs in place of those of their names and configurations: the file is written whole.

    Several processes may do so at a time; of those that train together the first does.
    """
    if not is_first_process():
        return
    cases = [
        (runs.name, config_key(case)) for runs in declared(slug).values() for case in runs.cases
    ]
    order = {case: place for place, case in enumerate(cases)}
    path = RUNS / f"{slug}.json"
    with locked(path), atomic_write(path) as part:
        runs = {run.key: run for run in (*read(slug), *new)}
        ordered = sorted(runs.items(), key=lambda item: order.get(item[0], len(order)))
        lines = ",\n  ".join(json.dumps(_record(run), ensure_ascii=False) for _, run in ordered)
        part.write_text(f'{{"runs": [\n  {lines}\n]}}\n', encoding="utf-8")


def _record(run: StoredRun) -> dict[str, Any]:
    """What is written of a run: all that it says, but an instruction set that nobody recorded."""
    return {name: value for name, value in asdict(run).items() if name != "instructions" or value}


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
