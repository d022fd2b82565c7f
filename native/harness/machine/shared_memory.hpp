// Which shared memory of its node a rank has, for whoever removes what a job that failed has left.
#pragma once

#include <string>

namespace earlybird {

// Appends the path of each file below /dev/shm that this process has mapped, one to a line, to the file `path`, if that is
// there: the process that started the ranks has made it. Ranks may end, or be killed, before anybody can look at them.
void note_shared_memory(const std::string &path);

}  // namespace earlybird
