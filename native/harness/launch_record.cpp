// Gathers the CPUs of each rank's threads and their sockets, and the thresholds that the library tells.
#include "harness/launch_record.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "harness/clock.hpp"
#include "harness/control_variables.hpp"
#include "harness/cores.hpp"
#include "harness/json.hpp"
#include "harness/test_clock.hpp"

namespace earlybird {

namespace {

// Where a rank is: what oversubscription and sockets are counted from.
struct Place {
  std::string host;
  std::vector<std::vector<Cpu>> threads;  // the CPUs of each
};

// "host / cpu:socket:core cpu:socket:core / cpu:socket:core": a slash opens each thread.
std::string written(const Place &place) {
  std::ostringstream text;
  text << place.host;
  for (const std::vector<Cpu> &cpus : place.threads) {
    text << " /";
    for (const Cpu &cpu : cpus) text << ' ' << cpu.number << ':' << cpu.socket << ':' << cpu.core;
  }
  return text.str();
}

Place read_place(const std::string &text) {
  std::istringstream words(text);
  std::string word;
  Place place;
  words >> place.host;
  while (words >> word) {
    Cpu cpu;
    if (std::sscanf(word.c_str(), "%d:%d:%d", &cpu.number, &cpu.socket, &cpu.core) == 3)
      place.threads.back().push_back(cpu);
    else
      place.threads.emplace_back();
  }
  return place;
}

std::vector<Place> gather_places(Team &team, const Crew &crew) {
  std::vector<Place> places;
  for (const std::string &text : team.gather(written({host_name(), crew.cpus()}))) places.push_back(read_place(text));
  return places;
}

std::string numbers(const std::set<int> &values) {
  std::vector<std::string> words;
  for (int value : values) words.push_back(std::to_string(value));
  return json_array(words);
}

std::string placement_of(int rank, const Place &place) {
  std::set<int> sockets, cpus;
  std::vector<std::string> threads;
  for (const std::vector<Cpu> &own : place.threads) {
    std::set<int> own_cpus;
    for (const Cpu &cpu : own) {
      sockets.insert(cpu.socket);
      own_cpus.insert(cpu.number);
    }
    cpus.insert(own_cpus.begin(), own_cpus.end());
    threads.push_back(numbers(own_cpus));
  }
  JsonObject object;
  object.add("rank", std::to_string(rank)).add("host", json_text(place.host));
  object.add("sockets", numbers(sockets)).add("cpus", numbers(cpus));
  if (threads.size() > 1) object.add("threads", json_array(threads));
  return object.str();
}

// Whether the launcher says that all hosts are virtual ones of this machine, which share its cores and its clock.
bool hosts_share_machine() {
  const char *told = std::getenv("EARLYBIRD_ONE_MACHINE");
  return told != nullptr && *told != '\0';
}

// Whether a rank has more threads than cores, two ranks are bound to the same single core, or a host has more threads
// than all its ranks' cores together. Two hardware threads of one core count as one: they share what is measured.
bool more_threads_than_cores(const std::vector<Place> &places) {
  using Cores = std::set<std::pair<int, int>>;
  std::map<std::string, std::size_t> threads;
  std::map<std::string, Cores> cores;
  std::set<std::pair<std::string, Cores>> taken;
  const bool one_machine = hosts_share_machine();
  for (const Place &place : places) {
    const std::string host = one_machine ? "" : place.host;
    Cores own;
    for (const std::vector<Cpu> &cpus : place.threads) {
      for (const Cpu &cpu : cpus) own.emplace(cpu.socket, cpu.core);
    }
    if (own.size() < place.threads.size()) return true;
    if (own.size() == 1 && !taken.emplace(host, own).second) return true;
    threads[host] += place.threads.size();
    cores[host].insert(own.begin(), own.end());
  }
  for (const auto &[host, count] : threads) {
    if (count > cores[host].size()) return true;
  }
  return false;
}

bool one_host(const std::vector<Place> &places) {
  std::set<std::string> hosts;
  for (const Place &place : places) hosts.insert(place.host);
  return hosts.size() == 1;
}

bool one_clock(const std::vector<Place> &places) {
  return test_clocks().empty() && (one_host(places) || hosts_share_machine() || clock_is_global());
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
  // Until it is known whether threads outnumber cores, waiting ranks yield.
  team.set_oversubscribed(true);
  const std::vector<Place> places = gather_places(team, crew);
  team.set_oversubscribed(team.broadcast(static_cast<int>(more_threads_than_cores(places))) != 0);
  team.set_one_clock(team.broadcast(static_cast<int>(one_clock(places))) != 0);
  team.set_one_host(team.broadcast(static_cast<int>(one_host(places))) != 0);

  const std::string thresholds = threshold_variables();
  if (team.rank() != 0) return "";
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, version, subversion;
  MPI_Get_library_version(library, &length);
  MPI_Get_version(&version, &subversion);
  std::vector<std::string> placement;
  for (int r = 0; r < team.size(); ++r) placement.push_back(placement_of(r, places[static_cast<std::size_t>(r)]));
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
