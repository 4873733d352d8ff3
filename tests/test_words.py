"""The word table of *Self-attention*: what it holds."""

from course_utils.lessons.self_attention.words import load_words


def test_the_table_holds_seven_features_between_0_and_1_of_different_words():
    table = load_words()
    assert table.features.shape == (len(table.words), len(table.names)) == (24, 7)
    assert len(set(table.names)) == 7 and len(set(table.words)) == 24
    assert table.features.min() == 0 and table.features.max() == 1
