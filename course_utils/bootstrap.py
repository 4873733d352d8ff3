"""Make the environment of the course in .venv: `python3 course_utils/bootstrap.py`, or any target of the Makefile.

Stands apart from the package: it runs before anything is installed, so it imports the standard library only, and
it is written so that even Python 2.7 can parse it and answer with a sentence instead of a traceback.

.venv/.stamp       the environment is complete; make compares its age with pyproject.toml and constraints.txt
.venv/.incomplete  an installation began and did not end; the next one starts from nothing
.venv/install.log  what pip said
"""

from __future__ import print_function

import os
import re
import shutil
import subprocess
import sys
import time

OLDEST = (3, 11)
GIGABYTES = 3  # .venv takes 1.7 with PyTorch for the CPU; pip unpacks beside it

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, ".stamp")
INCOMPLETE = os.path.join(VENV, ".incomplete")
LOG = os.path.join(VENV, "install.log")

FULL = r"No space left on device|Errno 28\b|Disk quota exceeded|WinError 112"
OFFLINE = (
    r"connection broken by|Name or service not known|name resolution|NewConnectionError|ConnectTimeout"
    r"|Network is unreachable|Connection refused|getaddrinfo failed|Max retries exceeded|ReadTimeoutError"
)


class Problem(Exception):
    """One sentence for the person at the keyboard: what is wrong and what to do."""


def check_python():
    if sys.version_info[:2] < OLDEST:
        raise Problem(
            "The course needs Python %d.%d or newer, and %s is Python %d.%d: install a newer one, or name it:"
            " make PYTHON=/path/to/python3"
            % (OLDEST + (sys.executable,) + tuple(sys.version_info[:2]))
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        raise Problem(
            "This Python comes without its module %s: install it (Debian and Ubuntu: sudo apt install python3-venv)"
            " and run the same command again." % error.name
        )


def check_space(folder=ROOT):
    free = shutil.disk_usage(folder).free / 1e9
    if free < GIGABYTES:
        raise Problem(
            "The environment needs about %d GB of disk, and %.1f GB are free in %s: make room and run the same"
            " command again." % (GIGABYTES, free, folder)
        )


def venv_python(folder):
    if os.name == "nt":
        return os.path.join(folder, "Scripts", "python.exe")
    return os.path.join(folder, "bin", "python")


def say(sentence, end="\n"):
    sys.stdout.write(sentence + end)
    sys.stdout.flush()


def explain(log):
    """The sentence for a pip that failed, from what it said."""
    if re.search(FULL, log):
        return (
            "The disk became full while the packages were installed: make room (%d GB) and run the same command again."
            % (GIGABYTES)
        )
    if re.search(OFFLINE, log):
        return "The packages could not be downloaded: look at the network connection (or proxy) and run the same command again."
    return "The packages could not be installed; the reason stands at the end of %s." % LOG


def pip(python, arguments, log):
    """Run pip; its words go to the log, one line of them at a time to a terminal."""
    command = [python, "-m", "pip", "--no-input", "--disable-pip-version-check"] + arguments
    terminal = sys.stdout.isatty()
    with open(log, "a") as file:
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
                file.write(line)
                file.flush()
                if terminal and line.strip():
                    say("\r\033[K  %s" % line.strip()[:76], end="")
            return process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if terminal:
                say("\r\033[K", end="")


def make(folder, requirements):
    """A new environment in `folder`, or a newer one where a complete one stands."""
    import venv

    incomplete = os.path.join(folder, ".incomplete")
    stamp = os.path.join(folder, ".stamp")
    log = os.path.join(folder, "install.log")

    started = time.time()
    if os.path.exists(incomplete) or not os.path.exists(venv_python(folder)):
        check_space()
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    open(incomplete, "w").close()
    if os.path.exists(stamp):
        os.remove(stamp)
    if not os.path.exists(venv_python(folder)):
        say("Making the environment in %s" % os.path.relpath(folder, ROOT))
        try:
            venv.create(folder, with_pip=True)
        except subprocess.CalledProcessError as error:
            raise Problem(explain(str(error.output)))
    say("Installing the packages: a minute, or several on a slow network")
    open(log, "w").close()
    if pip(venv_python(folder), ["install"] + requirements, log):
        with open(log) as file:
            raise Problem(explain(file.read()))
    os.remove(incomplete)
    open(stamp, "w").close()
    say("The environment is ready after %d s" % (time.time() - started))


def main():
    check_python()
    make(VENV, ["--constraint", "constraints.txt", "--editable", ".[book,test]"])


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit("%s" % problem)
    except KeyboardInterrupt:
        sys.exit("Interrupted: the next run starts again from nothing.")
    except OSError as error:
        if error.errno in (28, 122):
            sys.exit(explain("Errno 28"))
        raise
