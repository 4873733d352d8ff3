# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training transformers: a first generation
#
# A well-known lecture on Transformers ([Kak, 2025](https://engineering.purdue.edu/DeepLearn/)) builds its translator in a way of its own, and then asks honestly why it doesn't translate.
# On this page we rebuild that model, count its parameters to the last digit, train it, and look at twenty sentences that it has read and twenty that it hasn't.
# At the end we compare the lecture's two orders of norm on sentences that people wrote.

# %%
import inspect

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.layers import Residual
from course_utils.lessons.training_transformers.runs import found, load_training_runs
from course_utils.lessons.training_transformers.small_spanish import spanish_world
from course_utils.lessons.training_transformers.variants import (
    SHORTCUTS,
    FirstDecoderLayer,
    FirstGeneration,
    SlicedHeads,
    real_run,
    show_real_curves,
)

cu.seed_everything(0)

# %% [markdown]
# ## A first generation
#
# The lecture's first model differs from [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) in more than the place of its norms:
#
# - A head reads a *slice* of the embedding, and no $W_O$ mixes the heads afterwards.
# - Scores are divided by $\sqrt{d}$ *after* the softmax.
# - Words that aren't known yet are set to zero instead of masked, and each decoder layer masks *features*: if three words are known, three features of every token survive.
# - Feed-forward layers and the heads of the cross-attention read the whole sentence as one long vector.
# - There is no residual connection around the encoder's self-attention and around the cross-attention.
#
# Here are its attention and its decoder layer, in our own code.

# %%
for part in (SlicedHeads, FirstDecoderLayer):
    print(part.__name__, inspect.getsource(part.forward), sep="\n")

# %% [markdown]
# Does a later word leak into an earlier output, as it would without a mask?
# And how much of its input does a decoder layer really read?
# Let's change the last target word and compare the outputs, and then check which features get a gradient.

# %%
world = spanish_world()
shape = {"embed_dim": 32, "num_heads": 4, "num_layers": 2}
sizes = len(world.source_vocab), len(world.target_vocab)
first = FirstGeneration(*sizes, **shape)
sample = world.whole(world.val[:1])
logits = first(sample.source, sample.source_lens, sample.target_in)
changed = sample.target_in.clone()
changed[0, -1] = 7  # the last target word is another one
later = first(sample.source, sample.source_lens, changed)
leak = (later - logits)[0, :-1].abs().max().item()
print(f"a later word changes earlier outputs: {leak > 1e-5}")

words, memory = torch.randn(1, 12, 32, requires_grad=True), torch.randn(1, 12, 32)
output = first.decoder[0](words, memory, torch.tensor([3]))  # three words are known
(output * torch.randn_like(output)).sum().backward()
features = (words.grad.abs().amax(dim=(0, 1)) > 0).sum().item()
print(f"three words known: the decoder layer reads {features} of 32 features of each token")

# %% [markdown]
# So zeroing does hide the later words, at the price of one pass for each word.
# But the mask along the features hides nearly everything else as well.
#
# ### Counted to the last digit
#
# The flattened layers are expensive.
# The lecture prints 124,583,936 parameters for its encoder and 149,886,015 for its decoder.
# Can we find out which model that is?
# Let's build ours with sentences of 10 tokens, 256 features, 4 heads, four layers and 21,823 Spanish tokens, in which the heads of *every* attention read the flattened sentence.
# On PyTorch's `meta` device it costs no memory, because tensors there have a shape and no numbers.

# %%
length, width, heads, spanish = 10, 256, 4, 21_823
with torch.device("meta"):
    lecture = FirstGeneration(
        11_258, spanish, embed_dim=width, num_heads=heads, num_layers=4, length=length,
        flat_attention=True,
    )  # fmt: skip


def parameters_of(*modules):
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


encoder, decoder = parameters_of(lecture.encoder), parameters_of(lecture.decoder, lecture.output)
flat = parameters_of(*(layer.feed_forward for layer in [*lecture.encoder, *lecture.decoder]))
print(f"encoder {encoder:,}, decoder {decoder:,}")
print(f"in the flattened feed-forward networks: {flat / (encoder + decoder):.0%}")

