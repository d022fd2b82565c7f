// Interface of a collective operation: its buffers, the MPI's call, our own algorithms, and the check.
#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/team/team.hpp"
#include "kernels/collectives/algorithms/algorithm.hpp"
#include "kernels/collectives/algorithms/method_name.hpp"
#include "kernels/collectives/parts/persistent_calls.hpp"
#include "kernels/collectives/parts/topology.hpp"

namespace earlybird {

// The parameters of a point.
struct Shape {
  Team &team;
  std::size_t size_bytes;  // of the whole buffer or, if each pair of ranks has a block, of one block; with counts, the mean
  int root = 0;
  double skew = 1;                     // of the counts: largest block divided by the mean
  const Topology *topology = nullptr;  // of neighbourhood collectives

  bool at_root() const { return team.rank() == root; }
  int count() const { return static_cast<int>(size_bytes); }
  std::size_t all_blocks_bytes() const { return static_cast<std::size_t>(team.size()) * size_bytes; }
};

class Collective {
 public:
  using Maker = std::function<std::unique_ptr<Algorithm>(const MethodName &, MPI_Comm)>;

  // Each rank contributes `in_bytes` and receives `out_bytes`.
  Collective(const Shape &shape, std::size_t in_bytes, std::size_t out_bytes) : shape_(shape), in_(in_bytes), out_(out_bytes) {}
  virtual ~Collective() = default;
  Collective(const Collective &) = delete;
  Collective &operator=(const Collective &) = delete;

  // Writes the contribution of this rank in `iteration`. The output buffer keeps data of an earlier iteration.
  virtual void prepare(int iteration) = 0;

  // Calls the MPI's own implementation.
  virtual void call(MPI_Comm comm) = 0;

  // Calls the MPI's initialisation of the persistent operation. The MPI must have persistent collectives.
  virtual void init(MPI_Comm comm, MPI_Request *request) = 0;

  // Whether this rank has the right result.
  virtual bool received(int iteration) const = 0;

  // Our own algorithms by name. They end the program for invalid segment sizes.
  virtual std::map<std::string, Maker> own_algorithms() { return {}; }

 protected:
  const Shape shape_;
  Buffer in_, out_;
};

}  // namespace earlybird
