// Reads /proc and /sys as this process sees them: a container's own limits, and the counters of its network namespace.
#include "kernels/nodes/facts.hpp"

#include <dlfcn.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <mpi.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "harness/text/json.hpp"

namespace earlybird {

namespace {

namespace fs = std::filesystem;

// The first line of a file; empty if it cannot be read.
std::string first_line(const fs::path &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double number_in(const fs::path &path, double otherwise) {
  std::istringstream stream(first_line(path));
  double value = otherwise;
  return stream >> value ? value : otherwise;
}

std::vector<fs::path> entries(const fs::path &folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

double memory_bytes(const std::string &name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string key;
    double value = 0;
    if (stream >> key >> value && key == name + ":") return line.find(" kB") != std::string::npos ? 1024 * value : value;
  }
  return 0;
}

// The least CPU limit of the control group of this process and of those around it, in cores; infinite without one.
double cpu_limit() {
  double limit = INFINITY;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const fs::path root = unified                            ? "/sys/fs/cgroup"
                          : fs::exists("/sys/fs/cgroup/cpu") ? "/sys/fs/cgroup/cpu"
                                                             : "/sys/fs/cgroup/" + controllers;
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      const fs::path folder = root / group.relative_path();
      double quota = -1, period = 0;
      if (unified) std::istringstream(first_line(folder / "cpu.max")) >> quota >> period;
      else quota = number_in(folder / "cpu.cfs_quota_us", -1), period = number_in(folder / "cpu.cfs_period_us", 0);
      if (quota > 0 && period > 0) limit = std::min(limit, quota / period);
      if (!group.has_relative_path()) break;
    }
  }
  return limit;
}

// Variables that change how an MPI communicates, if the process has them. Not those in which a launcher numbers its processes.
std::string settings_json() {
  static const std::vector<std::string> prefixes = {"MPIR_",  "MPICH_", "OMPI_MCA_",  "PRTE_MCA_",       "PMIX_MCA_", "I_MPI_",
                                                    "HYDRA_", "UCX_",   "FI_",        "PSM2_",           "PSM3_",     "OMP_",
                                                    "KMP_",   "GOMP_",  "LD_PRELOAD", "LD_LIBRARY_PATH", "EARLYBIRD_"};
  static const std::vector<std::string> others = {"I_MPI_INFO_",      "I_MPI_PIN_INFO",  "OMPI_MCA_initial_wdir",
                                                  "EARLYBIRD_RECORD", "EARLYBIRD_EXEC_", "EARLYBIRD_HOME"};
  std::map<std::string, std::string> found;
  for (char **entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto begins = [&](const std::string &prefix) { return text.compare(0, prefix.size(), prefix) == 0; };
    if (!std::any_of(prefixes.begin(), prefixes.end(), begins) || std::any_of(others.begin(), others.end(), begins)) continue;
    const std::size_t equals = text.find('=');
    found[text.substr(0, equals)] = text.substr(equals + 1);
  }
  JsonObject object;
  for (const auto &[name, value] : found) object.add(name, json_text(value));
  return object.str();
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return {text, static_cast<std::size_t>(length)};
}

std::string library_file() {
  Dl_info info;
  return dladdr(reinterpret_cast<void *>(&MPI_Init), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// The counters of a section of /proc/net/snmp by name.
std::map<std::string, double> network_counters(const std::string &section) {
  std::ifstream file("/proc/self/net/snmp");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string item;
    if (!(stream >> item) || item != section) continue;
    if (names.empty()) {
      while (stream >> item) names.push_back(item);
      continue;
    }
    std::map<std::string, double> counters;
    double value = 0;
    for (std::size_t k = 0; k < names.size() && stream >> value; ++k) counters[names[k]] = value;
    return counters;
  }
  return {};
}

// Asks the kernel about network interfaces of this process's network namespace; /sys may show those of another one.
class Interfaces {
 public:
  Interfaces() : socket_(socket(AF_INET, SOCK_DGRAM, 0)) {}
  ~Interfaces() {
    if (socket_ >= 0) close(socket_);
  }
  Interfaces(const Interfaces &) = delete;
  Interfaces &operator=(const Interfaces &) = delete;

  std::string json(const std::string &name) const {
    JsonObject object;
    ifreq flags = asking(name), mtu = asking(name);
    if (ioctl(socket_, SIOCGIFMTU, &mtu) == 0) object.add("mtu", std::to_string(mtu.ifr_mtu));
    if (ioctl(socket_, SIOCGIFFLAGS, &flags) == 0) {
      const bool is_up = (flags.ifr_flags & IFF_UP) != 0, carries = (flags.ifr_flags & IFF_RUNNING) != 0;
      object.add("state", json_text(!is_up ? "down" : carries ? "up" : "no carrier"));
    }
    ethtool_cmd settings{};
    settings.cmd = ETHTOOL_GSET;
    if (asked(name, &settings)) {
      const std::uint32_t rate_mbit = ethtool_cmd_speed(&settings);
      if (rate_mbit != 0 && rate_mbit != static_cast<std::uint32_t>(SPEED_UNKNOWN) && rate_mbit != UINT16_MAX)
        object.add("rate_mbit", std::to_string(rate_mbit));
    }
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    if (asked(name, &driver)) object.add("driver", json_text(driver.driver));
    return object.str();
  }

 private:
  static ifreq asking(const std::string &name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
  }

  bool asked(const std::string &name, void *data) const {
    ifreq request = asking(name);
    request.ifr_data = static_cast<char *>(data);
    return ioctl(socket_, SIOCETHTOOL, &request) == 0;
  }

  int socket_;
};

// The network interfaces but the loopback one, and the ports of InfiniBand devices.
std::string interfaces_json() {
  JsonObject object;
  const Interfaces interfaces;
  if (struct if_nameindex *names = if_nameindex()) {
    for (struct if_nameindex *one = names; one->if_name != nullptr; ++one) {
      if (std::strcmp(one->if_name, "lo") != 0) object.add(one->if_name, interfaces.json(one->if_name));
    }
    if_freenameindex(names);
  }
  for (const fs::path &device : entries("/sys/class/infiniband")) {
    for (const fs::path &port : entries(device / "ports")) {
      JsonObject of_port;
      const std::string state = first_line(port / "state");  // such as "4: ACTIVE"
      const std::size_t text = state.find(": ");
      of_port.add("state", json_text(text == std::string::npos ? state : state.substr(text + 2)));
      of_port.add("rate", json_text(first_line(port / "rate")));
      object.add(device.filename().string() + ":" + port.filename().string(), of_port.str());
    }
  }
  return object.str();
}

// The processes and threads that run or wait for a core.
double runnable() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string name;
    double value = 0;
    if (stream >> name >> value && name == "procs_running") return value;
  }
  return 0;
}

