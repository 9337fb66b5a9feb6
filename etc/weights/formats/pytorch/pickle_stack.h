#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_STACK_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_STACK_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/pytorch/pickle.h"

namespace etc {

// What the opcodes of a pickle work on: the values, the stack with its marks,
// and the memo. All errors are kInvalidArgument.
class PickleStack {
 public:
  explicit PickleStack(const PickleLimits& limits) : limits_(limits) {}

  // A new value, not yet on the stack.
  PickleValue* New(PickleValue::Kind kind);
  absl::Status Push(PickleValue* value);
  absl::Status PushNew(PickleValue::Kind kind) { return Push(New(kind)); }
  // A value with the items of another, which are copied.
  absl::Status PushWithItems(PickleValue::Kind kind, const PickleValue& other);
  // Only a global that is allowed.
  absl::Status PushGlobal(std::string name);

  // Nothing is taken from below the last mark.
  absl::StatusOr<PickleValue*> Pop();
  absl::StatusOr<std::vector<PickleValue*>> Pop(size_t count);
  absl::Status PushMark();
  // All from the last mark on, and the mark.
  absl::StatusOr<std::vector<PickleValue*>> PopToMark();

  absl::Status PushTuple(const std::vector<PickleValue*>& items);
  // Adds to the list on top, or keys and values to the dictionary there.
  absl::Status ExtendList(const std::vector<PickleValue*>& items);
  absl::Status ExtendDict(const std::vector<PickleValue*>& items);

  // Names the value on top.
  absl::Status Memorise(uint64_t index);
  absl::Status MemoriseNext() { return Memorise(memo_.size()); }
  absl::Status PushMemorised(uint64_t index);

  // Calls the callable below the arguments on top with them.
  absl::Status Reduce();
  // Sets the attributes on top of the object below, for which only an
  // OrderedDict will do: they are dropped.
  absl::Status Build();

  // All values, if what is on the stack is just one.
  absl::StatusOr<Pickle> Finish();

 private:
  absl::Status Extend(PickleValue* target,
                      const std::vector<PickleValue*>& items);
  absl::Status PushOrderedDict(const PickleValue& arguments);

  const PickleLimits limits_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, PickleValue*> memo_;
  size_t pushes_ = 0;
};

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_STACK_H_
