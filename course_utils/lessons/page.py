"""An explorer in the book: the same controls over pre-rendered frames, in HTML that stands on its own.

A page carries one background, the median of all frames, and for each frame only the pixels that
differ from it, as lossless WebP. The axes are thus stored once: 85 frames of 800×300 with a curve and a
heatmap of 2,000 weights take 400 KB, where a palette PNG for each takes 840 KB, a WebP for each 930 KB
and one sheet of them 770 KB. Without JavaScript the page shows the first picture.
"""

import base64
import html
import io
import json
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from course_utils.lessons.explorer import Choice, Control, Explorer, Toggle

MAX_BYTES = 600_000
"""Of one explorer in a page; a chapter with three of them still opens at once on a phone."""

COLOR_STEP = 5
"""Colors are rounded to multiples of it (of 255), which no eye sees and which saves a quarter."""

MAX_RADIOS = 5
"""Up to so many options stand side by side; more go into a list to choose from."""


def page(explorer: Explorer) -> str:
    """The HTML of `explorer`.

    Raises:
        ValueError: it takes more than `MAX_BYTES`.
    """
    every = list(explorer.combinations())
    pictures, alts = zip(*(explorer.frame(**values) for values in every), strict=True)
    background, layers = _layers([_pixels(png) for png in pictures])
    start = every.index(explorer.values)
    height, width = background.shape[:2]
    frames = [
        {"alt": alt, "webp": webp} for alt, webp in zip(alts, map(_webp, layers), strict=True)
    ]
    data = json.dumps(frames, ensure_ascii=False).replace("<", r"\u003c")
    caption = f"<p>{html.escape(explorer.caption)}</p>" if explorer.caption else ""
    controls = "".join(
        _control(control, control.values.index(explorer.values[key]))
        for key, control in explorer.controls.items()
    )
    text = f"""<form class="cu-explorer" data-explorer="{explorer.name}" \
 aria-label="{explorer.name.replace("_", " ")}" autocomplete="off">
<style>{_asset("page.css")}</style>
{caption}<div class="cu-controls">{controls}</div>
<div class="cu-stage" data-width="{width}" data-height="{height}" \
style="max-width: {width}px; background-image: url(data:image/webp;base64,{_webp(background)})">\
<img src="data:image/webp;base64,{frames[start]["webp"]}" width="{width}" height="{height}" \
alt="{html.escape(alts[start])}"></div>
<div class="cu-caption" aria-live="polite">{html.escape(alts[start])}</div>
<script type="application/json">{data}</script>
<script>{_asset("page.js")}</script>
</form>"""
    if (size := len(text.encode())) > MAX_BYTES:
        raise ValueError(
            f"{explorer.name} takes {size // 1000} KB in a page, with {len(every)} frames; at most "
            f"{MAX_BYTES // 1000} KB are allowed: give fewer values, or a smaller or plainer picture"
        )
    return text


def _pixels(png: bytes) -> np.ndarray:
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    return (np.rint(pixels / COLOR_STEP) * COLOR_STEP).astype(np.uint8)


def _layers(frames: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The median of `frames`, (height, width, 3), and for each what to lay over it, (height, width, 4)."""
    background = np.median(frames, axis=0).astype(np.uint8)
    layers = []
    for frame in frames:
        differs = Image.fromarray(255 * (frame != background).any(axis=-1).astype(np.uint8))
        # One pixel more on each side: where a browser scales the layers, no background shows at the edges.
        opaque = np.asarray(differs.filter(ImageFilter.MaxFilter(3)))[..., None]
        layers.append(
            np.concatenate([np.where(opaque, frame, 0), opaque], axis=-1).astype(np.uint8)
        )
    return background, layers


def _webp(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "WEBP", lossless=True, quality=70, method=4)
    return base64.b64encode(buffer.getvalue()).decode()


def _control(control: Control, index: int) -> str:
    """One control as HTML. Labels enclose their inputs, and a form bounds its radio groups: no ids."""
    label, count = html.escape(control.label), len(control.values)
    texts = [html.escape(text) for text in control.texts]
    if isinstance(control, Toggle):
        tick = " checked" if index else ""
        box = f'<input type="checkbox" value="1"{tick}>'
        return f'<label data-count="2">{box} <span class="cu-label">{label}</span></label>'
    if isinstance(control, Choice) and count > MAX_RADIOS:
        options = "".join(
            f'<option value="{i}"{" selected" if i == index else ""}>{text}</option>'
            for i, text in enumerate(texts)
        )
        name = f'<span class="cu-label">{label}</span>'
        return f'<label data-count="{count}">{name} <select>{options}</select></label>'
    if isinstance(control, Choice):
        radios = "".join(
            f'<label><input type="radio" name="{label}" value="{i}"{" checked" if i == index else ""}>'
            f" {text}</label>"
            for i, text in enumerate(texts)
        )
        return f'<fieldset data-count="{count}"><legend>{label}</legend>{radios}</fieldset>'
    longest = max(map(len, control.texts))
    every = html.escape(json.dumps(control.texts, ensure_ascii=False))
    return (
        f'<label class="cu-slider" data-count="{count}"><span class="cu-label">{label}</span>'
        f'<input type="range" min="0" max="{count - 1}" step="1" value="{index}" aria-label="{label}" '
        f'aria-valuetext="{texts[index]}" data-texts="{every}">'
        f'<output aria-live="off" style="min-width: {longest}ch">{texts[index]}</output></label>'
    )


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
