"""What the live translator says and where it looks, as numbers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy
from course_utils.kit.live import bundle
from course_utils.kit.live.packing import network_of
from course_utils.models.transformer import Transformer


@dataclass(frozen=True)
class Trace:
    """A translation from inside.

    Attributes:
        source: English tokens, `<eos>` at the end.
        says: French tokens up to `<eos>`.
        cross: (layers, heads, French, English), the weights of the cross-attention.
    """

    source: list[str]
    says: list[str]
    cross: Tensor


@torch.no_grad()
def translate(sentence: str) -> Trace:
    """A translation with its weights, those that the page shows.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    packed, tokens = bundle("translator_fr"), tokenize(sentence)
    model = network_of(Transformer, packed)
    english, french = (Vocabulary.of_tokens(words) for words in packed["vocabularies"].values())
    unknown = [token for token in tokens if token not in english]
    if unknown or not tokens:
        raise ValueError(f"sentence={sentence!r}: unknown are {unknown}; a known word is needed")
    source = torch.tensor([[*english.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    said = greedy(model, source, lens)[0]
    with record_attention(model) as maps:
        model(source, lens, torch.tensor([[BOS, *said]]))
    cross = [weights[0] for name, weights in maps.items() if name.endswith(".cross_attention")]
    words = [french.tokens[token] for token in said]
    return Trace([*tokens, "<eos>"], [*words, "<eos>"], torch.stack(cross))
