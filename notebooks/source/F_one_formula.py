# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # One formula
#
# You began with forty noisy points and a question: what is the value at a place where nobody measured?
# The answer was an average of what was measured nearby.
# Nearly every chapter since has kept that average and changed one thing about it.
#
# $$\operatorname{Attention}(\mathbf q, \mathcal D) = \sum_{i=1}^{n} \alpha(\mathbf q, \mathbf k_i)\,\mathbf v_i$$
#
# Let's look at it six times, as a map with a row for each query, a column for each key, and a dark cell where the weight is large.
# The first map has nothing to learn.
# The others belong to networks that the course has trained and stored.

# %% jupyter={"source_hidden": true}
import textwrap

import pandas as pd
import torch

import course_utils as cu
from course_utils.data.translation import collate
from course_utils.lessons.bert_and_transfer.tasks import texts
from course_utils.lessons.diffusion import words as painting
from course_utils.lessons.gpt import repeats
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

cu.seed_everything(0)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def revived(network, name, **options):
    """A network of the course, trained beforehand."""
    stored = cu.load_model(name)
    model = network(**stored.config, **options)
    model.load_state_dict(stored.state)
    return model.eval()


def one_map(module, model, *inputs, head=0):
    """The weights of one attention module on one input: (queries, keys)."""
    with torch.no_grad(), cu.record_attention(model) as maps:
        model(*inputs)
    return maps[module][0, head]


maps = {}

x = torch.linspace(0, 5, 30)  # 30 places ask 30 measured points
maps["kernel regression"] = (-((x[:, None] - x) ** 2) / 2 / 0.2**2).softmax(dim=-1)

world = larger_world()
BOS = "⟨start⟩"
pair = world.test[1]
batch = collate([(world.source_vocab.encode(pair.source), world.target_vocab.encode(pair.target))])
translator = revived(cu.Transformer, "translator_fr")
read = batch.source, batch.source_lens, batch.target_in
maps["translator"] = one_map("decoder.1.cross_attention", translator, *read, head=1)

letters, _ = repeats.repeated(1, torch.Generator().manual_seed(4))
maps["GPT"] = one_map("layers.0.attention", revived(cu.GPT, "gpt_copier"), letters[:, :-1])

subwords = texts().subwords
sentence = torch.tensor([subwords.sentence("the cat is on the sofa .")])
bert = revived(cu.BERT, "bert", rotary=True)
maps["BERT"] = one_map("layers.1.attention", bert, sentence, torch.tensor([sentence.shape[1]]))

boot = cu.load_fashion_mnist("test").images[:1].float() / 127.5 - 1
vit = revived(cu.ViT, "vit")
with torch.no_grad(), cu.record_attention(vit) as seen:
    vit(boot)
maps["ViT"] = list(seen.values())[-1][0, 0]

painter, caption = painting.painter(), ["trousers", "ankle boot"]
asked = torch.tensor([[painting.NAMES.index(word) for word in caption]])
noise, first = painting.noises(1, seed=0)[0], torch.tensor([200])
head = painting.telling_head(painter)
asks = one_map("network.down.1.cross", painter, noise, first, asked, head=head)
maps["U-Net"] = asks.view(7, 14, 2).transpose(0, 1).flatten(0, 1)  # column by column

