"""Beams, attention maps and forbidden links for *Translating* and its further page.

The pages call `grow`, `needs` and `newest` where a reader's own have not passed. The file also has a language in which
beams can be followed by hand, two kinds of map between a sentence and its translation, and the runs that tell how a
French article learns the gender of its noun.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_utils.data.text import EOS, SPECIALS, Vocabulary
from course_utils.data.translation import Batch, Pair
from course_utils.decoding import NEVER_NEXT, translate
from course_utils.interventions import intervene
from course_utils.lessons.bahdanau_attention.alignment import alignment_error_rate, links_of
from course_utils.lessons.sequence_to_sequence import small_world
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, Vocabularies
from course_utils.lessons.transformer.machine import translator
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention


def grow(scores: Tensor, log_p: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """One step of a beam search: the `size` best continuations of all beams.

    Args:
        scores: (beams,) log-probabilities of the beams so far.
        log_p: (beams, words) log-probabilities of each next word.
        size: how many are kept.

    Returns:
        Their scores, from the best down; the number of the beam that each continues; the word that it adds. All three
        are (size,).
    """
    total = scores[:, None] + log_p
    best, picked = total.flatten().topk(size)
    return best, picked // log_p.shape[1], picked % log_p.shape[1]


stored_translator = translator
"""The translator of *Start here*, in eval mode; its vocabularies are those of `larger_world`."""


def asked(line: str, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """A sentence as a batch of one: ids (1, tokens), `<eos>` at the end, and their number (1,)."""
    ids = [*vocabulary.encode(line.split()), EOS]
    return torch.tensor([ids]), torch.tensor([len(ids)])


def speakable(logits: Tensor) -> Tensor:
    """Log-probabilities of the next word without `<pad>` and `<bos>`, which never are one: (…, words) → (…, words)."""
    never_next = torch.tensor(NEVER_NEXT)
    return logits.index_fill(-1, never_next, -torch.inf).log_softmax(dim=-1)


def newest(model: Transformer, prefixes: Tensor) -> Tensor:
    """Embedding of the newest word at its position: ids (beams, t) of all words so far → (beams, 1, embed_dim)."""
    return model.embed(model.target_embedding, prefixes[:, -1:], prefixes.shape[1] - 1)


class Tree:
    """A language given by a table of the probabilities of each next word, which is called as a decoder is.

    A sentence begins with `<bos>` and ends with `<eos>`. The special tokens have their usual ids, and the words follow.

    Args:
        follows: word → the probability of each next word; after a word without a row the sentence ends.

    Attributes:
        tokens: all tokens, by id.
        table: (tokens, tokens), the probability of each token after each.
    """

    def __init__(self, follows: dict[str, dict[str, float]]):
        named = dict.fromkeys(word for row in follows.values() for word in row)
        self.tokens = [*SPECIALS, *(word for word in named if word not in SPECIALS)]
        self.table = torch.zeros(len(self.tokens), len(self.tokens))
        self.table[:, EOS] = 1.0
        for word, row in follows.items():
            index = self.tokens.index(word)
            self.table[index] = 0.0
            for following, probability in row.items():
                self.table[index, self.tokens.index(following)] = probability

    def __call__(self, prefixes: Tensor) -> Tensor:
        """Log-probabilities of the token after each prefix: (beams, t) → (beams, tokens)."""
        return self.table[prefixes[:, -1]].log()

    def sentence(self, ids: list[int]) -> str:
        """A sentence of ids as text."""
        return " ".join(self.tokens[index] for index in ids)


def undecided(first_a: float) -> Tree:
    """A language of A, B, C and D in which A has several likely continuations and B has one.

    With a `first_a` above 0.4, greedy decoding begins with A, though the most probable sentence begins with B.
    """
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
    """The pairs as ids, padded, in their order.

    Args:
        pairs: of sentences.
        vocabularies: English and French.
        translations: words that stand in the place of the pairs' own French, one list for each pair.
    """
    if translations is not None:
        pairs = [
            Pair(pair.source, tuple(words)) for pair, words in zip(pairs, translations, strict=True)
        ]
    return small_world.batch_of(pairs, vocabularies)


def cut(maps: Tensor, pairs: Sequence[Pair]) -> list[Tensor]:
    """The map of each pair, (…, target, source), cut out of padded ones, (pairs, …, longest target, longest source).

    `<eos>` is cut off, too.
    """
    return [
        words[..., : len(pair.target), : len(pair.source)]
        for words, pair in zip(maps, pairs, strict=True)
    ]


@torch.no_grad()
def attention_maps(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> list[Tensor]:
    """Weights of the cross-attention under teacher forcing: (layers, heads, target, source) for each pair.

    Row t belongs to the step that predicts target word t. The source's `<eos>` is cut off, and rows sum to 1 without.
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
    """Mean of all cross-attention maps with columns that sum to 1: (target, source) for each pair.

    A column says how the attention to a source word is shared among the target words.
    """
    batch = batch_of(pairs, vocabularies)
    with record_attention(model.eval()) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    cross = torch.stack([maps[name] for name in maps if "cross" in name]).mean(dim=(0, 2))
    return [words / words.sum(dim=0) for words in cut(cross, pairs)]


