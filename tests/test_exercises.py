"""The exercises of a notebook, read from its cells."""

from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.kit.exercises import exercises

STUB = new_code_cell("def double(x):\n    ...", metadata={"tags": ["exercise", "build"]})
CHECK = new_code_cell("cu.checks.doubled(double)", metadata={"tags": ["check"]})
SOLUTION = new_code_cell(
    "two = 2\n\n\ndef double_solution(x):\n    return two * x\n\n\ncu.checks.doubled(double_solution)",
    metadata={"tags": ["solution"]},
)
TASK = (
    "Before.\n\n### Exercise 2 · Twice\n\n*build · 8 minutes*\n\nWrite it.\n\n#### A detail\n\nNow."
)


def test_a_whole_exercise_has_its_task_its_cells_and_the_names_of_check_and_function():
    shown = new_code_cell("def buggy(x): ...")
    (one,) = exercises([new_markdown_cell(TASK), shown, STUB, CHECK, SOLUTION, shown])
    assert (one.heading, one.title, one.number) == ("Exercise 2 · Twice", "Twice", 2)
    assert (one.kind, one.minutes, one.effort) == ("build", 8, "build · 8 minutes")
    assert one.task == "Write it.\n\n#### A detail\n\nNow."
    assert (one.place, one.end) == (0, 4) and one.is_whole
    assert (one.stub, one.check, one.solution) == (STUB, CHECK, SOLUTION)
    assert (one.name, one.function) == ("doubled", "double")
    space: dict = {}
    exec(one.answer, space)
    assert space["double"](3) == 6 and "cu.checks" not in one.answer


def test_an_open_exercise_has_a_task_and_no_cells():
    text = new_markdown_cell("### Exercise 1 · Think\n\n*open · 1 minute*\n\nWhy?\n\n## Next")
    (one,) = exercises([text, new_code_cell("1 + 1"), new_markdown_cell("## Further")])
    assert (one.kind, one.effort, one.task) == ("open", "open · 1 minute", "Why?")
    assert one.place == one.end == 0 and one.stub is None and not one.is_whole
