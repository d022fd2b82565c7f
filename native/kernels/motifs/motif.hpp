// Measures a motif, an application reduced to its computation and communication, in several styles.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "kernels/motifs/registry.hpp"

namespace earlybird {

// What a rank sends in one `run`.
struct Traffic {
  double bytes = 0, messages = 0, partitions = 0;

  Traffic &operator+=(const Traffic &other);
};

// What `style` sends of `edges` in one step.
Traffic traffic_of(const Style &style, const Edges &edges);

// A motif in one style.
class Motif {
 public:
  Motif() = default;
  virtual ~Motif() = default;
  Motif(const Motif &) = delete;
  Motif &operator=(const Motif &) = delete;

  virtual void prepare(int round) = 0;  // outside the timed region
  virtual void run() = 0;
  // Of the last `run` on this rank: computation, communication, waiting.
  virtual const std::vector<double> &split_s() const = 0;
  // Starts again from known cells and compares what this rank computes with a serial computation. Collective.
  virtual bool is_correct() = 0;
  virtual Traffic traffic() const = 0;
  // How often to call `run` until every request that it uses has been started `num_starts` times.
  virtual int runs_until(int num_starts) const = 0;
};

// The partitions of the point, of all threads of a rank together; ends the program with a message unless they are a multiple
// of the threads, or if `may_share`, a divisor of them, and at most `most`, the number of `what`.
int read_partitions(const Task &task, int most, const std::string &what, bool may_share = false);

// Whether the value of `key` is yes; ends the program with a message if it is neither yes nor no.
bool read_yes(const Point &point, const std::string &key);

// Takes and writes the samples of `kernel`, interleaved, of the motif that `make` makes for each style of the request.
void measure_motif(const Task &task, const std::string &kernel,
                   const std::function<std::unique_ptr<Motif>(const StyleKind &)> &make);

// The main program of a motif. MPI is initialized with MPI_THREAD_MULTIPLE if the request has a style that is of that level,
// also with one thread.
int motif_main(int argc, char **argv, const std::function<void(const Task &)> &measure);

}  // namespace earlybird
