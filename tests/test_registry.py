"""The registry keeps its promises: whole files or none, from a server on loopback that misbehaves."""

import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile

import pytest
import requests

from course_utils.data import registry
from course_utils.data.archives import read_member
from course_utils.data.registry import DataUnavailable, fetch


def zipped(members):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tarred(members):
    with tarfile.open(fileobj=(buffer := io.BytesIO()), mode="w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


CONTENT = bytes(range(256)) * 400
NEWER = zipped({"fra.txt": b"Go.\tVa !\n" * 50})


@pytest.fixture
def server():
    """Serves `server.content`, spoiled in the way that the path names; counts requests.

    At /paused it stops halfway, until two downloads are there.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            content = self.server.content
            body = content[:-1] + b"x" if self.path == "/wrong" else content
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            half = len(body) // 2
            self.wfile.write(body[:half])
            if self.path == "/paused":
                self.server.paused.wait(600)
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
    """Writes a registry with one entry, `toy`, at the given path of the server; returns its file."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)

    def write(path="/good", **changes):
        fields = {
            "file": "toy.bin",
            "url": f"http://127.0.0.1:{server.server_port}{path}",
            "sha256": [sha256(CONTENT)],
            "megabytes": 0.1,
            "licence": "CC0",
            "source": "a test",
        } | changes
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
        file = tmp_path / "registry.toml"
        file.write_text(f"[toy]\n{lines}\n")
        return file

    return write


@pytest.fixture
def cached(tmp_path):
    """The path of `toy` in the cache; whoever downloads by hand puts it there."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "toy.bin"


def test_a_file_is_downloaded_once_and_again_where_it_was_damaged(entry, server, cached):
    file = entry()
    for _ in range(2):
        assert fetch("toy", registry=file) == cached
    assert cached.read_bytes() == CONTENT and server.requests == 1
    cached.write_bytes(b"damaged")
    assert fetch("toy", registry=file).read_bytes() == CONTENT and server.requests == 2


@pytest.mark.parametrize("path", ["/wrong", "/truncated", "/missing"])
def test_what_arrives_damaged_is_not_kept_and_the_message_says_what_to_do(entry, cached, path):
    with pytest.raises(DataUnavailable) as error:
        fetch("toy", registry=entry(path))
    for needed in ("toy.bin", path, sha256(CONTENT), str(cached), "By hand"):
        assert needed in str(error.value)
    assert not any(cached.parent.iterdir())


def test_offline_forbids_the_network_but_not_the_cache(entry, server, cached, monkeypatch):
    file = entry()
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="toy.bin is missing, and COURSE_OFFLINE=1 forbids"):
        fetch("toy", registry=file)
    cached.write_bytes(NEWER)
    with pytest.raises(DataUnavailable, match=f"another SHA-256 .{sha256(NEWER)}., and COURSE"):
        fetch("toy", registry=file)
    cached.write_bytes(CONTENT)
    assert fetch("toy", registry=file) == cached and server.requests == 0


def test_a_newer_release_of_a_moving_set_is_taken_and_announced(entry, server, capsys):
    server.content = NEWER
    file = entry(moving=True)
    for _ in range(2):
        assert fetch("toy", registry=file).read_bytes() == NEWER
        line = capsys.readouterr().err
        assert line.startswith("toy.bin: a release that the course was not tested with")
        assert sha256(NEWER) in line and line.count("\n") == 1
    fetch("toy", registry=entry(moving=True, sha256=[sha256(NEWER)]))
    assert capsys.readouterr().err == "" and server.requests == 1


def test_a_read_only_cache_is_named_and_read(entry, cached, monkeypatch):
    def refused(path):  # what the system answers; it lets root write anywhere
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(registry, "atomic_write", refused)
    with pytest.raises(DataUnavailable, match=r"the cache can't be written: .*Permission denied"):
        fetch("toy", registry=entry())
    cached.write_bytes(CONTENT)
    assert fetch("toy", registry=entry()) == cached


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_https_is_not_left_for_plain_http(entry, cached, monkeypatch, scheme):
    def answer(self, request, **_):
        """The set's address leads to another one, which has the content."""
        response = requests.Response()
        response.url, response.request, response.raw = request.url, request, io.BytesIO(CONTENT)
        response.status_code = 302 if request.url == "https://a.org/toy" else 200
        response.headers["Location"] = f"{scheme}://b.org/toy"
        response.headers["Content-Length"] = str(len(CONTENT))
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", answer)
    file = entry(url="https://a.org/toy")
    if scheme == "https":
        assert fetch("toy", registry=file).read_bytes() == CONTENT
        return
    with pytest.raises(DataUnavailable, match=r"leads to http://b.org/toy, which is not HTTPS"):
        fetch("toy", registry=file)
    assert not cached.exists()


# Archives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("written", ["deep/one.txt", "deep\\one.txt"])
def test_a_member_is_read_and_a_missing_one_is_named(tmp_path, pack, written):
    archive = tmp_path / "a"
    archive.write_bytes(pack({written: b"one"}))
    assert read_member(archive, "one.txt", "deep/one.txt") == b"one"
    with pytest.raises(KeyError, match=r"holds no 'spa.txt'; it holds deep/one.txt"):
        read_member(archive, "spa.txt")


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("name", ["/etc/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_an_archive_that_would_leave_its_folder_is_refused(tmp_path, pack, name):
    archive = tmp_path / "a"
    archive.write_bytes(pack({"good": b"", name: b"evil"}))
    with pytest.raises(ValueError, match="which would leave its folder; refused"):
        read_member(archive, "good")


DAMAGED = [pack({"fra.txt": CONTENT[:256]})[:200] for pack in (zipped, tarred)]


@pytest.mark.parametrize("content", [*DAMAGED, NEWER.replace(b"Va", b"Vb")], ids=range(3))
def test_a_damaged_archive_is_named(tmp_path, content):
    archive = tmp_path / "toy.zip"
    archive.write_bytes(content)
    with pytest.raises(ValueError, match=r"toy.zip is damaged"):
        read_member(archive, "fra.txt")