# %% [markdown]
# The numbers agree to the last digit.
# Most of these parameters sit in feed-forward networks that treat a sentence as one vector of 2,560 numbers.
# (In the small models of this page only the cross-attention reads the flattened sentence, and self-attention reads it token by token.)
#
# ### What does each simplification cost?
#
# We put four of them into the chapter's model, one at a time, with post-norm and a warm-up.
# Here is the BLEU on validation after 280 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
stored = load_training_runs()
bleu = {
    name or "none": [run["bleu"] for run in found(stored, shortcut=name)]
    for name in ("", *SHORTCUTS)
}
costs = pd.DataFrame(bleu, index=[f"training {seed}" for seed in range(3)]).T
costs.rename_axis("simplification").round(2)

# %% [markdown]
# Sliced heads lose little, and they have only a fifth of the parameters of an attention.
# Scaling after the softmax costs about a tenth, and zeroed padding next to nothing here.
# Without the residual around cross-attention the model translates nothing in these 280 steps.
# We tried only one rate, so we can't say that it never would.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("No later word leaks, and with three words known three features are read."):
    assert features == 3 and leak < 1e-5

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Our model has the lecture's two numbers of parameters."):
    assert (encoder, decoder) == (124_583_936, 149_886_015)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Of the four simplifications, one prevents learning in 280 steps, and late scaling costs."
):
    assert (costs.loc["no residual around cross"] < 0.01).all()
    assert costs.loc["scaled after softmax"].max() < costs.loc["none"].min()

# %% [markdown]
# ## What twenty sentences show
#
# The lecture trains on 90,000 pairs for 40 epochs, which takes some 16 hours by its printed times (167 seconds for 200 steps, 25 minutes a pass), and then shows 20 translations.
# Each of them is printed with an `EOS` in front and its ten places filled up by more, which a reader has to cut off.
# By its own verdict 14 are correct, 2 correct in meaning and 4 wrong.
# They come from the very data that the model was trained on, with masking switched off, and the lecture itself concludes that this is no translator and that overfitting is the likely reason.
#
# We can see what such a list shows.
# Here are both models in small, trained on 300 pairs for 24 passes, at four rates each.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
generations = cu.stored_runs("training_transformers", "generations")
fig, ax = cu.subplots(
    width=6.4, height=3.0,
    alt="Training loss over 24 passes through 300 pairs, for the first generation and the standard model at four rates each. All fall from about 6; "
    "the standard model ends near 0 at the two largest rates, and the first generation ends between 1.2 and 2.4.",
)  # fmt: skip
styles = {"standard": ("key", "-"), "first generation": ("query", "--")}
labels = set()
for run in generations:
    kind = run.config["kind"]
    color, dash = styles[kind]
    label = None if kind in labels else kind
    labels.add(kind)
    ax.plot(*zip(*run.curves["loss"], strict=True), dash, color=cu.COLORS[color], label=label)
ax.set(xlabel="Pass", ylabel="Training loss per token", xlim=(0, None), ylim=(0, None))
ax.legend()
fig

# %% [markdown]
# All of them learn something.
# Take the first generation at the rate where it repeats its sentences best, and let it translate twenty sentences that it has read, and twenty that it hasn't (✓ is word for word the stored translation).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
twenty = pd.DataFrame([run.config | run.result for run in generations])
(at_best_rate,) = (
    run for run in generations if run.config["kind"] != "standard" and run.config["lr"] == 1e-3
)
columns = {}
for part in ("seen", "not seen"):
    examples = [example for example in at_best_rate.examples if example["part"] == part]
    columns[part] = [example["source"] for example in examples]
    columns[f"{part}, it says"] = [
        ("✓ " if example["said"] == example["target"] else "✗ ") + example["said"]
        for example in examples
    ]
