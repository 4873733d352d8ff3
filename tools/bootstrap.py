"""Make the course's environment in .venv: `python3 tools/bootstrap.py`, or any target of the Makefile.

Runs before anything is installed: the standard library only, in a syntax that Python 3.6 reads, so that an old one
gets a sentence and no traceback. .venv/.stamp says that the environment is complete (make compares its age),
.venv/.incomplete that an installation began and did not end, and .venv/install.log what pip said.
"""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

OLDEST, NEWEST = (3, 11), (3, 14)  # for later ones, PyTorch 2.13 is not made
GIGABYTES = 3  # the environment takes 1.7 with PyTorch for the CPU, and pip unpacks beside it
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP, INCOMPLETE, LOG = (
    os.path.join(VENV, name) for name in (".stamp", ".incomplete", "install.log")
)
PYTHON = (
    os.path.join(VENV, "Scripts", "python.exe")
    if os.name == "nt"
    else os.path.join(VENV, "bin", "python")
)
# Those who write the course need what builds and tests it; a handout has no tests.
COURSE = ".[book,test]" if os.path.isdir(os.path.join(ROOT, "tests")) else "."
CPU_BUILD = "https://download.pytorch.org/whl/cpu"  # as pytorch.org names it
PROBE_SECONDS = 3
CPU_BUILD_COMES = (
    "We install PyTorch's CPU build, about 2 GB in all. If you want its CUDA build (10 GB), remove .venv and set"
    " TORCH=cuda."
)
NO_CPU_BUILD = (
    "PyTorch's CPU build can't be downloaded here, so we take what pip's own index has (on Linux that may be the CUDA"
    " build, about 10 GB in all)."
)
PATH_ON_WINDOWS = 67  # PyTorch's longest name takes the rest of 260
# What is imported is compiled then; to compile everything now would take a third longer.
PIP = "-m pip install --no-input --disable-pip-version-check --no-compile"

# Of a person's settings of pip, those that say where packages come from. Others, such as `user = true`, would put them
# elsewhere than into .venv, or take other versions.
SOURCES = [
    *(
        "index-url",
        "extra-index-url",
        "no-index",
        "find-links",
        "trusted-host",
        "proxy",
        "cert",
        "client-cert",
    ),
    *(
        "keyring-provider",
        "timeout",
        "default-timeout",
        "retries",
        "cache-dir",
        "no-cache-dir",
        "use-feature",
    ),
]

CAUSES = {
    r"No space left on device|Disk quota exceeded|Errno 28\b|WinError 112\b": (
        f"The disk is full: make room ({GIGABYTES} GB, or 10 where PyTorch brings CUDA along), and run this again."
    ),
    r"connection broken by|name resolution|Name or service not known|getaddrinfo failed|NewConnectionError"
    r"|ConnectTimeout|ReadTimeout|Network is unreachable|Connection refused": (
        "The packages could not be downloaded: check the network connection or the proxy, and run this again."
    ),
    r"Configuration file could not be loaded": (
        "pip can't read its settings: mend or remove the file that the end of .venv/install.log names."
    ),
    r"Long Path support": (
        "The folder's path is too long for Windows: move the course to one of at most 67 characters and run this again."
    ),
    r"No matching distribution found for (\S+)": (
        r"There is no \1 for this system and this Python: name another one, from {}.{} to {}.{}, as in"
        r" make PYTHON=/path/to/python3.".format(*OLDEST, *NEWEST)
    ),
}

NO_INDEX = (
    "pip has been told to ask no index (no-index in pip.conf, or PIP_NO_INDEX), and the packages are not in the folder"
    " that its setting find-links names: unset no-index, or put them there."
)

# Systems for which PyTorch is not made; there no other Python helps.
NOT_HERE = {
    ("Darwin", "x86_64"): (
        "PyTorch 2.13 is not made for Macs with Intel processors: read the book, or run the course in Docker (README)."
        " On a Mac with an Apple chip this Python is the one for Intel: install the one for arm64."
    ),
    ("Windows", "ARM64"): (
        "PyTorch 2.13 is not made for Windows on ARM: install the Linux subsystem (wsl --install), for which it is,"
        " and make the course's environment there."
    ),
}


def check():
    """Stop with a sentence if the environment cannot be made here."""
    system, machine = platform.system(), platform.machine()
    if (system, machine) in NOT_HERE:
        sys.exit(NOT_HERE[system, machine])
    if system == "Windows" and len(ROOT) > PATH_ON_WINDOWS and not long_paths():
        sys.exit(
            f"{ROOT} has {len(ROOT)} characters, and Windows allows the course's folder {PATH_ON_WINDOWS}:"
            " move it, to C:\\course for instance, or turn long paths on."
        )
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        versions = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
        found = "{}.{}".format(*sys.version_info)
        sys.exit(
            f"The course needs Python {versions}, and {sys.executable} is Python {found}: install one of these,"
            " or name it, as in make PYTHON=/path/to/python3."
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"{sys.executable} comes without its module {error.name}: install it (on Debian and Ubuntu:"
            " sudo apt install python3-venv), and run this again."
        )


def long_paths():
    """Whether this Windows takes paths of more than 260 characters."""
    try:
        import winreg

        key = winreg.OpenKey(
            winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem"
        )
        return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except (ImportError, OSError):
        return False


