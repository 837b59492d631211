// Put into the server's bundle by the build: where LMDB's package is, whose JavaScript is in the
// bundle and whose machine code is not. Asking `require.resolve` costs more than loading that code.
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

let url;

/** Stands for `import.meta` of LMDB's own files. Its `url` throws when there is no such package. */
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
