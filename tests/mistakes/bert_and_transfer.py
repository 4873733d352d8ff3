"""Mistakes that the checks of *BERT and transfer* must catch."""

import math

import torch
from mistakes.table import wrong
from torch import nn

from course_utils.lessons.bert_and_transfer import tuning


def _draws(ids, vocab_size, share, mask=4):
    picked = (torch.rand(ids.shape) < share) & (ids > mask)
    return picked, torch.rand(ids.shape), torch.randint(mask + 1, vocab_size, ids.shape)


def _replaced(ids, vocab_size, share, mask, ordinary=None, other=None):
    """Right, but for which tokens are ordinary and what replaces them."""
    ordinary = ids > mask if ordinary is None else ordinary
    other = torch.randint(mask + 1, vocab_size, ids.shape) if other is None else other
    picked, fate = (torch.rand(ids.shape) < share) & ordinary, torch.rand(ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), other, tokens)
    return tokens, ids.masked_fill(~picked, -100)


def _always_masked(ids, share, mask):
    picked = (torch.rand(ids.shape) < share) & (ids > mask)
    return ids.masked_fill(picked, mask), ids.masked_fill(~picked, -100)


class fixed_masking:
    share_forgotten = wrong("Picks 15 % whatever is asked.",
        lambda ids, vocab_size, share=0.15, mask=4: _replaced(ids, vocab_size, 0.15, mask))
    padding_picked = wrong("Leaves out <bos> and <eos>, and picks padding.",
        lambda ids, vocab_size, share=0.15, mask=4:
            _replaced(ids, vocab_size, share, mask, (ids != 2) & (ids != 3)))
    drawn_once = wrong("One and the same random token for all places.",
        lambda ids, vocab_size, share=0.15, mask=4:
            _replaced(ids, vocab_size, share, mask, other=torch.randint(mask + 1, vocab_size, ())))
    the_next_id = wrong("The token with the next id instead of a random one.",
        lambda ids, vocab_size, share=0.15, mask=4:
            _replaced(ids, vocab_size, share, mask, other=torch.where(ids + 1 < vocab_size, ids + 1, mask + 1)))
    floats = wrong("Right, but the tokens are floats, which no embedding takes.",
        lambda ids, vocab_size, share=0.15, mask=4:
            tuple(part.float() for part in _replaced(ids, vocab_size, share, mask)))
    only_masks = wrong("Masks whatever is picked.",
        lambda ids, vocab_size, share=0.15, mask=4: _always_masked(ids, share, mask))
    mask_written_down = wrong("The id of the mask is 4, whatever is given.",
        lambda ids, vocab_size, share=0.15, mask=4: _replaced(ids, vocab_size, share, 4))

    def not_fixed(ids, vocab_size, share=0.15, mask=4):
        """The function as it was."""
        picked, fate, other = _draws(ids, vocab_size, share)
        ids[picked & (fate < 0.8)] = mask
        ids[picked & (fate < 0.9)] = other[picked & (fate < 0.9)]
        return ids, ids.masked_fill(~picked, -100)

    def masks_still_overwritten(ids, vocab_size, share=0.15, mask=4):
        """Right targets, but random tokens overwrite the masks."""
        picked, fate, other = _draws(ids, vocab_size, share)
        tokens = ids.masked_fill(picked & (fate < 0.8), mask)
        tokens = torch.where(picked & (fate < 0.9), other, tokens)
        return tokens, ids.masked_fill(~picked, -100)

    def kept_not_asked(ids, vocab_size, share=0.15, mask=4):
        """Asks only where the token changed."""
        tokens, targets = _replaced(ids, vocab_size, share, mask)
        return tokens, targets.masked_fill(tokens == ids, -100)

    def still_in_place(ids, vocab_size, share=0.15, mask=4):
        """Right answers, and the caller's ids are changed."""
        tokens, targets = _replaced(ids, vocab_size, share, mask)
        return ids.copy_(tokens), targets

    def random_everywhere(ids, vocab_size, share=0.15, mask=4):
        """Random tokens where nothing is asked, too."""
        picked, fate, other = _draws(ids, vocab_size, share)
        tokens = ids.masked_fill(picked & (fate < 0.8), mask)
        tokens = torch.where((fate >= 0.8) & (fate < 0.9), other, tokens)
        return tokens, ids.masked_fill(~picked, -100)


