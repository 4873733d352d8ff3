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
# **`gkbmtgkbmtgk` … You know the next letter, and a small network can learn to know it, too. What algorithm does training write into its weights?**
#
# Two layers of attention, and nothing else, learn in seconds to continue random letters that repeat.
# This film of their training shows two maps, computed from the weights alone: *where* a head of the second layer looks, and *what* it says there.
# A diagonal in the first map means *standing at `k`, look for what comes after `k`*, and in the second *looking at `g`, say `g`*.
# Move the slider forward: when does each diagonal appear, and when does the loss notice?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.lessons.what_heads_learn import circuits, cuts
from course_utils.lessons.what_heads_learn.circuits import attend, letters_in, of_head
from course_utils.lessons.what_heads_learn.film import Film, by_followers, copied

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.film()

# %% [markdown]
# In trainings 1 and 2 *what to say* is clearly ahead, and in training 3 by a hair.
# (If the embeddings start smaller, *where to look* is [mostly first](19_what_heads_learn_further.ipynb#Which-map-comes-first?).)
# By step 85 both diagonals win half of their rows, and then the loss falls off a cliff.
# With one layer, in gray, there is no cliff.
# Even after 8,000 steps its loss is hardly better than a guess that only knows which letters are in the block (the lower dashed line).

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - build two attentions that copy what they have never seen;
# - read from weights where a head would look and what it would say;
# - test such a reading by erasing, ablating, and patching.

# %% [markdown] tags=["needs"]
# You will need [Multi-head attention](08_multi_head_attention.ipynb), [The Transformer](10_transformer.ipynb), and [GPT](13_gpt.ipynb).
# The last section uses the model from [Real weights](18_real_weights.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("gpt", "real_weights", "multi_head_attention")

# %% [markdown]
# ## A circuit by hand
#
# Take a pencil and the letters `k g b k`.
# At the second `k` we want to say `g`.
# A head that compares letters can't find it, because `g` doesn't look like `k`, so a first layer prepares what the second looks for:
#
# | | k | g | b | k |
# |---|---|---|---|---|
# | layer 0 looks one position back and notes | – | after k | after g | after b |
# | layer 1 asks *who is after k?* | | **yes** | no | no |
# | layer 1 says the letter that it found | | | | **g** |
#
# Together they are a **circuit**: the head in layer 0 is a **previous-token head**, and the head in layer 1 an **[induction head](C_glossary.ipynb#induction-head)**, which copies what came after the same token last time ([Olsson et al., 2022](https://arxiv.org/abs/2209.11895)).
#
# ### Exercise 1 · Copy by hand
#
# *build · 9 minutes*
#
# Letters and positions are one-hot rows, `torch.eye(32)[ids]` and `torch.eye(48)[:n]`.
# `attend(scores, values)` is a causal attention with scores (n, n) that you choose.
# A score of 100 among zeros gets practically all of the weight.
#
# Row i of `torch.eye(48).roll(1, 0)` has its 1 in column i − 1.
#
# Your circuit is tested from the second letter of the second block on, because until then nobody can know that the first block is over.


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
# How often is the circuit right?

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
# **Two attentions copy without a mistake**, as long as no letter occurs twice in a block.
# If `k` has had two followers, this circuit takes the more frequent one, and it can't decide at a tie.
#
# Here the *keys* of layer 1 hold the notes of layer 0 (**[K-composition](C_glossary.ipynb#composition)**).
# In other circuits the *query* holds a note (**Q-composition**).
#
# ## Two maps from the weights
#
# Does training find our circuit?
# Our network has two layers of two heads.


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
# What does a head say when it looks at a letter?
# The letter's vector goes through this head's `W_V` and `W_O`, and from there into the logits.
# The **OV map** does this for all 32 letters at once ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# Up to what the norms subtract and divide by, its row *g* holds what the head adds to the logit of each letter when it looks at *g*, so a diagonal means that the head copies.
#
# `letters_in(model, layer)` gives the 32 letters as a layer reads them, multiplied by the learned scale of its norm, the *gain*, and `of_head(attention, h)` gives `W_Q`, `W_K`, and the product of `W_V` and `W_O`.


