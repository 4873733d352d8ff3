"""The sources of the book beside its chapters: configuration, contents, bibliography, and the pages of `docs`."""

from pathlib import Path
from urllib.parse import urlsplit

import yaml

from course_utils.figures.style import fonts_css, tokens_css
from course_utils.kit.release import release
from course_utils.studio.manifest import Chapter, Manifest

STATIC = Path(__file__).with_name("static")
CONFIGURATION = Path(__file__).with_name("config.yml")
COVER, BIBLIOGRAPHY, MOVED = "index", "bibliography", "moved"
BIBLIOGRAPHY_PAGE = """# Bibliography

```{bibliography}
:all:
```
"""
DOCS = ("teaching", "administrators", "accessibility", "privacy")
"""The files of `docs` in the order of their pages; the pages on one chapter each follow the first."""


def names(course: Manifest) -> list[str]:
    """The pages of the book, in order."""
    stems = [chapter.notebook for chapter in course.notebooks]
    return [COVER, *stems, *texts(course), BIBLIOGRAPHY]


def texts(course: Manifest) -> dict[str, Path]:
    """The pages that are written as Markdown: name → file."""
    docs = course.root / "docs"
    first, *others = DOCS
    files = {first: docs / f"{first}.md"}
    files |= {f"{first}_{c.slug}": docs / "chapters" / f"{c.slug}.md" for c in course.chapters}
    files |= {name: docs / f"{name}.md" for name in others}
    if not course.left_out:  # it tells where all chapters are
        files[MOVED] = course.root / "notebooks" / f"{MOVED}.md"
    return {name: file for name, file in files.items() if file.is_file()}


def beside(course: Manifest) -> dict[str, str]:
    """The files beside the pages, and the bibliography: name → text."""
    references = course.root / "notebooks" / "references.bib"
    files = {f"_static/{file.name}": file for file in sorted(STATIC.iterdir())}
    return {name: file.read_text(encoding="utf-8") for name, file in files.items()} | {
        "_static/course_tokens.css": tokens_css(),
        "_static/course_fonts.css": fonts_css(),
        "_config.yml": configuration(course),
        "_toc.yml": contents(course),
        references.name: references.read_text(encoding="utf-8") if references.is_file() else "",
        f"{BIBLIOGRAPHY}.md": BIBLIOGRAPHY_PAGE,
    }


def contents(course: Manifest) -> str:
    """``_toc.yml``: the parts with their chapters, each with its further page under it; appendices; the back."""
    parts: dict[str, list[dict]] = {}
    for chapter in course.chapters:
        parts.setdefault(chapter.part, []).append(_entry(chapter))
    parts["Appendices"] = [_entry(appendix) for appendix in course.appendices]
    written = list(texts(course))
    entries = [{"file": name} for name in written if name in DOCS]
    if below := [{"file": name} for name in written if name not in (*DOCS, MOVED)]:
        entries[0]["sections"] = below
    parts["For teachers"] = entries
    back = [name for name in written if name == MOVED]
    parts["At the end"] = [{"file": name} for name in (*back, BIBLIOGRAPHY)]
    tables = [
        ({"caption": title} if title else {}) | {"chapters": files}
        for title, files in parts.items()
        if files
    ]
    return _yaml({"format": "jb-book", "root": COVER, "parts": tables})


def _entry(chapter: Chapter) -> dict:
    page, *further = chapter.with_further()
    entry = {"file": page.notebook, "title": " · ".join(filter(None, (page.number, page.title)))}
    sections = [{"file": other.notebook, "title": other.title} for other in further]
    return entry | {"sections": sections} if sections else entry


def configuration(course: Manifest) -> str:
    """``_config.yml``: `config.yml` with what the manifest says.

    Buttons lead to the repository and to Binder if the manifest names a repository.
    """
    public, url = bool(course.repository), course.url and f"{course.url.rstrip('/')}/"
    path = urlsplit(url).path or "/"
    config = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    config |= {
        "title": course.title,
        "author": ", ".join(course.authors),
        "repository": {
            "url": course.repository,
            "path_to_book": "notebooks",
            "branch": course.branch,
        },
    }
    config["launch_buttons"]["binderhub_url"] = "https://mybinder.org" if public else ""
    config["html"] |= {
        "use_repository_button": public,
        "use_issues_button": public,
        "extra_footer": f"{course.license} Release {release()}.",
    }
    sphinx = config["sphinx"]["config"]
    sphinx["html_theme_options"] |= {
        "logo": {"text": course.title, "alt_text": "Home"},
        # Codeberg's pages have GitHub's addresses, and the theme does not know it.
        "repository_provider": "gitlab" if course.hosted_like == "gitlab" else "github",
    }
    body = sphinx["notfound_context"]["body"]
    sphinx["notfound_context"]["body"] = body.format(first=path)
    sphinx |= {
        "html_baseurl": url,
        "notfound_urls_prefix": path,
        "ogp_site_name": course.title,
        "ogp_site_url": url,
    }
    if url:
        sphinx["extensions"].append("sphinx_sitemap")
        excluded = ["404.html", "search.html"]
        sphinx |= {"sitemap_excludes": excluded, "sitemap_url_scheme": "{link}"}
    return _yaml(config)


def _yaml(value: dict) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
