"""The engine of checks: reports, hints, stubs, endless loops, answers on paper, and how a check gets its name."""

import linecache
import math
import re
import signal
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import pytest
import torch
from browsing import CONTRAST, html_page
from playwright.sync_api import expect as see

import course_utils as cu
from course_utils.kit import candidate as candidate_module
from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_equal, expect_shape
from course_utils.kit.on_paper import on_paper
from course_utils.kit.registry import Registry, named_checks
from course_utils.pooling import leave_one_out


def _check(name: str, **options) -> Check:
    """A new check that goes by a name, as the registry gives it one."""
    check = Check(**options)
    check.name = name
    return check


FIVE = _check("five")


@FIVE.must("it can be called", hint="write a function")
def can_be_called(candidate):
    candidate()


@FIVE.must("it gives 5", hint="count your fingers")
def gives_5(candidate):
    expect(candidate() == 5, f"it gives {candidate()}")


def _cell(source: str, filename: str = "a cell"):
    """The function `mine` that a notebook's cell defines; its lines are known, as in Jupyter."""
    namespace = {"torch": torch}
    exec(compile(source, filename, "exec"), namespace)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return namespace["mine"]


def five_solution():
    return 5


@pytest.mark.parametrize(
    ("candidate", "report"),
    [
        (lambda: 5, "five: your code passes all 2 tests.\n  ✓ it can be called\n  ✓ it gives 5"),
        (five_solution, "five: the course's solution passes all 2 tests."),
        (lambda: 4, "five: 1 of 2 tests pass.\n  ✓ it can be called\n  ✗ it gives 5\n"
                    "    it gives 4\n    Hint: count your fingers"),
        (3, "five: 0 of 2 tests pass.\n  ✗ it can be called\n    got an int, expected a function\n"
            "    Hint: write a function\n  · it gives 5 (not tested yet)"),
        (lambda: ..., "five: not done yet. Fill in the cell above and run it, then this one.\n"
                      "It will test:\n  · it can be called\n  · it gives 5"),
        (leave_one_out, "five: this is the course's own; write yours in the cell above, and hand that in.\n"
                        "It will test:\n  · it can be called\n  · it gives 5"),
    ],
)  # fmt: skip
def test_reports_in_words(candidate, report):
    assert repr(FIVE(candidate)) == report


def test_what_the_course_solution_passes_is_folded_and_not_green_as_if_it_were_mine(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "0")
    check = Check()
    check.must("it gives 5", hint="Count.")(
        lambda candidate: expect(candidate() == 5, "it doesn't")
    )
    mine, ours = (check(it)._repr_mimebundle_()["text/html"] for it in (lambda: 5, five_solution))
    assert '<div class="cu-report right' in mine
    assert (
        ours.startswith('<details class="cu-report ours')
        and "right" not in ours.split("</style>")[1]
    )
    assert ">The course's solution, for comparison</summary>" in ours


def test_the_hints_of_a_property_are_the_paragraphs_of_its_docstring():
    check = Check()

    @check.must("it gives 5")
    def gives_5(candidate):
        """Count your
        fingers.

        Leave out the thumbs of the other hand.
        """

    hints = check.properties[0].hints
    assert hints == ("Count your fingers.", "Leave out the thumbs of the other hand.")
    with pytest.raises(ValueError, match="'it gives 6' has no hint; write it as"):
        check.must("it gives 6")(lambda candidate: None)
    with pytest.raises(ValueError, match="has no properties"):
        Check()(lambda: 5)


def _alone(count: int) -> Check:
    """A check of as many answers that stand alone: each is its place."""
    check = _check("answers", judge_all=True)
    for place in range(count):
        check.must(f"({place})", hint="count")(
            lambda candidate, place=place: expect(candidate()[place] == place, "it is not")
        )
    return check


def test_answers_that_stand_alone_are_all_judged_and_count_for_a_point_each():
    report = _alone(3)(lambda: [7, 1, 7])
    assert repr(report) == (
        "answers: 1 of 3 answers are right. The hint is for the first wrong one.\n"
        "  ✗ (0)\n    it is not\n    Hint: count\n  ✓ (1)\n"
        "  ✗ (2)\n    it is not"
    )
    assert [report.holds(place) for place in range(3)] == [False, True, False]
    assert report.points == 1 and _alone(3)(lambda: [0, 1, 2]).passed


