import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { createSession, createStaticFiles, folderSource } from '@wheelhouse/console/testing';
import type { Exchange, ResponseHeaders } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { type Answer, eventually } from '../support/harness.ts';
import { buildPrograms, startProcess } from '../support/program.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from '../svcctl/svcctl-run.ts';
import { buildConsole, parseYaml } from './console.ts';

const built = await untilEnd(buildConsole());
const server = await withServer({ console: { directory: built.directory } });

const anyone = { token: undefined };
const browserSources = fileURLToPath(
  new URL('../../packages/console/src/browser', import.meta.url),
);

/** The contrast ratio of two colors by WCAG 2, from 1 to 21. */
function contrast(left: string, right: string): number {
  const luminance = (hex: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark = 0, light = 0] = [luminance(left), luminance(right)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Returns the names of the files that a page loads. */
function filesOf(page: Answer): string[] {
  return [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1] ?? '');
}

describe('the files', () => {
  test('CLIENT-4: the page and its assets are served without a credential', async () => {
    const page = await server.get('/console/', anyone);
    expect(page).toMatchObject({ status: 200 });
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    const names = filesOf(page);
    expect(names.map((name) => name.replace(/-\w{8}\./, '.')).sort()).toEqual([
      'icon.svg',
      'main.js',
      'style.css',
    ]);
    for (const name of names) {
      const file = await server.get(`/console/${name}`, anyone);
      expect(file.status, name).toBe(200);
      expect(file.headers['content-type'], name).toMatch(/^(text\/(javascript|css)|image\/svg)/);
    }
    // An invalid credential does not matter, either.
    expect((await server.get('/console/', { token: 'wrong' })).status).toBe(200);
  });

  test('CLIENT-4: the page loads nothing from elsewhere and has no inline script', async () => {
    const page = await server.get('/console/', anyone);
    for (const name of filesOf(page)) expect(name).not.toMatch(/^(\/|\w+:)/);
    expect(page.text).not.toMatch(/<script(?![^>]* src=)/);
    expect(page.text).not.toMatch(/<style|\sstyle=|\son\w+=/);
    const policy = String(page.headers['content-security-policy']);
    const directives = new Map(
      policy
        .split('; ')
        .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1).join(' ')]),
    );
    expect(Object.fromEntries(directives)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self'",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
      'require-trusted-types-for': "'script'",
      'trusted-types': "'none'",
    });
  });

  test('CLIENT-4: every response has the headers that isolate it from other sites', async () => {
    const paths = ['/console/', '/console', '/console/none.js'];
    for (const path of paths) {
      const { headers } = await server.get(path, anyone);
      expect(headers, path).toMatchObject({
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers['content-security-policy'], path).toContain("default-src 'none'");
    }
  });

  test('CLIENT-4: files named by their hash are cached forever; the page is not', async () => {
    const page = await server.get('/console/', anyone);
    expect(page.headers['cache-control']).toBe('no-cache');
    const [name = ''] = filesOf(page).filter((found) => found.endsWith('.js'));
    const script = await server.get(`/console/${name}`, anyone);
    expect(script.headers['cache-control']).toBe('public, max-age=31536000, immutable');

    const etag = String(page.headers.etag);
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const conditional = (condition: string) =>
      server.get('/console/', { ...anyone, headers: { 'if-none-match': condition } });
    for (const condition of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await conditional(condition);
      expect(again, condition).toMatchObject({ status: 304, text: '' });
      expect(again.headers.etag, condition).toBe(etag);
    }
    expect((await conditional('"other"')).status).toBe(200);
  });

  test('CLIENT-4: files are compressed as requested, each encoding with its own ETag', async () => {
    const plain = await server.get('/console/', anyone);
    expect(plain.headers['content-encoding']).toBeUndefined();
    const page = plain.text;
    const tags = new Set([plain.headers.etag]);
    const read = { br: brotliDecompressSync, gzip: gunzipSync };
    const cases = [
      ['gzip, deflate, br', 'br'],
      ['gzip, br;q=0', 'gzip'],
      ['gzip', 'gzip'],
    ] as const;
    for (const [accepted, coding] of cases) {
      const { headers, body } = await rawGet(server, '/console/', accepted);
      expect(headers['content-encoding'], accepted).toBe(coding);
      expect(headers.vary).toBe('Accept-Encoding');
      expect(read[coding](body).toString(), accepted).toBe(page);
      tags.add(headers.etag);
    }
    expect(tags.size).toBe(3);
    expect((await rawGet(server, '/console/', 'identity')).headers['content-encoding']).toBe(
      undefined,
    );
  });

  test('CLIENT-4: HEAD returns the headers, other methods 405', async () => {
    const head = await server.request('HEAD', '/console/', anyone);
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(Number(head.headers['content-length'])).toBeGreaterThan(100);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const refused = await server.request(method, '/console/', anyone);
      expect(refused.status, method).toBe(405);
      expect(refused.headers.allow, method).toBe('GET, HEAD');
    }
  });

  test('CLIENT-4: the path without a slash redirects', async () => {
    for (const path of ['/console', '/console?x=1']) {
      const answer = await server.get(path, anyone);
      expect(answer.status).toBe(308);
      // Relative, since a proxy may add a prefix.
      expect(answer.headers.location).toBe('console/');
    }
  });

  test('CLIENT-4: no path leads out of the directory', async () => {
    const paths = [
      '/console/none.js',
      '/console/../package.json',
      '/console/%2e%2e/package.json',
      '/console/..%2fpackage.json',
      '/console//index.html',
      '/console/index.html/',
      '/console/__proto__',
      '/console/index.html.gz',
      '/console/%00',
    ];
    for (const path of paths) {
      const answer = await server.get(path, anyone);
      expect(answer.status, path).toBe(404);
      expect(answer.headers['cache-control'], path).toBe('no-store');
    }
    expect((await server.get('/console/index.html', anyone)).status).toBe(200);
  });
});

