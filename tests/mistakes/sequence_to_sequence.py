"""Mistakes that the checks of *Sequence to sequence* must catch."""

import torch
import torch.nn.functional as F
from mistakes.table import wrong

from course_utils.decoding import greedy

PAD, UNK, BOS, EOS = range(4)


def _drawn(count, length, generator, low=4, high=16):
    return torch.randint(low, high, (count, length), generator=generator)


def _joined(letters, before=None, after=None):
    """The letters with a column of one token before or after them."""
    column = torch.full((len(letters), 1), before if after is None else after)
    return torch.cat([column, letters] if after is None else [letters, column], dim=1)


def _batch(letters):
    source = _joined(letters, after=EOS)
    return source, _joined(letters, before=BOS), source


class my_strings:
    special_tokens_too = wrong("Draws ids from 0 on.",
        lambda count, length, generator: _batch(_drawn(count, length, generator, low=0)))
    without_the_last_letter = wrong("The end of randint is not drawn.",
        lambda count, length, generator: _batch(_drawn(count, length, generator, high=15)))
    own_randomness = wrong("Ignores the generator.",
        lambda count, length, generator: _batch(_drawn(count, length, None)))
    one_string = wrong("The same string in each row.",
        lambda count, length, generator: _batch(_drawn(1, length, generator).repeat(count, 1)))
    letters_only = wrong("Neither <bos> nor <eos>.",
        lambda count, length, generator: (_drawn(count, length, generator),) * 3)

    def decimals(count, length, generator):
        """Makes its columns with torch.ones: an embedding looks up no decimals."""
        letters, column = _drawn(count, length, generator), torch.ones(count, 1)
        source = torch.cat([letters, EOS * column], dim=1)
        return source, torch.cat([BOS * column, letters], dim=1), source

    def not_shifted(count, length, generator):
        """The decoder reads what it has to say."""
        source, _, target_out = _batch(_drawn(count, length, generator))
        return source, target_out, target_out

    def rolled(count, length, generator):
        """<bos> in place of the first letter."""
        source, target_in, target_out = _batch(_drawn(count, length, generator))
        return source, torch.cat([target_in[:, :1], target_out[:, 1:]], dim=1), target_out

    def another_target(count, length, generator):
        """Draws the target anew: there is nothing to copy."""
        source, _, _ = _batch(_drawn(count, length, generator))
        return source, *_batch(_drawn(count, length, generator))[1:]

    def begins_the_source(count, length, generator):
        """<bos> stands in the source, as in target_in."""
        _, target_in, target_out = _batch(_drawn(count, length, generator))
        return target_in, target_in, target_out


def _real(logits, lens):
    return torch.arange(logits.shape[1]) < lens[:, None]


def _losses(logits, targets, lens):
    """Of each token, 0 at padding."""
    return F.cross_entropy(logits.mT, targets, reduction="none") * _real(logits, lens)


class my_masked_loss:
    mean_over_all_positions = wrong("Padding counts like words.",
        lambda logits, targets, lens: F.cross_entropy(logits.mT, targets))
    mean_of_means = wrong("Each sentence counts alike, whatever its length.",
        lambda logits, targets, lens: (_losses(logits, targets, lens).sum(dim=1) / lens).mean())
    divided_by_the_longest = wrong("Padding up to the longest sentence stays in the divisor.",
        lambda logits, targets, lens: _losses(logits, targets, lens).sum() / (len(lens) * lens.max()))
    one_loss_per_sentence = wrong("Forgets the mean over the batch.",
        lambda logits, targets, lens: _losses(logits, targets, lens).sum(dim=1))
    logits_zeroed = wrong("Sets the padding's logits to zero, so that each costs log(vocabulary).",
        lambda logits, targets, lens: F.cross_entropy((logits * _real(logits, lens)[:, :, None]).mT, targets))

    def one_token_too_many(logits, targets, lens):
        """Step `lens` counts as real."""
        real = _real(logits, lens + 1)
        return F.cross_entropy(logits[real], targets[real])

    def sum_over_tokens(logits, targets, lens):
        """A sum: longer batches take longer steps."""
        real = _real(logits, lens)
        return F.cross_entropy(logits[real], targets[real], reduction="sum")

    def filled_with_minus_infinity(logits, targets, lens):
        """Treats padding as in a softmax of scores: NaN comes out."""
        filled = logits.masked_fill(~_real(logits, lens)[:, :, None], -torch.inf)
        return F.cross_entropy(filled.mT, targets)

    def without_gradient(logits, targets, lens):
        """The right number, from which nothing can be learned."""
        real = _real(logits, lens)
        return F.cross_entropy(logits[real], targets[real]).detach() + 0 * logits[real].sum()

    def log_of_softmax(logits, targets, lens):
        """The logarithm of a softmax that has become 0."""
        probs = logits.softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
        return -probs[_real(logits, lens)].log().mean()


