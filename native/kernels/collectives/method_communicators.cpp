// Sets the control variables of a method on every rank, then creates its communicator.
#include "kernels/collectives/method_communicators.hpp"

namespace earlybird {

MethodCommunicators::MethodCommunicators(Team &team, const Request &request)
    : methods_(request.methods), options_(request.methods.size()), last_(request.methods.size()) {
  const std::map<std::string, MethodOptions> &by_method = request.control_variables;
  if (!by_method.empty()) variables_ = std::make_unique<ControlVariables>();
  for (std::size_t method = 0; method < methods_.size(); ++method) {
    if (const auto entry = by_method.find(methods_[method]); entry != by_method.end()) options_[method] = entry->second;
  }
  before_ = complete(&MethodOptions::at_creation);
  complete(&MethodOptions::at_call);
  for (std::size_t method = 0; method < methods_.size(); ++method) {
    write(options_[method].at_creation, method);
    communicators_.push_back(std::make_unique<Duplicate>(team.comm()));
  }
  write(before_, 0);
}

MPI_Comm MethodCommunicators::of(std::size_t method, const std::string &name, const Topology &topology) {
  std::unique_ptr<Graph> &graph = graphs_[{method, name}];
  if (!graph) {
    write(options_[method].at_creation, method);
    graph = std::make_unique<Graph>(of(method), topology);
    write(before_, 0);
  }
  return graph->comm();
}

MethodCommunicators::Graph::Graph(MPI_Comm comm, const Topology &topology) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const std::vector<int> sources = topology.sources(rank), &destinations = topology.destinations(rank);
  // Without reordering, so that ranks stay where the launcher placed them.
  MPI_Dist_graph_create_adjacent(comm, static_cast<int>(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                 static_cast<int>(destinations.size()), destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &comm_);
}

// For each variable that some method sets, assigns its current value to the methods that do not set it. Returns the
// current values.
Assignments MethodCommunicators::complete(Assignments MethodOptions::*when) {
  Assignments current;
  for (std::size_t method = 0; method < methods_.size(); ++method) {
    for (const auto &assignment : options_[method].*when) {
      const std::string &name = assignment.first;
      if (current.count(name) == 0) current[name] = variables_->read(name, source(method));
    }
  }
  for (MethodOptions &options : options_) (options.*when).insert(current.begin(), current.end());
  return current;
}

void MethodCommunicators::write(const Assignments &assignments, std::size_t method) {
  for (const auto &[name, value] : assignments) variables_->write(name, value, source(method));
}

void MethodCommunicators::begin(std::size_t method) {
  if (method == last_) return;
  last_ = method;
  write(options_[method].at_call, method);
}

}  // namespace earlybird
