"""The registry keeps its promises: whole files or none, from a server on loopback that misbehaves."""

import contextlib
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest
import requests

from course_utils.data import registry
from course_utils.data.registry import DataUnavailable, fetch, read_member, registered

CONTENT = bytes(range(256)) * 400


def sha256(data):
    return hashlib.sha256(data).hexdigest()


DIGEST = sha256(CONTENT)


@pytest.fixture
def server():
    """Serves `server.content` in ways that the path names; counts requests.

    At /paused it stops halfway, until two are there: two downloads, or one and the test.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            content = self.server.content
            body = content[:-1] + b"x" if self.path == "/wrong" else content
            self.send_response({"/missing": 404, "/moved": 302}.get(self.path, 200))
            if self.path == "/moved":
                self.send_header("Location", "/good")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            half = len(body) // 2
            self.wfile.write(body[:half])
            if self.path == "/paused":
                self.server.paused.wait(600)  # until as many downloads stand here as it counts
            if self.path != "/truncated":
                with contextlib.suppress(ConnectionError):  # whoever asked may have been killed
                    self.wfile.write(body[half:])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.content, server.paused = 0, CONTENT, threading.Barrier(2)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def entry(server, tmp_path, monkeypatch):
    """Writes a registry with one entry at the given path of the server; returns its file."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)

    def write(path="/good", **changes):
        fields = {
            "file": "toy.bin",
            "url": f"http://127.0.0.1:{server.server_port}{path}",
            "sha256": [DIGEST],
            "megabytes": 0.1,
            "licence": "CC0",
            "source": "a test",
        } | changes
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
        file = tmp_path / "registry.toml"
        file.write_text(f"[toy]\n{lines}\n")
        return file

    return write


def put(tmp_path, content, name="toy.bin"):
    """What somebody has put into the cache by hand."""
    path = tmp_path / "cache" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def cached(tmp_path):
    folder = tmp_path / "cache"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_downloaded_once_and_found_from_then_on(entry, server, tmp_path):
    file = entry()
    assert fetch("toy", registry=file).read_bytes() == CONTENT
    assert fetch("toy", registry=file).read_bytes() == CONTENT
    assert server.requests == 1 and cached(tmp_path) == ["toy.bin"]


@pytest.mark.parametrize("path", ["/wrong", "/truncated", "/missing"])
def test_what_arrives_damaged_is_not_kept_and_the_message_says_what_to_do(entry, tmp_path, path):
    file = entry(path)
    with pytest.raises(DataUnavailable) as error:
        fetch("toy", registry=file)
    message = str(error.value)
    for part in ("toy.bin", path, DIGEST, str(tmp_path / "cache" / "toy.bin"), "By hand"):
        assert part in message
    assert cached(tmp_path) == []


def test_a_download_ends_where_it_grows_far_beyond_its_entry(entry, tmp_path):
    limit = len(CONTENT) / 1e6
    assert fetch("toy", registry=entry(megabytes=limit / 4)).read_bytes() == CONTENT
    with pytest.raises(DataUnavailable, match="what arrived has more than .* instead of"):
        fetch("toy", registry=entry(file="other.bin", megabytes=limit / 4.1))
    assert cached(tmp_path) == ["toy.bin"]


def test_a_damaged_file_in_the_cache_is_replaced(entry, server, tmp_path):
    file = entry()
    fetch("toy", registry=file).write_bytes(b"damaged")
    assert fetch("toy", registry=file).read_bytes() == CONTENT
    assert server.requests == 2


def test_offline_forbids_the_network_but_not_the_cache(entry, server, tmp_path, monkeypatch):
    file = entry()
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="COURSE_OFFLINE=1 forbids the download"):
        fetch("toy", registry=file)
    put(tmp_path, b"another release")
    found = sha256(b"another release")
    with pytest.raises(DataUnavailable, match=f"there has another SHA-256 .{found}., and COURSE"):
        fetch("toy", registry=file)
    put(tmp_path, CONTENT)
    assert fetch("toy", registry=file).read_bytes() == CONTENT
    assert server.requests == 0


def test_another_accepted_release_put_there_by_hand_is_taken(entry, server, tmp_path):
    put(tmp_path, release())
    file = entry(sha256=[DIGEST, sha256(release())])
    assert fetch("toy", registry=file).read_bytes() == release()
    assert server.requests == 0


def test_a_read_only_cache_is_named_and_read(entry, tmp_path, monkeypatch):
    file = entry()
    monkeypatch.setattr(registry, "atomic_write", refused)
    with pytest.raises(DataUnavailable, match=r"the cache can't be written: .*Permission denied"):
        fetch("toy", registry=file)
    put(tmp_path, CONTENT)
    assert fetch("toy", registry=file).read_bytes() == CONTENT


