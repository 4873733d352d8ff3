"""What a reader of *The Transformer* writes, as the course has it; PyTorch's names of weights; and deep stacks."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from course_utils.layers import DecoderLayer, Residual
from course_utils.masks import causal_mask, padding_mask


def three_sublayers(
    block: nn.Module,
    x: Tensor,
    memory: Tensor,
    attn_mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
) -> Tensor:
    """Masked self-attention, cross-attention, position-wise network, each inside its residual.

    Args:
        block: with the parts of `layers.DecoderLayer`, and a residual around each sublayer.
        x: (batch, n, embed_dim), the target's tokens.
        memory: (batch, m, embed_dim), what the encoder made of the source.
        attn_mask: which target tokens see which.
        memory_mask: which source tokens may be seen.

    Returns:
        (batch, n, embed_dim).
    """
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, lambda y: block.cross_attention(y, memory, memory, memory_mask))
    return block.around_feed_forward(x, block.feed_forward)


RESIDUALS = {
    "around_attention": "attention",
    "around_self": "self_attention",
    "around_cross": "cross_attention",
    "around_feed_forward": "feed_forward",
}
"""The residuals of the chapter's blocks, and their sublayers."""


def around_sublayers(layer: DecoderLayer) -> DecoderLayer:
    """The package's layer with the residuals of the chapter's block beside its norms, which they share."""
    for name, sublayer in RESIDUALS.items():
        if hasattr(layer, sublayer):
            residual = Residual(1, dropout=layer.dropout.p, norm_first=layer.norm_first)
            residual.norm = getattr(layer, f"{sublayer}_norm")
            setattr(layer, name, residual)
    return layer


def in_package_names(weights: dict[str, Any]) -> dict[str, Any]:
    """The weights of the chapter's model by the names of `cu.Transformer`, whose layers own the norms."""
    renamed = {}
    for name, weight in weights.items():
        for residual, sublayer in RESIDUALS.items():
            name = name.replace(f"{residual}.norm", f"{sublayer}_norm")
        renamed[name] = weight
    return renamed


