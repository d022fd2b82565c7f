// What every method to do a collective operation is: one call on all ranks alike.
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
