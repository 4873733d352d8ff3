"""*Training transformers*'s recorded trainings and small corpus, and the shortcuts that it measures."""

import pytest
import torch

import course_utils as cu
from course_utils.attention import padding_mask
from course_utils.data.text import EOS
from course_utils.lessons.training_transformers.runs import load_training_runs
from course_utils.lessons.training_transformers.variants import (
    SHORTCUTS,
    FirstGeneration,
    take_shortcut,
)
from course_utils.models.transformer import Transformer


def small_model(norm_first: bool = False) -> Transformer:
    torch.manual_seed(0)
    sizes = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 32, "num_layers": 2, "dropout": 0.0}
    return Transformer(20, 20, norm_first=norm_first, **sizes).eval()


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    source, target = torch.randint(4, 20, (3, 6)), torch.randint(4, 20, (3, 5))
    return source, torch.tensor([6, 4, 2]), target


# The first generation ---------------------------------------------------------------------------


@pytest.mark.parametrize("feature_mask", [True, False])
def test_the_first_generation_hides_later_words_and_decodes_as_it_was_trained(feature_mask):
    torch.manual_seed(0)
    model = FirstGeneration(20, 20, embed_dim=16, num_heads=2, length=8, feature_mask=feature_mask)
    source, lens, target = sentences()
    with torch.no_grad():
        at_once = model(source, lens, target)
        changed = target.clone()
        changed[:, -1] = 4
        torch.testing.assert_close(model(source, lens, changed)[:, :-1], at_once[:, :-1])
        state = model.start(source, lens)
        steps = [model.step(tokens, state) for tokens in target.T]
        torch.testing.assert_close(torch.stack(steps, dim=1), at_once, atol=1e-5, rtol=1e-4)
        for _ in range(3):
            last = model.step(target[:, 0], state)
    assert (last.argmax(dim=-1) == EOS).all()


# The recorded runs ------------------------------------------------------------------------------


def test_post_norm_fails_without_warmup_and_learns_with_it_for_three_seeds():
    for seed in range(3):
        chosen = {"norm_first": False, "lr": 6e-3, "seed": seed, "label_smoothing": 0.0}
        chosen |= {"sentences": 3253, "shortcut": ""}
        bleu = {
            run["warmup"]: run["bleu"]
            for run in load_training_runs()
            if all(run[name] == value for name, value in chosen.items())
        }
        assert bleu[0] < 0.1 and bleu[50] >= 0.8


# The shortcuts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_a_shortcut_changes_the_outputs_decodes_as_it_was_trained_and_still_learns(shortcut):
    model = take_shortcut(small_model(), shortcut)
    source, lens, target = sentences()
    outputs = model(source, lens, target)
    assert outputs.isfinite().all() and not torch.allclose(outputs, small_model()(*sentences()))
    state = model.start(source, lens)
    with torch.no_grad():
        logits = [model.step(tokens, state) for tokens in target.T]
    torch.testing.assert_close(torch.stack(logits, dim=1), outputs, atol=1e-5, rtol=1e-4)
    outputs.sin().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_zeroed_padding_takes_part():
    model, lens = take_shortcut(small_model(), "zeroed mask"), torch.tensor([3])
    attention = model.encoder[0].attention
    x = torch.randn(1, 5, 16)
    masked = attention(x, x, x, padding_mask(lens, 5))
    changed = torch.cat([x[:, :3], torch.randn(1, 2, 16)], dim=1)
    torch.testing.assert_close(attention(x, changed, changed, padding_mask(lens, 5)), masked)
    shorter = attention(x, x[:, :3], x[:, :3], padding_mask(lens, 3))
    assert not torch.allclose(shorter, masked, atol=1e-4)


# A right answer in another order ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_scheduler_that_steps_before_the_optimizer_passes_if_its_rates_are_right():
    def scheduler_first(model, batches, loss, *, epochs, lr, schedule):
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
        rates = []
        for batch in batches * epochs:
            scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
        return rates

    report = cu.checks.fixed_fit(scheduler_first)
    assert report.passed, repr(report)
