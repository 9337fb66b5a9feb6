#include "etc/weights/formats/pytorch/pytorch_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/json_text.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kLargestRank = 32;
constexpr size_t kLongestName = 4096;
constexpr size_t kMostTensors = 1'000'000;
constexpr uint64_t kMostElements = uint64_t{1} << 40;

constexpr absl::string_view kOrderedDict = "collections.OrderedDict";
constexpr absl::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr absl::string_view kRebuildParameter =
    "torch._utils._rebuild_parameter";
// The same for one with attributes.
constexpr absl::string_view kRebuildParameterWithState =
    "torch._utils._rebuild_parameter_with_state";
// A tensor with attributes, or of a subclass.
constexpr absl::string_view kRebuildFromType[] = {
    "torch._tensor._rebuild_from_type_v2", "torch._tensor._rebuild_from_type",
    "torch.tensor._rebuild_from_type"};

// Classes of storages whose elements LibTorch or we do not read, but whose
// sizes are known.
struct OddStorage {
  absl::string_view type;
  absl::string_view dtype;
};
constexpr OddStorage kOddStorages[] = {
    {"ComplexFloat", "C64"}, {"ComplexDouble", "DT_COMPLEX128"},
    {"QInt8", "DT_QINT8"},   {"QUInt8", "DT_QUINT8"},
    {"QInt32", "DT_QINT32"}, {"Untyped", "U8"}};

// The type of the elements of a class of storages, "torch.FloatStorage"; null
// for any other global.
const Dtype* FindStorageDtype(absl::string_view global) {
  if (!absl::ConsumePrefix(&global, "torch.") ||
      !absl::ConsumeSuffix(&global, "Storage") || global.empty()) {
    return nullptr;
  }
  absl::ConsumePrefix(&global, "storage.");
  for (const OddStorage& odd : kOddStorages) {
    if (odd.type == global) {
      return FindDtype(odd.dtype);
    }
  }
  const auto dtype =
      std::find_if(std::begin(kDtypes), std::end(kDtypes),
                   [&](const Dtype& each) { return each.pytorch == global; });
  return dtype == std::end(kDtypes) ? nullptr : dtype;
}

bool IsRebuildFromType(absl::string_view global) {
  return std::find(std::begin(kRebuildFromType), std::end(kRebuildFromType),
                   global) != std::end(kRebuildFromType);
}

bool IsKnown(absl::string_view global) {
  return global == kOrderedDict || global == kRebuildTensor ||
         global == kRebuildParameter || global == kRebuildParameterWithState ||
         IsRebuildFromType(global) || FindStorageDtype(global) != nullptr;
}

// OrderedDict(), or OrderedDict([(key, value), ...]) as Python 2 wrote it.
absl::StatusOr<PickleValue> MakeOrderedDict(
    const std::vector<const PickleValue*>& arguments) {
  PickleValue dict{.kind = Kind::kOrderedDict};
  if (arguments.empty()) {
    return dict;
  }
  const PickleValue& pairs = *arguments[0];
  if (arguments.size() != 1 || !pairs.Is(Kind::kList)) {
    return InvalidArgument("an OrderedDict should be made of a list of pairs");
  }
  for (const PickleValue* pair : pairs.items) {
    if ((!pair->Is(Kind::kTuple) && !pair->Is(Kind::kList)) ||
        pair->items.size() != 2) {
      return InvalidArgument("an OrderedDict should be made of pairs");
    }
    dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
  }
  return dict;
}

// A parameter: the tensor, whether it requires a gradient, hooks, and maybe
// attributes.
absl::StatusOr<PickleValue> MakeParameter(
    const std::string& global,
    const std::vector<const PickleValue*>& arguments) {
  const size_t expected = global == kRebuildParameter ? 3 : 4;
  if (arguments.size() != expected ||
      (!arguments[0]->Is(Kind::kTensor) && !arguments[0]->Is(Kind::kOpaque))) {
    return InvalidArgument("should not call ", global, " with these ",
                           arguments.size(), " arguments");
  }
  return *arguments[0];
}

