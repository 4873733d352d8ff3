"""What makes, checks, publishes and hands out the course; `python -m course_utils.studio` is its command."""


class StudioError(RuntimeError):
    """What a command says in a sentence, in the place of a traceback."""
