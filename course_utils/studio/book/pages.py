"""The sources of the book beside its chapters: configuration, contents, cover and bibliography, each as text."""

import re
from pathlib import Path

import yaml

from course_utils.studio import manifest
from course_utils.studio.manifest import Manifest

STATIC = Path(__file__).with_name("static")
EXTENSIONS = [  # Jupyter Book's own, less those that can talk to other hosts (thebe, intersphinx)
    "sphinx_comments",  # without it Jupyter Book warns; it shows none
    "sphinx_copybutton",
    "myst_nb",
    "jupyter_book",
    "sphinx_external_toc",
    "sphinx_design",
    "sphinx_book_theme",
    "sphinx-mathjax-offline",
]
COVER, CLOSING, TERMS, TIMES, BIBLIOGRAPHY = "index", "closing", "terms", "times", "bibliography"

BACK = (CLOSING, TERMS, TIMES, BIBLIOGRAPHY)  # the pages after the chapters


def names(course: Manifest) -> list[str]:
    """The pages of the book, in order."""
    return [COVER, *(chapter.notebook for chapter in course.chapters), *BACK]


def contents(course: Manifest) -> str:
    """``_toc.yml``."""
    chapters = [
        {"file": chapter.notebook, "title": f"{chapter.number} · {chapter.title}"}
        for chapter in course.chapters
    ]
    back = [{"file": name} for name in BACK]
    return _yaml({"format": "jb-book", "root": COVER, "chapters": [*chapters, *back]})


def configuration(course: Manifest) -> str:
    """``_config.yml``: nothing is executed, fetched or sent by Jupyter Book itself.

    Buttons that lead to the repository and to Binder appear when the manifest names a repository.
    """
    there = bool(course.repository)
    return _yaml(
        {
            "title": course.title,
            "author": ", ".join(course.authors),
            "copyright": "",
            "logo": "_static/logo.svg",
            "only_build_toc_files": True,
            "execute": {"execute_notebooks": "off"},
            "repository": {"url": course.repository, "path_to_book": "notebooks", "branch": "main"},
            "launch_buttons": {
                "notebook_interface": "jupyterlab",
                "binderhub_url": "https://mybinder.org" if there else "",
                "thebe": False,
            },
            "html": {
                "favicon": "_static/logo.svg",
                "home_page_in_navbar": False,  # the title above the list leads there
                "use_repository_button": there,
                "use_issues_button": there,
                "extra_footer": course.license,
            },
            "parse": {
                "myst_enable_extensions": [
                    "amsmath",
                    "attrs_block",
                    "colon_fence",
                    "deflist",
                    "dollarmath",
                ],
            },
            "latex": {"use_jupyterbook_latex": False},
            "sphinx": {
                "recursive_update": True,
                "config": {
                    "extensions": EXTENSIONS,
                    "html_context": {"default_mode": "auto"},
                    "html_show_copyright": False,
                    "html_theme_options": {
                        "logo": {"text": course.title, "alt_text": "Home"},
                        "navbar_persistent": [],  # the sidebar has the search already
                        "show_toc_level": 2,
                    },
                    "language": "en",
                    "myst_heading_anchors": 3,
                    # Explorers and quizzes carry HTML that runs without a kernel; it goes before a live widget.
                    "nb_mime_priority_overrides": [["html", "text/html", 0]],
                    "nb_ipywidgets_js": {},
                    "nb_render_markdown_format": "gfm",
                },
            },
        }
    )


def _yaml(value: dict) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def cover(course: Manifest) -> str:
    """The first page: what the course is, its chapters, and how to run it."""
    table = manifest.chapter_table(course).replace("](notebooks/", "](")
    hours = sum(chapter.minutes for chapter in course.chapters) / 60
    clone = f"git clone {course.repository}\n" if course.repository else ""
    return f"""# {course.title}

A course that you step through. Each chapter builds its idea from a few lines of code, proves every
claim with a number that a cell computes, and lets you move the numbers yourself: the sliders on
these pages work as they stand, without Python and without a network.

## Chapters

{table}

About {hours:.1f} hours in all. Each chapter ends with exercises, a quiz in which every answer explains
itself, and references, which the [bibliography]({BIBLIOGRAPHY}.md) gathers.

## Run it yourself

In the book you read and explore; in JupyterLab you change the code and solve the exercises, and are
told at once whether your solution is right. You need Python 3.11 or newer and the folder of the course:

```bash
{clone}make lab     # an environment is made, and JupyterLab opens on the first chapter
make book    # makes these pages
```
"""


