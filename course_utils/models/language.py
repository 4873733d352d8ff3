"""Language models: GPT, whose tokens attend to the left, and BERT, whose tokens attend both ways.

Both are stacks of `layers.EncoderLayer`, whose arguments give the variants of later models such as Llama.
Taught in *GPT* and *BERT and transfer*.
"""

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.arguments import check_positive
from course_utils.cache import KVCache
from course_utils.layers import EncoderLayer, make_norm
from course_utils.masks import padding_mask
from course_utils.positions import Rotation


class LanguageModel(nn.Module):
    """Base class of `GPT` and `BERT`: token embeddings, blocks with the norm first, and an output layer.

    Args:
        vocab_size: number of tokens.
        embed_dim, num_heads, num_layers, dropout, bias: as in `layers.EncoderLayer`.
        ffn_dim: width of the position-wise network; 4 · embed_dim by default, for "swiglu" two thirds
            of that, which keeps the number of parameters.
        activation: "gelu", "gelu_tanh", "relu" or "swiglu".
        norm: "layer" or "rms".
        eps: as in `layers.EncoderLayer`.
        rotary: rotate queries and keys by their positions, instead of adding learned positions.
        rotary_base: as in `layers.EncoderLayer`.
        num_kv_heads: heads of keys and values; `num_heads` by default.
        max_len: rows of the table of learned positions; rotary models have no table and no limit.
        tied: whether the output layer has the embedding's weights; Press and Wolf (2017), "Using the
            output embedding to improve language models".

    Raises:
        ValueError: a size or a name is out of range; when called, `tokens` is empty or longer than
            the table.
    """

    is_causal = False
    """Whether a token attends only to itself and to those before it."""

    def __init__(
        self,
        vocab_size: int,
        *,
        embed_dim: int = 128,
        num_heads: int = 4,
        num_layers: int = 2,
        ffn_dim: int | None = None,
        dropout: float = 0.1,
        activation: str = "gelu",
        norm: str = "layer",
        eps: float = 1e-5,
        rotary: bool = False,
        rotary_base: float = 10_000.0,
        num_kv_heads: int | None = None,
        bias: bool = True,
        max_len: int = 128,
        tied: bool = True,
    ):
        super().__init__()
        check_positive(vocab_size=vocab_size, num_layers=num_layers)
        if ffn_dim is None:
            ffn_dim = 8 * embed_dim // 3 if activation == "swiglu" else 4 * embed_dim
        self.max_len = None if rotary else max_len
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = None if rotary else nn.Embedding(max_len, embed_dim)
        self.rotary_dim = embed_dim // num_heads if rotary else None
        self.rotary_base = rotary_base
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                embed_dim,
                num_heads,
                ffn_dim,
                dropout=dropout,
                norm_first=True,
                activation=activation,
                norm=norm,
                eps=eps,
                rotary=rotary,
                rotary_base=rotary_base,
                num_kv_heads=num_kv_heads,
                bias=bias,
            )
            for _ in range(num_layers)
        )
        self.norm = make_norm(norm, embed_dim, eps=eps)
        self.output = nn.Linear(embed_dim, vocab_size, bias=False)
        if tied:
            self.output.weight = self.embedding.weight
        # Positions start as large as token embeddings: smaller ones are learned late, above all by BERT.
        for table in filter(None, (self.embedding, self.positions)):
            nn.init.normal_(table.weight, std=embed_dim**-0.5)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (batch, length, vocab_size).

        Args:
            tokens: (batch, length) ids, padded on the right.
            lengths: (batch,) numbers of real tokens; all are real by default.
        """
        return self.output(self.features(tokens, lengths))

    def features(
        self,
        tokens: Tensor,
        lengths: Tensor | None = None,
        *,
        caches: list[KVCache] | None = None,
    ) -> Tensor:
        """Vectors that `output` maps to logits, (batch, length, embed_dim).

        Args:
            tokens, lengths: as in `forward`.
            caches: one per layer; the tokens then follow those in the caches.
        """
        start = caches[0].length if caches else 0
        self._check(tokens, start)
        x = self.embedding(tokens)
        if self.positions is not None:
            positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
            x = x + self.positions(positions)
        rotation = None
        if self.rotary_dim is not None:
            rotation = Rotation(
                tokens.shape[1],
                self.rotary_dim,
                start=start,
                base=self.rotary_base,
                device=tokens.device,
            )
        x = self.dropout(x)
        # A causal model needs no mask for padding, which is on the right.
        attn_mask = None
        if lengths is not None and not self.is_causal:
            attn_mask = padding_mask(lengths, tokens.shape[1])
        for i, layer in enumerate(self.layers):
            cache = caches[i] if caches else None
            x = layer(x, attn_mask, is_causal=self.is_causal, cache=cache, rotation=rotation)
        return self.norm(x)

    def _check(self, tokens: Tensor, start: int) -> None:
        """Raise ValueError unless these are ids (batch, length) that fit the table of positions."""
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ValueError(
                f"tokens has shape {tuple(tokens.shape)}; (batch, length) with a length of at "
                "least 1 is needed"
            )
        end = start + tokens.shape[1]
        if self.max_len is not None and end > self.max_len:
            raise ValueError(
                f"positions {start} to {end - 1} do not fit a table of max_len={self.max_len}"
            )


class GPT(LanguageModel):
    """Decoder-only language model: each token attends to itself and those before it, and predicts the next.

    Radford et al. (2018), "Improving language understanding by generative pre-training", with the
    norm first as in GPT-2 (Radford et al., 2019). Arguments as in `LanguageModel`.
    """

    is_causal = True

    def start(self) -> "TextState":
        """State before the first `step`: empty caches."""
        return TextState([KVCache() for _ in self.layers])

    def step(self, tokens: Tensor, state: "TextState") -> Tensor:
        """Logits (batch, vocab_size) of the next token; updates the state.

        Args:
            tokens: ids of the new tokens, (batch,) or (batch, new).
            state: the tokens read so far.
        """
        tokens = tokens[:, None] if tokens.ndim == 1 else tokens
        return self.output(self.features(tokens, caches=state.caches)[:, -1])


@dataclass
class TextState:
    """Keys and values of the tokens read so far, in a cache per layer."""

    caches: list[KVCache]

    @property
    def length(self) -> int:
        """Number of tokens read so far."""
        return self.caches[0].length

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: (new batch,)."""
        for cache in self.caches:
            cache.reorder(rows)

    def __copy__(self) -> "TextState":
        """A state that goes on from the same tokens, independent of this one."""
        return TextState([copy(cache) for cache in self.caches])


class BERT(LanguageModel):
    """Encoder-only language model: each token attends to the whole sentence, to predict masked tokens.

    Devlin et al. (2019), "BERT: pre-training of deep bidirectional transformers for language
    understanding", with the norm first, and without sentence pairs and their segment embeddings.
    Arguments as in `LanguageModel`.
    """


class SentenceClassifier(nn.Module):
    """Linear classifier of a language model's features, averaged over the real tokens.

    Args:
        body: a `GPT` or `BERT`, pretrained or not; its weights are trained, too, and not copied.
        num_classes: number of classes.
    """

    def __init__(self, body: LanguageModel, num_classes: int):
        super().__init__()
        self.body = body
        self.output = nn.Linear(body.embedding.embedding_dim, num_classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Logits (batch, num_classes) of ids (batch, length), of which (batch,) `lengths` are real.

        A sentence without tokens has the average zero.
        """
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        features = self.body.features(tokens, lengths) * real[..., None]
        return self.output(features.sum(dim=1) / lengths.clamp(min=1)[:, None])
