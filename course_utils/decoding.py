"""Decoding: sentences from next-token logits, by greedy search, beam search or sampling.

It works with every `Translator` and every `Writer`; the Transformers of `models` decode on a cache. Taught in
*Sequence to sequence*, *Translating* and *GPT*.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from course_utils.arguments import check_positive, refuse_text
from course_utils.data.text import BOS, EOS, PAD, Vocabulary, pad, tokenize
from course_utils.runtime import Module, evaluating

NEVER_NEXT = (PAD, BOS)
"""Ids that no translation has as its next token."""


class Beams(Protocol):
    """State of a model in which `beam_search` can move its beams, a row of the batch each."""

    def repeat(self, times: int) -> None:
        """Replace each row by `times` copies, side by side: a row for each beam."""

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,)."""


State = TypeVar("State")
BeamState = TypeVar("BeamState", bound=Beams)


class Translator(Module, Protocol[State]):
    """A module that encodes a sentence and predicts its translation token by token."""

    source_embedding: nn.Embedding
    target_embedding: nn.Embedding

    def start(self, source: Tensor, source_lens: Tensor) -> State:
        """State before the first token, of ids (batch, source length) and their (batch,) lengths."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens`, (batch,) ids; updates the state."""


class Writer(Module, Protocol[State]):
    """A module that predicts the next token of a text of at most `max_len` tokens, or of any length for None."""

    embedding: nn.Embedding
    max_len: int | None

    def start(self) -> State:
        """State before the first token."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (batch, vocab_size) of the token after `tokens`, (batch,) or (batch, new) ids; updates the state."""


@torch.inference_mode()
def greedy(
    model: Translator, source: Tensor, source_lens: Tensor, *, max_len: int = 50
) -> list[list[int]]:
    """Translations whose every token is the likeliest, until `<eos>` or `max_len` tokens (greedy search).

    Args:
        model: a translator; it is in eval mode meanwhile.
        source: (batch, source length) ids.
        source_lens: (batch,).
        max_len: number of tokens at most, at least 1.

    Returns:
        A list of ids for each sentence, without `<bos>` and `<eos>`.

    Raises:
        ValueError: `max_len` is not positive, or a logit is NaN or infinite.
    """
    check_positive(max_len=max_len)
    with evaluating(model):
        state = model.start(source, source_lens)
        tokens = torch.full((len(source),), BOS, device=source.device)
        finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        never_next = torch.tensor(NEVER_NEXT, device=source.device)
        produced = []
        for _ in range(max_len):
            logits = _without(model.step(tokens, state), never_next)
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
    """Best finished translation of each sentence, where the `beam_size` best prefixes are kept at each step.

    A finished translation of n tokens (with `<eos>`) is ranked by its log-probability divided by
    ((5 + n) / 6)^length_penalty (Wu et al., 2016, "Google's neural machine translation system",
    section 7). If `<eos>` was never among the `beam_size` likeliest continuations, the likeliest unfinished
    translation of `max_len` tokens is ranked, too, so that a model that never ends still gives a result.

    Args:
        model: a translator; it is in eval mode meanwhile.
        source: (batch, source length) ids.
        source_lens: (batch,).
        beam_size: number of prefixes that are kept, at least 1.
        max_len: number of tokens at most, at least 1.
        length_penalty: exponent; 0 ranks by the log-probability alone, which favors short translations.

    Returns:
        A list of ids for each sentence, without `<bos>` and `<eos>`.

    Raises:
        ValueError: `beam_size` or `max_len` is not positive, or a logit is NaN or infinite.
    """
    check_positive(beam_size=beam_size, max_len=max_len)

    def penalty(length: int) -> float:
        return ((5 + length) / 6) ** length_penalty

    batch, device = len(source), source.device
    with evaluating(model):
        state = model.start(source, source_lens)
        state.repeat(beam_size)
        tokens = torch.full((batch * beam_size,), BOS, device=device)
        # At the first step all beams of a sentence are equal, so only the first is extended.
        scores = torch.full((batch, beam_size), -torch.inf, device=device)
        scores[:, 0] = 0.0
        never_next = torch.tensor(NEVER_NEXT, device=device)
        prefixes: list[list[int]] = [[] for _ in range(batch * beam_size)]
        # For each sentence the rank of the best finished translation, and its ids.
        best: list[tuple[float, list[int]]] = [(-torch.inf, []) for _ in range(batch)]
        may_end = torch.zeros(batch, dtype=torch.bool, device=device)
        for length in range(1, max_len + 1):
            log_probs = _without(model.step(tokens, state), never_next).log_softmax(dim=-1)
            vocab_size = log_probs.shape[-1]
            total = scores[:, :, None] + log_probs.view(batch, beam_size, vocab_size)
            # Beams that end here are finished, and compete with the best finished one.
            ends = total[:, :, EOS].clone()
            for row, ranks in enumerate((ends / penalty(length)).tolist()):
                for beam, rank in enumerate(ranks):
                    if rank > best[row][0]:
                        best[row] = (rank, prefixes[row * beam_size + beam])
            # The others go on with the best continuations, whichever beams these come from.
            total[:, :, EOS] = -torch.inf
            scores, picked = total.flatten(1).topk(beam_size, dim=1)
            may_end |= ((ends > -torch.inf) & (ends >= scores[:, -1:])).any(dim=1)
            origin = picked // vocab_size + beam_size * torch.arange(batch, device=device)[:, None]
            rows, tokens = origin.flatten(), (picked % vocab_size).flatten()
            prefixes = [
                [*prefixes[row], token]
                for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)
            ]
            state.reorder(rows)
            # Log-probabilities only fall, so this bounds the rank of every unfinished beam.
            bound = (scores[:, 0] / penalty(max_len)).tolist()
            if all(rank >= limit for (rank, _), limit in zip(best, bound, strict=True)):
                break
    for row, (rank, _) in enumerate(best):
        if not may_end[row] and bound[row] > rank:
            best[row] = bound[row], prefixes[row * beam_size]
    return [ids for _, ids in best]


