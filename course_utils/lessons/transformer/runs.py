"""The stored runs of *The Transformer*: the chapter's classes in training, and what a larger translator's parts add."""

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
LOSSES = ("train_loss", "val_loss")


@stored(
    cases=[
        {"kind": kind, "large_rows": large, "seed": seed}
        for kind, large in (("Transformer", False), ("Transformer", True), ("WholeTransformer", False))
        for seed in SEEDS
    ],
    chapter=["Transformer", "WholeTransformer"],
)  # fmt: skip
def own_class(chapter, *, kind: str, large_rows: bool, seed: int) -> dict:
    """Losses of one of the chapter's two classes, and how far they are from the library's class.

    Both begin with the same weights, and see the same batches.

    Args:
        kind: the name of the class, "Transformer" or "WholeTransformer".
        large_rows: whether the embeddings begin as PyTorch draws them, without the chapter's two lines.
        seed: of the weights and of the order of the sentences.
    """
    model = first_epochs.new_model(getattr(chapter, kind), seed)
    if large_rows:
        first_epochs.draw_large_rows(model)
    package = first_epochs.in_package(model)
    rows = first_epochs.train(model, seed).rows
    rows_of_package = first_epochs.train(package, seed).rows
    differences = [
        abs(row[name] - other[name])
        for row, other in zip(rows, rows_of_package, strict=True)
        for name in LOSSES
    ]
    result = {name: rows[-1][name] for name in LOSSES}
    result["exact"] = first_epochs.exactly_right(model)
    result["largest difference from the package"] = max(differences)
    return {"result": result, "curves": curves_of(rows, *LOSSES)}


@stored(
    cases=[
        {"rows": rows, "positions": positions, "parts": parts, "rate": rate, "seed": seed}
        for rows, positions, parts, rates in (
            ("small", 1, 1, (0.0035, 0.02)),  # `own_class` has 0.007
            ("large", 1, 1, (0.02, 0.05)),  # `own_class` has 0.007
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
    """Losses of the chapter's class when embeddings, positions or the outputs of the sublayers have another size.

    Large embeddings learn less. The run tells whether that is because they drown the positions, or the sublayers.

    Args:
        rows: "small" for embeddings as the chapter draws them, "large" for PyTorch's.
        positions: the factor of the positions; 0 ablates them.
        parts: the factor of what each attention and network adds.
        rate: the learning rate.
        seed: of the weights and of the order of the sentences.
    """
    model = first_epochs.new_model(chapter.Transformer, seed)
    if rows == "large":
        first_epochs.draw_large_rows(model)
    first_epochs.scale_positions(model, positions)
    bar = first_epochs.mean_relative_size(model)
    first_epochs.scale_sublayers(model, parts)
    epochs = first_epochs.train(model, seed, rate=rate).rows
    result = {name: epochs[-1][name] for name in LOSSES}
    if parts == 1:
        result["bar at the start"] = bar
    return {"result": result, "curves": curves_of(epochs, "val_loss")}


@stored(cases=[{"sentences": 200}])
def everyday_worth(*, sentences: int) -> dict:
    """Results of `machine.measure_parts` for the translator of everyday sentences, and the BLEU lost without networks.

    Args:
        sentences: number of the course's own sentences of 6 to 10 tokens that are used. The translator was trained on
            them.
    """
    model, pieces = everyday_translator()
    pairs = [p for p in load_sentences("fr") if 6 <= len(p.source) <= 10][:sentences]
    batch = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
    references = [" ".join(p.target) for p in pairs]
    longest = 2 * machine.LONGEST  # pieces
    worth = machine.measure_parts(model, *batch, references, pieces.decode, longest=longest)
    result = {}
    for column in worth:
        for part, value in worth[column].dropna().items():
            result[f"{column}, {part}"] = value

    def translations_bleu() -> float:
        ids = greedy(model, *batch, max_len=longest)
        return bleu([pieces.decode(row) for row in ids], references)

    whole = translations_bleu()
    with intervene(model) as acts:
        acts.ablate("feed_forward")
        rest = translations_bleu()
    return {"result": result | {"lost, all networks": whole - rest, "BLEU": whole}}