pd.set_option("display.max_colwidth", 60)
pd.DataFrame(columns)

# %% [markdown]
# As in the lecture, more than half of the sentences that it has read are right, but none of the others.
# The standard model learns all twenty by heart at its larger rates, and even so it never has more than three of the others right.
# So what would more data do?
# Here is training B of the chapter on 300, 1,000 and all pairs, always with 280 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
by_size = pd.DataFrame(
    [(count, run["train_bleu"], run["bleu"])
     for count in (300, 1000, 3253) for run in found(stored, sentences=count)],
    columns=["pairs", "BLEU, seen", "BLEU, not seen"],
)  # fmt: skip
by_size.groupby("pairs").mean().T.round(2)

# %% [markdown]
# With 300 pairs the seen sentences are perfect, *better* than with ten times as many, and the unseen ones are poor.
# **Twenty seen sentences, however well translated, say nothing about unseen ones.**
# Nor do they show that a model overfits, because for that we need the unseen ones.
#
# ### More words, or more pairs?
#
# The lecture suspects its vocabulary of 11,258 English words, and says that at least five times as many would be needed.
# We can try that in small.
# A first model knows 200 words, a second one knows 1,000 but learns from equally many pairs, and a third one also has five times the pairs.
# Each gets 510 steps, and then it translates the same unseen sentences, once all of them and once only those in words that it knows.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
by_words = pd.DataFrame(
    [
        {"words": run.config["words"], "pairs": run.config["pairs"],
         "BLEU, in its words": run.result["bleu, its words"],
         "BLEU, any sentence": run.result["bleu, any"]}
        for run in cu.stored_runs("training_transformers", "vocabulary")
    ]
)  # fmt: skip
by_words = by_words.groupby(["words", "pairs"])
by_words.mean().round(2)

# %% [markdown]
# The lecture is right that words matter, because a model with 200 words can't say most sentences, however well it knows its own.
# But with five times the words and the same pairs, each word is read less often, and the model is less sure of the words that it has.
# Five times the pairs win back a part of that.
# So the two have to grow together, and the vocabulary alone doesn't make a model general.
# (These are generated sentences, three seeds each, and one learning rate.)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "More words help with any sentence and hurt in known words, and more pairs help with both."
):
    worst, best = by_words.min(), by_words.max()
    inside, anywhere = "BLEU, in its words", "BLEU, any sentence"
    assert worst[inside][200, 3000] > best[inside][1000, 15_000]
    assert worst[inside][1000, 15_000] > best[inside][1000, 3000]
    assert worst[anywhere][1000, 15_000] > best[anywhere][1000, 3000]
    assert worst[anywhere][1000, 3000] > best[anywhere][200, 3000]

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Each model repeats more than half of the seen sentences at some rate, and at none has it more than three unseen ones right."
):
    most = twenty.groupby("kind")[["seen, right of 20", "not seen, right of 20"]].max()
    assert most["seen, right of 20"].to_dict() == {"first generation": 11, "standard": 20}
    assert most["not seen, right of 20"].to_dict() == {"first generation": 0, "standard": 3}
    assert at_best_rate.result["seen, right of 20"] == 11

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With 300 pairs seen sentences are better than with all of them, and unseen ones are poor."
):
    low, high = by_size.groupby("pairs").min(), by_size.groupby("pairs").max()
    assert low["BLEU, seen"][300] > high["BLEU, seen"][3253]
    assert high["BLEU, not seen"][300] < 0.4 < 0.8 < low["BLEU, not seen"][3253]

