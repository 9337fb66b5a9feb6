// ParseJson: nlohmann's parser behind a handler that builds the document
// itself. The library's own would keep the last of two equal keys, and would
// take a NUL byte for the end of the text.

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/gzip_file.h"
#include "base/json_reader.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/tracked_iterator.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr size_t kDeepestNesting = 64;  // doc/formats.md 0.2

// "3:7", line and column of the byte before `end`, counted from 1.
std::string PlaceBefore(absl::string_view text, size_t end) {
  const absl::string_view before = text.substr(0, end > 0 ? end - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos
                            ? before.size()
                            : before.size() - newline - 1;
  return absl::StrCat(line, ":", column + 1);
}

absl::Status MistakeAt(absl::string_view text, size_t end,
                       const std::string& source, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, ":", PlaceBefore(text, end), ": ", message));
}

// The library's message without its own prefix and place, printable and short.
std::string CleanMessage(absl::string_view message) {
  const size_t bracket = message.find("] ");
  if (bracket != absl::string_view::npos) {
    message.remove_prefix(bracket + 2);
  }
  if (absl::StartsWith(message, "parse error")) {
    message.remove_prefix(std::min(message.find(": ") + 2, message.size()));
  }
  constexpr size_t kLongest = 200;
  return absl::StrCat(Printable(message.substr(0, kLongest)),
                      message.size() > kLongest ? "..." : "");
}

// Empties `value` from the inside. The library's destructor needs memory to do
// so, and ends the program when there is none, as after a document that is too
// large for the memory.
void Clear(json* value) noexcept {
  if (auto* const array = value->get_ptr<json::array_t*>()) {
    for (json& element : *array) {
      Clear(&element);
    }
    array->clear();
  } else if (auto* const object = value->get_ptr<json::object_t*>()) {
    for (auto& [name, element] : *object) {
      Clear(&element);
    }
    object->clear();
  }
}

// Receives the parser's events and builds the document. Each returns whether to
// go on.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  // `keeps_places`: of keys, so that a message can say where the first of two
  // is. It is memory that a document without mistakes does not need.
  DocumentBuilder(absl::string_view text, const std::string& source,
                  bool keeps_places)
      : text_(text),
        source_(source),
        keeps_places_(keeps_places),
        reached_(text.data()) {}
  ~DocumentBuilder() override { Clear(&document_); }
  DocumentBuilder(const DocumentBuilder&) = delete;
  DocumentBuilder& operator=(const DocumentBuilder&) = delete;

  const char** reached() { return &reached_; }
  const absl::Status& status() const { return status_; }
  // True if the mistake is a duplicate key.
  bool has_equal_keys() const { return has_equal_keys_; }
  json TakeDocument() { return std::move(document_); }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(number_integer_t value) override {
    return Add(value) != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(value) != nullptr;
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value) != nullptr;
  }
  bool string(string_t& value) override {
    return Add(std::move(value)) != nullptr;
  }
  bool binary(binary_t&) override { return Fail("JSON has no binary values"); }

  bool start_object(size_t) override { return Open(json::value_t::object); }
  bool key(string_t& name) override {
    auto& object = open_.back()->get_ref<json::object_t&>();
    const auto [place, is_new] = object.try_emplace(name);
    if (!is_new) {
      has_equal_keys_ = true;
      return Fail(absl::StrCat(
          "the key ", QuotedName(name), " is there twice",
          keeps_places_ ? absl::StrCat(", first at ",
                                       PlaceBefore(text_, ends_.back()[name]))
                        : ""));
    }
    if (keeps_places_) {
      ends_.back()[name] = reached_ - text_.data();
    }
    slot_ = &place->second;
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::value_t::array); }
  bool end_array() override { return Close(); }

  bool parse_error(size_t position, const std::string&,
                   const json::exception& error) override {
    status_ = MistakeAt(text_, position, source_, CleanMessage(error.what()));
    return false;
  }

 private:
  // Puts `value` where the next one belongs and returns it there.
  template <typename T>
  json* Add(T&& value) {
    if (open_.empty()) {
      document_ = std::forward<T>(value);
      return &document_;
    }
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<json::array_t&>();
      array.emplace_back(std::forward<T>(value));
      return &array.back();
    }
    *slot_ = std::forward<T>(value);
    return slot_;
  }

  bool Open(json::value_t kind) {
    if (open_.size() == kDeepestNesting) {
      return Fail(absl::StrCat("nesting should be at most ", kDeepestNesting,
                               " deep, but goes on"));
    }
    // Stays in its place while it is open: only then does its parent grow.
    open_.push_back(Add(json(kind)));
    ends_.resize(keeps_places_ ? open_.size() : 0);
    return true;
  }
  bool Close() {
    open_.pop_back();
    ends_.resize(keeps_places_ ? open_.size() : 0);
    return true;
  }

  bool Fail(absl::string_view message) {
    status_ = MistakeAt(text_, reached_ - text_.data(), source_, message);
    return false;
  }

  absl::string_view text_;
  const std::string& source_;
  const bool keeps_places_;
  const char* reached_;
  bool has_equal_keys_ = false;
  // The ends of the keys of each of open_.
  std::vector<std::map<std::string, size_t>> ends_;
  json document_;
  std::vector<json*> open_;  // objects and arrays, the innermost last
  json* slot_ = nullptr;     // value of the key just read
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text,
                               const std::string& source) {
  if (absl::StartsWith(text, kGzipMagic)) {
    return MistakeAt(text, 1, source, "the text is packed by gzip");
  }
  const size_t nul = text.find('\0');
  if (nul != absl::string_view::npos) {
    return MistakeAt(text, nul + 1, source, "there should be no NUL bytes");
  }
  absl::Status status;
  for (const bool keeps_places : {false, true}) {
    DocumentBuilder builder(text, source, keeps_places);
    const bool parsed = json::sax_parse(
        TrackedIterator(text.data(), builder.reached()),
        TrackedIterator(text.data() + text.size(), builder.reached()),
        &builder);
    if (parsed) {
      return builder.TakeDocument();
    }
    status = builder.status();
    if (!builder.has_equal_keys()) {
      break;
    }
  }
  return status;
}

absl::StatusOr<json> ReadJsonFile(const std::string& path) {
  return NamingOutOfMemory([&] { return absl::StrCat("reading ", path); },
                           [&]() -> absl::StatusOr<json> {
                             ETC_ASSIGN_OR_RETURN(const std::string text,
                                                  ReadUnpackedFile(path));
                             return ParseJson(text, path);
                           });
}

}  // namespace etc
