import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/*
 * The source of a preloaded library that makes writes to files below a directory `store` fail. The
 * first byte of FAULT_FILE selects the fault: e for input/output errors, n for no space, s for half
 * of a write and then no space, f for errors of syncs only. Appends the path of each synced file and
 * directory to SYNC_FILE.
 */
const source = String.raw`
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int mode(void) {
  char byte = 0;
  int file = open(getenv("FAULT_FILE"), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (read(file, &byte, 1) != 1) byte = 0;
  close(file);
  return byte;
}

static char *path_of(int fd) {
  static __thread char path[4096];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = 0;
  return path;
}

static int is_store(int fd) { return strstr(path_of(fd), "/store/") != NULL; }

/* Bytes that may be written of size, or -1 with errno. */
static ssize_t allowed(int fd, size_t size) {
  static int was_short;
  int fault = mode();
  if (fault == 0 || fault == 'f' || !is_store(fd)) return size;
  if (fault == 's' && (was_short = !was_short)) return size / 2;
  errno = fault == 'e' ? EIO : ENOSPC;
  return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  ssize_t part = allowed(fd, size);
  return part < 0 ? -1 : real(fd, bytes, part);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
  ssize_t part = allowed(fd, size);
  return part < 0 ? -1 : real(fd, bytes, part, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
  return pwrite64(fd, bytes, size, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  return count < 1 ? 0 : pwrite64(fd, parts[0].iov_base, parts[0].iov_len, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

static int synced(int fd, const char *name) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int fault = mode();
  if ((fault == 'e' || fault == 'f') && is_store(fd)) {
    errno = EIO;
    return -1;
  }
  int file = open(getenv("SYNC_FILE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dprintf(file, "%s\n", path_of(fd));
  close(file);
  return real(fd);
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
`;

export type Fault = 'e' | 'n' | 's' | 'f';

/** A disk that fails on demand, for programs that are started with its environment. */
export interface FailingDisk {
  readonly env: Readonly<Record<string, string>>;
  fail(fault: Fault): void;
  heal(): void;
  /** The paths of the files and directories that have been synced, in order. */
  synced(): readonly string[];
}

/** Builds a failing disk in a folder; undefined if there is no C compiler. */
export function failingDisk(folder: string): FailingDisk | undefined {
  if (process.platform !== 'linux') return undefined;
  const code = join(folder, 'fault.c');
  const shim = join(folder, 'fault.so');
  writeFileSync(code, source);
  const args = ['-shared', '-fPIC', '-O1', '-o', shim, code, '-ldl'];
  if (spawnSync('gcc', args, { timeout: 30_000 }).status !== 0) return undefined;
  const file = join(folder, 'fault');
  const syncs = join(folder, 'synced');
  return {
    // Excludes other preloaded libraries of the host, such as a sanitizer's.
    env: { LD_PRELOAD: shim, FAULT_FILE: file, SYNC_FILE: syncs },
    fail: (fault) => writeFileSync(file, fault),
    heal: () => rmSync(file, { force: true }),
    synced: () => readFileSync(syncs, 'utf8').split('\n'),
  };
}

/** A separate disk in memory. */
export interface SmallDisk {
  readonly path: string;
  /** Fills the free space. */
  fill(): void;
  /** Removes what `fill` wrote. */
  makeRoom(): void;
  unmount(): void;
}

/** Mounts a small disk; undefined if this user may not mount. */
export function smallDisk(path: string, sizeBytes: number): SmallDisk | undefined {
  mkdirSync(path, { recursive: true });
  const args = ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', path];
  if (spawnSync('mount', args).status !== 0) return undefined;
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      for (const size of [2 ** 20, 4096]) {
        try {
          for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    makeRoom: () => rmSync(filler, { force: true }),
    unmount: () => void execFileSync('umount', ['-l', path]),
  };
}
