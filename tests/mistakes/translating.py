"""Mistakes that the checks of *Translating* must catch."""

import torch
from mistakes.table import wrong

import course_utils as cu


def _best(total, size):
    best, picked = total.flatten().topk(size)
    return best, picked // total.shape[1], picked % total.shape[1]


class my_grow:
    multiplies = wrong(
        "Multiplies log-probabilities.",
        lambda scores, log_p, size: _best(scores[:, None] * log_p, size),
    )

    scores_without_an_axis = wrong(
        "Adds the scores of the beams along the words.",
        lambda scores, log_p, size: _best(scores + log_p, size),
    )

    def rows_and_words_exchanged(scores, log_p, size):
        """Gives the word where the beam is asked for."""
        best, rows, words = _best(scores[:, None] + log_p, size)
        return best, words, rows

    def divides_by_the_beams(scores, log_p, size):
        """Takes the number of beams for the number of words."""
        best, picked = (scores[:, None] + log_p).flatten().topk(size)
        return best, picked // len(scores), picked % len(scores)

    def always_beam_zero(scores, log_p, size):
        """Grows the best beam only."""
        best, words = (scores[0] + log_p[0]).topk(size)
        return best, torch.zeros(size, dtype=torch.long), words

    def adds_in_place(scores, log_p, size):
        """Writes the sums into the model's log-probabilities."""
        log_p += scores[:, None]
        return _best(log_p, size)

    def best_of_each_beam(scores, log_p, size):
        """Takes one continuation from each beam."""
        best, words = (scores[:, None] + log_p).max(dim=1)
        best, rows = best.topk(size)
        return best, rows, words[rows]

    def keeps_all(scores, log_p, size):
        """Sorts, and cuts nothing off."""
        total = scores[:, None] + log_p
        best, picked = total.flatten().sort(descending=True)
        return best, picked // total.shape[1], picked % total.shape[1]


def _columns(model, p, m, place="cross_attention", sign=1):
    before, falls = p(), []
    for j in range(m):
        with cu.intervene(model) as acts:
            acts.knock_out(place, keys=j)
            falls.append(sign * (before - p()))
    return falls


class my_needs:
    rises = wrong(
        "Subtracts the wrong way round.",
        lambda model, p, m: torch.stack(_columns(model, p, m, sign=-1), dim=-1),
    )
    only_the_last_layer = wrong(
        "Forbids in one layer.",
        lambda model, p, m: torch.stack(_columns(model, p, m, "decoder.1.cross_attention"), dim=-1),
    )
    everywhere = wrong(
        "Forbids in every attention, the decoder's look back included.",
        lambda model, p, m: torch.stack(_columns(model, p, m, None), dim=-1),
    )
    in_all_attentions = wrong(
        "Names a place that all attentions have in their names.",
        lambda model, p, m: torch.stack(_columns(model, p, m, "attention"), dim=-1),
    )
    words_first = wrong(
        "Puts the English words on the first axis.",
        lambda model, p, m: torch.stack(_columns(model, p, m)),
    )

    def one_block_for_all(model, p, m):
        """Never lifts what is forbidden."""
        before, falls = p(), []
        with cu.intervene(model) as acts:
            for j in range(m):
                acts.knock_out("cross_attention", keys=j)
                falls.append(before - p())
        return torch.stack(falls, dim=-1)

    def what_is_left(model, p, m):
        """Gives the probabilities, not how much they fall."""
        before = p()
        return torch.stack([before - column for column in _columns(model, p, m)], dim=-1)

    def shares(model, p, m):
        """Divides each fall by the probability before."""
        return torch.stack(_columns(model, p, m), dim=-1) / p()[..., None]

    def asks_before_inside_the_block(model, p, m):
        """Asks for both probabilities where the word is forbidden."""
        falls = []
        for j in range(m):
            with cu.intervene(model) as acts:
                acts.knock_out("cross_attention", keys=j)
                before = p()
                falls.append(before - p())
        return torch.stack(falls, dim=-1)

    def asks_after_the_block(model, p, m):
        """Asks when the word is allowed again."""
        before, falls = p(), []
        for j in range(m):
            with cu.intervene(model) as acts:
                acts.knock_out("cross_attention", keys=j)
            falls.append(before - p())
        return torch.stack(falls, dim=-1)


class fixed_newest:
    all_words = wrong(
        "Embeds the whole beginning.",
        lambda model, prefixes: model.embed(model.target_embedding, prefixes),
    )
    without_its_position = wrong(
        "Looks the word up, and adds no position.",
        lambda model, prefixes: model.target_embedding(prefixes[:, -1:]),
    )
    right_for_one_beam = wrong(
        "Counts all ids of all beams.",
        lambda model, prefixes: model.embed(
            model.target_embedding, prefixes[:, -1:], prefixes.numel() - 1
        ),
    )

    def not_fixed(model, prefixes):
        """As in the exercise."""
        last = prefixes[:, -1:]
        return model.embed(model.target_embedding, last, len(last) - 1)

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

ANSWERS = {
    "adds_in_place": ("leaves its inputs unchanged", "add in place"),
    "best_of_each_beam": ("grows one beam", "flatten before topk"),
    "in_all_attentions": ("nowhere else", "Which attentions does your place name"),
    "asks_before_inside_the_block": ("never asked while all", "once before the loop"),
    "one_block_for_all": ("one English word at a time", "Is word 0 still forbidden"),
    "cuts_the_last_row": ("are embedded", "Only the newest"),
    "multiplies": ("grows one beam", "How do we combine them"),
    "scores_without_an_axis": ("adds the score of each beam", "which axis do the scores lack"),
    "divides_by_the_beams": ("rows of the first step", "p // V"),
    "what_is_left": ("that are left", "before anything was forbidden"),
    "shares": ("shares of the probability", "don't divide"),
    "asks_after_the_block": ("changes nothing", "inside the block"),
}
