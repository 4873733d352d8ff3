"""Checks of *BERT and transfer*: masking with a bug, and a LoRA layer."""

import torch
from torch import nn

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_tensors,
)

# Masking: find the bug --------------------------------------------------------------------------

fixed_masking = Check()

MASK, SIZE = 4, 500


ALL_MASKED = "What do the other 20% of the picked tokens read? Half a random token, and half the token itself."

NONE_KEPT = "Which picked tokens are neither masked nor replaced? They stay as they are, and are asked for, too."


def _random_ids(size=SIZE):
    ids = torch.randint(MASK + 1, size, (300, 40))
    ids[:, 0], ids[:, -1] = 2, 3  # <bos>, <eos>
    ids[:100, -5], ids[:100, -4:] = 3, 0  # shorter sentences, and their padding
    return ids


def _ids_tokens_targets(candidate, *options, size=SIZE):
    """The ids as they were, the tokens and the targets."""
    ids = _random_ids(size)
    answer = expect_tensors(candidate(ids.clone(), size, *options), "tokens", "targets")
    hint = "Which operation makes numbers of another kind? Ids index an embedding, so both have to stay integers."
    for name, tensor in zip(("tokens", "targets"), answer, strict=True):
        expect_shape(tensor, (300, 40))
        expect(
            tensor.dtype == ids.dtype, f"the {name} are {tensor.dtype}, expected {ids.dtype}", hint
        )
    return ids, *answer


@fixed_masking.must("gives as targets the tokens that were there before")
def gives_as_targets_tokens_that_were_there_before(candidate):
    """When do you read the targets, before or after the ids change? Keep a copy of the ids first."""
    ids, _, targets = _ids_tokens_targets(candidate)
    picked = targets != -100
    expect(bool(picked.any()), "all targets are -100")
    same = torch.equal(targets[picked], ids[picked])
    expect(same, "a target is not the token that was there before")


fixed_masking.must_keep_inputs(
    lambda: [_random_ids(), SIZE],
    "Which line writes into the tensor that was given? `ids[…] = …` does; `masked_fill` makes a new one.",
    "leaves its input unchanged",
)


@fixed_masking.must("changes no token whose target is -100")
def changes_no_token_without_a_target(candidate):
    """Which tokens may be masked or replaced? Only the picked ones, so both conditions need `picked`."""
    ids, tokens, targets = _ids_tokens_targets(candidate)
    same = torch.equal(tokens[targets == -100], ids[targets == -100])
    expect(same, "a token changed where the target is -100")


@fixed_masking.must("picks 15%, and of these masks 80%, replaces 10% and keeps 10%")
def picks_masks_replaces_and_keeps_the_right_shares(candidate):
    """Do the three shares overlap? Write down which values of `fate` make a token random."""
    ids, tokens, targets = _ids_tokens_targets(candidate)
    _expect_shares(ids, tokens, targets, 0.15)


@fixed_masking.must("picks the share that it is given")
def picks_share_that_it_is_given(candidate):
    """Which number in your function is the share? Use the argument instead."""
    _expect_shares(*_ids_tokens_targets(candidate, 0.5), 0.5)


def _expect_shares(ids, tokens, targets, expected):
    picked = targets != -100
    share = picked[ids > MASK].float().mean().item()
    reason = f"{share:.0%} of the ordinary tokens are picked, expected {expected:.0%}"
    expect(abs(share - expected) < 0.02, reason)
    hidden = (tokens == MASK)[picked].float().mean().item()
    expect(hidden < 1, "all picked tokens are masked", ALL_MASKED)
    stayed = (tokens == ids)[picked].float().mean().item()
    expect(stayed > 0.02, "no token that is asked for stays as it is", NONE_KEPT)
    expect(abs(hidden - 0.8) < 0.04, f"{hidden:.0%} of the picked tokens are masked, expected 80%")
    expect(abs(stayed - 0.1) < 0.04, f"{stayed:.0%} of the picked tokens are kept, expected 10%")


