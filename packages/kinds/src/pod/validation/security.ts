import {
  appendAll,
  dnsSubdomain,
  duplicate,
  exceedsBytes,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  joined,
  notSupported,
  required,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { at } from '../../cells.ts';
import type {
  AppArmorProfile,
  PodSpec,
  SeccompProfile,
  SecurityContext,
  WindowsSecurityContextOptions,
} from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, someSteps } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import {
  forbidPresent,
  isTrue,
  validateDescendingPath,
  validateGroupIds,
  validateIds,
  validateOptionalChoice,
} from '../fields.ts';
import { containersOf, eachContainer } from '../references.ts';
import type { PodRules } from '../rules.ts';

/**
 * Validates that either all containers of a pod are HostProcess containers or none, and that a pod
 * with such containers uses the host's network.
 */
export function validateHostProcesses(spec: Stored<PodSpec>, path: string): FieldError[] {
  const ofPod = hostProcess(spec);
  if (
    ofPod === undefined &&
    !containersOf(spec).some((container) => hostProcess(container) !== undefined)
  ) {
    return [];
  }
  const errors: FieldError[] = [];
  let [all, onHost] = [0, 0];
  for (const { container, path: field } of eachContainer(spec, path)) {
    const own = hostProcess(container);
    all += 1;
    if (own ?? ofPod ?? false) onHost += 1;
    if (ofPod === undefined || own === undefined || ofPod === own) continue;
    const detail = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
    errors.push(invalid(`${field}.securityContext.windowsOptions.hostProcess`, own, detail));
  }
  if (onHost === 0) return errors;
  if (onHost !== all) {
    const detail =
      'If pod contains any hostProcess containers then all containers must be HostProcess containers';
    errors.push(invalid(path, '', detail));
  }
  if (!isTrue(spec, 'hostNetwork')) {
    const detail = 'hostNetwork must be true if pod contains any hostProcess containers';
    errors.push(invalid(`${path}.hostNetwork`, false, detail));
  }
  return errors;
}

/** The setting `hostProcess` of a pod's spec or of a container; undefined if it is not set. */
export const hostProcess = (holder: JsonObject | undefined): boolean | undefined => {
  const value = at(holder, 'securityContext', 'windowsOptions', 'hostProcess');
  return typeof value === 'boolean' ? value : undefined;
};

const systems = ['linux', 'windows'];

/** Validates the operating system of a pod, and rejects members that do not apply to it. */
export function validateSystem(spec: Stored<PodSpec>, path: string): FieldError[] {
  const system = spec.os;
  if (system === undefined) return [];
  const name = system.name ?? '';
  if (name === '') return [required(`${path}.os.name`, 'cannot be empty')];
  if (name === 'linux') return refuseWindowsOptions(spec, path);
  if (name === 'windows') return refuseLinuxOptions(spec, path);
  return [notSupported(`${path}.os`, name, systems)];
}

function refuseWindowsOptions(spec: Stored<PodSpec>, path: string): FieldError[] {
  const why = 'windows options cannot be set for a linux pod';
  const holders = [{ container: spec, path }, ...eachContainer(spec, path)];
  return holders.flatMap(({ container, path: field }) =>
    forbidPresent(objectAt(container, 'securityContext'), ['windowsOptions'], {
      path: `${field}.securityContext`,
      why,
    }),
  );
}

const contextOnlyLinux = [
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
];

const containerOnlyLinux = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
];

