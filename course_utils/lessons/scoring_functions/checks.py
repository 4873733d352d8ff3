"""Checks of *Scoring functions*: guests, the four steps, one's own list; Gaussian weights, additive scores."""

import math
from numbers import Integral

import torch
from torch import Tensor

from course_utils.attention import scaled_dot_product_attention
from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_sums_to_one,
    kind_of,
)
from course_utils.kit.tracing import count_calls
from course_utils.lessons.scoring_functions.scores import additive_scores, numbers_kept
from course_utils.lessons.scoring_functions.word_lists import WORDS
from course_utils.pooling import kernel_weights

# A guest for each dish --------------------------------------------------------------------------

my_guests = Check()
DISHES = {
    "pancake": (1, 0, 0),
    "chili": (-1, 2, 0),
    "cookie": (2, 0, 2),
    "half a cookie": (1, 0, 1),
    "bread": (0, 0, 0),
}


def _weights_of_dishes(candidate) -> dict[str, torch.Tensor]:
    """Dish → the weights that its guest gives the five dishes; without the dishes that have no guest."""
    guests = candidate()
    if not isinstance(guests, dict):
        raise WrongKind(f"got {kind_of(guests)}, expected a dict from each dish to its guest")
    dishes = torch.tensor(list(DISHES.values())).float()
    weights = {}
    for dish, guest in guests.items():
        if guest is not None:
            try:
                query = torch.as_tensor(guest, dtype=torch.float32)
            except (TypeError, ValueError):
                query = torch.zeros(0)
            hint = (
                "What does a guest like? Say it by three numbers: how sweet, how hot, how crunchy."
            )
            reason = f"the guest for {dish} is {guest!r}, expected three numbers"
            expect(query.shape == (3,), reason, hint)
            weights[dish] = (dishes @ query).softmax(dim=0)
    return weights


@my_guests.must("names the five dishes")
def names_five_dishes(candidate):
    """Are all five dishes in your dict, spelled as in the table? A dish without a guest gets `None`."""
    _weights_of_dishes(candidate)
    missing = [dish for dish in DISHES if dish not in candidate()]
    expect(not missing, f"{', '.join(missing)} is not in the dict")


@my_guests.must("lets each dish win with its own guest")
def lets_each_dish_win_with_its_own_guest(candidate):
    """Which dish wins instead, and what does it have that yours doesn't? Make the guest dislike it.

    Compute the scores of that guest with a pencil. Is the score of your dish ever larger than both of its neighbors'?
    One dish can't win, and gets `None`.
    """
    hints = {
        "half a cookie": "Write down the scores of cookie, half a cookie and bread for any guest. Can the middle "
        "one be the largest?",
        "bread": "Bread always has the score 0. Which guest gives a score below 0 to all other dishes?",
    }
    for dish, weights in _weights_of_dishes(candidate).items():
        winner = list(DISHES)[int(weights.argmax())]
        own = weights[list(DISHES).index(dish)]
        reason = (
            f"with the guest for {dish}, {winner} wins ({weights.max():.2f}; {dish} has {own:.2f})"
        )
        if weights.isclose(weights[0]).all():
            reason = f"with the guest for {dish}, all five dishes have the weight 0.20"
        expect(winner == dish, reason, hints.get(dish, ""))


@my_guests.must("gives the dish that wins a weight of 0.9 or more")
def gives_winning_dish_most_of_the_weight(candidate):
    """The right dish wins. How do you make a choice clearer without changing its direction? Think of the length of a
    query.
    """
    for dish, weights in _weights_of_dishes(candidate).items():
        expect(weights.max() >= 0.9, f"{dish} wins with a weight of {weights.max():.2f} only")


@my_guests.must("finds a guest for four of the five dishes")
def finds_guest_for_four_of_five_dishes(candidate):
    """For which dish did you give up too early? Its guest may dislike everything else."""
    without = [dish for dish, guest in candidate().items() if guest is None]
    expect(len(without) == 1, f"there is no guest for {' and '.join(without) or 'nobody'}")


# The four steps ---------------------------------------------------------------------------------

my_attention = Check(forbids=["scaled_dot_product_attention", "dot_product_weights"])


@my_attention.must("gives each query an answer of the size of a value")
def gives_each_query_answer_of_size_of_value(candidate):
    """Which shapes meet in your two products? Queries (3, 4) times transposed keys (4, 5) are scores (3, 5), and these,
    as weights, times the values (5, 7) are answers (3, 7).
    """
    inputs = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 7)
    expect_shape(candidate(*inputs), (3, 7))


