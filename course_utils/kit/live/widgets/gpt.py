"""A GPT as a widget: it goes on with a reader's sentence, token by token, and shows what it draws from and looks at."""

import math
from dataclasses import dataclass
from functools import cache

import torch

from course_utils.cache import record_attention
from course_utils.data.text import EOS
from course_utils.decoding import next_token_probs
from course_utils.kit.live.bundles import about, bundle
from course_utils.kit.live.packing import network_of
from course_utils.kit.live.parts import (
    OURS,
    checkpoints,
    choices,
    dice,
    explained,
    gallery,
    named,
    safe,
    table,
    trained,
    weighted,
)
from course_utils.kit.live.subwords import Pieces
from course_utils.kit.live.widget import Live
from course_utils.kit.runs import stored_runs
from course_utils.models.language import GPT

MODEL = "gpt"

EARLIER = (0, 100)
"""Steps after which it was stored in training, too: `gpt_0`, `gpt_100`."""

SHOWN = 8
"""Candidates for the next token."""

TOP_K = (0, 1, 3, 10, 50)
"""So many tokens may be drawn; 0 stands for all."""

CHOSEN = "1.0"
"""The map that is shown first."""


class Writer(Live):
    """A live GPT, shown as the last line of a cell."""

    kind = "gpt"
    scripts = (
        *("unpack.js", "engine.js", "others.js", "subwords.js"),
        *("reading.js", "explain.js", "tour.js", "checkpoints.js"),
    )
    models = (MODEL,)
    later = tuple(f"{MODEL}_{steps}" for steps in EARLIER)

    def __init__(self, prompt: str, temperature: float, seed: int):
        """Raises what `gpt` says."""
        super().__init__(prompt, temperature, seed)
        self._text = _write(prompt, temperature, seed)

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(self._text), "Live GPT")


def gpt(prompt: str = "she wants to", temperature: float = 0.7, seed: int = 0) -> Writer:
    """The course's stored GPT: write a beginning, and it goes on, token by token.

    Args:
        prompt: the beginning that stands there first.
        temperature: from 0 to 2, in tenths.
        seed: of the draws; the same seed draws the same text.

    Raises:
        ValueError: `temperature` is out of range, or `prompt` has no place in the window of the model.
    """
    return Writer(prompt, temperature, seed)


@dataclass(frozen=True)
class _Text:
    """What the model wrote, from inside: ids, those of the beginning first; logits and maps of all that it read."""

    prompt: str
    temperature: float
    seed: int
    begun: int
    ids: list[int]
    logits: torch.Tensor  # (read, vocabulary)
    maps: torch.Tensor  # (layers, heads, read, read)


@torch.no_grad()
def written(prompt: str, temperature: float, seed: int, top_k: int | None = None) -> list[int]:
    """Ids from the <eos> before the text to the one behind it, or until the window is full."""
    model, subwords = pytorch()
    ids, window = [EOS, *subwords.encode(prompt)], model.max_len
    while len(ids) <= window:
        logits = model(torch.tensor([ids]))[0, -1].double()
        sums = next_token_probs(logits, temperature=temperature, top_k=top_k).cumsum(dim=0)
        passed = (sums > dice(seed, len(ids))).nonzero()
        ids.append(int(passed[0]) if len(passed) else int(logits.argmax()))
        if ids[-1] == EOS:
            break
    return ids


@torch.no_grad()
def _write(prompt: str, temperature: float, seed: int) -> _Text:
    model, subwords = pytorch()
    begun, window = 1 + len(subwords.encode(prompt)), model.max_len
    if not 0 <= temperature <= 2:
        raise ValueError(f"temperature={temperature}; 0 to 2 is needed")
    if begun > window:
        raise ValueError(f"prompt={prompt!r} has {begun} tokens; at most {window} are read")
    ids = written(prompt, temperature, seed)
    with record_attention(model) as maps:
        logits = model(torch.tensor([ids[:-1]]))[0]
    return _Text(prompt, temperature, seed, begun, ids, logits, torch.cat(list(maps.values())))


# The first state, as HTML: the same as gpt.js writes ----------------------------------------------


def _next(text: _Text, step: int) -> str:
    tokens = pytorch()[1].tokens
    logits, follows = text.logits[step].double(), text.ids[step + 1]
    before = next_token_probs(logits)
    p = next_token_probs(logits, temperature=text.temperature)
    shown = logits.topk(SHOWN).indices.tolist()
    shown += [] if follows in shown else [follows]
    free = step >= text.begun - 1
    items = [(tokens[i], i if free else None, before[i].item(), p[i].item()) for i in shown]
    openness = math.exp(torch.special.entr(p).sum().item())
    return (
        f"<p>Here came <strong>{safe(tokens[follows])}</strong>. It is drawn from (bars; the lines are the softmax "
        f"alone):</p>{choices(items, follows)}<p>The choice is as open as among {openness:.1f} equally likely "
        f"tokens.</p>"
    )