def closing(course: Manifest) -> str:
    """The last page of the text, which stands beside the chapters as closing.md."""
    path = course.chapters[0].ipynb.parent / "closing.md"
    return path.read_text(encoding="utf-8") if path.is_file() else "# Closing\n"


def times(course: Manifest, measured: dict[str, dict]) -> str:
    """How long each chapter took when this book executed it, and its peak memory.

    Args:
        course: the manifest.
        measured: by notebook, `seconds`, `peak_mb` and `cores`.
    """
    lines = [
        "# Times",
        "",
        "How long the cells of each chapter took when this book was made, from the start of a fresh kernel on, "
        "and the most memory that the kernel held. Explorers draw all their frames for these pages, which they do "
        "not in JupyterLab.",
        "",
        "| | Chapter | Seconds | Memory |",
        "|---|---|---:|---:|",
    ]
    found = [measured.get(chapter.notebook) for chapter in course.chapters]
    for chapter, one in zip(course.chapters, found, strict=True):
        link = f"[{chapter.title}]({chapter.notebook}.ipynb)"
        seconds = f"{one['seconds']:.0f}" if one else "–"
        memory = f"{one['peak_mb'] / 1000:.1f} GB" if one and one["peak_mb"] else "–"
        lines.append(f"| {chapter.number} | {link} | {seconds} | {memory} |")
    known = [one for one in found if one]
    lines.append(f"| | All | {sum(one['seconds'] for one in known):.0f} | |")
    if known:
        lines += ["", f"Cores: {known[-1]['cores']}."]
    return "\n".join([*lines, ""])


def bibliography(course: Manifest, bib: Path) -> str:
    """All works of the references file by author, each with the chapters that cite it (by the link to its ``url``)."""
    texts = {chapter: chapter.source.read_text(encoding="utf-8") for chapter in course.chapters}
    lines = []
    for reference, url in references(bib):
        cited = [
            f"[{chapter.number}]({chapter.notebook}.ipynb)"
            for chapter, text in texts.items()
            if f"({url})" in text
        ]
        where = f" Cited in {', '.join(cited)}." if cited else ""
        lines.append(f"- {reference}{where}")
    return "\n".join(["# Bibliography", "", *(lines or ["No chapter cites a work yet."]), ""])


def references(bib: Path) -> list[tuple[str, str]]:
    """Each entry of a BibTeX file as a line of Markdown that links its title, with its ``url``; by author and year."""
    from pybtex.database import parse_file

    entries = parse_file(str(bib), bib_format="bibtex").entries.values() if bib.is_file() else []
    order = sorted(
        entries, key=lambda entry: (_authors(entry).casefold(), entry.fields.get("year", ""))
    )
    return [(_reference(entry), entry.fields.get("url", "")) for entry in order]


def _reference(entry) -> str:
    fields = {key: _plain(value) for key, value in entry.fields.items()}
    title = f"[{fields['title']}]({entry.fields['url']})" if "url" in fields else fields["title"]
    place = next(
        (
            fields[key]
            for key in ("journal", "booktitle", "publisher", "howpublished")
            if key in fields
        ),
        "",
    )
    numbers = fields.get("volume", "") + (f"({fields['number']})" if "number" in fields else "")
    pages = fields.get("pages", "").replace("--", "–")
    details = ", ".join(filter(None, [f"*{place}*" if place else "", numbers, pages]))
    year = f"({fields['year']})" if "year" in fields else ""
    head = " ".join(filter(None, [_authors(entry), year]))
    return " ".join(f"{part}." for part in (head, title, details) if part)


def _authors(entry) -> str:
    people = entry.persons.get("author") or entry.persons.get("editor", [])
    names = [
        " ".join(map(_plain, [*person.prelast_names, *person.last_names])) + _initials(person)
        for person in people
    ]
    if len(names) > 6:
        return ", ".join(names[:5]) + " et al."
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _initials(person) -> str:
    given = [_plain(name) for name in [*person.first_names, *person.middle_names]]
    return "".join([", ", " ".join(f"{name[0]}." for name in given)]) if given else ""


def _plain(text: str) -> str:
    """BibTeX text without braces and accents' commands."""
    from pybtex.richtext import Text

    return re.sub(r"\s+", " ", str(Text.from_latex(text)))
