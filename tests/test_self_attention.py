"""What *Self-attention* asks and counts: its sentences say what their targets are, and products wait as by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.lessons.self_attention.layers import waiting_products
from course_utils.lessons.self_attention.tasks import (
    ADJECTIVE,
    ADJECTIVES,
    COLORS,
    IT,
    NOUN_PLACES,
    NOUNS,
    TEXTS,
    VOCABULARY,
    counting,
    friends,
    from_the_last_word,
    load_words,
    make_sentences,
    owners,
)

# Cars and friends ---------------------------------------------------------------------------------


def _read(draw, **options):
    tokens, targets = draw(50, torch.Generator().manual_seed(0), **options)
    assert (targets[:, :-1] == -100).all()
    for row, target in zip(tokens.tolist(), targets[:, -1].tolist(), strict=True):
        *told, question = (TEXTS[token] for token in row)
        yield dict(sentence.split(" is ") for sentence in told), question[:-3], COLORS[target]


def test_the_asked_car_has_the_color_of_the_target():
    for told, asked, color in _read(owners, pairs=12):
        assert len(told) == 12 and told[f"{asked}'s car"] == color


def test_the_asked_friends_car_has_the_color_of_the_target():
    for told, asked, color in _read(friends):
        friend = told[f"{asked}'s friend"]
        assert told[f"{friend}'s car"] == color


def test_one_who_counts_is_right_with_one_car_and_above_a_guess_with_twelve():
    assert counting(1) == 1 and 1 / 8 < counting(12) < 0.35


# Sentences whose nouns agree ----------------------------------------------------------------------


def test_it_means_the_only_noun_that_the_adjective_fits_and_has_its_gender():
    train, test = make_sentences(50, 50)
    for part in (train, test):
        for row in range(50):
            words = part.words(row)
            (kind,) = (k for k, fitting in ADJECTIVES.items() if words[ADJECTIVE] in fitting)
            (meant,) = (p for p in NOUN_PLACES if any(words[p] in same for same in NOUNS[kind]))
            assert words[IT] == "it" and part.meant[row] == meant
            assert words[meant] in NOUNS[kind][part.gender[row]]


def test_no_sentence_comes_twice_and_the_seed_decides():
    train, test = make_sentences(300, 100, seed=1)
    together = torch.cat([train.tokens, test.tokens])
    assert len(together.unique(dim=0)) == 400
    assert torch.equal(make_sentences(300, 100, seed=1)[1].tokens, test.tokens)
    assert not torch.equal(make_sentences(300, 100, seed=2)[1].tokens, test.tokens)


def test_genders_and_places_of_the_meant_noun_are_even():
    train, _ = make_sentences(4000, 1)
    assert abs(train.gender.float().mean() - 0.5) < 0.03
    assert all(abs((train.meant == place).float().mean() - 0.25) < 0.03 for place in NOUN_PLACES)
    assert train.tokens.max() == len(VOCABULARY) - 1


# Words --------------------------------------------------------------------------------------------


def test_the_table_holds_seven_features_between_0_and_1_of_different_words():
    table = load_words()
    assert table.features.shape == (len(table.words), len(table.names)) == (24, 7)
    assert len(set(table.names)) == 7 and len(set(table.words)) == 24
    assert table.features.min() == 0 and table.features.max() == 1


def test_of_three_words_one_is_a_coin_and_past_the_end_nothing_counts():
    text = torch.tensor([[0, 1, 2], [0, 2, -100]])
    assert from_the_last_word(text) == pytest.approx(2 * math.log(2) / 3)


# Products that wait for each other ----------------------------------------------------------------


def test_products_that_need_nothing_from_each_other_wait_once():
    x, a, b = torch.randn(5, 4), *torch.randn(2, 4, 4, requires_grad=True)
    assert waiting_products(x @ a + x @ b) == 1
    assert waiting_products((x @ a) @ b) == 2
    assert waiting_products((x @ a).tanh() * (x @ b @ a)) == 2


@pytest.mark.parametrize("n", [1, 7])
def test_a_recurrence_waits_at_each_step_and_attention_does_not(n):
    x, square = torch.randn(1, n, 4), torch.randn(4, 4, requires_grad=True)
    state = x[:, 0] @ square
    for place in range(1, n):
        state = (x[:, place] @ square + state @ square).tanh()
    assert waiting_products(state) == n
    qkv = [x @ square for _ in range(3)]
    written_out = (qkv[0] @ qkv[1].mT).softmax(dim=-1) @ qkv[2]
    fused = F.scaled_dot_product_attention(*qkv)
    assert waiting_products(written_out) == waiting_products(fused) == 3


def test_a_convolution_and_a_linear_layer_are_one_product_each():
    x = torch.randn(2, 3, 8)
    assert waiting_products(nn.Linear(8, 2)(nn.Conv1d(3, 5, 3, padding=1)(x))) == 2


def test_what_was_computed_without_gradients_has_no_graph():
    with pytest.raises(ValueError, match="output has no graph"):
        waiting_products(torch.ones(2))
