"""Decoding says exactly what the model believes: greedy, beam and strings, on every translator."""

import copy
import itertools
import math

import pytest
import torch

from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, PAD, Vocabulary, tokenize
from course_utils.decoding import beam_search, greedy, translate
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.models.transformer import Transformer

SIZE = 9


def models():
    torch.manual_seed(2)
    options = {"embed_dim": 8, "num_heads": 2, "ffn_dim": 8, "num_layers": 1, "dropout": 0.3}
    return {
        "fixed context": RecurrentTranslator(SIZE, SIZE, embed_dim=6, hidden_dim=8),
        "attention": AttentionTranslator(SIZE, SIZE, embed_dim=6, hidden_dim=8),
        "transformer": Transformer(SIZE, SIZE, **options),
    }


@pytest.fixture(params=["fixed context", "attention", "transformer"])
def model(request):
    """A model whose logits are sharpened, so that choices are never a tie."""
    model = models()[request.param]
    with torch.no_grad():
        model.output.weight.mul_(4)
    return model


SOURCE = torch.tensor([[4, 5, 6, EOS], [7, EOS, PAD, PAD], [8, 4, EOS, PAD]])
LENGTHS = torch.tensor([4, 2, 3])


def log_probabilities(model, row, ids):
    """Of each next token of a translation, teacher-forced, with <pad> and <bos> ruled out."""
    target = torch.tensor([[BOS, *ids]])
    logits = model.eval()(SOURCE[row : row + 1], LENGTHS[row : row + 1], target)[0]
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(-1)


def log_probability(model, row, ids):
    """Of a whole translation."""
    said = torch.tensor([*ids, EOS])
    return log_probabilities(model, row, ids)[range(len(said)), said].sum().item()


def test_greedy_takes_the_likeliest_token_of_the_teacher_forced_logits(model):
    for row, ids in enumerate(greedy(model, SOURCE, LENGTHS, max_len=6)):
        expected = log_probabilities(model, row, ids).argmax(-1).tolist()
        assert expected[: len(ids)] == ids
        assert len(ids) == 6 or expected[len(ids)] == EOS


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_translation_there_is(model, penalty):
    max_len = 3
    words = [token for token in range(SIZE) if token not in (PAD, BOS, EOS)]
    candidates = [ids for n in range(max_len) for ids in itertools.product(words, repeat=n)]
    wide = beam_search(
        model, SOURCE, LENGTHS, beam_size=len(words) ** 2, max_len=max_len, length_penalty=penalty
    )
    for row, found in enumerate(wide):

        def score(ids, row=row):
            return log_probability(model, row, ids) / ((6 + len(ids)) / 6) ** penalty

        best = max(candidates, key=score)
        assert score(found) == pytest.approx(score(best), abs=1e-4)
        assert tuple(found) == best


class Chain(torch.nn.Module):
    """A translator that looks at nothing but the last token: {token: {next: probability}}."""

    def __init__(self, chances):
        super().__init__()
        self.table = torch.ones(SIZE, SIZE)
        for token, following in chances.items():
            self.table[token] = 0.0
            for after, chance in following.items():
                self.table[token, after] = chance

    def start(self, source, lengths):
        return self

    def repeat(self, times):
        """There is nothing to repeat, nor to reorder."""

    reorder = repeat

    def step(self, tokens, state):
        return self.table[tokens].log()


A, B, C = 4, 5, 6
LOGS = {A: math.exp(-2), B: math.exp(-2.27) / (1 - math.exp(-2))}  # of ending after A, after A B
SOON = math.exp(-0.8)
CHAINS = {
    # log p("A") = -2, -2 / (7 / 6) = -1.714; log p("A B") = -2.27, -2.27 / (8 / 6) = -1.7025
    "the formula": (
        {
            BOS: {A: 1.0},
            A: {EOS: LOGS[A], B: 1 - LOGS[A]},
            B: {EOS: LOGS[B], C: 1 - LOGS[B]},
        },
        [A, B],
    ),
    # "" may end at once with log 0.5 / 1 = -0.693; "A" overtakes it: log 0.5 / (7 / 6) = -0.594
    "a longer one overtakes": ({BOS: {EOS: 0.5, A: 0.5}, A: {EOS: 1.0}}, [A]),
    # log p("") = -0.8; log p("A B") = -1, and -1 / (8 / 6) = -0.75: it may not stop before
    "at the last step": (
        {
            BOS: {EOS: SOON, A: 1 - SOON},
            A: {B: math.exp(-1) / (1 - SOON), C: 1 - math.exp(-1) / (1 - SOON)},
            B: {EOS: 1.0},
            C: {C: 1.0},
        },
        [A, B],
    ),
}


@pytest.mark.parametrize(("chances", "best"), CHAINS.values(), ids=CHAINS)
def test_sentences_are_ranked_as_in_wu_et_al(chances, best):
    found = beam_search(
        Chain(chances), SOURCE[:1], LENGTHS[:1], beam_size=2, max_len=3, length_penalty=1.0
    )
    assert found == [best]


@pytest.mark.parametrize(
    ("end", "size", "best"),
    [
        (0.0, 1, [A, A, A]),
        (0.0, 2, [A, A, A]),
        (1e-20, 2, [A, A, A]),
        (0.3, 2, []),  # `<eos>` is among the two likeliest
    ],
)
def test_a_beam_that_never_ends_gives_the_likeliest_words_so_far(end, size, best):
    each = {A: 0.9 * (1 - end), B: 0.06 * (1 - end), C: 0.04 * (1 - end), EOS: end}
    chain = Chain(dict.fromkeys((BOS, A, B, C), each))
    assert beam_search(chain, SOURCE[:1], LENGTHS[:1], max_len=3, beam_size=size) == [best]


