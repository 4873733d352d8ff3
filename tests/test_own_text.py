"""*GPT* with a reader's own file: any encoding or one clear sentence, any length, in little memory and time."""

import codecs
import gzip
import io
import math
import random
import subprocess
import sys
import zipfile

import pytest
import torch

import course_utils as cu
from course_utils.data.text import read_text
from course_utils.files import ROOT
from course_utils.lessons.gpt import own
from course_utils.lessons.gpt.own import (
    Letters,
    OwnText,
    Pieces,
    has_read_plays,
    pieces_of_reader,
    until,
)
from course_utils.studio.notebook_files import read_source

LINE = "L’été, la pluie tombe sur le village ; personne n’y pense plus.\n"
ANY = "a naïve café\n¿qué?\t你好 🙂"


@pytest.fixture
def file(tmp_path):
    def made(content: str | bytes, encoding: str = "utf-8"):
        path = tmp_path / "own.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return made


def zipped(files: dict[str, str]) -> bytes:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def long_text(letters: int) -> str:
    words = "the", "a", "one", "red", "old", "house", "river", "walks", "sees", "quiet", "letter"
    return " ".join(random.Random(0).choices(words, k=letters // 3))[:letters]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_file_is_read_in_the_encodings_that_programs_write(file, encoding):
    assert read_text(file(LINE.replace("\n", "\r\n"), encoding)) == LINE


@pytest.mark.parametrize(
    ("text", "encoding", "words"),
    [
        (LINE, "cp1252", "L’été, n’y"),
        ("yellow;żółty\nthank you very much;dziękuję bardzo\n", "cp1250", "¿ó³ty, dziêkujê"),
        ("hello my dear friend\tпривет\nI go home\tда\n", "cp1251", "ïðèâåò, äà"),
        (LINE.replace("’", ""), "mac_roman", "Lt"),
    ],
)
def test_an_encoding_that_is_assumed_is_said_with_words_in_it(file, text, encoding, words):
    with pytest.warns(
        UserWarning, match="own.txt is not in UTF-8.* assumed, and gives (.*). Is"
    ) as said:
        assert read_text(file(text, encoding)) == text.encode(encoding).decode("cp1252")
    assert encoding == "mac_roman" or words in str(said[0].message)


@pytest.mark.parametrize("first", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("wrong", "places", "where"),
    [
        (LINE.encode()[:-1] + b"\xc3", "1 place", f"line 3, column {len(LINE)}"),
        (b"l\x92ami\r\n" + LINE.encode(), "1 place", "line 3, column 2"),
        ("L’été\r\nun été\n".encode("cp1252"), "5 places", "line 3, column 2"),
    ],
    ids=["cut off", "pasted", "joined"],
)
def test_a_wrong_byte_spoils_no_other_letter_and_its_place_is_said(
    file, wrong, places, where, first
):
    raw = first.encode() + 2 * LINE.encode()
    with pytest.warns(UserWarning, match=rf"is in UTF-8, but in {places} .* in {where} \(.*�"):
        text = read_text(file(raw + wrong))
    assert text.startswith(2 * LINE) and text.count("�") == int(places[0])


@pytest.mark.parametrize(
    ("content", "inside"),
    [
        (gzip.compress(b"a text"), ""),
        (zipped({"a.txt": "Hi", "b.txt": "Hi there"}), ", such as b.txt"),
    ],
    ids=["gz", "zip"],
)
def test_an_archive_is_to_be_unpacked(file, content, inside):
    with pytest.raises(
        ValueError, match=rf"own.txt is an archive\. Unpack it, .* file in it{inside}\.$"
    ):
        read_text(file(content))


def test_a_document_of_word_is_no_archive_to_a_reader(file):
    with pytest.raises(ValueError, match="Open it in the program that wrote it"):
        read_text(file(zipped({"[Content_Types].xml": "<a/>"})))


def test_utf_16_from_a_machine_of_the_other_order_is_read(file):
    assert read_text(file(codecs.BOM_UTF16_BE + LINE.encode("utf-16-be"))) == LINE


@pytest.mark.parametrize(
    "content",
    [
        LINE.encode("utf-16-le"),
        ("Жил-был старик со своею старухой. " * 9).encode("cp1251"),
        ("吾輩は猫である。名前はまだ無い。" * 9).encode("shift-jis"),
        b"PK\x03\x04\x14\x00" + bytes(range(256)) * 3,
    ],
    ids=["UTF-16 without a mark", "Russian", "Japanese", "a document"],
)
def test_another_file_gets_one_sentence_that_says_how_to_save_it(file, content):
    with pytest.raises(ValueError, match=r"own.txt is no plain text in UTF-8\. Open it .* UTF-8,"):
        read_text(file(content))


@pytest.mark.parametrize(
    ("begins", "kind"), [(r"{\rtf1\ansi", r"rich text \(RTF\)"), ("%PDF-1.4", "a PDF")]
)
def test_a_document_is_refused_though_it_is_written_in_plain_letters(file, begins, kind):
    with pytest.raises(ValueError, match=rf"own.txt is {kind}\..* save it as plain text"):
        read_text(file(f"{begins} The house by the river."))


def test_a_missing_file_and_a_folder_say_where_was_looked(file):
    path = file(LINE)
    with pytest.raises(ValueError, match=r"There is no file: /.*else.txt\. Put in the path"):
        read_text(path.with_name("else.txt"))
    with pytest.raises(ValueError, match=r"This is a folder: /.*\. Put in the path"):
        read_text(path.parent)


def test_a_path_may_begin_in_the_home_folder(file, monkeypatch):
    path = file(LINE)
    monkeypatch.setenv("HOME" if sys.platform != "win32" else "USERPROFILE", str(path.parent))
    assert read_text("~/own.txt") == LINE


@pytest.mark.parametrize("minutes", [0, -1, float("nan")])
def test_no_minutes_are_refused_before_anything_runs_for_ever(minutes):
    with pytest.raises(ValueError, match=f"minutes is {minutes}; put in 0.1 or more"):
        until(minutes)


def test_a_training_is_over_after_its_minutes(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(own.time, "monotonic", lambda: now[0])
    done = until(0.5)
    assert done(0) == 0
    now[0] += 15
    assert done(7) == 0.5


def test_a_beginning_is_one_of_two_words_in_any_case():
    assert [has_read_plays(word) for word in (*own.BEGINNINGS, "shakespeare")] == [
        False,
        True,
        True,
    ]
    with pytest.raises(ValueError, match='begin is \'Goethe\'; put in "nothing" or "Shakespeare"'):
        has_read_plays("Goethe")


def test_a_text_in_another_script_says_that_its_letters_are_cut_into_bytes(file):
    path, said = file("Жил-был старик со своею старухой. " * 40), "letters are cut into bytes"
    assert said in str(OwnText(path, 64, pieces=True)) and said not in str(OwnText(path, 64))
    assert said not in str(OwnText(file(LINE * 30), 64, pieces=True))


@pytest.mark.parametrize(("pieces", "tokens"), [(False, "letters"), (True, "pieces of words")])
def test_it_says_of_what_it_counts(file, pieces, tokens):
    text = str(OwnText(file(LINE * 30), 64, pieces))
    assert f" {tokens} of " in text and "the validation loss is a mean over" in text


def test_a_very_long_file_is_read_in_part_even_if_a_letter_is_cut(file):
    assert read_text(file("x" + "é" * 100), most=10) == "x" + "é" * 9


@pytest.mark.parametrize("pieces", [False, True])
def test_a_text_that_is_too_short_says_how_many_letters_are_needed(file, pieces):
    with pytest.raises(ValueError, match=r"60 letters.*about \d+ letters or more"):
        OwnText(file(LINE[:60]), 64, pieces)


@pytest.mark.parametrize(("letters", "pieces"), [(330, False), (1000, True)])
def test_a_short_text_is_enough(file, letters, pieces):
    text = OwnText(file((LINE * 20)[:letters]), 64, pieces)
    assert len(text.val) and text.val.shape[1] == 65 and len(text.train) > 64
    assert text.counted(1) > 0


@pytest.mark.parametrize("tokens", [Letters(ANY), Pieces.learned(LINE * 9, 300)], ids=["l", "p"])
def test_every_text_comes_back_whole(tokens):
    ids = tokens.encode(ANY)
    assert tokens.decode(ids.tolist()) == ANY and int(ids.max()) < len(tokens)


def test_pieces_of_a_long_text_are_cut_a_part_at_a_time(monkeypatch):
    pieces, text = pieces_of_reader(), long_text(500)
    monkeypatch.setattr(own, "PART", 100)
    assert pieces.decode(pieces.encode(text).tolist()) == text


READ = {
    "Chinese": "".join(map(chr, range(0x4E00, 0x5A00))),
    "one line without spaces": "abcdefghij" * 200,
    "digits": "3141592653" * 200,
    "one letter": "a" * 2000,
    "nothing but spaces": " \n\t " * 500,
    "emoji": "🙂👩\u200d👩\u200d👧 hé " * 200,
    "Arabic": "مرحبا بالعالم " * 200,
    "a table": "a,b\n1,2\n" * 300,
    "Markdown": "# The house\n\n- by the *river*\n" * 90,
    "decomposed letters": "e\u0301te\u0301 " * 300,
}


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_any_text_becomes_windows_that_spell_it(file, content, pieces):
    text = OwnText(f" '{file(content)}'", 64, pieces)  # as a file manager copies a path
    assert text.decode(text.train.tolist()) == content[: int(0.9 * len(content))]
    for windows, per_letter in text.measured:
        assert 1 <= len(windows) <= own.WINDOWS and windows.shape[1] == 65
        assert windows.min() >= 0 and windows.max() < len(text) and per_letter > 0
    assert text.counted(1) >= 0 and str(text).startswith("own.txt: ")


@pytest.mark.parametrize(
    "content", ["", "a", "\ufeff", LINE], ids=["0 B", "1 B", "a mark", "a line"]
)
@pytest.mark.parametrize("pieces", [False, True])
def test_a_file_of_hardly_a_letter_says_how_many_are_needed(file, content, pieces):
    with pytest.raises(
        ValueError, match=r"own.txt has \d+ letters.*of about [1-9]\d+ letters or more"
    ):
        OwnText(file(content), 64, pieces)


def test_the_chapters_cell_looks_on_every_25_steps_at_no_more_windows_than_a_page_needs(file):
    cells = (cell.source for cell in read_source(ROOT / "notebooks/source/13_gpt.py").cells)
    (cell,) = (source for source in cells if source.startswith("path, minutes"))
    looked, length = [], 64

    def loss_by_position(model, windows):
        looked.append(len(windows))
        return torch.ones(length)

    def train(model, ids, done, lr, watch):
        for step in range(1, 101):
            watch(step)
        return [1.0] * 100

    page = {name: getattr(own, name) for name in ("OwnText", "has_read_plays", "until")}
    page |= {"cu": cu, "math": math, "length": length, "train": train, "write": lambda *_: []}
    page |= {
        "loss_by_position": loss_by_position,
        "GPT": lambda *_: torch.nn.Linear(1, 1),
        "sizes": {},
    }
    first, _, *others = cell.split("\n")
    assert first.startswith("path, minutes = ") and _.startswith("begin = ")
    exec(
        "\n".join(
            [f"path, minutes, begin = {str(file(long_text(200_000)))!r}, 0.1, 'nothing'", *others]
        ),
        page,
    )
    assert looked == [own.WINDOWS] * 2 * (
        1 + 4 + 1
    )  # both texts, at the beginning, each 25 steps, and the end


@pytest.mark.parametrize("pieces", [False, True])
def test_what_is_asked_is_the_validation_tenth_and_does_not_grow_with_the_text(file, pieces):
    whole = long_text(200_000)
    text = OwnText(file(whole), 64, pieces)
    assert [len(windows) for windows, _ in text.measured] == [own.WINDOWS] * 2
    assert text.decode(text.train.tolist()) == whole[:180_000]
    assert all(before + asked in whole[179_700:] for before, asked in text.asked)
    places = [whole.index(before + asked, 179_700) for before, asked in text.asked]
    assert places == sorted(places) and places[-1] > 198_000, "evenly spread"
    assert len(OwnText(file(whole[:4000]), 64, pieces).val) < own.WINDOWS


def test_counting_counts_in_a_part_of_a_long_text_and_in_all_of_a_short_one(file, monkeypatch):
    counted = []
    monkeypatch.setattr(
        own,
        "kneser_ney_probs",
        lambda counts, asked, *_: counted.append(len(counts)) or [[0.5] * len(asked)],
    )
    for letters, minutes in ((4000, 1), (1_000_000, 5), (1_000_000, 0.1)):
        loss = OwnText(file(long_text(letters)), 64).counted(minutes)
        assert loss == pytest.approx(0.6931, abs=1e-4)
    assert counted == [3600, own.COUNTED, own.COUNTED // 10]


def test_a_loss_a_letter_is_the_same_share_of_a_text_in_letters_and_in_pieces(file):
    path = file(long_text(20_000))
    assert [ratio for _, ratio in OwnText(path, 64).measured] == [1.0, 1.0]
    text = OwnText(path, 64, pieces=True)
    for windows, ratio in text.measured:
        asked = windows[:, 33:]
        assert ratio == pytest.approx(
            asked.numel() / sum(len(text.decode(row)) for row in asked.tolist())
        )
    assert torch.equal(text.val[0, :33], text.train[-33:])


MEASURED = """
import sys
from course_utils.lessons.gpt.own import OwnText
import course_utils as cu

text = OwnText(sys.argv[1], 64)
model = cu.GPT(len(text), embed_dim=64, num_heads=4, num_layers=2, max_len=64)
for windows, _ in text.measured:
    model(windows[:, :-1]).logsumexp(dim=-1)
text.counted(1)
status = open("/proc/self/status").read()  # ru_maxrss would count the process that forked this one
print(status.partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is counted in another way")
def test_a_text_of_five_megabytes_takes_less_than_a_gigabyte_of_memory(file):
    path = file(long_text(own.LARGEST))
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 1_000_000, "kilobytes"
