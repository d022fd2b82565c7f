// The collective operations and their methods by name.
#include "kernels/collectives/registry.hpp"

#include <map>

#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/collectives/operations/allgather.hpp"
#include "kernels/collectives/operations/allgatherv.hpp"
#include "kernels/collectives/operations/allreduce.hpp"
#include "kernels/collectives/operations/alltoall.hpp"
#include "kernels/collectives/operations/alltoallv.hpp"
#include "kernels/collectives/operations/barrier.hpp"
#include "kernels/collectives/operations/bcast.hpp"
#include "kernels/collectives/operations/gather.hpp"
#include "kernels/collectives/operations/neighbor_allgather.hpp"
#include "kernels/collectives/operations/neighbor_alltoall.hpp"
#include "kernels/collectives/operations/neighbor_alltoallv.hpp"
#include "kernels/collectives/operations/reduce.hpp"
#include "kernels/collectives/operations/scatter.hpp"
#include "kernels/collectives/persistent_call.hpp"

namespace earlybird {

namespace {

struct Entry {
  std::unique_ptr<Collective> (*make)(const Shape &);
  enum Trait : unsigned { root = 1, reduction = 2, counts = 4, topology = 8 };
  unsigned traits = 0;
};

template <class Type>
std::unique_ptr<Collective> make(const Shape &shape) {
  return std::make_unique<Type>(shape);
}

const std::map<std::string, Entry> known_operations = {
    {"allgather", {make<Allgather>}},
    {"allgatherv", {make<Allgatherv>, Entry::counts}},
    {"allreduce", {make<Allreduce>, Entry::reduction}},
    {"alltoall", {make<Alltoall>}},
    {"alltoallv", {make<Alltoallv>, Entry::counts}},
    {"barrier", {make<Barrier>}},
    {"bcast", {make<Bcast>, Entry::root}},
    {"gather", {make<Gather>, Entry::root}},
    {"neighbor_allgather", {make<NeighborAllgather>, Entry::topology}},
    {"neighbor_alltoall", {make<NeighborAlltoall>, Entry::topology}},
    {"neighbor_alltoallv", {make<NeighborAlltoallv>, Entry::topology | Entry::counts}},
    {"reduce", {make<Reduce>, Entry::root | Entry::reduction}},
    {"scatter", {make<Scatter>, Entry::root}},
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

bool has_root(const std::string &operation) { return (find_operation(operation).traits & Entry::root) != 0; }

bool is_reduction(const std::string &operation) { return (find_operation(operation).traits & Entry::reduction) != 0; }

bool has_counts(const std::string &operation) { return (find_operation(operation).traits & Entry::counts) != 0; }

bool has_topology(const std::string &operation) { return (find_operation(operation).traits & Entry::topology) != 0; }

std::unique_ptr<Collective> make_collective(const std::string &operation, const Shape &shape) {
  return find_operation(operation).make(shape);
}

std::unique_ptr<Algorithm> make_algorithm(const MethodName &name, const std::string &operation, Collective &collective,
                                          MPI_Comm comm) {
  if (name.is_persistent()) {
    if (!has_persistent_collectives())
      refuse("the method " + name.text +
             " needs the persistent collectives of MPI 4.0, which this MPI does not have; give default");
    return std::make_unique<PersistentCall>(collective, comm);
  }
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
