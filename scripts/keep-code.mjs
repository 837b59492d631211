// Starts the bundled server once, and keeps the machine code V8 has made of it beside the bundle, so
// that every later start reads it instead of compiling. Argument: the bundle.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadBundle } from '../bin/load-bundle.js';

const path = process.argv[2];
const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-build-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
setTimeout(() => process.exit(1), 20_000);

const { exports, script } = loadBundle(path);
const write = process.stderr.write.bind(process.stderr);
process.stderr.write = (text, ...rest) => {
  if (!String(text).startsWith('{')) return write(text, ...rest);
  if (String(text).includes('"msg":"ready"')) setImmediate(keep);
  return true;
};
const flags = ['--secure-port=0', '--bind-address=127.0.0.1', '--authorization-mode=RBAC'];
process.exit(await exports.main(['serve', ...flags, `--data-dir=${directory}`]));

function keep() {
  writeFileSync(`${path}.cache`, script.createCachedData());
  process.exit(0);
}
