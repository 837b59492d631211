import { generateName, isObject, type JsonObject } from '@wheelhouse/machinery';
import { patchedHere } from '../apply/local-patch.ts';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { containersOf } from '../streams/pods.ts';

/** How to debug: in a container added to a Pod, in a copy of a Pod, or in a Pod on a node. */
type DebugStyle = 'ephemeral' | 'copy' | 'node';

/** The parts of the original Pod that a copy keeps. */
interface KeptParts {
  readonly labels: boolean;
  readonly annotations: boolean;
  readonly livenessProbe: boolean;
  readonly readinessProbe: boolean;
  readonly startupProbe: boolean;
  readonly initContainers: boolean;
}

/** The Pod that a profile changes. */
interface ProfileTarget {
  readonly pod: JsonObject;
  /** The name of the debug container. */
  readonly container: string;
  readonly style: DebugStyle;
  readonly kept: KeptParts;
}

/** Changes a Pod for debugging, without side effects. */
type DebugProfile = (target: ProfileTarget) => JsonObject;

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'];

/** Changes the first container with a name. */
function withContainer(
  pod: JsonObject,
  name: string,
  change: (container: JsonObject) => JsonObject,
): JsonObject {
  const spec = objectAt(pod, 'spec');
  for (const list of containerLists) {
    const containers = listAt(spec, list);
    const at = containers.findIndex((one) => textAt(one, 'name') === name);
    const container = containers[at];
    if (container === undefined) continue;
    return { ...pod, spec: { ...spec, [list]: containers.with(at, change(container)) } };
  }
  return pod;
}

/** Sets members of a Pod's specification. */
const withSpec = (pod: JsonObject, members: JsonObject): JsonObject => ({
  ...pod,
  spec: { ...objectAt(pod, 'spec'), ...members },
});

const without = (object: JsonObject, name: string): JsonObject => {
  const { [name]: _, ...rest } = object;
  return rest;
};

const withSecurity =
  (members: (current: JsonObject) => JsonObject) =>
  (container: JsonObject): JsonObject => {
    const current = objectAt(container, 'securityContext');
    return { ...container, securityContext: { ...current, ...members(current) } };
  };

const adding = (...names: readonly string[]) =>
  withSecurity((current) => {
    const capabilities = objectAt(current, 'capabilities');
    const present = Array.isArray(capabilities['add']) ? capabilities['add'] : [];
    return { capabilities: { ...capabilities, add: [...present, ...names] } };
  });

const unprivileged = (container: JsonObject): JsonObject => ({
  ...container,
  securityContext: {
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
    allowPrivilegeEscalation: false,
    seccompProfile: { type: 'RuntimeDefault' },
  },
});

const onHost = { hostNetwork: true, hostPID: true, hostIPC: true };

/** Mounts the node's root file system at `/host`. */
function withRootOfNode(pod: JsonObject, container: string): JsonObject {
  const volume = { name: 'host-root', hostPath: { path: '/' } };
  const mount = { mountPath: '/host', name: volume.name };
  const mounted = withContainer(pod, container, (one) => ({
    ...one,
    volumeMounts: [...listAt(one, 'volumeMounts'), mount],
  }));
  return withSpec(mounted, { volumes: [...listAt(mounted, 'spec', 'volumes'), volume] });
}

/** A copy with shared processes, without the parts that flags do not keep. */
function asCopy({ pod, kept }: ProfileTarget): JsonObject {
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
  const containers = listAt(pod, 'spec', 'containers').map((container) =>
    probes.reduce((one, probe) => (kept[probe] ? one : without(one, probe)), container),
  );
  const metadata = (['labels', 'annotations'] as const).reduce(
    (one, name) => (kept[name] ? one : without(one, name)),
    objectAt(pod, 'metadata'),
  );
  const spec = objectAt(pod, 'spec');
  return {
    ...pod,
    metadata,
    spec: {
      shareProcessNamespace: true,
      ...(kept.initContainers ? spec : without(spec, 'initContainers')),
      containers,
    },
  };
}

/** Creates a profile that changes the container, and Pods on nodes. */
function profileOf(
  change: (container: JsonObject, style: DebugStyle) => JsonObject,
  onNode: (pod: JsonObject, container: string) => JsonObject = (pod) => pod,
): DebugProfile {
  return (target) => {
    const { container, style } = target;
    const base = style === 'copy' ? asCopy(target) : target.pod;
    const pod = withContainer(base, container, (one) => change(one, style));
    return style === 'node' ? onNode(pod, container) : pod;
  };
}

const onHostWithRoot = (pod: JsonObject, container: string) =>
  withSpec(withRootOfNode(pod, container), onHost);

const profiles: Readonly<Record<string, DebugProfile>> = {
  legacy: ({ pod, container, style }) => {
    if (style === 'node') return onHostWithRoot(pod, container);
    if (style === 'ephemeral') return pod;
    return { ...pod, metadata: without(objectAt(pod, 'metadata'), 'labels') };
  },
  general: profileOf(
    (container, style) =>
      style === 'node' ? without(container, 'securityContext') : adding('SYS_PTRACE')(container),
    onHostWithRoot,
  ),
  baseline: profileOf((container) => without(container, 'securityContext')),
  restricted: profileOf(unprivileged),
  netadmin: profileOf(adding('NET_ADMIN', 'NET_RAW'), (pod) => withSpec(pod, onHost)),
  sysadmin: profileOf(
    withSecurity(() => ({ privileged: true })),
    onHostWithRoot,
  ),
};

/** The profile with a name. Throws CliError. */
export function profileNamed(name: string): DebugProfile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new CliError(`unknown profile: ${name}`);
  return profile;
}

/** The options of `debug`. */
export interface DebugOptions {
  /** Name of the new container; generated if empty. */
  readonly container: string;
  readonly image: string;
  readonly pullPolicy: string;
  readonly setImages: ReadonlyMap<string, string>;
  readonly command: readonly string[];
  /** Whether the command is used as arguments of the image's command. */
  readonly isArguments: boolean;
  readonly env: readonly JsonObject[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly copyTo: string;
  readonly sameNode: boolean;
  /** Undefined unless a flag sets it. */
  readonly shareProcesses: boolean | undefined;
  /** The container whose processes the ephemeral container sees; empty for none. */
  readonly target: string;
  readonly profile: DebugProfile;
  readonly kept: KeptParts;
  /** Members that override those of the debug container after the profile. */
  readonly overrides: JsonObject | undefined;
  /** Reports choices to the user. */
  readonly say: (text: string) => void;
}

/** A Pod to write and its debug container; empty if only images of a copy change. */
export interface DebugPod {
  readonly pod: JsonObject;
  readonly container: string;
}

/** Adds an ephemeral container to a Pod. Rejects with CliError. */
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

/** A new Pod for debugging a node. Rejects with CliError. */
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

/** A copy of a Pod with an added or changed container. Rejects with CliError. */
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

/** The copy without the debug container. */
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

/** The container name of the flag, or a generated one, which is reported. */
function containerName({ container, say }: DebugOptions, pod: JsonObject): string {
  if (container !== '') return container;
  const taken = containersOf(pod);
  let name = generateName('debugger-');
  while (taken.includes(name)) name = generateName('debugger-');
  say(`Defaulting debug container name to ${name}.\n`);
  return name;
}

/** Applies the profile and the user's overrides to a Pod. */
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
