"""Checks of *What heads learn*: the circuit by hand, the QK map, and who is hurt by which ablation."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.kit.check import Check
from course_utils.kit.expect import Unmet, WrongKind, expect, expect_close, expect_shape
from course_utils.kit.on_paper import on_paper
from course_utils.lessons.what_heads_learn.circuits import LETTERS, by_hand, of_head, qk_map

# The circuit by hand ------------------------------------------------------------------------------

copy_by_hand = Check()

_SHORT = (
    "The text may be shorter than 48 letters. Which rows of `torch.eye(48)` belong to n positions?"
)


def _ids(text: str) -> Tensor:
    return torch.tensor([LETTERS.index(letter) for letter in text])


def _repeated(period: int, length: int = 48) -> Tensor:
    return torch.randperm(len(LETTERS))[:period][torch.arange(length) % period]


@copy_by_hand.must(
    "gives a row of 32 numbers for each position, also in a short text",
    hint=(
        "What does `attend` return? An average of its values, a row for each position. Which values have 32 columns?",
        _SHORT,
    ),
)
def gives_row_of_letters_for_each_position(candidate):
    for length in (4, 47):
        try:
            named = candidate(_repeated(20, length))
        except RuntimeError as error:
            raise Unmet(str(error).splitlines()[0], _SHORT) from error
        expect_shape(named, (length, len(LETTERS)))


_SAYS = {
    "k": (
        "What does your layer 0 bring for a k g b k: nothing, a, k, g, b? If so, use these notes as the "
        "keys of layer 1, and nowhere else: if they were its values as well, it would find g, but say the note "
        "there, k."
    ),
    "b": (
        "The b is what layer 0 brings to the last k. Does layer 1 return notes, or are its queries and keys exchanged? "
        "The letters ask, and the notes are asked."
    ),
    "a": (
        "Does the first letter count as one that comes after the last k? A roll brings the last row to the top. What "
        "comes before the first letter?"
    ),
}
"""What another letter than g says about a circuit."""
_ITSELF = (
    "Your circuit says each letter itself. What does your layer 0 bring for a k g b k, position by position? With the "
    "letters as keys, k would find only itself."
)
_MIXED = (
    "Your circuit says each letter itself, because its keys are mixtures of letters. Does layer 0 put nearly all of "
    "its weight on one position? Its scores need the factor 100, and row i has to point to column i − 1: it can't see "
    "column i + 1."
)
_WEAK = (
    "The weight is spread over several positions. Are the scores of both layers multiplied by 100, so that one "
    "position gets all of it?"
)
_ADDED = "The row adds up to more than 1. Do you add the letters themselves? Here a layer only says what it finds."


def _spread(row: Tensor) -> Any:
    """Whether a row of weights is neither at one letter nor in equal parts at a few."""
    weights = row[row > 1e-3]
    return row.sum() < 1.01 and len(weights) > 1 and weights.min() < weights.max() - 1e-3


@copy_by_hand.must("says g at the second k of a k g b k")
def says_g_at_second_k(candidate):
    """Look at what your layer 0 brings for a k g b k. Is it nothing, a, k, g, b?

    If it brings a mixture, layer 0 can't look where its scores are high, because a causal attention sees nothing later.
    Does row i of your scores point to column i − 1?

    In layer 1 the queries are the letters, the keys are what layer 0 brings, and the values are the letters again.
    """
    ids = _ids("akgbk")
    said = candidate(ids)
    row, letter = said[4], LETTERS[int(said[4].argmax())]
    hint = _WEAK if _spread(row) and row.max() < 0.6 else _SAYS.get(letter, "")
    if torch.equal(said.argmax(-1), ids):
        far = candidate(torch.arange(20))[-1].max()  # a share of 1/20 can't get all of the weight
        hint = _ITSELF if far > 0.97 else _MIXED
    expect(letter == "g", f"it says “{letter}”", hint)


@copy_by_hand.must("takes nothing from before the first letter")
def takes_nothing_from_before_first_letter(candidate):
    """No letter comes before position 0, but a causal attention there still looks at itself. What has to be written
    into row 0 of what layer 0 brings?
    """
    ids = _ids("kgbk")  # at the second k both g and the first k would be found
    row = candidate(ids)[3]
    hint = _ADDED if row.sum() > 1.01 else ""
    if _spread(row) or row[ids[0]] > 0.9:
        hint = hint or f"Row 0 may be fine. {_WEAK}"
    expect_close(row, by_hand(ids)[3], "the last row of k g b k", atol=1e-3, hint=hint)


@copy_by_hand.must(
    "is right from the second letter of the second block on, in blocks of 6 to 23 letters"
)
def is_right_in_blocks_of_any_length(candidate):
    """Is a distance written into your code? Each of the two layers needs another kind of score: the first compares
    positions, and the second compares letters.

    The scores have to be large (100), because a softmax never gives a weight of exactly 0.
    """
    for period in (6, 13, 20, 23):
        ids = _repeated(period)
        right = candidate(ids[:-1]).argmax(-1)[period:] == ids[period + 1 :]
        share = f"{int(right.sum())} of {len(right)} letters are right in blocks of {period}"
        expect(bool(right.all()), share)


# The QK map ---------------------------------------------------------------------------------------

my_qk_map = Check()

_ORDER = "Which letters are in the rows? Queries times keys transposed gives (queries, keys)."
_LAYER_0 = (
    "Your map compares letters directly. But the letter *before* reaches a key only through head `previous` of "
    "layer 0: multiply the letters by its W_V W_O first."
)
_GAIN = (
    "A norm multiplies by its learned scale, the gain, and each layer reads through its own norm. `letters_in` has the "
    "gain for the letters. Who multiplies what layer 0 has written by `model.norms[1].weight`?"
)


def _model(dim: int = 12, heads: int = 3) -> SimpleNamespace:
    """A random model with the parts of the chapter's `Copier`."""
    norms = [nn.LayerNorm(dim) for _ in range(3)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 2)
    layers = [MultiHeadAttention(dim, heads, bias=False) for _ in range(2)]
    return SimpleNamespace(
        letters=nn.Embedding(32, dim), norms=norms[:2], layers=layers, norm=norms[2],
        output=nn.Linear(dim, 32, bias=False),
    )  # fmt: skip


