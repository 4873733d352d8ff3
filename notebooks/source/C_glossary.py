# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Glossary
#
# What each term means, in a sentence or two, and the sections that teach it.
# A term has a place of its own: a link such as `[softmax](C_glossary.ipynb#softmax)` leads to it, in JupyterLab as in the book.

# %% [markdown]
# ## A
#
# ### <a id="ablation"></a>ablation
#
# A part of a trained network is taken away, and what it adds is replaced by zero or by its mean, to see what is lost.
# *Taught in* [Taking heads away](08_multi_head_attention.ipynb#Taking-heads-away).
#
# ### <a id="adam"></a>Adam
#
# Gradient descent that gives each parameter a step size of its own: it divides the mean of recent gradients by their usual size.
# AdamW adds [weight decay](#weight-decay).
# *Taught in* [What counts as an error](05_sequence_to_sequence.ipynb#What-counts-as-an-error,-and-the-training-loop), [Small first steps](12_training_transformers.ipynb#Small-first-steps), [Adam with decoupled weight decay](12_training_transformers_further.ipynb#Adam-with-decoupled-weight-decay).
#
# ### <a id="additive-attention"></a>additive attention
#
# A score tanh(q W_Q + k W_K) · w, also for queries and keys of different sizes.
# *Taught in* [Additive scores](03_scoring_functions.ipynb#Additive-scores).
#
# ### <a id="alignment"></a>alignment
#
# Which source tokens a target token translates, as links between positions.
# *Taught in* [Where does it attend?](06_bahdanau_attention.ipynb#Where-does-it-attend?).
#
# ### <a id="alignment-error-rate"></a>alignment error rate
#
# 1 − 2 |found ∩ right| / (|found| + |right|), over the links of all sentences; the right ones are made by hand.
# (The definition of Och and Ney also has possible ones.)
# *Taught in* [Alignment error rate](06_bahdanau_attention.ipynb#Alignment-error-rate).
#
# ### <a id="attention-sink"></a>attention sink
#
# A token, often the first of a text, that gets much weight although its value adds little: a softmax has to put its weight somewhere.
# A key whose value is zero is a remedy.
# *Taught in* [Who did what first](01_queries_keys_values_further.ipynb#Who-did-what-first).
#
# ### <a id="attention-weights"></a>attention weights
#
# Nonnegative numbers, one for each key, that sum to 1.
# A weight says how much of its key's value enters the answer.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [Ask for a kitten](01_queries_keys_values.ipynb#Ask-for-a-kitten), [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights).
#
# ### <a id="average-pooling"></a>average pooling
#
# The plain mean of all values, whatever the query: uniform weights.
# *Taught in* [Six look-ups, one formula](01_queries_keys_values.ipynb#Six-look-ups,-one-formula), [Near points count more](02_kernel_regression.ipynb#Near-points-count-more).

# %% [markdown]
# ## B
#
# ### <a id="backpropagation-through-time"></a>backpropagation through time
#
# The gradient of a recurrent network, computed from its last step back to the first, through the state of each.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads).
#
# ### <a id="bandwidth"></a>bandwidth
#
# Another word for the width of a kernel: how far from the query a key still counts.
# *Taught in* [The width decides](02_kernel_regression.ipynb#The-width-decides).
#
# ### <a id="batch"></a>batch
#
# Examples that a model works on at once, side by side along the first axis; a step of training follows the mean gradient of one batch.
# *Taught in* [From sentences to batches](05_sequence_to_sequence.ipynb#From-sentences-to-batches).
#
# ### <a id="beam-search"></a>beam search
#
# Decoding that keeps a few of the most probable beginnings at each step, instead of one.
# *Taught in* [The best sentence](11_translating.ipynb#The-best-sentence).
#
# ### <a id="bleu"></a>BLEU
#
# Clipped n-gram precisions, averaged geometrically, times a penalty for short translations.
# *Taught in* [A number for translations](05_sequence_to_sequence.ipynb#A-number-for-translations), [BLEU, written out](05_sequence_to_sequence_further.ipynb#BLEU,-written-out).
#
# ### <a id="boundary-bias"></a>boundary bias
#
# The systematic error of a weighted average near the edge of the data, where all neighbors lie on one side.
# *Taught in* [Wrong without noise: edges, slopes, bends](02_kernel_regression_further.ipynb#Wrong-without-noise:-edges,-slopes,-bends).
#
# ### <a id="broadcasting"></a>broadcasting
#
# Tensors of different shapes combined without a loop: an axis of length 1 is used again along the other tensor's axis.
# *Taught in* [Broadcasting](B_pytorch.ipynb#Broadcasting).
#
# ### <a id="byte-pair-encoding"></a>byte-pair encoding
#
# Subwords found by merging the most frequent neighboring pair, again and again.
# *Taught in* [Pieces of words](13_gpt.ipynb#Pieces-of-words).

