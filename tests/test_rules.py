"""The rules of a notebook: a page that keeps them, and for each rule one that breaks it; and what is counted."""

import re

import jupytext
import pytest
from nbformat.v4 import new_output

from course_utils.kit.quiz import quiz
from course_utils.studio import rules
from course_utils.studio.page import Page, count_questions, count_words

FOLD = 'jupyter={"source_hidden": true}'
HIDE = 'jupyter={"source_hidden": true, "outputs_hidden": true}'
ALT = "A heatmap whose diagonal is bright"
GOOD = f"""\
# %% [markdown]
# # Title

# %%
import course_utils as cu

cu.seed_everything(0)

# %%
width = 0.5  # try 0.1 … 10
width

# %% {FOLD}
cu.predict("first")

# %% tags=["hide-input"] {FOLD}
fig, ax = cu.subplots(alt="A line")
fig

# %% [markdown]
# ### Exercise 1 · Windows
# *build · 8 minutes*
#
# Write it.

# %% tags=["exercise", "build"]
def window(x):
    ...

# %% tags=["check"] {FOLD}
cu.checks.window(window)

# %% tags=["solution"] {HIDE}
def window_solution(x):
    return x

# %% [markdown]
# ### Exercise 2 · Further
# *open · 8 minutes*
"""


def page(text=GOOD, **changes):
    """The page of this source, as if executed; `changes` are those of the cell with the picture."""
    notebook = jupytext.reads(text, fmt="py:percent")
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
        if cell.source.startswith("fig"):
            html = f'<img alt="{ALT}">'
            cell.outputs = [new_output("display_data", data={"text/html": html})]
            cell.update(changes)
    return Page(notebook)


def swap(old, new):
    assert old in GOOD
    return page(GOOD.replace(old, new, 1))


def shown(*outputs):
    return page(outputs=list(outputs))


PNG = {"image/png": "aGVsbG8="}
BREACHES = {
    rules.executed: [(page(execution_count=None), "cell 4: never executed")],
    rules.no_errors: [
        (
            shown(new_output("error", ename="ValueError", evalue="no", traceback=[])),
            "cell 4: ends in ValueError",
        ),
        (shown(new_output("stream", name="stderr", text="UserWarning")), "writes 'UserWarning'")
    ],
    rules.alt_texts: [
        (shown(new_output("display_data", data=PNG, metadata={"image/png": {"alt": "plot"}})), "'plot'"),
        (shown(new_output("display_data", data={"text/html": "<b><img src='x'></b>"})), "alt text ''"),
    ],
    rules.small: [
        (shown(new_output("stream", text="x" * 2_000_001)), "2.0 MB; 2 MB are allowed")
    ],
    rules.imports_first: [(swap("import course_utils as cu", "x = 1"), "cell 1: 'x = 1' is neither")],
    rules.folded_in_lab: [
        (swap(f'tags=["hide-input"] {FOLD}', 'tags=["hide-input"]'), "cell 4: folded in the book"),
        (swap(f'# %% {FOLD}\ncu.predict', "# %%\ncu.predict"), "cell 3: folded in the book only; add"),
        (swap(HIDE, FOLD), "its result is seen in Lab"),
    ],
    rules.exercises_whole: [
        (swap("Exercise 2", "Exercise 5"), "is number 2 of the notebook"),
        (swap("*open · 8 minutes*", "*think · 8 minutes*"), "needs a first line such as"),
        (swap('tags=["check"] ', ""), "has the cells ['exercise', 'solution']; build has ['exercise', 'check'"),
        (swap("*build · 8", "*open · 8"), "open has no such cells"),
        (swap("# %%\nwidth", '# %% tags=["exercise"]\nwidth'), "an exercise's cell under no"),
    ],
    rules.solutions_apart: [
        (swap("width\n\n", "window_solution(1)\n\n"), "'window_solution' outside a solution")
    ],
}  # fmt: skip
SEEDED = [
    pytest.param(*case, id=f"{rule.__name__}-{count}")
    for rule, cases in BREACHES.items()
    for count, case in enumerate(cases)
]


def test_a_page_of_the_form_breaks_no_rule_and_each_rule_is_shown_to_find_something():
    assert rules.complaints(page()) == []
    assert set(BREACHES) == set(rules.RULES)


@pytest.mark.parametrize(("broken", "complaint"), SEEDED)
def test_each_rule_finds_what_it_forbids_and_says_what_to_do(broken, complaint):
    found = [said for said in rules.complaints(broken) if complaint in said]
    assert found, rules.complaints(broken)
    assert all(re.search("[;:] .+", said) for said in found)


# What is counted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Two words", 2),
        ("| one – | 0.5 |", 1),
        ("[a link of words](notebook_2.ipynb#there) – and $x_1 + 2$", 5),
        ("![six words that nobody has to read](a.png)", 0),
        ("*Emphasis* and `code 1`\n```\nmore 2\n```", 2),
        ("Of 1,000.5 it's 81 %, in 2014", 4),
    ],
)
def test_words_are_those_of_the_sentences(line, words):
    assert count_words(line) == words


def test_minutes_are_of_one_who_does_everything_and_of_one_who_only_reads():
    """A prediction, a widget, 900 words, and exercises of 16 minutes."""
    text = "# %% [markdown]\n# # Title\n# " + "word " * 900 + "\n\n# %%\ncu.live.translator()\n\n"
    found = page(GOOD.replace("# %% [markdown]\n# # Title\n", text, 1))
    assert found.minutes == 40
    assert found.practised_minutes == 5


def test_a_quiz_has_as_many_questions_as_its_file():
    code = 'cu.recall("masks")\ncu.quiz("gpt")\ncu.quiz("gpt", "a", "b")'
    assert count_questions(code) == 2 + len(quiz("gpt").questions) + 2
