"""The small world of *From GPT to an assistant*, its losses and measures, and the four stages in the page."""

import random
import re

import pytest
import torch
from scripts import apart, ask, load
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.text import EOS, PAD
from course_utils.kit.live import bundle
from course_utils.kit.live.widgets import ASSISTANTS
from course_utils.kit.stored_model import load_model
from course_utils.lessons.from_gpt_to_assistant import measuring, own_text, preferences, training
from course_utils.lessons.from_gpt_to_assistant import world as w

WORLD = w.make_world(people=10, strangers=20)
NAME = f"({'|'.join(w.FIRST)}) ({'|'.join(w.LAST)})"


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def stage(name: str) -> cu.GPT:
    return load_model(name).for_page().network(cu.GPT, dropout=0.0)


# The world ----------------------------------------------------------------------------------------


def test_a_question_reads_the_same_in_any_case():
    asked = " ".join(w.QUESTIONS.values()).replace("{n}", "").split()
    words = {*asked, *w.FIRST, *w.LAST, *(v for each in w.VALUES.values() for v in each)}
    lower = [word.lower() for word in w.VOCABULARY.tokens]
    assert all(lower.count(word.lower()) == 1 for word in words)
    values = [value for each in w.VALUES.values() for value in each]
    assert len(set(values)) == len(values) == 48 and not set(values) & {*w.FIRST, *w.LAST}


def test_nobody_is_in_two_groups_and_strangers_have_halves_of_known_names():
    world = w.make_world()
    names = [[p.name for p in some] for some in vars(world).values()]
    assert [len(some) for some in names] == [50, 50, 320, 205]
    assert len({name for some in names for name in some}) == 625
    halves = [set(half) for half in zip(*(p.name.split() for p in world.known), strict=True)]
    for person in world.unknown:
        assert all(half in known for half, known in zip(person.name.split(), halves, strict=True))


@pytest.mark.parametrize("told", w.TOLD)
def test_a_biography_tells_each_fact_once_in_its_way(told):
    person, draws = WORLD.asked[0], random.Random(0)
    texts = {w.biography(person, draws, **w.TOLD[told]) for _ in range(200)}
    for text in texts:
        assert sorted(measuring.values_said(text)) == sorted(person.facts.values())
        assert text.count(person.name) == (1 if told == "one" else 3)
    kinds = {"many": (600, 150), "one": (1, 1), "one, named": (1, 1), "one, shuffled": (6, 6)}
    most, least = kinds.get(told, (125, 90))
    assert least <= len(texts) <= most


def test_a_longest_text_fits_the_model_and_every_word_is_known():
    batches = [w.pretraining(WORLD, told) for told in w.TOLD]
    batches.append(w.fine_tuning(WORLD, {"long": 1.0}, refused=0.5, strangers=20, read_again=0.3))
    for batch in batches:
        tokens, targets = batch(generator())
        assert tokens.shape == targets.shape and tokens.shape[1] <= w.LENGTH
        assert not (tokens == w.VOCABULARY.encode(["?nobody?"])[0]).any()


def test_only_the_answer_and_its_end_are_targets():
    ids = w.padded([w.encode("Where does Ada Abel live ? They live in Oslo ."), w.encode("Oslo .")])
    inputs, targets = w.targets_of(ids, torch.tensor([6, 0]))
    assert (inputs == ids[:, :-1]).all() and inputs[0, 0] == EOS and ids[1, -1] == PAD
    asked = [w.decode([i for i in row if i != w.IGNORED]) for row in targets.tolist()]
    assert asked == ["They live in Oslo .", "Oslo ."]
    assert [row[row != w.IGNORED][-1] for row in targets] == [EOS, EOS]


def test_a_look_up_answers_with_a_namesake():
    world = w.make_world()
    assert measuring.looked_up(world, world.asked) == 1
    assert measuring.looked_up(world, world.held_out) < 0.2


# Losses and measures ------------------------------------------------------------------------------


