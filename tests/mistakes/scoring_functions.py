"""Mistakes in the exercises of *Scoring functions*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake

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
    return GUESTS | {name.replace("_", " "): guest for name, guest in others.items()}


@mistake("my_guests", caught_by="gives the dish that wins a weight", hint="the length of a")
def too_quiet():
    """The right directions, but short queries."""
    return {dish: guest and [x / 5 for x in guest] for dish, guest in GUESTS.items()}


@mistake(
    "my_guests",
    caught_by="lets each dish win",
    reason="with the guest for half a cookie, cookie wins",
    hint="Can the middle one be",
)
def half_by_force():
    """Searches on the line to the cookie, where the whole cookie wins."""
    return _guests(half_a_cookie=[1, 0, 1])


@mistake("my_guests", caught_by="finds a guest for four", hint="give up too early")
def nobody_wants_bread():
    """Takes the dish of zeros for one that nobody can want."""
    return _guests(bread=None)


@mistake(
    "my_guests",
    caught_by="lets each dish win",
    reason="all five dishes have the weight 0.20",
    hint="a score below 0 to all other",
)
def zeros_for_bread():
    """The dish itself as its guest, who likes all dishes equally."""
    return _guests(bread=[0, 0, 0])


@mistake("my_guests", caught_by="lets each dish win", hint="Which dish wins")
def likes_sweets():
    """The guest for a pancake also likes the cookie."""
    return _guests(pancake=[5, 0, 0])


@mistake("my_guests", caught_by="names the five dishes", hint="Are all five dishes")
def forgets_a_dish():
    """Leaves the impossible dish out."""
    return {dish: guest for dish, guest in GUESTS.items() if guest}


@mistake("my_guests", caught_by="names the five dishes", hint="What does a guest like?")
def two_numbers():
    """A guest without a taste for crunchy."""
    return _guests(chili=[0, 5])


def _steps(queries, keys, values, scale, dim=-1):
    return (queries @ keys.transpose(-2, -1) * scale).softmax(dim=dim) @ values


@mistake("my_attention", caught_by="divides the scores by √d", hint="the scores should be 1 and 0")
def forgets_the_scale(q, k, v):
    """No divisor."""
    return _steps(q, k, v, 1.0)


@mistake("my_attention", caught_by="divides the scores by √d", hint="What are yours?")
def divides_by_d(q, k, v):
    """Divides by d, not by its root."""
    return _steps(q, k, v, 1 / q.shape[-1])


@mistake("my_attention", caught_by="gives the mean of the values", hint="after it")
def scaled_after_the_softmax(q, k, v):
    """The division stands outside the softmax."""
    return _steps(q, k, v, 1.0) / math.sqrt(q.shape[-1])


@mistake("my_attention", caught_by="divides the scores by √d", hint="What are yours?")
def d_of_the_values(q, k, v):
    """Takes d from the values."""
    return _steps(q, k, v, v.shape[-1] ** -0.5)


@mistake("my_attention", caught_by="gives the mean of the values", hint="Over which axis")
def softmax_over_queries(q, k, v):
    """The columns sum to 1 instead of the rows."""
    return _steps(q, k, v, q.shape[-1] ** -0.5, dim=-2)


@mistake(
    "my_attention",
    caught_by="works for any axes in front, such",
    hint="What do `.T` and `dim=1` mean",
)
def for_one_sequence(q, k, v):
    """dim=1 counts from the front: wrong as soon as there is a batch."""
    return _steps(q, k, v, q.shape[-1] ** -0.5, dim=1)


@mistake("my_attention", caught_by="works for any axes in front, such", hint="`shape[-1]` the last")
def d_of_the_second_axis(q, k, v):
    """shape[1] is d for a matrix, and the heads for a batch."""
    return _steps(q, k, v, q.shape[1] ** -0.5)


@mistake(
    "my_attention", caught_by="gives each query an answer of the size", hint="`torch.sqrt` wants"
)
def root_of_a_number(q, k, v):
    """torch.sqrt takes tensors only."""
    return (q @ k.mT / torch.sqrt(q.shape[-1])).softmax(dim=-1) @ v


@mistake(
    "my_attention", caught_by="gives each query an answer of the size", hint="Which shapes meet"
)
def returns_the_weights(q, k, v):
    """Stops before the values."""
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)


@mistake("my_attention", caught_by="leaves queries, keys", hint="`/=`")
def divides_in_place(q, k, v):
    """`/=` changes the caller's queries."""
    q /= math.sqrt(q.shape[-1])
    return _steps(q, k, v, 1.0)


