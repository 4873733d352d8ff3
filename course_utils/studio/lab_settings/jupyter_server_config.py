"""What Jupyter's server reads when `make lab` starts it: pairs are opened and saved by the course's own class."""

import importlib.util
from pathlib import Path

# From its file: importing the package would bring PyTorch into the server.
_spec = importlib.util.spec_from_file_location(
    "course_pairs", Path(__file__).parents[1] / "pairs.py"
)
_pairs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_pairs)

c.ServerApp.contents_manager_class = _pairs.PairedContents  # noqa: F821
