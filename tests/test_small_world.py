"""The small world keeps its promises, and links are read off maps as the docstrings say."""

import pytest
import torch

from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    links_of,
)
from course_utils.lessons.sequence_to_sequence.small_world import small_world


@pytest.fixture(scope="module")
def world():
    return small_world("fr", words=120, held_out=90)


def test_no_source_sentence_is_in_two_parts(world):
    train, val, test = (
        {pair.source for pair in part} for part in (world.train, world.val, world.test)
    )
    assert not train & val and not train & test and not val & test
    assert len(val) == 30 and len(test) == 60


def test_references_hold_every_translation(world):
    expected = "va !|vas-y !|pars !|allez !|allez-y !|partez !"
    assert world.references["go ."] == set(expected.split("|"))


def test_a_target_word_is_linked_to_the_word_it_looks_at_most():
    weights = torch.tensor([[0.7, 0.3, 0.0], [0.6, 0.3, 0.1]])  # (target, source)
    assert links_of(weights) == {(0, 0), (0, 1)}


def test_alignment_error_rate_by_hand():
    found, gold = frozenset({(0, 0), (2, 1)}), frozenset({(0, 0), (1, 1), (2, 2)})
    assert alignment_error_rate([found], [gold]) == pytest.approx(1 - 2 * 1 / 5)
    assert alignment_error_rate([gold], [gold]) == 0