// A tensor of a subclass or with attributes: the function that makes a tensor,
// the class, the arguments of that function, the attributes.
absl::StatusOr<PickleValue> MakeFromType(
    const std::string& global,
    const std::vector<const PickleValue*>& arguments) {
  if (arguments.size() != 4 || !arguments[0]->Is(Kind::kGlobal) ||
      !arguments[2]->Is(Kind::kTuple)) {
    return InvalidArgument("should not call ", global, " with these ",
                           arguments.size(), " arguments");
  }
  const std::string& maker = arguments[0]->text;
  if (maker == kRebuildTensor) {
    return PickleValue{.kind = Kind::kTensor, .items = arguments[2]->items};
  }
  if (maker == kRebuildParameter || maker == kRebuildParameterWithState) {
    return MakeParameter(maker, arguments[2]->items);
  }
  return PickleValue{.kind = Kind::kOpaque, .text = maker};
}

absl::StatusOr<PickleValue> Call(
    const std::string& global,
    const std::vector<const PickleValue*>& arguments) {
  if (global == kOrderedDict) {
    return MakeOrderedDict(arguments);
  }
  if (global == kRebuildTensor) {
    return PickleValue{.kind = Kind::kTensor, .items = arguments};
  }
  if (global == kRebuildParameter || global == kRebuildParameterWithState) {
    return MakeParameter(global, arguments);
  }
  if (IsRebuildFromType(global)) {
    return MakeFromType(global, arguments);
  }
  return InvalidArgument("should not call ", global, " with these ",
                         arguments.size(), " arguments");
}

bool IsStorageKey(const PickleValue& value) {
  return value.Is(Kind::kString) && !value.text.empty() &&
         std::all_of(value.text.begin(), value.text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z') || c == '_';
         });
}

