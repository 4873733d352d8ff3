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
# What does this word mean, and where did we meet it?
# Each term has a sentence or two here, an example, and the sections that teach it.
# If you write a text of your own, you can link to a term, for example by `[softmax](C_glossary.ipynb#softmax)`.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
import torch

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## A
#
# ### <a id="ablation"></a>ablation
#
# The removal of a part of a trained network, such as a head or a layer, to see what the network loses without it.
# **Zero ablation** replaces the output of the part by zeros, and **mean ablation** replaces it by its average.
# For example, if the loss hardly changes without a head, the network can do without that head.
# *Taught in* [Ablating heads](08_multi_head_attention.ipynb#Ablating-heads).
#
# ### <a id="accuracy"></a>accuracy
#
# The share of answers that are right.
# For whole sentences we count **exact-match accuracy**, in which a sentence is right only if all of its words are.
# For example, 83 right answers of 100 are an accuracy of 0.83, and a guess among ten equally frequent classes has 0.1.
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop).
#
# ### <a id="activation-patching"></a>activation patching
#
# An intervention, *patching* for short, that replaces one activation of a run by that of another run, to see how much of the answer moves along.
# For example, we take what the attention of one layer gives for *The capital of Italy is*, and put it into the run of *The capital of France is*; if the model now says *Rome*, this output carried the country.
# *Taught in* [In which layer?](18_real_weights.ipynb#In-which-layer?), [Who is hurt?](19_what_heads_learn.ipynb#Who-is-hurt?).
#
# ### <a id="adam"></a>Adam
#
# An optimizer that gives each parameter a step size of its own, because it divides the mean of recent gradients by their usual size.
# AdamW adds [weight decay](#weight-decay).
# For example, gradients of 100 and of 0.01 lead to first steps of the same size, the learning rate.
# *Taught in* [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss), [Small first steps](12_training_transformers.ipynb#Small-first-steps:-Adam-and-warm-up), [Adam with decoupled weight decay](12_training_transformers_further.ipynb#Adam-with-decoupled-weight-decay).
#
# ### <a id="additive-attention"></a>additive attention
#
# A score that sends query and key through one layer with a tanh, $w \cdot \tanh(q W_Q + k W_K)$, so the two may have different sizes.
# For example, a query of 3 numbers can be compared with keys of 5 numbers.
# *Taught in* [Additive scores](03_scoring_functions.ipynb#Additive-scores).
#
# ### <a id="alignment"></a>alignment
#
# The links between the words of a sentence and the words of its translation.
# For example, *red* in *a red car* is linked to the last word of *une voiture rouge*.
# *Taught in* [Where does it attend?](06_bahdanau_attention.ipynb#Where-does-it-attend?).
#
# ### <a id="alignment-error-rate"></a>alignment error rate
#
# A number that says how far a model's links are from links made by hand: 1 − 2 |found ∩ right| / (|found| + |right|), over all sentences.
# The definition of Och and Ney also has possible links.
# For example, if 3 of 4 links that were found are among 4 right ones, the rate is 1 − 6/8 = 0.25.
# *Taught in* [Alignment error rate](06_bahdanau_attention.ipynb#Alignment-error-rate).
#
# ### <a id="answer-mask"></a>answer mask
#
# In fine-tuning on questions and answers, the choice of the targets that count in the loss: the tokens of the answer and the `<eos>` after it.
# For example, the question *Where does Zeno Cole live ?* is read, but none of its words is a target.
# *Taught in* [Train on the answers only](21_from_gpt_to_assistant.ipynb#Train-on-the-answers-only).
#
# ### <a id="attention"></a>attention
#
# A weighted average of values, in which a query decides the weights by how well it fits each key.
# For example, a French word asks all English words, and the word that fits best adds most to the answer.
# Some texts call the average *attention pooling*.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [Ask for a kitten](01_queries_keys_values.ipynb#Query,-key-and-value:-ask-for-a-kitten).
#
# ### <a id="attention-knockout"></a>attention knockout
#
# An intervention that forbids attention: some queries may not attend to a key any more, whose weight goes to the other keys, and we see what the model says then.
# For example, if the pixels may not attend to *trousers*, two T-shirts may come out for *trousers | T-shirt*.
# A word that can be forbidden without harm was not needed on this route, even if it had a large weight.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [What a word needs](11_translating.ipynb#What-a-word-needs:-attention-weights-or-forbidding?), [Where it looks, and what it needs](15_vision_transformers.ipynb#Where-it-looks,-and-what-it-needs), [Forbid a word, and see](17_diffusion.ipynb#Forbid-a-word,-and-see:-attention-knockout), [In which layer?](18_real_weights.ipynb#In-which-layer?).
#
# ### <a id="attention-sink"></a>attention sink
#
# A token, often the first of a text, that gets much weight although its value adds little, because a softmax has to put its weight somewhere.
# An extra key whose value is zero is a remedy.
# For example, a head with nothing to do in a sentence may give nearly all its weight to the first token.
# *Taught in* [Who did what first](01_queries_keys_values_further.ipynb#Who-did-what-first), [It speaks](18_real_weights.ipynb#It-speaks), [Attention sinks](19_what_heads_learn_further.ipynb#Attention-sinks), [Windows and attention sinks](20_attention_at_length.ipynb#Windows-and-attention-sinks).
#
# ### <a id="attention-weights"></a>attention weights
#
# The nonnegative numbers, one for each key, that sum to 1 and say how much of each value enters the answer.
# For example, with the weights 0.6, 0.2 and 0.2, the values 5, 20 and 0 give the answer 7.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [Ask for a kitten](01_queries_keys_values.ipynb#Query,-key-and-value:-ask-for-a-kitten), [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights:-softmax).
#
# ### <a id="autoencoder"></a>autoencoder
#
# A network that is asked for its own input, after it has squeezed the input through something smaller or after a part of it was spoiled.
# For example, a picture of 784 pixels becomes 32 numbers, from which a second network draws the picture again.
# *Taught in* [Before masks: the autoencoder](14_bert_and_transfer_further.ipynb#Before-masks:-the-autoencoder).
#
# ### <a id="average-pooling"></a>average pooling
#
# The plain mean of all values, whatever the query asks for.
# For example, the values 2, 3 and 7 give the answer 4 to every query.
# *Taught in* [Hard and soft look-ups](01_queries_keys_values.ipynb#Hard-and-soft-look-ups:-what-can-be-learned?), [Weighted averages: near points count more](02_kernel_regression.ipynb#Weighted-averages:-near-points-count-more).

