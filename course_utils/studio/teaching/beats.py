"""From a notebook to slides: what each shows, and what is said with it.

Cells tagged `slide` begin slides, if there are any: each shows all up to the next. Without such tags a slide is made
of what is to be seen: each picture, table, formula and short piece of code under its section's title with the sentence
that leads to it, and the sentence after it at a click; a question, its answer at a click; an exercise. All prose is in
the notes.
"""

import html
import re
from dataclasses import dataclass, field

from bs4 import BeautifulSoup
from nbformat import NotebookNode

from course_utils.kit.language import meant, pattern, word
from course_utils.studio.book.calm import cut_at_headings, level, tags
from course_utils.studio.page import EFFORT, EXERCISE, UNCOUNTED, is_own
from course_utils.studio.teaching.forms import Asked, questions
from course_utils.studio.teaching.markup import code, markdown

LINES = 22  # of code on a slide
ROWS = 12  # of a table on a slide
QUIET = {"guard", "check", "solution"}


@dataclass
class Slide:
    """A slide.

    Attributes:
        title: in Markdown.
        body: HTML.
        notes: what is said, in Markdown.
        kind: a class of its look: "text", "picture", "toy", "code", "question" or "title".
    """

    title: str
    body: str = ""
    notes: list[str] = field(default_factory=list)
    kind: str = "text"


def slides(notebook: NotebookNode) -> list[Slide]:
    """The slides of an executed notebook, its title first."""
    cells = cut_at_headings(notebook).cells
    if any("slide" in tags(cell) for cell in notebook.cells):
        return _tagged(notebook.cells)
    made = _Made()
    for cell in cells:
        made.add(cell)
    made.close()
    return made.slides


def _tagged(cells: list[NotebookNode]) -> list[Slide]:
    """A slide from each tagged cell to the next; a heading at its start is the title."""
    found: list[Slide] = []
    for cell in cells:
        if "slide" in tags(cell):
            text = cell.source if level(cell) else ""
            title, _, rest = text.partition("\n")
            found.append(Slide(title.lstrip("# ")))
            if text:
                found[-1].body = markdown(rest)
                continue
        if not found:
            continue
        found[-1].body += _whole(cell)
        found[-1].kind = "picture" if "<img" in found[-1].body else found[-1].kind
    return found


def _whole(cell: NotebookNode) -> str:
    if cell.cell_type == "markdown":
        return markdown(cell.source)
    if tags(cell) and set(tags(cell)) & QUIET:
        return ""
    seen = not (is_own(cell.source) or "hide-input" in tags(cell))
    parts = [code(cell.source)] if seen else []
    for shown in map(_html, cell.get("outputs", [])):
        asked = list(questions(shown))
        parts += map(question, asked) if asked else [shown]
    return "".join(parts)


