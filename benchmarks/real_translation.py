"""A Transformer on real sentences: English → French from Tatoeba, and its BLEU on sources never trained on.

    python benchmarks/real_translation.py [--time-limit 600] [--json FILE]

Pairs of at most ten tokens; 40,000 to train on; 500 source sentences for choices (`--validate` scores these) and 500
for the test, with all their translations kept out of training. Each is scored once, lower-cased, against the first
of its own translations in the archive. The recipe stands in `course_utils/lessons/translating/real.py`. The archive
comes through the registry: see data/README.md.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import course_utils as cu  # noqa: E402
from course_utils.data.translation import Pair, PairLoader, load_tatoeba  # noqa: E402
from course_utils.lessons.translating import real  # noqa: E402

SAMPLES = 5


class UntilTime:
    """Hands a loader's batches on; when the time is over, it interrupts as Ctrl-C would.

    The trainer then ends after its current step, with model and history intact.
    """

    def __init__(self, batches, seconds: float):
        self.batches, self.end = batches, time.monotonic() + seconds

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self):
        for batch in self.batches:
            if time.monotonic() > self.end:
                signal.raise_signal(signal.SIGINT)
            yield batch


def train(data: real.Split, *, epochs: int, time_limit: float, seed: int):
    """A trained model, its vocabularies and its history."""
    source_vocab, target_vocab = real.vocabularies_of(data.train, "words")
    model = real.new_transformer((source_vocab, target_vocab), seed)
    loader = PairLoader(data.train, source_vocab, target_vocab, batch_size=real.BATCH, seed=seed)
    check = PairLoader(data.validation, source_vocab, target_vocab, shuffle=False)
    steps = epochs * len(loader)
    trainer = cu.Trainer(
        cu.translation_loss(label_smoothing=real.LABEL_SMOOTHING),
        epochs=epochs,
        lr=real.RATE,
        schedule=cu.warmup_decay(steps // 8, steps),
        measure=lambda model: print(f"  CPU {time.process_time():.0f} s", file=sys.stderr) or {},
        seed=seed,
        device="cpu",
    )
    history = trainer.fit(model, UntilTime(loader, time_limit), check)
    real.forbid_unknown(model)
    return model, source_vocab, target_vocab, history


def score(model, source_vocab, target_vocab, pairs: list[Pair], *, beam_size: int):
    """BLEU in percent, and the translations."""
    sources = [" ".join(pair.source) for pair in pairs]
    said = cu.translate(
        model, sources, source_vocab, target_vocab, beam_size=beam_size, max_len=2 * real.MAX_TOKENS
    )
    return 100 * cu.bleu(said, [" ".join(pair.target) for pair in pairs]), said


def main(arguments: list[str] | None = None) -> dict:
    """Train, score, print; returns what `--json` writes."""
    options = parsed(arguments)
    torch.set_num_threads(options.threads)
    pairs = load_tatoeba("fr", max_tokens=real.MAX_TOKENS)
    data = real.split(
        pairs, num_train=options.pairs, num_held_out=options.held_out, seed=options.seed
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model, source_vocab, target_vocab, history = train(
        data, epochs=options.epochs, time_limit=options.time_limit, seed=options.seed
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    scored = data.validation if options.validate else data.test
    vocabularies = (source_vocab, target_vocab)
    bleu, said = score(model, *vocabularies, scored, beam_size=options.beam)
    result = {
        "bleu": round(bleu, 1),
        "scored": "validation" if options.validate else "test",
        "bleu_greedy": round(score(model, *vocabularies, scored, beam_size=1)[0], 1),
        "train_pairs": len(data.train),
        "held_out_sources": len(scored),
        "vocabularies": [len(source_vocab), len(target_vocab)],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": len(history),
        "stopped": "time limit" if history.stopped == "interrupted" else history.stopped,
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
        "threads": options.threads,
        "losses": [
            [round(row["train_loss"], 3), round(row["val_loss"], 3)] for row in history.rows
        ],
        "torch": torch.__version__,
    }
    for pair, translation in list(zip(scored, said, strict=True))[:SAMPLES]:
        print(f"  {' '.join(pair.source)}\n    said:      {translation}")
        print(f"    reference: {' '.join(pair.target)}")
    print(
        f"BLEU {bleu:.1f} ({result['bleu_greedy']} greedily) on {len(scored)} held-out sources "
        f"({result['scored']}), {result['epochs']} epochs, {result['stopped']}: {wall:.0f} s, "
        f"{cpu:.0f} s of CPU, {options.threads} threads"
    )
    text = json.dumps(result)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.save:
        torch.save(model.state_dict(), options.save)
    return result


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=real.TRAIN, help="training pairs")
    parser.add_argument(
        "--held-out", type=int, default=real.HELD_OUT, help="held-out sources, twice"
    )
    parser.add_argument("--epochs", type=int, default=real.EPOCHS)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--time-limit", type=float, default=600, metavar="SECONDS", help="of training"
    )
    parser.add_argument("--validate", action="store_true", help="score the validation sources")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the weights there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
