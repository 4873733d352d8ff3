"""The translator of everyday sentences: what it is trained on, its training in small, and what a page makes of it."""

import random

import pytest
import torch
from scripts import CLOSE, apart, ask, load
from stored_models import network
from test_real_translation import archive, sentences  # noqa: F401

import course_utils as cu
from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, tokenize
from course_utils.data.translation import Pair, load_sentences
from course_utils.decoding import greedy
from course_utils.files import data_path
from course_utils.kit.live import bundle, load_model
from course_utils.kit.live.bundles import pack
from course_utils.lessons.bahdanau_attention.live_translator import answers_of
from course_utils.lessons.translating import everyday

# Sentences --------------------------------------------------------------------------------------


def stored_pieces() -> everyday.Pieces:
    """The pieces that the stored translator reads and says."""
    words = load_model(everyday.NAME).vocabularies
    merges = [tuple(merge.split()) for merge in words["merges"]]
    return everyday.Pieces(Subwords.from_merges(words["tokens"], merges))


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ("i'm here .", "i am here"),
        ("they won't go !", "they will not go ."),
        ("stop . . .", "stop"),
        ("she can't", "she cannot ."),
    ],
)
def test_sentences_that_say_the_same_are_one(source, other):
    assert everyday.without_marks(source.split()) == everyday.without_marks(other.split())


def test_nothing_is_trained_on_that_is_held_out(archive):  # noqa: F811
    lines = list(sentences(600))
    archive([*lines, *(line.replace(".", "!", 1) for line in lines), "I won.\tGagné.", "A.\tB."])
    data = everyday.everyday_split(40, seed=0)
    held_out = {everyday.without_marks(source) for source in data.references}
    read = {everyday.without_marks(pair.source) for pair in data.train}
    assert not held_out & read and {"i won", "a"} <= read
    assert len(data.validation) == len(data.test) == 40
    assert Pair(("she", "lost", "."), ("elle", "a", "perdu", ".")) in data.train


# The training -----------------------------------------------------------------------------------


def test_epochs_are_parts_of_passes_and_are_resumed_in_the_middle():
    pairs = [Pair((letter, "tom"), (letter, "tom")) for letter in "abcdefghij"]
    pieces = everyday.Pieces.learned([pair.source for pair in pairs], size=60)

    def loader(steps):
        return everyday.Portions(everyday.TypedPairs(pairs, pieces, batch_size=4, seed=0), steps)

    def texts(batches):
        return [batch.source.tolist() for batch in batches]

    whole, parts = loader(3), loader(2)
    right = [batch for _ in range(4) for batch in texts(whole)]
    assert [batch for _ in range(6) for batch in texts(parts)] == right and right[:3] != right[3:6]
    parts.restart()
    assert texts(parts) == right[:2]
    rest = iter(parts)
    next(rest)
    again = loader(2)
    again.load_state_dict(parts.state_dict())
    assert texts(again) == right[3:4] and texts(again) == right[4:6]


# What is stored ---------------------------------------------------------------------------------

COMPARE = """(packed, asked) => {
    const language = languageOf(packed), model = new Transformer(packed);
    return asked.map(({ line, said }) => {
        const { ids } = language.read(line), found = greedy(model, ids);
        return [ids, found, model.step([BOS, ...said], model.start(ids))];
    });
}"""
ANSWER = """(packed, lines) => {
    const language = languageOf(packed), model = new Transformer(packed);
    const said = lines.map((line) => language.says(greedy(model, language.read(line).ids)));
    return said.map((words) => words.map(({ text }) => text).join(" "));
}"""


def test_the_stored_translator_and_a_page_say_what_is_told():
    told, pieces = bundle(everyday.NAME), stored_pieces()
    assert told["pieces"] is True and told["score"][1] == everyday.HELD_OUT
    lines = [one["sentence"] for one in told["examples"]]
    said = cu.translate(network("everyday_fr"), lines, pieces, pieces, max_len=40)
    assert said == [one["said"] for one in told["examples"]]
    assert [one["said"] == one["right"] for one in told["examples"]] == [True, True, False]
    answers = answers_of(network(everyday.NAME), lines, pieces)
    for found, right in zip(told["answers"], answers, strict=True):
        assert found["said"] == right["said"] and found["source"] == right["source"]
        assert apart(*(torch.tensor(each["logits"]).tolist() for each in (found, right))) < CLOSE
    load()
    lines = [one["sentence"] for one in told["visitors"]]
    assert lines == data_path("translation/visitors.txt").read_text("utf-8").splitlines()
    assert ask(ANSWER, told, lines) == [one["said"] for one in told["visitors"]]