// The value that a child process reads from the memory of another one is the same there, because both are copies of this one.
int value_to_read = 1;

pid_t start_process(const std::function<int()> &run) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(run());
}

// While it exists, the end of a child process is kept for waitpid even if this process inherited that it is ignored.
class KeptChildren {
 public:
  KeptChildren() {
    struct sigaction keep = {};
    keep.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &keep, &before_);
  }
  ~KeptChildren() { sigaction(SIGCHLD, &before_, nullptr); }
  KeptChildren(const KeptChildren &) = delete;
  KeptChildren &operator=(const KeptChildren &) = delete;

 private:
  struct sigaction before_;
};

}  // namespace

bool can_copy_once() {
  const KeptChildren kept;
  const pid_t other = start_process([] {
    while (true) pause();
    return 0;
  });
  const pid_t reader = start_process([other] {
    int value = 0;
    const iovec here{&value, sizeof value}, there{&value_to_read, sizeof value_to_read};
    return process_vm_readv(other, &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof value) ? 0 : 1;
  });
  int status = 1;
  if (reader > 0) waitpid(reader, &status, 0);
  if (other > 0) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
  return reader > 0 && other > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<Cpu> usable_cores() {
  const std::vector<Cpu> bound = allowed_cpus();
  std::vector<Cpu> all;
  const long configured = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < configured; ++cpu) all.push_back({cpu, 0, 0});
  bind_to(all);  // the kernel leaves out what the control group does not allow
  std::vector<Cpu> usable = allowed_cpus();
  bind_to(bound);
  std::set<std::pair<int, int>> seen;
  const auto repeats = [&](const Cpu &cpu) { return !seen.emplace(cpu.socket, cpu.core).second; };
  usable.erase(std::remove_if(usable.begin(), usable.end(), repeats), usable.end());
  return usable;
}

