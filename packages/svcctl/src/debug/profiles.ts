import type { JsonObject } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, objectAt, textAt } from '../objects.ts';

/** What is debugged: a container added to a Pod, a copy of a Pod, or a Pod on a node. */
export type DebugStyle = 'ephemeral' | 'copy' | 'node';

/** Which parts of the original Pod a copy keeps. */
export interface KeptParts {
  readonly labels: boolean;
  readonly annotations: boolean;
  readonly livenessProbe: boolean;
  readonly readinessProbe: boolean;
  readonly startupProbe: boolean;
  readonly initContainers: boolean;
}

/** What a profile changes. */
interface ProfileTarget {
  readonly pod: JsonObject;
  /** The name of the container that debugs. */
  readonly container: string;
  readonly style: DebugStyle;
  readonly kept: KeptParts;
}

/** Gives the Pod as a profile makes it; pure. */
export type DebugProfile = (target: ProfileTarget) => JsonObject;

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'];

/** The Pod with the first container of a name changed. */
export function withContainer(
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

/** The Pod with members of its specification set. */
export const withSpec = (pod: JsonObject, members: JsonObject): JsonObject => ({
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

/** The node's files at `/host` in the container. */
function withRootOfNode(pod: JsonObject, container: string): JsonObject {
  const volume = { name: 'host-root', hostPath: { path: '/' } };
  const mount = { mountPath: '/host', name: volume.name };
  const mounted = withContainer(pod, container, (one) => ({
    ...one,
    volumeMounts: [...listAt(one, 'volumeMounts'), mount],
  }));
  return withSpec(mounted, { volumes: [...listAt(mounted, 'spec', 'volumes'), volume] });
}

/** A copy without what flags do not keep, whose containers see each other's processes. */
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

/** A profile that changes the container, and the Pod of one style or another. */
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

/** The profile of a name. Throws CliError. */
export function profileNamed(name: string): DebugProfile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new CliError(`unknown profile: ${name}`);
  return profile;
}
