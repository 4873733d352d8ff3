"""Make the environment of the course in .venv: `python3 tools/bootstrap.py`, or any target of the Makefile.

Stands apart from the package: it runs before anything is installed, so it imports the standard library only, and it
is written so that even Python 2.7 can parse it and answer with a sentence instead of a traceback.

.venv/.stamp       the environment is complete; make compares its age with pyproject.toml and constraints.txt
.venv/.incomplete  an installation began and did not end; the next one starts from nothing
.venv/install.log  what pip said
"""

from __future__ import print_function

import errno
import os
import re
import shutil
import subprocess
import sys
import time

OLDEST = (3, 11)
GIGABYTES = 3  # the environment takes 1.7 with PyTorch for the CPU, and pip unpacks beside it

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, ".stamp")
INCOMPLETE = os.path.join(VENV, ".incomplete")
LOG = os.path.join(VENV, "install.log")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))

PACKAGES = ["--constraint", "constraints.txt", "--editable", ".[book,test]"]
# What is imported is compiled then; to compile everything now would take a third longer.
OPTIONS = ["--no-input", "--disable-pip-version-check", "--no-compile"]

FULL = r"No space left on device|Disk quota exceeded|Errno 28\b|WinError 112\b"
OFFLINE = (
    r"connection broken by|name resolution|Name or service not known|getaddrinfo failed"
    r"|NewConnectionError|ConnectTimeout|ReadTimeout|Network is unreachable|Connection refused"
)


class Problem(Exception):
    """One sentence for the person at the keyboard: what is wrong, and what to do."""


def check_python():
    if sys.version_info[:2] < OLDEST:
        raise Problem(
            "The course needs Python %d.%d or newer, and %s is Python %d.%d: install a newer one, or name it, as in"
            " make PYTHON=/path/to/python3."
            % (OLDEST + (sys.executable,) + tuple(sys.version_info[:2]))
        )
    missing = None
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        missing = error.name
    if missing:
        raise Problem(
            "%s comes without its module %s: install it (on Debian and Ubuntu: sudo apt install python3-venv), and"
            " run the same command again." % (sys.executable, missing)
        )


def check_space():
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < GIGABYTES:
        raise Problem(
            "The environment needs %d GB of disk, and %s has %.1f GB left: make room, and run the same command again."
            % (GIGABYTES, ROOT, free)
        )


def explain(words):
    """The sentence for an installation that failed, from what it said."""
    if re.search(FULL, words):
        return (
            "The disk is full: make room (%d GB, or 10 where PyTorch brings CUDA along), and run the same command again."
            % GIGABYTES
        )
    if re.search(OFFLINE, words):
        return (
            "The packages could not be downloaded: look after the network connection or the proxy, and run the same"
            " command again."
        )
    missing = re.search(r"No matching distribution found for (\S+)", words)
    if missing:
        return (
            "There is no %s for Python %d.%d on this system: name another Python from %d.%d on, as in"
            " make PYTHON=/path/to/python3; what pip said stands in %s."
            % ((missing.group(1),) + tuple(sys.version_info[:2]) + OLDEST + (LOG,))
        )
    return "The installation failed: the reason stands at the end of %s." % LOG


def run(command):
    """Run a command; its words go to the log, and line over line to a terminal. Returns its status and words."""
    terminal = sys.stdout.isatty()
    words = []
    with open(LOG, "a") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            errors="replace",
        )
        try:
            for line in process.stdout:
                words.append(line)
                log.write(line)
                log.flush()
                if terminal and line.strip():
                    print("\r\033[K  " + line.strip()[:70], end="", flush=True)
            return process.wait(), "".join(words)
        finally:
            process.kill()
            process.wait()
            if terminal:
                print("\r\033[K", end="", flush=True)


def make():
    """Make the environment, or bring a complete one up to date."""
    if os.path.exists(INCOMPLETE) or not os.path.exists(PYTHON):
        shutil.rmtree(VENV, ignore_errors=True)
        check_space()
        if not os.path.isdir(VENV):
            os.makedirs(VENV)
    open(INCOMPLETE, "w").close()
    if os.path.exists(STAMP):
        os.remove(STAMP)
    steps = [[PYTHON, "-m", "pip", "install"] + OPTIONS + PACKAGES]
    if not os.path.exists(PYTHON):
        steps.insert(0, [sys.executable, "-m", "venv", VENV])
    for command in steps:
        status, words = run(command)
        if status:
            raise Problem(explain(words))
    os.remove(INCOMPLETE)
    open(STAMP, "w").close()


def main():
    check_python()
    started = time.time()
    print(
        "Making the environment in .venv: one minute, or several where the network is slow.",
        flush=True,
    )
    make()
    print("The environment is ready after %d seconds." % (time.time() - started))


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit("Interrupted: the next run starts from nothing.")
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(explain("No space left on device"))