# %% [markdown]
# ## C
#
# ### <a id="causal-mask"></a>causal mask
#
# A mask in which position i may attend to the positions 0 … i only, so that no prediction sees what it predicts.
# *Taught in* [True = may attend](04_masks.ipynb#True-=-may-attend).
#
# ### <a id="checkpoint"></a>checkpoint
#
# A file with everything that a training needs to go on as if it had not stopped.
# *Taught in* [Learns, then breaks](12_training_transformers.ipynb#Learns,-then-breaks), [What a checkpoint must hold](12_training_transformers_further.ipynb#What-a-checkpoint-must-hold), [Training it](15_vision_transformers.ipynb#Training-it).
#
# ### <a id="class-token"></a>class token
#
# A learned token, put before the patches of a vision transformer.
# The classifier reads its last state.
# *Taught in* [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class), [What the class token looks at](15_vision_transformers.ipynb#What-the-class-token-looks-at).
#
# ### <a id="confusion-matrix"></a>confusion matrix
#
# How often each true class was taken for each class.
# *Taught in* [Training it](15_vision_transformers.ipynb#Training-it).
#
# ### <a id="consistency"></a>consistency
#
# The error tends to 0 as the points grow in number: here, if the width shrinks and the window still fills.
# *Taught in* [More points: consistent, and how fast](02_kernel_regression_further.ipynb#More-points:-consistent,-and-how-fast).
#
# ### <a id="convex-weights"></a>convex weights
#
# Weights that are nonnegative and sum to 1; the answer lies in the convex hull of the values.
# *Taught in* [A table of words](01_queries_keys_values.ipynb#A-table-of-words).
#
# ### <a id="cross-attention"></a>cross-attention
#
# Queries from one sequence, keys and values from another: in the Transformer, from the decoder and from the encoder's output; in an image generator, from the pixels and from the words.
# *Taught in* [The two blocks](10_transformer.ipynb#The-two-blocks), [Words for pixels](17_diffusion.ipynb#Words-for-pixels).
#
# ### <a id="cross-entropy"></a>cross-entropy
#
# Minus the logarithm of the probability that a model gives to what is right, on average: the loss of every classifier and language model here.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy).
#
# ### <a id="curse-of-dimension"></a>curse of dimension
#
# In many dimensions hardly any key is near a query, so the error of a kernel average falls more and more slowly with the number of data.
# *Taught in* [More dimensions](02_kernel_regression_further.ipynb#More-dimensions).

