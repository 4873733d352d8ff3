"""The suite itself: a run ends, whatever happens to a worker, and what is left for the night is known."""

import re
import subprocess
import sys
import tomllib

from course_utils.files import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ADDOPTS = SETTINGS["tool"]["pytest"]["ini_options"]["addopts"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_a_worker_that_crashes_ends_the_run_with_a_sentence(tmp_path):
    """With another scheduler, or with a new worker for the lost one, the run waits for ever."""
    (tmp_path / "test_a.py").write_text("import os\ndef test_crash(): os.abort()\n")
    for name in "bcd":
        (tmp_path / f"test_{name}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    how = re.search(r"^test:.*\n\t.*pytest.*?(--dist.*)", MAKEFILE, re.MULTILINE)[1].split()
    kept = [option for option in ADDOPTS if option.startswith("--max-worker-restart")]
    command = [sys.executable, "-m", "pytest", "-n", "2", *how, *kept, str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1
    assert re.search(r"crashed while running '\S*test_a.py::test_crash'", run.stdout)
