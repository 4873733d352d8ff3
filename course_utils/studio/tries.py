"""Numbers that a reader may change: assignments that end in ``# try``, found in a cell's source and changed there.

    width = 0.5  # try 0.1 … 10
    steps = 40  # try 10 … 200
    kernel = "gaussian"  # try "gaussian" | "boxcar"

A range of whole numbers stands beside a whole number, any other beside a float.
"""

import ast
import io
import math
import random
import tokenize
from dataclasses import dataclass

Value = int | float | str | bool

MARK = "# try "
FORM = 'write "name = 0.5  # try 0.1 … 10", or choices: # try "a" | "b"'
WIDE = 10  # a positive range that spans so many times its lower end is drawn from by its logarithm


@dataclass(frozen=True)
class Try:
    """A marked assignment.

    Attributes:
        name: that is bound.
        value: as it stands.
        choices: what may stand there; of a range, its two ends.
        is_range: whether all between the two is meant, too.
        line: of the cell, from 1.
        columns: where the value stands in that line, in bytes.
    """

    name: str
    value: Value
    choices: tuple[Value, ...]
    is_range: bool
    line: int
    columns: tuple[int, int]

    @property
    def others(self) -> tuple[Value, ...]:
        """The choices, or both ends of the range, without the value itself."""
        return tuple(choice for choice in self.choices if choice != self.value)

    def draw(self, chance: random.Random) -> Value:
        """One of the choices; of a range an end in one case of two, else something between."""
        if not self.is_range or chance.random() < 0.5:
            return chance.choice(self.choices)
        low, high = self.choices
        assert not isinstance(low, str) and not isinstance(high, str)
        if isinstance(self.value, int):
            return chance.randint(int(low), int(high))
        if low > 0 and high / low >= WIDE:
            drawn = math.exp(chance.uniform(math.log(low), math.log(high)))
        else:
            drawn = chance.uniform(low, high)
        return min(max(float(f"{drawn:.3g}"), low), high)

    def put(self, source: str, value: Value) -> str:
        """The cell's source with another value there."""
        lines = source.split("\n")
        line, (start, end) = lines[self.line - 1].encode(), self.columns
        lines[self.line - 1] = (line[:start] + repr(value).encode() + line[end:]).decode()
        return "\n".join(lines)


def find(source: str) -> tuple[list[Try], list[str]]:
    """The marks of a cell, and what is wrong with those that cannot be read.

    Args:
        source: of a code cell; one that is not Python has no marks.
    """
    marks, wrong = [], []
    for line, text in _comments(source):
        try:
            marks.append(_read(source, line, text))
        except ValueError as error:
            wrong.append(f"line {line}, {MARK}{text}: {error}")
    return marks, wrong


def _comments(source: str) -> list[tuple[int, str]]:
    """Line and text of each mark."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        ast.parse(source)
    except (tokenize.TokenError, SyntaxError):
        return []
    return [
        (token.start[0], token.string.removeprefix(MARK).strip())
        for token in tokens
        if token.type == tokenize.COMMENT and token.string.startswith(MARK)
    ]


def _read(source: str, line: int, text: str) -> Try:
    assigned = [node for node in ast.parse(source).body if node.lineno == node.end_lineno == line]
    if len(assigned) != 1 or not isinstance(node := assigned[0], ast.Assign):
        raise ValueError(f"no assignment at the top level; {FORM}")
    target, value = node.targets[0], _literal(ast.unparse(node.value))
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or value is None:
        raise ValueError(f"no name that gets one plain value; {FORM}")
    is_range = "…" in text
    choices = tuple(_literal(part) for part in text.split("…" if is_range else "|"))
    if len(choices) < 2 or None in choices:
        raise ValueError(f"neither a range nor choices; {FORM}")
    if is_range:
        _check_range(value, choices)
    elif value not in choices:
        raise ValueError(f"{value!r} is none of the choices; add it")
    columns = (node.value.col_offset, node.value.end_col_offset or 0)
    return Try(target.id, value, choices, is_range, line, columns)


def _literal(text: str) -> Value | None:
    """A number, a text or a truth value; None if it is anything else."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, int | float | str) else None


def _check_range(value: Value, ends: tuple) -> None:
    numbers = [value, *ends]
    if len(ends) != 2 or any(isinstance(one, str | bool) for one in numbers):
        raise ValueError(f"a range has two numbers as its ends; {FORM}")
    if isinstance(value, int) and not all(isinstance(end, int) for end in ends):
        raise ValueError(f"{value} is a whole number, and an end is not; write {value}.0")
    if not ends[0] <= value <= ends[1] or ends[0] == ends[1]:
        raise ValueError(f"{value} is not in the range; the smaller end comes first")