# %% [markdown]
# ## B
#
# ### <a id="backpropagation-through-time"></a>backpropagation through time
#
# The way to compute the gradient of a recurrent network: from its last step back to the first, through the state of each step.
# For example, the loss at the last word reaches the embedding of the first word through every state in between.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads:-RNN-and-GRU).
#
# ### <a id="bag-of-words"></a>bag of words
#
# A description of a text that counts its words and forgets their order.
# For example, *milk drinks cold cat* and *cold cat drinks milk* have the same bag of words.
# *Taught in* [Any order: permutation equivariance](07_self_attention.ipynb#Any-order:-permutation-equivariance), [Fifty labels: fine-tuning](14_bert_and_transfer.ipynb#Fifty-labels:-fine-tuning).
#
# ### <a id="bandwidth"></a>bandwidth
#
# The width of a kernel, which says how far from the query a key still counts.
# For example, with a Gaussian kernel of width 1, a key at distance 1 counts 0.61 and a key at distance 3 only 0.01.
# *Taught in* [The width decides: bias and variance](02_kernel_regression.ipynb#The-width-decides:-bias-and-variance).
#
# ### <a id="baseline"></a>baseline
#
# A simple method that a model has to beat before we believe in it.
# It gets the same data and is tuned as carefully as the model.
# For example, where nine of ten pictures show a boot, whoever always says *boot* has an accuracy of 0.9.
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop), [Weighted averages: near points count more](02_kernel_regression.ipynb#Weighted-averages:-near-points-count-more), [A form to begin with](D_capstone.ipynb#A-form-to-begin-with).
#
# ### <a id="batch"></a>batch
#
# A group of examples that a model works on at once, along the first axis of a tensor.
# A step of training follows the mean gradient of one batch.
# For example, 64 sentences of 10 tokens are a batch of shape (64, 10).
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop), [From strings to batches](05_sequence_to_sequence.ipynb#From-strings-to-batches:-tokens,-padding,-a-shifted-target).
#
# ### <a id="beam-search"></a>beam search
#
# A way of decoding that keeps a few of the most probable beginnings at each step, not only one.
# For example, a beam of two goes on from *she* and from *it*, and may find that the better sentence begins with *it*.
# *Taught in* [The best sentence: beam search](11_translating.ipynb#The-best-sentence:-beam-search).
#
# ### <a id="bilateral-filter"></a>bilateral filter
#
# A filter that replaces each pixel by an average of the pixels that are near to it *and* have a similar value.
# For example, it smooths the noise in the sky and on a wall, but keeps the edge between them.
# *Taught in* [Filters as attention](16_attention_between_pixels.ipynb#Filters-as-attention).
#
# ### <a id="binding"></a>binding
#
# The ability of a network to know which features belong together, and not only which features there are.
# For example, a network that counts knows that a picture has a red and a blue symbol, and one that binds knows that the circle is the red one.
# *Taught in* [Counting or binding](16_attention_between_pixels.ipynb#Counting-or-binding).
#
# ### <a id="bits-per-character"></a>bits per character
#
# The loss of a language model for each character of a text, in bits, so models with different tokens can be compared.
# For example, a loss of 2 nats for each token of four characters is 2 / 4 / 0.693 = 0.72 bits per character.
# *Taught in* [Bits per character](13_gpt_further.ipynb#Bits-per-character).
#
# ### <a id="bleu"></a>BLEU
#
# A score for translations: the geometric mean of the shares of their n-grams that the reference also has, times a penalty for translations that are too short.
# For example, *il est mouillé .* for *il est calme .* has 3 of 4 words right and 1 of 3 pairs, so BLEU with words and pairs is $\sqrt{3/4 \cdot 1/3} = 0.5$.
# *Taught in* [BLEU, written out](05_sequence_to_sequence_further.ipynb#BLEU,-written-out).
#
# ### <a id="bm25"></a>BM25
#
# A score for search that counts how often the words of a question stand in a text, gives more to rare words, and less to long texts.
# For example, of the words in *rotary positions of queries*, *rotary* counts most, and *of* hardly at all.
# *Taught in* [Search](18_real_weights_further.ipynb#Search:-counting-is-hard-to-beat).
#
# ### <a id="boundary-bias"></a>boundary bias
#
# The systematic error of a weighted average near the edge of the data, where all neighbors are on one side.
# For example, on a rising line, the average at the left edge comes out too high, because all its neighbors are higher.
# *Taught in* [Wrong without noise: edges, slopes, bends](02_kernel_regression_further.ipynb#Wrong-without-noise:-edges,-slopes,-bends).
#
# ### <a id="broadcasting"></a>broadcasting
#
# The rule that combines tensors of different shapes without a loop: an axis of length 1 is used again along the other tensor's axis.
# For example, a column of shape (3, 1) minus a row of shape (1, 3) is a table of shape (3, 3).
# *Taught in* [Broadcasting](B_pytorch.ipynb#Broadcasting).
#
# ### <a id="byte-pair-encoding"></a>byte-pair encoding
#
# A method that finds subwords by merging the most frequent pair of neighbors, again and again.
# For example, *a* and *y* become *ay*, and later *pl* and *ay* become *play*.
# *Taught in* [Pieces of words](13_gpt_further.ipynb#Pieces-of-words).

# %% [markdown]
# ## C
#
# ### <a id="causal-mask"></a>causal mask
#
# A mask that lets position i attend to the positions 0 to i only, so no prediction sees what it has to predict.
# For example, the third token of a text may attend to the first three tokens, but not to the fourth.
# *Taught in* [Padding and causal masks: True = may attend](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend).
#
# ### <a id="channel"></a>channel
#
# One of the numbers that each pixel of a picture has, such as its red, or one of the features that a network computes for it.
# For example, a color photograph has 3 channels, and inside a network it may have 64.
# *Taught in* [Convolutions](B_pytorch.ipynb#Convolutions:-kernel,-stride,-channels), [Patches](15_vision_transformers.ipynb#Patches), [Pixels as tokens](16_attention_between_pixels.ipynb#Pixels-as-tokens).
#
# ### <a id="chat-template"></a>chat template
#
# The form in which a chat model was trained to read a talk: marks that say who speaks, and where a turn ends.
# For example, SmolLM2 reads `<|im_start|>user`, then *What is the capital of Japan?*, `<|im_end|>` and `<|im_start|>assistant`, and goes on with the answer.
# *Taught in* [It speaks](18_real_weights.ipynb#It-speaks).
#
# ### <a id="checkpoint"></a>checkpoint
#
# A file with everything that a training needs to go on as if it had not stopped.
# For example, besides the parameters it holds the state of the optimizer and of the random numbers.
# *Taught in* [Checkpoints](12_training_transformers.ipynb#Checkpoints:-back-to-the-best-file), [What a checkpoint must hold](12_training_transformers_further.ipynb#What-a-checkpoint-must-hold).
#
# ### <a id="circuit"></a>circuit
#
# Parts of a network that pass something on to each other and together do one thing.
# For example, a head notes at each position which token came before it, and a head of a later layer looks for this note.
# *Taught in* [A circuit by hand](19_what_heads_learn.ipynb#A-circuit-by-hand).
#
# ### <a id="class-token"></a>class token
#
# A learned token, put in front of the patches of a vision transformer, whose last state the classifier reads.
# For example, with 16 patches the encoder reads 17 tokens, and the classifier reads only the first of its 17 outputs.
# *Taught in* [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class), [Where it looks, and what it needs](15_vision_transformers.ipynb#Where-it-looks,-and-what-it-needs).
#
# ### <a id="classifier"></a>classifier
#
# A network that chooses one of several classes, by a probability for each of them.
# For example, a classifier of clothes gives a picture 0.7 for *shirt* and 0.2 for *coat*.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy).
#
# ### <a id="classifier-free-guidance"></a>classifier-free guidance
#
# A way to make a generated picture fit its description better: the network predicts the noise with and without the description, and we go further in the direction of the difference.
# For example, with a scale of 4, we go four times as far as the step from the prediction without the description to the prediction with it.
# *Taught in* [Guidance](17_diffusion_further.ipynb#Guidance).
#
# ### <a id="composition"></a>composition of heads
#
# What a head of an earlier layer writes becomes part of the queries (**Q-composition**), the keys (**K-composition**) or the values (**V-composition**) of a head of a later layer.
# For example, an induction head finds its position by keys that hold the notes of a previous-token head, which is K-composition.
# *Taught in* [A circuit by hand](19_what_heads_learn.ipynb#A-circuit-by-hand), [Two maps from the weights](19_what_heads_learn.ipynb#Two-maps-from-the-weights).
#
# ### <a id="confusion-matrix"></a>confusion matrix
#
# A table that counts how often each true class was taken for each class.
# For example, 200 shirts are a row of this table, and 30 of them may be in the column *T-shirt*.
# *Taught in* [CIFAR-10, with right and with wrong patches](15_vision_transformers_further.ipynb#CIFAR-10,-with-right-and-with-wrong-patches).
#
# ### <a id="consistency"></a>consistency
#
# The property of a method whose error tends to 0 as the number of points grows.
# For example, kernel regression is consistent if its width shrinks, but slowly enough for its window to fill with points.
# *Taught in* [More points: consistent, and how fast](02_kernel_regression_further.ipynb#More-points:-consistent,-and-how-fast).
#
# ### <a id="control"></a>control
#
# A second trial in which all is the same except for the one thing that is asked about.
# For example, if forbidding one link does harm, forbidding another link is the control that says whether just any missing link would.
# *Taught in* [Is the vector too small?](05_sequence_to_sequence.ipynb#Is-the-vector-too-small?), [Ask with what was found](07_self_attention.ipynb#Ask-with-what-was-found), [What broke? An intervention with a control](12_training_transformers.ipynb#What-broke?-An-intervention-with-a-control), [A control is a tuned control](G_controls.ipynb).
#
# ### <a id="convex-weights"></a>convex weights
#
# Weights that are nonnegative and sum to 1, so the answer lies in the convex hull of the values.
# For example, if no value is larger than 65, no convex weights can give 70.
# *Taught in* [A table of words](01_queries_keys_values.ipynb#A-table-of-words:-embeddings-as-keys).
#
# ### <a id="convolution"></a>convolution
#
# A layer that slides a small window over a text or a picture and computes the same weighted sum at each position.
# The weights of the window are its **kernel**, and the **[stride](#stride)** says how far the window moves on.
# For example, a convolution of width 3 computes each pixel from the 3 × 3 pixels around it.
# *Taught in* [Convolutions](B_pytorch.ipynb#Convolutions:-kernel,-stride,-channels), [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention), [Against a convolutional network](15_vision_transformers_further.ipynb#Against-a-convolutional-network).
#
# ### <a id="cross-attention"></a>cross-attention
#
# Attention whose queries come from one sequence, while keys and values come from another.
# For example, in a translator French words ask and English words answer, and in an image generator pixels ask and the words of a caption answer.
# *Taught in* [The two blocks](10_transformer.ipynb#The-two-blocks), [Words for pixels: cross-attention](17_diffusion.ipynb#Words-for-pixels:-cross-attention).
#
# ### <a id="cross-entropy"></a>cross-entropy
#
# The loss of every classifier and language model here: minus the logarithm of the probability that the model gives to what is right, on average.
# For example, a probability of ½ costs log 2 ≈ 0.69, and a probability of 1 costs nothing.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy).
#
# ### <a id="curse-of-dimension"></a>curse of dimension
#
# The fact that in many dimensions hardly any key is near a query, so a kernel average needs many more data for the same error.
# For example, a tenth of each axis is a tenth of a line, but only a millionth of a cube in six dimensions.
# *Taught in* [More dimensions](02_kernel_regression_further.ipynb#More-dimensions).

# %% [markdown]
# ## D
#
# ### <a id="ddim"></a>DDIM
#
# A way to draw with a diffusion model that adds no fresh noise, so the first noise decides the whole picture.
# For example, the same first noise gives the same picture each time, whereas DDPM, which adds fresh noise at each step, gives another one.
# *Taught in* [Fewer steps: DDIM](17_diffusion_further.ipynb#Fewer-steps:-DDIM).
#
# ### <a id="decoder-only-model"></a>decoder-only model
#
# A Transformer without encoder and cross-attention, which reads one text with a causal mask and predicts each next token.
# For example, GPT goes on with a text that you begin.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class).
#
# ### <a id="denoising-diffusion"></a>denoising diffusion
#
# A way to generate pictures: a network learns to predict the noise in a picture, and then draws a new one by removing noise step by step.
# For example, our garments appear out of pure noise in at most 200 steps.
# *Taught in* [What it costs](16_attention_between_pixels_further.ipynb#What-it-costs), [Into the noise: forward diffusion](17_diffusion.ipynb#Into-the-noise:-forward-diffusion), [Back, one guess at a time: the sampler](17_diffusion.ipynb#Back,-one-guess-at-a-time:-the-sampler).
#
# ### <a id="diffusion-transformer"></a>diffusion transformer
#
# A Transformer, DiT for short, that takes the place of the U-Net in a diffusion model and reads patches of the noisy picture or latent.
# The step and the class enter by the scale and shift of its layer norms (adaLN-Zero).
# For example, a latent of 64 × 64 becomes 1,024 patches of 2 × 2.
# *Taught in* [Text, latents and transformers](17_diffusion_further.ipynb#Text,-latents-and-transformers).
#
# ### <a id="dilated-convolution"></a>dilated convolution
#
# A convolution with gaps in its window, which sees further with the same number of weights.
# For example, with a dilation of 3, a window of three words reads the words i, i − 3 and i − 6.
# *Taught in* [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention).
#
# ### <a id="direct-preference-optimization"></a>direct preference optimization
#
# A training on pairs of answers, DPO: a logistic regression of which answer is preferred.
# Its logit, the **margin**, is β times the difference of their log-ratios to a reference model.
# For example, the loss is ln 2 as long as the model is still the reference.
# *Taught in* [Which of two answers is better?](21_from_gpt_to_assistant.ipynb#Which-of-two-answers-is-better?).
#
# ### <a id="dot-product"></a>dot product
#
# The sum of the products of two vectors, entry by entry.
# It grows with the lengths of both and with their agreement in direction.
# For example, (1, 2) · (3, 1) = 3 + 2 = 5.
# *Taught in* [A dot product is a match](03_scoring_functions.ipynb#A-dot-product-is-a-match), [Products of matrices](B_pytorch.ipynb#Products-of-matrices).
#
# ### <a id="dropout"></a>dropout
#
# A layer that sets a random share of its numbers to 0 during training, and makes the others larger to keep their mean.
# For example, with a share of ½, about half of the numbers become 0 and the others are doubled.
# *Taught in* [Modules and parameters](B_pytorch.ipynb#Modules-and-parameters), [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual).

# %% [markdown]
# ## E
#
# ### <a id="effective-sample-size"></a>effective sample size
#
# The number of equally weighted keys that would average out noise as well as the given weights do: 1 / Σα².
# For example, the weights ½, ¼ and ¼ count like 2.7 equal ones.
# *Taught in* [Learn in which directions to look](02_kernel_regression_further.ipynb#Learn-in-which-directions-to-look).
#
# ### <a id="embedding"></a>embedding
#
# The vector of a token: a row of a matrix that training changes, so tokens that are used alike come to be near each other.
# For example, 1,000 words with 64 numbers each are a matrix of shape (1000, 64), and word 7 is its row 7.
# *Taught in* [Padding gets weight](04_masks.ipynb#Padding-gets-weight), [Dot products of embeddings](07_self_attention.ipynb#Dot-products-of-embeddings), [From strings to batches](05_sequence_to_sequence.ipynb#From-strings-to-batches:-tokens,-padding,-a-shifted-target), [The whole model](10_transformer.ipynb#The-whole-model).
#
# ### <a id="empty-row"></a>empty row
#
# A row of a mask in which a query may attend to no key.
# The course gives it the weights 0.
# For example, if a sentence is padded in front, its first position may see only itself, which is padding.
# *Taught in* [Padding and causal masks: True = may attend](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend), [A query with nothing to attend to](04_masks.ipynb#A-query-with-nothing-to-attend-to).
#
# ### <a id="encoder-and-decoder"></a>encoder and decoder
#
# Two networks that work together: one reads the source, and the other writes the target from what was read.
# For example, the encoder reads *She has a red car.*, and the decoder writes *elle a une voiture rouge*.
# *Taught in* [Encoder and decoder](05_sequence_to_sequence.ipynb#Encoder-and-decoder), [The whole on one page](10_transformer.ipynb#The-whole-on-one-page).
#
# ### <a id="entropy"></a>entropy
#
# A measure of how evenly weights are spread: 0 for one-hot weights, log₂ n bits for n equal ones.
# For example, the weights ½, ¼ and ¼ have an entropy of 1.5 bits.
# *Taught in* [How spread out are the weights? Entropy](03_scoring_functions_further.ipynb#How-spread-out-are-the-weights?-Entropy).
#
# ### <a id="epoch"></a>epoch
#
# One pass through the whole training set.
# For example, with 6,400 sentences in batches of 64, an epoch has 100 steps.
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop), [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss).
#
# ### <a id="exposure-bias"></a>exposure bias
#
# The gap that teacher forcing leaves: a decoder has never learned to go on from a mistake of its own.
# For example, after one wrong word a translator may repeat itself until the end.
# *Taught in* [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss).

