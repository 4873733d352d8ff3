"""Drawings: nothing overlaps, words fit, arrows end at boxes, the same bytes for the same drawing."""

import base64
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup

import course_utils as cu
from course_utils.figures.svg import standalone
from course_utils.kit.drawings.shapes import Rect, text_width

SVG = "{http://www.w3.org/2000/svg}"


def attention():
    """The data flow of scaled dot-product attention, with shapes."""
    weights = [[0.7, 0.2, 0.1, 0, 0], [0.1, 0.8, 0.1, 0, 0], [0.3, 0.3, 0.4, 0, 0]]
    return cu.Drawing(
        "Q K V\nscore score .\nmask mask .\nA A .\nmix mix mix\nO O O",
        nodes={
            "Q": cu.Cells(3, 4, "Q", shape="(3, 4)", color="query"),
            "K": cu.Cells(5, 4, "K", shape="(5, 4)", color="key"),
            "V": cu.Cells(5, 2, "V", shape="(5, 2)", color="value"),
            "score": cu.Box("score: QK^T", shape="(3, 5)"),
            "mask": "mask: no padding",
            "A": cu.Cells(3, 5, "A", shape="(3, 5)", values=weights, color="line", shades=weights),
            "mix": cu.Box("mix: AV"),
            "O": cu.Cells(3, 2, "AV", shape="(3, 2)", color="value"),
        },
        arrows=["Q, K -> score -> mask -> A -> mix -> O", "V -> mix"],
        alt="Scaled dot-product attention.",
        gap=(26, 24),
    )


def block():
    """A Transformer encoder block, with the norm after each sum."""
    return cu.Drawing(
        "out norm2 add2 ffn norm1 add1 attention X".replace(" ", "\n"),
        nodes={
            "X": cu.Cells(3, 6, "X", shape="(n, d)", color="line"),
            "attention": cu.Box("multi-head\nself-attention", color="query"),
            "add1": cu.Circle("+"),
            "norm1": cu.Box("layer norm", color="wash"),
            "ffn": cu.Box("feed-forward", color="key"),
            "add2": cu.Circle("+"),
            "norm2": cu.Box("layer norm", color="wash"),
            "out": cu.Cells(3, 6, "output", shape="(n, d)", color="line"),
        },
        arrows=[
            "X -> attention -> add1 -> norm1 -> ffn -> add2 -> norm2 -> out",
            cu.Arrow("X", "add1", around="right"),
            cu.Arrow("norm1", "add2", around="right"),
        ],
        groups={"× N": "attention add1 norm1 ffn add2 norm2"},
        alt="A Transformer encoder block, read upwards.",
        gap=(30, 27),
    )


BOTH = pytest.mark.parametrize("make", [attention, block])


def elements(drawing, tag):
    return list(ElementTree.fromstring(drawing.svg()).iter(SVG + tag))


def written(drawing):
    """(words, size, left, right, middle) of each text, by the estimate of its width."""
    for text in elements(drawing, "text"):
        width = 0.0
        for part in [text, *text]:
            size = float(part.get("font-size", text.get("font-size")))
            width += text_width(part.text or "", size) + float(part.get("dx", 0))
        size, x = float(text.get("font-size")), float(text.get("x"))
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        yield "".join(text.itertext()), left, left + width, float(text.get("y")) - 0.35 * size


@BOTH
def test_no_two_parts_overlap_and_all_lie_in_the_picture(make):
    drawing = make()
    rects = {name: part.rect for name, part in drawing.placed.items()}
    assert not [pair for pair in combinations(rects, 2) if rects[pair[0]].meets(rects[pair[1]])]
    left, top, width, height = map(float, elements(drawing, "svg")[0].get("viewBox").split())
    points = [point for way in drawing.routes for point in way]
    xs = [x for r in rects.values() for x in (r.left, r.right)] + [x for x, _ in points]
    ys = [y for r in rects.values() for y in (r.top, r.bottom)] + [y for _, y in points]
    assert left < min(xs) and max(xs) < left + width
    assert top < min(ys) and max(ys) < top + height


@BOTH
def test_all_words_fit_their_node_or_lie_free_of_all_nodes(make):
    drawing = make()
    rects = [part.rect for part in drawing.placed.values()]
    for words, left, right, middle in written(drawing):
        line = Rect(left, middle - 5, right, middle + 5)
        hit = [rect for rect in rects if rect.meets(line)]
        inside = [r for r in hit if r.left - 0.1 <= left and right <= r.right + 0.1]
        assert hit == inside and len(hit) <= 1, words


@BOTH
def test_it_is_an_image_inside_the_page_in_the_page_s_colors(make):
    drawing = make()
    page = BeautifulSoup(drawing._repr_html_(), "html.parser")
    assert not page.svg, "GitHub and an untrusted Lab would take it out"
    assert page.img["alt"] == drawing.alt
    kind, data = page.img["src"].split(",")
    assert kind == "data:image/svg+xml;base64"
    shown = base64.b64decode(data).decode()
    assert shown == standalone(drawing.svg())
    for role in set(re.findall(r"var\(--cu-(\w+)\)", shown)):
        assert f"--cu-{role}:light-dark(" in shown, "in an image it would be black"


def draw(layout="a b", **options):
    return cu.Drawing(layout, **{"alt": "seeded", **options})


BAD = {
    "no alt text": (lambda: draw(alt=" "), "alt"),
    "unknown target": (lambda: draw(arrows=["a -> tail"]), "'tail' is not in the layout; it has a, b"),
    "no arrow": (lambda: draw(arrows=["a b"]), "source -> target"),
    "ragged layout": (lambda: draw("a b\nc"), "row 'c'"),
    "through a box": (lambda: draw("a b c", arrows=["a -> c"]), "a -> c runs through 'b'"),
    "no room": (lambda: draw(arrows=["a -> b"], gap=(8, 8)), "no room for its head"),
    "label over a box": (lambda: draw(arrows=[cu.Arrow("a", "b", label="too long")]), "its label lies"),
    "narrow box": (lambda: draw(nodes={"a": cu.Box("a long label", width=20)}), "width=20"),
}  # fmt: skip


@pytest.mark.parametrize("seeded", BAD)
def test_bad_drawings_are_refused_by_name(seeded):
    make, said = BAD[seeded]
    with pytest.raises(ValueError, match=re.escape(said)):
        make()