@my_qk_map.must("is a map of 32 × 32")
def is_map_of_letters(candidate):
    """What is multiplied by what? Queries of all letters, (32, head_dim), by keys of all letters, transposed."""
    expect_shape(candidate(_model(), 0, 1), (32, 32))


@my_qk_map.must("reads what head `previous` of layer 0 writes, and no other head of layer 0")
def reads_what_head_of_layer_0_writes(candidate):
    """Which head's W_V W_O do you take, and of which layer? `of_head(model.layers[0], previous)` has it."""
    model = _model()
    before = candidate(model, 2, 1).detach()
    direct = _map_of(model, 1, model.letters.weight * model.norms[1].weight)
    expect(
        not torch.allclose(before, direct, atol=1e-4),
        "the map has nothing of layer 0 in it",
        _LAYER_0,
    )
    for head, moves in ((2, True), (0, False)):
        changed = _with_head_changed(model, 0, head)
        same = torch.allclose(candidate(changed, 2, 1), before, atol=1e-5)
        what = f"with previous=2, a change of head {head} of layer 0 "
        expect(same != moves, what + ("changes nothing" if moves else "changes the map"))


@my_qk_map.must("asks with head `induction` of layer 1")
def asks_with_head_of_layer_1(candidate):
    """Which head's W_Q and W_K do you take? `of_head(model.layers[1], induction)` has both."""
    model = _model()
    before = candidate(model, 2, 1).detach()
    for head, moves in ((1, True), (2, False)):
        changed = _with_head_changed(model, 1, head)
        same = torch.allclose(candidate(changed, 2, 1), before, atol=1e-5)
        what = f"with induction=1, a change of head {head} of layer 1 "
        expect(same != moves, what + ("changes nothing" if moves else "changes the map"))


@my_qk_map.must("has the letter now in its rows and the letter before in its columns")
def has_letter_now_in_rows(candidate):
    """Which letters are in the rows? Queries times keys transposed gives (queries, keys)."""
    model = _model()
    right = qk_map(model, 0, 1)
    turned = torch.allclose(candidate(model, 0, 1), right.T, atol=1e-4)
    expect(not turned, "rows and columns are exchanged")


