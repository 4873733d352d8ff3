"""A folder of images by class, or an archive of it, is read whole, in order, and with clear errors."""

import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image

import course_utils as cu
from course_utils.data import folders


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pets"
    for label, value in (("dog", 200), ("cat", 100)):
        for part in ("train", "test"):
            place = root / part / label
            place.mkdir(parents=True)
            for number in range(2):
                color = (value + number, 0, 0)
                Image.new("RGB", (6, 4), color).save(place / f"{number}.png")
    (root / "train" / "cat" / ".DS_Store").write_bytes(b"no image")
    (root / "train" / "Thumbs.db").write_bytes(b"no image")
    return root


def test_classes_and_images_come_in_alphabetical_order(folder):
    found = cu.load_image_folder(folder, 4, inside="train")
    assert found.classes == ("cat", "dog") and found.labels.tolist() == [0, 0, 1, 1]
    assert found.images.shape == (4, 3, 4, 4)
    assert found.images[:, 0, 0, 0].tolist() == [100, 101, 200, 201]
    assert cu.load_image_folder(folder / "test", 4, channels=1).images.shape == (4, 1, 4, 4)


@pytest.mark.parametrize("kind", ["tar.xz", "tar", "zip"])
def test_an_archive_gives_the_same(folder, tmp_path, kind):
    archive = tmp_path / f"pets.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in folder.rglob("*"):
                file.write(path, path.relative_to(folder))
    else:
        with tarfile.open(archive, "w:xz" if kind == "tar.xz" else "w") as file:
            file.add(folder, arcname=".")
    read, right = (cu.load_image_folder(one, 4, inside="train") for one in (archive, folder))
    assert (read.images == right.images).all() and (read.labels == right.labels).all()
    assert read.classes == right.classes


def test_nothing_outside_is_read(folder, tmp_path, monkeypatch):
    (folder / "film.bin").write_bytes(bytes(100))
    with zipfile.ZipFile(archive := tmp_path / "pets.zip", "w") as file:
        for path in folder.rglob("*"):
            file.write(path, path.relative_to(folder))
    monkeypatch.setattr(folders, "LARGEST_FILE", 90)
    usual, read = Path.read_bytes, []
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or usual(path))
    assert len(cu.load_image_folder(archive, 4, inside="train")) == 4
    assert len(cu.load_image_folder(folder, 4, inside="train")) == 4
    assert sorted(read) == ["0.png", "0.png", "1.png", "1.png"]


def test_what_cannot_be_read_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        cu.load_image_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is inside='val' right"):
        cu.load_image_folder(folder, inside="val")
    with pytest.raises(ValueError, match="no image in a folder of its class"):
        cu.load_image_folder(folder)
    (folder / "train" / "cat" / "bad.jpg").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"cat/bad.jpg in pets: it is no image"):
        cu.load_image_folder(folder, inside="train")
    with zipfile.ZipFile(broken := tmp_path / "pets.zip", "w") as file:
        file.write(folder / "test" / "cat" / "0.png", "cat/0.png")
    content = broken.read_bytes()
    broken.write_bytes(content.replace(b"IDAT", b"XXXX"))
    with pytest.raises(ValueError, match=r"cat/0.png in pets.zip: the archive is damaged"):
        cu.load_image_folder(broken)
    no_archive = tmp_path / "text.tar"
    no_archive.write_bytes(b"a text and no archive")
    with pytest.raises(ValueError, match="text.tar is no folder, and no .tar or .zip"):
        cu.load_image_folder(no_archive)
