"""Scores: BLEU for translations, the share of right classes, what a computation costs."""

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


def accuracy(predicted: Tensor, true: Tensor) -> float:
    """Share of (n,) predicted classes that are the true ones.

    Raises:
        ValueError: the shapes differ, or there is nothing to score.
    """
    check_classes(predicted, true)
    return (predicted == true).float().mean().item()


def check_classes(predicted: Tensor, true: Tensor) -> None:
    """Refuse what are not two vectors (n,) of classes, one for each case."""
    if predicted.shape != true.shape or predicted.ndim != 1:
        raise ValueError(
            f"predicted has shape {tuple(predicted.shape)}, true {tuple(true.shape)}; (n,) twice"
        )
    if not len(true):
        raise ValueError("there is nothing to score")


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
