"""Reading real weights: the file format, the tokenizer, and what is shown where the weights are not."""

import json
import re
import struct

import numpy as np
import pytest
import torch

import course_utils as cu
from course_utils.files import ROOT
from course_utils.kit import runs as stored
from course_utils.lessons.real_weights import experiments, gguf, smollm
from course_utils.lessons.real_weights import runs as recorded
from course_utils.lessons.real_weights.smollm import SmolLM, chat, known

SMALL = {"embed_dim": 32, "num_heads": 4, "num_layers": 2, "ffn_dim": 64, "num_kv_heads": 2}
MODERN = {"activation": "swiglu", "norm": "rms", "rotary": True, "rotary_base": 1e5}


# A file of our own --------------------------------------------------------------------------------


def text(words):
    return struct.pack("<Q", len(words.encode())) + words.encode()


def value(thing):
    """(kind, bytes) of a value of metadata."""
    if isinstance(thing, list):
        kinds = [value(each) for each in thing]
        packed = b"".join(each for _, each in kinds)
        return 9, struct.pack("<IQ", kinds[0][0], len(thing)) + packed
    if isinstance(thing, str):
        return 8, text(thing)
    return (
        (6, struct.pack("<f", thing)) if isinstance(thing, float) else (4, struct.pack("<I", thing))
    )


def write_gguf(path, metadata, tensors, magic=b"GGUF"):
    """`tensors`: name → (type, shape, bytes)."""
    head = magic + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, thing in metadata.items():
        kind, packed = value(thing)
        head += text(key) + struct.pack("<I", kind) + packed
    body = b""
    for name, (kind, shape, raw) in tensors.items():
        body += b"\0" * (-len(body) % 32)
        sizes = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += (
            text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, len(body))
        )
        body += raw
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def packed_q4_1(rows):
    """Blocks of 32 numbers as Q4_1 has them, and what they stand for then."""
    blocks = rows.reshape(-1, 32)
    low, step = blocks.min(1, keepdims=True), np.ptp(blocks, axis=1, keepdims=True) / 15
    d, m = step.astype(np.float16), low.astype(np.float16)
    n = np.clip(((blocks - m) / d).round(), 0, 15).astype(np.uint8)
    halves = n[:, :16] | (n[:, 16:] << 4)
    raw = np.concatenate([d.view(np.uint8), m.view(np.uint8), halves], axis=1)
    return raw.tobytes(), (d.astype(np.float32) * n + m.astype(np.float32)).reshape(rows.shape)


def test_each_type_of_number_is_read_as_it_was_written(tmp_path):
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(3, 64)).astype(np.float32)
    four, meant = packed_q4_1(rows)
    d = (np.abs(rows.reshape(-1, 32)).max(1, keepdims=True) / 127).astype(np.float16)
    eight = (rows.reshape(-1, 32) / d).round().astype(np.int8)
    path = write_gguf(tmp_path / "x.gguf", {"a": 7, "words": ["b", "é"], "base": 0.5}, {
        "whole": (0, (3, 64), rows.tobytes()),
        "half": (1, (192,), rows.astype(np.float16).tobytes()),
        "four": (3, (3, 64), four),
        "eight": (8, (3, 64), np.concatenate([d.view(np.uint8), eight.view(np.uint8)], 1).tobytes()),
    })  # fmt: skip
    file = gguf.GGUF(path)
    assert file.metadata == {"a": 7, "words": ["b", "é"], "base": 0.5}
    assert torch.equal(file.read("whole"), torch.from_numpy(rows))
    assert torch.equal(
        file.read("half"), torch.from_numpy(rows.astype(np.float16).astype(np.float32)).flatten()
    )
    assert torch.equal(file.read("four"), torch.from_numpy(meant))
    expected = (d.astype(np.float32) * eight).reshape(3, 64)
    assert torch.equal(file.read("eight"), torch.from_numpy(expected))


def test_the_numbers_of_a_real_block_lie_between_its_least_and_its_largest():
    (row,) = gguf.q4_1(torch.tensor([list(smollm.A_BLOCK)], dtype=torch.uint8))
    assert row.min().item() == pytest.approx(-0.7305, abs=1e-4)
    assert row.max().item() == pytest.approx(-0.7305 + 15 * 0.12683, abs=1e-3)
    assert row[:3].tolist() == pytest.approx([-0.0963, 0.1573, -0.0963], abs=1e-4)


