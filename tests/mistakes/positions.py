"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch

import course_utils as cu

# ignores_order ----------------------------------------------------------------------------------


def expects_the_same_outputs(layer, x):
    """Compares outputs place by place: that would be invariance."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]), layer(x), atol=1e-4)


def permutes_the_batch(layer, x):
    """Permutes the sequences of the batch, not the tokens."""
    order = torch.arange(len(x)).flip(0)
    return torch.allclose(layer(x[order]), layer(x)[order], atol=1e-4)


def to_the_last_bit(layer, x):
    """Asks for equality to the last bit."""
    order = torch.randperm(x.shape[1])
    return torch.equal(layer(x[:, order]), layer(x)[:, order])


def permutes_the_outputs_only(layer, x):
    """Gives the layer the same input twice."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x)[:, order], layer(x)[:, order], atol=1e-3)


def compares_the_means(layer, x):
    """Compares the mean over the tokens."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]).mean(1), layer(x).mean(1), atol=1e-3)


def compares_the_last_output(layer, x):
    """Looks at the last token only, and leaves it in its place."""
    order = torch.cat([torch.randperm(x.shape[1] - 1), torch.tensor([x.shape[1] - 1])])
    return torch.allclose(layer(x[:, order])[:, -1], layer(x)[:, -1], atol=1e-3)


def reverses_only(layer, x):
    """Tries one order, the reverse."""
    return torch.allclose(layer(x.flip(1)), layer(x).flip(1), atol=1e-3)


def shifts_only(layer, x):
    """Tries cyclic shifts."""
    return torch.allclose(layer(x.roll(1, 1)), layer(x).roll(1, 1), atol=1e-3)


def compares_the_sorted_outputs(layer, x):
    """Compares the outputs as sets, wherever they stand."""
    order = torch.randperm(x.shape[1])
    same = torch.allclose(layer(x[:, order]).sort(1).values, layer(x).sort(1).values, atol=1e-3)
    return bool(same)


def answers_with_a_tensor(layer, x):
    """A tensor of one truth value is not a bool."""
    order = torch.randperm(x.shape[1])
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max() < 1e-3


# layers_needed ----------------------------------------------------------------------------------


def n_over_k(n, kernel, *, dilated=False):
    """⌈n / k⌉: neighboring kernels that do not overlap."""
    return _by_powers(n, kernel) if dilated else math.ceil(n / kernel)


def forgets_the_rest(n, kernel, *, dilated=False):
    """Rounds down."""
    if dilated:
        return _by_powers(n, kernel)
    return max((n - 1) // (kernel - 1), min(1, n - 1))


def centered_kernels(n, kernel, *, dilated=False):
    """Half of each kernel looks into the future."""
    return _by_powers(n, kernel) if dilated else math.ceil((n - 1) / (kernel // 2))


def ignores_dilation(n, kernel, *, dilated=False):
    """The same count for both kinds."""
    return math.ceil((n - 1) / (kernel - 1))


def doubles_whatever_the_kernel(n, kernel, *, dilated=False):
    """Powers of 2 for every kernel."""
    return _by_powers(n, 2) if dilated else math.ceil((n - 1) / (kernel - 1))


def by_logarithm(n, kernel, *, dilated=False):
    """⌈log n / log k⌉ in floating point: 4 layers for 125 tokens and kernel 5."""
    if dilated:
        return math.ceil(math.log(n) / math.log(kernel))
    return math.ceil((n - 1) / (kernel - 1))


def by_logarithm_to_a_base(n, kernel, *, dilated=False):
    """The same by math.log(n, k)."""
    return math.ceil(math.log(n, kernel)) if dilated else math.ceil((n - 1) / (kernel - 1))


def at_least_one(n, kernel, *, dilated=False):
    """One layer even for one token."""
    return max(1, _by_powers(n, kernel) if dilated else math.ceil((n - 1) / (kernel - 1)))


def not_an_integer(n, kernel, *, dilated=False):
    """A fraction of a layer."""
    return math.log(n) / math.log(kernel) if dilated else (n - 1) / (kernel - 1)


def _by_powers(n, base):
    layers, seen = 0, 1
    while seen < n:
        layers, seen = layers + 1, seen * base
    return layers


# offset_matrix ----------------------------------------------------------------------------------


def _blocks(offset, embed_dim, rows, frequency=lambda j, d: 10_000 ** (-2 * j / d)):
    matrix = torch.zeros(embed_dim, embed_dim)
    for j in range(embed_dim // 2):
        angle = offset * frequency(j, embed_dim)
        c, s = math.cos(angle), math.sin(angle)
        matrix[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = torch.tensor(rows(c, s))
    return matrix


def counterclockwise(offset, embed_dim):
    """The rotation matrix of every textbook, for pairs with the cosine first: goes backward."""
    return _blocks(offset, embed_dim, lambda c, s: [[c, -s], [s, c]])


def two_plus_signs(offset, embed_dim):
    """Forgets the minus."""
    return _blocks(offset, embed_dim, lambda c, s: [[c, s], [s, c]])


def reflection(offset, embed_dim):
    """The minus before a cosine: a reflection."""
    return _blocks(offset, embed_dim, lambda c, s: [[c, s], [s, -c]])


def sines_on_the_diagonal(offset, embed_dim):
    """Sines and cosines exchanged."""
    return _blocks(offset, embed_dim, lambda c, s: [[s, c], [-c, s]])


def wrong_frequencies(offset, embed_dim):
    """10,000^(−j/d): half the exponent."""
    return _blocks(
        offset, embed_dim, lambda c, s: [[c, s], [-s, c]], lambda j, d: 10_000 ** (-j / d)
    )


def one_frequency(offset, embed_dim):
    """The same angle for every pair."""
    return _blocks(offset, embed_dim, lambda c, s: [[c, s], [-s, c]], lambda j, d: 1.0)


def ignores_the_direction(offset, embed_dim):
    """Takes the offset's magnitude."""
    return _blocks(abs(offset), embed_dim, lambda c, s: [[c, s], [-s, c]])


