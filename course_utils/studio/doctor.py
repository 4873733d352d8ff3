"""`cu.doctor()`: what the course runs on, looked at, with what to do about each finding."""

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.files import ROOT

PYTHON_NEEDED = (3, 11)
TORCH_NEEDED = (2, 13)
MEMORY_NEEDED = 1e9  # bytes free: no notebook takes more
DISK_NEEDED = 0.5e9  # bytes free: outputs and the built book
# Where Linux says what a container or a session may use: which groups it is in, and their limits.
GROUPS = Path("/proc/self/cgroup")
LIMITS = Path("/sys/fs/cgroup")
# What draws a widget in JupyterLab: its package in Python, and the extension that comes with it.
WIDGETS = {"ipywidgets": "@jupyter-widgets/jupyterlab-manager", "anywidget": "anywidget"}
INSTALL = "run `make lab` again in a terminal (without make: `pip install -c constraints.txt -e .`)"
RESTART = f"{INSTALL}, then restart the kernel"
RELOAD = f"{INSTALL}, then restart the kernel and reload the page"


# The report -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report: what was found, and what to do about it.

    Attributes:
        found: in words, without markup.
        remedy: what to do, in Markdown; empty if there is nothing to do.
        needed: False where the course runs without the remedy, only slower or with less.
    """

    found: str
    remedy: str = ""
    needed: bool = True

    @property
    def ok(self) -> bool:
        """Whether the course runs with this as it is."""
        return not (self.remedy and self.needed)

    @property
    def mark(self) -> str:
        """✓ fine, ○ fine and could be better, ✗ to fix; · not looked at."""
        if self is UNSEEN:
            return "·"
        return "✗" if not self.ok else "○" if self.remedy else "✓"


UNSEEN = Finding("run this cell to see yours")


class Report:
    """The doctor's findings by subject: a table in a notebook, aligned lines in a terminal."""

    def __init__(self, findings: dict[str, Finding]):
        self.findings = findings

    @property
    def ok(self) -> bool:
        """Whether there is nothing to fix."""
        return all(finding.ok for finding in self.findings.values())

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        broken = [subject for subject, finding in self.findings.items() if not finding.ok]
        if broken:
            return f"To fix: {', '.join(broken)}. The column “To do” says how."
        if UNSEEN in self.findings.values():
            return "Nothing has been looked at yet."
        return "All is well: every chapter will run here."

    def __repr__(self) -> str:
        width = max(len(subject) for subject in self.findings)
        lines = []
        for subject, finding in self.findings.items():
            lines.append(f"{finding.mark} {subject:<{width}}  {finding.found}")
            if finding.remedy:
                lines.append(f"{'':{width + 4}}→ {finding.remedy}")
        return "\n".join([*lines, self.verdict.replace("column “To do”", "line after it")])

    def _repr_markdown_(self) -> str:
        rows = ["| | What | Found | To do |", "|---|---|---|---|"]
        for subject, finding in self.findings.items():
            cells = (
                finding.mark,
                subject,
                _literal(finding.found),
                finding.remedy.replace("|", "\\|"),
            )
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join([*rows, "", self.verdict])


def _literal(text: str) -> str:
    """What was found may be any text, such as an exception's: no character of it is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", text)


def doctor() -> Report:
    """Look at what the course runs on, and say what to do about each finding.

    Python, PyTorch and the other packages, the device, threads, memory, disk, the data files against
    their checksums, and what JupyterLab needs for sliders. Never raises; takes well under a second.
    With COURSE_NEUTRAL=1, as `make notebooks` sets it, the subjects alone: a page says nothing of its author's machine.
    """
    if os.environ.get("COURSE_NEUTRAL") == "1":
        return Report(dict.fromkeys(LOOKS, UNSEEN))
    return Report({subject: _look(look) for subject, look in LOOKS.items()})


def _look(look) -> Finding:
    try:
        return look()
    except Exception as error:  # the other lines are of use all the same
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Finding(f"could not be looked at ({reason})", INSTALL, needed=False)


# What is looked at ------------------------------------------------------------------------------


def _python() -> Finding:
    found = f"{platform.python_version()} on {platform.system()}"
    if sys.version_info >= PYTHON_NEEDED:
        return Finding(found)
    needed = ".".join(map(str, PYTHON_NEEDED))
    return Finding(found, f"install Python {needed} or newer, then {INSTALL}")


def _torch() -> Finding:
    import torch  # slow, and where it is broken the other lines are of use

    version = str(torch.__version__)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) >= TORCH_NEEDED:
        return Finding(version)
    return Finding(f"{version}, older than the course", RESTART)


def _packages() -> Finding:
    """Compare what is installed with `pyproject.toml` (which) and `constraints.txt` (which version)."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.match(r"[\w.-]+", line)[0] for line in project["dependencies"]]
    pins = re.findall(
        r"^([\w.-]+)==([^\s;]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M
    )
    tested = {_canonical(name): version for name, version in pins}
    installed = {name: _version(name) for name in names}
    missing = [name for name, version in installed.items() if version is None]
    if missing:
        return Finding(f"missing: {', '.join(missing)}", RESTART)
    other = [
        f"{name} {version} (tested: {tested[_canonical(name)]})"
        for name, version in installed.items()
        if version != tested.get(_canonical(name), version)
    ]
    if other:
        return Finding(
            f"other versions than tested: {', '.join(other)}",
            f"only if a cell fails: {INSTALL}",
            needed=False,
        )
    return Finding(f"all {len(names)} at the versions that the course is tested with")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(name: str) -> str | None:
    """The installed version without its local part: 2.13.0 for 2.13.0+cpu."""
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _device() -> Finding:
    import torch

    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory
        return Finding(
            f"GPU: {torch.cuda.get_device_name(0)}, {_gb(memory)}; the CPU does the rest"
        )
    if shutil.which("nvidia-smi"):
        return Finding(
            f"CPU; an NVIDIA GPU may be here that PyTorch {torch.__version__} does not see",
            "for the cells tagged `gpu` only: install the CUDA build that pytorch.org names for "
            "your driver",
            needed=False,
        )
    return Finding("CPU: all the course asks for")