letter_names = [repeats.LETTERS[i] for i in letters[0, :-1]]
pieces = [subwords.tokens[i] for i in sentence[0].tolist()]
words = [BOS, *pair.target]
patches = ["class", *map(str, range(1, 17))]
captions = {  # rows, columns, their labels, and what is to be seen
    "kernel regression": (None, None, "place that asks", "place that was measured",
        "Each place looks at what was measured near it."),
    "translator": (words, [*pair.source, "⟨end⟩"], "French so far", "English",
        "To say mange une pizza it looks at eat, a and pizza. Then it rests on please, and says s'il te plaît."),
    "GPT": (letter_names, letter_names, "letter that asks", "letter",
        "Each letter looks at what followed it last time. The first letters have no last time, and their weight rests on the very first: a sink."),
    "BERT": (pieces, pieces, "piece that asks", "piece",
        "In this head each piece looks one or two places to its right, which a GPT may not do."),
    "ViT": (patches, patches, "patch that asks", "patch",
        "Most patches look at the same two, whatever they show: sinks of a picture."),
    "U-Net": ([], caption, "pixel that asks, from left to right", "word",
        "Even in pure noise the pixels on the left ask the first word, and those on the right the second."),
}  # fmt: skip
fig, axes = cu.subplots(
    2, 3, width=9.0, height=7.4,
    alt="Six maps of weights. Kernel regression: a band along the diagonal. Translator: mange, une and pizza are said with the weight on eat, a and pizza, the rest on "
    "please. GPT: the first rows on the first letter, then a line some places below the diagonal. BERT: a line to the right of the diagonal. "
    "ViT: two dark columns. U-Net: the upper half, of the pixels on the left, is dark under trousers, the lower half under ankle boot.",
)  # fmt: skip
for ax, (name, weights) in zip(axes.flat, maps.items(), strict=True):
    rows, columns, asks, answers, seen = captions[name]
    drawn = cu.heatmap(ax, weights, xlabel=None, ylabel=asks, vmax=0.4)
    ax.set(title=f"{name}: {answers} →", aspect="auto", xticks=[], yticks=[])
    ax.set_xlabel(textwrap.fill(seen, 42), fontsize=8)
    if columns:
        ax.set_yticks(range(len(rows)), rows, fontsize=6)
        step = 1 + len(columns) // 20  # more labels would run into one another
        ax.set_xticks(
            range(0, len(columns), step), columns[::step], fontsize=6, rotation=90 * bool(rows)
        )
fig.colorbar(drawn, ax=axes, shrink=0.5, extend="max", label="weight").outline.set_visible(False)
fig

# %% [markdown]
# Whether a query is a place, a French word, a letter, a piece of a word, a patch, or a pixel, its row is a list of weights. Each weight is 0 or more, and together they make 1.
# That they *have* to make 1 is the usual explanation of the **[sinks](C_glossary.ipynb#attention-sink)** in the maps of the GPT and the ViT.
# A head that has nothing to look for must put its weight somewhere, and it learns a position where the weight does little harm.

# %%
pd.DataFrame(
    {
        name: {
            "queries": weights.shape[0],
            "keys": weights.shape[1],
            "least sum of a row": f"{weights.sum(dim=1).min():.3f}",
            "greatest": f"{weights.sum(dim=1).max():.3f}",
            "largest weight": f"{weights.max():.2f}",
        }
        for name, weights in maps.items()
    }
).T

# %% [markdown]
# So what differs? Only three things: where queries, keys, and values come from, how a score is made, and who may look at whom.
#
# | | query | key | value | score | may look at |
# |---|---|---|---|---|---|
# | kernel regression | a place | a place that was measured | what was measured there | minus the squared distance, by the width | all |
# | translator, cross-attention | the French so far | an English word, read in its sentence | the same, through another matrix | $\mathbf q^\top\mathbf k/\sqrt d$ | all words of the sentence, no padding |
# | GPT | a token | a token | a token | the same | itself and the tokens before it |
# | BERT | a token | a token | a token | the same | the whole sentence |
# | ViT | a patch, or the class token | likewise | likewise | the same | the whole picture |
# | U-Net, cross-attention | a pixel of the coarse picture | a word, with its position | the same, through another matrix | the same | both words |
#
# Each map is one head of one network on one input, and we chose the heads that show most clearly what such networks do.
# What such maps can show, and what they can't, we measured in [Translating](11_translating.ipynb) and [Vision transformers](15_vision_transformers.ipynb).
#
# Does the formula stay the same in a model that others have trained on far more text than we could read?
# In [Real weights](18_real_weights.ipynb) your own class holds such a model, and its row of this table is the GPT's, with queries and keys that are rotated by their positions.
# Its 30 layers of 9 heads compute 270 of these averages for each token.
# In one sentence about capitals, a single layer of the thirty carries the country to the answer.