def test_an_endless_loop_after_a_first_miss_ends_the_check_and_not_the_caller(monkeypatch):
    monkeypatch.setattr(candidate_module, "TIME_LIMIT", 0.3)
    calls = iter([[7, 1], [7, 1], None])

    def mine():
        while (given := next(calls, None)) is None:
            pass
        return given

    assert _alone(4)(mine).results == (False, True, False, None)


def test_a_mark_is_the_report_without_a_word_and_the_same_object_is_judged_once(monkeypatch, capfd):
    def chatty():
        print("so far so good")
        warnings.warn("mind the gap", stacklevel=1)
        calls.append(1)
        return 7

    for name in ("save_answer", "record_pass"):
        monkeypatch.setattr(f"course_utils.kit.check.{name}", lambda *_, **__: pytest.fail("saved"))
    calls, hint = [], FIVE.hint()
    with warnings.catch_warnings(record=True) as caught:
        report, count = FIVE.mark(chatty), len(calls)
        assert FIVE.mark(chatty) is report and len(calls) == count
    assert not caught and capfd.readouterr() == ("", "")
    assert report.points == 1 and report.reason == "it gives 7" and FIVE.hint() == hint
    assert FIVE.mark(lambda: 5).points == 2 and FIVE.mark(lambda: ...).points == 0
    assert PAPER.mark(lambda: [9, 0.5]).passed


PAPER = on_paper(
    {"a": (9, "the square", "three times three?"), "b": (0.5, "the half", "of which number?")},
)


@pytest.mark.parametrize(
    ("answers", "results", "reason"),
    [
        ([9, 0.49], (True, True), ""),
        ([Fraction(18, 2), Fraction(1, 2)], (True, True), ""),
        ((9, torch.tensor(0.5)), (True, True), ""),
        (torch.tensor([9, 0.5]), (True, True), ""),
        ([math.nan, 0.5], (False, True), "your answer to (a) is nan"),
        (
            ["9", 0.5],
            (False, True),
            "got '9', expected a number; write 0.5 or 1 / 2, without quotes",
        ),
        ([9, ...], (True, False), "(b) has no answer yet"),
        ([..., ...], (), ""),
        ([9], (False, False), "got a list of 1, expected 2 answers, for a to b"),
        ("90", (False, False), "got a str, expected a list of 2 answers, for a to b"),
    ],
)
def test_answers_on_paper_are_numbers_in_a_list_an_array_or_a_tensor(answers, results, reason):
    report = PAPER(lambda: answers)
    assert (report.results, report.reason) == (results, reason)
    assert report.done == bool(results)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("return torch.ones(3).sums()", "Print its type"),
        ("return torhc.ones(3)", "spelled"),
        ("return [1.0, 1.0, 1.0]", "should the function return"),
    ],
)
def test_a_slip_gets_a_general_hint_before_the_subject_s_unless_the_test_has_one(body, hint):
    def has_three(candidate):
        try:
            expect_shape(candidate(), (3,))
        except Exception as error:
            error.hint = own
            raise

    check, mine = Check(), _cell(f"def mine():\n    {body}")
    check.must("there are three", hint="How many are there?")(has_three)
    own = ""
    assert hint in check(mine).hint and check(mine).hints[1:] == ("How many are there?",)
    own = "Is it a tensor of three?"
    assert check(mine).hints == (own, "How many are there?")


@pytest.mark.parametrize(
    "cell",
    ["mine = None", "mine = ...", "def mine(): ...", "def mine(): pass", "def mine(): return ...",
     "def mine():\n    'What it does.'\n    ...", "def mine():\n    answer = ...\n    return answer",
     "def mine(): raise NotImplementedError('a task for you')"],
)  # fmt: skip
def test_a_stub_is_not_done_yet(cell):
    assert not FIVE(_cell(cell)).done


@pytest.mark.parametrize("body", ["5 + torch.ones(())", "print(end='')", "...\n    five = 5"])
def test_a_forgotten_return_is_no_stub(body):
    report = FIVE(_cell(f"def mine():\n    {body}"))
    assert report.done and report.failed_at == 0
    assert report.reason == "the function returned None: a `return` is missing or not reached"
    assert "`return`" in report.hint


def test_what_pytorch_does_not_implement_is_no_stub():
    report = FIVE(_cell("def mine():\n    return torch.tensor([1, 2]).softmax(-1)"))
    assert report.done and "for 'Long'" in report.reason
    assert FIVE(torch.nn.Module()).done


