import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { eventually } from '../support/harness.ts';
import { listenLocally } from '../support/local-server.ts';
import { withPlayedNode } from './played-node.ts';

const pods = '/api/v1/namespaces/default/pods';

const { server, kubelet, inside, played, home } = await withPlayedNode();
beforeAll(async () => {
  const answers = [
    await makePod('one', { containers: [{ name: 'main', image: 'i', tty: true }] }),
    await makePod('two', {
      containers: [
        {
          name: 'a',
          image: 'i',
          ports: [
            { name: 'web', containerPort: 8080 },
            { name: 'dns', containerPort: 5353, protocol: 'UDP' },
          ],
        },
        { name: 'b', image: 'i' },
      ],
    }),
    await makePod('away', { nodeName: '', containers: [{ name: 'a', image: 'i' }] }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  for (const name of ['one', 'two']) {
    const running = { status: { phase: 'Running' } };
    expect((await server.patch(`${pods}/${name}/status`, running, 'merge')).status).toBe(200);
  }
});
afterEach(() => {
  delete played.failing.status;
  delete played.failing.isCutOff;
  home.terminal = {};
  home.onOutput = () => {};
});

function makePod(name: string, spec: object) {
  const metadata = { name, labels: { app: name } };
  return server.post(pods, { metadata, spec: { nodeName: 'n', ...spec } });
}

const shell = (script: string, ...flags: string[]) => [
  ...['exec', 'one', ...flags, '--', 'sh', '-c'],
  script,
];

describe('exec and attach', () => {
  test('CLIENT-1: exec prints the command’s output and exits with its code', async () => {
    expect(await home.run(shell('echo out; echo err >&2'))).toEqual({
      code: 0,
      out: 'out\n',
      err: 'err\n',
    });
    expect(kubelet.requests.at(-1)).toMatch(
      /^GET \/exec\/default\/one\/main\?command=sh&command=-c&.*error=1&output=1$/,
    );
    expect(await home.run(shell('exit 3'))).toEqual({
      code: 3,
      out: '',
      err: 'command terminated with exit code 3\n',
    });
  });

  test('CLIENT-1: exec -f joins the Pod that a file names', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' } };
    home.write('one.json', JSON.stringify(pod));
    expect((await home.run('exec -f one.json -- echo x')).out).toBe('x\n');
    const { code, err } = await home.run('exec -f none.json -- echo x');
    expect({ code, err }).toEqual({ code: 1, err: 'error: the path "none.json" does not exist\n' });
  });

  test('CLIENT-1: exec forwards standard input until its end', async () => {
    const text = 'a line\n'.repeat(100_000);
    const { code, out } = await home.run(shell('cat; echo end', '-i'), text);
    expect({ code, isWhole: out === `${text}end\n` }).toEqual({ code: 0, isWhole: true });
    // A command may end before its input does.
    expect((await home.run(shell('echo done', '-i'), text)).out).toBe('done\n');
  });

  test('CLIENT-1: exec names the default container and rejects a missing one', async () => {
    const chosen = await home.run('exec two -- echo x');
    expect(chosen).toEqual({ code: 0, out: 'x\n', err: 'Defaulted container "a" out of: a, b\n' });
    expect((await home.run('exec two -c b -q -- echo x')).err).toBe('');
    expect(kubelet.requests.at(-1)).toContain('/exec/default/two/b?');
    const { code, err } = await home.run('exec two -c c -- echo x');
    expect({ code, err }).toEqual({
      code: 1,
      err: 'Error from server (BadRequest): container c is not valid for pod two\n',
    });
  });

  test('CLIENT-1: the terminal is in raw mode meanwhile, and its size is forwarded', async () => {
    const calls: string[] = [];
    home.terminal = {
      terminal: {
        size: () => ({ columns: 100, rows: 40 }),
        setRaw: (isRaw) => void calls.push(`raw ${isRaw}`),
        onResize: () => () => void calls.push('resize listener removed'),
      },
    };
    const { code, out } = await home.run(shell('cat', '-it'), 'typed');
    expect({ code, out }).toEqual({ code: 0, out: 'typed' });
    expect(calls).toEqual(['raw true', 'resize listener removed', 'raw false']);
    expect(played.sizes).toEqual([{ Width: 100, Height: 40 }]);
    expect(kubelet.requests.at(-1)).toContain('tty=1');
    home.terminal = {};
    const without = await home.run(shell('cat', '-it'), 'typed');
    expect(without.err).toContain('Unable to use a TTY - input is not a terminal');
    expect(kubelet.requests.at(-1)).not.toContain('tty');
  });

  test('CLIENT-1: attach makes the process redraw the screen', async () => {
    played.sizes.length = 0;
    const size = () => ({ columns: 100, rows: 40 });
    home.terminal = { terminal: { size, setRaw: () => {}, onResize: () => () => {} } };
    expect((await home.run('attach one -it', 'x')).code).toBe(0);
    expect(played.sizes).toEqual([
      { Width: 101, Height: 41 },
      { Width: 100, Height: 40 },
    ]);
  });

  test('CLIENT-1: attach joins the streams of a container', async () => {
    const { code, out, err } = await home.run('attach two -c a -i', 'hello');
    expect({ code, out }).toEqual({ code: 0, out: 'hello' });
    expect(err).toBe("If you don't see a command prompt, try pressing enter.\n");
    expect(kubelet.requests.at(-1)).toContain('GET /attach/default/two/a?');
    expect((await home.run('attach two -c a -i -t', 'x')).err).toContain(
      'error: Unable to use a TTY - container a did not allocate one\n',
    );
    expect((await home.run('attach two -c a -i -t -q', 'x')).err).toBe('');
  });

  test('CLIENT-1: kubelets with the older protocol work', async () => {
    played.protocols = ['v4.channel.k8s.io'];
    expect((await home.run(shell('echo old'))).out).toBe('old\n');
    played.protocols = ['v1.channel.k8s.io'];
    const refused = await home.run(shell('echo none'));
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/subprotocol/);
    played.protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
  });

  test.each<[string, Partial<typeof played.failing>, string]>([
    ['breaks off', { isCutOff: true }, 'the connection to the container'],
    ['sends a malformed status', { status: 'nonsense' }, 'is not a status'],
    ['sends another object', { status: '{"status":"Maybe"}' }, 'unknown error'],
    [
      'sends a failure without a code',
      { status: '{"status":"Failure","reason":"NonZeroExitCode"}' },
      'no ExitCode cause given',
    ],
    ['reports a failure', { status: '{"status":"Failure","message":"no shell"}' }, 'no shell'],
    [
      'sends an invalid exit code',
      {
        status: JSON.stringify({
          status: 'Failure',
          reason: 'NonZeroExitCode',
          details: { causes: [{ reason: 'ExitCode', message: '9999' }] },
        }),
      },
      'invalid exit code value "9999"',
    ],
  ])('CLIENT-1: exec reports when the kubelet %s', async (_, failing, message) => {
    Object.assign(played.failing, failing);
    const { code, out, err } = await home.run(shell('echo before'));
    expect({ code, out }).toEqual({ code: 1, out: 'before\n' });
    expect(err).toMatch(/^error: /);
    expect(err).toContain(message);
  });

  test('CLIENT-1: the server’s refusals are shown', async () => {
    expect(await home.run('exec away -- true')).toMatchObject({
      code: 1,
      err: 'Error from server (BadRequest): pod away does not have a host assigned\n',
    });
    const { code, err } = await home.run('attach nowhere');
    expect({ code, err }).toEqual({
      code: 1,
      err: 'Error from server (NotFound): pods "nowhere" not found\n',
    });
  });
});

