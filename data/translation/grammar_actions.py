"""Kinds of sentence about what somebody does: the first half of what `build_grammar` writes.

A frame, here and in `grammar_states`, draws a meaning and says it in English, French and Spanish; it
returns None for a draw that does not work out. Above: `grammar_choices`.
"""

from dataclasses import replace
from functools import cache

from grammar_choices import (
    IN,
    Draw,
    adjective_for,
    at_place,
    expressions,
    human,
    man_or_woman,
    names,
    near,
    of_kind,
    own,
    place_named,
    pronoun_for,
    somebody,
    subject,
    thing,
    time,
    verbs,
)
from grammar_clauses import (
    BE,
    HAVE,
    SPANISH_REFLEXIVES,
    Clause,
    Participant,
    Predicate,
    Tokens,
    Verb,
    adjective_predicate,
    ended,
    english,
    french,
    spanish,
)
from grammar_forms import (
    ME,
    SHE,
    THEY,
    WE,
    YOU,
    Token,
    french_imperative,
    french_participle,
    spanish_imperative,
    spanish_present,
    spanish_preterite,
    words,
)
from grammar_phrases import (
    POSSESSIVES,
    PRONOUNS,
    Expression,
    Phrase,
    Place,
    Pronoun,
    adjectives,
    as_man,
    as_woman,
)

Sentences = tuple[Tokens, Tokens, Tokens]


def said(clause: Clause, mark: str = "") -> Sentences:
    """A clause as a sentence; the doctor who washes her car is a woman."""
    who = clause.subject
    if isinstance(who, Phrase) and not who.plural and not who.called and as_woman(who.noun):
        parts = [clause.object, *(getattr(place, "where", None) for place in clause.complements)]
        hers = any(isinstance(part, Phrase) and part.determiner == "her" for part in parts)
        noun = as_woman(who.noun) if hers else as_man(who.noun)
        clause = replace(clause, subject=replace(who, noun=noun))
    mark = mark or ("?" if clause.question else ".")
    return (
        ended(english(clause), mark),
        ended(french(clause), mark),
        ended(spanish(clause), mark, spanish_target=True),
    )


def renamed(tokens: Tokens, suffix: str) -> Tokens:
    """The same tokens with tags of their own, for a second clause in the sentence."""
    return [
        Token(t.text, *(frozenset(tag + suffix for tag in tags) for tags in (t.tags, t.spare)))
        for t in tokens
    ]


# One *knows how* to do these in French and Spanish (sait nager, sabe nadar): none of our modals.
SKILLS = {
    "swim",
    "speak",
    "play",
    "dance",
    "draw",
    "sing",
    "cook",
    "paint",
    "teach",
    "write",
    "read",
}


def _tense(draw: Draw, uses: str) -> str:
    """A tense that the verb is used in, and "modal"."""
    weights = {"present": 5 * ("s" in uses or "h" in uses), "progressive": 4 * ("g" in uses)}
    weights |= {"past": 7 * ("p" in uses), "future": 3 * ("f" in uses), "going": 3 * ("f" in uses)}
    return draw.weighted(weights | {"modal": 2 * ("m" in uses)})


def polarity(draw: Draw, who: Participant) -> tuple[bool, str]:
    """negative, question"""
    kind = draw.weighted({"plain": 60, "not": 22, "yes": 14, "who": 4})
    if kind in ("yes", "who"):
        kind = "plain" if kind == "yes" and who.person in (ME, WE) else kind
        return False, "" if kind == "plain" else kind
    return kind == "not", ""


def _clause(draw: Draw, verb: Verb) -> Clause:
    """Subject, tense and polarity; the object and the rest are the frame's."""
    tense = _tense(draw, verb.uses)
    etre = tense == "past" and verb.fr in ("aller", "arriver", "revenir", "partir", "tomber")
    who = subject(draw, gendered=etre)
    negative, question = polarity(draw, who)
    if question == "who":
        who = PRONOUNS[2]  # the third person, masculine
    who = man_or_woman(draw, who)
    modal = draw.one(["can", "must", "want"]) if tense == "modal" else ""
    if modal == "can" and verb.en in SKILLS:
        modal = "want"
    if modal == "must" and (negative or question):
        modal = "want"
    return Clause(
        who, verb, "present" if modal else tense, negative=negative, question=question, modal=modal
    )


