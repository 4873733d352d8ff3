# ruff: noqa: E501
"""Training: learns, can be stopped, saved and resumed bit for bit, and speaks up when it diverges."""

import contextlib
import dataclasses
import gc
import math
import random
import signal
import sys
import types
import warnings
import weakref
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from copying import PAIRS, SOURCE, TARGET, loader, small_model
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils.data.images import ImageBatch
from course_utils.data.prose import TextBatch
from course_utils.data.translation import collate
from course_utils.models.language import GPT
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT
from course_utils.train.bar import TrainingBar, training_bar
from course_utils.train.cuda_graphs import CapturedFunction, signature
from course_utils.train.losses import classification_loss, language_model_loss, translation_loss
from course_utils.train.schedules import inverse_sqrt, warmup_decay, warmup_hold_decay
from course_utils.train.trainer import Trainer


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    theirs = b.state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in a.state_dict().items())


def interrupting_at(step, times=1):
    """The usual loss; in this step somebody presses the stop button."""
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == step:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return translation_loss()(model, batch)

    return loss


@pytest.mark.slow
def test_training_learns_and_the_history_tells_it():
    model = small_model()
    history = Trainer(translation_loss(), epochs=25, lr=1e-2).fit(
        model, loader(), loader(shuffle=False)
    )
    frame = history.frame
    assert frame.val_loss.iloc[-1] < 0.35 * frame.val_loss.iloc[0]
    assert frame.index.tolist() == list(range(1, 26))
    assert frame.step.iloc[-1] == 25 * len(loader())
    assert history.stopped == "finished" and history.plot().png()


class Noisy(nn.Linear):
    """Learns to undo a little noise, which its loss draws, as that of a diffusion model does."""

    def __init__(self):
        super().__init__(3, 3)

    def loss(self, model, batch):
        x = batch.images
        return (model(x + torch.randn_like(x)) - x).square().sum(), len(x)


def noisy_runs(seed=0, **settings):
    """A model, batches for it, and its trainer."""
    torch.manual_seed(seed)
    model = Noisy()
    batches = [ImageBatch(torch.randn(4, 3), torch.zeros(4)) for _ in range(3)]
    return model, batches, Trainer(model.loss, epochs=3, quiet=True, **settings)


def test_looking_at_a_model_changes_neither_its_training_nor_later_numbers():
    drawn, models = [], []
    for looks in (False, True):
        model, batches, trainer = noisy_runs()
        if looks:
            trainer.measure = lambda model: {"drawn": torch.rand(()).item()}
            trainer.before_step = lambda model, step: torch.rand(())
        history = trainer.fit(model, batches, batches if looks else None)
        models.append(model)
        drawn.append(torch.rand(2).tolist())
    assert same_weights(*models) and drawn[0] == drawn[1]
    assert len({row["drawn"] for row in history.rows}) == 1


def test_before_step_sees_the_model_and_the_number_of_steps_also_of_a_resumed_training(tmp_path):
    seen = []

    def look(model, step):
        assert not model.training and not torch.is_grad_enabled()
        seen.append((step, model.weight.sum().item()))

    model, batches, trainer = noisy_runs(before_step=look, checkpoint=tmp_path / "run.pt")
    trainer.fit(model, batches)
    assert [step for step, _ in seen] == [*range(3 * len(batches))]
    assert len({weights for _, weights in seen}) == len(seen) and model.training
    trainer.epochs = 4
    trainer.fit(model, batches, resume=True)
    assert seen[-1][0] == 4 * len(batches) - 1


def test_a_loss_that_draws_is_measured_alike_each_time_and_draws_nothing_of_the_caller_s():
    model, batches, trainer = noisy_runs()
    before = torch.get_rng_state()
    losses = {trainer.evaluate(model, batches) for _ in range(3)}
    history = trainer.fit(model, batches, batches)
    assert len(losses) == 1 and torch.equal(torch.get_rng_state(), before)
    assert history.rows[-1]["val_loss"] == trainer.evaluate(model, batches)


