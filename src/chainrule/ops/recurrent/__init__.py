"""Recurrent layers over a whole sequence: one primitive for one layer in one direction.

The product of the input with its weights is one product for all steps and stands before the
primitive; what is left of the loop over time is one product of the state per step. An ordinary
backward pass runs one kernel back through time. Where a derivative is differentiated again, or in
forward mode, the same recursion is written in operations: all local slopes at once, since the
states of all steps are known, then a loop over time that only multiplies. The rules of the simple
network and of the LSTM are given the product of the state with its weights (``Product``): a matrix
product, or a convolution in ``ops/recurrent/conv.py``. The gates are the third dimension.

L is the number of steps, N the batch, H the size of the state, S that of the output (H, or that of
its projection). ``mask`` (L, N) is False where a sequence has ended: there the state is held.
"""
