#ifndef ETC_TESTS_SUPPORT_FILE_OPERATION_SHIM_H_
#define ETC_TESTS_SUPPORT_FILE_OPERATION_SHIM_H_

// A shared library that stands before the C library's calls that change files
// (open with O_CREAT, write, fsync, ftruncate, rename, mkdir, symlink, unlink,
// rmdir): it counts those below one directory and ends the process by SIGKILL
// in the middle of one of them. A program is put behind it by LD_PRELOAD, with
//
//   ETC_SHIM_DIRECTORY=/the/directory  ETC_SHIM_KILL_AT=17
//
// or by linking it before anything else, and the two functions below.

extern "C" {

// Starts counting, from 1, the calls on paths below `directory`; ends the
// process at call number `kill_at`, 0 for never: before it is made if the
// number is even and after it if odd, but a write after half of its bytes.
void EtcShimStart(const char* directory, long kill_at);

// Calls counted since.
long EtcShimCount();
}

#endif  // ETC_TESTS_SUPPORT_FILE_OPERATION_SHIM_H_
