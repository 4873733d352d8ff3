"""Training: learns, can be stopped, saved and resumed bit for bit, and speaks up when it diverges."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, PairLoader, collate
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import inverse_sqrt, warmup_decay
from course_utils.train.trainer import Trainer

WORDS = ["red", "green", "blue", "one", "two", "three", "cat", "dog"]


def copy_task(n=60, seed=0):
    """Pairs whose target is the source in capitals: learnable in a moment."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(n):
        length = int(torch.randint(1, 5, (1,), generator=generator))
        words = [WORDS[i] for i in torch.randint(0, len(WORDS), (length,), generator=generator)]
        pairs.append(Pair(tuple(words), tuple(word.upper() for word in words)))
    return pairs


PAIRS = copy_task()
SOURCE, TARGET = Vocabulary(p.source for p in PAIRS), Vocabulary(p.target for p in PAIRS)


def loader(**options):
    return PairLoader(PAIRS, SOURCE, TARGET, **{"batch_size": 16, **options})


def small_model():
    torch.manual_seed(4)
    return Transformer(
        len(SOURCE), len(TARGET), embed_dim=16, num_heads=2, ffn_dim=16, num_layers=1, dropout=0.2
    )


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    theirs = b.state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in a.state_dict().items())


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


def test_the_same_seed_gives_the_same_weights():
    models = [small_model(), small_model()]
    for model in models:
        Trainer(translation_loss(), epochs=2, seed=7).fit(model, loader())
    assert same_weights(*models)


def test_every_trainable_parameter_moves_in_one_epoch():
    model = AttentionTranslator(len(SOURCE), len(TARGET), embed_dim=8, hidden_dim=8)
    before = {name: p.clone() for name, p in model.named_parameters()}
    Trainer(translation_loss(), epochs=1, lr=1e-2).fit(model, loader())
    assert not [name for name, p in model.named_parameters() if torch.equal(p, before[name])]


@pytest.mark.parametrize("stop_after", [1, 4, 5, 7, 8])
def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one(tmp_path, stop_after):
    path = tmp_path / "run.pt"
    whole, halves = small_model(), small_model()
    expected = Trainer(translation_loss(), epochs=3, seed=1).fit(
        whole, loader(), loader(shuffle=False)
    )

    calls = []

    def interrupting(model, batch):
        calls.append(1)
        if len(calls) == stop_after:
            signal.raise_signal(signal.SIGINT)
        return translation_loss()(model, batch)

    def trainer(loss):
        return Trainer(loss, epochs=3, seed=1, checkpoint=path)

    stopped = trainer(interrupting).fit(halves, loader())
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
    def interrupting(model, batch):
        signal.raise_signal(signal.SIGINT)
        return translation_loss()(model, batch)

    model = small_model()
    history = Trainer(interrupting, epochs=3).fit(model, loader())
    assert history.stopped == "interrupted" and len(history) == 0
    assert all(p.isfinite().all() for p in model.parameters())
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_training_works_outside_the_main_thread():
    done = []
    thread = threading.Thread(
        target=lambda: done.append(
            Trainer(translation_loss(), epochs=1).fit(small_model(), loader())
        )
    )
    thread.start()
    thread.join(60)
    assert done[0].stopped == "finished"


def test_a_kill_at_any_moment_leaves_a_loadable_checkpoint(tmp_path):
    path = tmp_path / "run.pt"
    script = f"""
import sys; sys.path[:0] = {[os.getcwd(), os.path.join(os.getcwd(), "tests")]!r}
from test_training import *
Trainer(translation_loss(), epochs=10**6, checkpoint={str(path)!r}).fit(small_model(), loader())
"""
    for wait in (0.05, 0.11, 0.23):
        process = subprocess.Popen([sys.executable, "-c", script])
        try:
            deadline = time.monotonic() + 60
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(wait)
        finally:
            process.kill()
            process.wait()
        state = torch.load(path, weights_only=True)
        small_model().load_state_dict(state["model"])
        path.unlink()


def test_a_failing_write_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    trainer = Trainer(translation_loss(), epochs=1, checkpoint=path)
    trainer.fit(small_model(), loader())
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("course_utils.train.trainer.torch.save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trainer.fit(small_model(), loader())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


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


def test_a_diverging_run_stops_with_step_rate_and_gradient():
    def exploding(model, batch):
        loss, count = translation_loss()(model, batch)
        exploding.step += 1
        return (loss * math.nan if exploding.step == 3 else loss), count

    exploding.step = 0
    sentence = r"the loss is nan at step 3; learning rate 0.5, gradient norm \d"
    with pytest.raises(FloatingPointError, match=sentence):
        Trainer(exploding, epochs=2, lr=0.5).fit(small_model(), loader())


def test_training_stops_early_and_ends_with_the_best_weights():
    losses = iter([3.0, 2.0, 2.5, 2.4, 9.9])
    model = small_model()
    trainer = Trainer(translation_loss(), epochs=5, patience=2, keep_best=True, lr=1e-2)
    seen = []

    def evaluate(model, batches):
        seen.append({name: p.clone() for name, p in model.state_dict().items()})
        return next(losses)

    trainer.evaluate = evaluate
    history = trainer.fit(model, loader(), [1])
    assert history.stopped == "early" and len(history) == 4
    assert all(torch.equal(p, seen[1][name]) for name, p in model.state_dict().items())


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


@given(st.integers(1, 50), st.integers(51, 500))
def test_warmup_decay_rises_to_one_and_falls_to_nearly_zero(warmup, total):
    schedule = warmup_decay(warmup, total)
    assert schedule(1) == pytest.approx(1 / warmup)
    assert schedule(warmup) == 1
    assert 0 < schedule(total) <= 1 / (total + 1 - warmup) + 1e-12
    assert schedule(total + 1) == 0


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Trainer(translation_loss(), epochs=0), "epochs=0; a positive"),
        (lambda: Trainer(translation_loss(), lr=-1.0), "lr=-1.0; a positive"),
        (lambda: Trainer(translation_loss(), clip_norm=0), "clip_norm=0; a positive"),
        (lambda: translation_loss(label_smoothing=1.0), "label_smoothing=1.0; 0 <="),
        (lambda: inverse_sqrt(0), "warmup=0; at least one"),
        (lambda: warmup_decay(5, 5), "warmup=5, total=5; 0 <="),
        (lambda: Trainer(translation_loss()).fit(small_model(), []), "train is empty"),
        (lambda: Trainer(translation_loss()).fit(nn.Identity(), loader()), "Identity has no parameter"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_quiet_run_says_nothing(capsys):
    Trainer(translation_loss(), epochs=1, quiet=True).fit(small_model(), loader())
    assert capsys.readouterr() == ("", "")
    Trainer(translation_loss(), epochs=1).fit(small_model(), loader())
    assert "1 epochs" in capsys.readouterr().err
