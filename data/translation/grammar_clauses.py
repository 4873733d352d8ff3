"""Clauses of `build_grammar`: from who does what, when and where to a sentence in each language.

A `Clause` is the meaning; `english`, `french` and `spanish` say it. Roles and tags: s subject, v verb
of content, x auxiliary, m modal, g "going", t "to", n negation, q question, wh question word,
o object, f the finite verb (in the targets only: for English words that nothing else translates).
Above: `grammar_phrases`.
"""

from dataclasses import dataclass

from grammar_forms import (
    FRENCH_WITH_ETRE,
    ME,
    SHE,
    THEY,
    WE,
    Token,
    english_third,
    french_future,
    french_imperfect,
    french_participle,
    french_present,
    spanish_future,
    spanish_gerund,
    spanish_imperfect,
    spanish_present,
    spanish_preterite,
    words,
)
from grammar_phrases import Expression, Name, Phrase, Place, Pronoun

Participant = Pronoun | Name | Phrase
Tokens = list[Token]


@dataclass(frozen=True)
class Verb:
    """uses, determiners, objects: what the columns of lexicon/verbs.tsv say."""

    en: str
    past: str
    ing: str
    particle: str
    fr: str
    es: str
    uses: str = ""
    determiners: str = ""
    objects: frozenset[str] = frozenset()
    fr_preposition: str = ""  # jouer de la guitare


BE = Verb("be", "was", "being", "", "être", "ser", "s")
HAVE = Verb("have", "had", "having", "", "avoir", "tener", "s")

MODALS = {"can": ("pouvoir", "poder"), "must": ("devoir", "deber"), "want": ("vouloir", "querer")}
SPANISH_REFLEXIVES = ("me", "te", "se", "nos", "se")
QUESTION_WORDS = {
    "what": ("qu'est-ce", "qué"),
    "where": ("où est-ce", "dónde"),
    "when": ("quand est-ce", "cuándo"),
    "why": ("pourquoi est-ce", "por qué"),
}


@dataclass(frozen=True)
class Predicate:
    """What follows "to be": tired, on the table, ten years old; already in the right forms."""

    en: Tokens
    fr: Tokens
    es: Tokens
    fr_verb: str = "être"  # avoir: avoir faim, avoir dix ans
    es_verb: str = "ser"


@dataclass(frozen=True)
class Clause:
    """Who does what.

    Attributes:
        tense: present, progressive, past, future or going (is going to).
        predicate: for the verb be only.
        complements: places and times, in order.
        frequency: always, often.
        never: takes the place of `negative`.
        modal: a key of MODALS, or empty.
        question: empty, "yes" (a yes-or-no question), "who" (about the subject), or a question word.
    """

    subject: Participant | None
    verb: Verb
    tense: str = "present"
    object: Participant | Expression | None = None
    predicate: Predicate | None = None
    complements: tuple[Place | Expression, ...] = ()
    negative: bool = False
    never: bool = False
    frequency: Expression | None = None
    modal: str = ""
    question: str = ""

    @property
    def person(self) -> int:
        return self.subject.person if self.subject else SHE

    @property
    def asks_inverted(self) -> bool:
        return self.question not in ("", "who")

    @property
    def spanish_reflexive(self) -> bool:
        """irse, reírse; and whoever eats up a certain thing: se comió la manzana."""
        certain = isinstance(self.object, Pronoun | Phrase) and getattr(
            self.object, "determiner", "the"
        ) not in ("", "a", "number", "generic")
        return self.verb.es.endswith("se") or (self.verb.es == "comer" and certain)


def english(c: Clause) -> Tokens:
    """She doesn't see him; what does tom want to eat ?"""
    auxiliary, main = _english_verbs(c)
    subject = words("who", "s") if c.question == "who" else c.subject.en("s") if c.subject else []
    if c.question in QUESTION_WORDS:
        auxiliary = words(c.question, "wh") + auxiliary
    adverb = words("never", "n") if c.never else c.frequency.en("fq") if c.frequency else []
    if c.asks_inverted:
        start = [*auxiliary, *subject]
    elif (
        not c.question
        and isinstance(c.subject, Pronoun)
        and auxiliary
        and auxiliary[0].text in ("am", "is", "are")
    ):
        tags = "s " + " ".join(auxiliary[0].tags)
        start = words(c.subject.be, tags, "f") + auxiliary[1:]
    else:
        start = [*subject, *auxiliary]
    tokens = [*start, *adverb, *main, *_english_object(c)]
    for k, complement in enumerate(c.complements):
        tokens += complement.en(f"c{k}")
    return tokens


