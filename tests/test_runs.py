"""Stored runs: declared by lessons, made once, never silently left out."""

import ast
import dataclasses
import hashlib
import multiprocessing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils.files import LESSONS, ROOT
from course_utils.kit import live, runs
from course_utils.kit.mime import MADE_BY
from course_utils.kit.runs import stored, stored_run, stored_runs, write
from course_utils.kit.stored_run import StoredRun, config_key
from course_utils.studio import manifest
from course_utils.studio.runs import main

COURSE = manifest.load().whole
DECLARED = {c.slug: found for c in COURSE.chapters if (found := runs.declared(c.slug))}
RUN = StoredRun("train", {"seed": 0}, {"accuracy": 0.93456}, {}, "2026-11-21", "Some GPU", 2, 61.4)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    return tmp_path


# Storing and reading ----------------------------------------------------------------------------


def test_a_stored_run_says_its_result_machine_time_and_date(folder):
    write("somewhere", dataclasses.replace(RUN, result={"accuracy": 0.1}))
    write("somewhere", RUN)
    write("somewhere", dataclasses.replace(RUN, config={"seed": 1, "name": "an option's"}))
    assert stored_runs("somewhere", "train", seed=0) == [RUN]
    assert len(stored_runs("somewhere")) == len(stored_runs("somewhere", "train")) == 2
    assert repr(RUN) == "train: accuracy 0.9346 (Some GPU, 61 s, 2026-11-21)"


def test_a_name_of_several_parts_is_quoted():
    run = dataclasses.replace(RUN, result={"aer, head": 0.25, "bleu": 0.5})
    assert repr(run).startswith("train: 'aer, head' 0.25, bleu 0.5 (")


def test_a_run_function_without_a_result_is_refused(folder):
    with pytest.raises(ValueError, match="<lambda> returned score; `result` has to be there"):
        stored()(lambda: {"score": 1.0}).make({})


def test_a_run_that_is_not_there_is_said(folder):
    write("somewhere", RUN)
    with pytest.raises(ValueError, match="seed=3 fits no stored run"):
        stored_runs("somewhere", seed=3)
    with pytest.raises(
        ValueError, match="no stored run 'shakespeare' with {'seed': 3}; `make runs`"
    ):
        stored_run("gpt", "shakespeare", seed=3)


# Making -----------------------------------------------------------------------------------------


def training(*, seed: int) -> dict:
    made.append(seed)
    if seed == 2 and made.count(2) == 1:
        raise KeyboardInterrupt
    return {
        "result": {"score": float(seed)},
        "curves": {"loss": [[1, 0.5]]},
        "examples": [{"said": ["été", "."], "weights": [[0.75, 0.25], [0.5, 0.5]]}],
    }


def measured(*, seed: int, widths: tuple, rate: float) -> dict:
    return {
        "result": {"score": torch.tensor(0.5), "share": np.float32(0.25)},
        "curves": {"loss": [(np.int64(1), np.float32(0.5))], np.str_("all"): np.ones((2, 2))},
        "examples": (
            {"weights": torch.ones(2, 2), "at": {3: Fraction(1, 2)}, "right": np.bool_(True)},
        ),
    }


def test_numbers_of_numpy_and_tensors_in_a_run_are_stored_and_read_back(folder, monkeypatch):
    case = {"seed": np.int64(1), "widths": (16, np.int32(32)), "rate": np.float32(0.5)}
    declaration = stored(cases=[case])(measured)
    monkeypatch.setattr(runs, "declared", lambda slug: {"measured": declaration})
    run = declaration.make(case)
    write("somewhere", run)
    assert runs.read("somewhere") == [run] and not runs.to_make("somewhere")
    assert stored_run("somewhere", "measured", **case) == run
    assert stored_runs("somewhere", widths=(16, 32)) == [run]
    assert declaration.make(run.config).examples == run.examples
    assert run.examples == [{"weights": [[1, 1], [1, 1]], "at": {"3": 0.5}, "right": True}]


def test_what_a_stored_run_can_t_hold_is_refused_by_name():
    def training():
        return {"result": {}, "examples": [{"file": Path("data")}]}

    with pytest.raises(TypeError, match=r"examples\[0\]\['file'\] is a PosixPath"):
        stored()(training).make({})


def declare(monkeypatch, *seeds, version=1):
    """Declares the training of these seeds."""
    declaration = stored(cases=[{"seed": seed} for seed in seeds], version=version)(training)
    monkeypatch.setattr(runs, "declared", lambda slug: {"training": declaration})
    return declaration


made: list[int] = []


def test_an_interrupted_series_goes_on_where_it_stopped(folder, monkeypatch):
    made.clear()
    declare(monkeypatch, *range(4))
    with pytest.raises(KeyboardInterrupt):
        runs.make("somewhere", say=lambda line: None)
    runs.make("somewhere", say=lambda line: None)
    assert made == [0, 1, 2, 2, 3] and not runs.to_make("somewhere")
    assert [run.config["seed"] for run in stored_runs("somewhere")] == [0, 1, 2, 3]
    first = stored_runs("somewhere")[0]
    assert first.curves == {"loss": [[1, 0.5]]}
    assert first.examples == [{"said": ["été", "."], "weights": [[0.75, 0.25], [0.5, 0.5]]}]


