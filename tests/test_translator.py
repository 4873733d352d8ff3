"""What *Start here* quotes of its translator, tables and slider."""

import pytest
from stored_models import network, words

import course_utils as cu
from course_utils.lessons.start_here.translation import LONGEST, forbid, translate


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


def test_what_the_chapter_says_of_weights_and_of_words_forbidden():
    found = translate("She has a red car.")
    assert found.source == ["she", "has", "a", "red", "car", ".", "<eos>"]
    weight = found.cross[1, 0, found.says.index("une"), found.source.index("car")]
    assert round(weight.item(), 2) == 0.89
    shown = forbid("She has a red car.", "car").loc["une"].tolist()
    assert shown == pytest.approx([0.89, 1.0, 0.99, 0.56])
    hid = translate("She found a key and hid it.")
    assert hid.cross[1, :, hid.says.index("mangée")].mean(dim=0)[hid.source.index("hid")] > 0.5
    assert "little" not in words("source") and len(words("source")) - 4 == 833


@pytest.mark.parametrize(
    ("sentence", "word", "says"),
    [
        ("She has a red car.", "she", "ta fille a une voiture rouge ."),
        ("She has a red car.", "car", "elle a une actrice rouge ."),
        ("I don't like the small house.", "don't", "j'aime la petite maison ."),
        ("Where is my book?", "my", "où est son livre ?"),
        ("The old woman is sleeping.", "woman", "le vieil vieux dort ."),
    ],
)
def test_without_a_word_it_says_what_the_exercise_asks_for(sentence, word, says):
    assert " ".join(translate(sentence, word).says[:-1]) == says


@pytest.mark.parametrize(
    "sentence", ["", "  ", "ж", "SHE HAS A RED CAR", "she has a wuman", "car " * 90, "?"]
)
@pytest.mark.parametrize("word", ["car", "", "bus", "ж"])
def test_what_the_page_takes_the_cells_take(sentence, word):
    table = forbid(sentence, word)
    assert table.index[-1] == "<eos>" and len(table) <= LONGEST + 1
    assert table.iloc[:, 1].between(0, 1).all()


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
