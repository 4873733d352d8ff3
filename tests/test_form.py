"""The form of a chapter: a page that has it, and for each rule and limit a page that breaks it."""

import ast
import random
import re

import jupytext
import pytest
from nbformat.v4 import new_output

from course_utils.kit.quiz import quiz
from course_utils.studio import form, tries
from course_utils.studio.measures import measures, together
from course_utils.studio.page import Page, count_numbers, count_words, read
from course_utils.studio.sheet import sheet, table

FOLD = 'jupyter={"source_hidden": true}'
HIDE = 'jupyter={"source_hidden": true, "outputs_hidden": true}'
PROSE = "# " + "word " * 1500


def exercise(number, kind, minutes):
    return f"""
# %% [markdown]
# ### Exercise {number} · Windows
# *{kind} · {minutes} minutes*
#
# Write it.

# %% tags=["exercise", "{kind}"]
def window{number}(x):
    raise NotImplementedError

# %% tags=["check"] {FOLD}
cu.checks.window{number}(window{number})

# %% tags=["solution"] {HIDE}
def window{number}_solution(x):
    return x

cu.checks.window{number}(window{number}_solution)
"""


GOOD = f"""\
# %% [markdown]
# # Title

# %%
import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## Windows
{PROSE}

# %%
width = 0.5  # try 0.1 … 10
steps = 40  # try 10 … 200
kernel = "gaussian"  # try "gaussian" | "boxcar"
noise = 1.0  # try 0 … 2
rate = 0.1  # try 0.01 … 1
width * steps

# %% {FOLD}
cu.predict("first")

# %% {FOLD}
cu.predict("second")

# %% {FOLD}
cu.predict("third")

# %%
def pool(x):
    if not x:
        raise ValueError("x is empty")
    return x

# %%
for row in range(3):
    print(pool(row + 1))

# %% tags=["hide-input"] {FOLD}
fig, ax = cu.subplots(alt="A line")
fig

# %% tags=["guard"] {FOLD}
with cu.guard("A width is positive."):
    assert width > 0

# %% {FOLD}
cu.quiz("title", "window")
{exercise(1, "build", 5)}
# %% [markdown]
# ## Widths

# %%
wide = 2 * width
wide
{exercise(2, "predict", 5)}{exercise(3, "bug", 5)}
# %% [markdown]
# ### Exercise 4 · Further
# *open · 8 minutes*

# %% [markdown]
# ## Take-aways
#
# Go on with [the next](03_next.ipynb), or [further](02_title_further.ipynb).

# %% {FOLD}
cu.quiz("title")

# %% [markdown]
# ## References
"""
LINKS = ("02_title_further", "03_next")


def page(text=GOOD, kind="chapter"):
    """The page of this source, as if executed: what ends in an expression or a loop shows something."""
    notebook = jupytext.reads(text, fmt="py:percent")
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        body = ast.parse(cell.source).body
        cell.execution_count = count
        if body and isinstance(body[-1], ast.Expr | ast.For):
            cell.outputs = [new_output("stream", name="stdout", text="1")]
    return Page(notebook, kind)


def broken(text, kind="chapter", **options):
    options = {"links": LINKS} | options
    return form.complaints(page(text, kind), **options)


