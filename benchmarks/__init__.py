"""Side-by-side timings against peers: `python -m benchmarks.run`.

A topic is a module here with a dictionary ROWS: name of a row → function from `timing.Settings` to a
`timing.Row`. `run.TOPICS` lists the topics, `peers.PEERS` the packages they compare with.
"""
