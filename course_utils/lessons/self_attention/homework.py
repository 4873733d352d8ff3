"""Homework on *Self-attention*: two features ask, others answer; and words that ask for their neighbor."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["ask_the_other", "by_hand"]

BY_HAND = """\
def by_hand(x):
    w_q, w_k = torch.tensor({w_q}), torch.tensor({w_k})
    scores = (x @ w_q) @ (x @ w_k).transpose(-2, -1) / math.sqrt(2)
    return scores.softmax(dim=-1) @ (x * {scale})
"""


def by_hand(draw: random.Random) -> Assignment:
    """Self-attention with two given matrices."""

    def matrix() -> list[list[float]]:
        return [[float(draw.randint(-2, 2)) for _ in range(2)] for _ in range(3)]

    w_q, w_k, scale = matrix(), matrix(), draw.choice([-1.0, 0.5, 2.0])

    def shown(rows: list[list[float]]) -> str:
        inner = r" \\ ".join(" & ".join(f"{entry:g}" for entry in row) for row in rows)
        return rf"\begin{{pmatrix}} {inner} \end{{pmatrix}}"

    text = (
        "Each word is a row $x$ of three features; its query is $xW_Q$ and its key $xW_K$, with\n\n"
        f"$$W_Q = {shown(w_q)}, \\qquad W_K = {shown(w_k)} ,$$\n\n"
        f"and its value is ${scale:g}\\,x$. Write the layer, with scores divided by the root of the length of a key. "
        "A batch may stand in front."
    )
    stub = 'def by_hand(x):\n    """(…, n, 3) → (…, n, 3)."""\n    ...'
    return Assignment(
        "by_hand", "A layer with given weights", 8, text, stub,
        BY_HAND.format(w_q=w_q, w_k=w_k, scale=scale),
        shown=[
            "torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])",
            "torch.tensor([[0.5, 0.5, 0.0], [1.0, -1.0, 0.5], [0.0, 2.0, 1.0]])",
        ],
        tried=lambda: (torch.randn(2, 5, 3),),
        hint="How long is a key? What are the shapes of queries, keys and values?",
    )  # fmt: skip


OTHER = """\
def ask_the_other(x):
    queries = x.roll({shift}, dims=-2)
    scores = queries @ x.transpose(-2, -1) / {divisor}
    scores = scores.masked_fill(torch.eye(x.shape[-2], dtype=torch.bool), -math.inf)
    return {kept}scores.softmax(dim=-1) @ x
"""


KEPT = {
    "": "The answer takes the place of the word",
    "x + ": "The answer is added to the word",
    "x - ": "The answer is subtracted from the word",
}


def ask_the_other(draw: random.Random) -> Assignment:
    """Each word asks with another word's vector, and does not hear itself."""
    steps, divisor = draw.choice([-3, -2, -1, 1, 2, 3]), draw.choice([0.5, 1.5, 2.0, 2.5, 3.0])
    kept, told = draw.choice(list(KEPT.items()))
    word = "word" if abs(steps) == 1 else "words"
    text = (
        f"In a circle of $n$ words, each word asks with the vector of the word **{abs(steps)} {word} "
        f"{'before' if steps > 0 else 'after'} it**, so that "
        f"{'the first one asks with one of the last' if steps > 0 else 'the last one asks with one of the first'}. "
        f"Keys and values are the words as they are. Scores are dot products divided by {divisor:g}, and no word "
        f"attends to itself. {told}. A batch may stand in front; there are at least four words."
    )
    stub = 'def ask_the_other(x):\n    """(…, n, d) → (…, n, d)."""\n    ...'
    return Assignment(
        "ask_the_other", "Asking for somebody else", 10, text, stub,
        OTHER.format(shift=steps, divisor=divisor, kept=kept),
        shown=[
            "torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])",
            "torch.tensor([[2.0], [1.0], [-1.0], [0.5], [3.0]])",
        ],
        tried=lambda: (torch.randn(2, 6, 3),),
        hint="Which entry of a row is about the word itself: that of its query, or that of its place?",
    )  # fmt: skip
