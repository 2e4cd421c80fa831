"""The op library: one module per category of OpenVINO's operation specification."""

CATEGORIES = (
    "activation",  # non-linear functions, element by element
    "arithmetic",  # sums, products, elementary functions
    "bitwise",  # and, or, not and shifts of bits
    "comparison",  # equal, less, not a number
    "condition",  # If, Select
    "convolution",  # a kernel slid over spatial axes
    "detection",  # features cut out of regions, boxes proposed and decoded
    "generation",  # tensors made from parameters: ranges
    "image",  # resampling
    "infrastructure",  # parameters, constants, results, loops, state
    "logical",  # and, or, not
    "matrix",  # products of matrices
    "movement",  # elements put in other places
    "normalization",  # statistics taken out of the data
    "pooling",  # windows reduced to one element
    "quantization",  # values snapped to a grid
    "reduction",  # axes folded into one element
    "sequence",  # recurrent cells, attention, one-hot
    "shape",  # other shapes for the same elements
    "signals",  # Fourier transforms
    "sort",  # order, the best of boxes
    "sparse",  # embedding tables and sparse matrices
    "type",  # other element types
)
