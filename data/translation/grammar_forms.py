"""Forms of words for `build_grammar`: tokens, inflection, elision and contraction, alignment.

A sentence is a list of `Token`s. Each carries *tags*, names of what it stands for ("s" the subject,
"n" the negation, "o.a" the object's adjective). Two tokens of a translation pair are linked when they
share a tag. A token that found no partner so falls back on its *spare* tags. Fusing two words into
one (le + eau → l'eau, de + el → del) unites their tags, and thereby their links.

Persons are counted 0 i, 1 you (one, familiar), 2 he or she, 3 we, 4 they.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

ME, YOU, SHE, WE, THEY = range(5)


@dataclass(frozen=True)
class Token:
    """A word with the names of what it stands for."""

    text: str
    tags: frozenset[str]
    spare: frozenset[str] = frozenset()


def words(text: str, tags: str, spare: str = "") -> list[Token]:
    """One token for each word of `text`, all with the same tags (separated by spaces)."""
    return [*_tokens(text, tags, spare)]


@cache
def _tokens(text: str, tags: str, spare: str) -> tuple[Token, ...]:
    tag_set, spare_set = frozenset(tags.split()), frozenset(spare.split())
    return tuple(Token(word, tag_set, spare_set) for word in text.split())


def marked(text: str, prefix: str) -> list[Token]:
    """Tokens from "last/1 week/2": tags prefix.1 and prefix.2; a word without mark has prefix.0.

    A word marked 0 among others that aren't links to whatever has no partner in the expression.
    """
    tokens = []
    for part in text.split():
        word, _, marks = part.partition("/")
        tags = " ".join(f"{prefix}.{mark}" for mark in (marks or "0").split("+"))
        tokens += words(word, tags, f"{prefix}.1" if marks == "0" else "")
    return tokens


def align(source: Sequence[Token], target: Sequence[Token]) -> list[tuple[int, int]]:
    """Sorted links: by common tags, then by spare ones for whoever is still without a partner.

    Raises:
        ValueError: a token has no partner even so.
    """
    grid = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = {(i, j) for i, j in grid if source[i].tags & target[j].tags}
    with_source, with_target = {i for i, _ in links}, {j for _, j in links}
    links |= {
        (i, j)
        for i, j in grid
        if (i not in with_source and source[i].spare & target[j].tags)
        or (j not in with_target and target[j].spare & source[i].tags)
    }
    lonely = {source[i].text for i in range(len(source)) if i not in {i for i, _ in links}}
    lonely |= {target[j].text for j in range(len(target)) if j not in {j for _, j in links}}
    if lonely:
        raise ValueError(
            f"no link for {sorted(lonely)} in {[t.text for t in source]} / {[t.text for t in target]}"
        )
    return sorted(links)


def _fuse(text: str, first: Token, second: Token) -> Token:
    return Token(text, first.tags | second.tags, first.spare | second.spare)


# English ----------------------------------------------------------------------------------------

_CONSONANT_SOUND = ("university", "uniform", "one")


def english_plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def english_third(verb: str) -> str:
    """he goes, he washes, he studies: spelled as plurals are."""
    return verb + "es" if verb.endswith("o") else english_plural(verb)


def english_article(tokens: Sequence[Token]) -> str:
    """a or an, before these tokens."""
    word = tokens[0].text
    return "an" if word[0] in "aeiou" and not word.startswith(_CONSONANT_SOUND) else "a"


# French -----------------------------------------------------------------------------------------

_ELIDED = {"je": "j'", "ne": "n'", "de": "d'", "que": "qu'", "le": "l'", "la": "l'"}
_ELIDED |= {"me": "m'", "te": "t'", "se": "s'"}
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def starts_with_vowel(word: str) -> bool:
    """Whether a French word makes the one before it elide; an h does (all of ours are mute)."""
    return word[0] in "aeiouhâàéèêëîïôûœ" or word == "y"


def french_sounds(tokens: Sequence[Token]) -> list[Token]:
    """Elision (je ai → j'ai) and contraction (de le → du), from right to left."""
    out: list[Token] = []
    for token in reversed(tokens):
        if out and token.text in _ELIDED and starts_with_vowel(out[0].text):
            out[0] = _fuse(_ELIDED[token.text] + out[0].text, token, out[0])
        elif out and (token.text, out[0].text) in _CONTRACTED:
            out[0] = _fuse(_CONTRACTED[token.text, out[0].text], token, out[0])
        else:
            out.insert(0, token)
    return out


def french_plural(word: str) -> str:
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "eu")):
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


def french_agree(masculine: str, feminine: str, gender: str, plural: bool) -> str:
    """An adjective or participle in the form its noun asks for (bleu → bleus, beau → beaux)."""
    word = feminine if gender == "f" else masculine
    if plural:
        return word + "s" if word == "bleu" else french_plural(word)
    return word


