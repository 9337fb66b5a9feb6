#ifndef ETC_BASE_DIRECTORY_H_
#define ETC_BASE_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace etc {

// Changes to the entries of directories, all by FileOperations. Errors are
// those of the system, with the path in the message.

// The directory that `path` is in: "." for a name alone.
std::string FolderOf(const std::string& path);

// Checks that entries can be made in `directory` or, where it is missing, in
// its nearest ancestor that exists. Asks the system and makes nothing.
//   kInvalidArgument  that is no directory
absl::Status CheckWritableDirectory(const std::string& directory);

// Bytes that this user can still write to the file system of `directory` or,
// where it is missing, of its nearest ancestor that exists. Nothing: the system
// does not say.
std::optional<uint64_t> FreeBytes(const std::string& directory);

// Puts the names in `directory` on disk. OK where the file system does not
// sync directories, or this one may be written but not read.
absl::Status SyncDirectory(const std::string& directory);

// Gives the entry `from` the name `to` in the same directory, on disk.
absl::Status RenameEntry(const std::string& from, const std::string& to);

// Gives the entry `fresh` the name `path`, and the entry of that name the name
// `fresh`, in the same directory and on disk: in one step or, where the file
// system cannot exchange names, by way of the name `aside`. After an error one
// of the two has the name `path`.
absl::Status ExchangeEntries(const std::string& path, const std::string& fresh,
                             const std::string& aside);

// Removes `path` and all that is below it; links are removed, not followed. OK
// if it is not there.
absl::Status RemoveTree(const std::string& path);

// Makes `path` a symbolic link to `target`, in one step and on disk; a link is
// replaced. `temporary`, beside `path`, is used meanwhile, and removed first if
// it is a link or file.
absl::Status ReplaceLink(const std::string& path, const std::string& target,
                         const std::string& temporary);

// The name of a file or directory that is to become `path`:
// "<path>.realetc-<host>-<scope>-<process>-<number>.tmp", the ProcessScope
// among them, so that whoever finds it can tell whose it was.
std::string TemporaryName(const std::string& path, uint64_t number);

// Removes from `directory` the regular files, and the directories with all that
// is in them, with a TemporaryName of this host and ProcessScope whose process
// is not running; also those of this process, which must not be writing any
// there. Those of an earlier boot stay, and those that this user may not
// remove. OK if there is no such directory, or it may not be listed.
absl::Status RemoveAbandonedTemporaries(const std::string& directory);

// Identifies this boot of the machine and this process's PID namespace, in
// characters that file names can hold, without "-": processes of the same scope
// can look for one another by number. Empty if the system does not say.
std::string ProcessScope();

// Returns this machine's host name in characters that file names can hold.
std::string HostName();

}  // namespace etc

#endif  // ETC_BASE_DIRECTORY_H_
