"""What attention costs in *Attention at length*: memory and seconds of one head, measured in a process of its own."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.attention_at_length import blocks

DIM, SIZE = 64, 256
"""Size of a head, and keys in a block."""
LENGTHS = tuple(1024 * 2**i for i in range(5))
WAYS = {
    "whole matrix": blocks.with_matrix,
    "blocks, weights kept": lambda q, k, v: blocks.in_blocks(q, k, v, SIZE)[0],
    "blocks, weights again": lambda q, k, v: blocks.InBlocks.apply(q, k, v, SIZE),
    "fused": blocks.fused,
}
"""Name → attention of (n, 64) queries, keys and values."""
MEGABYTE = 1e6


def _status(field: str) -> float:
    """Megabytes that Linux has counted for this process: VmRSS is what it holds now, VmHWM the most so far."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith(field))


def _measured(way: str, n: int) -> dict[str, float]:
    """CPU seconds of a call and its gradients, and the megabytes that they needed at most beside the inputs."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    attend = WAYS[way]
    for length in (300, n):  # the first call loads what PyTorch loads only then
        q, k, v = (torch.randn(length, DIM, requires_grad=True) for _ in range(3))
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the most so far = now
        before, began = _status("VmRSS"), time.process_time()
        attend(q, k, v).sum().backward()
        seconds, most = time.process_time() - began, _status("VmHWM") - before
    return {"seconds": seconds, "MB": most}


def in_a_process(way: str, n: int, *, returned: bool = False) -> dict[str, float]:
    """The same in a new process, so that nothing is left of what was measured before. On Linux only.

    Args:
        way: one of `WAYS`.
        n: how many tokens.
        returned: whether memory that is free goes back to the system at once, and so counts no more. It takes time.
    """
    call = [sys.executable, "-m", __name__, json.dumps([way, n])]
    options = {"MALLOC_MMAP_THRESHOLD_": "1000000"} if returned else {}
    run = subprocess.run(call, env=os.environ | options, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


@stored(
    cases=[{"way": way, "n": n} for way in WAYS for n in LENGTHS],
    times=("seconds", "MB"),
)
def cost(*, way: str, n: int) -> dict:
    """The least time of three calls, and the memory of another one."""
    seconds = min(in_a_process(way, n)["seconds"] for _ in range(3))
    return {"result": {"seconds": seconds, "MB": in_a_process(way, n, returned=True)["MB"]}}


if __name__ == "__main__":
    print(json.dumps(_measured(*json.loads(sys.argv[1]))))
