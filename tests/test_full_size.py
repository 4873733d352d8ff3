"""Each run for a GPU, in small on this CPU: it gives numbers, and goes on from its checkpoint."""

import random

import pytest
import torch

from course_utils.data.images import ImageSet
from course_utils.data.registry import DataUnavailable
from course_utils.data.translation import load_grammar
from course_utils.files import LESSONS
from course_utils.kit import runs
from course_utils.lessons.gpt import own_texts
from course_utils.lessons.gpt import text_runs as gpt
from course_utils.lessons.sequence_to_sequence import translator_training as translators
from course_utils.lessons.training_transformers.variants import FirstGeneration
from course_utils.lessons.vision_transformers import real_images as vision
from course_utils.train.trainer import Trainer

SLUGS = [path.parent.name for path in sorted(LESSONS.glob("*/runs.py"))]
LARGE = [one for slug in SLUGS for one in runs.declared(slug).values() if one.minutes]
CASES = [(one, case) for one in LARGE for case in one.cases]


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    """A little of the course's own data, in place of what would be fetched."""

    def pairs(language, *, max_tokens):
        found = [
            p
            for p in load_grammar(language)
            if max(map(len, (p.source, p.target))) <= (max_tokens or 9)
        ]
        return random.Random(0).sample(found, 80)

    def images(*, channels):
        generator = torch.Generator().manual_seed(0)
        side = 32 if channels == 3 else 28
        drawn = torch.randint(256, (20, channels, side, side), generator=generator)
        return ImageSet(drawn.to(torch.uint8), torch.arange(20) % 10, tuple("abcdefghij"))

    stream = torch.randint(12, (600,), generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(translators, "load_tatoeba", pairs)
    monkeypatch.setattr(vision, "photos", lambda part: images(channels=3))
    monkeypatch.setattr(vision, "load_fashion_mnist", lambda part, full: images(channels=1))
    monkeypatch.setattr(gpt, "characters", lambda: ("abcdefghijkl", stream[:500], stream[500:]))


@pytest.mark.parametrize(("one", "case"), CASES, ids=lambda value: getattr(value, "slug", None))
def test_a_run_for_a_gpu_works_in_small_and_goes_on_from_its_checkpoint(
    one, case, tmp_path, monkeypatch
):
    checkpoint, fitted = tmp_path / "place.pt", []
    fit = Trainer.fit
    monkeypatch.setattr(
        Trainer, "fit", lambda *args, **more: fitted.append(fit(*args, **more)) or fitted[-1]
    )
    first, again = (one.make(case | one.quick, checkpoint=checkpoint) for _ in range(2))
    assert first.result == pytest.approx(again.result, rel=1e-3, abs=1e-3)
    assert first.curves and all(points for points in first.curves.values())
    assert checkpoint.is_file() and fitted[0].rows == fitted[1].rows


def test_twenty_seen_and_twenty_held_out_sentences_are_kept_without_punctuation():
    run = runs.declared("training_transformers")["generations_at_full_size"]
    case = run.cases[0] | run.quick
    examples = run.make(case, checkpoint=None).examples
    parts = [example["part"] for example in examples]
    assert parts.count("seen") == 20 and 0 < parts.count("not seen") <= 20
    assert not any("." in example["source"] for example in examples)


def test_too_few_pairs_are_refused():
    run = runs.declared("training_transformers")["generations_at_full_size"]
    with pytest.raises(ValueError, match="72 pairs .* expected at least 90,000"):
        run.make(run.cases[0] | run.quick | {"pairs": 90_000}, checkpoint=None)


def test_the_lectures_first_generation_has_its_two_numbers_of_parameters():
    sizes = {"embed_dim": 256, "num_heads": 4, "num_layers": 4, "length": 10}
    with torch.device("meta"):
        model = FirstGeneration(11_258, 21_823, flat_attention=True, **sizes)
    encoder, decoder, output = (
        sum(p.numel() for p in part.parameters())
        for part in (model.encoder, model.decoder, model.output)
    )
    assert (encoder, decoder + output) == (124_583_936, 149_886_015)


@pytest.mark.parametrize("text", own_texts.SHA256)
def test_another_edition_of_a_text_of_pythons_is_refused(text, monkeypatch):
    monkeypatch.setitem(own_texts.OWN, text, 1_000)
    with pytest.raises(DataUnavailable, match=f"'{text}' of Python {own_texts.EDITION}"):
        own_texts.own_text(text)
