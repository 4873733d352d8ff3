"""Checks of *Bahdanau attention*: one context, the states of a batch, an order of one's own."""

from numbers import Integral

import torch
from torch import Tensor, nn

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    expect,
    expect_close,
    expect_same_gradients,
    expect_shape,
    expect_sums_to_one,
    expect_tensors,
    unchanged,
)
from course_utils.lessons.bahdanau_attention.alignment import attend

# One context ------------------------------------------------------------------------------------

my_context = Check()


def _random_inputs(tokens: int = 5) -> tuple[Tensor, ...]:
    """Query, keys, memory, mask, w for three sentences of `tokens`, 2 and 1 tokens."""
    lengths = torch.tensor([tokens, 2, 1])
    mask = torch.arange(tokens) < lengths[:, None]
    return (
        torch.randn(3, 4),
        torch.randn(3, tokens, 4),
        torch.randn(3, tokens, 8),
        mask,
        torch.randn(4),
    )


def _context_and_weights(answer) -> tuple[Tensor, ...]:
    return expect_tensors(answer, "context", "weights")


_AVERAGED = (
    "The weights (m,) of a sentence average its own memory (m, 2d). Which axis do you sum over? "
    "See that there isn't a 1 left over."
)


@my_context.must("gives a context (batch, 2d) and weights (batch, tokens)")
def gives_context_and_weights(candidate):
    """A query (b, d) meets keys (b, m, d). Which axis does it lack? Write the shape beside each of your lines, up to
    the scores (b, m).

    The `query[:, None]` is (b, 1, d), and the sum is (b, m, d). A product with `@ w` leaves (b, m), and `* w` doesn't.
    The context is (b, 2d).
    """
    context, weights = _context_and_weights(candidate(*_random_inputs()))
    shapes = [tuple(getattr(answer, "shape", ())) for answer in (context, weights)]
    swapped = "Which of the two comes first? Look at the docstring and at what you return."
    expect(shapes != [(3, 5), (3, 8)], "got the weights first, expected the context first", swapped)
    for answer, shape, hint in (
        (weights, (3, 5), "A token has one weight, a number. Which axis is too many?"),
        (context, (3, 8), _AVERAGED),
    ):
        actual = tuple(getattr(answer, "shape", shape))
        expect(actual == shape, f"got shape {actual}, expected shape {shape}", hint)
        expect_shape(answer, shape)


@my_context.must("gives each sentence weights that sum to 1")
def gives_each_sentence_weights_that_sum_to_1(candidate):
    """Over which axis is your softmax? The tokens of one sentence share the 1."""
    _, weights = _context_and_weights(candidate(*_random_inputs()))
    hint = "The mask is True at real tokens. Which scores did you overwrite?"
    expect(not expect_shape(weights, (3, 5)).isnan().any(), "some weights are NaN", hint)
    sums = weights.detach().sum(dim=-1)
    late = bool((sums[0] - 1).abs() < 1e-5) and bool((sums[1:] < 0.999).all())
    hint = "Only sentences with padding lack a part of the 1. Do you mask before the softmax, or after it?"
    expect(
        not late, "sums of the rows: {:.3g}, {:.3g}, {:.3g}, expected 1, 1, 1".format(*sums), hint
    )
    expect_sums_to_one(weights, (3, 5))