# %% [markdown]
# ## What you built, chapter by chapter
#
# All of it runs on a laptop.
#
# | chapter | what it builds |
# |---|---|
# | [Start here](00_start_here.ipynb) | a translator to ask, and to forbid attention to a word; `weights @ values` |
# | [Queries, keys and values](01_queries_keys_values.ipynb) | exact, approximate, top-k and average look-up; softmax and temperature; a query that matches nothing |
# | [Kernel regression](02_kernel_regression.ipynb) | kernel regression with a fixed width, a width chosen by leave-one-out, and a learned width |
# | [Scoring functions](03_scoring_functions.ipynb) | dot-product and additive scores; scaled dot-product attention |
# | [Masks](04_masks.ipynb) | padding and causal masks; a masked softmax that survives them; attention for batches, equal to PyTorch's |
# | [Sequence to sequence](05_sequence_to_sequence.ipynb) | batches; GRU; an encoder–decoder, its loss, its training loop and greedy decoding; BLEU |
# | [Bahdanau attention](06_bahdanau_attention.ipynb) | recurrent translation with attention; alignment |
# | [Self-attention](07_self_attention.ipynb) | self-attention, what it finds that an average does not, and what it costs compared with convolution and recurrence |
# | [Multi-head attention](08_multi_head_attention.ipynb) | multi-head attention; on its further page with slices, with additive scores and with heads of different sizes |
# | [Positions](09_positions.ipynb) | sinusoidal, learned, rotary and relative positions; what they do beyond the trained length |
# | [The Transformer](10_transformer.ipynb) | encoder block, decoder block and the whole model; what each part adds, and what the model says without it |
# | [Translating](11_translating.ipynb) | a translator; beam search; what a word needs, and what its map can show |
# | [Training transformers](12_training_transformers.ipynb) | post-norm and pre-norm; a failed training and what broke it; warm-up; BLEU by checkpoint; English→Spanish |
# | [GPT](13_gpt.ipynb) | a counting baseline; a GPT written, trained and sampled; a text of your own; subwords and a copier on its further page |
# | [BERT and transfer](14_bert_and_transfer.ipynb) | masking, a BERT; a gap read from both sides, against counting; fifty labels, asked for in the form of the training; LoRA |
# | [Vision transformers](15_vision_transformers.ipynb) | patches, a ViT and its baselines; the game Memory, which needs attention; what an answer needs, against what maps show |
# | [Attention between pixels](16_attention_between_pixels.ipynb) | filters as attention; a block of attention between pixels; counting against binding |
# | [Attention in a diffusion model](17_diffusion.ipynb) | noise and the sampler; a U-Net; cross-attention to words, and what comes out when a word is forbidden |
# | [Real weights](18_real_weights.ipynb) | a block of today and a reader of four-bit numbers; a real language model in your class; the layer that looks a country up, the heads that copy |
# | [What heads learn](19_what_heads_learn.ipynb) | a circuit by hand that copies; two maps read from the weights; erasures, ablations and patches with their controls |
# | [Attention at length](20_attention_at_length.ipynb) | exact attention in blocks of keys; a cache in bytes; linear attention as a recurrence; windows over a text, and the one token that has to stay |
# | [From GPT to an assistant](21_from_gpt_to_assistant.ipynb) | a GPT that answers, by a mask on its loss; where made-up answers come from; DPO, its margin and what it hides; on its further page what β decides, and a text that SmolLM2 learns with LoRA, or reads |

# %% [markdown]
# ## Where to go from here
#
# - **Ask a question of your own.**
#   [A project of your own](D_capstone.ipynb) shows what convinces a doubter: a baseline, three seeds on both sides, and the number that would refute you.
# - **Change one thing and measure.**
#   Change a size, a mask or a score, predict what a number will do, and run the cell.
#   [A control is a tuned control](G_controls.ipynb) tells you where such a comparison goes wrong.
# - **Forbid something.**
#   You have forbidden a word, a patch, a word of a caption, and a single look in one of thirty layers, and you have ablated a head and a part of the Transformer.
#   Forbidding and ablating work on any model that you can load, and with `cu.intervene` each takes one line.
# - **Read the papers with the code beside you.**
#   [Names, notation and shapes](A_names.ipynb) translates their names, the book has a bibliography of all that the chapters cite, and the [glossary](C_glossary.ipynb) leads you back to where each word was explained.
# - **Go where the laptop ends.**
#   Cells that want a GPU say so. `make gpu` runs them at full size, and `torchrun` shares a training run among several GPUs.
