#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// One object of a Python pickle. Objects may contain each other in any way,
// also in circles, so code that follows `items` should not recurse without
// bound.
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
    kGlobal,   // a class or function, which is only named
    kStorage,  // a torch storage: `items` are its persistent id
    kTensor,   // torch._utils._rebuild_tensor_v2 called with `items`
    // An object that is not read; `text` is its class or maker, `items` are
    // its attributes, like those of a dictionary, if it was given any.
    kOpaque,
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;  // also 0 or 1 of a bool
  double real = 0;      // of a float
  std::string text;     // of a string; "module.name" of a global or maker
  // Items of a tuple or list; key, value, key, value, ... of a dictionary.
  std::vector<const PickleValue*> items;

  bool Is(Kind other) const { return kind == other; }
  bool IsDict() const { return Is(Kind::kDict) || Is(Kind::kOrderedDict); }
};

// The largest pickle that is read (doc/formats.md 0.2).
struct PickleLimits {
  size_t stack = 1'000'000;
  size_t memo = 4'000'000;
  size_t pushes = 8'000'000;  // of new values and of memorised ones
};

// The object that a pickle holds, and all values that it refers to.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t bytes = 0;  // length of the pickle
};

// The classes and functions that a pickle may refer to. None is executed.
struct PickleGlobals {
  // True if the results of a global of this name, "module.name", are known.
  // The results of other globals are opaque.
  bool (*is_known)(absl::string_view global);
  // The value for the result of calling a known one: its kind and items.
  //   kInvalidArgument  it must not be called so
  absl::StatusOr<PickleValue> (*call)(
      const std::string& global,
      const std::vector<const PickleValue*>& arguments);
};

// Reads the pickle at the beginning of `bytes` with the subset of Python's
// pickle machine that doc/formats.md 6.4 allows.
//   kOutOfRange       `bytes` end before the pickle does
//   kInvalidArgument  an opcode or call that is not allowed, a limit exceeded
//                     or a malformed pickle; the message has the byte
absl::StatusOr<Pickle> ReadPickle(absl::string_view bytes,
                                  const PickleGlobals& globals,
                                  const PickleLimits& limits);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PICKLE_H_
