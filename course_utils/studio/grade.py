"""``make grade SUBMISSIONS=dir``: how far has everybody got? Marks and a text for each student, in about a minute.

It is no examination, because an answer runs in the same process as its check, so a student who wants to cheat can. Only
the statements run that the answer depends on, within limits, and under bubblewrap without network and writable disk.
"""

import argparse
import ast
import csv
import json
import linecache
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, NamedTuple

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from tqdm import tqdm

from course_utils.files import ROOT
from course_utils.kit.digest import dependencies
from course_utils.studio import StudioError, graders, manifest
from course_utils.studio.pairs import read_source

NO_EXAMINATION = "This is no examination, because answers ran in the same process as their checks."
MAX_BYTES, MAX_NOTEBOOKS = 20 * 2**20, 400  # of a notebook; in an archive
NOTEBOOK = re.compile(r".+\.ipynb(\.json|\.txt)?", re.IGNORECASE)  # browsers add an ending
PYTHON_MAGICS = ("time", "timeit", "capture", "prun")  # their cells hold Python
PLATFORMS = (
    re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(_.*)?"),  # Moodle
    re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+"),  # Canvas
    re.compile(r".+?_(?P<name>[^_]+)_attempt_[\d-]+(_.*)?"),  # Blackboard
    re.compile(r"\d+-\d+ - (?P<name>.+?) - \w+ \d+, \d{4} .+"),  # Brightspace
)
FORBIDDEN = r'[\\/:*?"<>|\x00-\x1f]'  # in the name of a file
COLUMNS = ("student", "chapter", "exercise", "held", "total", "reason")


class Exercise(NamedTuple):
    """An exercise: its notebook, its check, the function that it asks for, and the number of its properties."""

    notebook: str
    check: str
    function: str
    total: int


@dataclass
class Submission:
    """What a student handed in: (time, name, content) of each notebook, and what can't be read."""

    student: str
    late: bool = False
    files: list[tuple[float, str, bytes]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


# What was handed in -----------------------------------------------------------------------------


def collect(folder: Path, notebooks: Sequence[str]) -> list[Submission]:
    """The submission of each student, from a notebook, a folder or an archive for each, or several of these."""
    submissions: dict[tuple[str, str], Submission] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_symlink() or is_hidden(path.name):
            continue
        problems: list[str] = []
        files = list(_files(path, problems))
        if not (files or problems or path.is_dir() or path.suffix.lower() == ".zip"):
            continue
        ending = "" if path.is_dir() else r"\.(ipynb|zip)\b.*"
        student, number, late = whose(re.sub(ending, "", path.name, flags=re.I), notebooks)
        submission = submissions.setdefault((student, number), Submission(student))
        submission.late |= late
        submission.problems += problems
        submission.files += files
    if not submissions:
        raise StudioError(f"{folder} should hold a notebook, folder or zip file of each student.")
    for (student, number), submission in submissions.items():
        if sum(name == student for name, _ in submissions) > 1:
            submission.student = f"{student} ({number or 'no number'})"
    return sorted(submissions.values(), key=lambda submission: submission.student.casefold())


def is_hidden(name: str) -> bool:
    """Whether a path never counts: checkpoints, what a system adds, built files, and copies called `.kept-`."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return any(p[0] == "." or p in ("__MACOSX", "_build") or ".kept-" in p for p in parts)


def whose(name: str, notebooks: Iterable[str]) -> tuple[str, str, bool]:
    """Name, number and lateness of a student, from the name of a file or folder."""
    if match := next(filter(None, (pattern.fullmatch(name) for pattern in PLATFORMS)), None):
        parts = match.groupdict()
        return parts["name"].strip(), parts.get("id") or "", bool(parts.get("late"))
    for notebook in sorted(notebooks, key=len, reverse=True):
        name = (name.replace(notebook, "").strip(" _-.") or name) if name != notebook else name
    return name, "", False


def _files(path: Path, problems: list[str]) -> Iterator[tuple[float, str, bytes]]:
    """The notebooks of a file, folder or archive. Links aren't followed, and nothing is unpacked to the disk."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        name = file.relative_to(path).as_posix() if file != path else file.name
        if is_hidden(name) or file.is_symlink() or not file.is_file():
            continue
        if NOTEBOOK.fullmatch(file.name):
            with file.open("rb") as stream:
                yield file.stat().st_mtime, name, stream.read(MAX_BYTES + 1)
        elif file.suffix.lower() == ".zip":
            try:
                with zipfile.ZipFile(file) as archive:
                    yield from _unzipped(archive, problems)
            except Exception as error:  # each kind of compression has its own
                problems.append(f"{name} is no archive that can be read ({type(error).__name__})")


def _unzipped(archive: zipfile.ZipFile, problems: list[str]) -> Iterator[tuple[float, str, bytes]]:
    entries = [entry for entry in archive.infolist() if not is_hidden(entry.filename)]
    inner = [entry.filename for entry in entries if entry.filename.lower().endswith(".zip")]
    problems += [f"{name} lies in an archive; unpack it" for name in inner]
    notebooks = [entry for entry in entries if NOTEBOOK.fullmatch(entry.filename)]
    for entry in notebooks[:MAX_NOTEBOOKS]:
        when = time.mktime((*entry.date_time, 0, 0, -1)) if all(entry.date_time[:2]) else 0.0
        with archive.open(entry) as content:
            yield when, entry.filename, content.read(MAX_BYTES + 1)


def code_of(content: bytes) -> list[str]:
    """The text of a notebook's code cells; an exception of any kind for whatever is no notebook."""
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 2**20} MB")
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    cells = nbformat.reads(content.decode(encoding), as_version=4).cells
    return [cell.source.replace("\r\n", "\n") for cell in cells if cell.cell_type == "code"]


