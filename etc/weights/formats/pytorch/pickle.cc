#include "etc/weights/formats/pytorch/pickle.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/pytorch/pickle_stack.h"

namespace etc {
namespace {

using Kind = PickleValue::Kind;
using Values = std::vector<PickleValue*>;

// One byte each, named as in Python's pickletools.
enum Opcode : uint8_t {
  kMark = 0x28,
  kEmptyTuple = 0x29,
  kStop = 0x2e,
  kBinFloat = 0x47,
  kBinInt = 0x4a,
  kBinInt1 = 0x4b,
  kBinInt2 = 0x4d,
  kNone = 0x4e,
  kBinPersId = 0x51,
  kReduce = 0x52,
  kBinUnicode = 0x58,
  kEmptyList = 0x5d,
  kAppend = 0x61,
  kBuild = 0x62,
  kGlobal = 0x63,
  kAppends = 0x65,
  kBinGet = 0x68,
  kLongBinGet = 0x6a,
  kBinPut = 0x71,
  kLongBinPut = 0x72,
  kSetItem = 0x73,
  kTuple = 0x74,
  kSetItems = 0x75,
  kEmptyDict = 0x7d,
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr int kLatestProtocol = 5;

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status Truncated() {
  return absl::OutOfRangeError("ends before it is complete");
}

class Machine {
 public:
  Machine(absl::string_view bytes, const PickleLimits& limits)
      : reader_(bytes), stack_(limits) {}

  // Executes one opcode.
  absl::Status Step(uint8_t opcode);
  absl::StatusOr<Pickle> Finish() { return stack_.Finish(); }
  ByteReader& reader() { return reader_; }

 private:
  // Each executes the opcodes of one group, and the next one's.
  absl::Status DoValue(uint8_t opcode);
  absl::Status DoCollection(uint8_t opcode);
  absl::Status DoMemo(uint8_t opcode);
  absl::Status DoObject(uint8_t opcode);

  template <typename T>
  absl::Status PushInteger(Kind kind = Kind::kInteger);
  absl::Status PushInteger(std::optional<int64_t> value, Kind kind);
  absl::Status PushLong();
  absl::Status PushString(std::optional<uint64_t> length);
  absl::Status PushGlobal();
  absl::Status PushStackGlobal();
  absl::StatusOr<std::string> TakeLine();
  template <typename T>
  absl::Status WithIndex(absl::Status (PickleStack::*action)(uint64_t));

