import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
} from '@wheelhouse/machinery';
import type {
  AppArmorProfile,
  PodSpec,
  SeccompProfile,
  SecurityContext,
} from '../../gen/types/core/v1.ts';
import type { Stored } from '../../stored.ts';
import { descendingPath, isTrue, oneOfIfSet, validateGroupIds, validateIds } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { validateWindowsOptions } from './windows.ts';

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'];

/** The profile that filters system calls. */
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
  return [...errors, ...descendingPath(field, local)];
}

const localProfileBytesMax = 4095;

/** An AppArmor profile. */
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

/** The security context of one container. */
export function validateContainerSecurity(
  context: Stored<SecurityContext> | undefined,
  path: string,
  { hostUsers }: { readonly hostUsers: boolean },
): FieldError[] {
  if (context === undefined) return [];
  return [
    ...validateIds(context, path, ['runAsUser', 'runAsGroup']),
    ...oneOfIfSet(context, path, 'procMount', ['Default', 'Unmasked']),
    ...(hostUsers && context.procMount === 'Unmasked'
      ? [invalid(`${path}.procMount`, 'Unmasked', '`hostUsers` must be false to use `Unmasked`')]
      : []),
    ...validateSeccompProfile(context.seccompProfile, `${path}.seccompProfile`),
    ...validateEscalation(context, path),
    ...validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`),
    ...validateAppArmorProfile(context.appArmorProfile, `${path}.appArmorProfile`),
  ];
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

/** The security context of a pod; what of it stands beside it in the spec is judged with it. */
export function validatePodSecurity(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): FieldError[] {
  const context = spec.securityContext;
  if (context === undefined) return [];
  const errors = [
    ...validateIds(context, path, ['fsGroup', 'runAsUser', 'runAsGroup']),
    ...validateGroupIds(context, path),
  ];
  if (isTrue(spec, 'shareProcessNamespace') && isTrue(spec, 'hostPID')) {
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(invalid(`${path}.shareProcessNamespace`, true, detail));
  }
  const fsPolicies = ['Always', 'OnRootMismatch'];
  return [
    ...errors,
    ...validateSysctls(spec, `${path}.sysctls`, rules),
    ...oneOfIfSet(context, path, 'fsGroupChangePolicy', fsPolicies),
    ...validateSeccompProfile(context.seccompProfile, `${path}.seccompProfile`),
    ...validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`),
    ...validateAppArmorProfile(context.appArmorProfile, `${path}.appArmorProfile`),
    ...oneOfIfSet(context, path, 'supplementalGroupsPolicy', ['Merge', 'Strict']),
    ...oneOfIfSet(context, path, 'seLinuxChangePolicy', changePolicies(rules)),
  ];
}

const changePolicies = ({ allow }: PodRules) =>
  allow.mountedLabels ? ['MountOption', 'Recursive'] : ['Recursive'];

/** Whether a pod's users are its host's; a pod without any statement shares them. */
export const sharesUsers = (spec: Stored<PodSpec>): boolean => spec.hostUsers !== false;

/** A pod with users of its own shares no other namespace with its host; two paths are upstream's. */
export function validateHostUsers(spec: Stored<PodSpec>, path: string): FieldError[] {
  if (sharesUsers(spec)) return [];
  const names = { hostNetwork: 'hostNetwork', hostPID: 'HostPID', hostIPC: 'HostIPC' };
  return Object.entries(names)
    .filter(([name]) => isTrue(spec, name))
    .map(([, shown]) => forbiddenField(`${path}.${shown}`, 'when `pod.Spec.HostUsers` is false'));
}

const sysctlLengthMax = 253;
const sysctlFormat = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const sysctlSegment = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

const isSysctl = (name: string) =>
  name.length <= sysctlLengthMax && name.split(/[./]/).every((part) => sysctlSegment.test(part));

/** Kernel parameters, none of a namespace that the pod shares with its host. */
export function validateSysctls(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): FieldError[] {
  const names = new Set<string>();
  return (spec.securityContext?.sysctls ?? []).flatMap((sysctl, index) => {
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

function sharedNamespace(name: string, spec: Stored<PodSpec>): string | undefined {
  const plain = name.replaceAll('/', '.');
  if (plain.startsWith('net.')) return isTrue(spec, 'hostNetwork') ? 'hostNetwork' : undefined;
  const isIpc =
    plain === 'kernel.sem' ||
    ['kernel.shm', 'kernel.msg', 'fs.mqueue.'].some((prefix) => plain.startsWith(prefix));
  return isIpc && isTrue(spec, 'hostIPC') ? 'hostIPC' : undefined;
}
