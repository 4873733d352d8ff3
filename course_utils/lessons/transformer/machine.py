"""The stored translator with some of its parts off: what it says, and how much each part adds."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from course_utils.data.text import BOS, EOS, PAD
from course_utils.data.translation import load_grammar, split_by_source
from course_utils.decoding import greedy
from course_utils.interventions import Interventions, intervene, record_activations
from course_utils.kit.live.widgets import PARTS
from course_utils.kit.stored_model import load_model
from course_utils.metrics import bleu
from course_utils.models.transformer import Transformer

SUBLAYERS = tuple(
    part for part in PARTS if part.split(".")[-1] not in ("positions", "norms", "residuals")
)
LONGEST = 20
"""Tokens of a translation."""


@cache
def stored() -> tuple[dict, dict, dict[str, list[str]]]:
    """Configuration, weights and vocabularies of the translator."""
    model = load_model("translator_fr")
    return model.config, model.state, model.vocabularies


def switch_off(acts: Interventions, *parts: str) -> None:
    """Take parts away by the names of `cu.live.machine`, or by places of `intervene`."""
    for part in parts:
        if part == "norms":
            acts.skip("norm")
        elif part == "residuals":
            acts.ablate("shortcut")
        elif part.endswith(".positions"):
            acts.skip(part)
        else:
            acts.ablate(part)


@cache
def held_out_pairs(count: int = 200) -> list[tuple[str, str]]:
    """English and French of the first sentences that the translator has not read."""
    test = split_by_source(load_grammar("fr"), [300, 500], seed=2017)[2]  # as in larger_world
    return [(" ".join(pair.source), " ".join(pair.target)) for pair in test[:count]]


def batch_of(sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Ids (batch, longest) and lengths (batch,) of English sentences of known words, each with its <eos>."""
    source = stored()[2]["source"]
    rows = [[source.index(word) for word in [*text.split(), "<eos>"]] for text in sentences]
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
    return ids, torch.tensor([len(row) for row in rows])


def shifted(french: Sequence[str]) -> tuple[Tensor, Tensor]:
    """What the decoder reads and what it has to say, both (batch, longest), of French sentences."""
    target = stored()[2]["target"]
    rows = [torch.tensor([target.index(word) for word in text.split()]) for text in french]
    reads = [F.pad(row, (1, 0), value=BOS) for row in rows]
    says = [F.pad(row, (0, 1), value=EOS) for row in rows]
    return pad_sequence(reads, batch_first=True), pad_sequence(says, batch_first=True)


def tokens_of(ids: Tensor) -> list[str]:
    """French tokens of ids (length,), special ones included."""
    return [stored()[2]["target"][token] for token in ids.tolist()]


def words_of(ids: Sequence[int]) -> str:
    """French ids as a sentence."""
    return " ".join(stored()[2]["target"][token] for token in ids)


@torch.no_grad()
def translate(model: nn.Module, sentence: str) -> str:
    """The French of a sentence whose words the stored translator knows, the most probable word at each step.

    `model` is called as `cu.Transformer` is; each step reads everything from the beginning.
    """
    ids, lens = batch_of([sentence])
    said: list[int] = []
    while len(said) < LONGEST:
        logits = model(ids, lens, torch.tensor([[BOS, *said]]))[0, -1]
        logits[[PAD, BOS]] = -torch.inf
        if (token := int(logits.argmax())) == EOS:
            break
        said.append(token)
    return words_of(said)


@cache
def translator() -> Transformer:
    """The stored translator as the package's model, in eval mode."""
    config, weights, _ = stored()
    model = Transformer(**config, dropout=0.0).eval()
    model.load_state_dict(weights)
    return model


def says(sentences: Sequence[str], *parts: str) -> list[str]:
    """The stored translator's French for each sentence, without these parts."""
    with intervene(translator()) as acts:
        switch_off(acts, *parts)
        return list(map(words_of, greedy(translator(), *batch_of(sentences), max_len=LONGEST)))


