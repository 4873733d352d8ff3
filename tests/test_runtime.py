"""Same seed, same numbers; files that are there and whole; modes that are put back."""

import contextlib
import os
import random
import stat
import subprocess
import sys

import numpy as np
import pytest
import torch

import course_utils as cu
from course_utils import files
from course_utils.data.translation import load_grammar
from course_utils.files import atomic_write, data_path
from course_utils.runtime import best_device, evaluating
from course_utils.studio import kernel

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


def test_a_file_of_the_course_is_found_whatever_the_working_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert data_path("prose/story.txt").read_text(encoding="utf-8")
    assert data_path("fashion_mnist").is_dir()


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda: load_grammar("fr"), "translation/grammar_fr.tsv"),
        (cu.load_fashion_mnist, "fashion_mnist/train-images-idx3-ubyte.gz"),
    ],
)
def test_a_missing_file_is_named_and_can_be_restored(read, name, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"data/{name} .*; copy it from a fresh download"):
        read()
    (tmp_path / ".git").touch()
    with pytest.raises(FileNotFoundError, match=rf"git checkout -- data/{name} \(or copy it"):
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


@pytest.mark.slow
def test_a_killed_writing_leaves_the_old_file_and_is_swept_later(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    code = """
import os, signal, sys
from course_utils.files import atomic_write
with atomic_write(sys.argv[1]) as part:
    part.write_text("ha")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert path.read_text() == "old"
    (left,) = leftovers(tmp_path)
    with atomic_write(path) as part:
        part.write_text("new")
    assert leftovers(tmp_path) == [left]  # another process may still be writing it
    long_ago = os.stat(path).st_mtime - 2 * files.ABANDONED
    os.utime(tmp_path / left, (long_ago, long_ago))
    with atomic_write(path) as part:
        part.write_text("newer")
    assert path.read_text() == "newer" and not leftovers(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_the_usual_ones_or_those_of_the_old_file(tmp_path):
    path, usual = tmp_path / "notes.txt", tmp_path / "usual.txt"
    usual.write_text("")
    with atomic_write(path) as part:
        part.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    path.chmod(0o640)
    with atomic_write(path) as part:
        part.write_text("newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a right on Windows")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    link, path = tmp_path / "notes.txt", tmp_path / "disk" / "notes.txt"
    link.symlink_to(path)
    with atomic_write(link) as part:
        part.write_text("whole")
    assert link.is_symlink() and path.read_text() == "whole"


# Device and mode --------------------------------------------------------------------------------


def test_the_best_device_is_a_gpu_one_for_each_process_of_torchrun(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    for there, best in ((True, torch.device("cuda", 1)), (False, torch.device("cpu"))):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        assert best_device() == best


@pytest.mark.parametrize("fails", [False, True])
def test_every_part_gets_its_own_mode_back_also_after_an_exception(fails):
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Sequential(torch.nn.Dropout()))
    model[1].eval()
    with contextlib.suppress(ZeroDivisionError), evaluating(model):
        assert not any(module.training for module in model.modules())
        assert 1 / (not fails)
    assert [module.training for module in model.modules()] == [True, True, False, False]


# PyTorch ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_importing_all_of_the_course_changes_nothing_of_torch():
    code = """
import importlib, pkgutil, torch, course_utils

def with_subclasses(kind):
    return {kind}.union(*map(with_subclasses, kind.__subclasses__()))

places = [torch, torch.nn.functional, torch.Tensor]
places += with_subclasses(torch.nn.Module) | with_subclasses(torch.optim.Optimizer)
before = [dict(vars(place)) for place in places]
for module in pkgutil.walk_packages(course_utils.__path__, "course_utils."):
    if not module.name.endswith((".__main__", ".kernel_startup")):
        importlib.import_module(module.name)
for place, old in zip(places, before):
    changed = [name for name in old if vars(place)[name] is not old[name]]
    assert not changed, (place, changed)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_in_a_kernel_of_the_course_optimizers_step_without_the_compiler_and_as_with_it():
    code = f"""
import runpy, sys
assert not set(runpy.run_path({str(kernel.STARTUP)!r})) & {{"defer_compiler_import", "sys"}}
import torch

def trained():
    steps, weight = [], torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    for _ in range(3):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
    return weight.tolist(), len(steps)

before = trained()
assert "torch._dynamo.config" not in sys.modules and before[1] == 3
import course_utils.train.trainer
assert trained() == before
import torch._dynamo.config
from torch._dynamo import optimize
assert torch._dynamo.config is sys.modules["torch._dynamo.config"]
assert torch._dynamo.disable is torch._dynamo.decorators.disable and trained() == before
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
