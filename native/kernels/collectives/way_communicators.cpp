// Writes a way's variables on every rank, then makes its communicator.
#include "kernels/collectives/way_communicators.hpp"

namespace earlybird {

WayCommunicators::WayCommunicators(Team &team, const CommandLine &line)
    : ways_(line.ways), settings_(line.ways.size()), last_(line.ways.size()) {
  if (!line.settings.empty()) {
    const std::map<std::string, WaySettings> given = read_settings(line.settings, ways_);
    variables_ = std::make_unique<ControlVariables>();
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (const auto found = given.find(ways_[way]); found != given.end()) settings_[way] = found->second;
    }
  }
  const Assignments before = complete(&WaySettings::at_birth);
  complete(&WaySettings::at_call);
  for (std::size_t way = 0; way < ways_.size(); ++way) {
    write(settings_[way].at_birth, way);
    all_.push_back(std::make_unique<Duplicate>(team.comm()));
  }
  write(before, 0);
}

// Gives to every way, for each variable that any way sets, the value of now where it sets none. Returns those of now.
Assignments WayCommunicators::complete(Assignments WaySettings::*when) {
  Assignments now;
  for (std::size_t way = 0; way < ways_.size(); ++way) {
    for (const auto &given : settings_[way].*when) {
      if (now.count(given.first) == 0) now[given.first] = variables_->read(given.first, whose(way));
    }
  }
  for (WaySettings &settings : settings_) (settings.*when).insert(now.begin(), now.end());
  return now;
}

void WayCommunicators::write(const Assignments &assignments, std::size_t way) {
  for (const auto &[name, value] : assignments) variables_->write(name, value, whose(way));
}

void WayCommunicators::begin(std::size_t way) {
  if (way == last_) return;
  last_ = way;
  write(settings_[way].at_call, way);
}

}  // namespace earlybird
