# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Names, notation and shapes
#
# This page is for looking things up.
# It has the shapes of every step of attention on one sheet, the letters of the formulas, the names that other texts use, and for five other courses the sections in which this course teaches the same things.

# %%
import pandas as pd
import torch

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## The shapes on one sheet
#
# Attention has the same steps throughout this course, in this order, although some kinds leave out project, scale, mask or merge.
# Here `n` queries look at `m` keys, and `b` sentences are worked on at once, with `h` heads of `d_k` features each, and `embed_dim` is `h * d_k`.
# (In the book this section prints on a page of its own.)
#
# | Step | Formula | Code | Shape of the result |
# |---|---|---|---|
# | **project** | $Q = X W_Q$, $K = Y W_K$, $V = Y W_V$ | `x @ w_q`, then `split_heads` | queries (b, h, n, d_k); keys and values (b, h, m, d_k) |
# | **score** | $A = Q K^\top$ | `queries @ keys.transpose(-2, -1)` | (b, h, n, m) |
# | **scale** | $A / \sqrt{d_k}$ | `scores / d_k**0.5` | (b, h, n, m) |
# | **mask** | $-\infty$ where a query may not attend | `scores.masked_fill(~mask, -torch.inf)` | (b, h, n, m); the mask broadcasts to it |
# | **normalize** | softmax along each row | `scores.softmax(dim=-1)` | (b, h, n, m); each row sums to 1 |
# | **mix** | weights times $V$ | `weights @ values` | (b, h, n, d_k) |
# | **merge** | heads side by side, times $W_O$ | `merge_heads(mixed) @ w_o` | (b, n, embed_dim) |
#
# Masks are boolean, and True means *may attend*.
# A padding mask has the shape (b, 1, 1, m), a causal mask (n, n).
# A row in which everything is forbidden gives NaN in the code of this table and zeros in `cu.masked_softmax`.

# %%
b, h, n, m, d_k = 2, 4, 3, 5, 8
embed_dim = h * d_k
x, y = torch.randn(b, n, embed_dim), torch.randn(b, m, embed_dim)
w_q, w_k, w_v, w_o = torch.randn(4, embed_dim, embed_dim) / embed_dim**0.5
mask = cu.padding_mask(torch.tensor([5, 3]), m)

queries = cu.split_heads(x @ w_q, h)  # project
keys, values = cu.split_heads(y @ w_k, h), cu.split_heads(y @ w_v, h)
scores = queries @ keys.transpose(-2, -1)  # score
scaled = scores / d_k**0.5  # scale
masked = scaled.masked_fill(~mask, -torch.inf)  # mask
weights = masked.softmax(dim=-1)  # normalize
mixed = weights @ values  # mix
merged = cu.merge_heads(mixed) @ w_o  # merge
merged.shape

# %% tags=["hide-input"] jupyter={"source_hidden": true}
steps = {
    "project": ("queries", queries, "b, h, n, d_k"),
    "": ("keys, values", keys, "b, h, m, d_k"),
    "score": ("scores", scores, "b, h, n, m"),
    "scale": ("scaled", scaled, "b, h, n, m"),
    "mask": ("masked", masked, "b, h, n, m"),
    "normalize": ("weights", weights, "b, h, n, m"),
    "mix": ("mixed", mixed, "b, h, n, d_k"),
    "merge": ("merged", merged, "b, n, embed_dim"),
}
pd.DataFrame(
    [(step, name, axes, str(tuple(z.shape))) for step, (name, z, axes) in steps.items()],
    columns=["step", "tensor", "axes", "here"],
)

# %% [markdown]
# These are the shapes for two sentences, four heads, three queries, five keys and eight features per head, and the 32 features at the end come from all four heads.
# The second sentence has only three real tokens, so the last two weights of each of its rows are 0, and the row still sums to 1.

# %%
weights[1, 0].round(decimals=2)

# %% [markdown]
# Other texts write the same products with `einsum`, which names the axes and sums over each axis that the result doesn't have.
# Here b, h, n and m are as above, `d` is a feature of a head, and `e` is a feature of a token.

