#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/FAMILY/ and FAMILY_*.safetensors for roberta, xlm_roberta and distilbert: small encoders of
random parameters, and what PyTorch's eager attention in float32 says about them.

    python make_small_encoder_golden.py

Needs torch, transformers, safetensors, numpy. FAMILY/ holds config.json and model.safetensors as transformers saves
them. Each FAMILY_*.safetensors holds ids [seq], weights [layers, heads, seq, seq] and hidden [seq, d_model]. In the
text "padded" of the RoBERTa kind the padding token stands before, between and behind others.
"""
import pathlib

import numpy
import torch
import transformers
from safetensors.numpy import save_file

SEED = 20263
SPREAD = 0.2  # of the parameters: weights between even and all on one key
VOCABULARY, POSITIONS, PADDING = 60, 24, 1

ROBERTA = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
               max_position_embeddings=POSITIONS + PADDING + 1, type_vocab_size=1, pad_token_id=PADDING,
               layer_norm_eps=1e-5)
DISTILBERT = dict(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=POSITIONS)
FAMILIES = {
    "roberta": lambda: transformers.RobertaForMaskedLM(transformers.RobertaConfig(**ROBERTA)),
    "xlm_roberta": lambda: transformers.XLMRobertaModel(transformers.XLMRobertaConfig(**ROBERTA)),
    "distilbert": lambda: transformers.DistilBertModel(transformers.DistilBertConfig(**DISTILBERT)),
}


def random_model(make, generator):
    model = make().float().eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            middle = 1 if "norm" in name.lower() and name.endswith(".weight") else 0
            values = generator.normal(middle, SPREAD, tuple(parameter.shape)).astype(numpy.float32)
            parameter.copy_(torch.from_numpy(values))
    return model


def texts(family, generator):
    longest = generator.integers(2, VOCABULARY, size=POSITIONS)
    yield "one_token", longest[:1]
    yield "all_positions", longest
    if family != "distilbert":
        yield "padded", numpy.array([PADDING, 0, 31, PADDING, PADDING, 14, 22, 2, PADDING])


def main():
    data = pathlib.Path(__file__).resolve().parent.parent / "data"
    generator = numpy.random.default_rng(SEED)
    for family, make in FAMILIES.items():
        model = random_model(make, generator)
        model.save_pretrained(data / family)
        (data / family / "generation_config.json").unlink(missing_ok=True)
        body = model.base_model
        for name, ids in texts(family, generator):
            with torch.no_grad():
                result = body(input_ids=torch.from_numpy(ids[None]), attention_mask=torch.ones(1, len(ids)),
                              output_attentions=True)
            tensors = {
                "ids": ids.astype(numpy.int64),
                "weights": numpy.stack([layer[0].numpy() for layer in result.attentions]),
                "hidden": result.last_hidden_state[0].numpy(),
            }
            save_file(tensors, data / f"{family}_{name}.safetensors", {"name": name})
        paths = [*data.glob(f"{family}/*"), *data.glob(f"{family}_*.safetensors")]
        print(family, sum(path.stat().st_size for path in paths), "bytes")
        assert sum(path.stat().st_size for path in paths) < 200_000


if __name__ == "__main__":
    main()