# %% [markdown]
# ## D
#
# ### <a id="decoder-only-model"></a>decoder-only model
#
# A Transformer without encoder and cross-attention: it reads one text with a causal mask and predicts each next token, as GPT does.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class).
#
# ### <a id="denoising-diffusion"></a>denoising diffusion
#
# A model that learns to predict the noise in a picture, and draws a new one by removing noise step by step.
# *Taught in* [What it costs](16_attention_between_pixels.ipynb#What-it-costs), [Into the noise](17_diffusion.ipynb#Into-the-noise), [Back, one guess at a time](17_diffusion.ipynb#Back,-one-guess-at-a-time).
#
# ### <a id="dot-product"></a>dot product
#
# Two vectors of equal length, multiplied entry by entry and summed: a number that grows with the lengths of both and with their agreement in direction.
# *Taught in* [A dot product is a match](03_scoring_functions.ipynb#A-dot-product-is-a-match), [Products of matrices](B_pytorch.ipynb#Products-of-matrices).
#
# ### <a id="dropout"></a>dropout
#
# In training, a random share of the numbers is set to 0 and the others are made larger, so that their mean stays.
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop), [Around every sublayer](10_transformer.ipynb#Around-every-sublayer).

# %% [markdown]
# ## E
#
# ### <a id="effective-sample-size"></a>effective sample size
#
# The number of equally weighted keys that would average out noise as well as these weights do: 1 / Σα².
# *Taught in* [The width decides](02_kernel_regression.ipynb#The-width-decides).
#
# ### <a id="embedding"></a>embedding
#
# The vector that stands for a token in a network: its row of a matrix that training changes, so that tokens used alike come to lie near each other.
# *Taught in* [Padding gets weight](04_masks.ipynb#Padding-gets-weight), [Dot products of embeddings](07_self_attention.ipynb#Dot-products-of-embeddings), [From sentences to batches](05_sequence_to_sequence.ipynb#From-sentences-to-batches), [The whole model](10_transformer.ipynb#The-whole-model).
#
# ### <a id="empty-row"></a>empty row
#
# A row of a mask in which a query may attend to no key.
# The course gives it zeros.
# *Taught in* [True = may attend](04_masks.ipynb#True-=-may-attend), [A query with nothing to attend to](04_masks.ipynb#A-query-with-nothing-to-attend-to).
#
# ### <a id="encoder-and-decoder"></a>encoder and decoder
#
# Two networks: one reads the source; the other writes the target from what was read.
# *Taught in* [Encoder and decoder](05_sequence_to_sequence.ipynb#Encoder-and-decoder), [The whole on one page](10_transformer.ipynb#The-whole-on-one-page).
#
# ### <a id="entropy"></a>entropy
#
# How evenly weights are spread: 0 for one-hot weights, log₂ n bits for n equal ones.
# *Taught in* [What large scores do](03_scoring_functions.ipynb#What-large-scores-do).
#
# ### <a id="exposure-bias"></a>exposure bias
#
# What teacher forcing leaves unlearned: to go on from a mistake of one's own.
# *Taught in* [What counts as an error](05_sequence_to_sequence.ipynb#What-counts-as-an-error,-and-the-training-loop).

# %% [markdown]
# ## F
#
# ### <a id="fine-tuning"></a>fine-tuning
#
# Training a pretrained network further, on a task of its own with few labels.
# *Taught in* [Fifty labels](14_bert_and_transfer.ipynb#Fifty-labels).
#
# ### <a id="fixed-context"></a>fixed context
#
# One vector of fixed size that has to hold the whole source sentence.
# *Taught in* [Encoder and decoder](05_sequence_to_sequence.ipynb#Encoder-and-decoder), [Is the vector too small?](05_sequence_to_sequence.ipynb#Is-the-vector-too-small?).

# %% [markdown]
# ## G
#
# ### <a id="gated-recurrent-unit"></a>gated recurrent unit
#
# GRU: a recurrent network whose gates decide, feature by feature, how much of the old state is kept.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads).
#
# ### <a id="gelu"></a>GELU
#
# A smooth relative of the ReLU, x times the share of a standard normal distribution below x; used between the two layers of a position-wise network.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class), [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class).
#
# ### <a id="gradient"></a>gradient
#
# The derivatives of one number, mostly a loss, with respect to each entry of a tensor.
# *Taught in* [Gradients](B_pytorch.ipynb#Gradients).
#
# ### <a id="gradient-clipping"></a>gradient clipping
#
# Shortening a gradient that is longer than a limit to that limit.
# *Taught in* [Small first steps](12_training_transformers.ipynb#Small-first-steps), [What clipping protects](12_training_transformers_further.ipynb#What-clipping-protects).
#
# ### <a id="greedy-decoding"></a>greedy decoding
#
# Decoding that takes the most probable token at each step.
# *Taught in* [Word by word](05_sequence_to_sequence.ipynb#Word-by-word), [The best sentence](11_translating.ipynb#The-best-sentence).
#
# ### <a id="group-norm"></a>group norm
#
# Groups of channels brought to mean 0 and variance 1 over all pixels of a picture, so that each pixel changes all others a little.
# *Taught in* [The block](16_attention_between_pixels.ipynb#The-block), [What one changed pixel changes](16_attention_between_pixels.ipynb#What-one-changed-pixel-changes).
#
# ### <a id="grouped-query-attention"></a>grouped-query attention
#
# Several query heads share one head of keys and values, which makes the cache smaller.
# *Taught in* [What do more heads cost?](08_multi_head_attention.ipynb#What-do-more-heads-cost?), [What came after](14_bert_and_transfer_further.ipynb#What-came-after).

# %% [markdown]
# ## H
#
# ### <a id="head"></a>head
#
# One of several attentions side by side, each with its own projection of queries, keys and values.
# The last layer of a model is called its output layer here.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [From one head to h](08_multi_head_attention.ipynb#From-one-head-to-h), [Taking heads away](08_multi_head_attention.ipynb#Taking-heads-away).
#
# ### <a id="heatmap"></a>heatmap
#
# A picture of a table of numbers in shades; the bar beside it says which shade is which number.
# *Taught in* [Read a map of weights, and use it](00_start_here.ipynb#Read-a-map-of-weights,-and-use-it).

# %% [markdown]
# ## I
#
# ### <a id="in-context-learning"></a>in-context learning
#
# Use of what stands in the input, such as the text that is being read, without any change of the parameters.
# *Taught in* [Nobody told it](02_kernel_regression.ipynb#Nobody-told-it), [What the heads look at](13_gpt.ipynb#What-the-heads-look-at).

# %% [markdown]
# ## K
#
# ### <a id="kernel"></a>kernel
#
# A function that turns the distance between query and key into an unnormalized weight.
# (In a notebook, the kernel is the Python behind the page.)
# *Taught in* [Near points count more](02_kernel_regression.ipynb#Near-points-count-more), [Five kernels and one number](02_kernel_regression_further.ipynb#Five-kernels-and-one-number).
#
# ### <a id="kv-cache"></a>KV cache
#
# Keys and values of the tokens so far, kept while decoding, so that each step computes one new token only.
# *Taught in* [The cache](11_translating.ipynb#The-cache), [Writing](13_gpt.ipynb#Writing).

# %% [markdown]
# ## L
#
# ### <a id="label-smoothing"></a>label smoothing
#
# A training target that gives a little probability to every token, not only to the right one.
# *Taught in* [Smoothed labels](12_training_transformers_further.ipynb#Smoothed-labels).
#
# ### <a id="layer-norm"></a>layer norm
#
# Each token's features brought to mean 0 and variance 1, then scaled and shifted.
# *Taught in* [A network and a norm for each token](10_transformer.ipynb#A-network-and-a-norm-for-each-token).
#
# ### <a id="learning-rate"></a>learning rate
#
# How far a step of training moves along the gradient.
# It is chosen by the validation loss, for each model anew.
# *Taught in* [What counts as an error](05_sequence_to_sequence.ipynb#What-counts-as-an-error,-and-the-training-loop), [A loss that falls](12_training_transformers.ipynb#A-loss-that-falls).
#
# ### <a id="leave-one-out-error"></a>leave-one-out error
#
# The error at each point when it is predicted from all others: a fair judge of one width.
# The smallest of many widths' is a little too small.
# *Taught in* [Leave one out](02_kernel_regression.ipynb#Leave-one-out).
#
# ### <a id="logits"></a>logits
#
# The numbers that a model gives before the softmax turns them into probabilities.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy).
#
# ### <a id="lora"></a>LoRA
#
# Low-rank adaptation: a linear layer is frozen, and a product of two narrow matrices beside it is trained.
# *Taught in* [A little is enough: LoRA](14_bert_and_transfer.ipynb#A-little-is-enough:-LoRA).
#
# ### <a id="low-rank"></a>low rank
#
# A matrix has rank r if it is a product of two matrices with r columns and r rows, and none narrower.
# Low rank: r is small beside its own sizes.
# *Taught in* [What do more heads cost?](08_multi_head_attention.ipynb#What-do-more-heads-cost?).
#
# ### <a id="lstm"></a>LSTM
#
# Long short-term memory: a recurrent network that carries a second state, which gates erase and write.
# The GRU is its simpler relative.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads).

# %% [markdown]
# ## M
#
# ### <a id="mask"></a>mask
#
# A boolean tensor, True where a query may attend to a key.
# *Taught in* [True = may attend](04_masks.ipynb#True-=-may-attend), [A mask is a hint](09_positions_further.ipynb#A-mask-is-a-hint).
#
# ### <a id="masked-softmax"></a>masked softmax
#
# Softmax over the permitted keys; a row without any gives zeros.
# *Taught in* [A query with nothing to attend to](04_masks.ipynb#A-query-with-nothing-to-attend-to).
#
# ### <a id="masked-token-pretraining"></a>masked-token pretraining
#
# Training in which some tokens are hidden and the model restores them from both sides.
# *Taught in* [Hide and restore](14_bert_and_transfer.ipynb#Hide-and-restore), [Training it](14_bert_and_transfer.ipynb#Training-it).
#
# ### <a id="multi-head-attention"></a>multi-head attention
#
# Heads whose outputs are joined and mixed by one more matrix.
# *Taught in* [First as a loop](08_multi_head_attention.ipynb#First-as-a-loop), [Then as one product and two transposes](08_multi_head_attention.ipynb#Then-as-one-product-and-two-transposes), [Joined means added](08_multi_head_attention.ipynb#Joined-means-added).

# %% [markdown]
# ## N
#
# ### <a id="n-gram"></a>n-gram
#
# A row of n tokens; a model that counts them and predicts each token from the n − 1 before it.
# Bigrams read one token, trigrams two.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="nadaraya-watson-estimator"></a>Nadaraya–Watson estimator
#
# Kernel regression: the average of the values, weighted by the kernel of the distance to their keys.
# *Taught in* [A drawing, a formula, four lines](02_kernel_regression.ipynb#A-drawing,-a-formula,-four-lines).
#
# ### <a id="next-token-likelihood"></a>next-token likelihood
#
# The probability of a text as a product of each token's given those before.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="non-local-means"></a>non-local means
#
# A filter that replaces each pixel by the average of all pixels of the picture, weighted by how alike the patches around them are.
# *Taught in* [Which pixels can help to clean this one?](16_attention_between_pixels.ipynb#Which-pixels-can-help-to-clean-this-one?).

# %% [markdown]
# ## P
#
# ### <a id="padding-mask"></a>padding mask
#
# A mask that forbids the places by which shorter sentences of a batch were filled up.
# *Taught in* [True = may attend](04_masks.ipynb#True-=-may-attend).
#
# ### <a id="parameter"></a>parameter
#
# A tensor of a model that training changes.
# *Taught in* [Modules and parameters](B_pytorch.ipynb#Modules-and-parameters).
#
# ### <a id="patch"></a>patch
#
# A rectangle of pixels that a vision transformer reads as one token.
# *Taught in* [Patches](15_vision_transformers.ipynb#Patches), [The right shape and the wrong patches](15_vision_transformers_further.ipynb#The-right-shape-and-the-wrong-patches).
#
# ### <a id="path-length"></a>path length
#
# How many steps a signal takes from one position to another: 1 in self-attention, up to n in recurrence.
# *Taught in* [What it costs](07_self_attention.ipynb#What-it-costs), [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention).
#
# ### <a id="permutation-equivariance"></a>permutation equivariance
#
# Permuting the tokens permutes the outputs in the same way, and changes nothing else.
# *Taught in* [Any order](07_self_attention.ipynb).
#
# ### <a id="perplexity"></a>perplexity
#
# exp of the mean loss per token.
# A model that chooses evenly among P tokens has the perplexity P. *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="position-interpolation"></a>position interpolation
#
# All positions divided by one factor, so that a longer text lies in the range of the training; NTK-aware scaling and YaRN slow only the slow pairs of rotary positions.
# *Taught in* [Cures](09_positions.ipynb#Cures).
#
# ### <a id="position-wise-network"></a>position-wise network
#
# Two linear layers with a nonlinearity between them, applied to each token on its own with the same weights.
# *Taught in* [A network and a norm for each token](10_transformer.ipynb#A-network-and-a-norm-for-each-token).
#
# ### <a id="post-norm-and-pre-norm"></a>post-norm and pre-norm
#
# Where a Transformer normalizes: after each sum, as in 2017, or before each sublayer.
# *Taught in* [Around every sublayer](10_transformer.ipynb#Around-every-sublayer), [Two orders of norm](12_training_transformers.ipynb#Two-orders-of-norm).

# %% [markdown]
# ## Q
#
# ### <a id="query-key-value"></a>query, key, value
#
# What is looked for, what it is compared with, and what is handed back.
# *Taught in* [Read a map of weights, and use it](00_start_here.ipynb#Read-a-map-of-weights,-and-use-it), [Ask for a kitten](01_queries_keys_values.ipynb#Ask-for-a-kitten), [All words at once](07_self_attention.ipynb#All-words-at-once).

# %% [markdown]
# ## R
#
# ### <a id="receptive-field"></a>receptive field
#
# The pixels of the input that can change an output: for m convolutions of width 3 a square of 2m + 1.
# *Taught in* [What one changed pixel changes](16_attention_between_pixels.ipynb#What-one-changed-pixel-changes).
#
# ### <a id="recurrent-network"></a>recurrent network
#
# A network that reads tokens one after the other and carries a state from each to the next.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads).
#
# ### <a id="relative-positions"></a>relative positions
#
# Something added to the score that depends on the offset between key and query alone: a learned vector or number, or a fixed slope.
# *Taught in* [Learned and relative positions](09_positions.ipynb#Learned-and-relative-positions).
#
# ### <a id="residual"></a>residual
#
# A connection that adds a sublayer's input to its output; also called shortcut or skip connection.
# *Taught in* [Around every sublayer](10_transformer.ipynb#Around-every-sublayer).
#
# ### <a id="residual-stream"></a>residual stream
#
# A token's vector on its way through the layers: it starts as the embedding, and each sublayer adds its output to it.
# *Taught in* [Around every sublayer](10_transformer.ipynb#Around-every-sublayer), [Two orders of norm](12_training_transformers.ipynb#Two-orders-of-norm), [GPT in one class](13_gpt.ipynb#GPT-in-one-class).
#
# ### <a id="rollout"></a>rollout
#
# Attention maps multiplied through all layers, with the shortcut counted as attention to oneself.
# *Taught in* [Rollout](15_vision_transformers.ipynb#Rollout).
#
# ### <a id="rotary-positions"></a>rotary positions
#
# Also RoPE: queries and keys rotated by angles proportional to their positions, so that a score depends on the offset between them; the base θ sets the frequencies.
# *Taught in* [Rotary: turn queries and keys](09_positions.ipynb#Rotary:-turn-queries-and-keys).

# %% [markdown]
# ## S
#
# ### <a id="saturation"></a>saturation
#
# Weights so close to one-hot that the gradient of the softmax vanishes.
# *Taught in* [When the gradient vanishes](01_queries_keys_values_further.ipynb#When-the-gradient-vanishes), [Additive scores and a matrix in between](03_scoring_functions_further.ipynb#Additive-scores-and-a-matrix-in-between).
#
# ### <a id="scaled-dot-product-attention"></a>scaled dot-product attention
#
# The values, averaged with the weights softmax(q·k / √d): the attention of the Transformer.
# *Taught in* [Why divide by √d?](03_scoring_functions.ipynb), [The whole of it](03_scoring_functions.ipynb#The-whole-of-it), [Attention with a mask](04_masks.ipynb#Attention-with-a-mask).
#
# ### <a id="self-attention"></a>self-attention
#
# Queries, keys and values all come from the same sequence.
# *Taught in* [All words at once](07_self_attention.ipynb#All-words-at-once).
#
# ### <a id="shift-invariance"></a>shift invariance
#
# The same number added to all scores of a row changes no weight.
# *Taught in* [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature).
#
# ### <a id="sinusoidal-positions"></a>sinusoidal positions
#
# Sines and cosines of the position at geometrically falling frequencies, added to the embeddings.
# *Taught in* [Waves](09_positions.ipynb#Waves), [Moving is turning](09_positions.ipynb#Moving-is-turning).
#
# ### <a id="softmax"></a>softmax
#
# exp of the scores, divided by the sum of these: it turns scores into weights.
# *Taught in* [The first slider](00_start_here.ipynb#The-first-slider), [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights), [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature).
#
# ### <a id="standard-error"></a>standard error
#
# How far a mean from so few cases may lie from the true one by chance: the standard deviation divided by the root of their number.
# *Taught in* [Training it](06_bahdanau_attention.ipynb#Training-it), [A form to begin with](D_capstone.ipynb#A-form-to-begin-with).
#
# ### <a id="subword"></a>subword
#
# A piece of a word, frequent enough to be a token of its own.
# *Taught in* [Pieces of words](13_gpt.ipynb#Pieces-of-words).

# %% [markdown]
# ## T
#
# ### <a id="teacher-forcing"></a>teacher forcing
#
# Training in which the decoder reads the true previous token instead of its own prediction.
# *Taught in* [What counts as an error](05_sequence_to_sequence.ipynb#What-counts-as-an-error,-and-the-training-loop), [Who can see whom?](10_transformer.ipynb#Who-can-see-whom?).
#
# ### <a id="temperature"></a>temperature
#
# A number by which scores are divided before the softmax.
# A small one gives nearly all weight to one key, a large one spreads it evenly.
# *Taught in* [Ask for a kitten](01_queries_keys_values.ipynb#Ask-for-a-kitten), [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature), [Long queries, long keys](03_scoring_functions.ipynb#Long-queries,-long-keys).
#
# ### <a id="tensor"></a>tensor
#
# A table of numbers with any number of axes.
# *Taught in* [Tensors](B_pytorch.ipynb#Tensors).
#
# ### <a id="token"></a>token
#
# A piece of text that a model reads as one: a word, a part of a word, a sign.
# A vision transformer's tokens are patches.
# *Taught in* [From sentences to batches](05_sequence_to_sequence.ipynb#From-sentences-to-batches), [Pieces of words](13_gpt.ipynb#Pieces-of-words).
#
# ### <a id="top-k-sampling"></a>top-k sampling
#
# Sampling in which the next token is drawn from the k most probable ones.
# *Taught in* [Writing](13_gpt.ipynb#Writing).

# %% [markdown]
# ## U
#
# ### <a id="u-net"></a>U-Net
#
# A convolutional network that goes down to coarser pictures and up again, and carries what it saw on each level across.
# *Taught in* [A U-Net in sixty lines](17_diffusion.ipynb#A-U-Net-in-sixty-lines).

# %% [markdown]
# ## V
#
# ### <a id="validation-set"></a>validation set
#
# Examples that are not trained on, by which rates, sizes and the moment to stop are chosen.
# What they chose is then measured on a test set.
# *Taught in* [What counts as an error](05_sequence_to_sequence.ipynb#What-counts-as-an-error,-and-the-training-loop).
#
# ### <a id="vanishing-gradient"></a>vanishing gradient
#
# A gradient that shrinks at each step or layer on its way back, until little of it is left to learn from.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads).
#
# ### <a id="vision-transformer"></a>vision transformer
#
# An encoder over patches of an image, read out at the class token.
# *Taught in* [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class).
#
# ### <a id="vocabulary"></a>vocabulary
#
# The list of tokens that a model knows, each with its number; any other token becomes `<unk>`.
# *Taught in* [From sentences to batches](05_sequence_to_sequence.ipynb#From-sentences-to-batches).

# %% [markdown]
# ## W
#
# ### <a id="warm-up"></a>warm-up
#
# The first steps of a training, in which the learning rate rises before it falls.
# *Taught in* [Small first steps](12_training_transformers.ipynb#Small-first-steps).
#
# ### <a id="weight-decay"></a>weight decay
#
# A pull of each weight towards 0 in every step, beside the gradient.
# *Taught in* [Adam with decoupled weight decay](12_training_transformers_further.ipynb#Adam-with-decoupled-weight-decay), [Training it](13_gpt.ipynb#Training-it).
#
# ### <a id="weight-tying"></a>weight tying
#
# One matrix for two layers: the output layer of a language model is its embedding.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class).
