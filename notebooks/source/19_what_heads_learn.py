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
# This network has two layers of attention and nothing else, and it learns in seconds to go on when random letters repeat.
# Both maps are computed from its weights alone, without any text.
# A row of the left map says *where* a head looks, and a row of the right map says *what* it says there.
# The darkest cell is the largest entry of its row, and a green mark shows a row whose largest entry is on the diagonal.
# Move through the training step by step: what appears in the maps, and when does the loss notice?

# %% [markdown] tags=["paths"]
# On the path to a real model.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.registry import cached
from course_utils.interventions import record_activations
from course_utils.lessons.real_weights import heads as real_heads
from course_utils.lessons.real_weights import smollm
from course_utils.lessons.real_weights.smollm import known
from course_utils.lessons.what_heads_learn import circuits, cuts
from course_utils.lessons.what_heads_learn.circuits import attend, letters_in, of_head
from course_utils.lessons.what_heads_learn.film import Film, copied, which_letters

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.film()

# %% [markdown]
# Near step 100 the loss falls off a cliff.
# Both diagonals have grown before that, and a network with one layer, in gray, has no cliff at all.
# To see what a diagonal is good for, we build the same algorithm by hand.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - build a network by hand that copies what it has never seen, from two attentions;
# - read from the weights of a trained network where a head looks and what it says;
# - test such a reading: erase it, ablate the heads, patch what they pass on, each with a control;
# - say what of this holds in a real model.

# %% [markdown] tags=["needs"]
# You will need heads ([Multi-head attention](08_multi_head_attention.ipynb)), the residual stream ([The Transformer](10_transformer.ipynb)), and a language model ([GPT](13_gpt.ipynb)).

# %% jupyter={"source_hidden": true}
cu.recall("multi_head_attention", "transformer")

# %% [markdown]
# ## A circuit by hand
#
# Take a pencil and the letters `k g b k`.
# At the second `k` we want to say `g`, the letter that came after `k` last time.
# But `g` doesn't look like `k`, so how can the query of `k` find it?
# Two attentions can do it, one after the other:
#
# | | k | g | b | k |
# |---|---|---|---|---|
# | layer 0 looks one position back and notes | – | after k | after g | after b |
# | layer 1 asks *who is after k?* | | **yes** | no | no |
# | it says the letter that it finds | | | | **g** |
#
# The head in layer 0 is a **previous-token head**, because it brings to each position the token before it.
# The head in layer 1 is an **[induction head](C_glossary.ipynb#induction-head)**, and it copies the token that came after the same token last time ([Olsson et al., 2022](https://arxiv.org/abs/2209.11895)).
# Two heads that pass something on like this are called a **circuit**.
#
# ### Exercise 1 · Copy by hand
#
# *build · 9 minutes*
#
# Write the circuit without any training.
# Letters and positions are one-hot rows: `letter = torch.eye(32)[ids]` and `position = torch.eye(48)[:n]`.
# `attend(scores, values)` is a causal attention whose scores (n, n) you choose, and a score of 100 is as good as certain.
# `torch.eye(48).roll(1, 0)` is a shift: its row i has a 1 in column i − 1.
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
# How well does it copy?
# We count from the second letter of the second block on, because nobody can know where a block ends.

# %%
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
# If `k` is followed by `g` in one place and by `b` in another, the circuit can only guess between them.
#
# ## Two maps from the weights
#
# Did the training find this circuit?
# Our network has embeddings, positions, and two layers of two heads, without any feed-forward network.
# Each head adds a vector to the residual stream.


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
# What does a head say if it looks at a letter?
# We follow the letter through the head's values and its output, into the logits.
# This product of matrices is the **OV map**, after its matrices $W_V W_O$ ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# Row *g* of the map holds the logits that the head adds when it looks at *g*, so with the diagonal on top it copies.


# %%
def ov_map(model, induction):
    """Letter that the head looks at × letter that it speaks for."""
    _, _, W_OV = of_head(model.layers[1], induction)  # W_Q, W_K, and W_V W_O of this head
    said = letters_in(model, 1) @ W_OV  # (32, 32) letters × features, as layer 1 reads them
    return said * model.norm.weight @ model.output.weight.T


# %% [markdown]
# The other map says where the head looks, and it needs both layers.
# A query of layer 1 comes from a letter, say *k*.
# A key of layer 1 comes from what the previous-token head has written at a position, such as "after *k*".
# The product of all queries with all such keys is the **QK map**: row *k*, column *b* says how much the head, standing at *k*, likes a position *after b*.
#
# ### Exercise 2 · Where to look
#
# *build · 10 minutes*
#
# Write `my_qk_map`.
# `of_head(attention, h)` gives $W_Q$, $W_K$ and $W_V W_O$ of a head, each to be multiplied from the right.
# `letters_in(model, layer)` are the 32 letters as a layer reads them, with the gain of its norm.
# What the previous-token head writes is read by layer 1, so it has to be multiplied by the gain `model.norms[1].weight`, too.


