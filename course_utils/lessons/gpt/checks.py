"""Checks: encoding a word, perplexity, the nucleus, and masking with a bug."""

import torch

from course_utils.lessons.check import Check, expect, expect_close, expect_shape

# Encoding ---------------------------------------------------------------------------------------

MERGES = [("a", "y"), ("ay", "␣"), ("p", "l"), ("s", "t"), ("pl", "ay␣"), ("l", "ay␣")]


def _pieces(candidate, word, merges, expected):
    pieces = list(candidate(word, list(merges)))
    expect(pieces == expected, f"{word!r} became {pieces}; expected {expected}")


encode_word = Check("encode a word")


@encode_word.must(
    "without merges a word is its characters and the end mark",
    hint="what are the pieces before the first merge, and what closes a word?",
)
def _(candidate):
    _pieces(candidate, "lay", [], ["l", "a", "y", "␣"])
    _pieces(candidate, "", [], ["␣"])


@encode_word.must(
    "a merge joins its pair at every place, from left to right",
    hint="a pair can occur twice in a word, and overlap itself",
)
def _(candidate):
    _pieces(candidate, "ayay", [("a", "y")], ["ay", "ay", "␣"])
    _pieces(candidate, "aaaa", [("a", "a"), ("aa", "aa")], ["aaaa", "␣"])
    _pieces(candidate, "aaa", [("a", "a")], ["aa", "a", "␣"])


@encode_word.must(
    "words of the text become the pieces that were merged",
    hint="the end mark takes part in merges like any character",
)
def _(candidate):
    _pieces(candidate, "play", MERGES, ["play␣"])
    _pieces(candidate, "stay", MERGES, ["st", "ay␣"])


@encode_word.must(
    "merges are applied in the order in which they were learned",
    hint="go through the merges from first to last, not through the word for its longest pieces",
)
def _(candidate):
    _pieces(candidate, "abc", [("b", "c"), ("a", "b"), ("ab", "c")], ["a", "bc", "␣"])
    _pieces(candidate, "abc", [("a", "b"), ("b", "c"), ("ab", "c")], ["abc", "␣"])


@encode_word.must(
    "a new word falls into pieces and nothing is lost",
    hint="follow one merge after the other through 'splays' with a pencil",
)
def _(candidate):
    _pieces(candidate, "splays", MERGES, ["s", "pl", "ay", "s", "␣"])
    _pieces(candidate, "payday", MERGES, ["p", "ay", "d", "ay␣"])


@encode_word.must("the merges stay as they are", hint="work on a list of your own")
def _(candidate):
    merges = [("a", "b"), ("ab", "c")]
    candidate("abc", merges)
    expect(merges == [("a", "b"), ("ab", "c")], "the list of merges was changed")


# Perplexity -------------------------------------------------------------------------------------


def _reference_perplexity(logits, targets):
    asked = targets != -100
    log_probs = logits.log_softmax(dim=-1)[asked]
    return (-log_probs.gather(1, targets[asked][:, None]).mean()).exp()


def _some(batch=3, length=6, size=11):
    return torch.randn(batch, length, size), torch.randint(size, (batch, length))


perplexity_of = Check("perplexity")


@perplexity_of.must(
    "a model that knows nothing has the perplexity V",
    hint="equal logits mean equal probabilities; which power of them is it?",
)
def _(candidate):
    expect_close(candidate(torch.zeros(2, 3, 17), torch.randint(17, (2, 3))), torch.tensor(17.0))


@perplexity_of.must(
    "a model that is always right and sure has the perplexity 1",
    hint="the exponential of a loss of zero",
)
def _(candidate):
    targets = torch.randint(9, (2, 4))
    logits = 200.0 * torch.nn.functional.one_hot(targets, 9)
    expect_close(candidate(logits, targets), torch.tensor(1.0))


@perplexity_of.must(
    "½, ¼ and ⅛ give 4",
    hint="average the logarithms, then take the exponential: not the other way round",
)
def _(candidate):
    logits = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]]).log()
    expect_close(candidate(logits, torch.zeros(1, 3, dtype=torch.long)), torch.tensor(4.0))


@perplexity_of.must(
    "places with the target -100 do not matter", hint="leave them out before anything is averaged"
)
def _(candidate):
    logits, targets = _some()
    targets[1, 4:], targets[2, 1:] = -100, -100
    changed = logits.clone()
    changed[targets == -100] += 5 * torch.randn(7, 11)
    before, after = candidate(logits, targets), candidate(changed, targets)
    expect_close(after, before, "only logits where nothing is asked were changed")


@perplexity_of.must(
    "every asked token counts the same, in long sentences and short ones",
    hint="divide once, by the number of tokens asked for in the whole batch",
)
def _(candidate):
    logits, targets = _some()
    targets[2, 1:] = -100
    expect_close(candidate(logits, targets), _reference_perplexity(logits, targets))