LINE = "ZeroDivisionError: division by zero\nin line 2 of your cell: return 1 / 0"
PART_OF = "def part(x):\n    return 1 / x\n\ndef mine():\n    return part(0)"
MADE = "class Made:\n    def __init__(self):\n        1 / 0\nmine = Made"


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (PART_OF, "ZeroDivisionError: division by zero\nin line 2 of your cell: return 1 / x"),
        (MADE, "ZeroDivisionError: division by zero\nin line 3 of your cell: 1 / 0"),
        ("def mine():\n    assert 1 == 2, 'no'", "AssertionError: no\nin line 2 of your cell: assert"),
        ("def mine():\n    return 1 / 0", LINE),
        ("@torch.no_grad()\ndef mine():\n    return 1 / 0", LINE.replace("2", "3")),
        ("def mine():\n    raise ValueError(200 * 'word ')", "ValueError: word word"),
    ],
)  # fmt: skip
def test_an_exception_comes_with_the_learner_s_own_line(cell, reason):
    report = FIVE(_cell(cell))
    assert report.reason.startswith(reason) and report.reason.splitlines()[1] in repr(report)
    assert all(len(line) <= 240 for line in report.reason.splitlines())


def test_only_lines_of_the_learner_are_shown_and_one_without_source_by_its_number():
    for no_line_was_run in (_cell("def mine(x):\n    return 5"), math.sqrt):
        assert FIVE(no_line_was_run).reason.startswith("TypeError")
        assert "in line" not in FIVE(no_line_was_run).reason
    namespace = {}
    exec(compile("def mine():\n    return 1 / 0", "gone", "exec"), namespace)
    assert FIVE(namespace["mine"]).reason.endswith("\nin line 2 of your cell")


def test_an_exception_in_the_test_is_said_to_come_from_the_result():
    total = Check()
    total.must("it is 1", hint="what did you return?")(lambda candidate: candidate().sum())
    report = total(_cell("def mine():\n    return [1]"))
    assert report.reason.startswith("the result cannot be used: AttributeError: 'list' object has")
    late = _cell("class Late:\n    def sum(self):\n        return 1 / 0\nmine = lambda: Late()")
    assert total(late).reason.endswith("in line 3 of your cell: return 1 / 0")


def test_each_property_starts_from_the_same_random_numbers_and_leaves_the_callers_alone(
    monkeypatch,
):
    """The generators of GPUs belong to the caller, also where there is no GPU to show it."""
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: pytest.fail("reseeded"))
    drawn, before = [], torch.get_rng_state()
    assert FIVE(lambda: drawn.append(float(torch.rand(()))) or 5).passed
    assert drawn[0] == drawn[1]  # one call for the first property, one or two for the second
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_random_numbers_of_a_gpu_are_kept():
    torch.cuda.manual_seed(7)
    before = torch.cuda.get_rng_state()
    assert not FIVE(lambda: torch.rand(1, device="cuda")).passed
    assert torch.equal(torch.cuda.get_rng_state(), before)


@pytest.mark.parametrize(
    ("borrowed", "name"),
    [
        (lambda x: x.softmax(-1), "softmax"),
        (lambda x: torch.nn.Softmax(-1)(x), "softmax"),
        (lambda x: leave_one_out(x, x, width=1.0), "leave_one_out"),
    ],
)
def test_what_a_task_forbids_is_refused_by_name_however_it_is_called(borrowed, name):
    check = Check(forbids=["softmax", "leave_one_out"])
    check.must("it runs", hint="Does it?")(lambda candidate: candidate(torch.ones(3)))
    assert check(torch.exp).passed
    assert check(borrowed).reason.startswith(f"it calls {name}")


def test_what_a_task_forbids_is_refused_in_a_class_that_inherits_it():
    check = Check(forbids=["MultiHeadAttention.__init__"])
    check.must("it can be made", hint="Can it?")(lambda candidate: candidate(8, 2))

    class Borrowed(cu.MultiHeadAttention):
        pass

    class Own:
        def __init__(self, embed_dim, num_heads):
            self.sizes = embed_dim, num_heads

    assert check(Own).passed
    assert check(Borrowed).reason.startswith("it calls MultiHeadAttention.__init__")