def _timed(draw: Draw, clause: Clause, probability: float) -> Clause:
    """Perhaps with a time, or with always, often, never."""
    habit = clause.tense == "present" and not clause.modal
    if habit and "s" in clause.verb.uses:
        return clause
    adverb = habit and not (clause.negative or clause.question or clause.verb.en == "learn")
    if adverb and draw.chance(0.45):
        if draw.chance(0.3):
            return replace(clause, never=True)
        return replace(clause, frequency=draw.one(expressions("often")))
    if habit and clause.verb.en == "sleep":
        return clause
    if draw.chance(probability) and not clause.modal:
        far = any(isinstance(place.where, Expression) for place in clause.complements)
        far = far and clause.verb.en == "go"
        when = time(draw, clause.tense, clause.verb.en, negative=clause.negative, far=far)
        return replace(clause, complements=(*clause.complements, when))
    return clause


# After these the thing is gone, or finished: a habit takes others ("he often eats apples").
ONCE = {"eat", "drink", "buy", "sell", "read", "write", "make", "draw", "cut"}


def _of_a_habit(verb: Verb, phrase: Phrase) -> Phrase:
    """Apples, bread: any of the kind. Only what one reads may be the same every day."""
    if verb.en not in ONCE or (
        verb.en == "read" and phrase.noun.is_a("newspaper", "book", "novel")
    ):
        return phrase
    return Phrase(phrase.noun, "", plural=not phrase.noun.mass)


def _garment(garment: Phrase, who: Participant) -> Phrase:
    """What they wear: a coat, her coat; of several persons, coats, their coats."""
    determiner = garment.determiner
    if who.plural:
        determiner = "" if determiner in ("a", "", "number") else own(who)
    elif determiner not in ("a", "this", "the"):
        determiner = own(who)
    adjectives = garment.adjectives if len(garment.adjectives) < 2 else ()
    return Phrase(garment.noun, determiner, who.plural, adjectives)


# "She didn't write a letter"; but who says "she didn't lose a knife"?
WORTH_DENYING = {"buy", "write", "read", "bring", "draw", "make"}


def transitive(draw: Draw) -> Sentences | None:
    """the girl is eating an apple ."""
    verb = draw.one([v for v in verbs() if v.objects])
    clause = _clause(draw, verb)
    if "language" in verb.objects and draw.chance(0.8):
        language = draw.one(expressions("language")).texts
        article = "le/0 " if verb.en in ("learn", "study", "teach") else ""
        thing_said = Expression(
            (f"{language[0]}/1", f"{article}{language[1]}/1", f"{language[2]}/1")
        )
        return said(_timed(draw, replace(clause, object=thing_said), 0.2))
    if "sport" in verb.objects:
        return said(_timed(draw, replace(clause, object=draw.one(expressions("sport"))), 0.25))
    fitting = of_kind(*verb.objects)
    if not fitting:
        return None
    noun = draw.one(fitting)
    owner = clause.subject if clause.question != "who" else None
    style = verb.determiners or "def"
    if noun.is_a("home") and verb.en in ("buy", "sell"):
        style = "any"
    object_ = thing(draw, noun, style, owner)
    plain_habit = clause.tense == "present" and not clause.modal and "s" not in verb.uses
    if plain_habit:
        rare = {"buy": ("home", "vehicle", "device", "furniture", "instrument"), "sell": ("home",)}
        if noun.is_a(*rare.get(verb.en, ())):
            return None
        object_ = _of_a_habit(verb, object_)
    if verb.en == "wear":
        object_ = _garment(object_, clause.subject)
    if clause.negative:
        if object_.determiner == "number" or (
            object_.determiner == "a" and clause.tense == "past" and verb.en not in WORTH_DENYING
        ):
            return None
        object_ = object_.negate()
    clause = _timed(draw, replace(clause, object=object_), 0.3)
    if clause.never:
        clause = replace(clause, object=object_.negate())
    if verb.en == "write" and clause.complements and not plain_habit:
        when = clause.complements[0].texts[0]
        if noun.is_a("novel") != ("year" in when or "summer" in when):  # who writes one in a night?
            return None
    if plain_habit and object_.determiner != "" and verb.en not in ("play", "take"):
        # "she opens the door" wants a habit around it: "she often opens the door"
        if not (clause.never or clause.frequency or clause.complements):
            return None
        if object_.determiner in ("number", "owner", "a", "that"):
            return None
    if clause.negative and verb.en == "love":
        return None
    if verb.en == "follow" and _reads_as_be(clause):
        return None
    if verb.en == "wear" and noun.is_a("dress", "skirt") and own(clause.subject) == "his":
        return None  # a reader would stop and wonder
    if verb.en == "forget" and clause.tense in ("future", "going") and not clause.negative:
        return None  # nobody plans to
    plain = not (clause.negative or clause.question or clause.complements or clause.modal)
    if plain and verb.en == verb.past and clause.tense in ("present", "past"):
        return None  # "i read the book": now, or yesterday?
    return said(clause)


