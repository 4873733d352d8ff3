"""Stored trainings of *Vision transformers*, `make runs CHAPTER=15`, and the cards of its live models."""

import base64
import math
from types import SimpleNamespace

import torch
from torch.nn import functional as F

from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.kit.live.bitmaps import bitmap
from course_utils.kit.live.widgets import GARMENTS
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, load_model
from course_utils.lessons.vision_transformers import forbidding, memory
from course_utils.lessons.vision_transformers.training import (
    BATCH,
    SIZE,
    SmallCNN,
    accuracy_of,
    distances,
    parts,
    position_cosines,
    train,
    variant,
)
from course_utils.models.vision import ViT

SEEDS = (0, 1, 2)
EPOCHS = 3
"""Epochs of the training on the page."""
LONGER, STEPS = 5, 400
"""Passes, or steps, of the comparisons."""
KINDS = ("class token", "mean of the patches", "no positions")
IMAGES = (500, 1000, 2500, 9000)
TRIED = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Learning rates that are compared."""
RATES = {"ViT": 3e-3, "CNN": 3e-2}
"""Network → its best rate in the runs of `rates`."""
MEMORY = SIZE | {"image_size": 56, "patch_size": 14, "num_classes": 16, "num_layers": 1}


def network(name: str, seed: int) -> torch.nn.Module:
    """The chapter's ViT or the small convolutional network, untrained."""
    if name == "ViT":
        return variant("class token", seed)
    torch.manual_seed(seed)
    return SmallCNN()


@stored(
    cases=[{"name": name, "lr": lr, "seed": 0} for name in RATES for lr in TRIED],
)
def rates(*, name: str, lr: float, seed: int) -> dict:
    """Validation accuracy after a short training at this rate."""
    images, validation, _ = parts()
    model = network(name, seed)
    train(model, images, epochs=EPOCHS, lr=lr, seed=seed)
    return {"result": {"validation": accuracy_of(model, validation)}}


@stored(
    cases=[{"kind": kind, "epochs": LONGER, "seed": seed} for kind in KINDS for seed in SEEDS],
    saves={
        name: {"kind": "class token", "seed": seed}
        for name, seed in zip(("vit", "vit_1", "vit_2"), SEEDS, strict=True)
    },
)
def longer(*, kind: str, epochs: int, seed: int) -> dict:
    """More passes, for the chapter's model and with one change; the first kind is stored as live models.

    The result has the mean cosine of position vectors at each distance, and of each with what it was at the
    start; the example has all cosines.
    """
    images, validation, test = parts()
    model = variant(kind, seed)
    start = model.positions.table.detach().clone()
    curves: dict[str, list] = {"loss": [], "validation": []}

    def watch(epoch: int, loss: float) -> None:
        curves["loss"].append([epoch, round(loss, 4)])
        curves["validation"].append([epoch, round(accuracy_of(model, validation), 4)])

    train(model, images, epochs=epochs, seed=seed, after_epoch=watch)
    result, examples = {"test": accuracy_of(model, test)}, []
    models, cards = {}, {}
    if kind == "class token":
        cosines, apart = position_cosines(model), distances(*model.grid)
        for steps in (1, 2, 3):
            result[f"alike {steps}"] = cosines[apart == steps].mean().item()
        moved = F.cosine_similarity(model.positions.table.detach()[1:], start[1:])
        result["alike start"] = moved.mean().item()
        examples.append(
            {"alike": [[round(cosine, 2) for cosine in row] for row in cosines.tolist()]}
        )
        name = "vit" if seed == 0 else f"vit_{seed}"
        models[name] = StoredModel.of(model, SIZE)
        if seed == 0:
            cards[name] = model_card(models[name].for_page().network(ViT))
    return {
        "result": result,
        "curves": curves,
        "examples": examples,
        "models": models,
        "cards": cards,
    }


@stored(
    cases=[{"patch_size": size, "epochs": LONGER, "seed": 0} for size in (14, 4)],
    saves={f"vit_patch{size}": {"patch_size": size} for size in (14, 4)},
)
def patches(*, patch_size: int, epochs: int, seed: int) -> dict:
    """Test accuracy of the training of `longer` with other patches; the models are stored for pages."""
    images, _, test = parts()
    model = variant("class token", seed, patch_size=patch_size)
    train(model, images, epochs=epochs, seed=seed)
    name = f"vit_patch{patch_size}"
    stored_model = StoredModel.of(model, SIZE | {"patch_size": patch_size})
    return {
        "result": {"test": accuracy_of(model, test)},
        "models": {name: stored_model},
        "cards": {name: model_card(stored_model.for_page().network(ViT))},
    }


