"""Mistakes that the checks of *Attention between pixels* must catch."""

import torch
import torch.nn.functional as F
from torch import nn

# pixels_to_tokens -------------------------------------------------------------------------------


def view_only(x):
    """Reads the numbers in memory order: a token holds neighbors of one channel."""
    batch, channels, height, width = x.shape
    return x.reshape(batch, height * width, channels)


def columns_first(x):
    """Goes down the columns: token 1 is the pixel below."""
    return x.permute(0, 3, 2, 1).flatten(1, 2)


def tokens_behind(x):
    """Forgets to exchange the axes."""
    return x.flatten(2)


def channels_reversed(x):
    """The right pixels, their channels backwards."""
    return x.flip(1).flatten(2).transpose(1, 2)


def square_only(x):
    """Takes every picture to be square."""
    size = x.shape[2]
    return x[:, :, :, :size].flatten(2).transpose(1, 2)


# joined_qkv -------------------------------------------------------------------------------------


def _conv(parts, biases):
    weight = torch.cat(parts)
    conv = nn.Conv1d(weight.shape[1], weight.shape[0], 1)
    with torch.no_grad():
        conv.weight.copy_(weight[..., None])
        conv.bias.copy_(torch.cat(biases))
    return conv


def _projections(attention):
    return attention.query_proj, attention.key_proj, attention.value_proj


def keys_first(attention):
    """Keys, queries, values."""
    q, k, v = _projections(attention)
    return _conv([k.weight, q.weight, v.weight], [k.bias, q.bias, v.bias])


def weights_transposed(attention):
    """Turns each weight round."""
    parts = _projections(attention)
    return _conv([p.weight.T for p in parts], [p.bias for p in parts])


def biases_forgotten(attention):
    """Leaves the biases at what the convolution began with."""
    parts = _projections(attention)
    conv = _conv([p.weight for p in parts], [p.bias for p in parts])
    conv.bias.data.uniform_(-1, 1)
    return conv


def head_by_head(attention):
    """Queries, keys and values of head 1, then those of head 2, and so on."""
    parts, heads = _projections(attention), attention.num_heads
    weights = [w for i in range(heads) for w in (p.weight.chunk(heads)[i] for p in parts)]
    biases = [b for i in range(heads) for b in (p.bias.chunk(heads)[i] for p in parts)]
    return _conv(weights, biases)


def shared_storage(attention):
    """A convolution whose weights are the attention's own."""
    parts = _projections(attention)
    conv = _conv([p.weight for p in parts], [p.bias for p in parts])
    size = len(parts[0].weight)
    for i, p in enumerate(parts):
        p.weight.data = conv.weight.data[i * size : (i + 1) * size, :, 0]
    return conv


def without_bias(attention):
    """No bias at all."""
    parts = _projections(attention)
    conv = nn.Conv1d(parts[0].in_features, 3 * parts[0].in_features, 1, bias=False)
    conv.weight.data = torch.cat([p.weight.detach() for p in parts])[..., None]
    return conv


# half_precision_weights -------------------------------------------------------------------------


def scaled_afterwards(q, k):
    """Divides the product, when it has overflowed already."""
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)


def root_on_both(q, k):
    """Each factor gets 1/√d, the product 1/d."""
    scale = q.shape[-1] ** -0.5
    return ((q * scale) @ (k * scale).mT).softmax(dim=-1)


def in_single_precision(q, k):
    """Right, in float32."""
    return (q.float() @ k.float().mT / q.shape[-1] ** 0.5).softmax(dim=-1)


def not_scaled(q, k):
    """Forgets the scale."""
    return (q @ k.mT).softmax(dim=-1)


def for_sixteen(q, k):
    """A factor of one half whatever d is."""
    return ((q * 0.5) @ (k * 0.5).mT).softmax(dim=-1)


def keys_pay_alone(q, k):
    """The keys get the whole factor and far more, the queries the rest."""
    d = q.shape[-1]
    return ((q * d**1.5) @ (k / d**2).mT).softmax(dim=-1)


# step_back --------------------------------------------------------------------------------------


def variances_for_deviations(x, noise, a, b):
    """Forgets the roots."""
    clean = (x - (1 - a) * noise) / a
    return b * clean + (1 - b) * noise


def clean_only(x, noise, a, b):
    """Stops at the guess of the clean picture."""
    return (x - (1 - a) ** 0.5 * noise) / a**0.5


def fresh_noise(x, noise, a, b):
    """Adds new noise at the new level."""
    clean = (x - (1 - a) ** 0.5 * noise) / a**0.5
    return b**0.5 * clean + (1 - b) ** 0.5 * torch.randn_like(x)