def without(sentence: str, *parts: str) -> str:
    """The stored translator's French for a sentence, without these parts."""
    return says([sentence], *parts)[0]


@contextlib.contextmanager
def with_blocks(model: nn.Module, one_block: Callable[..., Tensor]) -> Iterator[None]:
    """Let `one_block(block, x, memory, memory_mask)` be what the decoder's blocks compute."""

    def forward(block, x, memory, attn_mask=None, memory_mask=None, **_):
        return one_block(block, x, memory, memory_mask)

    for block in model.decoder:
        block.forward = partial(forward, block)
    try:
        yield
    finally:
        for block in model.decoder:
            del block.forward


@torch.no_grad()
def ratios(
    model: Transformer, ids: Tensor, lens: Tensor, french: Sequence[Sequence[int]]
) -> dict[str, float]:
    """‖f(x)‖ / ‖x‖ of each sublayer and of the positions, on average over tokens, while it says the French.

    Args:
        model: of two layers on each side, as the stored translators have them.
        ids, lens: (batch, longest) and (batch,), of the sources.
        french: the ids that it says, a row for each source.
    """
    read = pad_sequence([torch.tensor([BOS, *row]) for row in french], batch_first=True)
    said = torch.tensor([len(row) for row in french])
    real = {
        "encoder": torch.arange(ids.shape[1]) < lens[:, None],
        "decoder": torch.arange(read.shape[1]) <= said[:, None],
    }
    with record_activations(model) as added, inputs_of_sublayers(model) as passing:
        model(ids, lens, read)
    shares = {part: added[part].norm(dim=-1) / passing[part].norm(dim=-1) for part in SUBLAYERS}
    for side, tokens in (("source", ids), ("target", read)):
        embedding = model.get_submodule(f"{side}_embedding")
        words = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        positions = model.positions(words) - words
        shares[f"{side}_embedding.positions"] = positions.norm(dim=-1) / words.norm(dim=-1)

    def side_of(part: str) -> str:
        return "encoder" if part.startswith(("encoder", "source")) else "decoder"

    return {part: share[real[side_of(part)]].mean().item() for part, share in shares.items()}


@contextlib.contextmanager
def inputs_of_sublayers(model: Transformer) -> Iterator[dict[str, Tensor]]:
    """What each sublayer's norm is given while the block runs, by the name of the sublayer."""
    inputs: dict[str, Tensor] = {}

    def keep(part: str, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        inputs[part] = given[0]

    handles = [
        model.get_submodule(f"{part}_norm").register_forward_pre_hook(partial(keep, part))
        for part in SUBLAYERS
    ]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


def worth_of(
    model: Transformer,
    ids: Tensor,
    lens: Tensor,
    references: Sequence[str],
    words: Callable[[Sequence[int]], str],
    *,
    longest: int = LONGEST,
) -> pd.DataFrame:
    """A row for each part: its bar, the share of sentences that change without it, and the BLEU that it loses then.

    Args:
        model: of two layers on each side.
        ids, lens: (batch, longest) and (batch,), of the sources.
        references: the translation of each source, tokens separated by spaces.
        words: the French of some ids, as the references have it.
        longest: translation, in tokens.
    """
    before = greedy(model, ids, lens, max_len=longest)
    whole = bleu(list(map(words, before)), references)
    bars = ratios(model, ids, lens, before)
    rows = {}
    for part in PARTS:
        with intervene(model) as acts:
            switch_off(acts, part)
            now = greedy(model, ids, lens, max_len=longest)
        changed = sum(a != b for a, b in zip(now, before, strict=True)) / len(before)
        lost = whole - bleu(list(map(words, now)), references)
        rows[part] = {"bar": bars.get(part, math.nan), "changed": changed, "lost": lost}
    return pd.DataFrame(rows).T


@cache
def worth(count: int = 200) -> pd.DataFrame:
    """`worth_of` the stored translator, on test sentences."""
    sentences, references = zip(*held_out_pairs(count), strict=True)
    return worth_of(translator(), *batch_of(sentences), references, words_of)
