// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"

namespace clearhead::apps {
namespace {

constexpr size_t kDefaultWidth = 100, kSmallestWidth = 40;
constexpr auto kProgressDelay = std::chrono::seconds(1);
constexpr auto kProgressPeriod = std::chrono::milliseconds(100);

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

size_t terminal_width() {
  struct winsize size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<size_t>(size.ws_col, kSmallestWidth);
  }
  const long columns = std::strtol(std::string(environment("COLUMNS")).c_str(), nullptr, 10);
  if (columns > 0 && columns < 10000) return std::max(static_cast<size_t>(columns), kSmallestWidth);
  return kDefaultWidth;
}

views::Colors terminal_colors() {
  const bool forced = !environment("CLICOLOR_FORCE").empty() && environment("CLICOLOR_FORCE") != "0";
  if (!environment("NO_COLOR").empty()) return views::Colors::none;
  const std::string_view terminal = environment("TERM");
  if (!forced && (!::isatty(STDOUT_FILENO) || terminal == "dumb")) return views::Colors::none;
  const std::string_view depth = environment("COLORTERM");
  return depth == "truecolor" || depth == "24bit" ? views::Colors::truecolor : views::Colors::ansi256;
}

// COLORFGBG is "foreground;background"; 7 and above 8 are light backgrounds.
bool dark_background() {
  const std::string_view colors = environment("COLORFGBG");
  const size_t separator = colors.rfind(';');
  if (separator == std::string_view::npos) return true;
  const int background = std::atoi(std::string(colors.substr(separator + 1)).c_str());
  return background != 7 && background < 9;
}

views::Language locale_language() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const std::string_view value = environment(name);
    if (!value.empty()) return value.starts_with("zh") ? views::Language::zh : views::Language::en;
  }
  return views::Language::en;
}

// Standard error is the last resort: what cannot be written there is lost.
void write_error(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      base::check_interrupt();
      continue;
    }
    if (written < 0 && errno == EPIPE) throw ClosedPipe{};
    if (written < 0) base::fail("standard output", "room to write the result", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void note(std::string_view text) {
  views::Style plain;
  write_error(fmt::format("clearhead: {}\n", views::printable(text, plain)));
}

views::Style detect_style() {
  views::Style style;
  style.colors = terminal_colors();
  style.width = terminal_width();
  style.dark = dark_background();
  style.language = locale_language();
  return style;
}

views::Language parse_language(std::string_view name) {
  if (name == "en") return views::Language::en;
  if (name == "zh") return views::Language::zh;
  base::refuse("--lang", "en or zh", base::quoted(name));
}

Progress::Progress(std::string what) : what_(std::move(what)), start_(std::chrono::steady_clock::now()) {
  if (!::isatty(STDERR_FILENO)) return;
  // The drawer must not be the thread that a signal interrupts.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  drawer_ = std::thread([this] { draw_until_stopped(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  stopped_ = true;
  if (drawer_.joinable()) drawer_.join();
}

void Progress::step(size_t done, size_t total) {
  total_ = total;
  done_ = done;
}

void Progress::draw_until_stopped() {
  constexpr size_t kBar = 24;
  bool drawn = false;
  while (!stopped_) {
    std::this_thread::sleep_for(kProgressPeriod);
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    if (elapsed < kProgressDelay) continue;
    const size_t total = total_, done = std::min(done_.load(), total);
    std::string bar;
    if (total > 0) {
      const size_t filled = done * kBar / total;
      bar = fmt::format(" [{}{}] {}/{}", std::string(filled, '#'), std::string(kBar - filled, '.'), done, total);
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
    write_error(fmt::format("\r\x1b[2K{}{} {} s", what_, bar, seconds));
    drawn = true;
  }
  if (drawn) write_error("\r\x1b[2K");
}

}  // namespace clearhead::apps
