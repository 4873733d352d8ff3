"""Checks of *BERT and transfer*: masking with a bug."""

import torch

from course_utils.lessons.check import Check, expect, expect_shape, unchanged

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
