// Replaces harness/refuse.cpp.
#include "fuzz/refusing.hpp"

#include "harness/refuse.hpp"

void earlybird::refuse(const std::string &sentence) { throw Refused{sentence}; }
