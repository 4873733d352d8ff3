"""The engines that lessons are made with. `.importlinter` holds their order.

They find a lesson by the name of its folder. Some of `live.widgets` and a line of `doctor` belong to one chapter.

An exercise: a notebook calls `cu.checks.my_mask(my_mask)`.

    registry       finds the Check in lessons/<slug>/checks.py, by the name of its variable
    check          the Check: properties, each a sentence, a test and hints; on_paper makes one for written answers
    expect         what a test calls, such as expect_close; `Unmet` is its error
    candidate      runs one test on the learner's function, and puts its error into words; tracing counts calls
    report         the Report that the cell shows
    answers        the answers that were checked, in the reader's home; passed: the exercises that passed, `cu.choose`
    progress       the table `cu.progress()`
    exercises      finds stub, check and solution among a notebook's cells

A page's other pieces:

    explorer       a picture with sliders; controls, painting (its pixels), panel (its widget), page (its HTML)
    live           trained networks that answer in the page, in JavaScript
    drawings       boxes, arrows and tensors with their shapes, as SVG; stages: one drawing after another
    predict, quiz  a question before a result; questions after a section, at a chapter's end, and recalled later
    guard, equal   a claim with its conditions; equality with a reference; sanity_checks: before a training
    runs           trainings made beforehand and stored: their declaration, making, and reading
    repeat         a stored run made again and compared; comparison: each side at its best rate
    doctor         a report on the installation

What these share: assets (styles and scripts), rich_text (texts as HTML), contents (`book.toml`), release, stored_run,
stored_model (networks in data/models), and needed (the statements that a name depends on).
"""
