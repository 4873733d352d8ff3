"""The translator as a widget: any English sentence, its French translation, and all maps of all heads.

What is seen first is written here, as HTML: print, search and pages without scripts have it. Then `translator.js`
takes over, in the book as in Lab, and computes with `engine.js` in the page itself.
"""

import html
import math
from dataclasses import dataclass

import torch

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, tokenize
from course_utils.decoding import greedy
from course_utils.lessons.explorer import VIEW
from course_utils.lessons.live.bundles import bundle, translator_of
from course_utils.lessons.page import asset

MODEL = "translator_fr"
SCRIPTS = ("unpack.js", "engine.js", "translator.js")
"""What a page loads before the bundle, from the folder of this file."""

OURS = 'data-lm-suppress-shortcuts="true"'
"""Keys on a control are the reader's, not Lab's."""

SHOWN = 5
"""Candidates for the next word."""

KINDS = {"cross": ".cross_attention", "decoder": ".self_attention", "encoder": ".attention"}
TITLE = "Cross-attention"
LABELS = {
    "cross": "French to English",
    "decoder": "French to French",
    "encoder": "English to English",
}


class Translator:
    """A live translator, shown as the last line of a cell. `repr` says how it is made again."""

    def __init__(self, sentence: str):
        """Raises what `translator` says."""
        self.sentence = sentence
        self._trace = _follow(sentence)
        self._panel = None

    def __repr__(self) -> str:
        return f"live.translator({self.sentence!r})"

    def form(self) -> str:
        """The widget as HTML in its first state; its controls are disabled until a script takes over."""
        return _form(self.sentence, self._trace)

    def page(self, folder: str) -> str:
        """The same for a page of the book, with a script that loads what it needs from a folder."""
        sources = [f"{folder}/{name}" for name in (*SCRIPTS, f"{MODEL}.js")]
        boot = asset("live/boot.js").replace("SOURCES", repr(sources)).replace("MODEL", repr(MODEL))
        return f"{self.form()}<script>{boot}</script>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data = {"text/plain": repr(self), "text/html": self.form()}
        try:
            if self._panel is None:
                # Only here: where there are no widgets, nothing fails before.
                from course_utils.lessons.live.panel import Panel

                self._panel = Panel(form=self.form(), bundle=bundle(MODEL))
            live = self._panel._repr_mimebundle_()
        except (ImportError, AttributeError):  # no widgets, or ipywidgets 7 in a hosted notebook
            return data, {}
        live, about = live if isinstance(live, tuple) else (live, {})
        return data | {VIEW: live[VIEW]}, about


def translator(sentence: str = "i'm home .") -> Translator:
    """The course's stored translator: write a sentence, and read the translation and every map.

    Args:
        sentence: what is translated first.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    return Translator(sentence)


@dataclass(frozen=True)
class _Trace:
    """A translation from inside: tokens that are read and said, cross-attention, the likeliest next words."""

    source: list[str]
    read: list[str]
    says: list[str]
    cross: torch.Tensor  # (layers, heads, steps, source)
    next: list[list[tuple[str, float]]]


@torch.no_grad()
def _follow(sentence: str) -> _Trace:
    model, source_vocab, target_vocab = translator_of(MODEL)
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
    return _Trace(
        source=[*tokens, "<eos>"],
        read=["<bos>", *french],
        says=[*french, "<eos>"],
        cross=torch.stack([w[0] for name, w in maps.items() if name.endswith(KINDS["cross"])]),
        next=[
            [(names[token], p) for token, p in zip(row, ps, strict=True)]
            for row, ps in zip(ids.tolist(), best.tolist(), strict=True)
        ],
    )


# The first state, as HTML: the same as translator.js writes ---------------------------------------


def _form(sentence: str, trace: _Trace) -> str:
    packed = bundle(MODEL)
    layer = len(trace.cross) - 1
    right, count = packed["score"]
    examples = " ".join(
        f'<button type="button" {OURS} data-example="{i}">{_safe(each["sentence"])}</button>'
        for i, each in enumerate(packed["examples"])
    )
    kinds = "".join(
        f'<label><input type="radio" {OURS} name="kind" value="{kind}"{" checked" if kind == "cross" else ""}> '
        f"{label}</label>"
        for kind, label in LABELS.items()
    )
    step = _safe(f"1 of {len(trace.says)}: {trace.says[0]}")
    said = " ".join(trace.says[:-1])
    return f"""<form class="cu-live" data-live="translator" data-layer="{layer}" \
