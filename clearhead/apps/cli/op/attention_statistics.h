// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "clearhead/apps/cli/op/attributes.h"
#include "clearhead/apps/cli/op/tensors.h"

namespace clearhead::apps {

struct AttentionProblem;
struct AttentionSettings;

// What one pass says about rows beside its output, as outputs of the operator Attention.
inline constexpr std::string_view kStatisticOutputs[] = {
    "entropy",      // [batch, heads, query]: -sum p ln p
    "distance",     // [batch, heads, query]: sum p |key - position of the query|
    "top_weights",  // [batch, heads, query, top_k]: falling; NaN in a row that is NaN
    "top_keys",     // [batch, heads, query, top_k] I64; -1 where a row sees no more
    "group_mass",   // [batch, heads, query, groups]: the weights of each group of the input key_groups added up
    "map_sum",      // [batch, heads, map_queries, map_keys]: of the weights in each cell
    "map_maximum",  // [batch, heads, map_queries, map_keys]
    "received",     // [batch, heads, key]: the weights that all queries give to a key
};

// How they are asked for.
struct StatisticSettings {
  size_t top = 8, map_queries = 64, map_keys = 64;
};

// Attributes top_k (1 to 64), map_queries, map_keys. Throws: Error (usage) if one is out of range.
StatisticSettings read_statistic_settings(Attributes& attributes);

// The keys of each row of the input key_groups, BOOL [groups, key_len]; none if it is absent.
// Throws: Error (usage) for another type or shape.
std::vector<std::vector<size_t>> read_key_groups(Inputs& inputs, size_t key_len);

// Computes those that are wanted. Throws: Error (usage) if a run in double is asked for them, or group_mass without
// key_groups.
void add_statistics(const AttentionProblem& problem, const StatisticSettings& settings, Outputs& outputs);

}  // namespace clearhead::apps
