"""Checks of *GPT*: encoding a word, counting on paper, windows with a bug, writing on a cache; and the nucleus."""

import torch
from torch import Tensor, nn

from course_utils.decoding import next_token_probs
from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_sums_to_one,
    expect_tensors,
)
from course_utils.kit.on_paper import on_paper, read_number
from course_utils.models.language import GPT

# Encoding ---------------------------------------------------------------------------------------

encode_word = Check()

MERGES = [("a", "y"), ("ay", "␣"), ("p", "l"), ("s", "t"), ("pl", "ay␣"), ("l", "ay␣")]


def _expect_pieces(candidate, word, merges, expected):
    learned = ", ".join(f"{left} {right}" for left, right in merges) or "none"
    expect_equal(
        list(candidate(word, list(merges))), expected, f"pieces of {word!r}, merges: {learned}"
    )


@encode_word.must("without merges a word is its characters and the end mark")
def without_merges_word_is_its_characters_and_end_mark(candidate):
    """What are the pieces before the first merge? Begin with the characters, and remember what closes a word.

    `[*word, '␣']` is a list of single characters.
    """
    _expect_pieces(candidate, "lay", [], ["l", "a", "y", "␣"])
    _expect_pieces(candidate, "", [], ["␣"])


@encode_word.must("a merge joins its pair at every position, from left to right")
def merge_joins_its_pair_at_every_position_from_left_to_right(candidate):
    """Can a pair occur twice in a word? Walk along the whole list for each merge.

    Where the pair is, two entries become one: `pieces[i : i + 2] = [left + right]`.
    """
    _expect_pieces(candidate, "ayay", [("a", "y")], ["ay", "ay", "␣"])
    _expect_pieces(candidate, "aaaa", [("a", "a"), ("aa", "aa")], ["aaaa", "␣"])
    _expect_pieces(candidate, "aaa", [("a", "a")], ["aa", "a", "␣"])


@encode_word.must("words of the text become the pieces that were merged")
def words_of_text_become_pieces_that_were_merged(candidate):
    """Does the end mark take part in merges? It's a piece like any other, so it has to be in the list."""
    _expect_pieces(candidate, "play", MERGES, ["play␣"])
    _expect_pieces(candidate, "stay", MERGES, ["st", "ay␣"])


@encode_word.must("merges are applied in the order in which they were learned")
def merges_are_applied_in_order_in_which_they_were_learned(candidate):
    """What does your outer loop go through? It should be the merges, with the positions in the word inside.

    Does your code compare two whole pieces with the pair? Others with the same letters must stay apart.
    """
    _expect_pieces(candidate, "abc", [("b", "c"), ("a", "b"), ("ab", "c")], ["a", "bc", "␣"])
    _expect_pieces(candidate, "abc", [("a", "b"), ("b", "c"), ("ab", "c")], ["abc", "␣"])


@encode_word.must("a new word falls into pieces and nothing is lost")
def new_word_falls_into_pieces_and_nothing_is_lost(candidate):
    """Where do you differ first? Follow one merge after the other through 'splays' by hand."""
    _expect_pieces(candidate, "splays", MERGES, ["s", "pl", "ay", "s", "␣"])
    _expect_pieces(candidate, "payday", MERGES, ["p", "ay", "d", "ay␣"])


encode_word.must_keep_inputs(
    lambda: ["abc", [("a", "b"), ("ab", "c")]],
    "Does a line remove merges from the caller's list? Loop over the list and leave it as it is.",
    "the merges are not changed",
)

# Counting on paper ------------------------------------------------------------------------------


def _read_two_decimals(answer):
    """The number in an answer; a right one that was rounded to one decimal gets a hint of its own."""
    number = read_number(answer)
    expect(
        number not in (0.2, 0.3, 0.6),
        f"{number} has one decimal",
        "Give two decimals, so that we can tell your answer from one that is only near it.",
    )
    expect(
        round(number, 2) not in (0.08, 0.19),  # (c) with 1/4 or 4/7
        f"your answer is {number:g}",
        "Which P₁(a) did you take? It is the share of the *different* pairs that end in a.",
    )
    return number


counted_on_paper = on_paper({
    "a": (0.25, "P₁(b)",
         "Did you count how often b occurs? Count in how many *different* pairs it comes second.",
         "The different pairs are ab, ba, ac, and ca, and one of the four ends in b."),
    "b": (7 / 12, "P₂(b | a)",
         "What does each count after an a give up, and how many counts are there? Nothing follows the last a.",
         "Here c(ab) = 2, c(a) = 3, and u(a) = 2, and P₁(b) is your answer to (a)."),
    "c": (1 / 6, "P₂(a | a)",
         "What is left of the formula if c(sw) is 0? A count of 0 gives nothing up, and P₁ gets its part.",
         "It is ½ · u(a) · P₁(a) / c(a), and two of the four different pairs end in a."),
    "d": (33, "the perplexity of a uniform guess",
         "What is the loss of a token with probability 1/33? The perplexity is its exponential."),
}, read=_read_two_decimals, within=0.0051)  # fmt: skip