@pytest.mark.parametrize("stop_after", [1, 4, 5, 7, 8])
def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one(tmp_path, stop_after):
    path = tmp_path / "run.pt"
    whole, halves = small_model(), small_model()
    expected = Trainer(translation_loss(), epochs=3, seed=1).fit(
        whole, loader(), loader(shuffle=False)
    )

    def trainer(loss):
        return Trainer(loss, epochs=3, seed=1, checkpoint=path)

    stopped = trainer(interrupting_at(stop_after)).fit(halves, loader())
    assert stopped.stopped == "interrupted"
    torch.manual_seed(999)
    resumed_model = small_model()
    history = trainer(translation_loss()).fit(
        resumed_model, loader(seed=5), loader(shuffle=False), resume=True
    )
    assert same_weights(resumed_model, whole)
    assert history.frame.train_loss.tolist() == expected.frame.train_loss.tolist()
    assert history.frame.step.tolist() == expected.frame.step.tolist()


def test_an_interrupt_returns_model_and_history_and_the_next_one_is_python_s_again():
    model = small_model()
    history = Trainer(interrupting_at(1), epochs=3).fit(model, loader())
    assert history.stopped == "interrupted" and len(history) == 0
    assert all(p.isfinite().all() for p in model.parameters())
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_failing_write_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    trainer = Trainer(translation_loss(), epochs=1, checkpoint=path)
    trainer.fit(small_model(), loader())
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trainer.fit(small_model(), loader())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_the_system_refuses_is_named_as_that(tmp_path, monkeypatch):
    def refused(*_):
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")

    monkeypatch.setattr("torch.save", refused)
    with pytest.raises(OSError, match=r"run.pt could not be written, .* the disk is full"):
        Trainer(translation_loss(), epochs=1, checkpoint=tmp_path / "run.pt").fit(
            small_model(), loader()
        )


def at_step(step):
    def stop(model, now):
        if now == step:
            signal.raise_signal(signal.SIGINT)

    return stop


def test_a_training_that_begins_anew_keeps_the_longest_earlier_one_in_one_file(tmp_path, capsys):
    path, earlier = tmp_path / "run.pt", tmp_path / "run.earlier.pt"
    model, batches, trainer = noisy_runs(checkpoint=path)
    trainer.fit(model, batches)
    whole = path.read_bytes()
    assert not capsys.readouterr().out
    for _ in range(2):
        trainer.before_step = at_step(0)
        trainer.fit(*noisy_runs()[:2])
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 1 and "run.pt is there" in said[0] and "as run.earlier.pt" in said[0]
        assert earlier.read_bytes() == whole and path.read_bytes() != whole
    trainer.before_step, trainer.epochs = None, 4
    for _ in range(2):
        trainer.fit(*noisy_runs()[:2])
    assert torch.load(earlier)["counters"]["epoch"] == 4
    assert sorted(tmp_path.iterdir()) == [earlier, path]
    capsys.readouterr()
    trainer.fit(*noisy_runs()[:2], resume=True)
    assert not capsys.readouterr().out


def test_a_training_that_writes_nothing_moves_nothing_and_a_folder_is_no_checkpoint(tmp_path):
    model, batches, trainer = noisy_runs(checkpoint=tmp_path / "run.pt")
    (tmp_path / "run.pt").write_text("my notes")
    trainer.before_step = lambda model, step: 1 / 0
    with pytest.raises(ZeroDivisionError):
        trainer.fit(model, batches)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["my notes"]
    trainer.before_step = None
    trainer.fit(model, batches)
    assert (tmp_path / "run.earlier.pt").read_text() == "my notes"
    trainer.checkpoint = tmp_path
    with pytest.raises(FileExistsError, match="is no file but a folder or a device"):
        trainer.fit(model, batches)


@pytest.mark.parametrize("kind", ["weights", "npz", "TorchScript"])
def test_a_damaged_archive_or_that_of_another_program_is_refused(tmp_path, kind):
    path = tmp_path / "run.pt"
    model, batches, trainer = noisy_runs(checkpoint=path)
    if kind == "weights":
        trainer.fit(model, batches)
        content, weights = bytearray(path.read_bytes()), model.weight.detach().numpy().tobytes()
        content[content.index(weights) + 3] ^= 64
        path.write_bytes(content)
    elif kind == "npz":
        np.savez(path.open("wb"), a=np.ones(3))
    else:
        with warnings.catch_warnings(action="ignore"):  # it is deprecated
            torch.jit.save(torch.jit.script(nn.Linear(3, 3)), path)
    with pytest.raises(ValueError, match="run.pt is damaged or no checkpoint of a Trainer"):
        trainer.fit(model, batches, resume=True)


