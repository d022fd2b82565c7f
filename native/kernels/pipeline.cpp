// Pipeline: rank 0 sends rank 1 a buffer whose partitions become ready one after the other on its threads. The kernel
// measures time-to-solution (Gillis et al. 2023): from the start until rank 1 has every partition, minus the computation
// time of the slowest thread. The send methods are measured interleaved; each is a class in methods/.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/computation.hpp"
#include "kernels/methods/registry.hpp"

using namespace earlybird;

namespace {

// The template of figure 3 of Gillis et al. 2023 for one method: start, a barrier of the threads, computation and
// MPI_Pready of each thread's partitions in order, another barrier, wait. On rank 1 the same, if its threads receive, with the
// arrival of each thread's partitions; else only start and wait.
class Template {
 public:
  Template(Transfer &transfer, std::unique_ptr<Method> method, Crew &crew, Computation &computation)
      : transfer_(transfer), method_(std::move(method)), crew_(crew), computation_(computation), share_([this](int thread) {
          transfer_.sends() ? ready(thread) : method_->receive(thread);
        }) {}

  void prepare(int iteration, int round) {
    method_->prepare();
    computation_.prepare(round);
    if (transfer_.sends()) fill(transfer_.buffer.data(), transfer_.size_bytes, content_key(0, 0, iteration));
  }

  void run() {
    computation_.begin();
    method_->start();
    if (transfer_.sends() || transfer_.threads_receive) crew_.run(share_, Crew::Then::stand_by);
    if (transfer_.sends()) method_->all_ready();
    method_->wait();
    computed_s_ = computation_.slowest_s();
  }

  // The computation time of the last `run`.
  double computed_s() const { return computed_s_; }

  bool delivered(int iteration) const {
    return transfer_.sends() || holds(transfer_.buffer.data(), transfer_.size_bytes, content_key(0, 0, iteration));
  }

 private:
  void ready(int thread) {
    const int first = transfer_.first_of(thread), end = transfer_.first_of(thread + 1);
    const bool only_last = computation_.only_last();
    for (int k = first; k < end; ++k) {
      if (!only_last || k == transfer_.num_partitions - 1) computation_.compute(thread, k);
      method_->ready(k);
    }
    method_->all_of_thread_ready(thread);
  }

  Transfer &transfer_;
  const std::unique_ptr<Method> method_;
  Crew &crew_;
  Computation &computation_;
  const std::function<void(int)> share_;
  double computed_s_ = 0;
};

void require_pair(const Team &team) {
  if (team.size() != 2) refuse("pipeline needs exactly 2 ranks");
}

void check_partitions(const Point &point, int num_threads) {
  const long long size_bytes = point.integer("size_bytes"), num_partitions = point.integer("partitions");
  if (num_partitions < 1 || size_bytes < 0 || size_bytes % num_partitions != 0)
    refuse("the request gives size_bytes=" + point.text("size_bytes") + " partitions=" + point.text("partitions") +
           "; give at least 1 partition, and a size that is a multiple of the partitions");
  const std::string threads = std::to_string(num_threads);
  if (num_partitions % num_threads != 0)
    refuse("the request gives partitions=" + point.text("partitions") + " and there are " + threads +
           " threads; give a multiple of " + threads);
  if (point.has("threads") && point.integer("threads") != num_threads)
    refuse("the request gives threads=" + point.text("threads") + " and its options threads=" + threads + "; give the same");
}

// Whether all threads of rank 1 receive, as many as send, or only its main thread.
bool threads_receive(const Point &point) {
  const std::string receivers = point.has("receivers") ? point.text("receivers") : "one";
  if (receivers != "one" && receivers != "threads") refuse("the request gives receivers=" + receivers + "; give one or threads");
  return receivers == "threads";
}

// All methods from the first start on, so many starts of each: what they cost while they adapt. 0: the starts until a method has
// adapted come first, and the stop rule decides.
int fixed_starts(const Point &point) { return point.has("starts") ? point.integer("starts", 1, 1 << 20) : 0; }

void measure(const Task &task) {
  check_partitions(task.point, task.crew.size());
  const int starts = fixed_starts(task.point);
  const auto size_bytes = static_cast<std::size_t>(task.point.integer("size_bytes"));
  Buffer buffer(size_bytes);
  Transfer transfer{task.team,        buffer,
                    size_bytes,       static_cast<int>(task.point.integer("partitions")),
                    task.crew.size(), threads_receive(task.point)};
  const std::unique_ptr<Computation> computation = make_computation(task.point, transfer);

  std::vector<std::unique_ptr<Template>> templates;
  std::vector<Operation> operations;
  for (const std::string &name : task.request.methods) {
    const Kind kind = find_method(name, "pipeline");
    Template &instance = *templates.emplace_back(std::make_unique<Template>(transfer, kind.make(transfer), task.crew,
                                                                            *computation));
    Operation operation;
    operation.method = name;
    operation.settling = starts > 0 ? 0 : kind.settling;
    operation.iterations = starts;
    operation.keep_rank_times = starts > 0;  // the sender's, too: it may end after the receiver
    operation.prepare = [&instance, &task](int iteration) { instance.prepare(iteration, task.sampler.round()); };
    operation.run = [&instance] { instance.run(); };
    operation.check = [&instance](int iteration) { return instance.delivered(iteration); };
    operation.delay_s = [&instance] { return instance.computed_s(); };
    operation.reduction = Reduction::delivery;
    operations.push_back(operation);
  }
  if (operations.empty()) refuse("pipeline needs methods, such as single, many");

  const std::vector<Series> all = task.sampler.take(operations);
  task.crew.run([](int) {});  // ends the spinning of idle threads
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("pipeline", "time_to_solution", task.point, all[k], operations[k], all[k].delivered,
                       computation->requested_s());
  // Both ranks free communicators and windows in the order of creation.
  for (std::unique_ptr<Template> &instance : templates) instance.reset();
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_pair, measure); }
