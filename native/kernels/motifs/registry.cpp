// The styles by name, and the features of the MPI that they require.
#include "kernels/motifs/registry.hpp"

#include <map>

#include "harness/mpi/partitioned.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/motifs/multiple.hpp"
#include "kernels/motifs/partitioned.hpp"
#include "kernels/motifs/whole_messages.hpp"

namespace earlybird {

namespace {

enum class Needs { nothing, own_partitioned, earlybird };

template <class Type>
std::unique_ptr<Style> make(Team &team, const Edges &edges, int) {
  return std::make_unique<Type>(team, edges);
}

std::unique_ptr<Style> make_multiple(Team &team, const Edges &edges, int num_threads) {
  return std::make_unique<Multiple>(team, edges, num_threads);
}

struct Entry {
  StyleKind kind;
  Needs needs = Needs::nothing;
};

const std::map<std::string, Entry> known_styles = {
    {"funnelled", {{make<Funnelled>}}},
    {"persistent", {{make<Persistent>}}},
    {"multiple", {{make_multiple, 0, true}}},
    {"partitioned", {{make<PartitionedStyle>}, Needs::own_partitioned}},
    {"earlybird", {{make<PartitionedStyle>, starts_until_settled}, Needs::earlybird}},
};

}  // namespace

bool needs_thread_multiple(const std::string &name) {
  const auto known = known_styles.find(name);
  return known != known_styles.end() && known->second.kind.needs_multiple;
}

StyleKind find_style(const std::string &name) {
  const auto known = known_styles.find(name);
  if (known == known_styles.end()) refuse("there is no style " + name + "; give some of " + names_of(known_styles));
  const Needs needs = known->second.needs;
  // This ensures that the library of a sample is that of its style.
  if (needs != Needs::nothing) require_partitioned(needs == Needs::earlybird, "the style " + name);
  return known->second.kind;
}

}  // namespace earlybird
