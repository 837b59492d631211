import { rmSync, statSync } from 'node:fs';
import type http from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorText } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { killedExitCode, type Session } from '../session.ts';

const defaultPort = 8001;

/**
 * Serves the API without authentication, by default on 127.0.0.1, with the user's credentials. By
 * default, rejects other host names, pages of other sites, and paths that run programs in Pods.
 * Runs until it is interrupted.
 */
export const proxyCommand: Command = {
  name: 'proxy',
  summary: 'Run a proxy to the API server',
  usage: '[--port=PORT] [--www=FOLDER] [--www-prefix=PREFIX] [--api-prefix=PREFIX]',
  flags: [
    {
      name: 'port',
      short: 'p',
      type: 'integer',
      help: 'Port to serve on (8001); 0 for a free one',
    },
    { name: 'address', type: 'text', help: 'Address to serve on' },
    { name: 'unix-socket', short: 'u', type: 'text', help: 'Unix socket to serve on instead' },
    { name: 'api-prefix', type: 'text', help: 'Path prefix of the API (/)' },
    { name: 'www', short: 'w', type: 'text', help: 'Folder of static files to serve' },
    {
      name: 'www-prefix',
      short: 'P',
      type: 'text',
      help: 'Path prefix of the static files (/static/)',
    },
    { name: 'accept-hosts', type: 'text', help: 'Regular expressions of hosts to accept' },
    { name: 'accept-paths', type: 'text', help: 'Regular expressions of paths to accept' },
    { name: 'reject-paths', type: 'text', help: 'Regular expressions of paths to reject' },
    { name: 'reject-methods', type: 'text', help: 'Regular expressions of methods to reject' },
    { name: 'disable-filter', type: 'boolean', help: 'Accept all requests' },
    { name: 'keepalive', type: 'duration', help: 'Delay before idle connections are probed' },
  ],
  async run(session, args) {
    if (args.length > 0) throw new CliError(`unexpected arguments: ${args.join(' ')}`);
    const { flags, io } = session;
    if (flags.has('unix-socket') && flags.has('port')) {
      throw new CliError('cannot set --unix-socket and --port at the same time');
    }
    const server = await createServer(session);
    const where = await listen(session, server);
    io.out(`Starting to serve on ${where}\n`);
    if (!io.signal.aborted) {
      await new Promise((resolve) => io.signal.addEventListener('abort', resolve, { once: true }));
    }
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    return killedExitCode;
  },
};

async function createServer(session: Session): Promise<http.Server> {
  const { flags, io } = session;
  const { createProxyServer } = await import('../proxy/proxy-server.ts');
  const withSlash = (text: string) => (text.endsWith('/') ? text : `${text}/`);
  if (flags.boolean('disable-filter') && !flags.has('unix-socket')) {
    io.err(
      'Warning: request filter disabled, your proxy is vulnerable to XSRF attacks, ' +
        'please be cautious\n',
    );
  }
  return createProxyServer({
    client: session.client.http,
    filter: flags.boolean('disable-filter') ? undefined : await createFilter(session),
    apiPrefix: withSlash(flags.text('api-prefix') ?? '/'),
    staticPrefix: withSlash(flags.text('www-prefix') ?? '/static/'),
    files: await createFiles(session),
    keepAliveMs: flags.durationMs('keepalive') ?? 0,
  });
}

async function createFilter({ flags }: Session) {
  const { createProxyFilter } = await import('../proxy/proxy-server.ts');
  return createProxyFilter({
    acceptHosts: flags.text('accept-hosts') ?? '^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$',
    acceptPaths: flags.text('accept-paths') ?? '^.*',
    rejectPaths: flags.text('reject-paths') ?? '^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach',
    rejectMethods: flags.text('reject-methods') ?? '^$',
  });
}

async function createFiles(session: Session) {
  const folder = session.flags.text('www') ?? '';
  if (folder === '') return undefined;
  const full = session.path(folder);
  if (statSync(full, { throwIfNoEntry: false })?.isDirectory() !== true) {
    session.io.err(`Warning: static file directory ${folder} is not a directory\n`);
  }
  const { createStaticFiles } = await import('../proxy/proxy-server.ts');
  return createStaticFiles(full);
}

/** Listens on the address of the flags. Resolves with the address, or with the socket's path. */
async function listen(session: Session, server: http.Server): Promise<string> {
  const { flags } = session;
  const socket = flags.text('unix-socket');
  const host = flags.text('address') ?? '127.0.0.1';
  const port = flags.integer('port') ?? defaultPort;
  if (port < 0 || port > 65_535) throw new CliError(`invalid port ${port}`);
  const file = socket === undefined ? undefined : session.path(socket);
  if (file !== undefined && statSync(file, { throwIfNoEntry: false })?.isSocket()) rmSync(file);
  // Restrict the socket file to its owner, whose credentials the proxy uses.
  const mask = file === undefined ? undefined : process.umask(0o077);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      if (file === undefined) server.listen({ host, port }, resolve);
      else server.listen({ path: file }, resolve);
    });
  } catch (error) {
    throw new CliError(errorText(error));
  } finally {
    if (mask !== undefined) process.umask(mask);
  }
  if (file !== undefined) return file;
  const { address, family, port: bound } = server.address() as AddressInfo;
  return family === 'IPv6' ? `[${address}]:${bound}` : `${address}:${bound}`;
}
