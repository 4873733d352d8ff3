"""Language models: GPT reads to the left, BERT reads both ways; all else they share.

Both are stacks of `transformer.EncoderLayer`, whose arguments are what later models such as Llama
changed. Above: `models.transformer`. Below: `training` and `decoding`. Taught in *Pretraining*.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from course_utils.attention import KVCache, causal_mask, padding_mask
from course_utils.layers import make_norm
from course_utils.models.transformer import EncoderLayer
from course_utils.positions import LearnedPositions


class LanguageModel(nn.Module):
    """Token embeddings, blocks with the norm first, and a head that shares the embeddings' weights.

    A subclass says who may look at whom. The head is tied to the embedding as in Press and Wolf
    (2017), "Using the output embedding to improve language models".

    Args:
        vocab_size: number of tokens.
        embed_dim, num_heads, num_layers, dropout, bias: as in `transformer.EncoderLayer`.
        ffn_dim: width of the position-wise network; 4 · embed_dim by default, for "swiglu" two thirds
            of that, which keeps the number of parameters.
        activation: "gelu", "relu" or "swiglu".
        norm: "layer" or "rms".
        rotary: turn queries and keys by their positions, instead of adding learned ones.
        num_kv_heads: heads of keys and values; `num_heads` by default.
        max_len: rows of the table of learned positions; rotary models have no table.

    Raises:
        ValueError: a size or a name is out of range; when called, `tokens` is empty or longer than
            the table.
    """

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
        rotary: bool = False,
        num_kv_heads: int | None = None,
        bias: bool = True,
        max_len: int = 128,
    ):
        super().__init__()
        for name, value in (("vocab_size", vocab_size), ("num_layers", num_layers)):
            if value < 1:
                raise ValueError(f"{name}={value}; at least 1 is needed")
        if ffn_dim is None:
            ffn_dim = 8 * embed_dim // 3 if activation == "swiglu" else 4 * embed_dim
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        nn.init.normal_(self.embedding.weight, std=embed_dim**-0.5)
        self.positions = None if rotary else LearnedPositions(embed_dim, max_len=max_len)
        if (
            self.positions is not None
        ):  # as loud as the tokens from the start: BERT needs to hear them
            nn.init.normal_(self.positions.table, std=embed_dim**-0.5)
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
                rotary=rotary,
                num_kv_heads=num_kv_heads,
                bias=bias,
            )
            for _ in range(num_layers)
        )
        self.norm = make_norm(norm, embed_dim)
        self.head = nn.Linear(embed_dim, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (batch, length, vocab_size).

        Args:
            tokens: (batch, length) ids, padded on the right.
            lengths: (batch,) numbers of real tokens; all are real by default.
        """
        return self.head(self.features(tokens, lengths))

    def features(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """What `head` turns into logits: (batch, length, embed_dim)."""
        return self._encode(tokens, self.attn_mask(tokens, lengths))

    def attn_mask(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor | None:
        """Who may look at whom, broadcasting to (batch, heads, length, length); None: all at all."""
        raise NotImplementedError

    def _encode(
        self, tokens: Tensor, attn_mask: Tensor | None, caches: list[KVCache] | None = None
    ) -> Tensor:
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ValueError(
                f"tokens has shape {tuple(tokens.shape)}; (batch, length) with a length of at "
                "least 1 is needed"
            )
        x = self.embedding(tokens)
        if self.positions is not None:
            x = self.positions(x, start=caches[0].length if caches else 0)
        x = self.dropout(x)
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x = layer(x, attn_mask, cache=cache)
        return self.norm(x)


@dataclass
class TextState:
    """A text under way: a cache per layer."""

    caches: list[KVCache] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Number of tokens read so far."""
        return self.caches[0].length

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, (new batch,)."""
        for cache in self.caches:
            cache.reorder(rows)


class GPT(LanguageModel):
    """Decoder-only: each token sees itself and what stands before it, and names the next one.

    Radford et al. (2018), "Improving language understanding by generative pre-training", with the
    norm first as in GPT-2 (Radford et al., 2019).
    """

    def attn_mask(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Causal, (length, length); padding stands on the right, so it is hidden already."""
        return causal_mask(tokens.shape[1], device=tokens.device)

    def start(self) -> TextState:
        """Nothing read so far."""
        return TextState([KVCache() for _ in self.layers])

    def step(self, tokens: Tensor, state: TextState) -> Tensor:
        """Read `tokens`, (batch,) or (batch, new), on the cache: logits (batch, vocab_size) of the next.

        The state moves on.
        """
        tokens = tokens[:, None] if tokens.ndim == 1 else tokens
        new, seen = tokens.shape[1], state.length
        mask = None
        if new > 1:  # rows of the new tokens, columns of all
            mask = causal_mask(seen + new, device=tokens.device)[seen:]
        return self.head(self._encode(tokens, mask, state.caches)[:, -1])


class BERT(LanguageModel):
    """Encoder-only: each token sees the whole sentence; trained to restore masked tokens.

    Devlin et al. (2019), "BERT: pre-training of deep bidirectional transformers for language
    understanding", with the norm first, and without sentence pairs and their segment embeddings.
    """

    def attn_mask(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor | None:
        """All real tokens: (batch, 1, 1, length)."""
        return None if lengths is None else padding_mask(lengths, tokens.shape[1])


class SentenceClassifier(nn.Module):
    """A language model's features, averaged over the real tokens, and a linear layer on top.

    Args:
        body: a `GPT` or `BERT`, pretrained or not; trained further, not copied.
        num_classes: number of classes.
    """

    def __init__(self, body: LanguageModel, num_classes: int):
        super().__init__()
        self.body = body
        self.classify = nn.Linear(body.embedding.embedding_dim, num_classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(batch, length) ids and (batch,) lengths → logits (batch, num_classes)."""
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        features = self.body.features(tokens, lengths) * real[..., None]
        return self.classify(features.sum(dim=1) / lengths[:, None])
