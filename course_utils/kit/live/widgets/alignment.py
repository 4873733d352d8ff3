"""Alignments as a widget: where two translators look for each French word, Bahdanau's and the Transformer.

Both read the same English, and each says its own French. For sentences that the course's corpus has, the gold links
are framed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.data.translation import parse_alignment
from course_utils.decoding import greedy
from course_utils.kit.live.bundles import about, bundle
from course_utils.kit.live.parts import (
    OURS,
    checkpoints,
    explained,
    gallery,
    named,
    radios,
    safe,
    sentences,
    table,
    trained,
)
from course_utils.kit.live.widget import Live
from course_utils.kit.live.widgets import translator
from course_utils.kit.runs import stored_runs
from course_utils.models.recurrent import AttentionTranslator

MODEL = "bahdanau_fr"

EARLIER = (0, 100)
"""Steps of Bahdanau's training; what it was then is stored as `bahdanau_fr_<steps>`."""

CHOSEN = "mean"
"""The Transformer's map that is shown first."""

FRENCH = {"own": "each its own", "corpus": "the corpus's"}
"""What stands at the rows of the maps."""

NAMES = {"attention": "Bahdanau", "cross": "Transformer"}


class Alignment(Live):
    """Two live translators side by side, shown as the last line of a cell."""

    kind = "alignment"
    scripts = ("unpack.js", "engine.js", "others.js", "reading.js", "explain.js", "checkpoints.js")
    models = (MODEL, translator.MODEL)
    later = tuple(f"{MODEL}_{steps}" for steps in EARLIER)

    def __init__(self, sentence: str):
        """Raises what `alignment` says."""
        super().__init__(sentence)
        tokens = tokenize(sentence)
        unknown = [token for token in tokens if token not in pytorch()[1]]
        if unknown or not tokens:
            raise ValueError(
                f"sentence={sentence!r}: unknown are {unknown}; a known word is needed"
            )
        self._looks = {
            "attention": _look(*pytorch(), tokens),
            "cross": _look(*translator.pytorch(), tokens),
        }

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(self.given[0], self._looks), "Live alignments")