@fixed_masking.must("neither picks nor draws special tokens")
def neither_picks_nor_draws_special_tokens(candidate):
    """Which ids do ordinary tokens have? They are all above the id of the mask."""
    ids, tokens, targets = _ids_tokens_targets(candidate)
    expect(bool((targets[ids <= MASK] == -100).all()), "a special token is picked")
    drawn = tokens[(tokens != ids) & (tokens != MASK)]
    expect(bool((drawn > MASK).all()), "a token became a special one")
    _, tokens, targets = _ids_tokens_targets(candidate, 0.5, 7)
    hint = "The id of the mask is an argument. Where does your function use a fixed number instead?"
    expect(
        bool((tokens[targets != -100] == 7).float().mean() > 0.7),
        "with mask=7 no token becomes 7",
        hint,
    )
    expect(bool((targets[targets != -100] > 7).all()), "with mask=7 an id up to 7 is picked", hint)


@fixed_masking.must("draws random tokens from all ordinary ones, anew for each position")
def draws_random_tokens_from_all_ordinary_ones(candidate):
    """Which is the smallest and which the largest id that may be drawn? Draw from all between, at each position."""
    size = 12
    ids, tokens, targets = _ids_tokens_targets(candidate, 0.5, size=size)
    other = (targets != -100) & (tokens != MASK) & (tokens != ids)
    reason = f"ids {tokens[other].unique().tolist()} are drawn, expected those from {MASK + 1} to {size - 1}"
    expect(tokens[other].unique().tolist() == list(range(MASK + 1, size)), reason)
    kinds = torch.stack((ids[other], tokens[other])).unique(dim=1).shape[1]
    expect(kinds > 30, "a random token depends on the one that was there")


# A LoRA layer -----------------------------------------------------------------------------------

my_lora = Check(forbids=["LoRA.__init__"])


NO_SUPER = "What is the first line of your `__init__`? `super().__init__()` comes before all layers and parameters."
NOT_LINEAR = "What stands between A and `B.T`? The change is two products and a factor, with no activation and no bias."
SHAPES = "Write the shapes of x, A and `B.T` side by side. Each product sums over an axis that both sides have."


def _wrapped_layer(candidate, rank=3, alpha=6.0):
    """A linear layer from 10 to 7 numbers, a copy of its weight and bias, and the candidate's LoRA layer of it."""
    linear = nn.Linear(10, 7)
    before = linear.weight.detach().clone(), linear.bias.detach().clone()
    try:
        layer = candidate(linear, rank, alpha)
    except AttributeError as error:
        if "before Module.__init__()" in str(error):
            raise Unmet("your layer is used before Module.__init__()", NO_SUPER) from None
        raise
    if not isinstance(layer, nn.Module):
        raise WrongKind(f"got a {type(layer).__name__}, expected a module")
    return linear, before, layer


def _trainable_parameters(layer):
    return [parameter for parameter in layer.parameters() if parameter.requires_grad]


def _train_two_steps(layer, x):
    """Train the layer's trainable parameters."""
    trained = _trainable_parameters(layer)
    expect(bool(trained), "nothing is trainable")
    optimizer = torch.optim.SGD(trained, 0.1)
    for _step in range(2):
        optimizer.zero_grad()
        (layer(x) - 1).square().mean().backward()
        optimizer.step()


@my_lora.must("gives at the start what the linear layer gives")
def gives_at_start_what_linear_layer_gives(candidate):
    """Which of the two matrices may be zero, so that their product is? Let the other one begin at random, and keep
    the linear layer's output whole, bias included.

    B begins as zeros, A at random.
    """
    linear, _, layer = _wrapped_layer(candidate)
    x = torch.randn(4, 5, 10)
    try:
        y = layer(x)
    except RuntimeError as error:
        if "shapes" in str(error) or "size" in str(error):
            raise Unmet(f"x is (4, 5, 10), and {error}", SHAPES) from None
        raise
    expect_close(y, linear(x), "before any training, the output")
    for parameter in _trainable_parameters(layer):
        expect(
            10 not in parameter.shape or bool(parameter.any()),
            "A, the matrix that meets x, begins as zeros",
        )


@my_lora.must("trains only A and B, with rank · (inputs + outputs) parameters")
def trains_only_a_and_b(candidate):
    """Which parameters does your layer train? A and B have to be parameters, and the
    linear layer's parameters must need no gradient.

    Use `linear.requires_grad_(False)`, and `nn.Parameter(…)` for A and for B.
    """
    for rank in (1, 3):
        _, _, layer = _wrapped_layer(candidate, rank)
        count = sum(parameter.numel() for parameter in _trainable_parameters(layer))
        expect_equal(count, rank * 17, f"rank {rank}, trainable parameters")


