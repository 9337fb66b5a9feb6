#include "etc/weights/formats/pytorch/pickle.h"

#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<const PickleValue*>;

absl::Status Truncated() {
  return absl::OutOfRangeError("ends before it is complete");
}

// The stack of a pickle machine, with its marks, and the memo.
class PickleStack {
 public:
  explicit PickleStack(const PickleLimits& limits) : limits_(limits) {}

  absl::Status Push(PickleValue value) {
    pickle_.values.push_back(std::move(value));
    return PushKnown(&pickle_.values.back());
  }
  // The same for a value that copies the items and the text of another. They
  // count as pushes, or one large tuple could be copied without limit.
  absl::Status PushCopy(PickleValue value) {
    ETC_RETURN_IF_ERROR(
        Count(value.items.size() + value.text.size() / kBytesPerPush));
    return Push(std::move(value));
  }

  // Takes nothing from below the last mark.
  absl::StatusOr<PickleValue*> Pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      return InvalidArgument("finds too little on the stack");
    }
    PickleValue* top = stack_.back();
    stack_.pop_back();
    return top;
  }
  absl::StatusOr<Items> Pop(size_t count) {
    Items items(count);
    for (size_t i = count; i-- > 0;) {
      ETC_ASSIGN_OR_RETURN(items[i], Pop());
    }
    return items;
  }

  absl::Status PushMark() {
    if (marks_.size() >= limits_.stack) {
      return InvalidArgument("should set at most ", limits_.stack,
                             " marks (limit)");
    }
    marks_.push_back(stack_.size());
    return absl::OkStatus();
  }
  // Takes all values above the last mark, and the mark.
  absl::StatusOr<Items> PopToMark() {
    if (marks_.empty()) {
      return InvalidArgument("finds no mark on the stack");
    }
    Items items(stack_.data() + marks_.back(), stack_.data() + stack_.size());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  // Adds items to the list on top, or keys and values to the dictionary there.
  // Drops them if an opaque object is on top.
  absl::Status Extend(const Items& items, bool is_list) {
    ETC_ASSIGN_OR_RETURN(PickleValue * top, Pop());
    stack_.push_back(top);
    if (top->Is(Kind::kOpaque)) {
      return absl::OkStatus();
    }
    if (is_list && !top->Is(Kind::kList)) {
      return InvalidArgument("should add to a list");
    }
    if (!is_list && (!top->IsDict() || items.size() % 2 != 0)) {
      return InvalidArgument("should add keys and values to a dictionary");
    }
    top->items.insert(top->items.end(), items.begin(), items.end());
    return absl::OkStatus();
  }

  // Remembers the value on top under `index`.
  absl::Status Memorise(uint64_t index) {
    ETC_ASSIGN_OR_RETURN(PickleValue * top, Pop());
    stack_.push_back(top);
    memo_[index] = top;
    return memo_.size() <= limits_.memo
               ? absl::OkStatus()
               : InvalidArgument("should memorise at most ", limits_.memo,
                                 " (limit)");
  }
  absl::Status MemoriseNext() { return Memorise(memo_.size()); }
  absl::Status PushMemorised(uint64_t index) {
    const auto found = memo_.find(index);
    return found != memo_.end()
               ? PushKnown(found->second)
               : InvalidArgument("nothing was memorised as ", index);
  }

  // Gives the attributes on top to an opaque object, and drops those of others.
  absl::Status Build() {
    ETC_ASSIGN_OR_RETURN(const PickleValue* attributes, Pop());
    ETC_ASSIGN_OR_RETURN(PickleValue * object, Pop());
    stack_.push_back(object);
    if (object->Is(Kind::kOpaque) && attributes->Is(Kind::kDict)) {
      // A copy, as in PushCopy.
      ETC_RETURN_IF_ERROR(Count(attributes->items.size()));
      object->items = attributes->items;
    }
    return object->Is(Kind::kOrderedDict) || object->Is(Kind::kTensor) ||
                   object->Is(Kind::kOpaque)
               ? absl::OkStatus()
               : InvalidArgument("should set attributes of an object only");
  }

  // A value with a name that may be in memory already. Its bytes count as
  // pushes, or one long name could be copied without limit.
  absl::Status PushNamed(Kind kind, std::string name) {
    ETC_RETURN_IF_ERROR(Count(name.size() / kBytesPerPush));
    return Push({.kind = kind, .text = std::move(name)});
  }
  // An object of which only the class or maker is kept.
  absl::Status PushOpaque(std::string maker) {
    return PushNamed(Kind::kOpaque, std::move(maker));
  }
  absl::Status Duplicate() {
    ETC_ASSIGN_OR_RETURN(PickleValue * top, Pop());
    stack_.push_back(top);
    return PushKnown(top);
  }

  // All values, if exactly one is on the stack.
  absl::StatusOr<Pickle> Finish() {
    if (stack_.size() != 1 || !marks_.empty()) {
      return InvalidArgument(
          "should leave one object on the stack, but there are ", stack_.size(),
          " and ", marks_.size(), " marks");
    }
    pickle_.root = stack_.back();
    return std::move(pickle_);
  }

 private:
  // Bytes of a text that count as one push.
  static constexpr size_t kBytesPerPush = 32;

  absl::Status Count(size_t pushes) {
    pushes_ += pushes;
    return pushes_ <= limits_.pushes ? absl::OkStatus() : LimitError();
  }
  absl::Status LimitError() const {
    return InvalidArgument("should need a stack of at most ", limits_.stack,
                           " and ", limits_.pushes, " pushes (limit)");
  }
  absl::Status PushKnown(PickleValue* value) {
    if (stack_.size() >= limits_.stack) {
      return LimitError();
    }
    ETC_RETURN_IF_ERROR(Count(1));
    stack_.push_back(value);
    return absl::OkStatus();
  }

  const PickleLimits limits_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, PickleValue*> memo_;
  size_t pushes_ = 0;
};

