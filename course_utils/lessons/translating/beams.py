"""The course's own parts for *Translating*: what the page goes on with where the reader's have not passed yet."""

import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, PAD, SPECIALS, Vocabulary
from course_utils.kit.live import load_model
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.live_translator import (
    EARLIER,
    describe_checkpoints,
    fit,
    held_out_loss,
)
from course_utils.lessons.sequence_to_sequence.small_world import larger_world
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything


def grow(scores: Tensor, log_p: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `size` best continuations of all beams.

    Args:
        scores: (beams,) log-probabilities of the beams so far.
        log_p: (beams, words) log-probabilities of each next word.
        size: how many are kept.

    Returns:
        Their scores, the best first; the beam that each goes on from; the word that it adds: (size,) each.
    """
    total = scores[:, None] + log_p
    best, picked = total.flatten().topk(size)
    return best, picked // log_p.shape[1], picked % log_p.shape[1]


def stored_translator() -> Transformer:
    """The translator of *Start here*, in eval mode; its vocabularies are those of `larger_world`."""
    stored_model = load_model("translator_fr")
    model = Transformer(**stored_model.config)
    model.load_state_dict(stored_model.state)
    return model.eval()


def recurrent(sizes: tuple[int, int]) -> AttentionTranslator:
    """The translator of *Bahdanau attention*, untrained, at that chapter's size."""
    return AttentionTranslator(*sizes, embed_dim=64, hidden_dim=64, dropout=0.0)


def asked(line: str, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """A sentence as a model reads it: ids (1, tokens), `<eos>` last, and their number (1,)."""
    ids = [*vocabulary.encode(line.split()), EOS]
    return torch.tensor([ids]), torch.tensor([len(ids)])


def speakable(logits: Tensor) -> Tensor:
    """Log-probabilities (…, words); `<pad>` and `<bos>` are never a next word."""
    ruled_out = torch.zeros_like(logits, dtype=torch.bool)
    ruled_out[..., [PAD, BOS]] = True
    return logits.masked_fill(ruled_out, -torch.inf).log_softmax(dim=-1)


def newest(model: Transformer, prefixes: Tensor) -> Tensor:
    """Ids (beams, t) of all words so far → the newest one's embedding at its place, (beams, 1, embed_dim)."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.shape[1] - 1)


class Tree:
    """A language given by a table: word → the probability of each next word. It speaks as a model does.

    A sentence begins with `<bos>` and ends with `<eos>`; these have the ids that they have everywhere, and the other
    words follow them.

    Attributes:
        tokens: all words, by id.
    """

    def __init__(self, follows: dict[str, dict[str, float]]):
        named = dict.fromkeys(word for row in follows.values() for word in row)
        self.tokens = [*SPECIALS, *(word for word in named if word not in SPECIALS)]
        self.table = torch.zeros(len(self.tokens), len(self.tokens))
        self.table[:, EOS] = 1.0  # of a word that the table does not have
        for word, row in follows.items():
            index = self.tokens.index(word)
            self.table[index] = 0.0
            for following, probability in row.items():
                self.table[index, self.tokens.index(following)] = probability

    def __call__(self, prefixes: Tensor, rows: Tensor) -> Tensor:
        """Prefixes (beams, t) → log-probabilities (beams, words) of the word after each."""
        return self.table[prefixes[:, -1]].log()

    def sentence(self, ids: list[int]) -> str:
        """The words of these ids."""
        return " ".join(self.tokens[index] for index in ids)


def undecided(first_a: float) -> Tree:
    """A language of A, B, C and D: after A it wavers, after B it is nearly sure."""
    return Tree(
        {
            "<bos>": {"A": first_a, "B": 0.4, "<eos>": 0.6 - first_a},
            "A": {"C": 0.4, "D": 0.35, "<eos>": 0.25},
            "B": {"C": 0.9, "<eos>": 0.1},
        }
    )


# The recipe of the stored translator, once more: what it was before it was trained, and early in its training

SHAPE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "norm_first": True}
RATE, WARMUP, PASSES = 0.007, 60, 2


@stored(cases=[{"seed": 0}], data=["translation/grammar_fr.tsv", "translation/sentences.tsv"])
def translator_checkpoints(*, seed: int) -> dict:
    """The live translator at some steps of its training, and the held-out losses there.

    `loss` is that of the stored translator, `loss, again` that of this training's end.
    """
    world = larger_world()
    seed_everything(seed)
    sizes = {"source_size": len(world.source_vocab), "target_size": len(world.target_vocab)}
    model = Transformer(**sizes, dropout=0.0, **SHAPE)
    recipe = {"rate": RATE, "warmup": WARMUP, "passes": PASSES, "seed": seed}
    result = fit(model, "translator_fr", sizes | SHAPE, **recipe)
    result["loss, again"] = result["loss"]
    model.load_state_dict(load_model("translator_fr").state)
    result["loss"] = held_out_loss(model)
    describe_checkpoints(Transformer, "translator_fr", EARLIER, result)
    return {"result": result}
