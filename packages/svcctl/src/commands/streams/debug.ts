import { ApiError, type ApiResource, parseYaml } from '@wheelhouse/client';
import { errorText, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { twoWayPatch } from '../../apply/patches.ts';
import { isImageReference, pairOf } from '../../argument-values.ts';
import type { Command } from '../../command.ts';
import {
  copiedPod,
  type DebugOptions,
  type DebugPod,
  nodeDebugPod,
  profileNamed,
  withDebugContainer,
} from '../../debug/debug-pods.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError, throwFirst } from '../../io.ts';
import { hasManifests, loadManifests } from '../../manifests.ts';
import { nameOf, namespaceOf } from '../../objects.ts';
import { getByLabel, resourceOfObject, targetPath } from '../../selection.ts';
import type { Session } from '../../session.ts';

const keepFlag = (name: string, what: string): FlagSpec => ({
  name: `keep-${name}`,
  type: 'boolean',
  help: `Keep the ${what} in the copy; with --copy-to`,
});

/**
 * Adds an ephemeral container to a Pod, or creates a copy of the Pod, or a Pod on a node. Warns of
 * the legacy profile, the default.
 */
export const debugCommand: Command = {
  name: 'debug',
  completes: 'pods',
  summary: 'Create debugging sessions for troubleshooting workloads and nodes',
  usage: '(POD | TYPE/NAME) [--image=IMAGE] [--copy-to=NAME] [-- COMMAND [ARGUMENTS...]]',
  flags: [
    { name: 'filename', short: 'f', type: 'items', help: 'File of the object to debug' },
    { name: 'image', type: 'text', help: 'Image of the debug container' },
    { name: 'container', short: 'c', type: 'text', help: 'Name of the debug container' },
    {
      name: 'arguments-only',
      type: 'boolean',
      help: "Use the words after -- as arguments of the image's command",
    },
    {
      name: 'attach',
      type: 'boolean',
      help: 'Wait for the container and attach to it (default with --stdin)',
    },
    { name: 'stdin', short: 'i', type: 'boolean', help: 'Keep standard input open' },
    { name: 'tty', short: 't', type: 'boolean', help: 'Allocate a terminal' },
    { name: 'quiet', short: 'q', type: 'boolean', help: 'Print only what the container prints' },
    { name: 'env', type: 'pairs', help: 'Environment variables: KEY=VALUE,…; repeatable' },
    { name: 'image-pull-policy', type: 'text', help: 'Always, IfNotPresent, or Never' },
    { name: 'target', type: 'text', help: 'Container whose processes the debug container sees' },
    { name: 'copy-to', type: 'text', help: 'Debug a copy of the pod, with this name' },
    { name: 'replace', type: 'boolean', help: 'Delete the original pod; with --copy-to' },
    { name: 'same-node', type: 'boolean', help: 'Schedule the copy on the same node' },
    { name: 'set-image', type: 'pairs', help: 'Images of the copy: CONTAINER=IMAGE,…; * for all' },
    { name: 'share-processes', type: 'boolean', help: 'Share processes in the copy (default)' },
    keepFlag('labels', 'labels'),
    keepFlag('annotations', 'annotations'),
    keepFlag('liveness', 'liveness probes'),
    keepFlag('readiness', 'readiness probes'),
    keepFlag('startup', 'startup probes'),
    keepFlag('init-containers', 'init containers (default)'),
    {
      name: 'profile',
      type: 'text',
      help: 'legacy (default), general, baseline, netadmin, restricted, or sysadmin',
    },
    {
      name: 'custom',
      type: 'text',
      help: 'File with a partial container that overrides the profile',
    },
  ],
  async run(session, args) {
    const { flags } = session;
    const split = flags.wordsBeforeDash ?? args.length;
    const [words, command] = [args.slice(0, split), args.slice(split)];
    const options = await readDebugOptions(session, command);
    checkDebugFlags(session, options, words);
    session.checkContext();
    if (flags.text('profile') === undefined || flags.text('profile') === 'legacy') {
      session.io.err(
        '--profile=legacy is deprecated and will be removed in the future. It is recommended ' +
          'to explicitly specify a profile, for example "--profile=general".\n',
      );
    }
    for (const object of await readObjects(session, words)) {
      await debugObject(session, options, object);
    }
    return 0;
  },
};

async function readDebugOptions(
  session: Session,
  command: readonly string[],
): Promise<DebugOptions> {
  const { flags, io } = session;
  const isQuiet = flags.boolean('quiet');
  const keeps = (name: string) => flags.boolean(`keep-${name}`);
  return {
    profile: profileNamed(flags.text('profile') ?? 'legacy'),
    overrides: await readCustomContainer(session),
    container: flags.text('container') ?? '',
    image: flags.text('image') ?? '',
    pullPolicy: flags.text('image-pull-policy') ?? '',
    setImages: pairsOf(session, 'set-image'),
    command,
    isArguments: flags.boolean('arguments-only'),
    env: [...pairsOf(session, 'env')].map(([name, value]) => ({ name, value })),
    stdin: flags.boolean('stdin'),
    tty: flags.boolean('tty'),
    copyTo: flags.text('copy-to') ?? '',
    sameNode: flags.boolean('same-node'),
    shareProcesses: flags.has('share-processes') ? flags.boolean('share-processes') : undefined,
    target: flags.text('target') ?? '',
    keeps: {
      labels: keeps('labels'),
      annotations: keeps('annotations'),
      livenessProbe: keeps('liveness'),
      readinessProbe: keeps('readiness'),
      startupProbe: keeps('startup'),
      initContainers: flags.boolean('keep-init-containers', true),
    },
    report: isQuiet ? () => {} : (text) => io.out(text),
  };
}

/** The `KEY=VALUE` pairs of a flag. */
function pairsOf({ flags }: Session, flag: string): ReadonlyMap<string, string> {
  return new Map(flags.list(flag).map(pairOf));
}

/** Reads the partial container of `--custom`. Rejects with CliError. */
async function readCustomContainer(session: Session): Promise<JsonObject | undefined> {
  const file = session.flags.text('custom') ?? '';
  if (file === '') return undefined;
  const text = session
    .readFile(file, (why) => `must pass a container spec json file for custom profile: ${why}`)
    .toString();
  try {
    const container = await parseYaml(text);
    if (isObject(container)) return container;
  } catch (error) {
    throw new CliError(`${file} does not contain a valid container spec: ${errorText(error)}`);
  }
  throw new CliError(`${file} does not contain a valid container spec: it is not an object`);
}

/** Throws CliError for missing or conflicting flags. */
function checkDebugFlags(session: Session, options: DebugOptions, words: readonly string[]): void {
  const { flags } = session;
  const { container, copyTo, overrides, image, pullPolicy, setImages, target } = options;
  throwFirst([
    flags.boolean('attach') &&
      image === '' &&
      container === '' &&
      'you must specify --container or create a new container using --image in order to attach.',
    ...copyProblems(session, options),
    image !== '' &&
      !isImageReference(image) &&
      `invalid image name ${JSON.stringify(image)}: invalid reference format`,
    words.length === 0 && !hasManifests(session) && 'NAME or filename is required for debug',
    !['', 'Always', 'IfNotPresent', 'Never'].includes(pullPolicy) &&
      `invalid image pull policy: ${pullPolicy}`,
    ...[...setImages].map(
      ([name, reference]) =>
        !isImageReference(reference) &&
        `invalid image name ${JSON.stringify(reference)} for container ${JSON.stringify(name)}: ` +
          'invalid reference format',
    ),
    target !== '' &&
      copyTo !== '' &&
      '--target is incompatible with --copy-to. Use --share-processes instead.',
  ]);
  if (target !== '') {
    options.report(
      `Targeting container ${JSON.stringify(target)}. If you don't see processes from this ` +
        "container it may be because the container runtime doesn't support this feature.\n",
    );
  }
  if (options.tty && !options.stdin) {
    throw new CliError('-i/--stdin is required for containers with -t/--tty=true');
  }
  const fixed = ['name', 'command', 'image', 'lifecycle', 'volumeDevices'];
  if (fixed.some((name) => !isUnset(overrides?.[name]))) {
    throw new CliError(
      'name, command, image, lifecycle and volume devices are not modifiable via custom profile',
    );
  }
}

/** Whether a member of a container is absent or empty. */
const isUnset = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && !value.length);