# %% [markdown]
# ## Two orders of norm
#
# The lecture's second model has its norms before the sublayers, like most later ones.
# Here are the two encoder layers side by side.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
norm_box = {"color": "wash"}
cu.Drawing(
    """
    .   a0  .   .   b0  .
    .   a1  .   .   b1  .
    .   a2  .   .   b2  .
    .   a3  .   .   b3  .
    .   a4  .   .   b4  .
    .   a5  .   .   b5  .
    .   a6  .   .   b6  .
    .   .   .   .   b7  .
    """,
    nodes={
        "a0": cu.Box("x", shape="(n, d)", color="line"),
        "a1": cu.Box("self-attention"),
        "a2": cu.Circle("+"),
        "a3": cu.Box("norm", **norm_box),
        "a4": cu.Box("position-wise network", width=185),
        "a5": cu.Circle("+"),
        "a6": cu.Box("norm", **norm_box),
        "b0": cu.Box("x", shape="(n, d)", color="line"),
        "b1": cu.Box("norm", **norm_box),
        "b2": cu.Box("self-attention"),
        "b3": cu.Circle("+"),
        "b4": cu.Box("norm", **norm_box),
        "b5": cu.Box("position-wise network", width=185),
        "b6": cu.Circle("+"),
        "b7": cu.Box("norm, once, at the top", width=185, **norm_box),
    },
    arrows=["a0 -> a1 -> a2 -> a3 -> a4 -> a5 -> a6", "b0 -> b1 -> b2 -> b3 -> b4 -> b5 -> b6 -> b7",
            cu.Arrow("a0", "a2", around="left"), cu.Arrow("a3", "a5", around="left"),
            cu.Arrow("b0", "b3", around="left"), cu.Arrow("b3", "b6", around="left")],
    groups={"norm after: Post-LN": "a1 a2 a3 a4 a5 a6", "norm before: Pre-LN": "b1 b2 b3 b4 b5 b6"},
    alt="Two encoder layers. Left, norm after: x goes through self-attention and around it to a sum, then through a norm; "
    "the same with the position-wise network. Right, norm before: x goes through a norm and self-attention, and around both, to a sum; "
    "the same with the network; no norm lies on the way around. One norm stands at the top of the stack.",
    gap=(40, 20),
)  # fmt: skip

# %% [markdown]
# The line around the sublayers is the residual stream.
# On the left it passes through every norm, and on the right only through the one at the very top.
# (A pre-norm decoder layer has three such norms, because it has three sublayers.)
#
# What does that mean for training?
# Let's send a gradient down through a stack of 24 sublayers with random weights, and measure its size on the residual stream.


# %%
def gradient_sizes(norm_first, seed, height, through_f=True):
    """Size of the gradient on the residual stream, from the bottom to the top."""
    cu.seed_everything(seed)
    x = torch.randn(8, 10, 64, requires_grad=True)
    streams = [x]
    for place in range(height):
        f = cu.FeedForward(64, 128) if place % 2 else cu.MultiHeadAttention(64, 4)
        for weight in f.parameters():
            if weight.ndim == 2:
                nn.init.xavier_uniform_(weight)

        def sublayer(x, f=f, is_network=place % 2):
            added = f(x) if is_network else f(x, x, x)
            return added if through_f else added.detach()  # no way back through f

        streams.append(Residual(64, norm_first=norm_first)(streams[-1], sublayer))
    top = nn.LayerNorm(64)(streams[-1]) if norm_first else streams[-1]
    gradients = torch.autograd.grad((top * torch.randn_like(top)).sum(), streams)
    return [gradient.norm().item() for gradient in gradients]


