// Starts the bundled server once, sends the requests that clients send first, and stores the
// machine code that V8 has compiled beside the bundle, so that later servers load it instead of
// compiling. Argument: the bundle.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadBundle } from '../bin/load-bundle.js';

const path = process.argv[2];
const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-build-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
setTimeout(() => process.exit(1), 20_000);

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const mapsPath = '/api/v1/namespaces/default/configmaps';
const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { a: 'b' } };

/**
 * The first requests of clients: how soon they are answered depends mostly on how soon there is
 * compiled code.
 */
const requests = [
  { ':path': '/readyz' },
  { ':path': '/openapi/v3/api/v1' },
  { ':path': mapsPath, ':method': 'POST', body: map },
  {
    ':path': `${mapsPath}/kept?fieldManager=keeper&force=true`,
    ':method': 'PATCH',
    'content-type': 'application/apply-patch+yaml',
    body: map,
  },
  { ':path': mapsPath },
  { ':path': mapsPath, accept: tableType },
];

const { exports, script } = loadBundle(path);
const write = process.stderr.write.bind(process.stderr);
process.stderr.write = (text, ...rest) => {
  if (!String(text).startsWith('{')) return write(text, ...rest);
  const { msg, url } = JSON.parse(text);
  if (msg === 'ready') ask(url).then(keep);
  return true;
};
const flags = ['--secure-port=0', '--bind-address=127.0.0.1', '--authorization-mode=RBAC'];
const place = [`--data-dir=${directory}`, '--dialect=kubernetes'];
process.exit(await exports.main(['serve', ...flags, ...place]));

/**
 * Sends a request, because clients wait for the first answers rather than for the last line of the
 * start.
 */
async function ask(url) {
  const options = { rejectUnauthorized: false };
  await new Promise((resolve) => {
    get(`${url}/readyz`, options, (answer) => answer.resume().on('end', resolve));
  });
  const token = readFileSync(join(directory, 'admin.token'), 'utf8').trim();
  const session = connect(url, options);
  for (const { body, ...headers } of requests) {
    await new Promise((resolve) => {
      const stream = session.request({ ...headers, authorization: `Bearer ${token}` });
      stream.resume().on('end', resolve);
      stream.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
  session.destroy();
}

function keep() {
  writeFileSync(`${path}.cache`, script.createCachedData());
  process.exit(0);
}
