// The methods by name, and the features of the MPI that they require.
#include "kernels/methods/registry.hpp"

#include <map>

#include "harness/mpi/partitioned.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
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

// libearlybird before it adapts: it chooses the first segments in the second start of a request and uses them from the third
// start on.
constexpr int starts_before_segments = 2;
// `earlybird:BYTES` is `earlybird` with this aggregation limit, `earlybird-segments:NUMBER` with this many segments,
// `earlybird-partition` with a segment for each partition.
const std::string aggregation_prefix = "earlybird:", segments_prefix = "earlybird-segments:";

enum class Needs { nothing, own_partitioned, earlybird };

using Maker = std::unique_ptr<Method> (*)(Transfer &, const std::string &name);

template <class Type>
std::unique_ptr<Method> make(Transfer &transfer, const std::string &) {
  return std::make_unique<Type>(transfer);
}

template <class Type>
std::unique_ptr<Method> make_named(Transfer &transfer, const std::string &name) {
  return std::make_unique<Type>(transfer, name);
}

std::unique_ptr<Method> make_partitioned(Transfer &transfer, const std::string &) {
  return std::make_unique<Partitioned>(transfer, Partitioned::Options{});
}

std::unique_ptr<Method> make_aggregated(Transfer &transfer, const std::string &name) {
  Partitioned::Options options;
  options.info_key = EARLYBIRD_INFO_AGGR_SIZE;
  options.info_value = name.substr(aggregation_prefix.size());
  return std::make_unique<Partitioned>(transfer, options);
}

std::unique_ptr<Method> make_with_segments(Transfer &transfer, const std::string &segments) {
  Partitioned::Options options;
  options.info_key = EARLYBIRD_INFO_SEGMENTS;
  options.info_value = segments;
  return std::make_unique<Partitioned>(transfer, options);
}

std::unique_ptr<Method> make_segmented(Transfer &transfer, const std::string &name) {
  return make_with_segments(transfer, name.substr(segments_prefix.size()));
}

std::unique_ptr<Method> make_per_partition(Transfer &transfer, const std::string &) {
  return make_with_segments(transfer, "partition");
}

std::unique_ptr<Method> make_fresh(Transfer &transfer, const std::string &) {
  Partitioned::Options options;
  options.max_starts = starts_before_segments;
  return std::make_unique<Partitioned>(transfer, options);
}

std::unique_ptr<Method> make_stream(Transfer &transfer, const std::string &name) {
#ifdef EB_HAS_STREAMS
  return std::make_unique<Stream>(transfer, name);
#else
  (void)transfer;
  refuse("this MPI has no streams (MPIX_Stream), which the method " + name +
         " needs; omit it, or give an --mpi with streams, such as mpich");
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
    {"earlybird-partition", {make_per_partition, Needs::earlybird, starts_before_segments}},
    {"earlybird-fresh", {make_fresh, Needs::earlybird}},
    {"rma-single-passive", {make_named<RmaSinglePassive>}},
    {"rma-many-passive", {make_named<RmaManyPassive>}},
    {"rma-single-active", {make_named<RmaSingleActive>}},
    {"rma-many-active", {make_named<RmaManyActive>}},
    {"rma-fence", {make_named<RmaFence>}},
    {"stream", {make_stream}},
};

// Whether `name` is `prefix` followed by a number.
bool is_numbered(const std::string &name, const std::string &prefix) {
  const std::string number = name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : "";
  return !number.empty() && number.size() < 19 && number.find_first_not_of("0123456789") == std::string::npos;
}

[[noreturn]] void refuse_unknown(const std::string &name, const std::string &kernel) {
  refuse(kernel + " has no method " + name + "; give some of " + names_of(known_methods) + ", " + aggregation_prefix +
         "BYTES and " + segments_prefix + "NUMBER");
}

}  // namespace

Kind find_method(const std::string &name, const std::string &kernel) {
  Entry entry;
  if (is_numbered(name, aggregation_prefix)) {
    entry = {make_aggregated, Needs::earlybird, starts_until_settled};
  } else if (is_numbered(name, segments_prefix)) {
    entry = {make_segmented, Needs::earlybird, starts_before_segments};
  } else {
    const auto known = known_methods.find(name);
    if (known == known_methods.end()) refuse_unknown(name, kernel);
    entry = known->second;
  }
  // This ensures that the library of a sample is that of its method.
  if (entry.needs != Needs::nothing) require_partitioned(entry.needs == Needs::earlybird, "the method " + name);
  return {[maker = entry.maker, name](Transfer &transfer) { return maker(transfer, name); }, entry.settling};
}

}  // namespace earlybird
