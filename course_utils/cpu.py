"""Linear layers, dropout and GRUs that do the same as PyTorch's, sooner on a CPU.

`Linear` and `Dropout` subclass PyTorch's modules: same arguments, same parameters and names in a state_dict,
same results up to rounding; elsewhere, on a GPU for instance, they *are* PyTorch's. Above: nothing of ours.
Below: `attention` and all that has weights.

`Linear`: PyTorch hands matrix products in float32 to Intel's MKL, which leaves AVX-512 unused on the
processors of other makers; oneDNN, which PyTorch carries too, uses it, and is about twice as fast there.
`Dropout`: PyTorch draws a Bernoulli number per element, one after the other; sixteen random bits compared
with a threshold are enough, and take a sixth of the time.
`gru`: multiplies all inputs at one stroke, and by oneDNN.
"""

import functools
import platform

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = (
            weight.contiguous()
        )  # a part of a matrix would cost oneDNN a thousand times as much
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
    kept = bits.view(torch.int16)[:count].view(x.shape).ge_(round(p * 2**16) - 2**15)
    return x * kept.to(x.dtype).mul_(1 / (1 - p))


class _GRUGates(torch.autograd.Function):
    @staticmethod
    def forward(ctx, from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
        size = hidden.shape[1]
        both = (from_input[:, : 2 * size] + from_hidden[:, : 2 * size]).sigmoid_()
        reset, update = both.chunk(2, dim=1)
        proposed = from_hidden[:, 2 * size :]
        new = torch.addcmul(from_input[:, 2 * size :], reset, proposed).tanh_()
        ctx.save_for_backward(reset, update, proposed, new, hidden)
        return torch.lerp(new, hidden, update)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor):
        reset, update, proposed, new, hidden = ctx.saved_tensors
        size = hidden.shape[1]
        for_input = gradient.new_empty(len(gradient), 3 * size)
        for_reset, for_update, for_new = for_input.split(size, dim=1)
        kept = gradient * update
        torch.mul(gradient - kept, 1 - new.square(), out=for_new)
        torch.mul(kept * (hidden - new), 1 - update, out=for_update)
        torch.mul(for_new * proposed, (1 - reset).mul_(reset), out=for_reset)
        for_hidden = for_input.clone()
        for_hidden[:, 2 * size :] *= reset
        return for_input, for_hidden, kept


def gru_gates(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The new state (batch, size) of a GRU.

    Args:
        from_input, from_hidden: (batch, 3 · size), W_ih x + b_ih and W_hh h + b_hh.
        hidden: (batch, size), the state h before.
    """
    return _GRUGates.apply(from_input, from_hidden, hidden)


def gru(module: nn.GRU, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """What a GRU of one layer, batch first and in both directions, says of padded sequences.

    Each direction multiplies its inputs at one stroke, and only the recurrence goes step by step.

    Args:
        module: holds the weights; on a GPU it does the work.
        x: (batch, length, in).
        lengths: (batch,), at least 1.

    Returns:
        Outputs (batch, length, 2 · size), zeros after a sequence's end, and the two directions' last
        states (2, batch, size).
    """
    if x.device.type != "cpu":
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, last = module(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], last
    real = (torch.arange(x.shape[1]) < lengths[:, None]).to(x.dtype).unsqueeze(-1)
    outputs, last = [], []
    for suffix in ("l0", "l0_reverse"):
        w_input, w_hidden, b_input, b_hidden = (
            getattr(module, f"{kind}_{suffix}")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        reverse = suffix == "l0_reverse"
        hidden, states = x.new_zeros(len(x), module.hidden_size), []
        # Backwards, padding comes first, and has to leave the state at zero.
        steps = list(zip(linear(x, w_input, b_input).unbind(1), real.unbind(1), strict=True))
        for from_input, is_real in reversed(steps) if reverse else steps:
            hidden = gru_gates(from_input, linear(hidden, w_hidden, b_hidden), hidden)
            hidden = hidden * is_real if reverse else hidden
            states.append(hidden)
        states = torch.stack(states[::-1] if reverse else states, dim=1)
        outputs.append(states if reverse else states * real)
        last.append(hidden if reverse else states[torch.arange(len(x)), lengths - 1])
    return torch.cat(outputs, dim=-1), torch.stack(last)


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
