"""The translator of *Start here*: what the chapter quotes, unknown words, and lines that it cannot take."""

import numpy as np
import pytest

import course_utils as cu
from course_utils.lessons.start_here.explorer import EXAMPLES, translate


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
