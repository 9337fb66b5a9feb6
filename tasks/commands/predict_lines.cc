#include "tasks/commands/predict_lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file_operations.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

constexpr int kPollMilliseconds = 200;

// True if nobody reads `output` any more.
bool IsClosed(const pollfd& output) {
  return (output.revents & (POLLERR | POLLNVAL)) != 0;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> LineReader::Next(Wait wait) {
  while (true) {
    if (std::optional<std::string> line = TakeLine(); line.has_value()) {
      StripEnds(&*line);
      return line;
    }
    if (is_at_end_) {
      return std::nullopt;
    }
    ETC_ASSIGN_OR_RETURN(const bool has_more, Fill(wait));
    if (!has_more && !is_at_end_ && wait == Wait::kNo) {
      return std::nullopt;
    }
  }
}

std::optional<std::string> LineReader::TakeLine() {
  if (taken_ == lines_.size()) {
    lines_.clear();
    taken_ = 0;
    return is_at_end_ && !begun_.empty()
               ? std::optional(std::exchange(begun_, ""))
               : std::nullopt;
  }
  const size_t end = lines_.find('\n', taken_);
  std::string line = lines_.substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

void LineReader::StripEnds(std::string* line) {
  const bool is_first = std::exchange(is_first_, false);
  if (line->size() > max_bytes_) {
    return;
  }
  absl::string_view text = *line;
  StripLineEnds(is_first, &text);
  *line = std::string(text);
}

bool LineReader::WaitForInput(Wait wait) {
  while (!stop_->load()) {
    std::array<pollfd, 2> polled = {
        {{.fd = input_, .events = POLLIN}, {.fd = output_, .events = 0}}};
    const int ready = poll(polled.data(), polled.size(),
                           wait == Wait::kNo ? 0 : kPollMilliseconds);
    if (ready > 0 && IsClosed(polled[1])) {
      break;
    }
    if (ready > 0 && polled[0].revents != 0) {
      return true;
    }
    if (wait == Wait::kNo) {
      return false;
    }
  }
  is_at_end_ = true;
  begun_.clear();  // a line that nobody has finished
  return false;
}

absl::StatusOr<bool> LineReader::Fill(Wait wait) {
  if (!WaitForInput(wait)) {
    return false;
  }
  std::array<char, 1 << 16> chunk;
  const ssize_t size = read(input_, chunk.data(), chunk.size());
  if (size < 0) {
    if (errno == EINTR || errno == EAGAIN) {
      return false;
    }
    return ErrnoStatus(errno, "read", "standard input");
  }
  is_at_end_ = size == 0;
  Append(chunk.data(), static_cast<size_t>(size));
  return size > 0;
}

void LineReader::Append(const char* text, size_t size) {
  const char* const end = text + size;
  while (text < end) {
    const char* const newline = std::find(text, end, '\n');
    const auto room = static_cast<size_t>(max_bytes_ + 1 - begun_.size());
    begun_.append(text, std::min(room, static_cast<size_t>(newline - text)));
    if (newline == end) {
      return;
    }
    absl::StrAppend(&lines_, begun_, "\n");
    begun_.clear();
    text = newline + 1;
  }
}

namespace {

// The beginning of the place of a record; its number from 0 on, the id of a
// record that has none, is behind it.
constexpr absl::string_view kRecordPlace = "stdin: record ";

// The message about the record of a line, named by that line.
std::string AtLine(absl::string_view message, int64_t line) {
  if (!absl::ConsumePrefix(&message, kRecordPlace)) {
    return std::string(message);
  }
  while (!message.empty() && absl::ascii_isdigit(message.front())) {
    message.remove_prefix(1);
  }
  return absl::StrCat("stdin: line ", line, message);
}

class LinePredictor {
 public:
  LinePredictor(
      const Predictor& predictor, LineReader* reader,
      const std::function<absl::Status(const std::string& line)>& write)
      : predictor_(predictor), reader_(reader), write_(write) {}

  absl::StatusOr<PredictedLines> Run() {
    while (true) {
      ETC_RETURN_IF_ERROR(StartLines());
      if (pending_.empty() && reader_->is_at_end()) {
        return result_;
      }
      if (!pending_.empty()) {
        ETC_RETURN_IF_ERROR(FinishLine());
      }
    }
  }

 private:
  // The record of a line.
  struct Line {
    int64_t number = 0;
    Predictor::Pending prediction;
  };

  // Starts the lines that are there, until enough are under way; waits for one
  // only if none is. Blank ones are no records, as in a file.
  absl::Status StartLines() {
    constexpr int64_t kBatches = 4;
    const auto most = static_cast<size_t>(kBatches * predictor_.batch_size());
    while (pending_.size() < most) {
      ETC_ASSIGN_OR_RETURN(
          const std::optional<std::string> line,
          reader_->Next(pending_.empty() ? LineReader::Wait::kUntilLine
                                         : LineReader::Wait::kNo));
      if (!line.has_value()) {
        break;
      }
      ++read_;
      if (absl::StripAsciiWhitespace(*line).empty()) {
        continue;
      }
      pending_.push_back(
          {read_,
           predictor_.Start(*line, absl::StrCat(kRecordPlace, started_++))});
    }
    return absl::OkStatus();
  }

  // Waits for the prediction of the oldest line and writes it.
  absl::Status FinishLine() {
    const int64_t number = pending_.front().number;
    const absl::StatusOr<RecordPrediction> prediction =
        pending_.front().prediction.Get();
    pending_.pop_front();
    ++result_.records;
    if (prediction.ok()) {
      return write_(prediction->json);
    }
    const std::string message = AtLine(prediction.status().message(), number);
    if (result_.errors++ == 0) {
      result_.first_error = message;
    }
    return write_(JsonAsciiText(
        nlohmann::ordered_json{{"error", message}, {"line", number}}));
  }

  const Predictor& predictor_;
  LineReader* const reader_;
  const std::function<absl::Status(const std::string& line)>& write_;
  int64_t read_ = 0;     // lines
  int64_t started_ = 0;  // records
  std::deque<Line> pending_;
  PredictedLines result_;
};

}  // namespace

absl::StatusOr<PredictedLines> PredictLines(
    const Predictor& predictor, LineReader* reader,
    const std::function<absl::Status(const std::string& line)>& write) {
  return LinePredictor(predictor, reader, write).Run();
}

}  // namespace etc
