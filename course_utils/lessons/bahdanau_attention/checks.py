"""Checks: shifted targets, the loss over real tokens, clipped n-grams, greedy decoding."""

import torch
import torch.nn.functional as F

from course_utils.data.text import BOS, EOS, PAD
from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape

__all__ = ["clipped_matches", "fixed_greedy", "real_token_loss", "shifted_targets"]

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


def _shapes_fit(candidate):
    target_in, target_out, lengths = _three_tensors(candidate)
    expect_shape(target_in, (2, 4))
    expect_shape(target_out, (2, 4))
    expect_shape(lengths, (2,))


def _input_begins_with_bos(candidate):
    target_in, _, _ = _three_tensors(candidate)
    expect(target_in[:, 0].tolist() == [BOS, BOS], f"first column {target_in[:, 0].tolist()}")


def _output_ends_with_eos(candidate):
    _, target_out, _ = _three_tensors(candidate)
    expect(
        target_out[0, 2] == EOS and target_out[1, 3] == EOS,
        f"rows {target_out.tolist()}: <eos> belongs right after the last word of each",
    )


def _output_is_input_one_step_on(candidate):
    target_in, target_out, _ = candidate([[5, 6, 7], [8]])
    expect(
        target_in[0, 1:4].tolist() == [5, 6, 7] == target_out[0, :3].tolist(),
        f"the words stand at {target_in[0].tolist()} and {target_out[0].tolist()}",
    )


def _lengths_count_real_outputs(candidate):
    _, _, lengths = candidate([[5, 6, 7], [8]])
    expect(lengths.tolist() == [4, 2], f"lengths {lengths.tolist()}; words and <eos> are counted")


def _rest_is_padding(candidate):
    target_in, target_out, _ = candidate([[5, 6, 7, 9], [8]])
    expect(
        target_in[1].tolist() == [BOS, 8, PAD, PAD, PAD]
        and target_out[1].tolist() == [8, EOS, PAD, PAD, PAD],
        f"the short sentence became {target_in[1].tolist()} and {target_out[1].tolist()}",
    )


shifted_targets = Check(
    "shifted targets",
    [
        Property(
            "three tensors: (batch, longest + 1) twice, and (batch,)",
            _shapes_fit,
            "a sentence of n words needs n + 1 steps, in and out",
        ),
        Property(
            "what the decoder reads begins with <bos>",
            _input_begins_with_bos,
            "before the first word there must be something to read: cu.data.text.BOS",
        ),
        Property(
            "what it has to say ends with <eos>",
            _output_ends_with_eos,
            "a decoder that never says <eos> never stops",
        ),
        Property(
            "what it says at step t it reads at step t + 1",
            _output_is_input_one_step_on,
            "the same words stand in both, shifted by one place",
        ),
        Property(
            "the lengths count the words and <eos>",
            _lengths_count_real_outputs,
            "how many steps of each sentence should count in the loss?",
        ),
        Property(
            "the rest is <pad>",
            _rest_is_padding,
            "a short sentence is filled up behind its last token, in both tensors",
        ),
    ],
)

# Loss over real tokens --------------------------------------------------------------------------


def _drawn(lengths=(2, 5, 3), steps=5, size=7):
    logits = torch.randn(len(lengths), steps, size)
    targets = torch.randint(4, size, (len(lengths), steps))
    lens = torch.tensor(lengths)
    targets[torch.arange(steps) >= lens[:, None]] = PAD
    return logits, targets, lens


def _is_a_number(candidate):
    expect_shape(candidate(*_drawn()), ())


def _full_sentences_give_cross_entropy(candidate):
    logits, targets, lens = _drawn((5, 5))
    expect_close(candidate(logits, targets, lens), F.cross_entropy(logits.mT, targets))


def _padding_logits_do_not_matter(candidate):
    logits, targets, lens = _drawn()
    changed = logits.clone()
    changed[torch.arange(5) >= lens[:, None]] = 50 * torch.randn(7)
    expect_close(
        candidate(changed, targets, lens), candidate(logits, targets, lens), "logits at padding"
    )


def _padding_further_changes_nothing(candidate):
    logits, targets, lens = _drawn()
    longer = torch.cat([logits, torch.randn(3, 4, 7)], dim=1)
    more = torch.cat([targets, torch.full((3, 4), PAD)], dim=1)
    expect_close(
        candidate(longer, more, lens),
        candidate(logits, targets, lens),
        "four more columns of <pad>",
    )


def _every_token_counts_alike(candidate):
    logits, targets, lens = _drawn((1, 5))
    real = torch.arange(5) < lens[:, None]
    expect_close(
        candidate(logits, targets, lens),
        F.cross_entropy(logits[real], targets[real]),
        "sentences of 1 and 5 tokens",
    )


