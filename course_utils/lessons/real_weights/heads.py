"""What SmolLM2's heads do, for *What heads learn*: who copies, who looks at the token before, who is the sink.

Each experiment is a function of the model, for `smollm.known`, and returns what JSON can hold; `runs` of this lesson
records what they give.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.prose import load_english, story_text
from course_utils.interventions import Run, intervene, record_activations
from course_utils.lessons.real_weights.experiments import (
    COUNTRIES,
    NEWS,
    Heads,
    induction_scores,
    others,
    token_before,
)
from course_utils.lessons.real_weights.lens import TOKENS
from course_utils.lessons.real_weights.smollm import SmolLM
from course_utils.recording import record_attention

TEN = [
    [18, 6], [17, 4], [17, 3], [17, 5], [23, 2], [18, 7], [23, 7], [20, 6], [24, 4], [22, 7],
]  # fmt: skip
"""The ten heads of `induction_heads`, best first."""

PREVIOUS = [[16, 0], [11, 1], [19, 3]]
"""The three heads with the highest weight on the token before."""

EARLY = [[0, 5], [1, 3]]
"""Two heads of the first layers: of all before layer 17 only these cost nearly as much as 16.0 (`each_alone`)."""


def twice(
    block: int, *, texts: int = 4, tokens: str = "all", seed: int = 9, gap: int = 0
) -> Tensor:
    """Ids of <|endoftext|>, a block of random tokens, other random tokens, and the same block again.

    Args:
        block: tokens of the block.
        texts: how many.
        tokens: a kind of `TOKENS`.
        seed: of the draw.
        gap: how many other tokens stand between the block and its repetition.
    """
    draws = torch.Generator().manual_seed(seed)
    ids = torch.randint(*TOKENS[tokens], (texts, block + gap), generator=draws)
    return torch.cat([torch.zeros(texts, 1, dtype=torch.long), ids, ids[:, :block]], dim=1)


def read(lm: SmolLM, texts: Tensor, rows: int = 4) -> tuple[Tensor, Tensor]:
    """Of each token but the first: its loss, and whether it was the likeliest, both (texts, n − 1)."""
    losses, right = [], []
    for some in texts.split(rows):
        logits = lm.model(some[:, :-1])
        losses.append(F.cross_entropy(logits.mT, some[:, 1:], reduction="none"))
        right.append((logits.argmax(-1) == some[:, 1:]).float())
    return torch.cat(losses), torch.cat(right)


@contextlib.contextmanager
def ablated(lm: SmolLM, heads: Heads, run: Run | None = None) -> Iterator[None]:
    """A block in which these heads give zeros or, with a `run`, their mean in it."""
    with intervene(lm.model) as acts:
        for layer, head in heads:
            acts.ablate(layers=layer, heads=head, by="mean" if run else "zero", run=run)
        yield


# Who copies ---------------------------------------------------------------------------------------


def induction_heads(lm: SmolLM) -> list[list[float]]:
    """[layer, head, induction score, score of the token before] of the heads whose induction score is above 0.3.

    Ranked; means over two draws of eight texts.
    """
    score, before = (
        (torch.tensor(f(lm, 0)) + torch.tensor(f(lm, 1))) / 2
        for f in (induction_scores, token_before)
    )
    ranked = [divmod(i, 9) for i in score.flatten().argsort(descending=True).tolist()]
    return [[*at, score[at].item(), before[at].item()] for at in ranked if score[at] > 0.3]


def best_heads(
    lm: SmolLM, *, tokens: str, block: int, seed: int, count: int = 12
) -> list[list[float]]:
    """[layer, head, induction score] of the best heads in four other texts, ranked."""
    texts = twice(block, texts=4, tokens=tokens, seed=seed)
    i = torch.arange(block + 1, 2 * block)
    with record_attention(lm.model) as maps:
        lm.model(texts[:, :-1])
    score = torch.stack(
        [maps[f"layers.{k}.attention"][:, :, i, i - block + 1].mean((0, 2)) for k in range(30)]
    )
    ranked = [divmod(n, 9) for n in score.flatten().argsort(descending=True).tolist()]
    return [[*at, score[at].item()] for at in ranked[:count]]


def ten_again(lm: SmolLM, tokens: str, block: int, seed: int) -> dict[str, float]:
    """Of other texts: how many of `TEN` are among the ten best heads again, and of the first eight among the eight.

    "above" counts the heads with a score above 0.3, and "18.6" is that head's.
    """
    ranked = best_heads(lm, tokens=tokens, block=block, seed=seed, count=270)
    heads = [[layer, head] for layer, head, _ in ranked]
    return {
        "of ten": sum(head in heads[:10] for head in TEN),
        "of eight": sum(head in heads[:8] for head in TEN[:8]),
        "above": sum(score > 0.3 for *_, score in ranked),
        "18.6": ranked[heads.index([18, 6])][2],
    }


def copying(lm: SmolLM, texts: Tensor, block: int) -> list[float]:
    """[loss of a block, loss of its repetition, share of this that is copied, least and most over the texts].

    The first token of both blocks doesn't count, since nothing announces it.
    """
    losses, right = read(lm, texts)
    share = right[:, block + 1 :].mean(1)
    means = losses[:, 1:block], losses[:, block + 1 :], share
    return [*(each.mean().item() for each in means), share.min().item(), share.max().item()]


def copying_without(
    lm: SmolLM,
    heads: Heads,
    *,
    texts: int = 4,
    block: int = 40,
    tokens: str = "all",
    seed: int = 9,
    run: Run | None = None,
) -> list[float]:
    """`copying` in some texts without some heads; with a `run`, their mean there takes their place."""
    with ablated(lm, heads, run):
        return copying(lm, twice(block, texts=texts, tokens=tokens, seed=seed), block)


def size_of_heads(lm: SmolLM) -> list[list[float]]:
    """(layers, heads): the root mean square length of what each head adds to the stream, in the second block."""
    with record_activations(lm.model) as run:
        lm.model(twice(40, texts=4)[:, :-1])
    sizes = []
    for layer in range(30):
        heads = run[f"layers.{layer}.attention.heads"][:, :, 41:]
        out = lm.model.layers[layer].attention.out_proj.weight.unflatten(1, (9, -1))
        added = torch.einsum("bhnd,ehd->bhne", heads, out)
        sizes.append(added.square().sum(-1).mean((0, 2)).sqrt().tolist())
    return sizes


def as_heavy(sizes: list[list[float]], heads: Heads, seed: int) -> Heads:
    """For each head another of the layers around it, one of the three that are nearest in size; none of the ten."""
    draws, taken = torch.Generator().manual_seed(seed), [tuple(head) for head in TEN]
    for layer, head in heads:
        near = [(k, h) for k in range(layer - 1, layer + 2) for h in range(9)]
        near = sorted(
            (at for at in near if at not in taken),
            key=lambda at: abs(sizes[at[0]][at[1]] - sizes[layer][head]),
        )
        taken.append(near[int(torch.randint(3, (), generator=draws))])
    return [list(head) for head in taken[len(TEN) :]]


def each_alone(lm: SmolLM, seed: int = 9, layers: int = 17) -> list[list[list[float]]]:
    """(layers, heads, 2): the loss of the repetition and the share copied without one head, in two texts."""
    rows = []
    for layer in range(layers):
        each = [copying_without(lm, [[layer, head]], texts=2, seed=seed) for head in range(9)]
        rows.append([[gave[1], gave[2]] for gave in each])
    return rows


def ablations(
    lm: SmolLM, seed: int = 9, block: int = 40, tokens: str = "all", draws: int = 4
) -> dict[str, list[float]]:
    """What `copying_without` gives for the ten, for each of them, and for as many others, drawn several times.

    "same layers": other heads of the same layers, none of the 24 best; "as heavy": `as_heavy`. "by the mean" has a
    mean over other texts of the kind in place of zeros.
    """
    best = [
        [layer, head] for layer, head, _ in best_heads(lm, tokens="all", block=40, seed=0, count=24)
    ]
    best, sizes = TEN + [head for head in best if head not in TEN], size_of_heads(lm)
    out: dict[str, Heads] = {"nothing": [], "ten": TEN, "eight": TEN[:8], "four": TEN[:4]}
    out |= {f"{layer}.{head}": [[layer, head]] for layer, head in [*TEN, *PREVIOUS, *EARLY]}
    for draw in range(draws):
        out[f"same layers, {draw}"] = others(best, draw, 10)
        out[f"as heavy, {draw}"] = as_heavy(sizes, TEN, draw)
    asked = {"block": block, "tokens": tokens, "seed": seed}
    gave = {name: copying_without(lm, heads, **asked) for name, heads in out.items()}
    with record_activations(lm.model) as run:
        lm.model(twice(block, tokens=tokens, seed=seed + 100)[:, :-1])
    for name in ("ten", "16.0", "0.5", "1.3"):
        gave[f"{name}, by the mean"] = copying_without(lm, out[name], run=run, **asked)
    return gave


def look_back(lm: SmolLM) -> dict[str, list[float]]:
    """The same if a head may not look some tokens back in the first block, "layer.head, how far"."""
    gave, texts = {}, twice(40)
    for layer, head, back in (
        [16, 0, 1],
        [16, 0, 2],
        [11, 1, 1],
        [19, 3, 1],
        [16, 2, 1],
        [16, 7, 1],
    ):
        with intervene(lm.model) as acts:
            for place in range(back, 41):
                acts.forbid(layers=layer, heads=head, queries=place, keys=place - back)
            gave[f"{layer}.{head}, {back}"] = copying(lm, texts, 40)
    return gave


def noted_before(lm: SmolLM, texts: int = 16, seed: int = 9) -> dict[str, list[float]]:
    """Whether it is head 16.0 that notes at a token Y of the first block which token X stood before it.

    A text ends in X, which stood before Y in its first block; in another text W stands there instead. Into the run of
    this one goes, at one position, what one head gave in the run of the first. "layer.head at position": which share
    of the difference in Y's logit comes back: mean of the texts, and their quartiles.
    """
    drawn = twice(40, texts=texts + 1, seed=seed)[:, :62]
    with_x, with_w = drawn[:-1], drawn[:-1].clone()
    with_w[:, 21] = drawn[1:, 21]  # X is at 21, and Y at 22
    wanted = with_x[:, 22:23]

    def logit(ids: Tensor) -> Tensor:
        return lm.model(ids)[:, -1].gather(1, wanted)[:, 0]

    with record_activations(lm.model) as run:
        top = logit(with_x)
    bottom = logit(with_w)
    gave = {"difference": spread(top - bottom)}
    tried = [*([16, head, "Y"] for head in range(9)), *([*at, "Y"] for at in PREVIOUS[1:])]
    tried += [[16, 0, "X"], [16, 0, "Y + 1"], [16, 0, "the end"]]
    places = {"X": 21, "Y": 22, "Y + 1": 23, "the end": 61}
    for layer, head, place in tried:
        with intervene(lm.model) as acts:
            acts.patch(None, run, layers=layer, heads=head, positions=places[place])
            back = (logit(with_w) - bottom) / (top - bottom).mean()
        gave[f"{layer}.{head} at {place}"] = spread(back)
    return gave


def spread(values: Tensor) -> list[float]:
    """The mean of some values, their first quartile and their third."""
    return [values.mean().item(), *values.quantile(torch.tensor([0.25, 0.75])).tolist()]


# How far it copies --------------------------------------------------------------------------------


def copied_over_gap(lm: SmolLM, tokens: str = "all") -> dict[str, list[float]]:
    """Random tokens between a block of 40 and its repetition → the share copied: mean, least and most of the texts."""
    gave = {}
    for gap in (0, 40, 160, 320, 640):
        texts = twice(40, tokens=tokens, gap=gap)
        share = read(lm, texts, rows=1)[1][:, -39:].mean(1)
        gave[str(gap)] = [share.mean().item(), share.min().item(), share.max().item()]
    return gave


# The sink -----------------------------------------------------------------------------------------

FORBIDDEN: dict[str, list[tuple[int, range]]] = {
    "nothing": [],
    "first, all layers": [(0, range(30))],
    "second, all layers": [(1, range(30))],
    "fifth, all layers": [(4, range(30))],
    "sixth, all layers": [(5, range(30))],
    "first and second, all layers": [(0, range(30)), (1, range(30))],
    "first four, all layers": [(key, range(30)) for key in range(4)],
    "four others, all layers": [(key, range(30)) for key in range(5, 9)],
    "first, layers 0–9": [(0, range(10))],
    "first, layers 10–19": [(0, range(10, 20))],
    "first, layers 20–29": [(0, range(20, 30))],
    "second, layers 10–19": [(1, range(10, 20))],
    "fifth, layers 10–19": [(4, range(10, 20))],
    "four others, layers 10–19": [(key, range(10, 20)) for key in range(5, 9)],
    "first everywhere, second in layers 10–19": [(0, range(30)), (1, range(10, 20))],
    "first everywhere, fifth in layers 10–19": [(0, range(30)), (4, range(10, 20))],
}
"""Name → the positions that no later token may look at, each with the layers."""


@contextlib.contextmanager
def unseen(lm: SmolLM, keys: Sequence[tuple[int, range]], length: int) -> Iterator[None]:
    """A block in which no later token may look at some positions in some layers; they still see themselves."""
    with intervene(lm.model) as acts:
        for key, layers in keys:
            acts.forbid(queries=range(key + 1, length), keys=key, layers=layers)
        yield


def prose(lm: SmolLM, text: str) -> Tensor:
    """Rows of 128 tokens of our story, of `NEWS`, or of the course's sentences; they begin anywhere."""
    words = {"story": story_text, "news": lambda: NEWS, "sentences": _sentences}[text]()
    ids = lm.encode(words)[0]
    return ids[: len(ids) // 128 * 128].view(-1, 128)[:5]


def _sentences() -> str:
    english = load_english()
    return " ".join(english[:: len(english) // 100])


def sinks(lm: SmolLM, text: str = "story") -> dict[str, dict | list]:
    """What a text loses if nobody may look at some tokens (`FORBIDDEN`), and who is looked at then.

    "losses": from position 16 on, [mean, least and most rise over the rows]; "without the first token": of the same
    tokens, with the first cut off. "weights": on positions 0 to 3, mean over layers, heads, and queries from 16 on;
    "by_layer": on position 0, nothing forbidden; "norms": of the stream after layer 11, positions 0 and 1, and the
    median of the others.
    """
    rows = prose(lm, text)
    each = {}
    for name, keys in FORBIDDEN.items():
        with unseen(lm, keys, rows.shape[1] - 1):
            each[name] = read(lm, rows)[0][:, 15:].mean(1)
    each["without the first token"] = read(lm, rows[:, 1:])[0][:, 14:].mean(1)
    rises = {name: loss - each["nothing"] for name, loss in each.items()}
    gave: dict[str, dict | list] = {"losses": {}, "weights": {}, "norms": {}}
    for name, rise in rises.items():
        gave["losses"][name] = [each[name].mean().item(), rise.min().item(), rise.max().item()]
    for name in ("nothing", "first, all layers"):
        weights, gave["norms"][name] = looked_at(lm, rows, FORBIDDEN[name])
        gave["weights"][name] = weights.mean(0)[:4].tolist()
        gave.setdefault("by_layer", weights[:, 0].tolist())
    return gave


def hidden_words(lm: SmolLM, text: str = "story", seed: int = 0) -> dict[str, list[float]]:
    """The sink against as much weight elsewhere: what nobody may look at in layers 10 to 19 → [its weight, rises].

    Weight: its mean share, over these layers, heads, and queries from 16 on, before it is forbidden. The rises are
    those of the loss from position 16 on: mean, least and most over the rows. "n others": so many random positions.
    """
    rows, layers, draws = prose(lm, text), range(10, 20), torch.Generator().manual_seed(seed)
    places = torch.randperm(rows.shape[1] - 3, generator=draws) + 1
    hidden = {"first": [0]}
    hidden |= {f"{n} others": places[:n].tolist() for n in (4, 20, 40, 60, 80)}
    with record_attention(lm.model) as maps:
        lm.model(rows[:, :-1])
    weights = torch.stack([maps[f"layers.{k}.attention"] for k in layers]).mean((0, 2))
    weights = weights.tril(-1)[:, 16:].mean((0, 1))  # everybody still sees itself
    whole, gave = read(lm, rows)[0][:, 15:].mean(1), {}
    for name, keys in hidden.items():
        with unseen(lm, [(key, layers) for key in keys], rows.shape[1] - 1):
            rise = read(lm, rows)[0][:, 15:].mean(1) - whole
        summary = rise.mean().item(), rise.min().item(), rise.max().item()
        gave[name] = [weights[keys].sum().item(), *summary]
    return gave


def looked_at(
    lm: SmolLM, rows: Tensor, keys: Sequence[tuple[int, range]]
) -> tuple[Tensor, list[float]]:
    """(layers, n) mean weights that queries from 16 on put on each position, and the norms of `sinks`."""
    model, weights, norms = lm.model, [], []
    for row in rows:
        hidden = unseen(lm, keys, rows.shape[1] - 1)
        with hidden, record_activations(model) as run, record_attention(model) as maps:
            model(row[None, :-1])
        weights.append(torch.stack([w[0, :, 16:].mean((0, 1)) for w in maps.values()]))
        norms.append(run["layers.11.residual"][0].norm(dim=-1))
    size = torch.stack(norms)
    return torch.stack(weights).mean(0), [
        size[:, 0].mean().item(),
        size[:, 1].mean().item(),
        size[:, 2:].median().item(),
    ]


# A word in front ----------------------------------------------------------------------------------


ASKED = COUNTRIES["well known"] | COUNTRIES["another city is larger"]
"""Thirty countries of one token, and how their capitals begin."""


def capitals_behind(lm: SmolLM, front: str, hidden: Sequence[int] = ()) -> dict[str, float]:
    """Right answers after “The capital of X is” with a text in front, for 30 countries, and the mean P(capital).

    No later token may look at the `hidden` positions, in no layer.
    """
    ids = lm.encode(*(f"{front}The capital of {country} is" for country in ASKED))
    with unseen(lm, [(key, range(30)) for key in hidden], ids.shape[1]):
        right, probs = named(lm, ids)
    return {"right": right.sum().item(), "of": len(ids), "mean_p": probs.mean().item()}


def named(lm: SmolLM, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each of the 30 capitals is the likeliest token after these ids, and its probability."""
    wanted = torch.cat([lm.encode(" " + capital)[:, 0] for capital in ASKED.values()])
    probs = lm.model(ids)[:, -1].softmax(-1)
    return probs.argmax(-1) == wanted, probs.gather(1, wanted[:, None])[:, 0]


def capitals_behind_any(lm: SmolLM, tokens: str = "frequent", count: int = 30) -> list[list]:
    """[text, right answers] with one random token in front, for so many tokens; the fewest right answers first."""
    sentences = lm.encode(*(f"The capital of {country} is" for country in ASKED))
    gave = []
    for first in torch.randint(
        *TOKENS[tokens], (count,), generator=torch.Generator().manual_seed(0)
    ):
        ids = torch.cat([first.expand(len(sentences), 1), sentences], dim=1)
        gave.append([lm.decode([first]), named(lm, ids)[0].sum().item()])
    return sorted(gave, key=lambda row: row[1])