def swap(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def add(code, before="# %%\nwide ="):
    return swap(before, f"{code.strip()}\n\n{before}")


CLASS = "class Model(torch.nn.Module):\n" + "    x = 1\n" * 25
SILENT = "# %%\na = 1\n\n# %%\nb = a\n"
LONG = "# %%\n" + "".join(f"x{number} = {number}\n" for number in range(25)) + "x24"

BREACHES = {
    "cells": (add("# %% [markdown]\n# More\n\n" * 20), "cells: 5"),
    "words": (swap(PROSE, PROSE + "word " * 150), "words of prose: 16"),
    "numbers": (add("# %% [markdown]\n# " + "It is 2.5 of 1,000. " * 31), "numbers in the prose: 6"),
    "questions": (add("# %%\ncu.recall('masks')\n" * 4 + 'cu.quiz("title", "a")'), "questions: 10;"),
    "lines": (add(LONG.replace("x", "y")[:-3] * 8), "unfolded lines: "),
    "longest": (add(LONG), "lines of the longest cell: 26 (cell "),
    "class and more": (add(f"# %%\n{CLASS}\nx = 1\nx"), "lines of the longest cell: 28 (cell "),
    "widest": (add("# %%\n" + "wide_" * 18), "characters of the widest line: 90 (cell "),
    "silent": (add(SILENT), "teaching cells that show nothing: 2 (cells "),
    "assert": (add("# %%\nassert width\nwidth"), "asserts and raises outside guards: 1 (cell "),
    "assert_close": (add("# %%\nx.assert_close(width, 1)"), "asserts and raises outside guards: 1"),
    "assert in a block": (add("# %%\nwith record(guarded):\n    assert width"), "asserts and raises outside guards: 1"),
    "raise": (add("# %%\nraise ValueError"), "asserts and raises outside guards: 1"),
    "assert beside a guard": (
        swap("with cu.guard(", "assert width\nwith cu.guard("),
        "asserts and raises outside guards: 1",
    ),
    "assert in a function": (
        swap("    return x\n\n# %%\nfor", "    assert x\n    return x\n\n# %%\nfor"),
        "asserts and raises outside guards: 1",
    ),
    "other raise": (swap("raise ValueError", "raise KeyError"), "asserts and raises outside guards"),
    "exercises": (swap("*open · 8", "*open · 30"), "minutes of the exercises: 45; at most 25"),
    form.guards_in_place: [
        (swap('tags=["guard"]', 'tags=["hide-input"]'), "the tag and cu.guard go together; give"),
        (swap('with cu.guard("A width is positive."):', "if True:"), "cu.guard go together; remove"),
        (swap("assert width > 0", "assert width > 0\n" + "    assert width\n" * 6), "7 conditions"),
        (swap("assert width > 0", "width > 0"), "0 conditions"),
        (swap('guard("A width is positive.")', "guard(claim)"), "write the claim as a text"),
        (swap('cu.quiz("title", "window")', "width"), "of its section comes after; move the guard"),
    ],
    form.folded_alike: [
        (swap(f'tags=["hide-input"] {FOLD}', 'tags=["hide-input"]'), "folded in the book only; add"),
        (swap(f'# %% {FOLD}\ncu.quiz("title")', '# %%\ncu.quiz("title")'), "format does so for calls"),
        (swap('tags=["hide-input"] ', ""), "folded in Lab only; add the tag hide-input"),
        (swap(HIDE, FOLD), "a solution or hide-output has"),
        (add('# %% tags=["hide-output"]\nwidth'), "a solution or hide-output has"),
    ],
    form.only_plumbing_folded: [
        (add(f'# %% tags=["hide-input"] {FOLD}\nprint(width)'), "folded, and neither plot nor table"),
        (add(f'# %% tags=["hide-input"] {FOLD}\nclass A:\n    ax = 1\n'), "neither plot nor table"),
    ],
    form.exercises_whole: [
        (swap("Exercise 4", "Exercise 5"), "is number 4 of the notebook"),
        (swap("*open · 8 minutes*", "*think · 8 minutes*"), "needs a first line such as"),
        (swap('tags=["check"] ', ""), "has the cells ['exercise', 'solution']; build has exercise"),
        (swap("*bug · 5", "*open · 5"), "open has no such cells"),
        (swap('["exercise", "bug"]', '["exercise"]'), "add the tag bug"),
        (add('# %% tags=["exercise", "bug"]\n1'), "an exercise's cell under no"),
    ],
    form.solutions_apart: [
        (swap("def window1_solution", "def window1"), "a solution binds 'window1'; call it"),
        (
            swap("cu.checks.window1(window1_solution)", "for step in [1]:\n    step"),
            "a solution binds 'step'",
        ),
        (add("# %%\nwindow1_solution(1)"), "'window1_solution' outside a solution"),
    ],
    form.bound_once: [
        (add("# %%\nwidth += 1\nwidth"), "binds 'width', as cell 3 does"),
        (add("# %%\ndef kernel():\n    pass"), "binds 'kernel', as cell 3 does"),
        (add("# %%\nwith open(kernel) as width:\n    print()"), "binds 'width', as cell 3 does"),
        (add("# %%\nfor width in range(3):\n    print()"), "a loop changes 'width', which cell 3"),
    ],
    form.numbers_can_be_tried: [
        (swap("# try 0.1 … 10", "# try 0.1"), "cell 3: line 1, # try 0.1: neither a range nor choices"),
        (swap("# try 10 … 200", "# try 10.5 … 200"), "cell 3: line 2, # try 10.5 … 200: 40 is a whole"),
        (swap("# try 0 … 2", "# try 2 … 3"), "1.0 is not in the range"),
        (swap('"gaussian" | "boxcar"', '"box" | "cos"'), "'gaussian' is none of the choices"),
        (swap("width * steps", "print(1)  # try 1 … 2"), "line 6, # try 1 … 2: no assignment"),
        (swap("rate = 0.1 ", "rate = 0.1 + noise "), "no name that gets one plain value"),
    ],
    form.leads_on: [
        (swap("[the next](03_next.ipynb)", "the next"), "links to 03_next.ipynb; add it"),
        (swap("(02_title_further.ipynb)", ""), "links to 02_title_further.ipynb; add it"),
    ],
}  # fmt: skip
SEEDED = [
    pytest.param(*case, id=f"{getattr(rule, '__name__', rule)}-{count}")
    for rule, cases in BREACHES.items()
    for count, case in enumerate(cases if isinstance(cases, list) else [cases])
]


def test_a_page_in_the_form_breaks_no_rule():
    assert broken(GOOD) == []


@pytest.mark.parametrize(("text", "complaint"), SEEDED)
def test_each_rule_and_limit_finds_what_it_forbids_and_says_what_to_do(text, complaint):
    found = [said for said in broken(text) if complaint in said]
    assert found, broken(text)
    assert all(re.search("[;:] .+", said) for said in found)


def test_every_rule_is_shown_to_find_something():
    assert {rule for rule in BREACHES if callable(rule)} == {*form.RULES, form.leads_on}
    limited = [one for one in measures(page()) if one.limit]
    named = [complaint for _, complaint in (c for c in BREACHES.values() if isinstance(c, tuple))]
    for one in limited:
        assert any(complaint.startswith(one.name) for complaint in named), one.name


ALLOWED = {
    "the class that the chapter builds": add(f"# %%\n{CLASS}"),
    "more lines where a model is written": add(f"# %%\n{CLASS}\n" + 5 * ("# %%" + "\nwidth" * 20 + "\n\n")),
    "an assert in a solution's function": swap(
        "_solution(x):\n    return", "_solution(x):\n    assert x\n    return"
    ),
    "a number that its own cell changes": add("# %%\ntotal = 0\ntotal += 1\ntotal"),
    "a loop variable twice": add("# %%\nfor row in [1]:\n    print(row)"),
    "a prediction whose code, with the answer, is folded": swap(
        f'# %% {FOLD}\ncu.predict("first")', f'# %% tags=["hide-input"] {FOLD}\ncu.predict("first")'
    ),
    "a handle of two folded figures": add(
        f'# %% tags=["hide-input"] {FOLD}\nbar = ax.bar()\nbar\n\n'
        f'# %% tags=["hide-input"] {FOLD}\nbar = ax.bar()\nbar'
    ),
    "names inside a comprehension": add("# %%\n[width for width in range(3)]"),
}  # fmt: skip


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED)
def test_what_the_form_allows(text):
    assert broken(text) == []


