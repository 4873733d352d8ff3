"""book.toml: what it gives, and that each mistake in it is named by file and key."""

import pytest

from course_utils.studio import StudioError
from course_utils.studio.manifest import Stop, load

BOOK = """
[course]
title = "Attention"
authors = ["One", "Two"]
license = "MIT"
repository = ""

[[part]]
title = "Weights"

[[part]]
title = "Images"

[[path]]
title = "To keys"
chapters = ["00_start", { chapter = "01_keys", sections = ["Widths"] }]

[[chapter]]
notebook = "00_start"
title = "Start here"

[[chapter]]
notebook = "01_keys"
title = "Keys"
part = "Weights"
further = "More keys"
prerequisites = ["00_start"]
gpu = true

[[chapter]]
notebook = "02_pooling"
title = "Pooling | kernels"
part = "Images"
prerequisites = ["00_start", "01_keys"]
gpu = false

[[appendix]]
notebook = "A_names"
title = "Names elsewhere"
"""
STEMS = ("00_start", "01_keys", "01_keys_further", "02_pooling", "A_names")


@pytest.fixture
def book(tmp_path):
    """A course on disk; called with a replacement, it writes a changed manifest."""
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    for stem in STEMS:
        (tmp_path / "notebooks" / f"{stem}.ipynb").touch()
        (tmp_path / "notebooks" / "source" / f"{stem}.py").touch()

    def write(old="", new=""):
        assert old in BOOK
        (tmp_path / "book.toml").write_text(BOOK.replace(old, new, 1), encoding="utf-8")
        return tmp_path / "book.toml"

    return write


def test_the_manifest_gives_the_course_and_its_notebooks_in_order(book):
    path = book()
    course = load(path)
    assert (course.title, course.authors, course.license) == ("Attention", ("One", "Two"), "MIT")
    assert course.parts == ("Weights", "Images")
    assert course.paths[0].stops == (Stop("00_start"), Stop("01_keys", ("Widths",)))
    assert [(page.notebook, page.kind, page.part, page.gpu) for page in course.notebooks] == [
        ("00_start", "chapter", "", False),
        ("01_keys", "chapter", "Weights", True),
        ("01_keys_further", "further", "Weights", False),
        ("02_pooling", "chapter", "Images", False),
        ("A_names", "appendix", "", False),
    ]
    further, pooling = course.notebooks[2:4]
    assert further.title == "More keys" and further.prerequisites == ("01_keys",)
    assert (pooling.number, pooling.slug) == ("02", "pooling")
    assert pooling.ipynb == path.parent / "notebooks" / "02_pooling.ipynb"
    assert pooling.source == path.parent / "notebooks" / "source" / "02_pooling.py"


STOPS = '["00_start", { chapter = "01_keys", sections = ["Widths"] }]'
MISTAKES = {
    "syntax": ('title = "Keys"', 'title = "Keys', "not valid TOML: .*line 24"),
    "no course": (BOOK.split("[[")[0], "", "at the top: 'course' is a required property"),
    "missing key": ('license = "MIT"', "", "course: 'license' is a required .* keys are title,"),
    "unknown key": ("gpu = false", "gup = false", r"chapter\[2\]: .*'gup' was.* keys are .* gpu"),
    "suffix": (
        'notebook = "01_keys"',
        'notebook = "01_keys.ipynb"',
        r"chapter\[1\].notebook: '01_keys.ipynb'",
    ),
    "unknown part": ('part = "Images"', 'part = "Imgs"', r"chapter\[2\].part: 'Imgs' is none of"),
    "slug": ('= "02_pooling"', '= "02_keys"', "02_keys: 'keys' is the name"),
    "unknown need": ('= ["00_start"]', '= ["00_strt"]', r"\[1\].prerequisites: '00_strt' is no"),
    "unknown stop": (STOPS, '["01_kexs"]', r"path\[0\].chapters: no chapter .* '01_kexs'"),
    "backwards": (STOPS, '["01_keys", "00_start"]', r"path\[0\].chapters: .* not in the order"),
    "no stop": (STOPS, '[{ sections = ["Widths"] }]', r"path\[0\].chapters\[0\]: {'sections'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_by_file_and_key(book, name):
    old, new, message = MISTAKES[name]
    with pytest.raises(StudioError, match=rf"^book\.toml: .*{message}"):
        load(book(old, new))


@pytest.mark.parametrize("folder", ["", "source/"])
def test_manifest_and_files_on_disk_have_to_agree(book, folder):
    path, suffix = book(), "py" if folder else "ipynb"
    file = path.parent / "notebooks" / f"{folder}02_pooling.{suffix}"
    stray = file.rename(file.with_stem("07_stray"))
    with pytest.raises(StudioError, match=rf"notebooks/{folder}02_pooling.{suffix} is not on d"):
        load(path)
    assert len(load(path, files=False).chapters) == 3
    file.touch()
    with pytest.raises(StudioError, match=rf"none is notebooks/{folder}{stray.name}"):
        load(path)