@stored(
    cases=[
        {"name": name, "images": images, "budget": budget, "seed": seed}
        for budget in ("epochs", "steps")
        for images in IMAGES
        for name in RATES
        for seed in SEEDS
    ],
)
def amount(*, name: str, images: int, budget: str, seed: int) -> dict:
    """Test accuracy after learning from so many pictures: 5 epochs, or 400 steps, for both networks alike."""
    learned, _, test = parts()
    some = learned if images == len(learned) else learned.take(images, seed=seed)
    model = network(name, seed)
    budgets = {"epochs": {"epochs": LONGER}, "steps": {"steps": STEPS}}
    steps = train(model, some, **budgets[budget], lr=RATES[name], seed=seed)
    return {"result": {"test": accuracy_of(model, test), "steps": steps}}


class ZeroOutput(torch.nn.Module):
    """A stand-in for a sublayer that adds nothing to the residual stream."""

    def forward(self, x: torch.Tensor, *rest, **options) -> torch.Tensor:
        """(…, d) → zeros of the same shape."""
        return torch.zeros_like(x)


def without_attention(model: torch.nn.Module) -> torch.nn.Module:
    """The same model, whose attention sublayers are ablated in place: they add zeros."""
    for layer in model.layers:
        layer.attention = ZeroOutput()
    return model


def baseline(name: str, seed: int) -> torch.nn.Module:
    """An untrained network that a ViT has to beat: "linear", with one "hidden layer", or a ViT without attention."""
    torch.manual_seed(seed)
    if name == "linear":
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    if name == "hidden layer":
        layers = torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        return torch.nn.Sequential(torch.nn.Flatten(), *layers)
    return without_attention(variant("mean of the patches", seed))


@stored(
    cases=[{"name": name} for name in ("linear", "hidden layer", "no attention", "ViT")],
    rates=TRIED[:4],
    seeds=SEEDS,
    chapter=["ViT", "epochs", "train"],
)
def rivals(chapter: SimpleNamespace, *, name: str, rate: float, seed: int) -> dict:
    """Five epochs at four rates, for the chapter's ViT and for networks without attention."""
    return _train_and_score(chapter, name, epochs=LONGER, rate=rate, seed=seed)


@stored(
    cases=[{"name": name, "epochs": 3 * LONGER} for name in ("no attention", "ViT")],
    rates=TRIED[:3],
    seeds=SEEDS,
    chapter=["ViT", "epochs", "train"],
)
def rivals_later(
    chapter: SimpleNamespace, *, name: str, epochs: int, rate: float, seed: int
) -> dict:
    """Fifteen epochs at three rates, for the chapter's ViT with and without attention."""
    return _train_and_score(chapter, name, epochs=epochs, rate=rate, seed=seed)


def _train_and_score(
    chapter: SimpleNamespace, name: str, *, epochs: int, rate: float, seed: int
) -> dict:
    """The accuracies of the chapter's ViT, or of a `baseline`, after some epochs of its training."""
    images, validation, test = parts()
    torch.manual_seed(seed)
    model = chapter.ViT() if name == "ViT" else baseline(name, seed)
    steps = epochs * math.ceil(len(images) / BATCH)
    chapter.train(model, chapter.epochs(images, seed), steps, rate)
    return {
        "result": {"validation": accuracy_of(model, validation), "test": accuracy_of(model, test)}
    }


class ByHiddenLayer(torch.nn.Sequential):
    """A network with one hidden layer that reads a board as one row of pixels, and scores the places of each twin."""

    def __init__(self):
        layers = torch.nn.Linear(3136, 64), torch.nn.ReLU(), torch.nn.Linear(64, 256)
        super().__init__(torch.nn.Flatten(), *layers, torch.nn.Unflatten(1, (16, 16)))

    def forward(self, boards: torch.Tensor) -> torch.Tensor:
        """(batch, 1, 56, 56) → (batch, 16, 16), cards and places of their twins."""
        return super().forward(boards).masked_fill(torch.eye(16, dtype=torch.bool), -torch.inf)


@stored(
    cases=[{"kind": kind} for kind in ("attention", "no attention", "hidden layer")],
    rates=TRIED[:3],
    seeds=SEEDS,
    chapter=["Memory", "train"],
    saves={"memory": {"kind": "attention", "rate": 3e-3, "seed": 0}},
)
def memory_game(chapter: SimpleNamespace, *, kind: str, rate: float, seed: int) -> dict:
    """Share of the cards whose twin is found after 1,500 steps of 32 boards, also if it may not be looked at."""
    images, validation, test = parts()
    torch.manual_seed(seed)
    model = ByHiddenLayer() if kind == "hidden layer" else chapter.Memory()
    model = without_attention(model) if kind == "no attention" else model
    chapter.train(model, memory.deals(images, 32, seed), 1500, rate)
    (held_out, places), (boards, twins) = (memory.deal(part, 500, 0) for part in (validation, test))
    with torch.no_grad():
        right = {
            "validation": (model(held_out).argmax(-1) == places).float().mean().item(),
            "test": (model(boards).argmax(-1) == twins).float().mean().item(),
        }
        if kind == "attention":
            blind = model(boards, memory.without_twins(twins)).argmax(-1)
            right["forbidden"] = (blind == twins).float().mean().item()
    outcome: dict[str, dict] = {"result": right}
    if (kind, rate, seed) == ("attention", 3e-3, 0):
        stored_model = StoredModel.of(model, MEMORY)
        outcome["models"] = {"memory": stored_model}
        outcome["cards"] = {"memory": memory_card(stored_model.for_page().network(ViT))}
    return outcome


