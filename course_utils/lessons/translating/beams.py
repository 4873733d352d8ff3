"""The course's own parts for *Translating*: what the page goes on with where the reader's have not passed yet."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, PAD, SPECIALS, Vocabulary
from course_utils.data.translation import Batch, Pair
from course_utils.decoding import translate
from course_utils.interventions import intervene
from course_utils.lessons.bahdanau_attention.alignment import alignment_error_rate, links_of
from course_utils.lessons.sequence_to_sequence import small_world
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, Vocabularies
from course_utils.lessons.transformer.machine import translator
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention


def grow(scores: Tensor, log_p: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `size` best continuations of all beams.

    Args:
        scores: (beams,) log-probabilities of the beams so far.
        log_p: (beams, words) log-probabilities of each next word.
        size: how many are kept.

    Returns:
        Their scores, the best first; the beam that each goes on from; the word that it adds: (size,) each.
    """
    total = scores[:, None] + log_p
    best, picked = total.flatten().topk(size)
    return best, picked // log_p.shape[1], picked % log_p.shape[1]


stored_translator = translator
"""The translator of *Start here*, in eval mode; its vocabularies are those of `larger_world`."""


def asked(line: str, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """A sentence as a model reads it: ids (1, tokens), `<eos>` last, and their number (1,)."""
    ids = [*vocabulary.encode(line.split()), EOS]
    return torch.tensor([ids]), torch.tensor([len(ids)])


def speakable(logits: Tensor) -> Tensor:
    """Log-probabilities (…, words); `<pad>` and `<bos>` are never a next word."""
    ruled_out = torch.zeros_like(logits, dtype=torch.bool)
    ruled_out[..., [PAD, BOS]] = True
    return logits.masked_fill(ruled_out, -torch.inf).log_softmax(dim=-1)


def newest(model: Transformer, prefixes: Tensor) -> Tensor:
    """Ids (beams, t) of all words so far → the newest one's embedding at its place, (beams, 1, embed_dim)."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.shape[1] - 1)


class Tree:
    """A language given by a table: word → the probability of each next word. It speaks as a model does.

    A sentence begins with `<bos>` and ends with `<eos>`; these have the ids that they have everywhere, and the other
    words follow them.

    Attributes:
        tokens: all words, by id.
    """

    def __init__(self, follows: dict[str, dict[str, float]]):
        named = dict.fromkeys(word for row in follows.values() for word in row)
        self.tokens = [*SPECIALS, *(word for word in named if word not in SPECIALS)]
        self.table = torch.zeros(len(self.tokens), len(self.tokens))
        self.table[:, EOS] = 1.0  # of a word that the table does not have
        for word, row in follows.items():
            index = self.tokens.index(word)
            self.table[index] = 0.0
            for following, probability in row.items():
                self.table[index, self.tokens.index(following)] = probability

    def __call__(self, prefixes: Tensor) -> Tensor:
        """Prefixes (beams, t) → log-probabilities (beams, words) of the word after each."""
        return self.table[prefixes[:, -1]].log()

    def sentence(self, ids: list[int]) -> str:
        """The words of these ids."""
        return " ".join(self.tokens[index] for index in ids)


def undecided(first_a: float) -> Tree:
    """A language of A, B, C and D: after A it wavers, after B it is nearly sure."""
    return Tree(
        {
            "<bos>": {"A": first_a, "B": 0.4, "<eos>": 0.6 - first_a},
            "A": {"C": 0.4, "D": 0.35, "<eos>": 0.25},
            "B": {"C": 0.9, "<eos>": 0.1},
        }
    )


# What a word looks at, and what it needs ---------------------------------------------------------


def batch_of(
    pairs: Sequence[Pair],
    vocabularies: Vocabularies,
    translations: Sequence[Sequence[str]] | None = None,
) -> Batch:
    """The pairs as ids, padded; with these translations instead of their own, if there are any."""
    if translations is not None:
        pairs = [Pair(p.source, tuple(t)) for p, t in zip(pairs, translations, strict=True)]
    return small_world.batch_of(pairs, vocabularies)


def cut(maps: Tensor, pairs: Sequence[Pair]) -> list[Tensor]:
    """Maps (pairs, …, longest target, longest source) → for each pair its (…, target, source), without `<eos>`."""
    return [
        words[..., : len(pair.target), : len(pair.source)]
        for words, pair in zip(maps, pairs, strict=True)
    ]


@torch.no_grad()
def attention_maps(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> list[Tensor]:
    """Cross-attention under teacher forcing: for each pair (layers, heads, target, source).

    Row t is the step that *says* target word t. The source's `<eos>` is cut off, and rows sum to 1 without it.
    """
    batch = batch_of(pairs, vocabularies)
    with record_attention(model.eval()) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    cross = torch.stack([maps[name] for name in maps if "cross" in name], dim=1)
    return [words / words.sum(dim=-1, keepdim=True) for words in cut(cross, pairs)]


@torch.no_grad()
def shares_of_each_word(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> list[Tensor]:
    """The mean of all cross-attention maps, read by column: for each pair (target, source).

    What each source word gets is divided by its sum over the target words, so that all source words count the same.
    """
    batch = batch_of(pairs, vocabularies)
    with record_attention(model.eval()) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    cross = torch.stack([maps[name] for name in maps if "cross" in name]).mean(dim=(0, 2))
    return [words / words.sum(dim=0) for words in cut(cross, pairs)]


def error_rate(maps: Sequence[Tensor], pairs: Sequence[Pair]) -> float:
    """Alignment error rate of a map (target, source) for each pair: each target word's largest number is its link."""
    gold = [pair.alignment or frozenset() for pair in pairs]
    return alignment_error_rate(list(map(links_of, maps)), gold)


def needs(model: Transformer, p: Callable[[], Tensor], m: int) -> Tensor:
    """Fall of each probability if the cross-attention may not look at one of the source words.

    Args:
        model: its cross-attentions, of all layers, may not look.
        p: gives the probabilities (…, n) of the target words.
        m: so many source words are forbidden, one at a time.

    Returns:
        (…, n, m).
    """
    before, falls = p(), []
    for j in range(m):
        with intervene(model) as acts:
            acts.knock_out("cross_attention", keys=j)
            falls.append(before - p())
    return torch.stack(falls, dim=-1)


def needs_maps(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> list[Tensor]:
    """`needs` of the pairs' own translations: for each pair (target, source)."""
    batch = batch_of(pairs, vocabularies)

    @torch.no_grad()
    def p() -> Tensor:
        logits = model.eval()(batch.source, batch.source_lens, batch.target_in)
        return logits.softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]

    return cut(needs(model, p, max(len(pair.source) for pair in pairs)), pairs)


def pair_of(line: str, model: Transformer, world: SmallWorld) -> Pair:
    """A sentence and its greedy translation, with gold links if the test part of `world` has just this pair."""
    french = translate(model, [line], world.source_vocab, world.target_vocab, max_len=20)[0]
    pair = Pair(tuple(line.split()), tuple(french.split()))
    known = (p for p in world.test if (p.source, p.target) == (pair.source, pair.target))
    return next(known, pair)


OTHER_GENDER = {"le": "la", "un": "une", "mon": "ma", "ton": "ta", "son": "sa"}
OTHER_GENDER |= {feminine: masculine for masculine, feminine in OTHER_GENDER.items()}
ADJECTIVES = {"old", "new", "small", "big", "pretty", "young", "good"}
"""Adjectives that stand before a noun in French, too."""
ROADS = {
    "nothing": (False, "none"),
    "head 0.1": (False, "head"),
    "all encoder heads": (False, "all"),
    "the noun": (True, "none"),
    "the noun and head 0.1": (True, "head"),
    "the noun and all encoder heads": (True, "all"),
}
"""What is forbidden → whether the article may not look at its noun, and which encoder heads are ablated."""


def articles(pairs: Sequence[Pair]) -> list[tuple[int, int, int]]:
    """(pair, target place, source place) of singular articles and possessives right before their noun."""
    places = []
    for i, pair in enumerate(pairs):
        linked_to = {t: s for s, t in sorted(pair.alignment or ())}
        for t, word in enumerate(pair.target[:-1]):
            s = linked_to.get(t)
            if word not in OTHER_GENDER or s is None or s + 1 >= len(pair.source):
                continue
            after = {target for source, target in pair.alignment or () if source == s + 1}
            if after == {t + 1} and pair.source[s + 1] not in ADJECTIVES:
                places.append((i, t, s))
    return places


@torch.no_grad()
def article_roads(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> dict[str, float]:
    """The share of articles whose right gender is likelier than the other, by what is forbidden (`ROADS`).

    "head 0.1" is, whatever its number, the encoder head that looks most from an article to its noun.
    """
    batch, french = batch_of(pairs, vocabularies), vocabularies[1]
    rows, target, source = (torch.tensor(column) for column in zip(*articles(pairs), strict=True))
    words = [pairs[i].target[t] for i, t in zip(rows.tolist(), target.tolist(), strict=True)]
    right = torch.tensor(french.encode(words))[:, None]
    wrong = torch.tensor(french.encode([OTHER_GENDER[word] for word in words]))[:, None]
    with record_attention(model.eval()) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    encoder = [name for name in maps if name.startswith("encoder")]
    looks = torch.stack([maps[name][rows, :, source, source + 1].mean(dim=0) for name in encoder])
    layer, head = divmod(int(looks.argmax()), looks.shape[1])
    ablated: dict[str, list[tuple[str, int | None]]] = {
        "none": [],
        "head": [(encoder[layer], head)],
        "all": [(name, None) for name in encoder],
    }

    def is_right(heads: str, noun: int | None = None) -> Tensor:
        """(articles,): with some heads ablated, and no French word allowed to look at one place."""
        with intervene(model) as acts:
            if noun is not None:
                acts.knock_out("cross_attention", keys=noun)
            for name, number in ablated[heads]:
                acts.ablate(name, heads=number)
            logits = model(batch.source, batch.source_lens, batch.target_in)[rows, target]
        return (logits.gather(1, right) > logits.gather(1, wrong))[:, 0]

    def share(without_noun: bool, heads: str) -> float:
        if not without_noun:
            return is_right(heads).float().mean().item()
        by_place = torch.stack([is_right(heads, place) for place in range(int(source.max()) + 2)])
        own = by_place[source + 1, torch.arange(len(source))]  # without a look at its own noun
        return own.float().mean().item()

    return {name: share(*forbidden) for name, forbidden in ROADS.items()}
