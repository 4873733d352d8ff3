"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch
from mistakes.table import wrong

from course_utils.attention import AdditiveAttention, scaled_dot_product_attention
from course_utils.lessons.scoring_functions import scores
from course_utils.lessons.scoring_functions.word_lists import WORDS

GUESTS = {
    "pancake": [5, 0, -5],
    "chili": [0, 5, 0],
    "cookie": [0, 0, 5],
    "half a cookie": None,
    "bread": [-5, -5, -5],
}


def _guests(**others):
    """The right guests, but for these."""
    return lambda: GUESTS | {name.replace("_", " "): guest for name, guest in others.items()}


class my_guests:
    too_quiet = wrong("The right directions, but short queries.",
        lambda: {dish: guest and [x / 5 for x in guest] for dish, guest in GUESTS.items()})
    half_by_force = wrong("Searches on the line to the cookie, where the whole cookie wins.",
        _guests(half_a_cookie=[1, 0, 1]))
    nobody_wants_bread = wrong("Takes the dish of zeros for one that nobody can want.", _guests(bread=None))
    zeros_for_bread = wrong("The dish itself as its guest, who likes all dishes equally.", _guests(bread=[0, 0, 0]))
    likes_sweets = wrong("The guest for a pancake also likes the cookie.", _guests(pancake=[5, 0, 0]))
    forgets_a_dish = wrong("Leaves the impossible dish out.",
        lambda: {dish: guest for dish, guest in GUESTS.items() if guest})
    two_numbers = wrong("A guest without a taste for crunchy.", _guests(chili=[0, 5]))


def _steps(queries, keys, values, scale, dim=-1):
    return (queries @ keys.transpose(-2, -1) * scale).softmax(dim=dim) @ values


class my_attention:
    forgets_the_scale = wrong("No divisor.", lambda q, k, v: _steps(q, k, v, 1.0))
    divides_by_d = wrong("Divides by d, not by its root.", lambda q, k, v: _steps(q, k, v, 1 / q.shape[-1]))
    scaled_after_the_softmax = wrong("The division stands outside the softmax.",
        lambda q, k, v: _steps(q, k, v, 1.0) / math.sqrt(q.shape[-1]))
    d_of_the_values = wrong("Takes d from the values.", lambda q, k, v: _steps(q, k, v, v.shape[-1] ** -0.5))
    softmax_over_queries = wrong("The columns sum to 1 instead of the rows.",
        lambda q, k, v: _steps(q, k, v, q.shape[-1] ** -0.5, dim=-2))
    for_one_sequence = wrong("dim=1 counts from the front: wrong as soon as there is a batch.",
        lambda q, k, v: _steps(q, k, v, q.shape[-1] ** -0.5, dim=1))
    returns_the_weights = wrong("Stops before the values.",
        lambda q, k, v: (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1))
    def divides_in_place(q, k, v):
        """`/=` changes the caller's queries."""
        q /= math.sqrt(q.shape[-1])
        return _steps(q, k, v, 1.0)

    lets_the_course_attend = wrong("Calls the function that it should write.",
        lambda q, k, v: scaled_dot_product_attention(q, k, v))


def _ask(head, digits, asked, listed=None, said=None):
    """The head's scores, with these in the place of the right arguments."""
    listed = [[WORDS.index(word) for word in digits]] if listed is None else listed
    said = [list(digits.values())] if said is None else said
    return head(torch.tensor(asked), torch.tensor(listed), torch.tensor(said))


class my_answer:
    returns_the_scores = wrong("Ten scores, not one digit.",
        lambda head, digits, asked: _ask(head, digits, [WORDS.index(asked)]))
    returns_a_tensor = wrong("Forgets `.item()`.",
        lambda head, digits, asked: _ask(head, digits, [WORDS.index(asked)]).argmax())
    place_on_the_list = wrong("The word that is asked for by its place on the list.",
        lambda head, digits, asked: _ask(head, digits, [list(digits).index(asked)]).argmax().item())
    counts_the_list = wrong("The words by their places on the list.",
        lambda head, digits, asked: _ask(
            head, digits, [WORDS.index(asked)], [list(range(len(digits)))]).argmax().item())
    without_a_batch = wrong("A list without the axis of the batch.",
        lambda head, digits, asked: _ask(
            head, digits, [WORDS.index(asked)], [WORDS.index(word) for word in digits],
            list(digits.values())).argmax().item())
    sorts_the_digits = wrong("Digits in another order than their words.",
        lambda head, digits, asked: _ask(
            head, digits, [WORDS.index(asked)], said=[sorted(digits.values())]).argmax().item())
    asks_by_words = wrong("Hands the words to the head.",
        lambda head, digits, asked: head(asked, list(digits), list(digits.values())).argmax().item())
    reads_the_dict = wrong("Looks the digit up, and asks no head.", lambda head, digits, asked: digits[asked])


