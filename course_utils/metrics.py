"""Metrics: BLEU of translations, accuracy of classes, and the multiplications of a computation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_utils.arguments import refuse_text


def bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str] | str], *, max_order: int = 4
) -> float:
    """Corpus BLEU between 0 and 1 of tokenized text, by sacrebleu without its own tokenizer.

    It is the geometric mean of the precisions of 1-grams to 4-grams, times a penalty for short translations, so it is 0
    where no 4-gram of any translation is in its reference. A right sentence of three tokens has no 4-gram at all, and
    alone scores 0; give `max_order` for such sentences, or score many together.

    Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation".

    Args:
        hypotheses: translations, tokens separated by spaces.
        references: for each hypothesis one reference, or several.
        max_order: length of the longest n-grams that are counted.

    Raises:
        TypeError: `hypotheses` or `references` is a `str`, not a list of them.
        ValueError: the two differ in number, are empty, or a hypothesis has no reference.
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
    longest = max(map(len, grouped))
    columns: Any = [
        [refs[i] if i < len(refs) else None for refs in grouped] for i in range(longest)
    ]
    metric = BLEU(tokenize="none", max_ngram_order=max_order, smooth_method="none", force=True)
    score = metric.corpus_score(list(hypotheses), columns).score / 100
    return min(score, 1.0)  # rounding may take it above 1


def accuracy(predicted: Tensor, true: Tensor) -> float:
    """Share of predicted classes that are the true ones, from 0 to 1.

    Args:
        predicted, true: (n,) classes.

    Raises:
        ValueError: the shapes differ, or there is nothing to score.
    """
    check_classes(predicted, true)
    return (predicted == true).float().mean().item()


def check_classes(predicted: Tensor, true: Tensor) -> None:
    """Raise ValueError unless these are two vectors (n,) of classes, and not empty."""
    if predicted.shape != true.shape or predicted.ndim != 1:
        raise ValueError(
            f"predicted has shape {tuple(predicted.shape)}, true {tuple(true.shape)}; (n,) twice"
        )
    if not len(true):
        raise ValueError("there is nothing to score")


def multiply_adds(function: Callable[..., object], *inputs: object) -> int:
    """Number of multiply–add operations in the matrix products of `function(*inputs)`.

    PyTorch's counter does not count the fused attention of a CPU, so attention uses the plain kernel while it
    counts. Then n queries and n keys of size d take 2n²d, whatever the number of heads.

    Args:
        function: a module or another callable; it runs without gradients.
        inputs: its arguments; on the device "meta" all is counted and nothing computed.
    """
    with (
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
        torch.no_grad(),
    ):
        function(*inputs)
    return counter.get_total_flops() // 2
