"""The hand-written sentences: format, typography, spelling rules and the lectures' four."""

import re
import unicodedata

import pytest

from course_utils.data.text import tokenize
from course_utils.data.translation import _file_rows, load_sentences
from course_utils.runtime import ROOT

PATH = ROOT / "data" / "translation" / "sentences.tsv"
TEXT = PATH.read_text(encoding="utf-8")
ROWS = [(row[0], row[1].split(" | "), row[2].split(" | ")) for row in _file_rows(PATH, columns=3)]
ENGLISH = [row[0] for row in ROWS]
FRENCH = [sentence for row in ROWS for sentence in row[1]]
SPANISH = [sentence for row in ROWS for sentence in row[2]]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ALLOWED = {
    "en": set(LETTERS + ",.!?'- "),
    "fr": set(LETTERS + "àâçéèêëîïôöûùüœ,.!?;:'- \u202f\u00a0"),
    "es": set(LETTERS + "áéíóúñü,.;:¡!¿? "),
}
SHARED = {  # every word that stands in both languages, by nature; a new one is looked at here
    "fr": """a anna as bus france important impossible intelligent long madrid me minute on parents
        paris patient paul police possible question questions restaurant son surprise table train
        village""",
    "es": "a anna chocolate come comes has he hospital idea madrid me no paul son ten",
}
VOWEL = "[aeiouyéèêàâîôœ]"
MUTE = "h(?:abit|eure|iver|omme|ôpital|ôtel|istoire)"  # the h that elides
FULL = "(?!onze|oui\\b)"  # words that nothing elides before
UNELIDED = [
    rf"(?<!-)\b(je|me|te|se|que|ne|de|jusque) {FULL}({MUTE}|{VOWEL})",
    rf"(?<!-)\b(le|la) {FULL}({MUTE}|{VOWEL})",
    rf"\bce ({MUTE}|{VOWEL})",
    rf"\b(ma|ta|sa|beau|nouveau|vieux) ({MUTE}|{VOWEL})",
    r"\bcet [bcdfgjklmnpqrstvwxz]",
    r"\bsi ils?\b",
    r"\b(de|à) les?\b(?! (dire|voir|faire|lire|prendre))",
    r"\bquelque un",
    r"'\s",
]


def offenders(pattern, sentences):
    return [s for s in sentences if re.search(pattern, s, re.IGNORECASE)]


def test_the_file_has_notes_then_three_columns():
    lines = TEXT.splitlines()
    notes = [line for line in lines if line.startswith("#")]
    assert lines[: len(notes)] == notes
    assert "CC BY 4.0" in "".join(notes) and "written for this course" in "".join(notes)
    assert all(line.count("\t") == 2 for line in lines[len(notes) :])
    assert unicodedata.is_normalized("NFC", TEXT)
    assert TEXT.endswith("\n") and "\r" not in TEXT and "\ufeff" not in TEXT


def test_there_are_enough_sentences_and_translations():
    assert len(ROWS) >= 900
    assert sum(len(row[1]) > 1 for row in ROWS) >= 250
    assert sum(len(row[2]) > 1 for row in ROWS) >= 250


def test_english_sentences_are_distinct():
    assert len({tuple(tokenize(sentence)) for sentence in ENGLISH}) == len(ROWS)


@pytest.mark.parametrize("column", [1, 2])
def test_translations_of_a_sentence_are_distinct(column):
    for row in ROWS:
        assert len({tuple(tokenize(text)) for text in row[column]}) == len(row[column]), row


@pytest.mark.parametrize("sentences", [ENGLISH, FRENCH, SPANISH], ids=["en", "fr", "es"])
def test_sentences_have_two_to_nine_tokens(sentences):
    assert [s for s in sentences if not 2 <= len(tokenize(s)) <= 9] == []


@pytest.mark.parametrize(
    ("language", "sentences"), [("en", ENGLISH), ("fr", FRENCH), ("es", SPANISH)]
)
def test_sentences_are_written_cleanly(language, sentences):
    for sentence in sentences:
        assert set(sentence.lower()) <= ALLOWED[language], sentence
        assert sentence == sentence.strip() and "  " not in sentence, sentence
        assert sentence.lstrip("¿¡")[0].isupper(), sentence
        assert sentence[-1] in ".!?", sentence
        assert not re.search(r" [,.]", sentence), sentence


def test_french_has_no_break_spaces_before_high_punctuation():
    assert offenders(r"[^\u202f][!?;]", FRENCH) == []
    assert offenders(r"[^\u00a0]:", FRENCH) == []
    assert offenders(r"\u202f(?![!?;])|\u00a0(?!:)", FRENCH) == []


def test_spanish_marks_open_and_close():
    for sentence in SPANISH:
        marks = re.findall(r"[¿?¡!]", sentence)
        assert "".join(marks) in {"", "¿?", "¡!"}, sentence
        assert not re.search(r"[¿¡]\s|\s[?!]", sentence), sentence


@pytest.mark.parametrize(
    ("english", "french", "spanish"),
    [
        ("Go.", "Va\u202f!", "¡Ve!"),
        ("I lost.", "J'ai perdu.", "Perdí."),
        ("He's calm.", "Il est calme.", "Está tranquilo."),
        ("I'm home.", "Je suis chez moi.", "Estoy en casa."),
    ],
)
def test_the_four_sentences_of_the_lectures_are_there(english, french, spanish):
    row = ROWS[ENGLISH.index(english)]
    assert french in row[1] and spanish in row[2]


@pytest.mark.parametrize("pattern", UNELIDED)
def test_french_elides_and_contracts(pattern):
    assert offenders(pattern, FRENCH) == []


@pytest.mark.parametrize(
    "text", ["le a", "je ai", "que il", "de un", "la eau", "ce homme", "si il"]
)
def test_the_elision_rules_find_what_they_forbid(text):
    assert any(offenders(rule, [f"Il dit {text}."]) for rule in UNELIDED)


@pytest.mark.parametrize(
    "pattern", [r"\ba el\b", r"\bde el\b", r"\by (i|hi)", r"\bo (o|ho)", r"\bcon (mí|ti)\b"]
)
def test_spanish_contracts(pattern):
    assert offenders(pattern, SPANISH) == []


@pytest.mark.parametrize(("language", "sentences"), [("fr", FRENCH), ("es", SPANISH)])
def test_no_english_is_left_in_the_translations(language, sentences):
    words = {token for s in sentences for token in tokenize(s) if token.isalpha()}
    english = {token for s in ENGLISH for token in tokenize(s) if token.isalpha()}
    assert sorted(words & english) == SHARED[language].split()


@pytest.mark.parametrize(("language", "column"), [("fr", 1), ("es", 2)])
def test_loading_gives_every_translation_in_order(language, column):
    expected = [
        (tuple(tokenize(row[0])), tuple(tokenize(text))) for row in ROWS for text in row[column]
    ]
    loaded = load_sentences(language)
    assert [(pair.source, pair.target) for pair in loaded] == expected
    assert all(pair.alignment is None for pair in loaded)
