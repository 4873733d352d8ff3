"""What every test and every notebook under `pytest --nbval` runs in: strict, and with nothing of the reader's home.

It stands here and not in tests/, so that `pytest --nbval notebooks/02*.ipynb` is the same run as the whole suite's:
kernels inherit these variables.
"""

import signal

from course_utils.studio import kernel, manifest

kernel.use_clean_environment()

collect_ignore = [f"notebooks/{manifest.START}"]  # a reader's own page, which `make lab` writes

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in a job that a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
