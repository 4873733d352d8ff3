"""Decoding on the cache: what the t-th token costs, and what recomputing everything would."""

import statistics

import torch

from benchmarks.timing import Row, Settings, faster, race
from course_utils.data.text import BOS
from course_utils.models.transformer import Transformer


def _model(length: int) -> Transformer:
    torch.manual_seed(0)
    return Transformer(1000, 1000, ffn_dim=64, dropout=0.0, max_len=length + 1).eval()


def _source(batch: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(4, 1000, (batch, 10)), torch.full((batch,), 10)


@torch.inference_mode()
def flat(settings: Settings) -> Row:
    """The last tokens' cost by the first ones', up to token 512."""
    length, window = (32, 8) if settings.tiny else (512, 32)
    model, source = _model(length), _source()
    token = torch.tensor([BOS])
    firsts, lasts = [], []
    for _ in range(1 + settings.rounds):
        state, seconds = model.start(*source), []
        for _ in range(length):
            began = settings.clock()
            model.step(token, state)
            seconds.append(settings.clock() - began)
        firsts.append(statistics.median(seconds[:window]))
        lasts.append(statistics.median(seconds[-window:]))
    firsts, lasts = firsts[1:], lasts[1:]
    return Row(
        "cache-flat",
        f"Token {length} against the first ones",
        "ms/token",
        ours=1e3 * statistics.median(lasts),
        peer=1e3 * statistics.median(firsts),
        ratio=statistics.median(last / first for first, last in zip(firsts, lasts, strict=True)),
        target=1.3,
        at_most=True,
        note=f"ours: the last {window} tokens, peer: the first {window}, on the cache, one sentence",
    )


@torch.inference_mode()
def recomputing(settings: Settings) -> Row:
    """Greedy decoding of 256 tokens, on the cache and without."""
    length = 16 if settings.tiny else 256
    model, source = _model(length), _source()

    def cached() -> None:
        state, token = model.start(*source), torch.tensor([BOS])
        for _ in range(length):
            token = model.step(token, state).argmax(-1)

    def recomputed() -> None:
        memory, mask = model.encode(*source)
        target = torch.tensor([[BOS]])
        for _ in range(length):
            hidden = model.decode(target, memory, mask)
            target = torch.cat([target, model.output(hidden[:, -1]).argmax(-1)[:, None]], dim=1)

    mine, theirs = race(cached, recomputed, settings)
    return Row(
        "cache-recomputing",
        f"{length} tokens on the cache against recomputing",
        "ms/token",
        ours=1e3 * statistics.median(mine) / length,
        peer=1e3 * statistics.median(theirs) / length,
        ratio=faster(mine, theirs),
        target=5.0,
        note="recomputing encodes the source once and makes logits of the last token only",
    )


ROWS = {"cache-flat": flat, "cache-recomputing": recomputing}