  ByteReader reader_;
  PickleStack stack_;
};

absl::Status Machine::PushInteger(std::optional<int64_t> value, Kind kind) {
  if (!value) {
    return Truncated();
  }
  PickleValue* integer = stack_.New(kind);
  integer->integer = *value;
  return stack_.Push(integer);
}

template <typename T>
absl::Status Machine::PushInteger(Kind kind) {
  return PushInteger(reader_.TakeFixed<T>(), kind);
}

// Two's complement, least significant byte first.
absl::Status Machine::PushLong() {
  const auto length = reader_.TakeFixed<uint8_t>();
  if (length.value_or(0) > sizeof(int64_t)) {
    return Error("an integer should have at most 8 bytes, but has ", *length);
  }
  const auto bytes = length ? reader_.Take(*length) : std::nullopt;
  if (!bytes) {
    return Truncated();
  }
  const bool is_negative = !bytes->empty() && (bytes->back() & 0x80) != 0;
  uint64_t value = is_negative ? ~uint64_t{0} : 0;
  for (size_t i = bytes->size(); i-- > 0;) {
    value = (value << 8) | static_cast<uint8_t>((*bytes)[i]);
  }
  return PushInteger(static_cast<int64_t>(value), Kind::kInteger);
}

absl::Status Machine::PushString(std::optional<uint64_t> length) {
  const auto text = length ? reader_.Take(*length) : std::nullopt;
  if (!text) {
    return Truncated();
  }
  if (!IsUtf8(*text)) {
    return Error("a string should be UTF-8, but is ", QuotedName(*text));
  }
  PickleValue* string = stack_.New(Kind::kString);
  string->text = std::string(*text);
  return stack_.Push(string);
}

absl::StatusOr<std::string> Machine::TakeLine() {
  constexpr size_t kLongest = 1000;
  std::string line;
  while (line.size() < kLongest) {
    const auto c = reader_.TakeFixed<char>();
    if (!c) {
      return Truncated();
    }
    if (*c == '\n') {
      return line;
    }
    line.push_back(*c);
  }
  return Error("the name of a module or class should have at most ", kLongest,
               " bytes");
}

absl::Status Machine::PushGlobal() {
  ETC_ASSIGN_OR_RETURN(const std::string module, TakeLine());
  ETC_ASSIGN_OR_RETURN(const std::string name, TakeLine());
  return stack_.PushGlobal(absl::StrCat(module, ".", name));
}

absl::Status Machine::PushStackGlobal() {
  ETC_ASSIGN_OR_RETURN(const Values names, stack_.Pop(2));
  if (!names[0]->Is(Kind::kString) || !names[1]->Is(Kind::kString)) {
    return Error("the names of a module and a class should be strings");
  }
  return stack_.PushGlobal(absl::StrCat(names[0]->text, ".", names[1]->text));
}

template <typename T>
absl::Status Machine::WithIndex(absl::Status (PickleStack::*action)(uint64_t)) {
  const auto index = reader_.TakeFixed<T>();
  return index ? (stack_.*action)(*index) : Truncated();
}

absl::Status Machine::DoValue(uint8_t opcode) {
  switch (opcode) {
    case kBinInt1:
      return PushInteger<uint8_t>();
    case kBinInt2:
      return PushInteger<uint16_t>();
    case kBinInt:
      return PushInteger<int32_t>();
    case kLong1:
      return PushLong();
    case kNewTrue:
      return PushInteger(1, Kind::kBool);
    case kNewFalse:
      return PushInteger(0, Kind::kBool);
    case kNone:
      return stack_.PushNew(Kind::kNone);
    case kBinFloat:
      return reader_.Take(sizeof(double)) ? stack_.PushNew(Kind::kFloat)
                                          : Truncated();
    case kBinUnicode:
      return PushString(reader_.TakeFixed<uint32_t>());
    case kShortBinUnicode:
      return PushString(reader_.TakeFixed<uint8_t>());
    case kBinUnicode8:
      return PushString(reader_.TakeFixed<uint64_t>());
    default:
      return DoCollection(opcode);
  }
}

absl::Status Machine::DoCollection(uint8_t opcode) {
  switch (opcode) {
    case kEmptyDict:
      return stack_.PushNew(Kind::kDict);
    case kEmptyList:
      return stack_.PushNew(Kind::kList);
    case kEmptyTuple:
      return stack_.PushNew(Kind::kTuple);
    case kMark:
      return stack_.PushMark();
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      ETC_ASSIGN_OR_RETURN(const Values items,
                           stack_.Pop(opcode - kTuple1 + 1u));
      return stack_.PushTuple(items);
    }
    case kAppend: {
      ETC_ASSIGN_OR_RETURN(const Values items, stack_.Pop(1));
      return stack_.ExtendList(items);
    }
    case kSetItem: {
      ETC_ASSIGN_OR_RETURN(const Values items, stack_.Pop(2));
      return stack_.ExtendDict(items);
    }
    case kTuple:
    case kAppends:
    case kSetItems: {
      ETC_ASSIGN_OR_RETURN(const Values items, stack_.PopToMark());
      return opcode == kTuple     ? stack_.PushTuple(items)
             : opcode == kAppends ? stack_.ExtendList(items)
                                  : stack_.ExtendDict(items);
    }
    default:
      return DoMemo(opcode);
  }
}

absl::Status Machine::DoMemo(uint8_t opcode) {
  switch (opcode) {
    case kBinPut:
      return WithIndex<uint8_t>(&PickleStack::Memorise);
    case kLongBinPut:
      return WithIndex<uint32_t>(&PickleStack::Memorise);
    case kMemoize:
      return stack_.MemoriseNext();
    case kBinGet:
      return WithIndex<uint8_t>(&PickleStack::PushMemorised);
    case kLongBinGet:
      return WithIndex<uint32_t>(&PickleStack::PushMemorised);
    default:
      return DoObject(opcode);
  }
}

absl::Status Machine::DoObject(uint8_t opcode) {
  switch (opcode) {
    case kGlobal:
      return PushGlobal();
    case kStackGlobal:
      return PushStackGlobal();
    case kReduce:
      return stack_.Reduce();
    case kBuild:
      return stack_.Build();
    case kBinPersId: {
      ETC_ASSIGN_OR_RETURN(const PickleValue* id, stack_.Pop());
      return id->Is(Kind::kTuple) ? stack_.PushWithItems(Kind::kStorage, *id)
                                  : Error("a persistent id should be a tuple");
    }
    default:
      return Error("the opcode is not allowed");
  }
}

absl::Status Machine::Step(uint8_t opcode) {
  if (opcode == kProto) {
    const auto version = reader_.TakeFixed<uint8_t>();
    if (!version) {
      return Truncated();
    }
    return *version <= kLatestProtocol
               ? absl::OkStatus()
               : Error("the protocol should be at most ", kLatestProtocol,
                       ", but is ", *version);
  }
  if (opcode == kFrame) {
    return reader_.Take(sizeof(uint64_t)) ? absl::OkStatus() : Truncated();
  }
  return DoValue(opcode);
}

}  // namespace

absl::StatusOr<Pickle> ReadPickle(absl::string_view bytes,
                                  const PickleLimits& limits) {
  Machine machine(bytes, limits);
  while (true) {
    const size_t at = machine.reader().position();
    const auto opcode = machine.reader().TakeFixed<uint8_t>();
    const auto error = [&](const absl::Status& status) {
      return absl::Status(
          status.code(),
          absl::StrCat("pickle, opcode 0x", absl::Hex(opcode.value_or(0)),
                       " at byte ", at, ": ", status.message()));
    };
    if (!opcode) {
      return error(Truncated());
    }
    if (*opcode == kStop) {
      auto pickle = machine.Finish();
      if (!pickle.ok()) {
        return error(pickle.status());
      }
      pickle->bytes = at + 1;
      return pickle;
    }
    const absl::Status status = machine.Step(*opcode);
    if (!status.ok()) {
      return error(status);
    }
  }
}

}  // namespace etc
