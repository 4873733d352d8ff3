"""Scores: BLEU for translations, alignment error rate for maps, confusion of classes.

Taught in *Bahdanau attention: learning to align*, *Self-attention* and *Vision transformers*.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_utils.arguments import refuse_text
from course_utils.cache import record_attention
from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, collate
from course_utils.runtime import evaluating

Links = frozenset[tuple[int, int]]

PRODUCTS = {
    "MmBackward": 1, "BmmBackward": 1, "AddmmBackward": 1, "BaddbmmBackward": 1, "MvBackward": 1,
    "ConvolutionBackward": 1, "ScaledDotProduct": 2,
}  # fmt: skip
"""Matrix products in a node of autograd's graph, by the beginning of its name."""


def bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str] | str], *, max_order: int = 4
) -> float:
    """Corpus BLEU between 0 and 1 of tokenized text, by sacrebleu without its own tokenizer.

    Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation".

    Args:
        hypotheses: translations, tokens separated by spaces.
        references: for each hypothesis one reference, or several.
        max_order: longest n-gram counted.

    Raises:
        TypeError: `hypotheses` or `references` is a `str`, not a list of them.
        ValueError: numbers differ, nothing to score, or a hypothesis without a reference.
    """
    from sacrebleu.metrics import BLEU

    refuse_text("hypotheses", hypotheses, "a list of translations")
    refuse_text("references", references, "a list of references")
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses, {len(references)} references; one each")
    if not hypotheses:
        raise ValueError("hypotheses is empty; there is nothing to score")
    grouped = [[given] if isinstance(given, str) else list(given) for given in references]
    if not all(grouped):
        raise ValueError("a hypothesis has no reference; each needs at least one")
    most = max(map(len, grouped))
    columns: Any = [[refs[i] if i < len(refs) else None for refs in grouped] for i in range(most)]
    metric = BLEU(tokenize="none", max_ngram_order=max_order, smooth_method="none", force=True)
    return metric.corpus_score(list(hypotheses), columns).score / 100


def links_of(weights: Tensor) -> Links:
    """The source position that each target token looks at most: (target, source) weights → links."""
    return frozenset((int(source), target) for target, source in enumerate(weights.argmax(dim=-1)))


def alignment_error_rate(found: Sequence[Links], gold: Sequence[Links]) -> float:
    """1 − 2 |found ∩ gold| / (|found| + |gold|), over all sentences; every gold link is sure.

    Och and Ney (2003), "A systematic comparison of various statistical alignment models", section
    5.1, with sure links alone.

    Raises:
        ValueError: numbers of sentences differ, or there are no links at all.
    """
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} sentences found, {len(gold)} gold; the same is needed")
    size = sum(map(len, found)) + sum(map(len, gold))
    if size == 0:
        raise ValueError("there are no links; nothing can be scored")
    hits = sum(len(a & b) for a, b in zip(found, gold, strict=True))
    return 1 - 2 * hits / size


def perplexity(loss: float) -> float:
    """exp of the mean loss per token in nats."""
    return math.exp(loss)


@torch.no_grad()
def predict_classes(model: nn.Module, batches) -> tuple[Tensor, Tensor]:
    """Predicted and true classes, each (n,), of all batches; the model runs in eval mode.

    Args:
        model: images (batch, channels, height, width) → logits (batch, classes).
        batches: an `ImageLoader` with `shuffle=False`, for instance.
    """
    device = next(model.parameters()).device
    with evaluating(model):
        pairs = [
            (model(batch.images.to(device)).argmax(-1).cpu(), batch.labels) for batch in batches
        ]
    predicted, true = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    return predicted, true


def accuracy(predicted: Tensor, true: Tensor) -> float:
    """Share of (n,) predicted classes that are the true ones.

    Raises:
        ValueError: the shapes differ, or there is nothing to score.
    """
    _check_classes(predicted, true)
    return (predicted == true).float().mean().item()


