import { existsSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { listenLocally, trackConnections } from '../support/local-server.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

/** Sets a window's title, clears the screen, and begins a sequence with a single character. */
const sequences = '\u001b]0;title\u0007\u001b[2J\u009b31m';

/** The name of all objects. */
let name = 'p';
/** The status of all answers but those of discovery. */
let status = 200;

const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const resource = (plural: string, kind: string, namespaced: boolean) => ({
  ...{ name: plural, singularName: '', namespaced, kind, verbs },
});

const objectOf = (kind: string): JsonObject => ({
  apiVersion: 'v1',
  kind,
  metadata: {
    ...{ name, namespace: 'default', uid: 'u', resourceVersion: '1' },
    annotations: { a: sequences },
  },
  spec: { containers: [{ name: 'c', image: 'i', env: [{ name: 'E', value: sequences }] }] },
});

function answerTo(path: string): JsonObject {
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') return { kind: 'APIGroupList', groups: [] };
  if (path === '/api/v1') {
    const resources = [resource('pods', 'Pod', true), resource('namespaces', 'Namespace', false)];
    return { kind: 'APIResourceList', groupVersion: 'v1', resources };
  }
  if (path === '/version') return { gitVersion: `v1.32.0${sequences}` };
  const kind = path.includes('/pods') ? 'Pod' : 'Namespace';
  if (status !== 200) {
    const reason = `Odd${sequences}`;
    return { kind: 'Status', status: 'Failure', code: status, reason, message: sequences };
  }
  const isList = path.endsWith('s');
  return isList
    ? { kind: `${kind}List`, apiVersion: 'v1', items: [objectOf(kind)] }
    : objectOf(kind);
}

describe('CLIENT-1: svcctl with a hostile server', async () => {
  const home = untilEnd(svcctlFor(await withServer()));
  const hostile = http.createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://hostile').pathname;
    const isDiscovery = /^\/(?:apis?|api\/v1)$/.test(path);
    request.resume();
    response.writeHead(isDiscovery ? 200 : status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answerTo(path)));
  });
  const port = await listenLocally(hostile);
  untilEnd(trackConnections(hostile, ['connection']));
  const run = (line: string) => home.run(`-s http://127.0.0.1:${port} ${line}`);
  beforeEach(() => {
    name = 'p';
    status = 200;
    home.terminal = { outIsTerminal: true, errIsTerminal: true };
  });

  test.each([
    ['annotate pod p --list', 200],
    ['set env pod/p --list', 200],
    ['version', 200],
    ['get --raw /version', 200],
    ['get pod p', 422],
    ['delete pod p', 500],
    ['logs p', 403],
    ['get --raw /x', 404],
  ])('CLIENT-1: %s shows control characters on a terminal, status %i', async (line, code) => {
    status = code;
    const { out, err } = await run(line);
    const shown = out + err;
    expect(shown).toMatch(/\^\[\[2J|\\u001b\[2J/);
    const isColor = (part: string) => /^\[\d*m/.test(part);
    const parts = shown.split('\u001b');
    expect(parts.slice(1).every(isColor), shown).toBe(true);
    expect(parts.join('')).not.toMatch(/(?![\t\n])\p{Cc}/u);
  });

  test('CLIENT-1: templates, and output to a file, are unchanged', async () => {
    const template = await run('get pod p -o jsonpath={.metadata.annotations.a}');
    expect(template.out).toBe(sequences);
    home.terminal = {};
    expect((await run('annotate pod p --list')).out).toContain(sequences);
  });

  test('CLIENT-1: a name does not lead out of the folder of a dump', async () => {
    name = '../../escaped';
    const folder = join(home.folder, 'a', 'b', 'dump');
    const { code, err } = await run(`cluster-info dump -A --output-directory=${folder}`);
    expect(code).toBe(1);
    expect(err).toContain('is outside of its folder');
    expect(existsSync(join(home.folder, 'a', 'escaped'))).toBe(false);
  });

  test('CLIENT-1: a name does not lead out of the folder of a comparison', async () => {
    const target = join(home.folder, 'escaped');
    name = `/../../../../../../../..${target}`;
    const pod = { ...objectOf('Pod'), metadata: { name: 'p', namespace: 'default' } };
    const { code, err } = await run(`diff -f ${home.write('pod.json', JSON.stringify(pod))}`);
    expect(err).toContain('is outside of its folder');
    expect(code).toBeGreaterThan(1);
    expect(existsSync(target)).toBe(false);
  });
});
