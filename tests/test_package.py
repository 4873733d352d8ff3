"""The package: what `cu` offers, what an import loads, and the order of its modules."""

import subprocess
import sys

from importlinter import cli

import course_utils as cu
from course_utils.files import ROOT


def loaded(script: str) -> set[str]:
    """The modules that a new process has after a script."""
    command = [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules)"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(said.splitlines()[-1].split())


def test_every_name_of_cu_is_there_and_others_are_not():
    assert all(hasattr(cu, name) for name in cu.__all__)
    assert not hasattr(cu, "atention")


def test_each_module_imports_only_from_those_before_it(capsys):
    broken = cli.lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_importing_the_package_loads_nothing_but_what_makes_printing_safe():
    modules = loaded("import course_utils")
    ours = {name for name in modules if name.startswith("course_utils")}
    assert ours == {"course_utils", "course_utils.terminal"}
    assert "torch" not in modules
