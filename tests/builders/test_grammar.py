"""The generated corpus: reproduced byte for byte, and every line checked by rules of its own.

The rules read the files and the lexicon's genders, and know nothing of the generator's code.
"""

import importlib
import re
import sys
from functools import cache

import pytest

from course_utils.data.text import tokenize
from course_utils.data.translation import load_grammar, parse_alignment
from course_utils.files import ROOT

FOLDER = ROOT / "data" / "translation"
both = pytest.mark.parametrize("language", ["fr", "es"])


@cache
def lines(language):
    text = (FOLDER / f"grammar_{language}.tsv").read_text(encoding="utf-8")
    return [tuple(row.split("\t")) for row in text.splitlines() if not row.startswith("#")]


@cache
def lexicon(name):
    rows = (FOLDER / "lexicon" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [row.split("\t") for row in rows if not row.startswith("#")]


def none_of(offenders):
    """No offending line; the first ones are shown."""
    assert offenders[:8] == []


@pytest.mark.slow
def test_the_builder_reproduces_the_files_byte_for_byte(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    builder = importlib.import_module("build_grammar")
    for language, corpus in builder.generate().items():
        same = builder.render(language, corpus) == (FOLDER / f"grammar_{language}.tsv").read_bytes()
        assert same, f"run build_grammar.py ({language})"


@both
def test_every_line_is_tokenized_short_and_fully_linked(language):
    for (en, target, links), pair in zip(lines(language), load_grammar(language), strict=True):
        assert [pair.source, pair.target] == [tuple(en.split()), tuple(target.split())]
        assert [pair.source, pair.target] == [tuple(tokenize(en)), tuple(tokenize(target))]
        assert 3 <= len(pair.source) <= 10 and 3 <= len(pair.target) <= 10, en
        assert links == " ".join(f"{i}-{j}" for i, j in sorted(parse_alignment(links))), en
        for side, words in enumerate((pair.source, pair.target)):
            assert {link[side] for link in pair.alignment} == set(range(len(words))), (en, target)


def test_no_source_sentence_stands_twice_and_both_files_share_them():
    french, spanish = ([en for en, _, _ in lines(language)] for language in ("fr", "es"))
    assert french == spanish == sorted(set(french))


# Grammar ----------------------------------------------------------------------------------------

VOWEL = r"(h|[aeiouâàéèêëîïôûœ]|y\b)"
WRONG = {
    "fr": [
        rf"(je|ne|de|que|le|la|me|te|se|ma|ta|sa|ce) {VOWEL}",
        r"(de|à) les?(?= )",
        rf"(j|n|d|qu|l|m|t|s)'(?!{VOWEL}|y)",
        rf"(cet|bel|vieil|nouvel) (?!{VOWEL})",
    ],
    "es": [r"(a|de) el(?= )", "y (i|hi)"],
}


@pytest.mark.parametrize(
    ("language", "pattern"), [(name, one) for name, found in WRONG.items() for one in found]
)
def test_words_are_elided_and_contracted(language, pattern):
    wrong = re.compile(rf"(?<!\S){pattern}")
    none_of([target for _, target, _ in lines(language) if wrong.search(target)])


@pytest.mark.parametrize(
    ("language", "parts"), [("fr", [r"ne|n'\S+", "pas|jamais"]), ("es", ["no|nunca"])]
)
def test_a_negation_has_all_its_words(language, parts):
    def count(pattern, text):
        return len(re.findall(rf"(?<!\S)({pattern})(?= )", text))

    none_of([
        target
        for en, target, _ in lines(language)
        if {count(part, target) for part in parts} != {count(r"\S+n't|not|never", en)}
    ])  # fmt: skip


ARTICLES = {"le": "m", "un": "m", "el": "m", "la": "f", "une": "f", "una": "f"}


@both
def test_articles_have_the_gender_of_their_noun(language):
    genders = {}
    for row in lexicon("nouns"):
        form, gender = row[1:3] if language == "fr" else row[3:5]
        genders.setdefault(form.split("/")[0], set()).add(gender[0])
    for row in lexicon("women"):
        genders.setdefault(row[1 if language == "fr" else 2], set()).add("f")
    genders["agua"] = {"f", "m"}  # el agua
    offenders, checked = [], 0
    for en, target, _ in lines(language):
        for article, noun in re.findall(rf"(?<!\S)({'|'.join(ARTICLES)}) (\S+)", target):
            pronoun = noun == "porte" and "wear" in en  # elle ne la porte pas
            checked += noun in genders
            if ARTICLES[article] not in genders.get(noun, ARTICLES[article]) and not pronoun:
                offenders.append(target)
    none_of(offenders)
    assert checked > 5_000


# Alignment, by hand -------------------------------------------------------------------------------

GOLD = {
    "fr": """
does she teach spanish ? | est-ce qu'elle enseigne l'espagnol ? | 0-0 0-1 1-1 2-2 3-3 4-4
we won't work next year . | nous ne travaillerons pas l'année prochaine . | 0-0 1-1 1-2 1-3 2-2 3-5 4-4 5-6
who is going to help them ? | qui va les aider ? | 0-0 1-1 2-1 3-1 4-3 5-2 6-4
is olivia's exercise important ? | est-ce que l'exercice d'olivia est important ? | 0-0 0-1 0-4 1-3 2-2 3-5 4-6
i never run . | je ne cours jamais . | 0-0 1-1 1-3 2-2 3-4
what did adam close ? | qu'est-ce qu'adam a fermé ? | 0-0 1-0 1-1 1-2 2-1 3-3 4-4
they read a letter and understood it . | ils ont lu une lettre et ils l'ont comprise . | 0-0 1-1 1-2 2-3 3-4 4-5 5-6 5-7 5-8 6-7 7-9
the cat drank water . | le chat a bu de l'eau . | 0-0 1-1 2-2 2-3 3-4 3-5 4-6
please listen to tom . | écoute tom , s'il te plaît . | 0-2 0-3 0-4 0-5 1-0 2-0 3-1 4-6
this isn't his expensive ticket . | ce n'est pas son billet cher . | 0-0 1-1 1-2 2-3 3-5 4-4 5-6
she's at the hospital . | elle est à l'hôpital . | 0-0 0-1 1-2 2-3 3-3 4-4
it's windy . | il y a du vent . | 0-0 0-1 0-2 1-3 1-4 2-5
""",  # noqa: E501
    "es": """
did he finish the newspaper last week ? | ¿ terminó él el periódico la semana pasada ? | 0-1 1-2 2-1 3-3 4-4 5-7 6-5 6-6 7-0 7-8
who is going to help them ? | ¿ quién los va a ayudar ? | 0-1 1-3 2-3 3-4 4-5 5-2 6-0 6-6
is olivia's exercise important ? | ¿ es importante el ejercicio de olivia ? | 0-1 1-5 1-6 2-3 2-4 3-2 4-0 4-7
oscar and anna often draw rivers . | oscar y anna dibujan ríos a menudo . | 0-0 1-1 2-2 3-5 3-6 4-3 5-4 6-7
what did adam close ? | ¿ qué cerró adam ? | 0-1 1-2 2-3 3-2 4-0 4-4
olivia cut the carrot and ate it . | olivia cortó la zanahoria y se la comió . | 0-0 1-1 2-2 3-3 4-4 5-5 5-7 6-6 7-8
emma doesn't like to work . | a emma no le gusta trabajar . | 0-0 0-1 0-3 1-2 2-4 3-4 4-5 5-6
your uncle is going to leave . | tu tío se va a ir . | 0-0 1-1 2-3 3-3 4-4 5-2 5-5 6-6
it's cold . | hace frío . | 0-0 1-1 2-2
the theater is in front of the museum . | el teatro está delante del museo . | 0-0 1-1 2-2 3-3 4-3 5-4 6-4 7-5 8-6
""",  # noqa: E501
}


@both
def test_alignments_written_by_hand(language):
    corpus = {en: (target, parse_alignment(links)) for en, target, links in lines(language)}
    for row in GOLD[language].strip().splitlines():
        en, target, links = row.split(" | ")
        assert corpus[en] == (target, parse_alignment(links))


# Women and men ------------------------------------------------------------------------------------

HER = {"she", "she's", "anna", "emma", "sarah", "julia", "clara", "olivia"}
HIM = {"he", "he's", "tom", "paul", "david", "oscar", "adam", "lucas"}


def trades_of(people, trades, language):
    """(English trade, words of the translation) of all who are said to have one: anna is a doctor ."""
    has = r"(?:(?:is|was) )?([\w']+) (?:(?:is|was|isn't|wasn't) )?an? (\w+) [.?]$"
    for en, target, _ in lines(language):
        said = re.match(has, en)
        if said and said[1] in people and said[2] in trades:
            yield said[2], target.split()


@both
def test_women_and_men_have_the_same_trades(language):
    feminine = {row[0]: row[1 if language == "fr" else 2] for row in lexicon("women")}
    masculine = {row[0]: row[1 if language == "fr" else 3] for row in lexicon("nouns")}
    trades = {row[0] for row in lexicon("nouns") if {"job", "jobf"} & set(row[5].split())}
    women, men = (list(trades_of(people, trades, language)) for people in (HER, HIM))
    for found in (women, men):
        assert trades & feminine.keys() <= {trade for trade, _ in found}
    assert 0.4 < len(women) / len(women + men) < 0.6
    none_of([words for trade, words in women if trade in feminine and feminine[trade] not in words])
    none_of([words for trade, words in men if masculine[trade] not in words])
