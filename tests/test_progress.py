"""What has passed is remembered in the reader's home, whatever happens to its file, and answers are kept there."""

import errno
import json
import linecache
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from torch import nn

import course_utils as cu
from course_utils.files import ROOT, home
from course_utils.kit import answers, exercises, passed, progress
from course_utils.studio import manifest

STUB = 'def loo_residuals(weights, values):\n    """(n, n), (n,) → (n,)."""\n    ...'
ANSWER = STUB.replace("...", "return (values - weights @ values) / (1 - weights.diagonal())")
CHECK = "cu.checks.loo_residuals(loo_residuals)"
WRONG = ANSWER.replace("values -", "values +")
EXERCISE = "kernel_regression/loo_residuals"


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """A reader with an empty record; the file is given."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr(passed, "_session", {})
    monkeypatch.setattr(progress, "left_out", set)  # whatever book.toml chooses
    monkeypatch.chdir(tmp_path)
    return tmp_path / passed.FILE


def restart(monkeypatch):
    """As a new kernel: only the file remembers."""
    monkeypatch.setattr(passed, "_session", {})


def cell(code: str):
    """What a notebook's cell defines: the last name that it binds."""
    name = f"<cell {hash(code)}>"
    namespace = {"__name__": "__main__", "nn": nn, "cu": cu}
    exec(compile(code, name, "exec"), namespace)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    return list(namespace.values())[-1]


def one():
    return cell("def mine(x):\n    return 'secret text'")


BLOCK = """
def helper(x):
    return x + 1
class MyBlock(nn.Module):
    scale = 2
    def forward(self, x):
        return [helper(one) for one in x if one in {"a", "b", "c"}]
"""


# The record -------------------------------------------------------------------------------------


def test_what_passed_is_kept_with_its_day_and_without_the_code(reader, monkeypatch):
    passed.record_pass(EXERCISE, one())
    assert "secret text" not in reader.read_text()
    restart(monkeypatch)
    entry = passed.passed_exercises()[EXERCISE]
    assert set(entry) == {"day", "name", "code"} and len(entry["day"]) == 10


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"passed": 3}', '{"passed": {"a/b": {"day": 1}}}', "\0ÿ"]
)
def test_a_file_that_is_no_record_counts_as_empty_and_is_replaced(reader, monkeypatch, content):
    reader.write_text(content, encoding="latin-1")
    assert passed.passed_exercises() == {}
    passed.record_pass(EXERCISE, one())
    restart(monkeypatch)
    assert list(passed.passed_exercises()) == [EXERCISE]


