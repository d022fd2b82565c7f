// A communicator for each method, and one for each method and topology, created with the control variables that select the
// method.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/mpi/control_variables.hpp"
#include "harness/mpi/duplicate.hpp"
#include "harness/request/request.hpp"
#include "harness/team/team.hpp"
#include "kernels/collectives/parts/topology.hpp"

namespace earlybird {

// A method does not inherit variables from another: if the request sets a variable for some methods, it has its
// previous value for the other methods, and again after all communicators are created.
class MethodCommunicators {
 public:
  // Constructor and destructor are collective.
  MethodCommunicators(Team &team, const Request &request);

  MPI_Comm of(std::size_t method) const { return communicators_[method]->comm(); }

  // The communicator of `method` with `topology`, known by `name`: collective when the name is new.
  MPI_Comm of(std::size_t method, const std::string &name, const Topology &topology);

  // Call it before `method` runs, outside the timed region: writes the variables that take effect in calls, if the previous
  // call was of another method.
  void begin(std::size_t method);

 private:
  // A communicator with a distributed graph topology.
  class Graph {
   public:
    Graph(MPI_Comm comm, const Topology &topology);
    ~Graph() { MPI_Comm_free(&comm_); }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    MPI_Comm comm() const { return comm_; }

   private:
    MPI_Comm comm_ = MPI_COMM_NULL;
  };

  Assignments complete(Assignments MethodOptions::*when);
  void write(const Assignments &assignments, std::size_t method);
  std::string source(std::size_t method) const { return "the control variables of the method " + methods_[method]; }

  const std::vector<std::string> methods_;
  std::unique_ptr<ControlVariables> variables_;  // null if no method has control variables
  std::vector<MethodOptions> options_;           // by method
  Assignments before_;  // the variables of the first kind as they were
  std::vector<std::unique_ptr<Duplicate>> communicators_;
  std::map<std::pair<std::size_t, std::string>, std::unique_ptr<Graph>> graphs_;  // by method and topology
  std::size_t last_;
};

}  // namespace earlybird
