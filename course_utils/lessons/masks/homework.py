"""Homework on *Masks*: causal with a window and holes, and a prefix that sees itself."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["prefix_mask", "window_mask"]

WINDOW = """\
def window_mask(n):
    q, k = torch.arange(n)[:, None], torch.arange(n)
    near = (k <= q) & (k > q - {width})
    return (near & (k % {every} != {first})) | (k == {sink}) & (k <= q)
"""


def window_mask(draw: random.Random) -> Assignment:
    """Causal, with a window, without every k-th key, and with one key that all later ones see."""
    width, every = draw.choice([3, 4, 5]), draw.choice([3, 4])
    first, sink = draw.randrange(every), draw.choice([0, 1, 2])
    text = (
        f"Write a causal mask for $n$ tokens, counted from 0. A query sees itself and the {width - 1} tokens "
        f"before it, but never a key whose number divided by {every} leaves the remainder {first}. One exception: "
        f"key {sink} is seen by itself and by **every** later query. As always, True means "
        "that the query may attend to the key."
    )
    stub = 'def window_mask(n):\n    """A number → (n, n), boolean."""\n    ...'
    return Assignment(
        "window_mask", "A window with holes", 10, text, stub,
        WINDOW.format(width=width, every=every, first=first, sink=sink),
        shown=["4", "7"],
        tried=lambda: (int(torch.randint(6, 15, ())),),
        hint="Write each condition as a table of True and False of its own. Which signs join them?",
        gradient=False,
    )  # fmt: skip


PREFIX = """\
def prefix_mask(lengths, n):
    q, k = torch.arange(n)[:, None], torch.arange(n)
    seen = (k <= q{ahead}) & (k >= q - {back}) | ((q < {prefix}) & (k < {prefix}))
    there = torch.arange(n) < lengths[:, None]
    return seen & there[:, None, :]
"""


def prefix_mask(draw: random.Random) -> Assignment:
    """The first tokens see each other, the others look back; padding is seen by nobody."""
    prefix, ahead, back = draw.choice([2, 3, 4, 5]), draw.choice([0, 1, -1]), draw.randint(1, 5)
    before = "the token before it" if back == 1 else f"the {back} tokens before it"
    late = {
        0: f"{before} and itself",
        1: f"{before}, itself, and the one right after it",
        -1: f"{before}, but not itself",
    }[ahead]
    text = (
        f"The first {prefix} tokens of each sentence are a question: they all see each other, whatever else holds. "
        f"Beside that, every token, also one of the question, sees {late}. Sentences are padded at the end: `lengths` "
        "says how many words each has, and nobody sees padding (queries of padding follow the same rules)."
    )
    stub = 'def prefix_mask(lengths, n):\n    """(batch,), a number → (batch, n, n), boolean."""\n    ...'
    return Assignment(
        "prefix_mask", "A question that sees itself", 12, text, stub,
        PREFIX.format(prefix=prefix, back=back, ahead=f" + {ahead}" if ahead > 0 else f" - {-ahead}" if ahead else ""),
        shown=["torch.tensor([4, 2]), 4", "torch.tensor([5]), 6"],
        tried=lambda: (torch.randint(1, 12, (3,)), 11),
        hint="Which of the conditions are joined by “or”, and which one holds for all of them?",
        gradient=False,
    )  # fmt: skip
