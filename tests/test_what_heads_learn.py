"""The copying circuit: by hand, read from weights, cut, and what is stored of it."""

import pytest
import torch

from course_utils.figures import subplots
from course_utils.kit.runs import definitions, source, stored_runs
from course_utils.lessons.what_heads_learn import checks, circuits, cuts, explorer
from course_utils.lessons.what_heads_learn.film import (
    EVERY,
    LEVELS,
    UNTIL,
    Film,
    by_followers,
    copied,
    levels,
    measured,
    several_followers,
    shades,
    which_letters,
    wins,
)
from course_utils.masks import causal_mask


@pytest.fixture(scope="module")
def chapter():
    names = ("Copier", "texts", "train", "patched", "ov_map", "my_qk_map_solution")
    return definitions(source("what_heads_learn"), *names)


@pytest.fixture(scope="module")
def texts(chapter):
    return chapter.texts(128, torch.Generator().manual_seed(7))


@pytest.fixture(scope="module")
def trained(chapter, texts):
    """A model after its first fall, and what was filmed of it."""
    torch.manual_seed(0)
    film = Film(*texts, every=20)
    return chapter.train(chapter.Copier(), 240, watch=film), film


@pytest.mark.parametrize("period", [6, 13, 20, 23])
def test_the_circuit_by_hand_copies_blocks_of_different_letters_without_a_mistake(period):
    assert circuits.accuracy_by_hand(circuits.by_hand, period, different=True) == 1
    assert 0.55 < circuits.accuracy_by_hand(circuits.by_hand, period, different=False) < 0.95


def test_several_followers_are_counted_up_to_now():
    letters = "rkgmkbrk"
    ids = torch.tensor([[circuits.LETTERS.index(letter) for letter in letters + "g"]])
    found = several_followers(ids)[0].tolist()
    assert [letter for letter, several in zip(letters, found, strict=True) if several] == ["k", "k"]


def test_after_the_first_fall_the_circuit_is_there_and_its_head_looks_back_in_the_first_block(
    trained, texts
):
    model, _ = trained
    one, several = by_followers(model(texts[0][:, :-1]), *texts)
    assert one > 0.95 and several < 0.75
    back = circuits.looks_back(model, *texts)
    assert max(back["one back"]) > 0.85 and back["equal weights"][0] < 0.2


def test_the_maps_of_the_page_are_those_of_the_film(chapter):
    torch.manual_seed(1)
    model = chapter.Copier()
    for norm in (*model.norms, model.norm):
        torch.nn.init.uniform_(norm.weight, 0.5, 2)
    for previous, induction in ((0, 0), (0, 1), (1, 0)):
        qk = chapter.my_qk_map_solution(model, previous, induction)
        assert torch.equal(qk, circuits.qk_map(model, previous, induction))
        assert torch.equal(chapter.ov_map(model, induction), circuits.ov_map(model, induction))


def test_a_map_becomes_text_with_each_row_from_its_mean_to_its_largest_entry():
    matrix = torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
    found = shades(levels(matrix))
    assert torch.equal(found.argmax(1), matrix.argmax(1))
    assert ((found == LEVELS - 1).sum(1) == 1).all()
    assert (found[matrix < matrix.mean(1, keepdim=True)] == 0).all()
    assert wins(levels(matrix + 100 * torch.eye(32))) == 32


def test_a_circuit_that_tells_the_query_where_to_look_is_right_too():
    def by_queries(ids):
        letter, position = torch.eye(32)[ids], torch.eye(48)[: len(ids)]
        where = circuits.attend(100 * letter @ letter.T, position)
        return circuits.attend(4800 * where @ torch.eye(48).roll(1, 1) @ position.T, letter)

    assert checks.copy_by_hand(by_queries).passed
    assert circuits.accuracy_by_hand(by_queries, 20, different=True) == 1


@pytest.mark.parametrize("by_notes", [False, True])
def test_a_map_gives_the_part_of_the_scores_that_its_vectors_give(trained, texts, by_notes):
    (model, film), ids = trained, texts[0][:8, :-1]
    previous = film.pair[0]
    read = 1 - previous if by_notes else previous
    without = cuts.logits_with(
        model, ids, read, lambda _, entries: -entries, previous if by_notes else None
    )

    def centered(rows):
        return rows - rows.mean(-1, keepdim=True)

    x, weights, parts = cuts.layer_0(model, ids)
    middle, (below, gain) = x + sum(parts), (norm.weight for norm in model.norms)
    by = [stream.std(-1, correction=0, keepdim=True) for stream in (x, middle)]
    letters = centered(model.letters(ids))

    def note(head):
        W_OV = circuits.of_head(model.layers[0], head)[2]
        return centered(weights[:, head] @ (letters / by[0] * below) @ W_OV)

    asking, noted = note(previous) if by_notes else letters, note(read)
    y, outputs = model.norms[1](middle), []
    for head in range(2):
        W_Q, W_K, W_OV = circuits.of_head(model.layers[1], head)
        scores = y @ W_Q @ (y @ W_K).mT
        scores = scores - (asking * gain / by[1]) @ W_Q @ (noted * gain / by[1] @ W_K).mT
        scores = scores / model.layers[1].head_dim ** 0.5
        scores = scores.masked_fill(~causal_mask(47), -torch.inf)
        outputs.append(scores.softmax(-1) @ y @ W_OV)
    expected = model.output(model.norm(middle + sum(outputs)))
    torch.testing.assert_close(without, expected.detach(), atol=1e-3, rtol=1e-3)
    assert (without - model(ids)).abs().max() > 0.05


