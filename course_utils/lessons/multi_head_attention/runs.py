"""The trainings of *Multi-head attention* that are made beforehand, and heads of a translator, measured."""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention, causal_mask
from course_utils.cache import record_attention
from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, pad
from course_utils.data.translation import load_sentences
from course_utils.decoding import greedy
from course_utils.interventions import intervene, record_activations
from course_utils.kit.live import load_model
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.tasks import (
    LookupNetwork,
    VerbReader,
    lookup_accuracy,
    reader_accuracy,
    sentences,
    train_lookups,
    train_reader,
)
from course_utils.models.transformer import Transformer

RATES, SEEDS, LONG = (0.003, 0.01, 0.03), (0, 1, 2), 900


@stored(
    cases=[
        {"objects": objects, "num_heads": heads, "steps": LONG}
        for objects, counts in (("things", (1,)), ("people", (1, 2)))
        for heads in counts
    ],
    rates=RATES,
    seeds=SEEDS,
    small=True,
)
def verb_reader(*, objects: str, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Who, and to whom? Shares of other sentences, 250 to choose by and 250 to tell; the package's layer."""
    torch.manual_seed(seed)
    reader = VerbReader(MultiHeadAttention(32, num_heads))
    loss = train_reader(reader, objects, steps=steps, lr=rate, seed=seed)
    _, others = sentences(objects, seed=seed)
    *_, validation = reader_accuracy(reader, others[:250])
    who, whom, both = reader_accuracy(reader, others[250:])
    scores = {"validation": validation, "who": who, "whom": whom, "both": both, "loss": loss}
    return {"result": scores}


@stored(
    cases=[{"num_heads": heads, "steps": 300} for heads in (1, 2, 4)],
    rates=(0.01, 0.03, 0.1),
    seeds=SEEDS,
    small=True,
)
def cabinet(*, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Two look-ups of one feature: shares of all cases, which are all that there are."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, num_heads), steps=steps, lr=rate, seed=seed)
    shares = zip(("first", "second", "both"), lookup_accuracy(network), strict=True)
    return {"result": dict(shares)}


# Heads of a trained translator: where their weight lies, and what the network loses without them --

MODEL, PLACE = "everyday_fr", "self_attention"
LAYERS, HEADS = 2, 4
KINDS = ("same token", "token before", "first token")
SHORTEST, LONGEST = 6, 10
SHOWN = ("i'm very well , thank you .", "do you want to come with me ?")
"""Sentences whose maps and translations are kept."""


@stored(cases=[{"sentences": 400}], data=["translation/sentences.tsv", "models/everyday_fr.npz"])
def translator_heads(*, sentences: int) -> dict:
    """Of each head in the decoder's self-attention: weights by kind, loss by zero and by mean, some maps.

    Args:
        sentences: of the course's own, so many of 6 to 10 tokens. The translator has read them.
    """
    model, pieces = everyday_translator()
    pairs = [p for p in load_sentences("fr") if SHORTEST <= len(p.source) <= LONGEST][:sentences]
    source, source_lens = pad([[*pieces.encode(" ".join(p.source)), EOS] for p in pairs])
    target, lens = pad([[BOS, *pieces.encode(" ".join(p.target)), EOS] for p in pairs])
    decoder_input, labels = target[:, :-1], target[:, 1:]
    n = decoder_input.shape[1]
    mask = torch.arange(n) < (lens - 1)[:, None]

    @torch.no_grad()
    def loss() -> float:
        logits = model(source, source_lens, decoder_input)
        return F.cross_entropy(logits.mT, labels, reduction="none")[mask].mean().item()

    with torch.no_grad(), record_attention(model) as maps, record_activations(model) as run:
        model(source, source_lens, decoder_input)
    run = {
        name: x.transpose(1, 2)[mask].transpose(0, 1)[None]
        for name, x in run.items()
        if PLACE in name and name.endswith("heads")
    }
    names = [f"decoder.{layer}.{PLACE}" for layer in range(LAYERS)]
    weights = torch.cat([maps[name] for name in names], dim=1)  # (sentences, 8, n, n)
    query_mask = mask & (torch.arange(n) >= 2)  # the three kinds are three tokens
    result = {"loss": loss()}
    uniform = causal_mask(n).float()
    uniform = (uniform / uniform.sum(dim=-1, keepdim=True)).expand(len(target), 1, -1, -1)
    for kind, share in zip(KINDS, _shares(uniform, query_mask), strict=True):
        result[f"even, {kind}"] = share[0].item()
    shares = _shares(weights, query_mask)
    lines = [_asked(pieces, line) for line in SHOWN]
    examples = [_example(model, pieces, *line) for line in lines]
    for index in range(LAYERS * HEADS):
        layer, head = divmod(index, HEADS)
        for kind, share in zip(KINDS, shares, strict=True):
            result[f"{layer}.{head}, {kind}"] = share[index].item()
        for by in ("zero", "mean"):
            with intervene(model) as acts:
                acts.ablate(
                    PLACE, heads=head, layers=layer, by=by, run=run if by == "mean" else None
                )
                result[f"{layer}.{head}, {by}"] = loss()
                for example, line in zip(examples, lines, strict=True):
                    example[f"{layer}.{head}, {by}"] = _said(model, pieces, *line)
    return {"result": result, "examples": examples}


def everyday_translator() -> tuple[Transformer, Subwords]:
    """The stored translator of everyday sentences, in eval mode, and its pieces."""
    checkpoint = load_model(MODEL)
    model = Transformer(**checkpoint.config)
    model.load_state_dict(checkpoint.state)
    words = checkpoint.vocabularies
    merges = [tuple(merge.split()) for merge in words["merges"]]
    return model.eval(), Subwords.of(words["tokens"], merges)


def _shares(weights: Tensor, query_mask: Tensor) -> list[Tensor]:
    """(sentences, heads, n, n) → the mean weight of each head on a token of each of `KINDS`."""
    n = weights.shape[-1]
    back = torch.arange(n)[:, None] - torch.arange(n)
    kinds = back == 0, back == 1, (torch.arange(n) == 0).expand(n, n)
    return [(weights * kind).sum(dim=-1).transpose(1, 2)[query_mask].mean(dim=0) for kind in kinds]


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