def _reads_as_be(clause: Clause) -> bool:
    """je suis ton lapin: i'm following your rabbit, or i'm your rabbit?"""
    return clause.subject.person == ME and clause.tense in ("present", "progressive")


# What one asks with a time: what did you eat yesterday ? hardly: what did you close on monday ?
ASKED_WITH_TIME = {"eat", "drink", "buy", "read", "watch"}


def object_question(draw: Draw) -> Sentences | None:
    """what is the girl eating ?"""
    verb = draw.one([v for v in verbs() if "w" in v.uses])
    clause = _clause(draw, verb)
    if (
        clause.subject.person in (ME, WE)
        or clause.modal in ("must", "can")
        or clause.question == "who"
    ):
        return None
    if verb.en in ("lose", "forget", "find", "break") and clause.tense != "past":
        return None
    clause = replace(clause, negative=False, question="what")
    if verb.en not in ASKED_WITH_TIME:
        return said(clause)
    clause = _timed(draw, clause, 0.4)
    when = clause.complements[0].texts[0] if clause.complements else ""
    vague = when.startswith(("on", "next", "last/1 week", "in/1 winter", "in/1 summer"))
    return None if vague else said(clause)


def person_object(draw: Draw) -> Sentences | None:
    """i know her ; my mother is waiting for tom ."""
    verb = draw.one([v for v in verbs() if "c" in v.uses and v.en not in ("find", "understand")])
    clause = _clause(draw, verb)
    kind = draw.weighted({"pronoun": 6, "name": 2, "kin": 3, "human": 1 * (verb.en != "love")})
    if kind == "pronoun":
        object_ = draw.one(PRONOUNS)
        if object_.person in (ME, YOU, WE) and clause.tense == "past":
            return None  # the participle would agree with a gender that English hides
        same = clause.subject.person == object_.person
        if same and not (object_.person in (SHE, THEY) and not isinstance(clause.subject, Pronoun)):
            return None
        if {object_.person, clause.subject.person} in ({ME, WE}, {ME}, {WE}):
            return None
    elif kind == "name":
        object_ = draw.one(names())
    else:
        object_ = human(draw, kind)
        if isinstance(clause.subject, Phrase) and object_.noun == clause.subject.noun:
            return None
        if verb.en == "call":
            object_ = replace(object_, adjectives=())
    if verb.en == "see" and clause.question == "who" and clause.tense == "present":
        return None
    if verb.en == "love" and clause.negative:  # a sad thing to learn a language with
        return None
    if verb.en == "follow" and _reads_as_be(clause):
        return None
    return said(_timed(draw, replace(clause, object=object_), 0.25))


def _place_with(verb: Verb, place: Place) -> Place:
    """Two Spanish verbs want a preposition of their own: llegar a, caminar por."""
    english_word, french_word, spanish_word = place.preposition
    spanish_word = {"arrive": "a", "walk": "por"}.get(verb.en, spanish_word)
    return Place((english_word, french_word, spanish_word), place.where)


