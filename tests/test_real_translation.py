"""Real pairs from Tatoeba: the archives in both layouts, and the benchmark that trains on them."""

import importlib.util
import json
import random
import re
import zipfile

import pytest
import torch

import course_utils as cu
from course_utils.data.registry import DataUnavailable, cache_folder
from course_utils.data.translation import Pair
from course_utils.runtime import ROOT

NOTE = b" " * 2_100_000  # an archive of plausible size, without as many sentences


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Writes an archive into an offline cache, as an unknown release put there by hand."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setenv("COURSE_OFFLINE", "1")

    def write(lines, member="fra.txt", file="fra-eng.zip"):
        with zipfile.ZipFile(tmp_path / file, "w") as zipped:
            zipped.writestr(member, "".join(f"{line}\n" for line in lines))
            zipped.writestr("_about.txt", NOTE)
        return tmp_path / file

    return write


AUTHORS = "CC-BY 2.0 (France) Attribution: tatoeba.org #2877272 (CM) & #1158250 (Wittydev)"


@pytest.mark.parametrize("member", ["fra.txt", "fra-eng/fra.txt"])
@pytest.mark.parametrize("third", ["", "\t" + AUTHORS])
def test_both_layouts_of_the_archive_are_read(archive, member, third):
    archive([f"Go.\tVa\u202f!{third}", f"I'm home.\tJe suis\u2009chez\u00a0moi.{third}"], member)
    pairs = [
        Pair(("go", "."), ("va", "!")),
        Pair(("i'm", "home", "."), ("je", "suis", "chez", "moi", ".")),
    ]
    assert cu.load_tatoeba("fr") == pairs
    assert cu.load_tatoeba("fr", max_tokens=4) == pairs[:1]


def test_spanish_has_an_archive_of_its_own(archive, capsys):
    archive(["Go.\tVe."], "spa.txt", "spa-eng.zip")
    assert cu.load_tatoeba("es") == [Pair(("go", "."), ("ve", "."))]
    assert "spa-eng.zip: a release that the course was not tested with" in capsys.readouterr().err


def test_a_line_ends_where_the_file_says_so(archive):
    archive(["Go\u2028on.\tVa\u0085!"])
    assert cu.load_tatoeba("fr") == [Pair(("go", "on", "."), ("va", "!"))]


def test_without_the_archive_the_message_says_where_to_put_it(tmp_path, archive):
    with pytest.raises(DataUnavailable) as error:
        cu.load_tatoeba("fr")
    for part in (
        "COURSE_OFFLINE=1 forbids the download",
        "https://www.manythings.org/anki/fra-eng.zip",
        "161c93f18da3a7e6df611ed961426613260de8af06ccf8c79c977afe5135ac44 or any newer release",
        f"put it at {tmp_path / 'fra-eng.zip'}",
    ):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="language='fra' is unknown; choose one of fr, es"):
        cu.load_tatoeba("fra")


def test_the_real_archive_is_read_where_one_is_at_hand(monkeypatch):
    archive = cache_folder() / "fra-eng.zip"
    if not archive.is_file():
        pytest.skip(f"no fra-eng.zip in {archive.parent}; COURSE_CACHE names the folder")
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    pairs = cu.load_tatoeba("fr", max_tokens=10)
    assert len(pairs) > 100_000
    sides = [side for pair in pairs for side in (pair.source, pair.target)]
    assert all(0 < len(side) <= 10 for side in sides)
    assert not any(re.search(r"\s", token) for side in sides for token in side)


# The benchmark ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark():
    path = ROOT / "benchmarks" / "real_translation.py"
    spec = importlib.util.spec_from_file_location("real_translation", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def threads():
    """The benchmark sets their number; put it back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def sentences(count):
    """Lines of a made-up language: words that translate one by one, and some of two translations."""
    generator = random.Random(0)
    for _ in range(count):
        words = [generator.choice("abcdefgh") for _ in range(generator.randint(2, 5))]
        yield f"{' '.join(words)}.\t{' '.join(2 * word for word in words)}."
        if generator.random() < 0.2:
            yield f"{' '.join(words)}.\t{' '.join(2 * word for word in words)}!"


def test_no_source_is_in_two_parts_of_the_split(benchmark):
    pairs = [Pair((str(i % 300),), (str(i % 500),)) for i in range(2000)]
    data = benchmark.split(pairs, num_train=100, num_held_out=40, seed=0)
    sources = [{pair.source for pair in part} for part in (data.train, data.validation, data.test)]
    assert not (sources[0] & sources[1] or sources[0] & sources[2] or sources[1] & sources[2])
    assert len(data.train) == len(set(data.train)) == 100
    assert len(data.validation) == len(data.test) == len(sources[1]) == len(sources[2]) == 40
    assert data == benchmark.split(pairs, num_train=100, num_held_out=40, seed=0)
    with pytest.raises(ValueError, match="9999 training pairs are asked for"):
        benchmark.split(pairs, num_train=9999, num_held_out=40, seed=0)


SMALL = ["--pairs", "300", "--held-out", "20", "--threads", "1", "--beam", "2"]


@pytest.mark.slow
def test_a_small_run_trains_scores_and_writes_its_result(
    benchmark, archive, threads, monkeypatch, tmp_path, capsys
):
    archive(sentences(600))
    monkeypatch.setattr(benchmark, "SHAPE", benchmark.SHAPE | {"embed_dim": 32, "ffn_dim": 32})
    result = benchmark.main([*SMALL, "--epochs", "2", "--json", str(tmp_path / "result.json")])
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert (result["epochs"], result["stopped"], result["scored"]) == (2, "finished", "test")
    assert result["train_pairs"] == 300 and result["held_out_sources"] == 20
    assert 0 <= result["bleu"] <= 100
    printed = capsys.readouterr().out
    assert printed.count("said:") == 5 and "BLEU" in printed and "<unk>" not in printed


def test_the_time_limit_ends_training_and_the_score_is_still_made(
    benchmark, archive, threads, capsys
):
    archive(sentences(600))
    result = benchmark.main([*SMALL, "--validate", "--epochs", "500", "--time-limit", "0.5"])
    assert result["stopped"] == "time limit" and result["scored"] == "validation"
    assert result["epochs"] < 500 and "bleu" in result
