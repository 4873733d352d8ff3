"""Tasks for *BERT and transfer*: pretraining's, and two with labels, on sentences that no pretraining reads.

In the first of these a sentence is in order or not, and each comes twice: as it is, and with two neighboring words
exchanged. Both have the same words, so that a bag of words is right in exactly half of them. The second asks for the
tense. Counts of the pretraining text say what can be known without a network.
"""

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE, Subwords, load_english
from course_utils.data.text import MASK, PAD, pad
from course_utils.data.translation import load_grammar
from course_utils.files import data_path
from course_utils.lessons.gpt.training import rate
from course_utils.models.language import BERT, GPT, LanguageModel

VOCAB = 512  # tokens
POOL, VAL, TEST = 1500, 250, 750  # sentences to be labeled, to choose with, and to measure with
SHORTEST = 5  # tokens of a sentence in a task, the last mark included
DATA = [
    "translation/grammar_fr.tsv",
    "translation/sentences.tsv",
    "translation/lexicon/verbs.tsv",
    "translation/lexicon/intransitives.tsv",
]


@dataclass(frozen=True)
class Texts:
    """The course's English sentences, divided.

    Attributes:
        read: what models are pretrained on, without labels.
        pool, val, test: sentences of the tasks; none of them is in `read`.
        subwords: learned from `read`.
    """

    read: tuple[str, ...]
    pool: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    subwords: Subwords


@functools.cache
def texts() -> Texts:
    """The division, always the same."""
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    corpus, labeled_pool, read = set(sentences), [], []
    for text in sentences:
        long = len(text.split()) >= SHORTEST and exchanges(text, corpus)
        (labeled_pool if long and len(labeled_pool) < POOL + VAL + TEST else read).append(text)
    parts = labeled_pool[:POOL], labeled_pool[POOL : POOL + VAL], labeled_pool[POOL + VAL :]
    return Texts(tuple(read), *map(tuple, parts), Subwords(read, size=VOCAB))


def exchanges(text: str, corpus: set[str]) -> list[str]:
    """What the exchange of two neighbors can make of a sentence; its last mark stays, and no known sentence."""
    words = text.split()
    exchanged = []
    for i in range(len(words) - 2):
        other = " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
        if other not in corpus:
            exchanged.append(other)
    return exchanged


@dataclass(frozen=True)
class Labeled:
    """Sentences with their classes, as a batch.

    Attributes:
        ids: (sentences, longest) with <bos> and <eos>, padded on the right.
        lengths: (sentences,)
        labels: (sentences,)
        texts: the same, in words.
    """

    ids: Tensor
    lengths: Tensor
    labels: Tensor
    texts: tuple[str, ...]


def labeled(pairs: Sequence[tuple[str, int]]) -> Labeled:
    """Pairs of a sentence and its class, as one batch."""
    ids, lengths = pad([texts().subwords.sentence(text) for text, _ in pairs])
    labels = torch.tensor([label for _, label in pairs])
    return Labeled(ids, lengths, labels, tuple(text for text, _ in pairs))


@functools.cache
def _known() -> tuple[set[str], dict[str, int]]:
    """All sentences, and the tense of those that have one."""
    return set(load_english()), load_tenses()


def in_order(sentences: Sequence[str], seed: int = 0) -> Labeled:
    """Each sentence as it is (class 0), and with two neighbors exchanged (class 1)."""
    corpus, draws = _known()[0], random.Random(seed)
    pairs = []
    for text in sentences:
        pairs += [(text, 0), (draws.choice(exchanges(text, corpus)), 1)]
    return labeled(pairs)


def tense(sentences: Sequence[str], seed: int = 0) -> Labeled:
    """The sentences in the present (0), the past (1) or the future (2), as many of each."""
    corpus = _known()[1]
    by_label: list[list[str]] = [[], [], []]
    for text in sentences:
        if text in corpus:
            by_label[corpus[text]].append(text)
    count = min(map(len, by_label))
    pairs = [(text, label) for label, rows in enumerate(by_label) for text in rows[:count]]
    random.Random(seed).shuffle(pairs)
    return labeled(pairs)


TASKS: dict[str, Callable[..., Labeled]] = {"order": in_order, "tense": tense}
CLASSES = {"order": 2, "tense": 3}