def pairs_of_halves(offset, embed_dim):
    """Pairs column j with column j + d/2."""
    half = embed_dim // 2
    angle = offset * 10_000 ** (-torch.arange(half) / half)
    c, s = angle.cos().diag(), angle.sin().diag()
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])


def blocks_only(offset, embed_dim):
    """The blocks, not yet put into a matrix."""
    angle = offset * 10_000 ** (-torch.arange(0, embed_dim, 2) / embed_dim)
    return torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], -1).view(-1, 2, 2)


# rotate_halves ----------------------------------------------------------------------------------


def _angles(x, first=0, base=10_000.0):
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half) / half)
    return (torch.arange(x.shape[-2]) + first)[:, None] * frequencies


def neighbors_as_pairs(x):
    """The paper's pairs, not the halves."""
    return cu.rotate(x)


def counts_from_one(x):
    """Positions 1, 2, 3, …"""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x, first=1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def no_minus(x):
    """(a cos + b sin, a sin + b cos) is no rotation."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x)
    return torch.cat([a * angle.cos() + b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def the_other_way_round(x):
    """Turns clockwise."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x)
    return torch.cat([a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin()], -1)


def interleaves_the_result(x):
    """Takes halves apart, but puts them together as neighbors."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x)
    turned = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(turned, -1).flatten(-2)


def another_base(x):
    """Base 1,000."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x, base=1_000.0)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def positions_squared(x):
    """An angle that is not proportional to the position: the distance alone no longer counts."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x) * torch.arange(x.shape[-2])[:, None]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def second_half_from_the_first(x):
    """Overwrites a before b needs it."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x)
    a = a * angle.cos() - b * angle.sin()
    b = a * angle.sin() + b * angle.cos()
    return torch.cat([a, b], -1)


