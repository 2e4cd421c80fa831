"""The engine on numpy alone: fast kernels that write into memory they are given, over slices and threads."""
