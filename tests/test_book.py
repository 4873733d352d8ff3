"""The book from the inside: transforms, pages, the cache, and what the checks refuse."""

import copy
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.runtime import ROOT
from course_utils.studio import manifest, notebooks
from course_utils.studio.book import build as builder
from course_utils.studio.book import execution, pages, transforms
from course_utils.studio.book.__main__ import listen, main
from course_utils.studio.book.build import BookError, build
from course_utils.studio.book.check import EXPLORER_BYTES, check, page_problems
from course_utils.studio.book.execution import cache_folder, code_only, digest, executed

# Transforms -----------------------------------------------------------------------------------------------------------

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def picture(alt: str | None, **data: str):
    metadata = {} if alt is None else {"image/png": {"alt": alt}}
    return new_output("execute_result", data={"image/png": PNG} | data, metadata=metadata)


def code(source: str = "1", *outputs, tags: tuple[str, ...] = ()):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})


def one(cell, transform=transforms.carry_alt_texts):
    return transform(new_notebook(cells=[cell])).cells[0]


def prose(text: str, transform) -> str:
    return one(new_markdown_cell(text), transform).source


def test_solutions_are_folded_with_their_outputs():
    cell = one(code(tags=("solution",)), transforms.collapse_solutions)
    assert cell.metadata["tags"] == ["solution", "hide-cell"]
    assert cell.metadata["mystnb"]["code_prompt_show"] == "Show solution"
    assert one(code(tags=("exercise",)), transforms.collapse_solutions).metadata == {
        "tags": ["exercise"]
    }


def test_long_plotting_code_is_folded_and_its_picture_is_not():
    cell = one(code(tags=("hide-input",)), transforms.collapse_inputs)
    assert cell.metadata["tags"] == ["hide-input"]
    assert cell.metadata["mystnb"]["code_prompt_show"] == "Show code"


def test_alt_texts_move_from_the_output_to_the_cell_in_one_line():
    cell = one(code("fig", picture('Weights: "the"\n  sees <itself> & more')))
    assert cell.metadata["mystnb"]["image"]["alt"] == 'Weights: "the" sees <itself> & more'


def test_an_explorer_brings_its_own_alt_texts():
    assert "mystnb" not in one(code("explorer", picture(None, **{"text/html": "<div>"}))).metadata


@pytest.mark.parametrize("alt", [None, "", "  "])
def test_a_picture_without_alt_text_is_an_error_that_names_the_cell(alt):
    with pytest.raises(transforms.PictureError, match=r"cell 0 .*cu\.subplots\(alt="):
        one(code("fig", picture(alt)))


def test_two_pictures_in_a_cell_are_an_error():
    with pytest.raises(transforms.PictureError, match="cell 0 shows 2 pictures"):
        one(code("fig", picture("one"), picture("two")))


def test_the_effort_of_an_exercise_gets_a_class():
    task = "### Exercise 2.3 · Widths\n*10 minutes · ★★*\n\nShow that…"
    assert "\n{.effort}\n*10 minutes · ★★*\n\nShow" in prose(task, transforms.set_effort)
    assert prose("In *10 minutes* you…", transforms.set_effort) == "In *10 minutes* you…"


@pytest.mark.parametrize(
    ("text", "without", "with_repository"),
    [
        ("[two](02_b.ipynb#widths)", None, None),
        ("[paper](https://arxiv.org/abs/1706.03762)", None, None),
        ("[above](#widths)", None, None),
        ("`w[i](x)` stays", None, None),
        ("$f[a](b)$ stays", None, None),
        (
            "[code](../course_utils/pooling.py)",
            "code",
            "[code](R/blob/main/course_utils/pooling.py)",
        ),
        ("[later](09_c.ipynb)", "later", "[later](R/blob/main/notebooks/09_c.ipynb)"),
    ],
)
def test_links_to_what_is_no_page_lead_to_the_repository_or_nowhere(text, without, with_repository):
    for repository, wanted in (("", without), ("R", with_repository)):
        found = prose(text, lambda nb: transforms.keep_links_inside(nb, {"02_b.ipynb"}, repository))  # noqa: B023
        assert found == (wanted or text)


