"""The course as a Jupyter Book: ``python -m course_utils.studio.book build|serve|check``.

``build`` reads ``book.toml`` and the executed notebooks, gives explorers their pages of frames (:mod:`.explorers`),
carries tags and alt texts over to what the book understands (:mod:`.transforms`), writes the sources
of the book into ``_build/source`` (:mod:`.pages`), has Jupyter Book make ``_build/html`` of them
(:mod:`.build`) and looks at the result (:mod:`.check`). It executes nothing, and the book asks no other host for
anything: formulas, fonts, sliders and search come from its own folder.
"""
