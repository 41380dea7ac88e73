"""The kernels of ``K`` on arrays of JAX: functions of the same names and arguments as those of
``numpy_kernels``, one file per family.

Arrays of JAX never change and share no memory: a view is a copy, and a kernel that writes returns
the new array. JAX is imported with the first of these files. Tensors do not live on devices yet:
what imports them are their tests (``make xla``).
"""