@pytest.mark.parametrize("lost", ["loader", "rows", "largest", "best_state"])
def test_a_checkpoint_of_an_older_trainer_is_named_as_that(tmp_path, lost):
    model, batches, trainer = noisy_runs(checkpoint=tmp_path / "run.pt")
    trainer.fit(model, batches)
    state = torch.load(tmp_path / "run.pt")
    (state if lost in state else state["counters"]).pop(lost)
    torch.save(state, tmp_path / "run.pt")
    with pytest.raises(ValueError, match=f"has no '{lost}', so it is of another edition"):
        trainer.fit(model, batches, resume=True)


@pytest.mark.parametrize("old", [False, True], ids=["new file", "file of an older edition"])
@pytest.mark.parametrize("frozen", [0, 1])
def test_a_parameter_that_was_frozen_or_thawed_since_the_checkpoint_is_named(tmp_path, frozen, old):
    runs = []
    for run in range(2):
        model, batches, trainer = noisy_runs(checkpoint=tmp_path / "run.pt")
        model.bias.requires_grad_(run != frozen)
        runs.append(model)
        if run == 0:
            trainer.fit(model, batches)
    if old:
        state = torch.load(tmp_path / "run.pt")
        del state["trained"]
        torch.save(state, tmp_path / "run.pt")
    said = ("bias was frozen and is trained here", "bias was trained and is frozen here")[frozen]
    with pytest.raises(
        ValueError, match=r"[12] parameters were trained, here [12] are" if old else said
    ):
        trainer.fit(runs[1], batches, resume=True)


def test_a_place_in_a_loader_is_for_loaders(tmp_path):
    trainer = Trainer(translation_loss(), epochs=1, checkpoint=tmp_path / "run.pt", quiet=True)
    trainer.fit(small_model(), loader())
    trainer.epochs = 2
    with pytest.raises(ValueError, match="holds the place in a loader, and train is a list"):
        trainer.fit(small_model(), list(loader()), resume=True)


class Remembering(Noisy):
    """A model that saves more than tensors."""

    kept: object = None

    def get_extra_state(self):
        return self.kept

    def set_extra_state(self, state):
        self.kept = state


@pytest.mark.parametrize(
    "value", [3, True, None, 0.5, "text", {"steps": [3]}, [1, 2], torch.ones(2)]
)
def test_a_model_with_a_state_of_its_own_is_resumed_and_keeps_its_best(tmp_path, value):
    _, batches, trainer = noisy_runs(checkpoint=tmp_path / "run.pt", keep_best=True)
    model, other = Remembering(), Remembering()
    model.kept = value
    trainer.fit(model, batches, batches)
    trainer.epochs = 4
    trainer.fit(other, batches, batches, resume=True)
    assert repr(other.kept) == repr(value)


@pytest.mark.parametrize(
    "value", [0.5, [1.0], None, torch.ones(1), {(1, 2): 0.5}, {"a": torch.eye(2).to_sparse()}]
)
def test_what_a_measure_should_not_give_is_named_and_does_not_cost_the_epoch(tmp_path, value):
    path = tmp_path / "run.pt"
    model, batches, trainer = noisy_runs(checkpoint=path, measure=lambda model: value)
    with pytest.raises(
        TypeError,
        match=r"measure gives a .*; a dict of numbers|a key of measure|measure\['a'\] is a",
    ):
        trainer.fit(model, batches)
    trainer.measure = lambda model: {"fine": 1}
    history = trainer.fit(noisy_runs()[0], batches, resume=True)
    assert [row.get("fine") for row in history.rows] == [None, 1, 1]


@pytest.mark.parametrize("use", ["train", "val", "evaluate"])
@pytest.mark.parametrize("batch", [[torch.ones(4, 3), torch.ones(4)], {"x": torch.ones(4, 3)}])
def test_a_batch_without_to_is_named_with_what_to_do(batch, use):
    model, batches, trainer = noisy_runs()
    calls = {
        "train": lambda: trainer.fit(model, [batch]),
        "val": lambda: trainer.fit(model, batches, [batch]),
        "evaluate": lambda: trainer.evaluate(model, [batch]),
    }
    with pytest.raises(
        TypeError, match=r"a batch is a (list|dict), which has no method to\(device\).*collate_fn"
    ):
        calls[use]()


def test_the_batches_of_pytorch_s_loader_are_made_as_the_message_says():
    rows = [(torch.randn(3), 0) for _ in range(8)]
    data = torch.utils.data.DataLoader(
        rows,
        batch_size=4,
        collate_fn=lambda rows: ImageBatch(*torch.utils.data.default_collate(rows)),
    )
    model, _, trainer = noisy_runs()
    assert trainer.fit(model, data, data).stopped == "finished"


