"""Make runs.json: the trainings of *Training transformers* that take too long for a notebook.

    OMP_NUM_THREADS=1 python data/training_runs/build_runs.py

About a quarter of a minute of one core per run, and some fifty runs. What is in the file is not run
again, so the script may be stopped and started; delete the file to begin anew. On another processor
the last digits differ.
"""

import itertools
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import course_utils as cu
from course_utils.lessons.training_transformers.shortcuts import SHORTCUTS, take_shortcut
from course_utils.lessons.training_transformers.training_runs import small_spanish
from course_utils.runtime import atomic_write, evaluating

RUNS = Path(__file__).with_name("runs.json")

MODEL = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 128, "num_layers": 4, "dropout": 0.0}
STEPS, BATCH = 280, 64
EVERY = 14  # steps per point of the loss curve
CHAPTER = {
    "norm_first": False, "lr": 7e-3, "warmup": 50, "seed": 0,
    "label_smoothing": 0.0, "sentences": 3549, "shortcut": "",
}  # fmt: skip


def wanted() -> list[dict]:
    """What to run, the most important first."""
    runs = []
    for seed, (norm_first, warmup) in itertools.product(
        (0, 1, 2), ((False, 0), (False, 50), (True, 0), (True, 50))
    ):
        runs.append({"norm_first": norm_first, "warmup": warmup, "seed": seed})
    for sentences, seed in itertools.product((300, 1000), (0, 1, 2)):
        runs.append({"sentences": sentences, "seed": seed})
    runs += [{"label_smoothing": 0.1, "seed": seed} for seed in (0, 1, 2)]
    for seed, shortcut in itertools.product((0, 1, 2), SHORTCUTS):
        runs.append({"shortcut": shortcut, "seed": seed})
    for warmup, lr, norm_first in itertools.product(
        (0, 50, 10, 100), (1.75e-3, 3.5e-3, 7e-3, 1.4e-2), (False, True)
    ):
        runs.append({"norm_first": norm_first, "lr": lr, "warmup": warmup})
    distinct = []
    for run in ({**CHAPTER, **run} for run in runs):
        if run not in distinct:
            distinct.append(run)
    return distinct


def schedule(warmup: int):
    """`cu.inverse_sqrt(warmup)`; below 50 steps the fall begins at step 50, as with 50 steps."""
    fall = max(warmup, 50)
    return lambda step: min(1.0, step / max(warmup, 1), (fall / step) ** 0.5)


def train(run: dict) -> dict:
    """One run: what was chosen, the curves, and the scores at the end."""
    train_pairs, _val, test = small_spanish()
    train_pairs = train_pairs[: run["sentences"]]
    vocabularies = [
        cu.Vocabulary(getattr(pair, side) for pair in small_spanish()[0])
        for side in ("source", "target")
    ]
    loader = cu.PairLoader(train_pairs, *vocabularies, batch_size=BATCH, seed=run["seed"])
    cu.seed_everything(run["seed"])
    model = cu.Transformer(*map(len, vocabularies), norm_first=run["norm_first"], **MODEL)
    if run["shortcut"]:
        take_shortcut(model, run["shortcut"])
    loss, losses = cu.translation_loss(label_smoothing=run["label_smoothing"]), []

    def noted(model, batch):
        total, count = loss(model, batch)
        losses.append(total.item() / count)
        return total, count

    def score(pairs) -> float:
        said = cu.translate(model, [" ".join(p.source) for p in pairs], *vocabularies, max_len=14)
        return cu.bleu(said, [" ".join(p.target) for p in pairs])

    whole = len(loader) * 5 >= STEPS  # few sentences: more passes, the same number of steps
    epochs = STEPS // len(loader)
    trainer = cu.Trainer(
        noted, epochs=epochs, lr=run["lr"], schedule=schedule(run["warmup"]), seed=run["seed"],
        measure=lambda model: {"bleu": score(test)} if whole else {},
    )  # fmt: skip
    history = trainer.fit(model, loader)
    parts = [losses[start : start + EVERY] for start in range(0, len(losses), EVERY)]
    curve = [
        {
            name: round(row[name], 4)
            for name in ("epoch", "step", "grad_norm", "bleu")
            if name in row
        }
        for row in history.rows
    ]
    return {
        **run,
        "curve": curve if whole else curve[-1:],
        "losses": [round(sum(part) / len(part), 4) for part in parts],
        "train_bleu": round(score(train_pairs[:200]), 4),
        "bleu": round(score(test), 4),
        **held_out(model, cu.PairLoader(test, *vocabularies, shuffle=False)),
    }


@torch.no_grad()
def held_out(model, batches) -> dict[str, float]:
    """On real held-out tokens: surprise, mean largest probability, share of right guesses."""
    nll = confidence = accuracy = count = 0
    with evaluating(model):
        for batch in batches:
            logits = model(batch.source, batch.source_lens, batch.target_in)
            real = torch.arange(batch.target_out.shape[1]) < batch.target_lens[:, None]
            log_p, right = logits[real].log_softmax(dim=-1), batch.target_out[real]
            nll -= log_p.gather(1, right[:, None]).sum().item()
            confidence += log_p.amax(dim=-1).exp().sum().item()
            accuracy += (log_p.argmax(dim=-1) == right).sum().item()
            count += len(right)
    sums = {"nll": nll, "confidence": confidence, "accuracy": accuracy}
    return {name: round(value / count, 4) for name, value in sums.items()}


def write(runs: list[dict]) -> None:
    """Replace the file by a whole one: a run on each line."""
    about = {
        "about": "Trainings of *Training transformers*, made by build_runs.py. CC BY 4.0, the course team.",
        "model": MODEL,
        "batch_size": BATCH,
        "steps_per_loss": EVERY,
    }
    head = json.dumps(about, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(run) for run in runs)
    with atomic_write(RUNS) as part:
        part.write_text(f'{head},\n "runs": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def main() -> None:
    torch.set_num_threads(1)
    done = json.loads(RUNS.read_text(encoding="utf-8"))["runs"] if RUNS.exists() else []
    for run in wanted():
        if not any(all(old[name] == value for name, value in run.items()) for old in done):
            done.append(train(run))
            write(done)
            print({**run, "bleu": done[-1]["bleu"]}, flush=True)


if __name__ == "__main__":
    main()
