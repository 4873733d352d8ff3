"""No answer is lost: a reader's notebook, written by any server or editor, taken along in any way, opened by any."""

import json
import os
import shutil
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from browsing import jupyter
from handouts import (
    ANSWER,
    CHANGED_STUB,
    CHAPTER,
    CHECK,
    SECOND,
    SOURCE,
    STUB,
    cells,
    edit,
    git,
    hand_out,
    kernel,
)
from test_pairs import Course

from course_utils.files import ROOT
from course_utils.studio import lab

CLASS = "jupyter_server.services.contents.largefilemanager.AsyncLargeFileManager"
SERVERS = {
    "lab": {},
    "plain": {
        "kind": "jupyter_server",
        "own": (lab.NO_PAIRS, f"--ServerApp.contents_manager_class={CLASS}"),
    },
    "jupytext": {"kind": "jupyter_server", "own": ()},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder that one server of each kind serves, and how to open a notebook there, or save one."""
    root = tmp_path_factory.mktemp("served")
    with ExitStack() as stack, ThreadPoolExecutor() as starting:

        def start(name):
            folder = tmp_path_factory.mktemp(name)
            return stack.enter_context(jupyter(folder, root=root, **SERVERS[name]))

        addresses = dict(zip(SERVERS, starting.map(start, SERVERS), strict=True))

        def ask(server, ipynb, content=None):
            url = addresses[server].format(f"api/contents/{ipynb.relative_to(root).as_posix()}")
            model = {"type": "notebook", "format": "json", "content": content}
            request = urllib.request.Request(
                url if content else f"{url}&type=notebook&content=1",
                data=json.dumps(model).encode() if content else None,
                method="PUT" if content else "GET",
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["content"]

        yield root, ask


def write_answer(ask, writer, ipynb, old, new):
    """Open the notebook, change one cell, and save it."""
    if writer == "editor":
        edit(ipynb, old, new)
        return
    content = ask(writer, ipynb)
    (cell,) = [cell for cell in content["cells"] if old in cell["source"]]
    cell["source"] = cell["source"].replace(old, new)
    ask(writer, ipynb, content)


# What happens to a notebook: each gives the folder in which it is then opened ---------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A repository of two releases: the second has another stub."""
    root = tmp_path_factory.mktemp("releases")
    for source in (SOURCE, SECOND):
        hand_out(root / "release", source)
        shutil.copytree(root / "release", root / "published", dirs_exist_ok=True)
        git(root / "published", "init", "-q", "--initial-branch=main")
        git(root / "published", "add", "-A")
        git(root / "published", "commit", "-qm", "A release")
    return root


def nothing(mine, release):
    return mine


def clone(mine, release):
    git(mine, "commit", "-qam", "My answer")
    git(mine.parent, "clone", "-q", mine, "new")
    return mine.parent / "new"


def unzip(mine, release):
    archive = shutil.make_archive(str(mine.parent / "new"), "zip", mine)
    with zipfile.ZipFile(archive) as content:
        content.extractall(mine.parent / "new")
    return mine.parent / "new"


def pull(mine, release):
    git(mine, "commit", "-qam", "My answer")
    git(mine, "pull", "-q", "--no-rebase", fails=True)
    return mine


def nbgitpuller(mine, release):
    """What its release 1.3.0 does, in `GitPuller.update`."""
    git(mine, "fetch")
    for name in git(mine, "ls-files", "--deleted", "-z").strip("\0").split("\0"):
        if name:
            git(mine, "checkout", "origin/main", "--", name)
    git(mine, "reset", "--mixed")
    if git(mine, "diff-files", "--name-only"):
        git(mine, "commit", "-am", "Automatic commit by nbgitpuller", "--allow-empty")
    git(mine, "merge", "-Xours", "origin/main")
    return mine


def delete_and_restore(mine, release):
    """As nbgitpuller's readers begin anew."""
    (mine / CHAPTER).unlink()
    return nbgitpuller(mine, release)


def unzip_over(mine, release):
    archive = shutil.make_archive(str(mine.parent / "release"), "zip", release)
    with zipfile.ZipFile(archive) as content:
        content.extractall(mine)
    return mine


SHOWN = [nothing, clone, unzip, pull, nbgitpuller]
REPLACED = [delete_and_restore, unzip_over]


@pytest.mark.slow
@pytest.mark.parametrize("event", [*SHOWN, *REPLACED])
@pytest.mark.parametrize("writer", [*SERVERS, "editor"])
def test_no_answer_is_lost(served, published, monkeypatch, writer, event):
    root, ask = served
    folder = root / f"{writer}-{event.__name__}"
    git(root, "clone", "-q", published / "published", folder / "mine")
    git(folder / "mine", "reset", "-q", "--hard", "HEAD~")

    write_answer(ask, writer, folder / "mine" / CHAPTER, STUB, ANSWER)
    with kernel(monkeypatch, folder / "home") as run:
        assert run(ANSWER, CHECK).passed
    ipynb = event(folder / "mine", published / "release") / CHAPTER
    write_answer(ask, writer, ipynb, "width = 0.5", "width = 0.7")
    for server in SERVERS:
        content = ask(server, ipynb)
        ask(server, ipynb, content)
        shown = [cell["source"] for cell in content["cells"]]
        assert shown == cells(ipynb) and "width = 0.7  # try 0.1 … 10" in shown
        assert (ANSWER in shown) is (event in SHOWN)
        assert (CHANGED_STUB in shown) is (event in REPLACED)
    if event in REPLACED:
        with kernel(monkeypatch, folder / "home") as run:
            assert "cu.checks.loo_residuals.answers()" in repr(run(CHANGED_STUB, CHECK))
            kept = run("cu.checks.loo_residuals.answers()")
        assert ANSWER in repr(kept) and kept.all[0].file.read_text() == ANSWER


@pytest.mark.slow
def test_an_authors_edit_of_a_notebook_alone_is_not_erased_by_jupytext(served):
    root, ask = served
    course = Course(root / "authors")
    shutil.copy(ROOT / "pyproject.toml", course.root)  # where jupytext looks for its settings
    published = course.source.read_text()
    course.in_notebook("pass", "return 'first'")
    for times in ((1000, 9000), (9000, 1000)):  # whatever a copy has made of them
        for half, time in zip((course.ipynb, course.source), times, strict=True):
            os.utime(half, (time, time))
        for server in SERVERS:
            content = ask(server, course.ipynb)
            ask(server, course.ipynb, content)
    assert "return 'first'" in cells(course.ipynb)[1]
    assert course.source.read_text() == published
