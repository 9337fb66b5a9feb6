#include "etc/weights/formats/safetensors/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/tracked_iterator.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr size_t kDeepestNesting = 64;  // doc/formats.md 0.2
// Fields of an entry, which needs three. All names are kept to find duplicates.
constexpr size_t kMostFields = 1000;

// Receives the parser's events and fills the header. Each event returns whether
// to go on; after false the status says why not.
class HeaderBuilder : public nlohmann::json_sax<json> {
 public:
  HeaderBuilder(absl::string_view text, const std::string& source,
                const SafetensorsLimits& limits)
      : text_(text), source_(source), limits_(limits), reached_(text.data()) {}

  const char** reached() { return &reached_; }
  const absl::Status& status() const { return status_; }
  SafetensorsHeader TakeHeader() { return std::move(header_); }

  bool null() override {
    return (place_ == Place::kTop && is_metadata_) || Unexpected("null");
  }
  bool boolean(bool value) override {
    return Unexpected(value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override {
    return Unexpected(absl::StrCat(value));  // only for negative numbers
  }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t& spelling) override {
    return Unexpected(absl::CHexEscape(spelling.substr(0, 40)));
  }
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return Unexpected("binary"); }
  bool start_object(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override { return Close(); }
  bool start_array(size_t) override;
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const json::exception& error) override {
    reached_ = text_.data() + std::min(position, text_.size());
    constexpr int kNumberOverflow = 406;
    return error.id == kNumberOverflow
               ? Fail("1.4.7", "a number is beyond 2^64 - 1")
               : Fail("1.4.6", "is no valid JSON here");
  }

 private:
  // Position in the header to which the next event belongs.
  enum class Place {
    kOutside,
    kTop,
    kMetadata,
    kEntry,
    kShape,
    kOffsets,
    kIgnored,  // in the value of an unknown field
  };

  bool IsKnown(absl::string_view field) const {
    return field == "dtype" || field == "shape" || field == "data_offsets";
  }
  bool Unexpected(absl::string_view found);
  bool Close();
  bool FinishEntry();
  bool AddTopKey(string_t& name);

  bool Fail(absl::string_view rule, absl::string_view message) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        source_, ": safetensors header, before byte ", reached_ - text_.data(),
        ": ", message, " (doc/formats.md ", rule, ")"));
    return false;
  }
  bool FailEntry(absl::string_view rule, absl::string_view message) {
    return Fail(rule,
                absl::StrCat("tensor ", QuotedName(name_), ": ", message));
  }

  absl::string_view text_;
  const std::string& source_;
  const SafetensorsLimits& limits_;
  const char* reached_;
  absl::Status status_;
  SafetensorsHeader header_;

  Place place_ = Place::kOutside;
  bool has_metadata_ = false;
  bool is_metadata_ = false;  // the key of kTop just read is "__metadata__"
  std::string name_;          // the other keys of kTop, or the key of kMetadata
  SafetensorsEntry* entry_ = nullptr;  // of the key just read
  std::set<std::string> fields_;       // those of the entry so far
  std::string field_;                  // the last of them
  std::vector<uint64_t> offsets_;
  size_t ignored_depth_ = 0;
};

bool HeaderBuilder::number_unsigned(number_unsigned_t value) {
  if (place_ == Place::kShape) {
    if (entry_->shape.size() == limits_.rank) {
      return FailEntry("1.4.16", absl::StrCat("shape should have at most ",
                                              limits_.rank, " dimensions"));
    }
    if (value > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return FailEntry(
          "1.4.11", absl::StrCat("dimension ", value, " is beyond 2^63 - 1"));
    }
    entry_->shape.push_back(static_cast<int64_t>(value));
    return true;
  }
  if (place_ == Place::kOffsets) {
    offsets_.push_back(value);
    return offsets_.size() <= 2 ||
           FailEntry("1.4.7",
                     "data_offsets should hold two numbers, but go on");
  }
  return Unexpected(absl::StrCat(value));
}

bool HeaderBuilder::string(string_t& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata[name_] = std::move(value);
    return true;
  }
  if (place_ == Place::kEntry && field_ == "dtype") {
    if (SafetensorsDtypeRank(value) < 0) {
      return FailEntry("1.4.8",
                       absl::StrCat("unknown dtype ", QuotedName(value)));
    }
    entry_->dtype = std::move(value);
    return true;
  }
  return Unexpected("a string");
}

bool HeaderBuilder::start_object(size_t) {
  switch (place_) {
    case Place::kOutside:
      place_ = Place::kTop;
      return true;
    case Place::kTop:
      place_ = is_metadata_ ? Place::kMetadata : Place::kEntry;
      fields_.clear();
      field_.clear();
      offsets_.clear();
      return true;
    default:
      return Unexpected("an object");
  }
}

bool HeaderBuilder::start_array(size_t) {
  if (place_ == Place::kEntry && field_ == "shape") {
    place_ = Place::kShape;
    return true;
  }
  if (place_ == Place::kEntry && field_ == "data_offsets") {
    place_ = Place::kOffsets;
    return true;
  }
  return Unexpected("an array");
}

