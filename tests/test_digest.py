"""A digest changes with the code and the data that a function depends on, and with nothing else."""

import ast

import pytest

from course_utils.kit import digest as module
from course_utils.kit.digest import digest, needed

CHAPTER = '''
import torch

import course_utils as cu
from course_utils.metrics import perplexity
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
    return perplexity(table)


def unrelated():
    other = sinusoidal_table(3, 4)
    return other
'''


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
    assert "def wanted" in chosen and "def helper" in chosen
    assert (
        "words = " in chosen
        and "words.append" in chosen
        and "count = " in chosen
        and "import perplexity" in chosen
    )
    assert "unrelated" not in chosen and "other" not in chosen and "sinusoidal" not in chosen


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a remark", "# another remark"),
        ('"""What it does."""', '"""Something else."""'),
        ("# Some prose.", "# Other prose."),
        ("other = count + 1", "other = count + 2"),
        ("sinusoidal_table(3, 4)", "sinusoidal_table(5, 4)"),
        ("x + count", "(x + count)"),
    ],
)
def test_what_does_not_matter_leaves_the_digest(chapter, old, new):
    assert old in CHAPTER
    assert digest(chapter(), ["wanted"]) == digest(chapter(CHAPTER.replace(old, new)), ["wanted"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x + count", "x - count"),
        ('["a", "b"]', '["a"]'),
        ('"cd"', '"cde"'),
        ("helper(x)  #", "helper(x + 1)  #"),
        ("return perplexity", "return cu.accuracy"),
    ],
)
def test_what_matters_changes_the_digest(chapter, old, new):
    assert old in CHAPTER
    assert digest(chapter(), ["wanted"]) != digest(chapter(CHAPTER.replace(old, new)), ["wanted"])


@pytest.mark.parametrize(("changed", "matters"), [("split_heads", True), ("best_width", False)])
def test_a_change_deep_in_the_package_changes_the_digest(chapter, monkeypatch, changed, matters):
    path = chapter(
        "import course_utils as cu\n\n\ndef f():\n    return cu.MultiHeadAttention(8, 2)\n"
    )
    before = digest(path, ["f"])
    statements = module._statements

    def other(file):
        return [
            ast.parse(f"def {changed}(*args, **kwargs): return 1").body[0]
            if isinstance(statement, ast.FunctionDef) and statement.name == changed
            else statement
            for statement in statements(file)
        ]

    monkeypatch.setattr(module, "_statements", other)
    for kept in (module._bindings, module._reads, module._dump):
        kept.cache_clear()
    after = digest(path, ["f"])
    for kept in (module._bindings, module._reads, module._dump):
        kept.cache_clear()
    assert (after != before) is matters


def test_data_counts(chapter, monkeypatch, tmp_path):
    path = chapter()
    (tmp_path / "words.csv").write_text("a")
    monkeypatch.setattr(module, "data_path", lambda name: tmp_path / name)
    before = digest(path, ["wanted"], ["words.csv"])
    assert before != digest(path, ["wanted"])
    (tmp_path / "words.csv").write_text("b")
    assert digest(path, ["wanted"], ["words.csv"]) != before


def test_a_name_that_is_not_there_is_said(chapter):
    with pytest.raises(ValueError, match=r"00_chapter\.py does not define nothing"):
        digest(chapter(), ["nothing"])
