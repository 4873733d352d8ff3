"""The explorers of *What heads learn*: a training as a film of two maps, read from the weights at each step."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import stored_runs
from course_utils.lessons.what_heads_learn.circuits import LETTERS
from course_utils.lessons.what_heads_learn.film import LEVELS, shades, wins

__all__ = ["film", "own_film"]

NUM, BLIND = len(LETTERS), float(np.log(len(LETTERS)))
MAPS = {
    "qk": ("Where to look (QK)", "looks for a position after …", "standing at …"),
    "ov": ("What to say (OV)", "says …", "looking at …"),
    "notes": ("Notes by notes", "looks for a position two after …", "standing one after …"),
}
"""Name of a map → its title, and what its columns and its rows are."""
STEPS = (0, 20, *range(40, 140, 5), 140, 160, 180, 200)
"""Steps at which the slider stops."""
START = 40
"""Where the film starts: before there is a diagonal to see."""
SHADES = 5
"""Few shades of blue make small frames."""


def film() -> Explorer:
    """Explorer of three stored trainings."""
    runs = stored_runs("what_heads_learn", "filmed")
    trainings = {str(i + 1): run.examples for i, run in enumerate(runs)}
    caption = (
        "A row's largest entry has the strongest color, and a green mark if it lies on the diagonal. Drag the slider, "
        "or press the arrow keys."
    )
    return _explorer("film", trainings, caption, START)


def own_film(frames: Sequence[dict] | None = None) -> Explorer:
    """Explorer of the reader's own training; without `frames`, as in the book, of the stored one with the same seed."""
    first = stored_runs("what_heads_learn", "filmed")[0].examples
    caption = "Your own training as a film. In the book it is training 1."
    return _explorer("own_film", {"yours": frames or first}, caption, STEPS[-1])


def _explorer(
    name: str, trainings: dict[str, Sequence[dict]], caption: str, start: int
) -> Explorer:
    controls: dict = {"training": Choice(list(trainings), next(iter(trainings)), label="Training")}
    controls = controls if len(trainings) > 1 else {}
    slider = Slider(STEPS, start, label="Step")
    return Explorer(name, lambda: Scene(trainings), controls | {"step": slider}, caption=caption)


class Scene:
    """The loss up to the step, and two maps, each row from its mean to its largest entry.

    The loss comes first, because a phone shows the parts one below the other, under the slider.
    """

    def __init__(self, trainings: dict[str, Sequence[dict]]):
        """Draw what stands still; `draw` sets the maps and the curves."""
        self.trainings = {
            name: {frame["step"]: frame for frame in frames if "qk" in frame}
            for name, frames in trainings.items()
        }
        (control,) = stored_runs("what_heads_learn", "one_layer", rate=0.01, seed=0)
        self.control = np.array(control.curves["loss"])
        self.which = control.result["which_letters"]
        self.picture, axes = subplots(
            1, 3, alt="The loss of a model, and two maps", width=8.8, height=3.4,
            width_ratios=[1.2, 1, 1],
        )  # fmt: skip
        self.images = {
            name: _map(ax, name) for ax, name in zip(axes[1:], ("qk", "ov"), strict=True)
        }
        self._set_loss(axes[0])

    def _set_loss(self, ax: Axes) -> None:
        last = max(next(iter(self.trainings.values())))
        (self.grey,) = ax.plot([], [], color=COLORS["line"], linewidth=1.5)
        (self.line,) = ax.plot([], [], color=COLORS["key"], linewidth=2.5)
        (self.here,) = ax.plot([], [], "o", color=COLORS["key"], markersize=6)
        for height, text in (
            (BLIND, "blind guess"),
            (self.which, "knows which letters\nare in the block"),
        ):
            ax.axhline(height, color="0.5", linestyle="--", linewidth=1)
            blind = height == BLIND
            ax.text(
                last if blind else 4, height + (0.06 if blind else -0.06), text, fontsize=8,
                ha="right" if blind else "left", va="bottom" if blind else "top",
            )  # fmt: skip
        ax.text(4, 0.5, "blue: two layers", color=COLORS["key"], fontsize=8)
        ax.text(4, 0.2, "gray: one layer", color=COLORS["line"], fontsize=8)
        ax.set(xlim=(0, last * 1.02), ylim=(0, 4), xlabel="Step")
        ax.set_title("Loss", fontsize=10)

    def draw(self, step: int, training: str = "") -> str:
        """Show a training as it is after `step` steps."""
        frames = self.trainings[training or next(iter(self.trainings))]
        frame = frames[step]
        for name, (title, image) in self.images.items():
            image.set_data(_painted(frame[name]))
            title.set_text(f"{MAPS[name][0]}\n{wins(frame[name])} of {NUM} rows on the diagonal")
        reached = [(at, each["loss"]) for at, each in frames.items() if at <= step]
        self.line.set_data(*zip(*reached, strict=True))
        self.here.set_data([step], [frame["loss"]])
        at, loss = self.control.T
        passed = np.append(at[at < step], step)
        self.grey.set_data(passed, np.interp(passed, at, loss))
        return sentence(frame, self.which)


def draw_map(ax: Axes, name: str, text: str) -> None:
    """Draw a map of `MAPS`, from the text of `levels`, as the film does."""
    title, image = _map(ax, name)
    image.set_data(_painted(text))
    title.set_text(f"{MAPS[name][0]}\n{wins(text)} of {NUM} rows on the diagonal")


def _map(ax: Axes, name: str):
    image = ax.imshow(_painted("0" * NUM**2), interpolation="nearest")
    title, columns, rows = MAPS[name]
    ax.set(xlabel=columns, ylabel=rows)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(range(0, NUM, 5), LETTERS[::5])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax.set_title(f"{title}\n", fontsize=10), image


def _painted(text: str) -> np.ndarray:
    """A map in colors, (32, 34, 3): its levels, and on the right a mark in each row where the diagonal is on top."""
    levels = shades(text).numpy()
    strength = np.where(levels == LEVELS - 1, 1, 0.6 * (levels / (LEVELS - 2)) ** 1.8)
    strength = np.round(strength * SHADES) / SHADES
    white, blue, green = (
        np.array(to_rgb(color)) for color in ("#F4F2EC", COLORS["key"], COLORS["value"])
    )
    picture = np.ones((NUM, NUM + 2, 3))
    picture[:, :NUM] = white + strength[..., None] * (blue - white)
    picture[levels.diagonal() == LEVELS - 1, -1] = green
    return picture


def sentence(frame: dict, which: float) -> str:
    """What a frame shows, in words."""
    qk, ov, loss = wins(frame["qk"]), wins(frame["ov"]), frame["loss"]
    rows = "row" if qk == 1 else "rows"
    counts = f"The diagonal wins in {qk} {rows} of “where to look” and in {ov} of “what to say”."
    if frame["step"] == 0:
        return f"Step 0. The weights are random. {counts} The loss is {loss:.2f}."
    if loss > 3.4:
        says = f"and a blind guess would have {BLIND:.2f}."
    elif loss > which:
        says = f"and a guess that knows which letters are in the block would have {which:.2f}."
    else:
        says = f"and {100 * frame['accuracy']:.0f}% of the letters are right."
    return f"Step {frame['step']}. {counts} The loss is {loss:.2f}, {says}"
