"""Heads of a trained translator, measured: where their weight lies, and what the network loses without them."""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import causal_mask
from course_utils.cache import record_attention
from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, pad
from course_utils.data.translation import load_sentences
from course_utils.decoding import greedy
from course_utils.interventions import intervene, record_activations
from course_utils.kit.live import load_model
from course_utils.models.transformer import Transformer

MODEL, PLACE = "everyday_fr", "self_attention"
LAYERS, HEADS = 2, 4
KINDS = ("same token", "token before", "first token")
SHORTEST, LONGEST = 6, 10
SHOWN = ("i'm very well , thank you .", "do you want to come with me ?")
"""Sentences whose maps and translations are kept."""


def measured(count: int) -> dict:
    """Of each head in the decoder's self-attention: weights by kind, loss by zero and by mean, some maps.

    Args:
        count: sentences of the course's own, of 6 to 10 tokens. The translator has read them.
    """
    kept = load_model(MODEL)
    model = Transformer(**kept.config)
    model.load_state_dict(kept.state)
    model.eval()
    words = kept.vocabularies
    pieces = Subwords.of(words["tokens"], [tuple(merge.split()) for merge in words["merges"]])
    pairs = [p for p in load_sentences("fr") if SHORTEST <= len(p.source) <= LONGEST][:count]
    source, source_lens = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
    said, lens = pad([[BOS, *pieces.encode(" ".join(p.target)), EOS] for p in pairs])
    told, wanted = said[:, :-1], said[:, 1:]
    real = torch.arange(told.shape[1]) < (lens - 1)[:, None]

    @torch.no_grad()
    def loss() -> float:
        each = F.cross_entropy(model(source, source_lens, told).mT, wanted, reduction="none")
        return each[real].mean().item()

    with torch.no_grad(), record_attention(model) as maps, record_activations(model) as run:
        model(source, source_lens, told)
    run = {
        name: x.transpose(1, 2)[real].transpose(0, 1)[None]
        for name, x in run.items()
        if PLACE in name and name.endswith("heads")
    }
    names = [f"decoder.{layer}.{PLACE}" for layer in range(LAYERS)]
    weights = torch.cat([maps[name] for name in names], dim=1)  # (sentences, 8, n, n)
    asking = real & (torch.arange(told.shape[1]) >= 2)  # the three kinds are three tokens
    result = {"loss": loss()}
    even = causal_mask(told.shape[1]).float()
    even = (even / even.sum(dim=-1, keepdim=True)).expand(len(told), 1, -1, -1)
    for kind, share in zip(KINDS, _shares(even, asking), strict=True):
        result[f"even, {kind}"] = share[0].item()
    shares = _shares(weights, asking)
    lines = [_asked(pieces, line) for line in SHOWN]
    examples = [_example(model, pieces, *line) for line in lines]
    for place in range(LAYERS * HEADS):
        layer, head = divmod(place, HEADS)
        for kind, share in zip(KINDS, shares, strict=True):
            result[f"{layer}.{head}, {kind}"] = share[place].item()
        for by in ("zero", "mean"):
            with intervene(model) as acts:
                acts.ablate(
                    PLACE, heads=head, layers=layer, by=by, run=run if by == "mean" else None
                )
                result[f"{layer}.{head}, {by}"] = loss()
                for example, line in zip(examples, lines, strict=True):
                    example[f"{layer}.{head}, {by}"] = _said(model, pieces, *line)
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "examples": examples,
    }


def _shares(weights: Tensor, asking: Tensor) -> list[Tensor]:
    """(sentences, heads, n, n) → the mean weight of each head on a token of each of `KINDS`."""
    n = weights.shape[-1]
    back = torch.arange(n)[:, None] - torch.arange(n)
    kinds = back == 0, back == 1, (torch.arange(n) == 0).expand(n, n)
    return [(weights * kind).sum(dim=-1).transpose(1, 2)[asking].mean(dim=0) for kind in kinds]


def _asked(pieces: Subwords, line: str) -> tuple[Tensor, Tensor]:
    return pad([[*pieces.encode(line), EOS]])


def _said(model: Transformer, pieces: Subwords, source: Tensor, lens: Tensor) -> str:
    return pieces.decode(greedy(model, source, lens, max_len=20)[0])


def _example(model: Transformer, pieces: Subwords, source: Tensor, lens: Tensor) -> dict:
    """The whole translator's French for a sentence, in pieces, and the maps of all heads over it."""
    ids = greedy(model, source, lens, max_len=20)[0]
    with torch.no_grad(), record_attention(model) as maps:
        model(source, lens, torch.tensor([[BOS, *ids]]))
    every = torch.cat([maps[f"decoder.{layer}.{PLACE}"][0] for layer in range(LAYERS)])
    return {
        "source": pieces.decode(source[0, :-1].tolist()),
        "whole": pieces.decode(ids),
        "pieces": ["<bos>", *(pieces.tokens[i] for i in ids)],
        "maps": [[[round(w, 3) for w in row] for row in head] for head in every.tolist()],
    }