def _content(text: _Text) -> str:
    packed, subwords = bundle(MODEL), pytorch()[1]
    pieces = [subwords.tokens[i] for i in text.ids]
    read = pieces[:-1]
    step = text.begun - 1
    layer, head = map(int, CHOSEN.split("."))
    weights = text.maps[layer, head]
    shown = weighted(pieces, weights[step].tolist(), step)
    large = table(
        f"Self-attention, {named(CHOSEN)}: each row in percent",
        ["reads"],
        [[piece] for piece in read],
        read,
        weights,
        now=step,
    )
    limits = "".join(f'<option value="{k}">{k or "all"}</option>' for k in TOP_K)
    acts = {"write": "Write", "one": "One token", "again": "Begin again"}
    buttons = " ".join(
        f'<button type="button" {OURS} data-act="{act}">{name}</button>'
        for act, name in acts.items()
    )
    name = safe(f"{step + 1} of {len(read)}: {read[step]}")
    written = " ".join(map(str, text.ids[text.begun :]))
    full = "" if len(text.ids) > packed["config"]["max_len"] else ' hidden=""'
    return f"""<p>Begin a sentence. The stored GPT goes on here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">Beginning</span> <input type="text" {OURS} \
name="prompt" maxlength="100" value="{safe(text.prompt)}" spellcheck="false" autocapitalize="off"></label>
<label><span class="cu-live-label">Seed</span> <input type="number" {OURS} name="seed" min="0" max="9999" \
value="{text.seed}"></label>
</div>
<div class="cu-live-ask">
<label class="cu-live-step cu-live-short"><span class="cu-live-label">Temperature</span> <input type="range" {OURS} \
name="temperature" min="0" max="2" step="0.1" value="{text.temperature:g}"> <output aria-live="off" \
data-part="temperature">{text.temperature:.1f}</output></label>
<label><span class="cu-live-label">Top k</span> <select {OURS} name="top_k">{limits}</select></label>
</div>
<p class="cu-live-examples">{buttons}</p>
{checkpoints(packed["checkpoints"])}
<p class="cu-live-unknown" data-part="unread"></p>
<input type="hidden" name="written" value="{safe(f"{written}|{text.prompt}")}">
<p class="cu-live-text" data-part="text">{shown}</p>
<p data-part="full"{full}>Its window of {packed["config"]["max_len"]} tokens is full.</p>
<p class="cu-live-status" aria-live="polite" data-part="status">Written: {safe(subwords.decode(text.ids))}</p>
<label class="cu-live-step"><span class="cu-live-label">Token</span> <input type="range" {OURS} \
name="step" min="1" max="{len(read)}" value="{step + 1}" aria-valuetext="{name}"> <output aria-live="off" \
data-part="step">{name}</output></label>
<div class="cu-live-next" data-part="next">{_next(text, step)}</div>
<input type="hidden" name="map" value="{CHOSEN}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
{gallery(text.maps, CHOSEN)}</div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" {OURS} data-part="table">\
{large}</div>
{explained()}
<p class="cu-live-note">The stronger the color behind a piece of the text, the larger its weight for the \
marked token. This GPT has read \
the course's {packed["read"]:,} English sentences, with {len(packed["vocabularies"]["words"]):,} different words, and \
nothing else. On sentences that it has not read its perplexity is {math.exp(packed["loss"]):.1f}. What it writes often \
makes no sense.</p>"""


# The bundle ---------------------------------------------------------------------------------------


@cache
def pytorch() -> tuple[GPT, Pieces]:
    """The GPT that a page sees, as PyTorch's, and its subwords."""
    return _revived(bundle(MODEL))


def _revived(packed: dict) -> tuple[GPT, Pieces]:
    return network_of(GPT, packed), Pieces(packed["vocabularies"])


@about(MODEL)
def _about(packed: dict) -> dict:
    """`loss` on sentences not read, `read`: how many were. `checkpoints`: model, steps and loss. `answers`."""
    (run,) = stored_runs("gpt", "writer")
    steps = run.result | {"steps": run.config["steps"]}
    every = {"checkpoints": trained(MODEL, EARLIER, steps), "answers": _answers(*_revived(packed))}
    return {"loss": run.result["loss"], "read": READ} | every


@torch.no_grad()
def _answers(model: GPT, subwords: Pieces) -> list[dict]:
    """Ids, and the largest logits of what follows."""
    answers = []
    for prompt in ("", "she wants to", "the old woman is"):
        ids = [EOS, *subwords.encode(prompt)]
        best = model(torch.tensor([ids]))[0, -1].topk(10)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        answers.append({"ids": ids, "logits": [[i, round(value, 6)] for i, value in pairs]})
    return answers


def _earlier(packed: dict) -> dict:
    """Of an earlier checkpoint: its answers. Its subwords are those of the trained model."""
    return {
        "answers": _answers(*_revived(packed | {"vocabularies": bundle(MODEL)["vocabularies"]}))
    }


for _name in Writer.later:
    about(_name)(_earlier)


READ = 20_248
"""Sentences of the training; the test counts them."""
