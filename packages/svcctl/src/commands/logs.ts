import { ApiError } from '@wheelhouse/client';
import { errorText, type JsonObject, parseGoTime } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError, throwFirst, usageError } from '../io.ts';
import { nameOf } from '../objects.ts';
import { targetOf, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import {
  containerFlag,
  containerNames,
  defaultContainer,
  podTimeoutFlag,
  selectPods,
} from '../streams/pods.ts';
import { createWriter } from './streams/exec.ts';

const usage = '[-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]';

/**
 * Prints the logs of containers one after the other; with `--follow`, of up to `--max-log-requests`
 * (5) at a time.
 */
export const logsCommand: Command = {
  name: 'logs',
  completes: 'pods',
  summary: 'Print the logs for a container in a pod',
  usage,
  flags: [
    containerFlag,
    { name: 'all-containers', type: 'boolean', help: 'All containers of the pods' },
    {
      name: 'all-pods',
      type: 'boolean',
      help: 'All pods of the object; prefixes each line with its pod',
    },
    { name: 'follow', short: 'f', type: 'boolean', help: 'Follow the log' },
    {
      name: 'previous',
      short: 'p',
      type: 'boolean',
      help: 'The log of the previous instance of the container',
    },
    { name: 'timestamps', type: 'boolean', help: 'Prefix each line with its time' },
    { name: 'prefix', type: 'boolean', help: 'Prefix each line with its pod and container' },
    { name: 'selector', short: 'l', type: 'text', help: 'Label selector of pods' },
    { name: 'since', type: 'duration', help: 'Only lines newer than this, such as 5m' },
    { name: 'since-time', type: 'text', help: 'Only lines after this time (RFC 3339)' },
    {
      name: 'tail',
      type: 'integer',
      help: 'Number of last lines; -1 for all (default: all, or 10 with a selector)',
    },
    { name: 'limit-bytes', type: 'integer', help: 'Maximum number of bytes to read' },
    podTimeoutFlag('20s'),
    { name: 'ignore-errors', type: 'boolean', help: 'Continue with other logs if one fails' },
    {
      name: 'max-log-requests',
      type: 'integer',
      help: 'Maximum number of logs to follow at once (5)',
    },
    {
      name: 'insecure-skip-tls-verify-backend',
      type: 'boolean',
      help: 'Do not make the server verify the certificate of the kubelet',
    },
  ],
  async run(session, args) {
    checkFlags(session, args);
    const query = queryOf(session);
    const pods = await selectPods(session, args[0]).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      const namespace = JSON.stringify(session.namespace);
      throw new CliError(
        `error from server (NotFound): ${error.message} in namespace ${namespace}`,
      );
    });
    const logs: Log[] = [];
    for (const pod of pods) {
      for (const container of await containersToRead(session, pod, args[1])) {
        logs.push({ pod, container });
      }
    }
    if (!session.flags.boolean('follow') || logs.length < 2) {
      for (const log of logs) await readLog(session, log, query);
      return 0;
    }
    const logsMax = session.flags.integer('max-log-requests') ?? 5;
    if (logs.length > logsMax) {
      throw new CliError(
        `you are attempting to follow ${logs.length} log streams, but maximum allowed concurrency ` +
          `is ${logsMax}, use --max-log-requests to increase the limit`,
      );
    }
    await Promise.all(logs.map((log) => readLog(session, log, query)));
    return 0;
  },
};

interface Log {
  readonly pod: JsonObject;
  readonly container: string;
}

/** Throws CliError for conflicting flags. */
function checkFlags({ flags }: Session, args: readonly string[]): void {
  const selects = (flags.text('selector') ?? '') !== '';
  const expected = `expected 'logs ${usage}'.\nPOD or TYPE/NAME is a required argument for the logs command`;
  if (args.length > 2 || (args.length === 0 && !selects)) throw usageError('logs', expected);
  if (args.length === 1 && selects) {
    throw usageError('logs', 'only a selector (-l) or a POD name is allowed');
  }
  const container = flags.text('container') ?? args[1] ?? '';
  const sinceTime = flags.text('since-time') ?? '';
  const time = sinceTime === '' ? undefined : parseGoTime(sinceTime);
  throwFirst([
    (flags.durationMs('since') ?? 0) !== 0 &&
      sinceTime !== '' &&
      'at most one of `sinceTime` or `sinceSeconds` may be specified',
    flags.boolean('all-containers') &&
      container !== '' &&
      `--all-containers=true should not be specified with container name ${container}`,
    flags.has('container') &&
      args.length === 2 &&
      'only one of -c or an inline [CONTAINER] arg is allowed',
    time !== undefined && 'error' in time && time.error,
    (flags.integer('limit-bytes') ?? 0) < 0 && '--limit-bytes must be greater than 0',
    (flags.durationMs('since') ?? 0) < 0 && '--since must be greater than 0',
    (flags.integer('tail') ?? 0) < -1 && '--tail must be greater than or equal to -1',
  ]);
}