# %%
def ov_map(model, induction):
    """Letter that the head looks at × letter whose logit it raises."""
    _, _, W_OV = of_head(model.layers[1], induction)
    said = letters_in(model, 1) @ W_OV
    return said * model.norm.weight @ model.output.weight.T


# %% [markdown]
# And where does the head look?
# In `k g b k` it stands at the second `k`, and compares its query with the key at `g`, which holds the note "after *k*".
# The **QK map** compares the queries of all letters with all such notes.
# Its entry in row *k* and column *b* says how much the head, standing at *k*, likes a position *after b*.
#
# ### Exercise 2 · Where to look
#
# *build · 9 minutes*
#
# A note is what head `previous` of layer 0 writes about a letter, and like everything that layer 1 reads, it is multiplied by the gain `model.norms[1].weight`.
# Head `induction` of layer 1 makes its keys from the notes, and its queries from the letters.
#
# Leave out the root of `head_dim`, which doesn't change which entry of a row is the largest, and the rest of the norms, which hardly does.


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
# Each of its texts repeats a block of 6 to 20 random letters, so looking back a fixed distance doesn't help.


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
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


torch.manual_seed(0)
measured_on = texts(256, torch.Generator().manual_seed(7))
film = Film(*measured_on, qk_map=cu.choose(my_qk_map, circuits.qk_map), ov_map=ov_map)

# %%
model = train(Copier(), watch=film)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
previous, induction = film.pair
loss, accuracy = copied(model, *measured_on)
print(f"loss {loss:.2f}, accuracy {accuracy:.3f}")
print(f"in the film: head {previous} of layer 0")
print(f"and head {induction} of layer 1")

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
cu.explore.own_film(film.frames())

# %% [markdown]
# Both halves of our circuit are there: *standing at `k`, look for what comes after `k`*, and *looking at `g`, say `g`*.
#
# After the film the loss falls a second time.
# The last `k` of `rkgmkbrk` has had two followers, `g` and `b`, so our circuit can't decide.
# The figure shows letters that have had one follower so far apart from those that have had several.

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
top.text(130, 1.3, "first fall", fontsize=9)
top.text(560, 0.25, "second fall", fontsize=9)
one, several = zip(*(row["by followers"] for row in film.rows), strict=True)
bottom.plot(steps, one, color=cu.COLORS["value"])
bottom.plot(steps, several, color=cu.COLORS["query"])
bottom.text(300, 0.88, "one follower so far", color=cu.COLORS["value"], ha="center", fontsize=9)
bottom.text(300, 0.5, "several followers", color=cu.COLORS["query"], ha="center", fontsize=9)
bottom.set(xlabel="Step", ylabel="Accuracy", ylim=(0, 1.05))
fig

# %% [markdown]
# **After the first fall the network copies wherever a letter has had one follower**, and so does our circuit.
#
# In the second fall it learns to use one more letter: in `rkgmkbrk` the last `r` settles what comes next.
# How the network does this is on the [further page](19_what_heads_learn_further.ipynb#The-second-fall).
#
# ## Erase the diagonal
#
# A map that looks like the circuit doesn't prove that the network uses it.
# So we erase entries of the QK map while the network runs, and see whether it still copies.
#
# In `k g b k` a head of layer 1, standing at the last `k`, gives the position of `g` a score.
# One part of this score comes from the note *after k*: if the previous-token head, at `g`, looks mostly at the first `k`, this part is nearly proportional to the diagonal entry of row *k*.
# To erase an entry, we put the mean of its row in its place, in both heads of layer 1.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The 992 entries off the diagonal together weigh more than the 32 on it (we add up the squares of their distances from the mean of their row). What we don't erase stays as it is, and so do the other parts of the scores. What costs more of the copying, to erase the whole map or only its diagonal?",
    ["The whole map", "Only its diagonal", "Both cost the same", "Neither costs much"],
    answer="Only its diagonal",
    wrong={
        "The whole map": "It takes more away, so this is a natural thought. But what decides where the head looks if the diagonal is gone, and the other 992 entries are still there?",
        "Both cost the same": "That would be so if the other entries said nothing. But together they weigh more than the diagonal. What do they say to a head that has lost it?",
        "Neither costs much": "That would take a second way to g that is as good. Which entry of row k has led there so far?",
    },
    why="If the map is erased, its advice is missing, and the other parts of the scores still find some letters. If only the diagonal is erased, the other entries give bad advice. No harm comes of them as long as the diagonal outweighs them.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ids, lengths = measured_on
