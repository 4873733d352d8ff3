"""The stored translator with some of its parts ablated: its translations, and how much each part adds.

*The Transformer* uses it beside the live model `cu.live.machine`, and loads the weights into its own class.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import pandas as pd
import torch
from torch import Tensor, nn

from course_utils.data.text import BOS, EOS, Vocabulary, pad
from course_utils.data.translation import load_grammar, split_by_source
from course_utils.decoding import NEVER_NEXT, greedy
from course_utils.interventions import Interventions, intervene, record_activations
from course_utils.kit.live.widgets import PARTS
from course_utils.kit.stored_model import StoredModel, load_model
from course_utils.metrics import bleu
from course_utils.models.transformer import Transformer

SUBLAYERS = tuple(
    part for part in PARTS if part.split(".")[-1] not in ("positions", "norms", "residuals")
)
"""The attentions and networks among the parts that the machine can ablate."""
LONGEST = 20
"""The largest number of tokens in a translation."""

# The stored translator and its words --------------------------------------------------------------


@cache
def stored() -> StoredModel:
    """The stored translator: configuration, weights, vocabularies."""
    return load_model("translator_fr")


@cache
def translator() -> Transformer:
    """The stored translator as a network of the library, in eval mode and without gradients."""
    return stored().network(Transformer, dropout=0.0)


@cache
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """The stored translator's English and French words."""
    words = stored().vocabularies
    return Vocabulary.from_tokens(words["source"]), Vocabulary.from_tokens(words["target"])


@cache
def held_out_pairs(count: int = 200) -> list[tuple[str, str]]:
    """The first `count` English and French sentences on which the translator was not trained."""
    test = split_by_source(load_grammar("fr"), [300, 500], seed=2017)[2]  # as in larger_world
    return [(" ".join(pair.source), " ".join(pair.target)) for pair in test[:count]]


