"""An extension of the notebook server: a chapter that was run but not edited keeps its committed outputs.

New outputs would differ by a counter, a time or what only Lab shows. So a reader who has run a chapter can still build
the book, and git reports no change. An edited chapter is saved as it is.
"""

from pathlib import Path
from typing import Any

import nbformat

from course_utils.studio.notebook_files import is_edited


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    server.contents_manager.register_pre_save_hook(keep_if_unedited)


def keep_if_unedited(model: dict[str, Any], path: str, contents_manager: Any, **_: object) -> None:
    """Replace the notebook to be saved, in `model`, by the one in the file, if only outputs differ.

    Args:
        model: as Jupyter's contents API has it.
        path: of the file, below the server's root.
        contents_manager: knows the root.
    """
    file = Path(contents_manager.root_dir, path.strip("/"))
    if model["type"] != "notebook" or not file.is_file():
        return
    stored = nbformat.read(file, as_version=4)
    if _texts(stored) == _texts(model["content"]) and _is_as_made(stored):
        model["content"] = stored


def _texts(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]


def _is_as_made(notebook: nbformat.NotebookNode) -> bool:
    """Whether a notebook is as the course made it, with its outputs; in a handout it has none."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return not is_edited(notebook) and all(cell.execution_count for cell in code)
