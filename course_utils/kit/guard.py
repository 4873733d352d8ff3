"""Guards: claims that a page makes, each with the conditions that it depends on.

A reader may change any number above a claim, so a claim that fails shows a sentence and stops nothing. Under the tests
and `make notebooks`, which set COURSE_STRICT=1, it raises.
"""

import ast
import linecache
import os
from collections.abc import Iterator
from types import TracebackType

NO_LONGER = "With the numbers that are on this page now, one of its claims no longer holds"
"""The beginning of the sentence for a reader; `studio.parameter_sweep` looks for it."""

LONGEST = 160  # characters of code or of an error, in a sentence


def strict() -> bool:
    """Whether a claim that does not hold is an error: under the tests and where notebooks are made."""
    return os.environ.get("COURSE_STRICT") == "1"


# A claim and its conditions ---------------------------------------------------------------------


def guard(claim: str, *, given: bool = True) -> "Guard":
    """A claim with the conditions that it depends on, each a plain `assert` in the block.

        with cu.guard("A narrow window follows the noise."):
            assert error[0.05] > 2 * error[0.5]

    While all conditions hold, nothing is shown. If one fails, or anything else goes wrong in the block, the reader
    sees one sentence and goes on. With COURSE_STRICT=1 it raises.

    A claim about the page's own numbers says which, and is silent where the reader tries others:

        with cu.guard("One step halves the error.", given=rate == 0.1):
            assert after < before / 2

    Args:
        claim: one sentence, as the page says it.
        given: whether the page's numbers are those that the claim is about, as they are when it is committed.

    Raises:
        TypeError: `claim` is not a text, as in `@guard` without parentheses.
        ValueError: it is empty.
        AssertionError: with COURSE_STRICT=1, a condition does not hold or cannot be computed, or `given` is false.
    """
    if not isinstance(claim, str):
        raise TypeError(f"got claim={claim!r}, expected a text; write guard('one sentence')")
    if not claim.strip():
        raise ValueError(
            "got an empty claim, expected one sentence that says what the conditions are for"
        )
    return Guard(" ".join(claim.split()), given)


class Guard:
    """The block of a claim, as `guard` makes it.

    Attributes:
        claim: the sentence, in one line.
        given: as in `guard`.
        held: True or False after the block; None before, and where the claim is about other numbers.
    """

    def __init__(self, claim: str, given: bool) -> None:
        self.claim, self.given = claim, given
        self.held: bool | None = None

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # an interrupt stays one
        if not self.given:
            if strict():
                raise AssertionError(
                    f"{self.claim} Its numbers are not those on the page, so nothing was checked."
                )
            return True
        self.held = error is None
        if error is None:
            return False
        condition, result = _condition(error, trace)
        if strict():
            raise AssertionError(
                f"{self.claim} We checked that {condition}, but {result}."
            ) from error
        print(
            f"{NO_LONGER}: “{self.claim}” We checked that {condition}, but {result}. "
            "If you changed something above, that is probably why. You can simply go on."
        )
        return True


def _condition(error: Exception, trace: TracebackType | None) -> tuple[str, str]:
    """The code of the condition that failed, "`a > b`", and how it failed, "it is false"; both for a sentence."""
    code = _statement(trace)
    named = f"`{one_line(code)}`" if code else "each of its conditions holds"
    if isinstance(error, AssertionError):
        return named, "it is false" if code else "one is false"
    return named, f"it raised {one_line(f'{type(error).__name__}: {error}')}"


def _statement(trace: TracebackType | None) -> str:
    """The code that raised: an assert's condition, or the whole statement."""
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
    """A text in one line of at most `LONGEST` characters."""
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