def _english_object(c: Clause) -> Tokens:
    if c.predicate:
        return c.predicate.en
    if isinstance(c.object, Pronoun):
        return words(c.object.object[0], "o")
    return c.object.en("o") if c.object else []


def _be(person: int, past: bool) -> str:
    if past:
        return "was" if person in (ME, SHE) else "were"
    return {ME: "am", SHE: "is"}.get(person, "are")


def _english_verbs(c: Clause) -> tuple[Tokens, Tokens]:
    """What stands before the subject in a question, and the rest of the verbs."""
    asked = "q " if c.asks_inverted else ""
    verb = c.verb
    particle = words(verb.particle, "v") if verb.particle else []
    base = words(verb.en, "v") + particle

    def finite(word: str, tags: str) -> Tokens:
        """An auxiliary, contracted with not where the clause is negative."""
        if not c.negative:
            return words(word, asked + tags, "f")
        if word == "am":
            return words(word, tags, "f") + words("not", "n")
        contracted = {"will": "won't", "can": "can't"}.get(word, word + "n't")
        return words(contracted, f"{tags} n", "f")

    if c.tense == "future":
        return finite("will", "x"), base
    if c.tense == "going":
        going = words("going", "g") + words("to", "t", "g")
        return finite(_be(c.person, past=False), "x"), going + base
    if c.tense == "progressive":
        return finite(_be(c.person, past=False), "x"), words(verb.ing, "v") + particle
    if c.modal in ("can", "must"):
        return finite(c.modal, "m"), base
    if verb is BE:
        return finite(_be(c.person, c.tense == "past"), "v"), []

    past = c.tense == "past"
    tail = particle
    head, head_tags = verb.en, "v"
    if c.modal:  # wants to eat
        tail = words("to", "t", "v") + base
        head, head_tags = c.modal, "m"
    if c.negative or c.asks_inverted:
        do = "did" if past else "does" if c.person == SHE else "do"
        return finite(do, "x" if past else ""), words(head, head_tags) + tail
    if past:
        return [], words(verb.past, "v x") + tail
    third = {"have": "has"}.get(head, english_third(head))
    return [], words(third if c.person == SHE else head, head_tags) + tail


def french(c: Clause) -> Tokens:
    """elle ne le voit pas; qu'est-ce que tom veut manger ?"""
    finite, rest = _french_verbs(c)
    clitic = words(c.object.object[1], "o") if isinstance(c.object, Pronoun) else []
    if c.tense == "going" or c.modal:
        rest, clitic = clitic + rest, []
    group = clitic + finite
    if c.negative or c.never:
        group = words("ne", "n") + group + words("jamais" if c.never else "pas", "n")
    if c.frequency:
        group += c.frequency.fr("fq")
    tokens = [*_french_opening(c), *group, *rest]
    if c.predicate:
        tokens += c.predicate.fr
    elif c.object and not isinstance(c.object, Pronoun):
        if c.verb.fr_preposition:
            tokens += words(c.verb.fr_preposition, "", "v")
        tokens += c.object.fr("o")
    for k, complement in enumerate(c.complements):
        tokens += complement.fr(f"c{k}")
    return tokens


def _french_opening(c: Clause) -> Tokens:
    if c.question == "who":
        return words("qui", "s")
    subject = c.subject.fr("s") if c.subject else []
    if c.question == "yes":
        return words("est-ce que", "q") + subject
    if c.question:
        *asked, marker = QUESTION_WORDS[c.question][0].split()
        opening = (
            words(" ".join(asked), "wh") + words(marker, "q") if asked else words(marker, "wh q")
        )
        return opening + words("que", "q") + subject
    return subject


def _french_verbs(c: Clause) -> tuple[Tokens, Tokens]:
    verb, person = (c.predicate.fr_verb if c.predicate else c.verb.fr), c.person
    infinitive = words(verb, "v")
    if c.modal:
        return words(french_present(MODALS[c.modal][0], person), "m f"), infinitive
    if c.tense == "going":
        return words(french_present("aller", person), "x g f"), infinitive
    if c.tense == "future":
        return words(french_future(verb, person), "v x f"), []
    if c.tense in ("present", "progressive"):
        return words(french_present(verb, person), "v f"), []
    if verb in ("être", "avoir"):  # states
        return words(french_imperfect(verb, person), "v f"), []
    if verb in FRENCH_WITH_ETRE:
        gender, plural = (
            ("m", False) if c.question == "who" else (c.subject.genders()[0], person >= WE)
        )
        return words(french_present("être", person), "x f"), words(
            french_participle(verb, gender, plural), "v"
        )
    gender, plural = "m", False
    if isinstance(c.object, Pronoun):  # je l'ai vue
        gender, plural = c.object.gender, c.object.plural
    participle = french_participle(verb, gender, plural)
    return words(french_present("avoir", person), "x f"), words(participle, "v")