def intransitive(draw: Draw) -> Sentences | None:
    """he lives in paris ; did you go to the market yesterday ?"""
    verb = draw.one(verbs("intransitives"))
    clause = _clause(draw, verb)
    kinds = sorted(verb.objects)
    needs_place = verb.en in ("live", "go") or (verb.en == "travel" and draw.chance(0.5))
    if kinds and (needs_place or draw.chance(0.5)):
        who = clause.subject if clause.question != "who" else None
        place = _place_with(verb, place_named(draw, draw.one(kinds), who))
        clause = replace(clause, complements=(place,))
    often = verb.en in ("leave", "come", "arrive") or clause.tense == "present"
    clause = _timed(draw, clause, 0.75 if often else 0.4)
    if verb.en == "live" and clause.tense != "present":
        return None
    if _goes_nowhere(clause):
        return None
    return said(clause)


def _goes_nowhere(clause: Clause) -> bool:
    """he walked: where? As an event, walking wants a place; as a habit or an ability it doesn't."""
    event = clause.tense in ("past", "future", "going")
    placed = any(isinstance(part, Place) for part in clause.complements)
    return clause.verb.en == "walk" and event and not placed


def open_question(draw: Draw) -> Sentences | None:
    """where do you work ? when did she leave ? why are they crying ?"""
    question = draw.one(["where", "when", "why"])
    verb = draw.one(verbs("intransitives"))
    clause = _clause(draw, verb)
    if (
        clause.subject.person in (ME, WE)
        or clause.modal in ("must", "can")
        or clause.question == "who"
    ):
        return None
    if question == "why" and verb.en == "arrive":
        return None
    if question == "where" and verb.en in ("cry", "laugh", "leave", "come", "arrive"):
        return None
    if verb.en == "go" and (clause.tense == "going" or question == "when"):
        return None
    if question == "when" and (
        clause.tense in ("present", "progressive") or verb.en in ("cry", "laugh")
    ):
        return None
    if question == "why" and verb.en in ("live", "go") and not clause.complements:
        clause = replace(clause, complements=(place_named(draw, draw.one(sorted(verb.objects))),))
    clause = replace(clause, negative=False, question=question)
    if (question != "when" and clause.tense == "progressive" and draw.chance(0.1)) or (
        question != "when" and draw.chance(0.25)
    ):
        clause = _timed(draw, clause, 1.0)
    return None if _goes_nowhere(clause) else said(clause)


def requests(draw: Draw) -> Sentences | None:
    """please open the window : ouvre la fenêtre, s'il te plaît."""
    verb = draw.one([v for v in verbs() if "i" in v.uses])
    please = (words("please", "pl"), words(", s'il te plaît", "pl"), words(", por favor", "pl"))
    if "c" in verb.uses and draw.chance(0.5):
        object_ = draw.one([*names(), human(draw, "kin"), human(draw, "human")])
        if isinstance(object_, Phrase):
            object_ = replace(object_, adjectives=())
    else:
        fitting = of_kind(*verb.objects) if verb.objects else []
        if not fitting:
            return None
        object_ = thing(draw, draw.one(fitting), verb.determiners or "def", PRONOUNS[1])
    clause = Clause(PRONOUNS[1], verb, object=object_)
    order = words(spanish_imperative(verb.es), "v")
    if clause.spanish_reflexive:
        order = words("cómete", "v")
    keep_a = spanish(clause)[1 + clause.spanish_reflexive :]
    particle = words(verb.particle, "v") if verb.particle else []
    return (
        please[0] + words(verb.en, "v") + particle + object_.en("o") + words(".", "end"),
        words(french_imperative(verb.fr), "v") + object_.fr("o") + please[1] + words(".", "end"),
        order + keep_a + please[2] + words(".", "end"),
    )


