#include "tasks/distributed/process_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/interrupt.h"

namespace etc {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int64_t kLongestPoll = 3'600'000;  // milliseconds
// The number of bytes that a pipe takes without blocking when poll() calls it
// writable (PIPE_BUF).
constexpr size_t kPiece = 4096;
// Lines that a sink has not taken, beyond which no more are read.
constexpr size_t kMostUnwritten = size_t{1} << 20;

// "SIGTERM"
std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal)
                         : absl::StrCat("SIG", name);
}

// "process 2 of 4 ended with exit code 1"
std::string DescribeEnd(int64_t rank, size_t processes, int status) {
  const std::string process = absl::StrCat("process ", rank, " of ", processes);
  if (WIFSIGNALED(status)) {
    return absl::StrCat(process, " was killed by signal ", WTERMSIG(status),
                        " (", SignalName(WTERMSIG(status)), ")");
  }
  if (WEXITSTATUS(status) == kStoppedExitCode) {
    return absl::StrCat(process, " has stopped and saved (exit code ",
                        kStoppedExitCode, ")");
  }
  return absl::StrCat(process, " ended with exit code ", WEXITSTATUS(status));
}

constexpr char kCannotWrite[] = "cannot write the processes' output";

bool IsWritable(int descriptor) {
  pollfd polled{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&polled, 1, /*timeout=*/0) > 0;
}

int Wait(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Returns true if `pid` has ended; it can still be waited for.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

}  // namespace

ProcessWatch::ProcessWatch(const WatchOptions& options)
    : options_(options),
      out_{.descriptor = options.out_fd},
      err_{.descriptor = options.err_fd} {}

ProcessWatch::~ProcessWatch() {
  SendToRunning(SIGKILL);
  for (const Process& process : processes_) {
    if (process.is_running) {
      Wait(process.pid);
    }
  }
}

void ProcessWatch::Add(ChildProcess child) {
  const auto rank = static_cast<int64_t>(processes_.size());
  const LinePrefixer lines(absl::StrCat("[", rank, "] "));
  const bool is_plain = options_.plain_output && rank == 0;
  processes_.push_back(
      {.rank = rank,
       .pid = child.pid,
       .is_running = true,
       .streams = {
           {{.source = std::move(child.out),
             .sink = options_.plain_output && rank > 0 ? &err_ : &out_,
             .lines = is_plain ? LinePrefixer("") : lines},
            {.source = std::move(child.err), .sink = &err_, .lines = lines}}}});
  ++running_;
}

absl::Status ProcessWatch::Run(SignalPipe* signals) {
  // A process may have ended before its signal could be taken.
  ReapEnded();
  while (running_ > 0) {
    WaitForEvents(signals->descriptor());
    TakeSignals(signals);
    ReapEnded();
    SendDueSignal();
  }
  WriteRest(signals);
  absl::Status status = result_;
  status.Update(out_.status);
  status.Update(err_.status);
  return status;
}

void ProcessWatch::TakeSignals(SignalPipe* signals) {
  for (const int signal : signals->Take()) {
    if (signal != SIGCHLD) {
      PassOn(signal);
    }
  }
}

bool ProcessWatch::HasUnwritten() const {
  return !out_.unwritten.empty() || !err_.unwritten.empty();
}

// Waits for a slow reader, but after a signal only a second for one that reads
// nothing.
void ProcessWatch::WriteRest(SignalPipe* signals) {
  constexpr int kPatience = 1000;  // milliseconds
  while (HasUnwritten()) {
    std::vector<pollfd> polled = {
        {.fd = signals->descriptor(), .events = POLLIN, .revents = 0}};
    for (const Sink* sink : {&out_, &err_}) {
      if (!sink->unwritten.empty()) {
        polled.push_back(
            {.fd = sink->descriptor, .events = POLLOUT, .revents = 0});
      }
    }
    if (poll(polled.data(), polled.size(),
             passed_on_.empty() ? -1 : kPatience) == 0) {
      for (Sink* sink : {&out_, &err_}) {
        if (!sink->unwritten.empty()) {
          sink->status = absl::UnavailableError(
              absl::StrCat(kCannotWrite, ": nobody reads it"));
        }
      }
      return;
    }
    TakeSignals(signals);
    WriteNow(&out_);
    WriteNow(&err_);
  }
}