function refuseLinuxOptions(spec: Stored<PodSpec>, path: string): FieldError[] {
  const why = 'cannot be set for a windows pod';
  const context = spec.securityContext;
  const options = { path: `${path}.securityContext`, why };
  const refuseIf = (isPresent: boolean, name: string) =>
    isPresent ? [forbiddenField(`${path}.${name}`, why)] : [];
  const hasSysctls = (context?.sysctls ?? []).length > 0;
  return [
    ...forbidPresent(context, ['appArmorProfile', 'seLinuxOptions'], options),
    ...refuseIf(spec.hostUsers != null, 'hostUsers'),
    ...refuseIf(isTrue(spec, 'hostPID'), 'hostPID'),
    ...refuseIf(isTrue(spec, 'hostIPC'), 'hostIPC'),
    ...forbidPresent(context, ['seccompProfile', 'fsGroup', 'fsGroupChangePolicy'], options),
    ...refuseIf(hasSysctls, 'securityContext.sysctls'),
    ...refuseIf(spec.shareProcessNamespace != null, 'shareProcessNamespace'),
    ...forbidPresent(context, contextOnlyLinux, options),
    ...eachContainer(spec, path).flatMap(({ container, path: field }) =>
      forbidPresent(objectAt(container, 'securityContext'), containerOnlyLinux, {
        path: `${field}.securityContext`,
        why,
      }),
    ),
  ];
}

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'];

/** Validates an AppArmor profile. */
export function validateAppArmorProfile(
  profile: Stored<AppArmorProfile> | undefined,
  path: string,
): FieldError[] {
  if (profile === undefined) return [];
  const type = profile.type ?? '';
  const local = profile.localhostProfile;
  const field = `${path}.localhostProfile`;
  if (type === 'Localhost') return validateLocalProfile(local, field);
  if (type === '') {
    return [required(`${path}.type`, 'type is required when appArmorProfile is set')];
  }
  if (!profileTypes.includes(type)) return [notSupported(`${path}.type`, type, profileTypes)];
  if (local === undefined) return [];
  return [invalid(field, local, 'can only be set when AppArmor type is Localhost')];
}

const localProfileBytesMax = 4095;

function validateLocalProfile(local: string | undefined, field: string): FieldError[] {
  const missing = required(field, 'must be set when AppArmor type is Localhost');
  if (local === undefined) return [missing];
  const errors: FieldError[] = [];
  const trimmed = local.trim();
  if (trimmed !== local) {
    errors.push(invalid(field, local, 'must not be padded with whitespace'));
  } else if (trimmed === '') errors.push(missing);
  if (Buffer.byteLength(local) > localProfileBytesMax) {
    errors.push(tooLong(field, localProfileBytesMax));
  }
  return errors;
}

/** Validates the security context of one container. */
export function validateContainerSecurity(
  context: Stored<SecurityContext> | undefined,
  path: string,
  { hostUsers }: { readonly hostUsers: boolean },
): FieldError[] {
  if (context === undefined) return [];
  return [
    ...validateIds(context, path, ['runAsUser', 'runAsGroup']),
    ...validateOptionalChoice(context, path, 'procMount', ['Default', 'Unmasked']),
    ...(hostUsers && context.procMount === 'Unmasked'
      ? [invalid(`${path}.procMount`, 'Unmasked', '`hostUsers` must be false to use `Unmasked`')]
      : []),
    ...validateSeccompProfile(context.seccompProfile, `${path}.seccompProfile`),
    ...validateEscalation(context, path),
    ...validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`),
    ...validateAppArmorProfile(context.appArmorProfile, `${path}.appArmorProfile`),
  ];
}

function validateSeccompProfile(
  profile: Stored<SeccompProfile> | undefined,
  path: string,
): FieldError[] {
  if (profile === undefined) return [];
  const type = profile.type ?? '';
  const local = profile.localhostProfile;
  const field = `${path}.localhostProfile`;
  const errors: FieldError[] = [];
  if (type === '') {
    errors.push(required(`${path}.type`, 'type is required when seccompProfile is set'));
  } else if (!profileTypes.includes(type)) {
    errors.push(notSupported(`${path}.type`, type, profileTypes));
  }
  if (type !== 'Localhost') {
    if (local === undefined) return errors;
    return [...errors, invalid(field, profile, 'can only be set when seccomp type is Localhost')];
  }
  if (local === undefined) {
    return [...errors, required(field, 'must be set when seccomp type is Localhost')];
  }
  return [...errors, ...validateDescendingPath(field, local)];
}

function validateEscalation(context: Stored<SecurityContext>, path: string): FieldError[] {
  if (context.allowPrivilegeEscalation !== false) return [];
  const errors: FieldError[] = [];
  const refuse = (what: string) => {
    errors.push(
      invalid(path, context, `cannot set \`allowPrivilegeEscalation\` to false and ${what}`),
    );
  };
  if (isTrue(context, 'privileged')) refuse('`privileged` to true');
  for (const capability of context.capabilities?.add ?? []) {
    if (capability === 'CAP_SYS_ADMIN') refuse('`capabilities.Add` CAP_SYS_ADMIN');
  }
  return errors;
}

