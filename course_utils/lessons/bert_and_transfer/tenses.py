"""The tense of a sentence, by the forms of its verb: labels that cost no reading."""

from course_utils.data.translation import load_grammar
from course_utils.files import data_path

TENSES = ("present", "past", "future")

_PAST = {"was", "were", "wasn't", "weren't", "had", "did", "didn't"}
_FUTURE = {"will", "won't"}


def load_tenses() -> dict[str, int]:
    """The generated sentences, each with its tense's place in `TENSES`, by the lexicon's forms of verbs.

    "did", "was" and the past forms of verbs say past; "will" and "going to" before a verb say future;
    what has none of them is present. A verb whose past is spelled as its base (put, read) says
    nothing, so its sentences are left out unless an auxiliary decides.
    """
    bases, pasts = _verb_forms()
    spelled_alike = bases & pasts
    labels = {}
    for text in sorted({" ".join(pair.source) for pair in load_grammar("fr")}):
        words = text.split()
        trios = zip(words, words[1:], words[2:], strict=False)
        going = any(trio[:2] == ("going", "to") and trio[2] in bases for trio in trios)
        future = going or not _FUTURE.isdisjoint(words) or any(w.endswith("'ll") for w in words)
        past = not (_PAST | pasts - bases).isdisjoint(words)
        if future + past == 1 or (not future and not past and spelled_alike.isdisjoint(words)):
            labels[text] = 2 if future else int(past)
    return labels


def _verb_forms() -> tuple[set[str], set[str]]:
    """Base forms, and past forms, of the lexicon's verbs."""
    bases, pasts = {"be", "have"}, set()
    for name in ("verbs", "intransitives"):
        path = data_path(f"translation/lexicon/{name}.tsv")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                base, past, *_ = line.split("\t")
                bases.add(base.split()[0])
                pasts.add(past.split()[0])
    return bases, pasts
