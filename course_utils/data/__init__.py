"""Data for the chapters: `regression` draws it, `words` reads it from the folder data/."""

from course_utils.data.regression import RegressionData, noisy_sine, two_moons
from course_utils.data.words import WordTable, load_words

__all__ = ["RegressionData", "WordTable", "load_words", "noisy_sine", "two_moons"]
