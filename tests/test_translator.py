"""What *Start here* quotes of its translator, tables and slider."""

import pytest
import torch
from stored_models import network, words

import course_utils as cu
from course_utils.lessons.start_here.shapes import shapes
from course_utils.lessons.start_here.translation import translate


@pytest.mark.parametrize(
    ("sentence", "french"),
    [
        ("She has a red car.", "elle a une voiture rouge ."),
        ("She found a key and hid it.", "elle a trouvé une clé et elle l'a mangée ."),
        ("The black cat drinks milk.", "le chat boit du lait ."),
        ("The little girl eats the red apple.", "la fille timide mange l'église rouge ."),
    ],
)
def test_it_says_what_the_chapter_quotes(sentence, french):
    said = cu.translate(network("translator_fr"), [sentence], words("source"), words("target"))
    assert said == [french]


def test_what_the_chapter_says_of_single_weights_and_words():
    found = translate("She has a red car.")
    assert found.source == ["she", "has", "a", "red", "car", ".", "<eos>"]
    heads = found.cross[1, :, found.says.index("une")]
    assert [found.source[place] for place in heads.argmax(dim=1)] == ["car", "a", "a", "a"]
    found = translate("She found a key and hid it.")
    row = found.cross[1, :, found.says.index("mangée")].mean(dim=0)
    assert found.source[row.argmax()] == "hid" and round(row.max().item(), 2) == 0.59
    assert translate("She found a book and hid it.").says[-3] == "caché"
    assert "little" not in words("source") and len(words("source")) - 4 == 833


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
