"""Who and what a sentence of `build_grammar` is about: the lexicon, pronouns, names, noun phrases.

Each participant says itself in English, French and Spanish (`en`, `fr`, `es`): a list of tokens whose
tags begin with the role it plays ("s" subject, "o" object, "p" place). Above: `grammar_forms`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from grammar_forms import (
    ME,
    SHE,
    THEY,
    WE,
    YOU,
    Token,
    english_article,
    english_plural,
    french_agree,
    french_plural,
    marked,
    spanish_agree,
    spanish_plural,
    starts_with_vowel,
    words,
)

LEXICON = Path(__file__).parent / "lexicon"


def rows(name: str) -> Iterator[list[str]]:
    """The rows of a table of the lexicon, "-" read as empty."""
    for line in (LEXICON / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield ["" if cell == "-" else cell for cell in line.split("\t")]


# Nouns and adjectives -----------------------------------------------------------------------------


def _number(cell: str, rule) -> tuple[str, str]:
    singular, _, plural = cell.partition("/")
    return singular, plural or rule(singular)


@dataclass(frozen=True)
class Noun:
    """Each language: (singular, plural); genders m or f; kinds: what can be done with it."""

    en: tuple[str, str]
    fr: tuple[str, str]
    es: tuple[str, str]
    fr_gender: str
    es_gender: str
    masculine_article: bool  # el agua: feminine, but with el
    kinds: frozenset[str]

    def is_a(self, *kinds: str) -> bool:
        return bool(self.kinds & set(kinds))

    @property
    def mass(self) -> bool:
        """Uncountable: bread, water, music."""
        return any(kind.startswith("mass") for kind in self.kinds)


@dataclass(frozen=True)
class Adjective:
    """before: it stands before its noun; copula: the Spanish verb "to be" that it takes."""

    en: str
    fr: tuple[str, str, str]  # masculine, feminine, masculine before a vowel
    fr_before: bool
    es: str
    es_plural: str  # where no rule gives it, otherwise empty
    es_before: frozenset[str]  # the classes of nouns, or b, before all
    copula: str
    attributive: frozenset[str]
    predicative: frozenset[str]

    def french(self, gender: str, plural: bool) -> str:
        return french_agree(self.fr[0], self.fr[1], gender, plural)

    def spanish(self, gender: str, plural: bool, *, before: bool = False) -> str:
        if before and not plural:
            if self.es == "grande":
                return "gran"
            if self.es == "bueno" and gender == "m":
                return "buen"
        if plural and self.es_plural:
            return self.es_plural
        return spanish_agree(self.es, gender, plural)


@cache
def nouns() -> list[Noun]:
    table = []
    for en, fr, fr_gender, es, es_gender, kinds in rows("nouns"):
        english = _number(en, english_plural)
        table.append(
            Noun(
                english,
                _number(fr, french_plural),
                _number(es, spanish_plural),
                fr_gender,
                es_gender[0],
                es_gender.endswith("el"),
                frozenset(kinds.split()) | {english[0]},
            )
        )
    return table


@cache
def _women() -> dict[str, Noun]:
    by_name = {noun.en[0]: noun for noun in nouns()}
    return {
        en: replace(
            by_name[en],
            fr=_number(fr, french_plural),
            es=_number(es, spanish_plural),
            fr_gender="f",
            es_gender="f",
        )
        for en, fr, es in rows("women")
    }


def as_woman(noun: Noun) -> Noun | None:
    """l'avocate for l'avocat, where English has one word for both; else nothing."""
    return _women().get(noun.en[0])


def as_man(noun: Noun) -> Noun:
    """The noun of nouns.tsv: l'avocat for l'avocate."""
    return next(n for n in nouns() if n.en == noun.en) if as_woman(noun) else noun


@cache
def adjectives() -> list[Adjective]:
    table = []
    for en, fr, fr_position, es, es_position, copula, attributive, predicative in rows(
        "adjectives"
    ):
        french = fr.split()
        singular, _, plural = es.partition("/")
        table.append(
            Adjective(
                en,
                (french[0], french[min(1, len(french) - 1)], french[2 if len(french) == 3 else 0]),
                fr_position == "b",
                singular,
                plural,
                frozenset(es_position.removeprefix("b:").split(",")) - {"a", ""},
                copula,
                frozenset(attributive.split()),
                frozenset(predicative.split()),
            )
        )
    return table


# Participants -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun; Spanish leaves i, you and we out as subjects, the verb says them."""

    person: int
    gender: str
    subject: tuple[str, str, str]  # English, French, Spanish
    object: tuple[str, str, str]
    be: str  # English, fused with the verb: i'm

    plural = property(lambda self: self.person >= WE)
    human = True

    def genders(self) -> tuple[str, str]:
        return self.gender, self.gender

    def en(self, role: str) -> list[Token]:
        return words(self.subject[0], role, "f")

    def fr(self, role: str) -> list[Token]:
        return words(self.subject[1], role)

    def es(self, role: str) -> list[Token]:
        return words(self.subject[2], role)


