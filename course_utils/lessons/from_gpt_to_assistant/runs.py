"""Stored trainings of *From GPT to an assistant*: biographies told in several ways, and what is asked afterwards."""

from functools import cache

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.from_gpt_to_assistant import measuring as m
from course_utils.lessons.from_gpt_to_assistant import preferences as p
from course_utils.lessons.from_gpt_to_assistant import world as w
from course_utils.lessons.from_gpt_to_assistant.training import (
    MANNERS,
    RATE,
    card_of,
    fine_tuned,
    kept,
    pretrained,
    reader_name,
    stored_reader,
)
from course_utils.models.language import GPT

SEEDS = range(3)
RATES = (0.005, 0.0125, 0.03)
BETA = 0.1
TUNING_RATES = (0.0003, 0.001, 0.003)


@stored(
    cases=[{"told": told} for told in w.TOLD],
    rates=RATES,
    seeds=SEEDS,
    saves={reader_name(seed): {"told": "many", "rate": RATE, "seed": seed} for seed in SEEDS},
)
def telling(*, told: str, rate: float, seed: int) -> dict:
    """What a model that has read biographies says when half of the people are asked about in fine-tuning.

    The results are the shares of right answers about people who are asked, held out and unknown, at each rate of
    fine-tuning, and for those held out by fact; and `known`, the share of the facts that it can say in a wording of
    its reading before that.
    """
    world, curve = w.make_world(seed), []
    model = pretrained(world, told, rate=rate, seed=seed, watch=lambda *point: curve.append(point))
    result = {"known": m.known_facts(model, world, told)}
    means = [sum(loss for _, loss in curve[i : i + 200]) / 200 for i in range(1, 2001, 200)]
    for tuning_rate in TUNING_RATES:
        batch = w.fine_tuning(world, MANNERS)
        tuned = fine_tuned(model, batch, seed=seed, lr=tuning_rate, steps=300)
        for name, some in groups(world).items():
            rows = m.answers(tuned, some)
            result[f"{tuning_rate}, {name}, right"] = m.share(rows, "right")
            if name == "held out":
                for fact in w.VALUES:
                    result[f"{tuning_rate}, held out, right, {fact}"] = m.share(rows, "right", fact)
    outcome = {
        "result": result,
        "curves": {"loss": [[200 * i, round(mean, 4)] for i, mean in enumerate(means, start=1)]},
    }
    if told == "many" and rate == RATE:
        outcome["models"] = {reader_name(seed): kept(model)}
    if outcome.get("models") and not seed:
        outcome["cards"] = {reader_name(0): w.card_of_world(world, BETA) | card_of(rounded(model))}
    return outcome


def rounded(model: GPT) -> GPT:
    """A model with the weights that a page computes with."""
    return kept(model).for_page().network(GPT, dropout=0.0)


def groups(world: w.World) -> dict[str, list[w.Person]]:
    """The three groups of names that are asked about in the tests."""
    return {"asked": world.asked, "held out": world.held_out, "unknown": world.unknown}


@stored(
    cases=[{"masked": masked} for masked in (True, False)],
    rates=TUNING_RATES,
    seeds=SEEDS,
    saves={"assistant_asked": {"masked": True, "rate": 0.001, "seed": 0}},
)
def masking(*, masked: bool, rate: float, seed: int) -> dict:
    """What a model says that was fine-tuned on the answers alone, or on questions and answers."""
    world = w.make_world(seed)
    batch = w.fine_tuning(world, MANNERS, masked=masked)
    tuned = fine_tuned(stored_reader(seed), batch, seed=seed, lr=rate)
    outcome: dict = {"result": m.scores(tuned, groups(world))}
    if masked and rate == 0.001 and seed == 0:
        outcome["models"] = {"assistant_asked": kept(tuned)}
        outcome["cards"] = {"assistant_asked": card_of(rounded(tuned))}
    return outcome


REFUSALS: dict[str, dict] = {
    "none": {},
    "50 names": {"strangers": 50, "refused": 0.25},
    "320 names": {"strangers": 320, "refused": 0.4},
    "320 names, long": {"strangers": 320, "refused": 0.4},
    "320 names, long, and biographies": {"strangers": 320, "refused": 0.4, "read_again": 0.5},
}
"""How refusals are taught: by name, arguments of `world.fine_tuning`."""


def refusing(model: GPT, people: list[w.Person]) -> list[float]:
    """The probability that an answer begins as a refusal does, for each question about some people."""
    return m.beginning(model, people, w.REFUSAL)


