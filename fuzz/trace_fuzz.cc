// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file: either it is refused by an Error, or what was read can be written and is read back the
// same.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/capture/trace.h"
#include "clearhead/capture/trace_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace capture = clearhead::capture;
  const auto bytes = std::as_bytes(std::span(data, size));
  capture::Trace trace;
  try {
    trace = capture::Trace::read(std::vector(bytes.begin(), bytes.end()), "fuzz");
  } catch (const clearhead::base::Error&) {
    return 0;
  }
  trace.check("fuzz");
  if (!(capture::info_from_metadata(capture::metadata_of(trace.info()), "fuzz") == trace.info())) std::abort();
  return 0;
}
