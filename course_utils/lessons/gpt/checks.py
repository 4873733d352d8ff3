"""Checks of *GPT*: encoding a word, perplexity, the nucleus, and masking with a bug."""

import torch

from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_sums_to_one,
    unchanged,
)

# Encoding ---------------------------------------------------------------------------------------

encode_word = Check("encode a word")

MERGES = [("a", "y"), ("ay", "␣"), ("p", "l"), ("s", "t"), ("pl", "ay␣"), ("l", "ay␣")]


def _pieces(candidate, word, merges, expected):
    expect_equal(list(candidate(word, list(merges))), expected, f"pieces of {word!r}")


@encode_word.must(
    "without merges a word is its characters and the end mark",
    hint="What are the pieces before the first merge, and what closes a word?",
)
def _(candidate):
    _pieces(candidate, "lay", [], ["l", "a", "y", "␣"])
    _pieces(candidate, "", [], ["␣"])


@encode_word.must(
    "a merge joins its pair at every position, from left to right",
    hint="Can a pair occur twice in a word? Can it overlap itself?",
)
def _(candidate):
    _pieces(candidate, "ayay", [("a", "y")], ["ay", "ay", "␣"])
    _pieces(candidate, "aaaa", [("a", "a"), ("aa", "aa")], ["aaaa", "␣"])
    _pieces(candidate, "aaa", [("a", "a")], ["aa", "a", "␣"])


@encode_word.must(
    "words of the text become the pieces that were merged",
    hint="Does the end mark take part in merges like any character?",
)
def _(candidate):
    _pieces(candidate, "play", MERGES, ["play␣"])
    _pieces(candidate, "stay", MERGES, ["st", "ay␣"])


@encode_word.must(
    "merges are applied in the order in which they were learned",
    hint="What does your outer loop go through: the merges, or the places of the word?",
)
def _(candidate):
    _pieces(candidate, "abc", [("b", "c"), ("a", "b"), ("ab", "c")], ["a", "bc", "␣"])
    _pieces(candidate, "abc", [("a", "b"), ("b", "c"), ("ab", "c")], ["abc", "␣"])


@encode_word.must(
    "a new word falls into pieces and nothing is lost",
    hint="Follow one merge after the other through 'splays' by hand. Where do you differ first?",
)
def _(candidate):
    _pieces(candidate, "splays", MERGES, ["s", "pl", "ay", "s", "␣"])
    _pieces(candidate, "payday", MERGES, ["p", "ay", "d", "ay␣"])


@encode_word.must(
    "the merges are not changed", hint="Does a line remove merges from the caller's list?"
)
def _(candidate):
    merges = [("a", "b"), ("ab", "c")]
    with unchanged(merges):
        candidate("abc", merges)


# Perplexity -------------------------------------------------------------------------------------

perplexity_of = Check("perplexity")


def _some():
    return torch.randn(3, 6, 11), torch.randint(11, (3, 6))


@perplexity_of.must(
    "a model that knows nothing has the perplexity V",
    hint="Equal logits mean equal probabilities. What is the loss then, and what is its exponential?",
)
def _(candidate):
    expect_close(candidate(torch.zeros(2, 3, 17), torch.randint(17, (2, 3))), torch.tensor(17.0))


@perplexity_of.must(
    "a model that is always right and sure has the perplexity 1",
    hint="What is the loss of such a model, and what is its exponential?",
)
def _(candidate):
    targets = torch.randint(9, (2, 4))
    logits = 200.0 * torch.nn.functional.one_hot(targets, 9)
    expect_close(candidate(logits, targets), torch.tensor(1.0))


@perplexity_of.must(
    "½, ¼ and ⅛ give 4", hint="In which order do you average and take the exponential?"
)
def _(candidate):
    logits = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]]).log()
    expect_close(candidate(logits, torch.zeros(1, 3, dtype=torch.long)), torch.tensor(4.0))


@perplexity_of.must(
    "positions with the target -100 do not matter",
    hint="Are these positions left out before anything is averaged?",
)
def _(candidate):
    logits, targets = _some()
    targets[1, 4:], targets[2, 1:] = -100, -100
    changed = logits.clone()
    changed[targets == -100] += 5 * torch.randn(7, 11)
    before, after = candidate(logits, targets), candidate(changed, targets)
    expect_close(after, before, "only logits with the target -100 were changed")


@perplexity_of.must(
    "every target counts the same, in long sentences and short ones",
    hint="How often do you divide, and by how many? Do you take a mean of means?",
)
def _(candidate):
    logits, targets = _some()
    targets[2, 1:] = -100
    counts = targets != -100
    losses = -logits.log_softmax(dim=-1)[counts].gather(1, targets[counts][:, None])
    expect_close(candidate(logits, targets), losses.mean().exp())


# The nucleus ------------------------------------------------------------------------------------

