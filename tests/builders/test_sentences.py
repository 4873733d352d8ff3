"""The hand-written sentences: format, typography, spelling rules and the lectures' four."""

import re
import unicodedata

import pytest

from course_utils.data.text import tokenize
from course_utils.data.translation import _file_rows, load_grammar, load_sentences
from course_utils.files import ROOT

PATH = ROOT / "data" / "translation" / "sentences.tsv"
TEXT = PATH.read_text(encoding="utf-8")
ROWS = [(row[0], row[1].split(" | "), row[2].split(" | ")) for row in _file_rows(PATH.name)]
ENGLISH = [row[0] for row in ROWS]
FRENCH = [sentence for row in ROWS for sentence in row[1]]
SPANISH = [sentence for row in ROWS for sentence in row[2]]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ALLOWED = {
    "en": set(LETTERS + ",.!?'- "),
    "fr": set(LETTERS + "àâçéèêëîïôöûùüœ,.!?;:'- \u202f\u00a0"),
    "es": set(LETTERS + "áéíóúñü,.;:¡!¿? "),
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


def test_no_sentence_stands_twice_in_its_place():
    assert len({tuple(tokenize(sentence)) for sentence in ENGLISH}) == len(ROWS)
    for row in ROWS:
        for texts in row[1:]:
            assert len({tuple(tokenize(text)) for text in texts}) == len(texts), row


@pytest.mark.parametrize(
    ("language", "sentences"), [("en", ENGLISH), ("fr", FRENCH), ("es", SPANISH)]
)
def test_sentences_are_short_and_written_cleanly(language, sentences):
    for sentence in sentences:
        assert 2 <= len(tokenize(sentence)) <= 10, sentence
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


def test_french_and_spanish_elide_and_contract():
    assert [s for pattern in UNELIDED for s in offenders(pattern, FRENCH)] == []
    uncontracted = (r"\ba el\b", r"\bde el\b", r"\by (i|hi)", r"\bo (o|ho)", r"\bcon (mí|ti)\b")
    assert [s for pattern in uncontracted for s in offenders(pattern, SPANISH)] == []


@pytest.mark.parametrize(("language", "column"), [("fr", 1), ("es", 2)])
def test_loading_gives_every_translation_in_order(language, column):
    expected = [
        (tuple(tokenize(row[0])), tuple(tokenize(text))) for row in ROWS for text in row[column]
    ]
    loaded = load_sentences(language)
    assert [(pair.source, pair.target) for pair in loaded] == expected
    assert all(pair.alignment is None for pair in loaded)


# What a learner may say --------------------------------------------------------------------------

PRONOUN = r"(?:él|ella|ellos|ellas)\b"
READS_AS_ANOTHER_WORD = {"Ella nada."}  # "Nada." is "Nothing."
FRENCH_GENDERS = """fatigué fatiguée|français française|prêt prête|occupé occupée|seul seule|sûr sûre|
    heureux heureuse|content contente|fâché fâchée|marié mariée|patient patiente|fier fière|grand grande|
    prudent prudente|gentil gentille|sérieux sérieuse|allé allée|amusé amusée|venu venue"""
SPANISH_GENDERS = """cansado cansada|francés francesa|listo lista|ocupado ocupada|solo sola|seguro segura|
    contento contenta|enfadado enfadada|enojado enojada|casado casada|orgulloso orgullosa|alto alta|
    equivocado equivocada"""


def pairs(text):
    return [tuple(pair.split()) for pair in text.split("|")]


def without_subject(sentence):
    """A Spanish sentence without él, ella, ellos, ellas as its subject."""
    bare = re.sub(rf"^A {PRONOUN} (?=les? )|^{PRONOUN} ", "", sentence, flags=re.IGNORECASE)
    bare = re.sub(rf"^(¿(?:[CDQ]|Ad|A d).*) {PRONOUN}\?$", r"\1?", bare)
    return bare[0].upper() + bare[1:]


def test_a_spanish_subject_may_be_left_out():
    for english, _, spanish in ROWS:
        for sentence in set(spanish) - READS_AS_ANOTHER_WORD:
            assert without_subject(sentence) in spanish, (english, sentence)
        assert without_subject(spanish[0]) == spanish[0], english


def test_a_spanish_subject_may_be_named():
    for english, _, spanish in ROWS:
        if re.match(r"(He|She|They)\b", english):
            assert offenders(rf"^((Antes|A) )?{PRONOUN}", spanish), english


@pytest.mark.parametrize(
    ("column", "genders", "speaker"),
    [
        (1, FRENCH_GENDERS, r"suis|es|étais|êtes|être|sois|soyez|vous avez l'air|tu as l'air"),
        (
            2,
            SPANISH_GENDERS,
            "soy|estoy|eres|estás|está usted|usted está|pareces|parece usted|estar",
        ),
    ],
    ids=["fr", "es"],
)
def test_i_and_you_are_men_and_women(column, genders, speaker):
    for man, woman in pairs(genders):
        assert any(offenders(rf"\b{man}\b", row[column]) for row in ROWS)
        for row in ROWS:
            for sentence in offenders(rf"\b({speaker})\b.*\b{man}\b", row[column]):
                assert re.sub(rf"\b{man}\b", woman, sentence) in row[column], row[0]


@pytest.mark.parametrize(("language", "column"), [("fr", 1), ("es", 2)])
def test_the_grammar_says_what_we_say(language, column):
    """Where both corpora have a sentence, the generated translation is one of the hand-written."""
    ours = {tuple(tokenize(row[0])): {tuple(tokenize(s)) for s in row[column]} for row in ROWS}
    common = [pair for pair in load_grammar(language) if pair.source in ours]
    assert len(common) >= 60
    assert [" ".join(p.source) for p in common if p.target not in ours[p.source]] == []
