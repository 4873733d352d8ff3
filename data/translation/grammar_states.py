"""Kinds of sentence about how things are, where, and whose: the second half of what `build_grammar` writes.

Above: `grammar_actions`.
"""

from dataclasses import replace
from functools import cache

from grammar_actions import Sentences, polarity, said
from grammar_choices import (
    PUBLIC,
    Draw,
    adjective_for,
    at_place,
    expressions,
    go_together,
    names,
    near,
    of_kind,
    own,
    place_of,
    subject,
    thing,
    time,
    verbs,
)
from grammar_clauses import (
    BE,
    HAVE,
    Clause,
    Participant,
    Predicate,
    Tokens,
    Verb,
    adjective_predicate,
    ended,
    english,
    french,
    place_predicate,
)
from grammar_forms import (
    ME,
    SHE,
    THEY,
    WE,
    YOU,
    Token,
    english_article,
    french_present,
    spanish_present,
    words,
)
from grammar_phrases import (
    POSSESSIVES,
    PRONOUNS,
    Adjective,
    Noun,
    Phrase,
    Pronoun,
    adjectives,
    as_woman,
)


def _be(draw: Draw, who: Participant, predicate: Predicate, *, past: float = 0.2) -> Clause:
    negative, question = polarity(draw, who)
    question = "" if question == "who" else question
    tense = "past" if draw.chance(past) else "present"
    return Clause(who, BE, tense, predicate=predicate, negative=negative, question=question)


def describes(draw: Draw) -> Sentences | None:
    """anna is tired ; is the blue car expensive ?"""
    adjective = draw.one([a for a in adjectives() if a.predicative])
    fitting = of_kind(*adjective.predicative)
    if adjective.predicative & {"human", "kin"} and draw.chance(0.85):
        who = subject(draw, gendered=True)
        if isinstance(who, Phrase):
            who = replace(who, adjectives=())
    elif not fitting:
        return None
    else:
        noun = draw.one(fitting)
        who = thing(draw, noun, "def")
        who = replace(
            who, adjectives=(), determiner="the" if noun.is_a("public", "fish") else who.determiner
        )
        if noun.is_a("human", "kin"):
            return None
        if who.plural and noun.is_a("kitchen", "bear"):
            who = replace(who, plural=False)
        owned = noun.is_a("home") or not noun.is_a(*PUBLIC)
        if draw.chance(0.12) and not who.plural and not noun.mass and owned:
            who = Phrase(noun, "owner", owner=draw.one(names()))
    clause = _be(draw, who, adjective_predicate(adjective, who))
    if draw.chance(0.15) and adjective.copula == "estar" and clause.tense == "present":
        often = clause.negative or clause.question or draw.chance(0.5)
        if often:
            return said(replace(clause, complements=(expressions("time state")[0],)))
        return said(replace(clause, frequency=expressions("often")[0]))
    return said(clause)


def located(draw: Draw) -> Sentences | None:
    """the key is on the table ; where are my shoes ?"""
    kind = draw.weighted({"somebody": 3, "something": 6})
    if kind == "somebody":
        who = subject(draw)
        if isinstance(who, Phrase):
            who = replace(who, adjectives=())
        place = place_of(draw, of_kind("boy")[0])
    else:
        noun = draw.one(
            of_kind("portable", "tableware", "letter", "animal", "vehicle", "furniture", "building")
        )
        if noun.is_a("building"):
            who = Phrase(noun, "the")
        elif noun.is_a("animal") and not noun.is_a("pet"):
            who = Phrase(noun, "the", draw.chance(0.3))
        else:
            who = replace(thing(draw, noun, "def"))
        place = place_of(draw, noun)
        if place.where.noun == noun:
            return None
    clause = _be(draw, who, place_predicate(place), past=0.15)
    if clause.tense == "past" and not isinstance(who, Phrase) and draw.chance(0.4):
        clause = replace(clause, complements=(time(draw, "past", "be"),))
    return said(clause)


