// SPDX-License-Identifier: Apache-2.0
// Prints the stage table as Markdown; with --check FILE or --update FILE, compares it with or writes it into the part
// of that file between the two markers.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/base/output_file.h"
#include "clearhead/capture/stage.h"

namespace {

namespace base = clearhead::base;
namespace capture = clearhead::capture;

constexpr std::string_view kBegin = "<!-- stage table -->\n", kEnd = "<!-- end -->";

std::string markdown() {
  std::string text = "| stage | shape | formula | what it is | source |\n|---|---|---|---|---|\n";
  for (const capture::StageInfo& row : capture::stages()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, row.shape, row.formula, row.sentence, row.source);
  }
  return text;
}

// text cut at the markers: what stands before the table, the table, what stands behind it.
struct Parts {
  std::string before, table, behind;
};

Parts cut(const std::string& file) {
  const std::string text = base::read_file(file, 1 << 24);
  const size_t begin = text.find(kBegin);
  const size_t end = text.find(kEnd, begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) {
    base::fail(base::quoted(file), "the lines <!-- stage table --> and <!-- end -->", "no such lines");
  }
  const size_t table = begin + kBegin.size();
  return {text.substr(0, table), text.substr(table, end - table), text.substr(end)};
}

int run(std::string_view program, std::string_view action, const std::string& file) {
  const Parts parts = cut(file);
  if (action == "--check") {
    if (parts.table == markdown()) return 0;
    fmt::print(stderr, "{} does not have the stage table of the code; run: {} --update {}\n", file, program, file);
    return 1;
  }
  base::OutputFile output(file);
  output.write(parts.before + markdown() + parts.behind);
  output.commit();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view action = count > 1 ? arguments[1] : "";
  if (count == 1) {
    fmt::print("{}", markdown());
    return 0;
  }
  if (count != 3 || (action != "--check" && action != "--update")) {
    fmt::print(stderr, "usage: {} [--check FILE | --update FILE]\n", arguments[0]);
    return 2;
  }
  try {
    return run(arguments[0], action, arguments[2]);
  } catch (const base::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
