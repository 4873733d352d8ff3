"""Real pairs from Tatoeba: the archives in both layouts, and the runs that train on them."""

import json
import random
import zipfile

import pytest

from course_utils.data.translation import Pair, load_tatoeba
from course_utils.lessons.sequence_to_sequence import real_translation
from course_utils.lessons.sequence_to_sequence.small_world import references_of
from course_utils.lessons.translating import real_sentences as transformers


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Writes an archive into an offline cache, as an unknown release put there by hand."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setenv("COURSE_OFFLINE", "1")

    def write(lines, member="fra.txt", file="fra-eng.zip"):
        with zipfile.ZipFile(tmp_path / file, "w") as zipped:
            zipped.writestr(member, "".join(f"{line}\n" for line in lines))
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


# The stored runs --------------------------------------------------------------------------------


@pytest.fixture
def tiny(archive, monkeypatch):
    """The runs of *Sequence to sequence* on 600 made-up sentences, with a network to match."""
    archive([*sentences(600), "a b c d e f g h a b c.\taa.", "zebra a b.\tzèbre aa bb."])
    sizes = {"TRAIN": 300, "HELD_OUT": 60, "EPOCHS": 3, "WARMUP": 2, "BATCH": 32, "LONG": 5}
    shape = {"embed_dim": 24, "hidden_dim": 24, "num_layers": 2, "dropout": 0.0}
    for name, value in {**sizes, "SHAPE": shape}.items():
        monkeypatch.setattr(real_translation, name, value)


@pytest.mark.parametrize("attention", [False, True])
def test_a_translator_of_the_stored_runs_learns_and_keeps_what_it_said(tiny, attention):
    run = real_translation.real_translation.make({"attention": attention, "seed": 0})
    losses = dict(run.curves["val_loss"])
    assert list(losses) == [1, 2, 3] and losses[3] < losses[1]
    assert run.result["val_loss"] == losses[run.result["epoch"]] == min(losses.values())
    held_out = references_of(real_translation.real_pairs()[2])
    assert len(run.examples) == real_translation.SHOWN
    for one in run.examples:
        assert held_out[" ".join(one["source"])] == one["references"]
        assert len(one["source"]) >= real_translation.LONG and ("weights" in one) is attention
        for row in one.get("weights", []):
            assert sum(row) == pytest.approx(1, abs=0.005) and len(row) == len(one["source"])
        assert len(one.get("weights", one["said"])) == len(one["said"])
    assert json.loads(json.dumps(run.examples)) == run.examples


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