def test_a_function_with_a_new_version_has_its_cases_missing(folder, monkeypatch):
    declaration = declare(monkeypatch, 0)
    write("somewhere", declaration.make({"seed": 0}))
    assert not runs.to_make("somewhere")
    changed = declare(monkeypatch, 0, version=2)
    assert runs.to_make("somewhere") == [(changed, {"seed": 0})]


def test_a_case_whose_stored_model_is_missing_is_made_again(folder, monkeypatch):
    declaration = stored(cases=[{"seed": 0}, {"seed": 1}], saves={"nowhere": {"seed": 1}})(training)
    monkeypatch.setattr(runs, "declared", lambda slug: {"training": declaration})
    write("somewhere", declaration.make({"seed": 0}), declaration.make({"seed": 1}))
    assert runs.to_make("somewhere") == [(declaration, {"seed": 1})]


def store_thirty(seeds):
    for seed in seeds:
        write("somewhere", dataclasses.replace(RUN, config={"seed": seed}))


def test_two_processes_that_store_thirty_runs_each_keep_sixty(folder):
    fork = multiprocessing.get_context("fork")
    others = [fork.Process(target=store_thirty, args=(range(n, n + 30),)) for n in (0, 30)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert {run.config["seed"] for run in stored_runs("somewhere")} == set(range(60))


# What the course brings along -------------------------------------------------------------------


@pytest.mark.parametrize("slug", DECLARED)
def test_every_declared_run_is_stored(slug):
    absent = [f"{one.name}{case}" for one, case in runs.to_make(slug)]
    there = {run.key for run in runs.read(slug)}
    absent += [
        f"{one.name}{case}, for a GPU"
        for one, case in runs.to_make(slug, gpu=True)
        if (one.name, config_key(case)) in there
    ]
    assert not absent, f"make runs CHAPTER={slug}: {absent[:3]} … ({len(absent)} in all)"


@pytest.mark.parametrize("path", sorted(runs.RUNS.glob("*.json")), ids=lambda path: path.stem)
def test_every_stored_run_is_declared(path):
    known = {
        (one.name, config_key(c)) for one in runs.declared(path.stem).values() for c in one.cases
    }
    for run in stored_runs(path.stem):
        assert run.key in known
        assert run.date and run.machine and run.seconds > 0 and run.threads > 0
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text and "/home/" not in text


def test_a_run_function_is_found_in_whatever_module_of_its_lesson_it_is_written():
    for path in LESSONS.glob("*/*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        written = {f.name for f in functions if any("stored(" in ast.unparse(d) for d in f.decorator_list)}  # fmt: skip
        assert written <= DECLARED.get(path.parent.name, {}).keys(), path
        for name in written:
            assert DECLARED[path.parent.name][name].function.__module__.endswith(path.stem)


def test_each_stored_model_is_made_by_one_case_of_a_run_function():
    makers: dict[str, int] = {}
    for function in (each for slug in DECLARED for each in runs.declared(slug).values()):
        for name in (name for case in function.cases for name in function.models_of(case)):
            makers[name] = makers.get(name, 0) + 1
    assert makers == {path.stem: 1 for path in live.MODELS.glob("*.npz")}


def test_data_and_stored_models_are_what_the_checksums_say():
    lines = (ROOT / "data" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: sha for sha, name in (line.split() for line in lines)}
    assert {f"models/{path.name}" for path in live.MODELS.glob("[!.]*")} <= set(sums)
    for name, sha in sums.items():
        assert sha == hashlib.sha256((ROOT / "data" / name).read_bytes()).hexdigest(), name


# At full size, where there is a GPU and somebody asks for it ---------------------------------------


@pytest.fixture
def large(folder, monkeypatch):
    """A run at full size, on a machine that seems to have a GPU."""
    made.clear()
    declaration = stored(cases=[{"seed": 7}], minutes=90)(training)
    of_gpt = {"gpt": {"training": declaration}}
    monkeypatch.setattr(runs, "declared", lambda slug: of_gpt.get(slug, {}))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    return declaration


def test_a_gpu_trains_nothing_unasked(large):
    placeholder = stored_run("gpt", "training")
    assert "no run is stored yet. `make gpu`" in repr(placeholder)
    shown = placeholder._repr_mimebundle_()
    assert shown[MADE_BY] == {"run": "training", "stored": False}
    assert not RUN._repr_mimebundle_()
    assert main(["13"]) == 0
    assert not made and not runs.read("gpt")


def test_asked_for_it_says_the_minutes_trains_and_stores(large, capsys):
    assert main(["--gpu", "13_gpt"]) == 0
    said = capsys.readouterr().out
    assert said.index("about 90 minutes") < said.index("Some GPU") and made == [7]
    assert stored_run("gpt", "training", seed=7).result == {"score": 7.0}
    assert main(["--gpu", "13_gpt"]) == 0 and made == [7]
