# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What heads learn
#
# **`gkbmtgkbmtgk` … You know the next letter. What algorithm does training write into a network that learns to predict it, too?**
#
# Two layers of attention, and nothing else, learn in seconds to continue random letters that repeat.
# This film of their training shows two maps that are computed from the weights alone, without any text: *where* a head of the second layer looks, and *what* it says there.
# The strongest color marks the largest entry of a row, and a green mark says that this entry lies on the diagonal.
# Go back to step 0, and then forward.
# What appears in the maps, and when does the loss notice?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.lessons.real_weights import heads, smollm
from course_utils.lessons.what_heads_learn import circuits, cuts
from course_utils.lessons.what_heads_learn.circuits import attend, letters_in, of_head
from course_utils.lessons.what_heads_learn.film import Film, by_followers, copied

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.film()

# %% [markdown]
# Near step 100 the loss falls off a cliff, and by then the diagonal wins in at least half of the rows of both maps.
# A network with one layer, in gray, has no cliff: in 8,000 steps its loss slides down to about 2.15.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - build a network of two attentions that copies what it has never seen;
# - read from weights where a head looks and what it says;
# - test such a reading by erasing, ablating, and patching.

# %% [markdown] tags=["needs"]
# You will need [Multi-head attention](08_multi_head_attention.ipynb), [The Transformer](10_transformer.ipynb), and [GPT](13_gpt.ipynb).
# The last section is about the model of [Real weights](18_real_weights.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("gpt", "real_weights", "multi_head_attention")

# %% [markdown]
# ## A circuit by hand
#
# Take a pencil and the letters `k g b k`.
# At the second `k` we want to say `g`.
# A head that compares letters can't find it, because `g` doesn't look like `k`.
# So a first layer has to prepare what the second one looks for:
#
# | | k | g | b | k |
# |---|---|---|---|---|
# | layer 0 looks one position back and notes | – | after k | after g | after b |
# | layer 1 asks *who is after k?* | | **yes** | no | no |
# | it says the letter that it finds | | | | **g** |
#
# The head in layer 0 is a **previous-token head**.
# The head in layer 1 is an **[induction head](C_glossary.ipynb#induction-head)**: it copies what came after the same token last time ([Olsson et al., 2022](https://arxiv.org/abs/2209.11895)).
# Together they are a **circuit**.
#
# ### Exercise 1 · Copy by hand
#
# *build · 8 minutes*
#
# Letters and positions are one-hot rows, `torch.eye(32)[ids]` and `torch.eye(48)[:n]`.
# `attend(scores, values)` is a causal attention with scores (n, n) that you choose.
# A score of 100 among zeros gets practically all of the weight.
#
# Layer 0 needs a shift: row i of `torch.eye(48).roll(1, 0)` has its 1 in column i − 1, so a position times this matrix becomes the position before it.
# No letter stands before the first one, so set row 0 of layer 0's output to zero.
#
# We count from the second letter of the second block on, because nobody can know before that the first block is over.


