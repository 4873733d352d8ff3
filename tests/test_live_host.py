"""The scripts of live widgets without a browser: one engine a process, whatever runs around it."""

import subprocess
import sys

import pytest
from py_mini_racer import JSEvalException

from course_utils.files import ROOT
from course_utils.kit.live import heads, host

CELLS = """
import asyncio
from course_utils.kit.live import heads

async def cell():
    return heads().form()

assert asyncio.run(cell()) == heads().form()  # the second, after the loop of the first has ended
"""


def test_it_outlives_the_loop_in_which_it_began_and_ends_with_the_process():
    done = subprocess.run([sys.executable, "-c", CELLS], cwd=ROOT, timeout=300, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_a_mistake_in_a_script_is_not_taken_for_a_wrong_argument():
    with pytest.raises(JSEvalException, match="TypeError"):
        host.first_state("heads", heads().files(), [], {})


def test_a_place_of_an_address_is_written_as_text():
    heads()
    assert host._engine().eval("live_parts.named('<b>.<i>')") == "layer &lt;b&gt;, head &lt;i&gt;"
