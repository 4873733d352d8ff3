"""What *Start here* quotes of its translator, tables and slider; unknown words, and lines that it cannot take."""

import numpy as np
import pytest
import torch

import course_utils as cu
from course_utils.lessons.start_here.explorer import EXAMPLES, translate
from course_utils.lessons.start_here.shapes import shapes


@pytest.mark.parametrize(
    ("sentence", "french"),
    [
        ("She has a red car.", "elle a une voiture rouge ."),
        ("I'm home.", "je suis chez moi ."),
        ("She found a key and hid it.", "elle a trouvé une clé et elle l'a mangée ."),
        ("The black cat drinks milk.", "le chat boit du lait ."),
        ("The little girl eats the red apple.", "la fille timide mange l'église rouge ."),
    ],
)
def test_it_says_what_the_chapter_quotes(sentence, french):
    assert sentence in EXAMPLES
    assert translate(sentence).target == [*french.split(), "<eos>"]


def test_each_french_word_has_weights_over_the_english_ones():
    found = translate("she has a red car")
    assert found.source == ["she", "has", "a", "red", "car", ".", "<eos>"]  # an end is added
    assert found.weights.shape == (len(found.target), len(found.source))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)
    row = found.weights[found.target.index("rouge")]
    assert found.source[row.argmax()] == "red" and round(float(row.max()), 2) == 0.87


def test_what_the_chapter_says_of_single_weights_and_words():
    found = translate(EXAMPLES[0])
    heads = found.heads[:, found.target.index("une")]
    assert [found.source[place] for place in heads.argmax(axis=1)] == ["car", "a", "a", "a"]
    np.testing.assert_allclose(heads[:, found.source.index("car")], [0.89, 0, 0, 0], atol=0.006)
    found = translate("She found a key and hid it.")
    row = found.weights[found.target.index("mangée")]
    assert found.source[row.argmax()] == "hid" and round(float(row.max()), 2) == 0.59
    assert translate("She found a book and hid it.").target[-3] == "caché"
    assert list(translate("The little girl eats the red apple.").unknown) == ["little"]
    assert "knows 833 English words and signs" in cu.explore.translator().caption


@pytest.mark.parametrize(
    ("bird", "weights"),
    [
        (-1, "cat 0.51, dog 0.31, bird 0.07, fish 0.11"),
        (6, "cat 0.01, dog 0.00, bird 0.99, fish 0.00"),
        (-4, "cat 0.54, dog 0.33, bird 0.00, fish 0.12"),
    ],
)
def test_the_first_slider_gives_the_weights_that_the_chapter_quotes(bird, weights):
    assert weights in cu.explore.first_slider().frame(bird=bird)[1]


def test_shapes_and_entries_of_expressions_stand_in_a_table():
    table = shapes("x", "x.sum(dim=1, keepdim=True) / 3", x=torch.tensor([[1, 1], [1, 0]]))
    assert table["shape"].tolist() == [(2, 2), (2, 1)]
    assert table["entries"].tolist() == [[[1, 1], [1, 0]], [[0.67], [0.33]]]


def test_an_unknown_word_is_named_with_known_ones_of_similar_spelling():
    assert translate("I like old horzes.").unknown["horzes"][0] == "horses"
    assert translate(EXAMPLES[0]).unknown == {}
    alt = cu.explore.translator("I like old horzes.").frame()[1]
    assert "does not know “horzes”; it knows horses" in alt
    alt = cu.explore.translator("I like zzzzzz.").frame()[1]
    assert "does not know “zzzzzz”, nor any word that is spelled alike" in alt


@pytest.mark.parametrize(
    ("sentence", "message"),
    [("Xyz qqq!", "none of these words"), (12 * "the ", "13 words and signs; at most 12")],
)
def test_a_sentence_that_it_cannot_take_is_said(sentence, message):
    with pytest.raises(ValueError, match=message):
        translate(sentence)