class _Made:
    """The slides so far, and what has been read since the last one."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.title = ""
        self.task = ""  # the title of the exercise that goes on
        self.said: list[str] = []  # paragraphs of this section that no slide shows yet
        self.notes: list[str] = []
        self.fresh = False  # a section has begun, and no slide shows it
        self.after: Slide | None = None  # a picture that waits for the sentence behind it

    def put(self, body: str, kind: str, *, title: str = "", lead: bool = True) -> Slide:
        """One slide more, with the sentence before it."""
        sentence = ""
        if lead and (leading := _leading(self.said)):
            sentence = f'<p class="lead">{markdown(leading, inline=True)}</p>'
        slide = Slide(title or self.task or self.title, sentence + body, self.notes, kind)
        self.slides.append(slide)
        self.said, self.notes, self.fresh, self.after = [], [], False, None
        return slide

    def close(self) -> None:
        """End a section: one of text alone is a slide, too."""
        if self.fresh and self.said:
            self.put("", "text")
        elif self.slides:
            self.slides[-1].notes += self.notes
        self.said, self.notes, self.after = [], [], None

    def add(self, cell: NotebookNode) -> None:
        """Read a cell."""
        if cell.cell_type == "code":
            self.code(cell)
            return
        self.task = ""
        deep, (head, _, text) = level(cell), cell.source.partition("\n")
        title = head.lstrip("# ")
        if deep == 1:
            self.first(title, text)
            return
        if deep == 2:
            self.close()
            self.title, self.fresh = title, not meant(title, UNCOUNTED)
            if meant(title, UNCOUNTED):
                points = [part for part in _paragraphs(text) if part.startswith("- ")]
                if points and not re.match(pattern("References"), title):
                    self.put(markdown("\n".join(points)), "points")
                return
        elif deep == 3 and EXERCISE.match(title):
            self.exercise(title, text)
            return
        self.read(text if deep else cell.source)

    def first(self, title: str, text: str) -> None:
        """The title, and the question of the chapter below it."""
        bold = re.search(r"\*\*([^*]+\?)\*\*", text)
        asks = f'<p class="asks">{markdown(bold[1], inline=True)}</p>' if bold else ""
        self.title = title
        self.put(asks, "title", lead=False)
        self.slides[0].notes = [text]

    def read(self, text: str) -> None:
        """Prose: formulas and tables are seen, a sentence may go with what is seen next, all is said."""
        for part in _paragraphs(text):
            if part.startswith("$$"):
                self.put(markdown(part), "formula")
            elif part.startswith("|"):
                self.put(markdown(part), "table")
            elif part.startswith(("- ", "1. ", ">", "```", "(")):
                self.notes.append(part)
            else:
                sentences = part.split("\n")
                if self.after and not sentences[0].endswith(":"):
                    shown = markdown(sentences.pop(0), inline=True)
                    self.after.body += f'<p class="after fragment">{shown}</p>'
                self.after = None
                self.said.append("\n".join(sentences))
                self.notes.append(part)

    def exercise(self, title: str, text: str) -> None:
        """An exercise's task, with its minutes."""
        self.notes.append(text)
        first, _, rest = text.strip().partition("\n")
        effort = EFFORT.match(first.strip())
        label = f'<p class="effort">{html.escape(first.strip("* "))}</p>' if effort else ""
        self.put(label + markdown(rest if effort else text), "text", title=title, lead=False)
        self.task = title

    def code(self, cell: NotebookNode) -> None:
        """Questions, an exercise's stub, or what else a code cell shows."""
        if "solution" in tags(cell):
            self.task = ""
        if set(tags(cell)) & QUIET or not self.slides:
            return
        if "exercise" in tags(cell):
            self.slides[-1].body += code(cell.source)
            return
        outputs = [_html(output) for output in cell.get("outputs", [])]
        if asked := [one for shown in outputs for one in questions(shown)]:
            recalled = word("Recall") if "cu.recall(" in cell.source else ""
            for one in asked:
                self.put(question(one), "question", title=recalled, lead=False)
        else:
            self.show(cell, outputs)

    def show(self, cell: NotebookNode, outputs: list[str]) -> None:
        """A cell's code if a reader sees it and it is short, and what comes of it."""
        seen = not (is_own(cell.source) or "hide-input" in tags(cell))
        length = len(cell.source.strip().splitlines())
        imports = cell.source.lstrip().startswith(("import ", "from "))
        small = [one for one in outputs if _height(one)]
        if length + sum(map(_height, small)) > LINES:
            small = []
        if seen and length <= LINES and not imports:
            self.after = self.put(code(cell.source) + "".join(map(_short, small)), "code")
        else:
            small = []
        for shown in (one for one in outputs if one not in small):
            if "<img" in shown or "<svg" in shown or 'class="cu-live"' in shown:
                kind = "toy" if 'class="cu-live"' in shown else "picture"
                self.after = self.put(f'<div class="seen">{shown}</div>', kind)
            elif _height(shown):
                self.after = self.put(_short(shown), "table")


def _leading(said: list[str]) -> str:
    """Of the paragraphs since the last slide, the sentence that leads on: a question, or one that ends in a colon."""
    sentences = [one for part in said for one in part.split("\n") if one]
    leading = [one for one in sentences if one.endswith((":", "?"))] or said[-1:] or [""]
    sentence = leading[-1].split("\n")[0]
    return "" if sentence[:1].islower() else sentence  # the rest of one that a formula has broken


def question(asked: Asked) -> str:
    """A question with its answers; the right ones and the reasons at a click."""
    rows = []
    for text, right, why in asked.answers:
        mark = '<b class="mark fragment" data-fragment-index="1">✓</b>' if right else ""
        reason = f'<small class="fragment" data-fragment-index="1">{why}</small>' if why else ""
        rows.append(f"<li>{mark}{text}{reason}</li>")
    if len(rows) == 1:
        rows = [f'<li class="fragment" data-fragment-index="1">{asked.answers[0][0]}</li>']
    why = f'<p class="why fragment" data-fragment-index="1">{asked.why}</p>' if asked.why else ""
    return f'<p class="lead">{asked.text}</p><ul class="answers">{"".join(rows)}</ul>{why}'


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, links to pages as their words alone; bullets with what belongs to them."""
    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
    return [part.strip("\n") for part in re.split(r"\n{2,}", text) if part.strip()]


def _html(output: NotebookNode) -> str:
    """An output as HTML: pictures keep their alt texts."""
    data = output.get("data", {})
    if shown := data.get("text/html", ""):
        return shown
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            alt = html.escape(output.metadata.get(kind, {}).get("alt", ""))
            return f'<img alt="{alt}" src="data:{kind};base64,{data[kind]}">'
    text = output.get("text", "")
    return f"<pre>{html.escape(text.strip())}</pre>" if text.strip() else ""


def _height(shown: str) -> int:
    """About how many lines of code a table or a printed text is as high as; 0 for anything else."""
    if "<table" in shown and "cu-live" not in shown:
        return 2 * min(ROWS, shown.count("<tr"))
    return shown.count("\n") + 2 if shown.startswith("<pre") else 0


def _short(shown: str) -> str:
    """A table of at most ROWS rows, without the style that pandas gives it."""
    if "<table" not in shown:
        return shown
    page = BeautifulSoup(shown, "html.parser")
    for style in page.select("style"):
        style.decompose()
    rows = page.select("tbody tr")
    for row in rows[ROWS:]:
        row.decompose()
    left = len(rows) - ROWS
    return str(page) + (f"<p>… ({left} rows more in the notebook)</p>" if left > 0 else "")