def refused(path):
    """What the system answers where nothing may be written; it lets root write anywhere."""
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_full_disk_leaves_nothing_behind(entry, tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))"
    (process,) = fetching(entry(), tmp_path / "cache", before=limit)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 1 and b"the download failed: [Errno 27] File too large" in error
    assert cached(tmp_path) == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_https_is_not_left_for_plain_http(entry, tmp_path, monkeypatch, scheme):
    def answer(self, request, **_):
        """The set's address leads to another one, which has the content."""
        response = requests.Response()
        response.url, response.request, response.raw = request.url, request, io.BytesIO(CONTENT)
        if request.url == "https://a.org/toy":
            response.status_code = 302
            response.headers["Location"] = f"{scheme}://b.org/toy"
        else:
            response.status_code = 200
            response.headers["Content-Length"] = str(len(CONTENT))
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", answer)
    file = entry(url="https://a.org/toy")
    if scheme == "https":
        assert fetch("toy", registry=file).read_bytes() == CONTENT
    else:
        with pytest.raises(DataUnavailable, match=r"leads to http://b.org/toy, which is not HTTPS"):
            fetch("toy", registry=file)
        assert cached(tmp_path) == []


def fetching(file, cache, *, processes=1, before=""):
    """Other processes that fetch the set, all at the same moment."""
    script = f"""
import pathlib
{before}
from course_utils.data.registry import fetch
print("ready", flush=True)
input()
print(fetch("toy", registry=pathlib.Path({str(file)!r})))
"""
    environment = os.environ | {"COURSE_CACHE": str(cache), "PYTHONPATH": os.getcwd()}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", script]
    started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(processes)]
    for process in started:
        assert process.stdout.readline() == b"ready\n"
    for process in started:
        process.stdin.write(b"\n")
        process.stdin.flush()
    return started


@pytest.mark.slow
def test_two_processes_at_once_both_get_the_whole_file(entry, tmp_path):
    file = entry("/paused")
    for process in fetching(file, tmp_path / "cache", processes=2):
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0 and output.decode().strip().endswith("toy.bin")
    assert (tmp_path / "cache" / "toy.bin").read_bytes() == CONTENT


def test_an_unknown_name_lists_the_known_ones(entry):
    with pytest.raises(KeyError, match=r"'tyo' is not in registry.toml; there are toy"):
        fetch("tyo", registry=entry())


def test_every_entry_of_our_registry_is_complete():
    entries = registered().values()
    assert len({data.file for data in entries}) == len(entries)
    for data in entries:
        assert data.url.startswith("https://")
        assert data.sha256 or data.moving
        assert all(len(sha256) == 64 and int(sha256, 16) for sha256 in data.sha256)
        assert data.licence and data.source and data.megabytes > 0
        assert bool(data.members) == data.moving


# Moving sets ------------------------------------------------------------------------------------

PAIRS = "Go.\tVa !\n" * 50


def release(text=PAIRS, name="fra.txt", date=(2031, 2, 3, 0, 0, 0), **others):
    """A release of a moving set: the bytes of its .zip archive."""
    data = text if isinstance(text, bytes) else text.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for member, content in {name: data, **others}.items():
            file.writestr(zipfile.ZipInfo(member, date), content)
    return buffer.getvalue()


@pytest.fixture
def moving(entry, server, tmp_path):
    """A registry with a moving entry whose publisher has replaced the release that it knows."""
    server.content = release()
    fields = {"file": "fra-eng.zip", "moving": True, "members": ["fra.txt", "fra-eng/fra.txt"]}

    def write(path="/good", content=None, **changes):
        server.content = server.content if content is None else content
        size = len(release()) / 1e6
        return entry(path, **fields | {"megabytes": size} | changes)

    write.path = tmp_path / "cache" / "fra-eng.zip"
    write.record = tmp_path / "cache" / "fra-eng.zip.sha256"
    return write


def test_an_unknown_release_of_a_moving_set_is_told_of_once_and_remembered(moving, server, capsys):
    file = moving()
    assert fetch("toy", registry=file).read_bytes() == server.content
    told = capsys.readouterr().err
    assert told.startswith(
        "fra-eng.zip: a release that the course was not tested with, of 2031-02-03"
    )
    assert sha256(server.content) in told and told.count("\n") == 1
    assert moving.record.read_text() == f"{sha256(server.content)}  fra-eng.zip\n"
    fetch("toy", registry=file)
    assert capsys.readouterr().err == "" and server.requests == 1


def test_a_known_release_of_a_moving_set_is_taken_without_a_word(moving, server, tmp_path, capsys):
    file = moving(sha256=[DIGEST, sha256(server.content)])
    fetch("toy", registry=file)
    assert capsys.readouterr().err == "" and cached(tmp_path) == ["fra-eng.zip"]