@my_attention.must("gives the mean of the values if all keys are equal")
def gives_mean_of_values_if_all_keys_are_equal(candidate):
    """Equal keys share the weight equally, and the weights of a query sum to 1. Over which axis is your softmax, and
    does anything still change the weights after it?
    """
    queries, keys, values = torch.randn(3, 4), torch.randn(1, 4).expand(5, 4), torch.randn(5, 7)
    expect_close(candidate(queries, keys, values), values.mean(0).expand(3, 7), "five equal keys")


@my_attention.must("divides the scores by √d")
def divides_scores_by_root_d(candidate):
    """With d = 4 and the products 2 and 0 the scores should be 1 and 0. What are yours? Take d from the last axis of
    the queries.
    """
    queries = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    keys = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    expected = torch.tensor([[1.0, 0.0]]).softmax(dim=-1)
    expect_close(
        candidate(queries, keys, torch.eye(2)), expected, "the weights for the products 2 and 0"
    )


@my_attention.must("works for any axes in front, such as a batch and heads")
def works_for_any_axes_in_front_such_as_batch_and_heads(candidate):
    """What do `.T` and `dim=1` mean when there are more axes in front? Count axes from the end, with
    `transpose(-2, -1)` and `dim=-1`.
    """
    inputs = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 2)
    expected = scaled_dot_product_attention(*inputs)
    answers = candidate(*inputs)
    hint = ""
    for axis in (0, 1):  # the scale of √d, with d from an axis in front
        queries = inputs[0] * math.sqrt(inputs[0].shape[-1] / inputs[0].shape[axis])
        if _same(answers, scaled_dot_product_attention(queries, *inputs[1:])):
            hint = f"Where does your d come from? `shape[{axis}]` is an axis in front here, `shape[-1]` the last."
    expect_close(answers, expected, "two more axes", hint=hint)


def _same(answers, expected: Tensor) -> bool:
    """Whether it is a tensor with these numbers."""
    is_alike = isinstance(answers, Tensor) and answers.shape == expected.shape
    return is_alike and torch.allclose(answers, expected, atol=1e-5)


my_attention.must_keep_inputs(
    lambda: [torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 7)],
    "Does a line write into the caller's memory? `/=` and methods that end in an underscore do, so make a new tensor.",
    "leaves queries, keys and values unchanged",
)


# One's own list ---------------------------------------------------------------------------------

my_answer = Check()
OWN = {"moon": 5, "cat": 8, "kite": 2, "tree": 0}


class _RecordingHead:
    """A head that records its inputs, and scores one digit highest."""

    def __init__(self, answer: int = 0):
        self.answer, self.given = answer, ()

    def __call__(self, *given):
        self.given = given
        return torch.nn.functional.one_hot(torch.tensor([self.answer]), 10).float()


def _inputs_of_head(candidate, asked: str) -> tuple[torch.Tensor, ...]:
    head = _RecordingHead()
    candidate(head, OWN, asked)
    expect(len(head.given) == 3, "the head wasn't called with asked, listed and said")
    for name, tensor in zip(("asked", "listed", "said"), head.given, strict=True):
        expect(
            torch.is_tensor(tensor),
            f"{name} is {kind_of(tensor)}, expected a tensor",
            "A head computes with tensors of whole numbers. What makes a tensor of the numbers in a list? "
            "`torch.tensor([…])` does.",
        )
    return head.given


@my_answer.must("returns the digit with the highest score")
def returns_digit_with_highest_score(candidate):
    """Is it the head that answers, even where it is wrong? It gives ten scores, in the shape (1, 10); `argmax` says the
    index of the largest, and `.item()` makes a number of it.
    """
    for digit in (3, 9):
        answer = candidate(_RecordingHead(digit), OWN, "cat")
        if torch.is_tensor(answer) and answer.numel() == 1:
            raise Unmet(
                f"got {kind_of(answer)}, expected a plain number",
                "This is the digit, but still as a tensor. Which method makes a plain number of it? `.item()` does.",
            )
        if not isinstance(answer, Integral):
            raise WrongKind(f"got {kind_of(answer)}, expected a whole number")
        expect_equal(int(answer), digit, f"the answer where the score of {digit} is the highest")