# %% [markdown]
# ## F
#
# ### <a id="fine-tuning"></a>fine-tuning
#
# Further training of a pretrained network on a task of its own, for which a few labels are often enough.
# For example, a network that has read many sentences learns from fifty labels to notice exchanged words.
# *Taught in* [Fifty labels: fine-tuning](14_bert_and_transfer.ipynb#Fifty-labels:-fine-tuning).
#
# ### <a id="fixed-context"></a>fixed context
#
# One vector of fixed size that has to hold the whole source sentence.
# For example, a sentence of five words and a sentence of fifty words both have to fit into 64 numbers.
# *Taught in* [Encoder and decoder](05_sequence_to_sequence.ipynb#Encoder-and-decoder), [Is the vector too small?](05_sequence_to_sequence.ipynb#Is-the-vector-too-small?).
#
# ### <a id="flash-attention"></a>FlashAttention
#
# Exact attention that goes through the keys in blocks and keeps the scores of a block in a GPU's small, fast memory, so that the matrix of all scores is never stored.
# For example, for 16,384 tokens this matrix would have 268 million entries in each head.
# *Taught in* [Attention in blocks](20_attention_at_length.ipynb#Online-softmax:-attention-in-blocks).
#
# ### <a id="flow-matching"></a>flow matching
#
# A kind of diffusion with a straight line from picture to noise, on which the network learns the velocity.
# For example, halfway along the line a pixel is ½ picture and ½ noise, and the velocity is noise minus picture.
# *Taught in* [Flow matching on one screen](17_diffusion_further.ipynb#Flow-matching-on-one-screen).
#
# ### <a id="forbidding"></a>forbidding
#
# The word of this course for [attention knockout](#attention-knockout).
# For example, `with cu.intervene(model) as change: change.forbid(…)` sets the weights of a key to 0.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator).

