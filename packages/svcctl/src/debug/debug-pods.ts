import { generateName, isObject, type JsonObject } from '@wheelhouse/machinery';
import { patchedHere } from '../apply/local-patch.ts';
import { CliError } from '../io.ts';
import { containersOf } from '../logs/pods-to-read.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import {
  type DebugProfile,
  type DebugStyle,
  type KeptParts,
  withContainer,
  withSpec,
} from './profiles.ts';

/** What the flags of `debug` say. */
export interface DebugOptions {
  /** Of the new container; empty to let the command choose a name. */
  readonly container: string;
  readonly image: string;
  readonly pullPolicy: string;
  readonly setImages: ReadonlyMap<string, string>;
  readonly command: readonly string[];
  /** Whether the command is the arguments of the image's own. */
  readonly isArguments: boolean;
  readonly env: readonly JsonObject[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly copyTo: string;
  readonly sameNode: boolean;
  /** Absent unless a flag says so. */
  readonly shareProcesses: boolean | undefined;
  /** The container whose processes an ephemeral one sees; empty for none. */
  readonly target: string;
  readonly profile: DebugProfile;
  readonly kept: KeptParts;
  /** Members of a container that change what the profile made. */
  readonly overrides: JsonObject | undefined;
  /** Tells the user what was chosen. */
  readonly say: (text: string) => void;
}

/** A Pod to write, and the container that debugs; empty when only images of a copy change. */
export interface DebugPod {
  readonly pod: JsonObject;
  readonly container: string;
}

/** The Pod with one more ephemeral container. Throws CliError. */
export async function withDebugContainer(
  options: DebugOptions,
  pod: JsonObject,
): Promise<DebugPod> {
  const name = containerName(options, pod);
  const { target } = options;
  const container = {
    ...newContainer(options, name),
    ...(target === '' ? {} : { targetContainerName: target }),
  };
  const ephemeralContainers = [...listAt(pod, 'spec', 'ephemeralContainers'), container];
  const extended = withSpec(pod, { ephemeralContainers });
  return finished(options, { pod: extended, container: name }, 'ephemeral');
}

/** A new Pod on a node. Throws CliError. */
export async function nodeDebugPod(options: DebugOptions, node: JsonObject): Promise<DebugPod> {
  const container = options.container === '' ? 'debugger' : options.container;
  const name = `node-debugger-${nameOf(node)}-${generateName('')}`;
  options.say(
    `Creating debugging pod ${name} with container ${container} on node ${nameOf(node)}.\n`,
  );
  const pod = {
    ...podType,
    metadata: { name },
    spec: {
      containers: [newContainer(options, container)],
      nodeName: nameOf(node),
      restartPolicy: 'Never',
      tolerations: [{ operator: 'Exists' }],
    },
  };
  return finished(options, { pod, container }, 'node');
}

/** A copy of a Pod with a container more, or changed. Throws CliError. */
export async function copiedPod(options: DebugOptions, original: JsonObject): Promise<DebugPod> {
  const { container: named, image, setImages } = options;
  const copy = bareCopy(options, original);
  if (named !== '' && containersOf(copy).includes(named)) {
    const pod = withContainer(copy, named, (one) => changedContainer(options, one));
    return finished(options, { pod, container: named }, 'copy');
  }
  if (image === '') {
    if (setImages.size > 0) return { pod: copy, container: '' };
    throw new CliError('you must specify image when creating new container');
  }
  const name = containerName(options, copy);
  const added = changedContainer(options, { name, terminationMessagePolicy: 'File' });
  const pod = withSpec(copy, { containers: [...listAt(copy, 'spec', 'containers'), added] });
  return finished(options, { pod, container: name }, 'copy');
}

const podType = { apiVersion: 'v1', kind: 'Pod' };

/** The copy before a container of it debugs. */
function bareCopy(options: DebugOptions, original: JsonObject): JsonObject {
  const { copyTo, sameNode, setImages, shareProcesses } = options;
  const { ephemeralContainers: _, nodeName, ...spec } = objectAt(original, 'spec');
  const { labels, annotations } = objectAt(original, 'metadata');
  const containers = listAt(spec, 'containers').map((container) => {
    const image = setImages.get(textAt(container, 'name')) ?? setImages.get('*');
    return image === undefined || image === '' ? container : { ...container, image };
  });
  return {
    ...podType,
    metadata: {
      name: copyTo,
      namespace: namespaceOf(original),
      ...(isObject(labels) ? { labels } : {}),
      ...(isObject(annotations) ? { annotations } : {}),
    },
    spec: {
      ...spec,
      ...(sameNode && nodeName !== undefined ? { nodeName } : {}),
      ...(shareProcesses === undefined ? {} : { shareProcessNamespace: shareProcesses }),
      containers,
    },
  };
}

function newContainer(options: DebugOptions, name: string): JsonObject {
  const { command, env, image, isArguments, pullPolicy, stdin, tty } = options;
  return {
    name,
    image,
    ...(command.length === 0 ? {} : { [isArguments ? 'args' : 'command']: [...command] }),
    ...(env.length === 0 ? {} : { env: [...env] }),
    ...(pullPolicy === '' ? {} : { imagePullPolicy: pullPolicy }),
    ...(stdin ? { stdin } : {}),
    ...(tty ? { tty } : {}),
    terminationMessagePolicy: 'File',
  };
}

function changedContainer(options: DebugOptions, container: JsonObject): JsonObject {
  const { command, env, image, isArguments, pullPolicy, stdin, tty } = options;
  const { args, ...rest } = container;
  const keepsArgs = args !== undefined && (command.length === 0 || isArguments);
  return {
    ...rest,
    ...(keepsArgs ? { args } : {}),
    ...(command.length === 0 ? {} : { [isArguments ? 'args' : 'command']: [...command] }),
    ...(env.length === 0 ? {} : { env: [...env] }),
    ...(image === '' ? {} : { image }),
    ...(pullPolicy === '' ? {} : { imagePullPolicy: pullPolicy }),
    stdin,
    tty,
  };
}

/** The name that a flag gives, or a new one, of which the user is told. */
function containerName({ container, say }: DebugOptions, pod: JsonObject): string {
  if (container !== '') return container;
  const taken = containersOf(pod);
  let name = generateName('debugger-');
  while (taken.includes(name)) name = generateName('debugger-');
  say(`Defaulting debug container name to ${name}.\n`);
  return name;
}

/** The Pod as the profile and the user's own changes make it. */
async function finished(
  options: DebugOptions,
  { pod, container }: DebugPod,
  style: DebugStyle,
): Promise<DebugPod> {
  const { kept, overrides, profile } = options;
  const profiled = profile({ pod, container, style, kept });
  if (overrides === undefined) return { pod: profiled, container };
  const list = style === 'ephemeral' ? 'ephemeralContainers' : 'containers';
  if (!listAt(profiled, 'spec', list).some((one) => textAt(one, 'name') === container)) {
    const label = list === 'containers' ? container : `${container} ephemeral`;
    throw new CliError(`unable to find the ${label} container in the pod ${nameOf(profiled)}`);
  }
  const changed = await patchedHere(
    { ...podType, ...profiled },
    {
      type: 'strategic',
      patch: { spec: { [list]: [{ ...overrides, name: container }] } },
      what: 'error creating three way patch to add debug container',
    },
  );
  return { pod: changed, container };
}
