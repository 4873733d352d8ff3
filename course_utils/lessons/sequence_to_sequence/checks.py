"""Checks of *Sequence to sequence*: strings to copy, the masked loss, greedy decoding."""

import torch
import torch.nn.functional as F

from course_utils.data.text import BOS, EOS, PAD
from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_equal, expect_shape, expect_tensors
from course_utils.lessons.sequence_to_sequence.strings import VOCABULARY

# Strings to copy --------------------------------------------------------------------------------

my_strings = Check()


def _drawn_strings(candidate, count=300, length=5, seed=0):
    """Source, target_in and target_out of the candidate, in the right shape."""
    answer = candidate(count, length, torch.Generator().manual_seed(seed))
    parts = expect_tensors(answer, "source", "target_in", "target_out")
    shape = count, length + 1
    both = "Does it begin with <bos> and also end with <eos>? One of the two is enough, as in the batch above."
    for name, part in zip(("source", "target_in", "target_out"), parts, strict=True):
        got = tuple(part.shape)
        hint = both if got == (count, length + 2) else ""
        expect(got == shape, f"{name} has the shape {got}, expected {shape}", hint)
    return parts


_WHOLE = (
    "Which function makes your column of <bos> or <eos>? `torch.ones` gives decimals, and joined to them the letters "
    "become decimals, too. An embedding looks up whole numbers: `torch.full((count, 1), EOS)`."
)


@my_strings.must("returns source, target_in and target_out, each of shape (count, length + 1)")
def returns_source_target_in_and_target_out_each_of_shape(candidate):
    """Where does the extra token come from? Join a column of <bos> or <eos> to the letters, along dim=1.

    How do you make a column of one id? `torch.full((count, 1), EOS)` is a tensor that `torch.cat` can join.
    """
    _drawn_strings(candidate)


@my_strings.must("gives ids as whole numbers, torch.int64")
def gives_ids_as_whole_numbers_torch_int64(candidate):
    """What kind of numbers do your tensors hold? Print their `dtype`. An embedding looks up whole numbers only."""
    for name, part in zip(
        ("source", "target_in", "target_out"), _drawn_strings(candidate), strict=True
    ):
        hint = _WHOLE if part.is_floating_point() else ""
        expect(part.dtype == torch.int64, f"{name} has the dtype {part.dtype}", hint)


@my_strings.must("ends the source with <eos>, after letters only")
def ends_source_with_eos_after_letters_only(candidate):
    """Which ids are letters? The four special tokens have 0 to 3, so letters begin with 4, and <eos> is 3."""
    source, _, _ = _drawn_strings(candidate)
    expect((source[:, -1] == EOS).all(), f"the last column holds {source[:, -1].unique().tolist()}")
    drawn = source[:, :-1].unique().tolist()
    wanted = list(range(4, VOCABULARY))
    hint = "torch.randint(low, high, …) never draws `high` itself. Which number has to be there?"
    if set(drawn) < set(wanted) and drawn != wanted[:-1]:
        hint = "Does each row have letters of its own? Draw them in the shape (count, length)."
    outside = set(drawn) - set(wanted)
    expect(drawn == wanted, f"the letters are {drawn}, expected {wanted}", "" if outside else hint)


@my_strings.must("asks the decoder for a copy")
def asks_decoder_for_copy(candidate):
    """What should the decoder say, if it reads nothing but the vector? The very string that the encoder has read."""
    source, _, target_out = _drawn_strings(candidate)
    expect_equal(target_out[0].tolist(), source[0].tolist(), "the first target_out")


@my_strings.must("begins target_in with <bos>")
def begins_target_in_with_bos(candidate):
    """What does the decoder read before it has said anything? <bos> is 2, and it comes first."""
    _, target_in, _ = _drawn_strings(candidate)
    expect(
        (target_in[:, 0] == BOS).all(),
        f"its first column holds {target_in[:, 0].unique().tolist()}",
    )


@my_strings.must("shifts the target by one: target_in is one step behind target_out")
def shifts_target_by_one_step(candidate):
    """Which token has the decoder just read when it has to say letter 2? Letter 1, so drop the last column and not
    the first.
    """
    _, target_in, target_out = _drawn_strings(candidate)
    expect_equal(target_in[0, 1:].tolist(), target_out[0, :-1].tolist(), "target_in after <bos>")