# Irregular verbs: present of the five persons, participle, stem of the future, imperative where it
# is not the je form. The imperfect of être alone has a stem of its own.
_FRENCH = {
    "être": ("suis es est sommes sont", "été", "ser"),
    "avoir": ("ai as a avons ont", "eu", "aur"),
    "aller": ("vais vas va allons vont", "allé", "ir"),
    "faire": ("fais fais fait faisons font", "fait", "fer"),
    "prendre": ("prends prends prend prenons prennent", "pris", "prendr"),
    "apprendre": ("apprends apprends apprend apprenons apprennent", "appris", "apprendr"),
    "comprendre": ("comprends comprends comprend comprenons comprennent", "compris", "comprendr"),
    "boire": ("bois bois boit buvons boivent", "bu", "boir"),
    "lire": ("lis lis lit lisons lisent", "lu", "lir"),
    "écrire": ("écris écris écrit écrivons écrivent", "écrit", "écrir"),
    "voir": ("vois vois voit voyons voient", "vu", "verr"),
    "vouloir": ("veux veux veut voulons veulent", "voulu", "voudr"),
    "pouvoir": ("peux peux peut pouvons peuvent", "pu", "pourr"),
    "devoir": ("dois dois doit devons doivent", "dû", "devr"),
    "revenir": ("reviens reviens revient revenons reviennent", "revenu", "reviendr"),
    "partir": ("pars pars part partons partent", "parti", "partir"),
    "dormir": ("dors dors dort dormons dorment", "dormi", "dormir"),
    "ouvrir": ("ouvre ouvres ouvre ouvrons ouvrent", "ouvert", "ouvrir"),
    "connaître": ("connais connais connaît connaissons connaissent", "connu", "connaîtr"),
    "courir": ("cours cours court courons courent", "couru", "courr"),
    "rire": ("ris ris rit rions rient", "ri", "rir"),
    "peindre": ("peins peins peint peignons peignent", "peint", "peindr"),
    "suivre": ("suis suis suit suivons suivent", "suivi", "suivr"),
    "acheter": ("achète achètes achète achetons achètent", "acheté", "achèter"),
    "appeler": ("appelle appelles appelle appelons appellent", "appelé", "appeller"),
    "nettoyer": ("nettoie nettoies nettoie nettoyons nettoient", "nettoyé", "nettoier"),
}
FRENCH_WITH_ETRE = {"aller", "arriver", "revenir", "partir", "tomber", "naître"}


def french_present(verb: str, person: int) -> str:
    if verb in _FRENCH:
        return _FRENCH[verb][0].split()[person]
    stem, ending = verb[:-2], verb[-2:]
    if ending == "er":
        soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)  # mangeons, lançons
        return (soft if person == WE else stem) + ("e", "es", "e", "ons", "ent")[person]
    if ending == "ir":
        return stem + ("is", "is", "it", "issons", "issent")[person]
    return stem + ("s", "s", "", "ons", "ent")[person]


def french_participle(verb: str, gender: str = "m", plural: bool = False) -> str:
    stem, ending = verb[:-2], verb[-2:]
    regular = stem + {"er": "é", "ir": "i", "re": "u"}[ending]
    masculine = _FRENCH[verb][1] if verb in _FRENCH else regular
    return french_agree(masculine, masculine + "e", gender, plural)


def french_future(verb: str, person: int) -> str:
    stem = _FRENCH[verb][2] if verb in _FRENCH else verb.removesuffix("e")
    return stem + ("ai", "as", "a", "ons", "ont")[person]


def french_imperfect(verb: str, person: int) -> str:
    stem = "ét" if verb == "être" else french_present(verb, WE).removesuffix("ons")
    return stem + ("ais", "ais", "ait", "ions", "aient")[person]


def french_imperative(verb: str) -> str:
    """tu form: mange !, without the -s of -er verbs and of ouvrir."""
    form = french_present(verb, YOU)
    return form.removesuffix("s") if form.endswith("es") else form


# Spanish ----------------------------------------------------------------------------------------

_PLAIN = str.maketrans("áéíóú", "aeiou")


def spanish_sounds(tokens: Sequence[Token]) -> list[Token]:
    """a el → al, de el → del (él, the pronoun, stays apart)."""
    out: list[Token] = []
    for token in tokens:
        if out and token.text == "el" and out[-1].text in ("a", "de"):
            out[-1] = _fuse(out[-1].text + "l", out[-1], token)
        else:
            out.append(token)
    return out


def spanish_plural(word: str) -> str:
    if word[-1] in "aeiouéáó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word[-1] in "ns" and word[-2] in "áéíóú":
        return word.translate(_PLAIN) + "es"  # jardín, jardines
    return word + "es" if word[-1] != "s" else word  # el paraguas, los paraguas


def spanish_agree(masculine: str, gender: str, plural: bool) -> str:
    """An adjective in the form its noun asks for: only -o changes with the gender."""
    word = masculine
    if gender == "f" and word.endswith("o"):
        word = word[:-1] + "a"
    return spanish_plural(word) if plural else word


