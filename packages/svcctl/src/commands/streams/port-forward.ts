import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  appendAll,
  channelProtocols,
  errorText,
  hostInUrl,
  type JsonObject,
  listen,
  listenEach,
  whenAborted,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { describeError, visitEach } from '../../errors.ts';
import { CliError, usageError } from '../../io.ts';
import { listAt, nameOf, textAt } from '../../objects.ts';
import { getByLabel, targetOf } from '../../selection.ts';
import type { Session } from '../../session.ts';
import { writeAll } from '../../streams/container-stream.ts';
import {
  checkStream,
  hasEnded,
  podTimeoutFlag,
  selectPod,
  streamPath,
} from '../../streams/pods.ts';
import { followObject } from '../../watch.ts';

/** Each connection to a port has a WebSocket, with one channel for data and one for errors. */
const protocols = [channelProtocols.older];
const dataChannel = 0;
const errorChannel = 1;
const portMax = 65_535;

/** A port of the Pod and the local port that forwards to it; 0 for any. */
interface Forward {
  readonly local: number;
  readonly remote: number;
}

/**
 * Forwards local ports to a running Pod until it is interrupted. A port of a Service stands for its
 * target port.
 */
export const portForwardCommand: Command = {
  name: 'port-forward',
  completes: 'pods',
  summary: 'Forward one or more local ports to a pod',
  usage: 'TYPE/NAME [LOCAL_PORT:]REMOTE_PORT [...]',
  flags: [
    { name: 'address', type: 'items', help: 'Addresses to listen on (localhost)' },
    podTimeoutFlag('1m'),
  ],
  async run(session, args) {
    const [word, ...ports] = args;
    if (word === undefined || ports.length === 0) {
      throw usageError('port-forward', 'TYPE/NAME and list of ports are required for port-forward');
    }
    const service = await readService(session, word);
    const pod = await selectPod(session, word);
    const forwards = ports.map((port) => resolveForward(port, { pod, service }));
    const phase = textAt(pod, 'status', 'phase');
    if (phase !== 'Running') {
      throw new CliError(
        `unable to forward port because pod is not running. Current status=${phase}`,
      );
    }
    const pathTo = (remote: number) =>
      streamPath(session, pod, { subresource: 'portforward', query: [['ports', `${remote}`]] });
    for (const { remote } of forwards) await checkStream(session, await pathTo(remote));
    await serve(session, { pod, forwards, pathTo });
    return 0;
  },
};

async function readService(session: Session, word: string): Promise<JsonObject | undefined> {
  if (!word.includes('/')) return undefined;
  const object = await getByLabel(session, word);
  return object['kind'] === 'Service' ? object : undefined;
}

function splitPort(text: string): { readonly local: string; readonly remote: string } {
  const [local = '', remote = local, ...more] = text.split(':');
  const isPort = (part: string) => /^[a-z0-9-]+$/i.test(part);
  if (more.length > 0 || (local !== '' && !isPort(local)) || !isPort(remote)) {
    throw new CliError(`invalid ports ${JSON.stringify(text)}`);
  }
  return { local, remote };
}

/** Resolves names of ports, and ports of Services to ports of the Pod. Throws CliError. */
function resolveForward(
  text: string,
  { pod, service }: { readonly pod: JsonObject; readonly service: JsonObject | undefined },
): Forward {
  const { local, remote } = splitPort(text);
  const portOfService = service === undefined ? undefined : servicePort(service, remote);
  const targetText =
    service === undefined || portOfService === undefined
      ? remote
      : targetPortText(service, portOfService);
  const forward = {
    remote: isNumber(targetText) ? Number(targetText) : containerPort(pod, targetText),
    local: isNumber(local) ? Number(local) : 0,
  };
  if (local !== '' && !isNumber(local)) {
    // A local name must be the same as the remote one.
    if (local !== remote) throw new CliError(`invalid ports ${JSON.stringify(text)}`);
    forward.local = portOfService === undefined ? forward.remote : Number(portOfService['port']);
  }
  if (service === undefined) {
    const ports = listAt(pod, 'spec', 'containers').flatMap((each) => listAt(each, 'ports'));
    checkProtocols(
      ports.filter(({ containerPort }) => containerPort === forward.remote),
      remote,
    );
  }
  if (forward.remote === 0) throw new CliError('remote port must be > 0');
  if (Math.max(forward.local, forward.remote) > portMax) {
    throw new CliError(`invalid ports ${JSON.stringify(text)}`);
  }
  return forward;
}

