// Each line replaces the one before it; the file is opened for each, so that other nodes see it on a network file system.
#include "kernels/nodes/heartbeat.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "harness/machine/cores.hpp"

namespace earlybird {

namespace {

constexpr std::chrono::milliseconds interval(250), step(10);

std::string path_in(const std::string &folder) { return folder + "/beat." + host_name(); }

}  // namespace

Heartbeat::Heartbeat(const std::string &folder) : path_(path_in(folder)), thread_([this] { write_all(); }) {}

Heartbeat::~Heartbeat() {
  ended_ = true;
  thread_.join();
}

void Heartbeat::write_all() {
  for (long count = 1; !ended_; ++count) {
    write(count);
    for (auto slept = step; slept < interval && !ended_; slept += step) std::this_thread::sleep_for(step);
  }
}

void Heartbeat::write(long count) const {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT, 0644);
  if (file < 0) return;
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%10ld %3d %10d\n", count, stage_.load(), partner_.load());
  if (pwrite(file, line, static_cast<std::size_t>(length), 0) != length) unlink(path_.c_str());
  close(file);
}

}  // namespace earlybird