@pytest.mark.parametrize(
    ("result", "kind", "said"),
    [
        (lambda x: x.sum(), TypeError, "loss gives a Tensor; two are needed: the summed loss"),
        (lambda x: (x.sum(),), TypeError, "loss gives 1 values; two"),
        (lambda x: None, TypeError, "loss gives a NoneType; two"),
        (lambda x: (x.sum().item(), 4), TypeError, "loss gives a float as the sum; a tensor"),
        (lambda x: (x, 4), ValueError, r"a sum of shape \(4, 3\); one number"),
    ],
)  # fmt: skip
def test_what_a_loss_should_not_give_is_named(result, kind, said):
    model, batches, _ = noisy_runs()
    trainer = Trainer(lambda model, batch: result(model(batch.images)), quiet=True)
    for call in (trainer.fit, trainer.evaluate):
        with pytest.raises(kind, match=said):
            call(model, batches)


def test_a_checkpoint_s_path_is_read_as_it_is_copied(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for path in ("~/run.pt", '"~/new.pt"', f"'{tmp_path}/other.pt'"):
        model, batches, trainer = noisy_runs(checkpoint=path)
        trainer.fit(model, batches)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.pt", "other.pt", "run.pt"]


def test_a_run_after_an_interrupted_one_is_that_of_a_fresh_session():
    batches = loader()
    Trainer(interrupting_at(3), epochs=2).fit(small_model(), batches)
    models = small_model(), small_model()
    history = Trainer(translation_loss(), epochs=2).fit(models[0], batches)
    Trainer(translation_loss(), epochs=2).fit(models[1], loader())
    assert history.rows[-1]["step"] == 2 * len(batches) and same_weights(*models)


def test_other_batches_than_the_checkpoint_s_are_refused(tmp_path):
    trainer = Trainer(translation_loss(), epochs=2, checkpoint=tmp_path / "run.pt")
    trainer.fit(small_model(), loader())
    with pytest.raises(ValueError, match="had batch_size=16, this one has batch_size=8"):
        trainer.fit(small_model(), loader(batch_size=8), resume=True)


@pytest.mark.parametrize(
    "content", [b"", b"hello world", b"PK\x03\x04", {"x": 1}, {"x": np.float64(1)}, [1]]
)
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "run.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    trainer = Trainer(translation_loss(), epochs=np.int64(2), seed=np.int64(1), checkpoint=path)
    with pytest.raises(ValueError, match="run.pt is damaged or no checkpoint of a Trainer"):
        trainer.fit(small_model(), loader(), resume=True)
    assert trainer.fit(small_model(), loader()).stopped == "finished"


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    Trainer(translation_loss(), epochs=1, checkpoint=path).fit(small_model(), loader())
    other = AttentionTranslator(len(SOURCE), len(TARGET), embed_dim=8, hidden_dim=8)
    trainer = Trainer(translation_loss(), epochs=2, checkpoint=path)
    with pytest.raises(ValueError, match="of another Transformer, not of this AttentionTranslator"):
        trainer.fit(other, loader(), resume=True)
    wider = Transformer(
        len(SOURCE), len(TARGET), embed_dim=32, num_heads=2, ffn_dim=16, num_layers=1
    )
    with pytest.raises(ValueError, match=r"source_embedding.weight is \(12, 16\), here \(12, 32\)"):
        trainer.fit(wider, loader(), resume=True)


def test_a_diverging_run_stops_with_step_rate_gradient_and_finite_weights():
    def exploding(model, batch):
        loss, count = translation_loss()(model, batch)
        exploding.step += 1
        return (loss * math.nan if exploding.step == 3 else loss), count

    exploding.step, model = 0, small_model()
    sentence = r"the loss is nan at step 3; learning rate 0.5, gradient norm \d"
    with pytest.raises(FloatingPointError, match=sentence):
        Trainer(exploding, epochs=2, lr=0.5).fit(model, loader())
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_a_step_reads_from_the_device_once(monkeypatch):
    reads = []
    for name in ("item", "tolist", "__float__", "__bool__"):
        read = getattr(torch.Tensor, name)
        monkeypatch.setattr(torch.Tensor, name, lambda x, read=read: reads.append(0) or read(x))
    batch = ImageBatch(torch.randn(4, 1, 8, 8), torch.arange(4))
    model = ViT(image_size=8, patch_size=4, embed_dim=8, num_heads=2)
    Trainer(classification_loss(), epochs=1, quiet=True).fit(model, [batch] * 3)
    assert len(reads) == 3


def test_training_stops_early_and_ends_with_the_best_weights():
    losses = iter([3.0, 2.0, 2.5, 2.4, 9.9])
    model = small_model()
    options = {"patience": 2, "keep_best": True, "lr": 1e-2, "device": "cpu"}
    trainer = Trainer(translation_loss(), epochs=5, **options)
    seen = []

    def evaluate(model, batches):
        seen.append({name: p.clone() for name, p in model.state_dict().items()})
        return next(losses)

    trainer.evaluate = evaluate
    history = trainer.fit(model, loader(), [1])
    assert history.stopped == "early" and len(history) == 4
    assert all(torch.equal(p, seen[1][name]) for name, p in model.state_dict().items())


# What a caller hands over is saved and read back --------------------------------------------------

NUMBERS = [
    1, 0.5, True, math.inf, 2**70, np.float64(0.5), np.float32(0.1), np.float16(0.5), np.longdouble(0.5),
    np.int64(3), np.uint8(3), np.bool_(True), np.array(0.5), torch.tensor(0.5), torch.tensor(3),
    torch.tensor(0.5, dtype=torch.bfloat16), torch.tensor([0.5])[0], Fraction(1, 2), Decimal("0.5"),
]  # fmt: skip
OTHERS = [
    None,
    "text",
    np.str_("text"),
    np.array([0.5, 1]),
    torch.ones(2),
    (1, np.int64(2)),
    {np.int64(1): (0.5,)},
]


def halves(path, **settings):
    """The histories of a training in one piece, and of one that was stopped after its first epoch and resumed."""
    for at in (None, path):
        for epochs in (2,) if at is None else (1, 2):
            model, batches, trainer = noisy_runs(checkpoint=at, **settings)
            trainer.epochs = epochs
            history = trainer.fit(model, batches, batches, resume=epochs == 2 and at is not None)
        yield [
            {name: value for name, value in row.items() if "second" not in name}
            for row in history.rows
        ]


@pytest.mark.parametrize(
    "value", NUMBERS + OTHERS, ids=lambda value: f"{type(value).__name__} {value}"
)
def test_every_value_of_a_measure_is_python_s_and_comes_back_from_a_checkpoint(tmp_path, value):
    whole, resumed = halves(
        tmp_path / "run.pt", measure=lambda model: {"here": value, "inside": [value]}
    )
    assert repr(whole) == repr(resumed) and len(whole) == 2
    assert type(whole[0]["here"]) in (bool, int, float, str, list, dict, type(None))
    if any(value is number for number in NUMBERS):
        assert whole[0]["here"] == float(value)


@pytest.mark.parametrize(
    "number", [n for n in NUMBERS if n < 100], ids=lambda n: f"{type(n).__name__} {n}"
)
def test_a_training_with_every_kind_of_number_in_its_settings_is_resumed(tmp_path, number):
    small = number / 1000 if not isinstance(number, np.bool_) else number
    settings = {
        "schedule": lambda step: number, "lr": small, "weight_decay": small, "clip_norm": number,
        "betas": (small, small), "keep_best": True,
    }  # fmt: skip
    if isinstance(small, bool | np.bool_):
        del settings["betas"]
    whole, resumed = halves(tmp_path / "run.pt", **settings)
    assert repr(whole) == repr(resumed) and type(whole[1]["lr"]) is float


def test_a_loader_with_numbers_of_numpy_is_resumed(tmp_path):
    histories = []
    for epochs in (1, 2):
        batches = loader(batch_size=np.int64(16), seed=np.int32(3), shuffle=np.bool_(True))
        trainer = Trainer(
            translation_loss(), epochs=epochs, checkpoint=tmp_path / "run.pt", quiet=True
        )
        histories.append(trainer.fit(small_model(), batches, resume=epochs == 2))
    assert [len(history) for history in histories] == [1, 2]


class OwnLoader(list):
    """Batches with a state of their own."""

    def state_dict(self):
        return {"generator": [np.random.default_rng(0).integers(9, size=2)]}


class WithPath(Noisy):
    """A model that saves a path with its weights."""

    def get_extra_state(self):
        return {"data": Path("data")}

    def set_extra_state(self, state):
        pass


@pytest.mark.parametrize(
    ("settings", "model", "loads", "said"),
    [
        ({"measure": lambda model: {"far": 2j}}, Noisy, list, r"measure\['far'\] is a complex"),
        ({"measure": lambda model: {"seen": [{1}]}}, Noisy, list, r"measure\['seen'\]\[0\] is a set"),
        ({"measure": lambda model: {"at": Path("data")}}, Noisy, list, r"measure\['at'\] is a Posix"),
        ({}, Noisy, OwnLoader, r"loader\['generator'\]\[0\] is a numpy.ndarray, so the checkpoint could"),
        ({}, WithPath, list, r"model\['_extra_state'\]\['data'\] is a pathlib"),
    ],
)  # fmt: skip
def test_what_could_not_be_read_again_is_refused_by_name_in_the_first_epoch(
    tmp_path, settings, model, loads, said
):
    _, batches, trainer = noisy_runs(checkpoint=tmp_path / "run.pt", **settings)
    with pytest.raises(TypeError, match=said):
        trainer.fit(model(), loads(batches))
    # What a measure gives is known after the epoch, which is kept.
    assert len(list(tmp_path.iterdir())) == ("measure" in settings)


# Modes and devices --------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [None, "loss", "measure"])
def test_every_part_has_its_mode_back_after_training(failing):
    model = small_model()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]

    def loss(model, batch):
        assert all(module.training for module in model.modules())
        return (failing == "loss" and 1 / 0) or translation_loss()(model, batch)

    def measure(model):
        assert not any(module.training for module in model.modules())
        return (failing == "measure" and 1 / 0) or {}

    with pytest.raises(ZeroDivisionError) if failing else contextlib.nullcontext():
        Trainer(loss, epochs=1, measure=measure).fit(model, loader())
    assert [module.training for module in model.modules()] == modes


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_training_on_a_gpu_gives_back_a_model_that_works_on_the_cpu():
    model, trainer = small_model(), Trainer(translation_loss(), epochs=2)
    assert trainer.device.type == "cuda"
    before = trainer.evaluate(model, loader(shuffle=False))
    history = trainer.fit(model, loader(), loader(shuffle=False))
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    on_cpu = Trainer(translation_loss(), device="cpu").evaluate(model, loader(shuffle=False))
    assert on_cpu == pytest.approx(history.rows[-1]["val_loss"], rel=0.02) and on_cpu < before