def answers(address):
    """Return whether an address answers within three seconds, asked once.

    A thread, because the time limit of a socket does not cover a name server that is silent.
    """
    answer = []

    def ask():
        try:
            request = urllib.request.Request(address, headers={"User-Agent": "pip"})
            urllib.request.urlopen(request, timeout=PROBE_SECONDS).close()
        except Exception as error:
            # pip has certificates of its own, so one that is unknown here is an answer.
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                return
        answer.append(True)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PROBE_SECONDS)
    return bool(answer)


def cpu_build():
    """Return the commands that install PyTorch's CPU build before the rest, or none where pip's own index is to choose.

    Elsewhere than on Linux, the build on pip's own index is the CPU's already.
    """
    wanted = os.environ.get("TORCH", "")
    if wanted not in ("", "cpu", "cuda"):
        sys.exit(f"TORCH={wanted} is neither cpu nor cuda.")
    if not wanted and platform.system() == "Linux" and not os.environ.get("PIP_NO_INDEX"):
        there = answers(CPU_BUILD + "/torch/")
        print(CPU_BUILD_COMES if there else NO_CPU_BUILD, flush=True)
        wanted = "cpu" if there else "cuda"
    if wanted != "cpu":
        return []
    with open(os.path.join(ROOT, "constraints.txt"), encoding="utf-8") as file:
        version = re.search(r"^torch==(\S+)", file.read(), re.MULTILINE).group()
    return [[PYTHON, *PIP.split(), "--no-deps", version, "--index-url", CPU_BUILD]]


def environment():
    """The environment of our commands: of pip's settings, in variables and files, only `SOURCES`.

    Variables of Python go, too: packages of another Python on PYTHONPATH would count as installed.
    """
    wanted = ["PIP_CONFIG_FILE", *("PIP_" + name.replace("-", "_").upper() for name in SOURCES)]
    ours = {
        name: value
        for name, value in os.environ.items()
        if name in wanted or not name.startswith(("PIP_", "PYTHON"))
    }
    command = [PYTHON, "-m", "pip", "config", "list"]
    quiet = {"stderr": subprocess.DEVNULL, "universal_newlines": True}
    try:
        said = subprocess.check_output(command, env=ours, **quiet)
    except (OSError, subprocess.CalledProcessError):  # no pip yet, or one that will say why
        return ours
    values = {}
    for line in said.splitlines():
        name, _, value = line.partition("=")
        values[name] = value
    kept = {
        "PIP_" + source.replace("-", "_").upper(): ast.literal_eval(values[section + source])
        for source in SOURCES
        for section in ("global.", "install.", ":env:.")  # the last one counts
        if section + source in values
    }
    others = {name: value for name, value in ours.items() if not name.startswith("PIP_")}
    others.update(kept, PIP_CONFIG_FILE=os.devnull)
    return others


def run(command):
    """Run a command, its words into the log; the sentence on what went wrong, or None."""
    words, environ = "", environment()
    with open(LOG, "a", encoding="utf-8") as log:
        pipes = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        with subprocess.Popen(
            command, cwd=ROOT, env=environ, universal_newlines=True, errors="replace", **pipes
        ) as process:
            for line in process.stdout:
                words += line
                log.write(line)
                if sys.stdout.isatty():
                    print("\r  " + line.strip()[:70].ljust(70), end="\r", flush=True)
    if not process.returncode:
        return None
    found = ((re.search(pattern, words), sentence) for pattern, sentence in CAUSES.items())
    known = [match.expand(sentence) for match, sentence in found if match]
    if "No matching distribution found" in words and environ.get("PIP_NO_INDEX"):
        return NO_INDEX
    return known[0] if known else f"The installation failed: the reason is at the end of {LOG}."


def main():
    """Make the environment, or bring a complete one up to date."""
    check()
    torch = cpu_build()
    started = time.time()
    print(
        "Making the environment in .venv: one minute, or several where the network is slow.",
        flush=True,
    )
    if os.path.exists(INCOMPLETE) or not os.path.exists(PYTHON):
        shutil.rmtree(VENV, ignore_errors=True)
        if shutil.disk_usage(ROOT).free < GIGABYTES * 1e9:
            sys.exit(
                f"The environment needs {GIGABYTES} GB of disk: make room for it in {ROOT}, and run this again."
            )
        os.makedirs(VENV, exist_ok=True)
    open(INCOMPLETE, "w").close()
    if os.path.exists(STAMP):
        os.remove(STAMP)
    commands = [] if os.path.exists(PYTHON) else [[sys.executable, "-m", "venv", VENV]]
    course = [PYTHON, *PIP.split(), "--constraint", "constraints.txt", "--editable", COURSE]
    for command in [*commands, *torch, course]:
        failure = run(command)
        if failure and command in torch and not os.environ.get("TORCH"):
            print(NO_CPU_BUILD, flush=True)
        elif failure:
            sys.exit(failure)
    os.remove(INCOMPLETE)
    open(STAMP, "w").close()
    print(f"The environment is ready after {time.time() - started:.0f} seconds.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted: the next run starts from scratch.")
    except OSError as error:
        sys.exit(f"The environment could not be made: {error}.")