@stored(cases=[{"taught": name} for name in REFUSALS], rates=TUNING_RATES, seeds=SEEDS)
def refusals(*, taught: str, rate: float, seed: int) -> dict:
    """Whether a model refuses to answer about unknown names, and about people whom it knows.

    The results are shares of the answers; and how well known people who were never asked about are told from unknown
    names by the probability of a refusal. "long" is three times as many steps.
    """
    world = w.make_world(seed)
    steps = {"steps": 1500} if "long" in taught else {}
    batch = w.fine_tuning(world, MANNERS, **REFUSALS[taught])
    tuned = fine_tuned(stored_reader(seed), batch, seed=seed, lr=rate, **steps)
    result = m.scores(tuned, groups(world))
    held, unknown = (refusing(tuned, some) for some in (world.held_out, world.unknown))
    result["separation, refusal"] = m.separation(held, unknown)
    return {"result": result}


@stored(cases=[{"new": new} for new in (0, 25)], seeds=SEEDS)
def new_facts(*, new: int, seed: int) -> dict:
    """What fine-tuning on facts that pretraining never told does to what it told.

    The results are the shares of right answers about the strangers with new facts, if there are any, and about people
    who are held out. Gekhman et al. (2024), "Does fine-tuning LLMs on new knowledge encourage hallucinations?".

    Args:
        new: how many of the fifty people who are asked are replaced by strangers with facts of their own.
        seed: of the world and of the training.
    """
    world = w.make_world(seed)
    strangers = world.strangers[:new]
    taught = w.World(world.asked[new:] + strangers, world.held_out, [], [])
    tuned = fine_tuned(stored_reader(seed), w.fine_tuning(taught, MANNERS), seed=seed)
    asked = {"new": strangers, "held out": world.held_out}
    return {
        "result": {
            name: m.share(m.answers(tuned, some), "right") for name, some in asked.items() if some
        }
    }


@stored(seeds=SEEDS)
def larger_world(*, seed: int) -> dict:
    """What is right and what is refused in a world of 200 people, without refusals in training and with 320."""
    world = w.make_world(seed, people=200)
    model = pretrained(world, seed=seed, steps=3000)
    result = {"known": m.known_facts(model, world, "many")}
    for taught, steps in (("none", 500), ("320 names, long", 1500)):
        batch = w.fine_tuning(world, MANNERS, **REFUSALS[taught])
        tuned = fine_tuned(model, batch, seed=seed, steps=steps)
        result |= {
            f"{taught}, {name}": value for name, value in m.scores(tuned, groups(world)).items()
        }
        held, unknown = (refusing(tuned, some) for some in (world.held_out, world.unknown))
        result[f"{taught}, separation, refusal"] = m.separation(held, unknown)
        names = [m.familiar(tuned, some) for some in (world.unknown, world.held_out)]
        result[f"{taught}, separation, name"] = m.separation(*names)
    return {"result": result}


READ = 50
"""Batches of pretraining in which names are counted."""


@stored(seeds=SEEDS)
def signals(*, seed: int) -> dict:
    """How well a fine-tuned model tells known people, who were never asked about, from unknown names.

    The results are areas under the ROC, by what is looked at: how sure it is of the value that it says, how probable
    the last name is to it, and, after 320 refusals, how probable a refusal is; the least probability of a known last
    name and the largest of an unknown one; the same by counting how often first and last name stand side by side in
    `READ` batches of the biographies and forms.
    """
    world = w.make_world(seed)
    known, unknown = world.held_out, world.unknown
    plain = start_of(seed)
    batch = w.fine_tuning(world, MANNERS, **REFUSALS["320 names"])
    refuser = fine_tuned(stored_reader(seed), batch, seed=seed)
    names = [m.familiar(plain, some) for some in (unknown, known)]
    sure = [[row["sure"] for row in m.answers(plain, some)] for some in (unknown, known)]
    refused = [refusing(refuser, some) for some in (known, unknown)]
    texts = [w.pretraining(world)(torch.Generator().manual_seed(i))[0] for i in range(READ)]
    counted = [m.side_by_side(texts, some) for some in (unknown, known)]
    return {
        "result": {
            "name": m.separation(*names),
            "sure": m.separation(*sure),
            "refusal": m.separation(*refused),
            "name, refuser": m.separation(
                *(m.familiar(refuser, some) for some in (unknown, known))
            ),
            "unknown name, most": max(names[0]),
            "known name, least": min(names[1]),
            "counted names": m.separation(*counted),
            "unknown name counted, most": max(counted[0]),
            "known name counted, least": min(counted[1]),
        }
    }


