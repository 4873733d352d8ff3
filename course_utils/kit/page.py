"""The HTML of an explorer: its form, for JupyterLab and the book, and the book's pre-rendered frames.

A page carries one background, the most usual pixels of all frames, and for each frame only the pixels that
differ from it, as lossless WebP in colors that all frames share. The axes are thus stored once. Without
JavaScript the page shows the first picture.
"""

import base64
import html
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from course_utils.figures.picture import with_palette
from course_utils.kit.assets import asset
from course_utils.kit.controls import Control
from course_utils.kit.mime import REFUSED

MAX_BYTES = 1_150_000
"""Largest size of an explorer in a page, at twice the displayed resolution: as much as three photographs."""

NUM_COLORS = 96
"""Number of colors of all frames together. Smooth lines and one color scale need no more; it saves a quarter."""

MARGIN = 4
"""Pixels by which a layer reaches beyond what differs: where a browser makes it a third as large, no other frame shines
through at its edges."""

MAX_RADIOS = 5
"""Number of options that stand side by side; more go into a list to choose from."""


# The form ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """An explorer as an HTML form: its controls, and its picture with a caption.

    Attributes:
        name: the explorer's.
        controls: argument of `draw` → its control.
        positions: for each control the index of its value.
        caption: one line over the controls, if there is one.
        size: width and height of the picture as it is displayed, in pixels.
        cuts: where a page that is too narrow may cut the picture, x in pixels.
        least_scale: the scale below which its letters are too small to read.
    """

    name: str
    controls: Mapping[str, Control]
    positions: Sequence[int]
    caption: str | None
    size: tuple[int, int]
    cuts: Sequence[int]
    least_scale: float

    def html(self, alt: str, *, src: str = "", background: str = "none", more: str = "") -> str:
        """The form as HTML.

        Args:
            alt: the alt text of the picture, which also stands below it.
            src: the address of the picture; empty where a script brings it.
            background: what the picture lies over, as CSS.
            more: HTML at the end of the form.
        """
        intro = f"<p>{html.escape(self.caption)}</p>" if self.caption else ""
        controls = "".join(map(_control, self.controls, self.controls.values(), self.positions))
        width, height = self.size
        source = f'src="{src}" ' if src else ""
        return f"""<form class="cu-explorer" data-explorer="{self.name}" \
aria-label="{self.name.replace("_", " ")}" autocomplete="off">
{intro}<div class="cu-controls">{controls}</div>
<div class="cu-stage" data-cuts="{list(self.cuts)}" data-least="{self.least_scale}" \
style="max-width: {width}px; background-image: {background}">\
<img {source}width="{width}" height="{height}" alt="{html.escape(alt)}"></div>
<div class="cu-alert" role="alert" hidden></div>
<div class="cu-caption" aria-live="polite">{html.escape(alt)}</div>
{more}</form>"""


def _control(key: str, control: Control, position: int) -> str:
    """A control as HTML, without ids: labels enclose their inputs, and each form has its own radio groups."""
    label, count = html.escape(control.label), len(control.values)
    named = f'<span class="cu-label">{label}</span>'
    texts = [html.escape(text) for text in control.texts]

    def options(form: str, chosen: str) -> str:
        return "".join(
            form.format(i=i, text=text, chosen=chosen if i == position else "")
            for i, text in enumerate(texts)
        )

    if control.kind == "toggle":
        tick = " checked" if position else ""
        return f'<label data-count="2"><input type="checkbox" value="1"{tick}> {named}</label>'
    if control.kind == "choice" and count > MAX_RADIOS:
        listed = options('<option value="{i}"{chosen}>{text}</option>', " selected")
        return f'<label data-count="{count}">{named} <select>{listed}</select></label>'
    if control.kind == "choice":
        radio = f'<label><input type="radio" name="{key}" value="{{i}}"{{chosen}}> {{text}}</label>'
        radios = options(radio, " checked")
        return f'<fieldset data-count="{count}"><legend>{label}</legend>{radios}</fieldset>'
    longest = max(map(len, control.texts))
    every = html.escape(json.dumps(control.texts, ensure_ascii=False))
    return (
        f'<label class="cu-slider" data-count="{count}">{named}'
        f'<input type="range" min="0" max="{count - 1}" step="1" value="{position}" aria-label="{label}" '
        f'aria-valuetext="{texts[position]}" data-texts="{every}">'
        f'<output aria-live="off" style="min-width: {longest}ch">{texts[position]}</output></label>'
    )


# The book ---------------------------------------------------------------------------------------


def frames_page(form: Form, frames: Iterable[tuple[Image.Image, str]], colors: np.ndarray) -> str:
    """The form with a frame for each combination of values: HTML that needs no kernel and no network.

    Args:
        form: the explorer's.
        frames: RGB picture and alt text for each combination of values; the last control changes fastest.
        colors: (colors, 3), those that the page's pictures are shown in.

    Raises:
        ValueError: it takes more than `MAX_BYTES`.
    """
    table, pictures, alts = _nearest(colors), [], []
    for picture, alt in frames:
        red, green, blue = np.moveaxis(np.asarray(picture) >> 3, -1, 0).astype(np.uint16)
        pictures.append(table[red << 10 | green << 5 | blue])
        alts.append(alt)
    background, layers = _layers(pictures, colors)
    every = [{"alt": alt, "webp": _webp(layer)} for alt, layer in zip(alts, layers, strict=True)]
    sizes = [len(control.values) for control in form.controls.values()]
    start = every[int(np.ravel_multi_index(form.positions, sizes))]
    data = json.dumps(every, ensure_ascii=False).replace("<", r"\u003c")
    text = form.html(
        start["alt"],
        src=f"data:image/webp;base64,{start['webp']}",
        background=f"url(data:image/webp;base64,{_webp(background)})",
        more=f"""{REFUSED}<style>{asset("explorer.css")}</style>