@my_answer.must("gives the head one list, of shape (1, 4) for four words")
def gives_head_one_list_of_shape_for_four_words(candidate):
    """The head takes a batch of lists, and yours is a batch of one. Where does the additional axis go? A list in a
    list, `[[…]]`, makes a tensor of two axes.
    """
    asked, listed, said = _inputs_of_head(candidate, "cat")
    expect_shape(listed, (1, 4))
    expect_shape(said, (1, 4))
    one_word = "How many words do you ask for in each list? It is one, so `asked` needs no axis for the words."
    shape = tuple(asked.shape)
    expect(shape == (1,), f"asked has the shape {shape}, expected (1,)", one_word)


@my_answer.must("names each word by its number among the 64")
def names_each_word_by_its_number_among_64(candidate):
    """The head doesn't know the word *cat*, only its number. What does `WORDS.index("cat")` give? Use it for every
    word of the list.
    """
    _, listed, _ = _inputs_of_head(candidate, "cat")
    expect_equal(listed.tolist(), [[WORDS.index(word) for word in OWN]], "the words on the list")


@my_answer.must("asks for the word by its number among the 64")
def asks_for_word_by_its_number_among_64(candidate):
    """Is the word that is asked for counted like the words on the list? It should be its number among the 64, not on
    your list.
    """
    for word in ("cat", "tree"):
        asked, _, _ = _inputs_of_head(candidate, word)
        expect_equal(asked.tolist(), [WORDS.index(word)], f"the number of {word}")


@my_answer.must("gives the digits in the order of their words")
def gives_digits_in_order_of_their_words(candidate):
    """Which values does your dict have, and in which order? `digits.values()` has them in the order of its words."""
    _, _, said = _inputs_of_head(candidate, "cat")
    expect_equal(said.tolist(), [list(OWN.values())], "the digits")


# Gaussian weights by one matrix product ---------------------------------------------------------

fixed_gaussian_weights = Check(forbids=["gaussian_weights"])


@fixed_gaussian_weights.must("gives each query weights that sum to 1")
def gaussian_weights_sum_to_1(candidate):
    """A query compares its keys, so over which axis does it share its weight? That is the axis for your softmax."""
    expect_sums_to_one(candidate(torch.randn(4, 4), torch.randn(4, 4)), (4, 4))


@fixed_gaussian_weights.must("gives equal weights to keys at the same distance from a query")
def gives_equal_weights_to_keys_at_same_distance_from_query(candidate):
    """By hand, q·k − ½‖k‖² is 2 for each of the keys (1, 1), (2, 2) and (0, 2). Which three numbers does your softmax
    get? Print them, they should be equal.

    Which shape does the term in ‖k‖² have? It should differ along the axis of the keys, and only there.
    """
    queries = torch.tensor([[1.0, 2.0]]).repeat(3, 1)
    keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 2.0]])  # all at distance 1
    weights = expect_shape(candidate(queries, keys), (3, 3)).detach()
    expect_close(weights, torch.full((3, 3), 1 / 3), "the weights of the query (1, 2)")


@fixed_gaussian_weights.must("equals the Gaussian kernel of width 1")
def equals_gaussian_kernel_of_width_1(candidate):
    """Is your kernel as wide as it should be? Compare with `cu.kernel_weights(queries, keys)` entry by entry."""
    queries, keys = torch.randn(5, 3), torch.randn(8, 3)
    expected = kernel_weights(queries, keys)
    expect_close(candidate(queries, keys), expected, "random keys")


@fixed_gaussian_weights.must("stays finite far from the origin")
def stays_finite_far_from_origin(candidate):
    """The exponential of 1,800 is infinite in float32. Which function normalizes without computing it? It subtracts
    the largest score first.
    """
    queries = torch.tensor([[60.0, 0.0], [0.0, 60.0]])
    keys = torch.tensor([[59.0, 0.0], [60.0, 1.5], [0.0, 59.0]])
    expected = kernel_weights(queries, keys)
    expect_close(candidate(queries, keys), expected, "points 60 from the origin")


@fixed_gaussian_weights.must("keeps no vector for each pair of points")
def keeps_no_vector_for_each_pair_of_points(candidate):
    """Which shape does `queries[:, None] - keys` have? It holds a vector for each pair; a matrix product gives all
    q·k without it.
    """
    size = 64
    queries, keys = (torch.randn(size, size, requires_grad=True) for _ in range(2))
    each = numbers_kept(candidate, queries, keys) / size**2
    expect(
        each < 8,
        f"{each:.0f} numbers are kept for each of the {size} · {size} pairs, expected about 3",
    )


