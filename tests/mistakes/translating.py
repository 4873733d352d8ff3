"""Mistakes that the checks of *Translating* must catch."""

import torch

# predicted_beams --------------------------------------------------------------------------------


def adds_the_probabilities():
    """0.4 + 0.4, and so on."""
    return [0.8, 0.85, 1.25, 13, -1.04]


def beam_as_greedy():
    """A beam of two that follows the best first word only."""
    return [0.16, 0.16, 0.25, 13, -1.04]


def beam_finds_all():
    """A beam always finds the best sentence, and (c) is what the beam says."""
    return [0.16, 0.25, 0.175, 13, -1.04]


def three_rows_at_the_first_step():
    """Counts three beginnings before the first word."""
    return [0.16, 0.175, 0.25, 15, -1.04]


def divides_by_the_length():
    """Divides by n, not by (5 + n)/6."""
    return [0.16, 0.175, 0.25, 13, -0.32]


# my_grow ----------------------------------------------------------------------------------------


def _best(total, size):
    best, picked = total.flatten().topk(size)
    return best, picked // total.shape[1], picked % total.shape[1]


def forgets_the_past(scores, log_p, size):
    """Ranks by the last word alone."""
    return _best(log_p, size)


def multiplies(scores, log_p, size):
    """Multiplies log-probabilities."""
    return _best(scores[:, None] * log_p, size)


def best_of_each_beam(scores, log_p, size):
    """Each beam keeps its best word, and none is dropped."""
    best, words = (scores[:, None] + log_p).max(dim=1)
    order = best.argsort(descending=True)
    return best[order], order, words[order]


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


def keeps_all(scores, log_p, size):
    """Sorts, and cuts nothing off."""
    total = scores[:, None] + log_p
    best, picked = total.flatten().sort(descending=True)
    return best, picked // total.shape[1], picked % total.shape[1]


# fixed_newest -----------------------------------------------------------------------------------


def not_fixed(model, prefixes):
    """As in the exercise."""
    last = prefixes[:, -1:]
    return model.embed(model.target_embedding, last, len(last) - 1)


def always_at_zero(model, prefixes):
    """Each word at position 0."""
    return model.embed(model.target_embedding, prefixes[:, -1:])


def counts_from_one(model, prefixes):
    """Each word one place too late."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.shape[1])


def all_words(model, prefixes):
    """Embeds the whole beginning."""
    return model.embed(model.target_embedding, prefixes)


def without_its_position(model, prefixes):
    """Looks the word up, and adds no position."""
    return model.target_embedding(prefixes[:, -1:])


def first_word_again(model, prefixes):
    """The right position, of the wrong word."""
    return model.embed(model.target_embedding, prefixes[:, :1], prefixes.shape[1] - 1)


def right_for_one_beam(model, prefixes):
    """Counts all ids of all beams."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.numel() - 1)


def cuts_the_last_row(model, prefixes):
    """Embeds the whole beginning and throws all but the last away: the work that a cache saves."""
    return model.embed(model.target_embedding, prefixes)[:, -1:]


MISTAKES = {
    "predicted_beams": [
        adds_the_probabilities,
        beam_as_greedy,
        beam_finds_all,
        three_rows_at_the_first_step,
        divides_by_the_length,
    ],
    "my_grow": [
        forgets_the_past,
        multiplies,
        best_of_each_beam,
        rows_and_words_exchanged,
        divides_by_the_beams,
        always_beam_zero,
        adds_in_place,
        keeps_all,
    ],
    "fixed_newest": [
        cuts_the_last_row,
        not_fixed,
        always_at_zero,
        counts_from_one,
        all_words,
        without_its_position,
        first_word_again,
        right_for_one_beam,
    ],
}

ANSWERS = {
    "cuts_the_last_row": ("are embedded", "Only the newest"),
    "multiplies": ("one beam grows", "what makes of them"),
}