<script type="application/json">{data}</script>
<script>(() => {{{asset("address.js")}{asset("explorer.js")}page(document.currentScript.closest("form"));}})();</script>
""",
    )
    if (size := len(text.encode())) > MAX_BYTES:
        raise ValueError(
            f"{form.name} takes {size // 1000} KB in a page, with {len(every)} frames; at most "
            f"{MAX_BYTES // 1000} KB are allowed: give fewer values, or a smaller or plainer picture"
        )
    return text


def shared_colors(pictures: Sequence[Image.Image]) -> np.ndarray:
    """The colors that these RGB pictures need most, (colors, 3), from dark to light."""
    together = np.concatenate([np.asarray(picture) for picture in pictures])
    few = with_palette(Image.fromarray(together), NUM_COLORS)
    colors = np.reshape(few.getpalette(), (-1, 3)).astype(np.uint8)
    return colors[np.argsort(colors.sum(axis=1, dtype=int), kind="stable")]


def _nearest(colors: np.ndarray) -> np.ndarray:
    """A flat table of 32 · 32 · 32 entries: the index of the color nearest to 8 times red, green and blue."""
    steps = np.arange(32) * 255 / 31
    grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1)
    lengths = (colors.astype(float) ** 2).sum(axis=1)
    return (lengths - 2 * grid @ colors.T.astype(float)).argmin(axis=-1).astype(np.uint8).ravel()


def _layers(
    frames: list[np.ndarray], colors: np.ndarray
) -> tuple[np.ndarray, Iterator[np.ndarray]]:
    """The background that frames share, (height, width, 3), and for each frame the pixels that differ, RGBA.

    Args:
        frames: indices of colors, (height, width) each.
        colors: (colors, 3).
    """
    middle = len(frames) // 2
    background = np.partition(np.stack(frames), middle, axis=0)[middle]  # the median in brightness

    opaque = np.column_stack([colors, np.full(len(colors), 255, np.uint8)])
    rgba = np.concatenate([opaque, np.zeros((1, 4), np.uint8)]).view(np.uint32).ravel()

    def layer(frame: np.ndarray) -> np.ndarray:
        differs = frame != background
        for _ in range(MARGIN):
            differs = _grown(_grown(differs).T).T
        # The index after the last color is transparent; four bytes are looked up as one number.
        return rgba[np.where(differs, frame, len(colors))].view(np.uint8).reshape(*frame.shape, 4)

    return colors[background], map(layer, frames)


def _grown(mask: np.ndarray) -> np.ndarray:
    """The mask, True also one row above and below each True entry."""
    grown = mask.copy()
    grown[1:] |= mask[:-1]
    grown[:-1] |= mask[1:]
    return grown


def _webp(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "WEBP", lossless=True, quality=75, method=4)
    return base64.b64encode(buffer.getvalue()).decode()
