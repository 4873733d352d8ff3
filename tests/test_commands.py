"""The commands a stranger types first: what they say when something is missing, and that Lab opens on *Start here*."""

import ast
import importlib.util
import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from jupyter_server.serverapp import ServerApp
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course_utils.files import ROOT
from course_utils.studio import __main__ as studio
from course_utils.studio import kernel, lab, manifest
from tools.bootstrap import CPU_BUILD, PROBE_SECONDS

# The environment: bootstrap.py and the Makefile ---------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    """As much of the repository as it takes to make an environment, and none yet."""
    (tmp_path / "course_utils").mkdir()
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/bootstrap.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def bootstrap(clone, before="", **environ):
    """Run bootstrap.py as its users do, after some lines that change what Python finds.

    With TORCH=cuda it asks no index, unless the test says otherwise.
    """
    script = f"{before}\nimport runpy; runpy.run_path('tools/bootstrap.py', run_name='__main__')"
    command, env = [sys.executable, "-c", script], os.environ | {"TORCH": "cuda"} | environ
    return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, timeout=600)


def lie(system, machine):
    """A line before bootstrap.py that changes what system it finds."""
    return f"import platform as p; p.system = lambda: {system!r}; p.machine = lambda: {machine!r}"


def give_environment(clone, script):
    """An environment whose Python is a shell script, in the place of pip."""
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ncase "$*" in *"pip config"*) exit;; esac\n{script}\n')
    python.chmod(0o755)


def run_make(clone, *arguments, **environ):
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make here")
    # As from a shell, even where the tests themselves were started by make.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        [make, *arguments], cwd=clone, env=outside | environ, capture_output=True, text=True
    )


def assert_one_sentence(run, *parts):
    """It failed, and said one sentence that holds these parts, and no traceback."""
    assert run.returncode
    sentence = run.stderr.strip()
    assert len(sentence.splitlines()) == 1, sentence
    for part in parts:
        assert part in sentence


@pytest.mark.skipif(os.name == "nt", reason="make is not what one types there")
def test_a_missing_python_is_one_sentence(clone, tmp_path):
    (tmp_path / "nothing").mkdir()
    run = run_make(clone, "lab", PATH=str(tmp_path / "nothing"))
    assert run.returncode
    assert run.stderr.splitlines()[0].startswith("Python is missing: install Python 3.11 to 3.14")
    assert "Traceback" not in run.stderr


