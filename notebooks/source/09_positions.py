# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Positions
#
# **How does attention know which word came first, and what does it do at a distance where it has never been?**
#
# A small model was trained on rows of 16 tokens: at each place, name **the token three before**.
# Its positions are [rotary](C_glossary.ipynb#rotary-positions), the usual kind today.
# Now it gets longer rows.
#
# On the way to GPT: [Waves](#Waves), [Moving is turning](#Moving-is-turning), [Rotary: turn queries and keys](#Rotary:-turn-queries-and-keys).
# On the way to images: [Waves](#Waves), [Learned and relative positions](#Learned-and-relative-positions).
# On the way to translation: [Waves](#Waves), [Moving is turning](#Moving-is-turning).

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.kit.tuned import table
from course_utils.lessons.positions.rotary import turn
from course_utils.positions import RelativeBias, RelativeKeys, rotate, sinusoidal_table

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.offsets()

# %% [markdown]
# The curve is the mean score of a key over its **offset** from the query: −3 is three to the left.
# Training made −3 the highest of the offsets that it saw (shaded); nothing holds the others down.
# Move the slider: more and more of them rise above the second highest (dashed), and the answers go wrong.
#
# After this chapter you can
#
# - write sinusoidal and rotary positions, and say where each kind enters attention;
# - move one position to another by a rotation of the right sign;
# - say why a model fails on longer texts, and what people do about it.
#
# It needs [Self-attention](07_self_attention.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("self_attention", "masks")

# %% [markdown]
# ## Waves
#
# Self-attention alone gives *dog* the same vector in *dog bites man* and in *man bites dog*.
# The first idea: add to the embedding $x_i$ a vector $p_i$ that says "I am number $i$":
#
# | idea | what is wrong with it |
# |---|---|
# | the number $i$ in one column | grows without bound, and is soon much larger than the embedding |
# | the fraction $i/n$ | the third word has another code in each sentence, and "next to" is another distance |
# | $i$ in binary, a bit a column | bounded and unique, but neighbors differ wildly: $7 = 0111$, $8 = 1000$ |
#
# In binary, each column alternates with a period of its own.
# **Make these steps smooth waves**.
#
# A table $P$ has a row for each position $i$ and $d$ columns in pairs $j = 0, \dots, d/2 - 1$, each a sine and a cosine of one frequency $\omega_j$.
# These are **sinusoidal positions** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5):
#
# $$p_{i,\,2j} = \sin(i\,\omega_j),\qquad p_{i,\,2j+1} = \cos(i\,\omega_j),\qquad \omega_j = \theta^{-2j/d},\qquad \theta = 10000 .$$
#
# $\theta$ is called the **base**.
# By hand for $d = 4$: $\omega_0 = 1$ and $\omega_1 = 10000^{-1/2} = 0.01$, so
#
# | | $\sin i$ | $\cos i$ | $\sin 0.01i$ | $\cos 0.01i$ |
# |---|---|---|---|---|
# | $p_0$ | 0 | 1 | 0 | 1 |
# | $p_1$ | 0.841 | 0.540 | 0.010 | 1.000 |
# | $p_2$ | 0.909 | −0.416 | 0.020 | 1.000 |


# %%
def frequencies(dim, base=10_000.0):
    """ω of each pair of columns: (dim / 2,)."""
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def sinusoids(length, dim):
    """The table P: (length, dim)."""
    angles = torch.arange(length)[:, None] * frequencies(dim)  # (length, dim / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


columns = 32  # try 16 | 32 | 64
P = sinusoids(60, columns)
same_table = torch.equal(P, sinusoidal_table(60, columns))
print(sinusoids(3, 4).numpy().round(3), "\nequal to course_utils:", same_table)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
bits = torch.tensor([[i >> bit & 1 for bit in range(6)] for i in range(60)])
fig, (left, middle, right) = cu.subplots(
    1, 3, width=9, height=3.6, width_ratios=[1, 2.4, 3],
    alt="Left: the six bits of the numbers 0 to 59, lowest bit first: stripes that double in height from column "
    f"to column. Middle: the {columns} columns of the sinusoidal table: fast waves on the left that slow down to the "
    "right. Right: columns 6 to 9 as curves, two pairs of a sine and a cosine of the same period.",
)  # fmt: skip
cu.heatmap(left, bits, xlabel="bit", ylabel="position i", title="binary")
image = cu.heatmap(
    middle, P, xlabel="column", ylabel=None, vmin=-1, cmap="signs", title="the table P"
)
for ax in (left, middle):
    ax.set_aspect("auto")
