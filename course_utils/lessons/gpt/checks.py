"""Checks: encoding a word, perplexity, the nucleus, and masking with a bug."""

import torch

from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape

__all__ = ["encode_word", "fixed_masking", "nucleus_probs", "perplexity_of"]

# Encoding ---------------------------------------------------------------------------------------

MERGES = [("a", "y"), ("ay", "␣"), ("p", "l"), ("s", "t"), ("pl", "ay␣"), ("l", "ay␣")]


def _pieces(candidate, word, merges, expected):
    pieces = list(candidate(word, list(merges)))
    expect(pieces == expected, f"{word!r} became {pieces}; expected {expected}")


def _no_merges(candidate):
    _pieces(candidate, "lay", [], ["l", "a", "y", "␣"])
    _pieces(candidate, "", [], ["␣"])


def _known_words(candidate):
    _pieces(candidate, "play", MERGES, ["play␣"])
    _pieces(candidate, "stay", MERGES, ["st", "ay␣"])


def _new_words(candidate):
    _pieces(candidate, "splays", MERGES, ["s", "pl", "ay", "s", "␣"])
    _pieces(candidate, "payday", MERGES, ["p", "ay", "d", "ay␣"])


def _every_place(candidate):
    _pieces(candidate, "ayay", [("a", "y")], ["ay", "ay", "␣"])
    _pieces(candidate, "aaaa", [("a", "a"), ("aa", "aa")], ["aaaa", "␣"])
    _pieces(candidate, "aaa", [("a", "a")], ["aa", "a", "␣"])


def _order_counts(candidate):
    _pieces(candidate, "abc", [("b", "c"), ("a", "b"), ("ab", "c")], ["a", "bc", "␣"])
    _pieces(candidate, "abc", [("a", "b"), ("b", "c"), ("ab", "c")], ["abc", "␣"])


def _arguments_kept(candidate):
    merges = [("a", "b"), ("ab", "c")]
    candidate("abc", merges)
    expect(merges == [("a", "b"), ("ab", "c")], "the list of merges was changed")


encode_word = Check(
    "encode a word",
    [
        Property(
            "without merges a word is its characters and the end mark",
            _no_merges,
            "what are the pieces before the first merge, and what closes a word?",
        ),
        Property(
            "a merge joins its pair at every place, from left to right",
            _every_place,
            "a pair can occur twice in a word, and overlap itself",
        ),
        Property(
            "words of the text become the pieces that were merged",
            _known_words,
            "the end mark takes part in merges like any character",
        ),
        Property(
            "merges are applied in the order in which they were learned",
            _order_counts,
            "go through the merges from first to last, not through the word for its longest pieces",
        ),
        Property(
            "a new word falls into pieces and nothing is lost",
            _new_words,
            "follow one merge after the other through 'splays' with a pencil",
        ),
        Property(
            "the merges stay as they are",
            _arguments_kept,
            "work on a list of your own",
        ),
    ],
)

# Perplexity -------------------------------------------------------------------------------------


def _reference_perplexity(logits, targets):
    asked = targets != -100
    log_probs = logits.log_softmax(dim=-1)[asked]
    return (-log_probs.gather(1, targets[asked][:, None]).mean()).exp()


def _some(batch=3, length=6, size=11):
    return torch.randn(batch, length, size), torch.randint(size, (batch, length))


def _uniform(candidate):
    expect_close(candidate(torch.zeros(2, 3, 17), torch.randint(17, (2, 3))), torch.tensor(17.0))


def _certain(candidate):
    targets = torch.randint(9, (2, 4))
    logits = 200.0 * torch.nn.functional.one_hot(targets, 9)
    expect_close(candidate(logits, targets), torch.tensor(1.0))


def _by_hand(candidate):
    logits = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]]).log()
    expect_close(candidate(logits, torch.zeros(1, 3, dtype=torch.long)), torch.tensor(4.0))


def _padding_left_out(candidate):
    logits, targets = _some()
    targets[1, 4:], targets[2, 1:] = -100, -100
    changed = logits.clone()
    changed[targets == -100] += 5 * torch.randn(7, 11)
    before, after = candidate(logits, targets), candidate(changed, targets)
    expect_close(after, before, "only logits where nothing is asked were changed")


def _per_token(candidate):
    logits, targets = _some()
    targets[2, 1:] = -100
    expect_close(candidate(logits, targets), _reference_perplexity(logits, targets))


perplexity_of = Check(
    "perplexity",
    [
        Property(
            "a model that knows nothing has the perplexity V",
            _uniform,
            "equal logits mean equal probabilities; which power of them is it?",
        ),
        Property(
            "a model that is always right and sure has the perplexity 1",
            _certain,
            "the exponential of a loss of zero",
        ),
        Property(
            "½, ¼ and ⅛ give 4",
            _by_hand,
            "average the logarithms, then take the exponential: not the other way round",
        ),
        Property(
            "places with the target -100 do not matter",
            _padding_left_out,
            "leave them out before anything is averaged",
        ),
        Property(
            "every asked token counts the same, in long sentences and short ones",
            _per_token,
            "divide once, by the number of tokens asked for in the whole batch",
        ),
    ],
)

