"""The op library: one module per category of OpenVINO's operation specification."""

TYPES = {
    # parameters, constants, results, loops, state
    "infrastructure": """
        Assign Constant Loop Parameter ReadValue Result TensorIterator
    """,
    # products of matrices
    "matrix": """
        Einsum GroupedMatMul Inverse MatMul
    """,
    # sums, products, elementary functions
    "arithmetic": """
        Abs Acos Acosh Add Asin Asinh Atan Atan2 Atanh Ceiling Cos Cosh CumSum Divide Erf ErfInv Floor FloorMod Log
        Maximum Minimum Mod Multiply Negative Power Round SegmentMax Sign Sin Sinh Sqrt SquaredDifference
        Subtract Tan Tanh
    """,
    # non-linear functions, element by element
    "activation": """
        Clamp Elu Exp Gelu HSigmoid HSwish HardSigmoid Identity LogSoftmax Mish PReLU ReLU Selu Sigmoid SoftMax
        SoftPlus SoftSign Swish
    """,
    # other shapes for the same elements
    "shape": """
        Reshape ShapeOf Squeeze Unsqueeze
    """,
    # elements put in other places
    "movement": """
        BatchToSpace Broadcast Col2Im Concat DepthToSpace ExtractImagePatches Gather GatherElements GatherND
        GatherTree Pad Reverse ReverseSequence Roll ScatterElementsUpdate ScatterNDUpdate ScatterUpdate
        ShuffleChannels Slice SliceScatter SpaceToBatch SpaceToDepth Split StridedSlice Tile Transpose Unique
        VariadicSplit
    """,
    # axes folded into one element
    "reduction": """
        ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    """,
    # statistics taken out of the data
    "normalization": """
        BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2
    """,
    # a kernel slid over spatial axes
    "convolution": """
        BinaryConvolution Convolution ConvolutionBackpropData DeformableConvolution GroupConvolution
        GroupConvolutionBackpropData
    """,
    # recurrent cells, attention, one-hot
    "sequence": """
        CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss GRUCell GRUSequence LSTMCell LSTMSequence OneHot RNNCell
        RNNSequence ScaledDotProductAttention
    """,
    # other element types
    "type": """
        Convert ConvertLike ConvertPromoteTypes StringTensorPack StringTensorUnpack
    """,
    # equal, less, not a number
    "comparison": """
        Equal Greater GreaterEqual IsFinite IsInf IsNaN Less LessEqual NotEqual
    """,
    # tensors made from parameters: ranges
    "generation": """
        Eye Multinomial RandomUniform Range
    """,
    # and, or, not and shifts of bits
    "bitwise": """
        BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor
    """,
    # If, Select, counts and places
    "condition": """
        Bincount Bucketize If NonZero Select
    """,
    # windows reduced to one element
    "pooling": """
        AdaptiveAvgPool AdaptiveMaxPool AvgPool MaxPool
    """,
    # values snapped to a grid
    "quantization": """
        FakeConvert FakeQuantize
    """,
    # and, or, not
    "logical": """
        LogicalAnd LogicalNot LogicalOr LogicalXor Xor
    """,
    # embedding tables and sparse matrices
    "sparse": """
        EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum
        SparseFillEmptyRows
    """,
    # resampling
    "image": """
        BGRtoNV12 GridSample I420toBGR I420toRGB Interpolate NV12toBGR NV12toRGB RGBtoNV12
    """,
    # order, the best of boxes
    "sort": """
        ExperimentalDetectronTopKROIs MatrixNms MulticlassNms NMSRotated NonMaxSuppression SearchSorted TopK
    """,
    # features cut out of regions, boxes proposed and decoded
    "detection": """
        DeformablePSROIPooling DetectionOutput ExperimentalDetectronDetectionOutput
        ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator
        ExperimentalDetectronROIFeatureExtractor GenerateProposals PSROIPooling PriorBox PriorBoxClustered
        Proposal ROIAlign ROIAlignRotated ROIPooling RegionYolo ReorgYolo
    """,
    # Fourier transforms
    "signals": """
        DFT IDFT IRDFT ISTFT RDFT STFT
    """,
}
"""The types of the ops in each module, by which the one is found that a layer needs."""
