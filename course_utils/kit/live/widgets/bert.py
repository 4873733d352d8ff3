"""A BERT as a widget: it fills the gaps of a reader's sentence, and shows what each gap looks at."""

import re
from dataclasses import dataclass
from functools import cache

import torch

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, MASK
from course_utils.kit.live.bundles import about, bundle
from course_utils.kit.live.packing import network_of
from course_utils.kit.live.parts import (
    OURS,
    choices,
    explained,
    gallery,
    named,
    percent,
    safe,
    sentences,
    table,
    weighted,
)
from course_utils.kit.live.subwords import Pieces
from course_utils.kit.live.widget import Live
from course_utils.models.language import BERT

MODEL = "bert"

SHOWN = 8
"""Candidates for a gap."""

CHOSEN = "1.0"
"""The map that is shown first."""

LONG = 5
"""An example has so many words at least."""

GAP = re.compile(r"_+|<mask>")


class Filler(Live):
    """A live BERT, shown as the last line of a cell."""

    kind = "bert"
    scripts = ("unpack.js", "engine.js", "others.js", "subwords.js", "explain.js")
    models = (MODEL,)

    def __init__(self, sentence: str):
        """Raises what `bert` says."""
        super().__init__(sentence)
        self._reading = _read(sentence)

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(self.given[0], self._reading), "Live BERT")


def bert(sentence: str = "she wants to ___ a novel .") -> Filler:
    """The course's stored BERT: write a sentence with gaps, and it says what may stand in them.

    Args:
        sentence: what is read first; ___ is a gap.

    Raises:
        ValueError: `sentence` has no gap.
    """
    return Filler(sentence)


@dataclass(frozen=True)
class _Reading:
    """A sentence as the model reads it: ids, logits of what belongs in each place, and maps."""

    ids: list[int]
    logits: torch.Tensor  # (tokens, vocabulary)
    maps: torch.Tensor  # (layers, heads, tokens, tokens)


def encoded(sentence: str) -> list[int]:
    """Ids of a sentence; each gap is one token that is hidden."""
    subwords = pytorch()[1]
    first, *others = map(subwords.encode, GAP.split(sentence))
    return [BOS, *first, *(i for ids in others for i in (MASK, *ids)), EOS]


@torch.no_grad()
def _read(sentence: str) -> _Reading:
    ids = encoded(sentence)
    if MASK not in ids:
        raise ValueError(f"sentence={sentence!r} has no gap; write ___ where a word is missing")
    model = pytorch()[0]
    with record_attention(model) as maps:
        logits = model(torch.tensor([ids]))[0]
    return _Reading(ids, logits, torch.cat(list(maps.values())))


# The first state, as HTML: the same as bert.js writes ---------------------------------------------


def _content(sentence: str, reading: _Reading) -> str:
    packed, tokens = bundle(MODEL), pytorch()[1].tokens
    ids = reading.ids
    place = ids.index(MASK)
    pieces = ["___" if i == MASK else tokens[i] for i in ids]
    layer, head = map(int, CHOSEN.split("."))
    weights = reading.maps[layer, head]
    p, best = reading.logits[place].softmax(dim=-1).topk(SHOWN)
    items = [
        (tokens[i], i if i > MASK and tokens[i].endswith("␣") else None, share, share)
        for i, share in zip(best.tolist(), p.tolist(), strict=True)
    ]
    large = table(
        f"Self-attention, {named(CHOSEN)}: each row in percent",
        ["reads"],
        [[piece] for piece in pieces],
        pieces,
        weights,
        now=place,
    )
    examples = sentences(packed["examples"])
    name = safe(f"{place + 1} of {len(ids)}: {pieces[place]}")
    right, count = packed["score"]
    return f"""<p>Write a sentence with gaps: <kbd>___</kbd>. The stored BERT fills them here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">Sentence</span> <input type="text" {OURS} \
name="sentence" maxlength="100" value="{safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
</div>
<p class="cu-live-examples">Examples: {examples}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unread"></p>
<p class="cu-live-text" data-part="text">{weighted(pieces, weights[place].tolist(), place)}</p>
<p class="cu-live-status" aria-live="polite" data-part="status"></p>
<label class="cu-live-step"><span class="cu-live-label">Token</span> <input type="range" {OURS} \
name="place" min="1" max="{len(ids)}" value="{place + 1}" aria-valuetext="{name}"> <output aria-live="off" \
data-part="place">{name}</output></label>
<div class="cu-live-next" data-part="next"><p>In this gap it expects:</p>{choices(items)}</div>
<p aria-live="polite" data-part="right"></p>
<input type="hidden" name="map" value="{CHOSEN}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
{gallery(reading.maps, CHOSEN)}</div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" {OURS} data-part="table">\
{large}</div>
{explained()}
<p class="cu-live-note">The stronger the color behind a piece of the text, the larger its weight for the \
marked token. A gap is one token: \
words that fall into pieces cannot come. Of {count} tokens hidden in sentences that it has not read, its first guess \
is right for {percent(right / count)} %. The third example is one of the others.</p>"""


