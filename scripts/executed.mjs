// Reports which files and functions of the server a warm request executes, by V8's precise coverage
// of the bundle, whose comments name the file of each part.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:http2';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadBundle } from '../bin/load-bundle.js';
import { bundleServerWithComments } from './build.mjs';

const maps = '/api/v1/namespaces/default/configmaps';
const map = (name, data) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

/** Each type of request, as a function of the number of earlier requests of that type. */
const requests = {
  GET: () => ({ ':path': `${maps}/first` }),
  LIST: () => ({ ':path': maps }),
  WATCH: () => ({ ':path': `${maps}?watch=true&timeoutSeconds=1` }),
  create: (n) => ({ ':path': maps, ':method': 'POST', body: map(`created-${n}`, { n: `${n}` }) }),
  PUT: (n) => ({
    ':path': `${maps}/first`,
    ':method': 'PUT',
    'content-type': 'application/json',
    body: map('first', { n: `${n}` }),
  }),
  apply: (n) => ({
    ':path': `${maps}/applied?fieldManager=house`,
    ':method': 'PATCH',
    'content-type': 'application/apply-patch+yaml',
    body: map('applied', { n: `${n}` }),
  }),
};

const warmings = 5;
/**
 * Number of sampled requests. Only what all of them execute counts: the rest is background work of
 * the server, which is heaviest in the first seconds.
 */
const samples = 8;

/** `{request, files, functions}` of each type of request. */
export async function executedBy(root) {
  const program = fileURLToPath(import.meta.url);
  // Inside node_modules, from which the bundle loads machine code.
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'house-'));
  try {
    const bundle = join(folder, 'wheelhouse.cjs');
    await bundleServerWithComments(bundle);
    const child = spawn(process.execPath, [program, bundle], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    for await (const chunk of child.stdout) printed += chunk;
    return JSON.parse(printed);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The file of each part of the bundle, by the offset of the part. */
function partsOf(source) {
  return [...source.matchAll(/^\/\/ (packages\/\S+\.ts|node_modules\/\S+)$/gm)].map((match) => ({
    at: match.index,
    path: match[1],
  }));
}

/** The offsets of the functions that a sample executed. */
function begunIn(scripts, path) {
  const script = scripts.find(({ url }) => url.endsWith(basename(path)));
  const ran = (script?.functions ?? []).filter(({ ranges }) => ranges[0].count > 0);
  return new Set(ran.map(({ ranges }) => ranges[0].startOffset));
}

function summary(offsets, parts) {
  const paths = offsets.map((offset) => parts.findLast(({ at }) => at <= offset)?.path);
  const own = paths.filter((path) => path?.startsWith('packages/'));
  return { files: new Set(own).size, functions: own.length };
}

async function measure(path) {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-house-'));
  const inspector = new Session();
  inspector.connect();
  await inspector.post('Profiler.enable');
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const { exports } = loadBundle(path);
  const ready = new Promise((resolve) => {
    process.stderr.write = (text) => {
      const line = String(text);
      if (line.startsWith('{') && JSON.parse(line).msg === 'ready') resolve(JSON.parse(line).url);
      return true;
    };
  });
  const flags = ['--secure-port=0', '--bind-address=127.0.0.1', '--authorization-mode=RBAC'];
  const place = [`--data-dir=${directory}`, '--dialect=kubernetes', '--storage-backend=memory'];
  exports.main(['serve', ...flags, ...place]);
  const session = connect(await ready, { rejectUnauthorized: false });
  const token = readFileSync(join(directory, 'admin.token'), 'utf8').trim();
  const send = ({ body, ...headers }) =>
    new Promise((resolve) => {
      const stream = session.request({ ...headers, authorization: `Bearer ${token}` });
      stream.resume().on('end', resolve);
      stream.end(body);
    });
  await send({ ':path': maps, ':method': 'POST', body: map('first', {}) });
  const parts = partsOf(readFileSync(path, 'latin1'));
  const found = [];
  for (const [request, make] of Object.entries(requests)) {
    for (let n = 0; n < warmings; n++) await send(make(n));
    let always;
    for (let n = warmings; n < warmings + samples; n++) {
      await inspector.post('Profiler.takePreciseCoverage');
      await send(make(n));
      const { result } = await inspector.post('Profiler.takePreciseCoverage');
      const begun = begunIn(result, path);
      always = always?.filter((offset) => begun.has(offset)) ?? [...begun];
    }
    found.push({ request, ...summary(always, parts) });
  }
  rmSync(directory, { recursive: true, force: true });
  process.stdout.write(JSON.stringify(found), () => process.exit(0));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await measure(process.argv[2]);
