"""SVG of a matplotlib figure, small, and in colors that follow the page.

A color of `style` becomes a CSS variable, such as `var(--cu-ink)`. Coordinates have one decimal, text stays text, with
the width that the figure was laid out for, and a heatmap is drawn as rectangles, with equal neighbors of a row in one.
matplotlib's own writer gives several times the bytes, in fixed colors.
"""

import base64
import hashlib
import io
import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import weight_dict
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Transform
from PIL import Image

from course_utils.figures.style import BOX, FAMILIES, ROLES, missing_letters, width_of

MAX_CELLS = 2_000
"""Maps with more cells are written as pixels."""

ID_PREFIX = "\x00"
"""Beginning of an id, which is replaced by a digest when the picture is complete."""

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that are not allowed in XML; with one of them no picture would be shown."""

ROLE_OF = {light: role for role, (light, _) in ROLES.items()}
GRAYS = {0.2: "ink", 0.62: "muted", 0.97: "rule", 2: "paper"}
"""Lightness → the role of grays below it."""


def paint(color: Any) -> str:
    """A color in CSS: the variable of its role, or if it has none, its hexadecimal code."""
    hexed = to_hex(color[:3] if not isinstance(color, str) else color).upper()
    role = ROLE_OF.get(hexed)
    if role is None and hexed[1:3] == hexed[3:5] == hexed[5:7]:
        lightness = int(hexed[1:3], 16) / 255
        role = next(role for above, role in GRAYS.items() if lightness < above)
    return f"var(--cu-{role})" if role else hexed


def number(value: float) -> str:
    """A number with at most one decimal."""
    return f"{round(float(value), 1) + 0:g}"


def standalone(svg: str) -> str:
    """The SVG with the variables that it uses, for an `<img>`, which cannot read the page's.

    On a light page its background is white, because some pages are dark without declaring it; on a page that declares a
    dark color scheme it is transparent.
    """
    used = [
        f"--cu-{role}:light-dark({light},{dark})"
        for role, (light, dark) in ROLES.items()
        if f"var(--cu-{role})" in svg
    ]
    css = ["color-scheme:light dark", "background:light-dark(#fff,transparent)", *used]
    start = svg.index(">") + 1
    return f"{svg[:start]}<style>svg{{{';'.join(css)}}}</style>{svg[start:]}"


def svg(figure: Figure) -> str:
    """SVG of a figure, without background and alt text.

    Raises:
        NotImplementedError: the figure has hatches or smoothly colored triangles.
    """
    width, height = (int(side) for side in figure.bbox.size)
    renderer = _SVGRenderer(width, height, figure.dpi)
    images = [image for ax in figure.axes for image in ax.images]
    before = [image.get_interpolation() for image in images]
    try:
        figure.patch.set_visible(False)
        for image in images:
            image.set_interpolation("none")  # draw its own pixels, not those of the screen
        figure.draw(renderer)
    finally:
        figure.patch.set_visible(True)
        for image, interpolation in zip(images, before, strict=True):
            image.set_interpolation(interpolation)
    body = "".join(_grouped(renderer.elements))
    body = body.replace(ID_PREFIX, f"p{hashlib.sha256(body.encode()).hexdigest()[:8]}-")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'fill="none" font-family="{FAMILIES["sans"]}" font-size="12">{body}</svg>'
    )


def _grouped(elements: list[tuple[str, str]]) -> Iterator[str]:
    """The elements, with neighbors of the same attributes in one group."""
    for attributes, group in groupby(elements, key=itemgetter(0)):
        together = "".join(element for _, element in group)
        yield f"<g {attributes}>{together}</g>" if attributes else together


class Measuring(RendererBase):
    """Renderer that measures text with missing letters by `width_of`, where matplotlib would warn."""

    def get_text_width_height_descent(self, s, prop, ismath):
        """The width of a line, its height and its part below the base line, in pixels."""
        if ismath or not missing_letters(s):
            return super().get_text_width_height_descent(s, prop, ismath)
        size = self.points_to_pixels(prop.get_size_in_points())
        return width_of(s) * size, *super().get_text_width_height_descent("lp", prop, False)[1:]


class _SVGRenderer(Measuring):
    """Renderer whose drawing becomes `elements`: pairs of attributes and an element of SVG."""

    def __init__(self, width: int, height: int, dpi: float):
        super().__init__()
        self.width, self.height, self.dpi = width, height, dpi
        self._num_ids, self._rendering = 0, ""
        self.elements: list[tuple[str, str]] = []
        self._flip = Affine2D().scale(1, -1).translate(0, height)
        self._clips: dict[str, str] = {}

    def get_canvas_width_height(self):
        return self.width, self.height

    def points_to_pixels(self, points):
        return points * self.dpi / 72

    def option_scale_image(self):
        return True

    def option_image_nocomposite(self):
        return True

    def draw_path(self, gc, path, transform, rgbFace=None):
        if gc.get_hatch():
            raise NotImplementedError("hatches")
        flipped = transform + self._flip
        attributes = [self._clip(gc, path, flipped), self._rendering]
        if rgbFace is not None:
            attributes.append(_attributes("fill", rgbFace, gc))
        width = self.points_to_pixels(gc.get_linewidth())
        if width and gc.get_rgb()[3]:
            attributes.append(_attributes("stroke", gc.get_rgb(), gc))
            attributes.append(f'stroke-width="{number(width)}"')
            _, dashes = gc.get_dashes()
            if dashes is not None and len(dashes):
                every = " ".join(number(self.points_to_pixels(dash)) for dash in dashes)
                attributes.append(f'stroke-dasharray="{every}"')
            if gc.get_capstyle() != "butt":
                attributes.append(
                    f'stroke-linecap="{gc.get_capstyle().replace("projecting", "square")}"'
                )
            if gc.get_joinstyle() != "miter":
                attributes.append(f'stroke-linejoin="{gc.get_joinstyle()}"')
        elif rgbFace is None:
            return
        shape = _circle(path, flipped)
        if not shape and (data := _data(path, flipped, path.should_simplify and rgbFace is None)):
            shape = f'<path d="{data}"/>'
        if shape:
            self.elements.append((" ".join(filter(None, attributes)), shape))

    def draw_quad_mesh(self, gc, *mesh):
        gc.set_linewidth(0)  # edges over one another would be seen through the faces
        self._rendering = 'shape-rendering="crispEdges"'
        super().draw_quad_mesh(gc, *mesh)
        self._rendering = ""

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        if ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        size = self.points_to_pixels(prop.get_size_in_points())
        width = self.get_text_width_height_descent(s, prop, False)[0]
        position = f'x="{number(x)}" y="{number(y)}"'
        attributes = [_attributes("fill", gc.get_rgb(), gc)]
        if abs(size - 12) > 0.05:
            attributes.append(f'font-size="{number(size)}"')
        weight = prop.get_weight()
        if weight_dict.get(weight, weight) >= 600:
            attributes.append('font-weight="600"')
        if prop.get_style() == "italic":
            attributes.append('font-style="italic"')
        if angle:
            position += f' transform="rotate({number(-angle)} {number(x)} {number(y)})"'
        if len(s) > 1:
            position += f' textLength="{number(width)}" lengthAdjust="spacingAndGlyphs"'
        text = escape(NO_XML.sub(BOX, s), quote=False)
        self.elements.append((" ".join(attributes), f"<text {position}>{text}</text>"))

    def draw_image(self, gc, x, y, im, transform=None):
        pixels = np.asarray(im)
        height, width = pixels.shape[:2]
        if transform is None:
            matrix = Affine2D().translate(x, y) + self._flip
        else:
            matrix = Affine2D().scale(1 / width, 1 / height) + transform
            matrix += Affine2D().translate(x, y) + self._flip
        a, c, e, b, d, f = matrix.get_matrix()[:2].ravel()
        numbers = " ".join(
            f"{value:.4g}" if abs(value) < 100 else number(value) for value in (a, b, c, d, e, f)
        )
        corners = Path([(0, 0), (width, 0), (width, height), (0, height)])
        attributes = " ".join(filter(None, [self._clip(gc, corners, matrix)]))
        inside = "".join(self._cells(pixels))
        self.elements.append((attributes, f'<g transform="matrix({numbers})">{inside}</g>'))

    def _cells(self, pixels: np.ndarray) -> Iterator[str]:
        """Elements of an image: rectangles if its colors are the page's, or its pixels."""
        colors, opacity = pixels[..., :3], pixels[..., 3]
        height, width = opacity.shape
        shown = np.unique(colors[opacity > 0], axis=0)
        hexed = {to_hex(color / 255).upper(): color for color in shown[: len(ROLE_OF) + 1]}
        if not hexed.keys() <= ROLE_OF.keys():
            mode = "RGBA" if opacity.min() < 255 else "RGB"
            picture = Image.fromarray(pixels).convert(mode)
            if mode == "RGB" and (np.ptp(colors, axis=-1) == 0).all():
                picture = picture.convert("L")
            yield _image(picture)
            return
        for code, color in hexed.items():
            strength = np.where((colors == color).all(axis=-1), opacity, 0)
            attributes = f'fill="var(--cu-{ROLE_OF[code]})"'
            if opacity.size > MAX_CELLS:
                name = self._new_id()
                area = f'maskUnits="userSpaceOnUse" x="0" y="0" width="{width}" height="{height}"'
                picture = Image.fromarray(strength.astype(np.uint8))
                yield f'<mask id="{name}" {area}>{_image(picture)}</mask>'
                yield f'<path {attributes} mask="url(#{name})" d="M0 0h{width}v{height}h-{width}z"/>'
                continue
            yield f'<g {attributes} shape-rendering="crispEdges">'
            for level in np.unique(strength[strength > 0]):
                runs = "".join(
                    f"M{left} {row}h{right - left}v1h-{right - left}z"
                    for row, line in enumerate(strength == level)
                    for left, right in _runs(line)
                )
                yield f'<path fill-opacity="{level / 255:.2g}" d="{runs}"/>'
            yield "</g>"

    def _clip(self, gc: GraphicsContextBase, path: Path, transform: Transform) -> str:
        """The attribute that clips a path to the axes; "" where it lies inside."""
        rectangle = gc.get_clip_rectangle()
        clip: Any
        clip, clip_transform = gc.get_clip_path()
        if clip is not None and clip_transform is not None:
            data = _data(clip, clip_transform + self._flip, False)
        elif rectangle is not None:
            points = transform.transform(path.vertices)
            points = points[np.isfinite(points).all(axis=1)]
            if not len(points):
                return ""
            low, high = points.min(axis=0), points.max(axis=0)
            left, right = rectangle.x0, rectangle.x1
            top, bottom = self.height - rectangle.y1, self.height - rectangle.y0
            if (low >= (left - 2, top - 2)).all() and (high <= (right + 2, bottom + 2)).all():
                return ""
            data = f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}z"
        else:
            return ""
        if data not in self._clips:
            name = self._clips[data] = self._new_id()
            self.elements.append(("", f'<clipPath id="{name}"><path d="{data}"/></clipPath>'))
        return f'clip-path="url(#{self._clips[data]})"'

    def _new_id(self) -> str:
        """A new id, which `svg` makes unique on a page."""
        self._num_ids += 1
        return f"{ID_PREFIX}{self._num_ids}"


