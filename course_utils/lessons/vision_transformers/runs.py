"""The trainings of *Vision transformers* that are made beforehand: `make runs CHAPTER=15`."""

import base64

import torch
from torch.nn import functional as F

from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.kit.live import network_of, packed, save_model, write_card
from course_utils.kit.runs import stored
from course_utils.lessons.vision_transformers.real import clothes as clothes
from course_utils.lessons.vision_transformers.real import enlarged_fashion as enlarged_fashion
from course_utils.lessons.vision_transformers.real import photographs as photographs
from course_utils.lessons.vision_transformers.real import (
    recompressed_cifar10 as recompressed_cifar10,
)
from course_utils.lessons.vision_transformers.real import whole_fashion as whole_fashion
from course_utils.lessons.vision_transformers.training import (
    SIZE,
    SmallCNN,
    alike,
    distances,
    parts,
    share_right,
    train,
    variant,
)
from course_utils.models.vision import ViT

SEEDS = (0, 1, 2)
EPOCHS, LONGER, STEPS = 3, 5, 400  # on the page; of the comparisons
KINDS = ("class token", "mean of the patches", "positions 0.02", "no positions")
IMAGES = (500, 1000, 2500, 9000)
TRIED = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
RATES = {"ViT": 3e-3, "CNN": 3e-2}  # the best of `rates`
DATA = [
    f"fashion_mnist/{name}.gz"
    for name in (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
]


def network(name: str, seed: int) -> torch.nn.Module:
    """The chapter's ViT or the small convolutional network, untrained."""
    if name == "ViT":
        return variant("class token", seed)
    torch.manual_seed(seed)
    return SmallCNN(dropout=0.0)


@stored(
    cases=[{"name": name, "lr": lr, "seed": 0} for name in RATES for lr in TRIED],
    data=DATA,
    small=True,
)
def rates(*, name: str, lr: float, seed: int) -> dict:
    """Share of the validation pictures that are right after a short training at this rate."""
    images, validation, _ = parts()
    model = network(name, seed)
    train(model, images, epochs=EPOCHS, lr=lr, seed=seed)
    return {"result": {"validation": round(share_right(model, validation), 4)}}


@stored(cases=[{"epochs": EPOCHS, "seed": seed} for seed in SEEDS], data=DATA)
def short(*, epochs: int, seed: int) -> dict:
    """The training of the page, with each seed."""
    images, validation, test = parts()
    model = variant("class token", seed)
    curves: dict[str, list] = {"loss": [], "validation": []}

    def watch(epoch: int, loss: float) -> None:
        curves["loss"].append([epoch, round(loss, 4)])
        curves["validation"].append([epoch, round(share_right(model, validation), 4)])

    train(model, images, epochs=epochs, seed=seed, after_epoch=watch)
    return {"result": {"test": round(share_right(model, test), 4)}, "curves": curves}


@stored(
    cases=[{"kind": kind, "epochs": LONGER, "seed": seed} for kind in KINDS for seed in SEEDS],
    data=DATA,
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
        curves["validation"].append([epoch, round(share_right(model, validation), 4)])

    train(model, images, epochs=epochs, seed=seed, after_epoch=watch)
    result, examples = {"test": share_right(model, test)}, []
    if kind in ("class token", "positions 0.02"):
        cosines, apart = alike(model), distances(*model.grid)
        for steps in (1, 2, 3):
            result[f"alike {steps}"] = cosines[apart == steps].mean().item()
        moved = F.cosine_similarity(model.positions.table.detach()[1:], start[1:])
        result["alike start"] = moved.mean().item()
        examples.append(
            {"alike": [[round(cosine, 2) for cosine in row] for row in cosines.tolist()]}
        )
    if kind == "class token":
        save_model("vit" if seed == 0 else f"vit_{seed}", model, SIZE)
    if kind == "class token" and seed == 0:
        write_card("vit", **model_card("vit"))
    result = {name: round(value, 4) for name, value in result.items()}
    return {"result": result, "curves": curves, "examples": examples}


@stored(cases=[{"patch_size": size, "epochs": LONGER, "seed": 0} for size in (14, 4)], data=DATA)
def patches(*, patch_size: int, epochs: int, seed: int) -> dict:
    """The same training with larger and with smaller patches, once; stored for the explorer."""
    images, _, test = parts()
    model = variant("class token", seed, patch_size=patch_size)
    train(model, images, epochs=epochs, seed=seed)
    name = f"vit_patch{patch_size}"
    save_model(name, model, SIZE | {"patch_size": patch_size})
    write_card(name, **model_card(name))
    return {"result": {"test": round(share_right(model, test), 4)}}


@stored(
    cases=[
        {"name": name, "images": images, "budget": budget, "seed": seed}
        for budget in ("epochs", "steps")
        for images in IMAGES
        for name in RATES
        for seed in SEEDS
    ],
    data=DATA,
)
def amount(*, name: str, images: int, budget: str, seed: int) -> dict:
    """Test accuracy after learning from so many pictures: 5 epochs, or 400 steps, for both networks alike."""
    learned, _, test = parts()
    some = learned if images == len(learned) else learned.take(images, seed=seed)
    model = network(name, seed)
    budgets = {"epochs": {"epochs": LONGER}, "steps": {"steps": STEPS}}
    steps = train(model, some, **budgets[budget], lr=RATES[name], seed=seed)
    return {"result": {"test": round(share_right(model, test), 4), "steps": steps}}


class Nothing(torch.nn.Module):
    """An attention sublayer that adds nothing."""

    def forward(self, queries, *rest, **options):
        """(…, d) → zeros of the same shape."""
        return torch.zeros_like(queries)


def rival(name: str, seed: int) -> torch.nn.Module:
    """What a ViT has to beat: a linear classifier, one hidden layer, and itself without attention."""
    torch.manual_seed(seed)
    if name == "linear":
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    if name == "hidden layer":
        layers = torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        return torch.nn.Sequential(torch.nn.Flatten(), *layers)
    model = variant("mean of the patches", seed)
    for layer in model.layers:
        layer.attention = Nothing()
    return model


@stored(
    cases=[
        {"name": name, "lr": lr, "seed": seed}
        for name in ("linear", "hidden layer", "no attention")
        for lr in TRIED[:3]
        for seed in SEEDS
    ],
    data=DATA,
)
def rivals(*, name: str, lr: float, seed: int) -> dict:
    """Five epochs, as `longer`, for networks without attention, at three rates."""
    images, validation, test = parts()
    model = rival(name, seed)
    train(model, images, epochs=LONGER, lr=lr, seed=seed)
    right = {"validation": share_right(model, validation), "test": share_right(model, test)}
    return {"result": {key: round(value, 4) for key, value in right.items()}}


@stored(
    cases=[
        {"name": name, "images": images, "lr": 1e-2, "seed": seed}
        for images in IMAGES
        for name in ("linear", "hidden layer")
        for seed in SEEDS
    ],
    data=DATA,
)
def rivals_by_amount(*, name: str, images: int, lr: float, seed: int) -> dict:
    """Test accuracy after 400 steps with so many pictures, for networks that know nothing of neighbors."""
    learned, _, test = parts()
    some = learned if images == len(learned) else learned.take(images, seed=seed)
    model = rival(name, seed)
    train(model, some, steps=STEPS, lr=lr, seed=seed)
    return {"result": {"test": round(share_right(model, test), 4)}}


# What a page tells of a stored vision transformer -------------------------------------------------

RIGHT, WRONG = ("Ankle boot", "Trouser"), "Shirt"
"""Kinds of the examples."""


@torch.no_grad()
def model_card(name: str) -> dict:
    """`examples`: pixels, what they show, what the model says. `score`: how many of how many are right. `answers`."""
    model, test = network_of(ViT, packed(name)), load_fashion_mnist("test")
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
