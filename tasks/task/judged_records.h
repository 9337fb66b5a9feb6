#ifndef ETC_TASKS_TASK_JUDGED_RECORDS_H_
#define ETC_TASKS_TASK_JUDGED_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/metrics.h"

namespace etc {

// Parts of a text, begin and end in bytes, in order and apart.
using TextPlaces = std::vector<std::pair<size_t, size_t>>;

// A record with an answer and the prediction for it, for people.
struct JudgedRecord {
  // Has a number behind it where an earlier record has the same: "17 (2)".
  std::string id;
  // Its shorter fields, a line each, then its document, without answers.
  std::string text = {};
  // The answers of the record, of JudgedFields::answer_texts alone if there are
  // some, and the prediction: one text as it is, texts of one list between
  // " | ", others as JSON without its id and what is empty; "none" if nothing
  // is left.
  std::string gold = {};
  std::string prediction = {};
  // Texts in both, which may occur in the record.
  std::vector<std::string> gold_texts = {};
  std::vector<std::string> predicted_texts = {};
  // Places of the gold in `text`: where answers are {"text": ...,
  // "answer_start": ...} those alone, else all of the gold texts.
  TextPlaces gold_places = {};
  // Code points of the document.
  int64_t length = 0;
  // Place of the evidence as a share of the document, in [0, 1]: the largest
  // "answer_start" or, of the gold texts that occur in it, the largest place
  // where one begins for the first time. -1: none occurs.
  double evidence = -1;
};

// The records of a gold file that have an answer and a prediction.
struct JudgedRecords {
  std::vector<JudgedRecord> records;
  std::string main_metric;
  // The task's metrics over some of the records, by index.
  std::function<Metrics(const std::vector<size_t>& records)> score;
  // The score of one record, by its index, and its name
  // (Benchmark::RecordScore).
  std::function<std::pair<std::string, double>(size_t record)> record_score;
};

// The fields of an official record by their use, as the Benchmark has them.
struct JudgedFields {
  // AnswerFields.
  std::vector<std::string> answers = {};
  // AnswerTextFields: texts are looked for in these alone; without any, the
  // prediction has no texts either.
  std::vector<std::string> answer_texts = {};
  // DocumentFields: the document is the first of them that has a text, or else
  // the longest field. Its texts are on lines of their own, those of a list of
  // objects (words) between blanks.
  std::vector<std::string> documents = {};
  // ShowAnswers; null: answers are shown as they are.
  std::function<void(const nlohmann::json& record, nlohmann::json* answers)>
      show_answers = nullptr;
};

// A judged record of the JSON of an official record and of a prediction
// (Benchmark::PredictionJson). Fields longer than the document, which have it
// in another form, are left out, and so are lists and objects without texts and
// fields whose name begins with a line feed, which readers of files add. "yes"
// and "no" are no texts.
JudgedRecord JudgeRecord(std::string id, const nlohmann::json& record,
                         const JudgedFields& fields,
                         const std::string& prediction);

// The places in `text` where one of `words` stands: whole words, upper and
// lower case of ASCII alike. Words of one byte are not looked for.
TextPlaces FindWords(absl::string_view text,
                     const std::vector<std::string>& words);

// Sorts parts of a text and leaves out those that overlap an earlier one, or
// begin with a longer one.
TextPlaces WithoutOverlaps(TextPlaces places);

}  // namespace etc

#endif  // ETC_TASKS_TASK_JUDGED_RECORDS_H_
