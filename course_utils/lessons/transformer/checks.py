"""Checks of *The Transformer*: layer norm, a broken decoder layer, the parameter count, greedy decoding."""

import torch
from torch import Tensor, nn

from course_utils.attention import causal_mask, padding_mask
from course_utils.data.text import BOS, EOS
from course_utils.decoding import greedy
from course_utils.layers import DecoderLayer
from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_whole_number,
)
from course_utils.models.transformer import Transformer

# Layer norm -------------------------------------------------------------------------------------

layer_norm = Check("layer norm")


@layer_norm.must(
    "it keeps the shape, with any number of leading axes",
    hint="Over which axis do you average? Does the mean keep that axis, so that it broadcasts?",
)
def _(candidate):
    for shape in ((4,), (3, 4), (2, 3, 4)):
        expect_shape(candidate(torch.randn(shape), torch.ones(4), torch.zeros(4)), shape)


@layer_norm.must(
    "each token gets mean 0 and variance 1",
    hint="Which numbers form a group? By what is the sum of squares divided: d, or d − 1?",
)
def _(candidate):
    x = torch.tensor([[[1.0, 2, 3, 4], [5, 1, 0, -1]]])
    expected = torch.tensor(
        [[[-1.3416, -0.4472, 0.4472, 1.3416], [1.6465, -0.1098, -0.5488, -0.9879]]]
    )
    found = candidate(x, torch.ones(4), torch.zeros(4))
    expect_close(found, expected, "tokens (1, 2, 3, 4) and (5, 1, 0, −1)", atol=1e-3)


@layer_norm.must(
    "a token of equal features becomes the shift",
    hint="Its variance is 0. Where does eps stand, and is the shift added last?",
)
def _(candidate):
    x, shift = torch.full((2, 3, 4), 7.0), torch.randn(4)
    found = candidate(x, torch.randn(4), shift)
    expect_close(found, shift.expand(2, 3, 4), "a token of equal features")


@layer_norm.must(
    "it agrees with PyTorch for any scale, shift and eps",
    hint="Is eps added to the variance or to its root? Do scale and shift act on each feature?",
)
def _(candidate):
    x, scale, shift = 0.01 * torch.randn(2, 5, 6) + 3, torch.randn(6), torch.randn(6)
    for eps in (1e-5, 1e-2):
        expected = nn.functional.layer_norm(x, (6,), scale, shift, eps)
        found = candidate(x, scale, shift, eps)
        expect_close(found, expected, f"eps={eps:g}", atol=1e-3, rtol=1e-3)


# A broken decoder layer: find the bug -----------------------------------------------------------

fixed_decoder_layer = Check("fixed decoder layer")


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
    expect_close(after[:, :4], before[:, :4], "token 4 was changed, outputs before it")
    expect(not torch.allclose(after[:, 4], before[:, 4]), "token 4 was changed, its output was not")


