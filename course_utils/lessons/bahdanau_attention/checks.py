"""Checks of *Bahdanau attention*: shifted targets, the loss over real tokens, clipped n-grams, greedy decoding."""

import torch
import torch.nn.functional as F

from course_utils.data.text import BOS, EOS, PAD
from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    unchanged,
)

# Shifted targets --------------------------------------------------------------------------------

shifted_targets = Check("shifted targets")


def _shifted(candidate, *targets):
    answer = candidate(list(targets))
    three = isinstance(answer, tuple | list) and len(answer) == 3
    expect(three, "three tensors are expected: target_in, target_out, target_lens")
    shape = len(targets), max(map(len, targets)) + 1
    return [
        expect_shape(tensor, size)
        for tensor, size in zip(answer, (shape, shape, shape[:1]), strict=True)
    ]


@shifted_targets.must(
    "three tensors: (batch, longest + 1) twice, and (batch,)",
    hint="How many steps does a sentence of n words need, with <bos> in front or <eos> behind?",
)
def _(candidate):
    _shifted(candidate, [5, 6], [7, 8, 9])


@shifted_targets.must(
    "what the decoder reads begins with <bos>",
    hint="What can the decoder read before there is a first word? Its id is cu.data.text.BOS.",
)
def _(candidate):
    target_in, _, _ = _shifted(candidate, [5, 6], [7, 8, 9])
    expect_equal(target_in[:, 0].tolist(), [BOS, BOS], "first column of target_in")


@shifted_targets.must(
    "what it should predict ends with <eos>",
    hint="How does a decoder learn to stop? Where does <eos> stand in a short sentence of the batch?",
)
def _(candidate):
    _, target_out, _ = _shifted(candidate, [5, 6], [7, 8, 9])
    last = [int(target_out[0, 2]), int(target_out[1, 3])]
    expect_equal(last, [EOS, EOS], "what follows the last word of each sentence in target_out")


@shifted_targets.must(
    "what it predicts at step t, it reads at step t + 1",
    hint="Both tensors hold the same words. By how many places are they shifted against each other?",
)
def _(candidate):
    target_in, target_out, _ = _shifted(candidate, [5, 6, 7], [8])
    expect_equal(target_in[0, 1:].tolist(), [5, 6, 7], "target_in from step 1")
    expect_equal(target_out[0, :3].tolist(), [5, 6, 7], "target_out before the last step")


@shifted_targets.must(
    "the lengths count the words and <eos>",
    hint="How many steps of each sentence should count in the loss?",
)
def _(candidate):
    _, _, lengths = _shifted(candidate, [5, 6, 7], [8])
    expect_equal(lengths.tolist(), [4, 2], "lengths of sentences of 3 words and of 1")


@shifted_targets.must(
    "the rest is <pad>",
    hint="What stands after the last token of a short sentence, in both tensors?",
)
def _(candidate):
    target_in, target_out, _ = _shifted(candidate, [5, 6, 7, 9], [8])
    expect_equal(target_in[1].tolist(), [BOS, 8, PAD, PAD, PAD], "target_in of the short sentence")
    expect_equal(
        target_out[1].tolist(), [8, EOS, PAD, PAD, PAD], "target_out of the short sentence"
    )


# Loss over real tokens --------------------------------------------------------------------------

real_token_loss = Check("loss over real tokens")


def _drawn(lengths=(2, 5, 3)):
    """Logits, targets, lengths, and where the padding is."""
    lens = torch.tensor(lengths)
    logits, targets = torch.randn(len(lens), 5, 7), torch.randint(4, 7, (len(lens), 5))
    padding = torch.arange(5) >= lens[:, None]
    return logits, targets.masked_fill(padding, PAD), lens, padding


@real_token_loss.must(
    "one number comes out",
    hint="The result is a mean over all real tokens of the batch. Which axes are left?",
)
def _(candidate):
    expect_shape(candidate(*_drawn()[:3]), ())


@real_token_loss.must(
    "without padding it is the usual cross-entropy",
    hint="Which probability does softmax give to the right token? What do you average?",
)
def _(candidate):
    logits, targets, lens, _ = _drawn((5, 5))
    expect_close(candidate(logits, targets, lens), F.cross_entropy(logits.mT, targets))


@real_token_loss.must(
    "the logits at padding do not matter",
    hint="How can you tell from a step's number and the sentence's length that a step is padding?",
)
def _(candidate):
    logits, targets, lens, padding = _drawn()
    changed = logits.clone()
    changed[padding] = 50 * torch.randn(7)
    expected = candidate(logits, targets, lens)
    expect_close(candidate(changed, targets, lens), expected, "other logits at padding")


@real_token_loss.must(
    "more padding changes nothing", hint="By how many do you divide? Count real tokens."
)
def _(candidate):
    logits, targets, lens, _ = _drawn()
    longer = torch.cat([logits, torch.randn(3, 4, 7)], dim=1)
    more = torch.cat([targets, torch.full((3, 4), PAD)], dim=1)
    expected = candidate(logits, targets, lens)
    expect_close(candidate(longer, more, lens), expected, "four more columns of <pad>")


@real_token_loss.must(
    "every real token counts the same, in short and in long sentences",
    hint="Do you take a mean of means? How much does a word of a short sentence count then?",
)
def _(candidate):
    logits, targets, lens, padding = _drawn((1, 5))
    expected = F.cross_entropy(logits[~padding], targets[~padding])
    expect_close(candidate(logits, targets, lens), expected, "sentences of 1 and 5 tokens")


