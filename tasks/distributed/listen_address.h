#ifndef ETC_TASKS_DISTRIBUTED_LISTEN_ADDRESS_H_
#define ETC_TASKS_DISTRIBUTED_LISTEN_ADDRESS_H_

#include <string>

namespace etc {

// While it lives, sockets that this thread binds to all addresses of the
// machine are bound to one instead: c10d's TCPStore has no way to say on which
// address it listens, and listens on all.
class ListenAddress {
 public:
  // An IPv4 or IPv6 address, not a name; with another text nothing changes.
  explicit ListenAddress(const std::string& address);
  ~ListenAddress();
  ListenAddress(const ListenAddress&) = delete;
  ListenAddress& operator=(const ListenAddress&) = delete;
};

// The numeric address of a host, as this machine resolves it; empty: unknown.
std::string NumericAddress(const std::string& host);

// The address of this machine by which it reaches `address`, a numeric one;
// empty: it does not.
std::string AddressTowards(const std::string& address);

// True if the numeric `address` belongs to this machine: to an interface, or to
// the loopback, which has all of 127.0.0.0/8 (Debian gives a host's own name
// 127.0.1.1).
bool IsOwnAddress(const std::string& address);

// True if the numeric `address` is a loopback address, which other machines
// cannot reach.
bool IsLoopback(const std::string& address);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_LISTEN_ADDRESS_H_