# %%
w_q_heads, w_o_heads = w_q.view(embed_dim, h, d_k), w_o.view(h, d_k, embed_dim)
spelled = {
    "project": ("bne,ehd->bhnd", (x, w_q_heads), queries),
    "score": ("bhnd,bhmd->bhnm", (queries, keys), scores),
    "mix": ("bhnm,bhmd->bhnd", (weights, values), mixed),
    "merge": ("bhnd,hde->bne", (mixed, w_o_heads), merged),
}
pd.DataFrame(
    [
        (step, axes, torch.allclose(torch.einsum(axes, *tensors), ours, atol=1e-4))
        for step, (axes, tensors, ours) in spelled.items()
    ],
    columns=["step", "einsum", "equal"],
)

# %% [markdown]
# ## Notation
#
# Vectors are rows, so a layer multiplies from the right: $Q = X W_Q$.
# Indices start at 0, in the text as in the code.
#
# | Letter | Stands for | In code |
# |---|---|---|
# | $\mathbf q, \mathbf k, \mathbf v$; $Q, K, V$ | one query, key, value; a row for each of them | `queries`, `keys`, `values` |
# | $a$ | a score, before the softmax | `scores` |
# | $\alpha$ | an attention weight, after the softmax | `weights` |
# | $n$, $m$ | the number of queries; the number of keys, where it differs | `length`, above `n` and `m` |
# | $d$, $d_k$ | features of a vector; features of a head | `embed_dim`, `head_dim` (above `d_k`) |
# | $h$ | the number of heads | `num_heads` |
# | $X$ | the input, a row for each token | `x` |
# | $W_Q, W_K, W_V, W_O$ | the four matrices of an attention layer | `w_q` … or `nn.Linear` |
# | $\sigma$ | the width of a kernel | `width` |
# | $K(\cdot)$ | a kernel, in [Kernel regression](02_kernel_regression.ipynb) | `kernel` |
# | $T$ | the temperature | `temperature` |
# | $\theta$ | all parameters of a model | `model.parameters()` |
# | $\eta$ | the learning rate | `lr` |
#
# ### Letters that mean several things
#
# These clashes are the field's own.
# Within a chapter of this course a letter mostly has one meaning, but from text to text it may change.
#
# | Letter | Meanings that you will meet |
# |---|---|
# | $\sigma$ | the width of a kernel; the logistic function $1/(1+e^{-x})$ in the gates of a recurrent cell; a standard deviation; in some texts the softmax |
# | $h$ | the number of heads; a hidden state (mostly with an index, $h_t$); the width of a kernel in books on statistics; the number of hidden units |
# | $\alpha$ | an attention weight; a learning rate; in diffusion, which part of the variance is the picture's after step $t$ ($\alpha_t$ of what was left, $\bar\alpha_t$ in all); the scale of LoRA |
# | $\beta$ | the noise of a diffusion step ($\beta_t$); the two decay rates of Adam ($\beta_1, \beta_2$); the shift of a layer norm; an inverse temperature |
# | $k$, $K$ | a key, the keys; a kernel; the number of neighbors or tokens that are kept (top-$k$) |
# | $d$ | features of a vector; a distance; dimensions of the data; the step between numbers of four bits |
# | $N$ | layers in *Attention is all you need*; the batch in PyTorch's documentation; the number of data |
# | $T$ | a temperature; the transpose, as in $K^T$; the length of a sequence; the steps of a diffusion |