cut = cuts.erasures(model, ids, previous, cuts.SHOWN)
by_erasing = pd.DataFrame(
    {"accuracy": {which: cuts.measured(logits, ids, lengths)[1] for which, logits in cut.items()}}
)
by_erasing.rename_axis("erased").round(2)

# %% [markdown]
# **Of this map the network uses only the diagonal**: without the other 992 entries all of the copying stays, and without the diagonal four of five letters are lost.
# (After 6,000 steps about half are lost, because the network learns other ways, too.)
# Erasing the whole map costs *less* than erasing only its diagonal, because the entries that remain mislead the network.
#
# ## Who is hurt?
#
# After a mean **[ablation](C_glossary.ipynb#ablation)** a head says its average at every position of every text.
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
# Without the previous-token head the network copies few letters, because nobody tells layer 1 which letter comes before a position.
# Without the other head of layer 0 the network is about as often right as it was after the first fall.
# The **two induction heads cover for each other**: both speak all the time, and one is nearly enough.
#
# </details>
#
# ### What do the layers pass on?
#
# With **[activation patching](C_glossary.ipynb#activation-patching)** we transplant one activation from one run of the network into another.
#
# After sixteen different letters, which we number, the first nine come again, so the answer is letter 9:
#
# ```text
# 0 1 … 7 (8) (9) 10 … 15  0 1 … 8 → 9
# ```
#
# We change one of the letters in parentheses, the answer or the letter before it, and letter 9 falls to a probability of 0.00 or 0.30 (0.30, because a note *two back* still points at it).
# Then we put back one piece of the unchanged run.


# %%
def patched(model, ids, run, where):
    """Probabilities of the next letter, if the piece `where` is as in `run`, a recording of another text."""
    with cu.intervene(model) as acts, torch.no_grad():
        acts.patch(None, run, **where)  # None: an attention, not another part
        return model(ids)[:, -1].softmax(-1)


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
by_patching = pd.Series(cuts.by_patching(patched, model, previous)).unstack(0)[list(cuts.CHANGED)]
by_patching.loc[list(cuts.PATCHED)].rename_axis(index="patched", columns="changed").map(
    "{:.2f}".format
)

# %% [markdown]
# Each number is the probability of letter 9.
# If the answer was changed, only the value of layer 1 brings it back: the value is *what is moved*.
# If the letter before it was changed, the key does it: the key is *how it is found*.
#
# In this case **one vector, written by one head of layer 0 at the answer, brings the answer back**: the note *after letter 8*.
#
# <details><summary><em>How sure is this?</em></summary>
#
# [Nine other networks](19_what_heads_learn_further.ipynb#Twelve-networks), three at each of three rates, gave much the same.
# In all of them it costs more to erase only the diagonal than to erase the whole map.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The circuit by hand is always right where all letters differ, and less often where they may repeat."
):
    assert (by_hand["all letters different"] == 1).all()
    assert 0.45 < by_hand["letters may repeat"].min() < by_hand["letters may repeat"].max() < 0.95

with cu.guard(
    "By step 85 each diagonal wins half of its rows in each film, OV first, in the third by one frame, and the loss falls below 1.5 by step 130."
):
    ahead = []
    for run in cu.stored_runs("what_heads_learn", "filmed"):
        assert run.result["ov half, step"] < run.result["qk half, step"] <= 85
        assert run.result["step below 1.5"] <= 130
        ahead.append(run.result["qk half, step"] - run.result["ov half, step"])
    assert min(ahead[:2]) >= 30 and ahead[2] == 5

