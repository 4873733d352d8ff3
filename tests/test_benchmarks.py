"""The benchmark for a device runs in small on a CPU, and a step or a token starts no more operators than it did."""

import json
import sys

import pytest

from course_utils.files import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import device, run
from benchmarks.timing import Settings

SMALL = Settings(rounds=1, tiny=True)


@pytest.mark.parametrize(
    ("name", "most"), [("gpt", 862), ("vit", 952), ("transformer", 2_525), ("token", 273)]
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_no_more_operators_are_called_than_before(name, most):
    assert device.ROWS[f"operators-{name}"](SMALL).ours <= most


def test_dropout_counts_as_one_operator_forward():
    x = device.torch.ones(3)
    assert device.count(lambda: device.F.dropout(x, 0.5)) == 1
    assert device.count(lambda: x.view(3, 1) + 1) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_the_runner_measures_and_writes(tmp_path, capsys):
    path = tmp_path / "results.json"
    options = ["--here", "--tiny", "--rounds", "1", "--threads", "1", "--json", str(path)]
    assert run.main([*options, "--only", "step", "recorded", "decoding", "operators-gpt"]) == 0
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert set(rows) == set(device.ROWS) - {"operators-vit", "operators-transformer", "operators-token"}  # fmt: skip
    recorded = [rows.pop(name) for name in list(rows) if name.startswith("recorded")]
    assert len(recorded) == 3 and all("GPU" in row["problem"] for row in recorded)
    assert all(row["problem"] == "" and row["ratio"] > 0 for row in rows.values())
    assert rows["operators-gpt"]["met"] is (rows["operators-gpt"]["ratio"] >= 1)
    assert f"{rows['operators-gpt']['ours']:.4g}" in capsys.readouterr().out