def test_a_head_is_ablated_for_one_reader_and_all_three_together_make_an_ablation(trained, texts):
    (model, film), ids = trained, texts[0]
    silent = cuts.silent(film.pair[0])
    for_all = dict.fromkeys(cuts.READS, silent)
    only_keys = measured(cuts.logits_with(model, ids[:, :-1], keys=silent), *texts)[1]
    every = measured(cuts.logits_with(model, ids[:, :-1], **for_all), *texts)[1]
    values = measured(cuts.logits_with(model, ids[:, :-1], values=silent), *texts)[1]
    assert max(only_keys, every) < 0.4 < 0.7 < values


def test_nothing_erased_changes_nothing(chapter, texts):
    torch.manual_seed(2)
    model, ids = chapter.Copier(std=1.0), texts[0][:, :-1]
    for norm in (*model.norms, model.norm):
        torch.nn.init.uniform_(norm.weight, 0.5, 2)
    same = cuts.logits_with(model, ids, 1, cuts.erased("nothing"))
    torch.testing.assert_close(same, model(ids).detach(), atol=1e-4, rtol=1e-4)


def test_without_the_diagonal_copying_is_gone_and_with_it_alone_it_stays(trained, texts):
    model, film = trained
    logits = cuts.erasures(model, texts[0], film.pair[0])
    right = {which: measured(each, *texts)[1] for which, each in logits.items()}
    assert right["nothing"] > 0.8 and right["the diagonal"] < 0.6 * right["nothing"]
    assert min(right[which] for which in cuts.ERASED[2:]) > right["nothing"] - 0.05


def test_both_induction_heads_copy_and_the_measure_counts_from_the_second_letter(trained, texts):
    model, film = trained
    logits = cuts.ablations(model, texts[0], *film.pair)
    right = {which: measured(each, *texts)[1] for which, each in logits.items()}
    assert right["whole"] == pytest.approx(copied(model, *texts)[1])
    assert right[cuts.BOTH] < 0.15 < right[cuts.INDUCTION[0]]
    ids, lengths = torch.tensor([[0, 1, 0, 1, 0, 1]]), torch.tensor([[2]])
    perfect = 100 * torch.eye(32)[ids[:, 1:]]
    perfect[:, :2] = 0  # of the first block, and of the first letter of the second
    assert measured(perfect, ids, lengths) == (0, 1)
    assert which_letters(ids, lengths) == pytest.approx(torch.tensor(2.0).log().item())


def test_a_patch_at_the_answer_brings_back_how_it_is_found_and_one_elsewhere_does_not(
    chapter, trained
):
    model, film = trained
    p = cuts.by_patching(chapter.patched, model, film.pair[0])
    moved, found = (
        {part: value for (changed, part), value in p.items() if changed == name}
        for name in ("the answer", "the letter before it")
    )
    _, value, key, note, other = cuts.PATCHED
    assert moved[value] > 0.5 > 0.1 > max(moved[key], moved[note], moved["nothing"])
    assert min(found[key], found[note]) > 0.5 > 0.3 > max(found[value], found[other])
    assert max(found["nothing"], found[cuts.ELSEWHERE]) < 0.3


def test_each_stored_film_has_all_frames_with_two_whole_maps():
    runs = stored_runs("what_heads_learn", "filmed")
    assert [run.config["seed"] for run in runs] == [0, 1, 2]
    for run in runs:
        film = [frame for frame in run.examples if "qk" in frame]
        assert [frame["step"] for frame in film] == list(range(0, UNTIL + 1, EVERY))
        assert set(explorer.STEPS) <= {frame["step"] for frame in film}
        assert {len(frame[name]) for frame in film for name in ("qk", "ov")} == {32 * 32}
        assert wins(film[-1]["qk"]) == wins(film[-1]["ov"]) == 32


def test_the_sentence_of_a_frame_has_its_numbers():
    for frame in stored_runs("what_heads_learn", "filmed")[0].examples[::5]:
        if "qk" in frame:
            said = explorer.sentence(frame, 2.2)
            assert f"{frame['loss']:.2f}" in said and f"in {wins(frame['ov'])} of “what" in said


def test_the_stored_map_of_notes_is_drawn_with_its_count():
    for run in stored_runs("what_heads_learn", "notes_meet"):
        text = run.examples[0]["notes"]
        _, ax = subplots(alt="A map")
        explorer.draw_map(ax, "notes", text)
        assert f"{run.result['rows']:.0f} of 32 rows" in ax.get_title()
        assert wins(text) == run.result["rows"] >= 29


def test_the_map_of_notes_without_nothing_changes_nothing(trained, texts):
    (model, film), ids = trained, texts[0][:8]
    found = cuts.without_notes(model, ids, film.pair[0])
    torch.testing.assert_close(found["nothing"], model(ids[:, :-1]).detach(), atol=1e-3, rtol=1e-3)
    assert (found[cuts.WHOLE] - found["nothing"]).abs().max() > 0.05