def translate(
    model: Translator[BeamState],
    sentences: Sequence[str | Sequence[str]],
    source_vocab: Vocabulary,
    target_vocab: Vocabulary,
    *,
    beam_size: int = 1,
    max_len: int = 50,
    batch_size: int = 128,
) -> list[str]:
    """Translations of sentences, as strings of tokens separated by spaces.

    Args:
        model: a translator; it is in eval mode meanwhile.
        sentences: in the source language; a string is tokenized by `data.text.tokenize`, and tokens are taken as they
            are.
        source_vocab, target_vocab: the vocabularies that the model was trained with.
        beam_size: 1 for greedy search, more for beam search.
        max_len: number of tokens of a translation at most.
        batch_size: number of sentences that are translated at a time, of similar lengths.

    Returns:
        One translation for each sentence, in the order of the sentences.

    Raises:
        UserWarning: a sentence is empty or has no known word; its translation is "".
        TypeError: `sentences` is a `str`, not a list of them.
        ValueError: all sentences are so, or the vocabularies do not belong to the model (their sizes differ from
            its embeddings').
    """
    refuse_text("sentences", sentences, "a list of sentences")
    _check_vocabularies(model, source_vocab, target_vocab)
    encoded, wrong = [], []
    for sentence in sentences:
        try:
            encoded.append(_encoded(sentence, source_vocab))
        except ValueError as error:
            encoded.append([])
            wrong.append(str(error))
    order = sorted((i for i, ids in enumerate(encoded) if ids), key=lambda i: len(encoded[i]))
    if wrong and not order:
        raise ValueError(wrong[0])
    if wrong:
        warnings.warn(
            f"{len(wrong)} of {len(encoded)} sentences are not translated, and have ''; the first: {wrong[0]}",
            stacklevel=2,
        )
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
    """Probabilities of the next token, softmax(logits / temperature) over the k best tokens.

    Args:
        logits: (…, vocab_size).
        temperature: below 1 likely tokens become likelier, and at 0 the best has probability 1; above 1 the
            probabilities become more equal, and at infinity all are equal.
        top_k: number of tokens with a probability above 0; all by default. Ties do not add tokens.

    Returns:
        Like `logits`; each row sums to 1. A logit of −∞ has probability 0 at every temperature.

    Raises:
        ValueError: `temperature` is negative or NaN, `top_k` is not positive, or the best logit of a row is
            not finite, as those of a model that has diverged.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature={temperature}; 0 or more is needed")
    if top_k is not None:
        check_positive(top_k=top_k)
    k = 1 if temperature == 0 else min(top_k or logits.shape[-1], logits.shape[-1])
    best, tokens = logits.topk(k, dim=-1)
    _check_best(best[..., 0])
    # The best logit is subtracted first, since a logit divided by a tiny temperature can be infinite. The best
    # then has 0 and what is forbidden −inf, also where PyTorch computes 0 / 0 or inf / inf.
    below = best - best[..., :1]
    scaled = (below / (temperature or 1.0)).masked_fill(below == 0, 0.0)
    scaled = scaled.masked_fill(below == -torch.inf, -torch.inf)
    return torch.zeros_like(logits).scatter(-1, tokens, scaled.softmax(dim=-1))


@torch.inference_mode()
def sample(
    model: Writer,
    prompt: Tensor,
    *,
    max_new: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    banned: Iterable[int] = (),
    end: int | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Sampled continuations of prompts, until `end` or `max_new` tokens.

    Args:
        model: a `GPT` or another `Writer`; it is in eval mode meanwhile.
        prompt: (batch, length) ids of one length.
        max_new: number of new tokens at most.
        temperature, top_k: as in `next_token_probs`.
        banned: ids that are never drawn; for the course's subwords `Subwords.unwritten`.
        end: id of the token that ends a continuation, such as `text.EOS`; none by default.
        generator: of random numbers, on the prompt's device; the global one by default.

    Returns:
        A list of new ids for each prompt, without `end`.

    Raises:
        ValueError: the prompt is empty or holds an id outside the vocabulary, as `banned` or `end` may
            do, all ids are banned, prompt and new tokens do not fit the model's table of positions, an
            argument is out of range, or a logit is NaN or infinite.
    """
    _check_prompt(model, prompt, max_new)
    banned = [int(index) for index in banned]
    _check_ids(model, banned=banned, end=[] if end is None else [end])
    if len(set(banned)) == model.embedding.num_embeddings:
        raise ValueError(
            "banned holds every id of the vocabulary, so that no token is left to draw"
        )
    with evaluating(model):
        state, tokens = model.start(), prompt
        finished = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
        banned_ids = torch.tensor(banned, dtype=torch.long, device=prompt.device)
        produced = []
        for _ in range(max_new):
            logits = model.step(tokens, state).index_fill(-1, banned_ids, -torch.inf)
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