@functools.cache
def task(name: str) -> tuple[Labeled, Labeled]:
    """Validation and test part of a task."""
    return TASKS[name](texts().val), TASKS[name](texts().test)


@functools.cache
def few(name: str, count: int, seed: int) -> Labeled:
    """`count` labeled sentences of a task, drawn from the pool."""
    sentences = random.Random(seed).sample(texts().pool, POOL)
    chosen = TASKS[name](sentences[: count // 2] if name == "order" else sentences, seed)
    rows = slice(count)
    return Labeled(chosen.ids[rows], chosen.lengths[rows], chosen.labels[rows], chosen.texts[rows])


# What a bag can do ------------------------------------------------------------------------------


def bag(data: Labeled, neighbors: bool = False) -> Tensor:
    """(sentences, …) which tokens a sentence has; with `neighbors` which pairs of neighbors."""
    if not neighbors:
        counts = torch.zeros(len(data.labels), VOCAB)
        return counts.scatter_(1, data.ids, 1.0)
    pairs = data.ids[:, :-1] * VOCAB + data.ids[:, 1:]
    return torch.zeros(len(data.labels), VOCAB**2).scatter_(1, pairs, 1.0)


def bag_accuracy(name: str, count: int, seed: int, *, neighbors: bool = False) -> float:
    """Test accuracy of logistic regression on a bag of tokens, or of pairs of neighbors."""
    train, (val, test) = few(name, count, seed), task(name)
    read = bag(train, neighbors)
    used = read.any(dim=0)
    read, best = read[:, used], (-1.0, 0.0)
    parts = [(bag(split, neighbors)[:, used], split.labels) for split in (val, test)]
    for decay in (1e-4, 1e-3, 1e-2):
        weights = _logistic(read, train.labels, CLASSES[name], decay)
        scores = [
            ((x @ weights[:-1] + weights[-1]).argmax(1) == y).float().mean() for x, y in parts
        ]
        best = max(best, (scores[0].item(), scores[1].item()), key=lambda pair: pair[0])
    return best[1]


def _logistic(x: Tensor, y: Tensor, classes: int, decay: float) -> Tensor:
    """Weights (features + 1, classes), the last row for the constant."""
    weights = torch.zeros(x.shape[1] + 1, classes, requires_grad=True)
    fit = torch.optim.LBFGS([weights], max_iter=100)

    def closure() -> Tensor:
        fit.zero_grad()
        loss = F.cross_entropy(x @ weights[:-1] + weights[-1], y)
        loss = loss + decay * weights[:-1].square().sum()
        loss.backward()
        return loss

    fit.step(closure)
    return weights.detach()


# The tense of a sentence, by the forms of its verb ------------------------------------------------

TENSES = ("present", "past", "future")

_PAST = {"was", "were", "wasn't", "weren't", "had", "did", "didn't"}
_FUTURE = {"will", "won't"}


def load_tenses() -> dict[str, int]:
    """The generated sentences, each with its tense's place in `TENSES`, by the lexicon's forms of verbs.

    "did", "was" and the past forms of verbs say past; "will" and "going to" before a verb say future;
    what has none of them is present. A verb whose past is spelled as its base (put, read) says
    nothing, so its sentences are left out unless an auxiliary decides.
    """
    bases, pasts = _verb_forms()
    spelled_alike = bases & pasts
    labels = {}
    for text in sorted({" ".join(pair.source) for pair in load_grammar("fr")}):
        words = text.split()
        trios = zip(words, words[1:], words[2:], strict=False)
        going = any(trio[:2] == ("going", "to") and trio[2] in bases for trio in trios)
        future = going or not _FUTURE.isdisjoint(words) or any(w.endswith("'ll") for w in words)
        past = not (_PAST | pasts - bases).isdisjoint(words)
        if future + past == 1 or (not future and not past and spelled_alike.isdisjoint(words)):
            labels[text] = 2 if future else int(past)
    return labels


def _verb_forms() -> tuple[set[str], set[str]]:
    """Base forms, and past forms, of the lexicon's verbs."""
    bases, pasts = {"be", "have"}, set()
    for name in ("verbs", "intransitives"):
        path = data_path(f"translation/lexicon/{name}.tsv")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                base, past, *_ = line.split("\t")
                bases.add(base.split()[0])
                pasts.add(past.split()[0])
    return bases, pasts


# Pretraining: one loop, and what is asked ---------------------------------------------------------

SIZES = {"embed_dim": 64, "num_heads": 4, "num_layers": 2}
STEPS, BATCH, RATE, SHARE = 1200, 64, 1e-2, 0.4
BEGINNINGS = ("from scratch", "GPT", "BERT")
"""What a network has learned before the task."""


def masking(ids: Tensor, vocab_size: int, share: float = 0.15) -> tuple[Tensor, Tensor]:
    """Tokens to be read and targets, (batch, length): BERT's rule.

    Of the ordinary tokens `share` are picked. Of these 80 % become the mask, 10 % a random ordinary token, and
    10 % stay; where nothing is picked the target is -100. Devlin et al. (2019), section 3.1.
    """
    picked = (torch.rand(ids.shape) < share) & (ids > MASK)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(MASK + 1, vocab_size, ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), MASK)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), random_ids, tokens)
    return tokens, ids.masked_fill(~picked, IGNORE)


