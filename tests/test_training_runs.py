"""*Training transformers*'s recorded trainings and small corpus, and the shortcuts that it measures."""

import math

import pytest
import torch

from course_utils.attention import MultiHeadAttention, padding_mask
from course_utils.data.text import EOS
from course_utils.data.translation import load_grammar
from course_utils.lessons.training_transformers.explorer import RATES, WARMUPS, factor, warmup
from course_utils.lessons.training_transformers.runs import load_training_runs, rate
from course_utils.lessons.training_transformers.small_spanish import (
    common_pairs,
    entropy_given,
    small_spanish,
    spanish_world,
)
from course_utils.lessons.training_transformers.variants import (
    SHORTCUTS,
    FirstGeneration,
    take_shortcut,
)
from course_utils.models.transformer import Transformer
from course_utils.train.schedules import inverse_sqrt


def small_model(norm_first: bool = False) -> Transformer:
    torch.manual_seed(0)
    sizes = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 32, "num_layers": 2, "dropout": 0.0}
    return Transformer(20, 20, norm_first=norm_first, **sizes).eval()


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    source, target = torch.randint(4, 20, (3, 6)), torch.randint(4, 20, (3, 5))
    return source, torch.tensor([6, 4, 2]), target


# The small corpus -------------------------------------------------------------------------------


def test_the_small_corpus_holds_common_words_and_short_sentences():
    parts = small_spanish()
    assert [len(part) for part in parts] == [3253, 200, 200]
    assert len({token for part in parts for pair in part for token in pair.source}) <= 200
    assert max(len(pair.target) for part in parts for pair in part) <= 8
    sources = [pair for part in parts for pair in {pair.source for pair in part}]
    assert len(sources) == len(set(sources)), "a sentence stands in two parts"


def test_too_narrow_a_choice_of_words_is_refused():
    with pytest.raises(ValueError, match="words=1, max_tokens=3 leave no pair"):
        common_pairs(load_grammar("es"), words=1, max_tokens=3)


def test_the_worlds_batches_go_on_pass_after_pass():
    world = spanish_world()
    batches = list(world.batches(57))
    assert sum(len(batch.source) for batch in batches[:56]) == len(world.train)
    assert len(list(world.batches(3))) == 3 and len(world.whole(world.val).source) == 200


def test_a_context_tells_what_its_counts_say():
    assert entropy_given([0, 0], ["a", "b"]) == pytest.approx(math.log(2))
    assert entropy_given(list("xxxy"), list("aabb")) == pytest.approx(0.4774, abs=1e-4)


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


def test_the_runs_the_explorer_and_the_library_have_one_schedule():
    for steps in WARMUPS:
        assert all(math.isclose(rate(step, steps), factor(step, steps)) for step in range(1, 281))
    for steps in (50, 100):
        library = inverse_sqrt(steps)
        assert all(math.isclose(library(step), factor(step, steps)) for step in range(1, 281))
    assert factor(1, 0) == factor(50, 0) == 1


def test_an_explorer_without_all_its_runs_says_which_is_missing():
    runs = [run for run in load_training_runs() if run["lr"] != RATES[0]]
    with pytest.raises(ValueError, match=f"lacks .* = \\(False, {RATES[0]}"):
        warmup(runs)


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


@pytest.mark.parametrize("shortcut", ["scaled after softmax", "zeroed mask"])
def test_a_shortcut_puts_another_attention_in_the_place_of_the_old_with_its_weights(shortcut):
    model = small_model()
    old = model.decoder[0].cross_attention
    new = take_shortcut(model, shortcut).decoder[0].cross_attention
    assert type(old) is MultiHeadAttention and type(new) is not MultiHeadAttention
    for mine, theirs in zip(new.parameters(), old.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_zeroed_padding_takes_part():
    model, lens = take_shortcut(small_model(), "zeroed mask"), torch.tensor([3])
    attention = model.encoder[0].attention
    x = torch.randn(1, 5, 16)
    masked = attention(x, x, x, padding_mask(lens, 5))
    changed = torch.cat([x[:, :3], torch.randn(1, 2, 16)], dim=1)
    torch.testing.assert_close(attention(x, changed, changed, padding_mask(lens, 5)), masked)
    shorter = attention(x, x[:, :3], x[:, :3], padding_mask(lens, 3))
    assert not torch.allclose(shorter, masked, atol=1e-4)


def test_an_unknown_shortcut_is_refused():
    with pytest.raises(ValueError, match="shortcut='none' is unknown"):
        take_shortcut(small_model(), "none")
