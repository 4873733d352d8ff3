"""The sources of the book beside its chapters: configuration, contents and bibliography, each as text."""

from pathlib import Path

import yaml

from course_utils.studio.manifest import Chapter, Manifest

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
COVER, BIBLIOGRAPHY = "index", "bibliography"
TEXTS = ("moved",)  # pages after the notebooks that stand beside them, as Markdown
BACK = (*TEXTS, BIBLIOGRAPHY)
REFERENCES = "references.bib"
BIBLIOGRAPHY_PAGE = """# Bibliography

```{bibliography}
:all:
```
"""


def names(course: Manifest) -> list[str]:
    """The pages of the book, in order."""
    return [COVER, *(notebook.notebook for notebook in course.notebooks), *BACK]


def contents(course: Manifest) -> str:
    """``_toc.yml``: the parts with their chapters, each with its further page under it; appendices; the back."""
    parts: dict[str, list[dict]] = {}
    for chapter in course.chapters:
        parts.setdefault(chapter.part, []).append(_entry(chapter))
    if course.appendices:
        parts["Appendices"] = [_entry(appendix) for appendix in course.appendices]
    parts["At the end"] = [{"file": name} for name in BACK]
    tables = [
        {"caption": title, "chapters": files} if title else {"chapters": files}
        for title, files in parts.items()
    ]
    return _yaml({"format": "jb-book", "root": COVER, "parts": tables})


def _entry(chapter: Chapter) -> dict:
    page, *further = chapter.pages()
    entry = {"file": page.notebook, "title": f"{page.number} · {page.title}"}
    sections = [{"file": other.notebook, "title": other.title} for other in further]
    return entry | {"sections": sections} if sections else entry


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
                    "attrs_inline",
                    "colon_fence",
                    "deflist",
                    "dollarmath",
                ],
            },
            "latex": {"use_jupyterbook_latex": False},
            "sphinx": {
                "recursive_update": True,
                "config": {
                    "html_copy_source": False,  # a prediction's answer is nowhere before it is given
                    "bibtex_bibfiles": [REFERENCES],
                    "bibtex_default_style": "plain",
                    "extensions": EXTENSIONS,
                    "html_context": {"default_mode": "auto"},
                    "html_show_copyright": False,
                    "html_sidebars": {COVER: []},
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


def text(course: Manifest, name: str) -> str:
    """A page of `TEXTS`; its title alone where a course has none."""
    path = course.chapters[0].ipynb.parent / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else f"# {name.capitalize()}\n"


def references(course: Manifest) -> str:
    """The references of all chapters, in BibTeX."""
    path = course.chapters[0].ipynb.parent / REFERENCES
    return path.read_text(encoding="utf-8") if path.is_file() else ""
