#include "tasks/distributed/listen_address.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace etc {
namespace {

// An IPv4 address is kept in IPv6's form, ::ffff:127.0.0.1, which a socket of
// either kind can have.
thread_local std::optional<in6_addr> listen_address;

constexpr size_t kBytesBeforeIpv4 = 12;

std::optional<in6_addr> ParseAddress(const std::string& text) {
  in6_addr address = {};
  if (inet_pton(AF_INET6, text.c_str(), &address) == 1) {
    return address;
  }
  address = {};
  address.s6_addr[10] = address.s6_addr[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), &address.s6_addr[kBytesBeforeIpv4]) ==
      1) {
    return address;
  }
  return std::nullopt;
}

// `address` with the address of this thread, if it was that of all interfaces.
sockaddr_storage Restricted(const sockaddr* address, socklen_t length) {
  sockaddr_storage result = {};
  std::memcpy(&result, address, length);
  if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&result);
    if (IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr)) {
      ipv6->sin6_addr = *listen_address;
    }
  } else if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&result);
    if (ipv4->sin_addr.s_addr == htonl(INADDR_ANY) &&
        IN6_IS_ADDR_V4MAPPED(&*listen_address)) {
      std::memcpy(&ipv4->sin_addr, &listen_address->s6_addr[kBytesBeforeIpv4],
                  sizeof(ipv4->sin_addr));
    }
  }
  return result;
}

using BindFunction = int (*)(int, const sockaddr*, socklen_t);

std::string ToText(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> text = {};
  return getnameinfo(reinterpret_cast<const sockaddr*>(&address), length,
                     text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0
             ? text.data()
             : "";
}

}  // namespace

ListenAddress::ListenAddress(const std::string& address) {
  listen_address = ParseAddress(address);
}

ListenAddress::~ListenAddress() { listen_address.reset(); }

std::string NumericAddress(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) {
    return "";
  }
  sockaddr_storage address = {};
  const socklen_t length = found->ai_addrlen;
  std::memcpy(&address, found->ai_addr, length);
  freeaddrinfo(found);
  return ToText(address, length);
}

std::string AddressTowards(const std::string& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), "9", &hints, &found) != 0) {
    return "";
  }
  // Connecting such a socket sends nothing, but chooses an address.
  const int socket_fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own = {};
  socklen_t length = sizeof(own);
  const bool known =
      socket_fd >= 0 &&
      connect(socket_fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket_fd, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  if (socket_fd >= 0) {
    close(socket_fd);
  }
  freeaddrinfo(found);
  return known ? ToText(own, length) : "";
}

bool IsLoopback(const std::string& address) {
  constexpr uint8_t kLoopbackNetwork = 127;
  const std::optional<in6_addr> parsed = ParseAddress(address);
  if (!parsed.has_value()) {
    return false;
  }
  return IN6_IS_ADDR_V4MAPPED(&*parsed)
             ? parsed->s6_addr[kBytesBeforeIpv4] == kLoopbackNetwork
             : IN6_IS_ADDR_LOOPBACK(&*parsed);
}

bool IsOwnAddress(const std::string& address) {
  ifaddrs* interfaces = nullptr;
  if (IsLoopback(address) || getifaddrs(&interfaces) != 0) {
    return IsLoopback(address);
  }
  bool is_own = false;
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_addr->sa_family != AF_INET &&
                                     one->ifa_addr->sa_family != AF_INET6)) {
      continue;
    }
    const socklen_t length = one->ifa_addr->sa_family == AF_INET
                                 ? sizeof(sockaddr_in)
                                 : sizeof(sockaddr_in6);
    sockaddr_storage own = {};
    std::memcpy(&own, one->ifa_addr, length);
    is_own = is_own || ToText(own, length) == address;
  }
  freeifaddrs(interfaces);
  return is_own;
}

}  // namespace etc

// Stands before the C library's, for this program and the libraries it uses.
extern "C" __attribute__((visibility("default"))) int bind(
    int socket_fd, const sockaddr* address, socklen_t length) noexcept {
  static const auto next =
      reinterpret_cast<etc::BindFunction>(dlsym(RTLD_NEXT, "bind"));
  if (next == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  if (!etc::listen_address.has_value() || address == nullptr ||
      length > sizeof(sockaddr_storage)) {
    return next(socket_fd, address, length);
  }
  const sockaddr_storage restricted = etc::Restricted(address, length);
  return next(socket_fd, reinterpret_cast<const sockaddr*>(&restricted),
              length);
}
