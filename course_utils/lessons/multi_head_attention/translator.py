"""The heads of the stored translator: where their weight lies, and what is lost without them."""

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

MODEL, PLACE = "everyday_fr", "self_attention"
LAYERS, HEADS = 2, 4
KINDS = ("same token", "token before", "first token")


def everyday_translator() -> tuple[Transformer, Subwords]:
    """The stored translator of everyday sentences, in eval mode, and its pieces."""
    checkpoint = load_model(MODEL)
    model = Transformer(**checkpoint.config)
    model.load_state_dict(checkpoint.state)
    words = checkpoint.vocabularies
    merges = [tuple(merge.split()) for merge in words["merges"]]
    return model.eval(), Subwords.from_merges(words["tokens"], merges)


@dataclass(frozen=True)
class Read:
    """Sentences and their translations as the translator reads them.

    Attributes:
        source, source_lens: (sentences, source length) ids, and their numbers.
        target_in, target_out: (sentences, n) ids of the translation: what the decoder reads, and what it has to say.
        real: (sentences, n), False at padding.
    """

    source: Tensor
    source_lens: Tensor
    target_in: Tensor
    target_out: Tensor
    real: Tensor

    @classmethod
    def of(cls, pairs: list[Pair], pieces: Subwords) -> "Read":
        """Pairs of sentences in pieces."""
        source, source_lens = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
        target, lens = pad([[BOS, *pieces.encode(" ".join(p.target)), EOS] for p in pairs])
        real = torch.arange(target.shape[1] - 1) < (lens - 1)[:, None]
        return cls(source, source_lens, target[:, :-1], target[:, 1:], real)

    @torch.no_grad()
    def loss(self, model: Transformer) -> float:
        """Mean loss per token of the translations."""
        logits = model(self.source, self.source_lens, self.target_in)
        return (
            F.cross_entropy(logits.mT, self.target_out, reduction="none")[self.real].mean().item()
        )

    @torch.no_grad()
    def weights_and_answers(self, model: Transformer) -> tuple[Tensor, dict[str, Tensor]]:
        """The maps of all heads, (sentences, layers · heads, n, n), and what the heads give, by name.

        What they give is without padding, as one long sequence: (1, heads, tokens, head size).
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
        """The mean weight of each head on a token of each of `KINDS`; (sentences, heads, n, n) → (heads,).

        Only over queries from the third one on, for which the three kinds are three tokens.
        """
        place = torch.arange(weights.shape[-1])
        back = place[:, None] - place
        is_kind = back == 0, back == 1, (place == 0).expand_as(back)
        counted = self.real & (place >= 2)
        return {
            kind: (weights * mask).sum(dim=-1).transpose(1, 2)[counted].mean(dim=0)
            for kind, mask in zip(KINDS, is_kind, strict=True)
        }

    def even_weights(self) -> Tensor:
        """Equal weights on each token that a query may attend to: (sentences, 1, n, n)."""
        mask = causal_mask(self.target_in.shape[1]).float()
        even = mask / mask.sum(dim=-1, keepdim=True)
        return even.expand(len(self.target_in), 1, -1, -1)


def question(pieces: Subwords, line: str) -> tuple[Tensor, Tensor]:
    """A sentence as a batch of one: its ids, and how many they are."""
    return pad([[*pieces.encode(line), EOS]])


def translation(model: Transformer, pieces: Subwords, source: Tensor, lens: Tensor) -> str:
    """What the translator says of a batch of one sentence."""
    return pieces.decode(greedy(model, source, lens, max_len=20)[0])


def example_of(model: Transformer, pieces: Subwords, source: Tensor, lens: Tensor) -> dict:
    """A sentence, the whole translator's French, whole and in pieces, and the maps of all heads over it."""
    ids = greedy(model, source, lens, max_len=20)[0]
    with torch.no_grad(), record_attention(model) as maps:
        model(source, lens, torch.tensor([[BOS, *ids]]))
    heads = torch.cat([maps[f"decoder.{layer}.{PLACE}"][0] for layer in range(LAYERS)])
    return {
        "source": pieces.decode(source[0, :-1].tolist()),
        "whole": pieces.decode(ids),
        "pieces": ["<bos>", *(pieces.tokens[i] for i in ids)],
        "maps": [[[round(w, 3) for w in row] for row in head] for head in heads.tolist()],
    }
