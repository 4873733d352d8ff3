"""Models, each a page: `recurrent` (*Bahdanau attention*) and `transformer` (*The Transformer*).

Every translator has the same three doors: `forward(source, source_lens, target)` gives logits for
training, `start(source, source_lens)` encodes once, `step(tokens, state)` gives the logits of the
next token while decoding.
"""