@mistake(
    "my_attention",
    caught_by="gives each query an answer of the size",
    hint="What does `scaled_dot_product_attention`",
)
def lets_the_course_attend(q, k, v):
    """Calls the function that it should write."""
    return scaled_dot_product_attention(q, k, v)


def _ask(head, digits, asked, listed=None, said=None):
    """The head's scores, with these in the place of the right arguments."""
    listed = [[WORDS.index(word) for word in digits]] if listed is None else listed
    said = [list(digits.values())] if said is None else said
    return head(torch.tensor(asked), torch.tensor(listed), torch.tensor(said))


@mistake("my_answer", caught_by="returns the digit", hint="What should the function return?")
def returns_the_scores(head, digits, asked):
    """Ten scores, not one digit."""
    return _ask(head, digits, [WORDS.index(asked)])


@mistake(
    "my_answer",
    caught_by="returns the digit",
    reason="expected a plain number",
    hint="`.item()` does",
)
def returns_a_tensor(head, digits, asked):
    """Forgets `.item()`."""
    return _ask(head, digits, [WORDS.index(asked)]).argmax()


@mistake("my_answer", caught_by="asks for the word", hint="not on your list")
def place_on_the_list(head, digits, asked):
    """The word that is asked for by its place on the list."""
    return _ask(head, digits, [list(digits).index(asked)]).argmax().item()


@mistake("my_answer", caught_by="names each word", hint='What does `WORDS.index("cat")`')
def counts_the_list(head, digits, asked):
    """The words by their places on the list."""
    return _ask(head, digits, [WORDS.index(asked)], [list(range(len(digits)))]).argmax().item()


@mistake(
    "my_answer",
    caught_by="gives the head one list, of shape",
    hint="Where does the additional axis",
)
def without_a_batch(head, digits, asked):
    """A list without the axis of the batch."""
    return (
        _ask(
            head,
            digits,
            [WORDS.index(asked)],
            [WORDS.index(word) for word in digits],
            list(digits.values()),
        )
        .argmax()
        .item()
    )


@mistake("my_answer", caught_by="gives the digits in the order", hint="Which values does your dict")
def sorts_the_digits(head, digits, asked):
    """Digits in another order than their words."""
    return _ask(head, digits, [WORDS.index(asked)], said=[sorted(digits.values())]).argmax().item()


@mistake(
    "my_answer",
    caught_by="gives the head one list, of shape",
    reason="asked is a str",
    hint="`torch.tensor([…])` does",
)
def asks_by_words(head, digits, asked):
    """Hands the words to the head."""
    return head(asked, list(digits), list(digits.values())).argmax().item()


@mistake("my_answer", caught_by="returns the digit", hint="Is it the head")
def reads_the_dict(head, digits, asked):
    """Looks the digit up, and asks no head."""
    return digits[asked]


@mistake("fixed_gaussian_weights", caught_by="gives equal weights to keys", hint="q·k − ½‖k‖² is 2")
def forgets_the_half(queries, keys):
    """Subtracts the squared norm, not half of it."""
    return (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1)


@mistake(
    "fixed_gaussian_weights", caught_by="gives each query weights that sum", hint="over which axis"
)
def softmax_over_the_queries(queries, keys):
    """Normalizes over the queries, not over the keys."""
    return (queries @ keys.T - keys.square().sum(-1) / 2).softmax(dim=0)


@mistake("fixed_gaussian_weights", caught_by="keeps no vector for each pair", hint="Which shape")
def forms_all_differences(queries, keys):
    """The right weights, from an array (n, m, d)."""
    return (-(queries[:, None] - keys).square().sum(-1) / 2).softmax(dim=-1)


@mistake(
    "fixed_gaussian_weights",
    caught_by="uses the matrix product",
    hint="Which of them does the matrix",
)
def asks_for_distances(queries, keys):
    """The right weights, without the expansion that the exercise is about."""
    return (-torch.cdist(queries, keys).square() / 2).softmax(dim=-1)


@mistake("fixed_gaussian_weights", caught_by="passes on the gradients", hint="detach()")
def detached_norms(queries, keys):
    """The right weights; the term in ‖k‖² has no gradient."""
    return (queries @ keys.T - keys.detach().square().sum(-1) / 2).softmax(dim=-1)