/** Checks the flags of a copy, or that there are none without `--copy-to`. */
function copyProblems(
  { flags }: Session,
  { command, container, copyTo, image, setImages }: DebugOptions,
): (string | false)[] {
  if (copyTo !== '') {
    return [
      image === '' &&
        setImages.size === 0 &&
        command.length === 0 &&
        'you must specify --image, --set-image or command arguments.',
      command.length > 0 &&
        container === '' &&
        image === '' &&
        'you must specify an existing container or a new image when specifying args.',
    ];
  }
  return [
    flags.boolean('replace') && '--replace may only be used with --copy-to.',
    flags.boolean('same-node') && '--same-node may only be used with --copy-to.',
    setImages.size > 0 && '--set-image may only be used with --copy-to.',
    image === '' && 'you must specify --image when not using --copy-to.',
  ];
}

async function readObjects(
  session: Session,
  words: readonly string[],
): Promise<readonly JsonObject[]> {
  if (!hasManifests(session)) {
    const objects: JsonObject[] = [];
    for (const word of words) {
      objects.push(await getByLabel(session, word.includes('/') ? word : `pods/${word}`));
    }
    return objects;
  }
  if (words.length > 0) {
    throw new CliError('resource/name arguments cannot be provided when a path is specified');
  }
  return (await loadManifests(session)).map(({ object }) => object);
}