height = 24  # try 2 … 32
ways = {"norm after": (False, True), "norm before": (True, True)}  # norm_first, through_f
ways["norm after, around f only"] = False, False
flows = {
    name: torch.tensor([gradient_sizes(first, s, height, through) for s in range(3)])
    for name, (first, through) in ways.items()
}
pd.DataFrame(
    {name: flow.mean(dim=0)[[0, height // 2, -1]].tolist() for name, flow in flows.items()},
    index=["bottom", "middle", "top"],
).T.round(1)

# %% [markdown]
# You may have read that gradients vanish with the norm after the sum.
# Here nothing vanishes at the bottom, because what comes back *through* the sublayers makes up for what the norms take away (the last row leaves it out).
# The orders differ at the **top**, where the gradient is more than three times larger with the norm after.
# [Xiong et al. (2020)](https://arxiv.org/abs/2002.04745) prove bounds of this kind for the weights of the last layer.
# A large gradient by itself doesn't explain the failure, though, because Adam divides each gradient by its size.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the start the orders differ at the top of the stack, and hardly at the bottom.",
    given=height == 24,
):
    ratio = flows["norm after"] / flows["norm before"]
    assert (ratio[:, -1] > 3).all() and (ratio[:, 0] > 0.5).all() and (ratio[:, 0] < 1.5).all()
    around = flows["norm after, around f only"]
    assert (around[:, 0] < 0.01 * flows["norm after"][:, -1]).all()

# %% [markdown]
# ### Real sentences
#
# The lecture reports that its pre-norm model needs no warm-up, but takes 100 epochs to reach what the post-norm model reaches in 40.
# Unless the rate is tuned for each order, that may be a fact about the rate.
# Let's train both on 20,000 pairs that people wrote ([Tatoeba](https://tatoeba.org), paired by [manythings.org](https://www.manythings.org/anki/), CC BY 2.0 FR), once each.
# Both have 256 features, four layers on either side, six epochs, and a warm-up of 200 steps.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
show_real_curves()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
orders = {f"norm {place}": real_run(norm_first=place == "before") for place in ("after", "before")}
measures = {
    "val_loss": "loss, validation",
    "test_bleu": "BLEU, test",
    "seen_bleu": "BLEU, 500 training pairs",
}
pd.DataFrame(
    {name: [run.result[key] for key in measures] for name, run in orders.items()},
    index=list(measures.values()),
).T.round(3)

# %% [markdown]
# The curves nearly coincide, and the two measures disagree about the order.
# So with a warm-up both orders learn about equally fast here, and one training each can't tell them apart.
# (We didn't train them without a warm-up, where the chapter finds its large difference, nor at other rates, nor for longer.)
# Again the seen sentences look much better than the unseen ones.
#
# Here are the first six test sentences whose English words are all known, well translated or not.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
both_say = zip(*(run.examples for run in orders.values()), strict=True)
pd.DataFrame(
    [
        {
            "English": one["source"],
            "norm after": one["said"],
            "norm before": other["said"],
            "a right answer": one["references"][0],
        }
        for one, other in both_say
    ]
)

# %% [markdown]
# *Quiero beber algo de agua* is right, though not in the words of the data, and BLEU counts that against it.
# Three of the sentences need a Spanish word that occurs fewer than three times in the training pairs, so neither model can write it.
# And the third sentence loses *web*, a word that both know.
#
# Where there is a GPU, `make gpu CHAPTER=12` trains both models at the lecture's size, on 90,000 of the 93,582 pairs that have at most eight words on either side.
# It keeps twenty translations of sentences that they have read, and twenty of sentences that they haven't.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With a warm-up both orders learn real sentences, and loss and BLEU disagree about the order."
):
    after, before = (run.result for run in orders.values())
    assert after["steps"] == before["steps"] and before["parameters"] - after["parameters"] == 1024
    between_seeds = [run["bleu"] for run in found(stored, norm_first=False)]
    gap_of = before["test_bleu"] - after["test_bleu"]
    assert 0 < gap_of < max(between_seeds) - min(between_seeds)
    assert 0 < before["val_loss"] - after["val_loss"] < 0.05
    for run in orders.values():
        losses, scores_by_epoch = (run.curves[name] for name in ("val_loss", "bleu"))
        assert min(losses, key=lambda point: point[1]) == losses[-1]
        assert max(scores_by_epoch, key=lambda point: point[1]) == scores_by_epoch[-1]
        assert 0.25 < run.result["test_bleu"] < run.result["seen_bleu"] - 0.1

# %% [markdown]
# Next: [GPT](13_gpt.ipynb).
#
# ## References
#
# - Kak, A. (2025).
#   [Deep learning lectures](https://engineering.purdue.edu/DeepLearn/).
#   Purdue University.
#   The transformer lecture.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745).
#   ICML.