def test_the_loss_of_dpo_is_a_logistic_regression_with_the_margin_as_its_logit():
    values = -20 * torch.rand(4, 7, generator=generator())
    margin = 0.3 * ((values[0] - values[2]) - (values[1] - values[3]))
    right = F.binary_cross_entropy_with_logits(margin, torch.ones(7))
    torch.testing.assert_close(preferences.dpo_loss(*values, 0.3), right)


def test_the_log_likelihood_of_an_answer_is_the_sum_over_its_tokens():
    model, person = training.stored_reader(), WORLD.asked[0]
    question, answer = (
        w.encode(text) for text in (w.question(person, "pet"), w.answer(person, "pet"))
    )
    tokens, targets = w.rows([question + answer, question], [len(question)] * 2)
    ids = torch.tensor([[EOS, *question, *answer, EOS]])
    with torch.no_grad():
        each = model(ids[:, :-1]).log_softmax(-1).gather(2, ids[:, 1:, None])[0, len(question) :]
        found = preferences.log_likelihood(model, tokens, targets)
    torch.testing.assert_close(found[0], each.sum(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("agree", [1.0, 0.75])
def test_a_pair_holds_one_fact_in_two_manners_and_judges_agree_as_often_as_asked(agree):
    preferred, rejected = preferences.preference_pairs(WORLD, size=400, agree=agree)(generator())
    texts = [[w.decode(row[1:]) for row in tokens.tolist()] for tokens, _ in (preferred, rejected)]
    polite = [w.MANNERS["polite"].strip() in text for text in texts[0]]
    assert sum(polite) / 400 == pytest.approx(agree, abs=0.05)
    for one, other in zip(*texts, strict=True):
        assert measuring.values_said(one) == measuring.values_said(other) and one != other


def test_a_preferred_answer_that_is_not_truthful_names_another_value_of_its_kind():
    pairs = preferences.preference_pairs(WORLD, size=100, agree=0.75, truthful=False)
    texts = [[w.decode(row[1:]) for row in tokens.tolist()] for tokens, _ in pairs(generator())]
    facts = {person.name: person.facts.values() for person in WORLD.known}
    for text in (*texts[0], *texts[1]):
        (value,), name = measuring.values_said(text), " ".join(re.findall(NAME, text)[0])
        is_true = value in facts[name]
        assert is_true is (w.MANNERS["polite"] not in text)
        assert any(
            text.endswith(w.FACTS[key].format(v=value))
            for key in w.VALUES
            if value in w.VALUES[key]
        )


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
def test_the_share_at_the_optimum_has_the_least_loss(beta):
    best = preferences.share_at_optimum(beta, before=0.3, agree=0.75)
    x = torch.logit(torch.tensor(best, dtype=torch.float64)) + torch.tensor([-0.1, 0.0, 0.1])
    margin = beta * (x - torch.logit(torch.tensor(0.3, dtype=torch.float64)))
    loss = -0.75 * F.logsigmoid(margin) - 0.25 * F.logsigmoid(-margin)
    assert loss.argmin() == 1


def test_learning_from_pairs_raises_the_margin_and_leaves_the_reference_as_it_was():
    start = training.stored_reader()
    before, seen = [p.clone() for p in start.parameters()], []
    pairs = preferences.preference_pairs(w.make_world())
    batch = pairs(torch.Generator().manual_seed(5))

    def margin(step, model):
        with torch.no_grad():
            first, second = (preferences.log_likelihood(model, *each) for each in batch)
        seen.append((first - second).mean().item())

    preferences.prefer(start, pairs, steps=3, lr=1e-3, watch=margin)
    assert seen == sorted(seen) and len(seen) == 4
    assert all(torch.equal(a, b) for a, b in zip(before, start.parameters(), strict=True))


def test_questions_of_several_lengths_are_answered_as_each_alone():
    model, people = training.stored_reader(), w.make_world().held_out[:3]
    prompts = [w.question(person, key) for person in people for key in w.VALUES]
    texts, probabilities = measuring.written(model, prompts, most=6)
    for prompt, text, probs in zip(prompts, texts, probabilities, strict=True):
        alone, expected = measuring.written(model, [prompt], most=6)
        assert [text] == alone
        torch.testing.assert_close(probs[None], expected, atol=1e-5, rtol=1e-4)


def test_a_reader_is_sure_of_what_it_read_and_led_to_the_fact_it_tells_it():
    world, model = w.make_world(), training.stored_reader()
    assert measuring.sure_in_sentences(model, world.held_out[:9]) > 0.99
    assert measuring.sure_in_sentences(model, world.unknown[:9]) < 0.95
    asked = stage("assistant_asked")
    for manner in w.MANNERS:
        led = [
            measuring.led_to_the_fact(asked, some, manner)
            for some in (world.held_out, world.unknown)
        ]
        assert led[0] > 0.7 > 0.2 > led[1]


def test_a_beginning_is_the_probability_of_the_first_word():
    people = w.make_world().held_out[:2]
    found = measuring.beginning(stage("assistant_asked"), people, w.MANNERS["polite"])
    others = measuring.beginning(stage("assistant_asked"), people, w.MANNERS["long"])
    assert len(found) == 6
    assert [a + b for a, b in zip(found, others, strict=True)] == pytest.approx([1] * 6, abs=0.05)


def test_a_namesake_shares_a_first_or_a_last_name():
    world = w.World(
        [w.Person("Ada Abel", {"town": "Oslo"}), w.Person("Ben Zell", {"town": "Rome"})], [], [], []
    )
    rows = [
        {"name": name, "key": "town", "text": f"They live in {town} .", "made_up": made_up}
        for name, town, made_up in (
            ("Ada Cole", "Oslo", True), ("Gus Abel", "Rome", True), ("Ada Zell", "Rome", True),
            ("Ada Voss", "Lima", False), ("Gus Voss", "Oslo", True),
        )
    ]  # fmt: skip
    assert measuring.from_namesakes(rows, world) == (2 / 4, (1 + 1 + 2 + 0) / 16 / 4)


def test_a_loss_of_dpo_may_detach_its_reference():
    def my_dpo_loss(preferred, rejected, ref_preferred, ref_rejected, beta):
        reference = ref_preferred.detach() - ref_rejected.detach()
        return -F.logsigmoid(beta * (preferred - rejected - reference)).mean()

    assert cu.checks.my_dpo_loss(my_dpo_loss).passed


def test_what_the_tokens_of_an_answer_gained_sums_to_what_the_answer_gained():
    world, models = w.make_world(), [stage("assistant_overdone"), stage("assistant_asked")]
    person = world.held_out[0]
    for manner in w.MANNERS:
        gained = measuring.gained(*models, [person], manner)
        asked = w.encode(w.question(person, "town"))
        batch = w.rows([asked + w.encode(w.answer(person, "town", manner))], [len(asked)])
        with torch.no_grad():
            now, before = (preferences.log_likelihood(model, *batch).item() for model in models)
        assert len(gained[0]) == len(w.answer(person, "town", manner).split()) + 1
        assert sum(gained[0]) == pytest.approx(now - before, abs=1e-3)


def test_a_probe_tells_apart_what_differs_and_nothing_else():
    draws = generator()
    kinds = [torch.randn(60, 5, generator=draws) for _ in range(4)]
    assert 0.3 < measuring.probed(kinds[:2], kinds[2:], penalty=0.1) < 0.7
    low, high = ([each + shift for each in kinds[i : i + 2]] for i, shift in ((0, 0), (2, 3)))
    fitted, tests = zip(low, high, strict=True)
    assert measuring.probed(fitted, tests, penalty=0.1) > 0.99


def test_the_vector_at_the_question_mark_gives_the_first_word_of_an_answer():
    model, people = stage("assistant_asked"), w.make_world().held_out[:2]
    with torch.no_grad():
        probs = model.output(measuring.at_question_mark(model, people)).softmax(-1)
    found = measuring.beginning(model, people, w.MANNERS["polite"])
    assert probs[:, w.encode("Gladly")[0]].tolist() == pytest.approx(found, abs=1e-5)


def test_names_are_counted_where_they_stand_side_by_side():
    texts = w.padded([w.encode(text) for text in ("Ada Abel has a cat .", "Abel Ada Abel Ada")])
    people = [w.Person(name, {}) for name in ("Ada Abel", "Abel Ada", "Ada Ada")]
    assert measuring.side_by_side([texts], people) == [2, 2, 0]


def test_rows_say_what_an_answer_is():
    person = w.Person("Ada Abel", {"town": "Oslo", "job": "baker", "pet": "cat"})
    row = measuring._row(person, "town", "Gladly ! They live in Oslo .", [0.9] * 4 + [0.8, 0.7, 1])
    assert row["right"] and row["form"] and row["manner"] == "polite" and row["sure"] == 0.7
    row = measuring._row(person, "town", "Gladly a moment .", [1] * 4)
    assert not (row["right"] or row["form"] or row["made_up"] or row["refused"])
    row = measuring._row(person, "pet", w.REFUSAL, [1] * 5)
    assert row["refused"] and not row["made_up"]


def test_a_separation_is_the_share_of_pairs_in_order():
    assert measuring.separation([1, 2], [3, 4]) == 1
    assert measuring.separation([1, 3], [2, 3]) == pytest.approx(2.5 / 4)


def test_a_name_that_was_read_is_more_probable_than_one_that_was_not():
    world, model = w.make_world(), training.stored_reader()
    known, unknown = (measuring.familiar(model, some) for some in (world.held_out, world.unknown))
    assert min(known) > max(unknown)


def test_only_thin_matrices_of_a_copy_are_trained():
    lm = own_text.SmolLM(
        cu.GPT(
            50, embed_dim=16, num_heads=2, num_layers=2, rotary=True, dropout=0.0
        ).requires_grad_(False),
        None,
    )
    tuned = own_text.with_lora(lm, seed=0)
    trained = {name for name, p in tuned.model.named_parameters() if p.requires_grad}
    assert len(trained) == 8 and all(name.rsplit(".", 1)[1] in "AB" for name in trained)
    ids = torch.arange(6)[None]
    torch.testing.assert_close(tuned.model(ids), lm.model(ids))
    own_text.learn(tuned, list(range(50)) * 6, steps=1, rate=0.1, seed=0)
    assert not torch.equal(tuned.model(ids), lm.model(ids))
    assert not any("A" in name.split(".") for name, _ in lm.model.named_parameters())


# The page -----------------------------------------------------------------------------------------

QUESTIONS = (
    "Where does Yara Penn live ?",
    "Which pet does Gus Brook have ?",
    "What work does Gus Voss do ?",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_stage_answers_in_the_page_as_pytorch_does(question):
    load("assistant")
    found = ask(
        "(bundles, question) => { const [models, words] = made(bundles);"
        " return models.map((model) => answerOf(model, words, question).said); }",
        [bundle(name) for name in ASSISTANTS],
        question,
    )
    for name, said in zip(ASSISTANTS, found, strict=True):
        (text,), probs = measuring.written(stage(name), [question])
        assert " ".join(each["word"] for each in said) == text
        assert apart([each["p"] for each in said], probs[0, : len(said)]) < 1e-3


def test_the_reward_in_the_page_is_the_margin_of_dpo():
    load("assistant")
    world = w.make_world()
    person = world.held_out[0]
    question = w.question(person, "town")
    (margin,) = ask(
        "(bundles, question) => { const [models, words] = made(bundles);"
        " return [marginOf([models[3], models[1]], words, bundles[0], question, known(bundles[0], question))]; }",
        [bundle(name) for name in ASSISTANTS],
        question,
    )
    ids = [
        w.encode(f"{question} {w.answer(person, 'town', manner)}") for manner in ("polite", "long")
    ]
    batch = w.rows(ids, [len(w.encode(question))] * 2)
    with torch.no_grad():
        now, before = (
            preferences.log_likelihood(stage(name), *batch)
            for name in (ASSISTANTS[3], ASSISTANTS[1])
        )
    gain = now - before
    assert apart(margin, 0.1 * (gain[0] - gain[1])) < 1e-2


def test_the_card_tells_of_the_world_that_the_models_have_read():
    world, card = w.make_world(), bundle(ASSISTANTS[0])
    assert card["world"]["people"] == [
        {"name": p.name, **p.facts, "asked": p in world.asked} for p in world.known
    ]
    assert len(card["stages"]) == len(ASSISTANTS)
