// Writes a method's variables on every rank, then makes its communicator.
#include "kernels/collectives/method_communicators.hpp"

namespace earlybird {

MethodCommunicators::MethodCommunicators(Team &team, const CommandLine &line)
    : methods_(line.methods), settings_(line.methods.size()), last_(line.methods.size()) {
  if (!line.settings.empty()) {
    const std::map<std::string, MethodSettings> given = read_settings(line.settings, methods_);
    variables_ = std::make_unique<ControlVariables>();
    for (std::size_t method = 0; method < methods_.size(); ++method) {
      if (const auto found = given.find(methods_[method]); found != given.end()) settings_[method] = found->second;
    }
  }
  const Assignments before = complete(&MethodSettings::at_birth);
  complete(&MethodSettings::at_call);
  for (std::size_t method = 0; method < methods_.size(); ++method) {
    write(settings_[method].at_birth, method);
    all_.push_back(std::make_unique<Duplicate>(team.comm()));
  }
  write(before, 0);
}

// Gives to every method, for each variable that any method sets, the value of now where it sets none. Returns those of now.
Assignments MethodCommunicators::complete(Assignments MethodSettings::*when) {
  Assignments now;
  for (std::size_t method = 0; method < methods_.size(); ++method) {
    for (const auto &given : settings_[method].*when) {
      if (now.count(given.first) == 0) now[given.first] = variables_->read(given.first, whose(method));
    }
  }
  for (MethodSettings &settings : settings_) (settings.*when).insert(now.begin(), now.end());
  return now;
}

void MethodCommunicators::write(const Assignments &assignments, std::size_t method) {
  for (const auto &[name, value] : assignments) variables_->write(name, value, whose(method));
}

void MethodCommunicators::begin(std::size_t method) {
  if (method == last_) return;
  last_ = method;
  write(settings_[method].at_call, method);
}

}  // namespace earlybird
