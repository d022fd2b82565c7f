// Runs a fuzz target without libFuzzer: driver CORPUS SECONDS [SEED]. First every file of the folder CORPUS, then random
// mutations of these until SECONDS are over. An input that makes a sanitizer or an assertion stop the program is written to
// crash-input in the working directory.
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace {

constexpr std::size_t max_input_bytes = 4096;

std::string current;

// Only calls that are safe in a signal handler.
void keep_input() {
  const int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, current.data(), current.size()) < 0 || close(file) != 0) return;
  constexpr char where[] = "the input is in crash-input\n";
  (void)!write(STDERR_FILENO, where, sizeof where - 1);
}

void keep_aborted(int number) {
  keep_input();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void run(const std::string &input) {
  current = input;
  // A copy of exactly this size, so that AddressSanitizer notices a read behind its end.
  const std::vector<std::uint8_t> data(input.begin(), input.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

std::vector<std::string> read_corpus(const char *folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto &path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string> &corpus, unsigned seed) : corpus_(corpus), random_(seed) {}

  std::string next() {
    std::string input = any();
    for (std::size_t k = below(5); k < 5; ++k) mutate(input);
    if (input.size() > max_input_bytes) input.resize(max_input_bytes);
    return input;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  const std::string &any() { return corpus_[below(corpus_.size())]; }

  // The beginning of one input and the end of another.
  void splice(std::string &input, std::size_t at) {
    const std::string &other = any();
    input = input.substr(0, at) + other.substr(below(other.size() + 1));
  }

  void mutate(std::string &input) {
    static const std::vector<std::string> values = {"0",
                                                    "-1",
                                                    "+1",
                                                    "1e999",
                                                    "1e-999",
                                                    "-0",
                                                    "nan",
                                                    "inf",
                                                    "0x10",
                                                    "010",
                                                    "1.5",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "-9223372036854775808",
                                                    "18446744073709551616",
                                                    "=",
                                                    ":",
                                                    ",",
                                                    " ",
                                                    "\n",
                                                    "\t",
                                                    "/",
                                                    "@",
                                                    "%s%n",
                                                    "",
                                                    "\xff\xff\xff\xff\xff\xff\xff\xff",
                                                    std::string(8, '\0'),
                                                    std::string(300, 'a'),
                                                    std::string(1100, '1')};
    const std::size_t at = below(input.size() + 1), length = below(std::min<std::size_t>(input.size() - at, 16) + 1);
    switch (below(6)) {
      case 0: input.replace(at, length, values[below(values.size())]); break;
      case 1: input.erase(at, length); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.insert(at, 1, static_cast<char>(random_())); break;
      case 4:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      default: splice(input, at);
    }
  }

  const std::vector<std::string> &corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CORPUS SECONDS [SEED]\n", argv[0]);
    return 2;
  }
  __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, keep_aborted);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::strtod(argv[2], nullptr));
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  for (const std::string &input : corpus) run(input);
  Mutator mutator(corpus, argc > 3 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : std::random_device()());
  long long runs = static_cast<long long>(corpus.size());
  for (; !corpus.empty() && std::chrono::steady_clock::now() < end; ++runs) run(mutator.next());
  std::printf("%lld inputs\n", runs);
}
