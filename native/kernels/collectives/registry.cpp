// The collective operations and their methods by name.
#include "kernels/collectives/registry.hpp"

#include <map>

#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/collectives/operations/allgather.hpp"
#include "kernels/collectives/operations/allreduce.hpp"
#include "kernels/collectives/operations/alltoall.hpp"
#include "kernels/collectives/operations/barrier.hpp"
#include "kernels/collectives/operations/bcast.hpp"
#include "kernels/collectives/operations/gather.hpp"
#include "kernels/collectives/operations/reduce.hpp"
#include "kernels/collectives/operations/scatter.hpp"

namespace earlybird {

namespace {

struct Entry {
  std::unique_ptr<Collective> (*make)(const Shape &);
  bool has_root = false;
  bool is_reduction = false;
};

template <class Type>
std::unique_ptr<Collective> make(const Shape &shape) {
  return std::make_unique<Type>(shape);
}

const std::map<std::string, Entry> known_operations = {
    {"allgather", {make<Allgather>}},       {"allreduce", {make<Allreduce>, false, true}},
    {"alltoall", {make<Alltoall>}},         {"barrier", {make<Barrier>}},
    {"bcast", {make<Bcast>, true}},         {"gather", {make<Gather>, true}},
    {"reduce", {make<Reduce>, true, true}}, {"scatter", {make<Scatter>, true}},
};

const Entry &find_operation(const std::string &operation) {
  const auto entry = known_operations.find(operation);
  if (entry == known_operations.end())
    refuse("the request gives operation=" + operation + "; give one of " + names_of(known_operations) + " and reduce_local");
  return entry->second;
}

// The MPI's own call; the communicator or the environment may select its algorithm.
class MpiCall : public Algorithm {
 public:
  MpiCall(Collective &collective, MPI_Comm comm) : collective_(collective), comm_(comm) {}
  void run() override { collective_.call(comm_); }

 private:
  Collective &collective_;
  MPI_Comm comm_;
};

}  // namespace

bool has_root(const std::string &operation) { return find_operation(operation).has_root; }

bool is_reduction(const std::string &operation) { return find_operation(operation).is_reduction; }

std::unique_ptr<Collective> make_collective(const std::string &operation, const Shape &shape) {
  return find_operation(operation).make(shape);
}

std::unique_ptr<Algorithm> make_algorithm(const MethodName &name, const std::string &operation, Collective &collective,
                                          MPI_Comm comm) {
  if (!name.is_own()) return std::make_unique<MpiCall>(collective, comm);
  const std::map<std::string, Collective::Maker> own = collective.own_algorithms();
  const auto entry = own.find(name.algorithm);
  if (entry == own.end())
    refuse("there is no algorithm " + name.algorithm + " for " + operation +
           (own.empty() ? "; give algorithms of the MPI" : "; give some of " + names_of(own)) + " or default");
  if (name.is_segmented && name.algorithm != "own-pipeline" && name.algorithm != "own-binomial")
    refuse("the method " + name.text + " gives a segment size, but " + name.algorithm + " has no segments; give " + name.algorithm);
  return entry->second(name, comm);
}

}  // namespace earlybird
