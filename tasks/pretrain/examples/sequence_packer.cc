#include "tasks/pretrain/examples/sequence_packer.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace etc {
namespace {

int64_t CeilOfShare(double share, int64_t whole) {
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(whole)));
}

}  // namespace

SequencePacker::SequencePacker(const PackingOptions& options)
    : options_(options),
      full_long_(CeilOfShare(options.min_fraction, options.max_long)),
      full_global_(CeilOfShare(options.min_fraction, options.max_global)) {
  TORCH_CHECK(options.max_long >= 1 && options.max_global >= 1 &&
                  options.max_cache >= 1,
              "max_long (", options.max_long, "), max_global (",
              options.max_global, ") and max_cache (", options.max_cache,
              ") should be at least 1");
}

std::optional<PackedSequence> SequencePacker::Add(int64_t member,
                                                  int64_t num_long,
                                                  int64_t num_global) {
  TORCH_CHECK(
      num_long <= options_.max_long && num_global <= options_.max_global,
      "example ", member, " with ", num_long, " long and ", num_global,
      " global tokens does not fit a sequence of ", options_.max_long, " and ",
      options_.max_global);
  PackedSequence sequence{
      .members = {member}, .num_long = num_long, .num_global = num_global};
  if (IsFull(sequence)) {
    return sequence;
  }
  const auto fits = [&](const PackedSequence& open) {
    return open.num_long + num_long <= options_.max_long &&
           open.num_global + num_global <= options_.max_global;
  };
  if (const auto found = std::find_if(open_.begin(), open_.end(), fits);
      found != open_.end()) {
    sequence = std::move(*found);
    open_.erase(found);
    sequence.members.push_back(member);
    sequence.num_long += num_long;
    sequence.num_global += num_global;
    if (IsFull(sequence)) {
      return sequence;
    }
  }
  Open(std::move(sequence));
  if (static_cast<int64_t>(open_.size()) <= options_.max_cache) {
    return std::nullopt;
  }
  PackedSequence evicted = std::move(open_.front());
  open_.erase(open_.begin());
  return evicted;
}

std::vector<PackedSequence> SequencePacker::Flush() {
  return std::exchange(open_, {});
}

bool SequencePacker::IsFull(const PackedSequence& sequence) const {
  return sequence.num_long >= full_long_ || sequence.num_global >= full_global_;
}

void SequencePacker::Open(PackedSequence sequence) {
  const auto after = std::upper_bound(
      open_.begin(), open_.end(), sequence,
      [](const PackedSequence& left, const PackedSequence& right) {
        return left.num_long > right.num_long;
      });
  open_.insert(after, std::move(sequence));
}

}  // namespace etc
