"""Decoding: turn next-token logits into sentences, greedily, with a beam, or by drawing.

Works with every `Translator` and every `Writer`; those of `models` with attention to what they have said
decode on a cache. Taught in *Bahdanau attention*, *The Transformer* and *GPT*.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from course_utils.arguments import check_positive, refuse_text
from course_utils.data.text import BOS, EOS, PAD, Vocabulary, pad, tokenize
from course_utils.runtime import Module, evaluating

UNSPOKEN = (PAD, BOS)
"""No translation has them as a next token."""


class Beams(Protocol):
    """Translations under way, a row of the batch each: what `beam_search` does with a model's state."""

    def repeat(self, times: int) -> None:
        """Keep each row `times` times, side by side: a row for each beam."""

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,)."""


State = TypeVar("State")
BeamState = TypeVar("BeamState", bound=Beams)


class Translator(Module, Protocol[State]):
    """A module that reads a sentence and says the next word of its translation, again and again."""

    source_embedding: nn.Embedding
    target_embedding: nn.Embedding

    def start(self, source: Tensor, source_lens: Tensor) -> State:
        """Read (batch, source length) ids, (batch,) lengths: the state before the first word."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (batch, words) of the word after `tokens` (batch,); the state moves on."""


class Writer(Module, Protocol[State]):
    """A module that goes on with a text; `max_len` tokens fit it, or any number where it is None."""

    embedding: nn.Embedding
    max_len: int | None

    def start(self) -> State:
        """Nothing read so far."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Read `tokens`, (batch,) or (batch, new): logits (batch, words) of the next; the state moves on."""


@torch.inference_mode()
def greedy(
    model: Translator, source: Tensor, source_lens: Tensor, *, max_len: int = 50
) -> list[list[int]]:
    """Take the likeliest token at each step, until `<eos>` or `max_len` tokens.

    Args:
        model: a translator; decoded in eval mode, whatever mode it is in.
        source: (batch, source length) ids.
        source_lens: (batch,).
        max_len: number of tokens at most, at least 1.

    Returns:
        A list of ids for each sentence, without `<bos>` and `<eos>`.

    Raises:
        ValueError: `max_len` is not positive.
    """
    check_positive(max_len=max_len)
    with evaluating(model):
        state = model.start(source, source_lens)
        tokens = torch.full((len(source),), BOS, device=source.device)
        finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        unspoken = torch.tensor(UNSPOKEN, device=source.device)
        produced = []
        for _ in range(max_len):
            logits = _without(model.step(tokens, state), unspoken)
            tokens = logits.argmax(dim=-1).masked_fill(finished, PAD)
            finished = finished | (tokens == EOS)
            produced.append(tokens)
            if finished.all():
                break
    return [_until(EOS, row) for row in torch.stack(produced, dim=1).tolist()]


