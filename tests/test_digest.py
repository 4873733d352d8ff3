"""A digest changes with the code that a function depends on, however it is imported, and with nothing else."""

import ast
import inspect
from pathlib import Path

import grimp
import pytest

from course_utils.files import LESSONS
from course_utils.kit import runs
from course_utils.kit.digest import SOURCES, Sources, _bound, digest_of, needed

DECLARED = [run for path in sorted(LESSONS.glob("*/runs.py"))
            for run in runs.declared(path.parent.name).values()]  # fmt: skip

CHAPTER = '''
import torch

import course_utils as cu
from course_utils.data.text import tokenize
from course_utils.positions import sinusoidal_table

# %% [markdown]
# Some prose.

words = ["a", "b"]
for word in "cd":
    words.append(word)
count = len(words)
other = count + 1


def helper(x):
    """What it does."""
    return x + count  # a remark


def wanted(x):
    table = helper(x)  # a local name that is also a global one elsewhere
    return tokenize(table)


def unrelated():
    other = sinusoidal_table(3, 4)
    return other
'''


def digest(path, name="wanted", sources=SOURCES):
    return digest_of(sources.statements(path, [name]))


@pytest.fixture
def chapter(tmp_path):
    def write(text=CHAPTER):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}_chapter" / "00_chapter.py"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_only_what_a_name_needs_is_chosen(chapter):
    chosen = ast.unparse(needed(chapter(), ["wanted"]))
    for part in (
        "def wanted",
        "def helper",
        "words =",
        "words.append",
        "count =",
        "import tokenize",
    ):
        assert part in chosen
    assert "unrelated" not in chosen and "other" not in chosen and "sinusoidal" not in chosen


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        ("# a remark", "# another remark", False),
        ('"""What it does."""', '"""Something else."""', False),
        ("# Some prose.", "# Other prose.", False),
        ("other = count + 1", "other = count + 2", False),
        ("sinusoidal_table(3, 4)", "sinusoidal_table(5, 4)", False),
        ("x + count", "(x + count)", False),
        ("x + count", "x - count", True),
        ('["a", "b"]', '["a"]', True),
        ('"cd"', '"cde"', True),
        ("helper(x)  #", "helper(x + 1)  #", True),
        ("return tokenize(", "return float(", True),
    ],
)
def test_what_matters_changes_the_digest_and_nothing_else(chapter, old, new, matters):
    assert old in CHAPTER
    changed = digest(chapter(CHAPTER.replace(old, new)))
    assert (changed != digest(chapter())) is matters


# Through imports --------------------------------------------------------------------------------

PACKAGE = {
    "__init__": '_ROOMS = {"room.masks": "fit"}',
    "room/__init__": "from course_utils.room.masks import fit as shown",
    "room/masks": "def fit():\n    return 1\n\n\ndef other():\n    return 1\n",
}
BY_NAME = [
    "from course_utils.room.masks import fit\ndef wanted(): return fit()",
    "from course_utils.room.masks import fit as f\ndef wanted(): return f()",
    "from .masks import fit\ndef wanted(): return fit()",
    "from . import masks\ndef wanted(): return masks.fit()",
    "from ..room import masks\ndef wanted(): return masks.fit()",
    "from course_utils.room import masks\ndef wanted(): return masks.fit()",
    "from course_utils.room import shown\ndef wanted(): return shown()",
    "import course_utils.room.masks as m\ndef wanted(): return m.fit()",
    "import course_utils.room.masks\ndef wanted(): return course_utils.room.masks.fit()",
    "import course_utils as cu\ndef wanted(): return cu.fit()",
    "import course_utils as cu\ndef wanted(): return cu.room.masks.fit()",
    "def wanted():\n  from course_utils.room import masks\n  return masks.fit()",
    "try:\n  from course_utils.room.masks import fit\nexcept ImportError: pass\ndef wanted(): return fit()",
    "from course_utils.room.masks import *\ndef wanted(): return fit()",
]
WHOLE = [
    "from course_utils.room import masks\ndef wanted(name): return getattr(masks, name)()",
    "from course_utils.room import masks\ndef wanted(): return apply(masks)",
    "from course_utils.room import masks as m\nrooms = [m]\ndef wanted(): return rooms",
    "from course_utils.room import masks\ndef wanted(): return masks.made_when_asked()",
]


