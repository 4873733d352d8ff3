"""Checks: layer norm, a broken decoder layer, the parameter count, greedy decoding."""

import torch
from torch import Tensor, nn

from course_utils.attention import padding_mask
from course_utils.data.text import BOS, EOS
from course_utils.layers import DecoderLayer
from course_utils.lessons.check import Check, expect, expect_close, expect_shape
from course_utils.models.transformer import Transformer

# Layer norm -------------------------------------------------------------------------------------


layer_norm = Check("layer norm")


@layer_norm.must(
    "it keeps the shape, with any number of leading axes",
    hint="reduce over the last axis only, and keep it with keepdim=True",
)
def _(candidate):
    for shape in ((4,), (3, 4), (2, 3, 4)):
        expect_shape(candidate(torch.randn(shape), torch.ones(4), torch.zeros(4)), shape)


@layer_norm.must(
    "each token gets mean 0 and variance 1",
    hint="which numbers form a group, and by what is the sum of squares divided: d, or d - 1?",
)
def _(candidate):
    x = torch.tensor([[[1.0, 2, 3, 4], [5, 1, 0, -1]]])
    expected = torch.tensor(
        [[[-1.3416, -0.4472, 0.4472, 1.3416], [1.6465, -0.1098, -0.5488, -0.9879]]]
    )
    found = candidate(x, torch.ones(4), torch.zeros(4))
    expect_close(found, expected, "tokens (1, 2, 3, 4) and (5, 1, 0, -1)", atol=1e-3)


@layer_norm.must(
    "a token of equal features becomes the shift",
    hint="its variance is 0; where does eps stand, and is the shift added last?",
)
def _(candidate):
    x, shift = torch.full((2, 3, 4), 7.0), torch.randn(4)
    expect_close(
        candidate(x, torch.randn(4), shift), shift.expand(2, 3, 4), "a token of equal features"
    )


@layer_norm.must(
    "it agrees with PyTorch for any scale, shift and eps",
    hint="eps is added to the variance, under the root; scale and shift are per feature",
)
def _(candidate):
    x, scale, shift = 0.01 * torch.randn(2, 5, 6) + 3, torch.randn(6), torch.randn(6)
    for eps in (1e-5, 1e-2):
        expected = nn.functional.layer_norm(x, (6,), scale, shift, eps)
        expect_close(
            candidate(x, scale, shift, eps), expected, f"eps={eps:g}", atol=1e-3, rtol=1e-3
        )


# A broken decoder layer -------------------------------------------------------------------------


def _decoder():
    layer = DecoderLayer(12, 3, 24, dropout=0.0, norm_first=True)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    memory_mask = padding_mask(torch.tensor([2, 4]), 4)
    return layer, torch.randn(2, 6, 12), torch.randn(2, 4, 12), memory_mask


def _no_later_token(candidate, training):
    layer, x, memory, mask = _decoder()
    layer.train(training)
    later = x.clone()
    later[:, 4] = torch.randn(12)
    before, after = (candidate(layer, each, memory, mask) for each in (x, later))
    expect_close(after[:, :4], before[:, :4], "token 4 changed, and outputs before it too")
    expect(not torch.allclose(after[:, 4], before[:, 4]), "token 4 changed, but its output did not")


fixed_decoder_layer = Check("fixed decoder layer")