@torch.inference_mode()
def beam_search(
    model: Translator[BeamState],
    source: Tensor,
    source_lens: Tensor,
    *,
    beam_size: int = 4,
    max_len: int = 50,
    length_penalty: float = 0.6,
) -> list[list[int]]:
    """Keep the `beam_size` best beginnings of each sentence; return its best finished one.

    A finished sentence of n tokens (with `<eos>`) is ranked by its log-probability divided by
    ((5 + n) / 6)^length_penalty (Wu et al., 2016, "Google's neural machine translation system",
    section 7). If `<eos>` was never among the `beam_size` likeliest continuations, the likeliest unfinished
    sentence of `max_len` tokens is ranked, too, so that a model that never ends gives what it has.

    Args:
        model: a translator; decoded in eval mode, whatever mode it is in.
        source: (batch, source length) ids.
        source_lens: (batch,).
        beam_size: number of beginnings that are kept, at least 1.
        max_len: number of tokens at most, at least 1.
        length_penalty: 0 ranks by the log-probability alone, which likes short sentences.

    Returns:
        A list of ids for each sentence, without `<bos>` and `<eos>`.

    Raises:
        ValueError: `beam_size` or `max_len` is not positive.
    """
    check_positive(beam_size=beam_size, max_len=max_len)
    batch, device = len(source), source.device
    with evaluating(model):
        state = model.start(source, source_lens)
        state.repeat(beam_size)
        tokens = torch.full((batch * beam_size,), BOS, device=device)
        # All beams of a sentence begin alike, so only the first may grow at the first step.
        scores = torch.full((batch, beam_size), -torch.inf, device=device)
        scores[:, 0] = 0.0
        unspoken = torch.tensor(UNSPOKEN, device=device)
        prefixes: list[list[int]] = [[] for _ in range(batch * beam_size)]
        best: list[tuple[float, list[int]]] = [(-torch.inf, []) for _ in range(batch)]
        may_end = torch.zeros(batch, dtype=torch.bool, device=device)
        for length in range(1, max_len + 1):
            step = _without(model.step(tokens, state), unspoken).log_softmax(dim=-1)
            size = step.shape[-1]
            total = scores[:, :, None] + step.view(batch, beam_size, size)
            penalty = ((5 + length) / 6) ** length_penalty
            ends = total[:, :, EOS].clone()
            for row, ended in enumerate((ends / penalty).tolist()):
                for beam, score in enumerate(ended):
                    if score > best[row][0]:
                        best[row] = (score, prefixes[row * beam_size + beam])
            total[:, :, EOS] = -torch.inf
            scores, picked = total.flatten(1).topk(beam_size, dim=1)
            may_end |= ((ends > -torch.inf) & (ends >= scores[:, -1:])).any(dim=1)
            origin = picked // size + beam_size * torch.arange(batch, device=device)[:, None]
            tokens = (picked % size).flatten()
            rows = origin.flatten()
            prefixes = [
                [*prefixes[row], token]
                for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)
            ]
            state.reorder(rows)
            # log-probabilities only fall: no unfinished beam can still overtake
            bound = (scores[:, 0] / ((5 + max_len) / 6) ** length_penalty).tolist()
            if all(score >= limit for (score, _), limit in zip(best, bound, strict=True)):
                break
    for row, (score, _) in enumerate(best):
        if not may_end[row] and bound[row] > score:
            best[row] = bound[row], prefixes[row * beam_size]
    return [ids for _, ids in best]


def translate(
    model: Translator[BeamState],
    sentences: Sequence[str],
    source_vocab: Vocabulary,
    target_vocab: Vocabulary,
    *,
    beam_size: int = 1,
    max_len: int = 50,
    batch_size: int = 128,
) -> list[str]:
    """Translate sentences, as strings, with the model as it is.

    Raises:
        TypeError: `sentences` is a `str`, not a list of them.
        ValueError: a sentence is empty or has no known word, or the vocabularies do not belong to
            the model (their sizes differ from its embeddings').
    """
    refuse_text("sentences", sentences, "a list of sentences")
    _check_vocabularies(model, source_vocab, target_vocab)
    encoded = [_encoded(sentence, source_vocab) for sentence in sentences]
    order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
    device = next(model.parameters()).device
    translations = [""] * len(encoded)
    for begin in range(0, len(order), batch_size):
        rows = order[begin : begin + batch_size]
        source, lengths = pad([[*encoded[row], EOS] for row in rows])
        source, lengths = source.to(device), lengths.to(device)
        if beam_size == 1:
            decoded = greedy(model, source, lengths, max_len=max_len)
        else:
            decoded = beam_search(model, source, lengths, beam_size=beam_size, max_len=max_len)
        for row, ids in zip(rows, decoded, strict=True):
            translations[row] = " ".join(target_vocab.decode(ids))
    return translations


# Language models --------------------------------------------------------------------------------