# %% [markdown]
# ## G
#
# ### <a id="gated-recurrent-unit"></a>gated recurrent unit
#
# A recurrent network, GRU for short, whose gates decide for each feature how much of the old state is kept.
# For example, a gate of 0.75 keeps three quarters of the old number and takes a quarter of the new one.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads:-RNN-and-GRU).
#
# ### <a id="gelu"></a>GELU
#
# A smooth relative of the ReLU: x times the probability that a standard normal number is smaller than x.
# For example, GELU(2) is 1.95, and GELU(−2) is −0.05, where the ReLU has 0.
# Left of 0 its curve dips a little below 0, so a small negative number still has a gradient.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class), [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
x = torch.linspace(-4, 4, 161)
fig, ax = cu.subplots(
    width=4.6, height=2.0,
    alt="Two curves from −4 to 4. ReLU is 0 up to 0 and then rises with slope 1. GELU is nearly the same far from 0, but dips to −0.17 near −0.75 and rises smoothly.",
)  # fmt: skip
ax.plot(x, x.relu(), "--", color=cu.COLORS["line"], label="ReLU")
ax.plot(x, torch.nn.functional.gelu(x), color=cu.COLORS["key"], label="GELU")
ax.set(xlabel="x")
ax.legend()
fig

# %% [markdown]
# ### <a id="gguf"></a>GGUF
#
# A format of files that hold a model's weights, mostly [quantized](#quantization), together with its sizes and its tokenizer.
# For example, SmolLM2 has 134,515,008 parameters, and its file of four-bit numbers has 98 megabytes.
# *Taught in* [Four-bit numbers](18_real_weights.ipynb#Four-bit-numbers).
#
# ### <a id="gradient"></a>gradient
#
# The derivatives of one number, mostly a loss, with respect to each entry of a tensor.
# For example, the gradient of $w_0^2 + w_1^2$ at (1, 3) is (2, 6).
# *Taught in* [Gradients](B_pytorch.ipynb#Gradients).
#
# ### <a id="gradient-clipping"></a>gradient clipping
#
# A rule that shortens a gradient to a given length if it is longer.
# For example, with a limit of 1, the gradient (3, 4), whose length is 5, becomes (0.6, 0.8).
# *Taught in* [Small first steps](12_training_transformers.ipynb#Small-first-steps:-Adam-and-warm-up), [What clipping protects](12_training_transformers_further.ipynb#What-clipping-protects).
#
# ### <a id="greedy-decoding"></a>greedy decoding
#
# A way of decoding that takes the most probable token at each step, and never goes back.
# For example, it begins with *she* if *she* is the most probable word, even if the best sentence begins with *it*.
# *Taught in* [Greedy decoding](05_sequence_to_sequence.ipynb#Greedy-decoding:-letters,-then-words), [The best sentence: beam search](11_translating.ipynb#The-best-sentence:-beam-search).
#
# ### <a id="group-norm"></a>group norm
#
# A layer that brings groups of channels to mean 0 and variance 1 over all pixels of a picture, so each pixel changes all others a little.
# For example, 64 channels in 8 groups have 8 means and 8 variances for each picture.
# *Taught in* [The block](16_attention_between_pixels.ipynb#The-block), [What one changed pixel changes](16_attention_between_pixels_further.ipynb#What-one-changed-pixel-changes).
#
# ### <a id="grouped-query-attention"></a>grouped-query attention
#
# Attention in which several query heads share one head of keys and values, which makes the cache smaller.
# For example, if 8 query heads share 2 heads of keys and values, the cache has a quarter of its size.
# *Taught in* [What do more heads cost?](08_multi_head_attention.ipynb#What-do-more-heads-cost?), [What came after](14_bert_and_transfer_further.ipynb#What-came-after), [Three parts replaced](18_real_weights.ipynb#Three-parts-replaced), [What the KV cache costs](20_attention_at_length.ipynb#What-the-KV-cache-costs).

# %% [markdown]
# ## H
#
# ### <a id="head"></a>head
#
# One of several attentions that work at the same time, each with its own projection of queries, keys and values.
# The last layer of a model is called its output layer here.
# For example, one head may attend to the word before, and another to the subject of the sentence.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [From one head to two, and to h](08_multi_head_attention.ipynb#From-one-head-to-two,-and-to-h), [Ablating heads](08_multi_head_attention.ipynb#Ablating-heads).
#
# ### <a id="heatmap"></a>heatmap
#
# A picture of a table of numbers in shades, with a bar that says which shade is which number.
# For example, a heatmap of attention weights is darkest where a query puts most of its weight.
# *Taught in* [Read a map of weights, and use it](00_start_here.ipynb#Read-a-map-of-weights,-and-use-it).
#
# ### <a id="hidden-layer"></a>hidden layer
#
# A layer between the first and the last of a network, whose numbers are neither inputs nor answers.
# Each of its numbers is a **hidden unit**.
# For example, `nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))` has one hidden layer with 3 units.
# *Taught in* [Layers](B_pytorch.ipynb#Layers:-linear,-ReLU,-hidden).
#
# ### <a id="hyperparameter"></a>hyperparameter
#
# A number that we choose before the training, which the training itself does not change.
# We choose it by the [validation set](#validation-set).
# For example, the learning rate, the batch size and the number of layers are hyperparameters.
# *Taught in* [Overfitting](B_pytorch.ipynb#Overfitting:-training-and-validation-set).

# %% [markdown]
# ## I
#
# ### <a id="in-context-learning"></a>in-context learning
#
# The use of what is in the input, without any change of the parameters.
# For example, a model that has read *the dax barked* writes *barked* after a second *the dax*.
# *Taught in* [What the heads look at](13_gpt_further.ipynb#What-the-heads-look-at), [Copying: induction heads](18_real_weights.ipynb#Copying:-induction-heads).
#
# ### <a id="induction-head"></a>induction head
#
# A head that looks for an earlier position of the current token and reads the token after it, so the model can copy what it has never seen.
# For example, in *Zorbek Quillamy sat down. Then Zorbek*, it looks from the second *Zorbek* at *Quillamy*.
# *Taught in* [What the heads look at](13_gpt_further.ipynb#What-the-heads-look-at), [Copying: induction heads](18_real_weights.ipynb#Copying:-induction-heads), [A circuit by hand](19_what_heads_learn.ipynb#A-circuit-by-hand).
#
# ### <a id="inductive-bias"></a>inductive bias
#
# An assumption about the data that is built into a model before it has seen any.
# For example, a convolution assumes that neighboring pixels belong together, which a vision transformer has to learn.
# *Taught in* [Against a convolutional network](15_vision_transformers_further.ipynb#Against-a-convolutional-network).
#
# ### <a id="intervention"></a>intervention
#
# A change inside a network, made by us, after which we watch what it does: the only way to learn what a part is needed for.
# For example, we put the encoder of a good training into a bad one, and see whether the bad one learns now.
# *Taught in* [Ablate it, and see](10_transformer.ipynb#Ablate-it,-and-see), [What broke? An intervention with a control](12_training_transformers.ipynb#What-broke?-An-intervention-with-a-control).

# %% [markdown]
# ## K
#
# ### <a id="kernel"></a>kernel
#
# A function that turns the distance between query and key into an unnormalized weight.
# In a [convolution](#convolution) the kernel is the window of weights, and in a notebook it is the Python that runs your cells.
# For example, the Gaussian kernel of width 1 turns the distances 0, 1 and 2 into 1, 0.61 and 0.14.
# *Taught in* [Weighted averages: near points count more](02_kernel_regression.ipynb#Weighted-averages:-near-points-count-more), [Five kernels and one number](02_kernel_regression_further.ipynb#Five-kernels-and-one-number).
#
# ### <a id="kl-divergence"></a>KL divergence
#
# The **Kullback–Leibler divergence** of a model from a reference: the mean of ln π(y) − ln π₀(y) over the texts y that the model writes.
# For example, it is 0 as long as both give every text the same probability, and positive otherwise.
# *Taught in* [Which of two answers is better?](21_from_gpt_to_assistant.ipynb#Which-of-two-answers-is-better?).
#
# ### <a id="kv-cache"></a>KV cache
#
# The keys and values of all tokens so far, kept while decoding, so each step computes them for one new token only.
# For example, after 100 tokens, the next one needs one new query, key and value, and finds the other 100 keys and values in the cache.
# *Taught in* [The cache](11_translating_further.ipynb#The-cache), [Writing](13_gpt.ipynb#Writing).