FREE = "types.SimpleNamespace(free=1.25e9)"
REFUSALS = {
    "old Python": (
        "import sys; sys.version_info = (3, 8, 10, 'final', 0)",
        ["needs Python 3.11 to 3.14", "is Python 3.8", "make PYTHON="],
    ),
    "new Python": (
        "import sys; sys.version_info = (3, 15, 0, 'final', 0)",
        ["needs Python 3.11 to 3.14", "is Python 3.15", "make PYTHON="],
    ),
    "no venv": ("import sys; sys.modules['venv'] = None", ["module venv", "python3-venv"]),
    "no ensurepip": ("import sys; sys.modules['ensurepip'] = None", ["module ensurepip", "apt"]),
    "full disk": (
        f"import shutil, types; shutil.disk_usage = lambda path: {FREE}",
        ["needs 3 GB of disk", "make room"],
    ),
    "Intel Mac": (lie("Darwin", "x86_64"), ["Macs with Intel processors", "read the book"]),
    "Windows on ARM": (lie("Windows", "ARM64"), ["Windows on ARM", "wsl --install"]),
    "no such build": (
        "import os; os.environ['TORCH'] = 'tpu'",
        ["TORCH=tpu is neither cpu nor cuda"],
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_missing_is_said_in_one_sentence_before_anything_is_fetched(clone, name):
    before, parts = REFUSALS[name]
    assert_one_sentence(bootstrap(clone, before), *parts)
    assert not (clone / ".venv").exists()


def test_a_path_too_long_for_windows_is_told_so_before_anything_is_fetched(clone):
    long = clone / ("a_folder_with_a_long_name_" * 3)
    shutil.copytree(clone, long)
    run = bootstrap(long, "import platform; platform.system = lambda: 'Windows'")
    assert_one_sentence(run, f"has {len(str(long))} characters", "67", "move it")


def take_pytorch(clone, address, before="", seconds=600, **environ):
    """What bootstrap.py installs, a line each, and what it says: on Linux, with PyTorch's index at this address."""
    script = clone / "tools" / "bootstrap.py"
    code = script.read_text().replace(CPU_BUILD, address)
    script.write_text(code.replace("PROBE_SECONDS = 3", f"PROBE_SECONDS = {seconds}"))
    give_environment(clone, 'echo "$@" >> installed')
    system = environ.pop("system", "Linux")
    before = f"{lie(system, 'arm64')}\n{before}"
    direct = {"TORCH": "", "PIP_NO_INDEX": "", "NO_PROXY": "*", "no_proxy": "*"}
    run = bootstrap(clone, before, **direct | environ)
    assert not run.returncode, run.stderr
    *torch, course = (clone / "installed").read_text().splitlines()
    assert course.endswith("--editable .")  # in a handout, without what the tests need
    return torch, run.stdout


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
@pytest.mark.parametrize(
    ("status", "environ", "asked", "taken"),
    [
        (200, {}, 1, True),
        (503, {}, 1, False),
        (200, {"TORCH": "cuda"}, 0, False),
        (503, {"TORCH": "cpu"}, 0, True),
        (200, {"PIP_NO_INDEX": "1"}, 0, False),
        (200, {"system": "Darwin"}, 0, False),
    ],
)
def test_linux_takes_the_cpu_build_of_pytorch_if_its_index_answers_when_asked_once(
    clone, status, environ, asked, taken
):
    requests = []

    class Index(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(status)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/whl/cpu"
        torch, said = take_pytorch(clone, address, **environ)
        server.shutdown()
    assert requests == asked * ["/whl/cpu/torch/"]
    assert ["--no-deps torch==2.13.0 --index-url " + address in line for line in torch] == (
        [True] if taken else []
    )
    assert ("set TORCH=cuda" in said, "pip's own index" in said) == (
        (taken, not taken) if asked else (False, False)
    )


RAISE = "import urllib.request as r, urllib.error as e\ndef fail(*_, **__): raise e.URLError({!r})\nr.urlopen = fail"


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
@pytest.mark.parametrize(
    ("before", "seconds", "taken"),
    [
        ("", 600, False),  # nobody listens
        ("import socket, time; socket.getaddrinfo = lambda *_, **__: time.sleep(1e6)", 0.1, False),
        (RAISE.format("[SSL: CERTIFICATE_VERIFY_FAILED]"), 600, True),
        (RAISE.format("Tunnel connection failed: 403 Forbidden"), 600, False),
    ],
    ids=["refused", "silent", "a certificate that only pip may know", "a proxy that refuses"],
)
def test_no_answer_from_the_index_neither_stops_nor_holds_up_the_installation(
    clone, before, seconds, taken
):
    assert PROBE_SECONDS <= 3
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        torch, said = take_pytorch(clone, address, before, seconds)
    assert (len(torch) == 1) is taken is ("pip's own index" not in said)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
def test_a_cpu_build_that_cannot_be_downloaded_counts_only_for_those_who_asked_for_it(clone):
    before = f"{lie('Linux', 'arm64')}\n{RAISE.format('[SSL: CERTIFICATE_VERIFY_FAILED]')}"
    give_environment(clone, 'case "$*" in *torch==*) exit 1;; esac; echo "$@" >> installed')
    run = bootstrap(clone, before, TORCH="", PIP_NO_INDEX="")
    assert not run.returncode, run.stderr
    assert "pip's own index" in run.stdout and (clone / ".venv" / ".stamp").exists()
    assert_one_sentence(bootstrap(clone, TORCH="cpu"), "at the end of")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "The disk is full"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError'", "network connection"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no torch==2.13.0 for this"),
        ("Configuration file could not be loaded.", "pip can't read its settings"),
        ("HINT: This error might be for lack of Windows Long Path support", "67 characters"),
        ("ERROR: Failed building wheel", "the reason is at the end of"),
    ],
)
def test_an_installation_that_fails_is_one_sentence(clone, words, sentence):
    give_environment(clone, f'echo "{words}" >&2; exit 1')
    assert_one_sentence(bootstrap(clone), sentence)
    assert words in (clone / ".venv" / "install.log").read_text()
    assert not (clone / ".venv" / ".stamp").exists()


ELSEWHERE = {
    "PIP_USER": "1",
    "PIP_TARGET": "/theirs",
    "PIP_PREFIX": "/theirs",
    "PIP_PYTHON": "/theirs",
    "PIP_CONSTRAINT": "/theirs",
    "PIP_REQUIRE_HASHES": "1",
    "PYTHONPATH": "/theirs",
    "PYTHONSTARTUP": "/theirs",
}
PIP_CONF = """\
global.user='true'
global.target='/theirs'
global.no-index='false'
global.index-url='https://global.example/simple'
install.index-url='https://install.example/simple'
install.find-links='/a /b'
:env:.index-url='https://mirror.example/simple'
"""


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
def test_of_a_person_s_settings_of_pip_only_those_count_that_say_where_packages_come_from(clone):
    give_environment(clone, "env > said")
    python = clone / ".venv" / "bin" / "python"
    (clone / "config").write_text(PIP_CONF)
    python.write_text(python.read_text().replace("exit;;", "env > asked; cat config; exit;;"))
    kept = {"PIP_INDEX_URL": "https://mirror.example/simple", "PIP_CERT": "/etc/cert.pem"}
    run = bootstrap(clone, **ELSEWHERE, **kept)
    assert not run.returncode, run.stderr
    asked, said = (
        {
            name: value
            for name, _, value in (
                line.partition("=") for line in (clone / file).read_text().splitlines()
            )
            if name.startswith(("PIP", "PYTHON"))
        }
        for file in ("asked", "said")
    )
    assert asked.items() >= kept.items() and not asked.keys() & ELSEWHERE.keys()
    assert said == {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "false",
        "PIP_FIND_LINKS": "/a /b",
        "PIP_INDEX_URL": "https://mirror.example/simple",
    }


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
def test_a_pip_that_may_ask_no_index_is_told_so(clone):
    words = "ERROR: No matching distribution found for torch==2.13.0"
    give_environment(clone, f'echo "{words}" >&2; exit 1')
    python = clone / ".venv" / "bin" / "python"
    python.write_text(python.read_text().replace("exit;;", "echo \"global.no-index='1'\"; exit;;"))
    assert_one_sentence(bootstrap(clone), "no-index in pip.conf", "find-links")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")
def test_make_installs_once_and_again_after_a_change_of_what_is_needed(clone):
    give_environment(clone, 'echo "$@" >> installed')
    (clone / "tests").mkdir()  # of those who write the course
    for tool in ("ruff", "lint-imports", "mypy"):
        (clone / ".venv/bin" / tool).write_text("#!/bin/sh\n")
        (clone / ".venv/bin" / tool).chmod(0o755)
    python = clone / "py thon"  # as in C:/Program Files
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for changed, times in [(None, 1), (None, 1), ("constraints.txt", 2), ("pyproject.toml", 3)]:
        if changed:
            later = (clone / ".venv/.stamp").stat().st_mtime + 1
            os.utime(clone / changed, (later, later))
        run = run_make(clone, "lint", f"PYTHON={python}", TORCH="cuda")
        assert run.returncode == 0, run.stderr
        lines = (clone / "installed").read_text().splitlines()
        assert sum("pip install" in line for line in lines) == times
        if changed:
            now = time.time() - 10
            os.utime(clone / changed, (now, now))
    assert "--constraint constraints.txt --editable .[book,test]" in lines[0]


def test_even_an_old_python_can_read_what_tells_it_to_go():
    ast.parse((ROOT / "tools" / "bootstrap.py").read_text(), feature_version=(3, 6))


# What the Makefile promises -------------------------------------------------------------------------------------------


def test_one_pytest_runs_everything_and_its_exit_status_counts(clone):
    lines = run_make(clone, "-n", "test", "WORKERS=2").stdout.splitlines()
    runs = [line for line in lines if "pytest" in line]
    assert len(runs) == 1
    for part in ("tests notebooks", "--nbval ", "-n 2 --dist loadscope"):
        assert part in runs[0]
    assert not re.search(r"\|\||;|^\s*-", runs[0])
    assert not any(re.search(r"\|\| *true", line) for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")
def test_what_a_shell_has_set_for_other_work_reaches_lab_alone(clone):
    give_environment(clone, 'env > "said.$3"')
    theirs = {"PYTHONPATH": "/theirs", "PYTEST_ADDOPTS": "-x", "PYTEST_PLUGINS": "theirs"}
    for target in ("lab", "handout"):
        run = run_make(clone, target, f"PYTHON={sys.executable}", TORCH="cuda", **theirs)
        assert run.returncode == 0, run.stderr
    lab_s, others = ((clone / f"said.{name}").read_text() for name in ("lab", "handout"))
    assert "PYTHONPATH=/theirs\n" in lab_s and "theirs" not in others


def test_help_names_every_target(clone):
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE)
    phony = " ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split()
    assert sorted([*targets, "help"]) == sorted(phony) and len(targets) <= 11
    assert re.findall(r"^make (\w+)", run_make(clone).stdout, re.MULTILINE) == targets


def test_every_command_that_a_text_names_is_there():
    folders = ["benchmarks", "course_utils", "data", "docs", "notebooks/source", "tests", "tools"]
    files = [ROOT / "Makefile", ROOT / ".ci" / "run", *ROOT.glob("*.*")]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    readable = {"", ".md", ".toml", ".py", ".yml"}
    texts = (
        path.read_text("utf-8") for path in files if path.is_file() and path.suffix in readable
    )
    text = "\n".join(texts)
    targets = " ".join(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)).split()
    assert set(re.findall(r"(?:`|^ *)make ([a-z]+)", text, re.MULTILINE)) <= set(targets)
    modules = set(re.findall(r"-m ((?:course_utils|benchmarks|tests)[\w.]*\w)", text))
    assert modules and all(importlib.util.find_spec(module) for module in modules)
    commands = re.findall(r"^(\w+) .*  ", studio.__doc__, re.MULTILINE)
    assert set(commands) == {*studio.COMMANDS, *studio.OWN_PARSERS}
    assert set(re.findall(r"-m course_utils\.studio ([a-z]+)", text)) <= set(commands)


