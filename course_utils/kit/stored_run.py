"""The record of one run: its configuration, its numbers, and the machine that made it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.files import plain
from course_utils.kit.mime import MADE_BY


@dataclass(frozen=True)
class StoredRun:
    """One run: its configuration and its results.

    Attributes:
        name: of the function that ran.
        config: its arguments, the seed among them.
        result: its scores by name; `", "` joins the parts of a name, as in "aer, head".
        curves: points [step, value] by name: "loss", "bleu", …; may be empty.
        examples: things to look at, such as sentences with their maps, as JSON has them; may be empty.
        date: when it ended, as YYYY-MM-DD; empty if no such run is stored.
        machine: model of the GPU or of the CPU.
        threads: of the CPU.
        seconds: how long it took.
        version: of the function, as it was declared then.
        instructions: the instruction set of the CPU that PyTorch used, such as "AVX2" or "AVX512", on which the last
            digits depend; empty where it was not recorded.
    """

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    result: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[list[float]]] = field(default_factory=dict)
    date: str = ""
    machine: str = ""
    threads: int = 0
    seconds: float = 0.0
    version: int = 1
    examples: list[dict[str, Any]] = field(default_factory=list)
    instructions: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The function's name and the configuration as text: two runs with the same key are the same case."""
        return self.name, config_key(self.config)

    @property
    def is_stored(self) -> bool:
        """Whether this is a run that was made, and no placeholder for one of `make gpu`."""
        return bool(self.date)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        if self.is_stored:
            return {}  # a notebook shows the text alone
        return {"text/plain": repr(self), MADE_BY: {"run": self.name, "stored": False}}

    def __repr__(self) -> str:
        if not self.is_stored:
            return f"{self.name}: no run is stored yet. `make gpu` makes it where there is a GPU."
        curves = {
            name: f"{points[0][1]:.3g} → {points[-1][1]:.3g}"
            for name, points in self.curves.items()
        }
        values = curves | {name: f"{value:.4g}" for name, value in self.result.items()}
        # a name of several parts, "aer, head", is quoted, so that a comma outside of quotes ends a value
        result = ", ".join(
            f"{repr(name) if ',' in name else name} {value}" for name, value in values.items()
        )
        return f"{self.name}: {result} ({self.machine}, {self.seconds:.0f} s, {self.date})"


def as_stored(name: str, value: Any) -> Any:
    """A value as it is read out of a stored run: numbers are Python's, a tuple is a list, and keys are text.

    Raises:
        TypeError: it is something else than a number, a text, or lists and dicts of those; the message says where.
    """
    return json.loads(json.dumps(plain(name, value)))


def config_key(config: Mapping) -> str:
    """A configuration as text, the same for the same values."""
    return json.dumps(as_stored("config", config), sort_keys=True)