// Waits for output, which it writes, a signal, or the time of the next one.
void ProcessWatch::WaitForEvents(int signals) {
  std::vector<pollfd> polled = {
      {.fd = signals, .events = POLLIN, .revents = 0}};
  std::vector<Stream*> streams;
  for (Process& process : processes_) {
    for (Stream& stream : process.streams) {
      if (stream.source.is_open() &&
          stream.sink->unwritten.size() < kMostUnwritten) {
        streams.push_back(&stream);
        polled.push_back(
            {.fd = stream.source.get(), .events = POLLIN, .revents = 0});
      }
    }
  }
  for (const Sink* sink : {&out_, &err_}) {
    if (!sink->unwritten.empty()) {
      polled.push_back(
          {.fd = sink->descriptor, .events = POLLOUT, .revents = 0});
    }
  }
  int timeout = -1;
  if (due_.has_value()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*due_ - Clock::now());
    timeout =
        static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongestPoll));
  }
  if (poll(polled.data(), polled.size(), timeout) <= 0) {
    return;
  }
  WriteNow(&out_);
  WriteNow(&err_);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (polled[i + 1].revents != 0) {
      Read(streams[i], kReadBytes);
    }
  }
}

// Writes the lines that at most `most_bytes` bytes complete. False if there
// is nothing to read now.
bool ProcessWatch::Read(Stream* stream, size_t most_bytes) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = read(stream->source.get(), bytes.data(),
                             std::min(most_bytes, bytes.size()));
  if (count > 0) {
    Write(*stream,
          stream->lines.Add({bytes.data(), static_cast<size_t>(count)}));
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    Write(*stream, stream->lines.Finish());
    stream->source.Close();
  }
  return false;
}

// Reads only the bytes in the pipe now: a process that was left running
// elsewhere may hold its other end, and write for ever.
void ProcessWatch::ReadRest(Stream* stream) {
  int rest = 0;
  if (stream->source.is_open()) {
    ioctl(stream->source.get(), FIONREAD, &rest);
  }
  auto left = static_cast<int64_t>(rest);
  while (left > 0) {
    const size_t bytes =
        std::min<size_t>(static_cast<size_t>(left), kReadBytes);
    if (!Read(stream, bytes)) {
      break;
    }
    left -= static_cast<int64_t>(bytes);
  }
  Write(*stream, stream->lines.Finish());
  stream->source.Close();
}

void ProcessWatch::Write(const Stream& stream, const std::string& lines) {
  if (stream.sink->status.ok()) {
    stream.sink->unwritten += lines;
    WriteNow(stream.sink);
  }
}

void ProcessWatch::WriteNow(Sink* sink) {
  absl::string_view text = sink->unwritten;
  while (!text.empty() && IsWritable(sink->descriptor)) {
    const ssize_t count =
        write(sink->descriptor, text.data(), std::min(text.size(), kPiece));
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      sink->status = absl::ErrnoToStatus(errno, kCannotWrite);
      // A run goes on if nobody reads its output any more.
      if (errno != EPIPE) {
        was_ended_for_output_ = true;
        EndAllAfter(0);
      }
      sink->unwritten.clear();
      return;
    }
  }
  sink->unwritten.erase(0, sink->unwritten.size() - text.size());
}

void ProcessWatch::PassOn(int signal) {
  passed_on_.push_back(signal);
  SendToRunning(signal);
}

void ProcessWatch::ReapEnded() {
  std::vector<Failure> failures;
  for (Process& process : processes_) {
    if (process.is_running && HasEnded(process.pid)) {
      if (const auto failure = Reap(&process); failure.has_value()) {
        failures.push_back(*failure);
      }
    }
  }
  NoteFailures(failures);
}

std::optional<ProcessWatch::Failure> ProcessWatch::Reap(Process* process) {
  // Kills the processes that it has started and left; before it is waited for,
  // its number cannot be that of another process group.
  kill(-process->pid, SIGKILL);
  for (Stream& stream : process->streams) {
    ReadRest(&stream);
  }
  const int status = Wait(process->pid);
  process->is_running = false;
  --running_;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return std::nullopt;
  }
  const bool was_killed = WIFSIGNALED(status);
  // A process that is still starting has no handlers, and nothing to save; one
  // that gets a second signal ends by it.
  const bool has_stopped =
      was_killed ? absl::c_linear_search(passed_on_, WTERMSIG(status))
                 : WEXITSTATUS(status) == kStoppedExitCode;
  return Failure{
      .message = DescribeEnd(process->rank, processes_.size(), status),
      .was_killed = was_killed,
      .has_stopped = has_stopped,
      .is_expected = !passed_on_.empty() && (!was_killed || has_stopped)};
}

