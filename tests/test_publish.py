"""What a published course says of itself: the links of its host, and its version."""

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


def test_one_version_stands_in_pyproject_and_elsewhere_only_as_there():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    authors = [author["name"] for author in citation["authors"]]
    assert (citation["title"], authors) == (COURSE.title, list(COURSE.authors))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == PROJECT["version"]