// Executes opcodes, which are named as in Python's pickletools.
class Machine {
 public:
  Machine(absl::string_view bytes, const PickleGlobals& globals,
          const PickleLimits& limits)
      : reader_(bytes), globals_(globals), stack_(limits) {}

  absl::Status Step(char opcode);
  absl::StatusOr<Pickle> Finish() { return stack_.Finish(); }
  ByteReader& reader() { return reader_; }

 private:
  // Each executes the opcodes of one group and passes the others to the next.
  absl::Status DoValue(char opcode);
  absl::Status DoBytes(char opcode);
  absl::Status DoCollection(char opcode);
  absl::Status DoSet(char opcode);
  absl::Status DoObject(char opcode);
  absl::Status DoStack(char opcode);

  template <typename T>
  absl::Status PushInteger() {
    const auto value = reader_.TakeFixed<T>();
    return value ? stack_.Push({.kind = Kind::kInteger, .integer = *value})
                 : Truncated();
  }
  template <typename T>
  absl::Status WithIndex(absl::Status (PickleStack::*action)(uint64_t)) {
    const auto index = reader_.TakeFixed<T>();
    return index ? (stack_.*action)(*index) : Truncated();
  }
  // Two's complement, least significant byte first. One of more than 8 bytes is
  // none that we need.
  absl::Status PushLong(std::optional<uint64_t> length) {
    const auto bytes = length ? reader_.Take(*length) : std::nullopt;
    if (!bytes) {
      return Truncated();
    }
    if (bytes->size() > sizeof(int64_t)) {
      return stack_.PushOpaque("int");
    }
    const bool is_negative = !bytes->empty() && (bytes->back() & 0x80) != 0;
    uint64_t value = is_negative ? ~uint64_t{0} : 0;
    for (size_t i = bytes->size(); i-- > 0;) {
      value = (value << 8) | static_cast<uint8_t>((*bytes)[i]);
    }
    return stack_.Push(
        {.kind = Kind::kInteger, .integer = static_cast<int64_t>(value)});
  }

  // Most significant byte first.
  absl::Status PushFloat() {
    const auto bits = reader_.TakeFixed<uint64_t>();
    return bits ? stack_.Push(
                      {.kind = Kind::kFloat,
                       .real = std::bit_cast<double>(__builtin_bswap64(*bits))})
                : Truncated();
  }

  absl::Status PushBytes(std::optional<uint64_t> length) {
    return length && reader_.Take(*length) ? stack_.PushOpaque("bytes")
                                           : Truncated();
  }

  // A text of Python 2, which may be bytes.
  absl::Status PushOldString(std::optional<uint64_t> length) {
    const auto text = length ? reader_.Take(*length) : std::nullopt;
    if (!text) {
      return Truncated();
    }
    return IsUtf8(*text) ? stack_.Push({.kind = Kind::kString,
                                        .text = std::string(*text)})
                         : stack_.PushOpaque("bytes");
  }

  absl::Status PushString(std::optional<uint64_t> length) {
    const auto text = length ? reader_.Take(*length) : std::nullopt;
    if (!text) {
      return Truncated();
    }
    return IsUtf8(*text) ? stack_.Push({.kind = Kind::kString,
                                        .text = std::string(*text)})
                         : InvalidArgument("a string should be UTF-8, but is ",
                                           QuotedName(*text));
  }