const specKiBMax = 64;

/** Validates the Windows options of a pod or container. */
function validateWindowsOptions(
  options: Stored<WindowsSecurityContextOptions> | undefined,
  path: string,
): FieldError[] {
  if (options === undefined) return [];
  const errors: FieldError[] = [];
  const name = options.gmsaCredentialSpecName;
  if (name !== undefined) {
    appendAll(errors, ruleErrors(`${path}.gmsaCredentialSpecName`, name, dnsSubdomain));
  }
  const spec = options.gmsaCredentialSpec;
  const field = `${path}.gmsaCredentialSpec`;
  if (spec === '') {
    errors.push(invalid(field, spec, 'gmsaCredentialSpec cannot be an empty string'));
  } else if (spec !== undefined && Buffer.byteLength(spec) > specKiBMax * 1024) {
    const detail = `gmsaCredentialSpec size must be under ${specKiBMax} KiB`;
    errors.push(invalid(field, spec, detail));
  }
  const user = options.runAsUserName;
  if (user === undefined) return errors;
  const problems = userNameProblems(user).map((detail) =>
    invalid(`${path}.runAsUserName`, user, `runAsUserName${detail}`),
  );
  return [...errors, ...problems];
}

/** Returns the errors of `user` or `domain\user`; each starts after the name of the field. */
function userNameProblems(text: string): string[] {
  if (text === '') return [' cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about control characters
  if (/[\x00-\x1f\x7f]/.test(text)) return [' cannot contain control characters'];
  const parts = text.split('\\');
  if (parts.length > 2) return [' cannot contain more than one backslash'];
  const [domain, user = ''] = parts.length === 2 ? parts : [undefined, text];
  return [...domainProblems(domain), ...userProblems(user)];
}

const domainLengthMax = 256;

/** A NetBIOS domain: up to 15 characters, without special characters and without a leading dot. */
const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u;
const dnsPart = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$/;

function domainProblems(domain: string | undefined): string[] {
  if (domain === undefined) return [];
  const problems: string[] = [];
  if (exceedsBytes(domain, domainLengthMax - 1)) {
    problems.push(`'s Domain length must be under ${domainLengthMax} characters`);
  }
  if (!netBios.test(domain) && !domain.split('.').every((part) => dnsPart.test(part))) {
    problems.push("'s Domain doesn't match the NetBios nor the DNS format");
  }
  return problems;
}

const userLengthMax = 104;

function userProblems(user: string): string[] {
  const problems: string[] = [];
  if (user === '') problems.push("'s User cannot be empty");
  else if (exceedsBytes(user, userLengthMax)) {
    problems.push(`'s User length must not be longer than ${userLengthMax} characters`);
  }
  if (/^[. ]+$/.test(user)) problems.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    problems.push('\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]');
  }
  return problems;
}

