// Included in the server's bundle by the build: the location of LMDB's package, whose JavaScript is
// in the bundle and whose machine code is not. Calling `require.resolve` would cost more than
// loading that code.
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

let url;

/** Replaces `import.meta` of LMDB's own files. Its `url` throws if the package is missing. */
export const lmdbPackage = {
  get url() {
    url ??= pathToFileURL(join(realpathSync(find()), 'index.js')).href;
    return url;
  },
};

function find() {
  const folders = require.resolve.paths('lmdb').map((folder) => join(folder, 'lmdb'));
  const found = folders.find((folder) => existsSync(join(folder, 'package.json')));
  if (found === undefined) throw new Error('the package lmdb is not installed');
  return found;
}