  absl::Status PushGlobal(absl::string_view module, absl::string_view name) {
    return stack_.PushNamed(Kind::kGlobal, absl::StrCat(module, ".", name));
  }

  absl::StatusOr<std::string> TakeLine() {
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
    return InvalidArgument("the name of a module or class should have at most ",
                           kLongest, " bytes");
  }

  // Calls nothing: the result of an unknown callable is opaque.
  absl::Status Reduce() {
    ETC_ASSIGN_OR_RETURN(const PickleValue* arguments, stack_.Pop());
    ETC_ASSIGN_OR_RETURN(const PickleValue* callable, stack_.Pop());
    const bool is_global = callable->Is(Kind::kGlobal);
    if ((!is_global && !callable->Is(Kind::kOpaque)) ||
        !arguments->Is(Kind::kTuple)) {
      return InvalidArgument("should call something with a tuple of arguments");
    }
    if (!is_global || !globals_.is_known(callable->text)) {
      return stack_.PushOpaque(callable->text);
    }
    ETC_ASSIGN_OR_RETURN(PickleValue result,
                         globals_.call(callable->text, arguments->items));
    return stack_.PushCopy(std::move(result));
  }

  // Makes an object of a class with `arguments` arguments.
  absl::Status NewObject(size_t arguments) {
    ETC_RETURN_IF_ERROR(stack_.Pop(arguments).status());
    ETC_ASSIGN_OR_RETURN(const PickleValue* type, stack_.Pop());
    return type->Is(Kind::kGlobal) || type->Is(Kind::kOpaque)
               ? stack_.PushOpaque(type->text)
               : InvalidArgument("should make an object of a class");
  }

  ByteReader reader_;
  const PickleGlobals globals_;
  PickleStack stack_;
};

absl::Status Machine::DoValue(char opcode) {
  switch (opcode) {
    case 'K':  // BININT1
      return PushInteger<uint8_t>();
    case 'M':  // BININT2
      return PushInteger<uint16_t>();
    case 'J':  // BININT
      return PushInteger<int32_t>();
    case '\x8a':  // LONG1
      return PushLong(reader_.TakeFixed<uint8_t>());
    case '\x8b':  // LONG4
      return PushLong(reader_.TakeFixed<uint32_t>());
    case '\x88':  // NEWTRUE
    case '\x89':  // NEWFALSE
      return stack_.Push({.kind = Kind::kBool, .integer = opcode == '\x88'});
    case 'N':  // NONE
      return stack_.Push({.kind = Kind::kNone});
    case 'G':  // BINFLOAT
      return PushFloat();
    case 'X':  // BINUNICODE
      return PushString(reader_.TakeFixed<uint32_t>());
    case '\x8c':  // SHORT_BINUNICODE
      return PushString(reader_.TakeFixed<uint8_t>());
    case '\x8d':  // BINUNICODE8
      return PushString(reader_.TakeFixed<uint64_t>());
    default:
      return DoBytes(opcode);
  }
}

absl::Status Machine::DoBytes(char opcode) {
  switch (opcode) {
    case 'U':  // SHORT_BINSTRING
      return PushOldString(reader_.TakeFixed<uint8_t>());
    case 'T':  // BINSTRING
      return PushOldString(reader_.TakeFixed<uint32_t>());
    case 'C':  // SHORT_BINBYTES
      return PushBytes(reader_.TakeFixed<uint8_t>());
    case 'B':  // BINBYTES
      return PushBytes(reader_.TakeFixed<uint32_t>());
    case '\x8e':  // BINBYTES8
    case '\x96':  // BYTEARRAY8
      return PushBytes(reader_.TakeFixed<uint64_t>());
    default:
      return DoCollection(opcode);
  }
}

absl::Status Machine::DoCollection(char opcode) {
  switch (opcode) {
    case '}':  // EMPTY_DICT
      return stack_.Push({.kind = Kind::kDict});
    case ']':  // EMPTY_LIST
      return stack_.Push({.kind = Kind::kList});
    case ')':  // EMPTY_TUPLE
      return stack_.Push({.kind = Kind::kTuple});
    case '(':  // MARK
      return stack_.PushMark();
    case '\x85':    // TUPLE1
    case '\x86':    // TUPLE2
    case '\x87': {  // TUPLE3
      const auto count = static_cast<size_t>(opcode - '\x85') + 1;
      ETC_ASSIGN_OR_RETURN(Items items, stack_.Pop(count));
      return stack_.Push({.kind = Kind::kTuple, .items = std::move(items)});
    }
    case 'a':    // APPEND
    case 's': {  // SETITEM
      ETC_ASSIGN_OR_RETURN(const Items items,
                           stack_.Pop(opcode == 'a' ? 1 : 2));
      return stack_.Extend(items, /*is_list=*/opcode == 'a');
    }
    case 't':    // TUPLE
    case 'e':    // APPENDS
    case 'u': {  // SETITEMS
      ETC_ASSIGN_OR_RETURN(Items items, stack_.PopToMark());
      return opcode == 't' ? stack_.Push({.kind = Kind::kTuple,
                                          .items = std::move(items)})
                           : stack_.Extend(items, /*is_list=*/opcode == 'e');
    }
    default:
      return DoSet(opcode);
  }
}