def test_transforms_leave_the_notebook_they_are_given_alone():
    given = new_notebook(
        cells=[
            new_markdown_cell("*5 minutes · ★*\n\n[x](../data/x.csv)"),
            code("fig", picture("alt"), tags=("solution", "hide-input")),
        ]
    )
    before = copy.deepcopy(given)
    changed = transforms.for_the_book(given, set(), "")
    assert given == before != changed
    nbformat.validate(changed)


# Pages ----------------------------------------------------------------------------------------------------------------

BIB = r"""
@inproceedings{b2017, author = {Vaswani, Ashish and Kaiser, {\L}ukasz}, title = {Attention is all you need},
  booktitle = {NeurIPS}, year = {2017}, url = {https://example.org/b}}
@article{a1964, author = {Nadaraya, Elizbar A.}, title = {On estimating regression}, journal = {Theory of Probability},
  volume = {9}, number = {1}, pages = {141--142}, year = {1964}, url = {https://example.org/a}}
"""

SOURCE = """\
# %% [markdown]
# # 1. One
# By [Attention](https://example.org/b).
# %%
1 + 1
"""


@pytest.fixture
def small(tmp_path) -> Path:
    """The manifest of a course of one small chapter."""
    folder = tmp_path / "notebooks"
    (folder / "source").mkdir(parents=True)
    (folder / "references.bib").write_text(BIB)
    (folder / "source" / "01_one.py").write_text(SOURCE)
    path = tmp_path / "book.toml"
    path.write_text(
        '[course]\ntitle = "Small"\nauthors = ["A", "B"]\nlicense = "MIT"\nrepository = ""\n'
        '[[chapter]]\nnotebook = "01_one"\ntitle = "One"\nminutes = 30\n'
    )
    return path


def load(path: Path, repository: str = "") -> manifest.Manifest:
    path.write_text(path.read_text().replace('repository = ""', f'repository = "{repository}"'))
    return manifest.load(path, files=False)


def test_the_contents_are_the_cover_the_chapters_in_order_and_the_back_pages():
    course = manifest.load(files=False)
    toc = yaml.safe_load(pages.contents(course))
    assert toc["root"] == "index"
    assert [entry["file"] for entry in toc["chapters"]] == [
        *(chapter.notebook for chapter in course.chapters),
        *("closing", "terms", "times", "bibliography"),
    ]


def test_launch_buttons_appear_when_the_repository_is_known(small):
    without = yaml.safe_load(pages.configuration(load(small)))
    assert without["launch_buttons"]["binderhub_url"] == without["repository"]["url"] == ""
    assert not without["html"]["use_repository_button"]
    course = load(small, "https://github.com/someone/course")
    there = yaml.safe_load(pages.configuration(course))
    assert there["launch_buttons"]["binderhub_url"] == "https://mybinder.org"
    assert there["html"]["use_repository_button"]
    assert there["repository"]["path_to_book"] == "notebooks"
    assert "git clone https://github.com/someone/course" in pages.cover(course)


def test_nothing_is_executed_or_fetched_by_jupyter_book_itself(small):
    settings = yaml.safe_load(pages.configuration(load(small)))
    assert settings["execute"]["execute_notebooks"] == "off"
    assert settings["launch_buttons"]["thebe"] is False
    assert settings["sphinx"]["config"]["nb_ipywidgets_js"] == {}
    assert "sphinx-mathjax-offline" in settings["sphinx"]["config"]["extensions"]
    assert not {"sphinx_thebe", "sphinx.ext.intersphinx"} & set(
        settings["sphinx"]["config"]["extensions"]
    )


def test_the_cover_has_a_table_of_chapters_that_links_the_pages(small):
    assert "[One](01_one.ipynb) | 30 |" in pages.cover(load(small))


def test_the_bibliography_is_sorted_and_says_which_chapters_cite_a_work(small):
    course = load(small)
    lines = pages.bibliography(course, small.parent / "notebooks" / "references.bib").splitlines()
    assert lines[2:] == [
        "- Nadaraya, E. A. (1964). [On estimating regression](https://example.org/a)."
        " *Theory of Probability*, 9(1), 141–142.",
        "- Vaswani, A. and Kaiser, Ł. (2017). [Attention is all you need](https://example.org/b). *NeurIPS*."
        " Cited in [01](01_one.ipynb).",
    ]


