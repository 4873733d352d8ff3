"""A doctor that finds each fault and says what to do about it."""

import hashlib
import importlib.metadata
import re
import shutil
from collections import namedtuple
from types import SimpleNamespace

import psutil
import pytest
import torch

import course_utils as cu
from course_utils.studio import doctor, manifest, pairs

GB = 10**9


# The report -------------------------------------------------------------------------------------


@pytest.fixture
def report():
    return doctor.Report(
        {
            "Python": doctor.Finding("3.11"),
            "Threads": doctor.Finding("1 on 2", "for more speed: unset it", needed=False),
            "Data": doctor.Finding("changed: a|b", "restore it"),
        }
    )


def test_the_report_is_aligned_in_a_terminal(report):
    assert repr(report) == (
        "✓ Python   3.11\n"
        "○ Threads  1 on 2\n"
        "           → for more speed: unset it\n"
        "✗ Data     changed: a|b\n"
        "           → restore it\n"
        "To fix: Data. The line after it says how."
    )


def test_nothing_that_was_found_is_markup():
    text = r"GPU <b>*Big*</b> `x` | [a](b) C:\d_e_f"
    line = doctor.Report({"Device": doctor.Finding(text)})._repr_markdown_().splitlines()[2]
    assert re.sub(r"\\(.)", r"\1", line) == f"| ✓ | Device | {text} |  |"
    assert not re.search(r"(?<!\\)[<*`\[_]", line)


def test_what_could_be_better_keeps_all_well(report):
    assert not report.ok
    del report.findings["Data"]
    assert report.ok and "All is well" in report.verdict


def test_the_doctor_looks_at_everything_and_names_no_folder():
    report = cu.doctor()
    assert list(report.findings) == list(doctor.LOOKS)
    assert str(doctor.ROOT) not in repr(report)
    assert all(finding.found for finding in report.findings.values())


def test_this_environment_is_fit_for_the_course():
    findings = cu.doctor().findings
    for subject in ("Python", "PyTorch", "Packages", "Data", "Sliders"):
        assert findings[subject].ok, repr(findings[subject])


def test_what_cannot_be_looked_at_is_said(monkeypatch):
    def ill():
        raise OSError("no such\ndevice")

    monkeypatch.setitem(doctor.LOOKS, "Disk", ill)
    finding = cu.doctor().findings["Disk"]
    assert finding.found == "could not be looked at (OSError: no such device)"
    assert finding.ok and "make lab" in finding.remedy


@pytest.fixture
def look(monkeypatch):
    """The doctor's finding on one subject."""
    looks = dict(doctor.LOOKS)

    def one(subject):
        monkeypatch.setattr(doctor, "LOOKS", {subject: looks[subject]})
        return cu.doctor().findings[subject]

    return one


# Each finding -----------------------------------------------------------------------------------


def test_an_old_python(monkeypatch, look):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 4))
    finding = look("Python")
    assert finding.mark == "✗" and "Python 3.11 or newer" in finding.remedy


@pytest.mark.parametrize(("version", "mark"), [("2.9.1", "✗"), ("2.13.0+cpu", "✓"), ("3.0", "✓")])
def test_an_old_pytorch(monkeypatch, version, mark, look):
    monkeypatch.setattr(torch, "__version__", version)
    finding = look("PyTorch")
    assert finding.mark == mark and ("constraints.txt" in finding.remedy) == (mark == "✗")


