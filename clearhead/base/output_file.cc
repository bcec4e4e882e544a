// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"

namespace clearhead::base {
namespace {

// A rename is only on disk once its folder is.
void flush_folder(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Where a symbolic link leads, link by link, also if nothing is there yet: replacing the link itself would lose it.
std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as many as the system follows
  std::error_code problem;
  for (int link = 0; std::filesystem::is_symlink(path, problem); ++link) {
    if (link == kMostLinks) fail(quoted(path.string(), 400), "a link that ends at a file", "links that go in circles");
    const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
    if (problem) fail(quoted(path.string(), 400), "a link that can be read", problem.message());
    path = path.parent_path() / target;  // an absolute target stands alone
  }
  return path;
}

}  // namespace

void refuse_to_replace(std::string_view where, const std::filesystem::path& path,
                       std::span<const std::filesystem::path> inputs) {
  std::error_code not_there;  // where there is no file yet, nothing is lost
  for (const std::filesystem::path& input : inputs) {
    if (!std::filesystem::equivalent(path, input, not_there)) continue;
    refuse(where, "an output that is no input", fmt::format("{}, which is read", quoted(path.string(), 400)),
           "name another file to write");
  }
}

OutputFile::OutputFile(const std::filesystem::path& path) : path_(end_of_links(path)) {
  std::error_code ignored;  // what cannot be looked at cannot be created either, and mkostemp says why
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    fail(quoted(path.string(), 400), "a file name to write to", "a folder, device or pipe");
  }
  std::string pattern = fmt::format("{}.part-XXXXXX", path_.string());
  descriptor_ = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail_with_errno("a file that can be written");
  beside_ = pattern;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor_, 0666 & ~mask);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(beside_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t written = ::write(descriptor_, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("room to write the file");
    at += static_cast<size_t>(written);
  }
}

void OutputFile::resize(size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<off_t>::max())) {
    errno = EFBIG;
    fail_with_errno("room to write the file");
  }
  if (bytes == 0) return;
  // Where the system cannot reserve, it writes zeros: a full disk is met now, not at the end.
  int problem = EINTR;
  while (problem == EINTR) {
    problem = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
    check_interrupt();
  }
  if (problem == 0) return;
  errno = problem;
  fail_with_errno("room to write the file");
}

void OutputFile::write_at(size_t place, std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const auto to = static_cast<off_t>(place + at);
    const ssize_t written = ::pwrite(descriptor_, bytes.data() + at, bytes.size() - at, to);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("room to write the file");
    at += static_cast<size_t>(written);
  }
}

void OutputFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with_errno("room to write the file");
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail_with_errno("a file that can be replaced");
  ::close(descriptor_);
  descriptor_ = -1;
  flush_folder(path_);
}

void OutputFile::fail_with_errno(const char* expected) const {
  fail(quoted(path_.string(), 400), expected, std::strerror(errno));
}

}  // namespace clearhead::base
