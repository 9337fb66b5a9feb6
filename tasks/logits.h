#ifndef ETC_TASKS_LOGITS_H_
#define ETC_TASKS_LOGITS_H_

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// The logits of a task are a struct template that has a member of type T for
// each tensor, and the list of its members:
//
//   template <typename T>
//   struct NqLogits {
//     T ends;         // [4, L]
//     T answer_type;  // [5]
//
//     static constexpr auto kMembers =
//         std::make_tuple(&NqLogits::ends, &NqLogits::answer_type);
//   };
//
// Shapes are those of one example. With T = torch::Tensor it holds the logits
// of a batch, each with the batch as its first axis; with T = LogitRow those of
// one example; with T = std::vector<float> a copy of those. Task code names the
// members; code for all tasks visits them with the functions below.

// The logits of one example in one tensor, the last axis fastest. Valid as long
// as the tensor.
using LogitRow = absl::Span<const float>;

// An example with its logits. T is LogitRow, or std::vector<float> for a copy
// of them, where a record is predicted from several examples.
template <typename E, template <typename> class Logits,
          typename T = std::vector<float>>
struct ExampleLogits {
  std::shared_ptr<const E> example;
  Logits<T> logits;
};

// How many tensors of logits there are. Does not compile if a member is missing
// in the list.
template <template <typename> class Logits>
constexpr size_t NumLogits() {
  constexpr size_t kCount =
      std::tuple_size_v<std::remove_const_t<decltype(Logits<char>::kMembers)>>;
  static_assert(sizeof(Logits<char>) == kCount,
                "kMembers should list every member of the logits");
  return kCount;
}

// Calls visit(member) for each member, in the order of the list.
template <template <typename> class Logits, typename T, typename Visitor>
void ForEachMember(Logits<T>& logits, Visitor visit) {
  std::apply([&](const auto... members) { (visit(logits.*members), ...); },
             Logits<T>::kMembers);
}
template <template <typename> class Logits, typename T, typename Visitor>
void ForEachMember(const Logits<T>& logits, Visitor visit) {
  std::apply([&](const auto... members) { (visit(logits.*members), ...); },
             Logits<T>::kMembers);
}

// The logits whose members are convert(member), of type U.
template <typename U, template <typename> class Logits, typename T,
          typename Convert>
Logits<U> MapMembers(const Logits<T>& logits, Convert convert) {
  Logits<U> mapped;
  const auto map = [&]<size_t... i>(std::index_sequence<i...>) {
    ((mapped.*std::get<i>(Logits<U>::kMembers) =
          convert(logits.*std::get<i>(Logits<T>::kMembers))),
     ...);
  };
  map(std::make_index_sequence<NumLogits<Logits>()>());
  return mapped;
}

}  // namespace etc

#endif  // ETC_TASKS_LOGITS_H_