@pytest.mark.parametrize("newer", [release(name="fra-eng/fra.txt"), b"spoiled"])
def test_a_moving_set_that_changed_after_its_first_use_is_refused(moving, server, newer):
    file = moving()
    before = sha256(fetch("toy", registry=file).read_bytes())
    moving.path.write_bytes(newer)
    with pytest.raises(DataUnavailable) as error:
        fetch("toy", registry=file)
    for part in ("has changed since it was first used", before, sha256(newer), "delete"):
        assert part in str(error.value)
    assert moving.path.read_bytes() == newer and server.requests == 1


def spoiled(data):
    """The archive with a byte of its text changed: its checksum no longer fits."""
    return data.replace(b"Va !", b"Vb !", 1)


BAD = {
    "damaged": (spoiled(release()), "is damaged: fra.txt differs from its checksum|is no whole .zip"),
    "cut short": (release()[:-30], "is no whole .zip archive"),
    "a page": (b"<html>Please log in</html>" * 30, "is no whole .zip archive"),
    "another text": (release(name="deu.txt"), "holds no 'fra.txt' or 'fra-eng/fra.txt'; it holds deu.txt"),
    "an odd line": (release(PAIRS + "alone\n"), "whose line 51 is no tab-separated pair"),
    "no UTF-8": (release(b"Go.\tVa \xff\n" * 50), "holds a fra.txt that is not UTF-8"),
    "a path out": (release(**{"../evil": b""}), "which would leave its folder; refused"),
    "small": (release(PAIRS[:10]), "has 0.000122 MB instead of about"),
    "large": (release(PAIRS * 9), "instead of about"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), BAD.values(), ids=BAD)
def test_what_can_be_no_release_is_not_kept(moving, tmp_path, content, problem, capsys):
    with pytest.raises(DataUnavailable, match="what arrived .*" + problem) as error:
        fetch("toy", registry=moving(content=content))
    assert "By hand" in str(error.value) and "or any newer release" in str(error.value)
    assert cached(tmp_path) == [] and capsys.readouterr().err == ""


def test_a_member_that_would_unpack_to_no_end_is_refused(moving):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("fra.txt", PAIRS * 2000)
    content = buffer.getvalue()
    with pytest.raises(DataUnavailable, match=r"what arrived holds a fra.txt of 1 MB"):
        fetch("toy", registry=moving(content=content, megabytes=len(content) / 1e6))


def test_any_single_byte_lost_or_changed_is_noticed_or_harmless(moving, tmp_path, monkeypatch):
    """A release put there by hand, cut at any byte, is never accepted."""
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    file, whole = moving(), release()
    moving.path.parent.mkdir()
    for end in [*range(0, len(whole), 37), len(whole) - 1]:
        moving.path.write_bytes(whole[:end])
        with pytest.raises(DataUnavailable, match=r"the file that is there .*COURSE_OFFLINE=1"):
            fetch("toy", registry=file)
    assert not moving.record.exists()


def test_a_release_put_there_by_hand_is_looked_into_and_remembered(
    moving, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    put(tmp_path, release(name="fra-eng/fra.txt"), "fra-eng.zip")
    fetch("toy", registry=moving())
    assert "was not tested with" in capsys.readouterr().err and moving.record.exists()


# Archives ---------------------------------------------------------------------------------------


def zipped(path, members):
    path.write_bytes(release(**members))
    return path


def tarred(path, members):
    with tarfile.open(path, "w:gz") as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_member_is_read_and_a_missing_one_is_named(tmp_path, pack):
    archive = pack(tmp_path / "a", {"deep/one.txt": b"one"})
    assert read_member(archive, "deep/one.txt") == b"one"
    assert read_member(archive, "one.txt", "deep/one.txt") == b"one"
    with pytest.raises(KeyError, match=r"holds no 'spa.txt'; it holds .*deep/one.txt"):
        read_member(archive, "spa.txt")


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("name", ["/etc/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_an_archive_that_would_leave_its_folder_is_refused(tmp_path, pack, name):
    archive = pack(tmp_path / "a", {"good": b"", name: b"evil"})
    with pytest.raises(ValueError, match="which would leave its folder; refused"):
        read_member(archive, "good")


def test_the_cache_has_a_place_of_its_own(monkeypatch):
    monkeypatch.delenv("COURSE_CACHE", raising=False)
    assert registry.cache_folder().name == "attention-course"
    monkeypatch.setenv("COURSE_CACHE", "~/elsewhere")
    assert registry.cache_folder() == registry.Path.home() / "elsewhere"
