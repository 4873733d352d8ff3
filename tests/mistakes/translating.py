"""Mistakes in the exercises of *Translating*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake

import course_utils as cu


def _best(total, size):
    best, picked = total.flatten().topk(size)
    return best, picked // total.shape[1], picked % total.shape[1]


@mistake("my_grow", caught_by="grows one beam into several", hint="How do we combine them")
def multiplies(scores, log_p, size):
    """Multiplies log-probabilities."""
    return _best(scores[:, None] * log_p, size)


@mistake("my_grow", caught_by="adds the score of each beam", hint="which axis do the scores lack")
def scores_without_an_axis(scores, log_p, size):
    """Adds the scores of the beams along the words."""
    return _best(scores + log_p, size)


@mistake("my_grow", caught_by="grows one beam into several", hint="Which beam does position p")
def rows_and_words_exchanged(scores, log_p, size):
    """Gives the word where the beam is asked for."""
    best, rows, words = _best(scores[:, None] + log_p, size)
    return best, words, rows


@mistake(
    "my_grow",
    caught_by="grows one beam into several",
    reason="rows of the first step",
    hint="p // V",
)
def divides_by_the_beams(scores, log_p, size):
    """Takes the number of beams for the number of words."""
    best, picked = (scores[:, None] + log_p).flatten().topk(size)
    return best, picked // len(scores), picked % len(scores)


@mistake("my_grow", caught_by="says which beam", hint="What does a position")
def always_beam_zero(scores, log_p, size):
    """Grows the best beam only."""
    best, words = (scores[0] + log_p[0]).topk(size)
    return best, torch.zeros(size, dtype=torch.long), words


@mistake("my_grow", caught_by="leaves its inputs unchanged", hint="add in place")
def adds_in_place(scores, log_p, size):
    """Writes the sums into the model's log-probabilities."""
    log_p += scores[:, None]
    return _best(log_p, size)


@mistake("my_grow", caught_by="grows one beam into several", hint="flatten before topk")
def best_of_each_beam(scores, log_p, size):
    """Takes one continuation from each beam."""
    best, words = (scores[:, None] + log_p).max(dim=1)
    best, rows = best.topk(size)
    return best, rows, words[rows]


@mistake("my_grow", caught_by="gives scores, rows, and words", hint="How many beams are there")
def keeps_all(scores, log_p, size):
    """Sorts, and cuts nothing off."""
    total = scores[:, None] + log_p
    best, picked = total.flatten().sort(descending=True)
    return best, picked // total.shape[1], picked % total.shape[1]


def _columns(model, p, m, place="cross_attention", sign=1):
    before, falls = p(), []
    for j in range(m):
        with cu.intervene(model) as acts:
            acts.forbid(place, keys=j)
            falls.append(sign * (before - p()))
    return falls


@mistake(
    "my_needs", caught_by="gives the probability before", hint="What do you subtract from what?"
)
def rises(model, p, m):
    """Subtracts the wrong way round."""
    return torch.stack(_columns(model, p, m, sign=-1), dim=-1)


@mistake(
    "my_needs",
    caught_by="forbids it in the cross-attention",
    hint="Which attentions does your place",
)
def only_the_last_layer(model, p, m):
    """Forbids in one layer."""
    return torch.stack(_columns(model, p, m, "decoder.1.cross_attention"), dim=-1)


@mistake(
    "my_needs",
    caught_by="forbids it in the cross-attention",
    hint="Which attentions does your place",
)
def everywhere(model, p, m):
    """Forbids in every attention, the decoder's look back included."""
    return torch.stack(_columns(model, p, m, None), dim=-1)


@mistake(
    "my_needs",
    caught_by="forbids it in the cross-attention",
    hint="Which attentions does your place name",
)
def in_all_attentions(model, p, m):
    """Names a place that all attentions have in their names."""
    return torch.stack(_columns(model, p, m, "attention"), dim=-1)


@mistake("my_needs", caught_by="gives a row for each French word", hint="Which axis belongs")
def words_first(model, p, m):
    """Puts the English words on the first axis."""
    return torch.stack(_columns(model, p, m))


@mistake(
    "my_needs", caught_by="forbids one English word at a time", hint="Is word 0 still forbidden"
)
def one_block_for_all(model, p, m):
    """Never lifts what is forbidden."""
    before, falls = p(), []
    with cu.intervene(model) as acts:
        for j in range(m):
            acts.forbid("cross_attention", keys=j)
            falls.append(before - p())
    return torch.stack(falls, dim=-1)


@mistake(
    "my_needs",
    caught_by="gives the probability before",
    reason="that are left",
    hint="before anything was forbidden",
)
def what_is_left(model, p, m):
    """Gives the probabilities, not how much they fall."""
    before = p()
    return torch.stack([before - column for column in _columns(model, p, m)], dim=-1)


@mistake(
    "my_needs",
    caught_by="gives the probability before",
    reason="shares of the probability",
    hint="don't divide",
)
def shares(model, p, m):
    """Divides each fall by the probability before."""
    return torch.stack(_columns(model, p, m), dim=-1) / p()[..., None]


@mistake(
    "my_needs",
    caught_by="gives the probability before",
    reason="never asked while all",
    hint="once before the loop",
)
def asks_before_inside_the_block(model, p, m):
    """Asks for both probabilities where the word is forbidden."""
    falls = []
    for j in range(m):
        with cu.intervene(model) as acts:
            acts.forbid("cross_attention", keys=j)
            before = p()
            falls.append(before - p())
    return torch.stack(falls, dim=-1)


@mistake(
    "my_needs",
    caught_by="gives the probability before",
    reason="changes nothing",
    hint="inside the block",
)
def asks_after_the_block(model, p, m):
    """Asks when the word is allowed again."""
    before, falls = p(), []
    for j in range(m):
        with cu.intervene(model) as acts:
            acts.forbid("cross_attention", keys=j)
        falls.append(before - p())
    return torch.stack(falls, dim=-1)


@mistake(
    "fixed_newest",
    caught_by="gives one vector for each beam",
    hint="Which slice of (beams, t) keeps",
)
def all_words(model, prefixes):
    """Embeds the whole beginning."""
    return model.embed(model.target_embedding, prefixes)


@mistake("fixed_newest", caught_by="keeps the first word as it was", hint="What did you change")
def without_its_position(model, prefixes):
    """Looks the word up, and adds no position."""
    return model.target_embedding(prefixes[:, -1:])


@mistake(
    "fixed_newest", caught_by="gives the newest word's vector", hint="Does the position depend"
)
def right_for_one_beam(model, prefixes):
    """Counts all ids of all beams."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.numel() - 1)


@mistake(
    "fixed_newest",
    caught_by="puts the fifth word at position 4",
    hint="Which position does the buggy",
)
def not_fixed(model, prefixes):
    """As in the exercise."""
    last = prefixes[:, -1:]
    return model.embed(model.target_embedding, last, len(last) - 1)


@mistake(
    "fixed_newest",
    caught_by="gives one vector for each beam",
    reason="are embedded",
    hint="Only the newest",
)
def cuts_the_last_row(model, prefixes):
    """Embeds the whole beginning and throws all but the last away: the work that a cache saves."""
    return model.embed(model.target_embedding, prefixes)[:, -1:]


ON_PAPER = {
    "predicted_beams": {
        "a": 0.8,  # 0.4 + 0.4
        "b": 0.16,  # a beam of two that follows the best first word only
        "c": 0.175,  # believes that a beam finds the best
    },
}
