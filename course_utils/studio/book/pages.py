"""The sources of the book beside its chapters: configuration, contents, cover and bibliography, each as text."""

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
    "sphinxcontrib.bibtex",
]
COVER, CLOSING, TERMS, BIBLIOGRAPHY = "index", "closing", "terms", "bibliography"
BACK = (CLOSING, TERMS, BIBLIOGRAPHY)  # the pages after the chapters
REFERENCES = "references.bib"
BIBLIOGRAPHY_PAGE = """# Bibliography

```{bibliography}
:all:
```
"""


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
                    "bibtex_bibfiles": [REFERENCES],
                    "bibtex_default_style": "plain",
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


def references(course: Manifest) -> str:
    """The references of all chapters, in BibTeX."""
    path = course.chapters[0].ipynb.parent / REFERENCES
    return path.read_text(encoding="utf-8") if path.is_file() else ""
