"""What every test and every notebook under `pytest --nbval` runs in: strict, and with nothing of the reader's home.

It stands here and not in tests/, so that `pytest --nbval notebooks/02*.ipynb` is the same run as the whole suite's:
kernels inherit these variables.
"""

import os
import signal
import tempfile
from pathlib import Path

HOME = tempfile.TemporaryDirectory(prefix="course-home-", ignore_cleanup_errors=True)
STARTUP = Path(__file__).parent / "course_utils" / "studio" / "kernel_startup.py"

os.environ["COURSE_STRICT"] = "1"  # a claim that does not hold is an error here
os.environ["COURSE_HOME"] = f"{HOME.name}/course"  # nothing has passed, no answer is kept
os.environ["IPYTHONDIR"] = f"{HOME.name}/ipython"  # or a profile's startup files and settings run
os.environ["PYTHONSTARTUP"] = str(STARTUP)
os.environ.pop("MPLBACKEND", None)  # or a kernel shows no picture

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in a job that a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