def newest(
    submission: Submission, exercises: Sequence[Exercise]
) -> dict[str, tuple[list[str], str]]:
    """For each notebook of the course the code of the newest that was handed in, and a note.

    Which notebook it is, the functions in it tell. One with fewer than half of its exercises gives way to any other.
    """
    versions: dict[str, list[tuple[tuple, list[str]]]] = {}
    for when, name, content in submission.files:
        try:
            code = code_of(content)
        except Exception as error:
            fault = f"{name} is no notebook that can be read ({type(error).__name__})"
            submission.problems.append(fault)
            continue
        names = set(re.findall(r"^(?:def |class )?(\w+) *[=(:]", "\n".join(code), re.MULTILINE))
        answered = [exercise.notebook for exercise in exercises if exercise.function in names]
        if not answered:
            submission.problems.append(f"{name} holds no exercise of these chapters")
            continue
        notebook = max(answered, key=lambda stem: (answered.count(stem), stem in name))
        total = sum(exercise.notebook == notebook for exercise in exercises)
        numbers = [int(number) for number in re.findall(r"\d+", name)]
        order = 2 * answered.count(notebook) >= total, when, numbers
        versions.setdefault(notebook, []).append((order, code))
    return {
        notebook: (max(several)[1], f"the newest of {len(several)}" if len(several) > 1 else "")
        for notebook, several in versions.items()
    }


# One exercise, in a process of its own ----------------------------------------------------------


def python_of(source: str) -> str:
    """A cell without what only IPython understands; `%%time` and the like leave their body."""
    while match := re.match(r"\s*%%(\w+)[^\n]*\n?", source):
        source = source[match.end() :] if match[1] in PYTHON_MAGICS else ""
    source = re.sub(r"^(\s*)%(?:time|timeit|prun) +(?=\w+ *=)", r"\1", source, flags=re.MULTILINE)
    return TransformerManager().transform_cell(source)