fig.colorbar(image, ax=middle)
for column, (name, dash) in zip(
    range(6, 10), [("key", "-"), ("key", "--"), ("query", "-"), ("query", "--")], strict=True
):  # fmt: skip
    wave = "cosine" if column % 2 else "sine"
    right.plot(P[:, column], dash, color=cu.COLORS[name], label=f"{column}, {wave}")
right.set(xlabel="position i", xlim=(0, 59), ylim=(-1.1, 1.7), title="columns 6 to 9")
right.legend(frameon=False, ncols=2, fontsize=8, loc="upper center")
fig

# %% [markdown]
# Stripes and waves, both slower from column to column; the slowest pair has the period $2\pi/\omega_{15} = 35{,}333$.
#
# ### Exercise 1 · Five numbers on paper
#
# *predict · 5 minutes*
#
# For $d = 4$, to two decimals: (a) the sum of the entries of $p_0$; (b) $p_7 \cdot p_7$, the sum of the squares; (c) $p_0 \cdot p_1$; (d) $p_5 \cdot p_6$, without computing $\sin 5$ (which theorem about $\cos(a - b)$ helps?); (e) as a whole number, after how many positions does the slow pair come back to where it began?


# %% tags=["exercise", "predict"]
def predicted_products():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_products(predicted_products)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_products_solution():
    """Two cosines of 0; sin² + cos² twice; cos 1 + cos 0.01; the same, one step apart; 2π / 0.01."""
    return [2, 2, 1.54, 1.54, 628]


cu.checks.predicted_products(predicted_products_solution)

# %% [markdown]
# ## Moving is turning
#
# Why sine *and* cosine?
# Take a pair as a point on a circle, with the sine to the right and the cosine up.
# Each step to the next position turns it by the angle $\omega$:

# %% jupyter={"source_hidden": true}
cu.explore.positions()

# %% [markdown]
# As a formula, by the addition theorems for $\sin(a+b)$ and $\cos(a+b)$, with vectors as rows:
#
# $$(p_{i+k,\,2j},\; p_{i+k,\,2j+1}) = (p_{i,\,2j},\; p_{i,\,2j+1})\begin{pmatrix}\cos k\omega_j & -\sin k\omega_j\\ \sin k\omega_j & \cos k\omega_j\end{pmatrix} .$$
#
# The matrix contains $k$ and not $i$: "three to the right" is the *same* linear map everywhere, and linear maps are what $W_Q$ and $W_K$ can learn.
# **Mind the sign**, with a pencil: at $i = 0$ the pair is $(0, 1)$, which picks the lower row of the matrix, $(\sin k\omega, \cos k\omega)$.
# With the minus in the other corner it would be position $-k$.
#
# The right picture adds all pairs up: the dot product $p_i \cdot p_{i+k} = \sum_j \cos(k\,\omega_j)$.
# On the whole it falls with the distance, to the left as to the right.


# %%
def shift_matrix(k, dim):
    """(dim, dim): row p_i times it is row p_(i + k), for each i."""
    angles = k * frequencies(dim)
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)
    return torch.block_diag(*blocks).float()


offset = 3
moved = (P[:-offset] @ shift_matrix(offset, columns) - P[offset:]).abs().max()
print(f"P moved forward by {offset}: the rows of P, to 1e-5: {(moved < 1e-5).item()}")

# %% [markdown]
# Is that special?
# Least squares finds the best matrix for any table:


# %%
def left_over(P, k=3):
    """How far the best matrix stays from P's rows k further, as a share."""
    now, later = P[:-k].double(), P[k:].double()
    best = torch.linalg.lstsq(now, later, rcond=1e-6, driver="gelsd").solution
    return ((now @ best - later).norm() / later.norm()).item()


rows = 16  # try 8 … 60
sizes = [(400, 32), (rows, 64)]
misfits = pd.DataFrame(
    {"sinusoids": [left_over(sinusoids(*size)) for size in sizes],
     "random": [left_over(torch.randn(*size)) for size in sizes]},
    index=[f"{n} rows of {d} columns" for n, d in sizes],
)  # fmt: skip
misfits.round(2)

