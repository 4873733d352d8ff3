"""Mistakes that the checks of *Attention in a diffusion model* must catch."""

from course_utils.attention import merge_heads, split_heads

# noised_on_paper --------------------------------------------------------------------------------


def shares_without_roots():
    """Multiplies by 1 − β, not by its root."""
    return [0.2, 0.05, 0.9375, 0.0625, -0.8]


def variances_added():
    """Does not shrink the first step's noise."""
    return [0.4, 0.2, 1.5, 0.0625, -0.8]


def betas_multiplied():
    """Takes the product of β."""
    return [0.4, 0.2, 0.9375, 0.5625, -0.8]


def not_divided():
    """Leaves the guess shrunk."""
    return [0.4, 0.2, 0.9375, 0.0625, -0.4]


# fixed_noisy ------------------------------------------------------------------------------------


def not_fixed(x, t, noise, alpha_bar):
    """Spreads the steps over the columns."""
    a = alpha_bar[t]
    return a.sqrt() * x + (1 - a).sqrt() * noise


def one_step_for_all(x, t, noise, alpha_bar):
    """Takes the first picture's step."""
    a = alpha_bar[t[0]]
    return a.sqrt() * x + (1 - a).sqrt() * noise


def along_rows(x, t, noise, alpha_bar):
    """One axis too few."""
    a = alpha_bar[t][:, None, None]
    return a.sqrt() * x + (1 - a).sqrt() * noise


def no_roots(x, t, noise, alpha_bar):
    """Mixes with the shares of the variance."""
    a = alpha_bar[t][:, None, None, None]
    return a * x + (1 - a) * noise


def one_root(x, t, noise, alpha_bar):
    """Forgets the root of the noise."""
    a = alpha_bar[t][:, None, None, None]
    return a.sqrt() * x + (1 - a) * noise


def in_place(x, t, noise, alpha_bar):
    """Changes the picture it was given."""
    a = alpha_bar[t][:, None, None, None]
    x *= a.sqrt()
    x += (1 - a).sqrt() * noise
    return x


# step_back --------------------------------------------------------------------------------------


def _step(x, noise, a, b, fresh, *, cut=True, again=True, variance=None, root=True, kept=None):
    clean = (x - (1 - a) ** 0.5 * noise) / a**0.5
    clean = clean.clamp(-1, 1) if cut else clean
    noise = (x - a**0.5 * clean) / (1 - a) ** 0.5 if again else noise
    variance = (1 - b) / (1 - a) * (1 - a / b) if variance is None else variance
    kept = (1 - b - variance).clamp(min=0) if kept is None else kept
    return b**0.5 * clean + kept**0.5 * noise + (variance**0.5 if root else variance) * fresh


def not_cut(x, noise, a, b, fresh):
    """Lets the guess go beyond white and black."""
    return _step(x, noise, a, b, fresh, cut=False)


def old_noise_kept(x, noise, a, b, fresh):
    """Cuts the guess, and keeps the noise that no longer belongs to it."""
    return _step(x, noise, a, b, fresh, again=False)


def no_fresh_noise(x, noise, a, b, fresh):
    """DDIM."""
    return _step(x, noise, a, b, fresh, variance=0 * a)


def too_much_noise(x, noise, a, b, fresh):
    """Adds fresh noise to the whole old noise."""
    return _step(x, noise, a, b, fresh, kept=1 - b)


def sigma_for_its_square(x, noise, a, b, fresh):
    """Multiplies the fresh noise by its variance."""
    return _step(x, noise, a, b, fresh, root=False)


def over_what_was_given(x, noise, a, b, fresh):
    """Right, but written over the pictures it was given: a list of the way would hold the last one only."""
    return x.copy_(_step(x, noise, a, b, fresh))


def variance_of_the_way_in(x, noise, a, b, fresh):
    """Takes β = 1 − a/b for σ²."""
    return _step(x, noise, a, b, fresh, variance=1 - a / b, kept=0 * a)


def cut_at_the_end(x, noise, a, b, fresh):
    """Cuts the new picture in place of the guess."""
    return _step(x, noise, a, b, fresh, cut=False).clamp(-1, 1)


def wrong_level(x, noise, a, b, fresh):
    """Makes the guess with level b."""
    return _step(x, noise, b, b, fresh, variance=0 * a) if b < 1 else x


# attend_to_words --------------------------------------------------------------------------------


def _attend(q, k, v, num_heads, *, scale=None, dim=-1):
    q, k, v = (split_heads(part, num_heads) for part in (q, k, v))
    scores = q @ k.mT * ((1 / q.shape[-1]) ** 0.5 if scale is None else scale)
    return merge_heads(scores.softmax(dim=dim) @ v)


def not_scaled(q, k, v, num_heads):
    """Forgets 1/√head_dim."""
    return _attend(q, k, v, num_heads, scale=1.0)


def scaled_by_all_channels(q, k, v, num_heads):
    """Divides by the root of all channels."""
    return _attend(q, k, v, num_heads, scale=q.shape[-1] ** -0.5)


def over_pixels(q, k, v, num_heads):
    """Weights sum to 1 over the pixels."""
    return _attend(q, k, v, num_heads, dim=-2)


def one_head_only(q, k, v, num_heads):
    """Takes no notice of the heads."""
    return _attend(q, k, v, 1)


def heads_mixed_up(q, k, v, num_heads):
    """Does not put the heads back side by side."""
    parts = (split_heads(part, num_heads) for part in (q, k, v))
    q2, k2, v2 = parts
    weights = (q2 @ k2.mT / q2.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v2).reshape(q.shape)


def heads_cut_by_view(q, k, v, num_heads):
    """Splits the heads across pixels: a view where a transpose is needed."""
    q2, k2, v2 = (p.reshape(p.shape[0], num_heads, p.shape[1], -1) for p in (q, k, v))
    weights = (q2 @ k2.mT / q2.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v2).reshape(q.shape)


def words_ask(q, k, v, num_heads):
    """Words as queries, pixels as keys: an output for each word."""
    q, k = split_heads(q, num_heads), split_heads(k, num_heads)
    return merge_heads((k @ q.mT).softmax(dim=-1) @ q)


MISTAKES = {
    "noised_on_paper": [shares_without_roots, variances_added, betas_multiplied, not_divided],
    "fixed_noisy": [not_fixed, one_step_for_all, along_rows, no_roots, one_root, in_place],
    "my_step_back": [
        not_cut,
        old_noise_kept,
        no_fresh_noise,
        too_much_noise,
        sigma_for_its_square,
        over_what_was_given,
        variance_of_the_way_in,
        cut_at_the_end,
        wrong_level,
    ],
    "attend_to_words": [
        not_scaled,
        scaled_by_all_channels,
        over_pixels,
        one_head_only,
        heads_mixed_up,
        heads_cut_by_view,
        words_ask,
    ],
}