def test_sentences_decode_alike_alone_and_in_a_batch(model):
    for decode in (greedy, beam_search):
        together = decode(model, SOURCE, LENGTHS, max_len=6)
        for row in range(3):
            n = LENGTHS[row]
            alone = decode(model, SOURCE[row : row + 1, :n], LENGTHS[row : row + 1], max_len=6)
            assert alone == together[row : row + 1]


def test_a_translation_has_a_mask_only_where_something_is_padded():
    model = models()["transformer"]
    assert model.start(SOURCE, LENGTHS).memory_mask is not None
    assert model.start(SOURCE[:, :1], torch.ones_like(LENGTHS)).memory_mask is None


def test_decoding_keeps_the_models_mode_and_ignores_dropout(model):
    model.train()
    first = greedy(model, SOURCE, LENGTHS, max_len=6)
    assert model.training and first == greedy(model, SOURCE, LENGTHS, max_len=6)
    model.eval()
    assert first == greedy(model, SOURCE, LENGTHS, max_len=6) and not model.training


# Strings ----------------------------------------------------------------------------------------

EN = Vocabulary([["go", "home", ".", "we", "run"]])
FR = Vocabulary([["va", "rentre", "nous", "!", "."]])


@pytest.mark.parametrize(
    ("decode", "beam"),
    [(greedy, {}), (beam_search, {"beam_size": 2}), (beam_search, {"beam_size": 3})],
)
def test_translations_are_the_words_decoded_in_the_order_of_the_sentences(decode, beam):
    model = models()["attention"]
    with torch.no_grad():  # so that beams differ, and so do lengths
        model.output.weight.mul_(12)
        model.output.bias[EOS] -= 6
    sentences, expected = ["we run home .", "go .", "Go home.", "run . we"], []
    for sentence in sentences:
        ids = torch.tensor([[*EN.encode(tokenize(sentence)), EOS]])
        (said,) = decode(model, ids, torch.tensor([ids.shape[1]]), max_len=4, **beam)
        expected.append(" ".join(FR.decode(said)))
    assert translate(model, sentences, EN, FR, max_len=4, **beam) == expected
    assert translate(model, sentences, EN, FR, max_len=4, batch_size=1, **beam) == expected
    tokens = [tuple(tokenize(sentence)) for sentence in sentences]
    assert translate(model, tokens, EN, FR, max_len=4, **beam) == expected


def test_a_sentence_without_a_known_word_stops_no_other():
    model = models()["attention"]
    with pytest.warns(
        UserWarning, match=r"2 of 4 sentences are not .*; the first: no word of 'zebra' is in"
    ):
        found = translate(model, ["go .", "zebra", "", "we run ."], EN, FR, max_len=4)
    assert found[1:3] == ["", ""]
    assert found[::3] == translate(model, ["go .", "we run ."], EN, FR, max_len=4)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: translate(models()["attention"], "we run", EN, FR), "sentences is the str 'we run'"),
        (lambda: Vocabulary("go home"), "sentences is the str 'go home'"),
        (lambda: Vocabulary([["go"], "go home"]), "a sentence is the str 'go home'"),
        (lambda: Subwords("go home"), "texts is the str 'go home'"),
    ],
)  # fmt: skip
def test_a_text_is_no_list_of_its_letters(call, name):
    with pytest.raises(TypeError, match=f"{name}; a list of .* is needed"):
        call()


def long():
    return Transformer(SIZE, SIZE, max_len=4)


def said(sentence="go .", model=None, source=EN, target=FR):
    return translate(model or models()["attention"], [sentence], source, target)


def decoded(decode, **options):
    return decode(models()["attention"], SOURCE, LENGTHS, **options)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("decode", [greedy, beam_search])
def test_a_model_that_has_diverged_translates_nothing_and_says_why(model, decode, wrong):
    with torch.no_grad():
        model.output.bias[5] = wrong
    with pytest.raises(ValueError, match=f"a logit is {wrong}, .*the model has diverged"):
        decode(model, SOURCE, LENGTHS)


def test_continuations_of_a_copied_state_do_not_meet(model):
    model.eval()
    with torch.no_grad():
        states = [model.start(SOURCE, LENGTHS)]
        model.step(torch.full((3,), BOS), states[0])
        states += [copy.copy(states[0]), copy.copy(states[0])]
        for length in (2, 3):
            for token, state in enumerate(states, start=4):
                target = torch.tensor([[BOS] + [token] * (length - 1)] * 3)
                logits = model.step(torch.full((3,), token), state)
                expected = model(SOURCE, LENGTHS, target)[:, -1]
                torch.testing.assert_close(logits, expected)


LARGER = Vocabulary([["va", "rentre", "nous", "!", ".", "maison"]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: said("  "), "sentence '  ' is empty"),
        (lambda: said("xyzzy plugh"), "no word of 'xyzzy plugh'"),
        (lambda: said("go go go go .", long()), "do not fit a table of max_len=4"),
        (lambda: said(target=LARGER), "target_vocab has 10 tokens, the model's target embedding 9"),
        (lambda: said("va .", source=LARGER, target=EN), "source_vocab has 10 tokens, .* swapped"),
        (lambda: decoded(beam_search, beam_size=0), "beam_size=0; at least 1"),
        (lambda: decoded(greedy, max_len=0), "max_len=0; at least 1"),
    ],
)
def test_what_cannot_be_decoded_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