def _no_gradient_at_padding(candidate):
    logits, targets, lens = _drawn()
    logits.requires_grad_()
    candidate(logits, targets, lens).backward()
    expect(logits.grad is not None, "no gradient reaches the logits")
    expect(bool(logits.grad.isfinite().all()), "a gradient is not finite")
    outside = torch.arange(5) >= lens[:, None]
    expect(not logits.grad[outside].any(), "logits at padding have a gradient")


real_token_loss = Check(
    "loss over real tokens",
    [
        Property(
            "one number comes out",
            _is_a_number,
            "the mean over all real tokens of the batch has no axes left",
        ),
        Property(
            "without padding it is the usual cross-entropy",
            _full_sentences_give_cross_entropy,
            "−log of the probability that softmax gives to the right token, averaged",
        ),
        Property(
            "the logits at padding do not matter",
            _padding_logits_do_not_matter,
            "compare each step's number with the sentence's length",
        ),
        Property(
            "padding a batch further changes nothing",
            _padding_further_changes_nothing,
            "by how many do you divide? Not by batch × length",
        ),
        Property(
            "every real token counts alike, in short and in long sentences",
            _every_token_counts_alike,
            "a mean of the sentences' means gives the words of a short sentence more weight",
        ),
        Property(
            "no gradient reaches the logits at padding",
            _no_gradient_at_padding,
            "the tokens that do not count must not enter the sum at all",
        ),
    ],
)

# Clipped n-grams --------------------------------------------------------------------------------


def _counts(candidate, hypothesis, references, order):
    answer = candidate(hypothesis.split(), [reference.split() for reference in references], order)
    expect(
        isinstance(answer, tuple) and len(answer) == 2,
        f"(matches, all) is expected, two whole numbers; got {answer!r}",
    )
    return tuple(int(number) for number in answer)


def _counted(hypothesis, references, order, expected):
    def test(candidate):
        found = _counts(candidate, hypothesis, references, order)
        expect(
            found == expected,
            f"{hypothesis!r} against {references}, order {order}: {found}, expected {expected}",
        )

    return test


def _inputs_stay(candidate):
    hypothesis, references = ["a", "a"], [["a"], ["b", "a"]]
    candidate(hypothesis, references, 1)
    expect(hypothesis == ["a", "a"] and references == [["a"], ["b", "a"]], "an argument changed")


clipped_matches = Check(
    "clipped n-grams",
    [
        Property(
            "“the the the …” matches 2 of 7 words",
            _counted("the the the the the the the", ["the cat is on the mat"], 1, (2, 7)),
            "a word counts no oftener than the reference has it",
        ),
        Property(
            "places do not matter",
            _counted("c a b", ["a b c"], 1, (3, 3)),
            "count how often each n-gram occurs, wherever",
        ),
        Property(
            "pairs of neighbors count as pairs",
            _counted("a b c a b", ["a b x b c a"], 2, (3, 4)),
            "an n-gram is n neighbors in their order; a sentence of m words has m − n + 1",
        ),
        Property(
            "a sentence shorter than the order has no n-grams",
            _counted("a b", ["a b c d"], 4, (0, 0)),
            "nothing to count: (0, 0), not an error and not a negative number",
        ),
        Property(
            "of several references, the one that has an n-gram oftenest counts",
            _counted("a a a b", ["a a c", "b b a"], 1, (3, 4)),
            "for each n-gram, the largest of its counts in the references; their sum is too much",
        ),
        Property("the arguments stay as they are", _inputs_stay, "work on copies"),
    ],
)

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


def _reads_what_it_said(candidate):
    model = _Scripted([5, 6, 7])
    _decoded(candidate, model)
    expect(model.read[:4] == [[BOS], [5], [6], [7]], f"the model was given {model.read} to read")


fixed_greedy = Check(
    "greedy decoding",
    [
        Property(
            "one sentence comes out as the model says it, without <eos>",
            lambda candidate: _says(candidate, [5, 6, 7]),
            "the likeliest token at each step, up to <eos>",
        ),
        Property(
            "the model reads <bos> first, and then what it said last",
            _reads_what_it_said,
            "the tokens of a step are the input of the next",
        ),
        Property(
            "a short sentence does not cut a long one",
            lambda candidate: _says(candidate, [5], [6, 7, 8, 9]),
            "when may a batch stop: when one sentence is finished, or when all are?",
        ),
        Property(
            "a finished sentence says nothing more",
            lambda candidate: _says(candidate, [5, 6, 7, 8, 9], [6], [7, 8]),
            "the model goes on talking after <eos>; what comes then must not be kept",
        ),
        Property(
            "it stops at max_len",
            lambda candidate: _says(
                candidate, [5, 6, 7, 8], [9], max_len=2, expected=[[5, 6], [9]]
            ),
            "a model may never say <eos>",
        ),
    ],
)