def next_token_probs(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None
) -> Tensor:
    """Probabilities to draw the next token from: softmax(logits / temperature) over the k best.

    Args:
        logits: (…, vocab_size).
        temperature: below 1 the likely become likelier; towards 0 the best gets all, which 0 does
            outright; towards infinity all become equal.
        top_k: how many tokens may be drawn; all by default, or if there are fewer. Never more, also where
            several have the logit of the k-th.

    Raises:
        ValueError: `temperature` is negative or NaN, or `top_k` is not positive.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature={temperature}; 0 or more is needed")
    if top_k is not None:
        check_positive(top_k=top_k)
    k = 1 if temperature == 0 else min(top_k or logits.shape[-1], logits.shape[-1])
    best, tokens = logits.topk(k, dim=-1)
    # the best becomes 0 first: a logit divided by a tiny temperature is infinite
    scaled = (best - best[..., :1]) / (temperature or 1.0)
    return torch.zeros_like(logits).scatter(-1, tokens, scaled.softmax(dim=-1))


@torch.inference_mode()
def sample(
    model: Writer,
    prompt: Tensor,
    *,
    max_new: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    banned: Sequence[int] = (),
    end: int | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Continue each prompt, token by token on the cache, until `end` or `max_new` tokens.

    Args:
        model: a `GPT`; read in eval mode, whatever mode it is in.
        prompt: (batch, length) ids of one length.
        max_new: number of new tokens at most.
        temperature, top_k: as in `next_token_probs`.
        banned: ids that are never drawn; for the course's subwords `Subwords.unwritten`.
        end: the id after which a row is done, such as `text.EOS`; by default none is.
        generator: where the draws come from, on the prompt's device; the global one by default.

    Returns:
        The new ids of each row, without `end`.

    Raises:
        ValueError: the prompt is empty or holds an id outside the vocabulary, as `banned` or `end` may
            do, prompt and new tokens do not fit the model's table of positions, or an argument is out
            of range.
    """
    _check_prompt(model, prompt, max_new)
    _check_ids(model, banned=banned, end=[] if end is None else [end])
    with evaluating(model):
        state, tokens = model.start(), prompt
        finished = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
        never = torch.tensor(list(banned), dtype=torch.long, device=prompt.device)
        produced = []
        for _ in range(max_new):
            logits = _without(model.step(tokens, state), never)
            probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
            tokens = torch.multinomial(probs, 1, generator=generator)[:, 0]
            produced.append(tokens)
            if end is not None:
                finished = finished | (tokens == end)
                if finished.all():
                    break
    return [_until(end, row) for row in torch.stack(produced, dim=1).tolist()]


def _check_prompt(model: Writer, prompt: Tensor, max_new: int) -> None:
    if prompt.ndim != 2 or prompt.numel() == 0:
        raise ValueError(
            f"prompt has shape {tuple(prompt.shape)}; (batch, length) ids are needed, at least <bos>"
        )
    _check_ids(model, prompt=[int(prompt.min()), int(prompt.max())])
    check_positive(max_new=max_new)
    if model.max_len is not None and prompt.shape[1] + max_new > model.max_len:
        raise ValueError(
            f"{prompt.shape[1]} tokens of the prompt and max_new={max_new} do not fit a table of "
            f"max_len={model.max_len}"
        )


def _check_ids(model: Writer, **given: Sequence[int]) -> None:
    size = model.embedding.num_embeddings
    for name, ids in given.items():
        if any(not 0 <= index < size for index in ids):
            raise ValueError(f"{name} holds an id outside a vocabulary of {size} tokens")


# Inside -----------------------------------------------------------------------------------------


def _encoded(sentence: str, vocabulary: Vocabulary) -> list[int]:
    tokens = tokenize(sentence)
    if not tokens:
        raise ValueError(f"sentence {sentence!r} is empty; there is nothing to translate")
    if not any(token in vocabulary for token in tokens):
        raise ValueError(f"no word of {sentence!r} is in the source vocabulary")
    return vocabulary.encode(tokens)


def _check_vocabularies(model: Translator, source: Vocabulary, target: Vocabulary) -> None:
    for name, vocabulary, size in (
        ("source", source, model.source_embedding.num_embeddings),
        ("target", target, model.target_embedding.num_embeddings),
    ):
        if len(vocabulary) != size:
            raise ValueError(
                f"{name}_vocab has {len(vocabulary)} tokens, the model's {name} embedding {size}: "
                "are the vocabularies swapped, or of another model?"
            )


def _without(logits: Tensor, banned: Tensor) -> Tensor:
    """Logits (batch, size) with these ids ruled out, which are on their device already."""
    return logits.index_fill(-1, banned, -torch.inf)


def _until(end: int | None, ids: list[int]) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids
