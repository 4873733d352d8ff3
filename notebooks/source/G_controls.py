# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A control is a tuned control
#
# Can attention do what an average with a [hidden layer](C_glossary.ipynb#hidden-layer) cannot?
# On [a further page of Self-attention](07_self_attention_further.ipynb#It-and-its-adjective) both were trained to find the gender of *it*, with about the same number of parameters and for the same number of steps.
# The table shows the **accuracy** of both, the share of right answers, at three learning rates.
# Choose one rate, and say which model is better.

# %%
import pandas as pd

import course_utils as cu
from course_utils.kit.comparison import Share, table

# %%
sides = ("two attentions", "average, hidden layer")
stored = {side: cu.stored_runs("self_attention", "reader", kind=side) for side in sides}
runs = [run for side in sides for run in stored[side]]
shares = table(runs, "it").pivot(index="rate", columns="kind", values="it")[list(sides)]
shares.round(2)

# %% [markdown]
# At a rate of 0.003 attention is ahead, at 0.01 the two are level, and at 0.03 the average is ahead.
# Each number is a mean over three seeds.
# The next table counts how many of the three have an accuracy above 0.95. In parentheses is the range that three tries allow, the Wilson interval.

# %%
every = pd.DataFrame([run.config | run.result for run in runs])
learned = every["it"].gt(0.95).groupby([every["rate"], every["kind"]])
learned.agg(lambda seeds: Share(int(seeds.sum()), len(seeds))).unstack()[list(sides)]

# %% [markdown]
# The three seeds always agree, and still the comparison is unfair.
# Seeds tell us how much one training differs from the next, but three seeds at 0.003 would have proved one thing, and three at 0.03 the opposite.
#
# A rate belongs to a model as its weights do.
# That is why each side gets its own rate, the best of several, chosen by something other than the result that we want to report.

# %%
tuned = cu.stored_runs("self_attention", "reader", highest="it, training")
tuned = [run for run in tuned if run.config["kind"] in sides]
heads = {"it, training": "training accuracy", "it": "test accuracy"}
table(tuned, *heads).rename(columns=heads).round(dict.fromkeys(heads.values(), 2))

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Which model is ahead depends on the rate, and at their own best rates the two are level."
):
    ahead = shares[sides[0]] - shares[sides[1]]
    assert ahead[0.003] > 0.1 and abs(ahead[0.01]) < 0.02 and ahead[0.03] < -0.3
    assert min(run.result["it"] for run in tuned) > 0.95

# %% [markdown]
# Attention and the average are level.
# These runs kept no [validation set](C_glossary.ipynb#validation-set), so the rates are chosen by the accuracy on the training set.
# Attention reaches 1.00 there at 0.003 and at 0.01, and the tie goes to the smaller rate.
# This is the smallest rate that we tried. If an accuracy could be above 1.00, we would have to try smaller ones.
#
# ## Does a wider network help?
#
# The same trap waits where there is a validation set to choose by.
# Here the translator of [Sequence to sequence](05_sequence_to_sequence.ipynb#Is-the-vector-too-small?) is compared with one of twice the width, trained for the same number of epochs.
# Two columns show the exact-match accuracy, on short and on long sentences of the test set.

# %%
wide = cu.stored_runs("sequence_to_sequence", "fixed_context", passes=24)
loss, short, long = "validation loss", "exact match up to 5 tokens", "exact match of 8 to 10 tokens"
heads = {"val_loss": loss, "test_exact, up to 5": short, "test_exact, 8 to 10": long}
room = table(wide, *heads).rename(columns={**heads, "hidden_dim": "width"})
room = room.drop(columns=["passes", "source"])
room.round(dict.fromkeys(heads.values(), 2))

# %% [markdown]
# At a rate of 0.009 the wider translator is behind in every column, but by less than the seeds differ among themselves.
# At the two lower rates it is ahead in every column.
# The validation loss chooses 0.004 for both translators. This rate lies between the other two, so we write that the wider translator is ahead.
#
# It would be tempting to add "and most where sentences are long", because the gain on long sentences is the largest.
# But there are only 55 long sentences and three seeds, and the two gains differ by little more than chance alone would make them.
# An exact match also gets harder with every token, so the same improvement per token shows more in a long sentence.
# We don't write what the data don't resolve.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Twice the width is behind at 0.009 and ahead at the two lower rates, and 0.004 is chosen."
):
    means = room.set_index(["rate", "width"])
    gain = means.xs(192, level=1) - means.xs(96, level=1)
    assert (gain.loc[0.009, [short, long]] < 0).all() and gain.loc[0.009, loss] > 0
    lower = gain.loc[[0.002, 0.004]]
    assert (lower[[short, long]] > 0).all(axis=None) and lower[loss].max() < 0
    assert (means[loss].groupby("width").idxmin().str[0] == 0.004).all()

# %% [markdown]
# ## Before you write "because"
#
# - What would the dullest explanation be? A linear model, a look-up, an average with a hidden layer?
#   Run it.
# - Give both sides three rates and three seeds, until the curves are flat.
# - Choose by validation, and go on if the best rate is at the edge. Show the rate beside the result, and report seeds that fail.
# - Ask somebody else to reverse your result by changing a rate, a budget, or a size. If they can, don't claim it.