# %% [markdown]
# ## The same thing by other names
#
# We use the names of `torch.nn` wherever it has one.
# Here they are next to the names of *Attention is all you need* (2017) and of PyTorch:
#
# | Here | Meaning | The 2017 paper | `torch.nn` |
# |---|---|---|---|
# | `queries`, `keys`, `values` | what is looked for, what it is compared with, what is handed back | $Q, K, V$ | `query`, `key`, `value` |
# | weights | shares of the keys; rows sum to 1 | softmax of $QK^\top/\sqrt{d_k}$ | `attn_output_weights` |
# | `attn_mask` | boolean, True = may attend | illegal scores set to $-\infty$ | `nn.MultiheadAttention`: `attn_mask` and `key_padding_mask`, True = **hidden**; `scaled_dot_product_attention`: `attn_mask`, True = may attend |
# | `embed_dim` | features that describe one token | $d_\text{model}$ | `embed_dim`, `d_model` |
# | `num_heads` | attentions side by side | $h$ | `num_heads`, `nhead` |
# | `embed_dim / num_heads` | features of a head | $d_k$, $d_v$ | `head_dim` |
# | `length` | tokens in a sentence, with padding | $n$ | $L$ (target), $S$ (source) |
# | batch | sentences worked on at once | | $N$ |
# | `num_layers` | blocks on top of each other | $N$ | `num_layers` |
# | `ffn_dim` | width inside the feed-forward part | $d_\text{ff}$ | `dim_feedforward` |
# | `dropout` | share of numbers set to 0 in training | $P_\text{drop}$ | `dropout` |
# | `norm_first=False` | normalize after each part | LayerNorm(*x* + Sublayer(*x*)) | `norm_first=False` |
# | `norm_first=True` | normalize before each part | | `norm_first=True` |
#
# The second table compares them with the book *Dive into Deep Learning* and the lectures of A. Kak at Purdue University:
#
# | Here | Dive into Deep Learning | Kak's lectures |
# |---|---|---|
# | `queries`, `keys`, `values` | `queries`, `keys`, `values` | $Q, K, V$ |
# | weights | `attention_weights` | row-wise softmax of $Q \cdot K^T$ |
# | `attn_mask` | `valid_lens`; hidden scores set to −10⁶ | embeddings set to 0 |
# | `cu.padding_mask(valid_lens, length)` | `valid_lens` | |
# | `embed_dim` | `num_hiddens` | $M$, `embedding_size` |
# | `num_heads` | `num_heads` | $N_H$, `num_atten_heads` |
# | `embed_dim / num_heads` | `num_hiddens / num_heads` | $s_{qkv}$ or $S_{qkv}$, `qkv_size` |
# | `length` | `num_steps` | $N_w$, `max_seq_length` |
# | batch | `batch_size` | $B$ |
# | `num_layers` | `num_blks`, in older editions `num_layers` | `how_many_basic_encoders`, `how_many_basic_decoders` |
# | `ffn_dim` | `ffn_num_hiddens` | no name: twice the length of the flattened sentence |
# | `dropout` | `dropout` | |
# | `norm_first=False` | `AddNorm` | `TransformerFG` |
# | `norm_first=True` | the blocks of its vision transformer | `TransformerPreLN` |
#
# The third table is for the models of Hugging Face's `transformers`, of which the older ones have names of their own (GPT-2's are in brackets):
#
# | Here | In a model's `config` or its `forward` |
# |---|---|
# | `embed_dim` | `hidden_size` (`n_embd`) |
# | `num_heads` | `num_attention_heads` (`n_head`) |
# | heads of keys and values that several query heads share | `num_key_value_heads` |
# | `num_layers` | `num_hidden_layers` (`n_layer`) |
# | `ffn_dim` | `intermediate_size` (`n_inner`) |
# | `dropout` | `attention_probs_dropout_prob`, `hidden_dropout_prob` (`attn_pdrop`, `resid_pdrop`) |
# | rows of the table of positions | `max_position_embeddings` (`n_positions`) |
# | `rotary_base` | `rope_theta` |
# | tokens, by number | `input_ids` |
# | `cu.padding_mask(valid_lens, length)` | `attention_mask`, shape (batch, keys): 1 = a real token, 0 = padding; the causal mask is added inside |
# | the encoder's output, for cross-attention | `encoder_hidden_states`, with `encoder_attention_mask` |
# | weights of every layer | `output_attentions=True` gives `attentions`, a tensor (batch, heads, queries, keys) for each layer |
# | `KVCache` | `past_key_values`, with `use_cache=True` |
# | a token that is not counted in the loss | −100 in `labels`; the model shifts them by one itself |
# | the words that pixels ask, and $w$ of the guidance | `encoder_hidden_states` and `guidance_scale`, in the library `diffusers` |
#
# Three traps:
#
# - $N$ is the number of layers in the 2017 paper and the batch in the documentation of `torch.nn`.
# - In Kak's lectures a head sees a *slice* of the embedding, and elsewhere it sees all of it, through a learned projection.
#   [Multi-head attention](08_multi_head_attention.ipynb) measures the difference.
# - PyTorch has both conventions for masks.
#   In both masks of `nn.MultiheadAttention` True means *is hidden*, but in the mask of `nn.functional.scaled_dot_product_attention` it means *may attend*, as here.
#   Here both get two sentences, of 3 and 5 tokens, with a padding mask and a causal mask:

