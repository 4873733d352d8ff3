"""What each key of ``book.toml`` may hold, and what an error says."""

import difflib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from course_utils.studio import StudioError


class ManifestError(StudioError):
    """A mistake in ``book.toml``: which file, which key, and the remedy."""


# The keys; a description is what an error asks for -------------------------------


def _tables(keys: dict, required: tuple[str, ...], description: str) -> dict:
    table = _table(keys, required, description)
    return {"type": "array", "minItems": 1, "items": table, "description": description}


def _table(keys: dict, required: tuple[str, ...], description: str) -> dict:
    return {
        "type": "object",
        "properties": keys,
        "required": list(required),
        "additionalProperties": False,
        "description": description,
    }


TEXT = {"type": "string", "pattern": r"\S", "description": "text in quotes that is not empty"}
TEXTS = {"type": "array", "items": TEXT, "description": "a list of texts in quotes"}
ADDRESS = {
    "type": "string",
    "pattern": r"^(https://\S+)?$",
    "description": 'an address that begins with "https://", or "" for none',
}
COURSE = {
    "title": TEXT,
    "authors": TEXTS,
    "license": TEXT,
    "repository": ADDRESS,
}
OPTIONAL = {
    "branch": TEXT | {"description": 'the name of a branch, such as "main"'},
    "host": {"enum": ["github", "gitlab", "codeberg"]}
    | {"description": '"github", "gitlab" or "codeberg": how the repository\'s links are made'},
    "url": ADDRESS,
    "full_course": ADDRESS,
    "chapters": TEXTS | {"description": 'a list of chapters, such as ["00", "01", "masks"]'},
}
CHAPTER = {
    "notebook": {
        "type": "string",
        "pattern": r"^\d\d_[a-z0-9_]+$",
        "description": 'a name without folder and suffix, such as "02_pooling"',
    },
    "title": TEXT,
    "part": TEXT | {"description": "the title of a [[part]]"},
    "prerequisites": TEXTS | {"description": "a list of notebooks"},
    "gpu": {"type": "boolean", "description": "true or false"},
    "further": TEXT | {"description": "the title of the chapter's further page"},
}
APPENDIX = {
    "notebook": {
        "type": "string",
        "pattern": r"^[A-Z]_[a-z0-9_]+$",
        "description": 'a name without folder and suffix, such as "A_names"',
    },
    "title": TEXT,
}
STOP = {
    "anyOf": [
        TEXT,
        _table({"chapter": TEXT, "sections": TEXTS | {"minItems": 1}}, ("chapter",), ""),
    ],
    "description": 'a notebook, or { chapter = "02_pooling", sections = ["A heading"] }',
}
WAY = {
    "title": TEXT,
    "chapters": {
        "type": "array",
        "minItems": 1,
        "items": STOP,
        "description": "a list of notebooks",
    },
    "goal": TEXT | {"description": "one of its notebooks"},
}
SCHEMA = _table(
    {
        "course": _table(COURSE | OPTIONAL, tuple(COURSE), "one table [course]"),
        "part": _tables({"title": TEXT}, ("title",), "one table [[part]] or more"),
        "way": _tables(WAY, ("title", "chapters"), "one table [[way]] or more"),
        "chapter": _tables(CHAPTER, ("notebook", "title"), "one table [[chapter]] or more"),
        "appendix": _tables(APPENDIX, ("notebook", "title"), "one table [[appendix]] or more"),
    },
    ("course", "chapter"),
    "the manifest",
)


# What is wrong ------------------------------------------------------------------


def fail(path: Path, key: str, problem: str, remedy: str) -> NoReturn:
    """Say which file, which key, what is wrong there, and what to do."""
    raise ManifestError(f"{path.name}: {key}: {problem}. {remedy}.")


def parse(path: Path) -> dict:
    """The file's tables."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"there is no such file in {path.resolve().parent}. Restore it from git."
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError alike
        problem = f"not valid TOML: {error}. Correct that place; text stands in double quotes."
    raise ManifestError(f"{path.name}: {problem}")


def check_shape(path: Path, table: dict) -> None:
    """Compare the table with the schema.

    Raises:
        ManifestError: the first mistake in jsonschema's words, with what is expected there.
    """
    from jsonschema import Draft202012Validator  # slow to import

    errors = list(Draft202012Validator(SCHEMA).iter_errors(table))
    errors.sort(
        key=lambda error: error.validator != "additionalProperties"
    )  # a misspelled key is missing, too
    for error in errors[:1]:
        expected = error.schema["description"]
        if error.validator in ("additionalProperties", "required"):
            expected += f" with the keys {', '.join(error.schema['properties'])}"
        key = error.json_path.removeprefix("$").lstrip(".") or "at the top"
        fail(path, key, error.message, f"Expected: {expected}")


def suggest(word: str, known: Iterable[str]) -> str:
    """What may have been meant, as a remedy."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}" if near else f"Remove it; known here: {', '.join(known)}"
