"""Drawings: boxes, arrows and tensors with their shapes, in the course's one style, as SVG.

A drawing says where its parts stand by a table of names, and what they are by a dictionary:

    Drawing(
        '''
        Q      K      V
        score  score  .
        mix    mix    mix
        ''',
        nodes={"Q": Cells(2, 4, "Q", shape="(2, 4)"), "score": "score: QK^T"},
        arrows=["Q, K -> score -> mix", "V -> mix"],
        alt="Queries and keys give scores; by the scores the values are mixed.",
    )

Lines and words take the color of the page's text and fills let the page shine through, so that a
drawing is legible on white and on black. `shapes` has what stands in it, `routes` the places and the
arrows' ways, `drawing` the whole. Taught in *Queries, keys and values*, where the data flow of
attention is drawn first.
"""

from course_utils.kit.drawings.drawing import Drawing
from course_utils.kit.drawings.routes import Arrow
from course_utils.kit.drawings.shapes import Box, Cells, Circle, Note

__all__ = ["Arrow", "Box", "Cells", "Circle", "Drawing", "Note"]