# References of the course ---------------------------------------------------------------------------------------------


def cited() -> set[str]:
    """The links of all References cells."""
    cells = [
        cell.source
        for chapter in manifest.load(files=False).chapters
        if chapter.source.is_file()
        for cell in notebooks.read_source(chapter.source).cells
        if cell.cell_type == "markdown" and cell.source.startswith("## References")
    ]
    return {match["target"] for cell in cells for match in transforms.LINK.finditer(cell)}


def test_every_cited_work_is_in_the_references_file_and_every_entry_is_cited():
    urls = [url for _, url in pages.references(ROOT / "notebooks" / "references.bib")]
    assert len(urls) == len(set(urls)), "an entry stands twice"
    assert cited() == set(urls)


# Execution ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(monkeypatch) -> list[str]:
    """Stands in for the kernel: gives each cell a picture-less output, and counts the notebooks it runs."""
    runs = []
    monkeypatch.setattr(execution, "digest", lambda root=None: "state")  # whoever edits meanwhile

    def execute(notebook, *, cwd, env, progress=None):
        assert env == {"COURSE_BOOK": "1"}
        runs.append(str(cwd))
        for count, cell in enumerate(notebook.cells, start=1):
            assert cell.cell_type == "code"
            assert not cell.outputs
            cell.execution_count = count
            cell.outputs = [
                new_output("execute_result", data={"text/plain": f"{count}"}, execution_count=count)
            ]
        return notebook

    monkeypatch.setattr(notebooks, "execute", execute)
    return runs


def test_prose_tags_and_order_of_markdown_execute_nothing_but_code_and_quiz_do(small, kernel):
    chapter, folder = load(small).chapters[0], small.parent / "cache"
    first, cached = executed(chapter, folder)
    assert (len(kernel), cached) == (1, False)
    assert first.cells[1].outputs[0].data["text/plain"] == "1"

    chapter.source.write_text(
        SOURCE.replace("By [", "Written by [").replace("# %%\n", '# %% tags=["hide-input"]\n')
    )
    again, cached = executed(chapter, folder)
    assert (len(kernel), cached) == (1, True)
    assert "Written by" in again.cells[0].source
    assert again.cells[1].metadata["tags"] == ["hide-input"]
    assert again.cells[1].outputs == first.cells[1].outputs

    chapter.source.write_text(SOURCE.replace("1 + 1", "1 + 2"))
    assert not executed(chapter, folder)[1]
    (chapter.root / "course_utils/lessons" / chapter.slug).mkdir(parents=True)
    (chapter.root / "course_utils/lessons" / chapter.slug / "quiz.toml").write_text("[[question]]")
    assert not executed(chapter, folder)[1]
    assert executed(chapter, folder)[1]
    assert len(kernel) == 3


def test_what_is_looked_up_is_code_without_tags_outputs_and_counts():
    notebook = new_notebook(cells=[new_markdown_cell("x"), code("1", picture("a"), tags=("gpu",))])
    notebook.metadata = nbformat.from_dict(notebooks.METADATA)
    bare = code_only(notebook)
    assert [(cell.source, cell.outputs, cell.metadata) for cell in bare.cells] == [("1", [], {})]
    assert code_only(notebook, b"quiz").metadata != bare.metadata
    assert notebook.metadata == notebooks.METADATA


