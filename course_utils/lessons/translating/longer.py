"""The recurrent translator with dropout and twice the chapter's epochs."""

from course_utils.decoding import translate
from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.small_world import small_world
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

EPOCHS, RATE, DROPOUT = 18, 0.009, 0.2


@stored(seeds=range(3), data=["translation/grammar_fr.tsv", "translation/sentences.tsv"])
def recurrent_for_longer(*, seed: int) -> dict:
    """Losses, and BLEU and the shares of exact translations of the test sentences."""
    world = small_world("fr")
    vocabularies, test = (world.source_vocab, world.target_vocab), world.test
    seed_everything(seed)
    model = AttentionTranslator(
        *map(len, vocabularies), embed_dim=64, hidden_dim=64, dropout=DROPOUT
    )
    loader = world.loader(world.train, seed=seed)
    schedule = warmup_decay(50, EPOCHS * len(loader))
    trainer = Trainer(
        translation_loss(), epochs=EPOCHS, lr=RATE, schedule=schedule, seed=seed, quiet=True
    )
    rows = trainer.fit(model, loader, world.loader(world.val, shuffle=False)).rows
    said = translate(model, [" ".join(p.source) for p in test], *vocabularies, max_len=20)
    right = [" ".join(pair.target) for pair in test]
    hits = [a == b for a, b in zip(said, right, strict=True)]
    result = {
        "parameters": sum(one.numel() for one in model.parameters()),
        "train_loss": rows[-1]["train_loss"],
        "val_loss": rows[-1]["val_loss"],
        "bleu": bleu(said, right),
        "exact": sum(hits) / len(hits),
    }
    for name, (low, high) in {"exact_5": (4, 5), "exact_10": (8, 10)}.items():
        group = [hit for hit, p in zip(hits, test, strict=True) if low <= len(p.source) <= high]
        result[name] = sum(group) / len(group)
    return {
        "result": {name: round(float(value), 4) for name, value in result.items()},
        "curves": {"val_loss": [[row["epoch"], round(row["val_loss"], 4)] for row in rows]},
    }
