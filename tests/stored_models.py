"""The stored models that a page sees, as PyTorch's: what its answers are compared with."""

from functools import cache

from torch import nn

from course_utils.data.text import Vocabulary
from course_utils.kit.live import bundle, network_of
from course_utils.models.language import BERT, GPT
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT

KINDS = {
    "bahdanau": AttentionTranslator,
    "bert": BERT,
    "everyday": Transformer,
    "gpt": GPT,
    "translator": Transformer,
    "vit": ViT,
}


@cache
def network(name: str) -> nn.Module:
    """With the weights of the bundle."""
    return network_of(KINDS[name.split("_")[0]], bundle(name))


@cache
def words(side: str) -> Vocabulary:
    """Of both translators, "source" or "target"."""
    return Vocabulary.of_tokens(bundle("translator_fr")["vocabularies"][side])