def spanish(c: Clause) -> Tokens:
    """ella no lo ve; ¿ qué quiere comer tom ? ¿ quiere tom comer pan ?"""
    finite, rest = _spanish_verbs(c)
    group = words(SPANISH_REFLEXIVES[c.person], "v") if c.spanish_reflexive else []
    group += words(c.object.object[2], "o") if isinstance(c.object, Pronoun) else []
    group += finite
    late = []
    if c.negative or c.never:
        group = words("nunca" if c.never else "no", "n") + group
    if c.frequency:
        adverb = c.frequency.es("fq")
        if len(adverb) == 1:
            group = adverb + group  # siempre; a menudo comes late
        else:
            late = adverb
    said_after = [*c.predicate.es] if c.predicate else []
    if c.object and not isinstance(c.object, Pronoun):
        said_after += _personal_a(c) + c.object.es("o")
    said_after += late
    for k, complement in enumerate(c.complements):
        said_after += complement.es(f"c{k}")
    subject = words("quién", "s") if c.question == "who" else c.subject.es("s") if c.subject else []
    if c.question in QUESTION_WORDS:
        asked = "adónde" if c.verb.es in ("ir", "viajar") and c.question == "where" else ""
        asking = words(asked or QUESTION_WORDS[c.question][1], "wh")
        return asking + group + rest + subject + said_after
    if c.question == "yes":
        return _spanish_yes_or_no(c, subject, group, rest, said_after)
    return subject + group + rest + said_after


def _spanish_yes_or_no(
    c: Clause, subject: Tokens, verb: Tokens, rest: Tokens, said_after: Tokens
) -> Tokens:
    """¿ está ella cansada ? ¿ está tom leyendo un libro ? But short words go first: ¿ está sucia la mesa ?"""
    if c.predicate:
        late = len(said_after) == 1 and isinstance(c.subject, Phrase)
    else:
        late = not said_after and not isinstance(c.subject, Pronoun)
    if late:
        return verb + rest + said_after + subject
    return verb + subject + rest + said_after


def _personal_a(c: Clause) -> Tokens:
    """veo a tom, busco a mi perro; but: busco un perro."""
    if isinstance(c.object, Name):
        return words("a", "", "o.n")
    if isinstance(c.object, Phrase) and c.verb.en not in ("draw", "buy", "sell", "have"):
        definite = c.object.determiner not in ("a", "", "number")
        if definite and c.object.noun.is_a("human", "kin", "pet"):
            return words("a", "", "o.n")
    return []


def _spanish_verbs(c: Clause) -> tuple[Tokens, Tokens]:
    verb = c.predicate.es_verb if c.predicate else c.verb.es.removesuffix("se")
    person = c.person
    infinitive = words(verb, "v")
    if c.modal:
        return words(spanish_present(MODALS[c.modal][1], person), "m f"), infinitive
    if c.tense == "going":
        return words(spanish_present("ir", person), "x g f"), words("a", "t") + infinitive
    if c.tense == "future":
        return words(spanish_future(verb, person), "v x f"), []
    if c.tense == "progressive" and "l" not in c.verb.uses:
        return words(spanish_present("estar", person), "x f"), words(spanish_gerund(verb), "v")
    if c.tense in ("present", "progressive"):
        return words(spanish_present(verb, person), "v f"), []
    if verb in ("ser", "estar", "tener"):
        return words(spanish_imperfect(verb, person), "v f"), []
    return words(spanish_preterite(verb, person), "v f"), []


def adjective_predicate(adjective, subject: Participant) -> Predicate:
    """tired, agreeing with the subject."""
    french_gender, spanish_gender = subject.genders()
    plural = subject.person == THEY
    return Predicate(
        words(adjective.en, "a"),
        words(adjective.french(french_gender, plural), "a"),
        words(adjective.spanish(spanish_gender, plural), "a"),
        es_verb=adjective.copula,
    )


def place_predicate(place: Place) -> Predicate:
    """on the table"""
    return Predicate(place.en("p"), place.fr("p"), place.es("p"), es_verb="estar")


def ended(tokens: Tokens, mark: str, *, spanish_target: bool = False) -> Tokens:
    """The sentence with its full stop or question mark; Spanish opens a question as well."""
    opening = words("¿", "end") if spanish_target and mark == "?" else []
    return opening + tokens + words(mark, "end")