@fixed_decoder_layer.must(
    "the output has the shape of x",
    hint="(batch, length, embed_dim) comes in and must come out, whatever the memory's length",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    expect_shape(candidate(layer, x, memory, mask), (2, 6, 12))


@fixed_decoder_layer.must(
    "in training mode, a later token changes no earlier output",
    hint="this one was right before; what happened to the causal mask?",
)
def _(candidate):
    _no_later_token(candidate, True)


@fixed_decoder_layer.must(
    "in eval mode, a later token changes no earlier output",
    hint="what differs between the two modes, and should it?",
)
def _(candidate):
    _no_later_token(candidate, False)


@fixed_decoder_layer.must(
    "the source's padding has no influence, the source has",
    hint="the cross-attention's queries, keys, values and mask were right as they stood",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    other = memory.clone()
    other[0, 2:] = torch.randn(2, 12)
    before, after = (candidate(layer, x, each, mask) for each in (memory, other))
    expect_close(after, before, "the source's padding changed, and the output too")
    other[0, 1] = torch.randn(12)
    expect(not torch.allclose(candidate(layer, x, other, mask), before), "the source is not read")


@fixed_decoder_layer.must(
    "if no sublayer says anything, x passes unchanged",
    hint="follow x through three silent sublayers: what else is done to it on the way?",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    with torch.no_grad():
        for last in (
            layer.self_attention.out_proj,
            layer.cross_attention.out_proj,
            layer.feed_forward[3],
        ):
            last.weight.zero_()
            last.bias.zero_()
    expect_close(
        candidate(layer, x, memory, mask), x, "all sublayers say 0, but x came out changed"
    )


@fixed_decoder_layer.must(
    "it agrees with cu.DecoderLayer",
    hint="each sublayer reads the stream through its own norm, and its correction is added to the stream",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    causal = torch.ones(6, 6).tril().bool()
    expect_close(candidate(layer, x, memory, mask), layer(x, memory, causal, mask), atol=1e-4)


# The parameter count ----------------------------------------------------------------------------


def _count(source=30, target=40, *, embed_dim=16, ffn_dim=32, num_layers=1, norm_first=False):
    with torch.device("meta"):
        model = Transformer(
            source, target, embed_dim=embed_dim, num_heads=2, ffn_dim=ffn_dim,
            num_layers=num_layers, norm_first=norm_first,
        )  # fmt: skip
    return sum(parameter.numel() for parameter in model.parameters())


def _counted(candidate, source=30, target=40, **sizes):
    full = {"embed_dim": 16, "ffn_dim": 32, "num_layers": 1, "norm_first": False} | sizes
    order = ("embed_dim", "ffn_dim", "num_layers", "norm_first")
    found = candidate(source, target, *(full[name] for name in order))
    expect(isinstance(found, int), f"a whole number is expected, got {found!r}")
    return found, _count(source, target, **sizes)


def _equal(found, expected, what):
    expect(found == expected, f"{what}: {found:,} counted, {expected:,} are there")


count_parameters = Check("count parameters")


@count_parameters.must(
    "one more word costs what it should, in either vocabulary",
    hint="a source word has an embedding; a target word has an embedding and a logit, bias included",
)
def _(candidate):
    for name, sizes in (("source", (31, 40)), ("target", (30, 41))):
        (more, own_more), (base, own_base) = _counted(candidate, *sizes), _counted(candidate)
        _equal(more - base, own_more - own_base, f"one more {name} word")


@count_parameters.must(
    "a layer more on each side costs what it should",
    hint="per decoder block: two attentions, one network, three norms; all four projections have biases",
)
def _(candidate):
    (three, own_three), (one, own_one) = (_counted(candidate, num_layers=n) for n in (3, 1))
    _equal(three - one, own_three - own_one, "two more layers on each side")


@count_parameters.must(
    "norm_first adds the last norms",
    hint="with norm_first the stream is normalized once more at the end of the encoder, and of the decoder",
)
def _(candidate):
    (before, own_before), (after, own_after) = (
        _counted(candidate, norm_first=f) for f in (True, False)
    )
    _equal(before - after, own_before - own_after, "norm before instead of after")


@count_parameters.must(
    "one layer with the norm after is right",
    hint="the differences are right, but the sum is not: what is there in a model without layers?",
)
def _(candidate):
    _equal(*_counted(candidate), "one layer, norm after")


@count_parameters.must(
    "it holds for any sizes",
    hint="is a size written into the code that should come from the arguments?",
)
def _(candidate):
    sizes = {"embed_dim": 64, "ffn_dim": 100, "num_layers": 2, "norm_first": True}
    _equal(*_counted(candidate, 500, 700, **sizes), "other sizes")


# Greedy decoding --------------------------------------------------------------------------------


class _Scripted:
    """A model that answers from a table: the next token follows from the last one and the source."""

    def __init__(self, follows: dict[int, dict[int, int]]):
        self.follows = follows  # last token → {first source token: next token}

    def eval(self) -> "_Scripted":
        """A script has one mode."""
        return self

    def __call__(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        logits = torch.randn(*target.shape, 12)
        for row, tokens in enumerate(target.tolist()):
            for place, token in enumerate(tokens):
                logits[row, place, self.follows[token][int(source[row, 0])]] = 9.0
        return logits


_FOLLOWS = {
    BOS: {5: 7, 6: 9},
    7: {5: 8, 6: 8},
    8: {5: EOS, 6: 8},
    9: {5: 9, 6: EOS},
    EOS: {5: 10, 6: 10},
    10: {5: 11, 6: 11},
    11: {5: 10, 6: 10},
}


def _scripted(first):
    return _Scripted(_FOLLOWS), torch.tensor([[first, 4, EOS]]), torch.tensor([3])


def _decode(candidate, first, **options):
    found = candidate(*_scripted(first), **options)
    found = found.tolist() if isinstance(found, Tensor) else found
    expect(
        isinstance(found, list), f"a list of token ids is expected, got a {type(found).__name__}"
    )
    return [int(token) for token in found]


greedy_by_recomputing = Check("greedy decoding by recomputing")


@greedy_by_recomputing.must(
    "it says what the model says",
    hint="the target begins with <bos>; the next token is read off the logits of the last place",
)
def _(candidate):
    found = _decode(candidate, 5, max_len=10)
    expect(found[:2] == [7, 8], f"the model says 7, then 8, then <eos>; decoded {found}")


@greedy_by_recomputing.must(
    "it ends at <eos>, and leaves <bos> and <eos> out",
    hint="what the caller wants is the sentence: nothing before it, nothing after it",
)
def _(candidate):
    for first, expected in ((5, [7, 8]), (6, [9])):
        found = _decode(candidate, first, max_len=10)
        expect(found == expected, f"the model says {expected}, then <eos>; decoded {found}")


@greedy_by_recomputing.must(
    "it ends after max_len tokens at the latest",
    hint="<bos> does not count; a model may never say <eos>",
)
def _(candidate):
    follows = {BOS: {5: 7}, 7: {5: 8}, 8: {5: 7}}
    found = candidate(_Scripted(follows), torch.tensor([[5, EOS]]), torch.tensor([2]), max_len=6)
    expect(list(map(int, found)) == [7, 8] * 3, f"max_len=6, the model never ends; decoded {found}")


@greedy_by_recomputing.must(
    "it agrees with cu.greedy on a Transformer",
    hint="does each step see everything that was said so far, and the source's real length?",
)
def _(candidate):
    from course_utils.decoding import greedy

    model = Transformer(20, 20, embed_dim=16, num_heads=2, ffn_dim=32, dropout=0.0).eval()
    with torch.no_grad():
        model.output.bias[:3] = -30.0  # <pad>, <unk>, <bos>: never said
        for _ in range(5):
            source, lens = torch.randint(4, 20, (1, 6)), torch.tensor([6])
            expected = greedy(model, source, lens, max_len=12)[0]
            found = [int(token) for token in candidate(model, source, lens, max_len=12)]
            expect(found == expected, f"cu.greedy says {expected}; decoded {found}")
