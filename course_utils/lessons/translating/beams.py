"""The course's own parts for *Translating*: what the page goes on with where the reader's have not passed yet."""

import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, PAD, SPECIALS, Vocabulary
from course_utils.kit.live import load_model
from course_utils.models.transformer import Transformer


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
    kept = load_model("translator_fr")
    model = Transformer(**kept.config)
    model.load_state_dict(kept.state)
    return model.eval()


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
            place = self.tokens.index(word)
            self.table[place] = 0.0
            for following, probability in row.items():
                self.table[place, self.tokens.index(following)] = probability

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
