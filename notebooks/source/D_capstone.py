# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A project of your own
#
# The course ends with a question that nobody has answered for you. It may be small: what counts is that the answer would
# convince somebody who doubts it.
#
# ## What to hand in
#
# One notebook, of the length of a chapter, with six parts:
#
# 1. **The question**, in one sentence that could turn out false. "Does attention help?" cannot. "A translator without its
#    second head loses more BLEU on long sentences than on short ones" can.
# 2. **A prediction**, with a number, written down before the first run.
# 3. **A baseline**: the dullest method that could explain the result. Always the mean, a bag of words, a bigram, a diagonal
#    instead of a map, the same model untrained. It gets the same data, steps and tuning as your model.
# 4. **The experiment**: what you change, and that it is one thing. At least three seeds on *both* sides. Validation data
#    for choosing, the test data once, at the end.
# 5. **The result**: a table or a picture with every seed in it, and the number that would have refuted you.
# 6. **What it does not show**: what another explanation would look like, and which run would decide.
#
# ## Questions to begin with
#
# - Give [Kernel regression](02_kernel_regression.ipynb) a width for each key, learned. Does the fit at new points get better,
#   or the fit at the old ones only?
# - Take the alignments of [Bahdanau attention](06_bahdanau_attention.ipynb) and shuffle the source words. How much of the
#   agreement with the gold links was word order?
# - Train the same model with sinusoidal, learned, rotary and no [positions](09_positions.ipynb), and test it on sentences
#   longer than all it has seen.
# - Remove heads of a trained [Transformer](10_transformer.ipynb) one by one, in order of some measure. Which measure finds
#   the ones that matter? Random order is the baseline.
# - Use data of your own: `cu.load_tatoeba` reads English–French and English–Spanish, `cu.load_fashion_mnist(folder=…)` any set
#   in the four files of MNIST, and `cu.read_image` any picture.
#
# ## How it is judged
#
# | | Not yet | Good | Very good |
# |---|---|---|---|
# | **Question** | cannot turn out false | can, and matters to the model | follows from a claim in a chapter or a paper, which is cited |
# | **Baseline** | none, or one that nobody would use | dull, and trained with the same budget | two, one of which could well have won |
# | **Evidence** | one seed, or seeds on one side | three seeds on both sides, all shown | also the spread against the difference, in words |
# | **Code** | runs on one machine, in one order | *Restart Kernel and Run All Cells* works, with seeds | a new part is held against a known one, with `cu.equal` |
# | **Conclusion** | says more than the table | says what the table says | names the run that would change its mind |
#
# A negative result is judged like a positive one. A prediction that failed is no fault; one that is missing is.

# %% [markdown]
# ## A form to begin with
#
# The smallest experiment of this kind, to be replaced by yours.
#
# **Question.** A width of kernel regression that leave-one-out chooses has a smaller error at new points than a width that
# has seen no data. **Prediction.** Its mean squared error is smaller by 0.05 or more. **Baseline.** A tenth of the interval:
# 0.5. **Experiment.** Only the width differs. The data sets differ by their seed, the same for both.

# %%
import pandas as pd
import torch

import course_utils as cu

cu.seed_everything(0)

# %%
widths = torch.linspace(0.05, 2.0, 40)
new = torch.linspace(0, 5, 200)


def errors(seed):
    """The mean squared errors at new points: the chosen width, and a width of 0.5."""
    data = cu.noisy_sine(40, seed=seed)
    chosen, _ = cu.best_width(data.x, data.y, widths)
    both = []
    for width in (chosen, 0.5):
        fit = cu.nadaraya_watson(new, data.x, data.y, width=width)
        both.append((fit - data.truth(new)).square().mean().item())
    return both


columns = ["width by leave-one-out", "width 0.5"]
table = pd.DataFrame([errors(seed) for seed in range(20)], columns=columns)
table["difference"] = table[columns[0]] - table[columns[1]]
table.index.name = "seed"
table.round(3)

# %%
for seeds in (5, 20):
    some = table["difference"][:seeds]
    print(f"{seeds:2} seeds: mean difference {some.mean():.3f} ± {some.sem():.3f}")

# %% [markdown]
# **Result.** With the first five seeds the mean difference, 0.013, is smaller than its standard error, 0.032: they decide nothing.
# So we ran 15 more. With twenty, the chosen width is *worse* by 0.106 ± 0.040, and the prediction has failed. In six rows
# leave-one-out chose 0.5 itself, and the difference is 0; the loss comes from a few data sets, above all seed 16.
#
# **What it does not show.** That leave-one-out is bad: 0.5 may happen to fit this one curve. The run that would decide
# has other curves, or a baseline of 0.25 and of 1, fixed before.
