"""Mistakes in the exercises of *Sequence to sequence*, each with the property that catches it and its hint."""

import torch
import torch.nn.functional as F
from mistakes.table import mistake

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


@mistake(
    "my_strings",
    caught_by="ends the source with <eos>",
    reason="the letters are",
    hint="begin with 4",
)
def special_tokens_too(count, length, generator):
    """Draws ids from 0 on."""
    return _batch(_drawn(count, length, generator, low=0))


@mistake("my_strings", caught_by="ends the source with <eos>", hint="never draws")
def without_the_last_letter(count, length, generator):
    """The end of randint is not drawn."""
    return _batch(_drawn(count, length, generator, high=15))


@mistake(
    "my_strings", caught_by="draws other strings in each row", hint="Who makes the random numbers?"
)
def own_randomness(count, length, generator):
    """Ignores the generator."""
    return _batch(_drawn(count, length, None))


@mistake(
    "my_strings",
    caught_by="ends the source with <eos>",
    reason="the letters are",
    hint="letters of its own",
)
def one_string(count, length, generator):
    """The same string in each row."""
    return _batch(_drawn(1, length, generator).repeat(count, 1))


@mistake(
    "my_strings", caught_by="returns source, target_in", hint="Where does the extra token come"
)
def letters_only(count, length, generator):
    """Neither <bos> nor <eos>."""
    return (_drawn(count, length, generator),) * 3


@mistake("my_strings", caught_by="gives ids as whole numbers", hint="`torch.ones` gives decimals")
def decimals(count, length, generator):
    """Makes its columns with torch.ones: an embedding looks up no decimals."""
    letters, column = _drawn(count, length, generator), torch.ones(count, 1)
    source = torch.cat([letters, EOS * column], dim=1)
    return source, torch.cat([BOS * column, letters], dim=1), source


@mistake("my_strings", caught_by="begins target_in with <bos>", hint="before it has said anything")
def not_shifted(count, length, generator):
    """The decoder reads what it has to say."""
    source, _, target_out = _batch(_drawn(count, length, generator))
    return source, target_out, target_out


@mistake("my_strings", caught_by="shifts the target by one: target_in", hint="drop the last column")
def rolled(count, length, generator):
    """<bos> in place of the first letter."""
    source, target_in, target_out = _batch(_drawn(count, length, generator))
    return source, torch.cat([target_in[:, :1], target_out[:, 1:]], dim=1), target_out


@mistake("my_strings", caught_by="asks the decoder for a copy", hint="What should the decoder")
def another_target(count, length, generator):
    """Draws the target anew: there is nothing to copy."""
    source, _, _ = _batch(_drawn(count, length, generator))
    return source, *_batch(_drawn(count, length, generator))[1:]


@mistake("my_strings", caught_by="ends the source with <eos>", hint="Which ids are letters?")
def begins_the_source(count, length, generator):
    """<bos> stands in the source, as in target_in."""
    _, target_in, target_out = _batch(_drawn(count, length, generator))
    return target_in, target_in, target_out


def _real(logits, lens):
    return torch.arange(logits.shape[1]) < lens[:, None]


def _losses(logits, targets, lens):
    """Of each token, 0 at padding."""
    return F.cross_entropy(logits.mT, targets, reduction="none") * _real(logits, lens)


@mistake(
    "my_masked_loss", caught_by="ignores the logits at padding", hint="How can you tell that a step"
)
def mean_over_all_positions(logits, targets, lens):
    """Padding counts like words."""
    return F.cross_entropy(logits.mT, targets)


@mistake(
    "my_masked_loss",
    caught_by="counts every real token the same",
    hint="How much does a word of a short",
)
def mean_of_means(logits, targets, lens):
    """Each sentence counts alike, whatever its length."""
    return (_losses(logits, targets, lens).sum(dim=1) / lens).mean()


@mistake("my_masked_loss", caught_by="counts every real token the same", hint="longest")
def divided_by_the_longest(logits, targets, lens):
    """Padding up to the longest sentence stays in the divisor."""
    return _losses(logits, targets, lens).sum() / (len(lens) * lens.max())


@mistake("my_masked_loss", caught_by="returns one number", hint="Which tokens do you hand")
def one_loss_per_sentence(logits, targets, lens):
    """Forgets the mean over the batch."""
    return _losses(logits, targets, lens).sum(dim=1)


@mistake(
    "my_masked_loss", caught_by="stays the same with more padding", hint="By how many tokens do you"
)
def logits_zeroed(logits, targets, lens):
    """Sets the padding's logits to zero, so that each costs log(vocabulary)."""
    return F.cross_entropy((logits * _real(logits, lens)[:, :, None]).mT, targets)


