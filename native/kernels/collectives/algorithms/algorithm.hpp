// Interface of the methods of a collective operation: one call on all ranks.
#pragma once

namespace earlybird {

class Algorithm {
 public:
  Algorithm() = default;
  virtual ~Algorithm() = default;
  Algorithm(const Algorithm &) = delete;
  Algorithm &operator=(const Algorithm &) = delete;

  virtual void run() = 0;
};

}  // namespace earlybird
