# ruff: noqa: E501
"""Images: the committed subset, damaged and hostile files, batches that can be resumed, uploads of every kind."""

import gzip
import io
import math
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from course_utils.data.images import (
    FASHION,
    ImageBatch,
    ImageLoader,
    ImageSet,
    load_fashion_mnist,
    read_idx,
    read_image,
    scaled,
)
from course_utils.train.losses import classification_loss


def toy(n: int = 20) -> ImageSet:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (n, 1, 8, 8), dtype=torch.uint8, generator=generator)
    return ImageSet(images, torch.arange(n) % 4, tuple("abcd"))


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 13])
def test_the_first_part_of_a_small_set_has_each_class_and_nothing_is_lost(n):
    data = toy(14)
    for seed in range(20):
        parts = data.split(n, seed=seed)
        assert [len(part) for part in parts] == [n, 14 - n]
        assert len(parts[0].labels.unique()) == 4 or n < 4
        both = torch.cat([part.images for part in parts]).flatten(1)
        assert torch.equal(both.unique(dim=0), data.images.flatten(1).unique(dim=0))
    order = torch.randperm(400, generator=torch.Generator().manual_seed(3))
    assert torch.equal(toy(400).split(300, seed=3)[0].labels, order[:300] % 4)


# The subset -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("split", "per_class"), [("train", 1000), ("test", 200)])
def test_the_subset_has_as_many_images_of_each_class(split, per_class):
    subset = load_fashion_mnist(split)
    assert subset.images.shape == (10 * per_class, 1, 28, 28)
    assert subset.classes == FASHION
    assert subset.labels.bincount().tolist() == [per_class] * 10


# Sets -------------------------------------------------------------------------------------------


def test_take_draws_equally_many_of_each_class_the_same_ones_for_a_seed():
    data = toy(40)
    drawn = data.take(10, seed=3)
    assert sorted(drawn.labels.bincount().tolist()) == [2, 2, 3, 3]
    assert torch.equal(drawn.images, data.take(10, seed=3).images)
    assert not torch.equal(drawn.images, data.take(10, seed=4).images)
    assert len({bytes(image.flatten().tolist()) for image in drawn.images}) == 10


# IDX files --------------------------------------------------------------------------------------

IDX = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("content", [IDX, gzip.compress(IDX, mtime=0)], ids=["plain", "gzip"])
def test_an_idx_file_is_read_compressed_or_not(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_idx(path).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an IDX file of unsigned bytes"),
        (IDX[:2] + b"\x0d" + IDX[3:], "is not an IDX file of unsigned bytes"),  # floats
        (IDX[:-1], r"announces \(2, 3\), 6 bytes, and holds 5"),
        (IDX + b"\0", r"announces \(2, 3\), 6 bytes, and holds more"),
        (IDX[:4] + b"\xff" * 8, r"announces \(4294967295, 4294967295\), .* bytes, and holds 0"),
        (IDX[:10], "is damaged: it ends within its header"),
        (gzip.compress(IDX, mtime=0)[:-6], "is damaged"),
    ],
)
def test_a_damaged_or_foreign_idx_file_is_refused(tmp_path, content, message):
    path = tmp_path / "labels.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"labels\.gz.*({message})"):
        read_idx(path)


def test_a_file_that_unpacks_to_more_than_it_announces_is_not_unpacked_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(IDX + bytes(50_000_000), 1, mtime=0))
    tracemalloc.start()
    with pytest.raises(ValueError, match="and holds more"):
        read_idx(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


# Batches ----------------------------------------------------------------------------------------


def passes(loader: ImageLoader, n: int = 1) -> list[torch.Tensor]:
    return [batch.images for _ in range(n) for batch in loader]


def test_batches_hold_every_image_once_scaled_from_minus_one_to_one():
    data = toy(20)
    batches = list(ImageLoader(data, batch_size=8))
    assert [len(batch.labels) for batch in batches] == [8, 8, 4]
    images = torch.cat([batch.images for batch in batches])
    found = {tuple(image.flatten().tolist()) for image in images}
    assert found == {tuple(image.flatten().tolist()) for image in scaled(data.images)}
    assert scaled(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1, 1]


def test_a_seed_gives_the_same_augmented_passes_and_each_pass_another_order():
    first, again, other = (
        passes(ImageLoader(toy(), batch_size=8, augment=True, seed=seed), 2) for seed in (5, 5, 6)
    )
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[0], first[3])  # the second pass