# %% [markdown]
# ## L
#
# ### <a id="label-smoothing"></a>label smoothing
#
# A training target that gives a little probability to every token, not only to the right one.
# For example, with a smoothing of 0.1 and 1,000 tokens, the right one gets 0.9001 and every other one 0.0001.
# *Taught in* [Smoothed labels](12_training_transformers_further.ipynb#Smoothed-labels).
#
# ### <a id="language-model"></a>language model
#
# A model that gives a probability to each possible next token of a text.
# For example, after *she has a red* it may give 0.2 to *car* and hardly anything to *sleeps*.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy), [It writes](07_self_attention.ipynb#It-writes:-a-causal-mask), [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="latent"></a>latent
#
# A smaller version of a picture, made by an autoencoder, in which a diffusion model has fewer pixels to work on.
# For example, a picture of 512 × 512 pixels has a latent of 64 × 64.
# *Taught in* [Text, latents and transformers](17_diffusion_further.ipynb#Text,-latents-and-transformers).
#
# ### <a id="layer"></a>layer
#
# A step of a network that turns vectors into vectors, mostly with parameters of its own.
# For example, `nn.Linear(2, 3)` is a layer that turns two numbers into three.
# *Taught in* [Layers](B_pytorch.ipynb#Layers:-linear,-ReLU,-hidden).
#
# ### <a id="layer-norm"></a>layer norm
#
# A layer that brings the features of each token to mean 0 and variance 1, and then scales and shifts them.
# For example, (1, 2, 3, 4) becomes (−1.34, −0.45, 0.45, 1.34).
# *Taught in* [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual).
#
# ### <a id="learning-rate"></a>learning rate
#
# The number that says how far a step of training moves along the gradient.
# We choose it by the validation loss, for each model anew.
# For example, in plain gradient descent, a slope of 2 and a rate of 0.1 move a parameter by 0.2.
# *Taught in* [Gradients](B_pytorch.ipynb#Gradients), [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss), [A loss that falls](12_training_transformers.ipynb#A-loss-that-falls:-three-baselines).
#
# ### <a id="leave-one-out-error"></a>leave-one-out error
#
# The error at each point when it is predicted from all others, which makes it a fair measure of one width.
# If you choose the best of many widths by it, its value there is a little too small.
# For example, with forty points we predict forty times, each time from the other 39.
# *Taught in* [Leave one out: choosing and learning the width](02_kernel_regression.ipynb#Leave-one-out:-choosing-and-learning-the-width).
#
# ### <a id="length-penalty"></a>length penalty
#
# A divisor that grows with the length of a sentence, because otherwise a search prefers short ones.
# For example, for 7 tokens the log-probability is divided by $((5+7)/6)^{0.6} = 1.52$.
# *Taught in* [The best sentence: beam search](11_translating.ipynb#The-best-sentence:-beam-search).
#
# ### <a id="linear-attention"></a>linear attention
#
# Attention without a softmax: each weight is a dot product of features, so the sums over keys can be computed once for all queries.
# For example, for twice as many tokens it costs twice as much, where a softmax costs four times as much.
# *Taught in* [Linear attention, in short](03_scoring_functions_further.ipynb#Linear-attention,-in-short), [Linear attention](20_attention_at_length.ipynb#Linear-attention:-a-memory-that-doesn't-grow).
#
# ### <a id="logit-lens"></a>logit lens
#
# The output layer, read with a vector of an earlier layer, as if that were the last one.
# For example, after layer 22 of 30 it names no capital yet, which may mean that the capital isn't there, or that the lens can't read it.
# *Taught in* [The logit lens](18_real_weights_further.ipynb#The-logit-lens:-a-warning).
#
# ### <a id="log-sum-exp"></a>log-sum-exp
#
# The logarithm of the sum of the exponentials of some scores.
# Each weight of their softmax is $e^{a - L}$, where $a$ is the score and $L$ the log-sum-exp.
# For example, the scores 0 and $\ln 3$ have the log-sum-exp $\ln(1 + 3) = \ln 4$.
# *Taught in* [Attention in blocks](20_attention_at_length.ipynb#Online-softmax:-attention-in-blocks).
#
# ### <a id="logits"></a>logits
#
# The numbers that a model gives to the classes, or to the tokens of its vocabulary, before the softmax turns them into probabilities.
# For example, the logits 2, 0 and 0 become the probabilities 0.79, 0.11 and 0.11.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy).
#
# ### <a id="lora"></a>LoRA
#
# A cheap kind of fine-tuning, low-rank adaptation: the matrix of a layer stays frozen, and the product of two narrow matrices is trained and added to it.
# For example, for 64 inputs and 256 outputs, rank 4 trains 1,280 numbers instead of 16,384.
# *Taught in* [A little is enough: LoRA](14_bert_and_transfer.ipynb#A-little-is-enough:-LoRA).
#
# ### <a id="loss"></a>loss
#
# The number that says how wrong a model is, and that training makes smaller.
# For classifiers and language models it is the [cross-entropy](#cross-entropy), which is ln 10 = 2.3 for a guess among ten.
# For example, for the values 1 and 1, the predictions 1 and 3 have a mean squared error of (0 + 4) / 2 = 2.
# *Taught in* [Softmax and the cross-entropy](B_pytorch.ipynb#Softmax-and-the-cross-entropy), [A training loop](B_pytorch.ipynb#A-training-loop), [A loss that falls](12_training_transformers.ipynb#A-loss-that-falls:-three-baselines).
#
# ### <a id="low-rank"></a>low rank
#
# The property of a matrix that is the product of two narrow ones.
# Its rank is the smallest number of columns and rows that these two can have.
# For example, a table in which each row is a multiple of (1, 2, 3) has rank 1.
# *Taught in* [What do more heads cost?](08_multi_head_attention.ipynb#What-do-more-heads-cost?).
#
# ### <a id="lstm"></a>LSTM
#
# A recurrent network, long short-term memory, that carries a second state, which gates erase and write.
# The GRU is its simpler relative.
# For example, a gate near 1 keeps a number of this second state over many words.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads:-RNN-and-GRU).

# %% [markdown]
# ## M
#
# ### <a id="mask"></a>mask
#
# A table of True and False that says which query may attend to which key.
# True means here that it may.
# For example, the row True, True, False lets a query attend to the first two of three keys.
# *Taught in* [Padding and causal masks: True = may attend](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend), [A mask is a hint](09_positions_further.ipynb#A-mask-is-a-hint).
#
# ### <a id="masked-softmax"></a>masked softmax
#
# A softmax over the permitted keys only, which gives zeros to a row without any.
# For example, the scores 0, 0 and 5 become the weights ½, ½ and 0 if the last key is forbidden.
# *Taught in* [A query with nothing to attend to](04_masks.ipynb#A-query-with-nothing-to-attend-to).
#
# ### <a id="masked-token-pretraining"></a>masked-token pretraining
#
# A kind of training in which some tokens are hidden, and the model restores them from both sides.
# For example, in *she wants to ___ a novel*, it learns that *read* fits well and *eat* doesn't.
# *Taught in* [Hide and restore: masked tokens](14_bert_and_transfer.ipynb#Hide-and-restore:-masked-tokens), [Against counting](14_bert_and_transfer.ipynb#Against-counting).
#
# ### <a id="memory-bound"></a>memory-bound
#
# Said of a computation that waits for numbers to come from memory, and not for the arithmetic.
# For example, a language model that writes one token fetches all of its parameters for it, and does only a few operations with each.
# *Taught in* [What the KV cache costs](20_attention_at_length.ipynb#What-the-KV-cache-costs).
#
# ### <a id="mixed-precision"></a>mixed precision
#
# A training in which products are computed with 16 bits, while the weights are kept with 32.
# For example, an update of 0.001 to a weight of 1 would be lost in bfloat16, whose next number after 1 is 1.0078.
# *Taught in* [Sixteen bits](12_training_transformers_further.ipynb#Sixteen-bits).
#
# ### <a id="multi-head-attention"></a>multi-head attention
#
# A layer of several heads, whose outputs are joined and mixed by one more matrix.
# For example, 8 heads with 8 numbers each are joined to 64 numbers for each token.
# *Taught in* [From one head to two, and to h](08_multi_head_attention.ipynb#From-one-head-to-two,-and-to-h), [Split and join](08_multi_head_attention.ipynb#Split-and-join:-one-product-and-two-transposes), [The output projection adds the heads](08_multi_head_attention.ipynb#The-output-projection-adds-the-heads).

