# ruff: noqa: E501
"""What editors, archives and cameras of other people make: each kind of file through every reader that may meet it."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import torch
from PIL import Image

import course_utils as cu
from course_utils.data.images import load_fashion_mnist, read_image
from course_utils.data.prose import LONGEST_WORD, Subwords
from course_utils.data.text import Vocabulary, pad, tokenize
from course_utils.data.translation import PairLoader, load_grammar, load_pairs, split_by_source
from course_utils.files import ROOT
from course_utils.lessons.sequence_to_sequence.small_world import vocabularies_of
from course_utils.studio.notebook_files import read_source

# Texts ------------------------------------------------------------------------------------------

TEXT = "Être à l'heure: ça va.\nL'été, déjà!"
TEXTS = {
    "byte-order mark": "\ufeff" + TEXT,
    "byte-order marks of joined files": "\ufeff" + TEXT.replace("\n", "\n\ufeff"),
    "lines of Windows": TEXT.replace("\n", "\r\n"),
    "lines of an old Mac": TEXT.replace("\n", "\r"),
    "decomposed letters": normalize("NFD", TEXT),
    "marks of direction, soft hyphens, spaces of no width": "\u200f"
    + TEXT.replace("r", "r\u00ad\u200b")
    + "\u200e",
    "typographer's spaces and apostrophes": TEXT.replace(" ", "\u00a0").replace("'", "’"),
}
READERS = {
    "tokens": tokenize,
    "ids": lambda text: Vocabulary([tokenize(TEXT)]).encode(tokenize(text)),
    "pieces learned from it": lambda text: Subwords([text], size=60).tokens,
    "pieces of it": Subwords([TEXT], size=60).pieces,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_is_read_the_same_from_every_editor(text, read):
    assert read(text) == read(TEXT)


def test_a_word_that_would_take_hours_is_refused_at_once():
    with pytest.raises(ValueError, match=r"'gattaca.*…, has 2,000,000 letters; .*put spaces into"):
        Subwords(["a text", "gattaca" + "t" * 1_999_993])
    assert len(Subwords(["a" * (LONGEST_WORD - 1)], size=8)) == 8


def test_subwords_come_back_from_json_and_name_an_id_that_they_lack():
    learned = Subwords([TEXT], size=60)
    tokens, merges = json.loads(json.dumps([learned.tokens, learned.merges]))
    again = Subwords.from_merges(tokens, merges)
    assert again.encode(TEXT) == learned.encode(TEXT) and again.merges == learned.merges
    for index in (-1, len(learned)):
        with pytest.raises(
            ValueError, match=f"id {index} is outside a vocabulary of {len(learned)}"
        ):
            learned.decode([index])


def test_sequences_without_tokens_are_whole_numbers_too():
    ids, lengths = pad([[], []])
    assert ids.shape == (2, 0) and ids.dtype == lengths.dtype == torch.long


# Pairs of sentences -----------------------------------------------------------------------------

SIDES = [("Go home, now!", "Rentre à la maison, tout de suite !"), ("Why?", "Pourquoi ?")]
TABS = "\n".join("\t".join(pair) for pair in SIDES)
QUOTED = "\n".join('"' + '","'.join(pair) + '"' for pair in SIDES)
PAIRS = {
    "tabs": (TABS, "utf-8", {}),
    "lines of Windows, empty lines, spaces": (f"\n{TABS}\n  \n\n".replace("\n", "\r\n"), "utf-8", {}),
    "byte-order mark": (TABS, "utf-8-sig", {}),
    "UTF-16": (TABS, "utf-16", {}),
    "Windows' western letters": (TABS, "cp1252", {}),
    "decomposed letters": (normalize("NFD", TABS), "utf-8", {}),
    "notes": (f"# English, French\n{TABS}", "utf-8", {}),
    "a third column": (TABS.replace("\n", "\tCC-BY\n"), "utf-8", {}),
    "numbers between": (
        "\n".join(f"1\t{source}\t2\t{target}" for source, target in SIDES), "utf-8", {"columns": (1, 3)}
    ),
    "columns swapped": ("\n".join("\t".join(pair[::-1]) for pair in SIDES), "utf-8", {"columns": (1, 0)}),
    "commas and quotes": (QUOTED, "utf-8", {}),
    "text of Excel": (
        "\n".join('"' + '"\t"'.join(pair) + '"' if "," in pair[0] else "\t".join(pair) for pair in SIDES), "utf-16", {}
    ),
    "semicolons of Excel": (TABS.replace("\t", ";"), "cp1252", {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:own pairs.tsv")  # what is said of them is tested below
@pytest.mark.parametrize(("text", "encoding", "given"), PAIRS.values(), ids=PAIRS)
def test_pairs_are_read_the_same_from_every_program(tmp_path, text, encoding, given):
    (tmp_path / "own pairs.tsv").write_bytes(text.encode(encoding))
    right = [(tuple(tokenize(source)), tuple(tokenize(target))) for source, target in SIDES]
    for path in (
        tmp_path / "own pairs.tsv",
        f'"{tmp_path}/own pairs.tsv" ',
    ):  # as a file manager copies it
        assert [(p.source, p.target) for p in load_pairs(path, **given)] == right


NO_PAIRS = {
    "one column": ("Go!\nWhy?", "own.tsv, line 1: 1 columns; 2 are needed. Put a tab between"),
    "a column is missing": (TABS + "\nGo!", "own.tsv, line 3: 1 columns; 2 tab-separated are needed"),
    "commas without quotes": ("Go!,Va !\nNo, go!,Non, va !", "line 2: 4 columns; 2 are needed.* comma in quotes"),
    "a sentence of a megabyte": ("Go!," + 200_000 * "a", r"line 1: field larger .*\. Put a tab between"),
    "one semicolon too many": (
        "Go!;Va !\nNo!;Non !\nYou; go!;Va !\nRun, now!;Cours !", "line 3: 3 columns; 2 are needed",
    ),
    "a quote without an end": ('Hi,Salut\n"Run,Cours\nGo,Va\n', "line 2: 1 columns.* a quote that opens in this line"),
    "lines of JSON": ('{"en": "Go!", "fr": "Va !"}\n' * 2, "own.tsv is JSON, and no table.* tab"),
    "JSON over lines": ('[\n {"en": "Go!",\t"fr": "Va !"}\n]', "own.tsv is JSON, and no table.* tab"),
    "XML": ('<?xml version="1.0"?>\n<tmx>\n\t<seg>Go!</seg>', "own.tsv is XML or HTML, and no table"),
    "empty": (" \n", "own.tsv holds no pair of sentences"),
    "a document": ("PK\3\4\0", "own.tsv is no plain text in UTF-8.*Save as"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), NO_PAIRS.values(), ids=NO_PAIRS)
def test_a_file_without_pairs_is_refused_by_its_line(tmp_path, text, said):
    (tmp_path / "own.tsv").write_text(text)
    with pytest.raises(ValueError, match=said):
        load_pairs(tmp_path / "own.tsv")


def test_names_of_columns_are_none(tmp_path):
    (tmp_path / "own.tsv").write_text(TABS, encoding="utf-8")
    for columns in (("en", "fr"), (-2, -1)):
        with pytest.raises(ValueError, match=r"two numbers, counted from 0, .*columns=\(0, 1\)"):
            load_pairs(tmp_path / "own.tsv", columns=columns)


DOUBTFUL = {
    "headings": (f"English\tfrench sentences\n{TABS}", "the first line, 'English' and .* looks like headings"),
    "numbers of lines": (
        "".join(f"{i}\tGo!\t{i}\tVa !\n" for i in range(3)), r"only numbers; are .* in columns=\(1, 3\)\?",
    ),
    "sentences of one language": ("Hello, you.\nNo, go now.", "each comma is followed by a space.* Are these pairs"),
    "quotes around cells": ('Go!\tVa !\n"Go, ""now""!"\tVa !', r"quotes around whole cells \(1\) are left out"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_may_be_no_pair_is_said(tmp_path, text, said):
    (tmp_path / "own.tsv").write_text(text, encoding="utf-8")
    with pytest.warns(UserWarning, match=f"own.tsv: .*{said}"):
        load_pairs(tmp_path / "own.tsv")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "text",
    [TABS, QUOTED, '"Go," he said.\tVa !\nShe said "go".\t"Va !"', "text one\tun texte\nGo!\tVa !"],
)
def test_pairs_without_a_doubt_are_read_without_a_word(tmp_path, text):
    (tmp_path / "own.tsv").write_text(text, encoding="utf-8")
    assert len(load_pairs(tmp_path / "own.tsv")) == 2


def test_lines_without_one_of_the_two_sentences_are_left_out_and_counted(tmp_path):
    (tmp_path / "own.tsv").write_text(f"\tVa !\n{TABS}\nGo!\t \n", encoding="utf-8")
    with pytest.warns(UserWarning, match="own.tsv: 2 lines lack one .*; the first is line 1"):
        assert len(load_pairs(tmp_path / "own.tsv")) == 2
    (tmp_path / "own.tsv").write_text(TABS, encoding="utf-8")
    with pytest.raises(ValueError, match="no pair .* at most 1 tokens"):
        load_pairs(tmp_path / "own.tsv", max_tokens=1)


CHINESE = ["猫在睡觉。", "狗在睡觉。", "猫在睡觉吗？", "猫在吃饭。"]
CLAUSES = [
    f"{chr(0x4E00 + i)}在睡觉{chr(0x5E00 + i)}，狗在吃{chr(0x6E00 + i)}饭。" for i in range(60)
]
THAI = ["แมวกำลังนอนหลับ", "หมากำลังนอนหลับ", "แมวกำลังกินข้าว"]
HINDI, KOREAN = "क्या वह सोती है। हाँ।", "고양이가 잔다. 개가 잔다."


@pytest.mark.parametrize("texts", [CHINESE, CLAUSES, THAI, [f"w{i}" for i in range(1000)]])
def test_sentences_without_spaces_are_said_once_with_what_to_do(texts):
    remedy = r"tokens occur once, such as .* letters, with load_pairs\(…, cut=list\).*Subwords\("
    with pytest.warns(UserWarning, match=remedy) as said:
        Vocabulary(map(tokenize, texts))
    assert len(said) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "sentences",
    [
        [list(text) for text in CHINESE],
        [Subwords(CLAUSES, size=300).pieces(text) for text in CLAUSES],
        [["猫", "在", "睡觉", "。"], ["你好", "！"], ["好", "的"]],
        [tokenize(HINDI), tokenize(KOREAN), ["go", "!"], ["why", "?"]],
        [[f"w{i}"] for i in range(999)],
        [pair.source for pair in load_grammar("fr")],
    ],
    ids=["letters", "subwords", "words", "spaces", "few", "course"],
)
def test_no_other_sentences_are(sentences):
    vocabulary = Vocabulary(sentences)
    assert len(Vocabulary.from_tokens(vocabulary.tokens)) == len(vocabulary)


def test_own_pairs_are_cut_into_letters_or_subwords(tmp_path):
    (tmp_path / "own.tsv").write_text(
        "\n".join(f"Go on!\t{text}" for text in CHINESE), encoding="utf-8"
    )
    letters = load_pairs(tmp_path / "own.tsv", cut=list)
    assert letters[0].target == tuple(CHINESE[0]) and "".join(letters[0].source) == "go on!"
    pairs = load_pairs(tmp_path / "own.tsv", cut=(tokenize, list))
    assert pairs[0].source == ("go", "on", "!") and pairs[0].target == letters[0].target
    cut = Subwords([*CHINESE, "go on!"], size=40).pieces
    assert "".join(load_pairs(tmp_path / "own.tsv", cut=cut)[0].target) == "猫在睡觉␣。␣"


@pytest.mark.parametrize("count", [2, 5, 30])
def test_the_chapters_cell_reads_a_first_file_of_a_few_pairs(tmp_path, capsys, count):
    source = read_source(ROOT / "notebooks/source/06_bahdanau_attention_further.py")
    (cell,) = (cell.source for cell in source.cells if "# put in a file of" in cell.source)
    lines = [f"I have {i} .\tj'ai {i} .\n" for i in range(count)]
    (tmp_path / "own.tsv").write_text("".join(lines), encoding="utf-8")
    names = {"load_pairs": load_pairs, "split_by_source": split_by_source, "PairLoader": PairLoader}
    path = f"path = {str(tmp_path / 'own.tsv')!r}\n"
    exec(path + cell.partition("\n")[2], names | {"vocabularies_of": vocabularies_of})
    assert f"{count - max(1, count // 10)} pairs, such as" in capsys.readouterr().out


# Images by class --------------------------------------------------------------------------------


def pictures(root: Path, cat: str = "Café cat", dog: str = "dog") -> Path:
    """A folder of two classes: two images and one."""
    for name, shade in ((f"{cat}/0.png", 50), (f"{cat}/1.png", 100), (f"{dog}/0.png", 150)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (6, 6), shade).save(root / name)
    return root


def packed(kind: str):
    return lambda folder: Path(shutil.make_archive(str(folder), kind, folder))


zipped = packed("zip")


def linked(folder: Path) -> Path:
    shutil.move(folder / "dog", folder.parent / "elsewhere")
    (folder / "dog").symlink_to(folder.parent / "elsewhere")
    return folder


def deeper(folder: Path) -> Path:
    (folder / "dog" / "summer" / "2026").mkdir(parents=True)
    shutil.move(folder / "dog" / "0.png", folder / "dog" / "summer" / "2026" / "0.png")
    return folder


def decomposed(folder: Path) -> Path:
    shutil.rmtree(folder)
    return pictures(folder, cat=normalize("NFD", "Café cat"))


def with_rubbish(folder: Path) -> Path:
    for name in (".DS_Store", "Thumbs.db", "._0.png"):
        (folder / "dog" / name).write_bytes(b"no image")
    (folder / "readme.txt").write_text("not in a class")
    return folder


WHOLE = {
    "links": linked,
    "one folder deeper": deeper,
    "decomposed names": decomposed,
    "rubbish of Mac and Windows": with_rubbish,
    "zip": zipped,
    "tar": packed("tar"),
    "tar.xz": packed("xztar"),
}
needs_links = pytest.mark.skipif(os.name == "nt", reason="links ask for rights on Windows")


@needs_links
@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_a_set_of_images_is_whole_however_it_was_packed(tmp_path, make):
    right = cu.load_image_folder(pictures(tmp_path / "right"), 4)
    found = cu.load_image_folder(make(pictures(tmp_path / "set")), 4)
    assert found.classes == right.classes == ("Café cat", "dog")
    assert torch.equal(found.images, right.images) and torch.equal(found.labels, right.labels)


def test_classes_and_images_come_in_order_and_nothing_else_is_read(tmp_path):
    folder = with_rubbish(pictures(tmp_path / "pets" / "train")).parent
    (folder / "film.bin").write_bytes(b"no image")
    for path in (folder, zipped(folder)):
        found = cu.load_image_folder(path, 4, inside="train", channels=1)
        assert found.labels.tolist() == [0, 0, 1] and found.images.shape == (3, 1, 4, 4)
        assert found.images[:, 0, 0, 0].tolist() == [50, 100, 150]
    assert cu.load_image_folder(folder / "train", 4).images.shape == (3, 3, 4, 4)


def with_file(name: str, content: bytes):
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder

    return make


def pointing(name: str, to: str):
    def make(folder: Path) -> Path:
        (folder / name).symlink_to(to)
        return folder

    return make


def jpeg() -> bytes:
    Image.effect_noise((64, 64), 50).save(buffer := io.BytesIO(), "JPEG")
    return buffer.getvalue()


def in_a_folder(folder: Path) -> Path:
    folder.rename(folder.parent / "train")
    folder.mkdir()
    return (folder.parent / "train").rename(folder / "train").parent


def cut_off(folder: Path) -> Path:
    path = packed("gztar")(folder)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def damaged(folder: Path) -> Path:
    with zipfile.ZipFile(path := folder.with_suffix(".zip"), "w") as archive:
        archive.write(folder / "dog" / "0.png", "dog/0.png")
    path.write_bytes(path.read_bytes().replace(b"IDAT", b"XXXX"))
    return path


def text_as_tar(folder: Path) -> Path:
    (path := folder.with_suffix(".tar")).write_bytes(b"a text and no archive")
    return path


REFUSED = {
    "zip damaged": (damaged, "set.zip is no .zip or .tar that can be read: .*CRC.*0.png"),
    "tar cut off": (cut_off, "set.tar.gz is no .zip or .tar that can be read"),
    "a text": (text_as_tar, "set.tar is no .zip or .tar that can be read"),
    "no classes": (lambda folder: folder / "dog", "no image in a folder of its class"),
    "link to nowhere": (pointing("bird", "gone"), "bird in set is a link to gone, which can't be followed"),
    "link in a circle": (pointing("bird", "."), r"bird in set is a link to \., which can't"),
    "all one folder deeper": (in_a_folder, "such as train/Café cat/0.png: is inside='train' meant"),
    "deeper, with annotations": (
        lambda folder: with_file("train/_annotations.json", b"{}")(in_a_folder(folder)), "is inside='train' meant",
    ),
    "text among the images": (with_file("dog/labels.txt", b"0 dog"), r"dog/labels.txt in set: .* is no image"),
    "photo cut off": (with_file("dog/9.jpg", jpeg()[:700]), r"dog/9.jpg in set: .*skip_broken=True"),
    "photo of an iPhone": (with_file("dog/9.heic", b"\0\0\0\x18ftypheic" + bytes(99)), "dog/9.heic in set"),
}  # fmt: skip


@needs_links
@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_whole_is_refused_by_name(tmp_path, make, said):
    path = make(pictures(tmp_path / "set"))
    with pytest.raises(ValueError, match=said):
        cu.load_image_folder(path, 4)


def test_broken_files_can_be_left_out_and_are_counted(tmp_path, capsys):
    folder = pictures(tmp_path / "set")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        cu.load_image_folder(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="val does not exist"):
        cu.load_image_folder(folder, inside="val")
    right = cu.load_image_folder(folder, 4)
    for number in range(6):
        (folder / "dog" / f"{number + 1}.jpg").write_bytes(jpeg()[:700])
    found = cu.load_image_folder(folder, 4, skip_broken=True)
    assert torch.equal(found.images, right.images) and found.classes == right.classes
    said = "set: 6 of 9 files can't be read as images and are left out: dog/1.jpg, "
    assert capsys.readouterr().out.startswith(said)
    (folder / "dog" / "0.png").unlink()
    with pytest.raises(ValueError, match="no file of dog in set can be read"):
        cu.load_image_folder(folder, 4, skip_broken=True)


BESIDES = {
    "annotations": {"annotations/list.txt": b"cat/1 0", "annotations/xmls/1.xml": b"<a/>"},
    "tables": {
        "labels/1.json": b"{}",
        "labels/set.mat": b"MATLAB 5.0 MAT-file",
        "labels/empty.csv": b"",
    },
    "nothing": {"bird/": b""},
    "nothing, deeper": {"bird/summer/": b""},
    "two": {"bird/": b"", "labels/1.txt": b"0"},
    "words that begin as images do": {
        "labels/1": b"BMW 0\n",
        "labels/2": b"GIF8 0",
        "labels/3": b"\x89PNG",
    },
    "what a system leaves there": {"bird/Thumbs.db": b"x", "bird/.DS_Store": b"x"},
}
HIDDEN = {
    ".ipynb_checkpoints/0.png": b"x",
    ".git/HEAD": b"x",
    "__MACOSX/dog/._0.png": b"x",
    "list.csv": b"x",
}


@pytest.mark.parametrize("skip_broken", [False, True])
@pytest.mark.parametrize("pack", [Path, zipped], ids=["folder", "zip"])
@pytest.mark.parametrize("files", BESIDES.values(), ids=BESIDES)
def test_a_folder_in_which_no_file_is_an_image_is_no_class_and_is_named_once(
    tmp_path, capsys, files, pack, skip_broken
):
    folder = pictures(tmp_path / "set")
    right = cu.load_image_folder(folder, 4)
    for name, content in (files | HIDDEN).items():
        (folder / name if name.endswith("/") else (folder / name).parent).mkdir(
            parents=True, exist_ok=True
        )
        if not name.endswith("/"):
            (folder / name).write_bytes(content)
    found = cu.load_image_folder(path := pack(folder), 4, skip_broken=skip_broken)
    assert found.classes == right.classes and torch.equal(found.images, right.images)
    others = " or ".join(sorted({name.split("/")[0] for name in files}))
    said = f"{path.name}: no file in {others} is an image, so that is no class"
    assert capsys.readouterr().out.splitlines() == [said]


@pytest.mark.parametrize("name", ["bird/1.JPG", "bird/1", "bird/summer/1.heic"])
def test_a_class_whose_every_image_is_broken_is_lost_and_not_left_out(tmp_path, name):
    folder = pictures(tmp_path / "set")
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_bytes(jpeg()[:700])
    with pytest.raises(ValueError, match=f"{name} in set: .*skip_broken=True"):
        cu.load_image_folder(folder, 4)
    with pytest.raises(ValueError, match="no file of bird in set can be read"):
        cu.load_image_folder(folder, 4, skip_broken=True)


def test_one_class_is_enough_and_images_are_known_without_an_ending(tmp_path):
    folder = pictures(tmp_path / "set")
    shutil.rmtree(folder / "dog")
    (folder / "Café cat" / "0.png").rename(folder / "Café cat" / "0")
    found = cu.load_image_folder(folder, 4)
    assert found.classes == ("Café cat",) and found.labels.tolist() == [0, 0]


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".txt"):
            (root / name).write_text("boxes")
        else:
            Image.new("L", (6, 6), 50).save(root / name)
    return root


PARTS = {
    "flat test": (["train/cat/1.jpg", "train/dog/1.jpg", "test/1.jpg"], "test, train, named like parts.*is inside='train' meant. train has the classes cat, dog"),
    "a loose picture": (["train/cat/1.jpg", "train/dog/1.jpg", "train/loose.jpg"], "inside='train' meant"),
    "three parts": (["Training/a/1.jpg", "Training/b/1.jpg", "Testing/a/1.jpg", "Testing/b/1.jpg"], "inside='Training' or inside='Testing' meant"),
    "parts in parts": (["seg_train/seg_train/sea/1.jpg", "seg_train/seg_train/ice/1.jpg", "seg_pred/seg_pred/1.jpg"], "inside='seg_train/seg_train' meant"),
    "one part and others": (["train/cat/1.jpg", "train/dog/1.jpg", "samples/1.jpg"], "inside='train' meant"),
    "no classes": (["train/cat.0.jpg", "train/dog.0.jpg", "test1/1.jpg"], "test1, train, named like parts.*put the images of each class"),
    "no classes, in images": (["train/images/1.jpg", "val/images/1.jpg"], "put the images of each class"),
    "classes with images": (["train/n1/images/1.JPEG", "train/n2/images/1.JPEG", "val/images/1.JPEG"], "inside='train' meant. train has the classes n1, n2"),
    "an archive's own folder": (["data/train/a/1.jpg", "data/train/b/1.jpg", "data/valid/a/1.jpg", "data/valid/b/1.jpg"], "inside='data/train' or inside='data/valid'"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "said"), PARTS.values(), ids=PARTS)
def test_parts_of_a_data_set_are_no_classes_and_where_those_are_is_said(tmp_path, names, said):
    folder = tree(tmp_path / "set", *names)
    for path in (folder, zipped(folder)):
        with pytest.raises(ValueError, match=said) as refused:
            cu.load_image_folder(path, 4)
        if meant := re.search("inside='([^']+)'", str(refused.value)):
            assert len(cu.load_image_folder(path, 4, inside=meant[1]).classes) == 2


READ = {
    "every class has such a folder": (["n1/images/1.JPEG", "n2/images/1.JPEG", "n1/n1_boxes.txt"], ("n1", "n2"), "of each class, the folder images/ is read"),
    "one class": (["images/1.JPEG"], ("images",), "there is one class, images"),
    "one class with folders": (["all/cat/1.jpg", "all/1.jpg"], ("all",), "one class, all; if its folders are classes, inside='all'"),
    "a picture beside the classes": (["a/1.jpg", "b/1.jpg", "1.jpg"], ("a", "b"), "beside the folders of the classes are left out: 1.jpg"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "classes", "said"), READ.values(), ids=READ)
def test_what_could_be_meant_otherwise_is_said_in_a_line(tmp_path, capsys, names, classes, said):
    assert cu.load_image_folder(tree(tmp_path / "set", *names), 4).classes == classes
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "names", [("train", "bus"), ("test tube", "train station"), ("trains", "vale")]
)
def test_classes_that_are_called_like_parts_of_a_data_set_are_read(tmp_path, capsys, names):
    folder = tree(tmp_path / "set", *(f"{name}/1.jpg" for name in names))
    assert cu.load_image_folder(folder, 4).classes == tuple(sorted(names))
    assert not capsys.readouterr().out


@pytest.mark.parametrize("skip_broken", [False, True])
def test_a_wrong_argument_is_not_laid_upon_the_images(tmp_path, skip_broken):
    with pytest.raises(ValueError, match="^channels=4; 1 for gray or 3 for color"):
        cu.load_image_folder(pictures(tmp_path / "set"), 4, channels=4, skip_broken=skip_broken)


def test_paths_are_read_as_they_are_copied(tmp_path, monkeypatch, letters):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folder = pictures(tmp_path / "set")
    for path in ("~/set", f'"{folder}"', f"'{folder}' "):
        assert len(cu.load_image_folder(path, 4)) == 3
    assert read_image('"~/set/dog/0.png"').float().mean() == 150
    assert len(load_fashion_mnist("test", folder=f'"{letters}"')) == 3


def test_no_archive_writes_a_file_outside_the_folder_it_is_unpacked_to(tmp_path, monkeypatch):
    (tmp_path / "unpacked").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "unpacked"))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("../../out.png", b"")
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../../out.png"))
    for name in ("set.zip", "set.tar"):
        with pytest.raises(ValueError, match=name):
            cu.load_image_folder(tmp_path / name)
    assert not list(tmp_path.rglob("out.png"))


# Another set in MNIST's format ------------------------------------------------------------------


@pytest.fixture
def letters(tmp_path):
    """Three images with the labels 1, 2 and 3, as EMNIST has its letters."""
    for name, shape, values in (
        ("t10k-images-idx3-ubyte", [3, 28, 28], bytes(3 * 784)),
        ("t10k-labels-idx1-ubyte", [3], bytes([1, 2, 3])),
    ):
        head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(head + values, mtime=0))
    return tmp_path


def test_a_set_in_the_format_of_mnist_has_the_names_that_are_given(letters):
    assert load_fashion_mnist("test", folder=letters).classes == ("0", "1", "2", "3")
    found = load_fashion_mnist("test", folder=letters, classes=["–", "A", "B", "C"])
    assert [found.classes[label] for label in found.labels] == ["A", "B", "C"]
    with pytest.raises(
        ValueError, match="labels go from 1 to 3, outside the 3 classes, which count from 0"
    ):
        load_fashion_mnist("test", folder=letters, classes="ABC")


NAMES = {
    "dots of Kaggle": "t10k-images.idx3-ubyte t10k-labels.idx1-ubyte",
    "a folder of that name": "t10k-images-idx3-ubyte/t10k-images-idx3-ubyte t10k-labels.idx1-ubyte",
    "EMNIST": "emnist-letters-test-images-idx3-ubyte emnist-letters-test-labels-idx1-ubyte",
    "EMNIST in a folder": "gzip/emnist-letters-test-images-idx3-ubyte.gz gzip/emnist-letters-test-labels-idx1-ubyte.gz",
}


def renamed(folder: Path, names: str) -> Path:
    for old, new in zip(sorted(folder.glob("t10k-*.gz")), names.split(), strict=True):
        content = old.read_bytes()
        old.unlink()
        (folder / new).parent.mkdir(exist_ok=True)
        (folder / new).write_bytes(content if new.endswith(".gz") else gzip.decompress(content))
    return folder


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_files_of_mnist_are_found_by_every_name_that_they_have(letters, names):
    assert load_fashion_mnist("test", folder=renamed(letters, names)).labels.tolist() == [1, 2, 3]


def test_a_missing_file_of_mnist_is_named_with_what_is_there_and_of_two_sets_none_is_taken(letters):
    with pytest.raises(FileNotFoundError, match="holds no train-images.*it holds t10k-images-idx3"):
        load_fashion_mnist(folder=letters)
    renamed(letters, NAMES["EMNIST"])
    (letters / "emnist-digits-test-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(ValueError, match="several sets lie in .*emnist-digits.*emnist-letters"):
        load_fashion_mnist("test", folder=letters)


# Terminals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", "✓ ✗ ○ · → é ½ “x” 你 ≤ ?"),
        ("cp1252", "+ x o · -> é ½ “x” ? <= ?"),
        ("cp949", "+ x ○ · → e ½ “x” ? ≤ ?"),
        ("ascii", '+ x o . -> e 1/2 "x" ? <= ?'),
    ],
)
def test_a_terminal_gets_the_nearest_letters_that_its_encoding_has(encoding, said):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="nearest")
    stream.write("✓ ✗ ○ · → é ½ “x” 你 ≤ \ud800")
    stream.flush()
    assert stream.buffer.getvalue().decode(encoding) == said


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "cp949", "ascii"])
def test_checks_and_the_doctor_report_whatever_the_terminal_can_show(encoding):
    calls = "print(cu.doctor()); print(cu.checks.fixed_loss(lambda *_, **__: 1.0))"
    done = subprocess.run(
        [sys.executable, "-c", f"import course_utils as cu; {calls}"],
        cwd=ROOT, env=os.environ | {"PYTHONIOENCODING": encoding, "COURSE_STRICT": ""},
        capture_output=True, encoding=encoding,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "\n+ PyTorch" in done.stdout and "\n  x " in done.stdout
