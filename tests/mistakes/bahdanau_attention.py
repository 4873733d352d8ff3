"""Mistakes that the checks of *Bahdanau attention* must catch."""

from collections import Counter

import torch
import torch.nn.functional as F

PAD, UNK, BOS, EOS = range(4)


def _padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


# shifted_targets --------------------------------------------------------------------------------


def not_shifted(targets):
    """Reads what it has to say: the identity gets loss 0."""
    rows = _padded([[*target, EOS] for target in targets])
    return rows, rows, torch.tensor([len(target) + 1 for target in targets])


def eos_behind_padding(targets):
    """Pads first and puts <eos> at the end of the longest."""
    body = _padded(targets)
    first, last = body.new_full((len(body), 1), BOS), body.new_full((len(body), 1), EOS)
    lengths = torch.tensor([len(target) + 1 for target in targets])
    return torch.cat([first, body], dim=1), torch.cat([body, last], dim=1), lengths


def eos_not_counted(targets):
    """The model is never asked to say <eos>."""
    target_in = _padded([[BOS, *target] for target in targets])
    target_out = _padded([[*target, EOS] for target in targets])
    return target_in, target_out, torch.tensor([len(target) for target in targets])


def bos_to_be_said(targets):
    """Both tensors begin with <bos>."""
    target_in = _padded([[BOS, *target] for target in targets])
    return target_in, target_in, torch.tensor([len(target) + 1 for target in targets])


def bos_and_eos_to_be_read(targets):
    """The input carries <eos> too, so it is one step too long."""
    target_in = _padded([[BOS, *target, EOS] for target in targets])
    target_out = _padded([[*target, EOS, PAD] for target in targets])
    return target_in, target_out, torch.tensor([len(target) + 1 for target in targets])


def padded_with_eos(targets):
    """Fills the rest with <eos>."""
    target_in = _padded([[BOS, *target] for target in targets])
    target_out = _padded([[*target, EOS] for target in targets])
    target_out = target_out.masked_fill(target_out == PAD, EOS)
    return target_in, target_out, torch.tensor([len(target) + 1 for target in targets])


# real_token_loss --------------------------------------------------------------------------------


def mean_over_all_positions(logits, targets, lens):
    """Padding counts like words."""
    return F.cross_entropy(logits.mT, targets)


def zeroed_but_counted(logits, targets, lens):
    """The padding's loss is set to 0, and still divided by."""
    losses = F.cross_entropy(logits.mT, targets, reduction="none")
    real = torch.arange(logits.shape[1]) < lens[:, None]
    return (losses * real).mean()


def mean_of_means(logits, targets, lens):
    """Each sentence counts alike, whatever its length."""
    losses = F.cross_entropy(logits.mT, targets, reduction="none")
    real = torch.arange(logits.shape[1]) < lens[:, None]
    return ((losses * real).sum(dim=1) / lens).mean()


def logits_zeroed(logits, targets, lens):
    """Sets the padding's logits to zero, so that each costs log(vocabulary)."""
    real = torch.arange(logits.shape[1]) < lens[:, None]
    return F.cross_entropy((logits * real[:, :, None]).mT, targets)


def sum_over_tokens(logits, targets, lens):
    """A sum: longer batches take longer steps."""
    real = torch.arange(logits.shape[1]) < lens[:, None]
    return F.cross_entropy(logits[real], targets[real], reduction="sum")


def one_loss_per_sentence(logits, targets, lens):
    """Forgets the mean over the batch."""
    losses = F.cross_entropy(logits.mT, targets, reduction="none")
    real = torch.arange(logits.shape[1]) < lens[:, None]
    return (losses * real).sum(dim=1)


# clipped_matches --------------------------------------------------------------------------------


def _ngrams(tokens, order):
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def without_clipping(hypothesis, references, order):
    """Counts each n-gram that a reference has at all."""
    ours = _ngrams(hypothesis, order)
    known = set().union(*(_ngrams(reference, order) for reference in references))
    return sum(count for ngram, count in ours.items() if ngram in known), ours.total()


def place_by_place(hypothesis, references, order):
    """Compares the n-grams that stand at the same place."""
    pairs = [zip(hypothesis, reference, strict=False) for reference in references]
    hits = max(sum(a == b for a, b in each) for each in pairs)
    return hits, max(len(hypothesis) - order + 1, 0)


