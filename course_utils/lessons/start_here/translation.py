"""What the live translator says, to what it attends, and what it says when attention to a word is forbidden."""

from dataclasses import dataclass
from functools import cache

import pandas as pd
import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy
from course_utils.interventions import intervene
from course_utils.kit.stored_model import load_model
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention

LETTERS, LONGEST = 100, 40
"""Letters of a sentence that are read, and tokens of a translation, as in the page."""


@dataclass(frozen=True)
class Trace:
    """A translation from inside.

    Attributes:
        source: English tokens, `<eos>` at the end.
        says: French tokens up to `<eos>`.
        probabilities: (French,), of what it says, each after the words before it.
        cross: (layers, heads, French, English), the weights of the cross-attention.
    """

    source: list[str]
    says: list[str]
    probabilities: Tensor
    cross: Tensor


@cache
def _translator() -> tuple[Transformer, Vocabulary, Vocabulary]:
    stored = load_model("translator_fr")
    english, french = map(Vocabulary.from_tokens, stored.vocabularies.values())
    return stored.for_page().network(Transformer), english, french


def heard(sentence: str) -> list[str]:
    """The tokens that the page reads: a sentence without an end gets a full stop."""
    tokens = tokenize(sentence[:LETTERS])
    return tokens if tokens and tokens[-1] in ".?!…" else [*tokens, "."]


@torch.no_grad()
def translate(
    sentence: str,
    forbidden: str = "",
    *,
    encoder: bool | str = False,
    says: list[str] | None = None,
) -> Trace:
    """A translation with its weights, those that the page shows; a word that it does not know is read as `<unk>`.

    Args:
        sentence: English.
        forbidden: words of it to which no French word may attend, in any head.
        encoder: whether no English word may attend to them, either; or which words may not.
        says: French tokens, `<eos>` at the end, in the place of those that it would choose.
    """
    model, english, french = _translator()
    tokens = heard(sentence)
    source = torch.tensor([[*english.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    with intervene(model) as acts, record_attention(model) as maps:
        if keys := places_of(forbidden, tokens):
            acts.knock_out("cross_attention", keys=keys)
            if encoder is True:
                acts.knock_out("encoder.attention", keys=keys)
            elif encoder:
                acts.knock_out("encoder.attention", queries=places_of(encoder, tokens), keys=keys)
        ids = french.encode(says or [])
        if not ids:
            ids = [*greedy(model, source, lens, max_len=LONGEST)[0], EOS]
        logits = model(source, lens, torch.tensor([[BOS, *ids[:-1]]]))
    probabilities = logits[0].softmax(dim=-1)[range(len(ids)), ids]
    cross = [weights[0] for name, weights in maps.items() if name.endswith(".cross_attention")]
    words = [french.tokens[token] for token in ids]
    return Trace([*tokens, "<eos>"], words, probabilities, torch.stack(cross))


def places_of(words: str, tokens: list[str]) -> list[int]:
    """The places of some words among the tokens of a sentence."""
    return [index for index, token in enumerate(tokens) if token in tokenize(words)]


def forbid(sentence: str, word: str) -> pd.DataFrame:
    """A row for each French word of the translation: its weight on an English word, and its probability.

    The weight is that of layer 1, head 0. The probabilities, after the same French words, are those without a ban,
    those when no French word may attend to the English one, and those when no English word may, either.
    """
    free = translate(sentence)
    keys = places_of(word, free.source)
    bans = {"all allowed": ("", False), f"{word} forbidden": (word, False)}
    bans[f"{word} forbidden, also in the encoder"] = (word, True)
    columns = {f"weight on {word}": free.cross[1, 0][:, keys].sum(dim=1)}
    for name, (forbidden, encoder) in bans.items():
        columns[name] = translate(
            sentence, forbidden, encoder=encoder, says=free.says
        ).probabilities
    return pd.DataFrame(columns, index=free.says).round(2)
