"""Loops that a chapter writes and a lesson has again, with more to choose for its stored runs: the same numbers."""

from unittest.mock import patch

import pytest
import torch

from course_utils.data.images import ImageSet
from course_utils.data.translation import PairLoader
from course_utils.kit.runs import definitions, source
from course_utils.lessons.bert_and_transfer import pretraining
from course_utils.lessons.diffusion import runs as clothes
from course_utils.lessons.gpt import ngrams
from course_utils.lessons.gpt import training as gpt
from course_utils.lessons.training_transformers import runs as spanish
from course_utils.lessons.vision_transformers import training as vision
from course_utils.models.diffusion import UNet
from course_utils.models.language import GPT
from course_utils.models.vision import ViT
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer


def trained(new_model, seed, *ways, kind=torch.float64):
    """What each way leaves of the same model after two steps; in double precision roundings stay small."""
    states = []
    for way in ways:
        torch.manual_seed(seed)
        model = new_model().to(kind)
        way(model)
        states.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return states


def gpt_loop():
    chapter = definitions(source("gpt"), "train", "length")
    stream = torch.randint(20, (300,), generator=torch.Generator().manual_seed(0))

    def lessons(model):
        gpt.train(
            model, lambda g: gpt.windows(stream, chapter.length, 4, g), steps=2, lr=1e-2, seed=3
        )

    shape = {"embed_dim": 8, "num_heads": 2, "num_layers": 1, "max_len": chapter.length}
    return trained(
        lambda: GPT(20, dropout=0.0, **shape), 0,
        lambda model: chapter.train(model, stream, 2, batch=4, seed=3), lessons,
    )  # fmt: skip


def gpt_loss():
    chapter = definitions(source("gpt"), "evaluate", "length")
    length, text = chapter.length, torch.randint(20, (300,))
    model = GPT(20, embed_dim=8, num_heads=2, num_layers=1, max_len=length, dropout=0.0).eval()
    return chapter.evaluate(model, text), gpt.evaluate(model, text, length, read=length // 2)


def counted():
    chapter = definitions(source("gpt"), "ngram_losses", "subwords")
    text, unread = torch.randint(9, (2, 80), generator=torch.Generator().manual_seed(0))
    size = len(chapter.subwords)
    lessons = ngrams.ngram_losses(text.tolist(), unread.tolist(), 3, size)
    return chapter.ngram_losses(text, unread, 3), lessons


def bert_loop():
    chapter = definitions(source("bert_and_transfer"), "train")
    model = pretraining.new_model
    with patch.object(pretraining, "new_model", lambda name: model(name).double()):
        lessons, _ = pretraining.pretrain("BERT", 5, steps=2, lr=1e-2)
    (state,) = trained(lambda: model("BERT"), 5, lambda model: chapter.train(model, 2, 1e-2))
    return state, torch.cat([p.detach().flatten() for p in lessons.parameters()])


def bert_masks():
    chapter = definitions(source("bert_and_transfer"), "masking")
    ids = torch.randint(0, 50, (6, 9))
    found = []
    for masking in (chapter.masking, pretraining.masking):
        torch.manual_seed(1)
        found.append(torch.stack(masking(ids, 50, 0.3)).float())
    return found


def vit_loop():
    chapter = definitions(source("vision_transformers"), "train")
    drawn = torch.randint(256, (70, 1, 28, 28), generator=torch.Generator().manual_seed(0))
    images = ImageSet(drawn.to(torch.uint8), torch.arange(70) % 10, tuple("abcdefghij"))
    return trained(
        lambda: ViT(embed_dim=8, num_heads=2, ffn_dim=8, num_layers=1, dropout=0.0), 0,
        lambda model: chapter.train(model, images, 1, seed=2),
        lambda model: vision.train(model, images, epochs=1, seed=2),
        kind=torch.float32,
    )  # fmt: skip


def spanish_loop():
    chapter = definitions(source("training_transformers"), "train", "new_model", "world")
    world = chapter.world
    pairs = world.train[:60]

    def loader():
        return PairLoader(pairs, world.source_vocab, world.target_vocab, batch_size=30, seed=4)

    def schedule(step):
        return spanish.rate(step, spanish.WARMUP)

    trainer = Trainer(translation_loss(), epochs=1, lr=6e-3, schedule=schedule, quiet=True)
    return trained(
        lambda: chapter.new_model(True, 0), 0,
        lambda model: chapter.train(model, loader(), lambda step: 6e-3 * schedule(step)),
        lambda model: trainer.fit(model, loader()),
    )  # fmt: skip


def diffusion_loop():
    chapter = definitions(source("diffusion"), "train")
    steps = 23  # the rate rises over 20

    def lessons(model):
        clothes.train(model, lambda g: clothes.garment_loss(model, g), steps=steps, seed=3)

    return trained(
        lambda: UNet(widths=(8, 8), attention=(False, True), num_classes=11), 0,
        lambda model: chapter.train(model, steps, seed=3), lessons,
        kind=torch.float32,
    )  # fmt: skip


@pytest.mark.parametrize(
    "twins",
    [gpt_loop, gpt_loss, counted, bert_loop, bert_masks, vit_loop, spanish_loop, diffusion_loop],
    ids=lambda twins: twins.__name__,
)
def test_chapter_and_lesson_give_the_same_numbers(twins):
    chapter, lessons = (torch.as_tensor(numbers) for numbers in twins())
    torch.testing.assert_close(chapter, lessons, rtol=1e-6, atol=1e-7, check_dtype=False)
