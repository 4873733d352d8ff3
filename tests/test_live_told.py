"""What pages tell of the stored models is what these models say: examples, scores and answers."""

import random

import pytest

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.kit.live import told
from course_utils.lessons.bahdanau_attention import live_translator as translators
from course_utils.lessons.bahdanau_attention.live_translator import gold
from course_utils.lessons.bert_and_transfer import runs as filler
from course_utils.lessons.gpt.runs import answers_of
from course_utils.lessons.vision_transformers import runs as pictures

pytestmark = pytest.mark.slow


def same(found, right) -> bool:
    """Equal, numbers but for what another processor makes of them."""
    if isinstance(right, dict):
        return all(same(found[key], value) for key, value in right.items())
    if isinstance(right, list):
        return len(found) == len(right) and all(map(same, found, right))
    return found == (pytest.approx(right, abs=1e-4) if isinstance(right, float) else right)


TOLD = {
    "translator_fr": lambda: translators.examples_of(cu.Transformer, "translator_fr"),
    "bahdanau_fr": lambda: translators.examples_of(cu.AttentionTranslator, "bahdanau_fr")
    | {"gold": gold()},
    "bert": lambda: filler.examples_of("bert"),
    **{name: lambda name=name: pictures.examples_of(name) for name in ("vit", "vit_patch14", "vit_patch4")},
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_what_is_told_is_what_the_model_says(name):
    right = TOLD[name]()
    assert same(told(name), right)
    said = [each["said"] == each["right"] for each in right["examples"]]
    assert said == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(cu.Transformer, "translator_fr"), (cu.AttentionTranslator, "bahdanau_fr")],
)
def test_earlier_models_are_told_of_too(kind, name):
    lines = [each["sentence"] for each in told(name)["examples"]]
    for earlier in told(name)["checkpoints"][:-1]:
        answers = translators.answers_of(kind, earlier["model"], lines)
        assert same(told(earlier["model"])["answers"], answers)


def test_the_writer_at_each_step_continues_as_it_is_told():
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    subwords = Subwords(sentences[1000:], size=512)
    for name in ("gpt", "gpt_0", "gpt_100"):
        assert same(told(name)["answers"], answers_of(name, subwords))