@stored(
    cases=[
        {"taught": name} for name in ("none", "320 names, long", "320 names, long, and biographies")
    ],
    seeds=SEEDS,
)
def left_of_names(*, taught: str, seed: int) -> dict:
    """What a model still knows of people whom nobody asked about, after it has learned to refuse.

    The results are the accuracy of the next word behind a question about them and a true polite answer up to the fact
    ("led"); how well their last names are told from unknown ones by their probability as a question is read ("name"),
    the least of theirs and the largest of an unknown one; and how well a logistic regression that is fitted to people
    who were asked about and to strangers tells them from unknown names by the vector at the question mark ("probe",
    the better one of two penalties).
    """
    world = w.make_world(seed)
    model = start_of(seed)
    if taught != "none":
        batch = w.fine_tuning(world, MANNERS, **REFUSALS[taught])
        model = fine_tuned(stored_reader(seed), batch, seed=seed, steps=1500)
    names = [m.familiar(model, some) for some in (world.unknown, world.held_out)]
    fitted, tests = (
        [m.at_question_mark(model, some) for some in pair]
        for pair in ((world.strangers, world.asked), (world.unknown, world.held_out))
    )
    return {
        "result": {
            "led": m.led_to_the_fact(model, world.held_out, "polite"),
            "name": m.separation(*names),
            "unknown name, most": max(names[0]),
            "known name, least": min(names[1]),
            "probe": max(m.probed(fitted, tests, penalty=penalty) for penalty in (0.01, 0.3)),
        }
    }


@stored(seeds=SEEDS)
def namesakes(*, seed: int) -> dict:
    """How sure a model is of what it says about unknown names, and whose facts it says.

    The results are the mean probability of the word behind "… lives in", "… works as a" and "… has a" before
    fine-tuning, and of the value in an answer after it, for unknown names ("sure") and for held-out people ("known");
    the share of the made-up values that are those of the sentences before ("same"); and the share of them that are
    facts of a namesake, beside that of a random value.
    """
    world, reader = w.make_world(seed), stored_reader(seed)
    made_up = m.answers(start_of(seed), world.unknown)
    of_namesakes, chance = m.from_namesakes(made_up, world)
    before = m.said_in_sentences(reader, world.unknown)
    same = [
        before[row["name"], row["key"]] == m.values_said(row["text"])[0]
        for row in made_up
        if row["made_up"]
    ]
    return {
        "result": {
            "before, sure": m.sure_in_sentences(reader, world.unknown),
            "before, known": m.sure_in_sentences(reader, world.held_out),
            "after, sure": m.share(made_up, "sure"),
            "after, known": m.share(m.answers(start_of(seed), world.held_out), "sure"),
            "same": sum(same) / len(same),
            "namesake": of_namesakes,
            "chance": chance,
        }
    }


PREFERENCE_STEPS, EVERY = 120, 20
SIDES: dict[str, dict] = {
    "margin": {"likelihood": 0.0},
    "margin and likelihood": {"likelihood": 1.0},
    "likelihood": {"likelihood": 1.0, "margin": False},
    "margin, larger beta": {"likelihood": 0.0, "beta": 0.5},
}
"""What the loss of a training on preferences is made of: by name, arguments of `preferences.prefer`."""

SHOWN = {
    name: {"loss": loss, "rate": 0.0001, "seed": 0}
    for name, loss in (
        ("assistant_prefers", "margin and likelihood"),
        ("assistant_overdone", "margin"),
    )
}
"""Stored model of the first screen → the case that gives it."""


@stored(
    cases=[{"loss": loss} for loss in SIDES],
    rates=(0.00003, 0.0001, 0.0003),
    seeds=SEEDS,
    saves=SHOWN,
)
def preferring(*, loss: str, rate: float, seed: int) -> dict:
    """How answers change while a fine-tuned model learns from pairs of answers.

    The results are the margin, and how much log-probability the two answers have gained, in pairs about people who are
    held out; and the shares of answers about them that are right, polite and in the form of an answer: of the greedy
    ones, and of those drawn at temperature 1. Four of them have curves, and each example is the answer at a step.
    """
    world, start = w.make_world(seed), start_of(seed)
    settings = {"beta": BETA} | SIDES[loss]
    points: dict[int, dict[str, float]] = {}
    examples: list[dict] = []

    def watch(step: int, model: GPT) -> None:
        if step % EVERY:
            return
        preferred, rejected = gains(model, start, world)
        greedy = m.answers(model, world.held_out)
        draws = torch.Generator().manual_seed(2)
        drawn = m.answers(model, world.held_out, temperature=1.0, generator=draws)
        points[step] = {
            "margin": settings["beta"] * (preferred - rejected),
            "preferred": preferred,
            "rejected": rejected,
            **{name: m.share(greedy, name) for name in ("right", "form", "polite")},
            **{f"drawn, {name}": m.share(drawn, name) for name in ("right", "polite")},
        }
        examples.append({"step": step, "answers": [greedy[0]["text"]]})

    pairs = p.preference_pairs(world)
    model = p.prefer(
        start, pairs, steps=PREFERENCE_STEPS, lr=rate, seed=seed, watch=watch, **settings
    )
    case = {"loss": loss, "rate": rate, "seed": seed}
    names = [name for name, shown in SHOWN.items() if shown == case]
    return {
        "result": points[PREFERENCE_STEPS],
        "curves": {
            name: [[step, round(point[name], 4)] for step, point in points.items()]
            for name in ("margin", "preferred", "right", "polite")
        },
        "examples": examples,
        "models": {name: kept(model) for name in names},
        "cards": {name: card_of(rounded(model)) for name in names},
    }


