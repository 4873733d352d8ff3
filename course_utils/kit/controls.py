"""The controls of an explorer: a slider, a choice and a toggle, each with the few values that it can take."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Control:
    """A control with which a reader chooses one of a few values.

    Attributes:
        kind: its form in HTML: "slider", "choice" or "toggle".
        values: a sequence, or a dict from the text to show to its value; afterwards a tuple of values.
        value: the one to start from.
        label: the name that stands beside the control.
        texts: the text to show for each value.

    Raises:
        ValueError: `value` is not among the values, two values have the same text, or the label is empty.
    """

    kind: ClassVar[str] = "slider"
    values: Sequence[Hashable] | Mapping[str, Hashable]
    value: Hashable
    label: str

    def __post_init__(self):
        """Check the arguments and make plain tuples of them."""
        named = self.values if isinstance(self.values, Mapping) else None
        values = tuple(map(_plain, named.values() if named else self.values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value", self.check("value", _plain(self.value)))
        object.__setattr__(self, "texts", tuple(named or map(self.text, values)))
        if len(set(self.texts)) < len(values):
            raise ValueError(
                f"{self.label!r}: {list(self.texts)} shows two values by the same text"
            )
        if not self.label.strip():
            raise ValueError(f"label={self.label!r} is empty; name what is controlled")

    def text(self, value: Hashable) -> str:
        """The text to show for `value`."""
        return str(value)

    def check(self, name: str, value: Hashable) -> Hashable:
        """The control's own object for `value`.

        Raises:
            ValueError: it is not among the values.
        """
        for known in self.values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise ValueError(f"{name}={value!r} is not among the values {list(self.values)}")


@dataclass(frozen=True)
class Slider(Control):
    """A slider: values in order along a line. `format` writes each one, as in `"{:.2f}"`."""

    format: str = "{}"

    def text(self, value: Hashable) -> str:
        """The value in the slider's format."""
        return self.format.format(value)


@dataclass(frozen=True)
class Choice(Control):
    """A choice of one of several options: radio buttons, or a list if there are many."""

    kind = "choice"


class Toggle(Control):
    """A checkbox: off or on."""

    kind = "toggle"

    def __init__(self, value: bool, label: str):
        """A toggle that starts as `value`, with a label."""
        super().__init__({"off": False, "on": True}, value, label)


def _plain(value):
    """A Python number for a NumPy or torch scalar: `repr` then reads the same everywhere."""
    return value.item() if hasattr(value, "item") else value
