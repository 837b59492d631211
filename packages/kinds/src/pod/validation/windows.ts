import {
  appendAll,
  breaks,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { at } from '../../cells.ts';
import type { PodSpec, WindowsSecurityContextOptions } from '../../gen/types/core/v1.ts';
import { objectAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { isTrue, refuseSet } from '../fields.ts';
import { containersOf } from '../references.ts';
import { eachContainer } from '../visit.ts';

const specKiBMax = 64;
const domainLengthMax = 256;
const userLengthMax = 104;
/** A NetBios domain: up to 15 characters, none of those with a meaning, no dot ahead. */
const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const dnsPart = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$/;

/** Options for a container on Windows. */
export function validateWindowsOptions(
  options: Stored<WindowsSecurityContextOptions> | undefined,
  path: string,
): FieldError[] {
  if (options === undefined) return [];
  const errors: FieldError[] = [];
  const name = options.gmsaCredentialSpecName;
  if (name !== undefined) {
    appendAll(errors, breaks(`${path}.gmsaCredentialSpecName`, name, dnsSubdomain));
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

/** What is wrong with `user` or `domain\user`; each goes on from the field's name. */
function userNameProblems(text: string): string[] {
  if (text === '') return [' cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return [' cannot contain control characters'];
  const parts = text.split('\\');
  if (parts.length > 2) return [' cannot contain more than one backslash'];
  const [domain, user = ''] = parts.length === 2 ? parts : [undefined, text];
  return [...domainProblems(domain), ...userProblems(user)];
}

function domainProblems(domain: string | undefined): string[] {
  if (domain === undefined) return [];
  const problems: string[] = [];
  if (domain.length >= domainLengthMax) {
    problems.push(`'s Domain length must be under ${domainLengthMax} characters`);
  }
  if (!netBios.test(domain) && !domain.split('.').every((part) => dnsPart.test(part))) {
    problems.push("'s Domain doesn't match the NetBios nor the DNS format");
  }
  return problems;
}

function userProblems(user: string): string[] {
  const problems: string[] = [];
  if (user === '') problems.push("'s User cannot be empty");
  else if (user.length > userLengthMax) {
    problems.push(`'s User length must not be longer than ${userLengthMax} characters`);
  }
  if (/^[. ]+$/.test(user)) problems.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    problems.push('\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]');
  }
  return problems;
}

const hostProcess = (holder: JsonObject): boolean | undefined => {
  const value = at(holder, 'securityContext', 'windowsOptions', 'hostProcess');
  return typeof value === 'boolean' ? value : undefined;
};

/** Containers that run as processes of the host: all of a pod's or none, on the host's network. */
export function validateHostProcesses(spec: Stored<PodSpec>, path: string): FieldError[] {
  const ofPod = hostProcess(spec);
  if (ofPod === undefined && !containersOf(spec).some((one) => hostProcess(one) !== undefined)) {
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

const systems = ['linux', 'windows'];

/** The operating system a pod is for, and what may not be said to a pod of that one. */
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
    refuseSet(objectAt(container, 'securityContext'), ['windowsOptions'], {
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
  const within = { path: `${path}.securityContext`, why };
  const beside = (name: string, is: boolean) =>
    is ? [forbiddenField(`${path}.${name}`, why)] : [];
  const hasSysctls = (context?.sysctls ?? []).length > 0;
  return [
    ...refuseSet(context, ['appArmorProfile', 'seLinuxOptions'], within),
    ...beside('hostUsers', spec.hostUsers != null),
    ...beside('hostPID', isTrue(spec, 'hostPID')),
    ...beside('hostIPC', isTrue(spec, 'hostIPC')),
    ...refuseSet(context, ['seccompProfile', 'fsGroup', 'fsGroupChangePolicy'], within),
    ...beside('securityContext.sysctls', hasSysctls),
    ...beside('shareProcessNamespace', spec.shareProcessNamespace != null),
    ...refuseSet(context, contextOnlyLinux, within),
    ...eachContainer(spec, path).flatMap(({ container, path: field }) =>
      refuseSet(objectAt(container, 'securityContext'), containerOnlyLinux, {
        path: `${field}.securityContext`,
        why,
      }),
    ),
  ];
}
