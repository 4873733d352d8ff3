"""Linear layers and dropout that do the same as PyTorch's, sooner on a CPU.

Both subclass PyTorch's modules: same arguments, same parameters and names in a state_dict, same results up
to rounding; elsewhere, on a GPU for instance, they *are* PyTorch's. Above: nothing of ours. Below:
`attention` and all that has weights.

`Linear`: PyTorch hands matrix products in float32 to Intel's MKL, which leaves AVX-512 unused on the
processors of other makers; oneDNN, which PyTorch carries too, uses it, and is about twice as fast there.
`Dropout`: PyTorch draws a Bernoulli number per element, one after the other; sixteen random bits compared
with a threshold are enough, and take a fifth of the time.
"""

import functools
import platform

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALLEST = 2**22
"""Multiplications below which calling oneDNN costs more than it saves."""


@functools.cache
def _has_slow_mkl() -> bool:
    """Whether PyTorch multiplies through MKL here, on a processor with AVX-512 that is not Intel's."""
    able = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    if not (able and torch.backends.cpu.get_cpu_capability() == "AVX512"):
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    maker = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            maker = next(line for line in lines if line.startswith("vendor_id"))
    except (OSError, StopIteration):
        pass  # not Linux: platform.processor() says it
    return "AuthenticAMD" in maker


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Linear(torch.autograd.Function):
    """x · weightᵀ + bias for x (rows, in), weight (out, in), by oneDNN; may be differentiated twice."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        product = _Linear.apply if torch.is_grad_enabled() else _product
        return (
            product(gradient, weight.t(), None) if for_x else None,
            product(gradient.t(), x.t(), None) if for_weight else None,
            gradient.sum(0) if for_bias else None,
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`: (…, in), (out, in), (out,) → (…, out)."""
    if (
        x.numel() * len(weight) < SMALLEST
        or not _has_slow_mkl()
        or not all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (x, weight))
        or torch.is_autocast_enabled("cpu")
        or torch.compiler.is_compiling()
    ):
        return F.linear(x, weight, bias)
    out = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return out.view(*x.shape[:-1], len(weight))


def dropout(x: Tensor, p: float) -> Tensor:
    """`torch.nn.functional.dropout` in training: zero with probability p (to 1/65536), else x / (1 − p)."""
    if x.device.type != "cpu" or not x.is_floating_point() or not 0 < p < 1:
        return F.dropout(x, p)
    count = x.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = bits.view(torch.int16)[:count].view(x.shape) >= round(p * 2**16) - 2**15
    return x * kept.to(x.dtype).mul_(1 / (1 - p))


class Linear(nn.Linear):
    """`nn.Linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """(…, in_features) → (…, out_features)."""
        return linear(input, self.weight, self.bias)


class Dropout(nn.Dropout):
    """`nn.Dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape → the same."""
        if not self.training or self.inplace:
            return super().forward(input)
        return dropout(input, self.p)
