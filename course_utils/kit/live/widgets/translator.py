"""The translator as a widget: any English sentence, its French translation, and all maps of all heads."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy, translate
from course_utils.kit.live.bundles import about, bundle
from course_utils.kit.live.packing import network_of
from course_utils.kit.live.parts import (
    OURS,
    bars,
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
from course_utils.kit.runs import stored_runs
from course_utils.models.transformer import Transformer

MODEL = "translator_fr"

EARLIER = (0, 100)
"""Steps after which it was stored in training, too: `translator_fr_0`, `translator_fr_100`."""

SHOWN = 5
"""Candidates for the next word."""

LONG = 5
"""An example has so many tokens at least."""

LABELS = {
    "cross": "French to English",
    "decoder": "French to French",
    "encoder": "English to English",
}


class Translator(Live):
    """A live translator, shown as the last line of a cell."""

    kind = "translator"
    scripts = (
        *("unpack.js", "engine.js", "reading.js", "explain.js"),
        *("tree.js", "tour.js", "checkpoints.js"),
    )
    models = (MODEL,)

    def __init__(self, sentence: str, checkpoints: bool):
        """Raises what `translator` says."""
        super().__init__(sentence, *[True] * checkpoints)
        self.later = tuple(f"{MODEL}_{steps}" for steps in EARLIER) if checkpoints else ()
        self._trace = follow(sentence)

    def form(self) -> str:
        """The widget as HTML in its first state."""
        content = _content(self.given[0], self._trace, slider=bool(self.later))
        return self.framed(content, "Live translator")


def translator(sentence: str = "i'm home .", checkpoints: bool = False) -> Translator:
    """The course's stored translator: write a sentence, and read the translation and every map.

    Args:
        sentence: what is translated first.
        checkpoints: whether a slider goes back to earlier steps of its training.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    return Translator(sentence, checkpoints)


@dataclass(frozen=True)
class Trace:
    """A translation from inside.

    Attributes:
        source: English tokens, `<eos>` at the end.
        read, says: French tokens at each step, from `<bos>` on, and up to `<eos>`.
        cross: (layers, heads, steps, source), the weights of the cross-attention.
        next: for each step the likeliest words and their probabilities.
    """

    source: list[str]
    read: list[str]
    says: list[str]
    cross: torch.Tensor
    next: list[list[tuple[str, float]]]