def in_chapter_names(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a `cu.Transformer` by the names of the chapter's model."""
    names = in_package_names({name: name for name in model.state_dict()})
    return {own: weights[package] for package, own in names.items()}


PARTS = {
    "attention": "self_attn",
    "self_attention": "self_attn",
    "cross_attention": "multihead_attn",
    "feed_forward.0": "linear1",
    "feed_forward.3": "linear2",
}
"""Our names of a block's parts, and those of `nn.TransformerEncoderLayer` and `nn.TransformerDecoderLayer`."""


def in_torchs_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of one of our blocks by PyTorch's names; it keeps W_Q, W_K, W_V in one table."""
    norms = [name.removesuffix(".norm.weight") for name in weights if name.endswith("norm.weight")]
    renamed = {}
    for name, weight in weights.items():
        module, kind = name.rsplit(".", 1)
        if module.endswith(".norm"):
            renamed[f"norm{norms.index(module.removesuffix('.norm')) + 1}.{kind}"] = weight
        elif module in PARTS:
            renamed[f"{PARTS[module]}.{kind}"] = weight
        elif module.endswith("out_proj"):
            renamed[f"{PARTS[module.split('.')[0]]}.out_proj.{kind}"] = weight
        elif module.endswith("query_proj"):
            parts = [weights[name.replace("query", role)] for role in ("query", "key", "value")]
            renamed[f"{PARTS[module.split('.')[0]]}.in_proj_{kind}"] = torch.cat(parts)
    return renamed


def random_weights(block: nn.Module) -> list[Tensor]:
    """A random tensor for each weight of a block, norms and biases among them: none is 0 or 1."""
    return [weight.detach() + 0.2 * torch.randn_like(weight) for weight in block.parameters()]


def by_weights(
    ours: nn.Module, torchs: nn.Module, padding: Tensor, causal: Tensor | None = None
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """A block of ours and PyTorch's layer as functions of inputs and weights, the weights in the order of ours.

    Args:
        ours, torchs: encoder blocks; with a `causal` mask, decoder blocks.
        padding: (batch, 1, 1, m), of the source. PyTorch's masks say True = must not be looked at.
        causal: (n, n), of the target.
    """
    names = [name for name, _ in ours.named_parameters()]
    masks, hidden = {"attn_mask": padding}, {"src_key_padding_mask": ~padding[:, 0, 0]}
    if causal is not None:
        masks = {"attn_mask": causal, "memory_mask": padding}
        hidden = {"tgt_mask": ~causal, "memory_key_padding_mask": ~padding[:, 0, 0]}

    def called(module: nn.Module, masks: dict, rename: Callable[[dict], dict]) -> Callable:
        def call(*given: Tensor) -> Tensor:
            weights = dict(zip(names, given[-len(names) :], strict=True))
            return functional_call(module, rename(weights), given[: -len(names)], masks)

        call.__module__ = type(module).__module__  # so that cu.equal says whose it is
        return call

    return called(ours, masks, lambda weights: weights), called(torchs, hidden, in_torchs_names)


def in_torch(
    block: type[nn.Module], layer: type[nn.Module]
) -> tuple[Callable[..., Tensor], Callable[..., Tensor], *tuple[Tensor, ...]]:
    """Both blocks as functions, and inputs and random weights for them: what `cu.equal` compares.

    Args:
        block: the chapter's class, built from (embed_dim, num_heads, ffn_dim).
        layer: PyTorch's, `nn.TransformerEncoderLayer` or `nn.TransformerDecoderLayer`.
    """
    ours = block(16, 4, 32, dropout=0.0)
    torchs = layer(16, 4, 32, dropout=0.0, norm_first=True, batch_first=True)
    padding, source = padding_mask(torch.tensor([4, 6]), 6), torch.randn(2, 6, 16)
    if not hasattr(ours, "cross_attention"):
        return *by_weights(ours, torchs, padding), source, *random_weights(ours)
    both = by_weights(ours, torchs, padding, causal_mask(8))
    return *both, torch.randn(2, 8, 16), source, *random_weights(ours)


# Stacks of random position-wise networks ----------------------------------------------------------

Sublayer = Callable[[Tensor], Tensor]
Order = Callable[[Tensor, Sublayer], Tensor]
"""(x, f) → what leaves the layer, such as x + f(norm(x))."""

DEPTHS = (1, 2, 4, 8, 16, 24)
WIDTH, TOKENS = 32, 1000


def stack(x: Tensor, order: Order, s: float, generator: torch.Generator) -> list[Tensor]:
    """x, and what leaves each of 24 layers.

    Args:
        x: (tokens, WIDTH).
        order: of the layers.
        s: how large f(x) is, relative to x. The networks have no biases, so that this holds for x of any size.
        generator: of the weights.
    """
    xs = [x]
    for _ in range(max(DEPTHS)):
        w1 = torch.randn(WIDTH, 4 * WIDTH, generator=generator) * math.sqrt(2 / WIDTH)
        w2 = torch.randn(4 * WIDTH, WIDTH, generator=generator) * math.sqrt(1 / (4 * WIDTH))
        xs.append(order(xs[-1], lambda y, w1=w1, w2=w2: s * (y @ w1).relu() @ w2))
    return xs


def measured(order: Order, s: float, seed: int) -> list[list[float]]:
    """Gradient at the input, and R² of a linear map back to the input, behind each of DEPTHS layers.

    The gradient is that of a random weighting of the output; its size is 1 where the output is the input. The
    map is fitted on one half of the tokens, with a little ridge, and R² is that of the other half.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(TOKENS, WIDTH, generator=generator).requires_grad_()
    xs = stack(x, order, s, generator)
    half, results = TOKENS // 2, []
    for depth in DEPTHS:
        weighted = (xs[depth] * torch.randn(TOKENS, WIDTH, generator=generator)).sum()
        (gradient,) = torch.autograd.grad(weighted, x, retain_graph=True)
        inputs, read = x.detach(), xs[depth].detach()
        read = F.pad(read / read.std(), (0, 1), value=1.0)
        gram = read[:half].T @ read[:half] + 0.01 * torch.eye(WIDTH + 1)
        back = torch.linalg.solve(gram, read[:half].T @ inputs[:half])
        missed = (inputs[half:] - read[half:] @ back).square().mean() / inputs[half:].var()
        results.append([gradient.square().mean().sqrt().item(), 1 - missed.item()])
    return results


@torch.no_grad()
def size_at_first(network: type[nn.Module]) -> float:
    """How large f(x) is, relative to x, in a position-wise network of 64 and 256 features that is not trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(TOKENS, 64)
        return (network(64, 256)(x).square().mean() / x.square().mean()).sqrt().item()
