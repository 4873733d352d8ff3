"""Same seed, same numbers; files that are there and whole; modes that are put back."""

import contextlib
import random

import numpy as np
import pytest
import torch

import course_utils as cu
from course_utils import files
from course_utils.data.translation import load_grammar
from course_utils.files import atomic_write
from course_utils.lessons.self_attention.tasks import load_words
from course_utils.runtime import evaluating

# Seeds ------------------------------------------------------------------------------------------


def _draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), torch.rand(()).item()


def test_the_same_seed_gives_the_same_numbers_and_another_others_in_each_library():
    drawn = []
    for seed in (2**32 - 1, 2**32 - 1, 0):
        assert cu.seed_everything(seed) is None  # a cell that ends with it shows nothing
        drawn.append(_draw())
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(*drawn[1:], strict=True))


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, r"seed=-1 is out of range; use 0 <= seed < 2\*\*32"),
        (2**32, ValueError, "out of range"),
        ("1", TypeError, "an integer is needed"),
        (True, TypeError, "an integer is needed"),
    ],
)
def test_a_seed_that_is_none_is_refused_and_changes_nothing(seed, error, message):
    state = torch.get_rng_state()
    with pytest.raises(error, match=message):
        cu.seed_everything(seed)
    assert torch.equal(torch.get_rng_state(), state)


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (load_words, "words.csv"),
        (lambda: load_grammar("fr"), "translation/grammar_fr.tsv"),
        (cu.load_fashion_mnist, "fashion_mnist/train-images-idx3-ubyte.gz"),
    ],
)
def test_a_missing_file_is_named_and_can_be_restored(read, name, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"git checkout -- data/{name}"):
        read()


def leftovers(folder) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("error", [None, OSError(28, "no space left"), KeyboardInterrupt()])
def test_a_file_is_written_whole_with_its_folder_or_stays_as_it_was(error, tmp_path):
    path = tmp_path / "new" / "notes.txt"
    for text in ("old", "new"):
        failing = error and text == "new"
        with pytest.raises(type(error)) if failing else contextlib.nullcontext():  # noqa: SIM117
            with atomic_write(path) as part:
                part.write_text(text)
                assert path.exists() is (text == "new")
                if failing:
                    raise error
    assert path.read_text() == ("old" if error else "new") and not leftovers(path.parent)


# Device and mode --------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_every_part_gets_its_own_mode_back_also_after_an_exception(fails):
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Sequential(torch.nn.Dropout()))
    model[1].eval()
    with contextlib.suppress(ZeroDivisionError), evaluating(model):
        assert not any(module.training for module in model.modules())
        assert 1 / (not fails)
    assert [module.training for module in model.modules()] == [True, True, False, False]
