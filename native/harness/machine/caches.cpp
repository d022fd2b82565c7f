// Reads the caches' sizes from /sys. Caches are emptied by reading other memory, which needs no special instruction and
// empties those of all levels, and not only of the message buffer.
#include "harness/machine/caches.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "harness/machine/clock.hpp"
#include "harness/text/numbers.hpp"

namespace earlybird {

namespace {

constexpr std::size_t line_bytes = 64;
// If /sys describes no caches, as in some virtual machines.
constexpr std::size_t assumed_private_bytes = 4 << 20, assumed_shared_bytes = 64 << 20;
// The lines of the probe are on different pages, so that no prefetcher loads them.
constexpr std::size_t num_probes = 256, probe_step_bytes = 4096 + line_bytes, probe_stride = 89;

std::string read_line(const std::string &path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

// "32768K" and "32M" in bytes; 0 for other text.
std::size_t bytes_of(const std::string &text) {
  const std::size_t unit = text.find_first_of("KM");
  const auto number = static_cast<std::size_t>(read_integer(text.substr(0, unit)).value_or(0));
  return unit == std::string::npos ? number : text[unit] == 'M' ? number << 20 : number << 10;
}

// The number of CPUs in a list such as "0-3,8", and the first one.
struct CpuList {
  int count = 0, first = 0;
};
CpuList cpus_of(const std::string &text) {
  CpuList list;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t dash = item.find('-');
    const auto low = static_cast<int>(read_integer(item.substr(0, dash)).value_or(0));
    const auto high = dash == std::string::npos ? low : static_cast<int>(read_integer(item.substr(dash + 1)).value_or(low));
    if (list.count == 0) list.first = low;
    list.count += high - low + 1;
    at = end + 1;
  }
  return list;
}

int num_siblings(int cpu) {
  const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
  return std::max(1, cpus_of(read_line(path)).count);
}

}  // namespace

CacheSizes cache_sizes(int cpu) {
  CacheSizes sizes;
  sizes.shared_with = cpu;
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index);
    const std::string type = read_line(cache + "/type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const std::size_t size_bytes = bytes_of(read_line(cache + "/size"));
    const CpuList sharing = cpus_of(read_line(cache + "/shared_cpu_list"));
    if (sharing.count <= num_siblings(cpu)) sizes.private_bytes = std::max(sizes.private_bytes, size_bytes);
    if (size_bytes > sizes.shared_bytes) {
      sizes.shared_bytes = size_bytes;
      sizes.shared_with = sharing.first;
    }
  }
  return sizes;
}

CacheFlusher::CacheFlusher(const std::vector<Cpu> &cpus)
    : before_(allowed_cpus()), chain_(num_probes * probe_step_bytes / sizeof(chain_[0])) {
  std::size_t most_bytes = 0;
  std::set<int> shared;
  for (const Cpu &cpu : cpus) {
    CacheSizes sizes = cache_sizes(cpu.number);
    if (sizes.shared_bytes == 0) sizes = {assumed_private_bytes, assumed_shared_bytes, cpu.socket};
    // One CPU empties the cache that several share; the others empty their own.
    const bool first = shared.insert(sizes.shared_with).second;
    places_.push_back({cpu, 2 * (first ? sizes.shared_bytes + sizes.private_bytes : sizes.private_bytes)});
    most_bytes = std::max(most_bytes, places_.back().read_bytes);
  }
  memory_.assign(most_bytes / sizeof(memory_[0]), 1);

  const std::size_t step = probe_step_bytes / sizeof(chain_[0]);
  for (std::size_t k = 0; k < num_probes; ++k)
    chain_[k * step] = static_cast<std::uint32_t>((k + probe_stride) % num_probes * step);
}

CacheFlusher &CacheFlusher::of(const std::vector<Cpu> &cpus) {
  static std::map<std::vector<int>, CacheFlusher> flushers;
  std::vector<int> numbers;
  for (const Cpu &cpu : cpus) numbers.push_back(cpu.number);
  const auto known = flushers.find(numbers);
  return known != flushers.end() ? known->second : flushers.try_emplace(numbers, cpus).first->second;
}

void CacheFlusher::flush() {
  for (const Place &place : places_) {
    bind_to({place.cpu});
    for (std::size_t k = 0; k < place.read_bytes / sizeof(memory_[0]); k += line_bytes / sizeof(memory_[0])) sum_ += memory_[k];
  }
  bind_to(before_);
  *static_cast<volatile std::uint64_t *>(&sum_) = sum_;
}

double CacheFlusher::probe_hot_s() {
  chase_s();
  return chase_s();
}

double CacheFlusher::probe_cold_s() { return chase_s(); }

double CacheFlusher::chase_s() {
  const double begin_s = now_s();
  std::uint32_t at = 0;
  for (std::size_t k = 0; k < num_probes; ++k) at = chain_[at];
  const double end_s = now_s();
  sum_ += at;
  return (end_s - begin_s) / num_probes;
}

}  // namespace earlybird
