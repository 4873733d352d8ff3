"""Convolution and recurrence, and how many layers a convolution needs to carry a word to the end."""

import torch
from torch.nn import functional as F


def convolution(x, kernel, dilation=1):
    """Word i reads i, i − dilation, …, k words in all: (n, d), (d, d, k) → (n, d)."""
    padded = F.pad(x.T, (dilation * (kernel.shape[-1] - 1), 0))  # zeros in front
    return F.conv1d(padded[None], kernel, dilation=dilation)[0].T


def recurrence(x, W_x, W_h):
    """h_t = tanh(x_t W_x + h_{t−1} W_h), one after the other: (n, d) → (n, d)."""
    states = [x.new_zeros(1, x.shape[1])]
    for inputs in (x @ W_x).split(1):
        states.append((inputs + states[-1] @ W_h).tanh())
    return torch.cat(states[1:])


def path(n, kernel, grow=1):
    """Layers of convolution until the last output depends on the first word."""
    x = start = torch.randn(n, len(kernel), requires_grad=True)
    for count in range(1, n):
        x = convolution(x, kernel, dilation=grow ** (count - 1))
        (slope,) = torch.autograd.grad(x[-1].sum(), start, retain_graph=True)
        if slope[0].any():
            return count
