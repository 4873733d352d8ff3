"""Outputs on a page of the book: links lead to pages, pictures fit a narrow page, and tables are flat."""

import base64
import re
from html import escape
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode

from course_utils.studio import StudioError
from course_utils.studio.book.cells import Cells, html_outputs
from course_utils.studio.manifest import Chapter

LEAST_WIDTH = 0.91
"""The share of its width to which a narrow page may shrink a picture, so that letters of 12 pixels have 11."""
IMAGE = re.compile(r"<img [^>]*>")
ATTRIBUTES = {"alt", "src", "width", "height", "style"}
"""The attributes of an `<img>` that `cu.subplots` or `cu.show_images` wrote. Images with others are left alone."""

VECTOR = "data:image/svg+xml;base64,"
TABLE = re.compile(r'class="dataframe|id="T_')
NUMBER = re.compile(r"[-−+]?[\d,]*\.?\d+(e[-+]?\d+)?\s?%?|nan|–|-|")


def describe_pictures(cells: Cells, chapter: Chapter) -> Cells:
    """The cells, with the alt text of an image output in the metadata of its cell, where MyST-NB looks for it.

    Raises:
        StudioError: an image has no alt text, or a cell shows several.
    """
    for place, cell in enumerate(cells):
        alts = {_alt(output) for output in cell.get("outputs", [])} - {None}
        if "" in alts or len(alts) > 1:
            where, remedy = f"{chapter.notebook}: cell {place}", "draw one with cu.subplots(alt=…)"
            raise StudioError(f"{where} shows a picture without alt text, or several; {remedy}.")
        for alt in alts:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return cells


def _alt(output: NotebookNode) -> str | None:
    """The alt text of an image output; None for another output."""
    data = output.get("data", {})
    kind = next((kind for kind in data if kind.startswith("image/")), "")
    if not kind or "text/html" in data:
        return None
    return " ".join(output.metadata.get(kind, {}).get("alt", "").split())


def settle_outputs(cells: Cells) -> Cells:
    """The cells, with links to pages, pictures that fit a narrow page, and flat tables in HTML outputs."""
    for data in html_outputs(cells):
        html = re.sub(r'(?<= href=")(\w+)\.ipynb(?=["#])', r"\1.html", data["text/html"])
        data["text/html"] = flat_tables(IMAGE.sub(as_figure, html))
    return cells


def as_figure(tag: re.Match) -> str:
    """The image as a figure with a least width. An SVG is written into the page, and takes its colors and fonts."""
    image, shown = _attributes(tag), tag[0]
    if image.keys() != ATTRIBUTES:
        return shown
    if image["src"].startswith(VECTOR):
        label = f'role="img" aria-label="{escape(image["alt"])}"'
        shown = _svg(image["src"]).replace("<svg ", f"<svg {label} ", 1)
    least = f"{LEAST_WIDTH * int(image['width']):.0f}px"
    return f'<div class="cu-figure"><div style="min-width:{least};max-width:{image["width"]}px">{shown}</div></div>'


def _attributes(tag: re.Match) -> dict[str, str]:
    return BeautifulSoup(tag[0], "html.parser").img.attrs


def _svg(source: str) -> str:
    """The drawing in a data URI, less the colors, which the page defines."""
    drawing = base64.b64decode(source.removeprefix(VECTOR)).decode()
    return re.sub(r"<style>.*?</style>", "", drawing)


def first_picture(notebook: Path) -> str:
    """The first drawing that a notebook shows, as a decoration elsewhere; "" without one."""
    if notebook.is_file():
        for data in html_outputs(nbformat.read(notebook, 4).cells):
            tag = IMAGE.search(data["text/html"])
            source = _attributes(tag).get("src", "") if tag else ""
            if source.startswith(VECTOR):
                return _svg(source).replace("<svg ", '<svg aria-hidden="true" ', 1)
    return ""


def flat_tables(html: str) -> str:
    """The HTML; each table of pandas names its index in its first row, and its cells of words have the class `words`.

    pandas gives the names of the index a row of their own, and writes those of the columns into a corner above it. Here
    each index is named at the top of its own column, and the names of the columns stand over them, in a row above.
    """
    if not TABLE.search(html):
        return html
    soup = BeautifulSoup(html, "html.parser")
    for table in soup.select("table:is(.dataframe, [id^=T_])"):  # a Styler's has only an id
        table["class"] = list(dict.fromkeys([*table.get_attribute_list("class", []), "dataframe"]))
        _name_axes(soup, table)
        for row in table.select("tr"):
            del row["style"]
        for entry in table.select("td"):
            if not NUMBER.fullmatch(entry.get_text(strip=True)):
                entry["class"] = [*entry.get_attribute_list("class", []), "words"]
    return str(soup)


def _name_axes(soup: BeautifulSoup, table: Tag) -> None:
    rows = table.select("thead tr")
    first = table.select_one("tbody tr")
    levels = len(first.find_all("th")) if first else 0
    if not rows or not levels:
        return
    cells = [row.find_all(["th", "td"]) for row in rows]
    index, columns = [""] * levels, cells
    if len(rows) > 1 and not any(cell.get_text(strip=True) for cell in cells[-1][levels:]):
        index, columns = [cell.get_text(strip=True) for cell in cells[-1][:levels]], cells[:-1]
        rows.pop().decompose()
    names = [_corner(row, levels).get_text(strip=True) for row in columns]
    width = sum(int(cell.get("colspan", 1)) for cell in columns[0]) - levels
    for row in columns:
        over = 0
        while over < levels:  # a Styler makes one wide cell of the corner
            over += int(row[0].get("colspan", 1))
            row.pop(0).decompose()
    if any(names):
        head = soup.new_tag("tr")
        above = soup.new_tag(
            "th", attrs={"class": "columns", "colspan": width, "scope": "colgroup"}
        )
        above.string = " · ".join(filter(None, names))
        head.append(above)
        rows[0].insert_before(head)
        rows.insert(0, head)
    for name in reversed(index):
        cell = soup.new_tag("th", attrs={"rowspan": len(rows)} if len(rows) > 1 else {})
        cell.string = name
        rows[0].insert(0, cell)


def _corner(row: list[Tag], levels: int) -> Tag:
    """The last cell above the index, in which pandas names a level of the columns."""
    over = 0
    for cell in row:
        over += int(cell.get("colspan", 1))
        if over >= levels:
            return cell
    return row[0]
