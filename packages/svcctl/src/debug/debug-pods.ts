import { generateName, isObject, type JsonObject } from '@wheelhouse/machinery';
import { patchLocally } from '../apply/local-patch.ts';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { containerNames } from '../streams/pods.ts';

/** Where to debug: in a container added to a Pod, in a copy of a Pod, or in a new Pod on a node. */
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

/** A Pod to which a profile is applied. */
interface ProfileTarget {
  readonly pod: JsonObject;
  /** The name of the debug container. */
  readonly container: string;
  readonly style: DebugStyle;
  readonly keeps: KeptParts;
}

/** Returns a Pod with the settings of a profile. */
type DebugProfile = (target: ProfileTarget) => JsonObject;

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'];

/** Changes the first container of the given name. */
function withContainer(
  pod: JsonObject,
  name: string,
  change: (container: JsonObject) => JsonObject,
): JsonObject {
  const spec = objectAt(pod, 'spec');
  for (const list of containerLists) {
    const containers = listAt(spec, list);
    const index = containers.findIndex((candidate) => textAt(candidate, 'name') === name);
    const container = containers[index];
    if (container === undefined) continue;
    return { ...pod, spec: { ...spec, [list]: containers.with(index, change(container)) } };
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

const addCapabilities = (...names: readonly string[]) =>
  withSecurity((current) => {
    const capabilities = objectAt(current, 'capabilities');
    const present = Array.isArray(capabilities['add']) ? capabilities['add'] : [];
    return { capabilities: { ...capabilities, add: [...present, ...names] } };
  });

const restrict = (container: JsonObject): JsonObject => ({
  ...container,
  securityContext: {
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
    allowPrivilegeEscalation: false,
    seccompProfile: { type: 'RuntimeDefault' },
  },
});

const hostNamespaces = { hostNetwork: true, hostPID: true, hostIPC: true };

/** Mounts the node's root file system at `/host`. */
function withNodeRoot(pod: JsonObject, container: string): JsonObject {
  const volume = { name: 'host-root', hostPath: { path: '/' } };
  const mount = { mountPath: '/host', name: volume.name };
  const mounted = withContainer(pod, container, (containerSpec) => ({
    ...containerSpec,
    volumeMounts: [...listAt(containerSpec, 'volumeMounts'), mount],
  }));
  return withSpec(mounted, { volumes: [...listAt(mounted, 'spec', 'volumes'), volume] });
}

/** Shares the processes of a copied Pod and removes the parts that no flag keeps. */
function withoutDroppedParts({ pod, keeps }: ProfileTarget): JsonObject {
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
  const containers = listAt(pod, 'spec', 'containers').map((container) =>
    probes.reduce((kept, probe) => (keeps[probe] ? kept : without(kept, probe)), container),
  );
  const metadata = (['labels', 'annotations'] as const).reduce(
    (kept, name) => (keeps[name] ? kept : without(kept, name)),
    objectAt(pod, 'metadata'),
  );
  const spec = objectAt(pod, 'spec');
  return {
    ...pod,
    metadata,
    spec: {
      shareProcessNamespace: true,
      ...(keeps.initContainers ? spec : without(spec, 'initContainers')),
      containers,
    },
  };
}

/** Creates a profile that changes the debug container and, on nodes, the Pod. */
function profileOf(
  change: (container: JsonObject, style: DebugStyle) => JsonObject,
  onNode: (pod: JsonObject, container: string) => JsonObject = (pod) => pod,
): DebugProfile {
  return (target) => {
    const { container, style } = target;
    const base = style === 'copy' ? withoutDroppedParts(target) : target.pod;
    const pod = withContainer(base, container, (containerSpec) => change(containerSpec, style));
    return style === 'node' ? onNode(pod, container) : pod;
  };
}

const withHostAccess = (pod: JsonObject, container: string) =>
  withSpec(withNodeRoot(pod, container), hostNamespaces);

const profiles: Readonly<Record<string, DebugProfile>> = {
  legacy: ({ pod, container, style }) => {
    if (style === 'node') return withHostAccess(pod, container);
    if (style === 'ephemeral') return pod;
    return { ...pod, metadata: without(objectAt(pod, 'metadata'), 'labels') };
  },
  general: profileOf(
    (container, style) =>
      style === 'node'
        ? without(container, 'securityContext')
        : addCapabilities('SYS_PTRACE')(container),
    withHostAccess,
  ),
  baseline: profileOf((container) => without(container, 'securityContext')),
  restricted: profileOf(restrict),
  netadmin: profileOf(addCapabilities('NET_ADMIN', 'NET_RAW'), (pod) =>
    withSpec(pod, hostNamespaces),
  ),
  sysadmin: profileOf(
    withSecurity(() => ({ privileged: true })),
    withHostAccess,
  ),
};

/** Returns the profile of the given name. Throws CliError if there is none. */
export function profileNamed(name: string): DebugProfile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new CliError(`unknown profile: ${name}`);
  return profile;
}

/** The options of `debug`. */
export interface DebugOptions {
  /** Name of the debug container; generated if empty. */
  readonly container: string;
  readonly image: string;
  readonly pullPolicy: string;
  readonly setImages: ReadonlyMap<string, string>;
  readonly command: readonly string[];
  /** Whether the command provides arguments for the image's own command. */
  readonly isArguments: boolean;
  readonly env: readonly JsonObject[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly copyTo: string;
  readonly sameNode: boolean;
  /** Undefined unless the flag is set. */
  readonly shareProcesses: boolean | undefined;
  /** The container whose processes the ephemeral container sees; empty for none. */
  readonly target: string;
  readonly profile: DebugProfile;
  readonly keeps: KeptParts;
  /** Members of the debug container that override those of the profile. */
  readonly overrides: JsonObject | undefined;
  /** Reports choices to the user. */
  readonly report: (text: string) => void;
}

/** A Pod and the name of its debug container; the name is empty if only images of a copy change. */
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
  return applyProfile(options, { pod: extended, container: name }, 'ephemeral');
}

/** Creates a Pod for debugging a node. Rejects with CliError. */
export async function nodeDebugPod(options: DebugOptions, node: JsonObject): Promise<DebugPod> {
  const container = options.container === '' ? 'debugger' : options.container;
  const name = `node-debugger-${nameOf(node)}-${generateName('')}`;
  options.report(
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
  return applyProfile(options, { pod, container }, 'node');
}

/** Copies a Pod and adds or changes a container. Rejects with CliError. */
export async function copiedPod(options: DebugOptions, original: JsonObject): Promise<DebugPod> {
  const { container: containerFlag, image, setImages } = options;
  const copy = copyWithoutDebugContainer(options, original);
  if (containerFlag !== '' && containerNames(copy).includes(containerFlag)) {
    const pod = withContainer(copy, containerFlag, (containerSpec) =>
      changedContainer(options, containerSpec),
    );
    return applyProfile(options, { pod, container: containerFlag }, 'copy');
  }
  if (image === '') {
    if (setImages.size > 0) return { pod: copy, container: '' };
    throw new CliError('you must specify image when creating new container');
  }
  const name = containerName(options, copy);
  const added = changedContainer(options, { name, terminationMessagePolicy: 'File' });
  const pod = withSpec(copy, { containers: [...listAt(copy, 'spec', 'containers'), added] });
  return applyProfile(options, { pod, container: name }, 'copy');
}

const podType = { apiVersion: 'v1', kind: 'Pod' };

/** The copy without the debug container. */
function copyWithoutDebugContainer(options: DebugOptions, original: JsonObject): JsonObject {
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

/** The container name of the flag, or a generated one, which it reports. */
function containerName({ container, report }: DebugOptions, pod: JsonObject): string {
  if (container !== '') return container;
  const existingNames = containerNames(pod);
  let name = generateName('debugger-');
  while (existingNames.includes(name)) name = generateName('debugger-');
  report(`Defaulting debug container name to ${name}.\n`);
  return name;
}

/** Applies the profile and the user's overrides to a Pod. */
async function applyProfile(
  options: DebugOptions,
  { pod, container }: DebugPod,
  style: DebugStyle,
): Promise<DebugPod> {
  const { keeps, overrides, profile } = options;
  const profiled = profile({ pod, container, style, keeps });
  if (overrides === undefined) return { pod: profiled, container };
  const list = style === 'ephemeral' ? 'ephemeralContainers' : 'containers';
  if (
    !listAt(profiled, 'spec', list).some(
      (containerSpec) => textAt(containerSpec, 'name') === container,
    )
  ) {
    const label = list === 'containers' ? container : `${container} ephemeral`;
    throw new CliError(`unable to find the ${label} container in the pod ${nameOf(profiled)}`);
  }
  const changed = await patchLocally(
    { ...podType, ...profiled },
    { type: 'strategic', patch: { spec: { [list]: [{ ...overrides, name: container }] } } },
  );
  return { pod: changed, container };
}
