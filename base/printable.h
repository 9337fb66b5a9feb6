#ifndef ETC_BASE_PRINTABLE_H_
#define ETC_BASE_PRINTABLE_H_

#include <mutex>
#include <streambuf>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace etc {

// `text`, which may come from a file, for a terminal or a log: each byte of a
// control character (U+0000 to U+001F, U+007F to U+009F), of a line separator
// or a character that changes the direction of others (U+200E, U+200F, U+2028
// to U+202E, U+2066 to U+2069), and each byte that is not UTF-8 becomes "\x1b"
// or the like, so that it can move no cursor, and hide or reorder nothing. All
// else stays.
std::string Printable(absl::string_view text);

// Passes on its text as Printable does, except that the characters in `kept`
// stay; pieces of several threads one after the other.
class PrintableBuffer final : public std::streambuf {
 public:
  // `to` must outlive it.
  PrintableBuffer(std::streambuf* to, std::string kept)
      : to_(to), kept_(std::move(kept)) {}

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  // Writes `text`, escaped. Returns true if all of it was written.
  bool Write(absl::string_view text);

  std::streambuf* const to_;
  const std::string kept_;
  std::mutex mutex_;
  // The beginning of a character whose other bytes are still to come.
  std::string begun_;
};

// Routes std::cout and std::cerr through PrintableBuffers from now on, both
// with line feeds and tabs. The former keeps separators and directions, which
// belong to translations, the latter carriage returns, which a line of progress
// needs. For main.
void EscapeStandardStreams();

}  // namespace etc

#endif  // ETC_BASE_PRINTABLE_H_
