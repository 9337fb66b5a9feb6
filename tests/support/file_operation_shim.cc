#include "tests/support/file_operation_shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::array<char, PATH_MAX> watched = {};  // empty: nothing is counted
std::atomic<long> count = 0;
std::atomic<long> kill_at_count = 0;

[[noreturn]] void Die() {
  kill(getpid(), SIGKILL);
  while (true) {
    pause();
  }
}

// The C library's function, or the next shim's.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool IsBelow(const std::string& path) {
  const size_t length = std::strlen(watched.data());
  return length > 0 && path.compare(0, length, watched.data()) == 0;
}

std::string PathOf(int descriptor) {
  std::array<char, PATH_MAX> path = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length))
                    : "";
}

std::string PathOf(int directory, const char* path) {
  return path[0] == '/' || directory == AT_FDCWD
             ? path
             : PathOf(directory) + "/" + path;
}

// The number of a call on `path` if it is the last one, else 0.
long NumberIfLast(const std::string& path) {
  if (!IsBelow(path)) {
    return 0;
  }
  const long number = ++count;
  return number == kill_at_count ? number : 0;
}

// Makes a call, unless the process ends before it.
template <typename Call>
auto Make(const std::string& path, const Call& call) {
  const long number = NumberIfLast(path);
  if (number != 0 && number % 2 == 0) {
    Die();
  }
  const auto result = call();
  if (number != 0) {
    Die();
  }
  return result;
}

__attribute__((constructor)) void StartFromEnvironment() {
  const char* directory = std::getenv("ETC_SHIM_DIRECTORY");
  const char* at = std::getenv("ETC_SHIM_KILL_AT");
  if (directory != nullptr && at != nullptr) {
    EtcShimStart(directory, std::atol(at));
  }
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int))
                                : 0;
}

int Open(const char* name, int directory, const char* path, int flags,
         mode_t mode) {
  const auto call = [&] {
    return Next<int (*)(int, const char*, int, ...)>(name)(directory, path,
                                                           flags, mode);
  };
  return (flags & (O_CREAT | O_TRUNC)) != 0
             ? Make(PathOf(directory, path), call)
             : call();
}

}  // namespace

extern "C" {

void EtcShimStart(const char* directory, long kill_at) {
  std::snprintf(watched.data(), watched.size(), "%s", directory);
  count = 0;
  kill_at_count = kill_at;
}

long EtcShimCount() { return count; }

// All four by openat, which they are.
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("openat", AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("openat64", AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("openat", directory, path, flags, mode);
}

int openat64(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("openat64", directory, path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (watched[0] != '\0' && NumberIfLast(PathOf(descriptor)) != 0) {
    next(descriptor, data, size / 2);
    Die();
  }
  return next(descriptor, data, size);
}

int fsync(int descriptor) {
  return Make(PathOf(descriptor),
              [&] { return Next<int (*)(int)>("fsync")(descriptor); });
}

int ftruncate(int descriptor, off_t size) noexcept {
  return Make(PathOf(descriptor), [&] {
    return Next<int (*)(int, off_t)>("ftruncate")(descriptor, size);
  });
}

int rename(const char* from, const char* to) noexcept {
  return Make(to, [&] {
    return Next<int (*)(const char*, const char*)>("rename")(from, to);
  });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return Make(path, [&] {
    return Next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
  });
}

int symlink(const char* target, const char* path) noexcept {
  return Make(path, [&] {
    return Next<int (*)(const char*, const char*)>("symlink")(target, path);
  });
}

int unlink(const char* path) noexcept {
  return Make(path, [&] { return Next<int (*)(const char*)>("unlink")(path); });
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  return Make(PathOf(directory, path), [&] {
    return Next<int (*)(int, const char*, int)>("unlinkat")(directory, path,
                                                            flags);
  });
}

int rmdir(const char* path) noexcept {
  return Make(path, [&] { return Next<int (*)(const char*)>("rmdir")(path); });
}
}
