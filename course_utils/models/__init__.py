"""Models, each a page: `recurrent` (chapter 04) and `transformer` (chapter 07).

Every translator has the same three doors: `forward(source, source_lens, target)` gives logits for
training, `start(source, source_lens)` encodes once, `step(tokens, state)` gives the logits of the
next token while decoding.
"""