# %% [markdown]
# The sinusoids have such a matrix for any number of rows, a random table as long as there are more unknowns than equations.
#
# ## Rotary: turn queries and keys
#
# **Rotary positions**, called **RoPE** ([Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2), leave the embeddings alone and turn queries and keys, pair by pair, by an angle proportional to their position.
# Let $R_i$ turn each pair counterclockwise by $i\,\omega$, and let $j$ be the position of a key:
#
# $$(a, b)\;\to\;(a\cos i\omega - b\sin i\omega,\;\; a\sin i\omega + b\cos i\omega),\qquad
# (q_i R_i)\cdot(k_j R_j) = q_i\,R_i R_j^\top\,k_j^\top = q_i\,R_{i-j}\,k_j^\top .$$
#
# The score contains the offset and nothing else about positions.
# By hand, $d = 2$ and $\omega = 1$: $q = k = (1, 0)$ at positions $i$ and $j$ have the product $\cos(i - j)$.
#
# Values are *not* turned: a value meets no second one, and would arrive turned by its *absolute* position.
#
# ### Exercise 2 · Turn the pairs
#
# *build · 10 minutes*
#
# Write it for `x` (…, length, dim), `dim` even, and the frequencies of the pairs (dim / 2,).
# The pairs are neighboring columns; `x[..., 0::2]` are the even ones.
# The positions $0, 1, \dots$ run along the axis before the last.
# Do not change `x`, keep its dtype, and write no loop over positions.


# %% tags=["exercise", "build"]
def my_rotate(x, frequency):
    """(…, length, dim), (dim / 2,) → x with each pair turned by its angle."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_rotate(my_rotate)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_rotate_solution(x, frequency):
    """Angles (length, dim / 2) broadcast against the even and against the odd columns."""
    angles = torch.arange(x.shape[-2])[:, None] * frequency
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


cu.checks.my_rotate(my_rotate_solution)

# %%
rotary = cu.choose(my_rotate, turn)
cu.equal(lambda x: rotary(x, frequencies(64)), rotate, torch.randn(2, 24, 64))
query, key = torch.randn(2, 1, 64).expand(2, 24, 64)
W_Q, W_K = torch.randn(2, 64, 64) / 8
P24, ω = sinusoids(24, 64), frequencies(64)
score_maps = {
    "added sinusoids": (query + P24) @ W_Q @ ((key + P24) @ W_K).T / 8,
    "rotary": rotary(query @ W_Q, ω) @ rotary(key @ W_K, ω).T / 8,
}

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([m - m.mean() for m in score_maps.values()]), titles=list(score_maps), vmin=-2, vmax=2,
    cmap="signs", width=7, xlabel="position of the key", ylabel="position of the query",
    alt="Two maps of scores between 24 positions. Added sinusoids: the color changes along the diagonals. Rotary: each "
    "diagonal has one color.",
)  # fmt: skip

# %% [markdown]
# One query and one key stand at all positions; with RoPE "two to the left" has the same score everywhere.
#
# The files of Llama and its relatives pair column $j$ with column $j + d/2$ instead; the [further page](09_positions_further.ipynb#Two-rotary-pairings) turns one into the other.
#
# ## Learned and relative positions
#
# **Learned**: BERT, GPT-2 and the [vision transformer](C_glossary.ipynb#vision-transformer) make $P$ a parameter.
# Of a table with 20 rows, three sentences of 12 tokens train:

# %%
learned = cu.LearnedPositions(16, max_len=20)
learned(torch.randn(3, 12, 16)).sin().sum().backward()
row_gradients = learned.table.grad.norm(dim=1)
print("rows with a gradient:", row_gradients.nonzero().flatten().tolist())

# %% [markdown]
# **A row that is never visited is never trained.**
#
# **[Relative positions](C_glossary.ipynb#relative-positions)** are the third place where positions can enter.
# They add to the *score* of query $i$ and key $j$ something that depends on the offset $j - i$:
#
# | | score | learned |
# |---|---|---|
# | [Shaw et al., 2018](https://arxiv.org/abs/1803.02155) | $q_i\cdot(k_j + r_{j-i})/\sqrt d$ | a vector for each offset; all that are farther than a limit share one |
# | T5, [Raffel et al., 2020](https://arxiv.org/abs/1910.10683) | $q_i\cdot k_j/\sqrt d + b_{j-i}$ | a number for each near offset; far ones share theirs, in **buckets** |
# | ALiBi, [Press et al., 2022](https://arxiv.org/abs/2108.12409) | $q_i\cdot k_j/\sqrt d - m\,\lvert j - i\rvert$ | nothing; a slope $m$ for each head makes near keys heavier |


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    add    x      .
    .      p      .
    rot    qk     v
    rel    score  .
    .      norm   .
    .      mix    mix
    """,
    nodes={
        "x": cu.Box("embeddings X"), "p": cu.Box("project"),
        "add": cu.Box("sinusoidal, learned: + P", color="wash"),
        "qk": cu.Box("Q, K"), "v": cu.Box("V"),
        "rot": cu.Box("rotary: turn", color="wash"),
        "score": cu.Box("score, scale", shape="(n, n)"),
        "rel": cu.Box("Shaw, T5, ALiBi: + a table", color="wash", shape="(n, n)"),
        "norm": cu.Box("normalize"), "mix": cu.Box("mix: weights × V"),
    },
    arrows=["add -> x -> p -> qk -> score -> norm -> mix", "p -> v -> mix", "rot -> qk", "rel -> score"],
    alt="The steps of self-attention from top to bottom. Sinusoidal and learned positions are added to the embeddings, rotary "
    "ones turn queries and keys, and those of Shaw, T5 and ALiBi add a table to the scores. The values get none of the last two.",
)  # fmt: skip

