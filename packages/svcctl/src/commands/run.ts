import { type JsonObject, problemText, strictEnvironmentName } from '@wheelhouse/machinery';
import { overrideFlags, withOverrides } from '../apply/local-patch.ts';
import { dryRunOf, dryRunSuffix } from '../apply/writes.ts';
import { isImageReference, parsePairs } from '../argument-values.ts';
import type { Command } from '../command.ts';
import { createObject, createUnreported, generatorFlags, newMetadata } from '../create-object.ts';
import { isNotFound } from '../deletion.ts';
import { describeError, reportFailures, visitEach } from '../errors.ts';
import { CliError, usageError } from '../io.ts';
import { nameOf, namespaceOf } from '../objects.ts';
import { reportObject } from '../output/output.ts';
import { resourceOfObject, type Target, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { podTimeoutFlag, podTimeoutMs } from '../streams/pods.ts';

/**
 * Creates a Pod, and with `--expose` a Service for it. `--attach` connects the terminal; `--rm`
 * then deletes what was created.
 */
export const runCommand: Command = {
  name: 'run',
  summary: 'Run a particular image on the cluster',
  usage:
    'NAME --image=IMAGE [--env=KEY=VALUE] [--port=PORT] [--command] -- [COMMAND] [ARGUMENTS...]',
  flags: [
    ...generatorFlags,
    ...overrideFlags,
    { name: 'image', type: 'text', help: 'Image of the container' },
    { name: 'image-pull-policy', type: 'text', help: 'Always, IfNotPresent, or Never' },
    { name: 'env', type: 'list', help: 'KEY=VALUE; repeatable' },
    { name: 'port', type: 'text', help: 'Port of the container' },
    { name: 'labels', short: 'l', type: 'text', help: 'Labels of the pod: KEY=VALUE,… (run=NAME)' },
    { name: 'annotations', type: 'list', help: 'KEY=VALUE; repeatable' },
    { name: 'restart', type: 'text', help: 'Always (default), OnFailure, or Never' },
    {
      name: 'command',
      type: 'boolean',
      help: 'Use the words after -- as the command, not as its arguments',
    },
    { name: 'expose', type: 'boolean', help: 'Also create a ClusterIP service' },
    { name: 'privileged', type: 'boolean', help: 'Run the container in privileged mode' },
    { name: 'stdin', short: 'i', type: 'boolean', help: 'Keep standard input open' },
    { name: 'tty', short: 't', type: 'boolean', help: 'Allocate a terminal' },
    {
      name: 'attach',
      type: 'boolean',
      help: 'Wait for the pod and attach to it (default with --stdin)',
    },
    { name: 'rm', type: 'boolean', help: 'Delete the pod after it ends; requires --attach' },
    { name: 'quiet', short: 'q', type: 'boolean', help: 'Print only what the container prints' },
    { name: 'leave-stdin-open', type: 'boolean', help: 'Do not wait for the end of the pod' },
    podTimeoutFlag('1m'),
  ],
  async run(session, args) {
    const { flags } = session;
    checkTimeoutAndImage(session);
    const [name, ...command] = args;
    if (name === undefined || flags.wordsBeforeDash === 0) {
      throw usageError('run', 'NAME is required for run');
    }
    checkFlags(session, name);
    const pod = await withOverrides(session, createPod(session, name, command));
    const manager = 'svcctl-run';

    const created = await createUnreported(session, pod, { manager });
    const targets = [await resolveTarget(session, pod)];
    const failures: unknown[] = [];
    if (flags.boolean('expose')) {
      await visitEach(
        session.io,
        [createService(session, name)],
        async (service) => {
          await createObject(session, service, { manager });
          targets.push(await resolveTarget(session, service));
        },
        failures,
      );
      if (flags.text('output') === 'yaml') session.io.out('---\n');
    }
    if (flags.boolean('attach', flags.boolean('stdin'))) await attachAndCleanUp(session, targets);
    else reportObject(session, created, `created${dryRunSuffix(session)}`);
    return reportFailures(session.io, failures);
  },
};

async function resolveTarget(session: Session, object: JsonObject): Promise<Target> {
  const resource = await resourceOfObject(session, object);
  return { resource, namespace: namespaceOf(object) || session.namespace, name: nameOf(object) };
}

/**
 * Attaches to the Pod, the first of the new objects; with `--rm`, deletes all of them at the end.
 */
async function attachAndCleanUp(session: Session, created: readonly Target[]): Promise<void> {
  const { flags, io } = session;
  const [pod] = created;
  if (pod === undefined) return;
  try {
    const { followPod } = await import('../streams/follow-pod.ts');
    await followPod(session, pod);
  } finally {
    for (const target of flags.boolean('rm') ? created : []) {
      if (!(await isDeleted(session, target))) continue;
      const label = `${target.resource.singular} ${JSON.stringify(target.name)}`;
      if (!flags.boolean('quiet')) io.out(`${label} deleted\n`);
    }
  }
}

/** Deletes an object. Resolves with whether it is deleted; a failure does not hide an earlier one. */
async function isDeleted({ client, io }: Session, target: Target): Promise<boolean> {
  try {
    await client.send({ method: 'DELETE', path: targetPath(target), body: {} });
    return true;
  } catch (error) {
    if (!isNotFound(error)) io.err(describeError(error).text);
    return false;
  }
}

/** Throws CliError without `--image`, or for a time limit that is not positive. */
function checkTimeoutAndImage(session: Session): void {
  if (!session.flags.has('image')) throw new CliError('required flag(s) "image" not set');
  podTimeoutMs(session);
}

/** Throws CliError for missing or conflicting flags. */
function checkFlags(session: Session, name: string): void {
  const { flags } = session;
  const image = flags.text('image') ?? '';
  if (image === '') throw new CliError('--image is required');
  if (!isImageReference(image)) {
    throw new CliError(`Invalid image name ${JSON.stringify(image)}: invalid reference format`);
  }
  const interactive = flags.boolean('stdin');
  const attaches = flags.boolean('attach', interactive);
  const restart = flags.text('restart') || 'Always';
  const pullPolicy = flags.text('image-pull-policy') ?? '';
  const problem = [
    flags.boolean('tty') &&
      !interactive &&
      '-i/--stdin is required for containers with -t/--tty=true',
    flags.boolean('expose') &&
      (flags.text('port') ?? '') === '' &&
      '--port must be set when exposing a service',
    !['Always', 'OnFailure', 'Never'].includes(restart) && `invalid restart policy: ${restart}`,
    !attaches && flags.boolean('rm') && '--rm should only be used for attached containers',
    attaches &&
      dryRunOf(session) !== 'none' &&
      "--dry-run=[server|client] can't be used with attached containers options " +
        '(--attach, --stdin, or --tty)',
    !['', 'Always', 'IfNotPresent', 'Never'].includes(pullPolicy) &&
      `invalid image pull policy: ${pullPolicy}`,
  ].find((candidate) => candidate !== false);
  if (problem !== undefined) throw usageError('run', problem);
  if (name === '') throw new CliError('Parameter: name is required');
}

function checkPort({ flags }: Session): void {
  const port = flags.text('port') ?? '';
  if (!/^[-+]?\d{1,9}$/.test(port)) {
    throw new CliError(
      problemText({ code: 'number', parser: 'Atoi', text: port, problem: 'syntax' }),
    );
  }
}

function createPod(session: Session, name: string, command: readonly string[]): JsonObject {
  const { flags } = session;
  const invalidEnv = (text: string) => `invalid env: ${text}`;
  const variables = Object.entries(parsePairs(flags.list('env'), invalidEnv));
  const env = variables.map(([variable, value = '']) => {
    if (strictEnvironmentName(variable).length === 0) return { name: variable, value };
    throw new CliError(invalidEnv(`${variable}=${value}`));
  });
  const annotations = parsePairs(
    flags.list('annotations'),
    (text) => `invalid annotations format: ${text}`,
  );
  const port = flags.text('port') ?? '';
  if (port !== '') checkPort(session);
  const labels = flags.text('labels') ?? '';
  const pullPolicy = flags.text('image-pull-policy') ?? '';
  const words = { [flags.boolean('command') ? 'command' : 'args']: [...command] };
  const container: JsonObject = {
    ...(command.length === 0 ? {} : words),
    ...(env.length === 0 ? {} : { env }),
    image: flags.text('image') ?? '',
    ...(pullPolicy === '' ? {} : { imagePullPolicy: pullPolicy }),
    name,
    ...(port === '' ? {} : { ports: [{ containerPort: Number(port) }] }),
    ...(flags.boolean('privileged') ? { securityContext: { privileged: true } } : {}),
    ...(flags.boolean('stdin') ? { stdin: true, stdinOnce: true } : {}),
    ...(flags.boolean('tty') ? { tty: true } : {}),
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      labels: labels === '' ? { run: name } : parseLabels(labels),
      ...newMetadata(session, name),
    },
    spec: {
      containers: [container],
      dnsPolicy: 'ClusterFirst',
      restartPolicy: flags.text('restart') || 'Always',
    },
  };
}

const parseLabels = (text: string): JsonObject =>
  parsePairs(text.split(','), (pair) => `unexpected label spec: ${pair}`);

function createService(session: Session, name: string): JsonObject {
  const port = Number(session.flags.text('port'));
  const labels = session.flags.text('labels') ?? '';
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: newMetadata(session, name),
    spec: {
      ports: [{ port, protocol: 'TCP', targetPort: port }],
      selector: labels === '' ? { run: name } : parseLabels(labels),
    },
  };
}
