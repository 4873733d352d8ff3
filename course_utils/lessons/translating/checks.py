"""Checks of *Translating*: beams on paper, growing the beams, forbidding, and a newest word at the wrong position."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_shape, expect_tensors
from course_utils.kit.on_paper import on_paper, read_number
from course_utils.lessons.translating.beams import grow, needs, newest
from course_utils.models.transformer import Transformer

# Beams on paper ---------------------------------------------------------------------------------


def _read_three_decimals(answer: Any) -> float:
    """The number in an answer; 0.175 rounded to two decimals gets a hint of its own."""
    number = read_number(answer)
    rounded = "Which digit comes after 0.17 or 0.18? Multiply once more, and give three decimals."
    expect(
        round(number, 4) not in (0.17, 0.18),
        f"{number:g} has two decimals, expected three",
        rounded,
    )
    return number


predicted_beams = on_paper({
    "a": (0.16, "the probability of what greedy decoding writes",
         "Which first word has the highest probability? Follow its branch.",
         "Multiply along the branch: 0.4 for E, then its most probable next word."),
    "b": (0.175, "the probability of what a beam of two writes",
         "Which two beginnings are kept after the first word? Multiply along both, and take the best.",
         "After E and F, the best two-word branches are 0.4 · 0.4 and 0.35 · 0.5."),
    "c": (0.25, "the probability of the most probable sentence",
         "Why does a beam of two never see what comes after G? Follow that branch yourself."),
}, read=_read_three_decimals, within=0.004)  # fmt: skip

# Growing the beams ------------------------------------------------------------------------------

my_grow = Check()


def _scores_rows_words(answer) -> tuple[Tensor, ...]:
    return expect_tensors(answer, "scores", "rows", "words")


def _random_beams(beams: int = 3, words: int = 7) -> tuple[Tensor, Tensor]:
    """Scores (beams,), the best first, and log-probabilities (beams, words)."""
    scores = (-3 * torch.rand(beams)).sort(descending=True).values
    return scores, torch.randn(beams, words).log_softmax(dim=-1)


def _copies(given: tuple[Tensor, ...]) -> list[Tensor]:
    """Copies for the candidate, so that it cannot change the expected tensors."""
    return [tensor.clone() for tensor in given]


@my_grow.must("adds the score of each beam to all of its words")
def adds_score_of_each_beam_to_all_of_its_words(candidate):
    """Do your shapes fit? There is one score for each beam, and one row of log_p, so which axis do the scores lack?

    `scores[:, None]` has the shape (beams, 1), so each score meets its row.
    """
    candidate(*_random_beams(5), 4)


@my_grow.must("gives scores, rows, and words, one for each beam that is kept")
def gives_scores_rows_and_words_one_for_each_beam_that_is_kept(candidate):
    """How many beams are there afterwards? There should be `size` of everything.

    On the flattened sums, topk gives `size` values and `size` positions.
    """
    for given in _scores_rows_words(candidate(*_random_beams(5), 4)):
        expect_shape(given, (4,))


@my_grow.must("grows one beam into several")
def grows_one_beam_into_several(candidate):
    """A beginning has a log-probability, and so does its next word. How do we combine them? We multiply
    the probabilities.

    At the first step there is one beam. From which row do all the new ones come then?
    """
    log_p = torch.tensor([[0.5, 0.1, 0.4]]).log()
    try:
        scores, rows, words = _scores_rows_words(candidate(torch.zeros(1), log_p, 2))
    except (IndexError, RuntimeError) as error:
        error.hint = (
            "There is one beam, and two are to be kept. How many continuations does your code take from each beam? "
            "Let all words of all beams compete, which they do if you flatten before topk."
        )
        raise
    expect_close(scores, torch.tensor([0.5, 0.4]).log(), "scores of the first step")
    apart = "Which beam does position p of the flattened sums name? With V words it is p // V, and the word is p % V."
    expect_close(rows.float(), torch.zeros(2), "rows of the first step", hint=apart)
    expect_close(words.float(), torch.tensor([0.0, 2.0]), "words of the first step", hint=apart)


@my_grow.must("scores a beam by the sum of the log-probabilities of its words")
def scores_beam_by_sum_of_log_probabilities_of_its_words(candidate):
    """How do the probabilities of a beginning and of its next word become the probability of both? We multiply them,
    so their logarithms are added.
    """
    given = _random_beams()
    expected = grow(*given, 4)[0]
    expect_close(_scores_rows_words(candidate(*_copies(given), 4))[0], expected, "scores")


@my_grow.must("keeps the best of all continuations, not a fixed number from each beam")
def keeps_best_of_all_continuations(candidate):
    """Do the beams compete with each other? They do if you flatten before topk."""
    log_p = torch.tensor([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]]).log()
    scores, rows, _ = _scores_rows_words(candidate(torch.tensor([0.9, 0.1]).log(), log_p, 2))
    expect_close(rows.float(), torch.zeros(2), "rows, where both best go on from beam 0")
    expect_close(scores, torch.tensor([0.45, 0.27]).log(), "scores")


@my_grow.must("says which beam and which word each came from")
def says_which_beam_and_which_word_each_came_from(candidate):
    """What does a position in the flattened sums say? It names a beam and a word, so take it apart into the two.

    With V words, position p belongs to beam p // V and to word p % V.
    """
    for beams, words, size in ((3, 7, 4), (4, 5, 2), (1, 9, 3)):
        given = _random_beams(beams, words)
        expected = grow(*given, size)
        answer = _scores_rows_words(candidate(*_copies(given), size))
        expect_close(answer[1].float(), expected[1].float(), "rows")
        expect_close(answer[2].float(), expected[2].float(), "words")


my_grow.must_keep_inputs(
    lambda: [*_random_beams(), 3],
    "Does a line add in place? `log_p += …` writes into the caller's tensor, so write `log_p + …`.",
    sentence="leaves its inputs unchanged",
)

# Forbidding ---------------------------------------------------------------------------------------

my_needs = Check()


def _model_and_probs() -> tuple[Transformer, Callable[[], Tensor]]:
    """A model of random weights, and a function that gives its probabilities of five target words in two sentences."""
    model = Transformer(9, 12, embed_dim=8, num_heads=2, ffn_dim=8, dropout=0.0, max_len=32).eval()
    source, target = torch.randint(4, 9, (2, 4)), torch.randint(4, 12, (2, 5))
    lens = torch.full((2,), 4)

    def p() -> Tensor:
        with torch.no_grad():
            logits = model(source, lens, target)
        return logits.softmax(dim=-1).gather(2, target[..., None])[..., 0]

    return model, p


@my_needs.must("gives a row for each French word and a column for each English one")
def gives_row_per_french_and_column_per_english_word(candidate):
    """Which axis belongs to the forbidden word? Collect one column for each j, and stack them along a new last axis."""
    model, p = _model_and_probs()
    answer = expect_tensors((candidate(model, p, 3),), "the map")[0]
    expect_shape(answer, (2, 5, 3))


@my_needs.must("gives the probability before, minus the one that is left")
def gives_probability_before_minus_one_that_is_left(candidate):
    """What do you subtract from what? A word that is needed loses probability, so take before minus after."""
    model, p = _model_and_probs()
    before, lost, asked = p(), needs(model, p, 1)[..., 0], []

    def noted() -> Tensor:
        asked.append(p())
        return asked[-1]

    answer = candidate(model, noted, 1)[..., 0]
    outside = any(torch.allclose(given, before) for given in asked)
    expect(outside or not asked, "p() was never asked while all words were allowed",
           "Where do you ask for the probabilities before? Inside the block the word is already forbidden, so ask "
           "once before the loop.")  # fmt: skip
    likely = (
        (torch.zeros_like(lost), "forbidding a word changes nothing",
         "Where do you ask p() for what is left? A word is forbidden only inside the block."),
        (before - lost, "these are the probabilities that are left",
         "What was p() before anything was forbidden? Ask once at the start, and subtract."),
        (lost / before, "these are shares of the probability before",
         "By how much does each probability fall? Take the difference and don't divide it."),
        (-lost, "the signs are the wrong way round", ""),
    )  # fmt: skip
    for mistake, reason, hint in likely:
        expect(not torch.allclose(answer, mistake, rtol=1e-3, atol=1e-7), reason, hint)


@my_needs.must("forbids it in the cross-attention of every layer, and nowhere else")
def forbids_word_in_cross_attention_of_every_layer_only(candidate):
    """Which attentions does your place name? A part of a name means all that contain it, so "attention" names the
    encoder's, too, and "cross_attention" those of the decoder that look at the English.
    """
    model, p = _model_and_probs()
    expect_close(candidate(model, p, 1), needs(model, p, 1), "the column of word 0")


@my_needs.must("forbids one English word at a time")
def forbids_one_english_word_at_time(candidate):
    """Is word 0 still forbidden when you forbid word 1? Each word wants a `with` block of its own, inside the loop."""
    model, p = _model_and_probs()
    expect_close(candidate(model, p, 3), needs(model, p, 3), "the map")


# A word at the wrong position -----------------------------------------------------------------------

fixed_newest = Check()


def _small_model() -> Transformer:
    return Transformer(9, 12, embed_dim=8, num_heads=2, ffn_dim=8, dropout=0.0, max_len=32)


@fixed_newest.must("gives one vector for each beam, (beams, 1, d)")
def gives_one_vector_for_each_beam(candidate):
    """Only the newest word goes through the decoder. Which slice of (beams, t) keeps its axis? A colon does."""
    model, read = _small_model(), []
    model.target_embedding.register_forward_pre_hook(lambda _, given: read.append(given[0].shape))
    for beams, words in ((1, 1), (3, 5)):
        ids = torch.randint(4, 12, (beams, words))
        expect_shape(candidate(model, ids), (beams, 1, 8))
    expect((3, 5) not in read, "all 5 words are embedded, expected only the newest")


@fixed_newest.must("keeps the first word as it was")
def keeps_first_word_as_it_was(candidate):
    """What did you change for the first word? It is alone at the first step, at position 0, and was right before."""
    model, ids = _small_model(), torch.tensor([[2]])
    expect_close(candidate(model, ids.clone()), newest(model, ids), "the vector of <bos>")


@fixed_newest.must("puts the fifth word at position 4 with one beam")
def puts_fifth_word_at_position_4_with_one_beam(candidate):
    """Which position does the buggy version use at each step of greedy decoding? Print it.

    `len` counts along the first axis. What is counted along the first axis of (beams, t)?
    """
    model, ids = _small_model(), torch.tensor([[2, 5, 6, 5, 7]])
    expect_close(candidate(model, ids.clone()), newest(model, ids), "the vector of the fifth word")


@fixed_newest.must("gives the newest word's vector with four beams")
def gives_newest_words_vector_with_four_beams(candidate):
    """Does the position depend on how many beams there are? It should depend on the number of words only."""
    model = _small_model()
    for words in (2, 4, 6):
        ids = torch.randint(4, 12, (4, words))
        expect_close(candidate(model, ids.clone()), newest(model, ids), f"vectors of word {words}")


@fixed_newest.must("agrees with the last row of what the model embeds at once")
def agrees_with_last_row_of_what_model_embeds_at_once(candidate):
    """Which of the three steps in `model.embed` is missing or done twice? Words are scaled, get their position, and
    drop out.
    """
    model, ids = _small_model(), torch.randint(4, 12, (3, 7))
    whole = model.embed(model.target_embedding, ids)
    expect_close(candidate(model, ids.clone()), whole[:, -1:], "the last of seven")
