"""What several test modules share."""

import os
import shutil

import pytest
import torch
from hypothesis import settings

os.environ["COURSE_STRICT"] = "1"  # a claim that does not hold is an error here

settings.register_profile("course", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("course")


# The order in which tests run: what says most in a second comes first.
ORDER = ("slow", "notebook", "browser")


def pytest_collection_modifyitems(items):
    """Mark what opens a browser, and put the quick tests first."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    items.sort(
        key=lambda item: max(
            (ORDER.index(m.name) + 1 for m in item.iter_markers() if m.name in ORDER), default=0
        )
    )


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
