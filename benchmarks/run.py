"""Times the package side by side with its peers, and says whether the targets are met.

    python -m benchmarks.run [--only NAME …] [--threads N] [--rounds N]
    python -m benchmarks.run --here --device cuda --only device

NAME is a topic or a part of a row's name; the topic `device` runs on a GPU, too. Prints a table of ratios and writes
it, with N threads, into _build/bench/results-N.json. A peer that can't be installed is reported there.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import peers
from benchmarks.timing import Row, Settings, conditions, synchronized, table

TOPICS = ("translation", "vision", "device")


def chosen(names: list[str]) -> list[tuple[str, Callable[[Settings], Row]]]:
    """The rows whose topic is one of these names, or whose own name contains one; all for none.

    Raises:
        ValueError: a name fits no row.
    """
    rows, known, fitting = [], [], set()
    for topic in TOPICS:
        for name, function in importlib.import_module(f"benchmarks.{topic}").ROWS.items():
            known.append(name)
            fits = {wanted for wanted in names if wanted == topic or wanted in name}
            fitting |= fits
            if fits or not names:
                rows.append((name, function))
    if unknown := [name for name in names if name not in fitting]:
        raise ValueError(
            f"{unknown[0]!r} is no benchmark; topics: {', '.join(TOPICS)}; rows: {', '.join(known)}"
        )
    return rows


def measure(name: str, function: Callable[[Settings], Row], settings: Settings) -> Row:
    """One row; if that fails, a row that says why."""
    try:
        return function(settings)
    except peers.Unavailable as problem:
        return Row(name, name, problem=str(problem))
    except Exception as error:  # the other rows are still worth having
        traceback.print_exc()
        return Row(name, name, problem=f"{type(error).__name__}: {error}")


def here(options: argparse.Namespace) -> None:
    """Run in this environment."""
    threads = 1 if options.cpu_time else options.threads
    torch.set_num_threads(threads)
    clock = time.process_time if options.cpu_time else time.perf_counter
    clock = synchronized if options.device == "cuda" else clock
    settings = Settings(options.rounds, options.tiny, clock, options.device)
    began = time.perf_counter()
    rows = []
    for name, function in chosen(options.only):
        print(f"{name} …", end=" ", file=sys.stderr, flush=True)
        rows.append(measure(name, function, settings))
        said = rows[-1].problem or f"{rows[-1].ratio:.2f}"
        print(said, file=sys.stderr, flush=True)
    about = conditions()
    about["versions"] |= peers.versions()
    about["clock"] = "CPU time" if options.cpu_time else "wall clock"
    about["seconds"] = round(time.perf_counter() - began, 1)
    print(
        f"{about['gpu'] or about['machine']}, {about['threads']} threads, PyTorch {torch.__version__}"
    )
    print(table(rows))
    results = about | {"rows": {row.name: row.as_dict() for row in rows}}
    path = options.json or peers.FOLDER / f"results-{threads}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Make the peers' environment and run there."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of PyTorch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of `device`")
    parser.add_argument("--json", type=Path, help="where to write the results")
    parser.add_argument(
        "--cpu-time", action="store_true", help="CPU seconds of one thread, where others work too"
    )
    parser.add_argument("--tiny", action="store_true", help="sizes that only show that it works")
    parser.add_argument("--here", action="store_true", help="in this environment, as it is")
    options = parser.parse_args(arguments)
    try:
        chosen(options.only)
    except ValueError as problem:
        parser.error(str(problem))
    if options.here:
        here(options)
        return 0
    print("Making the peers' environment in _build/bench …", file=sys.stderr, flush=True)
    given = sys.argv[1:] if arguments is None else arguments
    command = [str(peers.make()), "-m", "benchmarks.run", "--here", *given]
    return subprocess.run(command, cwd=peers.ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
