// Gathers the CPUs and sockets of each rank's threads, and the protocol thresholds of the MPI library.
#include "harness/launch_record.hpp"

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "harness/clocks/test_clock.hpp"
#include "harness/machine/clock.hpp"
#include "harness/machine/cores.hpp"
#include "harness/mpi/control_variables.hpp"
#include "harness/team/location.hpp"
#include "harness/text/json.hpp"

namespace earlybird {

namespace {

std::vector<Location> gather_locations(Team &team, const Crew &crew) {
  std::vector<Location> locations;
  for (const std::string &text : team.gather(to_text({host_name(), crew.cpus()}))) locations.push_back(read_location(text));
  return locations;
}

std::string numbers(const std::set<int> &values) { return json_array(std::vector<int>(values.begin(), values.end())); }

std::string placement_of(int rank, const Location &location) {
  std::set<int> sockets, cpus;
  std::vector<std::string> threads;
  for (const std::vector<Cpu> &own : location.threads) {
    std::set<int> own_cpus;
    for (const Cpu &cpu : own) {
      sockets.insert(cpu.socket);
      own_cpus.insert(cpu.number);
    }
    cpus.insert(own_cpus.begin(), own_cpus.end());
    threads.push_back(numbers(own_cpus));
  }
  JsonObject object;
  object.add("rank", std::to_string(rank)).add("host", json_text(location.host));
  object.add("sockets", numbers(sockets)).add("cpus", numbers(cpus));
  if (threads.size() > 1) object.add("threads", json_array(threads));
  return object.str();
}

// Whether the launcher states that all hosts are virtual hosts of this machine, which share its cores and its clock.
bool hosts_share_machine() {
  const char *value = std::getenv("EARLYBIRD_ONE_MACHINE");
  return value != nullptr && *value != '\0';
}

// Whether a rank has more threads than cores, two ranks are bound to the same single core, or a host has more threads
// than cores of its ranks. Hardware threads of one core count as one core, because they share its resources.
bool more_threads_than_cores(const std::vector<Location> &locations) {
  using Cores = std::set<std::pair<int, int>>;
  std::map<std::string, std::size_t> threads;
  std::map<std::string, Cores> cores;
  std::set<std::pair<std::string, Cores>> used_cores;
  const bool one_machine = hosts_share_machine();
  for (const Location &location : locations) {
    const std::string host = one_machine ? "" : location.host;
    Cores own;
    for (const std::vector<Cpu> &cpus : location.threads) {
      for (const Cpu &cpu : cpus) own.emplace(cpu.socket, cpu.core);
    }
    if (own.size() < location.threads.size()) return true;
    if (own.size() == 1 && !used_cores.emplace(host, own).second) return true;
    threads[host] += location.threads.size();
    cores[host].insert(own.begin(), own.end());
  }
  for (const auto &[host, count] : threads) {
    if (count > cores[host].size()) return true;
  }
  return false;
}

bool one_host(const std::vector<Location> &locations) {
  std::set<std::string> hosts;
  for (const Location &location : locations) hosts.insert(location.host);
  return hosts.size() == 1;
}

bool one_clock(const std::vector<Location> &locations) {
  return test_clocks().empty() && (one_host(locations) || hosts_share_machine() || clock_is_global());
}

}  // namespace

const char *thread_level_name(int thread_level) {
  switch (thread_level) {
    case MPI_THREAD_SINGLE: return "single";
    case MPI_THREAD_FUNNELED: return "funneled";
    case MPI_THREAD_SERIALIZED: return "serialized";
    default: return "multiple";
  }
}

std::string record_launch(Team &team, const Crew &crew, int thread_level) {
  // Waiting ranks yield until it is known whether there are more threads than cores.
  team.set_oversubscribed(true);
  const std::vector<Location> locations = gather_locations(team, crew);
  team.set_oversubscribed(team.broadcast(static_cast<int>(more_threads_than_cores(locations))) != 0);
  team.set_one_clock(team.broadcast(static_cast<int>(one_clock(locations))) != 0);
  team.set_one_host(team.broadcast(static_cast<int>(one_host(locations))) != 0);

  const std::string thresholds = threshold_variables();
  if (team.rank() != 0) return "";
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, version, subversion;
  MPI_Get_library_version(library, &length);
  MPI_Get_version(&version, &subversion);
  std::vector<std::string> placement;
  for (int r = 0; r < team.size(); ++r) placement.push_back(placement_of(r, locations[static_cast<std::size_t>(r)]));
  const ClockQuality clock = measure_clock();
  JsonObject clock_json, object;
  clock_json.add("resolution_s", json_number(clock.resolution_s)).add("overhead_s", json_number(clock.overhead_s));
  object.add("library_version", json_text(std::string(library)));
  object.add("mpi_standard", json_text(std::to_string(version) + "." + std::to_string(subversion)));
  object.add("thread_level", json_text(thread_level_name(thread_level)));
  object.add("clock", clock_json.str());
  object.add("control_variables", thresholds);
  object.add("oversubscribed", json_bool(team.oversubscribed()));
  object.add("placement", json_array(placement));
  return object.str();
}

}  // namespace earlybird
