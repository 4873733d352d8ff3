"""The translators of "Dive into Deep Learning" (version 1.0.3), put together from the parts in its package.

The package holds d2l.TransformerEncoder, d2l.Seq2SeqEncoder, the attentions, AddNorm, PositionWiseFFN
and Seq2Seq. The two decoders and the masked loss stand only in the book, in sections 11.7, 11.4 and
10.7; here they are assembled thinly from the package's parts, to the same operations.
"""

import math
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from course_utils.data.text import BOS, EOS, PAD


def transformer(
    d2l: ModuleType, source_size: int, target_size: int, *, dropout: float
) -> nn.Module:
    """256 wide, 2+2 layers, 4 heads, FFN 64: the sizes of the book's section 11.7."""

    class Block(nn.Module):
        def __init__(self, layer: int):
            super().__init__()
            self.layer = layer
            self.attentions = nn.ModuleList(d2l.MultiHeadAttention(256, 4, dropout) for _ in "ab")
            self.ffn = d2l.PositionWiseFFN(64, 256)
            self.norms = nn.ModuleList(d2l.AddNorm(256, dropout) for _ in "abc")

        def forward(self, x, state):
            memory, memory_lens, before = state
            seen = before[self.layer]
            keys = x if seen is None else torch.cat((seen, x), dim=1)
            before[self.layer] = keys
            lens = None
            if self.training:
                lens = torch.arange(1, x.shape[1] + 1, device=x.device).repeat(x.shape[0], 1)
            y = self.norms[0](x, self.attentions[0](x, keys, keys, lens))
            z = self.norms[1](y, self.attentions[1](y, memory, memory, memory_lens))
            return self.norms[2](z, self.ffn(z))

    class Decoder(d2l.Decoder):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(target_size, 256)
            self.positions = d2l.PositionalEncoding(256, dropout)
            self.blocks = nn.ModuleList(Block(layer) for layer in range(2))
            self.dense = nn.LazyLinear(target_size)

        def init_state(self, memory, memory_lens):
            return memory, memory_lens, [None] * len(self.blocks)

        def forward(self, tokens, state):
            x = self.positions(self.embedding(tokens) * math.sqrt(256))
            for block in self.blocks:
                x = block(x, state)
            return self.dense(x), state

    encoder = d2l.TransformerEncoder(source_size, 256, 64, 4, 2, dropout)
    return _translator(d2l, encoder, Decoder())


def bahdanau(
    d2l: ModuleType, source_size: int, target_size: int, *, dropout: float, layers: int = 2
) -> nn.Module:
    """GRU encoder and attention decoder, 256 wide: the sizes of the book's section 11.4."""

    class Decoder(d2l.AttentionDecoder):
        def __init__(self):
            super().__init__()
            self.attention = d2l.AdditiveAttention(256, dropout)
            self.embedding = nn.Embedding(target_size, 256)
            self.rnn = nn.GRU(512, 256, layers, dropout=dropout if layers > 1 else 0.0)
            self.dense = nn.LazyLinear(target_size)

        def init_state(self, encoded, source_lens):
            outputs, hidden = encoded
            return outputs.permute(1, 0, 2), hidden, source_lens

        def forward(self, tokens, state):
            memory, hidden, source_lens = state
            outputs = []
            for x in self.embedding(tokens).permute(1, 0, 2):
                query = hidden[-1].unsqueeze(1)
                context = self.attention(query, memory, memory, source_lens)
                x = torch.cat((context, x.unsqueeze(1)), dim=-1)
                output, hidden = self.rnn(x.permute(1, 0, 2), hidden)
                outputs.append(output)
            logits = self.dense(torch.cat(outputs, dim=0)).permute(1, 0, 2)
            return logits, (memory, hidden, source_lens)

    encoder = d2l.Seq2SeqEncoder(source_size, 256, 256, layers, dropout if layers > 1 else 0.0)
    return _translator(d2l, encoder, Decoder())


def _translator(d2l: ModuleType, encoder: nn.Module, decoder: nn.Module) -> nn.Module:
    class Translator(d2l.Seq2Seq):
        def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
            each = super().loss(y_hat, y, averaged=False)
            real = (y.reshape(-1) != self.tgt_pad).float()
            return (each * real).sum() / real.sum()

    return Translator(encoder, decoder, tgt_pad=PAD, lr=None)


def batch_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """What d2l.Seq2Seq computes in a training step, without drawing it."""
    return model.loss(model(*batch[:-1]), batch[-1])


def loader(
    encoded: list[tuple[list[int], list[int]]], *, steps: int, batch_size: int
) -> DataLoader:
    """Encoded pairs as d2l lays them out: every sentence padded to `steps` with its `<eos>`."""

    def padded(ids: list[int]) -> list[int]:
        return [*ids, EOS, *[PAD] * steps][:steps]

    source = torch.tensor([padded(source) for source, _ in encoded])
    target = torch.tensor([[BOS, *padded(target)] for _, target in encoded])
    lens = (source != PAD).sum(1).to(torch.int32)
    data = TensorDataset(source, target[:, :-1], lens, target[:, 1:])
    return DataLoader(data, batch_size, shuffle=True)