def how_many(draw: Draw) -> Sentences | None:
    """how many books does she have ? : combien de livres, ¿ cuántos libros"""
    who = subject(draw, no_first=True)
    verb = draw.one(
        [
            HAVE,
            HAVE,
            *(v for v in verbs() if v.en in ("buy", "read", "eat", "write", "sell", "see")),
        ]
    )
    if verb is HAVE:
        noun = draw.one(
            of_kind(
                "portable",
                "gift",
                "vehicle",
                "pet",
                "furniture",
                "sister",
                "brother",
                "son",
                "daughter",
            )
        )
        tense = draw.one(["present", "present", "past"])
    else:
        fitting = [
            n for n in of_kind(*verb.objects) if not n.mass and not n.is_a("home", "building")
        ]
        noun, tense = draw.one(fitting), draw.one(["past", "past", "future"])
    if noun.is_a("kin"):
        tense = "present"
    clause = Clause(who, verb, tense, question="yes")
    many = Phrase(noun, "", plural=True)
    gender = noun.fr_gender
    group_fr = french(clause)
    if tense == "past" and verb is not HAVE:  # combien de pommes est-ce qu'elle a mangées ?
        participle = group_fr[-1]
        group_fr = [
            *group_fr[:-1],
            Token(french_participle(verb.fr, gender, True), participle.tags),
        ]
    how = "cuántas" if noun.es_gender == "f" else "cuántos"
    group_es = spanish(replace(clause, question="who"))[1:]
    return (
        ended(words("how", "hm") + words("many", "hm") + many.en("o") + english(clause), "?"),
        ended(
            words("combien", "hm") + words("de", "hm") + words(noun.fr[1], "o.n") + group_fr, "?"
        ),
        ended(words(how, "hm") + many.es("o") + group_es + who.es("s"), "?", spanish_target=True),
    )


# What one does first, then, and with what.
AND_IT = [
    ("buy", "eat", "fruit cake cookie sandwich pizza"),
    ("buy", "read", "book novel magazine newspaper"),
    ("buy", "sell", "vehicle"),
    ("buy", "wash", "vehicle"),
    ("find", "hide", "portable"),
    ("write", "read", "poem story letter message"),
    ("choose", "buy", "clothes gift"),
    ("wash", "eat", "fruit"),
    ("cut", "eat", "fruit"),
    ("read", "understand", "poem message letter article"),
    ("break", "repair", "device toy window"),
    ("draw", "paint", "animal tree"),
]


@cache
def verb_named(english_word: str) -> Verb:
    return next(v for v in verbs() if v.en == english_word)


def and_it(draw: Draw) -> Sentences | None:
    """anna bought an apple and ate it : et elle l'a mangée, y se la comió.

    "it" goes with the noun's gender; French repeats the subject.
    """
    first, second, kinds = draw.one(AND_IT)
    noun = draw.one(of_kind(*kinds.split()))
    who = subject(draw)
    phrase = Phrase(noun, draw.weighted({"a": 5, "the": 3, "number": 1, "this": 1}))
    if phrase.determiner == "number":
        phrase = replace(phrase, plural=True, number=draw.one(expressions("number")[:3]).texts)
    one = Clause(who, verb_named(first), "past", object=phrase)
    it = _it(phrase)
    verb = verb_named(second)
    en = words(verb.past, "v x") + words(it.object[0], "o")
    fr = _resumed(french(Clause(pronoun_for(who), verb, "past", object=it)))
    # The clitic of a feminine Spanish noun may be masculine in French: each language has its own.
    es = words("la" if noun.es_gender == "f" else "lo", "o")
    es = words(es[0].text + "s", "o") if phrase.plural else es
    if second == "eat":
        es = words(SPANISH_REFLEXIVES[who.person], "v") + es
    es += words(spanish_preterite(verb.es, who.person), "v")
    return (
        english(one) + words("and", "&") + renamed(en, "2") + words(".", "end"),
        french(one) + words("et", "&") + renamed(fr, "2") + words(".", "end"),
        spanish(one) + words("y", "&") + renamed(es, "2") + words(".", "end"),
    )


def _resumed(tokens: Tokens) -> Tokens:
    """The clause's subject, its first token, goes with the verb where English leaves it out."""
    return [Token(tokens[0].text, tokens[0].tags, frozenset({"v"})), *tokens[1:]]