const isNumber = (text: string) => /^\d+$/.test(text);

/** The target port of a Service's port, by default the same; a headless Service has no other. */
function targetPortText(service: JsonObject, { targetPort, port }: JsonObject): string {
  const isHeadless = textAt(service, 'spec', 'clusterIP') === 'None';
  return String(isHeadless || targetPort === undefined || targetPort === 0 ? port : targetPort);
}

function servicePort(service: JsonObject, portText: string): JsonObject {
  const ports = listAt(service, 'spec', 'ports');
  const named = ports.find((candidate) => candidate['name'] === portText);
  const number = isNumber(portText) ? Number(portText) : named?.['port'];
  const sameNumber = ports.filter((candidate) => candidate['port'] === number);
  const [port] = sameNumber;
  if (port === undefined) {
    const what = isNumber(portText) ? `a service port ${portText}` : `a named port '${portText}'`;
    throw new CliError(`Service '${nameOf(service)}' does not have ${what}`);
  }
  checkProtocols(sameNumber, portText);
  return port;
}

/** Throws CliError if the ports of one number are reached by UDP and not by TCP. */
function checkProtocols(ports: readonly JsonObject[], portText: string): void {
  const protocols = new Set(ports.map(({ protocol }) => protocol));
  if (!protocols.has('UDP') || protocols.has('TCP')) return;
  throw new CliError(`UDP protocol is not supported for ${portText}`);
}

function containerPort(pod: JsonObject, name: string): number {
  const ports = ['containers', 'initContainers']
    .flatMap((list) => listAt(pod, 'spec', list))
    .flatMap((container) => listAt(container, 'ports'));
  const port = ports.find((port) => port['name'] === name);
  if (port !== undefined) return Number(port['containerPort']);
  throw new CliError(`Pod '${nameOf(pod)}' does not have a named port '${name}'`);
}

