// SPDX-License-Identifier: Apache-2.0
// A main for a fuzz target, where libFuzzer is not at hand:
//
//   NAME_fuzz FILE...                      runs the target on each file
//   NAME_fuzz --seconds N [--seed S] [--input FILE]
//
// The second form runs it for N seconds on mutations of the files in seeds/NAME/, and of nothing where there are none.
// Each input is written to FILE (default NAME_fuzz.input in the working folder) before it is tried, so that after a
// crash the first form repeats it; FILE is removed if all went well.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxInputBytes = 1 << 16;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<Bytes> read_seeds() {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(CLEARHEAD_FUZZ_SEEDS, none)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> seeds;
  for (const auto& path : paths) seeds.push_back(read(path));
  if (seeds.empty()) seeds.emplace_back();
  return seeds;
}

class Mutator {
 public:
  Mutator(std::vector<Bytes> seeds, uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

  Bytes next() {
    Bytes bytes = seeds_[below(seeds_.size())];
    for (size_t count = below(8); count > 0; --count) mutate(bytes);
    if (bytes.size() > kMaxInputBytes) bytes.resize(kMaxInputBytes);
    return bytes;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  uint8_t telling_byte() {
    static constexpr uint8_t kTelling[] = {0,    1,    9,    10,   32,   34,   44,   45,   48,   57,  58,
                                           0x5b, 0x5d, 0x7b, 0x7d, 0x7f, 0x80, 0xc0, 0xed, 0xf4, 0xff};
    return below(2) == 0 ? kTelling[below(std::size(kTelling))] : static_cast<uint8_t>(random_());
  }

  void mutate(Bytes& bytes) {
    const size_t at = below(bytes.size() + 1), left = bytes.size() - at;
    const auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
    switch (below(7)) {
      case 0: bytes.insert(place, 1 + below(4), telling_byte()); break;
      case 1: bytes.erase(place, place + static_cast<ptrdiff_t>(below(std::min<size_t>(left, 64) + 1))); break;
      case 2:
        if (left > 0) *place = telling_byte();
        break;
      case 3:
        if (left > 0) *place ^= static_cast<uint8_t>(1 << below(8));
        break;
      case 4: bytes.resize(at); break;
      case 5: repeat(bytes, at); break;
      default: splice(bytes, at);
    }
  }

  // Copies a stretch of the input to another place of it, up to a thousand times.
  void repeat(Bytes& bytes, size_t at) {
    if (bytes.empty()) return;
    const size_t begin = below(bytes.size());
    const Bytes part(bytes.begin() + begin,
                     bytes.begin() + begin + 1 + below(std::min<size_t>(bytes.size() - begin, 40)));
    for (size_t count = below(10) == 0 ? below(1000) : 1; count > 0; --count) {
      bytes.insert(bytes.begin() + at, part.begin(), part.end());
    }
  }

  // Puts a stretch of some seed in.
  void splice(Bytes& bytes, size_t at) {
    const Bytes& other = seeds_[below(seeds_.size())];
    const size_t begin = below(other.size()), length = below(other.size() - begin + 1);
    bytes.insert(bytes.begin() + at, other.begin() + begin, other.begin() + begin + length);
  }

  std::vector<Bytes> seeds_;
  std::mt19937_64 random_;
};

// A file that always holds the last input, also after the program was killed.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644)) {
    if (file_ < 0) throw std::runtime_error("cannot write " + path);
  }
  ~InputFile() { close(file_); }
  InputFile(const InputFile&) = delete;

  // The file stays open: to truncate and close it each time would wait for the disk.
  void write(const Bytes& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (pwrite(file_, bytes.data(), bytes.size(), 0) != size || ftruncate(file_, size) != 0) {
      throw std::runtime_error("cannot write " + path_);
    }
  }

 private:
  std::string path_;
  int file_;
};

void run_for(double seconds, uint64_t seed, const std::string& input_file) {
  Mutator mutator(read_seeds(), seed);
  const auto start = std::chrono::steady_clock::now();
  const auto taken = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  size_t count = 0;
  InputFile last(input_file);
  while (taken() < seconds) {
    const Bytes bytes = mutator.next();
    last.write(bytes);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++count;
  }
  std::filesystem::remove(input_file);
  std::printf("%zu inputs in %.0f s, seed %llu\n", count, taken(), static_cast<unsigned long long>(seed));
}

int run(const std::vector<std::string>& arguments, const std::string& program) {
  double seconds = 0;
  uint64_t seed = 1;
  std::string input_file = std::filesystem::path(program).filename().string() + ".input";
  std::vector<std::string> files;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--seconds" && has_value) {
      seconds = std::stod(arguments[++i]);
    } else if (arguments[i] == "--seed" && has_value) {
      seed = std::stoull(arguments[++i]);
    } else if (arguments[i] == "--input" && has_value) {
      input_file = arguments[++i];
    } else if (arguments[i].starts_with("--")) {
      std::fprintf(stderr, "usage: %s FILE... | --seconds N [--seed S] [--input FILE]\n", program.c_str());
      return 2;
    } else {
      files.push_back(arguments[i]);
    }
  }
  for (const std::string& file : files) {
    const Bytes bytes = read(file);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  if (files.empty()) run_for(seconds, seed, input_file);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count}, arguments[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
