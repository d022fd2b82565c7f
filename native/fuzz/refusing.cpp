// Replaces harness/text/refuse.cpp.
#include "fuzz/refusing.hpp"

#include "harness/text/refuse.hpp"

void earlybird::refuse(const std::string &sentence) { throw Refused{sentence}; }