aria-label="Live translator" autocomplete="off"><fieldset disabled="">
<p>Write an English sentence. The stored translator answers here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">English</span> <input type="text" {OURS} \
name="sentence" maxlength="100" value="{_safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
<label><span class="cu-live-label">Search</span> <select {OURS} name="search"><option value="1">greedy</option>\
<option value="4">beam of 4</option></select></label>
</div>
<p class="cu-live-examples">Examples: {examples}</p>
<div aria-live="polite"><p class="cu-live-said"><span class="cu-live-label">French</span> \
<strong lang="fr" data-part="said">{_safe(said)}</strong></p>
<p data-part="right"></p>
<p class="cu-live-unknown" data-part="unknown"></p></div>
<div data-part="inside">
<fieldset class="cu-live-kinds"><legend>Attention</legend> {kinds}</fieldset>
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
{_maps(trace, layer)}</div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" {OURS} data-part="table">\
{_table(trace, layer)}</div>
<label class="cu-live-step"><span class="cu-live-label">Step</span> <input type="range" {OURS} \
name="step" min="1" max="{len(trace.says)}" value="1" aria-valuetext="{step}"> <output aria-live="off" \
data-part="step">{step}</output></label>
<div class="cu-live-next" data-part="next">{_next(trace)}</div>
</div>
<p class="cu-live-note">It knows {len(packed["vocabularies"]["source"]) - 4} English words, and is often wrong: of \
{count} test sentences it gets about {_fifths(right / count)} right, word for word. The third example is one of \
the others.</p>
</fieldset><style>{asset("live/live.css")}</style></form>"""


def _fifths(share: float) -> str:
    return f"{math.floor(5 * share + 0.5)} in 5"


def _safe(text: str) -> str:
    return html.escape(text, quote=False).replace('"', "&quot;")


def _percent(p: float) -> int:
    return math.floor(100 * p + 0.5)


def _share(p: float) -> str:
    """Percent as a part of one, written as JavaScript writes it."""
    return f"{_percent(p) / 100:g}"


def _svg(weights: list[list[float]]) -> str:
    tenths = [""] * 11
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            tenths[math.floor(10 * weight + 0.5)] += f"M{j} {i}h1v1h-1z"
    paths = "".join(
        f'<path fill-opacity="{tenth / 10:g}" d="{squares}"></path>'
        for tenth, squares in enumerate(tenths)
        if tenth and squares
    )
    box = f"0 0 {len(weights[0])} {len(weights)}"
    return f'<svg aria-hidden="true" viewBox="{box}" preserveAspectRatio="none">{paths}</svg>'


def _maps(trace: _Trace, shown: int) -> str:
    layers, heads = trace.cross.shape[:2]
    every = [
        (str(layer), head, trace.cross[layer, head], f"layer {layer}, head {head}")
        for layer in range(layers)
        for head in range(heads)
    ]
    every.append(("mean", 0, trace.cross.flatten(0, 1).mean(dim=0), "mean of all heads"))
    return "".join(
        f'<button type="button" {OURS} aria-pressed="{"true" if (layer, head) == (str(shown), 0) else "false"}" '
        f'data-layer="{layer}" data-head="{head}">{_svg(weights.tolist())}<span>{name}</span></button>'
        for layer, head, weights, name in every
    )


def _table(trace: _Trace, layer: int) -> str:
    heads = "".join(f'<th scope="col" lang="en">{_safe(text)}</th>' for text in trace.source)
    lines = []
    for i, weights in enumerate(trace.cross[layer, 0].tolist()):
        words = "".join(
            f'<th scope="row" lang="fr">{_safe(text)}</th>'
            for text in (trace.read[i], trace.says[i])
        )
        cells = "".join(
            f'<td style="--w: {_share(weight)}">{_percent(weight)}</td>'
            if _percent(weight)
            else "<td>0</td>"
            for weight in weights
        )
        now = "" if i else ' aria-current="step"'
        lines.append(f"<tr{now}>{words}{cells}</tr>")
    return (
        f"<table><caption>{TITLE}, layer {layer}, head 0: each row in percent"
        f'</caption><thead><tr><th scope="col">reads</th><th scope="col">says</th>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _next(trace: _Trace) -> str:
    items = "".join(
        f'<li style="--w: {_share(p)}"><span lang="fr">{_safe(token)}</span> '
        f"<span>{_percent(p)} %</span></li>"
        for token, p in trace.next[0]
    )
    return (
        f'<p>Having read <strong lang="fr">{_safe(trace.read[0])}</strong>, it says '
        f'<strong lang="fr">{_safe(trace.says[0])}</strong>. The likeliest next words:</p><ol>{items}</ol>'
    )