def where_is(draw: Draw) -> Sentences | None:
    """where is the station ? where are my keys ?"""
    kind = draw.weighted({"somebody": 2, "something": 6})
    if kind == "somebody":
        who = subject(draw, no_first=True)
    else:
        noun = draw.one(
            of_kind("portable", "clothes", "pet", "vehicle", "building", "device", "tableware")
        )
        who = Phrase(noun, "the") if noun.is_a("building") else thing(draw, noun, "def")
    be = {SHE: "is", THEY: "are", YOU: "are"}[who.person]
    french_be, spanish_be = french_present("être", who.person), spanish_present("estar", who.person)
    if isinstance(who, Pronoun):
        asked = words(f"{french_be}-{who.subject[1]}", "v s")
    else:
        asked = words(french_be, "v") + who.fr("s")
    return (
        ended(words("where", "wh") + words(be, "v") + [*_spare(who.en("s"), "v")], "?"),
        ended(words("où", "wh") + asked, "?"),
        ended(
            words("dónde", "wh") + words(spanish_be, "v") + who.es("s"), "?", spanish_target=True
        ),
    )


def _spare(tokens: Tokens, tag: str) -> Tokens:
    """The same tokens; without a partner they go with `tag`."""
    return [Token(t.text, t.tags, t.spare | {tag}) for t in tokens]


def has(draw: Draw) -> Sentences | None:
    """they have a big white house ; she doesn't have a car ."""
    who = subject(draw)
    negative, question = polarity(draw, who)
    tense = draw.weighted({"present": 6, "past": 2, "future": 1})
    noun = draw.one(
        of_kind(
            "portable",
            "gift",
            "vehicle",
            "pet",
            "device",
            "home",
            "furniture",
            "money",
            "sister",
            "brother",
        )
    )
    determiner = "" if noun.mass else draw.weighted({"a": 6, "number": 2, "my": 1})
    if noun.is_a("kin", "home", "money", "furniture") and determiner == "my":
        determiner = "a" if not noun.mass else ""
    if noun.is_a("home", "device") and determiner == "number":
        determiner = "a"
    phrase = Phrase(noun, determiner, plural=determiner == "number")
    if determiner == "number":
        if negative:
            return None
        phrase = replace(phrase, number=draw.one(expressions("number")[:3]).texts)
    if determiner == "my":
        owners = [p for p in POSSESSIVES if p != own(who)]
        phrase = replace(phrase, determiner=draw.one(owners))
        if question == "" and not negative and tense == "future":
            tense = "present"
    if determiner == "a" and not noun.is_a("kin") and draw.chance(0.5):
        phrase = replace(phrase, adjectives=adjective_for(draw, noun))
        pair = adjective_for(draw, noun, before=True) + adjective_for(draw, noun, before=False)
        if draw.chance(0.25) and go_together(pair):
            phrase = replace(phrase, adjectives=pair)
    if noun.is_a("kin") and (tense != "present" or negative):
        return None
    if tense == "future" and not noun.is_a("vehicle", "pet", "device", "home", "money"):
        return None
    if negative and noun.is_a(
        "picture", "flower", "mirror", "gift", "toy", "book", "dress", "letter"
    ):
        return None
    if negative:
        phrase = phrase.negate(bare=True)
    if question == "who":
        who = PRONOUNS[2]
    return said(Clause(who, HAVE, tense, object=phrase, negative=negative, question=question))