absl::Status Machine::DoSet(char opcode) {
  switch (opcode) {
    case '\x8f':  // EMPTY_SET
      return stack_.PushOpaque("set");
    case '\x90':    // ADDITEMS
    case '\x91': {  // FROZENSET
      ETC_ASSIGN_OR_RETURN(const Items items, stack_.PopToMark());
      return opcode == '\x91' ? stack_.PushOpaque("frozenset")
                              : stack_.Extend(items, /*is_list=*/true);
    }
    default:
      return DoObject(opcode);
  }
}

absl::Status Machine::DoObject(char opcode) {
  switch (opcode) {
    case 'q':  // BINPUT
      return WithIndex<uint8_t>(&PickleStack::Memorise);
    case 'r':  // LONG_BINPUT
      return WithIndex<uint32_t>(&PickleStack::Memorise);
    case '\x94':  // MEMOIZE
      return stack_.MemoriseNext();
    case 'h':  // BINGET
      return WithIndex<uint8_t>(&PickleStack::PushMemorised);
    case 'j':  // LONG_BINGET
      return WithIndex<uint32_t>(&PickleStack::PushMemorised);
    case 'c': {  // GLOBAL
      ETC_ASSIGN_OR_RETURN(const std::string module, TakeLine());
      ETC_ASSIGN_OR_RETURN(const std::string name, TakeLine());
      return PushGlobal(module, name);
    }
    case '\x93': {  // STACK_GLOBAL
      ETC_ASSIGN_OR_RETURN(const Items names, stack_.Pop(2));
      return names[0]->Is(Kind::kString) && names[1]->Is(Kind::kString)
                 ? PushGlobal(names[0]->text, names[1]->text)
                 : InvalidArgument(
                       "the names of a module and a class should be strings");
    }
    case 'R':  // REDUCE
      return Reduce();
    case 'b':  // BUILD
      return stack_.Build();
    case 'Q': {  // BINPERSID
      ETC_ASSIGN_OR_RETURN(const PickleValue* id, stack_.Pop());
      return id->Is(Kind::kTuple)
                 ? stack_.PushCopy({.kind = Kind::kStorage, .items = id->items})
                 : InvalidArgument("a persistent id should be a tuple");
    }
    case '\x81':  // NEWOBJ
      return NewObject(1);
    case '\x92':  // NEWOBJ_EX
      return NewObject(2);
    default:
      return DoStack(opcode);
  }
}

absl::Status Machine::DoStack(char opcode) {
  switch (opcode) {
    case '0':  // POP
      return stack_.Pop().status();
    case '1':  // POP_MARK
      return stack_.PopToMark().status();
    case '2':  // DUP
      return stack_.Duplicate();
    default:
      return InvalidArgument("the opcode is not allowed");
  }
}

absl::Status Machine::Step(char opcode) {
  if (opcode == '\x80') {  // PROTO
    constexpr int kLatest = 5;
    const auto version = reader_.TakeFixed<uint8_t>();
    return !version ? Truncated()
           : *version <= kLatest
               ? absl::OkStatus()
               : InvalidArgument("the protocol should be at most ", kLatest,
                                 ", but is ", *version);
  }
  if (opcode == '\x95') {  // FRAME
    return reader_.Take(sizeof(uint64_t)) ? absl::OkStatus() : Truncated();
  }
  return DoValue(opcode);
}

}  // namespace

absl::StatusOr<Pickle> ReadPickle(absl::string_view bytes,
                                  const PickleGlobals& globals,
                                  const PickleLimits& limits) {
  Machine machine(bytes, globals, limits);
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
    if (*opcode == '.') {  // STOP
      auto pickle = machine.Finish();
      if (!pickle.ok()) {
        return error(pickle.status());
      }
      pickle->bytes = at + 1;
      return pickle;
    }
    const absl::Status status = machine.Step(static_cast<char>(*opcode));
    if (!status.ok()) {
      return error(status);
    }
  }
}

}  // namespace etc
