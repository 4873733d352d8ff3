"""The trainings of *The Transformer* that are made beforehand: `make runs CHAPTER=10`."""

from course_utils.decoding import translate
from course_utils.lessons.live import save_model
from course_utils.lessons.runs import stored
from course_utils.metrics import bleu


@stored(
    cases=[{"seed": seed} for seed in range(3)],
    chapter=["new_transformer", "fit", "test", "asked", "source_vocab", "target_vocab"],
    data=["translation/grammar_fr.tsv", "translation/sentences.tsv"],
    small=True,
)
def translator(chapter, *, seed: int) -> dict:
    """The chapter's English–French Transformer; the one of seed 0 is the live model."""
    model = chapter.new_transformer(seed)
    history = chapter.fit(model, seed)
    vocabularies = chapter.source_vocab, chapter.target_vocab

    def said(pairs) -> list[str]:
        return translate(model, [" ".join(pair.source) for pair in pairs], *vocabularies)

    def targets(pairs) -> list[str]:
        return [" ".join(pair.target) for pair in pairs]

    if seed == 0:
        config = {
            "source_size": len(vocabularies[0]), "target_size": len(vocabularies[1]),
            "embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "norm_first": True,
        }  # fmt: skip
        tokens = {"source": vocabularies[0].tokens, "target": vocabularies[1].tokens}
        save_model("translator_fr", model, config, tokens)
    exact = sum(a == b for a, b in zip(said(chapter.asked), targets(chapter.asked), strict=True))
    rows = history.rows
    return {
        "result": {
            "bleu": round(bleu(said(chapter.test), targets(chapter.test)), 4),
            "exact": exact / len(chapter.asked),
            "val_loss": round(rows[-1]["val_loss"], 4),
        },
        "curves": {
            name: [[row["step"], round(row[name], 4)] for row in rows]
            for name in ("train_loss", "val_loss")
        },
    }