@functools.cache
def sentences() -> tuple[Tensor, Tensor]:
    """The pretraining text, the shortest sentence first: ids (sentences, longest) and lengths."""
    ids = [texts().subwords.sentence(text) for text in texts().read]
    return pad(sorted(ids, key=len))


def asked(name: str, ids: Tensor) -> tuple[Tensor, Tensor]:
    """What a pretraining reads, and what it is asked, where nothing is asked -100."""
    if name == "GPT":
        return ids[:, :-1], ids[:, 1:].masked_fill(ids[:, 1:] == PAD, IGNORE)
    if name == "autoencoder":
        return ids, ids.masked_fill(ids == PAD, IGNORE)
    return masking(ids, VOCAB, SHARE)


def new_model(name: str) -> LanguageModel:
    """A network that has learned nothing."""
    kind = GPT if name == "GPT" else BERT
    return kind(VOCAB, **SIZES, rotary=True, dropout=0.0)


def pretrain(
    name: str, seed: int, *, steps: int = STEPS, lr: float = RATE
) -> tuple[LanguageModel, list[list[float]]]:
    """A network pretrained on sentences without labels, and points [step, training loss]."""
    torch.manual_seed(seed)
    model, curve, recent = new_model(name), [], []
    if name == "from scratch":
        return model, curve
    table, lengths = sentences()
    optimizer = torch.optim.AdamW(model.parameters(), lr, (0.9, 0.99), weight_decay=0.1, fused=True)
    for step in range(steps):
        rows = torch.randint(len(table) - BATCH, ()) + torch.arange(BATCH)  # nearly equally long
        tokens, targets = asked(name, table[rows, : lengths[rows].max()])
        picked = targets != IGNORE
        features = model.features(tokens, lengths[rows].clamp(max=tokens.shape[1]))
        loss = F.cross_entropy(model.output(features[picked]), targets[picked])
        optimizer.param_groups[0]["lr"] = lr * rate(step, steps, 30)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if (step + 1) % 100 == 0:
            curve.append([step + 1, round(sum(recent) / len(recent), 4)])
            recent = []
    return model.eval(), curve


# What counts of the pretraining text know: of a hidden token, and of a sentence out of order ------


class Counts:
    """Tables of single tokens, pairs and triples, smoothed as in *GPT* (Witten and Bell, 1991)."""

    def __init__(self, table: Tensor, lengths: Tensor):
        rows = [row[:n] for row, n in zip(table.tolist(), lengths.tolist(), strict=True)]
        tokens = torch.tensor([i for row in rows for i in row])
        single = torch.bincount(tokens, minlength=VOCAB).float()
        kinds = (single > 0).sum()
        self.single = (single + kinds / VOCAB) / (single.sum() + kinds)
        ends = torch.tensor([pair for row in rows for pair in itertools.pairwise(row)])
        pairs = torch.bincount(ends[:, 0] * VOCAB + ends[:, 1], minlength=VOCAB**2)
        pairs = pairs.view(VOCAB, VOCAB).float()
        kinds = (pairs > 0).sum(dim=1, keepdim=True)
        behind = pairs.sum(dim=1, keepdim=True)
        self.pairs = (pairs + kinds * self.single) / (behind + kinds).clamp(min=1)
        triples = Counter(t for row in rows for t in zip(row, row[1:], row[2:], strict=False))
        self.behind: dict[tuple[int, int], Counter] = {}
        self.between: dict[tuple[int, int], Counter] = {}
        for (left, middle, right), count in triples.items():
            self.behind.setdefault((left, middle), Counter())[right] = count
            self.between.setdefault((left, right), Counter())[middle] = count

    def third(self, first: int, second: int) -> Tensor:
        """P(token | the two before it), (VOCAB,)."""
        return _leaning(self.behind.get((first, second)), self.pairs[second])

    def middle(self, left: int, right: int) -> Tensor:
        """P(token | its left and its right neighbor), (VOCAB,); it leans on the pairs of both sides."""
        both = self.pairs[left] * self.pairs[:, right]
        return _leaning(self.between.get((left, right)), both / both.sum())


