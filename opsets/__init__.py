"""The op library: one module per category of OpenVINO's operation specification."""

# in the order in which they are loaded until the op of a layer is found: what most models need comes first
CATEGORIES = (
    "infrastructure",  # parameters, constants, results, loops, state
    "matrix",  # products of matrices
    "arithmetic",  # sums, products, elementary functions
    "activation",  # non-linear functions, element by element
    "shape",  # other shapes for the same elements
    "movement",  # elements put in other places
    "reduction",  # axes folded into one element
    "normalization",  # statistics taken out of the data
    "convolution",  # a kernel slid over spatial axes
    "sequence",  # recurrent cells, attention, one-hot
    "type",  # other element types
    "comparison",  # equal, less, not a number
    "generation",  # tensors made from parameters: ranges
    "bitwise",  # and, or, not and shifts of bits
    "condition",  # If, Select
    "pooling",  # windows reduced to one element
    "quantization",  # values snapped to a grid
    "logical",  # and, or, not
    "sparse",  # embedding tables and sparse matrices
    "image",  # resampling
    "sort",  # order, the best of boxes
    "detection",  # features cut out of regions, boxes proposed and decoded
    "signals",  # Fourier transforms
)