def test_augmentation_moves_an_image_and_keeps_its_content():
    image = torch.zeros(1, 1, 12, 12, dtype=torch.uint8)
    image[0, 0, 4:7, 3:9] = (
        torch.arange(1, 19).view(3, 6) * 10
    )  # away from the border: nothing is lost
    data = ImageSet(image.expand(64, -1, -1, -1), torch.zeros(64, dtype=torch.int64), ("a",))
    (batch,) = ImageLoader(data, batch_size=64, augment=True, shift=2)
    places, mirrored = set(), set()
    for moved in batch.images[:, 0]:
        assert torch.equal(moved.flatten().sort().values, scaled(image).flatten().sort().values)
        rows, columns = (moved > -1).nonzero(as_tuple=True)
        top, left = rows.min().item(), columns.min().item()
        cut = moved[top : top + 3, left : left + 6]
        flipped = torch.equal(cut, scaled(image)[0, 0, 4:7, 3:9].flip(-1))
        assert flipped or torch.equal(cut, scaled(image)[0, 0, 4:7, 3:9])
        mirrored.add(flipped)
        places.add((top - 4, left - 3))
    assert mirrored == {False, True}
    assert all(-2 <= down <= 2 and -2 <= right <= 2 for down, right in places)
    assert {down for down, _ in places} == {-2, -1, 0, 1, 2}


# Scores -----------------------------------------------------------------------------------------


def test_the_loss_is_the_cross_entropy_of_pytorch_summed():
    batch = ImageBatch(torch.randn(5, 1, 2, 2), torch.arange(5) % 3)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    loss, count = classification_loss(label_smoothing=0.1)(model, batch)
    expected = torch.nn.functional.cross_entropy(
        model(batch.images), batch.labels, label_smoothing=0.1
    )
    assert count == 5
    torch.testing.assert_close(loss / count, expected)


# Uploads ----------------------------------------------------------------------------------------


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


RAMP = np.linspace(0, 255, 40 * 40).reshape(40, 40)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "image",
    [
        Image.fromarray(RAMP.astype(np.uint8)),
        Image.fromarray((RAMP * 257).astype(np.uint16)),
        Image.fromarray((RAMP * 1000 - 7).astype(np.int32)),
        Image.fromarray((RAMP / 255).astype(np.float32)),
        Image.fromarray(RAMP.astype(np.uint8)).convert("RGB"),
        Image.fromarray(RAMP.astype(np.uint8)).convert("RGBA"),
        Image.fromarray(RAMP.astype(np.uint8)).convert("P"),
        Image.fromarray(RAMP.astype(np.uint8)).convert("RGB").convert("CMYK"),
        Image.fromarray(RAMP.astype(np.uint8)).convert("RGB").convert("YCbCr"),
    ],
    ids=lambda image: image.mode,
)
def test_every_kind_of_pixel_gives_the_same_grey_ramp(image, channels):
    found = read_image(image, channels=channels)
    assert found.shape == (channels, 28, 28)
    assert found.dtype == torch.uint8
    expected = torch.from_numpy(
        np.asarray(Image.fromarray(RAMP.astype(np.uint8)).resize((28, 28))).astype(np.float32)
    )
    assert (found.float() - expected).abs().max() <= 12


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_bytes_paths_and_pictures_are_read_alike(tmp_path, kind):
    image = Image.fromarray(RAMP.astype(np.uint8))
    content = encoded(image, kind)
    path = tmp_path / "picture"
    path.write_bytes(content)
    results = [read_image(source) for source in (content, memoryview(content), path, str(path))]
    assert all(torch.equal(results[0], other) for other in results)
    assert (results[0].float() - read_image(image).float()).abs().max() <= 12


