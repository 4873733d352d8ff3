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
# **`gkbmtgkbmtgk` … You know the next letter. Which algorithm does a training write into a network that learns to know it, too?**
#
# This network is two layers of attention and nothing else, and in seconds it learns to go on when random letters repeat.
# Both maps are computed from its weights alone, without any text.
# The left map says *where* a head looks, and the right map *what* it says there.
# The darkest cell is the largest entry of its row, and green marks a row in which it is on the diagonal.
# What appears in the maps as you move through the training, and when does the loss notice?

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.interventions import record_activations
from course_utils.lessons.real_weights import heads, smollm
from course_utils.lessons.what_heads_learn import circuits, cuts
from course_utils.lessons.what_heads_learn.circuits import attend, letters_in, of_head
from course_utils.lessons.what_heads_learn.film import Film, copied, which_letters

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.film()

# %% [markdown]
# Near step 100 the loss falls off a cliff, and by then at least half of each diagonal is there.
# A network with one layer, in gray, has no cliff at all.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - build from two attentions a network that copies what it has never seen;
# - read from a network's weights where a head looks and what it says;
# - test such a reading: erase entries, ablate heads, patch what they pass on.

# %% [markdown] tags=["needs"]
# You will need [The Transformer](10_transformer.ipynb) and [GPT](13_gpt.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("multi_head_attention", "real_weights")

# %% [markdown]
# ## A circuit by hand
#
# Take a pencil and the letters `k g b k`.
# At the second `k` we want to say `g`, but `g` doesn't look like `k`, so how can the query of `k` find it?
# It takes two attentions, one after the other:
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
# `attend(scores, values)` is a causal attention with scores (n, n) of your choice, and 100 is as good as certain.
# Row i of the shift `torch.eye(48).roll(1, 0)` has its 1 in column i − 1.
# No letter stands before the first, so set row 0 of what layer 0 brings to zero.


# %% tags=["exercise", "build"]
def copy_by_hand(ids):
    """(n,) letters → (n, 32): for each position a row with its 1 at the next letter."""
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
# We count from the second letter of the second block on, because nobody can know where a block ends.

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
by_hand.rename_axis("letters in a block").round(2)

# %% [markdown]
# **Two attentions copy without a mistake at any distance**, as long as no letter stands twice in a block.
# If `k` is followed by `g` in one place and by `b` in another, they can only guess.
#
# ## Two maps from the weights
#
# Did the training find this circuit?
# Our network has two layers of two heads.


