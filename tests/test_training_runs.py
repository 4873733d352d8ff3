"""*Training transformers*'s recorded trainings and its first generation of translators."""

import pytest
import torch

import course_utils as cu
from course_utils.data.text import EOS
from course_utils.lessons.training_transformers.runs import load_training_runs
from course_utils.lessons.training_transformers.variants import FirstGeneration


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    source, target = torch.randint(4, 20, (3, 6)), torch.randint(4, 20, (3, 5))
    return source, torch.tensor([6, 4, 2]), target


# The first generation ---------------------------------------------------------------------------


def test_the_first_generation_hides_later_words_and_decodes_as_it_was_trained():
    torch.manual_seed(0)
    model = FirstGeneration(20, 20, embed_dim=16, num_heads=2, length=8)
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
        bleu = {
            run["warmup"]: run["bleu"]
            for run in load_training_runs()
            if all(run[name] == value for name, value in chosen.items())
        }
        assert bleu[0] < 0.1 and bleu[50] >= 0.8


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
