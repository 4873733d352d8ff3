"""What several test modules share."""

import os
import shutil

import pytest
import torch
from hypothesis import settings

os.environ["COURSE_STRICT"] = "1"  # a claim that does not hold is an error here

settings.register_profile("course", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("course")


MARKS = {"slow", "notebook", "browser"}  # what `make quick` leaves out


def pytest_collection_modifyitems(items):
    """Mark what opens a browser or is a notebook's cell, and put the quick tests first."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
    items.sort(key=lambda item: not MARKS.isdisjoint(mark.name for mark in item.iter_markers()))


@pytest.fixture(autouse=True)
def _same_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium or Chrome; without one the test is skipped, in CI it fails."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    reason = "no Chromium found on PATH; install it to run the browser tests"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
