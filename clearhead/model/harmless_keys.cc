// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/harmless_keys.h"

namespace clearhead::model {
namespace {

constexpr std::string_view kOrigin = "where the file came from";
constexpr std::string_view kTraining = "training only";
constexpr std::string_view kReturned = "what another library returns";
constexpr std::string_view kComputed = "how another library computes the same";
constexpr std::string_view kTokens = "the tokenizer decides about tokens";
constexpr std::string_view kWriting = "how another library writes text by itself; here the caller says it";
constexpr std::string_view kTextHead = "of a head over a whole text, which is not computed";
constexpr std::string_view kUnread = "a length that peers do not read in a model";
constexpr std::string_view kOff = "switched off";

constexpr HarmlessKey kHarmlessKeys[] = {
    {"_commit_hash", kOrigin},
    {"_name_or_path", kOrigin},
    {"architectures", "which head was trained; what is computed here is the body, named by model_type"},
    {"finetuning_task", kOrigin},
    {"is_llama_config", kOrigin, "true"},
    {"language", kOrigin},
    {"name", kOrigin},
    {"name_or_path", kOrigin},
    {"transformers_version", kOrigin},
    {"unsloth_fixed", kOrigin},
    {"unsloth_version", kOrigin},

    {"attention_probs_dropout_prob", kTraining},
    {"classifier_dropout", kTraining},
    {"gradient_checkpointing", kTraining},
    {"hidden_dropout_prob", kTraining},
    {"initializer_range", kTraining},
    {"problem_type", kTraining},
    {"tf_legacy_loss", kTraining},

    {"output_attentions", kReturned},
    {"output_hidden_states", kReturned},
    {"output_past", kReturned},
    {"return_dict", kReturned},
    {"use_return_dict", kReturned},

    {"_attn_implementation", kComputed},
    {"_attn_implementation_autoset", kComputed},
    {"_attn_implementation_internal", kComputed},
    {"_flash_attn_2_enabled", kComputed},
    {"attn_implementation", kComputed},
    {"cache_implementation", kComputed},
    {"chunk_size_feed_forward", "how another library saves memory; same results"},
    {"custom_pipelines", kComputed},
    {"torchscript", kComputed},
    {"transformers.js_config", kComputed},
    {"use_bfloat16", kOff, "false"},
    {"use_cache", kComputed},

    {"bos_token_id", kTokens},
    {"cls_token_id", kTokens},
    {"mask_token_id", kTokens},
    {"pad_token_id", "padding only"},
    {"sep_token_id", kTokens},
    {"tokenizer_class", kTokens},
    {"unk_token_id", kTokens},

    {"bad_words_ids", kWriting},
    {"begin_suppress_tokens", kWriting},
    {"decoder_start_token_id", kWriting},
    {"diversity_penalty", kWriting},
    {"do_sample", kWriting},
    {"early_stopping", kWriting},
    {"encoder_no_repeat_ngram_size", kWriting},
    {"exponential_decay_length_penalty", kWriting},
    {"forced_bos_token_id", kWriting},
    {"forced_eos_token_id", kWriting},
    {"length_penalty", kWriting},
    {"max_length", kWriting},
    {"max_new_tokens", kWriting},
    {"min_length", kWriting},
    {"min_p", kWriting},
    {"no_repeat_ngram_size", kWriting},
    {"num_beam_groups", kWriting},
    {"num_beams", kWriting},
    {"num_return_sequences", kWriting},
    {"output_scores", kWriting},
    {"prefix", kWriting},
    {"remove_invalid_values", kWriting},
    {"repetition_penalty", kWriting},
    {"return_dict_in_generate", kWriting},
    {"suppress_tokens", kWriting},
    {"task_specific_params", kWriting},
    {"temperature", kWriting},
    {"top_k", kWriting},
    {"top_p", kWriting},
    {"typical_p", kWriting},

    {"_num_labels", kTextHead},
    {"id2label", kTextHead},
    {"label2id", kTextHead},
    {"num_labels", kTextHead},
    {"sbert_ce_default_activation_function", kTextHead},
    {"sentence_transformers", kTextHead},

    {"max_sequence_length", kUnread},
    {"model_max_length", kUnread},

    {"add_cross_attention", kOff, "false"},
    {"is_encoder_decoder", kOff, "false"},
    {"pruned_heads", "none are", "{}"},
    {"rope_interleaved", "the pairs of rotary positions are halves apart, as here", "false"},
    {"tie_encoder_decoder", kOff, "false"},
    {"use_mrope", kOff, "false"},
};

constexpr std::string_view kFloats = "parameters in floats";
constexpr std::string_view kBringFloats =
    "take the checkpoint in float32, float16 or bfloat16 that it was made of, or a GGUF";

constexpr RefusedKey kRefusedKeys[] = {
    {"auto_map", "a model that its model_type describes", "auto_map, which names code of its own that computes it",
     "code in files is never run; if the model computes what its model_type says, remove the key from the file"},
    {"compression_config", kFloats, "compression_config: they are quantized", kBringFloats},
    {"quantization_config", kFloats, "quantization_config: they are quantized", kBringFloats},
};

}  // namespace

std::span<const HarmlessKey> harmless_keys() { return kHarmlessKeys; }

std::span<const RefusedKey> refused_keys() { return kRefusedKeys; }

}  // namespace clearhead::model