# CUDA graphs --------------------------------------------------------------------------------------

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def text(length, value=1):
    batch = TextBatch(torch.full((2, length), value), torch.ones(2), torch.zeros(2, length))
    return batch.to("cuda") if torch.cuda.is_available() else batch


@dataclasses.dataclass
class Scaled:
    """A batch with a field that is no tensor."""

    values: torch.Tensor
    factor: object


def test_graphs_change_nothing_on_a_cpu():
    rows = []
    for graphs in (False, True):
        trainer = Trainer(translation_loss(), epochs=2, device="cpu", graphs=graphs)
        rows.append(trainer.fit(small_model(), loader()).frame.train_loss.tolist())
    assert rows[0] == rows[1]


def test_batches_share_a_graph_if_shapes_dtypes_and_other_fields_are_the_same():
    assert signature(text(3, 1)) == signature(text(3, 2)) != signature(text(5, 1))
    ones = torch.ones(4)
    batches = [Scaled(ones, 2), Scaled(ones, 3), Scaled(ones.double(), 2), Scaled(ones[:2], 2)]
    assert len({signature(batch) for batch in batches}) == len(batches)
    with pytest.raises(TypeError, match="hash"):
        hash(signature(Scaled(ones, [ones])))


@needs_gpu
def test_each_signature_is_captured_once_and_replayed_with_the_values_of_the_batch():
    calls = []

    def function(batch):
        calls.append(batch)
        return batch.tokens.sum()

    run = CapturedFunction(function, "cuda")
    for length, value in ((3, 1), (5, 1), (3, 2), (5, 3), (3, 4), (3, 5), (5, 6)):
        assert run(text(length, value)) == 2 * length * value
    assert len(run.graphs) == 2 and len(calls) == 4


