// Interface of the send methods: steps that the template of pipeline.cpp calls on both ranks.
#pragma once

#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

// A send method. The main threads of both ranks call `start` and `wait`. In between, each thread of rank 0 calls `ready`
// for its partitions and then `all_of_thread_ready` (which `partitioned` leaves out); after all threads have done so, the
// main thread calls `all_ready`. If threads receive, each thread of rank 1 calls `receive` between `start` and `wait`; else
// its main thread may call `arrived` before `wait`.
// Constructors and destructors are collective.
class Method {
 public:
  explicit Method(Transfer &transfer) : transfer_(transfer) {}
  virtual ~Method() = default;
  Method(const Method &) = delete;
  Method &operator=(const Method &) = delete;

  virtual void prepare() {}  // outside the timed region
  virtual void start() = 0;
  virtual void ready(int partition) = 0;
  virtual void all_of_thread_ready(int /*thread*/) {}
  virtual void all_ready() {}
  // Whether this partition has arrived. False until `wait` returns if partitions arrive together.
  virtual bool arrived(int /*partition*/) { return false; }
  // Returns when what this thread can receive alone has arrived: at once if the main thread receives everything in `wait`
  // (Gillis et al. 2023, table 2).
  virtual void receive(int /*thread*/) {}
  virtual void wait() = 0;

 protected:
  static constexpr int tag = 19;  // the first tag used

  Transfer &transfer_;
};

}  // namespace earlybird