@torch.no_grad()
def follow(sentence: str) -> Trace:
    """Translate greedily, then run once more over what was said, and keep the weights.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    model, source_vocab, target_vocab = pytorch()
    tokens = tokenize(sentence)
    unknown = [token for token in tokens if token not in source_vocab]
    if unknown or not tokens:
        raise ValueError(f"sentence={sentence!r}: unknown are {unknown}; a known word is needed")
    source = torch.tensor([[*source_vocab.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    said = greedy(model, source, lens)[0]
    with record_attention(model) as maps:
        logits = model(source, lens, torch.tensor([[BOS, *said]]))[0]
    best, ids = logits.softmax(dim=-1).topk(SHOWN, dim=-1)
    names = target_vocab.tokens
    french = [names[token] for token in said]
    return Trace(
        source=[*tokens, "<eos>"],
        read=["<bos>", *french],
        says=[*french, "<eos>"],
        cross=torch.stack([w[0] for name, w in maps.items() if name.endswith(".cross_attention")]),
        next=[
            [(names[token], p) for token, p in zip(row, ps, strict=True)]
            for row, ps in zip(ids.tolist(), best.tolist(), strict=True)
        ],
    )


# The first state, as HTML: the same as translator.js writes ---------------------------------------


def _content(sentence: str, trace: Trace, *, slider: bool) -> str:
    packed = bundle(MODEL)
    chosen = f"{len(trace.cross) - 1}.0"
    right, count = packed["score"]
    examples = sentences(packed["examples"])
    kinds = radios("kind", LABELS, "cross")
    large = table(
        f"Cross-attention, {named(chosen)}: each row in percent",
        ["reads", "says"],
        list(zip(trace.read, trace.says, strict=True)),
        trace.source,
        trace.cross[-1, 0],
        languages=("fr", "en"),
        now=0,
    )
    following = (
        f'<p>Having read <strong lang="fr">{safe(trace.read[0])}</strong>, it says '
        f'<strong lang="fr">{safe(trace.says[0])}</strong>. The likeliest next words:</p>'
        + bars(trace.next[0], "fr")
    )
    step = safe(f"1 of {len(trace.says)}: {trace.says[0]}")
    said = " ".join(trace.says[:-1])
    return f"""<p>Write an English sentence. The stored translator answers here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">English</span> <input type="text" {OURS} \
name="sentence" maxlength="100" value="{safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
<label><span class="cu-live-label">Search</span> <select {OURS} name="search"><option value="1">greedy</option>\
<option value="4">beam of 4</option></select></label>
</div>
<p class="cu-live-examples">Examples: {examples}</p>
{checkpoints(packed["checkpoints"]) if slider else ""}
<div aria-live="polite"><p class="cu-live-said"><span class="cu-live-label">French</span> \
<strong lang="fr" data-part="said">{safe(said)}</strong></p>
<p data-part="right"></p>
<p class="cu-live-unknown" data-part="unknown"></p></div>
<div data-part="inside">
<div data-part="tree"></div>
<fieldset class="cu-live-kinds"><legend>Attention</legend> {kinds}</fieldset>
<input type="hidden" name="map" value="{chosen}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
{gallery(trace.cross, chosen)}</div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" {OURS} data-part="table">\
{large}</div>
{explained()}
<label class="cu-live-step"><span class="cu-live-label">Step</span> <input type="range" {OURS} \
name="step" min="1" max="{len(trace.says)}" value="1" aria-valuetext="{step}"> <output aria-live="off" \
data-part="step">{step}</output></label>
<div class="cu-live-next" data-part="next">{following}</div>
</div>
<p class="cu-live-note">It knows {len(packed["vocabularies"]["source"]) - 4} English words, and is often wrong: of \
{count} test sentences it gets about {math.floor(5 * right / count + 0.5)} in 5 right, word for word. The third \
example is one of the others. The test sentences are made by the same rules as most of those that it has read: of \
other sentences fewer are right.</p>"""


# The bundle ---------------------------------------------------------------------------------------


@cache
def pytorch() -> tuple[Transformer, Vocabulary, Vocabulary]:
    """The translator that a page sees, as PyTorch's, and its vocabularies."""
    return revived(Transformer, bundle(MODEL))


def revived(kind: type, packed: dict) -> tuple:
    """The translator of a bundle, of this class, and its vocabularies."""
    words = packed["vocabularies"]
    source, target = (Vocabulary.of_tokens(words[side]) for side in ("source", "target"))
    return network_of(kind, packed), source, target


@about(MODEL)
def _about(packed: dict) -> dict:
    """`examples`, `score`, `answers`; and `checkpoints`: model, steps and held-out loss."""
    (run,) = stored_runs("translating", "translator_checkpoints")
    every = trained(MODEL, EARLIER, run.result)
    return examples_of(Transformer, packed) | {"checkpoints": every}


def examples_of(kind: type, packed: dict) -> dict:
    """`examples`: sentence, what is said, what is right. `score`: how many of how many are right. `answers`."""
    # Only here: a bundle of another model needs no sentences.
    from course_utils.lessons.sequence_to_sequence.larger_world import larger_world

    model, source, target = revived(kind, packed)
    pairs = larger_world().test
    lines = [" ".join(pair.source) for pair in pairs]
    right = [" ".join(pair.target) for pair in pairs]
    said = translate(model, lines, source, target)
    every = [
        {"sentence": line, "said": mine, "right": theirs}
        for line, mine, theirs in zip(lines, said, right, strict=True)
        if len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    score = [sum(a == b for a, b in zip(said, right, strict=True)), len(said)]
    answers = [_answer(model, source, each["sentence"]) for each in examples]
    return {"examples": examples, "score": score, "answers": answers}


def about_earlier(kind: type, model: str, names: Iterable[str]) -> None:
    """Of earlier checkpoints: what they say to the examples. Their words are those of the trained model."""

    def answers(packed: dict) -> dict:
        words = {"vocabularies": bundle(model)["vocabularies"]}
        network, source, _ = revived(kind, packed | words)
        lines = [each["sentence"] for each in bundle(model)["examples"]]
        return {"answers": [_answer(network, source, line) for line in lines]}

    for name in names:
        about(name)(answers)


about_earlier(Transformer, MODEL, [f"{MODEL}_{steps}" for steps in EARLIER])


@torch.no_grad()
def _answer(model: nn.Module, vocabulary: Vocabulary, sentence: str) -> dict:
    """Ids of a sentence and of its translation, and the ten largest logits after it, for a page to compare with."""
    ids = torch.tensor([[*vocabulary.encode(tokenize(sentence)), EOS]])
    lens = torch.tensor([ids.shape[1]])
    said = greedy(model, ids, lens)[0]
    logits = model(ids, lens, torch.tensor([[BOS, *said]]))[0, -1]
    best = logits.topk(10)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "source": ids[0].tolist(),
        "said": said,
        "logits": [[token, round(value, 6)] for token, value in pairs],
    }
