"""The vision transformer as a widget: draw or upload a picture, read what it says, and where its class token looks."""

import base64
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from course_utils.cache import record_attention
from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.kit.live.bundles import about, bundle
from course_utils.kit.live.packing import network_of
from course_utils.kit.live.parts import (
    OURS,
    bars,
    percent,
    radios,
    svg,
)
from course_utils.kit.live.widget import Live
from course_utils.models.vision import ViT, attention_rollout

MODELS = {7: "vit", 14: "vit_patch14", 4: "vit_patch4"}
"""Size of the patches → stored model."""

STRONG = 3.0
"""A patch is drawn as strong as possible if it has so many times the weight that all have on average."""

RIGHT, WRONG = ("Ankle boot", "Trouser"), "Shirt"
"""Kinds of the examples."""


class VisionTransformer(Live):
    """A live vision transformer, shown as the last line of a cell."""

    kind = "vit"
    scripts = ("unpack.js", "engine.js", "others.js")
    models = tuple(MODELS.values())

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(), "Live vision transformer")


def vit() -> VisionTransformer:
    """The course's stored vision transformers: draw, upload or choose a picture of 28 × 28 pixels."""
    return VisionTransformer()


@dataclass(frozen=True)
class Seen:
    """What a model makes of a picture.

    Attributes:
        p: (10,), the probabilities of the kinds.
        maps: (blocks, heads + 1, rows, columns): weights of the class token on the patches; the last of a block
            is the mean of its heads.
        rollout: (rows, columns).
    """

    p: Tensor
    maps: Tensor
    rollout: Tensor


@torch.no_grad()
def look(model: ViT, pixels: Tensor) -> Seen:
    """What a model makes of a picture: (28, 28), uint8."""
    with record_attention(model) as recorded:
        logits = model(scaled(pixels[None, None]))[0]
    layers = list(recorded.values())
    heads = torch.stack([layer[0, :, 0, 1:].unflatten(1, model.grid) for layer in layers])
    rollout = attention_rollout(layers)[0, 0, 1:].unflatten(0, model.grid)
    maps = torch.cat([heads, heads.mean(dim=1, keepdim=True)], dim=1)
    return Seen(logits.softmax(dim=0), maps, rollout)


@cache
def pytorch(size: int) -> ViT:
    """The model that a page sees, as PyTorch's."""
    return network_of(ViT, bundle(MODELS[size]))


def pixels_of(text: str) -> Tensor:
    """(28, 28), uint8, as they stand in a bundle and in the form."""
    data = bytearray(base64.b64decode(text))
    return torch.frombuffer(data, dtype=torch.uint8).view(28, 28)


# The first state, as HTML: the same as vit.js writes ----------------------------------------------


def _content() -> str:
    packed = bundle(MODELS[7])
    first = packed["examples"][0]
    pixels = pixels_of(first["pixels"])
    seen = look(pytorch(7), pixels)
    chosen = "1.4"
    best = int(seen.p.argmax())
    examples = " ".join(
        f'<button type="button" {OURS} data-example="{i}" aria-label="Example {i}: {each["right"]}">'
        f"{svg(pixels_of(each['pixels']) / 255)}</button>"
        for i, each in enumerate(packed["examples"])
    )
    sizes = radios("patch", {size: f"{size} × {size}" for size in MODELS}, 7)
    shares = ", ".join(
        f"{percent(right / count)} % (patches of {size} × {size})"
        for size, (right, count) in ((size, bundle(name)["score"]) for size, name in MODELS.items())
    )
    return f"""<p>Draw a piece of clothing, light on black, or choose a picture. The stored model answers here, in \
your browser.</p>
<input type="hidden" name="image" value="0"><input type="hidden" name="map" value="{chosen}">
<div class="cu-live-vit"><div>
<div class="cu-live-photo" role="application" tabindex="0" {OURS} aria-label="Drawing board: arrow keys move the pen, \
space puts it down and lifts it" data-part="board">{svg(pixels / 255)}</div>
<p><button type="button" {OURS} data-part="clear">Clear</button></p>
<p class="cu-live-examples">Examples: {examples}</p>
<p><label class="cu-live-file"><span class="cu-live-label">Your picture</span> <input type="file" {OURS} \
accept="image/*" data-part="file"></label></p></div>
<div><div class="cu-live-photo" role="img" aria-label="Where the class token looks" data-part="seen">\
{_over(pixels, _named(seen, chosen))}</div>
<p data-part="where">{_where(seen, chosen)}</p></div>
<div class="cu-live-kindly"><div aria-live="polite"><p class="cu-live-said"><span class="cu-live-label">It says</span> \
<strong data-part="said">{FASHION[best]}, {percent(seen.p[best].item())} %</strong></p>
<p data-part="right"></p></div>
<div data-part="bars">{bars(zip(FASHION, seen.p.tolist(), strict=True))}</div></div></div>
<fieldset class="cu-live-kinds"><legend>Patches</legend> {sizes}</fieldset>
<div class="cu-live-maps cu-live-vit-maps" role="group" aria-label="Weights of the class token by block and head" \
data-part="maps">{_gallery(seen, chosen)}</div>
<p class="cu-live-note">It knows ten kinds of clothes, light on black, and nothing else: whatever you draw, its answer \
is one of the ten. Of {packed["score"][1]} test pictures it names right: {shares}. The third example is one of the \
others.</p>"""