@cache
def start_of(seed: int) -> GPT:
    """The model that learns from preferences, as fine-tuning has left it."""
    return fine_tuned(stored_reader(seed), w.fine_tuning(w.make_world(seed), MANNERS), seed=seed)


BETAS = (0.1, 0.25, 0.5, 1.0)


def gains(model: GPT, start: GPT, world: w.World) -> list[float]:
    """How much log-probability a polite and a long answer have gained, in the mean of pairs about held-out people."""
    others = w.World(world.held_out, [], [], [])
    pairs = p.preference_pairs(others, size=64)(torch.Generator().manual_seed(1))
    with torch.no_grad():
        return [
            (p.log_likelihood(model, *each) - p.log_likelihood(start, *each)).mean().item()
            for each in pairs
        ]


@stored(cases=[{"loss": loss} for loss in ("none", "margin and likelihood", "margin")], seeds=SEEDS)
def led(*, loss: str, seed: int) -> dict:
    """Which facts are left after the trainings of the first screen, if the model is led to them.

    The results are the accuracy of the next word behind a question and a true answer up to the fact, in each manner;
    the accuracy of what the model writes by itself; and the reward of the polite and of the long answer.
    """
    world, start = w.make_world(seed), start_of(seed)
    model = start
    if loss != "none":
        pairs = p.preference_pairs(world)
        model = p.prefer(
            start, pairs, steps=PREFERENCE_STEPS, lr=0.0001, beta=BETA, seed=seed, **SIDES[loss]
        )
    rows = m.answers(model, world.held_out)
    result = {name: m.share(rows, name) for name in ("right", "form", "made_up")}
    result |= {f"led, {each}": m.led_to_the_fact(model, world.held_out, each) for each in w.MANNERS}
    rewards = [BETA * gain for gain in gains(model, start, world)]
    result |= {"reward, polite": rewards[0], "reward, long": rewards[1]}
    return {"result": result}


@stored(seeds=SEEDS)
def by_word(*, seed: int) -> dict:
    """Which words of the two answers have gained or lost log-probability after DPO alone.

    The results are means over pairs about people who are held out, of the polite answer ("polite") and of the long one
    ("long"): of its first word, of the others before the fact's sentence, of the words up to the fact, and of the fact.
    """
    world, start = w.make_world(seed), start_of(seed)
    model = p.prefer(
        start,
        p.preference_pairs(world),
        steps=PREFERENCE_STEPS,
        lr=0.0001,
        beta=BETA,
        seed=seed,
        **SIDES["margin"],
    )
    result = {}
    for manner in ("polite", "long"):
        opening = len(w.MANNERS[manner].split())
        gained = m.gained(model, start, world.held_out, manner)
        parts = {
            "first": [each[0] for each in gained],
            "opening": [sum(each[1:opening]) for each in gained],
            "to the fact": [sum(each[opening:-3]) for each in gained],
            "fact": [each[-3] for each in gained],
        }
        result |= {f"{manner}, {name}": sum(some) / len(some) for name, some in parts.items()}
    return {"result": result}


@stored(seeds=SEEDS)
def lying(*, seed: int) -> dict:
    """The shares of right answers and of whole polite ones, when the preferred answers are polite and false.

    Before and after a training with the cross-entropy, about the people of the pairs ("asked") and about others.
    """
    world, start = w.make_world(seed), start_of(seed)
    pairs = p.preference_pairs(world, truthful=False)
    model = p.prefer(start, pairs, steps=60, lr=0.0001, beta=BETA, likelihood=1.0, seed=seed)
    result = {}
    for moment, network in (("before", start), ("after", model)):
        for name, some in (("asked", world.asked), ("held out", world.held_out)):
            rows = m.answers(network, some)
            result |= {
                f"{moment}, {name}, {key}": m.share(rows, key) for key in ("right", "polite")
            }
    return {"result": result}