// Adds the storage of a persistent id ("storage", type, key, location, count,
// view); all that have one key must agree.
absl::Status AddStorage(const std::vector<const PickleValue*>& id,
                        std::map<std::string, PytorchStorage>* storages) {
  if (id.size() < 5 || id.size() > 6 || !id[0]->Is(Kind::kString) ||
      id[0]->text != "storage" || !id[1]->Is(Kind::kGlobal) ||
      !IsStorageKey(*id[2]) || !id[3]->Is(Kind::kString) ||
      !id[4]->Is(Kind::kInteger) || id[4]->integer < 0 ||
      (id.size() == 6 && !id[5]->Is(Kind::kNone))) {
    return InvalidArgument(
        "a persistent id should be a torch storage: \"storage\", its "
        "type, key, location and number of elements, no view");
  }
  if (!absl::StartsWith(id[1]->text, "torch.") ||
      !absl::EndsWith(id[1]->text, "Storage")) {
    return InvalidArgument(
        "a persistent id should be of a torch storage, but is of ",
        QuotedName(id[1]->text));
  }
  const Dtype* dtype = FindStorageDtype(id[1]->text);
  const std::string& key = id[2]->text;
  const auto count = static_cast<uint64_t>(id[4]->integer);
  if (count > kMostElements) {
    return InvalidArgument("storage ", key, " should hold at most ",
                           kMostElements, " numbers, but is ", count, " of ",
                           id[1]->text);
  }
  const PytorchStorage storage = {
      .dtype = dtype == nullptr ? "" : std::string(dtype->name),
      .count = count};
  const auto [known, is_new] = storages->try_emplace(key, storage);
  if (!is_new && (known->second.dtype != storage.dtype ||
                  known->second.count != storage.count)) {
    return InvalidArgument("storage ", key, " is ", known->second.count, " ",
                           known->second.dtype, " and also ", count, " ",
                           storage.dtype);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadSizes(const PickleValue& value) {
  if (!value.Is(Kind::kTuple) || value.items.size() > kLargestRank) {
    return InvalidArgument("sizes and strides should be tuples of at most ",
                           kLargestRank, " numbers");
  }
  std::vector<int64_t> sizes;
  for (const PickleValue* item : value.items) {
    if (!item->Is(Kind::kInteger) || item->integer < 0) {
      return InvalidArgument("sizes and strides should be numbers from 0 on");
    }
    sizes.push_back(item->integer);
  }
  return sizes;
}

// No element may lie outside the storage, nor may there be more elements than
// it has, as with strides of 0.
absl::Status CheckView(const PytorchTensor& tensor, uint64_t count) {
  uint64_t elements = 1;
  uint64_t last = tensor.offset;
  bool overflows = false;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const auto size = static_cast<uint64_t>(tensor.shape[d]);
    const auto stride = static_cast<uint64_t>(tensor.strides[d]);
    uint64_t step = 0;
    overflows |= __builtin_mul_overflow(elements, size, &elements);
    overflows |=
        __builtin_mul_overflow(size == 0 ? 0 : size - 1, stride, &step);
    overflows |= __builtin_add_overflow(last, step, &last);
  }
  const bool fits = elements == 0 ? tensor.offset <= count
                                  : elements <= count && last < count;
  if (overflows || !fits) {
    return InvalidArgument("size ", ShapeText(tensor.shape), ", strides ",
                           ShapeText(tensor.strides), ", offset ",
                           tensor.offset, " should lie within storage ",
                           tensor.storage, " of ", count, " elements");
  }
  return absl::OkStatus();
}

// The arguments of _rebuild_tensor_v2: storage, offset, sizes, strides, whether
// it requires a gradient, hooks, metadata. kUnimplemented for a tensor that is
// right, but not read.
absl::StatusOr<PytorchTensor> ReadTensor(
    const std::vector<const PickleValue*>& arguments,
    const std::map<std::string, PytorchStorage>& storages) {
  if (arguments.size() < 6 || arguments.size() > 7 ||
      !arguments[0]->Is(Kind::kStorage) || !arguments[1]->Is(Kind::kInteger) ||
      arguments[1]->integer < 0) {
    return InvalidArgument(
        "should be made of a storage, an offset, sizes, strides, "
        "requires_grad and hooks");
  }
  if (arguments.size() == 7 && !arguments[6]->Is(Kind::kNone) &&
      !(arguments[6]->IsDict() && arguments[6]->items.empty())) {
    return absl::UnimplementedError("a tensor with metadata");
  }
  PytorchTensor tensor;
  tensor.storage = arguments[0]->items[2]->text;
  tensor.offset = static_cast<uint64_t>(arguments[1]->integer);
  ETC_ASSIGN_OR_RETURN(tensor.shape, ReadSizes(*arguments[2]));
  ETC_ASSIGN_OR_RETURN(tensor.strides, ReadSizes(*arguments[3]));
  if (tensor.shape.size() != tensor.strides.size()) {
    return InvalidArgument("has ", tensor.shape.size(), " sizes, but ",
                           tensor.strides.size(), " strides");
  }
  const PytorchStorage& storage = storages.find(tensor.storage)->second;
  if (!storage.is_known()) {
    return absl::UnimplementedError(
        absl::StrCat("a tensor of ", arguments[0]->items[1]->text));
  }
  tensor.dtype = storage.dtype;
  ETC_RETURN_IF_ERROR(CheckView(tensor, storage.count));
  return tensor;
}

// The dictionary within `root` that holds the tensors, or `root` itself.
const PickleValue* FindStateDict(const PickleValue* root) {
  for (const char* wrapper : {"state_dict", "model"}) {
    for (size_t i = 0; i < root->items.size(); i += 2) {
      if (root->items[i]->Is(Kind::kString) &&
          root->items[i]->text == wrapper && root->items[i + 1]->IsDict()) {
        return root->items[i + 1];
      }
    }
  }
  return root;
}

// Takes the value of a key in the dictionary of tensors, or notes why not.
absl::Status TakeEntry(const PickleValue& key, const PickleValue& value,
                       PytorchState* state) {
  if (!key.Is(Kind::kString)) {
    state->skipped.emplace_back("an entry whose key is no string is skipped");
    return absl::OkStatus();
  }
  if (key.text.size() > kLongestName) {
    return InvalidArgument("the names of tensors should be strings of at most ",
                           kLongestName, " bytes");
  }
  const std::string name = QuotedName(key.text);
  if (value.Is(Kind::kOpaque)) {
    state->skipped.push_back(absl::StrCat(
        name, " is skipped: an object made by ", QuotedName(value.text)));
    return absl::OkStatus();
  }
  if (!value.Is(Kind::kTensor)) {
    state->skipped.push_back(absl::StrCat(name, " is no tensor"));
    return absl::OkStatus();
  }
  auto tensor = ReadTensor(value.items, state->storages);
  if (absl::IsUnimplemented(tensor.status())) {
    state->skipped.push_back(
        absl::StrCat(name, " is skipped: ", tensor.status().message()));
    return absl::OkStatus();
  }
  if (!tensor.ok()) {
    return InvalidArgument("tensor ", name, ": ", tensor.status().message());
  }
  if (!state->tensors.try_emplace(key.text, *std::move(tensor)).second ||
      state->tensors.size() > kMostTensors) {
    return InvalidArgument(
        "tensor ", name, " is there twice, or one of more than ", kMostTensors);
  }
  return absl::OkStatus();
}

// Turns a value into JSON. Lists and dictionaries may contain each other in
// circles, and one of them or a text may be in many places: so depth, number of
// values and bytes of texts and keys are bounded, and loops end with the bound,
// or a small file would make billions of nulls.
class JsonOfPickle {
 public:
  nlohmann::json Of(const PickleValue& value, int depth = 0) {
    constexpr int kDeepest = 8;
    if (++values_ > kMostValues || depth > kDeepest) {
      return nullptr;
    }
    switch (value.kind) {
      case Kind::kBool:
        return value.integer != 0;
      case Kind::kInteger:
        return value.integer;
      case Kind::kFloat:
        return value.real;
      case Kind::kString:
        return TakeBytes(value.text) ? nlohmann::json(value.text) : nullptr;
      case Kind::kTuple:
      case Kind::kList: {
        nlohmann::json list = nlohmann::json::array();
        for (size_t i = 0; i < value.items.size() && !IsFull(); ++i) {
          list.push_back(Of(*value.items[i], depth + 1));
        }
        return list;
      }
      case Kind::kDict:
      case Kind::kOrderedDict:
      case Kind::kOpaque:
        return OfFields(value, depth);
      default:
        return nullptr;
    }
  }

 private:
  nlohmann::json OfFields(const PickleValue& value, int depth) {
    nlohmann::json object = nlohmann::json::object();
    for (size_t i = 0; i + 1 < value.items.size() && !IsFull(); i += 2) {
      const PickleValue& key = *value.items[i];
      if (key.Is(Kind::kString) && TakeBytes(key.text)) {
        object[key.text] = Of(*value.items[i + 1], depth + 1);
      } else {
        ++values_;  // for the time that skipping it takes
      }
    }
    return object;
  }

  bool IsFull() const { return values_ >= kMostValues; }

  // Returns whether the text fits into what is left.
  bool TakeBytes(const std::string& text) {
    if (text.size() > bytes_left_) {
      bytes_left_ = 0;
      return false;
    }
    bytes_left_ -= text.size();
    return true;
  }

  static constexpr int64_t kMostValues = 100'000;

  int64_t values_ = 0;
  size_t bytes_left_ = size_t{1} << 20;
};

// The entries of fairseq's options in the dictionary that was pickled.
std::map<std::string, std::string> OptionsIn(const PickleValue& root) {
  std::map<std::string, std::string> options;
  JsonOfPickle to_json;
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleValue& key = *root.items[i];
    if (key.Is(Kind::kString) && (key.text == "args" || key.text == "cfg")) {
      options[key.text] = JsonText(to_json.Of(*root.items[i + 1]));
    }
  }
  return options;
}

}  // namespace