@my_strings.must(
    "draws other strings in each row and each call, and the same ones from the same seed"
)
def draws_strings_anew_and_repeats_them_from_a_seed(candidate):
    """Who makes the random numbers? Give torch.randint the shape (count, length) and `generator=generator`."""
    source, again, other = (_drawn_strings(candidate, seed=seed)[0] for seed in (0, 0, 1))
    expect(torch.equal(source, again), "two calls with the same seed gave different strings")
    expect(not torch.equal(source, other), "two seeds gave the same strings")
    expect(len(source.unique(dim=0)) > 200, "most of the 300 strings are the same")


# Loss over real tokens --------------------------------------------------------------------------

my_masked_loss = Check()


def _random_batch(lengths=(2, 5, 3)):
    """Logits, targets, lengths, and where the padding is."""
    lens = torch.tensor(lengths)
    logits, targets = torch.randn(len(lens), 5, 7), torch.randint(4, 7, (len(lens), 5))
    padding = torch.arange(5) >= lens[:, None]
    return logits, targets.masked_fill(padding, PAD), lens, padding


def _expect_finite(loss):
    """The loss, if it is finite: a comparison would take NaN for equal to NaN."""
    finite = bool(torch.as_tensor(loss).isfinite().all())
    expect(
        finite, "the loss is NaN or infinite; pick the real tokens and leave the logits as they are"
    )
    return loss


@my_masked_loss.must("returns one number")
def returns_one_number(candidate):
    """Which tokens do you hand to `F.cross_entropy`? It takes logits (tokens, vocabulary) and targets (tokens,), and
    returns their mean, one number. A mask (batch, steps) picks the tokens from both.

    Do the shapes of your mask fit? Steps, (steps,), meet lengths in a column, `lens[:, None]`.
    """
    expect_shape(candidate(*_random_batch()[:3]), ())


@my_masked_loss.must("equals the usual cross-entropy if there is no padding")
def equals_usual_cross_entropy_if_there_is_no_padding(candidate):
    """Which probability does softmax give the right token? Average −ln of it over all tokens."""
    logits, targets, lens, _ = _random_batch((5, 5))
    expect_close(candidate(logits, targets, lens), F.cross_entropy(logits.mT, targets))
    hint = "Softmax gives 0 for a score far below, and ln 0 is −∞. Which function does both in one step?"
    far = candidate(300 * logits, targets, lens)
    expect_close(far, F.cross_entropy(300 * logits.mT, targets), "logits of 300", hint=hint)


@my_masked_loss.must("ignores the logits at padding")
def ignores_logits_at_padding(candidate):
    """How can you tell that a step is padding? Compare the number of the step with the length of its sentence."""
    logits, targets, lens, padding = _random_batch()
    expected, first = (
        _expect_finite(candidate(logits, targets, lens)),
        torch.arange(5) == lens[:, None],
    )
    counted = "The first step has the number 0. So which number does the last real token have?"
    for changes, hint in ((padding & ~first, ""), (first, counted)):
        changed = logits.clone()
        changed[changes] = 50 * torch.randn(7)
        answer = candidate(changed, targets, lens)
        expect_close(answer, expected, "the loss with other logits at padding", hint=hint)


@my_masked_loss.must("stays the same with more padding")
def stays_same_with_more_padding(candidate):
    """By how many tokens do you divide? Count the real ones only."""
    logits, targets, lens, _ = _random_batch()
    longer = torch.cat([logits, torch.randn(3, 4, 7)], dim=1)
    more = torch.cat([targets, torch.full((3, 4), PAD)], dim=1)
    expected = _expect_finite(candidate(logits, targets, lens))
    expect_close(
        candidate(longer, more, lens), expected, "the loss with four more columns of <pad>"
    )


@my_masked_loss.must("counts every real token the same, in short and in long sentences")
def counts_every_real_token_the_same(candidate):
    """How much does a word of a short sentence count? Less or more than the others, if you divide by the longest
    sentence or take a mean of means; sum over all tokens first.
    """
    logits, targets, lens, padding = _random_batch((1, 5))
    expected = F.cross_entropy(logits[~padding], targets[~padding])
    expect_close(
        candidate(logits, targets, lens), expected, "the loss of sentences of 1 and 5 tokens"
    )


@my_masked_loss.must("has the gradient of the real tokens, and 0 at padding")
def has_gradient_of_real_tokens_and_0_at_padding(candidate):
    """Do padded tokens enter the sum at all? Multiplying by 0 doesn't remove everything (0 · ∞ is NaN), so pick the
    real tokens instead.
    """
    logits, targets, lens, padding = _random_batch()
    logits.requires_grad_()
    candidate(logits, targets, lens).backward()
    expect(logits.grad is not None, "no gradient reaches the logits")
    expect(bool(logits.grad.isfinite().all()), "a gradient is not finite")
    expect(not logits.grad[padding].any(), "logits at padding have a gradient")
    cut = "Does a line cut off the way back? Look for `.detach()` or `.item()`."
    expect(logits.grad[~padding].any(), "no gradient reaches the logits of real tokens", cut)
    real = logits.detach()[~padding].requires_grad_()
    F.cross_entropy(real, targets[~padding]).backward()
    expect_close(logits.grad[~padding], real.grad, "the gradient at real tokens")