# %%
lengths, words = torch.tensor([3, 5]), torch.randn(2, 5, 8)
padding, causal = cu.padding_mask(lengths, 5), cu.causal_mask(5)
layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
hiding = {"key_padding_mask": ~padding[:, 0, 0], "attn_mask": ~causal}
_, hidden = layer(words, words, words, **hiding)
heads = words[:, None]
permitted = torch.nn.functional.scaled_dot_product_attention(
    heads, heads, torch.eye(5).expand(2, 1, 5, 5), attn_mask=padding & causal
)[:, 0]
pd.DataFrame(
    {
        "nn.MultiheadAttention(…=~mask)": (hidden[0] > 0).int().tolist(),
        "scaled_dot_product_attention(…=mask)": (permitted[0] > 0).int().tolist(),
    }
)

# %% [markdown]
# Each row is a query of the first sentence, with a 1 for each key that gets weight.
# The values are an identity matrix, so the answers are the weights.
# The two columns agree, because we gave `nn.MultiheadAttention` the opposite of our mask, `~mask`.

# %% [markdown]
# ## Five other texts, section by section
#
# This course began with five documents about attention, and it teaches what they teach.
# If you know one of them, or follow a lecture that uses it, here is where to find the same things.
# The number is a chapter, and *further* is its further page.
#
# | Li, *Attention Mechanism & Transformers* | Here |
# |---|---|
# | Queries, Keys, and Values | 01 [Ask for a kitten](01_queries_keys_values.ipynb#Query,-key-and-value:-ask-for-a-kitten) · 01 [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights:-softmax) · 01 further [Where weighted sums lie](01_queries_keys_values_further.ipynb#Where-weighted-sums-lie) |
# | Attention Pooling by Similarity | 02 [Weighted averages: near points count more](02_kernel_regression.ipynb#Weighted-averages:-near-points-count-more) · 02 [The width decides: bias and variance](02_kernel_regression.ipynb#The-width-decides:-bias-and-variance) · 02 further [Five kernels and one number](02_kernel_regression_further.ipynb#Five-kernels-and-one-number) |
# | Attention Scoring Functions | 03 [Scoring functions](03_scoring_functions.ipynb) · 03 further [Keys of one length: layer norm](03_scoring_functions_further.ipynb#Keys-of-one-length:-layer-norm) |
# | Convenience Functions | 04 [Padding gets weight](04_masks.ipynb#Padding-gets-weight) · 04 further [Minus infinity in other texts](04_masks_further.ipynb#Minus-infinity-in-other-texts) · 04 [Attention with a mask](04_masks.ipynb#Attention-with-a-mask) |
# | Scaled Dot-Product Attention | 04 [Attention with a mask](04_masks.ipynb#Attention-with-a-mask) |
# | Additive Attention | 03 [Additive scores](03_scoring_functions.ipynb#Additive-scores) · 03 further [Additive scores and a matrix in between](03_scoring_functions_further.ipynb#Additive-scores-and-a-matrix-in-between) |
# | The Bahdanau Attention Mechanism | 06 [A context for each word](06_bahdanau_attention.ipynb#A-context-for-each-word) · 06 further [A window that moves forward](06_bahdanau_attention_further.ipynb#A-window-that-moves-forward) |
# | Defining the Decoder with Attention | 06 [The decoder that attends](06_bahdanau_attention.ipynb#The-decoder-that-attends) · 06 [Training it](06_bahdanau_attention.ipynb#Training-it) · 06 further [Four sentences with a perfect score](06_bahdanau_attention_further.ipynb#Four-sentences-with-a-perfect-score) |
# | Multi-Head Attention | 08 [Two questions, one average](08_multi_head_attention.ipynb#Two-questions,-one-average) · 08 [Split and join: one product and two transposes](08_multi_head_attention.ipynb#Split-and-join:-one-product-and-two-transposes) · 08 further [Sizes of their own](08_multi_head_attention_further.ipynb#Sizes-of-their-own) |
# | Self-Attention | 07 [All words at once: the formula](07_self_attention.ipynb#All-words-at-once:-the-formula) · 07 further [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention) |
# | Positional Encoding | 09 [Sinusoidal positions](09_positions.ipynb#Sinusoidal-positions) · 09 [A shift is a rotation](09_positions.ipynb#A-shift-is-a-rotation) |
# | The Transformer Architecture | 10 [The whole on one page](10_transformer.ipynb#The-whole-on-one-page) |
# | Positionwise Feed-Forward Networks | 10 [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual) |
# | Residual Connection and Layer Normalization | 10 [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual) |
# | Encoder; Decoder | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 10 [The whole model](10_transformer.ipynb#The-whole-model) |
# | Training | 11 [Training it](11_translating.ipynb#Training-it) · 11 [What a word needs: attention weights or forbidding?](11_translating.ipynb#What-a-word-needs:-attention-weights-or-forbidding?) · 11 further [All heads of one sentence](11_translating_further.ipynb#All-heads-of-one-sentence) · 11 further [Four sentences of a lecture](11_translating_further.ipynb#Four-sentences-of-a-lecture) |
# | Transformers for Vision | 15 [Patches](15_vision_transformers.ipynb#Patches) · 15 [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class) · 15 further [All of Fashion-MNIST](15_vision_transformers_further.ipynb#All-of-Fashion-MNIST) |
#
# | Zou, *Attention Mechanism* | Here |
# |---|---|
# | Input Data | 05 [From strings to batches](05_sequence_to_sequence.ipynb#From-strings-to-batches:-tokens,-padding,-a-shifted-target) |
# | Basic Functions | 04 [Padding and causal masks: True = may attend](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend) · 04 further [Which version passes which test?](04_masks_further.ipynb#Which-version-passes-which-test?) |
# | DotProductAttention | 04 [Attention with a mask](04_masks.ipynb#Attention-with-a-mask) · 07 further [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention) |
# | MultiHeadAttention | 08 [From one head to two, and to h](08_multi_head_attention.ipynb#From-one-head-to-two,-and-to-h) · 08 further [Sizes of their own](08_multi_head_attention_further.ipynb#Sizes-of-their-own) |
# | Positional encoding | 09 [Sinusoidal positions](09_positions.ipynb#Sinusoidal-positions) · 09 [A shift is a rotation](09_positions.ipynb#A-shift-is-a-rotation) · 09 further [Kinds of decay](09_positions_further.ipynb#Kinds-of-decay) |
# | Add&Norm; ForwardWiseFFN | 10 [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual) |
# | Encoder; Decoder | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) |
# | Model | 10 [The whole model](10_transformer.ipynb#The-whole-model) |
# | Masked softmax loss; Train function | 05 [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss) |
# | Prediction | 05 [Greedy decoding](05_sequence_to_sequence.ipynb#Greedy-decoding:-letters,-then-words) · 05 further [A fixed number of positions](05_sequence_to_sequence_further.ipynb#A-fixed-number-of-positions) · 11 [The best sentence: beam search](11_translating.ipynb#The-best-sentence:-beam-search) |
# | Llama | 14 further [What came after](14_bert_and_transfer_further.ipynb#What-came-after) |
#
# | Kak, *Transformers: Learning with Purely Attention Based Networks* | Here |
# |---|---|
# | Preamble | 07 [The source decides: cross-attention](07_self_attention.ipynb#The-source-decides:-cross-attention) · 07 further [It and its adjective](07_self_attention_further.ipynb#It-and-its-adjective) |
# | The Basic Idea of Dot-Product Attention | 07 [Queries, keys and values](07_self_attention.ipynb#Queries,-keys-and-values) · 07 [All words at once: the formula](07_self_attention.ipynb#All-words-at-once:-the-formula) · 03 [Scoring functions](03_scoring_functions.ipynb) |
# | Multi-Headed Attention | 08 [From one head to two, and to h](08_multi_head_attention.ipynb#From-one-head-to-two,-and-to-h) · 08 further [Heads as slices](08_multi_head_attention_further.ipynb#Heads-as-slices) |
# | Implementation of Attention in DLStudio's Transformers | 08 further [Heads as slices](08_multi_head_attention_further.ipynb#Heads-as-slices) · 12 further [A first generation](12_training_transformers_further.ipynb#A-first-generation) |
# | The Encoder-Decoder Architecture of a Transformer | 10 [The whole on one page](10_transformer.ipynb#The-whole-on-one-page) |
# | The Master Encoder Class; The Basic Encoder Class | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 12 further [A first generation](12_training_transformers_further.ipynb#A-first-generation) |
# | Cross Attention | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 12 further [A first generation](12_training_transformers_further.ipynb#A-first-generation) |
# | The Basic Decoder Class; The Master Decoder Class | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 04 further [Zeroed embeddings are not a mask](04_masks_further.ipynb#Zeroed-embeddings-are-not-a-mask) |
# | Positional Encoding for the Words | 09 [Sinusoidal positions](09_positions.ipynb#Sinusoidal-positions) · 09 [Longer texts](09_positions.ipynb#Longer-texts:-what-training-has-visited) |
# | TransformerFG and TransformerPreLN Classes in DLStudio | 10 [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual) · 12 further [A first generation](12_training_transformers_further.ipynb#A-first-generation) · 12 further [Two orders of norm](12_training_transformers_further.ipynb#Two-orders-of-norm) |
# | Regarding the Difficulty of Training a Transformer Network | 12 [Small first steps: Adam and warm-up](12_training_transformers.ipynb#Small-first-steps:-Adam-and-warm-up) · 12 [Checkpoints: back to the best file](12_training_transformers.ipynb#Checkpoints:-back-to-the-best-file) · 05 further [BLEU, written out](05_sequence_to_sequence_further.ipynb#BLEU,-written-out) |
# | Results on the English-Spanish Dataset | 12 further [What twenty sentences show](12_training_transformers_further.ipynb#What-twenty-sentences-show) · 11 further [Real sentences](11_translating_further.ipynb#Real-sentences) |
# | Transformers with Generative Pre-Training (GPT) | 13 [What counting knows](13_gpt.ipynb#What-counting-knows) · 13 further [Pieces of words](13_gpt_further.ipynb#Pieces-of-words) · 14 further [What came after](14_bert_and_transfer_further.ipynb#What-came-after) |
# | The Vision Transformer Class visTransformer | 15 [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class) · 15 further [The right shape and the wrong patches](15_vision_transformers_further.ipynb#The-right-shape-and-the-wrong-patches) · 15 further [CIFAR-10, with right and with wrong patches](15_vision_transformers_further.ipynb#CIFAR-10,-with-right-and-with-wrong-patches) |
# | Using QKV Modeling for Inter-Pixel Attention | 16 [Pixels as tokens](16_attention_between_pixels.ipynb#Pixels-as-tokens) · 16 [The block](16_attention_between_pixels.ipynb#The-block) · 17 [A U-Net that guesses the noise](17_diffusion.ipynb#A-U-Net-that-guesses-the-noise) · 17 further [Where attention between pixels helps: the mirror task](17_diffusion_further.ipynb#Where-attention-between-pixels-helps:-the-mirror-task) |
#
# | Agarwal, a notebook | Here |
# |---|---|
# | Attention Pooling | 02 [Weighted averages: near points count more](02_kernel_regression.ipynb#Weighted-averages:-near-points-count-more) · 02 [Kernel regression is attention](02_kernel_regression.ipynb#Kernel-regression-is-attention) · 02 [Leave one out: choosing and learning the width](02_kernel_regression.ipynb#Leave-one-out:-choosing-and-learning-the-width) |
# | Attention Scoring Functions: Masked Softmax Operation | 04 [Masked softmax: the mask comes first](04_masks.ipynb#Masked-softmax:-the-mask-comes-first) |
# | Additive Attention; Scaled Dot-Product Attention | 03 [Additive scores](03_scoring_functions.ipynb#Additive-scores) · 04 [Attention with a mask](04_masks.ipynb#Attention-with-a-mask) |
# | Bahdanau Attention | 06 [The decoder that attends](06_bahdanau_attention.ipynb#The-decoder-that-attends) · 06 [Where does it attend?](06_bahdanau_attention.ipynb#Where-does-it-attend?) |
# | Multi-Head Attention | 08 [Split and join: one product and two transposes](08_multi_head_attention.ipynb#Split-and-join:-one-product-and-two-transposes) · 08 further [Sizes of their own](08_multi_head_attention_further.ipynb#Sizes-of-their-own) |
# | Transformer | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 10 [The whole model](10_transformer.ipynb#The-whole-model) · 11 [Training it](11_translating.ipynb#Training-it) · 11 further [All heads of one sentence](11_translating_further.ipynb#All-heads-of-one-sentence) |
#
# | Huang, Li and Smola, CS 329P | Here |
# |---|---|
# | Encode-Decoder Architecture | 05 [Encoder and decoder](05_sequence_to_sequence.ipynb#Encoder-and-decoder) |
# | Attention; Code | 06 further [A decoder that attends to its own past](06_bahdanau_attention_further.ipynb#A-decoder-that-attends-to-its-own-past) · 03 [A dot product is a match](03_scoring_functions.ipynb#A-dot-product-is-a-match) · 04 [Attention with a mask](04_masks.ipynb#Attention-with-a-mask) |
# | Self-attention | 07 [All words at once: the formula](07_self_attention.ipynb#All-words-at-once:-the-formula) · 07 further [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention) |
# | Transformers; Code for Transformer Block | 10 [The two blocks](10_transformer.ipynb#The-two-blocks) · 08 [From one head to two, and to h](08_multi_head_attention.ipynb#From-one-head-to-two,-and-to-h) |
# | BERT and GPT | 13 [GPT in one class](13_gpt.ipynb#GPT-in-one-class) · 14 [BERT in one class](14_bert_and_transfer.ipynb#BERT-in-one-class) |
# | Transformers in Vision | 15 [Patches](15_vision_transformers.ipynb#Patches) · 15 further [Against a convolutional network](15_vision_transformers_further.ipynb#Against-a-convolutional-network) |
# | Summary | [One formula](F_one_formula.ipynb) |

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
# - Kak, A. (2025).
#   [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/).
#   Lecture slides, Purdue University.
# - Li, H.
#   Attention Mechanism & Transformers.
#   Lecture slides, Zhejiang University, after *Dive into Deep Learning*.
# - Zou, T. (2025).
#   Attention Mechanism.
#   Lecture notes with code.
# - Agarwal, S. (2021).
#   Notebook on attention, with the library of *Dive into Deep Learning*.
# - Huang, Q., Li, M. and Smola, A. (2021).
#   Attention.
#   In [CS 329P: Practical Machine Learning](https://c.d2l.ai/stanford-cs329p), Stanford University.
# - PyTorch.
#   [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html).
