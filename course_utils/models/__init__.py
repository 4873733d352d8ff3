"""Models: translators (`recurrent`, `transformer`), `language`, `vision`, and `diffusion` with its `noise`.

Every translator has the same three methods: `forward(source, source_lens, target)` gives the logits for training,
`start(source, source_lens)` encodes the source, and `step(tokens, state)` gives the logits of the next token while
decoding. A `GPT` has `start()` and `step` as well.
"""
