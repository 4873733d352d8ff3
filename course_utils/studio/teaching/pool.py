r"""``make pool``: the questions of the quizzes for a learning platform, as GIFT and as QTI 2.1.

`_build/pool/02_kernel_regression.gift` goes into Moodle (Question bank, Import, GIFT), the `.zip` of this name into
what reads QTI 2.1; `all.gift` and `all.zip` hold the chapters together. Each answer brings its reason as feedback.
Where several answers are right, each counts its share, and wrong ones take as much away. Formulas stand between
``\(`` and ``\)``.
"""

import argparse
import html
import re
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree as xml

from course_utils.files import LESSONS, ROOT, atomic_write
from course_utils.kit.quiz import Question, all_questions
from course_utils.kit.words import marked
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, load

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
FORMULA = re.compile(r"(?<![\\$])\$([^$\n]+)\$")


def page(text: str) -> str:
    """A text of a quiz as HTML, its formulas as platforms know them."""
    formulas: list[str] = []

    def keep(found: re.Match) -> str:
        formulas.append(rf"\({html.escape(found[1], quote=False)}\)")
        return f"\x00{len(formulas) - 1}\x00"

    shown = marked(FORMULA.sub(keep, text)).replace("&#x27;", "'").replace("&quot;", '"')
    return re.sub("\x00(\\d+)\x00", lambda found: formulas[int(found[1])], shown)


def questions(chapters: Iterable[Chapter]) -> dict[Chapter, tuple[Question, ...]]:
    """The questions of chapters that have a quiz."""
    found = (one for one in chapters if (LESSONS / one.slug / "quiz.toml").is_file())
    return {chapter: all_questions(chapter.slug) for chapter in found}


def shares(question: Question) -> list[float]:
    """What each answer counts, in percent: right ones 100 together, and wrong ones −100 where several are right."""
    right = sum(answer.correct for answer in question.answers)
    if right == 1:
        return [100.0 * answer.correct for answer in question.answers]
    wrong = len(question.answers) - right
    return [100 / right if answer.correct else -100 / wrong for answer in question.answers]


# GIFT ------------------------------------------------------------------------------------------


def gift(pool: dict[Chapter, tuple[Question, ...]]) -> str:
    """The questions as GIFT, a category for each chapter."""
    blocks = []
    for chapter, asked in pool.items():
        blocks.append(
            f"$CATEGORY: {_escaped(f'{chapter.number} {chapter.title}'.replace('/', '//'))}"
        )
        blocks += map(_in_gift, asked)
    return "\n\n".join(blocks) + "\n"


def _in_gift(question: Question) -> str:
    single = sum(answer.correct for answer in question.answers) == 1
    lines = []
    for answer, share in zip(question.answers, shares(question), strict=True):
        mark = (
            ("=" if answer.correct else "~")
            if single
            else f"~%{share:.5f}".rstrip("0").rstrip(".") + "%"
        )
        lines.append(f"\t{mark}{_escaped(page(answer.text))}#{_escaped(page(answer.why))}")
    head = f"::{_escaped(question.key)}::[html]{_escaped(page(question.text))}"
    return "\n".join([f"{head} {{", *lines, "}"])


def _escaped(text: str) -> str:
    r"""GIFT's own signs as text; a backslash of a formula is doubled."""
    return re.sub(r"([\\~=#{}:])", r"\\\1", text)


# QTI -------------------------------------------------------------------------------------------


def qti(pool: dict[Chapter, tuple[Question, ...]]) -> dict[str, str]:
    """The files of a QTI 2.1 package, by name: a manifest, and an item for each question."""
    items = {}
    for chapter, asked in pool.items():
        for question in asked:
            name = question.key.replace("/", "_")
            items[f"items/{name}.xml"] = _text(_item(name, chapter.title, question))
    return {"imsmanifest.xml": _text(_manifest(items)), **items}