/** Listens and forwards until the user interrupts. Rejects with CliError when the Pod ends. */
async function serve(
  session: Session,
  {
    pod,
    forwards,
    pathTo,
  }: {
    readonly pod: JsonObject;
    readonly forwards: readonly Forward[];
    readonly pathTo: (remote: number) => Promise<string>;
  },
): Promise<void> {
  const { io, flags } = session;
  const addresses = flags.list('address');
  // Many machines have only one of the addresses of localhost.
  const groups = (addresses.length === 0 ? ['localhost'] : addresses).map((address) =>
    address === 'localhost' ? ['127.0.0.1', '::1'] : [address],
  );
  const servers: Server[] = [];
  const connections = new Set<Socket>();
  const accept = (forward: Forward) => (socket: Socket) => {
    connections.add(socket);
    const containment = { where: 'client', end: () => socket.destroy() } as const;
    listen(socket, containment, { close: () => connections.delete(socket), error: () => {} });
    return forwardConnection(session, { socket, forward, path: () => pathTo(forward.remote) });
  };
  try {
    let isListening = false;
    for (const forward of forwards) {
      const opened = await openPorts(session, { groups, forward, accept });
      appendAll(servers, opened.servers);
      isListening ||= opened.isComplete;
    }
    if (!isListening) {
      const ports = forwards.map(({ local, remote }) => `{${local} ${remote}}`).join(' ');
      throw new CliError(`unable to listen on any of the requested ports: [${ports}]`);
    }
    const interrupted = new Promise<void>((resolve) => {
      whenAborted(io.signal, { where: 'client', end: () => resolve() }, resolve);
    });
    await Promise.race([interrupted, failAtEnd(session, pod, interrupted)]);
  } finally {
    for (const socket of connections) socket.destroy();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/** Rejects with CliError when the Pod has ended, if the user may watch it. */
async function failAtEnd(
  session: Session,
  pod: JsonObject,
  interrupted: Promise<void>,
): Promise<void> {
  const target = targetOf(await session.resourceOfKind('Pod'), pod);
  const uidOf = (object: JsonObject) => textAt(object, 'metadata', 'uid');
  try {
    for await (const state of followObject(session, { target, signal: session.io.signal })) {
      const isSame = state.type === 'present' && uidOf(state.object) === uidOf(pod);
      if (!isSame || hasEnded(state.object)) break;
    }
  } catch {
    return interrupted;
  }
  throw new CliError('lost connection to pod');
}

/**
 * Listens on all available addresses. Reports the others; a port is complete with one address of
 * each group.
 */
async function openPorts(
  session: Session,
  options: {
    readonly groups: readonly (readonly string[])[];
    readonly forward: Forward;
    readonly accept: (forward: Forward) => (socket: Socket) => Promise<void>;
  },
): Promise<{ readonly servers: readonly Server[]; readonly isComplete: boolean }> {
  const { io } = session;
  const { groups, accept } = options;
  let { forward } = options;
  const servers: Server[] = [];
  let isComplete = true;
  for (const hosts of groups) {
    const failures = await visitEach(io, hosts, async (host) => {
      const { server, port } = await openPort({ host, forward, accept });
      servers.push(server);
      // Use the same port number for all addresses.
      forward = { ...forward, local: port };
      io.out(`Forwarding from ${hostInUrl(host)}:${port} -> ${forward.remote}\n`);
    });
    if (failures.length < hosts.length) continue;
    isComplete = false;
    for (const failure of failures) {
      io.err(`Unable to listen on port ${forward.local}: ${errorText(failure)}\n`);
    }
  }
  return { servers, isComplete };
}

function openPort(options: {
  readonly host: string;
  readonly forward: Forward;
  readonly accept: (forward: Forward) => (socket: Socket) => Promise<void>;
}): Promise<{ readonly server: Server; readonly port: number }> {
  const { host, forward, accept } = options;
  return new Promise((resolve, reject) => {
    const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true });
    listenEach<[Socket]>(server, 'connection', {
      where: 'client',
      run: (socket) => accept({ ...forward, local: portOf(server) })(socket),
      end: (socket) => socket.destroy(),
    });
    listen(server, { where: 'client', end: () => server.close() }, { error: reject });
    server.listen(forward.local, host, () => resolve({ server, port: portOf(server) }));
  });
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** Forwards one connection to the Pod's port. Never rejects; reports failures, which end it. */
async function forwardConnection(
  session: Session,
  connection: {
    readonly socket: Socket;
    readonly forward: Forward;
    readonly path: () => Promise<string>;
  },
): Promise<void> {
  const { io, client } = session;
  const { socket, forward, path } = connection;
  io.out(`Handling connection for ${forward.local}\n`);
  try {
    const { messages } = await client.webSocket({
      path: await path(),
      protocols,
      signal: io.signal,
      clock: session.clock,
    });
    const end = () => messages.destroy();
    listen(socket, { where: 'client', end }, { close: end });
    const sending = sendChunks(socket, messages);
    const podError = await receiveMessages(socket, messages);
    socket.end();
    messages.destroy();
    await sending;
    if (podError === '') return;
    const { local, remote } = forward;
    throw new CliError(`an error occurred forwarding ${local} -> ${remote}: ${podError}`);
  } catch (error) {
    socket.destroy();
    if (!io.signal.aborted) io.err(describeError(error).text);
  }
}

/** Sends until either side ends; the protocol cannot signal a half-close. Never rejects. */
async function sendChunks(socket: Socket, messages: Duplex): Promise<void> {
  try {
    const chunks: AsyncIterable<Buffer> = socket.iterator({ destroyOnReturn: false });
    for await (const chunk of chunks) {
      await writeAll(messages, Buffer.concat([Buffer.of(dataChannel), chunk]));
    }
  } catch {
    // Either connection has ended.
  }
}

/**
 * Receives data until the connection ends. Resolves with the Pod's error message, if any. The first
 * message of each channel has the port in two bytes.
 */
async function receiveMessages(socket: Socket, messages: AsyncIterable<Buffer>): Promise<string> {
  const openChannels = new Set<number>();
  let podError = '';
  try {
    for await (const message of messages) {
      const [channel = -1] = message;
      const bytes = message.subarray(openChannels.has(channel) ? 1 : 3);
      openChannels.add(channel);
      if (bytes.length === 0) continue;
      if (channel === errorChannel) podError += bytes.toString();
      else if (channel === dataChannel) await writeAll(socket, bytes);
    }
  } catch (error) {
    if (!socket.destroyed && podError === '') throw error;
  }
  return podError;
}
