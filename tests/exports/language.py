"""Exports language models to OpenVINO IR as optimum-intel does, with seeded random weights: nothing is downloaded.

    python tests/exports/language.py OUT_DIR [NAME...] [--format FORMAT...] [--tiny]

writes OUT_DIR/NAME_FORMAT/openvino_model.xml and .bin, stateful, for `llama_160m` and `qwen_05b` or the one named, in
each format of weights or those given. With --tiny these are small models of many architectures in OUT_DIR/NAME, a
decoder's or an encoder-decoder's files as the exporter names them. What it cannot export is named with its reason; for
some it wants an older transformers (5.0 or 4.57, with `pip install --target` and PYTHONPATH).

It needs torch, transformers, optimum-intel, nncf and openvino, in an environment of their own.
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nncf
import openvino as ov
import torch
import transformers as hf
from optimum.exporters.openvino import export_from_model
from torch import nn

hf.logging.set_verbosity_error()
logging.disable(logging.WARNING)

SEED = 20260401

FORMATS: dict[str, dict[str, Any] | None] = {
    "f16": None,
    "int8": {"mode": nncf.CompressWeightsMode.INT8_ASYM},
    "int4_g64": {"mode": nncf.CompressWeightsMode.INT4_ASYM, "group_size": 64},
    "int4_g128": {"mode": nncf.CompressWeightsMode.INT4_ASYM, "group_size": 128},
    "nf4": {"mode": nncf.CompressWeightsMode.NF4, "group_size": 64},
}
"""What nncf is asked for, by default as optimum asks: embeddings and the last layer stay at 8 bits."""

LARGE: dict[str, Callable[[], hf.PretrainedConfig]] = {
    "llama_160m": lambda: hf.LlamaConfig(
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        vocab_size=32000,
        max_position_embeddings=8192,
    ),
    "qwen_05b": lambda: hf.Qwen2Config(
        hidden_size=896,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        vocab_size=151936,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    ),
}


SIZES: dict[str, Any] = {"vocab_size": 256, "max_position_embeddings": 256}
DECODER = SIZES | {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
GROUPED = DECODER | {"num_key_value_heads": 2}
HEADED = GROUPED | {"head_dim": 16}
EXPERTS = GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}
GPT = {"vocab_size": 256, "n_positions": 256, "n_embd": 64, "n_layer": 2, "n_head": 4}
BART = SIZES | {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "scale_embedding": False,
}
LAYER_TYPES = ["sliding_attention", "full_attention"]
T5 = {"vocab_size": 256, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4}
MAMBA = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "time_step_rank": 4}

TINY: dict[str, Callable[[], hf.PretrainedConfig]] = {
    "arcee": lambda: hf.ArceeConfig(**GROUPED),
    "bart": lambda: hf.BartConfig(**BART),
    "biogpt": lambda: hf.BioGptConfig(**DECODER),
    "blenderbot": lambda: hf.BlenderbotConfig(**BART),
    "bloom": lambda: hf.BloomConfig(vocab_size=256, hidden_size=64, n_layer=2, n_head=4),
    "codegen": lambda: hf.CodeGenConfig(**GPT, rotary_dim=8),
    "cohere": lambda: hf.CohereConfig(**GROUPED),
    "cohere2": lambda: hf.Cohere2Config(**GROUPED, sliding_window=8),
    "deepseek_v2": lambda: hf.DeepseekV2Config(
        **DECODER,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        n_group=1,
        topk_group=1,
    ),
    "exaone4": lambda: hf.Exaone4Config(**GROUPED, sliding_window=8),
    "falcon": lambda: hf.FalconConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, new_decoder_architecture=False
    ),
    "falcon_alibi": lambda: hf.FalconConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, alibi=True
    ),
    "falcon_mamba": lambda: hf.FalconMambaConfig(**MAMBA),
    "gemma": lambda: hf.GemmaConfig(**HEADED),
    "gemma2": lambda: hf.Gemma2Config(**HEADED, sliding_window=8),
    "gemma3": lambda: hf.Gemma3TextConfig(**HEADED, sliding_window=8, layer_types=LAYER_TYPES),
    "glm": lambda: hf.GlmConfig(**HEADED, pad_token_id=0),
    "glm4": lambda: hf.Glm4Config(**HEADED, pad_token_id=0),
    "gpt2": lambda: hf.GPT2Config(**GPT),
    "gpt_bigcode": lambda: hf.GPTBigCodeConfig(**GPT),
    "gpt_neo": lambda: hf.GPTNeoConfig(
        vocab_size=256,
        max_position_embeddings=256,
        hidden_size=64,
        num_layers=2,
        num_heads=4,
        window_size=8,
        attention_types=[[["global", "local"], 1]],
    ),
    "gpt_neox": lambda: hf.GPTNeoXConfig(**DECODER),
    "gpt_oss": lambda: hf.GptOssConfig(**EXPERTS, head_dim=16, sliding_window=8),
    "gptj": lambda: hf.GPTJConfig(**GPT, rotary_dim=8),
    "granite": lambda: hf.GraniteConfig(**GROUPED),
    "granitemoe": lambda: hf.GraniteMoeConfig(**EXPERTS),
    "granitemoehybrid": lambda: hf.GraniteMoeHybridConfig(
        **EXPERTS,
        layer_types=["mamba", "attention"],
        mamba_n_heads=4,
        mamba_d_head=32,
        mamba_d_state=8,
        mamba_chunk_size=16,
    ),
    "hunyuan": lambda: hf.HunYuanDenseV1Config(**HEADED),
    "lfm2": lambda: hf.Lfm2Config(**GROUPED, layer_types=["conv", "full_attention"]),
    "llama": lambda: hf.LlamaConfig(**GROUPED),
    "longt5": lambda: hf.LongT5Config(**T5, local_radius=8),
    "m2m_100": lambda: hf.M2M100Config(**BART),
    "mamba": lambda: hf.MambaConfig(**MAMBA),
    "marian": lambda: hf.MarianConfig(**BART, pad_token_id=0),
    "mbart": lambda: hf.MBartConfig(**BART),
    "mistral": lambda: hf.MistralConfig(**GROUPED, sliding_window=8),
    "mixtral": lambda: hf.MixtralConfig(**EXPERTS),
    "mpt": lambda: hf.MptConfig(vocab_size=256, d_model=64, n_layers=2, n_heads=4, expansion_ratio=2, max_seq_len=256),
    "mt5": lambda: hf.MT5Config(**T5),
    "olmo": lambda: hf.OlmoConfig(**GROUPED),
    "olmo2": lambda: hf.Olmo2Config(**GROUPED),
    "opt": lambda: hf.OPTConfig(
        **SIZES, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=96, word_embed_proj_dim=64
    ),
    "pegasus": lambda: hf.PegasusConfig(**BART),
    "persimmon": lambda: hf.PersimmonConfig(**DECODER),
    "phi": lambda: hf.PhiConfig(**DECODER),
    "phi3": lambda: hf.Phi3Config(**GROUPED, pad_token_id=0, sliding_window=8),
    "phimoe": lambda: hf.PhimoeConfig(**EXPERTS),
    "qwen2": lambda: hf.Qwen2Config(**GROUPED),
    "qwen2_moe": lambda: hf.Qwen2MoeConfig(
        **GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32
    ),
    "qwen3": lambda: hf.Qwen3Config(**HEADED),
    "qwen3_moe": lambda: hf.Qwen3MoeConfig(
        **HEADED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True
    ),
    "qwen3_next": lambda: hf.Qwen3NextConfig(
        **HEADED,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
    ),
    "smollm3": lambda: hf.SmolLM3Config(**GROUPED, pad_token_id=0),
    "stablelm": lambda: hf.StableLmConfig(**GROUPED),
    "starcoder2": lambda: hf.Starcoder2Config(**GROUPED, sliding_window=8),
    "t5": lambda: hf.T5Config(**T5),
    "whisper": lambda: hf.WhisperConfig(**BART, pad_token_id=0),
    "xglm": lambda: hf.XGLMConfig(**SIZES, d_model=64, num_layers=2, attention_heads=4, ffn_dim=96),
    "zamba2": lambda: hf.Zamba2Config(
        **HEADED,
        layers_block_type=["mamba", "hybrid"],
        mamba_d_state=8,
        n_mamba_heads=4,
        chunk_size=16,
        num_mem_blocks=1,
        mamba_ngroups=1,
        attention_head_dim=16,
    ),
}
"""Two layers of each; windows are shorter than what tests/exports/parity.py generates."""

EXPLICIT = ("gpt2", "llama", "mamba", "t5")
"""These are also written with their caches as inputs and outputs, as NAME_explicit."""


@torch.no_grad()
def varied(model: nn.Module) -> nn.Module:
    """`model` with weights that tell tokens apart.

    Layers keep the size of what they are given, so that they outweigh the embeddings they are added to; biases of 0
    and scales of 1, which hide mistakes, are moved.
    """
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            part.weight.normal_(std=2 / math.sqrt(part.embedding_dim))
        elif isinstance(part, (nn.Linear, hf.pytorch_utils.Conv1D)):
            inputs = part.in_features if isinstance(part, nn.Linear) else part.weight.shape[0]
            part.weight.normal_(std=1 / math.sqrt(inputs))
    for parameter in model.parameters():
        if parameter.requires_grad and (parameter == parameter.flatten()[0]).all():
            parameter += 0.1 * torch.randn_like(parameter)
    model.tie_weights()
    return model.eval()


def export(model: nn.Module, task: str, folder: Path, stateful: bool = True) -> None:
    """What optimum-intel writes for `model`, with its weights as they are, `stateful` or with explicit caches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracer, about sizes that become constants
        export_from_model(model, folder, task=task, stateful=stateful)


