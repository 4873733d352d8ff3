"""Draw the picture of the README: ``python notebooks/images/attention_pooling.py``."""

from pathlib import Path

import torch

import course_utils as cu

data = cu.noisy_sine(40, seed=0)
width, _ = cu.best_width(data.x, data.y, torch.logspace(-1, 0.3, 40))
queries = torch.linspace(0, 5, 200)
weights = cu.kernel_weights(queries, data.x, width=width)

picture, (left, right) = cu.subplots(
    1,
    2,
    alt="Forty noisy points with the curve that attention fits to them, and its weights as a heatmap",
    width=8.5,
    height=3.1,
    width_ratios=[1.35, 1],
)
left.scatter(data.x, data.y, s=18, color=cu.COLORS["black"], alpha=0.6, label="keys and values")
left.plot(queries, data.truth(queries), "--", color=cu.COLORS["blue"], label="truth")
left.plot(queries, weights @ data.y, color=cu.COLORS["vermilion"], lw=2, label="attention")
left.set(xlabel="Query", ylabel="Value")
left.set_title("Σ α(q, kᵢ) vᵢ: the points nearby decide", fontsize=10)
left.legend(loc="lower right", frameon=False)

image = cu.heatmap(right, weights[::5], title="The weights α(q, kᵢ)", vmax=weights.max().item())
right.set(xlabel="Keys, from left to right", ylabel="Queries")
picture.colorbar(image, ax=right, label="Weight")

Path(__file__).with_suffix(".png").write_bytes(picture.png(dpi=144))