# %% [markdown]
# ## N
#
# ### <a id="multi-query-attention"></a>multi-query attention
#
# Attention in which all heads of queries share one head of keys and values.
# It is [grouped-query attention](#grouped-query-attention) with a single group.
# For example, with nine heads of queries the cache has a ninth of its size.
# *Taught in* [What the KV cache costs](20_attention_at_length.ipynb#What-the-KV-cache-costs).
#
# ### <a id="n-gram"></a>n-gram
#
# A run of n neighboring tokens.
# A model of n-grams counts them, and predicts each token from the n − 1 before it.
# For example, a bigram model expects *car* after *red*, and a trigram model after *a red*.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="nadaraya-watson-estimator"></a>Nadaraya–Watson estimator
#
# The formula of kernel regression: the average of the values, weighted by the kernel of the distance to their keys.
# For example, with keys 0, 1 and 3, values 2, 3 and 7 and a Gaussian kernel of width 1, its answer at 1 is 2.96.
# *Taught in* [Kernel regression is attention](02_kernel_regression.ipynb#Kernel-regression-is-attention).
#
# ### <a id="nat"></a>nat
#
# The unit of a loss or an entropy that is computed with natural logarithms.
# For example, a probability of ½ costs 0.69 nats, which is one bit.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="network"></a>network
#
# Layers one after the other, with a nonlinearity such as the [ReLU](#relu) between them, whose parameters are trained together.
# For example, two linear layers with a ReLU between them can draw a closed line around a group of points.
# *Taught in* [Layers](B_pytorch.ipynb#Layers:-linear,-ReLU,-hidden).
#
# ### <a id="next-token-likelihood"></a>next-token likelihood
#
# The probability of a text, as the product of each token's probability given the tokens before it.
# For example, if *she* has the probability 0.5 and then *sleeps* 0.2, the text *she sleeps* has 0.1.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="non-local-means"></a>non-local means
#
# A filter that replaces each pixel by an average of all pixels of the picture, weighted by how alike the patches around them are.
# For example, a window of a house is cleaned with the help of all windows that look like it.
# *Taught in* [Filters as attention](16_attention_between_pixels.ipynb#Filters-as-attention).

# %% [markdown]
# ## O
#
# ### <a id="one-hot"></a>one-hot
#
# A row of numbers with a 1 at one position and 0 at all others.
# For example, class 2 of four classes, counted from 0, is (0, 0, 1, 0).
# *Taught in* [Four numbers](04_masks.ipynb#Four-numbers), [Classes](02_kernel_regression_further.ipynb#Classes).
#
# ### <a id="online-softmax"></a>online softmax
#
# A softmax that is computed while the scores come in, block by block, with the largest score so far and two sums that are rescaled when a larger one comes.
# For example, if the largest score rises from 2 to 4, both sums are multiplied by $e^{-2}$.
# *Taught in* [Attention in blocks](20_attention_at_length.ipynb#Online-softmax:-attention-in-blocks), [Attention in pieces](04_masks_further.ipynb#Attention-in-pieces).
#
# ### <a id="optimizer"></a>optimizer
#
# The rule that turns gradients into steps of the parameters.
# For example, plain gradient descent subtracts the gradient times the learning rate, and [Adam](#adam) also divides it by its usual size.
# *Taught in* [A training loop](B_pytorch.ipynb#A-training-loop).
#
# ### <a id="over-optimization"></a>over-optimization
#
# A number, such as a reward, is pushed up until it no longer measures what we wanted.
# For example, the margin of DPO rises while the answers fall apart, because the margin is only a difference.
# *Taught in* [Which of two answers is better?](21_from_gpt_to_assistant.ipynb#Which-of-two-answers-is-better?).
#
# ### <a id="overfitting"></a>overfitting
#
# The failure of a model that fits the chance and the errors of its training set: it does well on this set and worse on new data.
# We see it where the validation loss turns up while the training loss goes on falling.
# For example, a training loss of 0.01 and a validation loss of 2 are a sign of it.
# *Taught in* [Overfitting](B_pytorch.ipynb#Overfitting:-training-and-validation-set), [What twenty sentences show](12_training_transformers_further.ipynb#What-twenty-sentences-show).

# %% [markdown]
# ## P
#
# ### <a id="ov-map"></a>OV map
#
# The logits that a head adds for each token that it looks at, computed from its weights $W_V W_O$ alone.
# For example, a head that copies has the largest entry of each row on the diagonal.
# *Taught in* [Two maps from the weights](19_what_heads_learn.ipynb#Two-maps-from-the-weights).
#
# ### <a id="padding-mask"></a>padding mask
#
# A mask that forbids the positions by which the shorter sentences of a batch were filled up.
# For example, if a batch is five tokens wide, a sentence of three tokens has the mask True, True, True, False, False.
# *Taught in* [Padding and causal masks: True = may attend](04_masks.ipynb#Padding-and-causal-masks:-True-=-may-attend).
#
# ### <a id="parameter"></a>parameter
#
# A tensor of a model that training changes.
# For example, `nn.Linear(4, 3)` has two parameters, a matrix with 12 numbers and a bias with 3.
# *Taught in* [Modules and parameters](B_pytorch.ipynb#Modules-and-parameters).
#
# ### <a id="patch"></a>patch
#
# A rectangle of pixels that a vision transformer reads as one token.
# For example, an image of 28 × 28 pixels has 16 patches of 7 × 7.
# *Taught in* [Patches](15_vision_transformers.ipynb#Patches), [The right shape and the wrong patches](15_vision_transformers_further.ipynb#The-right-shape-and-the-wrong-patches).
#
# ### <a id="path-length"></a>path length
#
# The number of steps that a signal takes from one position to another.
# For example, from the first word to the tenth it is 1 in self-attention, and 9 in a recurrent network.
# *Taught in* [Convolution, recurrence, attention](07_self_attention_further.ipynb#Convolution,-recurrence,-attention).
#
# ### <a id="permutation-equivariance"></a>permutation equivariance
#
# The property of a layer whose outputs are permuted in the same way as its inputs, and otherwise stay the same.
# For example, without positions, a layer of self-attention gives the first and the second word each other's outputs if we exchange them.
# *Taught in* [Any order: permutation equivariance](07_self_attention.ipynb#Any-order:-permutation-equivariance).
#
# ### <a id="perplexity"></a>perplexity
#
# The exponential of the mean loss per token: a model that chooses evenly among P tokens has the perplexity P.
# For example, a loss of 2.08 is a perplexity of 8.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="position-interpolation"></a>position interpolation
#
# A cure for texts that are longer than those of the training: all positions are divided by one factor, so they stay in the trained range.
# NTK-aware scaling slows a pair of rotary positions the more, the slower it is, and YaRN slows only the slow pairs and sharpens the softmax.
# For example, a model that was trained on 64 tokens reads 256 of them at the positions 0, ¼, ½ and so on.
# *Taught in* [Context extension](09_positions.ipynb#Context-extension:-slow-down-the-slow-pairs).
#
# ### <a id="position-wise-network"></a>position-wise network
#
# Two linear layers with a nonlinearity between them, applied to each token with the same weights.
# It is also called feed-forward network or MLP.
# For example, 64 features become 256, and then 64 again.
# *Taught in* [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual).
#
# ### <a id="post-norm-and-pre-norm"></a>post-norm and pre-norm
#
# The two places where a Transformer can normalize: after each sum, as in 2017, or before each sublayer.
# For example, post-norm computes norm(x + f(x)), and pre-norm x + f(norm(x)).
# *Taught in* [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual), [Two orders of norm](12_training_transformers_further.ipynb#Two-orders-of-norm).
#
# ### <a id="previous-token-head"></a>previous-token head
#
# A head that puts most of its weight on the token before, and so brings to each position which token came before it.
# For example, at *g* in *k g* it brings *after k*.
# *Taught in* [Copying: induction heads](18_real_weights.ipynb#Copying:-induction-heads), [A circuit by hand](19_what_heads_learn.ipynb#A-circuit-by-hand).
#
# ### <a id="probe"></a>probe
#
# A small model, mostly a linear one, that is trained to read something from the hidden vectors of a network that stays as it is.
# If it succeeds, the vectors hold what was asked for, although the network need not use it.
# For example, a probe reads from the state after *car* whether the French word is feminine.
# *Taught in* [A little is enough: LoRA](14_bert_and_transfer.ipynb#A-little-is-enough:-LoRA).
#
# ### <a id="prompt"></a>prompt
#
# The beginning of a text that we give to a language model, which then writes on.
# For example, after the prompt *The capital of France is*, a language model that has read much writes *Paris*.
# *Taught in* [Writing](13_gpt.ipynb#Writing), [Fifty labels](14_bert_and_transfer.ipynb#Fifty-labels:-fine-tuning), [It speaks](18_real_weights.ipynb#It-speaks).

# %% [markdown]
# ## Q
#
# ### <a id="qk-map"></a>QK map
#
# The scores of a head between all tokens, computed from its weights $W_Q$ and $W_K$ alone, possibly after what an earlier head has written into the keys.
# For example, a large entry in row *k* and column *k* says: standing at *k*, look at a position after *k*.
# *Taught in* [Two maps from the weights](19_what_heads_learn.ipynb#Two-maps-from-the-weights).
#
# ### <a id="quantization"></a>quantization
#
# The rounding of numbers to a few steps, so each takes 4 or 8 bits instead of 32; each small block of weights has a step of its own.
# For example, with the least number −0.3 and the step 0.05, the number 0.12 is stored as 8 and read as 0.1.
# *Taught in* [Four-bit numbers](18_real_weights.ipynb#Four-bit-numbers).
#
# ### <a id="query-key-value"></a>query, key, value
#
# The three parts of a look-up: what we look for, what it is compared with, and what is handed back.
# For example, in a library your question is the query, the titles on the shelf are the keys, and the books are the values.
# *Taught in* [Read a map of weights, and use it](00_start_here.ipynb#Read-a-map-of-weights,-and-use-it), [Ask for a kitten](01_queries_keys_values.ipynb#Query,-key-and-value:-ask-for-a-kitten), [All words at once](07_self_attention.ipynb#All-words-at-once:-the-formula).