nucleus_probs = Check("nucleus")

PROBS = torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])


@nucleus_probs.must(
    "the new probabilities sum to 1", hint="What is the sum of what is left after the cut?"
)
def _(candidate):
    probs = torch.randn(4, 20).softmax(dim=-1)
    for p in (0.01, 0.3, 0.9, 1.0):
        expect_sums_to_one(candidate(probs.clone(), p), (4, 20))


@nucleus_probs.must(
    "the token that crosses p is kept",
    hint="The kept tokens should sum to at least p. Which sum do you compare with p: with the token, or without it?",
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 0.7), torch.tensor([0, 0.5, 0, 0.3, 0]) / 0.8, "p = 0.7")
    expected = torch.tensor([0.1, 0.5, 0, 0.3, 0]) / 0.9
    expect_close(candidate(PROBS.clone(), 0.85), expected, "p = 0.85")


@nucleus_probs.must(
    "the best token is always kept",
    hint="For a small p the best token alone is above p. Is it cut?",
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 0.01), torch.tensor([0, 1.0, 0, 0, 0]), "p = 0.01")


@nucleus_probs.must(
    "with p = 1 nothing changes", hint="Are the probabilities put back where they came from?"
)
def _(candidate):
    expect_close(candidate(PROBS.clone(), 1.0), PROBS, "p = 1")


@nucleus_probs.must(
    "each row has its own nucleus, with any number of axes before the last",
    hint="Along which axis do you sort, sum and cut?",
)
def _(candidate):
    rows = torch.tensor([[0.9, 0.05, 0.05], [0.1, 0.5, 0.4]])
    expected = torch.tensor([[1.0, 0, 0], [0, 5 / 9, 4 / 9]])
    expect_close(candidate(rows.clone(), 0.8), expected, "two rows")
    expect_close(candidate(rows[None].clone(), 0.8), expected[None], "three axes")


# Masking: find the bug --------------------------------------------------------------------------

fixed_masking = Check("fixed masking")

MASK, SIZE = 4, 500


def _ids():
    ids = torch.randint(MASK + 1, SIZE, (300, 40))
    ids[:, 0], ids[:, -1] = 2, 3  # <bos>, <eos>
    return ids


def _masked(candidate):
    """The ids as they were, the tokens and the targets."""
    ids = _ids()
    answer = candidate(ids.clone(), SIZE)
    pair = isinstance(answer, tuple) and len(answer) == 2
    expect(pair, "a pair (tokens, targets) is expected")
    return ids, *(expect_shape(part, (300, 40)) for part in answer)


@fixed_masking.must(
    "targets are the tokens that stood there before",
    hint="When are the targets read: before or after the ids change?",
)
def _(candidate):
    ids, _, targets = _masked(candidate)
    picked = targets != -100
    expect(bool(picked.any()), "all targets are -100")
    same = torch.equal(targets[picked], ids[picked])
    expect(same, "a target is not the token that stood there before")


@fixed_masking.must(
    "the input is not changed",
    hint="Which lines make a new tensor, and which write into the one that was given?",
)
def _(candidate):
    ids = _ids()
    with unchanged(ids):
        candidate(ids, SIZE)


@fixed_masking.must(
    "where the target is -100, the token stays",
    hint="Which tokens may be masked or replaced: all, or the picked ones only?",
)
def _(candidate):
    ids, tokens, targets = _masked(candidate)
    same = torch.equal(tokens[targets == -100], ids[targets == -100])
    expect(same, "a token changed where the target is -100")


@fixed_masking.must(
    "15 % are picked; of these 80 % are masked, 10 % random, 10 % kept",
    hint="Which values of `fate` make a token random? Do the three shares overlap?",
)
def _(candidate):
    ids, tokens, targets = _masked(candidate)
    picked = targets != -100
    share = picked[:, 1:-1].float().mean().item()
    expect(
        abs(share - 0.15) < 0.02, f"{share:.0%} of the ordinary tokens are picked; expected 15 %"
    )
    hidden = (tokens == MASK)[picked].float().mean().item()
    expect(abs(hidden - 0.8) < 0.04, f"{hidden:.0%} of the picked tokens are masked; expected 80 %")
    kept = (tokens == ids)[picked].float().mean().item()
    expect(abs(kept - 0.1) < 0.04, f"{kept:.0%} of the picked tokens are kept; expected 10 %")


@fixed_masking.must(
    "special tokens are neither picked nor drawn",
    hint="Which ids do ordinary tokens have? Compare them with that of the mask.",
)
def _(candidate):
    ids, tokens, targets = _masked(candidate)
    expect(bool((targets[ids <= MASK] == -100).all()), "a special token is picked")
    drawn = tokens[(tokens != ids) & (tokens != MASK)]
    expect(bool((drawn > MASK).all()), "a token became a special one")