# Helpers ----------------------------------------------------------------------------------------


def _encoded(sentence: str | Sequence[str], vocabulary: Vocabulary) -> list[int]:
    """Ids of a sentence's tokens; raise ValueError where it has none, or none that is known."""
    tokens = tokenize(sentence) if isinstance(sentence, str) else sentence
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
    """Logits (batch, vocab_size) with −inf for banned ids, (n,) on the same device.

    Raises:
        ValueError: the best of the others is NaN or infinite.
    """
    permitted = logits.index_fill(-1, banned, -torch.inf)
    _check_best(permitted.amax(dim=-1))
    return permitted


def _check_best(best: Tensor) -> None:
    """Raise ValueError unless the best logit of each row is finite. (The largest of numbers with a NaN is NaN.)"""
    if best.isfinite().all():
        return
    wrong = best[~best.isfinite()][0].item()
    if wrong == -torch.inf:
        raise ValueError("all logits are −inf, so that no token is left to choose")
    raise ValueError(
        f"a logit is {wrong}, so that no token can be chosen: the model has diverged; look at the losses of its "
        "training, and train it anew with a lower learning rate"
    )


def _until(end: int | None, ids: list[int]) -> list[int]:
    """The ids before the first `end`; all without one."""
    return ids[: ids.index(end)] if end in ids else ids