# %%
class Copier(nn.Module):
    """Attention only: (batch, n) letters → (batch, n, 32) logits of the next letter."""

    def __init__(self, layers=2, dim=32, heads=2, std=0.3):
        super().__init__()
        self.letters, self.positions = nn.Embedding(32, dim), nn.Embedding(48, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.layers = nn.ModuleList(
            cu.MultiHeadAttention(dim, heads, bias=False) for _ in range(layers)
        )
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
# We follow the letter through $W_V$ and $W_O$ of the head into the logits, and this product of matrices is the **OV map** ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# Row *g* holds what the head adds to the logits when it looks at *g*, so a diagonal means copying.


# %%
def ov_map(model, induction):
    """Letter that the head looks at × letter that it speaks for."""
    _, _, W_OV = of_head(model.layers[1], induction)  # W_Q, W_K, and W_V W_O
    said = letters_in(model, 1) @ W_OV  # the letters, as layer 1 reads them
    return said * model.norm.weight @ model.output.weight.T


# %% [markdown]
# Where does it look?
# In layer 1 the query of *k* meets keys that hold what the previous-token head has written, such as "after *b*".
# All queries times all such keys are the **QK map**: row *k*, column *b* says how much the head, standing at *k*, likes a position *after b*.
# In `k g b k` the position of `g` is *after k*.
#
# ### Exercise 2 · Where to look
#
# *build · 9 minutes*
#
# Write `my_qk_map`.
# `of_head(attention, h)` gives $W_Q$, $W_K$ and $W_V W_O$ of a head, to be multiplied from the right.
# `letters_in(model, layer)` are the 32 letters as a layer reads them, with the gain of its norm.
# Layer 1 also reads what the previous-token head writes, so this is multiplied by the gain `model.norms[1].weight`.


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
# Now train your own.
# Each text repeats a random block of 6 to 20 letters, each time of another length, so that no fixed distance helps.


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
        loss = F.cross_entropy(model(ids[:, :-1])[asked], ids[:, 1:][asked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()
    return model


# %% tags=["nbval-ignore-output"]
torch.manual_seed(0)
measured_on = texts(256, torch.Generator().manual_seed(7))
film = Film(*measured_on, qk_map=cu.choose(my_qk_map, circuits.qk_map), ov_map=ov_map)
model = train(Copier(), watch=film)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
previous, induction = film.pair
loss, accuracy = copied(model, *measured_on)
print(f"loss {loss:.2f}, accuracy {accuracy:.3f}; heads 0.{previous} and 1.{induction}")

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
cu.explore.own_film(film.frames())

# %% [markdown]
# Both halves of the circuit by hand are there: *standing at k, look after k*, and *looking at g, say g*.
#
# The film ends at step 200, but the training goes on.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
one = cu.stored_runs("what_heads_learn", "one_layer", rate=0.01, seed=0)[0]
rows = pd.DataFrame([{k: f[k] for k in ("step", "loss", "before")} for f in film.frames()])
fig, (left, right) = cu.subplots(
    1, 2, width=8.0, height=2.7,
    alt="Left, the loss over 700 steps: with two layers it falls from 3.5 to 1 near step 100, then slowly to about 0.3, and a second time, to below 0.1, near step 500. With one layer it slides to "
    "about 2.4. Right, the weight on the letter before is near that of equal weights up to step 100, about 0.2 at step 200, and above 0.9 after the second fall.",
)  # fmt: skip
left.plot(rows["step"], rows["loss"], color=cu.COLORS["key"])
points = torch.tensor(one.curves["loss"])
points = points[points[:, 0] <= 700]
left.plot(points[:, 0], points[:, 1], color=cu.COLORS["line"])
left.axhline(which_letters(*measured_on), color="0.5", linestyle="--", linewidth=1)
left.text(700, 2.62, "knows which letters repeat", ha="right", va="bottom", fontsize=8)
left.set(xlabel="Step", ylabel="Loss", ylim=(0, 3.7), xlim=(0, 700))
right.plot(rows["step"], rows["before"], color=cu.COLORS["query"])
even = (1 / torch.arange(1, 49)).expand(256, 48)[torch.arange(48) >= measured_on[1]].mean().item()
right.axhline(even, color="0.5", linestyle=":", linewidth=1)
right.text(700, even + 0.02, "equal weights", ha="right", va="bottom", fontsize=8)
right.set(xlabel="Step", ylabel="Weight on the letter before", ylim=(0, 1), xlim=(0, 700))
fig

# %% [markdown]
# The loss falls twice.
# At the first fall the previous-token head is still blurred: it gives the letter before hardly more weight than others.
# **A blurred head is enough to copy most letters**, and here it becomes sharp only at the second fall.
#
# ## Forbid the diagonal
#
# A map that looks like the circuit doesn't prove that the network uses it.
# So we forbid the diagonal.
# Each score of layer 1 is a sum to which the entries of the QK map contribute, and from all scores we subtract what the 32 entries of the diagonal contribute, as if each had the mean of its row.
# As a control we do the same with other entries.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The network copies nearly all letters. What is left if we erase only the diagonal, and what if we erase everything but the diagonal?",
    [
        "little in both cases",
        "most in both cases",
        "little without the diagonal, most with it alone",
        "most without the diagonal, little with it alone",
    ],
    answer="little without the diagonal, most with it alone",
    wrong={
        "little in both cases": "The other 992 entries are much more than the diagonal. But what do they tell the head about k, g and b?",
        "most in both cases": "Could the network find the right place in another way? In the circuit by hand there is none.",
        "most without the diagonal, little with it alone": "Which cell says: standing at k, look after k?",
    },
    why="Copying needs these 32 entries and no others. Yet the others, taken together, are heavier.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ids, lengths = measured_on
by_erasing = {
    which: cuts.measured(logits, ids, lengths)[1]
    for which, logits in cuts.erasures(model, ids, previous).items()
}
pd.DataFrame({"accuracy": by_erasing}).rename_axis("erased").round(2)

# %% [markdown]
# **Without the diagonal most of the copying is gone, and with nothing but the diagonal all of it stays.**
# The 32 others are those farthest from the mean of their row, and *equally heavy* are as many as have the diagonal's sum of squares.
#
# ## Who is hurt?
#
# After a mean **[ablation](C_glossary.ipynb#ablation)** a head says everywhere the same, its average.
#
# ### Exercise 3 · Who is hurt?
#
# *predict · 4 minutes*
#
# How many letters does your network still copy after each of these ablations, *most* or *little*?
#
# - (a) the previous-token head of layer 0;
# - (b) the other head of layer 0;
# - (c) the head of layer 1 with the larger induction score;
# - (d) both heads of layer 1.


# %% tags=["exercise", "predict"]
def who_is_hurt():
    """Four words, for (a) to (d), each "most" or "little"."""
    return ...  # such as ["most", "most", "most", "most"]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.who_is_hurt(who_is_hurt)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def who_is_hurt_solution():
    """Both heads of layer 1 copy, so one stands in for the other; only one head of layer 0 looks back."""
    return ["little", "most", "most", "little"]


cu.checks.who_is_hurt(who_is_hurt_solution)

# %% tags=["hide-input", "hide-output", "nbval-ignore-output"] jupyter={"source_hidden": true, "outputs_hidden": true}
by_ablating = {
    which: cuts.measured(logits, ids, lengths)[1]
    for which, logits in cuts.ablations(model, ids, previous, induction).items()
}
pd.DataFrame({"accuracy": by_ablating}).rename_axis("ablated").round(2)

# %% [markdown]
# Without the head that looks back little is left.
# But the **two induction heads stand in for each other**, so an ablation that costs little doesn't show that a head does little.
#
# What do the layers pass on?
# With **[activation patching](C_glossary.ipynb#activation-patching)** we move one activation from one run into another.
# A text has 16 different letters and then the first nine again, so the answer stands at position 9.
# We change one letter, and the answer is lost.
# Then one part comes from the unchanged run: does the answer come back?


# %%
def patched(model, previous):
    """Probability of the answer, by what was changed and what was patched."""
    drawn = torch.rand(256, 32, generator=torch.Generator().manual_seed(5)).argsort(1)
    text, found = torch.cat([drawn[:, :16], drawn[:, :9]], dim=1), {}
    with record_activations(model) as run, torch.no_grad():
        model(text)
    for name, place in (("the answer", 9), ("the letter before it", 8)):
        changed = text.clone()
        changed[:, place] = drawn[:, 20]  # a letter that stands nowhere else
        for part, where in cuts.places(previous).items():
            with cu.intervene(model) as acts, torch.no_grad():
                acts.patch(None, run, **where)  # such as layers=0, heads=1, positions=9
                p = model(changed)[:, -1].softmax(-1)[range(256), text[:, 9]]
            found[name, part] = p.mean().item()
    return found


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
by_patching = pd.Series(patched(model, previous))
by_patching.unstack(0).loc[[part for _, part in by_patching.index[:5]]].round(2)

# %% [markdown]
# The left column shows *what is moved*: if the answer itself was changed, only layer 1 brings it back.
# The right column shows *how the place is found*: the answer stands at its position, but the letter before it is another.
# **One vector, which one head of layer 0 writes at this one position, brings the answer back.**
# It is the note *after k*.
#
# <details><summary><em>How sure is this?</em></summary>
#
# At the rates 0.003, 0.01 and 0.03 we trained three networks each for 1,500 steps, until their loss was flat, and all nine behave as in the tables.
# Without the diagonal their accuracy is between 0.15 and 0.39, and without all other entries at least 0.98.
# With one layer the loss stays above 2.2, and at 0.001 the second fall takes longer.
#
# Where the letter before the answer was changed, the answer keeps a probability of about 0.3, so the network has other clues as well.
#
# With embeddings that start with a standard deviation of 1 instead of 0.3 the OV map is half whole first, in all nine trainings, and with 0.1 the QK map is, but for two in which both come together.
# So the order comes from the start.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The circuit by hand is always right where all letters differ, and less often where they may repeat."
):
    assert (by_hand["all letters different"] == 1).all()
    assert 0.55 < by_hand["letters may repeat"].min() < by_hand["letters may repeat"].max() < 0.95

with cu.guard(
    "In each film both diagonals are half whole before the loss is below 2.5, and 1.5 comes by step 130."
):
    for run in cu.stored_runs("what_heads_learn", "filmed"):
        assert min(run.result["qk half, loss"], run.result["ov half, loss"]) > 2.5
        assert run.result["step below 1.5"] <= 130

with cu.guard("One layer never gets below the loss of a guess that knows which letters repeat."):
    for run in cu.stored_runs("what_heads_learn", "one_layer"):
        assert run.result["loss"] > run.result["which_letters"]

with cu.guard(
    "Your network copies, and its previous-token head becomes sharp only at the second fall of the loss."
):
    assert accuracy > 0.93 and rows["before"].iloc[-1] > 0.7
    assert rows["before"][rows["loss"] < 1].iloc[0] < 0.2 and 0.03 < even < 0.04

with cu.guard(
    "Without the diagonal most letters are lost, and without all other entries hardly any."
):
    assert by_erasing["the diagonal"] < 0.5
    assert min(by_erasing[name] for name in cuts.ERASED[2:]) > by_erasing["nothing"] - 0.03

with cu.guard("One head of layer 0 is needed, and the two of layer 1 stand in for each other."):
    single = ["the other head of layer 0", "first induction head", "second induction head"]
    assert min(by_ablating[name] for name in single) > 0.6
    assert max(by_ablating[name] for name in ("previous-token head", "both induction heads")) < 0.3

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
with cu.guard(
    "At three rates all networks have a sharp previous-token head, need the diagonal, and nothing else of the map."
):
    for run in cu.stored_runs("what_heads_learn", "without_parts"):
        if run.config["rate"] > 0.001:
            assert run.result["accuracy"] > 0.98 and run.result["before"] > 0.9
            assert 0.15 < run.result["the diagonal"] < 0.39
            assert min(run.result[name] for name in cuts.ERASED[2:]) > 0.98
            assert (
                run.result["both induction heads"] < 0.05
                and run.result["previous-token head"] < 0.15
            )
            assert min(run.result[name] for name in single) > 0.85

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
# We give SmolLM2 forty random tokens twice, as in [Real weights](18_real_weights.ipynb#Copying:-induction-heads).
# Which of its 270 heads look at the token after the same token?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ten = cu.stored_runs("real_weights", "induction_heads")[0].examples[0]["gave"]
print("more than 0.3 of the weight:", ", ".join(f"{layer}.{head}" for layer, head, *_ in ten))

# %% [markdown]
# These ten are its induction heads, and 16.0 is a previous-token head.
# Without 16.0 alone the model copies a tenth of the tokens instead of two thirds, as without the best four of the ten.
# Patching works here, too: what 16.0 gives at one position brings two thirds of the difference back, and no other head of its layer more than 0.02.
# Its rule isn't as simple as ours: of 400 random tokens it copies a quarter, and of 400 frequent ones three quarters.
#
# What do such heads do where nothing repeats?
# A softmax has to put its weight somewhere, and a third of all weight lies on the very first token, an **[attention sink](C_glossary.ipynb#attention-sink)** ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453)).
# We forbid all later tokens to look at it, and read how much the loss on our story rises.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sink = cu.stored_runs("real_weights", "sinks", text="story")[0].examples[0]["gave"]
shown = [
    "first, all layers",
    "first, layers 10–19",
    "four others, layers 10–19",
    "first everywhere, second in layers 10–19",
    "first everywhere, fifth in layers 10–19",
]
whole = sink["losses"]["nothing"][0]
pd.DataFrame(
    {"the loss rises by": {name: sink["losses"][name][0] - whole for name in shown}}
).rename_axis("forbidden tokens").round(2)

# %% [markdown]
# Forbidden everywhere, the first token is hardly missed.
# Forbidden in layers 10–19 only, it is missed.
# The last two rows show who has taken over: once the first token is out of sight, **the second is the sink**, and forbidding *it* costs just as much.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of 30 sentences such as “The capital of Japan is” SmolLM2 completes 20 rightly, and with <|endoftext|> in front 28. Now <|endoftext|> stands in front, but no token may look at it, in any layer. How many are right?",
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
smollm.known(heads.capitals_behind, lm, front=front)

# %% [markdown]
# So say what came first when you test what a model knows: behind *apple* 28 of these answers are right.
#
# ### What the maps leave out
#
# The maps leave out the positions, and where letters repeat inside a block our network is right more often than the rule, so it has learned something else as well.
# The names of the heads are ours, and in other texts a head may do other things.
# In GPT-2, [Wang et al. (2023)](https://arxiv.org/abs/2211.00593) found heads that take over once others are ablated.
#
# <details><summary><em>How sure is this?</em></summary>
#
# All numbers hold for SmolLM2's file of four bits.
# Of the heads of layers 0–16, ablated alone, 16.0 costs most, but two of the first layers come near it.
# Patching head 19.3 brings back another fifth.
#
# In two other texts the sink costs 0.7 and 0.95.
# It is a single token, and it takes more than 60 of 125 other tokens to cost as much.
#
# </details>

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Ten heads look at the token after the same token, and the loss of 16.0 costs what the loss of the best four does."
):
    assert len(ten) == 10
    (alone,) = cu.stored_runs("real_weights", "copying", take="alone", seed=9 * 16)
    (four,) = cu.stored_runs("real_weights", "copying", take="best", count=4)
    assert (
        abs(alone.result["copied"] - four.result["copied"]) < 0.03 and alone.result["copied"] < 0.12
    )

with cu.guard(
    "What 16.0 gives at one position brings back two thirds, and each other head of layer 16 next to nothing."
):
    (noted,) = cu.stored_runs("real_weights", "noted_before")
    brought = noted.examples[0]["gave"]
    assert 0.6 < brought["16.0 at Y"][0] < 0.7
    assert max(abs(brought[f"16.{head} at Y"][0]) for head in range(1, 9)) < 0.025

with cu.guard("Frequent tokens are copied over 400 positions, and others not."):
    frequent, others_ = (
        cu.stored_runs("real_weights", "longer_copies", tokens=kind, block=400)[0].result["second"]
        for kind in ("frequent", "all")
    )
    assert frequent > 0.7 and others_ < 0.27

with cu.guard(
    "In three texts the first token is missed in layers 10–19 only, and the second once it has taken over."
):
    for text in ("story", "news", "sentences"):
        (run,) = cu.stored_runs("real_weights", "sinks", text=text)
        gave = run.examples[0]["gave"]
        rise = {
            name: loss[0] - gave["losses"]["nothing"][0] for name, loss in gave["losses"].items()
        }
        assert max(rise["first, all layers"], rise["four others, layers 10–19"]) < 0.1
        assert min(rise[name] for name in (shown[1], shown[3])) > 0.5 > 0.11 > rise[shown[4]]
        assert 0.33 < gave["weights"]["nothing"][0] < 0.45

with cu.guard("It takes more than 60 of 125 other tokens to cost as much as the sink."):
    for run in cu.stored_runs("real_weights", "hidden_words"):
        gave = run.examples[0]["gave"]
        assert gave["60 others"][1] < gave["first"][1]

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
#   In our network copying needs the diagonal of the QK map, and of this map nothing else.
# - After an ablation another head may stand in, as in our layer 1.
#   Patching shows what is passed on.

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