def _item(name: str, title: str, question: Question) -> xml.Element:
    right = [answer.correct for answer in question.answers]
    many = sum(right) > 1
    ids = [f"A{place}" for place in range(1, len(right) + 1)]
    item = xml.Element(
        "assessmentItem",
        {"xmlns": QTI, "identifier": name, "title": title, "adaptive": "false", "timeDependent": "false"},
    )  # fmt: skip
    kind = {"identifier": "RESPONSE", "baseType": "identifier"}
    declared = xml.SubElement(
        item, "responseDeclaration", kind | {"cardinality": "multiple" if many else "single"}
    )
    correct = xml.SubElement(declared, "correctResponse")
    mapping = xml.SubElement(
        declared, "mapping", {"defaultValue": "0", "lowerBound": "0", "upperBound": "1"}
    )
    for one, share, good in zip(ids, shares(question), right, strict=True):
        if good:
            xml.SubElement(correct, "value").text = one
        entry = {"mapKey": one, "mappedValue": f"{share / 100:.5f}"}
        xml.SubElement(mapping, "mapEntry", entry)
    score = {"identifier": "SCORE", "cardinality": "single", "baseType": "float"}
    xml.SubElement(item, "outcomeDeclaration", score)
    told = {"identifier": "FEEDBACK", "cardinality": "multiple", "baseType": "identifier"}
    xml.SubElement(item, "outcomeDeclaration", told)
    body = xml.SubElement(item, "itemBody")
    choices = {
        "responseIdentifier": "RESPONSE",
        "shuffle": "true",
        "maxChoices": "0" if many else "1",
    }
    asked = xml.SubElement(body, "choiceInteraction", choices)
    _fill(xml.SubElement(asked, "prompt"), question.text)
    for one, answer in zip(ids, question.answers, strict=True):
        choice = xml.SubElement(asked, "simpleChoice", {"identifier": one})
        _fill(choice, answer.text)
        shown = {"outcomeIdentifier": "FEEDBACK", "identifier": one, "showHide": "show"}
        _fill(xml.SubElement(choice, "feedbackInline", shown), f" {answer.why}")
    processing = xml.SubElement(item, "responseProcessing")
    given = xml.SubElement(processing, "setOutcomeValue", {"identifier": "SCORE"})
    xml.SubElement(given, "mapResponse", {"identifier": "RESPONSE"})
    said = xml.SubElement(processing, "setOutcomeValue", {"identifier": "FEEDBACK"})
    multiple = said if many else xml.SubElement(said, "multiple")
    xml.SubElement(multiple, "variable", {"identifier": "RESPONSE"})
    return item


def _fill(parent: xml.Element, text: str) -> None:
    """Put a text of a quiz into an element, its marks as elements."""
    inner = xml.fromstring(f"<x>{page(text)}</x>")
    parent.text = (parent.text or "") + (inner.text or "")
    parent.extend(inner)


def _manifest(items: Iterable[str]) -> xml.Element:
    root = xml.Element("manifest", {"xmlns": PACKAGE, "identifier": "MANIFEST"})
    about = xml.SubElement(root, "metadata")
    xml.SubElement(about, "schema").text = "QTIv2.1 Package"
    xml.SubElement(about, "schemaversion").text = "1.0.0"
    xml.SubElement(root, "organizations")
    resources = xml.SubElement(root, "resources")
    for file in items:
        name = Path(file).stem
        kind = {"identifier": f"R_{name}", "type": "imsqti_item_xmlv2p1", "href": file}
        xml.SubElement(xml.SubElement(resources, "resource", kind), "file", {"href": file})
    return root


def _text(element: xml.Element) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(element, encoding="unicode")


# Files -----------------------------------------------------------------------------------------


def write(chapters: Sequence[Chapter], out: Path) -> list[Path]:
    """Write the pools, one for each chapter and, if these are several, one for all; their files.

    Raises:
        StudioError: none of the chapters has a quiz.
    """
    pool = questions(chapters)
    if not pool:
        raise StudioError("None of these chapters has a quiz.")
    parts = {one.notebook: {one: asked} for one, asked in pool.items()}
    parts |= {"all": pool} if len(pool) > 1 else {}
    made = []
    for name, part in parts.items():
        with atomic_write(out / f"{name}.gift") as file:
            file.write_text(gift(part), encoding="utf-8")
        with atomic_write(out / f"{name}.zip") as file, zipfile.ZipFile(file, "w") as archive:
            for inside, text in qti(part).items():
                info = zipfile.ZipInfo(inside)  # of no day: made twice, it is the same
                archive.writestr(info, text, zipfile.ZIP_DEFLATED)
        made += [out / f"{name}.gift", out / f"{name}.zip"]
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pools, and say where they are and how many questions they hold."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio pool", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "pool"
    try:
        course = load(options.book, files=False)
        chosen = course.chosen(options.chapters)
        made = write(chosen, out)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(map(len, questions(chosen).values()))
    print(f"{count} questions in {len(made)} files: {out}")
    return 0