with cu.guard("The loss of one layer slides to 2.15, and never falls by 0.5 in 40 steps."):
    for run in cu.stored_runs("what_heads_learn", "one_layer"):
        losses = dict(run.curves["loss"])
        end = [loss for step, loss in losses.items() if step >= 7040]
        assert min(end) > 2.1 and max(end) < 2.25 and abs(losses[7040] - losses[8000]) < 0.05
        assert all(losses[at] - losses[at + 40] < 0.5 for at in range(0, 161, 20))

with cu.guard(
    "At the first fall your network copies letters with one follower, and at the second those with several."
):
    at_200 = steps.index(200)
    assert one[at_200] > 0.95 and several[at_200] < 0.75
    assert accuracy > 0.93 and several[-1] > 0.85

with cu.guard(
    "Without the diagonal most letters are lost, and without all other entries, which are heavier, hardly any."
):
    entries = cuts.centered_map(model, previous, induction)
    squares = (entries - entries.mean(-1, keepdim=True)).square()
    assert squares.sum() > 2 * squares.diagonal().sum()
    share = by_erasing["accuracy"]
    assert share["the diagonal"] < min(0.4, share[cuts.WHOLE] - 0.1)
    assert share["all 992 others"] > share["nothing"] - 0.03

with cu.guard(
    "One head of layer 0 is needed for all letters, the other for those with several followers, and one of layer 1 is enough."
):
    single = ["the other head of layer 0", *cuts.INDUCTION]
    share = by_ablating["accuracy"]
    assert share[single].min() > 0.6
    assert share[["previous-token head", "both heads of layer 1"]].max() < 0.3
    assert (
        by_ablating.loc[single[0], "several"]
        < 0.75
        < 0.95
        < by_ablating.loc[single[0], "one follower"]
    )

with cu.guard(
    "The value moves the letter, the key finds it, and one vector of layer 0 makes the key."
):
    moved, found = by_patching["the answer"], by_patching["the letter before it"]
    nothing, value, key, note, other = cuts.PATCHED
    assert moved[value] > 0.9 and moved.drop(value).max() < 0.1
    assert min(found[key], found[note]) > 0.9
    assert found[["nothing", value, other, cuts.ELSEWHERE]].max() < found[note] - 0.3
    assert max(moved["nothing"], found["nothing"]) < 0.35

without = [run.result for run in cu.stored_runs("what_heads_learn", "without_parts")]
how = [
    {name: dict(curve) for name, curve in run.curves.items()}
    for run in cu.stored_runs("what_heads_learn", "without_parts")
]
slow = [run.config["rate"] == 0.001 for run in cu.stored_runs("what_heads_learn", "without_parts")]

with cu.guard(
    "At three rates letters with several followers wait for a second fall; at a fourth it doesn't come."
):
    for curves, late in zip(how, slow, strict=True):
        one_at, several_at = (
            next((step for step, value in curves[name].items() if value > least), 9999)
            for name, least in (("one follower", 0.95), ("several followers", 0.9))
        )
        assert curves["several followers"][one_at] < 0.6
        assert several_at == 9999 if late else one_at + 200 < several_at < 1500

with cu.guard("At three rates all networks need the diagonal, and nothing else of the map."):
    for result, late in zip(without, slow, strict=True):
        kept = min(result[name] for name in cuts.ERASED[2:])
        assert kept > result["nothing"] - 0.01 and result["the diagonal"] < 0.39
        assert result["the diagonal"] + 0.1 < result[cuts.WHOLE] < 0.7
        assert late or result["accuracy"] > 0.98

with cu.guard(
    "After 6,000 steps about half is lost without the diagonal, and still more than without the map."
):
    for run in cu.stored_runs("what_heads_learn", "later"):
        curves = {name: dict(curve) for name, curve in run.curves.items()}
        for step, without_diagonal in curves["the diagonal"].items():
            assert without_diagonal < curves[cuts.WHOLE][step] - 0.1
            assert curves["all 992 others"][step] > curves["nothing"][step] - 0.01
        assert curves["the diagonal"][700] < 0.23 and 0.38 < curves["the diagonal"][6000] < 0.53

