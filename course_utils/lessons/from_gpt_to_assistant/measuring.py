"""What is measured on the models of *From GPT to an assistant*: their answers, read word by word."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.text import EOS
from course_utils.lessons.from_gpt_to_assistant import world as w
from course_utils.runtime import evaluating

MOST = 20
"""The most tokens of an answer."""


@torch.no_grad()
def written(
    model: nn.Module,
    prompts: Sequence[str],
    *,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
    most: int = MOST,
) -> tuple[list[str], Tensor]:
    """What a model writes behind each prompt, and the probability of each of its tokens, (prompts, most).

    The prompts stand behind an `<eos>`, and those of one length are continued together.

    Args:
        model: a `GPT`.
        prompts: words separated by spaces.
        temperature: 0 takes the most probable token.
        generator: where draws come from.
        most: the most tokens that it writes.
    """
    ids = [[EOS, *w.encode(prompt)] for prompt in prompts]
    said = torch.empty(len(ids), most, dtype=torch.long)
    probabilities = torch.empty(len(ids), most)
    for length in sorted({*map(len, ids)}):
        rows = [i for i, each in enumerate(ids) if len(each) == length]
        with evaluating(model):
            state, new = model.start(), torch.tensor([ids[i] for i in rows])
            for place in range(most):
                probs = model.step(new, state).softmax(dim=-1)
                if temperature:
                    new = torch.multinomial(probs ** (1 / temperature), 1, generator=generator)
                else:
                    new = probs.argmax(dim=-1, keepdim=True)
                said[rows, place] = new[:, 0]
                probabilities[rows, place] = probs.gather(1, new)[:, 0]
    return [w.decode(row) for row in said.tolist()], probabilities


def questions(people: Sequence[w.Person]) -> list[tuple[w.Person, str]]:
    """Each person with each attribute."""
    return [(person, key) for person in people for key in w.VALUES]


def values_said(text: str) -> list[str]:
    """The values of any attribute among the words of a text."""
    every = {value for values in w.VALUES.values() for value in values}
    return [word for word in text.split() if word in every]


def answers(model: nn.Module, people: Sequence[w.Person], **draws) -> list[dict]:
    """A row for each question about some people: what the model writes, and what of it is so.

    The row's `right` says that the first value in the answer is the true one, `refused` that it says `REFUSAL`,
    `made_up` that it says another value, `manner` how it begins, `polite` that it begins so, `form` whether it is a
    whole sentence of an answer in one of the manners, `sure` the probability of the value.
    """
    asked = questions(people)
    found = []
    for key in w.VALUES:  # prompts of one length
        some = [person for person, each in asked if each == key]
        said, probabilities = written(model, [w.question(person, key) for person in some], **draws)
        for person, text, probs in zip(some, said, probabilities.tolist(), strict=True):
            found.append(_row(person, key, text, probs))
    return found


def _row(person: w.Person, key: str, text: str, probs: list[float]) -> dict:
    words, values = text.split(), values_said(text)
    value = values[0] if values else ""
    manner = next(
        (name for name, begins in w.MANNERS.items() if begins and text.startswith(begins.strip())),
        "short",
    )
    sentence = text.removeprefix(w.MANNERS[manner])
    return {
        "name": person.name,
        "key": key,
        "text": text,
        "words": len(words),
        "right": value == person.facts[key],
        "refused": text == w.REFUSAL,
        "made_up": bool(value) and value != person.facts[key],
        "manner": manner,
        "polite": manner == "polite",
        "form": any(sentence == w.FACTS[key].format(v=v) for v in w.VALUES[key]),
        "sure": probs[words.index(value)] if value else float("nan"),
    }


def share(rows: Sequence[dict], name: str, key: str | None = None) -> float:
    """The mean of a column, for one attribute or for all; of `sure` over the rows that say a value."""
    chosen = [float(row[name]) for row in rows if key in (None, row["key"])]
    chosen = [value for value in chosen if value == value]
    return sum(chosen) / max(len(chosen), 1)


def scores(model: nn.Module, people: Mapping[str, Sequence[w.Person]]) -> dict[str, float]:
    """Of each group of people the means of five columns of `answers`, as "group, column"."""
    rows = {name: answers(model, some) for name, some in people.items()}
    columns = ("right", "refused", "made_up", "sure", "form")
    return {f"{name}, {column}": share(rows[name], column) for name in rows for column in columns}


def looked_up(world: w.World, people: Sequence[w.Person]) -> float:
    """The accuracy of a look-up: the answer to the training question that shares most words with a question.

    Among equally near questions the first one counts.
    """
    known = [
        (set(w.question(person, key).split()), key, person.facts[key])
        for person, key in questions(world.asked)
    ]
    right = 0
    for person, key in questions(people):
        words = set(w.question(person, key).split())
        _, of, value = max(known, key=lambda each: len(each[0] & words))
        right += of == key and value == person.facts[key]
    return right / len(questions(people))


def known_facts(model: nn.Module, world: w.World, told: str) -> float:
    """The share of the facts of all people that a model says rightly in a wording and a context of pretraining."""
    settings, keys = w.TOLD[told], list(w.VALUES)
    right, count = 0, 0
    for i, key in enumerate(keys):
        before = [] if settings["shuffled"] else keys[:i]
        sentences = [w.WORDINGS[k][0] for k in [*before, key]]
        if settings.get("named_once"):
            sentences[1:] = [w.FACTS[k] for k in keys[1 : i + 1]]
        prompts = []
        for person in world.known:
            text = " ".join(
                s.format(n=person.name, v=person.facts[k])
                for s, k in zip(sentences, [*before, key], strict=True)
            )
            prompts.append(text.rsplit(maxsplit=2)[0])
        said, _ = written(model, prompts, most=1)
        right += sum(
            text == person.facts[key] for text, person in zip(said, world.known, strict=True)
        )
        count += len(prompts)
    return right / count


def separation(low: Sequence[float], high: Sequence[float]) -> float:
    """The probability that a number of `high` exceeds one of `low`, ties counted half: the area under the ROC."""
    first, second = torch.tensor(low), torch.tensor(high)
    above = (second[:, None] > first).double() + 0.5 * (second[:, None] == first).double()
    return above.mean().item()


@torch.no_grad()
def beginning(model: nn.Module, people: Sequence[w.Person], said: str) -> list[float]:
    """The probability that an answer begins with the first word of a text, for each question about some people."""
    first, found = w.encode(said)[0], []
    for key in w.VALUES:
        tokens = torch.tensor([[EOS, *w.encode(w.question(person, key))] for person in people])
        with evaluating(model):
            found += model(tokens)[:, -1].softmax(-1)[:, first].tolist()
    return found


@torch.no_grad()
def familiar(model: nn.Module, people: Sequence[w.Person]) -> list[float]:
    """The probability that a model, reading a question, gives to the last name behind the first one: for each person.

    It is the mean over the three questions.
    """
    found = torch.zeros(len(people))
    for key, asked in w.QUESTIONS.items():
        last = asked.split().index("{n}") + 1
        tokens = torch.tensor([[EOS, *w.encode(w.question(person, key))] for person in people])
        with evaluating(model):
            probs = model(tokens[:, : last + 1])[:, -1].softmax(-1)
        found += probs.gather(1, tokens[:, last + 1 : last + 2])[:, 0] / len(w.QUESTIONS)
    return found.tolist()


@torch.no_grad()
def at_question_mark(model: nn.Module, people: Sequence[w.Person]) -> Tensor:
    """The vectors from which a model computes the first word of each answer, (questions, features)."""
    found = []
    for key in w.VALUES:
        tokens = torch.tensor([[EOS, *w.encode(w.question(person, key))] for person in people])
        with evaluating(model):
            found.append(model.features(tokens)[:, -1])
    return torch.cat(found)


def probed(vectors: Sequence[Tensor], tests: Sequence[Tensor], *, penalty: float) -> float:
    """How well a logistic regression tells two kinds of vectors apart: the area under the ROC on other ones.

    Args:
        vectors: those of each kind that it is fitted to, (any number, features); both kinds weigh the same.
        tests: those on which it is tested.
        penalty: weight of the squared coefficients.
    """
    both = torch.cat(list(vectors))
    mean, std = both.mean(0), both.std(0) + 1e-6
    weight = torch.zeros(both.shape[1] + 1, requires_grad=True)

    def logits(some: Tensor) -> Tensor:
        return (some - mean) / std @ weight[:-1] + weight[-1]

    def closure() -> Tensor:
        optimizer.zero_grad()
        first, second = (logits(some) for some in vectors)
        loss = F.softplus(first).mean() + F.softplus(-second).mean()
        loss = loss + penalty * weight[:-1].square().sum()
        loss.backward()
        return loss

    optimizer = torch.optim.LBFGS([weight], max_iter=200, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    with torch.no_grad():
        low, high = (logits(some).tolist() for some in tests)
    return separation(low, high)


def sure_in_sentences(model: nn.Module, people: Sequence[w.Person]) -> float:
    """The mean probability of the word that a model takes behind "Ada Abel lives in", "… works as a" and "… has a"."""
    openings = [
        wordings[0].split(" {v}")[0].format(n=person.name)
        for person in people
        for wordings in w.WORDINGS.values()
    ]
    _, probabilities = written(model, openings, most=1)
    return probabilities.mean().item()


def said_in_sentences(model: nn.Module, people: Sequence[w.Person]) -> dict[tuple[str, str], str]:
    """The word that a model takes behind "Ada Abel lives in", and so on: name and attribute → word."""
    asked = questions(people)
    openings = [w.WORDINGS[key][0].split(" {v}")[0].format(n=person.name) for person, key in asked]
    said, _ = written(model, openings, most=1)
    return {(person.name, key): word for (person, key), word in zip(asked, said, strict=True)}


@torch.no_grad()
def gained(
    model: nn.Module, start: nn.Module, people: Sequence[w.Person], manner: str
) -> list[list[float]]:
    """How much log-probability each token of a true answer has gained, its end included, for each question."""
    found = []
    for person, key in questions(people):
        asked, said = w.encode(w.question(person, key)), w.encode(w.answer(person, key, manner))
        tokens, targets = w.rows([asked + said], [len(asked)])
        kept = targets[0] != w.IGNORED
        now, before = (
            each(tokens)[0].log_softmax(-1)[kept].gather(1, targets[0, kept][:, None])
            for each in (model.eval(), start.eval())
        )
        found.append((now - before)[:, 0].tolist())
    return found


def from_namesakes(rows: Sequence[dict], world: w.World) -> tuple[float, float]:
    """The share of made-up values that are facts of a namesake, and the share that chance would give.

    A namesake is somebody with a biography who has the same first or the same last name. By chance each of the sixteen
    values is named equally often.

    Args:
        rows: as `answers` gives them; those with a wrong value count.
        world: whose people have biographies.
    """
    found, chance, count = 0, 0.0, 0
    for row in rows:
        if not row["made_up"]:
            continue
        names, key = set(row["name"].split()), row["key"]
        values = {each.facts[key] for each in world.known if names & set(each.name.split())}
        found += values_said(row["text"])[0] in values
        chance += len(values) / len(w.VALUES[key])
        count += 1
    return found / max(count, 1), chance / max(count, 1)


def led_to_the_fact(model: nn.Module, people: Sequence[w.Person], manner: str) -> float:
    """The accuracy of the next word, given a question and a true answer in a manner up to the fact."""
    asked = questions(people)
    prompts = [
        f"{w.question(person, key)} {w.answer(person, key, manner)}".rsplit(maxsplit=2)[0]
        for person, key in asked
    ]
    said, _ = written(model, prompts, most=1)
    right = sum(text == person.facts[key] for text, (person, key) in zip(said, asked, strict=True))
    return right / len(asked)


def side_by_side(batches: Iterable[Tensor], people: Sequence[w.Person]) -> list[int]:
    """How often the first and the last name of each person stand side by side in batches of texts, (texts, length)."""
    pairs = Counter(pair for texts in batches for row in texts.tolist() for pair in pairwise(row))
    return [pairs[*w.encode(person.name)] for person in people]
