"""The small world keeps its promises, and links are read off maps as the docstrings say."""

import pytest
import torch
from torch.testing import assert_close

from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    links_both_ways,
    links_of,
)
from course_utils.lessons.sequence_to_sequence.real import word_maps
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world
from course_utils.models.recurrent import AttentionTranslator


@pytest.fixture(scope="module")
def world():
    return small_world("fr", words=120, held_out=90)


@pytest.fixture(scope="module")
def model(world):
    torch.manual_seed(0)
    return AttentionTranslator(
        len(world.source_vocab), len(world.target_vocab), embed_dim=8, hidden_dim=8
    )


def test_no_source_sentence_is_in_two_parts(world):
    train, val, test = (
        {pair.source for pair in part} for part in (world.train, world.val, world.test)
    )
    assert not train & val and not train & test and not val & test
    assert len(val) == 30 and len(test) == 60


def test_the_four_sentences_are_in_the_training_data_in_both_languages():
    for language in ("fr", "es"):
        sources = {" ".join(pair.source) for pair in small_world(language).train}
        assert sources.issuperset(FOUR)


def test_all_held_out_pairs_have_gold_links_and_known_words(world):
    for pair in world.val + world.test:
        assert pair.alignment
        assert all(word in world.source_vocab for word in pair.source)


def test_references_hold_every_translation(world):
    expected = "va !|vas-y !|pars !|allez !|allez-y !|partez !"
    assert world.references["go ."] == set(expected.split("|"))


def test_maps_are_of_words_over_words_whatever_the_batch_and_the_mode_is_kept(world, model):
    model.train()
    pairs, vocabularies = world.test[:9], (world.source_vocab, world.target_vocab)
    together = word_maps(model, pairs, *vocabularies)
    alone = word_maps(model, pairs, *vocabularies, batch_size=1)
    assert model.training
    for pair, one, other in zip(pairs, together, alone, strict=True):
        assert one.shape == (len(pair.target), len(pair.source))
        assert_close(one.sum(dim=1), torch.ones(len(one)))
        assert_close(one, other)


def test_every_word_has_a_link():
    weights = torch.tensor([[0.7, 0.3, 0.0], [0.6, 0.3, 0.1]])  # (target, source)
    assert links_both_ways(weights) == {(0, 0), (0, 1), (1, 0), (2, 1)}
    assert links_of(weights) == {(0, 0), (0, 1)}
    weights = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
    links = links_both_ways(weights)
    assert {target for _, target in links} == set(range(6))
    assert {source for source, _ in links} == set(range(4))


def test_alignment_error_rate_by_hand():
    found, gold = frozenset({(0, 0), (2, 1)}), frozenset({(0, 0), (1, 1), (2, 2)})
    assert alignment_error_rate([found], [gold]) == pytest.approx(1 - 2 * 1 / 5)
    assert alignment_error_rate([gold], [gold]) == 0


def test_what_cannot_be_held_against_gold_links():
    with pytest.raises(ValueError, match="1 sentences found, 0 gold"):
        alignment_error_rate([frozenset()], [])
    with pytest.raises(ValueError, match="there are no links"):
        alignment_error_rate([frozenset()], [frozenset()])