# The nucleus ------------------------------------------------------------------------------------

PROBS = torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])


def _sums_to_one(candidate):
    probs = torch.randn(4, 20).softmax(dim=-1)
    for p in (0.01, 0.3, 0.9, 1.0):
        answer = candidate(probs.clone(), p)
        expect_shape(answer, (4, 20))
        expect_close(answer.sum(dim=-1), torch.ones(4), f"p={p}: sums")


def _crossing_token_kept(candidate):
    expect_close(candidate(PROBS.clone(), 0.7), torch.tensor([0, 0.5, 0, 0.3, 0]) / 0.8)
    expect_close(candidate(PROBS.clone(), 0.85), torch.tensor([0.1, 0.5, 0, 0.3, 0]) / 0.9)


def _best_always_kept(candidate):
    expect_close(candidate(PROBS.clone(), 0.01), torch.tensor([0, 1.0, 0, 0, 0]))


def _all_kept(candidate):
    expect_close(candidate(PROBS.clone(), 1.0), PROBS)


def _each_row_its_own(candidate):
    rows = torch.tensor([[0.9, 0.05, 0.05], [0.1, 0.5, 0.4]])
    expected = torch.tensor([[1.0, 0, 0], [0, 5 / 9, 4 / 9]])
    expect_close(candidate(rows.clone(), 0.8), expected, "two rows")
    expect_close(candidate(rows[None].clone(), 0.8), expected[None], "three axes")


nucleus_probs = Check(
    "nucleus",
    [
        Property(
            "the new probabilities sum to 1",
            _sums_to_one,
            "after the cut, divide by what is left",
        ),
        Property(
            "the token that crosses p is kept",
            _crossing_token_kept,
            "the sum of the kept tokens is to be at least p: compare what stands before a token with p",
        ),
        Property(
            "the best token is always kept",
            _best_always_kept,
            "for a small p, the best token alone is more than enough, and it must not be cut",
        ),
        Property(
            "with p = 1 nothing changes",
            _all_kept,
            "are the probabilities put back where they came from?",
        ),
        Property(
            "each row has its own nucleus, with any number of axes before the last",
            _each_row_its_own,
            "sort, sum and cut along the last axis",
        ),
    ],
)

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


def _ids_kept(candidate):
    clean, ids, _, _ = _masked(candidate)
    expect(torch.equal(ids, clean), "the given ids were changed")


def _targets_are_the_truth(candidate):
    clean, _, _, targets = _masked(candidate)
    asked = targets != -100
    expect(bool(asked.any()), "nothing is asked for")
    expect(
        torch.equal(targets[asked], clean[asked]),
        "a target is not the token that stood there before",
    )


def _unpicked_untouched(candidate):
    clean, _, tokens, targets = _masked(candidate)
    expect(
        torch.equal(tokens[targets == -100], clean[targets == -100]),
        "a token changed where nothing is asked",
    )


def _shares(candidate):
    clean, _, tokens, targets = _masked(candidate)
    asked = targets != -100
    share = asked[:, 1:-1].float().mean().item()
    expect(abs(share - 0.15) < 0.02, f"{share:.0%} of the ordinary tokens are asked for, not 15 %")
    hidden = (tokens == MASK)[asked].float().mean().item()
    kept = (tokens == clean)[asked].float().mean().item()
    expect(abs(hidden - 0.8) < 0.04, f"{hidden:.0%} of those asked for are masked, not 80 %")
    expect(abs(kept - 0.1) < 0.04, f"{kept:.0%} of those asked for are kept, not 10 %")


def _special_left_alone(candidate):
    clean, _, tokens, targets = _masked(candidate)
    special = clean <= MASK
    expect(bool((targets[special] == -100).all()), "a special token is asked for")
    other = (tokens != clean) & (tokens != MASK)
    expect(not other.any() or tokens[other].min() > MASK, "a token became a special one")


fixed_masking = Check(
    "fixed masking",
    [
        Property(
            "targets are the tokens that stood there before",
            _targets_are_the_truth,
            "when are the targets read: before or after the ids change?",
        ),
        Property(
            "the given ids stay as they are",
            _ids_kept,
            "masked_fill and torch.where give new tensors; an assignment with an index does not",
        ),
        Property(
            "where nothing is asked, nothing changes",
            _unpicked_untouched,
            "each of the three fates is for picked tokens only",
        ),
        Property(
            "15 % are asked for; of these 80 % are masked, 10 % random, 10 % kept",
            _shares,
            "which values of `fate` belong to a random token? The three shares must not overlap",
        ),
        Property(
            "special tokens are neither asked for nor drawn",
            _special_left_alone,
            "ordinary tokens have ids above that of the mask",
        ),
    ],
)
