"""What the frames of `build_grammar` draw from: people, things, adjectives, places and times that fit.

Everything is drawn with `random.Random(seed).random()` alone, whose values Python guarantees on
every machine. Above: `grammar_clauses`.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from grammar_clauses import (
    Participant,
    Verb,
)
from grammar_forms import (
    ME,
    SHE,
    THEY,
    WE,
    YOU,
)
from grammar_phrases import (
    POSSESSIVES,
    PRONOUNS,
    THEY_WOMEN,
    Expression,
    Name,
    Noun,
    Phrase,
    Place,
    Pronoun,
    adjectives,
    as_woman,
    nouns,
    rows,
)

OWN = {("m", SHE): "his", ("f", SHE): "her"}


class Draw:
    """Choices that are the same on every machine."""

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def one(self, things: Sequence):
        return things[int(self._random() * len(things))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def weighted(self, choices: dict):
        """A key, as often as its value says."""
        mark = self._random() * sum(choices.values())
        for key, weight in choices.items():
            mark -= weight
            if mark < 0:
                return key
        return key


# The lexicon as the frames need it ----------------------------------------------------------------


@cache
def of_kind(*kinds: str) -> list[Noun]:
    return [noun for noun in nouns() if noun.is_a(*kinds)]


@cache
def verbs(name: str = "verbs") -> list[Verb]:
    table = []
    for row in rows(name):
        if name == "verbs":
            *forms, uses, determiners, objects = row
        else:
            *forms, uses, objects = row
            determiners = ""
        places_or_objects = frozenset(objects.split())
        preposition = "de" if "instrument" in places_or_objects else ""
        table.append(Verb(*forms, uses, determiners, places_or_objects, preposition))
    return table


@cache
def expressions(kind: str) -> list[Expression]:
    return [Expression((en, fr, es)) for k, en, fr, es in rows("words") if k == kind]


@cache
def names() -> list[Name]:
    return [
        Name((en,), kind.split()[1]) for kind, en, _, _ in rows("words") if kind.startswith("name")
    ]


# Participants -----------------------------------------------------------------------------------


def subject(draw: Draw, *, gendered: bool = False, no_first: bool = False) -> Participant:
    """Somebody. gendered: somebody whose gender is known (not i, you, we); no_first: not i, we."""
    kind = draw.weighted({"pronoun": 46, "name": 24, "kin": 20, "human": 7, "two": 3})
    if kind == "pronoun":
        persons = {SHE, THEY} if gendered else {YOU, SHE, THEY} if no_first else set(range(5))
        return draw.one([p for p in PRONOUNS if p.person in persons])
    if kind == "name":
        return draw.one(names())
    if kind == "two":
        first, second = draw.one(names()), draw.one(names())
        if first == second:
            return first
        gender = "f" if first.gender == second.gender == "f" else "m"
        return Name(first.names + second.names, gender)
    return human(draw, kind)


def human(draw: Draw, kind: str) -> Phrase:
    """my sister, my friend anna, the young doctor"""
    if kind == "kin":
        noun = draw.one(of_kind("kin"))
        plural = draw.chance(0.25) and not noun.is_a("one")
        either = as_woman(noun) is not None  # a friend, a neighbor
        if not plural and not noun.is_a("one") and draw.chance(0.8 if either else 0.1):
            gender = ("f" if draw.chance(0.65) else "m") if either else noun.fr_gender
            name = draw.one([n for n in names() if n.gender == gender])
            noun = as_woman(noun) if either and gender == "f" else noun
            return Phrase(noun, draw.one(POSSESSIVES), called=name)
        return Phrase(noun, draw.one(POSSESSIVES), plural)
    # Whether the doctor is a woman, English rarely tells: fewer of them.
    noun = draw.one([n for n in of_kind("human") if as_woman(n) is None or draw.chance(0.2)])
    adjective = adjective_for(draw, noun) if draw.chance(0.35) else ()
    plural = draw.chance(0.2) and not noun.is_a("one")
    return Phrase(noun, draw.one(["the", "the", "the", "this"]), plural, adjective)


def pronoun_for(participant: Participant) -> Pronoun:
    """he, she or they; elles and ellas for my sisters, for anna and emma"""
    if isinstance(participant, Pronoun):
        return participant
    wanted = participant.person, participant.genders()[0]
    return next(p for p in [*PRONOUNS, THEY_WOMEN] if (p.person, p.gender) == wanted)


def man_or_woman(draw: Draw, who: Participant) -> Participant:
    """For a sentence that goes on with he or she: the doctor is more often a woman.

    In sentences that don't tell, she is a man; this makes up for some of those.
    """
    if isinstance(who, Phrase) and not (who.plural or who.called) and as_woman(who.noun):
        return replace(who, noun=as_woman(who.noun)) if draw.chance(0.65) else who
    return who


def somebody(draw: Draw, *, gendered: bool = False) -> Participant:
    """A subject for a sentence that goes on with he or she."""
    if draw.chance(0.25):
        trade = draw.one([noun for noun in of_kind("human") if as_woman(noun)])
        return man_or_woman(draw, Phrase(trade, "the"))
    if draw.chance(0.15):
        women = draw.one(of_kind("sister", "daughter", "aunt"))
        return Phrase(women, draw.one(POSSESSIVES), plural=True)
    return man_or_woman(draw, subject(draw, gendered=gendered))


def own(participant: Participant) -> str:
    """The possessive of the participant: she … her."""
    if participant.person == SHE:
        return OWN[participant.genders()[0], SHE]
    return {ME: "my", YOU: "your", WE: "our", THEY: "their"}[participant.person]


def adjective_for(draw: Draw, noun: Noun, *, before: bool | None = None) -> tuple:
    """An adjective that can stand with the noun, or nothing."""
    fitting = [a for a in adjectives() if noun.is_a(*a.attributive)]
    if before is not None:
        fitting = [a for a in fitting if a.fr_before == before]
    return (draw.one(fitting),) if fitting else ()


# Kinds of things that nobody owns: no possessives.
PUBLIC = (
    "building",
    "landmark",
    "ride",
    "visit",
    "at",
    "in",
    "show",
    "song",
    "radio",
    "bear",
    "frog",
)
COLORS = ("red", "blue", "green", "yellow", "white", "black", "gray")


def go_together(pair: tuple) -> bool:
    """a small red car"""
    return (
        len(pair) == 2
        and pair[0].en in ("small", "old", "new", "pretty", "beautiful")
        and pair[1].en in COLORS
    )


def thing(draw: Draw, noun: Noun, style: str, owner: Participant | None = None) -> Phrase:
    """A noun phrase: style any, def(inite) or the; owner: whose possessive it gets, if it gets one."""
    if style == "the":
        return Phrase(noun, "the")
    possessive = own(owner) if owner and draw.chance(0.7) else draw.one(POSSESSIVES)
    if noun.mass:
        if (style == "any" and draw.chance(0.75)) or noun.is_a("music", "money"):
            return Phrase(noun, "")
        return Phrase(noun, draw.weighted({"the": 3, "this": 1}))
    nobody_s = noun.is_a(*PUBLIC) and not noun.is_a("home")
    several = 0 if noun.is_a("one") else 1
    kinds = {"the": 5, "this": 2, "that": 1, "these": several, "the+": several}
    kinds |= {} if nobody_s else {possessive: 4}
    if style == "any":
        kinds |= {"a": 6, "": 1, "number": 1, "owner": 0 if nobody_s else 1}
    kind = draw.weighted(kinds)
    if kind == "these":
        return Phrase(noun, "this", plural=True)
    if kind == "the+":
        return Phrase(noun, "the", plural=True)
    if kind == "":
        return Phrase(noun, "", plural=True)
    if kind == "number":
        number = draw.one(expressions("number")[:4]).texts
        return Phrase(noun, "number", plural=True, number=number)
    if kind == "owner":
        return Phrase(noun, "owner", owner=draw.one(names()))
    phrase = Phrase(noun, kind)
    if draw.chance(0.2):
        phrase = replace(phrase, adjectives=adjective_for(draw, noun))
    elif draw.chance(0.05):
        pair = adjective_for(draw, noun, before=True) + adjective_for(draw, noun, before=False)
        if go_together(pair):
            phrase = replace(phrase, adjectives=pair)
    return phrase


# Places and times -------------------------------------------------------------------------------

IN = ("in", "dans", "en")
AT = ("at", "à", "en")
TO = ("to", "à", "a")
IN_CHURCH = ("in", "à", "en")


@cache
def near() -> dict[str, tuple[str, str, str]]:
    """Prepositions of place by their English words."""
    table = [expression.texts for expression in expressions("near")]
    return {" ".join(p.partition("/")[0] for p in texts[0].split()): texts for texts in table}


def in_or_at(preposition: tuple[str, str, str], noun: Noun) -> Place:
    """at the station; but at school, in church, à l'école, en la iglesia."""
    if noun.is_a("church"):
        preposition = IN_CHURCH if preposition == IN else preposition
    return at_place(preposition, noun, "generic" if noun.is_a("school", "church") else "the")


