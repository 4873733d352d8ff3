"""The trainings of *Multi-head attention* that are made beforehand, and heads of a translator, measured."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.attention import MultiHeadAttention
from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, pad
from course_utils.data.translation import load_sentences
from course_utils.decoding import greedy
from course_utils.interventions import intervene, record_activations
from course_utils.kit.live import load_model
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.tasks import (
    NOUNS,
    WORDS,
    LookupNetwork,
    Sentences,
    VerbReader,
    asked_weights,
    lookup_accuracy,
    lookup_cases,
    reader_accuracy,
    sentences,
    train_lookups,
    train_reader,
    two_lookups,
)
from course_utils.masks import causal_mask
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention

RATES, SEEDS, LONG = (0.001, 0.003, 0.01, 0.03), (0, 1, 2, 3, 4), 3000


@stored(cases=[{"objects": "people", "num_heads": heads, "steps": LONG} for heads in (1, 2)])
def verb_readers(*, objects: str, num_heads: int, steps: int) -> dict:
    """Who, and to whom? Over the steps, the share of 500 unseen sentences with both right, for all rates and seeds.

    All readers train side by side, each with its own rate, its own sentences and its own first weights, as
    `train_reader` would train it. The results are, of each, the share at the end, the mean weight of head 0 on the
    subject and on the object, and how much the first of them varies from sentence to sentence.
    """
    names = [f"{rate:g}, {seed}" for rate in RATES for seed in SEEDS]
    readers = []
    for _ in RATES:
        for seed in SEEDS:
            torch.manual_seed(seed)
            readers.append(VerbReader(MultiHeadAttention(32, num_heads)))
    train, unseen = zip(*(sentences(objects, seed=seed) for seed in SEEDS), strict=True)
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    weights, _ = stack_module_state(readers)
    rates = torch.tensor(RATES).repeat_interleave(len(SEEDS))
    optimizer = torch.optim.Adam(weights.values(), lr=1.0)
    curves = {name: [] for name in names}
    for step in range(1, steps + 1):
        drawn = [
            torch.randint(len(of.tokens), (64,), generator=g)
            for of, g in zip(train, generators, strict=True)
        ]
        batch = _stacked([of[rows] for of, rows in zip(train, drawn, strict=True)])
        logits = _all_logits(readers[0], weights, batch)
        loss = F.cross_entropy(logits.flatten(0, 2), batch.nouns.flatten(), reduction="sum") / 128
        optimizer.zero_grad()
        loss.backward()
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        optimizer.step()  # at rate 1; of an update of Adam, each reader takes the part that is its rate
        with torch.no_grad():
            for name, weight in weights.items():
                part = rates.view(-1, *[1] * (weight.dim() - 1))
                weight.copy_(before[name].lerp(weight, part))
        if step % (50 if step <= 1200 else 300) == 0:
            others = _stacked(unseen)
            with torch.no_grad():
                found = _all_logits(readers[0], weights, others).argmax(dim=-1) == others.nouns
            for name, share in zip(
                names, found.all(dim=-1).float().mean(dim=-1).tolist(), strict=True
            ):
                curves[name].append([step, round(share, 3)])
    result = {}
    for index, name in enumerate(names):
        readers[index].load_state_dict({key: weight[index] for key, weight in weights.items()})
        on_nouns = _weights_on_nouns(readers[index], unseen[index % len(SEEDS)])
        result[f"{name}, both"] = curves[name][-1][1]
        for noun, weight in zip(("subject", "object"), on_nouns.mean(dim=0).tolist(), strict=True):
            result[f"{name}, {noun}"] = weight
        result[f"{name}, spread"] = on_nouns[:, 0].std().item()
    return {"result": result, "curves": curves}


def _stacked(batches: Sequence[Sentences]) -> Sentences:
    """A batch for each seed → one for each rate and seed, with a first axis for the readers."""
    fields = ("tokens", "lengths", "verbs", "nouns")
    return Sentences(*(torch.stack([getattr(b, f) for b in batches] * len(RATES)) for f in fields))


def _all_logits(reader: VerbReader, weights: dict[str, Tensor], batch: Sentences) -> Tensor:
    """(readers, batch, 2, nouns), each reader on its own sentences."""

    def one(weights: dict[str, Tensor], *fields: Tensor) -> Tensor:
        return functional_call(reader, weights, (Sentences(*fields),))

    with sdpa_kernel(SDPBackend.MATH):  # the only one that can be stacked
        return vmap(one)(weights, batch.tokens, batch.lengths, batch.verbs, batch.nouns)


@torch.no_grad()
def _weights_on_nouns(reader: VerbReader, batch: Sentences) -> Tensor:
    """(batch, 2): the weight of head 0 on the subject and on the object."""
    with record_attention(reader) as maps:
        reader(batch)
    (weights,) = maps.values()  # (batch, heads, 1, LENGTH)
    words = torch.tensor([WORDS.index(noun) for noun in NOUNS])
    is_noun = batch.tokens[:, None] == words[batch.nouns][..., None]  # (batch, 2, LENGTH)
    return (weights[:, 0] * is_noun).sum(dim=-1)


@stored(
    cases=[{"objects": "things", "num_heads": 1, "steps": 900}],
    rates=(0.003, 0.01, 0.03),
    seeds=(0, 1, 2),
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
    cases=[{"num_heads": 2, "steps": 300}],
    rates=(0.01, 0.03, 0.1),
    seeds=(0, 1, 2),
    small=True,
)
def cabinet(*, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Two look-ups of one feature: shares of all cases, which are all that there are."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, num_heads), steps=steps, lr=rate, seed=seed)
    shares = zip(("first", "second", "both"), lookup_accuracy(network), strict=True)
    return {"result": dict(shares)}


@stored(cases=[{"steps": 300}], rates=(0.01, 0.03, 0.1), seeds=(0, 1, 2), small=True)
def single_head(*, steps: int, rate: float, seed: int) -> dict:
    """The cabinet with one head: where it looks, and both right where the balls are alike, and where they differ."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, 1), steps=steps, lr=rate, seed=seed)
    task = two_lookups()
    with torch.no_grad(), record_attention(network) as maps:
        logits = network(*task.inputs(task.balls))
    labels = (task.answers(task.balls) > 0).float()
    losses = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(dim=(0, 1))
    (weights,) = maps.values()
    names = "alike", "differ", "weight 0", "weight 1", "loss 0", "loss 1"
    both = lookup_cases(network)[:, 2]
    return {"result": dict(zip(names, [*both, *asked_weights(weights)[0], *losses], strict=True))}


# Heads of a trained translator: where their weight lies, and what the network loses without them --

MODEL, PLACE = "everyday_fr", "self_attention"
LAYERS, HEADS = 2, 4
KINDS = ("same token", "token before", "first token")
SHORTEST, LONGEST = 6, 10
SHOWN = ("i'm very well , thank you .", "do you want to come with me ?")
"""Sentences whose maps and translations are kept."""


@stored(cases=[{"sentences": 400}])
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
