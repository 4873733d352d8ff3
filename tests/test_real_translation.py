"""Real pairs from Tatoeba: the archives in both layouts, and the benchmark and the runs that train on them."""

import importlib.util
import json
import random
import re
import zipfile

import pytest
import torch

from course_utils.data.registry import DataUnavailable, cache_folder
from course_utils.data.translation import Pair, load_tatoeba
from course_utils.files import ROOT
from course_utils.kit.runs import StoredRun
from course_utils.lessons.sequence_to_sequence import real
from course_utils.lessons.translating import real as transformers

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
    assert load_tatoeba("fr") == pairs
    assert load_tatoeba("fr", max_tokens=4) == pairs[:1]


def test_spanish_has_an_archive_of_its_own(archive, capsys):
    archive(["Go.\tVe."], "spa.txt", "spa-eng.zip")
    assert load_tatoeba("es") == [Pair(("go", "."), ("ve", "."))]
    assert "spa-eng.zip: a release that the course was not tested with" in capsys.readouterr().err


def test_a_line_ends_where_the_file_says_so(archive):
    archive(["Go\u2028on.\tVa\u0085!"])
    assert load_tatoeba("fr") == [Pair(("go", "on", "."), ("va", "!"))]


def test_without_the_archive_the_message_says_where_to_put_it(tmp_path, archive):
    with pytest.raises(DataUnavailable) as error:
        load_tatoeba("fr")
    for part in (
        "COURSE_OFFLINE=1 forbids the download",
        "https://www.manythings.org/anki/fra-eng.zip",
        "161c93f18da3a7e6df611ed961426613260de8af06ccf8c79c977afe5135ac44 or any newer release",
        f"put it at {tmp_path / 'fra-eng.zip'}",
    ):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="language='fra' is unknown; choose one of fr, es"):
        load_tatoeba("fra")


def test_the_real_archive_is_read_where_one_is_at_hand(monkeypatch):
    archive = cache_folder() / "fra-eng.zip"
    if not archive.is_file():
        pytest.skip(f"no fra-eng.zip in {archive.parent}; COURSE_CACHE names the folder")
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    pairs = load_tatoeba("fr", max_tokens=10)
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


def test_no_source_is_in_two_parts_of_the_split():
    pairs = [Pair((str(i % 300),), (str(i % 500),)) for i in range(2000)]
    data = transformers.split(pairs, num_train=100, num_held_out=40, seed=0)
    sources = [{pair.source for pair in part} for part in (data.train, data.validation, data.test)]
    assert not (sources[0] & sources[1] or sources[0] & sources[2] or sources[1] & sources[2])
    assert len(data.train) == len(set(data.train)) == 100
    assert len(data.validation) == len(data.test) == len(sources[1]) == len(sources[2]) == 40
    assert data == transformers.split(pairs, num_train=100, num_held_out=40, seed=0)
    with pytest.raises(ValueError, match="9999 training pairs are asked for"):
        transformers.split(pairs, num_train=9999, num_held_out=40, seed=0)


SMALL = ["--pairs", "300", "--held-out", "20", "--threads", "1", "--beam", "2"]


@pytest.mark.slow
def test_a_small_run_trains_scores_and_writes_its_result(
    benchmark, archive, threads, monkeypatch, tmp_path, capsys
):
    archive(sentences(600))
    monkeypatch.setattr(
        transformers, "SHAPE", transformers.SHAPE | {"embed_dim": 32, "ffn_dim": 32}
    )
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


# The stored runs --------------------------------------------------------------------------------


@pytest.fixture
def tiny(archive, monkeypatch):
    """The runs of *Sequence to sequence* on 600 made-up sentences, with a network to match."""
    archive([*sentences(600), "a b c d e f g h a b c.\taa.", "zebra a b.\tzèbre aa bb."])
    sizes = {"TRAIN": 300, "HELD_OUT": 60, "EPOCHS": 3, "WARMUP": 2, "BATCH": 32, "LONG": 5}
    shape = {"embed_dim": 24, "hidden_dim": 24, "num_layers": 2, "dropout": 0.0}
    for name, value in {**sizes, "SHAPE": shape}.items():
        monkeypatch.setattr(real, name, value)


def test_the_stored_runs_share_no_english_sentence_between_their_parts(tiny):
    parts = real.real_pairs()
    train, validation, test = ({pair.source for pair in part} for part in parts)
    assert not (train & validation or train & test or validation & test)
    assert len(parts[0]) == 300 and len(validation) == len(test) == 60
    assert max(len(pair.source) for part in parts for pair in part) <= real.MAX_TOKENS
    english, french = real.vocabularies_of([*parts[0], Pair(("zebra", "a"), ("zèbre", "aa"))])
    assert "a" in english and "aa" in french and "zebra" not in english and "zèbre" not in french