bool HeaderBuilder::key(string_t& name) {
  switch (place_) {
    case Place::kTop:
      return AddTopKey(name);
    case Place::kMetadata:
      if (header_.metadata.size() == limits_.tensors) {
        return Fail("1.4.16", absl::StrCat("there should be at most ",
                                           limits_.tensors, " metadata"));
      }
      name_ = std::move(name);
      return header_.metadata.try_emplace(name_).second ||
             Fail("1.4.15", absl::StrCat("metadata have the key ",
                                         QuotedName(name_), " twice"));
    case Place::kEntry:
      field_ = std::move(name);
      if (fields_.size() == kMostFields) {
        return FailEntry("1.4.16", absl::StrCat("should have at most ",
                                                kMostFields, " fields"));
      }
      return fields_.insert(field_).second ||
             FailEntry("1.4.15", absl::StrCat("has the field ",
                                              QuotedName(field_), " twice"));
    default:
      return true;  // an ignored object's
  }
}

bool HeaderBuilder::AddTopKey(string_t& name) {
  is_metadata_ = name == "__metadata__";
  if (is_metadata_) {
    return !std::exchange(has_metadata_, true) ||
           Fail("1.4.15", "__metadata__ is there twice");
  }
  name_ = std::move(name);
  if (name_.size() > limits_.name_bytes) {
    return Fail("1.4.16", absl::StrCat("a tensor's name should have at most ",
                                       limits_.name_bytes, " bytes, but has ",
                                       name_.size()));
  }
  if (header_.entries.size() == limits_.tensors) {
    return Fail("1.4.16", absl::StrCat("there should be at most ",
                                       limits_.tensors, " tensors"));
  }
  const auto [place, is_new] = header_.entries.try_emplace(name_);
  entry_ = &place->second;
  return is_new || FailEntry("1.4.15", "is there twice");
}

// A value of a type that is wrong where it is, unless it is the value of an
// unknown field. `found` says what it is.
bool HeaderBuilder::Unexpected(absl::string_view found) {
  const bool opens = found == "an object" || found == "an array";
  switch (place_) {
    case Place::kOutside:
      return Fail("1.4.6", absl::StrCat("should be an object, but is ", found));
    case Place::kTop:
      return is_metadata_
                 ? Fail("1.4.9",
                        absl::StrCat("__metadata__ should be an object, "
                                     "but is ",
                                     found))
                 : FailEntry(
                       "1.4.7",
                       absl::StrCat("should be an object, but is ", found));
    case Place::kMetadata:
      return Fail("1.4.9", absl::StrCat("metadata ", QuotedName(name_),
                                        " should be a string, but is ", found));
    case Place::kEntry:
      if (IsKnown(field_)) {
        return FailEntry(
            "1.4.7", absl::StrCat(field_, " should be ",
                                  field_ == "dtype" ? "a string" : "an array",
                                  ", but is ", found));
      }
      if (opens) {
        place_ = Place::kIgnored;
        ignored_depth_ = 1;
      }
      return true;
    case Place::kShape:
    case Place::kOffsets:
      return FailEntry("1.4.7",
                       absl::StrCat(field_,
                                    " should hold whole numbers from 0 "
                                    "to 2^64 - 1, but holds ",
                                    found));
    case Place::kIgnored:
      // Ignored values are inside two objects.
      if (opens && ++ignored_depth_ + 2 > kDeepestNesting) {
        return Fail("1.4.6", absl::StrCat("nesting should be at most ",
                                          kDeepestNesting, " deep"));
      }
      return true;
  }
  return false;
}

bool HeaderBuilder::Close() {
  switch (place_) {
    case Place::kIgnored:
      if (--ignored_depth_ == 0) {
        place_ = Place::kEntry;
      }
      return true;
    case Place::kShape:
    case Place::kOffsets:
      place_ = Place::kEntry;
      return true;
    case Place::kEntry:
      place_ = Place::kTop;
      return FinishEntry();
    case Place::kMetadata:
      place_ = Place::kTop;
      return true;
    default:
      place_ = Place::kOutside;
      return true;
  }
}

bool HeaderBuilder::FinishEntry() {
  for (const char* field : {"dtype", "shape", "data_offsets"}) {
    if (!fields_.contains(field)) {
      return FailEntry("1.4.7", absl::StrCat(field, " is missing"));
    }
  }
  if (offsets_.size() != 2) {
    return FailEntry("1.4.7", absl::StrCat("data_offsets should hold two "
                                           "numbers, but hold ",
                                           offsets_.size()));
  }
  entry_->begin = offsets_[0];
  entry_->end = offsets_[1];
  return true;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view text, const std::string& source,
    const SafetensorsLimits& limits) {
  const auto error = [&](absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": safetensors header ", message));
  };
  if (text.empty()) {
    return error(
        "should be a JSON object, but is empty (doc/formats.md 1.4.6)");
  }
  if (text.front() != '{') {
    return error(absl::StrCat("should begin with {, but begins with byte ",
                              static_cast<unsigned char>(text.front()),
                              " (doc/formats.md 1.4.5)"));
  }
  if (!IsUtf8(text)) {
    return error("is no valid UTF-8 (doc/formats.md 1.4.4)");
  }
  // nlohmann's parser would take a NUL byte for the end of the text.
  if (text.find('\0') != absl::string_view::npos) {
    return error(absl::StrCat("has a NUL byte at ", text.find('\0'),
                              " (doc/formats.md 1.4.6)"));
  }
  HeaderBuilder builder(text, source, limits);
  const bool parsed = json::sax_parse(
      TrackedIterator(text.data(), builder.reached()),
      TrackedIterator(text.data() + text.size(), builder.reached()), &builder);
  if (!parsed) {
    return builder.status();
  }
  return builder.TakeHeader();
}

}  // namespace etc
