// Asks the kernel for each rank's cores and their sockets, and MPI_T for the thresholds the library tells.
#include "harness/launch_record.hpp"

#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "harness/clock.hpp"
#include "harness/json.hpp"

namespace earlybird {

namespace {

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  // Room for 8192 CPUs: the fixed cpu_set_t ends at 1024.
  constexpr int max_cpus = 8192;
  cpu_set_t *set = CPU_ALLOC(max_cpus);
  const std::size_t set_bytes = CPU_ALLOC_SIZE(max_cpus);
  if (sched_getaffinity(0, set_bytes, set) == 0) {
    for (int cpu = 0; cpu < max_cpus; ++cpu) {
      if (CPU_ISSET_S(cpu, set_bytes, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

int topology_number(int cpu, const char *name) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
  int number = 0;
  file >> number;
  return number;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// "host package:core package:core ..." of this rank: what oversubscription and sockets are counted from.
std::string own_place(const std::vector<int> &cpus) {
  std::ostringstream text;
  text << host_name();
  for (int cpu : cpus) {
    text << ' ' << cpu << ':' << topology_number(cpu, "physical_package_id") << ':' << topology_number(cpu, "core_id");
  }
  return text.str();
}

bool mentions_threshold(std::string name) {
  for (char &c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char *word : {"eager", "rndv", "rendezvous", "threshold"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

// Whole-number control variables that may tell where a protocol ends.
std::string threshold_variables() {
  JsonObject object;
  int provided, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return object.str();
  MPI_T_cvar_get_num(&count);
  for (int k = 0; k < count; ++k) {
    char name[256], description[1024];
    int name_length = sizeof name, description_length = sizeof description;
    int verbosity, bind, scope;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    if (MPI_T_cvar_get_info(k, name, &name_length, &verbosity, &type, &enumeration, description, &description_length,
                            &bind, &scope) != MPI_SUCCESS)
      continue;
    const bool whole = type == MPI_INT || type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG ||
                       type == MPI_UNSIGNED_LONG_LONG;
    if (!whole || bind != MPI_T_BIND_NO_OBJECT || !mentions_threshold(name)) continue;
    MPI_T_cvar_handle handle;
    int elements;
    if (MPI_T_cvar_handle_alloc(k, nullptr, &handle, &elements) != MPI_SUCCESS) continue;
    unsigned long long value = 0;
    if (elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) {
      const long long number = type == MPI_INT ? static_cast<int>(value) : static_cast<long long>(value);
      object.add(name, json_number(number));
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return object.str();
}

std::string placement_of(int rank, const std::string &place) {
  std::istringstream words(place);
  std::string host, word;
  words >> host;
  std::set<int> sockets;
  std::vector<std::string> cpus;
  while (words >> word) {
    int cpu, package, core;
    std::sscanf(word.c_str(), "%d:%d:%d", &cpu, &package, &core);
    cpus.push_back(std::to_string(cpu));
    sockets.insert(package);
  }
  std::vector<std::string> packages;
  for (int package : sockets) packages.push_back(std::to_string(package));
  JsonObject object;
  object.add("rank", std::to_string(rank)).add("host", json_text(host));
  object.add("sockets", json_array(packages)).add("cpus", json_array(cpus));
  return object.str();
}

// Whether two ranks are bound to the same single core, or a host has more ranks than all its ranks' cores together.
// Two hardware threads of one core count as one: they share what is measured.
bool more_ranks_than_cores(const std::vector<std::string> &places) {
  std::map<std::string, int> ranks;
  using Cores = std::set<std::pair<int, int>>;
  std::map<std::string, Cores> cores;
  std::set<std::pair<std::string, Cores>> taken;
  for (const std::string &place : places) {
    std::istringstream words(place);
    std::string host, word;
    words >> host;
    ++ranks[host];
    Cores own;
    while (words >> word) {
      int cpu, package, core;
      std::sscanf(word.c_str(), "%d:%d:%d", &cpu, &package, &core);
      own.emplace(package, core);
    }
    if (own.size() == 1 && !taken.emplace(host, own).second) return true;
    cores[host].insert(own.begin(), own.end());
  }
  for (const auto &[host, count] : ranks) {
    if (static_cast<std::size_t>(count) > cores[host].size()) return true;
  }
  return false;
}

}  // namespace

std::string record_launch(Team &team, int thread_level) {
  // Until it is known whether ranks outnumber cores, waiting ranks yield.
  team.set_oversubscribed(true);
  const std::vector<std::string> places = team.gather(own_place(allowed_cpus()));
  team.set_oversubscribed(team.broadcast(static_cast<int>(more_ranks_than_cores(places))) != 0);

  const std::string thresholds = threshold_variables();
  if (team.rank() != 0) return "";
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, version, subversion;
  MPI_Get_library_version(library, &length);
  MPI_Get_version(&version, &subversion);
  std::vector<std::string> placement;
  for (int r = 0; r < team.size(); ++r) placement.push_back(placement_of(r, places[static_cast<std::size_t>(r)]));
  const char *level = thread_level == MPI_THREAD_SINGLE       ? "single"
                      : thread_level == MPI_THREAD_FUNNELED   ? "funneled"
                      : thread_level == MPI_THREAD_SERIALIZED ? "serialized"
                                                              : "multiple";
  const ClockQuality clock = measure_clock();
  JsonObject clock_json, object;
  clock_json.add("resolution_s", json_number(clock.resolution_s)).add("overhead_s", json_number(clock.overhead_s));
  object.add("library_version", json_text(std::string(library)));
  object.add("mpi_standard", json_text(std::to_string(version) + "." + std::to_string(subversion)));
  object.add("thread_level", json_text(level));
  object.add("clock", clock_json.str());
  object.add("control_variables", thresholds);
  object.add("oversubscribed", json_bool(team.oversubscribed()));
  object.add("placement", json_array(placement));
  return object.str();
}

}  // namespace earlybird
