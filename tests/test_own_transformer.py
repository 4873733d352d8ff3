"""The two classes of *The Transformer*, as a reader has them: they start small, train, and one is whole by itself."""

import re

import pytest
import torch

import course_utils as cu
from course_utils.kit.runs import definitions, source
from course_utils.lessons.transformer import first_epochs

FILE = source("transformer")


def take_home() -> type[torch.nn.Module]:
    """`WholeTransformer` from its cell alone, as somebody who copies it has it."""
    cells = re.split(r"^# %%.*$", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (cell,) = (text for text in cells if "class WholeTransformer" in text)
    assert "course_utils" not in cell and "cu." not in cell
    namespace = {"__name__": "taken_home"}
    exec(compile(cell, "<taken home>", "exec"), namespace)
    return namespace["WholeTransformer"]


CLASSES = {
    "chapter": lambda: definitions(FILE, "Transformer").Transformer,
    "take home": take_home,
}


@pytest.fixture(params=list(CLASSES))
def model(request):
    return first_epochs.new_model(CLASSES[request.param](), seed=0)


def test_words_and_positions_are_about_as_large_at_the_start(model):
    source = torch.randint(4, 40, (8, 10))
    words = model.source_embedding(source) * 8
    added = model.eval().embed(model.source_embedding, source) - words
    assert 0.5 < words.std() / added.square().mean().sqrt() < 2


def test_logits_are_the_output_of_the_features(model):
    batch = torch.randint(4, 40, (2, 5)), torch.tensor([3, 5]), torch.randint(4, 40, (2, 6))
    torch.testing.assert_close(model(*batch), model.output(model.features(*batch)))
    torch.testing.assert_close(model(*batch), first_epochs.in_package(model)(*batch))


def test_the_courses_trainer_trains_it(model, monkeypatch):
    monkeypatch.setattr(first_epochs, "EPOCHS", 1)
    rows = first_epochs.train(model).rows
    assert rows[-1]["val_loss"] < 4  # a guess among all French words has 6.3
    assert len(first_epochs.say(model, ["she has a car ."])) == 1


def test_a_probability_of_two_decimals_is_sent_back():
    report = cu.checks.predicted_beams(lambda: [0.16, 0.18, 0.25])
    assert report.results == (True, False, True)
    assert "expected three" in report.reason and "three decimals" in report.hint
