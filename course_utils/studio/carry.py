"""A reader's notebook and a new release of it, brought together cell by cell.

    the reader's cell                  and the release          what stands in the new notebook
    an answer                          has the exercise         the answer; a changed stub in a cell below it
    an answer                          has it no longer         the answer, where it was
    the course's, as handed out        whatever it has          the release's
    the course's, edited               has it as before         the reader's
    the course's, edited               has it otherwise         the release's; the reader's text in a cell below it
    the reader's own                                            the same, below the cell that it followed

Lines are never mixed. The ids of the cells tell what a cell said when it was handed out; where an editor has lost
them, a cell that the release does not have counts as the reader's.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from course_utils.kit.stubs import defined, defines, exercises
from course_utils.studio.pairs import digest

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELLS = "handed_out"  # in a notebook's metadata: the ids of its cells, as they were handed out
NOTE = "stub-"  # how the id of a cell begins that shows a changed stub
NEW_STUB = """**A new release has changed the stub of `{name}`.** Your answer above is as it was. The new stub:

```python
{stub}
```

Delete this cell when you have looked at it."""
YOURS = """*The release has changed a cell here that you had edited. Your text was:*

{text}"""


class Carried(NamedTuple):
    """What `carry` has done.

    Attributes:
        notebook: of the release, with all that is the reader's.
        answers: the exercises whose answer stands in it, by the name of the check.
        changed: those of them whose stub the release has changed.
        own: how many other cells of the reader's stand in it.
    """

    notebook: "NotebookNode"
    answers: list[str]
    changed: list[str]
    own: int


def remember(notebook: "NotebookNode") -> "NotebookNode":
    """Note, in place, which cells are handed out."""
    notebook.metadata[CELLS] = " ".join(cell.id for cell in notebook.cells)
    return notebook


def id_of(cell: "NotebookNode") -> str:
    """A cell's id, also where Colab has put it."""
    return cell.metadata.get("id") or cell.get("id") or ""


def answered(notebook: "NotebookNode", stubs: Mapping[str, str]) -> dict[str, "NotebookNode"]:
    """The answers in a notebook, by the name of the check.

    Args:
        notebook: the reader's.
        stubs: as they were handed out, name of the check → text.
    """
    found = {name: cell for name, cell in exercises(notebook.cells) if _is_edited(cell)}
    return {name: cell for name, cell in found.items() if cell.source != stubs.get(name)}


def carry(
    mine: "NotebookNode",
    new: "NotebookNode",
    stubs: Mapping[str, str] | None = None,
    moved: Mapping[str, "NotebookNode"] | None = None,
) -> Carried:
    """Give the notebook of a release, in place, what is the reader's.

    Args:
        mine: the reader's notebook.
        new: the release's, bare.
        stubs: as they were handed out before, name of the check → text.
        moved: answers to exercises that stood in another notebook, by the name of the check.
    """
    asked = {cell.id: name for name, cell in exercises(new.cells)}
    theirs = {cell.id: cell for cell in new.cells}
    handed = set(str(mine.metadata.get(CELLS, "")).split())
    matched = _matched(mine, new, asked)
    below: dict[str, list[NotebookNode]] = {}
    done = Carried(new, [], [], 0)
    at, own, before = "", 0, stubs or {}
    following = dict(zip(["", *theirs], theirs, strict=False))
    for place, cell in enumerate(mine.cells):
        if place not in matched:
            if id_of(cell) in handed and following.get(at, at) not in matched.values():
                at = following.get(at, at)  # what the release has in its place
            if _is_edited(cell):
                below.setdefault(at, []).append(_own(cell, handed))
                own += not id_of(cell).startswith(NOTE)
            continue
        at = matched[place]
        stub, name = theirs[at], asked.get(at)
        if name is None:
            own += cell.source != stub.source
            _take(cell, stub)
        elif _is_edited(cell) and cell.source not in (stub.source, before.get(name)):
            same = id_of(cell) == at if id_of(cell) in handed else None
            below[at] = _answer(cell, stub, name, before, done, same) + below.get(at, [])
    for at, name in asked.items():
        if moved and name in moved and name not in done.answers:
            below[at] = _answer(moved[name], theirs[at], name, before, done) + below.get(at, [])
    new.cells = list(_with_ids([*below.pop("", []), *_woven(new.cells, below)], theirs))
    new.metadata = type(new.metadata)({**mine.metadata, **new.metadata})
    return done._replace(own=own)


