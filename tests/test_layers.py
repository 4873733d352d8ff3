"""The sublayers: gated networks and norms against their formulas."""

import math

import pytest
import torch

from course_utils.cache import KVCache
from course_utils.layers import EncoderLayer, SwiGLU
from course_utils.positions import Rotation


def test_a_gated_network_is_its_formula():
    torch.manual_seed(0)
    module, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    gate, up = x @ module.gate.weight.T, x @ module.up.weight.T
    torch.testing.assert_close(module(x), (gate * gate.sigmoid() * up) @ module.down.weight.T)


def test_a_rotary_layer_whose_heads_have_an_odd_size_is_refused_when_it_is_made():
    with pytest.raises(ValueError, match="embed_dim=6, num_heads=2: a head has 3 features"):
        EncoderLayer(6, 2, 8, rotary=True)


def test_a_layer_turns_by_its_own_base_and_goes_on_with_it_from_the_cache():
    torch.manual_seed(0)
    layer = EncoderLayer(8, 2, 16, dropout=0.0, rotary=True, rotary_base=50.0)
    x = torch.randn(3, 5, 8)
    given = Rotation(5, 4, base=50.0)
    assert torch.equal(layer(x, is_causal=True), layer(x, is_causal=True, rotation=given))
    usual = Rotation(5, 4)
    assert not torch.allclose(layer(x, is_causal=True), layer(x, is_causal=True, rotation=usual))
    cache = KVCache()
    parts = [layer(part, is_causal=True, cache=cache) for part in x.split([2, 1, 2], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x, is_causal=True))


@pytest.mark.parametrize("base", [0.0, -10_000.0, math.inf, math.nan])
def test_a_base_that_is_no_positive_number_is_refused(base):
    with pytest.raises(ValueError, match=f"rotary_base={base}; a positive, finite number"):
        EncoderLayer(8, 2, 16, rotary=True, rotary_base=base)
