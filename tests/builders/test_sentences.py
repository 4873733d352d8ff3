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


def test_english_sentences_are_distinct():
    assert len({tuple(tokenize(sentence)) for sentence in ENGLISH}) == len(ROWS)


@pytest.mark.parametrize("column", [1, 2])
def test_translations_of_a_sentence_are_distinct(column):
    for row in ROWS:
        assert len({tuple(tokenize(text)) for text in row[column]}) == len(row[column]), row


@pytest.mark.parametrize("sentences", [ENGLISH, FRENCH, SPANISH], ids=["en", "fr", "es"])
def test_sentences_have_two_to_ten_tokens(sentences):
    assert [s for s in sentences if not 2 <= len(tokenize(s)) <= 10] == []


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
        ("Go.", "Va\u202f!", "¡Vete!"),
        ("I lost.", "J'ai perdu.", "Perdí."),
        ("He's calm.", "Il est calme.", "Está tranquilo."),
        ("I'm home.", "Je suis chez moi.", "Estoy en casa."),
    ],
)
def test_the_four_sentences_of_the_lectures_are_there(english, french, spanish):
    row = ROWS[ENGLISH.index(english)]
    assert french == row[1][0] and spanish == row[2][0]  # what models are trained on


@pytest.mark.parametrize("pattern", UNELIDED)
def test_french_elides_and_contracts(pattern):
    assert offenders(pattern, FRENCH) == []


@pytest.mark.parametrize(
    "pattern", [r"\ba el\b", r"\bde el\b", r"\by (i|hi)", r"\bo (o|ho)", r"\bcon (mí|ti)\b"]
)
def test_spanish_contracts(pattern):
    assert offenders(pattern, SPANISH) == []


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
YES_OR_NO = r"(Are|Can|Could|Did|Do|Have|Will|Would) you "
FRENCH_GENDERS = """fatigué fatiguée|français française|prêt prête|occupé occupée|seul seule|sûr sûre|
    heureux heureuse|content contente|fâché fâchée|marié mariée|patient patiente|fier fière|grand grande|
    prudent prudente|gentil gentille|sérieux sérieuse|allé allée|amusé amusée|venu venue"""
SPANISH_GENDERS = """cansado cansada|francés francesa|listo lista|ocupado ocupada|solo sola|seguro segura|
    contento contenta|enfadado enfadada|enojado enojada|casado casada|orgulloso orgullosa|alto alta|
    equivocado equivocada"""
VOSOTROS = r"([aeiáéí]d(me|nos|l[aeo]|mel[ao]|sel[ao])?|[aeíá]os(lo)?|[aáeéo]is|\wís)\b"
USTEDES = r"n(me|nos|se|l[aeo]|sel[ao]|mel[ao])?\b"


def pairs(text):
    return [tuple(pair.split()) for pair in text.split("|")]


def having(pattern, column):
    """Rows of which some translation has the pattern."""
    return [row for row in ROWS if offenders(pattern, row[column])]


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


@pytest.mark.parametrize("pronoun", ["tu", "vous", "il", "elle"])
def test_french_asks_as_people_do(pronoun):
    """Whatever is asked with an inverted subject is also asked without."""
    for english, french, _ in ROWS:
        asked = offenders(rf"-{pronoun}\b.*\?", french)
        straight = [s for s in french if s not in asked]
        others = {"il": "il|ce|c", "elle": "elle|ce|c"}.get(pronoun, pronoun)
        if asked:
            assert offenders(rf"\b({others})\b", straight), english


def test_french_yes_or_no_questions_are_asked_in_three_ways():
    for english, french, _ in ROWS:
        if re.match(YES_OR_NO, english):
            assert re.match("(Tu|Ça) ", french[0]), english
            assert offenders(r"^Est-ce que (tu|ça te) ", french), english
            assert offenders(r"\w-tu\b", french), english


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
        assert having(rf"\b{man}\b", column)
        for row in ROWS:
            for sentence in offenders(rf"\b({speaker})\b.*\b{man}\b", row[column]):
                assert re.sub(rf"\b{man}\b", woman, sentence) in row[column], row[0]


def test_spanish_commands_are_given_to_several():
    for english, french, spanish in ROWS:
        commands = offenders(r"^(Ne |N')?(me |m'|te |le |lui |y )*\w+[^r]ez\b[^?]*$", french)
        if commands and "vous" not in commands[0].split() and not re.search(r"\byou\b", english):
            assert offenders(VOSOTROS, spanish) and offenders(USTEDES, spanish), english


def test_spanish_verbs_with_you_are_said_to_several():
    for english, _, spanish in ROWS:
        if re.match(YES_OR_NO + "(?!like)", english) and offenders(r"\busted\b", spanish):
            assert offenders(r"\bustedes\b", spanish) and offenders(VOSOTROS, spanish), english


@pytest.mark.parametrize(("language", "column"), [("fr", 1), ("es", 2)])
def test_the_grammar_says_what_we_say(language, column):
    """Where both corpora have a sentence, the generated translation is one of the hand-written."""
    ours = {tuple(tokenize(row[0])): {tuple(tokenize(s)) for s in row[column]} for row in ROWS}
    common = [pair for pair in load_grammar(language) if pair.source in ours]
    assert len(common) >= 60
    assert [" ".join(p.source) for p in common if p.target not in ours[p.source]] == []
