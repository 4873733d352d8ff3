"""The controls of an explorer: each holds a few values in order, of which one is chosen."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Control:
    """One value out of a few: `values` in order, the `value` to start from, and what to call it.

    Attributes:
        values: a sequence, or a dict from what to show to its value; afterwards a tuple of values.
        value: one of them.
        label: the name that stands beside the control.
        texts: what to show for each value.

    Raises:
        TypeError: `values` is no sequence.
        ValueError: no values, a value twice, two that read the same, another start, or no label.
    """

    values: Sequence[Hashable] | Mapping[str, Hashable]
    value: Hashable
    label: str

    def __post_init__(self):
        """Check the arguments and make plain tuples of them."""
        kind = type(self).__name__
        texts = None
        if isinstance(self.values, Mapping):
            texts, values = tuple(self.values), tuple(self.values.values())
        elif isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise TypeError(f"{kind}: values={self.values!r} is not a list of values")
        else:
            values = tuple(_plain(value) for value in self.values)
        if not values:
            raise ValueError(f"{kind}: values is empty; at least one value is needed")
        if len(set(values)) < len(values):
            raise ValueError(f"{kind}: values={list(values)} contains a value twice")
        if not isinstance(self.label, str) or not self.label.strip():
            raise ValueError(f"{kind}: label={self.label!r} is empty; name what is controlled")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value", self.check("value", _plain(self.value)))
        object.__setattr__(self, "texts", texts or tuple(self.text(value) for value in values))
        if len(set(self.texts)) < len(values):
            raise ValueError(f"{kind}: {list(self.texts)} shows two values by the same text")

    def text(self, value: Hashable) -> str:
        """What to show for `value`."""
        return str(value)

    def position(self, value: Hashable) -> int | str:
        """Where the control stands for `value`, as its form says it: the index of the value."""
        return self.values.index(value)

    def at(self, position: int | str) -> Hashable:
        """The value for a position that the form has sent."""
        return self.values[position]

    def check(self, name: str, value: Hashable) -> Hashable:
        """The control's own copy of `value`.

        Raises:
            ValueError: it is not among the values.
        """
        for known in self.values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise ValueError(f"{name}={value!r} is not among the values {list(self.values)}")


@dataclass(frozen=True)
class Slider(Control):
    """Values in order along a line. `format` writes each one, as in `"{:.2f}"`."""

    format: str = "{}"

    def text(self, value: Hashable) -> str:
        """The value in the slider's format."""
        return self.format.format(value)


@dataclass(frozen=True)
class Choice(Control):
    """One of several options: a list of values, or a dict from what to show to its value."""


@dataclass(frozen=True)
class Text(Control):
    """A line that the reader writes, or one of some examples; in the book, which has no kernel, one of these.

    Attributes:
        values: the examples.
        longest: characters that the reader may write.
    """

    longest: int = 100

    def position(self, value: Hashable) -> int | str:
        """The line itself."""
        return str(value)

    def at(self, position: int | str) -> Hashable:
        """The line itself."""
        return position

    def check(self, name: str, value: Hashable) -> Hashable:
        """The line with single spaces.

        Raises:
            TypeError: it is no text.
            ValueError: it is empty or too long.
        """
        if not isinstance(value, str):
            raise TypeError(f"{name}={value!r} is not a text")
        line = " ".join(value.split())
        if not 0 < len(line) <= self.longest:
            raise ValueError(f"{name} has {len(line)} characters; 1 to {self.longest} are possible")
        return line


class Toggle(Control):
    """Off or on."""

    def __init__(self, value: bool, label: str):
        """`value` is where it starts."""
        super().__init__({"off": False, "on": True}, value, label)


class IntRange(Slider):
    """The whole numbers from `start` to `stop`, both included."""

    def __init__(self, start: int, stop: int, value: int, label: str, *, step: int = 1):
        """`value` is where it starts."""
        super().__init__(range(start, stop + 1, step), value, label)


def _plain(value):
    """A Python number for a NumPy or torch scalar: `repr` then reads the same everywhere."""
    return value.item() if hasattr(value, "item") else value
