"""Trainings of *Vision transformers* on whole data sets: their patches, their data, and a run in small."""

import io
import tarfile

import pytest
import torch
from PIL import Image

from course_utils.lessons.vision_transformers import real_images
from course_utils.models.vision import PatchEmbedding

TINY = {"patch_size": 8, "embed_dim": 16, "ffn_dim": 16, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Twenty red and twenty blue images to learn from, and two of each for the test."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setattr(real_images, "SIZE", TINY)
    with tarfile.open(tmp_path / "cifar10-jpeg.tar.xz", "w:xz") as file:
        for part, number in (("train", 20), ("test", 2)):
            for label, color in (("fire", (220, 20, 20)), ("sea", (20, 20, 220))):
                for i in range(number):
                    buffer = io.BytesIO()
                    Image.new("RGB", (32, 32), color).save(buffer, "JPEG")
                    member = tarfile.TarInfo(f"{part}/{label}/{i:04}.jpg")
                    member.size = buffer.tell()
                    buffer.seek(0)
                    file.addfile(member, buffer)


def test_without_the_permute_gray_patches_are_right_and_colored_ones_are_not():
    for channels in (1, 3):
        right, other = (one(4, channels, 5) for one in (PatchEmbedding, real_images.Unpermuted))
        other.load_state_dict(right.state_dict())
        found = [
            one(torch.arange(channels * 64.0).view(1, channels, 8, 8)) for one in (right, other)
        ]
        assert found[0].shape == found[1].shape == (1, 4, 5)
        assert torch.allclose(*found) is (channels == 1)


@pytest.mark.parametrize("patches", ["right", "unpermuted"])
def test_a_run_in_small_learns_two_colors(archive, patches):
    run = real_images.recompressed_cifar10.function(patches=patches, epochs=12, seed=0)
    assert run["result"]["test"] == 1.0 and run["result"]["cpu_seconds"] > 0
    assert run["examples"] == [{"classes": ["fire", "sea"], "confusion": [[2, 0], [0, 2]]}]
    losses = [loss for _, loss in run["curves"]["loss"]]
    assert len(losses) == len(run["curves"]["validation"]) == 12 and losses[-1] < losses[0]


def test_a_run_that_was_cut_goes_on_as_if_it_had_not_been(archive, tmp_path, monkeypatch):
    whole = real_images.recompressed_cifar10.function(patches="right", epochs=12, seed=0)
    place, passes = tmp_path / "run.pt", []
    judge = real_images.predict_classes

    def cut(*args):
        passes.append(args)
        if len(passes) == 2:
            raise KeyboardInterrupt
        return judge(*args)

    monkeypatch.setattr(real_images, "predict_classes", cut)
    with pytest.raises(KeyboardInterrupt):
        real_images.recompressed_cifar10.function(
            patches="right", epochs=12, seed=0, checkpoint=place
        )
    again = real_images.recompressed_cifar10.function(
        patches="right", epochs=12, seed=0, checkpoint=place
    )
    assert again["curves"] == whole["curves"] and again["examples"] == whole["examples"]
