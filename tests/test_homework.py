"""Homework: numbers by seed that really differ, notebooks without the answer, and marks by each student's own check."""

import json
import re
from functools import cache

import nbformat
import pytest
import torch

from course_utils.kit.homework import HomeworkError, assignment, check, examples, exercises
from course_utils.studio import homework
from course_utils.studio.__main__ import main
from course_utils.studio.grading.exercises import homework_sheets
from course_utils.studio.grading.submissions import Notebook

EXERCISES = exercises()
SEEDS = range(6)


@cache
def one(exercise: str, seed: int):
    return assignment(exercise, seed, "Ana")


def test_six_chapters_have_homework_and_each_function_another_name():
    assert len({name.partition("/")[0] for name in EXERCISES}) >= 6
    names = [one(exercise, 0).name for exercise in EXERCISES]
    assert len(set(names)) == len(names)
    assert all(
        exercise.endswith(f"/{name}") for exercise, name in zip(EXERCISES, names, strict=True)
    )


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_solution_passes_its_own_check_and_that_of_no_other_numbers(exercise):
    made = {one(exercise, seed).solution: one(exercise, seed) for seed in SEEDS}
    assert len(made) > 2, "the seed changes nothing"
    for mine in made.values():
        assert mine.check(mine.right).passed
        for other in made.values():
            report = other.check(mine.right)
            assert report.passed == (mine is other), (mine.solution, other.solution)
            assert mine is other or report.hint


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_same_seed_and_student_have_the_same_numbers_and_others_have_others(exercise):
    again = assignment(exercise, 1, "Ana")
    assert (again.text, again.solution) == (one(exercise, 1).text, one(exercise, 1).solution)
    students = {assignment(exercise, 1, name).solution for name in ("Ana", "Ben", "Cleo", "Dora")}
    assert len(students) > 1


@pytest.mark.parametrize("exercise", EXERCISES)
def test_stub_and_examples_run_and_tell_how_far_one_is(exercise):
    mine = one(exercise, 2)
    space = {"torch": torch, "examples": examples}
    exec(mine.stub, space)
    exec(mine.examples.replace("examples(", "said = examples(", 1), space)
    assert not space["said"].done and len(space["said"].sentences) == len(mine.shown)
    assert not mine.check(space[mine.name]).done
    space[mine.name] = mine.right
    exec(mine.examples.replace("examples(", "said = examples(", 1), space)
    assert space["said"].passed


def test_what_does_not_exist_is_named_with_what_does():
    with pytest.raises(
        HomeworkError, match=r"^masks/nothing: no such homework; there are .*masks/"
    ):
        check("masks/nothing", 1)


def test_an_example_that_does_not_come_out_says_what_is_expected():
    report = examples(
        lambda x: x + 1, [((torch.tensor([1.0]),), [2.0]), ((torch.tensor([1.0]),), [5.0])]
    )
    assert report.held == 1 and "2; expected 5" in report.reason


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path):
    """Homework of two chapters for two students; called, it is made again with other options."""
    names = tmp_path / "list.csv"
    names.write_text("Name,Login\nAna Pérez,a1\nBen,b2\n", encoding="utf-8")

    def make(*options: str) -> int:
        usual = ["--students", str(names), "--to", str(tmp_path / "out")]
        return main(["homework", *usual, *options])

    assert make("--seed", "7", "02", "04") == 0
    return make


def test_students_get_tasks_stubs_and_examples_and_nothing_else(made, tmp_path):
    files = sorted((tmp_path / "out" / "students").rglob("*.ipynb"))
    assert [f"{file.parent.name}/{file.name}" for file in files] == [
        f"{name}/{stem}_homework.ipynb"
        for name in ("Ana Pérez", "Ben")
        for stem in ("02_kernel_regression", "04_masks")
    ]
    key = homework.read_key(tmp_path / "out" / "instructor")
    texts = []
    for file in files:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        text = "\n".join(cell.source for cell in notebook.cells)
        student = file.parent.name
        assert f"`{key.code(student)}` of **{student}**" in text
        for place in key.notebooks[file.stem]:
            right = assignment(place, 7, student)
            lines = {line.strip() for line in right.solution.splitlines()[1:] if len(line) > 12}
            assert not [line for line in lines if line in text] and right.stub in text
        solved = nbformat.read(
            tmp_path / "out" / "instructor" / "solutions" / student / file.name, 4
        )
        assert right.solution.strip() in "\n".join(cell.source for cell in solved.cells)
        texts.append(text)
    assert len(set(texts)) == 4


