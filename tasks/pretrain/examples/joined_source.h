#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_JOINED_SOURCE_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_JOINED_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"

namespace etc {

// Several data sets as one, in their order, with a line for people about each.
class JoinedSource : public ExampleSource {
 public:
  JoinedSource(std::vector<std::unique_ptr<ExampleSource>> sources,
               std::vector<std::string> descriptions)
      : sources_(std::move(sources)), descriptions_(std::move(descriptions)) {
    for (const auto& source : sources_) {
      ends_.push_back(size() + source->size());
    }
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }

  int64_t expected_examples() const override {
    int64_t sum = 0;
    for (const auto& source : sources_) {
      sum += source->expected_examples();
    }
    return sum;
  }

  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    const auto end =
        std::upper_bound(ends_.begin(), ends_.end(), request.record);
    const ExampleSource& source =
        *sources_[static_cast<size_t>(end - ends_.begin())];
    request.record -= *end - source.size();
    return source.Make(request);
  }

  bool depends_on_key() const override {
    return std::any_of(
        sources_.begin(), sources_.end(),
        [](const auto& source) { return source->depends_on_key(); });
  }

  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  const std::vector<std::unique_ptr<ExampleSource>> sources_;
  const std::vector<std::string> descriptions_;
  // Records of each source and those before it.
  std::vector<int64_t> ends_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_JOINED_SOURCE_H_