@mistake("my_masked_loss", caught_by="ignores the logits at padding", hint="number 0")
def one_token_too_many(logits, targets, lens):
    """Step `lens` counts as real."""
    real = _real(logits, lens + 1)
    return F.cross_entropy(logits[real], targets[real])


@mistake(
    "my_masked_loss",
    caught_by="equals the usual cross-entropy",
    hint="Which probability does softmax",
)
def sum_over_tokens(logits, targets, lens):
    """A sum: longer batches take longer steps."""
    real = _real(logits, lens)
    return F.cross_entropy(logits[real], targets[real], reduction="sum")


@mistake(
    "my_masked_loss", caught_by="ignores the logits at padding", hint="How can you tell that a step"
)
def filled_with_minus_infinity(logits, targets, lens):
    """Treats padding as in a softmax of scores: NaN comes out."""
    filled = logits.masked_fill(~_real(logits, lens)[:, :, None], -torch.inf)
    return F.cross_entropy(filled.mT, targets)


@mistake(
    "my_masked_loss",
    caught_by="has the gradient of the real tokens",
    hint="Does a line cut off the way",
)
def without_gradient(logits, targets, lens):
    """The right number, from which nothing can be learned."""
    real = _real(logits, lens)
    return F.cross_entropy(logits[real], targets[real]).detach() + 0 * logits[real].sum()


@mistake("my_masked_loss", caught_by="equals the usual cross-entropy", hint="in one step")
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


@mistake(
    "fixed_decoding",
    caught_by="returns one sentence",
    reason="it calls greedy",
    hint="step by step",
)
def the_course_s_own(model, source, source_lens, max_len):
    """Calls the course's greedy decoding."""
    return greedy(model, source, source_lens, max_len=max_len)


@mistake("fixed_decoding", caught_by="doesn't cut a long sentence", hint="when one sentence")
def not_fixed(*given):
    """The bug itself: stops when the first sentence ends."""
    return _decoded(*given, stops=lambda now, ended: now.any())


@mistake("fixed_decoding", caught_by="adds no more tokens", hint="Who remembers")
def any_became_all(*given):
    """Half right: stops when all say <eos>, at the same step."""
    return _decoded(*given, stops=lambda now, ended: now.all())


@mistake("fixed_decoding", caught_by="returns one sentence", hint="Which token ends the sentence?")
def talks_on(*given):
    """Waits for all at the same step, and keeps what comes after <eos>."""
    return _decoded(*given, stops=lambda now, ended: False, skips=True)


@mistake("fixed_decoding", caught_by="adds no more tokens", hint="Who remembers")
def as_long_as_the_longest(*given):
    """Stops when all have ended, and until then keeps what each says."""
    return _decoded(*given, stops=lambda now, ended: ended.all(), skips=True)


@mistake(
    "fixed_decoding",
    caught_by="returns one sentence",
    reason="expected a list with a list of ids",
    hint="a list with a list of ids for each",
)
def returns_a_tensor(model, source, source_lens, max_len):
    """Stacks what was said, so that no sentence can be shorter than another."""
    state = model.start(source, source_lens)
    said = [torch.full((len(source),), BOS)]
    while len(said) <= max_len and not (said[-1] == EOS).all():
        said.append(model.step(said[-1], state).argmax(dim=-1))
    return torch.stack(said[1:], dim=1)


@mistake("fixed_decoding", caught_by="doesn't cut a long sentence", hint="a row for each sentence")
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


@mistake(
    "fixed_decoding", caught_by="gives the model <bos> first", hint="What is the input of the next"
)
def always_reads_bos(model, source, source_lens, max_len):
    """Never tells the model what it said."""
    state, begin = model.start(source, source_lens), torch.full((len(source),), BOS)
    return _cut([model.step(begin, state).argmax(dim=-1) for _ in range(max_len)])


@mistake("fixed_decoding", caught_by="stops at max_len", hint="What ends the loop if the model")
def no_limit(model, source, source_lens, max_len):
    """Forgets max_len."""
    state, rows = model.start(source, source_lens), [torch.full((len(source),), BOS)]
    for _ in range(30):
        rows.append(model.step(rows[-1], state).argmax(dim=-1))
    return _cut(rows[1:])


@mistake("fixed_decoding", caught_by="can be called with max_len=…", hint="renamed a parameter")
def renamed(model, source, source_lens, limit):
    """Right, but the chapter calls it with max_len=20."""
    state, rows = model.start(source, source_lens), [torch.full((len(source),), BOS)]
    for _ in range(limit):
        rows.append(model.step(rows[-1], state).argmax(dim=-1))
    return _cut(rows[1:])
