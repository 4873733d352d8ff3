"""The report of a check: as text, and in color with further hints folded."""

import html
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from course_utils.kit import exercises
from course_utils.kit.guard import strict
from course_utils.kit.rich_text import to_html

STUB = "not done yet. Fill in the cell above and run it, then this one."


class Hints(str):
    """Hints as a text that a cell shows without quotes."""

    __repr__ = str.__str__


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes:
        name: of the check.
        sentences: of all its properties, in order.
        results: for each sentence whether it holds; None where it was not tried.
        reason: why the first one that does not hold doesn't, in one or two lines; empty if all do.
        hints: where to look then, step by step; the first is shown with the report.
        done: False while there is nothing of the learner's to test; then `reason` may say why.
        ours: whether the course's own solution was checked.
        on_paper: whether the properties are answers, each judged alone.
        reasons: why each property does not hold, where several were judged; "" for one that does.
    """

    name: str
    sentences: tuple[str, ...]
    results: tuple[bool | None, ...] = ()
    reason: str = ""
    hints: tuple[str, ...] = ()
    done: bool = True
    ours: bool = False
    on_paper: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def held(self) -> int:
        """How many properties hold, counted up to the first that does not."""
        return next((place for place, held in enumerate(self.results) if not held), self.points)

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.done and all(self.results)

    @property
    def points(self) -> int:
        """How many properties are known to hold: one point each, 0 for a stub."""
        return self.results.count(True)

    def holds(self, place: int) -> bool:
        """Whether the property at this place, counted from 0, is known to hold."""
        return self.results[place : place + 1] == (True,)

    @property
    def hint(self) -> str:
        """The hint that is shown with the report; empty if all properties hold."""
        return self.hints[0] if self.hints else ""

    @property
    def headline(self) -> str:
        """The result in one sentence, which begins with the check's name."""
        total = len(self.sentences)
        if not self.done:
            return f"{self.name}: {self.reason or STUB}"
        if self.on_paper and not self.ours:
            return f"{self.name}: {self.points} of {total} answers are right."
        if self.passed:
            who = "the course's solution passes" if self.ours else "your code passes"
            return f"{self.name}: {who} {f'all {total} tests' if total > 1 else 'its test'}."
        return f"{self.name}: {self.points} of {total} tests pass."

    def __repr__(self) -> str:
        if not self.done:
            return "\n".join(
                [self.headline, "It will test:", *(f"  · {s}" for s in self.sentences)]
            )
        if self.passed and self.ours:
            return self.headline
        marks = {True: "  ✓ {}", False: "  ✗ {}", None: "  · {} (not tested yet)"}
        lines = [self.headline]
        for place, (sentence, held) in enumerate(zip(self.sentences, self.results, strict=True)):
            below = self._reason(place).splitlines()
            if not self.passed and place == self.held:
                next_hint = (
                    f"(For the next hint, run this in a new cell: cu.checks.{self.name}.hint())"
                )
                below += [numbered(self.hints)[0], *[next_hint] * (len(self.hints) > 1)]
            lines += [marks[held].format(sentence), *(f"    {line}" for line in below)]
        return "\n".join(lines)

    def _reason(self, place: int) -> str:
        """The reason why the property at this place does not hold; empty if it holds or was not tried."""
        if not self.passed and place == self.held:
            return self.reason
        return self.reasons[place] if self.reasons else ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The report as text and, in a reader's session, in color with further hints folded."""
        text = {"text/plain": repr(self)}
        return text if strict() else text | {"text/html": self._html()}

    def _html(self) -> str:
        from course_utils.kit.assets import asset  # slow to import

        stub = ""
        if self.done and not self.ours:
            with suppress(LookupError):
                stub = exercises.stub(self.name)
        over = {"stub": stub, "defines": exercises.defined_name(stub), "name": self.name}
        data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in over.items() if stub)
        state = "open" if not self.done else "right" if self.passed else "wrong"
        head, *about = self.headline.removeprefix(self.name).splitlines()
        lines = [f'<p class="headline"><code>{self.name}</code>{to_html(head)}</p>']
        lines += [
            f"<p>{to_html(line)}</p>" for line in [*about, *["It will test:"] * (not self.done)]
        ]
        listed = "" if self.ours and self.passed else "".join(self._items())
        return (
            f'<div class="cu-report {state} mathjax_ignore"{data}><style>{asset("check.css")}</style>'
            f"{''.join(lines)}<ul>{listed}</ul><script>{{{asset('check.js')}}}</script></div>"
        )

    def _items(self) -> Iterator[str]:
        """A list item for each property; the first that does not hold has the reason and the hints."""
        kinds = {True: ("right", "✓", ""), False: ("wrong", "✗", ""), None: ("open", "·", "")}
        if self.done:
            kinds[None] = ("open", "·", " (not tested yet)")
        results = self.results or (None,) * len(self.sentences)
        for place, (sentence, held) in enumerate(zip(self.sentences, results, strict=True)):
            kind, mark, note = kinds[held]
            more = ""
            if self.done and (why := self._reason(place)):
                reason = "<br>".join(map(html.escape, why.splitlines()))
                more = f'<p class="reason">{reason}</p>'
            if self.done and place == self.held:
                first, *others = numbered(self.hints)
                more += f'<p class="hint">{to_html(first)}</p>{_folded(others)}'
            yield (
                f'<li class="{kind}"><span class="mark">{mark}</span> {to_html(sentence)}{note}{more}</li>'
            )


def _folded(hints: Sequence[str]) -> str:
    """Hints folded into one another, so that each opens after the one before it, without a script or a kernel."""
    if not hints:
        return ""
    name, _, text = hints[0].partition(": ")
    return (
        f'<details><summary data-lm-suppress-shortcuts="true">{name}</summary>'
        f'<p class="hint">{to_html(text)}</p>{_folded(hints[1:])}</details>'
    )


def numbered(hints: Sequence[str]) -> list[str]:
    """Hints with their numbers, "Hint 1 of 3: …"; a single one without."""
    if len(hints) == 1:
        return [f"Hint: {hints[0]}"]
    return [f"Hint {i} of {len(hints)}: {hint}" for i, hint in enumerate(hints, start=1)]
