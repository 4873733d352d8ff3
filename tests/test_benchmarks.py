"""The benchmarks run, at a size that only shows it, and go on without a peer that can't be had."""

import json
import subprocess
import sys

import pytest

from course_utils.runtime import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import peers, run, timing  # noqa: E402
from benchmarks.timing import Row, Settings  # noqa: E402


def bench(tmp_path, *arguments):
    path = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.run", "--here", "--tiny", "--rounds", "2"]
    done = subprocess.run(
        [*command, "--threads", "1", "--json", path, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(path.read_text(encoding="utf-8"))


def test_the_runner_measures_and_tells_what_it_could_not(tmp_path):
    printed, results = bench(
        tmp_path, "--only", "bahdanau-d2l-longer", "transformer-torch", "matmul", "decoding"
    )
    rows = results["rows"]
    assert {"transformer-torch", "matmul-share", "cache-flat"} < set(rows)
    for name, row in rows.items():
        assert row["problem"] if "d2l" in name else row["ratio"] > 0
    assert "not measured: d2l " in printed
    assert rows["bahdanau-d2l-longer"]["met"] is None
    assert rows["cache-flat"]["met"] in (True, False)
    assert results["threads"] == 1 and results["versions"]["d2l"] == "not installed"


def test_a_peer_that_can_not_be_installed_is_noted_and_the_others_are_tried(tmp_path, monkeypatch):
    calls = []

    def pip(command, **_):
        calls.append(command[-1])
        failed = "ERROR: one line\nERROR: No matching distribution found for absent==1"
        return subprocess.CompletedProcess(command, int("absent==1" in command), "", failed)

    monkeypatch.setattr(peers.venv, "create", lambda home, **_: _pretend(home))
    monkeypatch.setattr(peers.subprocess, "run", pip)
    wanted = {"absent": ["absent==1"], "present": ["present==2"]}
    python = peers.make(wanted, tmp_path)
    assert python.exists() and calls == ["absent==1", "present==2"]
    with pytest.raises(peers.Unavailable, match="absent is not installed: No matching distrib"):
        peers.load("absent", "absent", tmp_path)
    peers.make(wanted, tmp_path)
    assert calls[2:] == ["absent==1"]  # what is installed stays, what failed is tried again


def _pretend(home):
    for folder in ("bin", "Scripts", "lib/python3.0/site-packages"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for name in ("bin/python", "Scripts/python.exe"):
        (home / name).touch()


def test_a_row_that_fails_says_why_and_does_not_end_the_run():
    def broken(settings):
        raise RuntimeError("out of luck")

    row = run.measure("a-row", broken, Settings(tiny=True))
    assert row.problem == "RuntimeError: out of luck" and row.met is None
    assert "out of luck" in timing.table([row])


def test_a_subset_is_chosen_by_topic_or_by_part_of_a_name():
    every = [name for name, _ in run.chosen([])]
    assert len(every) == len(set(every))
    assert [name for name, _ in run.chosen(["decoding"])] == ["cache-flat", "cache-recomputing"]
    assert all("bahdanau" in name for name, _ in run.chosen(["bahdanau"]))
    with pytest.raises(ValueError, match="'bert' is no benchmark; topics: translation"):
        run.chosen(["bert"])


@pytest.mark.parametrize(
    ("ratio", "at_most", "met"),
    [(2.0, False, True), (1.9, False, False), (2.0, True, True), (2.1, True, False)],
)
def test_a_target_is_a_bound_from_the_right_side(ratio, at_most, met):
    assert Row("r", "r", ratio=ratio, target=2.0, at_most=at_most).met is met


def test_contenders_take_turns():
    order = []
    mine, theirs = timing.race(
        lambda: order.append("a"), lambda: order.append("b"), Settings(rounds=3)
    )
    assert order == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert len(mine) == len(theirs) == 3