def by_water(preposition: str, noun: Noun) -> tuple[str, str, str]:
    """Nothing stands in front of a river, or behind it, but by it or near it."""
    wet = noun.is_a("lake", "river") and preposition != "near"
    return near()["by" if wet else preposition]


def at_place(preposition: tuple[str, str, str], noun: Noun, determiner: str = "the") -> Place:
    return Place(preposition, Phrase(noun, determiner))


def place_named(draw: Draw, kind: str, who: Participant | None = None) -> Place:
    """A place of a kind that lexicon/intransitives.tsv names; "to:" before it is where one goes.

    who: the one who sleeps in a bed of their own.
    """
    direction, _, what = kind.rpartition(":")
    if what == "city":
        city = draw.one(expressions("city"))
        return Place(("to", "à", "a") if direction == "to" else ("in", "à", "en"), city)
    if what == "country":
        en, fr, es = draw.one(expressions("country")).texts
        preposition, _, country = fr.rpartition(" ")  # en france, à le (au) japon
        english_word, spanish_word = ("to", "a") if direction == "to" else ("in", "en")
        return Place((english_word, preposition, spanish_word), Expression((en, country, es)))
    if what == "sleep":
        bed = draw.chance(0.6)
        if not bed:
            determiner = draw.one(["the", "the", "this"])
            return at_place(("on", "sur", "en"), draw.one(of_kind("sofa")), determiner)
        noun = draw.one(of_kind("bed"))
        if who and draw.chance(0.7):
            return Place(IN, Phrase(noun, own(who), who.plural))
        return at_place(IN, noun, "this")
    if what == "swim":
        return at_place(IN, draw.one(of_kind("lake", "river")))
    if what == "work":
        places = [n for n in of_kind("public", "station", "airport") if not n.is_a("school")]
        return at_place(AT, draw.one(places))
    noun = draw.one(of_kind(what))
    if direction == "to":
        return in_or_at(TO, noun)
    if what == "village" and draw.chance(0.5):
        return at_place(IN, noun, "this")
    return in_or_at(AT if noun.is_a("at") else IN, noun)


