"""The sources of the book beside its chapters: configuration, contents and bibliography, each as text."""

import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from course_utils.kit.release import release
from course_utils.studio.choice import fit_text
from course_utils.studio.links import LINK
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
    # What a published book has: a file for GitHub Pages, a page for a missing address, heads for shared links.
    "sphinx.ext.githubpages",
    "notfound.extension",
    "sphinxext.opengraph",
]
SITEMAP = {"sitemap_excludes": ["404.html", "search.html"], "sitemap_url_scheme": "{link}"}
"""For `sphinx_sitemap`, which warns where the book has no address."""
NOT_FOUND = """<h1>No such page</h1>
<p>It may have moved, or be part of another edition. <a href="{first}">To the first page</a></p>"""
COVER, BIBLIOGRAPHY, MOVED = "index", "bibliography", "moved"
DOCS = ("teaching", "administrators", "accessibility", "privacy")
"""The pages for teachers, in their order: those of `docs` that are there. After the first come those on a chapter."""
REFERENCES = "references.bib"
BIBLIOGRAPHY_PAGE = """# Bibliography

```{bibliography}
:all:
```
"""


def names(course: Manifest) -> list[str]:
    """The pages of the book, in order."""
    stems = [notebook.notebook for notebook in course.notebooks]
    return [COVER, *stems, *texts(course), BIBLIOGRAPHY]


def texts(course: Manifest) -> dict[str, Path]:
    """The pages that are written as Markdown: name → file."""
    docs = course.root / "docs"
    found = {name: docs / f"{name}.md" for name in DOCS}
    about = {f"{DOCS[0]}_{c.slug}": docs / "chapters" / f"{c.slug}.md" for c in course.chapters}
    listed = {DOCS[0]: found.pop(DOCS[0])} | about | found
    if not course.left_out:  # it tells where all chapters are
        listed[MOVED] = course.root / "notebooks" / f"{MOVED}.md"
    return {name: file for name, file in listed.items() if file.is_file()}


def contents(course: Manifest) -> str:
    """``_toc.yml``: the parts with their chapters, each with its further page under it; appendices; the back."""
    parts: dict[str, list[dict]] = {}
    for chapter in course.chapters:
        parts.setdefault(chapter.part, []).append(_entry(chapter))
    if course.appendices:
        parts["Appendices"] = [_entry(appendix) for appendix in course.appendices]
    if entries := _for_teachers(course):
        parts["For teachers"] = entries
    back = [name for name in texts(course) if name == MOVED]
    parts["At the end"] = [{"file": name} for name in (*back, BIBLIOGRAPHY)]
    tables = [
        {"caption": title, "chapters": files} if title else {"chapters": files}
        for title, files in parts.items()
    ]
    return _yaml({"format": "jb-book", "root": COVER, "parts": tables})


def _for_teachers(course: Manifest) -> list[dict]:
    """The pages of `docs`; those on a chapter stand under the first."""
    first, *rest = [name for name in texts(course) if name != MOVED] or [""]
    below = [name for name in rest if name not in DOCS]
    entry = {"file": first} | ({"sections": [{"file": name} for name in below]} if below else {})
    return [entry, *({"file": name} for name in rest if name in DOCS)] if first else []


def _entry(chapter: Chapter) -> dict:
    page, *further = chapter.pages()
    entry = {"file": page.notebook, "title": " · ".join(filter(None, (page.number, page.title)))}
    sections = [{"file": other.notebook, "title": other.title} for other in further]
    return entry | {"sections": sections} if sections else entry


def configuration(course: Manifest) -> str:
    """``_config.yml``: nothing is executed, fetched or sent by Jupyter Book itself.

    Buttons that lead to the repository and to Binder appear when the manifest names a repository.
    """
    there, url = bool(course.repository), course.url and f"{course.url.rstrip('/')}/"
    path = urlsplit(url).path or "/"
    return _yaml(
        {
            "title": course.title,
            "author": ", ".join(course.authors),
            "copyright": "",
            "logo": "_static/logo.svg",
            "only_build_toc_files": True,
            "execute": {"execute_notebooks": "off"},
            "repository": {
                "url": course.repository,
                "path_to_book": "notebooks",
                "branch": course.branch,
            },
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
                "extra_footer": f"{course.license} Release {release()}.",
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
                    "extensions": [*EXTENSIONS, *["sphinx_sitemap"] * bool(url)],
                    "html_baseurl": url,
                    "html_context": {"default_mode": "auto"},
                    "html_show_copyright": False,
                    "html_use_index": False,
                    "html_sidebars": {COVER: []},
                    "html_theme_options": {
                        "logo": {"text": course.title, "alt_text": "Home"},
                        # Codeberg's pages have GitHub's addresses, and the theme does not know it.
                        "repository_provider": "gitlab"
                        if course.hosted_like == "gitlab"
                        else "github",
                        "article_header_start": ["toggle-primary-sidebar", "navbar-logo"],
                        "navbar_persistent": [],  # the head of the page has the search already
                        "use_download_button": False,
                        "use_fullscreen_button": False,
                    },
                    "language": "en",
                    "myst_heading_anchors": 3,
                    # Explorers and quizzes carry HTML that runs without a kernel; it goes before a live widget.
                    "nb_mime_priority_overrides": [["html", "text/html", 0]],
                    "nb_ipywidgets_js": {},
                    "nb_render_markdown_format": "gfm",
                    "notfound_context": {
                        "title": "No such page",
                        "body": NOT_FOUND.format(first=path),
                    },
                    "notfound_urls_prefix": path,
                    "ogp_site_name": course.title,
                    "ogp_site_url": url,
                    "ogp_social_cards": {
                        "enable": False
                    },  # they would be drawn, without an alt text
                    **(SITEMAP if url else {}),
                },
            },
        }
    )


def _yaml(value: dict) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def text(course: Manifest, name: str) -> str:
    """A page of `texts`, its links written as a notebook's: from the folder of the notebooks."""
    there = texts(course)
    file = there[name]
    shown = {path.relative_to(course.root).as_posix(): stem for stem, path in there.items()}

    def one(match: re.Match) -> str:
        target, hash_, place = match["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        folder = file.parent.relative_to(course.root).as_posix()
        path = posixpath.normpath(posixpath.join(folder, target))
        to = f"{shown[path]}.md" if path in shown else posixpath.relpath(path, "notebooks")
        return f"[{match['text']}]({to}{hash_}{place})"

    return fit_text(LINK.sub(one, file.read_text(encoding="utf-8")), course)


def references(course: Manifest) -> str:
    """The references of all chapters, in BibTeX."""
    path = course.root / "notebooks" / REFERENCES
    return path.read_text(encoding="utf-8") if path.is_file() else ""
