"""The package: what `cu` offers, what an import loads, and the order of the rooms."""

import ast
import re
import subprocess
import sys

import pytest
from importlinter import cli

import course_utils as cu
from course_utils.files import ROOT

SOURCES = ROOT / "notebooks" / "source"
OF_ONE_CHAPTER = {"doctor", "intervene", "progress"}  # a reader calls them anywhere


def loaded(script: str) -> set[str]:
    """The modules that a new process has after a script."""
    command = [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules)"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(said.splitlines()[-1].split())


def test_cu_has_at_most_65_names_and_each_is_used_in_two_chapters():
    chapters: dict[str, set[str]] = {name: set() for name in cu.__all__}
    for source in SOURCES.glob("*.py"):
        for name in set(re.findall(r"\bcu\.(\w+)", source.read_text(encoding="utf-8"))):
            chapters[name].add(source.stem.removesuffix("_further"))
    assert len(chapters) <= 65
    assert {name for name, users in chapters.items() if len(users) < 2} == OF_ONE_CHAPTER


def test_every_name_of_cu_is_there_and_others_are_not():
    assert all(hasattr(cu, name) for name in cu.__all__)
    assert not hasattr(cu, "atention")


def test_each_room_imports_only_from_the_rooms_before_it(capsys):
    broken = cli.lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_importing_the_package_loads_nothing_but_itself():
    modules = loaded("import course_utils")
    assert {name for name in modules if name.startswith("course_utils")} == {"course_utils"}
    assert "torch" not in modules


@pytest.mark.slow
def test_attention_loads_the_library_before_it_and_no_pictures():
    modules = loaded("import course_utils.attention")
    ours = {name for name in modules if name.startswith("course_utils.")}
    assert ours <= {f"course_utils.{name}" for name in ("arguments", "cache", "fused", "attention")}
    assert "torch" in modules and "matplotlib" not in modules


@pytest.mark.slow
def test_the_first_attention_waits_for_no_symbolic_mathematics():
    modules = loaded(
        "import torch, course_utils as cu; x = torch.ones(2, 3, 4)\n"
        "cu.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(2, 1, 3, dtype=bool))"
    )
    assert "torch" in modules and "sympy" not in modules


STARTS_FAST = [
    "__main__",
    "book.__main__",
    "claims",
    "doctor",
    "handout",
    "lab",
    "runs",
    "sheet",
    "tables",
]
SLOW = {
    "torch",
    "matplotlib",
    "jupytext",
    "nbformat",
    "nbclient",
    "nbconvert",
    "sphinx",
    "jsonschema",
}


def test_the_commands_start_without_what_only_some_need():
    modules = loaded(
        "\n".join(f"import course_utils.studio.{name}" for name in STARTS_FAST)
        + "\nfrom course_utils.studio.__main__ import main\n"
        "for words in (['--help'], ['lab', '--help']):\n"
        "    try: main(words)\n    except SystemExit: pass"
    )
    assert modules & SLOW == set() and "course_utils.studio.manifest" in modules


def test_claims_and_stored_runs_are_read_without_pytorch():
    modules = loaded(
        "from course_utils.studio.claims import main\nassert main(['02']) == 0\n"
        "from course_utils.kit.runs import stored_runs\nassert stored_runs('gpt')"
    )
    assert modules & SLOW == {"jsonschema"}


def test_a_file_of_the_library_has_400_lines_and_a_function_60_beside_its_docstring():
    library = [
        path
        for path in (ROOT / "course_utils").rglob("*.py")
        if path.relative_to(ROOT).parts[1] not in ("kit", "lessons", "studio")
    ]
    for path in library:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                said = len((ast.get_docstring(node, clean=False) or "").splitlines())
                assert node.end_lineno - node.lineno - said < 60, f"{path}: {node.name}"
