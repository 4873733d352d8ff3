"""Translators: equal to PyTorch's layers, blind to padding and to the future, the same step by step."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.cache import KVCache
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention

SIZES = {"embed_dim": 16, "num_heads": 4, "ffn_dim": 24}


def translators():
    return {
        "fixed context": RecurrentTranslator(20, 22, embed_dim=8, hidden_dim=12),
        "attention": AttentionTranslator(20, 22, embed_dim=8, hidden_dim=12),
        "fixed context, stacked": RecurrentTranslator(
            20, 22, embed_dim=8, hidden_dim=12, num_layers=2
        ),
        "attention, stacked": AttentionTranslator(20, 22, embed_dim=8, hidden_dim=12, num_layers=3),
        "pre-norm": Transformer(20, 22, **SIZES, norm_first=True),
        "post-norm": Transformer(20, 22, **SIZES, norm_first=False),
    }


@pytest.fixture(params=translators())
def model(request):
    torch.manual_seed(1)
    return translators()[request.param]


SOURCE = torch.tensor([[5, 6, 7, 8, 9, 3], [5, 6, 3, 0, 0, 0], [4, 3, 0, 0, 0, 0]])
LENGTHS = torch.tensor([6, 3, 2])
TARGET = torch.tensor([[2, 5, 6, 7, 8], [2, 9, 9, 4, 5], [2, 4, 6, 8, 10]])


def test_step_by_step_logits_equal_teacher_forced_ones(model):
    model.eval()
    state = model.start(SOURCE, LENGTHS)
    steps = torch.stack([model.step(tokens, state) for tokens in TARGET.unbind(1)], dim=1)
    torch.testing.assert_close(steps, model(SOURCE, LENGTHS, TARGET), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("training", [False, True])
def test_future_tokens_do_not_change_earlier_logits(model, training):
    model.train(training)

    def logits(target):
        torch.manual_seed(3)
        return model(SOURCE, LENGTHS, target)

    before = logits(TARGET)
    for changed in range(1, 5):
        other = TARGET.clone()
        other[:, changed] = 11
        after = logits(other)
        assert torch.equal(before[:, :changed], after[:, :changed])
        assert not torch.equal(before[:, changed], after[:, changed])


def test_padding_of_the_source_changes_nothing_and_each_sentence_is_as_if_alone(model):
    model.eval()
    together = model(SOURCE, LENGTHS, TARGET)
    other = SOURCE.masked_fill(torch.arange(6) >= LENGTHS[:, None], 13)
    assert torch.equal(model(other, LENGTHS, TARGET), together)
    wider = torch.cat([SOURCE, torch.zeros(3, 4, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(wider, LENGTHS, TARGET), together, atol=1e-5, rtol=1e-4)
    for row, n in enumerate(LENGTHS):
        alone = model(SOURCE[row : row + 1, :n], LENGTHS[row : row + 1], TARGET[row : row + 1])
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=1e-4)


def test_beams_repeat_their_sentence_and_go_on_from_each_other(model):
    model.eval()
    state = model.start(SOURCE, LENGTHS)
    state.repeat(2)
    memory = state.memory
    first = TARGET[:, 0].repeat_interleave(2)
    second = torch.tensor([5, 7, 9, 4, 6, 8])
    model.step(first, state)
    model.step(second, state)
    state.reorder(rows := torch.tensor([1, 1, 2, 3, 5, 4]))
    assert state.memory is memory  # the same for all beams of a sentence
    third = torch.tensor([6, 6, 4, 8, 9, 10])
    target = torch.stack([first[rows], second[rows], third], dim=1)
    expected = model(SOURCE.repeat_interleave(2, 0), LENGTHS.repeat_interleave(2), target)[:, 2]
    torch.testing.assert_close(model.step(third, state), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", [RecurrentTranslator, AttentionTranslator])
def test_a_sentence_of_length_zero_is_refused(kind):
    model = kind(20, 22, embed_dim=8, hidden_dim=12)
    with pytest.raises(ValueError, match="source_lens contains 0; each sentence needs at least 1"):
        model(SOURCE, torch.tensor([6, 0, 2]), TARGET)


def test_attention_maps_of_the_recurrent_translator_have_a_row_per_target_token():
    model = AttentionTranslator(20, 22, embed_dim=8, hidden_dim=12).eval()
    with record_attention(model) as maps:
        model(SOURCE, LENGTHS, TARGET)
        weights = maps["attention"]
        state = model.start(SOURCE, LENGTHS)
        for step, tokens in enumerate(TARGET.unbind(1)):
            model.step(tokens, state)
            torch.testing.assert_close(maps["attention"], weights[:, step : step + 1])
    assert weights.shape == (3, 5, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 5))
    assert (weights[1, :, 3:] == 0).all()


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=6))
def test_the_cache_holds_what_was_appended_whatever_the_portions_and_their_gradients(portions):
    cache, parts, seen = KVCache(), [], []
    for size, with_gradients in portions:
        parts.append(torch.randn(2, 3, size, 4))
        with torch.set_grad_enabled(with_gradients):
            seen.append((cache.append(parts[-1], -parts[-1]), torch.cat(parts, dim=2)))
    for (keys, values), expected in seen:  # what was given out before is left alone
        assert torch.equal(keys, expected)
        assert torch.equal(values, -expected)
    assert cache.length == sum(size for size, _ in portions)
    cache.repeat(2)
    cache.reorder(torch.tensor([3, 0]))
    assert torch.equal(cache.keys, torch.cat(parts, dim=2)[[1, 0]])
