"""all-MiniLM-L6-v2 in the course's own encoder layers, and what was recorded with it: opposites, roles, analogies.

The further page of *Real weights* compares sentences with it, and `search` finds sections.
Reimers and Gurevych (2019), "Sentence-BERT"; Wang et al. (2020), "MiniLM". `cu.fetch("minilm")` and
`cu.fetch("minilm-tokenizer")` bring the two files.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import load_english, load_story
from course_utils.data.registry import cached
from course_utils.kit.runs import stored, stored_runs
from course_utils.layers import EncoderLayer
from course_utils.masks import padding_mask

# MiniLM -------------------------------------------------------------------------------------------

SIZES = {"embed_dim": 384, "num_heads": 12, "num_layers": 6, "ffn_dim": 1536}
VOCAB, MAX_LEN = 30_522, 512
READ = 256
"""Tokens that are read of a text; it was trained on no more."""

NAMES = {
    "embeddings.word_embeddings": "embedding", "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments", "embeddings.LayerNorm": "embedding_norm",
    "encoder.layer": "layers", "attention.self.query": "attention.query_proj",
    "attention.self.key": "attention.key_proj", "attention.self.value": "attention.value_proj",
    "attention.output.dense": "attention.out_proj", "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.0", "output.dense": "feed_forward.3",
    "output.LayerNorm": "feed_forward_norm",
}  # fmt: skip
"""A part's name in the file → its name in our class; the longer names come first."""


