#include "tasks/train/optimizer_shards.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

Json DescriptionOf(const NamedTensors& tensors) {
  Json names = Json::array();
  for (const auto& [name, tensor] : tensors) {
    names.push_back(
        {name, tensor.sizes().vec(), static_cast<int>(tensor.scalar_type())});
  }
  return names;
}

torch::Tensor EmptyAs(const Json& entry) {
  return torch::empty(entry[1].get<std::vector<int64_t>>(),
                      static_cast<torch::ScalarType>(entry[2].get<int>()));
}

// Sends the tensors of process `root` to all. Those that `keeps` says become
// `*tensors` of the others.
absl::Status ShareFrom(
    int64_t root, const std::function<bool(const std::string& name)>& keeps,
    ProcessGroup* group, NamedTensors* tensors) {
  const bool is_root = group->rank() == root;
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       group->Gather(is_root ? JsonText(DescriptionOf(*tensors))
                                             : std::string()));
  ETC_ASSIGN_OR_RETURN(const Json entries,
                       ParseJson(all[static_cast<size_t>(root)],
                                 "what another process has sent"));
  NamedTensors received;
  for (const Json& entry : entries) {
    const auto name = entry[0].get<std::string>();
    const torch::Tensor tensor = is_root ? tensors->at(name) : EmptyAs(entry);
    ETC_RETURN_IF_ERROR(group->Broadcast({tensor}, root));
    if (keeps(name)) {
      received[name] = tensor;
    }
  }
  *tensors = std::move(received);
  return absl::OkStatus();
}

}  // namespace

OptimizerShards::OptimizerShards(const NamedTensors& parameters,
                                 ProcessGroup* group)
    : group_(group), of_process_(static_cast<size_t>(group->size())) {
  std::vector<std::pair<std::string, torch::Tensor>> order(parameters.begin(),
                                                           parameters.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.numel() > b.second.numel();
                   });
  std::vector<int64_t> loads(of_process_.size());
  for (const auto& [name, tensor] : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += tensor.numel();
    of_process_[static_cast<size_t>(least - loads.begin())][name] = tensor;
  }
  own_ = of_process_[static_cast<size_t>(group->rank())];
}

absl::Status OptimizerShards::ShareUpdate(double* norm) {
  for (size_t rank = 0; rank < of_process_.size(); ++rank) {
    std::vector<torch::Tensor> parameters;
    for (const auto& [name, parameter] : of_process_[rank]) {
      parameters.push_back(parameter);
    }
    ETC_RETURN_IF_ERROR(
        group_->Broadcast(parameters, static_cast<int64_t>(rank)));
  }
  const torch::Tensor square = torch::full({1}, *norm * *norm, torch::kFloat64);
  ETC_RETURN_IF_ERROR(group_->Sum({square}));
  *norm = std::sqrt(square.item<double>());
  return absl::OkStatus();
}

absl::StatusOr<NamedTensors> OptimizerShards::GatherState(
    const NamedTensors& own) {
  NamedTensors all = group_->is_first() ? own : NamedTensors();
  for (int64_t rank = 1; rank < group_->size(); ++rank) {
    NamedTensors of_rank = group_->rank() == rank ? own : NamedTensors();
    ETC_RETURN_IF_ERROR(ShareFrom(
        rank, [&](const std::string&) { return group_->is_first(); }, group_,
        &of_rank));
    all.merge(of_rank);
  }
  return all;
}

bool OptimizerShards::IsOwn(const std::string& entry) const {
  return own_.count(entry.substr(entry.find('.') + 1)) > 0;
}

absl::Status ShareNamedTensors(
    const std::function<bool(const std::string& name)>& keeps,
    ProcessGroup* group, NamedTensors* tensors) {
  return ShareFrom(/*root=*/0, keeps, group, tensors);
}

}  // namespace etc
