"""Checks: shifted targets, the loss over real tokens, clipped n-grams, greedy decoding."""

import torch
import torch.nn.functional as F

from course_utils.data.text import BOS, EOS, PAD
from course_utils.lessons.check import Check, expect, expect_close, expect_equal, expect_shape

# Shifted targets --------------------------------------------------------------------------------


def _three_tensors(candidate):
    answer = candidate([[5, 6], [7, 8, 9]])
    expect(
        isinstance(answer, tuple | list) and len(answer) == 3,
        "three tensors are expected: target_in, target_out, target_lens",
    )
    for tensor in answer:
        expect(isinstance(tensor, torch.Tensor), f"a {type(tensor).__name__} is not a tensor")
    return answer


shifted_targets = Check("shifted targets")


@shifted_targets.must(
    "three tensors: (batch, longest + 1) twice, and (batch,)",
    hint="a sentence of n words needs n + 1 steps, in and out",
)
def _(candidate):
    target_in, target_out, lengths = _three_tensors(candidate)
    expect_shape(target_in, (2, 4))
    expect_shape(target_out, (2, 4))
    expect_shape(lengths, (2,))


@shifted_targets.must(
    "what the decoder reads begins with <bos>",
    hint="before the first word there must be something to read: cu.data.text.BOS",
)
def _(candidate):
    target_in, _, _ = _three_tensors(candidate)
    expect(target_in[:, 0].tolist() == [BOS, BOS], f"first column {target_in[:, 0].tolist()}")


@shifted_targets.must(
    "what it has to say ends with <eos>", hint="a decoder that never says <eos> never stops"
)
def _(candidate):
    _, target_out, _ = _three_tensors(candidate)
    expect(
        target_out[0, 2] == EOS and target_out[1, 3] == EOS,
        f"rows {target_out.tolist()}: <eos> belongs right after the last word of each",
    )


@shifted_targets.must(
    "what it says at step t it reads at step t + 1",
    hint="the same words stand in both, shifted by one place",
)
def _(candidate):
    target_in, target_out, _ = candidate([[5, 6, 7], [8]])
    expect(
        target_in[0, 1:4].tolist() == [5, 6, 7] == target_out[0, :3].tolist(),
        f"the words stand at {target_in[0].tolist()} and {target_out[0].tolist()}",
    )


@shifted_targets.must(
    "the lengths count the words and <eos>",
    hint="how many steps of each sentence should count in the loss?",
)
def _(candidate):
    _, _, lengths = candidate([[5, 6, 7], [8]])
    expect(lengths.tolist() == [4, 2], f"lengths {lengths.tolist()}; words and <eos> are counted")


@shifted_targets.must(
    "the rest is <pad>", hint="a short sentence is filled up behind its last token, in both tensors"
)
def _(candidate):
    target_in, target_out, _ = candidate([[5, 6, 7, 9], [8]])
    expect(
        target_in[1].tolist() == [BOS, 8, PAD, PAD, PAD]
        and target_out[1].tolist() == [8, EOS, PAD, PAD, PAD],
        f"the short sentence became {target_in[1].tolist()} and {target_out[1].tolist()}",
    )


# Loss over real tokens --------------------------------------------------------------------------


def _drawn(lengths=(2, 5, 3), steps=5, size=7):
    logits = torch.randn(len(lengths), steps, size)
    targets = torch.randint(4, size, (len(lengths), steps))
    lens = torch.tensor(lengths)
    targets[torch.arange(steps) >= lens[:, None]] = PAD
    return logits, targets, lens


real_token_loss = Check("loss over real tokens")


@real_token_loss.must(
    "one number comes out", hint="the mean over all real tokens of the batch has no axes left"
)
def _(candidate):
    expect_shape(candidate(*_drawn()), ())


@real_token_loss.must(
    "without padding it is the usual cross-entropy",
    hint="−log of the probability that softmax gives to the right token, averaged",
)
def _(candidate):
    logits, targets, lens = _drawn((5, 5))
    expect_close(candidate(logits, targets, lens), F.cross_entropy(logits.mT, targets))


@real_token_loss.must(
    "the logits at padding do not matter",
    hint="compare each step's number with the sentence's length",
)
def _(candidate):
    logits, targets, lens = _drawn()
    changed = logits.clone()
    changed[torch.arange(5) >= lens[:, None]] = 50 * torch.randn(7)
    expect_close(
        candidate(changed, targets, lens), candidate(logits, targets, lens), "logits at padding"
    )


@real_token_loss.must(
    "padding a batch further changes nothing",
    hint="by how many do you divide? Not by batch × length",
)
def _(candidate):
    logits, targets, lens = _drawn()
    longer = torch.cat([logits, torch.randn(3, 4, 7)], dim=1)
    more = torch.cat([targets, torch.full((3, 4), PAD)], dim=1)
    expect_close(
        candidate(longer, more, lens),
        candidate(logits, targets, lens),
        "four more columns of <pad>",
    )


@real_token_loss.must(
    "every real token counts alike, in short and in long sentences",
    hint="a mean of the sentences' means gives the words of a short sentence more weight",
)
def _(candidate):
    logits, targets, lens = _drawn((1, 5))
    real = torch.arange(5) < lens[:, None]
    expect_close(
        candidate(logits, targets, lens),
        F.cross_entropy(logits[real], targets[real]),
        "sentences of 1 and 5 tokens",
    )