@my_qk_map.must("is the product of the queries with the keys, with the gains of both norms")
def is_product_with_gains(candidate):
    """Is each matrix of letters what the layer reads? Check which norm's gain belongs to which layer."""
    model = _model()
    answer, right = candidate(model, 0, 1), qk_map(model, 0, 1)
    _, _, W_OV = of_head(model.layers[0], 0)
    bare = _map_of(model, 1, model.letters.weight * model.norms[0].weight @ W_OV)
    _, W_K, _ = of_head(model.layers[1], 1)
    notes = model.letters.weight * model.norms[0].weight @ W_OV
    W_Q = of_head(model.layers[1], 1)[0]
    exchanged = model.letters.weight * model.norms[1].weight @ W_K
    exchanged = exchanged @ (notes * model.norms[1].weight @ W_Q).T
    centered = _map_of(model, 1, (notes - notes.mean(-1, keepdim=True)) * model.norms[1].weight)
    factor = (answer * right).sum() / right.square().sum()
    W_Q = of_head(model.layers[0], 1)[0]
    layer_0_asks = model.letters.weight * model.norms[1].weight @ W_Q
    layer_0_asks = layer_0_asks @ (notes * model.norms[1].weight @ W_K).T
    normed = _map_of(model, 1, model.norms[1](notes))
    stream = [
        _map_of(model, 1, (letters + notes) * model.norms[1].weight)
        for letters in (model.letters.weight, model.letters.weight * model.norms[0].weight)
    ]
    hint = ""
    if torch.allclose(answer, bare, atol=1e-4):
        hint = _GAIN
    elif torch.allclose(answer, exchanged, atol=1e-4):
        hint = "Which matrix belongs to the head that asks, W_Q or W_K? Yours are exchanged."
    elif torch.allclose(answer, factor * right, atol=1e-4):
        hint = (
            f"Your map is the right one times {factor:.2f}. Do you divide by the root of `head_dim`? It makes no "
            "difference to which entry wins, so here it is left out."
        )
    elif any(torch.allclose(answer, each, atol=1e-4) for each in stream):
        hint = "While the network runs, the key also holds the letter at its position. This map takes the note alone."
    elif torch.allclose(answer, layer_0_asks, atol=1e-4):
        hint = "Which layer's W_Q do you take? The head that asks is in layer 1, like its W_K."
    elif torch.allclose(answer, centered, atol=1e-4) or torch.allclose(answer, normed, atol=1e-4):
        hint = "Do you subtract the mean, as a norm does? Here only its gain is wanted."
    elif torch.allclose(answer.sum(-1), torch.ones(32), atol=1e-4):
        hint = "Your rows add up to 1, so they are weights. The map holds the scores themselves, without a softmax."
    expect_close(answer, right, hint=hint)


def _map_of(model: SimpleNamespace, induction: int, keys: Tensor) -> Tensor:
    """Scores of head `induction` between the letters and some vectors as keys."""
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    return model.letters.weight * model.norms[1].weight @ W_Q @ (keys @ W_K).T


def _with_head_changed(model: SimpleNamespace, layer: int, head: int) -> SimpleNamespace:
    """The model with other weights in one head."""
    old = model.layers[layer]
    new = MultiHeadAttention(len(old.out_proj.weight), old.num_heads, bias=False)
    new.load_state_dict(old.state_dict())
    rows = slice(head * old.head_dim, (head + 1) * old.head_dim)
    with torch.no_grad():
        for proj in (new.query_proj, new.key_proj, new.value_proj):
            proj.weight[rows] *= -2
    layers = [new if i == layer else each for i, each in enumerate(model.layers)]
    return SimpleNamespace(**vars(model) | {"layers": layers})


# Who is hurt --------------------------------------------------------------------------------------


def _read_much(answer: Any) -> str:
    """The word "most" or "few", in any spelling."""
    word = answer.strip().lower() if isinstance(answer, str) else answer
    if word not in ("most", "few"):
        raise WrongKind(f'got {answer!r}, expected "most" or "few"')
    return word


who_is_hurt = on_paper({
    "a": ("few", "says what is left without the previous-token head",
          "Who else tells layer 1 which letter comes before a position? Look back at the table of *A circuit by hand*.",
          "Layer 1 finds a position by the note there. What can it find if this note is the same everywhere?"),
    "b": ("most", "says what is left without the other head of layer 0",
          "After the first fall the network copied wherever a letter has had one follower. Suppose that the other head "
          "of layer 0 is needed only for what came in the second fall. Which letters would be lost?"),
    "c": ("most", "says what is left without one head of layer 1",
          "Layer 1 has two heads. What does the OV map of the other one look like? `ov_map(model, 1 - induction)` "
          "computes it.",
          "Both have a diagonal. If one head is silent, the other one's logits are still there."),
    "d": ("few", "says what is left without both heads of layer 1",
          "Who copies the letter into the logits, if no head of layer 1 does?"),
}, read=_read_much)  # fmt: skip
