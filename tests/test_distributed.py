"""Two processes under torchrun train as one does on the joined batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_utils.data.images import ImageBatch
from course_utils.train.losses import classification_loss
from course_utils.train.processes import DataParallel

SCRIPT = """
import os, sys, torch
sys.path.insert(0, {tests!r})
from copying import loader, small_model
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

torch.set_num_threads(1)
model = small_model(dropout=0.0).double()  # so that rounding does not hide or feign a difference
trainer = Trainer(translation_loss(), epochs=3, lr=3e-3, checkpoint={checkpoint!r})
history = trainer.fit(model, loader(), loader(shuffle=False))
torch.save([model.state_dict(), history.rows], {result!r} + os.environ.get("RANK", "alone"))
"""


def launch(folder: Path, *, processes: int) -> list:
    """Run the script alone or under torchrun; weights and history of each process, and stderr."""
    result, checkpoint = str(folder / "result-"), str(folder / f"checkpoint-{processes}.pt")
    script = folder / f"train-{processes}.py"
    tests = str(Path(__file__).parent)
    script.write_text(SCRIPT.format(tests=tests, checkpoint=checkpoint, result=result))
    torchrun = f"-m torch.distributed.run --standalone --nproc-per-node={processes}".split()
    command = [sys.executable, *(torchrun if processes > 1 else []), str(script)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = ["alone"] if processes == 1 else [str(rank) for rank in range(processes)]
    assert Path(checkpoint).exists()
    return [torch.load(result + rank) for rank in ranks], done.stderr


@pytest.mark.slow
def test_two_processes_have_the_losses_and_weights_of_one_on_the_joined_batches(tmp_path):
    ((weights, rows),), _ = launch(tmp_path, processes=1)
    ((first, first_rows), (second, second_rows)), stderr = launch(tmp_path, processes=2)
    for name in weights:
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], weights[name], atol=1e-8, rtol=1e-6)
    for alone, one, other in zip(rows, first_rows, second_rows, strict=True):
        for name in ("train_loss", "val_loss", "grad_norm"):
            assert one[name] == pytest.approx(alone[name], rel=1e-8)
        assert one["val_loss"] == pytest.approx(other["val_loss"], rel=1e-12)
    assert stderr.count("History: 3 epochs") == 1, "one process reports, the other is silent"


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_the_shards_add_up_to_the_batch_even_where_it_has_fewer_rows_than_there_are_processes(
    rows, monkeypatch
):
    batch = ImageBatch(torch.randn(rows, 1, 2, 2), torch.arange(rows) % 3)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    parts = []
    monkeypatch.setattr(DataParallel, "sum", lambda self, *part: parts.append(part) or list(part))
    gradients = []
    for rank in range(2):
        loss, _ = DataParallel(rank, 2).loss(classification_loss())(model, batch)
        gradients.append(torch.autograd.grad(loss, model[1].weight)[0])
    whole, count = classification_loss()(model, batch)
    assert [sum(part) for part in zip(*parts, strict=True)] == pytest.approx([whole.item(), count])
    expected = torch.autograd.grad(whole, model[1].weight)[0]
    torch.testing.assert_close(sum(gradients), expected)
