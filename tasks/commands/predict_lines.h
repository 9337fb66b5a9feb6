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

// The result of PredictLines.
struct PredictedLines {
  int64_t records = 0;
  // Records that were answered by an error, and the first of these errors.
  int64_t errors = 0;
  std::string first_error;
};

// Answers each line of `reader` that is not blank, a record as JSON text, by a
// line for `write`, in their order and each as soon as it is known: the
// prediction, or
//
//   {"error": "stdin: line 17: ...", "line": 17}
//
// Lines that wait together run together, in batches of the predictor. Records
// without an id are called by their number, from 0 on. An error of `write` ends
// it and is returned.
absl::StatusOr<PredictedLines> PredictLines(
    const Predictor& predictor, LineReader* reader,
    const std::function<absl::Status(const std::string& line)>& write);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_PREDICT_LINES_H_