class fixed_gaussian_weights:
    forgets_the_half = wrong("Subtracts the squared norm, not half of it.",
        lambda queries, keys: (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1))
    softmax_over_the_queries = wrong("Normalizes over the queries, not over the keys.",
        lambda queries, keys: (queries @ keys.T - keys.square().sum(-1) / 2).softmax(dim=0))
    forms_all_differences = wrong("The right weights, from an array (n, m, d).",
        lambda queries, keys: (-(queries[:, None] - keys).square().sum(-1) / 2).softmax(dim=-1))
    asks_for_distances = wrong("The right weights, without the expansion that the exercise is about.",
        lambda queries, keys: (-torch.cdist(queries, keys).square() / 2).softmax(dim=-1))
    detached_norms = wrong("The right weights; the term in ‖k‖² has no gradient.",
        lambda queries, keys: (queries @ keys.T - keys.detach().square().sum(-1) / 2).softmax(dim=-1))
    borrowed_weights = wrong("Wraps the solution that the chapter's own module holds.",
        lambda queries, keys: scores.gaussian_weights(queries, keys))

    def divides_by_root_d(queries, keys):
        """Scales by 1/√d as well: a Gaussian of another width, right only for equal distances."""
        scores = queries @ keys.T - keys.square().sum(-1) / 2
        return (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)

    def overflows(queries, keys):
        """Exponentials divided by their sum: infinity over infinity for far points."""
        weights = (queries @ keys.T - keys.square().sum(-1) / 2).exp()
        return weights / weights.sum(dim=-1, keepdim=True)


class my_additive_scores:
    keys_down_queries_across = wrong("(m, n) in place of (n, m).",
        lambda queries, keys, w_q, w_k, w: ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w)
    tanh_at_the_end = wrong("The tanh around the score.",
        lambda queries, keys, w_q, w_k, w: (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh())
    without_a_batch = wrong("Counts the new axes from the front.",
        lambda queries, keys, w_q, w_k, w: ((queries @ w_q)[:, None] + (keys @ w_k)[None]).tanh() @ w)
    borrowed_scores = wrong("Wraps the solution that the chapter's own module holds.",
        lambda queries, keys, w_q, w_k, w: scores.additive_scores(queries, keys, w_q, w_k, w))

    def turned_around(queries, keys, w_q, w_k, w):
        """The right shape, with queries and keys changed over where their numbers are equal."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.mT if scores.shape[-1] == scores.shape[-2] else scores

    def already_weights(queries, keys, w_q, w_k, w):
        """Returns weights, not scores."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.softmax(dim=-1)

    def numbers_collected(queries, keys, w_q, w_k, w):
        """Collects plain numbers in a new tensor."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return torch.tensor(scores.tolist())

    def pair_by_pair(queries, keys, w_q, w_k, w):
        """The right scores, in two loops over the pairs."""
        rows = [torch.stack([(q @ w_q + k @ w_k).tanh() @ w for k in keys]) for q in queries]
        return torch.stack(rows)

    def gradient_of_zero(queries, keys, w_q, w_k, w):
        """A graph that leads to each input, with nothing coming back on it."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.detach() + 0 * sum(part.sum() for part in (queries, keys, w_q, w_k, w))

    def borrowed_layer(queries, keys, w_q, w_k, w):
        """Lets the course's layer compute the scores, with these weights."""
        layer = AdditiveAttention(queries.shape[-1], keys.shape[-1], len(w))
        for part, weight in ((layer.query_proj, w_q), (layer.key_proj, w_k), (layer.score_proj, w)):
            part.weight = torch.nn.Parameter(weight.T.reshape(part.weight.shape))
        return layer.scores(queries, keys)


ANSWERS = {
    "too_quiet": ("0.9 or more", "the length of a"),
    "half_by_force": ("with the guest for half a cookie, cookie wins", "Can the middle one be"),
    "zeros_for_bread": ("all five dishes have the weight 0.20", "a score below 0 to all other"),
    "divides_in_place": ("unchanged", "`/=`"),
    "returns_a_tensor": ("expected a plain number", "`.item()` does"),
    "asks_by_words": ("asked is a str", "`torch.tensor([…])` does"),
    "nobody_wants_bread": ("four of the five", "give up too early"),
    "forgets_the_scale": ("divides the scores by √d", "the scores should be 1 and 0"),
    "scaled_after_the_softmax": ("the mean of the values", "after it"),
    "place_on_the_list": ("asks for the word", "not on your list"),
    "detached_norms": ("gradients", "detach()"),
    "softmax_over_the_queries": ("sum to 1", "over which axis"),
    "forgets_the_half": ("the same distance", "q·k − ½‖k‖² is 2"),
    "borrowed_layer": ("it calls AdditiveAttention.scores", "step by step"),
    "borrowed_scores": ("it calls additive_scores", "step by step"),
    "borrowed_weights": ("it calls gaussian_weights", "step by step"),
}
