"""The word table of *Self-attention*: what it holds, how it is read, and what it says about a broken file."""

import pytest
import torch

from course_utils.lessons.self_attention.words import load_words


@pytest.fixture
def table():
    return load_words()


def test_the_table_holds_seven_features_between_0_and_1_of_different_words(table):
    assert table.features.shape == (len(table), 7) == (24, 7)
    assert len(table.names) == 7 and len(set(table.words)) == 24
    assert table.features.min() == 0 and table.features.max() == 1


def test_one_word_gives_a_row_and_several_give_a_matrix(table):
    assert table["cat"].shape == (7,)
    torch.testing.assert_close(table[["dog", "cat"]][1], table["cat"])


def test_a_row_is_a_copy(table):
    table["cat"].zero_()
    table[["cat"]].zero_()
    assert table["cat"].sum() > 0


def test_an_unknown_word_is_answered_with_the_nearest(table):
    with pytest.raises(KeyError, match="did you mean 'kitten'"):
        table["kiten"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1"),
        ("word,size\n", "no words"),
        ("word,size\ncat,1\ncat,0\n", "line 3: word 'cat' is empty or there twice"),
        ("word,size\ncat,0.1,0.2\n", "line 2: 'cat' has 2 features, not 1"),
        ("word,size\ncat,big\n", "line 2: 'cat' has feature 'big'; a number between 0 and 1"),
        ("word,size\ncat,1.5\n", "feature '1.5'"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "words.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_words(path)
