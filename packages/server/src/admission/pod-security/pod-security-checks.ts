import {
  at,
  containersOf,
  listAt,
  objectAt,
  objectsAt,
  type Stored,
  textAt,
} from '@wheelhouse/kinds';
import type { Container } from '@wheelhouse/kinds/types/core/v1';
import {
  compareText,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  sortSteps,
} from '@wheelhouse/machinery';
import type { AdmissionTools } from '../tools.ts';
import type { Level, Standard } from './pod-security-policy.ts';

/** A pod's spec and metadata, or those of a template. */
export interface CheckedPod {
  readonly spec: JsonObject;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A violation of a standard, in kube-apiserver's wording. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

type Found = Violation | undefined;
/** Checks a pod, in steps if it sorts what thousands of items may state. */
type Rule = (pod: CheckedPod) => Found | Generator<void, Found>;

interface Check {
  readonly id: string;
  readonly level: Exclude<Level, 'privileged'>;
  /** Rules by the minor release from which they apply. */
  readonly since: readonly (readonly [minor: number, rule: Rule])[];
  /** Checks of the lower level that this one replaces. */
  readonly instead?: string;
}

/** The newest minor release whose standards differ from those before. */
export const latestMinor = 32;

/** Checks of users who have no rights outside of a pod with its own user namespace. */
const aboutHostUsers = ['procMount', 'runAsNonRoot', 'runAsUser'];

/** The violations of a standard in a pod, in order. In steps (TRUST-2), of about a check. */
export function* violationsSteps(
  standard: Standard,
  pod: CheckedPod,
  { dialect, isOn }: Pick<AdmissionTools, 'dialect' | 'isOn'>,
): Generator<void, readonly Violation[]> {
  if (standard.level === 'privileged') return [];
  const minor = Math.min(standard.minor ?? latestMinor, latestMinor);
  const holding = checksOf(dialect).flatMap((check) => {
    const rule = check.since.filter(([from]) => from <= minor).at(-1)?.[1];
    const isAsked = standard.level === 'restricted' || check.level === 'baseline';
    return rule !== undefined && isAsked ? [{ ...check, rule }] : [];
  });
  const needless = new Set(holding.map(({ instead }) => instead));
  if (isOn('UserNamespacesPodSecurityStandards') && pod.spec.hostUsers === false) {
    for (const id of aboutHostUsers) needless.add(id);
  }
  const violations: Violation[] = [];
  for (const { rule } of holding.filter(({ id }) => !needless.has(id))) {
    yield;
    const work = rule(pod);
    const found = work !== undefined && 'next' in work ? yield* work : work;
    if (found !== undefined) violations.push(found);
  }
  return violations;
}

/** Checks of the lower level come first, each level sorted by name. */
function checksOf(dialect: Dialect): readonly Check[] {
  return [
    { id: 'appArmorProfile', level: 'baseline', since: [[0, appArmor(dialect)]] },
    { id: 'capabilities_baseline', level: 'baseline', since: [[0, capabilitiesAdded]] },
    { id: 'hostNamespaces', level: 'baseline', since: [[0, hostNamespaces]] },
    { id: 'hostPathVolumes', level: 'baseline', since: [[0, hostPaths]] },
    { id: 'hostPorts', level: 'baseline', since: [[0, hostPorts]] },
    { id: 'privileged', level: 'baseline', since: [[0, privileged]] },
    { id: 'procMount', level: 'baseline', since: [[0, procMount]] },
    {
      id: 'seLinuxOptions',
      level: 'baseline',
      since: [
        [0, seLinux(['', 'container_t', 'container_init_t', 'container_kvm_t'])],
        [
          31,
          seLinux(['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']),
        ],
      ],
    },
    {
      id: 'seccompProfile_baseline',
      level: 'baseline',
      since: [
        [0, seccompAnnotations(dialect)],
        [19, seccompValues],
      ],
    },
    {
      id: 'sysctls',
      level: 'baseline',
      since: sysctlsSince.map(([minor]) => [minor, sysctls(minor)]),
    },
    { id: 'windowsHostProcess', level: 'baseline', since: [[0, hostProcess]] },
    {
      id: 'allowPrivilegeEscalation',
      level: 'restricted',
      since: [
        [8, privilegeEscalation],
        [25, unlessWindows(privilegeEscalation)],
      ],
    },
    {
      id: 'capabilities_restricted',
      level: 'restricted',
      instead: 'capabilities_baseline',
      since: [
        [22, capabilitiesDropped],
        [25, unlessWindows(capabilitiesDropped)],
      ],
    },
    {
      id: 'restrictedVolumes',
      level: 'restricted',
      instead: 'hostPathVolumes',
      since: [[0, volumeTypes]],
    },
    { id: 'runAsNonRoot', level: 'restricted', since: [[0, runAsNonRoot]] },
    { id: 'runAsUser', level: 'restricted', since: [[23, runAsUser]] },
    {
      id: 'seccompProfile_restricted',
      level: 'restricted',
      instead: 'seccompProfile_baseline',
      since: [
        [19, seccompRequired],
        [25, unlessWindows(seccompRequired)],
      ],
    },
  ];
}

const quoted = (items: readonly string[]) => items.map((item) => `"${item}"`).join(', ');
const plural = (one: string, many: string, count: number) => (count === 1 ? one : many);
const sorted = (items: Iterable<string>) => [...new Set(items)].sort();

/**
 * Names of the containers for which a condition holds; several types are in kube-apiserver's order.
 */
function containersWith(
  { spec }: CheckedPod,
  holds: (container: JsonObject) => boolean,
): readonly string[] {
  return containersOf(spec)
    .filter(holds)
    .map((container) => textAt(container, 'name'));
}

const named = (names: readonly string[]) =>
  `${plural('container', 'containers', names.length)} ${quoted(names)}`;

/** Describes who sets a field: the pod, containers, or both. */
function setters(pod: boolean, containers: readonly string[]): string {
  return [...(pod ? ['pod'] : []), ...(containers.length === 0 ? [] : [named(containers)])].join(
    ' and ',
  );
}

const security = (object: JsonObject, ...path: readonly string[]) =>
  at(object, 'securityContext', ...path);
const isGiven = (value: JsonValue | undefined) => value !== undefined && value !== null;

function unlessWindows(rule: Rule): Rule {
  return (pod) => (textAt(pod.spec, 'os', 'name') === 'windows' ? undefined : rule(pod));
}

const privileged: Rule = (pod) => {
  const bad = containersWith(pod, (container) => security(container, 'privileged') === true);
  if (bad.length === 0) return undefined;
  const detail = `${named(bad)} must not set securityContext.privileged=true`;
  return { reason: 'privileged', detail };
};

const hostNamespaces: Rule = ({ spec }) => {
  const used = ['hostNetwork', 'hostPID', 'hostIPC'].filter((name) => spec[name] === true);
  if (used.length === 0) return undefined;
  return { reason: 'host namespaces', detail: used.map((name) => `${name}=true`).join(', ') };
};

const hostPaths: Rule = ({ spec }) => {
  const names = objectsAt(spec, 'volumes')
    .filter((volume) => objectAt(volume, 'hostPath') !== undefined)
    .map((volume) => textAt(volume, 'name'));
  if (names.length === 0) return undefined;
  const detail = `${plural('volume', 'volumes', names.length)} ${quoted(names)}`;
  return { reason: 'hostPath volumes', detail };
};

const hostPorts: Rule = (pod) => {
  const portsOf = (container: Stored<Container>) =>
    (container.ports ?? []).map((port) => port.hostPort ?? 0).filter((port) => port !== 0);
  const bad = containersWith(pod, (container) => portsOf(container).length > 0);
  if (bad.length === 0) return undefined;
  const ports = sorted(containersOf(pod.spec).flatMap(portsOf).map(String));
  const uses = `${plural('uses', 'use', bad.length)} ${plural('hostPort', 'hostPorts', ports.length)}`;
  return { reason: 'hostPort', detail: `${named(bad)} ${uses} ${ports.join(', ')}` };
};

const allowedCapabilities = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

const capabilitiesOf = (container: Stored<Container>, member: 'add' | 'drop') =>
  listAt(container, 'securityContext', 'capabilities', member).map(String);

function* addedBeyond(
  pod: CheckedPod,
  allowed: ReadonlySet<string>,
): Generator<void, { names: readonly string[]; text: string }> {
  const added = new Set<string>();
  const names = containersWith(pod, (container) => {
    const beyond = capabilitiesOf(container, 'add').filter(
      (capability) => !allowed.has(capability),
    );
    for (const capability of beyond) added.add(capability);
    return beyond.length > 0;
  });
  const capabilities = yield* sortSteps([...added], compareText);
  const text = `${named(names)} must not include ${quoted(capabilities)} in securityContext.capabilities.add`;
  return { names, text };
}

function* capabilitiesAdded(pod: CheckedPod): Generator<void, Found> {
  const { names, text } = yield* addedBeyond(pod, allowedCapabilities);
  return names.length === 0 ? undefined : { reason: 'non-default capabilities', detail: text };
}

function* capabilitiesDropped(pod: CheckedPod): Generator<void, Found> {
  const keeping = containersWith(
    pod,
    (container) => !capabilitiesOf(container, 'drop').includes('ALL'),
  );
  yield;
  const added = yield* addedBeyond(pod, new Set(['NET_BIND_SERVICE']));
  const details = [
    ...(keeping.length === 0
      ? []
      : [`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`]),
    ...(added.names.length === 0 ? [] : [added.text]),
  ];
  if (details.length === 0) return undefined;
  return { reason: 'unrestricted capabilities', detail: details.join('; ') };
}

const procMount: Rule = (pod) => {
  const mount = (container: JsonObject) => security(container, 'procMount');
  const isBad = (container: JsonObject) =>
    isGiven(mount(container)) && mount(container) !== 'Default';
  const bad = containersWith(pod, isBad);
  if (bad.length === 0) return undefined;
  const types = sorted(
    containersOf(pod.spec)
      .filter(isBad)
      .map((container) => String(mount(container))),
  );
  const detail = `${named(bad)} must not set securityContext.procMount to ${quoted(types)}`;
  return { reason: 'procMount', detail };
};

function seLinux(types: readonly string[]): Rule {
  return (pod) => {
    const options = (object: JsonObject) => objectAt(object, 'securityContext', 'seLinuxOptions');
    const says = (object: JsonObject, member: string) => textAt(options(object), member);
    const isBad = (object: JsonObject) =>
      !types.includes(says(object, 'type')) ||
      says(object, 'user') !== '' ||
      says(object, 'role') !== '';
    const holders = [pod.spec, ...containersOf(pod.spec)].filter(isBad);
    if (holders.length === 0) return undefined;
    const bad = sorted(holders.map((holder) => says(holder, 'type'))).filter(
      (type) => !types.includes(type),
    );
    const data = [
      ...(bad.length === 0 ? [] : [`${plural('type', 'types', bad.length)} ${quoted(bad)}`]),
      ...(holders.some((holder) => says(holder, 'user') !== '') ? ['user may not be set'] : []),
      ...(holders.some((holder) => says(holder, 'role') !== '') ? ['role may not be set'] : []),
    ];
    const subject = setters(isBad(pod.spec), containersWith(pod, isBad));
    const detail = `${subject} set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`;
    return { reason: 'seLinuxOptions', detail };
  };
}

const profileType = (object: JsonObject, profile: string) => {
  const profileObject = objectAt(object, 'securityContext', profile);
  return profileObject === undefined ? undefined : textAt(profileObject, 'type');
};
const isContained = (type: string | undefined) =>
  type === undefined || type === 'RuntimeDefault' || type === 'Localhost';

function appArmor(dialect: Dialect): Rule {
  const prefix = dialect.label('', 'container.apparmor.security.beta');
  return (pod) => {
    const isBad = (object: JsonObject) => !isContained(profileType(object, 'appArmorProfile'));
    const holders = [pod.spec, ...containersOf(pod.spec)].filter(isBad);
    const annotations = Object.entries(pod.annotations)
      .filter(([key, value]) => key.startsWith(prefix) && !isAppArmorValue(value))
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      .sort();
    if (holders.length === 0 && annotations.length === 0) return undefined;
    const types = sorted(holders.map((holder) => profileType(holder, 'appArmorProfile') ?? ''));
    const values = [...types, ...annotations];
    const noun = plural('annotation', 'annotations', annotations.length);
    const own = setters(isBad(pod.spec), containersWith(pod, isBad));
    const subjects = [own, annotations.length === 0 ? '' : noun].filter(
      (subject) => subject !== '',
    );
    const reason = 'forbidden AppArmor profile';
    return {
      reason: plural(reason, `${reason}s`, values.length),
      detail: `${subjects.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`,
    };
  };
}

const isAppArmorValue = (value: string) =>
  value === '' || value === 'runtime/default' || value.startsWith('localhost/');

function seccompAnnotations(dialect: Dialect): Rule {
  const ofPod = dialect.label('pod', 'seccomp.security.alpha');
  const ofContainer = dialect.label('', 'container.seccomp.security.alpha');
  const isFine = (value: string) =>
    value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');
  return ({ spec, annotations }) => {
    const keys = [
      ofPod,
      ...containersOf(spec).map((container) => ofContainer + textAt(container, 'name')),
    ];
    const bad = sorted(
      keys.flatMap((key) => {
        const value = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
        return value === undefined || isFine(value) ? [] : [`${key}=${JSON.stringify(value)}`];
      }),
    );
    if (bad.length === 0) return undefined;
    const noun = plural('annotation', 'annotations', bad.length);
    return { reason: 'seccompProfile', detail: `forbidden ${noun} ${bad.join(', ')}` };
  };
}

const seccompValues: Rule = (pod) => {
  const isBad = (object: JsonObject) => !isContained(profileType(object, 'seccompProfile'));
  const holders = [pod.spec, ...containersOf(pod.spec)].filter(isBad);
  if (holders.length === 0) return undefined;
  const values = sorted(holders.map((holder) => profileType(holder, 'seccompProfile') ?? ''));
  const subject = setters(isBad(pod.spec), containersWith(pod, isBad));
  const detail = `${subject} must not set securityContext.seccompProfile.type to ${quoted(values)}`;
  return { reason: 'seccompProfile', detail };
};

const seccompRequired: Rule = (pod) => {
  const bad = seccompValues(pod);
  if (bad !== undefined || profileType(pod.spec, 'seccompProfile') !== undefined) return bad;
  const silent = containersWith(
    pod,
    (container) => profileType(container, 'seccompProfile') === undefined,
  );
  if (silent.length === 0) return undefined;
  const detail = `pod or ${named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`;
  return { reason: 'seccompProfile', detail };
};

/** Safe sysctls, by the release that added them. */
const sysctlsSince: readonly (readonly [minor: number, names: readonly string[]])[] = [
  [
    0,
    [
      'kernel.shm_rmid_forced',
      'net.ipv4.ip_local_port_range',
      'net.ipv4.tcp_syncookies',
      'net.ipv4.ping_group_range',
      'net.ipv4.ip_unprivileged_port_start',
    ],
  ],
  [27, ['net.ipv4.ip_local_reserved_ports']],
  [
    29,
    [
      'net.ipv4.tcp_keepalive_time',
      'net.ipv4.tcp_fin_timeout',
      'net.ipv4.tcp_keepalive_intvl',
      'net.ipv4.tcp_keepalive_probes',
    ],
  ],
  [32, ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']],
];

function sysctls(minor: number): Rule {
  const allowed = new Set(sysctlsSince.flatMap(([since, names]) => (since <= minor ? names : [])));
  return ({ spec }) => {
    const names = objectsAt(spec, 'securityContext', 'sysctls').map((sysctl) =>
      textAt(sysctl, 'name'),
    );
    const bad = names.filter((name) => !allowed.has(name));
    return bad.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: bad.join(', ') };
  };
}

const hostProcess: Rule = (pod) => {
  const isBad = (object: JsonObject) => security(object, 'windowsOptions', 'hostProcess') === true;
  const names = containersWith(pod, isBad);
  if (!isBad(pod.spec) && names.length === 0) return undefined;
  const subject = setters(isBad(pod.spec), names);
  const detail = `${subject} must not set securityContext.windowsOptions.hostProcess=true`;
  return { reason: 'hostProcess', detail };
};

const privilegeEscalation: Rule = (pod) => {
  const bad = containersWith(
    pod,
    (container) => security(container, 'allowPrivilegeEscalation') !== false,
  );
  if (bad.length === 0) return undefined;
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${named(bad)} must set securityContext.allowPrivilegeEscalation=false`,
  };
};

const allowedVolumes = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]);

const volumeTypes: Rule = ({ spec }) => {
  const typeOf = (volume: JsonObject) => {
    const type = Object.keys(volume).find((member) => isObject(volume[member])) ?? 'unknown';
    // The standards of this release do not know images.
    return type === 'image' ? 'unknown' : type;
  };
  const bad = objectsAt(spec, 'volumes').filter((volume) => !allowedVolumes.has(typeOf(volume)));
  if (bad.length === 0) return undefined;
  const names = bad.map((volume) => textAt(volume, 'name'));
  const types = sorted(bad.map(typeOf));
  const noun = 'restricted volume type';
  const detail = [
    plural('volume', 'volumes', names.length),
    quoted(names),
    plural('uses', 'use', names.length),
    plural(noun, `${noun}s`, types.length),
    quoted(types),
  ];
  return { reason: 'restricted volume types', detail: detail.join(' ') };
};

const runAsNonRoot: Rule = (pod) => {
  const says = (object: JsonObject) => security(object, 'runAsNonRoot');
  const reason = 'runAsNonRoot != true';
  const roots = containersWith(pod, (container) => says(container) === false);
  if (says(pod.spec) === false || roots.length > 0) {
    const subject = setters(says(pod.spec) === false, roots);
    return { reason, detail: `${subject} must not set securityContext.runAsNonRoot=false` };
  }
  if (says(pod.spec) === true) return undefined;
  const silent = containersWith(pod, (container) => !isGiven(says(container)));
  if (silent.length === 0) return undefined;
  return { reason, detail: `pod or ${named(silent)} must set securityContext.runAsNonRoot=true` };
};

const runAsUser: Rule = (pod) => {
  const isRoot = (object: JsonObject) => {
    const user = security(object, 'runAsUser');
    return isGiven(user) && Number(user) === 0;
  };
  const names = containersWith(pod, isRoot);
  if (!isRoot(pod.spec) && names.length === 0) return undefined;
  const detail = `${setters(isRoot(pod.spec), names)} must not set runAsUser=0`;
  return { reason: 'runAsUser=0', detail };
};
