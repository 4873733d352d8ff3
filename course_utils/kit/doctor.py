"""`cu.doctor()`: a report on Python, PyTorch, packages, memory, widgets and weights, with a remedy for each fault."""

import platform
import re
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from course_utils.files import ROOT
from course_utils.kit.guard import strict

PYTHON_NEEDED = (3, 11)
MEMORY_NEEDED = 1e9  # bytes free: no notebook takes more
# The two halves of a widget in JupyterLab: a package in Python, and the extension that comes with it.
WIDGETS = {"ipywidgets": "@jupyter-widgets/jupyterlab-manager", "anywidget": "anywidget"}
INSTALL = "run `make lab` again in a terminal (without make: `pip install -c constraints.txt -e .`)"
RESTART = f"{INSTALL}, then restart the kernel and reload the page"


class Finding(NamedTuple):
    """A line of the report: ✓ fine, ○ could be better, ✗ to fix, · not looked at; `remedy` is Markdown."""

    mark: str
    found: str
    remedy: str = ""


class Findings(dict[str, Finding]):
    """Findings by subject: a table in a notebook, lines in a terminal."""

    @property
    def ok(self) -> bool:
        """Whether no line has to be fixed."""
        return not any(finding.mark == "✗" for finding in self.values())

    @property
    def verdict(self) -> str:
        """One sentence about the whole report."""
        if any(finding.mark == "·" for finding in self.values()):
            return "Nothing has been looked at yet."
        return "All is well: every chapter will run here." if self.ok else "Fix the lines with ✗."

    def __repr__(self) -> str:
        lines = [
            f"{mark} {name:8}  {found}" + f"\n{'':12}→ {remedy}" * bool(remedy)
            for name, (mark, found, remedy) in self.items()
        ]
        return "\n".join([*lines, self.verdict])

    def _repr_markdown_(self) -> str:
        rows = ["| | What | Found | To do |", "|---|---|---|---|"]
        for name, (mark, found, remedy) in self.items():
            plain = re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", found)  # it may be any text
            rows.append(f"| {mark} | {name} | {plain} | {remedy} |")
        return "\n".join([*rows, "", self.verdict])


def doctor() -> Findings:
    """A report on the machine and the installation; never raises, and takes well under a second.

    With COURSE_STRICT=1, as `make notebooks` sets it, a page shows nothing of its author's machine.
    """
    if strict():
        return Findings(dict.fromkeys(FINDERS, Finding("·", "run this cell to see yours")))
    return Findings({name: _find(finder) for name, finder in FINDERS.items()})


def _find(finder: Callable[[], Finding]) -> Finding:
    try:
        return finder()
    except Exception as error:  # a broken installation: the other lines still help
        return Finding("✗", " ".join(f"{type(error).__name__}: {error}".split()), RESTART)


def _python() -> Finding:
    version, needed = platform.python_version(), ".".join(map(str, PYTHON_NEEDED))
    if sys.version_info < PYTHON_NEEDED:
        return Finding("✗", version, f"install Python {needed} or newer, then {INSTALL}")
    return Finding("✓", f"{version} on {platform.system()}")


def _torch() -> Finding:
    import torch

    has_gpu = torch.cuda.is_available()
    gpu = torch.cuda.get_device_name(0) if has_gpu else "no GPU, and none needed"
    return Finding("✓", f"{torch.__version__}; {gpu}; {torch.get_num_threads()} threads")


def _packages() -> Finding:
    """The packages of `pyproject.toml`, and their versions against those of `constraints.txt`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    tested = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", constraints))
    installed = {re.match(r"[\w-]+", line)[0]: "" for line in project["dependencies"]}
    installed = {name: _version(name) for name in installed}
    if missing := [name for name, version in installed.items() if not version]:
        return Finding("✗", f"missing: {', '.join(missing)}", RESTART)
    pairs = [(name, version, tested.get(name, version)) for name, version in installed.items()]
    if other := [f"{name} {has} (tested: {pin})" for name, has, pin in pairs if has != pin]:
        return Finding("○", ", ".join(other), f"only if a cell fails: {INSTALL}")
    return Finding("✓", f"all {len(pairs)} at the versions that the course is tested with")


def _version(name: str) -> str:
    """The installed version without its local part, 2.13.0 for 2.13.0+cpu; empty if it is missing."""
    package = next(iter(metadata.distributions(name=name)), None)
    return package.version.partition("+")[0] if package else ""


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    free = f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB"
    if memory.available < MEMORY_NEEDED:
        return Finding("✗", free, "in Lab, choose *Kernel → Shut Down All Kernels*")
    return Finding("✓", free)


def _widgets() -> Finding:
    """Both halves of a widget: its package in the kernel, its extension in JupyterLab."""
    from jupyter_core.paths import jupyter_path

    for package, extension in WIDGETS.items():
        if not _version(package):
            return Finding("✗", f"{package} is missing: pictures show, sliders do not", RESTART)
        if not any(Path(place, extension).is_dir() for place in jupyter_path("labextensions")):
            return Finding("✗", f"JupyterLab lacks the extension of {package}", RESTART)
    return Finding("✓", ", ".join(f"{package} {_version(package)}" for package in WIDGETS))


def _weights() -> Finding:
    """The weights of the real model, if they are in the cache; without them its chapter shows recorded answers."""
    from course_utils.data.registry import cached, registered

    if cached("smollm2"):
        return Finding("✓", "SmolLM2, for the chapter Real weights")
    megabytes = f"{registered()['smollm2'].megabytes:.0f} MB"
    remedy = f'only if you want to ask it yourself: `cu.fetch("smollm2")` in a cell ({megabytes})'
    return Finding(
        "○", "SmolLM2 is not here, so the chapter Real weights shows recorded answers", remedy
    )


FINDERS = {
    "Python": _python,
    "PyTorch": _torch,
    "Packages": _packages,
    "Memory": _memory,
    "Widgets": _widgets,
    "Weights": _weights,
}
"""The subjects of `doctor`, in the order of its report."""
