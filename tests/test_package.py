"""The flat API: every name that the package promises is there, and importing it loads little."""

import subprocess
import sys

import course_utils as cu


def test_every_promised_name_is_there_and_named_once():
    assert len(cu.__all__) == len(set(cu.__all__))
    assert not [name for name in cu.__all__ if not hasattr(cu, name)]


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
