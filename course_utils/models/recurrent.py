"""Recurrent translators: a GRU encoder and decoder, with a fixed context and with attention.

Cho et al. (2014) encode the source in one vector; Bahdanau, Cho and Bengio (2015) let the decoder attend
to every source position. The two classes differ only in the context. Taught in *Sequence to sequence* and
*Bahdanau attention*.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils.attention import AdditiveAttention
from course_utils.masks import padding_mask


@dataclass
class RecurrentState:
    """A translation under way: the encoded source and the decoder's hidden state.

    Attributes:
        hidden: (num_layers, batch, hidden_dim), the decoder's state after the tokens so far.
        memory: (batch, source length, 2 · hidden_dim), the encoder's state at each source token.
        mask: (batch, 1, source length), True at real source tokens.
        context: (batch, 2 · hidden_dim), the encoder's last states in both directions.
        keys: (batch, source length, hidden_dim), the attention's projection of the memory; None without
            attention.
        length: number of target tokens read so far.
    """

    hidden: Tensor
    memory: Tensor
    mask: Tensor
    context: Tensor
    keys: Tensor | None = None
    length: int = 0

    def repeat(self, times: int) -> None:
        """Replace each sentence by `times` copies, side by side: a row of the batch for each beam."""
        self.hidden = self.hidden.repeat_interleave(times, dim=1)
        self.memory = self.memory.repeat_interleave(times, dim=0)
        self.mask = self.mask.repeat_interleave(times, dim=0)
        self.context = self.context.repeat_interleave(times, dim=0)
        if self.keys is not None:
            self.keys = self.keys.repeat_interleave(times, dim=0)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,).

        What comes from the source is the same for all beams of a sentence and stays where it is.
        """
        self.hidden = self.hidden[:, rows]