def _woven(
    cells: list["NotebookNode"], below: Mapping[str, list["NotebookNode"]]
) -> Iterator["NotebookNode"]:
    for cell in cells:
        yield cell
        yield from below.get(cell.id, [])


def _matched(mine: "NotebookNode", new: "NotebookNode", asked: Mapping[str, str]) -> dict[int, str]:
    """The cells of the reader's that stand for one of the release's: place → id there."""
    free, found = {cell.id: cell for cell in new.cells}, {}

    def match(place: int, key: str) -> None:
        found[place] = key
        del free[key]

    for place, cell in enumerate(mine.cells):
        if (key := id_of(cell)) in free and cell.cell_type == free[key].cell_type:
            match(place, key)
    tried = dict(exercises(mine.cells))
    for key in [key for key in free if key in asked]:
        name = defined(free[key].source)
        rest = [place for place in range(len(mine.cells)) if place not in found]
        code = [place for place in rest if mine.cells[place].cell_type == "code"]
        named = [place for place in code if name and defines(mine.cells[place].source, name)]
        tagged = [p for p in named if "exercise" in mine.cells[p].metadata.get("tags", ())]
        before_check = [place for place in code if mine.cells[place] is tried.get(asked[key])]
        for place in [*tagged[:1], *before_check, *named[:1]][:1]:
            match(place, key)
    said = {digest(cell): key for key, cell in reversed(free.items())}
    for place, cell in enumerate(mine.cells):
        if place not in found and (key := said.get(digest(cell), "")) in free:
            match(place, key)
    return found


def _is_edited(cell: "NotebookNode") -> bool:
    """Whether a cell says something else than when it was handed out, or was not handed out."""
    return id_of(cell).partition("-")[0] != digest(cell)


def _take(cell: "NotebookNode", theirs: "NotebookNode") -> None:
    """Put a reader's cell, in place, where the release has one: its text, its outputs, what is attached."""
    kept = {key: value for key, value in cell.metadata.items() if key != "id"}
    theirs.update({k: v for k, v in cell.items() if k not in ("id", "cell_type", "metadata")})
    theirs.metadata = type(theirs.metadata)({**kept, **theirs.metadata})


def _answer(
    cell: "NotebookNode",
    stub: "NotebookNode",
    name: str,
    before: Mapping[str, str],
    done: Carried,
    same: bool | None = None,
) -> list["NotebookNode"]:
    """Put an answer in the place of its stub; a cell about the stub, if it is not the `same` as before."""
    from nbformat.v4 import new_markdown_cell

    text = stub.source
    same = before.get(name, text) == text if same is None else same
    _take(cell, stub)
    done.answers.append(name)
    if same:
        return []
    done.changed.append(name)
    note = new_markdown_cell(NEW_STUB.format(name=name, stub=text))
    note["id"] = f"{NOTE}{name}"[:64]
    return [note]


def _own(cell: "NotebookNode", handed: set[str]) -> "NotebookNode":
    """A cell that the release has no place for: as it is, or as text where the course's was edited."""
    from nbformat.v4 import new_markdown_cell

    if id_of(cell) not in handed or "exercise" in cell.metadata.get("tags", ()):
        return cell
    text = f"```python\n{cell.source}\n```" if cell.cell_type == "code" else cell.source
    return new_markdown_cell(YOURS.format(text=text))


def _with_ids(
    cells: list["NotebookNode"], theirs: Mapping[str, "NotebookNode"]
) -> Iterator["NotebookNode"]:
    """Each cell with an id of its own; of two cells about one stub the first, which is the newer."""
    from nbformat.v4 import new_raw_cell

    seen: set[str] = set()
    for cell in cells:
        key = cell.id if cell is theirs.get(cell.get("id", "")) else id_of(cell)
        if key in seen and key.startswith(NOTE):
            continue
        if not key or key in seen or (key in theirs and cell is not theirs[key]):
            key = new_raw_cell()["id"]
        cell["id"] = key
        seen.add(key)
        yield cell
