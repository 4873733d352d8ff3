"""The sentences of *Self-attention*: what fits, what is meant, and what each place holds."""

import torch

from course_utils.lessons.self_attention.tasks import (
    ADJECTIVE,
    ADJECTIVES,
    IT,
    NOUN_PLACES,
    NOUNS,
    VOCABULARY,
    make_sentences,
)


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
