"""Running totals: a task of which each part of a Transformer does something, and models without one part.

The source is a row of digits from 0 to 4, the target what each running total leaves when it is divided by 5:
3 4 4 2 → 3 2 1 3, as the totals are 3, 7, 11, 13. The next digit follows from the one that was just written and from
one of the source, by a table of 5 · 5 entries.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.text import BOS, EOS, PAD
from course_utils.data.translation import Batch
from course_utils.layers import DecoderLayer, EncoderLayer
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay

HOURS = 5
"""The digits are 0 to 4, and a total that reaches 5 begins again at 0."""
FIRST, SIZE = 4, 4 + HOURS
"""Id of digit 0, behind the special tokens; number of tokens in both vocabularies."""
SHORTEST, LONGEST = 3, 6
SIZES = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 256, "num_layers": 1, "dropout": 0.0}

# The task ---------------------------------------------------------------------------------------


def batch_of(digits: Tensor, lengths: Tensor) -> Batch:
    """The pairs of rows of digits, as the translators of the course get them.

    Args:
        digits: (batch, longest), 0 to 4; what stands behind a row's length is not read.
        lengths: (batch,), digits of each row.
    """
    places = torch.arange(digits.shape[1] + 1)
    behind, at_end = places > lengths[:, None], places == lengths[:, None]

    def closed(rows: Tensor) -> Tensor:
        ids = F.pad(rows + FIRST, (0, 1)).masked_fill(at_end, EOS)
        return ids.masked_fill(behind, PAD)

    targets = closed(digits.cumsum(dim=1) % HOURS)
    read = F.pad(targets[:, :-1], (1, 0), value=BOS).masked_fill(behind, PAD)
    return Batch(closed(digits), lengths + 1, read, targets, lengths + 1)


def draw(count: int, *, seed: int | torch.Generator, held_out: bool = False) -> Batch:
    """Random rows of 3 to 6 digits.

    Held out are those whose first three digits, read as a number with base 5, are a multiple of 7: no row of the
    test begins like one of the training.
    """
    generator = torch.Generator().manual_seed(seed) if isinstance(seed, int) else seed
    drawn = count * (12 if held_out else 2)
    digits = torch.randint(HOURS, (drawn, LONGEST), generator=generator)
    heads = digits[:, :3] @ torch.tensor([25, 5, 1])
    rows = digits[(heads % 7 == 0) == held_out][:count]
    lengths = torch.randint(SHORTEST, LONGEST + 1, (len(rows),), generator=generator)
    return batch_of(rows[:, : int(lengths.max())], lengths)


# Training and scores ----------------------------------------------------------------------------


def train_totals(
    model: nn.Module, *, steps: int = 250, lr: float = 0.01, batch: int = 64, seed: int = 0
) -> list[float]:
    """Train with Adam, whose rate rises over 50 steps and then falls to 0; the loss per token at each step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_decay(min(50, steps - 1), steps)(step + 1)
    )
    loss, losses = translation_loss(), []
    model.train()
    for _ in range(steps):
        total, count = loss(model, draw(batch, seed=generator))
        optimizer.zero_grad()
        (total / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append((total / count).item())
    return losses


@torch.no_grad()
def score(model: nn.Module, batch: Batch) -> dict[str, float]:
    """Share of right digits, and of rows that are right to the last token, given the right tokens before."""
    with evaluating(model):
        predicted = model(batch.source, batch.source_lens, batch.target_in).argmax(dim=-1)
    right, digits = predicted == batch.target_out, batch.target_out >= FIRST
    whole = (right | (batch.target_out == PAD)).all(dim=1)
    return {"digits": right[digits].float().mean().item(), "rows": whole.float().mean().item()}


# Models without one part ------------------------------------------------------------------------

KINDS = (
    "nothing", "norm after the sum", "no positions", "memory is zero", "no position-wise networks",
    "no residual connections", "no layer norms", "batch norm for layer norm",
)  # fmt: skip
"""What is changed in the model."""


class _Nothing(nn.Module):
    """In the place of positions: the embeddings as they are."""

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        return x


class Silent(nn.Module):
    """In the place of a sublayer: it adds nothing."""

    def forward(self, x: Tensor, *rest, **options) -> Tensor:
        """(…, d) → zeros of the same shape."""
        return torch.zeros_like(x)


class _EncoderWithoutSums(EncoderLayer):
    """f(norm(x)) in the place of x + f(norm(x))."""

    def forward(self, x, attn_mask=None, **options):
        y = self.attention_norm(x)
        x = self.attention(y, y, y, attn_mask)
        return self.feed_forward(self.feed_forward_norm(x))


class _DecoderWithoutSums(DecoderLayer):
    """f(norm(x)) in the place of x + f(norm(x))."""

    def forward(self, x, memory, attn_mask=None, memory_mask=None, *, is_causal=False, cache=None):
        y = self.self_attention_norm(x)
        x = self.self_attention(y, y, y, attn_mask, is_causal=is_causal)
        x = self.cross_attention(self.cross_attention_norm(x), memory, memory, memory_mask)
        return self.feed_forward(self.feed_forward_norm(x))


class _BatchNorm(nn.BatchNorm1d):
    """Each feature over all tokens of the batch, padding included."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mT).mT


class _Blind(Transformer):
    """The memory is zero, whatever was read."""

    def encode(self, source: Tensor, source_lens: Tensor) -> tuple[Tensor, Tensor]:
        memory, mask = super().encode(source, source_lens)
        return 0 * memory, mask


def without(kind: str, seed: int) -> Transformer:
    """The model of the chapter, untrained, with one of the changes of KINDS."""
    torch.manual_seed(seed)
    model_class = _Blind if kind == "memory is zero" else Transformer
    model = model_class(SIZE, SIZE, **SIZES, norm_first=kind != "norm after the sum")
    if kind == "no positions":
        model.positions = _Nothing()
    for block in (*model.encoder, *model.decoder):
        if kind == "no position-wise networks":
            block.feed_forward, block.feed_forward_norm = Silent(), nn.Identity()
        elif kind == "no residual connections":
            encodes = isinstance(block, EncoderLayer)
            block.__class__ = _EncoderWithoutSums if encodes else _DecoderWithoutSums
    for module in (model, *model.encoder, *model.decoder):
        for name in [name for name, _ in module.named_children() if name.endswith("_norm")]:
            if kind == "no layer norms":
                setattr(module, name, nn.Identity())
            elif kind == "batch norm for layer norm":
                setattr(module, name, _BatchNorm(SIZES["embed_dim"]))
    return model
