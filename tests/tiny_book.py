"""A course that a test makes for itself: its manifest, and a chapter that shows what a notebook may hold."""

from pathlib import Path

from course_utils.studio.manifest import Chapter

TINY = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tiny

# %%
import io
import os
import sys
import time

import ipywidgets
from IPython.display import Image
from matplotlib.figure import Figure

# %%
figure = Figure()
figure.subplots().plot([1, 2])
buffer = io.BytesIO()
figure.savefig(buffer, format="png")
Image(buffer.getvalue(), metadata={"alt": "A line that rises from one to two"})

# %%
ipywidgets.IntSlider(3)

# %% tags=["nbval-ignore-output"]
print(f"{time.perf_counter():.4f} s for {time.time_ns()} things")

# %% tags=["solution"] jupyter={"source_hidden": true}
for word in ("merged", "into", "one"):
    print(word, flush=True)
    time.sleep(0.05)

# %%
sys.executable, os.environ.get("COURSE_STRICT")
"""


def book(*stems: str) -> str:
    """The text of a book.toml with chapters of these names, the title behind the number."""
    chapters = "".join(
        f'[[chapter]]\nnotebook = "{stem}"\ntitle = "{stem[3:].capitalize()}"\n\n' for stem in stems
    )
    course = 'title = "Tiny"\nauthors = []\nlicense = "MIT"\nrepository = ""'
    return f"[course]\n{course}\n\n{chapters}"


def write_book(root: Path, source: str = TINY) -> Chapter:
    """Write a course of one chapter, whose notebook is not made yet."""
    (root / "notebooks" / "source").mkdir(parents=True)
    (root / "book.toml").write_text(book("00_tiny"))
    chapter = Chapter("00_tiny", "Tiny", root=root)
    chapter.source.write_text(source)
    return chapter