def test_more_chapters_and_students_join_and_another_seed_is_refused(made, tmp_path, capsys):
    ana = tmp_path / "out" / "students" / "Ana Pérez" / "02_kernel_regression_homework.ipynb"
    before = ana.read_bytes()
    assert made("--seed", "7", "07") == 0
    (tmp_path / "list.csv").write_text("Cleo\n")
    assert made("--seed", "7", "02") == 0
    key = homework.read_key(tmp_path / "out" / "instructor")
    assert key.students == ("Ana Pérez", "Ben", "Cleo") and len(key.notebooks) == 3
    assert ana.read_bytes() == before
    capsys.readouterr()
    assert made("--seed", "8") == 1
    assert "holds the homework of seed 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no student"),
        ("Name\n", "names no student"),
        ("Ana\nana\n", "'Ana' stands there twice"),
        ("../Ana\n", "can be no folder's name"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, capsys, text, said):
    (tmp_path / "list.csv").write_text(text)
    options = [
        "--seed",
        "1",
        "--students",
        str(tmp_path / "list.csv"),
        "--to",
        str(tmp_path / "out"),
    ]
    assert main(["homework", *options]) == 1
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "Ana Pérez\n\nBen Li\n",
        "Name,Login\nAna Pérez,a1\nBen Li,b2\n",
        '"First name","Last name","Email address"\r\nAna,Pérez,a@b.org\r\nBen,Li,b@b.org\r\n',
        "Nachname;Vorname\nPérez;Ana\nLi;Ben\n",
    ],
)
def test_names_are_found_in_a_list_as_a_platform_writes_it(tmp_path, text):
    (tmp_path / "list.csv").write_text(text, encoding="utf-8-sig", newline="")
    assert homework.students_in(tmp_path / "list.csv") == ("Ana Pérez", "Ben Li")


def test_a_chapter_without_homework_and_a_folder_without_a_key_are_named(tmp_path, capsys):
    assert main(["homework", "--seed", "1", "--to", str(tmp_path / "out"), "17"]) == 1
    assert re.search("has homework; these have: .*masks", capsys.readouterr().err)
    with pytest.raises(homework.HomeworkError, match=r"has no homework\.json"):
        homework.read_key(tmp_path)
    (tmp_path / homework.KEY).write_text(json.dumps({"seed": "x", "students": [], "notebooks": {}}))
    with pytest.raises(homework.HomeworkError, match=r"has no homework\.json that can be read"):
        homework.read_key(tmp_path)


# Grading ----------------------------------------------------------------------------------------


def test_each_is_graded_with_their_own_numbers_found_by_name_or_by_the_notebook(made, tmp_path):
    key = homework.read_key(tmp_path / "out" / "instructor")
    sheet = homework_sheets(key)[0]
    bens = Notebook((("markdown", f"Homework `{key.code('Ben')}` of **Ben**."),))
    for name, text, owner in (
        ("ana perez", bens, None),  # another spelling is another student: the notebook decides
        ("Ana Pérez", bens, "Ana Pérez"),
        ("anapérez", None, "Ana Pérez"),
        ("benb2", bens, "Ben"),
        ("Dora", None, None),
    ):
        own = sheet.of(name, text)
        owner = owner or ("Ben" if text else None)
        assert {one.student for one in own.exercises} == {owner}, name
        place, judge = own.exercises[0].place, own.exercises[0].judge()
        if owner:
            assert judge(assignment(place, 7, owner).right).passed
            other = "Ben" if owner != "Ben" else "Ana Pérez"
            same = assignment(place, 7, owner).solution == assignment(place, 7, other).solution
            assert judge(assignment(place, 7, other).right).passed == same
        else:
            assert "no homework was made" in judge(assignment(place, 7, "Ben").right).reason
    assert (
        sheet.of("Dora", bens).note == "with the numbers of Ben"
        and sheet.of("Ben", bens).note == ""
        and sheet.of("Ana Pérez", bens).note == "the notebook was made for Ben"
    )
    judges = [sheet.of(name, None).exercises[0].judge() for name in ("Dora", "Ben")]
    assert len({len(judge.properties) for judge in judges}) == 1
