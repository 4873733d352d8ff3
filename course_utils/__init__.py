"""The one package behind the course: `import course_utils as cu`.

Three shelves, by who opens them. The *library* is read by students: plain PyTorch, a page a subject, each
importing only from those before it.

    runtime      seeds, the device, files of data/, writing whole or not at all
    figures      functions from arrays to a picture with an alt text
    drawings     boxes, arrows and tensors with their shapes, as SVG with an alt text
    pooling      kernels, Nadaraya–Watson regression, the choice of a width
    positions    sinusoidal, learned, rotary and relative positions
    arguments    checks of what attention is given
    attention    masks, masked softmax, scoring functions, multi-head attention
    cache        KVCache, record_attention
    layers       the blocks: feed-forward, residual with its norm, encoder and decoder layers
    models       recurrent, transformer, language, vision, diffusion, noise
    data         drawn from formulas, read from the folder data/, or fetched through its registry
    train        losses, schedules, checkpoints, history, the Trainer
    decoding     greedy, beam search, sampling
    metrics      BLEU, alignment error rate, perplexity, confusion of classes

The *lessons* hold what belongs to a chapter, one folder each, named by its slug. The *studio* makes the notebooks,
the book and the handout. `cu.checks.<name>` and `cu.explore.<name>` reach the lessons.
"""

from types import ModuleType as _Module

from course_utils.runtime import seed_everything
from course_utils.figures import (
    COLORS,
    Picture,
    heatmap,
    label_lines,
    show_curves,
    show_heatmaps,
    show_images,
    subplots,
)
from course_utils.drawings import Arrow, Box, Cells, Circle, Drawing, Note
from course_utils.pooling import (
    KERNELS,
    best_width,
    kernel_values,
    kernel_weights,
    leave_one_out,
    leave_one_out_error,
    nadaraya_watson,
)
from course_utils.positions import (
    LearnedPositions,
    RelativeBias,
    RelativeKeys,
    SinusoidalPositions,
    alibi_bias,
    offset_buckets,
    rotate,
    sinusoidal_table,
)
from course_utils.attention import (
    AdditiveAttention,
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
from course_utils.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.language import BERT, GPT, SentenceClassifier
from course_utils.models.vision import (
    PatchEmbedding,
    SmallCNN,
    ViT,
    attention_rollout,
    cut_patches,
    join_patches,
)
from course_utils.models.diffusion import CrossAttention, PixelAttention, UNet, time_features
from course_utils.models.noise import Diffusion, cosine_schedule, linear_schedule
from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import (
    PairLoader,
    load_grammar,
    load_sentences,
    load_tatoeba,
    split_by_source,
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
from course_utils.data.folders import load_image_folder
from course_utils.data.images import (
    ImageLoader,
    ImageSet,
    load_cifar10,
    load_fashion_mnist,
    read_image,
)
from course_utils.data.regression import noisy_sine, two_moons
from course_utils.data.words import load_words
from course_utils.train.losses import classification_loss, language_model_loss, translation_loss
from course_utils.train.schedules import inverse_sqrt, warmup_decay
from course_utils.train.checkpoints import load_weights
from course_utils.train.trainer import Trainer
from course_utils.decoding import (
    beam_search,
    generate_text,
    greedy,
    next_token_probs,
    sample,
    translate,
)
from course_utils.metrics import (
    accuracy,
    alignment_error_rate,
    bleu,
    confusion_matrix,
    links_both_ways,
    links_of,
    multiply_adds,
    perplexity,
    predict_classes,
    waiting_products,
    word_maps,
)
from course_utils.lessons import checks, explore, live
from course_utils.lessons.claims import guard
from course_utils.lessons.equality import equal
from course_utils.lessons.live import load_model
from course_utils.lessons.passed import choose, progress
from course_utils.lessons.predict import predict
from course_utils.lessons.quiz import quiz, recall
from course_utils.lessons.ritual import before_training
from course_utils.lessons.runs import stored_run, stored_runs
from course_utils.lessons.start_here.course_map import course_map
from course_utils.studio.doctor import doctor
from course_utils.studio.tables import ways

__all__ = sorted(
    name
    for name, value in vars().items()
    if not name.startswith("_") and not isinstance(value, _Module)
)
