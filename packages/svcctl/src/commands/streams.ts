import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError, usageError } from '../io.ts';
import { podsToRead } from '../logs/pods-to-read.ts';
import { listAt, nameOf, namespaceOf, textAt } from '../objects.ts';
import { targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

const containerFlag = {
  name: 'container',
  short: 'c',
  type: 'text',
  help: 'The container',
} as const;
const patienceFlag = {
  name: 'pod-running-timeout',
  type: 'duration',
  help: 'Taken and not needed: pods are not waited for',
} as const;
const streamFlags = [
  containerFlag,
  patienceFlag,
  { name: 'stdin', short: 'i', type: 'boolean', help: 'Pass standard input on' },
  { name: 'tty', short: 't', type: 'boolean', help: 'Standard input is a terminal' },
  { name: 'quiet', short: 'q', type: 'boolean', help: 'Print only what the container prints' },
] as const;

export const execCommand: Command = {
  name: 'exec',
  completes: 'pods',
  summary: 'Execute a command in a container',
  usage: '(POD | TYPE/NAME) [-c CONTAINER] -- COMMAND [ARGUMENTS...]',
  flags: streamFlags,
  async run(session, args) {
    const [word, ...command] = args;
    const before = session.flags.wordsBeforeDash;
    if (word === undefined || before === 0) {
      throw new CliError('pod, type/name or --filename must be specified');
    }
    if (before === undefined && command.length > 0) {
      throw new CliError(
        'exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\n' +
          "See 'svcctl exec -h' for help and examples",
      );
    }
    if (command.length === 0) {
      throw new CliError('you must specify at least one command for the container');
    }
    const pod = await onlyPod(session, word);
    checkRunning(pod, 'exec into');
    return openStream(session, pod, {
      subresource: 'exec',
      query: [...containerQuery(session, pod), ...command.map((one) => ['command', one] as const)],
    });
  },
};

export const attachCommand: Command = {
  name: 'attach',
  completes: 'pods',
  summary: 'Attach to a running container',
  usage: '(POD | TYPE/NAME) [-c CONTAINER]',
  flags: streamFlags,
  async run(session, args) {
    const [word, ...more] = args;
    if (word === undefined) throw new CliError('at least 1 argument is required for attach');
    if (more.length > 0) {
      throw usageError(
        'attach',
        `expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw ${args.length}`,
      );
    }
    const pod = await onlyPod(session, word);
    checkRunning(pod, 'attach');
    return openStream(session, pod, { subresource: 'attach', query: containerQuery(session, pod) });
  },
};

export const portForwardCommand: Command = {
  name: 'port-forward',
  completes: 'pods',
  summary: 'Forward one or more local ports to a pod',
  usage: 'TYPE/NAME [LOCAL_PORT:]REMOTE_PORT [...]',
  flags: [
    { name: 'address', type: 'list', help: 'Addresses to listen on (localhost)' },
    patienceFlag,
  ],
  async run(session, args) {
    const [word, ...ports] = args;
    if (word === undefined || ports.length === 0) {
      throw usageError('port-forward', 'TYPE/NAME and list of ports are required for port-forward');
    }
    const numbers = ports.map(remotePort);
    const pod = await onlyPod(session, word);
    const phase = textAt(pod, 'status', 'phase');
    if (phase !== 'Running') {
      throw new CliError(
        `unable to forward port because pod is not running. Current status=${phase}`,
      );
    }
    const query = numbers.map((port) => ['ports', port] as const);
    return openStream(session, pod, { subresource: 'portforward', query });
  },
};

export const cpCommand: Command = {
  name: 'cp',
  summary: 'Copy files and directories to and from containers',
  usage: 'SOURCE [[NAMESPACE/]POD:]DESTINATION',
  flags: [containerFlag, { name: 'no-preserve', type: 'boolean', help: 'Leave the owners out' }],
  async run(session, args) {
    const [source, target, ...more] = args;
    if (source === undefined || target === undefined || more.length > 0) {
      throw usageError('cp', 'source and destination are required');
    }
    const remote = [source, target].filter((place) => place.includes(':'));
    const [place = ''] = remote;
    if (remote.length !== 1) {
      throw new CliError('one of src or dest must be a local file specification');
    }
    const [pair = ''] = place.split(':');
    const [name = '', namespace = session.namespace] = pair.split('/').reverse();
    if (name === '')
      throw new CliError('filespec must match the canonical format: [[namespace/]pod:]file/path');
    const resource = await session.resourceOfKind('Pod');
    const pod = await session.client.get(targetPath({ resource, namespace, name }));
    const query = [...containerQuery(session, pod), ['command', 'tar'] as const];
    return openStream(session, pod, { subresource: 'exec', query });
  },
};

function remotePort(text: string): string {
  const port = text.split(':').at(-1) ?? '';
  if (/^[a-z0-9-]+$/i.test(port)) return port;
  throw new CliError(`invalid ports ${JSON.stringify(text)}`);
}

async function onlyPod(session: Session, word: string): Promise<JsonObject> {
  const [pod] = await podsToRead(session, word);
  if (pod === undefined) throw new CliError(`${word} has no pods`);
  return pod;
}

function checkRunning(pod: JsonObject, doing: string): void {
  const phase = textAt(pod, 'status', 'phase');
  if (phase !== 'Succeeded' && phase !== 'Failed') return;
  const what = doing === 'attach' ? 'attach a container in' : `${doing} a container in`;
  throw new CliError(`cannot ${what} a completed pod; current phase is ${phase}`);
}

type Pairs = readonly (readonly [name: string, value: string])[];

function containerQuery({ flags }: Session, pod: JsonObject): Pairs {
  const named = flags.text('container') ?? '';
  const container = named || textAt(listAt(pod, 'spec', 'containers')[0], 'name');
  const marks = ['stdin', 'tty'].filter((name) => flags.boolean(name));
  return [
    ['container', container],
    ['stdout', 'true'],
    ['stderr', 'true'],
    ...marks.map((name) => [name, 'true'] as const),
  ];
}

/**
 * Asks for a stream into a Pod, which only a kubelet can serve. Rejects with what the server says to
 * that, and with a CliError where there would be a stream, which svcctl does not carry.
 */
async function openStream(
  session: Session,
  pod: JsonObject,
  { subresource, query }: { readonly subresource: string; readonly query: Pairs },
): Promise<number> {
  const resource = await session.resourceOfKind('Pod');
  const target = { resource, namespace: namespaceOf(pod), name: nameOf(pod) };
  const parameters = new URLSearchParams(
    query.map(([name, value]): [string, string] => [name, value]),
  );
  const path = `${targetPath(target, subresource)}?${parameters}`;
  try {
    await session.client.send({ method: 'POST', path });
  } catch (error) {
    const wantsStream =
      error instanceof ApiError && /upgrade request required/i.test(error.message);
    if (!wantsStream) throw error;
  }
  throw new CliError(
    `svcctl does not carry streams into containers: the server offers ${subresource} of pod ` +
      `${JSON.stringify(target.name)}, use kubectl for it`,
  );
}
