"""PyTorch's modules with the weights of ours, and a comparison of their gradients."""

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from course_utils.attention import MultiHeadAttention


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    """Give PyTorch's attention the weights of ours."""
    parts = (ours.query_proj, ours.key_proj, ours.value_proj)
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        else:
            for name, part in zip("qkv", parts, strict=True):
                getattr(theirs, f"{name}_proj_weight").copy_(part.weight)
        if theirs.in_proj_bias is not None:
            theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def copy_layer(ours, theirs) -> None:
    """Give a layer of PyTorch the weights of ours, whose norms are made to matter."""
    attentions = [m for m in ours.children() if isinstance(m, MultiHeadAttention)]
    norms = [m for m in ours.children() if isinstance(m, nn.LayerNorm)]
    for attention, name in zip(attentions, ("self_attn", "multihead_attn"), strict=False):
        copy_attention(attention, getattr(theirs, name))
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[3].state_dict())
    for index, norm in enumerate(norms, start=1):
        nn.init.normal_(norm.weight, 1, 0.1)
        nn.init.normal_(norm.bias, 0, 0.1)
        getattr(theirs, f"norm{index}").load_state_dict(norm.state_dict())


def same_gradients(ours: Tensor, theirs: Tensor, inputs) -> None:
    """Two outputs are the same, and their gradients to these tensors are."""
    assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    found = [
        torch.autograd.grad(y.square().sum(), inputs, retain_graph=True) for y in (ours, theirs)
    ]
    for mine, other in zip(*found, strict=True):
        assert mine.isfinite().all()
        assert_close(mine, other, atol=1e-4, rtol=1e-3)