# The bundle ---------------------------------------------------------------------------------------


@cache
def pytorch() -> tuple[BERT, Pieces]:
    """The BERT that a page sees, as PyTorch's, and its subwords."""
    return _revived(bundle(MODEL))


def _revived(packed: dict) -> tuple[BERT, Pieces]:
    return network_of(BERT, packed), Pieces(packed["vocabularies"])


@about(MODEL)
@torch.no_grad()
def _said(packed: dict) -> dict:
    """`examples`: sentence, first guess, what was hidden. `score`: how many of how many are right. `answers`."""
    # Only here: a bundle of another model needs no sentences.
    from course_utils.lessons.bert_and_transfer.counting import hidden
    from course_utils.lessons.bert_and_transfer.tasks import texts

    subwords = texts().subwords
    more = {
        "config": packed["config"] | {"rotary": True},  # the chapter's class has no other positions
        "vocabularies": {
            "tokens": subwords.tokens,
            "merges": [" ".join(merge) for merge in subwords.merges],
            "words": sorted(set(" ".join(texts().read).split())),
        },
    }
    model, pieces = _revived(packed | more)
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    tokens[rows, places] = MASK
    logits = model(tokens, data.lengths)[rows, places]
    guesses, right = logits.argmax(dim=-1), data.ids[rows, places]
    every = [
        {"sentence": line, "said": pieces.tokens[guess], "right": pieces.tokens[token]}
        for row, place, guess, token in zip(
            data.ids.tolist(), places.tolist(), guesses.tolist(), right.tolist(), strict=True
        )
        if (line := _with_gap(pieces, row, place)) and len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    answers = [_answer(model, pieces, each["sentence"]) for each in examples]
    score = [int((guesses == right).sum()), len(right)]
    return more | {"examples": examples, "score": score, "answers": answers}


def _with_gap(pieces: Pieces, row: list[int], place: int) -> str:
    """A sentence with a gap for one of its words; none if the place holds a part of a word."""
    before = pieces.tokens[row[place - 1]]
    word = pieces.tokens[row[place]].removesuffix("␣")
    if not word.isalpha() or word == pieces.tokens[row[place]] or not before.endswith(("␣", ">")):
        return ""
    return f"{pieces.decode(row[:place])} ___ {pieces.decode(row[place + 1 :])}".strip()


def _answer(model: BERT, pieces: Pieces, sentence: str) -> dict:
    """Ids of a sentence with a gap, the gap's place, and its ten largest logits, for a page to compare with."""
    left, right = sentence.split("___")
    ids = [BOS, *pieces.encode(left), MASK, *pieces.encode(right), EOS]
    best = model(torch.tensor([ids]))[0, ids.index(MASK)].topk(10)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "ids": ids,
        "place": ids.index(MASK),
        "logits": [[token, round(value, 6)] for token, value in pairs],
    }
