"""Checks of *Multi-head attention*: joining the heads, a layer with one head ablated."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.kit.check import Check
from course_utils.kit.expect import Unmet, expect, expect_close, expect_equal, expect_shape

# Joining the heads ----------------------------------------------------------------------------------

join_heads = Check()


_COPIES = (
    "After a transpose `view` can't join axes, because the numbers are in another order in memory. Which method "
    "copies them?"
)


_HEADS = "How many heads are there? Here they are three, so take all along the second axis, however many it has."


@join_heads.must(
    "turns (batch, heads, length, head_dim) into (batch, length, heads · head_dim)",
    hint=(
        "Which two of the four axes become one? They have to be neighbors, so another axis may have to move first.",
        _COPIES,
    ),
)
def joins_shape_of_heads(candidate):
    heads = torch.randn(2, 3, 5, 4)
    try:
        joined = candidate(heads)
    except RuntimeError as error:
        if "view size" not in str(error):
            raise
        raise Unmet(str(error), _COPIES) from error
    two = torch.is_tensor(joined) and joined.numel() == 2 * heads[:, 0].numel()
    expect(
        not two, f"got shape {tuple(joined.shape) if two else ''}, the numbers of two heads", _HEADS
    )
    expect_shape(joined, (2, 5, 12))


@join_heads.must("keeps the numbers of one token in the row of this token")
def keeps_numbers_of_one_token_in_row_of_this_token(candidate):
    """The shape is right. In which order are the numbers in memory when you join? Compare row 0 of your result with
    token 0 of each head.

    To be joined, the axis of the heads has to be next to head_dim. Which two axes do you swap first?
    """
    heads = torch.randn(1, 3, 5, 4)
    changed = heads.clone()
    changed[:, :, 2] += 1  # token 2, in all heads
    moved = (candidate(changed) != candidate(heads)).any(dim=-1)[0].nonzero().flatten().tolist()
    expect_equal(moved, [2], "rows that change with token 2")


@join_heads.must("puts head 0 first in each row, then head 1, and so on")
def puts_heads_in_order_in_each_row(candidate):
    """Which of the two changes faster in a row of your result: the head, or the feature within a head? The features
    of a head belong together.
    """
    heads = torch.arange(24.0).view(1, 3, 2, 4)
    row = candidate(heads)[0, 0]
    expect_close(row, torch.cat([heads[0, head, 0] for head in range(3)]), "row 0")


@join_heads.must("undoes the split, for 1, 2, 4, and 12 heads and for other lengths and widths")
def undoes_split_for_any_number_of_heads(candidate):
    """Is a size written into your code? Take each of them from the shape of the argument."""
    for num_heads, length, width in ((1, 7, 12), (2, 4, 8), (4, 1, 12), (12, 3, 24)):
        x = torch.randn(3, length, width)
        answer = expect_shape(candidate(split_heads(x.clone(), num_heads)), (3, length, width))
        expect_close(answer, x, f"{num_heads} heads, split and joined")


join_heads.must_pass_gradients(
    merge_heads,
    lambda: {"heads": torch.randn(1, 2, 3, 4)},
    "Which line leaves the graph? Look for a `detach()`, or a tensor that you filled by hand.",
    "lets gradients come back to the heads",
)

# A layer without one head: find the bug -------------------------------------------------------------

fixed_without_head = Check()

_NO_GRAD = "Do you change the weights inside `with torch.no_grad():`? The lines above do, because autograd asks for it."
_ROWS = "The `weight` of a linear layer is transposed. So do its rows belong to what goes in, or to what comes out?"
_CONSTANT = (
    "A bias of the whole layer belongs to no head, but a bias of the values to one. Which stays?"
)


def _layer_and_input(embed_dim: int = 12, num_heads: int = 3):
    return MultiHeadAttention(embed_dim, num_heads), torch.randn(2, 5, embed_dim)


@fixed_without_head.must(
    "returns a layer that can be called",
    hint=(
        "What does your function return? It should be a layer, with all sizes as they were.",
        _NO_GRAD,
    ),
)
def returns_layer_that_can_be_called(candidate):
    layer, x = _layer_and_input()
    try:
        fewer = candidate(layer, 1)
    except RuntimeError as error:
        if "leaf Variable" not in str(error):
            raise
        raise Unmet(str(error), _NO_GRAD) from error
    expect(isinstance(fewer, nn.Module), f"got a {type(fewer).__name__}, expected a layer")
    expect_shape(fewer(x, x, x), (2, 5, 12))


@fixed_without_head.must("leaves the caller's layer unchanged")
def leaves_callers_layer_unchanged(candidate):
    """Whose weights does your assignment change? They should be the weights of a copy, not of the caller's layer."""
    layer, x = _layer_and_input()
    before = layer(x, x, x).detach()
    candidate(layer, 1)
    expect_close(layer(x, x, x), before, "the output of the caller's layer")


@fixed_without_head.must("silences the head instead of giving it equal weights")
def silences_head_instead_of_giving_it_equal_weights(candidate):
    """With queries or keys of zero all scores of a query are equal. What does a softmax make of them? The head then
    returns the mean of all values, which isn't nothing.
    """
    layer, x = _layer_and_input()
    uniform = copy.deepcopy(layer)
    for parameter in uniform.query_proj.parameters():
        parameter.data[4:8] = 0
    same = torch.allclose(candidate(layer, 1)(x, x, x), uniform(x, x, x), atol=1e-6)
    expect(not same, "head 1 returns the mean of all values")


@fixed_without_head.must("outputs what the other heads give, bias included")
def outputs_what_other_heads_give_bias_included(candidate):
    """Where does the head enter out_proj? Find the part of its weight that the head meets, because there it has to
    add nothing.

    The weight of out_proj is W_O transposed, (embed_dim, heads · head_dim), so a head meets columns of it, as many as
    it has features.
    """
    for sizes in ((12, 3), (16, 2)):
        layer, x = _layer_and_input(*sizes)
        projections = (layer.query_proj, layer.key_proj, layer.value_proj)
        q, k, v = (split_heads(project(x), layer.num_heads) for project in projections)
        for head in range(layer.num_heads):
            heads = scaled_dot_product_attention(q, k, v)
            heads[:, head] = 0
            expected = layer.out_proj(merge_heads(heads)).detach()
            answer = expect_shape(candidate(layer, head)(x, x, x), tuple(expected.shape)).detach()
            what = f"head {head} of {layer.num_heads} at zero"
            expect_close(
                answer, expected, what, hint=_hint_for_output(answer, expected, head, len(heads[0]))
            )


def _hint_for_output(answer: Tensor, expected: Tensor, head: int, num_heads: int) -> str:
    """A hint for a difference that is the same for all tokens, or lies in the head's own features; else empty."""
    over = answer - expected
    own = answer.unflatten(-1, (num_heads, -1))[..., head, :]
    if torch.allclose(over, over[:1, :1].expand_as(over), atol=1e-6):
        return _CONSTANT
    return _ROWS if (own == own[:1, :1]).all() else ""
