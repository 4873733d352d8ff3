"""*Real weights*, further page: MiniLM in our encoder layers, search in the course, and what is done to SmolLM2."""

import json
import math
import struct

import pytest
import torch

from course_utils.kit.runs import StoredRun
from course_utils.lessons.real_weights import lens, meaning, search
from course_utils.lessons.real_weights.smollm import BASE, SmolLM
from course_utils.models.language import GPT

TINY = {"embed_dim": 24, "num_heads": 4, "num_layers": 2, "ffn_dim": 48}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return meaning.SentenceEncoder(30, **TINY, max_len=12).eval()


@pytest.fixture
def writer():
    """A model as SmolLM2's, but tiny; its file has no tokenizer."""
    torch.manual_seed(0)
    model = GPT(
        40, embed_dim=24, num_heads=3, num_kv_heads=1, num_layers=2, ffn_dim=32, activation="swiglu",
        norm="rms", rotary=True, rotary_base=BASE, bias=False, dropout=0.0,
    )  # fmt: skip
    return SmolLM(model.eval(), None)


# MiniLM -------------------------------------------------------------------------------------------


def test_a_safetensors_file_gives_its_float32_tensors_back(tmp_path):
    numbers = torch.arange(6, dtype=torch.float32)
    table = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [16, 24]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]},
    }
    head = json.dumps(table).encode()
    data = numbers[:4].numpy().tobytes() + bytes(8) + numbers[4:].numpy().tobytes()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(head)) + head + data)
    found = meaning.read_safetensors(tmp_path / "x")
    assert found.keys() == {"a", "b"}
    assert torch.equal(found["a"], numbers[:4].view(2, 2)) and torch.equal(found["b"], numbers[4:])


def test_each_name_of_the_file_is_a_name_of_our_class(encoder):
    layer = "encoder.layer.{}."
    parts = [
        *(f"attention.self.{part}" for part in ("query", "key", "value")),
        *("attention.output.dense", "attention.output.LayerNorm", "intermediate.dense"),
        *("output.dense", "output.LayerNorm"),
    ]
    embeddings = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    theirs = [
        *(f"embeddings.{part}.weight" for part in embeddings),
        *(f"embeddings.LayerNorm.{kind}" for kind in ("weight", "bias")),
        *(layer.format(i) + f"{part}.{kind}" for i in (0, 1) for part in parts for kind in ("weight", "bias")),
    ]  # fmt: skip
    assert {meaning.our_name(name) for name in theirs} == encoder.state_dict().keys()
    assert len(theirs) == len(encoder.state_dict())


def test_padding_moves_no_sentence_and_each_vector_has_length_1(encoder):
    ids = torch.randint(30, (2, 9))
    short = torch.cat([ids[:1, :4], torch.full((1, 5), 7)], dim=1)
    together = encoder(torch.cat([short, ids[1:]]), torch.tensor([4, 9]))
    alone = encoder(ids[:1, :4], torch.tensor([4]))
    assert torch.allclose(together[0], alone[0], atol=1e-6)
    assert torch.allclose(together.norm(dim=-1), torch.ones(2))


def test_sentences_come_back_in_the_order_in_which_they_were_given(encoder):
    class Words:
        """A tokenizer: a letter is a token."""

        def encode_batch(self, texts):
            return [type("Encoded", (), {"ids": [ord(c) % 30 for c in text]}) for text in texts]

    sentences = meaning.Sentences(encoder, Words())
    texts = ["abcdefgh", "a", "abc", "hgfe", "b"]
    one_by_one = torch.cat([sentences.embed([text]) for text in texts])
    assert torch.allclose(sentences.embed(texts, batch=2), one_by_one, atol=1e-6)