# Irregular verbs: present, preterite (both of the five persons; - for the regular ones), stem of the
# future, gerund.
_SPANISH = {
    "ser": ("soy eres es somos son", "fui fuiste fue fuimos fueron", "ser", "siendo"),
    "estar": ("estoy estás está estamos están", "-", "estar", "estando"),
    "tener": ("tengo tienes tiene tenemos tienen", "-", "tendr", "teniendo"),
    "ir": ("voy vas va vamos van", "fui fuiste fue fuimos fueron", "ir", "yendo"),
    "poder": ("puedo puedes puede podemos pueden", "-", "podr", "pudiendo"),
    "querer": ("quiero quieres quiere queremos quieren", "-", "querr", "queriendo"),
    "ver": ("veo ves ve vemos ven", "vi viste vio vimos vieron", "ver", "viendo"),
    "leer": ("-", "leí leíste leyó leímos leyeron", "leer", "leyendo"),
    "traer": (
        "traigo traes trae traemos traen",
        "traje trajiste trajo trajimos trajeron",
        "traer",
        "trayendo",
    ),
    "caer": ("caigo caes cae caemos caen", "caí caíste cayó caímos cayeron", "caer", "cayendo"),
    "reír": ("río ríes ríe reímos ríen", "reí reíste rio reímos rieron", "reir", "riendo"),
    "cerrar": ("cierro cierras cierra cerramos cierran", "-", "cerrar", "cerrando"),
    "encontrar": ("encuentro encuentras encuentra encontramos encuentran", "-", "encontrar", "-"),
    "perder": ("pierdo pierdes pierde perdemos pierden", "-", "perder", "-"),
    "entender": ("entiendo entiendes entiende entendemos entienden", "-", "entender", "-"),
    "conocer": ("conozco conoces conoce conocemos conocen", "-", "conocer", "-"),
    "volver": ("vuelvo vuelves vuelve volvemos vuelven", "-", "volver", "-"),
    "jugar": ("juego juegas juega jugamos juegan", "-", "jugar", "-"),
    "hacer": (
        "hago haces hace hacemos hacen",
        "hice hiciste hizo hicimos hicieron",
        "har",
        "haciendo",
    ),
    "coger": ("cojo coges coge cogemos cogen", "-", "coger", "-"),
    "dormir": (
        "duermo duermes duerme dormimos duermen",
        "dormí dormiste durmió dormimos durmieron",
        "dormir",
        "durmiendo",
    ),
    "seguir": (
        "sigo sigues sigue seguimos siguen",
        "seguí seguiste siguió seguimos siguieron",
        "seguir",
        "siguiendo",
    ),
    "elegir": (
        "elijo eliges elige elegimos eligen",
        "elegí elegiste eligió elegimos eligieron",
        "elegir",
        "eligiendo",
    ),
}
_PRESENT = {"ar": "o as a amos an", "er": "o es e emos en", "ir": "o es e imos en"}
_PRETERITE = {
    "ar": "é aste ó amos aron",
    "er": "í iste ió imos ieron",
    "ir": "í iste ió imos ieron",
}
_IMPERFECT = {
    "ser": "era eras era éramos eran",
    "estar": "estaba estabas estaba estábamos estaban",
    "tener": "tenía tenías tenía teníamos tenían",
}


def _spanish_irregular(verb: str, column: int) -> str | None:
    form = _SPANISH.get(verb, ("-",) * 4)[column]
    return None if form == "-" else form


def spanish_present(verb: str, person: int) -> str:
    if forms := _spanish_irregular(verb, 0):
        return forms.split()[person]
    return verb[:-2] + _PRESENT[verb[-2:]].split()[person]


def spanish_preterite(verb: str, person: int) -> str:
    if forms := _spanish_irregular(verb, 1):
        return forms.split()[person]
    stem = verb[:-2]
    if person == ME and verb.endswith("ar"):  # busqué, llegué, lancé
        stem = stem[:-1] + {"c": "qu", "g": "gu", "z": "c"}.get(stem[-1], stem[-1])
    return stem + _PRETERITE[verb[-2:]].split()[person]


def spanish_future(verb: str, person: int) -> str:
    stem = _spanish_irregular(verb, 2) or verb
    return stem + ("é", "ás", "á", "emos", "án")[person]


def spanish_imperfect(verb: str, person: int) -> str:
    return _IMPERFECT[verb].split()[person]


def spanish_gerund(verb: str) -> str:
    return _spanish_irregular(verb, 3) or verb[:-2] + ("ando" if verb.endswith("ar") else "iendo")


def spanish_imperative(verb: str) -> str:
    """tú form: ¡come!, the third person of the present; ¡haz!"""
    return "haz" if verb == "hacer" else spanish_present(verb, SHE)
