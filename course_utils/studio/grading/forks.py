"""Inside the sandbox: a warm process that forks a worker for each exercise, under limits.

    python -m course_utils.studio.grading.forks CONTROL ALONE USER

`CONTROL` is the number of a socket to the judge, `ALONE` is 1 where no other processes are to be seen from here,
`USER` the user that a forked process becomes, or 0. The judge sends the end of a new socket for each exercise.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
from typing import Any

import torch

from course_utils.studio.grading.traces import audit
from course_utils.studio.grading.worker import Worker
from course_utils.studio.kernel import spare_the_compiler

PATIENCE = 30  # hundredths of a second, for a process that is about to end


def limit(job: dict[str, Any]) -> None:
    """Limits of this process from now on: seconds of computing, bytes of memory, no files, no processes."""
    with contextlib.suppress(OSError):  # a system without /proc
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + job["memory"],) * 2)
    for kind, most in (
        (resource.RLIMIT_CPU, job["seconds"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (most, most))


def child(connection: socket.socket, job: dict[str, Any], user: int) -> None:
    """What the forked process does, and then it ends."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        kept = connection.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, 4096)
        if user:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        limit(job)
        sys.addaudithook(audit)
        Worker(connection).run()
    finally:
        os._exit(0)


def main(control_number: int, alone: bool, user: int) -> None:
    """Fork a process for each exercise that the judge sends."""
    torch.set_num_threads(1)
    _warm_without_a_disk()
    _prctl(4, 0)  # PR_SET_DUMPABLE: no process here reads this one's memory
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what outlives its parent becomes ours
    control = socket.socket(fileno=control_number)
    control.sendall(b"ready\n")
    forked = 0
    while True:
        message, numbers, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            break
        job = json.loads(message)
        if numbers:
            connection = socket.socket(fileno=numbers[0])
            forked = os.fork()
            if not forked:
                control.close()
                child(connection, job, user)
            connection.close()
        else:
            ended = _end(forked, alone, PATIENCE if job["gone"] else 1)
            control.sendall(json.dumps(ended).encode() + b"\n")
            forked = 0
    _end(forked, alone, 1)


def warm() -> None:
    """Import what a first gradient, a first optimizer and a first lesson import."""
    spare_the_compiler()
    import torch.fx.experimental.symbolic_shapes

    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    import pandas  # noqa: F401

    import course_utils.figures  # noqa: F401


def _warm_without_a_disk() -> None:
    """Matplotlib wants a folder to write to before it is imported, and needs none; there is none here."""
    may, os.access = os.access, lambda *_, **__: True
    try:
        import matplotlib

        matplotlib.get_configdir()
        matplotlib.get_cachedir()
    finally:
        os.access = may
    warm()


def _end(forked: int, alone: bool, patience: int) -> list[float]:
    """End all that an exercise has started: the signal that ended its process before, or 0, and its CPU seconds."""
    if not forked:
        return [0, 0]
    status = 0
    for look in range(patience):
        done, code, used = os.wait4(forked, os.WNOHANG)
        if done:
            status = os.WTERMSIG(code) if os.WIFSIGNALED(code) else 0
            break
        time.sleep(0.01 if look else 0)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1 if alone else -forked, signal.SIGKILL)
    if not done:
        _, _, used = os.wait4(forked, 0)
    for orphan in _children():
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)
    return [status, used.ru_utime + used.ru_stime]


def _children() -> list[int]:
    """What is left of processes that an exercise has started."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(number) for number in file.read().split()]
    return []


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(int(sys.argv[1]), sys.argv[2] == "1", int(sys.argv[3]))