@needs_gpu
@pytest.mark.parametrize("draw", [random.random, lambda: torch.rand(()).item()])
def test_a_step_that_draws_on_the_cpu_cannot_be_captured(draw):
    run = CapturedFunction(lambda batch: batch.tokens * draw(), "cuda")
    run(text(3))
    with pytest.raises(RuntimeError, match="draws random numbers on the CPU"):
        run(text(3))


@needs_gpu
def test_a_step_whose_kernels_depend_on_values_cannot_be_captured():
    def loss(model, batch):
        total, count = translation_loss()(model, batch)
        return total * float(total > 0), count

    with pytest.raises(RuntimeError, match="graphs=False"):
        Trainer(loss, epochs=4, graphs=True).fit(small_model(), loader())


@needs_gpu
@pytest.mark.parametrize("between", ["nothing", "moved", "cleared"])
def test_graphs_train_as_single_kernels_do_also_after_a_measure_that_moves_the_model(between):
    def measure(model):
        if between == "moved":
            for parameter in model.parameters():
                parameter.data, parameter.grad = parameter.data.clone(), parameter.grad.clone()
        elif between == "cleared":
            model.zero_grad()
        return {}

    histories = []
    for graphs in (False, True):
        trainer = Trainer(
            translation_loss(label_smoothing=0.1), epochs=4, measure=measure, graphs=graphs,
            quiet=True,
        )  # fmt: skip
        batches = [*loader()] * 3
        model = small_model(dropout=0.0)
        histories.append(trainer.fit(model, batches, loader(shuffle=False)))
    for usual, other in zip(*(history.rows for history in histories), strict=True):
        for name in ("train_loss", "val_loss", "grad_norm"):
            assert other[name] == pytest.approx(usual[name], rel=0.02)


