"""Mistakes that the checks of *Sequence to sequence* must catch."""

import torch
import torch.nn.functional as F
from mistakes.table import wrong

PAD, UNK, BOS, EOS = range(4)


class my_masked_loss:
    mean_over_all_positions = wrong("Padding counts like words.",
        lambda logits, targets, lens: F.cross_entropy(logits.mT, targets))

    def mean_of_means(logits, targets, lens):
        """Each sentence counts alike, whatever its length."""
        losses = F.cross_entropy(logits.mT, targets, reduction="none")
        real = torch.arange(logits.shape[1]) < lens[:, None]
        return ((losses * real).sum(dim=1) / lens).mean()

    def divided_by_the_longest(logits, targets, lens):
        """Padding up to the longest sentence stays in the divisor."""
        losses = F.cross_entropy(logits.mT, targets, reduction="none")
        real = torch.arange(logits.shape[1]) < lens[:, None]
        return (losses * real).sum() / (len(lens) * lens.max())

    def one_token_too_many(logits, targets, lens):
        """Step `lens` counts as real."""
        real = torch.arange(logits.shape[1]) <= lens[:, None]
        return F.cross_entropy(logits[real], targets[real])

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

    def filled_with_minus_infinity(logits, targets, lens):
        """Treats padding as in a softmax of scores: NaN comes out."""
        padding = torch.arange(logits.shape[1]) >= lens[:, None]
        return F.cross_entropy(logits.masked_fill(padding[:, :, None], -torch.inf).mT, targets)

    def without_gradient(logits, targets, lens):
        """The right number, from which nothing can be learned."""
        real = torch.arange(logits.shape[1]) < lens[:, None]
        return F.cross_entropy(logits[real], targets[real]).detach() + 0 * logits[real].sum()

    def log_of_softmax(logits, targets, lens):
        """The logarithm of a softmax that has become 0."""
        real = torch.arange(targets.shape[1]) < lens[:, None]
        probs = logits.softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
        return -probs[real].log().mean()


class fixed_decoding:
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

    def any_became_all(model, source, source_lens, max_len):
        """Half right: stops when all say <eos>, at the same step."""
        state = model.start(source, source_lens)
        tokens = torch.full((len(source),), BOS)
        sentences = [[] for _ in source]
        for _ in range(max_len):
            tokens = model.step(tokens, state).argmax(dim=-1)
            if (tokens == EOS).all():
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

    def as_long_as_the_longest(model, source, source_lens, max_len):
        """Stops when all have ended, and until then keeps what each says."""
        state = model.start(source, source_lens)
        tokens = torch.full((len(source),), BOS)
        ended = torch.zeros(len(source), dtype=torch.bool)
        sentences = [[] for _ in source]
        for _ in range(max_len):
            tokens = model.step(tokens, state).argmax(dim=-1)
            ended |= tokens == EOS
            if ended.all():
                break
            for sentence, token in zip(sentences, tokens.tolist(), strict=True):
                if token != EOS:
                    sentence.append(token)
        return sentences

    def drops_the_finished(model, source, source_lens, max_len):
        """Hands on only the tokens of the unfinished; the state still has all rows."""
        state = model.start(source, source_lens)
        tokens = torch.full((len(source),), BOS)
        sentences, going = [[] for _ in source], list(range(len(source)))
        for _ in range(max_len):
            tokens = model.step(tokens, state).argmax(dim=-1)
            going = [row for row, token in zip(going, tokens, strict=True) if token != EOS]
            tokens = tokens[tokens != EOS]
            if not going:
                break
            for row, token in zip(going, tokens.tolist(), strict=True):
                sentences[row].append(token)
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


ANSWERS = {
    "any_became_all": ("gets no more tokens", "Who remembers"),
    "divided_by_the_longest": ("every real token", "longest"),
    "one_token_too_many": ("logits at padding", "number 0"),
    "as_long_as_the_longest": ("gets no more tokens", "Who remembers"),
    "drops_the_finished": ("short sentence", "a row for each sentence"),
    "log_of_softmax": ("without padding", "in one step"),
}
