"""What belongs to the chapters, one folder each, named by its slug.

A folder holds `checks.py`, `explorer.py`, `quiz.toml`, `runs.py` and what only its
chapter needs. Lessons import the library, the kit and earlier lessons.
"""