def test_where_the_files_are_missing_there_is_no_encoder_and_no_download(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    assert meaning.fill(meaning.SentenceEncoder) is None
    meaning.encoder.cache_clear()
    with pytest.raises(FileNotFoundError, match=r'cu\.fetch\("minilm"\)'):
        meaning.encoder()


@pytest.fixture
def recorded(monkeypatch):
    """Two runs with a sentence each."""
    kept = {
        "opposites": ("It rains.", {"It is dry.": 0.9, "Rain falls.": 0.8}),
        "roles": ("A bit B.", {"B bit A.": 0.98}),
    }

    def stored_runs(slug, name):
        sentence, cosines = kept[name]
        return [StoredRun(name, date="2026-11-28", examples=[{"sentence": sentence, "cosines": cosines}])]  # fmt: skip

    monkeypatch.setattr(meaning, "stored_runs", stored_runs)


def test_without_weights_what_was_recorded_is_shown_and_a_line_says_so(recorded, capsys):
    assert meaning.cosines(None, "It rains.", ["Rain falls."]) == {"Rain falls.": 0.8}
    assert capsys.readouterr().out.startswith("Recorded on 2026-11-28.")


def test_without_weights_another_sentence_gets_a_recorded_one_and_its_name(recorded, capsys):
    assert meaning.cosines(None, "Who is there?", ["Me."]) == {"B bit A.": 0.98}
    said = capsys.readouterr().out
    assert "no answer for 'Who is there?'" in said and "'A bit B.'" in said


def test_each_triple_has_an_opposite_and_two_paraphrases_and_no_sentence_comes_twice():
    rows = meaning.listed(meaning.OPPOSITES)
    assert len(rows) == 44 and {len(row) for row in rows} == {4}
    assert all(text == text.strip() and text[-1] in "." for row in rows for text in row)
    assert len({row[0] for row in rows}) == 44
    assert {len(row) for row in meaning.listed(meaning.ROLES)} == {3}


def test_shared_words_are_a_share_of_all_words():
    assert meaning.shared("The dog bit the man.", "The man bit the dog.") == 1
    assert meaning.shared("I like it.", "I enjoy it.") == 0.5


def test_each_word_of_an_analogy_is_in_the_vocabulary_once():
    every = meaning.vocabulary()
    given = meaning.ANALOGIES.lower().replace(",", " ").split()
    assert set(given) <= set(every) and len(every) == len(set(every)) and len(given) == 4 * 32


# Search -------------------------------------------------------------------------------------------


def test_bm25_gives_more_to_a_rare_word_and_less_to_a_long_text():
    texts = ["the cat", "the dog", "the cat " + "and the rest of it " * 5]
    score = search.BM25(texts)
    assert score("the")[0] < score("cat")[0] and score("bird").tolist() == [0, 0, 0]
    assert score("cat")[0] > score("cat")[2] > score("cat")[1] == 0


def test_bm25_is_its_formula():
    score = search.BM25(["a b b", "a"], k=1.2, b=0.5)
    rare = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    shift = 1.2 * (0.5 + 0.5 * 3 / 2)
    assert score("b")[0].item() == pytest.approx(rare * 2 * 2.2 / (2 + shift))


@pytest.mark.parametrize("size", search.SIZES)
def test_pieces_hold_whole_sentences_and_lose_no_word(size):
    text = "One two three. Four five? " * 40
    made = search.pieces(text.strip(), size)
    assert " ".join(made) == text.strip()
    assert all(piece[-1] in ".?" for piece in made)
    assert (len(made) == 1) == (size == 0)
    assert all(size <= len(piece.split()) <= size + 3 for piece in made[:-1])


def test_the_sections_are_those_of_the_first_eighteen_chapters():
    parts = search.sections()
    pages = {page for page, *_ in parts}
    assert {"00_start_here", "17_diffusion", "17_diffusion_further", "F_one_formula"} <= pages
    assert not any(page.startswith(("18", "19", "A_", "C_", "E_", "G_")) for page in pages)
    assert not any(title in search.UNTAUGHT for _, title, _ in parts)
    assert not any("](" in text for *_, text in parts)


@pytest.mark.parametrize("asks", ["quiz", "glossary", "own words"])
def test_each_question_has_a_section_that_answers_it(asks):
    found, count = search.questions(asks), len(search.sections())
    assert len(found) >= 28
    assert all(text and right and max(right) < count for text, right in found)


def test_a_question_of_the_glossary_does_not_say_its_term(monkeypatch, tmp_path):
    page = (
        "# %% [markdown]\n# # Balls\n#\n# ## Where a ball lies\n#\n# " + "A ball lies there. " * 9
    )
    entry = (
        '# %% [markdown]\n# ### <a id="ball"></a>ball\n#\n# A Ball is a *round* [thing](x.ipynb).\n'
        "# *Taught in* [x](01_balls.ipynb#Where-a-ball-lies).\n"
    )
    (tmp_path / "01_balls.py").write_text(page + "\n", encoding="utf-8")
    (tmp_path / "C_glossary.py").write_text(entry, encoding="utf-8")
    monkeypatch.setattr(search, "SOURCES", tmp_path)
    assert [title for _, title, _ in search.sections()] == ["Where a ball lies"]
    assert search.questions("glossary") == [("A it is a round thing.", [0])]


# SmolLM2 ------------------------------------------------------------------------------------------


def test_a_rank_counts_from_1():
    scores = torch.tensor([[0.1, 0.7, 0.2], [0.1, 0.7, 0.2]])
    assert lens.rank(scores, torch.tensor([1, 0])).tolist() == [1, 3]


def test_the_plain_lens_is_the_model_after_its_last_layer(writer):
    ids = torch.randint(40, (3, 5))
    with torch.inference_mode(), lens.record_activations(writer.model) as run:
        logits = writer.model(ids)[:, -1]
        seen = lens.lens(writer, run["layers.1.residual"][:, -1])
    assert torch.allclose(seen, logits, atol=1e-6)


def test_the_centered_lens_is_the_plain_one_less_what_all_texts_share(writer):
    x = torch.randn(4, 24)
    with torch.inference_mode():
        plain, centered = (lens.lens(writer, x, centered=each) for each in (False, True))
    assert torch.allclose(centered.mean(0), torch.zeros(40), atol=1e-5)
    assert torch.allclose(centered[0] - centered[1], plain[0] - plain[1], atol=1e-5)


def test_texts_are_matched_by_what_differs_between_them():
    x = torch.eye(4, 24)
    same = 3 * x + torch.randn(24)
    assert lens.matched(x, same) == 4
    assert lens.matched(x, same.roll(1, dims=0)) == 0


def test_preferred_compares_with_what_the_other_texts_want_and_with_nothing_else():
    logits = torch.tensor([[1.0, 0.0, 9.0], [2.0, 1.0, 9.0]])
    assert lens.preferred(logits, torch.tensor([0, 1])) == 1


@pytest.mark.parametrize("mistake", lens.MISTAKES)
def test_a_mistake_raises_no_error_changes_the_logits_and_is_gone_afterwards(writer, mistake):
    ids = torch.randint(40, (2, 9))
    state = {name: tensor.clone() for name, tensor in writer.model.state_dict().items()}
    with torch.inference_mode():
        before = writer.model(ids)
        with lens.mistaken(writer, mistake):
            inside = writer.model(ids)
        after = writer.model(ids)
    assert torch.equal(before, after) and torch.equal(inside, before) == (mistake == "none")
    now = writer.model.state_dict()
    assert all(torch.equal(now[name], tensor) for name, tensor in state.items())


def test_a_mistake_is_gone_after_an_error_as_well(writer):
    with pytest.raises(RuntimeError), lens.mistaken(writer, "base"):
        raise RuntimeError
    assert writer.model.rotary_base == BASE