def likes(draw: Draw) -> Sentences | None:
    """i like coffee ; french aime le café, Spanish: the coffee pleases me, me gusta el café."""
    who = draw.one([*PRONOUNS, *names()])
    negative, question = polarity(draw, who)
    if question == "who":
        return None
    if draw.chance(0.25):
        verb = draw.one([v for v in verbs("intransitives") if "m" in v.uses and v.en != "go"])
        object_en = words("to", "t", "v") + words(verb.en, "o")
        object_fr, object_es, plural = words(verb.fr, "o"), words(verb.es, "o"), False
    else:
        noun = draw.one(of_kind("food", "massfood", "massdrink", "massmusic", "animal"))
        plural = not noun.mass
        phrase = Phrase(noun, "generic", plural)
        object_en, object_fr, object_es = phrase.en("o"), phrase.fr("o"), phrase.es("o")
    love = Verb("like", "liked", "liking", "", "aimer", "gustar", "s")
    clause = Clause(who, love, negative=negative, question=question)
    dative = {ME: "me", YOU: "te", SHE: "le", WE: "nos", THEY: "les"}[who.person]
    experiencer = words("a", "", "s s.n") + who.es("s") if who.person in (SHE, THEY) else []
    pleases = [
        *experiencer,
        *(words("no", "n") if negative else []),
        *words(dative, "s s.n"),
        *words("gustan" if plural else "gusta", "v f"),
        *object_es,
    ]
    mark = "?" if question else "."
    return (
        ended(english(clause) + object_en, mark),
        ended(french(clause) + object_fr, mark),
        ended(pleases, mark, spanish_target=True),
    )


def feels(draw: Draw) -> Sentences | None:
    """i'm hungry : j'ai faim, tengo hambre."""
    who = subject(draw)
    state = draw.one(expressions("idiom"))
    predicate = Predicate(state.en("a"), state.fr("a"), state.es("a"), "avoir", "tener")
    clause = _be(draw, who, predicate, past=0.25)
    plain = not (clause.negative or clause.question)
    if plain and clause.tense == "present" and state.texts[0] != "right" and draw.chance(0.25):
        return said(replace(clause, frequency=draw.one(expressions("often"))))
    return said(clause)


def aged(draw: Draw) -> Sentences | None:
    """my brother is ten years old ."""
    who = subject(draw)
    if isinstance(who, Phrase) and not who.noun.is_a(
        "brother", "sister", "son", "daughter", "friend", "boy", "girl"
    ):
        return None
    if isinstance(who, Phrase):
        who = replace(who, adjectives=())
    child = isinstance(who, Phrase) and who.noun.is_a("boy", "girl")
    number = draw.one(expressions("number")[3 : 7 if child else None])
    predicate = Predicate(
        number.en("d") + words("years", "a") + words("old", "a"),
        number.fr("d") + words("ans", "a"),
        number.es("d") + words("años", "a"),
        "avoir",
        "tener",
    )
    return said(_be(draw, who, predicate, past=0.0))


def weather(draw: Draw) -> Sentences | None:
    """it's cold today ."""
    state = draw.one(expressions("weather"))
    when = draw.one([None, *expressions("time state"), *expressions("time now")])
    end = [words(".", "end")] * 3
    middle = (when.en("t"), when.fr("t"), when.es("t")) if when else ([], [], [])
    start = (state.en("w"), state.fr("w"), state.es("w"))
    return tuple(a + b + c for a, b, c in zip(start, middle, end, strict=True))


def exists(draw: Draw) -> Sentences | None:
    """there is a cat in the garden ."""
    noun = draw.one(
        of_kind(
            "portable",
            "tableware",
            "animal",
            "building",
            "furniture",
            "fruit",
            "massdrink",
            "human",
        )
    )
    place = place_of(draw, noun)
    if noun.mass:
        place = at_place(near()["in"], draw.one(of_kind("glass", "cup", "bottle", "kitchen")))
    if noun.is_a("king", "queen", "airport") or place.where.noun == noun:
        return None
    if place.where.determiner == "generic":  # nobody says: there is a man at school
        return None
    determiner = "" if noun.mass else draw.weighted({"a": 5, "number": 3})
    phrase = Phrase(noun, determiner, plural=determiner == "number")
    if determiner == "number":
        phrase = replace(phrase, number=draw.one(expressions("number")[:4]).texts)
    elif not noun.mass and draw.chance(0.25):
        phrase = replace(phrase, adjectives=adjective_for(draw, noun))
    asked, past = draw.chance(0.25), draw.chance(0.2)
    be = ("were" if past else "are") if phrase.plural else ("was" if past else "is")
    there = words("there", "ex")
    start = words(be, "v q") + there if asked else there + words(be, "v")
    question = words("est-ce que", "q") if asked else []
    mark = "?" if asked else "."
    return (
        ended(start + phrase.en("o") + place.en("p"), mark),
        ended(
            question
            + words("il y", "ex")
            + words("avait" if past else "a", "v")
            + phrase.fr("o")
            + place.fr("p"),
            mark,
        ),
        ended(
            words("había" if past else "hay", "ex v") + phrase.es("o") + place.es("p"),
            mark,
            spanish_target=True,
        ),
    )


