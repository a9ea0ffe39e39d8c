"""The dependence of every value of a step on the samples of its batch.

It is a proof, op by op, that the slices train the same as the whole batch, or a list of the ops at
which the proof fails.
"""
