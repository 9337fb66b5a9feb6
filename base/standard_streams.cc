#include "base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "base/file_operations.h"
#include "base/interrupt.h"

namespace etc {
namespace {

// The buffer of std::cout; lives until the program has ended, as that does.
DescriptorBuffer* standard_output = nullptr;

}  // namespace

void OpenStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      // The lowest that is free, which is this one.
      static_cast<void>(open("/dev/null", O_RDWR));
    }
  }
}

DescriptorBuffer::DescriptorBuffer(int descriptor, Buffering buffering,
                                   std::function<bool()> is_stopped)
    : descriptor_(descriptor),
      buffering_(buffering),
      is_stopped_(std::move(is_stopped)) {
  if (buffering_ == Buffering::kFull) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type character) {
  sync();
  if (!traits_type::eq_int_type(character, traits_type::eof())) {
    const char text = traits_type::to_char_type(character);
    Write(&text, 1);
  }
  return traits_type::not_eof(character);
}

std::streamsize DescriptorBuffer::xsputn(const char* text,
                                         std::streamsize size) {
  if (buffering_ == Buffering::kFull && size < epptr() - pptr()) {
    std::copy_n(text, size, pptr());
    pbump(static_cast<int>(size));
    return size;
  }
  sync();
  Write(text, size);
  return size;
}

int DescriptorBuffer::sync() {
  Write(pbase(), pptr() - pbase());
  if (buffering_ == Buffering::kFull) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  return 0;
}

void DescriptorBuffer::Write(const char* text, std::streamsize size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int error = 0;
  while (size > 0 && error == 0) {
    if (!WaitUntilWritable()) {
      error = EAGAIN;
      break;
    }
    const ssize_t count =
        write(descriptor_, text, static_cast<size_t>(std::min(size, kPiece)));
    if (count >= 0) {
      text += count;
      size -= count;
    } else if (errno != EINTR && errno != EAGAIN) {
      error = errno;
    }
  }
  error_ = error_ == 0 ? error : error_;
}

bool DescriptorBuffer::WaitUntilWritable() {
  constexpr int kSlice = 50;     // milliseconds
  constexpr int kPatience = 20;  // slices
  for (int waited = 0;; ++waited) {
    pollfd polled = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (poll(&polled, 1, has_given_up_ ? 0 : kSlice) > 0) {
      has_given_up_ = false;
      return true;
    }
    if (!is_stopped_()) {
      waited = 0;
    } else if (has_given_up_ || waited >= kPatience) {
      has_given_up_ = true;
      return false;
    }
  }
}

void GuardStandardStreams() {
  standard_output = new DescriptorBuffer(
      STDOUT_FILENO, DescriptorBuffer::Buffering::kFull, WasInterrupted);
  std::cout.rdbuf(standard_output);
  std::cerr.rdbuf(new DescriptorBuffer(
      STDERR_FILENO, DescriptorBuffer::Buffering::kNone, WasInterrupted));
}

absl::Status FlushStandardOutput() {
  std::cout.flush();
  int error = standard_output == nullptr ? 0 : standard_output->error();
  // Some file systems say only when a file is closed that it was not written.
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0 && error == 0) {
    error = errno;
  }
  return error == 0 ? absl::OkStatus()
                    : ErrnoStatus(error, "write", "standard output");
}

bool OutputReaderLeft() {
  return standard_output != nullptr && standard_output->error() == EPIPE;
}

}  // namespace etc
