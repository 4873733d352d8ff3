"""Checks of *Start here*: forbidden words that change a translation, and a forbidden key."""

from typing import Any

import torch

from course_utils.kit.check import Check
from course_utils.kit.expect import WrongKind, expect, expect_close, expect_shape
from course_utils.kit.on_paper import on_paper

# One word forbidden -----------------------------------------------------------------------------


def _read_word(answer: Any) -> str:
    """The word in an answer, in any common spelling."""
    if not isinstance(answer, str):
        raise WrongKind(f"{answer!r} is not a word; write it in quotes")
    word = answer.strip().strip(".?").lower().replace("’", "'")
    word = "don't" if word == "dont" else word
    expect(" " not in word, f"{answer!r} is more than one word")
    return word


one_word = on_paper({
    "a": ("don't", "the word to forbid so that I like the house",
         "Which word of the sentence says no? Forbid it in the translator, and read what it writes."),
    "b": ("my", "the word to forbid so that it is somebody else's book",
         'Which word says whose book it is? Forbid it, and see whether the French still says "my".'),
    "c": ("woman", "the word to forbid so that it is about a man",
         "Two words are about her, so forbid one, then the other. When does the French speak of a man?"),
}, read=_read_word)  # fmt: skip

# A key forbidden --------------------------------------------------------------------------------

TURNED = "Do the sums of the rows meet the rows? They need the shape (queries, 1), and keepdim=True keeps that axis."

answers_without = Check()


def _random_weights(queries: int, keys: int) -> torch.Tensor:
    return torch.randn(queries, keys).softmax(dim=-1)


@answers_without.must("returns one answer for each query, of shape (queries, size of a value)")
def returns_one_answer_for_each_query_of_shape(candidate):
    """The answers are `weights @ values`. What shape does this product have? Compare it with the shape of what you
    return.
    """
    for size in (1, 5):
        expect_shape(candidate(_random_weights(3, 3), torch.randn(3, size), 1), (3, size))


@answers_without.must("ignores the value of the forbidden key")
def ignores_value_of_forbidden_key(candidate):
    """Which weights belong to the key: a row, or a column? Check that your line uses `kept`, whose 0 marks the
    forbidden key, and that this 0 stays a 0: a softmax would make exp(0) = 1 of it.
    """
    weights, values, others = _random_weights(4, 4), torch.randn(4, 2), torch.randn(4, 2)
    for key in (0, 3):
        changed = values.clone()
        changed[key] = others[key]
        expect_close(
            candidate(weights, changed, key),
            candidate(weights, values, key),
            "the answers after the forbidden key got another value",
        )


@answers_without.must(
    "returns 1 everywhere if all values are 1",
    hint=(
        "What do the weights of a row sum to, once one of them is 0? Divide the row by that sum.",
        TURNED,
    ),
)
def returns_1_everywhere_if_all_values_are_1(candidate):
    weights, values = _random_weights(4, 4), torch.ones(4, 2)
    allowed = weights.index_fill(1, torch.tensor(2), 0)
    given, turned = candidate(weights, values, 2), allowed / allowed.sum(dim=1) @ values
    hint = TURNED if torch.equal(expect_shape(given, (4, 2)), turned) else ""
    expect_close(given, torch.ones(4, 2), "the answers", hint=hint)


@answers_without.must("keeps the ratios of the other weights")
def keeps_ratios_of_other_weights(candidate):
    """Does anything happen to the other weights, apart from a division? They should all be divided by one number for
    each row, so their ratios stay as they were.
    """
    weights = _random_weights(3, 4)
    given = expect_shape(candidate(weights, torch.eye(4), 1), (3, 4))
    others = [0, 2, 3]
    expect_close(
        given[:, others] / given[:, :1],
        weights[:, others] / weights[:, :1],
        "weights divided by the weight of key 0",
    )