describe('logs', () => {
  const { answer } = kubelet;
  afterEach(() => {
    kubelet.answer = answer;
  });

  test('CLIENT-1: logs that are followed at once do not mix within a line', async () => {
    const waiting: (() => void)[] = [];
    kubelet.answer = ({ url }, response) => {
      const container = /\/two\/(\w)\?/.exec(url ?? '')?.[1];
      response.write(`one ${container} `);
      waiting.push(() => response.end(`line\nlast ${container}\n`));
      if (waiting.length === 2) waiting.pop()?.();
    };
    // One log ends in the middle of the other one's line.
    home.onOutput = (chunk) => {
      if (chunk.includes('last')) waiting.pop()?.();
    };
    const { code, out } = await home.run('logs two --all-containers --follow --prefix');
    expect({ code, lines: out.trimEnd().split('\n').sort() }).toEqual({
      code: 0,
      lines: [
        '[pod/two/a] last a',
        '[pod/two/a] one a line',
        '[pod/two/b] last b',
        '[pod/two/b] one b line',
      ],
    });
  });

  test('CLIENT-1: the start of a line is printed if the rest is lost', async () => {
    kubelet.answer = (_, response) => {
      response.write('one\ntwo, and', () => response.destroy());
    };
    const { code, out } = await home.run('logs one --prefix');
    expect({ code, out }).toEqual({ code: 1, out: '[pod/one/main] one\n[pod/one/main] two, and' });
  });

  test('CLIENT-1: failures that are ignored are shown, and a time of zero sets no limit', async () => {
    kubelet.answer = (_, response) => {
      response.writeHead(500).end('broken');
    };
    const ignored = await home.run('logs one --ignore-errors');
    expect(ignored).toMatchObject({ code: 0, err: '' });
    expect(ignored.out).toMatch(/^error: .*broken/);
    kubelet.answer = answer;
    const flags = '--since=0s --since-time=2020-01-01T00:00:00Z';
    expect(await home.run(`logs one ${flags}`)).toEqual({ code: 0, out: 'a line\n', err: '' });
    expect(kubelet.requests.at(-1)).not.toContain('sinceSeconds');
  });
});

