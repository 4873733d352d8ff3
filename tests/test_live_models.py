"""Stored models: half precision, configuration and words, and what pages tell of them is what they say."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from stored_models import network

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import EOS
from course_utils.kit.stored_model import MODELS, StoredModel, load_model, read_card, save_model
from course_utils.lessons.bahdanau_attention import live_translator as translators
from course_utils.lessons.bahdanau_attention.live_translator import gold
from course_utils.lessons.bert_and_transfer import runs as filler
from course_utils.lessons.gpt.runs import answers_of
from course_utils.lessons.gpt.training import evaluate
from course_utils.lessons.vision_transformers import runs as pictures

SIZES = {"source_size": 11, "target_size": 9, "embed_dim": 8, "num_heads": 2, "ffn_dim": 8}
TRANSLATORS = {"translator_fr": cu.Transformer, "bahdanau_fr": cu.AttentionTranslator}


def test_a_model_comes_back_with_its_configuration_and_its_words(tmp_path):
    model, words = cu.Transformer(**SIZES), {"source": ["<pad>", "é"], "target": ["<pad>"]}
    save_model("small", StoredModel.of(model, SIZES, words), folder=tmp_path)
    kept = load_model("small", folder=tmp_path)
    assert kept.config == SIZES and kept.vocabularies == words
    again = kept.network(cu.Transformer)
    assert not again.training
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor.half().float())
    assert kept.network(cu.Transformer, norm_first=True).encoder[0].norm_first


@pytest.mark.parametrize("bits", [16, 8])
def test_numbers_of_numpy_in_a_configuration_and_tied_weights_are_read_back(tmp_path, bits):
    sizes = {name: np.int64(size) for name, size in (SIZES | {"embed_dim": 64}).items()}
    model, words = (
        cu.Transformer(**sizes),
        {"source": np.array(["<pad>", "é"]), "ids": (np.int64(3),)},
    )
    del model.encoder_norm, model.decoder_norm
    model.tied = torch.nn.Parameter(
        model.output.weight.T
    )  # the same storage, read in another order
    stored = StoredModel.of(model, sizes | {"dropout": np.float32(0.5)}, words, bits=bits)
    save_model("odd", stored, folder=tmp_path)
    kept = load_model("odd", folder=tmp_path)
    assert kept.config == SIZES | {"embed_dim": 64, "dropout": 0.5}
    assert kept.vocabularies == {"source": ["<pad>", "é"], "ids": [3]}
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(kept.state[name], tensor.float(), atol=0.05, rtol=0)


@pytest.mark.parametrize("bits", [16, 8])
def test_what_a_stored_model_can_t_hold_is_refused_by_name(bits):
    model = torch.nn.Linear(64, 64)
    with pytest.raises(TypeError, match=r"config\['data'\] is a PosixPath"):
        StoredModel.of(model, {"data": Path("data")}, bits=bits)
    model.scales = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match="layer.scales has the name of the scales of a matrix"):
        StoredModel.of(torch.nn.ModuleDict({"layer": model}), {}, bits=bits)
    torch.nn.init.constant_(model.weight, math.nan)
    with pytest.raises(ValueError, match="weight holds a value that is NaN or infinite"):
        StoredModel.of(model, {}, bits=bits)


@pytest.mark.parametrize("name", ["translator_fr", "everyday_fr", "bert"])
def test_a_stored_model_is_written_as_the_same_file_again(name, tmp_path):
    again = save_model(name, load_model(name), folder=tmp_path)
    assert again.read_bytes() == (MODELS / f"{name}.npz").read_bytes()


def test_a_value_beyond_half_precision_and_an_unknown_name_are_refused():
    model = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, 1e6)
    with pytest.raises(ValueError, match="weight holds a value beyond half precision"):
        StoredModel.of(model, {})
    with pytest.raises(ValueError, match="name='none' is no stored model; there are: .*transl"):
        load_model("none")


def same(found, right) -> bool:
    """Equal, numbers but for what another processor makes of them."""
    if isinstance(right, dict):
        return all(same(found[key], value) for key, value in right.items())
    if isinstance(right, list):
        return len(found) == len(right) and all(map(same, found, right))
    return found == (pytest.approx(right, abs=1e-4) if isinstance(right, float) else right)


def translator(name: str) -> dict:
    more = {"gold": gold()} if name == "bahdanau_fr" else {}
    return translators.model_card(network(name)) | more


def picture(name: str) -> dict:
    return pictures.model_card(network(name))


def reader(name: str) -> dict:
    card = filler.model_card if name == "bert" else filler.left_card
    return card(load_model(name).for_page())


CARDS = dict.fromkeys(TRANSLATORS, translator) | {"bert": reader}
CARDS |= dict.fromkeys(("vit", "vit_patch14", "vit_patch4"), picture)


@pytest.mark.slow
@pytest.mark.parametrize("name", CARDS)
def test_what_is_told_is_what_the_model_says(name):
    right = CARDS[name](name)
    assert same(read_card(name), right)
    assert [each["said"] == each["right"] for each in right["examples"]] == [True, True, False]
    if name in TRANSLATORS:
        lines = [each["sentence"] for each in right["examples"]]
        for earlier in read_card(name)["checkpoints"][:-1]:
            model = load_model(earlier["model"]).for_page().network(TRANSLATORS[name])
            answers = translators.answers_of(model, lines)
            assert same(read_card(earlier["model"])["answers"], answers)


@pytest.mark.slow
def test_the_reader_of_the_left_answers_as_its_card_says():
    assert same(read_card("gpt_left"), reader("gpt_left"))


@pytest.mark.slow
def test_the_writer_at_each_step_continues_as_it_is_told():
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    subwords = Subwords(sentences[1000:], size=512)
    for name in ("gpt", "gpt_0", "gpt_100"):
        assert same(read_card(name)["answers"], answers_of(network(name), subwords))
    ids = [i for text in sentences[:1000] for i in [*subwords.encode(text), EOS]]
    loss = evaluate(network("gpt"), torch.tensor(ids), 32, read=16)
    assert abs(loss - read_card("gpt")["loss"]) < 0.02, "of the rounded weights"