def test_where_nothing_can_be_written_the_session_remembers_and_says_so_once(
    reader, monkeypatch, tmp_path, capsys
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file" / "home"))
    for _ in range(2):
        passed.record_pass(EXERCISE, one())
    (line,) = capsys.readouterr().out.splitlines()
    assert "until this session ends" in line and str(tmp_path / "file") in line
    assert list(passed.passed_exercises()) == [EXERCISE]
    assert cu.progress().headline.startswith("1 of ")


@pytest.mark.skipif(os.name == "nt", reason="Windows locks in another way")
def test_what_passed_is_kept_on_a_drive_without_locks(reader, monkeypatch, capsys):
    def no_lock(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr("fcntl.flock", no_lock)
    passed.record_pass(EXERCISE, one())
    restart(monkeypatch)
    assert list(passed.passed_exercises()) == [EXERCISE] and not capsys.readouterr().out


@pytest.mark.slow
def test_kernels_that_write_at_the_same_time_lose_nothing(reader):
    script = """
import sys
from course_utils.kit import passed
passed.PATIENCE = 600
def mine(): pass
for i in range(20): passed.record_pass(f'kernel_regression/{sys.argv[1]}{i}', mine)
"""
    environ = {key: value for key, value in os.environ.items() if key != "COURSE_STRICT"}
    command = [sys.executable, "-c", script]
    kernels = [subprocess.Popen([*command, name], env=environ) for name in "ab"]
    assert [kernel.wait() for kernel in kernels] == [0, 0]
    assert len(json.loads(reader.read_text())["passed"]) == 40


def test_solutions_and_the_courses_own_are_not_the_readers(reader):
    passed.record_pass(EXERCISE, cell("def weights_solution(): return 1"))
    passed.record_pass(EXERCISE, cu.kernel_weights)
    passed.record_pass(EXERCISE, cu.MultiHeadAttention)
    assert passed.passed_exercises() == {} and not reader.exists()


def test_under_strictness_nothing_is_read_written_or_taken(reader, monkeypatch, capsys, tmp_path):
    mine = cell(BLOCK)
    passed.record_pass(EXERCISE, mine)
    before = reader.read_text()
    monkeypatch.setenv("COURSE_STRICT", "1")
    passed.record_pass("kernel_regression/other", mine)
    assert passed.passed_exercises() == {} and reader.read_text() == before
    assert cu.choose(mine, cu.FeedForward) is cu.FeedForward
    assert capsys.readouterr().out == "FeedForward: the course's\n"
    assert cu.progress(export=True).headline.startswith("0 of ")
    assert not (tmp_path / "my_progress.json").exists()


# Answers ----------------------------------------------------------------------------------------


@contextmanager
def kernel(monkeypatch, home: Path):
    """What runs a cell as a notebook does, for a reader whose home this is; gives its result."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    with monkeypatch.context() as patched:
        patched.delenv("COURSE_STRICT")
        patched.setenv("COURSE_HOME", str(home))
        patched.setenv("IPYTHONDIR", str(home / "ipython"))
        patched.setattr("course_utils.kit.passed._session", {})
        (home / "ipython").mkdir(mode=0o700, parents=True, exist_ok=True)
        InteractiveShell.clear_instance()
        shell = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))

        def run(*texts: str):
            for text in texts:
                done = shell.run_cell(text, store_history=True)
                done.raise_error()
            return done.result

        run.shell = shell
        try:
            run("import course_utils as cu")
            yield run
        finally:
            InteractiveShell.clear_instance()


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs cells as a notebook does."""
    with kernel(monkeypatch, tmp_path / "home") as run:
        yield run


def test_an_answer_is_kept_when_its_check_runs_and_named_where_the_stub_is_back(run):
    assert "is kept" not in repr(run(STUB, CHECK))
    run(f"import torch\n{WRONG}", CHECK)
    assert run(ANSWER, CHECK).passed
    said = repr(run(STUB, CHECK))
    assert said.startswith("loo_residuals: not done yet. Fill in the cell above")
    assert "An answer of yours from 20" in said and "cu.checks.loo_residuals.answers()" in said
    first, second = run("cu.checks.loo_residuals.answers()").all
    assert (first.text, first.passed) == (ANSWER, True)
    assert (second.text, second.passed) == (f"import torch\n{WRONG}", False)
    shown = repr(run("cu.checks.loo_residuals.answers()"))
    assert ANSWER in shown and str(first.file.parent) in shown


def test_answers_that_release_3_0_0_saved_come_back(run, tmp_path):
    old = tmp_path / "home" / "answers" / EXERCISE / "2026-11-25_14-03-12_123456_passed.py"
    old.parent.mkdir(parents=True)
    old.write_text(ANSWER)
    (old.parent / "notes.py").write_text("the reader's own")
    (answer,) = run("cu.checks.loo_residuals.answers()").all
    assert (answer.passed, answer.text, f"{answer.when:%H:%M}") == (True, ANSWER, "14:03")


def test_what_is_kept_is_the_readers_alone(run, tmp_path):
    home = tmp_path / "home"
    run(ANSWER, CHECK)
    found = [path for path in home.rglob("*") if "ipython" not in path.parts]
    modes = {path.stat().st_mode & 0o777 for path in found if path.suffix in (".py", ".json")}
    assert modes == {0o600} and {p.stat().st_mode & 0o777 for p in found if p.is_dir()} == {0o700}


def test_of_an_exercise_the_newest_answers_and_the_newest_that_passed_are_kept(run):
    run(ANSWER, CHECK)
    for number in range(2 * answers.MAX_ANSWERS):
        run(f"{WRONG}  # {number}", CHECK)
    all_ = answers.saved_answers(EXERCISE)
    assert [one.text[-1] for one in all_[:-1]] == list("98765") and all_[-1].text == ANSWER
    run(f"{WRONG}  # 7", CHECK, CHECK)
    assert [one.text[-1] for one in answers.saved_answers(EXERCISE)[:-1]] == list("79865")
    run(f"{WRONG}  # {'long' * answers.LONGEST}", CHECK)
    assert [one.text[-1] for one in answers.saved_answers(EXERCISE)[:-1]] == list("79865")


def test_solutions_the_courses_own_and_strict_runs_keep_nothing(run, monkeypatch, tmp_path):
    run(ANSWER.replace("residuals(", "residuals_solution("))
    run(
        "cu.checks.loo_residuals(loo_residuals_solution)",
        "cu.checks.loo_residuals(cu.kernel_weights)",
    )
    with monkeypatch.context() as strictly:
        strictly.setenv("COURSE_STRICT", "1")
        run(ANSWER, CHECK)
        assert answers.saved_answers(EXERCISE) == ()
    assert not (tmp_path / "home" / "answers").exists()


@pytest.mark.parametrize("cell", ["{call}", "{call}\n{answer}", "# mine\n{answer}\n{call}"])
def test_starting_over_makes_the_cell_the_stub_and_keeps_the_answer(run, monkeypatch, cell):
    became = []
    monkeypatch.setattr(
        type(run.shell),
        "set_next_input",
        lambda self, text, replace=False: became.append((text, replace)),
    )
    run(ANSWER, cell.format(call="cu.checks.loo_residuals.start_over()", answer=ANSWER))
    ((stub, replaced),) = became
    assert stub == exercises.stub("loo_residuals") and replaced
    assert stub.startswith("def loo_residuals(") and stub.endswith("...")
    texts = {one.text for one in answers.saved_answers(EXERCISE)}
    assert texts and texts <= {ANSWER, f"# mine\n{ANSWER}"}


@pytest.mark.parametrize("unkept", ["helper = 3", ANSWER])
def test_starting_over_replaces_no_cell_that_is_not_kept(run, monkeypatch, unkept):
    became = []
    monkeypatch.setattr(
        type(run.shell), "set_next_input", lambda self, _, replace=False: became.append(replace)
    )
    if unkept == ANSWER:  # as with a full disk
        monkeypatch.setattr(answers, "private_write", lambda _: (_ for _ in ()).throw(OSError))
    run(f"{unkept}\ncu.checks.loo_residuals.start_over()")
    assert became == [False]


def test_every_exercise_has_its_stub_in_the_repository():
    assert set(dir(cu.checks)) <= set(exercises.repository_stubs())


@contextmanager
def read_only(folder):
    """Whatever this process would write into a folder is an error."""
    active = True

    def look(event, given):
        writes = event == "open" and given[1] and set(str(given[1])) & set("wax+")
        if active and (writes or event in ("os.mkdir", "os.rename", "os.remove")):
            assert not str(given[0]).startswith(str(folder)), (event, given[0])

    sys.addaudithook(look)
    try:
        yield
    finally:
        active = False


@pytest.mark.skipif(
    "kernel_regression" not in {one.slug for one in manifest.load(files=False).chapters},
    reason="its exercise is in a chapter that is left out",
)
def test_two_readers_of_one_read_only_installation_have_each_their_own_progress(
    monkeypatch, tmp_path
):
    with read_only(ROOT):
        with kernel(monkeypatch, tmp_path / "a") as run:
            assert run(ANSWER, CHECK).passed
        with kernel(monkeypatch, tmp_path / "b") as run:
            assert run("cu.progress()").headline.startswith("0 of ")
            assert run("cu.checks.loo_residuals.answers()").all == ()
        with kernel(monkeypatch, tmp_path / "a") as run:
            assert run("cu.progress()").headline.startswith("1 of ")
            run(ANSWER)
            assert run("cu.choose(loo_residuals, cu.kernel_weights) is loo_residuals")


def test_the_readers_home_is_where_the_system_or_a_variable_says(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert home() == tmp_path / ".attention-course"
    monkeypatch.setenv("COURSE_HOME", "~/keep")
    assert home() == tmp_path / "keep"


# Whose part -------------------------------------------------------------------------------------


def test_what_has_passed_is_taken_in_this_session_and_in_the_next(reader, monkeypatch, capsys):
    mine = cell(BLOCK)
    passed.record_pass(EXERCISE, mine)
    assert cu.choose(mine, cu.FeedForward) is mine
    restart(monkeypatch)
    again = cell(
        BLOCK.replace("    scale = 2", "    # twice\n    scale = 2")
    )  # a comment is no change
    assert cu.choose(again, cu.FeedForward) is again
    assert capsys.readouterr().out == "FeedForward: yours, MyBlock\n" * 2


def test_without_a_passed_check_it_is_the_courses_and_says_why(reader, capsys):
    for mine in (cell(BLOCK), None, cu.FeedForward, len):
        assert cu.choose(mine, cu.FeedForward) is cu.FeedForward
    assert capsys.readouterr().out.splitlines() == [
        "FeedForward: the course's; MyBlock has not passed its check yet",
        "FeedForward: the course's",
        "FeedForward: the course's",
        "FeedForward: the course's; len has not passed its check yet",
    ]
    with pytest.raises(TypeError, match="expected the course's class or function"):
        cu.choose(cell(BLOCK), None)


@pytest.mark.parametrize(
    "change", [("x + 1", "x + 2"), ('"c"', '"d"'), ("(nn.Module)", "(object)")]
)
def test_what_was_changed_since_it_passed_has_to_pass_again(reader, capsys, change):
    passed.record_pass(EXERCISE, cell(BLOCK))
    assert cu.choose(cell(BLOCK.replace(*change)), cu.FeedForward) is cu.FeedForward
    assert "MyBlock was changed since it passed: run its check again" in capsys.readouterr().out


# Progress ---------------------------------------------------------------------------------------


def test_a_passed_check_is_in_the_table_and_a_failed_one_is_not(reader):
    check = cu.checks.loo_residuals
    assert check.exercise == EXERCISE
    assert not check(cell("def wrong(weights, values): return values")).passed
    assert cu.progress().headline.startswith("0 of ")
    right = "def mine(w, v): return (v - w @ v) / (1 - w.diagonal())"
    assert check(cell(right)).passed
    table = cu.progress()
    assert table.headline.startswith("1 of ")
    row = next(line for line in repr(table).splitlines() if "loo_residuals" in line)
    assert row.startswith("Kernel regression")
    assert "1 of " in row and "✓ loo_residuals" in row and "· fixed_loss" in row
    assert "✓ <strong>loo_residuals</strong>" in table._repr_html_()


def test_the_table_lists_every_exercise_once_in_the_order_of_the_book(reader):
    table = cu.progress()
    listed = [name for days in table.chapters.values() for name in days]
    assert len(listed) == len(dir(cu.checks))
    titles = list(table.chapters)
    assert titles.index("Queries, keys and values") < titles.index("Kernel regression")
    assert titles.index("Kernel regression") < titles.index("Scoring functions")


def test_an_export_holds_names_and_days_only(reader, tmp_path, monkeypatch, capsys):
    passed.record_pass(EXERCISE, one())
    passed.record_pass("masks/gone", one())  # an exercise that no longer exists disturbs nobody
    cu.progress(export=True)
    content = json.loads((tmp_path / "my_progress.json").read_text())
    assert content["passed"] == {"Kernel regression": {"loo_residuals": content["day"]}}
    assert set(content) == {"day", "progress", "passed"}
    assert "nothing of your code" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(progress, "EXPORTED", str(tmp_path / "file" / "my_progress.json"))
    cu.progress(export=True)
    assert "cannot be written here" in capsys.readouterr().out
