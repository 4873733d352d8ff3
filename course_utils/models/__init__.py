"""Models, a page each: `recurrent`, `transformer`, `language`, `vision`, `diffusion`, and `noise`, which trains it.

Every translator has the same three doors: `forward(source, source_lens, target)` gives logits for training,
`start(source, source_lens)` encodes once, `step(tokens, state)` gives the logits of the next token while decoding.
A `GPT` has `start()` and `step` as well.
"""
