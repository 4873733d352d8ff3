"""The cells of a page, which the book's transforms take, change and return, and their tags and headings."""

from collections.abc import Iterator

from nbformat import NotebookNode

from course_utils.kit.exercises import HEADING

Cells = list[NotebookNode]


def tags(cell: NotebookNode) -> list[str]:
    """The list of a cell's tags; a change of it changes the cell."""
    return cell.metadata.setdefault("tags", [])


def level(cell: NotebookNode) -> int:
    """The level of the heading, 1 to 6, with which a Markdown cell begins; 0 for any other cell."""
    heading = cell.cell_type == "markdown" and HEADING.match(cell.source.partition("\n")[0])
    return len(heading[1]) if heading else 0


def html_outputs(cells: Cells) -> Iterator[NotebookNode]:
    """The data of outputs that hold HTML; a change of it changes the output."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                yield output.data