@pytest.mark.parametrize(
    ("text", "whole"), [(t, False) for t in BY_NAME] + [(t, True) for t in WHOLE]
)
def test_each_kind_of_import_is_followed(tmp_path, text, whole):
    def digest_with(change):
        root = tmp_path / change
        for name, source in (PACKAGE | {"room/wants": text}).items():
            path = root / "course_utils" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source.replace(f"{change}():\n    return 1", f"{change}(): return 2"))
        return digest(root / "course_utils" / "room" / "wants.py", sources=Sources(root))

    assert digest_with("fit") != digest_with("nothing")
    assert (digest_with("other") != digest_with("nothing")) is whole


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        (
            """f"{row['loss']:.{digits}f} {name!r}'s\"""",
            """f(format(row['loss'], None, f('.', format(digits, None, ''), 'f')), ' ', """
            """format(name, 'r', ''), "'s")""",
        ),
        ("[row for row in rows]", "[row for row in rows]"),
    ],
)
def test_a_statement_has_one_spelling_in_every_python(chapter, text, spelled):
    assert SOURCES.text(chapter(f"wanted = {text}\n"), 0) == f"wanted = {spelled}"


def test_the_variables_of_a_comprehension_bind_nothing_in_every_python():
    loops = "pairs = [(row, 1) for row in rows]\nrow = [row for row in rows]\nthird = row\n"
    assert [sorted(_bound(line)) for line in ast.parse(loops).body] == [["pairs"], ["row"], ["third"]]  # fmt: skip


def test_what_moves_to_another_file_keeps_its_digest(tmp_path):
    def digest_with(file):
        names = {"wants": BY_NAME[0].replace("masks", file), file: PACKAGE["room/masks"]}
        for name, source in names.items():
            path = tmp_path / file / "course_utils" / "room" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return digest(path.with_stem("wants"), sources=Sources(tmp_path / file))

    assert digest_with("masks") == digest_with("hidden")


# Soundness: what Python would import, against what is read from the sources -----------------------

NO_NUMBER = ("course_utils.figures.", "course_utils.kit.")
"""How a result looks, how it is stored and shown. Of all other files, those that the digest leaves out define what
no run names; importing them does nothing else."""
PLAIN = ("cache", "dataclass", "contextmanager", "total_ordering", "stored", "overload")
PLAIN += ("no_grad", "inference_mode")


def does_something_else(statement, own):
    """Whether a top-level statement may change what another file sees."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.AnnAssign() | ast.Expr(ast.Constant()):
            return False
        case ast.FunctionDef() | ast.ClassDef():
            names = [ast.unparse(d).partition("(")[0] for d in statement.decorator_list]
            return not all(name.rpartition(".")[2] in PLAIN for name in names)
        case ast.Assign() | ast.AugAssign():
            targets = getattr(statement, "targets", None) or [statement.target]
            places = [t.value if isinstance(t, ast.Subscript) else t for t in targets]
            return not all(isinstance(p, ast.Tuple) or ast.unparse(p) in own for p in places)
        case ast.If(test):
            return ast.unparse(test) != "TYPE_CHECKING"
    return True


def test_a_file_that_a_run_imports_and_the_digest_leaves_out_changes_no_number():
    graph = grimp.build_graph("course_utils", exclude_type_checking_imports=True, cache_dir=None)
    imported, reached = set(), set()
    for run in DECLARED:
        module, own = run.function.__module__, Path(inspect.getfile(run.function))
        imported |= {module, *graph.find_upstream_modules(module)}
        reached |= {path for path, _ in SOURCES.nodes(own, [run.name])}
    ours = {name: SOURCES.module(name) for name in sorted(imported)}
    assert reached <= set(ours.values())
    other = []
    for name in (name for name in ours if not f"{name}.".startswith(NO_NUMBER)):
        tree = ast.parse(ours[name].read_text(encoding="utf-8"))
        own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        own -= {alias.asname or alias.name for node in tree.body
                if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
        other += [f"{name}: {ast.unparse(s)}" for s in tree.body if does_something_else(s, own)]
    assert other == []
