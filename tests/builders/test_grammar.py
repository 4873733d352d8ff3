"""The generated corpus: reproduced byte for byte, and every line checked by rules of its own.

The rules read the files and the lexicon's genders, and know nothing of the generator's code.
"""

import hashlib
import importlib
import itertools
import re
import sys
from functools import cache

import pytest

from course_utils.data.text import tokenize
from course_utils.data.translation import load_grammar, parse_alignment
from course_utils.files import ROOT

FOLDER = ROOT / "data" / "translation"
LANGUAGES = ("fr", "es")
WOMEN = {"anna", "emma", "sarah", "julia", "clara", "olivia"}
MEN = {"tom", "paul", "david", "oscar", "adam", "lucas"}
VOWEL = re.compile(r"(h|[aeiouâàéèêëîïôûœ]|y$)")


@cache
def lines(language):
    text = (FOLDER / f"grammar_{language}.tsv").read_text(encoding="utf-8")
    return [tuple(row.split("\t")) for row in text.splitlines() if not row.startswith("#")]


@cache
def sentences(language):
    """(English tokens, target tokens) of every line."""
    return [(en.split(), target.split()) for en, target, _ in lines(language)]


@cache
def lexicon(name):
    rows = (FOLDER / "lexicon" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [row.split("\t") for row in rows if not row.startswith("#")]


def none_of(offenders):
    """No offending line; the first ones are shown."""
    assert offenders[:8] == []


# The files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rebuilt():
    """The files' bytes as the builder writes them now: one run for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        patch.setattr(sys, "dont_write_bytecode", True)
        builder = importlib.import_module("build_grammar")
        corpus = builder.generate()
    return {language: builder.render(language, corpus[language]) for language in LANGUAGES}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_builder_reproduces_the_files_byte_for_byte(rebuilt, language):
    expected = (FOLDER / f"grammar_{language}.tsv").read_bytes()
    digest = hashlib.sha256(rebuilt[language]).hexdigest()
    assert digest == hashlib.sha256(expected).hexdigest(), f"run build_grammar.py ({language})"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_is_tokenized_short_and_fully_linked(language):
    for en, target, links in lines(language):
        source_tokens, target_tokens = tokenize(en), tokenize(target)
        assert " ".join(source_tokens) == en and " ".join(target_tokens) == target
        assert 3 <= len(source_tokens) <= 10 and 3 <= len(target_tokens) <= 10, en
        pairs = [tuple(map(int, link.split("-"))) for link in links.split(" ")]
        assert pairs == sorted(set(pairs)), en
        assert {i for i, _ in pairs} == set(range(len(source_tokens))), (en, target, links)
        assert {j for _, j in pairs} == set(range(len(target_tokens))), (en, target, links)


def test_no_source_sentence_stands_twice_and_both_files_share_them():
    french, spanish = ([en for en, _, _ in lines(language)] for language in LANGUAGES)
    assert french == spanish == sorted(set(french))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_loader_reads_every_line(language):
    pairs = load_grammar(language)
    assert len(pairs) == len(lines(language))
    assert pairs[0].alignment == parse_alignment(lines(language)[0][2])


# Genders: from the lexicon, looked up by the forms ----------------------------------------------


def _plural(language, cell):
    singular, _, plural = cell.partition("/")
    if plural:
        return singular, plural
    if language == "fr":
        if singular[-1] in "sx":
            return singular, singular
        if singular.endswith("eau"):
            return singular, singular + "x"
        return singular, singular[:-2] + "aux" if singular.endswith("al") else singular + "s"
    if singular[-1] in "aeiouéáó":
        return singular, singular + "s"
    if singular.endswith("z"):
        return singular, singular[:-1] + "ces"
    if singular.endswith("s") and singular not in ("autobús",):
        return singular, singular
    bare = singular.translate(str.maketrans("áéíóú", "aeiou"))
    return singular, (bare if singular[-1] in "ns" and singular[-2] in "áéíóú" else singular) + "es"


@cache
def nouns(language):
    """form → set of (gender, number)"""
    table = {}
    for row in lexicon("nouns"):
        cell, gender = (row[1], row[2]) if language == "fr" else (row[3], row[4][0])
        for number, form in zip("sp", _plural(language, cell), strict=True):
            table.setdefault(form, set()).add((gender, number))
    for _, french, spanish in lexicon("women"):
        cell = french if language == "fr" else spanish
        for number, form in zip("sp", _plural(language, cell), strict=True):
            table.setdefault(form, set()).add(("f", number))
    return table


@cache
def adjectives(language):
    """form → set of (gender, number)"""
    table = {}
    for row in lexicon("adjectives"):
        forms = row[1].split() if language == "fr" else [row[3].split("/")[0]]
        if language == "fr":
            masculine, feminine = forms[0], forms[min(1, len(forms) - 1)]
            plural = masculine + "s" if masculine == "bleu" else _plural("fr", masculine)[1]
            entries = [(masculine, "ms"), (feminine, "fs"), (plural, "mp"), (feminine + "s", "fp")]
            entries += [(form, "ms") for form in forms[2:]]
        else:
            masculine = forms[0]
            feminine = masculine[:-1] + "a" if masculine.endswith("o") else masculine
            plural = row[3].partition("/")[2]
            entries = [(masculine, "ms"), (feminine, "fs")]
            entries += [(plural or _plural("es", masculine)[1], "mp")]
            entries += [(plural or _plural("es", feminine)[1], "fp")]
            entries += [("buen", "ms"), ("gran", "ms"), ("gran", "fs")]
        for form, features in entries:
            table.setdefault(form, set()).add(tuple(features))
    return table


FRENCH_DETERMINERS = {
    **dict.fromkeys(["le", "un", "ce", "cet", "du", "au"], {"ms"}),
    **dict.fromkeys(["la", "une", "cette", "ma", "ta", "sa"], {"fs"}),
    **dict.fromkeys(["mon", "ton", "son", "notre", "leur"], {"ms", "fs"}),
    **dict.fromkeys(
        ["les", "des", "ces", "mes", "tes", "ses", "nos", "leurs", "aux"], {"mp", "fp"}
    ),
    **dict.fromkeys(["deux", "trois", "quatre", "cinq"], {"mp", "fp"}),
}
SPANISH_DETERMINERS = {
    **dict.fromkeys(["el", "un", "este", "ese", "nuestro", "al", "del"], {"ms"}),
    **dict.fromkeys(["la", "una", "esta", "esa", "nuestra"], {"fs"}),
    **dict.fromkeys(["mi", "tu", "su"], {"ms", "fs"}),
    **dict.fromkeys(["los", "estos", "esos", "nuestros", "cuántos"], {"mp"}),
    **dict.fromkeys(["las", "estas", "esas", "nuestras", "cuántas"], {"fp"}),
    **dict.fromkeys(["mis", "tus", "sus", "dos", "tres", "cuatro", "cinco"], {"mp", "fp"}),
}
VERBS_AS_WELL = {
    "court",
    "limpia",
    "limpian",
    "limpias",
    "limpio",
}  # ma mère court; su amigo limpia


def noun_phrases(language, tokens):
    """(determiner, adjectives before, noun, adjective after or None), found from the left."""
    determiners = FRENCH_DETERMINERS if language == "fr" else SPANISH_DETERMINERS
    for start, determiner in enumerate(tokens):
        elided = determiner.startswith("l'")
        if determiner not in determiners and not elided:
            continue
        rest = [determiner[2:], *tokens[start + 1 :]] if elided else tokens[start + 1 :]
        before = []
        while len(rest) > 1 and rest[0] in adjectives(language) and rest[0] not in nouns(language):
            before.append(rest.pop(0))
        if rest and rest[0] in nouns(language):
            after = rest[1] if len(rest) > 1 and rest[1] in adjectives(language) else None
            after = None if after in VERBS_AS_WELL else after
            yield "l'" if elided else determiner, before, rest[0], after


@pytest.mark.parametrize("language", LANGUAGES)
def test_determiner_noun_and_adjectives_agree(language):
    determiners = FRENCH_DETERMINERS if language == "fr" else SPANISH_DETERMINERS
    offenders, checked = [], 0
    for en, tokens in sentences(language):
        for determiner, before, noun, after in noun_phrases(language, tokens):
            if determiner in ("le", "la") and noun == "porte" and "wear" in en:
                continue  # elle ne la porte pas: a pronoun and a verb
            allowed = {"".join(features) for features in nouns(language)[noun]}
            if determiner != "l'" and (determiner, noun) not in (("el", "agua"), ("del", "agua")):
                allowed &= determiners[determiner]
            for adjective in [*before, *([after] if after else [])]:
                allowed &= {"".join(features) for features in adjectives(language)[adjective]}
            checked += 1
            if not allowed:
                offenders.append((" ".join(tokens), determiner, noun))
    none_of(offenders)
    assert checked > 10_000


BE = {
    "fr": re.compile(r"^(n')?(est|sont|était|étaient)$"),
    "es": re.compile(r"^(es|está|son|están|era|estaba|eran|estaban)$"),
}
BETWEEN = {"pas", "jamais", "toujours", "souvent", "plus", "más"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_adjectives_after_to_be_agree_with_their_subject(language):
    pronouns = {
        "fr": {"il": {"ms"}, "elle": {"fs"}, "ils": {"mp"}, "elles": {"fp"}},
        "es": {"él": {"ms"}, "ella": {"fs"}, "ellos": {"mp"}, "ellas": {"fp"}},
    }[language]
    offenders, checked = [], 0
    for en, tokens in sentences(language):
        where = [k for k, token in enumerate(tokens) if BE[language].match(token)]
        if not where:
            continue
        k = where[-1]
        follow = [token for token in tokens[k + 1 :] if token not in BETWEEN]
        if not follow or follow[0] not in adjectives(language):
            continue
        subject = tokens[k - 1]
        if subject in ("ne", "no", "siempre", "nunca") and k > 1:
            subject = tokens[k - 2]
        possessed = next((j for j in range(k) if tokens[j] == "de" or tokens[j][:2] == "d'"), None)
        if any(token.endswith("'s") and token[:-2] in WOMEN | MEN for token in en) and possessed:
            subject = tokens[possessed - 1]  # le livre de tom
        subject = subject.removeprefix("qu'").removeprefix("l'")
        if subject in pronouns:
            features = pronouns[subject]
        elif subject in WOMEN | MEN:
            two = {token.removeprefix("qu'") for token in tokens[:k]} & (WOMEN | MEN)
            feminine = two <= WOMEN
            features = {("f" if feminine else "m") + ("p" if len(two) > 1 else "s")}
        elif subject in nouns(language):
            features = {"".join(pair) for pair in nouns(language)[subject]}
        else:
            continue
        checked += 1
        if not features & {"".join(pair) for pair in adjectives(language)[follow[0]]}:
            offenders.append(" ".join(tokens))
    none_of(offenders)
    assert checked > 1_500


# French -------------------------------------------------------------------------------------------

ELIDABLE = {"je", "ne", "de", "que", "le", "la", "me", "te", "se"}


def bigrams(tokens):
    return list(itertools.pairwise(tokens))


def test_french_elides_and_contracts():
    contracted = {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les")}
    none_of(
        [
            " ".join(tokens)
            for _, tokens in sentences("fr")
            for left, right in bigrams(tokens)
            if (left in ELIDABLE and VOWEL.match(right)) or (left, right) in contracted
        ]
    )


def test_french_elides_before_vowels_only():
    elided = re.compile(r"^(j|n|d|qu|l|m|t|s)'(.)")
    none_of(
        [
            token
            for _, tokens in sentences("fr")
            for token in tokens
            if (found := elided.match(token)) and not VOWEL.match(found[2]) and found[2] != "y"
        ]
    )


def test_french_negation_has_both_its_words():
    offenders = []
    for en, tokens in sentences("fr"):
        first = [t for t in tokens if t == "ne" or t.startswith("n'")]
        second = [t for t in tokens if t in ("pas", "jamais")]
        english = [t for t in en if t.endswith("n't") or t in ("not", "never")]
        if not len(first) == len(second) == len(english):
            offenders.append(" ".join(tokens))
    none_of(offenders)


def test_french_possessives_and_demonstratives_before_vowels():
    def wrong(left, right):
        vowel = bool(VOWEL.match(right))
        return (
            left in ("ma", "ta", "sa", "ce", "beau", "vieux", "nouveau")
            and vowel
            and right != "est"
        ) or (left in ("cet", "bel", "vieil", "nouvel") and not vowel)

    offenders = []
    for _, tokens in sentences("fr"):
        for left, right in bigrams(tokens):
            predicate = left in ("beau", "vieux", "nouveau") and right not in nouns("fr")
            if wrong(left, right) and not predicate:
                offenders.append(" ".join(tokens))
    plural_old = [o for o in offenders if re.search(r"\b(ces|les|nos|mes|deux) vieux", o)]
    none_of([o for o in offenders if o not in plural_old])


def test_french_participles_with_etre_agree_with_the_subject():
    participle = re.compile(r"^(allé|arrivé|revenu|parti)(e?)(s?)$")
    offenders, checked = [], 0
    for _, tokens in sentences("fr"):
        for k, token in enumerate(tokens):
            found = participle.match(token)
            if not found:
                continue
            checked += 1
            before = [t.removeprefix("qu'").removeprefix("l'") for t in tokens[:k]]
            people = [t for t in before if t in WOMEN | MEN]
            if "qui" in before:
                expected = "ms"
            elif any(t in ("il", "elle", "ils", "elles") for t in before):
                pronoun = next(t for t in before if t in ("il", "elle", "ils", "elles"))
                expected = ("f" if pronoun.startswith("elle") else "m") + "sp"[
                    pronoun.endswith("s")
                ]
            elif people:
                gender = "f" if set(people) <= WOMEN else "m"
                expected = gender + "sp"[len(people) > 1]
            else:
                noun = next(t for t in before if t in nouns("fr"))
                options = {"".join(pair) for pair in nouns("fr")[noun]}
                plural = any(t in ("sont", "ne sont") for t in before)
                expected = next(o for o in sorted(options) if o.endswith("p" if plural else "s"))
            if found[2] != ("e" if expected[0] == "f" else "") or found[3] != (
                "s" if expected[1] == "p" else ""
            ):
                offenders.append(" ".join(tokens))
    none_of(offenders)
    assert checked > 200


def test_french_participles_agree_with_the_pronoun_before_them():
    auxiliaries = ("ai", "as", "a", "avons", "ont")
    offenders, checked = [], 0
    for en, tokens in sentences("fr"):
        if en[-4:-3] == ["and"]:
            continue  # a noun decides there: next test
        for k, token in enumerate(tokens[:-1]):
            clitic = token.partition("'")[0] + "'" if token.startswith("l'") else tokens[k - 1]
            verb = token.removeprefix("l'")
            if verb not in auxiliaries or clitic not in ("l'", "les") or "years" in en:
                continue
            participle = next(t for t in tokens[k + 1 :] if t not in ("pas", "jamais"))
            if clitic == "l'" and not token.startswith("l'"):
                continue
            checked += 1
            wanted = {"her": "f", "him": "m", "them": "p"}
            kind = next((wanted[t] for t in reversed(en) if t in wanted), None)
            right = {
                "f": participle.endswith("e"),
                "m": not participle.endswith("e"),
                "p": participle.endswith("s"),
            }
            if not kind or not right[kind]:
                offenders.append(" ".join(tokens))
    none_of(offenders)
    assert checked > 150


def test_it_takes_the_gender_of_its_noun():
    offenders, checked = [], 0
    for language in LANGUAGES:
        for (en, tokens), (_, _, links) in zip(sentences(language), lines(language), strict=True):
            if en[-4:-3] != ["and"] or en[-2] not in ("it", "them"):
                continue
            checked += 1
            split = tokens.index("y") if language == "es" else 0
            noun_at = len(en) - 5  # anna bought an apple and ate it .
            targets = {j for i, j in parse_alignment(links) if i == noun_at}
            linked = [tokens[j].removeprefix("l'") for j in sorted(targets, reverse=True)]
            noun = next(token for token in linked if token in nouns(language))
            features = {"".join(pair) for pair in nouns(language)[noun]}
            features = {f for f in features if f[1] == ("p" if en[-2] == "them" else "s")}
            if language == "fr":
                ending = tokens[-2]
                feminine = ending.endswith("e") or ending.endswith("es")
                right = ("f" in {f[0] for f in features}) == feminine
            else:
                clitic = next(t for t in tokens[split:] if t in ("lo", "la", "los", "las"))
                right = {"lo": "ms", "la": "fs", "los": "mp", "las": "fp"}[clitic] in features
            if not right:
                offenders.append(" ".join(tokens))
    none_of(offenders)
    assert checked > 500


# Spanish ------------------------------------------------------------------------------------------


def test_spanish_contracts():
    none_of(
        [
            " ".join(tokens)
            for _, tokens in sentences("es")
            for pair in bigrams(tokens)
            if pair in {("a", "el"), ("de", "el")}
            or (pair[0] == "y" and pair[1].startswith(("i", "hi")))
        ]
    )


def test_spanish_negation_is_one_word():
    offenders = []
    for en, tokens in sentences("es"):
        english = [t for t in en if t.endswith("n't") or t in ("not", "never")]
        if len([t for t in tokens if t in ("no", "nunca")]) != len(english):
            offenders.append(" ".join(tokens))
    none_of(offenders)


_YES = {"do", "does", "did", "is", "are", "was", "were", "will", "can"}


def test_spanish_verbs_agree_with_their_pronouns():
    offenders, checked = [], 0
    for en, tokens in sentences("es"):
        for pronoun, plural in (("él", False), ("ella", False), ("ellos", True)):
            where = tokens.index(pronoun) if pronoun in tokens else 0
            if pronoun not in tokens or tokens[where - 1] in ("a", "con", "que"):
                continue
            if tokens[0] == "¿":  # ¿ está ella en casa ?
                verb = tokens[where - 1] if en[0] in _YES else None
            else:
                skip = {"no", "nunca", "siempre", "me", "te", "se", "nos", "lo", "la", "los", "las"}
                verb = next(token for token in tokens[where + 1 :] if token not in skip)
            if verb and verb.endswith("n") != plural:
                offenders.append(" ".join(tokens))
            checked += bool(verb)
    none_of(offenders)
    assert checked > 2_000


# Alignment, by hand -------------------------------------------------------------------------------

GOLD = {
    "fr": """
does she teach spanish ? | est-ce qu'elle enseigne l'espagnol ? | 0-0 0-1 1-1 2-2 3-3 4-4
did he finish the newspaper last week ? | est-ce qu'il a fini le journal la semaine dernière ? | 0-0 0-1 0-2 1-1 2-3 3-4 4-5 5-8 6-6 6-7 7-9
we won't work next year . | nous ne travaillerons pas l'année prochaine . | 0-0 1-1 1-2 1-3 2-2 3-5 4-4 5-6
clara won't walk in the village . | clara ne marchera pas dans le village . | 0-0 1-1 1-2 1-3 2-2 3-4 4-5 5-6 6-7
who is going to help them ? | qui va les aider ? | 0-0 1-1 2-1 3-1 4-3 5-2 6-4
is olivia's exercise important ? | est-ce que l'exercice d'olivia est important ? | 0-0 0-1 0-4 1-3 2-2 3-5 4-6
i never run . | je ne cours jamais . | 0-0 1-1 1-3 2-2 3-4
oscar and anna often draw rivers . | oscar et anna dessinent souvent des rivières . | 0-0 1-1 2-2 3-4 4-3 5-5 5-6 6-7
where is our map ? | où est notre carte ? | 0-0 1-1 2-2 3-3 4-4
what did adam close ? | qu'est-ce qu'adam a fermé ? | 0-0 1-0 1-1 1-2 2-1 3-3 4-4
they read a letter and understood it . | ils ont lu une lettre et ils l'ont comprise . | 0-0 1-1 1-2 2-3 3-4 4-5 5-6 5-7 5-8 6-7 7-9
they have two uncles and live with them . | ils ont deux oncles et ils habitent avec eux . | 0-0 1-1 2-2 3-3 4-4 5-5 5-6 6-7 7-8 8-9
they're sleeping because they're tired . | ils dorment parce qu'ils sont fatigués . | 0-0 1-1 2-2 2-3 3-3 3-4 4-5 5-6
your friend julia is going to study at school . | ton amie julia va étudier à l'école . | 0-0 1-1 2-2 3-3 4-3 5-3 6-4 7-5 8-6 9-7
paul likes cheese . | paul aime le fromage . | 0-0 1-1 2-2 2-3 3-4
the cat drank water . | le chat a bu de l'eau . | 0-0 1-1 2-2 2-3 3-4 3-5 4-6
the house is by the river . | la maison est au bord de la rivière . | 0-0 1-1 2-2 3-3 3-4 3-5 4-6 5-7 6-8
please listen to tom . | écoute tom , s'il te plaît . | 0-2 0-3 0-4 0-5 1-0 2-0 3-1 4-6
this is our phone . | c'est notre téléphone . | 0-0 1-0 2-1 3-2 4-3
this isn't his expensive ticket . | ce n'est pas son billet cher . | 0-0 1-1 1-2 2-3 3-5 4-4 5-6
she's at the hospital . | elle est à l'hôpital . | 0-0 0-1 1-2 2-3 3-3 4-4
they're ten years old . | ils ont dix ans . | 0-0 0-1 1-2 2-3 3-3 4-4
it's windy . | il y a du vent . | 0-0 0-1 0-2 1-3 1-4 2-5
""",  # noqa: E501
    "es": """
is he going to open these bags tonight ? | ¿ va él a abrir estos bolsos esta noche ? | 0-1 1-2 2-1 3-3 4-4 5-5 6-6 7-7 7-8 8-0 8-9
did he finish the newspaper last week ? | ¿ terminó él el periódico la semana pasada ? | 0-1 1-2 2-1 3-3 4-4 5-7 6-5 6-6 7-0 7-8
clara won't walk in the village . | clara no caminará por el pueblo . | 0-0 1-1 1-2 2-2 3-3 4-4 5-5 6-6
who is going to help them ? | ¿ quién los va a ayudar ? | 0-1 1-3 2-3 3-4 4-5 5-2 6-0 6-6
is olivia's exercise important ? | ¿ es importante el ejercicio de olivia ? | 0-1 1-5 1-6 2-3 2-4 3-2 4-0 4-7
i never run . | nunca corro . | 0-1 1-0 2-1 3-2
oscar and anna often draw rivers . | oscar y anna dibujan ríos a menudo . | 0-0 1-1 2-2 3-5 3-6 4-3 5-4 6-7
what did adam close ? | ¿ qué cerró adam ? | 0-1 1-2 2-3 3-2 4-0 4-4
they found a letter and hid it . | ellos encontraron una carta y la escondieron . | 0-0 1-1 2-2 3-3 4-4 5-6 6-5 7-7
olivia cut the carrot and ate it . | olivia cortó la zanahoria y se la comió . | 0-0 1-1 2-2 3-3 4-4 5-5 5-7 6-6 7-8
they have two uncles and live with them . | ellos tienen dos tíos y viven con ellos . | 0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7 8-8
they're sleeping because they're tired . | ellos están durmiendo porque están cansados . | 0-0 0-1 1-2 2-3 3-4 4-5 5-6
paul likes cheese . | a paul le gusta el queso . | 0-0 0-1 0-2 1-3 2-4 2-5 3-6
emma doesn't like to work . | a emma no le gusta trabajar . | 0-0 0-1 0-3 1-2 2-4 3-4 4-5 5-6
your uncle is going to leave . | tu tío se va a ir . | 0-0 1-1 2-3 3-3 4-4 5-2 5-5 6-6
his friend anna is laughing now . | su amiga anna se está riendo ahora . | 0-0 1-1 2-2 3-4 4-3 4-5 5-6 6-7
it's cold . | hace frío . | 0-0 1-1 2-2
the house is by the river . | la casa está junto al río . | 0-0 1-1 2-2 3-3 3-4 4-4 5-5 6-6
the theater is in front of the museum . | el teatro está delante del museo . | 0-0 1-1 2-2 3-3 4-3 5-4 6-4 7-5 8-6
""",  # noqa: E501
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_alignments_written_by_hand(language):
    corpus = {en: (target, links) for en, target, links in lines(language)}
    gold = [row.split(" | ") for row in GOLD[language].strip().splitlines()]
    absent = [en for en, _, _ in gold if en not in corpus]
    assert absent == []
    for en, target, links in gold:
        pairs = " ".join(sorted(links.split(), key=lambda link: tuple(map(int, link.split("-")))))
        assert corpus[en] == (target, pairs)


# Women and men ------------------------------------------------------------------------------------

HER = WOMEN | {"she", "she's"}
HIM = MEN | {"he", "he's"}


def trades_of(people, language):
    """(English trade, its translation) of everybody who is said to have one: anna is a doctor ."""
    for en, target, _ in lines(language):
        said = re.match(
            r"(?:(?:is|was) )?([\w']+) (?:(?:is|was|isn't|wasn't) )?an? (\w+) [.?]$", en
        )
        if said and said[1] in people and said[2] in TRADES:
            tokens = target.split()
            yield said[2], tokens


TRADES = {row[0] for row in lexicon("nouns") if "job" in row[5].split() or "jobf" in row[5].split()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_women_and_men_have_the_same_trades(language):
    forms = {row[0]: row[1 if language == "fr" else 2] for row in lexicon("women")}
    women, men = list(trades_of(HER, language)), list(trades_of(HIM, language))
    trades = forms.keys() & TRADES
    assert trades <= {trade for trade, _ in women} and trades <= {trade for trade, _ in men}
    assert 0.4 < len(women) / len(women + men) < 0.6
    none_of([tokens for trade, tokens in women if trade in forms and forms[trade] not in tokens])
    masculine = {row[0]: row[1 if language == "fr" else 3] for row in lexicon("nouns")}
    none_of([tokens for trade, tokens in men if masculine[trade] not in tokens])