@needs_gpu
def test_a_graph_leaves_no_gradient_of_another_shape():
    model = nn.ParameterDict({name: nn.Parameter(torch.ones(())) for name in ("all", "long")})

    def loss(model, batch):
        factor = model["all"] * (model["long"] if batch.images.shape[1] > 2 else 1)
        return (batch.images * factor).sum(), 1

    short, long = (ImageBatch(torch.ones(2, n), torch.zeros(2)) for n in (2, 5))
    Trainer(loss, epochs=1, quiet=True, graphs=True).fit(model, [short, short, long, short])
    assert model["long"].grad == 0 and model["all"].grad > 0


@pytest.mark.parametrize("graphs", [False, pytest.param(True, marks=needs_gpu)])
def test_a_run_leaves_nothing_that_waits_for_python_to_look_for_cycles(graphs):
    gc.collect()
    gc.disable()
    try:
        model = nn.Linear(3, 3)
        batches = [ImageBatch(torch.ones(2, 3), torch.zeros(2))] * 3

        def loss(model, batch):
            return model(batch.images).sum(), 2

        Trainer(loss, epochs=1, quiet=True, graphs=graphs).fit(model, batches)
        gone = weakref.ref(model)
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_a_loss_that_is_captured_is_the_same_and_leaves_no_shape_to_the_values(monkeypatch):
    model, batch = small_model().eval(), next(iter(loader()))
    assert (batch.target_lens < batch.target_out.shape[1]).any()
    padding = torch.arange(batch.target_out.shape[1]) >= batch.target_lens[:, None]
    targets = batch.target_out.masked_fill(padding, -1)
    texts = TextBatch(batch.target_in, batch.target_lens, targets)
    gpt = GPT(len(TARGET), embed_dim=8, num_heads=2).eval()
    for loss, network, read in (
        (translation_loss(label_smoothing=0.1), model, batch),
        (language_model_loss(), gpt, texts),
    ):
        found = []
        for capturing in (False, True):
            monkeypatch.setattr("course_utils.train.losses.is_capturing", lambda t, c=capturing: c)
            network.zero_grad()
            total, count = loss(network, read)
            total.backward()
            gradients = [p.grad.clone() for p in network.parameters() if p.grad is not None]
            found.append([total.detach(), torch.as_tensor(count), *gradients])
            assert isinstance(count, torch.Tensor) is capturing
        for usual, other in zip(*found, strict=True):
            torch.testing.assert_close(usual, other, rtol=1e-4, atol=1e-5)


# What is decayed ----------------------------------------------------------------------------------


