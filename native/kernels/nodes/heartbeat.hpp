// A thread of each rank that keeps writing what the rank does, so that a rank which is stopped or waits can be found.
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace earlybird {

enum class Stage { starting, waiting_for_all, small_messages, large_messages, many_messages, describing };

class Heartbeat {
 public:
  // Writes to `folder`/beat.HOST until the destruction; whoever started the ranks reads the file and removes it.
  explicit Heartbeat(const std::string &folder);
  ~Heartbeat();
  Heartbeat(const Heartbeat &) = delete;
  Heartbeat &operator=(const Heartbeat &) = delete;

  // What the rank does now, with which other rank; -1 for none.
  void at(Stage stage, int partner = -1) {
    stage_ = static_cast<int>(stage);
    partner_ = partner;
  }

 private:
  void write_all();
  void write(long count) const;

  const std::string path_;
  std::atomic<int> stage_{0}, partner_{-1};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace earlybird
