"""What a published course says of itself: its host's links, its workflows and forms, its version, what was measured."""

import importlib.util
import re
import tomllib
from dataclasses import replace

import pytest
import yaml

from course_utils.files import ROOT
from course_utils.studio import manifest

COURSE = manifest.load(files=False)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("repository", "host", "files"),
    [
        ("https://github.com/a/b", "", "https://github.com/a/b/blob/main"),
        ("https://gitlab.com/a/b/", "", "https://gitlab.com/a/b/-/blob/main"),
        ("https://codeberg.org/a/b", "", "https://codeberg.org/a/b/src/branch/main"),
        ("https://git.a.edu/b/c", "gitlab", "https://git.a.edu/b/c/-/blob/main"),
        ("", "", ""),
    ],
)
def test_links_to_files_have_the_form_of_their_host(repository, host, files):
    assert replace(COURSE, repository=repository, host=host).files == files


# What a service runs ----------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def steps(path) -> list[dict]:
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] and flow[True] and all("runs-on" in j for j in flow["jobs"].values())
    return [step for job in flow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_only_what_is_there(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = "\n".join(step.get("run", "") for step in steps(path))
    for target in re.findall(r"\bmake ([a-z]+)", commands):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"-m (course_utils[\w.]*)", commands):
        assert importlib.util.find_spec(module), module
    for file in re.findall(
        r"(?:^|[ =])((?:\.ci|tools|tests)/[\w./]+|[A-Z]+\.md|\w+\.toml)", commands
    ):
        assert (ROOT / file).exists(), file
    assert "|| true" not in commands
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))


def test_a_form_for_problems_asks_for_the_doctor_s_report():
    fields = {}
    for path in FORMS:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"] and form["body"]
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
        fields |= {field["id"]: field["attributes"] for field in form["body"]}
    assert "-m course_utils.studio doctor" in fields["doctor"]["description"]


# Releases ---------------------------------------------------------------------------------------


def test_one_version_stands_in_pyproject_and_elsewhere_only_as_there():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    authors = [author["name"] for author in citation["authors"]]
    assert (citation["title"], authors) == (COURSE.title, list(COURSE.authors))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == PROJECT["version"]


@pytest.mark.parametrize("page", ["accessibility", "privacy"])
def test_the_two_papers_say_what_was_measured_and_that_nothing_was_found(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    measured = re.search(r"<!-- measured -->\n(.*)\n<!-- /measured -->", text, re.S)[1]
    found = re.findall(r": (\d+)\.", measured)
    assert found and set(found) == {"0"}, "mend it, then `python tests/audit.py` again"
