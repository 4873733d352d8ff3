"""What a person's home and shell change in a notebook: nothing, whichever of the two doors runs it."""

import json
import os
import subprocess
import sys

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_utils.files import ROOT
from course_utils.studio import kernel, notebooks
from course_utils.studio.notebook_files import KERNEL, normalize, write_notebook

FACTS = """\
import builtins, locale, os, shutil, sys, time
import matplotlib

print(sys.executable, *(path for path in sys.path if "theirs" in path), hasattr(builtins, "theirs"))
print(sys.flags.optimize, sys.flags.inspect, sys.warnoptions, sys.stdout.encoding, locale.getpreferredencoding())
print(shutil.get_terminal_size().columns, time.timezone, os.environ["OMP_NUM_THREADS"])
print(*{"JPY_SESSION_NAME", "VSCODE_PID"} & os.environ.keys())
print(matplotlib.rcParams["figure.figsize"], matplotlib.get_backend())"""
VALUES = "'first'\n'last'"


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """The home and the shell of somebody who has set all that can be set; gives the folder."""
    home = tmp_path / "theirs"
    code = "import builtins\nbuiltins.theirs = print('good morning')\n"
    spec = json.dumps({"argv": ["false"], "display_name": "Theirs", "language": "python"})
    files = {
        "ipython/profile_default/ipython_kernel_config.py": (
            "c.InteractiveShell.ast_node_interactivity = 'all'\nc.InteractiveShell.colors = 'Linux'\n"
        ),
        "ipython/profile_default/startup/00_theirs.py": code,
        "startup.py": code,
        "packages/sitecustomize.py": code,
        "packages/theirs_hooks.py": "import not_installed_here\n",
        "packages/theirs-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: theirs\nVersion: 1\n",
        "packages/theirs-1.dist-info/entry_points.txt": "[pytest11]\ntheirs = theirs_hooks\n",
        "matplotlibrc": "figure.figsize: 20, 20\nno.such.key: 1\n",
        "jupyter/kernels/python3/kernel.json": spec,
    }
    for name, text in files.items():
        for place in (home / name, home / f".{name}", home / ".config" / "matplotlib" / name):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "jupyter").symlink_to(home / "jupyter")
    settings = {
        "HOME": home,
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "jupyter",
        "JUPYTER_DATA_DIR": home / "jupyter",
        "JUPYTER_PATH": home / "jupyter",
        "MATPLOTLIBRC": home / "matplotlibrc",
        "MPLBACKEND": "svg",
        "PYTHONPATH": home / "packages",
        "PYTHONSTARTUP": home / "startup.py",
        "PYTHONWARNINGS": "always",
        "PYTHONOPTIMIZE": "2",
        "PYTHONINSPECT": "1",
        "PYTHONIOENCODING": "latin-1",
        "PYTHONUTF8": "0",
        "LC_ALL": "POSIX",
        "COLUMNS": "20",
        "JPY_SESSION_NAME": "theirs",  # a kernel of Lab has it, and may show widgets
        "VSCODE_PID": "1",
        "LINES": "5",
        "TZ": "XYZ-14",
        "OMP_NUM_THREADS": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    return home


@pytest.mark.notebook
@pytest.mark.slow
def test_nobody_s_home_and_settings_change_a_notebook_by_either_door(theirs, tmp_path):
    notebook = normalize(new_notebook(cells=[new_code_cell(FACTS), new_code_cell(VALUES)]))
    notebook.metadata.kernelspec = KERNEL
    notebooks.execute(notebook, cwd=tmp_path)
    facts, values = (cell.outputs for cell in notebooks.clean(notebook).cells)
    assert [output.text.splitlines() for output in facts] == [[
        f"{sys.executable} False",
        "0 0 [] UTF-8 utf-8",
        "80 0 1",
        "",
        "[6.4, 4.8] module://matplotlib_inline.backend_inline",
    ]]  # fmt: skip
    assert [output.data["text/plain"] for output in values] == ["'last'"]
    write_notebook(notebook, tmp_path / "made.ipynb")
    # PYTHONINSPECT would keep pytest itself from ending.
    environ = os.environ | {"PYTHONINSPECT": ""}
    nbval = [sys.executable, "-m", "pytest", "-p", "conftest", "-n", "0", "--nbval", "-q"]
    done = subprocess.run(
        [*nbval, "--rootdir", ROOT, "-c", ROOT / "pyproject.toml", tmp_path / "made.ipynb"],
        cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_student_s_own_lab_keeps_the_student_s_settings(theirs):
    assert kernel.environment() == dict(os.environ)
    assert kernel.clean_environment()["OMP_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"]