function queryOf({ flags }: Session): Readonly<Record<string, string | undefined>> {
  const flag = (name: string) => (flags.boolean(name) ? 'true' : undefined);
  const since = flags.durationMs('since') ?? 0;
  const limit = flags.integer('limit-bytes') ?? 0;
  const selects = (flags.text('selector') ?? '') !== '';
  const tail = flags.integer('tail') ?? (selects ? 10 : -1);
  return {
    follow: flag('follow'),
    previous: flag('previous'),
    timestamps: flag('timestamps'),
    insecureSkipTLSVerifyBackend: flag('insecure-skip-tls-verify-backend'),
    sinceSeconds: since === 0 ? undefined : String(Math.round(since / 1000)),
    sinceTime: flags.text('since-time') || undefined,
    limitBytes: limit === 0 ? undefined : String(limit),
    tailLines: tail === -1 ? undefined : String(tail),
  };
}

async function containersToRead(
  session: Session,
  pod: JsonObject,
  argument: string | undefined,
): Promise<readonly string[]> {
  const { flags } = session;
  const names = containerNames(pod);
  if (flags.boolean('all-containers')) return names;
  const name =
    flags.text('container') ||
    argument ||
    (await defaultContainer(session, pod, { isReported: !flags.boolean('all-pods') }));
  if (names.includes(name)) return [name];
  throw new CliError(`container ${name} is not valid for pod ${nameOf(pod)}`);
}

async function readLog(
  session: Session,
  { pod, container }: Log,
  query: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { flags, io } = session;
  const resource = await session.resourceOfKind('Pod');
  const target = targetOf(resource, pod);
  const isPrefixed = flags.boolean('prefix') || flags.boolean('all-pods');
  const prefix = isPrefixed ? `[pod/${nameOf(pod)}/${container}] ` : '';
  session.interruptExitCode = 1;
  try {
    const stream = await session.client.stream({
      path: targetPath(target, 'log'),
      query: { ...query, container },
      accept: '*/*',
      signal: io.signal,
    });
    const print = createWriter(io, 'output');
    // Whole lines, so that logs that are followed at once do not mix within a line.
    for await (const lines of linesOf(stream.body, prefix)) await print(lines);
  } catch (error) {
    if (io.signal.aborted || !flags.boolean('ignore-errors')) throw error;
    io.out(`error: ${errorText(error)}\n`);
  }
}

/** Maximum length of a line that is kept whole. */
const lineBytesMax = 1024 * 1024;

/** Yields the lines of a log, as many at once as arrive together, each with a prefix. */
async function* linesOf(body: AsyncIterable<Buffer>, prefix: string): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  const take = (end: Buffer) => {
    const text = Buffer.concat([...pending, end]);
    pending = [];
    pendingBytes = 0;
    if (prefix === '') return text;
    const prefixed = text
      .toString('latin1')
      .replace(/[^\n]*\n|[^\n]+$/g, (line) => `${prefix}${line}`);
    return Buffer.from(prefixed, 'latin1');
  };
  try {
    for await (const chunk of body) {
      const end = chunk.lastIndexOf(10) + 1;
      if (end > 0) yield take(chunk.subarray(0, end));
      if (end === chunk.length) continue;
      pending.push(chunk.subarray(end));
      pendingBytes += chunk.length - end;
      if (pendingBytes > lineBytesMax) yield take(Buffer.alloc(0));
    }
  } finally {
    // The start of a line is printed even if the connection is lost within the line.
    if (pendingBytes > 0) yield take(Buffer.alloc(0));
  }
}
