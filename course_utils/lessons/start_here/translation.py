"""The live translator of *Start here* in code: its translation of a sentence, and what forbidding a word changes.

`translate` and `forbid` give what the page's live model shows, with the weights of its page.
"""

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

LETTERS = 100
"""Letters of a sentence that are read, as in the page."""
LONGEST = 40
"""The most tokens of a translation, without `<eos>`, as in the page."""


@dataclass(frozen=True)
class Trace:
    """A translation, its probabilities, and to what its words attend.

    Attributes:
        source: English tokens, `<eos>` last.
        says: French tokens, `<eos>` last.
        probabilities: (French,), the probability of each French token after those before it.
        cross: (layers, heads, French, English), the weights of the cross-attention.
    """

    source: list[str]
    says: list[str]
    probabilities: Tensor
    cross: Tensor


@cache
def _translator() -> tuple[Transformer, Vocabulary, Vocabulary]:
    """The network with the weights that a page computes with, and its English and French vocabularies."""
    stored = load_model("translator_fr")
    english, french = map(Vocabulary.from_tokens, stored.vocabularies.values())
    return stored.for_page().network(Transformer), english, french


def tokens_of(sentence: str) -> list[str]:
    """The tokens that the page reads: a sentence without a final mark gets a full stop."""
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
    """A greedy translation with its probabilities and weights; an unknown word is read as `<unk>`.

    Args:
        sentence: English.
        forbidden: words of it to which no French word may attend, in any head.
        encoder: True: no English word may attend to these words, either; or the English words that may not.
        says: French tokens, `<eos>` last, which take the place of those that the translator would choose.
    """
    model, english, french = _translator()
    tokens = tokens_of(sentence)
    source = torch.tensor([[*english.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    with intervene(model) as acts, record_attention(model) as maps:
        if keys := places_of(forbidden, tokens):
            acts.forbid("cross_attention", keys=keys)
            if encoder is True:
                acts.forbid("encoder.attention", keys=keys)
            elif encoder:
                acts.forbid("encoder.attention", queries=places_of(encoder, tokens), keys=keys)
        said = french.encode(says[:-1]) if says else greedy(model, source, lens, max_len=LONGEST)[0]
        ids = [*said, EOS]
        logits = model(source, lens, torch.tensor([[BOS, *ids[:-1]]]))
    probabilities = logits[0].softmax(dim=-1)[range(len(ids)), ids]
    cross = [weights[0] for name, weights in maps.items() if name.endswith(".cross_attention")]
    words = [french.tokens[token] for token in ids]
    return Trace([*tokens, "<eos>"], words, probabilities, torch.stack(cross))


def places_of(words: str, tokens: list[str]) -> list[int]:
    """The places at which the tokens of a sentence are among these words."""
    wanted = tokenize(words)
    return [index for index, token in enumerate(tokens) if token in wanted]


def forbid(sentence: str, word: str) -> pd.DataFrame:
    """How probable each French word stays if attention to an English word is forbidden; a row for each French word.

    The first column is the French word's weight on the English one in layer 1, head 0. The others are probabilities
    after the same French words: with all attention allowed, without attention of the French words to the English one,
    and without that of the English words, either.
    """
    free = translate(sentence)
    banned = translate(sentence, word, says=free.says)
    banned_in_encoder = translate(sentence, word, encoder=True, says=free.says)
    columns = {
        f"weight on {word}": free.cross[1, 0][:, places_of(word, free.source)].sum(dim=1),
        "all allowed": free.probabilities,
        f"{word} forbidden": banned.probabilities,
        f"{word} forbidden, also in the encoder": banned_in_encoder.probabilities,
    }
    return pd.DataFrame(columns, index=free.says).round(2)
