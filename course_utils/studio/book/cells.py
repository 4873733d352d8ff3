"""The cells of a page: what the book's transforms take, change and return."""

from collections.abc import Iterator

from nbformat import NotebookNode

from course_utils.kit.exercises import HEADING

Cells = list[NotebookNode]


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags, to be changed."""
    return cell.metadata.setdefault("tags", [])


def level(cell: NotebookNode) -> int:
    """1 to 6 for a Markdown cell that begins with a heading, else 0."""
    heading = cell.cell_type == "markdown" and HEADING.match(cell.source.partition("\n")[0])
    return len(heading[1]) if heading else 0


def html_outputs(cells: Cells) -> Iterator[NotebookNode]:
    """The data of outputs that hold HTML, to be changed."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                yield output.data