def _attributes(what: str, color: Any, gc: GraphicsContextBase) -> str:
    """Color and opacity of a fill or a stroke."""
    alpha = color[3] if len(color) == 4 and not gc.get_forced_alpha() else gc.get_alpha()
    opacity = f' {what}-opacity="{alpha:.2g}"' if alpha is not None and alpha < 0.995 else ""
    return f'{what}="{paint(color)}"{opacity}'


def _circle(path: Path, transform: Transform) -> str:
    """A circle, which as a path would be eight curves; "" for any other shape."""
    codes = np.asarray(path.codes)
    if (
        codes.shape != np.asarray(Path.unit_circle().codes).shape
        or (codes[1:-1] != Path.CURVE4).any()
    ):
        return ""
    points = transform.transform(path.vertices)
    (x, y), (width, height) = (points.max(0) + points.min(0)) / 2, np.ptp(points, axis=0)
    if abs(width - height) > 0.01:
        return ""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(width / 2)}"/>'


def _data(path: Path, transform: Transform, simplify: bool) -> str:
    """Data of a `<path>`: relative coordinates, rounded to tenths of a pixel."""
    letters = {Path.MOVETO: "m", Path.LINETO: "l", Path.CURVE3: "q", Path.CURVE4: "c"}
    text, here, start, last = "", np.zeros(2, int), np.zeros(2, int), ""
    for vertices, code in path.iter_segments(transform, simplify=simplify):
        if code == Path.CLOSEPOLY:
            text, here, last = text + "z", start, "z"
            continue
        points = np.rint(10 * np.reshape(vertices, (-1, 2))).astype(int)
        if code == Path.LINETO and last in "ml" and not (points - here).any() and last == "l":
            continue
        letter = letters[code]
        numbers = [f"{value / 10:g}" for value in (points - here).ravel()]
        text += ("" if letter == last != "m" else letter) + _joined(numbers, letter == last != "m")
        here, last = points[-1], letter
        if code == Path.MOVETO:
            start = here
    return text.replace("m", "M", 1)


def _joined(numbers: list[str], goes_on: bool) -> str:
    """Numbers in a row, with a space before each that has no minus; none before the first of a command."""
    text = ""
    for value in numbers:
        text += value if value[0] == "-" or not (text or goes_on) else f" {value}"
    return text


def _runs(line: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of True in a line."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _image(picture: Image.Image) -> str:
    """An `<image>` that holds the pixels as PNG."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    size = f'width="{picture.width}" height="{picture.height}"'
    return f'<image {size} style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
