"""The course as a Jupyter Book: ``python -m course_utils.studio.book build|serve|check``.

`build` turns ``book.toml`` and the executed notebooks into the sources of a book: widgets as HTML (:mod:`.widgets`),
cells as a reader needs them (:mod:`.transforms`), the cover, and what stands beside the chapters (:mod:`.pages`).
Jupyter Book renders them (:mod:`.build`), and :mod:`.check` looks at the result. Nothing is executed, and the book
asks no other host for anything: formulas, fonts, sliders and search come from its own folder.
"""
