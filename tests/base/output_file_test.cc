// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/output_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "clearhead/base/error.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::base {
namespace {

using tests::error_text;
using tests::read_bytes;
using tests::TemporaryFolder;
using tests::write_bytes;

// For the life of the object no file of this process may grow over a size: the nearest thing to a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(OutputFile, AppearsWholeAtCommit) {
  const TemporaryFolder folder;
  OutputFile file(folder / "out");
  file.write("the ");
  file.write("cat");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(read_bytes(folder / "out"), "the cat");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, MayBeEmpty) {
  const TemporaryFolder folder;
  OutputFile file(folder / "out");
  file.write("");
  file.commit();
  EXPECT_TRUE(std::filesystem::exists(folder / "out"));
  EXPECT_EQ(read_bytes(folder / "out"), "");
}

TEST(OutputFile, ReplacesAnOlderFileOnlyAtCommit) {
  const TemporaryFolder folder;
  write_bytes(folder / "out", "old");
  {
    OutputFile file(folder / "out");
    file.write("new");
    EXPECT_EQ(read_bytes(folder / "out"), "old");
  }
  EXPECT_EQ(read_bytes(folder / "out"), "old");
  EXPECT_EQ(folder.entries(), 1u) << "what was given up is removed";
  OutputFile file(folder / "out");
  file.write("new");
  file.commit();
  EXPECT_EQ(read_bytes(folder / "out"), "new");
}

TEST(OutputFile, HasThePermissionsThatTheUserAsksFor) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  OutputFile file(folder / "out");
  file.commit();
  struct stat status {};
  EXPECT_EQ(::stat((folder / "out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(::umask(before), mode_t{027}) << "the mask is as it was";
}

TEST(OutputFile, ALinkStaysALink) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  write_bytes(folder / "far/real", "old");
  std::filesystem::create_symlink("far/real", folder / "link");
  OutputFile file(folder / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_bytes(folder / "far/real"), "new");
}

TEST(OutputFile, ALinkToAFileThatIsNotThereYetStaysALink) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  std::filesystem::create_symlink("second", folder / "far/first");
  std::filesystem::create_symlink("far/first", folder / "link");
  OutputFile file(folder / "link");
  file.write("new");
  EXPECT_FALSE(std::filesystem::exists(folder / "far/second"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "far/first"));
  EXPECT_EQ(read_bytes(folder / "far/second"), "new");
}

TEST(OutputFile, LinksInCirclesAreRefusedAndLeft) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  const std::string text = error_text([&] { OutputFile file(folder / "a"); });
  EXPECT_NE(text.find("expected a link that ends at a file; found links that go in circles"), std::string::npos)
      << text;
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(OutputFile, AnInputIsKnownByEachOfItsNames) {
  const TemporaryFolder folder;
  write_bytes(folder / "in", "old");
  write_bytes(folder / "other", "old");
  std::filesystem::create_hard_link(folder / "in", folder / "hard");
  std::filesystem::create_symlink("in", folder / "soft");
  std::filesystem::create_symlink("nothing", folder / "open");
  const std::filesystem::path inputs[] = {folder / "absent", folder / "in"};
  for (const char* name : {"in", "hard", "soft", "./in"}) {
    const auto path = folder / name;
    EXPECT_EQ(error_text([&] { refuse_to_replace("op", path, inputs); }),
              "usage: [op] expected an output that is no input; found \"" + path.string() +
                  "\", which is read; name another file to write");
  }
  for (const char* name : {"other", "new", "absent", "open"}) refuse_to_replace("op", folder / name, inputs);
}

TEST(OutputFile, AFullDiskLeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::string path = (folder / "out").string();
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(error_text([&] {
                OutputFile file(path);
                file.write(std::string(900, 'x'));
                file.write(std::string(900, 'x'));
                file.commit();
              }),
              "[\"" + path + "\"] expected room to write the file; found File too large");
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(OutputFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  const std::string text = "] expected a file name to write to; found a folder, device or pipe";
  EXPECT_EQ(error_text([&] { OutputFile file(folder.path()); }), "[" + base::quoted(folder.path().string()) + text);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { OutputFile file(pipe); }), "[\"" + pipe + "\"" + text);
  EXPECT_EQ(error_text([&] { OutputFile file("/dev/null"); }), "[\"/dev/null\"" + text);
}

TEST(OutputFile, SaysWhyNot) {
  const TemporaryFolder folder;
  const std::string orphan = (folder / "no/such/folder").string();
  EXPECT_EQ(error_text([&] { OutputFile file(orphan); }),
            "[\"" + orphan + "\"] expected a file that can be written; found No such file or directory");
  const std::string endless = (folder / std::string(300, 'n')).string();
  EXPECT_EQ(error_text([&] { OutputFile file(endless); }),
            "[\"" + endless + "\"] expected a file that can be written; found File name too long");
}

TEST(OutputFile, APlaceThatBecameAFolderIsLeftAlone) {
  const TemporaryFolder folder;
  const std::string path = (folder / "out").string();
  EXPECT_EQ(error_text([&] {
              OutputFile file(path);
              std::filesystem::create_directory(path);
              file.commit();
            }),
            "[\"" + path + "\"] expected a file that can be replaced; found Is a directory");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, MayBeWrittenInAnyOrderOnceItHasASize) {
  const tests::TemporaryFolder folder;
  const auto path = folder / "file";
  {
    OutputFile file(path);
    file.resize(8);
    file.write("ab");
    file.write_at(6, std::as_bytes(std::span("gh", 2)));
    file.write_at(3, std::as_bytes(std::span("d", 1)));
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit();
  }
  EXPECT_EQ(tests::read_bytes(path), std::string("ab\0d\0\0gh", 8));
}

TEST(OutputFile, MeetsAFullDiskWhenItGetsItsSize) {
  const tests::TemporaryFolder folder;
  const FileSizeLimit limit(1000);
  OutputFile file(folder / "file");
  file.resize(1000);
  EXPECT_NE(tests::error_text([&] { file.resize(1001); }).find("room to write the file"), std::string::npos);
  EXPECT_NE(tests::error_text([&] { file.resize(std::numeric_limits<size_t>::max()); }).find("room to write the file"),
            std::string::npos);
}

}  // namespace
}  // namespace clearhead::base
