"""Makes nets for images that neither `export.py` nor `kinds.py` has: fifty families of timm, with seeded random
weights; nothing is downloaded.

    python tests/exports/images.py FOLDER [NAME...]

writes FOLDER/NAME/model.xml, model.bin and inputs.npz for those named or for all. What cannot be made is named with its
reason. `tests/bench/run.py --models FOLDER` measures them: they show what is slow that nobody has looked at.

It needs torch, timm and openvino.
"""

from __future__ import annotations

import sys

import numpy as np
import timm
import torch
from export import SEED, varied
from kinds import main
from kinds_parts import Kind, Made, exported

NAMES = """
    cait_xxs24_224 coat_lite_tiny convmixer_768_32 crossvit_9_240 davit_tiny deit3_small_patch16_224 densenet121 dla34
    dpn68 edgenext_x_small efficientformer_l1 efficientformerv2_s0 eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf
    ghostnet_100 gmlp_s16_224 hgnetv2_b0 hiera_tiny_224 hrnet_w18_small inception_v3 levit_128s mambaout_femto
    maxvit_nano_rw_256 mixnet_s mnasnet_100 mobilenetv4_conv_small mobileone_s0 mobilevit_s mobilevitv2_050
    nextvit_small poolformer_s12 pvt_v2_b0 regnetx_008 regnety_008 repvgg_a0 repvit_m0_9 res2net50_14w_8s resmlp_12_224
    resnest14d selecsls42b sequencer2d_s skresnet18 starnet_s1 swinv2_tiny_window8_256 tiny_vit_5m_224
    tnt_s_legacy_patch16_224 twins_svt_small vgg11 vit_tiny_patch16_224 volo_d1_224 xcit_nano_12_p16_224
"""
"""What timm calls them."""


def image_net(name: str) -> Kind:
    def made(rng: np.random.Generator) -> Made:
        torch.manual_seed(SEED)
        module = timm.create_model(name)
        with torch.no_grad():
            varied(module)
        image = rng.standard_normal((1, *module.default_cfg["input_size"])).astype(np.float32)
        return exported(module, {"image": image})

    return made


if __name__ == "__main__":
    sys.exit(main({name: image_net(name) for name in NAMES.split()}, "Make nets for images."))