@my_lora.must("learns from its first step on, and leaves the linear layer as it was")
def learns_from_first_step_and_leaves_linear_layer(candidate):
    """What is the gradient of B if A is zero? It is zero as well, so A and B can't both begin at zero.

    A begins at random, for instance `torch.randn(…)`, and B begins as zeros.
    """
    linear, before, layer = _wrapped_layer(candidate)
    x = torch.randn(6, 10)
    first = layer(x).detach().clone()
    _train_two_steps(layer, x)
    moved = (layer(x) - first).abs().max().item()
    expect(moved > 1e-4, "after two steps of training the output is the same as before")
    same = torch.equal(linear.weight, before[0]) and torch.equal(linear.bias, before[1])
    expect(same, "the training changed the linear layer")


@my_lora.must("lets each column of A and of B learn something of its own")
def lets_each_column_of_a_and_b_learn_its_own(candidate):
    """Do all columns of A begin alike? Then they get the same gradients and stay alike, so draw them at random."""
    _, _, layer = _wrapped_layer(candidate)
    _train_two_steps(layer, torch.randn(6, 10))
    for parameter in _trainable_parameters(layer):
        if parameter.ndim == 2:
            rank = int(torch.linalg.matrix_rank(parameter.detach(), rtol=1e-4))
            expect_equal(rank, min(parameter.shape), "after two steps, the rank of A or of B")


@my_lora.must("adds a linear change of the given rank, scaled by alpha / rank")
def adds_linear_change_of_given_rank_scaled_by_alpha_rank(candidate):
    """By which factor do you multiply the product? Add this to the linear layer's output, and no bias or activation.

    `self.linear(x) + alpha / rank * (x @ A @ B.T)`, with A (inputs, rank) and B (outputs, rank).
    """
    linear, _, layer = _wrapped_layer(candidate, 2, 6.0)
    plain, _, other = _wrapped_layer(candidate, 2, 12.0)
    values = [torch.randn(parameter.shape) for parameter in _trainable_parameters(layer)]
    changes = []
    for module, base in ((layer, linear), (other, plain)):
        with torch.no_grad():
            for parameter, value in zip(_trainable_parameters(module), values, strict=True):
                parameter.copy_(value)
            changes.append(module(torch.eye(10)) - base(torch.eye(10)))
            back = module(-torch.eye(10)) - base(-torch.eye(10))
        expect_close(back, -changes[-1], "the change at −x", atol=1e-4, hint=NOT_LINEAR)
    rank = int(torch.linalg.matrix_rank(changes[0], rtol=1e-4))
    expect_equal(rank, 2, "rank of the change")
    expect_close(changes[1], 2 * changes[0], "twice the alpha, the change")
    sizes = sorted(tuple(sorted(parameter.shape)) for parameter in _trainable_parameters(layer))
    if sizes == [(2, 7), (2, 10)]:
        A, B = (next(v for v in values if n in v.shape) for n in (10, 7))
        A, B = A if A.shape[0] == 10 else A.T, B if B.shape[0] == 7 else B.T
        expect_close(changes[0], 3 * A @ B.T, "rank 2 and alpha 6, the change", atol=1e-4)


@my_lora.must("passes the gradient on to the layers below, through both parts")
def passes_gradient_on_to_layers_below_through_both_parts(candidate):
    """Which line keeps a gradient from passing? Look for `no_grad` or `detach`: the layers below have to learn as
    well.
    """
    _, _, layer = _wrapped_layer(candidate)
    _train_two_steps(layer, torch.randn(6, 10))
    x = torch.zeros(3, 10, requires_grad=True)
    y = layer(x).sum()
    expect(y.requires_grad, "no gradient reaches the output")
    (slopes,) = torch.autograd.grad(y, x, allow_unused=True)
    expect(slopes is not None, "no gradient reaches the input")
    with torch.no_grad():
        slope = (layer(torch.eye(10)) - layer(torch.zeros(1, 10))).sum(dim=1)
    expect_close(slopes, slope.expand(3, 10), "the gradient of the input", atol=1e-4)