void ProcessWatch::NoteFailures(const std::vector<Failure>& failures) {
  if (failures.empty()) {
    return;
  }
  // Chooses among failures that are seen at once: an exit code may be that of a
  // process that has lost another one, a signal hardly. A process that has
  // stopped as it was asked to is not all that there is to say if another one
  // fails.
  const auto weight = [](const Failure& failure) {
    return failure.has_stopped ? 0 : failure.was_killed ? 2 : 1;
  };
  const auto first = std::max_element(failures.begin(), failures.end(),
                                      [&](const Failure& a, const Failure& b) {
                                        return weight(a) < weight(b);
                                      });
  const bool is_news =
      result_.ok() || (IsStopped(result_) && !first->has_stopped);
  if (is_news && !was_ended_for_output_) {
    const std::string message =
        passed_on_.empty()
            ? first->message
            : absl::StrCat(first->message, " after ", SignalName(passed_on_[0]),
                           " was passed on to all processes");
    result_ = first->has_stopped   ? StoppedError(message)
              : passed_on_.empty() ? absl::AbortedError(message)
                                   : absl::CancelledError(message);
  }
  // Processes that were asked to stop may take their time to save.
  if (!std::all_of(
          failures.begin(), failures.end(),
          [](const Failure& failure) { return failure.is_expected; })) {
    EndAllAfter(options_.grace_seconds);
  }
}

void ProcessWatch::EndAllAfter(double seconds) {
  if (next_signal_ == 0) {
    next_signal_ = SIGTERM;
    due_ = Clock::now() + std::chrono::ceil<Clock::duration>(
                              std::chrono::duration<double>(seconds));
  }
}

void ProcessWatch::SendDueSignal() {
  if (!due_.has_value() || Clock::now() < *due_) {
    return;
  }
  SendToRunning(next_signal_);
  due_.reset();
  if (next_signal_ == SIGTERM) {
    next_signal_ = SIGKILL;
    due_ = Clock::now() +
           std::chrono::ceil<Clock::duration>(
               std::chrono::duration<double>(options_.grace_seconds));
  }
}

void ProcessWatch::SendToRunning(int signal) const {
  for (const Process& process : processes_) {
    if (process.is_running) {
      kill(-process.pid, signal);
    }
  }
}

namespace {

std::atomic<int> write_descriptor = -1;
static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch what needs no lock");

void WriteSignal(int signal) {
  const int error = errno;
  if (signal != SIGCHLD) {
    NoteInterrupt();
  }
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe is readable, and that is what counts.
  static_cast<void>(!write(write_descriptor.load(), &byte, 1));
  errno = error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SignalPipe>> SignalPipe::Open() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe for signals");
  }
  return std::unique_ptr<SignalPipe>(
      new SignalPipe(Descriptor(ends[0]), Descriptor(ends[1])));
}

SignalPipe::SignalPipe(Descriptor read_end, Descriptor write_end)
    : read_(std::move(read_end)), write_(std::move(write_end)) {
  write_descriptor = write_.get();
  struct sigaction action = {};
  action.sa_handler = WriteSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &before_[i]);
    if (!IsIgnored(kStopSignals[i])) {
      sigaction(kStopSignals[i], &action, nullptr);
    }
  }
  sigaction(SIGCHLD, &action, &before_.back());
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &before_[i], nullptr);
  }
  sigaction(SIGCHLD, &before_.back(), nullptr);
  write_descriptor = -1;
}

std::vector<int> SignalPipe::Take() {
  std::vector<int> signals;
  std::array<unsigned char, 64> bytes = {};
  ssize_t count = 0;
  while ((count = read(read_.get(), bytes.data(), bytes.size())) > 0) {
    signals.insert(signals.end(), bytes.begin(), bytes.begin() + count);
  }
  return signals;
}

namespace {

constexpr size_t kLongestLine = size_t{1} << 20;

}  // namespace

std::string LinePrefixer::Add(absl::string_view piece) {
  if (prefix_.empty()) {
    return std::string(piece);
  }
  std::string lines;
  if (after_return_ && !piece.empty() && piece.front() == '\n') {
    lines += '\n';
    piece.remove_prefix(1);
    after_return_ = false;
  }
  while (!piece.empty()) {
    after_return_ = false;
    size_t size = piece.find_first_of("\n\r");
    if (size == absl::string_view::npos) {
      absl::StrAppend(&line_, piece);
      break;
    }
    const bool is_return = piece[size] == '\r';
    ++size;
    if (is_return && size < piece.size() && piece[size] == '\n') {
      ++size;
    }
    after_return_ = is_return && size == piece.size() && piece.back() == '\r';
    absl::StrAppend(&lines, prefix_, line_, piece.substr(0, size));
    line_.clear();
    piece.remove_prefix(size);
  }
  if (line_.size() > kLongestLine) {
    lines += Finish();
  }
  return lines;
}

std::string LinePrefixer::Finish() {
  if (line_.empty()) {
    return "";
  }
  std::string last = absl::StrCat(prefix_, line_, "\n");
  line_.clear();
  return last;
}

}  // namespace etc