@pytest.mark.parametrize(
    "missing", [math.nan, math.inf, -math.inf, -9999.0, -3.4028234663852886e38]
)
def test_pixels_without_a_measurement_are_black_and_the_others_as_without_them(tmp_path, missing):
    ramp = np.linspace(0, 1, 81, dtype=np.float32).reshape(9, 9)
    whole = read_image(Image.fromarray(ramp), size=9)
    ramp[4, 4] = missing
    Image.fromarray(ramp).save(tmp_path / "depth.tif", tiffinfo={42113: str(missing)})
    found = read_image(tmp_path / "depth.tif", size=9)
    assert found[0, 4, 4] == 0
    found[0, 4, 4] = whole[0, 4, 4]
    assert torch.equal(found, whole)
    Image.fromarray(np.full_like(ramp, missing)).save(
        tmp_path / "none.tif", tiffinfo={42113: str(missing)}
    )
    with pytest.raises(ValueError, match="none.tif has no pixel with a number"):
        read_image(tmp_path / "none.tif")


def test_what_is_transparent_becomes_black():
    image = Image.new("RGBA", (40, 40), (255, 255, 255, 0))
    image.paste((255, 255, 255, 255), (20, 0, 40, 40))
    found = read_image(encoded(image))[0]
    assert found[:, :12].max() == 0 and found[:, 16:].min() == 255
    half = Image.new("LA", (8, 8), (200, 128))
    assert 98 <= read_image(half).float().mean() <= 102


def test_the_orientation_that_a_camera_noted_is_followed():
    image = Image.new("L", (30, 30))
    image.paste(255, (0, 0, 30, 10))  # bright above
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: turn by 90° clockwise
    found = read_image(encoded(image, "JPEG", exif=exif, quality=95))[0]
    assert found[:, 22:].min() > 200 and found[:, :16].max() < 50  # bright at the right


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (3000, 1), (2, 3)])
def test_tiny_and_thin_images_are_enlarged(shape):
    assert read_image(encoded(Image.new("RGB", shape, "white"))).eq(255).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the upload is no image of a kind that can be read; PNG, JPEG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "the upload is no image"),
        (encoded(Image.new("RGB", (9, 9)), "EPS"), "the upload is no image"),  # Ghostscript's
        (encoded(Image.effect_noise((50, 50), 90))[:900], "the upload can't be read"),
        (encoded(Image.effect_noise((50, 50), 90), "JPEG")[:400], "the upload can't be read"),
    ],
)
def test_what_is_no_whole_image_is_refused_in_words(content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_image(content)
    assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize(("side", "message"), [(8_000, "8000 × 8000 pixels"), (14_000, "too many")])
def test_a_huge_image_is_refused_without_a_warning_before_it_is_decoded(side, message):
    content = encoded(Image.new("1", (side, side)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            read_image(content)


PIXELS, LABELS = torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda _: load_fashion_mnist("validation"), ValueError, "split='validation'; 'train' or 'test'"),
        (lambda place: load_fashion_mnist(folder=place), FileNotFoundError, "holds no train-images-idx3-ubyte, with or without .gz; it is empty"),
        (lambda _: ImageSet(PIXELS, LABELS[:1], ("a", "b")), ValueError, "2 images, 1 labels"),
        (lambda _: ImageSet(PIXELS, LABELS, ("a",)), ValueError, "outside the 1 classes"),
        (lambda _: toy(20).split(20), ValueError, "n=20; a number between 1 and 19"),
        (lambda _: read_image(None), TypeError, "image is a NoneType; a path"),
        (lambda place: read_image(place / "nothing.png"), FileNotFoundError, "nothing.png"),
        (lambda place: read_image(place), ValueError, "can't be read"),
    ],
)  # fmt: skip
def test_other_wrong_arguments_are_named(tmp_path, call, kind, message):
    with pytest.raises(kind, match=message):
        call(tmp_path)
