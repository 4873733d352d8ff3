"""A row of a table of mistakes."""

from collections.abc import Callable


class Mistake:
    """A wrong answer of one expression, named by its row; `what` is the docstring that a longer one has.

    A class body turns it into the function itself.
    """

    def __init__(self, what: str, function: Callable):
        self.what, self.function = what, function

    def __set_name__(self, owner: type, name: str):
        self.function.__name__, self.function.__doc__ = name, self.what
        setattr(owner, name, self.function)


def wrong(what: str, function: Callable) -> Mistake:
    """A row: what is wrong, and the answer."""
    return Mistake(what, function)