def _threads() -> Finding:
    import torch

    threads, available = torch.get_num_threads(), cores()
    found = f"{threads} on {available} {'core' if available == 1 else 'cores'}"
    if threads > available:
        return Finding(
            f"{found}: they wait for each other",
            f"call `torch.set_num_threads({available})` in the first cell, or set "
            f"`OMP_NUM_THREADS={available}` before `make lab`",
        )
    if threads == 1 < available:
        return Finding(
            found, "for more speed: unset `OMP_NUM_THREADS` before `make lab`", needed=False
        )
    return Finding(found)


def cores() -> int:
    """The cores that this process may use, in a container too."""
    try:
        number = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        number = os.cpu_count() or 1
    for group in _groups("cpu"):
        quota, _, period = _text(group / "cpu.max").partition(" ")
        quota = quota or _text(group / "cpu.cfs_quota_us")
        period = period or _text(group / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit():
            number = min(number, max(1, math.ceil(int(quota) / int(period))))
    return number


def _groups(controller: str) -> Iterator[Path]:
    """The folders of the control groups that limit this process, of version 2 and of version 1."""
    for line in _text(GROUPS).splitlines() or ["0::/"]:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = LIMITS / controller if controllers else LIMITS
        group = top / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(top))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    total, free = memory.total, memory.available
    for group in _groups("memory"):
        limit = _text(group / "memory.max") or _text(group / "memory.limit_in_bytes")
        if limit.isdigit() and int(limit) < memory.total:
            used = re.search(r"^(?:anon|total_rss) (\d+)", _text(group / "memory.stat"), re.M)
            total = min(total, int(limit))
            free = min(free, int(limit) - (int(used[1]) if used else 0))
    found = f"{_gb(free)} free of {_gb(total)}"
    if free >= MEMORY_NEEDED:
        return Finding(found)
    return Finding(
        found,
        "in Lab: *Kernel → Shut Down All Kernels*, then open one chapter at a time; close other "
        f"programs. A chapter takes up to {_gb(MEMORY_NEEDED)}",
    )


def _disk() -> Finding:
    here = Path.cwd()  # a kernel runs in its notebook's folder
    free = shutil.disk_usage(here).free
    found = f"{_gb(free)} free"
    if not os.access(here, os.W_OK):
        return Finding(
            f"{found}; this notebook's folder is read-only, so nothing can be saved",
            "copy the course to a folder of your own and start it there",
        )
    if free < DISK_NEEDED:
        remedy = f"free some space; {_gb(DISK_NEEDED)} are enough. `make clean` removes built pages"
        return Finding(found, remedy)
    return Finding(f"{found}; notebooks can be saved")


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size < 10e9 else f"{size / 1e9:.0f} GB"


def _data() -> Finding:
    """Compare every data file with the SHA-256 written down for it in data/SHA256SUMS."""
    folder = ROOT / "data"
    if not (folder / "SHA256SUMS").is_file():
        return Finding("data/SHA256SUMS is missing", "restore the folder: `git checkout -- data`")
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    expected = {
        name.lstrip("*"): sha for sha, name in (line.split(None, 1) for line in lines if line)
    }
    missing = [name for name in expected if not (folder / name).is_file()]
    changed = [
        name
        for name, sha in expected.items()
        if name not in missing and _sha256(folder / name) != sha
    ]
    if not missing + changed:
        files = "file" if len(expected) == 1 else "files"
        return Finding(f"{len(expected)} {files} in data, as published")
    parts = [("missing", missing), ("changed", changed)]
    paths = [f"data/{name}" for name in missing + changed]
    return Finding(
        "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names),
        f"restore from the repository: `git checkout -- {' '.join(paths)}`",
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sliders() -> Finding:
    """Look for both halves of sliders and questions: packages in the kernel, their extensions in JupyterLab."""
    from jupyter_core.paths import jupyter_config_path, jupyter_path

    found = []
    for package, extension in WIDGETS.items():
        version = _version(package)
        if version is None:
            return Finding(f"{package} is missing: pictures show, sliders do not", RELOAD)
        if not any((Path(place) / extension).is_dir() for place in jupyter_path("labextensions")):
            return Finding(f"{package} {version}, but JupyterLab lacks its extension", RELOAD)
        if any(_disables(Path(place), extension) for place in jupyter_config_path()):
            return Finding(
                f"{package} {version}, but its extension is switched off in JupyterLab",
                f"`jupyter labextension enable {extension}`, then reload the page",
            )
        found.append(f"{package} {version}")
    return Finding(f"{' and '.join(found)} with their JupyterLab extensions")


def _disables(config: Path, extension: str) -> bool:
    """Whether this Jupyter configuration switches an extension off."""
    try:
        page = json.loads((config / "labconfig" / "page_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    disabled = page.get("disabledExtensions", {})
    return bool(disabled.get(extension) if isinstance(disabled, dict) else extension in disabled)


LOOKS = {
    "Python": _python,
    "PyTorch": _torch,
    "Packages": _packages,
    "Device": _device,
    "Threads": _threads,
    "Memory": _memory,
    "Disk": _disk,
    "Data": _data,
    "Sliders": _sliders,
}
"""What `doctor` looks at, in the order of its report."""
