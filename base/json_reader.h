#ifndef ETC_BASE_JSON_READER_H_
#define ETC_BASE_JSON_READER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Parses one JSON document in UTF-8. Nothing but white space may follow it,
// nesting is at most 64 deep and no object has one key twice.
//   kInvalidArgument  "<source>:<line>:<column>: ..." otherwise; the column
//                     counts bytes from 1
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         const std::string& source);

// ParseJson of the file at `path`, plain or packed by gzip, of at most 1 GiB
// when unpacked. Errors also as of ReadUnpackedFile (base/gzip_file.h).
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

// The name of a field of the object at `where` in messages: "train.jsonl:
// record 17.text", but where there is no path within a source yet
// "train.conll:17: text".
std::string PlaceOfField(absl::string_view where, absl::string_view field);

// The first mistake in the fields of an object; later ones are dropped.
class FieldMistakes {
 public:
  // `where` is the prefix of messages: the source, or "<source>: <path>" for an
  // object within it.
  explicit FieldMistakes(std::string where) : where_(std::move(where)) {}

  // The prefix of messages.
  const std::string& where() const { return where_; }
  // The prefix for a nested field: "run.json: train.optimizer".
  std::string Where(absl::string_view field) const;

  // Notes the mistake "<where>.<field> <message>" unless there is one already.
  void Fail(absl::string_view field, absl::string_view message);
  // The same unless `good`: "<field> should be <expected>, but is <found>".
  void Check(bool good, absl::string_view field, absl::string_view expected,
             const absl::AlphaNum& found);
  // The same of a status that is not OK.
  void Note(const absl::Status& status) { status_.Update(status); }

  // Returns true if no mistake has been noted yet.
  bool ok() const { return status_.ok(); }
  // kInvalidArgument, or a noted status.
  const absl::Status& status() const { return status_; }

 private:
  std::string where_;
  absl::Status status_;
};

// Typed reading of the fields of one JSON object, for configurations and data:
//
//   JsonObjectReader reader(json, "run.json: train");
//   reader.Optional("learning_rate", &options.learning_rate);
//   reader.Required("output", &options.output);
//   ETC_RETURN_IF_ERROR(reader.Finish());
//
// The first mistake is kept and returned by Finish(); reading goes on
// harmlessly after it. Messages name the place and the field:
//
//   run.json: train.learning_rate should be a number, but is "fast"
//   run.json: train has no field "learning_rte"; did you mean
//   "learning_rate"?
//
// `json` must outlive the reader.
class JsonObjectReader : public FieldMistakes {
 public:
  // If `json` is no object, that is the first mistake.
  JsonObjectReader(const nlohmann::json& json, std::string where);

  // Leave `*value` as it is when the field is absent. A null is a wrong type,
  // except for std::optional, which it resets.
  void Optional(const std::string& field, bool* value);
  void Optional(const std::string& field, int64_t* value);
  void Optional(const std::string& field, double* value);
  void Optional(const std::string& field, std::string* value);
  void Optional(const std::string& field, std::vector<std::string>* value);
  void Optional(const std::string& field, std::vector<int64_t>* value);
  void Optional(const std::string& field, std::vector<double>* value);
  void Optional(const std::string& field, std::optional<int64_t>* value);
  void Optional(const std::string& field, std::optional<std::string>* value);

  // The same for a list that people write by hand: a single value stands for a
  // list of one.
  void OneOrMore(const std::string& field, std::vector<std::string>* value);
  void OneOrMore(const std::string& field, std::vector<int64_t>* value);

  // The same for a name that may be a whole number, which becomes its digits.
  void NameOrNumber(const std::string& field, std::string* value);
  // The same for a name that may be any scalar of JSON (ScalarText).
  void Scalar(const std::string& field, std::string* value);

  // Like Optional(), but notes a mistake when the field is absent.
  template <typename T>
  void Required(const std::string& field, T* value) {
    if (Require(field)) {
      Optional(field, value);
    }
  }

  // Returns true if the field is there. Does not count as reading it.
  bool Has(const std::string& field) const;
  // The field as it stands, or nullptr (with a mistake noted when `required`).
  const nlohmann::json* Raw(const std::string& field, bool required);
  // The field as it stands, or nullptr if it is absent or null.
  const nlohmann::json* Given(const std::string& field);

  // Assigns a value that was read separately; a status that is not OK is noted
  // as a mistake unless there is one already.
  template <typename T>
  void Assign(absl::StatusOr<T> read, T* value) {
    if (read.ok()) {
      *value = *std::move(read);
    } else {
      Note(read.status());
    }
  }

  // Returns the first mistake, as status() does, which leaves other fields
  // alone: here a field of the object that nobody asked for is a mistake, and
  // the message has the nearest of those asked for, or all of them. It comes
  // before a missing field: that one may just be misspelt.
  absl::Status Finish();

  // The fields of the object that nobody asked for.
  std::vector<std::string> UnreadFields() const;

 private:
  bool Require(const std::string& field);
  const nlohmann::json* Find(const std::string& field);
  template <typename T>
  void TakeField(const std::string& field, T* value);
  template <typename T>
  void TakeArray(const std::string& field, std::vector<T>* value);
  template <typename T>
  void TakeOneOrMore(const std::string& field, std::vector<T>* value);

  const nlohmann::json& json_;
  std::set<std::string> asked_;
  bool is_missing_ = false;  // the mistake is a field that is not there
};

// A T from a JSON object, which `read(reader, &value)` reads: fields that it
// does not ask for are ignored. `where` starts each message.
//   kInvalidArgument  the first mistake that the reader notes
template <typename T, typename Read>
absl::StatusOr<T> ReadObject(const nlohmann::json& json,
                             const std::string& where, Read read) {
  T value;
  JsonObjectReader reader(json, where);
  read(reader, &value);
  ETC_RETURN_IF_ERROR(reader.status());
  return value;
}

// ParseJson, and `read` of the object: fields that it does not ask for are
// ignored.
//   kInvalidArgument  the text is no JSON, or the first mistake that is noted
absl::Status ParseFields(absl::string_view text, const std::string& where,
                         absl::FunctionRef<void(JsonObjectReader&)> read);

// ReadObject of the object's text.
template <typename T, typename Read>
absl::StatusOr<T> ParseObject(absl::string_view text, const std::string& where,
                              Read read) {
  T value;
  ETC_RETURN_IF_ERROR(ParseFields(
      text, where, [&](JsonObjectReader& reader) { read(reader, &value); }));
  return value;
}

// The entry of `candidates` with the smallest edit distance to `word`, or empty
// if none is near enough to be meant.
std::string NearestName(absl::string_view word,
                        const std::vector<std::string>& candidates);

}  // namespace etc

#endif  // ETC_BASE_JSON_READER_H_
