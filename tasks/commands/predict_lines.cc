#include "tasks/commands/predict_lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/file_operations.h"
#include "base/json_text.h"
#include "base/standard_streams.h"
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

class LineAnswerer {
 public:
  LineAnswerer(const LineAnswers& answers, const std::atomic<bool>* stop)
      : answers_(answers),
        reader_(STDIN_FILENO, STDOUT_FILENO, answers.max_line_bytes, stop) {}

  absl::Status Run() {
    while (true) {
      ETC_RETURN_IF_ERROR(StartLines());
      if (pending_.empty() && reader_.is_at_end()) {
        return End();
      }
      if (!pending_.empty()) {
        ETC_RETURN_IF_ERROR(FinishLine());
      }
    }
  }

 private:
  struct Pending {
    int64_t line = 0;
    PendingAnswer answer;
  };

  // Starts the lines that are there, until enough are under way; waits for one
  // only if none is. Blank ones are no records, as in a file.
  absl::Status StartLines() {
    while (std::ssize(pending_) < answers_.most_pending) {
      ETC_ASSIGN_OR_RETURN(
          std::optional<std::string> line,
          reader_.Next(pending_.empty() ? LineReader::Wait::kUntilLine
                                        : LineReader::Wait::kNo));
      if (!line.has_value()) {
        break;
      }
      ++lines_;
      if (absl::StripAsciiWhitespace(*line).empty()) {
        continue;
      }
      pending_.push_back({lines_, answers_.start({.json = *std::move(line),
                                                  .line = lines_,
                                                  .record = records_++})});
    }
    return absl::OkStatus();
  }

  // Waits for the answer to the oldest line and writes it.
  absl::Status FinishLine() {
    const auto [line, wait] = std::move(pending_.front());
    pending_.pop_front();
    const absl::StatusOr<std::string> answer = wait();
    if (answer.ok()) {
      return Write(*answer);
    }
    const std::string message(answer.status().message());
    if (errors_++ == 0) {
      first_error_ = message;
    }
    return Write(JsonAsciiText(
        nlohmann::ordered_json{{"error", message}, {"line", line}}));
  }

  static absl::Status Write(const std::string& line) {
    std::cout << line << "\n";
    return FlushStandardOutput();
  }

  absl::Status End() const {
    std::cerr << Counted(records_, "record") << std::endl;
    return errors_ == 0 ? absl::OkStatus()
                        : absl::InvalidArgumentError(absl::StrCat(
                              Counted(errors_, "record"),
                              errors_ == 1 ? " has an error: "
                                           : " have errors, the first: ",
                              first_error_));
  }

  const LineAnswers& answers_;
  LineReader reader_;
  int64_t lines_ = 0;
  int64_t records_ = 0;
  std::deque<Pending> pending_;
  int64_t errors_ = 0;
  std::string first_error_;
};

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

}  // namespace

absl::Status AnswerLines(const LineAnswers& answers,
                         const std::atomic<bool>* stop) {
  return LineAnswerer(answers, stop).Run();
}

absl::Status PredictLines(const Predictor& predictor,
                          const std::atomic<bool>* stop) {
  constexpr int64_t kBatches = 4;
  const auto start = [&](const RecordLine& record) -> PendingAnswer {
    return [prediction = predictor.Start(
                record.json, absl::StrCat(kRecordPlace, record.record)),
            line = record.line]() mutable -> absl::StatusOr<std::string> {
      absl::StatusOr<RecordPrediction> predicted = prediction.Get();
      if (!predicted.ok()) {
        return absl::Status(predicted.status().code(),
                            AtLine(predicted.status().message(), line));
      }
      return std::move(predicted->json);
    };
  };
  return AnswerLines({.start = start,
                      .most_pending = kBatches * predictor.batch_size(),
                      .max_line_bytes = predictor.max_record_bytes()},
                     stop);
}

}  // namespace etc