def writes_into_its_input(x):
    """Right numbers, in the caller's memory."""
    half = x.shape[-1] // 2
    a, b = x[..., :half].clone(), x[..., half:].clone()
    angle = _angles(x)
    x[..., :half] = a * angle.cos() - b * angle.sin()
    x[..., half:] = a * angle.sin() + b * angle.cos()
    return x


def halves_of_the_tokens(x):
    """Cuts the sequence in halves, not the columns."""
    a, b = x.chunk(2, dim=-2)
    return torch.cat([a, b], dim=-1)


# fixed_step_by_step -----------------------------------------------------------------------------


def still_position_zero(x, attention, table):
    """Nothing is overwritten any more, but every token stands at position 0."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[:1]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


def still_in_place(x, attention, table):
    """The right row, written into the caller's tokens."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1]
        token += table[t]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


def counts_from_the_second_row(x, attention, table):
    """Off by one: the cache already holds the token."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[t + 1]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


def all_rows_for_each_token(x, attention, table):
    """Adds the first rows of the table to a single token, by broadcasting: many tokens come back."""
    cache, outputs = cu.KVCache(), []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[: t + 1]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


def forgets_the_past(x, attention, table):
    """The right position, but no cache: each token sees itself only."""
    outputs = []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[t]
        outputs.append(attention(token, token, token))
    return torch.cat(outputs, dim=1)


def sees_the_future(x, attention, table):
    """All at once, without a mask."""
    placed = x + table[: x.shape[1]]
    return attention(placed, placed, placed)


def all_at_once(x, attention, table):
    """Right, but not in steps."""
    placed = x + table[: x.shape[1]]
    return attention(placed, placed, placed, cu.causal_mask(x.shape[1]))


def recomputes_the_prefix(x, attention, table):
    """Right, but every step computes the whole prefix again."""
    outputs = []
    for t in range(x.shape[1]):
        prefix = x[:, : t + 1] + table[: t + 1]
        outputs.append(attention(prefix, prefix, prefix)[:, -1:])
    return torch.cat(outputs, dim=1)


def keeps_its_cache(x, attention, table, caches={}):  # noqa: B006
    """One cache per attention module, and never emptied."""
    cache, outputs = caches.setdefault(id(attention), (attention, cu.KVCache()))[1], []
    for t in range(x.shape[1]):
        token = x[:, t : t + 1] + table[t]
        outputs.append(attention(token, token, token, cache=cache))
    return torch.cat(outputs, dim=1)


MISTAKES = {
    "ignores_order": [
        expects_the_same_outputs,
        permutes_the_batch,
        to_the_last_bit,
        permutes_the_outputs_only,
        compares_the_means,
        compares_the_last_output,
        reverses_only,
        shifts_only,
        compares_the_sorted_outputs,
        answers_with_a_tensor,
    ],
    "layers_needed": [
        n_over_k,
        forgets_the_rest,
        centered_kernels,
        ignores_dilation,
        doubles_whatever_the_kernel,
        by_logarithm,
        by_logarithm_to_a_base,
        at_least_one,
        not_an_integer,
    ],
    "offset_matrix": [
        counterclockwise,
        two_plus_signs,
        reflection,
        sines_on_the_diagonal,
        wrong_frequencies,
        one_frequency,
        ignores_the_direction,
        pairs_of_halves,
        blocks_only,
    ],
    "rotate_halves": [
        neighbors_as_pairs,
        counts_from_one,
        no_minus,
        the_other_way_round,
        interleaves_the_result,
        another_base,
        positions_squared,
        second_half_from_the_first,
        writes_into_its_input,
        halves_of_the_tokens,
    ],
    "fixed_step_by_step": [
        still_position_zero,
        still_in_place,
        counts_from_the_second_row,
        all_rows_for_each_token,
        forgets_the_past,
        sees_the_future,
        all_at_once,
        recomputes_the_prefix,
        keeps_its_cache,
    ],
}
