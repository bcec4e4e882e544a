#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes NAME/ and NAME_golden.safetensors in tests/model/data/decoders/ for small decoders of random parameters, with what PyTorch's
eager attention in float32 says about them.

    python make_decoder_goldens.py [NAME...]

Needs torch, transformers, safetensors, numpy and gguf. NAME/ holds config.json and model.safetensors as transformers
saves them. NAME_golden.safetensors holds ids [seq], weights [layers, heads, seq, seq], hidden [layers + 1, seq, d_model]
(embedding, outputs of the layers but the last, last hidden state) and logits [seq, vocab]. llama.gguf is the llama of
llama/ with its rows of query and key in the order of a GGUF.
"""
import pathlib
import sys

import gguf
import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

SPREAD = 0.25  # of the parameters: weights between even and all on one key
DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "decoders"
SMALL = {"vocab_size": 48, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0,
         "pad_token_id": 0}
GEMMA = {**SMALL, "head_dim": 8, "query_pre_attn_scalar": 10, "sliding_window": 5, "num_hidden_layers": 3}


def rope(kind, **settings):
    return {"rope_type": kind, "rope_theta": 100.0, **settings}


# name: (class, settings, seq)
MODELS = {
    "llama": ("Llama", {**SMALL, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}, 20),
    "llama_wide_heads": ("Llama", {**SMALL, "head_dim": 8, "attention_bias": True, "mlp_bias": True,
                                   "num_key_value_heads": 4}, 9),
    "llama_linear": ("Llama", {**SMALL, "rope_parameters": rope("linear", factor=2.5)}, 20),
    "llama_dynamic": ("Llama", {**SMALL, "head_dim": 8, "max_position_embeddings": 16,
                                "rope_parameters": rope("dynamic", factor=2.0)}, 24),
    "llama_yarn": ("Llama", {**SMALL, "head_dim": 16, "rope_parameters": rope(
        "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5)}, 24),
    "llama_llama3": ("Llama", {**SMALL, "head_dim": 16, "rope_parameters": rope(
        "llama3", factor=8.0, original_max_position_embeddings=32, low_freq_factor=1.0, high_freq_factor=4.0)}, 24),
    "llama_longrope": ("Llama", {**SMALL, "head_dim": 8, "rope_parameters": rope(
        "longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 1.5, 2.0, 3.0], factor=4.0,
        original_max_position_embeddings=16)}, 24),
    "mistral": ("Mistral", {**SMALL, "sliding_window": 6}, 20),
    "qwen2": ("Qwen2", {**SMALL, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}, 20),
    "qwen3": ("Qwen3", {**SMALL, "head_dim": 10, "tie_word_embeddings": True}, 20),
    "gemma2": ("Gemma2", {**GEMMA, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0}, 20),
    "gemma3": ("Gemma3", {**GEMMA, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                          "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0,
                                                                 "rope_theta": 1000.0},
                                              "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}, 20),
    "gpt2": ("GPT2", {"vocab_size": 48, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 0,
                      "eos_token_id": 0, "tie_word_embeddings": False}, 20),
    "gpt_neox": ("GPTNeoX", {**{k: v for k, v in SMALL.items() if k != "num_key_value_heads"}, "hidden_size": 32}, 20),
}


def random_model(kind, settings, generator):
    suffix = "TextConfig" if kind == "Gemma3" else "Config"
    config = getattr(transformers, kind + suffix)(**settings)
    config._attn_implementation = "eager"
    head = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    model = getattr(transformers, kind + head)(config).float().eval()
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            is_gain = ("norm" in name or ".ln_" in name) and name.endswith(".weight") and not kind.startswith("Gemma")
            values = generator.normal(1 if is_gain else 0, SPREAD, tuple(parameter.shape)).astype(numpy.float32)
            parameter.copy_(torch.from_numpy(values))
    return model


def make(name):
    kind, settings, length = MODELS[name]
    generator = numpy.random.default_rng(list(name.encode()))
    model = random_model(kind, settings, generator)
    folder = DATA / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    ids = generator.integers(model.config.vocab_size, size=length)
    with torch.no_grad():
        result = model(input_ids=torch.from_numpy(ids[None]), output_attentions=True, output_hidden_states=True,
                       use_cache=False)
    save_file({
        "ids": ids.astype(numpy.int64),
        "weights": numpy.stack([layer[0].numpy() for layer in result.attentions]),
        "hidden": numpy.stack([layer[0].numpy() for layer in result.hidden_states]),
        "logits": result.logits[0].numpy(),
    }, DATA / f"{name}_golden.safetensors", {"name": name})
    size = sum(path.stat().st_size for path in [*folder.glob("*"), DATA / f"{name}_golden.safetensors"])
    print(name, size, "bytes")
    assert size < 200_000


NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "attn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "model.layers": "blk"}


def in_pairs(weight, heads):
    """Rows of each head in the order of interleaved pairs."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def make_gguf():
    _, settings, _ = MODELS["llama"]
    writer = gguf.GGUFWriter(DATA / "llama.gguf", "llama")
    writer.add_block_count(settings["num_hidden_layers"])
    writer.add_context_length(settings["max_position_embeddings"])
    writer.add_embedding_length(settings["hidden_size"])
    writer.add_feed_forward_length(settings["intermediate_size"])
    writer.add_head_count(settings["num_attention_heads"])
    writer.add_head_count_kv(settings["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(settings["rms_norm_eps"])
    for name, values in load_file(DATA / "llama" / "model.safetensors").items():
        if "q_proj" in name:
            values = in_pairs(values, settings["num_attention_heads"])
        if "k_proj" in name:
            values = in_pairs(values, settings["num_key_value_heads"])
        for hub, ours in NAMES.items():
            name = name.replace(hub, ours)
        writer.add_tensor(name, numpy.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    for name in sys.argv[1:] or MODELS:
        make(name)
    make_gguf()


if __name__ == "__main__":
    main()