/** Starts a TCP server on loopback that repeats what it receives after the word `echo`. */
async function startEcho() {
  const echo = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => socket.write(`echo ${bytes}`));
  });
  const port = await listenLocally(echo);
  return { port, stop: () => new Promise((resolve) => echo.close(resolve)) };
}

/** Sends text to a local port and resolves with the answer, empty if the connection closes. */
function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1', () => socket.write(text));
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => resolve(''));
    socket.on('data', (bytes) => {
      resolve(bytes.toString());
      socket.destroy();
    });
  });
}

describe('port-forward', () => {
  test('CLIENT-1: local ports forward to the Pod until svcctl is interrupted', async () => {
    const echo = await untilEnd(startEcho());
    const forwarding = home.start(`port-forward one :${echo.port}`);
    const port = await eventually(
      async () => /127\.0\.0\.1:(\d+) -> /.exec(forwarding.out())?.[1],
      'a line that names the port',
    );
    expect(await exchange(Number(port), 'a')).toBe('echo a');
    expect(await Promise.all(['b', 'c'].map((text) => exchange(Number(port), text)))).toEqual([
      'echo b',
      'echo c',
    ]);
    expect(forwarding.out()).toContain(`Handling connection for ${port}\n`);
    expect(forwarding.err()).toBe('');
    expect(await forwarding.stop()).toBe(0);
    await expect(exchange(Number(port), 'd')).rejects.toThrow('ECONNREFUSED');
  });

  test('CLIENT-1: a closed port is reported, and forwarding continues', async () => {
    const echo = await startEcho();
    await echo.stop();
    const forwarding = home.start(`port-forward pod/one :${echo.port}`);
    const port = await eventually(
      async () => /127\.0\.0\.1:(\d+) -> /.exec(forwarding.out())?.[1],
      'a line that names the port',
    );
    expect(await exchange(Number(port), 'a')).toBe('');
    await eventually(
      async () => /an error occurred forwarding \d+ -> \d+: .*ECONNREFUSED/.test(forwarding.err()),
      'the error message',
    );
    expect(await exchange(Number(port), 'b')).toBe('');
    expect(await forwarding.stop()).toBe(0);
  });

  test('CLIENT-1: ports of Services and named ports are resolved', async () => {
    await server.post('/api/v1/namespaces/default/services', {
      metadata: { name: 'front' },
      spec: {
        selector: { app: 'two' },
        ports: [
          { name: 'http', port: 80, targetPort: 'web' },
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'both', port: 54, protocol: 'UDP' },
          { name: 'both-tcp', port: 54 },
        ],
      },
    });
    await server.post('/api/v1/namespaces/default/services', {
      metadata: { name: 'headless' },
      spec: {
        clusterIP: 'None',
        selector: { app: 'two' },
        ports: [{ name: 'http', port: 80, targetPort: 'web' }],
      },
    });
    for (const [line, target] of [
      ['port-forward svc/front :http', 8080],
      ['port-forward svc/front :80', 8080],
      ['port-forward svc/front :54', 54],
      ['port-forward svc/headless :http', 80],
      ['port-forward two :web', 8080],
    ] as const) {
      const forwarding = home.start(line);
      await eventually(async () => forwarding.out().includes(`-> ${target}\n`), line);
      expect(await forwarding.stop()).toBe(0);
    }
  });

  test('CLIENT-1: invalid ports are rejected before svcctl listens', async () => {
    for (const [line, message] of [
      ['port-forward svc/front 81', "Service 'front' does not have a service port 81"],
      ['port-forward svc/front nope', "Service 'front' does not have a named port 'nope'"],
      ['port-forward svc/front 5353:dns', 'UDP protocol is not supported for dns'],
      ['port-forward two 5353', 'UDP protocol is not supported for 5353'],
      ['port-forward two nope', "Pod 'two' does not have a named port 'nope'"],
      ['port-forward two 1:2:3', 'invalid ports "1:2:3"'],
      ['port-forward two 70000', 'invalid ports "70000"'],
      ['port-forward two 8080:0', 'remote port must be > 0'],
      ['port-forward away 80', 'pod is not running'],
    ] as const) {
      const { code, out, err } = await home.run(line);
      expect({ line, code, out }).toEqual({ line, code: 1, out: '' });
      expect(err).toContain(message);
    }
    const echo = await untilEnd(startEcho());
    const onUsedPort = await home.run(`port-forward two ${echo.port}:80 --address=127.0.0.1`);
    expect(onUsedPort.code).toBe(1);
    expect(onUsedPort.err).toContain(`Unable to listen on port ${echo.port}: `);
    expect(onUsedPort.err).toContain('unable to listen on any of the requested ports');
  });

  test('CLIENT-1: forwarding ends with the Pod', async () => {
    await makePod('brief', { containers: [{ name: 'a', image: 'i' }] });
    await server.patch(`${pods}/brief/status`, { status: { phase: 'Running' } }, 'merge');
    let shown = '';
    home.onOutput = (chunk) => {
      shown += chunk;
    };
    const forwarding = home.run('port-forward brief :80');
    await eventually(async () => shown.includes('Forwarding from'), 'a port');
    await server.patch(`${pods}/brief/status`, { status: { phase: 'Failed' } }, 'merge');
    expect(await forwarding).toMatchObject({ code: 1, err: 'error: lost connection to pod\n' });
  });

  test('CLIENT-1: several addresses are served, and ports without the used ones', async () => {
    const echo = await untilEnd(startEcho());
    const forwarding = home.start(
      `port-forward two ${echo.port}:80 :8080 --address=127.0.0.1,127.0.0.2`,
    );
    await eventually(
      async () => /127\.0\.0\.1:(\d+) -> 8080\n.* 127\.0\.0\.2:\1 -> 8080\n/.test(forwarding.out()),
      () => `both addresses; ${forwarding.out()}${forwarding.err()}`,
    );
    expect(forwarding.err()).toContain(`Unable to listen on port ${echo.port}: `);
    expect(await forwarding.stop()).toBe(0);
  });
});

