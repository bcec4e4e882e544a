// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace clearhead::apps {

// One operator on the tensors of one safetensors file.
struct OpRequest {
  std::string name;                  // attention, multi_head_attention, rotary_embedding, softmax
  std::filesystem::path input;       // tensors by the operator's own names
  std::filesystem::path output;      // appears whole or not at all
  std::string attributes = "{}";     // one JSON object
  std::vector<std::string> outputs;  // names of the wanted outputs; none: what the operator gives by default
};

// Runs the operator: in float for F32, F16 and BF16, in double by the plain reference if the first input is F64.
// Outputs have the type of the first input; row_reference and row_sum of the 16-bit types stay F32. Throws: Error
// (usage) for an unknown operator, attribute, input or output, a missing input, a wrong type or shape; Error (failure)
// if a file cannot be read or written.
void run_operator(const OpRequest& request);

// Names of all operators.
std::vector<std::string> operator_names();

// Each operator with its inputs, attributes and outputs, for people.
std::string operator_help();

}  // namespace clearhead::apps
