// Packing: what it costs to gather irregular data into a contiguous buffer before it is sent, and to scatter it after it was
// received, by MPI_Pack and MPI_Unpack with a derived datatype and by a loop. The data are doubles: contiguous, one in each
// cache line (strided), or at irregular distances of one cache line on average (indexed). The caches are hot, or emptied
// before every timed region.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/caches.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int distance = 8;  // doubles from one to the next on average: those of a cache line

enum class Layout { contiguous, strided, indexed };

Layout layout_of(const Point &point) {
  static const std::map<std::string, Layout> known = {
      {"contiguous", Layout::contiguous}, {"strided", Layout::strided}, {"indexed", Layout::indexed}};
  const auto found = known.find(point.text("packing"));
  if (found == known.end()) refuse("the request gives packing=" + point.text("packing") + "; give one of " + names_of(known));
  return found->second;
}

// The index of each double: ascending, and within its own `distance` doubles if they are irregular.
std::vector<int> indices_of(Layout layout, int count) {
  std::vector<int> indices;
  for (int k = 0; k < count; ++k) {
    const auto shift = static_cast<int>(content_word(1, static_cast<std::size_t>(k)) >> 61);  // 0 to 7
    indices.push_back(layout == Layout::contiguous ? k : k * distance + (layout == Layout::indexed ? shift : 0));
  }
  return indices;
}

class Data {
 public:
  Data(Team &team, Layout layout, int count)
      : team_(team),
        layout_(layout),
        count_(count),
        indices_(indices_of(layout, count)),
        values_(sizeof(double) * static_cast<std::size_t>(count) * (layout == Layout::contiguous ? 1 : distance)),
        type_(make_type()),
        packed_bytes_(pack_size()),
        packed_(static_cast<std::size_t>(packed_bytes_)) {}
  ~Data() { MPI_Type_free(&type_); }
  Data(const Data &) = delete;
  Data &operator=(const Data &) = delete;

  void pack() {
    int position = 0;
    MPI_Pack(values_.data(), 1, type_, packed_.data(), packed_bytes_, &position, team_.comm());
  }
  void unpack() {
    int position = 0;
    MPI_Unpack(packed_.data(), packed_bytes_, &position, values_.data(), 1, type_, team_.comm());
  }
  void pack_by_loop() {
    const double *const from = values();
    double *const to = packed();
    switch (layout_) {
      case Layout::contiguous: std::memcpy(to, from, sizeof(double) * static_cast<std::size_t>(count_)); break;
      case Layout::strided:
        for (int k = 0; k < count_; ++k) to[k] = from[k * distance];
        break;
      case Layout::indexed:
        for (int k = 0; k < count_; ++k) to[k] = from[indices_[static_cast<std::size_t>(k)]];
        break;
    }
  }
  void unpack_by_loop() {
    const double *const from = packed();
    double *const to = values();
    switch (layout_) {
      case Layout::contiguous: std::memcpy(to, from, sizeof(double) * static_cast<std::size_t>(count_)); break;
      case Layout::strided:
        for (int k = 0; k < count_; ++k) to[k * distance] = from[k];
        break;
      case Layout::indexed:
        for (int k = 0; k < count_; ++k) to[indices_[static_cast<std::size_t>(k)]] = from[k];
        break;
    }
  }

  // New contents of what is read, none of what is written.
  void write(bool packs, int iteration) {
    const std::uint64_t key = content_key(team_.rank(), 0, iteration);
    for (int k = 0; k < count_; ++k) {
      value(k) = packs ? static_cast<double>(content_word(key, static_cast<std::size_t>(k)) >> 12) : 0;
      packed()[k] = packs ? 0 : static_cast<double>(content_word(key, static_cast<std::size_t>(k)) >> 12);
    }
  }

