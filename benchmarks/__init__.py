"""Side-by-side measurements against what a user would pick instead.

A time alone says more about the machine than about the code, so every table gives ratios of
times taken in one run, one process at a time, with the loss and, where there is a truth, the
adjusted Rand score beside them: a fast wrong answer is shown as wrong.
"""
