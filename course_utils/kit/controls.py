"""The controls of an explorer: a slider, a choice and a toggle, each with the few values that it can take."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Control:
    """One value out of a few: `values` in order, the `value` to start from, and what to call it.

    Attributes:
        kind: how the form shows it: "slider", "choice" or "toggle".
        values: a sequence, or a dict from what to show to its value; afterwards a tuple of values.
        value: one of them.
        label: the name that stands beside the control.
        texts: what to show for each value.

    Raises:
        ValueError: another start, two values that read the same, or no label.
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
        """What to show for `value`."""
        return str(value)

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

    kind = "choice"


class Toggle(Control):
    """Off or on."""

    kind = "toggle"

    def __init__(self, value: bool, label: str):
        """`value` is where it starts."""
        super().__init__({"off": False, "on": True}, value, label)


def _plain(value):
    """A Python number for a NumPy or torch scalar: `repr` then reads the same everywhere."""
    return value.item() if hasattr(value, "item") else value
