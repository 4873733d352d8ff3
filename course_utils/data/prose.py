"""Text for language models: subwords, windows, and batches for next-token and masked-token prediction.

Taught in *GPT* and *BERT and transfer*.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from course_utils.arguments import check_positive, refuse_text
from course_utils.data.loading import Loader
from course_utils.data.text import BOS, EOS, MASK, PAD, SPECIALS, UNK, pad, tokenize
from course_utils.data.translation import load_grammar, load_sentences
from course_utils.files import data_path

IGNORE = -100
"""The target of places without a loss: the default `ignore_index` of PyTorch's cross-entropy."""

WORD_END = "␣"
"""The character at the end of each word."""

_UNSPELLED = tuple(f" {token}" for token in (*SPECIALS, "<mask>"))
"""The special tokens' names in the package `tokenizers`: with a space, which no word and no piece of one has."""

LONGEST_WORD = 100_000
"""Letters from which on a word is refused: the time to learn merges grows with their square, and is seconds here."""

# Texts ------------------------------------------------------------------------------------------


def load_english() -> list[str]:
    """The course's English sentences, hand-written and generated, sorted: tokens joined by spaces."""
    pairs = [*load_sentences("fr"), *load_grammar("fr")]
    return sorted({" ".join(pair.source) for pair in pairs})


def load_story() -> list[str]:
    """The sentences of the course's own story, data/prose/story.txt: tokens joined by spaces."""
    tokens, sentences = [], []
    for token in tokenize(story_text()):
        tokens.append(token)
        if token in {".", "?", "!"}:
            sentences.append(" ".join(tokens))
            tokens = []
    return sentences


