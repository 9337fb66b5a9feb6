#include "etc/weights/formats/pytorch/pickle_stack.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

using Kind = PickleValue::Kind;

constexpr const char* kOrderedDict = "collections.OrderedDict";
constexpr const char* kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr const char* kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr const char* kStorages[] = {
    "torch.FloatStorage", "torch.DoubleStorage",   "torch.HalfStorage",
    "torch.LongStorage",  "torch.BFloat16Storage", "torch.IntStorage",
    "torch.ShortStorage", "torch.CharStorage",     "torch.ByteStorage",
    "torch.BoolStorage"};

bool IsAllowed(absl::string_view global) {
  bool is_storage = false;
  for (const char* storage : kStorages) {
    is_storage |= global == storage;
  }
  return is_storage || global == kOrderedDict || global == kRebuildTensor ||
         global == kRebuildParameter;
}

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace

PickleValue* PickleStack::New(Kind kind) {
  pickle_.values.emplace_back().kind = kind;
  return &pickle_.values.back();
}

absl::Status PickleStack::Push(PickleValue* value) {
  if (stack_.size() >= limits_.stack || ++pushes_ > limits_.pushes) {
    return Error("should need a stack of at most ", limits_.stack, " and ",
                 limits_.pushes, " pushes (limit)");
  }
  stack_.push_back(value);
  return absl::OkStatus();
}

absl::Status PickleStack::PushWithItems(Kind kind, const PickleValue& other) {
  // Counted, so that one large tuple cannot be copied for ever.
  pushes_ += other.items.size();
  PickleValue* value = New(kind);
  value->items = other.items;
  return Push(value);
}

absl::Status PickleStack::PushGlobal(std::string name) {
  if (!IsAllowed(name)) {
    return Error("object of type ", QuotedName(name), " is not allowed");
  }
  PickleValue* global = New(Kind::kGlobal);
  global->text = std::move(name);
  return Push(global);
}

absl::StatusOr<PickleValue*> PickleStack::Pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    return Error("finds too little on the stack");
  }
  PickleValue* top = stack_.back();
  stack_.pop_back();
  return top;
}

absl::StatusOr<std::vector<PickleValue*>> PickleStack::Pop(size_t count) {
  std::vector<PickleValue*> items(count);
  for (size_t i = count; i-- > 0;) {
    ETC_ASSIGN_OR_RETURN(items[i], Pop());
  }
  return items;
}

absl::Status PickleStack::PushMark() {
  if (marks_.size() >= limits_.stack) {
    return Error("should set at most ", limits_.stack, " marks (limit)");
  }
  marks_.push_back(stack_.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PickleValue*>> PickleStack::PopToMark() {
  if (marks_.empty()) {
    return Error("finds no mark on the stack");
  }
  const auto first =
      stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

absl::Status PickleStack::PushTuple(const std::vector<PickleValue*>& items) {
  PickleValue* tuple = New(Kind::kTuple);
  tuple->items.assign(items.begin(), items.end());
  return Push(tuple);
}

absl::Status PickleStack::Extend(PickleValue* target,
                                 const std::vector<PickleValue*>& items) {
  target->items.insert(target->items.end(), items.begin(), items.end());
  stack_.push_back(target);  // from where it was taken
  return absl::OkStatus();
}

absl::Status PickleStack::ExtendList(const std::vector<PickleValue*>& items) {
  ETC_ASSIGN_OR_RETURN(PickleValue * list, Pop());
  return list->Is(Kind::kList) ? Extend(list, items)
                               : Error("should add to a list");
}

absl::Status PickleStack::ExtendDict(const std::vector<PickleValue*>& items) {
  ETC_ASSIGN_OR_RETURN(PickleValue * dict, Pop());
  return dict->IsDict() && items.size() % 2 == 0
             ? Extend(dict, items)
             : Error("should add keys and values to a dictionary");
}

absl::Status PickleStack::Memorise(uint64_t index) {
  ETC_ASSIGN_OR_RETURN(PickleValue * top, Pop());
  stack_.push_back(top);
  memo_[index] = top;
  return memo_.size() <= limits_.memo
             ? absl::OkStatus()
             : Error("should memorise at most ", limits_.memo, " (limit)");
}

absl::Status PickleStack::PushMemorised(uint64_t index) {
  const auto found = memo_.find(index);
  return found != memo_.end() ? Push(found->second)
                              : Error("nothing was memorised as ", index);
}

absl::Status PickleStack::PushOrderedDict(const PickleValue& arguments) {
  PickleValue* dict = New(Kind::kOrderedDict);
  if (arguments.items.empty()) {
    return Push(dict);
  }
  const PickleValue& pairs = *arguments.items[0];
  if (arguments.items.size() != 1 || !pairs.Is(Kind::kList)) {
    return Error("an OrderedDict should be made of a list of pairs");
  }
  pushes_ += 2 * pairs.items.size();
  for (const PickleValue* pair : pairs.items) {
    if ((!pair->Is(Kind::kTuple) && !pair->Is(Kind::kList)) ||
        pair->items.size() != 2) {
      return Error("an OrderedDict should be made of pairs");
    }
    dict->items.push_back(pair->items[0]);
    dict->items.push_back(pair->items[1]);
  }
  return Push(dict);
}

absl::Status PickleStack::Reduce() {
  ETC_ASSIGN_OR_RETURN(const PickleValue* arguments, Pop());
  ETC_ASSIGN_OR_RETURN(const PickleValue* callable, Pop());
  if (!callable->Is(Kind::kGlobal) || !arguments->Is(Kind::kTuple)) {
    return Error("should call something with a tuple of arguments");
  }
  if (callable->text == kOrderedDict) {
    return PushOrderedDict(*arguments);
  }
  if (callable->text == kRebuildTensor) {
    return PushWithItems(Kind::kTensor, *arguments);
  }
  // The tensor, whether it requires a gradient, hooks.
  if (callable->text == kRebuildParameter && arguments->items.size() == 3 &&
      arguments->items[0]->Is(Kind::kTensor)) {
    return PushWithItems(Kind::kTensor, *arguments->items[0]);
  }
  return Error("should not call ", callable->text, " with these ",
               arguments->items.size(), " arguments");
}

absl::Status PickleStack::Build() {
  ETC_RETURN_IF_ERROR(Pop().status());
  ETC_ASSIGN_OR_RETURN(PickleValue * object, Pop());
  if (!object->Is(Kind::kOrderedDict)) {
    return Error("should set attributes of an OrderedDict only");
  }
  stack_.push_back(object);  // from where it was taken
  return absl::OkStatus();
}

absl::StatusOr<Pickle> PickleStack::Finish() {
  if (stack_.size() != 1 || !marks_.empty()) {
    return Error("should leave one object on the stack, but there are ",
                 stack_.size(), " and ", marks_.size(), " marks");
  }
  pickle_.root = stack_.back();
  return std::move(pickle_);
}

}  // namespace etc