def alignment(sentence: str = "please eat a pizza .") -> Alignment:
    """Two of the course's stored translators: write a sentence, and compare where they look.

    Args:
        sentence: what is translated first.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    return Alignment(sentence)


@dataclass(frozen=True)
class _Look:
    """What a translator says, and where it looks for each word of it, `<eos>` at the end of both."""

    source: list[str]
    says: list[str]
    maps: Tensor  # (layers, heads, words that are said, words that are read)


@torch.no_grad()
def _look(model: nn.Module, english: Vocabulary, french: Vocabulary, tokens: list[str]) -> _Look:
    source = torch.tensor([[*english.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    said = greedy(model, source, lens)[0]
    with record_attention(model) as maps:
        model(source, lens, torch.tensor([[BOS, *said]]))
    layers = [
        weights.reshape(-1, *weights.shape[-2:])  # Bahdanau's attention has no heads
        for name, weights in maps.items()
        if name == "attention" or name.endswith(".cross_attention")
    ]
    words = [french.tokens[token] for token in said]
    return _Look([*tokens, "<eos>"], [*words, "<eos>"], torch.stack(layers))


# The first state, as HTML: the same as alignment.js writes ----------------------------------------


def _content(sentence: str, looks: dict[str, _Look]) -> str:
    packed = bundle(MODEL)
    known = {english: (french, links) for english, french, links in packed["gold"]}
    gold = known.get(" ".join(tokenize(sentence)))
    examples = sentences(packed["examples"])
    kinds = radios("french", FRENCH, "own")
    sides = "".join(_side(which, look, gold) for which, look in looks.items())
    (mine, count), (theirs, _) = packed["score"], bundle(translator.MODEL)["score"]
    return f"""<p>Write an English sentence. Two stored translators answer here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">English</span> <input type="text" {OURS} \
name="sentence" maxlength="100" value="{safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
</div>
<p class="cu-live-examples">Examples: {examples} <button type="button" {OURS} data-next="">another sentence with gold \
links</button></p>
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
<div data-part="inside">
<fieldset class="cu-live-kinds"><legend>French in the rows</legend> {kinds}</fieldset>
<p aria-live="polite" data-part="gold">{_gold(sentence, gold)}</p>
{checkpoints(packed["checkpoints"], "Bahdanau trained for")}
<div class="cu-live-beside">{sides}</div>
<p class="cu-live-label">Maps of the Transformer</p>
<input type="hidden" name="map" value="{CHOSEN}">
<div class="cu-live-maps" role="group" aria-label="Maps of the Transformer by layer and head" data-part="maps">\
{gallery(looks["cross"].maps, CHOSEN)}</div>
{explained()}
</div>
<p class="cu-live-note">Both know the same {len(packed["vocabularies"]["source"]) - 4} English words, and have learned \
from the same sentences, the Transformer in two passes and Bahdanau's in nine. Of {count} that they have not read, the \
Transformer gets {theirs} right, word for word, and Bahdanau's {mine}: with such different trainings this does not \
say which kind is better. Gold links are known for {len(packed["gold"])} sentences that neither has read.</p>"""


def _side(which: str, look: _Look, gold: tuple[str, str] | None) -> str:
    said = " ".join(look.says[:-1])
    links = parse_alignment(gold[1]) if gold and gold[0] == said else frozenset()
    weights = look.maps.flatten(0, 1).mean(dim=0)
    large = table(
        f"{'Attention' if which == 'attention' else f'Cross-attention, {named(CHOSEN)}'}, in percent",
        ["says"],
        [[word] for word in look.says],
        look.source,
        weights,
        languages=("fr", "en"),
        framed={(t, s) for s, t in links},
    )
    return (
        f'<div data-part="{which}"><div aria-live="polite" data-part="said"><p class="cu-live-said">'
        f'<span class="cu-live-label">{NAMES[which]}</span> <strong lang="fr">{safe(said)}</strong></p>'
        f"{_verdict(said, gold)}</div>"
        f'<div class="cu-live-table" role="region" aria-label="Map: {NAMES[which]}" tabindex="0" {OURS} '
        f'data-part="table">{large}</div><p data-part="counted">{_counted(weights, links)}</p></div>'
    )


def _gold(sentence: str, gold: tuple[str, str] | None) -> str:
    """Which French words belong to each English one, where the corpus knows it."""
    if gold is None:
        return "The course's corpus does not have this sentence: its gold links are not known."
    french, links = gold[0].split(), sorted(parse_alignment(gold[1]))
    said = []
    for s, word in enumerate(tokenize(sentence)):
        linked = " ".join(french[t] for place, t in links if place == s)
        if linked and word[0].isalnum():
            said.append(f'<q>{safe(word)}</q> – <span lang="fr">{safe(linked)}</span>')
    return f"Gold links of the corpus, framed where a map has its French: {'; '.join(said)}."


def _verdict(said: str, gold: tuple[str, str] | None) -> str:
    if gold is None:
        return "<p></p>"
    if gold[0] == said:
        return "<p>This is the corpus's French.</p>"
    return f'<p>The corpus has: <span lang="fr">{safe(gold[0])}</span></p>'


def _counted(weights: Tensor, links: Iterable[tuple[int, int]]) -> str:
    """How many French words have their largest weight on a gold link; `<eos>` does not count."""
    if not links:
        return ""
    words = weights[:-1, :-1].argmax(dim=1).tolist()
    hits = sum((s, t) in links for t, s in enumerate(words))
    return f"Largest weight on a gold link: {hits} of {len(words)} words."


# The bundle ---------------------------------------------------------------------------------------


@cache
def pytorch() -> tuple[AttentionTranslator, Vocabulary, Vocabulary]:
    """Bahdanau's translator that a page sees, as PyTorch's, and its vocabularies."""
    return translator.revived(AttentionTranslator, bundle(MODEL))


@about(MODEL)
def _known(packed: dict) -> dict:
    """What the translator's bundle holds, and `gold`: English, French and links of sentences that were not read."""
    (run,) = stored_runs("bahdanau_attention", "live_translator")
    # Only here: a bundle of another model needs no sentences.
    from course_utils.lessons.sequence_to_sequence.larger_world import larger_world

    world = larger_world()
    gold = {pair.source: pair for pair in reversed([*world.test, *world.val])}
    lines = [
        [" ".join(pair.source), " ".join(pair.target), _text(sorted(pair.alignment or ()))]
        for pair in reversed(gold.values())
    ]
    every = trained(MODEL, EARLIER, run.result)
    return translator.examples_of(AttentionTranslator, packed) | {
        "gold": lines,
        "checkpoints": every,
    }


translator.about_earlier(AttentionTranslator, MODEL, Alignment.later)


def _text(links: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{s}-{t}" for s, t in links)