def function_of(code: list[str], name: str) -> Any:
    """What a name is bound to after the statements that it depends on have run, and no others."""
    statements, broken = [], ""
    for number, cell in enumerate(code):
        file = f"<cell {number}>"
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        try:
            statements += [(file, node) for node in ast.parse(python_of(cell), file).body]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken = f"its cell is no Python: {error}" if name in cell else broken
    chosen = dependencies([statement for _, statement in statements], [name])
    if not chosen:
        raise LookupError(broken or f"nothing is called {name}")
    page = sys.modules["__main__"] = ModuleType("__main__")
    for file, statement in (statements[index] for index in chosen):
        exec(compile(ast.Module([statement], []), file, "exec"), vars(page))
    return vars(page)[name]


def judged(job: dict[str, Any]) -> dict[str, Any]:
    """The points of a job's function, the reason, and the check's report."""
    from course_utils.kit.registry import checks

    try:
        report = getattr(checks, job["check"]).mark(function_of(job["code"], job["function"]))
    except BaseException as error:  # also SystemExit
        frames = reversed(traceback.extract_tb(error.__traceback__))
        last = next((frame for frame in frames if frame.filename.startswith("<cell ")), None)
        where = f" (line {last.lineno}: {last.line})" if last else ""
        return no_points(f"{type(error).__name__ + ': ' if last else ''}{error}{where}")
    if not report.done:
        return no_points(report.reason or "not done yet", repr(report))
    missed = "" if report.passed else f"{report.sentences[report.held]}: {report.reason}"
    return no_points(missed, repr(report)) | {"held": report.points}


def no_points(reason: str = "", report: str = "") -> dict[str, Any]:
    """A result, short enough for a pipe."""
    return {"held": 0, "reason": reason[:500], "report": report[:9_000]}


def limit(seconds: int, memory: int) -> None:
    """Limit this process: seconds of computing and, 20 more, of waiting; MB; no files and no processes."""
    import resource

    signal.alarm(seconds + 20)
    with suppress(OSError):  # a system without /proc has no limit of memory
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
        resource.setrlimit(kind, (0, 0))


def worker(seconds: int, memory: int) -> None:
    """Read a job a line from stdin, fork a process for each, and write a result a line to stdout."""
    import pandas  # noqa: F401 (slow to import, as all of these, so it is done once)
    import torch.fx.experimental.symbolic_shapes

    import course_utils.figures  # noqa: F401
    from course_utils.kit.registry import checks

    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    causes = {0: "it ends its own process", signal.SIGALRM: "it takes too long"}
    causes[signal.SIGXCPU] = "it computes for too long"
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        getattr(checks, job["check"], None)  # the lesson is imported before the fork
        reading, writing = os.pipe()
        if not (child := os.fork()):
            try:
                os.setsid()
                for number in (0, 1, 2):
                    os.dup2(os.open(os.devnull, os.O_RDWR), number)
                limit(seconds, memory)
                os.write(writing, json.dumps(judged(job)).encode())
            finally:
                os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)  # whatever it has started
        with os.fdopen(reading, "rb") as pipe:
            result = pipe.read(1 << 16).decode()
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        cause = causes.get(number, f"its process is ended by signal {number}")
        print(result or json.dumps(no_points(cause)), flush=True)


# All of them ------------------------------------------------------------------------------------


def sandbox(home: str) -> list[str]:
    """The beginning of a command that runs under bubblewrap; empty where that doesn't work."""
    call = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
    call += ["--dev", "/dev", "--proc", "/proc", "--bind", home, home]
    if shutil.which("bwrap") and not subprocess.call([*call, "true"], stderr=subprocess.DEVNULL):
        return call
    print("Without bubblewrap, submissions reach your network.", file=sys.stderr)
    return []


