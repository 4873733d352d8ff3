"""The benchmarks run, at a size that only shows it, and go on without a peer that can't be had."""

import json
import sys

import pytest
import torch

from course_utils.files import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import peers, run


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
