// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::base {
namespace {

using tests::error_text;
using tests::TemporaryFolder;
using tests::write_bytes;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(AlignedBuffer, IsAlignedAndZero) {
  constexpr size_t kMapped = AlignedBuffer::kMappedFrom;
  for (size_t bytes :
       {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4097}, kMapped - 64, kMapped, kMapped + 3}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte value) { return value == std::byte{0}; }));
  }
}

TEST(AlignedBuffer, OfEveryKindIsAlignedAndZero) {
  constexpr size_t kTogether = AlignedBuffer::kTogetherFrom, kMapped = AlignedBuffer::kMappedFrom;
  for (size_t bytes :
       {size_t{1}, size_t{4097}, kTogether, kTogether + 1, kLargePage, kLargePage + 5, kMapped - 1, kMapped}) {
    for (const AlignedBuffer& buffer : {AlignedBuffer::mapped(bytes), AlignedBuffer::lasting(bytes)}) {
      EXPECT_EQ(buffer.size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0u);
      EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte value) { return value == std::byte{0}; }));
    }
  }
  EXPECT_EQ(AlignedBuffer::mapped(0).data(), nullptr);
  EXPECT_THROW(AlignedBuffer::mapped(SIZE_MAX), std::bad_alloc);
}

// They stand in several slabs, and each keeps its own as long as it lives, in whatever order they go.
TEST(AlignedBuffer, LastingOnesKeepWhatIsWrittenWhileOthersGo) {
  std::vector<AlignedBuffer> buffers;
  for (size_t i = 0; i < 30; ++i) {
    buffers.push_back(AlignedBuffer::lasting(AlignedBuffer::kMappedFrom - 64 - 64 * i));
    buffers.back().bytes().front() = buffers.back().bytes().back() = static_cast<std::byte>(i + 1);
  }
  for (size_t i = 0; i < buffers.size(); i += 2) buffers[i] = {};
  const AlignedBuffer last = AlignedBuffer::lasting(AlignedBuffer::kTogetherFrom);
  EXPECT_EQ(last.bytes().back(), std::byte{0});
  for (size_t i = 1; i < buffers.size(); i += 2) {
    EXPECT_EQ(buffers[i].bytes().front(), static_cast<std::byte>(i + 1));
    EXPECT_EQ(buffers[i].bytes().back(), static_cast<std::byte>(i + 1));
  }
}

TEST(AlignedBuffer, ALargeOneCanBeMovedAndReplaced) {
  AlignedBuffer small(64), large(AlignedBuffer::kMappedFrom);
  large.bytes().back() = std::byte{7};
  const std::byte* place = large.data();
  small = std::move(large);
  EXPECT_EQ(small.data(), place);
  EXPECT_EQ(small.bytes().back(), std::byte{7});
  small = AlignedBuffer(64);
  EXPECT_EQ(small.size(), 64u);
}

TEST(AlignedBuffer, OfNothingHoldsNothing) {
  EXPECT_EQ(AlignedBuffer().size(), 0u);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBuffer, TooLargeIsBadAlloc) {
  EXPECT_THROW(AlignedBuffer(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(AlignedBuffer(SIZE_MAX - 10), std::bad_alloc);
}

TEST(AlignedBuffer, IsEmptyWhenMovedFrom) {
  AlignedBuffer first(100);
  first.bytes()[99] = std::byte{7};
  AlignedBuffer second(std::move(first));
  EXPECT_EQ(first.size(), 0u);  // NOLINT(bugprone-use-after-move): that is the promise
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(second.bytes()[99], std::byte{7});
  AlignedBuffer third(5);
  third = std::move(second);
  EXPECT_EQ(second.size(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(third.size(), 100u);
}

TEST(MappedFile, ShowsTheBytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "cat", "the cat");
  const MappedFile file(folder / "cat");
  EXPECT_EQ(text_of(file.bytes()), "the cat");
  EXPECT_EQ(file.path(), folder / "cat");
}

TEST(MappedFile, OfNothingIsEmpty) {
  const TemporaryFolder folder;
  write_bytes(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, BytesStayWhereTheyAreWhenItMoves) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", "first");
  write_bytes(folder / "b", "second");
  MappedFile a(folder / "a");
  const std::byte* place = a.bytes().data();
  MappedFile moved(std::move(a));
  EXPECT_EQ(moved.bytes().data(), place);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move): that is the promise
  MappedFile b(folder / "b");
  b = std::move(moved);
  EXPECT_EQ(b.bytes().data(), place);
  EXPECT_EQ(text_of(b.bytes()), "first");
}

TEST(MappedFile, ReleasedPagesComeBack) {
  const TemporaryFolder folder;
  std::string content(100'000, 'x');
  content[50'000] = 'y';
  write_bytes(folder / "large", content);
  const MappedFile file(folder / "large");
  EXPECT_EQ(text_of(file.bytes()), content);
  file.release_pages(file.bytes().subspan(1, 99'000));
  file.release_pages({});
  file.release_pages(file.bytes().subspan(10, 20));
  EXPECT_EQ(text_of(file.bytes()), content);
}

TEST(MappedFile, SaysWhyNot) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing").string(), pipe = (folder / "pipe").string();
  EXPECT_EQ(error_text([&] { MappedFile file(missing); }),
            "[\"" + missing + "\"] expected a readable file; found No such file or directory");
  EXPECT_EQ(error_text([&] { MappedFile file(folder.path()); }),
            "[" + base::quoted(folder.path().string()) +
                "] expected a regular file; found something else (folder, pipe or device)");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { MappedFile file(pipe); }),
            "[\"" + pipe + "\"] expected a regular file; found something else (folder, pipe or device)");
}

TEST(ReadFile, ReadsAllUpToTheLimit) {
  const TemporaryFolder folder;
  const std::string path = (folder / "config.json").string();
  write_bytes(path, std::string("{\0}", 3));
  EXPECT_EQ(read_file(path, 3), std::string("{\0}", 3));
  EXPECT_EQ(error_text([&] { read_file(path, 2); }), "[\"" + path + "\"] expected at most 2 bytes; found 3 bytes");
}

TEST(ReadFile, SaysWhyNot) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing").string();
  EXPECT_EQ(error_text([&] { read_file(missing, 10); }),
            "[\"" + missing + "\"] expected a readable file; found No such file or directory");
  EXPECT_EQ(error_text([&] { read_file("/dev/null", 10); }),
            "[\"/dev/null\"] expected a regular file; found something else (folder, pipe or device)");
}

}  // namespace
}  // namespace clearhead::base