def graded(jobs: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The results of all jobs, in their order, from a few workers."""
    if not hasattr(os, "fork"):
        raise StudioError("Grading needs Linux or macOS; on Windows, use WSL or a container.")
    if os.geteuid() == 0 and not options.contained:
        raise StudioError("Grade as an ordinary user: for root no limit of processes holds.")
    environ = os.environ | {"COURSE_STRICT": "1", "COURSE_OFFLINE": "1", "MPLBACKEND": "agg"}
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    environ |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(paths)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    thread, workers = threading.local(), []

    def ask(job: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(thread, "worker") or thread.worker.poll() is not None:
            thread.worker = subprocess.Popen(command, env=environ, **pipes)
            workers.append(thread.worker)
            if thread.worker.stdout.readline() != "ready\n":
                raise StudioError("No worker starts on this system; the reason is above.")
        with suppress(OSError, ValueError):
            print(json.dumps(job), file=thread.worker.stdin, flush=True)
            return json.loads(thread.worker.stdout.readline())
        thread.worker.kill()
        thread.worker.wait()  # or the next job would meet one that is still dying
        return no_points("its worker has ended")

    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(options.jobs) as pool:
        environ |= dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "COURSE_HOME"), home)
        command = [*sandbox(home), sys.executable, "-P", "-m", "course_utils.studio.grade"]
        command += [str(options.seconds), str(options.memory)]
        try:
            return list(tqdm(pool.map(ask, jobs), total=len(jobs), disable=None))
        finally:
            for process in workers:
                process.kill()
                process.wait()


def grade(options: argparse.Namespace) -> str:
    """Grade a folder and write the marks; a sentence that says so."""
    exercises = [
        Exercise(page.notebook, exercise.name, exercise.function, graders.points(exercise))
        for page in manifest.load(files=False).chosen(options.chapter)
        for exercise in graders.checked(read_source(page.source))
    ]
    submissions = collect(options.folder, sorted({exercise.notebook for exercise in exercises}))
    notebooks = [newest(submission, exercises) for submission in submissions]
    handed_in = {notebook for versions in notebooks for notebook in versions}
    exercises = [e for e in exercises if e.notebook in handed_in] or exercises
    rows, jobs = [], []
    for submission, versions in zip(submissions, notebooks, strict=True):
        for exercise in exercises:
            problems = "; ".join(submission.problems) or "no notebook was handed in"
            code, note = versions.get(exercise.notebook, ([], problems))
            rows.append([submission.student, exercise, no_points(), note, "late" * submission.late])
            if code:
                job = {"code": code, "check": exercise.check, "function": exercise.function}
                jobs.append((rows[-1], job))
    for (row, _), result in zip(jobs, graded([job for _, job in jobs], options), strict=True):
        row[2] = result
    write(rows, options.to)
    marks = options.to / "marks.csv"
    return f"{len(submissions)} students, {len(exercises)} exercises: {marks}\n{NO_EXAMINATION}"


def write(rows: list, to: Path) -> None:
    """Write marks.csv, and a text for each student."""
    (to / "feedback").mkdir(parents=True, exist_ok=True)
    lines, texts = [COLUMNS], dict[str, list[str]]()
    for student, exercise, result, *notes in rows:
        reason = " ".join("; ".join(filter(None, [result["reason"], *notes])).split())
        line = (student, exercise.notebook, exercise.check, result["held"], exercise.total, reason)
        lines.append([f"'{cell}" if str(cell)[:1] in list("=+-@") else cell for cell in line])
        report = result["report"] or f"{exercise.check}: {reason}"
        texts.setdefault(student, []).append(f"{exercise.notebook}\n{report}\n")
    with (to / "marks.csv").open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        csv.writer(file).writerows(lines)
    for student, reports in texts.items():
        file = to / "feedback" / f"{re.sub(FORBIDDEN, '_', student).strip('. ')}.txt"
        file.write_text("\n".join(reports), encoding="utf-8", errors="replace")


def main(argv: Sequence[str] | None = None) -> int:
    """Grade; 0 if marks are written."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio grade", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="a notebook, folder or zip for each student")
    parser.add_argument("--to", type=Path, default=ROOT / "_build" / "grades", help="for the marks")
    parser.add_argument("--chapter", action="append", default=[], help="how its name begins: 02")
    parser.add_argument("--seconds", type=int, default=20, help="of computing, for an exercise")
    parser.add_argument("--memory", type=int, default=2048, help="MB, for an exercise")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--contained", action="store_true", help="this is a container of its own")
    try:
        print(grade(parser.parse_args(argv)))
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":  # as a worker
    worker(*map(int, sys.argv[1:]))