@real_token_loss.must(
    "no gradient reaches the logits at padding",
    hint="Multiplying by 0 does not remove everything. Do padded tokens enter the sum at all?",
)
def _(candidate):
    logits, targets, lens, padding = _drawn()
    logits.requires_grad_()
    candidate(logits, targets, lens).backward()
    expect(logits.grad is not None, "no gradient reaches the logits")
    expect(bool(logits.grad.isfinite().all()), "a gradient is not finite")
    expect(not logits.grad[padding].any(), "logits at padding have a gradient")


# Clipped n-grams --------------------------------------------------------------------------------

clipped_matches = Check("clipped n-grams")


def _match(candidate, hypothesis, references, order, expected):
    answer = candidate(hypothesis.split(), [reference.split() for reference in references], order)
    pair = isinstance(answer, tuple) and len(answer) == 2
    expect(pair, f"two whole numbers (matches, all) are expected, got {answer!r}")
    what = f"{hypothesis!r} against {references}, order {order}"
    expect_equal(tuple(int(number) for number in answer), expected, what)


@clipped_matches.must(
    "“the the the …” matches 2 of 7 words",
    hint="How often does the reference have the word? Can it count more often than that?",
)
def _(candidate):
    _match(candidate, "the the the the the the the", ["the cat is on the mat"], 1, (2, 7))


@clipped_matches.must(
    "positions do not matter", hint="Do you compare positions, or how often each n-gram occurs?"
)
def _(candidate):
    _match(candidate, "c a b", ["a b c"], 1, (3, 3))


@clipped_matches.must(
    "pairs of neighbors count as pairs",
    hint="An n-gram is n neighbors in their order. How many does a sentence of m words have?",
)
def _(candidate):
    _match(candidate, "a b c a b", ["a b x b c a"], 2, (3, 4))


@clipped_matches.must(
    "a sentence shorter than the order has no n-grams",
    hint="There is nothing to count here. What does your formula for the number of n-grams give?",
)
def _(candidate):
    _match(candidate, "a b", ["a b c d"], 4, (0, 0))


@clipped_matches.must(
    "of several references, the one that has an n-gram most often counts",
    hint="Each n-gram has a count in each reference. How do you combine these counts?",
)
def _(candidate):
    _match(candidate, "a a a b", ["a a c", "b b a"], 1, (3, 4))


@clipped_matches.must(
    "the arguments are not changed", hint="Does a line remove or add words in a list of the caller?"
)
def _(candidate):
    hypothesis, references = ["a", "a"], [["a"], ["b", "a"]]
    with unchanged(hypothesis, references):
        candidate(hypothesis, references, 1)


# Greedy decoding: find the bug ------------------------------------------------------------------

fixed_greedy = Check("greedy decoding")


class _Scripted:
    """Says fixed sentences, and records what it is given to read."""

    def __init__(self, *sentences: list[int]):
        self.sentences, self.read = sentences, []

    def start(self, source, source_lens):
        self.read = []
        return {"step": 0}

    def step(self, tokens, state):
        self.read.append([int(token) for token in tokens])
        logits = torch.zeros(len(tokens), 12)
        for row, sentence in enumerate(self.sentences):
            script = [*sentence, EOS]
            token = script[state["step"]] if state["step"] < len(script) else 11  # goes on talking
            logits[row, token] = 5.0
        state["step"] += 1
        return logits


def _decoded(candidate, model, max_len=10):
    count = len(model.sentences)
    answer = candidate(model, torch.full((count, 3), 5), torch.full((count,), 3), max_len)
    rows = isinstance(answer, list) and len(answer) == count
    expect(rows, f"a list of {count} sentences is expected, got {answer!r}")
    return [[int(token) for token in row] for row in answer]


def _says(candidate, *sentences):
    expect_equal(_decoded(candidate, _Scripted(*sentences)), list(sentences), "decoded")


@fixed_greedy.must(
    "one sentence comes out as the model says it, without <eos>",
    hint="Which token is taken at each step, and which token ends the sentence?",
)
def _(candidate):
    _says(candidate, [5, 6, 7])


@fixed_greedy.must(
    "the model reads <bos> first, and then the token that it said last",
    hint="What is the input of the next step?",
)
def _(candidate):
    model = _Scripted([5, 6, 7])
    _decoded(candidate, model)
    expect_equal(model.read[:4], [[BOS], [5], [6], [7]], "what the model was given to read")


@fixed_greedy.must(
    "a short sentence does not cut a long one",
    hint="When may a batch stop: when one sentence is finished, or when all are?",
)
def _(candidate):
    _says(candidate, [5], [6, 7, 8, 9])


@fixed_greedy.must(
    "a finished sentence gets no more tokens",
    hint="The model goes on talking after <eos>. What happens to those tokens?",
)
def _(candidate):
    _says(candidate, [5, 6, 7, 8, 9], [6], [7, 8])


@fixed_greedy.must("it stops at max_len", hint="What ends the loop if the model never says <eos>?")
def _(candidate):
    found = _decoded(candidate, _Scripted([5, 6, 7, 8], [9]), max_len=2)
    expect_equal(found, [[5, 6], [9]], "decoded with max_len=2")
