#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// One object of a Python pickle. They refer to each other in any way, in
// circles too; who walks over them looks only as deep as he must.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInteger,
    kFloat,
    kString,
    kTuple,
    kList,
    kDict,
    kOrderedDict,
    kGlobal,   // a class or function that formats spec 6.4 allows
    kStorage,  // torch storage: `items` are its persistent id
    kTensor,   // torch._utils._rebuild_tensor_v2 called with `items`
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;  // also 0 or 1 of a bool
  std::string text;     // of a string; "module.name" of a global
  // Of a tuple or list; key, value, key, value ... of a dictionary.
  std::vector<const PickleValue*> items;

  bool Is(Kind other) const { return kind == other; }
  bool IsDict() const { return Is(Kind::kDict) || Is(Kind::kOrderedDict); }
};

// What a stream may ask of us (formats spec 0.2).
struct PickleLimits {
  size_t stack = 1'000'000;
  size_t memo = 4'000'000;
  size_t pushes = 8'000'000;  // values made or named
};

// What came out of a pickle, and all that belongs to it.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t bytes = 0;  // how long the stream was
};

// Runs the stream at the beginning of `bytes` on the part of Python's pickle
// machine that formats spec 6.4 names. Nothing is executed: of the callables,
// those that torch.save writes for tensors and dictionaries are known by name,
// and every other one is an error.
//   kOutOfRange       `bytes` end before the stream does
//   kInvalidArgument  an opcode or object that is not allowed, a limit, or
//                     nonsense; the message has the byte
absl::StatusOr<Pickle> ReadPickle(absl::string_view bytes,
                                  const PickleLimits& limits = {});

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_
