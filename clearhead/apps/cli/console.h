// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "clearhead/views/terminal.h"

namespace clearhead::apps {

// Thrown when nobody reads the output any more; the program ends quietly.
struct ClosedPipe {};

// Writes all of text to standard output. Throws: ClosedPipe; base::Error if there is no room.
void write_output(std::string_view text);

// One line on standard error: "clearhead: ...". Control characters are made visible.
void note(std::string_view text);

// What standard output can show: colours only on a terminal (NO_COLOR and CLICOLOR_FORCE respected), its width, the
// language of the locale.
views::Style detect_style();

// "en" or "zh" as people write them. Throws: Error (usage) for anything else.
views::Language parse_language(std::string_view name);

// A line on standard error that says what takes so long; appears after a second, only on a terminal, and goes away with
// the object.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done of total steps are finished; a bar is drawn once this was called. Any thread may call it.
  void step(size_t done, size_t total);

 private:
  void draw_until_stopped();

  std::string what_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<size_t> done_{0}, total_{0};
  std::atomic<bool> stopped_{false};
  std::thread drawer_;
};

}  // namespace clearhead::apps
