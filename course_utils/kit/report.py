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
        name: the name of the check.
        sentences: the sentences of its properties, in order.
        results: for each property whether it holds; None if it was not tried.
        reasons: for each property why it does not hold, in one or two lines; empty if it does, or was not tried.
        hints: the hints for the first property that does not hold; the first hint is shown with the report.
        done: False for a stub, and for the course's own function.
        note: a sentence in place of `STUB`, if `done` is False.
        ours: whether the course's own solution was checked.
        on_paper: whether the properties are answers, each judged alone.
    """

    name: str
    sentences: tuple[str, ...]
    results: tuple[bool | None, ...] = ()
    reasons: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    done: bool = True
    note: str = ""
    ours: bool = False
    on_paper: bool = False

    @property
    def failed_at(self) -> int:
        """The index of the first property that does not hold; the number of properties if all do."""
        return next((place for place, holds in enumerate(self.results) if not holds), self.points)

    @property
    def reason(self) -> str:
        """Why the first property that does not hold doesn't; empty if all do."""
        return next(filter(None, self.reasons), "")

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.done and all(self.results)

    @property
    def points(self) -> int:
        """The number of properties that hold: one point each, 0 for a stub."""
        return self.results.count(True)

    def holds(self, place: int) -> bool:
        """Whether the property at this index was tried and holds."""
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
            return f"{self.name}: {self.note or STUB}"
        if self.on_paper and not self.ours:
            which = " The hint is for the first wrong one." if total - self.points > 1 else ""
            return f"{self.name}: {self.points} of {total} answers are right.{which}"
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
        rows = zip(self.sentences, self.results, self.reasons, strict=True)
        for place, (sentence, holds, reason) in enumerate(rows):
            below = reason.splitlines()
            if place == self.failed_at:
                below.append(numbered(self.hints)[0])
                if len(self.hints) > 1:
                    call = f"cu.checks.{self.name}.hint()"
                    below.append(f"(For the next hint, run this in a new cell: {call})")
            lines += [marks[holds].format(sentence), *(f"    {line}" for line in below)]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The report as text and, in a reader's session, in color with further hints folded."""
        text = {"text/plain": repr(self)}
        return text if strict() else text | {"text/html": self._html()}

    def _html(self) -> str:
        from course_utils.kit.assets import asset  # slow to import

        stub = ""
        if self.done:
            with suppress(LookupError):
                stub = exercises.stub(self.name)
        over = {"stub": stub, "defines": exercises.defined_name(stub), "name": self.name}
        data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in over.items() if stub)
        if self.ours:  # gray, and folded: on a glance it is not taken for the reader's own
            return (
                f'<details class="cu-report ours mathjax_ignore"><style>{asset("check.css")}</style>'
                '<summary data-lm-suppress-shortcuts="true">The course\'s solution, for comparison</summary>'
                f"<p>{to_html(self.headline)}</p></details>"
            )
        state = "open" if not self.done else "right" if self.passed else "wrong"
        head, *about = self.headline.removeprefix(self.name).splitlines()
        lines = [f'<p class="headline"><code>{self.name}</code>{to_html(head)}</p>']
        lines += [
            f"<p>{to_html(line)}</p>" for line in [*about, *["It will test:"] * (not self.done)]
        ]
        return (
            f'<div class="cu-report {state} mathjax_ignore"{data}><style>{asset("check.css")}</style>'
            f"{''.join(lines)}<ul>{''.join(self._items())}</ul><script>{{{asset('check.js')}}}</script></div>"
        )

    def _items(self) -> Iterator[str]:
        """A list item for each property; the first that does not hold has the reason and the hints."""
        if not self.done:
            for sentence in self.sentences:
                yield f'<li class="open"><span class="mark">·</span> {to_html(sentence)}</li>'
            return
        kinds = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("open", "·")}
        rows = zip(self.sentences, self.results, self.reasons, strict=True)
        for place, (sentence, holds, reason) in enumerate(rows):
            kind, mark = kinds[holds]
            more = " (not tested yet)" if holds is None else ""
            if reason:
                lines = "<br>".join(map(html.escape, reason.splitlines()))
                more += f'<p class="reason">{lines}</p>'
            if place == self.failed_at:
                first, *others = numbered(self.hints)
                more += f'<p class="hint">{to_html(first)}</p>{_folded(others)}'
            text = to_html(sentence)
            yield f'<li class="{kind}"><span class="mark">{mark}</span> {text}{more}</li>'


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
