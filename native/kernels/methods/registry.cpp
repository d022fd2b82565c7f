// What each name means, and what the running MPI must have for it.
#include "kernels/methods/registry.hpp"

#include <map>

#include "harness/command_line.hpp"
#include "harness/partitioned.hpp"
#include "kernels/methods/many.hpp"
#include "kernels/methods/partitioned.hpp"
#include "kernels/methods/rma_fence.hpp"
#include "kernels/methods/rma_many_active.hpp"
#include "kernels/methods/rma_many_passive.hpp"
#include "kernels/methods/rma_single_active.hpp"
#include "kernels/methods/rma_single_passive.hpp"
#include "kernels/methods/single.hpp"
#include "kernels/methods/stream.hpp"

namespace earlybird {

namespace {

// libearlybird before it has learned anything: its first plan is made in a request's second start and followed from the
// third on.
constexpr int starts_before_plan = 2;
// libearlybird tries cuts in the first 35 starts of a request, or in those after the 32nd where an earlier request has told
// it what to begin with. It tries once more from start 128 on.
constexpr int starts_until_settled = 70;

// `earlybird:BYTES` is `earlybird` with that bound of aggregation, `earlybird-segments:NUMBER` with that many segments.
const std::string aggregated = "earlybird:", cut = "earlybird-segments:";

enum class Needs { nothing, own_partitioned, earlybird };

using Maker = std::unique_ptr<Method> (*)(Transfer &, const std::string &name);

template <class Made>
std::unique_ptr<Method> make(Transfer &transfer, const std::string &) {
  return std::make_unique<Made>(transfer);
}

template <class Made>
std::unique_ptr<Method> make_named(Transfer &transfer, const std::string &name) {
  return std::make_unique<Made>(transfer, name);
}

std::unique_ptr<Method> make_partitioned(Transfer &transfer, const std::string &) {
  return std::make_unique<Partitioned>(transfer, Partitioned::Settings{});
}

std::unique_ptr<Method> make_aggregated(Transfer &transfer, const std::string &name) {
  Partitioned::Settings settings;
  settings.info_key = EARLYBIRD_INFO_AGGR_SIZE;
  settings.info_value = name.substr(aggregated.size());
  return std::make_unique<Partitioned>(transfer, settings);
}

std::unique_ptr<Method> make_cut(Transfer &transfer, const std::string &name) {
  Partitioned::Settings settings;
  settings.info_key = EARLYBIRD_INFO_SEGMENTS;
  settings.info_value = name.substr(cut.size());
  return std::make_unique<Partitioned>(transfer, settings);
}

std::unique_ptr<Method> make_fresh(Transfer &transfer, const std::string &) {
  Partitioned::Settings settings;
  settings.max_starts = starts_before_plan;
  return std::make_unique<Partitioned>(transfer, settings);
}

std::unique_ptr<Method> make_stream(Transfer &transfer, const std::string &name) {
#ifdef EB_HAS_STREAMS
  return std::make_unique<Stream>(transfer, name);
#else
  (void)transfer;
  refuse("this MPI has no streams (MPIX_Stream), which the method " + name +
         " sends by; leave it out, or give an --mpi that has them, such as mpich");
#endif
}

struct Entry {
  Maker maker;
  Needs needs = Needs::nothing;
  int settling = 0;
};

const std::map<std::string, Entry> known_methods = {
    {"single", {make<Single>}},
    {"many", {make<Many>}},
    {"partitioned", {make_partitioned, Needs::own_partitioned}},
    {"earlybird", {make_partitioned, Needs::earlybird, starts_until_settled}},
    {"earlybird-fresh", {make_fresh, Needs::earlybird}},
    {"rma-single-passive", {make_named<RmaSinglePassive>}},
    {"rma-many-passive", {make_named<RmaManyPassive>}},
    {"rma-single-active", {make_named<RmaSingleActive>}},
    {"rma-many-active", {make_named<RmaManyActive>}},
    {"rma-fence", {make_named<RmaFence>}},
    {"stream", {make_stream}},
};

// Is it that prefix and a number?
bool is_numbered(const std::string &name, const std::string &prefix) {
  const std::string number = name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : "";
  return !number.empty() && number.size() < 19 && number.find_first_not_of("0123456789") == std::string::npos;
}

[[noreturn]] void refuse_unknown(const std::string &name) {
  std::string names;
  for (const auto &known : known_methods) names += (names.empty() ? "" : ", ") + known.first;
  refuse("pipeline knows no method " + name + "; give some of " + names + ", " + aggregated + "BYTES and " + cut + "NUMBER");
}

}  // namespace

Kind find_method(const std::string &name) {
  Entry entry;
  if (is_numbered(name, aggregated)) {
    entry = {make_aggregated, Needs::earlybird, starts_until_settled};
  } else if (is_numbered(name, cut)) {
    entry = {make_cut, Needs::earlybird, starts_before_plan};
  } else {
    const auto found = known_methods.find(name);
    if (found == known_methods.end()) refuse_unknown(name);
    entry = found->second;
  }
  // A sample can so never be of another library than its method says.
  if (entry.needs != Needs::nothing) need_partitioned(entry.needs == Needs::earlybird, "the method " + name);
  return {[maker = entry.maker, name](Transfer &transfer) { return maker(transfer, name); }, entry.settling};
}

}  // namespace earlybird
