"""The heads of the translator of everyday sentences: their weights on some kinds of token, and the loss without them.

*Multi-head attention* shows the stored run `translator_heads`, which measures them, in `cu.explore.dissection`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, pad
from course_utils.data.translation import Pair
from course_utils.decoding import greedy
from course_utils.interventions import record_activations
from course_utils.kit.stored_model import load_model
from course_utils.masks import causal_mask
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention

MODEL = "everyday_fr"
LAYERS, HEADS = 2, 4
"""Number of the decoder's layers, and of the heads in each."""
PLACE = "self_attention"
"""Name of the attention in a layer whose heads are measured."""
KINDS = ("same token", "token before", "first token")
"""Kinds of token that a query may attend to: itself, the one before it, the first of the sentence."""


def everyday_translator() -> tuple[Transformer, Subwords]:
    """The stored translator of everyday sentences, in eval mode and without gradients, and its pieces of words."""
    stored_model = load_model(MODEL)
    words = stored_model.vocabularies
    merges = [tuple(merge.split()) for merge in words["merges"]]
    return stored_model.network(Transformer), Subwords.from_merges(words["tokens"], merges)


@dataclass(frozen=True)
class PairsInPieces:
    """Sentences with their translations, as a batch of ids for teacher forcing.

    Attributes:
        source: (sentences, source length), the English ids.
        source_lens: (sentences,), their numbers.
        target_in: (sentences, n), the French ids that the decoder reads.
        target_out: (sentences, n), the French ids that it has to say.
        real: (sentences, n), False at padding.
    """

    source: Tensor
    source_lens: Tensor
    target_in: Tensor
    target_out: Tensor
    real: Tensor

    @classmethod
    def of(cls, pairs: list[Pair], pieces: Subwords) -> "PairsInPieces":
        """The batch of some pairs."""
        source, source_lens = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
        target, lens = pad([[BOS, *pieces.encode(" ".join(p.target)), EOS] for p in pairs])
        real = torch.arange(target.shape[1] - 1) < (lens - 1)[:, None]
        return cls(source, source_lens, target[:, :-1], target[:, 1:], real)

    @torch.no_grad()
    def loss(self, model: Transformer) -> float:
        """Mean loss per token of the translations."""
        logits = model(self.source, self.source_lens, self.target_in)
        each = F.cross_entropy(logits.mT, self.target_out, reduction="none")
        return each[self.real].mean().item()

    @torch.no_grad()
    def weights_and_answers(self, model: Transformer) -> tuple[Tensor, dict[str, Tensor]]:
        """Weights and outputs of all heads.

        Returns:
            weights: (sentences, layers · heads, n, n).
            answers: the heads' outputs by the name of their layer, without padding and as one long sequence,
                (1, heads, tokens, head size): what `ablate` takes the mean of.
        """
        with record_attention(model) as maps, record_activations(model) as activations:
            model(self.source, self.source_lens, self.target_in)
        weights = torch.cat([maps[f"decoder.{layer}.{PLACE}"] for layer in range(LAYERS)], dim=1)
        answers = {
            name: x.transpose(1, 2)[self.real].transpose(0, 1)[None]
            for name, x in activations.items()
            if PLACE in name and name.endswith("heads")
        }
        return weights, answers

    def shares_by_kind(self, weights: Tensor) -> dict[str, Tensor]:
        """Mean weight of each head on each of `KINDS`, over all queries for which these are three different tokens.

        Args:
            weights: (sentences, heads, n, n).

        Returns:
            Kind → (heads,).
        """
        place = torch.arange(weights.shape[-1])
        back = place[:, None] - place  # from the query to the key
        masks = back == 0, back == 1, (place == 0).expand_as(back)
        from_third = self.real & (place >= 2)
        shares = {}
        for kind, mask in zip(KINDS, masks, strict=True):
            on_kind = (weights * mask).sum(dim=-1)  # (sentences, heads, n)
            shares[kind] = on_kind.transpose(1, 2)[from_third].mean(dim=0)
        return shares

    def even_weights(self) -> Tensor:
        """Equal weights on each token that a query may attend to: (sentences, 1, n, n)."""
        mask = causal_mask(self.target_in.shape[1]).float()
        even = mask / mask.sum(dim=-1, keepdim=True)
        return even.expand(len(self.target_in), 1, -1, -1)


def batch_of_one(pieces: Subwords, line: str) -> tuple[Tensor, Tensor]:
    """A sentence as a batch: its ids, (1, tokens), and their number, (1,)."""
    return pad([[*pieces.encode(line), EOS]])


def translate(model: Transformer, pieces: Subwords, source: Tensor, source_lens: Tensor) -> str:
    """Greedy translation of a `batch_of_one`."""
    return pieces.decode(greedy(model, source, source_lens, max_len=20)[0])


def example_of(model: Transformer, pieces: Subwords, source: Tensor, source_lens: Tensor) -> dict:
    """What the explorer shows of a `batch_of_one`, with no head ablated.

    Returns:
        "source", the sentence; "whole" and "pieces", its translation and the pieces of it that the decoder reads;
        "maps", the weights of all heads, (heads, n, n).
    """
    ids = greedy(model, source, source_lens, max_len=20)[0]
    with torch.no_grad(), record_attention(model) as maps:
        model(source, source_lens, torch.tensor([[BOS, *ids]]))
    heads = torch.cat([maps[f"decoder.{layer}.{PLACE}"][0] for layer in range(LAYERS)])
    rounded = [[[round(weight, 3) for weight in row] for row in head] for head in heads.tolist()]
    return {
        "source": pieces.decode(source[0, :-1].tolist()),
        "whole": pieces.decode(ids),
        "pieces": ["<bos>", *(pieces.tokens[i] for i in ids)],
        "maps": rounded,
    }