@pytest.mark.parametrize(
    ("kind", "full", "said"),
    [
        ("chapter", False, ["cells", "words of prose"]),
        ("chapter", True, ["words of prose"]),
        ("further", False, ["cells", "words of prose"]),
        ("further", True, ["words of prose"]),
        ("appendix", False, []),
    ],
)
def test_a_page_has_the_limits_of_its_kind_and_one_that_is_full_those_of_before(kind, full, said):
    text = "# %% [markdown]\n# " + "word " * 2700 + "\n\n# %% [markdown]\n# More\n" * 63
    found = broken(text, kind, full=full, links=())
    assert [one.split(":")[0] for one in found] == said


def test_a_chapter_asks_for_nothing_that_its_author_does_not_want():
    """Neither a number of sections, exercises, predictions, questions nor marks."""
    assert broken("# %% [markdown]\n# # Title\n\n# %%\nprint(1)", links=()) == []


# What is counted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Two words", (2, 0)),
        ("| one – | 0.5 |", (1, 0)),
        ("[a link of words](notebook_2.ipynb#there) – and $x_1 + 2$", (5, 0)),
        ("![six words that nobody has to read](a.png)", (0, 0)),
        ("*Emphasis* and `code 1`\n```\nmore 2\n```", (2, 0)),
        ("Of 1,000.5 it's 81 %, in 2014", (4, 3)),
        ("## 3 heads", (1, 0)),
    ],
)
def test_words_and_numbers_are_those_of_the_sentences(line, words):
    assert (count_words(line), count_numbers(line)) == words