with cu.guard("At three rates ablated heads cost what they cost here."):
    for result, late in zip(without, slow, strict=True):
        assert result[cuts.BOTH] < 0.05 and result["previous-token head"] < 0.28
        assert result["right"] > 0.85
        other = "the other head of layer 0"
        assert result[f"{other}, several"] < 0.65 and result[f"{other}, one follower"] > 0.98
        assert min(result[name] for name in single) > (0.75 if late else 0.85)

with cu.guard("At three rates value, key and note do what they do here."):
    for result in without:
        moved, found = (
            {part: result[f"{changed}, {part}"] for part in (*cuts.PATCHED, cuts.ELSEWHERE)}
            for changed in cuts.CHANGED
        )
        assert moved.pop(value) > 0.99 > 0.01 > max(moved.values())
        assert min(found.pop(key), found.pop(note)) > 0.98 > 0.5 > max(found.values())

# %% [markdown]
# ## And in a real model
#
# Does a language model need such a circuit?
# If forty random tokens come twice, SmolLM2 copies a share of 0.67 of them, and head 0 of its layer 16 is a previous-token head ([Real weights](18_real_weights.ipynb#Copying:-induction-heads)).
# We set this head to zero, or else some of the best induction heads, those that put the most weight on the right token.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Without the one previous-token head few copies are left. How many of the best induction heads must be silent, all at once, until it costs as much?",
    ["1", "2", "4", "8"],
    answer="4",
    wrong={
        "1": "That would be so if only one head found the notes. How many heads of our own network did, and what happened when one was silent?",
        "2": "In our own network two were all there were. Does a model with 270 heads have more that can cover for each other?",
        "8": "They do cover for each other. But without eight of them even fewer copies are left than without the previous-token head.",
    },
    why="Without the best one, 0.42 of the tokens are still copied, and without two 0.39. Without four it is 0.10, as without the previous-token head, and without eight nothing.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
copying = {
    take: cu.stored_runs("real_weights", "copying", take=take)
    for take in ("best", "alone", "same layers")
}
best = {run.config["count"]: run for run in copying["best"]}
alone = {divmod(run.config["seed"], 9): run for run in copying["alone"]}
zeroed = {
    "nothing": [best[0]],
    "the previous-token head of layer 16": [alone[16, 0]],
    "one other head of layer 16, mean of eight": [alone[16, head] for head in range(1, 9)],
    "the four best induction heads": [best[4]],
    "eight others of layers 17–23, mean of ten draws": copying["same layers"],
}
shares = {name: [run.result["copied"] for run in runs] for name, runs in zeroed.items()}
shown = pd.DataFrame({"share copied": {name: sum(of) / len(of) for name, of in shares.items()}})
shown.rename_axis("set to zero").map("{:.2f}".format)

# %% [markdown]
# **Without one previous-token head of 270 heads the model loses as many copies as without the four best induction heads.**
# These four cover for each other.
# Two heads of the first layers cost nearly as much, and we don't know why, so an ablation alone doesn't tell us what a head is needed for.
#
# What do heads do [where nothing repeats](19_what_heads_learn_further.ipynb#Attention-sinks)?

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Head 16.0 and the four best induction heads cost the same, and others little."):
    none, previous_head, others, four, eight = shares.values()
    assert round(none[0], 2) == 0.67 and round(previous_head[0], 2) == round(four[0], 2) == 0.1
    assert round(best[2].result["copied"], 2) == 0.39 and round(best[1].result["copied"], 2) == 0.42
    assert best[8].result["copied"] < 0.005
    assert min(*others, *eight) > 0.55 and len(others) == 8 and len(eight) == 10
    assert all(alone[head].result["copied"] < 0.14 for head in ((0, 5), (1, 3)))

# %% [markdown]
# ## Take-aways
#
# - A circuit of two attentions copies what it has never seen: a previous-token head notes what came before, and an induction head finds the note.
# - From weights we can read where a head would look (QK) and what it would say (OV).
#   Erasing tests whether the network uses what we read. Of its QK map ours needs only the diagonal, and it is misled if only the diagonal is erased.
# - An ablated head is hardly missed if another one does the same, and patching shows what is passed on.

# %% [markdown] tags=["next"]
# Next: [Attention at length](20_attention_at_length.ipynb), where the model reads long texts through a window.

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
