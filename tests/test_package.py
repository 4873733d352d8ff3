"""The package: its names are there, importing it loads little, and its rooms keep their order."""

import subprocess
import sys

import pytest
from importlinter import cli

import course_utils as cu
from course_utils.runtime import ROOT


def test_every_promised_name_is_there_and_named_once():
    assert len(cu.__all__) == len(set(cu.__all__))
    assert not [name for name in cu.__all__ if not hasattr(cu, name)]


def test_each_room_imports_only_from_the_rooms_before_it(capsys):
    broken = cli.lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert not broken, capsys.readouterr().out


@pytest.mark.slow
def test_importing_the_package_loads_no_notebook_machinery():
    script = "import sys, course_utils; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    slow = {
        "IPython",
        "ipywidgets",
        "pandas",
        "jupyterlab",
        "matplotlib.pyplot",
        "sacrebleu",
        "pooch",
    }
    assert not slow & set(loaded.split())


@pytest.mark.slow
def test_the_first_attention_waits_for_no_symbolic_mathematics():
    script = """
import sys, torch, course_utils as cu
x = torch.ones(2, 3, 4)
cu.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(2, 1, 3, dtype=bool))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "torch" in done.stdout.split(), done.stderr
    assert "sympy" not in done.stdout.split()