def decayed(model) -> list[str]:
    """Names of the matrices and kernels that shrink where no gradient moves them."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
    batch = ImageBatch(torch.zeros(1), torch.zeros(1))

    def flat(model, batch):
        return 0 * sum(p.sum() for p in model.parameters()), 1

    Trainer(flat, epochs=1, lr=0.1, weight_decay=0.5, device="cpu").fit(model, [batch])
    return [name for name, p in model.named_parameters() if (p < 1).all()]


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (ViT(num_layers=1), {"class_token", "positions.table"}),
        (GPT(20, embed_dim=8, num_heads=2, ffn_dim=8, num_layers=1), {"positions.weight"}),
        (small_model(), set()),
    ],
    ids=["ViT", "GPT", "Transformer"],
)
def test_weights_decay_and_biases_norms_class_token_and_positions_do_not(model, kept):
    names = {name for name, p in model.named_parameters() if p.ndim >= 2}
    assert set(decayed(model)) == names - kept


# The loss ---------------------------------------------------------------------------------------


def test_the_loss_does_not_depend_on_how_far_a_batch_is_padded():
    model = small_model().eval()
    encoded = [(SOURCE.encode(p.source), TARGET.encode(p.target)) for p in PAIRS[:8]]
    together, count = translation_loss()(model, collate(encoded))
    alone = [translation_loss()(model, collate([pair])) for pair in encoded]
    torch.testing.assert_close(together, sum(loss for loss, _ in alone))
    assert count == sum(n for _, n in alone) == sum(len(target) + 1 for _, target in encoded)


def test_the_loss_is_the_cross_entropy_of_pytorch_over_real_tokens():
    model = small_model().eval()
    batch = collate([(SOURCE.encode(p.source), TARGET.encode(p.target)) for p in PAIRS[:8]])
    loss, count = translation_loss(label_smoothing=0.1)(model, batch)
    logits = model(batch.source, batch.source_lens, batch.target_in)
    expected = nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
    )
    torch.testing.assert_close(loss / count, expected)


# Schedules --------------------------------------------------------------------------------------


def test_inverse_sqrt_is_the_papers_formula_up_to_its_peak():
    schedule, embed_dim, warmup = inverse_sqrt(400), 512, 400
    for step in (1, 200, 400, 401, 4000):
        paper = embed_dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert schedule(step) * (embed_dim * warmup) ** -0.5 == pytest.approx(paper)


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50))
def test_warmup_hold_decay_rises_holds_and_falls(warmup, hold, decay):
    total = warmup + hold + decay
    factors = [warmup_hold_decay(warmup, decay, total)(step) for step in range(1, total + 2)]
    rising = [step / warmup for step in range(1, warmup)]
    falling = [left / (decay + 1) for left in range(decay, -1, -1)]
    assert factors == pytest.approx([*rising, *[1.0] * (hold + 1), *falling])


def test_the_rate_follows_the_schedule_step_by_step():
    rates = []

    def recording(step):
        rates.append(step)
        return 1 / step

    history = Trainer(translation_loss(), epochs=2, lr=0.01, schedule=recording).fit(
        small_model(), loader()
    )
    assert rates == list(range(1, 2 * len(loader()) + 1))
    assert history.rows[-1]["lr"] == pytest.approx(0.01 / rates[-1])


def fit(train, model=None, **settings):
    return Trainer(translation_loss(), **settings).fit(model or small_model(), train)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fit([], epochs=0), ValueError, "epochs=0; a positive"),
        (lambda: fit([], epochs=2.5), TypeError, "epochs=2.5; a whole number is needed"),
        (lambda: fit([], lr=-1.0), ValueError, "lr=-1.0; a positive"),
        (lambda: fit([], clip_norm=0), ValueError, "clip_norm=0; a positive"),
        (lambda: fit([]), ValueError, "train is empty"),
        (lambda: fit(batch for batch in loader()), TypeError, "train is a generator, which has no length"),
        (lambda: fit(loader(), patience=1), ValueError, "and keep_best need val"),
        (lambda: fit(loader(), nn.Identity()), ValueError, "Identity has no parameter"),
        (lambda: Trainer(translation_loss()).fit(small_model(), loader(), resume=True), ValueError, "needs checkpoint="),
        (lambda: Trainer(translation_loss()).evaluate(small_model(), []), ValueError, "batches is empty"),
        (lambda: translation_loss(label_smoothing=1.0), ValueError, "label_smoothing=1.0; 0 <="),
        (lambda: inverse_sqrt(0), ValueError, "warmup=0; at least 1"),
        (lambda: warmup_decay(5, 5), ValueError, "warmup=5, total=5; 0 <="),
        (lambda: warmup_hold_decay(5, 3, 7), ValueError, "warmup=5 and decay=3 do not fit in total=7"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("version", [7, None])
def test_without_ipywidgets_8_a_training_in_a_notebook_says_its_line_at_the_end(
    monkeypatch, version
):
    monkeypatch.setattr("course_utils.train.bar.in_notebook", lambda: True)
    old = types.SimpleNamespace(Widget=object) if version else None
    monkeypatch.setitem(sys.modules, "ipywidgets", old)
    with training_bar(1, 1) as bar:
        assert type(bar) is TrainingBar