@real_token_loss.must(
    "no gradient reaches the logits at padding",
    hint="the tokens that do not count must not enter the sum at all",
)
def _(candidate):
    logits, targets, lens = _drawn()
    logits.requires_grad_()
    candidate(logits, targets, lens).backward()
    expect(logits.grad is not None, "no gradient reaches the logits")
    expect(bool(logits.grad.isfinite().all()), "a gradient is not finite")
    outside = torch.arange(5) >= lens[:, None]
    expect(not logits.grad[outside].any(), "logits at padding have a gradient")


# Clipped n-grams --------------------------------------------------------------------------------


def _match(candidate, hypothesis, references, order, expected):
    answer = candidate(hypothesis.split(), [reference.split() for reference in references], order)
    pair = isinstance(answer, tuple) and len(answer) == 2
    expect(pair, f"two whole numbers (matches, all) are expected, got {answer!r}")
    what = f"{hypothesis!r} against {references}, order {order}"
    expect_equal(tuple(int(number) for number in answer), expected, what)


clipped_matches = Check("clipped n-grams")


@clipped_matches.must(
    "“the the the …” matches 2 of 7 words",
    hint="a word counts no oftener than the reference has it",
)
def _(candidate):
    _match(candidate, "the the the the the the the", ["the cat is on the mat"], 1, (2, 7))


@clipped_matches.must("places do not matter", hint="count how often each n-gram occurs, wherever")
def _(candidate):
    _match(candidate, "c a b", ["a b c"], 1, (3, 3))


@clipped_matches.must(
    "pairs of neighbors count as pairs",
    hint="an n-gram is n neighbors in their order; a sentence of m words has m − n + 1",
)
def _(candidate):
    _match(candidate, "a b c a b", ["a b x b c a"], 2, (3, 4))


@clipped_matches.must(
    "a sentence shorter than the order has no n-grams",
    hint="nothing to count: (0, 0), not an error and not a negative number",
)
def _(candidate):
    _match(candidate, "a b", ["a b c d"], 4, (0, 0))


@clipped_matches.must(
    "of several references, the one that has an n-gram oftenest counts",
    hint="for each n-gram, the largest of its counts in the references; their sum is too much",
)
def _(candidate):
    _match(candidate, "a a a b", ["a a c", "b b a"], 1, (3, 4))


@clipped_matches.must("the arguments stay as they are", hint="work on copies")
def _(candidate):
    hypothesis, references = ["a", "a"], [["a"], ["b", "a"]]
    candidate(hypothesis, references, 1)
    expect(hypothesis == ["a", "a"] and references == [["a"], ["b", "a"]], "an argument changed")


# Greedy decoding --------------------------------------------------------------------------------


class _Scripted:
    """Says fixed sentences, and notes what it is given to read."""

    def __init__(self, *sentences: list[int], size: int = 12):
        self.sentences, self.size, self.read = sentences, size, []

    def start(self, source, source_lens):
        self.read = []
        return {"step": 0}

    def step(self, tokens, state):
        self.read.append([int(token) for token in tokens])
        logits = torch.zeros(len(tokens), self.size)
        for row, sentence in enumerate(self.sentences):
            said = [*sentence, EOS]
            token = said[state["step"]] if state["step"] < len(said) else 11  # goes on talking
            logits[row, token] = 5.0
        state["step"] += 1
        return logits


def _decoded(candidate, model, max_len=10):
    count = len(model.sentences)
    answer = candidate(model, torch.full((count, 3), 5), torch.full((count,), 3), max_len)
    expect(
        isinstance(answer, list) and len(answer) == count,
        f"a list of {count} sentences is expected, got {answer!r}",
    )
    return [[int(token) for token in row] for row in answer]


def _says(candidate, *sentences, max_len=10, expected=None):
    found = _decoded(candidate, _Scripted(*sentences), max_len)
    expected = [list(sentence) for sentence in sentences] if expected is None else expected
    expect(found == expected, f"decoded {found}; the model says {expected}")


fixed_greedy = Check("greedy decoding")


@fixed_greedy.must(
    "one sentence comes out as the model says it, without <eos>",
    hint="the likeliest token at each step, up to <eos>",
)
def _(candidate):
    _says(candidate, [5, 6, 7])


@fixed_greedy.must(
    "the model reads <bos> first, and then what it said last",
    hint="the tokens of a step are the input of the next",
)
def _(candidate):
    model = _Scripted([5, 6, 7])
    _decoded(candidate, model)
    expect(model.read[:4] == [[BOS], [5], [6], [7]], f"the model was given {model.read} to read")


@fixed_greedy.must(
    "a short sentence does not cut a long one",
    hint="when may a batch stop: when one sentence is finished, or when all are?",
)
def _(candidate):
    _says(candidate, [5], [6, 7, 8, 9])


@fixed_greedy.must(
    "a finished sentence says nothing more",
    hint="the model goes on talking after <eos>; what comes then must not be kept",
)
def _(candidate):
    _says(candidate, [5, 6, 7, 8, 9], [6], [7, 8])


@fixed_greedy.must("it stops at max_len", hint="a model may never say <eos>")
def _(candidate):
    _says(candidate, [5, 6, 7, 8], [9], max_len=2, expected=[[5, 6], [9]])
