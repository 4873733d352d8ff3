"""Translators of `larger_world` for live models: their training with checkpoints, and the cards that pages show.

*Bahdanau attention* stores its translator here, `bahdanau_fr`; *Translating* trains a Transformer in the same way.
"""

from collections.abc import Iterable, Mapping
from operator import eq

import torch
from torch import nn

from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy, translate
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, checkpoints_of, largest_logits
from course_utils.lessons.sequence_to_sequence.small_world import (
    larger_world,
    source_sentences,
    target_sentences,
)
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

# Training -----------------------------------------------------------------------------------------

EARLIER = (0, 100)
"""Steps of a training after which a checkpoint is kept, besides its end."""


def train_with_checkpoints(
    model: nn.Module,
    name: str,
    config: Mapping[str, int],
    *,
    rate: float,
    warmup: int,
    passes: int,
    seed: int,
) -> tuple[dict[str, float], dict[str, StoredModel]]:
    """Train a translator on `larger_world`, and keep what it was after the steps of `EARLIER`.

    Args:
        model: the translator.
        name: its name as a stored model.
        config: the arguments of its class.
        rate: the largest learning rate; it rises for `warmup` steps and falls to 0 at the end of all epochs.
        passes: through the training data.
        seed: of the order of the sentences.

    Returns:
        The result: "steps" in all, "loss", held out, at the end, and "loss, <steps>" of each checkpoint. And the
        checkpoints, `<name>_<steps>` → model.
    """
    world = larger_world()
    loader = world.loader(world.train, seed=seed)
    result: dict[str, float] = {}
    checkpoints: dict[str, StoredModel] = {}

    def keep_checkpoint(model: nn.Module, steps: int) -> None:
        if steps in EARLIER:
            result[f"loss, {steps}"] = held_out_loss(model)
            checkpoints[f"{name}_{steps}"] = StoredModel.of(model, config)

    trainer = Trainer(
        translation_loss(),
        epochs=passes,
        lr=rate,
        schedule=warmup_decay(warmup, passes * len(loader)),
        before_step=keep_checkpoint,
        seed=seed,
        quiet=True,
    )
    trainer.fit(model, loader)
    result |= {"steps": passes * len(loader), "loss": held_out_loss(model)}
    return result, checkpoints


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Cross-entropy per token in nats, on the validation sentences of `larger_world`."""
    world, objective = larger_world(), translation_loss()
    batches = world.loader(world.val, batch_size=128, shuffle=False)
    with evaluating(model):
        sums = [objective(model, batch) for batch in batches]
    return round(sum(loss.item() for loss, _ in sums) / sum(tokens for _, tokens in sums), 4)


def held_out_scores(model: nn.Module) -> dict[str, float]:
    """BLEU and the share of exact translations on the test sentences, and how many of `FOUR` are right."""
    world = larger_world()
    vocabularies, right = (world.source_vocab, world.target_vocab), target_sentences(world.test)
    translations = translate(model, source_sentences(world.test), *vocabularies)
    return {
        "bleu": bleu(translations, right),
        "exact": sum(map(eq, translations, right)) / len(right),
        "four": world.right_of_four(model),
    }


# Cards --------------------------------------------------------------------------------------------

LONG = 5
"""The fewest tokens of a sentence that a card has as an example."""


def model_card(model: nn.Module) -> dict[str, list]:
    """What a page tells of a translator of `larger_world`, about the test sentences.

    `examples` are two sentences that it translates as the grammar does and one that it does not, each with "sentence",
    "said" and "right"; `score` is how many of how many are as in the grammar; `answers` as `answers_of` gives them.

    Args:
        model: the translator, with the weights that a page computes with.
    """
    world = larger_world()
    sentences, right = source_sentences(world.test), target_sentences(world.test)
    translations = translate(model, sentences, world.source_vocab, world.target_vocab)
    good: list[dict[str, str]] = []
    bad: list[dict[str, str]] = []
    for sentence, said, wanted in zip(sentences, translations, right, strict=True):
        if len(sentence.split()) >= LONG:
            example = {"sentence": sentence, "said": said, "right": wanted}
            (good if said == wanted else bad).append(example)
    examples = [*good[:2], *bad[:1]]
    answers = answers_of(model, [example["sentence"] for example in examples])
    score = [sum(map(eq, translations, right)), len(translations)]
    return {"examples": examples, "score": score, "answers": answers}


@torch.no_grad()
def answers_of(
    model: nn.Module, lines: Iterable[str], words: Vocabulary | None = None
) -> list[dict[str, list]]:
    """What a translator computes for some sentences, for a page to compare its own numbers with.

    Args:
        model: the translator.
        lines: English sentences.
        words: English words by id; those of `larger_world` by default.

    Returns:
        For each sentence the ids of its tokens, "source", and of its translation, "said", and the ten largest "logits"
        of the token after the translation, [id, logit] each.
    """
    vocabulary = words or larger_world().source_vocab
    answers: list[dict[str, list]] = []
    for line in lines:
        ids = [*vocabulary.encode(tokenize(line)), EOS]
        source, lens = torch.tensor([ids]), torch.tensor([len(ids)])
        said = greedy(model, source, lens)[0]
        logits = model(source, lens, torch.tensor([[BOS, *said]]))[0, -1]
        answers.append({"source": ids, "said": said, "logits": largest_logits(logits)})
    return answers


def cards_of_checkpoints(
    kind: type[nn.Module], models: Mapping[str, StoredModel], examples: Iterable[Mapping]
) -> dict[str, dict]:
    """The card of each checkpoint: its `answers` to the examples of the trained model's card.

    Args:
        kind: class of the models.
        models: name → checkpoint.
        examples: those of the trained model's card.
    """
    lines = [example["sentence"] for example in examples]
    cards = {}
    for name, model in models.items():
        network = model.for_page().network(kind)
        cards[name] = {"answers": answers_of(network, lines)}
    return cards


# The chapter's translator that looks back, trained on what the stored Transformer has read --------

SHAPE = {"embed_dim": 64, "hidden_dim": 64}
RECIPE = {"rate": 0.009, "warmup": 50, "passes": 9}
"""As in the chapter."""


@stored(cases=[{"seed": 0}], saves={"bahdanau_fr": {}, "bahdanau_fr_0": {}, "bahdanau_fr_100": {}})
def live_translator(*, seed: int) -> dict[str, dict]:
    """The translator with attention beside the Transformer in the live alignments."""
    world = larger_world()
    seed_everything(seed)
    config = {"source_size": len(world.source_vocab), "target_size": len(world.target_vocab)}
    config |= SHAPE
    model = AttentionTranslator(**config, dropout=0.0)
    result, checkpoints = train_with_checkpoints(model, "bahdanau_fr", config, **RECIPE, seed=seed)
    tokens = {"source": world.source_vocab.tokens, "target": world.target_vocab.tokens}
    stored_model = StoredModel.of(model, config, tokens)
    card = model_card(stored_model.for_page().network(AttentionTranslator))
    cards = cards_of_checkpoints(AttentionTranslator, checkpoints, card["examples"])
    card["checkpoints"] = checkpoints_of("bahdanau_fr", EARLIER, result)
    card["gold"] = gold()
    return {
        "result": held_out_scores(model) | result,
        "models": {"bahdanau_fr": stored_model} | checkpoints,
        "cards": {"bahdanau_fr": card} | cards,
    }


def gold() -> list[list[str]]:
    """English, French and gold links of the held-out sentences of `larger_world`; "0-1" links English 0 and French 1.

    Of several pairs with one English sentence the first is kept.
    """
    pairs = {pair.source: pair for pair in reversed([*larger_world().test, *larger_world().val])}
    rows = []
    for pair in reversed(pairs.values()):
        links = " ".join(f"{source}-{target}" for source, target in sorted(pair.alignment or ()))
        rows.append([" ".join(pair.source), " ".join(pair.target), links])
    return rows