def points(draw: Draw) -> Sentences | None:
    """this is my sister ; that isn't your bag ."""
    noun = draw.one(
        of_kind("kin", "portable", "clothes", "home", "vehicle", "pet", "device", "text")
    )
    if noun.is_a("kin"):
        phrase = Phrase(noun, draw.one(POSSESSIVES))
    else:
        determiner = draw.weighted({"my": 6, "a": 2, "owner": 2})
        phrase = Phrase(noun, determiner)
        if determiner == "my":
            phrase = replace(phrase, determiner=draw.one(POSSESSIVES))
        if determiner == "owner":
            phrase = replace(phrase, owner=draw.one(names()))
        elif draw.chance(0.3):
            phrase = replace(phrase, adjectives=adjective_for(draw, noun))
    negative, question = polarity(draw, PRONOUNS[2])
    end = "?" if question else "."
    that = _spanish_this(noun)
    noun_en, noun_fr, noun_es = phrase.en("o"), phrase.fr("o"), phrase.es("o")
    if question:
        start = words("is", "v q") + words("this", "s")
        french_start = words("est-ce que", "q") + words("c'est", "s v")
    elif negative:
        start = words("this", "s") + words("isn't", "v n")
        french_start = words("ce", "s") + words("ne", "n") + words("est", "v") + words("pas", "n")
    else:
        start = words("this", "s") + words("is", "v")
        french_start = words("c'est", "s v")
    middle = words("no", "n") if negative else []
    spanish_start = words(that, "s") + middle + words("es", "v")
    if question:
        spanish_start = words("es", "v") + words(that, "s")
    return (
        ended(start + noun_en, end),
        ended(french_start + noun_fr, end),
        ended(spanish_start + noun_es, end, spanish_target=True),
    )


def _spanish_this(noun: Noun) -> str:
    return "esta" if noun.es_gender == "f" else "este"


def is_job(draw: Draw) -> Sentences | None:
    """tom is a doctor : tom est médecin; julia is my neighbor : julia est ma voisine."""
    who = subject(draw, gendered=True)
    if isinstance(who, Phrase) and (not who.noun.is_a("kin") or as_woman(who.noun)):
        return None
    woman = who.genders()[0] == "f"
    if not isinstance(who, Pronoun) and draw.chance(0.35):
        noun = draw.one(of_kind("friend", "neighbor", "teacher", "doctor", "lawyer", "student"))
        noun = as_woman(noun) if woman else noun
        phrase = Phrase(noun, draw.one(POSSESSIVES), who.plural)
        predicate = Predicate(phrase.en("a"), phrase.fr("a"), phrase.es("a"))
        return said(_be(draw, who, predicate, past=0.1))
    noun = draw.one(trades(woman))
    article = [] if who.plural else words(english_article(words(noun.en[0], "")), "", "a")
    en, fr, es = (words(forms[who.plural], "a") for forms in (noun.en, noun.fr, noun.es))
    return said(_be(draw, who, Predicate(article + en, fr, es), past=0.2))


@cache
def trades(of_women: bool) -> list[Noun]:
    """Nouns for what men, or women, work as."""
    only = of_kind("actress", "waitress") if of_women else of_kind("actor", "waiter")
    both = [noun for noun in of_kind("job") if as_woman(noun)]
    return only + [as_woman(noun) if of_women else noun for noun in both]