def _named(seen: Seen, place: str) -> Tensor:
    """A map by its place: "1.4" is block 1, after its four heads, their mean; or "rollout"."""
    if place == "rollout":
        return seen.rollout
    block, head = map(int, place.split("."))
    return seen.maps[block, head]


def _title(place: str, heads: int) -> str:
    if place == "rollout":
        return "rollout"
    block, head = place.split(".")
    return f"block {block}, " + ("mean of the heads" if int(head) == heads else f"head {head}")


def _strength(weights: Tensor) -> Tensor:
    """How strong patches are drawn, from 0 to 1."""
    return (weights * weights.numel() / STRONG).clamp(max=1)


def _over(pixels: Tensor, weights: Tensor) -> str:
    """The picture, and over it the weights of its patches."""
    return svg(pixels / 255) + svg(_strength(weights))


def _where(seen: Seen, place: str) -> str:
    weights = _named(seen, place)
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    return (
        f"{_title(place, seen.maps.shape[1] - 1).capitalize()}: most weight, {percent(weights.max().item())} %, is on "
        f"row {row}, column {column} of {weights.shape[0]} × {weights.shape[1]} patches, from 0."
    )


def _gallery(seen: Seen, chosen: str) -> str:
    blocks, heads = seen.maps.shape[:2]
    places = [f"{block}.{head}" for block in range(blocks) for head in range(heads)]
    return "".join(
        f'<button type="button" {OURS} aria-pressed="{"true" if place == chosen else "false"}" data-map="{place}">'
        f"{svg(_strength(_named(seen, place)))}<span>{_title(place, heads - 1)}</span></button>"
        for place in [*places, "rollout"]
    )


# The bundles --------------------------------------------------------------------------------------


@torch.no_grad()
def _examples(packed: dict) -> dict:
    """`examples`: pixels, what they show, what the model says. `score`: how many of how many are right. `answers`."""
    model, test = network_of(ViT, packed), load_fashion_mnist("test")
    logits = torch.cat([model(scaled(part)) for part in test.images.split(500)])
    said = logits.argmax(dim=1)
    good = said == test.labels
    kinds = [(test.labels == FASHION.index(kind)) & good for kind in RIGHT]
    kinds.append((test.labels == FASHION.index(WRONG)) & ~good)
    rows = [int(kind.nonzero()[0]) for kind in kinds]
    examples = [
        {
            "pixels": base64.b64encode(test.images[row].numpy().tobytes()).decode("ascii"),
            "right": FASHION[test.labels[row]],
            "said": FASHION[said[row]],
        }
        for row in rows
    ]
    answers = [[round(logit, 6) for logit in logits[row].tolist()] for row in rows]
    score = [int(good.sum()), len(good)]
    return {"kinds": list(FASHION), "examples": examples, "score": score, "answers": answers}


for _name in MODELS.values():
    about(_name)(_examples)
