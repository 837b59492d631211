import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { Profile } from 'pprof-format';
import { describe, expect, test } from 'vitest';
import { adminToken, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let verbosity = 0;
const quiet = () => {};
const logger = {
  ...{ info: quiet, warn: quiet, error: quiet, debug: quiet },
  get verbosity() {
    return verbosity;
  },
  setVerbosity(wanted: number) {
    verbosity = wanted;
  },
};
const server = await withServer({ logger });

/** An answer with a binary body. */
async function getBytes(path: string) {
  const headers = { authorization: `Bearer ${adminToken}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const url = new URL(path, server.url);
    https.get(url, { headers, rejectUnauthorized: false }, resolve).on('error', reject);
  });
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

/** The names of the measured values, and the number of stacks. */
function read(bytes: Buffer): { readonly types: readonly string[]; readonly stacks: number } {
  const profile = Profile.decode(gunzipSync(bytes));
  const { strings } = profile.stringTable;
  const types = profile.sampleType.map(({ type }) => strings[Number(type)] ?? '');
  return { types, stacks: profile.sample.length };
}

describe('/debug/pprof', () => {
  test('OPS-1: has an index, to which the path without a slash redirects', async () => {
    const short = await server.get('/debug/pprof');
    expect(short.status).toBe(302);
    expect(short.headers['location']).toBe('/debug/pprof/');
    const index = await server.get('/debug/pprof/');
    expect(index.status).toBe(200);
    expect(index.headers['content-type']).toBe('text/html; charset=utf-8');
    for (const name of ['profile', 'heap', 'allocs']) {
      expect(index.text).toContain(`<a href="${name}">`);
    }
  });

  test('OPS-1: a CPU profile has stacks with their time', async () => {
    const path = '/debug/pprof/profile?seconds=1';
    let isOver = false;
    const taken = getBytes(path).finally(() => {
      isOver = true;
    });
    await eventually(async () => {
      await server.get('/api/v1/configmaps');
      return isOver;
    }, 'the profile');
    const answer = await taken;
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/octet-stream');
    expect(answer.headers['content-disposition']).toBe('attachment; filename="profile"');
    const { types, stacks } = read(answer.bytes);
    expect(types).toEqual(['samples', 'cpu']);
    expect(stacks).toBeGreaterThan(0);
  });

  test.each([
    ['heap?seconds=1&gc=1', 'inuse_space'],
    ['allocs?seconds=1', 'alloc_space'],
  ])('OPS-1: %s is a memory profile', async (name, type) => {
    let isOver = false;
    const taken = getBytes(`/debug/pprof/${name}`).finally(() => {
      isOver = true;
    });
    await eventually(async () => {
      await server.get('/apis');
      return isOver;
    }, 'the profile');
    const answer = await taken;
    expect(answer.status).toBe(200);
    expect(read(answer.bytes).types).toEqual([type]);
  });

  test('OPS-1: only one profile runs at a time', async () => {
    const answers = await Promise.all(
      ['profile', 'heap'].map((name) => server.get(`/debug/pprof/${name}?seconds=1`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 500]);
    const refused = answers.find(({ status }) => status === 500);
    expect(refused?.text).toBe('Could not enable profiling: another profile is being taken\n');
    expect((await server.get('/debug/pprof/heap?seconds=1')).status).toBe(200);
  });

  test.each(['goroutine', 'cmdline', 'trace', 'profile/more'])(
    'OPS-1: %s is not available',
    async (name) => {
      const answer = await server.get(`/debug/pprof/${name}`);
      expect(answer.status).toBe(404);
      expect(answer.headers['x-go-pprof']).toBe('1');
      expect(answer.text).toBe('Unknown profile\n');
    },
  );

  test.each([
    ['heap?seconds=0', 'invalid value for "seconds"'],
    ['heap?seconds=-1', 'invalid value for "seconds"'],
    ['allocs?seconds=abc', 'invalid value for "seconds"'],
    ['profile?seconds=100000', 'must be a positive integer, at most 600'],
    ['heap?debug=1', 'in the pprof format alone'],
  ])('OPS-1: %s is refused', async (name, why) => {
    const answer = await server.get(`/debug/pprof/${name}`);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(why);
  });

  test('AUTHZ-1: requires the right to get the path', async () => {
    for (const path of ['/debug/pprof/', '/debug/pprof/heap?seconds=1', '/debug/flags/v']) {
      expect((await server.get(path, { token: undefined })).status).toBe(403);
    }
    expect(await server.get('/')).toMatchObject({ status: 200 });
    expect((await server.get('/')).text).not.toContain('/debug/');
  });
});

describe('/debug/flags', () => {
  const path = '/debug/flags/v';
  const set = (body: string) =>
    server.request('PUT', path, { body, headers: { 'content-type': 'text/plain' } });

  test('OPS-2: a PUT sets the log verbosity', async () => {
    const answer = await set('4');
    expect(answer.status).toBe(200);
    expect(answer.text).toBe('successfully set klog.logging.verbosity to 4\n');
    expect(verbosity).toBe(4);
    expect((await set('0')).status).toBe(200);
    expect(verbosity).toBe(0);
  });

  test.each([
    ['abc', 'strconv.ParseUint: parsing "abc": invalid syntax\n'],
    ['', 'strconv.ParseUint: parsing "": invalid syntax\n'],
    ['-3', 'strconv.ParseUint: parsing "-3": invalid syntax\n'],
    ['99999999999', 'strconv.ParseUint: parsing "99999999999": value out of range\n'],
  ])('OPS-2: %j is not a verbosity', async (body, text) => {
    const answer = await set(body);
    expect(answer.status).toBe(400);
    expect(answer.text).toBe(text);
    expect(verbosity).toBe(0);
  });

  test('OPS-2: only PUT is allowed, and other paths list the flags', async () => {
    expect((await server.get(path)).status).toBe(406);
    expect((await server.post(path, {})).text).toBe('unsupported http method\n');
    for (const listing of ['/debug/flags', '/debug/flags/', '/debug/flags/vmodule']) {
      const answer = await server.get(listing);
      expect(answer.status).toBe(200);
      expect(answer.text).toContain('<li>v: PUT');
    }
    expect((await server.get('/debug/other')).status).toBe(404);
  });
});