async function debugObject(
  session: Session,
  options: DebugOptions,
  object: JsonObject,
): Promise<void> {
  const resource = await resourceOfObject(session, object);
  const isCore = resource.group === '';
  let result: DebugPod;
  if (isCore && resource.kind === 'Node') {
    const debugPod = await nodeDebugPod(options, object);
    result = { ...debugPod, pod: await createPod(session, debugPod.pod, session.namespace) };
  } else if (isCore && resource.kind === 'Pod') {
    result =
      options.copyTo === ''
        ? await addContainer(session, options, { resource, pod: object })
        : await copyPod(session, options, object);
  } else {
    const type = `${resource.group}/${resource.version}, Kind=${resource.kind}`;
    throw new CliError(`${JSON.stringify(type)} not supported by debug`);
  }
  const attaches = session.flags.boolean('attach', options.stdin);
  if (!attaches || result.container === '') return;
  const { followContainer } = await import('../../streams/follow-pod.ts');
  await followContainer(session, result);
}

async function createPod(
  session: Session,
  body: JsonObject,
  namespace: string,
): Promise<JsonObject> {
  const resource = await session.resourceOfKind('Pod');
  const path = targetPath({ resource, namespace, name: undefined });
  return (await session.client.send({ method: 'POST', path, body })).object;
}

async function copyPod(
  session: Session,
  options: DebugOptions,
  original: JsonObject,
): Promise<DebugPod> {
  const namespace = namespaceOf(original) || session.namespace;
  const { pod, container } = await copiedPod(options, original);
  const created = await createPod(session, pod, namespace);
  if (session.flags.boolean('replace')) {
    const resource = await session.resourceOfKind('Pod');
    const path = targetPath({ resource, namespace, name: nameOf(original) });
    await session.client.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } });
  }
  return { pod: created, container };
}

async function addContainer(
  session: Session,
  options: DebugOptions,
  { resource, pod: before }: { readonly resource: ApiResource; readonly pod: JsonObject },
): Promise<DebugPod> {
  const { pod: after, container } = await withDebugContainer(options, before);
  const { patch, contentType } = await twoWayPatch(session, { resource, before, after });
  const namespace = namespaceOf(before) || session.namespace;
  const target = { resource, namespace, name: nameOf(before) };
  try {
    const { object } = await session.client.send({
      method: 'PATCH',
      path: targetPath(target, 'ephemeralcontainers'),
      contentType,
      body: patch,
    });
    return { pod: object, container };
  } catch (error) {
    // The server responds with a 404 that names no object if it does not serve the subresource.
    const isAbsent = error instanceof ApiError && error.code === 404 && !error.details?.name;
    if (!isAbsent) throw error;
    const why = JSON.stringify(error.message);
    throw new CliError(
      `ephemeral containers are disabled for this cluster (error from server: ${why})`,
    );
  }
}