def levels_exchanged(x, noise, a, b):
    """Takes the new level for the old."""
    clean = (x - (1 - b) ** 0.5 * noise) / b**0.5
    return a**0.5 * clean + (1 - a) ** 0.5 * noise


def picture_not_scaled(x, noise, a, b):
    """Adds the noise of the new level to the unscaled picture."""
    clean = (x - (1 - a) ** 0.5 * noise) / a**0.5
    return clean + (1 - b) ** 0.5 * noise


# fixed_pixel_heads ------------------------------------------------------------------------------


def not_fixed(x, qkv_weight, qkv_bias, num_heads):
    """The buggy function as it stands in the chapter."""
    batch, channels, height, width = x.shape
    qkv = F.conv1d(x.flatten(2), qkv_weight, qkv_bias)
    size = channels // num_heads
    q, k, v = qkv.reshape(batch * num_heads, 3 * size, height * width).split(size, dim=1)
    weights = torch.einsum("bdq,bdk->bqk", q * size**-0.25, k * size**-0.25).softmax(dim=-1)
    return torch.einsum("bqk,bdk->bdq", weights, v).reshape(x.shape)


def _split(x, qkv_weight, qkv_bias, num_heads):
    qkv = F.conv1d(x.flatten(2), qkv_weight, qkv_bias)
    return qkv.view(len(x), 3, num_heads, -1, qkv.shape[-1]).unbind(
        1
    )  # (batch, heads, dim, pixels)


def always_one_head(x, qkv_weight, qkv_bias, num_heads):
    """Gives up on heads."""
    q, k, v = _split(x, qkv_weight, qkv_bias, 1)
    return F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT.reshape(x.shape)


def softmax_over_queries(x, qkv_weight, qkv_bias, num_heads):
    """The columns sum to 1."""
    q, k, v = _split(x, qkv_weight, qkv_bias, num_heads)
    weights = (q.mT @ k / q.shape[2] ** 0.5).softmax(dim=-2)
    return (weights @ v.mT).mT.reshape(x.shape)


def channels_interleaved(x, qkv_weight, qkv_bias, num_heads):
    """Head i gets every num_heads-th channel."""
    qkv = F.conv1d(x.flatten(2), qkv_weight, qkv_bias)
    q, k, v = qkv.view(len(x), 3, -1, num_heads, qkv.shape[-1]).transpose(2, 3).unbind(1)
    heads = F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT  # (batch, heads, dim, pixels)
    return heads.transpose(1, 2).reshape(x.shape)


def not_moved_back(x, qkv_weight, qkv_bias, num_heads):
    """Reshapes (pixels, dim) as if it were (dim, pixels)."""
    q, k, v = _split(x, qkv_weight, qkv_bias, num_heads)
    return F.scaled_dot_product_attention(q.mT, k.mT, v.mT).reshape(x.shape)


def heads_left_in_the_batch(x, qkv_weight, qkv_bias, num_heads):
    """Forgets to join the heads: (batch · heads, dim, pixels)."""
    q, k, v = _split(x, qkv_weight, qkv_bias, num_heads)
    return F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT.flatten(0, 1)


def across_the_batch(x, qkv_weight, qkv_bias, num_heads):
    """All pixels of all pictures in one line."""
    line = (
        x.flatten(2).transpose(0, 1).flatten(1)[None, :, None]
    )  # (1, channels, 1, batch · pixels)
    q, k, v = _split(line, qkv_weight, qkv_bias, num_heads)
    heads = F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT
    return heads.reshape(x.shape[1], len(x), -1).transpose(0, 1).reshape(x.shape)


MISTAKES = {
    "pixels_to_tokens": [view_only, columns_first, tokens_behind, channels_reversed, square_only],
    "joined_qkv": [
        keys_first,
        weights_transposed,
        biases_forgotten,
        head_by_head,
        shared_storage,
        without_bias,
    ],
    "half_precision_weights": [
        scaled_afterwards,
        root_on_both,
        in_single_precision,
        not_scaled,
        for_sixteen,
        keys_pay_alone,
    ],
    "step_back": [
        variances_for_deviations,
        clean_only,
        fresh_noise,
        levels_exchanged,
        picture_not_scaled,
    ],
    "fixed_pixel_heads": [
        not_fixed,
        always_one_head,
        softmax_over_queries,
        channels_interleaved,
        not_moved_back,
        heads_left_in_the_batch,
        across_the_batch,
    ],
}
