"""Handouts of a course with one chapter, and a reader who works in one."""

import os
from contextlib import contextmanager
from pathlib import Path

import nbformat
from tiny_book import book

from course_utils.studio import handout, manifest

CHAPTER = "notebooks/00_a.ipynb"
STUB = 'def loo_residuals(weights, values):\n    """(n, n), (n,) → (n,)."""\n    ...'
CHANGED_STUB = STUB.replace("weights,", "W,")
ANSWER = STUB.replace("...", "return (values - weights @ values) / (1 - weights.diagonal())")
CHECK = "cu.checks.loo_residuals(loo_residuals)"
SOURCE = f"""\
# %% [markdown]
# # A chapter
#
# With prose.

# %%
import course_utils as cu

# %% tags=["exercise", "build"]
{STUB}

# %% tags=["check"]
{CHECK}

# %% tags=["solution"]
def loo_residuals_solution(weights, values):
    ...

# %%
width = 0.5  # try 0.1 … 10

# %% [markdown]
# The end.
"""
SECOND = SOURCE.replace(STUB, CHANGED_STUB).replace("With prose.", "With better prose.")


def hand_out(to: Path, source: str = SOURCE, name: str = "00_a", **texts: str) -> Path:
    """Write a handout of one chapter, and modules of the course by their names; the folder."""
    root = to.with_name(f"{to.name}-authors")
    (root / "notebooks" / "source").mkdir(parents=True, exist_ok=True)
    (root / "course_utils").mkdir(exist_ok=True)
    for module, text in texts.items():
        (root / "course_utils" / f"{module}.py").write_text(text)
    (root / "book.toml").write_text(book(name))
    (root / "notebooks" / "source" / f"{name}.py").write_text(source)
    (root / "pyproject.toml").write_text(
        '[project]\nname = "a"\n\n[tool.jupytext]\nformats = ["ipynb", "py"]\n'
    )
    handout.build(manifest.load(root / "book.toml", files=False), root, to)
    return to


def cells(ipynb: Path) -> list[str]:
    """The texts of a notebook's cells."""
    return [cell.source for cell in nbformat.read(ipynb, as_version=4).cells]


def edit(ipynb: Path, old: str, new: str) -> None:
    """Change the cell that holds a text, and it alone, as an editor does."""
    notebook = nbformat.read(ipynb, as_version=4)
    (cell,) = [cell for cell in notebook.cells if old in cell.source]
    cell.source = cell.source.replace(old, new)
    nbformat.write(notebook, ipynb)


@contextmanager
def kernel(monkeypatch, home: Path):
    """What runs a cell as a notebook does, for a reader whose home this is; gives its result."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    with monkeypatch.context() as patched:
        patched.delenv("COURSE_STRICT")
        patched.setenv("COURSE_HOME", str(home))
        patched.setenv("IPYTHONDIR", str(home / "ipython"))
        patched.setattr("course_utils.kit.passed._session", {})
        (home / "ipython").mkdir(mode=0o700, parents=True, exist_ok=True)
        InteractiveShell.clear_instance()
        shell = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))

        def run(*texts: str):
            for text in texts:
                done = shell.run_cell(text, store_history=True)
                done.raise_error()
            return done.result

        run.shell = shell
        try:
            run("import course_utils as cu")
            yield run
        finally:
            InteractiveShell.clear_instance()


GIT = ["git", "-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run git in a folder; what it printed."""
    import subprocess

    environ = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        [*GIT, *arguments], cwd=folder, env=environ, capture_output=True, text=True
    )
    assert bool(done.returncode) is fails, done.stderr
    return done.stdout
