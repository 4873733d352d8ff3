"""Attention in blocks and what it costs, linear attention and what it recalls, and the pictures of a window."""

import sys

import numpy as np
import pytest
import torch

from course_utils.kit.runs import definitions, source, stored_runs
from course_utils.lessons.attention_at_length import blocks, costs, explorer, recall
from course_utils.lessons.attention_at_length.checks import attention_in_blocks, recurrent


@pytest.fixture(scope="module")
def chapter():
    names = ("Blockwise", "recurrent_solution", "features", *recall.NAMES)
    return definitions(source("attention_at_length"), *names)


def inputs(n, dtype=torch.float64):
    draws = torch.Generator().manual_seed(n)
    shapes = (n, 8), (n, 8), (n, 5)
    return [
        torch.randn(shape, generator=draws, dtype=dtype, requires_grad=True) for shape in shapes
    ]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("from_page", [True, False])
def test_blocks_of_any_size_give_the_answers_and_gradients_of_the_operator(
    chapter, size, from_page
):
    found = []
    function = chapter.Blockwise if from_page else blocks.InBlocks
    for attend in (lambda *x: function.apply(*x, size), blocks.fused):
        leaves = inputs(50)
        answers = attend(*leaves)
        weights = torch.linspace(-1, 2, answers.numel(), dtype=answers.dtype).view_as(answers)
        found.append([answers, *torch.autograd.grad((answers * weights).sum(), leaves)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)


def test_blocks_are_the_whole_matrix_where_scores_are_in_the_hundreds():
    q, k, v = (each.detach() for each in inputs(40))
    answers, lse = blocks.in_blocks(100 * q, k, v, 6)
    torch.testing.assert_close(answers, blocks.with_matrix(100 * q, k, v))
    torch.testing.assert_close(lse[:, 0], blocks.scores_of(100 * q, k, slice(None)).logsumexp(1))


def test_a_logsumexp_of_each_block_is_a_right_solution_too():
    def merged(q, k, v, size):
        lse, answers = torch.full((len(q), 1), -torch.inf), torch.zeros(len(q), v.shape[1])
        for start in range(0, len(k), size):
            block = slice(start, start + size)
            scores = blocks.scores_of(q, k, block)
            old, lse = lse, torch.logaddexp(lse, scores.logsumexp(1, keepdim=True))
            answers = answers * (old - lse).exp() + (scores - lse).exp() @ v[block]
        return answers, lse

    attention_in_blocks(merged)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts a process's memory in /proc")
def test_blocks_need_less_memory_than_the_matrix_and_keeping_their_weights_does_not():
    n = 2048
    need = {way: costs.in_a_process(way, n, returned=True)["MB"] for way in costs.WAYS}
    of_matrix = 4 * n * n / costs.MEGABYTE
    assert min(need["whole matrix"], need["blocks, weights kept"]) > 2 * of_matrix
    assert max(need["blocks, weights again"], need["fused"]) < 1.5 * of_matrix


def test_each_way_was_measured_at_each_length_and_twice_the_length_costs_four_times_the_time():
    for way in costs.WAYS:
        runs = stored_runs("attention_at_length", "cost", way=way)
        assert [run.config["n"] for run in runs] == list(costs.LENGTHS)
        *_, half, whole = (run.result["seconds"] for run in runs)
        assert 3 < whole / half < 6


def test_linear_attention_at_once_is_what_the_recurrence_ends_with(chapter):
    q, k, v = (each.detach() for each in inputs(30))
    at_once = chapter.linear_attention(q, k, v)
    token_by_token = chapter.recurrent_solution(chapter.features(q), chapter.features(k), v)
    torch.testing.assert_close(at_once[-1], token_by_token[-1])
    weights = (chapter.features(q) @ chapter.features(k).T).tril()
    torch.testing.assert_close(token_by_token, weights @ v / weights.sum(1, keepdim=True))


def _rows_put_together(q, k, v):
    S, z, answers = torch.zeros(q.shape[1], v.shape[1]), torch.zeros(q.shape[1]), v[:0]
    for asks, key, value in zip(q, k, v, strict=True):
        S, z = S + torch.outer(key, value), z + key
        answers = torch.cat([answers, (asks @ S / (asks @ z))[None]])
    return answers


def _all_queries_ask(q, k, v):
    S, z, answers = (
        torch.zeros(q.shape[1], v.shape[1]),
        torch.zeros(q.shape[1]),
        torch.zeros_like(v),
    )
    for t in range(len(q)):
        S += torch.outer(k[t], v[t])
        z += k[t]
        answers[t] = (q @ S)[t] / (q @ z)[t]
    return answers


def _in_float64(q, k, v):
    q, k, v = q.double(), k.double(), v.double()
    S, z, answers = q.new_zeros(q.shape[1], v.shape[1]), q.new_zeros(q.shape[1]), []
    for asks, key, value in zip(q, k, v, strict=True):
        S, z = S + torch.outer(key, value), z + key
        answers.append(asks @ S / (asks @ z))
    return torch.stack(answers)


def _in_chunks(q, k, v):
    S, z, answers = torch.zeros(q.shape[1], v.shape[1]), torch.zeros(q.shape[1]), []
    for start in range(0, len(q), 4):
        asks, keys, values = (each[start : start + 4] for each in (q, k, v))
        weights = (asks @ keys.T).tril()
        sums = asks @ z + weights.sum(1)
        answers.append((asks @ S + weights @ values) / sums[:, None])
        S, z = S + keys.T @ values, z + keys.sum(0)
    return torch.cat(answers)


@pytest.mark.parametrize("right", [_rows_put_together, _all_queries_ask, _in_float64, _in_chunks])
def test_other_right_recurrences_pass(right):
    assert recurrent.mark(right).passed


def test_a_text_has_different_keys_and_a_window_of_the_same_memory_holds_thirteen_pairs(chapter):
    keys, values = chapter.pairs(64, 10, torch.Generator().manual_seed(0))
    assert keys.shape == values.shape == (10, 64)
    assert all(len(set(row.tolist())) == 64 for row in keys)
    assert recall.pairs_of_same_memory(16) == 13 == recall.numbers_kept(16) // (16 + 64)
    assert recall.in_a_window(8, 13) == 1 and 13 / 64 < recall.in_a_window(64, 13) < 14 / 64


def test_a_network_learns_to_recall_a_few_pairs_and_its_parameters_do_not_depend_on_how_it_attends(
    chapter,
):
    torch.manual_seed(0)
    model = chapter.train(chapter.Recall(blocks.whole), steps=150, sizes=(4,))
    assert recall.accuracies(chapter, model, seed=3)[0] > 0.5
    linear = chapter.Recall(chapter.linear_attention)
    linear.load_state_dict(model.state_dict())
    assert linear(*chapter.pairs(4, 2, torch.Generator())).shape == (2, 4, 128)


def test_the_sums_of_the_picture_are_those_of_a_softmax():
    scores, values = np.array(explorer.SCORES), np.array(explorer.VALUES)
    for read in range(1, explorer.COUNT + 1):
        seen = slice(read * explorer.SIZE)
        c, s, y, _ = explorer.running(read)
        e = np.exp(scores[seen] - scores[seen].max())
        assert c == scores[seen].max() and s == pytest.approx(e.sum())
        assert y / s == pytest.approx(e @ values[seen] / e.sum())


def test_each_picture_of_a_window_says_its_loss_and_that_of_the_whole_past():
    shown = explorer.windows()
    for values in shown.combinations():
        losses = explorer.losses_of(explorer.READ[values["text"]], "128")
        _, said = shown.frame(**values)
        for view in (explorer.SIGHT[values["sight"]][0], "whole past"):
            assert f"{losses[view]['mean']:.2f}" in said