@fixed_gaussian_weights.must("uses the matrix product, not PyTorch's distances")
def uses_matrix_product_not_pytorchs_distances(candidate):
    """`torch.cdist` is right, but it hides the three terms of the distance. Which of them does the matrix product
    hold? Write out the others.
    """
    called = count_calls(candidate, torch.randn(2, 3), torch.randn(4, 3))
    asked = {"cdist", "pairwise_distance", "dist"}.intersection(called)
    expect(not asked, f"it calls {', '.join(asked)}")


fixed_gaussian_weights.must_pass_gradients(
    kernel_weights,
    lambda: {"queries": torch.randn(5, 3), "keys": torch.randn(8, 3)},
    "Does a step cut off the way back for a part of the formula? Look for a `detach()` or a `torch.no_grad()`.",
    "passes on the gradients of the Gaussian kernel",
)

# Additive scores --------------------------------------------------------------------------------

my_additive_scores = Check(forbids=["additive_scores", "AdditiveAttention.scores"])


def _additive_inputs(*batch: int, n: int = 3, m: int = 4) -> tuple[torch.Tensor, ...]:
    """Queries of 5 numbers, keys of 2, and the three weights for 6 hidden units."""
    queries, keys = torch.randn(*batch, n, 5), torch.randn(*batch, m, 2)
    return queries, keys, torch.randn(5, 6), torch.randn(2, 6), torch.randn(6)


@my_additive_scores.must("gives one score for each query and each key")
def gives_one_score_for_each_query_and_each_key(candidate):
    """Every row of `queries @ w_q` meets every row of `keys @ w_k`. Which axes does their sum have? The product with
    w then removes the last one.

    An axis of size 1 in the right place lets (n, 1, h) and (1, m, h) broadcast.
    """
    expect_shape(candidate(*_additive_inputs()), (3, 4))


@my_additive_scores.must("gives the scores of the example by hand")
def gives_scores_of_example_by_hand(candidate):
    """For the first key the sum is (0, 1). Which two numbers does the tanh make of it? Multiply them by w and add,
    and compare with your score.

    A score is neither scaled nor normalized, so nothing follows the product with w.
    """
    queries, keys = torch.tensor([[0.5]]), torch.tensor([[1.0, -0.5], [0.0, 0.5]])
    w_q, w_k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    expected = torch.tensor([[-math.tanh(1), math.tanh(1)]])
    expect_close(candidate(queries, keys, w_q, w_k, torch.tensor([1.0, -1.0])), expected, "by hand")


@my_additive_scores.must("gives each pair its own score")
def gives_each_pair_its_own_score(candidate):
    """Is the score of query i and key j at (i, j)? Compute one entry separately, from one row of the queries and one
    of the keys.
    """
    queries, keys, w_q, w_k, w = parts = _additive_inputs(n=4, m=4)
    scores = expect_shape(candidate(*(part.clone() for part in parts)), (4, 4))
    for i, j in ((0, 0), (1, 3), (3, 1)):
        both = queries[i] @ w_q + keys[j] @ w_k
        is_outside = torch.allclose(scores[i, j], (both @ w).tanh(), atol=1e-5)
        hint = "Which comes first, the tanh or the product with w? Look at the formula's brackets."
        score = f"query {i} and key {j}"
        expect_close(scores[i, j], both.tanh() @ w, score, hint=hint if is_outside else "")


@my_additive_scores.must("takes no more steps for more queries and keys")
def takes_no_more_steps_for_more_queries_and_keys(candidate):
    """Does a loop run over queries or keys? Two axes of size 1 make all the sums at once."""
    few, many = (
        count_calls(candidate, *_additive_inputs(n=n, m=m)).total() for n, m in ((2, 3), (5, 8))
    )
    expect(many == few, f"{few} calls of PyTorch for 2 queries and 3 keys, but {many} for 5 and 8")


@my_additive_scores.must("works for a batch as it does for one sequence")
def works_for_batch_as_it_does_for_one_sequence(candidate):
    """With a batch the first axis doesn't belong to the queries. From which end should you count the axes? Negative
    numbers count from the last.
    """
    queries, keys, *weights = _additive_inputs(2)
    together = expect_shape(candidate(queries.clone(), keys.clone(), *weights), (2, 3, 4)).detach()
    for i in range(2):
        alone = candidate(queries[i].clone(), keys[i].clone(), *weights)
        expect_close(alone, together[i], f"sequence {i} alone")


my_additive_scores.must_pass_gradients(
    additive_scores,
    lambda: dict(zip(("queries", "keys", "w_q", "w_k", "w"), _additive_inputs(), strict=True)),
    "Which line leaves the graph? Look for a `detach()`, an `.item()`, or a new tensor that collects the results.",
    "lets gradients reach queries, keys and weights",
)
