#include "tasks/hotpotqa/span_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "tasks/task/softmax.h"

namespace etc {
namespace {

constexpr size_t kTop = 50;
constexpr size_t kClasses = 3;

// The places of the largest values, the first ones of equals.
std::vector<int64_t> TopPlaces(const std::vector<float>& values) {
  std::vector<int64_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  places.resize(std::min(places.size(), kTop));
  return places;
}

// Keeps the best of the spans that it is shown.
class Best {
 public:
  void Offer(float score, PieceSpan span) {
    if (!span_.has_value() ||
        std::make_tuple(score, span.first, span.last) >
            std::make_tuple(score_, span_->first, span_->last)) {
      score_ = score;
      span_ = span;
    }
  }
  const std::optional<PieceSpan>& span() const { return span_; }

 private:
  float score_ = 0;
  std::optional<PieceSpan> span_;
};

// The most probable class of each token, and its probability.
struct TopClasses {
  std::vector<HotpotqaBio> classes;
  std::vector<float> probabilities;
};

TopClasses TopClassesOf(absl::Span<const float> bio, size_t length) {
  const size_t stride = bio.size() / kClasses;
  TopClasses top;
  for (size_t i = 0; i < length; ++i) {
    const std::vector<float> probabilities =
        Softmax<float>({bio[i], bio[stride + i], bio[2 * stride + i]});
    const auto best =
        std::max_element(probabilities.begin(), probabilities.end());
    top.classes.push_back(
        static_cast<HotpotqaBio>(best - probabilities.begin()));
    top.probabilities.push_back(*best);
  }
  return top;
}

}  // namespace

SpanFilter::SpanFilter(const HotpotqaExample* example,
                       std::vector<bool> allowed, bool cls_allowed,
                       int64_t max_answer_length)
    : example_(example),
      allowed_(std::move(allowed)),
      cls_allowed_(cls_allowed),
      max_answer_length_(max_answer_length) {}

bool SpanFilter::AllowsToken(int64_t token) const {
  const int32_t type = example_->long_type_ids[static_cast<size_t>(token)];
  if (type != kHotpotqaSentenceType && type != kHotpotqaTitleType) {
    return false;
  }
  const int32_t sentence = SentenceOf(token);
  return sentence < 0 ? cls_allowed_ : allowed_[static_cast<size_t>(sentence)];
}

bool SpanFilter::Allows(PieceSpan span) const {
  return span.first <= span.last && span.last < example_->long_length() &&
         span.last - span.first < max_answer_length_ &&
         AllowsToken(span.first) && AllowsToken(span.last) &&
         SentenceOf(span.first) == SentenceOf(span.last);
}

int64_t SpanFilter::EndLimit(int64_t first) const {
  int64_t end = first;
  while (end < example_->long_length() && Allows({first, end})) {
    ++end;
  }
  return end;
}

std::optional<PieceSpan> BestSpan(absl::Span<const float> begin,
                                  absl::Span<const float> end,
                                  const SpanFilter& filter) {
  Best best;
  for (int64_t first = 0; first < static_cast<int64_t>(begin.size()); ++first) {
    const int64_t limit = filter.EndLimit(first);
    for (int64_t last = first; last < limit; ++last) {
      best.Offer(
          begin[static_cast<size_t>(first)] + end[static_cast<size_t>(last)],
          {first, last});
    }
  }
  return best.span();
}

std::optional<PieceSpan> BestSpanOfTop50(absl::Span<const float> begin,
                                         absl::Span<const float> end,
                                         const SpanFilter& filter) {
  const std::vector<float> begin_probabilities = Softmax<float>(begin);
  const std::vector<float> end_probabilities = Softmax<float>(end);
  const std::vector<int64_t> ends = TopPlaces(end_probabilities);
  Best best;
  for (const int64_t first : TopPlaces(begin_probabilities)) {
    for (const int64_t last : ends) {
      if (filter.Allows({first, last})) {
        best.Offer(begin_probabilities[static_cast<size_t>(first)] *
                       end_probabilities[static_cast<size_t>(last)],
                   {first, last});
      }
    }
  }
  return best.span();
}

std::optional<PieceSpan> BestBioSpan(absl::Span<const float> bio,
                                     int64_t length, const SpanFilter& filter,
                                     OpenSpan open_span) {
  const TopClasses top = TopClassesOf(bio, static_cast<size_t>(length));
  Best best;
  int64_t first = -1;  // of the open span
  const auto close = [&](int64_t end) {
    const PieceSpan span{.first = first, .last = end - 1};
    if (first >= 0 && filter.Allows(span)) {
      const auto from = top.probabilities.begin();
      best.Offer(std::accumulate(from + first, from + end, 0.0F) /
                     static_cast<float>(end - first),
                 span);
    }
    first = -1;
  };
  for (int64_t i = 0; i < length; ++i) {
    const HotpotqaBio kind = top.classes[static_cast<size_t>(i)];
    if (kind != HotpotqaBio::kInside) {
      close(i);
    }
    if (kind == HotpotqaBio::kBegin ||
        (kind == HotpotqaBio::kInside && first < 0)) {
      first = i;
    }
  }
  if (open_span == OpenSpan::kCloses) {
    close(length);
  }
  return best.span();
}

}  // namespace etc
