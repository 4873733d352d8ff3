"""Data for the chapters: `regression` draws it, `words` reads what stands in the folder data/."""

from course_utils.data.regression import RegressionData, noisy_sine, two_moons

__all__ = ["RegressionData", "noisy_sine", "two_moons"]