def test_a_lesson_asks_in_a_line_for_unchanged_inputs_and_for_gradients():
    check = Check()
    check.must_keep_inputs(lambda: [torch.ones(3)], "Is it in place?")
    check.must_pass_gradients(lambda x: 2 * x, lambda: {"x": torch.ones(3)}, "Is it detached?")
    assert check(lambda x: x + x).passed
    assert check(lambda x: x.mul_(2)).hint == "Is it in place?"
    assert check(lambda x: 2 * x.detach()).reason == "no gradient reaches the x"


# Names ------------------------------------------------------------------------------------------


def test_a_check_has_the_name_of_its_variable_and_the_chapter_of_its_file():
    """Its stub, its saved answers and the calls in its messages are found by them."""
    lesson = types.ModuleType("course_utils.lessons.a_chapter.checks")
    lesson.my_part, lesson.on_paper, lesson.SIZE = Check(), PAPER, 3
    assert named_checks("a_chapter", lesson) == {"my_part": lesson.my_part, "on_paper": PAPER}
    assert (lesson.my_part.name, lesson.my_part.exercise) == ("my_part", "a_chapter/my_part")
    assert PAPER.exercise == "a_chapter/on_paper"
    exercise = {name: getattr(cu.checks, name).exercise for name in dir(cu.checks)}
    assert exercise["loo_residuals"] == "kernel_regression/loo_residuals"
    assert [path.partition("/")[2] for path in exercise.values()] == list(exercise)


def test_a_check_outside_of_a_lesson_saves_nothing(monkeypatch):
    for name in ("save_answer", "record_pass"):
        monkeypatch.setattr(f"course_utils.kit.check.{name}", lambda *_, **__: pytest.fail("saved"))
    assert FIVE(lambda: 5).passed and not FIVE.exercise


@pytest.mark.parametrize(
    ("collection", "name", "said"),
    [
        (cu.checks, "sofmax", r"cu\.checks has no 'sofmax'; did you mean .*softmax"),
        (cu.explore, "kernel_widht", r"cu\.explore has no 'kernel_widht'; did you mean kernel_w"),
        (cu.checks, "xyz", r"no 'xyz'; it has .*average_weights.*without_head"),
    ],
)
def test_an_unknown_name_suggests_close_ones(collection, name, said):
    with pytest.raises(AttributeError, match=said):
        getattr(collection, name)


def test_no_two_lessons_offer_one_name():
    assert dir(cu.checks) and dir(cu.explore)  # raises if two lessons share a name
    twice = Registry("cu.checks", "checks", lambda _, module: {"softmax": module})
    with pytest.raises(ValueError, match="defines 'softmax'; so does another lesson"):
        dir(twice)


# Hints, endless loops, and whose function it is ---------------------------------------------------


@pytest.fixture
def stepwise():
    """A check with hints in steps; it is new for each test, since it counts them."""
    check = _check("five")
    check.must("it is a number", hint="What do you return?")(
        lambda f: expect(isinstance(f(), int), "no number")
    )
    steps = ("What is 2 + 3?", "Count on from 3.", "After 3 come 4 and …")
    check.must("it gives 5", hint=steps)(lambda f: expect_equal(f(), 5, "the sum"))
    return check


def test_a_forgotten_return_moves_the_hints_on(stepwise):
    stepwise(lambda: "five")
    answers = iter([5])
    report = stepwise(lambda: next(answers, print()))
    assert report.failed_at == 1 and "return" in report.hint
    assert "it gives 5" in stepwise.hint()


def test_hints_come_step_by_step_for_what_did_not_hold(stepwise):
    assert repr(stepwise.hint()) == "five: it is a number\n  Hint: What do you return?"
    report = stepwise(lambda: 4)
    assert report.hint == "What is 2 + 3?"
    assert repr(report).endswith(
        "    Hint 1 of 3: What is 2 + 3?\n"
        "    (For the next hint, run this in a new cell: cu.checks.five.hint())"
    )
    two = "five: it gives 5\n  Hint 1 of 3: What is 2 + 3?\n  Hint 2 of 3: Count on from 3."
    assert repr(stepwise.hint()) == two
    stepwise(lambda: 6)
    for _ in range(2):  # all can be read again
        assert repr(stepwise.hint()) == f"{two}\n  Hint 3 of 3: After 3 come 4 and …"
        stepwise(lambda: 7)


