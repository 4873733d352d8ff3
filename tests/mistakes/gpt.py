"""Mistakes that the checks of *Pretraining* must catch."""

import torch
import torch.nn.functional as F

# encode_word ------------------------------------------------------------------------------------


def _apply(pieces, left, right):
    place = 0
    while place < len(pieces) - 1:
        if (pieces[place], pieces[place + 1]) == (left, right):
            pieces[place : place + 2] = [left + right]
        place += 1
    return pieces


def no_end_mark(word, merges):
    """Forgets the end mark."""
    pieces = [*word]
    for left, right in merges:
        pieces = _apply(pieces, left, right)
    return pieces


def longest_first(word, merges):
    """Takes the longest known piece at each place, as other algorithms do."""
    known = {left + right for left, right in merges} | {*word, "␣"}
    rest, pieces = word + "␣", []
    while rest:
        size = max(n for n in range(1, len(rest) + 1) if rest[:n] in known or n == 1)
        pieces.append(rest[:size])
        rest = rest[size:]
    return pieces


def first_place_only(word, merges):
    """Merges each pair once."""
    pieces = [*word, "␣"]
    for left, right in merges:
        for place in range(len(pieces) - 1):
            if (pieces[place], pieces[place + 1]) == (left, right):
                pieces[place : place + 2] = [left + right]
                break
    return pieces


def newest_first(word, merges):
    """Applies the merges from the last to the first, until nothing changes."""
    pieces, before = [*word, "␣"], None
    while pieces != before:
        before = list(pieces)
        for left, right in reversed(merges):
            pieces = _apply(pieces, left, right)
    return pieces


def uses_the_merges_up(word, merges):
    """Empties the caller's list."""
    pieces = [*word, "␣"]
    while merges:
        pieces = _apply(pieces, *merges.pop(0))
    return pieces


# perplexity_of ----------------------------------------------------------------------------------


def loss_instead(logits, targets):
    """Forgets the exponential."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def padding_counted(logits, targets):
    """Counts padding as token 0."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().clamp(min=0)).exp()


def mean_of_sentences(logits, targets):
    """Averages sentence by sentence, so that short ones count more."""
    losses = [F.cross_entropy(a, b) for a, b in zip(logits, targets, strict=True)]
    return torch.stack(losses).mean().exp()


def mean_of_inverse_probabilities(logits, targets):
    """Takes the exponential before the mean."""
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses[targets.flatten() != -100].exp().mean()


def divided_by_all_places(logits, targets):
    """Leaves padding out of the sum, but not out of the number."""
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    return (total / targets.numel()).exp()


# nucleus_probs ----------------------------------------------------------------------------------


def crossing_token_dropped(probs, p):
    """Keeps tokens while their sum is at most p: short of p, and nothing for a small one."""
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) > p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    return torch.zeros_like(probs).scatter(-1, order, kept)


def not_normalized(probs, p):
    """Forgets to divide."""
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= p, 0.0)
    return torch.zeros_like(probs).scatter(-1, order, kept)


def left_sorted(probs, p):
    """Does not put the tokens back in their places."""
    ordered, _ = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


def likely_enough(probs, p):
    """Keeps tokens whose own probability is at least 1 − p."""
    kept = probs.masked_fill(probs < 1 - p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)


def one_nucleus_for_all(probs, p):
    """Takes the first row's number of tokens for every row."""
    ordered, order = probs.sort(dim=-1, descending=True)
    first = ordered.flatten(0, -2)[0] if probs.ndim > 1 else ordered
    number = int((first.cumsum(dim=-1) - first < p).sum())
    kept = ordered.clone()
    kept[..., number:] = 0
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


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
    "encode_word": [
        no_end_mark,
        longest_first,
        first_place_only,
        newest_first,
        uses_the_merges_up,
    ],
    "perplexity_of": [
        loss_instead,
        padding_counted,
        mean_of_sentences,
        mean_of_inverse_probabilities,
        divided_by_all_places,
    ],
    "nucleus_probs": [
        crossing_token_dropped,
        not_normalized,
        left_sorted,
        likely_enough,
        one_nucleus_for_all,
    ],
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
