"""One submission, exercise after exercise: each in a worker of its own, checked from here."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from course_utils.kit.check import Report, TookTooLong
from course_utils.studio import StudioError
from course_utils.studio.grading.exercises import Exercise, Sheet, written
from course_utils.studio.grading.remote import Candidate, Gone
from course_utils.studio.grading.sandbox import Sandbox
from course_utils.studio.grading.submissions import File, Notebook, Submission, read

HIDES = re.compile(
    r"__code__|__globals__|FunctionType|\bsetprofile\b|\bgetsource\w*|(?<!\.)\b(?:exec|eval)(?=\()"
    r"|\bctypes\b|\bget_objects\b|\bcourse_utils\.studio\b"
)
"""Words by which an answer may call a function unseen: a person is asked to look."""
OPEN = "to be read"
NOT_DONE = "not done yet"


@dataclass(frozen=True)
class Mark:
    """What one exercise of one student has come to.

    Attributes:
        student, chapter, exercise: whose, and what.
        held, total: how many of its properties hold; None where a person decides.
        points: the share of the exercise's that has been reached; None likewise.
        reason: why it is not all of them; empty if it is.
        report: what the check says, as the student sees it.
        missed: the sentence that does not hold; empty without one.
        text: what was handed in.
        title: of the exercise.
    """

    student: str
    chapter: str
    exercise: str
    held: int | None = None
    total: int | None = None
    points: float | None = None
    reason: str = ""
    report: str = ""
    missed: str = ""
    text: str = ""
    title: str = ""


def judged(
    submission: Submission, sheets: list[Sheet], worth: dict[str, float], sandbox: Sandbox
) -> list[Mark]:
    """All marks of one student; a notebook that cannot be read costs its own rows."""
    found, wrong = chosen(submission, sheets)
    late = ["late"] if submission.late else []
    marks = []
    for sheet in sheets:
        notebook, note = found.get(sheet.notebook, (None, ""))
        if notebook is None:
            note = "; ".join(wrong[:3]) or "no notebook was handed in"
        sheet = sheet.of(submission.student, notebook)
        note = "; ".join([*filter(None, (note, sheet.note)), *late])
        for exercise in sheet.exercises:
            mark = _mark(submission.student, exercise, sheet, notebook, worth, sandbox)
            marks.append(replace(mark, reason="; ".join(filter(None, (mark.reason, note)))))
    return marks


def unjudged(submission: Submission, sheets: list[Sheet], reason: str) -> list[Mark]:
    """The rows of a student whom nothing could be said about: no points are given or refused."""
    return [
        Mark(submission.student, sheet.notebook, one.name, reason=reason, title=one.title)
        for sheet in sheets
        for one in sheet.exercises
    ]


def chosen(
    submission: Submission, sheets: list[Sheet]
) -> tuple[dict[str, tuple[Notebook, str]], list[str]]:
    """For each notebook of the course the newest that was handed in, with a note where there are several.

    Returns:
        The course's notebook → what was handed in and the note; and what could not be read, in words.
    """
    candidates: dict[str, list[tuple[int, File, Notebook]]] = {}
    wrong = []
    for file in submission.files:
        try:
            notebook = read(file)
        except ValueError as error:
            wrong.append(str(error))
            continue
        likeness = {sheet.notebook: sheet.likeness(notebook) for sheet in sheets}
        best = max(likeness, key=lambda one: (likeness[one], one in file.name))
        if likeness[best]:
            candidates.setdefault(best, []).append((likeness[best], file, notebook))
    found = {}
    for stem, several in candidates.items():
        most = max(like for like, _, _ in several)
        alike = [(file, notebook) for like, file, notebook in several if 2 * like >= most]
        file, notebook = max(alike, key=lambda one: one[0].order)
        count = len(alike)
        note = f"the newest of {count}, of {file.when:%Y-%m-%d %H:%M}" if count > 1 else ""
        found[stem] = (notebook, note)
    return found, wrong


def _mark(
    student: str,
    exercise: Exercise,
    sheet: Sheet,
    notebook: Notebook | None,
    worth: dict[str, float],
    sandbox: Sandbox,
) -> Mark:
    about = {"student": student, "chapter": sheet.notebook, "exercise": exercise.name}
    about["title"] = exercise.title
    if not exercise.check:
        text = written(exercise, sheet, notebook) if notebook else ""
        return Mark(**about, reason=OPEN if text else "nothing is written", text=text)
    total = len(exercise.judge().properties)
    none = {"held": 0, "total": total, "points": 0.0}
    if notebook is None:
        return Mark(**about, **none)
    code = notebook.binds(exercise.function)
    text = "\n\n".join(code)
    try:
        report, called = _report(exercise.function, notebook.code, exercise, sandbox)
    except StudioError:  # no sandbox
        raise
    except (Exception, TookTooLong) as error:  # of ours: it costs this row, and says so
        return Mark(**about, **none, text=text, reason=f"the grader failed: {error!r}")
    if isinstance(report, str):
        return Mark(**about, **none, text=text, reason=report)
    held = report.held + len(report.also or ()) if report.done else 0
    gained = round(worth[exercise.check] * held / total, 2)
    missed = report.sentences[report.held] if report.done and not report.passed else ""
    reason = f"{missed}: {report.reason}" if missed else "" if report.done else NOT_DONE
    wrapped = exercise.compared() & called if report.passed and sheet.code else set()
    unusual = wrapped - _usual(exercise, sheet, sandbox) if wrapped else set()
    if unusual:
        reason = f"it calls {', '.join(sorted(unusual))}, as its check does: look at it"
    elif report.passed and (hidden := _words(notebook.code) - _words(sheet.code)):
        reason = f"it uses {', '.join(sorted(hidden))}: look at it"
    return Mark(
        **about, held=held, total=total, points=gained, reason=" ".join(reason.split()),
        report=repr(replace(report, more=False)), missed=missed, text=text,
    )  # fmt: skip


def _words(code: Iterable[str]) -> set[str]:
    return {word for source in code for word in HIDES.findall(source)}


_USUAL: dict[str, set[str]] = {}


def _usual(exercise: Exercise, sheet: Sheet, sandbox: Sandbox) -> set[str]:
    """The functions that the course's own solution calls; found when it is first asked for."""
    if exercise.check not in _USUAL:
        solution = f"{exercise.function}_solution"
        _USUAL[exercise.check] = _report(solution, list(sheet.code), exercise, sandbox)[1]
    return _USUAL[exercise.check]


def _report(
    function: str, code: list[str], exercise: Exercise, sandbox: Sandbox
) -> tuple[Report | str, set[str]]:
    """What the check says, or why there is nothing to check; and the functions that the answer has called."""
    if not any(function in source for source in code):
        return f"nothing is called {function}", set()
    with sandbox.session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a submission writes nothing on the teacher's screen
        try:
            kind, why = session.load(code, function)
        except (Gone, TookTooLong) as error:
            return str(error), set()
        told = {
            "stub": NOT_DONE,
            "ours": f"{function} is the course's own",
            "wrong": f"{function} is no function, but of type {why}",
        }
        if kind != "function":
            return told.get(kind, why), set()
        return exercise.judge()(Candidate(session)), session.called