def _leaning(seen: Counter | None, shorter: Tensor) -> Tensor:
    if not seen:
        return shorter
    counts = torch.zeros(VOCAB)
    counts[list(seen)] = torch.tensor(list(seen.values()), dtype=torch.float)
    return (counts + len(seen) * shorter) / (counts.sum() + len(seen))


@functools.cache
def counts() -> Counts:
    """Those of the pretraining text."""
    return Counts(*sentences())


# One hidden token -------------------------------------------------------------------------------


@functools.cache
def hidden() -> tuple[Labeled, Tensor]:
    """The test sentences, and in each the place of one ordinary token, (sentences,)."""
    data = labeled([(text, 0) for text in texts().test])
    chance = torch.rand(data.ids.shape, generator=torch.Generator().manual_seed(0))
    return data, chance.masked_fill(data.ids <= MASK, -1.0).argmax(dim=1)


def counted_losses() -> dict[str, float]:
    """Mean loss at the hidden tokens of what is counted."""
    data, places = hidden()
    table, chances = (
        counts(),
        {"frequencies": [], "one before": [], "two before": [], "both neighbors": []},
    )
    for row, i in zip(data.ids.tolist(), places.tolist(), strict=True):
        token = row[i]
        chances["frequencies"].append(table.single[token])
        chances["one before"].append(table.pairs[row[i - 1], token])
        two = table.third(*row[i - 2 : i]) if i > 1 else table.pairs[row[i - 1]]
        chances["two before"].append(two[token])
        chances["both neighbors"].append(table.middle(row[i - 1], row[i + 1])[token])
    return {name: -torch.stack(probs).log().mean().item() for name, probs in chances.items()}


@torch.no_grad()
def hidden_loss(model: nn.Module) -> float:
    """Mean loss at the hidden tokens: behind what stands before them for a GPT, else under a mask."""
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    causal = getattr(model, "is_causal", False)
    if not causal:
        tokens[rows, places] = MASK
    logits = model(tokens, data.lengths)[rows, places - int(causal)]
    return F.cross_entropy(logits, data.ids[rows, places]).item()


# Sentences out of order -------------------------------------------------------------------------


def strangeness(data: Labeled) -> Tensor:
    """(sentences, 2): mean and largest loss of a sentence's tokens by counted triples."""
    table, features = counts(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        probs = [table.pairs[row[0], row[1]]]
        for position in range(2, length):
            probs.append(table.third(row[position - 2], row[position - 1])[row[position]])
        losses = -torch.stack(probs).log()
        features.append(torch.stack([losses.mean(), losses.max()]))
    return torch.stack(features)


def counted_accuracy(count: int, seed: int) -> float:
    """Test accuracy where the largest loss, or the mean, above a threshold says "out of order".

    The threshold is the best one for the labeled sentences; which of the two is chosen on the validation part.
    """
    train, (val, test) = few("order", count, seed), task("order")
    best = (-1.0, 0.0)
    for column in (0, 1):
        x = strangeness(train)[:, column]
        right = torch.stack([((x > cut).long() == train.labels).float().mean() for cut in x])
        cut = x[right.argmax()]
        scores = [
            ((s[:, column] > cut).long() == split.labels).float().mean().item()
            for split, s in ((val, _parts()[0]), (test, _parts()[1]))
        ]
        best = max(best, (scores[0], scores[1]), key=lambda pair: pair[0])
    return best[1]


@functools.cache
def _parts() -> tuple[Tensor, Tensor]:
    val, test = task("order")
    return strangeness(val), strangeness(test)
