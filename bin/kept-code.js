// V8's code cache of a bundle, stored by the first server that starts without one: beside the
// bundle, or in the user's cache folder if the folder of the bundle cannot be written.
const fs = require('node:fs');
const { homedir } = require('node:os');
const { basename, dirname, isAbsolute, join } = require('node:path');
const { cachedDataVersionTag } = require('node:v8');

/** Loaded on demand, because a start with the build's code cache does not need it. */
const crc32 = (bytes) => require('node:zlib').crc32(bytes);

/** Before the code: the mark, V8's tag, and the checksum and length of the bundle and of the code. */
const headerBytes = 24;
const mark = 0x57484331;
/** Maximum number of files of a bundle in a folder: one for each release and set of V8's flags. */
const filesMax = 4;
/** Permissions of users other than the owner to write. */
const othersWriteBits = 0o022;

/**
 * The stored code cache of a bundle for this version of V8 and its current flags.
 * @param bundle.path the file
 * @param bundle.bytes its content
 */
exports.keptCode = function keptCode({ path, bytes }) {
  const tag = cachedDataVersionTag();
  const name = basename(path);
  const inUserFolder = userFolder();
  // Named by the length, so that several installed releases can store their caches side by side.
  const file = `${name}.${bytes.length.toString(16)}.${tag.toString(16)}.cache`;
  const places = [{ folder: dirname(path), file, isPrivate: false }];
  if (inUserFolder !== undefined) places.push({ folder: inUserFolder, file, isPrivate: true });
  const headOf = (code) => {
    const head = Buffer.alloc(headerBytes);
    const numbers = [mark, tag, crc32(bytes), bytes.length, crc32(code), code.length];
    for (const [at, number] of numbers.entries()) head.writeUInt32BE(number, at * 4);
    return head;
  };
  return {
    /** The cache; undefined unless one is complete, trusted, and made of this bundle. */
    read() {
      for (const place of places) {
        const content = readTrusted(join(place.folder, place.file), path);
        const code = content?.subarray(headerBytes);
        if (code && headOf(code).equals(content.subarray(0, headerBytes))) return code;
      }
      return undefined;
    },
    /** Stores the cache at the first place that can be written; false if there is none. */
    write(code) {
      const content = Buffer.concat([headOf(code), code]);
      return places.some((place) => writeCode({ ...place, name, content }));
    },
  };
};

/** The user's folder for caches, or undefined if there is none. */
function userFolder() {
  const { XDG_CACHE_HOME = '' } = process.env;
  try {
    const base = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
    return isAbsolute(base) ? join(base, 'wheelhouse') : undefined;
  } catch {
    // A user without an entry in the host's list of users has no home.
    return undefined;
  }
}

/** Whether no other user may have written a file: its code will be executed. */
function isTrusted({ uid, mode }, owners) {
  if (process.geteuid === undefined) return true;
  return [process.geteuid(), ...owners].includes(uid) && (mode & othersWriteBits) === 0;
}

function readTrusted(path, bundle) {
  let file;
  try {
    file = fs.openSync(path, 'r');
    const isOwn = isTrusted(fs.fstatSync(file), [fs.statSync(bundle).uid]);
    return isOwn ? fs.readFileSync(file) : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) fs.closeSync(file);
  }
}

/** Writes a file under a temporary name and renames it, so that no server reads a part of it. */
function writeCode({ folder, file, isPrivate, name, content }) {
  const draft = join(folder, `${file}.${process.pid}.tmp`);
  try {
    if (isPrivate) {
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
      const found = fs.lstatSync(folder);
      if (!found.isDirectory() || !isTrusted(found, [])) return false;
    }
    fs.writeFileSync(draft, content, { mode: 0o600, flag: 'wx' });
    fs.renameSync(draft, join(folder, file));
    removeOldest(folder, name);
    return true;
  } catch {
    fs.rmSync(draft, { force: true });
    return false;
  }
}

/** Removes the oldest files that other releases and flags of V8 have left. */
function removeOldest(folder, name) {
  const files = fs
    .readdirSync(folder)
    .filter(
      (file) =>
        file.startsWith(`${name}.`) && /\.[0-9a-f]+\.[0-9a-f]+\.cache(\.\d+\.tmp)?$/.test(file),
    )
    .map((file) => ({ path: join(folder, file), ...timeOf(join(folder, file)) }))
    .sort((one, other) => other.mtimeMs - one.mtimeMs);
  for (const { path } of files.slice(filesMax)) fs.rmSync(path, { force: true });
}

function timeOf(path) {
  const { mtimeMs = 0 } = fs.statSync(path, { throwIfNoEntry: false }) ?? {};
  return { mtimeMs };
}
