"""Grading: a folder of submissions becomes marks and pages.

A submission's code runs in a process of its own, under limits; the checks run in the instructor's.

    submissions   whose notebooks lie in a folder, and what stands in them
    wire          values and tensors between the two processes, as JSON and raw bytes: nothing is unpickled
    sandbox       a warm process under bubblewrap, or without, that forks one for each exercise
    forks         the warm process, and the limits of those that it forks
    worker        what runs in there: the submission's function, called with what is sent; `traces`: what a call does
    parcel        what is sent to it
    remote        what the checks get instead: a function and a module that ask the worker
    judge         one submission, exercise after exercise
    report        marks.csv, a page for each student, and the overview
"""
