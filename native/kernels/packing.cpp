// Packing: what it costs to gather irregular data into a contiguous buffer before it is sent, and to scatter it after it was
// received, by MPI_Pack and MPI_Unpack with a derived datatype and by a loop. The caches are hot, or emptied before every
// timed region.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/caches.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/packed/packed_data.hpp"

using namespace earlybird;

namespace {

class Data {
 public:
  Data(const Team &team, DataLayout layout, int count)
      : team_(team), doubles_(team.comm(), layout, count), packed_(static_cast<std::size_t>(doubles_.packed_bytes())) {}

  void pack() { doubles_.pack(packed_.data()); }
  void unpack() { doubles_.unpack(packed_.data()); }
  void pack_by_loop() { doubles_.pack_by_loop(packed_.data()); }
  void unpack_by_loop() { doubles_.unpack_by_loop(packed_.data()); }

  // New contents of what is read, none of what is written.
  void write(bool packs, int iteration) {
    const std::uint64_t key = content_key(team_.rank(), 0, iteration);
    for (int k = 0; k < doubles_.count(); ++k) {
      doubles_.value(k) = packs ? content_double(key, k) : 0;
      packed()[k] = packs ? 0 : content_double(key, k);
    }
  }

  // Whether every double has moved.
  bool is_moved(int iteration) {
    const std::uint64_t key = content_key(team_.rank(), 0, iteration);
    for (int k = 0; k < doubles_.count(); ++k) {
      if (packed()[k] != content_double(key, k)) return false;
    }
    return doubles_.holds(key);
  }

 private:
  double *packed() { return reinterpret_cast<double *>(packed_.data()); }

  const Team &team_;
  PackedData doubles_;
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

// What empties the caches of this rank's CPUs, if the point requests cold ones.
CacheFlusher *flusher_of(const Task &task) {
  const std::string cache = task.point.text("cache");
  if (cache != "hot" && cache != "cold") refuse("the request gives cache=" + cache + "; give hot or cold");
  return cache == "hot" ? nullptr : &CacheFlusher::of(task.crew.cpus().front());
}

void measure(const Task &task) {
  const long long size_bytes = task.point.integer("size_bytes"), element_bytes = sizeof(double);
  if (size_bytes < element_bytes || size_bytes % element_bytes != 0 || size_bytes > (1 << 28))
    refuse("the request gives size_bytes=" + task.point.text("size_bytes") + "; give a multiple of 8, at most 268435456");
  if (task.request.methods.empty()) refuse("packing needs methods, such as pack, unpack");
  Data data(task.team, data_layout_of(task.point), static_cast<int>(size_bytes / element_bytes));
  CacheFlusher *const flusher = flusher_of(task);

  std::vector<Operation> operations;
  for (const std::string &name : task.request.methods) {
    const Method method = method_of(name);
    Operation operation;
    operation.method = name;
    const auto run = [&data, method](int batch) {
      for (int k = 0; k < batch; ++k) (data.*method.step)();
    };
    operation.cold = flusher != nullptr;
    // A second step would find the data of the first in the caches.
    operation.batch = flusher ? 1 : task.sampler.choose_batch(run);
    operation.prepare = [&data, flusher, method](int iteration) {
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