PRONOUNS = [
    Pronoun(ME, "", ("i", "je", ""), ("me", "me", "me"), "i'm"),
    Pronoun(YOU, "", ("you", "tu", ""), ("you", "te", "te"), "you're"),
    Pronoun(SHE, "m", ("he", "il", "él"), ("him", "le", "lo"), "he's"),
    Pronoun(SHE, "f", ("she", "elle", "ella"), ("her", "la", "la"), "she's"),
    Pronoun(WE, "", ("we", "nous", ""), ("us", "nous", "nos"), "we're"),
    Pronoun(THEY, "m", ("they", "ils", "ellos"), ("them", "les", "los"), "they're"),
]


THEY_WOMEN = Pronoun(
    THEY, "f", ("they", "elles", "ellas"), ("them", "les", "las"), "they're"
)  # only where the sentence says before who they are


@dataclass(frozen=True)
class Name:
    """A first name, or two joined by and (masculine unless both are women)."""

    names: tuple[str, ...]
    gender: str

    human = True
    plural = property(lambda self: len(self.names) > 1)
    person = property(lambda self: THEY if self.plural else SHE)

    def genders(self) -> tuple[str, str]:
        return self.gender, self.gender

    def _say(self, role: str, conjunction: str) -> list[Token]:
        tokens = words(self.names[0], f"{role}.n {role}.n1")
        for name in self.names[1:]:
            tokens += words(conjunction, f"{role}.c") + words(name, f"{role}.n2")
        return tokens

    def en(self, role: str) -> list[Token]:
        return self._say(role, "and")

    def fr(self, role: str) -> list[Token]:
        return self._say(role, "et")

    def es(self, role: str) -> list[Token]:
        return self._say(role, "y")


# Determiners: masculine, feminine, plural; French: and feminine before a vowel.
_FRENCH_DETERMINERS = {
    "the": "le la les la",
    "a": "un une des une",
    "this": "ce cette ces cette",
    "that": "ce cette ces cette",
    "my": "mon ma mes mon",
    "your": "ton ta tes ton",
    "his": "son sa ses son",
    "her": "son sa ses son",
    "our": "notre notre nos notre",
    "their": "leur leur leurs leur",
}
_SPANISH_DETERMINERS = {
    "the": "el la los las",
    "a": "un una",
    "this": "este esta estos estas",
    "that": "ese esa esos esas",
    "my": "mi mi mis mis",
    "your": "tu tu tus tus",
    "his": "su su sus sus",
    "her": "su su sus sus",
    "our": "nuestro nuestra nuestros nuestras",
    "their": "su su sus sus",
}
POSSESSIVES = ["my", "your", "his", "her", "our", "their"]


