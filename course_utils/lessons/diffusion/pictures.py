"""The picture of pixels on their way from noise, for *Attention in a diffusion model*."""

from torch import Tensor

from course_utils.figures import COLORS, Picture, subplots


def draw_walks(walks: Tensor) -> Picture:
    """The paths of 24 pixels from noise to +1 or −1, and above them the share of all that are on their final side.

    Args:
        walks: (steps + 1, pixels), from the last step to step 0.
    """
    last = len(walks) - 1
    settled = ((walks > 0) == (walks[-1] > 0)).float().mean(dim=1)
    picture, ax = subplots(
        width=7.0,
        height=2.8,
        alt=f"Paths of 24 pixels from noise at step {last} to plus or minus one at step 0: jagged; many change "
        "sides in the first hundred steps, a few later, none near the end. Above: the share of all paths that are "
        "on the side where they end.",
    )
    for walk in walks[:, :24].T:
        color = COLORS["key" if walk[-1] > 0 else "query"]
        ax.plot(range(last, -1, -1), walk, linewidth=0.8, color=color)
    for t in (150, 100, 50):
        ax.axvline(t, color="black", linewidth=0.8, linestyle=":")
        ax.text(t, 3.0, f"{settled[last - t]:.0%} on their side", ha="center", fontsize=8)
    ax.set(xlabel="Step t", ylabel="Pixel $x_t$", xlim=(last, 0), ylim=(-2.9, 2.9))
    return picture
