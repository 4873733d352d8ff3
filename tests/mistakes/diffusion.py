"""Mistakes that the checks of *Attention in a diffusion model* must catch."""

from mistakes.table import wrong

from course_utils.attention import merge_heads, split_heads


class fixed_noisy:
    def not_fixed(x, t, noise, alpha_bar):
        """Spreads the steps over the columns."""
        a = alpha_bar[t]
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def one_root(x, t, noise, alpha_bar):
        """Forgets the root of the noise."""
        a = alpha_bar[t][:, None, None, None]
        return a.sqrt() * x + (1 - a) * noise

    root_before_the_difference = wrong("Writes 1 − √ᾱ for √(1 − ᾱ).",
        lambda x, t, noise, alpha_bar: (root := alpha_bar[t][:, None, None, None].sqrt()) * x + (1 - root) * noise)

    def factors_exchanged(x, t, noise, alpha_bar):
        """The picture gets the share of the noise."""
        a = alpha_bar[t][:, None, None, None]
        return (1 - a).sqrt() * x + a.sqrt() * noise

    def in_place(x, t, noise, alpha_bar):
        """Changes the picture it was given."""
        a = alpha_bar[t][:, None, None, None]
        x *= a.sqrt()
        x += (1 - a).sqrt() * noise
        return x


def _step(x, noise, a, b, fresh, *, cut=True, again=True, variance=None, root=True, kept=None):
    clean = (x - (1 - a) ** 0.5 * noise) / a**0.5
    clean = clean.clamp(-1, 1) if cut else clean
    noise = (x - a**0.5 * clean) / (1 - a) ** 0.5 if again else noise
    variance = (1 - b) / (1 - a) * (1 - a / b) if variance is None else variance
    kept = (1 - b - variance).clamp(min=0) if kept is None else kept
    return b**0.5 * clean + kept**0.5 * noise + (variance**0.5 if root else variance) * fresh


class my_step_back:
    old_noise_kept = wrong("Cuts the guess, and keeps the noise that no longer belongs to it.",
        lambda x, noise, a, b, fresh: _step(x, noise, a, b, fresh, again=False))
    sigma_for_its_square = wrong("Multiplies the fresh noise by its variance.",
        lambda x, noise, a, b, fresh: _step(x, noise, a, b, fresh, root=False))
    ratio_upside_down = wrong("Writes b/a for a/b.",
        lambda x, noise, a, b, fresh: _step(x, noise, a, b, fresh, variance=(1 - b) / (1 - a) * (1 - b / a)))
    cut_at_the_end = wrong("Cuts the new picture in place of the guess.",
        lambda x, noise, a, b, fresh: _step(x, noise, a, b, fresh, cut=False).clamp(-1, 1))
    wrong_level = wrong("Makes the guess with level b.",
        lambda x, noise, a, b, fresh: _step(x, noise, b, b, fresh, variance=0 * a) if b < 1 else x)

    def over_what_was_given(x, noise, a, b, fresh):
        """Right, but written over the pictures it was given: a list of the way would hold the last one only."""
        return x.copy_(_step(x, noise, a, b, fresh))


def _attend(q, k, v, num_heads, *, scale=None, dim=-1):
    q, k, v = (split_heads(part, num_heads) for part in (q, k, v))
    scores = q @ k.mT * ((1 / q.shape[-1]) ** 0.5 if scale is None else scale)
    return merge_heads(scores.softmax(dim=dim) @ v)


class attend_to_words:
    not_scaled = wrong("Forgets 1/√head_dim.", lambda q, k, v, num_heads: _attend(q, k, v, num_heads, scale=1.0))
    scaled_by_all_channels = wrong("Divides by √channels for √head_dim.",
        lambda q, k, v, num_heads: _attend(q, k, v, num_heads, scale=q.shape[-1] ** -0.5))
    one_head_only = wrong("Takes no notice of the heads.", lambda q, k, v, num_heads: _attend(q, k, v, 1))

    def heads_cut_by_view(q, k, v, num_heads):
        """Splits the heads across pixels: a view where a transpose is needed."""
        q2, k2, v2 = (p.reshape(p.shape[0], num_heads, p.shape[1], -1) for p in (q, k, v))
        weights = (q2 @ k2.mT / q2.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ v2).reshape(q.shape)

    def heads_left_apart(q, k, v, num_heads):
        """Does not merge."""
        return split_heads(_attend(q, k, v, num_heads), num_heads)

    def words_ask(q, k, v, num_heads):
        """Words as queries, pixels as keys: an output for each word."""
        q, k = split_heads(q, num_heads), split_heads(k, num_heads)
        return merge_heads((k @ q.mT).softmax(dim=-1) @ q)


ON_PAPER = {
    "noised_on_paper": {
        "a": 0.2,  # multiplies by 1 − β, not by its root
        "b": 0.05,  # multiplies by 1 − β, not by its root
        "c": 1.5,  # does not shrink the first step's noise
        "d": 0.5625,  # takes the product of β
        "e": -0.4,  # leaves the guess shrunk
    },
}

ANSWERS = {
    "one_root": ("its own step", "we need its root"),
    "root_before_the_difference": ("its own step", "the root or the difference"),
    "scaled_by_all_channels": ("several heads", "only a part of the channels"),
    "factors_exchanged": ("its own step", "belongs to the picture"),
    "in_place": ("changed its inputs", "in place"),
    "old_noise_kept": ("belongs to the cut guess", "Compute it anew"),
    "ratio_upside_down": ("shares of level b", "a/b or b/a"),
    "heads_left_apart": ("got 4 axes", "What undoes"),
}