def _decoded(model, source, source_lens, max_len, *, stops, skips=False):
    """Greedily, until `stops` says so of what was said last, and of who has ended."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    ended, sentences = torch.zeros(len(source), dtype=torch.bool), [[] for _ in source]
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        ended |= tokens == EOS
        if stops(tokens == EOS, ended):
            break
        for sentence, token in zip(sentences, tokens.tolist(), strict=True):
            if token != EOS or not skips:
                sentence.append(token)
    return sentences


def _cut(rows):
    """Steps of all sentences, each up to its <eos>."""
    rows = torch.stack(rows, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


class fixed_decoding:
    the_course_s_own = wrong("Calls the course's greedy decoding.",
        lambda model, source, source_lens, max_len: greedy(model, source, source_lens, max_len=max_len))
    not_fixed = wrong("The bug itself: stops when the first sentence ends.",
        lambda *given: _decoded(*given, stops=lambda now, ended: now.any()))
    any_became_all = wrong("Half right: stops when all say <eos>, at the same step.",
        lambda *given: _decoded(*given, stops=lambda now, ended: now.all()))
    talks_on = wrong("Waits for all at the same step, and keeps what comes after <eos>.",
        lambda *given: _decoded(*given, stops=lambda now, ended: False, skips=True))
    as_long_as_the_longest = wrong("Stops when all have ended, and until then keeps what each says.",
        lambda *given: _decoded(*given, stops=lambda now, ended: ended.all(), skips=True))

    def returns_a_tensor(model, source, source_lens, max_len):
        """Stacks what was said, so that no sentence can be shorter than another."""
        state = model.start(source, source_lens)
        said = [torch.full((len(source),), BOS)]
        while len(said) <= max_len and not (said[-1] == EOS).all():
            said.append(model.step(said[-1], state).argmax(dim=-1))
        return torch.stack(said[1:], dim=1)

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
        state, begin = model.start(source, source_lens), torch.full((len(source),), BOS)
        return _cut([model.step(begin, state).argmax(dim=-1) for _ in range(max_len)])

    def no_limit(model, source, source_lens, max_len):
        """Forgets max_len."""
        state, rows = model.start(source, source_lens), [torch.full((len(source),), BOS)]
        for _ in range(30):
            rows.append(model.step(rows[-1], state).argmax(dim=-1))
        return _cut(rows[1:])


    def renamed(model, source, source_lens, limit):
        """Right, but the chapter calls it with max_len=20."""
        state, rows = model.start(source, source_lens), [torch.full((len(source),), BOS)]
        for _ in range(limit):
            rows.append(model.step(rows[-1], state).argmax(dim=-1))
        return _cut(rows[1:])


ANSWERS = {
    "decimals": ("whole numbers", "`torch.ones` gives decimals"),
    "the_course_s_own": ("it calls greedy", "step by step"),
    "one_string": ("the letters are", "letters of its own"),
    "special_tokens_too": ("the letters are", "begin with 4"),
    "without_the_last_letter": ("letters only", "never draws"),
    "not_shifted": ("<bos>", "before it has said anything"),
    "rolled": ("shifts the target", "drop the last column"),
    "any_became_all": ("adds no more tokens", "Who remembers"),
    "divided_by_the_longest": ("every real token", "longest"),
    "one_token_too_many": ("logits at padding", "number 0"),
    "as_long_as_the_longest": ("adds no more tokens", "Who remembers"),
    "returns_a_tensor": ("expected a list with a list of ids", "a list with a list of ids for each"),
    "renamed": ("max_len", "renamed a parameter"),
    "drops_the_finished": ("long sentence", "a row for each sentence"),
    "log_of_softmax": ("no padding", "in one step"),
}
