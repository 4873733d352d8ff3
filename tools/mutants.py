"""Change the library line by line, and list the changes that no test notices: ``make mutants``.

    python tools/mutants.py [cache …]

mutmut makes the changes (mutants) and runs, for each, the quick tests that reach its function. It has an environment of
its own in _build/mutants, which sees the packages of the one that runs this. A survivor is no verdict: it may compute
the same. `mutmut show NAME`, run in the folder that is printed, shows the change.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "_build" / "mutants"
MUTMUT = "mutmut==3.8.1"

TESTS = {
    "arguments": "attention decoding interventions",
    "attention": "attention",
    "cache": "attention models decoding",
    "decoding": "decoding language",
    "metrics": "metrics images vision",
    "pooling": "pooling",
    "positions": "positions",
    "train/losses": "training images language",
}
"""The files of tests that a module's mutants are shown to."""

MARKS = "not slow and not browser and not notebook"
# By name: what interrupts would stop mutmut as well.
UNFIT = "not interrupt and not kill and not handler"

CONFIGURATION = """

[tool.mutmut]
source_paths = ["course_utils"]
only_mutate = ["course_utils/{module}.py"]
pytest_add_cli_args = ["-m", "{marks}", "-k", "{names}", "-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {tests}
also_copy = ["tests", "data", "book.toml"]
"""


def environment() -> Path:
    """The folder of mutmut's programs; made at the first call."""
    home = HOME / ".venv"
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    if not any(programs.glob("mutmut*")):
        venv.create(home, clear=True, with_pip=True)
        scheme = {"base": str(home), "platbase": str(home)}
        inner = Path(sysconfig.get_path("purelib", "venv", scheme))
        (inner / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MUTMUT]
        subprocess.run([programs / "python", *install], check=True)
    return programs


def mutate(module: str) -> None:
    """All mutants of a module, in a copy of the course; prints how they fared."""
    folder = HOME / module.replace("/", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("course_utils", "tests", "data"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    shutil.copy(ROOT / "book.toml", folder)
    # mutmut passes over a function with a decorator; this one is of no account to the tests.
    mutated = folder / "course_utils" / f"{module}.py"
    mutated.write_text(
        mutated.read_text(encoding="utf-8").replace("@torch.no_grad()\n", ""), "utf-8"
    )
    tests = [f"tests/test_{name}.py" for name in TESTS[module].split()]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    text += CONFIGURATION.format(module=module, tests=tests, marks=MARKS, names=UNFIT)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    mutmut = environment() / "mutmut"
    environ = os.environ | {"PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    print(f"\n{module}: {folder}", flush=True)
    subprocess.run([mutmut, "run", "--max-children", "2"], cwd=folder, env=environ, check=False)
    subprocess.run([mutmut, "results"], cwd=folder, env=environ, check=False)


def main(chosen: list[str]) -> int:
    """Mutate the chosen modules, or all of them."""
    for name in chosen or TESTS:
        fitting = [module for module in TESTS if module.split("/")[-1] == name.split("/")[-1]]
        if not fitting:
            print(f"{name!r} is not among {', '.join(TESTS)}", file=sys.stderr)
            return 1
        mutate(fitting[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
