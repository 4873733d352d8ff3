"""Recurrent translators: a GRU encoder and decoder, with a fixed context and with attention.

Cho et al. (2014) squeeze the source into one vector; Bahdanau, Cho and Bengio (2015) let the decoder
look back at every source position. The two classes differ in nothing but the context. Above:
`attention`. Below: `training` and `decoding`. Taught in *Bahdanau attention*.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.attention import AdditiveAttention, padding_mask
from course_utils.cpu import Dropout, Linear, gru, gru_gates, linear


@dataclass
class RecurrentState:
    """A translation under way: the encoded source and the decoder's hidden state.

    Attributes:
        hidden: (batch, hidden_dim), the decoder's state after the tokens so far.
        memory: (batch, source length, 2 · hidden_dim), the encoder's state at each source token.
        mask: (batch, 1, source length), True at real source tokens.
        summary: (batch, 2 · hidden_dim), the encoder's last states, or, with attention, the
            projected keys (batch, source length, hidden_dim).
    """

    hidden: Tensor
    memory: Tensor
    mask: Tensor
    summary: Tensor

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, (new batch,): a beam's survivors."""
        self.hidden, self.memory = self.hidden[rows], self.memory[rows]
        self.mask, self.summary = self.mask[rows], self.summary[rows]


class RecurrentTranslator(nn.Module):
    """GRU encoder–decoder whose decoder sees the same summary of the source at every step.

    The encoder reads the source in both directions. The decoder's input is the last target token's
    embedding joined with the context; its output, joined with the context, gives the logits.

    Args:
        source_size, target_size: numbers of tokens in the two vocabularies.
        embed_dim: size of the token embeddings.
        hidden_dim: size of the decoder's state, and of each direction of the encoder's.
        dropout: on embeddings and before the logits.
        pad: id of the padding token.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        embed_dim: int = 256,
        hidden_dim: int = 256,
        dropout: float = 0.1,
        pad: int = 0,
    ):
        super().__init__()
        self.pad = pad
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=pad)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=pad)
        self.encoder = nn.GRU(embed_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.bridge = Linear(2 * hidden_dim, hidden_dim)
        self.decoder = nn.GRUCell(embed_dim + 2 * hidden_dim, hidden_dim)
        self.dropout = Dropout(dropout)
        self.combine = Linear(3 * hidden_dim, embed_dim)
        self.head = Linear(embed_dim, target_size)

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Logits for teacher forcing.

        Args:
            source: (batch, source length) token ids.
            source_lens: (batch,) numbers of real tokens, at least 1.
            target: (batch, target length) token ids, shifted right: begins with `<bos>`.

        Returns:
            (batch, target length, target_size).
        """
        return self.head(self.features(source, source_lens, target))

    def features(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """What `head` turns into logits: (batch, target length, embed_dim)."""
        state = self.start(source, source_lens)
        tokens, for_context = self._read(target)
        outputs, weights = [], []
        for token in tokens.unbind(dim=1):
            outputs.append(self._advance(token, for_context, state, weights))
        self._note_weights(weights)
        return self._combined(torch.stack(outputs, dim=1))

    def start(self, source: Tensor, source_lens: Tensor) -> RecurrentState:
        """Encode the source once, before the first `step`."""
        embedded = self.dropout(self.source_embedding(source))
        memory, last = gru(self.encoder, embedded, source_lens)
        summary = torch.cat([last[0], last[1]], dim=-1)
        mask = padding_mask(source_lens, source.shape[1]).squeeze(1)
        return RecurrentState(self.bridge(summary).tanh(), memory, mask, summary)

    def step(self, tokens: Tensor, state: RecurrentState) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens` (batch,); the state moves on."""
        return self.head(self._combined(self._advance(*self._read(tokens), state, [])))

    def _read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """What the tokens' embeddings say to the GRU, (…, 3 · hidden_dim), and its weight for contexts."""
        embedded = self.dropout(self.target_embedding(tokens))
        for_token, for_context = self.decoder.weight_ih.tensor_split([embedded.shape[-1]], dim=1)
        return linear(embedded, for_token, self.decoder.bias_ih), for_context.contiguous()

    def _advance(
        self, token: Tensor, for_context: Tensor, state: RecurrentState, weights: list[Tensor]
    ) -> Tensor:
        """Feed one token as `_read` gives it, (batch, 3 · hidden_dim); return state and context, joined."""
        context = self._context(state, weights)
        from_hidden = linear(state.hidden, self.decoder.weight_hh, self.decoder.bias_hh)
        state.hidden = gru_gates(token + linear(context, for_context), from_hidden, state.hidden)
        return torch.cat([state.hidden, context], dim=-1)

    def _combined(self, outputs: Tensor) -> Tensor:
        return self.dropout(self.combine(outputs).tanh())

    def _context(self, state: RecurrentState, weights: list[Tensor]) -> Tensor:
        """What the decoder knows of the source at this step: (batch, 2 · hidden_dim)."""
        return state.summary

    def _note_weights(self, weights: list[Tensor]) -> None:
        """Nothing to record: a fixed context has no weights."""


class AttentionTranslator(RecurrentTranslator):
    """The same, but the context is an average of the encoder's states that attention weights.

    The query is the decoder's last hidden state; keys and values are the encoder's states.
    Bahdanau, Cho and Bengio (2015), section 3.1.
    """

    def __init__(self, source_size: int, target_size: int, *, hidden_dim: int = 256, **sizes):
        super().__init__(source_size, target_size, hidden_dim=hidden_dim, **sizes)
        self.attention = AdditiveAttention(hidden_dim, 2 * hidden_dim, hidden_dim)

    def start(self, source: Tensor, source_lens: Tensor) -> RecurrentState:
        """Encode the source, and project the keys, once."""
        state = super().start(source, source_lens)
        state.summary = self.attention.key_proj(state.memory)
        return state

    def _context(self, state: RecurrentState, weights: list[Tensor]) -> Tensor:
        query = state.hidden.unsqueeze(1)
        context, row = self.attention.step(query, state.summary, state.memory, state.mask)
        weights.append(row)
        return context.squeeze(1)

    def _note_weights(self, weights: list[Tensor]) -> None:
        self.attention._note(lambda: torch.cat(weights, dim=1))