describe('cp', () => {
  const long = `${'deep/'.repeat(30)}${'n'.repeat(90)}`;
  const large = Buffer.alloc(3_000_000, 'wheelhouse');

  test('CLIENT-1: a folder is copied into a container and back', async () => {
    const source = join(home.folder, 'source');
    mkdirSync(join(source, long, '..'), { recursive: true });
    mkdirSync(join(source, 'empty'));
    writeFileSync(join(source, 'one.txt'), 'one', { mode: 0o640 });
    writeFileSync(join(source, 'größe.txt'), 'zwei');
    writeFileSync(join(source, 'zero'), '');
    writeFileSync(join(source, 'large'), large);
    writeFileSync(join(source, long), 'far down');
    symlinkSync('one.txt', join(source, 'link'));
    expect(await home.run('cp source one:copy')).toEqual({ code: 0, out: '', err: '' });
    for (const [name, text] of [
      ['one.txt', 'one'],
      ['größe.txt', 'zwei'],
      ['zero', ''],
      [long, 'far down'],
      ['link', 'one'],
    ] as const) {
      expect(readFileSync(join(inside, 'copy', name), 'utf8')).toBe(text);
    }
    expect(readFileSync(join(inside, 'copy', 'large')).equals(large)).toBe(true);
    expect(statSync(join(inside, 'copy', 'one.txt')).mode & 0o777).toBe(0o640);
    expect(existsSync(join(inside, 'copy', 'empty'))).toBe(true);
    const { code, err } = await home.run('cp default/one:copy back');
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(err).toMatch(/^warning: skipping symlink: "\S+\/back\/link" -> "one.txt" \(consider /);
    expect(readFileSync(join(home.folder, 'back', long), 'utf8')).toBe('far down');
    expect(readFileSync(join(home.folder, 'back', 'größe.txt'), 'utf8')).toBe('zwei');
    expect(readFileSync(join(home.folder, 'back', 'large')).equals(large)).toBe(true);
    expect(existsSync(join(home.folder, 'back', 'empty'))).toBe(true);
  });

  test('CLIENT-1: a file is copied into an existing folder on either side', async () => {
    home.write('single.txt', 'alone');
    mkdirSync(join(inside, 'there'));
    expect((await home.run('cp single.txt one:there --no-preserve')).code).toBe(0);
    expect(readFileSync(join(inside, 'there', 'single.txt'), 'utf8')).toBe('alone');
    mkdirSync(join(home.folder, 'here'));
    expect((await home.run('cp one:there/single.txt here')).code).toBe(0);
    expect(readFileSync(join(home.folder, 'here', 'single.txt'), 'utf8')).toBe('alone');
    expect((await home.run('cp one:there/single.txt renamed')).code).toBe(0);
    expect(readFileSync(join(home.folder, 'renamed'), 'utf8')).toBe('alone');
  });

  test('CLIENT-1: an archive from a container cannot escape the destination', async () => {
    writeFileSync(join(inside, 'evil'), 'outside');
    mkdirSync(join(inside, 'bin'));
    const tar = spawnSync('which', ['tar'], { encoding: 'utf8' }).stdout.trim();
    const fake = `#!/bin/sh\nexec ${tar} -C ${inside} -cPf - --transform "$AS" evil\n`;
    writeFileSync(join(inside, 'bin', 'tar'), fake, { mode: 0o755 });
    const { PATH = '' } = process.env;
    const copyWith = async (transform: string) => {
      Object.assign(process.env, { PATH: `${join(inside, 'bin')}:${PATH}`, AS: transform });
      try {
        return await home.run('cp one:box target/box');
      } finally {
        Object.assign(process.env, { PATH });
        delete process.env['AS'];
      }
    };
    const escaping = await copyWith('s,.*,box/../../../evil,');
    expect(escaping.err).toContain('is outside target destination, skipping');
    const absolute = await copyWith('s,.*,/etc/evil,');
    expect(absolute).toMatchObject({ code: 1, err: 'error: tar contents corrupted\n' });
    expect(existsSync(join(home.folder, 'evil'))).toBe(false);
  });

  test('CLIENT-1: failed copies are reported', async () => {
    for (const [line, message] of [
      ['cp missing one:x', "missing doesn't exist in local filesystem"],
      ['cp one:missing x', 'command terminated with exit code 2'],
      ['cp a b', 'one of src or dest must be a remote file specification'],
      ['cp one:a two:b', 'one of src or dest must be a local file specification'],
      ['cp one: b', 'filepath can not be empty'],
      ['cp :a b', 'filespec must match the canonical format'],
      ['cp a/b/c:d e', 'filespec must match the canonical format'],
      ['cp one:a b -c nope', 'container nope is not valid for pod one'],
      ['cp single.txt one:no/such/place', 'command terminated with exit code 2'],
    ] as const) {
      const { code, err } = await home.run(line);
      expect({ line, isFailed: code > 0 }).toEqual({ line, isFailed: true });
      expect(err).toContain(message);
    }
    played.failing.isCutOff = true;
    const cut = await home.run('cp one:there cut');
    expect(cut.code).toBe(1);
    expect(cut.err).toContain('error: the connection to the container');
  });
});