class RowsAndColumns(torch.nn.Module):
    """Learned positions in two dimensions: a place has the vector of its row plus that of its column."""

    def __init__(self, rows: int, columns: int, embed_dim: int):
        super().__init__()
        self.rows = torch.nn.Parameter(0.3 * torch.randn(rows, 1, embed_dim))
        self.columns = torch.nn.Parameter(0.3 * torch.randn(1, columns, embed_dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 1 + rows · columns, embed_dim) → the same shape; the class token has no place."""
        places = (self.rows + self.columns).flatten(0, 1)
        return x + torch.nn.functional.pad(places, (0, 0, 1, 0))


@stored(cases=[{"seed": seed} for seed in SEEDS])
def two_dimensions(*, seed: int) -> dict:
    """Five epochs, as `longer`, with a vector for each row and one for each column."""
    images, _, test = parts()
    model = variant("class token", seed)
    model.positions = RowsAndColumns(*model.grid, SIZE["embed_dim"])
    train(model, images, epochs=LONGER, seed=seed)
    return {"result": {"test": accuracy_of(model, test)}}


@stored(cases=[{"row": row} for row, _ in GARMENTS.values()])
def fewest(*, row: int) -> dict:
    """The fewest patches of a test picture that the stored ViT has to lose until it says another class.

    The example has them, as the surest of all choices of so many.
    """
    network = load_model("vit").for_page().network(ViT)
    image = scaled(load_fashion_mnist("test").images[row : row + 1])
    wanted = dict(GARMENTS.values())[row]
    number, ways, patches = forbidding.fewest(network, image, FASHION.index(wanted))
    result = {"fewest": number, "ways": ways, "choices": math.comb(16, number)}
    return {"result": result, "examples": [{"patches": patches}]}


@stored(
    cases=[
        {"name": name, "images": images, "lr": 1e-2, "seed": seed}
        for images in IMAGES
        for name in ("linear", "hidden layer")
        for seed in SEEDS
    ],
)
def rivals_by_amount(*, name: str, images: int, lr: float, seed: int) -> dict:
    """Test accuracy after 400 steps with so many pictures, for networks that know nothing of neighbors."""
    learned, _, test = parts()
    some = learned if images == len(learned) else learned.take(images, seed=seed)
    model = baseline(name, seed)
    train(model, some, steps=STEPS, lr=lr, seed=seed)
    return {"result": {"test": accuracy_of(model, test)}}


# What a page tells of a stored vision transformer -------------------------------------------------

RIGHT, WRONG = ("Ankle boot", "Trouser"), "Shirt"
"""Classes of which an example that the model names right is shown, and one that it does not."""


@torch.no_grad()
def model_card(model: ViT) -> dict:
    """`examples`: pixels, what they show, what the model says. `score`: how many of how many are right. `answers`.

    `model` has the weights that a page computes with.
    """
    test = load_fashion_mnist("test")
    logits = torch.cat([model(scaled(batch)) for batch in test.images.split(500)])
    predicted = logits.argmax(dim=1)
    good = predicted == test.labels
    kinds = [(test.labels == FASHION.index(kind)) & good for kind in RIGHT]
    kinds.append((test.labels == FASHION.index(WRONG)) & ~good)
    rows = [int(kind.nonzero()[0]) for kind in kinds]
    examples = [
        {
            "pixels": base64.b64encode(test.images[row].numpy().tobytes()).decode("ascii"),
            "right": FASHION[test.labels[row]],
            "said": FASHION[predicted[row]],
        }
        for row in rows
    ]
    answers = [[round(logit, 6) for logit in logits[row].tolist()] for row in rows]
    score = [int(good.sum()), len(good)]
    return {"kinds": list(FASHION), "examples": examples, "score": score, "answers": answers}


@torch.no_grad()
def memory_card(model: ViT) -> dict:
    """`boards` of test pictures, with the place of each card's twin; `first`: the card that is pressed first.

    `answers`: the scores of this card on each board.
    """
    first = 8
    boards, twins = memory.deal(parts()[2], 3, seed=4)
    pixels = ((boards + 1) * 127.5).round().to(torch.uint8)
    deals = [
        {"picture": bitmap(board[0]), "twins": places}
        for board, places in zip(pixels, twins.tolist(), strict=True)
    ]
    scores = model.output(model.tokens(scaled(pixels))[:, first + 1])
    answers = [[round(score, 6) for score in row] for row in scores.tolist()]
    return {"boards": deals, "first": first, "answers": answers}