def story_text() -> str:
    """The text of the course's own story, one paragraph a line."""
    lines = data_path("prose/story.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("#"))


# Subwords ---------------------------------------------------------------------------------------


class Subwords:
    """A vocabulary of subwords, learned by byte-pair encoding (BPE).

    Sennrich, Haddow and Birch (2016), "Neural machine translation of rare words with subword units",
    section 3.2; computed by the package `tokenizers`. The first ids are those of the special tokens
    (`<pad>`, `<unk>`, `<bos>`, `<eos>`) and `<mask>`; a text that speaks of `<mask>` is read in pieces as any other,
    and comes back. Only "␣", which ends words, is read as a space.

    Args:
        texts: the training data, from which the merges are learned.
        size: the largest number of tokens, special tokens and characters included.

    Attributes:
        tokens: all tokens, by id.
        unwritten: ids that a model must not generate: `<pad>`, `<bos>` and `<mask>`.
        merges: pairs of subwords, in the order in which they were merged.

    Raises:
        TypeError: `texts` is a `str`, not a list of texts.
        ValueError: `texts` is empty, a word has `LONGEST_WORD` letters or more, or `size` is smaller than needed.
    """

    unwritten = (PAD, BOS, MASK)

    def __init__(self, texts: Iterable[str], *, size: int = 1000):
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        refuse_text("texts", texts, "a list of texts")
        texts = [_marked(text) for text in texts]
        characters = set().union(*texts) - {" "}
        if not characters:
            raise ValueError("texts is empty; subwords are learned from training data")
        longest = max((word for text in texts for word in text.split()), key=len)
        if len(longest) > LONGEST_WORD:
            raise ValueError(
                f"a word, {longest[:20]!r}…, has {len(longest) - 1:,} letters; merges are learned from words of "
                f"less than {LONGEST_WORD:,}, because longer ones take hours; put spaces into it"
            )
        smallest = len(SPECIALS) + 1 + len(characters)
        if size < smallest:
            raise ValueError(
                f"size={size}; {len(characters)} characters and the special tokens need {smallest}"
            )
        learner = Tokenizer(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(_UNSPELLED), show_progress=False
        )
        learner.train_from_iterator(texts, trainer)
        ids = learner.get_vocab()
        learned = sorted(ids, key=lambda token: ids[token])[len(_UNSPELLED) :]
        merges = json.loads(learner.to_str())["model"]["merges"]
        self._take([*SPECIALS, "<mask>", *learned], [tuple(merge) for merge in merges])

    @classmethod
    def from_merges(cls, tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> "Subwords":
        """Subwords with these attributes `tokens` and `merges`, learned elsewhere."""
        subwords = cls.__new__(cls)
        subwords._take(tokens, merges)
        return subwords

    def _take(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers

        spelled = [*_UNSPELLED, *tokens[len(_UNSPELLED) :]]
        ids = {token: index for index, token in enumerate(spelled)}
        self.tokens, self.merges = tuple(tokens), [(left, right) for left, right in merges]
        self._tokenizer = Tokenizer(models.BPE(ids, self.merges, unk_token=_UNSPELLED[UNK]))
        self._tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Subwords({len(self)} tokens)"

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `<bos>` and `<eos>`; an unknown character becomes `UNK`."""
        return self._tokenizer.encode(_marked(text)).ids

    def sentence(self, text: str) -> list[int]:
        """The ids of a text, with `<bos>` and `<eos>` around them."""
        return [BOS, *self.encode(text), EOS]

    def pieces(self, text: str) -> list[str]:
        """The subwords of a text; the last one of a word ends in "␣"."""
        return [self.tokens[index] for index in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without `<pad>`, `<bos>` and `<eos>`; words are separated by spaces.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        pieces = []
        for index in ids:
            if not 0 <= index < len(self):
                raise ValueError(f"id {index} is outside a vocabulary of {len(self)} subwords")
            if index in (UNK, MASK):
                pieces.append(f" {self.tokens[index]} ")
            elif index not in (PAD, BOS, EOS):
                pieces.append(self.tokens[index])
        return " ".join("".join(pieces).replace(WORD_END, " ").split())


def _marked(text: str) -> str:
    """The tokens of a text, each with `WORD_END` after it, joined by spaces."""
    return " ".join(token + WORD_END for token in tokenize(text.replace(WORD_END, " ")))


def cut_windows(ids: Sequence[int], length: int) -> list[list[int]]:
    """Consecutive windows of `length` + 1 ids; the last id of one is the first of the next.

    So each id but the first is a target once. A rest that is shorter than a window is left out.

    Raises:
        ValueError: `ids` has fewer than `length` + 1, or `length` is not positive.
    """
    check_positive(length=length)
    if len(ids) < length + 1:
        raise ValueError(
            f"the text has {len(ids)} tokens; a window of length={length} needs {length + 1}"
        )
    starts = range(0, len(ids) - length, length)
    return [list(ids[start : start + length + 1]) for start in starts]


# Objectives and batches -------------------------------------------------------------------------


@dataclass(frozen=True)
class TextBatch:
    """A batch of texts and targets.

    Attributes:
        tokens: (batch, length), input ids, padded on the right.
        lengths: (batch,), numbers of input ids without padding.
        targets: (batch, length), target ids; `IGNORE` at places without a loss.
    """

    tokens: Tensor
    lengths: Tensor
    targets: Tensor

    def to(self, device: torch.device | str) -> "TextBatch":
        """The batch on another device."""
        return TextBatch(*(getattr(self, field.name).to(device) for field in fields(self)))

    @property
    def num_tokens(self) -> int:
        """The number of targets."""
        return int((self.targets != IGNORE).sum())


Objective = Callable[[Tensor, Tensor, torch.Generator], TextBatch]
"""(ids (batch, length), lengths (batch,), generator) → inputs and targets."""


def next_token(ids: Tensor, lengths: Tensor, generator: torch.Generator) -> TextBatch:
    """The objective of GPT: the target of each token is the next one."""
    return TextBatch(ids[:, :-1], lengths - 1, _real_targets(ids, lengths)[:, 1:])


def masked_token(vocab_size: int, *, share: float = 0.15) -> Objective:
    """The objective of BERT: some tokens are targets, and most of those are masked in the input.

    In each row, `share` of the tokens, and at least one, are targets. In the input 80 % of them become `<mask>`,
    10 % a random token, and 10 % stay (Devlin et al., 2019, section 3.1). Special tokens are never targets.

    Args:
        vocab_size: number of tokens, special tokens included.
        share: the fraction of the tokens that are targets.

    Raises:
        ValueError: `share` is not in (0, 1], or the vocabulary has special tokens only; or, when the objective is
            called, a row has special tokens only.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share={share}; 0 < share <= 1 is needed")
    if vocab_size <= MASK + 1:
        raise ValueError(f"vocab_size={vocab_size}; the special tokens alone are {MASK + 1}")

    def objective(ids: Tensor, lengths: Tensor, generator: torch.Generator) -> TextBatch:
        candidates = ids > MASK
        number = (share * candidates.sum(dim=1)).round().long().clamp(min=1)
        if not candidates.any(dim=1).all():
            raise ValueError("a row has special tokens only; there is nothing to mask")
        order = torch.rand(ids.shape, generator=generator).masked_fill(~candidates, 2.0)
        picked = order.argsort(dim=1).argsort(dim=1) < number[:, None]
        chance = torch.rand(ids.shape, generator=generator)
        other = torch.randint(MASK + 1, vocab_size, ids.shape, generator=generator)
        tokens = ids.masked_fill(picked & (chance < 0.8), MASK)
        tokens = torch.where(picked & (chance >= 0.8) & (chance < 0.9), other, tokens)
        return TextBatch(tokens, lengths, ids.masked_fill(~picked, IGNORE))

    return objective


def _real_targets(ids: Tensor, lengths: Tensor) -> Tensor:
    return ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], IGNORE)


class TextLoader(Loader):
    """A loader of sentences or windows of similar length, with the inputs and targets of an objective.

    Each pass shuffles as `PairLoader` does. The objective draws from the generator of the pass: other numbers in each
    pass of a shuffled loader, the same in each pass of one that is not shuffled.

    Args:
        sequences: ids of sentences (`Subwords.sentence`) or of windows (`cut_windows`).
        objective: `next_token` or `masked_token(vocab_size)`.
        batch_size: sequences per batch.
        shuffle: False keeps them sorted by length, for evaluation.
        seed: seed of the loader's own generators.

    Raises:
        ValueError: there are no sequences, one has fewer than two ids, or `batch_size` is not positive.
    """

    def __init__(
        self,
        sequences: Sequence[Sequence[int]],
        objective: Objective,
        *,
        batch_size: int = 64,
        shuffle: bool = True,
        seed: int = 0,
    ):
        super().__init__(len(sequences), batch_size=batch_size, shuffle=shuffle, seed=seed)
        if (shortest := min(map(len, sequences))) < 2:
            raise ValueError(f"a sequence has {shortest} ids; at least 2 are needed")
        self._sequences, self._objective = list(sequences), objective

    def _batch(self, rows: list[int], generator: torch.Generator) -> TextBatch:
        return self._objective(*pad([self._sequences[row] for row in rows]), generator)

    def _order(self, generator: torch.Generator) -> list[list[int]]:
        return self._order_by_length([len(ids) for ids in self._sequences], generator)
