"""A warm worker, alone in a sandbox where the system lets it.

With bubblewrap the worker sees Python, the package and its data, and nothing else: no network, no home, no file
to write, no process of the machine. Without it, what remains are limits of time, memory, files and processes.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import course_utils
from course_utils.files import ROOT
from course_utils.studio import StudioError
from course_utils.studio.grading.remote import NO_ANSWER, Session

PACKAGE = Path(course_utils.__file__).parent
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/nix", "/etc/ld.so.cache", "/etc/alternatives")
SECRET = ("checks.py", "homework.py", "quiz.toml", "quiz.sealed")
"""Files of a lesson that no submission may read."""
NOBODY = 65534
START = 300  # seconds that a warm process may take to start, on a busy machine
MB = 2**20

CONTAINER = (
    'docker run --rm --network none --user "$(id -u)" -v "$PWD/SUBMISSIONS:/in:ro" -v "$PWD/MARKS:/out" course '
    "python -m course_utils.studio grade /in --to /out --contained"
)
OPEN = (
    "Submissions run under limits of time, memory, files and processes, but they see your network, files and "
    "processes: {}. For submissions that you do not trust, use a container (docker, or podman with the same "
    "words), after docker build --tag course .\n"
    f"    {CONTAINER}"
)


AS_ROOT = (
    "As root without bubblewrap, a submission could end any process of this machine: grade as an ordinary user, "
    "or in a container, with --contained ({})."
)


class SandboxError(StudioError):
    """No worker can be started here."""


def why_open() -> str:
    """What keeps bubblewrap from working here; empty if it works."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap is for Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt install bubblewrap)"
    asked = ["bwrap", *_apart(), "--ro-bind", "/", "/", "true"]
    tried = subprocess.run(asked, capture_output=True, text=True)
    said = tried.stderr.strip().splitlines() or ["it ended at once"]
    return "" if tried.returncode == 0 else f"bubblewrap does not work on this system ({said[-1]})"


def _apart() -> list[str]:
    """What is cut off. For root no number of processes is too many, so that its workers become nobody."""
    if os.geteuid() != 0:
        return ["--unshare-all"]
    rooms = [f"--unshare-{room}" for room in ("ipc", "pid", "net", "uts")]
    powers = ["setuid", "setgid", "kill"]
    kept = [word for power in powers for word in ("--cap-add", f"cap_{power}")]
    return [*rooms, "--cap-drop", "ALL", *kept]


def someone(walls: bool) -> int:
    """The user that a worker becomes; 0 if it stays who it is."""
    folders = {parent for path in (PACKAGE, Path(sys.base_prefix)) for parent in path.parents}
    open_to_all = all(folder.stat().st_mode & 1 for folder in folders)
    return NOBODY if os.geteuid() == 0 and (walls or open_to_all) else 0


def _walls() -> list[str]:
    """The call of bubblewrap, up to the command."""
    python = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]
    paths = [Path(one) for one in sys.path if "packages" in one]
    shown = [PACKAGE, ROOT / "data"]
    call = ["bwrap", *_apart(), "--die-with-parent", "--new-session", "--proc", "/proc"]
    call += ["--dev", "/dev", "--remount-ro", "/dev"]
    found = [
        one for one in dict.fromkeys([*map(Path, SYSTEM), *python, *paths, *shown]) if one.exists()
    ]
    for folder in sorted({parent for one in found for parent in one.parents}):
        call += ["--perms", "0755", "--dir", str(folder)]
    for one in found:
        call += ["--ro-bind", str(one), str(one)]
    for secret in (file for name in SECRET for file in PACKAGE.glob(f"lessons/*/{name}")):
        call += ["--ro-bind", os.devnull, str(secret)]
    for secret in PACKAGE.glob("lessons/*/__pycache__"):
        call += ["--tmpfs", str(secret), "--remount-ro", str(secret)]
    return [*call, "--remount-ro", "/", "--chdir", "/"]


class Sandbox:
    """A warm process that forks a worker for each exercise.

    Args:
        seconds: of computing, for one exercise.
        memory: megabytes, for one exercise.
        walls: whether to use bubblewrap.
    """

    def __init__(self, seconds: float, memory: int, *, walls: bool):
        self.seconds, self.memory, self.walls = seconds, memory, walls
        self.started = 0
        self._home: TemporaryDirectory | None = None
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None

    @property
    def patience(self) -> float:
        """Seconds to wait for all answers of an exercise: of a process that sleeps, or on a busy machine."""
        return 5 * self.seconds + 50

    def _start(self) -> socket.socket:
        """The control socket of a process that runs."""
        if self._control is not None and self._process and self._process.poll() is None:
            return self._control
        self.close()
        self._home = TemporaryDirectory(prefix="grade-")
        ours, theirs = socket.socketpair()
        environment = {
            "HOME": "/nowhere" if self.walls else self._home.name,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(PACKAGE.parent),
            "OMP_NUM_THREADS": "1",
            "COURSE_OFFLINE": "1",
            "COURSE_STRICT": "1",
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": "/usr" if self.walls else self._home.name,
            "CUDA_VISIBLE_DEVICES": "",
            "LC_ALL": "C.UTF-8",
        }
        user = someone(self.walls)
        if user:
            os.chmod(self._home.name, 0o777)
        command = [*(_walls() if self.walls else [])]
        command += [sys.executable, "-m", "course_utils.studio.grading.forks"]
        self._process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(int(self.walls)), str(user)],
            pass_fds=[theirs.fileno()],
            env=environment,
            cwd="/" if self.walls else self._home.name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        ours.settimeout(START)
        self._control = ours
        try:
            if ours.recv(64) != b"ready\n":
                raise OSError("it ended at once")
        except OSError as error:
            self._process.kill()
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            raise SandboxError(f"No worker starts: {' '.join(said) or error}") from error
        self.started += 1
        return ours

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A worker of its own, which ends with the block, and all that it has started with it."""
        control = self._start()
        ours, theirs = socket.socketpair()
        job = {"seconds": int(self.seconds), "memory": self.memory * MB}
        ended: list[float] = []

        def end(*, gone: bool = False) -> list[float]:
            if not ended:
                with suppress(OSError, ValueError):
                    control.sendall(json.dumps({"gone": gone}).encode())
                    ended[:] = json.loads(control.recv(1 << 16))
                if not ended:
                    self.close()  # the next one gets a new process
            return ended

        def why_gone(said: str) -> tuple[bool, str]:
            known = end(gone=True)
            if not known:
                return False, "it has killed the process that grades it"
            number, spent = int(known[0]), known[1]
            if spent >= self.seconds - 0.5:
                return True, f"still running after {self.seconds:g} seconds of computing"
            if said == NO_ANSWER:
                return True, f"its answers take more than {self.patience:g} seconds"
            if number:
                return False, f"its process was ended by {signal.Signals(number).name}"
            return False, said

        with ours:
            with theirs:
                socket.send_fds(control, [json.dumps(job).encode()], [theirs.fileno()])
            try:
                yield Session(ours, why_gone, self.patience)
            finally:
                end()

    def close(self) -> None:
        """End all of it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stderr:
                self._process.stderr.close()
        if self._home is not None:
            self._home.cleanup()
        self._control = self._process = self._home = None
