// Starts the bundled server once, asks it whether it is ready, and keeps the machine code V8 has made
// of it beside the bundle, so that every later start reads it instead of compiling. Argument: the
// bundle.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { get } from 'node:https';
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
  const { msg, url } = JSON.parse(text);
  if (msg === 'ready') ask(url).then(keep);
  return true;
};
const flags = ['--secure-port=0', '--bind-address=127.0.0.1', '--authorization-mode=RBAC'];
process.exit(await exports.main(['serve', ...flags, `--data-dir=${directory}`]));

/** What a client waits for is not the last line of a start but the first answer. */
async function ask(url) {
  const options = { rejectUnauthorized: false };
  await new Promise((resolve) => {
    get(`${url}/readyz`, options, (answer) => answer.resume().on('end', resolve));
  });
  const session = connect(url, options);
  await new Promise((resolve) => {
    session.request({ ':path': '/readyz' }).resume().on('end', resolve);
  });
  session.destroy();
}

function keep() {
  writeFileSync(`${path}.cache`, script.createCachedData());
  process.exit(0);
}