# The nucleus ------------------------------------------------------------------------------------

PROBS = torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])


nucleus_probs = Check("nucleus")


@nucleus_probs.must("the new probabilities sum to 1", hint="after the cut, divide by what is left")
def _(candidate):
    probs = torch.randn(4, 20).softmax(dim=-1)
    for p in (0.01, 0.3, 0.9, 1.0):
        answer = candidate(probs.clone(), p)
        expect_shape(answer, (4, 20))
        expect_close(answer.sum(dim=-1), torch.ones(4), f"p={p}: sums")


@nucleus_probs.must(
    "the token that crosses p is kept",
    hint="the sum of the kept tokens is to be at least p: compare what stands before a token with p",
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 0.7), torch.tensor([0, 0.5, 0, 0.3, 0]) / 0.8)
    expect_close(candidate(PROBS.clone(), 0.85), torch.tensor([0.1, 0.5, 0, 0.3, 0]) / 0.9)


@nucleus_probs.must(
    "the best token is always kept",
    hint="for a small p, the best token alone is more than enough, and it must not be cut",
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 0.01), torch.tensor([0, 1.0, 0, 0, 0]))


@nucleus_probs.must(
    "with p = 1 nothing changes", hint="are the probabilities put back where they came from?"
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 1.0), PROBS)


@nucleus_probs.must(
    "each row has its own nucleus, with any number of axes before the last",
    hint="sort, sum and cut along the last axis",
)
def _(candidate):
    rows = torch.tensor([[0.9, 0.05, 0.05], [0.1, 0.5, 0.4]])
    expected = torch.tensor([[1.0, 0, 0], [0, 5 / 9, 4 / 9]])
    expect_close(candidate(rows.clone(), 0.8), expected, "two rows")
    expect_close(candidate(rows[None].clone(), 0.8), expected[None], "three axes")


# Masking ----------------------------------------------------------------------------------------

MASK, SIZE = 4, 500


def _masked(candidate):
    ids = torch.randint(MASK + 1, SIZE, (300, 40))
    ids[:, 0], ids[:, -1] = 2, 3  # <bos>, <eos>
    clean = ids.clone()
    answer = candidate(ids, SIZE)
    expect(isinstance(answer, tuple) and len(answer) == 2, "a pair (tokens, targets) is expected")
    for part in answer:
        expect_shape(part, (300, 40))
    return clean, ids, *answer


fixed_masking = Check("fixed masking")


@fixed_masking.must(
    "targets are the tokens that stood there before",
    hint="when are the targets read: before or after the ids change?",
)
def _(candidate):
    clean, _, _, targets = _masked(candidate)
    asked = targets != -100
    expect(bool(asked.any()), "nothing is asked for")
    expect(
        torch.equal(targets[asked], clean[asked]),
        "a target is not the token that stood there before",
    )


@fixed_masking.must(
    "the given ids stay as they are",
    hint="masked_fill and torch.where give new tensors; an assignment with an index does not",
)
def _(candidate):
    clean, ids, _, _ = _masked(candidate)
    expect(torch.equal(ids, clean), "the given ids were changed")


@fixed_masking.must(
    "where nothing is asked, nothing changes",
    hint="each of the three fates is for picked tokens only",
)
def _(candidate):
    clean, _, tokens, targets = _masked(candidate)
    expect(
        torch.equal(tokens[targets == -100], clean[targets == -100]),
        "a token changed where nothing is asked",
    )


@fixed_masking.must(
    "15 % are asked for; of these 80 % are masked, 10 % random, 10 % kept",
    hint="which values of `fate` belong to a random token? The three shares must not overlap",
)
def _(candidate):
    clean, _, tokens, targets = _masked(candidate)
    asked = targets != -100
    share = asked[:, 1:-1].float().mean().item()
    expect(abs(share - 0.15) < 0.02, f"{share:.0%} of the ordinary tokens are asked for, not 15 %")
    hidden = (tokens == MASK)[asked].float().mean().item()
    kept = (tokens == clean)[asked].float().mean().item()
    expect(abs(hidden - 0.8) < 0.04, f"{hidden:.0%} of those asked for are masked, not 80 %")
    expect(abs(kept - 0.1) < 0.04, f"{kept:.0%} of those asked for are kept, not 10 %")


@fixed_masking.must(
    "special tokens are neither asked for nor drawn",
    hint="ordinary tokens have ids above that of the mask",
)
def _(candidate):
    clean, _, tokens, targets = _masked(candidate)
    special = clean <= MASK
    expect(bool((targets[special] == -100).all()), "a special token is asked for")
    other = (tokens != clean) & (tokens != MASK)
    expect(not other.any() or tokens[other].min() > MASK, "a token became a special one")