# Windows: find the bug --------------------------------------------------------------------------

fixed_windows = Check()


PLUS_ONE = "In `torch.arange(1000)` the next token is t + 1. Which token comes next in a text? Take it from `stream`."
SLICE = (
    "Is a border of your slice a tensor? A slice takes one number, and here each window has its own start, so index "
    "`stream` with all positions at once, (count, length), as `buggy_windows` does."
)


def _window_positions(candidate, length=8, count=50, size=40, seed=0):
    """Positions in the text of tokens and targets: its tokens differ, and −1 stands for one that is not in it."""
    generator = torch.Generator().manual_seed(seed)
    text = _permuted_text(size)
    answer = candidate(text.clone(), length, count, generator)
    both = expect_tensors(answer, "tokens", "targets")
    return [_positions_in_text(expect_shape(tokens, (count, length)), text) for tokens in both]


def _permuted_text(size: int) -> Tensor:
    return torch.randperm(size, generator=torch.Generator().manual_seed(7))


def _positions_in_text(tokens: Tensor, text: Tensor) -> Tensor:
    matches = tokens[..., None] == text
    return torch.where(matches.any(dim=-1), matches.int().argmax(dim=-1), -1)


@fixed_windows.must("gives tokens and targets of the shape (count, length)")
def gives_tokens_and_targets_of_shape(candidate):
    """How many tokens of the text does a window need? Each of its tokens, even the last, asks for the next one."""
    try:
        _window_positions(candidate)
    except TypeError as error:
        error.hint = SLICE
        raise
    _window_positions(candidate, length=1, count=3)


@fixed_windows.must("reads tokens that are neighbors in the text")
def reads_tokens_that_are_neighbors_in_text(candidate):
    """Which positions does a window take? They follow its start without a gap: `starts + torch.arange(…)`."""
    tokens, _ = _window_positions(candidate)
    expect(bool((tokens.diff(dim=1) == 1).all()), "a window skips or repeats tokens of the text")


@fixed_windows.must(
    "has the next token of the text as target, even at the last position of a window"
)
def has_next_token_as_target_even_at_end_of_window(candidate):
    """What does `roll` put at the end of a row? Look at the last column of your targets.

    Take length + 1 tokens of the text: all but the last are read, all but the first are asked for.
    """
    tokens, targets = expect_tensors(
        candidate(_permuted_text(40), 8, 50, torch.Generator()), "tokens", "targets"
    )
    expect(not torch.equal(targets, tokens + 1), "each target is its token plus 1", PLUS_ONE)
    tokens, targets = _window_positions(candidate)
    wrong = (targets != tokens + 1).any(dim=0).nonzero().flatten().tolist()
    expect_equal(wrong, [], "positions of a window with a wrong target")


@fixed_windows.must("reads each token but the last, and asks for each but the first")
def reads_each_token_but_last_and_asks_for_each_but_first(candidate):
    """Which is the last position where a window may start? Its last target still has to be in the text.

    `torch.randint(high, …)` draws numbers below high. A text of length + 1 tokens has one window.
    """
    tokens, targets = _window_positions(candidate, length=3, count=400, size=8)
    expect_equal(sorted(set(tokens.flatten().tolist())), list(range(7)), "positions read")
    expect_equal(sorted(set(targets.flatten().tolist())), list(range(1, 8)), "positions asked for")
    tokens, targets = _window_positions(candidate, length=7, count=5, size=8)
    expect_equal(targets[0].tolist(), list(range(1, 8)), "positions asked for in the only window")


@fixed_windows.must("draws the starts with the generator")
def draws_starts_with_generator(candidate):
    """Where do your random numbers come from? `torch.randint` takes the generator as an argument."""
    first, again, other = (_window_positions(candidate, seed=seed)[0] for seed in (0, 0, 1))
    expect(torch.equal(first, again), "the same generator gave other windows")
    expect(not torch.equal(first, other), "another generator gave the same windows")
    expect(len(first[:, 0].unique()) > 10, "all windows of a batch start at few positions")


# Writing on a cache -----------------------------------------------------------------------------

my_generate = Check()

VOCAB = 11