@my_context.must("gives the weights 0.080, 0.368, 0.552 and the context 0.97, as we did by hand")
def gives_weights_and_context_of_example_by_hand(candidate):
    """What happens to the sum of query and key before it meets w? Look at the columns of the table in the first
    section.

    The order is sum, tanh, times w, softmax over the tokens.
    """
    states = torch.tensor([[[-0.5], [0.5], [1.5]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    query, w = torch.tensor([[0.5]]), torch.tensor([2.0])
    expected = attend(query, states, states, mask, w)
    context, weights = _context_and_weights(candidate(query, states, states.clone(), mask, w))
    alone = (
        "A batch of one sentence was squeezed away, because `.squeeze()` drops every axis of size 1. Say which axis "
        "you mean, as in `.squeeze(1)`."
    )
    for answer, shape in ((weights, (1, 3)), (context, (1, 1))):
        actual = tuple(getattr(answer, "shape", shape))
        reason = f"for one sentence of three tokens got shape {actual}, expected shape {shape}"
        expect(len(actual) >= 2, reason, alone)
    expect_close(weights, expected[1], "weights")
    hint = "The weights are right. How do you mix the memory with them? Multiply, then sum over the tokens."
    expect_close(context, expected[0], "context", hint=hint)


@my_context.must("gives padding no weight")
def gives_padding_no_weight(candidate):
    """Where does the mask come in? If you set a score to 0, its exponential is still 1.

    Forbidden scores become −∞ before the softmax, and `~mask` is True at the padding.
    """
    given = _random_inputs()
    padding = ~given[3]
    _, weights = _context_and_weights(candidate(*given))
    expect(not weights[padding].any(), "some weight lies on padding")


@my_context.must("averages the memory, not the keys")
def averages_memory_not_keys(candidate):
    """What is the context an average of? The keys are for comparing only; the values are what they were projected
    from.
    """
    given = _random_inputs()
    memory = given[2].clone()
    context, weights = _context_and_weights(candidate(*given))
    expect_close(context, (weights[:, None] @ memory)[:, 0], "the average of the memory")


@my_context.must(
    "gives the right weights, context and gradients for three sentences of different lengths"
)
def handles_sentences_of_different_lengths(candidate):
    """Which of the steps differs from the drawing? Go through them in order: score, mask, normalize, mix."""
    query, keys, memory, mask, w = _random_inputs(6)
    expected = attend(query, keys, memory, mask, w)
    context, weights = _context_and_weights(candidate(query, keys, memory, mask, w))
    expect_close(weights, expected[1], "weights")
    expect_close(context, expected[0], "context")

    def context_of(function):
        return lambda query, keys, memory, w: _context_and_weights(
            function(query, keys, memory, mask, w)
        )[0]

    both = context_of(candidate), context_of(attend)
    hint = "Does a line cut off the way back? Look for `.detach()` or `.item()`."
    expect_same_gradients(*both, query=query, keys=keys, memory=memory, w=w, hint=hint)


my_context.must_keep_inputs(
    _random_inputs,
    (
        "Does a line write into the scores or keys of the caller? Methods that end in _ and `+=` do, so make "
        "a new tensor."
    ),
    sentence="leaves its inputs unchanged",
)

# The encoder's states of a batch ----------------------------------------------------------------

fixed_memory = Check()


def _encoder() -> nn.GRU:
    return nn.GRU(3, 2, batch_first=True, bidirectional=True)


def _encode_one_by_one(encoder: nn.GRU, embedded: Tensor, lens: Tensor) -> tuple[Tensor, Tensor]:
    """Each sentence read by itself."""
    memory = torch.zeros(*embedded.shape[:2], 2 * encoder.hidden_size)
    begin = torch.zeros(len(lens), 2 * encoder.hidden_size)
    for row, length in enumerate(lens.tolist()):
        states, last = encoder(embedded[row : row + 1, :length])
        memory[row, :length], begin[row] = states[0], torch.cat([last[0, 0], last[1, 0]])
    return memory, begin


def _memory_and_reference(
    candidate, *lengths: int
) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor]]:
    """The candidate's memory and states for sentences of these lengths, and those of each sentence encoded alone."""
    lens = torch.tensor(lengths)
    embedded, encoder = torch.randn(len(lens), max(lengths), 3), _encoder()
    with unchanged(embedded, lens):
        mine = expect_tensors(candidate(encoder, embedded, lens), "memory", "last states")
    return mine, _encode_one_by_one(encoder, embedded, lens)


@fixed_memory.must("gives the memory (batch, tokens, 2d) and the last states (batch, 2d)")
def gives_memory_and_last_states(candidate):
    """What does the buggy version return? Keep its shapes: forwards and backwards are joined along the last axis."""
    (memory, begin), expected = _memory_and_reference(candidate, 4, 2)
    expect_shape(memory, tuple(expected[0].shape))
    expect_shape(begin, tuple(expected[1].shape))


@fixed_memory.must("is right for a single sentence, and for a batch whose lengths fall")
def is_right_for_single_sentence_and_falling_lengths(candidate):
    """What did your change do to these? The buggy version has them right, so compare the two outputs."""
    for lengths in ((4,), (5, 3, 2)):
        (memory, begin), expected = _memory_and_reference(candidate, *lengths)
        after = torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]
        hint = "What does your encoder read after the end of a short sentence? Pack the batch, so that it stops there."
        expect(not memory.detach()[after].any(), "the memory isn't 0 at the padding", hint)
        expect_close(memory, expected[0], f"memory for lengths {lengths}")
        expect_close(begin, expected[1], f"last states for lengths {lengths}")