def _it(phrase: Phrase) -> Pronoun:
    """it or them, with the gender of the French noun."""
    gender = phrase.noun.fr_gender
    french_clitic = "les" if phrase.plural else "la" if gender == "f" else "le"
    person = THEY if phrase.plural else SHE
    return Pronoun(
        person, gender, ("", "", ""), ("them" if phrase.plural else "it", french_clitic, ""), ""
    )


def but_it(draw: Draw) -> Sentences | None:
    """he has a car but he doesn't use it : mais il ne l'utilise pas, pero no lo usa."""
    who = somebody(draw)
    second, kinds = draw.one(
        [
            ("use", "vehicle device umbrella"),
            ("wear", "clothes"),
            ("read", "book novel magazine newspaper"),
        ]
    )
    if second == "wear" and who.plural:
        return None
    noun = draw.one(of_kind(*kinds.split()))
    phrase = Phrase(noun, "a")
    if draw.chance(0.3):
        phrase = replace(phrase, adjectives=adjective_for(draw, noun))
    it, pronoun = _it(phrase), pronoun_for(who)
    verb = verb_named(second)
    one = Clause(who, HAVE, object=phrase)
    spanish_it = "la" if noun.es_gender == "f" else "lo"
    two = Clause(pronoun, verb, object=it, negative=True)
    es = (
        words("no", "n")
        + words(spanish_it, "o")
        + words(spanish_present(verb.es, who.person), "v f")
    )
    return (
        english(one) + words("but", "&") + renamed(english(two), "2") + words(".", "end"),
        french(one) + words("mais", "&") + renamed(french(two), "2") + words(".", "end"),
        spanish(one) + words("pero", "&") + renamed(es, "2") + words(".", "end"),
    )


# What somebody does, and how they are: because of it, or in spite of it.
BECAUSE = {
    "cry": "sad tired sick alone hungry scared cold",
    "sleep": "tired sick",
    "sing": "happy",
    "dance": "happy",
    "laugh": "happy",
    "eat": "hungry",
    "drink": "thirsty",
    "run": "scared cold",
    "leave": "tired sick sleepy busy scared worried hungry cold alone",
}
NOT_BECAUSE = {"work": "sick tired", "study": "sick tired", "sing": "sad", "dance": "sad tired"}
BUT = {"work": "tired sick sleepy", "study": "tired sleepy", "dance": "tired", "sing": "sad alone"}
BUT |= {"cook": "tired sick", "laugh": "sad tired", "run": "tired"}
NOT_BUT = {"sleep": "tired sleepy", "eat": "hungry", "drink": "thirsty", "cry": "sad scared"}


def _state(en: str, who: Participant) -> Predicate:
    """tired, hungry"""
    for state in expressions("idiom"):
        if state.texts[0] == en:
            return Predicate(state.en("a"), state.fr("a"), state.es("a"), "avoir", "tener")
    return adjective_predicate(next(a for a in adjectives() if a.en == en), who)


def reasons(draw: Draw) -> Sentences | None:
    """my sisters are crying because they're tired ; the nurse is sick but she's working ."""
    although = draw.chance(0.5)
    negative = draw.chance(0.3)
    table = (NOT_BUT if negative else BUT) if although else NOT_BECAUSE if negative else BECAUSE
    doing = draw.one(list(table))
    feeling = draw.one(table[doing].split())
    idiom = feeling in {state.texts[0] for state in expressions("idiom")}
    who = somebody(draw, gendered=not idiom or doing == "leave")
    if isinstance(who, Phrase):
        who = replace(who, adjectives=())
    verb = next(v for v in (*verbs("intransitives"), *verbs()) if v.en == doing)
    past = doing == "leave" or ("p" in verb.uses and not although and draw.chance(0.3))
    he = pronoun_for(who)
    acts = Clause(
        he if although else who, verb, "past" if past else "progressive", negative=negative
    )
    is_so = Clause(
        who if although else he,
        BE,
        "past" if past else "present",
        predicate=_state(feeling, who),
    )
    return _joined(
        *((is_so, acts) if although else (acts, is_so)),
        ("but", "mais", "pero") if although else ("because", "parce que", "porque"),
        he,
    )


