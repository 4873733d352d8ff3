"""The benchmarks run, at a size that only shows it, and go on without a peer that can't be had."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from course_utils.files import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import peers, run, timing
from benchmarks.timing import Row


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Runs rows here at their smallest, without any peer; gives what was printed and written."""

    def load(name, module):
        raise peers.Unavailable(f"{name} is on holiday")

    monkeypatch.setattr(peers, "load", load)
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    before = torch.get_num_threads()

    def measured(*names):
        options = ["--here", "--tiny", "--rounds", "2", "--threads", "1", "--only", *names]
        assert run.main(options) == 0
        results = json.loads((tmp_path / "results-1.json").read_text(encoding="utf-8"))
        return capsys.readouterr().out, results

    yield measured
    torch.set_num_threads(before)


@pytest.mark.slow
def test_the_runner_measures_and_tells_what_it_could_not(bench):
    printed, results = bench("vit-d2l", "bahdanau-d2l-longer", "transformer-torch")
    rows = results["rows"]
    assert set(rows) == {
        "vit-d2l", "bahdanau-d2l-longer", "transformer-torch", "transformer-torch-by-length",
    }  # fmt: skip
    for name in ("vit-d2l", "bahdanau-d2l-longer"):
        assert rows[name]["problem"] == "d2l is on holiday" and rows[name]["met"] is None
    assert printed.count("not measured: d2l is on holiday") == 2
    assert rows["transformer-torch"]["problem"] == "" and rows["transformer-torch"]["ratio"] > 0
    assert rows["transformer-torch"]["met"] is None  # a row without a target
    assert results["threads"] == 1
    assert results["versions"]["torch"] == torch.__version__


# The same for everybody -------------------------------------------------------------------------


def test_a_round_is_plain_adam_with_clipping():
    torch.manual_seed(0)
    mine, theirs = nn.Linear(3, 1), nn.Linear(3, 1)
    theirs.load_state_dict(mine.state_dict())
    batches = torch.randn(4, 5, 3) * 10

    def loss(model, batch):
        return model(batch).square().mean()

    timing.training(mine.eval(), lambda: batches, loss, epochs=2)()
    optimizer = torch.optim.Adam(theirs.parameters(), lr=timing.LEARNING_RATE)
    for batch in [*batches, *batches]:
        optimizer.zero_grad()
        loss(theirs, batch).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
    assert_close(list(mine.parameters()), list(theirs.parameters()), rtol=0, atol=0)
    assert mine.training


# Peers, rows, races -----------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("ratio", "at_most", "met"),
    [(2.0, False, True), (1.9, False, False), (2.0, True, True), (2.1, True, False)],
)
def test_a_target_is_a_bound_from_the_right_side(ratio, at_most, met):
    assert Row("r", "r", ratio=ratio, target=2.0, at_most=at_most).met is met
