"""An explorer in the book: not built yet."""


def page(explorer) -> str:
    raise NotImplementedError
