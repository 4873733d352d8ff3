"""Mistakes in the exercises of *Diffusion*, each with the property that catches it and its hint."""

from mistakes.table import mistake

from course_utils.attention import merge_heads, split_heads


@mistake("fixed_noisy", caught_by="takes batches whose pictures", hint="Along which axis")
def not_fixed(x, t, noise, alpha_bar):
    """Spreads the steps over the columns."""
    a = alpha_bar[t]
    return a.sqrt() * x + (1 - a).sqrt() * noise


@mistake("fixed_noisy", caught_by="gives each picture its own step", hint="we need its root")
def one_root(x, t, noise, alpha_bar):
    """Forgets the root of the noise."""
    a = alpha_bar[t][:, None, None, None]
    return a.sqrt() * x + (1 - a) * noise


@mistake(
    "fixed_noisy", caught_by="gives each picture its own step", hint="the root or the difference"
)
def root_before_the_difference(x, t, noise, alpha_bar):
    """Writes 1 − √ᾱ for √(1 − ᾱ)."""
    return (root := alpha_bar[t][:, None, None, None].sqrt()) * x + (1 - root) * noise


@mistake("fixed_noisy", caught_by="gives each picture its own step", hint="belongs to the picture")
def factors_exchanged(x, t, noise, alpha_bar):
    """The picture gets the share of the noise."""
    a = alpha_bar[t][:, None, None, None]
    return (1 - a).sqrt() * x + a.sqrt() * noise


@mistake(
    "fixed_noisy",
    caught_by="gives the picture itself at step 0",
    reason="changed its inputs",
    hint="in place",
)
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


@mistake("my_step_back", caught_by="cuts the guess to −1 … 1", hint="Compute it anew")
def old_noise_kept(x, noise, a, b, fresh):
    """Cuts the guess, and keeps the noise that no longer belongs to it."""
    return _step(x, noise, a, b, fresh, again=False)


@mistake(
    "my_step_back",
    caught_by="gives the fresh noise the variance",
    hint="By what is the fresh noise",
)
def sigma_for_its_square(x, noise, a, b, fresh):
    """Multiplies the fresh noise by its variance."""
    return _step(x, noise, a, b, fresh, root=False)


@mistake("my_step_back", caught_by="gives guess and old noise their shares", hint="a/b or b/a")
def ratio_upside_down(x, noise, a, b, fresh):
    """Writes b/a for a/b."""
    return _step(x, noise, a, b, fresh, variance=(1 - b) / (1 - a) * (1 - b / a))


@mistake(
    "my_step_back",
    caught_by="gives guess and old noise their shares",
    hint="By what is the guess multiplied",
)
def cut_at_the_end(x, noise, a, b, fresh):
    """Cuts the new picture in place of the guess."""
    return _step(x, noise, a, b, fresh, cut=False).clamp(-1, 1)


@mistake(
    "my_step_back",
    caught_by="gives the guess of the clean picture",
    hint="What is left of the three terms",
)
def wrong_level(x, noise, a, b, fresh):
    """Makes the guess with level b."""
    return _step(x, noise, b, b, fresh, variance=0 * a) if b < 1 else x


@mistake(
    "my_step_back", caught_by="leaves everything it is given", hint="Does a line work in place?"
)
def over_what_was_given(x, noise, a, b, fresh):
    """Right, but written over the pictures it was given: a list of the way would hold the last one only."""
    return x.copy_(_step(x, noise, a, b, fresh))


def _attend(q, k, v, num_heads, *, scale=None, dim=-1):
    q, k, v = (split_heads(part, num_heads) for part in (q, k, v))
    scores = q @ k.mT * ((1 / q.shape[-1]) ** 0.5 if scale is None else scale)
    return merge_heads(scores.softmax(dim=dim) @ v)


@mistake(
    "attend_to_words", caught_by="equals scaled dot-product attention", hint="It should be the root"
)
def not_scaled(q, k, v, num_heads):
    """Forgets 1/√head_dim."""
    return _attend(q, k, v, num_heads, scale=1.0)


@mistake(
    "attend_to_words",
    caught_by="runs several heads in parallel",
    hint="only a part of the channels",
)
def scaled_by_all_channels(q, k, v, num_heads):
    """Divides by √channels for √head_dim."""
    return _attend(q, k, v, num_heads, scale=q.shape[-1] ** -0.5)


@mistake(
    "attend_to_words",
    caught_by="runs several heads in parallel",
    hint="What undoes `cu.split_heads(x, num_heads)`, which gives",
)
def one_head_only(q, k, v, num_heads):
    """Takes no notice of the heads."""
    return _attend(q, k, v, 1)


@mistake(
    "attend_to_words",
    caught_by="runs several heads in parallel",
    hint="What undoes `cu.split_heads(x, num_heads)`, which gives",
)
def heads_cut_by_view(q, k, v, num_heads):
    """Splits the heads across pixels: a view where a transpose is needed."""
    q2, k2, v2 = (p.reshape(p.shape[0], num_heads, p.shape[1], -1) for p in (q, k, v))
    weights = (q2 @ k2.mT / q2.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v2).reshape(q.shape)


@mistake(
    "attend_to_words",
    caught_by="gives one output for each pixel",
    reason="got 4 axes",
    hint="What undoes",
)
def heads_left_apart(q, k, v, num_heads):
    """Does not merge."""
    return split_heads(_attend(q, k, v, num_heads), num_heads)


@mistake(
    "attend_to_words",
    caught_by="gives one output for each pixel",
    hint="Which axis of the scores belongs",
)
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
