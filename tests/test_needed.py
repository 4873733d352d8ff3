"""Of a chapter the statements run that some names depend on, and no others."""

import ast

import pytest

from course_utils.kit.needed import bound_names, needed

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


def test_only_what_a_name_needs_is_chosen(tmp_path):
    path = tmp_path / "00_chapter.py"
    path.write_text(CHAPTER, encoding="utf-8")
    chosen = ast.unparse(needed(path, ["wanted"]))
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
    with pytest.raises(ValueError, match="00_chapter.py does not define nobody"):
        needed(path, ["nobody"])


def test_the_variables_of_a_comprehension_bind_nothing_in_every_python():
    loops = "pairs = [(row, 1) for row in rows]\nrow = [row for row in rows]\nthird = row\n"
    assert [sorted(bound_names(line)) for line in ast.parse(loops).body] == [["pairs"], ["row"], ["third"]]  # fmt: skip