def test_a_readers_own_decoder_is_used(tmp_path):
    four, _ = packed_q4_1(np.ones((1, 32), np.float32) * np.arange(32, dtype=np.float32))
    path = write_gguf(tmp_path / "x.gguf", {}, {"four": (3, (1, 32), four)})
    file = gguf.GGUF(path, lambda raw: torch.full((len(raw), 32), 5.0))
    assert file.read("four").tolist() == [[5.0] * 32]


@pytest.mark.parametrize("spoil", ["magic", "short", "type"])
def test_what_is_no_such_file_is_refused_with_its_name(tmp_path, spoil):
    kind = 2 if spoil == "type" else 0
    magic = b"GGML" if spoil == "magic" else b"GGUF"
    path = write_gguf(tmp_path / "x.gguf", {"a": 1, "b": 2}, {"w": (kind, (8,), bytes(32))}, magic)
    if spoil == "short":
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match=r"x\.gguf|w has the type 2"):
        gguf.GGUF(path).read("w")


# The model ----------------------------------------------------------------------------------------


def theirs(name):
    """A name of ours as the file has it."""
    back = {ours: file for file, ours in smollm.NAMES.items()}
    parts, found = name.split("."), []
    while parts:
        for size in (2, 1):
            if (two := ".".join(parts[:size])) in back or size == 1:
                found.append(back.get(two, two))
                parts = parts[size:]
                break
    return ".".join(found)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small model, and a file with its weights and a small vocabulary."""
    cu.seed_everything(0)
    model = cu.GPT(300, **SMALL, **MODERN, bias=False, dropout=0.0).eval()
    letters = sorted(set(torch_alphabet()))
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, "Ġt", "he"]
    tensors = {
        theirs(name): (0, tuple(p.shape), p.detach().numpy().tobytes())
        for name, p in model.named_parameters()
    }
    metadata = {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": ["Ġ t", "h e"],
    }
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    return model, gguf.GGUF(write_gguf(path, metadata, tensors))


def torch_alphabet():
    from tokenizers import pre_tokenizers

    return pre_tokenizers.ByteLevel.alphabet()


def filled(file):
    with torch.device("meta"):
        model = cu.GPT(300, **SMALL, **MODERN, bias=False, dropout=0.0)
    return smollm.fill(model, file)


def test_a_model_filled_from_a_file_answers_as_the_one_that_was_written(small):
    model, file = small
    lm = filled(file)
    ids = torch.randint(300, (2, 9))
    assert torch.equal(lm.model(ids), model(ids))
    assert lm.model.output.weight is lm.model.embedding.weight
    assert not any(p.requires_grad for p in lm.model.parameters())


def test_names_of_the_file_become_ours():
    assert smollm.our_name("blk.7.attn_q.weight") == "layers.7.attention.query_proj.weight"
    assert smollm.our_name("blk.0.ffn_norm.weight") == "layers.0.feed_forward_norm.weight"
    assert smollm.our_name("token_embd.weight") == "embedding.weight"


def test_digits_are_tokens_marks_are_whole_and_texts_come_back(small):
    lm = filled(small[1])
    said = "the 1984<|im_end|>é"
    ids = lm.tokenizer.encode(said)
    assert [t for t in ids.tokens if t.isdigit()] == ["1", "9", "8", "4"]
    assert smollm.END in ids.ids and "he" in ids.tokens
    assert lm.decode(ids.ids) == said


def test_texts_of_different_lengths_are_refused(small):
    with pytest.raises(ValueError, match=r"\[1, 2\] tokens"):
        filled(small[1]).encode("a", "ab")


def test_writing_is_repeatable_and_greedy_by_default(small):
    lm = filled(small[1])
    assert lm.write("the", max_new=5) == lm.write("the", max_new=5)
    assert lm.write("the", max_new=8, temperature=2.0, seed=1) == lm.write(
        "the", max_new=8, temperature=2.0, seed=1
    )


def test_a_word_of_several_tokens_has_all_their_places_and_parts_of_others_have_none(small):
    lm = filled(small[1])
    texts = [lm.decode([i]) for i in lm.tokenizer.encode("he said the").ids]
    assert "".join(texts[place] for place in lm.positions("he said the", "said")).strip() == "said"
    with pytest.raises(ValueError, match="'sai' does not occur"):
        lm.positions("he said the", "sai")


@pytest.mark.parametrize(
    ("text", "word", "places"),
    [
        ("日 the", "the", [3, 4]),
        ("😀😀 he", "he", [9]),
        ("é he", "he", [3]),
        ("日本日", "本", [3, 4, 5]),
    ],
)
def test_letters_of_several_tokens_shift_no_place(small, text, word, places):
    lm = filled(small[1])
    offsets = lm.tokenizer.encode(text).offsets
    assert lm.positions(text, word) == places, offsets


def test_a_text_that_was_cut_ends_in_the_mark(small):
    lm = filled(small[1])
    assert lm.write("the", max_new=3, mark="…").endswith("…")


def test_the_block_is_the_packages_layer():
    cu.seed_everything(0)
    ours = smollm.Block(32, 4, 2, 64, base=1e5)
    layer = cu.EncoderLayer(32, 4, 64, dropout=0.0, num_kv_heads=2, bias=False, **MODERN)
    layer.load_state_dict(ours.state_dict())
    x = torch.randn(2, 7, 32)
    assert torch.allclose(ours(x), layer(x, is_causal=True), atol=1e-6)


def test_a_chat_has_the_turns_of_the_template():
    assert chat("Hi") == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert chat("Hi", system="Be kind").startswith(
        "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user"
    )


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|endoftext|>", "<file_sep>"])
def test_a_question_with_a_mark_of_the_template_is_refused_by_name(mark):
    for turns in ({"question": f"What is {mark}?"}, {"question": "Hi", "system": mark}):
        with pytest.raises(
            ValueError, match=re.escape(f"the text holds {mark}, which SmolLM2 reads")
        ):
            chat(**turns)


# What was recorded --------------------------------------------------------------------------------


def in_each_layer(lm, country):
    return {"asked": country, "model": lm}


def test_with_the_weights_an_experiment_is_computed(capsys):
    lm = SmolLM(torch.nn.Identity(), None)
    assert known(in_each_layer, lm, country="Atlantis") == {"asked": "Atlantis", "model": lm}
    assert capsys.readouterr().out == ""


def test_without_the_weights_the_recorded_answer_is_shown_and_a_line_says_so(capsys):
    assert known(in_each_layer, None, country="Cuba")["says"] == " Havana"
    assert capsys.readouterr().out.startswith("Recorded on 2026-")


def test_without_the_weights_another_case_is_named_and_shown(capsys):
    assert known(in_each_layer, None, country="Atlantis")["country"] == "Cuba"
    said = capsys.readouterr().out
    assert "no answer for 'Atlantis'" in said and "'Cuba'" in said


def without(lm, question, words):
    raise AssertionError("there are no weights")


def test_without_the_weights_the_case_that_is_most_alike_is_shown(capsys):
    said = known(without, None, question="What is the opposite of hot?", words=["hot"])
    assert said["hot"].startswith("The opposite of")
    assert "no answer for ['hot']" in capsys.readouterr().out


def test_the_page_asks_for_nothing_that_was_not_recorded():
    notebook = json.loads((ROOT / "notebooks/18_real_weights.ipynb").read_text(encoding="utf-8"))
    shown = json.dumps([cell.get("outputs") for cell in notebook["cells"]])
    assert "Recorded on" in shown
    assert "there is no answer for" not in shown


def test_recordings_are_small():
    assert (stored.RUNS / "real_weights.json").stat().st_size < 352_000


def test_every_set_of_a_questions_seven_words_was_asked():
    counts = []
    for run in cu.stored_runs("real_weights", "questions"):
        asked = run.examples[0]
        n = len(asked["tokens"])
        words = range(recorded.FIRST, n - recorded.AFTER)
        assert {"", *map(str, range(n))} <= asked["answers"].keys()
        if len(words) == 7:
            sets = [k for k in asked["answers"] if {*k.split(",")} - {""} <= {*map(str, words)}]
            counts.append(len(sets))
    assert counts and set(counts) == {128}


@pytest.mark.parametrize(
    ("kind", "country", "says", "right"),
    [
        ("well known", "Iran", " known as Tehran.", True),
        ("well known", "Japan", " Kyoto.", False),
        ("another city is larger", "Turkey", " Istanbul.", False),
        ("invented", "Valdoria", " Durrata.", False),
        ("another city is larger", "Brazil", " Brasília.", True),
    ],
)
def test_an_answer_is_right_if_it_begins_with_the_capital(kind, country, says, right):
    assert experiments.is_right(kind, country, says) is right
