"""The packages we compare with, in an environment of their own: _build/bench/.venv.

It sees the packages of the environment that makes it, PyTorch above all, so that both sides run on the
very same one; what only the peers need is installed into it. Nothing is added to .venv.
"""

import importlib
import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "_build" / "bench"

# Installed without dependencies: d2l 1.0.3 asks for a Jupyter, pandas and NumPy of 2023, which no longer
# install; its PyTorch module runs with today's, and imports SciPy besides.
PEERS = {
    "d2l": ["d2l==1.0.3", "scipy==1.17.1"],
    "vit-pytorch": ["vit-pytorch==1.26.11", "einops==0.8.2"],
}

# Peers import torchvision for data sets that no benchmark reads. Its build has to fit PyTorch's, and PyPI's
# does not fit a PyTorch for the CPU alone: where it is missing or breaks, an empty module stands in for it.
EMPTY = ("torchvision", "torchvision.transforms")


class Unavailable(Exception):
    """A peer that can't be had; its text says why."""


def make(peers: dict[str, list[str]] | None = None, folder: Path = FOLDER) -> Path:
    """Make the environment, or bring it up to date; return its Python.

    A peer that can't be installed is noted in peers.json with the reason, for `load` to tell.
    """
    peers = PEERS if peers is None else peers
    home = folder / ".venv"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    notes = _notes(folder)
    outer = sysconfig.get_path("purelib")
    if notes.get("sees") != outer or not python.exists():
        venv.create(home, clear=True, with_pip=True)
        scheme = {"base": str(home), "platbase": str(home)}
        inner = Path(sysconfig.get_path("purelib", "venv", scheme))
        inner.mkdir(parents=True, exist_ok=True)
        (inner / "outer.pth").write_text(outer + "\n", encoding="utf-8")
        notes = {"sees": outer, "installed": {}, "problems": {}}
    notes["problems"] = {}
    for name, packages in peers.items():
        if notes["installed"].get(name) == packages:
            continue
        command = [python, "-m", "pip", "install", "--no-deps", "--no-input", "--quiet"]
        options = ["--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
        done = subprocess.run([*command, *options, *packages], capture_output=True, text=True)
        if done.returncode == 0:
            notes["installed"][name] = packages
        else:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            notes["problems"][name] = "not installed: " + (
                said[-1].removeprefix("ERROR: ") if said else f"pip ended with {done.returncode}"
            )
    (folder / "peers.json").write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")
    return python


def load(name: str, module: str, folder: Path = FOLDER) -> ModuleType:
    """Import a peer's module.

    Raises:
        Unavailable: it is not installed here, or does not import.
    """
    if problem := _notes(folder).get("problems", {}).get(name):
        raise Unavailable(f"{name} is {problem}")
    _fill_in()
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever a peer does when it is imported
        raise Unavailable(f"{name} does not import: {error}") from error


def _fill_in() -> None:
    try:
        importlib.import_module(EMPTY[0])
    except Exception:  # missing, or built for another PyTorch
        for name in EMPTY:
            sys.modules[name] = ModuleType(name)
        sys.modules[EMPTY[0]].transforms = sys.modules[EMPTY[1]]


def versions() -> dict[str, str]:
    """Versions of the peers that are installed here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _notes(folder: Path) -> dict:
    path = folder / "peers.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


if __name__ == "__main__":
    print(make(), file=sys.stderr)
