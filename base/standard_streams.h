#ifndef ETC_BASE_STANDARD_STREAMS_H_
#define ETC_BASE_STANDARD_STREAMS_H_

#include <array>
#include <functional>
#include <mutex>
#include <streambuf>

#include "absl/status/status.h"

namespace etc {

// Opens /dev/null at those of the descriptors 0 to 2 that are closed: the next
// file to be opened would else get their number, and all that is printed. To be
// called before anything is opened.
void OpenStandardDescriptors();

// Writes to a descriptor, which stays open, and does not wait for ever for a
// reader that has stopped reading, as `less` or a terminal after Ctrl-S: once
// `is_stopped()` is true, text that nobody takes within a second is dropped.
// Text that cannot be written is dropped too; error() says that there was some.
class DescriptorBuffer final : public std::streambuf {
 public:
  enum class Buffering {
    // Each piece of text is written at once, from any thread.
    kNone,
    // Written when the buffer is full or flushed; for use by one thread.
    kFull,
  };

  DescriptorBuffer(int descriptor, Buffering buffering,
                   std::function<bool()> is_stopped);

  // errno of the first text that was dropped, or 0.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  void Write(const char* text, std::streamsize size);
  // Waits until the descriptor takes text without blocking. Returns false if
  // the text is to be dropped.
  bool WaitUntilWritable();

  // The bytes that a pipe takes without blocking once poll() calls it writable
  // (PIPE_BUF).
  static constexpr std::streamsize kPiece = 4096;

  const int descriptor_;
  const Buffering buffering_;
  const std::function<bool()> is_stopped_;
  std::array<char, kPiece> buffer_;
  std::mutex mutex_;  // of writing
  int error_ = 0;
  // True once it has waited for the reader in vain.
  bool has_given_up_ = false;
};

// Makes std::cout and std::cerr write through a DescriptorBuffer from now on,
// until WasInterrupted().
void GuardStandardStreams();

// Flushes std::cout. An error, with the system's reason, if anything that was
// written to it since GuardStandardStreams() is lost.
absl::Status FlushStandardOutput();

// Returns true if it was lost because its reader has left, as `head` does.
bool OutputReaderLeft();

}  // namespace etc

#endif  // ETC_BASE_STANDARD_STREAMS_H_
