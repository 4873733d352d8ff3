"""A wheel carries the course's data, manifest and notebooks inside the package; an editable one finds them beside it.

All else about the package stands in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

COURSE = ("book.toml", "constraints.txt", "data", "notebooks", "pyproject.toml")
UNWANTED = shutil.ignore_patterns("__pycache__", "source", "images", ".*")


class WithCourse(build_py):
    """What `course_utils.files.ROOT` is to a wheel: the folder `_course` of the package."""

    def run(self) -> None:
        """Copy the package, and the course into it."""
        super().run()
        if self.editable_mode:
            return
        inside = Path(self.build_lib, "course_utils", "_course")
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir(parents=True)
        for part in COURSE:
            if not Path(part).exists():
                continue
            if Path(part).is_dir():
                shutil.copytree(part, inside / part, ignore=UNWANTED)
            else:
                shutil.copy(part, inside / part)


setup(cmdclass={"build_py": WithCourse})