# %% tags=["exercise", "build"]
def my_qk_map(model, previous, induction):
    """Letter at which the head stands × letter after which it looks; two numbers of heads."""
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
# Each text repeats a random block of 6 to 20 letters, with a new length for each text, so that no fixed distance helps.


# %%
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
previous, induction = film.pair
loss, accuracy = copied(model, *measured_on)
print(f"loss {loss:.2f}, accuracy {accuracy:.3f}; heads 0.{previous} and 1.{induction}")

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
cu.explore.own_film(film.frames())

# %% [markdown]
# In the film you see both halves of the circuit by hand.
# The diagonal on the left says *stand at k, look after k*, and the diagonal on the right says *look at g, say g*.
# Neither is of use without the other, and that is why the loss waits and then falls fast.
#
# The film ends at step 200, but the training goes on.
# The next picture shows all of it, with the weight that head 0 or 1 of layer 0, the better one, puts on the letter before.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
one = cu.stored_runs("what_heads_learn", "one_layer", rate=0.01, seed=0)[0]
rows = pd.DataFrame([{k: f[k] for k in ("step", "loss", "before")} for f in film.frames()])
fig, (left, right) = cu.subplots(
    1, 2, width=8.0, height=2.7,
    alt="Left, the loss over 700 steps: with two layers it falls from 3.5 to 1 near step 100, then slowly to about 0.3, and a second time, to below 0.1, near step 500. With one layer it slides to "
    "about 2.4. Right, the weight on the letter before rises to about 0.4 by step 200 and jumps to 0.9 at the second step.",
)  # fmt: skip
left.plot(rows["step"], rows["loss"], color=cu.COLORS["key"])
points = torch.tensor(one.curves["loss"])
points = points[points[:, 0] <= 700]
left.plot(points[:, 0], points[:, 1], color=cu.COLORS["line"])
left.axhline(which_letters(*measured_on), color="0.5", linestyle="--", linewidth=1)
left.text(700, 2.62, "knows which letters repeat", ha="right", va="bottom", fontsize=8)
left.set(xlabel="Step", ylabel="Loss", ylim=(0, 3.7), xlim=(0, 700))
right.plot(rows["step"], rows["before"], color=cu.COLORS["query"])
right.axhline(0.07, color="0.5", linestyle=":", linewidth=1)
right.text(700, 0.09, "equal weights", ha="right", va="bottom", fontsize=8)
right.set(xlabel="Step", ylabel="Weight on the letter before", ylim=(0, 1), xlim=(0, 700))
fig

# %% [markdown]
# There are two steps down.
# When the loss falls for the first time, the previous-token head is still blurred, with hardly more weight on the letter before than on others.
# **Two blurred heads already copy most letters**, and here the head becomes sharp only with the second step down.
#
# ## Forbid the diagonal
#
# A map that looks like the circuit is not yet a proof that the network uses it.
# So we change the map and see.
# Each score of layer 1 is a sum, and one part of it comes from the entries of the QK map.
# From all scores we subtract what the 32 entries of the diagonal contribute, as if each of them had the mean of its row.
# As a control we do the same with other entries, up to all 992 of them.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The network copies 98 of 100 letters. What is left if we erase only the diagonal, and what if we erase everything but the diagonal?",
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
    why="The algorithm is in the 32 entries. The others weigh more than twice as much, and copying goes on without them.",
)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
ids, lengths = measured_on
by_erasing = {
    which: cuts.measured(logits, ids, lengths)[1]
    for which, logits in cuts.erasures(model, ids, previous).items()
}
pd.DataFrame({"accuracy": by_erasing}).rename_axis("erased").round(2)

# %% [markdown]
# **Without its diagonal the network no longer copies, and with nothing but the diagonal it copies as well as before.**
# The 32 others are those farthest from the mean of their row.
# The equally heavy others are as many as it takes to equal the diagonal's sum of squares.
#
# ## Who is hurt?
#
# Next we ablate whole heads.
# With mean **[ablation](C_glossary.ipynb#ablation)** a head says the same everywhere, namely its average.
#
# ### Exercise 3 · Who is hurt?
#
# *predict · 5 minutes*
#
# Your network copies nearly all letters.
# How much is left after each of these ablations, *most* (more than half of the letters) or *little*?
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
# One previous-token head carries nearly everything, while the **two induction heads stand in for each other**: without either of them alone most letters are still right.
# So an ablation that costs little doesn't show that a head does little.
# Perhaps somebody else has taken over.
#
# What do the two layers pass on to each other?
# **[Activation patching](C_glossary.ipynb#activation-patching)** answers this, because it moves one activation from one run into another.
# A text has 16 different letters and then the first nine again, so that the right answer stands at position 9.
# We change one letter of it, and the answer is lost.
# Then we patch one part from the unchanged run, and see whether the answer comes back.


