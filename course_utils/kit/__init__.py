"""What lessons are made with: the engines, which know no chapter.

check, on_paper, tracing         an exercise's check and its report
registry, progress               all checks and explorers by name; what a reader has passed and answered
predict, quiz                    questions before a result, and after a section
guard, equal, sanity_checks      claims that CI holds, equality with PyTorch, questions before training
explorer, painting, panel, page  a picture with sliders: what it is, its pixels, its widget, its HTML
needed, runs                     trainings made beforehand, and the code of a chapter that they run
drawings                         boxes, arrows and tensors with their shapes, as SVG
live                             trained networks that answer in the page
"""