class SentenceEncoder(nn.Module):
    """Token, position and segment embeddings, encoder layers, and the mean over the tokens, as the page's class has it.

    Args:
        vocab_size, embed_dim, num_heads, num_layers, ffn_dim, max_len: sizes, as in `models.language.BERT`.
    """

    def __init__(
        self, vocab_size: int, embed_dim: int, num_heads: int, num_layers: int, ffn_dim: int, max_len: int
    ):  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.segments = nn.Embedding(2, embed_dim)
        self.embedding_norm = nn.LayerNorm(embed_dim, eps=1e-12)
        self.layers = nn.ModuleList(
            EncoderLayer(
                embed_dim, num_heads, ffn_dim, norm_first=False, activation="gelu", eps=1e-12, dropout=0.0
            )
            for _ in range(num_layers)
        )  # fmt: skip

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(batch, n) ids, (batch,) lengths → (batch, embed_dim): a vector of length 1 for each sentence."""
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        x = self.embedding_norm(x + self.segments.weight[0])
        for layer in self.layers:
            x = layer(x, padding_mask(lengths, tokens.shape[1]))
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        return F.normalize((x * real[..., None]).sum(1), dim=-1)


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """The float32 tensors of a file by name.

    Eight bytes say how long the table of contents is. It is JSON, and behind it come the numbers.
    """
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for name, entry in json.loads(raw[8:begin]).items():
        if entry.get("dtype") == "F32":
            first, last = (begin + place for place in entry["data_offsets"])
            numbers = np.frombuffer(raw[first:last], np.float32).reshape(entry["shape"])
            found[name] = torch.from_numpy(numbers.copy())
    return found


def our_name(name: str) -> str:
    """Our name of a part of the file: "encoder.layer.3.output.dense.bias" becomes "layers.3.feed_forward.3.bias"."""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


@dataclass
class Sentences:
    """A model that holds MiniLM's weights, and its tokenizer."""

    model: nn.Module
    tokenizer: Tokenizer

    @torch.inference_mode()
    def embed(self, texts: Sequence[str], batch: int = 32) -> Tensor:
        """(texts, embed_dim), each of length 1; the texts are read in batches, the shortest first."""
        ids = [encoded.ids for encoded in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        vectors: dict[int, Tensor] = {}
        for begin in range(0, len(order), batch):
            rows = order[begin : begin + batch]
            lengths = torch.tensor([len(ids[i]) for i in rows])
            tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
            for row, i in enumerate(rows):
                tokens[row, : lengths[row]] = torch.tensor(ids[i])
            vectors |= dict(zip(rows, self.model(tokens, lengths), strict=True))
        return torch.stack([vectors[i] for i in range(len(ids))])

    def word_vectors(self, words: Sequence[str]) -> Tensor:
        """(words, embed_dim): rows of the embedding, of length 1; a word of several pieces has their mean."""
        ids = [encoded.ids[1:-1] for encoded in self.tokenizer.encode_batch(list(words))]
        rows = torch.stack([self.model.embedding.weight[i].mean(0) for i in ids])
        return F.normalize(rows.detach(), dim=-1)


def fill(kind: Callable[..., nn.Module]) -> Sentences | None:
    """An encoder of this class with MiniLM's weights, for reading only; None where the files aren't in the cache."""
    weights, tokenizer = cached("minilm"), cached("minilm-tokenizer")
    if weights is None or tokenizer is None:
        return None
    with torch.device("meta"):
        model = kind(VOCAB, **SIZES, max_len=MAX_LEN)
    state = {our_name(name): tensor for name, tensor in read_safetensors(weights).items()}
    model.load_state_dict({k: v for k, v in state.items() if "pooler" not in k}, assign=True)
    made = Tokenizer.from_file(str(tokenizer))
    made.no_padding()
    made.enable_truncation(READ)
    made.encode_special_tokens = True  # a text that speaks of [SEP] is read in pieces, as any other
    return Sentences(model.eval().requires_grad_(False), made)


@cache
def encoder() -> Sentences:
    """MiniLM in our class.

    Raises:
        FileNotFoundError: a file isn't there.
    """
    made = fill(SentenceEncoder)
    if made is None:
        raise FileNotFoundError(
            'the weights are missing; cu.fetch("minilm") and cu.fetch("minilm-tokenizer") bring them'
        )
    return made


def cosines(sentences: Sentences | None, sentence: str, others: Sequence[str]) -> dict[str, float]:
    """Cosines of a sentence with each of the others: computed where the weights are, else as recorded.

    Where there are no weights and these sentences were not recorded, others are shown, and a line says so.
    """
    if sentences is not None:
        own, *rest = sentences.embed([sentence, *others])
        return {text: (own @ vector).item() for text, vector in zip(others, rest, strict=True)}
    known, date = recorded_cosines()
    if all((sentence, other) in known for other in others):
        print(f"Recorded on {date}. With the weights, this cell computes it.")
        return {other: known[sentence, other] for other in others}
    shown = stored_runs("real_weights", "roles")[0]
    example = shown.examples[0]
    print(
        f"Without the weights there is no answer for {sentence!r}. "
        f"Here is {example['sentence']!r}, recorded on {shown.date}."
    )
    return example["cosines"]


def recorded_cosines() -> tuple[dict[tuple[str, str], float], str]:
    """The cosines of `opposites` and `roles` by their two sentences, and the day on which they were recorded."""
    runs = [run for name in ("opposites", "roles") for run in stored_runs("real_weights", name)]
    by_pair = {
        (example["sentence"], other): cosine
        for run in runs
        for example in run.examples
        for other, cosine in example["cosines"].items()
    }
    return by_pair, runs[0].date


# Opposites and roles ------------------------------------------------------------------------------

OPPOSITES = """
I like it. | I don't like it. | I enjoy it. | I love it.
The shop is open. | The shop is not open. | The store is open. | The store is open.
She can swim. | She can't swim. | She knows how to swim. | She is able to swim.
He is at home. | He is not at home. | He is in his house. | He is home.
The film was good. | The film was not good. | The movie was great. | The movie was good.
We won the game. | We lost the game. | The match ended with our victory. | We won the match.
It is raining. | It is not raining. | Rain is falling. | It is rainy.
The test was easy. | The test was difficult. | The exam was simple. | The exam was easy.
The train is late. | The train is on time. | The train has a delay. | The train is delayed.
I remember him. | I forgot him. | I have not forgotten him. | I recall him.
The dog bit the man. | The man bit the dog. | The man was bitten by the dog. | The dog has bitten the man.
Anna sold Ben a car. | Ben sold Anna a car. | Ben bought a car from Anna. | Anna sold a car to Ben.
It costs 5 euros. | It costs 50 euros. | The price is five euros. | The price is 5 euros.
Always close the door. | Never close the door. | The door must be closed every time. | Always shut the door.
The soup is hot. | The soup is cold. | The broth is steaming hot. | The soup is very warm.
He always tells the truth. | He never tells the truth. | He doesn't lie. | He always says the truth.
The window is closed. | The window is open. | The window has been shut. | The window is shut.
My brother is older than me. | My brother is younger than me. | I am younger than my brother. |
    My brother is older than I am.
The teacher praised the student. | The student praised the teacher. |
    The student received praise from the teacher. | The teacher commended the student.
We arrived before the rain. | We arrived after the rain. | The rain came after we got there. |
    We came before the rain.
The price went up. | The price went down. | It became more expensive. | The price rose.
She accepted the offer. | She refused the offer. | She said yes to the proposal. | She took the offer.
I have no money. | I have money. | I am broke. | I don't have money.
Nobody came to the party. | Everybody came to the party. | The party had no guests. | No one came to the party.
The cat chased the mouse. | The mouse chased the cat. | The mouse was chased by the cat. | The cat hunted the mouse.
Turn left at the bridge. | Turn right at the bridge. | At the bridge, take the left road. | Go left at the bridge.
The bottle is full. | The bottle is empty. | There is no room left in the bottle. | The bottle is filled.
He passed the exam. | He failed the exam. | His exam was a success. | He passed the test.
The music is too loud. | The music is too quiet. | The music is so noisy that it hurts. | The music is too noisy.
They live near the sea. | They live far from the sea. | Their home is close to the ocean. | They live by the sea.
I agree with you. | I disagree with you. | We have the same opinion. | I agree with what you say.
The plan is possible. | The plan is impossible. | The plan can be carried out. | The plan is feasible.
This knife is sharp. | This knife is blunt. | This knife cuts well. | This blade is sharp.
Our team lost twice. | Our team won twice. | Our team was beaten two times. | Our team lost two times.
She forgot to lock the door. | She remembered to lock the door. | She left the door unlocked. |
    She did not remember to lock the door.
The river is deep here. | The river is shallow here. | The river has deep water at this place. |
    The stream is deep here.
Smoking is allowed here. | Smoking is forbidden here. | You may smoke in this place. | Smoking is permitted here.
The meeting starts at nine. | The meeting starts at ten. | The meeting begins at 9 o'clock. |
    The meeting begins at nine.
Tom lent Mary his bike. | Mary lent Tom her bike. | Mary borrowed Tom's bike. | Tom loaned Mary his bike.
All birds can fly. | No birds can fly. | Every bird is able to fly. | Every bird can fly.
It was the best day of my life. | It was the worst day of my life. | I have never had a better day. |
    It was the finest day of my life.
The lamp is on. | The lamp is off. | The lamp is shining. | The light is on.
He speaks slowly. | He speaks fast. | He takes his time when he talks. | He talks slowly.
The bridge is safe. | The bridge is dangerous. | You can cross the bridge without fear. | The bridge is secure.
"""
"""A sentence, its opposite, a free paraphrase, and one that keeps most words; written before any cosine was known."""

ROLES = """
The dog bit the man. | The man bit the dog. | The man was bitten by the dog.
The cat chased the mouse. | The mouse chased the cat. | The mouse was chased by the cat.
The lawyer called the doctor. | The doctor called the lawyer. | The doctor was called by the lawyer.
Peter follows Paul. | Paul follows Peter. | Paul is followed by Peter.
The car hit the bus. | The bus hit the car. | The bus was hit by the car.
My sister invited her friend. | Her friend invited my sister. | Her friend was invited by my sister.
The police caught the thief. | The thief caught the police. | The thief was caught by the police.
The nurse thanked the patient. | The patient thanked the nurse. | The patient was thanked by the nurse.
France defeated Spain. | Spain defeated France. | Spain was defeated by France.
The wolf ate the grandmother. | The grandmother ate the wolf. | The grandmother was eaten by the wolf.
The boy taught the girl. | The girl taught the boy. | The girl was taught by the boy.
The bank owes me money. | I owe the bank money. | I am owed money by the bank.
"""
"""A sentence, the same with swapped roles, and its passive."""


def listed(text: str) -> list[list[str]]:
    """Lists of the sentences of each line; an indented line belongs to the one above it."""
    return [line.split(" | ") for line in text.strip().replace("|\n    ", "| ").splitlines()]


def words(text: str) -> list[str]:
    """The words and numbers of a text, in lower case."""
    return re.findall(r"[a-z0-9']+", text.lower())


def shared(first: str, second: str) -> float:
    """The words that two sentences share, as a share of all their words."""
    a, b = set(words(first)), set(words(second))
    return len(a & b) / len(a | b)


def _cosines_of(rows: list[list[str]]) -> list[dict[str, Any]]:
    """The first sentence of each row, and its cosines with the others of the row."""
    vectors = iter(encoder().embed([text for row in rows for text in row]))
    found = []
    for row in rows:
        own, *others = (next(vectors) for _ in row)
        cosines = [round((own @ other).item(), 3) for other in others]
        found.append({"sentence": row[0], "cosines": dict(zip(row[1:], cosines, strict=True))})
    return found


def _count_nearer_opposites(
    rows: list[list[str]], nearness: Callable[[str, str], float], other: int
) -> int:
    """Number of rows whose sentence is nearer to its opposite, at place 1, than to the sentence at place `other`."""
    return sum(nearness(row[0], row[1]) > nearness(row[0], row[other]) for row in rows)


@stored()
def opposites() -> dict[str, Any]:
    """Number of triples in which the opposite is nearer than a paraphrase, free or close; by cosine and by words."""
    rows = listed(OPPOSITES)
    examples = _cosines_of(rows)
    known = {(e["sentence"], other): x for e in examples for other, x in e["cosines"].items()}
    result = {"triples": len(rows)}
    for name, other in (("free", 2), ("close", 3)):
        result[name] = _count_nearer_opposites(rows, lambda a, b: known[a, b], other)
        result[f"{name}_by_words"] = _count_nearer_opposites(rows, shared, other)
    return {"result": result, "examples": examples}


@stored()
def roles() -> dict[str, Any]:
    """Number of sentences for which swapped roles are nearer than the passive, which says the same."""
    rows = listed(ROLES)
    examples = _cosines_of(rows)
    pairs = [tuple(e["cosines"].values()) for e in examples]
    result = {"nearer": sum(a > b for a, b in pairs), "sentences": len(rows)}
    swapped = sorted(a for a, _ in pairs)
    result |= {"least": swapped[0], "median": swapped[len(rows) // 2]}
    return {"result": result, "examples": examples}


# Analogies ----------------------------------------------------------------------------------------

ANALOGIES = """
man king woman queen, man uncle woman aunt, man actor woman actress, boy prince girl princess,
brother husband sister wife, France Paris Italy Rome, Spain Madrid Japan Tokyo, Germany Berlin England London,
walk walked swim swam, walk walking swim swimming, good better big bigger, father son mother daughter,
man waiter woman waitress, boy nephew girl niece, man hero woman heroine, bull cow rooster hen, dog puppy cat kitten,
king queen prince princess, Greece Athens Poland Warsaw, Sweden Stockholm Norway Oslo, Russia Moscow China Beijing,
Portugal Lisbon Austria Vienna, sing sang drink drank, eat ate see saw, run running sit sitting,
tall taller short shorter, fast fastest slow slowest, hand glove foot sock, book books child children,
foot feet tooth teeth, write writer paint painter, possible impossible happy unhappy
"""
"""a is to b as c is to d; the first twelve are the usual ones, the others were chosen before looking."""


def vocabulary() -> list[str]:
    """The words of the course's English sentences and of its story, and those of the analogies, each once."""
    texts = " ".join([*load_english(), *load_story()])
    every = re.findall(r"[a-z]{2,}", texts) + re.findall(r"\w+", ANALOGIES.lower())
    return list(dict.fromkeys(every))


@stored(cases=[{"vectors": vectors} for vectors in ("sentence", "word")])
def analogies(*, vectors: str) -> dict[str, Any]:
    """Number of analogies whose d is the nearest word, in the four ways of `nearest_words`."""
    words = vocabulary()
    table = encoder().embed(words) if vectors == "sentence" else encoder().word_vectors(words)
    tests = [line.lower().split() for line in ANALOGIES.replace("\n", " ").split(",")]
    right: Counter = Counter()
    examples = []
    for a, b, c, d in tests:
        for name, nearest in nearest_words(table, words, a, b, c).items():
            right[name] += nearest[0] == d
            if d == "queen":
                examples.append({"name": name, "nearest": nearest})
    result = {**right, "analogies": len(tests), "words": len(words)}
    return {"result": result, "examples": examples}


def nearest_words(table: Tensor, words: list[str], a: str, b: str, c: str) -> dict[str, list[str]]:
    """The three words nearest to b − a + c, in four ways: a, b and c may be among them only in the first."""
    given = [words.index(word) for word in (a, b, c)]
    va, vb, vc = table[given]

    def nearest(target: Tensor, *, excluded: Sequence[int]) -> list[str]:
        scores = table @ target
        scores[excluded] = -math.inf
        return [words[i] for i in scores.topk(3).indices]

    return {
        "of all": nearest(vb - va + vc, excluded=[]),
        "inputs excluded": nearest(vb - va + vc, excluded=given),
        "nothing subtracted": nearest(vb + vc, excluded=given),
        "nearest to c": nearest(vc, excluded=given),
    }
