"""The registry keeps its promises: whole files or none, from a server on loopback that misbehaves."""

import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

import pytest

from course_utils.data import registry
from course_utils.data.registry import DataUnavailable, fetch, read_member, registered

CONTENT = bytes(range(256)) * 400
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    """Serves CONTENT in ways that the path names; counts requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            body = CONTENT[:-1] + b"x" if self.path == "/wrong" else CONTENT
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.path == "/slow":
                for start in range(0, len(body), 1024):
                    self.wfile.write(body[start : start + 1024])
                    time.sleep(0.01)
            else:
                self.wfile.write(body[: len(body) // 2] if self.path == "/truncated" else body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture
def entry(server, tmp_path, monkeypatch):
    """Writes a registry with one entry at the given path of the server; returns its file."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)

    def write(path="/good", **changes):
        fields = {
            "file": "toy.bin",
            "url": f"http://127.0.0.1:{server.server_port}{path}",
            "sha256": DIGEST,
            "megabytes": 0.1,
            "licence": "CC0",
            "source": "a test",
        } | changes
        lines = "\n".join(f"{key} = {value!r}" for key, value in fields.items())
        file = tmp_path / "registry.toml"
        file.write_text(f"[toy]\n{lines}\n")
        return file

    return write


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
    assert server.requests == 0
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "toy.bin").write_bytes(CONTENT)
    assert fetch("toy", registry=file).read_bytes() == CONTENT


def test_another_accepted_release_put_there_by_hand_is_taken(entry, server, tmp_path):
    release = b"next year's release"
    file = entry(also=[hashlib.sha256(release).hexdigest()])
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "toy.bin").write_bytes(release)
    assert fetch("toy", registry=file).read_bytes() == release
    assert server.requests == 0


def test_a_cache_that_cannot_be_written_is_named(entry, tmp_path):
    file = entry()
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match="toy"):
        fetch("toy", registry=file)


def test_a_read_only_cache_is_named(entry, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(tmp_path / "cache"))

    monkeypatch.setattr("pooch.retrieve", refuse)
    with pytest.raises(DataUnavailable, match="the cache can't be written: .*Permission denied"):
        fetch("toy", registry=entry())


def fetching(file, cache):
    script = f"""
import pathlib
from course_utils.data.registry import fetch
print(fetch("toy", registry=pathlib.Path({str(file)!r})))
"""
    environment = os.environ | {"COURSE_CACHE": str(cache), "PYTHONPATH": os.getcwd()}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE)


def test_a_kill_in_the_middle_leaves_no_file_under_the_final_name(entry, tmp_path):
    file, cache = entry("/slow"), tmp_path / "cache"
    for extra in (0.0, 0.2, 0.45):
        process = fetching(file, cache)
        deadline = time.monotonic() + 60
        while not (cache.exists() and any(cache.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(extra)
        process.kill()
        process.wait()
        assert not (cache / "toy.bin").exists() or (cache / "toy.bin").read_bytes() == CONTENT
    assert fetch("toy", registry=entry()).read_bytes() == CONTENT


def test_two_processes_at_once_both_get_the_whole_file(entry, tmp_path):
    file = entry("/slow")
    processes = [fetching(file, tmp_path / "cache") for _ in range(2)]
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0 and output.decode().strip().endswith("toy.bin")
    assert (tmp_path / "cache" / "toy.bin").read_bytes() == CONTENT


def test_an_unknown_name_lists_the_known_ones(entry):
    with pytest.raises(KeyError, match="'tyo' is not in registry.toml; there are toy"):
        fetch("tyo", registry=entry())


def test_every_entry_of_our_registry_is_complete():
    for data in registered().values():
        assert data.url.startswith("https://")
        assert len(data.sha256) == 64 and int(data.sha256, 16)
        assert data.licence and data.source and data.megabytes > 0


# Archives ---------------------------------------------------------------------------------------


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
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
    archive = pack(tmp_path / "a", {"fra-eng/fra.txt": b"Go.\tVa !"})
    assert read_member(archive, "fra-eng/fra.txt") == b"Go.\tVa !"
    with pytest.raises(KeyError, match="holds no 'spa.txt'; it holds fra-eng/fra.txt"):
        read_member(archive, "spa.txt")


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_an_archive_that_would_leave_its_folder_is_refused(tmp_path, pack, name):
    archive = pack(tmp_path / "a", {"good": b"", name: b"evil"})
    with pytest.raises(ValueError, match="which would leave its folder; refused"):
        read_member(archive, "good")


def test_a_damaged_archive_is_named(tmp_path):
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="a.zip is damaged"):
        read_member(archive, "x")


def test_the_cache_has_a_place_of_its_own(monkeypatch):
    monkeypatch.delenv("COURSE_CACHE", raising=False)
    assert registry.cache_folder().name == "attention-course"
    monkeypatch.setenv("COURSE_CACHE", "~/elsewhere")
    assert registry.cache_folder() == registry.Path.home() / "elsewhere"
