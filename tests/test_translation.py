"""Sentence pairs: tokens, vocabularies, files, splits and batches."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from course_utils.data.archives import read_member
from course_utils.data.registry import cached
from course_utils.data.text import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary, normalize, tokenize
from course_utils.data.translation import (
    Pair,
    PairLoader,
    collate,
    load_grammar,
    load_tatoeba,
    parse_alignment,
    split_by_source,
)
from course_utils.files import ROOT


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Go!", ["go", "!"]),
        ("Je suis chez moi\u202f!", ["je", "suis", "chez", "moi", "!"]),
        ("J’ai perdu\u00a0.", ["j'ai", "perdu", "."]),
        ("¿Dónde estás?", ["¿", "dónde", "estás", "?"]),
        ("«Oui», dit-il.", ["«", "oui", "»", ",", "dit-il", "."]),
        ("是的，它睡觉！", ["是的", "，", "它睡觉", "！"]),
        ("क्या वह सोती है। हाँ॥", ["क्या", "वह", "सोती", "है", "।", "हाँ", "॥"]),
        ("هل تنام؟ نعم، تنام؛ لا۔", ["هل", "تنام", "؟", "نعم", "،", "تنام", "؛", "لا", "۔"]),
        (
            "「はい」、《好》——“ｏｋ．”",
            [*"「", "はい", *"」、《", "好", "》", "——", "“", "ｏｋ", "．", "”"],
        ),
        ("Tôi đi — được".replace("ô", "o\u0302"), ["tôi", "đi", "—", "được"]),
        ("안녕하세요. 네?", ["안녕하세요", ".", "네", "?"]),
    ],
)
def test_tokenizing(text, tokens):
    assert tokenize(text) == tokens


DATA = ROOT / "data"
EUROPEAN = re.compile(r"([.,!?;:…¿¡\"«»()])")


def test_english_french_and_spanish_are_cut_as_when_the_models_were_stored():
    lines = [
        line
        for name in sorted(DATA.glob("*/*.t*"))
        for line in name.read_text("utf-8").splitlines()
    ]
    for name in ("fra", "spa"):
        if archive := cached(f"{name}-eng"):
            text = read_member(archive, f"{name}.txt", f"{name}-eng/{name}.txt").decode()
            lines += ["\t".join(line.split("\t")[:2]) for line in text.splitlines()]
    text = "\n".join(lines)
    assert len(lines) > 9000 and "——" not in text  # the one mark of two letters
    for letter in set(text):
        word = f"a{letter}b"
        assert tokenize(word) == EUROPEAN.sub(r" \1 ", normalize(word)).split()


def test_special_tokens_have_fixed_ids():
    vocabulary = Vocabulary([["b", "a", "b"]])
    assert vocabulary.tokens == (*SPECIALS, "b", "a")
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert vocabulary.encode(["a", "z"]) == [5, UNK]
    assert vocabulary.decode([BOS, 4, 5, PAD, EOS, 4]) == ["b", "a"]
    assert "a" not in Vocabulary([["b", "a", "b"]], min_freq=2)


@pytest.mark.parametrize("word", [*SPECIALS, "<mask>"])
def test_a_word_that_is_spelled_like_a_special_token_is_a_word(word):
    vocabulary = Vocabulary([["say", word, "twice"]])
    for kept in (vocabulary, Vocabulary.from_tokens(vocabulary.tokens)):
        ids = kept.encode(["say", word, "twice"])
        assert min(ids) >= len(SPECIALS) and word in kept
        assert kept.decode([BOS, *ids, EOS, PAD]) == ["say", word, "twice"]
    rare = Vocabulary([["say", "say", word]], min_freq=2)
    assert rare.encode([word]) == [UNK] and word not in rare
    assert vocabulary.encode(["<other>"]) == Vocabulary([["a"]]).encode([word]) == [UNK]


words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(words, words), min_size=12, max_size=60), st.integers(0, 5))
def test_splits_are_disjoint_by_source_and_lose_nothing(raw, seed):
    pairs = [Pair(*sides) for sides in raw]
    assume(len({p.source for p in pairs}) >= 6)
    parts = split_by_source(pairs, [2, 3], seed=seed)
    assert sorted(repr(pair) for part in parts for pair in part) == sorted(map(repr, pairs))
    sources = [{p.source for p in part} for part in parts]
    assert not (sources[0] & sources[1] or sources[0] & sources[2] or sources[1] & sources[2])
    assert (len(sources[1]), len(sources[2])) == (2, 3)
    assert parts == split_by_source(pairs, [2, 3], seed=seed)


def test_a_batch_is_shifted_and_padded_to_its_longest():
    batch = collate([([5, 6], [7]), ([5], [8, 9])])
    assert batch.source.tolist() == [[5, 6, EOS], [5, EOS, PAD]]
    assert batch.target_in.tolist() == [[BOS, 7, PAD], [BOS, 8, 9]]
    assert batch.target_out.tolist() == [[7, EOS, PAD], [8, 9, EOS]]
    assert batch.source_lens.tolist() == [3, 2] and batch.target_lens.tolist() == [2, 3]
    assert batch.num_tokens == 5


GENERATED = [
    Pair(tuple("a" * (1 + i % 7)), tuple("b" * (1 + (3 * i) % 5))) for i in range(50)
]  # fmt: skip
A, B = Vocabulary([["a"]]), Vocabulary([["b"]])


def lengths(batches):
    return [tuple(batch.target_lens.tolist()) for batch in batches]


def test_each_pass_hands_out_every_pair_once_in_a_new_order():
    loader = PairLoader(GENERATED, A, B, batch_size=8)
    first, second = list(loader), list(loader)
    assert len(first) == len(loader) == 7
    for batches in (first, second):
        assert sorted(sum(lengths(batches), ())) == sorted(len(p.target) + 1 for p in GENERATED)
    assert lengths(first) != lengths(second)
    assert lengths(PairLoader(GENERATED, A, B, batch_size=8)) == lengths(first)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Vocabulary([]), "sentences is empty"),
        (lambda: Vocabulary([["a"]], min_freq=0), "min_freq=0"),
        (lambda: Vocabulary([["a"]]).decode([9]), "id 9 is outside a vocabulary of 5 tokens"),
        (lambda: parse_alignment("0-0 1:2"), "'1:2' is not a link"),
        (lambda: PairLoader([], A, B), "pairs is empty"),
        (lambda: PairLoader(GENERATED, A, B, batch_size=0), "batch_size=0"),
        (lambda: PairLoader([Pair((), ("b",))], A, B), "has an empty sentence"),
        (lambda: split_by_source(GENERATED, [4, 3]), "take all 7 source sentences"),
        (lambda: load_tatoeba("fra"), "language='fra' is unknown; choose one of fr, es"),
        (lambda: load_grammar("de"), "language='de' is unknown; choose one of fr, es"),
    ],
)
def test_bad_text_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
