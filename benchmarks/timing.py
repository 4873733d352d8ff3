"""What a benchmark is made of: passes of training, races, rows, and the table they stand in."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

import torch
from torch import Tensor, nn

LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Settings:
    """How much to run.

    Attributes:
        rounds: how often each contender runs; they take turns.
        tiny: sizes that only show that everything works.
        clock: seconds of what; CPU seconds of one thread bear other load on the machine.
        device: where `device` races, "cpu" or "cuda".
    """

    rounds: int = 7
    tiny: bool = False
    clock: Callable[[], float] = time.perf_counter
    device: str = "cpu"


@dataclass
class Row:
    """One comparison.

    Attributes:
        name: by which `--only` finds it.
        what: a line for people.
        unit: of `ours` and `peer`.
        ours: our median.
        peer: the other's median.
        ratio: what the target speaks of; the median over the rounds.
        target: the ratio wanted; None for a row that only informs.
        at_most: the target is an upper bound.
        note: what else there is to know.
        problem: why there are no numbers.
    """

    name: str
    what: str
    unit: str = ""
    ours: float | None = None
    peer: float | None = None
    ratio: float | None = None
    target: float | None = None
    at_most: bool = False
    note: str = ""
    problem: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is no target or no number."""
        if self.ratio is None or self.target is None:
            return None
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target

    def as_dict(self) -> dict:
        """What the JSON holds."""
        return asdict(self) | {"met": self.met}


def training(
    model: nn.Module,
    batches: Callable[[], Iterable],
    loss: Callable[[nn.Module, object], Tensor],
    *,
    epochs: int = 1,
) -> Callable[[], None]:
    """A round of plain training, the same for every contender: only model, batches and loss differ.

    Adam as `torch.optim` has it by default (not fused), gradients clipped at norm 1, float32.

    Args:
        model: whose parameters are trained on from round to round.
        batches: called for each epoch.
        loss: (model, batch) → mean loss.
        epochs: in a round.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    model.train()

    def run() -> None:
        for _ in range(epochs):
            for batch in batches():
                value = loss(model, batch)
                optimizer.zero_grad()
                value.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()

    return run


def race(
    ours: Callable[[], object], peer: Callable[[], object], settings: Settings
) -> tuple[list[float], list[float]]:
    """Seconds of each in every round: ours, peer, peer, ours, ours, …, after a round that warms up.

    The two take turns, so that whatever else the machine does hits both; and who begins changes.
    """
    ours(), peer()
    times = {ours: [], peer: []}
    for number in range(settings.rounds):
        for contender in (ours, peer) if number % 2 == 0 else (peer, ours):
            began = settings.clock()
            contender()
            times[contender].append(settings.clock() - began)
    return times[ours], times[peer]


def synchronized() -> float:
    """Seconds on the wall clock, when the GPU has done all that it was told."""
    torch.cuda.synchronize()
    return time.perf_counter()


def faster(ours: list[float], peer: list[float]) -> float:
    """How many times as fast we are: the median over the rounds of peer's time by ours."""
    return statistics.median(theirs / mine for mine, theirs in zip(ours, peer, strict=True))


def rate(amount: float, seconds: list[float]) -> float:
    """`amount` per second, by the median time."""
    return amount / statistics.median(seconds)


def size(model: nn.Module) -> str:
    """Number of parameters, in thousands."""
    return f"{sum(p.numel() for p in model.parameters()) / 1e3:,.0f} k"


def conditions() -> dict:
    """Machine, date and versions."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "vector": torch.backends.cpu.get_cpu_capability(),
        "system": platform.platform(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(rows: list[Row]) -> str:
    """The rows as text: a line each, and what there is to say about it under it."""
    lines = [f"{'':<46}{'ours':>9}{'peer':>9}  {'unit':<15}{'ratio':>6}  target"]
    for row in rows:
        if row.problem:
            lines.append(f"{row.what:<46}  not measured: {row.problem}")
            continue
        target = "" if row.target is None else f"{'≤' if row.at_most else '≥'} {row.target:g}"
        verdict = {True: "met", False: "MISSED", None: ""}[row.met]
        lines.append(
            f"{row.what:<46}{row.ours:>9.4g}{row.peer:>9.4g}  {row.unit:<15}{row.ratio:>6.2f}"
            f"  {target} {verdict}".rstrip()
        )
        if row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)
