"""The progress of a training: a bar and a loss curve in a notebook, one line at the end elsewhere.

The bar is a widget; in the saved notebook its text is always the same ("Training: 10 epochs"). First seen in
*Bahdanau attention: learning to align*.
"""

import contextlib
import sys
import time
from collections.abc import Iterator

from course_utils.runtime import in_notebook
from course_utils.train.history import History


class TrainingBar:
    """Base class: no bar, and one line at the end, for training outside a notebook."""

    def step(self, step: int, loss: float) -> None:
        """Show the mean loss of the epoch so far; called after each optimizer step."""

    def epoch(self, history: History) -> None:
        """Show the losses of the epochs so far; called after each epoch."""

    def done(self, history: History) -> None:
        """Print the last losses; called once at the end."""
        print(history, file=sys.stderr)


class NoBar(TrainingBar):
    """No output at all."""

    def done(self, history: History) -> None:
        """Print nothing."""


class NotebookBar(TrainingBar):
    """A bar over all steps with time and loss, and the curve of the losses under it."""

    MIN_INTERVAL = 0.2  # seconds between updates: quick enough to watch, and next to free
    CURVE_INTERVAL = 1.0  # the curve takes longer to draw

    def __init__(self, epochs: int, steps_per_epoch: int):
        import ipywidgets

        self._epochs, self._began = epochs, time.perf_counter()
        self._last = self._last_curve = 0.0
        self._bar = ipywidgets.IntProgress(
            max=epochs * steps_per_epoch, layout={"width": "320px"}, style={"bar_color": "#0072B2"}
        )
        self._text = ipywidgets.Label("training …")
        self._curve = ipywidgets.Image(format="png", layout={"display": "none"})
        self._box = ipywidgets.VBox([ipywidgets.HBox([self._bar, self._text]), self._curve])

    def __repr__(self) -> str:
        return f"Training: {self._epochs} epochs"

    def _repr_mimebundle_(self, **_) -> dict:
        return {"text/plain": repr(self)} | {
            kind: data
            for kind, data in self._box._repr_mimebundle_().items()
            if kind != "text/plain"
        }

    def step(self, step: int, loss: float) -> None:
        """Move the bar, and show the mean loss of the epoch so far and the time left."""
        now = time.perf_counter()
        if now - self._last < self.MIN_INTERVAL:
            return
        self._last, self._bar.value = now, step
        left = (now - self._began) / max(step, 1) * (self._bar.max - step)
        self._text.value = f"loss {loss:.3f}, {left:.0f} s left"

    def epoch(self, history: History) -> None:
        """Draw the curve again, unless it was drawn a moment ago."""
        now = time.perf_counter()
        if now - self._last_curve >= self.CURVE_INTERVAL:
            self._last_curve = now
            self._draw(history)

    def _draw(self, history: History) -> None:
        if len(history) > 1:
            self._curve.value = history.plot().png()
            self._curve.layout.display = "block"

    def done(self, history: History) -> None:
        """Show the whole curve, and how training ended."""
        self._draw(history)
        self._bar.value = self._bar.max
        self._bar.bar_style = "success" if history.stopped != "interrupted" else "warning"
        self._text.value = repr(history).removeprefix("History: ")


def _has_widgets() -> bool:
    """Whether ipywidgets 8 is here; widgets of version 7 can't be part of an output."""
    try:
        from ipywidgets import Widget
    except ImportError:
        return False
    return hasattr(Widget, "_repr_mimebundle_")


@contextlib.contextmanager
def training_bar(epochs: int, steps_per_epoch: int, *, shown: bool = True) -> Iterator[TrainingBar]:
    """A bar in a notebook, one line at the end elsewhere, or nothing if not `shown`."""
    if not shown:
        yield NoBar()
        return
    if not in_notebook() or not _has_widgets():
        yield TrainingBar()
        return
    from IPython.display import display

    bar = NotebookBar(epochs, steps_per_epoch)
    display(bar)
    yield bar