def place_of(draw: Draw, noun: Noun) -> Place:
    """Where a thing of this kind may well be; of somebody too."""
    if noun.is_a("human", "kin", "name"):
        kind = draw.weighted({"room": 3, "at": 4, "near": 2, "in": 2})
        if kind == "near":
            return at_place(
                near()[draw.one(["near", "behind", "in front of"])], draw.one(of_kind("building"))
            )
        return in_or_at(AT if kind == "at" else IN, draw.one(of_kind(kind)))
    if noun.is_a("animal"):
        where = draw.weighted({"under": 2 * noun.is_a("cat", "dog"), "near": 3, "in": 3})
        if where == "under":
            return at_place(near()[draw.one(["under", "on"])], draw.one(of_kind("surface")))
        if where == "near":
            preposition = draw.one(["near", "behind", "in front of", "next to"])
            other = draw.one(of_kind("landmark", "house", "truck", "car"))
            return at_place(by_water(preposition, other), other)
        return at_place(IN, draw.one(of_kind("garden", "park", "forest", "street")))
    if noun.is_a("building"):
        where = draw.weighted({"near": 4, "in": 1})
        if where == "in":
            around = draw.one(of_kind("street", "village", "city"))
            return at_place(IN, around, "this" if around.is_a("street") else "the")
        preposition = draw.one(["near", "behind", "in front of", "next to"])
        other = draw.one(of_kind("building", "park", "market", "bridge", "lake", "river"))
        preposition = "near" if {"airport"} & (noun.kinds | other.kinds) else preposition
        return at_place(by_water(preposition, other), other)
    if noun.is_a("boat"):
        if draw.chance(0.5):
            return at_place(("on", "sur", "en"), draw.one(of_kind("lake", "river")))
        return at_place(near()["near"], draw.one(of_kind("bridge", "beach")))
    if noun.is_a("vehicle"):
        preposition = near()[draw.one(["near", "behind", "in front of"])]
        return at_place(preposition, draw.one(of_kind("building", "tree")))
    if noun.is_a("furniture"):
        if draw.chance(0.6):
            return at_place(IN, draw.one(of_kind("kitchen", "bedroom", "garden")))
        return at_place(near()[draw.one(["near", "next to"])], draw.one(of_kind("openpart")))
    where = draw.weighted({"on": 4, "in": 2, "under": 2, "room": 2})
    if where == "room":
        return at_place(IN, draw.one(of_kind("kitchen", "bedroom")))
    if where == "in":
        boxes = [n for n in of_kind("box") if n != noun]
        return at_place(
            near()["in"], draw.one(boxes), draw.one(["the", "the", "my", "your", "her"])
        )
    return at_place(near()[where], draw.one(of_kind("surface")))


