import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { PlayedKubelet } from './kubelet.ts';

/** The failure of a played container. */
export interface Failing {
  /** Sent instead of the status of a process. */
  status?: string | undefined;
  /** Cuts the connection instead of sending the status. */
  isCutOff?: boolean;
}

/** The terminal sizes that a kubelet has received. */
export type Sizes = { readonly Width: number; readonly Height: number }[];

/**
 * Makes a kubelet run the commands of `exec` as local processes in a folder, and forward ports to
 * loopback. Speaks the WebSocket protocols of kubelets.
 */
export function playContainers(
  kubelet: PlayedKubelet,
  folder: string,
): { readonly failing: Failing; readonly sizes: Sizes; protocols: readonly string[] } {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) =>
      played.protocols.find((protocol) => offered.has(protocol)) ?? false,
  });
  const sizes: Sizes = [];
  const failing: Failing = {};
  const played = {
    failing,
    sizes,
    protocols: ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as readonly string[],
  };
  kubelet.upgrade = (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (opened) => {
      opened.on('error', () => {});
      const url = new URL(request.url ?? '', 'https://kubelet');
      if (url.pathname.startsWith('/portForward/')) forwardPort(opened, url);
      else runProcess(opened, { url, request, folder, failing, sizes });
    });
  };
  return played;
}

function runProcess(
  socket: WebSocket,
  options: {
    readonly url: URL;
    readonly request: IncomingMessage;
    readonly folder: string;
    readonly failing: Failing;
    readonly sizes: Sizes;
  },
): void {
  const { url, folder, failing, sizes } = options;
  const words = url.searchParams.getAll('command');
  const [program = 'cat', ...args] = words;
  const child = spawn(program, args, { cwd: folder });
  const send = (channel: number, bytes: Buffer) =>
    socket.send(Buffer.concat([Buffer.of(channel), bytes]));
  child.stdout.on('data', (bytes: Buffer) => send(1, bytes));
  child.stderr.on('data', (bytes: Buffer) => send(2, bytes));
  child.stdin.on('error', () => {});
  const isInput = url.searchParams.has('input') || url.searchParams.has('stdin');
  if (!isInput) child.stdin.end();
  socket.on('message', (data: RawData) => {
    const message = data as Buffer;
    if (message[0] === 0) child.stdin.write(message.subarray(1));
    else if (message[0] === 4) sizes.push(JSON.parse(message.toString('utf8', 1)));
    else if (message[0] === 255 && message[1] === 0) child.stdin.end();
  });
  socket.on('close', () => child.kill());
  child.on('error', ({ message }) => {
    send(3, Buffer.from(JSON.stringify({ status: 'Failure', reason: 'InternalError', message })));
  });
  child.on('close', (code) => {
    if (failing.isCutOff === true) socket.terminate();
    else send(3, Buffer.from(failing.status ?? JSON.stringify(statusOf(code ?? 1))));
    // Go clients treat a close without a code as a failure.
    socket.close(1000);
  });
}

function statusOf(code: number): object {
  if (code === 0) return { kind: 'Status', status: 'Success' };
  const causes = [{ reason: 'ExitCode', message: String(code) }];
  return { kind: 'Status', status: 'Failure', reason: 'NonZeroExitCode', details: { causes } };
}

/** Each channel begins with the port; the second one reports a port that nothing serves. */
function forwardPort(socket: WebSocket, url: URL): void {
  const port = Number(url.searchParams.get('port') ?? url.searchParams.get('ports'));
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port);
  socket.send(Buffer.concat([Buffer.of(0), number]));
  socket.send(Buffer.concat([Buffer.of(1), number]));
  const target = connect(port, '127.0.0.1');
  target.on('data', (bytes: Buffer) => socket.send(Buffer.concat([Buffer.of(0), bytes])));
  target.on('error', ({ message }) => {
    socket.send(Buffer.concat([Buffer.of(1), Buffer.from(message)]));
  });
  target.on('close', () => socket.close());
  socket.on('message', (data: RawData) => target.write((data as Buffer).subarray(1)));
  socket.on('close', () => target.destroy());
}