@mistake(
    "fixed_gaussian_weights",
    caught_by="gives each query weights that sum",
    reason="it calls gaussian_weights",
    hint="step by step",
)
def borrowed_weights(queries, keys):
    """Wraps the solution that the chapter's own module holds."""
    return scores.gaussian_weights(queries, keys)


@mistake(
    "fixed_gaussian_weights", caught_by="equals the Gaussian kernel", hint="Is your kernel as wide"
)
def divides_by_root_d(queries, keys):
    """Scales by 1/√d as well: a Gaussian of another width, right only for equal distances."""
    scores = queries @ keys.T - keys.square().sum(-1) / 2
    return (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)


@mistake(
    "fixed_gaussian_weights",
    caught_by="stays finite far from the origin",
    hint="Which function normalizes",
)
def overflows(queries, keys):
    """Exponentials divided by their sum: infinity over infinity for far points."""
    weights = (queries @ keys.T - keys.square().sum(-1) / 2).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


@mistake(
    "my_additive_scores",
    caught_by="gives one score for each query",
    hint="Which axes does their sum have?",
)
def keys_down_queries_across(queries, keys, w_q, w_k, w):
    """(m, n) in place of (n, m)."""
    return ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w


@mistake(
    "my_additive_scores",
    caught_by="gives each pair its own score",
    hint="Which comes first, the tanh",
)
def tanh_at_the_end(queries, keys, w_q, w_k, w):
    """The tanh around the score."""
    return (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh()


@mistake(
    "my_additive_scores", caught_by="works for a batch", hint="From which end should you count"
)
def axes_from_the_front(queries, keys, w_q, w_k, w):
    """Counts the new axes from the front."""
    return ((queries @ w_q)[:, None] + (keys @ w_k)[None]).tanh() @ w


@mistake(
    "my_additive_scores",
    caught_by="gives one score for each query",
    reason="it calls additive_scores",
    hint="step by step",
)
def borrowed_scores(queries, keys, w_q, w_k, w):
    """Wraps the solution that the chapter's own module holds."""
    return scores.additive_scores(queries, keys, w_q, w_k, w)


@mistake(
    "my_additive_scores",
    caught_by="gives each pair its own score",
    hint="Is the score of query i and key",
)
def turned_around(queries, keys, w_q, w_k, w):
    """The right shape, with queries and keys changed over where their numbers are equal."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.mT if scores.shape[-1] == scores.shape[-2] else scores


@mistake(
    "my_additive_scores",
    caught_by="gives the scores of the example",
    hint="Which two numbers does the tanh",
)
def already_weights(queries, keys, w_q, w_k, w):
    """Returns weights, not scores."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.softmax(dim=-1)


@mistake(
    "my_additive_scores",
    caught_by="lets gradients reach queries, keys",
    hint="Which line leaves the graph?",
)
def numbers_collected(queries, keys, w_q, w_k, w):
    """Collects plain numbers in a new tensor."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return torch.tensor(scores.tolist())


@mistake(
    "my_additive_scores",
    caught_by="takes no more steps for more queries",
    hint="Does a loop run over queries",
)
def pair_by_pair(queries, keys, w_q, w_k, w):
    """The right scores, in two loops over the pairs."""
    rows = [torch.stack([(q @ w_q + k @ w_k).tanh() @ w for k in keys]) for q in queries]
    return torch.stack(rows)


@mistake(
    "my_additive_scores",
    caught_by="lets gradients reach queries, keys",
    hint="Which line leaves the graph?",
)
def gradient_of_zero(queries, keys, w_q, w_k, w):
    """A graph that leads to each input, with nothing coming back on it."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.detach() + 0 * sum(part.sum() for part in (queries, keys, w_q, w_k, w))


@mistake(
    "my_additive_scores",
    caught_by="gives one score for each query",
    reason="it calls AdditiveAttention.scores",
    hint="step by step",
)
def borrowed_layer(queries, keys, w_q, w_k, w):
    """Lets the course's layer compute the scores, with these weights."""
    layer = AdditiveAttention(queries.shape[-1], keys.shape[-1], len(w))
    for part, weight in ((layer.query_proj, w_q), (layer.key_proj, w_k), (layer.score_proj, w)):
        part.weight = torch.nn.Parameter(weight.T.reshape(part.weight.shape))
    return layer.scores(queries, keys)
