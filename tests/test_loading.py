"""Loaders: every pass is whole, whatever happened to the one before, and can be resumed exactly."""

import itertools

import pytest
import torch

from course_utils.data.loading import Loader


class Numbers(Loader):
    """Batches of row numbers, each with a number drawn while the batch is made."""

    def __init__(self, rows=18, *, batch_size=4, shuffle=True, seed=3):
        super().__init__(rows, batch_size=batch_size, shuffle=shuffle, seed=seed)

    def _batch(self, rows, generator):
        return rows, torch.rand((), generator=generator).item()


def is_whole(batches) -> bool:
    return sorted(row for rows, _ in batches for row in rows) == list(range(18))


def test_an_abandoned_pass_takes_nothing_from_the_next():
    loader = Numbers()
    next(iter(loader))
    assert is_whole(loader)


def test_passes_side_by_side_do_not_disturb_each_other():
    first, second = zip(*zip(Numbers(), Numbers(), strict=True), strict=True)
    assert first == second
    loader = Numbers()
    one, other = zip(*zip(loader, loader, strict=True), strict=True)
    assert is_whole(one) and is_whole(other)
    assert [list(one), list(other)] == [list(loader) for loader in [Numbers()] for _ in range(2)]


def test_each_pass_has_another_order_and_evaluation_always_the_same():
    loader, evaluation = Numbers(), Numbers(shuffle=False)
    assert list(loader) != list(loader)
    assert list(evaluation) == list(evaluation)
    assert [rows[0] for rows, _ in evaluation] == [0, 4, 8, 12, 16]


@pytest.mark.parametrize("handed_out", [0, 1, 4, 5])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_loaded_state_gives_the_rest_of_its_pass_once_and_then_whole_passes(handed_out, shuffle):
    loader = Numbers(shuffle=shuffle)
    list(loader)
    running = iter(loader)
    list(itertools.islice(running, handed_out))
    other = Numbers(shuffle=shuffle, seed=8)
    other.load_state_dict(loader.state_dict())
    assert other.state_dict() == loader.state_dict()
    assert list(other) == list(running)
    assert list(other) == list(loader) and is_whole(other)


def test_a_restarted_loader_begins_anew():
    loader = Numbers()
    first = list(loader)
    next(iter(loader))
    loader.restart()
    assert list(loader) == first


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Numbers(batch_size=6), "had batch_size=4, this one has batch_size=6"),
        (Numbers(19), "had rows=18, this one has rows=19"),
        (Numbers(shuffle=False), "had shuffle=True, this one has shuffle=False"),
    ],
)
def test_a_state_of_other_batches_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        other.load_state_dict(Numbers().state_dict())