# %% [markdown]
# ## A task where order decides
#
# Here is the network of the first picture.


# %%
class Scorer(nn.Module):
    """The parts of the model, and its scores; `kind` says where positions enter."""

    def __init__(self, kind, base=10_000.0, vocabulary=64, dim=64):
        super().__init__()
        self.kind, self.frequency = kind, frequencies(dim, base)
        self.embedding = nn.Embedding(vocabulary, dim)
        self.output = nn.Linear(dim, vocabulary)
        self.W_Q, self.W_K, self.W_V = (nn.Linear(dim, dim) for _ in range(3))
        added = {"sinusoidal": cu.SinusoidalPositions, "learned": cu.LearnedPositions}
        if kind in added:
            self.positions = added[kind](dim, max_len=1024)
        if kind == "Shaw":
            self.relative = RelativeKeys(dim, farthest=15)
        if kind == "T5":
            self.relative = RelativeBias(num_heads=1)

    def scores(self, x):
        Q, K = self.W_Q(x), self.W_K(x)  # project
        if self.kind == "RoPE":
            Q, K = rotary(Q, self.frequency), rotary(K, self.frequency)
        scores = Q @ K.mT  # score
        if self.kind == "Shaw":
            scores = scores + self.relative(Q)
        scores = scores / math.sqrt(Q.shape[-1])  # scale
        return scores + self.relative(x.shape[-2]) if self.kind == "T5" else scores


# %%
class OneLayer(Scorer):
    """Embedding, causal self-attention with one head, output layer."""

    def forward(self, tokens, start=0):  # start: position of token 0
        x = self.embedding(tokens)  # (batch, n, dim)
        if self.kind in ("sinusoidal", "learned"):
            x = self.positions(x, start=start)
        mask = cu.causal_mask(tokens.shape[-1])
        weights = cu.masked_softmax(self.scores(x), mask)  # mask, normalize
        return self.output(weights @ self.W_V(x))  # mix


# %%
tasks = {  # tokens (batch, n) → the answer at each position; −100 where there is none
    "three before": lambda tokens: F.pad(tokens[:, :-3], (3, 0), value=-100),
    "the first": lambda tokens: tokens[:, :1].expand(tokens.shape),
}


