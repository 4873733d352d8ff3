"""Training: the trainer, its losses and schedules, checkpoints, history and bar; taught in *Training transformers*."""