# %% [markdown]
# ## R
#
# ### <a id="receptive-field"></a>receptive field
#
# The pixels of the input that can change one output.
# For example, after one convolution of width 3 it is a square of 3 × 3 pixels, after three it is 7 × 7, and after m it is 2m + 1 on each side.
# *Taught in* [What one changed pixel changes](16_attention_between_pixels_further.ipynb#What-one-changed-pixel-changes).
#
# ### <a id="recurrent-network"></a>recurrent network
#
# A network that reads tokens one after the other, and carries a state from each to the next.
# For example, after *she has a*, its state is all that it knows of these three words.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads:-RNN-and-GRU).
#
# ### <a id="relative-positions"></a>relative positions
#
# Positions that enter the score, and depend only on the offset between key and query.
# Shaw's are learned vectors, T5's learned numbers, and ALiBi's a fixed slope.
# For example, with ALiBi, a key's score falls by the same amount with each word between the key and the query.
# *Taught in* [Longer texts](09_positions.ipynb#Longer-texts:-what-training-has-visited).
#
# ### <a id="relu"></a>ReLU
#
# A function that keeps positive numbers, and replaces negative ones by 0.
# For example, ReLU(3) is 3, and ReLU(−3) is 0.
# *Taught in* [Layers](B_pytorch.ipynb#Layers:-linear,-ReLU,-hidden), [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual).
#
# ### <a id="residual"></a>residual
#
# A connection that adds a sublayer's input to its output.
# It is also called residual connection, shortcut or skip connection.
# For example, if a sublayer gives 0, the token goes on unchanged.
# *Taught in* [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual).
#
# ### <a id="residual-stream"></a>residual stream
#
# A token's vector on its way through the layers: it begins as the embedding, and each sublayer adds its output to it.
# For example, after two blocks of two sublayers each, it is the sum of the embedding and four outputs.
# *Taught in* [Network, norm and residual](10_transformer.ipynb#Network,-norm-and-residual), [Two orders of norm](12_training_transformers_further.ipynb#Two-orders-of-norm), [GPT in one class](13_gpt.ipynb#GPT-in-one-class).
#
# ### <a id="rmsnorm"></a>RMSNorm
#
# A layer norm that only divides by the root of the mean square, and doesn't subtract the mean.
# For example, (3, 4) has the root mean square 3.54, and becomes (0.85, 1.13).
# *Taught in* [What came after](14_bert_and_transfer_further.ipynb#What-came-after), [Three parts replaced](18_real_weights.ipynb#Three-parts-replaced).
#
# ### <a id="rollout"></a>rollout
#
# A map of where information can have come from: the attention maps of all layers, multiplied, with the residual connection counted as attention to oneself.
# For example, if the class token looks at patch 3, and patch 3 has looked at patch 7, then patch 7 gets a share.
# *Taught in* [Attention rollout](15_vision_transformers_further.ipynb#Attention-rollout).
#
# ### <a id="rotary-positions"></a>rotary positions
#
# Positions, RoPE for short, that rotate queries and keys by angles proportional to their positions, so a score depends only on the offset between them.
# Their base θ sets the frequencies.
# For example, two words get the same score at positions 3 and 5 as at positions 13 and 15.
# *Taught in* [Rotary positions](09_positions.ipynb#Rotary-positions).

# %% [markdown]
# ## S
#
# ### <a id="saturation"></a>saturation
#
# The state of a softmax whose weights are so close to one-hot that its gradient vanishes.
# For example, scores of 20 and 0 give weights of 1 and 0.000000002, and no small step changes them.
# *Taught in* [When the gradient vanishes](01_queries_keys_values_further.ipynb#When-the-gradient-vanishes), [Additive scores and a matrix in between](03_scoring_functions_further.ipynb#Additive-scores-and-a-matrix-in-between).
#
# ### <a id="scaled-dot-product-attention"></a>scaled dot-product attention
#
# The attention of the Transformer: the values, averaged with the weights softmax(q·k / √d).
# For example, with d = 64, a dot product of 16 becomes a score of 2.
# *Taught in* [Why divide by √d?](03_scoring_functions.ipynb), [Scaled dot-product attention](03_scoring_functions.ipynb#Scaled-dot-product-attention), [Attention with a mask](04_masks.ipynb#Attention-with-a-mask).
#
# ### <a id="score"></a>score
#
# A number that says how well a query fits a key, before a softmax turns it into a weight.
# For example, the negative squared distance is a score, and the dot product is another.
# *Taught in* [The first slider](00_start_here.ipynb#The-first-slider), [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights:-softmax).
#
# ### <a id="search-error"></a>search error
#
# A mistake of decoding: by the number that the search ranks by, the right sentence is ahead of what was written, but the search has missed it.
# If the wrong sentence is ahead, it is a **model error**, and no better search can help.
# For example, a wider beam can repair search errors only.
# *Taught in* [Whose error?](11_translating.ipynb#Whose-error?).
#
# ### <a id="seed"></a>seed
#
# The number from which a generator of random numbers starts.
# For example, after `cu.seed_everything(1)`, `torch.randn(3)` gives the same three numbers each time.
# *Taught in* [Seeds and devices](B_pytorch.ipynb#Seeds-and-devices).
#
# ### <a id="self-attention"></a>self-attention
#
# Attention whose queries, keys and values all come from the same sequence.
# For example, in *she lost her key*, the word *her* may attend to *she*.
# *Taught in* [All words at once](07_self_attention.ipynb#All-words-at-once:-the-formula).
#
# ### <a id="self-supervision"></a>self-supervision
#
# Training without labels, because the data themselves say what is right.
# For example, a text says which word comes next, and a picture from which half of it was hidden says what was there.
# *Taught in* [Hide and restore: masked tokens](14_bert_and_transfer.ipynb#Hide-and-restore:-masked-tokens).
#
# ### <a id="sentence-encoder"></a>sentence encoder
#
# A network that makes one vector of a whole sentence, so that sentences with a similar meaning have a large cosine.
# For example, *She sold her car* and *Her car was sold* should lie nearer to each other than to *It is raining*.
# *Taught in* [Sentences as vectors](18_real_weights_further.ipynb#Sentences-as-vectors:-MiniLM).
#
# ### <a id="shift-invariance"></a>shift invariance
#
# The property of a softmax that the same number, added to all scores of a row, changes no weight.
# For example, the scores 1, 2 and 3 give the same weights as 101, 102 and 103.
# *Taught in* [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature).
#
# ### <a id="sinusoidal-positions"></a>sinusoidal positions
#
# Sines and cosines of a token's position, at geometrically falling frequencies, which are added to its embedding.
# They are the positional encoding of the first Transformer.
# For example, the first pair of numbers turns quickly from position to position, like a second hand, and the last pair slowly, like an hour hand.
# *Taught in* [Sinusoidal positions](09_positions.ipynb#Sinusoidal-positions), [A shift is a rotation](09_positions.ipynb#A-shift-is-a-rotation).
#
# ### <a id="smoothing"></a>smoothing
#
# A rule for models of n-grams that gives something to what was never counted, mostly by mixing in shorter n-grams.
# Modified **Kneser–Ney** smoothing is the best of the simple ones.
# For example, *red piano* gets a probability although it was never read, because *piano* has followed other words.
# *Taught in* [What counting knows](13_gpt.ipynb#What-counting-knows).
#
# ### <a id="softmax"></a>softmax
#
# A function that turns scores into weights: the exponential of each score, divided by the sum of all of them.
# For example, the scores 1, 0 and −1 become 0.67, 0.24 and 0.09.
# *Taught in* [The first slider](00_start_here.ipynb#The-first-slider), [From scores to weights](01_queries_keys_values.ipynb#From-scores-to-weights:-softmax), [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature).
#
# ### <a id="sparsemax"></a>sparsemax
#
# A relative of the softmax that can give a weight of exactly 0: it draws a line under the scores, and what is above the line is the weight.
# For example, of the scores 1, 0.6 and 0, a line at 0.3 leaves 0.7, 0.3 and 0.
# *Taught in* [Sparsemax](01_queries_keys_values_further.ipynb#Sparsemax:-weights-that-are-exactly-0).
#
# ### <a id="standard-error"></a>standard error
#
# A number that says how far a mean of a few cases may be from the true one by chance: the standard deviation, divided by the root of their number.
# For example, a standard deviation of 10 over 25 cases is a standard error of 2.
# *Taught in* [The network against the best kernels](02_kernel_regression_further.ipynb#The-network-against-the-best-kernels), [A form to begin with](D_capstone.ipynb#A-form-to-begin-with).
#
# ### <a id="stride"></a>stride
#
# The number of pixels, or of tokens, by which the window of a [convolution](#convolution) moves on.
# For example, with a stride of 2 a picture of 28 × 28 pixels becomes one of 14 × 14.
# *Taught in* [Convolutions](B_pytorch.ipynb#Convolutions:-kernel,-stride,-channels).
#
# ### <a id="subword"></a>subword
#
# A piece of a word, frequent enough to be a token of its own.
# For example, *played* may be read as *play* and *ed*.
# *Taught in* [Pieces of words](13_gpt_further.ipynb#Pieces-of-words).
#
# ### <a id="swiglu"></a>SwiGLU
#
# A position-wise network with a gate: half of its numbers say how much of the other half goes on.
# For example, where the gate is 0, nothing passes, whatever the other half says.
# *Taught in* [What came after](14_bert_and_transfer_further.ipynb#What-came-after), [Three parts replaced](18_real_weights.ipynb#Three-parts-replaced).
#
# ### <a id="system-prompt"></a>system prompt
#
# A text in front of a chat, which the user mostly doesn't see and which says how the model is to answer.
# For example, *You are a helpful assistant.*
# *Taught in* [What it makes up](18_real_weights.ipynb#What-it-makes-up), where the note says that the chapter's questions have none.

