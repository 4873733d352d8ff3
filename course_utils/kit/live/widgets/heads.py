"""Heads as a widget: the reader's own look-ups in a cabinet of eight drawers, by weights that are written down."""

from course_utils.kit.live.widget import Live

DRAWERS = "ABCDEFGH"
MOST = 4
"""Letters of a request, and heads."""


class Heads(Live):
    """Live look-ups by heads, shown as the last line of a cell."""

    kind = "heads"
    label = "Live heads"


def heads(request: str = "CF", num_heads: int = 2) -> Heads:
    """One attention by hand: ask for one to four drawers, with one to four heads.

    Args:
        request: one to four different letters from A to H.
        num_heads: from 1 to 4.

    Raises:
        ValueError: the request or the number of heads is another.
    """
    if not 1 <= len(request) <= MOST or len(set(request)) < len(request) or set(request) - {*DRAWERS}:  # fmt: skip
        raise ValueError(f"request={request!r}; one to four different letters from A to H are needed")  # fmt: skip
    if num_heads not in range(1, MOST + 1):
        raise ValueError(f"num_heads={num_heads!r}; 1 to 4 are needed")
    return Heads(request, num_heads, request=request, num_heads=num_heads)