double load_of_others() {
  constexpr int readings = 10;
  constexpr std::chrono::milliseconds pause(10);
  double sum = 0;
  for (int k = 0; k < readings; ++k) {
    std::this_thread::sleep_for(pause);
    sum += std::max(runnable() - 1, 0.0);  // without this process, which runs while it reads
  }
  return sum / readings;
}

Segments count_segments() {
  std::map<std::string, double> counters = network_counters("Tcp:");
  return {counters["OutSegs"], counters["RetransSegs"]};
}

std::string device_bytes_json() {
  JsonObject object;
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream name_stream(line.substr(0, colon)), stream(line.substr(colon + 1));
    std::string name;
    std::vector<double> counters;
    name_stream >> name;
    for (double value = 0; stream >> value;) counters.push_back(value);
    constexpr std::size_t received = 0, sent = 8;
    if (counters.size() > sent) object.add(name, json_number(counters[received] + counters[sent]));
  }
  for (const fs::path &device : entries("/sys/class/infiniband")) {
    for (const fs::path &port : entries(device / "ports")) {
      const fs::path counters = port / "counters";
      constexpr double unit_bytes = 4;  // the counters count units of four bytes
      const double units = number_in(counters / "port_rcv_data", 0) + number_in(counters / "port_xmit_data", 0);
      object.add(device.filename().string() + ":" + port.filename().string(), json_number(unit_bytes * units));
    }
  }
  return object.str();
}

Ticks count_ticks() {
  std::istringstream stream(first_line("/proc/stat"));
  std::string name;
  stream >> name;
  constexpr std::size_t steal = 7, guest = 8;  // those from `guest` on are part of others
  Ticks ticks;
  double value = 0;
  for (std::size_t k = 0; k < guest && stream >> value; ++k) {
    ticks.all += value;
    if (k == steal) ticks.stolen = value;
  }
  return ticks;
}

std::string facts_json(bool copies_once, const std::string &more) {
  utsname kernel{};
  uname(&kernel);
  struct statvfs shared{};
  const bool has_shared = statvfs("/dev/shm", &shared) == 0;
  const double limit = cpu_limit();
  std::size_t numa_nodes = 0;
  for (const fs::path &path : entries("/sys/devices/system/node")) {
    const std::string name = path.filename().string();
    if (name.rfind("node", 0) == 0 && name.find_first_not_of("0123456789", 4) == std::string::npos) ++numa_nodes;
  }
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  JsonObject object;
  object.add("kernel", json_text(kernel.release));
  object.add("hardware_threads", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  if (std::isfinite(limit)) object.add("cpu_limit", json_number(limit));
  if (!governor.empty()) object.add("governor", json_text(governor));
  object.add("numa_nodes", std::to_string(std::max<std::size_t>(numa_nodes, 1)));
  object.add("memory_bytes", json_number(memory_bytes("MemTotal")));
  object.add("huge_pages", json_number(memory_bytes("HugePages_Total")));
  const std::string transparent = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = transparent.find('['), close = transparent.find(']');
  if (open != std::string::npos && close != std::string::npos)
    object.add("transparent_huge_pages", json_text(transparent.substr(open + 1, close - open - 1)));
  const double shm_bytes = has_shared ? static_cast<double>(shared.f_blocks) * static_cast<double>(shared.f_frsize) : 0;
  object.add("shm_bytes", json_number(shm_bytes));
  object.add("single_copy", json_bool(copies_once));
  const std::string smt = first_line("/sys/devices/system/cpu/smt/active");
  if (!smt.empty()) object.add("smt", json_text(smt == "1" ? "on" : "off"));
  object.add("interfaces", interfaces_json());
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty()) object.add("ptrace_scope", scope);
  object.add("load", json_number(number_in("/proc/loadavg", 0)));
  object.add("mpi_version", json_text(library_version()));
  object.add("mpi_file", json_text(library_file()));
  object.add("settings", settings_json());
  const std::string text = object.str();
  return more.size() > 2 ? text.substr(0, text.size() - 1) + ", " + more.substr(1) : text;
}

}  // namespace earlybird