def test_every_dependency_is_pinned_and_listed_once():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {canonicalize_name(pin.name): str(pin.specifier) for pin in pins}
    assert len(versions) == len(pins)
    assert all(re.fullmatch(r"==[\w.]+", version) for version in versions.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = sum(project["optional-dependencies"].values(), project["dependencies"])
    needed = [Requirement(line) for line in lines if not line.startswith(project["name"])]
    names = [canonicalize_name(requirement.name) for requirement in needed]
    assert len(set(names)) == len(names)
    for name, requirement in zip(names, needed, strict=True):
        assert requirement.specifier.contains(versions[name].removeprefix("==")), requirement
    conda = (ROOT / "environment.yml").read_text()
    assert "--constraint constraints.txt" in conda and "--editable ." in conda
    assert not [name for name in names if re.search(rf"^ *- {name}\b", conda, re.MULTILINE)]


# Lab ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "environ", "seen"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "0"}, True),
        ("linux", {"DISPLAY": ":10", "SSH_CONNECTION": "10.0.0.1"}, False),
        ("linux", {"DISPLAY": ":0", "CI": "true"}, False),
        ("darwin", {}, True),
        ("darwin", {"SSH_TTY": "/dev/ttys000"}, False),
        ("win32", {}, True),
    ],
)
def test_a_browser_opens_only_where_it_is_seen(platform, environ, seen):
    assert lab.has_display(environ, platform) is seen


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("browser", [True, False])
def test_lab_is_told_only_what_this_machine_needs(monkeypatch, root, browser):
    commands = []
    monkeypatch.setattr(lab, "has_display", lambda: browser)
    monkeypatch.setattr(lab, "prepare", lambda course: lab.ROOT / "notebooks" / "00_first.ipynb")
    monkeypatch.setattr(sys, "argv", ["lab", "--port", "9000"])
    monkeypatch.setattr(os, "name", "posix")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000, raising=False)
    monkeypatch.setattr(os, "execve", lambda path, *given: commands.append(given))
    lab.main()
    ((command, environ),) = commands
    assert environ["PYTHONSTARTUP"] == os.environ.get("PYTHONSTARTUP", str(kernel.STARTUP))
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert ("--allow-root" in command) is root and ("--no-browser" in command) is not browser
    assert command[-2:] == ["--port", "9000"]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The address of Lab as `make lab` starts it without a display, and the port that it found taken."""
    home = tmp_path_factory.mktemp("home")
    environ = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    for folder in ("CONFIG", "DATA", "RUNTIME"):
        environ[f"JUPYTER_{folder}_DIR"] = str(home / folder)
    for folder in ("SETTINGS", "WORKSPACES"):
        environ[f"JUPYTERLAB_{folder}_DIR"] = str(home / folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (home / "said").open("w") as said:
            command = [sys.executable, "-m", "course_utils.studio", "lab", "--port", str(port)]
            process = subprocess.Popen(command, cwd=home, env=environ, stdout=said, stderr=said)
        try:
            pattern = r"http://(?:localhost|127\.0\.0\.1):\S+"
            limit = time.time() + 300
            while not (found := re.search(pattern, (home / "said").read_text())):
                assert process.poll() is None and time.time() < limit, (home / "said").read_text()
                time.sleep(0.1)
            yield found[0], port
        finally:
            process.terminate()
            process.wait()


def test_lab_s_options_are_read_where_warnings_are_errors():
    server = ServerApp()
    with warnings.catch_warnings(action="error"):
        server.parse_command_line(list(lab.EXTENSIONS))
    assert server.jpserver_extensions["course_utils.studio.saving"] is True
    assert server.jpserver_extensions["jupyterlab_jupytext"] is False


def test_tests_pass_over_the_page_that_lab_writes_for_a_reader(request):
    left_out = runpy.run_path(str(request.config.rootpath / "conftest.py"))["collect_ignore"]
    assert left_out == [f"notebooks/{manifest.START}"]


@pytest.mark.slow
def test_lab_answers_with_the_start_page_on_the_next_free_port(running):
    address, taken = running
    first = manifest.load(files=False).chapters[0]
    assert "/lab/tree/notebooks/START.ipynb?token=" in address
    assert int(re.search(r":(\d+)/", address)[1]) != taken
    base, token = re.fullmatch(r"(http://[^/]+)/.*(\?token=\w+)", address).groups()
    path = f"/api/contents/notebooks/{first.notebook}.ipynb"
    with urllib.request.urlopen(base + path + token, timeout=300) as answer:
        chapter = json.load(answer)
    assert chapter["type"] == "notebook" and len(chapter["content"]["cells"]) > 1


def test_the_start_page_opens_in_a_browser_and_nothing_pops_up(running, browser):
    address, _ = running
    page, asked = browser.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector(".cu-map[data-ready]", timeout=300_000)  # it is trusted: its script runs
    page.get_by_role("button", name=re.compile("^To GPT")).click()
    page.locator(".cu-map-stops:visible").get_by_role("link", name="13 · GPT").wait_for()
    assert page.evaluate("localStorage.getItem('cu-way')") == '"To GPT"'
    assert page.locator(".Toastify__toast, .jp-Dialog").count() == 0
    base = re.match(r"http://[^/]+/", address)[0]
    assert [url for url in asked if url.startswith("http") and not url.startswith(base)] == []
    assert not any("/lab/api/news" in url or "/lab/api/update" in url for url in asked)
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "slides 02",
        *(
            pytest.param(command, marks=pytest.mark.nightly)
            for command in ("doctor", "check", "handout --to OUT", "pool 02", "book check")
        ),
    ],
)
def test_a_command_that_the_docs_name_ends_with_0(tmp_path, command):
    """Where an engine runs in the process, it may end badly when all that it had to do is done."""
    words = [str(tmp_path / "out") if word == "OUT" else word for word in command.split()]
    run = subprocess.run(
        [sys.executable, "-m", "course_utils.studio", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
