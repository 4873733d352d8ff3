"""Live models: stored in half precision, and what loads says what was trained."""

import pytest
import torch

import course_utils as cu
from course_utils.data.text import Vocabulary
from course_utils.decoding import translate
from course_utils.kit.live import load_model, save_model

SIZES = {
    "source_size": 11,
    "target_size": 9,
    "embed_dim": 8,
    "num_heads": 2,
    "ffn_dim": 8,
    "num_layers": 1,
}


def test_a_model_comes_back_with_its_configuration_and_its_words(tmp_path):
    model = cu.Transformer(**SIZES)
    words = {"source": ["<pad>", "é"], "target": ["<pad>"]}
    save_model("small", model, SIZES, words, folder=tmp_path)
    kept = load_model("small", folder=tmp_path)
    assert kept.config == SIZES and kept.vocabularies == words
    again = cu.Transformer(**kept.config)
    again.load_state_dict(kept.state)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor.half().float())


def test_a_value_beyond_half_precision_is_refused_and_nothing_written(tmp_path):
    model = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, 1e6)
    with pytest.raises(ValueError, match="weight holds a value beyond half precision"):
        save_model("loud", model, {}, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_model_names_those_there_are():
    with pytest.raises(
        ValueError, match=r"name='none' is no stored model; there are: .*translator_fr"
    ):
        load_model("none")


def test_the_stored_translator_knows_the_four_sentences():
    kept = load_model("translator_fr")
    model = cu.Transformer(**kept.config)
    model.load_state_dict(kept.state)
    vocabularies = [Vocabulary.of_tokens(kept.vocabularies[side]) for side in ("source", "target")]
    said = translate(model.eval(), ["i'm home .", "he's calm ."], *vocabularies)
    assert said == ["je suis chez moi .", "il est calme ."]