def test_the_pytorch_needed_is_the_one_in_pyproject():
    project = (doctor.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    asked = re.search(r'"torch[=>]=(\d+)\.(\d+)', project).groups()
    assert tuple(map(int, asked)) == doctor.TORCH_NEEDED


@pytest.fixture
def versions(monkeypatch):
    """Fake versions of installed packages; None is missing."""
    real, fake = importlib.metadata.version, {}

    def version(name):
        if name not in fake:
            return real(name)
        if fake[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return fake[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    return fake


@pytest.mark.parametrize(
    ("version", "mark", "found", "remedy"),
    [
        (None, "✗", "missing: pandas", "pip install -c constraints.txt -e .*restart the kernel"),
        ("1.0", "○", "pandas 1.0 (tested: ", "^only if a cell fails"),
    ],
)
def test_a_package_that_is_missing_or_at_another_version(
    versions, look, version, mark, found, remedy
):
    versions["pandas"] = version
    finding = look("Packages")
    assert finding.mark == mark and found in finding.found and re.search(remedy, finding.remedy)


def test_a_gpu_that_pytorch_sees(monkeypatch, look):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Big One")
    memory = SimpleNamespace(total_memory=80 * GB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: memory)
    finding = look("Device")
    assert finding.mark == "✓" and finding.found.startswith("GPU: Big One, 80 GB")


@pytest.mark.parametrize(("tool", "mark"), [("/usr/bin/nvidia-smi", "○"), (None, "✓")])
def test_a_gpu_that_pytorch_does_not_see(monkeypatch, tool, mark, look):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: tool)
    finding = look("Device")
    assert finding.mark == mark and finding.found.startswith("CPU")
    assert ("CUDA build" in finding.remedy) == (mark == "○")


@pytest.mark.parametrize(
    ("threads", "cores", "mark", "found"),
    [
        (8, 2, "✗", "8 on 2 cores"),
        (1, 1, "✓", "1 on 1 core"),
        (1, 4, "○", "1 on 4 cores"),
        (4, 8, "✓", "4 on 8 cores"),
    ],
)
def test_threads_and_cores(monkeypatch, threads, cores, mark, found, look):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(doctor, "cores", lambda: cores)
    finding = look("Threads")
    assert finding.mark == mark and finding.found.startswith(found)
    assert ("OMP_NUM_THREADS" in finding.remedy) == (mark != "✓")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of 16 cores and 64 GB, 60 of them free; called, it writes the limits of a control group."""
    memory = SimpleNamespace(total=64 * GB, available=60 * GB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.setattr(doctor, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(doctor, "LIMITS", tmp_path)

    def limit(groups="0::/", folder=".", **files):
        (tmp_path / "cgroup").write_text(groups + "\n")
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (tmp_path / folder / name.replace("__", ".")).write_text(f"{text}\n")

    limit.memory = memory
    return limit


VERSION_1 = "4:memory:/docker/1f\n3:cpu,cpuacct:/docker/1f"
FIRST = {"groups": VERSION_1, "folder": "cpu"}
MEMORY = {"groups": VERSION_1, "folder": "memory"}
USED = f"rss 1\ntotal_rss {GB}"
SESSION = "0::/user.slice/session-1.scope"


@pytest.mark.parametrize(
    ("limits", "cores"),
    [
        ({}, 16),
        ({"cpu__max": "150000 100000"}, 2),
        ({"cpu__max": "max 100000"}, 16),
        ({"groups": SESSION, "folder": "user.slice", "cpu__max": "200000 100000"}, 2),
        ({**FIRST, "cpu__cfs_quota_us": 300000, "cpu__cfs_period_us": 100000}, 3),
        ({**FIRST, "cpu__cfs_quota_us": -1, "cpu__cfs_period_us": 100000}, 16),
    ],
)
def test_the_cores_of_a_container(machine, look, monkeypatch, limits, cores):
    machine(**limits)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 17)
    found = look("Threads")
    assert found.found.startswith(f"17 on {cores} core")
    assert f"set_num_threads({cores})" in found.remedy


@pytest.mark.parametrize(("free", "mark"), [(0.7, "✗"), (1.2, "✓"), (6, "✓")])
def test_free_memory(machine, look, free, mark):
    machine.memory.available = free * GB
    finding = look("Memory")
    assert finding.mark == mark and finding.found == f"{free:.1f} GB free of 64 GB"
    assert ("Shut Down All Kernels" in finding.remedy) == (mark == "✗")


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ({"memory__max": 4 * GB, "memory__stat": f"anon {3 * GB}\nfile 7"}, "1.0 GB free of 4.0 GB"),
        ({"memory__max": "max"}, "60 GB free of 64 GB"),
        ({"groups": SESSION, "folder": "user.slice", "memory__max": 2 * GB}, "2.0 GB free of 2.0 GB"),
        ({**MEMORY, "memory__limit_in_bytes": 2 * GB, "memory__stat": USED}, "1.0 GB free of 2.0 GB"),
        ({**MEMORY, "memory__limit_in_bytes": 2**63 - 4096}, "60 GB free of 64 GB"),
    ],
)  # fmt: skip
def test_the_memory_of_a_container(machine, look, limits, found):
    machine(**limits)
    assert look("Memory").found == found


@pytest.mark.parametrize(("free", "mark"), [(0.2, "✗"), (30, "✓")])
def test_free_disk(monkeypatch, free, mark, look):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, free * GB))
    finding = look("Disk")
    assert finding.mark == mark and ("free some space" in finding.remedy) == (mark == "✗")


@pytest.fixture
def data(monkeypatch, tmp_path):
    """A course with two data files as published."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = []
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text(name)
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    return folder


def test_data_that_is_missing_or_changed(data, look):
    assert look("Data") == doctor.Finding("2 files in data, as published")
    (data / "a.csv").unlink()
    (data / "b.csv").write_text("spoiled")
    finding = look("Data")
    assert finding.mark == "✗" and finding.found == "missing: a.csv; changed: b.csv"
    assert finding.remedy.endswith("`git checkout -- data/a.csv data/b.csv`")


@pytest.fixture
def jupyter(monkeypatch, tmp_path):
    """Where Jupyter looks: one folder of its data and one of its configuration, both ours."""
    for extension in doctor.WIDGETS.values():
        (tmp_path / "labextensions" / extension).mkdir(parents=True)
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda part: [str(tmp_path / part)])
    monkeypatch.setattr("jupyter_core.paths.jupyter_config_path", lambda: [str(tmp_path)])
    (tmp_path / "labconfig").mkdir()
    return tmp_path


@pytest.mark.parametrize(("package", "extension"), doctor.WIDGETS.items())
def test_sliders_without_their_package_or_its_extension(
    jupyter, versions, package, extension, look
):
    shutil.rmtree(jupyter / "labextensions" / extension)
    finding = look("Sliders")
    assert finding.mark == "✗" and f"{package} " in finding.found and "make lab" in finding.remedy
    assert "lacks its extension" in finding.found
    versions[package] = None
    finding = look("Sliders")
    assert finding.mark == "✗" and finding.found.startswith(f"{package} is missing")
    assert "reload the page" in finding.remedy


@pytest.mark.parametrize("extension", doctor.WIDGETS.values())
@pytest.mark.parametrize("off", ['{"%s": true}', '["%s"]'])
def test_sliders_that_are_switched_off(jupyter, off, extension, look):
    page = f'{{"disabledExtensions": {off % extension}}}'
    (jupyter / "labconfig" / "page_config.json").write_text(page)
    finding = look("Sliders")
    assert finding.mark == "✗"
    assert f"jupyter labextension enable {extension}`" in finding.remedy


def test_a_page_shows_nothing_of_its_author_s_machine(monkeypatch):
    monkeypatch.setenv("COURSE_NEUTRAL", "1")
    report = cu.doctor()
    assert set(report.findings.values()) == {doctor.UNSEEN} and "✓" not in repr(report)
    notebooks = manifest.load(files=False).whole.notebooks
    made = [cell for notebook in notebooks for cell in pairs.read(notebook.ipynb).cells]
    (shown,) = [cell for cell in made if cell.source == "cu.doctor()"]
    assert shown.outputs[0].data["text/plain"] == repr(report)
