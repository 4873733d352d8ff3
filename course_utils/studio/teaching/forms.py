"""What the questions of a page ask and say, read from the forms that a notebook shows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bs4 import BeautifulSoup, Tag

from course_utils.kit.words import unsealed
from course_utils.studio import StudioError


@dataclass(frozen=True)
class Asked:
    """A question as HTML.

    Attributes:
        text: what is asked.
        answers: text, whether it is right, and why, as far as the page says so.
        why: the reason of the answer to a prediction; empty for a quiz, where each answer has its own.
    """

    text: str
    answers: tuple[tuple[str, bool, str], ...]
    why: str = ""


def questions(shown: str) -> Iterator[Asked]:
    """The questions of an output in HTML: those of a quiz, or a prediction; of a recall those that it draws.

    Raises:
        StudioError: a notebook was made by another release, whose answers cannot be opened.
    """
    page = BeautifulSoup(shown, "html.parser")
    for field in page.select(".course-quiz > fieldset"):
        key = _opened(field)
        texts = [_inner(label.select_one("span")) for label in field.select("label")]
        answers = tuple((text, *said) for text, said in zip(texts, key, strict=True))
        yield Asked(_inner(field.legend), answers)
    for form in page.select(".cu-predict"):
        told = _opened(form)
        choices = [_inner(button) for button in form.select("button[value]")]
        asked, why = _inner(form.legend), told["why"]
        if choices:
            right = told["answer"]
            answers = tuple((one, place == right, "") for place, one in enumerate(choices))
            yield Asked(asked, answers, why)
        else:
            yield Asked(asked, ((f"{told['answer']:g}", True, ""),), why)


def _opened(tag: Tag) -> Any:
    try:
        return unsealed(str(tag["data-sealed"]))
    except ValueError:
        raise StudioError("its questions are of another release; make the notebook anew") from None


def _inner(tag: Tag | None) -> str:
    return tag.decode_contents() if tag else ""
