"""The one package behind the course: attention, from kernel regression on, with its pictures.

`import course_utils as cu` gives the flat names that the notebooks use, listed in `__all__`. The
rooms, ground floor first; each imports only from those before it:

    runtime     where the course stands, seeds, device, doctor
    pooling     kernels, Nadaraya–Watson pooling, choice of the width
    attention   masks, masked softmax, scoring functions, heads
    cache       KVCache, record_attention
    positions   sinusoidal, learned and rotary position encodings
    layers      the position-wise network, the residual with its norm before or after
    models      recurrent translators, the Transformer, networks that look things up
    data        drawn from formulas, read from the folder data/, or fetched through its registry
    figures     functions from arrays to a picture with an alt text
    losses      summed over what counts · schedules  of the rate · checkpoints  whole or not at all
    history     what happened, epoch by epoch · progress  its live bar
    distributed several processes, one training
    training    Trainer
    decoding    greedy, beam search and sampling
    metrics     BLEU, alignment error rate, perplexity, confusion of classes
    recorded    runs at full size, done on a GPU and shown elsewhere
    explore     explorers: live sliders in Lab, pre-rendered frames in the book
    checks      what right code satisfies, for learners and for the tests
    quiz        five questions at the end of a chapter
    manifest    book.toml · rules  what every notebook keeps · notebooks  pairs and execution
    handout     the notebooks without solutions · book  the Jupyter Book · lab  starts JupyterLab
    gpu         runs the cells that want a GPU
"""

from course_utils.attention import (
    AdditiveAttention,
    Attention,
    DotProductAttention,
    MultiHeadAttention,
    causal_mask,
    dot_product_weights,
    masked_softmax,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.cache import KVCache, record_attention
from course_utils.data import RegressionData, WordTable, load_words, noisy_sine, two_moons
from course_utils.data.images import (
    ImageLoader,
    ImageSet,
    load_cifar10,
    load_fashion_mnist,
    read_image,
)
from course_utils.data.prose import (
    Subwords,
    TextLoader,
    cut_windows,
    load_english,
    load_shakespeare,
    load_story,
    load_tenses,
    masked_token,
    next_token,
    same_token,
)
from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import (
    PairLoader,
    load_grammar,
    load_sentences,
    load_tatoeba,
    split_by_source,
)
from course_utils.decoding import (
    beam_search,
    greedy,
    next_token_probs,
    sample,
    translate,
    write,
)
from course_utils.figures import (
    COLORS,
    Picture,
    heatmap,
    show_curves,
    show_heatmaps,
    show_images,
    subplots,
)
from course_utils.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from course_utils.lessons import checks, explore
from course_utils.lessons.multi_head_attention.lookups import (
    LookupNetwork,
    TwoLookups,
    lookup_accuracy,
    train_lookups,
    two_lookups,
    without_head,
)
from course_utils.lessons.quiz import quiz
from course_utils.lessons.runs import stored_run, stored_runs
from course_utils.metrics import (
    accuracy,
    alignment_error_rate,
    bleu,
    confusion_matrix,
    links_both_ways,
    links_of,
    multiply_adds,
    perplexity,
    predict,
    word_maps,
)
from course_utils.models.diffusion import PixelAttention, ResidualBlock, UNet, time_features
from course_utils.models.language import BERT, GPT, SentenceClassifier
from course_utils.models.noise import Diffusion, cosine_schedule, linear_schedule
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import (
    PatchEmbedding,
    SmallCNN,
    ViT,
    attention_rollout,
    cut_patches,
    join_patches,
)
from course_utils.pooling import (
    KERNELS,
    best_width,
    kernel_values,
    kernel_weights,
    leave_one_out,
    leave_one_out_error,
    nadaraya_watson,
)
from course_utils.positions import LearnedPositions, SinusoidalPositions, rotate, sinusoidal_table
from course_utils.runtime import ROOT, has_gpu, seed_everything
from course_utils.studio.doctor import doctor
from course_utils.train.checkpoints import load_weights
from course_utils.train.history import History
from course_utils.train.losses import classification_loss, language_model_loss, translation_loss
from course_utils.train.schedules import inverse_sqrt, warmup_decay
from course_utils.train.trainer import Trainer

__all__ = [
    "BERT",
    "COLORS",
    "GPT",
    "KERNELS",
    "ROOT",
    "AdditiveAttention",
    "Attention",
    "AttentionTranslator",
    "DecoderLayer",
    "Diffusion",
    "DotProductAttention",
    "EncoderLayer",
    "FeedForward",
    "History",
    "ImageLoader",
    "ImageSet",
    "KVCache",
    "LearnedPositions",
    "LookupNetwork",
    "MultiHeadAttention",
    "PairLoader",
    "PatchEmbedding",
    "Picture",
    "PixelAttention",
    "RecurrentTranslator",
    "RegressionData",
    "Residual",
    "ResidualBlock",
    "SentenceClassifier",
    "SinusoidalPositions",
    "SmallCNN",
    "Subwords",
    "TextLoader",
    "Trainer",
    "Transformer",
    "TwoLookups",
    "UNet",
    "ViT",
    "Vocabulary",
    "WordTable",
    "accuracy",
    "alignment_error_rate",
    "attention_rollout",
    "beam_search",
    "best_width",
    "bleu",
    "causal_mask",
    "checks",
    "classification_loss",
    "confusion_matrix",
    "cosine_schedule",
    "cut_patches",
    "cut_windows",
    "doctor",
    "dot_product_weights",
    "explore",
    "greedy",
    "has_gpu",
    "heatmap",
    "inverse_sqrt",
    "join_patches",
    "kernel_values",
    "kernel_weights",
    "language_model_loss",
    "leave_one_out",
    "leave_one_out_error",
    "linear_schedule",
    "links_both_ways",
    "links_of",
    "load_cifar10",
    "load_english",
    "load_fashion_mnist",
    "load_grammar",
    "load_sentences",
    "load_shakespeare",
    "load_story",
    "load_tatoeba",
    "load_tenses",
    "load_weights",
    "load_words",
    "lookup_accuracy",
    "masked_softmax",
    "masked_token",
    "merge_heads",
    "multiply_adds",
    "nadaraya_watson",
    "next_token",
    "next_token_probs",
    "noisy_sine",
    "padding_mask",
    "perplexity",
    "predict",
    "quiz",
    "read_image",
    "record_attention",
    "rotate",
    "same_token",
    "sample",
    "scaled_dot_product_attention",
    "seed_everything",
    "show_curves",
    "show_heatmaps",
    "show_images",
    "sinusoidal_table",
    "split_by_source",
    "split_heads",
    "stored_run",
    "stored_runs",
    "subplots",
    "time_features",
    "tokenize",
    "train_lookups",
    "translate",
    "translation_loss",
    "two_lookups",
    "two_moons",
    "warmup_decay",
    "without_head",
    "word_maps",
    "write",
]
