"""Open JupyterLab on the first chapter: ``python -m course_utils.studio.lab``, which is ``make lab``.

Lab itself looks for the next free port and prints the address; this module says what to open, how pairs
are opened and saved (`pairs`), and what to leave out on this machine. Further arguments go on to Lab,
such as ``--port 9000``.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_utils.runtime import ROOT
from course_utils.studio import manifest

# Below the student's own settings, which stay as they are: no question about news, no look for updates.
# And jupyter_server_config.py, for the server: pairs are compared before they are opened or saved.
SETTINGS = Path(__file__).parent / "lab_settings"


def has_display(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser that opens here would be seen: not over SSH, not in CI, not without a screen."""
    if environ.get("CI") or environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    if platform in ("darwin", "win32"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def is_root() -> bool:
    """Whether this is the superuser, for whom Lab starts only with ``--allow-root``."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def arguments(notebook: Path, *, browser: bool, root: bool) -> list[str]:
    """What ``jupyter lab`` is told, for a notebook inside the repository."""
    options = [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{notebook.relative_to(ROOT).as_posix()}",
        f"--LabApp.app_settings_dir={SETTINGS}",
        "--Application.log_level=WARN",
    ]
    if not browser:
        options.append("--no-browser")
    if root:
        options.append("--allow-root")
    return options


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables for Lab's server: these, and where it finds the course's configuration."""
    paths = [str(SETTINGS), environ.get("JUPYTER_CONFIG_PATH", "")]
    return {**environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}


def main(argv: Sequence[str] | None = None) -> int:
    """Start Lab in the place of this process."""
    try:
        # A notebook of the student's own, which book.toml does not name, is no reason not to start.
        first = manifest.load(files=False).chapters[0]
    except manifest.ManifestError as error:
        sys.exit(str(error))
    options = arguments(first.ipynb, browser=has_display(), root=is_root())
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        *options,
        *(sys.argv[1:] if argv is None else argv),
    ]
    if os.name == "nt":  # exec leaves the console there, and Lab behind it
        return subprocess.call(command, env=environment())
    os.execve(sys.executable, command, environment())


if __name__ == "__main__":
    sys.exit(main())
