"""What *Self-attention* asks and counts: its sentences say what their targets are, and products wait as by hand."""

import pytest
import torch
from torch.nn import functional as F

from course_utils.lessons.self_attention.explorer import Cars
from course_utils.lessons.self_attention.genders import (
    ADJECTIVE,
    ADJECTIVES,
    IT,
    NOUN_PLACES,
    NOUNS,
    make_sentences,
)
from course_utils.lessons.self_attention.matrix_products import waiting_products
from course_utils.lessons.self_attention.tasks import COLORS, TEXTS, friends, owners

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


# Products that wait for each other ----------------------------------------------------------------


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


def test_the_opening_shows_only_as_many_cars_as_the_slider_has_reached():
    cars = Cars()
    for reached, pairs in enumerate((2, 4, 12), start=1):
        cars.draw(pairs)
        assert all(len(curve.get_xdata()) == reached for curve in cars.curves.values())