def batch_of(sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Ids (batch, longest) and lengths (batch,) of English sentences, each with its `<eos>`."""
    english, _ = vocabularies()
    return pad([[*english.encode(text.split()), EOS] for text in sentences])


def shifted(french: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Input and targets of the decoder for French sentences, both (batch, longest), padded."""
    rows = [vocabularies()[1].encode(text.split()) for text in french]
    inputs, _ = pad([[BOS, *row] for row in rows])
    targets, _ = pad([[*row, EOS] for row in rows])
    return inputs, targets


def tokens_of(ids: Tensor) -> list[str]:
    """French tokens of ids (length,), special ones included."""
    return [vocabularies()[1].tokens[token] for token in ids.tolist()]


def words_of(ids: Sequence[int]) -> str:
    """French sentence of some ids."""
    return " ".join(vocabularies()[1].decode(ids))


# Translations -------------------------------------------------------------------------------------


@torch.no_grad()
def translate(model: nn.Module, sentence: str) -> str:
    """Greedy translation of a sentence by a model that is called as `cu.Transformer` is, the chapter's among them.

    `decoding.greedy` needs a model with `start` and `step`, and puts it in eval mode. Here each step computes
    everything from the beginning, and the model stays in its mode, because the page also shows it in training mode.
    """
    source, source_lens = batch_of([sentence])
    ids: list[int] = []
    while len(ids) < LONGEST:
        logits = model(source, source_lens, torch.tensor([[BOS, *ids]]))[0, -1]
        logits[list(NEVER_NEXT)] = -torch.inf
        token = int(logits.argmax())
        if token == EOS:
            break
        ids.append(token)
    return words_of(ids)


def ablate(acts: Interventions, *parts: str) -> None:
    """Ablate parts, which have their names in `cu.live.machine` or are places of `intervene`."""
    for part in parts:
        acts.ablate({"norms": "norm", "residuals": "shortcut"}.get(part, part))


def says(sentences: Sequence[str], *parts: str) -> list[str]:
    """French of each sentence, as the stored translator gives it with some parts ablated."""
    with intervene(translator()) as acts:
        ablate(acts, *parts)
        translations = greedy(translator(), *batch_of(sentences), max_len=LONGEST)
    return [words_of(ids) for ids in translations]


def without(sentence: str, *parts: str) -> str:
    """French of one sentence, as the stored translator gives it with some parts ablated."""
    return says([sentence], *parts)[0]


@contextlib.contextmanager
def with_blocks(model: nn.Module, one_block: Callable[..., Tensor]) -> Iterator[None]:
    """A context in which the decoder's blocks compute `one_block(block, x, memory, memory_mask)`."""

    def forward(
        block: nn.Module,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        return one_block(block, x, memory, memory_mask)

    for block in model.decoder:
        block.forward = partial(forward, block)
    try:
        yield
    finally:
        for block in model.decoder:
            del block.forward


# How much each part adds --------------------------------------------------------------------------


@torch.no_grad()
def relative_sizes(
    model: Transformer, source: Tensor, source_lens: Tensor, french: Sequence[Sequence[int]]
) -> dict[str, float]:
    """‖f(x)‖ / ‖x‖ of each sublayer f, and of the positions that are added to the words: the bars of the machine.

    Each is a mean over all tokens but padding, while the decoder reads the French.

    Args:
        model: with two layers on each side, as the stored translators have.
        source: (batch, longest) ids.
        source_lens: (batch,).
        french: the ids of each translation, without `<bos>` and `<eos>`.
    """
    target, target_lens = pad([[BOS, *row] for row in french])
    with record_activations(model) as outputs, inputs_of_sublayers(model) as inputs:
        model(source, source_lens, target)
    is_token = {
        "encoder": torch.arange(source.shape[1]) < source_lens[:, None],
        "decoder": torch.arange(target.shape[1]) < target_lens[:, None],
    }
    sizes = {}
    for part in SUBLAYERS:
        relative = outputs[part].norm(dim=-1) / inputs[part].norm(dim=-1)
        sizes[part] = relative[is_token[part.split(".")[0]]].mean().item()
    for embedding, ids, side in (
        ("source_embedding", source, "encoder"),
        ("target_embedding", target, "decoder"),
    ):
        table = model.get_submodule(embedding)
        words = table(ids) * math.sqrt(table.embedding_dim)
        positions = model.positions(words) - words
        relative = positions.norm(dim=-1) / words.norm(dim=-1)
        sizes[f"{embedding}.positions"] = relative[is_token[side]].mean().item()
    return sizes


@contextlib.contextmanager
def inputs_of_sublayers(model: Transformer) -> Iterator[dict[str, Tensor]]:
    """A context with a dict that fills while the model runs: name of a sublayer → what its norm is given."""
    inputs: dict[str, Tensor] = {}

    def keep(part: str, _: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        inputs[part] = arguments[0]

    handles = [
        model.get_submodule(f"{part}_norm").register_forward_pre_hook(partial(keep, part))
        for part in SUBLAYERS
    ]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


def measure_parts(
    model: Transformer,
    source: Tensor,
    source_lens: Tensor,
    references: Sequence[str],
    decode: Callable[[Sequence[int]], str],
    *,
    longest: int = LONGEST,
) -> pd.DataFrame:
    """Table of what ablating each part costs a translator: a row for each of `PARTS`.

    The columns are its `bar` (`relative_sizes`), the share of translations that are `changed` without it, and the BLEU
    that is `lost` then.

    Args:
        model: with two layers on each side.
        source: (batch, longest) ids.
        source_lens: (batch,).
        references: the right translation of each source, tokens separated by spaces.
        decode: ids → a French sentence written as the references are.
        longest: the largest number of tokens in a translation.
    """
    whole = greedy(model, source, source_lens, max_len=longest)
    bleu_of_whole = bleu([decode(ids) for ids in whole], references)
    bars = relative_sizes(model, source, source_lens, whole)
    rows = {}
    for part in PARTS:
        with intervene(model) as acts:
            ablate(acts, part)
            without_it = greedy(model, source, source_lens, max_len=longest)
        changed = sum(a != b for a, b in zip(without_it, whole, strict=True)) / len(whole)
        lost = bleu_of_whole - bleu([decode(ids) for ids in without_it], references)
        rows[part] = {"bar": bars.get(part, math.nan), "changed": changed, "lost": lost}
    return pd.DataFrame(rows).T


@cache
def worth(count: int = 200) -> pd.DataFrame:
    """Table of `measure_parts` for the stored translator, on its first `count` held-out sentences."""
    sentences, references = zip(*held_out_pairs(count), strict=True)
    return measure_parts(translator(), *batch_of(sentences), references, words_of)