CALLED = "Which method reads tokens onto the cache? Call `model.step(tokens, state)`, with `state = model.start()`."
NEW = "What is new in the second step? The state holds keys and values of everything read before."
AXIS = "Along which axis do you join what was drawn to the text? `torch.cat` takes axis 0 unless you give `dim=1`."
PROMPT = "Does the model read the whole prompt before the first draw? The first step takes all of `prompt`."
FRESH = "Where do you call `start()`? Call it once, before the loop, so that the same cache goes from step to step."


class _CountingModel:
    """A model that records how many tokens each step reads."""

    def __init__(self, model):
        self.model, self.read = model, []

    def __call__(self, *_tokens, **_state):
        """Not asked for: it would read everything again."""
        raise Unmet("the model is called as a function", CALLED)

    def start(self):
        """Nothing read so far."""
        return self.model.start()

    def step(self, tokens, state):
        """As the model's."""
        if not (isinstance(tokens, Tensor) and tokens.ndim == 2):
            shape = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
            raise WrongKind(f"step takes tokens (batch, new), not {shape}")
        if self.read and getattr(state, "length", None) == 0:
            raise Unmet(f"the cache of step {len(self.read) + 1} has read nothing yet", FRESH)
        num_read = sum(self.read)
        if num_read and tokens.shape[1] > 1:
            raise Unmet(
                f"you hand over {tokens.shape[1]} tokens; the cache has read {num_read} already",
                NEW,
            )
        self.read.append(tokens.shape[1])
        return self.model.step(tokens, state)


class _FixedLogits(nn.Module):
    """A model that always gives the same logits."""

    logits = torch.tensor([8.0, 1.0, 4.0, 2.0]).log()

    def start(self):
        """No state."""
        return []

    def step(self, tokens, state):
        """(batch, new) → (batch, 4)."""
        return self.logits.expand(len(tokens), 4)


def _small_model() -> GPT:
    model = GPT(VOCAB, embed_dim=8, num_heads=2, num_layers=2, max_len=24, dropout=0.0)
    for table in (model.embedding, model.positions):
        nn.init.normal_(table.weight, std=1.0)  # so that its choices depend on the text
    return model.eval()


def _generated(candidate, model, prompt, steps, *options, seed=0):
    generator = torch.Generator().manual_seed(seed)
    answer = candidate(model, prompt, steps, *options, generator)
    return expect_shape(answer, (len(prompt), prompt.shape[1] + steps))


@my_generate.must("gives prompt and new tokens, (batch, length + steps)")
def gives_prompt_and_new_tokens(candidate):
    """What do you return? The text begins with the prompt, and the new tokens follow it.

    Each draw is (batch, 1). Join it to the text along dim=1.
    """
    prompt = torch.randint(VOCAB, (3, 4))
    try:
        text = _generated(candidate, _CountingModel(_small_model()), prompt, 5, 1.0, None)
    except RuntimeError as error:
        if "except in dimension 0" in str(error):
            error.hint = AXIS
        raise
    expect(torch.equal(text[:, :4], prompt), "the text does not begin with the prompt")
    expect(not text.is_floating_point(), "tokens are whole numbers")


@my_generate.must(
    "reads the prompt once, and then only the new token",
    hint=(
        NEW,
        "`new = prompt` before the loop; in the loop `new` becomes what was drawn, (batch, 1).",
    ),
)
def reads_prompt_once_and_then_only_new_token(candidate):
    model = _CountingModel(_small_model())
    _generated(candidate, model, torch.randint(VOCAB, (2, 5)), 4, 1.0, 1)
    total = sum(model.read)
    said = f"{total} tokens read, expected 8, the prompt's 5 and 3 that were drawn"
    expect(total >= 8, said, PROMPT)
    expect(
        total == 8,
        said,
        "Does anyone ask what follows the token drawn last? It is written, but it needn't be read.",
    )


@my_generate.must("writes what greedy decoding writes if top_k is 1")
def writes_what_greedy_decoding_writes_if_top_k_is_1(candidate):
    """Are temperature and top_k handed on? `next_token_probs` takes both.

    What did the model read in the last step? Each new token is the best one after *all* tokens so far.
    """
    model, prompt = _small_model(), torch.randint(VOCAB, (2, 3))
    text = _generated(candidate, model, prompt, 6, 1.0, 1)
    expected = prompt
    with torch.no_grad():
        for _ in range(6):
            expected = torch.cat([expected, model(expected)[:, -1:].argmax(dim=-1)], dim=1)
    expect_equal(text.tolist(), expected.tolist(), "the text")