@pytest.mark.parametrize("attention", [False, True])
def test_a_translator_of_the_stored_runs_learns_and_keeps_what_it_said(tiny, attention):
    run = real.real_translation.make({"attention": attention, "seed": 0})
    losses = dict(run.curves["val_loss"])
    assert list(losses) == [1, 2, 3] and losses[3] < losses[1]
    assert run.result["val_loss"] == losses[run.result["epoch"]] == min(losses.values())
    held_out = real.references_of(real.real_pairs()[2])
    assert len(run.examples) == real.SHOWN
    for one in run.examples:
        assert held_out[" ".join(one["source"])] == one["references"]
        assert len(one["source"]) >= real.LONG and ("weights" in one) is attention
        for row in one.get("weights", []):
            assert sum(row) == pytest.approx(1, abs=0.005) and len(row) == len(one["source"])
        assert len(one.get("weights", one["said"])) == len(one["said"])
    assert json.loads(json.dumps(run.examples)) == run.examples


def test_several_translations_of_a_sentence_are_references_of_one(monkeypatch):
    pairs = [
        Pair(("go", "."), ("va", ".")),
        Pair(("no", "."), ("non", ".")),
        Pair(("go", "."), ("allez", ".")),
    ]
    monkeypatch.setattr(real, "translate", lambda model, asked, *_, **__: ["allez ."] * len(asked))
    asked = {}
    monkeypatch.setattr(real, "bleu", lambda said, given: asked.update(said=said, given=given))
    real.score(None, pairs, ())
    assert asked == {"said": ["allez ."] * 2, "given": [["va .", "allez ."], ["non ."]]}


def test_curves_and_maps_of_the_stored_runs_are_drawn(monkeypatch):
    def run(*_, attention):
        losses = {"train_loss": [[1, 5.0], [2, 3.0]], "val_loss": [[1, 4.0], [2, 3.5 - attention]]}
        weights = {"weights": [[0.25, 0.75]] * 3} if attention else {}
        one = {
            "source": ["go", "."],
            "said": ["va", "t'en", "."],
            "references": ["va ."],
            **weights,
        }
        curves = {**losses, "bleu": [[1, 0.0], [2, 0.125]]}
        return [StoredRun("real_translation", curves=curves, examples=[one] * 4)]

    monkeypatch.setattr(real, "stored_runs", run)
    losses, scores = real.show_real_curves().axes
    assert [line.get_ydata()[-1] for line in losses.lines] == [3.0, 3.5, 3.0, 2.5]
    assert [line.get_ydata()[-1] for line in scores.lines] == [0.125, 0.125]
    maps = real.show_real_maps().axes
    assert len(maps) == 4
    for ax in maps:
        assert [label.get_text() for label in ax.get_xticklabels()] == ["go", "."]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["va", "t'en", "."]


# The Transformers of *Translating* -----------------------------------------------------------------


@pytest.fixture
def tiny_transformers(archive, monkeypatch):
    """Their recipe on 600 made-up sentences, with a network to match."""
    archive([*sentences(600), "zebra a b.\tzèbre aa bb."])
    sizes = {"TRAIN": 300, "HELD_OUT": 30, "EPOCHS": 3, "BATCH": 32, "PIECES": 40, "SHOWN": 3}
    shape = {"embed_dim": 24, "ffn_dim": 24, "num_heads": 2, "num_layers": 1, "dropout": 0.0}
    for name, value in {**sizes, "SHAPE": shape}.items():
        monkeypatch.setattr(transformers, name, value)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["words", "subwords"])
def test_a_real_transformer_learns_in_words_and_in_pieces(tiny_transformers, tokens):
    run = transformers.real_transformer.make({"tokens": tokens, "seed": 0})
    losses = dict(run.curves["val_loss"])
    assert list(losses) == [1, 2, 3] and losses[3] < losses[1]
    assert run.result["test_bleu"] <= run.result["test_bleu_all"]
    assert len(run.examples) == 3 and json.loads(json.dumps(run.examples)) == run.examples
    assert not any("<unk>" in one["greedy"] + one["beam"] for one in run.examples)


def test_pieces_spell_words_that_no_vocabulary_has():
    pieces = transformers.Pieces([("ab", "ba"), ("abba",)], size=30)
    ids = pieces.encode(("abab", "b"))
    assert pieces.decode(ids) == ["abab", "b"]
    assert "bab" in pieces and "zebra" not in pieces
    assert len(pieces) == len(pieces.tokens) and "".join(pieces.pieces("bb")) == "bb␣"


def test_a_translation_memory_says_the_french_of_the_nearest_sentence(tiny_transformers):
    run = transformers.translation_memory.make({"seed": 0})
    assert 0 < run.result["test_bleu"] <= run.result["test_bleu_all"] < 1
    assert len(run.examples) == 3
