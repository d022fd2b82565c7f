// What `refuse` does in fuzz targets: it throws, so that the next input can follow.
#pragma once

#include <string>

struct Refused {
  std::string sentence;
};