def error_rate(maps: Sequence[Tensor], pairs: Sequence[Pair]) -> float:
    """Alignment error rate of maps, (target, source) for each pair; a target word is linked to its largest number."""
    gold = [pair.alignment or frozenset() for pair in pairs]
    return alignment_error_rate(list(map(links_of, maps)), gold)


def needs(model: Transformer, p: Callable[[], Tensor], m: int) -> Tensor:
    """How far the probability of each target word falls when no cross-attention may attend to a source word.

    Args:
        model: the translator, in whose cross-attentions one word at a time is forbidden.
        p: computes the probabilities of the target words, (…, n), with this model.
        m: number of source words, from the first on.

    Returns:
        (…, n, m), a column for each source word.
    """
    before, falls = p(), []
    for j in range(m):
        with intervene(model) as acts:
            acts.forbid("cross_attention", keys=j)
            falls.append(before - p())
    return torch.stack(falls, dim=-1)


def needs_maps(
    model: Transformer, pairs: Sequence[Pair], vocabularies: Vocabularies
) -> list[Tensor]:
    """`needs` of the words of the pairs' own translations: (target, source) for each pair."""
    batch = batch_of(pairs, vocabularies)

    @torch.no_grad()
    def p() -> Tensor:
        logits = model.eval()(batch.source, batch.source_lens, batch.target_in)
        return logits.softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]

    return cut(needs(model, p, max(len(pair.source) for pair in pairs)), pairs)


def pair_of(line: str, model: Transformer, world: SmallWorld) -> Pair:
    """A sentence and its greedy translation, with gold links if the test part of `world` has this very pair."""
    french = translate(model, [line], world.source_vocab, world.target_vocab, max_len=20)[0]
    source, target = tuple(line.split()), tuple(french.split())
    for pair in world.test:
        if (pair.source, pair.target) == (source, target):
            return pair
    return Pair(source, target)


# The gender of an article -------------------------------------------------------------------------


OTHER_GENDER = {"le": "la", "un": "une", "mon": "ma", "ton": "ta", "son": "sa"}
OTHER_GENDER |= {feminine: masculine for masculine, feminine in OTHER_GENDER.items()}
"""Article or possessive → the same with the other gender."""
ADJECTIVES = {"old", "new", "small", "big", "pretty", "young", "good"}
"""English adjectives whose French ones stand before the noun, too."""
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
    """Positions of singular articles and possessives that stand right before their noun in both languages.

    Returns:
        (number of the pair, position in the target, position in the source) of each; the noun comes next.
    """
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
    """Accuracy of the gender of articles (the right one is more probable), by what is forbidden (`ROADS`).

    "head 0.1" stands for the encoder head with most weight from an article on its noun, which has this number in the
    stored translator.
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
        """Mask of the right articles, (articles,), with some heads ablated and the source word `noun` forbidden."""
        with intervene(model) as acts:
            if noun is not None:
                acts.forbid("cross_attention", keys=noun)
            for name, number in ablated[heads]:
                acts.ablate(name, heads=number)
            logits = model(batch.source, batch.source_lens, batch.target_in)[rows, target]
        return (logits.gather(1, right) > logits.gather(1, wrong))[:, 0]

    def share(without_noun: bool, heads: str) -> float:
        """Share of right articles; `without_noun` forbids each its own noun's position."""
        if not without_noun:
            return is_right(heads).float().mean().item()
        by_place = torch.stack([is_right(heads, place) for place in range(int(source.max()) + 2)])
        of_own_noun = by_place[source + 1, torch.arange(len(source))]
        return of_own_noun.float().mean().item()

    return {name: share(*forbidden) for name, forbidden in ROADS.items()}