class _Layer(nn.Module):
    """A right one, with parts to be changed."""

    def __init__(self, linear, rank, alpha, *, A=1.0, B=0.0, frozen=True, bias=False, scale=None):
        super().__init__()
        self.linear = linear.requires_grad_(not frozen)
        self.scale = alpha / rank if scale is None else scale
        self.A = nn.Parameter(A * torch.randn(linear.in_features, rank))
        self.B = nn.Parameter(B * torch.randn(linear.out_features, rank))
        self.bias = nn.Parameter(torch.zeros(linear.out_features)) if bias else 0.0

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.A @ self.B.T) + self.bias


class my_lora:
    the_course_s_own = wrong("Calls what is to be written.",
        lambda linear, rank=4, alpha=8.0: tuning.LoRA(linear, rank, alpha))
    both_random = wrong("Begins with another output.",
        lambda linear, rank=4, alpha=8.0: _Layer(linear, rank, alpha, B=1.0))
    both_zero = wrong("Never learns.", lambda linear, rank=4, alpha=8.0: _Layer(linear, rank, alpha, A=0.0))
    nothing_frozen = wrong("Trains the linear layer, too.",
        lambda linear, rank=4, alpha=8.0: _Layer(linear, rank, alpha, frozen=False))
    root_of_the_rank = wrong("Divides by the root of the rank.",
        lambda linear, rank=4, alpha=8.0: _Layer(linear, rank, alpha, scale=alpha / math.sqrt(rank)))

    def a_matrix_of_its_own(linear, rank=4, alpha=8.0):
        """A full matrix instead of a product of two."""
        layer = nn.Linear(linear.in_features, linear.out_features)
        layer.load_state_dict(linear.state_dict())
        return layer

    def constant_start(linear, rank=4, alpha=8.0):
        """A begins as ones, so that all its columns stay alike."""
        layer = _Layer(linear, rank, alpha)
        nn.init.ones_(layer.A)
        return layer

    def input_detached(linear, rank=4, alpha=8.0):
        """The change gives no gradient to the layers below."""
        layer = _Layer(linear, rank, alpha)
        layer.forward = lambda x: linear(x) + alpha / rank * (x.detach() @ layer.A @ layer.B.T)
        return layer

    def super_forgotten(linear, rank=4, alpha=8.0):
        """A module that is never set up."""

        class Beside(nn.Module):
            def __init__(self):
                self.linear = linear.requires_grad_(False)

        return Beside()

    def A_the_other_way(linear, rank=4, alpha=8.0):
        """A is (rank, inputs), as in the paper, and used as if it were (inputs, rank)."""
        layer = _Layer(linear, rank, alpha)
        layer.A = nn.Parameter(torch.randn(rank, linear.in_features))
        return layer

    def relu_between(linear, rank=4, alpha=8.0):
        """A small network instead of a linear change."""
        layer = _Layer(linear, rank, alpha)
        layer.forward = lambda x: linear(x) + alpha / rank * ((x @ layer.A).relu() @ layer.B.T)
        return layer

    def zeros_in_A(linear, rank=4, alpha=8.0):
        """A begins as zeros and B at random: the product is zero, too, and the text says the reverse."""

        class Beside(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = linear.requires_grad_(False)
                self.A = nn.Parameter(torch.zeros(linear.in_features, rank))
                self.B = nn.Parameter(torch.randn(linear.out_features, rank))

            def forward(self, x):
                return self.linear(x) + alpha / rank * (x @ self.A @ self.B.T)

        return Beside()


ANSWERS = {
    "only_masks": ("all picked tokens are masked", "other 20 %"),
    "kept_not_asked": ("no token that is asked for stays", "neither masked nor replaced"),
    "super_forgotten": ("before Module.__init__()", "super().__init__()"),
    "A_the_other_way": ("x is (4, 5, 10)", "x, A and Bᵀ"),
    "relu_between": ("the change at −x", "between A and Bᵀ"),
    "floats": ("torch.float32", "stay integers"),
    "the_course_s_own": ("it calls LoRA.__init__", "step by step"),
    "mask_written_down": ("special tokens", "is an argument"),
    "zeros_in_A": ("begins as zeros", "product is"),
}
