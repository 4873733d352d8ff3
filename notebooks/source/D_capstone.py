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
# The course ends with a question that nobody has answered for you.
# It may be small, as long as the answer would convince somebody who doubts it.
#
# ## What to hand in
#
# Hand in one notebook of at most 2,000 words, which runs on a laptop in ten minutes.
# If something trains longer, store its result in a file, and add the function that made it.
# Your notebook has six parts:
#
# 1. **The question**, in one sentence that could turn out false.
#    "Does attention help?" cannot.
#    "A translator without its second head loses more BLEU on long sentences than on short ones" can.
# 2. **A prediction**, with a number, and the number that would refute it.
#    Write it down before the first run, where the date can be seen: in a commit, or in a message to the person who will judge.
# 3. **A baseline**: the simplest method that could explain the result.
#    It may always answer the mean; it may be a bag of words, a bigram, a diagonal in place of a map, or the same model untrained.
#    It gets the same data, steps and tuning as your model.
# 4. **The experiment**: change one thing, and say which.
#    Use at least three seeds on *both* sides. Fix their number before the first run, and if you add seeds later, report these separately, too.
#    Choose by a validation set, and use the test set once, at the end.
# 5. **The result**: a table or a picture with every seed in it, the difference beside its spread, and what became of the prediction.
# 6. **What it does not show**: another explanation of the result, and the run that would decide between the two.
#
# ## Questions to begin with
#
# - Let [Kernel regression](02_kernel_regression.ipynb) learn a width for each key.
#   Does the fit get better at new points, or only at the old ones?
#   One learned width for all keys is the baseline.
# - Take the alignments of [Bahdanau attention](06_bahdanau_attention.ipynb) and shuffle the source words.
#   How much of the agreement with the alignments made by hand came from word order alone?
#   The baseline is the diagonal, on shuffled words as well.
# - Train the same model with sinusoidal, learned, rotary and no [positions](09_positions.ipynb), and test it on sentences longer than any in the training set.
#   How low can the loss of a model get that doesn't know the order?
# - [Ablate](C_glossary.ipynb#ablation) heads of a trained [Transformer](10_transformer.ipynb) one by one, in order of some measure.
#   Which measure finds the heads that matter?
#   The baseline is a random order.
# - Forbid patches of a picture, as in [Vision transformers](15_vision_transformers.ipynb), until the model names another class.
#   Does the model that gives in after the fewest forbidden patches also make the most mistakes on new pictures?
#   Forbid patches at random as the baseline.
# - Give the pictures of [Attention between pixels](16_attention_between_pixels.ipynb#Counting-or-binding) twice as many colors, or two empty symbols for each filled one.
#   How many numbers does a summary need before it binds?
#   The baseline is the chapter's counting baseline, computed for your pictures.
# - Forbid a word of the caption in [a diffusion model](17_diffusion.ipynb) in some of the steps only.
#   In which steps does the word decide what is drawn?
#   The same number of steps, chosen at random, is the baseline.
# - *Find the layer that …* looks something up in [a real language model](18_real_weights.ipynb#In-which-layer?), in a sentence of your own such as *The opposite of hot is*.
#   Print the sentence's tokens first, so that you forbid the right position.
#   Write ten versions of the sentence, predict the layer, and forbid attention to the word in one layer at a time.
#   Is the answer lost in one layer, or do several share the work?
#   As the baseline, forbid another word of the sentence. There is only one model, so three sets of versions take the place of the three seeds.
#   If you don't have the file of weights, ask the stored translator of [Translating](11_translating.ipynb) which of its eight heads looks a noun up.
# - Use data of your own: `load_pairs` reads [pairs of sentences in any two languages](06_bahdanau_attention_further.ipynb#Pairs-of-your-own), `cu.load_fashion_mnist(folder=…, classes=…)` any set in the four files of MNIST, `cu.load_image_folder` pictures in one folder for each class, and `read_image` any picture.
#
# ## How it is judged
#
# | | Not yet | Good | Very good |
# |---|---|---|---|
# | **Question** | cannot turn out false | can, and the answer would change what one builds or believes | follows from a claim in a chapter or a paper, which is cited |
# | **Prediction** | missing, without a number, or later than the first run | a number, dated | also why this number, and which number refutes it |
# | **Baseline** | none, one that nobody would use, or one with less data, training or tuning | dull, and with the same budget | two, one of which could well have won |
# | **Evidence** | one seed, seeds on one side, or choices made on the test data | three seeds on both sides, all shown | also the difference beside its spread, and in words whether it is larger |
# | **Code** | stops, or gives other results than those shown | *Restart Kernel and Run All Cells* gives what is shown, with seeds | a new part is held against a known one, with `cu.equal` or by hand |
# | **Conclusion** | says more than the table | says what the table says, and one other explanation of it | names the run that would decide between the two |
#
# A negative result is judged like a positive one.
# A prediction that failed isn't a fault, but a missing prediction is.
#
# ### If you judge
#
# Each row gives 0, 1 or 2 points, twelve in all. It gives 0 if anything under *not yet* is true, and 2 if *good* and *very good* both are.
# We suggest that a project passes with 6 points, if baseline, evidence and conclusion have earned at least 1 each.
# In a quarter of an hour you can do three things:
#
# 1. Run all cells, and compare the table with the one handed in.
# 2. Take other seeds.
#    Does the conclusion hold, within the spread that is shown?
# 3. Read the table first and write down your own conclusion, in one sentence.
#    Then read theirs.
#    Whatever theirs says beyond yours needs a number.

# %% [markdown]
# ## A form to begin with
#
# Here is a very small experiment of this kind, for you to replace with your own.
#
# **Question.**
# In kernel regression, a width chosen by leave-one-out gives a smaller error at new points than a width chosen without any data.
# **Prediction.**
# The mean squared error of the chosen width is smaller by 0.05 or more. If it is equal or larger, the prediction has failed.
# **Baseline.**
# The width is 0.5, a tenth of the interval.
# **Experiment.**
# Only the width differs.
# There are five data sets with different seeds, the same five for both widths.

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
added, every = slice(5, 20), slice(0, 20)
parts = {"the first 5 seeds": slice(0, 5), "the 15 added": added, "all 20": every}
for name, part in parts.items():
    some = table["difference"][part]
    print(f"{name:18} mean difference {some.mean():.3f} ± {some.sem():.3f}")
signs = table["difference"].apply(lambda gap: (gap > 0) - (gap < 0)).value_counts()
print(f"worse {signs[1]} times, better {signs[-1]} times, equal {signs[0]} times")

# %% [markdown]
# **Result.**
# With the first five seeds the mean difference, 0.013, is smaller than its standard error, 0.032, so it decides nothing.
# We then ran 15 more, once.
# If you add seeds until you like the answer, you will like it in the end, so we report the 15 separately.
# In them the chosen width is *worse* by 0.137 ± 0.051, and in all twenty by 0.106 ± 0.040.
# The prediction has failed.
# The chosen width is worse in twelve data sets and better in two.
# In the other six, leave-one-out chose 0.5 itself, so the difference is 0.
# The large mean comes from a few data sets, above all from seed 16.
#
# **What it does not show.**
# The table doesn't show that leave-one-out is bad, because 0.5 may happen to fit this one curve.
# Other curves would decide, or two more baselines, 0.25 and 1, if we fix them beforehand.
#
# **Judged by the table above,** this project earns 8 of 12 points.
# Evidence and conclusion earn 2 each.
# The question cites no claim, the prediction does not say why 0.05, there is only one baseline, and no part is compared with a known one, so each of these four rows earns 1.
# In a real project, the commit would show the date of the prediction.
