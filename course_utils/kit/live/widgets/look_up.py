"""A look-up as a widget: a query is dragged over a table of animals, or walks along the slope to a wanted answer."""

from collections.abc import Mapping

from course_utils.kit.live.widget import Live

ANIMALS = {
    "mouse": (0.1, 0.1, 2.0),
    "cat": (0.3, 0.8, 15.0),
    "dog": (0.4, 1.0, 12.0),
    "horse": (0.8, 0.4, 28.0),
    "elephant": (1.0, 0.0, 65.0),
}
QUERIES = {"kitten": (0.2, 0.9), "bird": (0.2, 0.2), "farmer": (0.6, 0.8), "house": (1.0, 1.0)}


class LookUp(Live):
    """A live look-up, shown as the last line of a cell."""

    kind = "look_up"
    label = "Live look-up"


def look_up(
    animals: Mapping[str, tuple[float, float, float]] | None = None,
    queries: Mapping[str, tuple[float, float]] | None = None,
) -> LookUp:
    """Drag a query over the keys: its scores, its weights, and the weighted average of the values.

    Args:
        animals: name → (size, home, years); by default the five of *Queries, keys and values*.
        queries: name → (size, home), places to begin from; the first is shown.

    Raises:
        ValueError: there is no animal, or no query.
    """
    animals = ANIMALS if animals is None else animals
    queries = QUERIES if queries is None else queries
    for name, given in (("animals", animals), ("queries", queries)):
        if not given:
            raise ValueError(f"{name}={given!r} is empty; one entry is needed")
    table = {name: tuple(map(float, row)) for name, row in animals.items()}
    places = {name: tuple(map(float, place)) for name, place in queries.items()}
    return LookUp(table, places, animals=table, queries=places)