@pytest.mark.parametrize(
    "name", ["course_utils/a.py", "course_utils/new.py", "data/d.csv", "constraints.txt"]
)
def test_the_cache_is_another_when_library_data_or_versions_change(tmp_path, name):
    for folder in ("course_utils/__pycache__", "data", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("course_utils/a.py", "data/d.csv", "constraints.txt", "notebooks/n.py"):
        (tmp_path / file).write_text("1")
    before = digest(tmp_path)
    (tmp_path / "notebooks" / "n.py").write_text("2")
    (tmp_path / "course_utils" / "__pycache__" / "a.pyc").write_text("2")
    assert digest(tmp_path) == before
    (tmp_path / name).write_text("2")
    assert digest(tmp_path) != before


def test_old_caches_are_removed_and_the_newest_kept(tmp_path):
    for name in "abcdef":
        (tmp_path / "cache" / name).mkdir(parents=True)
    folder = cache_folder(tmp_path)
    assert folder.is_dir()
    assert len(list(folder.parent.iterdir())) == 4


# The whole ------------------------------------------------------------------------------------------------------------


def test_a_warning_is_fatal_and_only_what_changed_is_rendered_again(small, kernel, capfd):
    course, out = load(small, "https://github.com/someone/course"), small.parent / "_build"
    source = course.chapters[0].source
    source.write_text(SOURCE.replace("By", "By {ref}`nobody` and"))
    with pytest.raises(BookError, match="nobody"):
        build(course, out)
    assert not (out / ".doctrees").exists(), (
        "Sphinx warns once about what it keeps; it has to warn again"
    )
    source.write_text(SOURCE)
    index = build(course, out)
    assert index == out / "html" / "index.html"
    assert index.is_file()
    assert check(out / "html", course) == []
    assert len(kernel) == 1

    page = index.with_name("01_one.html")
    assert (
        "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/notebooks/01_one.ipynb"
        in page.read_text()
    )
    other = index.with_name("bibliography.html")
    rendered = other.stat().st_mtime_ns
    source.write_text(SOURCE.replace("By", "Written by"))
    build(course, out)
    assert "Written by" in page.read_text()
    assert other.stat().st_mtime_ns == rendered, "a page that did not change is not rendered again"

    shutil.copy(page, page.with_name("09_old.html"))
    page.unlink()
    assert check(out / "html", course) == [
        "01_one.html is missing: make book",
        "09_old.html is no page of book.toml: make book",
    ]


def test_a_cell_that_fails_is_named_with_its_error(small):
    course = load(small)
    course.chapters[0].source.write_text(SOURCE + "# %%\n1 / 0\n")
    with pytest.raises(
        BookError, match=r"(?s)01_one: a cell failed.*1 / 0.*ZeroDivisionError"
    ) as error:
        builder._chapter(course, course.chapters[0], small.parent / "cache")
    assert "\x1b" not in str(error.value)


# Checks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<img src="a.png" alt="A heatmap"><a href="https://example.org">x</a>', None),
        ('<img src="a.png">', "no alt text: a.png"),
        ('<img src="a.png" alt=" ">', "no alt text"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "asks another host: https://cdn.example/x.js",
        ),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "asks another host"),
        ("<pre>Traceback (most recent call last)</pre>", "shows a traceback"),
        (
            f'<p>\n<div class="cu-explorer"><p>{"x" * EXPLORER_BYTES}</p></div>',
            "an explorer has 600 KB",
        ),
        (
            f'<div class="cu-explorer"><img alt="x"><br></div><p>{"x" * EXPLORER_BYTES}</p>',
            None,
        ),
    ],
)
def test_a_page_is_refused_for_what_a_reader_would_miss(page, problem):
    found = page_problems(page)
    assert found == [] if problem is None else len(found) == 1 and problem in found[0]


def test_check_and_serve_say_what_to_do_while_there_is_no_book(small, capsys):
    (small.parent / "notebooks" / "01_one.ipynb").write_text("{}")
    assert main(["--manifest", str(small), "check"]) == 0
    assert "not built yet: make book" in capsys.readouterr().out
    assert main(["--manifest", str(small), "serve"]) == 1
    assert "not built yet: make book" in capsys.readouterr().err
    small.write_text(small.read_text().replace("minutes", "minuets"))
    assert main(["--manifest", str(small), "check"]) == 1
    assert "minuets" in capsys.readouterr().err


def test_the_server_takes_the_next_free_port_of_this_machine_alone(tmp_path):
    with listen(tmp_path, 8900) as first, listen(tmp_path, first.server_port) as second:
        assert second.server_port > first.server_port
        assert first.server_address[0] == second.server_address[0] == "127.0.0.1"
