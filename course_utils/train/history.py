"""The history of a training: losses and other measurements of each epoch.

Taught in *Bahdanau attention: learning to align*, where the first network of the course is trained.
"""

from typing import Any

from course_utils.figures import Picture, subplots


class History:
    """The measurements of each epoch of a training.

    Attributes:
        rows: a dict per epoch with `epoch`, `step`, `train_loss`, `val_loss`, `lr` (of the last step), `grad_norm`
            (the largest), `seconds`, `per_second` (tokens or images), and the entries of `measure`.
        stopped: why training ended: "finished", "interrupted" or "early".
        per: the unit of the losses, such as "token"; None if the loss does not say.
    """

    def __init__(self, rows: list[dict[str, Any]] | None = None, *, per: str | None = None):
        self.rows = rows or []
        self.stopped = "finished"
        self.per = per

    @property
    def frame(self):
        """The rows as a pandas frame, indexed by epoch."""
        import pandas as pd

        frame = pd.DataFrame(self.rows)
        return frame.set_index("epoch") if self.rows else frame

    @property
    def seconds(self) -> float:
        """The time in the training and validation loops, in seconds."""
        return sum(row["seconds"] for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        if not self.rows:
            return f"History: no epoch completed, {self.stopped}"
        last = self.rows[-1]
        losses = f"training loss {last['train_loss']:.3f}"
        if last["val_loss"] is not None:
            losses += f", validation loss {last['val_loss']:.3f}"
        return f"History: {len(self)} epochs, {losses}, {self.seconds:.1f} s, {self.stopped}"

    def plot(self, *, alt: str | None = None, logy: bool = False) -> Picture:
        """A plot of the training and validation loss over the epochs.

        Args:
            alt: alternative text, a sentence that describes the plot.
            logy: use a logarithmic axis for the losses.
        """
        epochs = [row["epoch"] for row in self.rows]
        alt = alt or f"Training and validation loss over {len(self)} epochs"
        picture, ax = subplots(alt=alt, width=5.5, height=2.8)
        ax.plot(epochs, [row["train_loss"] for row in self.rows], "-", label="training")
        if any(row["val_loss"] is not None for row in self.rows):
            ax.plot(epochs, [row["val_loss"] for row in self.rows], "--", label="validation")
            ax.legend()
        ylabel = f"Loss per {self.per}" if self.per else "Loss"
        ax.set(xlabel="Epoch", ylabel=ylabel, yscale="log" if logy else "linear")
        return picture
