"""The trainings of *The Transformer* that are made beforehand: `make runs CHAPTER=10`."""

from course_utils.data.text import EOS, pad
from course_utils.data.translation import load_sentences
from course_utils.decoding import greedy
from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.translator import everyday_translator
from course_utils.lessons.sequence_to_sequence.translator_training import curves_of
from course_utils.lessons.transformer import first_epochs, machine
from course_utils.metrics import bleu

SEEDS = (0, 1, 2)


@stored(
    cases=[
        {"kind": kind, "large_rows": large, "seed": seed}
        for kind, large in (("Transformer", False), ("Transformer", True), ("WholeTransformer", False))
        for seed in SEEDS
    ],
    chapter=["Transformer", "WholeTransformer"],
)  # fmt: skip
def own_class(chapter, *, kind: str, large_rows: bool, seed: int) -> dict:
    """One of the chapter's two classes in training, and beside it the package's with the same weights at the start.

    Args:
        kind: the class.
        large_rows: the embeddings begin as PyTorch draws them, without the chapter's two lines.
        seed: of the weights and of the order of the sentences.
    """
    model = first_epochs.new_model(getattr(chapter, kind), seed)
    if large_rows:
        first_epochs.with_large_rows(model)
    package = first_epochs.beside(model)
    rows, theirs = first_epochs.train(model, seed).rows, first_epochs.train(package, seed).rows
    losses = "train_loss", "val_loss"
    result = {name: rows[-1][name] for name in losses}
    result["exact"] = first_epochs.exactly_right(model)
    result["largest difference from the package"] = max(
        abs(mine[name] - other[name]) for mine, other in zip(rows, theirs, strict=True) for name in losses
    )  # fmt: skip
    return {"result": result, "curves": curves_of(rows, *losses)}


@stored(
    cases=[
        {"rows": rows, "positions": positions, "parts": parts, "rate": rate, "seed": seed}
        for rows, positions, parts, rates in (
            ("small", 1, 1, (0.0035, 0.02)),  # 0.007 is above
            ("large", 1, 1, (0.02, 0.05)),  # 0.007 is above
            ("small", 0, 1, (0.007,)),
            ("large", 0, 1, (0.007,)),
            ("large", 8, 1, (0.007,)),
            ("large", 1, 8, (0.007,)),
            ("small", 1, 1 / 8, (0.007,)),
        )
        for rate in rates
        for seed in SEEDS
    ],
    chapter=["Transformer"],
)
def rows_and_parts(
    chapter, *, rows: str, positions: float, parts: float, rate: float, seed: int
) -> dict:
    """The chapter's class with small or large embeddings: does it miss the positions, or what its parts add?

    Args:
        rows: "small" as the chapter draws them, "large" as PyTorch does.
        positions: so many times as large as they are; 0 takes them away.
        parts: what each attention and network adds, so many times as large as it is.
        rate: the learning rate.
        seed: of the weights and of the order of the sentences.
    """
    model = first_epochs.new_model(chapter.Transformer, seed)
    if rows == "large":
        first_epochs.with_large_rows(model)
    first_epochs.with_positions(model, positions)
    bar = first_epochs.mean_bar(model)
    first_epochs.with_parts(model, parts)
    epochs = first_epochs.train(model, seed, rate=rate).rows
    result = {name: epochs[-1][name] for name in ("train_loss", "val_loss")}
    if parts == 1:
        result["bar at the start"] = bar
    return {"result": result, "curves": curves_of(epochs, "val_loss")}


@stored(
    cases=[{"sentences": 200}],
)
def everyday_worth(*, sentences: int) -> dict:
    """The course's larger translator: each part's bar, the share of sentences that change without it, the BLEU lost.

    Args:
        sentences: of the course's own, the first ones of 6 to 10 tokens. The translator has read them.
    """
    model, pieces = everyday_translator()
    pairs = [p for p in load_sentences("fr") if 6 <= len(p.source) <= 10][:sentences]
    batch = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
    references = [" ".join(p.target) for p in pairs]
    worth = machine.worth_of(model, *batch, references, pieces.decode, longest=2 * machine.LONGEST)
    with intervene(model) as acts:
        acts.ablate("feed_forward")
        now = greedy(model, *batch, max_len=2 * machine.LONGEST)
    before = greedy(model, *batch, max_len=2 * machine.LONGEST)
    whole, rest = (bleu(list(map(pieces.decode, ids)), references) for ids in (before, now))
    each = {
        f"{column}, {part}": value
        for column in worth
        for part, value in worth[column].dropna().items()
    }
    return {"result": each | {"lost, all networks": whole - rest, "BLEU": whole}}
