"""Mistakes that the checks of *BERT and transfer* must catch."""

import torch

# fixed_masking ----------------------------------------------------------------------------------


def _draws(ids, vocab_size, mask):
    picked = (torch.rand(ids.shape) < 0.15) & (ids > mask)
    return picked, torch.rand(ids.shape), torch.randint(mask + 1, vocab_size, ids.shape)


def not_fixed(ids, vocab_size, mask=4):
    """The function as it was."""
    picked, fate, other = _draws(ids, vocab_size, mask)
    ids[picked & (fate < 0.8)] = mask
    ids[picked & (fate < 0.9)] = other[picked & (fate < 0.9)]
    return ids, ids.masked_fill(~picked, -100)


def copied_and_no_more(ids, vocab_size, mask=4):
    """Works on a copy, but still reads the targets from it."""
    return not_fixed(ids.clone(), vocab_size, mask)


def masks_still_overwritten(ids, vocab_size, mask=4):
    """Right targets, but random tokens overwrite the masks."""
    picked, fate, other = _draws(ids, vocab_size, mask)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate < 0.9), other, tokens)
    return tokens, ids.masked_fill(~picked, -100)


def still_in_place(ids, vocab_size, mask=4):
    """Right answers, and the caller's ids are changed."""
    picked, fate, other = _draws(ids, vocab_size, mask)
    targets = ids.masked_fill(~picked, -100)
    ids[picked & (fate >= 0.8) & (fate < 0.9)] = other[picked & (fate >= 0.8) & (fate < 0.9)]
    ids[picked & (fate < 0.8)] = mask
    return ids, targets


def random_everywhere(ids, vocab_size, mask=4):
    """Random tokens where nothing is asked, too."""
    picked, fate, other = _draws(ids, vocab_size, mask)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where((fate >= 0.8) & (fate < 0.9), other, tokens)
    return tokens, ids.masked_fill(~picked, -100)


def all_masked(ids, vocab_size, mask=4):
    """Masks all that is picked."""
    picked, _, _ = _draws(ids, vocab_size, mask)
    return ids.masked_fill(picked, mask), ids.masked_fill(~picked, -100)


def special_tokens_picked(ids, vocab_size, mask=4):
    """Picks <bos> and <eos> as well."""
    picked = torch.rand(ids.shape) < 0.15
    _, fate, other = _draws(ids, vocab_size, mask)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), other, tokens)
    return tokens, ids.masked_fill(~picked, -100)


MISTAKES = {
    "fixed_masking": [
        not_fixed,
        copied_and_no_more,
        masks_still_overwritten,
        still_in_place,
        random_everywhere,
        all_masked,
        special_tokens_picked,
    ],
}
