"""The explorer of *Scoring functions*."""

from course_utils.lessons.scoring_functions.dot_products import dot_products

__all__ = ["dot_products"]