@my_generate.must("draws tokens with the probabilities of temperature and top_k")
def draws_tokens_with_probabilities_of_temperature_and_top_k(candidate):
    """Is a token drawn, or is the best one taken? `torch.multinomial(probs, 1, generator=generator)` draws.

    Which probabilities do you draw from? They should be `next_token_probs(logits, temperature=…, top_k=…)`.
    """
    prompt = torch.zeros(4000, 1, dtype=torch.long)
    for temperature, top_k in ((1.0, None), (0.5, None), (2.0, 2)):
        text = _generated(candidate, _FixedLogits(), prompt, 1, temperature, top_k)
        drawn = text[:, 1].bincount(minlength=4) / len(text)
        expected = next_token_probs(_FixedLogits.logits, temperature=temperature, top_k=top_k)
        gap = (drawn - expected).abs().max().item()
        shares = ", ".join(f"{share:.2f}" for share in drawn.tolist())
        expect(
            gap < 0.04,
            f"temperature {temperature}, top_k {top_k}: drawn with the shares {shares}; expected "
            + ", ".join(f"{share:.2f}" for share in expected.tolist()),
        )


@my_generate.must("writes the same text with the same generator")
def writes_same_text_with_same_generator(candidate):
    """Who draws without your generator? `torch.multinomial` takes it as an argument."""
    model, prompt = _small_model(), torch.randint(VOCAB, (2, 3))
    first, again, other = (
        _generated(candidate, model, prompt, 12, 1.0, None, seed=seed) for seed in (0, 0, 1)
    )
    expect(torch.equal(first, again), "the same generator gave another text")
    expect(not torch.equal(first, other), "another generator gave the same text")


# The nucleus ------------------------------------------------------------------------------------

nucleus_probs = Check()

PROBS = torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])


@nucleus_probs.must("gives probabilities that sum to 1")
def gives_probabilities_that_sum_to_1(candidate):
    """What is the sum of what is left after the cut? Divide by it."""
    probs = torch.randn(4, 20).softmax(dim=-1)
    for p in (0.01, 0.3, 0.9, 1.0):
        expect_sums_to_one(candidate(probs.clone(), p), (4, 20))


@nucleus_probs.must("keeps the token that crosses p")
def keeps_token_that_crosses_p(candidate):
    """Which sum do you compare with p? It should be the sum of the tokens *before* this one, in the order."""
    kept, expected = candidate(PROBS.clone(), 0.7), torch.tensor([0, 0.5, 0, 0.3, 0]) / 0.8
    expect_shape(kept, (5,))
    is_cut_right = torch.allclose(kept.sort().values, expected.sort().values)
    hint = "Which token does each number belong to? They are right, and in the order of a sort."
    expect_close(kept, expected, "p = 0.7", hint=hint if is_cut_right else "")
    expected = torch.tensor([0.1, 0.5, 0, 0.3, 0]) / 0.9
    expect_close(candidate(PROBS.clone(), 0.85), expected, "p = 0.85")


@nucleus_probs.must("always keeps the best token")
def always_keeps_best_token(candidate):
    """Is the best token cut if it is above p itself? No token comes before it, so their sum is 0."""
    expect_close(candidate(PROBS.clone(), 0.01), torch.tensor([0, 1.0, 0, 0, 0]), "p = 0.01")


@nucleus_probs.must("keeps no more tokens than needed, not even one as likely as the last")
def keeps_no_more_tokens_than_needed(candidate):
    """Why is a token kept? Look at the sum of those before it in the order, not at its own probability."""
    count = (candidate(torch.full((4,), 0.25), 0.5) > 0).sum().item()
    expect(
        count != 3,
        "3 tokens kept of four with probability ¼, p = 0.5; expected 2",
        "Is p reached if the tokens before this one sum to exactly p? Then this one goes: cut with ≥, not with >.",
    )
    expect_equal(count, 2, "tokens kept of four with probability ¼, p = 0.5")


@nucleus_probs.must("changes nothing if p is 1")
def changes_nothing_if_p_is_1(candidate):
    """Are the probabilities back where they came from? `scatter` undoes a sort with its indices."""
    expect_close(candidate(PROBS.clone(), 1.0), PROBS, "p = 1")


@nucleus_probs.must("finds a nucleus for each row, with any number of axes before the last")
def finds_nucleus_for_each_row(candidate):
    """Along which axis do you sort, sum and cut? It should be `dim=-1` each time."""
    rows = torch.tensor([[0.9, 0.05, 0.05], [0.1, 0.5, 0.4]])
    expected = torch.tensor([[1.0, 0, 0], [0, 5 / 9, 4 / 9]])
    expect_close(candidate(rows.clone(), 0.8), expected, "two rows")
    expect_close(candidate(rows[None].clone(), 0.8), expected[None], "three axes")