# Greedy decoding: find the bug ------------------------------------------------------------------

fixed_decoding = Check(forbids=["greedy", "translate", "beam_search"])


class _ScriptedModel:
    """A model that writes fixed sentences, and records the tokens that it reads."""

    def __init__(self, *sentences: list[int]):
        self.sentences, self.read = sentences, []

    def start(self, source, source_lens):
        self.read = []
        return {"step": 0, "sentences": [self.sentences[i] for i in source[:, 0].tolist()]}

    def step(self, tokens, state):
        whole = (
            "Do you drop the finished sentences? The state has a row for each sentence, so pass on all "
            "tokens, and only keep fewer."
        )
        expect(
            len(tokens) == len(state["sentences"]),
            f"the model was given {len(tokens)} tokens for {len(state['sentences'])} sentences",
            whole,
        )
        self.read.append([int(token) for token in tokens])
        logits = torch.zeros(len(tokens), 12)
        for row, sentence in enumerate(state["sentences"]):
            script = [*sentence, EOS]
            token = script[state["step"]] if state["step"] < len(script) else 11  # goes on talking
            logits[row, token] = 5.0
        state["step"] += 1
        return logits


def _decoded(candidate, model, max_len=10):
    count = len(model.sentences)
    source = torch.arange(count)[:, None].expand(-1, 3)  # the number of the sentence, three times
    answer = candidate(model, source, torch.full((count,), 3), max_len)
    rows = isinstance(answer, list) and len(answer) == count
    listed = (
        "What do you return? The sentences may have different lengths, so a tensor has no room for them: return a list "
        "with a list of ids for each."
    )
    expect(rows, f"got {answer!r}, expected a list with a list of ids for each sentence", listed)
    return [[int(token) for token in row] for row in answer]


def _expect_sentences(candidate, *sentences):
    expect_equal(_decoded(candidate, _ScriptedModel(*sentences)), list(sentences), "decoded")


@fixed_decoding.must("returns one sentence as the model writes it, without <eos>")
def returns_one_sentence_as_model_writes_it_without_eos(candidate):
    """Which token ends the sentence? At each step take the most probable token, and stop before you keep that one."""
    _expect_sentences(candidate, [5, 6, 7])


@fixed_decoding.must("gives the model <bos> first, and then its own last token")
def gives_model_bos_first_and_then_its_own_last_token(candidate):
    """What is the input of the next step? Print what the model reads in the first three steps."""
    model = _ScriptedModel([5, 6, 7])
    _decoded(candidate, model)
    expect_equal(model.read[:4], [[BOS], [5], [6], [7]], "what the model was given to read")


@fixed_decoding.must("doesn't cut a long sentence when a short one ends")
def doesnt_cut_long_sentence_when_short_one_ends(candidate):
    """When may a batch stop: when one sentence is finished, or when all are? Look at the condition that ends the
    loop.
    """
    long = _decoded(candidate, _ScriptedModel([5], [6, 7, 8, 9]))[1]
    expect_equal(long[:4], [6, 7, 8, 9], "the beginning of the long one, decoded")


@fixed_decoding.must("adds no more tokens to a finished sentence")
def adds_no_more_tokens_to_finished_sentence(candidate):
    """Who remembers which sentences have reached <eos>? The model doesn't, it goes on writing; keep one truth value
    for each sentence.
    """
    _expect_sentences(candidate, [5, 6, 7, 8, 9], [6], [7, 8])


@fixed_decoding.must("stops at max_len")
def stops_at_max_len(candidate):
    """What ends the loop if the model never writes <eos>? Let the loop count its steps."""
    answer = _decoded(candidate, _ScriptedModel([5, 6, 7, 8], [9]), max_len=2)
    expect_equal(answer, [[5, 6], [9]], "decoded with max_len=2")


@fixed_decoding.must("can be called with max_len=…, as the chapter does below")
def can_be_called_with_max_len_as_chapter_does_below(candidate):
    """Have you renamed a parameter? The last one has to be called `max_len`."""
    _decoded(lambda *given: candidate(*given[:3], max_len=given[3]), _ScriptedModel([5, 6, 7]))
