#ifndef ETC_TESTS_SUPPORT_ERROR_MESSAGE_H_
#define ETC_TESTS_SUPPORT_ERROR_MESSAGE_H_

#include <c10/util/Exception.h>

#include <functional>
#include <string>

namespace etc {

// The message of the c10::Error that `call` throws, without a backtrace;
// "nothing was thrown" if it throws none.
inline std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

// The same of another kind of exception: its what().
template <typename Error>
std::string WhatOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_ERROR_MESSAGE_H_