@fixed_decoder_layer.must(
    "the output has the shape of x",
    hint="The input x is (batch, length, embed_dim), and the memory has another length. Which of the two "
    "does the layer pass on?",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    expect_shape(candidate(layer, x, memory, mask), (2, 6, 12))


@fixed_decoder_layer.must(
    "in training mode, a later token changes no earlier output",
    hint="This was right before. What happened to the causal mask?",
)
def _(candidate):
    _no_later_token(candidate, training=True)


@fixed_decoder_layer.must(
    "in eval mode, a later token changes no earlier output",
    hint="What differs between the two modes, and should it?",
)
def _(candidate):
    _no_later_token(candidate, training=False)


@fixed_decoder_layer.must(
    "the source's padding has no influence, the source has",
    hint="The queries, keys, values and mask of the cross-attention were right before. What did you change?",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    other = memory.clone()
    other[0, 2:] = torch.randn(2, 12)
    before, after = (candidate(layer, x, each, mask) for each in (memory, other))
    expect_close(after, before, "the padding of the source was changed, the output")
    other[0, 1] = torch.randn(12)
    expect(not torch.allclose(candidate(layer, x, other, mask), before), "the source is not read")


@fixed_decoder_layer.must(
    "if every sublayer returns 0, x passes unchanged",
    hint="Follow x past three sublayers that add nothing. What else is done to it on the way?",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    attentions = layer.self_attention.out_proj, layer.cross_attention.out_proj
    with torch.no_grad():
        for last in (*attentions, layer.feed_forward[3]):
            last.weight.zero_()
            last.bias.zero_()
    expect_close(
        candidate(layer, x, memory, mask), x, "all sublayers return 0, the output against x"
    )


@fixed_decoder_layer.must(
    "it agrees with cu.DecoderLayer",
    hint="What does each sublayer read, and through which norm? To what is its output added?",
)
def _(candidate):
    layer, x, memory, mask = _decoder()
    expected = layer(x, memory, causal_mask(6), mask)
    expect_close(candidate(layer, x, memory, mask), expected, atol=1e-4)


# The parameter count ----------------------------------------------------------------------------

count_parameters = Check("count parameters")


def _counts(candidate, source=30, target=40, **sizes):
    """What the candidate counts, and what there is."""
    sizes = {"embed_dim": 16, "ffn_dim": 32, "num_layers": 1, "norm_first": False} | sizes
    with torch.device("meta"):
        model = Transformer(source, target, num_heads=2, **sizes)
    expected = sum(parameter.numel() for parameter in model.parameters())
    return torch.tensor([expect_whole_number(candidate(source, target, *sizes.values())), expected])


def _agree(counts, what):
    found, expected = counts.tolist()
    expect(found == expected, f"{what}: {found:,} parameters; expected {expected:,}")


@count_parameters.must(
    "one more word costs what it should, in either vocabulary",
    hint="What does a model store for a source word, and what for a target word? Is there a bias?",
)
def _(candidate):
    base = _counts(candidate)
    _agree(_counts(candidate, source=31) - base, "one more source word")
    _agree(_counts(candidate, target=41) - base, "one more target word")


@count_parameters.must(
    "one more layer on each side costs what it should",
    hint="Which attentions, networks and norms does a decoder block have? Which of their parts have biases?",
)
def _(candidate):
    more = _counts(candidate, num_layers=3) - _counts(candidate, num_layers=1)
    _agree(more, "two more layers on each side")


@count_parameters.must(
    "norm_first adds the last norms",
    hint="With norm_first the stream is not normalized after the last sublayer. Where is it normalized then?",
)
def _(candidate):
    more = _counts(candidate, norm_first=True) - _counts(candidate, norm_first=False)
    _agree(more, "norm before instead of after")


@count_parameters.must(
    "one layer with the norm after is right",
    hint="The differences are right, but the sum is not. What is there in a model without layers?",
)
def _(candidate):
    _agree(_counts(candidate), "one layer, norm after")


@count_parameters.must(
    "it holds for any sizes",
    hint="Is a size written into the code that should come from the arguments?",
)
def _(candidate):
    sizes = {"embed_dim": 64, "ffn_dim": 100, "num_layers": 2, "norm_first": True}
    _agree(_counts(candidate, 500, 700, **sizes), "other sizes")


# Greedy decoding --------------------------------------------------------------------------------

greedy_by_recomputing = Check("greedy decoding by recomputing")


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


def _decoded(candidate, model, source, max_len=10):
    found = candidate(model, source, torch.tensor([source.shape[1]]), max_len=max_len)
    found = found.tolist() if isinstance(found, Tensor) else found
    kind = type(found).__name__
    expect(isinstance(found, list), f"a list of token ids is expected, got a {kind}")
    return [int(token) for token in found]


@greedy_by_recomputing.must(
    "it says what the model says",
    hint="Which token does the target begin with? At which position do you read the next token's logits?",
)
def _(candidate):
    found = _decoded(candidate, _Scripted(_FOLLOWS), torch.tensor([[5, 4, EOS]]))
    expect_equal(found[:2], [7, 8], "the first two tokens")


@greedy_by_recomputing.must(
    "it ends at <eos>, and leaves <bos> and <eos> out",
    hint="The caller wants the sentence alone. What stands before it and after it?",
)
def _(candidate):
    for first, expected in ((5, [7, 8]), (6, [9])):
        found = _decoded(candidate, _Scripted(_FOLLOWS), torch.tensor([[first, 4, EOS]]))
        expect_equal(found, expected, "decoded")


@greedy_by_recomputing.must(
    "it ends after max_len tokens at the latest",
    hint="What ends the loop if the model never says <eos>? Does <bos> count?",
)
def _(candidate):
    endless = _Scripted({BOS: {5: 7}, 7: {5: 8}, 8: {5: 7}})
    found = _decoded(candidate, endless, torch.tensor([[5, EOS]]), max_len=6)
    expect_equal(found, [7, 8] * 3, "max_len=6, a model that never ends, decoded")


@greedy_by_recomputing.must(
    "it agrees with cu.greedy on a Transformer",
    hint="Does each step see all tokens so far, and the source's real length?",
)
def _(candidate):
    model = Transformer(20, 20, embed_dim=16, num_heads=2, ffn_dim=32, dropout=0.0).eval()
    with torch.no_grad():
        model.output.bias[:3] = -30.0  # <pad>, <unk>, <bos>: never said
        for _ in range(5):
            source = torch.randint(4, 20, (1, 6))
            expected = greedy(model, source, torch.tensor([6]), max_len=12)[0]
            expect_equal(_decoded(candidate, model, source, max_len=12), expected, "decoded")
