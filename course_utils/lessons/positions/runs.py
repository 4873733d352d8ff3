"""The trainings of *Positions* that are made beforehand: `make runs CHAPTER=09`. Some seconds each."""

import itertools

import torch

from course_utils.kit.runs import stored

TASKS = ("three before", "the first")
KINDS = ("none", "sinusoidal", "learned", "rotary", "Shaw", "T5", "ALiBi")
BEYOND = 20  # the places that count as beyond the trained length: 20 … 63
FARTHER = (16, 64, 256, 1024)  # tokens
LENGTH = {"three before": 16, "the first": 64}  # of the sequences whose maps are shown


def cases() -> list[dict]:
    """Three seeds of each kind and task, at equal steps; the same with positions that begin anywhere up to 48."""
    usual = [
        {"task": task, "kind": kind, "seed": seed, "steps": steps, "farthest_start": 0}
        for steps, task, kind, seed in itertools.product((300, 900), TASKS, KINDS, range(3))
    ]
    moved = [
        {**case, "farthest_start": 48}
        for case in usual
        if case["kind"] in ("sinusoidal", "learned")
    ]
    longest = [
        {**case, "steps": 2700}
        for case in moved
        if case["kind"] == "learned" and case["steps"] == 900
    ]
    return [*usual, *moved, *longest]


@stored(cases=cases(), chapter=["train", "tested"], small=True, tolerance=0.2)
def reading(chapter, *, task: str, kind: str, seed: int, steps: int, farthest_start: int) -> dict:
    """The chapter's reader, asked about 16 tokens, as in training, and about 64."""
    reader = chapter.train(kind, seed, task, farthest_start, steps)
    right, _ = chapter.tested(reader, task, 16)
    at_64, weights = chapter.tested(reader, task, 64)
    places = torch.arange(BEYOND, 64)
    wanted = places - 3 if task == "three before" else torch.zeros_like(places)
    return {
        "result": {
            "inside": round(right.nanmean().item(), 4),
            "beyond": round(at_64[BEYOND:].mean().item(), 4),
            "weight": round(weights[places, wanted].mean().item(), 4),
        },
        "curves": {
            "right at 64": [[i, round(p, 4)] for i, p in enumerate(at_64.tolist()) if p == p]
        },
    }


@stored(
    cases=[
        {"task": task, "kind": kind, "seed": 0}
        for task, kinds in (
            ("three before", ("none", "sinusoidal", "learned")),
            ("the first", ("sinusoidal", "rotary")),
        )
        for kind in kinds
    ],
    chapter=["train", "tested"],
    small=True,
    tolerance=0.2,
)
def looking(chapter, *, task: str, kind: str, seed: int) -> dict:
    """Where the chapter's reader looks: its mean weights, after 300 steps."""
    right, weights = chapter.tested(chapter.train(kind, seed, task), task, LENGTH[task])
    rounded = [[round(weight, 2) for weight in row] for row in weights.tolist()]
    return {
        "result": {"right": round(right.nanmean().item(), 4)},
        "examples": [{"weights": rounded}],
    }


@stored(
    cases=[{"kind": kind, "seed": seed} for kind in ("rotary", "Shaw") for seed in range(3)],
    chapter=["train"],
)
def farther(chapter, *, kind: str, seed: int) -> dict:
    """Three before, among ever more tokens, which now come repeatedly: share right, after 900 steps."""
    reader = chapter.train(kind, seed, steps=900)
    generator = torch.Generator().manual_seed(123)
    right = {}
    for length in FARTHER:
        tokens = torch.randint(64, (32, length), generator=generator)
        with torch.no_grad():
            hits = reader(tokens).argmax(dim=-1)[:, 3:] == tokens[:, :-3]
        right[str(length)] = round(hits.float().mean().item(), 4)
    return {"result": right}