def test_hints_begin_anew_with_another_property_and_end_with_passing(stepwise):
    stepwise(lambda: 4)
    stepwise.hint()
    report = stepwise(lambda: "four")
    assert repr(report).count("Hint: What do you return?") == 1 and ".hint()" not in repr(report)
    assert stepwise(lambda: 5).passed
    assert repr(stepwise.hint()) == "five: your code passes, so there is nothing to hint at."


def test_a_hint_for_just_this_mistake_comes_before_those_of_the_property():
    check = Check()
    check.must("it is 2", hint="Count.")(lambda f: expect(f() == 2, "it is 1", "Once more?"))
    assert "Hint 1 of 2: Once more?" in repr(check(lambda: 1))
    assert repr(check.hint()).endswith("Hint 1 of 2: Once more?\n  Hint 2 of 2: Count.")


ENDLESS = "def mine():\n    while True:\n        try:\n            x = 1\n        except Exception:\n            pass"


@pytest.mark.parametrize("by_timer", [True, False])
def test_an_endless_loop_ends_with_the_learner_s_line(monkeypatch, by_timer):
    """Without a timer (on Windows) each line looks at the time."""
    monkeypatch.setattr(candidate_module, "TIME_LIMIT", 0.3)
    if not by_timer:
        monkeypatch.delattr(candidate_module.signal, "setitimer")
    report = FIVE(_cell(ENDLESS))
    assert report.done
    assert report.failed_at == 0
    first, second = report.reason.splitlines()
    assert first == "still running after 0.3 seconds of computing"
    assert re.fullmatch(r"in line [2346] of your cell: .+", second)
    assert "Which condition ends the loop" in report.hint
    assert FIVE(lambda: 5).passed


def test_an_endless_loop_ends_in_a_thread_too(monkeypatch):
    monkeypatch.setattr(candidate_module, "TIME_LIMIT", 0.3)
    with ThreadPoolExecutor(1) as pool:
        report = pool.submit(FIVE, _cell(ENDLESS)).result()
    assert report.reason.startswith("still running after")


def test_waiting_is_not_computing_and_the_timer_is_put_back(monkeypatch):
    monkeypatch.setattr(candidate_module, "TIME_LIMIT", 0.3)
    before = signal.getsignal(signal.SIGVTALRM)
    assert FIVE(_cell("import time\ndef mine():\n    time.sleep(0.5)\n    return 5")).passed
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


# In color -----------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_report_in_color_says_the_same_and_its_hints_unfold_without_a_script(
    browser, monkeypatch, stepwise, theme
):
    assert set(stepwise(lambda: 4)._repr_mimebundle_()) == {"text/plain"}  # strict: as in the book
    monkeypatch.setenv("COURSE_STRICT", "0")
    form = stepwise(lambda: 4)._repr_mimebundle_()["text/html"]
    html = f"<html style='color-scheme: {theme}'><body>{form}"
    with html_page(browser, html, java_script_enabled=theme == "light") as page:
        report = page.locator(".cu-report")
        for line in ("five: 1 of 2 tests pass.", "✓ it is a number", "the sum: got 4, expected 5"):
            see(report).to_contain_text(line)
        second = page.get_by_text("Count on from 3.")
        see(second).to_be_hidden()
        page.get_by_text("Hint 2 of 3").press("Enter")
        see(second).to_be_visible()
        see(page.get_by_text("After 3 come 4 and …")).to_be_hidden()
        see(page.get_by_role("button")).to_have_count(0)  # there is no cell to write into
        report.evaluate("report => report.style.setProperty('--heat', 'transparent')")
        assert report.evaluate(CONTRAST) >= 4.5


@contextmanager
def _set(function, value, before):
    function(value)
    yield
    function(before)


SETTINGS = {
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "float64": lambda: _set(torch.set_default_dtype, torch.float64, torch.float32),
    "another device": lambda: _set(torch.set_default_device, "meta", None),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_cell_above_has_set_for_all_of_pytorch_changes_no_points_and_stays_set(setting):
    check = Check()

    @check.must("it doubles", hint="ask")
    def it_doubles(candidate):
        x = torch.ones(2, requires_grad=True)
        candidate(x).sum().backward()
        assert x.grad.tolist() == [2, 2] and x.grad.dtype == torch.float32

    def state():
        x = torch.ones(1)
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), x.dtype, x.device

    with SETTINGS[setting]():
        before = state()
        report = check.mark(lambda x: 2 * x)
        after = state()
    assert report.passed and before == after != state()
