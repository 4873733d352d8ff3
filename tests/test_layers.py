"""The sublayers: gated networks and norms against their formulas."""

import pytest
import torch

from course_utils.cache import KVCache
from course_utils.layers import EncoderLayer, SwiGLU


def test_a_gated_network_is_its_formula():
    torch.manual_seed(0)
    module, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    gate, up = x @ module.gate.weight.T, x @ module.up.weight.T
    torch.testing.assert_close(module(x), (gate * gate.sigmoid() * up) @ module.down.weight.T)


@pytest.mark.parametrize("norm_first", [False, True])
def test_of_the_first_tokens_alone_a_layer_gives_what_it_gives_of_all(norm_first):
    layer = EncoderLayer(8, 2, 16, dropout=0.0, norm_first=norm_first)
    x, mask = torch.randn(3, 5, 8), torch.rand(3, 1, 5, 5) > 0.3
    torch.testing.assert_close(layer(x, first=2), layer(x)[:, :2])
    torch.testing.assert_close(layer(x, mask[:, :, :2], first=2), layer(x, mask)[:, :2])


@pytest.mark.parametrize(
    ("rotary", "options"), [(True, {}), (False, {"is_causal": True}), (False, {"cache": KVCache()})]
)
def test_the_first_tokens_alone_are_not_for_layers_that_count_positions(rotary, options):
    with pytest.raises(ValueError, match="first=1 comes with is_causal, a cache or a rotary layer"):
        EncoderLayer(8, 2, 16, rotary=rotary)(torch.randn(2, 5, 8), first=1, **options)