def sets_of_ngrams(hypothesis, references, order):
    """Counts different n-grams once."""
    ours = set(_ngrams(hypothesis, order))
    theirs = set().union(*(_ngrams(reference, order) for reference in references))
    return len(ours & theirs), len(ours)


def references_added_up(hypothesis, references, order):
    """Clips at the sum over the references."""
    ours = _ngrams(hypothesis, order)
    theirs = sum((_ngrams(reference, order) for reference in references), Counter())
    return (ours & theirs).total(), ours.total()


def first_reference_only(hypothesis, references, order):
    """Looks at one reference."""
    ours = _ngrams(hypothesis, order)
    return (ours & _ngrams(references[0], order)).total(), ours.total()


def always_single_words(hypothesis, references, order):
    """Ignores the order."""
    ours = _ngrams(hypothesis, 1)
    theirs = Counter()
    for reference in references:
        theirs |= _ngrams(reference, 1)
    return (ours & theirs).total(), ours.total()


def fewer_than_none(hypothesis, references, order):
    """Counts the n-grams by formula, which goes below zero."""
    most = Counter()
    for reference in references:
        most |= _ngrams(reference, order)
    return (_ngrams(hypothesis, order) & most).total(), len(hypothesis) - order + 1


def eats_the_references(hypothesis, references, order):
    """Strikes out what it has matched."""
    ours = _ngrams(hypothesis, order)
    most = Counter()
    while references:
        most |= _ngrams(references.pop(), order)
    return (ours & most).total(), ours.total()


# fixed_greedy -----------------------------------------------------------------------------------


def not_fixed(model, source, source_lens, max_len):
    """The bug itself: stops when the first sentence ends."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    sentences = [[] for _ in source]
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        if (tokens == EOS).any():
            break
        for sentence, token in zip(sentences, tokens.tolist(), strict=True):
            sentence.append(token)
    return sentences


def talks_on(model, source, source_lens, max_len):
    """Waits for all at the same step, and keeps what comes after <eos>."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    sentences = [[] for _ in source]
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        for sentence, token in zip(sentences, tokens.tolist(), strict=True):
            if token != EOS:
                sentence.append(token)
    return sentences


def always_reads_bos(model, source, source_lens, max_len):
    """Never tells the model what it said."""
    state = model.start(source, source_lens)
    begin = torch.full((len(source),), BOS)
    rows = []
    for _ in range(max_len):
        rows.append(model.step(begin, state).argmax(dim=-1))
    rows = torch.stack(rows, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def keeps_eos(model, source, source_lens, max_len):
    """Leaves <eos> in the sentence."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    rows = []
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        rows.append(tokens)
    rows = torch.stack(rows, dim=1).tolist()
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in rows]


def cuts_at_the_shortest(model, source, source_lens, max_len):
    """Waits for all, then cuts all sentences at the first <eos> of any."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    rows = []
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        rows.append(tokens)
    rows = torch.stack(rows, dim=1).tolist()
    end = min(row.index(EOS) if EOS in row else len(row) for row in rows)
    return [row[:end] for row in rows]


def no_limit(model, source, source_lens, max_len):
    """Forgets max_len."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    rows = []
    for _ in range(30):
        tokens = model.step(tokens, state).argmax(dim=-1)
        rows.append(tokens)
    rows = torch.stack(rows, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


MISTAKES = {
    "shifted_targets": [
        not_shifted,
        eos_behind_padding,
        eos_not_counted,
        bos_to_be_said,
        bos_and_eos_to_be_read,
        padded_with_eos,
    ],
    "real_token_loss": [
        mean_over_all_positions,
        zeroed_but_counted,
        mean_of_means,
        logits_zeroed,
        sum_over_tokens,
        one_loss_per_sentence,
    ],
    "clipped_matches": [
        without_clipping,
        place_by_place,
        sets_of_ngrams,
        references_added_up,
        first_reference_only,
        always_single_words,
        fewer_than_none,
        eats_the_references,
    ],
    "fixed_greedy": [
        not_fixed,
        talks_on,
        always_reads_bos,
        keeps_eos,
        cuts_at_the_shortest,
        no_limit,
    ],
}