def train(kind, task, rate, seed, base=10_000.0, farthest_start=0, steps=400):
    """A model trained on 16 tokens, which begin at a position 0 … farthest_start."""
    torch.manual_seed(seed)
    model, generator = OneLayer(kind, base), torch.Generator().manual_seed(seed)
    biases = list(model.relative.parameters()) if kind == "T5" else []
    others = [p for p in model.parameters() if all(p is not bias for bias in biases)]
    optimizer = torch.optim.Adam([{"params": others}, {"params": biases}])
    rates = [rate, 10 * rate]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps)
    for _ in range(steps):
        tokens = torch.randint(64, (64, 16), generator=generator)
        start = int(torch.randint(farthest_start + 1, (), generator=generator))
        logits, answers = model(tokens, start), tasks[task](tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %% tags=["nbval-ignore-output"]
@torch.no_grad()
def tested(model, task, length, seed=123):
    """On new sequences: the share of right answers, and the loss."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(64, (4096 // length + 4, length), generator=generator)
    logits, answers = model(tokens).flatten(0, 1), tasks[task](tokens).flatten()
    right = (logits.argmax(dim=-1) == answers)[answers != -100]
    return right.float().mean().item(), F.cross_entropy(logits, answers).item()


model = train("RoPE", "three before", rate=0.005, seed=0)
share, _ = tested(model, "three before", 16)
print(f"rotary, trained here: {share:.2f} right among 16 tokens")

# %% [markdown]
# ## Four lengths
#
# All kinds, trained on 16 tokens and asked about more: share right, the mean of three seeds, at the best of four rates (by the loss on other rows of 16; T5's single numbers get ten times that rate).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
lengths = ["16", "64", "256", "1024"]
best = cu.stored_runs("positions", "reading", lowest="val_loss")
rotary_runs = cu.stored_runs("positions", "cured", lowest="val_loss")
uncured = table(rotary_runs, *(f"trained {n}" for n in lengths))
uncured.columns = uncured.columns.str.removeprefix("trained ")
uncured = uncured.assign(task="three before", kind="RoPE", base=1e4, farthest_start=0)
longer = table(cu.stored_runs("positions", "visited_longer", lowest="val_loss"), *lengths)
longer = longer.assign(task="three before", base=1e4, farthest_start=1009)  # below the others
found = pd.concat([table(best, *lengths), uncured, longer])
found = found.sort_values(["task", "farthest_start"], ascending=[False, True], kind="stable")
extra = {0: "", 1008: ", random starts", 1009: ", random starts, 4 × the steps"}
extra = found["farthest_start"].map(extra)
based = found["base"].map({1e4: "", 10.0: ", base 10"})
found.index = [found["task"], found["kind"] + extra + based]
found = pd.DataFrame(found, columns=["rate", *lengths]).rename_axis(["task", "positions"])
found.round({"rate": 3} | dict.fromkeys(lengths, 2))

# %% [markdown]
# Without positions (**NoPE**), one layer with a causal mask knows which tokens came before, and not in which order.
# Nearly all others are right at the trained length, and then they part:
#
# - **Sinusoidal** and **learned** positions fall at once: they are asked about rows that training never visited.
# - **Rotary** ones hold a while, and fall as untrained offsets come near −3.
# - **Shaw's** vectors hold: all that is far shares one vector, and that one was trained.
#   **T5's** far buckets were not: their numbers stay at 0, and so many keys drown −3.
# - **Random starts** begin each training row at any position ([Kiyono et al., 2021](https://arxiv.org/abs/2109.05644)).
#   The formula gains; the learned table loses nearly all, also at the trained length: each of its rows is visited too seldom (four times the steps help).
#   A rotary score knows the offset alone, so that a start means nothing to it.
#
# (ALiBi is not here: it prefers near tokens, and singles out no third.)
# At each rate Shaw's vectors hold best and the tables fall at once; T5's and rotary positions change places.
#
# In the last two rows the task is another, to name the *first* token, and the order is reversed.
# **Learned** positions look for row 0 and find it; the rows that were never trained do little harm because they begin small.
# **Rotary** positions cannot look for a place: "as far to the left as possible" was learned as an offset.
# Each kind continues *something*, and the task decides whether it is right.

# %% jupyter={"source_hidden": true}
cu.quiz("positions", "without_order", "seen_positions")

# %% [markdown]
# ## Cures
#
# Is it the many keys, or the untrained offsets?
# Keys at untrained offsets get the mean score of those at trained ones: as many keys, and all is right again.
# Or −3 has only about 15 rivals, all at untrained offsets: most is right again.
# It takes both: of *many* keys at *untrained* offsets some come near −3.
#
# Cures change the frequencies of a trained model, here for 64 times the length:
#
# - **[position interpolation](C_glossary.ipynb#position-interpolation)** ([Chen et al., 2023](https://arxiv.org/abs/2306.15595)) divides all positions by 64, so that the long row lies where the short one lay;
# - **NTK-aware** scaling takes a *larger base*: the slower a pair, the more it is slowed;
# - **YaRN** ([Peng et al., 2023](https://arxiv.org/abs/2309.00071)) divides the *slow pairs*, which did not go round once in training (without its smooth transition here).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "All positions divided by 64, nothing trained anew. What becomes of rows of 16 tokens, where all was right?",
    ["they stay right", "they go wrong", "they stay right where the answer is near"],
    answer="they go wrong",
    wrong={
        "they stay right": "Three to the left is now turned by the angle of how many positions?",
        "they stay right where the answer is near": "The answer is always three to the left. Which angle has it now?",
    },
    why="Three to the left is now 3/64 of a position to the left, which the model has never seen. Chen et al. train the model a little more.",
)

# %% jupyter={"source_hidden": true}
cu.explore.cures()

# %% [markdown]
# **Interpolation** costs everything here, also at 16; its authors train the model a little more after it.
# A **larger base** costs next to nothing and helps little here.
# Slowing the **slow pairs** costs nothing and helps most: the fast ones, which tell near offsets apart, stay as they were.
# A model may also be *trained* with another base; the row "base 10" holds at all lengths, but not at the largest rate.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With sinusoids one rotation shifts every position, and a rotary score depends on the offset only."
):
    assert moved < 1e-4 and misfits["sinusoids"].max() < 1e-3
    assert misfits["random"].iloc[0] > 0.9 and (rows > 60 or misfits["random"].iloc[1] < 1e-3)
    changes = {n: (m[1:, 1:] - m[:-1, :-1]).abs().max() for n, m in score_maps.items()}
    assert changes["rotary"] < 1e-3 < 0.1 < changes["added sinusoids"]
    assert share > 0.97

with cu.guard(
    "Many keys at untrained offsets break rotary positions, and slower pairs help at each rate."
):
    cured = pd.DataFrame([run.result for run in cu.stored_runs("positions", "cured")])
    assert cured["levelled 1024"].min() > 0.98 and cured["trained 1024"].max() < 0.5
    assert (cured["few 1024"] > cured["trained 1024"] + 0.1).all()
    assert table(rotary_runs, "few 1024")["few 1024"].item() > 0.6
    assert (cured["slow pairs 1024"] > cured["trained 1024"] + 0.1).all()
    assert cured["interpolated 16"].max() < 0.3 and cured["slow pairs 16"].min() > 0.98

with cu.guard(
    "At each rate Shaw's positions hold on longer rows and learned tables fail at once, and on the other task it is the other way round."
):
    every = table(cu.stored_runs("positions", "reading", base=1e4, farthest_start=0), *lengths)
    every = every.set_index(["task", "kind"]).sort_index()
    assert every.loc[("three before", "Shaw"), "1024"].min() > 0.9
    tables = every.loc[("three before", ["sinusoidal", "learned"]), "64"]
    assert tables.max() < 0.4 < cured["trained 64"].min()
    assert table(rotary_runs, "trained 64")["trained 64"].item() > 0.7
    assert every.loc[("the first", "learned"), "64"].min() > 0.8
    assert every.loc[("the first", "RoPE"), "64"].max() < 0.5

# %% [markdown]
# ## Take-aways
#
# - Attention does not see the order.
#   Positions enter at one of three places: added to the embeddings, as a turn of queries and keys, or added to the scores.
# - Sinusoids and rotary positions are pairs that turn: a shift by $k$ is one rotation for all positions (mind the sign), and a rotary score knows the offset alone.
# - A position or an offset that training never visited may do anything.
#   On longer texts many such offsets break rotary positions; cures slow their rotation.
#
# Next: [The Transformer](10_transformer.ipynb).
# Why one may add, T5's buckets, the other rotary pairing: [Positions: decay, twins and caches](09_positions_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("positions")

# %% [markdown]
# ## References
#
# - Chen, S., Wong, S., Chen, L. and Tian, Y. (2023).
#   [Extending context window of large language models via positional interpolation](https://arxiv.org/abs/2306.15595).
# - Kiyono, S., Kobayashi, S., Suzuki, J. and Inui, K. (2021).
#   [SHAPE: Shifted absolute position embedding for transformers](https://arxiv.org/abs/2109.05644).
#   EMNLP.
# - Peng, B., Quesnelle, J., Fan, H. and Shippole, E. (2023).
#   [YaRN: Efficient context window extension of large language models](https://arxiv.org/abs/2309.00071).
# - Press, O., Smith, N. A. and Lewis, M. (2022).
#   [Train short, test long: Attention with linear biases enables input length extrapolation](https://arxiv.org/abs/2108.12409).
#   ICLR.
# - Raffel, C. et al. (2020).
#   [Exploring the limits of transfer learning with a unified text-to-text transformer](https://arxiv.org/abs/1910.10683).
#   JMLR 21.
#   Section 2.1.
# - Shaw, P., Uszkoreit, J. and Vaswani, A. (2018).
#   [Self-attention with relative position representations](https://arxiv.org/abs/1803.02155).
#   NAACL.
# - Su, J., Lu, Y., Pan, S., Murtadha, A., Wen, B. and Liu, Y. (2021).
#   [RoFormer: Enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864).
#   Section 3.2.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.5.
