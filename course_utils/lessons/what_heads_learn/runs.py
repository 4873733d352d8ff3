"""Stored trainings of *What heads learn*: films, other starts, one layer, and what cuts do to them."""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.kit.runs import stored
from course_utils.lessons.what_heads_learn import circuits, cuts
from course_utils.lessons.what_heads_learn.film import (
    Film,
    by_followers,
    half_whole,
    levels,
    which_letters,
    wins,
)

RATES, SEEDS = (0.001, 0.003, 0.01, 0.03), range(3)
NAMES = ("Copier", "texts", "train")
"""The names of the page that the runs need."""
LONG, FIRST_FALL, ONE_LAYER = 1500, 400, 8000
LATER = 700, 2100, 6000
"""Steps of the trainings that are cut, of those from other starts, which end after the first fall, and of one layer."""


def texts_to_measure(chapter: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """256 texts that no training has seen, and the lengths of their blocks."""
    return chapter.texts(256, torch.Generator().manual_seed(7))


def trained(
    chapter: SimpleNamespace,
    watch: Callable[[int, nn.Module], None],
    *,
    rate: float,
    seed: int,
    steps: int,
    **settings,
) -> nn.Module:
    """A model of the page, trained as there; `watch` is called with each step and the model."""
    torch.manual_seed(seed)
    return chapter.train(chapter.Copier(**settings), steps, rate, seed, watch=watch)


@stored(cases=[{"seed": seed} for seed in SEEDS], chapter=NAMES)
def filmed(chapter: SimpleNamespace, *, seed: int) -> dict:
    """The training of the page, with its maps at each fifth step up to 200."""
    film = Film(*texts_to_measure(chapter))
    trained(chapter, film, rate=0.01, seed=seed, steps=700)
    frames = film.frames()
    last = frames[-1]
    result = {key: last[key] for key in ("loss", "accuracy", "before")}
    for name in ("qk", "ov"):
        half = half_whole(frames, name)
        result |= {f"{name} half, step": half["step"], f"{name} half, loss": half["loss"]}
    result["step below 1.5"] = next(f["step"] for f in frames if f["loss"] < 1.5)
    return {"result": result, "examples": frames}


@stored(rates=RATES[:3], seeds=SEEDS, chapter=NAMES, version=2)
def one_layer(chapter: SimpleNamespace, *, rate: float, seed: int) -> dict:
    """A model of one layer, trained until its loss is flat; and what knowing only the block's letters would give."""
    measured_on = texts_to_measure(chapter)
    film = Film(*measured_on, every=20)
    trained(chapter, film, rate=rate, seed=seed, steps=ONE_LAYER, layers=1)
    frames = film.frames()
    result = {key: frames[-1][key] for key in ("loss", "accuracy")}
    result["which_letters"] = which_letters(*measured_on)
    return {"result": result, "curves": {"loss": [[f["step"], f["loss"]] for f in frames]}}


@stored(rates=RATES, seeds=SEEDS, chapter=(*NAMES, "patched"), version=3)
def without_parts(chapter: SimpleNamespace, *, rate: float, seed: int) -> dict:
    """What erased entries of the QK map, ablated heads and patches do to a trained model; and how it learned.

    Its curves have the accuracy by followers, and the weights of the head that looks one letter back, and of the other.
    """
    ids, lengths = texts_to_measure(chapter)
    film, back, first_fall = Film(ids, lengths, every=20, until=LONG), {}, {}

    def watch(step: int, model: nn.Module) -> None:
        film(step, model)
        if step % film.every == 0:
            back[step] = circuits.looks_back(model, ids[:64], lengths[:64])
            if not first_fall and film.rows[-1]["by followers"][0] > 0.98:
                found = cuts.after_first_fall(model, ids, lengths, film.pair[0])
                first_fall.update({"step": step} | found)

    model = trained(chapter, watch, rate=rate, seed=seed, steps=LONG)
    previous, induction = film.pair
    outcome = of_film(film)
    for name, head in (("one back", previous), ("two back", 1 - previous)):
        outcome["curves"][name] = [[step, round(w[name][head], 3)] for step, w in back.items()]
        outcome["result"][name] = back[LONG][name][head]
    result = outcome["result"]
    for name, (loss, accuracy) in cuts.accuracies(model, ids, lengths).items():
        result |= {name: accuracy, f"{name}, loss": loss}
    for name, logits in cuts.ablations(model, ids, previous, induction).items():
        one, several = by_followers(logits, ids, lengths)
        result |= {f"{name}, one follower": one, f"{name}, several": several}
    for (changed, part), p in cuts.by_patching(chapter.patched, model, previous).items():
        result[f"{changed}, {part}"] = p
    result["two letters before it, nothing"] = cuts.answer_without(model, [7, 8])
    result |= cuts.one_reader(model, ids, lengths, previous) | cuts.second_note(model, previous)
    for name, rows in {
        "other map": [circuits.qk_map(model, 1 - previous, head) for head in range(2)],
        "second map": [circuits.second_map(model, previous, head) for head in range(2)],
    }.items():
        found = sorted(circuits.on_diagonal(each) for each in rows)
        result |= {f"rows of the {name}, least": found[0], f"rows of the {name}, most": found[1]}
    result |= {f"first fall, {name}": value for name, value in first_fall.items()}
    return outcome


@stored(cases=[{"seed": seed} for seed in SEEDS], chapter=NAMES)
def notes_meet(chapter: SimpleNamespace, *, seed: int) -> dict:
    """The training of the page, and its map of notes by notes: as `levels`, and accuracies by followers without parts.

    The map is that of the head of layer 1 in the film, and its rows count for both heads.
    """
    ids, lengths = texts_to_measure(chapter)
    film = Film(ids, lengths, every=20)
    model = trained(chapter, film, rate=0.01, seed=seed, steps=700)
    previous, induction = film.pair
    maps = [circuits.second_map(model, previous, head) for head in range(2)]
    back = circuits.looks_back(model, ids, lengths)
    result = {
        "one back": back["one back"][previous],
        "two back": back["two back"][1 - previous],
        "rows": circuits.on_diagonal(maps[induction]),
        "rows, other head": circuits.on_diagonal(maps[1 - induction]),
    }
    cut = cuts.without_notes(model, ids, previous)
    cut |= {
        "the other head of layer 0": cuts.ablations(model, ids, *film.pair)[
            "the other head of layer 0"
        ]
    }
    for name, logits in cut.items():
        one, several = by_followers(logits, ids, lengths)
        result |= {f"{name}, one follower": one, f"{name}, several": several}
    return {"result": result, "examples": [{"notes": levels(maps[induction])}]}


@stored(cases=[{"seed": seed} for seed in SEEDS], chapter=NAMES)
def one_head(chapter: SimpleNamespace, *, seed: int) -> dict:
    """A model with one head in each layer: accuracy by followers, and the weight of its head on one and two back."""
    ids, lengths = texts_to_measure(chapter)
    model = trained(chapter, lambda *_: None, rate=0.01, seed=seed, steps=LONG, heads=1)
    with torch.no_grad():
        one, several = by_followers(model(ids[:, :-1]), ids, lengths)
    back = {name: w[0] for name, w in circuits.looks_back(model, ids, lengths).items()}
    return {"result": {"one follower": one, "several": several} | back}


@stored(cases=[{"seed": seed} for seed in SEEDS], chapter=NAMES)
def later(chapter: SimpleNamespace, *, seed: int) -> dict:
    """What erased entries leave of the page's network after 700, 2,100 and 6,000 steps."""
    ids, lengths = texts_to_measure(chapter)
    curves: dict[str, list] = {which: [] for which in cuts.SHOWN}

    def watch(step: int, model: nn.Module) -> None:
        if step not in LATER:
            return
        previous = circuits.look(model, ids, lengths).pair[0]
        for which, logits in cuts.erasures(model, ids, previous, cuts.SHOWN).items():
            curves[which].append([step, round(cuts.measured(logits, ids, lengths)[1], 3)])

    trained(chapter, watch, rate=0.01, seed=seed, steps=LATER[-1])
    return {"result": {which: curve[-1][1] for which, curve in curves.items()}, "curves": curves}


@stored(
    cases=[{"std": std} for std in (1.0, 0.3, 0.1)], rates=RATES[1:], seeds=SEEDS, chapter=NAMES
)
def starts(chapter: SimpleNamespace, *, std: float, rate: float, seed: int) -> dict:
    """A training whose embeddings start with this standard deviation, up to its first fall.

    The results are the steps at which each map is half whole, and the losses there; the last step where it never was.
    """
    film = Film(*texts_to_measure(chapter), every=10, until=FIRST_FALL)
    trained(chapter, film, rate=rate, seed=seed, steps=FIRST_FALL, std=std)
    frames = film.frames()
    result = {"loss": frames[-1]["loss"]}
    for name in ("qk", "ov"):
        half = half_whole(frames, name)
        result |= {f"{name} half, step": half["step"], f"{name} half, loss": half["loss"]}
    return {"result": result}


def of_film(film: Film) -> dict:
    """Result and curves of a training that was watched to its end."""
    frames = film.frames()
    curves = {key: [[f["step"], f[key]] for f in frames] for key in ("loss", "before")}
    curves |= {name: [[f["step"], wins(f[name])] for f in frames] for name in ("qk", "ov")}
    for i, name in enumerate(("one follower", "several followers")):
        curves[name] = [[row["step"], round(row["by followers"][i], 3)] for row in film.rows]
    last = frames[-1]
    result = {key: last[key] for key in ("loss", "accuracy", "before")}
    heads = film.rows[-1]["heads"]
    result |= {"before, other head": min(heads.before), "right": min(heads.right)}
    return {"result": result, "curves": curves}
