#ifndef ETC_TASKS_COMMANDS_PREDICT_LINES_H_
#define ETC_TASKS_COMMANDS_PREDICT_LINES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/inference/predictor.h"

namespace etc {

// Lines of a descriptor, which may be a pipe that stays open.
class LineReader {
 public:
  // Lines of more than `max_bytes` are cut to one byte more. `stop` becoming
  // true, and a closed reader of the descriptor `output` (-1: none), end the
  // input as its own end does.
  LineReader(int input, int output, uint64_t max_bytes,
             const std::atomic<bool>* stop)
      : input_(input), output_(output), max_bytes_(max_bytes), stop_(stop) {}

  enum class Wait { kNo, kUntilLine };
  // The next line without the line feed or carriage return and line feed that
  // end it, the first without a byte order mark; nothing at the end of the
  // input (then is_at_end()), or if none is there yet and `wait` is kNo. The
  // last line need not end with a newline.
  // The system's errors of read(2).
  absl::StatusOr<std::optional<std::string>> Next(Wait wait);
  bool is_at_end() const { return is_at_end_; }

 private:
  // A whole line of the buffer, or at the end of the input the last one.
  std::optional<std::string> TakeLine();
  // Removes from a line that is not cut what is not of its text.
  void StripEnds(std::string* line);
  // Reads what is there; waits for something if `wait` says so. False: nothing.
  absl::StatusOr<bool> Fill(Wait wait);
  // Waits until there is input, or a reason to end.
  bool WaitForInput(Wait wait);
  void Append(const char* text, size_t size);

  const int input_;
  const int output_;
  const uint64_t max_bytes_;
  const std::atomic<bool>* const stop_;
  std::string lines_;  // whole ones
  std::string begun_;  // a line without its end yet
  size_t taken_ = 0;   // bytes of lines_
  bool is_at_end_ = false;
  bool is_first_ = true;  // no line was given yet
};

// A line of standard input that is not blank.
struct RecordLine {
  std::string json;
  int64_t line = 0;    // from 1
  int64_t record = 0;  // the lines before it that are not blank
};

// Waits for the answer to a line, JSON on one line without its end; is called
// once.
using PendingAnswer = std::function<absl::StatusOr<std::string>()>;

// The answers to lines.
struct LineAnswers {
  // Begins the answer to a line.
  std::function<PendingAnswer(const RecordLine& line)> start;
  // Lines that are started before the first of them is waited for.
  int64_t most_pending = 1;
  // Longer lines are cut to one byte more.
  uint64_t max_line_bytes = 0;
};

// Answers each line of standard input that is not blank by a line on standard
// output, in their order and each as soon as it is known: the answer, or for
// its error
//
//   {"error": "stdin: line 17: ...", "line": 17}
//
// and prints the number of records to standard error. `stop` becoming true, and
// a closed standard output, end the input.
//   kInvalidArgument  a line was answered by an error; the message has the
//                     number of such lines and the first error
// and the system's errors of both streams.
absl::Status AnswerLines(const LineAnswers& answers,
                         const std::atomic<bool>* stop);

// The same with the predictions for records. Lines that wait together run
// together, in batches of the predictor. Records without an id are called by
// their number, from 0 on.
absl::Status PredictLines(const Predictor& predictor,
                          const std::atomic<bool>* stop);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_PREDICT_LINES_H_
