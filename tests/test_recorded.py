"""GPU cells: run in small on any device, recorded at full size, and never silently left out."""

import dataclasses
import json
import subprocess
import sys

import pytest
import torch

from course_utils.lessons import runs as recorded
from course_utils.lessons.runs import RecordedRun, gpu_run, record, recorded_run
from course_utils.runtime import ROOT
from course_utils.studio import gpu, manifest

COURSE = manifest.load()
RUN = RecordedRun("vit", "2026-11-21", "Some GPU", 61.4, {"accuracy": 0.93456})


def test_a_recorded_run_says_its_figures_device_time_and_date(tmp_path):
    path = tmp_path / "runs.json"
    record(dataclasses.replace(RUN, figures={"accuracy": 0.1}), path=path)
    record(RUN, path=path)
    record(dataclasses.replace(RUN, key="gpt"), path=path)
    assert recorded_run("vit", path=path) == RUN
    assert repr(RUN) == "vit: accuracy 0.9346 (Some GPU, 61 s, 2026-11-21)"
    assert list(json.loads(path.read_text())) == ["gpt", "vit"]
    assert not list(tmp_path.glob("*.part"))


def test_a_run_that_nobody_did_is_said_to_be_missing(tmp_path):
    assert "no run is recorded" in repr(recorded_run("vit", path=tmp_path / "none.json"))


@pytest.fixture
def records(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "RECORDS", tmp_path / "runs.json")
    monkeypatch.delenv("COURSE_QUICK", raising=False)
    monkeypatch.setenv("COURSE_RECORD", "1")
    return recorded.RECORDS


def test_without_a_gpu_nothing_runs_and_the_record_is_shown(records, monkeypatch):
    monkeypatch.setattr(recorded, "has_gpu", lambda: False)
    record(RUN)
    assert gpu_run("vit", pytest.fail) == RUN


def test_with_a_gpu_the_run_is_done_and_written(records, monkeypatch):
    monkeypatch.setattr(recorded, "has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    result = gpu_run("vit", lambda quick: {"accuracy": 0.5, "quick": quick})
    assert result.figures == {"accuracy": 0.5, "quick": 0.0}
    assert recorded_run("vit", path=records) == result and result.device == "Some GPU"


def test_a_quick_run_is_never_written(records, monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert gpu_run("vit", lambda quick: {"quick": quick}).figures == {"quick": 1.0}
    assert not records.exists()


def test_without_a_gpu_the_command_says_so_and_fails():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = subprocess.run(
        [sys.executable, "-m", "course_utils.studio.gpu"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1 and "There is no GPU here" in done.stderr


def test_a_chapter_s_record_belongs_to_one_of_its_gpu_cells():
    code = "\n".join(cell for chapter in COURSE.chapters for cell in gpu.gpu_code(chapter))
    assert not [key for key in json.loads(recorded.RECORDS.read_text()) if f'"{key}"' not in code]


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.notebook)
def test_the_manifest_says_which_chapters_have_gpu_cells(chapter):
    assert chapter.gpu is bool(gpu.gpu_code(chapter))


@pytest.mark.parametrize(
    "chapter", [c for c in COURSE.chapters if c.gpu], ids=lambda chapter: chapter.notebook
)
def test_gpu_cells_run_in_small_on_a_cpu(chapter, monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    results = gpu.run(chapter)
    assert results and all(result.figures for result in results)
