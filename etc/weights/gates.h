#ifndef ETC_ETC_WEIGHTS_GATES_H_
#define ETC_ETC_WEIGHTS_GATES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"

namespace etc {

// Gates of ResidualAttention::kGate in files, without a model.

// The gates of the layers of an encoder in a file of ours, by the names that
// they have there, in float32. Empty for all other files.
//   kInvalidArgument  one is not a list of floating numbers
absl::StatusOr<NamedTensors> ReadGates(const TensorReader& reader);

// The names, by `is_gate`, of the gates that the file or `model` has and the
// other one, of a mode without gates, has none of. Empty if both have some:
// they should have the same. `should_have` says that the file's configuration
// is of a mode with gates: a file that has lost all of them is not without.
std::set<std::string> GatesOfOneSide(
    const TensorReader& reader, const NamedTensors& model, bool should_have,
    const std::function<bool(const std::string& name)>& is_gate);

// The mode that a model of this configuration computes with these gates, as
// ResidualText names it: instead of gate "off" if all gates are 0, and "sum" if
// all are 1, as are residual_gate_init's where there are none.
std::string ComputedMode(const EtcConfig& config, const NamedTensors& gates);

// Numbers of the gates of one layer.
struct LayerGates {
  int64_t layer = 0;
  // Blocks in the order g2g, g2l, l2g, l2l, and the means of their heads.
  std::vector<std::pair<std::string, double>> means;
  // The largest magnitude of all of them.
  double largest = 0;
};

// The layers that have gates, in their order.
std::vector<LayerGates> SummarizeGates(const NamedTensors& gates);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_GATES_H_