uint64_t PytorchStorage::ElementBytes() const {
  return static_cast<uint64_t>(FindDtype(dtype)->bits) / 8;
}

bool PytorchTensor::IsDense() const {
  int64_t dense = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != dense) {
      return false;
    }
    dense *= std::max<int64_t>(shape[d], 1);
  }
  return true;
}

absl::StatusOr<Pickle> ReadPytorchPickle(absl::string_view bytes,
                                         const PickleLimits& limits) {
  return ReadPickle(bytes, {.is_known = IsKnown, .call = Call}, limits);
}

absl::StatusOr<PytorchState> ReadPytorchState(const Pickle& pickle) {
  PytorchState state;
  for (const PickleValue& value : pickle.values) {
    if (value.Is(Kind::kStorage)) {
      ETC_RETURN_IF_ERROR(AddStorage(value.items, &state.storages));
    }
  }
  const PickleValue& root = *pickle.root;
  if (!root.IsDict()) {
    return InvalidArgument(
        "the pickled object should be a dictionary of tensors",
        root.Is(Kind::kOpaque) || root.Is(Kind::kGlobal)
            ? absl::StrCat(", but it is ", QuotedName(root.text),
                           " or an object of that type, which is not allowed")
            : "");
  }
  const PickleValue& dict = *FindStateDict(pickle.root);
  if (&dict != &root) {
    state.options = OptionsIn(root);
  }
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    ETC_RETURN_IF_ERROR(TakeEntry(*dict.items[i], *dict.items[i + 1], &state));
  }
  return state;
}

}  // namespace etc
