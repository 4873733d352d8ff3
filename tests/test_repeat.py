"""Stored runs made again: the same bits on the same processor, as good a result on another, and nothing written."""

import math

import pytest
import torch

from course_utils.data.registry import DataUnavailable
from course_utils.files import ROOT
from course_utils.kit import repeat, runs, stored_model
from course_utils.kit.repeat import cheapest, differences
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel
from course_utils.kit.stored_run import StoredRun
from course_utils.studio import StudioError, manifest
from course_utils.studio.runs import changed_files, main, touched

COURSE = manifest.load().whole
FACTOR, SHOWN = 1.0, "."


def training(*, seed: int) -> dict:
    return {
        "result": {"score": FACTOR * (0.5 + 0.1 * seed), "seconds": len(made) + 1.0},
        "curves": {"loss": [(1, 0.5), (2, math.nan)]},
        "examples": [{"said": ("été", SHOWN)}],
    }


made: list[int] = []


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A run function of lesson 13 with the runs of three seeds; the second took the shortest time."""
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    declaration = stored(seeds=range(3), times=("seconds",))(training)
    monkeypatch.setattr(type(declaration), "slug", "gpt")
    monkeypatch.setattr(runs, "declared", lambda slug: {"training": declaration})
    monkeypatch.setattr(repeat, "declared", runs.declared)
    for seed, seconds in enumerate((3.0, 2.0, 4.0)):
        run = declaration.make({"seed": seed})
        runs.write("gpt", StoredRun(**(vars(run) | {"seconds": seconds})))
    made.append(1)  # from now on the time is another one
    yield declaration
    made.clear()


def test_the_cheapest_case_of_a_function_comes_out_again_bit_for_bit_but_for_times(known, capsys):
    assert main(["--again", "13_gpt"]) == 0
    said = capsys.readouterr().out
    assert said == "gpt, training {'seed': 1}: the same, bit for bit\n"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"FACTOR": 1.01}, "result, score: 0.6 is stored, 0.606 came out"),
        ({"SHOWN": "!"}, "examples, 0, said, 1: '.' is stored, '!' came out"),
    ],
)
def test_each_number_that_has_changed_is_told_with_both_values(known, monkeypatch, capsys, changed, said):  # fmt: skip
    for name, value in changed.items():
        monkeypatch.setitem(globals(), name, value)
    before = (runs.RUNS / "gpt.json").read_bytes()
    assert main(["--again", "13_gpt"]) == 1
    told = capsys.readouterr().out
    assert said in told and "1 other numbers" in told
    assert (runs.RUNS / "gpt.json").read_bytes() == before


@pytest.mark.parametrize(("factor", "same"), [(1.0, True), (1.5, True), (1.6, False), (0.4, False)])
@pytest.mark.parametrize("another", ["processor", "instruction set"])
def test_on_another_processor_a_result_has_to_be_as_good_as_another_seed(
    known, monkeypatch, factor, same, another
):
    """Of 0.5, 0.6 and 0.7 the second comes out as 0.9, 0.96 or 0.24; 0.2 + 0.01 beyond them is room."""
    if another == "processor":
        monkeypatch.setattr(runs, "cpu_model", lambda: "Another processor")
    else:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "Another set")
    monkeypatch.setitem(globals(), "FACTOR", factor)
    ((declaration, run),) = cheapest("gpt")
    outcome = repeat.repeat(declaration, run)
    assert not outcome.exact and outcome.same is same
    assert bool(outcome.differences) is (factor != 1.0)
    assert ("0.5 to 0.7 are stored" in repr(outcome)) is not same


def test_a_file_that_is_not_there_is_a_reason_to_skip(known, monkeypatch):
    def unavailable(**case):
        raise DataUnavailable("fra-eng: the download failed\n  file: …")

    ((_, run),) = cheapest("gpt")
    outcome = repeat.repeat(stored(seeds=range(3))(unavailable), run)
    assert repr(outcome) == "training {'seed': 1}: skipped, fra-eng: the download failed"
    assert not outcome.same


def with_a_model(*, seed: int) -> dict:
    model = StoredModel.of(torch.nn.Linear(1, 2), {"out_features": 2})
    return training(seed=seed) | {"models": {"tiny": model}, "cards": {"tiny": {"score": 0.5}}}


def test_a_model_that_a_run_returns_is_written_when_it_is_made_and_not_when_it_is_repeated(
    known, tmp_path, monkeypatch
):
    models = tmp_path / "models"
    models.mkdir()
    (tmp_path / "SHA256SUMS").touch()
    monkeypatch.setattr(stored_model, "MODELS", models)
    ((_, run),) = cheapest("gpt")
    declaration = stored(seeds=range(3), times=("seconds",))(with_a_model)
    repeat.repeat(declaration, run)
    assert not list(models.iterdir())
    declaration.make(run.config, publish=True)
    assert stored_model.load_model("tiny").config == {"out_features": 2}
    assert stored_model.read_card("tiny") == {"score": 0.5}
    sums = (tmp_path / "SHA256SUMS").read_text("utf-8")
    assert "models/tiny.npz" in sums and "models/tiny.json" in sums


def test_what_is_missing_or_longer_is_a_difference_and_two_times_no_number_is_none():
    assert list(differences({"a": [1, math.nan]}, {"a": [1, math.nan]})) == []
    assert len(list(differences({"a": [1]}, {"a": [1, 2]}))) == 1
    assert len(list(differences({"a": 1, "b": 2}, {"a": 1, "c": 2}))) == 2


def test_what_a_change_could_touch_is_read_from_imports_file_by_file():
    pytest.importorskip("grimp")
    lines = touched(COURSE.chapters, ["course_utils/train/schedules.py", "data/prose/story.txt"])
    assert any(line == "gpt, ladder: course_utils.train.schedules" for line in lines)
    for computes in ("train/steps.py", "kit/stored_model.py"):
        assert touched(COURSE.chapters, [f"course_utils/{computes}"]), computes
    assert lines[-1] == "whatever reads data/prose/story.txt"
    assert not touched(COURSE.chapters, ["README.md", "course_utils/kit/runs.py"])
    chapter = touched(COURSE.chapters, ["notebooks/source/09_positions.py"])
    assert chapter and all(line.startswith("positions, ") for line in chapter)
    if (ROOT / ".git").exists():
        assert changed_files("HEAD") is not None


def test_what_changed_is_not_asked_where_no_git_is(tmp_path, monkeypatch):
    monkeypatch.setattr("course_utils.studio.runs.ROOT", tmp_path)
    with pytest.raises(StudioError, match="in a clone of the course"):
        changed_files("HEAD")


# By night: one case of each function ------------------------------------------------------------

LONGEST = 60
"""Stored seconds up to which a case is made by night; of the longer ones `studio.runs --again` makes one."""
OF_THE_DAY = {("real_weights", "search")}
"""Runs that read the course's own pages, so they give other numbers when a page has changed."""
RESUMED = {("translating", "everyday")}
"""Runs that went on from a checkpoint, so their stored seconds are those of the last part; they take far longer."""
NOT_TONIGHT = OF_THE_DAY | RESUMED
TONIGHT = {
    (chapter.slug, declaration.name): (declaration, run)
    for chapter in COURSE.chapters
    for declaration, run in cheapest(chapter.slug)
    if run.seconds <= LONGEST
}


def test_every_exception_is_a_function_that_is_made_by_night():
    assert TONIGHT.keys() >= NOT_TONIGHT


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("slug", "name"), sorted(TONIGHT.keys() - NOT_TONIGHT))
def test_the_cheapest_case_of_each_run_function_comes_out_as_stored(slug, name):
    torch.set_num_threads(1)
    outcome = repeat.repeat(*TONIGHT[slug, name])
    print(outcome)
    if outcome.unavailable:
        pytest.skip(outcome.unavailable)
    assert outcome.same, str(outcome)