TIMES = {
    "present": "habit",
    "progressive": "now",
    "past": "past",
    "future": "future",
    "going": "future",
}


LASTING = {"travel", "learn", "work", "study"}  # for a week, a year; not at noon
EITHER = {"buy", "sell", "visit", "paint", "go", "repair", "write", "read", "play", "swim", "have"}
SOON = {
    "leave",
    "come",
    "arrive",
    "buy",
    "sell",
    "visit",
    "see",
    "call",
    "finish",
    "repair",
    "invite",
}
# What takes a moment.
BRIEF = {"open", "close", "cut", "throw", "carry", "hide", "choose"}
# What one does in summer and in winter alike.
ALL_YEAR = {"listen", "use", "watch", "read", "write", "help", "wash", "clean"}


def time(
    draw: Draw, tense: str, verb: str, *, negative: bool = False, far: bool = False
) -> Expression:
    """A time that suits the tense and how long such a thing takes; far: to a city or a country."""
    when = TIMES[tense]
    moments, weeks = expressions(f"time {when}"), expressions(f"time week {when}")
    if when == "habit":
        seasons = expressions("time season habit")
        if far or verb == "travel":
            return draw.one(seasons)
        if verb == "speak":
            return draw.one(moments)
        return draw.one(moments + weeks + ([] if verb in ALL_YEAR else seasons))
    if when == "now":
        return draw.one(moments)
    years = expressions(f"time long {when}")
    if verb in LASTING:
        return draw.one(weeks + years)
    if negative or verb not in SOON:
        moments = [moment for moment in moments if moment.texts[0] != "soon"]
    if verb in BRIEF:
        return draw.one(
            [m for m in moments if not m.texts[0].startswith(("on", "last/1 m", "two"))]
        )
    if verb == "sleep":  # he slept last night: hier soir, or in the night?
        moments = [moment for moment in moments if not moment.texts[0].startswith("last")]
    return draw.one(moments + weeks + (years if verb in EITHER else []))