  // Whether every double has moved.
  bool is_moved(int iteration) {
    const std::uint64_t key = content_key(team_.rank(), 0, iteration);
    for (int k = 0; k < count_; ++k) {
      const auto expected = static_cast<double>(content_word(key, static_cast<std::size_t>(k)) >> 12);
      if (value(k) != expected || packed()[k] != expected) return false;
    }
    return true;
  }

 private:
  double *values() { return reinterpret_cast<double *>(values_.data()); }
  double *packed() { return reinterpret_cast<double *>(packed_.data()); }
  double &value(int k) { return values()[indices_[static_cast<std::size_t>(k)]]; }

  MPI_Datatype make_type() const {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (layout_ == Layout::contiguous) MPI_Type_contiguous(count_, MPI_DOUBLE, &type);
    if (layout_ == Layout::strided) MPI_Type_vector(count_, 1, distance, MPI_DOUBLE, &type);
    if (layout_ == Layout::indexed) MPI_Type_create_indexed_block(count_, 1, indices_.data(), MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
  }
  int pack_size() const {
    int size_bytes = 0;
    MPI_Pack_size(1, type_, team_.comm(), &size_bytes);
    return size_bytes;
  }

  Team &team_;
  const Layout layout_;
  const int count_;
  const std::vector<int> indices_;
  Buffer values_;
  MPI_Datatype type_;
  const int packed_bytes_;
  Buffer packed_;
};

using Step = void (Data::*)();

struct Method {
  Step step;
  bool packs;
};

Method method_of(const std::string &name) {
  static const std::map<std::string, Method> known = {{"pack", {&Data::pack, true}},
                                                      {"unpack", {&Data::unpack, false}},
                                                      {"loop-pack", {&Data::pack_by_loop, true}},
                                                      {"loop-unpack", {&Data::unpack_by_loop, false}}};
  const auto found = known.find(name);
  if (found == known.end()) refuse("packing has no method " + name + "; give some of " + names_of(known));
  return found->second;
}

// Empties the caches of this rank's CPUs, if the point requests cold ones.
std::unique_ptr<CacheFlusher> flusher_of(const Task &task) {
  const std::string cache = task.point.text("cache");
  if (cache != "hot" && cache != "cold") refuse("the request gives cache=" + cache + "; give hot or cold");
  return cache == "hot" ? nullptr : std::make_unique<CacheFlusher>(task.crew.cpus().front());
}

void measure(const Task &task) {
  const long long size_bytes = task.point.integer("size_bytes"), element_bytes = sizeof(double);
  if (size_bytes < element_bytes || size_bytes % element_bytes != 0 || size_bytes > (1 << 28))
    refuse("the request gives size_bytes=" + task.point.text("size_bytes") + "; give a multiple of 8, at most 268435456");
  if (task.request.methods.empty()) refuse("packing needs methods, such as pack, unpack");
  Data data(task.team, layout_of(task.point), static_cast<int>(size_bytes / element_bytes));
  const std::unique_ptr<CacheFlusher> flusher = flusher_of(task);

  std::vector<Operation> operations;
  for (const std::string &name : task.request.methods) {
    const Method method = method_of(name);
    Operation operation;
    operation.method = name;
    const auto run = [&data, method](int batch) {
      for (int k = 0; k < batch; ++k) (data.*method.step)();
    };
    // A second step would find the data of the first in the caches.
    operation.batch = flusher ? 1 : task.sampler.choose_batch(run);
    operation.prepare = [&data, &flusher, method](int iteration) {
      data.write(method.packs, iteration);
      if (flusher) flusher->flush();
    };
    operation.run = [run, batch = operation.batch] { run(batch); };
    operation.check = [&data](int iteration) { return data.is_moved(iteration); };
    operations.push_back(operation);
  }
  const std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("packing", "time_per_step", task.point, all[k], operations[k], all[k].delivered);
}

}  // namespace

int main(int argc, char **argv) {
  return kernel_main(argc, argv, [](const Team &) {}, measure);
}