# %%
def patched(model, previous):
    """Mean probability of the right answer, by the letter that was changed and the part that was patched."""
    parts = {
        "nothing": None,
        "previous-token head, at the answer": {"layers": 0, "heads": previous, "positions": 9},
        "previous-token head, elsewhere": {
            "layers": 0, "heads": previous, "positions": [*range(9), *range(10, 25)],
        },
        "other head of layer 0, at the answer": {"layers": 0, "heads": 1 - previous, "positions": 9},
        "layer 1, at the last letter": {"layers": 1, "positions": 24},
    }  # fmt: skip
    drawn = torch.rand(256, 32, generator=torch.Generator().manual_seed(5)).argsort(dim=1)
    text = torch.cat([drawn[:, :16], drawn[:, :9]], dim=1)
    answer, found = text[:, 9], {}
    with record_activations(model) as run, torch.no_grad():
        model(text)
    for name, place in (("the answer", 9), ("the letter before it", 8)):
        changed = text.clone()
        changed[:, place] = drawn[:, 20]  # a letter that stands nowhere else
        for part, where in parts.items():
            with cu.intervene(model) as acts, torch.no_grad():
                if where:
                    acts.patch(None, run, **where)
                p = model(changed)[:, -1].softmax(-1)[range(256), answer]
            found[name, part] = p.mean().item()
    return found


# %% tags=["nbval-ignore-output"]
by_patching = pd.Series(patched(model, previous))
by_patching.unstack(0).loc[[part for _, part in by_patching.index[:5]]].round(2)

# %% [markdown]
# The left column shows *what is moved*: if the answer itself was changed, only layer 1, at the last letter, can bring it back.
# The right column shows *how the place is found*.
# There the answer still stands at its position, but the letter before it is another, so nobody recognizes it.
# **A single vector, which one head of layer 0 writes at this one position, brings the answer back.**
# It is the note *after k* from the table for the pencil.
#
# <details><summary><em>How sure is this?</em></summary>
#
# STARTS
#
# </details>

# %% jupyter={"source_hidden": true}
cu.quiz("what_heads_learn", "which_control")

# %% [markdown]
# ## And in a real model
#
# SmolLM2 has 270 heads in 30 layers.
# We gave it forty random tokens twice, as in [Real weights](18_real_weights.ipynb#Copying:-induction-heads), and asked which heads look at the token after the same token.

# %% tags=["nbval-ignore-output"]
lm = smollm.reference() if cached("smollm2") else None  # without the file: as recorded
ten = known(real_heads.induction_heads, lm)
print("more than 0.3 of the weight:", ", ".join(f"{layer}.{head}" for layer, head, *_ in ten))

# %% [markdown]
# These ten heads do what our induction heads do.
# A previous-token head is there, too: if we ablate 16.0, one head of 270, the model copies a tenth of the tokens instead of two thirds, and that costs more than ablating any one of the ten.
# But it is no circuit by hand.
# At forty tokens it copies 0.77 of any random tokens, at four hundred only 0.23, and when the tokens are frequent ones it still copies 0.75.
# So it isn't the distance alone that decides.
#
# What do such heads do where nothing repeats?
# A softmax has to put its weight somewhere, and a third of all weight in SmolLM2 lies on the very first token, an **[attention sink](C_glossary.ipynb#attention-sink)** ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453)).
# We forbid all later tokens to look at it, and read how much the loss on our story rises.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
sink = known(real_heads.sinks, lm, text="story")
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
# It couldn't be otherwise: SmolLM2's positions are rotary and count only distances, so a first token that nobody sees is the same as a text that begins one token later.
# Forbidden in the layers 10–19 only, it is missed, and four other tokens are not.
# The last two rows show who has taken over: once the first token is out of sight, **the second token is the sink**, and now forbidding *it* costs just as much.

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
    why="A first token that nobody sees is a text that begins one token later, and that is the bare sentence. Even the probabilities are the same.",
)

# %% [markdown]
# What stands in front of a question matters: behind *apple* 28 of the 30 capitals are right, and behind *green* only 6.
# So if you test what a model knows, say what came first.
#
# ### What this doesn't show
#
# The maps follow the letters alone, and leave out the positions, so they don't explain everything.
# Where letters repeat inside a block, our network is right more often than the rule, so it also uses something else.
# On blocks longer than those of its training it gets worse, because the rows of learned positions have never been used like that.
# And the names *previous-token head* and *induction head* are ours: no head knows them, and a head may do other things in other texts.
# [Wang et al. (2023)](https://arxiv.org/abs/2211.00593) took apart a circuit of 26 heads in GPT-2, with patches and with backups that stand in.

# %% [markdown]
# ## Take-aways
#
# - Copying what was never seen takes two attentions here: a previous-token head notes what came before, and an induction head finds the note.
# - From the weights alone we read where a head looks (QK) and what it says (OV).
#   In this network the diagonal of the QK map is what copying needs, and it is enough.
# - Ablate, and somebody may stand in.
#   Patch, and you see what is passed on.

# %% [markdown] tags=["next"]
# Next: [a project of your own](D_capstone.ipynb), for example with heads of your own.

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