# %% tags=["exercise", "build"]
def copy_by_hand(ids):
    """(n,) letters → (n, 32): rows with their 1 at the next letter."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.copy_by_hand(copy_by_hand)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def copy_by_hand_solution(ids):
    """Layer 0 is a shift of positions, and layer 1 compares each letter with the letters before."""
    letter, position = torch.eye(32)[ids], torch.eye(48)[: len(ids)]
    shift = torch.eye(48).roll(1, 0)
    before = attend(100 * position @ shift @ position.T, letter)  # layer 0
    before[0] = 0
    return attend(100 * letter @ before.T, letter)  # layer 1


cu.checks.copy_by_hand(copy_by_hand_solution)

# %% [markdown]
# Here is the **accuracy** of the circuit, the share of letters that it gets right, by the length of the block.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
circuit = cu.choose(copy_by_hand, circuits.by_hand)
by_hand = pd.DataFrame(
    {
        name: {
            n: circuits.accuracy_by_hand(circuit, n, different=different) for n in (6, 13, 20, 23)
        }
        for name, different in (("all letters different", True), ("letters may repeat", False))
    }
)
by_hand.rename_axis("letters in a block").map("{:.2f}".format)

# %% [markdown]
# **Two attentions copy without a mistake**, as long as no letter stands twice in a block.
# If `k` was followed by `g` in one place and by `b` in another, this circuit can only guess.
#
# ## Two maps from the weights
#
# Does training find this circuit, too?
# Our network has two layers with two heads each, and its weights give us two maps.


# %%
class Copier(nn.Module):
    """Attention only: (batch, n) letters → (batch, n, 32) logits of the next letter."""

    def __init__(self, layers=2, dim=32, heads=2, std=0.3):
        super().__init__()
        self.letters, self.positions = nn.Embedding(32, dim), nn.Embedding(48, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        attentions = [cu.MultiHeadAttention(dim, heads, bias=False) for _ in range(layers)]
        self.layers = nn.ModuleList(attentions)
        self.norm, self.output = nn.LayerNorm(dim), nn.Linear(dim, 32, bias=False)
        for table in (self.letters, self.positions):
            nn.init.normal_(table.weight, std=std)

    def forward(self, ids):
        x = self.letters(ids) + self.positions.weight[: ids.shape[1]]
        for norm, attention in zip(self.norms, self.layers, strict=True):
            y = norm(x)
            x = x + attention(y, y, y, is_causal=True)
        return self.output(self.norm(x))


# %% [markdown]
# The first map answers what a head says when it looks at a letter.
# The vector of the letter goes through the matrices `W_V` and `W_O` of this head, and from there into the logits.
# The **OV map** does this for all 32 letters at once ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# Its row *g* holds what the head adds to the logits when it looks at *g*, so a diagonal means that the head copies.


# %%
def ov_map(model, induction):
    """Letter that the head looks at × letter that it speaks for."""
    _, _, W_OV = of_head(model.layers[1], induction)  # W_Q, W_K, and W_V W_O
    said = letters_in(model, 1) @ W_OV  # the letters, as layer 1 reads them
    return said * model.norm.weight @ model.output.weight.T


# %% [markdown]
# The second map answers where the head looks.
# In `k g b k` it stands at the second `k`, and compares its query with the key of `g`.
# This key holds the note of the previous-token head, "after *k*".
# The **QK map** compares the queries of all letters with all such notes: row *k*, column *b* says how much the head, standing at *k*, likes a position *after b*.
#
# ### Exercise 2 · Where to look
#
# *build · 9 minutes*
#
# Write `my_qk_map` in four steps.
# `letters_in(model, layer)` gives the 32 letters as a layer reads them.
# `of_head(attention, h)` gives the matrices `W_Q`, `W_K` and `W_V W_O` of head h, to be used as `x @ W`.
#
# 1. Head `previous` of layer 0 writes the notes: the letters of layer 0, times its `W_V W_O`.
# 2. Layer 1 reads the notes through its norm, so multiply them by the gain `model.norms[1].weight`. For the letters, `letters_in` has done this.
# 3. Head `induction` of layer 1 makes keys of the notes with its `W_K`, and queries of the letters of layer 1 with its `W_Q`.
# 4. The map holds the products of all queries with all keys.
#
# We leave out what a norm subtracts and divides by, and the root of `head_dim`, because they hardly change which entry of a row is the largest.


# %% tags=["exercise", "build"]
def my_qk_map(model, previous, induction):
    """Letter at which the head stands × letter after which it looks."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_qk_map(my_qk_map)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_qk_map_solution(model, previous, induction):
    """The letters go through layer 0's values and output, and become keys of layer 1."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    after = letters_in(model, 0) @ W_OV * model.norms[1].weight
    return letters_in(model, 1) @ W_Q @ (after @ W_K).T


cu.checks.my_qk_map(my_qk_map_solution)

# %% [markdown]
# Now train a network of your own.
# Each of its texts repeats a block of 6 to 20 random letters, so no fixed distance helps.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def texts(count, draws, shortest=6, longest=20):
    """Texts (count, 48) that repeat a random block, and the lengths of the blocks (count, 1)."""
    lengths = torch.randint(shortest, longest + 1, (count, 1), generator=draws)
    blocks = torch.randint(32, (count, longest), generator=draws)
    return blocks.gather(1, torch.arange(48) % lengths), lengths


def train(model, steps=700, rate=0.01, seed=0, watch=None):
    """AdamW on the letters from the second letter of the second block on."""
    draws = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 50))
    for step in range(steps + 1):
        if watch:
            watch(step, model)
        ids, lengths = texts(32, draws)
        asked = torch.arange(1, 48) > lengths
        loss = nn.functional.cross_entropy(model(ids[:, :-1])[asked], ids[:, 1:][asked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()
    return model


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
torch.manual_seed(0)
measured_on = texts(256, torch.Generator().manual_seed(7))
film = Film(*measured_on, qk_map=cu.choose(my_qk_map, circuits.qk_map), ov_map=ov_map)

# %%
model = train(Copier(), watch=film)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
previous, induction = film.pair
loss, accuracy = copied(model, *measured_on)
print(f"loss {loss:.2f}, accuracy {accuracy:.3f}")
print(f"shown below: heads 0.{previous} and 1.{induction}")

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
cu.explore.own_film(film.frames())

# %% [markdown]
# Both halves of our circuit are there: *standing at k, look after k*, and *looking at g, say g*.
#
# The film ends at step 200, but later the loss falls a second time.
# What does the network learn then?
# The last `k` of `rkgmkbrk` has had two followers, `g` and `b`, so our circuit has to guess.
# The figure splits the letters into those that have had one follower so far, and those that have had several.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
steps = [row["step"] for row in film.rows]
fig, (top, bottom) = cu.subplots(
    2, 1, width=4, height=3.8, sharex=True,
    alt="Above, the loss of two layers over 700 steps, on a logarithmic axis: it falls from 3.5 to 1 between the steps 80 and 125, then slowly to about 0.3, and a second time, to less than 0.1, "
    "between the steps 450 and 600. Below, the accuracy: where a letter had one follower so far, it is near 1 from step 150 on. Where it had several, it stays near 0.6 after the first fall, and comes near 1 only with the second.",
)  # fmt: skip
top.semilogy(steps, [row["loss"] for row in film.rows], color=cu.COLORS["key"])
top.set(ylabel="Loss", xlim=(0, 700), ylim=(0.04, 4.5))
top.set_yticks([0.1, 1], ["0.1", "1"])
one, several = zip(*(row["by followers"] for row in film.rows), strict=True)
bottom.plot(steps, one, color=cu.COLORS["value"])
bottom.plot(steps, several, color=cu.COLORS["query"])
bottom.text(300, 0.88, "one follower so far", color=cu.COLORS["value"], ha="center", fontsize=9)
bottom.text(300, 0.5, "several followers", color=cu.COLORS["query"], ha="center", fontsize=9)
bottom.set(xlabel="Step", ylabel="Accuracy", ylim=(0, 1.05))
fig

# %% [markdown]
# **The first fall is our circuit**: after it the network is right where a letter has had one follower, and guesses where it has had several.
# The second fall uses one more letter.
# In `rkgmkbrk` the last `r` decides, because after `rk` came `g`.
# For this, a position needs a second note, and the other head of layer 0 writes it.
# Here is the weight that each head of this layer puts on the letter it notes.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
back = circuits.looks_back(model, *measured_on)
print(f"head 0.{previous}, one letter back: {back['one back'][previous]:.2f}")
print(f"head 0.{1 - previous}, two letters back: {back['two back'][1 - previous]:.2f}")
print(f"equal weights: {back['equal weights'][0]:.2f}")

# %% [markdown]
# ## Erase the diagonal
#
# A map that looks like the circuit doesn't prove that the network uses it.
# So we erase the diagonal of the QK map, and see whether the network still copies.
# Each score of layer 1 is a sum, and entries of the map are among its terms.
# If layer 0 has brought 0.9 of `k` to the position of `g`, then 0.9 times the diagonal entry of row *k* is one term.
# In all these sums, in both heads of layer 1, we replace the diagonal entry by the mean of its row.
# As a control we do the same with the 32 others that are farthest from the mean of their row, and with all 992 others.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The squares of the other 992 entries add up to more than those of the diagonal. How many letters are still copied if we erase only the diagonal, and how many if we keep it alone?",
    [
        "without the diagonal few, with it alone few",
        "without the diagonal few, with it alone most",
        "without the diagonal most, with it alone few",
        "without the diagonal most, with it alone most",
    ],
    answer="without the diagonal few, with it alone most",
    wrong={
        "without the diagonal few, with it alone few": "The other 992 entries weigh more. But what do they tell the head about k, g and b?",
        "without the diagonal most, with it alone few": "Which cell says: standing at k, look after k?",
        "without the diagonal most, with it alone most": "A network can have two ways to the same place. Which other entry of row k would lead to g, whatever the letters are?",
    },
    why="Of this map the diagonal alone is enough. The other entries tell the head nothing that copying needs.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ids, lengths = measured_on
by_erasing = {
    which: cuts.measured(logits, ids, lengths)[1]
    for which, logits in cuts.erasures(model, ids, previous, cuts.SHOWN).items()
}
pd.DataFrame({"accuracy": by_erasing}).rename_axis("erased").round(2)

# %% [markdown]
# **Without the diagonal most of the copying is gone, and with the diagonal alone all of it stays.**
# If we erase the whole map, more letters are right than without its diagonal, so the entries that are left over mislead the network.
#
# ## Who is hurt?
#
# After a mean **[ablation](C_glossary.ipynb#ablation)** a head says the same at every position, its average.
#
# ### Exercise 3 · Four ablations
#
# *predict · 4 minutes*
#
# How many letters does your network still copy after each of these ablations, *most* or *few*?
#
# - (a) the previous-token head of layer 0
# - (b) the other head of layer 0
# - (c) the head of layer 1 that your film shows
# - (d) both heads of layer 1


# %% tags=["exercise", "predict"]
def who_is_hurt():
    """Four words, for (a) to (d), each "most" or "few"."""
    return ...  # such as ["most", "most", "most", "most"]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.who_is_hurt(who_is_hurt)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def who_is_hurt_solution():
    """Both heads of layer 1 copy, and one is enough. In layer 0 only one head looks one letter back."""
    return ["few", "most", "most", "few"]


cu.checks.who_is_hurt(who_is_hurt_solution)

# %% tags=["remove-input", "hide-output", "nbval-ignore-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
by_ablating = pd.DataFrame(
    {
        which: (cuts.measured(logits, ids, lengths)[1], *by_followers(logits, ids, lengths))
        for which, logits in cuts.ablations(model, ids, previous, induction).items()
    },
    index=["accuracy", "one follower", "several"],
).T
by_ablating.rename({"whole": "nothing"}).rename_axis("ablated").round(2)

# %% [markdown]
# <details><summary><em>What we found</em></summary>
#
# Without the previous-token head the network copies few letters, because nothing tells layer 1 where to look.
# Without the other head of layer 0 the network is back at the first fall, and guesses where a letter has had several followers.
# The **two induction heads stand in for each other**: both speak all the time, and either of them is nearly enough.
# So an ablation that costs little doesn't show that a head does little.
#
# </details>
#
# ### What do the layers pass on?
#
# With **[activation patching](C_glossary.ipynb#activation-patching)** we move one activation from one run of the network into another.
#
# A text begins with sixteen different letters, 0 to 15, and then 0 to 8 come again, so the answer is letter 9.
# We change the answer, or the letter before it, and the network is no longer sure.
# Then we put a single part of the unchanged run back, and see whether the answer returns.


# %%
def patched(model, ids, run, where):
    """Probabilities of the next letter, with one place as in another run."""
    with cu.intervene(model) as acts, torch.no_grad():
        acts.patch(None, run, **where)  # of heads, such as layers=0, heads=1, positions=9
        return model(ids)[:, -1].softmax(-1)


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
by_patching = pd.Series(cuts.by_patching(patched, model, previous))
by_patching.unstack(0).loc[list(cuts.places(previous)), list(cuts.CHANGED)].rename_axis(
    index="patched", columns="changed"
).map("{:.2f}".format)

# %% [markdown]
# Each number is the probability of the answer.
# In the left column the answer itself was changed, and only layer 1 brings it back: the letter is *what is moved*.
# In the right column the letter before it was changed, so the answer still stands in the text, and what is missing is *how it is found*.
# **One vector, written by one head of layer 0 at this one position, brings the answer back.**
# It is the note *after k*.
# Even without it, some of the answer is left, because the other head has noted the letter two back.
# If we change that letter as well, hardly anything is left.
#
# <details><summary><em>How sure is this?</em></summary>
#
# Nine networks, three at each of the rates 0.003, 0.01, and 0.03, gave about these numbers after 1,500 steps.
# In all of them the loss falls twice, and the other head begins to look two letters back with the second fall.
# At the rate 0.001 there is no second fall in time, and no such head.
# Other entries that weigh as much as the diagonal can be erased without harm.
# Nine networks with one layer end between 2.13 and 2.19.
#
# Which map comes first depends on how the embeddings start.
# If they start larger than ours, OV has half of its diagonal first, and if smaller, mostly QK.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The circuit by hand is always right where all letters differ, and less often where they may repeat."
):
    assert (by_hand["all letters different"] == 1).all()
    assert 0.55 < by_hand["letters may repeat"].min() < by_hand["letters may repeat"].max() < 0.95

with cu.guard(
    "By step 100 both diagonals are half whole in each film, and the loss falls below 1.5 by step 130."
):
    for run in cu.stored_runs("what_heads_learn", "filmed"):
        assert max(run.result["qk half, step"], run.result["ov half, step"]) <= 100
        assert run.result["step below 1.5"] <= 130

with cu.guard("The loss of one layer slides to 2.15, and never falls by 0.5 in 40 steps."):
    for run in cu.stored_runs("what_heads_learn", "one_layer"):
        losses = dict(run.curves["loss"])
        end = [loss for step, loss in losses.items() if step >= 7040]
        assert min(end) > 2.1 and max(end) < 2.25 and abs(losses[7040] - losses[8000]) < 0.05
        assert 2.13 <= round(losses[8000], 2) <= 2.19
        assert all(losses[at] - losses[at + 40] < 0.5 for at in range(0, 161, 20))

with cu.guard(
    "At the first fall your network copies letters with one follower, and at the second those with several."
):
    at_200 = steps.index(200)
    assert one[at_200] > 0.95 and several[at_200] < 0.75
    assert accuracy > 0.93 and several[-1] > 0.85

with cu.guard("One head of layer 0 looks one letter back, and the other two."):
    assert back["one back"][previous] > 0.9 and back["two back"][1 - previous] > 0.7

with cu.guard(
    "Without the diagonal most letters are lost, and without all other entries, which are heavier, hardly any."
):
    entries = cuts.centered_map(model, previous, induction)
    squares = (entries - entries.mean(-1, keepdim=True)).square()
    assert squares.sum() > 2 * squares.diagonal().sum()
    assert by_erasing["the diagonal"] < min(0.4, by_erasing[cuts.WHOLE])
    assert min(by_erasing[name] for name in cuts.SHOWN[2:4]) > by_erasing["nothing"] - 0.03

with cu.guard(
    "One head of layer 0 is needed for all letters, the other for those with several followers, and one of layer 1 is enough."
):
    single = ["the other head of layer 0", "first induction head", "second induction head"]
    share = by_ablating["accuracy"]
    assert share[single].min() > 0.6
    assert share[["previous-token head", "both induction heads"]].max() < 0.3
    assert (
        by_ablating.loc[single[0], "several"]
        < 0.75
        < 0.95
        < by_ablating.loc[single[0], "one follower"]
    )

with cu.guard("If the two letters before the answer are changed, hardly anything of it is left."):
    assert cuts.answer_without(model, [7, 8]) < 0.15

with cu.guard(
    "What is moved comes from layer 1, and how the place is found from one vector of layer 0."
):
    moved, found = by_patching["the answer"], by_patching["the letter before it"]
    assert moved.iloc[:4].max() < 0.1 and moved.iloc[4] > 0.9
    at_answer = found["previous-token head, at the answer"]
    assert at_answer > 0.9 and found["layer 1, at the last letter"] > 0.9
    assert found["previous-token head, elsewhere"] < at_answer - 0.3
    assert found["other head of layer 0, at the answer"] < at_answer - 0.3

# %% tags=["guard"] jupyter={"source_hidden": true}
without = [run.result for run in cu.stored_runs("what_heads_learn", "without_parts")]
how = [
    {name: dict(curve) for name, curve in run.curves.items()}
    for run in cu.stored_runs("what_heads_learn", "without_parts")
]
slow = [run.config["rate"] == 0.001 for run in cu.stored_runs("what_heads_learn", "without_parts")]

with cu.guard(
    "At three rates the loss falls twice, and letters with several followers wait for the head that looks two back."
):
    for result, curves, late in zip(without, how, slow, strict=True):
        one_at, several_at, two_at = (
            next((step for step, value in curves[name].items() if value > least), 9999)
            for name, least in (
                ("one follower", 0.95), ("several followers", 0.9), ("two back", 0.2)
            )
        )  # fmt: skip
        assert result["one back"] > 0.9 and result["whole, one follower"] > 0.99
        assert curves["several followers"][one_at] < 0.6 and curves["two back"][one_at] < 0.15
        early = [value for step, value in curves["several followers"].items() if step < two_at]
        assert max(early) < 0.75
        if late:
            assert several_at == two_at == 9999 and result["two back"] < 0.1
        else:
            assert one_at + 200 < several_at < 1500 and result["two back"] > 0.75

with cu.guard("At three rates all networks need the diagonal, and nothing else of the map."):
    for result, late in zip(without, slow, strict=True):
        kept = min(result[name] for name in cuts.ERASED[2:])
        assert kept > result["nothing"] - 0.01 and result["the diagonal"] < 0.39
        assert result["the diagonal"] + 0.1 < result[cuts.WHOLE] < 0.7
        assert late or result["accuracy"] > 0.98

with cu.guard("At three rates ablated heads cost what they cost here."):
    for result, late in zip(without, slow, strict=True):
        assert result["both induction heads"] < 0.05 and result["previous-token head"] < 0.28
        other = "the other head of layer 0"
        assert result[f"{other}, several"] < 0.65 and result[f"{other}, one follower"] > 0.98
        assert min(result[name] for name in single) > (0.75 if late else 0.85)

with cu.guard("At three rates one vector brings the answer back, and two changed letters cost it."):
    for result in without:
        nothing, note, elsewhere, other, top = (
            result[f"the letter before it, {part}"] for part in cuts.places(previous)
        )
        assert min(note, top, result["the answer, layer 1, at the last letter"]) > 0.98
        assert max(nothing, elsewhere, other) < 0.5
        assert result["two letters before it, nothing"] < 0.1

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Which map is half whole first depends on how large the embeddings start."):
    earlier = {
        std: [
            run.result["ov half, step"] - run.result["qk half, step"]
            for run in cu.stored_runs("what_heads_learn", "starts", std=std)
        ]
        for std in (1.0, 0.1)
    }
    assert max(earlier[1.0]) < 0 and min(earlier[0.1]) == 0 and earlier[0.1].count(0) == 2
    assert len(earlier[1.0]) == len(earlier[0.1]) == 9

# %% [markdown]
# ## And in a real model
#
# Does a language model need such a circuit?
# We give SmolLM2 forty random tokens twice, as in [Real weights](18_real_weights.ipynb#Copying:-induction-heads).
# Ten of its 270 heads are induction heads: they put more than 0.3 of their weight on the token that followed the current one the first time.
# Below them, head 0 of layer 16 (16.0) is a previous-token head.
# What share of the tokens does the model still copy if we set some heads to zero?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
copying = {
    take: cu.stored_runs("real_weights", "copying", take=take)
    for take in ("best", "alone", "same layers")
}
best = {run.config["count"]: run for run in copying["best"]}
alone = {divmod(run.config["seed"], 9): run for run in copying["alone"]}
zeroed = {
    "nothing": [best[0]],
    "the previous-token head 16.0": [alone[16, 0]],
    "one of the other heads of layer 16": [alone[16, head] for head in range(1, 9)],
    "the four best induction heads": [best[4]],
    "eight other heads of layers 17 to 23": copying["same layers"],
}
copied_without = {
    name: pd.Series([run.result["copied"] for run in runs]) for name, runs in zeroed.items()
}
pd.DataFrame(
    {"copied, mean": {name: shares.mean() for name, shares in copied_without.items()}}
).rename_axis("set to zero").round(2)

# %% [markdown]
# Losing this one previous-token head costs as much as losing the four best induction heads.
#
# What do heads do where nothing repeats?
# A softmax has to put its weight somewhere, and the heads of this model put more than a third of it on the very first token, an **[attention sink](C_glossary.ipynb#attention-sink)** ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453)).
# How much does the loss on our story rise if no later token may look at the first one?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sink = cu.stored_runs("real_weights", "sinks", text="story")[0].examples[0]["gave"]
shown = {
    "first, all layers": "the first token, in all layers",
    "first, layers 10–19": "the first token, in layers 10–19",
    "four others, layers 10–19": "four others, in layers 10–19",
}
whole = sink["losses"]["nothing"][0]
pd.DataFrame(
    {"the loss rises by": {text: sink["losses"][name][0] - whole for name, text in shown.items()}}
).rename_axis("nobody may look at").round(2)

# %% [markdown]
# In layers 10–19 the model misses its sink.
# But if nobody ever sees the first token, hardly anything is lost, because **then the second token becomes the sink**: if we hide that one in layers 10–19, the loss rises by 0.63 again.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of 30 sentences such as “The capital of Japan is” SmolLM2 completes 20 correctly, and with <|endoftext|> in front 28. Now <|endoftext|> stands in front, but no token may look at it, in any layer. How many are right?",
    ["0", "20", "24", "28"],
    answer="20",
    wrong={
        "0": "That would be so if the answer needed this token. How does the model do without it?",
        "24": "A compromise sounds reasonable. But what does the model see now, compared with the bare sentence?",
        "28": "The token is still there. But can anything that it holds reach another position?",
    },
    why="Rotary positions count only distances, so a text whose first token nobody sees is the text without it: the bare sentence. Even the probabilities are the same.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
lm = smollm.reference() if cached("smollm2") else None  # without the file: as recorded

# %% tags=["nbval-ignore-output"]
front = "green "  # a word of your own, and a space
gave = smollm.known(heads.capitals_behind, lm, front=front)
print(f"{gave['right']} of {gave['of']} capitals are right")

# %% [markdown]
# One word in front changes what the model seems to know: behind *green* 6 capitals are right, and behind *apple* 28.
# So always report what stands first.
#
# The names of the heads are ours: in other texts a head may do other things.
# In GPT-2, [Wang et al. (2023)](https://arxiv.org/abs/2211.00593) found heads of later layers that take over once others are ablated.
#
# <details><summary><em>How sure is this?</em></summary>
#
# All numbers are those of SmolLM2's 4-bit file, and two more texts gave the same about the sink.
# Two heads of the first layers, each set to zero alone, cost nearly as much as 16.0.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Ten heads are induction heads; 16.0 and the four best of them cost most."):
    (scores,) = cu.stored_runs("real_weights", "induction_heads")
    assert len(scores.examples[0]["gave"]) == 10
    assert all(weight > 0.3 for _, _, weight, *_ in scores.examples[0]["gave"])
    none, previous_head, others, four, eight = copied_without.values()
    assert max(*previous_head, *four) < 0.12 < 0.55 < min(*others, *eight) and 0.6 < none[0] < 0.7

with cu.guard(
    "In three texts hiding the first token costs much in layers 10–19, little in all, and then the second is the sink."
):
    for text in ("story", "news", "sentences"):
        (run,) = cu.stored_runs("real_weights", "sinks", text=text)
        gave = run.examples[0]["gave"]
        rise = {
            name: loss[0] - gave["losses"]["nothing"][0] for name, loss in gave["losses"].items()
        }
        assert max(rise["first, all layers"], rise["four others, layers 10–19"]) < 0.1
        second, fifth = (
            rise[f"first everywhere, {token} in layers 10–19"] for token in ("second", "fifth")
        )
        assert min(rise["first, layers 10–19"], second) > 0.5 > 0.11 > fifth
        assert 0.33 < gave["weights"]["nothing"][0] < 0.45
        if text == "story":
            assert round(second, 2) == round(rise["first, layers 10–19"], 2) == 0.63

with cu.guard("Of the heads of layers 0–16 16.0 costs most, and two others come near it."):
    (each,) = cu.stored_runs("real_weights", "each_alone")
    costs = {
        (layer, head): gave[0]
        for layer, row in enumerate(each.examples[0]["gave"][:17])
        for head, gave in enumerate(row)
    }
    assert sorted(costs, key=costs.get)[-3:] == [(0, 5), (1, 3), (16, 0)]

with cu.guard(
    "Right capitals: 20 bare, 28 behind the mark, 20 if it is hidden, 28 behind apple and 6 behind green."
):
    right = {
        (run.config["front"], *run.config.get("hidden", [])): run.examples[0]["gave"]["right"]
        for run in cu.stored_runs("real_weights", "capitals_behind")
    }
    mark = "<|endoftext|>"
    assert [right[key] for key in (("",), (mark,), (mark, 0))] == [20, 28, 20]
    assert (right["apple ",], right["green ",]) == (28, 6)

# %% [markdown]
# ## Take-aways
#
# - A circuit of two attentions copies what was never seen: a previous-token head notes what came before, and an induction head finds the note.
# - The weights alone say where a head would look (QK) and what it would say (OV).
#   In our network the diagonal of the QK map is enough for copying, and without it most of the copying is gone.
# - Nobody misses an ablated head if another one is enough.
#   Patching shows what a head passes on.

# %% [markdown] tags=["next"]
# Next: [a project of your own](D_capstone.ipynb), for example with heads of your own.
# The path to a real model ends here.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("what_heads_learn")

# %% [markdown]
# ## References
#
# - Elhage, N. et al. (2021).
#   [A mathematical framework for transformer circuits](https://transformer-circuits.pub/2021/framework/index.html).
#   Transformer Circuits Thread.
# - Olsson, C. et al. (2022).
#   [In-context learning and induction heads](https://arxiv.org/abs/2209.11895).
#   Transformer Circuits Thread.
# - Wang, K. et al. (2023).
#   [Interpretability in the wild: a circuit for indirect object identification in GPT-2 small](https://arxiv.org/abs/2211.00593).
#   ICLR.
# - Xiao, G. et al. (2024).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
#   ICLR.
