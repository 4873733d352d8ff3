"""The decoder block of *The Transformer*, its weights under the names of the library and of PyTorch, and deep stacks.

The chapter's page calls `three_sublayers` where a reader's own has not passed, and compares its blocks with PyTorch's
layers (`in_torch`); its further page measures stacks of networks (`measured`).
"""

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
    """Output of a decoder block: masked self-attention, cross-attention, network, each inside its residual.

    Args:
        block: with the sublayers of `layers.DecoderLayer`, and a residual around each.
        x: (batch, n, embed_dim), the target's tokens.
        memory: (batch, m, embed_dim), the encoder's output.
        attn_mask: (n, n) or a shape that broadcasts to (batch, heads, n, n); True where a target token may attend.
        memory_mask: (batch, 1, 1, m), True where the source has a token.

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
"""Name of a residual in the chapter's blocks → name of the sublayer inside it."""


def around_sublayers(layer: DecoderLayer) -> DecoderLayer:
    """A layer of the library that is a block of the chapter as well: its residuals share the layer's norms."""
    for name, sublayer in RESIDUALS.items():
        norm = getattr(layer, f"{sublayer}_norm", None)
        if norm is not None:
            residual = Residual(
                len(norm.weight), dropout=layer.dropout.p, norm_first=layer.norm_first
            )
            residual.norm = norm
            setattr(layer, name, residual)
    return layer


def in_package_names(weights: dict[str, Any]) -> dict[str, Any]:
    """Weights of the chapter's model by the names of `cu.Transformer`, where a norm belongs to the layer."""
    renamed = {}
    for name, weight in weights.items():
        for residual, sublayer in RESIDUALS.items():
            name = name.replace(f"{residual}.norm", f"{sublayer}_norm")
        renamed[name] = weight
    return renamed


def in_chapter_names(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights of a `cu.Transformer` by the names of the chapter's model."""
    chapter_names = in_package_names({name: name for name in model.state_dict()})
    return {chapters: weights[packages] for packages, chapters in chapter_names.items()}


TORCHS_NAMES = {
    "attention": "self_attn",
    "self_attention": "self_attn",
    "cross_attention": "multihead_attn",
    "feed_forward.0": "linear1",
    "feed_forward.3": "linear2",
}
"""Name of a part of the chapter's blocks → its name in PyTorch's encoder layer and decoder layer."""


def in_torchs_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights of one of the chapter's blocks by PyTorch's names; W_Q, W_K and W_V are one tensor there."""
    residuals = [name.split(".")[0] for name in weights if name.endswith(".norm.weight")]
    renamed = {}
    for name, weight in weights.items():
        module, kind = name.rsplit(".", 1)  # kind: weight or bias
        part, *_, last = module.split(".")
        if last == "norm":
            renamed[f"norm{residuals.index(part) + 1}.{kind}"] = weight
        elif module in TORCHS_NAMES:
            renamed[f"{TORCHS_NAMES[module]}.{kind}"] = weight
        elif last == "out_proj":
            renamed[f"{TORCHS_NAMES[part]}.out_proj.{kind}"] = weight
        elif last == "query_proj":
            three = [weights[name.replace("query", role)] for role in ("query", "key", "value")]
            renamed[f"{TORCHS_NAMES[part]}.in_proj_{kind}"] = torch.cat(three)
    return renamed


def random_weights(block: nn.Module) -> list[Tensor]:
    """A random tensor for each parameter of a block, so that no norm or bias is 1 or 0."""
    return [weight.detach() + 0.2 * torch.randn_like(weight) for weight in block.parameters()]


def by_weights(
    ours: nn.Module, torchs: nn.Module, padding: Tensor, causal: Tensor | None = None
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """A block of the chapter and PyTorch's layer as functions of inputs and weights.

    Both are called with the inputs, and then with the weights in the order of `ours.named_parameters()`.

    Args:
        ours, torchs: encoder blocks; with a `causal` mask, decoder blocks.
        padding: (batch, 1, 1, m), the mask of the source, True at tokens. (In PyTorch's masks True hides.)
        causal: (n, n), the mask of the target.
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
    """Arguments of `cu.equal`: both blocks as functions (`by_weights`), and inputs and random weights for them.

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
"""(x, f) → the layer's output, such as x + f(norm(x)): it says where the norm stands."""

DEPTHS = (1, 2, 4, 8, 16, 24)
"""Numbers of layers after which a stack is measured."""
WIDTH, TOKENS = 32, 1000


def stack(x: Tensor, order: Order, s: float, generator: torch.Generator) -> list[Tensor]:
    """x and the outputs of 24 random layers, each (tokens, WIDTH).

    Args:
        x: (tokens, WIDTH).
        order: of the layers.
        s: ‖f(x)‖ / ‖x‖. The networks have no biases, so that it is the same for x of any size.
        generator: of the weights.
    """
    xs = [x]
    for _ in range(max(DEPTHS)):
        w1 = torch.randn(WIDTH, 4 * WIDTH, generator=generator) * math.sqrt(2 / WIDTH)
        w2 = torch.randn(4 * WIDTH, WIDTH, generator=generator) * math.sqrt(1 / (4 * WIDTH))
        xs.append(order(xs[-1], lambda y, w1=w1, w2=w2: s * (y @ w1).relu() @ w2))
    return xs


def measured(order: Order, s: float, seed: int) -> list[list[float]]:
    """[gradient, R²] of a stack after each of `DEPTHS` layers.

    The gradient is that of a randomly weighted sum of the outputs at the inputs, as a root mean square; it is 1 where
    the output is the input. R² says how well a linear map gets the inputs back from the outputs (`_linear_r2`).
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(TOKENS, WIDTH, generator=generator).requires_grad_()
    outputs = stack(x, order, s, generator)
    results = []
    for depth in DEPTHS:
        weighted = (outputs[depth] * torch.randn(TOKENS, WIDTH, generator=generator)).sum()
        (gradient,) = torch.autograd.grad(weighted, x, retain_graph=True)
        r2 = _linear_r2(outputs[depth].detach(), x.detach())
        results.append([gradient.square().mean().sqrt().item(), r2])
    return results


def _linear_r2(outputs: Tensor, inputs: Tensor) -> float:
    """R² of a linear map from outputs to inputs, both (TOKENS, WIDTH).

    The map is fitted on one half of the tokens by a ridge regression with a small penalty, and R² is that of the other.
    """
    half = TOKENS // 2
    features = F.pad(outputs / outputs.std(), (0, 1), value=1.0)  # a column of ones for the bias
    gram = features[:half].T @ features[:half] + 0.01 * torch.eye(WIDTH + 1)
    weights = torch.linalg.solve(gram, features[:half].T @ inputs[:half])
    error = (inputs[half:] - features[half:] @ weights).square().mean() / inputs[half:].var()
    return 1 - error.item()


@torch.no_grad()
def size_at_first(network: type[nn.Module]) -> float:
    """‖f(x)‖ / ‖x‖ of an untrained position-wise network f with 64 features and 256 hidden ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(TOKENS, 64)
        return (network(64, 256)(x).square().mean() / x.square().mean()).sqrt().item()