class RecurrentTranslator(nn.Module):
    """GRU encoder–decoder whose decoder reads the same vector, the context, at every step.

    The encoder reads the source in both directions, and c is its last states. The decoder's input at step t is
    the embedding of the last target token, concatenated with c; its output s_t, concatenated with c, gives the
    logits:

        s_t = GRU([E y_{t−1}; c], s_{t−1}),  logits_t = W_o tanh(W_c [s_t; c] + b_c) + b_o

    Cho et al. (2014), "Learning phrase representations using RNN encoder–decoder for statistical
    machine translation", section 2.2.

    Args:
        source_size, target_size: numbers of tokens in the two vocabularies.
        embed_dim: size of the token embeddings.
        hidden_dim: size of the decoder's state, and of each direction of the encoder's.
        num_layers: number of GRU layers on top of each other, in the encoder and in the decoder.
        dropout: on embeddings, between GRU layers, and before the logits.
        pad: id of the padding token.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        embed_dim: int = 256,
        hidden_dim: int = 256,
        num_layers: int = 1,
        dropout: float = 0.1,
        pad: int = 0,
    ):
        super().__init__()
        self.pad = pad
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=pad)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=pad)
        between = dropout if num_layers > 1 else 0.0
        self.encoder = nn.GRU(
            embed_dim, hidden_dim, num_layers, batch_first=True, dropout=between, bidirectional=True
        )
        self.bridge = nn.Linear(2 * hidden_dim, hidden_dim)
        self.decoder = nn.GRU(
            embed_dim + 2 * hidden_dim, hidden_dim, num_layers, batch_first=True, dropout=between
        )
        self.dropout = nn.Dropout(dropout)
        self.combine = nn.Linear(3 * hidden_dim, embed_dim)
        self.output = nn.Linear(embed_dim, target_size)

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Logits for teacher forcing.

        Args:
            source: (batch, source length) token ids.
            source_lens: (batch,) numbers of real tokens, at least 1.
            target: (batch, target length) token ids, shifted right: begins with `<bos>`.

        Returns:
            (batch, target length, target_size).

        Raises:
            ValueError: a sentence has length 0, or one above the source length.
        """
        return self.output(self.features(source, source_lens, target))

    def features(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Vectors that `output` maps to logits, (batch, target length, embed_dim); as in `forward`."""
        return self.decode(target, self.start(source, source_lens))

    def start(self, source: Tensor, source_lens: Tensor) -> RecurrentState:
        """State before the first `step`: the encoded source; arguments and errors as in `forward`."""
        lengths = source_lens.cpu()
        if (lengths < 1).any():
            raise ValueError(
                f"source_lens contains {lengths.min().item()}; each sentence needs at least 1 token"
            )
        mask = padding_mask(source_lens, source.shape[1]).squeeze(1)
        embedded = self.dropout(self.source_embedding(source))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        # (2 · num_layers, batch, hidden) → (num_layers, batch, 2 · hidden): both directions joined
        last = torch.cat([last[0::2], last[1::2]], dim=-1)
        return RecurrentState(self.bridge(last).tanh(), memory, mask, context=last[-1])

    def step(self, tokens: Tensor, state: RecurrentState) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens`, (batch,) ids; updates the state."""
        return self.output(self.decode(tokens[:, None], state)[:, 0])

    def decode(self, target: Tensor, state: RecurrentState) -> Tensor:
        """Features (batch, length, embed_dim) of target tokens, (batch, length) ids; updates the state."""
        embedded = self.dropout(self.target_embedding(target))
        context = state.context[:, None].expand(-1, target.shape[1], -1)
        outputs, state.hidden = self.decoder(torch.cat([embedded, context], dim=-1), state.hidden)
        return self._combined(outputs, context)

    def _combined(self, outputs: Tensor, context: Tensor) -> Tensor:
        """tanh(W_c [s; c] + b_c), (batch, length, embed_dim), with dropout."""
        return self.dropout(self.combine(torch.cat([outputs, context], dim=-1)).tanh())


class AttentionTranslator(RecurrentTranslator):
    """`RecurrentTranslator` whose context at each step is the encoder's states, averaged by attention.

    The query is the decoder's last hidden state (of its top layer); keys and values are the encoder's
    states h_j:

        c_t = Σ_j α_tj h_j,  α_t = softmax_j(wᵀ tanh(W_q s_{t−1} + W_k h_j))

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", section 3.1. Arguments as in `RecurrentTranslator`.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        hidden_dim: int = 256,
        **options: Any,
    ):
        super().__init__(source_size, target_size, hidden_dim=hidden_dim, **options)
        self.attention = AdditiveAttention(hidden_dim, 2 * hidden_dim, hidden_dim)

    def start(self, source: Tensor, source_lens: Tensor) -> RecurrentState:
        """State before the first `step`: the encoded source, and its projected keys."""
        state = super().start(source, source_lens)
        state.keys = self.attention.key_proj(state.memory)
        return state

    def decode(self, target: Tensor, state: RecurrentState) -> Tensor:
        """Features (batch, length, embed_dim) of target tokens, (batch, length) ids; updates the state."""
        queries, outputs, contexts = [], [], []
        start = state.length
        for token in self.dropout(self.target_embedding(target)).split(1, dim=1):
            query = state.hidden[-1].unsqueeze(1)  # (batch, 1, hidden_dim)
            context = self._attend(query, state, state.length)
            output, state.hidden = self.decoder(torch.cat([token, context], dim=-1), state.hidden)
            state.length += 1
            queries.append(query)
            outputs.append(output)
            contexts.append(context)
        if self.attention.is_recorded:
            # Record one map of all steps, (batch, target length, source length), instead of a row each.
            with torch.no_grad():
                self._attend(torch.cat(queries, dim=1), state, start)
        return self._combined(torch.cat(outputs, dim=1), torch.cat(contexts, dim=1))

    def _attend(self, queries: Tensor, state: RecurrentState, start: int) -> Tensor:
        """Contexts of queries (batch, queries, hidden_dim) from position `start` on."""
        return self.attention(
            queries, state.memory, state.memory, state.mask, projected_keys=state.keys, start=start
        )