@fixed_memory.must("keeps row i of the memory for sentence i")
def keeps_row_of_memory_for_its_sentence(candidate):
    """In which order does the encoder read the sentences? Give them back in the order in which they came.

    If x[order] is sorted, sorted_x[order.argsort()] is in the old order.
    """
    for lengths in ((2, 4), (2, 5, 3), (1, 3, 2, 4)):
        (memory, _), expected = _memory_and_reference(candidate, *lengths)
        expect_close(memory, expected[0], f"memory for lengths {lengths}")


@fixed_memory.must("keeps row i of the last states for sentence i")
def keeps_row_of_last_states_for_its_sentence(candidate):
    """The memory is in order now. What else has a row for each sentence? Look at everything that you return."""
    for lengths in ((2, 4), (2, 5, 3), (1, 3, 2, 4)):
        (_, begin), expected = _memory_and_reference(candidate, *lengths)
        expect_close(begin, expected[1], f"last states for lengths {lengths}")


# An order of one's own --------------------------------------------------------------------------

my_order = Check()

SENTENCES = tuple(
    text.split()
    for text in (
        "la chanson de la mère est belle .",
        "mon ami le docteur ne lit pas son roman .",
        "est-ce que tu aimes le chat de la reine ?",
        "va !",
        "elle a vu son père dans la rue hier .",
    )
)


def _list_of_positions(answer) -> list:
    """The answer as a list of whole numbers, as the page will use them.

    Raises:
        Unmet: it is something else.
    """
    kind = type(answer).__name__
    shown, hint = repr(answer)[:60], "Do you return words, or where they are?"
    if isinstance(answer, Tensor):
        shown, hint = "a tensor", "What turns a tensor into a list? Put `.tolist()` behind it."
    elif "iterator" in kind:
        shown = "an iterator"
        hint = "What does `reversed` return? It isn't a list yet, so put `list(…)` around it."
    answer = answer.tolist() if kind == "ndarray" else answer
    whole = isinstance(answer, list | tuple | range)
    whole = whole and not any(isinstance(position, str) for position in answer)
    expect(whole, f"got {shown}, expected a list of positions", hint)
    for position in answer:
        hint = "Is each position a whole number? `//` divides without a remainder, and `int(…)` makes one of a number."
        good = isinstance(position, Integral) and not isinstance(position, bool)
        expect(good, f"got the position {position!r}, expected a whole number", hint)
    return list(answer)


@my_order.must("returns a list of positions, one for each word")
def returns_list_of_positions_one_for_each_word(candidate):
    """What does your rule return for a sentence of two words? It should be a list of two whole numbers.

    `sorted(range(len(words)), key=…)` sorts positions by what you say about the word at a position.
    """
    for words in SENTENCES:
        count = len(_list_of_positions(candidate(list(words))))
        expect(count == len(words), f"{count} positions for {len(words)} words")


@my_order.must("uses each position from 0 to n − 1 once")
def uses_each_position_once(candidate):
    """Which position is missing? Positions begin with 0, and a word that is there twice has two positions.

    `words.index(word)` always finds the first of two equal words, so sort the positions and not the words.
    """
    for words in SENTENCES:
        positions = _list_of_positions(candidate(list(words)))
        expect(
            sorted(positions) == list(range(len(words))),
            f"positions {positions} for “{' '.join(words)}”",
        )


@my_order.must("gives the same order for the same words")
def gives_same_order_for_same_words(candidate):
    """What would the translator have to know to guess a random order? Let the words decide.

    Leave out `random`, or seed it with the words.
    """
    for words in SENTENCES:
        tries = {tuple(_list_of_positions(candidate(list(words)))) for _ in range(5)}
        expect(len(tries) == 1, f"{len(tries)} orders in five calls with “{' '.join(words)}”")


@my_order.must("writes most sentences in another order than French")
def writes_most_sentences_in_another_order_than_french(candidate):
    """Which sentences does your rule change? If it changes hardly any, the diagonal remains a good guess.

    Try it on a sentence of nine words, and look at the positions.
    """
    changed = sum(
        _list_of_positions(candidate(list(words))) != list(range(len(words))) for words in SENTENCES
    )
    expect(changed >= 3, f"{changed} of {len(SENTENCES)} sentences are in another order")


my_order.must_keep_inputs(
    lambda: (list(SENTENCES[0]),),
    (
        "Does a line sort or reverse the caller's list? `sorted` and `[::-1]` make a new one, and "
        "`.sort()` and `.reverse()` don't."
    ),
    sentence="leaves the sentence as it was",
)