def _joined(one: Clause, two: Clause, link: tuple[str, str, str], he: Pronoun) -> Sentences:
    """Two clauses about the same person: Spanish leaves the second subject out."""
    return tuple(
        first + words(conjunction, "&") + renamed(second, "2") + words(".", "end")
        for first, conjunction, second in (
            (english(one), link[0], english(two)),
            (french(one), link[1], french(two)),
            (spanish(one), link[2], spanish(two)[len(he.es("s")) :]),
        )
    )


# With whom somebody does what, after "and".
TOGETHER = {"live": 4, "work": 3, "study": 1, "travel": 1}


def with_them(draw: Draw) -> Sentences | None:
    """she has two sisters and lives with them : avec elles, con ellas."""
    who = subject(draw)
    noun = draw.one(of_kind("brother", "sister", "son", "daughter", "uncle", "aunt"))
    if isinstance(who, Phrase) and who.noun.is_a("boy", "girl", "king", "queen", *noun.en):
        return None
    many = draw.chance(0.6)
    number = draw.one(expressions("number")[:3]).texts if many else ("", "", "")
    family = Phrase(noun, "number" if many else "a", many, number=number)
    they = pronoun_for(family)
    together = draw.weighted(TOGETHER)
    verb = next(v for v in verbs("intransitives") if v.en == together)
    one = Clause(who, HAVE, object=family)
    two = Clause(pronoun_for(who), verb)
    stressed = {"il": "lui", "elle": "elle", "ils": "eux", "elles": "elles"}[they.subject[1]]
    with_en = words("with", "w") + words(they.object[0], "o")
    with_fr = words("avec", "w") + words(stressed, "o")
    with_es = words("con", "w") + words(they.subject[2], "o")
    en, es = (
        said_so(two)[len(two.subject.subject[k].split()) :]
        for said_so, k in ((english, 0), (spanish, 2))
    )
    return (
        english(one) + words("and", "&") + renamed(en + with_en, "2") + words(".", "end"),
        french(one)
        + words("et", "&")
        + renamed(_resumed(french(two)) + with_fr, "2")
        + words(".", "end"),
        spanish(one) + words("y", "&") + renamed(es + with_es, "2") + words(".", "end"),
    )


def animals(draw: Draw) -> Sentences | None:
    """the dog is sleeping under the table ."""
    noun = draw.one(of_kind("animal"))
    verb = draw.one([v for v in verbs("intransitives") if "b" in v.uses] + [verb_named("drink")])
    if verb.en == "swim" and not noun.is_a("duck", "dog", "frog", "turtle", "bear"):
        return None
    if verb.en == "walk" and not noun.is_a("duck", "dog", "turtle", "bear"):
        return None
    if verb.en == "run" and noun.is_a("duck", "bird", "frog", "turtle"):
        return None
    phrase = Phrase(noun, draw.weighted({"the": 4, "this": 1}), draw.chance(0.25))
    if noun.is_a("pet") and draw.chance(0.4):
        phrase = replace(phrase, determiner=draw.one(POSSESSIVES))
    if draw.chance(0.2):
        phrase = replace(phrase, adjectives=adjective_for(draw, noun))
    tense = draw.weighted({"progressive": 5, "past": 2})
    negative, question = polarity(draw, phrase)
    question = "" if question == "who" else question
    clause = Clause(phrase, verb, tense, negative=negative, question=question)
    if verb.en == "drink":
        milk = ["milk"] if noun.is_a("cat", "dog") else []
        drink = Phrase(draw.one(of_kind("water", *milk)), "")
        return said(replace(clause, object=drink.negate() if negative else drink))
    if verb.en == "swim":
        place = place_named(draw, "swim")
    elif verb.en == "sleep":
        place = at_place(
            near()[draw.one(["near", "behind"])], draw.one(of_kind("tree", "house", "church"))
        )
    else:
        place = _place_with(
            verb, at_place(IN, draw.one(of_kind("garden", "park", "forest", "street")))
        )
    bare = verb.en != "walk" or tense != "past"
    return said(replace(clause, complements=() if bare and draw.chance(0.3) else (place,)))