def confusion_matrix(predicted: Tensor, true: Tensor, num_classes: int) -> Tensor:
    """How often each true class (row) was taken for each class (column): counts, int64.

    Raises:
        ValueError: the shapes differ, there is nothing to score, or a class lies out of range.
    """
    _check_classes(predicted, true)
    for name, classes in (("predicted", predicted), ("true", true)):
        if classes.min() < 0 or classes.max() >= num_classes:
            raise ValueError(f"{name} has a class outside 0 … {num_classes - 1}")
    cells = true * num_classes + predicted
    return torch.bincount(cells, minlength=num_classes**2).view(num_classes, num_classes)


def _check_classes(predicted: Tensor, true: Tensor) -> None:
    if predicted.shape != true.shape or predicted.ndim != 1:
        raise ValueError(
            f"predicted has shape {tuple(predicted.shape)}, true {tuple(true.shape)}; (n,) twice"
        )
    if not len(true):
        raise ValueError("there is nothing to score")


# Alignments read off attention --------------------------------------------------------------------


@torch.no_grad()
def word_maps(
    model: nn.Module,
    pairs: Sequence[Pair],
    source_vocab: Vocabulary,
    target_vocab: Vocabulary,
    *,
    batch_size: int = 128,
) -> list[Tensor]:
    """For each pair a map (target words, source words) of weights, in eval mode, on the CPU.

    The decoder is given the words of the target one after the other. The row of `<eos>` is left out.
    So is the column of `<eos>`, which is no word: what remains of a row is normalized again.

    Raises:
        ValueError: `model` has not exactly one attention module.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].source))
    result: list[Tensor] = [torch.empty(0)] * len(pairs)
    with evaluating(model):
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            batch = collate(
                [
                    (source_vocab.encode(pairs[row].source), target_vocab.encode(pairs[row].target))
                    for row in rows
                ]
            ).to(device)
            with record_attention(model) as maps:
                model(batch.source, batch.source_lens, batch.target_in)
            if len(maps) != 1:
                raise ValueError(f"{type(model).__name__} has {len(maps)} attention modules, not 1")
            (weights,) = maps.values()
            for row, whole in zip(rows, weights.cpu(), strict=True):
                words = whole[: len(pairs[row].target), : len(pairs[row].source)]
                result[row] = words / words.sum(dim=1, keepdim=True)
    return result


def links_both_ways(weights: Tensor) -> Links:
    """Links (source, target) of a map (target, source), so that no word is left without one.

    Each target word is linked to the source word it looks at most. Each source word that none of them
    chose is linked to the target word that looks at it most.
    """
    links = {(int(source), target) for target, source in enumerate(weights.argmax(dim=1))}
    chosen = {source for source, _ in links}
    for source, target in enumerate(weights.argmax(dim=0).tolist()):
        if source not in chosen:
            links.add((source, target))
    return frozenset(links)


def multiply_adds(function: Callable[..., object], *inputs: object) -> int:
    """Multiplications, each with its addition, in the matrix products of `function(*inputs)`.

    PyTorch's counter takes the fused attention of a CPU for nothing; here attention is written out
    while it counts, so that n queries and n keys of size d cost 2n²d, however many heads there are.

    Args:
        function: a module or anything else that is called; no gradients are computed.
        inputs: what it is called with; on the device "meta" nothing is computed and all is counted.
    """
    with (
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
        torch.no_grad(),
    ):
        function(*inputs)
    return counter.get_total_flops() // 2


def waiting_products(output: Tensor) -> int:
    """Matrix products that wait for each other: how many lie on the longest way from an input to `output`.

    This is read off the graph that autograd keeps, so an input or a weight has to require gradients.
    However many processors there are, these products can only be computed one after the other. A
    convolution is one product; PyTorch's fused attention is two (scores, mixing).

    Raises:
        ValueError: `output` was computed without gradients.
    """
    if output.grad_fn is None:
        raise ValueError("output has no graph; compute it from tensors that require gradients")
    longest: dict[Any, int] = {None: 0}
    todo: list[Any] = [output.grad_fn]
    while todo:
        node = todo[-1]
        parents = [parent for parent, _ in node.next_functions]
        missing = [parent for parent in parents if parent not in longest]
        if missing:
            todo += missing
            continue
        own = next((count for name, count in PRODUCTS.items() if node.name().startswith(name)), 0)
        longest[node] = own + max((longest[parent] for parent in parents), default=0)
        todo.pop()
    return longest[output.grad_fn]
