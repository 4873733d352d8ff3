"""Mistakes in the exercises of *BERT and transfer*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake
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


@mistake(
    "fixed_masking",
    caught_by="picks the share that it is given",
    hint="Which number in your function",
)
def share_forgotten(ids, vocab_size, share=0.15, mask=4):
    """Picks 15% whatever is asked."""
    return _replaced(ids, vocab_size, 0.15, mask)


@mistake(
    "fixed_masking",
    caught_by="neither picks nor draws special",
    hint="Which ids do ordinary tokens",
)
def padding_picked(ids, vocab_size, share=0.15, mask=4):
    """Leaves out <bos> and <eos>, and picks padding."""
    return _replaced(ids, vocab_size, share, mask, (ids != 2) & (ids != 3))


@mistake("fixed_masking", caught_by="draws random tokens", hint="Which is the smallest")
def drawn_once(ids, vocab_size, share=0.15, mask=4):
    """One and the same random token for all places."""
    return _replaced(ids, vocab_size, share, mask, other=torch.randint(mask + 1, vocab_size, ()))


@mistake("fixed_masking", caught_by="draws random tokens", hint="Which is the smallest")
def the_next_id(ids, vocab_size, share=0.15, mask=4):
    """The token with the next id instead of a random one."""
    return _replaced(
        ids, vocab_size, share, mask, other=torch.where(ids + 1 < vocab_size, ids + 1, mask + 1)
    )


@mistake(
    "fixed_masking",
    caught_by="gives as targets the tokens",
    reason="torch.float32",
    hint="stay integers",
)
def floats(ids, vocab_size, share=0.15, mask=4):
    """Right, but the tokens are floats, which no embedding takes."""
    return tuple(part.float() for part in _replaced(ids, vocab_size, share, mask))


@mistake(
    "fixed_masking",
    caught_by="picks 15%, and of these masks 80%",
    reason="all picked tokens are masked",
    hint="other 20%",
)
def only_masks(ids, vocab_size, share=0.15, mask=4):
    """Masks whatever is picked."""
    return _always_masked(ids, share, mask)


@mistake("fixed_masking", caught_by="neither picks nor draws special", hint="is an argument")
def mask_written_down(ids, vocab_size, share=0.15, mask=4):
    """The id of the mask is 4, whatever is given."""
    return _replaced(ids, vocab_size, share, 4)


@mistake("fixed_masking", caught_by="gives as targets the tokens", hint="When do you read")
def not_fixed(ids, vocab_size, share=0.15, mask=4):
    """The function as it was."""
    picked, fate, other = _draws(ids, vocab_size, share)
    ids[picked & (fate < 0.8)] = mask
    ids[picked & (fate < 0.9)] = other[picked & (fate < 0.9)]
    return ids, ids.masked_fill(~picked, -100)


@mistake(
    "fixed_masking",
    caught_by="picks 15%, and of these masks 80%",
    hint="Do the three shares overlap?",
)
def masks_still_overwritten(ids, vocab_size, share=0.15, mask=4):
    """Right targets, but random tokens overwrite the masks."""
    picked, fate, other = _draws(ids, vocab_size, share)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate < 0.9), other, tokens)
    return tokens, ids.masked_fill(~picked, -100)


@mistake(
    "fixed_masking",
    caught_by="picks 15%, and of these masks 80%",
    reason="no token that is asked for stays",
    hint="neither masked nor replaced",
)
def kept_not_asked(ids, vocab_size, share=0.15, mask=4):
    """Asks only where the token changed."""
    tokens, targets = _replaced(ids, vocab_size, share, mask)
    return tokens, targets.masked_fill(tokens == ids, -100)


@mistake("fixed_masking", caught_by="leaves its input unchanged", hint="Which line writes into")
def still_in_place(ids, vocab_size, share=0.15, mask=4):
    """Right answers, and the caller's ids are changed."""
    tokens, targets = _replaced(ids, vocab_size, share, mask)
    return ids.copy_(tokens), targets


@mistake(
    "fixed_masking", caught_by="changes no token whose target", hint="Which tokens may be masked"
)
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


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    reason="it calls LoRA.__init__",
    hint="step by step",
)
def the_course_s_own(linear, rank=4, alpha=8.0):
    """Calls what is to be written."""
    return tuning.LoRA(linear, rank, alpha)


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    reason="it calls LoRA.__init__",
    hint="step by step",
)
class Inherited(tuning.LoRA):
    """Inherits what is to be written."""


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    hint="Which of the two matrices may be",
)
def both_random(linear, rank=4, alpha=8.0):
    """Begins with another output."""
    return _Layer(linear, rank, alpha, B=1.0)


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    hint="Which of the two matrices may be",
)
def both_zero(linear, rank=4, alpha=8.0):
    """Never learns."""
    return _Layer(linear, rank, alpha, A=0.0)


@mistake(
    "my_lora", caught_by="trains only A and B, with rank ·", hint="Which parameters does your layer"
)
def nothing_frozen(linear, rank=4, alpha=8.0):
    """Trains the linear layer, too."""
    return _Layer(linear, rank, alpha, frozen=False)


@mistake("my_lora", caught_by="adds a linear change", hint="By which factor do you multiply")
def root_of_the_rank(linear, rank=4, alpha=8.0):
    """Divides by the root of the rank."""
    return _Layer(linear, rank, alpha, scale=alpha / math.sqrt(rank))


@mistake(
    "my_lora", caught_by="trains only A and B, with rank ·", hint="Which parameters does your layer"
)
def a_matrix_of_its_own(linear, rank=4, alpha=8.0):
    """A full matrix instead of a product of two."""
    layer = nn.Linear(linear.in_features, linear.out_features)
    layer.load_state_dict(linear.state_dict())
    return layer


@mistake("my_lora", caught_by="lets each column of A", hint="Do all columns of A begin alike?")
def constant_start(linear, rank=4, alpha=8.0):
    """A begins as ones, so that all its columns stay alike."""
    layer = _Layer(linear, rank, alpha)
    nn.init.ones_(layer.A)
    return layer


@mistake(
    "my_lora", caught_by="passes the gradient on to the layers", hint="Which line keeps a gradient"
)
def input_detached(linear, rank=4, alpha=8.0):
    """The change gives no gradient to the layers below."""
    layer = _Layer(linear, rank, alpha)
    layer.forward = lambda x: linear(x) + alpha / rank * (x.detach() @ layer.A @ layer.B.T)
    return layer


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    reason="before Module.__init__()",
    hint="super().__init__()",
)
def super_forgotten(linear, rank=4, alpha=8.0):
    """A module that is never set up."""

    class Beside(nn.Module):
        def __init__(self):
            self.linear = linear.requires_grad_(False)

    return Beside()


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    reason="x is (4, 5, 10)",
    hint="x, A and `B.T`",
)
def A_the_other_way(linear, rank=4, alpha=8.0):
    """A is (rank, inputs), as in the paper, and used as if it were (inputs, rank)."""
    layer = _Layer(linear, rank, alpha)
    layer.A = nn.Parameter(torch.randn(rank, linear.in_features))
    return layer


@mistake(
    "my_lora",
    caught_by="adds a linear change",
    reason="the change at −x",
    hint="between A and `B.T`",
)
def relu_between(linear, rank=4, alpha=8.0):
    """A small network instead of a linear change."""
    layer = _Layer(linear, rank, alpha)
    layer.forward = lambda x: linear(x) + alpha / rank * ((x @ layer.A).relu() @ layer.B.T)
    return layer


@mistake(
    "my_lora",
    caught_by="gives at the start what the linear",
    reason="begins as zeros",
    hint="product is",
)
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