# %% [markdown]
# ## T
#
# ### <a id="teacher-forcing"></a>teacher forcing
#
# A way of training in which the decoder reads the true previous token, not its own prediction.
# For example, if it says *un* where *une* is right, its next input is *une* all the same.
# *Taught in* [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss), [The whole on one page](10_transformer.ipynb#The-whole-on-one-page).
#
# ### <a id="temperature"></a>temperature
#
# A number by which scores are divided before the softmax.
# A small one gives nearly all the weight to one key, and a large one spreads it evenly.
# For example, the scores 1 and 0 become 0.73 and 0.27, and 0.88 and 0.12 at the temperature ½.
# *Taught in* [Ask for a kitten](01_queries_keys_values.ipynb#Query,-key-and-value:-ask-for-a-kitten), [Only differences count, in units of the temperature](01_queries_keys_values.ipynb#Only-differences-count,-in-units-of-the-temperature), [Long queries, long keys](03_scoring_functions.ipynb#Long-queries,-long-keys).
#
# ### <a id="tensor"></a>tensor
#
# A table of numbers with any number of axes.
# For example, a batch of 8 color pictures is a tensor of shape (8, 3, 28, 28).
# *Taught in* [Tensors](B_pytorch.ipynb#Tensors).
#
# ### <a id="test-set"></a>test set
#
# Examples that are used neither for training nor for choosing anything, so the last number is measured on them, once.
# For example, a rate that was chosen by the validation set is judged on the test set.
# *Taught in* [Overfitting](B_pytorch.ipynb#Overfitting:-training-and-validation-set).
#
# ### <a id="token"></a>token
#
# A piece that a model reads as one: a word, a part of a word or a sign, and for a vision transformer a patch.
# For example, *She has a red car.* may be six tokens, five words and the full stop.
# *Taught in* [From strings to batches](05_sequence_to_sequence.ipynb#From-strings-to-batches:-tokens,-padding,-a-shifted-target), [Pieces of words](13_gpt_further.ipynb#Pieces-of-words).
#
# ### <a id="top-k-sampling"></a>top-k sampling
#
# A way of writing in which the next token is drawn from the k most probable ones.
# For example, with k = 1 it is greedy decoding.
# *Taught in* [Writing](13_gpt.ipynb#Writing).
#
# ### <a id="top-p-sampling"></a>top-p sampling
#
# A way of writing, also called nucleus sampling, in which the next token is drawn from the smallest set of best tokens whose probabilities sum to at least p.
# For example, with 0.6, 0.3 and 0.1, and p = 0.8, the first two tokens are left.
# *Taught in* [Writing](13_gpt.ipynb#Writing), [The nucleus](13_gpt_further.ipynb#The-nucleus).
#
# ### <a id="training-set"></a>training set
#
# The examples that a model is trained on.
# Its loss on them can be low because it has learned a rule, or because it [overfits](#overfitting).
# For example, of 10,000 sentences, 8,000 are the training set, and 1,000 each are the [validation set](#validation-set) and the [test set](#test-set).
# *Taught in* [Overfitting](B_pytorch.ipynb#Overfitting:-training-and-validation-set).
#
# ### <a id="transfer"></a>transfer
#
# The use of a network that was trained on one task, with much data, for another task with little.
# For example, a network that has read plain text needs only fifty labels to judge sentences.
# *Taught in* [Fifty labels: fine-tuning](14_bert_and_transfer.ipynb#Fifty-labels:-fine-tuning).
#
# ### <a id="transformer"></a>Transformer
#
# A network of blocks in which tokens first attend to each other, and are then changed one by one.
# The first one, of 2017, had an [encoder and a decoder](#encoder-and-decoder).
# For example, GPT is a Transformer that has only a decoder, and BERT is one that has only an encoder.
# *Taught in* [Ask a translator](00_start_here.ipynb#Ask-a-translator), [The whole on one page](10_transformer.ipynb#The-whole-on-one-page).

# %% [markdown]
# ## U
#
# ### <a id="u-net"></a>U-Net
#
# A convolutional network that goes down to coarser pictures and up again, and carries what it saw on each level across.
# For example, 28 × 28 pixels become 14 × 14, then 7 × 7, and then 28 × 28 again.
# *Taught in* [A U-Net that guesses the noise](17_diffusion.ipynb#A-U-Net-that-guesses-the-noise).

# %% [markdown]
# ## V
#
# ### <a id="validation-set"></a>validation set
#
# Examples that are not trained on, by which we choose [hyperparameters](#hyperparameter) and the moment to stop.
# What they chose is then measured on a [test set](#test-set).
# For example, of three learning rates we take the one with the smallest validation loss.
# *Taught in* [Overfitting](B_pytorch.ipynb#Overfitting:-training-and-validation-set), [Teacher forcing and the loss](05_sequence_to_sequence.ipynb#Training:-teacher-forcing-and-the-loss).
#
# ### <a id="vanishing-gradient"></a>vanishing gradient
#
# A gradient that shrinks at each step or layer on its way back, until little of it is left to learn from.
# For example, halved at each of twenty steps, a millionth of it arrives.
# *Taught in* [A network that reads](05_sequence_to_sequence.ipynb#A-network-that-reads:-RNN-and-GRU).
#
# ### <a id="vision-transformer"></a>vision transformer
#
# An encoder that reads the patches of an image as tokens, and is read out at the class token.
# For example, a picture of 28 × 28 pixels is a sentence of 16 patches.
# *Taught in* [The model in one class](15_vision_transformers.ipynb#The-model-in-one-class).
#
# ### <a id="vocabulary"></a>vocabulary
#
# The list of tokens that a model knows, each with its number.
# Any other token becomes `<unk>`.
# For example, a translator that has never read *little* reads `<unk>` in its place.
# *Taught in* [From strings to batches](05_sequence_to_sequence.ipynb#From-strings-to-batches:-tokens,-padding,-a-shifted-target).

# %% [markdown]
# ## W
#
# ### <a id="warm-up"></a>warm-up
#
# The first steps of a training, in which the learning rate rises before it falls.
# For example, it may rise from 0 to 0.006 over the first 50 steps.
# *Taught in* [Small first steps](12_training_transformers.ipynb#Small-first-steps:-Adam-and-warm-up).
#
# ### <a id="weight-decay"></a>weight decay
#
# A pull of each weight towards 0 in every step, besides the step along the gradient.
# For example, with a decay of 0.1 and a rate of 0.01, each step makes a weight smaller by a thousandth.
# *Taught in* [Adam with decoupled weight decay](12_training_transformers_further.ipynb#Adam-with-decoupled-weight-decay), [Training it](13_gpt.ipynb#Training-it).
#
# ### <a id="weight-tying"></a>weight tying
#
# The use of one matrix for two layers: the output layer of a language model is its embedding.
# For example, a vocabulary of 500 tokens with 64 numbers each saves 32,000 parameters.
# *Taught in* [GPT in one class](13_gpt.ipynb#GPT-in-one-class).

# %% [markdown]
# ## Z
#
# ### <a id="zero-shot"></a>zero-shot
#
# The use of a model for a task of which it has seen no example.
# For example, a GPT that was trained on text says which of two orders of a sentence is likelier.
# *Taught in* [Fifty labels](14_bert_and_transfer.ipynb#Fifty-labels:-fine-tuning).