def compress(source: Path, target: Path, format: str) -> None:
    """The model at `source` with the weights of `format`, as `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    model = ov.Core().read_model(source)
    asked = FORMATS[format]
    if asked is not None:
        model = nncf.compress_weights(model, **asked)
    ov.save_model(model, target, compress_to_fp16=asked is None)


def export_large(name: str, formats: list[str], out: Path) -> None:
    torch.manual_seed(SEED)
    model = varied(hf.AutoModelForCausalLM.from_config(LARGE[name]()))
    with tempfile.TemporaryDirectory(dir=out) as folder:
        export(model, "text-generation-with-past", Path(folder))
        del model
        gc.collect()
        for format in formats:
            print(f"{name}_{format}", flush=True)
            compress(Path(folder) / "openvino_model.xml", out / f"{name}_{format}" / "openvino_model.xml", format)


def export_tiny(name: str, out: Path) -> str:
    """What became of it: the files written, or why there are none."""
    for explicit in (False, True) if name in EXPLICIT else (False,):
        torch.manual_seed(SEED)
        folder = out / f"{name}_explicit" if explicit else out / name
        try:
            config = TINY[name]()
            if name == "whisper":
                model, task = hf.WhisperForConditionalGeneration(config), "automatic-speech-recognition-with-past"
            elif config.is_encoder_decoder:
                model, task = hf.AutoModelForSeq2SeqLM.from_config(config), "text2text-generation-with-past"
            else:
                model, task = hf.AutoModelForCausalLM.from_config(config), "text-generation-with-past"
            export(varied(model), task, folder, stateful=not explicit)
        except Exception as error:  # whatever three libraries raise
            shutil.rmtree(folder, ignore_errors=True)
            return f"skipped: {type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return " ".join(sorted(path.stem for path in (out / name).glob("*.xml")))


def main() -> None:
    parser = argparse.ArgumentParser(description="Export language models to OpenVINO IR.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LARGE)}; all by default")
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=list(FORMATS), help="all by default")
    parser.add_argument("--tiny", action="store_true", help=f"small models of {', '.join(TINY)}")
    arguments = parser.parse_args()
    known = TINY if arguments.tiny else LARGE
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.tiny:
        for name in arguments.names or TINY:
            print(f"{name:18} {export_tiny(name, arguments.out)}", flush=True)
        return
    for name in arguments.names or LARGE:
        export_large(name, arguments.format, arguments.out)


if __name__ == "__main__":
    main()
