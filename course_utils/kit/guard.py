"""Claims that a page makes, each with the conditions that it stands on.

They are gentle with a reader, who may change any number above them, and strict under the tests and
`make notebooks`, which set COURSE_STRICT=1.
"""

import ast
import linecache
import os
from collections.abc import Iterator
from types import TracebackType

NO_LONGER = "With the numbers on this page now, this does not hold"
"""How a reader is told; `studio.parameter_sweep` looks for it."""

LONGEST = 160  # characters of code or of an error, in a sentence


def strict() -> bool:
    """Whether a claim that does not hold is an error: under the tests and where notebooks are made."""
    return os.environ.get("COURSE_STRICT") == "1"


# A claim and its conditions ---------------------------------------------------------------------


class guard:  # lower case: it is read as a verb, with cu.guard("…")
    """A claim with the conditions that it stands on, each a plain `assert` in the block.

        with cu.guard("A narrow window follows the noise."):
            assert error[0.05] > 2 * error[0.5]

    While all hold, nothing is shown. A condition that does not hold, or anything that goes wrong in the
    block, is said in one sentence and stops nothing: the reader may have changed a number above. With
    COURSE_STRICT=1 it raises.

    A claim about the page's own numbers says which, and is silent where the reader tries others:

        with cu.guard("One step halves the error.", given=rate == 0.1):
            assert after < before / 2

    Args:
        claim: what the page says, in one sentence.
        given: whether the numbers are those that the claim is about; as committed, they are.

    Attributes:
        claim: the same.
        held: True or False after the block; None before, and where the claim is about other numbers.

    Raises:
        TypeError: `claim` is no text, as where the parentheses were forgotten.
        ValueError: it is empty.
        AssertionError: with COURSE_STRICT=1, a condition does not hold or cannot be computed, or `given` is false.
    """

    def __init__(self, claim: str, *, given: bool = True) -> None:
        """Nothing happens before the block."""
        if not isinstance(claim, str):
            raise TypeError(f"claim={claim!r} is no text; write guard('one sentence')")
        if not claim.strip():
            raise ValueError("claim is empty; say in one sentence what the conditions are for")
        self.claim, self.given = " ".join(claim.split()), given
        self.held: bool | None = None

    def __enter__(self) -> "guard":
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # an interrupt stays one
        if not self.given:
            if strict():
                raise AssertionError(f"{self.claim} Its numbers are not given, so nothing is held.")
            return True
        self.held = error is None
        if error is None:
            return False
        what = _condition(error, trace)
        if strict():
            raise AssertionError(f"{self.claim} {what[0].upper()}{what[1:]}") from error
        print(
            f"{NO_LONGER}: “{self.claim}” (it needs "
            f"{what}); if you changed something above, that may be why, and nothing has stopped."
        )
        return True


def _condition(error: Exception, trace: TracebackType | None) -> str:
    """The line of the block that failed, and how."""
    code = _statement(trace)
    named = f"`{one_line(code)}`" if code else "one of its conditions"
    if isinstance(error, AssertionError):
        return f"{named}, which is false"
    try:
        detail = str(error)
    except Exception:  # somebody's exception that cannot be shown
        detail = ""
    return f"{named}, which gives {one_line(f'{type(error).__name__}: {detail}')}"


def _statement(trace: TracebackType | None) -> str:
    """The code at the place of the error: an assert's condition, or the whole statement."""
    if trace is None:
        return ""
    frame = trace.tb_frame
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    innermost = None
    for node in ast.walk(tree):  # outer statements come before those in them
        if isinstance(node, ast.stmt) and node.lineno <= trace.tb_lineno <= (node.end_lineno or 0):
            innermost = node
    if innermost is None:
        return ""
    code = innermost.test if isinstance(innermost, ast.Assert) else innermost
    return ast.get_source_segment(source, code) or ""


def one_line(text: str) -> str:
    """A text in one line that is not too long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def guards_in(cell: ast.AST) -> Iterator[tuple[str, ast.With]]:
    """Claim and block of each guard in a cell's syntax tree.

    Raises:
        ValueError: a claim is not written out as a text.
    """
    for block in ast.walk(cell):
        for item in block.items if isinstance(block, ast.With) else ():
            match item.context_expr:
                case ast.Call(ast.Name("guard") | ast.Attribute(attr="guard"), args):
                    if not args or not isinstance(args[0], ast.Constant):
                        raise ValueError(
                            f"line {block.lineno}: write the claim as a text: guard('…')"
                        )
                    yield args[0].value, block
