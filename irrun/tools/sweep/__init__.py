"""Many models on many inputs: tasks by content, workers that may crash, rows that last. Schedulers are others' work."""
