"""*Bahdanau attention*'s translator for three seeds: alignment error rate, BLEU, the four sentences, seconds.

    python -m benchmarks.alignment [SEED …]

The recipe is the chapter's own; it was chosen on validation sentences, and is scored on test sentences.
"""

import sys
import time

import torch

import course_utils as cu
from course_utils.lessons.bahdanau_attention.links import alignment_error_rate, links_both_ways
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, SmallWorld, small_world
from course_utils.lessons.sequence_to_sequence.word_maps import word_maps

EPOCHS = 9


def train(world: SmallWorld, seed: int) -> cu.AttentionTranslator:
    """The chapter's network with attention."""
    cu.seed_everything(seed)
    model = cu.AttentionTranslator(
        len(world.source_vocab), len(world.target_vocab), embed_dim=64, hidden_dim=96
    )
    loader = world.loader(world.train, seed=seed)
    schedule = cu.warmup_decay(50, EPOCHS * len(loader))
    trainer = cu.Trainer(
        cu.translation_loss(), epochs=EPOCHS, lr=6e-3, schedule=schedule, seed=seed
    )
    trainer.fit(model, loader)
    return model


def measure(world: SmallWorld, seed: int) -> dict:
    """Scores on the test sentences, and how many of the four are translated exactly."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = train(world, seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    vocabularies = world.source_vocab, world.target_vocab
    maps = word_maps(model, world.test, *vocabularies)
    found = [links_both_ways(words) for words in maps]
    said = cu.translate(
        model, [" ".join(pair.source) for pair in world.test], *vocabularies, max_len=20
    )
    four = cu.translate(model, FOUR, *vocabularies, max_len=20)
    return {
        "seed": seed,
        "aer": alignment_error_rate(found, [pair.alignment for pair in world.test]),
        "bleu": cu.bleu(said, [" ".join(pair.target) for pair in world.test]),
        "four": sum(
            answer in world.references[one] for one, answer in zip(FOUR, four, strict=True)
        ),
        "seconds": wall,
        "cpu_seconds": cpu,
        "threads": torch.get_num_threads(),
    }


if __name__ == "__main__":
    chosen = [int(seed) for seed in sys.argv[1:]] or [0, 1, 2]
    small = small_world("fr")
    for row in (measure(small, seed) for seed in chosen):
        print({name: round(value, 3) for name, value in row.items()})
