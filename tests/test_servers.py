"""No answer is lost: a reader's notebook, written by any server or editor, taken along in any way, opened by any."""

import json
import os
import shutil
import subprocess
import urllib.request
import zipfile
from contextlib import ExitStack

import nbformat
import pytest
from browsing import jupyter
from test_pairs import Course

from course_utils.files import ROOT
from course_utils.studio import lab, pairs

CLASS = "jupyter_server.services.contents.largefilemanager.AsyncLargeFileManager"
SERVERS = {
    "lab": {},
    "plain": {
        "kind": "jupyter_server",
        "own": (lab.NO_PAIRS, f"--ServerApp.contents_manager_class={CLASS}"),
    },
    "jupytext": {"kind": "jupyter_server", "own": ()},
}
GIT = ["git", "-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder that one server of each kind serves, and how to open a notebook there, or save one."""
    root = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        addresses = {
            name: stack.enter_context(jupyter(tmp_path_factory.mktemp(name), root=root, **options))
            for name, options in SERVERS.items()
        }

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


def git(folder, *arguments):
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


def write_answer(ask, writer, ipynb, old, new):
    """Open the notebook, change one cell, and save it."""
    if writer == "editor":
        text = ipynb.read_text()
        assert old in text
        ipynb.write_text(text.replace(old, new))
        return
    content = ask(writer, ipynb)
    assert any(old in cell["source"] for cell in content["cells"])
    for cell in content["cells"]:
        cell["source"] = cell["source"].replace(old, new)
    ask(writer, ipynb, content)


def nothing(mine, published, new):
    return mine


def clone(mine, published, new):
    git(mine, "commit", "-qam", "My answer")
    git(mine.parent, "clone", "-q", mine, new)
    return new


def unzip(mine, published, new):
    shutil.make_archive(str(new), "zip", mine)
    with zipfile.ZipFile(f"{new}.zip") as archive:
        archive.extractall(new)
    return new


def pull(mine, published, new):
    source, ipynb = published / "notebooks/source/00_a.py", published / "notebooks/00_a.ipynb"
    source.write_text(source.read_text().replace("With prose", "With better prose"))
    pairs.sync(source, ipynb)
    git(published, "commit", "-qam", "Better prose")
    git(mine, "commit", "-qam", "My answer")
    git(mine, "pull", "-q", "--no-rebase", "-X", "ours")
    assert "better" in (mine / "notebooks/source/00_a.py").read_text()
    return mine


def delete_and_restore(mine, published, new):
    ipynb = mine / "notebooks/00_a.ipynb"
    backup = shutil.copy(ipynb, mine / "backup")
    ipynb.unlink()
    shutil.move(backup, ipynb)
    return mine


@pytest.mark.slow
@pytest.mark.parametrize("event", [nothing, clone, unzip, pull, delete_and_restore])
@pytest.mark.parametrize("writer", [*SERVERS, "editor"])
def test_no_answer_is_lost(served, writer, event):
    root, ask = served
    folder = root / f"{writer}-{event.__name__}"
    published = Course(folder / "published").root
    shutil.copy(ROOT / "pyproject.toml", published)  # where jupytext looks for its settings
    git(published, "init", "-q")
    git(published, "add", "-A")
    git(published, "commit", "-qm", "As published")
    git(folder, "clone", "-q", published, "mine")

    write_answer(ask, writer, folder / "mine/notebooks/00_a.ipynb", "pass", "return 'first'")
    mine = event(folder / "mine", published, folder / "new")
    ipynb, source = mine / "notebooks/00_a.ipynb", mine / "notebooks/source/00_a.py"
    published_text = source.read_text()
    write_answer(ask, writer, ipynb, "print(6 * 7)", "print('second')")

    for times in ((1000, 9000), (9000, 1000)):  # whatever a copy has made of them
        for half, time in zip((ipynb, source), times, strict=True):
            os.utime(half, (time, time))
        for server in SERVERS:
            content = ask(server, ipynb)
            assert [cell["source"] for cell in content["cells"]][1:3] == [
                "def answer():\n    return 'first'",
                "print('second')",
            ]
            ask(server, ipynb, content)
    assert [cell.source for cell in nbformat.read(ipynb, as_version=4).cells][
        2
    ] == "print('second')"
    assert source.read_text() == published_text