@torch.no_grad()
def test_a_page_computes_what_pytorch_does_with_the_rounded_weights():
    model, pieces, asked, right = network("everyday_fr"), stored_pieces(), [], []
    for pair in load_sentences("fr")[::250]:
        ids = torch.tensor([[*pieces.encode(pair.source), EOS]])
        said = greedy(model, ids, torch.tensor([ids.shape[1]]))[0]
        logits = model(ids, torch.tensor([ids.shape[1]]), torch.tensor([[BOS, *said]]))[0]
        asked.append({"line": " ".join(pair.source), "said": said})
        right.append((ids[0].tolist(), said, logits))
    load()
    packed = pack(load_model(everyday.NAME).for_page()) | {"pieces": True}
    for (ids, said, logits), answer in zip(ask(COMPARE, packed, asked), right, strict=True):
        assert (ids, said) == answer[:2] and apart(logits, answer[2]) < CLOSE


# In a page --------------------------------------------------------------------------------------

LETTERS = "aeinost bBçé'’“”–-.,!?␣ж☂\t\xa0 the"
SPELLED = str.maketrans("‘’‛ʼ′`´“”„″‐‑–—", "'" * 7 + '"' * 4 + "-" * 4)
READ = """(vocabularies, texts, said) => {
    const language = languageOf({ pieces: true, vocabularies });
    return [texts.map(language.read), said.map(language.says)];
}"""
EMPTY = "languageOf({ vocabularies: { source: [], target: [] } })"


def grouped(lengths: list[tuple[str, int]]) -> list[dict]:
    """Words and how many tokens each has → words as a page has them."""
    ends = torch.tensor([0, *(length for _, length in lengths)]).cumsum(0).tolist()
    return [
        {"text": text, "places": list(range(*ends[i : i + 2]))}
        for i, (text, _) in enumerate(lengths)
    ]


def test_a_page_reads_and_joins_pieces_as_python_does():
    draw, lines = random.Random(0), load_sentences("fr")
    sides = [side for pair in lines[:400] for side in (pair.source, pair.target)]
    pieces, reads = everyday.Pieces.learned(sides, size=300), []
    texts = ["".join(draw.choices(LETTERS, k=draw.randint(0, 20))) for _ in range(1500)]
    texts += [" ".join(pair.source) for pair in lines[::9]]
    known = set(pieces.tokens)
    for text in texts:
        words = tokenize(text.translate(SPELLED).replace("␣", " "))
        read = [kept for word in words if (kept := "".join(c for c in word if c in known))]
        lengths = [(word, len(pieces.encode([word]))) for word in read]
        ids = [*pieces.encode(read), EOS]
        reads.append([ids, grouped([*lengths, ("<eos>", 1)]), set("".join(words)) - known])
    begun = pieces.encode(["xylophone"])[:-1]  # and not ended
    answers = [*(ids for ids, _, _ in reads), [*begun, EOS]]
    spelled = "".join(pieces.tokens[i] for i in begun)
    joined = [*(words for _, words, _ in reads), grouped([(spelled, len(begun)), ("<eos>", 1)])]
    merges = [" ".join(merge) for merge in pieces.merges]
    vocabularies = {"tokens": pieces.tokens, "merges": merges, "words": []}

    load()
    found, said = ask(READ, vocabularies, texts, answers)
    assert [[each["ids"], each["words"], set(each["unknown"])] for each in found] == reads
    assert said == joined


def test_a_map_between_words_sums_over_what_is_read_and_averages_over_what_asks():
    rows = torch.rand(5, 6).softmax(dim=1)
    queries, keys = grouped([("a", 2), ("b", 1), ("c", 2)]), grouped([("d", 1), ("e", 3), ("f", 2)])
    load()
    found = ask(f"(...given) => {EMPTY}.words(...given)", rows.tolist(), queries, keys)
    groups = [[0, 0, 1, 2, 2], [0, 1, 1, 1, 2, 2]]
    to_words = [torch.nn.functional.one_hot(torch.tensor(group)).float() for group in groups]
    right = (to_words[0] / to_words[0].sum(dim=0)).T @ rows @ to_words[1]
    assert apart(found, right) < CLOSE
    assert apart(torch.tensor(found).sum(dim=1).tolist(), torch.ones(3)) < CLOSE
