"""A doctor that finds each fault and says what to do about it."""

import re
from types import SimpleNamespace

import pytest
import torch

import course_utils as cu
from course_utils.data import registry
from course_utils.kit import doctor
from course_utils.studio import manifest, notebook_files


def memory(free: float):
    return lambda: SimpleNamespace(available=free * 1e9, total=8e9)


@pytest.fixture(autouse=True)
def _as_for_a_reader(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "0")


def test_a_report_is_lines_in_a_terminal_and_a_table_without_foreign_markup_in_a_notebook():
    text = r"GPU <b>*Big*</b> `x` | [a](b) C:\d_e_f"
    report = doctor.Findings(
        Python=doctor.Finding("✓", "3.11"), PyTorch=doctor.Finding("✗", text, "`install` it")
    )
    assert repr(report) == (
        f"✓ Python    3.11\n✗ PyTorch   {text}\n            → `install` it\nFix the lines with ✗."
    )
    line = report._repr_markdown_().splitlines()[3]
    assert re.sub(r"\\(.)", r"\1", line) == f"| ✗ | PyTorch | {text} | `install` it |"
    assert not re.search(r"(?<!\\)[<*\[_]", line)


def test_this_environment_is_fit_and_the_report_names_no_folder():
    report = cu.doctor()
    assert list(report) == list(doctor.FINDERS) and str(doctor.ROOT) not in repr(report)
    assert all(report[name].mark != "✗" for name in doctor.FINDERS if name != "Memory"), report
    assert str(torch.__version__) in report["PyTorch"].found


def test_what_breaks_is_said_beside_the_rest(monkeypatch):
    monkeypatch.setitem(doctor.FINDERS, "PyTorch", lambda: 1 / 0)
    report = cu.doctor()
    assert report["PyTorch"].found == "ZeroDivisionError: division by zero"
    assert "make lab" in report["PyTorch"].remedy and not report.ok
    assert report["Python"].mark == "✓" and "✗" in report.verdict


@pytest.fixture
def versions(monkeypatch):
    """Fake versions of installed packages; an empty one is missing."""
    real, fake = doctor._version, {}
    monkeypatch.setattr(doctor, "_version", lambda name: fake.get(name, real(name)))
    return fake


@pytest.mark.parametrize(
    ("package", "version", "subject", "mark", "found", "remedy"),
    [
        ("pandas", "", "Packages", "✗", "missing: pandas", "pip install.*restart the kernel"),
        ("pandas", "1.0", "Packages", "○", "pandas 1.0 (tested: ", "^only if a cell fails"),
        ("anywidget", "", "Widgets", "✗", "anywidget is missing", "reload the page"),
        ("ipywidgets", "", "Widgets", "✗", "ipywidgets is missing", "reload the page"),
    ],
)
def test_a_package_that_is_missing_or_at_another_version(
    versions, package, version, subject, mark, found, remedy
):
    versions[package] = version
    finding = cu.doctor()[subject]
    assert finding.mark == mark and found in finding.found and re.search(remedy, finding.remedy)


def test_a_widget_without_its_extension_in_lab(monkeypatch, tmp_path):
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda part: [str(tmp_path / part)])
    (tmp_path / "labextensions" / doctor.WIDGETS["ipywidgets"]).mkdir(parents=True)
    finding = cu.doctor()["Widgets"]
    assert finding.mark == "✗" and finding.found == "JupyterLab lacks the extension of anywidget"


@pytest.mark.parametrize(
    ("subject", "place", "fake", "mark", "found", "remedy"),
    [
        ("Python", "sys.version_info", (3, 10, 4), "✗", "3.", "Python 3.11 or newer"),
        ("Memory", "psutil.virtual_memory", memory(1.1), "✓", "1.1 GB free of 8.0 GB", "^$"),
        ("Memory", "psutil.virtual_memory", memory(0.9), "✗", "0.9 GB free of 8.0 GB", "Shut Down"),
        ("PyTorch", "torch.cuda.is_available", lambda: False, "✓", "no GPU", "^$"),
    ],
)
def test_an_old_python_and_little_memory(monkeypatch, subject, place, fake, mark, found, remedy):
    monkeypatch.setattr(place, fake)
    finding = cu.doctor()[subject]
    assert finding.mark == mark and found in finding.found and re.search(remedy, finding.remedy)


def test_weights_are_optional_and_the_report_says_how_to_get_them(monkeypatch, tmp_path):
    """It never asks the network, and a whole file in the cache is recognized by its SHA-256."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setattr("subprocess.Popen", None)
    entry = registry.registered()["smollm2"]
    (tmp_path / entry.file).write_bytes(b"half")
    report = cu.doctor()
    assert report["Weights"].mark == "○" and "recorded answers" in report["Weights"].found
    assert '`cu.fetch("smollm2")` in a cell (93 MB)' in report["Weights"].remedy and report.ok
    monkeypatch.setattr(registry, "_sha256_of", lambda path, *_: entry.sha256[0])
    assert cu.doctor()["Weights"] == doctor.Finding("✓", "SmolLM2, for the chapter Real weights")


def test_a_page_shows_nothing_of_its_authors_machine(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    report = cu.doctor()
    assert {finding.mark for finding in report.values()} == {"·"}
    notebooks = manifest.load(files=False).whole.notebooks
    made = [
        cell
        for notebook in notebooks
        for cell in notebook_files.read_notebook(notebook.ipynb).cells
    ]
    (shown,) = [cell for cell in made if cell.source == "cu.doctor()"]
    assert shown.outputs[0].data["text/plain"] == repr(report)
