"""*From GPT to an assistant*, a reader's own file: learned or read, or one clear sentence; and counts of its kin."""

import random

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

import course_utils as cu
from course_utils.kit.runs import stored_run
from course_utils.lessons.from_gpt_to_assistant import chatting, own_text
from course_utils.lessons.real_weights.smollm import SmolLM


def words(letters: int) -> str:
    draws = random.Random(0)
    return " ".join(
        draws.choice(("red", "old", "house", "river", "walks")) for _ in range(letters)
    )[:letters]


@pytest.fixture(scope="module")
def small() -> SmolLM:
    """A tiny GPT in SmolLM2's place, which reads letters."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(
        models.BPE({"<|endoftext|>": 0} | {a: i + 1 for i, a in enumerate(alphabet)}, [])
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<|endoftext|>"])
    torch.manual_seed(0)
    sizes = {"embed_dim": 16, "num_heads": 2, "num_layers": 1, "rotary": True, "dropout": 0.0}
    return SmolLM(cu.GPT(1 + len(alphabet), **sizes).eval().requires_grad_(False), made)


@pytest.fixture
def file(tmp_path):
    def made(content: str | bytes):
        path = tmp_path / "my_text.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return made


def test_a_file_is_read_and_learned_and_said_how_long_it_takes(small, file, capsys, monkeypatch):
    monkeypatch.setattr(own_text, "SAID", 3)
    text = words(2_400)
    before = {name: value.clone() for name, value in small.model.state_dict().items()}
    gave = own_text.own_file(file(text), small, steps=8, rate=0.3)
    assert (
        "my_text.txt: 2400 tokens, 8 steps of LoRA; about 1 minute and 1.9 GB"
        in capsys.readouterr().out
    )
    assert gave.table.shape == (2, 2) and gave.characters == 240
    assert set(gave.losses) == set(gave.says) == set(own_text.WAYS)
    assert all(len(each) == 240 for each in gave.losses.values())
    as_it_is, learned = gave.table["after 128 tokens"]
    assert learned < as_it_is - 0.1
    assert "learned minus read: -" in gave.verdict() and "learning is ahead" in gave.verdict()
    for name, value in small.model.state_dict().items():
        assert torch.equal(value, before[name])


def test_reading_all_is_reading_more_than_128_tokens(small, file, monkeypatch):
    seen = []
    monkeypatch.setattr(own_text, "SAID", 1)
    real = own_text.losses
    monkeypatch.setattr(
        own_text,
        "losses",
        lambda m, before, asked: seen.append(len(before)) or real(m, before, asked),
    )
    own_text.own_file(file(words(2_400)), small, steps=1)
    assert seen[1:] == [128, 2160, 128, 2160]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("too short", r"my_text.txt has only 9 letters.*at least 2000 letters"),
        (words(6_000), r"more than 4096 tokens.*about 4000 letters"),
        (b"\x00\x01\x02" * 2_000, r"my_text.txt is no plain text in UTF-8"),
        (b"PK\x03\x04" + bytes(2_000), "my_text.txt is an archive|no plain text"),
    ],
)
def test_a_file_that_does_not_serve_is_refused_in_a_sentence(small, file, content, message):
    with pytest.raises(ValueError, match=message):
        own_text.own_file(file(content), small)


def test_a_missing_file_is_said_with_and_without_the_weights(small, tmp_path):
    for lm in (small, None):
        with pytest.raises(ValueError, match="There is no file: .*nowhere.txt"):
            own_text.own_file(str(tmp_path / "nowhere.txt"), lm)


def test_without_weights_the_recorded_story_is_shown(file, capsys):
    of_story = own_text.own_file("", None)
    assert capsys.readouterr().out.startswith("This is our story, recorded on 20")
    of_file = own_text.own_file(file(words(3_000)), None)
    assert capsys.readouterr().out.startswith(
        "Without the weights there is nothing to compute. This is our story"
    )
    pd.testing.assert_frame_equal(of_story.table, of_file.table)
    as_learned = stored_run(
        "from_gpt_to_assistant", "learned", text="story", rate=0.001, seed=0
    ).result
    assert of_story.table.loc["after LoRA", "after 128 tokens"] == pytest.approx(
        as_learned["128 tokens before"], abs=2e-3
    )


def test_differences_are_paired():
    noise = torch.rand(50).tolist()
    more, error = own_text.paired([n + 0.2 for n in noise], noise, 100)
    assert more == pytest.approx(0.1) and error == pytest.approx(0, abs=1e-9)
    more, error = own_text.paired([2.0, 0.0], [0.0, 0.0], 2)
    assert more == 1 and error == pytest.approx(1)


def test_bins_hold_each_prediction_once_and_the_gap_is_their_mean():
    sure = torch.tensor([0.1, 0.1, 0.9, 1.0])
    rows = chatting.bins(sure, torch.tensor([False, True, True, True]))
    assert [n for n, *_ in rows] == [2, 2]
    assert chatting.gap(rows) == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)


def test_kinds_of_countries_are_counted_from_what_was_recorded():
    kinds = chatting.by_kind()
    assert sum(n for n, *_ in kinds.values()) == 60
    assert kinds["well known"][2] == 1 and kinds["invented"][2] == 0
