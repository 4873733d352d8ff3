"""What makes, checks, publishes and hands out the course; `python -m course_utils.studio` is its command."""
