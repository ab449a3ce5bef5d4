"""The Triton kernels: the backend ``'triton'``, for GPUs. Its contract is :mod:`graphgym_lcat.kernels.triton.backend`.

Only the modules whose names end in ``_kernels`` are compiled by Triton, and nothing imports Triton before a kernel is needed.
"""