describe('the rest of the server', () => {
  test('CLIENT-4: other paths are unaffected by the console', async () => {
    for (const path of ['/consoles', '/console-x', '/console.js', '/favicon.ico']) {
      expect((await server.get(path)).status, path).toBe(404);
      expect((await server.get(path, anyone)).body, path).toMatchObject({ reason: 'Forbidden' });
    }
    for (const path of ['/', '/api']) expect((await server.get(path)).status, path).toBe(200);
  });

  test('CLIENT-4: paths of a disabled console are unknown paths', async () => {
    const without = await withServer();
    for (const path of ['/console/', '/console']) {
      expect((await without.get(path)).body, path).toMatchObject({ code: 404 });
      expect((await without.get(path, anyone)).body, path).toMatchObject({ code: 403 });
    }
  });

  test('CLIENT-4: --web-console is on by default', () => {
    const consoleOf = (...flags: string[]) => {
      const outcome = readOptions(flags);
      return outcome.kind === 'options' ? outcome.options.config.console : undefined;
    };
    expect(consoleOf()?.directory).toMatch(/console$/);
    expect(consoleOf('--web-console')?.directory).toMatch(/console$/);
    expect(consoleOf('--web-console=false')).toBeUndefined();
    expect(() => readOptions(['--web-console=maybe'])).toThrow(/web-console/);
  });

  test('CLIENT-4: the built program includes the console', async () => {
    const programs = await untilEnd(buildPrograms());
    const running = await startProcess(programs);
    try {
      const page = await rawGet(running, '/console/', 'br');
      expect(page.headers['content-encoding']).toBe('br');
      expect(brotliDecompressSync(page.body).toString()).toContain('<div id="console">');
      // Everything else requires a credential.
      expect((await rawGet(running, '/api', '')).status).toBe(401);
    } finally {
      await running.remove();
    }
    const off = await startProcess(programs, { flags: ['--web-console=false'] });
    const refused = await rawGet(off, '/console/', '').finally(() => off.remove());
    expect(refused.status).toBe(401);
  }, 180_000);

  test('CLIENT-4: behind svcctl proxy, under any prefix, no sign-in is needed', async () => {
    const home = svcctlFor(server);
    const proxy = home.start('proxy --port=0 --api-prefix=/behind/it');
    try {
      const place = await eventually(
        async () => /Starting to serve on (\S+)\n/.exec(proxy.out())?.[1],
        'the proxy',
      );
      const base = `http://${place}/behind/it`;
      const moved = await fetch(`${base}/console`, { redirect: 'manual' });
      expect(new URL(moved.headers.get('location') ?? '', moved.url).href).toBe(`${base}/console/`);
      const page = await fetch(`${base}/console/`);
      expect(await page.text()).toContain('<div id="console">');
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
      const session = createSession({
        fetch,
        base,
        tokens: { read: () => undefined, write: () => {} },
        parseYaml,
        onChange: () => {},
      });
      await session.resume();
      const subject = { user: 'system:admin' };
      expect(session.state).toMatchObject({ phase: 'signed in', subject });
    } finally {
      await proxy.stop();
      home.remove();
    }
  });

  test('CLIENT-4: text has enough contrast in both themes', () => {
    const style = readFileSync(join(browserSources, 'style.css'), 'utf8');
    const both = /--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g;
    const found = [...style.matchAll(both)];
    const coloursOf = (side: 2 | 3) => new Map(found.map((match) => [match[1], match[side]]));
    for (const colours of [coloursOf(2), coloursOf(3)]) {
      const ratio = (left: string, right: string) =>
        contrast(colours.get(left) ?? '', colours.get(right) ?? '');
      for (const ground of ['back', 'raised', 'hover']) {
        for (const text of ['text', 'faint', 'link', 'good', 'bad', 'warn']) {
          expect(ratio(text, ground), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
        }
        expect(ratio('focus', ground), `focus on ${ground}`).toBeGreaterThanOrEqual(3);
      }
      expect(ratio('on-primary', 'primary')).toBeGreaterThanOrEqual(4.5);
      expect(ratio('text', 'fresh')).toBeGreaterThanOrEqual(4.5);
    }
  });

  test('CLIENT-4: bundled libraries are listed with their licenses', async () => {
    const { status, headers, text } = await server.get('/console/licenses.txt', anyone);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    for (const name of ['preact', '@codemirror/view', '@dagrejs/dagre', 'uplot', 'yaml']) {
      expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(\\S+\\)$`, 'm'));
    }
    expect(text).toContain('Permission is hereby granted');
  });

  test('CLIENT-4: editor, graph, and charts load on demand', async () => {
    const page = await server.get('/console/', anyone);
    const main = filesOf(page).find((name) => name.startsWith('main-')) ?? '';
    // Includes static imports only; dynamic ones are calls.
    const seen = new Set<string>();
    const textOf = (name: string): string => {
      if (seen.has(name)) return '';
      seen.add(name);
      const text = builtText(name);
      const imported = [...text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)];
      return text + imported.map((found) => textOf(found[1] ?? '')).join('');
    };
    const atOnce = textOf(main);
    expect(atOnce).toContain('Sign in');
    expect(atOnce).not.toMatch(/cm-content|rankdir|u-over/);
    expect(Buffer.byteLength(atOnce)).toBeLessThan(150_000);
  });

  test('CLIENT-4: the browser bundle has no Node code', async () => {
    const scripts = readdirSync(built.directory).filter((file) => file.endsWith('.js.br'));
    expect(scripts.length).toBeGreaterThan(5);
    for (const name of scripts) {
      const code = builtText(name.slice(0, -'.br'.length));
      expect(code, name).not.toMatch(/\bBuffer\.|\brequire\(|from"node:|process\.(?!env)/);
      expect(code, name).not.toMatch(/\binnerHTML\b|\beval\(|new Function\(/);
    }
  });

  test('CLIENT-4: files are read on demand, and a missing build is reported', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-no-console-'));
    rmSync(directory, { recursive: true });
    const faults: unknown[] = [];
    const files = createStaticFiles({
      source: folderSource(directory),
      onFault: (error) => faults.push(error),
    });
    expect(faults).toEqual([]);
    const sent: { status: number; headers: ResponseHeaders; body: unknown }[] = [];
    const exchange = { method: 'GET', url: '/console/', header: () => undefined };
    const send = (answer: (typeof sent)[number]) => sent.push(answer);
    await files.answer({ ...exchange, send } as unknown as Exchange);
    expect(sent.map(({ status, body }) => `${status} ${body}`)).toEqual([
      '404 The console has not been built\n',
    ]);
    expect(faults).toMatchObject([{ code: 'ENOENT' }]);
  });
});

/** Reads a file of the build, which compresses all files. */
const builtText = (name: string): string =>
  brotliDecompressSync(readFileSync(join(built.directory, `${name}.br`))).toString();

/** The raw bytes, which the client of the test server decodes as text. */
async function rawGet(
  to: { readonly url: string },
  path: string,
  acceptEncoding: string,
): Promise<{ status: number; headers: Record<string, string | undefined>; body: Buffer }> {
  const { request } = await import('node:https');
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': acceptEncoding };
    const sent = request(`${to.url}${path}`, { headers, rejectUnauthorized: false }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers as Record<string, string | undefined>,
          body: Buffer.concat(pieces),
        }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}