@dataclass(frozen=True)
class Phrase:
    """A noun with its determiner and adjectives.

    Attributes:
        determiner: an English word of the tables above; "" for none (bread, apples; French du, des);
            "generic" for none in English, the definite article in French and Spanish (i like bread);
            "number"; or "owner" (tom's book).
        number: (English, French, Spanish) of "number".
        called: a name that follows: my friend anna.
        negated: under a negation French says de for un, du and des.
        bare: Spanish leaves un out (no tengo coche).
    """

    noun: Noun
    determiner: str
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: Name | None = None
    number: tuple[str, str, str] = ("", "", "")
    called: Name | None = None
    negated: bool = False
    bare: bool = False

    person = property(lambda self: THEY if self.plural else SHE)
    human = property(lambda self: self.noun.is_a("human", "kin"))

    def genders(self) -> tuple[str, str]:
        return self.noun.fr_gender, self.noun.es_gender

    def en(self, role: str) -> list[Token]:
        tokens = []
        for k, adjective in enumerate(self.adjectives):
            tokens += words(adjective.en, f"{role}.a{k}")
        tokens += words(self.noun.en[self.plural], f"{role}.n") + self._called(role)
        det = self.determiner
        if self.plural:
            det = {"this": "these", "that": "those"}.get(det, det)
        if det == "owner":
            return words(f"{self.owner.names[0]}'s", f"{role}.w") + tokens
        if det == "number":
            return words(self.number[0], f"{role}.d") + tokens
        if det in ("", "generic"):
            return tokens
        article = english_article(tokens) if det == "a" else det
        return words(article, f"{role}.d", f"{role}.n") + tokens

    def fr(self, role: str) -> list[Token]:
        before, after = [], []
        noun = self.noun.fr[self.plural]
        for k, adjective in enumerate(self.adjectives):
            word = adjective.french(self.noun.fr_gender, self.plural)
            if adjective.fr_before:
                if self.noun.fr_gender == "m" and not self.plural and starts_with_vowel(noun):
                    word = adjective.fr[2]
                before += words(word, f"{role}.a{k}")
            else:
                after += words(word, f"{role}.a{k}")
        tokens = [*before, *words(noun, f"{role}.n"), *after, *self._called(role)]
        if self.determiner == "owner":
            tokens += words("de", f"{role}.w") + words(self.owner.names[0], f"{role}.w")
        return self._french_determiner(role, tokens[0].text) + tokens

    def _french_determiner(self, role: str, following: str) -> list[Token]:
        tags, spare = f"{role}.d", f"{role}.n"
        if self.determiner == "number":
            return words(self.number[1], tags)
        if self.negated and self.determiner in ("a", ""):
            return words("de", tags, spare)
        if self.determiner == "":
            return words("des", tags, spare) if self.plural else self._partitive(tags, spare)
        kind = "the" if self.determiner in ("generic", "owner") else self.determiner
        masculine, feminine, plural, vowel = _FRENCH_DETERMINERS[kind].split()
        if self.plural:
            word = plural
        elif self.noun.fr_gender == "f":
            word = vowel if starts_with_vowel(following) else feminine
        else:
            word = "cet" if masculine == "ce" and starts_with_vowel(following) else masculine
        return words(word, tags, spare)

    def _partitive(self, tags: str, spare: str) -> list[Token]:
        article = "la" if self.noun.fr_gender == "f" else "le"
        return words(f"de {article}", tags, spare)

    def es(self, role: str) -> list[Token]:
        before, after = [], []
        for k, adjective in enumerate(self.adjectives):
            # Of two adjectives the first goes before the noun: una pequeña casa blanca.
            leads = bool(adjective.es_before & (self.noun.kinds | {"b"}))
            leads = leads or (k == 0 and len(self.adjectives) == 2)
            word = adjective.spanish(self.noun.es_gender, self.plural, before=leads)
            (before if leads else after).extend(words(word, f"{role}.a{k}"))
        tokens = [*before, *words(self.noun.es[self.plural], f"{role}.n"), *after]
        tokens += self._called(role)
        if self.determiner == "owner":
            tokens += words(f"de {self.owner.names[0]}", f"{role}.w")
        return self._spanish_determiner(role, bool(before)) + tokens

    def _spanish_determiner(self, role: str, adjective_first: bool) -> list[Token]:
        tags, spare = f"{role}.d", f"{role}.n"
        if self.determiner == "number":
            return words(self.number[2], tags)
        if self.determiner == "" or (self.bare and not self.adjectives):
            return []
        kind = "the" if self.determiner in ("generic", "owner") else self.determiner
        forms = _SPANISH_DETERMINERS[kind].split()
        feminine = self.noun.es_gender == "f"
        if kind == "the" and self.noun.masculine_article and not (self.plural or adjective_first):
            feminine = False
        return words(forms[feminine + 2 * self.plural], tags, spare)

    def _called(self, role: str) -> list[Token]:
        return words(self.called.names[0], f"{role}.called") if self.called else []

    def negate(self, *, bare: bool = False) -> "Phrase":
        return replace(self, negated=True, bare=bare and self.determiner == "a")


@dataclass(frozen=True)
class Expression:
    """Words that stay as they are, with their own alignment: last week, on the table."""

    texts: tuple[str, str, str]

    def en(self, role: str) -> list[Token]:
        return self._say(0, role)

    def fr(self, role: str) -> list[Token]:
        return self._say(1, role)

    def es(self, role: str) -> list[Token]:
        return self._say(2, role)

    def _say(self, column: int, role: str) -> list[Token]:
        if "/" in self.texts[0]:
            return marked(self.texts[column], role)
        return words(self.texts[column], role)


@dataclass(frozen=True)
class Place:
    """A preposition and what follows it: in the garden, to paris."""

    preposition: tuple[str, str, str]
    where: Phrase | Expression

    def en(self, role: str) -> list[Token]:
        return self._preposition(0, role) + self.where.en(role)

    def fr(self, role: str) -> list[Token]:
        return self._preposition(1, role) + self.where.fr(role)

    def es(self, role: str) -> list[Token]:
        return self._preposition(2, role) + self.where.es(role)

    def _preposition(self, column: int, role: str) -> list[Token]:
        text = self.preposition[column]
        prefix = f"{role}.pre"
        return marked(text, prefix) if "/" in text else words(text, f"{prefix}.1")