/** Validates the security context of a pod and the related members of its spec, in steps. */
export function* validatePodSecurity(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const context = spec.securityContext;
  if (context === undefined) return [];
  const errors = [
    ...validateIds(context, path, ['fsGroup', 'runAsUser', 'runAsGroup']),
    ...(yield* validateGroupIds(context, path)),
  ];
  if (isTrue(spec, 'shareProcessNamespace') && isTrue(spec, 'hostPID')) {
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(invalid(`${path}.shareProcessNamespace`, true, detail));
  }
  const fsPolicies = ['Always', 'OnRootMismatch'];
  return joined<FieldError>(
    errors,
    yield* sysctlErrorSteps(spec, `${path}.sysctls`, rules),
    validateOptionalChoice(context, path, 'fsGroupChangePolicy', fsPolicies),
    validateSeccompProfile(context.seccompProfile, `${path}.seccompProfile`),
    validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`),
    validateAppArmorProfile(context.appArmorProfile, `${path}.appArmorProfile`),
    validateOptionalChoice(context, path, 'supplementalGroupsPolicy', ['Merge', 'Strict']),
    validateOptionalChoice(context, path, 'seLinuxChangePolicy', changePolicies(rules)),
  );
}

const sysctlLengthMax = 253;
const sysctlFormat = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';

/** Whether a spec sets sysctls of a namespace that the pod shares with its host, in steps. */
export const hasHostSysctls = (spec: Stored<PodSpec>): Generator<void, boolean> =>
  someSteps(
    spec.securityContext?.sysctls ?? [],
    (sysctl) => sharedNamespace(sysctl.name ?? '', spec) !== undefined,
  );

/** Validates sysctls, and rejects those of a namespace that the pod shares with its host. */
function sysctlErrorSteps(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const names = new Set<string>();
  return flatMapSteps(spec.securityContext?.sysctls ?? [], (sysctl, index) => {
    const name = sysctl.name ?? '';
    const field = `${path}[${index}].name`;
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(field));
    else if (!isSysctl(name)) {
      const detail = `must have at most ${sysctlLengthMax} characters and match regex ^${sysctlFormat}$`;
      errors.push(invalid(field, name, detail));
    } else if (names.has(name)) errors.push(duplicate(field, name));
    const shared = rules.allow.hostSysctls ? undefined : sharedNamespace(name, spec);
    if (shared !== undefined) {
      errors.push(invalid(field, name, `may not be specified when '${shared}' is true`));
    }
    names.add(name);
    return errors;
  });
}

const sysctlSegment = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

const isSysctl = (name: string) =>
  name.length <= sysctlLengthMax && name.split(/[./]/).every((part) => sysctlSegment.test(part));

/** The sysctls of the namespace for communication between processes, besides `fs.mqueue.`. */
const ipcSysctls: ReadonlySet<string> = new Set(
  ['sem', 'shm', 'shmall', 'shmmax', 'shmmni', 'shm_rmid_forced']
    .concat(['msg', 'msgmax', 'msgmnb', 'msgmni'])
    .map((name) => `kernel.${name}`),
);

function sharedNamespace(name: string, spec: Stored<PodSpec>): string | undefined {
  // The first separator decides which one separates: `net/ipv4/conf/eno2.100/rp_filter`.
  const isSwapped = /^[^./]*\//.test(name);
  const swapped = (separator: string) => (separator === '.' ? '/' : '.');
  const normal = isSwapped ? name.replaceAll(/[./]/g, swapped) : name;
  const plain = normal.split('*', 1)[0] ?? '';
  if (plain.startsWith('net.')) return isTrue(spec, 'hostNetwork') ? 'hostNetwork' : undefined;
  const isIpc = ipcSysctls.has(plain) || plain.startsWith('fs.mqueue.');
  return isIpc && isTrue(spec, 'hostIPC') ? 'hostIPC' : undefined;
}

const changePolicies = ({ allow }: PodRules) =>
  allow.mountedLabels ? ['MountOption', 'Recursive'] : ['Recursive'];

/** Whether a pod uses the user namespace of its host, which is the default. */
export const sharesUserNamespace = (spec: Stored<PodSpec>): boolean => spec.hostUsers !== false;

/**
 * Validates that a pod with its own user namespace uses no other namespace of the host. Two paths
 * are capitalized, as in kube-apiserver.
 */
export function validateHostUsers(spec: Stored<PodSpec>, path: string): FieldError[] {
  if (sharesUserNamespace(spec)) return [];
  const names = { hostNetwork: 'hostNetwork', hostPID: 'HostPID', hostIPC: 'HostIPC' };
  return Object.entries(names)
    .filter(([name]) => isTrue(spec, name))
    .map(([, shown]) => forbiddenField(`${path}.${shown}`, 'when `pod.Spec.HostUsers` is false'));
}