def test_minutes_are_of_one_who_does_everything_and_of_one_who_only_reads():
    """Three predictions, one question, a widget, and exercises of 23 minutes; a quiz that is not there asks nothing."""
    found = page(add("# %%\ncu.live.translator()"))
    reading = found.words / 90 + found.lines * 0.15 + 3
    assert found.minutes == 5 * round((reading + 1 + 6 + 1.5 * 23) / 5) == 65
    assert found.practised_minutes == 5 * round(reading / 2 / 5) == 10


def test_a_quiz_has_as_many_questions_as_its_file():
    text = 'cu.recall("masks")\ncu.quiz("gpt")\ncu.quiz("gpt", "a", "b")'
    end = len(quiz("gpt").questions)
    assert page(f"# %%\n{text}").questions == 2 + end + 2


def test_together_stands_beside_what_it_was():
    said = sheet("together", together([page(), page()]))
    assert re.search(rf"words +{2 * page().words} +at most 27000 +second edition: 39,500", said)


def test_without_outputs_what_depends_on_them_is_unknown(tmp_path):
    source = tmp_path / "02_title.py"
    source.write_text(GOOD)
    found = measures(read(source, tmp_path / "none.ipynb"))
    unknown = {one.short for one in found if one.value is None}
    assert unknown == {"silent", "pictures"}
    assert not any(one.broken for one in found)
    assert table([("02_title", found)]).splitlines()[2].count("?") == 2


# Numbers to play with ---------------------------------------------------------------------------

MARKED = """\
é = 1; width = 0.5
width = 0.5  # try 0.1 … 10
steps = 40  # try 10 … 200
kernel = "gaussian"  # try "gaussian" | "boxcar"
shift = -1.5  # try -3 … 0
print("# try 1 … 2")
"""


def test_marks_are_read_and_their_values_put_in():
    marks, wrong = tries.find(MARKED)
    assert wrong == []
    assert [(one.name, one.value, one.others) for one in marks] == [
        ("width", 0.5, (0.1, 10)),
        ("steps", 40, (10, 200)),
        ("kernel", "gaussian", ("boxcar",)),
        ("shift", -1.5, (-3, 0)),
    ]
    text = MARKED
    for mark, value in zip(marks, (10, 200, "boxcar", -3), strict=True):
        text = mark.put(text, value)
    assert text.splitlines()[1:5] == [
        "width = 10  # try 0.1 … 10",
        "steps = 200  # try 10 … 200",
        'kernel = \'boxcar\'  # try "gaussian" | "boxcar"',
        "shift = -3  # try -3 … 0",
    ]


def test_drawn_values_stay_in_their_range_and_come_to_its_ends():
    chance = random.Random(0)
    width, steps, kernel, shift = tries.find(MARKED)[0]
    for mark, low, high in ((width, 0.1, 10), (steps, 10, 200), (shift, -3, 0)):
        drawn = [mark.draw(chance) for _ in range(100)]
        assert min(drawn) == low and max(drawn) == high
        assert len(set(drawn)) > 20
        assert {type(one) for one in drawn if low < one < high} == {type(mark.value)}
    assert {kernel.draw(chance) for _ in range(20)} == {"gaussian", "boxcar"}