# What the world knows, smallest, lightest and slowest first; things in one group aren't compared.
RANKS = {
    "big": ["frog", "bird turtle", "duck", "rabbit cat", "dog", "goat", "donkey", "horse cow bear"],
    "heavy": ["lamp", "chair", "table", "sofa bed"],
    "fast": ["bike", "truck", "car motorcycle"],
}
RANKS["big"] += ["bike", "motorcycle", "car", "truck", "apartment", "house"]
ELDERS, CHILDREN = ("father", "mother", "grandfather", "grandmother"), ("son", "daughter")


def _rank(adjective: str, noun: Noun) -> int | None:
    groups = RANKS["big" if adjective == "small" else adjective]
    return next((k for k, group in enumerate(groups) if noun.is_a(*group.split())), None)


def compares(draw: Draw) -> Sentences | None:
    """my sister is taller than tom : plus grande que, más alta que."""
    comparatives = {
        "tall": "taller", "old": "older", "young": "younger", "strong": "stronger", "rich": "richer",
        "small": "smaller", "big": "bigger", "fast": "faster", "funny": "funnier", "kind": "kinder",
        "heavy": "heavier",
    }  # fmt: skip
    adjective = draw.one([a for a in adjectives() if a.en in comparatives and a.predicative])
    if adjective.predicative & {"human", "kin"}:
        first, second = subject(draw, gendered=True), subject(draw, gendered=True)
        if isinstance(second, Pronoun):
            return None
        first, second = (
            replace(p, adjectives=()) if isinstance(p, Phrase) else p for p in (first, second)
        )
        if isinstance(first, Phrase) and isinstance(second, Phrase):
            generations = first.noun.is_a(*ELDERS, *CHILDREN) or second.noun.is_a(
                *ELDERS, *CHILDREN
            )
            if first.noun == second.noun or (adjective.en in ("old", "young") and generations):
                return None
            if second.determiner == "her" and as_woman(first.noun) and not first.plural:
                first = replace(first, noun=as_woman(first.noun))
    else:
        kinds = adjective.predicative & {"animal", "vehicle", "home", "furniture", "pet"}
        if adjective.en == "big":
            kinds |= {"animal"}
        if not kinds:
            return None
        fitting = of_kind(draw.one(sorted(kinds)))
        one, two = draw.one(fitting), draw.one(fitting)
        if one == two:
            return None
        first = Phrase(one, draw.one(["the", "your", "my", "this"]))
        second = Phrase(two, draw.one(["the", "my", "your"]))
        first, second = (
            replace(p, determiner="the") if p.noun.is_a("bear", "frog") else p
            for p in (first, second)
        )
    if first == second:
        return None
    clause = _be(
        draw, first, _more(comparatives[adjective.en], adjective, first, second), past=0.05
    )
    if adjective.en in ("big", "small", "heavy", "fast") and not clause.question:
        ranks = _rank(adjective.en, first.noun), _rank(adjective.en, second.noun)
        if None in ranks or ranks[0] == ranks[1]:
            return None
        more = ranks[0] > ranks[1]
        if more == (clause.negative != (adjective.en == "small")):  # not true so, but the other way
            predicate = _more(comparatives[adjective.en], adjective, second, first)
            clause = replace(clause, subject=second, predicate=predicate)
    return said(clause)


def _more(comparative: str, adjective: Adjective, one: Participant, two: Participant) -> Predicate:
    """taller than tom, of `one`"""
    if adjective.en == "big" and one.noun.is_a("bulky"):  # gros, not grand
        adjective = next(a for a in adjectives() if "bulky" in a.attributive)
    french_gender, spanish_gender = one.genders()
    return Predicate(
        words(comparative, "a") + words("than", "y") + two.en("b"),
        words("plus", "a")
        + words(adjective.french(french_gender, one.plural), "a")
        + words("que", "y")
        + two.fr("b"),
        words("más", "a")
        + words(adjective.spanish(spanish_gender, one.plural), "a")
        + words("que", "y")
        + two.es("b"),
        es_verb="ser",
    )
